/* wgmma_regs: see wgmma_regs.h. */
#include "wgmma_regs.h"

#include <stdlib.h>

#include "opcodes.h"

/* Calls take() for each register that the operand names. */
static void for_each_reg(const struct ptx_operand *o, void (*take)(void *user, uint32_t reg),
	void *user)
{
	if (o->kind == PO_REG || (o->kind == PO_ADDR && o->reg != PTX_NO_REG))
		take(user, o->reg);
	else if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			for_each_reg(&o->list[i], take, user);
}

static void mark(void *user, uint32_t reg)
{
	((uint8_t *)user)[reg] = WGMMA_REG_OPERAND;
}

/* ---- copies ---- */

/* The registers found so far that may hold a value in flight, and those whose movs have not been
 * looked at. */
struct closure {
	uint8_t *regs;
	bool *holds;
	VEC(uint32_t) todo;
};

static void hold(void *user, uint32_t reg)
{
	struct closure *c = user;

	if (c->holds[reg])
		return;
	c->holds[reg] = true;
	if (!c->regs[reg])
		c->regs[reg] = WGMMA_REG_COPY;
	vec_push(&c->todo, reg);
}

/* The movs of a function, sorted by the registers that they read. */
struct move { uint32_t from; const struct ptx_insn *insn; };
struct moves { const struct ptx_insn *insn; VEC(struct move) list; };

static void add_move(void *user, uint32_t reg)
{
	struct moves *m = user;

	vec_push(&m->list, ((struct move){ reg, m->insn }));
}

static int by_source(const void *a, const void *b)
{
	const struct move *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

static size_t first_move(const struct moves *m, uint32_t reg)
{
	size_t lo = 0, hi = m->list.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (m->list.at[mid].from < reg)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void find_copies(const struct ptx_func *f, uint8_t *regs)
{
	struct closure c = { .regs = regs, .holds = base_alloc(f->nreg + 1) };
	struct moves m = { 0 };

	for (size_t k = 0; k < f->ninsn; k++) {
		m.insn = &f->insn[k];
		if (m.insn->op == OP_mov)
			for_each_reg(&m.insn->operand[1], add_move, &m);
		else if (m.insn->op == OP_wgmma_mma_async || m.insn->op == OP_wgmma_mma_async_sp)
			for_each_reg(&m.insn->operand[0], hold, &c);
	}
	if (m.list.n)
		qsort(m.list.at, m.list.n, sizeof *m.list.at, by_source);
	while (c.todo.n) {
		const uint32_t reg = c.todo.at[--c.todo.n];

		for (size_t k = first_move(&m, reg); k < m.list.n && m.list.at[k].from == reg; k++)
			for_each_reg(&m.list.at[k].insn->operand[0], hold, &c);
	}
	vec_free(&m.list);
	vec_free(&c.todo);
	free(c.holds);
}

uint8_t *wgmma_regs(const struct ptx_func *f)
{
	uint8_t *regs = NULL;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (i->op != OP_wgmma_mma_async && i->op != OP_wgmma_mma_async_sp)
			continue;
		if (!regs)
			regs = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < 2 && o < i->noperands; o++)
			if (i->operand[o].kind == PO_VEC)
				for_each_reg(&i->operand[o], mark, regs);
	}
	if (regs)
		find_copies(f, regs);
	return regs;
}

struct collected {
	const uint8_t *regs;
	uint32_t *found;
	unsigned n;
};

static void collect(void *user, uint32_t reg)
{
	struct collected *c = user;

	if (c->regs[reg] && c->n < WGMMA_REG_USES)
		c->found[c->n++] = reg;
}

unsigned wgmma_reg_uses(const struct ptx_insn *i, const uint8_t *regs,
	uint32_t found[WGMMA_REG_USES], unsigned *nread)
{
	struct collected c = { regs, found, 0 };
	const unsigned written = ptx_written(i);

	for (unsigned o = written; o < i->noperands; o++)
		for_each_reg(&i->operand[o], collect, &c);
	*nread = c.n;
	for (unsigned o = 0; o < written; o++)
		for_each_reg(&i->operand[o], collect, &c);
	return c.n;
}

bool wgmma_reg_operand(const uint8_t *regs, const uint32_t *found, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		if (regs[found[k]] == WGMMA_REG_OPERAND)
			return true;
	return false;
}
