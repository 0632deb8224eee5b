/* loaded: registers that a load writes and that are used soon, known from the code alone. */
#ifndef CONSAN_PTX_LOADED_H
#define CONSAN_PTX_LOADED_H

#include "ir.h"

/* tcgen05.ld: are its registers all read or overwritten before the thread waits for the load,
 * executes another tcgen05 instruction than a load, synchronizes or exits? Then the load is complete
 * before that, as the hardware keeps the order of accesses to a register. Of paths between which a
 * parameter of the kernel chooses, one is sufficient. */
bool ptx_load_is_read(const struct ptx_func *f, const struct ptx_insn *load);

#endif
