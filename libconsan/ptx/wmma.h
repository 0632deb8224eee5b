/* wmma: which bytes of memory a wmma.load or wmma.store accesses, by lane. The ISA does
 * not define which lane holds which element. The executor and the decoder both use
 * this assignment: each lane has one run of bytes, lane by lane along the lines
 * (rows, or columns if .col). */
#ifndef CONSAN_PTX_WMMA_H
#define CONSAN_PTX_WMMA_H

#include "ir.h"

struct wmma_part {
	char matrix;               /* 'a', 'b', 'c'; d is a 'c' */
	bool col;                  /* lines are columns */
	uint8_t type;              /* enum ptx_type of an element */
	uint16_t m, n, k;
	uint16_t lines, length;    /* length: elements of a line; the default stride, too */
	uint16_t bits;             /* of an element */
	uint16_t lane_bytes;       /* what a lane takes */
	uint16_t lanes;            /* on a line, a power of two */
};

bool wmma_is(const struct ptx_insn *i); /* a load or store */
/* False: no such shape with this type. */
bool wmma_part_of(const struct ptx_insn *i, struct wmma_part *p);
/* Of a lane's bytes: an element's, 1 at least. */
uint32_t wmma_align(const struct wmma_part *p);
/* Is this a shape of wmma, for A of this type (B's is the same)? */
bool wmma_shape(unsigned m, unsigned n, unsigned k, enum ptx_type a);

#endif
