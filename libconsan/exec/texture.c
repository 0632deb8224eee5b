/* texture: see texture.h. */
#include "exec.h"
#include "texture.h"

#include "num.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- objects ---- */

/* Objects by handle - 1. Handles are not used again, so that a stale one is found. */
static struct {
	pthread_rwlock_t lock;
	VEC(struct consan_texture *) object;
} all = { .lock = PTHREAD_RWLOCK_INITIALIZER };

uint64_t exec_texture_add(const struct consan_texture *t)
{
	struct consan_texture *own = base_alloc(sizeof *own);
	uint64_t handle;

	*own = *t;
	pthread_rwlock_wrlock(&all.lock);
	vec_push(&all.object, own);
	handle = all.object.n;
	pthread_rwlock_unlock(&all.lock);
	return handle;
}

bool exec_texture_remove(uint64_t handle)
{
	struct consan_texture *t = NULL;

	pthread_rwlock_wrlock(&all.lock);
	if (handle - 1 < all.object.n) {
		t = all.object.at[handle - 1];
		all.object.at[handle - 1] = NULL;
	}
	pthread_rwlock_unlock(&all.lock);
	free(t);
	return t;
}

bool texture_find(uint64_t handle, struct consan_texture *out)
{
	const struct consan_texture *t = NULL;

	pthread_rwlock_rdlock(&all.lock);
	if (handle - 1 < all.object.n)
		t = all.object.at[handle - 1];
	if (t)
		*out = *t;
	pthread_rwlock_unlock(&all.lock);
	return t;
}

/* ---- coordinates ---- */

/* Wrapping and mirroring are for normalized coordinates only, others are clamped. -1: the border. */
static int64_t address(const struct consan_texture *t, unsigned d, int64_t i, uint32_t n)
{
	unsigned mode = t->address[d];

	if (i >= 0 && i < n)
		return i;
	if (!t->normalized && mode != CONSAN_ADDRESS_BORDER)
		mode = CONSAN_ADDRESS_CLAMP;
	switch (mode) {
	case CONSAN_ADDRESS_BORDER:
		return -1;
	case CONSAN_ADDRESS_WRAP:
		return ((i % n) + n) % n;
	case CONSAN_ADDRESS_MIRROR:
		i = ((i % (2 * (int64_t)n)) + 2 * (int64_t)n) % (2 * (int64_t)n);
		return i < n ? i : 2 * (int64_t)n - 1 - i;
	}
	return i < 0 ? 0 : (int64_t)n - 1;
}

uint32_t texture_extent(const struct consan_texture *t, unsigned d, uint32_t level)
{
	const uint32_t n = d == 0 ? t->width : d == 1 ? t->height : t->depth;

	return level && level >= t->levels ? 0 : consan_texture_size(n, level);
}

static uint64_t texel_at(const struct consan_texture *t, const int64_t i[3], unsigned layer, unsigned level)
{
	const unsigned bytes = consan_texel_bytes(t->format) * t->channels;
	const struct consan_level *v = &t->level[level];
	int64_t at[3] = { 0 };

	for (unsigned d = 0; d < texture_dims(t); d++) {
		at[d] = address(t, d, i[d], texture_extent(t, d, level));
		if (at[d] < 0)
			return 0;
	}
	return v->at + (uint64_t)at[0] * bytes + (uint64_t)at[1] * v->pitch
		+ (uint64_t)(t->depth ? at[2] : layer) * v->slice;
}

/* In texels; a coordinate that is no number is 0. */
static double scaled(const struct consan_texture *t, const struct point *p, unsigned d, unsigned level)
{
	const double most = 1 << 30, u = t->normalized ? p->at[d] * texture_extent(t, d, level) : p->at[d];

	return isnan(u) ? 0 : u > most ? most : u < -most ? -most : u;
}

enum { ONE = 256 }; /* weights have 8 bits of fraction */

/* The texel before the point, and the weight of the next one: 9-bit fixed point with 8 bits of
 * fraction. */
static int64_t split(double u, int *weight)
{
	const double fixed = floor((u - 0.5) * ONE + 0.5);

	*weight = (int)(fixed - floor(fixed / ONE) * ONE);
	return (int64_t)floor(fixed / ONE);
}

static int product(int a, int b)
{
	return (a * b + ONE / 2) / ONE;
}

/* The weights of the texels, of which bit d of the index is the one behind in dimension d; dimensions that
 * are not there have the weight 0. What is rounded is not documented: GPUs split by z, then by y, and round
 * the half that is further away from the middle. All of 60,000 measured on an H100 (2026-11-23) are equal. */
static void set_weights(const int weight[3], int to[LEVEL_TAPS])
{
	const int x = weight[0], y = weight[1], z = weight[2];
	const int after = product(x, z), before = product(x, ONE - z), left = z - after;
	const int first = ONE - z - before;

	to[7] = product(after, y);
	to[5] = after - to[7];
	to[3] = product(before, y);
	to[1] = before - to[3];
	to[4] = product(left, ONE - y);
	to[6] = left - to[4];
	to[0] = product(first, ONE - y);
	to[2] = first - to[0];
}

static void add_level(const struct consan_texture *t, const struct point *p, bool whole, unsigned level,
	float share, struct fetch *f)
{
	const unsigned dims = texture_dims(t);
	/* an H200 reads an array of one dimension as one row, in the middle between it and the one before,
	 * which is the border in this mode */
	const bool half = t->linear && dims == 1 && !t->layers && t->address[1] == CONSAN_ADDRESS_BORDER
		&& !whole;
	int weight[3] = { 0 }, of[LEVEL_TAPS];
	int64_t low[3] = { 0 };

	for (unsigned d = 0; d < dims; d++) {
		low[d] = whole ? (int64_t)p->at[d] : t->linear ? split(scaled(t, p, d, level), &weight[d])
			: (int64_t)floor(scaled(t, p, d, level));
		low[d] += p->offset[d];
	}
	if (half)
		weight[1] = ONE / 2;
	set_weights(weight, of);
	for (unsigned k = 0; k < LEVEL_TAPS; k++) {
		int64_t i[3];

		for (unsigned d = 0; d < 3; d++)
			i[d] = low[d] + (k >> d & 1);
		if (of[k] > 0)
			f->tap[f->n++] = (struct tap){ half && !(k & 2) ? 0 : texel_at(t, i, p->layer, level),
				(float)of[k] / ONE * share };
	}
}

void texture_fetch(const struct consan_texture *t, const struct point *p, bool whole, struct fetch *f)
{
	f->n = 0;
	add_level(t, p, whole, p->detail.level, 1 - p->detail.next, f);
	if (p->detail.next > 0)
		add_level(t, p, whole, p->detail.level + 1, p->detail.next, f);
}

void texture_gather(const struct consan_texture *t, const struct point *p, struct fetch *f)
{
	static const uint8_t dx[4] = { 0, 1, 1, 0 }, dy[4] = { 1, 1, 0, 0 };
	const unsigned level = p->detail.level;
	int unused;
	const int64_t x = split(scaled(t, p, 0, level), &unused) + p->offset[0];
	const int64_t y = split(scaled(t, p, 1, level), &unused) + p->offset[1];

	f->n = 4;
	for (unsigned k = 0; k < 4; k++)
		f->tap[k] = (struct tap){ texel_at(t, (int64_t[3]){ x + dx[k], y + dy[k], 0 }, p->layer, level), 1 };
}

/* ---- levels ---- */

/* fmin() and fmax() take what is a number; the lower clamp is the last, as on an H100. */
static struct detail detail_of(const struct consan_texture *t, double lod)
{
	const double last = t->levels ? t->levels - 1 : 0, fixed = floor(fmin(fmax(fmin(lod, t->most), t->least),
		CONSAN_MOST_LEVELS) * ONE);
	const double u = fmin(fmax(fixed, 0), last * ONE);
	unsigned level;

	if (!t->levels)
		return (struct detail){ 0 };
	if (!t->level_linear)
		return (struct detail){ (unsigned)((u + ONE / 2) / ONE), 0 };
	level = (unsigned)(u / ONE);
	return (struct detail){ level, (float)(u / ONE - level) };
}

struct detail texture_level(const struct consan_texture *t, double lod)
{
	return detail_of(t, (isnan(lod) ? 0 : lod) + t->bias);
}

/* The bias is not for a level that the fetch does not have. */
struct detail texture_base(const struct consan_texture *t)
{
	return detail_of(t, 0);
}

/* The logarithm of the longer axis of the ellipse, in texels, that is the image of a pixel. */
struct detail texture_gradient(const struct consan_texture *t, const float x[3], const float y[3])
{
	double a = 0, b = 0, c = 0, longest;

	for (unsigned d = 0; d < texture_dims(t); d++) {
		const double n = t->normalized ? texture_extent(t, d, 0) : 1, u = x[d] * n, v = y[d] * n;

		a += u * u;
		b += u * v;
		c += v * v;
	}
	longest = (a + c) / 2 + sqrt((a - c) * (a - c) / 4 + b * b);
	if (!(longest > 0))
		return detail_of(t, -INFINITY);
	return detail_of(t, floor(log2(longest) / 2 * ONE + 0.5) / ONE + t->bias);
}

/* "Cubemap Textures" of the CUDA C++ Programming Guide */
unsigned texture_face(struct point *p)
{
	const double x = p->at[0], y = p->at[1], z = p->at[2];
	const double ax = fabs(x), ay = fabs(y), az = fabs(z);
	double m, s, t;
	unsigned face;

	if (ax > ay && ax > az) {
		face = x >= 0 ? 0 : 1;
		m = ax;
		s = x >= 0 ? -z : z;
		t = -y;
	} else if (ay > ax && ay > az) {
		face = y >= 0 ? 2 : 3;
		m = ay;
		s = x;
		t = y >= 0 ? z : -z;
	} else {
		face = z >= 0 ? 4 : 5;
		m = az;
		s = z >= 0 ? x : -x;
		t = -y;
	}
	p->at[0] = m > 0 ? (s / m + 1) / 2 : 0;
	p->at[1] = m > 0 ? (t / m + 1) / 2 : 0;
	return face;
}

/* ---- values ---- */

static uint32_t integer(const struct consan_texture *t, const struct tap *tap, unsigned channel)
{
	const unsigned char *at;
	union { uint8_t u8; uint16_t u16; uint32_t u32; int8_t s8; int16_t s16; } v = { .u32 = 0 };

	if (!tap->at || channel >= t->channels)
		return 0;
	at = (const unsigned char *)(uintptr_t)tap->at + channel * consan_texel_bytes(t->format);
	memcpy(&v, at, consan_texel_bytes(t->format));
	switch (t->format) {
	case CONSAN_TEXEL_S8: return (uint32_t)v.s8;
	case CONSAN_TEXEL_S16: return (uint32_t)v.s16;
	default: return v.u32;
	}
}

/* Integers from 0 or -1 to 1, of which the least one counts as its neighbour. */
static double real(const struct consan_texture *t, const struct tap *tap, unsigned channel)
{
	const uint32_t v = integer(t, tap, channel);

	if (!tap->at)
		return t->border[channel];
	switch (t->format) {
	case CONSAN_TEXEL_U8: return v / 255.0;
	case CONSAN_TEXEL_U16: return v / 65535.0;
	case CONSAN_TEXEL_S8: return fmax((int32_t)v / 127.0, -1);
	case CONSAN_TEXEL_S16: return fmax((int32_t)v / 32767.0, -1);
	case CONSAN_TEXEL_F16: return num_from_f16((uint16_t)v);
	default: return num_f32(v);
	}
}

/* IEC 61966-2-1 */
static double linear_of(double v)
{
	return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double colour(const struct consan_texture *t, const struct tap *tap, unsigned channel)
{
	const double v = real(t, tap, channel);

	return t->srgb && tap->at && channel < 3 ? linear_of(v) : v;
}

uint32_t texture_value(const struct consan_texture *t, const struct fetch *f, unsigned channel)
{
	double sum = 0;
	union { float f; uint32_t u; } bits;

	if (!texture_floats(t))
		return integer(t, &f->tap[0], channel);
	if (f->n == 1) {
		bits.f = (float)colour(t, &f->tap[0], channel);
		return bits.u;
	}
	for (unsigned k = 0; k < f->n; k++)
		sum += f->tap[k].weight * colour(t, &f->tap[k], channel);
	bits.f = (float)sum;
	return bits.u;
}
