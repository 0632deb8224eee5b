/* parse: a PTX module, from its text to the arrays of struct ptx_module.
 *
 * Does not look inside functions (body.c) or declarations (decl.c). */
#include "parse.h"
#include "cfg.h"
#include "constant.h"
#include "readers.h"
#include "opcodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* The offending line, or the part of it around the column, and a caret. */
static void quote_line(struct text *t, const struct ptx_module *m, uint32_t line, uint32_t col)
{
	const char *s = m->text, *end = m->text + m->ntext, *nl;
	size_t n, from;

	while (--line && (nl = memchr(s, '\n', (size_t)(end - s))))
		s = nl + 1;
	nl = memchr(s, '\n', (size_t)(end - s));
	n = (size_t)((nl ? nl : end) - s);
	from = col > 80 ? col - 60 : 0;
	if (from > n)
		return;
	n = n - from > 100 ? 100 : n - from;
	text_add(t, "\n", 1);
	for (size_t k = 0; k < n; k++) {
		unsigned char c = (unsigned char)s[from + k];
		char plain = c >= ' ' && c < 127 ? (char)c : c == '\t' ? ' ' : '?';

		text_add(t, &plain, 1);
	}
	text_add(t, "\n", 1);
	for (size_t k = from + 1; k < col; k++)
		text_add(t, " ", 1);
	text_add(t, "^", 1);
}

static bool fail(struct parser *p, int code, uint32_t line, uint32_t col,
	const char *fmt, va_list ap)
{
	struct text t = { 0 };

	if (p->e->code)
		return false;
	text_printf(&t, "%.60s:%u:%u: ", p->m->name, line, col);
	text_vprintf(&t, fmt, ap);
	quote_line(&t, p->m, line, col);
	err_set(p->e, code, (int)line, (int)col, "%s", t.at);
	text_free(&t);
	return false;
}

bool parse_fail_at(struct parser *p, int code, uint32_t line, uint32_t col, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(p, code, line, col, fmt, ap);
	va_end(ap);
	return false;
}

bool parse_fail(struct parser *p, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fail(p, code, p->l.tok_line, p->l.tok_col, fmt, ap);
	va_end(ap);
	return false;
}

bool parse_take(struct parser *p, char c)
{
	if (!lex_is(&p->l, c))
		return false;
	lex_next(&p->l);
	return true;
}

bool parse_expect(struct parser *p, char c)
{
	return parse_take(p, c) || parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected '%c'", c);
}

bool parse_number(struct parser *p, uint64_t *v)
{
	if (p->l.kind != T_INT)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected an integer");
	*v = p->l.value;
	lex_next(&p->l);
	return true;
}

/* ---- functions ---- */

/* Up to max numbers, the missing ones 1. */
static bool numbers(struct parser *p, uint32_t *v, unsigned max)
{
	uint64_t n = 0;

	lex_next(&p->l);
	for (unsigned k = 0; k < max; k++) {
		if (!parse_number(p, &n))
			return false;
		if (n > UINT32_MAX)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the number is too large");
		v[k] = (uint32_t)n;
		if (k + 1 == max || !parse_take(p, ','))
			break;
	}
	for (unsigned k = 1; k < max; k++)
		v[k] = v[k] ? v[k] : 1;
	return true;
}

/* The directives between the parameters and the body. */
static bool performance(struct parser *p, struct ptx_func *f)
{
	struct lex *l = &p->l;
	uint32_t ignored[3];

	while (l->kind == T_WORD) {
		bool ok = true;

		if (lex_word(l, "maxntid"))
			ok = numbers(p, f->maxntid, 3);
		else if (lex_word(l, "reqntid"))
			ok = numbers(p, f->reqntid, 3);
		else if (lex_word(l, "minnctapersm"))
			ok = numbers(p, &f->minnctapersm, 1);
		else if (lex_word(l, "maxnreg"))
			ok = numbers(p, &f->maxnreg, 1);
		else if (lex_word(l, "reqnctapercluster"))
			ok = numbers(p, f->reqnctapercluster, 3);
		else if (lex_word(l, "maxclusterrank"))
			ok = numbers(p, &f->maxclusterrank, 1);
		else if (lex_word(l, "maxnctapersm") || lex_word(l, "abi_preserve") ||
			 lex_word(l, "abi_preserve_control"))
			ok = numbers(p, ignored, 1);
		else if (lex_word(l, "explicitcluster"))
			f->explicitcluster = true, lex_next(l);
		else if (lex_word(l, "noreturn"))
			f->noreturn = true, lex_next(l);
		else if (lex_word(l, "blocksareclusters") || lex_word(l, "unique"))
			lex_next(l);
		else if (lex_word(l, "pragma")) {
			lex_next(l);
			if (l->kind != T_STRING)
				return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a string");
			lex_next(l);
			ok = parse_expect(p, ';');
		} else {
			return parse_fail(p, CONSAN_ERR_UNSUPPORTED, "unknown directive .%.*s",
				(int)(l->n < 60 ? l->n : 60), l->at);
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool ends_control(const struct ptx_insn *i)
{
	return i->guard == PTX_NO_REG && (i->op == OP_ret || i->op == OP_exit ||
		i->op == OP_trap || i->op == OP_bra || i->op == OP_brx_idx);
}

/* Control cannot run off the end, and a label at the end has an instruction. */
static void close_body(struct parser *p, bool label_at_end)
{
	struct ptx_insn ret = { .op = OP_ret, .guard = PTX_NO_REG, .loc = p->loc,
		.line = p->l.tok_line, .col = p->l.tok_col };

	if (label_at_end || !p->insns.n || !ends_control(&p->insns.at[p->insns.n - 1]))
		vec_push(&p->insns, ret);
}

static bool label_at(const struct parser *p, uint32_t at)
{
	for (size_t k = 0; k < p->insns.n; k++) {
		const struct ptx_insn *i = &p->insns.at[k];

		if (i->op == OP_bra && i->operand->imm == at)
			return true;
		for (uint32_t t = 0; t < i->ntarget; t++)
			if (i->target[t] == at)
				return true;
	}
	return false;
}

static void *copy_of(struct parser *p, const void *at, size_t bytes)
{
	return bytes ? memcpy(arena_alloc(p->keep, bytes), at, bytes) : NULL;
}

/* Moves the function's variables to their array and redirects pointers to them;
 * pointers to variables of the module are redirected by finish(). */
static void settle_function(struct parser *p, size_t first_slot)
{
	struct ptx_func *f = &p->fn->f;
	size_t left = first_slot;

	f->ninsn = p->insns.n;
	f->insn = copy_of(p, p->insns.at, f->ninsn * sizeof *f->insn);
	f->nreg = p->regs.n;
	f->reg = copy_of(p, p->regs.at, f->nreg * sizeof *f->reg);
	f->nvar = p->locals.n;
	if (f->nvar)
		f->var = arena_alloc(p->keep, f->nvar * sizeof *f->var);
	for (size_t k = 0; k < f->nvar; k++)
		f->var[k] = *p->locals.at[k];
	for (size_t k = first_slot; k < p->var_slot.n; k++) {
		const struct ptx_var **slot = p->var_slot.at[k];

		if ((*slot)->func)
			*slot = &f->var[(*slot)->index];
		else
			p->var_slot.at[left++] = slot;
	}
	p->var_slot.n = left;
}

static bool function_body(struct parser *p, struct fn *fn)
{
	size_t first_slot = p->var_slot.n;
	bool ok;

	p->regs.n = p->insns.n = p->locals.n = p->refs.n = p->stack.n = 0;
	p->frame = 0;
	p->loc = NULL;
	loc_function_starts(p->locs);
	p->fn = fn;
	ok = body_block(p);
	if (ok && p->refs.n)
		ok = parse_fail_at(p, CONSAN_ERR_PTX_SYMBOL, p->refs.at[0].line, p->refs.at[0].col,
			"label %.*s is not in scope",
			(int)(p->refs.at[0].name->n < 80 ? p->refs.at[0].name->n : 80),
			p->refs.at[0].name->at);
	if (ok) {
		close_body(p, label_at(p, (uint32_t)p->insns.n));
		settle_function(p, first_slot);
	}
	p->fn = NULL;
	return ok;
}

static struct fn *function_named(struct parser *p, struct name *n)
{
	struct bind *b = n->bind;
	struct fn *fn;

	if (b && b->kind == B_FUNC)
		return b->fn;
	b = scope_bind(p, n, B_FUNC);
	if (!b)
		return NULL;
	b->fn = fn = arena_alloc(&p->tmp, sizeof *fn);
	fn->index = (uint32_t)p->fns.n;
	fn->f.name = arena_strndup(p->keep, n->at, n->n);
	fn->f.module = p->m;
	vec_push(&p->fns, fn);
	return fn;
}

/* .entry name (params) .. and .func (ret) name (params) .. */
static bool function(struct parser *p, bool is_extern, bool visible, bool weak)
{
	struct ptx_func head = { .is_extern = is_extern, .visible = visible, .weak = weak,
		.line = p->l.tok_line };
	struct fn *fn;

	head.entry = lex_word(&p->l, "entry");
	lex_next(&p->l);
	if (!performance(p, &head) ||
	    (lex_is(&p->l, '(') && !decl_params(p, &head.ret, &head.nret, NULL)))
		return false;
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a function name");
	fn = function_named(p, name_of(p, p->l.at, p->l.n));
	if (!fn)
		return false;
	lex_next(&p->l);
	if (lex_is(&p->l, '(') &&
	    !decl_params(p, &head.param, &head.nparam, &head.param_bytes))
		return false;
	if (!performance(p, &head))
		return false;
	head.name = fn->f.name;
	head.module = fn->f.module;
	head.noreturn |= fn->f.noreturn;
	head.visible |= fn->f.visible;
	head.weak |= fn->f.weak;
	if (!lex_is(&p->l, '{')) {
		if (!fn->defined)
			fn->f = head;
		return parse_expect(p, ';');
	}
	if (fn->defined)
		return parse_fail(p, CONSAN_ERR_PTX_SYMBOL, "%.80s is defined twice", fn->f.name);
	head.is_extern = false;
	fn->f = head;
	fn->defined = true;
	scope_open(p);
	if (!decl_bind(p, head.param, head.nparam) || !decl_bind(p, head.ret, head.nret) ||
	    !function_body(p, fn))
		return false;
	scope_close(p);
	return true;
}

/* .alias f, g; calls of f go to g */
static bool alias(struct parser *p)
{
	struct fn *fn[2];

	for (int k = 0; k < 2; k++) {
		struct name *n;

		lex_next(&p->l); /* past .alias and the comma */
		if (p->l.kind != T_NAME)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a function name");
		n = name_of(p, p->l.at, p->l.n);
		if (!n->bind || n->bind->kind != B_FUNC)
			return parse_fail(p, CONSAN_ERR_PTX_SYMBOL, "%.*s is not a function",
				(int)(n->n < 80 ? n->n : 80), n->at);
		fn[k] = n->bind->fn;
		lex_next(&p->l);
		if (!k && !lex_is(&p->l, ','))
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected ','");
	}
	if (fn[1]->alias || fn[0] == fn[1])
		return parse_fail(p, CONSAN_ERR_PTX_SYMBOL, "alias of an alias");
	fn[0]->alias = fn[1];
	return parse_expect(p, ';');
}

/* ---- the module ---- */

static bool version(struct parser *p)
{
	unsigned major = 0, minor = 0;
	char s[16];

	lex_next(&p->l);
	snprintf(s, sizeof s, "%.*s", (int)(p->l.n < 15 ? p->l.n : 15), p->l.at);
	if (sscanf(s, "%u.%u", &major, &minor) != 2 || major > 99 || minor > 9)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a version such as 9.0");
	p->m->version = major * 10 + minor;
	lex_next(&p->l);
	return true;
}

static bool target(struct parser *p)
{
	do {
		char s[32], suffix = 0;
		unsigned sm;

		lex_next(&p->l);
		if (p->l.kind != T_NAME)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a target");
		snprintf(s, sizeof s, "%.*s", (int)(p->l.n < 31 ? p->l.n : 31), p->l.at);
		if (sscanf(s, "sm_%u%c", &sm, &suffix) >= 1) {
			p->m->sm = sm;
			p->m->sm_suffix = suffix;
		} else if (lex_name(&p->l, "debug")) {
			p->m->debug = true;
		}
		lex_next(&p->l);
	} while (lex_is(&p->l, ','));
	return true;
}

static bool top_level(struct parser *p)
{
	bool is_extern = false, visible = false, weak = false;
	struct lex *l = &p->l;
	uint64_t bits;

	if (l->kind != T_WORD)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a directive");
	for (;; lex_next(l)) {
		if (lex_word(l, "extern"))
			is_extern = true;
		else if (lex_word(l, "visible"))
			visible = true;
		else if (lex_word(l, "weak") || lex_word(l, "common"))
			weak = true;
		else
			break;
	}
	if (lex_word(l, "entry") || lex_word(l, "func"))
		return function(p, is_extern, visible, weak);
	if (lex_word(l, "global") || lex_word(l, "const") || lex_word(l, "shared") ||
	    lex_word(l, "shared::cta"))
		return decl_variable(p, is_extern, visible, weak);
	if (lex_word(l, "file"))
		return loc_file(p);
	if (lex_word(l, "section"))
		return loc_section(p);
	if (lex_word(l, "version"))
		return version(p);
	if (lex_word(l, "target"))
		return target(p);
	if (lex_word(l, "alias"))
		return alias(p);
	if (lex_word(l, "address_size")) {
		lex_next(l);
		if (l->kind == T_INT && l->value != 64)
			return parse_fail(p, CONSAN_ERR_UNSUPPORTED, "only 64-bit addresses are supported");
		return parse_number(p, &bits);
	}
	if (lex_word(l, "pragma")) {
		lex_next(l);
		if (l->kind != T_STRING)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a string");
		lex_next(l);
		return parse_expect(p, ';');
	}
	return parse_fail(p, CONSAN_ERR_UNSUPPORTED, "unknown directive .%.*s",
		(int)(l->n < 60 ? l->n : 60), l->at);
}

/* Puts variables and functions into their arrays and redirects the slots. */
static bool finish(struct parser *p)
{
	struct ptx_module *m = p->m;

	if (!init_resolve(p))
		return false;
	loc_finish(p);
	m->nvar = p->vars.n;
	m->nfunc = p->fns.n;
	if (m->nvar)
		m->var = arena_alloc(p->keep, m->nvar * sizeof *m->var);
	if (m->nfunc)
		m->func = arena_alloc(p->keep, m->nfunc * sizeof *m->func);
	for (size_t k = 0; k < m->nvar; k++)
		m->var[k] = *p->vars.at[k];
	for (size_t k = 0; k < p->var_slot.n; k++)
		*p->var_slot.at[k] = &m->var[(*p->var_slot.at[k])->index];
	for (size_t k = 0; k < p->func_slot.n; k++) {
		/* f is the first member */
		const struct fn *fn = (const struct fn *)(const void *)*p->func_slot.at[k];

		if (fn->alias)
			fn = fn->alias;
		if (fn->index != FN_PROTOTYPE)
			*p->func_slot.at[k] = &m->func[fn->index];
	}
	for (size_t k = 0; k < m->nfunc; k++) {
		struct ptx_func *f = &m->func[k];

		*f = p->fns.at[k]->f;
		for (size_t v = 0; v < f->nvar; v++)
			f->var[v].func = f;
		for (size_t v = 0; v < f->nparam; v++)
			f->param[v].func = f;
		for (size_t v = 0; v < f->nret; v++)
			f->ret[v].func = f;
		if (!f->ninsn)
			continue;
		f->cfg = cfg_build(p->keep, f);
		f->only_writer = constant_only_writers(p->keep, f);
		f->readers = readers_build(p->keep, f);
	}
	return true;
}

static void parser_free(struct parser *p)
{
	names_free(&p->names);
	loc_free(p->locs);
	free(p->spelling);
	vec_free(&p->fns);
	vec_free(&p->vars);
	vec_free(&p->var_slot);
	vec_free(&p->func_slot);
	vec_free(&p->relocs);
	vec_free(&p->regs);
	vec_free(&p->insns);
	vec_free(&p->locals);
	vec_free(&p->refs);
	vec_free(&p->stack);
	arena_free(&p->tmp);
}

struct ptx_module *ptx_parse(const char *name, const char *text, size_t n, struct consan_err *e)
{
	struct ptx_module *m = base_alloc(sizeof *m);
	struct parser p = { .m = m, .keep = &m->arena };
	struct consan_err own = { 0 };
	char *copy;
	bool ok = true;

	while (n && !text[n - 1])
		n--;
	/* NUL bytes after the text: the lexer reads a few bytes ahead */
	copy = arena_alloc(&m->arena, n + 32);
	if (n)
		memcpy(copy, text, n);
	m->text = copy;
	m->ntext = n;
	m->name = arena_strndup(&m->arena, name, strlen(name));
	p.e = e ? e : &own;
	p.e->code = CONSAN_ERR_NONE;
	p.locs = loc_new();
	lex_start(&p.l, m->text, n);
	lex_next(&p.l);
	if (n >= UINT32_MAX)
		ok = parse_fail(&p, CONSAN_ERR_UNSUPPORTED, "more than 4 GB of PTX");
	while (ok && p.l.kind != T_END)
		ok = top_level(&p);
	if (ok && !m->version)
		ok = parse_fail(&p, CONSAN_ERR_PTX_SYNTAX, "no .version: this is not PTX");
	ok = ok && finish(&p);
	parser_free(&p);
	if (ok)
		return m;
	ptx_free(m);
	return NULL;
}

void ptx_free(struct ptx_module *m)
{
	struct arena a;

	if (!m)
		return;
	a = m->arena;
	arena_free(&a);
	free(m);
}

const struct ptx_func *ptx_find(const struct ptx_module *m, const char *name)
{
	for (size_t k = 0; k < m->nfunc; k++)
		if (!strcmp(m->func[k].name, name))
			return &m->func[k];
	return NULL;
}
