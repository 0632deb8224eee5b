/* carry: the extended-precision chains: add.cc addc sub.cc subc mad.cc madc. The carry flag is a
 * predicate slot of the kernel; after sub.cc it holds the borrow. */
#include "libconsan/exec/int_type.h"

/* d = a + b + carry in (x->o[5] & flag); the flag is in o[4], o[6] if written */
#define CARRY_OP(fn, T, value, carry) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	T t[LANES], *d = LANE_AT(T, 0); \
	const T *pa = LANE_AT(const T, 1), *pb = LANE_AT(const T, 2); \
	const uint32_t in = rp(w, x->o[4])[0] & x->o[5]; \
	uint32_t out = 0; \
	LANE_LOOP \
	for (unsigned l = 0; l < LANES; l++) { \
		const T a = pa[l], b = pb[l], c = in >> l & 1; \
		const T v = (T)(value); \
		t[l] = v; \
		out |= (carry) ? 1u << l : 0; \
	} \
	lane_blend(d, t, sizeof(T), lanes); \
	if (x->o[6]) \
		ex_set_pred(w, x->o[4], lanes, out); \
	return STEP_NEXT; \
}
CARRY_OP(add32, l32, a + b + c, v < a || (c && v == a))
CARRY_OP(add64, l64, a + b + c, v < a || (c && v == a))
CARRY_OP(sub32, l32, a - b - c, a < b || (c && a == b))
CARRY_OP(sub64, l64, a - b - c, a < b || (c && a == b))

/* the half of the product first, then as add; c in o[3] */
#define MAD_CARRY(fn, T, half) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	const T *a = LANE_AT(const T, 1), *b = LANE_AT(const T, 2), *c = LANE_AT(const T, 3); \
	T *d = LANE_AT(T, 0); \
	const uint32_t in = rp(w, x->o[4])[0] & x->o[5]; \
	uint32_t out = 0; \
	for EACH_LANE(l, lanes) { \
		const T p = (T)(half), k = in >> l & 1, v = (T)(p + c[l] + k); \
		out |= v < p || (k && v == p) ? 1u << l : 0; \
		d[l] = v; \
	} \
	if (x->o[6]) \
		ex_set_pred(w, x->o[4], lanes, out); \
	return STEP_NEXT; \
}
MAD_CARRY(mad_lo32, l32, a[l] * b[l])
MAD_CARRY(mad_lo64, l64, a[l] * b[l])
MAD_CARRY(mad_hi_u32, l32, (uint64_t)a[l] * b[l] >> 32)
MAD_CARRY(mad_hi_s32, l32, (uint64_t)((int64_t)(int32_t)a[l] * (int32_t)b[l]) >> 32)
MAD_CARRY(mad_hi_u64, l64, (unsigned __int128)a[l] * b[l] >> 64)
MAD_CARRY(mad_hi_s64, l64,
	(unsigned __int128)((__int128)(int64_t)a[l] * (int64_t)b[l]) >> 64)

static bool has_carry(enum ptx_type t)
{
	switch (int_type(t)) {
	case IT_U32: case IT_S32: case IT_U64: case IT_S64: return true;
	default: return false;
	}
}

LANE_FAMILY(ops_carry)
{
	enum ptx_type t = ptx_type_of(i, 0);
	bool wide = ptx_type_bits(t) == 64, s = ptx_type_class(t) == 's';
	bool hi = ptx_has(i, MOD_hi);
	xfn fn = NULL;

	if (!has_carry(t))
		return dec_unsupported(d, "not supported for this type");
	switch ((int)op) {
	case ARITH_add: case ARITH_addc: fn = wide ? add64 : add32; break;
	case ARITH_sub: case ARITH_subc: fn = wide ? sub64 : sub32; break;
	case ARITH_mad: case ARITH_madc:
		fn = !hi ? (wide ? mad_lo64 : mad_lo32)
			: s ? (wide ? mad_hi_s64 : mad_hi_s32) : (wide ? mad_hi_u64 : mad_hi_u32);
		break;
	}
	x->o[4] = SLOT_CARRY;
	x->o[5] = op == ARITH_addc || op == ARITH_subc || op == ARITH_madc ? FULL : 0;
	x->o[6] = ptx_has(i, MOD_cc);
	if (!lane_operands(d, i, x, fn, i->noperands, (enum ptx_type[]){ t, t, t, t }))
		return false;
	x->run = NULL;
	return true;
}
