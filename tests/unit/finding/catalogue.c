/* catalogue: every row of the PTX rule catalogue is either named by a rule of
 * rules.def, or kept by the model, or absent with a reason; exactly one of them. */
#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct { char letter; int rows; } groups[] = {
#define CATALOGUE(letter, rows, title) { letter, rows },
#include "libconsan/finding/absent.def"
};

static const struct { const char *row, *text; } others[] = {
#define MODEL(row, how) { #row, how },
#define ABSENT(row, why) { #row, why },
#include "libconsan/finding/absent.def"
};

static bool exists(const char *row)
{
	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		if (row[0] == groups[g].letter && row[1] >= '0' && row[1] <= '9')
			return atoi(row + 1) >= 1 && atoi(row + 1) <= groups[g].rows;
	return false;
}

static bool has_word(const char *words, const char *word)
{
	for (size_t n; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == strlen(word) && !strncmp(words, word, n))
			return true;
	}
	return false;
}

Test(catalogue, every_row_once)
{
	int rows = 0;

	for (size_t g = 0; g < ARRAY_SIZE(groups); g++)
		for (int i = 1; i <= groups[g].rows; i++, rows++) {
			int by_rule = 0, other = 0;
			char row[16];

			snprintf(row, sizeof row, "%c%02d", groups[g].letter, i);
			for (unsigned r = 1; r <= rule_count(); r++)
				by_rule |= has_word(rule_get(r)->ids, row);
			for (size_t k = 0; k < ARRAY_SIZE(others); k++)
				other += !strcmp(others[k].row, row);
			cr_expect_eq(by_rule + other, 1, "%s: %s, and %d times in absent.def", row,
				by_rule ? "named by a rule" : "named by no rule", other);
		}
	cr_expect_eq(rows, 178);
}

Test(catalogue, no_other_rows)
{
	char ids[128], *at, *word;

	for (unsigned r = 1; r <= rule_count(); r++) {
		snprintf(ids, sizeof ids, "%s", rule_get(r)->ids);
		for (at = ids; (word = strsep(&at, " "));)
			cr_expect(!strcmp(word, "-") || exists(word), "%s names %s",
				rule_get(r)->code, word);
	}
	for (size_t k = 0; k < ARRAY_SIZE(others); k++) {
		cr_expect(exists(others[k].row), "%s", others[k].row);
		cr_expect(*others[k].text);
	}
}

/* The twelve policies that the catalogue recommends. */
Test(catalogue, every_knob)
{
	static const char *const ids[] = {
#define KNOB(id, deflt, strict, rules, doc) rules,
#include "libconsan/check/policy.def"
#undef KNOB
#define ABSENT_KNOB(name, rows, why) rows,
#include "libconsan/finding/absent.def"
	};

	for (int k = 1; k <= 12; k++) {
		char word[8];
		int n = 0;

		snprintf(word, sizeof word, "K%d", k);
		for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
			n += has_word(ids[i], word);
		cr_expect_eq(n, 1, "%s is named %d times", word, n);
	}
}
