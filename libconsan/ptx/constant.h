/* constant: which values are known to be the same from the code alone. */
#ifndef CONSAN_PTX_CONSTANT_H
#define CONSAN_PTX_CONSTANT_H

#include "ir.h"

/* For parse.c: by register, the only instruction that writes it, or NULL. */
const struct ptx_insn **constant_only_writers(struct arena *a, const struct ptx_func *f);
/* Does the instruction store one value, always the same: computed from constants and kernel parameters
 * alone, or also from what a CTA knows of itself? Then *value is a hash of the expression: two stores
 * of one kernel with the same hash store the same. Only for st of one element. */
enum site_constant ptx_stores_constant(const struct ptx_func *f, const struct ptx_insn *i,
	uint64_t *value);

#endif
