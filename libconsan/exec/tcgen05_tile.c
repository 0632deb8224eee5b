/* tcgen05_tile: see tcgen05_tile.h. */
#include "tcgen05_tile.h"
#include "tile_units.h"

/* ---- panels of 32-bit numbers: floats, or integers for the integer kinds ---- */

static unsigned bits_of(enum tc_in t)
{
	switch (t) {
	case TC_f16: case TC_bf16: return 16;
	case TC_tf32: return 32;
	case TC_e2m1: case TC_s4: case TC_u4: return 4;
	default: return 8;
	}
}

static float narrow(enum tc_in t, uint32_t v)
{
	switch (t) {
	case TC_e3m2_x: case TC_e3m2_b: return num_from_e3m2((uint8_t)v);
	case TC_e2m3_x: case TC_e2m3_b: return num_from_e2m3((uint8_t)v);
	default: return num_from_e2m1((uint8_t)v);
	}
}

/* 16 packed elements of `width` bits at the start of each 16 bytes */
static void unpack(float *out, const unsigned char *in, unsigned bytes, enum tc_in t,
	unsigned width)
{
	for (unsigned at = 0; at < bytes; at += 16)
		for (unsigned i = 0; i < 16; i++) {
			uint16_t two;
			memcpy(&two, in + at + i * width / 8, 2);
			*out++ = narrow(t, two >> i * width % 8 & ((1u << width) - 1));
		}
}

static void widen(float *out, const unsigned char *in, unsigned bytes, enum tc_in t)
{
	int32_t *whole = (int32_t *)out;

	switch (t) {
	case TC_f16: units_from(IN_f16, (uint32_t *)out, in, bytes); return;
	case TC_bf16: units_from(IN_bf16, (uint32_t *)out, in, bytes); return;
	case TC_tf32: units_from(IN_tf32, (uint32_t *)out, in, bytes); return;
	case TC_e4m3: units_from(IN_e4m3, (uint32_t *)out, in, bytes); return;
	case TC_e5m2: units_from(IN_e5m2, (uint32_t *)out, in, bytes); return;
	case TC_e3m2_x: case TC_e2m3_x: unpack(out, in, bytes, t, 6); return;
	case TC_e2m1_x: unpack(out, in, bytes, t, 4); return;
	case TC_e3m2_b: case TC_e2m3_b:
		for (unsigned i = 0; i < bytes; i++)
			out[i] = narrow(t, in[i]);
		return;
	case TC_e2m1_b:
		for (unsigned i = 0; i < bytes; i++)
			out[i] = narrow(t, in[i] >> 2);
		return;
	case TC_e2m1:
		for (unsigned i = 0; i < 2 * bytes; i++)
			out[i] = narrow(t, in[i / 2] >> i % 2 * 4 & 15);
		return;
	case TC_s8:
		for (unsigned i = 0; i < bytes; i++)
			whole[i] = (int8_t)in[i];
		return;
	case TC_u8:
		for (unsigned i = 0; i < bytes; i++)
			whole[i] = in[i];
		return;
	case TC_s4:
		for (unsigned i = 0; i < 2 * bytes; i++)
			whole[i] = (int8_t)(in[i / 2] << (i % 2 ? 0 : 4)) >> 4;
		return;
	case TC_u4:
		for (unsigned i = 0; i < 2 * bytes; i++)
			whole[i] = in[i / 2] >> i % 2 * 4 & 15;
		return;
	}
}

/* Elements of a row of A that are stored; where element i is in the row. */
static unsigned stored(const struct tc_tile *t)
{
	return t->slot ? t->k / 2 : t->k;
}
static unsigned place(const struct tc_tile *t, unsigned r, unsigned i)
{
	return t->slot ? t->slot[r * (t->k / 2) + i] : i;
}

/* rows by k, or by the stored elements */
static void panel_a(const struct tc_tile *t, struct tc_scratch *s)
{
	const unsigned ka = stored(t);

	widen(t->a_mn ? s->line : s->a, t->a, t->m * ka * bits_of(t->a_type) / 8, t->a_type);
	for (unsigned r = 0; t->a_mn && r < t->m; r++)
		for (unsigned i = 0; i < ka; i++)
			s->a[r * ka + i] = s->line[i * t->m + r];
	for (unsigned r = 0; t->scale_a && r < t->m; r++)
		for (unsigned i = 0; i < ka; i++)
			s->a[r * ka + i] *= t->scale_a[r * (t->k / t->block) + place(t, r, i) / t->block];
	for (unsigned i = 0; t->negate_a != t->negate_b && i < t->m * ka; i++)
		s->a[i] = -s->a[i];
}

/* k by columns */
static void panel_b(const struct tc_tile *t, struct tc_scratch *s)
{
	const unsigned bytes = t->b_n * t->k * bits_of(t->b_type) / 8;
	const unsigned blocks = t->k / t->block;
	float *first = s->b + t->b_first;

	widen(t->b_mn ? s->b : s->line, t->b, bytes, t->b_type);
	for (unsigned c = 0; !t->b_mn && c < t->b_n; c += 8)
		for (unsigned k = 0; k < t->k; k += 8)
			units_transpose((uint32_t *)s->b + k * t->b_n + c, t->b_n,
				(const uint32_t *)s->line + c * t->k + k, t->k, false);
	for (unsigned k = 0; t->scale_b && k < t->k; k++)
		for (unsigned c = 0; c < t->n; c++)
			first[k * t->b_n + c] *= t->scale_b[c * blocks + k / t->block];
	for (unsigned c = 0; t->zero && c < t->n; c++)
		for (unsigned k = 0; t->zero[c / 64] >> c % 64 & 1 && k < t->k; k++)
			first[k * t->b_n + c] = 0;
}

/* ---- sums ---- */

#ifdef __AVX512F__
typedef __m512 vec;
#define W 16
#define LOAD(p) _mm512_loadu_ps(p)
#define STORE(p, v) _mm512_storeu_ps(p, v)
#define ZERO() _mm512_setzero_ps()
#define ALL(x) _mm512_set1_ps(x)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define MUL(a, b) _mm512_mul_ps(a, b)
#else
typedef __m256 vec;
#define W 8
#define LOAD(p) _mm256_loadu_ps(p)
#define STORE(p, v) _mm256_storeu_ps(p, v)
#define ZERO() _mm256_setzero_ps()
#define ALL(x) _mm256_set1_ps(x)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define MUL(a, b) _mm256_mul_ps(a, b)
#endif

enum { ROWS = 6, VECS = 2 };   /* accumulators that fit into 16 registers */

/* nr rows of D by nv vectors of columns; d[i]: cells of row i. slot: of a sparse row; then nr is 1. */
TILE_INLINE void block(unsigned nr, unsigned nv, const struct tc_tile *t, const float *a,
	const uint8_t *slot, const float *b, float *const d[ROWS])
{
	const unsigned ka = slot ? t->k / 2 : t->k;
	vec acc[ROWS][VECS];

	for (unsigned i = 0; i < nr; i++)
		for (unsigned v = 0; v < nv; v++)
			acc[i][v] = t->accumulate ? LOAD(d[i] + v * W) : ZERO();
	if (t->scale_d != 1)
		for (unsigned i = 0; i < nr; i++)
			for (unsigned v = 0; v < nv; v++)
				acc[i][v] = MUL(acc[i][v], ALL(t->scale_d));
	for (unsigned k = 0; k < ka; k++) {
		vec y[VECS];

		for (unsigned v = 0; v < nv; v++)
			y[v] = LOAD(b + (slot ? slot[k] : k) * t->b_n + v * W);
		for (unsigned i = 0; i < nr; i++)
			for (unsigned v = 0; v < nv; v++)
				acc[i][v] = FMA(ALL(a[i * ka + k]), y[v], acc[i][v]);
	}
	for (unsigned i = 0; i < nr; i++)
		for (unsigned v = 0; v < nv; v++)
			STORE(d[i] + v * W, acc[i][v]);
}

/* Eight columns of row r, the last ones: n is a multiple of 8. */
static void eight(const struct tc_tile *t, unsigned r, const float *a, const float *b, float *d)
{
	__m256 acc = t->accumulate ? _mm256_mul_ps(_mm256_loadu_ps(d), _mm256_set1_ps(t->scale_d))
		: _mm256_setzero_ps();

	for (unsigned i = 0; i < stored(t); i++)
		acc = _mm256_fmadd_ps(_mm256_set1_ps(a[i]),
			_mm256_loadu_ps(b + place(t, r, i) * t->b_n), acc);
	_mm256_storeu_ps(d, acc);
}

/* The columns [from, from + n) of rows r to r + nr - 1 */
static void rows_f32(const struct tc_tile *t, const struct tc_scratch *s, unsigned r, unsigned nr,
	unsigned from, unsigned n, float *const d[ROWS])
{
	const unsigned ka = stored(t);
	const float *a = s->a + r * ka, *b = s->b + t->b_first + from;

	for (unsigned c = 0; c < n;) {
		float *at[ROWS];

		for (unsigned i = 0; i < nr; i++)
			at[i] = d[i] + c;
		if (t->slot && c + VECS * W <= n) {
			for (unsigned i = 0; i < nr; i++)
				block(1, VECS, t, a + i * ka, t->slot + (r + i) * ka, b + c, at + i);
			c += VECS * W;
		} else if (nr == ROWS && c + VECS * W <= n) {
			block(ROWS, VECS, t, a, NULL, b + c, at);
			c += VECS * W;
		} else if (!t->slot && c + W <= n) {
			for (unsigned i = 0; i < nr; i++)
				block(1, 1, t, a + i * ka, NULL, b + c, at + i);
			c += W;
		} else {
			for (unsigned i = 0; i < nr; i++)
				eight(t, r + i, a + i * ka, b + c, at[i]);
			c += 8;
		}
	}
}

static void row_f16(const struct tc_tile *t, const struct tc_scratch *s, unsigned r, unsigned from,
	unsigned n, uint32_t *cell)
{
	float wide[TC_N], *d[ROWS] = { wide };

	for (unsigned c = 0; c < n; c++)
		wide[c] = num_from_f16((uint16_t)cell[c]);
	rows_f32(t, s, r, 1, from, n, d);
	for (unsigned c = 0; c < n; c++)
		cell[c] = num_to_f16(wide[c]);
}

static void row_s32(const struct tc_tile *t, const struct tc_scratch *s, unsigned r, unsigned from,
	unsigned n, uint32_t *cell)
{
	const int32_t *a = (const int32_t *)s->a + r * stored(t);
	const int32_t *b = (const int32_t *)s->b + t->b_first + from;
	int32_t sum[TC_N] = { 0 };

	for (unsigned i = 0; i < stored(t); i++)
		for (unsigned c = 0; c < n; c++)
			sum[c] += a[i] * b[place(t, r, i) * t->b_n + c];
	for (unsigned c = 0; c < n; c++) {
		int64_t v = (int64_t)sum[c] + (t->accumulate ? (int32_t)cell[c] : 0);

		if (t->satfinite)
			v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
		cell[c] = (uint32_t)v;
	}
}

static void group_f32(const struct tc_tile *t, const struct tc_scratch *s, unsigned g, unsigned n)
{
	for (unsigned r = 0; r < t->m;) {
		float *d[ROWS];
		unsigned nr = 0;

		while (nr < ROWS && r + nr < t->m && t->cell[g * t->m + r + nr]) {
			d[nr] = (float *)t->cell[g * t->m + r + nr];
			nr++;
		}
		if (nr)
			rows_f32(t, s, r, nr, g * n, n, d);
		r += nr + (nr < ROWS);
	}
}

void SIMD_NAME(tc_tile)(const struct tc_tile *t, struct tc_scratch *s)
{
	const unsigned n = t->n / t->groups;

	panel_a(t, s);
	if (!t->same_b)
		panel_b(t, s);
	for (unsigned g = 0; g < t->groups; g++) {
		if (t->acc == TC_ACC_f32) {
			group_f32(t, s, g, n);
			continue;
		}
		for (unsigned r = 0; r < t->m; r++) {
			uint32_t *cell = t->cell[g * t->m + r];

			if (cell)
				(t->acc == TC_ACC_f16 ? row_f16 : row_s32)(t, s, r, g * n, n, cell);
		}
	}
}
