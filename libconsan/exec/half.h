/* half: conversion of rows of f16 and bf16 lanes to f32 and back, for the 16-bit arithmetic and the
 * conversions of SIMD_SRC. n is a multiple of 16. */
#ifndef CONSAN_EXEC_HALF_H
#define CONSAN_EXEC_HALF_H

#include <immintrin.h>

#include "lane.h"

NUM_INLINE void half_in_f16(float *d, const l16 *s, unsigned n)
{
	for (unsigned i = 0; i < n; i += 8)
		_mm256_storeu_ps(d + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(s + i))));
}
NUM_INLINE void half_in_bf16(float *d, const l16 *s, unsigned n)
{
	LANE_LOOP
	for (unsigned i = 0; i < n; i++)
		d[i] = num_from_bf16(s[i]);
}
/* Rounds to nearest even; a NaN becomes the canonical one. */
NUM_INLINE void half_out_f16(l16 *d, const float *s, unsigned n)
{
	const __m128i nan = _mm_set1_epi16(NUM_NAN16), inf = _mm_set1_epi16(0x7c00);

	for (unsigned i = 0; i < n; i += 8) {
		__m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(s + i), _MM_FROUND_TO_NEAREST_INT);
		__m128i bad = _mm_cmpgt_epi16(_mm_and_si128(h, nan), inf);
		_mm_storeu_si128((void *)(d + i), _mm_blendv_epi8(h, nan, bad));
	}
}
NUM_INLINE void half_out_bf16(l16 *d, const float *s, unsigned n)
{
	LANE_LOOP
	for (unsigned i = 0; i < n; i++)
		d[i] = num_to_bf16(s[i]);
}

#endif
