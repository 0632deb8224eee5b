/* worker: starts clusters, gives them turns, and ends them, in the order that sched.c says. */
#include "clc.h"
#include "reads.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#define WAITERS 8 /* clusters that may be resident before the first of them writes a flag */
#define EAGER 64 /* clusters that poll again after one write; of more, a part */
#define FAIR_TURNS 8
#define REPEATS 8 /* turns of all residents in vain until their states are compared */
#define BESIDE_OPS (1u << 18) /* see beside() */
#define FULL_EVERY 32 /* clusters start before all residents get a turn, also those that poll what
			 only a plain store can have changed */

/* The worker's clusters have had their turns before others start: those that started are a
 * deterministic set. The rest starts in ascending order, so that a failure cuts off the same ones
 * whichever worker runs them. */
static int ascending(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static const int own_fault[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

static void *thread_main(void *arg)
{
	own_thread_begin();
	worker_run(arg);
	own_thread_end();
	return NULL;
}

static void spread(struct grid *g)
{
	const uint64_t next = atomic_load(&g->next);
	const struct exec_observer *o = g->l->observer;
	sigset_t all, old;

	if (o && o->disputed && o->disputed(o->user))
		return;
	if (g->order && next < g->nclusters)
		qsort(g->order + next, g->nclusters - next, sizeof *g->order, ascending);
	g->spread = true;
	/* signals are for the program's threads: a handler may end the thread that it runs on */
	sigfillset(&all);
	for (size_t i = 0; i < ARRAY_SIZE(own_fault); i++)
		sigdelset(&all, own_fault[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	g->threads = g->jobs;
	for (unsigned i = 1; i < g->jobs; i++) {
		struct worker *wk = &g->worker[i];

		wk->started = !pthread_create(&wk->thread, NULL, thread_main, wk);
		if (!wk->started) /* with fewer threads the launch takes longer */
			atomic_store(&wk->stuck_at, UINT64_MAX);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static bool cut_off(struct grid *g, uint64_t id)
{
	return id >= atomic_load(&g->cut);
}

/* The next cluster to start, and its place; false: there is none. Clusters of coupled kernels may
 * start although their place is taken: the others may wait for them. */
static bool next_cluster(struct grid *g, uint64_t *id, uint32_t *place)
{
	const uint64_t k = atomic_load(&g->next) < g->nclusters ? atomic_fetch_add(&g->next, 1)
		: g->nclusters;

	*place = 0;
	if (k >= g->nclusters)
		return g->coupled && clc_waiting(g, place) && clc_next(g, *place, id);
	*id = grid_cluster(g, k);
	*place = clc_place(g, *id);
	return true;
}

static bool admit(struct worker *wk)
{
	struct grid *g = wk->grid;
	uint32_t place;
	uint64_t id;

	if ((atomic_load(&g->next) >= g->nclusters && !(g->coupled && g->clc))
		|| atomic_load(&g->hang))
		return false;
	if (atomic_fetch_add(&g->resident, 1) >= g->max_resident
		|| !next_cluster(g, &id, &place) || cut_off(g, id)) {
		atomic_fetch_sub(&g->resident, 1);
		return false;
	}
	atomic_store(&wk->stuck_at, 0);
	wk->fair_at = wk->steps;
	context_begin(wk, id, place);
	return true;
}

/* finished: another cluster starts in its place if one waits there. */
static void end(struct worker *wk, struct cluster *c, bool finished)
{
	struct grid *g = wk->grid;
	const uint32_t place = c->place;
	uint64_t id;
	size_t n = 0;

	for (size_t i = 0; c->parked && i < wk->parked.n; i++)
		if (wk->parked.at[i].w->cluster != c)
			wk->parked.at[n++] = wk->parked.at[i];
	if (c->parked)
		wk->parked.n = n;
	wk->fair_at = wk->steps;
	wk->beside_at = wk->ticks;
	context_end(c, finished);
	if (!finished || !clc_next(g, place, &id) || cut_off(g, id))
		return;
	atomic_fetch_add(&g->resident, 1);
	context_begin(wk, id, place);
}

/* Ends all resident clusters as hung. */
static void end_as_hung(struct worker *wk, enum ev_hang why)
{
	while (wk->resident.n) {
		struct cluster *c = wk->resident.at[0].c;

		cluster_hang(c, why);
		end(wk, c, false);
	}
}

/* Ends all resident clusters, which are not to blame. */
static void end_all(struct worker *wk)
{
	while (wk->resident.n)
		end(wk, wk->resident.at[0].c, false);
}

/* Of a partial launch: does any cluster poll global memory, which what does not run may write? */
static bool waits_outside(const struct worker *wk)
{
	bool waits = wk->grid->k->info.polls;

	for (size_t i = 0; i < wk->resident.n && !waits; i++)
		waits = wk->resident.at[i].polled != 0;
	return waits && wk->grid->l->partial;
}

/* A worker has something to do all the time, or waits for the checker of its events: so its
 * processor time is about how long the launch takes on a machine that has nothing else to do. The
 * clock is read first, as that needs no system call. */
static bool is_late(const struct worker *wk)
{
	const struct grid *g = wk->grid;

	return g->deadline > 0 && progress_seconds() > g->deadline
		&& cpu_thread() - wk->cpu_from > g->l->timeout;
}

static bool too_many(const struct worker *wk)
{
	const uint64_t most = wk->grid->l->most;

	return most && wk->ticks > most;
}

/* Checks the time limit and whether the observer stops the launch. */
static void check_limits(struct worker *wk)
{
	struct grid *g = wk->grid;
	const struct exec_observer *o = g->l->observer;

	if (is_late(wk))
		atomic_store(&g->timeout, true);
	if (too_many(wk))
		atomic_store(&g->limited, true);
	if ((o && o->stop && o->stop(o->user)) || too_many(wk))
		atomic_store(&g->stopped, true);
}

/* A turn of the cluster. True: something has progressed. */
static bool turn(struct worker *wk, struct cluster *c)
{
	struct grid *g = wk->grid;
	const uint64_t work = c->work, ticks = c->ticks;
	const size_t parked = wk->parked.n;
	enum turn t;

	if (cut_off(g, c->info.id) && !atomic_load(&g->hang)) {
		end(wk, c, false);
		return true;
	}
	c->polled = wk->resident.at[c->slot].polled = 0;
	t = cluster_turn(c);
	wk->ticks += c->ticks - ticks;
	wk->resident.at[c->slot] = (struct xresident){ c, c->polled, t == TURN_ON, false };
	sched_judge_parked(wk, c, parked, c->work != work);
	if (c->work != work)
		atomic_fetch_add(&g->work, 1);
	switch (t) {
	case TURN_ON:
		return true;
	case TURN_PARKED:
	case TURN_SPIN:
		return c->work != work;
	case TURN_DONE:
		end(wk, c, true);
		return true;
	case TURN_DEAD:
		cluster_hang(c, HANG_DEADLOCK);
		grid_fail(g, c->info.id, EXEC_HANG, 0, "deadlock");
		end(wk, c, false);
		return true;
	case TURN_STOP:
		end(wk, c, false);
		return true;
	}
	return true;
}

/* Gives turns to the clusters that may progress, or to all. True: something has progressed. */
static bool turns(struct worker *wk, bool all)
{
	const uint64_t parts = wk->resident.n / EAGER + 1;
	const size_t from = all ? 0 : wk->due_from, to = all ? SIZE_MAX : wk->due_to;
	bool progress = false;

	wk->due_from = SIZE_MAX;
	wk->due_to = 0;
	for (size_t i = from; i < wk->resident.n && (i < to || i < wk->due_to);) {
		const struct xresident *r = &wk->resident.at[i];
		struct cluster *c = r->c;

		if (all || r->due || (r->stale && (c->info.id + wk->steps) % parts == 0))
			progress |= turn(wk, c);
		r = &wk->resident.at[i];
		if (i == wk->resident.n || r->c != c)
			continue; /* it has ended */
		if (r->due || r->stale)
			sched_due(wk, i);
		i++;
	}
	return progress;
}

/* Is it the turn of those that the residents that progress keep waiting? */
static bool fair(struct worker *wk, bool progress, bool *all)
{
	wk->busy = progress ? wk->busy + 1 : 0;
	if (wk->busy >= FAIR_TURNS) {
		wk->busy = 0;
		*all = false;
		return sched_grant(wk) || admit(wk);
	}
	if (wk->steps - wk->fair_at < FAIR_STEPS)
		return false;
	wk->fair_at = wk->steps;
	admit(wk);
	return *all = true;
}

/* Warps that are parked, and poll in vain, may wait for an asynchronous operation of their own
 * cluster, which takes effect when nothing else can run. */
static bool perform_async(struct worker *wk)
{
	for (size_t i = 0; i < wk->resident.n; i++) {
		struct cluster *c = wk->resident.at[i].c;

		if (!async_perform_one(c))
			continue;
		atomic_fetch_add(&wk->grid->work, 1);
		sched_judge_parked(wk, c, 0, true);
		return true;
	}
	return false;
}

/* Of instrumented code, whose clusters are not coupled, loops that wait may change memory, as those
 * of atomics do and the records of their iterations. If no cluster has ended for long, others may be
 * what they wait for: as many start as there are, to run beside them as on a GPU. */
static void beside(struct worker *wk)
{
	if (!wk->grid->l->hardware || wk->ticks - wk->beside_at < BESIDE_OPS)
		return;
	wk->beside_at = wk->ticks;
	for (size_t n = wk->resident.n; n && admit(wk); n--)
		;
}

void worker_run(struct worker *wk)
{
	struct grid *g = wk->grid;
	unsigned idle = 0;
	bool all = !g->coupled, stuck;

	sched_begin(wk);
	wk->cpu_from = cpu_thread();
	for (;;) {
		uint64_t epoch = atomic_load(&g->work);
		bool progress;

		while (wk->resident.n < wk->window && admit(wk))
			;
		progress = turns(wk, all);
		sched_pause(wk, false);
		check_limits(wk);
		if (atomic_load(&g->timeout)) {
			if (g->l->limited || atomic_load(&g->waits))
				end_all(wk);
			else
				end_as_hung(wk, HANG_TIMEOUT);
			break;
		}
		if (atomic_load(&g->stopped)) {
			end_all(wk);
			break;
		}
		if (atomic_load(&g->hang)) {
			end_as_hung(wk, HANG_LIVELOCK);
			break;
		}
		if (!g->coupled && !g->spread && wk->ticks > SERIAL_OPS
			&& atomic_load(&g->cut) == UINT64_MAX)
			spread(g);
		if (atomic_load(&g->work) != epoch)
			wk->wasted = wk->passed = idle = 0;
		if (g->coupled && fair(wk, progress, &all))
			continue;
		beside(wk);
		if (progress && wk->resident.n) {
			all = !g->coupled;
			continue;
		}
		if (wk->early && wk->resident.n < WAITERS && admit(wk)) {
			wk->wasted = idle = 0;
			continue;
		}
		if (sched_grant(wk)) {
			all = false;
			continue;
		}
		if ((all || wk->resident.n % FULL_EVERY) && admit(wk)) {
			all = !g->coupled;
			wk->wasted = idle = 0;
			continue;
		}
		if (!all) {
			all = true;
			continue;
		}
		wk->wasted = 0;
		if (perform_async(wk)) {
			idle = 0;
			continue;
		}
		if (!wk->resident.n) {
			/* no capacity, but clusters left: others must end first */
			if (atomic_load(&g->next) >= g->nclusters
				|| cut_off(g, grid_cluster(g, atomic_load(&g->next))))
				break;
			atomic_store(&wk->stuck_at, UINT64_MAX);
			sched_yield();
			continue;
		}
		if (++idle == 1 && sched_hand_over(wk)) {
			all = true;
			continue;
		}
		if (idle <= REPEATS)
			continue;
		stuck = livelocked(wk, epoch) || wk->passed > TIME_MOST;
		if (stuck ? sched_pause(wk, true) : sched_vain(wk)) {
			idle = 0;
			all = true;
			continue;
		}
		if (!stuck)
			continue;
		if (waits_outside(wk)) {
			atomic_store(&g->waits, true);
			atomic_store(&g->stopped, true);
			continue;
		}
		atomic_store(&g->hang, true);
		grid_fail(g, wk->resident.at[0].c->info.id, EXEC_HANG, 0,
			"livelock: all runnable warps spin in loops that change no state");
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
	vec_free(&wk->parked);
	vec_free(&wk->resident);
	free(wk->seen);
	free(wk->scratch);
	wg_book_close(&wk->wg_book);
	tc_book_close(&wk->tc_book);
	reads_close(wk->reads);
}
