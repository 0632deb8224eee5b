/* tile: where the elements of a tile of halves stand in shared memory. Rows
 * hold `width` halves: 16, 32 or a multiple of 64.
 *
 *   NAIVE     row after row. Rows of 128 bytes begin in the same bank, so the
 *             eight rows that ldmatrix reads at a time come one by one.
 *   PADDED    16 bytes lie fallow behind each row, which shifts the next one.
 *   SWIZZLED  nothing lies fallow: the 16-byte chunks of a row change places
 *             within 128 bytes, by an exclusive or with the row's number. */
#pragma once

#include "ptx.cuh"

enum layout { SWIZZLED, PADDED, NAIVE };
#define LAYOUTS "swizzled|padded|naive"

/* Halves from the start of the tile */
template <int width, int layout = SWIZZLED> DEVICE int tile_at(int row, int col)
{
	constexpr int chunks = width / 8 < 8 ? width / 8 : 8; /* that change places */
	constexpr int rows = 8 / chunks; /* in 128 bytes */

	if (layout != SWIZZLED)
		return row * (width + (layout == PADDED ? 8 : 0)) + col;
	return row * width + ((col / 8) ^ (row / rows % chunks)) * 8 + col % 8;
}

/* The same in two steps, for addresses that are needed again and again: from
 * `own`, the place of a thread's first row and column, to that many rows and
 * columns further. Rows of both may not have binary digits in common below 8,
 * columns below 64: then adding is an exclusive or, and constants stay so. */
template <int width, int layout = SWIZZLED> DEVICE int tile_step(int own, int rows, int cols)
{
	constexpr int chunks = width / 8 < 8 ? width / 8 : 8, span = chunks * 8;

	if (layout != SWIZZLED)
		return own + tile_at<width, layout>(rows, cols);
	return (own ^ cols % span ^ rows / (8 / chunks) % chunks * 8) + rows * width +
		cols / span * span;
}

/* In a register from here on. Left alone, the compiler saves registers and
 * computes addresses anew for each tile, in the tensor cores' time. */
DEVICE int keep(int x)
{
	asm volatile("" : "+r"(x));
	return x;
}

/* Halves of a tile */
template <int width, int layout = SWIZZLED>
__host__ __device__ constexpr int tile_size(int rows)
{
	return rows * (width + (layout == PADDED ? 8 : 0));
}
