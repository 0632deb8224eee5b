/* finding: one finding of the text report, for a terminal or a log. */
#include "reports/text/text.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTENT 11       /* column at which the text behind a label begins */
#define SOURCE_MIN 24    /* columns; shorter pieces of a source line are not shown */
#define WAITERS_SHOWN 24
#define KERNEL_SHOWN 160 /* bytes of a kernel's name: template names have no limit */
#define CONSEQUENCES_SHOWN 12 /* lines */

static const enum page_style severity_style[] = {
	[SEV_NOTE] = CYAN, [SEV_WARNING] = YELLOW, [SEV_ERROR] = RED,
};

/* ---- places ---- */

/* "reduce.cu:17", with non-breaking blanks. */
static void headline(struct text *t, uint32_t id)
{
	size_t from = t->n;

	describe_place(t, id);
	for (; from < t->n; from++)
		if (t->at[from] == ' ')
			t->at[from] = *NBSP;
}

static void add_headline(struct page *p, const struct finding_side *side, unsigned n)
{
	struct text t = { 0 };

	for (unsigned i = 0; i < n; i++) {
		if (!site_get(side[i].site)->ptx_line && !side[i].host)
			continue; /* the end of a CTA has no instruction */
		if (t.n)
			text_printf(&t, NBSP "/" NBSP);
		headline(&t, side[i].site);
	}
	page_add(p, BOLD, "%s", t.n ? t.at : "");
	text_free(&t);
}

static void add_loc(struct page *p, const struct options *o, const struct site_loc *l)
{
	char *file = display_path(o, l->file);

	if (l->col)
		page_add(p, CYAN, "%s:%u:%u", file, l->line, l->col);
	else
		page_add(p, CYAN, "%s:%u", file, l->line);
	free(file);
	if (l->function && *l->function) {
		char *name = demangle(l->function, NAME_BARE);

		page_add(p, PLAIN, " in" NBSP "%s", name);
		free(name);
	}
}

/* ---- source excerpts ---- */

/* Replaces tabs by blanks. *caret: the index of column `col` in the result. */
static char *expand_tabs(const char *s, unsigned col, unsigned *caret)
{
	struct text t = { 0 };

	*caret = 0;
	text_add(&t, "", 0);
	for (unsigned k = 1; *s; s++, k++) {
		if (k == col)
			*caret = (unsigned)t.n;
		do
			text_add(&t, *s == '\t' ? " " : s, 1);
		while (*s == '\t' && t.n % 8);
	}
	return t.at;
}

static void add_excerpt(struct page *p, const struct site_loc *l)
{
	char *raw = report_source_line(l->file, l->line), *line, number[24];
	unsigned caret, cut = 0;
	bool marked; /* the columns of host code may be those of what nvcc made of the line */

	if (!raw) {
		page_indent(p, CONTENT);
		page_verbatim(p, DIM, "      | (source file not found)");
		return;
	}
	marked = l->col && l->col <= strlen(raw);
	line = expand_tabs(raw, l->col, &caret);
	while (line[cut] == ' ' && (!marked || cut < caret))
		cut++;
	snprintf(number, sizeof number, "%5u | ", l->line);
	page_indent(p, CONTENT);
	page_verbatim(p, DIM, number);
	page_verbatim(p, PLAIN, line + cut);
	if (marked) {
		page_indent(p, CONTENT);
		page_verbatim(p, DIM, "      | ");
		for (unsigned k = cut; k < caret; k++)
			page_verbatim(p, PLAIN, " ");
		page_verbatim(p, GREEN, "^");
	}
	free(line);
	free(raw);
}

/* Prints the frames from `l` to before `end`, one in a line; if there are many, the `first`
 * innermost and `last` outermost ones. source: with the text of the source line. */
static void add_frames(struct page *p, const struct options *o, const char *how,
	const struct site_loc *l, const struct site_loc *end, unsigned first, unsigned last,
	bool source)
{
	unsigned n = 0, k = 0;

	for (const struct site_loc *f = l; f != end; f = f->inlined_at)
		n++;
	for (const struct site_loc *f = l; f != end; f = f->inlined_at, k++) {
		char *line;

		if (n > first + last + 1 && k >= first && k < n - last) {
			if (k == first) {
				page_indent(p, CONTENT + 2);
				page_add(p, DIM, "... %u calls between ...", n - first - last);
			}
			continue;
		}
		page_indent(p, CONTENT + 2);
		page_add(p, DIM, "%s ", how);
		add_loc(p, o, f);
		line = !source || o->no_source ? NULL : report_source_line(f->file, f->line);
		if (line && (!p->width || p->col + SOURCE_MIN < p->width)) {
			page_verbatim(p, DIM, "  | ");
			page_verbatim(p, DIM, line + strspn(line, " \t"));
		}
		free(line);
	}
}

/* ---- threads and bytes ---- */

static void add_thread(struct page *p, const struct finding_side *s)
{
	if (*s->actor || s->host) {
		page_add(p, PLAIN, "%s", *s->actor ? s->actor : "the host");
		return;
	}
	if (s->lane >= 0)
		page_add(p, PLAIN, "thread" NBSP "(%u,%u,%u), warp" NBSP "%u lane" NBSP "%d, ",
			s->thread[0], s->thread[1], s->thread[2], s->warp, s->lane);
	else
		page_add(p, PLAIN, "warp" NBSP "%u, ", s->warp);
	page_add(p, PLAIN, "block" NBSP "(%u,%u,%u)", s->ctaid[0], s->ctaid[1], s->ctaid[2]);
	if (s->cta)
		page_add(p, PLAIN, " (CTA" NBSP "%u of its cluster)", s->cta);
}

static void add_bytes(struct page *p, const struct finding_side *s)
{
	unsigned long long addr = s->addr;

	if (!s->bytes)
		return;
	if (*s->variable) {
		page_add(p, PLAIN, " %u" NBSP "B at ", s->bytes);
		page_add(p, BOLD, "%s", s->variable);
		page_add(p, PLAIN, " (%s" NBSP "0x%llx)", space_text(s->space), addr);
	} else {
		page_add(p, PLAIN, " %u" NBSP "B at %s" NBSP "0x%llx", s->bytes,
			space_text(s->space), addr);
	}
	if ((s->space == SP_SHARED || s->space == SP_TMEM) && s->peer != s->cta)
		page_add(p, PLAIN, " of CTA" NBSP "%u", s->peer);
	if (s->cells.columns) {
		struct text t = { 0 };

		describe_cells(&t, &s->cells);
		page_add(p, PLAIN, ", of %s", t.at);
		text_free(&t);
	}
}

static void add_instruction(struct page *p, uint32_t id)
{
	const struct site *s = site_get(id);
	struct text place = { 0 };
	char *instruction;

	if (!*s->ptx)
		return;
	instruction = short_instruction(s->ptx);
	page_indent(p, CONTENT);
	page_add(p, DIM, "%s", instruction);
	text_printf(&place, "  [%s:%u]", file_base_name(s->module), s->ptx_line);
	for (char *c = place.at + 2; *c; c++)
		if (*c == ' ')
			*c = *NBSP;
	page_add(p, DIM, "%s", place.at);
	text_free(&place);
	free(instruction);
}

/* The host's call stack: the innermost frames, and the outermost one. labelled: begins in the current
 * line, and shows no source line. */
static void add_host(struct page *p, const struct options *o, const struct site_loc *stack,
	bool labelled)
{
	enum { FIRST = 4 };
	unsigned n = 0, k = 0;

	for (const struct site_loc *l = stack; l; l = l->inlined_at)
		n++;
	for (const struct site_loc *l = stack; l; l = l->inlined_at, k++) {
		struct text t = { 0 };

		if (n > FIRST + 2 && k >= FIRST && k + 1 < n) {
			if (k == FIRST) {
				page_indent(p, CONTENT + 2);
				page_add(p, DIM, "... %u calls between ...", n - FIRST - 1);
			}
			continue;
		}
		if (k || !labelled)
			page_indent(p, k ? CONTENT + 2 : CONTENT);
		if (k)
			page_add(p, DIM, "from ");
		describe_host(&t, o, l);
		page_add(p, CYAN, "%s", t.at);
		text_free(&t);
		if (l == site_headline(stack) && !labelled && l->line && !o->no_source)
			add_excerpt(p, l);
	}
}

/* title: of the rule; it is not repeated. excerpt: show the source line. */
static void add_side(struct page *p, const struct options *o, const char *label,
	const struct finding_side *s, const char *title, bool excerpt)
{
	const struct site *site = site_get(s->site);

	page_label(p, label, DIM);
	if (strcmp(s->what, title))
		page_add(p, BOLD, "%s", s->what);
	add_bytes(p, s);
	if (s->bytes || strcmp(s->what, title))
		page_add(p, PLAIN, " by ");
	add_thread(p, s);
	if (s->host) {
		add_host(p, o, o->show_backtrace == BACKTRACE_YES ? site->loc : NULL, false);
	} else if (site->loc) {
		const struct site_loc *at = site_headline(site->loc);

		page_indent(p, CONTENT);
		add_loc(p, o, at);
		if (excerpt && !o->no_source)
			add_excerpt(p, at);
		add_frames(p, o, "through", site->loc, at, 1, 0, false);
		add_frames(p, o, "inlined" NBSP "at", at->inlined_at, NULL, 2, 2, true);
	}
	add_instruction(p, s->site);
	if (!s->call || o->show_backtrace != BACKTRACE_YES || (s->host && s->call == s->site))
		return;
	page_label(p, "issued", DIM);
	page_add(p, PLAIN, "%s", s->api);
	add_host(p, o, site_get(s->call)->loc, false);
}

/* ---- barriers and hangs ---- */

static bool is_mbarrier(const struct finding_barrier *b)
{
	return strstr(b->kind, "mbarrier") != NULL;
}

static void add_barrier_name(struct page *p, const struct finding_barrier *b)
{
	page_add(p, BOLD, "%s", b->kind);
	if (*b->name)
		page_add(p, BOLD, " %s", b->name);
	if (is_mbarrier(b))
		page_add(p, PLAIN, " (shared" NBSP "0x%llx)", (unsigned long long)b->addr);
	else if (!*b->name && strstr(b->kind, "barrier"))
		page_add(p, PLAIN, " %llu", (unsigned long long)b->addr);
}

static void add_barrier(struct page *p, const struct finding_barrier *b)
{
	add_barrier_name(p, b);
	page_add(p, PLAIN, ": ");
	if (is_mbarrier(b))
		page_add(p, PLAIN, "in phase" NBSP "%llu (parity" NBSP "%u)",
			(unsigned long long)b->phase, (unsigned)(b->phase & 1));
	else
		page_add(p, PLAIN, "%llu completed so far", (unsigned long long)b->phase);
	if (b->expected)
		page_add(p, PLAIN, ", %u of %u arrivals pending", b->pending, b->expected);
	if (is_mbarrier(b) || b->tx)
		page_add(p, PLAIN, ", tx-count %lld" NBSP "B", (long long)b->tx);
}

static bool same_barrier(const struct finding_waiter *a, const struct finding_waiter *b)
{
	return a->on.addr == b->on.addr && a->on.peer == b->on.peer && !strcmp(a->on.kind, b->on.kind)
		&& !strcmp(a->text, b->text)
		&& !memcmp(a->who.ctaid, b->who.ctaid, sizeof a->who.ctaid);
}

/* The same place in the program's own code, whatever helper the instruction is in. */
static bool same_wait(const struct finding_waiter *a, const struct finding_waiter *b)
{
	const struct site_loc *l = site_headline(site_get(a->who.site)->loc);
	const struct site_loc *m = site_headline(site_get(b->who.site)->loc);

	if (!same_barrier(a, b))
		return false;
	return a->who.site == b->who.site
		|| (l && m && l->line == m->line && !strcmp(l->file, m->file));
}

/* "warps 0-3 7": those whose wait is that of waiter i, each once. Sets printed[] of their waiters. */
static void add_warps(struct page *p, const struct finding *f, unsigned i, bool *printed)
{
	uint32_t warps[64] = { 0 }; /* bits */
	const unsigned most = 32 * ARRAY_SIZE(warps);
	const char *open = "";
	struct text t = { 0 };
	unsigned n = 0;

	for (unsigned k = i; k < f->nwaiters; k++)
		if (same_wait(&f->waiter[i], &f->waiter[k])) {
			printed[k] = true;
			warps[f->waiter[k].who.warp % most / 32] |= 1u << f->waiter[k].who.warp % 32;
		}
	for (unsigned w = 0; w < most; w++) {
		const unsigned first = w;

		if (!(warps[w / 32] >> w % 32 & 1))
			continue;
		while (w + 1 < most && warps[(w + 1) / 32] >> (w + 1) % 32 & 1)
			w++;
		n += w + 1 - first;
		text_printf(&t, w > first ? "%s%u-%u" : "%s%u", open, first, w);
		open = NBSP;
	}
	page_add(p, PLAIN, "warp%s" NBSP "%s", plural_s(n), t.at);
	text_free(&t);
}

/* The warps that wait at one place. */
static void add_waiter(struct page *p, const struct finding *f, unsigned i, bool *printed)
{
	page_indent(p, CONTENT + 4);
	p->indent += 2;
	page_add(p, DIM, "<- ");
	add_warps(p, f, i, printed);
	page_add(p, PLAIN, " at ");
	add_headline(p, &f->waiter[i].who, 1);
}

/* The wait-for graph: the barriers, each with its state and the warps that wait for it. */
static void add_waiters(struct page *p, const struct finding *f)
{
	bool *printed = base_alloc(f->nwaiters * sizeof *printed);
	const unsigned warps = blocked_warps(f);
	unsigned shown = 0, left = 0;

	page_label(p, "waiting", DIM);
	page_add(p, PLAIN, "%u warp%s blocked:", warps, warps == 1 ? " is" : "s are");
	for (unsigned i = 0; i < f->nwaiters && shown < WAITERS_SHOWN; i++) {
		const struct finding_waiter *w = &f->waiter[i];

		if (printed[i])
			continue;
		page_indent(p, CONTENT + 2);
		p->indent += 2;
		if (*w->on.kind)
			add_barrier_name(p, &w->on);
		page_add(p, PLAIN, "%s%s, block" NBSP "(%u,%u,%u)", *w->on.kind ? ": " : "", w->text,
			w->who.ctaid[0], w->who.ctaid[1], w->who.ctaid[2]);
		for (unsigned k = i; k < f->nwaiters && shown < WAITERS_SHOWN; k++) {
			if (printed[k] || !same_barrier(w, &f->waiter[k]))
				continue;
			add_waiter(p, f, k, printed);
			shown++;
		}
	}
	for (unsigned i = 0; i < f->nwaiters; i++)
		left += !printed[i];
	if (left) {
		page_indent(p, CONTENT + 2);
		page_add(p, DIM, "... and %u more waits", left);
	}
	free(printed);
}

/* ---- the edit ---- */

static void add_instruction_line(struct page *p, enum page_style style, const char *sign,
	const char *ptx)
{
	char *line = *ptx == '{' ? base_strdup(ptx) : short_instruction(ptx);
	const size_t n = strlen(line);

	page_indent(p, CONTENT);
	p->indent += 4;
	page_verbatim(p, style, sign);
	page_add(p, style, "%s%s", line, n && line[n - 1] != ';' && line[n - 1] != '}' ? ";" : "");
	free(line);
}

/* Where to edit, and the change as a diff of the PTX. */
static void add_edit(struct page *p, const char *label, const struct finding_edit *e)
{
	const struct site *s = site_get(e->site);
	struct text what = { 0 };

	describe_edit(&what, e);
	if (!what.n)
		return;
	page_label(p, label, DIM);
	page_add(p, BOLD, "%s", what.at);
	page_add(p, DIM, "  [%s:%u]", file_base_name(s->module), s->ptx_line);
	if ((e->kind == EDIT_CHANGE || e->until) && e->kind != EDIT_BETWEEN && *s->ptx)
		add_instruction_line(p, *e->ptx ? RED : PLAIN, *e->ptx ? "- " : "  ", s->ptx);
	if (e->kind == EDIT_MOVE)
		add_instruction_line(p, PLAIN, "  ", site_get(e->until)->ptx);
	if (e->kind == EDIT_AFTER && *e->ptx)
		add_instruction_line(p, PLAIN, "  ", s->ptx);
	if (*e->ptx)
		add_instruction_line(p, GREEN, "+ ", e->ptx);
	if (e->kind == EDIT_BEFORE && *e->ptx)
		add_instruction_line(p, PLAIN, "  ", s->ptx);
	if (e->kind == EDIT_MOVE_BEFORE)
		add_instruction_line(p, PLAIN, "  ", site_get(e->until)->ptx);
	text_free(&what);
}

/* The edit, the one that belongs to it, and what they were verified to do. */
static void add_edits(struct page *p, const struct finding *f)
{
	struct text verified = { 0 };

	add_edit(p, "edit", &f->edit);
	add_edit(p, "and edit", &f->also);
	describe_verified(&verified, f);
	if (verified.n) {
		page_indent(p, CONTENT);
		page_add(p, f->edit.verified == VERIFIED_CLEAN ? GREEN : DIM, "%s", verified.at);
	}
	text_free(&verified);
}

/* ---- one finding ---- */

static void add_clause(struct page *p, const char *label, const char *text)
{
	if (!*text)
		return;
	page_label(p, label, DIM);
	page_add(p, PLAIN, "%s", text);
}

static void add_title(struct page *p, const struct finding *f)
{
	const struct rule_info *rule = rule_get(f->rule);

	page_add(p, severity_style[f->severity], "%s" NBSP "%s", severity_text[f->severity],
		rule->code);
	page_add(p, BOLD, "  %s", rule->title);
	page_add(p, PLAIN, "  ");
	add_headline(p, f->side, f->nsides);
}

static void add_finding(struct page *p, const struct options *o, const struct finding *f)
{
	const struct rule_info *rule = rule_get(f->rule);
	char *kernel = demangle(f->kernel, o->demangle);
	struct text occurrences = { 0 }, schedule = { 0 };

	page_indent(p, 0);
	p->indent = 2;
	add_title(p, f);
	if (*kernel) {
		page_label(p, "kernel", DIM);
		page_add(p, PLAIN, "%.*s%s", KERNEL_SHOWN, kernel,
			strlen(kernel) > KERNEL_SHOWN ? "..." : "");
		if (!f->side[0].host && !*f->side[0].actor)
			page_add(p, PLAIN, ", launch" NBSP "%u", f->launch);
	}
	add_edits(p, f);
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site_loc *loc = site_get(f->side[i].site)->loc;

		add_side(p, o, side_label(f, i), &f->side[i], rule->title,
			!i || loc != site_get(f->side[0].site)->loc);
	}
	if (f->host && o->show_backtrace == BACKTRACE_YES) {
		page_label(p, "launched", DIM);
		add_host(p, o, site_get(f->host)->loc, true);
	}
	if (*f->barrier.kind) {
		page_label(p, "barrier", DIM);
		add_barrier(p, &f->barrier);
	}
	if (f->nwaiters)
		add_waiters(p, f);
	add_clause(p, edge_label(f), f->edge);
	add_clause(p, "why", rule->why);
	add_clause(p, "fix", finding_fix(f));
	add_clause(p, "hint", f->hint);
	page_label(p, "seen", DIM);
	describe_occurrences(&occurrences, f);
	page_add(p, PLAIN, "%s", occurrences.at);
	describe_schedule(&schedule, f);
	if (schedule.n)
		page_add(p, PLAIN, "; reproduce with" NBSP "%s", schedule.at);
	page_add(p, DIM, "; see consan" NBSP "explain" NBSP "%s", rule->code);
	page_end(p);
	text_free(&schedule);
	text_free(&occurrences);
	free(kernel);
}

/* ---- a group ---- */

/* One line for each of n consequences, in the order in which they occurred. */
static void add_consequences(struct page *p, const struct options *o, const struct finding *f,
	size_t n)
{
	size_t shown = 0, all = 0;

	for (size_t i = 0; i < n; i++)
		all += (int)f[i].severity >= o->print_level;
	if (!all)
		return;
	page_indent(p, 2);
	page_add(p, BOLD, "and %zu consequence%s", all, plural_s(all));
	page_add(p, DIM, o->consequences ? ":" : " (--consequences prints them in full):");
	for (size_t i = 0; i < n; i++) {
		if ((int)f[i].severity < o->print_level)
			continue;
		if (o->consequences) {
			page_blank(p);
			add_finding(p, o, &f[i]);
		} else if (shown++ < CONSEQUENCES_SHOWN) {
			page_indent(p, 4);
			p->indent += 2;
			add_title(p, &f[i]);
		}
	}
	if (shown > CONSEQUENCES_SHOWN) {
		page_indent(p, 4);
		page_add(p, DIM, "... and %zu more", shown - CONSEQUENCES_SHOWN);
	}
}

void text_group(struct page *p, const struct options *o, const struct finding *f, size_t n)
{
	add_finding(p, o, f);
	add_consequences(p, o, f + 1, n - 1);
	page_blank(p);
}
