/* order: the memory order and scope that an instruction's modifiers say, in the
 * terms of events; `none` if they say nothing. */
#ifndef CONSAN_PTX_ORDER_H
#define CONSAN_PTX_ORDER_H

#include "libconsan/event/event.h"
#include "ir.h"

enum ev_sem ptx_sem_of(const struct ptx_insn *i, enum ev_sem none);
enum ev_scope ptx_scope_of(const struct ptx_insn *i, enum ev_scope none);
/* Could other clusters learn from it what its thread did before? By strong writes
 * to memory that they share, and as a grid. */
bool ptx_hands_over(const struct ptx_insn *i);

#endif
