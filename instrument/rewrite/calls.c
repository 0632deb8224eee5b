/* calls: which device functions record, and the parameter that they get for it.
 * A function that records nothing itself and calls none that does stays as it
 * is, unless its address is taken: all that an indirect call may reach have the
 * same parameters. */
#include "calls.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"
#include "libconsan/ptx/opcodes.h"

/* ---- which ---- */

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

bool calls_carry(const struct calls *c, const struct ptx_insn *call)
{
	const struct ptx_func *f = callee(c, call);

	return calls_indirect(call) || (has_body(f) && c->carries[f - c->m->func]);
}

static void note_pointed(struct calls *c, const struct ptx_func *f)
{
	f = ptx_find(c->m, f->name);
	if (has_body(f))
		c->pointed[f - c->m->func] = true;
}

static void note_operand(struct calls *c, const struct ptx_operand *o)
{
	if (o->kind == PO_FUNC)
		note_pointed(c, o->func);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			note_operand(c, &o->list[k]);
}

static void note_variable(struct calls *c, const struct ptx_var *v)
{
	for (size_t k = 0; k < v->nreloc; k++)
		if (v->reloc[k].func)
			note_pointed(c, v->reloc[k].func);
}

/* True: the module has indirect calls. */
static bool find_pointed(struct calls *c)
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

/* A trap or failed assertion that is reached ends the launch: for its sake alone
 * nothing is recorded. */
static bool records(const struct calls *c, const struct ptx_func *f)
{
	struct plan p;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (i->op == OP_call && calls_carry(c, i))
			return true;
		if (ptx_effect_of(i->op) != EF_STOP && !plan_asserts(i) && plan_of(f, i, &p))
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

				if (seen[g] || !has_body(next) || (to ? next != to : !c->pointed[g]
						|| !calls_indirect(call)))
					continue;
				seen[g] = true;
				reach[n++] = next;
			}
		}
	free(seen);
	return n;
}

/* Who calls one that carries does, too: the others need not be followed. */
enum way { NOT_SEEN, ON_THE_WAY, LEFT };

static bool winds(const struct calls *c, const struct ptx_func *f, uint8_t *way)
{
	uint8_t *own = &way[f - c->m->func];

	*own = ON_THE_WAY;
	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *call = &f->insn[k];
		const struct ptx_func *to;

		if (call->op != OP_call || !calls_carry(c, call))
			continue;
		if (calls_indirect(call))
			return true;
		to = callee(c, call);
		if (way[to - c->m->func] == ON_THE_WAY || (way[to - c->m->func] == NOT_SEEN && winds(c, to, way)))
			return true;
	}
	*own = LEFT;
	return false;
}

bool calls_deep(const struct calls *c, const struct ptx_func *f)
{
	uint8_t *way = base_alloc(c->m->nfunc + 1);
	const bool deep = winds(c, f, way);

	free(way);
	return deep;
}

/* ---- text ---- */

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Past a comment or string at s[at]; else at. */
static size_t past_quiet(const char *s, size_t at)
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

static size_t past_blanks(const char *s, size_t at)
{
	for (;;) {
		size_t next = s[at] == '"' ? at : past_quiet(s, at);

		while (isspace((unsigned char)s[next]))
			next++;
		if (next == at)
			return at;
		at = next;
	}
}

/* From '(' to its ')'. */
static size_t closing(const char *s, size_t at)
{
	unsigned depth = 0;

	while (s[at]) {
		depth += s[at] == '(';
		if (s[at] == ')' && !--depth)
			break;
		at = past_quiet(s, at) == at ? at + 1 : past_quiet(s, at);
	}
	return at;
}

/* Where one more parameter goes: into the list that follows the first name that
 * stands in no parentheses. */
struct spot {
	size_t name, named;        /* the name, its end */
	size_t at;
	bool list, empty;          /* there is a list; with nothing in it */
};

static struct spot find_spot(const char *s, size_t at)
{
	struct spot spot = { 0 };
	size_t next;

	for (at = past_blanks(s, at); s[at] && (!in_name(s[at]) || isdigit((unsigned char)s[at]));
			at = past_blanks(s, at)) {
		if (s[at] == '(')
			at = closing(s, at);
		else if (s[at] == '.' || isdigit((unsigned char)s[at]))
			while (in_name(s[at + 1]) || s[at + 1] == ':')
				at++;
		at += s[at] != 0;
	}
	spot.name = at;
	while (in_name(s[at]))
		at++;
	spot.at = spot.named = at;
	next = past_blanks(s, at);
	if (s[next] == ',')
		next = past_blanks(s, next + 1);
	if (s[next] != '(')
		return spot;
	spot.list = true;
	spot.empty = s[past_blanks(s, next + 1)] == ')';
	spot.at = closing(s, next);
	return spot;
}

static void patch_head(struct calls *c, size_t at, bool prototype)
{
	const char *s = c->m->text;
	struct spot spot = find_spot(s, at);
	char *name = base_strndup(s + spot.name, spot.named - spot.name);
	const struct ptx_func *f = prototype ? NULL : ptx_find(c->m, name);

	free(name);
	if (!prototype && !(f && c->carries[f - c->m->func]))
		return;
	vec_push(&c->patch, ((struct calls_patch){ spot.at, prototype
		? spot.empty ? ".param .b64 _" : spot.list ? ", .param .b64 _" : "(.param .b64 _)"
		: spot.empty ? ".param .b64 " CALLS_PLACE : spot.list ? ", .param .b64 " CALLS_PLACE
		: "(.param .b64 " CALLS_PLACE ")" }));
}

/* Behind the next of this directive at or after `at`; 0: there is none. */
static size_t behind_next(const char *s, size_t at, const char *word)
{
	const size_t n = strlen(word);

	while (s[at]) {
		size_t next = past_quiet(s, at);

		if (next == at && s[at] == '.' && !strncmp(s + at, word, n) && !in_name(s[at + n]))
			return at + n;
		at = next == at ? at + 1 : next;
	}
	return 0;
}

static const struct ptx_func *function_at(const struct calls *c, size_t *at)
{
	const char *s = c->m->text;
	size_t end = *at = past_blanks(s, *at);
	const struct ptx_func *f;
	char *name;

	while (in_name(s[end]))
		end++;
	name = base_strndup(s + *at, end - *at);
	f = ptx_find(c->m, name);
	free(name);
	*at = past_blanks(s, end);
	return f;
}

/* .alias f, g: calls of f are calls of g already; its declarations are not. */
static void find_aliases(struct calls *c)
{
	for (size_t at = 0; (at = behind_next(c->m->text, at, ".alias"));) {
		const struct ptx_func *f = function_at(c, &at), *g;

		at += c->m->text[at] == ',';
		g = function_at(c, &at);
		if (f && g && c->carries[g - c->m->func])
			c->carries[f - c->m->func] = true;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct calls_patch *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

/* Every head and prototype: a function may be declared several times. */
static void find_heads(struct calls *c)
{
	const char *s = c->m->text;

	for (size_t at = 0; (at = behind_next(s, at, ".func"));)
		patch_head(c, at, false);
	for (size_t at = 0; c->indirect && (at = behind_next(s, at, ".callprototype"));)
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

/* Back over .visible and .weak. */
static size_t linkage(const char *s, size_t at)
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

		if (!c->pointed[k])
			continue;
		for (uint32_t line = 1; line < c->m->func[k].line && s[at]; at++)
			line += s[at] == '\n';
		at = (size_t)(strstr(s + at, ".func") - s);
		for (end = at; s[end] && s[end] != '{'; end = past_quiet(s, end) == end ? end + 1 : past_quiet(s, end))
			;
		calls_text(c, t, linkage(s, at), end);
		text_printf(t, "\n;\n");
	}
}

void calls_statement(struct text *t, const struct ptx_func *f, const struct ptx_insn *call,
	const char *argument)
{
	const char *s = f->module->text;
	size_t at = call->text_at, end = at + call->text_len;
	struct spot spot;

	if (s[at] == '@') {
		at = past_blanks(s, at + 1);
		at = past_blanks(s, at + (s[at] == '!'));
		while (in_name(s[at]))
			at++;
		at = past_blanks(s, at);
	}
	spot = find_spot(s, at + strlen("call"));
	text_printf(t, "\t%.*s", (int)(spot.at - call->text_at), s + call->text_at);
	text_printf(t, spot.empty ? "%s" : spot.list ? ", %s" : ", (%s)", argument);
	text_printf(t, "%.*s;\n", (int)(end - spot.at), s + spot.at);
}

/* ---- a module ---- */

void calls_open(struct calls *c, const struct ptx_module *m, bool global)
{
	bool more = true;

	*c = (struct calls){ .m = m, .global = global, .carries = base_alloc(m->nfunc + 1),
		.pointed = base_alloc(m->nfunc + 1),
		.recorded = base_alloc((m->nfunc + 1) * sizeof *c->recorded) };
	c->indirect = find_pointed(c);
	for (size_t k = 0; c->indirect && k < m->nfunc; k++)
		c->carries[k] = c->pointed[k];
	while (more) {
		more = false;
		for (size_t k = 0; k < m->nfunc; k++)
			if (!c->carries[k] && has_body(&m->func[k]) && records(c, &m->func[k]))
				c->carries[k] = more = true;
	}
	find_aliases(c);
	find_heads(c);
}

void calls_close(struct calls *c)
{
	free(c->carries);
	free(c->pointed);
	free(c->recorded);
	vec_free(&c->patch);
}
