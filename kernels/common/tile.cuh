/* tile: the layout of a tile of halves in shared memory. Rows hold `width`
 * halves: 16, 32 or a multiple of 64.
 *
 *   NAIVE     row after row. Rows of 128 bytes begin in the same bank, so the
 *             eight rows that ldmatrix reads at a time conflict.
 *   PADDED    16 unused bytes after each row shift the next one.
 *   SWIZZLED  no unused bytes: the 16-byte chunks of a row are permuted within
 *             128 bytes, by an exclusive or with the row's number. */
#pragma once

#include "ptx.cuh"

enum layout { SWIZZLED, PADDED, NAIVE };
#define LAYOUTS "swizzled|padded|naive"

/* The offset of an element, in halves from the start of the tile */
template <int width, int layout = SWIZZLED> DEVICE int tile_at(int row, int col)
{
	constexpr int chunks = width / 8 < 8 ? width / 8 : 8; /* that are permuted */
	constexpr int rows = 8 / chunks; /* in 128 bytes */

	if (layout != SWIZZLED)
		return row * (width + (layout == PADDED ? 8 : 0)) + col;
	return row * width + ((col / 8) ^ (row / rows % chunks)) * 8 + col % 8;
}

/* The same in two steps, for addresses that are used repeatedly: from `own`, the
 * offset of a thread's first row and column, to `rows` and `cols` further. The rows
 * of both must have no binary digits in common below 8, the columns none below 64:
 * then the addition is an exclusive or, and constant operands stay constant. */
template <int width, int layout = SWIZZLED> DEVICE int tile_step(int own, int rows, int cols)
{
	constexpr int chunks = width / 8 < 8 ? width / 8 : 8, span = chunks * 8;

	if (layout != SWIZZLED)
		return own + tile_at<width, layout>(rows, cols);
	return (own ^ cols % span ^ rows / (8 / chunks) % chunks * 8) + rows * width +
		cols / span * span;
}

/* Keeps x in a register from here on. Without it the compiler saves registers and
 * recomputes addresses for each tile, which delays the tensor cores. */
DEVICE int keep(int x)
{
	asm volatile("" : "+r"(x));
	return x;
}

/* The size of a tile, in halves */
template <int width, int layout = SWIZZLED>
__host__ __device__ constexpr int tile_size(int rows)
{
	return rows * (width + (layout == PADDED ? 8 : 0));
}
