/* rehearsed: see rehearsed.h. */
#include "rehearsed.h"
#include "../libconsan/base.h"
#include "../libconsan/finding.h"
#include "../libconsan/site.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const struct { const char *program, *what, *why; } table[] = {
#define DIFFERS(program, what, why) { program, what, why },
#include "rehearsed.def"
#undef DIFFERS
};

/* Of CS901 the read alone: only the cpu backend says where it is used. */
static char *key_of(const json_t *finding)
{
	const json_t *sides = json_object_get(finding, "sides");
	const char *rule = json_string_value(json_object_get(finding, "rule"));
	size_t n = json_array_size(sides), first = strcmp(rule, "CS901") || !n ? 0 : n - 1;
	struct text t = { 0 };

	text_printf(&t, "%s ", rule);
	for (size_t k = first; k < n; k++) {
		const json_t *site = json_object_get(json_array_get(sides, k), "site");
		const json_t *places = json_object_get(site, "source");

		for (size_t i = 0; i < json_array_size(places); i++)
			text_printf(&t, "%s%lld", i ? "," : "", (long long)json_integer_value(
				json_object_get(json_array_get(places, i), "line")));
		text_printf(&t, "|");
	}
	return t.at;
}

static int ascending(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

struct found found_of_report(const json_t *report)
{
	const json_t *findings = json_object_get(report, "findings");
	struct found k = { 0 };

	for (size_t i = 0; i < json_array_size(findings) && k.n < ARRAY_SIZE(k.at); i++)
		k.at[k.n++] = key_of(json_array_get(findings, i));
	qsort(k.at, k.n, sizeof *k.at, ascending);
	return k;
}

/* Clusters run side by side: of two that conflict either may come last. */
static struct text lines_of(const struct finding *f)
{
	unsigned n = f->nsides, first = f->rule != CS901 || !n ? 0 : n - 1;
	struct text t = { 0 };
	uint32_t a, b;

	text_printf(&t, "%s ", rule_get(f->rule)->code);
	if (n == 2 && !first) {
		a = site_get(f->side[0].site)->ptx_line;
		b = site_get(f->side[1].site)->ptx_line;
		text_printf(&t, "%u|%u|", a < b ? a : b, a < b ? b : a);
		return t;
	}
	for (unsigned side = first; side < n; side++)
		text_printf(&t, "%u|", site_get(f->side[side].site)->ptx_line);
	return t;
}

struct found found_of(const struct finding *const *f, size_t count)
{
	struct found k = { 0 };

	for (size_t i = 0; i < count && k.n < ARRAY_SIZE(k.at); i++)
		k.at[k.n++] = lines_of(f[i]).at;
	qsort(k.at, k.n, sizeof *k.at, ascending);
	return k;
}

void found_drop(struct found *k)
{
	for (size_t i = 0; i < k->n; i++)
		free(k->at[i]);
}

static bool has(const struct found *k, const char *key)
{
	return bsearch(&key, k->at, k->n, sizeof *k->at, ascending);
}

/* The rules of what only a has, but for reads whose values may not be used; all of it, one a line, to `whole`. */
static void only(struct text *what, struct text *whole, const struct found *a, const struct found *b,
	char sign)
{
	for (size_t i = 0; i < a->n; i++) {
		char code[8];

		if (has(b, a->at[i]) || (sign == '+' && !strncmp(a->at[i], "CS901 ", 6)))
			continue;
		text_printf(whole, "\n\t%c%s", sign, a->at[i]);
		snprintf(code, sizeof code, "%c%.5s", sign, a->at[i]);
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

const char *rehearsed_program(size_t k)
{
	return k < ARRAY_SIZE(table) ? table[k].program : NULL;
}

void rehearsed_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *rehearsed)
{
	struct text what = { 0 }, whole = { 0 };
	const char *foreseen = "";
	char absent[16];

	for (size_t k = 0; k < ARRAY_SIZE(table); k++)
		if (!strcmp(table[k].program, program))
			foreseen = table[k].what;
	text_add(&what, "", 0);
	text_add(&whole, "", 0);
	only(&what, &whole, cpu, rehearsed, '-');
	only(&what, &whole, rehearsed, cpu, '+');
	cr_expect_str_eq(what.at, foreseen, "%s: the rehearsal differs in \"%s\", rehearsed.def "
		"says \"%s\"%s", program, what.at, foreseen, whole.at);
	snprintf(absent, sizeof absent, "-%s", rule ? rule : "");
	cr_expect(!rule || reports(rehearsed, rule) || strstr(foreseen, absent),
		"%s: no %s in the rehearsal", program, rule);
	text_free(&what);
	text_free(&whole);
}
