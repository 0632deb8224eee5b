/* diverge: see diverge.h. A register differs between lanes if it is made from the lane's number,
 * from memory or from another such register. A branch on one separates lanes until its
 * post-dominator. */
#include "diverge.h"

#include <stdlib.h>

#include "libconsan/ptx/opcodes.h"

_Static_assert(SR_tid_x == 0, "tid is the first special register");

static bool reads_lane(const struct ptx_operand *o)
{
	return o->kind == PO_SREG && (o->sreg <= SR_tid_z || o->sreg == SR_laneid ||
		(o->sreg >= SR_lanemask_eq && o->sreg <= SR_lanemask_gt));
}

static bool reads_differing(const struct ptx_operand *o, const bool *differs)
{
	if ((o->kind == PO_REG || o->kind == PO_ADDR) && o->reg != PTX_NO_REG && differs[o->reg])
		return true;
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			if (reads_differing(&o->list[k], differs))
				return true;
	return reads_lane(o);
}

/* Do the lanes of a warp get different results? */
static bool makes_difference(const struct ptx_insn *i, const bool *differs)
{
	const enum ptx_effect effect = ptx_effect_of(i->op);

	if (i->op == OP_vote_sync || i->op == OP_redux_sync ||
			(i->op == OP_shfl_sync && ptx_has(i, MOD_idx)))
		return false;
	if ((effect == EF_READ && ptx_space_of(i, 0) != PS_param && ptx_space_of(i, 0) != PS_const) ||
			effect == EF_RMW || effect == EF_MBARRIER || effect == EF_WARP || i->op == OP_call)
		return true;
	if (i->guard != PTX_NO_REG && differs[i->guard])
		return true;
	for (unsigned k = ptx_written(i); k < i->noperands; k++)
		if (reads_differing(&i->operand[k], differs))
			return true;
	return false;
}

static bool mark(const struct ptx_operand *o, bool *differs)
{
	bool added = false;

	if (o->kind == PO_REG && o->reg != PTX_NO_REG) {
		added = !differs[o->reg];
		differs[o->reg] = true;
	}
	if (o->kind == PO_VEC || o->kind == PO_PAIR)
		for (unsigned k = 0; k < o->n; k++)
			added |= mark(&o->list[k], differs);
	return added;
}

static bool *find_differing(const struct ptx_func *f)
{
	bool *differs = base_alloc((f->nreg + 1) * sizeof *differs), more = true;

	while (more) {
		more = false;
		for (size_t k = 0; k < f->ninsn; k++) {
			const struct ptx_insn *i = &f->insn[k];

			if (!ptx_written(i) || !makes_difference(i, differs))
				continue;
			for (unsigned o = 0; o < ptx_written(i); o++)
				more |= mark(&i->operand[o], differs);
		}
	}
	return differs;
}

/* The blocks from the end of this one to its post-dominator. */
static void mark_region(const struct ptx_func *f, uint32_t block, uint32_t *todo, bool *seen,
	bool *diverged)
{
	const struct ptx_block *all = f->cfg->block;
	uint32_t n = 0;

	for (size_t k = 0; k < f->cfg->nblock; k++)
		seen[k] = false;
	todo[n++] = block;
	while (n) {
		const struct ptx_block *b = &all[todo[--n]];

		for (uint32_t s = 0; s < b->nsucc; s++) {
			const uint32_t next = b->succ[s];

			if (next == all[block].ipdom || seen[next])
				continue;
			seen[next] = diverged[next] = true;
			todo[n++] = next;
		}
	}
}

bool *diverge_find(const struct ptx_func *f)
{
	const struct ptx_cfg *c = f->cfg;
	bool *diverged = base_alloc(c->nblock + 1), *seen = base_alloc(c->nblock + 1);
	uint32_t *todo = base_alloc((c->nblock + 1) * sizeof *todo);
	bool *differs = find_differing(f);

	for (uint32_t k = 0; k < c->nblock; k++) {
		const struct ptx_insn *last = &f->insn[c->block[k].end - 1];

		if (!f->entry)
			diverged[k] = true; /* its callers are not looked at */
		else if (ptx_effect_of(last->op) == EF_CONTROL && last->guard != PTX_NO_REG &&
				differs[last->guard])
			mark_region(f, k, todo, seen, diverged);
	}
	free(differs);
	free(todo);
	free(seen);
	return diverged;
}
