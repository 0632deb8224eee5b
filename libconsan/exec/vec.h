/* vec: 32 lanes of addresses in vector registers, and predicates on them that return a lane mask.
 * Intrinsics, because compilers do not find these forms. For SIMD_SRC files. */
#ifndef CONSAN_EXEC_VEC_H
#define CONSAN_EXEC_VEC_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

#define VEC_INLINE static inline __attribute__((always_inline))

#ifdef __AVX512F__
#define V32_N 2
#define V64_N 4
struct v32 { __m512i v[V32_N]; };
struct v64 { __m512i v[V64_N]; };

VEC_INLINE struct v32 v32_iota(uint32_t stride)
{
	const __m512i i = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
	__m512i s = _mm512_set1_epi32((int)stride);
	__m512i lo = _mm512_mullo_epi32(i, s);

	return (struct v32){ { lo, _mm512_add_epi32(lo, _mm512_slli_epi32(s, 4)) } };
}
VEC_INLINE struct v32 v32_load(const void *at)
{
	return (struct v32){ { _mm512_load_si512(at), _mm512_load_si512((const char *)at + 64) } };
}
VEC_INLINE void v32_store(void *at, struct v32 a)
{
	_mm512_store_si512(at, a.v[0]);
	_mm512_store_si512((char *)at + 64, a.v[1]);
}
VEC_INLINE struct v32 v32_add(struct v32 a, uint32_t b)
{
	__m512i x = _mm512_set1_epi32((int)b);

	return (struct v32){ { _mm512_add_epi32(a.v[0], x), _mm512_add_epi32(a.v[1], x) } };
}
/* lanes where a > b */
VEC_INLINE uint32_t v32_above(struct v32 a, uint32_t b)
{
	__m512i x = _mm512_set1_epi32((int)b);

	return _mm512_cmpgt_epu32_mask(a.v[0], x)
		| (uint32_t)_mm512_cmpgt_epu32_mask(a.v[1], x) << 16;
}
/* lanes where a & b is not 0 */
VEC_INLINE uint32_t v32_bits(struct v32 a, uint32_t b)
{
	__m512i x = _mm512_set1_epi32((int)b);

	return _mm512_test_epi32_mask(a.v[0], x)
		| (uint32_t)_mm512_test_epi32_mask(a.v[1], x) << 16;
}
/* lanes where a != first + lane * stride */
VEC_INLINE uint32_t v32_unlike(struct v32 a, uint32_t first, uint32_t stride)
{
	struct v32 e = v32_add(v32_iota(stride), first);

	return _mm512_cmpneq_epi32_mask(a.v[0], e.v[0])
		| (uint32_t)_mm512_cmpneq_epi32_mask(a.v[1], e.v[1]) << 16;
}

/* lane * stride, stride as a signed 32-bit number */
VEC_INLINE struct v64 v64_iota(int32_t stride)
{
	const __m512i i = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
	__m512i s = _mm512_set1_epi64(stride), step = _mm512_slli_epi64(s, 3);
	struct v64 r = { { _mm512_mul_epi32(i, s) } };

	for (int k = 1; k < V64_N; k++)
		r.v[k] = _mm512_add_epi64(r.v[k - 1], step);
	return r;
}
VEC_INLINE struct v64 v64_load(const void *at)
{
	struct v64 r;

	for (int k = 0; k < V64_N; k++)
		r.v[k] = _mm512_load_si512((const char *)at + 64 * k);
	return r;
}
VEC_INLINE struct v64 v64_widen(const void *at)
{
	struct v64 r;

	for (int k = 0; k < V64_N; k++)
		r.v[k] = _mm512_cvtepu32_epi64(_mm256_load_si256(
			(const __m256i *)((const char *)at + 32 * k)));
	return r;
}
VEC_INLINE void v64_store(void *at, struct v64 a)
{
	for (int k = 0; k < V64_N; k++)
		_mm512_store_si512((char *)at + 64 * k, a.v[k]);
}
VEC_INLINE struct v64 v64_add(struct v64 a, uint64_t b)
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm512_add_epi64(a.v[k], _mm512_set1_epi64((long long)b));
	return a;
}
VEC_INLINE struct v64 v64_sum(struct v64 a, struct v64 b)
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm512_add_epi64(a.v[k], b.v[k]);
	return a;
}
VEC_INLINE uint32_t v64_above(struct v64 a, uint64_t b)
{
	uint32_t m = 0;

	for (int k = 0; k < V64_N; k++)
		m |= (uint32_t)_mm512_cmpgt_epu64_mask(a.v[k],
			_mm512_set1_epi64((long long)b)) << 8 * k;
	return m;
}
VEC_INLINE uint32_t v64_bits(struct v64 a, uint64_t b)
{
	uint32_t m = 0;

	for (int k = 0; k < V64_N; k++)
		m |= (uint32_t)_mm512_test_epi64_mask(a.v[k],
			_mm512_set1_epi64((long long)b)) << 8 * k;
	return m;
}
VEC_INLINE uint32_t v64_unlike(struct v64 a, uint64_t first, int32_t stride)
{
	struct v64 e = v64_add(v64_iota(stride), first);
	uint32_t m = 0;

	for (int k = 0; k < V64_N; k++)
		m |= (uint32_t)_mm512_cmpneq_epi64_mask(a.v[k], e.v[k]) << 8 * k;
	return m;
}

/* Numbers of the lanes in a half warp times b, a constant */
VEC_INLINE struct v32 v32_half(int b)
{
	const __m512i s = _mm512_setr_epi32(0, b, 2 * b, 3 * b, 4 * b, 5 * b, 6 * b, 7 * b,
		8 * b, 9 * b, 10 * b, 11 * b, 12 * b, 13 * b, 14 * b, 15 * b);

	return (struct v32){ { s, s } };
}
VEC_INLINE struct v64 v64_half(int b)
{
	const __m512i s = _mm512_setr_epi64(0, b, 2 * b, 3 * b, 4 * b, 5 * b, 6 * b, 7 * b);
	const __m512i t = _mm512_setr_epi64(8 * b, 9 * b, 10 * b, 11 * b, 12 * b, 13 * b, 14 * b, 15 * b);

	return (struct v64){ { s, t, s, t } };
}
VEC_INLINE struct v64 v64_add_halves(struct v64 a, const uint64_t at[2])
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm512_add_epi64(a.v[k], _mm512_set1_epi64((long long)at[k / (V64_N / 2)]));
	return a;
}
/* Is a - at[half] != e in any lane? */
VEC_INLINE bool v32_unlike_halves(struct v32 a, const uint32_t at[2], struct v32 e)
{
	return _mm512_cmpneq_epi32_mask(_mm512_sub_epi32(a.v[0], _mm512_set1_epi32((int)at[0])), e.v[0])
		| _mm512_cmpneq_epi32_mask(_mm512_sub_epi32(a.v[1], _mm512_set1_epi32((int)at[1])), e.v[1]);
}
VEC_INLINE bool v64_unlike_halves(struct v64 a, const uint64_t at[2], struct v64 e)
{
	__mmask8 m = 0;

	for (int k = 0; k < V64_N; k++)
		m |= _mm512_cmpneq_epi64_mask(_mm512_sub_epi64(a.v[k],
			_mm512_set1_epi64((long long)at[k / 2])), e.v[k]);
	return m;
}

#else /* AVX2 */
#define V32_N 4
#define V64_N 8
struct v32 { __m256i v[V32_N]; };
struct v64 { __m256i v[V64_N]; };

VEC_INLINE uint32_t v32_mask(__m256i m, int k)
{
	return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(m)) << 8 * k;
}
VEC_INLINE uint32_t v64_mask(__m256i m, int k)
{
	return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(m)) << 4 * k;
}
VEC_INLINE struct v32 v32_iota(uint32_t stride)
{
	const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	__m256i s = _mm256_set1_epi32((int)stride), step = _mm256_slli_epi32(s, 3);
	struct v32 r = { { _mm256_mullo_epi32(i, s) } };

	for (int k = 1; k < V32_N; k++)
		r.v[k] = _mm256_add_epi32(r.v[k - 1], step);
	return r;
}
VEC_INLINE struct v32 v32_load(const void *at)
{
	struct v32 r;

	for (int k = 0; k < V32_N; k++)
		r.v[k] = _mm256_load_si256((const __m256i *)((const char *)at + 32 * k));
	return r;
}
VEC_INLINE void v32_store(void *at, struct v32 a)
{
	for (int k = 0; k < V32_N; k++)
		_mm256_store_si256((__m256i *)((char *)at + 32 * k), a.v[k]);
}
VEC_INLINE struct v32 v32_add(struct v32 a, uint32_t b)
{
	for (int k = 0; k < V32_N; k++)
		a.v[k] = _mm256_add_epi32(a.v[k], _mm256_set1_epi32((int)b));
	return a;
}
VEC_INLINE uint32_t v32_above(struct v32 a, uint32_t b)
{
	const __m256i sign = _mm256_set1_epi32(INT32_MIN);
	__m256i x = _mm256_xor_si256(_mm256_set1_epi32((int)b), sign);
	uint32_t m = 0;

	for (int k = 0; k < V32_N; k++)
		m |= v32_mask(_mm256_cmpgt_epi32(_mm256_xor_si256(a.v[k], sign), x), k);
	return m;
}
VEC_INLINE uint32_t v32_bits(struct v32 a, uint32_t b)
{
	uint32_t none = 0;

	for (int k = 0; k < V32_N; k++)
		none |= v32_mask(_mm256_cmpeq_epi32(_mm256_and_si256(a.v[k],
			_mm256_set1_epi32((int)b)), _mm256_setzero_si256()), k);
	return ~none;
}
VEC_INLINE uint32_t v32_unlike(struct v32 a, uint32_t first, uint32_t stride)
{
	struct v32 e = v32_add(v32_iota(stride), first);
	uint32_t same = 0;

	for (int k = 0; k < V32_N; k++)
		same |= v32_mask(_mm256_cmpeq_epi32(a.v[k], e.v[k]), k);
	return ~same;
}

VEC_INLINE struct v64 v64_iota(int32_t stride)
{
	const __m256i i = _mm256_setr_epi64x(0, 1, 2, 3);
	__m256i s = _mm256_set1_epi64x(stride), step = _mm256_slli_epi64(s, 2);
	struct v64 r = { { _mm256_mul_epi32(i, s) } };

	for (int k = 1; k < V64_N; k++)
		r.v[k] = _mm256_add_epi64(r.v[k - 1], step);
	return r;
}
VEC_INLINE struct v64 v64_load(const void *at)
{
	struct v64 r;

	for (int k = 0; k < V64_N; k++)
		r.v[k] = _mm256_load_si256((const __m256i *)((const char *)at + 32 * k));
	return r;
}
VEC_INLINE struct v64 v64_widen(const void *at)
{
	struct v64 r;

	for (int k = 0; k < V64_N; k++)
		r.v[k] = _mm256_cvtepu32_epi64(_mm_load_si128(
			(const __m128i *)((const char *)at + 16 * k)));
	return r;
}
VEC_INLINE void v64_store(void *at, struct v64 a)
{
	for (int k = 0; k < V64_N; k++)
		_mm256_store_si256((__m256i *)((char *)at + 32 * k), a.v[k]);
}
VEC_INLINE struct v64 v64_add(struct v64 a, uint64_t b)
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm256_add_epi64(a.v[k], _mm256_set1_epi64x((long long)b));
	return a;
}
VEC_INLINE struct v64 v64_sum(struct v64 a, struct v64 b)
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm256_add_epi64(a.v[k], b.v[k]);
	return a;
}
VEC_INLINE uint32_t v64_above(struct v64 a, uint64_t b)
{
	const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
	__m256i x = _mm256_xor_si256(_mm256_set1_epi64x((long long)b), sign);
	uint32_t m = 0;

	for (int k = 0; k < V64_N; k++)
		m |= v64_mask(_mm256_cmpgt_epi64(_mm256_xor_si256(a.v[k], sign), x), k);
	return m;
}
VEC_INLINE uint32_t v64_bits(struct v64 a, uint64_t b)
{
	uint32_t none = 0;

	for (int k = 0; k < V64_N; k++)
		none |= v64_mask(_mm256_cmpeq_epi64(_mm256_and_si256(a.v[k],
			_mm256_set1_epi64x((long long)b)), _mm256_setzero_si256()), k);
	return ~none;
}
VEC_INLINE uint32_t v64_unlike(struct v64 a, uint64_t first, int32_t stride)
{
	struct v64 e = v64_add(v64_iota(stride), first);
	uint32_t same = 0;

	for (int k = 0; k < V64_N; k++)
		same |= v64_mask(_mm256_cmpeq_epi64(a.v[k], e.v[k]), k);
	return ~same;
}
VEC_INLINE struct v32 v32_half(int b)
{
	const __m256i s = _mm256_setr_epi32(0, b, 2 * b, 3 * b, 4 * b, 5 * b, 6 * b, 7 * b);
	const __m256i t = _mm256_setr_epi32(8 * b, 9 * b, 10 * b, 11 * b, 12 * b, 13 * b, 14 * b, 15 * b);

	return (struct v32){ { s, t, s, t } };
}
VEC_INLINE struct v64 v64_half(int b)
{
	struct v64 r;

	for (int k = 0; k < V64_N; k++) {
		const int f = k % 4 * 4 * b;

		r.v[k] = _mm256_setr_epi64x(f, f + b, f + 2 * b, f + 3 * b);
	}
	return r;
}
VEC_INLINE struct v64 v64_add_halves(struct v64 a, const uint64_t at[2])
{
	for (int k = 0; k < V64_N; k++)
		a.v[k] = _mm256_add_epi64(a.v[k], _mm256_set1_epi64x((long long)at[k / (V64_N / 2)]));
	return a;
}
VEC_INLINE bool v32_unlike_halves(struct v32 a, const uint32_t at[2], struct v32 e)
{
	__m256i other = _mm256_setzero_si256();

	for (int k = 0; k < V32_N; k++)
		other = _mm256_or_si256(other, _mm256_xor_si256(e.v[k],
			_mm256_sub_epi32(a.v[k], _mm256_set1_epi32((int)at[k / 2]))));
	return !_mm256_testz_si256(other, other);
}
VEC_INLINE bool v64_unlike_halves(struct v64 a, const uint64_t at[2], struct v64 e)
{
	__m256i other = _mm256_setzero_si256();

	for (int k = 0; k < V64_N; k++)
		other = _mm256_or_si256(other, _mm256_xor_si256(e.v[k],
			_mm256_sub_epi64(a.v[k], _mm256_set1_epi64x((long long)at[k / 4]))));
	return !_mm256_testz_si256(other, other);
}
#endif

#endif
