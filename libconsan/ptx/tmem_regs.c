/* tmem_regs: see tmem_regs.h. */
#include "tmem_regs.h"

#include <stdlib.h>

#include "libconsan/base/base.h"
#include "opcodes.h"

static bool is_load(const struct ptx_insn *i)
{
	return i->op == OP_tcgen05_ld || i->op == OP_tcgen05_ld_red;
}

static void mark(uint8_t *regs, const struct ptx_operand *o)
{
	if (o->kind == PO_REG)
		regs[o->reg] = 1;
	for (unsigned k = 0; o->kind == PO_VEC && k < o->n; k++)
		mark(regs, &o->list[k]);
}

uint8_t *tmem_loaded(const struct ptx_func *f)
{
	uint8_t *regs = NULL;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (!is_load(i))
			continue;
		if (!regs)
			regs = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < ptx_written(i); o++)
			mark(regs, &i->operand[o]);
	}
	return regs;
}

/* ---- where loads may be in flight: a forward analysis by block ---- */

static bool after(const struct ptx_insn *i, bool pending)
{
	if (is_load(i))
		return true;
	return pending && !(i->op == OP_tcgen05_wait_ld && i->guard == PTX_NO_REG);
}

/* Sets the state at the beginning of the block; true if that is news. */
static bool enter(const struct ptx_block *b, bool *pending)
{
	if (b->first == b->end || pending[b->first])
		return false;
	return pending[b->first] = true;
}

static bool flow(const struct ptx_func *f, const struct ptx_block *b, bool *pending)
{
	const struct ptx_cfg *cfg = f->cfg;
	const struct ptx_insn *last;
	bool state, changed = false;

	if (b->first == b->end)
		return false;
	state = pending[b->first];
	for (uint32_t i = b->first; i < b->end; i++) {
		pending[i] = state;
		state = after(&f->insn[i], state);
	}
	if (!state)
		return false;
	last = &f->insn[b->end - 1];
	for (uint32_t s = 0; s < b->nsucc; s++)
		changed |= enter(&cfg->block[b->succ[s]], pending);
	for (uint32_t t = 0; t < last->ntarget; t++)
		if (last->target[t] < f->ninsn)
			changed |= enter(&cfg->block[cfg->block_of[last->target[t]]], pending);
	return changed;
}

struct tmem_regs tmem_regs_find(const struct ptx_func *f)
{
	struct tmem_regs r = { .loaded = tmem_loaded(f) };
	bool changed = r.loaded != NULL;

	if (changed)
		r.pending = base_alloc(f->ninsn + 1);
	while (changed) {
		changed = false;
		for (size_t k = 0; k < f->cfg->nblock; k++)
			changed |= flow(f, &f->cfg->block[f->cfg->order[k]], r.pending);
	}
	return r;
}

void tmem_regs_free(struct tmem_regs *r)
{
	free(r->loaded);
	free(r->pending);
}
