/* unread: see unread.h. */
#include "unread.h"
#include "opcodes.h"
#include "order.h"

static void note_reads(bool *read, const struct ptx_operand *o)
{
	if ((o->kind == PO_REG || o->kind == PO_ADDR) && o->reg != PTX_NO_REG)
		read[o->reg] = true;
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			note_reads(read, &o->list[k]);
}

bool *unread_registers_read(struct arena *a, const struct ptx_func *f)
{
	bool *read = arena_alloc(a, f->nreg + 1);

	for (size_t n = 0; n < f->ninsn; n++) {
		const struct ptx_insn *i = &f->insn[n];

		if (i->guard != PTX_NO_REG)
			read[i->guard] = true;
		for (unsigned k = 0; k < i->noperands; k++)
			if (k >= ptx_written(i) || i->operand[k].kind == PO_ADDR)
				note_reads(read, &i->operand[k]);
		for (unsigned k = 0; k < i->narg; k++)
			note_reads(read, &i->arg[k]);
	}
	return read;
}

static bool unread(const struct ptx_func *f, const struct ptx_operand *o)
{
	if (o->kind == PO_REG)
		return !f->read[o->reg];
	if (o->kind != PO_VEC && o->kind != PO_PAIR)
		return true; /* a sink */
	for (unsigned k = 0; k < o->n; k++)
		if (!unread(f, &o->list[k]))
			return false;
	return true;
}

bool ptx_result_unread(const struct ptx_func *f, const struct ptx_insn *i)
{
	return i->op == OP_red || (i->op == OP_atom && f->read && unread(f, &i->operand[0]));
}

bool ptx_load_unread(const struct ptx_func *f, const struct ptx_insn *i)
{
	return i->op == OP_ld && ptx_sem_of(i, SEM_WEAK) == SEM_WEAK && f->read
		&& unread(f, &i->operand[0]);
}
