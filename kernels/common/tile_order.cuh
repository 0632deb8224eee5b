/* tile_order: the order in which CTAs take the tiles of C: down a band of `band` rows of
 * tiles, then to the next column of the band. CTAs that run at the same time then read the
 * same rows of A and columns of B, which L2 holds. */
#pragma once

/* In tiles */
struct tile_place {
	int row, col;
};

/* Where the i-th tile of rows x cols is */
static __device__ __forceinline__ tile_place place_in_band(int i, int rows, int cols, int band)
{
	const int first = i / (band * cols) * band, high = min(band, rows - first);
	const int in = i - first * cols;

	return {first + in % high, in / high};
}
