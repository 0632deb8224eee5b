/* rewrite: writes a module's text anew: its entries, and the device functions that record
 * (calls.c). statement.c writes the single statements. */
#include "rewrite.h"

#include <stdlib.h>
#include <string.h>

#include "instrument/record/record.h"
#include "libconsan/ptx/opcodes.h"
#include "calls.h"
#include "entry.h"
#include "external.h"
#include "hook.h"
#include "inflight.h"
#include "operands.h"
#include "slice.h"
#include "statement.h"

/* The grid's first thread writes the addresses of the parameters and of the shared variables
 * into the pool's head. */
static void write_layout(struct writer *w)
{
	struct text *t = &w->out;
	unsigned label = w->labels++;

	text_printf(t, "{\n\t.reg .b32 %%cs_t, %%cs_u;\n\t.reg .b64 %%cs_d, %%cs_e;\n"
		"\t.reg .pred %%cs_q;\n");
	text_printf(t, "\tmov.u32 %%cs_t, %%tid.x;\n");
	for (unsigned k = 1; k < 6; k++)
		text_printf(t, "\tmov.u32 %%cs_u, %%%s.%c;\n\tor.b32 %%cs_t, %%cs_t, %%cs_u;\n",
			k < 3 ? "tid" : "ctaid", "xyz"[k % 3]);
	text_printf(t, "\tsetp.ne.u32 %%cs_q, %%cs_t, 0;\n\t@%%cs_q bra $CSE%u;\n", label);
	text_printf(t, "\tld.const.u64 %%cs_d, [" RECORD_VARIABLE "%u];\n"
		"\tsetp.eq.u64 %%cs_q, %%cs_d, 0;\n\t@%%cs_q bra $CSE%u;\n", w->r->number, label);
	if (operands_map_param(w->f)) {
		operands_params_address(t, w->f, "%cs_e");
		text_printf(t, "\tst.global.b64 [%%cs_d+%u], %%cs_e;\n", RECORD_PARAMS_AT);
	}
	for (size_t k = 0; k < w->info->nsymbols && k < RECORD_SYMBOLS; k++)
		text_printf(t, "\tmov.u32 %%cs_t, %s;\n\tst.global.b32 [%%cs_d+%zu], %%cs_t;\n",
			w->info->symbol[k]->name, RECORD_SYMBOLS_AT + 4 * k);
	text_printf(t, "$CSE%u:\n}\n", label);
}

static void body(struct writer *w, size_t from, size_t end)
{
	const char *text = w->f->module->text;

	for (uint32_t k = 0; k < w->f->ninsn; k++) {
		const struct ptx_insn *i = &w->f->insn[k];
		size_t at = i->text_at;

		if (!i->text_len)
			continue;
		calls_text(w->calls, &w->out, from, at);
		if (!k && w->f->entry)
			write_layout(w);
		from = at + i->text_len + 1; /* with its semicolon */
		while (text[from - 1] != ';')
			from++;
		if (w->info->mark && w->info->mark[k])
			statement_mark_path(w, i);
		if (i->op == OP_ret)
			statement_save_state(w);
		statement_write(w, k);
	}
	calls_text(w->calls, &w->out, from, end);
	statement_save_state(w);   /* for a function that ends without ret */
}

/* The position of the function's opening brace, searched from the line of its head. */
static size_t body_begin(const struct ptx_func *f)
{
	const char *s = f->module->text;

	for (uint32_t line = 1; line < f->line && *s; s++)
		line += *s == '\n';
	while (*s && *s != '{')
		s++;
	return (size_t)(s - f->module->text);
}

static size_t body_end(const struct ptx_func *f, size_t open)
{
	const char *s = f->module->text;
	unsigned depth = 0;
	size_t at;

	for (at = open; s[at]; at++) {
		if (s[at] == '/' && s[at + 1] == '/')
			while (s[at + 1] && s[at + 1] != '\n')
				at++;
		else if (s[at] == '/' && s[at + 1] == '*')
			for (at += 2; s[at + 1] && !(s[at] == '*' && s[at + 1] == '/'); at++)
				;
		else if (s[at] == '"')
			for (at++; s[at] && s[at] != '"'; at++)
				;
		else if (s[at] == '{')
			depth++;
		else if (s[at] == '}' && !--depth)
			break;
	}
	return at;
}

static int by_line(const void *a, const void *b)
{
	const struct ptx_func *f = *(const struct ptx_func *const *)a,
		*g = *(const struct ptx_func *const *)b;

	return (f->line > g->line) - (f->line < g->line);
}

static bool calls_any(const struct calls *c, const struct ptx_func *f)
{
	for (size_t k = 0; k < f->ninsn; k++)
		if (f->insn[k].op == OP_call && calls_takes_state(c, &f->insn[k]))
			return true;
	return false;
}

/* Units. More would use up chunks too fast. */
#define RESERVE_MAX 64

/* Adds up the units that the records of a wgmma group take. */
static void scan_group(struct writer *w, size_t at, const struct plan *p, unsigned *words,
	unsigned *units)
{
	const struct ptx_func *f = w->f;

	*words += plan_words(p);
	if (!statement_ends_group(f, at, *words))
		return;
	*units += 1 + (*words + 3) / 4;
	*words = 0;
	w->reserve = *units > w->reserve ? *units : w->reserve;
	if (f->insn[at].op == OP_wgmma_commit_group)
		*units = 0;
}

static void scan_function(struct writer *w)
{
	const struct ptx_func *f = w->f;
	unsigned words = 0, units = 0;
	struct plan p;

	for (size_t k = 0; k < f->ninsn; k++) {
		if (plan_of(f, &f->insn[k], &p)) {
			w->polls |= p.poll;
			w->tests |= p.test;
			if (p.wgmma)
				scan_group(w, k, &p, &words, &units);
		}
		if (w->r->global && plan_global_of(f, &f->insn[k], &p))
			w->polls |= p.poll;
	}
}

static void function(struct rewrite *r, struct calls *calls, struct hook_functions *functions,
	const struct ptx_func *f, size_t *from)
{
	struct rewrite_func info = { .func = f };
	struct writer w = { .r = r, .calls = calls, .functions = functions, .f = f, .info = &info,
		.group = (uint32_t)r->batch.n };
	size_t open = body_begin(f), close = body_end(f, open);

	scan_function(&w);
	w.inflight_at = inflight_find(f);
	w.scope = group_scopes(f);
	w.written = base_alloc((f->ninsn + 1) * sizeof *w.written);
	w.reserve = !r->drains ? 0 : w.reserve < RESERVE_MAX ? w.reserve : RESERVE_MAX;
	w.state = !f->entry ? STATE_PASSED : calls_any(calls, f) ? STATE_OWNED : STATE_PRIVATE;
	if (f->entry) {
		rewrite_find_reg_uses(r, &info);
		entry_analyze(calls, &info);
	}
	calls_text(calls, &r->text, *from, open + 1);
	body(&w, open + 1, close);
	hook_function(&r->text, w.most_words, w.polls, w.state);
	text_add(&r->text, w.out.at, w.out.n);
	text_free(&w.out);
	free(w.inflight_at);
	free(w.scope);
	free(w.written);
	if (f->entry)
		vec_push(&r->func, info);
	else
		calls->recorded[f - r->module->func] = info.recorded;
	*from = close;
}

/* Inserts the functions that write records, before all that calls them. */
static void insert_functions(struct rewrite *r, size_t at, struct hook_functions *functions)
{
	struct text all = { 0 };

	text_add(&all, r->text.at, at);
	hook_functions(&all, functions);
	text_add(&all, r->text.at + at, r->text.n - at);
	text_free(&r->text);
	hook_functions_free(functions);
	r->text = all;
}

/* The position behind the directives that must come first. */
static size_t after_head(const struct ptx_module *m)
{
	const char *s = strstr(m->text, ".address_size");
	const char *t = s ? s : strstr(m->text, ".target");

	t = t ? strchr(t, '\n') : NULL;
	return t ? (size_t)(t - m->text) + 1 : 0;
}

struct rewrite *rewrite_module(const struct ptx_module *m, const struct rewrite_options *o)
{
	struct rewrite *r = base_alloc(sizeof *r);
	const struct ptx_func **selected = base_alloc((m->nfunc + 1) * sizeof *selected);
	size_t from = after_head(m), n = 0, functions_at;
	struct hook_functions functions = { 0 };
	struct calls calls;

	r->module = m;
	r->number = o->number;
	r->emulated = o->emulated;
	r->global = o->global;
	r->drains = o->drains;
	r->external = o->external;
	calls_open(&calls, m, o->global);
	vec_push(&r->site, ((struct rewrite_site){ 0 }));
	text_add(&r->text, m->text, from);
	text_printf(&r->text, ".visible .const .align 8 .b8 " RECORD_VARIABLE "%u[%zu];\n", o->number,
		sizeof(struct record_params) + (o->external ? 8 * external_count(m) : 0));
	functions_at = r->text.n;
	calls_declare(&calls, &r->text);
	for (size_t k = 0; k < m->nfunc; k++)
		if (m->func[k].ninsn && (m->func[k].entry || calls.takes_state[k]))
			selected[n++] = &m->func[k];
	if (n)
		qsort(selected, n, sizeof *selected, by_line);
	for (size_t k = 0; k < n; k++) {
		r->together = r->together || rewrite_has_together(selected[k]);
		function(r, &calls, &functions, selected[k], &from);
	}
	free(selected);
	calls_text(&calls, &r->text, from, m->ntext);
	insert_functions(r, functions_at, &functions);
	for (size_t k = 0; k < r->func.n; k++)
		entry_count(&calls, &r->func.at[k]);
	calls_close(&calls);
	if (!m->debug)
		slice_strip(&r->text, o->external);
	return r;
}

bool rewrite_leaves(const struct ptx_insn *i)
{
	return ptx_effect_of(i->op) == EF_EXIT || i->op == OP_ret;
}

const struct rewrite_func *rewrite_find(const struct rewrite *r, const char *kernel)
{
	for (size_t k = 0; k < r->func.n; k++)
		if (!strcmp(r->func.at[k].func->name, kernel))
			return &r->func.at[k];
	return NULL;
}

void rewrite_free(struct rewrite *r)
{
	if (!r)
		return;
	for (size_t k = 0; k < r->func.n; k++) {
		free(r->func.at[k].symbol);
		free(r->func.at[k].refused);
		free(r->func.at[k].reg_use_of);
		free(r->func.at[k].recorded_block);
		free(r->func.at[k].mark);
	}
	vec_free(&r->func);
	for (size_t k = 0; k < r->reg_use.n; k++)
		free(r->reg_use.at[k].reg);
	vec_free(&r->reg_use);
	vec_free(&r->site);
	vec_free(&r->batch);
	text_free(&r->text);
	free(r);
}
