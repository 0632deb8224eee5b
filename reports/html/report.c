/* report: the HTML report, one self-contained page: head, filters, table of contents, findings,
 * coverage. Without its script it shows all but the bodies of findings far down; the script also
 * filters, jumps between findings, zooms timelines, and switches between light and dark. */
#include "reports/html/html.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FINDINGS 20000u /* on a page, unless --print-limit is higher, or 0 */
#define WHOLE 500u       /* findings that are markup when the page is loaded */
#define BATCH 250u
#define FEW 60u /* findings with long source excerpts; up to HTML_MANY short ones, more only the line */

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
	mu_trusted(m, page_css, (size_t)(page_css_end - page_css));
	mu_trusted(m, drawings_css, (size_t)(drawings_css_end - drawings_css));
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

/* The program, or of merged reports the number of different ones, and the GPU of the first. */
static void programs(struct html *h)
{
	const struct result_process *first = NULL;
	unsigned n = 0;

	for (size_t i = 0; i < h->r->process.n; i++) {
		const struct result_process *p = &h->r->process.at[i];
		bool again = !*p->device;

		for (size_t k = 0; k < i && !again; k++)
			again = *h->r->process.at[k].device && !strcmp(p->program, h->r->process.at[k].program);
		first = first || !*p->device ? first : p;
		n += !again;
	}
	if (n == 1)
		mu_element(&h->m, "span", "prog", " %s on %s", file_base_name(first->program), first->device);
	else if (n)
		mu_element(&h->m, "span", "prog", " %u programs on %s", n, first->device);
}

static void banner(struct html *h, const struct report_counts *n)
{
	struct markup *m = &h->m;

	mu_class(m, "a", "skip");
	mu_attr(m, "href", "#findings");
	mu_text(m, "Skip to the findings");
	mu_close(m, "a");
	mu_class(m, "header", "top");
	mu_open(m, "h1");
	mu_element(m, "span", "logo", "consan");
	programs(h);
	mu_close(m, "h1");
	mu_class(m, "p", "chips");
	chip(m, n->errors ? "chip error" : "chip", n->errors, "error");
	chip(m, n->warnings ? "chip warning" : "chip", n->warnings, "warning");
	chip(m, "chip", n->notes, "note");
	if (n->consequences)
		chip(m, "chip", n->consequences, "consequence");
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
	mu_attr(m, "aria-label", "Switch between light and dark");
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

static void filters(struct html *h, const unsigned *kernel, unsigned nkernels)
{
	const struct results *r = h->r;
	struct markup *m = &h->m;
	unsigned last = RULE_NONE, n[SEV_ERROR + 1] = { 0 };
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
	for (size_t i = 0; i < r->finding.n; i++)
		n[r->finding.at[i].severity]++;
	for (int k = SEV_ERROR; k >= SEV_NOTE; k--)
		if (n[k])
			checkbox(m, "sev", severity_text[k], n[k]);
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

/* ---- batches: the findings after the first WHOLE, and their entries in the table of contents, are
 * text, BATCH or more at a time. The script turns it into markup when the page is there. A batch
 * has whole groups, or consequences of one group that began before. ---- */

struct batch {
	bool open, inner;       /* inner: in a group */
	size_t rows;
};

static void batch_end(struct html *h, struct batch *b)
{
	if (b->open)
		mu_close(&h->m, "script");
	*b = (struct batch){ 0 };
}

static void batch_begin(struct html *h, struct batch *b, bool inner)
{
	if (b->open)
		return;
	mu_open(&h->m, "script");
	mu_attr(&h->m, "type", "text/html");
	mu_attr(&h->m, "class", "batch");
	*b = (struct batch){ true, inner, 0 };
}

/* Finding i, a headline, follows. */
static void batch_row(struct html *h, struct batch *b, size_t i)
{
	if (b->rows++ >= BATCH)
		batch_end(h, b);
	if (i >= WHOLE)
		batch_begin(h, b, false);
}

static void batch_consequence(struct html *h, struct batch *b, size_t i)
{
	if (b->rows++ >= BATCH && b->inner)
		batch_end(h, b);
	if (i >= WHOLE)
		batch_begin(h, b, true);
}

static void batch_end_group(struct html *h, struct batch *b)
{
	if (b->inner)
		batch_end(h, b);
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

static void link(struct markup *m, const char *to, const char *text)
{
	mu_open(m, "a");
	mu_attr(m, "href", "%s", to);
	mu_text(m, "%s", text);
	mu_close(m, "a");
}

static void contents(struct html *h)
{
	struct batch batch = { 0 };
	struct markup *m = &h->m;

	mu_class(m, "nav", "toc");
	mu_attr(m, "aria-label", "Findings");
	/* not a list: browsers number the entries of a list again whenever one is hidden */
	for (size_t i = 0; i < h->shown; i++) {
		const struct finding *f = &h->r->finding.at[i];
		size_t more = 0;
		struct text t = { 0 };

		if (f->rank)
			continue;
		while (i + 1 + more < h->shown && f[1 + more].rank)
			more++;
		short_places(&t, f);
		batch_row(h, &batch, i);
		mu_class(m, "a", severity_text[f->severity]);
		mu_attr(m, "href", "#f%zu", i + 1);
		mu_attr(m, "title", "%s", rule_get(f->rule)->title);
		mu_element(m, "b", NULL, "%s", rule_get(f->rule)->code);
		mu_text(m, " %s", t.at);
		if (more)
			mu_element(m, "small", NULL, " +%zu", more);
		mu_close(m, "a");
		text_free(&t);
	}
	batch_end(h, &batch);
	mu_open(m, "p");
	link(m, "#rules", "Rules");
	link(m, "#coverage", "Coverage");
	mu_close(m, "p");
	mu_close(m, "nav");
	mu_newline(m);
}

/* ---- the findings ---- */

/* A headline with its consequences, which are folded. */
static void begin_group(struct html *h, size_t i)
{
	const struct finding *f = &h->r->finding.at[i];
	struct markup *m = &h->m;
	size_t n = h->r->finding.n - i;

	if (f->rank && !f[-1].rank) {
		group_severity(f, &n);
		mu_class(m, "details", "consequences");
		mu_element(m, "summary", NULL, "and %zu consequence%s", n, plural_s(n));
	} else if (!f->rank && i + 1 < h->shown && f[1].rank) {
		mu_class(m, "div", "group");
	}
}

static void end_group(struct html *h, size_t i)
{
	const struct finding *f = &h->r->finding.at[i];

	if (!f->rank || (i + 1 < h->shown && f[1].rank))
		return;
	mu_close(&h->m, "details");
	mu_close(&h->m, "div");
}

static void findings(struct html *h, const unsigned *kernel)
{
	struct batch batch = { 0 };
	struct markup *m = &h->m;

	mu_open(m, "section");
	mu_attr(m, "id", "findings");
	mu_element(m, "h2", NULL, "Findings");
	if (!h->r->finding.n)
		mu_element(m, "p", "none", "No findings in the checked launches.");
	for (size_t i = 0; i < h->shown; i++) {
		const struct finding *f = &h->r->finding.at[i];

		h->id = (unsigned)i + 1;
		if (!f->rank)
			batch_row(h, &batch, i);
		begin_group(h, i);
		if (f->rank)
			batch_consequence(h, &batch, i);
		html_finding(h, f, kernel[i]);
		if (i + 1 == h->shown || !f[1].rank)
			batch_end_group(h, &batch);
		end_group(h, i);
	}
	batch_end(h, &batch);
	if (h->shown < h->r->finding.n)
		mu_element(m, "p", "none", "%zu more findings are not on this page: "
			"--print-limit=0 shows all.", h->r->finding.n - h->shown);
	if (h->shown > WHOLE) {
		mu_open(m, "noscript");
		mu_element(m, "p", "note", "Findings after #%u need JavaScript.", WHOLE);
		mu_close(m, "noscript");
	}
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

static void footer(struct html *h)
{
	struct markup *m = &h->m;

	mu_open(m, "footer");
	for (size_t i = 0; i < h->r->run.n; i++) {
		mu_open(m, "p");
		mu_element(m, "code", NULL, "%s", h->r->run.at[i].command);
		mu_text(m, " %s", h->r->run.at[i].date);
		mu_close(m, "p");
	}
	mu_element(m, "p", NULL, "consan %s", CONSAN_VERSION);
	mu_close(m, "footer");
}

void report_html(const struct results *r, const struct options *o, FILE *out)
{
	struct html h = { .m = { .out = out }, .o = o, .r = r,
		.context = r->finding.n <= FEW ? 3 : r->finding.n <= HTML_MANY ? 1 : 0,
		.frames = r->finding.n <= HTML_MANY ? 12 : 2 };
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
		filters(&h, kernel, nkernels);
	mu_class(m, "div", r->finding.n > 1 ? "page" : "page one");
	if (r->finding.n > 1)
		contents(&h);
	mu_open(m, "main");
	html_timeline_defs(&h);
	findings(&h, kernel);
	suppressed(&h);
	html_rules(&h);
	html_coverage(&h);
	html_banks(&h);
	mu_close(m, "main");
	mu_close(m, "div");
	footer(&h);
	mu_open(m, "script");
	mu_trusted(m, findings_js, (size_t)(findings_js_end - findings_js));
	mu_trusted(m, timeline_js, (size_t)(timeline_js_end - timeline_js));
	mu_close(m, "script");
	mu_close(m, "body");
	mu_close(m, "html");
	mu_newline(m);
	free(kernel);
}
