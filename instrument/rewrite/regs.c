/* regs: plain instructions on the registers of wgmma. Code between a wgmma and
 * its wait would make ptxas serialise it, so these are not recorded; the ways
 * through the code tell which of them lay between two records. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "libconsan/ptx/opcodes.h"

static void visit(const struct ptx_operand *o, bool mark, bool *used, uint32_t *out, unsigned *n)
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
			visit(&o->list[i], mark, used, out, n);
}

/* Accumulators and A fragments: the vectors among the operands. */
static bool *used_by_wgmma(const struct ptx_func *f)
{
	bool *used = NULL;

	for (size_t i = 0; i < f->ninsn; i++) {
		if (f->insn[i].op != OP_wgmma_mma_async)
			continue;
		if (!used)
			used = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < 2 && o < f->insn[i].noperands; o++)
			if (f->insn[i].operand[o].kind == PO_VEC)
				visit(&f->insn[i].operand[o], true, used, NULL, NULL);
	}
	return used;
}

static void add_note(struct rewrite *r, struct rewrite_func *info, const struct ptx_insn *i, bool *used)
{
	struct rewrite_note note = { .func = info->func, .insn = i };
	unsigned n = 0, written = ptx_written(i);
	uint32_t found[2048];

	for (unsigned o = written; o < i->noperands; o++)
		visit(&i->operand[o], false, used, found, &n);
	note.nread = (uint16_t)n;
	for (unsigned o = 0; o < written; o++)
		visit(&i->operand[o], false, used, found, &n);
	if (!n)
		return;
	note.nwritten = (uint16_t)(n - note.nread);
	note.reg = base_alloc(n * sizeof *note.reg);
	memcpy(note.reg, found, n * sizeof *note.reg);
	vec_push(&r->note, note);
	info->note_of[i - info->func->insn] = (uint32_t)r->note.n;
}

void rewrite_notes(struct rewrite *r, struct rewrite_func *info)
{
	const struct ptx_func *f = info->func;
	bool *used = used_by_wgmma(f);
	struct plan p;

	if (!used)
		return;
	info->note_of = base_alloc((f->ninsn + 1) * sizeof *info->note_of);
	info->mark = base_alloc((f->ninsn + 1) * sizeof *info->mark);
	info->recorded_block = base_alloc((f->cfg->nblock + 1) * sizeof *info->recorded_block);
	for (uint32_t k = 0; k < f->ninsn; k++) {
		if (ptx_effect_of(f->insn[k].op) != EF_WGMMA)
			add_note(r, info, &f->insn[k], used);
		if (plan_of(f, &f->insn[k], &p) || (r->global && plan_global_of(f, &f->insn[k], &p)))
			info->recorded_block[f->cfg->block_of[k]] = true;
	}
	/* of two ways, records must tell which one was taken */
	for (uint32_t k = 0; k < f->ninsn; k++)
		if (info->note_of[k] && !info->recorded_block[f->cfg->block_of[k]]) {
			info->mark[k] = true;
			info->recorded_block[f->cfg->block_of[k]] = true;
		}
	free(used);
}

/* ---- ways ---- */

struct way {
	const struct rewrite_func *f;
	uint32_t to;               /* block */
	uint32_t at[32];           /* blocks on the way, without the first and the last */
	unsigned n, found;
	uint32_t one[32];          /* the way found first */
	unsigned none;
	unsigned steps;
};

static void seek(struct way *w, uint32_t block)
{
	const struct ptx_block *b = &w->f->func->cfg->block[block];

	for (unsigned s = 0; s < b->nsucc && w->found < 2 && w->steps++ < 512; s++) {
		uint32_t next = b->succ[s];
		bool again = false;

		if (next == w->to) {
			if (!w->found++) {
				memcpy(w->one, w->at, w->n * sizeof *w->at);
				w->none = w->n;
			}
			continue;
		}
		for (unsigned k = 0; k < w->n; k++)
			again |= w->at[k] == next;
		if (again || w->f->recorded_block[next] || w->n == 32)
			continue;
		w->at[w->n++] = next;
		seek(w, next);
		w->n--;
	}
}

struct notes { uint32_t *at; unsigned n, room; };

static void collect(const struct rewrite_func *f, uint32_t from, uint32_t end, struct notes *out)
{
	for (uint32_t k = from; k < end && out->n < out->room; k++)
		if (f->note_of[k])
			out->at[out->n++] = f->note_of[k] - 1;
}

unsigned rewrite_between(const struct rewrite *r, const struct rewrite_func *f, uint32_t from,
	uint32_t to, uint32_t *note, unsigned room)
{
	const struct ptx_cfg *c = f->func->cfg;
	uint32_t begin = from == UINT32_MAX ? 0 : from + 1;
	uint32_t first = c->block_of[from == UINT32_MAX ? 0 : from], last = c->block_of[to];
	struct notes out = { note, 0, room };
	struct way w = { .f = f, .to = last };

	(void)r;
	if (first == last && begin <= to) {
		collect(f, begin, to, &out);
		return out.n;
	}
	seek(&w, first);
	collect(f, begin, c->block[first].end, &out);
	for (unsigned k = 0; w.found == 1 && k < w.none; k++)
		collect(f, c->block[w.one[k]].first, c->block[w.one[k]].end, &out);
	collect(f, c->block[last].first, to, &out);
	return out.n;
}
