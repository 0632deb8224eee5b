/* num_rows: the bulk conversions of num.h, one build per vector width. Loops that the compiler
 * vectorises, and F16C intrinsics where they are faster. */
#include <immintrin.h>

#include "num.h"
#include "simd.h"

#define ROW(name, dst, src) void SIMD_NAME(num_##name)(dst *, const src *, size_t);
#include "num_rows.def"
#undef ROW

#define EACH(name, dst, src, expr) \
	void SIMD_NAME(num_##name)(dst *restrict d, const src *restrict s, size_t n) \
	{ \
		for (size_t i = 0; i < n; i++) \
			d[i] = (expr); \
	}

EACH(bf16_to_f32, float, uint16_t, num_from_bf16(s[i]))
EACH(e4m3_to_f32, float, uint8_t, num_from_e4m3(s[i]))
EACH(e5m2_to_f32, float, uint8_t, num_from_e5m2(s[i]))
EACH(e3m2_to_f32, float, uint8_t, num_from_e3m2(s[i]))
EACH(e2m3_to_f32, float, uint8_t, num_from_e2m3(s[i]))
EACH(e2m1_to_f32, float, uint8_t, num_from_e2m1(s[i]))
EACH(e2m1x2_to_f32, float, uint8_t, num_from_e2m1((uint8_t)(s[i / 2] >> (i & 1) * 4)))
EACH(ue8m0_to_f32, float, uint8_t, num_from_ue8m0(s[i]))
EACH(tf32_to_f32, float, uint32_t, num_f32(s[i] & 0xffffe000u))
EACH(s8_to_s32, int32_t, int8_t, s[i])
EACH(u8_to_s32, int32_t, uint8_t, s[i])
EACH(f32_to_bf16, uint16_t, float, num_to_bf16(s[i]))

void SIMD_NAME(num_f16_to_f32)(float *restrict d, const uint16_t *restrict s, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		_mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s + i))));
	for (; i < n; i++)
		d[i] = num_from_f16(s[i]);
}

void SIMD_NAME(num_f32_to_f16)(uint16_t *restrict d, const float *restrict s, size_t n)
{
	const __m128i nan = _mm_set1_epi16(NUM_NAN16), lim = _mm_set1_epi16(0x7c00);
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		__m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT);
		__m128i bad = _mm_cmpgt_epi16(_mm_and_si128(h, nan), lim);
		_mm_storeu_si128((void *)(d + i), _mm_blendv_epi8(h, nan, bad));
	}
	for (; i < n; i++)
		d[i] = num_to_f16(s[i]);
}
