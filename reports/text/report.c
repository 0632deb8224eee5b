/* report: the text report. Findings first, then what was checked and what was not, and the
 * summary line. */
#include "reports/text/text.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

/* The table of kernels: columns of a name and of the numbers behind it. On a narrow terminal a name
 * has less, and below NAME_LEAST a line of its own; numbers are never cut. */
enum { NAME_MOST = 44, NAME_LEAST = 16, NUMBERS = 49, TABLE_INDENT = 2 };

/* ---- coverage ---- */

/* 4123456 -> "4.1 M": the JSON report has the exact numbers. */
static const char *rounded(uint64_t n, char out[16])
{
	static const char unit[] = " kMGTP";
	double v = (double)n;
	unsigned u = 0;

	for (; v >= 999.5 && u + 2 < sizeof unit; u++)
		v /= 1000;
	if (u)
		snprintf(out, 16, "%.*f %c", v < 9.95 ? 1 : 0, v, unit[u]);
	else
		snprintf(out, 16, "%llu", (unsigned long long)n);
	return out;
}

/* 0: a name has a line of its own */
static unsigned name_columns(const struct page *p)
{
	const unsigned rest = TABLE_INDENT + NUMBERS;

	if (!p->width || p->width >= rest + NAME_MOST)
		return NAME_MOST;
	return p->width >= rest + NAME_LEAST ? p->width - rest : 0;
}

static void add_cells(struct page *p, enum page_style style, const char *name, const char *numbers)
{
	const unsigned width = p->width, own = name_columns(p), most = own ? own : NAME_MOST;
	char cell[NAME_MOST + 1];

	p->width = 0;
	snprintf(cell, sizeof cell, strlen(name) > most ? "%.*s..." : "%.*s",
		(int)(strlen(name) > most ? most - 3 : most), name);
	page_indent(p, TABLE_INDENT);
	page_verbatim(p, style, cell);
	if (!own)
		page_indent(p, TABLE_INDENT);
	for (size_t n = strlen(cell); n < own; n++)
		page_verbatim(p, style, " ");
	page_verbatim(p, style, numbers);
	p->width = width;
}

static void add_row(struct page *p, const struct options *o, const struct coverage *c)
{
	char cells[160], events[16], clusters[16], sites[32];
	struct text explored = { 0 };
	char *name = demangle(c->kernel, o->demangle);

	if (strlen(name) > NAME_MOST && o->demangle == DEMANGLE_FULL) {
		free(name);
		name = demangle(c->kernel, NAME_SIMPLE);
	}
	snprintf(sites, sizeof sites, c->sites ? "%llu/%llu" : "-",
		(unsigned long long)c->sites_executed,
		(unsigned long long)c->sites);
	snprintf(cells, sizeof cells, " %8llu %8llu %9s %11s %8s",
		(unsigned long long)c->launches, (unsigned long long)c->checked,
		rounded(c->clusters, clusters), sites, rounded(c->events, events));
	add_cells(p, PLAIN, name, cells);
	free(name);
	if (*c->unchecked) {
		page_indent(p, 4);
		p->indent = 6;
		page_add(p, RED, "NOT CHECKED");
		page_add(p, PLAIN, ": %s", c->unchecked);
	} else if (c->skipped) {
		page_indent(p, 4);
		page_add(p, DIM, "%llu launch%s excluded by the filters",
			(unsigned long long)c->skipped, c->skipped == 1 ? "" : "es");
	}
	describe_explored(&explored, c);
	if (explored.n) {
		page_indent(p, 4);
		p->indent = 6;
		page_add(p, DIM, "%s", explored.at);
	}
	explored.n = 0;
	describe_replayed(&explored, c);
	if (explored.n) {
		page_indent(p, 4);
		p->indent = 6;
		page_add(p, DIM, "%s", explored.at);
	}
	text_free(&explored);
	if (c->gpu_timed) {
		page_indent(p, 4);
		page_add(p, DIM, "%.3f ms on the GPU with recording, in %llu launch%s",
			1e-6 * (double)c->gpu_ns, (unsigned long long)c->gpu_timed,
			c->gpu_timed == 1 ? "" : "es");
	}
}

/* What the rows of kernels name by one word. */
static void add_hidden(struct page *p, const struct results *r)
{
	uint64_t hidden = 0;

	for (size_t i = 0; i < r->coverage.n; i++)
		hidden |= describe_hides(&r->coverage.at[i]);
	for (unsigned k = 0; k < HIDDEN_COUNT; k++) {
		const struct finding_hides *h = finding_hides(k);

		if (!(hidden >> k & 1))
			continue;
		page_indent(p, 2);
		p->indent = 4;
		page_add(p, DIM, "%s: of %s, findings may be missing, as %s", h->name, h->rules, h->why);
	}
	if (hidden) {
		page_indent(p, 2);
		page_add(p, DIM, "--gpu-then-cpu or --backend=cpu checks such kernels on the CPU, too");
	}
	page_end(p);
}

static void add_coverage(struct page *p, const struct results *r, const struct options *o)
{
	uint64_t dropped = 0;
	char cells[160];

	if (r->coverage.n) {
		snprintf(cells, sizeof cells, " %8s %8s %9s %11s %8s", "launches", "checked",
			"clusters", "sites", "events");
		add_cells(p, DIM, "kernel", cells);
	}
	for (size_t i = 0; i < r->coverage.n; i++) {
		add_row(p, o, &r->coverage.at[i]);
		dropped += r->coverage.at[i].dropped;
	}
	page_end(p);
	add_hidden(p, r);
	if (dropped) {
		page_indent(p, 2);
		page_add(p, RED, "%llu events dropped", (unsigned long long)dropped);
		page_add(p, PLAIN, ": the accesses and synchronization in them are unknown");
		page_end(p);
	}
}

static void add_remarks(struct page *p, const struct results *r)
{
	for (size_t i = 0; i < r->remark.n; i++) {
		const struct result_remark *m = &r->remark.at[i];

		page_indent(p, 2);
		p->indent = 4;
		page_add(p, report_gap(m) ? RED : YELLOW, "%s", remark_text[m->kind]);
		page_add(p, PLAIN, ": %s", m->text);
		if (m->count > 1)
			page_add(p, PLAIN, " (%llu times)", (unsigned long long)m->count);
	}
	page_end(p);
	if (r->cut) {
		page_indent(p, 2);
		page_add(p, YELLOW, "%llu record%s could not be read",
			(unsigned long long)r->cut, r->cut == 1 ? "" : "s");
		page_add(p, PLAIN,
			": a process was killed while writing, its limit for files was reached, or TMPDIR is on a "
			"full disk");
		page_end(p);
	}
}

static void add_suppressions(struct page *p, const struct results *r)
{
	if (r->suppressed.n) {
		page_indent(p, 2);
		page_add(p, DIM, "%zu finding%s suppressed", r->suppressed.n,
			plural_s(r->suppressed.n));
	}
	for (size_t i = 0; i < r->suppression.n; i++) {
		const struct result_suppression *s = &r->suppression.at[i];

		if (s->matched)
			continue;
		page_indent(p, 2);
		page_add(p, YELLOW, "unused suppression");
		page_add(p, PLAIN, ": %s at %s matches no finding", s->rule, s->where);
	}
	page_end(p);
}

/* The highest severity of the rule's findings, or -1. */
static int severity_of(const struct results *r, unsigned rule)
{
	int highest = -1;

	for (size_t i = 0; i < r->finding.n; i++)
		if (r->finding.at[i].rule == rule && (int)r->finding.at[i].severity > highest)
			highest = (int)r->finding.at[i].severity;
	return highest;
}

/* " (CS102 CS901)": the rules of all findings, by their severities. */
static void add_rules(struct page *p, const struct results *r, enum severity least)
{
	const char *open = " (";

	for (int severity = SEV_ERROR; severity >= (int)least; severity--)
		for (unsigned rule = 1; rule <= rule_count(); rule++) {
			if (severity_of(r, rule) != severity)
				continue;
			page_add(p, BOLD, "%s%s", open, rule_get(rule)->code);
			open = " ";
		}
	if (!open[1])
		page_add(p, BOLD, ")");
}

/* The one line to grep for, so it is never wrapped. */
static void add_summary(struct page *p, const struct results *r, const struct options *o)
{
	const enum severity least = o->print_level == PRINT_INFO ? SEV_NOTE : SEV_WARNING;
	struct report_counts n;
	bool bad;

	report_count(r, &n);
	bad = n.errors || n.checked < n.kernels || n.gaps || r->cut;
	page_indent(p, 0);
	p->width = 0;
	page_add(p, bad ? RED : n.warnings ? YELLOW : GREEN, "SUMMARY consan:");
	page_add(p, BOLD, " %u error%s, %u warning%s, %u note%s", n.errors, plural_s(n.errors),
		n.warnings, plural_s(n.warnings), n.notes, plural_s(n.notes));
	if (n.consequences)
		page_add(p, BOLD, ", %u consequence%s", n.consequences, plural_s(n.consequences));
	add_rules(p, r, least);
	if (!n.kernels && !n.skipped)
		page_add(p, BOLD, n.unseen || r->cut ? "; no launch is recorded" : "; no kernel was launched");
	else
		page_add(p, BOLD, "; %u of %u kernel%s checked", n.checked, n.kernels,
			plural_s(n.kernels));
	if (n.skipped)
		page_add(p, BOLD, ", %u excluded", n.skipped);
	n.gaps -= n.unseen;
	if (n.gaps)
		page_add(p, BOLD, "; NOT CHECKED: %u module%s not loaded or call%s not supported",
			n.gaps, plural_s(n.gaps), plural_s(n.gaps));
	if (n.unseen)
		page_add(p, BOLD, "; NOT CHECKED: what was not seen");
	if (r->cut)
		page_add(p, BOLD, "; INCOMPLETE: records are lost");
	page_end(p);
}

/* ---- the report ---- */

/* A source file of the finding that was changed after its program was built, or `changed`. */
static const char *changed_source(const struct results *r, const struct finding *f,
	const char *changed)
{
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site_loc *l = site_headline(site_get(f->side[i].site)->loc);

		if (l && report_stale(r, f->side[i].site, l->file))
			changed = l->file;
	}
	return changed;
}

static bool is_named_before(const struct results *r, size_t i)
{
	const struct result_process *p = &r->process.at[i];

	for (size_t k = 0; k < i; k++)
		if (!strcmp(r->process.at[k].program, p->program) && !strcmp(r->process.at[k].device, p->device))
			return true;
	return false;
}

static void add_processes(struct page *p, const struct results *r)
{
	for (size_t i = 0; i < r->process.n; i++) {
		if (!*r->process.at[i].device || is_named_before(r, i))
			continue;
		page_indent(p, 0);
		page_add(p, BOLD, "%s", r->process.at[i].program);
		page_add(p, PLAIN, " on %s", r->process.at[i].device);
	}
}

void report_text(const struct results *r, const struct options *o, bool color,
	unsigned width, FILE *out)
{
	struct page p = { .out = out, .color = color, .width = width, .prefix = o->prefix };
	uint64_t limit = o->print_limit ? o->print_limit : UINT64_MAX, shown = 0;
	size_t hidden = 0, beyond = 0; /* by --print-level, by --print-limit */
	struct report_counts n;
	const char *changed = NULL;
	const struct finding *no_lines = NULL; /* its module has no line information */

	report_count(r, &n);
	if (o->quiet && !n.errors && !n.warnings && n.kernels && n.checked == n.kernels
			&& !r->bank.n)
		return;
	for (size_t i = 0, k; i < r->finding.n; i += k) {
		const struct finding *f = &r->finding.at[i];
		enum severity severity;

		k = r->finding.n - i;
		severity = group_severity(f, &k);
		for (size_t j = 0; j < k; j++)
			hidden += (int)f[j].severity < o->print_level;
		if ((int)severity < o->print_level)
			continue;
		if (shown == limit) {
			beyond++;
			continue;
		}
		shown++;
		text_group(&p, o, f, k);
		for (size_t j = 0; j < k; j++) {
			if (report_lacks_lines(r, &f[j]))
				no_lines = &f[j];
			changed = changed_source(r, &f[j], changed);
		}
	}
	add_processes(&p, r);
	add_coverage(&p, r, o);
	text_banks(&p, r, o);
	add_remarks(&p, r);
	if (hidden) {
		page_indent(&p, 2);
		page_add(&p, DIM, o->print_level == PRINT_ERROR
			? "%zu warning%s or notes not shown (--print-level=info shows them)"
			: "%zu note%s not shown (--print-level=info shows them)", hidden,
			plural_s(hidden));
	}
	add_suppressions(&p, r);
	if (changed) {
		page_indent(&p, 2);
		page_add(&p, YELLOW, "%s", changed);
		page_add(&p, PLAIN,
			" was changed after the program was built: source lines may not match");
	}
	if (no_lines) {
		page_indent(&p, 2);
		page_add(&p, DIM, report_is_jit(no_lines->side[0].site)
			? "%s has no line information: have its JIT compiler add it (-lineinfo)"
			: "%s has no line information: compile with -lineinfo",
			site_get(no_lines->side[0].site)->module);
	}
	if (beyond) {
		page_indent(&p, 2);
		page_add(&p, DIM, "%zu more not shown (--print-limit=0 shows all)", beyond);
	}
	add_summary(&p, r, o);
	text_free(&p.line);
}
