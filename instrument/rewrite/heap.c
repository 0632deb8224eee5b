/* heap: malloc and free in kernels (plan.h). Arguments and results are in .param variables, whose
 * accesses must stand directly beside the call (PTX ISA 7.1), with no branch in between: so the
 * call of free is recorded before its argument is stored, that of malloc after its result is
 * loaded. */
#include "plan.h"

#include <string.h>

#include "libconsan/ptx/opcodes.h"

#define REACH 8 /* instructions between a call and its st.param and ld.param */

static bool calls(const struct ptx_insn *i, const char *name)
{
	return i->op == OP_call && i->operand[0].kind == PO_FUNC && !i->operand[0].func->ninsn
		&& !strcmp(i->operand[0].func->name, name);
}

/* The st.param (by: -1) or ld.param (by: 1) of this variable that belongs to the call. */
static const struct ptx_insn *beside(const struct ptx_func *f, const struct ptx_insn *call, int by,
	const struct ptx_var *var)
{
	const unsigned op = by < 0 ? OP_st : OP_ld, address = by < 0 ? 0 : 1;
	const size_t at = (size_t)(call - f->insn);

	for (size_t n = 1; n <= REACH; n++) {
		const struct ptx_insn *i = call + by * (int)n;

		if (by < 0 ? n > at : at + n >= f->ninsn)
			return NULL;
		if (i->op == OP_call)
			return NULL;
		if (i->op == op && ptx_space_of(i, 0) == PS_param
				&& i->operand[address].kind == PO_ADDR && i->operand[address].var == var)
			return i;
	}
	return NULL;
}

bool plan_heap_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan_heap *h)
{
	const struct ptx_insn *in, *out;

	*h = (struct plan_heap){ .frees = calls(i, "free") };
	if ((!h->frees && !calls(i, "malloc")) || i->narg != 1)
		return false;
	in = beside(f, i, -1, i->arg[0].var);
	if (!in)
		return false;
	h->at = in;
	h->block = &in->operand[1];
	if (h->frees)
		return true;
	out = i->nret == 1 ? beside(f, i, 1, i->ret[0].var) : NULL;
	if (!out || out->operand[0].kind != PO_REG)
		return false;
	h->at = out;
	h->size = h->block;
	h->block = &out->operand[0];
	return h->size->kind != PO_REG || h->size->reg != h->block->reg;
}

const char *plan_heap_refuses(const struct ptx_func *f, const struct ptx_insn *i)
{
	struct plan_heap h;

	if (!calls(i, "malloc") && !calls(i, "free"))
		return NULL;
	return plan_heap_of(f, i, &h) ? NULL
		: "a call of malloc or free whose argument or result is not beside it is not recorded";
}

const struct ptx_insn *plan_heap_at(const struct ptx_func *f, const struct ptx_insn *i)
{
	const struct ptx_insn *end = f->insn + f->ninsn;
	struct plan_heap h;

	if ((i->op != OP_st && i->op != OP_ld) || ptx_space_of(i, 0) != PS_param)
		return NULL;
	for (const struct ptx_insn *k = i - f->insn > REACH ? i - REACH : f->insn;
			k < end && k <= i + REACH; k++)
		if (plan_heap_of(f, k, &h) && h.at == i)
			return k;
	return NULL;
}

bool plan_heap(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	struct plan_heap h;

	if (!plan_heap_of(f, i, &h))
		return false;
	p->elsewhere = p->sync = true;
	p->class = PLAN_LANES;
	p->value[p->nvalues].o = h.block;
	p->value[p->nvalues++].kind = VAL_U64;
	if (!h.size || h.size->kind != PO_REG) /* the decoder takes a constant from the instruction */
		return true;
	p->value[p->nvalues].o = h.size;
	p->value[p->nvalues++].kind = VAL_U64;
	return true;
}
