/* wgmma: what the kernels with TMA and wgmma do with tiles in shared memory. Tiles are blocks
 * of 64 columns with TMA's 128-byte swizzle: of each row of 128 bytes, the 16-byte chunks are
 * permuted by the row's number modulo 8. */
#pragma once

#include "ptx.cuh"

/* d += a * b over the 64 columns of both tiles, not committed */
template <int n> DEVICE void multiply_tiles(float (&d)[n], const __half *a, const __half *b)
{
	const uint64_t da = wgmma_tile(a), db = wgmma_tile(b);

#pragma unroll
	for (int k = 0; k < 64 / 16; k++) /* 16 halves further: 32 bytes, 2 units */
		wgmma(d, da + 2 * k, db + 2 * k, true);
}

template <int n> DEVICE void clear(float (&d)[n])
{
#pragma unroll
	for (int i = 0; i < n; i++)
		d[i] = 0;
}

/* A warpgroup writes `columns` columns of its accumulators as halves to a tile of 64 rows, for
 * TMA to store. A thread's upper row is multiplied by `upper`, the one 8 rows below by `lower`.
 * The swizzle spreads 8 rows of 16 bytes over all banks. */
template <int columns>
DEVICE void stage_tile(__half *tile, const float *d, float upper = 1, float lower = 1)
{
	const int lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;

#pragma unroll
	for (int j = 0; j < columns / 8; j += 2) {
		const int chunk = j + lane / 16;

		stmatrix(tile + chunk / 8 * (64 * 64) + row * 64 + (chunk % 8 ^ row % 8) * 8,
			pack_half(d[4 * j] * upper, d[4 * j + 1] * upper),
			pack_half(d[4 * j + 2] * lower, d[4 * j + 3] * lower),
			pack_half(d[4 * j + 4] * upper, d[4 * j + 5] * upper),
			pack_half(d[4 * j + 6] * lower, d[4 * j + 7] * lower));
	}
}
