/* tcgen05_regs: registers of a tcgen05.ld in flight. The ISA lets the load read tensor memory until
 * wait::ld, but orders it before an instruction that depends on its registers ("Register
 * dependencies, same thread"), as the hardware's scoreboard does. So it is performed at the first
 * instruction that names one of them, and at wait::ld otherwise. */
#include "tcgen05_regs.h"

#include "internal.h"
#include "tmem.h"

#include "libconsan/ptx/opcodes.h"

struct uses { uint32_t n, slot[]; };

/* i.p: struct uses; NULL: all loads */
static enum step op_regs(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct uses *u = x->i.p;

	(void)lanes;
	if (w->async->access.n)
		tmem_force_loads(w, u ? u->slot : NULL, u ? u->n : 0);
	return STEP_NEXT;
}

void tmem_regs_before(struct decoder *d, const struct ptx_insn *i, const struct tmem_regs *r,
	const struct xop *x)
{
	const bool leaves = i->op == OP_call || i->op == OP_ret || i->op == OP_exit;
	uint32_t found[WGMMA_REG_USES];
	unsigned n, nread;
	struct uses *u = NULL;
	struct xop *before;

	if (!r->loaded || !r->pending[i - d->fn->f->insn])
		return;
	n = leaves ? 0 : wgmma_reg_uses(i, r->loaded, found, &nread);
	if (!n && !leaves)
		return;
	if (n) {
		u = dec_alloc(d, sizeof *u + n * sizeof *u->slot);
		u->n = n;
		for (unsigned k = 0; k < n; k++)
			u->slot[k] = d->fn->slot[d->fn->first[found[k]]];
	}
	before = dec_before(d, op_regs);
	before->guard = x->guard;
	before->negated = x->negated;
	before->site = x->site;
	before->i.p = u;
}
