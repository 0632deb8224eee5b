/* Findings do not depend on threads of the host, and the schedule that a finding names shows it
 * again. The kernels are specimens of tests/cases/schedule. */
#include "tests/cases/harness/run.h"
#include "libconsan/event/site.h"
#include "libconsan/finding/rule_codes.h"
#include "libconsan/finding/types.h"
#include "libconsan/session/explore.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MISSING_BARRIER "tests/cases/schedule/cs102_second_grid_barrier_missing.ptx"
#define LOCKS "tests/cases/schedule/cs702_locks_in_two_orders.ptx"
#define LAST_RELEASE "tests/cases/schedule/cs222_lock_released_at_cta_scope_by_the_last.ptx"
#define SEQUENCE_LOCK "tests/cases/reads/cs905_sequence_lock.ptx"
#define CLAIMED "tests/cases/explore/cs101_checked_then_claimed.ptx"
#define CHECKED_LOCK "tests/cases/schedule/cs102_double_checked_lock.ptx"

static struct run run(const char *path, enum twin twin, const char *options)
{
	struct consan_err e = { 0 };
	struct specimen s = { 0 };
	struct run r = { .c = consan_open(options, &e) };

	cr_assert_not_null(r.c, "%s", e.text);
	specimen_read(&s, path);
	run_specimen(&s, twin, &r);
	free(s.text);
	return r;
}

/* Codes, lines, threads, counts and words of all findings. */
static void describe(struct run *r, struct text *t)
{
	const struct finding *const *f;
	const size_t n = consan_raw_findings(r->c, &f);

	for (size_t i = 0; i < n; i++) {
		text_printf(t, "%s %s %llu %u %s|%s\n", rule_get(f[i]->rule)->code, f[i]->schedule,
			(unsigned long long)f[i]->seen, f[i]->clusters, f[i]->edge, f[i]->hint);
		for (unsigned k = 0; k < f[i]->nsides; k++)
			text_printf(t, "  line %u block %u thread %u\n",
				site_get(f[i]->side[k].site)->ptx_line, f[i]->side[k].ctaid[0],
				f[i]->side[k].thread[0]);
	}
}

Test(schedule, a_seed_gives_the_same_findings, .timeout = TEST_LIMIT)
{
	static const char *const path[] = { MISSING_BARRIER, CHECKED_LOCK, LOCKS, SEQUENCE_LOCK };

	for (unsigned p = 0; p < ARRAY_SIZE(path); p++) {
		struct text first = { 0 };

		for (unsigned i = 0; i < 100; i++) {
			struct text t = { 0 };
			char options[64];
			struct run r;

			snprintf(options, sizeof options, "seed=%u jobs=%u reads=random", p, 1u << i % 3);
			r = run(path[p], RACY, options);
			describe(&r, &t);
			if (!i)
				text_add(&first, t.at, t.n);
			cr_assert_str_eq(t.n ? t.at : "", first.n ? first.at : "", "%s", options);
			text_free(&t);
			run_close(&r);
		}
		text_free(&first);
	}
}

/* The default schedule does not show it, --explore does, and the named schedule alone, too. */
static void found_again(const char *path, unsigned rule)
{
	const struct finding *const *f;
	const struct coverage *v;
	struct run r = run(path, RACY, "");
	char options[128];

	cr_assert_eq(consan_raw_findings(r.c, &f), 0);
	run_close(&r);

	r = run(path, RACY, "explore=40");
	cr_assert_gt(consan_raw_findings(r.c, &f), 0);
	cr_assert_eq(f[0]->rule, rule);
	cr_assert(*f[0]->schedule);
	snprintf(options, sizeof options, "schedule=%s", f[0]->schedule);
	cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
	cr_assert_eq(v->explored, 1);
	cr_assert_eq(v->explored_part, 0);
	cr_assert_gt(v->schedules, 2);
	cr_assert_eq(v->schedules + v->seeds, 40);
	run_close(&r);

	for (unsigned i = 0; i < 5; i++) {
		r = run(path, RACY, options);
		cr_assert_gt(consan_raw_findings(r.c, &f), 0, "%s", options);
		cr_assert_eq(f[0]->rule, rule);
		cr_assert_str_eq(f[0]->schedule, options + strlen("schedule="));
		run_close(&r);
	}
	r = run(path, FIXED, options);
	cr_assert_eq(consan_raw_findings(r.c, &f), 0);
	run_close(&r);
}

Test(schedule, checked_then_claimed, .timeout = TEST_LIMIT)
{
	found_again(CLAIMED, CS101);
}

static void found_by_default(const char *path, unsigned rule)
{
	const struct finding *const *f;
	struct run r = run(path, RACY, "");

	cr_assert_gt(consan_raw_findings(r.c, &f), 0);
	cr_assert_eq(f[0]->rule, rule);
	run_close(&r);
}

/* Blocks that poll start before one of them has performed a write. */
Test(schedule, locks_by_default, .timeout = TEST_LIMIT)
{
	found_by_default(LOCKS, CS702);
	found_by_default(CHECKED_LOCK, CS102);
}

/* A launch that takes locks is also tried in the reverse order, the first time. */
Test(schedule, locks_in_reverse_order, .timeout = TEST_LIMIT)
{
	const struct finding *const *f;
	struct run r = run(LAST_RELEASE, RACY, "");

	cr_assert_gt(consan_raw_findings(r.c, &f), 0);
	cr_assert_eq(f[0]->rule, CS222);
	cr_assert_str_eq(f[0]->schedule, "0:reverse");
	run_close(&r);

	r = run(LAST_RELEASE, RACY, "schedule=0:reverse");
	cr_assert_gt(consan_raw_findings(r.c, &f), 0);
	cr_assert_eq(f[0]->rule, CS222);
	run_close(&r);

	r = run(LAST_RELEASE, FIXED, "schedule=0:reverse");
	cr_assert_eq(consan_raw_findings(r.c, &f), 0);
	run_close(&r);
}

/* A finding names the option by which older values were read. */
Test(schedule, older_values, .timeout = TEST_LIMIT)
{
	const struct finding *const *f;
	struct consan_err e = { 0 };
	struct run r = run(SEQUENCE_LOCK, RACY, "explore=40");
	char options[128];

	cr_assert_eq(consan_raw_findings(r.c, &f), 0);
	run_close(&r);
	r = run(SEQUENCE_LOCK, RACY, "explore=40 reads=random");
	cr_assert_gt(consan_raw_findings(r.c, &f), 0);
	cr_assert_eq(f[0]->rule, CS905);
	cr_assert_str_eq(finding_reads(f[0]), "random");
	snprintf(options, sizeof options, "seed=%llu %s%s reads=%s", (unsigned long long)f[0]->seed,
		*f[0]->schedule ? "schedule=" : "", f[0]->schedule, finding_reads(f[0]));
	run_close(&r);
	r = run(SEQUENCE_LOCK, RACY, options);
	cr_assert_gt(consan_raw_findings(r.c, &f), 0, "%s", options);
	cr_assert_eq(f[0]->rule, CS905);
	run_close(&r);
	cr_assert_null(consan_open("reads=oldest backend=gpu-emulated", &e));
	cr_assert_eq(e.code, CONSAN_ERR_OPTION);
}

/* Two schedules are not all. */
Test(schedule, a_bound_that_is_reached_is_reported)
{
	const struct coverage *v;
	struct run r = run(LOCKS, RACY, "explore=4");

	cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
	cr_assert_eq(v->explored, 0);
	cr_assert_eq(v->explored_part, 1);
	cr_assert_eq(v->schedules, 2);
	cr_assert_eq(v->seeds, 2);
	run_close(&r);
}

/* Shards have the schedules of the whole exploration: none is missing, none runs twice. */
static void divide(const char *path)
{
	struct run r = run(path, RACY, "explore=200");
	uint64_t schedules = 0, seeds = 0, whole;
	const struct finding *const *f;
	const struct coverage *v;
	bool found = false;
	char options[64];

	cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
	cr_assert_eq(v->explored, 1);
	whole = v->schedules;
	cr_assert_gt(whole, 2);
	run_close(&r);
	for (unsigned i = 1; i <= 3; i++) {
		snprintf(options, sizeof options, "explore=200 shard=%u/3", i);
		r = run(path, RACY, options);
		cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
		cr_assert_eq(v->skipped, 0);
		cr_assert_eq(v->explored, 0);
		cr_assert_eq(v->explored_shards, 1);
		cr_assert_eq(v->explored_part, 0);
		schedules += v->schedules;
		seeds += v->seeds;
		found |= consan_raw_findings(r.c, &f) > 0;
		run_close(&r);
	}
	cr_assert_eq(schedules, whole);
	cr_assert_eq(schedules + seeds, 200);
	cr_assert(found);
}

Test(schedule, shards_divide_the_schedules, .timeout = TEST_LIMIT)
{
	const struct coverage *v;
	struct run r;

	divide(CLAIMED);
	divide(LOCKS);
	/* more shards than schedules */
	r = run(CLAIMED, RACY, "explore=2 shard=3/3");
	cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
	cr_assert_eq(v->schedules + v->seeds, 0);
	cr_assert_eq(v->explored_shards, 0);
	run_close(&r);
	r = run(CLAIMED, RACY, "explore=2 shard=3/3 shard-by=launches");
	cr_assert_eq(consan_raw_coverage(r.c, &v), 1);
	cr_assert_eq(v->skipped, 1);
	run_close(&r);
}

/* Counts the seeds in memory that the copies of the process share. */
static size_t count_seed(void *user, uint64_t seed, const struct exec_control *control,
	const struct finding *const **found, enum explore_end *end)
{
	(void)control;
	(void)found;
	(void)end;
	((unsigned char *)user)[seed]++;
	return 0;
}

Test(schedule, each_seed_is_of_one_shard)
{
	unsigned char *seen = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct explored out = { 0 };

	cr_assert_neq(seen, MAP_FAILED);
	for (unsigned part = 1; part <= 7; part++) {
		const struct explorer x = { count_seed, seen, NULL, NULL, 100, part, 7 };

		explore_seeds(&x, 50 / 7 + (part <= 50 % 7), &out);
	}
	cr_assert_eq(out.seeds, 50);
	for (unsigned seed = 0; seed < 4096; seed++)
		cr_assert_eq(seen[seed], seed > 100 && seed <= 150, "seed %u: %u", seed, seen[seed]);
	explored_free(&out);
	munmap(seen, 4096);
}

Test(schedule, malformed)
{
	static const char *const bad[] = { "x", "3", "3:1", "3:1@", "3:1@2,", "3:1@2;3@4", "3:reversed",
		"reverse" };
	char options[64];
	struct consan_err e;

	for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
		snprintf(options, sizeof options, "schedule=%s", bad[i]);
		e = (struct consan_err){ 0 };
		cr_assert_null(consan_open(options, &e), "%s", bad[i]);
		cr_assert_eq(e.code, CONSAN_ERR_OPTION);
	}
}
