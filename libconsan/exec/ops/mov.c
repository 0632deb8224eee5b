/* mov: copies between registers: mov in all forms. Address-space conversions are in address.c. */
#include "libconsan/exec/lane.h"

/* ---- mov ---- */

LANE_OP(mov16, l16, l16, l16, l16, A)
LANE_OP(mov32, l32, l32, l32, l32, A)
LANE_OP(mov64, l64, l64, l64, l64, A)

/* a 128-bit register is two columns of 64 bits */
static enum step mov128(struct warp *w, const struct xop *x, uint32_t lanes)
{
	lane_blend64(r64(w, x->o[0]), r64(w, x->o[1]), LANE_ALL(lanes));
	lane_blend64(r64(w, x->o[0]) + LANES, r64(w, x->o[1]) + LANES, LANE_ALL(lanes));
	return LANE_NEXT(lanes);
}
static enum step mov_pred(struct warp *w, const struct xop *x, uint32_t lanes)
{
	ex_set_pred(w, x->o[0], LANE_ALL(lanes), rp(w, x->o[1])[0] ^ x->o[2]);
	return LANE_NEXT(lanes);
}

/* {a, b}: the first element is the lowest. Parts of 8 bits are 16-bit slots whose high byte is
 * 0. */
LANE_OP(pack_8x2, l16, l16, l16, l16, (A & 0xff) | B << 8)
LANE_OP(pack_16x2, l32, l16, l16, l16, A | (uint32_t)B << 16)
LANE_OP(pack_32x2, l64, l32, l32, l32, A | (uint64_t)B << 32)
LANE_OP4(pack_8x4, l32, l16, l16, l16, l16,
	(A & 0xffu) | (B & 0xffu) << 8 | (C & 0xffu) << 16 | (uint32_t)E << 24)
LANE_OP4(pack_16x4, l64, l16, l16, l16, l16,
	A | (uint32_t)B << 16 | (uint64_t)C << 32 | (uint64_t)E << 48)
static enum step pack_64x2(struct warp *w, const struct xop *x, uint32_t lanes)
{
	lane_blend64(r64(w, x->o[0]), r64(w, x->o[1]), LANE_ALL(lanes));
	lane_blend64(r64(w, x->o[0]) + LANES, r64(w, x->o[2]), LANE_ALL(lanes));
	return LANE_NEXT(lanes);
}

/* source o[0], parts o[1..4] */
#define UNPACK(fn, n, PT, T, bits, mask) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	const T *a = LANE_AT(const T, 0); \
	for (unsigned k = 0; k < n; k++) { \
		PT t[LANES], *d = LANE_AT(PT, 1 + k); \
		if (x->o[1 + k] == SLOT_NONE) \
			continue; \
		LANE_LOOP \
		for (unsigned l = 0; l < LANES; l++) \
			t[l] = (PT)(a[l] >> bits * k & mask); \
		lane_blend(d, t, sizeof(PT), LANE_ALL(lanes)); \
	} \
	return LANE_NEXT(lanes); \
}
UNPACK(unpack_8x2, 2, l16, l16, 8, 0xff)
UNPACK(unpack_16x2, 2, l16, l32, 16, 0xffff)
UNPACK(unpack_32x2, 2, l32, l64, 32, 0xffffffff)
UNPACK(unpack_8x4, 4, l16, l32, 8, 0xff)
UNPACK(unpack_16x4, 4, l16, l64, 16, 0xffff)
static enum step unpack_64x2(struct warp *w, const struct xop *x, uint32_t lanes)
{
	lane_blend64(r64(w, x->o[1]), r64(w, x->o[0]), LANE_ALL(lanes));
	lane_blend64(r64(w, x->o[2]), r64(w, x->o[0]) + LANES, LANE_ALL(lanes));
	return LANE_NEXT(lanes);
}

static xfn parts_fn(bool pack, unsigned bits, unsigned n)
{
	switch (bits << 4 | n) {
	case 16 << 4 | 2: return pack ? pack_8x2 : unpack_8x2;
	case 32 << 4 | 2: return pack ? pack_16x2 : unpack_16x2;
	case 32 << 4 | 4: return pack ? pack_8x4 : unpack_8x4;
	case 64 << 4 | 2: return pack ? pack_32x2 : unpack_32x2;
	case 64 << 4 | 4: return pack ? pack_16x4 : unpack_16x4;
	case 128 << 4 | 2: return pack ? pack_64x2 : unpack_64x2;
	}
	return NULL;
}
static bool parts(struct decoder *d, struct xop *x, const struct ptx_operand *vec,
	const struct ptx_operand *whole, enum ptx_type t, bool pack)
{
	unsigned bits = ptx_type_bits(t), n = vec->n;
	enum ptx_type part = bits == 128 ? TY_b64 : bits / n == 32 ? TY_b32
		: bits / n == 16 ? TY_b16 : TY_b8;

	x->fn = x->run = parts_fn(pack, bits, n);
	x->pure = true;
	if (!x->fn)
		return dec_unsupported(d, "%u parts of %u bits", n, bits);
	x->o[0] = pack ? dec_dst(d, whole, t) : dec_src(d, whole, t);
	for (unsigned k = 0; k < n; k++) {
		unsigned have = dec_bits(d, &vec->list[k]);
		if (have && have != ptx_type_bits(part))
			return dec_unsupported(d, "a part of %u bits in a register of %u",
				ptx_type_bits(part), have);
		x->o[1 + k] = pack ? dec_src(d, &vec->list[k], part)
			: dec_dst(d, &vec->list[k], part);
	}
	return true;
}

DECODER(mov)
{
	enum ptx_type t = ptx_type_of(i, 0);
	const struct ptx_operand *dst = &i->operand[0], *src = &i->operand[1];

	if (dst->kind == PO_VEC)
		return parts(d, x, dst, src, t, false);
	if (src->kind == PO_VEC)
		return parts(d, x, src, dst, t, true);
	x->pure = true;
	x->o[0] = dec_dst(d, dst, t);
	if (t == TY_pred) {
		x->fn = x->run = mov_pred;
		x->o[1] = dec_pred(d, src, &x->o[2]);
		return true;
	}
	x->o[1] = dec_src(d, src, t);
	switch (ptx_type_bits(t)) {
	case 8: case 16: x->fn = x->run = mov16; break;
	case 32: x->fn = x->run = mov32; break;
	case 64: x->fn = x->run = mov64; break;
	case 128: x->fn = x->run = mov128; break;
	default: return dec_unsupported(d, "mov of this type is not supported");
	}
	return true;
}
