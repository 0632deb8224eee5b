/* coverage: what was looked at and what was not, the last line, and the exit
 * status that follows from them. */
#include "text.h"
#include "words.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define EXIT_UNCHECKED 67
#define KERNEL_COLUMNS 44

static bool left_out(const struct coverage *c)
{
	return !*c->unchecked && !c->checked && c->skipped;
}

void report_count(const struct results *r, struct report_counts *n)
{
	*n = (struct report_counts){ 0 };
	for (size_t i = 0; i < r->finding.n; i++) {
		switch (r->finding.at[i].severity) {
		case SEV_NOTE: n->notes++; break;
		case SEV_WARNING: n->warnings++; break;
		case SEV_ERROR: n->errors++; break;
		}
	}
	for (size_t i = 0; i < r->coverage.n; i++) {
		const struct coverage *c = &r->coverage.at[i];

		n->launches += (unsigned)c->checked;
		if (left_out(c)) {
			n->skipped++;
			continue;
		}
		n->kernels++;
		n->checked += !*c->unchecked;
	}
}

int report_exit_status(const struct results *r, const struct options *o, int program)
{
	struct report_counts n;

	report_count(r, &n);
	if (n.errors && o->error_exitcode)
		return (int)o->error_exitcode;
	if (program)
		return program;
	if (!o->allow_unchecked && (n.checked < n.kernels || !n.kernels || r->cut))
		return EXIT_UNCHECKED;
	return 0;
}

/* ---- the table ---- */

/* 4123456 -> "4.1 M": a table is read, not added up; JSON has the digits */
static const char *rough(uint64_t n, char out[16])
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

static void add_row(struct page *p, const struct options *o, const struct coverage *c)
{
	char cells[160], events[16], clusters[16], sites[32];
	char *name = demangle(c->kernel, o->demangle);

	if (strlen(name) > KERNEL_COLUMNS && o->demangle == DEMANGLE_FULL) {
		free(name);
		name = demangle(c->kernel, NAME_SIMPLE);
	}
	page_indent(p, 2);
	if (strlen(name) > KERNEL_COLUMNS)
		snprintf(cells, sizeof cells, "%.*s...", KERNEL_COLUMNS - 3, name);
	else
		snprintf(cells, sizeof cells, "%-*s", KERNEL_COLUMNS, name);
	page_verbatim(p, PLAIN, cells);
	free(name);
	snprintf(sites, sizeof sites, c->sites ? "%llu/%llu" : "-",
		(unsigned long long)c->sites_executed,
		(unsigned long long)c->sites);
	snprintf(cells, sizeof cells, " %8llu %8llu %9s %11s %8s",
		(unsigned long long)c->launches, (unsigned long long)c->checked,
		rough(c->clusters, clusters), sites, rough(c->events, events));
	page_verbatim(p, PLAIN, cells);
	if (*c->unchecked) {
		page_indent(p, 4);
		p->indent = 6;
		page_add(p, RED, "NOT CHECKED");
		page_add(p, PLAIN, ": %s", c->unchecked);
	} else if (c->skipped) {
		page_indent(p, 4);
		page_add(p, DIM, "%llu launch%s left out by the filters",
			(unsigned long long)c->skipped, c->skipped == 1 ? "" : "es");
	}
	if (c->gpu_timed) {
		page_indent(p, 4);
		page_add(p, DIM, "%.3f ms on the GPU, recording, in %llu launch%s", 1e-6 * (double)c->gpu_ns,
			(unsigned long long)c->gpu_timed, c->gpu_timed == 1 ? "" : "es");
	}
}

static void add_coverage(struct page *p, const struct results *r, const struct options *o)
{
	uint64_t dropped = 0;
	char cells[160];

	if (r->coverage.n) {
		page_indent(p, 0);
		snprintf(cells, sizeof cells, "  %-*s %8s %8s %9s %11s %8s", KERNEL_COLUMNS,
			"kernel", "launches", "checked", "clusters", "sites", "events");
		page_verbatim(p, DIM, cells);
	}
	for (size_t i = 0; i < r->coverage.n; i++) {
		add_row(p, o, &r->coverage.at[i]);
		dropped += r->coverage.at[i].dropped;
	}
	page_end(p);
	if (dropped) {
		page_indent(p, 2);
		page_add(p, RED, "%llu events dropped", (unsigned long long)dropped);
		page_add(p, PLAIN, ": what happened in them is not known");
		page_end(p);
	}
}

static void add_remarks(struct page *p, const struct results *r)
{
	for (size_t i = 0; i < r->remark.n; i++) {
		const struct result_remark *m = &r->remark.at[i];

		page_indent(p, 2);
		p->indent = 4;
		page_add(p, YELLOW, "%s", words_remark[m->kind]);
		page_add(p, PLAIN, ": %s", m->text);
		if (m->count > 1)
			page_add(p, PLAIN, " (%llu times)", (unsigned long long)m->count);
	}
	page_end(p);
	if (r->cut) {
		page_indent(p, 2);
		page_add(p, YELLOW, "%llu record%s could not be read",
			(unsigned long long)r->cut, r->cut == 1 ? "" : "s");
		page_add(p, PLAIN, ": a process ended while writing, or the disk of TMPDIR was full");
		page_end(p);
	}
}

static void add_suppressions(struct page *p, const struct results *r)
{
	if (r->suppressed.n) {
		page_indent(p, 2);
		page_add(p, DIM, "%zu finding%s suppressed", r->suppressed.n,
			words_plural(r->suppressed.n));
	}
	for (size_t i = 0; i < r->suppression.n; i++) {
		const struct result_suppression *s = &r->suppression.at[i];

		if (s->matched)
			continue;
		page_indent(p, 2);
		page_add(p, YELLOW, "unused suppression");
		page_add(p, PLAIN, ": %s at %s matches nothing", s->rule, s->where);
	}
	page_end(p);
}

/* The one line to grep for; it never wraps. */
static void add_summary(struct page *p, const struct results *r, const struct options *o)
{
	const enum severity least = o->print_level == PRINT_INFO ? SEV_NOTE : SEV_WARNING;
	struct report_counts n;
	unsigned last = RULE_NONE;
	const char *open = " (";
	bool bad;

	report_count(r, &n);
	bad = n.errors || n.checked < n.kernels;
	page_indent(p, 0);
	p->width = 0;
	page_add(p, bad ? RED : n.warnings ? YELLOW : GREEN, "SUMMARY consan:");
	page_add(p, BOLD, " %u error%s, %u warning%s, %u note%s", n.errors, words_plural(n.errors),
		n.warnings, words_plural(n.warnings), n.notes, words_plural(n.notes));
	for (size_t i = 0; i < r->finding.n; i++) {
		const struct finding *f = &r->finding.at[i];

		if (f->severity < least || f->rule == last)
			continue;
		page_add(p, BOLD, "%s%s", open, rule_get(f->rule)->code);
		last = f->rule;
		open = " ";
	}
	if (last != RULE_NONE)
		page_add(p, BOLD, ")");
	if (!n.kernels && !n.skipped)
		page_add(p, BOLD, "; no kernel was launched");
	else
		page_add(p, BOLD, "; %u of %u kernel%s checked", n.checked, n.kernels,
			words_plural(n.kernels));
	if (n.skipped)
		page_add(p, BOLD, ", %u left out", n.skipped);
	page_end(p);
}

/* ---- the whole ---- */

void report_text(const struct results *r, const struct options *o, bool color,
	unsigned width, FILE *out)
{
	struct page p = { .out = out, .color = color, .width = width, .prefix = o->prefix };
	uint64_t limit = o->print_limit ? o->print_limit : UINT64_MAX, shown = 0;
	size_t hidden = 0, beyond = 0;
	struct report_counts n;
	const char *changed = NULL;
	bool blind = false;
	struct stat st;

	report_count(r, &n);
	if (o->quiet && !n.errors && !n.warnings && n.kernels && n.checked == n.kernels && !r->bank.n)
		return;
	for (size_t i = 0; i < r->finding.n; i++) {
		const struct finding *f = &r->finding.at[i];

		if ((int)f->severity < o->print_level)
			hidden++;
		else if (shown == limit)
			beyond++;
		else if (++shown) {
			text_finding(&p, o, f);
			blind |= f->nsides && !site_get(f->side[0].site)->loc;
		}
	}
	for (size_t i = 0; i < r->process.n; i++) {
		if (!*r->process.at[i].device)
			continue;
		if (!stat(r->process.at[i].program, &st) && report_source_changed(st.st_mtime))
			changed = report_source_changed(st.st_mtime);
		page_indent(&p, 0);
		page_add(&p, BOLD, "%s", r->process.at[i].program);
		page_add(&p, PLAIN, " on %s", r->process.at[i].device);
	}
	add_coverage(&p, r, o);
	report_banks(&p, r, o);
	add_remarks(&p, r);
	if (hidden) {
		page_indent(&p, 2);
		page_add(&p, DIM, o->print_level == PRINT_ERROR
			? "%zu warning%s or notes not shown (--print-level=info shows them)"
			: "%zu note%s not shown (--print-level=info shows them)", hidden,
			words_plural(hidden));
	}
	add_suppressions(&p, r);
	if (changed) {
		page_indent(&p, 2);
		page_add(&p, YELLOW, "%s", changed);
		page_add(&p, PLAIN, " was changed after the program was built: excerpts may not fit");
	}
	if (blind) {
		page_indent(&p, 2);
		page_add(&p, DIM, "compile with -lineinfo to see source lines");
	}
	if (beyond) {
		page_indent(&p, 2);
		page_add(&p, DIM, "%zu more not shown (--print-limit=0 shows all)", beyond);
	}
	add_summary(&p, r, o);
	text_free(&p.line);
}
