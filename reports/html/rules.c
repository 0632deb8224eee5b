/* rules: all rules as one self-contained page: why, fix, and a kernel that breaks the rule
 * next to its fixed version; and the rules of the findings, as a part of the report. */
#include "reports/html/html.h"

#include "libconsan/finding/finding.h"

#include <string.h>

static const struct family {
	char digit;
	const char *title;
} families[] = {
	{ '1', "Data races and proxy fences" },
	{ '2', "mbarriers" },
	{ '3', "Asynchronous copies and wgmma" },
	{ '4', "Barriers of the CTA and the warp" },
	{ '5', "Clusters" },
	{ '6', "Tensor memory and tcgen05" },
	{ '7', "Hangs" },
	{ '8', "Performance" },
	{ '9', "Memory, values, traps" },
};

static void show_example(struct html *h, const struct rule_example *x)
{
	struct markup *m = &h->m;
	struct rule_example_line l;

	mu_element(m, "p", "who", "%s", x->path);
	mu_class(m, "pre", "example");
	for (const char *at = x->text; rule_example_line(at, &l); at = l.next) {
		mu_class(m, "span", l.sign == '-' ? "removed" : l.sign == '+' ? "added" : "line");
		mu_text(m, "%c ", l.sign);
		mu_textn(m, l.at, (size_t)l.n);
		mu_close(m, "span");
		if (l.reported)
			mu_element(m, "b", NULL, "  \xe2\x97\x80 reported here");
		mu_text(m, "\n");
	}
	mu_close(m, "pre");
}

/* What the ISA says: the PTX rules that this one implements. */
static void show_ptx_rules(struct markup *m, const char *ids)
{
	const struct ptx_rule *r;

	while ((r = ptx_rule_next(&ids))) {
		mu_element(m, "dt", NULL, "%s", r->code);
		mu_open(m, "dd");
		mu_text(m, "%s ", r->text);
		if (*r->section)
			mu_element(m, "span", "who", "[%s]", r->section);
		mu_close(m, "dd");
	}
}

static void show_rule(struct html *h, const struct rule_info *r)
{
	const struct rule_example *x = rule_example_of(r->code);
	struct markup *m = &h->m;

	mu_open(m, "article");
	mu_attr(m, "class", "finding %s", severity_text[r->severity]);
	mu_attr(m, "id", "%s", r->code);
	mu_open(m, "h3");
	mu_element(m, "span", "badge", "%s", severity_text[r->severity]);
	mu_element(m, "span", "code", "%s", r->code);
	mu_element(m, "span", "title", "%s", r->title);
	mu_open(m, "a");
	mu_attr(m, "class", "anchor");
	mu_attr(m, "href", "#%s", r->code);
	mu_text(m, "#");
	mu_close(m, "a");
	mu_close(m, "h3");
	mu_class(m, "dl", "facts");
	mu_element(m, "dt", NULL, "why");
	mu_element(m, "dd", NULL, "%s", r->why);
	mu_element(m, "dt", NULL, "fix");
	mu_element(m, "dd", "fix", "%s", r->fix);
	show_ptx_rules(m, r->ids);
	mu_close(m, "dl");
	if (x) {
		mu_open(m, "details");
		mu_element(m, "summary", NULL, "a kernel with this bug, and its fix");
		show_example(h, x);
		mu_close(m, "details");
	}
	mu_close(m, "article");
	mu_newline(m);
}

static void rule_of_page(struct html *h, const struct rule_info *r)
{
	struct markup *m = &h->m;

	mu_open(m, "details");
	mu_attr(m, "id", "%s", r->code);
	mu_open(m, "summary");
	mu_element(m, "span", "code", "%s", r->code);
	mu_text(m, " %s", r->title);
	mu_close(m, "summary");
	mu_class(m, "dl", "facts");
	mu_element(m, "dt", NULL, "why");
	mu_element(m, "dd", NULL, "%s", r->why);
	mu_element(m, "dt", NULL, "fix");
	mu_element(m, "dd", NULL, "%s", r->fix);
	show_ptx_rules(m, r->ids);
	mu_close(m, "dl");
	mu_open(m, "p");
	mu_attr(m, "class", "note");
	mu_element(m, "code", NULL, "consan explain %s", r->code);
	mu_text(m, " shows a kernel with this bug.");
	mu_close(m, "p");
	mu_close(m, "details");
}

void html_rules(struct html *h)
{
	struct markup *m = &h->m;
	bool any = false;

	for (unsigned k = 1; k <= rule_count(); k++) {
		size_t i = 0;

		while (i < h->shown && h->r->finding.at[i].rule != k)
			i++;
		if (i == h->shown)
			continue;
		if (!any) {
			mu_class(m, "section", "rules");
			mu_attr(m, "id", "rules");
			mu_element(m, "h2", NULL, "Rules");
			mu_element(m, "p", "note", "Codes such as A12 are rows of the catalogue of PTX ISA "
				"rules (consan explain A12); in brackets, sections of PTX ISA 9.1.");
		}
		any = true;
		rule_of_page(h, rule_get(k));
	}
	if (any) {
		mu_close(m, "section");
		mu_newline(m);
	}
}

void report_rules(FILE *out)
{
	struct html h = { .m = { .out = out } };
	struct markup *m = &h.m;

	html_head(&h, "consan: the rules");
	mu_open(m, "body");
	mu_class(m, "header", "top");
	mu_element(m, "span", "logo", "consan");
	mu_element(m, "h1", NULL, "Rules");
	mu_close(m, "header");
	mu_class(m, "main", "page one");
	mu_open(m, "div");
	for (size_t k = 0; k < ARRAY_SIZE(families); k++) {
		mu_open(m, "section");
		mu_element(m, "h2", NULL, "CS%cxx  %s", families[k].digit, families[k].title);
		for (unsigned r = 1; r <= rule_count(); r++)
			if (rule_get(r)->code[2] == families[k].digit)
				show_rule(&h, rule_get(r));
		mu_close(m, "section");
	}
	mu_close(m, "div");
	mu_close(m, "main");
	mu_close(m, "body");
	mu_close(m, "html");
	mu_newline(m);
}
