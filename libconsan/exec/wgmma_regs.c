/* wgmma_regs: in functions with wgmma, reports the accesses of plain instructions to registers that
 * a wgmma uses. An op before each such instruction emits EV_REGISTER_ACCESS. */
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

struct reg_access { uint16_t nread, nwritten; bool move; uint32_t reg[]; };

static enum step op_regs(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct reg_access *n = x->i.p;

	if (!w->sink)
		return STEP_NEXT;
	struct event e = ex_event(w, x, EV_REGISTER_ACCESS, lanes);
	e.register_access.move = n->move;
	e.register_access.regs = (struct ev_regs){ n->reg, n->nread };
	e.register_access.mode = MODE_READ;
	if (n->nread)
		ex_emit(w->cluster, &e);
	e.register_access.regs = (struct ev_regs){ n->reg + n->nread, n->nwritten };
	e.register_access.mode = MODE_WRITE;
	if (n->nwritten)
		ex_emit(w->cluster, &e);
	return STEP_NEXT;
}

static void collect_regs(const struct ptx_operand *o, bool mark, bool *used, uint32_t *out,
	unsigned *n)
{
	if (o->kind == PO_REG || (o->kind == PO_ADDR && o->reg != PTX_NO_REG)) {
		if (mark)
			used[o->reg] = true;
		else if (used[o->reg] && *n < 2048)
			out[(*n)++] = o->reg;
		return;
	}
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			collect_regs(&o->list[i], mark, used, out, n);
}

/* Accumulators and A fragments: the vectors among the operands. */
bool *wgmma_regs_used(struct decoder *d)
{
	const struct ptx_func *f = d->fn->f;
	bool *used = NULL;

	for (size_t i = 0; i < f->ninsn; i++) {
		const struct ptx_insn *in = &f->insn[i];

		if (in->op != OP_wgmma_mma_async && in->op != OP_wgmma_mma_async_sp)
			continue;
		if (!used)
			used = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < 2 && o < in->noperands; o++)
			if (in->operand[o].kind == PO_VEC)
				collect_regs(&in->operand[o], true, used, NULL, NULL);
	}
	d->k->has_wgmma |= used != NULL;
	return used;
}

void wgmma_regs_access(struct decoder *d, const struct ptx_insn *i, bool *used,
	uint32_t guard, uint32_t guard_xor, uint32_t site)
{
	static _Thread_local uint32_t found[2048];
	unsigned n = 0, nread, ndst = dec_destinations(i);
	struct reg_access *access;
	struct xop *x;

	if (ptx_effect_of(i->op) == EF_WGMMA)
		return;
	for (unsigned o = ndst; o < i->noperands; o++)
		collect_regs(&i->operand[o], false, used, found, &n);
	nread = n;
	for (unsigned o = 0; o < ndst; o++)
		collect_regs(&i->operand[o], false, used, found, &n);
	if (!n)
		return;
	access = dec_alloc(d, sizeof *access + n * sizeof access->reg[0]);
	access->nread = (uint16_t)nread;
	access->move = i->op == OP_mov;
	access->nwritten = (uint16_t)(n - nread);
	memcpy(access->reg, found, n * sizeof access->reg[0]);
	x = dec_before(d, op_regs);
	x->guard = guard;
	x->guard_xor = guard_xor;
	x->site = site;
	x->i.p = access;
}
