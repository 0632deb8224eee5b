/* wgmma_regs: the registers that the wgmma operations of a function use, and the instructions that
 * name them. The executor and the decoder of GPU records report the same accesses. */
#ifndef CONSAN_PTX_WGMMA_REGS_H
#define CONSAN_PTX_WGMMA_REGS_H

#include "ir.h"

#define WGMMA_REG_USES 2048u

/* What a register is to the wgmma operations of its function. A mov in flight is legal in practice
 * (nvcc emits it), so a value in flight may be in registers that no wgmma names. */
enum wgmma_reg {
	WGMMA_REG_NONE,
	WGMMA_REG_COPY,            /* a mov may copy an accumulator to it, perhaps through others */
	WGMMA_REG_OPERAND,         /* an accumulator, or a fragment of A */
};

/* By register number, an enum wgmma_reg. NULL: f has no wgmma. free() it. */
uint8_t *wgmma_regs(const struct ptx_func *f);
/* The registers of these that the instruction reads, *nread of them, then those that it writes.
 * Returns how many there are. */
unsigned wgmma_reg_uses(const struct ptx_insn *i, const uint8_t *regs,
	uint32_t found[WGMMA_REG_USES], unsigned *nread);
/* Is one of these registers an operand of a wgmma? */
bool wgmma_reg_operand(const uint8_t *regs, const uint32_t *found, unsigned n);

#endif
