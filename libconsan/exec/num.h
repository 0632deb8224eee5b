/* num: scalar number formats of PTX. Conversions between the narrow floats, f32, f64 and the
 * integers, with every rounding mode; bulk conversions for matrix tiles. Arithmetic is in ops/ and
 * mma_tile.c.
 *
 * Rules:
 *  - A value of a format is passed as its bits in an unsigned integer.
 *  - The inline functions have no branch on data, so loops over them vectorise.
 *  - Narrowing a NaN gives the canonical one: 0x7fff f16 and bf16, 0x7f e4m3 and e5m2, 0xff ue8m0;
 *    the formats without NaN give +max. Widening keeps the payload of the NaN. */
#ifndef CONSAN_EXEC_NUM_H
#define CONSAN_EXEC_NUM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* .rn .rz .rm .rp .rna of PTX; the integer roundings (.rni ...) are the same */
enum num_round { NUM_RN, NUM_RZ, NUM_RM, NUM_RP, NUM_RNA };

#define NUM_NAN32 0x7fffffffu
#define NUM_NAN16 0x7fffu /* f16 and bf16 */
#define NUM_NAN8 0x7fu    /* e4m3 and e5m2 */

#define NUM_INLINE static inline __attribute__((always_inline, unused))

NUM_INLINE uint32_t num_bits32(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }
NUM_INLINE uint64_t num_bits64(double f) { uint64_t u; memcpy(&u, &f, 8); return u; }
NUM_INLINE float num_f32(uint32_t u) { float f; memcpy(&f, &u, 4); return f; }
NUM_INLINE double num_f64(uint64_t u) { double f; memcpy(&f, &u, 8); return f; }

/* .ftz: subnormals become zero of the same sign */
NUM_INLINE uint32_t num_ftz32(uint32_t u)
{
	return u & 0x7f800000u ? u : u & 0x80000000u;
}
NUM_INLINE float num_ftz(float f) { return num_f32(num_ftz32(num_bits32(f))); }
/* A NaN becomes the canonical one. */
NUM_INLINE uint32_t num_canon32(uint32_t u)
{
	return (u & 0x7fffffffu) > 0x7f800000u ? NUM_NAN32 : u;
}
NUM_INLINE uint32_t num_canon(float f) { return num_canon32(num_bits32(f)); }
NUM_INLINE uint16_t num_canon_f16(uint16_t u)
{
	return (u & 0x7fff) > 0x7c00 ? NUM_NAN16 : u;
}
NUM_INLINE uint16_t num_canon_bf16(uint16_t u)
{
	return (u & 0x7fff) > 0x7f80 ? NUM_NAN16 : u;
}

/* Behaviour of a target format beyond its range. All fields are bits without sign. */
struct num_fmt {
	unsigned mant, bits; /* mantissa bits, all bits with the sign */
	int bias;
	uint32_t max;        /* largest finite */
	uint32_t inf;        /* result for an infinite input and on overflow */
	uint32_t nan;
};

/* The row of a format as a compile-time constant. inf == max: saturates. */
#define NUM_FMT_f16  ((struct num_fmt){ 10, 16, 15, 0x7bff, 0x7c00, NUM_NAN16 })
#define NUM_FMT_bf16 ((struct num_fmt){ 7, 16, 127, 0x7f7f, 0x7f80, NUM_NAN16 })
#define NUM_FMT_f32  ((struct num_fmt){ 23, 32, 127, 0x7f7fffff, 0x7f800000, NUM_NAN32 })
/* 19 bits; the caller shifts them to the top */
#define NUM_FMT_tf32 ((struct num_fmt){ 10, 19, 127, 0x3fbff, 0x3fc00, 0x3ffff })
/* PTX converts to the 8-bit and narrower formats only with .satfinite */
#define NUM_FMT_e4m3 ((struct num_fmt){ 3, 8, 7, 0x7e, 0x7e, NUM_NAN8 })
#define NUM_FMT_e5m2 ((struct num_fmt){ 2, 8, 15, 0x7b, 0x7b, NUM_NAN8 })
#define NUM_FMT_e3m2 ((struct num_fmt){ 2, 6, 3, 0x1f, 0x1f, 0x1f })
#define NUM_FMT_e2m3 ((struct num_fmt){ 3, 6, 1, 0x1f, 0x1f, 0x1f })
#define NUM_FMT_e2m1 ((struct num_fmt){ 1, 4, 1, 0x7, 0x7, 0x7 })

/* 1 if the kept part is incremented. rem: the part cut off, in units of which `half` is one half of
 * the last kept place. */
NUM_INLINE uint64_t num_up(enum num_round r, uint64_t odd, uint64_t rem,
	uint64_t half, uint64_t neg)
{
	return r == NUM_RN ? (rem > half) | ((rem == half) & odd)
		: r == NUM_RNA ? rem >= half
		: r == NUM_RM ? (rem != 0) & neg
		: r == NUM_RP ? (rem != 0) & (neg ^ 1)
		: 0;
}

/* f32 bits to fewer mantissa bits (f.mant < 23). f and r are constant. */
NUM_INLINE uint32_t num_narrow32(uint32_t x, const struct num_fmt f,
	const enum num_round r, const bool satfinite)
{
	uint32_t neg = x >> 31, a = x & 0x7fffffffu, e = a >> 23;
	uint32_t m = (a & 0x7fffffu) | (e ? 0x800000u : 0);
	int32_t t = (int32_t)(e ? e : 1) - 127 + f.bias, below = t < 1 ? 1 - t : 0;
	uint32_t sh = 23 - f.mant + (uint32_t)(below < 26 ? below : 26);

	/* a mantissa has 24 bits: from 25 places on, all is remainder */
	sh = sh < 25 ? sh : 25;
	t = t < 1 ? 1 : t;
	/* The value added carries into the kept part exactly when it must be incremented. No
	 * comparison, which gcc 12 would not vectorise. */
	uint32_t half = 1u << (sh - 1), below_one = 2 * half - 1;
	uint32_t add = r == NUM_RN ? half - 1 + (m >> sh & 1)
		: r == NUM_RNA ? half
		: r == NUM_RM ? (neg ? below_one : 0)
		: r == NUM_RP ? (neg ? 0 : below_one) : 0;
	uint32_t v = ((uint32_t)(t - 1) << f.mant) + ((m + add) >> sh);
	uint32_t inf = satfinite ? f.max : f.inf;
	/* rounding towards zero never overflows to infinity */
	uint32_t over = r == NUM_RN || r == NUM_RNA ? inf
		: r == NUM_RZ ? f.max
		: r == NUM_RM ? (neg ? inf : f.max) : (neg ? f.max : inf);

	v = v > f.max ? over : v;
	v = a == 0x7f800000u ? inf : v;
	v |= (x & 0x80000000u) >> (32 - f.bits);
	return a > 0x7f800000u ? f.nan : v;
}

/* f64 bits to f32 or narrower, rounded once. */
NUM_INLINE uint32_t num_narrow64(uint64_t x, const struct num_fmt f,
	const enum num_round r, const bool satfinite)
{
	uint64_t neg = x >> 63, a = x & 0x7fffffffffffffffu, e = a >> 52;
	uint64_t m = (a & 0xfffffffffffffu) | (e ? 1ull << 52 : 0);
	int64_t t = (int64_t)(e ? e : 1) - 1023 + f.bias, below = t < 1 ? 1 - t : 0;
	uint64_t sh = 52 - f.mant + (uint64_t)(below < 54 ? below : 54);

	sh = sh < 54 ? sh : 54;
	t = t < 1 ? 1 : t;
	/* beyond every format: keeps the shift below within the word */
	t = t > 1100 ? 1100 : t;
	uint64_t q = m >> sh, rem = m & ((1ull << sh) - 1), half = 1ull << (sh - 1);
	uint64_t v = ((uint64_t)(t - 1) << f.mant) + q + num_up(r, q & 1, rem, half, neg);
	uint64_t inf = satfinite ? f.max : f.inf;
	uint64_t over = r == NUM_RN || r == NUM_RNA ? inf
		: r == NUM_RZ ? f.max
		: r == NUM_RM ? (neg ? inf : f.max) : (neg ? f.max : inf);

	v = v > f.max ? over : v;
	v = a == 0x7ff0000000000000u ? inf : v;
	v |= neg << (f.bits - 1);
	return (uint32_t)(a > 0x7ff0000000000000u ? f.nan : v);
}

/* Narrow to f32, exact. has_inf: an exponent of all ones is infinity or NaN. */
NUM_INLINE float num_widen(uint32_t x, const struct num_fmt f, const bool has_inf)
{
	const uint32_t expmax = (1u << (f.bits - 1 - f.mant)) - 1;
	uint32_t a = x & ((1u << (f.bits - 1)) - 1), e = a >> f.mant;
	uint32_t norm = (a << (23 - f.mant)) + ((uint32_t)(127 - f.bias) << 23);
	/* a subnormal is an integer times the smallest step of the format */
	float step = num_f32((uint32_t)(127 + 1 - f.bias - (int)f.mant) << 23);
	uint32_t v = e ? norm : num_bits32((float)(int32_t)a * step);

	if (has_inf) {
		v = e == expmax ? a << (23 - f.mant) | 0x7f800000u : v;
	}
	return num_f32(v | x >> (f.bits - 1) << 31);
}

/* The scalar conversions by name; a NaN stays a NaN (quiet, sign kept). */
NUM_INLINE float num_from_f16(uint16_t h) { return num_widen(h, NUM_FMT_f16, true); }
NUM_INLINE float num_from_bf16(uint16_t h) { return num_f32((uint32_t)h << 16); }
NUM_INLINE float num_from_e5m2(uint8_t b) { return num_widen(b, NUM_FMT_e5m2, true); }
NUM_INLINE float num_from_e4m3(uint8_t b)
{
	/* S.1111.111 is NaN, the rest of that exponent is finite */
	return (b & 0x7f) == 0x7f ? num_f32(NUM_NAN32) : num_widen(b, NUM_FMT_e4m3, false);
}
NUM_INLINE float num_from_e3m2(uint8_t b) { return num_widen(b & 0x3fu, NUM_FMT_e3m2, false); }
NUM_INLINE float num_from_e2m3(uint8_t b) { return num_widen(b & 0x3fu, NUM_FMT_e2m3, false); }
NUM_INLINE float num_from_e2m1(uint8_t b) { return num_widen(b & 0xfu, NUM_FMT_e2m1, false); }
/* 2^(b - 127); 255 is NaN. The smallest is subnormal as f32. */
NUM_INLINE float num_from_ue8m0(uint8_t b)
{
	return num_f32(b == 0xff ? NUM_NAN32 : b ? (uint32_t)b << 23 : 0x400000u);
}

NUM_INLINE uint16_t num_to_f16(float x)
{
	return (uint16_t)num_narrow32(num_bits32(x), NUM_FMT_f16, NUM_RN, false);
}
/* bf16 has the exponents of f32: adding and truncating rounds subnormals and carries into
 * infinity */
NUM_INLINE uint16_t num_to_bf16(float x)
{
	uint32_t u = num_bits32(x);
	uint32_t v = (u + 0x7fffu + (u >> 16 & 1)) >> 16;

	return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? NUM_NAN16 : v);
}
NUM_INLINE uint16_t num_f64_to_f16(double x)
{
	return (uint16_t)num_narrow64(num_bits64(x), NUM_FMT_f16, NUM_RN, false);
}
NUM_INLINE uint16_t num_f64_to_bf16(double x)
{
	return (uint16_t)num_narrow64(num_bits64(x), NUM_FMT_bf16, NUM_RN, false);
}
NUM_INLINE uint8_t num_to_e4m3(float x)
{
	return (uint8_t)num_narrow32(num_bits32(x), NUM_FMT_e4m3, NUM_RN, true);
}
NUM_INLINE uint8_t num_to_e5m2(float x)
{
	return (uint8_t)num_narrow32(num_bits32(x), NUM_FMT_e5m2, NUM_RN, true);
}
NUM_INLINE uint8_t num_to_e3m2(float x)
{
	return (uint8_t)num_narrow32(num_bits32(x), NUM_FMT_e3m2, NUM_RN, true);
}
NUM_INLINE uint8_t num_to_e2m3(float x)
{
	return (uint8_t)num_narrow32(num_bits32(x), NUM_FMT_e2m3, NUM_RN, true);
}
NUM_INLINE uint8_t num_to_e2m1(float x)
{
	return (uint8_t)num_narrow32(num_bits32(x), NUM_FMT_e2m1, NUM_RN, true);
}
/* tf32 is an f32 whose 13 low bits are zero, also in a NaN. */
NUM_INLINE uint32_t num_to_tf32(uint32_t x, const enum num_round r, const bool satfinite)
{
	uint32_t v = num_narrow32(x, NUM_FMT_tf32, r, satfinite) << 13;
	return (x & 0x7fffffffu) > 0x7f800000u ? NUM_NAN32 & 0xffffe000u : v;
}
/* r: NUM_RZ or NUM_RP; the sign is dropped. Without satfinite, a magnitude
 * above 2^127 becomes NaN. */
NUM_INLINE uint8_t num_to_ue8m0(uint32_t x, const enum num_round r, const bool satfinite)
{
	uint32_t a = x & 0x7fffffffu, e = a >> 23;
	/* 2^-127 itself is the subnormal 0x400000 */
	uint32_t up = r == NUM_RP && (a & 0x7fffffu) && a > 0x400000u && a < 0x7f800000u;
	uint32_t v = e + up;

	v = satfinite && a <= 0x7f800000u && v == 0xff ? 0xfe : v;
	return (uint8_t)v;
}

/* ---- rare paths, not inline (num.c) ---- */

/* Bits of the float nearest to (neg ? -mag : mag), rounded once. */
uint64_t num_int_to_float(uint64_t mag, bool neg, unsigned mant, int bias,
	enum num_round r);
/* Rounds to an integral value. */
double num_integral(double x, enum num_round r);
/* x to an integer of `bits` bits, clamped to its range, in the low bits. from64: x was an f64. ISA,
 * cvt: a NaN gives 0, but 1 << (bits - 1) when source or destination has 64 bits. */
uint64_t num_to_int(double x, unsigned bits, bool is_signed, bool from64,
	enum num_round r);

/* ---- rows of a matrix tile (num_rows.c) ----
 *
 * n elements; no alignment required; d and s do not overlap. */
void num_f16_to_f32(float *d, const uint16_t *s, size_t n);
void num_bf16_to_f32(float *d, const uint16_t *s, size_t n);
void num_e4m3_to_f32(float *d, const uint8_t *s, size_t n);
void num_e5m2_to_f32(float *d, const uint8_t *s, size_t n);
void num_e3m2_to_f32(float *d, const uint8_t *s, size_t n); /* 6 low bits of a byte */
void num_e2m3_to_f32(float *d, const uint8_t *s, size_t n);
void num_e2m1_to_f32(float *d, const uint8_t *s, size_t n); /* 4 low bits of a byte */
/* Two elements a byte, the even one in the low half. n elements, n even. */
void num_e2m1x2_to_f32(float *d, const uint8_t *s, size_t n);
void num_ue8m0_to_f32(float *d, const uint8_t *s, size_t n);
/* An f32 as the tensor core reads tf32: the low 13 bits are ignored. */
void num_tf32_to_f32(float *d, const uint32_t *s, size_t n);
void num_s8_to_s32(int32_t *d, const int8_t *s, size_t n);
void num_u8_to_s32(int32_t *d, const uint8_t *s, size_t n);
/* round to nearest even, infinity on overflow */
void num_f32_to_f16(uint16_t *d, const float *s, size_t n);
void num_f32_to_bf16(uint16_t *d, const float *s, size_t n);

#endif
