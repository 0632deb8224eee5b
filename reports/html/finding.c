/* finding: one finding on the page: the cause and what to change first, then both sides, then the
 * drawings. */
#include "reports/html/html.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* A page of 1,000 findings stays below 5 MB: beyond the first FEW, a finding gets its drawings only
 * if the text of all findings after it still fits into PAGE_BYTES. */
#define FEW 60u
#define PAGE_BYTES (4700u << 10)
#define TEXT_BYTES 3400u  /* of the text of a finding, estimated */
#define STEP_BYTES 320u   /* of a step in a timeline, estimated */

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
	clause(m, f->side[0].host ? edge_label(f) : "cause", "missing", f->edge);
	html_edit(h, f);
	clause(m, "hint", "fix", f->hint);
	clause(m, "fix", "fix", finding_fix(f));
	if (h->shown <= HTML_MANY)
		clause(m, "why", NULL, rule->why);
	if (*f->barrier.kind) {
		describe_barrier(&t, &f->barrier);
		clause(m, "barrier", NULL, t.at);
		text_free(&t);
	}
	describe_occurrences(&t, f);
	describe_schedule(&schedule, f);
	if (schedule.n)
		text_printf(&t, "; reproduce with %s", schedule.at);
	text_free(&schedule);
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
	if (h->id > FEW && h->m.bytes + bytes + (h->shown - h->id) * TEXT_BYTES > PAGE_BYTES) {
		mu_element(&h->m, "p", "note", "Timeline and memory map are left out to keep this "
			"page small: consan report FILE.json --finding %u shows them.", h->id);
		return;
	}
	html_timeline(h, f);
	html_memory(h, f);
	html_mbarriers(h, f);
}

static void heading(struct html *h, const struct finding *f)
{
	const struct rule_info *rule = rule_get(f->rule);
	char *name = demangle(f->kernel, h->o->demangle);
	struct markup *m = &h->m;
	struct text t = { 0 };

	describe_places(&t, f);
	mu_open(m, "h3");
	mu_class(m, "a", "anchor");
	mu_attr(m, "href", "#f%u", h->id);
	mu_attr(m, "aria-label", "link to finding %u", h->id);
	mu_text(m, "#%u", h->id);
	mu_close(m, "a");
	mu_element(m, "span", "badge", "%s", severity_text[f->severity]);
	mu_text(m, " ");
	mu_class(m, "a", "code");
	mu_attr(m, "href", "#%s", rule->code);
	mu_attr(m, "title", "what the rule says");
	mu_text(m, "%s", rule->code);
	mu_close(m, "a");
	mu_text(m, " ");
	mu_element(m, "span", "title", "%s", rule->title);
	mu_close(m, "h3");
	mu_class(m, "p", "where");
	mu_element(m, "strong", NULL, "%s", t.n ? t.at : "");
	if (*name) {
		mu_text(m, " in ");
		mu_element(m, "code", NULL, "%.400s", name);
		if (!f->side[0].host && !*f->side[0].actor)
			mu_text(m, ", launch %u", f->launch);
	}
	mu_close(m, "p");
	text_free(&t);
	free(name);
}

static void body(struct html *h, const struct finding *f)
{
	struct markup *m = &h->m;

	explanation(h, f);
	mu_class(m, "div", f->nsides == 2 ? "sides two" : "sides");
	for (unsigned i = 0; i < f->nsides; i++)
		html_side(h, f, i);
	mu_close(m, "div");
	html_launched(h, f);
	drawings(h, f);
}

void html_finding(struct html *h, const struct finding *f, unsigned kernel)
{
	const bool far = h->id > HTML_NEAR;
	struct markup *m = &h->m;

	mu_open(m, "article");
	mu_attr(m, "class", "finding %s%s", severity_text[f->severity], far ? " far" : "");
	mu_attr(m, "id", "f%u", h->id);
	mu_attr(m, "tabindex", "-1");
	mu_attr(m, "data-r", "%s", rule_get(f->rule)->code);
	mu_attr(m, "data-k", "%u", kernel);
	mu_attr(m, "data-s", "%s", severity_text[f->severity]);
	heading(h, f);
	if (far)
		mu_open(m, "noscript");
	body(h, f);
	if (far)
		mu_close(m, "noscript");
	mu_close(m, "article");
	mu_newline(m);
}
