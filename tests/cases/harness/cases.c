/* cases: runs the specimens of tests/cases/ and compares the findings with the expectations in
 * each file (format: specimen.h; comparison: judge.h); CASES_PRINT=1 prints them. tables.c checks
 * the tables of specimens, kernels.c the bundled kernels. */
#include "judge.h"
#include "emulated.h"
#include "run.h"
#include "libconsan/options/options.h"
#include "libconsan/event/site.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CS406 has no specimen: a barrier that overflows starts its next generation, which ends in a
 * hang (CS704). CS95x are about calls of the host (tests/unit/cuda/). */
static const char *const no_specimen[] = { "CS406", "CS951", "CS952", "CS953",
	/* of the host API: tests/cuda/order.cu, async.cu */
	"CS1001", "CS1002", "CS1003", "CS1004", "CS1005", "CS1006", "CS1007", "CS1008", "CS1009", "CS1010", "CS1020", "CS1021" };

/* Emulated GPU mode with everything that it can record */
static const char emulated[] = "backend=gpu-emulated gpu-global=1 timeout=1 reads=newest";

/* ... where each launch is checked in full, which is otherwise done only of those that a screen does not
 * find clean */
static const char unscreened[] = "backend=gpu-emulated gpu-global=1 gpu-each=1 timeout=1 reads=newest";

/* Without global memory, GPU mode runs a pre-check that only determines whether there are
 * findings. Counting bank conflicts needs all events, so it disables the pre-check. */
static const char prechecked[] = "backend=gpu-emulated gpu-global=0 timeout=1 jobs=4 reads=newest";
static const char full[] = "backend=gpu-emulated gpu-global=0 timeout=1 jobs=4 bank-conflicts=1 reads=newest";

/* ... and with what the CPU finds in addition */
static const char then_cpu[] = "backend=gpu-emulated timeout=1 reads=newest gpu-then-cpu=1 gpu-then-ctas=0";

/* ---- judging one ---- */

static void print_findings(const struct finding *const *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fprintf(stderr, "    %s severity %u hint:%s", rule_get(f[i]->rule)->code, f[i]->severity,
			hint_name(f[i]->hint_id));
		for (unsigned k = 0; k < f[i]->nsides; k++)
			fprintf(stderr, "  line %u (%s)", site_get(f[i]->side[k].site)->ptx_line,
				f[i]->side[k].what);
		fprintf(stderr, "  %s | %s\n", f[i]->edge, f[i]->hint);
	}
}

static void judge(const struct specimen *s, enum twin twin, const char *schedule,
	enum consan_status status, const struct finding *const *f, size_t n)
{
	struct seen_list seen = seen_of(f, n);
	struct text why = { 0 };
	bool ok;

	text_add(&why, "", 0);
	if (twin == RACY) {
		ok = judge_racy(s, &seen, false, &why);
	} else {
		ok = judge_silent(s, &seen, schedule == emulated) && status == CONSAN_OK;
		text_printf(&why, "the correct twin has findings (options \"%s\", status %d)", schedule, status);
	}
	if (!ok || getenv("CASES_PRINT"))
		print_findings(f, n);
	if (twin == RACY && getenv("CASES_PRINT"))
		fprintf(stderr, "%s: %zu findings, %u groups\n", s->path, n, seen_groups(&seen));
	cr_expect(ok, "%s: %s: %s", s->path, twin == RACY ? "racy" : "fixed", why.at);
	text_free(&why);
	seen_free(&seen);
}

/* The caller closes g. */
static enum consan_status run_twin(const struct specimen *s, enum twin twin, const char *schedule,
	struct run *g)
{
	const char *with = getenv("CASES_WITH") ? getenv("CASES_WITH") : "";
	char options[sizeof s->options + 256];
	struct consan_err e = { 0 };

	/* only the executor chooses which values loads return */
	snprintf(options, sizeof options, "%s %s %s%s", s->options, schedule, with,
		strstr(with, "backend=gpu") ? " reads=newest" : "");
	g->c = consan_open(options, &e);
	cr_assert(g->c, "%s: %s", s->path, e.text);
	return run_specimen(s, twin, g);
}

/* found: NULL, or set to the findings; the caller frees them by found_drop(). */
static void twin_test(const struct specimen *s, enum twin twin, const char *schedule,
	struct found *found)
{
	struct run g = { 0 };
	const struct finding *const *f;
	enum consan_status status = run_twin(s, twin, schedule, &g);
	size_t n = consan_raw_findings(g.c, &f);

	if (found)
		*found = found_of(f, n);
	judge(s, twin, schedule, status, f, n);
	run_close(&g);
}

/* Runs a twin and returns the findings, which the caller frees by found_drop(). */
static struct found found_by(const struct specimen *s, enum twin twin, const char *schedule)
{
	struct run g = { 0 };
	const struct finding *const *f;
	struct found found;
	size_t n;

	run_twin(s, twin, schedule, &g);
	n = consan_raw_findings(g.c, &f);
	found = found_of(f, n);
	run_close(&g);
	return found;
}

/* The pre-check misses no finding. */
static void precheck_test(const struct specimen *s, enum twin twin)
{
	struct found seen = found_by(s, twin, prechecked), all = found_by(s, twin, full);

	for (size_t k = 0; k < all.n; k++)
		cr_expect(found_has(&seen, all.at[k]), "%s: the pre-check misses %s", s->path, all.at[k]);
	cr_expect_eq(seen.n, all.n, "%s: %zu findings with the pre-check, %zu without", s->path, seen.n,
		all.n);
	found_drop(&seen);
	found_drop(&all);
}

/* A launch that a screen finds clean has no finding about global memory. */
static void screen_test(const struct specimen *s, enum twin twin)
{
	struct found seen = found_by(s, twin, emulated), all = found_by(s, twin, unscreened);

	for (size_t k = 0; k < all.n; k++)
		cr_expect(found_has(&seen, all.at[k]), "%s: the screen misses %s", s->path, all.at[k]);
	cr_expect_eq(seen.n, all.n, "%s: %zu findings with the screen, %zu without", s->path, seen.n, all.n);
	found_drop(&seen);
	found_drop(&all);
}

static void judge_seed(const struct specimen *s, const char *program, const struct found *here,
	const struct found *there)
{
	char schedule[32];
	struct found seeded;

	snprintf(schedule, sizeof schedule, "seed=%u", emulated_seed(program));
	seeded = found_by(s, RACY, schedule);
	emulated_judge_seed(program, here, there, &seeded);
	found_drop(&seeded);
}

/* Does the report of GPU mode say that findings by the rule of this one may be missing, or that the kernel
 * was not checked to its end? */
static bool is_announced(const struct coverage *c, size_t n, const char *found)
{
	char code[8];
	bool yes = false;

	snprintf(code, sizeof code, "%.5s", found);
	for (size_t i = 0; i < n; i++) {
		yes |= *c[i].unchecked != 0;
		for (unsigned k = 0; k < HIDDEN_COUNT; k++)
			yes |= (c[i].hidden >> k & 1) && strstr(finding_hides(k)->rules, code);
	}
	return yes;
}

/* What only the cpu backend finds, a replay in GPU mode finds, and the report says that it may be hidden. */
static void then_cpu_test(const struct specimen *s, const char *program, const struct found *here,
	const struct found *emulated_found)
{
	const struct coverage *c;
	const struct finding *const *f;
	struct found there;
	struct run g = { 0 };
	size_t n, ncoverage;

	run_twin(s, RACY, then_cpu, &g);
	n = consan_raw_findings(g.c, &f);
	there = found_of(f, n);
	emulated_judge_replay(program, here, &there);
	ncoverage = consan_raw_coverage(g.c, &c);
	for (size_t i = 0; i < here->n; i++)
		cr_expect(found_has(emulated_found, here->at[i]) || is_announced(c, ncoverage, here->at[i]),
			"%s: no row of hidden.def applies to %s", program, here->at[i]);
	found_drop(&there);
	run_close(&g);
}

static void specimen_test(const char *path)
{
	static const char *const schedules[] = { "", "async=early reads=oldest",
		"seed=3 async=random reads=random" };
	struct found here = { 0 }, there = { 0 };
	char program[128];
	struct specimen s;

	specimen_read(&s, path);
	if (s.twins)
		twin_test(&s, RACY, "", &here);
	for (size_t i = 0; i < ARRAY_SIZE(schedules); i++)
		twin_test(&s, FIXED, schedules[i], NULL);
	if (!getenv("CASES_WITH") && !s.cpu_only) {
		twin_test(&s, FIXED, emulated, NULL);
		if (s.twins)
			there = found_by(&s, RACY, emulated);
		path += sizeof "tests/cases/" - 1;
		snprintf(program, sizeof program, "%.*s", (int)(strlen(path) - sizeof ".ptx" + 1), path);
		emulated_judge(program, NULL, &here, &there);
		if (s.twins && emulated_lacks(program))
			then_cpu_test(&s, program, &here, &there);
		if (emulated_seed(program))
			judge_seed(&s, program, &here, &there);
		if (s.twins)
			precheck_test(&s, RACY);
		precheck_test(&s, FIXED);
		if (s.twins)
			screen_test(&s, RACY);
		screen_test(&s, FIXED);
	}
	found_drop(&here);
	found_drop(&there);
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

	/* CASES=tests/cases/race/cs104*.ptx runs only these specimens,
	 * CASES_WITH="backend=gpu-emulated gpu-global=1" adds options */
	if (glob(getenv("CASES") ? getenv("CASES") : SPECIMENS, 0, NULL, &g))
		return cr_make_param_array(struct case_file, NULL, 0);
	list = cr_malloc(g.gl_pathc * sizeof *list);
	for (n = 0; n < g.gl_pathc; n++)
		snprintf(list[n].path, sizeof list[n].path, "%s", g.gl_pathv[n]);
	globfree(&g);
	return cr_make_param_array(struct case_file, list, n);
}

ParameterizedTest(struct case_file *f, cases, specimen, .timeout = TEST_LIMIT)
{
	specimen_test(f->path);
}

Test(cases, every_rule_has_a_specimen)
{
	bool seen[512] = { 0 };
	glob_t g;

	cr_assert_lt(rule_count(), ARRAY_SIZE(seen));
	cr_assert_eq(glob(SPECIMENS, 0, NULL, &g), 0);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct specimen s;

		specimen_read(&s, g.gl_pathv[i]);
		for (size_t k = 0; k < s.nexpect; k++) {
			unsigned r = rule_by_code(s.expect[k].code);

			cr_expect_neq(r, RULE_NONE, "%s: no rule %s", s.path, s.expect[k].code);
			seen[r] = true;
		}
		free(s.text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_specimen); i++)
		seen[rule_by_code(no_specimen[i])] = true;
	for (unsigned r = 1; r <= rule_count(); r++)
		cr_expect(seen[r], "no specimen for %s", rule_get(r)->code);
	globfree(&g);
}

/* ---- policies ---- */

/* For each knob, a twin of a specimen whose findings it changes, without the options of the
 * specimen. */
static const struct { const char *knob, *path; enum twin twin; } knobs[] = {
	{ "fence_by_writer", "tricky/fence_by_the_issuer_after_the_meeting", FIXED },
	{ "fence_after_read", "quiet/s14_read_then_refill", FIXED },
	{ "fence_after_cp_async", "quiet/s15_cp_async_then_wgmma", FIXED },
	{ "bar_arrive_twice", "quiet/s20_one_warp_primes_a_barrier", FIXED },
	{ "aligned_after_exit", "barrier/cs412_return_before_syncthreads", RACY },
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
	{ "unread_loads", "race/cs102_value_not_used", RACY },
	{ "tcgen05_fence", "tcgen05/no_tcgen05_fence", FIXED },
	{ "tcgen05_pipelining", "tcgen05/cs606_store_then_load_of_one_warp", RACY },
	{ "tcgen05_wait_ld", "tcgen05/registers_used_without_a_wait", FIXED },
	{ "tcgen05_commit_arrived", "tcgen05/cs221_own_commit_not_waited_for", RACY },
	{ "tcgen05_alloc_launched", "tcgen05/cs502_pair_alloc_before_the_peer_started", RACY },
	{ "collectives_order_nothing", "race/cs109_handed_on_by_a_shuffle", RACY },
	{ "tcgen05_fence", "tcgen05/no_tcgen05_fence", FIXED },
	{ "tcgen05_pipelining", "tcgen05/cs606_store_then_load_of_one_warp", RACY },
	{ "tcgen05_wait_ld", "tcgen05/cs602_load_in_flight_at_the_release", RACY },
	{ "triton_codegen", "race/cs103_triton_copies", RACY },
	{ "tmem_window", "tcgen05/cs630_window_of_another_warp", RACY },
	{ "tcgen05_alloc_launched", "tcgen05/cs502_pair_alloc_before_the_peer_started", RACY },
};

static unsigned worst_with(const struct specimen *s, enum twin twin, const char *options)
{
	struct run g = { 0 };
	struct consan_err e = { 0 };
	const struct finding *const *f;
	unsigned sum = 0;
	size_t n;

	g.c = consan_open(options, &e);
	cr_assert(g.c, "%s", e.text);
	run_specimen(s, twin, &g);
	n = consan_raw_findings(g.c, &f);
	for (size_t i = 0; i < n; i++)
		sum += 1u << 8 * f[i]->severity;
	run_close(&g);
	return sum;
}

Test(cases, every_knob_changes_something)
{
	static const struct { const char *id; int other; } all[] = {
#define KNOB(id, deflt, strict, rules, doc) { #id, !deflt },
#include "libconsan/check/policy.def"
#undef KNOB
	};

	for (size_t k = 0; k < ARRAY_SIZE(all); k++) {
		char path[128], word[80];
		struct specimen s;
		size_t i = 0;

		if (!strcmp(all[k].id, "documented_order") || !strcmp(all[k].id, "host_threads"))
			continue; /* of the host API: tests/unit/cuda/order.c */
		while (i < ARRAY_SIZE(knobs) && strcmp(knobs[i].knob, all[k].id))
			i++;
		cr_expect_lt(i, ARRAY_SIZE(knobs), "%s has no row in the table", all[k].id);
		if (i == ARRAY_SIZE(knobs))
			continue;
		snprintf(path, sizeof path, "tests/cases/%s.ptx", knobs[i].path);
		snprintf(word, sizeof word, "knob=%s=%d", all[k].id, all[k].other);
		specimen_read(&s, path);
		cr_expect_neq(worst_with(&s, knobs[i].twin, ""), worst_with(&s, knobs[i].twin, word),
			"%s does not change %s", all[k].id, path);
		free(s.text);
	}
}

/* ---- saved events, checked again ---- */

static bool same_finding(const json_t *again, const struct finding *f)
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
	struct run g = { 0 };
	struct options o;
	struct consan_err e = { 0 };
	json_t *report, *again;
	size_t n, saved_here = 0;
	int status;

	close(mkstemp(saved));
	close(mkstemps(json, 5));
	specimen_read(&s, path);
	snprintf(words, sizeof words, "%s save=%s", s.options, saved);
	g.c = consan_open(words, &e);
	cr_assert(g.c, "%s: %s", path, e.text);
	run_specimen(&s, RACY, &g);

	/* the events of a cluster are in the file when it has ended */
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
	for (size_t i = 0; i < n; i++)
		saved_here += !*f[i]->schedule;
	cr_expect_eq(json_array_size(again), saved_here, "%s: %zu findings, %zu in the replay", path,
		saved_here, json_array_size(again));
	for (size_t i = 0; i < n; i++) {
		bool found = *f[i]->schedule; /* of another schedule, whose events are not saved */

		for (size_t k = 0; k < json_array_size(again); k++)
			found |= same_finding(json_array_get(again, k), f[i]);
		cr_expect(found, "%s: %s is not in the replay", path, rule_get(f[i]->rule)->code);
	}
	json_decref(report);
	run_close(&g);
	unlink(saved);
	unlink(json);
	free(s.text);
}

static void replay_tests(const char *pattern)
{
	glob_t all;

	cr_assert_eq(glob(pattern, 0, NULL, &all), 0);
	for (size_t i = 0; i < all.gl_pathc; i++)
		replay_test(all.gl_pathv[i]);
	globfree(&all);
}

Test(cases, replay_finds_the_same_in_global_memory)
{
	replay_tests("tests/cases/global/cs*.ptx");
}

/* Their events satisfy event/valid.def: of a cluster with others, findings would be missing. */
Test(cases, replay_finds_the_same)
{
	replay_tests("tests/cases/*/cs?0[1-3]*.ptx");
}
