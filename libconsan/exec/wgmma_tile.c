/* wgmma_tile: the arithmetic of one wgmma on the registers of four warps.
 *
 * Accumulators stay as in the fragment: register 4j + 2h + p of lane 4g + t is row 8h + g (of the
 * warp's 16), column 8j + 2t + p. A vector of such a register spans some rows g and all four t, so
 * it is the outer product of rows of A, each repeated four times, and the four columns 2t + p of B.
 * The panels hold exactly that. */
#include "tile_units.h"

#ifdef __AVX512F__
typedef __m512 vec;
typedef __m512i veci;
#define W 16
#define NB 6 /* groups of four columns at a time: 24 of 32 registers */
#define MA 4
#define LOAD(p) _mm512_load_ps(p)
#define STORE(p, v) _mm512_store_ps(p, v)
#define ZERO() _mm512_setzero_ps()
#define FOUR(p) _mm512_broadcast_f32x4(_mm_load_ps(p))
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define CAST_I(v) _mm512_castps_si512(v)
#define CAST_F(v) _mm512_castsi512_ps(v)
#define DOT(a, b, c) CAST_F(_mm512_add_epi32(CAST_I(c), \
	_mm512_madd_epi16(CAST_I(a), CAST_I(b))))
#else
typedef __m256 vec;
typedef __m256i veci;
#define W 8
#define NB 2
#define MA 4
#define LOAD(p) _mm256_load_ps(p)
#define STORE(p, v) _mm256_store_ps(p, v)
#define ZERO() _mm256_setzero_ps()
#define FOUR(p) _mm256_broadcast_ps((const __m128 *)(p))
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#define CAST_I(v) _mm256_castps_si256(v)
#define CAST_F(v) _mm256_castsi256_ps(v)
#define DOT(a, b, c) CAST_F(_mm256_add_epi32(CAST_I(c), \
	_mm256_madd_epi16(CAST_I(a), CAST_I(b))))
#endif

#define ROWS 64 /* floats of A per warp and unit: 16 rows, 4 copies */

/* MA vectors of rows by nb groups of columns. d[i]: the register of group i; the vectors are
 * consecutive in it, but rows 8 to 15 are two registers further. */
TILE_INLINE void block(unsigned nb, unsigned units, const float *a, const float *b,
	unsigned n, float *const d[][2], unsigned first, bool from_zero, bool dot)
{
	vec acc[NB][MA];

	for (unsigned i = 0; i < nb; i++)
		for (unsigned v = 0; v < MA; v++)
			acc[i][v] = from_zero ? ZERO()
				: LOAD(d[i][(first + v) * W / 32] + (first + v) * W % 32);
	for (unsigned u = 0; u < units; u++, a += ROWS, b += n) {
		vec x[MA];

		for (unsigned v = 0; v < MA; v++)
			x[v] = LOAD(a + (first + v) * W);
		for (unsigned i = 0; i < nb; i++) {
			vec y = FOUR(b + 4 * i);

			for (unsigned v = 0; v < MA; v++)
				acc[i][v] = dot ? DOT(x[v], y, acc[i][v]) : FMA(x[v], y, acc[i][v]);
		}
	}
	for (unsigned i = 0; i < nb; i++)
		for (unsigned v = 0; v < MA; v++)
			STORE(d[i][(first + v) * W / 32] + (first + v) * W % 32, acc[i][v]);
}

/* One warp: 16 rows by n columns. reg(4j + 2h + p) at base + slot[...]. */
TILE_INLINE void warp_rows(unsigned n, unsigned units, const float *a, const float *b,
	unsigned char *base, const uint32_t *slot, bool from_zero, bool dot)
{
	for (unsigned q = 0; q < n / 4; q += NB) {
		unsigned nb = n / 4 - q < NB ? n / 4 - q : NB;
		float *d[NB][2] = { 0 }; /* gcc 13 does not see that n is a multiple of 8 */

		for (unsigned i = 0; i < nb; i++)
			for (unsigned h = 0; h < 2; h++)
				d[i][h] = (float *)(base
					+ slot[(q + i) / 2 * 4 + 2 * h + (q + i) % 2]);
		for (unsigned first = 0; first < ROWS / W; first += MA) {
			if (nb == NB)
				block(NB, units, a, b + 4 * q, n, d, first, from_zero, dot);
#if NB > 4
			else if (nb == 4)
				block(4, units, a, b + 4 * q, n, d, first, from_zero, dot);
#endif
			else
				block(2, units, a, b + 4 * q, n, d, first, from_zero, dot);
		}
	}
}

#define WARP_ROWS(name, zero, dot) \
static void name(unsigned n, unsigned units, const float *a, const float *b, \
	unsigned char *base, const uint32_t *slot) \
{ \
	warp_rows(n, units, a, b, base, slot, zero, dot); \
}
WARP_ROWS(rows_add, false, false)
WARP_ROWS(rows_set, true, false)
WARP_ROWS(rows_dot_add, false, true)
WARP_ROWS(rows_dot_set, true, true)

/* ---- panels ---- */

/* Eight rows of one unit, each written four times. */
TILE_INLINE void repeat4(uint32_t *out, __m256 v, bool negate)
{
	if (negate)
		v = _mm256_xor_ps(v, _mm256_set1_ps(-0.0f));
	for (unsigned i = 0; i < 4; i++)
		_mm256_store_ps((float *)(out + 8 * i), _mm256_permutevar8x32_ps(v,
			_mm256_setr_epi32((int)(2 * i), (int)(2 * i), (int)(2 * i), (int)(2 * i),
				(int)(2 * i + 1), (int)(2 * i + 1), (int)(2 * i + 1),
				(int)(2 * i + 1))));
}

TILE_INLINE void panel_a(uint32_t *out, const unsigned char *raw, enum tile_in type, bool negate)
{
	unsigned units = 2 * units_of(type);
	_Alignas(64) uint32_t rows[8 * 32], t[8][8];

	for (unsigned w8 = 0; w8 < 8; w8++) {
		uint32_t *to = out + (w8 / 2) * units * ROWS + (w8 % 2) * 32;

		units_from(type, rows, raw + w8 * 256, 256);
		for (unsigned u = 0; u < units; u += 8) {
			units_transpose(t[0], 8, rows + u, units, false);
			for (unsigned i = 0; i < 8; i++)
				repeat4(to + (u + i) * ROWS,
					_mm256_load_ps((const float *)t[i]), negate);
		}
	}
}

TILE_INLINE void panel_b(uint32_t *out, const unsigned char *raw, enum tile_in type, unsigned n)
{
	unsigned units = 2 * units_of(type);
	_Alignas(64) uint32_t rows[8 * 32];

	for (unsigned j = 0; j < n; j += 8) {
		units_from(type, rows, raw + j * 32, 256);
		for (unsigned u = 0; u < units; u += 8)
			units_transpose(out + u * n + j, n, rows + u, units, true);
	}
}

/* k rows of 16-bit elements */
TILE_INLINE void panel_a_mn(uint32_t *out, const unsigned char *raw, enum tile_in type, bool negate)
{
	_Alignas(64) uint32_t row[64];

	for (unsigned k = 0; k < 16; k++) {
		units_from(type, row, raw + k * 128, 128);
		for (unsigned w8 = 0; w8 < 8; w8++)
			repeat4(out + (w8 / 2) * 16 * ROWS + k * ROWS + (w8 % 2) * 32,
				_mm256_load_ps((const float *)(row + 8 * w8)), negate);
	}
}

TILE_INLINE void panel_b_mn(uint32_t *out, const unsigned char *raw, enum tile_in type, unsigned n)
{
	const __m256i split = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);

	for (unsigned k = 0; k < 16; k++)
		for (unsigned j = 0; j < n; j += 8) {
			_Alignas(32) uint32_t u[8];

			units_from(type, u, raw + (k * n + j) * 2, 16);
			_mm256_store_ps((float *)(out + k * n + j),
				_mm256_permutevar8x32_ps(_mm256_load_ps((const float *)u), split));
		}
}

#define PANEL_A(id) panel_a(s->a, t->a, IN_##id, t->negate)
#define PANEL_B(id) panel_b(s->b, t->b, IN_##id, t->n)

static void make_a(struct wg_scratch *s, const struct wg_tile *t)
{
	switch ((enum tile_in)t->a_type) {
#define CASE(id) case IN_##id: PANEL_A(id); return;
	case IN_f16:
		if (t->a_mn)
			panel_a_mn(s->a, t->a, IN_f16, t->negate);
		else
			PANEL_A(f16);
		return;
	case IN_bf16:
		if (t->a_mn)
			panel_a_mn(s->a, t->a, IN_bf16, t->negate);
		else
			PANEL_A(bf16);
		return;
	CASE(tf32) CASE(e4m3) CASE(e5m2) CASE(s8) CASE(u8)
#undef CASE
	default:
		return;
	}
}

/* Two wgmmas of a group often share B: the panel is kept as long as the image is the same, byte for
 * byte. */
static void make_b(struct wg_scratch *s, const struct wg_tile *t)
{
	const unsigned bytes = t->n * 32u;
	uint32_t key = 1u << 31 | (uint32_t)t->n << 16 | (uint32_t)t->b_mn << 8 | t->b_type;

	if (s->key == key && !memcmp(s->image, t->b, bytes))
		return;
	memcpy(s->image, t->b, bytes);
	s->key = key;
	switch ((enum tile_in)t->b_type) {
#define CASE(id) case IN_##id: PANEL_B(id); return;
	case IN_f16:
		if (t->b_mn)
			panel_b_mn(s->b, t->b, IN_f16, t->n);
		else
			PANEL_B(f16);
		return;
	case IN_bf16:
		if (t->b_mn)
			panel_b_mn(s->b, t->b, IN_bf16, t->n);
		else
			PANEL_B(bf16);
		return;
	CASE(tf32) CASE(e4m3) CASE(e5m2) CASE(s8) CASE(u8)
#undef CASE
	default:
		return;
	}
}
#undef PANEL_A
#undef PANEL_B

/* ---- accumulators that are not f32 ---- */

static void slots_of(uint32_t *slot, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++)
		slot[i] = i * 128;
}

/* Registers 2j + h of pairs: widened to the f32 arrangement and back. */
static void warp_f16(const struct wg_tile *t, struct wg_scratch *s, unsigned w, unsigned units)
{
	uint32_t slot[128];
	const float *a = (const float *)s->a + w * units * ROWS, *b = (const float *)s->b;

	slots_of(slot, t->n);
	for (unsigned j = 0; t->scale_d && j < t->n / 8u; j++)
		for (unsigned h = 0; h < 2; h++)
			halves_widen(s->d + (4 * j + 2 * h) * 32, s->d + (4 * j + 2 * h + 1) * 32,
				t->r[w] + t->slot[2 * j + h]);
	(t->scale_d ? rows_add : rows_set)(t->n, units, a, b, (unsigned char *)s->d, slot);
	for (unsigned j = 0; j < t->n / 8u; j++)
		for (unsigned h = 0; h < 2; h++)
			halves_narrow(t->r[w] + t->slot[2 * j + h],
				s->d + (4 * j + 2 * h) * 32, s->d + (4 * j + 2 * h + 1) * 32);
}

/* The sum of products cannot overflow. Adding it to D may, and then clamps. */
static void warp_sat(const struct wg_tile *t, struct wg_scratch *s, unsigned w, unsigned units)
{
	uint32_t slot[128];

	slots_of(slot, t->n);
	rows_dot_set(t->n, units, (const float *)s->a + w * units * ROWS, (const float *)s->b,
		(unsigned char *)s->d, slot);
	for (unsigned i = 0; i < t->n / 2u; i++) {
		int32_t d[32], x[32];

		memcpy(x, s->d + i * 32, sizeof x);
		memcpy(d, t->r[w] + t->slot[i], sizeof d);
		for (unsigned l = 0; l < 32; l++) {
			int64_t v = (int64_t)x[l] + (t->scale_d ? d[l] : 0);

			d[l] = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
		}
		memcpy(t->r[w] + t->slot[i], d, sizeof d);
	}
}

/* b1: ones that A and B have in common (.and.popc) */
static void common_bits(const struct wg_tile *t)
{
	for (unsigned row = 0; row < 64; row++)
		for (unsigned n = 0; n < t->n; n++) {
			const unsigned reg = n / 8 * 4 + row % 16 / 8 * 2 + n % 2;
			uint32_t *d = (uint32_t *)(t->r[row / 16] + t->slot[reg]) + row % 8 * 4 + n % 8 / 2;
			uint32_t sum = t->scale_d ? *d : 0;
			uint64_t a[4], b[4];

			memcpy(a, t->a + 32 * row, 32);
			memcpy(b, t->b + 32 * n, 32);
			for (unsigned k = 0; k < 4; k++)
				sum += (uint32_t)__builtin_popcountll(a[k] & b[k]);
			*d = sum;
		}
}

void SIMD_NAME(wg_tile)(const struct wg_tile *t, struct wg_scratch *s)
{
	unsigned units = 2 * units_of(t->a_type);

	if (t->a_type == IN_b1) {
		common_bits(t);
		return;
	}
	make_a(s, t);
	make_b(s, t);
	for (unsigned w = 0; w < 4; w++) {
		const float *a = (const float *)s->a + w * units * ROWS;
		const float *b = (const float *)s->b;

		if (t->acc == ACC_f16)
			warp_f16(t, s, w, units);
		else if (t->acc == ACC_f32)
			(t->scale_d ? rows_add : rows_set)(t->n, units, a, b, t->r[w], t->slot);
		else if (t->satfinite)
			warp_sat(t, s, w, units);
		else
			(t->scale_d ? rows_dot_add : rows_dot_set)(t->n, units, a, b,
				t->r[w], t->slot);
	}
}
