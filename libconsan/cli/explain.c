/* explain: `consan explain`: the rules of consan, the PTX rules that they implement, and the
 * policies of the checker. */
#include "internal.h"

#include "libconsan/finding/finding.h"
#include "libconsan/options/options.h"
#include "reports/reports.h"

#include <argp.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void print_example(const struct page *p, const struct rule_example *x)
{
	struct rule_example_line l;

	printf("\n  %s: - the bug, + the fix, < reported line\n\n", x->path);
	for (const char *at = x->text; rule_example_line(at, &l); at = l.next) {
		const char *color = !p->color || l.sign == ' ' ? ""
			: l.sign == '-' ? "\033[31m" : "\033[32m";

		printf("  %s%c %.*s%s%s\n", color, l.sign, l.n, l.at, l.reported ? "  <" : "",
			*color ? "\033[0m" : "");
	}
}

static struct page page_begin(void)
{
	return (struct page){ .out = stdout, .color = report_color(COLOR_AUTO, stdout), .width = 90, .prefix = "" };
}

static void field(struct page *p, const char *label, const char *text)
{
	page_label(p, label, DIM);
	page_add(p, PLAIN, " %s", text);
}

static void add_ptx_rule(struct page *p, const struct ptx_rule *r)
{
	field(p, r->code, r->text);
	if (*r->section)
		page_add(p, DIM, " [%s]", r->section);
}

static void explain_rule(const struct rule_info *r)
{
	const struct rule_example *x = rule_example_of(r->code);
	const struct ptx_rule *ptx;
	struct page p = page_begin();
	const char *ids = r->ids;

	page_indent(&p, 0);
	page_add(&p, BOLD, "%s  %s", r->code, r->title);
	field(&p, "severity", severity_text[r->severity]);
	field(&p, "why", r->why);
	field(&p, "fix", r->fix);
	while ((ptx = ptx_rule_next(&ids)))
		add_ptx_rule(&p, ptx);
	page_end(&p);
	if (x)
		print_example(&p, x);
	text_free(&p.line);
}

/* The rules of consan that check a PTX rule, or how else it is covered. */
static void add_status(struct page *p, const struct ptx_rule *r, bool titles)
{
	const struct ptx_status *s = ptx_rule_status(r);

	if (s)
		page_add(p, PLAIN, " %s: %s", s->model ? "part of the model" : "not checked", s->how);
	for (unsigned k = 1; k <= rule_count(); k++) {
		if (!ptx_rule_cited(rule_get(k)->ids, r))
			continue;
		if (titles)
			field(p, rule_get(k)->code, rule_get(k)->title);
		else
			page_add(p, PLAIN, " %s", rule_get(k)->code);
	}
}

static void explain_ptx_rule(const struct ptx_rule *r)
{
	struct page p = page_begin();

	page_indent(&p, 0);
	page_add(&p, BOLD, "%s  %s", r->code, r->text);
	field(&p, "group", ptx_group_title(r->code[0]));
	if (*r->section)
		field(&p, "PTX ISA", r->section);
	if (ptx_rule_status(r))
		page_label(&p, "status", DIM);
	add_status(&p, r, true);
	page_end(&p);
	text_free(&p.line);
}

/* Every PTX rule of the catalogue, and what checks it. */
static void explain_ptx(void)
{
	struct page p = page_begin();

	page_indent(&p, 0);
	page_add(&p, PLAIN, "Synchronization and lifetime rules of the PTX ISA, the section of PTX ISA 9.1 "
		"in brackets, and the rules of consan that check them.");
	for (unsigned i = 0; i < ptx_rule_count(); i++) {
		const struct ptx_rule *r = ptx_rule_get(i);

		if (!i || r->code[0] != r[-1].code[0]) {
			page_blank(&p);
			page_indent(&p, 0);
			page_add(&p, BOLD, "%c  %s", r->code[0], ptx_group_title(r->code[0]));
		}
		add_ptx_rule(&p, r);
		page_indent(&p, 13);
		add_status(&p, r, false);
	}
	page_end(&p);
	text_free(&p.line);
}

static const struct knob {
	const char *name;
	int plain, strict;
	const char *rules, *doc;
} knobs[] = {
#define KNOB(id, deflt, strict, rules, doc) { #id, deflt, strict, rules, doc },
#include "libconsan/check/policy.def"
#undef KNOB
};

/* Skips the number of a recommended policy: "K1 A14" becomes "A14". */
static const char *ptx_codes(const char *rules)
{
	return *rules == 'K' ? strchr(rules, ' ') + 1 : rules;
}

static void print_knob(struct page *p, const struct knob *k)
{
	page_indent(p, 0);
	page_add(p, BOLD, "%s", k->name);
	page_add(p, PLAIN, "  %d, with --strict %d", k->plain, k->strict);
	page_indent(p, 4);
	page_add(p, PLAIN, "%s", k->doc);
	page_add(p, DIM, " [%s]", ptx_codes(k->rules));
}

static void explain_knobs(const struct knob *one)
{
	struct page p = page_begin();

	page_add(&p, PLAIN, "--knob=NAME=N sets a policy of the checker. The default values, and what the others mean:");
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (!one || one == &knobs[i])
			print_knob(&p, &knobs[i]);
	page_end(&p);
	text_free(&p.line);
}

static void explain_triton(void)
{
	struct page p = page_begin();

	page_add(&p, PLAIN, "Findings in kernels of Triton that its code generation causes: notes, unless "
		"--knob=triton_codegen=1 is given. In programs that use Gluon, whose authors write such accesses "
		"themselves, only those that are marked.");
#define PROFILE(rule, where, gluon, doc) \
	page_indent(&p, 0); \
	page_add(&p, BOLD, #rule); \
	page_add(&p, PLAIN, "  " #where "%s", gluon ? "  also with Gluon" : ""); \
	page_indent(&p, 4); \
	page_add(&p, PLAIN, "%s", doc);
#include "libconsan/check/profile.def"
#undef PROFILE
	page_blank(&p);
	page_add(&p, PLAIN, "SAME_VALUE and ONE_STORE: one store to shared memory, executed by several lanes or "
		"warps, of values that are equal or may differ. ONE_CTA: both operations are of one CTA and at one "
		"source line. BY_GROUPS: the same, by two groups of warps, of equal values. ANY: any finding of the "
		"rule.");
	page_end(&p);
	text_free(&p.line);
}

static void list_rules(void)
{
	for (unsigned r = 1; r <= rule_count(); r++)
		printf("%s  %-7s  %s\n", rule_get(r)->code, severity_text[rule_get(r)->severity],
			rule_get(r)->title);
}

/* The topic whose name is spelled most like this, or NULL. */
static const char *nearest(const char *word)
{
	static const char *const topics[] = { "knobs", "ptx", "html", "triton" };
	struct similar near = { .word = word };

	for (unsigned r = 1; r <= rule_count(); r++)
		similar_try(&near, rule_get(r)->code);
	for (unsigned i = 0; i < ptx_rule_count(); i++)
		similar_try(&near, ptx_rule_get(i)->code);
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		similar_try(&near, knobs[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(topics); i++)
		similar_try(&near, topics[i]);
	return near.best;
}

/* Codes are accepted in lower case, and those of rules as a number: cs106, 106, a12. */
static void normal_code(const char *word, char code[32])
{
	bool number = strspn(word, "0123456789") == strlen(word);

	snprintf(code, 32, "%s%s", number ? "CS" : "", word);
	for (char *c = code; *c; c++)
		*c = (char)toupper((unsigned char)*c);
}

static bool explain(const char *word)
{
	const struct ptx_rule *ptx;
	char code[32];
	unsigned r;

	if (!strcmp(word, "knobs"))
		return explain_knobs(NULL), true;
	if (!strcmp(word, "ptx") || !strcmp(word, "catalogue"))
		return explain_ptx(), true;
	if (!strcmp(word, "triton"))
		return explain_triton(), true;
	if (!strcmp(word, "html"))
		return report_rules(stdout), true;
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (!strcmp(word, knobs[i].name))
			return explain_knobs(&knobs[i]), true;
	normal_code(word, code);
	r = rule_by_code(code);
	if (r != RULE_NONE)
		return explain_rule(rule_get(r)), true;
	ptx = ptx_rule_by_code(code);
	if (ptx)
		return explain_ptx_rule(ptx), true;
	return false;
}

int command_explain(int argc, char **argv)
{
	static const struct argp argp = { NULL, NULL, "[CODE...|KNOB|knobs|ptx|triton|html]",
		"Explains rules such as CS102 (or 102); without an argument, lists all rules. `ptx' lists "
		"the rules of the PTX ISA that they implement, with the rules that check each, or the "
		"reason why none does; a code such as A12 explains one of these. `knobs' lists the "
		"policies of the checker, `triton' the findings of Triton's code generation that are "
		"notes; `html' prints a page with all rules.", NULL, NULL, NULL };
	struct consan_err e = { 0 };
	int first;

	argp_parse(&argp, argc, argv, 0, &first, NULL);
	if (first == argc)
		list_rules();
	for (int i = first; i < argc; i++) {
		char code[32];
		const char *like;

		if (explain(argv[i]))
			continue;
		normal_code(argv[i], code);
		like = nearest(code);
		if (!like)
			like = nearest(argv[i]);
		err_set(&e, CONSAN_ERR_OPTION, 0, 0,
			"unknown rule %s%s%s%s (`consan explain' lists all rules)",
			argv[i], like ? "; did you mean " : "", like ? like : "", like ? "?" : "");
		return command_fail(&e);
	}
	return 0;
}
