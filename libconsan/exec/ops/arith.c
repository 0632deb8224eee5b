/* ops_arith: decoders of the instructions that exist for integers, floats and
 * 16-bit floats alike; each hands over to the file of its type. */
#include "libconsan/exec/lane.h"

static bool by_class(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	enum ptx_type t = ptx_type_of(i, 0);

	if (ptx_has(i, MOD_cc))
		return SIMD_NAME(ops_carry)(d, i, x);
	switch ((int)t) {
	case TY_f16: case TY_f16x2: case TY_bf16: case TY_bf16x2:
		return SIMD_NAME(ops_half)(d, i, x);
	case TY_f32: case TY_f32x2: case TY_f64:
		return SIMD_NAME(ops_float)(d, i, x);
	}
	return SIMD_NAME(ops_int)(d, i, x);
}

DECODER(add) { return by_class(d, i, x); }
DECODER(sub) { return by_class(d, i, x); }
DECODER(mul) { return by_class(d, i, x); }
DECODER(mad) { return by_class(d, i, x); }
DECODER(fma) { return by_class(d, i, x); }
DECODER(div) { return by_class(d, i, x); }
DECODER(abs) { return by_class(d, i, x); }
DECODER(neg) { return by_class(d, i, x); }
DECODER(min) { return by_class(d, i, x); }
DECODER(max) { return by_class(d, i, x); }
DECODER(ex2) { return by_class(d, i, x); }
DECODER(tanh) { return by_class(d, i, x); }
DECODER(rcp) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(sqrt) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(rsqrt) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(sin) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(cos) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(lg2) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(copysign) { return SIMD_NAME(ops_float)(d, i, x); }
DECODER(addc) { return SIMD_NAME(ops_carry)(d, i, x); }
DECODER(subc) { return SIMD_NAME(ops_carry)(d, i, x); }
DECODER(madc) { return SIMD_NAME(ops_carry)(d, i, x); }
