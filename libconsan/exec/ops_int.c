/* ops_int: integer and logic instructions, register to register. Carry chains
 * and whole-warp operations are in ops_carry.c and ops_warp.c. */
#include "lane.h"

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
 * By zero the ISA leaves the value open; hardware (H200) gives all ones. 32-bit quotients go through f64, which holds them exactly enough:
 * a/b differs from an integer above it by at least 1/b. */

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

/* a: low word, b: high word of the 64 that are shifted */
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

static inline uint32_t msb(uint64_t v) { return v ? 63 - (uint32_t)__builtin_clzll(v) : UINT32_MAX; }
LANE_OP(bfind_u32, l32, l32, l32, l32, msb(A))
LANE_OP(bfind_u64, l32, l64, l64, l64, msb(A))
LANE_OP(bfind_s32, l32, ls32, l32, l32, msb((uint32_t)(A < 0 ? ~A : A)))
LANE_OP(bfind_s64, l32, ls64, l64, l64, msb((uint64_t)(A < 0 ? ~A : A)))
/* how far to shift left to bring that bit to the top */
static inline uint32_t shiftamt(uint32_t at, uint32_t top) { return at == UINT32_MAX ? at : top - at; }
LANE_OP(bfind_amt_u32, l32, l32, l32, l32, shiftamt(msb(A), 31))
LANE_OP(bfind_amt_u64, l32, l64, l64, l64, shiftamt(msb(A), 63))
LANE_OP(bfind_amt_s32, l32, ls32, l32, l32, shiftamt(msb((uint32_t)(A < 0 ? ~A : A)), 31))
LANE_OP(bfind_amt_s64, l32, ls64, l64, l64, shiftamt(msb((uint64_t)(A < 0 ? ~A : A)), 63))

/* Position and length are 0 to 255 (ISA). Beyond that, hardware looks at the
 * low byte for 32 bits, at the whole word for 64.
 *
 * bfe: bits beyond the field, or beyond the top, are the sign bit, which is the
 * last bit of the field that exists. bfi: inserts a into b. */
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

/* ---- lop3: i.b[0..7] of the op are not used at run time; w[] would be too
 * few, so the table's 8 bits are spread to 8 words in the kernel's arena ---- */

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

	if (lanes != FULL)
		return lane_part4(w, x, lanes, lop3_32);
	LANE_LOOP
	for (unsigned l = 0; l < LANES; l++)
		d[l] = lop3(a[l], b[l], c[l], &t);
	return STEP_NEXT;
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
/* For each byte of 8 lanes, where its own lane's byte 0 stands, as vpshufb counts. */
static inline __m256i prmt_from(void)
{
	return _mm256_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0,
		0x0c0c0c0c, 0x08080808, 0x04040404, 0);
}
static enum step prmt_32(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (lanes != FULL)
		return lane_part4(w, x, lanes, prmt_32);
	const __m256i four = _mm256_set1_epi8(4), eight = _mm256_set1_epi8(8);

	for (unsigned k = 0; k < LANES; k += 8) {
		__m256i a = _mm256_load_si256((const void *)(r32(w, x->o[1]) + k));
		__m256i b = _mm256_load_si256((const void *)(r32(w, x->o[2]) + k));
		__m256i c = _mm256_load_si256((const void *)(r32(w, x->o[3]) + k));
		/* nibble j to byte j */
		__m256i sel = _mm256_or_si256(
			_mm256_or_si256(_mm256_and_si256(c, _mm256_set1_epi32(0xf)),
				_mm256_and_si256(_mm256_slli_epi32(c, 4), _mm256_set1_epi32(0xf00))),
			_mm256_or_si256(_mm256_and_si256(_mm256_slli_epi32(c, 8), _mm256_set1_epi32(0xf0000)),
				_mm256_and_si256(_mm256_slli_epi32(c, 12), _mm256_set1_epi32(0xf000000))));
		__m256i at = _mm256_add_epi8(_mm256_and_si256(sel, _mm256_set1_epi8(3)), prmt_from());
		__m256i in_b = _mm256_cmpeq_epi8(_mm256_and_si256(sel, four), four);
		__m256i sign = _mm256_cmpeq_epi8(_mm256_and_si256(sel, eight), eight);
		__m256i r = _mm256_blendv_epi8(_mm256_shuffle_epi8(a, at), _mm256_shuffle_epi8(b, at), in_b);

		r = _mm256_blendv_epi8(r, _mm256_cmpgt_epi8(_mm256_setzero_si256(), r), sign);
		_mm256_store_si256((void *)(r32(w, x->o[0]) + k), r);
	}
	return STEP_NEXT;
}
/* A constant selection without sign bytes: i.w[0] and i.w[1] say for each byte of
 * the result which byte of a, and of b, it is; 0x80: none of them. */
static enum step prmt_const(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (lanes != FULL)
		return lane_part4(w, x, lanes, prmt_const);
	const __m256i ma = _mm256_add_epi8(prmt_from(), _mm256_set1_epi32((int)x->i.w[0]));
	const __m256i mb = _mm256_add_epi8(prmt_from(), _mm256_set1_epi32((int)x->i.w[1]));

	for (unsigned k = 0; k < LANES; k += 8) {
		__m256i a = _mm256_load_si256((const void *)(r32(w, x->o[1]) + k));
		__m256i b = _mm256_load_si256((const void *)(r32(w, x->o[2]) + k));
		_mm256_store_si256((void *)(r32(w, x->o[0]) + k),
			_mm256_or_si256(_mm256_shuffle_epi8(a, ma), _mm256_shuffle_epi8(b, mb)));
	}
	return STEP_NEXT;
}
LANE_OP(prmt_4, l32, l32, l32, l32, prmt_mode(A, B, C, x->i.u))

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

/* vabsdiff4, without byte selectors; .add: the sum of the four plus c */
struct bytes4 {
	bool sa, sb, sd, sat, add;
};
static inline uint32_t absdiff4(uint32_t a, uint32_t b, uint32_t c, const struct bytes4 *m)
{
	uint32_t r = 0, sum = c;

	for (unsigned k = 0; k < 4; k++) {
		int32_t v = byte_of(a, k, m->sa) - byte_of(b, k, m->sb), top = m->sd ? 127 : 255;
		v = v < 0 ? -v : v;
		v = m->sat && v > top ? top : v;
		sum += (uint32_t)v;
		r |= ((uint32_t)v & 0xff) << 8 * k;
	}
	return m->add ? sum : r;
}
LANE_SLOW(vabsdiff4_32, l32, l32, l32, l32, absdiff4(A, B, C, x->i.p))

/* ---- decoding ---- */

enum int_type { IT_U16, IT_S16, IT_U32, IT_S32, IT_U64, IT_S64, IT_U16X2, IT_S16X2, IT_COUNT };

static enum int_type int_type(enum ptx_type t)
{
	switch ((int)t) {
	case TY_u16: case TY_b16: return IT_U16;
	case TY_s16: return IT_S16;
	case TY_u32: case TY_b32: return IT_U32;
	case TY_s32: return IT_S32;
	case TY_u64: case TY_b64: return IT_U64;
	case TY_s64: return IT_S64;
	case TY_u16x2: return IT_U16X2;
	case TY_s16x2: return IT_S16X2;
	}
	return IT_COUNT;
}
/* [IT_COUNT] is NULL: no such type */
typedef const xfn int_row[IT_COUNT + 1];

static int_row add_row = { add16, add16, add32, add32, add64, add64, add16x2, add16x2 };
static int_row sub_row = { sub16, sub16, sub32, sub32, sub64, sub64, sub16x2, sub16x2 };
static int_row mul_lo_row = { mul_lo16, mul_lo16, mul_lo32, mul_lo32, mul_lo64, mul_lo64 };
static int_row mul_hi_row = { mul_hi_u16, mul_hi_s16, mul_hi_u32, mul_hi_s32, mul_hi_u64, mul_hi_s64 };
static int_row mul_wide_row = { mul_wide_u16, mul_wide_s16, mul_wide_u32, mul_wide_s32 };
static int_row mad_lo_row = { mad_lo16, mad_lo16, mad_lo32, mad_lo32, mad_lo64, mad_lo64 };
static int_row mad_hi_row = { mad_hi_u16, mad_hi_s16, mad_hi_u32, mad_hi_s32, mad_hi_u64, mad_hi_s64 };
static int_row mad_wide_row = { mad_wide_u16, mad_wide_s16, mad_wide_u32, mad_wide_s32 };
static int_row div_row = { div_u16, div_s16, div_u32s, div_s32s, div_u64, div_s64 };
static int_row rem_row = { rem_u16, rem_s16, rem_u32s, rem_s32s, rem_u64, rem_s64 };
static int_row min_row = { min_u16, min_s16, min_u32, min_s32, min_u64, min_s64, min_u16x2, min_s16x2 };
static int_row max_row = { max_u16, max_s16, max_u32, max_s32, max_u64, max_s64, max_u16x2, max_s16x2 };
static int_row min_relu_row = { [IT_S32] = min_relu_s32, [IT_S16X2] = min_relu_s16x2 };
static int_row max_relu_row = { [IT_S32] = max_relu_s32, [IT_S16X2] = max_relu_s16x2 };
static int_row abs_row = { [IT_S16] = abs16, [IT_S32] = abs32, [IT_S64] = abs64 };
static int_row neg_row = { [IT_S16] = neg16, [IT_S32] = neg32, [IT_S64] = neg64 };
static int_row sad_row = { sad_u16, sad_s16, sad_u32, sad_s32, sad_u64, sad_s64 };
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

	switch ((int)i->op) {
	case OP_add:
		return LANE_DECODE(!sat ? add_row[it] : t == TY_s32 ? add_sat : NULL, t, t, t);
	case OP_sub:
		return LANE_DECODE(!sat ? sub_row[it] : t == TY_s32 ? sub_sat : NULL, t, t, t);
	case OP_mul: return mul(d, i, x, t);
	case OP_mad: return mad(d, i, x, t);
	case OP_div: return LANE_DECODE(div_row[it], t, t, t);
	case OP_abs: return LANE_DECODE(abs_row[it], t, t);
	case OP_neg: return LANE_DECODE(neg_row[it], t, t);
	case OP_min: return minmax(d, i, x, t, min_row, min_relu_row);
	case OP_max: return minmax(d, i, x, t, max_row, max_relu_row);
	}
	return dec_unsupported(d, "not for integers");
}

#define SAME_1(id) DECODER(id) \
{ \
	enum ptx_type t = ptx_type_of(i, 0); \
	return LANE_DECODE(id##_row[int_type(t)], t, t); \
}
#define SAME_2(id) DECODER(id) \
{ \
	enum ptx_type t = ptx_type_of(i, 0); \
	return LANE_DECODE(id##_row[int_type(t)], t, t, t); \
}
SAME_2(rem)
SAME_1(cnot)
SAME_1(brev)

DECODER(sad)
{
	enum ptx_type t = ptx_type_of(i, 0);
	return LANE_DECODE(sad_row[int_type(t)], t, t, t, t);
}

/* logic exists on predicates, too: o[4] o[5] are the flips of the sources */
#define PRED_LOGIC(fn, expr) \
static enum step fn##_pred(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	uint32_t a = rp(w, x->o[1])[0] ^ x->o[4]; \
	uint32_t b LANE_USED = rp(w, x->o[2])[0] ^ x->o[5]; \
	ex_set_pred(w, x->o[0], lanes, expr); \
	return STEP_NEXT; \
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
	x->fn = pred;
	x->pure = FULL;
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
	return LANE_DECODE(t == TY_b64 ? bfi_64 : bfi_32, t, t, t, TY_u32, TY_u32);
}
DECODER(fns) { return LANE_DECODE(fns_32, TY_b32, TY_b32, TY_b32, TY_s32); }
DECODER(bmsk)
{
	return LANE_DECODE(ptx_has(i, MOD_clamp) ? bmsk_clamp : bmsk_wrap, TY_b32, TY_b32, TY_b32);
}
DECODER(szext)
{
	bool clamp = ptx_has(i, MOD_clamp), sign = ptx_type_of(i, 0) == TY_s32;
	xfn fn = clamp ? (sign ? szext_clamp_s : szext_clamp_u) : (sign ? szext_wrap_s : szext_wrap_u);

	return LANE_DECODE(fn, TY_b32, TY_b32, TY_u32);
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

DECODER(vabsdiff4)
{
	struct bytes4 *m = dec_alloc(d, sizeof *m);

	if (ptx_pick(i, MG_redop) != MOD_NONE && !ptx_has(i, MOD_add))
		return dec_unsupported(d, "vabsdiff4 other than .add");
	*m = (struct bytes4){ .sd = ptx_type_of(i, 0) == TY_s32, .sa = ptx_type_of(i, 1) == TY_s32,
		.sb = ptx_type_of(i, 2) == TY_s32, .sat = ptx_has(i, MOD_sat), .add = ptx_has(i, MOD_add) };
	x->i.p = m;
	return LANE_DECODE(vabsdiff4_32, TY_b32, TY_b32, TY_b32, TY_b32);
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
	for (unsigned k = 0; k < 8; k++)
		t->m[k] = i->operand[4].imm >> k & 1 ? FULL : 0;
	x->i.p = t;
	x->pure = FULL;
	for (unsigned k = 1; k <= 3; k++)
		x->o[k] = dec_src(d, &i->operand[k], TY_b32);
	if (dst->kind != PO_PAIR) {
		x->fn = lop3_32;
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
