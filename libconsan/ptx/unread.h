/* unread: results that nothing reads, known from the code alone. */
#ifndef CONSAN_PTX_UNREAD_H
#define CONSAN_PTX_UNREAD_H

#include "ir.h"

/* Is the instruction a read-modify-write whose result no instruction reads: red, or an atom whose
 * destination is not used? Compilers emit atom for atomicAdd(), whether its result is used or not. */
bool ptx_result_unread(const struct ptx_func *f, const struct ptx_insn *i);
/* Is the instruction a weak load whose value no instruction reads? */
bool ptx_load_unread(const struct ptx_func *f, const struct ptx_insn *i);

#endif
