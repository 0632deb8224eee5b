/* mma_tile: the arithmetic of mma.sync for one warp, N = 8. */
#include "tile_units.h"

/* Accumulators of 8 rows: row g as its columns 0 2 4 6 1 3 5 7, as two registers of the fragment
 * hold them. */
struct acc {
	float f[16][8];
};

TILE_INLINE void get_acc(struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	_Alignas(64) float wide[4][32];
	const void *lo, *hi;

	for (unsigned h = 0; h < s->m / 8u; h++) {
		lo = r->c[2 * h];
		hi = r->c[2 * h + 1];
		if (s->c == ACC_f16) {
			halves_widen(wide[2 * h], wide[2 * h + 1], r->c[h]);
			lo = wide[2 * h];
			hi = wide[2 * h + 1];
		}
		for (unsigned g = 0; g < 8; g++) {
			memcpy(&t->f[8 * h + g][0], (const char *)lo + 16 * g, 16);
			memcpy(&t->f[8 * h + g][4], (const char *)hi + 16 * g, 16);
		}
	}
}

TILE_INLINE void put_acc(const struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	_Alignas(64) float wide[2][32];

	for (unsigned h = 0; h < s->m / 8u; h++) {
		bool narrow = s->d == ACC_f16;
		void *lo = narrow ? wide[0] : r->d[2 * h], *hi = narrow ? wide[1] : r->d[2 * h + 1];

		for (unsigned g = 0; g < 8; g++) {
			memcpy((char *)lo + 16 * g, &t->f[8 * h + g][0], 16);
			memcpy((char *)hi + 16 * g, &t->f[8 * h + g][4], 16);
		}
		if (narrow)
			halves_narrow(r->d[h], wide[0], wide[1]);
	}
}

/* One step: 16 bytes along k, m rows of A units at a[row][16], b[unit][8]. */
TILE_INLINE void step_f32(struct acc *t, unsigned m, const uint32_t *a, unsigned stride,
	const uint32_t (*b)[8], unsigned units)
{
	for (unsigned row = 0; row < m; row += 8) {
		__m256 acc[8];

		for (unsigned g = 0; g < 8; g++)
			acc[g] = _mm256_loadu_ps(t->f[row + g]);
		for (unsigned u = 0; u < units; u++) {
			__m256 v = _mm256_loadu_ps((const float *)b[u]);

			for (unsigned g = 0; g < 8; g++)
				acc[g] = _mm256_fmadd_ps(_mm256_broadcast_ss(
					(const float *)&a[(row + g) * stride + u]), v, acc[g]);
		}
		for (unsigned g = 0; g < 8; g++)
			_mm256_storeu_ps(t->f[row + g], acc[g]);
	}
}

TILE_INLINE void step_s32(struct acc *t, unsigned m, const uint32_t *a, unsigned stride,
	const uint32_t (*b)[8], unsigned units)
{
	for (unsigned row = 0; row < m; row++) {
		__m256i acc = _mm256_loadu_si256((const void *)t->f[row]);

		for (unsigned u = 0; u < units; u++)
			acc = _mm256_add_epi32(acc, _mm256_madd_epi16(
				_mm256_set1_epi32((int)a[row * stride + u]),
				_mm256_loadu_si256((const void *)b[u])));
		_mm256_storeu_si256((void *)t->f[row], acc);
	}
}

static void step_b1(struct acc *t, unsigned m, const uint32_t *a, unsigned stride,
	const uint32_t (*b)[8], unsigned units, bool and)
{
	for (unsigned row = 0; row < m; row++) {
		uint32_t acc[8];

		memcpy(acc, t->f[row], sizeof acc);
		for (unsigned u = 0; u < units; u++)
			for (unsigned n = 0; n < 8; n++) {
				uint32_t x = a[row * stride + u], y = b[u][n];

				acc[n] += (uint32_t)__builtin_popcount(and ? x & y : x ^ y);
			}
		memcpy(t->f[row], acc, sizeof acc);
	}
}

/* 128 bytes, of a type that is not known at compile time */
static __attribute__((noinline)) void units_any(enum tile_in t, uint32_t *out,
	const unsigned char *in)
{
	units_from(t, out, in, 128);
}

/* rows of `units` elements, of step j */
static void apply_scales(float *f, unsigned rows, unsigned units, const struct mma_shape *s,
	const float (*scale)[4], unsigned j)
{
	const unsigned block = s->k / s->nscale;

	for (unsigned r = 0; r < rows; r++)
		for (unsigned u = 0; u < units; u++)
			f[r * units + u] *= scale[r][(j * units + u) / block];
}

/* All steps. known: ta and tb are constants, the conversion is inlined. */
TILE_INLINE void steps(struct acc *t, const struct mma_shape *s, const struct mma_regs *r,
	enum tile_in ta, enum tile_in tb, unsigned halves, unsigned nsteps, bool known)
{
	const unsigned units = units_of(ta), m = 8 * halves;

	for (unsigned j = 0; j < nsteps; j++) {
		_Alignas(64) uint32_t a[16 * 32], rows[8 * 32], b[32][8];

		for (unsigned h = 0; h < halves; h++) {
			if (known)
				units_from(ta, a + h * 8 * units, r->a[j * halves + h], 128);
			else
				units_any(ta, a + h * 8 * units, r->a[j * halves + h]);
		}
		if (known)
			units_from(tb, rows, r->b[j], 128);
		else
			units_any(tb, rows, r->b[j]);
		if (!known && s->nscale) {
			apply_scales((float *)a, m, units, s, r->scale_a, j);
			apply_scales((float *)rows, 8, units, s, r->scale_b, j);
		}
		/* rows of 4 units: the transposition writes four rows more than needed */
		for (unsigned u = 0; u < units; u += 8)
			units_transpose(b[u], 8, rows + u, units, true);
		if (ta == IN_b1)
			step_b1(t, m, a, units, b, units, s->and);
		else if (ta == IN_s8 || ta == IN_u8 || ta == IN_s4 || ta == IN_u4)
			step_s32(t, m, a, units, b, units);
		else
			step_f32(t, m, a, units, b, units);
	}
}

static void add_sat(struct acc *t, const struct acc *c)
{
	for (unsigned i = 0; i < 16; i++)
		for (unsigned n = 0; n < 8; n++) {
			int32_t x, y;
			int64_t v;

			memcpy(&x, &t->f[i][n], 4);
			memcpy(&y, &c->f[i][n], 4);
			v = (int64_t)x + y;
			x = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
			memcpy(&t->f[i][n], &x, 4);
		}
}

/* A: register j * halves + h holds row 8h + g, k = 4j + t; B: column g, k = 4j + t. */
static void tile_f64(const struct mma_shape *s, const struct mma_regs *r)
{
	const unsigned halves = s->m == 8 ? 1 : 2, slabs = s->k == 16 ? 4 : s->k == 8 ? 2 : 1;
	double a[4][2][32], b[4][32], c[4][32], d[4][32];

	for (unsigned j = 0; j < slabs; j++) {
		memcpy(b[j], r->b[j], sizeof b[j]);
		for (unsigned h = 0; h < halves; h++)
			memcpy(a[j][h], r->a[j * halves + h], sizeof a[j][h]);
	}
	for (unsigned i = 0; i < 2 * halves; i++)
		memcpy(c[i], r->c[i], sizeof c[i]);
	for (unsigned i = 0; i < 2 * halves; i++)
		for (unsigned l = 0; l < 32; l++) {
			unsigned g = l / 4, n = 2 * (l % 4) + i % 2;
			double x = c[i][l];

			for (unsigned j = 0; j < slabs; j++)
				for (unsigned t = 0; t < 4; t++)
					x = __builtin_fma(a[j][i / 2][4 * g + t], b[j][4 * n + t],
						x);
			d[i][l] = x;
		}
	for (unsigned i = 0; i < 2 * halves; i++)
		memcpy(r->d[i], d[i], sizeof d[i]);
}

/* The most common shapes have loops of their own. */
static void tile_f16_k16(struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	steps(t, s, r, IN_f16, IN_f16, 2, 2, true);
}
static void tile_bf16_k16(struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	steps(t, s, r, IN_bf16, IN_bf16, 2, 2, true);
}
static void tile_tf32_k8(struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	steps(t, s, r, IN_tf32, IN_tf32, 2, 2, true);
}
static void tile_any(struct acc *t, const struct mma_shape *s, const struct mma_regs *r)
{
	static const uint8_t bits[] = {
#define TILE_IN(id, bits) bits,
		TILE_IN_LIST
#undef TILE_IN
	};

	steps(t, s, r, s->a, s->b, s->m == 8 ? 1 : 2, s->k * bits[s->a] / 128u, false);
}

void SIMD_NAME(mma_tile)(const struct mma_shape *s, const struct mma_regs *r)
{
	struct acc t, c;

	if (s->a == IN_f64) {
		tile_f64(s, r);
		return;
	}
	if (s->m == 8)
		memset(&t, 0, sizeof t);
	get_acc(&t, s, r);
	if (s->satfinite) {
		c = t;
		memset(&t, 0, sizeof t);
		tile_any(&t, s, r);
		add_sat(&t, &c);
	} else if (s->a == IN_f16 && s->m == 16 && s->k == 16) {
		tile_f16_k16(&t, s, r);
	} else if (s->a == IN_bf16 && s->m == 16 && s->k == 16) {
		tile_bf16_k16(&t, s, r);
	} else if (s->a == IN_tf32 && s->m == 16 && s->k == 8) {
		tile_tf32_k8(&t, s, r);
	} else {
		tile_any(&t, s, r);
	}
	put_acc(&t, s, r);
}
