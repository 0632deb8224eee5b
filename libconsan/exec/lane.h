/* lane: macros that define handlers which do the same in each lane, and helpers of their decoders.
 * For the register-to-register files of SIMD_SRC only.
 *
 * A macro makes one handler around a loop over all 32 lanes, with a constant trip count and no
 * branch, so that it vectorises. With a partial mask the same loop runs once more into SLOT_NONE,
 * and the lanes given are blended in from there. Slots never overlap in part (machine.h), so lanes
 * are independent even if the destination is also a source. By convention x->o[0] is the
 * destination, o[1] o[2] o[3] are the sources. */
#ifndef CONSAN_EXEC_LANE_H
#define CONSAN_EXEC_LANE_H

#include <immintrin.h>
#include <math.h>

#include "machine.h"
#include "num.h"
#include "simd.h"

#ifdef __clang__
/* a loop that stays scalar is slower, not wrong */
#pragma clang diagnostic ignored "-Wpass-failed"
#define LANE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define LANE_LOOP _Pragma("GCC ivdep")
#endif

/* The slot of o[k], as T. */
#define LANE_AT(T, k) \
	((T *)__builtin_assume_aligned(w->r + x->o[k], 64))
#define LANE_USED __attribute__((unused))
/* Of handlers that are xop.run as well: are some lanes given? All lanes? The end. */
#define LANE_SOME(lanes) ((lanes) - 1 < FULL - 1)
#define LANE_ALL(lanes) ((lanes) ? (lanes) : FULL)
#define LANE_NEXT(lanes) ((lanes) ? STEP_NEXT : x[1].run(w, x + 1, 0))

/* Copies the units of t whose lane is given. A unit is the data of one lane. */
#ifdef __AVX512BW__
static inline void lane_blend16(l16 *d, const l16 *t, uint32_t lanes)
{
	_mm512_mask_storeu_epi16(d, lanes, _mm512_loadu_si512(t));
}
static inline void lane_blend32(l32 *d, const l32 *t, uint32_t lanes)
{
	for (unsigned k = 0; k < 2; k++)
		_mm512_mask_storeu_epi32(d + 16 * k, (__mmask16)(lanes >> 16 * k),
			_mm512_loadu_si512(t + 16 * k));
}
static inline void lane_blend64(l64 *d, const l64 *t, uint32_t lanes)
{
	for (unsigned k = 0; k < 4; k++)
		_mm512_mask_storeu_epi64(d + 8 * k, (__mmask8)(lanes >> 8 * k),
			_mm512_loadu_si512(t + 8 * k));
}
#else
#define LANE_BLEND(bits, T) \
static inline void lane_blend##bits(T *d, const T *t, uint32_t lanes) \
{ \
	LANE_LOOP \
	for (unsigned l = 0; l < LANES; l++) { \
		T keep = (T)((T)(lanes >> l & 1) - 1); \
		d[l] = (T)((t[l] & ~keep) | (d[l] & keep)); \
	} \
}
LANE_BLEND(16, l16)
LANE_BLEND(32, l32)
LANE_BLEND(64, l64)
#endif
static inline void lane_blend(void *d, const void *t, size_t unit, uint32_t lanes)
{
	if (unit == 2)
		lane_blend16(d, t, lanes);
	else if (unit == 4)
		lane_blend32(d, t, lanes);
	else
		lane_blend64(d, t, lanes);
}

/* Runs fn on all lanes into SLOT_NONE, then copies the lanes given. Out of line, so that the
 * handlers that call it need no stack frame. */
#define LANE_PART(unit, bits, T) \
static __attribute__((noinline, unused)) enum step lane_part##unit(struct warp *w, \
	const struct xop *x, uint32_t lanes, xfn fn) \
{ \
	struct xop all = *x; \
	all.o[0] = SLOT_NONE; \
	fn(w, &all, FULL); \
	lane_blend##bits((T *)(w->r + x->o[0]), (const T *)(w->r + SLOT_NONE), lanes); \
	return STEP_NEXT; \
}
LANE_PART(2, 16, l16)
LANE_PART(4, 32, l32)
LANE_PART(8, 64, l64)
#define LANE_PART_OF(unit) \
	((unit) == 2 ? lane_part2 : (unit) == 4 ? lane_part4 : lane_part8)

/* K elements a lane (packed formats). expr uses A, B, C and gives a DT. */
#define LANE_OPK(fn, K, DT, AT, BT, CT, expr) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	if (LANE_SOME(lanes)) \
		return LANE_PART_OF(K * sizeof(DT))(w, x, lanes, fn); \
	DT *d_ = LANE_AT(DT, 0); \
	const AT *a_ LANE_USED = LANE_AT(AT, 1); \
	const BT *b_ LANE_USED = LANE_AT(BT, 2); \
	const CT *c_ LANE_USED = LANE_AT(CT, 3); \
	LANE_LOOP \
	for (unsigned l_ = 0; l_ < LANES * K; l_++) { \
		const AT A LANE_USED = a_[l_]; \
		const BT B LANE_USED = b_[l_]; \
		const CT C LANE_USED = c_[l_]; \
		d_[l_] = (DT)(expr); \
	} \
	return LANE_NEXT(lanes); \
}
#define LANE_OP(fn, DT, AT, BT, CT, expr) LANE_OPK(fn, 1, DT, AT, BT, CT, expr)
/* Four sources; E is the one in o[4]. */
#define LANE_OP4(fn, DT, AT, BT, CT, ET, expr) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	if (LANE_SOME(lanes)) \
		return LANE_PART_OF(sizeof(DT))(w, x, lanes, fn); \
	DT *d_ = LANE_AT(DT, 0); \
	const AT *a_ = LANE_AT(const AT, 1); \
	const BT *b_ = LANE_AT(const BT, 2); \
	const CT *c_ = LANE_AT(const CT, 3); \
	const ET *e_ = LANE_AT(const ET, 4); \
	LANE_LOOP \
	for (unsigned l_ = 0; l_ < LANES; l_++) { \
		const AT A = a_[l_]; \
		const BT B = b_[l_]; \
		const CT C = c_[l_]; \
		const ET E = e_[l_]; \
		d_[l_] = (DT)(expr); \
	} \
	return LANE_NEXT(lanes); \
}

/* For expressions that do not vectorise: only the lanes given are computed. */
#define LANE_SLOW(fn, DT, AT, BT, CT, expr) \
static enum step fn(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	DT *d_ = LANE_AT(DT, 0); \
	const AT *a_ LANE_USED = LANE_AT(AT, 1); \
	const BT *b_ LANE_USED = LANE_AT(BT, 2); \
	const CT *c_ LANE_USED = LANE_AT(CT, 3); \
	for EACH_LANE(l_, LANE_ALL(lanes)) { \
		const AT A LANE_USED = a_[l_]; \
		const BT B LANE_USED = b_[l_]; \
		const CT C LANE_USED = c_[l_]; \
		d_[l_] = (DT)(expr); \
	} \
	return LANE_NEXT(lanes); \
}

/* Bit l of the result: cond holds in lane l. A and B are its operands. */
#define LANE_MASK(fn, AT, ka, BT, kb, cond) \
static inline uint32_t fn(const struct warp *w, const struct xop *x) \
{ \
	const AT *a_ = LANE_AT(const AT, ka); \
	const BT *b_ LANE_USED = LANE_AT(const BT, kb); \
	uint32_t m_ = 0; \
	LANE_LOOP \
	for (unsigned l_ = 0; l_ < LANES; l_++) { \
		const AT A = a_[l_]; \
		const BT B LANE_USED = b_[l_]; \
		m_ |= (cond) ? 1u << l_ : 0; \
	} \
	return m_; \
}

/* ---- decoding ---- */

/* x->o[k] = operand k of type t[k], for n operands; the first is the destination. x->fn = x->run = fn;
 * NULL: not supported. */
static inline bool lane_operands(struct decoder *d, const struct ptx_insn *i,
	struct xop *x, xfn fn, unsigned n, const enum ptx_type *t)
{
	if (!fn)
		return dec_unsupported(d, "not supported for this type");
	if (i->noperands != n)
		return dec_unsupported(d, "%u operands, %u expected", i->noperands, n);
	x->fn = x->run = fn;
	x->pure = true;
	x->o[0] = dec_dst(d, &i->operand[0], t[0]);
	for (unsigned k = 1; k < n; k++)
		x->o[k] = dec_src(d, &i->operand[k], t[k]);
	return true;
}
#define LANE_DECODE(fn, ...) \
	lane_operands(d, i, x, fn, \
		sizeof((enum ptx_type[]){ __VA_ARGS__ }) / sizeof(enum ptx_type), \
		(enum ptx_type[]){ __VA_ARGS__ })

/* Instructions that exist for several classes of types are decoded in ops/arith.c, which calls
 * these by class. The operation is passed as a number of this enum, so that a new row of ptx.def
 * does not recompile them. */
enum arith {
	ARITH_add, ARITH_sub, ARITH_mul, ARITH_mad, ARITH_fma, ARITH_div, ARITH_abs, ARITH_neg,
	ARITH_min, ARITH_max, ARITH_ex2, ARITH_tanh, ARITH_rcp, ARITH_sqrt, ARITH_rsqrt,
	ARITH_sin, ARITH_cos, ARITH_lg2, ARITH_copysign, ARITH_addc, ARITH_subc, ARITH_madc,
};
#define LANE_FAMILY(name) \
	bool SIMD_NAME(name)(struct decoder *d, const struct ptx_insn *i, struct xop *x, \
		enum arith op)
LANE_FAMILY(ops_int);
LANE_FAMILY(ops_float);
LANE_FAMILY(ops_half);
LANE_FAMILY(ops_carry);

#endif
