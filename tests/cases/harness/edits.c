/* edits: the line to edit that a finding names, for all specimens: is it where the twins differ, and
 * is the racy twin clean with the edit? CASES_PRINT=1 prints one line for each specimen. The table
 * below has the least shares; a specimen's own expectations are its `edit` lines (specimen.h). */
#include "run.h"
#include "tests/common/shell.h"
#include "libconsan/event/event.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Per cent of the specimens with an error or a warning */
enum { LEAST_CLEAN = 49, LEAST_NEAR = 78, NEAR = 3 };

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
	static const char *const kinds[] = { "none", "change", "before", "after", "between", "move",
		"move_before" };
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
	struct consan_err e = { 0 };
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

/* ---- CUDA C++: the first mistakes of every pipeline ---- */

#define MISTAKES "tests/cases/cxx/mistakes.cu"

/* Does the line of the file carry "@edit NAME"? */
static bool is_marked(const char *text, json_int_t line, const char *name)
{
	char mark[64];

	snprintf(mark, sizeof mark, "@edit %s\n", name);
	for (; line > 1 && *text; line--)
		text += line_length(text) + 1;
	return !strncmp(text + line_length(text) + 1 - strlen(mark), mark, strlen(mark));
}

/* Has the finding a verified edit on such a line, or one that calls it there? */
static bool edits_mark(const json_t *finding, const char *text, const char *name)
{
	const json_t *edit = json_object_get(finding, "edit"), *at;
	const json_t *places = json_object_get(json_object_get(edit, "site"), "source");
	const char *verified = json_string_value(json_object_get(edit, "verified"));
	size_t i;

	json_array_foreach((json_t *)places, i, at)
		if (is_marked(text, json_integer_value(json_object_get(at, "line")), name))
			return verified && !strcmp(verified, "clean");
	return false;
}

Test(edits, first_mistakes, .timeout = 120)
{
	static const char *const names[] = { "no_barrier", "lax_wait", "producer_parity",
		"consumer_parity", "early_release", "no_proxy_fence", "deadlock" };
	char *text = read_file(MISTAKES);
	char out[] = "/tmp/consan-edit-XXXXXX.json";

	close(mkstemps(out, 5));
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		const json_t *f;
		json_error_t why;
		json_t *report;
		bool found = false;
		size_t k;

		shell("%s/consan-run --verify-fixes=yes --report=%s %s/cases/cxx/mistakes %s 2>&1",
			build_dir(), out, build_dir(), names[i]);
		report = json_load_file(out, 0, &why);
		cr_assert(report, "%s: %s", names[i], why.text);
		json_array_foreach(json_object_get(report, "findings"), k, f)
			found |= edits_mark(f, text, names[i]);
		cr_expect(found, "%s: no verified edit at the marked line\n%s", names[i], output);
		json_decref(report);
	}
	cr_expect_eq(shell("%s/consan-run %s/cases/cxx/mistakes none 2>&1", build_dir(), build_dir()), 0,
		"%s", output);
	unlink(out);
	free(text);
}
