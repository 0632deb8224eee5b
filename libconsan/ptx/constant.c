/* constant: see constant.h. */
#include "constant.h"
#include "opcodes.h"

#include <stdlib.h>

static void note_writes(const struct ptx_insn **only, bool *several, const struct ptx_insn *i,
	const struct ptx_operand *o)
{
	for (unsigned k = 0; (o->kind == PO_VEC || o->kind == PO_PAIR) && k < o->n; k++)
		note_writes(only, several, i, &o->list[k]);
	if (o->kind != PO_REG)
		return;
	several[o->reg] |= only[o->reg] != NULL;
	only[o->reg] = i;
}

const struct ptx_insn **constant_only_writers(struct arena *a, const struct ptx_func *f)
{
	const struct ptx_insn **only = arena_alloc(a, (f->nreg + 1) * sizeof *only);
	bool *several = base_alloc(f->nreg + 1);

	for (size_t n = 0; n < f->ninsn; n++) {
		const struct ptx_insn *i = &f->insn[n];

		for (unsigned k = 0; k < ptx_written(i); k++)
			note_writes(only, several, i, &i->operand[k]);
		for (unsigned k = 0; k < i->nret; k++)
			note_writes(only, several, i, &i->ret[k]);
	}
	for (size_t r = 0; r < f->nreg; r++)
		if (several[r])
			only[r] = NULL;
	free(several);
	return only;
}

static bool immediate(const struct ptx_operand *o, uint64_t *value)
{
	*value = (uint64_t)o->imm;
	return o->kind == PO_IMM || o->kind == PO_F32 || o->kind == PO_F64;
}

bool ptx_stores_constant(const struct ptx_func *f, const struct ptx_insn *i, uint64_t *value)
{
	const struct ptx_operand *o = i->op == OP_st ? &i->operand[1] : NULL;
	const struct ptx_insn *from;

	if (!o || immediate(o, value))
		return o;
	if (o->kind != PO_REG || o->elem || !f->only_writer)
		return false;
	from = f->only_writer[o->reg];
	return from && from->op == OP_mov && from->guard == PTX_NO_REG
		&& immediate(&from->operand[1], value);
}
