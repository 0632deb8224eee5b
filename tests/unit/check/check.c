/* Every rule that one CTA can break, each with a sequence that breaks it and a corrected one that
 * must be silent; and correct code that a naive checker would report. Tests expect codes.
 * Longer than 600 lines because it has a pair for every rule. */
#include <criterion/criterion.h>

#include "tests/common/event_dsl.h"
#include "libconsan/finding/rule_codes.h"

#define FULL 0x4000u
#define EMPTY 0x4040u

/* Exactly this rule, and nothing else. */
static void expect_at(unsigned want, enum severity sev_want, int from)
{
	unsigned found[16];
	enum severity sev[16];
	size_t n = finish(found, sev);

	cr_assert(n >= 1, "line %d: %s was not found", from, rule_get(want)->code);
	for (size_t i = 0; i < n; i++)
		cr_expect(found[i] == want, "line %d: found %s, want %s", from, rule_get(found[i])->code,
			rule_get(want)->code);
	cr_expect(sev[0] == sev_want, "line %d: %s has severity %d", from, rule_get(want)->code, sev[0]);
}
#define expect(rule) expect_at(rule, SEV_ERROR, __LINE__)
#define expect_note(rule) expect_at(rule, SEV_NOTE, __LINE__)
#define expect_warning(rule) expect_at(rule, SEV_WARNING, __LINE__)

static void never_at(int from)
{
	unsigned found[16];
	enum severity sev[16];
	size_t n = finish(found, sev);

	for (size_t i = 0; i < n; i++)
		cr_expect(0, "line %d: found %s", from, rule_get(found[i])->code);
}
#define never() never_at(__LINE__)

/* ---- data races ---- */

Test(race, write_write)
{
	begin(2); wr(0, ALL, 0, 4); wr(1, ALL, 0, 4); expect(CS101);
	begin(2); wr(0, ALL, 0, 4); bar_all(); wr(1, ALL, 0, 4); never();
	begin(2); wr(0, ALL, 0, 4); wr(1, ALL, 128, 4); never();
}

Test(race, read_write)
{
	begin(2); wr(0, ALL, 0, 4); rd(1, ALL, 0, 4); expect(CS102);
	begin(2); rd(0, ALL, 0, 4); wr(1, ALL, 0, 4); expect(CS102);
	begin(2); wr(0, ALL, 0, 4); bar_all(); rd(1, ALL, 0, 4); never();
	begin(2); rd(0, ALL, 0, 4); bar_all(); wr(1, ALL, 0, 4); never();
	begin(2); rd(0, ALL, 0, 4); rd(1, ALL, 0, 4); never();
}

Test(race, a_second_barrier_is_needed_in_a_loop)
{
	begin(2);
	for (int i = 0; i < 3; i++) {
		wr(0, ALL, 0, 4);
		bar_all();
		rd(1, ALL, 0, 4);
	}
	expect(CS102);
	begin(2);
	for (int i = 0; i < 3; i++) {
		wr(0, ALL, 0, 4);
		bar_all();
		rd(1, ALL, 0, 4);
		bar_all();
	}
	never();
}

Test(race, bytes_are_exact)
{
	begin(2); wr1(0, L(0), 3, 1); wr1(1, L(0), 4, 1); never();
	begin(2); wr1(0, L(0), 3, 1); wr1(1, L(0), 3, 1); expect(CS101);
	begin(2); wr1(0, L(0), 0, 8); wr1(1, L(0), 7, 1); expect(CS101);
	begin(2); wr1(0, L(0), 0, 16); wr1(1, L(0), 16, 16); never();
}

Test(race, lanes_of_one_warp)
{
	begin(1); wr1(0, L(0), 0, 4); rd1(0, L(1), 0, 4); expect(CS103);
	begin(1); wr1(0, L(0), 0, 4); ws(0, ALL); rd1(0, L(1), 0, 4); never();
	begin(1); wr1(0, L(0), 0, 4); ws(0, L(0) | L(1)); rd1(0, L(1), 0, 4); never();
	begin(1); wr1(0, L(0), 0, 4); ws(0, L(0) | L(1)); rd1(0, L(2), 0, 4); expect(CS103);
	begin(1); wr(0, ALL, 0, 4); rd(0, ALL, 0, 4); never();
	begin(1); wr(0, ALL, 0, 4); rd(0, ALL, 4, 4); expect(CS103);
	begin(1); wr(0, ALL, 0, 4); rd1(0, L(3), 12, 4); never();
	begin(1); wr(0, ALL, 0, 4); rd1(0, L(3), 12, 2); never();
	begin(1); wr(0, ALL, 0, 4); rd1(0, L(3), 8, 8); expect(CS103);
	begin(1); wr(0, ALL, 0, 4); bar_all(); rd(0, ALL, 4, 4); never();
	begin(1); rd1(0, ALL, 0, 4); wr1(0, L(0), 0, 4); expect(CS103);
	begin(1); wr1(0, ALL, 0, 4); expect_note(CS103);
}

Test(race, elected_lane_does_not_publish_its_neighbours)
{
	/* F12, S2: the elected lane's arrive releases its own accesses only */
	begin(2); mb_init(0, 0, EMPTY, 1); bar_all();
	rd(1, ALL, 0, 4); arrive(1, L(0), EMPTY); mb_wait(0, ALL, EMPTY, 0); wr(0, ALL, 0, 4);
	expect(CS102);
	begin(2); mb_init(0, 0, EMPTY, 1); bar_all();
	rd(1, ALL, 0, 4); ws(1, ALL); arrive(1, L(0), EMPTY); mb_wait(0, ALL, EMPTY, 0);
	wr(0, ALL, 0, 4);
	never();
	begin(2); mb_init(0, 0, EMPTY, 1); bar_all();
	rd1(1, L(0), 0, 4); arrive(1, L(0), EMPTY); mb_wait(0, ALL, EMPTY, 0); wr1(0, L(5), 0, 4);
	never();
}

Test(race, strong_accesses)
{
	begin(2); strong(0, ALL, 0, 4, MODE_RMW, SEM_RELAXED);
	strong(1, ALL, 0, 4, MODE_RMW, SEM_RELAXED); never();
	begin(2); strong(0, ALL, 0, 4, MODE_RMW, SEM_RELAXED); rd1(1, L(0), 0, 4); expect(CS102);
	begin(2); strong(0, L(0), 0, 8, MODE_RMW, SEM_RELAXED);
	strong(1, L(0), 0, 4, MODE_RMW, SEM_RELAXED); expect(CS108);
	begin(2); strong(0, L(0), 0, 4, MODE_WRITE, SEM_VOLATILE); rd_flag(1, L(0), 0, 4); never();
	/* 8.9.5: the second atomic has observed the first one; what is ordered after it is ordered
	 * after both */
	begin(3); strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	strong(1, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	bar_arrive(1, 1, 64); bar_enter(2, 1, 64); bar_leave(2, 1); rd1(2, L(0), 0, 4); never();
	begin(3); strong(1, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	bar_arrive(1, 1, 64); bar_enter(2, 1, 64); bar_leave(2, 1); rd1(2, L(0), 0, 4); expect(CS102);
	/* a store has not observed anything */
	begin(3); strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	strong(1, L(0), 0, 4, MODE_WRITE, SEM_RELAXED);
	bar_arrive(1, 1, 64); bar_enter(2, 1, 64); bar_leave(2, 1); rd1(2, L(0), 0, 4); expect(CS102);
	begin(3); strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	strong(1, L(0), 0, 4, MODE_RMW, SEM_RELAXED);
	bar_all(); rd1(2, L(0), 0, 4); never();
	/* the lanes of one instruction have not observed each other, also if they know different things */
	begin(1); pfence(0, L(0)); strong(0, L(0) | L(1), 0, 4, MODE_RMW, SEM_RELAXED);
	pfence(0, ALL); store(0, 0, 1, 0, 16); expect(CS103);
	begin(1); pfence(0, L(1)); strong(0, L(0) | L(1), 0, 4, MODE_RMW, SEM_RELAXED);
	wr1(0, L(0), 0, 4); expect(CS103);
	begin(1); pfence(0, L(1)); strong(0, L(0) | L(1), 0, 4, MODE_RMW, SEM_RELAXED);
	ws(0, ALL); wr1(0, L(0), 0, 4); never();
	/* those of two have */
	begin(1); strong(0, L(1), 0, 4, MODE_RMW, SEM_RELAXED);
	strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED); wr1(0, L(0), 0, 4); never();
}

/* CS123: data, as opposed to flags */
Test(race, volatile_data)
{
#define vwr(w, lanes) strong(w, lanes, 0, 4, MODE_WRITE, SEM_VOLATILE)
#define vrd(w, lanes) strong(w, lanes, 0, 4, MODE_READ, SEM_VOLATILE)
	begin(2); vwr(0, L(0)); vrd(1, L(0)); expect_warning(CS123);
	begin(2); vrd(0, L(0)); vwr(1, L(0)); expect_warning(CS123);
	begin(2); vwr(0, L(0)); vwr(1, L(0)); expect_warning(CS123);
	begin(2); vwr(0, L(0)); bar_all(); vrd(1, L(0)); never();
	/* of one warp */
	begin(1); vwr(0, L(0)); vrd(0, L(1)); expect_warning(CS123);
	begin(1); vwr(0, L(0)); ws(0, ALL); vrd(0, L(1)); never();
	begin(1); vwr(0, L(0)); event(.kind = EV_WARP_COLLECTIVE, W(0), .warp_collective.mask = ALL);
	vrd(0, L(1)); never();
	/* a write that publishes, and an atomic: the unlock of a lock; without a fence it is none */
	begin(2); strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED); fence(1, L(0), SEM_ACQ_REL);
	vwr(1, L(0)); never();
	begin(2); fence(1, L(0), SEM_ACQ_REL); vwr(1, L(0));
	strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED); never();
	begin(2); strong(0, L(0), 0, 4, MODE_RMW, SEM_RELAXED); vwr(1, L(0)); expect_warning(CS123);
	begin(2); vwr(1, L(0)); vrd(0, L(0)); expect_warning(CS123);
	/* the flag that publishes the data was read, without a fence behind it: a volatile read of the
	 * data is no stale one, a write may still come first */
	begin(2); vwr(0, L(0)); fence(0, L(0), SEM_ACQ_REL); strong(0, L(0), 64, 4, MODE_WRITE,
	SEM_RELAXED); strong(1, L(0), 64, 4, MODE_RMW, SEM_RELAXED); vrd(1, L(0)); never();
	begin(2); vwr(0, L(0)); fence(0, L(0), SEM_ACQ_REL); strong(0, L(0), 64, 4, MODE_WRITE,
	SEM_RELAXED); strong(1, L(0), 64, 4, MODE_RMW, SEM_RELAXED); vwr(1, L(0));
	expect_warning(CS123);
	/* a flag handed to and fro */
	begin(2); fence(0, L(0), SEM_ACQ_REL); vwr(0, L(0)); rd_flag(1, L(0), 0, 4);
	fence(1, L(0), SEM_ACQ_REL); vwr(1, L(0)); never();
#undef vwr
#undef vrd
}

Test(race, flags_in_shared_memory)
{
	/* release/acquire */
	begin(2); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELEASE);
	strong(1, L(0), 64, 4, MODE_READ, SEM_ACQUIRE); rd1(1, L(0), 0, 4); never();
	begin(2); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELAXED);
	strong(1, L(0), 64, 4, MODE_READ, SEM_ACQUIRE); rd1(1, L(0), 0, 4); expect(CS102);
	begin(2); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELEASE);
	strong(1, L(0), 64, 4, MODE_READ, SEM_RELAXED); rd1(1, L(0), 0, 4); expect(CS117);
	/* fences around volatile accesses: __threadfence_block() */
	begin(2); wr1(0, L(0), 0, 4); fence(0, L(0), SEM_ACQ_REL);
	strong(0, L(0), 64, 4, MODE_WRITE, SEM_VOLATILE);
	rd_flag(1, L(0), 64, 4); fence(1, L(0), SEM_ACQ_REL);
	rd1(1, L(0), 0, 4); never();
	begin(2); wr1(0, L(0), 0, 4); fence(0, L(0), SEM_ACQ_REL);
	strong(0, L(0), 64, 4, MODE_WRITE, SEM_VOLATILE);
	rd_flag(1, L(0), 64, 4); rd1(1, L(0), 0, 4); expect(CS117);
	/* the fence of one lane releases nothing of another (F12) */
	begin(2); wr1(0, L(1), 0, 4); fence(0, ALL, SEM_ACQ_REL);
	strong(0, L(0), 64, 4, MODE_WRITE, SEM_VOLATILE);
	rd_flag(1, L(0), 64, 4); fence(1, L(0), SEM_ACQ_REL);
	rd1(1, L(0), 0, 4); expect(CS102);
	/* A08: a read-modify-write keeps the chain, a store breaks it */
	begin(3); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELEASE);
	strong(2, L(0), 64, 4, MODE_RMW, SEM_RELAXED); strong(1, L(0), 64, 4, MODE_READ, SEM_ACQUIRE);
	rd1(1, L(0), 0, 4); never();
	begin(3); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELEASE);
	strong(2, L(0), 64, 4, MODE_WRITE, SEM_RELAXED); strong(1, L(0), 64, 4, MODE_READ, SEM_ACQUIRE);
	rd1(1, L(0), 0, 4); expect(CS102);
	/* A09: red never acquires */
	begin(2); wr1(0, L(0), 0, 4); strong(0, L(0), 64, 4, MODE_WRITE, SEM_RELEASE);
	event(.kind = EV_ACCESS, W(1), .lanes = L(0), .access = { .space = SP_SHARED, .mode = MODE_RMW,
		.sem = SEM_ACQ_REL, .scope = SCOPE_CTA, .flags = ACCESS_REDUCTION, .at.base = 64, .bytes = 4 });
	rd1(1, L(0), 0, 4); expect(CS102);
}

/* Atomics that ran at the same time are recorded in the order in which they began: the last one
 * observes the others after its own event. */
Test(race, atomics_that_overlap)
{
#define counts(w, lanes) strong(w, lanes, 64, 4, MODE_RMW, SEM_ACQ_REL)
#define counted(n, sem_) event(.kind = EV_OBSERVED, W(n), .lanes = L(0), .observed = { .space = SP_SHARED, \
	.mode = MODE_RMW, .sem = sem_, .scope = SCOPE_CTA, .at.base = 64, .bytes = 4 })
	begin(2); wr1(0, L(0), 0, 4); counts(1, L(0)); counts(0, L(0)); counted(1, SEM_ACQ_REL);
	rd1(1, L(0), 0, 4); never();
	begin(2); wr1(0, L(0), 0, 4); counts(1, L(0)); counts(0, L(0)); rd1(1, L(0), 0, 4);
	expect(CS102);
	begin(2); wr1(0, L(0), 0, 4); counts(1, L(0)); counts(0, L(0)); counted(1, SEM_RELAXED);
	rd1(1, L(0), 0, 4); expect(CS117);
	begin(2); wr1(0, L(0), 0, 4); counts(1, L(0)); counts(0, L(0)); counted(1, SEM_RELAXED);
	fence(1, L(0), SEM_ACQ_REL); rd1(1, L(0), 0, 4); never();
	/* its other lanes in the same atomic are not ordered by it */
	begin(1); wr1(0, L(1), 0, 4); counts(0, L(0) | L(1)); counted(0, SEM_ACQ_REL);
	rd1(0, L(0), 0, 4); expect(CS103);
#undef counts
#undef counted
}

/* A wait is recorded when it returns, on a GPU perhaps after the next phase was recorded as
 * complete. */
Test(race, wait_recorded_late)
{
#define phase(w, of) wr1(w, L(0), 4 * (of), 4); arrive(w, L(0), EMPTY)
	begin(3); mb_init(2, 0, EMPTY, 1); bar_all(); phase(0, 0);
	mb_wait(1, L(0), EMPTY, 0); rd1(1, L(0), 0, 4); never();
	/* on the phase before the first: parity 1, although phase 0 is over */
	begin(3); mb_init(2, 0, EMPTY, 1); bar_all(); phase(0, 0);
	mb_wait(1, L(0), EMPTY, 1); rd1(1, L(0), 0, 4); expect(CS102);
	/* on phase 0, although phase 1 is over: only what phase 0 released is known */
	begin(3); mb_init(2, 0, EMPTY, 1); bar_all(); phase(0, 0); mb_wait(2, L(0), EMPTY, 0);
	phase(2, 1);
	mb_wait(1, L(0), EMPTY, 0); rd1(1, L(0), 0, 4); never();
	begin(3); mb_init(2, 0, EMPTY, 1); bar_all(); phase(0, 0); mb_wait(2, L(0), EMPTY, 0);
	phase(2, 1);
	mb_wait(1, L(0), EMPTY, 0); rd1(1, L(0), 4, 4); expect(CS102);
#undef phase
}

Test(race, uninitialised)
{
	begin(1); rd(0, ALL, 0x5000, 4); expect_warning(CS901);
	begin(1); wr(0, ALL, 0x5000, 4); rd(0, ALL, 0x5000, 4); never();
}

/* ---- cp.async ---- */

Test(copies, read_too_early)
{
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); rd(0, ALL, 0, 16); cp_wait(0, ALL, 0);
	expect(CS301);
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cp_wait(0, ALL, 0); rd(0, ALL, 0, 16); never();
	/* C02: others need a barrier after the wait */
	begin(2); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cp_wait(0, ALL, 0); rd(1, ALL, 0, 16);
	expect(CS301);
	begin(2); cpa(0, ALL, 0, 16); cp_commit(0, ALL); bar_all(); cp_wait(0, ALL, 0);
	rd(1, ALL, 0, 16); expect(CS301);
	begin(2); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cp_wait(0, ALL, 0); bar_all();
	rd(1, ALL, 0, 16); never();
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cp_wait(0, ALL, 0); rd1(0, L(1), 0, 16);
	expect(CS301);
	begin(1); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); ws(0, ALL); rd1(0, L(1), 0, 16); never();
}

Test(copies, groups)
{
	/* C04: wait_group 1 leaves the newest group pending */
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cpa(0, ALL, 512, 16); cp_commit(0, ALL);
	cp_wait(0, ALL, 1); rd(0, ALL, 512, 16); cp_wait(0, ALL, 0); expect(CS301);
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cpa(0, ALL, 512, 16); cp_commit(0, ALL);
	cp_wait(0, ALL, 1); rd(0, ALL, 0, 16); cp_wait(0, ALL, 0); never();
	/* C05: empty groups count */
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cp_commit(0, ALL); cp_wait(0, ALL, 1);
	rd(0, ALL, 0, 16); never();
	/* uncommitted operations are not waited for */
	begin(1); cpa(0, ALL, 0, 16); cp_wait(0, ALL, 0); rd(0, ALL, 0, 16); cp_wait_all(0, ALL);
	expect(CS301);
	/* a lane whose commit was predicated off counts differently */
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); cpa(0, ALL, 512, 16); cp_commit(0, ~L(3));
	cp_wait(0, ALL, 1);
	rd(0, ~L(3), 0, 16); rd1(0, L(3), 48, 16); cp_wait_all(0, ALL); expect(CS301);
}

Test(copies, overlapping_and_refill)
{
	begin(1); cpa(0, ALL, 0, 16); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); expect(CS107);
	begin(1); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL);
	never();
	begin(2); rd(1, ALL, 0, 16); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); expect(CS106);
	begin(2); rd(1, ALL, 0, 16); bar_all(); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); never();
	begin(1); rd(0, ALL, 0, 16); cpa(0, ALL, 0, 16); cp_wait_all(0, ALL); never();
	/* A13: the copy is not ordered before the issuer's later accesses */
	begin(1); cpa(0, ALL, 0, 16); wr(0, ALL, 0, 16); cp_wait_all(0, ALL); expect(CS301);
}

Test(copies, through_mbarrier)
{
	/* S29: without .noinc, followed by a normal arrive per thread */
	begin(2); mb_init(0, 0, FULL, 32); bar_all();
	cpa(0, ALL, 0, 16); cp_arrive(0, ALL, FULL, 7); arrive(0, ALL, FULL);
	signal_arrive(0, 7, FULL, 32);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); never();
	/* B28: it covers the copies before it only */
	begin(2); mb_init(0, 0, FULL, 32); bar_all();
	cp_arrive(0, ALL, FULL, 7); cpa(0, ALL, 0, 16); arrive(0, ALL, FULL);
	signal_arrive(0, 7, FULL, 32);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); cp_wait_all(0, ALL); expect(CS301);
	begin(2); mb_init(0, 0, FULL, 64); bar_all();
	cpa(0, ALL, 0, 16); cp_arrive_noinc(0, ALL, FULL, 7); arrive(0, ALL, FULL);
	signal_arrive(0, 7, FULL, 32);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); never();
	/* .noinc that init does not count lands in the next phase */
	begin(2); mb_init(0, 0, FULL, 32); bar_all();
	cpa(0, ALL, 0, 16); cp_arrive_noinc(0, ALL, FULL, 7); arrive(0, ALL, FULL);
	signal_arrive(0, 7, FULL, 32);
	cp_wait_all(0, ALL); expect(CS219);
}

/* ---- mbarrier, loads ---- */

/* A full/empty pair and a producer (warp 0, lane 0) as PipelineTmaAsync has. */
static void pipeline(unsigned consumers)
{
	begin(1 + consumers);
	mb_init(0, 0, FULL, 1);
	mb_init(0, 0, EMPTY, consumers);
	bar_all();
}

Test(load, pipeline_is_clean)
{
	pipeline(2);
	for (unsigned k = 0; k < 6; k++) {
		mb_wait(0, L(0), EMPTY, (k & 1) ^ 1); /* S3: the first returns immediately */
		arrive_tx(0, 0, FULL, 1024);
		load(0, 0, k + 1, 0, 1024, FULL);
		signal_tx(0, k + 1, FULL, 1024);
		for (unsigned w = 1; w <= 2; w++) {
			mb_wait(w, ALL, FULL, k & 1);
			rd(w, ALL, 0, 16);
			rd(w, ALL, 512, 16);
			pfence(w, ALL);
			ws(w, ALL);
			arrive(w, L(0), EMPTY);
		}
	}
	end_all();
	never();
}

Test(load, read_too_early)
{
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL); rd(1, ALL, 0, 16);
	signal_tx(0, 1, FULL, 512); expect(CS104);
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	rd(1, ALL, 0, 16); expect(CS104);
	/* B26: a test that returned False acquires nothing */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL); mb_poll(1, ALL, FULL, 0);
	signal_tx(0, 1, FULL, 512); rd(1, ALL, 0, 16); expect(CS104);
	/* a wrong parity returns for phase -1 */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL); mb_wait(1, ALL, FULL, 1);
	rd(1, ALL, 0, 16); signal_tx(0, 1, FULL, 512); expect(CS104);
	/* S1: one warp waits, the other learns through a barrier */
	pipeline(2); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait(1, ALL, FULL, 0); bar_arrive(1, 1, 64); bar_enter(2, 1, 64); bar_leave(2, 1);
	rd(2, ALL, 0, 16); never();
	/* only lane 0 waited */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait(1, L(0), FULL, 0); rd(1, ALL, 0, 16); expect(CS104);
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait(1, L(0), FULL, 0); ws(1, ALL); rd(1, ALL, 0, 16); never();
}

Test(load, refill_too_early)
{
	/* the stage was not released */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); pfence(1, ALL); ws(1, ALL);
	mb_wait(0, L(0), FULL, 0);
	arrive_tx(0, 0, FULL, 512); load(0, 0, 2, 0, 512, FULL); signal_tx(0, 2, FULL, 512);
	expect(CS106);
	/* two loads into the same bytes (C15) */
	pipeline(1); arrive_tx(0, 0, FULL, 1024); load(0, 0, 1, 0, 512, FULL);
	load(0, 0, 2, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); signal_tx(0, 2, FULL, 512); expect(CS107);
	pipeline(1); arrive_tx(0, 0, FULL, 1024); load(0, 0, 1, 0, 512, FULL);
	load(0, 0, 2, 512, 512, FULL);
	signal_tx(0, 1, FULL, 512); signal_tx(0, 2, FULL, 512); never();
}

Test(load, complete_tx_publishes_only_itself)
{
	/* A18, N2: waiting for the bytes does not acquire the issuer's own writes */
	begin(3); mb_init(0, 0, FULL, 1); bar_all();
	wr(0, ALL, 1024, 4);
	load(0, 0, 1, 0, 512, FULL);
	arrive_tx(2, 0, FULL, 512); /* another warp arms it */
	signal_tx(0, 1, FULL, 512); mb_wait(1, ALL, FULL, 0);
	rd(1, ALL, 0, 16); rd(1, ALL, 1024, 4); expect(CS102);
	/* the producer's own arrive does */
	begin(3); mb_init(0, 0, FULL, 1); bar_all();
	wr1(0, L(0), 1024, 4); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); mb_wait(1, ALL, FULL, 0); rd1(1, L(3), 1024, 4); never();
}

Test(load, proxy_fences)
{
	/* A16: zero-fill, then a load */
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); bar_all(); arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect(CS111);
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); pfence(1, ALL); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); never();
	/* the issuing thread's own write is in program order and still needs the fence */
	begin(1); mb_init(0, 0, FULL, 1); wr1(0, L(0), 0, 16); arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); expect(CS111);
	begin(1); mb_init(0, 0, FULL, 1); wr1(0, L(0), 0, 16); pfence(0, L(0));
	arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); never();
	/* A15, S14: after reads only: a note */
	begin(2); mb_init(0, 0, FULL, 1); rd(1, ALL, 0, 16); bar_all(); arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect_note(CS112);
	begin(2); mb_init(0, 0, FULL, 1); rd(1, ALL, 0, 16); pfence(1, ALL); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); never();
	/* A20, K1: a fence by the issuer after the barrier is sufficient, before it is not */
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); bar_all(); pfence(0, L(0));
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); never();
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); pfence(0, L(0)); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect(CS111);
	/* A19: a fence of the wrong space */
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); pfence_in(1, ALL, SP_GLOBAL); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect(CS111);
	begin(2); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); pfence_in(1, ALL, SP_SHARED); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); never();
	/* what comes after the fence is not covered */
	begin(2); mb_init(0, 0, FULL, 1); pfence(1, ALL); wr(1, ALL, 0, 16); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect(CS111);
}

Test(mbar, life)
{
	begin(2); arrive(0, L(0), FULL); expect(CS202);
	begin(2); mb_init(0, 0, FULL, 2); arrive(1, L(0), FULL); expect(CS207);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(1, L(0), FULL); never();
	begin(1); mb_init(0, 0, FULL, 0); expect(CS203);
	begin(1); mb_init(0, 0, FULL, 1u << 20); expect(CS203);
	begin(1); mb_init(0, 0, FULL, 1); mb_init(0, 0, FULL, 1); expect(CS204);
	begin(1); mb_init(0, 0, FULL, 1); mb_inval(0, 0, FULL); mb_init(0, 0, FULL, 1); never();
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(1, L(0), FULL); mb_inval(0, 0, FULL);
	expect(CS205);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(1, L(0), FULL); bar_all();
	mb_inval(0, 0, FULL); never();
	begin(1); mb_init(0, 0, FULL, 1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	mb_inval(0, 0, FULL); signal_tx(0, 1, FULL, 512); expect(CS205);
	begin(1); mb_init(0, 0, FULL, 1); wr1(0, L(0), FULL, 4); expect(CS206);
	begin(1); mb_init(0, 0, FULL, 1); mb_inval(0, 0, FULL); wr1(0, L(0), FULL, 4); never();
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); mb_inval(0, 0, FULL); wr1(1, L(0), FULL, 4);
	expect(CS101);
	/* S24: nothing has to be invalidated at exit */
	begin(1); mb_init(0, 0, FULL, 5); arrive(0, L(0), FULL); end_all(); never();
}

Test(mbar, counts)
{
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0) | L(1), FULL); expect(CS208);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0) | L(1), FULL);
	mb_wait(0, ALL, FULL, 0); never();
	/* B12 */
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0), FULL); arrive(1, L(0), FULL);
	arrive(0, L(0), FULL); expect(CS209);
	/* all arrivals of the phase are ordered before: a note, until a thread waits for it */
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL); arrive(0, L(0), FULL);
	expect_note(CS209);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0), FULL); arrive(1, L(0), FULL);
	bar_all(); arrive(0, L(0), FULL); expect_note(CS209);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0), FULL); arrive(1, L(0), FULL);
	bar_all(); arrive(0, L(0), FULL); mb_wait(1, ALL, FULL, 0); expect(CS209);
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL); mb_wait(0, L(0), FULL, 0);
	arrive(0, L(0), FULL); never();
	/* S8: another warp waited, and a barrier orders its wait before */
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL); mb_wait(1, ALL, FULL, 0);
	bar_all(); arrive(0, L(0), FULL); never();
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL); mb_wait(1, ALL, FULL, 0);
	arrive(0, L(0), FULL); expect(CS209);
	begin(1); mb_init(0, 0, FULL, 2); arrive_with(0, L(0), FULL, 1, ARRIVE_NO_COMPLETE);
	arrive_with(0, L(0), FULL, 1, 0); mb_wait(0, ALL & L(0), FULL, 0); never();
	begin(1); mb_init(0, 0, FULL, 1); arrive_with(0, L(0), FULL, 1, ARRIVE_NO_COMPLETE);
	expect(CS213);
	begin(1); mb_init(0, 0, FULL, 1); arrive_with(0, L(0), FULL, 1, ARRIVE_DROP); expect(CS214);
	begin(1); mb_init(0, 0, FULL, 2); arrive_with(0, L(0), FULL, 1, ARRIVE_DROP); never();
	begin(1); event(.kind = EV_MBARRIER_PENDING_COUNT); expect(CS220);
	begin(1); event(.kind = EV_MBARRIER_PENDING_COUNT, .mbarrier_pending_count.no_complete = true);
	never();
}

Test(mbar, bytes)
{
	begin(1); mb_init(0, 0, FULL, 2); arrive_tx(0, 0, FULL, 1 << 20);
	arrive_tx(0, 0, FULL, 1 << 20); expect(CS210);
	/* fewer expected than copied */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	load(0, 0, 2, 512, 512, FULL);
	signal_tx(0, 1, FULL, 512); signal_tx(0, 2, FULL, 512); expect(CS211);
	/* more expected than copied, without a wait that hangs */
	pipeline(1); arrive_tx(0, 0, FULL, 1024); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); expect_note(CS211);
	/* a plain arrive lets the phase complete without the bytes */
	pipeline(1); load(0, 0, 1, 0, 512, FULL); arrive(0, L(0), FULL); signal_tx(0, 1, FULL, 512);
	expect(CS212);
	/* expect_tx after the arrive that may be the last */
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0), FULL); mb_expect(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL);
	arrive(1, L(0), FULL); signal_tx(0, 1, FULL, 512); expect(CS212);
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); mb_expect(0, 0, FULL, 512); arrive(0, L(0), FULL);
	load(0, 0, 1, 0, 512, FULL);
	arrive(1, L(0), FULL); signal_tx(0, 1, FULL, 512); mb_wait(1, ALL, FULL, 0); never();
	/* S4: bytes before the expect, while an arrival is still due */
	pipeline(1); load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512);
	arrive_tx(0, 0, FULL, 512); mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); never();
	/* B17: complete_tx by a thread */
	begin(1); mb_init(0, 0, FULL, 1); arrive_tx(0, 0, FULL, 64); mb_complete(0, 0, FULL, 64);
	mb_wait(0, L(0), FULL, 0); never();
}

Test(mbar, waits)
{
	/* B20 */
	begin(1); mb_init(0, 0, FULL, 1); arrive(0, L(0), FULL); mb_wait(0, L(0), FULL, 0);
	arrive(0, L(0), FULL);
	mb_wait(0, L(0), FULL, 1); mb_token(0, L(0), FULL, 0, TEST_TRUE); expect(CS215);
	begin(1); mb_init(0, 0, FULL, 1); arrive(0, L(0), FULL); mb_token(0, L(0), FULL, 0, TEST_TRUE);
	never();
	/* B21: a waiter that falls two phases behind */
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); mb_poll(1, L(0), FULL, 0); arrive(0, L(0), FULL);
	mb_wait(0, L(0), FULL, 0);
	arrive(0, L(0), FULL); line = 0; mb_wait(0, L(0), FULL, 1);
	line = 0; mb_poll(1, L(0), FULL, 0); finish((unsigned[16]){ 0 }, (enum severity[16]){ 0 });
	begin(2); mb_init(0, 0, FULL, 1); bar_all();
	for (int k = 0; k < 2; k++) {
		mb_poll(1, L(0), FULL, 0);
		if (!k) {
			arrive(0, L(0), FULL); mb_wait(0, L(0), FULL, 0); arrive(0, L(0), FULL);
			mb_wait(0, L(0), FULL, 1);
		}
	}
	expect(CS216);
	/* B25: a relaxed wait needs a fence */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait_sem(1, ALL, FULL, 0, SEM_RELAXED); rd(1, ALL, 0, 16); expect(CS104);
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	mb_wait_sem(1, ALL, FULL, 0, SEM_RELAXED); fence(1, ALL, SEM_ACQUIRE); rd(1, ALL, 0, 16);
	never();
	/* a relaxed arrive publishes nothing, unless fenced */
	begin(2); mb_init(0, 0, FULL, 32); bar_all(); wr(0, ALL, 0, 4); arrive_relaxed(0, ALL, FULL);
	mb_wait(1, ALL, FULL, 0);
	rd(1, ALL, 0, 4); expect(CS102);
	begin(2); mb_init(0, 0, FULL, 32); bar_all(); wr(0, ALL, 0, 4); fence(0, ALL, SEM_RELEASE);
	arrive_relaxed(0, ALL, FULL);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 4); never();
	/* B27: between one's own arrive and the wait nothing is covered */
	begin(2); mb_init(0, 0, FULL, 64); bar_all(); arrive(0, ALL, FULL); wr(0, ALL, 0, 4);
	arrive(1, ALL, FULL);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 4); expect(CS102);
	/* S7: many waits on one phase */
	begin(2); mb_init(0, 0, FULL, 32); bar_all(); wr(0, ALL, 0, 4); arrive(0, ALL, FULL);
	mb_wait(1, ALL, FULL, 0);
	mb_wait(1, ALL, FULL, 0); mb_wait(1, L(4), FULL, 0); rd(1, ALL, 0, 4); never();
}

Test(mbar, a_wait_returns_the_phase_it_passed_on)
{
	/* S6: a stale parity acquires the older phase only */
	pipeline(1);
	arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512);
	mb_wait(1, ALL, FULL, 0); rd(1, ALL, 0, 16); pfence(1, ALL); ws(1, ALL); arrive(1, L(0), EMPTY);
	mb_wait(0, L(0), EMPTY, 0);
	arrive_tx(0, 0, FULL, 512); load(0, 0, 2, 0, 512, FULL);
	mb_wait(1, ALL, FULL, 0); /* should have been parity 1 */
	rd(1, ALL, 0, 16);
	signal_tx(0, 2, FULL, 512);
	expect(CS104);
}

/* ---- bulk stores ---- */

Test(store, source)
{
	/* S12: every writer fences, barrier, one thread stores */
	begin(2); wr(0, ALL, 0, 16); wr(1, ALL, 512, 16); pfence(0, ALL); pfence(1, ALL); bar_all();
	store(0, 0, 1, 0, 1024); bulk_commit(0, L(0)); bulk_wait_read(0, L(0), 0); end_all(); never();
	begin(2); wr(0, ALL, 0, 16); wr(1, ALL, 512, 16); bar_all(); store(0, 0, 1, 0, 1024);
	bulk_commit(0, L(0));
	bulk_wait_read(0, L(0), 0); end_all(); expect(CS110);
	begin(2); wr(0, ALL, 0, 16); wr(1, ALL, 512, 16); pfence(0, ALL); bar_all();
	store(0, 0, 1, 0, 1024); bulk_commit(0, L(0));
	bulk_wait_read(0, L(0), 0); end_all(); expect(CS110);
	/* no barrier at all */
	begin(2); wr(1, ALL, 0, 16); pfence(1, ALL); store(0, 0, 1, 0, 512); bulk_commit(0, L(0));
	bulk_wait(0, L(0), 0); expect(CS102);
	begin(1); wr(0, ALL, 0, 16); pfence(0, ALL); store(0, 0, 1, 0, 512); bulk_commit(0, L(0));
	bulk_wait(0, L(0), 0); expect(CS103);
	begin(1); wr(0, ALL, 0, 16); pfence(0, ALL); ws(0, ALL); store(0, 0, 1, 0, 512);
	bulk_commit(0, L(0)); bulk_wait(0, L(0), 0); never();
	begin(1); wr1(0, L(0), 0, 16); pfence(0, L(0)); store(0, 0, 1, 0, 16); bulk_commit(0, L(0));
	bulk_wait(0, L(0), 0); never();
	begin(1); wr1(0, L(0), 0, 16); store(0, 0, 1, 0, 16); bulk_commit(0, L(0));
	bulk_wait(0, L(0), 0); expect(CS110);
}

Test(store, reuse)
{
	begin(2); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bar_all(); wr(1, ALL, 0, 16);
	bulk_wait_read(0, L(0), 0); expect(CS105);
	begin(2); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bulk_wait_read(0, L(0), 0); bar_all();
	wr(1, ALL, 0, 16); never();
	begin(2); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bulk_wait_read(0, L(0), 0);
	wr(1, ALL, 0, 16); expect(CS105);
	/* off by one (DeepEP#657) */
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); store(0, 0, 2, 512, 512);
	bulk_commit(0, L(0));
	bulk_wait_read(0, L(0), 1); ws(0, ALL); wr(0, ALL, 512, 16); bulk_wait_read(0, L(0), 0);
	expect(CS105);
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); store(0, 0, 2, 512, 512);
	bulk_commit(0, L(0));
	bulk_wait_read(0, L(0), 1); ws(0, ALL); wr(0, ALL, 0, 16); bulk_wait_read(0, L(0), 0); never();
	/* the lanes next to the waiting one need a bar.warp.sync */
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bulk_wait_read(0, L(0), 0);
	wr(0, ALL, 0, 16); expect(CS105);
}

Test(store, groups)
{
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); end_all(); expect(CS308);
	begin(1); store(0, 0, 1, 0, 512); bulk_wait(0, L(0), 0); end_all(); expect(CS309);
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bulk_wait(0, L(1), 0);
	bulk_wait(0, L(0), 0); end_all(); expect_warning(CS310);
	begin(1); store(0, 0, 1, 0, 512); bulk_commit(0, L(0)); bulk_wait(0, ALL, 0); end_all();
	never();
	/* TMA load, then TMA store of the same buffer */
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512);
	mb_wait(1, ALL, FULL, 0); store(1, 0, 2, 0, 512); bulk_commit(1, L(0)); bulk_wait(1, L(0), 0);
	end_all(); never();
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512);
	store(1, 0, 2, 0, 512); bulk_commit(1, L(0)); bulk_wait(1, L(0), 0); mb_wait(1, ALL, FULL, 0);
	end_all(); expect(CS104);
}

Test(exit, pending)
{
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL); end_all(); expect(CS312);
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); mb_wait(1, L(0), FULL, 0); end_all(); never();
	/* even if the copy is complete by then */
	pipeline(1); arrive_tx(0, 0, FULL, 512); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512); end_all(); expect(CS312);
	begin(1); cpa(0, ALL, 0, 16); cp_commit(0, ALL); end_all(); expect_note(CS312);
	begin(1); mb_init(0, 0, FULL, 32); bar_all(); cpa(0, ALL, 0, 16); cp_arrive(0, ALL, FULL, 3);
	cp_wait_all(0, ALL); end_all(); expect(CS221);
}

/* ---- wgmma ---- */

/* TMA fills A (0) and B (2048), warps 0-3 compute, warp 4 lane 0 produces. */
static void gemm(void)
{
	begin(5);
	mb_init(4, 0, FULL, 1);
	mb_init(4, 0, EMPTY, 4);
	bar_all();
}
static void fill(unsigned op)
{
	arrive_tx(4, 0, FULL, 4096);
	load(4, 0, op, 0, 4096, FULL);
	signal_tx(4, op, FULL, 4096);
}
static void compute(void)
{
	wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0);
}
static void wait4(unsigned parity)
{
	for (unsigned w = 0; w < 4; w++)
		mb_wait(w, ALL, FULL, parity);
}
static void release4(void)
{
	for (unsigned w = 0; w < 4; w++)
		arrive(w, L(0), EMPTY); /* S9: one lane of each warp, after one wait */
}

Test(wgmma, pipeline_is_clean)
{
	gemm();
	for (unsigned k = 0; k < 4; k++) {
		mb_wait(4, L(0), EMPTY, (k & 1) ^ 1);
		fill(k + 1);
		wait4(k & 1); compute(); wg_wait(0, 0); release4();
	}
	end_all();
	never();
}

Test(wgmma, released_before_the_wait)
{
	gemm(); fill(1); wait4(0); compute(); release4(); wg_wait(0, 0);
	mb_wait(4, L(0), EMPTY, 0); fill(2); expect(CS120);
	/* wait_group 1 leaves the newest group pending */
	gemm(); fill(1); wait4(0); compute(); wg_wait(0, 1); release4(); mb_wait(4, L(0), EMPTY, 0);
	fill(2); wg_wait(0, 0); expect(CS120);
	/* overwritten by its own warp */
	gemm(); fill(1); wait4(0); compute(); wr(0, ALL, 0, 16); wg_wait(0, 0); expect(CS120);
	gemm(); fill(1); wait4(0); compute(); wg_wait(0, 0); bar_all(); wr(0, ALL, 0, 16); never();
}

static void no_joining_wgmma(struct check_policy *p)
{
	p->wgmma_does_not_join = 1;
}

Test(wgmma, operands_not_ready)
{
	gemm(); fill(1); compute(); wg_wait(0, 0); expect(CS121);
	/* B must be known to every warp */
	gemm(); fill(1); mb_wait(0, ALL, FULL, 0); mb_wait(1, ALL, FULL, 0); mb_wait(2, ALL, FULL, 0);
	compute(); wg_wait(0, 0); expect_note(CS122);
	/* generic writes: fence and barrier (D08) */
	begin(4); wr(0, ALL, 2048, 16); for (int w = 0; w < 4; w++) pfence(w, ALL); bar_all();
	compute(); wg_wait(0, 0); end_all(); never();
	begin(4); wr(0, ALL, 2048, 16); bar_all(); compute(); wg_wait(0, 0); end_all(); expect(CS110);
	/* one warp has the data, only the wgmma synchronizes it with the others: a note */
	begin(4); wr(0, ALL, 2048, 16); pfence(0, ALL); compute(); wg_wait(0, 0); end_all();
	expect_note(CS122);
	tune = no_joining_wgmma; begin(4); wr(0, ALL, 2048, 16); pfence(0, ALL); compute();
	wg_wait(0, 0); end_all(); expect(CS121); tune = NULL;
	begin(4); wr(0, ALL, 2048, 16); compute(); wg_wait(0, 0); end_all(); expect(CS110);
	/* D11: not even the warp's own stores */
	begin(4); for (unsigned w = 0; w < 4; w++) wr(w, ALL, w * 512, 16); compute(); wg_wait(0, 0);
	expect(CS110);
	/* S10: each warp writes its own A rows, fence and bar.warp.sync suffice */
	begin(4);
	for (unsigned w = 0; w < 4; w++) { wr(w, ALL, w * 512, 16); pfence(w, ALL); ws(w, ALL); }
	compute(); wg_wait(0, 0); end_all(); never();
	/* S10 does not hold for rows of another warp */
	begin(4);
	for (unsigned w = 0; w < 4; w++) { wr(w, ALL, (w ^ 1) * 512, 16); pfence(w, ALL); ws(w, ALL); }
	compute(); wg_wait(0, 0); end_all(); expect_note(CS122);
	/* S15: cp.async without a proxy fence is a note */
	begin(4); cpa(0, ALL, 2048, 16); cp_wait_all(0, ALL); bar_all(); compute(); wg_wait(0, 0);
	end_all(); expect_note(CS113);
	begin(4); cpa(0, ALL, 2048, 16); cp_wait_all(0, ALL); pfence(0, ALL); bar_all(); compute();
	wg_wait(0, 0); end_all(); never();
	begin(4); cpa(0, ALL, 2048, 16); cp_commit(0, ALL); bar_all(); compute(); wg_wait(0, 0);
	cp_wait_all(0, ALL); end_all(); expect(CS301);
}

static void bar_on(unsigned id, unsigned a, unsigned b)
{
	bar_enter(a, id, 64); bar_enter(b, id, 64); bar_leave(a, id); bar_leave(b, id);
}

/* Two of the warps know a strong write of B itself, two a read that observed it. */
static void observed_by_half(bool fenced)
{
	tune = no_joining_wgmma; begin(4); tune = NULL;
	strong(1, L(0), 2048, 4, MODE_WRITE, SEM_RELAXED);
	if (fenced) pfence(1, ALL);
	bar_on(1, 1, 3);
	strong(0, L(0), 2048, 4, MODE_READ, SEM_RELAXED);
	if (fenced) pfence(0, ALL);
	bar_on(2, 0, 2);
	compute(); wg_wait(0, 0); end_all();
}

Test(wgmma, operand_observed_by_half)
{
	observed_by_half(true); never();
	observed_by_half(false); expect(CS110);
}

#define maxnreg(n, inc) event(.kind = EV_SETMAXNREG, .setmaxnreg = { .registers = n, .increase = inc })

Test(wgmma, registers)
{
	begin(4); mma(0, 0, 2048, 2048); wg_commit(0); wg_wait(0, 0); expect_warning(CS320);
	begin(4); wg_fence(0); reg_write(2, 101); mma(0, 0, 2048, 2048); wg_commit(0); wg_wait(0, 0);
	expect_warning(CS320);
	begin(4); wg_fence(0); reg_move(2, 101); mma(0, 0, 2048, 2048); wg_commit(0); wg_wait(0, 0);
	expect_note(CS320);
	begin(4); reg_write(2, 101); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); wg_wait(0, 0);
	reg_read(2, 101); never();
	/* D04: the same shape needs no fence, another one does */
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); mma(0, 0, 2048, 2048); wg_commit(0);
	wg_wait(0, 0); never();
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); mma_shape(0, 0, 2048, 2048, 2); wg_commit(0);
	wg_wait(0, 0); expect_warning(CS320);
	/* D05 */
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); reg_read(1, 103); wg_wait(0, 0);
	expect_warning(CS321);
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); reg_move(1, 103); wg_wait(0, 0);
	expect_note(CS321);
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); reg_read(1, 99); wg_wait(0, 0);
	never();
	/* D06 */
	begin(4); wg_fence(0); mma_rs(0, 200, 2048, 2048, 100); wg_commit(0); reg_write(1, 201);
	wg_wait(0, 0); expect_warning(CS322);
	begin(4); wg_fence(0); mma_rs(0, 200, 2048, 2048, 100); wg_commit(0); reg_read(1, 201);
	wg_wait(0, 0); never();
	/* D07: an uncommitted wgmma is not waited for */
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); mma_rs(0, 200, 2048, 2048, 300);
	wg_wait(0, 0); reg_read(0, 300);
	wg_commit(0); wg_wait(0, 0); expect_warning(CS321);
	/* D14 */
	begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0); end_all(); expect(CS326);
	begin(4); wg_commit(0); wg_wait(0, 0); end_all(); expect_note(CS801);
	begin(1); maxnreg(30, false); expect(CS408);
	begin(1); maxnreg(40, false); maxnreg(24, true); expect(CS408);
	begin(1); maxnreg(40, false); maxnreg(232, true); never();
}

/* A copy of an accumulator in flight may be made, but not used. */
Test(wgmma, copies)
{
#define MMA() begin(4); wg_fence(0); mma(0, 0, 2048, 2048); wg_commit(0)
	MMA(); reg_copy(1, 300, 102); wg_wait(0, 0); reg_read(1, 300); expect_note(CS321);
	MMA(); reg_copy(1, 300, 102);
	reg_read(1, 300); wg_wait(0, 0); expect_warning(CS321);
	MMA(); reg_copy(1, 300, 102); reg_copy(1, 301, 300); reg_copy(1, 300, 99);
	reg_read(1, 300); wg_wait(0, 0); expect_note(CS321);
	MMA(); reg_copy(1, 300, 102); reg_copy(1, 301, 300); reg_copy(1, 300, 99);
	reg_read(1, 301); wg_wait(0, 0); expect_warning(CS321);
	/* another warp's register of that name, and one that was overwritten */
	MMA(); reg_copy(1, 300, 102);
	reg_read(2, 300); wg_wait(0, 0); expect_note(CS321);
	MMA(); reg_copy(1, 300, 102); reg_write(1, 300);
	reg_read(1, 300); wg_wait(0, 0); expect_note(CS321);
	/* of the older of two groups, which the wait covers */
	MMA(); reg_copy(1, 300, 102); mma_rs(0, 200, 2048, 2048, 400); wg_commit(0); wg_wait(0, 1);
	reg_read(1, 300); wg_wait(0, 0); expect_note(CS321);
	MMA(); mma_rs(0, 200, 2048, 2048, 400); wg_commit(0); reg_copy(1, 300, 400); wg_wait(0, 1);
	reg_read(1, 300); wg_wait(0, 0); expect_warning(CS321);
	/* as the A fragment of the next wgmma */
	MMA(); reg_copy(1, 201, 102); wg_fence(0); wg_fence(1); wg_fence(2); wg_fence(3);
	mma_rs(0, 200, 2048, 2048, 400); wg_commit(0); wg_wait(0, 0); expect_warning(CS321);
#undef MMA
}

/* ---- barriers ---- */

Test(barrier, misuse)
{
	begin(4); bar_enter(0, 1, 64); bar_enter(1, 1, 96); expect(CS402);
	/* S21: another count in another generation */
	begin(4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1); bar_leave(1, 1);
	bar_arrive(0, 1, 96); bar_arrive(1, 1, 96); bar_arrive(0, 2, 64); bar_enter(2, 2, 64);
	bar_leave(2, 2); bar_enter(2, 1, 96); bar_leave(2, 1); never();
	/* S20: the same warp twice: a note */
	begin(4); bar_arrive(0, 1, 96); bar_enter(0, 1, 96); bar_arrive(1, 1, 96); bar_leave(0, 1);
	expect_note(CS404);
	begin(4); bar_with(0, 1, 96, BAR_RED); bar_enter(1, 1, 96); expect(CS405);
	begin(4); bar_arrive(0, 1, 48); bar_arrive(1, 1, 48); expect(CS406);
	/* S23: a half-full generation at exit */
	begin(4); bar_arrive(0, 1, 64); end_all(); never();
}

Test(barrier, edges)
{
	/* F05: arrive-only warps acquire nothing */
	begin(2); wr(1, ALL, 0, 4); bar_arrive(0, 1, 64); bar_enter(1, 1, 64); bar_leave(1, 1);
	rd(0, ALL, 0, 4); expect(CS102);
	begin(2); wr(0, ALL, 0, 4); bar_arrive(0, 1, 64); bar_enter(1, 1, 64); bar_leave(1, 1);
	rd(1, ALL, 0, 4); never();
	/* what comes after the arrive is not covered */
	begin(2); bar_arrive(0, 1, 64); wr(0, ALL, 0, 4); bar_enter(1, 1, 64); bar_leave(1, 1);
	rd(1, ALL, 0, 4); expect(CS102);
	/* lane sets that leave one after the other */
	begin(2); wr(0, ALL, 0, 4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1);
	event(.kind = EV_BARRIER_RESUME, W(1), .lanes = L(0), .barrier_resume.id = 1);
	event(.kind = EV_BARRIER_RESUME, W(1), .lanes = ALL & ~L(0), .barrier_resume.id = 1);
	rd(1, ALL, 0, 4); never();
	begin(2); wr(0, ALL, 0, 4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1);
	event(.kind = EV_BARRIER_RESUME, W(1), .lanes = L(0), .barrier_resume.id = 1);
	rd(1, ALL, 0, 4); expect(CS102);
	/* other participants only */
	begin(3); wr(0, ALL, 0, 4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1);
	bar_leave(1, 1); rd(2, ALL, 0, 4); expect(CS102);
	/* another barrier id does not help */
	begin(2); wr(0, ALL, 0, 4); bar_arrive(0, 1, 64); bar_arrive(0, 2, 64); bar_enter(1, 3, 32);
	bar_leave(1, 3); rd(1, ALL, 0, 4); expect(CS102);
	/* a slow warp leaves the old generation while the next fills */
	begin(3); wr(0, ALL, 0, 4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1);
	wr(0, ALL, 128, 4); bar_arrive(0, 1, 64); bar_leave(1, 1); rd(1, ALL, 0, 4); rd(1, ALL, 128, 4);
	expect(CS102);
	/* F06, F08: an arrival that may be counted in the previous generation */
	begin(4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1); bar_leave(1, 1);
	bar_enter(2, 1, 64); expect_warning(CS411);
	begin(4); bar_enter(0, 1, 64); bar_enter(1, 1, 64); bar_leave(0, 1); bar_leave(1, 1);
	bar_arrive(1, 2, 64); bar_enter(2, 2, 64); bar_leave(2, 2); bar_enter(2, 1, 64); never();
	/* S22: exited warps are not waited for */
	begin(3); leave(2, ALL); wr(0, ALL, 0, 4); bar_enter(0, 0, 0); bar_enter(1, 0, 0);
	bar_leave(0, 0); bar_leave(1, 0); rd(1, ALL, 0, 4); never();
}

/* ---- hangs and faults ---- */

#define blocked(w, m, ...) event(.kind = EV_BLOCKED, W(w), .blocked = { .on = m, __VA_ARGS__ })
#define hang(m) event(.kind = EV_HANG, .hang.why = m)

Test(hang, causes)
{
	/* bytes missing */
	pipeline(1); arrive_tx(0, 0, FULL, 1024); load(0, 0, 1, 0, 512, FULL);
	signal_tx(0, 1, FULL, 512);
	blocked(1, WAIT_MBARRIER, .addr = FULL); hang(HANG_DEADLOCK); expect(CS703);
	/* an arrival missing, one barrier */
	begin(2); mb_init(0, 0, FULL, 2); bar_all(); arrive(0, L(0), FULL);
	blocked(1, WAIT_MBARRIER, .addr = FULL); hang(HANG_DEADLOCK); expect(CS703);
	/* two barriers, each waiting for the other */
	pipeline(1); blocked(0, WAIT_MBARRIER, .addr = EMPTY); blocked(1, WAIT_MBARRIER, .addr = FULL);
	hang(HANG_DEADLOCK); expect(CS701);
	/* F09: exited warps are counted */
	begin(3); leave(2, ALL); bar_enter(0, 1, 96); bar_enter(1, 1, 96);
	blocked(0, WAIT_BAR, .addr = 1); blocked(1, WAIT_BAR, .addr = 1); hang(HANG_DEADLOCK);
	expect(CS704);
	begin(2); blocked(0, WAIT_SPIN, .text = "polls a flag"); hang(HANG_LIVELOCK); expect(CS702);
	begin(2); blocked(0, WAIT_SPIN, .text = "polls a flag"); hang(HANG_TIMEOUT); expect(CS705);
}

Test(fault, every_one)
{
	for (unsigned f = 0; f < FAULT_COUNT; f++) {
		begin(1);
		event(.kind = EV_FAULT, .lanes = L(3), .fault = { .fault = (enum ev_fault)f, .space = SP_SHARED,
			.addr = 32 << 16, .bytes = 4 });
		expect(rule_by_code(event_fault_rule(f)));
	}
}

/* Lanes of warp 0, named by another warp, are taken for its own by hardware. */
Test(fault, first_lanes)
{
	begin(1);
	event(.kind = EV_FAULT, .lanes = L(3), .fault = { .fault = FAULT_TMEM_OTHER_WINDOW,
		.space = SP_TMEM, .addr = 16 << 16, .bytes = 4 });
	expect_warning(CS630);
}

/* ---- the memory-model matrix: does it order a write before a read elsewhere? ---- */

static const struct {
	const char *name;
	bool orders;
} matrix[] = {
	{ "nothing", false }, { "__syncthreads", true }, { "bar.arrive/bar.sync", true },
	{ "bar.sync/bar.arrive", false }, { "__syncwarp on both sides", false },
	{ "mbarrier arrive/wait", true }, { "mbarrier arrive/poll False", false },
	{ "mbarrier relaxed arrive", false }, { "mbarrier relaxed wait", false },
	{ "mbarrier of another address", false }, { "release/acquire flag", true },
	{ "fence.acq_rel on both sides alone", false }, { "fence.proxy.async alone", false },
	{ "atomics, relaxed", false }, { "atomics, acq_rel", true },
	{ "mbarrier expect/complete_tx", false },
};

static void order_by(unsigned k)
{
	switch (k) {
	case 1: bar_all(); break;
	case 2: bar_arrive(0, 1, 64); bar_enter(1, 1, 64); bar_leave(1, 1); break;
	case 3: bar_enter(0, 1, 64); bar_arrive(1, 1, 64); bar_leave(0, 1); break;
	case 4: ws(0, ALL); ws(1, ALL); break;
	case 5: arrive(0, ALL, FULL); mb_wait(1, ALL, FULL, 0); break;
	case 6: arrive(0, ALL, FULL); mb_poll(1, ALL, FULL, 0); break;
	case 7: arrive_relaxed(0, ALL, FULL); mb_wait(1, ALL, FULL, 0); break;
	case 8: arrive(0, ALL, FULL); mb_wait_sem(1, ALL, FULL, 0, SEM_RELAXED); break;
	case 9: arrive(0, ALL, FULL); arrive(0, ALL, EMPTY); mb_wait(1, ALL, EMPTY + 8, 1); break;
	case 10:
		for (unsigned l = 0; l < 32; l++) {
			strong(0, L(l), 1024 + 4 * l, 4, MODE_WRITE, SEM_RELEASE);
			strong(1, L(l), 1024 + 4 * l, 4, MODE_READ, SEM_ACQUIRE);
		}
		break;
	case 11: fence(0, ALL, SEM_ACQ_REL); fence(1, ALL, SEM_ACQ_REL); break;
	case 12: pfence(0, ALL); pfence(1, ALL); break;
	case 13: strong(0, ALL, 1024, 4, MODE_RMW, SEM_RELAXED);
	strong(1, ALL, 1024, 4, MODE_RMW, SEM_RELAXED); break;
	case 14: strong(0, ALL, 1024, 4, MODE_RMW, SEM_ACQ_REL);
	strong(1, ALL, 1024, 4, MODE_RMW, SEM_ACQ_REL); break;
	case 15: mb_expect(0, 0, FULL, 16); mb_complete(0, 0, FULL, 16); break;
	}
}

Test(model, matrix)
{
	unsigned found[16];
	enum severity sev[16];

	for (unsigned k = 0; k < ARRAY_SIZE(matrix); k++) {
		size_t n;

		begin(2);
		mb_init(0, 0, FULL, 32); mb_init(0, 0, EMPTY, 32); mb_init(0, 0, EMPTY + 8, 32); bar_all();
		wr(0, ALL, 0, 4);
		order_by(k);
		rd(1, ALL, 0, 4);
		n = finish(found, sev);
		cr_expect(n == !matrix[k].orders, "%s: %zu findings", matrix[k].name, n);
		for (size_t i = 0; i < n; i++)
			cr_expect(found[i] == CS102 || (k == 8 && found[i] == CS117), "%s: %s", matrix[k].name,
				rule_get(found[i])->code);
	}
}

/* ---- aborted launches ---- */

static bool found(unsigned want)
{
	const struct finding *const *f;
	size_t n = check_findings(checker, &f);
	bool yes = false;

	for (size_t k = 0; k < n; k++)
		yes |= f[k]->rule == want;
	return yes;
}

/* A CTA exits, a peer still uses its memory; a copy of the peer's is in flight. */
static void cut_short(bool aborted)
{
	struct check_config config = { .aborted = aborted, .launch = { .kernel = "test", .grid = { 2, 1, 1 },
		.block = { 32, 1, 1 }, .cluster = { 2, 1, 1 }, .shared_static = 4096, .sm = 90 } };
	struct cluster_info info = { .launch = &config.launch, .nctas = 2, .warps_per_cta = 1 };

	check_policy_default(&config.policy);
	checker = check_open(&config);
	sink = check_cluster_begin(checker, &info);
	for (uint16_t c = 0; c < 2; c++)
		emit((struct event){ .kind = EV_CTA_BEGIN, .cta = c,
			.cta_begin = { .threads = 32, .shared_bytes = 4096 } });
	emit((struct event){ .kind = EV_MBARRIER_INIT, .cta = 1, .lanes = 1,
		.mbarrier_init = { .owner = 1, .addr = 64, .arrivals = 1 } });
	for (uint16_t c = 0; c < 2; c++)
		emit((struct event){ .kind = EV_CLUSTER_ARRIVE, .cta = c,
			.cluster_arrive.sem = SEM_RELEASE });
	for (uint16_t c = 0; c < 2; c++)
		emit((struct event){ .kind = EV_CLUSTER_WAIT, .cta = c,
			.cluster_wait.sem = SEM_ACQUIRE });
	emit((struct event){ .kind = EV_MBARRIER_ARRIVE, .cta = 1, .lanes = 1,
		.mbarrier_arrive = { .owner = 1, .addr = 64, .arrivals = 1, .tx_count = 16,
		.flags = ARRIVE_EXPECT_TX, .sem = SEM_RELEASE } });
	emit((struct event){ .kind = EV_THREAD_EXIT });
	emit((struct event){ .kind = EV_CTA_END });
	emit((struct event){ .kind = EV_ACCESS, .cta = 1, .access = { .space = SP_SHARED,
		.mode = MODE_WRITE, .bytes = 4, .at.stride = 4 } });
	check_cluster_end(checker, sink);
}

/* Operations that took place are checked, missing ones are not reported. */
Test(aborted, exits)
{
	cut_short(false);
	cr_expect(found(CS503));
	cr_expect(found(CS211), "the bytes never came");
	check_close(checker);
	cut_short(true);
	cr_expect(found(CS503));
	cr_expect_not(found(CS211));
	check_close(checker);
}

/* ---- exits ---- */

/* Half of a warp arrives at the cluster's barrier, the other half exits, in either order. True: CS412. */
static bool half_exits(bool aligned, bool exit_first, uint32_t arriving)
{
	struct check_config config = { .launch = { .kernel = "test", .grid = { 1, 1, 1 },
		.block = { 32, 1, 1 }, .cluster = { 1, 1, 1 }, .sm = 90 } };
	struct cluster_info info = { .launch = &config.launch, .nctas = 1, .warps_per_cta = 1 };
	const struct event exits = { .kind = EV_THREAD_EXIT, .lanes = 0xffff0000 };
	bool yes;

	check_policy_default(&config.policy);
	checker = check_open(&config);
	sink = check_cluster_begin(checker, &info);
	line = __LINE__;
	emit((struct event){ .kind = EV_CTA_BEGIN, .cta_begin.threads = 32 });
	if (exit_first)
		emit(exits);
	emit((struct event){ .kind = EV_CLUSTER_ARRIVE, .lanes = arriving,
		.cluster_arrive = { .sem = SEM_RELEASE, .aligned = aligned } });
	if (!exit_first)
		emit(exits);
	emit((struct event){ .kind = EV_CLUSTER_WAIT, .lanes = 0xffff, .cluster_wait.sem = SEM_ACQUIRE });
	emit((struct event){ .kind = EV_THREAD_EXIT, .lanes = 0xffff });
	emit((struct event){ .kind = EV_CTA_END });
	check_cluster_end(checker, sink);
	yes = found(CS412);
	check_close(checker);
	return yes;
}

Test(exits, aligned_arrival)
{
	cr_expect(half_exits(true, true, 0xffff));
	cr_expect(half_exits(true, false, 0xffff), "a GPU executes the arrival first");
	cr_expect_not(half_exits(true, false, ALL), "all arrived, and half of them do not wait");
	cr_expect_not(half_exits(false, true, 0xffff));
	cr_expect_not(half_exits(false, false, 0xffff));
}

/* ---- policy ---- */

static void wait_by_arriver_is_an_error(struct check_policy *p)
{
	p->wait_by_arriver = 2;
}

Test(policy, strict)
{
	unsigned found[16];
	enum severity sev[16];

	/* K1: a fence by the issuer covers only its own accesses */
	begin_with(2, true); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); bar_all(); pfence(0, L(0));
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); expect(CS111);
	/* K2 */
	begin_with(2, true); mb_init(0, 0, FULL, 1); wr(1, ALL, 0, 16); rd(1, ALL, 0, 16); bar_all();
	arrive_tx(0, 0, FULL, 512);
	load(0, 0, 1, 0, 512, FULL); signal_tx(0, 1, FULL, 512); cr_expect(finish(found, sev) >= 1);
	cr_expect(sev[0] == SEV_ERROR);
	/* K8: a note unless the knob is 2 */
	begin_with(2, true); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL);
	mb_wait(1, ALL, FULL, 0); bar_all(); arrive(0, L(0), FULL); expect_note(CS209);
	begin_with(2, true); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL);
	mb_wait(1, ALL, FULL, 0); arrive(0, L(0), FULL); expect(CS209);
	begin_with(2, true); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL);
	mb_wait(0, ALL, FULL, 0); arrive(0, L(0), FULL); never();
	tune = wait_by_arriver_is_an_error;
	begin(2); mb_init(0, 0, FULL, 1); bar_all(); arrive(0, L(0), FULL); mb_wait(1, ALL, FULL, 0);
	bar_all(); arrive(0, L(0), FULL); expect(CS209);
	tune = NULL;
	/* K7, K12 */
	begin_with(4, true); bar_arrive(0, 1, 96); bar_enter(0, 1, 96); bar_arrive(1, 1, 96);
	bar_leave(0, 1); expect(CS404);
	begin_with(4, true); wg_fence(0); mma_rs(0, 200, 0, 0, 100); wg_commit(0); reg_read(1, 103);
	wg_wait(0, 0); expect(CS321);
}

Test(rules, every_row_says_why_and_how)
{
	for (unsigned r = 1; r <= rule_count(); r++) {
		const struct rule_info *i = rule_get(r);

		cr_expect(*i->title && *i->why && *i->fix, "%s", i->code);
		cr_expect(rule_by_code(i->code) == r);
	}
}
