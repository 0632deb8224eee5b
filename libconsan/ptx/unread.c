/* unread: see unread.h. */
#include "unread.h"
#include "opcodes.h"
#include "order.h"

static bool unread(const struct ptx_func *f, const struct ptx_operand *o)
{
	if (o->kind == PO_REG)
		return f->readers->first[o->reg] == f->readers->first[o->reg + 1];
	if (o->kind != PO_VEC && o->kind != PO_PAIR)
		return true; /* a sink */
	for (unsigned k = 0; k < o->n; k++)
		if (!unread(f, &o->list[k]))
			return false;
	return true;
}

bool ptx_result_unread(const struct ptx_func *f, const struct ptx_insn *i)
{
	return i->op == OP_red || (i->op == OP_atom && f->readers && unread(f, &i->operand[0]));
}

bool ptx_load_unread(const struct ptx_func *f, const struct ptx_insn *i)
{
	return i->op == OP_ld && ptx_sem_of(i, SEM_WEAK) == SEM_WEAK && f->readers
		&& unread(f, &i->operand[0]);
}
