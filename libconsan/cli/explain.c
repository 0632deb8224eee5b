/* explain: `consan explain`. */
#include "internal.h"

#include "libconsan/finding/finding.h"
#include "reports/reports.h"

#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void explain_rule(const struct rule_info *r)
{
	const struct rule_example *x = rule_example_of(r->code);
	struct page p = { .out = stdout, .color = isatty(1), .width = 90, .prefix = "" };
	const char *const part[][2] = {
		{ "severity", words_severity[r->severity] }, { "why", r->why }, { "fix", r->fix },
		{ "catalogue", r->ids },
	};

	page_indent(&p, 0);
	page_add(&p, BOLD, "%s  %s", r->code, r->title);
	for (size_t i = 0; i < ARRAY_SIZE(part); i++) {
		if (!*part[i][1])
			continue;
		page_label(&p, part[i][0], DIM);
		page_add(&p, PLAIN, " %s", part[i][1]);
	}
	page_end(&p);
	if (x)
		print_example(&p, x);
	text_free(&p.line);
}

static int explain_knobs(void)
{
	printf("%-20s %7s %6s  meaning of --knob=NAME=N\n", "name", "default", "strict");
#define KNOB(id, deflt, strict, rules, doc) \
	printf("%-20s %7d %6d  %s [%s]\n", #id, deflt, strict, doc, rules);
#include "libconsan/check/policy.def"
#undef KNOB
	printf("\nnot available:\n");
#define ABSENT_KNOB(name, rows, why) printf("%-20s %s [%s]\n", #name, why, rows);
#include "libconsan/finding/absent.def"
	return 0;
}

static bool names_row(const char *ids, const char *row)
{
	const char *at = strstr(ids, row);

	return at && (!at[3] || at[3] == ' ');
}

/* For each row of the PTX rule catalogue: the rules that check it, or why none does. */
static int explain_catalogue(void)
{
	static const struct { const char *row, *text; bool absent; } others[] = {
#define MODEL(row, how) { #row, how, false },
#define ABSENT(row, why) { #row, why, true },
#include "libconsan/finding/absent.def"
	};
	static const struct { char letter; int rows; const char *title; } groups[] = {
#define CATALOGUE(letter, rows, title) { letter, rows, title },
#include "libconsan/finding/absent.def"
	};

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++) {
		printf("%s%c  %s\n", g ? "\n" : "", groups[g].letter, groups[g].title);
		for (int i = 1; i <= groups[g].rows; i++) {
			char row[16];

			snprintf(row, sizeof row, "%c%02d", groups[g].letter, i);
			printf("  %s ", row);
			for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
				if (names_row(rule_get((enum rule)r)->ids, row))
					printf(" %s", rule_get((enum rule)r)->code);
			for (size_t k = 0; k < ARRAY_SIZE(others); k++)
				if (!strcmp(others[k].row, row))
					printf(" %s: %s", others[k].absent ? "not checked" : "model",
						others[k].text);
			printf("\n");
		}
	}
	return 0;
}

int command_explain(int argc, char **argv)
{
	static const struct argp argp = { NULL, NULL, "[CODE...|knobs|catalogue|html]",
		"Explains rules such as CS102; without an argument, lists all rules. `knobs' lists the "
		"policies of the checker, `catalogue' the rows of the PTX rule catalogue with the rules "
		"that check them, or the reason why none does; `html' prints a page with all rules.",
		NULL, NULL, NULL };
	struct err e = { 0 };
	int first;

	argp_parse(&argp, argc, argv, 0, &first, NULL);
	if (first == argc)
		for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
			printf("%s  %-7s  %s\n", rule_get((enum rule)r)->code,
				words_severity[rule_get((enum rule)r)->severity],
				rule_get((enum rule)r)->title);
	for (int i = first; i < argc; i++) {
		enum rule r = rule_by_code(argv[i]);

		if (!strcmp(argv[i], "knobs")) {
			explain_knobs();
			continue;
		}
		if (!strcmp(argv[i], "catalogue")) {
			explain_catalogue();
			continue;
		}
		if (!strcmp(argv[i], "html")) {
			report_rules(stdout);
			continue;
		}
		if (r == RULE_NONE) {
			err_set(&e, ERR_OPTION, 0, 0, "unknown rule %s (`consan explain' "
				"lists all rules)", argv[i]);
			return command_fail(&e);
		}
		explain_rule(rule_get(r));
	}
	return 0;
}
