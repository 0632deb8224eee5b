/* fence: relaxed accesses with the fences around them, and proxy fences. */
#include "foreign.h"
#include "global.h"
#include "tcgen05.h"

#include <stdlib.h>
#include <string.h>

/* ---- relaxed accesses and the fences around them (A07, B25) ---- */

/* Of so many observations the location is kept; further ones wait for a fence only. */
#define MAX_AT 32u

static struct observed *find_observed(struct warp *w, const struct observed *like)
{
	for (size_t i = 0; i < w->observed.n; i++) {
		struct observed *o = &w->observed.at[i];

		if (o->lanes == like->lanes && o->min_scope == like->min_scope && o->at == like->at
			&& o->size == like->size && o->sc == like->sc && o->ticket == like->ticket)
			return o;
	}
	return NULL;
}

/* Removes lanes from entry i. True: the entry is gone, and another has taken its place. */
static bool observed_drop(struct cluster *c, struct warp *w, size_t i, uint32_t lanes)
{
	struct observed *o = &w->observed.at[i];

	o->lanes &= ~lanes;
	if (o->lanes)
		return false;
	frontier_put(&c->space, o->f);
	*o = w->observed.at[--w->observed.n];
	return true;
}

void warp_observe_like(struct cluster *c, struct warp *w, const struct observed *like,
	const struct frontier *f)
{
	struct observed *o = find_observed(w, like);

	w->syncs++;
	if (o) {
		frontier_join(&c->space, o->f, f);
		return;
	}
	vec_push(&w->observed, *like);
	o = &w->observed.at[w->observed.n - 1];
	o->f = frontier_new(&c->space);
	frontier_copy(&c->space, o->f, f);
}

void warp_observe_at(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned min_scope, uint64_t at, unsigned size, bool ticket)
{
	struct observed like = { .lanes = lanes, .min_scope = (uint8_t)min_scope,
		.size = (uint8_t)size, .at = at, .ticket = ticket };

	if (w->observed.n >= MAX_AT && !find_observed(w, &like))
		like.size = like.at = 0;
	warp_observe_like(c, w, &like, f);
}

void warp_observe(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned min_scope)
{
	warp_observe_at(c, w, lanes, f, min_scope, 0, 0, false);
}

void warp_acquire_observed(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at,
	unsigned size, unsigned scope)
{
	for (size_t i = 0; i < w->observed.n;) {
		const struct observed *o = &w->observed.at[i];
		const uint32_t m = o->lanes & lanes;

		if (!m || o->sc || o->at != at || o->size != size || o->min_scope > scope) {
			i++;
			continue;
		}
		warp_acquire(c, w, m, o->f);
		i += !observed_drop(c, w, i, m);
	}
}

void warp_note_narrow(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *from, uint32_t by_site, uint32_t site)
{
	struct frontier *f = frontier_new(&c->space);

	frontier_join_as(f, PLANE_NARROW, from, PLANE_G);
	warp_acquire(c, w, lanes, f);
	frontier_put(&c->space, f);
	c->cta[w->cta].narrow[0] = by_site;
	c->cta[w->cta].narrow[1] = site;
}

bool warp_has_narrow(const struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->released.n; i++)
		if (w->released.at[i].lanes & lanes && !w->released.at[i].wide)
			return true;
	return false;
}

static void add_released(struct cluster *c, struct warp *w, uint32_t lanes, const struct released *r,
	struct frontier *into)
{
	if (r->tmem) {
		tmem_export(c, into, r->f);
		return;
	}
	frontier_join(&c->space, into, r->f);
	warp_add_progress(c, w, lanes, r->epoch, &r->progress, into, r->restricted ? PLANE_CTA_G : PLANE_G);
}

bool warp_published(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into,
	struct frontier *narrow)
{
	bool any = false;

	for (size_t i = 0; i < w->released.n; i++) {
		const struct released *r = &w->released.at[i];
		struct frontier *to = narrow && !r->wide ? narrow : into;
		uint32_t m = r->lanes & lanes;

		if (!m)
			continue;
		add_released(c, w, m, r, to);
		any = true;
	}
	return any;
}

void warp_fenced(struct cluster *c, struct warp *w, unsigned lane, size_t i, struct frontier *into)
{
	add_released(c, w, 1u << lane, &w->released.at[i], into);
}

/* A08: lanes of one read-modify-write on one address execute one after the other, and the last has
 * read what the others released: in code where the last arrival does the rest, it may be one of
 * them. The lanes before it acquire nothing, as the order is the executor's choice, which must not
 * hide an error in a program without such a test (N1). */
void warp_order_rmw(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = &e->access;
	const bool releases = sem_releases(a->sem);
	const bool acquires = sem_acquires(a->sem);
	uint32_t left, same;

	if (a->mode != MODE_RMW || a->flags & ACCESS_REDUCTION || (!releases && !w->released.n))
		return;
	for (left = e->lanes; left & (left - 1); left &= ~same) {
		unsigned last = 31u - (unsigned)__builtin_clz(left);
		uint64_t addr = lane_addr(&a->at, last);
		struct frontier *f;
		bool any = releases;

		same = 0;
		for (uint32_t m = left; m; m &= m - 1)
			if (lane_addr(&a->at, (unsigned)__builtin_ctz(m)) == addr)
				same |= m & -m;
		if (!(same & (same - 1)))
			continue;
		f = frontier_new(&c->space);
		if (releases)
			warp_release(c, w, same & ~(1u << last), f);
		else
			any = warp_published(c, w, same & ~(1u << last), f, NULL);
		if (any && acquires)
			warp_acquire(c, w, 1u << last, f);
		else if (any)
			warp_observe(c, w, 1u << last, f, 0);
		frontier_put(&c->space, f);
	}
}

/* A restricted acquire orders only what is done to shared memory (A11). */
static void acquire_shared(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *from)
{
	struct frontier *f = frontier_new(&c->space);

	frontier_join_shared(&c->space, f, from);
	warp_acquire(c, w, lanes, f);
	frontier_put(&c->space, f);
}

static void fence_acquires(struct cluster *c, struct warp *w, const struct event *e)
{
	const bool restricted = e->fence.space == SP_SHARED;

	for (size_t i = 0; i < w->observed.n;) {
		struct observed *o = &w->observed.at[i];
		uint32_t m = o->lanes & e->lanes;

		if (o->sc && (e->fence.sem != SEM_SC || o->min_scope > e->fence.scope)) {
			i++;
			continue;
		}
		if (m && o->min_scope > e->fence.scope) {
			warp_note_narrow(c, w, m, o->f, 0, e->site);
			if (o->f->foreign)
				global_note_narrow_fence(c, e);
			i++; /* a wider fence may follow */
			continue;
		}
		if (restricted && m)
			acquire_shared(c, w, m, o->f);
		else if (m)
			warp_acquire(c, w, m, o->f);
		/* an unrestricted fence may follow */
		i += !observed_drop(c, w, i, restricted ? 0 : m);
	}
}

/* Every writer executes a fence, a barrier follows, and one thread writes the flag: by the ISA only
 * the fence of that thread forms a release pattern with its write. All code with a last block
 * relies on more, and a fence at gpu scope does make what it covers visible, whichever thread
 * writes the flag. */
static void prepare_ready(struct cluster *c, struct warp *w, struct released *r)
{
	struct frontier *f;

	if (c->check->config.policy.fence_by_flag_writer)
		return;
	f = frontier_new(&c->space);
	frontier_copy(&c->space, f, r->f);
	warp_add_progress(c, w, r->lanes, r->epoch, &r->progress, f, PLANE_G);
	r->ready = foreign_of(c->number, f);
	frontier_put(&c->space, f);
}

/* The counterpart: one thread reads the flag, all threads execute a fence. */
static void fence_acquires_seen(struct cluster *c, struct warp *w, uint32_t lanes, unsigned scope)
{
	struct frontier *sum = NULL;

	for (unsigned i = 0; i < w->ngroups; i++)
		for (unsigned k = SEEN; k <= (scope == SCOPE_SYS ? SEEN_SYSTEM : SEEN); k++) {
			const struct frontier *f = w->group[i].f;
			struct foreign *seen = f->by_others[k];

			if (!(w->group[i].lanes & lanes) || !seen || foreign_covers(f->foreign, seen))
				continue;
			if (!sum)
				sum = frontier_new(&c->space);
			foreign_join(&sum->foreign, seen);
		}
	if (sum)
		warp_acquire(c, w, lanes, sum);
	frontier_put(&c->space, sum);
}

void order_drop_released(struct cluster *c, struct released *r)
{
	frontier_put(&c->space, r->f);
	foreign_put(r->ready);
}

static void fence_releases(struct cluster *c, struct warp *w, const struct event *e)
{
	uint32_t epoch = warp_close_epoch(w), lanes = e->lanes;
	const struct event_fence *x = &e->fence;
	bool restricted = x->space == SP_SHARED;
	size_t i;

	w->sc_fences += x->sem == SEM_SC;
	if (restricted)
		w->restricted_fence = (struct past_op){ (uint16_t)w->index, lanes, epoch, e->site };
	for (i = 0; i < w->released.n;) {
		struct released *r = &w->released.at[i];

		/* a weaker fence does not replace a stronger one */
		if (x->scope >= r->scope && (!restricted || r->restricted)
			&& (x->sem == SEM_SC || !r->sc))
			r->lanes &= ~lanes;
		if (r->lanes) {
			i++;
			continue;
		}
		order_drop_released(c, r);
		*r = w->released.at[--w->released.n];
	}
	for (i = 0; i < w->ngroups; i++) {
		uint32_t m = w->group[i].lanes & lanes;
		struct frontier *f;

		if (!m)
			continue;
		f = frontier_new(&c->space);
		if (restricted) {
			frontier_join_as(f, PLANE_CTA_G, w->group[i].f, PLANE_G);
			frontier_join_as(f, PLANE_CTA_P, w->group[i].f, PLANE_P);
		} else {
			frontier_copy(&c->space, f, w->group[i].f);
		}
		vec_push(&w->released, ((struct released){ m, epoch, includes_cluster(x->sem, x->scope),
			x->scope, restricted, x->sem == SEM_SC, false, f, NULL, w->progress }));
		if (c->global && x->scope >= SCOPE_GPU && !restricted)
			prepare_ready(c, w, &w->released.at[w->released.n - 1]);
	}
}

void on_fence(struct cluster *c, const struct event *e)
{
	const struct event_fence *x = &e->fence;
	struct warp *w = warp_of(c, e);

	if (x->space != SP_ANY && x->space != SP_SHARED)
		return;
	if (sem_acquires(x->sem)) {
		fence_acquires(c, w, e);
		if (c->global && x->scope >= SCOPE_GPU && !c->check->config.policy.fence_by_flag_writer)
			fence_acquires_seen(c, w, e->lanes, x->scope);
	}
	if (sem_releases(x->sem))
		fence_releases(c, w, e);
}

/* ---- proxy fences ---- */

/* Sets the given values to the lanes' own operations up to now. */
static void mark_progress(struct warp *w, uint32_t lanes, uint32_t epoch, struct per_lane *progress,
	struct per_lane *copies)
{
	per_lane_set(progress, lanes | ~w->all, epoch);
	if (w->progress.copies.low == w->progress.copies.high) {
		if (w->progress.copies.high)
			per_lane_set(copies, lanes | ~w->all, w->progress.copies.high);
		return;
	}
	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		per_lane_set(copies, 1u << l, w->progress.copies.at[l]);
	}
}

/* The acquire half completes the release halves that the lane executed. */
static void complete_halves(struct warp *w, uint32_t lanes)
{
	for (; lanes && w->progress.half.high; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		per_lane_set(&w->progress.fenced, 1u << l, w->progress.half.at[l]);
		per_lane_set(&w->progress.fenced_copies, 1u << l, w->progress.half_copies.at[l]);
	}
}

/* The CTA in whose shared memory an asynchronous agent accesses what matters to a fence. */
static unsigned memory_of(const struct cluster *c, uint32_t agent)
{
	uint32_t index;

	switch (agent_kind(c, agent, &index)) {
	case AGENT_SLOT:
		return index < c->slots.n ? c->slots.at[index].cta : 0;
	case AGENT_WGMMA:
		return index / c->wg_per_cta;
	default:
		return c->warp[index].cta;
	}
}

/* What f knows of asynchronous agents (st.async, K6). */
static void fence_async(struct cluster *c, const struct warp *w, struct frontier *f,
	enum plane to, bool own_cta)
{
	for (uint32_t a = c->space.ngeneric; a < f->cap && a < c->space.nagents; a++)
		if (!own_cta || memory_of(c, a) == w->cta)
			frontier_fence_agent(&c->space, f, to, a);
}

/* What f knows of accesses to the shared memory of other CTAs. A release half counts as a fence. */
static void fence_remote(struct cluster *c, const struct warp *w, struct frontier *f, bool own_cta)
{
	for (uint32_t i = 0; i < c->nwarps; i++) {
		const uint32_t of = own_cta ? c->warp[i].remote & 1u << w->cta : c->warp[i].remote;

		for (uint32_t m = of; m; m &= m - 1)
			frontier_fence_agent(&c->space, f, PLANE_MEMORY + (unsigned)__builtin_ctz(m), i);
	}
}

/* A fence by these lanes also covers what other threads did: it may be anywhere on the causality
 * path (K1). With .shared::cta it covers what they did to the memory of the executing CTA (A19). */
static void fence_known(struct cluster *c, struct warp *w, const struct event *e)
{
	const bool async = c->check->config.policy.async_across_ctas || c->generic_slots;
	const bool half = e->fence_proxy.proxy == PROXY_ASYNC_RELEASE, own = e->fence_proxy.own_cta;
	const struct agent_range r = { own ? w->cta * c->per_cta : 0, own ? c->per_cta : c->nwarps,
		c->nwarps };
	unsigned i, n = w->ngroups;

	warp_learned(w);
	for (i = 0; i < n; i++) {
		uint32_t m = w->group[i].lanes & e->lanes;
		struct frontier *f = m && m != w->group[i].lanes ? warp_split_group(c, w, i, m)->f
			: w->group[i].f;

		if (!m)
			continue;
		if (e->fence_proxy.proxy == PROXY_ASYNC_ACQUIRE) {
			frontier_whole(&c->space, f);
			continue;
		}
		if (async)
			fence_async(c, w, f, half ? PLANE_HALF : PLANE_FENCED, own);
		if (c->remote)
			fence_remote(c, w, f, own);
		if (half)
			frontier_half(&c->space, f, r);
		else
			frontier_fence(&c->space, f, r);
	}
}

/* What a fence covers of global memory is recorded apart from what it covers of shared memory. */
static void fence_global(struct cluster *c, struct warp *w, uint32_t lanes)
{
	unsigned n = w->ngroups;

	per_lane_set(&w->progress.fenced_global, lanes | ~w->all, warp_close_epoch(w));
	for (unsigned i = 0; i < n; i++) {
		uint32_t m = w->group[i].lanes & lanes;

		if (m)
			frontier_fence_global(&c->space, m == w->group[i].lanes ? w->group[i].f
				: warp_split_group(c, w, i, m)->f);
	}
}

/* A uni-directional pair (A21): what the release half covers is in plane HALF, which
 * synchronization propagates, until an acquire half moves it to plane P. */
void on_fence_proxy(struct cluster *c, const struct event *e)
{
	const enum ev_proxy proxy = e->fence_proxy.proxy;
	const enum ev_space space = e->fence_proxy.space;
	struct warp *w = warp_of(c, e);

	if (proxy == PROXY_TENSORMAP_RELEASE || proxy == PROXY_TENSORMAP_ACQUIRE) {
		on_map_fence(c, e);
		return;
	}
	if (proxy != PROXY_ASYNC && proxy != PROXY_ASYNC_RELEASE && proxy != PROXY_ASYNC_ACQUIRE)
		return;
	if (c->global && proxy == PROXY_ASYNC && space != SP_SHARED)
		fence_global(c, w, e->lanes);
	if (space != SP_ANY && space != SP_SHARED) {
		w->global_fence = warp_past_op(w, e->lanes, e->site);
		return;
	}
	if (proxy == PROXY_ASYNC_ACQUIRE) {
		complete_halves(w, e->lanes);
		fence_known(c, w, e);
		return;
	}
	if (proxy == PROXY_ASYNC) {
		w->fence_site = e->site;
		mark_progress(w, e->lanes, warp_close_epoch(w), &w->progress.fenced,
			&w->progress.fenced_copies);
		if (e->fence_proxy.own_cta)
			w->own_fence_site = e->site;
		else
			per_lane_set(&w->progress.fenced_all, e->lanes | ~w->all, w->epoch - 1);
	} else {
		w->half_site = e->site;
		mark_progress(w, e->lanes, warp_close_epoch(w), &w->progress.half,
			&w->progress.half_copies);
	}
	if (!c->check->config.policy.fence_by_writer)
		fence_known(c, w, e);
}
