/* tile_units: narrow elements as the tile loops use them, for SIMD_SRC files only: 32-bit units
 * along k. A unit is one f32 for a float element, a pair of s16 for two 8- or 4-bit integers, or 32
 * single bits. */
#ifndef CONSAN_EXEC_TILE_UNITS_H
#define CONSAN_EXEC_TILE_UNITS_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "num.h"
#include "tile.h"

#define TILE_INLINE static inline __attribute__((always_inline, unused))

/* Number of units in 16 bytes along k. */
TILE_INLINE unsigned units_of(enum tile_in t)
{
	switch (t) {
	case IN_tf32: case IN_b1: return 4;
	case IN_f16: case IN_bf16: case IN_s8: case IN_u8: return 8;
	case IN_e4m3: case IN_e5m2: case IN_e3m2: case IN_e2m3: case IN_e2m1:
	case IN_s4: case IN_u4: return 16;
	case IN_e2m1x2: return 32;
	case IN_f64: case IN_COUNT: break;
	}
	return 0;
}

/* n: bytes, a multiple of 16. in and out do not overlap. */
TILE_INLINE void units_from(enum tile_in t, uint32_t *restrict out,
	const unsigned char *restrict in, unsigned n)
{
	float *f = (float *)out;

	switch (t) {
	case IN_f16:
		for (unsigned i = 0; i < n / 2; i += 8)
			_mm256_storeu_ps(f + i, _mm256_cvtph_ps(
				_mm_loadu_si128((const void *)(in + 2 * i))));
		return;
	case IN_bf16:
		for (unsigned i = 0; i < n / 2; i += 8)
			_mm256_storeu_si256((void *)(out + i), _mm256_slli_epi32(
				_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)(in + 2 * i))),
				16));
		return;
	case IN_tf32:
		for (unsigned i = 0; i < n / 4; i += 4)
			_mm_storeu_si128((void *)(out + i), _mm_and_si128(
				_mm_loadu_si128((const void *)(in + 4 * i)),
				_mm_set1_epi32((int)0xffffe000)));
		return;
	case IN_e4m3:
		/* as an f16 with four exponent bits; the bias differs by 8. All ones is the one
		 * NaN. */
		for (unsigned i = 0; i < n; i += 8) {
			__m128i v = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(in + i)));
			__m128i abs = _mm_and_si128(v, _mm_set1_epi16(0x7f));
			__m128i h = _mm_or_si128(_mm_slli_epi16(abs, 7),
				_mm_slli_epi16(_mm_and_si128(v, _mm_set1_epi16(0x80)), 8));
			__m256i bad = _mm256_cvtepi16_epi32(
				_mm_cmpeq_epi16(abs, _mm_set1_epi16(0x7f)));

			_mm256_storeu_ps(f + i, _mm256_blendv_ps(
				_mm256_mul_ps(_mm256_cvtph_ps(h), _mm256_set1_ps(256)),
				_mm256_castsi256_ps(_mm256_set1_epi32(NUM_NAN32)),
				_mm256_castsi256_ps(bad)));
		}
		return;
	case IN_e5m2:
		for (unsigned i = 0; i < n; i += 8)
			_mm256_storeu_ps(f + i, _mm256_cvtph_ps(_mm_slli_epi16(_mm_cvtepu8_epi16(
				_mm_loadl_epi64((const void *)(in + i))), 8)));
		return;
	case IN_e3m2:
		for (unsigned i = 0; i < n; i++)
			f[i] = num_from_e3m2(in[i]);
		return;
	case IN_e2m3:
		for (unsigned i = 0; i < n; i++)
			f[i] = num_from_e2m3(in[i]);
		return;
	case IN_e2m1:
		/* in the middle four bits of the byte (ISA, kind::f8f6f4) */
		for (unsigned i = 0; i < n; i++)
			f[i] = num_from_e2m1(in[i] >> 2);
		return;
	case IN_e2m1x2:
		for (unsigned i = 0; i < n; i++) {
			f[2 * i] = num_from_e2m1(in[i]);
			f[2 * i + 1] = num_from_e2m1(in[i] >> 4);
		}
		return;
	case IN_s8:
		for (unsigned i = 0; i < n / 2; i += 8)
			_mm256_storeu_si256((void *)(out + i), _mm256_cvtepi8_epi16(
				_mm_loadu_si128((const void *)(in + 2 * i))));
		return;
	case IN_u8:
		for (unsigned i = 0; i < n / 2; i += 8)
			_mm256_storeu_si256((void *)(out + i), _mm256_cvtepu8_epi16(
				_mm_loadu_si128((const void *)(in + 2 * i))));
		return;
	case IN_s4:
		for (unsigned i = 0; i < n; i++)
			out[i] = (uint16_t)((int8_t)(in[i] << 4) >> 4)
				| (uint32_t)((int8_t)in[i] >> 4) << 16;
		return;
	case IN_u4:
		for (unsigned i = 0; i < n; i++)
			out[i] = (in[i] & 15u) | (uint32_t)(in[i] >> 4) << 16;
		return;
	case IN_b1:
		memcpy(out, in, n);
		return;
	case IN_f64:
	case IN_COUNT:
		return;
	}
}

/* Transposes 8 rows of 8 units at in (`stride` units apart) to 8 rows at out. Row u of out holds
 * unit u of the input rows, in the order of accumulators: even rows first. `order` false: rows in
 * their own order. */
TILE_INLINE void units_transpose(uint32_t *out, unsigned out_stride,
	const uint32_t *in, unsigned stride, bool even_first)
{
	static const uint8_t plain[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const uint8_t split[8] = { 0, 2, 4, 6, 1, 3, 5, 7 };
	const uint8_t *o = even_first ? split : plain;
	__m256 r[8], u[8], v[8];

	for (unsigned i = 0; i < 8; i++)
		r[i] = _mm256_loadu_ps((const float *)(in + o[i] * stride));
	for (unsigned i = 0; i < 8; i += 2) {
		u[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		u[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	for (unsigned i = 0; i < 8; i += 4) {
		v[i] = _mm256_shuffle_ps(u[i], u[i + 2], 0x44);
		v[i + 1] = _mm256_shuffle_ps(u[i], u[i + 2], 0xee);
		v[i + 2] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0x44);
		v[i + 3] = _mm256_shuffle_ps(u[i + 1], u[i + 3], 0xee);
	}
	for (unsigned i = 0; i < 4; i++) {
		_mm256_storeu_ps((float *)(out + i * out_stride),
			_mm256_permute2f128_ps(v[i], v[i + 4], 0x20));
		_mm256_storeu_ps((float *)(out + (i + 4) * out_stride),
			_mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
	}
}

/* ACC_f16 registers: 32 pairs to two rows of 32 floats, and back. */
TILE_INLINE void halves_widen(float *lo, float *hi, const void *reg)
{
	const __m256i low = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,
		0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);

	for (unsigned l = 0; l < 32; l += 8) {
		__m256i v = _mm256_loadu_si256((const void *)((const char *)reg + 4 * l));

		/* low halves of both lanes first, then high halves */
		v = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(v, low), 0xd8);
		_mm256_storeu_ps(lo + l, _mm256_cvtph_ps(_mm256_castsi256_si128(v)));
		_mm256_storeu_ps(hi + l, _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1)));
	}
}
TILE_INLINE __m256i half_bits(const float *f)
{
	const __m128i nan = _mm_set1_epi16(NUM_NAN16), lim = _mm_set1_epi16(0x7c00);
	__m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(f), _MM_FROUND_TO_NEAREST_INT);
	__m128i bad = _mm_cmpgt_epi16(_mm_and_si128(h, nan), lim);

	return _mm256_cvtepu16_epi32(_mm_blendv_epi8(h, nan, bad));
}
TILE_INLINE void halves_narrow(void *reg, const float *lo, const float *hi)
{
	for (unsigned l = 0; l < 32; l += 8)
		_mm256_storeu_si256((void *)((char *)reg + 4 * l), _mm256_or_si256(
			half_bits(lo + l), _mm256_slli_epi32(half_bits(hi + l), 16)));
}

#endif
