/* tc_book: the pieces of shared memory that a matrix A or B of a tcgen05.mma has. */
#ifndef CONSAN_PTX_TC_BOOK_H
#define CONSAN_PTX_TC_BOOK_H

#include "libconsan/base/base.h"
#include "tc_shape.h"

struct tc_matrix {
	uint64_t desc;
	uint16_t rows;             /* a multiple of 8; mn: k rows of `rows` elements */
	uint8_t bytes, type;       /* along K, of an element */
	bool mn;                   /* MN-major */
};

struct tc_reads {
	struct tc_matrix of;
	uint32_t top;              /* the highest piece */
	uint16_t n, nspans;
	uint32_t piece[TC_B_PIECES]; /* by rows or, if MN-major, by k */
	struct ev_span span[TC_B_PIECES];
};

/* A cache; zero it before the first use. Like the operands of wgmma (wg_desc.h), the same matrices
 * return in each iteration over a ring of buffers. */
struct tc_book {
	struct tc_reads *page[128];
};

/* Valid until the next call. more: rows of B behind those of the shape. */
const struct tc_reads *tc_book_a(struct tc_book *book, const struct tc_shape *s, uint64_t desc);
const struct tc_reads *tc_book_b(struct tc_book *book, const struct tc_shape *s, uint64_t desc,
	unsigned more);
void tc_book_close(struct tc_book *book);

#endif
