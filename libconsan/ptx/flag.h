/* flag: does a load read a flag, or data? Does an atomic take a lock? Known from the code alone:
 * what the value is used for. */
#ifndef CONSAN_PTX_FLAG_H
#define CONSAN_PTX_FLAG_H

#include "ir.h"

/* True if the value that the load `i` of f returns only decides where threads go, or if the load is
 * polled: a loop repeats it at one address until the value lets the loop end. The first of several
 * loads of one address counts as polled if another one is: compilers repeat the first iteration of
 * a loop before it. */
bool ptx_reads_flag(const struct ptx_func *f, const struct ptx_insn *i);
/* Does a loop repeat the load or atomic at one address until its result ends the loop? */
bool ptx_is_polled(const struct ptx_func *f, const struct ptx_insn *i);
/* Does the instruction take a lock: a compare-and-swap or exchange that a loop repeats, with the
 * same operands at one address, until its result ends the loop? */
bool ptx_takes_lock(const struct ptx_func *f, const struct ptx_insn *i);

#endif
