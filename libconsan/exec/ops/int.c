/* int: integer arithmetic, register to register. Logic and bits are in bits.c, carry chains in
 * carry.c. */
#include "libconsan/exec/int_type.h"

/* ---- add sub mul mad ---- */

LANE_OP(add16, l16, l16, l16, l16, A + B)
LANE_OP(add32, l32, l32, l32, l32, A + B)
LANE_OP(add64, l64, l64, l64, l64, A + B)
LANE_OPK(add16x2, 2, l16, l16, l16, l16, A + B)
LANE_OP(sub16, l16, l16, l16, l16, A - B)
LANE_OP(sub32, l32, l32, l32, l32, A - B)
LANE_OP(sub64, l64, l64, l64, l64, A - B)
LANE_OPK(sub16x2, 2, l16, l16, l16, l16, A - B)

static inline int32_t sat32(int64_t v)
{
	return (int32_t)(v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v);
}
LANE_OP(add_sat, ls32, ls32, ls32, ls32, sat32((int64_t)A + B))
LANE_OP(sub_sat, ls32, ls32, ls32, ls32, sat32((int64_t)A - B))

LANE_OP(mul_lo16, l16, l16, l16, l16, (uint32_t)A * B)
LANE_OP(mul_lo32, l32, l32, l32, l32, A * B)
LANE_OP(mul_lo64, l64, l64, l64, l64, A * B)
LANE_OP(mul_hi_u16, l16, l16, l16, l16, (uint32_t)A * B >> 16)
LANE_OP(mul_hi_s16, ls16, ls16, ls16, ls16, (int32_t)A * B >> 16)
LANE_OP(mul_hi_u32, l32, l32, l32, l32, (uint64_t)A * B >> 32)
LANE_OP(mul_hi_s32, ls32, ls32, ls32, ls32, (int64_t)A * B >> 32)
LANE_SLOW(mul_hi_u64, l64, l64, l64, l64, (unsigned __int128)A * B >> 64)
LANE_SLOW(mul_hi_s64, ls64, ls64, ls64, ls64, (__int128)A * B >> 64)
LANE_OP(mul_wide_u16, l32, l16, l16, l16, (uint32_t)A * B)
LANE_OP(mul_wide_s16, ls32, ls16, ls16, ls16, (int32_t)A * B)
LANE_OP(mul_wide_u32, l64, l32, l32, l32, (uint64_t)A * B)
LANE_OP(mul_wide_s32, ls64, ls32, ls32, ls32, (int64_t)A * B)

LANE_OP(mad_lo16, l16, l16, l16, l16, (uint32_t)A * B + C)
LANE_OP(mad_lo32, l32, l32, l32, l32, A * B + C)
LANE_OP(mad_lo64, l64, l64, l64, l64, A * B + C)
LANE_OP(mad_hi_u16, l16, l16, l16, l16, ((uint32_t)A * B >> 16) + C)
LANE_OP(mad_hi_s16, l16, ls16, ls16, l16, (uint32_t)((int32_t)A * B >> 16) + C)
LANE_OP(mad_hi_u32, l32, l32, l32, l32, (uint32_t)((uint64_t)A * B >> 32) + C)
LANE_OP(mad_hi_s32, l32, ls32, ls32, l32, (uint32_t)((int64_t)A * B >> 32) + C)
LANE_OP(mad_hi_sat, ls32, ls32, ls32, ls32, sat32(((int64_t)A * B >> 32) + C))
LANE_SLOW(mad_hi_u64, l64, l64, l64, l64, (uint64_t)((unsigned __int128)A * B >> 64) + C)
LANE_SLOW(mad_hi_s64, l64, ls64, ls64, l64, (uint64_t)((__int128)A * B >> 64) + C)
LANE_OP(mad_wide_u16, l32, l16, l16, l32, (uint32_t)A * B + C)
LANE_OP(mad_wide_s16, l32, ls16, ls16, l32, (uint32_t)((int32_t)A * B) + C)
LANE_OP(mad_wide_u32, l64, l32, l32, l64, (uint64_t)A * B + C)
LANE_OP(mad_wide_s32, l64, ls32, ls32, l64, (uint64_t)((int64_t)A * B) + C)

/* 24-bit operands; .lo: low 32 bits of the 48, .hi: bits 16 to 47 */
static inline int64_t s24(int32_t v) { return (int32_t)((uint32_t)v << 8) >> 8; }
static inline uint64_t u24(uint32_t v) { return v & 0xffffff; }
LANE_OP(mul24_lo_u, l32, l32, l32, l32, u24(A) * u24(B))
LANE_OP(mul24_lo_s, l32, ls32, ls32, ls32, (uint64_t)(s24(A) * s24(B)))
LANE_OP(mul24_hi_u, l32, l32, l32, l32, u24(A) * u24(B) >> 16)
LANE_OP(mul24_hi_s, l32, ls32, ls32, ls32, s24(A) * s24(B) >> 16)
LANE_OP(mad24_lo_u, l32, l32, l32, l32, u24(A) * u24(B) + C)
LANE_OP(mad24_lo_s, l32, ls32, ls32, l32, (uint64_t)(s24(A) * s24(B)) + C)
LANE_OP(mad24_hi_u, l32, l32, l32, l32, (u24(A) * u24(B) >> 16) + C)
LANE_OP(mad24_hi_s, l32, ls32, ls32, l32, (uint64_t)(s24(A) * s24(B) >> 16) + C)
LANE_OP(mad24_hi_sat, ls32, ls32, ls32, ls32, sat32((s24(A) * s24(B) >> 16) + C))

/* ---- div rem ----
 *
 * The ISA does not define division by zero; hardware (H200) gives all ones. 32-bit quotients are
 * computed in f64, which is exact enough: a/b differs from an integer above it by at least 1/b. */

static inline uint32_t div_u32(uint32_t a, uint32_t b)
{
	uint32_t q = (uint32_t)((double)a / (double)(b ? b : 1));
	return b ? q : UINT32_MAX;
}
static inline uint32_t div_s32(int32_t a, int32_t b)
{
	/* INT_MIN / -1 = 2^31 is not an int32_t */
	int32_t q = (int32_t)((double)a / (double)((uint32_t)b + 1 > 1 ? b : 1));
	return b == 0 ? UINT32_MAX : b == -1 ? -(uint32_t)a : (uint32_t)q;
}
LANE_OP(div_u32s, l32, l32, l32, l32, div_u32(A, B))
LANE_OP(div_s32s, l32, ls32, ls32, ls32, div_s32(A, B))
LANE_OP(rem_u32s, l32, l32, l32, l32, B ? A - div_u32(A, B) * B : UINT32_MAX)
LANE_OP(rem_s32s, l32, ls32, ls32, ls32,
	B ? (uint32_t)A - div_s32(A, B) * (uint32_t)B : UINT32_MAX)
LANE_SLOW(div_u16, l16, l16, l16, l16, B ? A / B : UINT16_MAX)
LANE_SLOW(div_s16, l16, ls16, ls16, ls16, B ? A / B : -1)
LANE_SLOW(rem_u16, l16, l16, l16, l16, B ? A % B : UINT16_MAX)
LANE_SLOW(rem_s16, l16, ls16, ls16, ls16, B ? A % B : -1)
LANE_SLOW(div_u64, l64, l64, l64, l64, B ? A / B : UINT64_MAX)
LANE_SLOW(div_s64, l64, ls64, ls64, ls64,
	B == 0 ? UINT64_MAX : B == -1 ? -(uint64_t)A : (uint64_t)(A / B))
LANE_SLOW(rem_u64, l64, l64, l64, l64, B ? A % B : UINT64_MAX)
LANE_SLOW(rem_s64, l64, ls64, ls64, ls64, B == 0 ? -1 : B == -1 ? 0 : A % B)

/* ---- min max abs neg sad ---- */

#define MINMAX(suffix, K, T) \
LANE_OPK(min_##suffix, K, T, T, T, T, A < B ? A : B) \
LANE_OPK(max_##suffix, K, T, T, T, T, A > B ? A : B)
MINMAX(u16, 1, l16)
MINMAX(s16, 1, ls16)
MINMAX(u32, 1, l32)
MINMAX(s32, 1, ls32)
MINMAX(u64, 1, l64)
MINMAX(s64, 1, ls64)
MINMAX(u16x2, 2, l16)
MINMAX(s16x2, 2, ls16)
LANE_OP(min_relu_s32, ls32, ls32, ls32, ls32, (A < B ? A : B) > 0 ? (A < B ? A : B) : 0)
LANE_OP(max_relu_s32, ls32, ls32, ls32, ls32, (A > B ? A : B) > 0 ? (A > B ? A : B) : 0)
LANE_OPK(min_relu_s16x2, 2, ls16, ls16, ls16, ls16, (A < B ? A : B) > 0 ? (A < B ? A : B) : 0)
LANE_OPK(max_relu_s16x2, 2, ls16, ls16, ls16, ls16, (A > B ? A : B) > 0 ? (A > B ? A : B) : 0)

LANE_OP(abs16, l16, ls16, l16, l16, A < 0 ? -(uint32_t)A : (uint32_t)A)
LANE_OP(abs32, l32, ls32, l32, l32, A < 0 ? -(uint32_t)A : (uint32_t)A)
LANE_OP(abs64, l64, ls64, l64, l64, A < 0 ? -(uint64_t)A : (uint64_t)A)
LANE_OP(neg16, l16, l16, l16, l16, -(uint32_t)A)
LANE_OP(neg32, l32, l32, l32, l32, -A)
LANE_OP(neg64, l64, l64, l64, l64, -A)
LANE_OP(sad_u16, l16, l16, l16, l16, C + (A > B ? A - B : B - A))
LANE_OP(sad_s16, l16, ls16, ls16, l16, (uint32_t)C + (uint32_t)(A > B ? A - B : B - A))
LANE_OP(sad_u32, l32, l32, l32, l32, C + (A > B ? A - B : B - A))
LANE_OP(sad_s32, l32, ls32, ls32, l32,
	C + (A > B ? (uint32_t)A - (uint32_t)B : (uint32_t)B - (uint32_t)A))
LANE_OP(sad_u64, l64, l64, l64, l64, C + (A > B ? A - B : B - A))
LANE_OP(sad_s64, l64, ls64, ls64, l64,
	C + (A > B ? (uint64_t)A - (uint64_t)B : (uint64_t)B - (uint64_t)A))

/* ---- dp4a dp2a: sums of products of bytes; types of a and b independent ---- */

static inline int32_t byte_of(uint32_t v, unsigned k, bool sign)
{
	uint32_t b = v >> 8 * k & 0xff;
	return sign ? (int8_t)b : (int32_t)b;
}
static inline int32_t half_of(uint32_t v, unsigned k, bool sign)
{
	uint32_t h = v >> 16 * k & 0xffff;
	return sign ? (int16_t)h : (int32_t)h;
}
static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
	for (unsigned k = 0; k < 4; k++)
		c += (uint32_t)(byte_of(a, k, sa) * byte_of(b, k, sb));
	return c;
}
static inline uint32_t dp2a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, bool hi)
{
	for (unsigned k = 0; k < 2; k++)
		c += (uint32_t)(half_of(a, k, sa) * byte_of(b, k + 2 * hi, sb));
	return c;
}
#define DP(s, sa, sb) \
LANE_OP(dp4a_##s, l32, l32, l32, l32, dp4a(A, B, C, sa, sb)) \
LANE_OP(dp2a_lo_##s, l32, l32, l32, l32, dp2a(A, B, C, sa, sb, false)) \
LANE_OP(dp2a_hi_##s, l32, l32, l32, l32, dp2a(A, B, C, sa, sb, true))
DP(uu, false, false)
DP(us, false, true)
DP(su, true, false)
DP(ss, true, true)

/* ---- decoding ---- */

static int_row add_row = { add16, add16, add32, add32, add64, add64, add16x2, add16x2 };
static int_row sub_row = { sub16, sub16, sub32, sub32, sub64, sub64, sub16x2, sub16x2 };
static int_row mul_lo_row = { mul_lo16, mul_lo16, mul_lo32, mul_lo32, mul_lo64, mul_lo64 };
static int_row mul_hi_row = { mul_hi_u16, mul_hi_s16, mul_hi_u32, mul_hi_s32,
	mul_hi_u64, mul_hi_s64 };
static int_row mul_wide_row = { mul_wide_u16, mul_wide_s16, mul_wide_u32, mul_wide_s32 };
static int_row mad_lo_row = { mad_lo16, mad_lo16, mad_lo32, mad_lo32, mad_lo64, mad_lo64 };
static int_row mad_hi_row = { mad_hi_u16, mad_hi_s16, mad_hi_u32, mad_hi_s32,
	mad_hi_u64, mad_hi_s64 };
static int_row mad_wide_row = { mad_wide_u16, mad_wide_s16, mad_wide_u32, mad_wide_s32 };
static int_row div_row = { div_u16, div_s16, div_u32s, div_s32s, div_u64, div_s64 };
static int_row rem_row = { rem_u16, rem_s16, rem_u32s, rem_s32s, rem_u64, rem_s64 };
static int_row min_row = { min_u16, min_s16, min_u32, min_s32, min_u64, min_s64,
	min_u16x2, min_s16x2 };
static int_row max_row = { max_u16, max_s16, max_u32, max_s32, max_u64, max_s64,
	max_u16x2, max_s16x2 };
static int_row min_relu_row = { [IT_S32] = min_relu_s32, [IT_S16X2] = min_relu_s16x2 };
static int_row max_relu_row = { [IT_S32] = max_relu_s32, [IT_S16X2] = max_relu_s16x2 };
static int_row abs_row = { [IT_S16] = abs16, [IT_S32] = abs32, [IT_S64] = abs64 };
static int_row neg_row = { [IT_S16] = neg16, [IT_S32] = neg32, [IT_S64] = neg64 };
static int_row sad_row = { sad_u16, sad_s16, sad_u32, sad_s32, sad_u64, sad_s64 };


static enum ptx_type twice(enum ptx_type t)
{
	return ptx_type_bits(t) == 16 ? TY_b32 : TY_b64;
}
static bool is_wide(const struct ptx_insn *i) { return ptx_pick(i, MG_half) == MOD_wide; }
static bool is_hi(const struct ptx_insn *i) { return ptx_pick(i, MG_half) == MOD_hi; }

static bool mul(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum ptx_type t)
{
	enum int_type it = int_type(t);

	if (is_wide(i))
		return LANE_DECODE(mul_wide_row[it], twice(t), t, t);
	return LANE_DECODE(is_hi(i) ? mul_hi_row[it] : mul_lo_row[it], t, t, t);
}
static bool mad(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum ptx_type t)
{
	enum int_type it = int_type(t);

	if (is_wide(i))
		return LANE_DECODE(mad_wide_row[it], twice(t), t, t, twice(t));
	if (ptx_has(i, MOD_sat))
		return LANE_DECODE(is_hi(i) && t == TY_s32 ? mad_hi_sat : NULL, t, t, t, t);
	return LANE_DECODE(is_hi(i) ? mad_hi_row[it] : mad_lo_row[it], t, t, t, t);
}
static bool minmax(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	enum ptx_type t, int_row plain, int_row relu)
{
	return LANE_DECODE((ptx_has(i, MOD_relu) ? relu : plain)[int_type(t)], t, t, t);
}

/* add sub mul mad div abs neg min max, without .cc */
LANE_FAMILY(ops_int)
{
	enum ptx_type t = ptx_type_of(i, 0);
	enum int_type it = int_type(t);
	bool sat = ptx_has(i, MOD_sat);

	switch ((int)op) {
	case ARITH_add:
		return LANE_DECODE(!sat ? add_row[it] : t == TY_s32 ? add_sat : NULL, t, t, t);
	case ARITH_sub:
		return LANE_DECODE(!sat ? sub_row[it] : t == TY_s32 ? sub_sat : NULL, t, t, t);
	case ARITH_mul: return mul(d, i, x, t);
	case ARITH_mad: return mad(d, i, x, t);
	case ARITH_div: return LANE_DECODE(div_row[it], t, t, t);
	case ARITH_abs: return LANE_DECODE(abs_row[it], t, t);
	case ARITH_neg: return LANE_DECODE(neg_row[it], t, t);
	case ARITH_min: return minmax(d, i, x, t, min_row, min_relu_row);
	case ARITH_max: return minmax(d, i, x, t, max_row, max_relu_row);
	}
	return dec_unsupported(d, "this instruction has no integer types");
}

DECODER(rem)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(rem_row[int_type(t)], t, t, t);
}
DECODER(sad)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(sad_row[int_type(t)], t, t, t, t);
}

DECODER(mul24)
{
	bool s = ptx_type_of(i, 0) == TY_s32;
	xfn fn = is_hi(i) ? (s ? mul24_hi_s : mul24_hi_u) : (s ? mul24_lo_s : mul24_lo_u);

	return LANE_DECODE(fn, TY_b32, TY_b32, TY_b32);
}
DECODER(mad24)
{
	bool s = ptx_type_of(i, 0) == TY_s32;
	xfn fn = ptx_has(i, MOD_sat) ? mad24_hi_sat
		: is_hi(i) ? (s ? mad24_hi_s : mad24_hi_u) : (s ? mad24_lo_s : mad24_lo_u);

	return LANE_DECODE(fn, TY_b32, TY_b32, TY_b32, TY_b32);
}
DECODER(dp4a)
{
	static const xfn fn[2][2] = { { dp4a_uu, dp4a_us }, { dp4a_su, dp4a_ss } };

	return LANE_DECODE(fn[ptx_type_of(i, 0) == TY_s32][ptx_type_of(i, 1) == TY_s32],
		TY_b32, TY_b32, TY_b32, TY_b32);
}
DECODER(dp2a)
{
	static const xfn fn[2][2][2] = {
		{ { dp2a_lo_uu, dp2a_lo_us }, { dp2a_lo_su, dp2a_lo_ss } },
		{ { dp2a_hi_uu, dp2a_hi_us }, { dp2a_hi_su, dp2a_hi_ss } } };

	return LANE_DECODE(fn[is_hi(i)][ptx_type_of(i, 0) == TY_s32][ptx_type_of(i, 1) == TY_s32],
		TY_b32, TY_b32, TY_b32, TY_b32);
}
