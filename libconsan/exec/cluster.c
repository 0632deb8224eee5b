/* cluster: worker threads, and the clusters that are resident on each. A worker runs one cluster to
 * its end. If the cluster only spins, the other resident clusters get a turn, or a new one is
 * admitted while the emulated device has capacity. Late asynchronous operations are performed when
 * nothing else can progress. */
#include "internal.h"

#include <sched.h>
#include <stdlib.h>

#define QUANTUM 50000 /* ops of a warp before the next one runs */
#define TURN 4000000  /* ops of a cluster before the worker checks limits */
#define ROUNDS 256    /* rounds over its warps before the worker checks limits */

/* ---- a hang ---- */

static void blocked_event(struct warp *w, uint32_t pc, uint32_t mask, const struct xwait *wait)
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
		e.blocked.text = "spins in a loop that changes no state";
	}
	ex_emit(w->cluster, &e);
}

static void hang_events(struct cluster *c, enum ev_hang why)
{
	if (!c->sink)
		return;
	for (uint32_t r = 0; r < c->info.nctas; r++)
		for (uint32_t i = 0; i < c->cta[r].nwarps; i++) {
			struct warp *w = c->cta[r].warp[i];

			for (unsigned f = 0; !w->done && f < w->nfrag; f++)
				blocked_event(w, w->frag[f].pc, w->frag[f].mask,
					w->frag[f].blocked ? &w->frag[f].wait : NULL);
		}
	struct event e = { .kind = EV_HANG, .lanes = FULL, .hang.why = why };
	ex_emit(c, &e);
}

/* ---- running ---- */

enum turn { TURN_ON, TURN_SPIN, TURN_DONE, TURN_DEAD, TURN_STOP };

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

/* Chooses the next warp and its budget: in order and long, or as the seed determines. */
static struct warp *next_warp(struct cluster *c, uint32_t k, uint64_t start)
{
	uint32_t n = c->info.nctas * c->grid->nwarps, i = (uint32_t)((k + start) % n);
	struct warp *w = c->cta[i / c->grid->nwarps].warp[i % c->grid->nwarps];

	w->budget = c->grid->l->seed ? 1 << ex_random(c) % 12 : QUANTUM;
	return w;
}

static enum turn cluster_turn(struct cluster *c)
{
	uint64_t work_before = c->work, polls_before = c->polls, end = c->ticks + TURN;

	for (unsigned round = 0; round < ROUNDS && c->ticks < end; round++) {
		uint64_t work = c->work, start = c->grid->l->seed ? ex_random(c) >> 32 : 0;
		bool ran = false, spin = false;

		for (uint32_t k = 0; k < c->info.nctas * c->grid->nwarps; k++) {
			struct warp *w = next_warp(c, k, start);

			if (w->done || !warp_ready(w))
				continue;
			switch (warp_run(w)) {
			case RUN_READY:
			case RUN_BLOCKED:
				ran = true;
				break;
			case RUN_SPIN:
				spin = true;
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
		if (ran || c->work != work)
			continue;
		if (async_perform_one(c)) {
			if (c->stop)
				return TURN_STOP;
			continue;
		}
		return spin ? TURN_SPIN : TURN_DEAD;
	}
	if (c->work != work_before || c->polls == polls_before)
		return TURN_ON;
	/* loops over a barrier that wait for other clusters end here */
	return async_perform_one(c) ? TURN_ON : TURN_SPIN;
}

/* ---- livelock: every state of a spinning warp repeats, and no memory changes ---- */

/* The turn is part of the state. Without it, a warp that ran only one of its fragments would look
 * like one that repeats, although another fragment would see a change. */
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

/* All residents of this worker spin. True if that holds for all workers, permanently. */
static bool livelocked(struct worker *wk, uint64_t epoch)
{
	struct grid *g = wk->grid;
	bool all = true;

	for (struct cluster *c = wk->resident; c; c = c->next)
		all &= cluster_repeats(c, epoch);
	if (!all)
		return false;
	atomic_store(&wk->stuck_at, epoch + 1);
	for (unsigned i = 0; i < g->jobs; i++) {
		uint64_t at = atomic_load(&g->worker[i].stuck_at);

		if (at != UINT64_MAX && at != epoch + 1)
			return false;
	}
	return atomic_load(&g->work) == epoch;
}

/* ---- the worker ---- */

static bool admit(struct worker *wk)
{
	struct grid *g = wk->grid;
	uint64_t id, k;

	if (atomic_load(&g->next) >= g->nclusters || atomic_load(&g->hang))
		return false;
	if (atomic_fetch_add(&g->resident, 1) >= g->max_resident) {
		atomic_fetch_sub(&g->resident, 1);
		return false;
	}
	k = atomic_fetch_add(&g->next, 1);
	id = k < g->nclusters ? grid_cluster(g, k) : 0;
	if (k >= g->nclusters || id > atomic_load(&g->cut)) {
		atomic_fetch_sub(&g->resident, 1);
		return false;
	}
	atomic_store(&wk->stuck_at, 0);
	context_begin(wk, id);
	return true;
}

/* Ends all resident clusters as hung. */
static void end_as_hung(struct worker *wk, enum ev_hang why)
{
	while (wk->resident) {
		hang_events(wk->resident, why);
		context_end(wk->resident, false);
	}
}

/* Checks the deadline and whether the observer stops the launch. */
static void check_limits(struct worker *wk)
{
	struct grid *g = wk->grid;
	const struct exec_observer *o = g->l->observer;

	if (g->deadline > 0 && grid_now() > g->deadline)
		atomic_store(&g->timeout, true);
	if (o && o->stop && o->stop(o->user))
		atomic_store(&g->stopped, true);
}

static bool turn(struct worker *wk, struct cluster *c)
{
	struct grid *g = wk->grid;
	uint64_t work = c->work;
	enum turn t;

	if (c->info.id > atomic_load(&g->cut)) {
		context_end(c, false);
		return true;
	}
	t = cluster_turn(c);
	if (c->work != work)
		atomic_fetch_add(&g->work, 1);
	switch (t) {
	case TURN_ON:
		return true;
	case TURN_SPIN:
		return c->work != work;
	case TURN_DONE:
		context_end(c, true);
		return true;
	case TURN_DEAD:
		hang_events(c, HANG_DEADLOCK);
		grid_fail(g, c->info.id, EXEC_HANG, 0, "deadlock");
		context_end(c, false);
		return true;
	case TURN_STOP:
		context_end(c, false);
		return true;
	}
	return true;
}

void worker_run(struct worker *wk)
{
	struct grid *g = wk->grid;
	unsigned idle = 0;

	for (;;) {
		uint64_t epoch = atomic_load(&g->work);
		bool progress = false;

		for (struct cluster *c = wk->resident, *next; c; c = next) {
			next = c->next;
			progress |= turn(wk, c);
		}
		check_limits(wk);
		if (atomic_load(&g->timeout) || atomic_load(&g->stopped)) {
			end_as_hung(wk, HANG_TIMEOUT);
			break;
		}
		if (atomic_load(&g->hang)) {
			end_as_hung(wk, HANG_LIVELOCK);
			break;
		}
		if (progress && wk->resident) {
			idle = 0;
			continue;
		}
		if (admit(wk)) {
			idle = 0;
			continue;
		}
		if (!wk->resident) {
			/* no capacity, but clusters left: others must end first */
			if (atomic_load(&g->next) >= g->nclusters ||
				grid_cluster(g, atomic_load(&g->next)) > atomic_load(&g->cut))
				break;
			atomic_store(&wk->stuck_at, UINT64_MAX);
			sched_yield();
			continue;
		}
		if (++idle > 8 && livelocked(wk, epoch)) {
			atomic_store(&g->hang, true);
			grid_fail(g, wk->resident->info.id, EXEC_HANG, 0,
				"livelock: all runnable warps spin in loops that change no state");
		} else if (idle > 8)
			sched_yield();
	}
	atomic_store(&wk->stuck_at, UINT64_MAX);
}

void worker_free(struct worker *wk)
{
	for (struct cluster *c = wk->idle, *next; c; c = next) {
		next = c->next;
		context_free(c);
	}
	for (size_t i = 0; i < ARRAY_SIZE(wk->pool); i++)
		for (struct pool_block *b = wk->pool[i], *next; b; b = next) {
			next = b->next;
			free(b);
		}
	free(wk->seen);
	free(wk->scratch);
	wg_book_close(&wk->wg_book);
}
