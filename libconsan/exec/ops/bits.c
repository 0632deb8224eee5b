/* bits: logic, shifts and bit fields, register to register, of integers and predicates. */
#include "libconsan/exec/int_type.h"

/* ---- logic, shifts ---- */

#define LOGIC(bits, T) \
LANE_OP(and##bits, T, T, T, T, A & B) \
LANE_OP(or##bits, T, T, T, T, A | B) \
LANE_OP(xor##bits, T, T, T, T, A ^ B) \
LANE_OP(not##bits, T, T, T, T, ~A) \
LANE_OP(cnot##bits, T, T, T, T, A == 0)
LOGIC(16, l16)
LOGIC(32, l32)
LOGIC(64, l64)

/* amounts beyond the width give 0, or the sign for .s types (ISA: clamped) */
LANE_OP(shl16, l16, l16, l32, l16, B < 16 ? (uint32_t)A << (B & 15) : 0)
LANE_OP(shl32, l32, l32, l32, l32, B < 32 ? A << (B & 31) : 0)
LANE_OP(shl64, l64, l64, l32, l64, B < 64 ? A << (B & 63) : 0)
LANE_OP(shr_u16, l16, l16, l32, l16, B < 16 ? A >> (B & 15) : 0)
LANE_OP(shr_u32, l32, l32, l32, l32, B < 32 ? A >> (B & 31) : 0)
LANE_OP(shr_u64, l64, l64, l32, l64, B < 64 ? A >> (B & 63) : 0)
LANE_OP(shr_s16, ls16, ls16, l32, ls16, A >> (B < 15 ? B : 15))
LANE_OP(shr_s32, ls32, ls32, l32, ls32, A >> (B < 31 ? B : 31))
LANE_OP(shr_s64, ls64, ls64, l32, ls64, A >> (B < 63 ? B : 63))

/* lo, hi: the words of the 64 bits that are shifted */
static inline uint32_t shf(uint32_t lo, uint32_t hi, uint32_t n, bool left)
{
	uint64_t v = (uint64_t)hi << 32 | lo;
	return left ? (uint32_t)(v << n >> 32) : (uint32_t)(v >> n);
}
LANE_OP(shf_l_wrap, l32, l32, l32, l32, shf(A, B, C & 31, true))
LANE_OP(shf_r_wrap, l32, l32, l32, l32, shf(A, B, C & 31, false))
LANE_OP(shf_l_clamp, l32, l32, l32, l32, shf(A, B, C < 32 ? C : 32, true))
LANE_OP(shf_r_clamp, l32, l32, l32, l32, shf(A, B, C < 32 ? C : 32, false))

/* ---- bits ---- */

static inline uint32_t brev32(uint32_t v)
{
	v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
	v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
	v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(v);
}
LANE_OP(brev_32, l32, l32, l32, l32, brev32(A))
LANE_OP(brev_64, l64, l64, l64, l64,
	(uint64_t)brev32((uint32_t)A) << 32 | brev32((uint32_t)(A >> 32)))
LANE_OP(popc_32, l32, l32, l32, l32, __builtin_popcount(A))
LANE_OP(popc_64, l32, l64, l64, l64, __builtin_popcountll(A))
LANE_OP(clz_32, l32, l32, l32, l32, A ? __builtin_clz(A) : 32)
LANE_OP(clz_64, l32, l64, l64, l64, A ? __builtin_clzll(A) : 64)

static inline uint32_t msb(uint64_t v)
{
	return v ? 63 - (uint32_t)__builtin_clzll(v) : UINT32_MAX;
}
LANE_OP(bfind_u32, l32, l32, l32, l32, msb(A))
LANE_OP(bfind_u64, l32, l64, l64, l64, msb(A))
LANE_OP(bfind_s32, l32, ls32, l32, l32, msb((uint32_t)(A < 0 ? ~A : A)))
LANE_OP(bfind_s64, l32, ls64, l64, l64, msb((uint64_t)(A < 0 ? ~A : A)))
/* distance to shift left to bring that bit to the top */
static inline uint32_t shiftamt(uint32_t at, uint32_t top)
{
	return at == UINT32_MAX ? at : top - at;
}
LANE_OP(bfind_amt_u32, l32, l32, l32, l32, shiftamt(msb(A), 31))
LANE_OP(bfind_amt_u64, l32, l64, l64, l64, shiftamt(msb(A), 63))
LANE_OP(bfind_amt_s32, l32, ls32, l32, l32, shiftamt(msb((uint32_t)(A < 0 ? ~A : A)), 31))
LANE_OP(bfind_amt_s64, l32, ls64, l64, l64, shiftamt(msb((uint64_t)(A < 0 ? ~A : A)), 63))

/* Position and length are 0 to 255 (ISA). Beyond that, hardware uses the low byte for 32 bits, the
 * whole word for 64.
 *
 * bfe: bits beyond the field, or beyond the top, are the sign bit, which is the last bit of the
 * field that exists. bfi: inserts a into b. */
#define FIELD(bits, T, arg) \
static inline T bfe##bits(T a, uint32_t b, uint32_t c, const bool sign) \
{ \
	const T pos = arg(b), len = arg(c), ones = (T)-1; \
	T v = pos < bits ? a >> (pos & (bits - 1)) : 0; \
	T keep = len < bits ? ((T)1 << (len & (bits - 1))) - 1 : ones; \
	T have = pos < bits ? ones >> (pos & (bits - 1)) : 0; \
	T last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1; \
	T s = len ? a >> last & 1 : 0; \
	return sign ? (v & keep) | (~(keep & have) & (0 - s)) : v & keep; \
} \
static inline T bfi##bits(T a, T b, uint32_t c, uint32_t d) \
{ \
	const T pos = arg(c), len = arg(d); \
	T field = len < bits ? ((T)1 << (len & (bits - 1))) - 1 : (T)-1; \
	T at = pos < bits ? field << (pos & (bits - 1)) : 0; \
	return (b & ~at) | (a << (pos & (bits - 1)) & at); \
}
#define LOW_BYTE(v) ((v) & 0xff)
FIELD(32, uint32_t, LOW_BYTE)
FIELD(64, uint64_t, )
LANE_OP(bfe_u32, l32, l32, l32, l32, bfe32(A, B, C, false))
LANE_OP(bfe_s32, l32, l32, l32, l32, bfe32(A, B, C, true))
LANE_OP(bfe_u64, l64, l64, l32, l32, bfe64(A, B, C, false))
LANE_OP(bfe_s64, l64, l64, l32, l32, bfe64(A, B, C, true))

LANE_OP4(bfi_32, l32, l32, l32, l32, l32, bfi32(A, B, C, E))
LANE_OP4(bfi_64, l64, l64, l64, l32, l32, bfi64(A, B, C, E))

/* ISA fns: the (|offset|)-th set bit of mask from base on, up or down */
static uint32_t fns(uint32_t mask, uint32_t base, int32_t offset)
{
	int step = offset > 0 ? 1 : -1;
	int64_t left = offset > 0 ? offset : -(int64_t)offset;

	if (base >= 32)
		return UINT32_MAX;
	if (offset == 0)
		return mask >> base & 1 ? base : UINT32_MAX;
	for (int at = (int)base; at >= 0 && at < 32; at += step)
		if (mask >> at & 1 && --left == 0)
			return (uint32_t)at;
	return UINT32_MAX;
}
LANE_SLOW(fns_32, l32, l32, l32, ls32, fns(A, B, C))

static inline uint32_t bmsk(uint32_t a, uint32_t b, bool clamp)
{
	uint32_t from = ~0u << (a & 31), sum = (a & 31) + (b & 31);
	uint32_t to = ~0u << (sum & 31);

	if (clamp && a >= 32)
		from = 0;
	if (sum >= 32 || (clamp && (a >= 32 || b >= 32)))
		to = 0;
	return from & ~to;
}
LANE_OP(bmsk_clamp, l32, l32, l32, l32, bmsk(A, B, true))
LANE_OP(bmsk_wrap, l32, l32, l32, l32, bmsk(A, B, false))

static inline uint32_t szext(uint32_t a, uint32_t b, bool clamp, bool sign)
{
	uint32_t n = b & 31, mask = clamp && b >= 32 ? 0 : ~0u << n;
	uint32_t top = 1u << ((n - 1) & 31);
	bool neg = sign && n && !(clamp && b >= 32) && (a & top);

	return (a & ~mask) | (neg ? mask | top : 0);
}
LANE_OP(szext_clamp_u, l32, l32, l32, l32, szext(A, B, true, false))
LANE_OP(szext_clamp_s, l32, l32, l32, l32, szext(A, B, true, true))
LANE_OP(szext_wrap_u, l32, l32, l32, l32, szext(A, B, false, false))
LANE_OP(szext_wrap_s, l32, l32, l32, l32, szext(A, B, false, true))

/* ---- lop3: i.p is the table, its 8 bits spread to 8 words ---- */

struct lut {
	uint32_t m[8]; /* m[k]: FULL if bit k of immLut is set */
};
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, const struct lut *t)
{
	/* index = a << 2 | b << 1 | c: choose by a, then by b, then by c */
	uint32_t bc0 = t->m[0] ^ (a & (t->m[0] ^ t->m[4]));
	uint32_t bc1 = t->m[1] ^ (a & (t->m[1] ^ t->m[5]));
	uint32_t bc2 = t->m[2] ^ (a & (t->m[2] ^ t->m[6]));
	uint32_t bc3 = t->m[3] ^ (a & (t->m[3] ^ t->m[7]));
	uint32_t c0 = bc0 ^ (b & (bc0 ^ bc2)), c1 = bc1 ^ (b & (bc1 ^ bc3));

	return c0 ^ (c & (c0 ^ c1));
}
static enum step lop3_32(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct lut t = *(const struct lut *)x->i.p;
	l32 *d = r32(w, x->o[0]);
	const l32 *a = r32(w, x->o[1]), *b = r32(w, x->o[2]), *c = r32(w, x->o[3]);

	if (LANE_SOME(lanes))
		return lane_part4(w, x, lanes, lop3_32);
	LANE_LOOP
	for (unsigned l = 0; l < LANES; l++)
		d[l] = lop3(a[l], b[l], c[l], &t);
	return LANE_NEXT(lanes);
}
/* d|p form: p = (d != 0) BoolOp q; o[4] p, o[5] q, o[6] q's flip, o[7] 1: and */
LANE_MASK(nonzero, l32, 0, l32, 0, A != 0)
static enum step lop3_pred(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t q = rp(w, x->o[5])[0] ^ x->o[6], m;

	lop3_32(w, x, lanes);
	m = nonzero(w, x);
	ex_set_pred(w, x->o[4], lanes, x->o[7] ? m & q : m | q);
	return STEP_NEXT;
}

/* ---- prmt ---- */

static inline uint32_t prmt_byte(uint64_t ab, uint32_t sel)
{
	uint32_t b = (uint32_t)(ab >> (sel & 7) * 8) & 0xff;
	return sel & 8 ? (b & 0x80 ? 0xff : 0) : b;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t s)
{
	uint64_t ab = (uint64_t)b << 32 | a;
	return prmt_byte(ab, s) | prmt_byte(ab, s >> 4) << 8 |
		prmt_byte(ab, s >> 8) << 16 | prmt_byte(ab, s >> 12) << 24;
}
/* The other modes choose among four fixed selections: ISA tables of prmt. */
static inline uint32_t prmt_mode(uint32_t a, uint32_t b, uint32_t c, uint64_t four)
{
	return prmt(a, b, (uint32_t)(four >> (c & 3) * 16) & 0x7777);
}
/* For each byte of 8 lanes, the position of its lane's byte 0, as vpshufb counts. */
static inline __m256i prmt_from(void)
{
	return _mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0,
		0x0c0c0c0c, 0x08080808, 0x04040404, 0);
}
static enum step prmt_32(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (LANE_SOME(lanes))
		return lane_part4(w, x, lanes, prmt_32);
	const __m256i four = _mm256_set1_epi8(4), eight = _mm256_set1_epi8(8);

	for (unsigned k = 0; k < LANES; k += 8) {
		__m256i a = _mm256_load_si256((const void *)(r32(w, x->o[1]) + k));
		__m256i b = _mm256_load_si256((const void *)(r32(w, x->o[2]) + k));
		__m256i c = _mm256_load_si256((const void *)(r32(w, x->o[3]) + k));
		/* nibble j to byte j */
		__m256i sel = _mm256_or_si256(
			_mm256_or_si256(_mm256_and_si256(c, _mm256_set1_epi32(0xf)),
				_mm256_and_si256(_mm256_slli_epi32(c, 4),
					_mm256_set1_epi32(0xf00))),
			_mm256_or_si256(
				_mm256_and_si256(_mm256_slli_epi32(c, 8),
					_mm256_set1_epi32(0xf0000)),
				_mm256_and_si256(_mm256_slli_epi32(c, 12),
					_mm256_set1_epi32(0xf000000))));
		__m256i at = _mm256_add_epi8(_mm256_and_si256(sel, _mm256_set1_epi8(3)),
			prmt_from());
		__m256i in_b = _mm256_cmpeq_epi8(_mm256_and_si256(sel, four), four);
		__m256i sign = _mm256_cmpeq_epi8(_mm256_and_si256(sel, eight), eight);
		__m256i r = _mm256_blendv_epi8(_mm256_shuffle_epi8(a, at),
			_mm256_shuffle_epi8(b, at), in_b);

		r = _mm256_blendv_epi8(r, _mm256_cmpgt_epi8(_mm256_setzero_si256(), r), sign);
		_mm256_store_si256((void *)(r32(w, x->o[0]) + k), r);
	}
	return LANE_NEXT(lanes);
}
/* A constant selection without sign bytes: i.w[0] and i.w[1] give for each byte of the result the
 * byte of a, and of b, to take; 0x80: none. */
static enum step prmt_const(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (LANE_SOME(lanes))
		return lane_part4(w, x, lanes, prmt_const);
	const __m256i ma = _mm256_add_epi8(prmt_from(), _mm256_set1_epi32((int)x->i.w[0]));
	const __m256i mb = _mm256_add_epi8(prmt_from(), _mm256_set1_epi32((int)x->i.w[1]));

	for (unsigned k = 0; k < LANES; k += 8) {
		__m256i a = _mm256_load_si256((const void *)(r32(w, x->o[1]) + k));
		__m256i b = _mm256_load_si256((const void *)(r32(w, x->o[2]) + k));
		_mm256_store_si256((void *)(r32(w, x->o[0]) + k),
			_mm256_or_si256(_mm256_shuffle_epi8(a, ma), _mm256_shuffle_epi8(b, mb)));
	}
	return LANE_NEXT(lanes);
}
LANE_OP(prmt_4, l32, l32, l32, l32, prmt_mode(A, B, C, x->i.u))

/* ---- decoding ---- */

static int_row shl_row = { shl16, shl16, shl32, shl32, shl64, shl64 };
static int_row shr_row = { shr_u16, shr_s16, shr_u32, shr_s32, shr_u64, shr_s64 };
#define LOGIC_ROW(op) { op##16, op##16, op##32, op##32, op##64, op##64 }
static int_row and_row = LOGIC_ROW(and), or_row = LOGIC_ROW(or), xor_row = LOGIC_ROW(xor);
static int_row not_row = LOGIC_ROW(not), cnot_row = LOGIC_ROW(cnot);
static int_row brev_row = { [IT_U32] = brev_32, [IT_U64] = brev_64 };
static int_row popc_row = { [IT_U32] = popc_32, [IT_U64] = popc_64 };
static int_row clz_row = { [IT_U32] = clz_32, [IT_U64] = clz_64 };
static int_row bfind_row = { [IT_U32] = bfind_u32, [IT_S32] = bfind_s32, [IT_U64] = bfind_u64,
	[IT_S64] = bfind_s64 };
static int_row bfind_amt_row = { [IT_U32] = bfind_amt_u32, [IT_S32] = bfind_amt_s32,
	[IT_U64] = bfind_amt_u64, [IT_S64] = bfind_amt_s64 };
static int_row bfe_row = { [IT_U32] = bfe_u32, [IT_S32] = bfe_s32, [IT_U64] = bfe_u64,
	[IT_S64] = bfe_s64 };

DECODER(cnot)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(cnot_row[int_type(t)], t, t);
}
DECODER(brev)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(brev_row[int_type(t)], t, t);
}

/* Logic on predicates: o[4] o[5] are the negations of the sources. */
#define PRED_LOGIC(fn, expr) \
static enum step fn##_pred(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	uint32_t a = rp(w, x->o[1])[0] ^ x->o[4]; \
	uint32_t b LANE_USED = rp(w, x->o[2])[0] ^ x->o[5]; \
	ex_set_pred(w, x->o[0], LANE_ALL(lanes), expr); \
	return LANE_NEXT(lanes); \
}
PRED_LOGIC(and, a & b)
PRED_LOGIC(or, a | b)
PRED_LOGIC(xor, a ^ b)
PRED_LOGIC(not, ~a)
static bool logic(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	int_row row, xfn pred, unsigned n)
{
	enum ptx_type t = ptx_type_of(i, 0);

	if (t != TY_pred)
		return lane_operands(d, i, x, row[int_type(t)], n, (enum ptx_type[]){ t, t, t });
	x->fn = x->run = pred;
	x->pure = true;
	x->o[0] = dec_dst(d, &i->operand[0], t);
	for (unsigned k = 1; k < n; k++)
		x->o[k] = dec_pred(d, &i->operand[k], &x->o[k + 3]);
	return true;
}
DECODER(and) { return logic(d, i, x, and_row, and_pred, 3); }
DECODER(or) { return logic(d, i, x, or_row, or_pred, 3); }
DECODER(xor) { return logic(d, i, x, xor_row, xor_pred, 3); }
DECODER(not) { return logic(d, i, x, not_row, not_pred, 2); }

DECODER(shl)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(shl_row[int_type(t)], t, t, TY_u32);
}
DECODER(shr)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(shr_row[int_type(t)], t, t, TY_u32);
}
DECODER(shf)
{
	bool left = ptx_has(i, MOD_l), clamp = ptx_has(i, MOD_clamp);
	xfn fn = left ? (clamp ? shf_l_clamp : shf_l_wrap) : (clamp ? shf_r_clamp : shf_r_wrap);

	return LANE_DECODE(fn, TY_b32, TY_b32, TY_b32, TY_u32);
}
DECODER(popc)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(popc_row[int_type(t)], TY_u32, t);
}
DECODER(clz)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(clz_row[int_type(t)], TY_u32, t);
}
DECODER(bfind)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE((ptx_has(i, MOD_shiftamt) ? bfind_amt_row : bfind_row)[int_type(t)],
		TY_u32, t);
}
DECODER(bfe)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(bfe_row[int_type(t)], t, t, TY_u32, TY_u32);
}
DECODER(bfi)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(t == TY_b64 ? bfi_64 : t == TY_b32 ? bfi_32 : NULL, t, t, t, TY_u32, TY_u32);
}
DECODER(fns) { return LANE_DECODE(fns_32, TY_b32, TY_b32, TY_b32, TY_s32); }
DECODER(bmsk)
{
	return LANE_DECODE(ptx_has(i, MOD_clamp) ? bmsk_clamp : bmsk_wrap, TY_b32, TY_b32, TY_b32);
}
DECODER(szext)
{
	bool clamp = ptx_has(i, MOD_clamp), sign = ptx_type_of(i, 0) == TY_s32;
	xfn fn = clamp ? (sign ? szext_clamp_s : szext_clamp_u)
		: (sign ? szext_wrap_s : szext_wrap_u);

	return LANE_DECODE(fn, TY_b32, TY_b32, TY_u32);
}
static bool prmt_by_constant(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	uint32_t sel = (uint32_t)i->operand[3].imm;

	for (unsigned k = 0; k < 4; k++) {
		uint32_t from = sel >> 4 * k & 7;
		x->i.b[k] = (uint8_t)(from < 4 ? from : 0x80);
		x->i.b[4 + k] = (uint8_t)(from < 4 ? 0x80 : from - 4);
	}
	return LANE_DECODE(prmt_const, TY_b32, TY_b32, TY_b32, TY_b32);
}
DECODER(prmt)
{
	if (ptx_pick(i, MG_prmt) == MOD_NONE && i->operand[3].kind == PO_IMM &&
			!(i->operand[3].imm & 0x8888))
		return prmt_by_constant(d, i, x);
	/* the four selections of each mode, for c & 3 = 0 1 2 3, lowest first */
	switch ((int)ptx_pick(i, MG_prmt)) {
	case MOD_NONE: return LANE_DECODE(prmt_32, TY_b32, TY_b32, TY_b32, TY_b32);
	case MOD_f4e: x->i.u = 0x6543543243213210u; break;
	case MOD_b4e: x->i.u = 0x0123701267015670u; break;
	case MOD_rc8: x->i.u = 0x3333222211110000u; break;
	case MOD_ecl: x->i.u = 0x3333322232113210u; break;
	case MOD_ecr: x->i.u = 0x3210221011100000u; break;
	case MOD_rc16: x->i.u = 0x3232101032321010u; break;
	}
	return LANE_DECODE(prmt_4, TY_b32, TY_b32, TY_b32, TY_b32);
}

DECODER(lop3)
{
	const struct ptx_operand *dst = &i->operand[0];
	struct lut *t = dec_alloc(d, sizeof *t);

	if (i->operand[4].kind != PO_IMM)
		return dec_unsupported(d, "the table of lop3 is not an immediate");
	if (dst->kind == PO_PAIR && i->noperands != 6)
		return dec_unsupported(d, "lop3 with a predicate, but none to combine it with");
	for (unsigned k = 0; k < 8; k++)
		t->m[k] = i->operand[4].imm >> k & 1 ? FULL : 0;
	x->i.p = t;
	x->pure = true;
	for (unsigned k = 1; k <= 3; k++)
		x->o[k] = dec_src(d, &i->operand[k], TY_b32);
	if (dst->kind != PO_PAIR) {
		x->fn = x->run = lop3_32;
		x->o[0] = dec_dst(d, dst, TY_b32);
		return true;
	}
	x->fn = lop3_pred;
	x->o[0] = dec_dst(d, &dst->list[0], TY_b32);
	x->o[4] = dec_dst(d, &dst->list[1], TY_pred);
	x->o[5] = dec_pred(d, &i->operand[5], &x->o[6]);
	x->o[7] = ptx_has(i, MOD_and);
	return true;
}
