/* sched: in which order clusters and warps run.
 *
 * Kernels whose clusters are not coupled (exec_kernel_info): whatever the order, all clusters do
 * the same, unless they race. Workers take clusters in order, each runs one to its end. The first
 * worker is alone for SERIAL_OPS ops, so that small launches are the same for any number of
 * workers even if plain accesses race.
 *
 * Coupled kernels: one worker runs all clusters, and the schedule is a function of launch and
 * seed. A strong access to global memory is a point: writes and atomics park the warp, reads are
 * performed at once. When no warp can continue without a parked access, the scheduler lets one
 * warp perform its access; then all others that this may concern continue, before the next one. So
 * each warp that polls sees each value of the location (an acquire that sees a later release than
 * necessary would order more than the program does, and hide races). What it reads before the value
 * that it waits for is not emitted: it could as well have come later. A cluster starts when those
 * that are resident can only wait; in kernels that poll the first few start before a write is
 * performed, as a thread that comes late polls late; with a seed, earlier.
 *
 * Within a cluster the same holds for shared memory, if the kernel has strong loads of it: a strong
 * write waits until no warp of the cluster can continue without one.
 *
 * The schedule is fair, as a loop that waits may change memory in each iteration, for example if it
 * takes a lock to look: after FAIR_STEPS accesses in which no cluster starts or ends, all get a turn
 * and another one starts; after FAIR_TURNS turns in which clusters progress, a parked access is
 * performed, or a cluster starts if there is none.
 *
 * In a controlled schedule (exec_control), reads park as well and at least CONTROLLED clusters are
 * resident. With a seed, the order of clusters, of warps and of parked accesses is drawn, and some
 * reads park, too. */
#include "clc.h"
#include "reads.h"

#include <sched.h>
#include <stdlib.h>

#define CONTROLLED 8

/* ---- random choices that concern all clusters ---- */

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

void sched_order(struct grid *g)
{
	const bool reverse = g->l->control && g->l->control->reverse;
	uint64_t rng = g->l->seed * 0xd1342543de82ef95ull;

	if (!g->l->seed && !reverse)
		return;
	if (!g->order) {
		g->order = base_alloc(g->nclusters * sizeof *g->order);
		for (uint64_t k = 0; k < g->nclusters; k++)
			g->order[k] = (uint32_t)(reverse ? g->nclusters - 1 - k : k);
	}
	for (uint64_t k = g->nclusters; k > 1 && !reverse; k--) {
		uint64_t other = draw(&rng) % k;
		uint32_t id = g->order[k - 1];

		g->order[k - 1] = g->order[other];
		g->order[other] = id;
	}
}

void sched_begin(struct worker *wk)
{
	const struct exec_launch *l = wk->grid->l;

	wk->rng = ~l->seed * 0xd1342543de82ef95ull;
	wk->window = wk->grid->coupled && l->control ? CONTROLLED
		: wk->grid->coupled && l->seed ? 1u << draw(&wk->rng) % 4 : 1;
	wk->early = wk->grid->coupled && wk->grid->k->info.polls && !l->seed && !l->control;
	wk->last = UINT32_MAX;
	wk->due_from = SIZE_MAX;
	wk->reads = wk->grid->coupled ? reads_open(l, 0) : NULL;
}

void sched_due(struct worker *wk, size_t slot)
{
	if (slot < wk->due_from)
		wk->due_from = slot;
	if (slot >= wk->due_to)
		wk->due_to = slot + 1;
}

/* ---- other launches ---- */

#define SLICE (1u << 22)  /* ops that a launch polls in vain before others run */
#define SLICES 16         /* so often, if it does not poll in vain */
#define ACCESSES 8        /* with a seed: strong accesses from point to point */

void sched_outside(struct worker *wk)
{
	atomic_fetch_add(&wk->grid->work, 1);
	wk->wasted = 0;
	for (unsigned i = 0; i < ARRAY_SIZE(wk->version); i++)
		wk->version[i]++;
	for (size_t i = 0; i < wk->parked.n; i++)
		wk->parked.at[i].futile = false;
	for (size_t i = 0; i < wk->resident.n; i++) {
		wk->resident.at[i].stale = true;
		sched_due(wk, i);
	}
}

static bool at_point(struct worker *wk, bool changed, enum exec_pause *why)
{
	const uint64_t ticks = wk->ticks - wk->paused_ticks;

	if (ticks > (changed ? (uint64_t)SLICE * SLICES : SLICE)) {
		*why = EXEC_PAUSE_SLICE;
		return true;
	}
	*why = EXEC_PAUSE_ACCESS;
	return wk->grid->l->seed && wk->steps - wk->paused_steps >= ACCESSES;
}

static enum exec_resume pause_for(struct worker *wk, enum exec_pause why)
{
	struct grid *g = wk->grid;
	const struct exec_observer *o = g->l->observer;
	const bool changed = atomic_load(&g->work) != wk->paused_work;
	const double began = progress_seconds(), cpu = g->deadline > 0 ? cpu_thread() : 0;
	const enum exec_resume how = o->pause(o->user, why, changed);

	if (g->deadline > 0) {
		g->deadline += progress_seconds() - began;
		wk->cpu_from += cpu_thread() - cpu;
	}
	if (how == EXEC_GIVE_UP)
		atomic_store(&g->stopped, true);
	if (how != EXEC_AS_BEFORE && how != EXEC_TIME)
		sched_outside(wk);
	wk->paused_work = atomic_load(&g->work);
	wk->paused_ticks = wk->ticks;
	wk->paused_steps = wk->steps;
	return how;
}

bool sched_pause(struct worker *wk, bool stuck)
{
	const bool changed = atomic_load(&wk->grid->work) != wk->paused_work;
	enum exec_pause why = EXEC_PAUSE_STUCK;
	enum exec_resume how;

	if (!wk->grid->pauses || (!stuck && !at_point(wk, changed, &why)))
		return false;
	how = pause_for(wk, why);
	return how == EXEC_CHANGED || how == EXEC_GIVE_UP;
}

bool sched_hand_over(struct worker *wk)
{
	enum exec_resume how;

	if (!wk->grid->pauses || atomic_load(&wk->grid->work) == wk->paused_work)
		return false;
	how = pause_for(wk, EXEC_PAUSE_SLICE);
	return how == EXEC_CHANGED || how == EXEC_GIVE_UP;
}

bool sched_vain(struct worker *wk)
{
	if (!wk->grid->pauses) {
		sched_yield();
		return false;
	}
	switch (pause_for(wk, EXEC_PAUSE_VAIN)) {
	case EXEC_TIME:
		break;
	case EXEC_AS_BEFORE:
		return false;
	default:
		wk->passed = 0;
		return true;
	}
	wk->passed++;
	for (size_t i = 0; i < wk->resident.n; i++)
		wk->resident.at[i].c->slept += 1ull << wk->passed;
	return false;
}

/* ---- points ---- */

/* Differs if a strong access has changed one of the places. */
static uint64_t versions(const struct worker *wk, uint64_t places)
{
	uint64_t sum = 0;

	for (; places; places &= places - 1)
		sum += wk->version[__builtin_ctzll(places)];
	return sum;
}

bool sched_point(struct warp *w, uint32_t site, uint64_t places, unsigned mode)
{
	struct worker *wk = w->worker;
	struct cluster *c = w->cluster;

	if (!w->granted && (mode != MODE_READ || c->grid->l->control
		|| (c->grid->l->seed && !(ex_random(c) & 3)))) {
		w->parked = true;
		w->point = (struct xpoint){ places, site, (uint8_t)mode };
		c->parked++;
		vec_push(&wk->parked, ((struct xparked){ .w = w, .polled = w->polled }));
		return false;
	}
	w->granted = false;
	c->changes += mode != MODE_READ;
	if (mode & MODE_READ) {
		w->polled |= places;
		c->polled |= places;
	}
	return true;
}

/* Ops that a strong write counts for. A loop that polls by an atomic ends its turn after two hundred
 * of them, as each costs the checker far more than an op. */
#define CHANGE_OPS 256

bool sched_shared_change(struct warp *w)
{
	struct cluster *c = w->cluster;
	const bool seeded = c->grid->l->seed;

	if (c->grid->polls_shared) {
		if (!w->granted && !(seeded && ex_random(c) & 1)) {
			w->point = (struct xpoint){ .mode = MODE_WRITE };
			w->parked_shared = ++c->parked_shared;
			return false;
		}
		w->granted = false;
	}
	w->budget -= seeded ? 0 : CHANGE_OPS;
	c->changes++;
	return true;
}

bool sched_grant_shared(struct cluster *c)
{
	struct warp *first = NULL;

	for (uint32_t r = 0; c->parked_shared && r < c->info.nctas; r++)
		for (uint32_t i = 0; i < c->cta[r].nwarps; i++) {
			struct warp *w = c->cta[r].warp[i];

			if (w->parked_shared && (!first || w->parked_shared < first->parked_shared))
				first = w;
		}
	if (!first)
		return false;
	first->parked_shared = 0;
	first->granted = true;
	return true;
}

void sched_changed(struct warp *w, uint64_t places)
{
	struct worker *wk = w->worker;

	for (size_t i = 0; i < wk->parked.n; i++)
		wk->parked.at[i].futile &= !(wk->parked.at[i].polled & places);
	for (size_t i = 0; i < wk->resident.n; i++) {
		if (!(wk->resident.at[i].polled & places))
			continue;
		wk->resident.at[i].stale = true;
		sched_due(wk, i);
	}
	for (; places; places &= places - 1)
		wk->version[__builtin_ctzll(places)]++;
	w->polled = 0;
}

bool sched_spun(struct warp *w)
{
	w->spun = !reads_spun(w);
	if (!w->spun)
		return false;
	w->spun_versions = versions(w->worker, w->polled);
	w->spun_work = w->cluster->work;
	return true;
}

/* ---- loads of threads that poll ---- */

void sched_poll_counts(struct cluster *c)
{
	struct xpolled *p = c->poll;

	c->poll = NULL; /* ex_emit() calls this function for an older load */
	p->held = false;
	ex_emit(c, &p->e);
}

static bool same_load(const struct event *a, const struct event *b)
{
	const struct ev_lanes *x = &a->access.at, *y = &b->access.at;

	return a->cta == b->cta && a->warp == b->warp && a->lanes == b->lanes && a->site == b->site
		&& x->base == y->base && x->stride == y->stride && !x->lane == !y->lane
		&& (!x->lane || !memcmp(x->lane, y->lane, LANES * sizeof *x->lane));
}

void sched_load(struct warp *w, const struct event *e)
{
	struct cluster *c = w->cluster;
	struct xpolled *p = &w->poll;

	if (c->poll && !same_load(&p->e, e))
		sched_poll_counts(c);
	p->e = *e;
	if (e->access.at.lane) {
		memcpy(p->addr, e->access.at.lane, sizeof p->addr);
		p->e.access.at.lane = p->addr;
	}
	p->held = true;
	c->poll = p;
}

/* A warp that spins, or that waits for its turn to load there again, probably repeats the load. */
enum run_result sched_run(struct warp *w)
{
	struct cluster *c = w->cluster;
	enum run_result how;

	c->poll = w->poll.held ? &w->poll : NULL;
	how = warp_run(w);
	if (c->poll && how != RUN_SPIN && !(how == RUN_PARKED && w->point.site == w->poll.e.site))
		sched_poll_counts(c);
	c->poll = NULL;
	return how;
}

/* Would the parked access of a polling warp find what it has found before? */
static bool futile(const struct warp *w)
{
	return w->spun && w->spun_work == w->cluster->work
		&& w->spun_versions == versions(w->worker, w->polled);
}

void sched_judge_parked(struct worker *wk, const struct cluster *c, size_t from, bool worked)
{
	if (worked && c->parked > wk->parked.n - from)
		from = 0;
	for (size_t i = from; i < wk->parked.n; i++)
		if (wk->parked.at[i].w->cluster == c)
			wk->parked.at[i].futile = futile(wk->parked.at[i].w);
}

static uint32_t number_of(const struct warp *w)
{
	const struct grid *g = w->cluster->grid;

	return (w->cluster->info.id * g->nctas + w->cta->rank) * g->nwarps + w->id;
}

static size_t parked_at(const struct worker *wk, uint32_t warp)
{
	size_t k = 0;

	while (k < wk->parked.n && number_of(wk->parked.at[k].w) != warp)
		k++;
	return k;
}

/* The access that a controlled schedule names, or else that of the warp that ran last, up to
 * FAIR_STEPS times. n: neither can go on. */
static size_t controlled(const struct worker *wk, const struct exec_control *control)
{
	const size_t n = wk->parked.n;
	size_t k;

	for (size_t i = 0; i < control->n; i++)
		if (control->at[i].step == wk->steps && (k = parked_at(wk, control->at[i].warp)) < n)
			return k;
	k = parked_at(wk, wk->last);
	return k < n && (wk->streak >= FAIR_STEPS || wk->parked.at[k].futile) ? n : k;
}

/* Chooses the parked access to perform next; one that is futile only if all are. */
static size_t choose(struct worker *wk, bool *all_futile)
{
	const struct exec_launch *l = wk->grid->l;
	const size_t n = wk->parked.n;
	const size_t named = l->control ? controlled(wk, l->control) : n;
	const size_t from = l->seed && !l->control ? draw(&wk->rng) % n : 0;

	*all_futile = false;
	if (named < n)
		return named;
	for (size_t k = from; k < n; k++)
		if (!wk->parked.at[k].futile)
			return k;
	for (size_t k = 0; k < from; k++)
		if (!wk->parked.at[k].futile)
			return k;
	*all_futile = true;
	return from;
}

static void record_step(struct worker *wk, struct exec_steps *s, const struct warp *w)
{
	struct exec_step step = { .warp = number_of(w), .ready = (uint32_t)s->ready.n,
		.mode = w->point.mode, .places = w->point.places };

	if (s->n++ >= EXEC_STEPS)
		return;
	for (size_t k = 0; k < wk->parked.n; k++)
		if (wk->parked.at[k].w != w && !wk->parked.at[k].futile)
			vec_push(&s->ready, number_of(wk->parked.at[k].w));
	step.nready = (uint32_t)s->ready.n - step.ready;
	vec_push(&s->step, step);
}

void exec_steps_free(struct exec_steps *s)
{
	vec_free(&s->step);
	vec_free(&s->ready);
}

bool sched_grant(struct worker *wk)
{
	struct warp *w;
	bool all_futile;
	size_t k;

	if (!wk->parked.n)
		return false;
	k = choose(wk, &all_futile);
	if (all_futile && wk->wasted++ > 2 * wk->parked.n)
		return false;
	w = wk->parked.at[k].w;
	if (wk->grid->l->control && wk->grid->l->control->steps)
		record_step(wk, wk->grid->l->control->steps, w);
	wk->streak = number_of(w) == wk->last ? wk->streak + 1 : 0;
	wk->last = number_of(w);
	wk->parked.n--;
	memmove(wk->parked.at + k, wk->parked.at + k + 1,
		(wk->parked.n - k) * sizeof *wk->parked.at);
	w->parked = false;
	w->granted = true;
	w->cluster->parked--;
	wk->resident.at[w->cluster->slot].due = true;
	sched_due(wk, w->cluster->slot);
	wk->steps++;
	return true;
}
