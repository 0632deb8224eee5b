/* rehearsed: see rehearsed.h. */
#include "rehearsed.h"
#include "../libconsan/base.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *kernel, *bug, *what, *why; } table[] = {
#define DIFFERS(kernel, bug, what, why) { "kernels/" kernel, bug, what, why },
#include "rehearsed.def"
#undef DIFFERS
};

#define MOST 256

struct keys { char *at[MOST]; size_t n; };

/* "CS104 108|243,87": the rule, and of each side the line and those it is inlined at;
 * of CS901 the read, as only the cpu backend says where it is used */
static char *key_of(const json_t *finding)
{
	const json_t *sides = json_object_get(finding, "sides");
	struct text t = { 0 };
	const char *rule = json_string_value(json_object_get(finding, "rule"));
	size_t n = strcmp(rule, "CS901") ? json_array_size(sides) : 1;

	text_printf(&t, "%s ", rule);
	for (size_t k = 0; k < n; k++) {
		const json_t *site = json_object_get(json_array_get(sides, k), "site");
		const json_t *places = json_object_get(site, "source");

		for (size_t i = 0; i < json_array_size(places); i++)
			text_printf(&t, "%lld,", (long long)json_integer_value(
				json_object_get(json_array_get(places, i), "line")));
		text_printf(&t, "|");
	}
	return t.at;
}

static int ascending(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct keys keys_of(const json_t *report)
{
	const json_t *findings = json_object_get(report, "findings");
	struct keys k = { 0 };

	for (size_t i = 0; i < json_array_size(findings) && k.n < MOST; i++)
		k.at[k.n++] = key_of(json_array_get(findings, i));
	qsort(k.at, k.n, sizeof *k.at, ascending);
	return k;
}

static bool has(const struct keys *k, const char *key)
{
	return bsearch(&key, k->at, k->n, sizeof *k->at, ascending);
}

/* The rules of what only a has; all of it, one a line, to `whole`. */
static void only(struct text *what, struct text *whole, const struct keys *a, const struct keys *b,
	char sign)
{
	for (size_t i = 0; i < a->n; i++) {
		char code[8];

		if (has(b, a->at[i]))
			continue;
		text_printf(whole, "\n\t%c%s", sign, a->at[i]);
		snprintf(code, sizeof code, "%c%.5s", sign, a->at[i]);
		if (!what->n || !strstr(what->at, code))
			text_printf(what, "%s%s", what->n ? " " : "", code);
	}
}

static bool reports(const struct keys *k, const char *rule)
{
	for (size_t i = 0; i < k->n; i++)
		if (!strncmp(k->at[i], rule, strlen(rule)))
			return true;
	return false;
}

static void drop(struct keys *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->at[i]);
}

bool rehearsed_entry(size_t k, const char **kernel, const char **bug)
{
	if (k >= sizeof table / sizeof *table)
		return false;
	*kernel = table[k].kernel;
	*bug = table[k].bug;
	return true;
}

void rehearsed_judge(const char *kernel, const char *bug, const char *rule, const json_t *cpu,
	const json_t *rehearsed)
{
	struct keys a = keys_of(cpu), b = keys_of(rehearsed);
	struct text what = { 0 }, whole = { 0 };
	const char *foreseen = "";
	char absent[16];

	for (size_t k = 0; k < sizeof table / sizeof *table; k++)
		if (!strcmp(table[k].kernel, kernel) && !strcmp(table[k].bug, bug))
			foreseen = table[k].what;
	text_add(&what, "", 0);
	text_add(&whole, "", 0);
	only(&what, &whole, &a, &b, '-');
	only(&what, &whole, &b, &a, '+');
	cr_expect_str_eq(what.at, foreseen, "%s --bug=%s: the rehearsal differs in \"%s\", "
		"rehearsed.def says \"%s\"%s", kernel, bug, what.at, foreseen, whole.at);
	snprintf(absent, sizeof absent, "-%s", rule);
	cr_expect(reports(&b, rule) || strstr(foreseen, absent), "%s --bug=%s: no %s in the rehearsal",
		kernel, bug, rule);
	drop(&a);
	drop(&b);
	text_free(&what);
	text_free(&whole);
}
