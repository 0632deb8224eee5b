/* A launch of clusters that do nearly the same has the same findings, with the same numbers, whether
 * clusters that repeat another one are checked or compared (libconsan/check/repeat.h). */
#include <criterion/criterion.h>

#include "libconsan/finding/recorder.h"
#include "tests/common/event_dsl.h"
#include "tests/common/random.h"

#define WARPS 3u
#define STEPS 60u
#define CLUSTERS 12u
#define BUFFER 0x7f3200000000ull
#define FULL 0x4000u

/* One step of the program, of all clusters but those that differ there. */
struct step {
	uint32_t what, warp, lanes, place, mode;
	bool shared;             /* clusters access the same global memory */
};

/* calm: fewer races, up to 3 */
static struct step draw(unsigned calm)
{
	static const uint32_t lanes[] = { ALL, ALL, ALL, 1, 2, 0xffff };
	struct step x = { rnd(14), rnd(WARPS), lanes[rnd(6)], rnd(8), 1 + rnd(2), !rnd(12) };

	if (calm < 3 && rnd(16) >= calm * 7)
		return x;
	x.lanes = ALL;
	x.place = x.warp;
	if (x.what > 10)
		x.mode = MODE_READ;
	if (x.what == 13)
		x.what = 12;
	if (x.what == 1 || x.what == 6 || x.what == 8 || x.what == 9)
		x.what = 0;
	return x;
}

static void global_(uint32_t cluster, const struct step *x)
{
	const uint64_t base = BUFFER + (x->shared ? 0 : (1 + cluster) * 4096ull) + x->place * 128;
	uint64_t list[32];

	for (unsigned l = 0; l < 32; l++)
		list[l] = base + 4 * (l ^ 5);
	emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)x->warp, .lanes = x->lanes,
		.access = { .space = SP_GLOBAL, .mode = x->mode, .bytes = 4,
		.sem = x->what == 13 ? SEM_VOLATILE : SEM_WEAK, .scope = x->what == 13 ? SCOPE_SYS : SCOPE_NONE,
		.at = { .base = base, .stride = 4, .lane = x->what == 12 ? list : NULL } } });
}

static void bulk_(uint32_t cluster, const struct step *x, uint32_t number)
{
	const struct ev_gspan span = { BUFFER + (1 + cluster) * 4096ull + x->place * 128, 128 };
	const uint32_t lane = x->lanes & -x->lanes;

	if (x->mode == MODE_READ) {
		emit((struct event){ .kind = EV_BULK, .warp = (uint16_t)x->warp, .lanes = lane, .bulk = {
			.mode = MODE_READ, .addr = x->place * 128, .bytes = 128, .mbarrier = EV_NO_MBARRIER,
			.global = { &span, 1 } } });
		emit((struct event){ .kind = EV_BULK_COMMIT, .warp = (uint16_t)x->warp, .lanes = lane });
		emit((struct event){ .kind = EV_BULK_WAIT, .warp = (uint16_t)x->warp, .lanes = lane });
		return;
	}
	emit((struct event){ .kind = EV_MBARRIER_ARRIVE, .warp = (uint16_t)x->warp, .lanes = lane,
		.mbarrier_arrive = { .addr = FULL, .arrivals = 1, .tx_count = 128, .sem = SEM_RELEASE,
		.scope = SCOPE_CTA, .flags = ARRIVE_EXPECT_TX } });
	emit((struct event){ .kind = EV_BULK, .warp = (uint16_t)x->warp, .lanes = lane, .bulk = {
		.mode = MODE_WRITE, .addr = x->place * 128, .bytes = 128, .mbarrier = FULL, .tx_count = 128,
		.async_op = number, .global = { &span, 1 } } });
	emit((struct event){ .kind = EV_MBARRIER_SIGNAL, .warp = (uint16_t)x->warp,
		.mbarrier_signal = { .async_op = number, .addr = FULL, .tx_count = 128 } });
}

/* All lanes of a step write or read the row of shared memory of its place. */
static void shared_(const struct step *x)
{
	uint64_t list[32];

	for (unsigned l = 0; l < 32; l++)
		list[l] = x->place * 128 + 16 * (l * 5 % 8) + 4 * (l / 8);
	emit((struct event){ .kind = EV_ACCESS, .warp = (uint16_t)x->warp, .lanes = x->lanes,
		.access = { .space = SP_SHARED, .mode = x->mode, .bytes = 4,
		.at = { .base = x->place * 128, .stride = 4, .lane = x->what == 1 ? list : NULL } } });
}

static void cp_async_(uint32_t cluster, const struct step *x)
{
	uint64_t source[32];

	for (unsigned l = 0; l < 32; l++)
		source[l] = BUFFER + (1 + cluster) * 4096ull + x->place * 512 + 16 * l;
	emit((struct event){ .kind = EV_CP_ASYNC, .warp = (uint16_t)x->warp, .lanes = x->lanes,
		.cp_async = { .at = { .base = x->place * 512, .stride = 16 }, .source = source, .bytes = 16,
		.source_bytes = 16, .readers = x->lanes } });
	emit((struct event){ .kind = EV_CP_ASYNC_COMMIT, .warp = (uint16_t)x->warp, .lanes = x->lanes });
}

static void perform(uint32_t cluster, const struct step *x, uint32_t number)
{
	line = 1 + number;
	switch (x->what) {
	case 0: case 1: case 2:
		shared_(x);
		break;
	case 3: case 4:
		bar_all_();
		break;
	case 5:
		emit((struct event){ .kind = EV_WARP_SYNC, W(x->warp), .lanes = x->lanes,
			.warp_sync.mask = x->lanes });
		break;
	case 6:
		cp_async_(cluster, x);
		break;
	case 7:
		emit((struct event){ .kind = EV_CP_ASYNC_WAIT, W(x->warp), .lanes = x->lanes,
			.cp_async_wait.pending = x->place % 2 });
		break;
	case 8: case 9:
		bulk_(cluster, x, number);
		break;
	case 10:
		emit((struct event){ .kind = EV_FENCE_PROXY, W(x->warp), .lanes = x->lanes,
			.fence_proxy.proxy = PROXY_ASYNC });
		break;
	default:
		global_(cluster, x);
	}
}

struct outcome {
	size_t n;
	struct finding f[200];
	struct history *history[200];
	struct check_stats stats;
};

/* Cluster i performs other[i] in place of the step at[i], and ends at last[i]. */
struct program {
	struct step step[STEPS], other[CLUSTERS];
	uint32_t at[CLUSTERS], last[CLUSTERS];
};

static void run(const struct program *p, bool repeat, struct outcome *out)
{
	const struct finding *const *f;
	struct recorders *recorders = recorders_open(48);
	struct check_config config = { .global = true, .repeat = repeat,
		.launch = { .kernel = "test", .grid = { CLUSTERS, 1, 1 }, .block = { WARPS * 32, 1, 1 },
			.shared_static = 0x8000, .sm = 90, .apart = true } };

	check_policy_default(&config.policy);
	checker = check_open(&config);
	nwarps = WARPS;
	for (uint32_t i = 0; i < CLUSTERS; i++) {
		struct cluster_info info = { .launch = &config.launch, .id = i, .nctas = 1,
			.warps_per_cta = WARPS };

		info.recorder = recorder_begin(recorders, &info);
		sink = check_cluster_begin(checker, &info);
		line = 1;
		emit((struct event){ .kind = EV_CTA_BEGIN,
			.cta_begin = { .linear_id = i, .threads = WARPS * 32, .shared_bytes = 0x8000 } });
		mb_init(0, 0, FULL, 1);
		bar_all_();
		for (uint32_t k = 0; k < p->last[i]; k++)
			perform(i, k == p->at[i] ? &p->other[i] : &p->step[k], k);
		line = 1;
		end_all_();
		check_cluster_end(checker, sink);
	}
	out->n = check_findings(checker, &f);
	for (size_t i = 0; i < out->n && i < ARRAY_SIZE(out->f); i++) {
		out->f[i] = *f[i];
		out->history[i] = f[i]->history ? history_keep(f[i]->history)
			: recorders_history(recorders, f[i]);
	}
	check_stats(checker, &out->stats);
	check_close(checker);
	recorders_close(recorders);
}

static bool same_step(const struct history_step *x, const struct history_step *y)
{
	return x->at == y->at && x->kind == y->kind && x->site == y->site && x->cta == y->cta
		&& x->warp == y->warp && x->lanes == y->lanes && x->addr == y->addr && x->phase == y->phase
		&& x->count == y->count && x->repeat == y->repeat && x->completes == y->completes;
}

static bool same_history(const struct history *x, const struct history *y)
{
	bool same = !x == !y;

	if (!x || !y)
		return same;
	same = x->nsteps == y->nsteps && x->before == y->before && x->other == y->other
		&& x->side[0] == y->side[0] && x->side[1] == y->side[1] && x->nmbarriers == y->nmbarriers;
	for (uint32_t i = 0; i < x->nsteps && same; i++)
		same = same_step(&x->step[i], &y->step[i]);
	return same;
}

static void expect_same(const struct outcome *a, const struct outcome *b, uint64_t number)
{
	cr_assert_eq(a->n, b->n, "case %llu: %zu and %zu findings", (unsigned long long)number, a->n, b->n);
	for (size_t i = 0; i < a->n && i < ARRAY_SIZE(a->f); i++) {
		const struct finding *f = &a->f[i], *g = &b->f[i];
		const char *code = rule_get(f->rule)->code;

		cr_assert(f->rule == g->rule && f->severity == g->severity && f->seen == g->seen
			&& f->clusters == g->clusters, "case %llu: %s %u times in %u clusters, %s %u in %u",
			(unsigned long long)number, code, (unsigned)f->seen, (unsigned)f->clusters,
			rule_get(g->rule)->code, (unsigned)g->seen, (unsigned)g->clusters);
		cr_assert(!memcmp(f->side, g->side, sizeof f->side) && !strcmp(f->edge, g->edge)
			&& !strcmp(f->hint, g->hint) && f->order == g->order, "case %llu: %s differs: %s",
			(unsigned long long)number, code, f->edge);
		cr_assert(same_history(a->history[i], b->history[i]), "case %llu: %s has another history: %s",
			(unsigned long long)number, code, f->edge);
		history_drop(a->history[i]);
		history_drop(b->history[i]);
	}
	cr_assert(a->stats.events == b->stats.events && a->stats.accesses == b->stats.accesses
		&& a->stats.async_ops == b->stats.async_ops, "case %llu: statistics", (unsigned long long)number);
}

Test(repeat, changes_nothing)
{
	static struct outcome each, repeated;
	const char *runs = getenv("REPEAT_RUNS");
	struct program p;
	size_t findings = 0;

	for (uint64_t n = 1; n <= (runs ? strtoull(runs, NULL, 10) : 3000); n++) {
		const unsigned calm = n % 4;
		const uint32_t from = n % 3 ? 0 : rnd(STEPS - 8); /* a short program */

		seed = n;
		for (uint32_t k = 0; k < STEPS; k++)
			p.step[k] = draw(calm);
		for (uint32_t k = 0; k < from; k++)
			p.step[k].what = 5;
		for (uint32_t i = 0; i < CLUSTERS; i++) {
			p.other[i] = draw(calm && rnd(3) ? calm : 0);
			p.at[i] = rnd(3) ? STEPS : rnd(STEPS);
			p.last[i] = rnd(4) ? STEPS : STEPS - rnd(8);
		}
		run(&p, false, &each);
		run(&p, true, &repeated);
		expect_same(&each, &repeated, n);
		findings += each.n;
	}
	cr_expect_gt(findings, 0);
}

/* The reads of clusters that have not ended count, too, although they are recorded later. */
Test(repeat, races_so_far)
{
	static const struct step read = { .what = 11, .lanes = ALL, .mode = MODE_READ, .shared = true };
	static const struct step write = { .what = 11, .lanes = ALL, .mode = MODE_WRITE, .shared = true };
	struct check_config config = { .global = true, .launch = { .kernel = "test", .grid = { 2, 1, 1 },
		.block = { 32, 1, 1 }, .sm = 90, .apart = true } };
	struct event_sink *sinks[2];

	check_policy_default(&config.policy);
	checker = check_open(&config);
	nwarps = 1;
	for (uint32_t i = 0; i < 2; i++) {
		sink = sinks[i] = check_cluster_begin(checker, &(struct cluster_info){
			.launch = &config.launch, .id = i, .nctas = 1, .warps_per_cta = 1 });
		line = 1;
		emit((struct event){ .kind = EV_CTA_BEGIN, .cta_begin = { .linear_id = i, .threads = 32 } });
		line = 2 + i;
		global_(i, i ? &read : &write);
	}
	cr_expect(check_crossed(checker));
	for (uint32_t i = 0; i < 2; i++)
		check_cluster_end(checker, sinks[i]);
	check_close(checker);
}
