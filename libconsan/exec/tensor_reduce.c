/* tensor_reduce: element-wise atomic reductions into global memory, for
 * cp.reduce.async.bulk and its tensor form. Other worker threads may reduce into
 * the same bytes at the same time. */
#include "tensormap.h"

#include <string.h>

#include "fmath.h"

/* one: (current, operand) -> new, in bits of the element */
#define EACH(T, expr) \
	for (uint64_t i = 0; i < n; i += sizeof(T)) { \
		T *p = (T *)(dst + i); \
		T b, a = __atomic_load_n(p, __ATOMIC_RELAXED), v; \
		memcpy(&b, src + i, sizeof b); \
		do { \
			v = (T)(expr); \
		} while (!__atomic_compare_exchange_n(p, &a, v, true, \
			__ATOMIC_RELAXED, __ATOMIC_RELAXED)); \
	} \
	return true

#define LESS(S, x, y) ((S)(x) < (S)(y))

static float narrow_in(enum tensor_type t, uint16_t u)
{
	return t == TT_f16 ? num_from_f16(u) : num_from_bf16(u);
}
static uint16_t narrow_out(enum tensor_type t, float f)
{
	return t == TT_f16 ? num_to_f16(f) : num_to_bf16(f);
}
static uint16_t narrow_red(enum tensor_red red, enum tensor_type t, uint16_t a, uint16_t b)
{
	float x = narrow_in(t, a), y = narrow_in(t, b);

	if (red == RED_ADD)
		return narrow_out(t, x + y);
	return narrow_out(t, red == RED_MIN ? fm_min(x, y, false) : fm_max(x, y, false));
}

static bool reduce16(enum tensor_red red, enum tensor_type t, unsigned char *dst,
	const unsigned char *src, uint64_t n)
{
	EACH(uint16_t, narrow_red(red, t, a, b));
}

static bool reduce_f32(enum tensor_red red, unsigned char *dst, const unsigned char *src,
	uint64_t n)
{
	if (red == RED_ADD) {
		EACH(uint32_t, num_canon(num_f32(a) + num_f32(b)));
	} else if (red == RED_MIN) {
		EACH(uint32_t, num_canon(fm_min(num_f32(a), num_f32(b), false)));
	}
	EACH(uint32_t, num_canon(fm_max(num_f32(a), num_f32(b), false)));
}

static bool reduce_f64(enum tensor_red red, unsigned char *dst, const unsigned char *src,
	uint64_t n)
{
	if (red == RED_ADD) {
		EACH(uint64_t, num_bits64(num_f64(a) + num_f64(b)));
	} else if (red == RED_MIN) {
		EACH(uint64_t, num_bits64(fm_min64(num_f64(a), num_f64(b))));
	}
	EACH(uint64_t, num_bits64(fm_max64(num_f64(a), num_f64(b))));
}

#define REDUCE_INT(name, U, S) \
static bool name(enum tensor_red red, bool is_signed, unsigned char *dst, \
	const unsigned char *src, uint64_t n) \
{ \
	switch (red) { \
	case RED_NONE: break; \
	case RED_ADD: { EACH(U, a + b); } \
	case RED_MIN: { EACH(U, (is_signed ? LESS(S, b, a) : LESS(U, b, a)) ? b : a); } \
	case RED_MAX: { EACH(U, (is_signed ? LESS(S, a, b) : LESS(U, a, b)) ? b : a); } \
	case RED_INC: { EACH(U, a >= b ? 0 : a + 1); } \
	case RED_DEC: { EACH(U, a == 0 || a > b ? b : a - 1); } \
	case RED_AND: { EACH(U, a & b); } \
	case RED_OR: { EACH(U, a | b); } \
	case RED_XOR: { EACH(U, a ^ b); } \
	} \
	return false; \
}
REDUCE_INT(reduce32, uint32_t, int32_t)
REDUCE_INT(reduce64, uint64_t, int64_t)

enum tensor_type tensor_type_of(enum ptx_type t)
{
	switch (t) {
	case TY_f16: return TT_f16;
	case TY_bf16: return TT_bf16;
	case TY_f32: return TT_f32;
	case TY_f64: return TT_f64;
	case TY_s32: return TT_s32;
	case TY_s64: return TT_s64;
	case TY_u32: case TY_b32: return TT_u32;
	case TY_u64: case TY_b64: return TT_u64;
	default: return TT_COUNT;
	}
}

bool tensor_reduces(enum tensor_red red, enum tensor_type t)
{
	bool arith = red == RED_ADD || red == RED_MIN || red == RED_MAX;

	switch (t) {
	case TT_f16: case TT_bf16: case TT_f32: case TT_f32_ftz: case TT_f64:
		return arith;
	case TT_u32: case TT_s32: case TT_u64:
		return red != RED_NONE;
	case TT_s64:
		return red == RED_MIN || red == RED_MAX;
	case TT_u8: case TT_u16: case TT_tf32: case TT_tf32_ftz:
	case TT_u4x16: case TT_u4x16_p64: case TT_u6x16_p32: case TT_COUNT:
		return false;
	}
	return false;
}

bool tensor_reduce(enum tensor_red red, enum tensor_type t, unsigned char *dst,
	const unsigned char *src, uint64_t n)
{
	if (!tensor_reduces(red, t))
		return false;
	switch (t) {
	case TT_f16: case TT_bf16:
		return reduce16(red, t, dst, src, n);
	case TT_f32: case TT_f32_ftz:
		return reduce_f32(red, dst, src, n);
	case TT_f64:
		return reduce_f64(red, dst, src, n);
	case TT_u32: case TT_s32:
		return reduce32(red, t == TT_s32, dst, src, n);
	case TT_u64: case TT_s64:
		return reduce64(red, t == TT_s64, dst, src, n);
	case TT_u8: case TT_u16: case TT_tf32: case TT_tf32_ftz:
	case TT_u4x16: case TT_u4x16_p64: case TT_u6x16_p32: case TT_COUNT:
		return false;
	}
	return false;
}
