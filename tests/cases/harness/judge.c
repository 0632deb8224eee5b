/* judge: see judge.h. */
#include "judge.h"
#include "libconsan/finding/finding.h"
#include "libconsan/event/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

static const char *const severities[] = { "note", "warning", "error" };

static struct seen *add(struct seen_list *list, const char *code, const char *severity,
	unsigned hint)
{
	struct seen *f;

	for (size_t i = 0; i < ARRAY_SIZE(severities); i++)
		if (!strcmp(severities[i], severity))
			severity = severities[i];
	vec_push(list, ((struct seen){ .severity = severity, .hint = hint_name(hint),
		.note = severity == severities[SEV_NOTE] }));
	f = &list->at[list->n - 1];
	snprintf(f->code, sizeof f->code, "%s", code);
	return f;
}

static bool has_line(const struct seen *f, unsigned line)
{
	for (unsigned k = 0; k < f->nlines; k++)
		if (f->line[k] == line)
			return true;
	return false;
}

static void add_line(struct seen *f, unsigned line)
{
	if (has_line(f, line))
		return;
	if (f->nlines == SEEN_LINES)
		base_die("%s: more than %d lines", f->code, SEEN_LINES);
	f->line[f->nlines++] = line;
}

struct seen_list seen_of(const struct finding *const *found, size_t n)
{
	struct finding *all = base_alloc((n + 1) * sizeof *all);
	struct seen_list list = { 0 };

	for (size_t i = 0; i < n; i++)
		all[i] = *found[i];
	group_findings(all, n);
	for (size_t i = 0; i < n; i++) {
		const struct finding *f = &all[i];
		struct seen *to = add(&list, rule_get(f->rule)->code, severities[f->severity], f->hint_id);

		to->group = f->group;
		for (unsigned k = 0; k < f->nsides; k++)
			add_line(to, site_get(f->side[k].site)->ptx_line);
		for (unsigned k = 0; k < f->nwaiters; k++)
			add_line(to, site_get(f->waiter[k].who.site)->ptx_line);
	}
	free(all);
	return list;
}

unsigned seen_groups(const struct seen_list *seen)
{
	unsigned last = UINT32_MAX, n = 0;

	for (size_t i = 0; i < seen->n; i++) {
		if (seen->at[i].note || seen->at[i].group == last)
			continue;
		last = seen->at[i].group;
		n++;
	}
	return n;
}

static void add_side(struct seen *f, const json_t *side)
{
	const json_t *line = json_object_get(json_object_get(side, "site"), "ptx_line");

	if (line)
		add_line(f, (unsigned)json_integer_value(line));
}

struct seen_list seen_of_report(const json_t *report)
{
	const json_t *findings = json_object_get(report, "findings"), *one, *part;
	struct seen_list list = { 0 };
	size_t i, k;

	json_array_foreach(findings, i, one) {
		const char *hint = json_string_value(json_object_get(one, "hint_id"));
		struct seen *to = add(&list, json_string_value(json_object_get(one, "rule")),
			json_string_value(json_object_get(one, "severity")), hint ? hint_by_name(hint) : 0);

		to->group = (unsigned)json_integer_value(json_object_get(one, "group"));
		json_array_foreach(json_object_get(one, "sides"), k, part)
			add_side(to, part);
		json_array_foreach(json_object_get(one, "waiters"), k, part)
			add_side(to, json_object_get(part, "who"));
	}
	return list;
}

void seen_free(struct seen_list *seen)
{
	vec_free(seen);
}

void seen_print(struct text *to, const struct seen_list *seen)
{
	const char *between = "";

	for (size_t i = 0; i < seen->n; i++) {
		const struct seen *f = &seen->at[i];

		if (f->note)
			continue;
		text_printf(to, "%s%s", between, f->code);
		for (unsigned k = 0; k < f->nlines; k++)
			text_printf(to, "%c%u", k ? '|' : ' ', f->line[k]);
		between = ", ";
	}
}

/* ---- expectations ---- */

static bool expected(const struct specimen *s, const char *code)
{
	for (size_t i = 0; i < s->nexpect; i++)
		if (!strcmp(s->expect[i].code, code))
			return true;
	return has_word(s->also, strlen(s->also), code);
}

bool seen_matches(const struct seen_list *seen, const struct expectation *e, bool instrumented)
{
	const bool last = instrumented && e->nlines && !strcmp(e->code, "CS901");

	for (size_t i = 0; i < seen->n; i++) {
		bool all = !strcmp(seen->at[i].code, e->code);

		if (!instrumented && *e->severity)
			all &= !strcmp(seen->at[i].severity, e->severity);
		if (!instrumented && *e->hint)
			all &= !strcmp(seen->at[i].hint, e->hint);
		for (unsigned k = last ? e->nlines - 1 : 0; all && k < e->nlines; k++)
			all = has_line(&seen->at[i], e->line[k]);
		if (all)
			return true;
	}
	return false;
}

bool seen_allowed(const struct seen *f, const struct specimen *s)
{
	return f->note || expected(s, f->code);
}

bool judge_racy(const struct specimen *s, const struct seen_list *seen, bool instrumented,
	struct text *why)
{
	bool ok = true;

	for (size_t i = 0; i < s->nexpect; i++) {
		if (seen_matches(seen, &s->expect[i], instrumented))
			continue;
		text_printf(why, "%s%s not reported at its lines", ok ? "" : ", ", s->expect[i].code);
		ok = false;
	}
	for (size_t i = 0; i < seen->n; i++) {
		if (seen_allowed(&seen->at[i], s))
			continue;
		text_printf(why, "%s%s is not expected", ok ? "" : ", ", seen->at[i].code);
		ok = false;
	}
	if (s->groups && !instrumented && seen_groups(seen) != s->groups) {
		text_printf(why, "%s%u groups, not %u", ok ? "" : ", ", seen_groups(seen), s->groups);
		ok = false;
	}
	return ok;
}

bool judge_silent(const struct specimen *s, const struct seen_list *seen, bool instrumented)
{
	for (size_t i = 0; i < seen->n; i++) {
		const struct seen *f = &seen->at[i];

		if (instrumented && !strcmp(f->code, "CS901"))
			continue;
		if (!f->note || expected(s, f->code))
			return false;
	}
	return true;
}
