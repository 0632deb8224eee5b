/* tcgen05_operand: copies of the operands of a tcgen05.mma without gaps, as the tile loops take
 * them. */
#ifndef CONSAN_EXEC_TCGEN05_OPERAND_H
#define CONSAN_EXEC_TCGEN05_OPERAND_H

#include "tcgen05_tile.h"
#include "tmem.h"

#include "libconsan/ptx/ptx.h"

/* The zero-column mask of .ws: t->zero, and by how many columns B is shifted. mask: TC_N bits */
unsigned tc_zero_mask(const struct tc_shape *s, uint64_t desc, uint64_t *mask);

/* Fill the images in x. group: whose copy of A in tensor memory; there is one for each group of
 * columns of D, in its lanes. */
void tc_gather_a(const struct tc_reads *a, const struct cta *c, struct tc_scratch *x);
void tc_gather_tmem(const struct tc_form *f, const struct tc_shape *s, uint32_t a, unsigned group,
	const struct cta *c, struct tc_scratch *x);
void tc_gather_b(const struct tc_shape *s, const struct tc_reads *b, struct cta *const cta[2],
	struct tc_scratch *x);
void tc_gather_slots(const struct tc_form *f, const struct tc_shape *s, uint32_t meta,
	const struct cta *c, struct tc_scratch *x);
void tc_gather_scales(const struct tc_shape *s, unsigned which, uint32_t addr, const struct cta *c,
	float *out);

#endif
