/* hopper: what the attention kernels for Hopper have in common: the two products
 * on tensor cores and the softmax between them. One warpgroup works on 64 rows of
 * Q. These functions load nothing and synchronise no more than the warpgroup.
 *
 * Tiles in shared memory are blocks of 64 columns, one after the other, see
 * common/wgmma.cuh. P stays in registers: the accumulator of Q K^T has the layout
 * of the A operand of the second product. */
#pragma once

#include "../common/wgmma.cuh"
#include "quad.cuh"

enum {
	WM = 64,                /* rows of a warpgroup */
	BN = 128,               /* keys of a tile */
};

/* Scores times this are exponents of 2: log2(e) / sqrt(D) */
template <int D> constexpr float log2_scale = 1.44269504f * (D == 64 ? 0.125f : 0.0883883476f);

/* Running maximum and sum of this thread's two rows, row and row + 8. The sum is
 * of this thread's columns only. */
struct softmax {
	float most[2] = {-INFINITY, -INFINITY}, sum[2] = {};
};

/* s = Q K^T, 64 rows by 128 keys, not committed */
template <int D> DEVICE void multiply_keys(float (&s)[64], const __half *q, const __half *k)
{
#pragma unroll
	for (int x = 0; x < D; x += 16) { /* 16 halves further: 32 bytes, 2 units */
		const uint64_t dq = wgmma_tile(q + x / 64 * (WM * 64)) + x % 64 / 8;
		const uint64_t dk = wgmma_tile(k + x / 64 * (BN * 64)) + x % 64 / 8;

		wgmma(s, dq, dk, x > 0);
	}
}

/* o = P V + (accumulate ? o : 0), 128 keys, not committed */
template <int D>
DEVICE void multiply_values(float (&o)[D / 2], const uint32_t (&p)[32], const __half *v,
	bool accumulate = true)
{
	const uint64_t dv = wgmma_tile_rows(v, BN * 64 * 2);

#pragma unroll
	for (int k = 0; k < BN; k += 16) /* 16 rows further: 2048 bytes, 128 units */
		wgmma_rows(o, p + k / 4, dv + k * 8, accumulate || k > 0);
}

/* Packs P to halves, for multiply_values(). */
DEVICE void pack_weights(uint32_t (&p)[32], const float (&s)[64])
{
#pragma unroll
	for (int i = 0; i < 32; i++)
		p[i] = pack_half(s[2 * i], s[2 * i + 1]);
}

/* Sets the scores of keys from `end` on to minus infinity and, if causal, of keys after
 * the row's own. `key` and `row` are this thread's first. */
DEVICE void mask_scores(float (&s)[64], int key, int end, bool causal, int row)
{
#pragma unroll
	for (int i = 0; i < 64; i++) {
		const int at = key + i / 4 * 8 + i % 2;

		if (at >= end || (causal && at > row + i / 2 % 2 * 8))
			s[i] = -INFINITY;
	}
}

/* Replaces scores by weights. The caller multiplies earlier sums by `shrink`, of both
 * rows. A maximum is replaced only if weights would exceed 2^slack otherwise, for which halves
 * and sums have room, so that `shrink` is 1 for most tiles. */
DEVICE void softmax_step(struct softmax &r, float (&s)[64], float (&shrink)[2], float scale,
	float slack)
{
#pragma unroll
	for (int h = 0; h < 2; h++) {
		float top = r.most[h];

#pragma unroll
		for (int i = 2 * h; i < 64; i += 4)
			top = fmaxf(top, fmaxf(s[i], s[i + 1]));
		top = quad_max(top);
		if (top * scale <= r.most[h] * scale + slack)
			top = r.most[h];

		/* If no key was seen yet, minus infinity less itself would be NaN. */
		const float base = top == -INFINITY ? 0 : top * scale;

		shrink[h] = exp2_approx(r.most[h] * scale - base);
		r.most[h] = top;
		r.sum[h] *= shrink[h];
#pragma unroll
		for (int i = 2 * h; i < 64; i += 4) {
			s[i] = exp2_approx(s[i] * scale - base);
			s[i + 1] = exp2_approx(s[i + 1] * scale - base);
			r.sum[h] += s[i] + s[i + 1];
		}
	}
}

template <int size> DEVICE void scale_rows(float (&o)[size], const float (&by)[2])
{
#pragma unroll
	for (int i = 0; i < size; i++)
		o[i] *= by[i / 2 % 2];
}

/* scale_rows(), unless no row of the warp needs it */
template <int size> DEVICE void rescale(float (&o)[size], const float (&by)[2])
{
	if (__any_sync(~0u, by[0] != 1 || by[1] != 1))
		scale_rows(o, by);
}

/* Masks a tile of keys that starts at `key`, if needed, and replaces its scores by weights.
 * `first`: the warpgroup's first row; the other parameters as above */
DEVICE void weigh(float (&s)[64], struct softmax &r, float (&shrink)[2], int key, int end,
	bool causal, int first, float scale, float slack = 0)
{
	const int row = first + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;

	if (key + BN > end || (causal && key + BN > first))
		mask_scores(s, key + threadIdx.x % 4 * 2, end, causal, row);
	softmax_step(r, s, shrink, scale, slack);
}

/* Writes O to a tile of 64 rows of `columns` columns, for TMA to store. */
template <int columns>
DEVICE void stage_output(__half *tile, const float (&o)[columns / 2], const struct softmax &r)
{
	stage_tile<columns>(tile, o, 1 / quad_sum(r.sum[0]), 1 / quad_sum(r.sum[1]));
}
