/* found: see found.h. */
#include "found.h"
#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"
#include "libconsan/event/site.h"
#include "libconsan/finding/rule_codes.h"

#include <stdlib.h>
#include <string.h>

/* Appends "108,243|", the lines of a side or a waiting thread. */
static void add_places(struct text *t, const json_t *who)
{
	const json_t *site = json_object_get(who, "site"), *places = json_object_get(site, "source");

	for (size_t i = 0; i < json_array_size(places); i++)
		text_printf(t, "%s%lld", i ? "," : "", (long long)json_integer_value(
			json_object_get(json_array_get(places, i), "line")));
	if (!json_array_size(places) && site)
		text_printf(t, "ptx %lld", (long long)json_integer_value(json_object_get(site, "ptx_line")));
	text_printf(t, "|");
}

/* For CS901 only the read: only the cpu backend reports where its value is used. */
char *found_key(const json_t *finding)
{
	const json_t *sides = json_object_get(finding, "sides");
	const char *rule = json_string_value(json_object_get(finding, "rule"));
	size_t n = json_array_size(sides), first = strcmp(rule, "CS901") || !n ? 0 : n - 1;
	struct text t = { 0 };

	text_printf(&t, "%s ", rule);
	for (size_t k = first; k < n; k++)
		add_places(&t, json_array_get(sides, k));
	return t.at;
}

bool found_waits(const json_t *finding, const char *key)
{
	const json_t *waiters = json_object_get(finding, "waiters"), *one;
	bool same = false;
	size_t i;

	json_array_foreach(waiters, i, one) {
		struct text t = { 0 };

		text_printf(&t, "%s ", json_string_value(json_object_get(finding, "rule")));
		add_places(&t, json_object_get(one, "who"));
		same |= !strcmp(t.at, key);
		text_free(&t);
	}
	return same;
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
		k.at[k.n++] = found_key(json_array_get(findings, i));
	qsort(k.at, k.n, sizeof *k.at, ascending);
	return k;
}

/* Orders the two lines: clusters run concurrently, so either side may be the later one. */
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

bool found_has(const struct found *k, const char *key)
{
	return bsearch(&key, k->at, k->n, sizeof *k->at, ascending);
}

bool found_same_places(const char *a, const char *b)
{
	size_t first, rest;

	a = strchr(a, ' ') + 1;
	b = strchr(b, ' ') + 1;
	if (!strcmp(a, b))
		return true;
	if (!*a || strlen(a) != strlen(b))
		return false;
	first = strcspn(a, "|") + 1;
	rest = strlen(a) - first;
	return !strncmp(b, a + first, rest) && !strncmp(b + rest, a, first);
}

/* Has `one` a single place, which is also a place of `all`? */
static bool is_place_of(const char *one, const char *all)
{
	const size_t n = strcspn(one, "|") + 1;

	if (!one[n - 1] || one[n])
		return false;
	for (; *all; all += strcspn(all, "|") + 1)
		if (!strncmp(all, one, n))
			return true;
	return false;
}

bool found_same(const char *a, const char *b)
{
	const size_t rule = strcspn(a, " ") + 1;

	if (strncmp(a, b, rule))
		return false;
	if (found_same_places(a, b))
		return true;
	return !strncmp(a, "CS403 ", rule)
		&& (is_place_of(a + rule, b + rule) || is_place_of(b + rule, a + rule));
}
