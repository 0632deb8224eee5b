/* body: the { } of a function: blocks, labels and instructions.
 *
 * Does not know what instructions do; only control flow (bra, brx.idx, call)
 * has a syntax of its own, all others that of their row. */
#include "parse.h"
#include "opcodes.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 200
#define MAX_ARGUMENTS 4096

/* ---- spellings, each looked up in the tables once ---- */

struct spelling_slot {
	const char *at;
	size_t n;
	struct spelling s;
};

static uint32_t spelling_hash(const char *s, size_t n)
{
	uint32_t h = (uint32_t)n;

	while (n--)
		h = (h ^ (unsigned char)*s++) * 0x01000193u;
	return h ^ h >> 15;
}

static struct spelling_slot *spelling_find(struct spelling_slot *slot, size_t cap,
	const char *at, size_t n)
{
	size_t k = spelling_hash(at, n);

	for (;; k++) {
		struct spelling_slot *x = &slot[k & (cap - 1)];

		if (!x->at || (x->n == n && !memcmp(x->at, at, n)))
			return x;
	}
}

/* `text` must outlive the instruction: it lies in the module's arena or in p->tmp. */
static const struct spelling *spelling_of(struct parser *p, const char *at, size_t n)
{
	struct spelling_slot *x;

	if (2 * p->nspelling >= p->spelling_cap) {
		size_t cap = p->spelling_cap ? 2 * p->spelling_cap : 512;
		struct spelling_slot *slot = base_alloc(cap * sizeof *slot);

		for (size_t k = 0; k < p->spelling_cap; k++) {
			struct spelling_slot *old = &p->spelling[k];

			if (old->at)
				*spelling_find(slot, cap, old->at, old->n) = *old;
		}
		free(p->spelling);
		p->spelling = slot;
		p->spelling_cap = cap;
	}
	x = spelling_find(p->spelling, p->spelling_cap, at, n);
	if (!x->at) {
		x->at = at;
		x->n = n;
		p->nspelling++;
		table_spell(at, n, &x->s);
	}
	return &x->s;
}

/* From the name of an instruction to its first operand. */
static const struct spelling *opcode(struct parser *p)
{
	struct text t = { 0 };
	const struct spelling *s;
	size_t n;
	const char *at = lex_opcode(&p->l, &n);

	if (n)
		return spelling_of(p, at, n);
	text_add(&t, p->l.at, p->l.n);
	for (lex_next(&p->l); p->l.kind == T_WORD; lex_next(&p->l))
		text_printf(&t, ".%.*s", (int)p->l.n, p->l.at);
	s = spelling_of(p, arena_strndup(&p->tmp, t.at, t.n), t.n);
	text_free(&t);
	return s;
}

/* ---- control flow ---- */

static bool label_name(struct parser *p, struct name **n)
{
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a label");
	*n = name_of(p, p->l.at, p->l.n);
	return true;
}

static bool refer(struct parser *p, int64_t *imm, uint32_t *index)
{
	struct label_ref r = { .imm = imm, .index = index, .line = p->l.tok_line, .col = p->l.tok_col };

	if (!label_name(p, &r.name))
		return false;
	vec_push(&p->refs, r);
	lex_next(&p->l);
	return true;
}

static bool branch(struct parser *p, struct ptx_insn *i)
{
	operand_push(p, PO_LABEL);
	i->operand = operand_keep(p, p->stack.n - 1);
	i->noperands = 1;
	return refer(p, &i->operand->imm, NULL);
}

/* brx.idx index, table */
static bool branch_indexed(struct parser *p, struct ptx_insn *i)
{
	size_t first = p->stack.n;
	struct name *n = NULL;

	if (!operand_one(p) || !parse_expect(p, ',') || !label_name(p, &n))
		return false;
	if (!n->bind || n->bind->kind != B_TARGETS)
		return operand_undeclared(p);
	i->target = n->bind->targets;
	i->ntarget = n->bind->count;
	i->operand = operand_keep(p, first);
	i->noperands = 1;
	lex_next(&p->l);
	return true;
}

/* (a, b, ..) */
static bool list(struct parser *p, const struct ptx_operand **out, uint16_t *n)
{
	size_t first = p->stack.n;

	if (!parse_expect(p, '('))
		return false;
	if (parse_take(p, ')'))
		return true;
	do {
		if (p->stack.n - first >= MAX_ARGUMENTS)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "too many arguments");
		if (!operand_one(p))
			return false;
	} while (parse_take(p, ','));
	*n = (uint16_t)(p->stack.n - first);
	*out = operand_keep(p, first);
	return parse_expect(p, ')');
}

/* call {(ret),} target {, (args)} {, prototype or targets} */
static bool call(struct parser *p, struct ptx_insn *i)
{
	struct name *n = NULL;

	if (lex_is(&p->l, '(') &&
	    (!list(p, &i->ret, &i->nret) || !parse_expect(p, ',')))
		return false;
	if (p->l.kind != T_NAME || !operand_named(p))
		return p->e->code ? false : parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a function");
	i->operand = operand_keep(p, p->stack.n - 1);
	i->noperands = 1;
	if (i->operand->kind != PO_FUNC && i->operand->kind != PO_REG)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "call of something that is not a function");
	while (parse_take(p, ',')) {
		if (lex_is(&p->l, '(')) {
			if (i->arg)
				return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "two argument lists");
			if (!list(p, &i->arg, &i->narg))
				return false;
			continue;
		}
		if (!label_name(p, &n))
			return false;
		if (n->bind && n->bind->kind == B_FUNC && n->bind->fn->index == FN_PROTOTYPE)
			i->prototype = &n->bind->fn->f;
		else if (!n->bind || n->bind->kind != B_TARGETS)
			return operand_undeclared(p);
		lex_next(&p->l);
	}
	return true;
}

/* ---- statements ---- */

/* An instruction that the tables do not list keeps its text, and its operands if they parse. */
static bool unknown(struct parser *p, struct ptx_insn *i)
{
	struct lex start = p->l;
	struct consan_err saved = *p->e;
	size_t first = p->stack.n;
	int braces = 0;

	i->op = OP_unknown;
	i->noperands = 0;
	i->operand = NULL;
	if (operand_all(p) && lex_is(&p->l, ';')) {
		i->noperands = (uint8_t)(p->stack.n - first);
		i->operand = operand_keep(p, first);
		return true;
	}
	*p->e = saved;
	p->stack.n = first;
	p->l = start;
	for (; !lex_is(&p->l, ';'); lex_next(&p->l)) {
		if (p->l.kind == T_END || p->l.kind == T_BAD || p->l.kind == T_STRING ||
		    (lex_is(&p->l, '}') && !braces--))
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected ';'");
		braces += lex_is(&p->l, '{');
	}
	return true;
}

static bool ordinary(struct parser *p, struct ptx_insn *i)
{
	size_t first = p->stack.n, n;

	if (!operand_all(p))
		return false;
	n = p->stack.n - first;
	if (!table_fits(i->op, n ? p->stack.at + first : NULL, n))
		i->op = OP_unknown;
	i->noperands = (uint8_t)n;
	i->operand = operand_keep(p, first);
	return true;
}

static bool guard(struct parser *p, struct ptx_insn *i)
{
	lex_next(&p->l);
	i->guard_negated = parse_take(p, '!');
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a predicate");
	if (!scope_register(name_of(p, p->l.at, p->l.n), &i->guard))
		return operand_undeclared(p);
	if (p->regs.at[i->guard].type != TY_pred)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the guard is not a predicate");
	lex_next(&p->l);
	return true;
}

static bool instruction(struct parser *p)
{
	struct ptx_insn i = { .guard = PTX_NO_REG, .loc = p->loc,
		.line = p->l.tok_line, .col = p->l.tok_col };
	const char *at = p->l.at, *end;
	const struct spelling *s;
	bool ok;

	if (lex_is(&p->l, '@') && !guard(p, &i))
		return false;
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected an instruction");
	s = opcode(p);
	i.op = s->op;
	i.nmods = s->nmods;
	memcpy(i.mod, s->mod, sizeof i.mod);
	if (i.op == OP_bra)
		ok = branch(p, &i);
	else if (i.op == OP_brx_idx)
		ok = branch_indexed(p, &i);
	else if (i.op == OP_call)
		ok = call(p, &i);
	else if (i.op == OP_unknown)
		ok = unknown(p, &i);
	else
		ok = ordinary(p, &i);
	if (!ok)
		return false;
	for (end = p->l.at; end > at && (unsigned char)end[-1] <= ' '; end--)
		;
	i.text_at = (uint32_t)(at - p->m->text);
	i.text_len = (uint32_t)(end - at);
	if (!parse_expect(p, ';'))
		return false;
	vec_push(&p->insns, i);
	return true;
}

/* name: .branchtargets a, b; or name: .calltargets f, g; */
static bool targets(struct parser *p, struct name *n)
{
	bool functions = lex_word(&p->l, "calltargets");
	struct bind *b = scope_bind(p, n, B_TARGETS);
	size_t first = p->refs.n, count = 0;
	uint32_t *index;

	if (!b)
		return false;
	do {
		struct name *label;

		lex_next(&p->l);
		if (functions) {
			if (!label_name(p, &label))
				return false;
			lex_next(&p->l);
		} else if (!refer(p, NULL, NULL)) {
			return false;
		}
		count++;
	} while (lex_is(&p->l, ','));
	if (!functions) {
		index = arena_alloc(p->keep, count * sizeof *index);
		for (size_t k = 0; k < count; k++)
			p->refs.at[first + k].index = &index[k];
		b->targets = index;
		b->count = (uint32_t)count;
	}
	return parse_expect(p, ';');
}

/* name: .callprototype {(ret)} _ {(params)} {.noreturn}; */
static bool prototype(struct parser *p, struct name *n)
{
	struct bind *b = scope_bind(p, n, B_FUNC);
	struct fn *fn;
	struct ptx_func *f;

	if (!b)
		return false;
	b->fn = fn = arena_alloc(p->keep, sizeof *fn);
	f = &fn->f;
	f->name = arena_strndup(p->keep, n->at, n->n);
	f->line = p->l.tok_line;
	f->is_extern = true;
	f->module = p->m;
	fn->index = FN_PROTOTYPE;
	lex_next(&p->l);
	if (lex_is(&p->l, '(') && !decl_params(p, &f->ret, &f->nret, NULL))
		return false;
	if (p->l.kind == T_NAME)
		lex_next(&p->l);
	if (lex_is(&p->l, '(') && !decl_params(p, &f->param, &f->nparam, &f->param_bytes))
		return false;
	while (p->l.kind == T_WORD) {
		f->noreturn |= lex_word(&p->l, "noreturn");
		lex_next(&p->l);
		if (p->l.kind == T_INT)
			lex_next(&p->l);
	}
	return parse_expect(p, ';');
}

static bool label(struct parser *p)
{
	struct name *n = name_of(p, p->l.at, p->l.n);
	struct bind *b;

	lex_next(&p->l);
	lex_next(&p->l);
	if (lex_word(&p->l, "branchtargets") || lex_word(&p->l, "calltargets"))
		return targets(p, n);
	if (lex_word(&p->l, "callprototype"))
		return prototype(p, n);
	b = scope_bind(p, n, B_LABEL);
	if (!b)
		return false;
	b->first = (uint32_t)p->insns.n;
	return true;
}

static bool directive(struct parser *p)
{
	struct lex *l = &p->l;

	if (lex_word(l, "loc"))
		return loc_directive(p);
	if (lex_word(l, "reg"))
		return decl_registers(p);
	if (lex_word(l, "pragma")) {
		lex_next(l);
		do {
			if (l->kind != T_STRING)
				return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a string");
			lex_next(l);
		} while (parse_take(p, ','));
		return parse_expect(p, ';');
	}
	if (lex_word(l, "param") || lex_word(l, "local") || lex_word(l, "shared") ||
	    lex_word(l, "global") || lex_word(l, "const") || lex_word(l, "shared::cta"))
		return decl_variable(p, false, false, false);
	if (lex_word(l, "extern")) {
		lex_next(l);
		return decl_variable(p, true, false, false);
	}
	if (lex_word(l, "file"))
		return loc_file(p);
	return parse_fail(p, CONSAN_ERR_UNSUPPORTED, "unknown directive .%.*s",
		(int)(l->n < 60 ? l->n : 60), l->at);
}

/* Resolves references to labels of the closing scope; the others move to the outer scope. */
static void settle(struct parser *p, size_t first)
{
	uint32_t depth = (uint32_t)p->names.scope.n;
	size_t left = first;

	for (size_t k = first; k < p->refs.n; k++) {
		struct label_ref *r = &p->refs.at[k];
		const struct bind *b = r->name->bind;

		if (b && b->kind == B_LABEL && b->depth == depth) {
			if (r->imm)
				*r->imm = b->first;
			else
				*r->index = b->first;
		} else {
			p->refs.at[left++] = *r;
		}
	}
	p->refs.n = left;
}

bool body_block(struct parser *p)
{
	size_t refs = p->refs.n;
	uint64_t frame = p->frame;

	if (!parse_expect(p, '{'))
		return false;
	if (p->names.scope.n > MAX_DEPTH)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "blocks are nested too deeply");
	scope_open(p);
	while (!lex_is(&p->l, '}')) {
		bool ok;

		if (p->l.kind == T_NAME)
			ok = lex_label_follows(&p->l) ? label(p) : instruction(p);
		else if (p->l.kind == T_WORD)
			ok = directive(p);
		else if (lex_is(&p->l, '{'))
			ok = body_block(p);
		else if (lex_is(&p->l, '@'))
			ok = instruction(p);
		else if (lex_is(&p->l, ';'))
			lex_next(&p->l), ok = true;
		else
			ok = parse_fail(p, CONSAN_ERR_PTX_SYNTAX, p->l.kind == T_END ?
				"the file ends inside a function" : "expected a statement");
		if (!ok)
			return false;
	}
	settle(p, refs);
	scope_close(p);
	p->frame = frame;
	lex_next(&p->l);
	return true;
}
