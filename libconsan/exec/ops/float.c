/* float: f32, f32x2 and f64 arithmetic. The 16-bit formats are in half.c, conversions in cvt.c.
 * Rounds to nearest even; the directed roundings run the same handlers under another MXCSR. Nothing
 * is contracted but fma (-ffp-contract=off). */
#include <immintrin.h>

#include "libconsan/exec/fmath.h"
#include "libconsan/exec/lane.h"

/* ---- inputs and outputs of an f32 operation ---- */

NUM_INLINE float in(float v, const bool ftz)
{
	return ftz ? num_ftz(v) : v;
}
/* .sat: [0, 1], NaN becomes +0 (ISA); otherwise a NaN becomes the canonical one */
NUM_INLINE uint32_t out(float v, const bool ftz, const bool sat)
{
	uint32_t u = num_bits32(v);

	if (ftz)
		u = num_ftz32(u);
	if (sat)
		return num_bits32(num_f32(u) > 0 ? num_f32(u) < 1 ? num_f32(u) : 1.0f : 0.0f);
	return num_canon32(u);
}

/* A core computes; its handlers are all combinations of .ftz and .sat. */
#define CORE(name, expr) \
NUM_INLINE float core_##name(float a LANE_USED, float b LANE_USED, float c LANE_USED) \
{ \
	return (expr); \
}
#define HANDLER(name, suffix, K, ftz, sat) \
LANE_OPK(name##suffix, K, l32, lf32, lf32, lf32, \
	out(core_##name(in(A, ftz), in(B, ftz), in(C, ftz)), ftz, sat))
/* variants[ftz][sat] */
#define F32_OP(name, expr) \
CORE(name, expr) \
HANDLER(name, _n, 1, false, false) \
HANDLER(name, _s, 1, false, true) \
HANDLER(name, _f, 1, true, false) \
HANDLER(name, _fs, 1, true, true) \
static const xfn name##_f32[2][2] = { { name##_n, name##_s }, { name##_f, name##_fs } };
/* variants[ftz] */
#define F32_UNSAT(name, expr) \
CORE(name, expr) \
HANDLER(name, _n, 1, false, false) \
HANDLER(name, _f, 1, true, false) \
static const xfn name##_f32[2] = { name##_n, name##_f };
#define F32X2(name) \
HANDLER(name, _n2, 2, false, false) \
HANDLER(name, _f2, 2, true, false) \
static const xfn name##_f32x2[2] = { name##_n2, name##_f2 };

F32_OP(add, a + b)
F32_OP(sub, a - b)
F32_OP(mul, a * b)
F32_OP(fma, fmaf(a, b, c))
F32X2(add)
F32X2(sub)
F32X2(mul)
F32X2(fma)

F32_UNSAT(div, a / b)
/* ISA div.approx: for |b| in (2^126, 2^128) the result is 0, or NaN if a is infinite */
F32_UNSAT(div_approx, fabsf(b) > 0x1p126f && fabsf(b) < INFINITY ? a * copysignf(0, b) : a / b)
F32_UNSAT(rcp, 1.0f / a)
F32_UNSAT(sqrt, sqrtf(a))
F32_UNSAT(rsqrt, (float)(1.0 / sqrt((double)a)))
F32_UNSAT(ex2, fm_ex2(a))
F32_UNSAT(lg2, fm_lg2(a))
F32_UNSAT(sin, fm_sincos(a, 0))
F32_UNSAT(cos, fm_sincos(a, 1))
F32_UNSAT(tanh, fm_tanh(a))

LANE_OP(add_f64, lf64, lf64, lf64, lf64, A + B)
LANE_OP(sub_f64, lf64, lf64, lf64, lf64, A - B)
LANE_OP(mul_f64, lf64, lf64, lf64, lf64, A * B)
LANE_OP(fma_f64, lf64, lf64, lf64, lf64, fma(A, B, C))
LANE_OP(div_f64, lf64, lf64, lf64, lf64, A / B)
LANE_OP(rcp_f64, lf64, lf64, lf64, lf64, 1.0 / A)
LANE_OP(sqrt_f64, lf64, lf64, lf64, lf64, sqrt(A))
/* rcp/rsqrt.approx.ftz.f64 use the high words only. More precise here, so that the Newton steps
 * that follow stay right. */
NUM_INLINE double ftz64(double v)
{
	uint64_t u = num_bits64(v);
	return num_f64(u & 0x7ff0000000000000u ? u : u & 0x8000000000000000u);
}
LANE_OP(rcp_ftz_f64, lf64, lf64, lf64, lf64, ftz64(1.0 / ftz64(A)))
LANE_OP(rsqrt_f64, lf64, lf64, lf64, lf64, 1.0 / sqrt(A))
LANE_OP(rsqrt_ftz_f64, lf64, lf64, lf64, lf64, 1.0 / sqrt(ftz64(A)))

/* ---- sign and order ---- */

/* The ISA does not define the result for a NaN. Hardware makes it canonical in f32, and keeps it,
 * sign included, in f64. */
LANE_OP(neg_n, l32, l32, l32, l32, num_canon32(A ^ 0x80000000u))
LANE_OP(neg_f, l32, l32, l32, l32, num_canon32(num_ftz32(A ^ 0x80000000u)))
LANE_OP(abs_n, l32, l32, l32, l32, num_canon32(A & 0x7fffffffu))
LANE_OP(abs_f, l32, l32, l32, l32, num_canon32(num_ftz32(A & 0x7fffffffu)))
NUM_INLINE bool nan64(uint64_t u) { return (u & 0x7fffffffffffffffu) > 0x7ff0000000000000u; }
LANE_OP(neg_f64, l64, l64, l64, l64, nan64(A) ? A : A ^ 0x8000000000000000u)
LANE_OP(abs_f64, l64, l64, l64, l64, nan64(A) ? A : A & 0x7fffffffffffffffu)
/* copysign d, a, b: the sign of a, the magnitude of b */
LANE_OP(copysign_32, l32, l32, l32, l32, (A & 0x80000000u) | (B & 0x7fffffffu))
LANE_OP(copysign_64, l64, l64, l64, l64,
	(A & 0x8000000000000000u) | (B & 0x7fffffffffffffffu))

/* the result is an operand: already flushed */
#define F32_PICK(name, expr) \
CORE(name, expr) \
LANE_OP(name##_n, l32, lf32, lf32, lf32, num_canon(core_##name(A, B, C))) \
LANE_OP(name##_f, l32, lf32, lf32, lf32, \
	num_canon(core_##name(num_ftz(A), num_ftz(B), num_ftz(C)))) \
static const xfn name##_f32[2] = { name##_n, name##_f };
#define MINMAX32(m) \
F32_PICK(m, fm_##m(a, b, false)) \
F32_PICK(m##_nan, fm_##m(a, b, true)) \
F32_PICK(m##_xs, fm_xorsign(fm_##m(fabsf(a), fabsf(b), false), a, b)) \
F32_PICK(m##_nan_xs, fm_xorsign(fm_##m(fabsf(a), fabsf(b), true), a, b)) \
F32_PICK(m##3, fm_##m(fm_##m(a, b, false), c, false)) \
F32_PICK(m##3_nan, fm_##m(fm_##m(a, b, true), c, true)) \
F32_PICK(m##3_abs, fm_##m(fm_##m(fabsf(a), fabsf(b), false), fabsf(c), false)) \
F32_PICK(m##3_nan_abs, fm_##m(fm_##m(fabsf(a), fabsf(b), true), fabsf(c), true))
MINMAX32(min)
MINMAX32(max)

LANE_OP(min_f64, lf64, lf64, lf64, lf64, fm_min64(A, B))
LANE_OP(max_f64, lf64, lf64, lf64, lf64, fm_max64(A, B))

/* ---- mixed precision: f32 = 16-bit, 16-bit (fma only), f32 ---- */

#define MIXED(name, from, BT, b, c) \
LANE_OP(name##_##from, l32, l16, BT, lf32, \
	out(core_##name(num_from_##from(A), b, c), false, false)) \
LANE_OP(name##_sat_##from, l32, l16, BT, lf32, \
	out(core_##name(num_from_##from(A), b, c), false, true))
MIXED(add, f16, lf32, B, 0)
MIXED(add, bf16, lf32, B, 0)
MIXED(sub, f16, lf32, B, 0)
MIXED(sub, bf16, lf32, B, 0)
MIXED(fma, f16, l16, num_from_f16(B), C)
MIXED(fma, bf16, l16, num_from_bf16(B), C)
/* [bf16][sat] */
#define MIXED_ROW(name) static const xfn name##_mixed[2][2] = \
	{ { name##_f16, name##_sat_f16 }, { name##_bf16, name##_sat_bf16 } };
MIXED_ROW(add)
MIXED_ROW(sub)
MIXED_ROW(fma)

/* ---- directed rounding ----
 *
 * i.u holds the handler that rounds as MXCSR says, o[7] the MXCSR bits. The call through a
 * pointer keeps the arithmetic between the two writes. */
static enum step directed(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const unsigned csr = _mm_getcsr();
	enum step s;
	xfn fn;

	memcpy(&fn, &x->i.u, sizeof fn);
	_mm_setcsr((csr & ~_MM_ROUND_MASK) | x->o[7]);
	s = fn(w, x, lanes);
	_mm_setcsr(csr);
	return s;
}
/* Applies the rounding of the instruction to the handler already chosen. */
static bool round_as_written(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	switch ((int)ptx_pick(i, MG_rnd)) {
	case MOD_NONE: case MOD_rn: return true;
	case MOD_rz: x->o[7] = _MM_ROUND_TOWARD_ZERO; break;
	case MOD_rm: x->o[7] = _MM_ROUND_DOWN; break;
	case MOD_rp: x->o[7] = _MM_ROUND_UP; break;
	default: return dec_unsupported(d, "this rounding is not supported");
	}
	memcpy(&x->i.u, &x->fn, sizeof x->fn);
	x->fn = directed;
	x->run = NULL;
	return true;
}

/* ---- decoding ---- */

static bool same(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	xfn fn, enum ptx_type t)
{
	return lane_operands(d, i, x, fn, i->noperands, (enum ptx_type[]){ t, t, t, t })
		&& round_as_written(d, i, x);
}
static bool mixed(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	const xfn fn[2][2], enum ptx_type from)
{
	bool is_fma = i->noperands == 4;

	return lane_operands(d, i, x, fn[from == TY_bf16][ptx_has(i, MOD_sat)], i->noperands,
			(enum ptx_type[]){ TY_f32, from, is_fma ? from : TY_f32, TY_f32 })
		&& round_as_written(d, i, x);
}

static xfn minmax_f32(const struct ptx_insn *i, bool max, bool three)
{
	bool ftz = ptx_has(i, MOD_ftz), nan = ptx_has(i, MOD_NaN), mag = ptx_has(i, MOD_abs);
	/* [max][three][.abs or .xorsign.abs][NaN] */
	static const xfn (*const fn[2][2][2][2]) = {
		{ { { min_f32, min_nan_f32 }, { min_xs_f32, min_nan_xs_f32 } },
		  { { min3_f32, min3_nan_f32 }, { min3_abs_f32, min3_nan_abs_f32 } } },
		{ { { max_f32, max_nan_f32 }, { max_xs_f32, max_nan_xs_f32 } },
		  { { max3_f32, max3_nan_f32 }, { max3_abs_f32, max3_nan_abs_f32 } } } };

	return fn[max][three][mag][nan][ftz];
}

static bool f64(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum arith op)
{
	bool ftz = ptx_has(i, MOD_ftz);
	xfn fn = NULL;

	switch ((int)op) {
	case ARITH_add: fn = add_f64; break;
	case ARITH_sub: fn = sub_f64; break;
	case ARITH_mul: fn = mul_f64; break;
	case ARITH_fma: case ARITH_mad: fn = fma_f64; break;
	case ARITH_div: fn = div_f64; break;
	case ARITH_abs: fn = abs_f64; break;
	case ARITH_neg: fn = neg_f64; break;
	case ARITH_min: fn = min_f64; break;
	case ARITH_max: fn = max_f64; break;
	case ARITH_rcp: fn = ftz ? rcp_ftz_f64 : rcp_f64; break;
	case ARITH_sqrt: fn = sqrt_f64; break;
	case ARITH_rsqrt: fn = ftz ? rsqrt_ftz_f64 : rsqrt_f64; break;
	case ARITH_copysign: fn = copysign_64; break;
	}
	return same(d, i, x, fn, TY_f64);
}
static bool f32x2(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum arith op)
{
	bool ftz = ptx_has(i, MOD_ftz);
	xfn fn = NULL;

	switch ((int)op) {
	case ARITH_add: fn = add_f32x2[ftz]; break;
	case ARITH_sub: fn = sub_f32x2[ftz]; break;
	case ARITH_mul: fn = mul_f32x2[ftz]; break;
	case ARITH_fma: fn = fma_f32x2[ftz]; break;
	}
	return same(d, i, x, fn, TY_f32x2);
}

LANE_FAMILY(ops_float)
{
	enum ptx_type t = ptx_type_of(i, 0), from = ptx_type_of(i, 1);
	bool ftz = ptx_has(i, MOD_ftz), sat = ptx_has(i, MOD_sat);
	xfn fn = NULL;

	if (t == TY_f64)
		return f64(d, i, x, op);
	if (t == TY_f32x2)
		return f32x2(d, i, x, op);
	if (t != TY_f32)
		return dec_unsupported(d, "not supported for this type");
	if (from == TY_f16 || from == TY_bf16) {
		switch ((int)op) {
		case ARITH_add: return mixed(d, i, x, add_mixed, from);
		case ARITH_sub: return mixed(d, i, x, sub_mixed, from);
		case ARITH_fma: return mixed(d, i, x, fma_mixed, from);
		}
		return dec_unsupported(d, "this instruction has no mixed types");
	}
	switch ((int)op) {
	case ARITH_add: fn = add_f32[ftz][sat]; break;
	case ARITH_sub: fn = sub_f32[ftz][sat]; break;
	case ARITH_mul: fn = mul_f32[ftz][sat]; break;
	case ARITH_fma: case ARITH_mad: fn = fma_f32[ftz][sat]; break;
	case ARITH_div: fn = (ptx_has(i, MOD_approx) ? div_approx_f32 : div_f32)[ftz]; break;
	case ARITH_rcp: fn = rcp_f32[ftz]; break;
	case ARITH_sqrt: fn = sqrt_f32[ftz]; break;
	case ARITH_rsqrt: fn = rsqrt_f32[ftz]; break;
	case ARITH_sin: fn = sin_f32[ftz]; break;
	case ARITH_cos: fn = cos_f32[ftz]; break;
	case ARITH_lg2: fn = lg2_f32[ftz]; break;
	case ARITH_ex2: fn = ex2_f32[ftz]; break;
	case ARITH_tanh: fn = tanh_f32[ftz]; break;
	case ARITH_neg: fn = ftz ? neg_f : neg_n; break;
	case ARITH_abs: fn = ftz ? abs_f : abs_n; break;
	case ARITH_min: case ARITH_max: fn = minmax_f32(i, op == ARITH_max,
		i->noperands == 4); break;
	case ARITH_copysign: fn = copysign_32; break;
	}
	return same(d, i, x, fn, TY_f32);
}
