/* operands: the PTX that loads an instruction's operands into the scratch registers that a
 * hook records (hook.h), before the instruction is executed. */
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

/* Appends ".x", ".y", ".z" or ".w" if the operand is a component of a vector. */
void operand_component(struct text *t, const struct ptx_operand *o);
/* The first parameter of this kernel that may be or hold a tensor map; NULL: there is none. */
const struct ptx_var *operands_map_param(const struct ptx_func *f);
/* Sets the register to the address of the kernel's parameters, found from that parameter: an
 * assembler may copy a scalar parameter whose address is taken. */
void operands_params_address(struct text *t, const struct ptx_func *f, const char *reg);
/* Loads all values of a plan into prefix<first> and following. %cs_g: the generic address is
 * one of the state space that is recorded. */
void operands_values(const struct operands *w, const struct plan *p, const char *prefix,
	unsigned first);
/* Loads the value that the instruction has written (VAL_LOADED). */
void operands_loaded(const struct operands *w, const struct plan *p);
/* After operands_values(), for wmma: changes %cs_v0 to the address of the part of the tile that the lane
 * accesses. */
void operands_tile(const struct operands *w, const struct ptx_insn *i, const struct plan *p);

#endif
