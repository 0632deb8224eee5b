/* sparse: mma.sync and wgmma with a sparse A, of which half of the elements are stored (ISA, "Sparse
 * matrix storage"). An element of B takes part only if A's row stores an element for it, as on an
 * H200. The arithmetic is tcgen05_tile's, on images of the operands and rows of D.
 *
 * A row is chunks of four units, of which two are stored; four bits of metadata hold their
 * positions, the one of the first in the low two bits. A unit is an element of 8 or 16 bits, two of
 * 4 bits, or half of a tf32, whose 1:2 structure is that of its halves. */
#ifndef CONSAN_EXEC_SPARSE_H
#define CONSAN_EXEC_SPARSE_H

#include "machine.h"
#include "tcgen05_tile.h"
#include "tile.h"

/* Where the n stored elements of a row are in it. bits: of an element; meta: of the row */
void sparse_slots(uint8_t *slot, unsigned bits, unsigned n, uint64_t meta);

/* The metadata of a row, 0 to 15, of the rows of a warp that holds it in this register; selector:
 * of the threads of each four that hold it. */
uint64_t sparse_meta(const l32 *reg, unsigned selector, unsigned row, unsigned chunks, bool wide);

/* Is the selector valid? */
bool sparse_selector(unsigned selector, unsigned chunks);

/* D += A * B of all kinds: m rows, n columns, k elements along the dense A; d: D, rows of n. What
 * else the kind needs is left to the caller: images, slots, scales, clamping. */
struct tc_tile sparse_tile(const uint8_t type[2], enum tile_acc acc, unsigned m, unsigned n,
	unsigned k, uint32_t *d, struct tc_scratch *x);

/* 16 rows of D, of n columns, from and to the fragment that a warp holds in these registers; f16 is
 * widened to f32. */
void sparse_get_d(uint32_t *d, unsigned n, enum tile_acc acc, const void *const *reg);
void sparse_put_d(const uint32_t *d, unsigned n, enum tile_acc acc, void *const *reg);

#endif
