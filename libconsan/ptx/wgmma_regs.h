/* wgmma_regs: the registers that the wgmma operations of a function use, and the instructions that
 * name them. The executor and the decoder of GPU records report the same accesses. */
#ifndef CONSAN_PTX_WGMMA_REGS_H
#define CONSAN_PTX_WGMMA_REGS_H

#include "ir.h"

#define WGMMA_REG_USES 2048u

/* By register number: accumulators and A fragments of some wgmma of f. NULL: there is none.
 * free() it. */
bool *wgmma_regs(const struct ptx_func *f);
/* The registers in `used` that the instruction reads, *nread of them, then those that it writes.
 * Returns how many there are. */
unsigned wgmma_reg_uses(const struct ptx_insn *i, const bool *used, uint32_t found[WGMMA_REG_USES],
	unsigned *nread);

#endif
