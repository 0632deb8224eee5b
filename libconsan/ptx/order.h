/* order: the memory order and scope of an instruction's modifiers, as event enums;
 * `none` if the instruction has no such modifier. */
#ifndef CONSAN_PTX_ORDER_H
#define CONSAN_PTX_ORDER_H

#include "libconsan/event/event.h"
#include "ir.h"

enum ev_sem ptx_sem_of(const struct ptx_insn *i, enum ev_sem none);
enum ev_scope ptx_scope_of(const struct ptx_insn *i, enum ev_scope none);
/* Can this instruction order earlier operations of its thread before those of other
 * clusters? Strong writes to shared memory of the grid can, and griddepcontrol. */
bool ptx_hands_over(const struct ptx_insn *i);
/* Can this instruction read, by a strong access, what other clusters write to global memory? What
 * it returns depends on the order in which clusters run. */
bool ptx_observes(const struct ptx_insn *i);
/* Does it access multicast addresses? */
bool ptx_is_multimem(const struct ptx_insn *i);
/* Does it access a texture or surface; read one? Queries do not. */
bool ptx_is_texture(const struct ptx_insn *i);
bool ptx_reads_texture(const struct ptx_insn *i);
/* Can it be a strong load of shared memory? */
bool ptx_polls_shared(const struct ptx_insn *i);

#endif
