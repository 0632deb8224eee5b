/* sparse: matrices A of which half of the elements are 0 (ISA, "Sparse matrix storage").
 *
 * A row is chunks of four units, of which two are stored; four bits of metadata hold their
 * positions, the one of the first in the low two bits. A unit is a byte (an 8-bit element, or two
 * of 4 bits), or two bytes (`wide`: a 16-bit element, or half of a tf32, whose 1:2 structure is
 * that of its halves). */
#ifndef CONSAN_EXEC_SPARSE_H
#define CONSAN_EXEC_SPARSE_H

#include "machine.h"

/* Expands a row: chunks * 4 units at out from chunks * 2 units at in. meta: of the row. */
void sparse_expand(unsigned char *out, const unsigned char *in, unsigned chunks, bool wide,
	uint64_t meta);

/* The metadata of a row, 0 to 15, of the rows of a warp that holds it in this register; selector:
 * of the threads of each four that hold it. */
uint64_t sparse_meta(const l32 *reg, unsigned selector, unsigned row, unsigned chunks, bool wide);

/* Is the selector valid? */
bool sparse_selector(unsigned selector, unsigned chunks);

#endif
