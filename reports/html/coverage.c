/* coverage: the tables of checked kernels, remarks and bank conflicts. */
#include "reports/html/html.h"

#include "libconsan/base/base.h"

#include <stdlib.h>

static void number(struct markup *m, uint64_t n)
{
	mu_element(m, "td", "n", "%llu", (unsigned long long)n);
}

static void coverage_row(struct html *h, const struct coverage *c)
{
	char *name = demangle(c->kernel, h->o->demangle);
	struct markup *m = &h->m;
	struct text explored = { 0 };

	mu_class(m, "tr", *c->unchecked ? "bad" : NULL);
	mu_open(m, "td");
	mu_element(m, "code", NULL, "%.400s", name);
	if (*c->unchecked)
		mu_element(m, "p", "error", "Not checked: %s", c->unchecked);
	else if (c->skipped)
		mu_element(m, "p", "note", "%llu launches excluded by the filters",
			(unsigned long long)c->skipped);
	describe_explored(&explored, c);
	if (explored.n)
		mu_element(m, "p", "note", "%s", explored.at);
	explored.n = 0;
	describe_replayed(&explored, c);
	if (explored.n)
		mu_element(m, "p", "note", "%s", explored.at);
	text_free(&explored);
	if (c->gpu_timed)
		mu_element(m, "p", "note", "%.3f ms on the GPU with recording, in %llu launch%s",
			1e-6 * (double)c->gpu_ns, (unsigned long long)c->gpu_timed,
			c->gpu_timed == 1 ? "" : "es");
	mu_close(m, "td");
	number(m, c->launches);
	number(m, c->checked);
	number(m, c->clusters);
	mu_class(m, "td", "n");
	if (c->sites) {
		mu_text(m, "%llu of %llu ", (unsigned long long)c->sites_executed,
			(unsigned long long)c->sites);
		mu_open(m, "meter");
		mu_attr(m, "max", "%llu", (unsigned long long)c->sites);
		mu_attr(m, "value", "%llu", (unsigned long long)c->sites_executed);
		mu_close(m, "meter");
	}
	mu_close(m, "td");
	number(m, c->events);
	number(m, c->dropped);
	mu_close(m, "tr");
	free(name);
}

void html_table(struct markup *m, const char *const *head, size_t n, const char *label)
{
	mu_class(m, "div", "scroll");
	mu_attr(m, "tabindex", "0");
	mu_attr(m, "role", "group");
	mu_attr(m, "aria-label", "%s", label);
	mu_open(m, "table");
	mu_open(m, "thead");
	mu_open(m, "tr");
	for (size_t i = 0; i < n; i++)
		mu_element(m, "th", NULL, "%s", head[i]);
	mu_close(m, "tr");
	mu_close(m, "thead");
	mu_open(m, "tbody");
}

void html_table_end(struct markup *m)
{
	mu_close(m, "tbody");
	mu_close(m, "table");
	mu_close(m, "div");
}

void html_coverage(struct html *h)
{
	static const char *const head[] = { "kernel", "launches", "checked", "clusters",
		"instructions executed", "events", "dropped" };
	const struct results *r = h->r;
	struct markup *m = &h->m;
	struct report_counts n;

	report_count(r, &n);
	mu_open(m, "section");
	mu_attr(m, "id", "coverage");
	mu_element(m, "h2", NULL, "Coverage");
	if (r->coverage.n) {
		html_table(m, head, ARRAY_SIZE(head), "Coverage");
		for (size_t i = 0; i < r->coverage.n; i++)
			coverage_row(h, &r->coverage.at[i]);
		html_table_end(m);
	} else {
		mu_element(m, "p", "error", n.unseen || r->cut ? "No launch is recorded."
			: "No kernel was launched.");
	}
	if (r->remark.n || r->cut) {
		mu_class(m, "ul", "plain");
		for (size_t i = 0; i < r->remark.n; i++)
			mu_element(m, "li", NULL, "%s: %s (%llu time%s)",
				remark_text[r->remark.at[i].kind], r->remark.at[i].text,
				(unsigned long long)r->remark.at[i].count,
				plural_s(r->remark.at[i].count));
		if (r->cut)
			mu_element(m, "li", NULL, "%llu records could not be read: a process was "
				"killed while writing, its limit for files was reached, or TMPDIR is on a full disk",
				(unsigned long long)r->cut);
		mu_close(m, "ul");
	}
	mu_close(m, "section");
	mu_newline(m);
}

/* ---- bank conflicts ---- */

static void bank_row(struct markup *m, const char *place, const struct bank_use *u)
{
	mu_open(m, "tr");
	mu_open(m, "td");
	mu_element(m, "code", NULL, "%s", place);
	mu_close(m, "td");
	number(m, u->accesses);
	number(m, u->wavefronts);
	number(m, u->wavefronts - u->least);
	if (u->worst > 1)
		mu_element(m, "td", "n", "%u-way", u->worst);
	else
		mu_element(m, "td", "n", "%s", "");
	mu_close(m, "tr");
}

void html_banks(struct html *h)
{
	static const char *const head[] = { "shared memory by instruction", "accesses",
		"wavefronts", "conflicts", "worst" };
	const struct results *r = h->r;
	struct markup *m = &h->m;

	if (!r->bank.n)
		return;
	mu_open(m, "section");
	mu_attr(m, "id", "banks");
	mu_element(m, "h2", NULL, "Bank conflicts");
	html_table(m, head, ARRAY_SIZE(head), "Bank conflicts");
	for (size_t i = 0; i < r->bank.n; i++) {
		struct text t = { 0 };

		describe_access(&t, r->bank.at[i].site);
		bank_row(m, t.at, &r->bank.at[i]);
		text_free(&t);
	}
	html_table_end(m);
	mu_close(m, "section");
	mu_newline(m);
}
