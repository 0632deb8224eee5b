/* operands: the PTX that brings what an instruction's operands are, ahead of it, into the
 * scratch registers that a hook records (hook.h). */
#ifndef CONSAN_INSTRUMENT_OPERANDS_H
#define CONSAN_INSTRUMENT_OPERANDS_H

#include "plan.h"
#include "rewrite.h"

struct operands {
	struct text *out;
	const struct rewrite *r;
	const struct ptx_func *f;
};

static inline const char *operand_name(const struct ptx_func *f, uint32_t reg)
{
	return f->reg[reg].name;
}

static inline unsigned operand_bits(const struct ptx_func *f, uint32_t reg)
{
	return ptx_type_bits((enum ptx_type)f->reg[reg].type);
}

/* ".x", if it is a component of a vector. */
void operand_component(struct text *t, const struct ptx_operand *o);
/* Some parameter of this kernel may be a tensor map. */
bool operands_maps(const struct ptx_func *f);
/* All values of a plan into prefix<first> and on; %cs_g: whether a generic address is
 * one of the memory that is meant. */
void operands_values(const struct operands *w, const struct plan *p, const char *prefix, unsigned first);
/* Then, of wmma: %cs_v0 becomes the address of what the lane takes of the tile. */
void operands_tile(const struct operands *w, const struct ptx_insn *i, const struct plan *p);

#endif
