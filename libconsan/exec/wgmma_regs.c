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

void wgmma_regs_access(struct decoder *d, const struct ptx_insn *i, const bool *used,
	uint32_t guard, uint32_t guard_xor, uint32_t site)
{
	uint32_t found[WGMMA_REG_USES];
	unsigned n, nread;
	struct reg_access *access;
	struct xop *x;

	if (ptx_effect_of(i->op) == EF_WGMMA)
		return;
	n = wgmma_reg_uses(i, used, found, &nread);
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
