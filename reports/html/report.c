/* report: the HTML report, one self-contained page. It can be read without its script,
 * which only filters, jumps between findings and switches between light and dark. */
#include "reports/html/html.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* A page of 1,000 findings stays below 5 MB: a finding gets its drawings only if the text of
 * all findings after it still fits into PAGE_BYTES. */
#define PAGE_BYTES (4700u << 10)
#define TEXT_BYTES 3400u  /* of the text of a finding, estimated */
#define STEP_BYTES 320u   /* of a step in a timeline, estimated */
#define MAX_FINDINGS 2000u /* on a page, unless --print-limit is higher, or 0 */
/* Up to FEW findings have long source excerpts, up to MANY short ones, more only the line. */
#define FEW 60u
#define MANY 300u

/* ---- the head ---- */

void html_head(struct html *h, const char *title)
{
	struct markup *m = &h->m;

	mu_trusted(m, "<!DOCTYPE html>\n", 16);
	mu_open(m, "html");
	mu_attr(m, "lang", "en");
	mu_open(m, "head");
	mu_open(m, "meta");
	mu_attr(m, "charset", "utf-8");
	mu_void(m);
	mu_open(m, "meta");
	mu_attr(m, "name", "viewport");
	mu_attr(m, "content", "width=device-width, initial-scale=1");
	mu_void(m);
	mu_open(m, "meta"); /* the page cannot load anything */
	mu_attr(m, "http-equiv", "Content-Security-Policy");
	mu_attr(m, "content", "default-src 'none'; style-src 'unsafe-inline'; "
		"script-src 'unsafe-inline'; img-src data:");
	mu_void(m);
	mu_open(m, "link"); /* keeps browsers from asking for /favicon.ico */
	mu_attr(m, "rel", "icon");
	mu_attr(m, "href", "data:,");
	mu_void(m);
	mu_element(m, "title", NULL, "%s", title);
	mu_open(m, "style");
	mu_trusted(m, report_css, (size_t)(report_css_end - report_css));
	mu_close(m, "style");
	mu_close(m, "head");
	mu_newline(m);
}

static void chip(struct markup *m, const char *class, unsigned n, const char *what)
{
	mu_class(m, "span", class);
	mu_element(m, "b", NULL, "%u", n);
	mu_text(m, " %s%s", what, plural_s(n));
	mu_close(m, "span");
}

static void banner(struct html *h, const struct report_counts *n)
{
	struct markup *m = &h->m;
	bool named = false;

	mu_class(m, "a", "skip");
	mu_attr(m, "href", "#findings");
	mu_text(m, "Skip to the findings");
	mu_close(m, "a");
	mu_class(m, "header", "top");
	mu_open(m, "h1");
	mu_element(m, "span", "logo", "consan");
	for (size_t i = 0; i < h->r->process.n && !named; i++) {
		const struct result_process *p = &h->r->process.at[i];

		if (!*p->device)
			continue;
		named = true;
		mu_element(m, "span", "prog", " %s on %s", file_base_name(p->program), p->device);
	}
	mu_close(m, "h1");
	mu_class(m, "p", "chips");
	chip(m, n->errors ? "chip error" : "chip", n->errors, "error");
	chip(m, n->warnings ? "chip warning" : "chip", n->warnings, "warning");
	chip(m, "chip", n->notes, "note");
	mu_class(m, "a", n->checked < n->kernels || !n->kernels ? "chip error" : "chip ok");
	mu_attr(m, "href", "#coverage");
	mu_text(m, "%u of %u kernel%s checked", n->checked, n->kernels, plural_s(n->kernels));
	mu_close(m, "a");
	if (h->r->suppressed.n) {
		mu_class(m, "a", "chip");
		mu_attr(m, "href", "#suppressed");
		mu_text(m, "%zu suppressed", h->r->suppressed.n);
		mu_close(m, "a");
	}
	mu_close(m, "p");
	mu_class(m, "button", "theme js");
	mu_attr(m, "type", "button");
	mu_attr(m, "id", "theme");
	mu_attr(m, "title", "Switch between light and dark");
	mu_text(m, "\xe2\x97\x90");
	mu_close(m, "button");
	mu_close(m, "header");
	mu_newline(m);
}

/* ---- filters: for the script, hidden without it ---- */

static void choice(struct markup *m, const char *value, const char *text)
{
	mu_open(m, "option");
	mu_attr(m, "value", "%s", value);
	mu_text(m, "%.120s", text);
	mu_close(m, "option");
}

static void checkbox(struct markup *m, const char *class, const char *value, unsigned n)
{
	mu_class(m, "label", "pick");
	mu_open(m, "input");
	mu_attr(m, "type", "checkbox");
	mu_attr(m, "name", "%s", class);
	mu_attr(m, "value", "%s", value);
	mu_flag(m, "checked");
	mu_void(m);
	mu_text(m, "%s ", value);
	mu_element(m, "small", NULL, "%u", n);
	mu_close(m, "label");
}

static void filters(struct html *h, const unsigned *kernel, unsigned nkernels,
	const struct report_counts *n)
{
	const struct results *r = h->r;
	struct markup *m = &h->m;
	unsigned last = RULE_NONE;
	char number[16];

	mu_class(m, "form", "filters js");
	mu_attr(m, "id", "filters");
	mu_attr(m, "aria-label", "Filters");
	mu_open(m, "input");
	mu_attr(m, "type", "search");
	mu_attr(m, "id", "search");
	mu_attr(m, "placeholder", "Search  /");
	mu_attr(m, "aria-label", "Search the findings");
	mu_void(m);
	if (n->errors)
		checkbox(m, "sev", "error", n->errors);
	if (n->warnings)
		checkbox(m, "sev", "warning", n->warnings);
	if (n->notes)
		checkbox(m, "sev", "note", n->notes);
	mu_open(m, "select");
	mu_attr(m, "id", "rule");
	mu_attr(m, "aria-label", "Rule");
	choice(m, "", "all rules");
	for (unsigned k = 1; k <= rule_count(); k++)
		for (size_t i = 0; i < h->shown && last != k; i++)
			if (r->finding.at[i].rule == k) {
				struct text t = { 0 };

				text_printf(&t, "%s %s", rule_get(k)->code,
					rule_get(k)->title);
				choice(m, rule_get(k)->code, t.at);
				text_free(&t);
				last = k;
			}
	mu_close(m, "select");
	mu_open(m, "select");
	mu_attr(m, "id", "kernel");
	mu_attr(m, "aria-label", "Kernel");
	choice(m, "", "all kernels");
	for (unsigned k = 0; k < nkernels; k++)
		for (size_t i = 0; i < h->shown; i++) {
			char *name;

			if (kernel[i] != k)
				continue;
			name = demangle(r->finding.at[i].kernel, h->o->demangle);
			snprintf(number, sizeof number, "%u", k);
			choice(m, number, name);
			free(name);
			break;
		}
	mu_close(m, "select");
	mu_class(m, "output", "count");
	mu_attr(m, "id", "count");
	mu_close(m, "output");
	mu_element(m, "span", "keys", "j k: next, previous");
	mu_close(m, "form");
	mu_newline(m);
}

/* ---- the table of contents ---- */

/* As describe_places(), but a file name that both places share is printed once, because the
 * list is narrow. */
static void short_places(struct text *t, const struct finding *f)
{
	char *second, *colon;

	describe_places(t, f);
	second = t->n ? strstr(t->at, " / ") : NULL;
	if (!second)
		return;
	*second = 0;
	colon = strrchr(t->at, ':');
	*second = ' ';
	second += strlen(" / ");
	if (!colon || strncmp(t->at, second, (size_t)(colon + 1 - t->at)))
		return;
	t->n -= (size_t)(colon + 1 - t->at);
	memmove(second, second + (colon + 1 - t->at), t->n - (size_t)(second - t->at) + 1);
}

static void contents(struct html *h)
{
	struct markup *m = &h->m;

	mu_class(m, "nav", "toc");
	mu_attr(m, "aria-label", "Findings");
	mu_open(m, "ol");
	for (size_t i = 0; i < h->shown; i++) {
		const struct finding *f = &h->r->finding.at[i];
		struct text t = { 0 };

		short_places(&t, f);
		mu_open(m, "li");
		mu_class(m, "a", severity_text[f->severity]);
		mu_attr(m, "href", "#f%zu", i + 1);
		mu_attr(m, "title", "%s", rule_get(f->rule)->title);
		mu_element(m, "b", NULL, "%s", rule_get(f->rule)->code);
		mu_text(m, " %s", t.at);
		mu_close(m, "a");
		mu_close(m, "li");
		text_free(&t);
	}
	mu_close(m, "ol");
	mu_open(m, "p");
	mu_class(m, "a", NULL);
	mu_attr(m, "href", "#coverage");
	mu_text(m, "Coverage");
	mu_close(m, "a");
	mu_close(m, "p");
	mu_close(m, "nav");
	mu_newline(m);
}

/* ---- one finding ---- */

static void clause(struct markup *m, const char *label, const char *class, const char *text)
{
	if (!text || !*text)
		return;
	mu_element(m, "dt", class, "%s", label);
	mu_element(m, "dd", class, "%s", text);
}

static void explanation(struct html *h, const struct finding *f)
{
	const struct rule_info *rule = rule_get(f->rule);
	struct markup *m = &h->m;
	struct text t = { 0 }, schedule = { 0 };

	mu_class(m, "dl", "facts");
	clause(m, "missing", edge_label(f), f->edge);
	if (*f->barrier.kind) {
		describe_barrier(&t, &f->barrier);
		clause(m, "barrier", NULL, t.at);
		text_free(&t);
	}
	clause(m, "why", NULL, rule->why);
	clause(m, "fix", "fix", rule->fix);
	clause(m, "hint", "fix", f->hint);
	describe_occurrences(&t, f);
	describe_schedule(&schedule, f);
	if (schedule.n)
		text_printf(&t, "; reproduce with %s", schedule.at);
	text_free(&schedule);
	text_printf(&t, "; see consan explain %s", rule->code);
	clause(m, "seen", NULL, t.at);
	text_free(&t);
	mu_close(m, "dl");
}

static void drawings(struct html *h, const struct finding *f)
{
	const struct history *y = f->history;
	const uint64_t bytes = STEP_BYTES * (!y ? 0u : y->nsteps < 96 ? y->nsteps + 8 : 104u);

	html_wait_graph(h, f);
	if (!y) {
		html_memory(h, f);
		return;
	}
	if (h->shown > FEW && h->m.bytes + bytes + (h->shown - h->id) * TEXT_BYTES > PAGE_BYTES) {
		mu_element(&h->m, "p", "note", "Timeline and memory map are left out to keep this "
			"page small: consan report FILE.json --finding %u shows them.", h->id);
		return;
	}
	html_timeline(h, f);
	html_memory(h, f);
	html_mbarriers(h, f);
}

static void finding(struct html *h, const struct finding *f, unsigned kernel)
{
	const struct rule_info *rule = rule_get(f->rule);
	char *name = demangle(f->kernel, h->o->demangle);
	struct markup *m = &h->m;
	struct text t = { 0 };

	describe_places(&t, f);
	mu_open(m, "article");
	mu_attr(m, "class", "finding %s", severity_text[f->severity]);
	mu_attr(m, "id", "f%u", h->id);
	mu_attr(m, "tabindex", "-1");
	mu_attr(m, "data-r", "%s", rule->code);
	mu_attr(m, "data-k", "%u", kernel);
	mu_attr(m, "data-s", "%s", severity_text[f->severity]);
	mu_open(m, "h3");
	mu_element(m, "span", "badge", "%s", severity_text[f->severity]);
	mu_element(m, "span", "code", "%s", rule->code);
	mu_element(m, "span", "title", "%s", rule->title);
	mu_class(m, "a", "anchor");
	mu_attr(m, "href", "#f%u", h->id);
	mu_attr(m, "aria-label", "link to this finding");
	mu_text(m, "#%u", h->id);
	mu_close(m, "a");
	mu_close(m, "h3");
	mu_class(m, "p", "where");
	mu_element(m, "strong", NULL, "%s", t.n ? t.at : "");
	mu_text(m, " in ");
	mu_element(m, "code", NULL, "%.400s", name);
	mu_text(m, ", launch %u", f->launch);
	mu_close(m, "p");
	text_free(&t);
	free(name);
	explanation(h, f);
	mu_class(m, "div", f->nsides == 2 ? "sides two" : "sides");
	for (unsigned i = 0; i < f->nsides; i++)
		html_side(h, f, i);
	mu_close(m, "div");
	drawings(h, f);
	mu_close(m, "article");
	mu_newline(m);
}

static void findings(struct html *h, const unsigned *kernel)
{
	struct markup *m = &h->m;

	mu_open(m, "section");
	mu_attr(m, "id", "findings");
	mu_element(m, "h2", NULL, "Findings");
	if (!h->r->finding.n)
		mu_element(m, "p", "none", "No findings in the checked launches.");
	for (size_t i = 0; i < h->shown; i++) {
		h->id = (unsigned)i + 1;
		finding(h, &h->r->finding.at[i], kernel[i]);
	}
	if (h->shown < h->r->finding.n)
		mu_element(m, "p", "none", "%zu more findings are not on this page: "
			"--print-limit=0 shows all.", h->r->finding.n - h->shown);
	mu_element(m, "p", "none js", "No finding matches the filters.");
	mu_close(m, "section");
	mu_newline(m);
}

/* ---- suppressed ---- */

static void suppressed(struct html *h)
{
	const struct results *r = h->r;
	struct markup *m = &h->m;

	if (!r->suppression.n)
		return;
	mu_open(m, "section");
	mu_attr(m, "id", "suppressed");
	mu_element(m, "h2", NULL, "Suppressions");
	mu_class(m, "ul", "plain");
	for (size_t i = 0; i < r->suppressed.n; i++) {
		const struct result_suppressed *s = &r->suppressed.at[i];
		const struct result_suppression *by = &r->suppression.at[s->by];
		struct text t = { 0 };

		describe_places(&t, &s->f);
		mu_open(m, "li");
		mu_element(m, "b", NULL, "%s", rule_get(s->f.rule)->code);
		mu_text(m, " %s: %s ", t.at, by->reason);
		mu_element(m, "code", NULL, "%s", by->where);
		mu_close(m, "li");
		text_free(&t);
	}
	for (size_t i = 0; i < r->suppression.n; i++)
		if (!r->suppression.at[i].matched) {
			mu_open(m, "li");
			mu_text(m, "matches no finding: %s, ", r->suppression.at[i].rule);
			mu_element(m, "code", NULL, "%s", r->suppression.at[i].where);
			mu_close(m, "li");
		}
	mu_close(m, "ul");
	mu_close(m, "section");
}

/* ---- the page ---- */

void report_html(const struct results *r, const struct options *o, FILE *out)
{
	struct html h = { .m = { .out = out }, .o = o, .r = r,
		.context = r->finding.n <= FEW ? 3 : r->finding.n <= MANY ? 1 : 0,
		.frames = r->finding.n <= MANY ? 12 : 2 };
	const size_t most = o->print_limit > MAX_FINDINGS ? o->print_limit : MAX_FINDINGS;
	unsigned *kernel = base_alloc((r->finding.n + 1) * sizeof *kernel), nkernels = 0;
	struct markup *m = &h.m;
	struct report_counts n;
	char title[80];

	report_count(r, &n);
	h.shown = o->print_limit && r->finding.n > most ? most : r->finding.n;
	for (size_t i = 0; i < h.shown; i++) {
		size_t k = 0;

		while (strcmp(r->finding.at[k].kernel, r->finding.at[i].kernel))
			k++;
		kernel[i] = k < i ? kernel[k] : nkernels++;
	}
	snprintf(title, sizeof title, "consan: %u error%s, %u warning%s", n.errors,
		plural_s(n.errors), n.warnings, plural_s(n.warnings));
	html_head(&h, title);
	mu_open(m, "body");
	banner(&h, &n);
	if (r->finding.n > 1)
		filters(&h, kernel, nkernels, &n);
	mu_class(m, "div", r->finding.n > 1 ? "page" : "page one");
	if (r->finding.n > 1)
		contents(&h);
	mu_open(m, "main");
	html_timeline_defs(&h);
	findings(&h, kernel);
	suppressed(&h);
	html_coverage(&h);
	html_banks(&h);
	mu_close(m, "main");
	mu_close(m, "div");
	mu_element(m, "footer", NULL, "consan %s. Rules: consan explain.", CONSAN_VERSION);
	mu_open(m, "script");
	mu_trusted(m, report_js, (size_t)(report_js_end - report_js));
	mu_close(m, "script");
	mu_close(m, "body");
	mu_close(m, "html");
	mu_newline(m);
	free(kernel);
}
