/* The arithmetic of mma.sync and wgmma against loops written from the ISA's
 * fragment tables, element by element, in double and int64. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/exec/num.h"
#include "libconsan/exec/tile.h"

static uint64_t seed = 88172645463325252u;
static uint32_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

static unsigned bits_of(enum tile_in t)
{
	static const unsigned bits[] = {
#define TILE_IN(id, bits) bits,
		TILE_IN_LIST
#undef TILE_IN
	};
	return bits[t];
}

static bool is_int(enum tile_in t)
{
	return t == IN_s8 || t == IN_u8 || t == IN_s4 || t == IN_u4 || t == IN_b1;
}

/* A random element, small enough that sums of products are exact in f32. */
static uint32_t element(enum tile_in t)
{
	float f = (float)((int)(rnd() % 17) - 8) / 2;

	switch (t) {
	case IN_f16: return num_to_f16(f);
	case IN_bf16: return num_to_bf16(f);
	case IN_tf32: return num_bits32(f) | (rnd() & 0x1fff);
	case IN_e4m3: return num_to_e4m3(f);
	case IN_e5m2: return num_to_e5m2(f / 2);
	case IN_e3m2: return num_to_e3m2(f);
	case IN_e2m3: return num_to_e2m3(f);
	case IN_e2m1: return (uint32_t)num_to_e2m1(f) << 2;
	default: return rnd();
	}
}

static double value(enum tile_in t, uint32_t u)
{
	switch (t) {
	case IN_f16: return num_from_f16((uint16_t)u);
	case IN_bf16: return num_from_bf16((uint16_t)u);
	case IN_tf32: return num_f32(u & 0xffffe000);
	case IN_e4m3: return num_from_e4m3((uint8_t)u);
	case IN_e5m2: return num_from_e5m2((uint8_t)u);
	case IN_e3m2: return num_from_e3m2((uint8_t)u);
	case IN_e2m3: return num_from_e2m3((uint8_t)u);
	case IN_e2m1: return num_from_e2m1((uint8_t)(u >> 2));
	case IN_s8: return (int8_t)u;
	case IN_u8: return (uint8_t)u;
	case IN_s4: return (int8_t)(u << 4) >> 4;
	case IN_u4: return u & 15;
	default: return u & 1;
	}
}

/* Bits [at, at + bits) of a register. */
static uint32_t field(uint32_t reg, unsigned at, unsigned bits)
{
	return bits == 32 ? reg : reg >> at & ((1u << bits) - 1);
}

static const struct one { uint8_t m; uint16_t k; uint8_t a, b; bool f16_too; } shapes[] = {
	{ 16, 8, IN_f16, IN_f16, true }, { 16, 16, IN_f16, IN_f16, true },
	{ 16, 8, IN_bf16, IN_bf16, false }, { 16, 16, IN_bf16, IN_bf16, false },
	{ 16, 4, IN_tf32, IN_tf32, false }, { 16, 8, IN_tf32, IN_tf32, false },
	{ 16, 16, IN_e4m3, IN_e4m3, true }, { 16, 32, IN_e4m3, IN_e5m2, true },
	{ 16, 32, IN_e5m2, IN_e4m3, true }, { 16, 32, IN_e5m2, IN_e5m2, true },
	{ 16, 32, IN_e3m2, IN_e2m3, false }, { 16, 32, IN_e2m1, IN_e4m3, false },
	{ 8, 16, IN_s8, IN_s8, false }, { 8, 16, IN_u8, IN_s8, false },
	{ 16, 16, IN_s8, IN_u8, false }, { 16, 32, IN_u8, IN_u8, false },
	{ 16, 32, IN_s8, IN_s8, false },
	{ 8, 32, IN_s4, IN_s4, false }, { 8, 32, IN_u4, IN_s4, false },
	{ 16, 32, IN_s4, IN_u4, false }, { 16, 64, IN_u4, IN_u4, false },
	{ 8, 128, IN_b1, IN_b1, false }, { 16, 128, IN_b1, IN_b1, false },
	{ 16, 256, IN_b1, IN_b1, false },
};

static void check_mma(const struct one *o, bool half, bool sat, bool and, mma_tile_fn tile)
{
	struct mma_shape s = { .m = o->m, .k = o->k, .a = o->a, .b = o->b, .satfinite = sat,
		.and = and };
	unsigned bits = bits_of(o->a), per = 32 / bits, halves = o->m / 8u;
	_Alignas(64) uint32_t a[8][32], b[4][32], c[4][32], d[4][32];
	double m[16][256], n[256][8];
	struct mma_regs r;

	s.c = s.d = is_int(o->a) ? ACC_s32 : half ? ACC_f16 : ACC_f32;
	for (unsigned i = 0; i < 8 * 32; i++)
		for (unsigned e = a[i / 32][i % 32] = 0; e < per; e++)
			a[i / 32][i % 32] |= field(element(o->a), 0, bits) << e * bits;
	for (unsigned i = 0; i < 4 * 32; i++) {
		for (unsigned e = b[i / 32][i % 32] = 0; e < per; e++)
			b[i / 32][i % 32] |= field(element(o->b), 0, bits) << e * bits;
		c[i / 32][i % 32] = s.c == ACC_s32 ? (sat ? 0x7fffff00u : rnd()) : s.c == ACC_f32
			? num_bits32((float)(rnd() % 64))
			: num_to_f16((float)(rnd() % 8)) * 0x10001u;
	}
	for (unsigned i = 0; i < 8; i++)
		r.a[i] = a[i];
	for (unsigned i = 0; i < 4; i++) {
		r.b[i] = b[i];
		r.c[i] = c[i];
		r.d[i] = d[i];
	}
	for (unsigned l = 0; l < 32; l++)
		for (unsigned k = 0; k < o->k; k++) {
			/* element e of lane (g, t): k = slab + per * t + e */
			unsigned slab = k / (4 * per), t = k / per % 4, e = k % per;

			if (l % 4 != t)
				continue;
			for (unsigned h = 0; h < halves; h++)
				m[8 * h + l / 4][k] = value(o->a,
				field(a[slab * halves + h][l], e * bits, bits));
			n[k][l / 4] = value(o->b, field(b[slab][l], e * bits, bits));
		}
	tile(&s, &r);
	for (unsigned i = 0; i < o->m; i++)
		for (unsigned j = 0; j < 8; j++) {
			unsigned l = i % 8 * 4 + j / 2, reg = i / 8 * 2 + j % 2;
			uint32_t cu = c[reg][l], du = d[reg][l];
			double sum = 0, want, got;

			if (s.c == ACC_f16) {
				cu = c[i / 8][l] >> j % 2 * 16 & 0xffff;
				du = d[i / 8][l] >> j % 2 * 16 & 0xffff;
			}
			for (unsigned k = 0; k < o->k; k++)
				sum += o->a != IN_b1 ? m[i][k] * n[k][j]
					: and ? m[i][k] * n[k][j] : m[i][k] != n[k][j];
			if (s.c == ACC_s32) {
				want = (double)(int32_t)cu + sum;
				if (sat)
					want = want > INT32_MAX ? INT32_MAX : want < INT32_MIN
					? INT32_MIN : want;
				else
					want = (int32_t)(uint32_t)(int64_t)want;
				got = (int32_t)du;
			} else if (s.c == ACC_f16) {
				want = num_from_f16(num_to_f16((float)(num_from_f16((uint16_t)cu)
					+ sum)));
				got = num_from_f16((uint16_t)du);
			} else {
				want = num_f32(cu) + sum;
				got = num_f32(du);
			}
			cr_assert(want == got,
				"m%u k%u %u %u half %d sat %d: [%u][%u] is %g, not %g",
				o->m, o->k, o->a, o->b, half, sat, i, j, got, want);
		}
}

static void all_mma(mma_tile_fn tile)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		const struct one *o = &shapes[i];

		check_mma(o, false, false, false, tile);
		if (o->f16_too)
			check_mma(o, true, false, false, tile);
		if (is_int(o->a) && o->a != IN_b1)
			check_mma(o, false, true, false, tile);
		if (o->a == IN_b1)
			check_mma(o, false, false, true, tile);
	}
}

Test(tile, mma)
{
	all_mma(mma_tile_avx2);
	if (simd_level() == SIMD_512)
		all_mma(mma_tile_avx512);
}

Test(tile, mma_f64)
{
	for (unsigned k = 4; k <= 16; k *= 2)
	for (unsigned m = 8; m <= 16; m += 8) {
		struct mma_shape s = { .m = (uint8_t)m, .k = (uint16_t)k, .a = IN_f64, .b = IN_f64,
			.c = ACC_f64, .d = ACC_f64 };
		double a[8][32], b[4][32], c[4][32], d[4][32];
		struct mma_regs r;

		for (unsigned i = 0; i < 8; i++) {
			for (unsigned l = 0; l < 32; l++) {
				a[i][l] = (int)(rnd() % 100) - 50;
				b[i % 4][l] = (int)(rnd() % 100) - 50;
				c[i % 4][l] = (int)(rnd() % 100) - 50;
			}
			r.a[i] = a[i];
			r.b[i % 4] = b[i % 4];
			r.c[i % 4] = c[i % 4];
			r.d[i % 4] = d[i % 4];
		}
		SIMD_PICK(mma_tile)(&s, &r);
		for (unsigned i = 0; i < m; i++)
			for (unsigned j = 0; j < 8; j++) {
				unsigned l = i % 8 * 4 + j / 2, reg = i / 8 * 2 + j % 2;
				double want = c[reg][l];

				for (unsigned x = 0; x < k; x++)
					want += a[x / 4 * (m / 8) + i / 8][i % 8 * 4 + x % 4]
						* b[x / 4][j * 4 + x % 4];
				cr_assert(d[reg][l] == want);
			}
	}
}

/* ---- wgmma ---- */

#define MAX_N 256
static _Alignas(64) unsigned char image_a[64 * 32];
static _Alignas(64) unsigned char image_b[MAX_N * 32];
static _Alignas(64) uint32_t files[4][128][32], before[4][128][32];
static struct wg_scratch scratch;

struct wg_case { enum tile_in a, b; enum tile_acc acc; bool a_mn, b_mn, scale_d, negate, sat; };

/* Element (row, k) of a dense image of `rows` rows. */
static uint32_t image_at(const unsigned char *image, enum tile_in t, bool mn, unsigned rows,
	unsigned row, unsigned k)
{
	unsigned bytes = bits_of(t) / 8;
	uint32_t u = 0;

	memcpy(&u, image + (mn ? (k * rows + row) * bytes : row * 32 + k * bytes), bytes);
	return u;
}

static void check_wg(const struct wg_case *w, unsigned n,
	void (*tile)(const struct wg_tile *, struct wg_scratch *))
{
	unsigned ks = 256 / bits_of(w->a), bytes = bits_of(w->a) / 8;
	uint32_t slot[128];
	struct wg_tile t = { .n = (uint16_t)n, .a_type = w->a, .b_type = w->b, .acc = w->acc,
		.a_mn = w->a_mn, .b_mn = w->b_mn, .scale_d = w->scale_d, .negate = w->negate,
		.satfinite = w->sat, .a = image_a, .b = image_b, .slot = slot };

	for (unsigned i = 0; i < 128; i++)
		slot[i] = (i * 37 % 128) * 128;
	for (unsigned i = 0; i < 64 * ks; i++) {
		uint32_t u = element(w->a);
		memcpy(image_a + i * bytes, &u, bytes);
	}
	for (unsigned i = 0; i < n * ks; i++) {
		uint32_t u = element(w->b);
		memcpy(image_b + i * bytes, &u, bytes);
	}
	for (unsigned x = 0; x < 4; x++) {
		for (unsigned i = 0; i < 128 * 32; i++)
			files[x][i / 32][i % 32] =
				w->acc == ACC_s32 ? (w->sat ? 0x7ffffff0u : rnd())
				: w->acc == ACC_f32 ? num_bits32((float)(rnd() % 64))
				: num_to_f16((float)(rnd() % 8)) * 0x10001u;
		t.r[x] = (unsigned char *)files[x];
	}
	memcpy(before, files, sizeof before);
	tile(&t, &scratch);
	for (unsigned i = 0; i < 64; i++)
		for (unsigned j = 0; j < n; j++) {
			unsigned l = i % 8 * 4 + j % 8 / 2, h = i / 8 % 2, p = j % 2, x = i / 16;
			unsigned reg = w->acc == ACC_f16 ? j / 8 * 2 + h : j / 8 * 4 + 2 * h + p;
			uint32_t cu = before[x][reg * 37 % 128][l],
				du = files[x][reg * 37 % 128][l];
			double sum = 0, c, want, got;

			for (unsigned k = 0; k < ks; k++)
				sum += value(w->a, image_at(image_a, w->a, w->a_mn, 64, i, k))
					* value(w->b, image_at(image_b, w->b, w->b_mn, n, j, k));
			if (w->negate)
				sum = -sum;
			if (w->acc == ACC_f16) {
				cu = cu >> 16 * p & 0xffff;
				du = du >> 16 * p & 0xffff;
			}
			c = !w->scale_d ? 0 : w->acc == ACC_s32 ? (double)(int32_t)cu
				: w->acc == ACC_f32 ? num_f32(cu) : num_from_f16((uint16_t)cu);
			want = c + sum;
			if (w->acc == ACC_f16)
				want = num_from_f16(num_to_f16((float)want));
			if (w->acc == ACC_s32)
				want = !w->sat ? (int32_t)(uint32_t)(int64_t)want
					: want > INT32_MAX ? INT32_MAX : want;
			got = w->acc == ACC_s32 ? (double)(int32_t)du
				: w->acc == ACC_f32 ? num_f32(du) : num_from_f16((uint16_t)du);
			cr_assert(got == want,
				"n%u %u*%u acc %u: [%u][%u] is %.2f, not %.2f (was %.2f, + %.2f)",
				n, w->a, w->b, w->acc, i, j, got, want, c, sum);
		}
}

Test(tile, wgmma)
{
	static const struct wg_case cases[] = {
		{ IN_f16, IN_f16, ACC_f32, false, false, true, false, false },
		{ IN_f16, IN_f16, ACC_f32, true, false, true, true, false },
		{ IN_f16, IN_f16, ACC_f16, false, true, true, false, false },
		{ IN_f16, IN_f16, ACC_f16, false, false, false, false, false },
		{ IN_bf16, IN_bf16, ACC_f32, true, true, false, false, false },
		{ IN_bf16, IN_bf16, ACC_f32, false, false, true, true, false },
		{ IN_tf32, IN_tf32, ACC_f32, false, false, true, false, false },
		{ IN_e4m3, IN_e5m2, ACC_f32, false, false, true, false, false },
		{ IN_e5m2, IN_e4m3, ACC_f16, false, false, true, true, false },
		{ IN_s8, IN_s8, ACC_s32, false, false, true, false, false },
		{ IN_u8, IN_s8, ACC_s32, false, false, false, false, false },
		{ IN_s8, IN_u8, ACC_s32, false, false, true, false, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (unsigned n = 8; n <= 256; n += n < 64 ? 8 : 24) {
			check_wg(&cases[i], n, wg_tile_avx2);
			if (simd_level() == SIMD_512)
				check_wg(&cases[i], n, wg_tile_avx512);
		}
}
