/* edits: the line to edit that a finding names, for all specimens: is it where the twins differ, and
 * is the racy twin clean with the edit? CASES_PRINT=1 prints one line for each specimen. The table
 * below has the least shares; a specimen's own expectations are its `edit` lines (specimen.h). */
#include "run.h"
#include "tests/common/limits.h"
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

Test(cases, edits, .timeout = TEST_LIMIT)
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

static const struct mistake { const char *program, *name, *rule, *options; } mistakes[] = {
	{ "mistakes", "no_barrier", "CS102", "" },
	{ "mistakes", "lax_wait", "CS301", "" },
	{ "mistakes", "producer_parity", "CS701", "" },
	{ "mistakes", "consumer_parity", "CS701", "" },
	{ "mistakes", "early_release", "CS106", "" },
	{ "mistakes", "no_proxy_fence", "CS110", "" },
	{ "mistakes", "deadlock", "CS701", "" },
	{ "mistakes_blackwell", "no_wait_ld", "CS602", "" },
	{ "mistakes_blackwell", "no_fence_after", "CS607", "--knob=tcgen05_fence=1" },
	{ "mistakes_blackwell", "commit_to_full", "CS701", "" },
	{ "mistakes_blackwell", "bad_shape", "CS633", "" },
	{ "mistakes_blackwell", "no_dealloc", "CS622", "" },
	{ "mistakes_blackwell", "no_proxy_fence", "CS110", "" },
	{ "mistakes_blackwell", "epilogue_parity", "CS602", "" },
	{ "mistakes_blackwell", "producer_parity", "CS701", "" },
	{ "mistakes_blackwell", "plain_release", "CS609", "" },
	{ "mistakes_blackwell", "no_sums_wait", "CS602", "" },
	{ "mistakes_blackwell", "lax_store", "CS105", "" },
	{ "mistakes_blackwell", "one_lane_arrives", "CS701", "" },
	{ "mistakes_blackwell", "no_full_wait", "CS610", "" },
	{ "mistakes_blackwell", "few_bytes", "CS211", "" },
	{ "mistakes_blackwell", "late_commit", "CS604", "" },
};

/* Is the name among those after "@edit" on the line of the file? */
static bool is_marked(const char *text, json_int_t line, const char *name)
{
	char mark[64], here[256];
	const char *at;

	for (; line > 1 && *text; line--)
		text += line_length(text) + 1;
	snprintf(mark, sizeof mark, " %s ", name);
	snprintf(here, sizeof here, "%.*s ", (int)line_length(text), text);
	at = strstr(here, "@edit ");
	return at && strstr(at, mark);
}

/* Has the finding an edit on such a line, or one that calls it there? It is verified, unless
 * nothing but a person can say what to write. */
static bool edits_mark(const json_t *finding, const char *text, const char *name)
{
	const json_t *edit = json_object_get(finding, "edit"), *at;
	const json_t *places = json_object_get(json_object_get(edit, "site"), "source");
	const char *verified = json_string_value(json_object_get(edit, "verified"));
	size_t i;

	json_array_foreach((json_t *)places, i, at)
		if (is_marked(text, json_integer_value(json_object_get(at, "line")), name))
			return !json_object_get(edit, "ptx") || (verified && !strcmp(verified, "clean"));
	return false;
}

static void try_mistake(const struct mistake *m, const char *text, const char *out)
{
	const json_t *f;
	json_error_t why;
	json_t *report;
	bool found = false;
	size_t k;

	shell("%s/consan-run --verify-fixes=yes %s --report=%s %s/cases/cxx/%s %s 2>&1", build_dir(),
		m->options, out, build_dir(), m->program, m->name);
	report = json_load_file(out, 0, &why);
	cr_assert(report, "%s: %s", m->name, why.text);
	json_array_foreach(json_object_get(report, "findings"), k, f) {
		found |= edits_mark(f, text, m->name);
		cr_expect(k || !strcmp(json_string_value(json_object_get(f, "rule")), m->rule),
			"%s %s: headed by %s\n%s", m->program, m->name,
			json_string_value(json_object_get(f, "rule")), output);
	}
	cr_expect(found, "%s %s: no edit at the marked line\n%s", m->program, m->name, output);
	json_decref(report);
}

Test(edits, first_mistakes, .timeout = TEST_LIMIT)
{
	char out[] = "/tmp/consan-edit-XXXXXX.json", path[64];

	close(mkstemps(out, 5));
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		const struct mistake *m = &mistakes[i];
		char *text;

		snprintf(path, sizeof path, "tests/cases/cxx/%s.cu", m->program);
		text = read_file(path);
		try_mistake(m, text, out);
		cr_expect_eq(shell("%s/consan-run %s %s/cases/cxx/%s none 2>&1", build_dir(), m->options,
			build_dir(), m->program), 0, "%s", output);
		free(text);
	}
	unlink(out);
}
