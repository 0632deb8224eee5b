/* num: the conversions that are too rare to be inline, the choice of the vector build for this
 * processor, and the dispatch of the row conversions to it. */
#include "num.h"

#include <stdlib.h>

#include "simd.h"

static enum simd_level detect(void)
{
	const char *want = getenv("CONSAN_SIMD");

	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
			!__builtin_cpu_supports("bmi") || !__builtin_cpu_supports("bmi2"))
		return SIMD_NONE;
	/* -march=x86-64-v4 */
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
			__builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
			__builtin_cpu_supports("avx512vl") && !(want && !strcmp(want, "avx2")))
		return SIMD_512;
	return SIMD_256;
}

enum simd_level simd_level(void)
{
	/* Every thread computes the same value, so a race is harmless. It is atomic to be free of
	 * data races. */
	static _Atomic int level = -1;

	if (level < 0)
		level = detect();
	return (enum simd_level)level;
}

const char *simd_missing(void)
{
	return simd_level() == SIMD_NONE
		? "this processor lacks AVX2, FMA or BMI2, which the executor needs (x86-64-v3)"
		: NULL;
}

uint64_t num_int_to_float(uint64_t mag, bool neg, unsigned mant, int bias,
	enum num_round r)
{
	unsigned sign_at = mant == 52 ? 63 : mant == 23 ? 31 : 15;
	uint64_t sign = (uint64_t)neg << sign_at;

	if (!mag)
		return 0;
	unsigned top = 63 - (unsigned)__builtin_clzll(mag);
	uint64_t e = top + (uint64_t)bias;

	if (top <= mant)
		return sign | (((e - 1) << mant) + (mag << (mant - top)));
	unsigned sh = top - mant;
	uint64_t q = mag >> sh, rem = mag & ((1ull << sh) - 1);
	uint64_t v = ((e - 1) << mant) + q + num_up(r, q & 1, rem, 1ull << (sh - 1), neg);
	/* only f16 (bias 15) is too small for a 64-bit integer */
	uint64_t inf = (2ull * (uint64_t)bias + 1) << mant;

	if (v >= inf) {
		bool down = r == NUM_RZ || (r == NUM_RM && !neg) || (r == NUM_RP && neg);
		v = down ? inf - 1 : inf;
	}
	return sign | v;
}

double num_integral(double x, enum num_round r)
{
	switch (r) {
	case NUM_RN: return rint(x);
	case NUM_RZ: return trunc(x);
	case NUM_RM: return floor(x);
	case NUM_RP: return ceil(x);
	case NUM_RNA: return round(x);
	}
	return x;
}

uint64_t num_to_int(double x, unsigned bits, bool is_signed, bool from64,
	enum num_round r)
{
	uint64_t mask = bits == 64 ? UINT64_MAX : (1ull << bits) - 1;
	uint64_t top = 1ull << (bits - 1); /* also the least signed value */

	if (isnan(x))
		return from64 || bits == 64 ? top : 0;
	x = num_integral(x, r);
	if (is_signed) {
		double lim = ldexp(1, (int)bits - 1);
		if (x >= lim)
			return top - 1;
		return x < -lim ? top : (uint64_t)(int64_t)x & mask;
	}
	if (x <= 0)
		return 0;
	return x >= ldexp(1, (int)bits) ? mask : (uint64_t)x;
}

#define ROW(name, dst, src) \
	void num_##name##_avx2(dst *, const src *, size_t); \
	void num_##name##_avx512(dst *, const src *, size_t); \
	void num_##name(dst *d, const src *s, size_t n) \
	{ \
		SIMD_PICK(num_##name)(d, s, n); \
	}
#include "num_rows.def"
#undef ROW
