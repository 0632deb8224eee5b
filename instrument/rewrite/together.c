/* together: warp collectives that are not recorded, as what they do is known without: mma and the
 * like, which a whole warp executes together. The decoder finds them on the paths through the code
 * between two records. Those with a guard are recorded, as no path says whether they were executed. */
#include "rewrite.h"

#include <stdlib.h>

#include "libconsan/ptx/opcodes.h"
#include "plan.h"

static bool whole_warp(const struct ptx_insn *i)
{
	return plan_whole_warp(i) && i->guard == PTX_NO_REG;
}

bool rewrite_has_together(const struct ptx_func *f)
{
	for (size_t k = 0; k < f->ninsn; k++)
		if (whole_warp(&f->insn[k]))
			return true;
	return false;
}

static bool among(const struct ptx_func *f, uint32_t from, uint32_t end)
{
	for (uint32_t k = from; k < end; k++)
		if (whole_warp(&f->insn[k]))
			return true;
	return false;
}

bool rewrite_together_between(const struct ptx_func *f, uint32_t from, uint32_t to)
{
	const struct ptx_cfg *c = f->cfg;
	const uint32_t last = c->block_of[to];
	uint32_t *todo, n = 0, passed = 0;
	bool *seen, sure = true;

	if (c->block_of[from] == last && from < to)
		return among(f, from + 1, to);
	if (among(f, from + 1, c->block[c->block_of[from]].end))
		return true;
	todo = base_alloc((c->nblock + 1) * sizeof *todo);
	seen = base_alloc(c->nblock + 1);
	todo[n++] = c->block_of[from];
	while (n && sure) {
		const struct ptx_block *b = &c->block[todo[--n]];

		if (f->insn[b->end - 1].op == OP_brx_idx)
			sure = false;
		for (uint32_t s = 0; s < b->nsucc && sure; s++) {
			const uint32_t next = b->succ[s];
			const struct ptx_block *x = &c->block[next];

			if (next == last && !among(f, x->first, to))
				sure = false;
			else if (next == last || among(f, x->first, x->end))
				passed++;
			else if (!seen[next])
				todo[n++] = next;
			seen[next] = true;
		}
	}
	free(todo);
	free(seen);
	return sure && passed;
}
