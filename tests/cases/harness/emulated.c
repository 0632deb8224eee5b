/* emulated: see emulated.h. */
#include "emulated.h"
#include "libconsan/base/base.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *program, *what; bool late; unsigned seed; } table[] = {
#define DIFFERS(program, what, why) { program, what, false, 0 },
#define LATE(program, what) { program, what, true, 0 },
#define OTHER(program, what, seed) { program, what, false, seed },
#include "emulated.def"
#undef DIFFERS
};

/* Appends the rules of findings that only a has to `what`, and these findings, one a line, to
 * `whole`. CS901 that only GPU mode has does not count: the values may be unused. */
static void only(struct text *what, struct text *whole, const struct found *a,
	const struct found *b, char sign)
{
	for (size_t i = 0; i < a->n; i++) {
		char code[10];

		if (found_has(b, a->at[i]) || (sign == '+' && !strncmp(a->at[i], "CS901 ", 6)))
			continue;
		text_printf(whole, "\n\t%c%s", sign, a->at[i]);
		snprintf(code, sizeof code, "%c%.*s", sign, (int)strcspn(a->at[i], " "), a->at[i]);
		if (!what->n || !strstr(what->at, code))
			text_printf(what, "%s%s", what->n ? " " : "", code);
	}
}

static bool reports(const struct found *k, const char *rule)
{
	for (size_t i = 0; i < k->n; i++)
		if (!strncmp(k->at[i], rule, strlen(rule)))
			return true;
	return false;
}

bool emulated_is_late(const char *program)
{
	for (size_t k = 0; k < ARRAY_SIZE(table); k++)
		if (table[k].late && !strcmp(table[k].program, program))
			return true;
	return false;
}

unsigned emulated_seed(const char *program)
{
	for (size_t k = 0; k < ARRAY_SIZE(table); k++)
		if (!strcmp(table[k].program, program))
			return table[k].seed;
	return 0;
}

bool emulated_lacks(const char *program)
{
	for (size_t k = 0; k < ARRAY_SIZE(table); k++)
		if (!strcmp(table[k].program, program))
			return strchr(table[k].what, '-') && strncmp(program, "reads/", 6);
	return false;
}

void emulated_judge_replay(const char *program, const struct found *cpu, const struct found *replayed)
{
	for (size_t i = 0; i < cpu->n; i++)
		cr_expect(found_has(replayed, cpu->at[i]), "%s: --gpu-then-cpu does not show %s", program,
			cpu->at[i]);
}

void emulated_judge_seed(const char *program, const struct found *cpu, const struct found *emulated,
	const struct found *seeded)
{
	for (size_t i = 0; i < emulated->n; i++)
		cr_expect(found_has(cpu, emulated->at[i]) || found_has(seeded, emulated->at[i]),
			"%s: the seed of emulated.def does not show %s", program, emulated->at[i]);
	for (size_t i = 0; i < cpu->n; i++)
		cr_expect(found_has(emulated, cpu->at[i]) || !found_has(seeded, cpu->at[i]),
			"%s: with the seed of emulated.def there is still %s", program, cpu->at[i]);
}

const char *emulated_program(size_t k)
{
	return k < ARRAY_SIZE(table) ? table[k].program : NULL;
}

void emulated_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *emulated)
{
	struct text what = { 0 }, whole = { 0 };
	const char *expected = "";
	char absent[16];

	for (size_t k = 0; k < ARRAY_SIZE(table); k++)
		if (!strcmp(table[k].program, program))
			expected = table[k].what;
	text_add(&what, "", 0);
	text_add(&whole, "", 0);
	only(&what, &whole, cpu, emulated, '-');
	only(&what, &whole, emulated, cpu, '+');
	cr_expect_str_eq(what.at, expected, "%s: emulated GPU mode differs in \"%s\", but emulated.def "
		"has \"%s\"%s", program, what.at, expected, whole.at);
	snprintf(absent, sizeof absent, "-%s", rule ? rule : "");
	cr_expect(!rule || reports(emulated, rule) || strstr(expected, absent),
		"%s: no %s in emulated GPU mode", program, rule);
	text_free(&what);
	text_free(&whole);
}
