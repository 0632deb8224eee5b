/* global_sync: synchronization through global memory: releases and acquires on strong locations, by
 * one cluster or by many (A03, A05, A07 to A09).
 *
 * A location holds what its chain of writes has released: a plain or ordinary strong store begins a
 * new chain, a read-modify-write continues it (A08). Everything released at gpu scope is one set,
 * which grows with the chain; what was released at a narrower scope is kept apart, by CTA, as only
 * threads within the scope may acquire it. */
#include "global.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table of locations ---- */

static uint64_t mix(uint64_t x)
{
	return (x * 0x9e3779b97f4a7c15ull) >> 20;
}

static struct flag_shard *shard_of(struct global *g, uint64_t addr)
{
	return &g->flag[mix(addr >> 6) % FLAG_SHARDS];
}

static void mark_line(struct global *g, uint64_t addr)
{
	uint64_t i = mix(addr >> 6) % FLAG_LINES;

	__atomic_fetch_or(&g->line[i / 8], (uint8_t)(1u << i % 8), __ATOMIC_RELAXED);
}

static bool line_marked(struct global *g, uint64_t addr)
{
	uint64_t i = mix(addr >> 6) % FLAG_LINES;

	return __atomic_load_n(&g->line[i / 8], __ATOMIC_RELAXED) >> i % 8 & 1;
}

static uint32_t place(const struct flag_shard *s, uint64_t addr)
{
	uint32_t i = (uint32_t)mix(addr) & (s->cap - 1);

	while (s->at[i].version && s->at[i].addr != addr)
		i = (i + 1) & (s->cap - 1);
	return i;
}

/* Called under the shard's lock. NULL: there is none, and `make` is false. */
static struct global_flag *flag_of(struct global *g, struct flag_shard *s, uint64_t addr, bool make)
{
	struct global_flag *f;

	if (make && 2 * (s->n + 1) > s->cap) {
		struct flag_shard was = *s;

		s->cap = was.cap ? 2 * was.cap : 16;
		s->at = base_alloc(s->cap * sizeof *s->at);
		for (uint32_t i = 0; i < was.cap; i++)
			if (was.at[i].version)
				s->at[place(s, was.at[i].addr)] = was.at[i];
		free(was.at);
	}
	if (!s->cap)
		return NULL;
	f = &s->at[place(s, addr)];
	if (f->version || !make)
		return f->version ? f : NULL;
	f->addr = addr;
	f->version = 1;
	s->n++;
	mark_line(g, addr);
	__atomic_fetch_add(&g->nflags, 1, __ATOMIC_RELEASE);
	return f;
}

/* A store begins a new chain. */
static void flag_clear(struct global_flag *f)
{
	if (!f->wide && !f->narrow.n)
		return;
	foreign_put(f->wide);
	f->wide = NULL;
	while (f->narrow.n)
		foreign_put(f->narrow.at[--f->narrow.n].set);
	f->version++;
}

static void flag_add(struct global_flag *f, uint32_t cluster, unsigned cta, unsigned scope,
	struct foreign *set, uint32_t site)
{
	f->version++;
	if (scope >= SCOPE_GPU) {
		foreign_join(&f->wide, set);
		f->site = site;
		return;
	}
	for (size_t i = 0; i < f->narrow.n; i++) {
		struct flag_head *h = &f->narrow.at[i];

		if (h->cluster == cluster && h->cta == cta && h->scope == scope) {
			foreign_join(&h->set, set);
			h->site = site;
			return;
		}
	}
	vec_push(&f->narrow, ((struct flag_head){ cluster, site, (uint16_t)cta, (uint8_t)scope,
		foreign_get(set) }));
}

static unsigned scope_of(const struct event_access *a)
{
	return a->sem == SEM_VOLATILE || a->sem == SEM_MMIO ? SCOPE_SYS : a->scope;
}

/* ---- the reading side ---- */

#define MAX_NARROW 64u

static void note_narrow(struct cluster *c, struct foreign *set, uint32_t released,
	uint32_t acquired)
{
	struct cluster_global *k = c->global;

	for (size_t i = 0; i < k->narrow_sync.n; i++)
		if (k->narrow_sync.at[i].set == set)
			return;
	if (k->narrow_sync.n == MAX_NARROW) {
		foreign_put(k->narrow_sync.at[0].set);
		k->narrow_sync.n--;
		memmove(k->narrow_sync.at, k->narrow_sync.at + 1,
			k->narrow_sync.n * sizeof *k->narrow_sync.at);
	}
	vec_push(&k->narrow_sync, ((struct narrow_sync){ foreign_get(set), released, acquired }));
}

/* Kept for explanations, like releases with narrow scopes; the oldest is dropped. */
static void keep_unfenced(struct cluster *c, struct foreign *set, uint32_t released,
	const struct event *e)
{
	struct cluster_global *k = c->global;

	for (size_t i = 0; i < k->unfenced.n; i++)
		if (k->unfenced.at[i].set == set && k->unfenced.at[i].read == e->site)
			return;
	if (k->unfenced.n == MAX_NARROW) {
		foreign_put(k->unfenced.at[0].set);
		k->unfenced.n--;
		memmove(k->unfenced.at, k->unfenced.at + 1,
			k->unfenced.n * sizeof *k->unfenced.at);
	}
	vec_push(&k->unfenced, ((struct unfenced){ foreign_get(set), released, e->site,
		access_of(e)->mode == MODE_RMW }));
}

/* min_scope: the scope that a later fence needs to turn a relaxed read into an acquire */
static void learn(struct cluster *c, struct warp *w, uint32_t lanes, const struct event *e,
	struct foreign *set, bool only, unsigned min_scope)
{
	struct frontier *f = frontier_new(&c->space);

	foreign_learn(&c->space, f, set, c->number, only);
	if (e->kind == EV_OBSERVED) /* lanes of one atomic do not order each other */
		frontier_forget(f, w->index);
	if (sem_acquires(access_of(e)->sem))
		warp_acquire(c, w, lanes, f);
	else
		warp_observe(c, w, lanes, f, min_scope);
	frontier_put(&c->space, f);
}

static void read_flag(struct cluster *c, struct warp *w, uint32_t lanes, const struct event *e,
	uint64_t addr)
{
	const struct event_access *a = access_of(e);
	struct global *g = c->check->global;
	struct flag_shard *s = shard_of(g, addr);
	struct polled *p = &c->global->polled[w->index];
	struct flag_head head[16];
	struct global_flag *f;
	struct foreign *wide;
	unsigned scope = scope_of(a), n = 0;
	uint32_t site;

	pthread_mutex_lock(&s->lock);
	f = flag_of(g, s, addr, false);
	if (!f || (p->addr == addr && p->version == f->version && p->lanes == lanes
		&& p->sem == a->sem && p->scope == a->scope)) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	*p = (struct polled){ addr, f->version, lanes, a->sem, a->scope };
	wide = foreign_get(f->wide);
	site = f->site;
	/* releases of the own cluster first: others only explain */
	for (size_t i = 0; i < f->narrow.n && n < ARRAY_SIZE(head); i++)
		if (f->narrow.at[i].cluster == c->number)
			head[n++] = f->narrow.at[i];
	for (size_t i = f->narrow.n; i-- > 0 && n < ARRAY_SIZE(head);)
		if (f->narrow.at[i].cluster != c->number)
			head[n++] = f->narrow.at[i];
	for (unsigned i = 0; i < n; i++)
		foreign_get(head[i].set);
	pthread_mutex_unlock(&s->lock);

	if (wide) {
		bool others = wide->n > 1 || wide->at[0].cluster != c->number;

		if (scope < SCOPE_GPU && others)
			note_narrow(c, wide, site, e->site);
		else if (others && !sem_acquires(a->sem))
			keep_unfenced(c, wide, site, e);
		learn(c, w, lanes, e, wide, scope < SCOPE_GPU, others ? SCOPE_GPU
			: c->nctas > 1 ? SCOPE_CLUSTER : 0);
		foreign_put(wide);
	}
	for (unsigned i = 0; i < n; i++) {
		const struct flag_head *h = &head[i];
		bool local = h->cluster == c->number && h->cta == w->cta;

		if (local || (h->cluster == c->number && h->scope >= SCOPE_CLUSTER
			&& scope >= SCOPE_CLUSTER))
			learn(c, w, lanes, e, h->set, false, local ? 0 : SCOPE_CLUSTER);
		else
			note_narrow(c, h->set, h->site, e->site);
		foreign_put(head[i].set);
	}
}

/* A vector access is a set of scalar accesses (8.2.4): each element is a location of its own. */
static uint32_t element_of(const struct event_access *a)
{
	return a->element_bytes && a->element_bytes < a->bytes ? a->element_bytes : a->bytes;
}

/* Acquires what the chain has released before the instruction; warp_order_rmw() orders lanes of the
 * same instruction. red never acquires (A09). */
void global_reads(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = access_of(e);
	struct global *g = c->check->global;
	uint32_t left, same;

	if (!(a->mode & MODE_READ) || a->flags & ACCESS_REDUCTION
		|| !__atomic_load_n(&g->nflags, __ATOMIC_ACQUIRE))
		return;
	for (left = e->lanes; left; left &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(left);
		uint64_t addr = lane_addr(&a->at, l);

		same = 1u << l;
		for (uint32_t m = left & (left - 1); m; m &= m - 1)
			if (lane_addr(&a->at, (unsigned)__builtin_ctz(m)) == addr)
				same |= m & -m;
		for (uint32_t at = 0; at < a->bytes; at += element_of(a))
			if (line_marked(g, addr + at))
				read_flag(c, w, same, e, addr + at);
	}
}

/* Does the set order the old access before, for some lanes at least? */
static bool set_covers(const struct cluster *c, const struct foreign *set,
	const struct global_record *old)
{
	const struct foreign_entry *x = foreign_find(set, old->cluster);
	const enum plane plane = old->flags & GR_ASYNC && old->flags & GR_WRITE
		? PLANE_STORED : PLANE_G;

	return x && ((plane == PLANE_G && frontier_full(&c->space, x->known->f, plane, old->agent)
		>= old->epoch) || frontier_lanes(&c->space, x->known->f, plane, old->agent, old->epoch));
}

const struct unfenced *global_unfenced(const struct global_view *v, const struct global_record *old)
{
	const struct cluster_global *k = v->c->global;
	bool after = set_covers(v->c, v->f->seen, old);

	for (size_t i = 0; i < v->w->observed.n && !after; i++)
		after = v->w->observed.at[i].lanes & v->lanes
			&& set_covers(v->c, v->w->observed.at[i].f->foreign, old);
	for (size_t i = k->unfenced.n; after && i-- > 0;)
		if (set_covers(v->c, k->unfenced.at[i].set, old))
			return &k->unfenced.at[i];
	return NULL;
}

const struct narrow_sync *global_narrow_sync(const struct cluster *c,
	const struct global_record *old)
{
	for (size_t i = 0; i < c->global->narrow_sync.n; i++)
		if (set_covers(c, c->global->narrow_sync.at[i].set, old))
			return &c->global->narrow_sync.at[i];
	return NULL;
}

/* ---- the writing side ---- */

static void publish_set(struct cluster *c, struct warp *w, uint64_t addr, unsigned scope,
	struct foreign *set, uint32_t site)
{
	struct global *g = c->check->global;
	struct flag_shard *s = shard_of(g, addr);

	pthread_mutex_lock(&s->lock);
	flag_add(flag_of(g, s, addr, true), c->number, w->cta, scope, set, site);
	pthread_mutex_unlock(&s->lock);
}

static void publish(struct cluster *c, struct warp *w, uint64_t addr, unsigned scope,
	struct frontier *f, uint32_t site)
{
	struct foreign *set = foreign_of(c->number, f);

	publish_set(c, w, addr, scope, set, site);
	foreign_put(set);
}

static void begin_chain(struct global *g, uint64_t addr)
{
	struct flag_shard *s = shard_of(g, addr);
	struct global_flag *f;

	if (!__atomic_load_n(&g->nflags, __ATOMIC_ACQUIRE) || !line_marked(g, addr))
		return;
	pthread_mutex_lock(&s->lock);
	f = flag_of(g, s, addr, false);
	if (f)
		flag_clear(f);
	pthread_mutex_unlock(&s->lock);
}

static void write_flag(struct cluster *c, struct warp *w, unsigned lane, const struct event *e,
	uint64_t addr)
{
	const struct event_access *a = &e->access;
	unsigned scope = scope_of(a), fence;
	struct frontier *f;

	if (a->mode != MODE_RMW)
		begin_chain(c->check->global, addr);
	if (sem_releases(a->sem)) {
		f = frontier_new(&c->space);
		warp_release(c, w, 1u << lane, f);
		publish(c, w, addr, scope, f, e->site);
		frontier_put(&c->space, f);
		return;
	}
	/* the first and the last operation of the pattern must include both threads in their
	 * scopes, and so must the write between them */
	for (size_t i = 0; i < w->released.n; i++) {
		f = frontier_new(&c->space);
		if (warp_fenced(c, w, lane, i, f, &fence))
			publish(c, w, addr, scope < fence ? scope : fence, f, e->site);
		frontier_put(&c->space, f);
	}
	f = warp_frontier(w, lane);
	if (f && f->ready)
		publish_set(c, w, addr, scope < SCOPE_GPU ? scope : SCOPE_GPU, f->ready, e->site);
}

static bool ready(const struct warp *w)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].f->ready)
			return true;
	return false;
}

void global_writes(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = &e->access;

	if (!(a->mode & MODE_WRITE) || (!sem_releases(a->sem) && !w->released.n && !ready(w)
		&& !__atomic_load_n(&c->check->global->nflags, __ATOMIC_ACQUIRE)))
		return;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);

		for (uint32_t at = 0; at < a->bytes; at += element_of(a))
			write_flag(c, w, l, e, lane_addr(&a->at, l) + at);
	}
}

void global_plain_writes(struct cluster *c, const struct global_span *spans, size_t n)
{
	struct global *g = c->check->global;

	if (!__atomic_load_n(&g->nflags, __ATOMIC_ACQUIRE))
		return;
	for (size_t i = 0; i < n; i++) {
		uint64_t at = spans[i].addr & ~3ull, end = spans[i].addr + spans[i].bytes;

		while (at < end) {
			if (!line_marked(g, at)) {
				at = (at | 63) + 1;
				continue;
			}
			begin_chain(g, at);
			at += 4;
		}
	}
}

/* ---- lifetimes ---- */

struct global *global_open(void)
{
	struct global *g = base_alloc(sizeof *g);

	for (unsigned i = 0; i < FLAG_SHARDS; i++)
		pthread_mutex_init(&g->flag[i].lock, NULL);
	return g;
}

void global_close(struct global *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < FLAG_SHARDS; i++) {
		struct flag_shard *s = &g->flag[i];

		for (uint32_t k = 0; k < s->cap; k++) {
			flag_clear(&s->at[k]);
			free(s->at[k].narrow.at);
		}
		free(s->at);
		pthread_mutex_destroy(&s->lock);
	}
	free(g->pair);
	free(g);
}

void global_cluster_reset(struct cluster *c)
{
	struct cluster_global *k = c->global;

	if (!k)
		return;
	while (k->narrow_sync.n)
		foreign_put(k->narrow_sync.at[--k->narrow_sync.n].set);
	while (k->unfenced.n)
		foreign_put(k->unfenced.at[--k->unfenced.n].set);
	memset(k->polled, 0, c->nwarps * sizeof *k->polled);
	for (uint32_t i = 0; i < c->nwarps * PENDING; i++)
		k->pending[i].r.count = 0;
	memset(k->npending, 0, c->nwarps);
	memset(k->recent, 0, c->nwarps * RECENT * sizeof *k->recent);
}

void global_cluster_free(struct cluster *c)
{
	if (!c->global)
		return;
	free(c->global->narrow_sync.at);
	free(c->global->unfenced.at);
	free(c->global->spans.at);
	free(c->global->polled);
	free(c->global->pending);
	free(c->global->npending);
	free(c->global->recent);
	free(c->global);
}
