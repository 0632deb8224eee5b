/* group: which findings have one cause, and which of them is the headline. */
#include "libconsan/finding/group.h"
#include "libconsan/finding/hint_codes.h"
#include "libconsan/finding/rule_codes.h"
#include "libconsan/event/site.h"
#include "libconsan/base/base.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

#define MAX 16

static struct finding list[MAX];
static size_t count;

static void clear(void)
{
	count = 0;
}

TestSuite(group, .init = clear);

/* A line of the kernel, or one of a function that is inlined at line `call`. */
static uint32_t at(const char *kernel, unsigned line, unsigned call)
{
	const struct site_loc outer = { "kernel.cu", call, 1, NULL, NULL, 0 };
	const struct site_loc loc = { call ? "function.cuh" : "kernel.cu", line, 1, NULL,
		call ? &outer : NULL, 0 };

	return site_intern(&(struct site){ .kernel = kernel, .module = "kernel.ptx",
		.ptx_line = line * 10 + call, .ptx = "", .loc = &loc });
}

/* A finding about these two lines of the kernel (0: no access), as the next that occurred. */
static struct finding *add(unsigned rule, unsigned later, unsigned earlier)
{
	struct finding *f = &list[count++];

	cr_assert_leq(count, MAX);
	*f = (struct finding){ .rule = rule, .severity = rule_get(rule)->severity,
		.order = 10 * count, .nsides = earlier ? 2 : 1, .kernel = "k" };
	f->side[0].site = later ? at("k", later, 0) : 0;
	f->side[1].site = earlier ? at("k", earlier, 0) : 0;
	f->side[1].warp = 1;
	return f;
}

static struct finding *on_mbarrier(struct finding *f, uint64_t addr)
{
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "mbarrier");
	f->barrier.addr = addr;
	return f;
}

static struct finding *hinted(struct finding *f, unsigned hint)
{
	f->hint_id = (uint16_t)hint;
	return f;
}

/* "CS102 CS103; CS110": the groups, each with its headline first. The same for any order of the
 * findings. */
static void expect_groups(const char *expected)
{
	struct finding turned[MAX];

	for (size_t turn = 0; turn < count; turn++) {
		struct text t = { 0 };

		for (size_t i = 0; i < count; i++)
			turned[i] = list[(i + turn) % count];
		group_findings(turned, count);
		for (size_t i = 0; i < count; i++) {
			const bool first = !turned[i].rank;

			text_printf(&t, "%s%s", !i ? "" : first ? "; " : " ", rule_get(turned[i].rule)->code);
			cr_expect_eq(turned[i].group, i ? turned[i - 1].group + first : 0);
			cr_expect_eq(turned[i].rank, first ? 0 : turned[i - 1].rank + 1);
		}
		cr_expect_str_eq(t.at, expected);
		text_free(&t);
	}
}

/* ---- races ---- */

/* write a; write b; (missing) read a; read b */
Test(group, one_barrier_for_two_arrays)
{
	add(CS102, 20, 10);
	add(CS102, 21, 11);
	expect_groups("CS102 CS102");
}

/* write a; (missing) read a; write b; (missing) read b */
Test(group, two_missing_barriers)
{
	add(CS102, 11, 10);
	add(CS102, 21, 20);
	expect_groups("CS102; CS102");
}

/* In loops, the earlier access comes later in the text. */
Test(group, two_missing_barriers_in_two_loops)
{
	add(CS102, 10, 15);
	add(CS102, 30, 35);
	expect_groups("CS102; CS102");
}

Test(group, a_loop_in_which_all_is_unordered)
{
	add(CS102, 10, 15);
	add(CS102, 11, 15);
	add(CS102, 12, 16);
	expect_groups("CS102 CS102 CS102");
}

/* A barrier orders the lanes of a warp, too, and what they read before it was written. */
Test(group, barrier_before_syncwarp)
{
	add(CS901, 25, 20);
	add(CS103, 20, 10);
	add(CS102, 20, 10);
	expect_groups("CS102 CS901 CS103");
}

Test(group, no_group_across_kernels)
{
	add(CS102, 20, 10);
	snprintf(add(CS102, 20, 10)->kernel, 256, "other");
	expect_groups("CS102; CS102");
}

Test(group, launches_of_one_kernel)
{
	add(CS102, 20, 10);
	add(CS102, 21, 10)->launch = 7;
	expect_groups("CS102 CS102");
}

/* write; (no fence) TMA store; (no barrier) write: the same store, two changes */
Test(group, fence_and_barrier)
{
	add(CS110, 20, 10);
	hinted(add(CS105, 30, 20), HINT_no_barrier_after_wait);
	expect_groups("CS110; CS105");
}

/* A wait that is too lax around a missing barrier is another cause. */
Test(group, lax_wait_and_missing_barrier)
{
	hinted(add(CS301, 50, 10), HINT_group_left_pending);
	add(CS102, 30, 20);
	expect_groups("CS301; CS102");
}

/* The read found what nothing had written: it came too early, not the copy. */
Test(group, read_or_copy_too_early)
{
	add(CS106, 10, 20);
	add(CS301, 20, 10);
	expect_groups("CS106 CS301");
	add(CS901, 20, 0)->order = 5;
	expect_groups("CS301 CS901 CS106");
}

/* ---- mbarriers ---- */

static void add_pipeline(unsigned line, uint64_t addr, unsigned hint)
{
	on_mbarrier(add(CS208, line + 1, line + 1), addr);
	hinted(on_mbarrier(add(CS104, line + 5, line), addr), hint);
	on_mbarrier(add(CS107, line, line), addr);
}

static void add_hang(const uint64_t *addr, unsigned n)
{
	struct finding *f = on_mbarrier(add(CS703, 90, 0), addr[0]);

	f->waiter = base_alloc(n * sizeof *f->waiter);
	f->nwaiters = n;
	for (unsigned i = 0; i < n; i++) {
		snprintf(f->waiter[i].on.kind, sizeof f->waiter[i].on.kind, "mbarrier");
		f->waiter[i].on.addr = addr[i];
	}
}

Test(group, wrong_parity_and_what_follows)
{
	add_pipeline(10, 0, HINT_fresh_parity);
	on_mbarrier(add(CS209, 60, 0), 32);
	add_hang(&(uint64_t){ 0 }, 1);
	add(CS312, 0, 10);
	expect_groups("CS104 CS208 CS107 CS209 CS703 CS312");
}

/* A consequence of two causes does not make them one. */
Test(group, two_pipelines_and_a_hang)
{
	const uint64_t both[] = { 0, 64 };

	add_pipeline(10, 0, HINT_never_waited);
	add_pipeline(30, 64, HINT_never_waited);
	add_hang(both, 2);
	expect_groups("CS104 CS208 CS107 CS703; CS104 CS208 CS107");
}

Test(group, race_and_pipeline)
{
	add_pipeline(10, 0, HINT_never_waited);
	add(CS102, 41, 40);
	expect_groups("CS104 CS208 CS107; CS102");
}

/* The arrival that does not cover all lanes is not the wait with the wrong parity. */
Test(group, parity_and_elected_arrive)
{
	add_pipeline(10, 0, HINT_fresh_parity);
	add(CS106, 10, 15);
	expect_groups("CS104 CS208 CS107 CS106");
	hinted(&list[3], HINT_elected_arrive);
	expect_groups("CS104 CS208 CS107; CS106");
}

/* A hang that no cause comes before */
Test(group, hang_before_the_race)
{
	add_hang(&(uint64_t){ 8 }, 1);
	on_mbarrier(add(CS104, 15, 10), 0);
	expect_groups("CS703; CS104");
}

Test(group, barrier_used_before_it_exists)
{
	on_mbarrier(add(CS207, 20, 10), 0);
	add(CS502, 20, 0)->order = 10;
	hinted(on_mbarrier(add(CS121, 40, 30), 0), HINT_stale_parity);
	add_hang(&(uint64_t){ 8 }, 1);
	expect_groups("CS502 CS207 CS121 CS703");
}

/* The same two lines of a function and of its caller: one function, inlined twice */
Test(group, twins)
{
	struct finding *f = on_mbarrier(add(CS104, 20, 10), 0), *g = on_mbarrier(add(CS104, 20, 10), 8);

	f->side[0].site = at("k", 5, 100);
	f->side[1].site = at("k", 6, 101);
	g->side[0].site = at("k", 5, 200);
	g->side[1].site = at("k", 6, 201);
	expect_groups("CS104 CS104");
	g->side[1].site = at("k", 7, 201);
	expect_groups("CS104; CS104");
}

/* Calls of the host with one call stack are one group, whatever kernels do in these lines. */
Test(group, failed_calls)
{
	add(CS951, 10, 0);
	add(CS952, 10, 0);
	add(CS951, 12, 0);
	add(CS102, 12, 10);
	expect_groups("CS102; CS951 CS952; CS951");
}

/* ---- severities ---- */

Test(group, a_note_is_no_headline_and_no_cause)
{
	on_mbarrier(add(CS209, 60, 0), 8)->severity = SEV_NOTE;
	add_hang(&(uint64_t){ 8 }, 1);
	expect_groups("CS703; CS209");
}

/* The group is as severe as its consequences. */
Test(group, severity_of_a_group)
{
	size_t n = 3;

	hinted(add(CS321, 20, 10), HINT_wgmma_left_pending);
	add(CS326, 30, 10);
	add(CS321, 40, 39);
	group_findings(list, count);
	cr_assert_eq(list[0].rule, CS321);
	cr_expect_eq(group_severity(list, &n), SEV_ERROR);
	cr_expect_eq(n, 2);
	n = 1;
	cr_expect_eq(group_severity(list + 2, &n), SEV_WARNING);
}

Test(group, none)
{
	group_findings(NULL, 0);
}

/* Thousands of findings of one kernel: no time is spent on pairs. */
Test(group, many, .timeout = TEST_LIMIT)
{
	const size_t n = 10000;
	struct finding *f = base_alloc(n * sizeof *f);

	cpu_limit(20);
	for (size_t i = 0; i < n; i++) {
		f[i] = (struct finding){ .rule = i % 3 ? CS102 : CS901, .severity = SEV_ERROR,
			.order = i + 1, .nsides = 2, .kernel = "k" };
		f[i].side[0].site = at("k", (unsigned)i + 4, 0);
		f[i].side[1].site = at("k", (unsigned)(i % 7 ? i : i / 2), 0);
	}
	group_findings(f, n);
	cr_expect_eq(f[0].rank, 0);
	free(f);
}

/* ---- edits ---- */

static void removed_by(struct finding *f, unsigned line, enum finding_verified verified)
{
	f->edit = (struct finding_edit){ .kind = EDIT_BEFORE, .verified = (uint8_t)verified,
		.site = at("k", line, 0), .ptx = "bar.sync 0;" };
}

/* A race and an mbarrier error have no link in the tables; one edit removes both. */
Test(group, one_edit_that_removes_both_is_one_cause)
{
	struct finding *race = add(CS102, 80, 40), *arrival = on_mbarrier(add(CS209, 200, 0), 8);

	group_findings(list, 2);
	cr_expect_neq(list[0].group, list[1].group);
	removed_by(race, 60, VERIFIED_CLEAN);
	removed_by(arrival, 60, VERIFIED_CLEAN);
	group_findings(list, 2);
	cr_expect_eq(list[0].group, list[1].group);
	cr_expect_eq(list[0].rule, CS102);
}

Test(group, an_edit_that_was_not_tried_links_nothing)
{
	removed_by(add(CS102, 80, 40), 60, VERIFIED_NOT_TRIED);
	removed_by(on_mbarrier(add(CS209, 200, 0), 8), 60, VERIFIED_NOT);
	group_findings(list, 2);
	cr_expect_neq(list[0].group, list[1].group);
}
