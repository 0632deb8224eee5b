/* finding: the rule table, and the identity and order of findings. */
#include "types.h"

#include "hint_codes.h"
#include "history.h"

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rule_info rules[] = {
	{ "CS000", SEV_NOTE, "", "", "", "" },
#define RULE(code, sev, ids, title, why, fix) { #code, SEV_##sev, ids, title, why, fix },
#include "rules.def"
#undef RULE
};

unsigned rule_count(void)
{
	return ARRAY_SIZE(rules) - 1;
}

const struct rule_info *rule_get(unsigned rule)
{
	return &rules[rule < ARRAY_SIZE(rules) ? rule : RULE_NONE];
}

unsigned rule_by_code(const char *code)
{
	for (unsigned r = 1; r <= rule_count(); r++)
		if (strcmp(rules[r].code, code) == 0)
			return r;
	return RULE_NONE;
}

static const char *const hints[] = {
	"",
#define ADVICE(id, edit, form, format) #id,
#include "hints.def"
#undef ADVICE
};

const char *hint_name(unsigned hint)
{
	return hints[hint < ARRAY_SIZE(hints) ? hint : 0];
}

unsigned hint_by_name(const char *name)
{
	for (unsigned h = 1; h < ARRAY_SIZE(hints); h++)
		if (strcmp(hints[h], name) == 0)
			return h;
	return 0;
}

const char *finding_fix(const struct finding *f)
{
	static const struct { unsigned hint; const char *fix; } fixes[] = {
#define FIX(hint, fix) { HINT_##hint, fix },
#include "fixes.def"
#undef FIX
	};

	for (size_t i = 0; i < ARRAY_SIZE(fixes); i++)
		if (fixes[i].hint == f->hint_id)
			return fixes[i].fix;
	return rule_get(f->rule)->fix;
}

static int compare_sites(uint32_t a, uint32_t b)
{
	const char *file_a, *file_b;
	uint32_t line_a, line_b;
	int d;

	if (a == b)
		return 0;
	site_where(a, &file_a, &line_a);
	site_where(b, &file_b, &line_b);
	d = strcmp(file_a ? file_a : "", file_b ? file_b : "");
	if (d)
		return d;
	if (line_a != line_b)
		return line_a < line_b ? -1 : 1;
	return a < b ? -1 : 1;
}

int finding_compare(const struct finding *a, const struct finding *b)
{
	int d;

	if (a->severity != b->severity)
		return a->severity > b->severity ? -1 : 1;
	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	d = strcmp(a->kernel, b->kernel);
	for (unsigned i = 0; !d && i < FINDING_SIDES; i++)
		d = compare_sites(a->side[i].site, b->side[i].site);
	return d;
}

/* The order of the sides depends on the schedule, so the pair is compared without it. */
bool finding_same(const struct finding *a, const struct finding *b)
{
	uint32_t a0 = a->side[0].site, a1 = a->side[1].site;
	uint32_t b0 = b->side[0].site, b1 = b->side[1].site;

	if (a->rule != b->rule || strcmp(a->kernel, b->kernel) != 0)
		return false;
	return (a0 == b0 && a1 == b1) || (a0 == b1 && a1 == b0);
}

const struct finding_hides *finding_hides(enum finding_hidden k)
{
	static const struct finding_hides row[] = {
#define HIDDEN(id, rules, why) { #id, rules, why },
#include "hidden.def"
	};

	return &row[k];
}

void finding_free(struct finding *f)
{
	free(f->waiter);
	f->waiter = NULL;
	history_drop(f->history);
	f->history = NULL;
	f->nwaiters = 0;
}

void finding_set_launch(struct finding *f, const struct launch_info *l)
{
	f->launch = l->id;
	f->seed = l->seed;
	f->reads = l->reads;
	if (l->schedule)
		snprintf(f->schedule, sizeof f->schedule, "%s", l->schedule);
	finding_set_kernel(f->kernel, l->kernel ? l->kernel : "");
}

const char *finding_reads(const struct finding *f)
{
	return f->reads == 1 ? "oldest" : f->reads == 2 ? "random" : "";
}

void finding_set_kernel(char to[256], const char *mangled)
{
	size_t n = strlen(mangled);
	uint32_t sum = 0x811c9dc5u;

	if (n < 256) {
		memcpy(to, mangled, n + 1);
		return;
	}
	for (const char *c = mangled; *c; c++)
		sum = (sum ^ (unsigned char)*c) * 0x01000193u;
	snprintf(to, 256, "%.240s~%08x", mangled, sum);
}
