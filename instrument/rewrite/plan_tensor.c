/* plan_tensor: see plan_tensor.h. */
#include "plan_tensor.h"

#include "libconsan/ptx/opcodes.h"

/* ---- tensor memory ---- */

static void add_mma(const struct ptx_insn *i, struct plan *p)
{
	struct tc_syntax s;

	tc_syntax_of(i, &s); /* plan_refuses() what it does not know */
	plan_add(p, s.d, VAL_TMEM);
	plan_add(p, s.a, s.form.a_tmem ? VAL_TMEM : VAL_U64);
	plan_add(p, s.b, VAL_U64);
	if (s.meta)
		plan_add(p, s.meta, VAL_TMEM);
	plan_add(p, s.idesc, VAL_U32);
	for (unsigned k = 0; s.scales[0] && k < 2; k++)
		plan_add(p, s.scales[k], VAL_TMEM);
	for (unsigned k = 0; s.disabled && k < s.disabled->n; k++)
		plan_add(p, &s.disabled->list[k], VAL_U32);
	if (s.enable)
		plan_add(p, s.enable, VAL_PRED);
	if (s.mask)
		plan_add(p, s.mask, VAL_U64);
}

/* What is issued is recorded before. An alloc is recorded after, as its result is part of the
 * record, and before, as it may wait. */
bool plan_tcgen05(const struct ptx_insn *i, struct plan *p)
{
	struct tmem_form f;

	p->class = PLAN_LANES;
	p->sync = p->before = true;
	switch ((enum ptx_op)i->op) {
	case OP_tcgen05_alloc:
		p->before = false;
		p->after = p->waits = true;
		p->window = ptx_space_of(i, 0) == PS_none;
		plan_add(p, &i->operand[0], VAL_SHARED);
		plan_add(p, &i->operand[1], VAL_U32);
		p->value[p->nvalues].o = NULL;
		p->value[p->nvalues++].kind = VAL_LOADED;
		return p->uniform = true;
	case OP_tcgen05_dealloc:
		plan_add(p, &i->operand[0], VAL_U32);
		plan_add(p, &i->operand[1], VAL_U32);
		return p->uniform = true;
	case OP_tcgen05_ld: case OP_tcgen05_ld_red: case OP_tcgen05_st:
		tmem_form_of(i, &f);
		plan_add(p, f.address, VAL_TMEM);
		return p->uniform = true;
	case OP_tcgen05_cp:
		plan_add(p, &i->operand[1], VAL_U64);
		plan_add(p, &i->operand[0], VAL_TMEM);
		return true;
	case OP_tcgen05_shift:
		plan_add(p, &i->operand[0], VAL_TMEM);
		return true;
	case OP_tcgen05_mma: case OP_tcgen05_mma_sp: case OP_tcgen05_mma_ws: case OP_tcgen05_mma_ws_sp:
		add_mma(i, p);
		return true;
	case OP_tcgen05_commit:
		p->window = ptx_space_of(i, 0) == PS_none;
		plan_add(p, &i->operand[0], VAL_SHARED);
		if (i->noperands > 1)
			plan_add(p, &i->operand[1], VAL_U32);
		return true;
	default:
		return true; /* relinquish, waits (no other thread sees when they return), fences */
	}
}

/* ---- cluster launch control ---- */

bool plan_cancel(const struct ptx_insn *i, struct plan *p)
{
	p->class = PLAN_LANES;
	p->before = true;
	switch ((enum ptx_op)i->op) {
	case OP_clusterlaunchcontrol_try_cancel:
		p->sync = true;
		plan_add(p, &i->operand[0], VAL_SHARED);
		plan_add(p, &i->operand[1], VAL_SHARED);
		return true;
	case OP_clusterlaunchcontrol_query_cancel_is_canceled:
	case OP_clusterlaunchcontrol_query_cancel_get_first_ctaid:
	case OP_clusterlaunchcontrol_query_cancel_get_first_ctaid_x:
	case OP_clusterlaunchcontrol_query_cancel_get_first_ctaid_y:
	case OP_clusterlaunchcontrol_query_cancel_get_first_ctaid_z:
		plan_add(p, &i->operand[1], VAL_CANCELED);
		return p->uniform = true;
	default:
		return p->before = false;
	}
}

const char *plan_tcgen05_refuses(const struct ptx_insn *i)
{
	struct tc_syntax s;
	struct tmem_form f;
	struct tc_cp c;

	switch ((enum ptx_op)i->op) {
	case OP_tcgen05_ld: case OP_tcgen05_ld_red: case OP_tcgen05_st:
		return tmem_form_of(i, &f) ? "this access to tensor memory is not recorded" : NULL;
	case OP_tcgen05_mma: case OP_tcgen05_mma_sp: case OP_tcgen05_mma_ws: case OP_tcgen05_mma_ws_sp:
		return tc_syntax_of(i, &s) ? "this form of tcgen05.mma is not recorded" : NULL;
	case OP_tcgen05_cp:
		return tc_cp_of(i, &c) ? "this form of tcgen05.cp is not recorded" : NULL;
	default:
		return NULL;
	}
}
