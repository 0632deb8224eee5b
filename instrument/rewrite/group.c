/* group: see group.h. The record is written before the first access, as an operand that is not
 * valid may stop the GPU. So what computes the other operands is moved there, which changes no
 * result: only instructions that do nothing but compute registers are moved, past others that do
 * not use these. An address that is another one plus a constant needs no word of its own. */
#include "group.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "libconsan/ptx/opcodes.h"

/* How far a group extends, in instructions. */
#define REACH 400u

struct finder {
	const struct ptx_func *f;
	const uint32_t *scope;
	uint32_t at;               /* the first member */
};

/* ---- scopes ---- */

/* The braces and declarations between two statements. */
static void pass_text(const char *s, const char *end, uint32_t *stack, unsigned *depth,
	uint32_t *number)
{
	for (; s < end; s++) {
		if (s[0] == '/' && s[1] == '/') {
			while (s < end && *s != '\n')
				s++;
		} else if (s[0] == '/' && s[1] == '*') {
			for (s += 2; s < end && !(s[-1] == '*' && s[0] == '/'); s++)
				;
		} else if (*s == '{') {
			if (*depth < 63)
				++*depth;
			stack[*depth] = ++*number;
		} else if (*s == '}' && *depth) {
			--*depth;
		} else if (*s == '.' && (size_t)(end - s) > 4 && !strncmp(s, ".reg", 4) &&
				isspace((unsigned char)s[4])) {
			stack[*depth] = ++*number;
		}
	}
}

uint32_t *group_scopes(const struct ptx_func *f)
{
	uint32_t *scope = base_alloc((f->ninsn + 1) * sizeof *scope), stack[64] = { 0 }, number = 0;
	const char *text = f->module->text;
	size_t from = f->ninsn ? f->insn[0].text_at : 0;
	unsigned depth = 0;

	for (uint32_t k = 0; k < f->ninsn; k++) {
		if (f->insn[k].text_len) {
			pass_text(text + from, text + f->insn[k].text_at, stack, &depth, &number);
			from = f->insn[k].text_at + f->insn[k].text_len;
		}
		scope[k] = stack[depth];
	}
	return scope;
}

/* ---- registers ---- */

static bool mentions(const struct ptx_operand *o, uint32_t reg)
{
	if ((o->kind == PO_REG || o->kind == PO_ADDR) && o->reg == reg)
		return true;
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			if (mentions(&o->list[k], reg))
				return true;
	return false;
}

static bool uses(const struct ptx_insn *i, uint32_t reg)
{
	if (i->guard == reg)
		return true;
	for (unsigned k = 0; k < i->noperands; k++)
		if (mentions(&i->operand[k], reg))
			return true;
	return false;
}

static bool writes(const struct ptx_insn *i, uint32_t reg)
{
	for (unsigned k = 0; k < ptx_written(i); k++)
		if (mentions(&i->operand[k], reg))
			return true;
	return false;
}

/* The last instruction of [at, end) that writes the register; `end`: none does. */
static uint32_t last_writer(const struct finder *w, uint32_t reg, uint32_t end)
{
	const struct ptx_insn *only = w->f->only_writer[reg];

	if (only) {
		const uint32_t k = (uint32_t)(only - w->f->insn);

		return k >= w->at && k < end ? k : end;
	}
	for (uint32_t k = end; k-- > w->at;)
		if (writes(&w->f->insn[k], reg))
			return k;
	return end;
}

/* Only computes one register. */
static bool is_movable(const struct finder *w, const struct ptx_insn *i)
{
	if (i->guard != PTX_NO_REG || !i->noperands || i->operand[0].kind != PO_REG ||
			i->operand[0].elem || ptx_written(i) != 1 || !i->text_len ||
			w->scope[i - w->f->insn] != w->scope[w->at])
		return false;
	for (unsigned k = 1; k < i->noperands; k++)
		if ((i->operand[k].kind != PO_REG && i->operand[k].kind != PO_IMM) || i->operand[k].elem)
			return false;
	switch ((enum ptx_op)i->op) {
	case OP_add: case OP_sub: case OP_mul: case OP_mad: case OP_shl: case OP_shr: case OP_and:
	case OP_or: case OP_xor: case OP_not: case OP_mov: case OP_selp: case OP_setp: case OP_min: case OP_max:
	case OP_lop3: case OP_bfe: case OP_bfi: case OP_prmt: case OP_cvt:
		return true;
	default:
		return false;
	}
}

/* ---- values ---- */

/* Replaces a register by the one from which constants after the first member make it. */
static uint32_t follow(const struct finder *w, uint32_t *reg, int64_t *add, uint32_t end)
{
	for (uint32_t k; (k = last_writer(w, *reg, end)) < end &&
			plan_adds_constant(w->f, &w->f->insn[k]); end = k) {
		*reg = w->f->insn[k].operand[1].reg;
		*add += w->f->insn[k].operand[2].imm;
	}
	return end;
}

/* Adds to the moves what computes the value that the register has at `end`. */
static bool reach(const struct finder *w, struct group *g, uint32_t reg, uint32_t end)
{
	const uint32_t k = last_writer(w, reg, end);
	const struct ptx_insn *i;
	unsigned n;

	if (k == end)
		return true;
	i = &w->f->insn[k];
	for (n = 0; n < g->nmoves && g->move[n] != k; n++)
		;
	if (n < g->nmoves)
		return true;
	if (!is_movable(w, i))
		return false;
	for (uint32_t b = w->at; b < k; b++)
		if (uses(&w->f->insn[b], reg))
			return false;
	for (unsigned o = 1; o < i->noperands; o++)
		if (i->operand[o].kind == PO_REG && !reach(w, g, i->operand[o].reg, k))
			return false;
	if (g->nmoves == GROUP_MOVES)
		return false;
	for (n = g->nmoves++; n && g->move[n - 1] > k; n--)
		g->move[n] = g->move[n - 1];
	g->move[n] = k;
	return true;
}

static bool same_word(const struct ptx_operand *a, const struct ptx_operand *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->var == b->var && a->negated == b->negated;
}

/* Finds the word for a value of the instruction k, or adds one. */
static bool add_value(const struct finder *w, struct group *g, const struct ptx_operand *o,
	uint8_t kind, uint32_t k, struct rewrite_part *part)
{
	struct ptx_operand want = *o;
	uint32_t end = k;
	unsigned n = 0;

	if (o->elem || o->minus || (kind == VAL_SHARED ? o->kind != PO_ADDR : o->kind != PO_REG) ||
			(kind != VAL_SHARED && kind != VAL_U32 && kind != VAL_PRED))
		return false;
	if (kind == VAL_SHARED && o->reg != PTX_NO_REG)
		end = follow(w, &want.reg, &want.imm, k);
	if (want.reg != PTX_NO_REG && !reach(w, g, want.reg, end))
		return false;
	while (n < g->nwords && !(g->word[n].kind == kind && same_word(&g->word[n].o, &want)))
		n++;
	if (n == GROUP_LANE_WORDS)
		return false;
	if (n == g->nwords) {
		g->word[n].o = want;
		g->word[n].kind = kind;
		g->nwords++;
	}
	part->word = (uint8_t)n;
	part->add = (uint32_t)(want.imm - g->word[n].o.imm);
	return true;
}

/* Accesses that order nothing, and whose record has only operands. */
static bool may_be_member(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	if (i->op != OP_ldmatrix && i->op != OP_ld && i->op != OP_cp_async &&
			i->op != OP_cp_async_commit_group)
		return false;
	return i->guard == PTX_NO_REG && i->text_len && plan_of(f, i, p) && p->before &&
		!p->after && !p->sync && !p->generic && !p->window && !p->test && !p->remote &&
		!p->poll && !p->waits && !p->conflicts &&
		p->nvalues <= REWRITE_PARTS && p->class != PLAN_UNIFORM;
}

static bool add_member(const struct finder *w, struct group *g, uint32_t k, const struct plan *p)
{
	struct group_member *m = &g->member[g->nmembers];
	const struct group before = *g;

	m->at = k;
	for (unsigned v = 0; v < p->nvalues; v++)
		if (!add_value(w, g, p->value[v].o, p->value[v].kind, k, &m->value[v])) {
			*g = before;
			return false;
		}
	g->nmembers++;
	return true;
}

/* Is it recorded, or does the code go elsewhere? */
static bool ends_group(const struct ptx_func *f, const struct ptx_insn *i, bool global)
{
	struct plan p;

	return i->op == OP_call || ptx_effect_of(i->op) == EF_CONTROL || plan_of(f, i, &p) ||
		plan_rank_of(i, &p) || ptx_effect_of(i->op) == EF_WGMMA ||
		(global && (plan_global_of(f, i, &p) || plan_heap_at(f, i)));
}

bool group_find(const struct ptx_func *f, const uint32_t *scope, uint32_t at, bool global,
	struct group *g)
{
	const struct ptx_block *b = &f->cfg->block[f->cfg->block_of[at]];
	const struct finder w = { .f = f, .scope = scope, .at = at };
	const uint32_t end = b->end < at + REACH ? b->end : at + REACH;
	struct plan p, side;

	g->nmembers = g->nwords = g->nmoves = 0;
	for (uint32_t k = at; k < end && g->nmembers < GROUP_MEMBERS; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (may_be_member(f, i, &p) && scope[k] == scope[at] &&
				!(global && plan_global_of(f, i, &side))) {
			if (!add_member(&w, g, k, &p))
				break;
		} else if (k == at || ends_group(f, i, global)) {
			break;
		}
	}
	return g->nmembers > 1 && g->nwords;
}
