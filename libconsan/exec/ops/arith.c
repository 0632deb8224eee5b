/* arith: decoders of the instructions that exist for integers, floats and 16-bit floats. Each calls
 * the decoder for its class of types. */
#include "libconsan/exec/lane.h"

static bool by_class(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum arith op)
{
	enum ptx_type t = ptx_type_of(i, 0);

	if (ptx_has(i, MOD_cc))
		return SIMD_NAME(ops_carry)(d, i, x, op);
	switch ((int)t) {
	case TY_f16: case TY_f16x2: case TY_bf16: case TY_bf16x2:
		return SIMD_NAME(ops_half)(d, i, x, op);
	case TY_f32: case TY_f32x2: case TY_f64:
		return SIMD_NAME(ops_float)(d, i, x, op);
	}
	return SIMD_NAME(ops_int)(d, i, x, op);
}

DECODER(add) { return by_class(d, i, x, ARITH_add); }
DECODER(sub) { return by_class(d, i, x, ARITH_sub); }
DECODER(mul) { return by_class(d, i, x, ARITH_mul); }
DECODER(mad) { return by_class(d, i, x, ARITH_mad); }
DECODER(fma) { return by_class(d, i, x, ARITH_fma); }
DECODER(div) { return by_class(d, i, x, ARITH_div); }
DECODER(abs) { return by_class(d, i, x, ARITH_abs); }
DECODER(neg) { return by_class(d, i, x, ARITH_neg); }
DECODER(min) { return by_class(d, i, x, ARITH_min); }
DECODER(max) { return by_class(d, i, x, ARITH_max); }
DECODER(ex2) { return by_class(d, i, x, ARITH_ex2); }
DECODER(tanh) { return by_class(d, i, x, ARITH_tanh); }
DECODER(rcp) { return SIMD_NAME(ops_float)(d, i, x, ARITH_rcp); }
DECODER(sqrt) { return SIMD_NAME(ops_float)(d, i, x, ARITH_sqrt); }
DECODER(rsqrt) { return SIMD_NAME(ops_float)(d, i, x, ARITH_rsqrt); }
DECODER(sin) { return SIMD_NAME(ops_float)(d, i, x, ARITH_sin); }
DECODER(cos) { return SIMD_NAME(ops_float)(d, i, x, ARITH_cos); }
DECODER(lg2) { return SIMD_NAME(ops_float)(d, i, x, ARITH_lg2); }
DECODER(copysign) { return SIMD_NAME(ops_float)(d, i, x, ARITH_copysign); }
DECODER(addc) { return SIMD_NAME(ops_carry)(d, i, x, ARITH_addc); }
DECODER(subc) { return SIMD_NAME(ops_carry)(d, i, x, ARITH_subc); }
DECODER(madc) { return SIMD_NAME(ops_carry)(d, i, x, ARITH_madc); }
