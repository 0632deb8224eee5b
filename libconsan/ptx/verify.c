/* verify: checks the invariants that ir.h promises. A violation is a bug of the
 * parser, not of the program. */
#include "table.h"
#include "opcodes.h"

#include <stdlib.h>
#include <string.h>

struct check {
	const struct ptx_module *m;
	const struct ptx_func *f;
	const struct ptx_insn *i;
	struct consan_err *e;
};

static bool broken(struct check *c, const char *what)
{
	uint32_t line = c->i ? c->i->line : c->f ? c->f->line : 0;

	return err_set(c->e, CONSAN_ERR_PTX_SYNTAX, (int)line, c->i ? (int)c->i->col : 0,
		"%.60s: %.80s: broken invariant: %s", c->m->name, c->f ? c->f->name : "module", what);
}

#define HOLDS(what) do { if (!(what)) return broken(c, #what); } while (0)

/* ---- operands ---- */

static bool variable_known(const struct check *c, const struct ptx_var *v)
{
	const struct ptx_func *f = c->f;

	if (!v->func)
		return v->index < c->m->nvar && v == &c->m->var[v->index];
	return v->func == f &&
		((v->index < f->nvar && v == &f->var[v->index]) ||
		 (v->index < f->nparam && v == &f->param[v->index]) ||
		 (v->index < f->nret && v == &f->ret[v->index]));
}

static bool function_known(const struct check *c, const struct ptx_func *f)
{
	return f >= c->m->func && f < c->m->func + c->m->nfunc;
}

static bool check_operand(struct check *c, const struct ptx_operand *o, int depth)
{
	HOLDS(depth < 3);
	if (o->reg != PTX_NO_REG)
		HOLDS(o->reg < c->f->nreg && (!o->elem || o->elem <= c->f->reg[o->reg].vec));
	if (o->var)
		HOLDS(variable_known(c, o->var));
	HOLDS(!o->n == !o->list);
	for (unsigned k = 0; k < o->n; k++)
		if (!check_operand(c, &o->list[k], depth + 1))
			return false;
	switch ((enum ptx_operand_kind)o->kind) {
	case PO_NONE:
		return broken(c, "an operand of no kind");
	case PO_REG:
		HOLDS(o->reg != PTX_NO_REG);
		break;
	case PO_SREG:
		HOLDS(o->sreg < SR_COUNT);
		break;
	case PO_SYM:
		HOLDS(o->var != NULL);
		break;
	case PO_FUNC:
		HOLDS(o->func && function_known(c, o->func));
		break;
	case PO_TADDR:
		HOLDS(o->n >= 2 && o->list[0].kind == PO_ADDR);
		break;
	case PO_VEC:
		HOLDS(o->n >= 1);
		break;
	case PO_PAIR:
		HOLDS(o->n == 2);
		break;
	case PO_LABEL:
		HOLDS(o->imm >= 0 && (uint64_t)o->imm < c->f->ninsn);
		break;
	case PO_ADDR:
		HOLDS(o->reg == PTX_NO_REG || !o->var);
		break;
	case PO_IMM: case PO_F32: case PO_F64: case PO_SINK:
		break;
	}
	return true;
}

/* ---- instructions ---- */

static bool check_instruction(struct check *c, const struct ptx_insn *i)
{
	const struct site_loc *l = i->loc;
	unsigned depth = 0;

	HOLDS(i->op > OP_NONE && i->op < OP_COUNT);
	HOLDS(i->nmods <= PTX_MAX_MODS && i->noperands <= PTX_MAX_OPERANDS);
	for (unsigned k = 0; k < i->nmods; k++)
		HOLDS(i->mod[k] > MOD_NONE && i->mod[k] < MOD_COUNT);
	if (i->guard != PTX_NO_REG)
		HOLDS(i->guard < c->f->nreg && c->f->reg[i->guard].type == TY_pred);
	HOLDS((size_t)i->text_at + i->text_len <= c->m->ntext);
	for (; l; l = l->inlined_at)
		HOLDS(l->file && depth++ < 100000);
	for (unsigned k = 0; k < i->noperands; k++)
		if (!check_operand(c, &i->operand[k], 0))
			return false;
	for (unsigned k = 0; k < i->nret; k++)
		if (!check_operand(c, &i->ret[k], 0))
			return false;
	for (unsigned k = 0; k < i->narg; k++)
		if (!check_operand(c, &i->arg[k], 0))
			return false;
	for (uint32_t k = 0; k < i->ntarget; k++)
		HOLDS(i->target[k] < c->f->ninsn);
	if (i->op == OP_bra)
		HOLDS(i->noperands == 1 && i->operand->kind == PO_LABEL);
	else if (i->op == OP_call)
		HOLDS(i->noperands == 1 && (i->operand->kind == PO_FUNC || i->operand->kind == PO_REG));
	else if (i->op == OP_brx_idx)
		HOLDS(i->noperands == 1 && i->ntarget);
	else if (i->op != OP_unknown)
		HOLDS(table_fits(i->op, i->operand, i->noperands));
	return true;
}

/* ---- control flow ---- */

static bool check_blocks(struct check *c)
{
	const struct ptx_cfg *g = c->f->cfg;
	uint32_t at = 0;

	HOLDS(g && g->nblock);
	for (uint32_t b = 0; b < g->nblock; b++) {
		const struct ptx_block *x = &g->block[b];

		HOLDS(x->first == at && x->end > at && x->end <= c->f->ninsn);
		for (; at < x->end; at++)
			HOLDS(g->block_of[at] == b);
		HOLDS(x->order < g->nblock && g->order[x->order] == b);
		HOLDS(x->nsucc <= 2);
		HOLDS(x->ipdom == UINT32_MAX || x->ipdom < g->nblock);
		HOLDS(x->loop == UINT32_MAX || x->loop < g->nblock);
	}
	HOLDS(at == c->f->ninsn && g->order[0] == 0);
	return true;
}

/* Successors of block b, one after the other; false behind the last. */
static bool successor(const struct check *c, uint32_t b, uint32_t k, uint32_t *to)
{
	const struct ptx_cfg *g = c->f->cfg;
	const struct ptx_block *x = &g->block[b];
	const struct ptx_insn *i = &c->f->insn[x->end - 1];

	if (k >= x->nsucc + i->ntarget)
		return false;
	*to = k < x->nsucc ? x->succ[k] : g->block_of[i->target[k - x->nsucc]];
	return true;
}

/* Jumps go forward in the order, except those to the header of a loop. Blocks that
 * are not reachable from the entry are laid out last and may jump anywhere. */
static bool check_order(struct check *c)
{
	const struct ptx_cfg *g = c->f->cfg;
	bool *reached = base_alloc(g->nblock * sizeof *reached), ok = true, gap = false;
	uint32_t to;

	reached[0] = true;
	for (uint32_t k = 0; ok && k < g->nblock; k++) {
		uint32_t b = g->order[k], loop = g->block[b].loop;

		gap |= !reached[b];
		if (reached[b] && gap)
			ok = broken(c, "a reachable block after an unreachable one");
		if (loop != UINT32_MAX && g->block[loop].order > k)
			ok = broken(c, "a block before the header of its loop");
		for (uint32_t s = 0; ok && reached[b] && successor(c, b, s, &to); s++) {
			if (g->block[to].order <= k && g->block[to].loop != to)
				ok = broken(c, "a jump backwards that closes no loop");
			reached[to] = true;
		}
	}
	free(reached);
	return ok;
}

/* ---- variables, functions ---- */

static bool check_variable(struct check *c, const struct ptx_var *v, uint64_t limit)
{
	HOLDS(v->name && v->align && !(v->align & (v->align - 1)));
	HOLDS(v->vec == 1 || v->vec == 2 || v->vec == 4);
	HOLDS(v->space == PS_global || v->space == PS_const || v->space == PS_shared ||
		v->space == PS_local || v->space == PS_param);
	if (v->space == PS_local || v->space == PS_param)
		HOLDS(v->offset % v->align == 0 && v->offset + v->size <= limit);
	for (size_t k = 0; k < v->nreloc; k++) {
		HOLDS(v->reloc[k].offset + v->reloc[k].bytes <= v->size);
		HOLDS(!v->reloc[k].var != !v->reloc[k].func);
	}
	return true;
}

static bool check_function(struct check *c, const struct ptx_func *f)
{
	const struct ptx_insn *last;
	uint64_t end = 0;

	HOLDS(f->module == c->m && f->name);
	for (size_t k = 0; k < f->nparam; k++) {
		HOLDS(f->param[k].func == f && f->param[k].index == k && f->param[k].offset >= end);
		end = f->param[k].offset + f->param[k].size;
		if (!check_variable(c, &f->param[k], f->param_bytes))
			return false;
	}
	HOLDS(end == f->param_bytes);
	for (size_t k = 0; k < f->nvar; k++) {
		HOLDS(f->var[k].func == f && f->var[k].index == k);
		if (!check_variable(c, &f->var[k], f->local_bytes))
			return false;
	}
	if (!f->ninsn) {
		HOLDS(!f->cfg);
		return true;
	}
	for (size_t k = 0; k < f->ninsn; k++) {
		c->i = &f->insn[k];
		if (!check_instruction(c, c->i))
			return false;
	}
	last = c->i;
	HOLDS(last->guard == PTX_NO_REG && (last->op == OP_ret || last->op == OP_exit ||
		last->op == OP_trap || last->op == OP_bra || last->op == OP_brx_idx));
	c->i = NULL;
	return check_blocks(c) && check_order(c);
}

bool ptx_verify(const struct ptx_module *m, struct consan_err *e)
{
	struct check check = { .m = m, .e = e }, *c = &check;

	for (size_t k = 0; k < m->nvar; k++) {
		HOLDS(!m->var[k].func && m->var[k].index == k);
		if (!check_variable(c, &m->var[k], UINT64_MAX))
			return false;
	}
	for (size_t k = 0; k < m->nfunc; k++) {
		c->f = &m->func[k];
		c->i = NULL;
		if (!check_function(c, c->f))
			return false;
	}
	return true;
}
