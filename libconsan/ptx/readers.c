/* readers: see readers.h. */
#include "readers.h"

#include <string.h>

/* Counts the instructions of each register first, and then stores them: first[r] moves from the begin of
 * register r to its end. */
struct index {
	uint32_t *first, *insn;    /* insn: NULL in the first pass, which counts in first[r + 1] */
	uint32_t now;
};

static void note(struct index *x, uint32_t reg)
{
	if (reg == PTX_NO_REG)
		return;
	if (x->insn)
		x->insn[x->first[reg]++] = x->now;
	else
		x->first[reg + 1]++;
}

static void note_operand(struct index *x, const struct ptx_operand *o)
{
	if (o->kind == PO_REG || o->kind == PO_ADDR)
		note(x, o->reg);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			note_operand(x, &o->list[k]);
}

static void pass(struct index *x, const struct ptx_func *f)
{
	for (size_t n = 0; n < f->ninsn; n++) {
		const struct ptx_insn *i = &f->insn[n];
		const unsigned written = ptx_written(i);

		x->now = (uint32_t)n;
		note(x, i->guard);
		for (unsigned k = 0; k < i->noperands; k++)
			if (k >= written || i->operand[k].kind == PO_ADDR)
				note_operand(x, &i->operand[k]);
		for (unsigned k = 0; k < i->narg; k++)
			note_operand(x, &i->arg[k]);
	}
}

const struct ptx_readers *readers_build(struct arena *a, const struct ptx_func *f)
{
	struct ptx_readers *r = arena_alloc(a, sizeof *r);
	struct index x = { .first = arena_alloc(a, (f->nreg + 1) * sizeof *x.first) };

	pass(&x, f);
	for (size_t k = 0; k < f->nreg; k++)
		x.first[k + 1] += x.first[k];
	x.insn = arena_alloc(a, (x.first[f->nreg] + 1) * sizeof *x.insn);
	pass(&x, f);
	memmove(x.first + 1, x.first, f->nreg * sizeof *x.first);
	x.first[0] = 0;
	*r = (struct ptx_readers){ x.first, x.insn };
	return r;
}
