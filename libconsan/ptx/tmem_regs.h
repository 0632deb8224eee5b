/* tmem_regs: the registers that the tcgen05.ld instructions of a function write, and where such a
 * load may be in flight. */
#ifndef CONSAN_PTX_TMEM_REGS_H
#define CONSAN_PTX_TMEM_REGS_H

#include "ir.h"

struct tmem_regs {
	uint8_t *loaded;           /* by register: does a load write it? NULL: f has no load */
	bool *pending;             /* by instruction: may a load of f be in flight before it? */
};

/* By register, nonzero if a load writes it. NULL: f has no load. free() it. */
uint8_t *tmem_loaded(const struct ptx_func *f);
struct tmem_regs tmem_regs_find(const struct ptx_func *f);
void tmem_regs_free(struct tmem_regs *r);

#endif
