/* operand: the operands after an instruction's name.
 *
 * Operands are pushed on p->stack and moved to the module's arena in one piece.
 * Does not know which operands an instruction takes. */
#include "parse.h"

#include <string.h>

#define MAX_VECTOR 4096

struct ptx_operand *operand_push(struct parser *p, enum ptx_operand_kind kind)
{
	struct ptx_operand o = { .kind = (uint8_t)kind, .reg = PTX_NO_REG };

	vec_push(&p->stack, o);
	return &p->stack.at[p->stack.n - 1];
}

static bool moves(const struct parser *p, const struct ptx_var *v)
{
	const struct ptx_func *f = &p->fn->f;

	return !ptx_var_in(v, f->param, f->nparam) && !ptx_var_in(v, f->ret, f->nret);
}

/* Pops the operands from `first` on. */
struct ptx_operand *operand_keep(struct parser *p, size_t first)
{
	size_t n = p->stack.n - first;
	struct ptx_operand *o;

	if (!n)
		return NULL;
	o = arena_alloc(p->keep, n * sizeof *o);
	memcpy(o, p->stack.at + first, n * sizeof *o);
	for (size_t k = 0; k < n; k++) {
		if (o[k].var && moves(p, o[k].var))
			vec_push(&p->var_slot, &o[k].var);
		if (o[k].func)
			vec_push(&p->func_slot, &o[k].func);
	}
	p->stack.n = first;
	return o;
}

/* Replaces the operands from `first` on by one that lists them. */
static void fold(struct parser *p, size_t first, enum ptx_operand_kind kind)
{
	size_t n = p->stack.n - first;
	struct ptx_operand *list = operand_keep(p, first), *o = operand_push(p, kind);

	o->list = list;
	o->n = (uint16_t)n;
}

/* .b3210, .h1: parts of a register, of video instructions */
static bool parts(struct parser *p, struct ptx_operand *o)
{
	const char *at = p->l.at;
	const size_t most = *at == 'b' ? 4 : *at == 'h' ? 2 : 0, n = p->l.n - 1;

	if (o->kind != PO_REG || !n || n > most)
		return false;
	for (size_t k = 1; k <= n; k++) {
		if (at[k] < '0' || at[k] >= '0' + (int)(2 * most))
			return false;
		o->parts = (uint16_t)(o->parts << 4 | (at[k] - '0'));
	}
	o->part_bits = *at == 'b' ? 8 : 16;
	o->nparts = (uint8_t)n;
	lex_next(&p->l);
	return true;
}

/* .x .y .z .w (or .r .g .b .a) of a vector register */
static bool component(struct parser *p, struct ptx_operand *o)
{
	static const char names[] = "xyzwrgba";
	const char *c = p->l.n == 1 ? strchr(names, *p->l.at) : NULL;
	unsigned k;

	k = c ? (unsigned)(c - names) % 4 : 4;
	if (o->kind != PO_REG || k >= p->regs.at[o->reg].vec || p->regs.at[o->reg].vec == 1)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the operand has no component .%.*s",
			(int)(p->l.n < 40 ? p->l.n : 40), p->l.at);
	o->elem = (uint8_t)(k + 1);
	lex_next(&p->l);
	return true;
}

static bool special(struct parser *p, struct ptx_operand *o)
{
	const char *at = p->l.at;
	size_t n = p->l.n, with = n;
	enum ptx_sreg r;

	if (at[n] == '.' && ((at[n + 1] >= 'w' && at[n + 1] <= 'z')))
		with = n + 2;
	if (with > n && table_sreg(at, with, &r))
		lex_next(&p->l);
	else if (!table_sreg(at, n, &r))
		return false;
	lex_next(&p->l);
	o->kind = PO_SREG;
	o->sreg = (uint16_t)r;
	return true;
}

/* {+ n}, {- n}, {+ -n} behind a base */
static bool offset(struct parser *p, int64_t *imm)
{
	while (lex_is(&p->l, '+') || lex_is(&p->l, '-')) {
		bool minus = lex_is(&p->l, '-');
		uint64_t v;

		lex_next(&p->l);
		if (lex_is(&p->l, '-')) {
			minus = !minus;
			lex_next(&p->l);
		}
		if (!parse_number(p, &v))
			return false;
		*imm = (int64_t)((uint64_t)*imm + (minus ? -v : v));
	}
	return true;
}

bool operand_undeclared(struct parser *p)
{
	return parse_fail(p, CONSAN_ERR_PTX_SYMBOL, "%.*s is not declared",
		(int)(p->l.n < 80 ? p->l.n : 80), p->l.at);
}

/* A name of a register, a variable, a function, .. */
bool operand_named(struct parser *p)
{
	struct lex *l = &p->l;
	struct ptx_operand *o;
	struct name *n;
	uint32_t reg;

	if (l->n == 1 && *l->at == '_') {
		operand_push(p, PO_SINK);
		lex_next(l);
		return true;
	}
	n = name_of(p, l->at, l->n);
	if (scope_register(n, &reg)) {
		o = operand_push(p, PO_REG);
		o->reg = reg;
		lex_next(l);
		return l->kind != T_WORD || parts(p, o) || component(p, o);
	}
	o = operand_push(p, PO_NONE);
	if (n->bind && n->bind->kind == B_VAR) {
		o->kind = PO_SYM;
		o->var = n->bind->var;
		lex_next(l);
		return offset(p, &o->imm);
	}
	if (n->bind && n->bind->kind == B_FUNC) {
		o->kind = PO_FUNC;
		o->func = &n->bind->fn->f;
		lex_next(l);
		return true;
	}
	if (special(p, o))
		return true;
	if (lex_name(l, "WARP_SZ")) {
		o->kind = PO_IMM;
		o->imm = 32;
		lex_next(l);
		return true;
	}
	return operand_undeclared(p);
}

/* [a] and [a, b, {coordinates}]; the current token follows '[' */
static bool address(struct parser *p)
{
	size_t first = p->stack.n;
	struct ptx_operand *o = operand_push(p, PO_ADDR);
	struct lex *l = &p->l;
	uint64_t v;

	if (l->kind == T_NAME) {
		struct name *n = name_of(p, l->at, l->n);

		if (!scope_register(n, &o->reg)) {
			if (!n->bind || n->bind->kind != B_VAR)
				return operand_undeclared(p);
			o->var = n->bind->var;
		}
		lex_next(l);
		if (l->kind == T_WORD) {
			o->kind = o->reg == PTX_NO_REG ? PO_SYM : PO_REG;
			if (!component(p, o))
				return false;
			o->kind = PO_ADDR;
		}
		if (!offset(p, &o->imm))
			return false;
	} else {
		bool minus = parse_take(p, '-');

		if (!parse_number(p, &v))
			return false;
		o->imm = (int64_t)(minus ? -v : v);
		if (!offset(p, &o->imm))
			return false;
	}
	if (lex_is(l, ',')) {
		while (parse_take(p, ','))
			if (!operand_one(p))
				return false;
		fold(p, first, PO_TADDR);
	}
	return parse_expect(p, ']');
}

static bool vector(struct parser *p)
{
	size_t first = p->stack.n;

	do {
		if (p->stack.n - first >= MAX_VECTOR)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the vector is too long");
		if (lex_is(&p->l, '{') || lex_is(&p->l, '['))
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "a vector of vectors");
		if (!operand_one(p))
			return false;
	} while (parse_take(p, ','));
	fold(p, first, PO_VEC);
	return parse_expect(p, '}');
}

static bool number(struct parser *p, bool minus)
{
	struct lex *l = &p->l;
	struct ptx_operand *o = operand_push(p, PO_IMM);

	switch (l->kind) {
	case T_INT:
		o->imm = (int64_t)(minus ? -l->value : l->value);
		break;
	case T_F32:
		o->kind = PO_F32;
		o->imm = (int64_t)(l->value ^ (minus ? (uint64_t)1 << 31 : 0));
		break;
	case T_F64:
		o->kind = PO_F64;
		o->imm = (int64_t)(l->value ^ (minus ? (uint64_t)1 << 63 : 0));
		break;
	case T_END: case T_NAME: case T_WORD: case T_STRING: case T_PUNCT: case T_BAD:
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected an operand");
	}
	lex_next(l);
	return true;
}

/* Behind an operand: |, and the register with which it is a pair. */
static bool pair(struct parser *p, size_t first)
{
	if (!parse_take(p, '|'))
		return true;
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a register behind '|'");
	if (!operand_named(p))
		return false;
	fold(p, first, PO_PAIR);
	return true;
}

/* Parses and pushes one operand. The common case, a register, comes first. */
bool operand_one(struct parser *p)
{
	size_t first = p->stack.n;

	if (p->l.kind == T_PUNCT) {
		if (parse_take(p, '['))
			return address(p);
		if (parse_take(p, '{'))
			return vector(p);
		if (parse_take(p, '!')) {
			if (p->l.kind != T_NAME || !operand_named(p))
				return p->e->code ? false : parse_fail(p, CONSAN_ERR_PTX_SYNTAX,
					"expected a predicate");
			p->stack.at[first].negated = true;
			return true;
		}
		if (parse_take(p, '-')) {
			if (p->l.kind != T_NAME)
				return number(p, true);
			if (!operand_named(p))
				return false;
			p->stack.at[first].minus = true;
			return true;
		}
		if (parse_take(p, '~')) {
			if (!number(p, false))
				return false;
			p->stack.at[first].imm = ~p->stack.at[first].imm;
			return true;
		}
	}
	if (p->l.kind != T_NAME)
		return number(p, false);
	return operand_named(p) && pair(p, first);
}

bool operand_all(struct parser *p)
{
	size_t first = p->stack.n;

	if (lex_is(&p->l, ';'))
		return true;
	do {
		const size_t at = p->stack.n;

		if (at - first == PTX_MAX_OPERANDS)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "too many operands");
		if (!operand_one(p) || (p->stack.at[at].kind == PO_VEC && !pair(p, at))) /* tex has such pairs */
			return false;
	} while (parse_take(p, ','));
	return true;
}
