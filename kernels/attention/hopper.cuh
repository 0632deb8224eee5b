/* hopper: what the attention kernels for Hopper have in common: the two products
 * on tensor cores, the softmax between them, and the way of O to memory. One
 * warpgroup works on 64 rows of Q. It does not load anything and waits for
 * nothing but its own warpgroup.
 *
 * Tiles in shared memory are blocks of 64 columns, one behind the other, with
 * TMA's 128-byte swizzle. P never leaves the registers: the accumulator of Q K^T
 * has the layout that the second product wants of its A operand. */
#pragma once

#include "../common/ptx.cuh"

enum {
	WM = 64,                /* rows of a warpgroup */
	BN = 128,               /* keys of a tile */
};

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

/* P as halves, for multiply_values() */
DEVICE void pack_weights(uint32_t (&p)[32], const float (&s)[64])
{
#pragma unroll
	for (int i = 0; i < 32; i++)
		p[i] = pack_half(s[2 * i], s[2 * i + 1]);
}

/* Minus infinity for keys from `end` on and, if causal, after the row's own.
 * `key` and `row` are this thread's first ones. */
DEVICE void mask_scores(float (&s)[64], int key, int end, bool causal, int row)
{
#pragma unroll
	for (int i = 0; i < 64; i++) {
		const int at = key + i / 4 * 8 + i % 2;

		if (at >= end || (causal && at > row + i / 2 % 2 * 8))
			s[i] = -INFINITY;
	}
}

/* Over the four lanes that hold one row */
DEVICE float quad_max(float x)
{
	x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
	return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

DEVICE float quad_sum(float x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}

/* Scores become weights. What was summed before must be multiplied by `shrink`,
 * for both rows; `scale` makes scores powers of 2. */
DEVICE void softmax_step(struct softmax &r, float (&s)[64], float (&shrink)[2], float scale)
{
#pragma unroll
	for (int h = 0; h < 2; h++) {
		float top = r.most[h];

#pragma unroll
		for (int i = 2 * h; i < 64; i += 4)
			top = fmaxf(top, fmaxf(s[i], s[i + 1]));
		top = quad_max(top);

		/* A row may have seen no key at all */
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

/* O, its rows multiplied by `norm`, as halves to a tile of 64 rows. Eight rows of
 * 16 bytes go to eight different groups of banks, as the swizzle has it. */
template <int size>
DEVICE void stage_rows(__half *tile, const float (&o)[size], const float (&norm)[2])
{
	const int lane = threadIdx.x % 32, r = threadIdx.x % 128 / 32 * 16 + lane % 16;

#pragma unroll
	for (int j = 0; j < size / 4; j += 2) {
		const int chunk = j + lane / 16;

		stmatrix(tile + chunk / 8 * (WM * 64) + r * 64 + (chunk % 8 ^ r % 8) * 8,
			pack_half(o[4 * j] * norm[0], o[4 * j + 1] * norm[0]),
			pack_half(o[4 * j + 2] * norm[1], o[4 * j + 3] * norm[1]),
			pack_half(o[4 * j + 4] * norm[0], o[4 * j + 5] * norm[0]),
			pack_half(o[4 * j + 6] * norm[1], o[4 * j + 7] * norm[1]));
	}
}
