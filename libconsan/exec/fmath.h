/* fmath: the transcendental functions of PTX's .approx instructions, and min and max, without
 * branches, so that loops over them vectorise. Computed in f64 and rounded to f32 once, so the
 * error is below one rounding. Hardware's approximations differ from these in the last bits (ISA:
 * max. error 2^-22 relative for ex2, 2^-20.9 absolute for sin, ...). */
#ifndef CONSAN_EXEC_FMATH_H
#define CONSAN_EXEC_FMATH_H

#include "num.h"

/* Nearest integer, for |v| < 2^51. */
NUM_INLINE double fm_near(double v)
{
	const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
	return v + magic - magic;
}
/* 2^n for an integral n in [-1000, 1000]. */
NUM_INLINE double fm_scale(double n)
{
	const double magic = 6755399441055744.0;
	/* the low bits of n + magic are the integer */
	return num_f64((num_bits64(n + magic) + 1023) << 52);
}

/* 2^x as an f64. |x| is clamped to 1000, which is beyond every f32. */
NUM_INLINE double fm_exp2(double x)
{
	double c = x < -1000 ? -1000 : x > 1000 ? 1000 : x;
	double n = fm_near(c), t = (c - n) * 0.69314718055994530942;
	/* Taylor; |t| <= 0.347: the next term is below 2e-13 */
	double p = 1.0 / 39916800;

	p = p * t + 1.0 / 3628800;
	p = p * t + 1.0 / 362880;
	p = p * t + 1.0 / 40320;
	p = p * t + 1.0 / 5040;
	p = p * t + 1.0 / 720;
	p = p * t + 1.0 / 120;
	p = p * t + 1.0 / 24;
	p = p * t + 1.0 / 6;
	p = p * t + 0.5;
	p = p * t + 1;
	p = p * t + 1;
	return p * fm_scale(n);
}
NUM_INLINE float fm_ex2(float x)
{
	return x != x ? x : (float)fm_exp2((double)x);
}

NUM_INLINE float fm_lg2(float x)
{
	uint64_t u = num_bits64((double)x);
	/* m in [sqrt(1/2), sqrt(2)), x = m * 2^e */
	uint64_t off = u - 0x3fe6a09e667f3bcdull;
	int64_t e = (int64_t)(off & 0x8000000000000000u ? off >> 52 | 0xfffffffffffff000u
		: off >> 52);
	double m = num_f64(u - ((uint64_t)e << 52));
	double s = (m - 1) / (m + 1), z = s * s;
	/* log m = 2 atanh s; |s| < 0.1716 */
	double p = 1.0 / 17;

	p = p * z + 1.0 / 15;
	p = p * z + 1.0 / 13;
	p = p * z + 1.0 / 11;
	p = p * z + 1.0 / 9;
	p = p * z + 1.0 / 7;
	p = p * z + 1.0 / 5;
	p = p * z + 1.0 / 3;
	p = p * z + 1;
	/* e to f64 without an int64 conversion, which AVX2 lacks */
	double ed = (double)(int32_t)e;
	float r = (float)(ed + s * p * 2.8853900817779268147);

	r = x == INFINITY ? x : r;
	r = x == 0 ? -INFINITY : r;
	return x >= 0 ? r : NAN;
}

/* sin(r) and cos(r), |r| <= pi/4 */
NUM_INLINE double fm_sin_poly(double r)
{
	double z = r * r, p = -1.0 / 1307674368000;

	p = p * z + 1.0 / 6227020800;
	p = p * z - 1.0 / 39916800;
	p = p * z + 1.0 / 362880;
	p = p * z - 1.0 / 5040;
	p = p * z + 1.0 / 120;
	p = p * z - 1.0 / 6;
	return r + r * z * p;
}
NUM_INLINE double fm_cos_poly(double r)
{
	double z = r * r, p = 1.0 / 20922789888000;

	p = p * z - 1.0 / 87178291200;
	p = p * z + 1.0 / 479001600;
	p = p * z - 1.0 / 3628800;
	p = p * z + 1.0 / 40320;
	p = p * z - 1.0 / 720;
	p = p * z + 1.0 / 24;
	p = p * z - 0.5;
	return p * z + 1;
}
/* quarter: 0 sin, 1 cos. As on hardware, x / 2pi is truncated to f32 first, so that a large x gives
 * hardware's value, not the exact one. */
NUM_INLINE float fm_sincos(float x, unsigned quarter)
{
	const double magic = 6755399441055744.0;
	/* the product of two f32 is exact in f64; without its low 29 bits it is f32, rounded to
	 * zero */
	double turns = num_f64(num_bits64((double)x * (double)0.15915494f) & ~0x1fffffffull);
	double whole = fabs(turns) < 0x1p30 ? turns : 0;
	double shifted = whole * 4 + magic, n = shifted - magic;
	double r = (whole - n * 0.25) * 6.28318530717958647693;
	uint64_t q = num_bits64(shifted) + quarter;
	double s = fm_sin_poly(r), k = fm_cos_poly(r);
	double y = q & 1 ? k : s;

	y = q & 2 ? -y : y;
	y = fabs(turns) < INFINITY ? y : NAN;
	/* sin(-0) = -0 */
	return x == 0 && quarter == 0 ? x : (float)y;
}

NUM_INLINE float fm_tanh(float x)
{
	double v = (double)x, a = fabs(v);
	double e = fm_exp2(a * 2.8853900817779268147); /* e^(2a) */
	double t = 1 - 2 / (e + 1);
	double small = v - v * v * v * (1.0 / 3);

	t = v < 0 ? -t : t;
	t = a < 1e-3 ? small : t;
	return x == 0 ? x : (float)(a == a ? t : v);
}

/* ---- order: a number is preferred to a NaN, or the NaN with .NaN; +0 > -0 ---- */

NUM_INLINE float fm_min(float a, float b, const bool nan)
{
	/* a NaN compares false and selects b, which is right unless b is a NaN that must not be
	 * selected or a is one that must */
	float r = a < b ? a : b;

	r = a == b ? num_f32(num_bits32(a) | num_bits32(b)) : r;
	return nan ? (a != a ? a : r) : (b != b ? a : r);
}
NUM_INLINE float fm_max(float a, float b, const bool nan)
{
	float r = a > b ? a : b;

	r = a == b ? num_f32(num_bits32(a) & num_bits32(b)) : r;
	return nan ? (a != a ? a : r) : (b != b ? a : r);
}
NUM_INLINE double fm_min64(double a, double b)
{
	double r = a < b ? a : b;

	r = a == b ? num_f64(num_bits64(a) | num_bits64(b)) : r;
	r = b != b ? a : r;
	return a != a ? b : r;
}
NUM_INLINE double fm_max64(double a, double b)
{
	double r = a > b ? a : b;

	r = a == b ? num_f64(num_bits64(a) & num_bits64(b)) : r;
	r = b != b ? a : r;
	return a != a ? b : r;
}
/* .xorsign.abs: r with the sign of the product of a and b; a NaN stays canonical (ISA) */
NUM_INLINE float fm_xorsign(float r, float a, float b)
{
	uint32_t s = (num_bits32(a) ^ num_bits32(b)) & 0x80000000u;
	return r != r ? r : num_f32(num_bits32(r) | s);
}

#endif
