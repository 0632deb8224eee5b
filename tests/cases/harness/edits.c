/* edits: the line to edit that a finding names, for all specimens: is it where the twins differ, and
 * is the racy twin clean with the edit? CASES_PRINT=1 prints one line for each specimen. The table
 * below has the least shares; a specimen's own expectations are its `edit` lines (specimen.h). */
#include "run.h"
#include "libconsan/event/event.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Per cent of the specimens with an error or a warning */
enum { LEAST_CLEAN = 40, LEAST_NEAR = 54, NEAR = 3 };

static unsigned distance_to_twins(const struct specimen *s, unsigned line)
{
	unsigned least = UINT32_MAX;

	for (unsigned i = 0; i < s->nlines; i++) {
		const unsigned d = i + 1 > line ? i + 1 - line : line - i - 1;

		if (d < least && specimen_differs(s, i))
			least = d;
	}
	return least;
}

struct verdict {
	bool counts, clean, near, part, expected;
	char text[400];
};

/* Is it one of those that the specimen expects? */
static bool is_expected(const struct specimen *s, const struct finding_edit *x)
{
	static const char *const kinds[] = { "none", "change", "before", "after", "between", "move" };
	static const char *const verified[] = { "none", "clean", "part", "not" };

	for (size_t i = 0; i < s->nedits; i++)
		if (!strcmp(s->edit[i].kind, kinds[x->kind])
			&& !strcmp(s->edit[i].verified, verified[x->verified])
			&& site_get(x->site)->ptx_line == s->edit[i].line)
			return true;
	return false;
}

/* The best edit of the racy twin. */
static void judge_edits(const struct specimen *s, struct verdict *v)
{
	char options[sizeof s->options + 64];
	const struct finding *const *f;
	struct run g = { 0 };
	struct err e = { 0 };
	unsigned best = UINT32_MAX;
	size_t n;

	snprintf(options, sizeof options, "%s verify-fixes=yes jobs=1", s->options);
	g.c = consan_open(options, &e);
	cr_assert(g.c, "%s: %s", s->path, e.text);
	run_specimen(s, RACY, &g);
	n = consan_raw_findings(g.c, &f);
	*v = (struct verdict){ 0 };
	for (size_t i = 0; i < n; i++) {
		const struct finding_edit *x = &f[i]->edit;
		unsigned d = x->kind == EDIT_NONE ? UINT32_MAX
			: distance_to_twins(s, site_get(x->site)->ptx_line);

		if (f[i]->severity == SEV_NOTE)
			continue;
		v->counts = true;
		v->expected |= is_expected(s, x);
		v->clean |= x->verified == VERIFIED_CLEAN;
		v->part |= x->verified == VERIFIED_PART;
		v->near |= d <= NEAR;
		if (d <= best) {
			best = d;
			snprintf(v->text, sizeof v->text, "%s %s %s line %u (%+d) %s: %s", rule_get(f[i]->rule)->code,
				hint_name(f[i]->hint_id), edit_name(x->kind), site_get(x->site)->ptx_line,
				d == UINT32_MAX ? -1 : (int)d, x->ptx, edit_verified_name(x->verified));
		}
	}
	run_close(&g);
}

Test(cases, edits, .timeout = 600)
{
	unsigned count = 0, clean = 0, near = 0;
	glob_t g;

	if (glob(getenv("CASES") ? getenv("CASES") : SPECIMENS, 0, NULL, &g))
		return;
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct specimen s;
		struct verdict v;

		specimen_read(&s, g.gl_pathv[i]);
		if (s.twins) {
			judge_edits(&s, &v);
			count += v.counts;
			clean += v.clean;
			near += v.near;
			cr_expect(!s.nedits || v.expected, "%s: no such edit, but %s", s.path, v.text);
			if (v.counts && getenv("CASES_PRINT"))
				fprintf(stderr, "%s %s %s %s\n", v.clean ? "CLEAN" : v.part ? "part" : "-",
					v.near ? "NEAR" : "far", g.gl_pathv[i], v.text);
		}
		free(s.text);
	}
	globfree(&g);
	fprintf(stderr, "edits: %u specimens, %u clean, %u near\n", count, clean, near);
	if (getenv("CASES"))
		return;
	cr_expect_geq(100 * clean, LEAST_CLEAN * count);
	cr_expect_geq(100 * near, LEAST_NEAR * count);
}
