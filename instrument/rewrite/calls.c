/* calls: which device functions record, and the parameter that they get for it. A function
 * stays unchanged if it records nothing, calls no function that records, and its address is
 * not taken. All functions that an indirect call can reach get the parameter, as they must
 * have the same signature. */
#include "calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "libconsan/ptx/opcodes.h"

/* ---- which functions record ---- */

static bool has_body(const struct ptx_func *f)
{
	return f && !f->entry && f->ninsn;
}

bool calls_indirect(const struct ptx_insn *call)
{
	return call->operand[0].kind != PO_FUNC;
}

static const struct ptx_func *callee(const struct calls *c, const struct ptx_insn *call)
{
	return calls_indirect(call) ? NULL : ptx_find(c->m, call->operand[0].func->name);
}

bool calls_takes_state(const struct calls *c, const struct ptx_insn *call)
{
	const struct ptx_func *f = callee(c, call);

	return calls_indirect(call) || (has_body(f) && c->takes_state[f - c->m->func]);
}

static void note_address_taken(struct calls *c, const struct ptx_func *f)
{
	f = ptx_find(c->m, f->name);
	if (has_body(f))
		c->address_taken[f - c->m->func] = true;
}

static void note_operand(struct calls *c, const struct ptx_operand *o)
{
	if (o->kind == PO_FUNC)
		note_address_taken(c, o->func);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			note_operand(c, &o->list[k]);
}

static void note_variable(struct calls *c, const struct ptx_var *v)
{
	for (size_t k = 0; k < v->nreloc; k++)
		if (v->reloc[k].func)
			note_address_taken(c, v->reloc[k].func);
}

/* Sets c->address_taken. True: the module has indirect calls. */
static bool find_address_taken(struct calls *c)
{
	bool indirect = false;

	for (size_t k = 0; k < c->m->nvar; k++)
		note_variable(c, &c->m->var[k]);
	for (size_t n = 0; n < c->m->nfunc; n++) {
		const struct ptx_func *f = &c->m->func[n];

		for (size_t k = 0; k < f->nvar; k++)
			note_variable(c, &f->var[k]);
		for (size_t k = 0; k < f->ninsn; k++) {
			indirect |= f->insn[k].op == OP_call && calls_indirect(&f->insn[k]);
			for (unsigned o = f->insn[k].op == OP_call; o < f->insn[k].noperands; o++)
				note_operand(c, &f->insn[k].operand[o]);
		}
	}
	return indirect;
}

/* A trap or a failed assertion ends the launch, so a function is not instrumented for these
 * alone. */
static bool records(const struct calls *c, const struct ptx_func *f)
{
	struct plan p;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (i->op == OP_call && calls_takes_state(c, i))
			return true;
		if (ptx_effect_of(i->op) != EF_STOP && !plan_asserts(i) &&
				plan_of(f, i, &p))
			return true;
		if (plan_rank_of(i, &p) || (c->global && plan_global_of(f, i, &p)))
			return true;
	}
	return false;
}

size_t calls_reach(const struct calls *c, const struct ptx_func *f, const struct ptx_func **reach)
{
	bool *seen = base_alloc(c->m->nfunc + 1);
	size_t n = 0;

	reach[n++] = f;
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < reach[k]->ninsn; i++) {
			const struct ptx_insn *call = &reach[k]->insn[i];
			const struct ptx_func *to = call->op == OP_call ? callee(c, call) : NULL;

			if (call->op != OP_call)
				continue;
			for (size_t g = 0; g < c->m->nfunc; g++) {
				const struct ptx_func *next = &c->m->func[g];

				if (seen[g] || !has_body(next) ||
						(to ? next != to : !c->address_taken[g]
						|| !calls_indirect(call)))
					continue;
				seen[g] = true;
				reach[n++] = next;
			}
		}
	free(seen);
	return n;
}

/* Depth-first search for a cycle of calls. Every function that calls a recording function
 * records, too, so that the others need not be visited. */
enum visit { NOT_VISITED, ON_STACK, VISITED };

static bool in_cycle(const struct calls *c, const struct ptx_func *f, uint8_t *visit)
{
	uint8_t *state = &visit[f - c->m->func];

	*state = ON_STACK;
	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *call = &f->insn[k];
		const struct ptx_func *to;

		if (call->op != OP_call || !calls_takes_state(c, call))
			continue;
		if (calls_indirect(call))
			return true;
		to = callee(c, call);
		if (visit[to - c->m->func] == ON_STACK ||
				(visit[to - c->m->func] == NOT_VISITED && in_cycle(c, to, visit)))
			return true;
	}
	*state = VISITED;
	return false;
}

bool calls_unbounded(const struct calls *c, const struct ptx_func *f)
{
	uint8_t *visit = base_alloc(c->m->nfunc + 1);
	const bool deep = in_cycle(c, f, visit);

	free(visit);
	return deep;
}

/* ---- text ---- */

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* The position behind a comment or string that begins at s[at]; `at` if none does. */
static size_t skip_comment(const char *s, size_t at)
{
	const char *end = NULL;

	if (s[at] == '/' && s[at + 1] == '/')
		end = strchr(s + at, '\n');
	else if (s[at] == '/' && s[at + 1] == '*')
		end = strstr(s + at + 2, "*/");
	else if (s[at] == '"')
		end = strchr(s + at + 1, '"');
	else
		return at;
	if (!end)
		return at + strlen(s + at);
	return (size_t)(end - s) + (*end == '*' ? 2 : 1);
}

static size_t skip_blanks(const char *s, size_t at)
{
	for (;;) {
		size_t next = s[at] == '"' ? at : skip_comment(s, at);

		while (isspace((unsigned char)s[next]))
			next++;
		if (next == at)
			return at;
		at = next;
	}
}

/* From the '(' at s[at] to its ')'. */
static size_t closing_paren(const char *s, size_t at)
{
	unsigned depth = 0;

	while (s[at]) {
		depth += s[at] == '(';
		if (s[at] == ')' && !--depth)
			break;
		at = skip_comment(s, at) == at ? at + 1 : skip_comment(s, at);
	}
	return at;
}

/* Where one more parameter is inserted: in the list behind the first name that is in no
 * parentheses. */
struct list_pos {
	size_t name, name_end;     /* of the name and of its end */
	size_t at;
	bool exists, empty;        /* there is a list; it is empty */
};

static struct list_pos find_list(const char *s, size_t at)
{
	struct list_pos list = { 0 };
	size_t next;

	for (at = skip_blanks(s, at); s[at] && (!in_name(s[at]) || isdigit((unsigned char)s[at]));
			at = skip_blanks(s, at)) {
		if (s[at] == '(')
			at = closing_paren(s, at);
		else if (s[at] == '.' || isdigit((unsigned char)s[at]))
			while (in_name(s[at + 1]) || s[at + 1] == ':')
				at++;
		at += s[at] != 0;
	}
	list.name = at;
	while (in_name(s[at]))
		at++;
	list.at = list.name_end = at;
	next = skip_blanks(s, at);
	if (s[next] == ',')
		next = skip_blanks(s, next + 1);
	if (s[next] != '(')
		return list;
	list.exists = true;
	list.empty = s[skip_blanks(s, next + 1)] == ')';
	list.at = closing_paren(s, next);
	return list;
}

static void patch_head(struct calls *c, size_t at, bool prototype)
{
	const char *s = c->m->text;
	struct list_pos list = find_list(s, at);
	char *name = base_strndup(s + list.name, list.name_end - list.name);
	const struct ptx_func *f = prototype ? NULL : ptx_find(c->m, name);

	free(name);
	if (!prototype && !(f && c->takes_state[f - c->m->func]))
		return;
	vec_push(&c->patch, ((struct calls_patch){ list.at, prototype
		? list.empty ? ".param .b64 _" : list.exists ? ", .param .b64 _" : "(.param .b64 _)"
		: list.empty ? ".param .b64 " CALLS_PARAM : list.exists
		? ", .param .b64 " CALLS_PARAM : "(.param .b64 " CALLS_PARAM ")" }));
}

/* The position behind the next directive `word` at or after `at`; 0: there is none. */
static size_t after_directive(const char *s, size_t at, const char *word)
{
	const size_t n = strlen(word);

	while (s[at]) {
		size_t next = skip_comment(s, at);

		if (next == at && s[at] == '.' && !strncmp(s + at, word, n) && !in_name(s[at + n]))
			return at + n;
		at = next == at ? at + 1 : next;
	}
	return 0;
}

static const struct ptx_func *function_at(const struct calls *c, size_t *at)
{
	const char *s = c->m->text;
	size_t end = *at = skip_blanks(s, *at);
	const struct ptx_func *f;
	char *name;

	while (in_name(s[end]))
		end++;
	name = base_strndup(s + *at, end - *at);
	f = ptx_find(c->m, name);
	free(name);
	*at = skip_blanks(s, end);
	return f;
}

/* `.alias f, g`: calls of f already count as calls of g, but the declarations of f need the
 * parameter, too. */
static void find_aliases(struct calls *c)
{
	for (size_t at = 0; (at = after_directive(c->m->text, at, ".alias"));) {
		const struct ptx_func *f = function_at(c, &at), *g;

		at += c->m->text[at] == ',';
		g = function_at(c, &at);
		if (f && g && c->takes_state[g - c->m->func])
			c->takes_state[f - c->m->func] = true;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct calls_patch *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Finds every function head and prototype: a function may be declared several times. */
static void find_heads(struct calls *c)
{
	const char *s = c->m->text;

	for (size_t at = 0; (at = after_directive(s, at, ".func"));)
		patch_head(c, at, false);
	for (size_t at = 0; c->indirect && (at = after_directive(s, at, ".callprototype"));)
		patch_head(c, at, true);
	if (c->patch.n)
		qsort(c->patch.at, c->patch.n, sizeof *c->patch.at, by_place);
}

void calls_text(const struct calls *c, struct text *t, size_t from, size_t end)
{
	size_t low = 0, high = c->patch.n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (c->patch.at[mid].at < from)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < c->patch.n && c->patch.at[low].at < end; low++) {
		text_add(t, c->m->text + from, c->patch.at[low].at - from);
		text_printf(t, "%s", c->patch.at[low].text);
		from = c->patch.at[low].at;
	}
	text_add(t, c->m->text + from, end - from);
}

/* The position before .visible and .weak, if these precede `at`. */
static size_t linkage_start(const char *s, size_t at)
{
	size_t word = at;

	for (;;) {
		while (word && isspace((unsigned char)s[word - 1]))
			word--;
		while (word && isalpha((unsigned char)s[word - 1]))
			word--;
		if (!word || s[word - 1] != '.' || (strncmp(s + word, "visible", 7) &&
				strncmp(s + word, "weak", 4)))
			return at;
		at = --word;
	}
}

void calls_declare(const struct calls *c, struct text *t)
{
	for (size_t k = 0; c->indirect && k < c->m->nfunc; k++) {
		const char *s = c->m->text;
		size_t at = 0, end;

		if (!c->address_taken[k])
			continue;
		for (uint32_t line = 1; line < c->m->func[k].line && s[at]; at++)
			line += s[at] == '\n';
		at = (size_t)(strstr(s + at, ".func") - s);
		for (end = at; s[end] && s[end] != '{';
				end = skip_comment(s, end) == end ? end + 1 : skip_comment(s, end))
			;
		calls_text(c, t, linkage_start(s, at), end);
		text_printf(t, "\n;\n");
	}
}

void calls_statement(struct text *t, const struct ptx_func *f, const struct ptx_insn *call,
	const char *argument)
{
	const char *s = f->module->text;
	size_t at = call->text_at, end = at + call->text_len;
	struct list_pos list;

	if (s[at] == '@') {
		at = skip_blanks(s, at + 1);
		at = skip_blanks(s, at + (s[at] == '!'));
		while (in_name(s[at]))
			at++;
		at = skip_blanks(s, at);
	}
	list = find_list(s, at + strlen("call"));
	text_printf(t, "\t%.*s", (int)(list.at - call->text_at), s + call->text_at);
	text_printf(t, list.empty ? "%s" : list.exists ? ", %s" : ", (%s)", argument);
	text_printf(t, "%.*s;\n", (int)(end - list.at), s + list.at);
}

/* ---- a module ---- */

void calls_open(struct calls *c, const struct ptx_module *m, bool global)
{
	bool more = true;

	*c = (struct calls){ .m = m, .global = global, .takes_state = base_alloc(m->nfunc + 1),
		.address_taken = base_alloc(m->nfunc + 1),
		.recorded = base_alloc((m->nfunc + 1) * sizeof *c->recorded) };
	c->indirect = find_address_taken(c);
	for (size_t k = 0; c->indirect && k < m->nfunc; k++)
		c->takes_state[k] = c->address_taken[k];
	while (more) {
		more = false;
		for (size_t k = 0; k < m->nfunc; k++)
			if (!c->takes_state[k] && has_body(&m->func[k]) && records(c, &m->func[k]))
				c->takes_state[k] = more = true;
	}
	find_aliases(c);
	find_heads(c);
}

void calls_close(struct calls *c)
{
	free(c->takes_state);
	free(c->address_taken);
	free(c->recorded);
	vec_free(&c->patch);
}
