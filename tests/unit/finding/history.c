/* history: the steps and mbarrier states that a recorder keeps of a cluster, and the history
 * that a finding gets from them. */
#include "libconsan/finding/recorder.h"
#include "libconsan/finding/results/json.h"
#include "libconsan/finding/rule_codes.h"
#include "tests/common/sample.h" /* before the next: it has a global `line` */
#include "tests/common/event_dsl.h"

#include <criterion/criterion.h>

static const struct ev_symbol symbols[] = { { "tile", 0, 0x4000 }, { "full", 0x4000, 16 } };
static const struct launch_info launch = { .kernel = "k", .grid = { 1, 1, 1 },
	.block = { 64, 1, 1 }, .cluster = { 1, 1, 1 }, .shared_static = 0x4010, .symbols = symbols,
	.nsymbols = 2 };
static const struct cluster_info cluster = { .launch = &launch, .nctas = 1, .warps_per_cta = 2 };

static struct recorders *all;
static struct recorder *now;

static void record(struct event_sink *s, const struct event *e)
{
	(void)s;
	recorder_event(now, e);
}

static struct event_sink to_recorder = { .event = record };

static void start(uint32_t steps)
{
	all = recorders_open(steps);
	now = recorder_begin(all, &cluster);
	sink = &to_recorder;
}

static void stop(void)
{
	recorder_end(now, false, NULL, false);
	recorders_close(all);
}

static struct finding race(uint32_t site0, unsigned warp0, uint32_t site1, unsigned warp1)
{
	return (struct finding){ .rule = CS104, .nsides = 2, .side = {
		{ .site = site0, .warp = (uint16_t)warp0, .lane = -1, .bytes = 4 },
		{ .site = site1, .warp = (uint16_t)warp1, .lane = -1, .bytes = 4 } } };
}

/* In each phase, warp 0 loads into tile, and warp 1 waits for the load and reads. */
static void pipeline(unsigned phases)
{
	line = 1;
	emit((struct event){ .kind = EV_MBARRIER_INIT, .lanes = 1,
		.mbarrier_init = { .addr = 0x4000, .arrivals = 1 } });
	for (unsigned p = 0; p < phases; p++) {
		line = 2;
		emit((struct event){ .kind = EV_MBARRIER_ARRIVE, .lanes = 1, .mbarrier_arrive = {
			.addr = 0x4000, .arrivals = 1, .tx_count = 512, .flags = ARRIVE_EXPECT_TX } });
		line = 3;
		emit((struct event){ .kind = EV_BULK, .lanes = 1, .bulk = { .mode = MODE_WRITE,
			.async_op = p + 1, .bytes = 512, .mbarrier = 0x4000 } });
		for (unsigned k = 0; k < 3; k++) {
			line = 4;
			emit((struct event){ .kind = EV_MBARRIER_TEST, .warp = 1, .mbarrier_test = {
				.addr = 0x4000, .flags = TEST_PARITY | TEST_TRY, .phase = p & 1 } });
		}
		emit((struct event){ .kind = EV_MBARRIER_SIGNAL, .mbarrier_signal = {
			.async_op = p + 1, .addr = 0x4000, .tx_count = 512 } });
		emit((struct event){ .kind = EV_MBARRIER_TEST, .warp = 1, .mbarrier_test = {
			.addr = 0x4000, .flags = TEST_PARITY | TEST_TRY | TEST_TRUE, .phase = p & 1 } });
		line = 5;
		emit((struct event){ .kind = EV_ACCESS, .warp = 1, .access = { .space = SP_SHARED,
			.mode = MODE_READ, .bytes = 4, .at.stride = 4 } });
	}
}

Test(history, steps_phases_and_mbarriers)
{
	static const enum step_kind want[] = { STEP_init, STEP_arrive_expect, STEP_bulk_load,
		STEP_poll, STEP_signal, STEP_wait, STEP_access, STEP_arrive_expect, STEP_bulk_load };
	struct finding f = race(3, 0, 5, 1);
	const struct history_mbarrier *m;
	struct history *h;

	start(64);
	pipeline(1);
	line = 2;
	emit((struct event){ .kind = EV_MBARRIER_ARRIVE, .lanes = 1, .mbarrier_arrive = {
		.addr = 0x4000, .arrivals = 1, .tx_count = 512, .flags = ARRIVE_EXPECT_TX } });
	line = 3;
	emit((struct event){ .kind = EV_BULK, .lanes = 1, .bulk = { .mode = MODE_WRITE,
		.async_op = 2, .bytes = 512, .mbarrier = 0x4000 } });
	h = recorder_history(now, &f);
	cr_assert_eq(h->nsteps, ARRAY_SIZE(want));
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		cr_expect_eq(h->step[i].kind, want[i], "step %zu is %s", i, step_id(h->step[i].kind));
	cr_expect_eq(h->step[3].repeat, 2, "polls in a row are one step");
	cr_expect(h->step[4].completes && !h->step[1].completes);
	cr_expect_eq(h->step[5].phase, 0);
	cr_expect_eq(h->step[7].phase, 1);
	cr_expect_eq(h->side[0], 8, "the current load");
	cr_expect_eq(h->side[1], 6, "the read, where it took place");
	cr_assert_eq(h->nmbarriers, 1);
	m = &h->mbarrier[0];
	cr_expect_str_eq(m->name, "full[0]");
	cr_expect(m->live && m->count == 1 && m->phase == 1 && m->tx == 512);
	cr_expect_eq(m->recent[0].arrivals, 1);
	cr_expect_eq(m->recent[0].completed, 512);
	cr_expect_eq(m->recent[1].expected, 512);
	cr_expect(m->narrivers == 1 && !m->arriver[0].cta && !m->arriver[0].warp,
		"warp 0 arrived, twice");
	cr_expect_eq(h->nbuffers, 3, "two variables and what the load fills");
	history_drop(h);
	stop();
}

/* An mma is in flight until its commit arrives, a load until the warp's wait; columns are kept by
 * CTA. */
Test(history, tensor_memory)
{
	const struct finding f = race(5, 1, 2, 0);
	const struct history_step *mma = NULL, *arrival = NULL, *load = NULL, *wait = NULL;
	const struct history_buffer *columns = NULL;
	struct history *h;

	start(64);
	line = 1;
	emit((struct event){ .kind = EV_TMEM_ALLOC, .tmem_alloc = { .column = 32, .columns = 64 } });
	emit((struct event){ .kind = EV_TMEM_ALLOC, .tmem_alloc = { .column = 128, .columns = 32 } });
	emit((struct event){ .kind = EV_TMEM_DEALLOC,
		.tmem_dealloc = { .column = 128, .columns = 32 } });
	emit((struct event){ .kind = EV_MBARRIER_INIT, .lanes = 1,
		.mbarrier_init = { .addr = 0x4000, .arrivals = 1 } });
	line = 2;
	emit((struct event){ .kind = EV_TCGEN05, .lanes = 1,
		.tcgen05 = { .op = TC_MMA, .async_op = 7 } });
	line = 3;
	emit((struct event){ .kind = EV_TCGEN05_COMMIT, .lanes = 1,
		.tcgen05_commit = { .async_op = 9, .addr = 0x4000 } });
	emit((struct event){ .kind = EV_MBARRIER_SIGNAL, .mbarrier_signal = {
		.async_op = 9, .addr = 0x4000, .arrivals = 1 } });
	line = 5;
	emit((struct event){ .kind = EV_TMEM_ACCESS, .warp = 1, .tmem_access = { .mode = MODE_READ } });
	line = 6;
	emit((struct event){ .kind = EV_TMEM_WAIT, .warp = 1, .tmem_wait = { .mode = MODE_READ } });
	h = recorder_history(now, &f);
	for (uint32_t i = 0; i < h->nsteps; i++) {
		const struct history_step *s = &h->step[i];

		mma = s->kind == STEP_tc_mma ? s : mma;
		arrival = s->kind == STEP_tc_signal ? s : arrival;
		load = s->kind == STEP_tmem_ld ? s : load;
		wait = s->kind == STEP_tmem_wait_ld ? s : wait;
	}
	cr_assert(mma && arrival && load && wait);
	cr_expect_eq(mma->op, 9, "the commit that tracks it");
	cr_expect_eq(arrival->op, 9);
	cr_expect(arrival->completes);
	cr_expect_gt(wait->phase, load->phase);
	cr_expect_eq(&h->step[h->side[0]], load);
	cr_expect_eq(&h->step[h->side[1]], mma);
	for (uint32_t i = 0; i < h->nbuffers; i++) {
		if (h->buffer[i].kind != BUFFER_COLUMNS)
			continue;
		cr_expect_null(columns, "the others are free again");
		columns = &h->buffer[i];
	}
	cr_assert_not_null(columns);
	cr_expect_eq(columns->addr, 32);
	cr_expect_eq(columns->bytes, 64);
	history_drop(h);
	stop();
}

Test(history, bounded_and_reused)
{
	struct finding f = race(5, 1, 3, 0);
	struct history *h;

	start(16);
	pipeline(1000);
	h = recorder_history(now, &f);
	cr_expect_leq(h->nsteps, 18);
	cr_expect_gt(h->before, 4000);
	cr_expect_geq(h->side[0], 0);
	cr_expect_geq(h->side[1], 0);
	history_drop(h);
	recorder_end(now, false, NULL, false);
	cr_assert_eq(recorder_begin(all, &cluster), now, "the next cluster's");
	sink = &to_recorder;
	h = recorder_history(now, &f);
	cr_expect_eq(h->nmbarriers, 0, "nothing of the cluster before");
	cr_expect_eq(h->before, 0);
	cr_expect_eq(h->side[1], -1);
	history_drop(h);
	stop();
}

Test(history, other_warps_are_one_step)
{
	struct cluster_info wide = cluster;
	struct launch_info big = launch;
	struct finding f = race(9, 0, 9, 1);
	struct history *h;
	unsigned merged = 0;

	big.block[0] = 1024;
	wide.launch = &big;
	wide.warps_per_cta = 32;
	all = recorders_open(64);
	now = recorder_begin(all, &wide);
	sink = &to_recorder;
	nwarps = 32;
	bar_all();
	h = recorder_history(now, &f);
	for (uint32_t i = 0; i < h->nsteps; i++)
		merged += h->step[i].warp == HISTORY_OTHERS;
	cr_expect_eq(merged, 2, "all arrive, all leave");
	cr_expect_leq(h->nsteps, 2 * 4 + 2 + 2);
	history_drop(h);
	stop();
}

static const struct launch_info grid = { .kernel = "k", .grid = { 4, 1, 1 }, .block = { 64, 1, 1 },
	.cluster = { 1, 1, 1 } };

/* Each block writes its word, then takes a ticket; the last one reads them all. */
static void ticket(uint32_t id, bool last)
{
	const struct cluster_info c = { .launch = &grid, .id = id, .nctas = 1, .warps_per_cta = 2 };

	now = recorder_begin(all, &c);
	sink = &to_recorder;
	line = 1;
	emit((struct event){ .kind = EV_ACCESS, .lanes = 1, .access = { .space = SP_GLOBAL,
		.mode = MODE_WRITE, .bytes = 4 } });
	for (int i = 0; i < 3; i++) {
		line = 2;
		emit((struct event){ .kind = EV_ACCESS, .lanes = 1, .access = { .space = SP_GLOBAL,
			.mode = MODE_RMW, .sem = SEM_RELAXED, .bytes = 4, .at.base = 64 } });
	}
	bar_all();
	line = 3;
	if (last)
		emit((struct event){ .kind = EV_ACCESS, .warp = 1, .lanes = 1, .access = {
			.space = SP_GLOBAL, .mode = MODE_READ, .bytes = 4 } });
}

Test(history, two_clusters)
{
	struct finding f = race(3, 1, 1, 0);
	struct history *h, *back;
	json_t *first, *again;

	for (unsigned i = 0; i < 2; i++) {
		f.side[i].space = SP_GLOBAL;
		f.side[i].ctaid[0] = i ? 1 : 3;
	}
	for (uint32_t i = 1; i < 400; i++)
		sample_site("reduce.cu", i, 0, "ld.global;");
	all = recorders_open(64);
	nwarps = 2;
	for (uint32_t id = 0; id < 4; id++) {
		ticket(id, id == 3);
		recorder_end(now, true, NULL, false);
	}
	h = recorders_history(all, &f);
	cr_assert_not_null(h);
	cr_expect_eq(h->other, 1);
	cr_assert(h->side[1] == 0 && h->side[0] == (int32_t)h->nsteps - 1);
	cr_expect_eq(h->step[0].kind, STEP_access);
	cr_expect_eq(h->step[1].kind, STEP_strong_rmw);
	cr_expect_eq(h->step[1].repeat, 2);
	for (uint32_t i = 0; i < h->nsteps; i++)
		cr_expect_eq(h->step[i].cta, i >= h->nsteps - h->nsteps / 2, "step %u", i);
	first = rj_from_history(h, NULL);
	back = rj_history(first, NULL);
	again = rj_from_history(back, NULL);
	cr_expect(json_equal(first, again));
	cr_expect_eq(back->other, 1);
	json_decref(first);
	json_decref(again);
	history_drop(back);
	history_drop(h);
	f.side[1].ctaid[0] = 3;
	cr_expect_null(recorders_history(all, &f), "one cluster");
	f.side[1].ctaid[0] = 9;
	cr_expect_null(recorders_history(all, &f), "no such block");
	f.side[1].ctaid[0] = 1;
	recorders_forget(all);
	cr_expect_null(recorders_history(all, &f), "the launch has ended");
	recorders_close(all);
}

/* Block 2 does what block 1 did, so it has recorded nothing itself. */
Test(history, steps_of_another_cluster)
{
	struct finding f = race(1, 0, 1, 0);
	struct recorded *steps;
	struct history *h;

	for (unsigned i = 0; i < 2; i++) {
		f.side[i].space = SP_GLOBAL;
		f.side[i].ctaid[0] = 2 - i;
	}
	all = recorders_open(64);
	nwarps = 2;
	ticket(1, false);
	steps = recorder_end(now, true, NULL, true);
	cr_assert_not_null(steps);
	now = recorder_begin(all, &(struct cluster_info){ .launch = &grid, .id = 2, .nctas = 1,
		.warps_per_cta = 2 });
	recorder_end(now, true, steps, false);
	recorded_put(steps);
	h = recorders_history(all, &f);
	cr_assert_not_null(h);
	cr_assert(h->nsteps && !(h->nsteps % 2));
	for (uint32_t i = 0; i < h->nsteps / 2; i++)
		cr_expect_eq(h->step[i].kind, h->step[h->nsteps / 2 + i].kind, "step %u", i);
	history_drop(h);
	recorders_close(all);
}

Test(history, none_if_disabled)
{
	all = recorders_open(0);
	cr_expect_null(recorder_begin(all, &cluster));
	recorder_event(NULL, &(struct event){ .kind = EV_FENCE });
	cr_expect_null(recorder_end(NULL, true, NULL, true));
	cr_expect_null(recorder_history(NULL, NULL));
	recorders_close(all);
}

Test(history, json_and_back)
{
	struct finding f = race(3, 0, 5, 1);
	struct history *h, *back;
	json_t *first, *again;

	for (uint32_t i = 1; i < 10; i++) /* the sites of the events must exist */
		sample_site("reduce.cu", i, 0, "mbarrier;");
	start(64);
	pipeline(3);
	h = recorder_history(now, &f);
	first = rj_from_history(h, NULL);
	back = rj_history(first, NULL);
	again = rj_from_history(back, NULL);
	cr_expect(json_equal(first, again));
	cr_expect_eq(history_keep(back), back);
	history_drop(back);
	cr_expect_eq(back->nsteps, h->nsteps, "still held");
	history_drop(back);
	history_drop(h);
	json_decref(first);
	json_decref(again);
	stop();
}

/* The checker attaches the history to its finding. */
Test(history, a_finding_gets_its_history)
{
	struct check_config config = { .launch = launch };
	struct cluster_info info = cluster;
	const struct finding *const *found;

	check_policy_default(&config.policy);
	checker = check_open(&config);
	all = recorders_open(64);
	info.recorder = now = recorder_begin(all, &info);
	sink = check_cluster_begin(checker, &info);
	line = 1;
	emit((struct event){ .kind = EV_CTA_BEGIN, .cta_begin = { .threads = 64,
		.shared_bytes = 0x4010 } });
	wr(0, ALL, 0, 4);
	rd(1, ALL, 0, 4);
	check_cluster_end(checker, sink);
	cr_assert_eq(check_findings(checker, &found), 1);
	cr_assert_not_null(found[0]->history);
	cr_expect_eq(found[0]->history->nsteps, 2);
	cr_expect_lt(found[0]->history->side[1], found[0]->history->side[0]);
	check_close(checker);
	recorders_close(all);
}

Test(history, names_of_shared_memory)
{
	static const struct ev_symbol variable[] = { { "tile", 0, 0x4000 }, { "full", 0x4000, 16 },
		{ "done", 0x4010, 8 } };
	static const struct { uint64_t addr; bool mbarrier; const char *name; } want[] = {
		{ 0, false, "tile" }, { 8, false, "tile+0x8" }, { 8, true, "tile+0x8" },
		{ 0x4000, true, "full[0]" }, { 0x4008, true, "full[1]" }, { 0x4008, false, "full+0x8" },
		{ 0x400c, true, "full+0xc" }, { 0x4010, true, "done" }, { 0x5000, true, "" },
	};
	const struct launch_info l = { .symbols = variable, .nsymbols = ARRAY_SIZE(variable) };

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		char name[64];

		launch_symbol(&l, want[i].addr, want[i].mbarrier, name, sizeof name);
		cr_expect_str_eq(name, want[i].name);
	}
}
