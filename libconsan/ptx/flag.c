/* flag: follows the value of a load through the registers of its function, without regard to the
 * order of instructions: a register that ever holds something made from the value counts always. */
#include "flag.h"
#include "opcodes.h"

#include <stdlib.h>
#include <string.h>

enum use { USE_NONE, USE_CONTROL, USE_DATA };

struct flow {
	const struct ptx_func *f;
	bool *holds;             /* by register: made from the value */
	VEC(uint32_t) held;      /* these registers, in the order in which they were found */
};

static void hold(struct flow *w, uint32_t reg)
{
	if (w->holds[reg])
		return;
	vec_push(&w->held, reg);
	w->holds[reg] = true;
}

static struct flow flow_begin(const struct ptx_func *f)
{
	return (struct flow){ .f = f, .holds = base_alloc(f->nreg * sizeof(bool) + 1) };
}

static void flow_end(struct flow *w)
{
	free(w->holds);
	vec_free(&w->held);
}

static bool reads(const struct flow *w, const struct ptx_operand *o)
{
	if (o->kind == PO_REG || o->kind == PO_ADDR)
		return o->reg != PTX_NO_REG && w->holds[o->reg];
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			if (reads(w, &o->list[i]))
				return true;
	return false;
}

/* Marks the registers of a destination. */
static void mark(struct flow *w, const struct ptx_operand *o)
{
	if (o->kind == PO_REG)
		hold(w, o->reg);
	if (o->kind == PO_VEC || o->kind == PO_PAIR)
		for (unsigned i = 0; i < o->n; i++)
			mark(w, &o->list[i]);
}

/* Do its destinations depend on its sources alone? Shuffles, votes and barrier.red hand a value to
 * other threads, which use it in the same way. */
static bool passes(const struct ptx_insn *i)
{
	enum ptx_effect e = ptx_effect_of(i->op);

	return e == EF_NONE || e == EF_WARP || e == EF_BARRIER;
}

/* How the instruction uses the value. If it passes it on to other registers, these are marked. */
static enum use use_of(struct flow *w, const struct ptx_insn *i)
{
	enum use use = i->guard != PTX_NO_REG && w->holds[i->guard] ? USE_CONTROL : USE_NONE;
	const unsigned written = ptx_written(i);
	bool read = false;

	for (unsigned k = 0; k < i->noperands; k++)
		read |= (k >= written || i->operand[k].kind == PO_ADDR) && reads(w, &i->operand[k]);
	for (unsigned k = 0; k < i->narg; k++)
		read |= reads(w, &i->arg[k]);
	if (!read)
		return use;
	if (!passes(i))
		return ptx_effect_of(i->op) == EF_CONTROL && !i->narg ? USE_CONTROL : USE_DATA;
	for (unsigned k = 0; k < written; k++)
		mark(w, &i->operand[k]);
	return USE_CONTROL;
}

/* Each reader of a register is looked at when the register turns out to hold the value; so the last time an
 * instruction is looked at, all its operands are known. */
static enum use follow(struct flow *w)
{
	const struct ptx_readers *readers = w->f->readers;
	enum use use = USE_NONE;

	for (size_t k = 0; k < w->held.n; k++) {
		const uint32_t reg = w->held.at[k];

		for (uint32_t n = readers->first[reg]; n < readers->first[reg + 1]; n++) {
			const enum use one = use_of(w, &w->f->insn[readers->insn[n]]);

			use = one > use ? one : use;
		}
	}
	return use;
}

static bool has_register(const struct ptx_operand *o, uint32_t reg)
{
	for (unsigned k = 0; (o->kind == PO_VEC || o->kind == PO_PAIR) && k < o->n; k++)
		if (has_register(&o->list[k], reg))
			return true;
	return o->kind == PO_REG && o->reg == reg;
}

static bool writes(const struct ptx_insn *i, uint32_t reg)
{
	for (unsigned k = 0; k < ptx_written(i); k++)
		if (has_register(&i->operand[k], reg))
			return true;
	return false;
}

static const struct ptx_operand *address_of(const struct ptx_insn *i)
{
	for (unsigned k = 0; k < i->noperands; k++)
		if (i->operand[k].kind == PO_ADDR)
			return &i->operand[k];
	return NULL;
}

static bool is_constant(const struct ptx_insn *i)
{
	return i->op == OP_mov && i->guard == PTX_NO_REG && i->operand[1].kind == PO_IMM;
}

/* Does the instruction change a register that this one, a load or an atomic, takes its address or
 * operands from? Compilers repeat the mov of a constant in the loop. */
static bool changes_operand(const struct ptx_insn *i, const struct ptx_insn *of)
{
	for (unsigned k = ptx_written(of); k < of->noperands; k++) {
		const struct ptx_operand *o = &of->operand[k];

		if ((o->kind == PO_REG || o->kind == PO_ADDR) && o->reg != PTX_NO_REG && writes(i, o->reg)
			&& !is_constant(i))
			return true;
	}
	return false;
}

/* Does the innermost loop around the load repeat it at one address until its value ends it? */
static bool polled(const struct flow *w, const struct ptx_insn *load)
{
	const struct ptx_cfg *g = w->f->cfg;
	const uint32_t header = g->block[g->block_of[load - w->f->insn]].loop;
	uint32_t last = 0;
	bool ends = false;

	if (header == UINT32_MAX || !address_of(load))
		return false;
	for (size_t b = 0; b < g->nblock; b++)
		if (g->block[b].loop == header && g->block[b].order > last)
			last = g->block[b].order;
	for (uint32_t k = g->block[header].order; k <= last; k++) { /* a loop is contiguous */
		const struct ptx_block *b = &g->block[g->order[k]];

		for (uint32_t n = b->first; n < b->end; n++) {
			const struct ptx_insn *i = &w->f->insn[n];

			if (changes_operand(i, load))
				return false;
			ends |= ptx_effect_of(i->op) == EF_CONTROL && i->guard != PTX_NO_REG
				&& w->holds[i->guard];
		}
	}
	return ends;
}

static enum use value_of(struct flow *w, const struct ptx_insn *load)
{
	for (size_t k = 0; k < w->held.n; k++)
		w->holds[w->held.at[k]] = false;
	w->held.n = 0;
	for (unsigned k = 0; k < ptx_written(load); k++)
		mark(w, &load->operand[k]);
	return follow(w);
}

static bool same_address(const struct ptx_insn *a, const struct ptx_insn *b)
{
	const struct ptx_operand *x = address_of(a), *y = address_of(b);

	return x && y && x->reg == y->reg && x->var == y->var && x->imm == y->imm;
}

/* Is another load of the same address, which `i` may be, polled? */
static bool twin_polled(struct flow *w, const struct ptx_insn *load, const struct ptx_insn *i)
{
	if (i == load || i->op != load->op || !same_address(i, load))
		return false;
	value_of(w, i);
	return polled(w, i);
}

static bool any_twin_polled(struct flow *w, const struct ptx_insn *load)
{
	const struct ptx_operand *at = address_of(load);
	const struct ptx_readers *r = w->f->readers;
	bool yes = false;

	if (!at)
		return false;
	if (at->reg == PTX_NO_REG) {
		for (size_t k = 0; k < w->f->ninsn && !yes; k++)
			yes = twin_polled(w, load, &w->f->insn[k]);
		return yes;
	}
	for (uint32_t n = r->first[at->reg]; n < r->first[at->reg + 1] && !yes; n++)
		yes = twin_polled(w, load, &w->f->insn[r->insn[n]]);
	return yes;
}

bool ptx_reads_flag(const struct ptx_func *f, const struct ptx_insn *load)
{
	struct flow w = flow_begin(f);
	const bool flag = value_of(&w, load) == USE_CONTROL || polled(&w, load) || any_twin_polled(&w, load);

	flow_end(&w);
	return flag;
}

bool ptx_is_polled(const struct ptx_func *f, const struct ptx_insn *i)
{
	struct flow w;
	bool yes;

	if (f->cfg->block[f->cfg->block_of[i - f->insn]].loop == UINT32_MAX)
		return false;
	w = flow_begin(f);
	value_of(&w, i);
	yes = polled(&w, i);
	flow_end(&w);
	return yes;
}

bool ptx_takes_lock(const struct ptx_func *f, const struct ptx_insn *i)
{
	const enum ptx_mod how = i->op == OP_atom ? ptx_pick(i, MG_redop) : MOD_NONE;

	return (how == MOD_cas || how == MOD_exch) && ptx_is_polled(f, i);
}
