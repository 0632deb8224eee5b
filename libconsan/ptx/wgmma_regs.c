/* wgmma_regs: see wgmma_regs.h. */
#include "wgmma_regs.h"
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
	((bool *)user)[reg] = true;
}

bool *wgmma_regs(const struct ptx_func *f)
{
	bool *used = NULL;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (i->op != OP_wgmma_mma_async && i->op != OP_wgmma_mma_async_sp)
			continue;
		if (!used)
			used = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < 2 && o < i->noperands; o++)
			if (i->operand[o].kind == PO_VEC)
				for_each_reg(&i->operand[o], mark, used);
	}
	return used;
}

struct collected {
	const bool *used;
	uint32_t *found;
	unsigned n;
};

static void collect(void *user, uint32_t reg)
{
	struct collected *c = user;

	if (c->used[reg] && c->n < WGMMA_REG_USES)
		c->found[c->n++] = reg;
}

unsigned wgmma_reg_uses(const struct ptx_insn *i, const bool *used, uint32_t found[WGMMA_REG_USES],
	unsigned *nread)
{
	struct collected c = { used, found, 0 };
	const unsigned written = ptx_written(i);

	for (unsigned o = written; o < i->noperands; o++)
		for_each_reg(&i->operand[o], collect, &c);
	*nread = c.n;
	for (unsigned o = 0; o < written; o++)
		for_each_reg(&i->operand[o], collect, &c);
	return c.n;
}
