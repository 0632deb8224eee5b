/* wgmma_regs: plain instructions that use the registers of a wgmma. Code between a wgmma and
 * its wait would make ptxas serialize it, so these instructions are not recorded. The decoder
 * finds which of them were executed from the paths through the code between two records. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "libconsan/ptx/opcodes.h"

static void add_use(struct rewrite *r, struct rewrite_func *info, const struct ptx_insn *i,
	const uint8_t *used)
{
	struct rewrite_reg_use use = { .func = info->func, .insn = i };
	uint32_t found[WGMMA_REG_USES];
	unsigned nread, n = wgmma_reg_uses(i, used, found, &nread);

	if (!n)
		return;
	use.operand = wgmma_reg_operand(used, found, n);
	use.nread = (uint16_t)nread;
	use.nwritten = (uint16_t)(n - nread);
	use.reg = base_alloc(n * sizeof *use.reg);
	memcpy(use.reg, found, n * sizeof *use.reg);
	vec_push(&r->reg_use, use);
	info->reg_use_of[i - info->func->insn] = (uint32_t)r->reg_use.n;
}

void rewrite_find_reg_uses(struct rewrite *r, struct rewrite_func *info)
{
	const struct ptx_func *f = info->func;
	uint8_t *used = wgmma_regs(f);
	struct plan p;

	if (!used)
		return;
	info->reg_use_of = base_alloc((f->ninsn + 1) * sizeof *info->reg_use_of);
	info->mark = base_alloc((f->ninsn + 1) * sizeof *info->mark);
	info->recorded_block = base_alloc((f->cfg->nblock + 1) * sizeof *info->recorded_block);
	for (uint32_t k = 0; k < f->ninsn; k++) {
		if (ptx_effect_of(f->insn[k].op) != EF_WGMMA)
			add_use(r, info, &f->insn[k], used);
		if (plan_of(f, &f->insn[k], &p) ||
				(r->global && plan_global_of(f, &f->insn[k], &p)))
			info->recorded_block[f->cfg->block_of[k]] = true;
	}
	/* where several paths lead from one record to the next, a record in the block identifies
	 * the path that was taken; copies alone are not worth one */
	for (uint32_t k = 0; k < f->ninsn; k++)
		if (info->reg_use_of[k] && r->reg_use.at[info->reg_use_of[k] - 1].operand
				&& !info->recorded_block[f->cfg->block_of[k]]) {
			info->mark[k] = true;
			info->recorded_block[f->cfg->block_of[k]] = true;
		}
	free(used);
}

/* ---- paths between two records ---- */

struct path {
	const struct rewrite_func *f;
	uint32_t to;               /* the block at its end */
	uint32_t block[32];        /* blocks of the current path, without the first and the last */
	unsigned n, found;
	uint32_t first[32];        /* the first path found */
	unsigned nfirst;
	unsigned steps;
};

static void search(struct path *w, uint32_t block)
{
	const struct ptx_block *b = &w->f->func->cfg->block[block];

	for (unsigned s = 0; s < b->nsucc && w->found < 2 && w->steps++ < 512; s++) {
		uint32_t next = b->succ[s];
		bool visited = false;

		if (next == w->to) {
			if (!w->found++) {
				memcpy(w->first, w->block, w->n * sizeof *w->block);
				w->nfirst = w->n;
			}
			continue;
		}
		for (unsigned k = 0; k < w->n; k++)
			visited |= w->block[k] == next;
		if (visited || w->f->recorded_block[next] || w->n == 32)
			continue;
		w->block[w->n++] = next;
		search(w, next);
		w->n--;
	}
}

struct uses { uint32_t *at; unsigned n, cap; };

static void collect(const struct rewrite_func *f, uint32_t from, uint32_t end, struct uses *out)
{
	for (uint32_t k = from; k < end && out->n < out->cap; k++)
		if (f->reg_use_of[k])
			out->at[out->n++] = f->reg_use_of[k] - 1;
}

unsigned rewrite_reg_uses_between(const struct rewrite *r, const struct rewrite_func *f,
	uint32_t from, uint32_t to, uint32_t *use, unsigned cap)
{
	const struct ptx_cfg *c = f->func->cfg;
	uint32_t begin = from == UINT32_MAX ? 0 : from + 1;
	uint32_t first = c->block_of[from == UINT32_MAX ? 0 : from], last = c->block_of[to];
	struct uses out = { use, 0, cap };
	struct path w = { .f = f, .to = last };

	(void)r;
	if (first == last && begin <= to) {
		collect(f, begin, to, &out);
		return out.n;
	}
	search(&w, first);
	collect(f, begin, c->block[first].end, &out);
	for (unsigned k = 0; w.found == 1 && k < w.nfirst; k++)
		collect(f, c->block[w.first[k]].first, c->block[w.first[k]].end, &out);
	collect(f, c->block[last].first, to, &out);
	return out.n;
}
