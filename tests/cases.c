/* cases: the specimens of tests/cases/ and the bundled kernels, each against
 * what is written down beside it. Compares rule codes and lines, never prose.
 *
 * A specimen is one PTX file with one entry. Comments before the code say
 *   // launch: block=32 grid=1 cluster=1 shared=0 launches=1   what is launched (these
 *                                        defaults); launches: how often, on the same memory;
 *                                        programmatic=1: each may begin before the last has ended
 *   // options: strict=1                    consan's options, name=value
 *   // arg: buffer 4096 | u32 7 | tensor f16 dim=64,64 box=64,8 swizzle=0
 *   // expect: CS104 @read @copy            a finding with these lines
 *   // also: CS102                          may be reported, too
 * and comments behind the code mark lines (@read) and say which twin has them
 * (racy, fixed; neither: both have them). A specimen with `expect` is a pair:
 * the racy twin has exactly those rules, the fixed one nothing above a note.
 * A specimen without is correct code that looks wrong: it must be silent, and so
 * must the fixed twins, in other schedules, too.
 *
 * The tables tests/cases/DIR/NAME.def say which specimens answer a scenario of the
 * nearest tool, a public bug, a trap, or a row of the three CTA sets.
 *
 * The bundled kernels, and tests/cases/cxx/ in CUDA C++, say their bugs with
 * --list-bugs and mark the lines: "@bug NAME RULE" behind the code or above it. */
#include "../libconsan/door.h"
#include "../libconsan/options.h"
#include "../libconsan/site.h"
#include "report/proof.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glob.h>
#include <jansson.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASES "tests/cases/*/*.ptx"
#define MAX_LINES 400
#define MAX_EXPECT 8
#define MAX_MARKS 4
#define MAX_ARGS 8
#define MAX_BUGS 400

/* No specimen: a barrier that overflows starts its next generation, and what is
 * seen is a hang (CS704). */
static const char *const no_specimen[] = { "CS406" };

/* ---- text ---- */

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	struct text t = { 0 };
	char part[4096];
	size_t n;

	cr_assert(f, "%s cannot be read", path);
	while ((n = fread(part, 1, sizeof part, f)) > 0)
		text_add(&t, part, n);
	fclose(f);
	return t.at;
}

/* Is `word` a word of s[0..n)? */
static bool has_word(const char *s, size_t n, const char *word)
{
	const size_t len = strlen(word);

	for (size_t i = 0; i + len <= n; i++) {
		if (strncmp(s + i, word, len) || (i && s[i - 1] != ' '))
			continue;
		if (i + len == n || s[i + len] == ' ')
			return true;
	}
	return false;
}

/* ---- a specimen ---- */

enum twin { RACY, FIXED, NTWINS };
static const char *const twin_name[] = { "racy", "fixed" };

struct expectation {
	char code[8];
	unsigned line[MAX_MARKS], nlines;
};

struct specimen {
	const char *path;
	char *text;
	const char *line[MAX_LINES];
	size_t nlines;
	struct expectation expect[MAX_EXPECT];
	size_t nexpect;
	char also[128], options[256];
	unsigned block, grid, cluster, shared, launches, programmatic;
	const char *arg[MAX_ARGS];
	size_t nargs;
	bool twins;
};

static size_t line_length(const char *s)
{
	return strcspn(s, "\n");
}

/* The comment behind the code of a line; NULL: none. */
static const char *trailing(const char *s)
{
	const char *c = strstr(s, "//");

	return c && c < s + line_length(s) && c > s + strspn(s, " \t") ? c + 2 : NULL;
}

static unsigned marked_line(const struct specimen *s, const char *mark)
{
	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (c && has_word(c, line_length(c), mark))
			return (unsigned)i + 1;
	}
	cr_assert_fail("%s: no line is marked %s", s->path, mark);
	return 0;
}

static void read_expectation(struct specimen *s, char *words)
{
	struct expectation *e = &s->expect[s->nexpect++];
	char *save, *word = strtok_r(words, " ", &save);

	cr_assert(s->nexpect <= MAX_EXPECT && word && rule_by_code(word) != RULE_NONE,
		"%s: bad expect", s->path);
	snprintf(e->code, sizeof e->code, "%s", word);
	while ((word = strtok_r(NULL, " ", &save))) {
		cr_assert(e->nlines < MAX_MARKS);
		e->line[e->nlines++] = marked_line(s, word);
	}
}

static unsigned number_of(const char *words, const char *name, unsigned otherwise)
{
	const char *at = strstr(words, name);

	return at ? (unsigned)strtoul(at + strlen(name), NULL, 0) : otherwise;
}

static void read_header(struct specimen *s, const char *line)
{
	char copy[512], *value;

	snprintf(copy, sizeof copy, "%.*s", (int)line_length(line), line);
	value = strchr(copy, ':');
	if (!value)
		return;
	*value++ = 0;
	value += strspn(value, " ");
	if (!strcmp(copy, "// launch")) {
		s->block = number_of(value, "block=", s->block);
		s->grid = number_of(value, "grid=", s->grid);
		s->cluster = number_of(value, "cluster=", s->cluster);
		s->shared = number_of(value, "shared=", s->shared);
		s->launches = number_of(value, "launches=", s->launches);
		s->programmatic = number_of(value, "programmatic=", 0);
	} else if (!strcmp(copy, "// options")) {
		snprintf(s->options, sizeof s->options, "%s", value);
	} else if (!strcmp(copy, "// arg")) {
		cr_assert(s->nargs < MAX_ARGS);
		s->arg[s->nargs++] = strchr(line, ':') + 2;
	} else if (!strcmp(copy, "// expect")) {
		read_expectation(s, value);
	} else if (!strcmp(copy, "// also")) {
		snprintf(s->also, sizeof s->also, "%s", value);
	}
}

static void specimen_read(struct specimen *s, const char *path)
{
	*s = (struct specimen){ .path = path, .text = read_file(path), .block = 32, .grid = 1, .cluster = 1 };
	for (const char *at = s->text; *at; at += line_length(at) + (at[line_length(at)] != 0)) {
		cr_assert(s->nlines < MAX_LINES);
		s->line[s->nlines++] = at;
	}
	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (!strncmp(s->line[i], "// ", 3))
			read_header(s, s->line[i]);
		for (int k = 0; c && k < NTWINS; k++)
			s->twins |= has_word(c, line_length(c), twin_name[k]);
	}
	cr_assert(s->twins == (s->nexpect > 0), "%s: a pair has `expect` and lines that differ",
		path);
}

/* The PTX of one twin: lines of the other one are blank, so numbers stay. */
static char *specimen_twin(const struct specimen *s, enum twin twin)
{
	struct text t = { 0 };

	for (size_t i = 0; i < s->nlines; i++) {
		const char *c = trailing(s->line[i]);

		if (!c || !has_word(c, line_length(c), twin_name[!twin]))
			text_add(&t, s->line[i], line_length(s->line[i]));
		text_add(&t, "\n", 1);
	}
	return t.at;
}

/* ---- running one ---- */

struct stage { /* what a run needs, to be given back after it */
	struct consan *c;
	struct consan_module *module;
	void *buffer[MAX_ARGS];
	size_t nbuffers;
};

static void *new_buffer(struct stage *g, uint64_t bytes)
{
	uint32_t *at = consan_malloc(g->c, bytes, CONSAN_MEM_DEVICE);

	cr_assert(at);
	g->buffer[g->nbuffers++] = at;
	for (uint64_t i = 0; i < bytes / 4; i++)
		at[i] = (uint32_t)i;
	return at;
}

/* tensor f16 dim=64,64 box=64,8 swizzle=0: innermost first, packed */
static void make_tensor(struct stage *g, const char *spec, unsigned char *map)
{
	static const struct { const char *name; unsigned type, bytes; } types[] = {
		{ "f16", 6, 2 }, { "f32", 7, 4 },
	};
	uint64_t dim[2], stride[1];
	uint32_t box[2], step[2] = { 1, 1 };
	unsigned which = !strncmp(spec, "f32", 3);
	struct tensormap_args a = { .type = types[which].type, .rank = 2, .dim = dim,
		.stride = stride, .box = box, .elem_stride = step,
		.swizzle = number_of(spec, "swizzle=", 0) };
	struct err e = { 0 };

	cr_assert_eq(sscanf(strstr(spec, "dim="), "dim=%lu,%lu", &dim[0], &dim[1]), 2);
	cr_assert_eq(sscanf(strstr(spec, "box="), "box=%u,%u", &box[0], &box[1]), 2);
	stride[0] = dim[0] * types[which].bytes;
	a.address = (uint64_t)(uintptr_t)new_buffer(g, stride[0] * dim[1]);
	cr_assert(consan_tensormap(&a, map, &e), "%s", e.text);
}

static void make_arguments(const struct specimen *s, struct stage *g,
	const struct consan_kernel *k, unsigned char *params)
{
	for (size_t i = 0; i < s->nargs; i++) {
		const char *value = strchr(s->arg[i], ' ') + 1;
		uint32_t offset, bytes;

		cr_assert(consan_kernel_param(k, i, &offset, &bytes), "%s: no parameter %zu",
			s->path, i);
		if (!strncmp(s->arg[i], "buffer", 6)) {
			void *at = new_buffer(g, strtoul(value, NULL, 0));

			memcpy(params + offset, &at, sizeof at);
		} else if (!strncmp(s->arg[i], "tensor", 6)) {
			cr_assert_eq(bytes, TENSORMAP_BYTES);
			make_tensor(g, value, params + offset);
		} else {
			const uint64_t n = strtoull(value, NULL, 0);

			memcpy(params + offset, &n, bytes);
		}
	}
}

static enum consan_status specimen_run(const struct specimen *s, enum twin twin,
	struct stage *g)
{
	char *text = specimen_twin(s, twin);
	struct err e = { 0 };
	struct consan_module *m = consan_load_ptx(g->c, s->path, text, strlen(text), &e);
	const struct consan_kernel *k;
	_Alignas(64) unsigned char params[1024] = { 0 };
	enum consan_status status = CONSAN_OK;

	cr_assert(m, "%s:%d: %s", s->path, e.line, e.text);
	g->module = m;
	k = consan_kernel(m, consan_kernel_name(m, 0), &e);
	cr_assert(k, "%s: %s", s->path, e.text);
	make_arguments(s, g, k, params);
	for (unsigned i = 0; !i || (i < s->launches && status == CONSAN_OK); i++)
		status = consan_launch(g->c, &(struct consan_launch){ .kernel = k,
			.grid = { s->grid, 1, 1 }, .block = { s->block, 1, 1 },
			.cluster = { s->cluster, 1, 1 }, .shared_dynamic = s->shared,
			.params = params, .programmatic = s->programmatic && i }, &e);
	cr_assert(status != CONSAN_BAD_LAUNCH && status != CONSAN_UNCHECKED, "%s: %s:%d: %s",
		twin_name[twin], s->path, e.line, e.text);
	free(text);
	return status;
}

/* ---- judging one ---- */

static bool touches(const struct finding *f, unsigned line)
{
	for (unsigned k = 0; k < f->nsides; k++)
		if (site_get(f->side[k].site)->ptx_line == line)
			return true;
	for (unsigned k = 0; k < f->nwaiters; k++)
		if (site_get(f->waiter[k].who.site)->ptx_line == line)
			return true;
	return false;
}

static bool meets(const struct finding *f, const struct expectation *e)
{
	if (strcmp(rule_get(f->rule)->code, e->code))
		return false;
	for (unsigned k = 0; k < e->nlines; k++)
		if (!touches(f, e->line[k]))
			return false;
	return true;
}

static bool foreseen(const struct specimen *s, const char *code)
{
	for (size_t i = 0; i < s->nexpect; i++)
		if (!strcmp(s->expect[i].code, code))
			return true;
	return has_word(s->also, strlen(s->also), code);
}

static void print_findings(const struct finding *const *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "    %s", rule_get(f[i]->rule)->code);
		for (unsigned k = 0; k < f[i]->nsides; k++)
			fprintf(stderr, "  line %u (%s)", site_get(f[i]->side[k].site)->ptx_line,
				f[i]->side[k].what);
		fprintf(stderr, "  %s\n", f[i]->edge);
	}
}

static void judge_racy(const struct specimen *s, const struct finding *const *f, size_t n)
{
	bool ok = true;

	for (size_t i = 0; i < s->nexpect; i++) {
		bool met = false;

		for (size_t k = 0; k < n; k++)
			met |= meets(f[k], &s->expect[i]);
		if (!met)
			fprintf(stderr, "%s: racy: %s not reported at its lines\n", s->path,
				s->expect[i].code);
		ok &= met;
	}
	for (size_t k = 0; k < n; k++) {
		const char *code = rule_get(f[k]->rule)->code;

		if (f[k]->severity == SEV_NOTE || foreseen(s, code))
			continue;
		fprintf(stderr, "%s: racy: %s is not expected\n", s->path, code);
		ok = false;
	}
	if (!ok)
		print_findings(f, n);
	cr_expect(ok, "%s: racy", s->path);
}

static void judge_silent(const struct specimen *s, const struct finding *const *f, size_t n,
	enum consan_status status)
{
	bool ok = status == CONSAN_OK;

	for (size_t k = 0; k < n; k++)
		ok &= f[k]->severity == SEV_NOTE && !foreseen(s, rule_get(f[k]->rule)->code);
	if (!ok)
		print_findings(f, n);
	cr_expect(ok, "%s: the correct twin is not silent (status %d)", s->path, status);
}

static void twin_test(const struct specimen *s, enum twin twin, const char *schedule)
{
	char options[sizeof s->options + 128];
	struct stage g = { 0 };
	struct err e = { 0 };
	const struct finding *const *f;
	enum consan_status status;
	size_t n;

	snprintf(options, sizeof options, "%s %s %s", s->options, schedule,
		getenv("CASES_WITH") ? getenv("CASES_WITH") : "");
	g.c = consan_open(options, &e);
	cr_assert(g.c, "%s: %s", s->path, e.text);
	status = specimen_run(s, twin, &g);
	n = consan_raw_findings(g.c, &f);
	if (twin == RACY)
		judge_racy(s, f, n);
	else
		judge_silent(s, f, n, status);
	for (size_t i = 0; i < g.nbuffers; i++)
		consan_free(g.c, g.buffer[i]);
	consan_unload(g.module);
	consan_close(g.c);
}

static void specimen_test(const char *path)
{
	static const char *const schedules[] = { "", "async=early", "seed=3 async=random" };
	struct specimen s;

	specimen_read(&s, path);
	if (s.twins)
		twin_test(&s, RACY, "");
	for (size_t i = 0; i < ARRAY_SIZE(schedules); i++)
		twin_test(&s, FIXED, schedules[i]);
	free(s.text);
}

struct case_file {
	char path[128];
};

ParameterizedTestParameters(cases, specimen)
{
	struct case_file *list;
	glob_t g;
	size_t n;

	/* CASES=tests/cases/race/cs104*.ptx runs some of them only,
	 * CASES_WITH="backend=rehearse gpu-global=1" adds options */
	if (glob(getenv("CASES") ? getenv("CASES") : CASES, 0, NULL, &g))
		return cr_make_param_array(struct case_file, NULL, 0);
	list = cr_malloc(g.gl_pathc * sizeof *list);
	for (n = 0; n < g.gl_pathc; n++)
		snprintf(list[n].path, sizeof list[n].path, "%s", g.gl_pathv[n]);
	globfree(&g);
	return cr_make_param_array(struct case_file, list, n);
}

ParameterizedTest(struct case_file *f, cases, specimen, .timeout = 60)
{
	specimen_test(f->path);
}

/* A rule without a specimen is a rule that nobody has seen. */
Test(cases, every_rule_has_a_specimen)
{
	bool seen[RULE_COUNT] = { 0 };
	glob_t g;

	cr_assert_eq(glob(CASES, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct specimen s;

		specimen_read(&s, g.gl_pathv[i]);
		for (size_t k = 0; k < s.nexpect; k++)
			seen[rule_by_code(s.expect[k].code)] = true;
		free(s.text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_specimen); i++)
		seen[rule_by_code(no_specimen[i])] = true;
	for (int r = RULE_NONE + 1; r < RULE_COUNT; r++)
		cr_expect(seen[r], "no specimen for %s", rule_get(r)->code);
	globfree(&g);
}

/* ---- the tables: which specimens answer what ---- */

struct row {
	const char *dir, *name, *rules, *files; /* files: of dir, or DIR/NAME; rules "": silent */
};

static const struct row rows[] = {
#define SCENARIO(line, name, what, there, rules, files) { "triton", name, rules, files },
#define NOT_HERE(line, name, why)
#include "cases/triton/scenarios.def"
#undef SCENARIO
#undef NOT_HERE
#define BUG(where, what, sanitizer, rules, files) { "public", where, rules, files },
#define NOT_HERE(where, why)
#include "cases/public/bugs.def"
#undef BUG
#undef NOT_HERE
#define TRAP(number, what, rules, files) { "traps", number, rules, files },
#define NOT_HERE(number, why)
#include "cases/traps/traps.def"
#undef TRAP
#undef NOT_HERE
#define SET(row, what, rules, files) { "sets", row, rules, files },
#define NOT_HERE(row, why)
#include "cases/sets/sets.def"
#undef SET
#undef NOT_HERE
};

static const char *const table_dirs[] = { "triton", "public", "traps", "sets" };

/* The specimens that a row names; each has one of the row's rules, or is silent. */
static void row_test(const struct row *r, char *named, size_t room)
{
	char files[512], *save, *file;
	bool any = false;

	snprintf(files, sizeof files, "%s", r->files);
	for (file = strtok_r(files, " ", &save); file; file = strtok_r(NULL, " ", &save)) {
		char path[128];
		struct specimen s;
		bool one = false;

		snprintf(path, sizeof path, "tests/cases/%s%s%s.ptx", strchr(file, '/') ? "" : r->dir,
			strchr(file, '/') ? "" : "/", file);
		if (access(path, R_OK)) {
			cr_expect_fail("%s: %s: no file %s", r->dir, r->name, path);
			continue;
		}
		snprintf(named + strlen(named), room - strlen(named), " %s", path);
		specimen_read(&s, path);
		for (size_t i = 0; i < s.nexpect; i++)
			one |= has_word(r->rules, strlen(r->rules), s.expect[i].code);
		cr_expect(one || !s.nexpect, "%s: %s: %s raises no rule of the row", r->dir, r->name, file);
		any |= one;
		free(s.text);
	}
	cr_expect(any || !*r->rules, "%s: %s: no specimen raises %s", r->dir, r->name, r->rules);
}

Test(cases, tables_name_specimens)
{
	static char named[64 * 1024];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		row_test(&rows[i], named, sizeof named);
	for (size_t i = 0; i < ARRAY_SIZE(table_dirs); i++) {
		char pattern[64];
		glob_t g;

		snprintf(pattern, sizeof pattern, "tests/cases/%s/*.ptx", table_dirs[i]);
		cr_assert_eq(glob(pattern, 0, NULL, &g), 0);
		for (size_t k = 0; k < g.gl_pathc; k++)
			cr_expect(has_word(named, strlen(named), g.gl_pathv[k]), "no row names %s",
				g.gl_pathv[k]);
		globfree(&g);
	}
}

/* ---- policies ---- */

/* What each knob changes: this twin of this specimen, without its own options. */
static const struct { const char *knob, *path; enum twin twin; } knobs[] = {
	{ "fence_by_writer", "tricky/fence_by_the_issuer_after_the_meeting", FIXED },
	{ "fence_after_read", "quiet/s14_read_then_refill", FIXED },
	{ "fence_after_cp_async", "quiet/s15_cp_async_then_wgmma", FIXED },
	{ "bar_arrive_twice", "quiet/s20_one_warp_primes_a_barrier", FIXED },
	{ "wait_by_arriver", "quiet/s08_arriver_never_waited", FIXED },
	{ "wgmma_a_by_warpgroup", "quiet/s10_a_rows_of_its_own", FIXED },
	{ "wgmma_registers", "async/cs320_no_fence", RACY },
	{ "uninitialised_tile", "values/tile_padding", FIXED },
	{ "wgmma_does_not_join", "race/cs122_met_at_the_wgmma", RACY },
	{ "scope_as_written", "quiet/s18_no_scope_written", FIXED },
	{ "async_across_ctas", "cluster/cs114_refill_by_the_peer", RACY },
	{ "mbarrier_init_fence", "cluster/cs207_no_init_fence", RACY },
	{ "fence_by_flag_writer", "quiet/fences_before_a_barrier", FIXED },
	{ "init_by_many_lanes", "mbarrier/cs204_init_by_all_lanes", RACY },
	{ "store_by_many_lanes", "global/cs107_store_by_all_lanes", RACY },
	{ "acquire_after_atomic", "global/cs117_last_block", RACY },
	{ "collectives_order_nothing", "race/cs109_handed_on_by_a_shuffle", RACY },
};

static unsigned worst_with(const struct specimen *s, enum twin twin, const char *options)
{
	struct stage g = { 0 };
	struct err e = { 0 };
	const struct finding *const *f;
	unsigned sum = 0;
	size_t n;

	g.c = consan_open(options, &e);
	cr_assert(g.c, "%s", e.text);
	specimen_run(s, twin, &g);
	n = consan_raw_findings(g.c, &f);
	for (size_t i = 0; i < n; i++)
		sum += 1u << 8 * f[i]->severity;
	for (size_t i = 0; i < g.nbuffers; i++)
		consan_free(g.c, g.buffer[i]);
	consan_unload(g.module);
	consan_close(g.c);
	return sum;
}

Test(cases, every_knob_changes_something)
{
	static const char *const all[] = {
#define KNOB(id, deflt, strict, rules, doc) #id,
#include "../libconsan/check/policy.def"
#undef KNOB
	};

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		char path[128], word[80];
		struct specimen s;
		size_t i = 0;

		while (i < ARRAY_SIZE(knobs) && strcmp(knobs[i].knob, all[k]))
			i++;
		cr_expect_lt(i, ARRAY_SIZE(knobs), "%s changes nothing that is known here", all[k]);
		if (i == ARRAY_SIZE(knobs))
			continue;
		snprintf(path, sizeof path, "tests/cases/%s.ptx", knobs[i].path);
		snprintf(word, sizeof word, "knob=%s=1", all[k]);
		specimen_read(&s, path);
		cr_expect_neq(worst_with(&s, knobs[i].twin, ""), worst_with(&s, knobs[i].twin, word),
			"%s does not change %s", all[k], path);
		free(s.text);
	}
}

/* ---- saved events, checked again ---- */

static bool replayed_alike(const json_t *again, const struct finding *f)
{
	for (unsigned k = 0; k < f->nsides; k++) {
		const json_t *side = json_array_get(json_object_get(again, "sides"), k);
		const json_t *site = json_object_get(side, "site"), *block = json_object_get(side, "block");

		if (json_integer_value(json_object_get(site, "ptx_line"))
			!= site_get(f->side[k].site)->ptx_line
			|| json_integer_value(json_array_get(block, 0)) != f->side[k].ctaid[0])
			return false;
	}
	return !strcmp(json_string_value(json_object_get(again, "rule")), rule_get(f->rule)->code)
		&& (uint64_t)json_integer_value(json_object_get(again, "seen")) == f->seen;
}

static void replay_test(const char *path)
{
	char saved[] = "/tmp/consan-cases-ev-XXXXXX", json[] = "/tmp/consan-cases-XXXXXX.json";
	char words[sizeof ((struct specimen *)0)->options + 64];
	const struct finding *const *f;
	struct specimen s;
	struct stage g = { 0 };
	struct options o;
	struct err e = { 0 };
	json_t *report, *again;
	size_t n;
	int status;

	close(mkstemp(saved));
	close(mkstemps(json, 5));
	specimen_read(&s, path);
	snprintf(words, sizeof words, "%s save=%s", s.options, saved);
	g.c = consan_open(words, &e);
	cr_assert(g.c, "%s: %s", path, e.text);
	specimen_run(&s, RACY, &g);

	/* events are in the file when their cluster ends */
	options_init(&o);
	snprintf(words, sizeof words, "log-file=/dev/null report=%s", json);
	cr_assert(options_parse(&o, words, &e));
	cr_assert(options_parse(&o, s.options, &e));
	cr_assert(consan_replay(&o, saved, &status, &e), "%s: %s", path, e.text);
	options_free(&o);
	report = json_load_file(json, 0, NULL);
	cr_assert(report);
	again = json_object_get(report, "findings");
	n = consan_raw_findings(g.c, &f);
	cr_expect_eq(json_array_size(again), n, "%s: %zu findings, %zu in the replay", path, n,
		json_array_size(again));
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		for (size_t k = 0; k < json_array_size(again); k++)
			found |= replayed_alike(json_array_get(again, k), f[i]);
		cr_expect(found, "%s: %s is not in the replay", path, rule_get(f[i]->rule)->code);
	}
	json_decref(report);
	for (size_t i = 0; i < g.nbuffers; i++)
		consan_free(g.c, g.buffer[i]);
	consan_unload(g.module);
	consan_close(g.c);
	unlink(saved);
	unlink(json);
	free(s.text);
}

Test(cases, replay_says_the_same_of_global_memory)
{
	glob_t all;

	cr_assert_eq(glob("tests/cases/global/cs*.ptx", 0, NULL, &all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++)
		replay_test(all.gl_pathv[i]);
	globfree(&all);
}

/* ---- the bundled kernels ---- */

static const char *const kernels[] = { "kernels/hgemm/hgemm", "kernels/ring/ring",
	"kernels/wgmma_gemm/wgmma_gemm", "kernels/attention/fa2_split_q",
	"kernels/attention/fa2_split_kv", "kernels/attention/fa2_shared_kv",
	"kernels/attention/fa2_shared_qkv", "kernels/attention/fa2_tiling_qk",
	"kernels/mlp/fused_mlp",
	"kernels/attention/hopper", "kernels/attention/mesh_kv", "kernels/attention/mesh_mlo",
	"cases/cxx/libcuxx" };

/* Forms of the kernels beyond the default one, which must be silent as well */
static const struct { const char *kernel, *args; } forms[] = {
	{ "kernels/hgemm/hgemm", "--stages=2 --m=136 --n=264 --k=200" },
	{ "kernels/hgemm/hgemm", "--stages=3" },
	{ "kernels/hgemm/hgemm", "--stages=5 --m=264 --band=2" },
	{ "kernels/attention/fa2_split_q", "--stages=2 --n=200" },
	{ "kernels/attention/fa2_split_q", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_split_kv", "--stages=2 --n=200" },
	{ "kernels/attention/fa2_split_kv", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_shared_kv", "--stages=2 --n=200 --smem=padded" },
	{ "kernels/attention/fa2_shared_kv", "--d=128 --n=72 --causal=1" },
	{ "kernels/attention/fa2_shared_qkv", "--stages=2 --n=200 --smem=naive" },
	{ "kernels/attention/fa2_shared_qkv", "--d=128 --n=72 --causal=1" },
	{ "kernels/mlp/fused_mlp", "--m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/mlp/fused_mlp", "--form=independent --m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/mlp/fused_mlp", "--form=epilogue --m=200 --n=264 --k=328 --ctas=1" },
	{ "kernels/attention/fa2_tiling_qk", "--stages=2 --n=72 --d=256" },
	{ "kernels/attention/fa2_tiling_qk", "--stages=4 --n=72 --d=1024 --causal=1" },
	{ "kernels/attention/hopper", "--d=128 --n=200 --causal=1" },
	{ "kernels/attention/hopper", "--cluster=2 --n=300" },
	{ "kernels/attention/hopper", "--cluster=2 --n=600 --causal=1" },
	{ "kernels/attention/hopper", "--cluster=4 --n=520 --d=128" },
	{ "kernels/attention/mesh_kv", "--ranks=8 --n=1000" },
	{ "kernels/attention/mesh_kv", "--rank_axis=1 --causal=1" },
	{ "kernels/attention/mesh_mlo", "--ranks=8 --n=1000" },
	{ "kernels/attention/mesh_mlo", "--rank_axis=1" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1 --m=200 --n=520 --k=200" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1x2 --m=200 --n=520 --ctas=2" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=2x2 --m=264 --n=1032 --ctas=4" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=4x1 --warpgroups=1" },
	{ "kernels/wgmma_gemm/wgmma_gemm", "--cluster=1x4 --warpgroups=1 --fallback=1x2" },
	{ "kernels/fallback/fallback", "" }, { "kernels/fallback/fallback", "--form=counted" },
	{ "kernels/fallback/fallback", "--form=scratch" }, { "kernels/fallback/fallback", "--form=dsmem" },
	{ "kernels/fallback/fallback", "--form=atomic" }, { "kernels/fallback/fallback", "--form=rank" },
	{ "kernels/fallback/fallback", "--form=count" }, { "kernels/fallback/fallback", "--form=mask" },
};

struct planted {
	char kernel[64], bug[64], rule[16], source[128], args[128]; /* bug "": clean */
};

/* This binary is BUILD/tests/cases; the programs are elsewhere in BUILD. */
static char *build_dir(void)
{
	char self[512] = { 0 };

	cr_assert(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
	return base_strdup(dirname(dirname(self)));
}

static size_t list_bugs(const char *kernel, struct planted *to, size_t room)
{
	char *build = build_dir();
	struct text cmd = { 0 };
	size_t n = 0;
	char *line = NULL;
	size_t cap = 0;
	FILE *f;

	text_printf(&cmd, "%s/%s --list-bugs", build, kernel);
	f = popen(cmd.at, "r");
	while (f && getline(&line, &cap, f) > 0 && n < room) {
		char *at = line, *bug = strsep(&at, "\t"), *rule = strsep(&at, "\t");

		snprintf(to[n].source, sizeof to->source, "%s", strsep(&at, "\t"));
		snprintf(to[n].kernel, sizeof to->kernel, "%s", kernel);
		snprintf(to[n].bug, sizeof to->bug, "%s", bug);
		snprintf(to[n].rule, sizeof to->rule, "%s", rule);
		snprintf(to[n++].args, sizeof to->args, "%s", strsep(&at, "\t"));
	}
	if (f)
		pclose(f);
	free(line);
	text_free(&cmd);
	free(build);
	return n;
}

/* Does the place, or a place it is inlined at, stand on line `line` of file? */
static bool site_on(const json_t *site, const char *file, unsigned line)
{
	const json_t *places = json_object_get(site, "source");

	for (size_t i = 0; i < json_array_size(places); i++) {
		const json_t *at = json_array_get(places, i);
		const char *name = json_string_value(json_object_get(at, "file"));
		const size_t n = name ? strlen(name) : 0;

		if (n >= strlen(file) && !strcmp(name + n - strlen(file), file) &&
			json_integer_value(json_object_get(at, "line")) == line)
			return true;
	}
	return false;
}

/* Is it one of the finding's sides, or of those that wait in a hang? */
static bool finding_on(const json_t *finding, const char *file, unsigned line)
{
	const json_t *sides = json_object_get(finding, "sides");
	const json_t *waiters = json_object_get(finding, "waiters");

	for (size_t i = 0; i < json_array_size(sides); i++)
		if (site_on(json_object_get(json_array_get(sides, i), "site"), file, line))
			return true;
	for (size_t i = 0; i < json_array_size(waiters); i++) {
		const json_t *who = json_object_get(json_array_get(waiters, i), "who");

		if (site_on(json_object_get(who, "site"), file, line))
			return true;
	}
	return false;
}

static bool reported(const json_t *report, const char *rule, const char *file, unsigned line)
{
	const json_t *findings = json_object_get(report, "findings");

	for (size_t i = 0; i < json_array_size(findings); i++) {
		const json_t *f = json_array_get(findings, i);

		if (!strcmp(json_string_value(json_object_get(f, "rule")), rule) &&
			finding_on(f, file, line))
			return true;
	}
	return false;
}

/* Every line marked "@bug NAME RULE" is a line of some such finding. */
static void judge_bug(const struct planted *p, const json_t *report)
{
	const char *file = p->source;
	char mark[128];
	char *text;
	unsigned line = 1, marks = 0;
	bool due = false;

	snprintf(mark, sizeof mark, "@bug %s %s", p->bug, p->rule);
	text = read_file(file);
	for (const char *at = text; *at; at += line_length(at) + (at[line_length(at)] != 0), line++) {
		const char *m = strstr(at, mark);

		due |= m && m < at + line_length(at);
		if (!due || !strncmp(at + strspn(at, "\t"), "//", 2))
			continue; /* a line of comment marks the code below it */
		due = false;
		marks++;
		cr_expect(reported(report, p->rule, file, line), "%s --bug=%s: no %s at %s:%u",
			p->kernel, p->bug, p->rule, file, line);
	}
	cr_expect(marks > 0, "%s: no line is marked \"%s\"", file, mark);
	free(text);
}

/* The other reports of the same run: "--report=BASE.html ..." */
static void add_reports(struct text *cmd, const char *base)
{
	static const char *const suffix[] = { "html", "sarif", "xml" };

	for (size_t i = 0; i < ARRAY_SIZE(suffix); i++)
		text_printf(cmd, "--report=%s.%s ", base, suffix[i]);
}

static void judge_reports(const struct planted *p, const char *base)
{
	struct text bad = { 0 };

	proof_reports(&bad, base);
	cr_expect(!bad.n, "%s --bug=%s: %s", p->kernel, p->bug, bad.at);
	text_free(&bad);
}

/* all: every kind of report is written and proved. */
static json_t *run_kernel(const struct planted *p, const char *options, bool all, int *status)
{
	char out[] = "/tmp/consan-case-XXXXXX.json";
	char *base;
	char *build = build_dir();
	struct text cmd = { 0 };
	json_error_t why;
	json_t *report;

	close(mkstemps(out, 5));
	base = base_strndup(out, sizeof out - sizeof ".json");
	text_printf(&cmd, "%s/consan-run --quiet --log-file=/dev/null --report=%s ", build, out);
	if (all)
		add_reports(&cmd, base);
	text_printf(&cmd, "%s -- %s/%s %s %s%s >/dev/null 2>&1", options, build, p->kernel,
		p->args, *p->bug ? "--bug=" : "", p->bug);
	*status = WEXITSTATUS(system(cmd.at));
	report = json_load_file(out, 0, &why);
	cr_assert(report, "%s: no report: %s", cmd.at, why.text);
	if (all)
		judge_reports(p, base);
	unlink(out);
	free(base);
	text_free(&cmd);
	free(build);
	return report;
}

ParameterizedTestParameters(kernels, bug)
{
	struct planted *list = cr_malloc(MAX_BUGS * sizeof *list);
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list + n, MAX_BUGS - n);
	return cr_make_param_array(struct planted, list, n);
}

ParameterizedTest(struct planted *p, kernels, bug, .timeout = 60)
{
	int status;
	json_t *report = run_kernel(p, "", true, &status);

	judge_bug(p, report);
	json_decref(report);
}

/* The clean program passes its own check, and there is nothing to say. */
ParameterizedTestParameters(kernels, clean)
{
	const size_t n = ARRAY_SIZE(kernels) + ARRAY_SIZE(forms);
	struct planted *list = cr_calloc(n, sizeof *list), *at = list;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++, at++)
		snprintf(at->kernel, sizeof at->kernel, "%s", kernels[i]);
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++, at++) {
		snprintf(at->kernel, sizeof at->kernel, "%s", forms[i].kernel);
		snprintf(at->args, sizeof at->args, "%s", forms[i].args);
	}
	return cr_make_param_array(struct planted, list, n);
}

ParameterizedTest(struct planted *p, kernels, clean, .timeout = 180)
{
	/* no multicast pipeline there is meets K6, see policy.def; nor do cooperative
	 * groups and libcu++ A12 */
	const char *const options[] = { "", strncmp(p->kernel, "cases/cxx/", 10)
		? "--strict --knob=async_across_ctas=0"
		: "--strict --knob=async_across_ctas=0 --knob=collectives_order_nothing=0",
		"--async=early", "--seed=7" };

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int status;
		json_t *report = run_kernel(p, options[i], false, &status);
		const json_t *sum = json_object_get(report, "summary");

		cr_expect_eq(status, 0, "%s %s %s: status %d", p->kernel, p->args, options[i], status);
		cr_expect_eq(json_integer_value(json_object_get(sum, "errors")), 0, "%s %s",
			p->kernel, options[i]);
		cr_expect_eq(json_integer_value(json_object_get(sum, "warnings")), 0, "%s %s",
			p->kernel, options[i]);
		json_decref(report);
	}
}

/* What --bank-conflicts counts of an opcode, over all places */
static uint64_t conflicts(const json_t *report, const char *opcode, uint64_t *accesses)
{
	const json_t *banks = json_object_get(report, "bank_conflicts");
	uint64_t n = 0;

	*accesses = 0;
	for (size_t i = 0; i < json_array_size(banks); i++) {
		const json_t *u = json_array_get(banks, i);
		const char *ptx = json_string_value(json_object_get(json_object_get(u, "site"), "ptx"));

		if (!strstr(ptx, opcode))
			continue;
		*accesses += (uint64_t)json_integer_value(json_object_get(u, "accesses"));
		n += (uint64_t)json_integer_value(json_object_get(u, "wavefronts"));
		n -= (uint64_t)json_integer_value(json_object_get(u, "least"));
	}
	return n;
}

/* Swizzled and padded tiles have no conflicts, naive ones have 8 rows to a bank:
 * 8 wavefronts for each of ldmatrix's 4 matrices. */
Test(kernels, bank_conflicts, .timeout = 60)
{
	static const struct { const char *kernel, *args; uint64_t each; } run[] = {
		{ "kernels/attention/fa2_split_q", "--smem=swizzled", 0 },
		{ "kernels/attention/fa2_split_q", "--smem=padded --stages=2", 0 },
		{ "kernels/attention/fa2_split_q", "--smem=naive", 28 },
		{ "kernels/attention/fa2_split_kv", "--d=128", 0 },
		{ "kernels/attention/fa2_shared_kv", "", 0 },
		{ "kernels/attention/fa2_shared_qkv", "", 0 },
		{ "kernels/attention/fa2_shared_qkv", "--smem=naive", 28 },
		{ "kernels/attention/fa2_tiling_qk", "", 0 },
		{ "kernels/attention/fa2_tiling_qk", "--d=256", 0 },
		{ "kernels/hgemm/hgemm", "", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(run); i++) {
		struct planted p = { 0 };
		uint64_t accesses, n;
		json_t *report;
		int status;

		snprintf(p.kernel, sizeof p.kernel, "%s", run[i].kernel);
		snprintf(p.args, sizeof p.args, "%s", run[i].args);
		report = run_kernel(&p, "--bank-conflicts", false, &status);
		n = conflicts(report, "ldmatrix", &accesses);
		cr_expect(accesses > 0, "%s %s", p.kernel, p.args);
		cr_expect_eq(n, accesses * run[i].each, "%s %s: %lu conflicts of %lu ldmatrix",
			p.kernel, p.args, (unsigned long)n, (unsigned long)accesses);
		json_decref(report);
	}
}

/* All bugs there are must be listed: at least 24, as the project promises. */
Test(kernels, enough_bugs)
{
	static struct planted list[MAX_BUGS];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(kernels); i++)
		n += list_bugs(kernels[i], list, MAX_BUGS);
	cr_expect(n >= 24, "%zu planted bugs", n);
}
