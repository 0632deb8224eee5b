/* cluster: a turn of one cluster, in which its warps run until none can continue or its share of
 * ops is used up. Late asynchronous operations are performed when nothing else in the cluster can
 * progress. Also: what its warps wait for when it hangs, and whether they spin forever. */
#include "internal.h"

#define QUANTUM 50000 /* ops of a warp before the next one runs */
#define TURN 4000000  /* ops of a cluster before the worker checks limits */
#define BESIDE 65536  /* the same in instrumented code, if there are others */
#define ROUNDS 256    /* rounds over its warps before the worker checks limits */

/* ---- a hang ---- */

static void blocked_event(struct warp *w, uint32_t pc, uint32_t mask, const struct xwait *wait,
	enum ev_hang why)
{
	char buf[200] = "";
	const struct xop *x = &w->code[pc];
	struct event e = ex_event(w, x, EV_BLOCKED, mask);

	e.blocked.owner = e.cta;
	if (wait) {
		e.blocked.on = wait->kind;
		e.blocked.addr = wait->addr;
		if (wait->explain)
			wait->explain(w, wait, &e.blocked, buf, sizeof buf);
	} else {
		e.blocked.on = WAIT_SPIN;
		e.blocked.text = why == HANG_TIMEOUT ? "was still running when the time was up"
			: "spins in a loop that changes no state";
	}
	ex_emit(w->cluster, &e);
}

/* The fragments by their lowest lane: their own order depends on what ran last. */
static void blocked_events(struct warp *w, enum ev_hang why)
{
	for (unsigned l = 0; l < LANES; l++)
		for (unsigned i = 0; i < w->nfrag; i++) {
			const struct frag *f = &w->frag[i];

			if (f->mask && (unsigned)__builtin_ctz(f->mask) == l)
				blocked_event(w, f->pc, f->mask, f->blocked ? &f->wait : NULL, why);
		}
}

void cluster_hang(struct cluster *c, enum ev_hang why)
{
	const struct event e = { .kind = EV_HANG, .lanes = FULL, .hang.why = why };

	if (!c->sink)
		return;
	for (uint32_t r = 0; r < c->info.nctas; r++)
		for (uint32_t i = 0; i < c->cta[r].nwarps; i++)
			if (!c->cta[r].warp[i]->done)
				blocked_events(c->cta[r].warp[i], why);
	ex_emit(c, &e);
}

/* ---- running ---- */

static void warp_ended(struct warp *w)
{
	struct cta *cta = w->cta;

	cta->exits++;
	cta->regs_free += (uint64_t)w->maxnreg * LANES;
	cta->running--;
	bar_warp_exit(cta);
	bar_cluster_exit(cta->cluster);
	if (!cta->running)
		context_cta_end(cta);
}

static uint32_t gcd(uint32_t a, uint32_t b)
{
	return b ? gcd(b, a % b) : a;
}

/* The order of the warps in one round: all n, from `start`, `stride` apart. */
struct round { uint32_t n, start, stride; };

static struct round round_of(struct cluster *c)
{
	const uint32_t n = c->info.nctas * c->grid->nwarps;
	struct round r = { n, 0, 1 };

	if (c->grid->l->control && c->grid->l->control->reverse)
		return (struct round){ n, n - 1, n - 1 };
	if (!c->grid->l->seed || n == 1)
		return r;
	r.start = (uint32_t)(ex_random(c) % n);
	do
		r.stride = 1 + (uint32_t)(ex_random(c) % (n - 1));
	while (gcd(r.stride, n) != 1);
	return r;
}

/* The k-th warp of a round, with its budget: long, or as the seed determines. */
static struct warp *next_warp(struct cluster *c, const struct round *r, uint32_t k)
{
	uint32_t i = (uint32_t)((r->start + (uint64_t)k * r->stride) % r->n);
	struct warp *w = c->cta[i / c->grid->nwarps].warp[i % c->grid->nwarps];

	w->budget = c->grid->l->seed ? 1 << ex_random(c) % 12 : QUANTUM;
	return w;
}

/* Nothing can progress: the time limits of the try_waits are over. A thread may test once whether a
 * buffer is free and then go on, so that this is no deadlock yet. */
static bool expire_waits(struct cluster *c)
{
	bool any = false;

	for (uint32_t r = 0; r < c->info.nctas; r++)
		for (uint32_t i = 0; i < c->cta[r].nwarps; i++)
			any |= !c->cta[r].warp[i]->done && warp_expire(c->cta[r].warp[i]);
	return any;
}

enum turn cluster_turn(struct cluster *c)
{
	const bool may_spread = !c->grid->coupled && !c->grid->spread;
	const bool beside = c->grid->l->hardware && c->worker->resident.n > 1;
	const uint64_t end = c->ticks + (beside ? BESIDE : may_spread ? SERIAL_OPS : TURN);
	uint64_t work_before = c->work, polls_before = c->polls;

	if (c->stop)
		return TURN_STOP;
	for (unsigned round = 0; round < ROUNDS && c->ticks < end; round++) {
		const struct round order = round_of(c);
		uint64_t work = c->work;
		bool ran = false, spin = false;

		for (uint32_t k = 0; k < order.n; k++) {
			struct warp *w = next_warp(c, &order, k);

			if (w->done || w->parked || w->parked_shared || !warp_ready(w))
				continue;
			switch (sched_run(w)) {
			case RUN_READY:
			case RUN_BLOCKED:
			case RUN_PARKED:
				ran = true;
				break;
			case RUN_SPIN:
				if (sched_spun(w))
					spin = true;
				else
					ran = true;
				break;
			case RUN_DONE:
				ran = true;
				warp_ended(w);
				break;
			case RUN_STOP:
				return TURN_STOP;
			}
			if (c->stop)
				return TURN_STOP;
		}
		if (!c->running)
			return TURN_DONE;
		if (async_perform_overdue(c) && c->stop)
			return TURN_STOP;
		if (ran || c->work != work || sched_grant_shared(c))
			continue;
		if (c->parked)
			return TURN_PARKED;
		if (async_perform_one(c)) {
			if (c->stop)
				return TURN_STOP;
			continue;
		}
		if (expire_waits(c))
			continue;
		return spin ? TURN_SPIN : TURN_DEAD;
	}
	if (may_spread || c->work != work_before || c->polls == polls_before)
		return TURN_ON;
	if (c->parked)
		return TURN_PARKED;
	/* loops over a barrier that wait for other clusters end here */
	return async_perform_one(c) ? TURN_ON : TURN_SPIN;
}

/* ---- livelock: every state of a spinning warp repeats, and no memory changes ---- */

/* The turn is part of the state. Without it, a warp that ran only one of its fragments would look
 * like one that repeats, although another fragment would see a change. */
__attribute__((no_sanitize("address"))) /* slot_gap.c */
static uint64_t hash_warp(const struct warp *w)
{
	uint64_t h = 0xcbf29ce484222325ull ^ w->polls;
	const l64 *at = (const l64 *)w->r;
	uint32_t least = UINT32_MAX;

	for (unsigned i = 0; i < w->nfrag; i++)
		if (!frag_asleep(&w->frag[i]) && w->frag[i].turn < least)
			least = w->frag[i].turn;
	for (size_t i = 0; i < w->worker->grid->k->reg_bytes / 8; i++)
		h = (h ^ at[i]) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
	for (unsigned i = 0; i < w->nfrag; i++) {
		h = (h ^ w->frag[i].pc) * 0x9e3779b97f4a7c15ull;
		h = (h ^ w->frag[i].mask) * 0x9e3779b97f4a7c15ull, h ^= h >> 29;
		h = (h ^ (frag_asleep(&w->frag[i]) ? 0 : w->frag[i].turn - least))
			* 0x9e3779b97f4a7c15ull;
	}
	return h;
}

/* Brent's cycle detection, one step each call. */
static bool warp_repeats(struct warp *w, uint64_t epoch)
{
	struct xspin *s = &w->spin;
	uint64_t h = hash_warp(w);

	if (s->epoch != epoch + 1 || !s->next) {
		*s = (struct xspin){ .hash = h, .epoch = epoch + 1, .next = 1 };
		return false;
	}
	if (h == s->hash)
		return s->repeats = true;
	if (++s->age < s->next)
		return s->repeats;
	s->hash = h;
	s->age = 0;
	s->next *= 2;
	return s->repeats;
}

static bool cluster_repeats(struct cluster *c, uint64_t epoch)
{
	bool all = true;

	for (uint32_t r = 0; r < c->info.nctas; r++)
		for (uint32_t i = 0; i < c->cta[r].nwarps; i++) {
			struct warp *w = c->cta[r].warp[i];

			if (!w->done && warp_ready(w) && !warp_repeats(w, epoch))
				all = false;
		}
	return all;
}

bool livelocked(struct worker *wk, uint64_t epoch)
{
	struct grid *g = wk->grid;
	bool all = true;

	for (size_t i = 0; i < wk->resident.n; i++)
		all &= cluster_repeats(wk->resident.at[i].c, epoch);
	if (!all)
		return false;
	atomic_store(&wk->stuck_at, epoch + 1);
	for (unsigned i = 0; i < g->threads; i++) {
		uint64_t at = atomic_load(&g->worker[i].stuck_at);

		if (at != UINT64_MAX && at != epoch + 1)
			return false;
	}
	return atomic_load(&g->work) == epoch;
}
