/* inflight: see inflight.h. */
#include "inflight.h"

#include <stdlib.h>

#include "libconsan/ptx/opcodes.h"

bool inflight_after(const struct ptx_insn *i, bool before)
{
	if (ptx_effect_of(i->op) != EF_WGMMA)
		return before;
	if (i->op != OP_wgmma_wait_group)
		return true;
	return before && (i->operand[0].imm || i->guard != PTX_NO_REG);
}

/* From `before` at the block's begin; at its end. */
static bool pass(const struct ptx_func *f, const struct ptx_block *b, bool before, bool *inflight)
{
	for (uint32_t k = b->first; k < b->end; k++) {
		inflight[k] = before;
		before = inflight_after(&f->insn[k], before);
	}
	return before;
}

static bool mark(bool *begin, uint32_t block)
{
	const bool added = !begin[block];

	begin[block] = true;
	return added;
}

/* False: all were marked. */
static bool mark_successors(const struct ptx_func *f, const struct ptx_block *b, bool *begin)
{
	const struct ptx_insn *last = &f->insn[b->end - 1];
	bool added = false;

	for (unsigned s = 0; s < b->nsucc; s++)
		added |= mark(begin, b->succ[s]);
	for (uint32_t t = 0; last->op == OP_brx_idx && t < last->ntarget; t++)
		added |= mark(begin, f->cfg->block_of[last->target[t]]);
	return added;
}

bool *inflight_find(const struct ptx_func *f)
{
	const struct ptx_cfg *c = f->cfg;
	bool any = false, more = true;
	bool *inflight, *begin;

	for (uint32_t k = 0; k < f->ninsn; k++)
		any |= ptx_effect_of(f->insn[k].op) == EF_WGMMA;
	if (!any)
		return NULL;
	inflight = base_alloc((f->ninsn + 1) * sizeof *inflight);
	begin = base_alloc((c->nblock + 1) * sizeof *begin);
	while (more) {
		more = false;
		for (size_t k = 0; k < c->nblock; k++)
			if (pass(f, &c->block[c->order[k]], begin[c->order[k]], inflight))
				more |= mark_successors(f, &c->block[c->order[k]], begin);
	}
	free(begin);
	return inflight;
}
