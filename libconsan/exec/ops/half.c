/* half: arithmetic of f16, bf16 and their pairs. Computed in f32 (or f64) and rounded once. Where
 * the wider result is itself rounded, it is rounded to odd first, so that the second rounding is
 * right. */
#include "libconsan/exec/half.h"

#include "libconsan/exec/fmath.h"

/* flags of an op, in i.b[0] */
enum { H_FTZ = 1, H_SAT = 2, H_RELU = 4 };

/* s is x rounded to nearest, err the sign of x - s: makes s's last bit sticky */
NUM_INLINE float odd32(float s, float err)
{
	uint32_t u = num_bits32(s);
	/* a zero has underflowed and has the sign of x: away from it */
	bool inexact = err > 0 || err < 0, away = s == 0 || (err > 0) == (s > 0);

	return num_f32(inexact && !(u & 1) ? (away ? u + 1 : u - 1) : u);
}
NUM_INLINE double odd64(double s, double err)
{
	uint64_t u = num_bits64(s);
	bool inexact = err > 0 || err < 0, away = (err > 0) == (s > 0);

	return num_f64(inexact && !(u & 1) ? (away ? u + 1 : u - 1) : u);
}
/* f64 to f32, rounded to odd */
NUM_INLINE float odd64to32(double d)
{
	float f = (float)d;
	return odd32(f, (float)(d - (double)f > 0 ? 1 : d - (double)f < 0 ? -1 : 0));
}
/* f16: the product is exact in f32, the error of the sum by Knuth's TwoSum */
NUM_INLINE float fma_f16(float a, float b, float c)
{
	float p = a * b, s = p + c, t = s - p;
	float err = (p - (s - t)) + (c - t);

	return odd32(s, err);
}
/* bf16 has f32's exponents: its product may leave f32, never f64 */
NUM_INLINE float fma_bf16(float a, float b, float c)
{
	double p = (double)a * (double)b, s = p + (double)c, t = s - p;
	double err = (p - (s - t)) + ((double)c - t);

	return odd64to32(odd64(s, err));
}
NUM_INLINE bool is_oob(float a, float b, uint32_t nan)
{
	return (num_bits32(a) & 0x7fffffff) == nan || (num_bits32(b) & 0x7fffffff) == nan;
}
NUM_INLINE float mul_f16(float a, float b) { return a * b; }
NUM_INLINE float mul_bf16(float a, float b) { return odd64to32((double)a * (double)b); }

/* .ftz, by the least normal of the format; bf16 has it for ex2 only */
#define LEAST_f16 0x1p-14f
#define LEAST_bf16 0x1p-126f
#define EXPONENT_f16 0x7c00
#define EXPONENT_bf16 0x7f80
static void flush(float *v, unsigned n, float least)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = fabsf(v[i]) < least ? num_f32(num_bits32(v[i]) & 0x80000000u) : v[i];
}
static void clamp(float *v, unsigned n, unsigned flags)
{
	for (unsigned i = 0; i < n; i++) {
		if (flags & H_SAT)
			v[i] = v[i] > 0 ? v[i] < 1 ? v[i] : 1 : 0;
		else
			v[i] = v[i] < 0 ? 0 : v[i] == 0 ? 0.0f : v[i];
	}
}
static void flush16(l16 *v, unsigned n, unsigned exponent)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = v[i] & exponent ? v[i] : v[i] & 0x8000;
}

#define HALF_STAMP(fn, fmt, K, nsrc, expr) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	float a_[LANES * K], b_[LANES * K], c_[LANES * K]; \
	l16 t_[LANES * K]; \
	const unsigned flags = x->i.b[0]; \
	half_in_##fmt(a_, LANE_AT(const l16, 1), LANES * K); \
	if (nsrc > 1) \
		half_in_##fmt(b_, LANE_AT(const l16, 2), LANES * K); \
	if (nsrc > 2) \
		half_in_##fmt(c_, LANE_AT(const l16, 3), LANES * K); \
	if (flags & H_FTZ) { \
		flush(a_, LANES * K, LEAST_##fmt); \
		if (nsrc > 1) \
			flush(b_, LANES * K, LEAST_##fmt); \
		if (nsrc > 2) \
			flush(c_, LANES * K, LEAST_##fmt); \
	} \
	LANE_LOOP \
	for (unsigned l = 0; l < LANES * K; l++) { \
		const float a LANE_USED = a_[l]; \
		const float b LANE_USED = nsrc > 1 ? b_[l] : 0; \
		const float c LANE_USED = nsrc > 2 ? c_[l] : 0; \
		a_[l] = (expr); \
	} \
	if (flags & (H_SAT | H_RELU)) \
		clamp(a_, LANES * K, flags); \
	half_out_##fmt(t_, a_, LANES * K); \
	if (flags & H_FTZ) \
		flush16(t_, LANES * K, EXPONENT_##fmt); \
	lane_blend(LANE_AT(l16, 0), t_, 2 * K, LANE_ALL(lanes)); \
	return LANE_NEXT(lanes); \
}
/* by format: f16, f16x2, bf16, bf16x2 */
enum { HALF_F16, HALF_F16X2, HALF_BF16, HALF_BF16X2, HALF_COUNT };
#define HALF_OP(name, nsrc, expr_f16, expr_bf16) \
HALF_STAMP(x_##name##_f16, f16, 1, nsrc, expr_f16) \
HALF_STAMP(x_##name##_f16x2, f16, 2, nsrc, expr_f16) \
HALF_STAMP(x_##name##_bf16, bf16, 1, nsrc, expr_bf16) \
HALF_STAMP(x_##name##_bf16x2, bf16, 2, nsrc, expr_bf16) \
static const xfn name##_half[HALF_COUNT] = \
	{ x_##name##_f16, x_##name##_f16x2, x_##name##_bf16, x_##name##_bf16x2 };
#define HALF_BOTH(name, nsrc, expr) HALF_OP(name, nsrc, expr, expr)

HALF_BOTH(add, 2, a + b)
HALF_BOTH(sub, 2, a - b)
HALF_OP(mul, 2, mul_f16(a, b), mul_bf16(a, b))
HALF_OP(fma, 3, fma_f16(a, b, c), fma_bf16(a, b, c))
/* The NaN with which tensor copies fill what is outside of the tensor: 0x7ff7, widened; an H200 takes
 * it with either sign. */
HALF_OP(fma_oob, 3, is_oob(a, b, 0x7ffee000) ? 0 : fma_f16(a, b, c),
	is_oob(a, b, 0x7ff70000) ? 0 : fma_bf16(a, b, c))
HALF_BOTH(min, 2, fm_min(a, b, false))
HALF_BOTH(max, 2, fm_max(a, b, false))
HALF_BOTH(min_nan, 2, fm_min(a, b, true))
HALF_BOTH(max_nan, 2, fm_max(a, b, true))
HALF_BOTH(min_xs, 2, fm_xorsign(fm_min(fabsf(a), fabsf(b), false), a, b))
HALF_BOTH(max_xs, 2, fm_xorsign(fm_max(fabsf(a), fabsf(b), false), a, b))
HALF_BOTH(min_nan_xs, 2, fm_xorsign(fm_min(fabsf(a), fabsf(b), true), a, b))
HALF_BOTH(max_nan_xs, 2, fm_xorsign(fm_max(fabsf(a), fabsf(b), true), a, b))
HALF_BOTH(ex2, 1, fm_ex2(a))
HALF_BOTH(tanh, 1, fm_tanh(a))

/* a NaN becomes the canonical one, as on hardware */
NUM_INLINE uint16_t sign_f16(uint32_t h, const bool ftz)
{
	return num_canon_f16((uint16_t)(ftz && !(h & 0x7c00) ? h & 0x8000 : h));
}
#define SIGN_OP(name, K) \
LANE_OPK(neg_f16##name, K, l16, l16, l16, l16, sign_f16(A ^ 0x8000u, false)) \
LANE_OPK(abs_f16##name, K, l16, l16, l16, l16, sign_f16(A & 0x7fffu, false)) \
LANE_OPK(neg_f16##name##_ftz, K, l16, l16, l16, l16, sign_f16(A ^ 0x8000u, true)) \
LANE_OPK(abs_f16##name##_ftz, K, l16, l16, l16, l16, sign_f16(A & 0x7fffu, true)) \
LANE_OPK(neg_bf16##name, K, l16, l16, l16, l16, num_canon_bf16((uint16_t)(A ^ 0x8000u))) \
LANE_OPK(abs_bf16##name, K, l16, l16, l16, l16, num_canon_bf16(A & 0x7fff))
SIGN_OP(, 1)
SIGN_OP(x2, 2)
/* [pair][abs][ftz] and [pair][abs] */
static const xfn sign_f16_fn[2][2][2] = {
	{ { neg_f16, neg_f16_ftz }, { abs_f16, abs_f16_ftz } },
	{ { neg_f16x2, neg_f16x2_ftz }, { abs_f16x2, abs_f16x2_ftz } } };
static const xfn sign_bf16_fn[2][2] = { { neg_bf16, abs_bf16 }, { neg_bf16x2, abs_bf16x2 } };

/* ---- decoding ---- */

LANE_FAMILY(ops_half)
{
	enum ptx_type t = ptx_type_of(i, 0);
	bool nan = ptx_has(i, MOD_NaN), xs = ptx_has(i, MOD_abs), ftz = ptx_has(i, MOD_ftz);
	bool two = t == TY_f16x2 || t == TY_bf16x2, f16 = t == TY_f16 || t == TY_f16x2;
	const xfn *row = NULL;
	xfn fn = NULL;

	switch ((int)ptx_pick(i, MG_rnd)) {
	case MOD_NONE: case MOD_rn: break;
	default: return dec_unsupported(d, "16-bit arithmetic rounds to nearest only");
	}
	switch ((int)op) {
	case ARITH_add: row = add_half; break;
	case ARITH_sub: row = sub_half; break;
	case ARITH_mul: row = mul_half; break;
	case ARITH_fma: row = ptx_has(i, MOD_oob) ? fma_oob_half : fma_half; break;
	case ARITH_ex2: row = ex2_half; break;
	case ARITH_tanh: row = tanh_half; break;
	case ARITH_min:
		row = xs ? (nan ? min_nan_xs_half : min_xs_half) : nan ? min_nan_half : min_half;
		break;
	case ARITH_max:
		row = xs ? (nan ? max_nan_xs_half : max_xs_half) : nan ? max_nan_half : max_half;
		break;
	case ARITH_neg: case ARITH_abs:
		fn = f16 ? sign_f16_fn[two][op == ARITH_abs][ftz]
			: sign_bf16_fn[two][op == ARITH_abs];
		break;
	}
	if (row) {
		fn = row[f16 ? (two ? HALF_F16X2 : HALF_F16) : two ? HALF_BF16X2 : HALF_BF16];
		x->i.b[0] = (uint8_t)((ftz ? H_FTZ : 0) | (ptx_has(i, MOD_sat) ? H_SAT : 0) |
			(ptx_has(i, MOD_relu) ? H_RELU : 0));
	}
	return lane_operands(d, i, x, fn, i->noperands, (enum ptx_type[]){ t, t, t, t });
}
