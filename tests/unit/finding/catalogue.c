/* catalogue: every rule of ptx_rules.def is either cited by a rule of rules.def, or kept by
 * the model, or absent with a reason; exactly one of them. Codes that are cited exist. */
#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_word(const char *words, const char *word)
{
	for (size_t n; *words; words += n + (words[n] == ' ')) {
		n = strcspn(words, " ");
		if (n == strlen(word) && !strncmp(words, word, n))
			return true;
	}
	return false;
}

/* Each word of `codes` is a code of the catalogue, or it is "-"; `by` cites them. */
static void expect_known(const char *by, const char *codes)
{
	char list[128], *at = list, *word;

	cr_assert_lt(strlen(codes), sizeof list);
	strcpy(list, codes);
	while ((word = strsep(&at, " ")))
		cr_expect(ptx_rule_by_code(word) || !strcmp(word, "-"), "%s cites %s, which ptx_rules.def does not have", by,
			word);
}

Test(catalogue, every_rule_once)
{
	for (unsigned i = 0; i < ptx_rule_count(); i++) {
		const struct ptx_rule *x = ptx_rule_get(i);
		bool cited = false, other = ptx_rule_status(x) != NULL;

		for (unsigned r = 1; r <= rule_count(); r++)
			cited |= ptx_rule_cited(rule_get(r)->ids, x);
		cr_expect(cited != other, "%s is cited by %s, and %s in absent.def", x->code,
			cited ? "a rule" : "no rule", other ? "is" : "is not");
	}
	cr_expect_eq(ptx_rule_count(), 178);
}

Test(catalogue, rules_in_order)
{
	int number = 0;

	for (unsigned i = 0; i < ptx_rule_count(); i++) {
		const struct ptx_rule *x = ptx_rule_get(i);

		number = i && x->code[0] == x[-1].code[0] ? number + 1 : 1;
		cr_expect_eq(atoi(x->code + 1), number, "%s", x->code);
		cr_expect(*ptx_group_title(x->code[0]), "%s has no group", x->code);
		cr_expect(x->text[strlen(x->text) - 1] == '.', "%s", x->code);
	}
}

Test(catalogue, every_code_is_known)
{
	for (unsigned r = 1; r <= rule_count(); r++)
		if (strcmp(rule_get(r)->ids, "-"))
			expect_known(rule_get(r)->code, rule_get(r)->ids);
#define KNOB(id, deflt, strict, rules, doc) \
	expect_known(#id, rules[0] == 'K' ? strchr(rules, ' ') + 1 : rules);
#include "libconsan/check/policy.def"
#undef KNOB
}

/* The twelve policies that the catalogue recommends. */
Test(catalogue, every_knob)
{
	static const char *const ids[] = {
#define KNOB(id, deflt, strict, rules, doc) rules,
#include "libconsan/check/policy.def"
#undef KNOB
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

/* The rules of which a GPU can hide findings exist. */
Test(catalogue, hidden)
{
	for (unsigned k = 0; k < HIDDEN_COUNT; k++) {
		char list[128], *at = list, *word;

		cr_assert_lt(strlen(finding_hides(k)->rules), sizeof list);
		strcpy(list, finding_hides(k)->rules);
		while ((word = strsep(&at, " ")))
			cr_expect(rule_by_code(word), "hidden.def: %s: no rule %s", finding_hides(k)->name, word);
	}
}
