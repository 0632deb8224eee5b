/* tcgen05_regs: instructions that name registers of a tcgen05.ld in flight. */
#ifndef CONSAN_EXEC_TCGEN05_REGS_H
#define CONSAN_EXEC_TCGEN05_REGS_H

#include "machine.h"

#include "libconsan/ptx/ptx.h"

/* Adds the op before i that performs the loads whose registers i names, or all at the end of a
 * function and before a call; x has i's guard and site. */
void tmem_regs_before(struct decoder *d, const struct ptx_insn *i, const struct tmem_regs *r,
	const struct xop *x);

#endif
