/* loaded: registers that a load writes and that are certainly read soon, known from the code
 * alone. */
#ifndef CONSAN_PTX_LOADED_H
#define CONSAN_PTX_LOADED_H

#include "ir.h"

/* tcgen05.ld: is each of its registers read on every path before the thread waits for it, executes
 * another tcgen05 instruction than a load, synchronizes or exits? Then the load is complete before
 * that, as the hardware keeps the order of a register's write and read. */
bool ptx_load_is_read(const struct ptx_func *f, const struct ptx_insn *load);

#endif
