/* order: what warps know. Lane groups, release and acquire, bar.warp.sync,
 * fences. Decides nothing about rules.
 *
 * Program order is not stored: a lane always knows its own accesses in plane
 * G. Everything else it knows about itself (which accesses a proxy fence
 * covers, which groups it waited for) stands in struct own, per lane, so that
 * an elected lane's wait or fence does not split the warp's frontier. Both are
 * added to what the lane publishes. */
#include "foreign.h"
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdlib.h>
#include <string.h>

void per_lane_set(struct per_lane *p, uint32_t lanes, uint32_t value)
{
	uint32_t l;

	if (lanes == UINT32_MAX && p->low == p->high) {
		if (value > p->low) {
			for (l = 0; l < 32; l++)
				p->at[l] = value;
			p->low = p->high = value;
		}
		return;
	}
	p->low = UINT32_MAX;
	p->high = 0;
	for (l = 0; l < 32; l++) {
		if (lanes >> l & 1 && p->at[l] < value)
			p->at[l] = value;
		if (p->at[l] < p->low)
			p->low = p->at[l];
		if (p->at[l] > p->high)
			p->high = p->at[l];
	}
}

uint32_t warp_stamp(struct warp *w)
{
	w->dirty = true;
	return w->epoch;
}

/* Closes the epoch: what follows carries a later one. */
static uint32_t close_epoch(struct warp *w)
{
	if (!w->dirty)
		return w->epoch - 1;
	w->dirty = false;
	return w->epoch++;
}

struct who warp_who(struct warp *w, uint32_t lanes, uint32_t site)
{
	return (struct who){ (uint16_t)w->index, lanes, warp_stamp(w), site };
}

static void add_per_lane(struct cluster *c, struct frontier *into, enum plane plane,
	uint32_t agent, uint32_t lanes, uint32_t live, const struct per_lane *p)
{
	uint32_t same, value, l;

	if (!p->high)
		return;
	if (p->low == p->high) {
		frontier_add(&c->space, into, plane, agent, lanes, live, p->low);
		return;
	}
	for (; lanes; lanes &= ~same) {
		value = p->at[__builtin_ctz(lanes)];
		for (same = 0, l = 0; l < 32; l++)
			if (lanes >> l & 1 && p->at[l] == value)
				same |= 1u << l;
		frontier_add(&c->space, into, plane, agent, same, live, value);
	}
}

uint32_t warp_whole(const struct cluster *c, const struct warp *w, const struct frontier *f)
{
	if (w->kept && frontier_full(&c->space, f, PLANE_G, w->index) < w->kept_epoch)
		return w->live | w->kept;
	return w->live;
}

uint32_t warp_copiers(const struct warp *w)
{
	return w->copies.issued & (w->live | w->kept_copies);
}

static void add_own_as(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t epoch,
	const struct own *own, struct frontier *into, enum plane g)
{
	const enum plane p = g + 1;
	const uint32_t all = warp_whole(c, w, into), copiers = warp_copiers(w);
	const uint32_t storers = w->stores.issued & w->live;

	_Static_assert(PLANE_P == PLANE_G + 1 && PLANE_OWN_P == PLANE_OWN_G + 1
		&& PLANE_SOFT_P == PLANE_SOFT_G + 1, "pairs of planes");
	frontier_add(&c->space, into, g, w->index, lanes, all, epoch);
	add_per_lane(c, into, p, w->index, lanes, all, &own->fenced);
	add_per_lane(c, into, PLANE_HALF, w->index, lanes, all, &own->half);
	add_per_lane(c, into, g, agent_copies(c, w->index), lanes, copiers, &own->copies);
	add_per_lane(c, into, p, agent_copies(c, w->index), lanes, copiers, &own->fenced_copies);
	add_per_lane(c, into, PLANE_HALF, agent_copies(c, w->index), lanes, copiers, &own->half_copies);
	add_per_lane(c, into, g, agent_stores(c, w->index), lanes, storers, &own->stores);
	add_per_lane(c, into, PLANE_STORED, agent_stores(c, w->index), lanes, storers, &own->stored);
	if (g == PLANE_G)
		add_per_lane(c, into, PLANE_Q, w->index, lanes, all, &own->fenced_global);
}

static void add_own(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t epoch,
	struct frontier *into)
{
	for (size_t i = 0; c->global && i < w->released.n; i++)
		if (w->released.at[i].ready && w->released.at[i].lanes & lanes)
			foreign_join(&into->ready, w->released.at[i].ready);
	for (size_t i = 0; c->global && i < w->observed.n; i++)
		if (w->observed.at[i].f->foreign && w->observed.at[i].lanes & lanes)
			foreign_join(&into->seen, w->observed.at[i].f->foreign);
	add_own_as(c, w, lanes, epoch, &w->own, into, PLANE_G);
}

uint32_t warp_own(const struct warp *w, enum agent_kind k, enum plane plane, unsigned lane)
{
	switch (k) {
	case AGENT_WARP:
		return plane == PLANE_G ? UINT32_MAX : w->own.fenced.at[lane];
	case AGENT_COPIES:
		return plane == PLANE_G ? w->own.copies.at[lane] : w->own.fenced_copies.at[lane];
	case AGENT_STORES:
		return w->own.stores.at[lane];
	case AGENT_WGMMA:
	case AGENT_SLOT:
		break;
	}
	return 0;
}

struct frontier *warp_frontier(struct warp *w, unsigned lane)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].lanes >> lane & 1)
			return w->group[i].f;
	return NULL;
}

void warp_release(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].lanes & lanes)
			frontier_join(&c->space, into, w->group[i].f);
	add_own(c, w, lanes, close_epoch(w), into);
}

void warp_look(struct cluster *c, struct warp *w, struct frontier *into)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		frontier_join(&c->space, into, w->group[i].f);
	add_own(c, w, w->live, w->epoch, into);
}

static void drop_group(struct cluster *c, struct warp *w, unsigned i)
{
	frontier_put(&c->space, w->group[i].f);
	w->group[i] = w->group[--w->ngroups];
}

/* Cuts `lanes`, some of group i, out as a group of their own. */
static struct group *split(struct cluster *c, struct warp *w, unsigned i, uint32_t lanes)
{
	struct group *g = &w->group[w->ngroups++];

	g->lanes = lanes;
	g->f = frontier_new(&c->space);
	frontier_copy(&c->space, g->f, w->group[i].f);
	w->group[i].lanes &= ~lanes;
	return g;
}

/* Lanes that wait one after the other end up knowing the same. */
static void unite_equals(struct cluster *c, struct warp *w, unsigned i)
{
	for (unsigned k = 0; k < w->ngroups; k++) {
		if (k == i || !frontier_covers(w->group[k].f, w->group[i].f)
			|| !frontier_covers(w->group[i].f, w->group[k].f))
			continue;
		w->group[k].lanes |= w->group[i].lanes;
		drop_group(c, w, i);
		return;
	}
}

struct handed handed_new(struct cluster *c)
{
	struct handed h = { .near = frontier_new(&c->space) };

	if (c->nctas > 1)
		h.far = (struct far){ frontier_new(&c->space), frontier_new(&c->space), 0 };
	return h;
}

void handed_clear(struct cluster *c, struct handed *h)
{
	frontier_clear(&c->space, h->near);
	if (c->nctas == 1)
		return;
	frontier_clear(&c->space, h->far.wide);
	frontier_clear(&c->space, h->far.held);
	h->far.site = 0;
}

void handed_put(struct cluster *c, const struct handed *h)
{
	frontier_put(&c->space, h->near);
	frontier_put(&c->space, h->far.wide);
	frontier_put(&c->space, h->far.held);
}

void warp_acquire(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from)
{
	unsigned i, n = w->ngroups;

	for (i = 0; i < n; i++) {
		struct group *g = &w->group[i];
		uint32_t m = g->lanes & lanes;

		if (!m)
			continue;
		if (m == g->lanes) {
			frontier_join(&c->space, g->f, from);
			continue;
		}
		if (frontier_covers(g->f, from))
			continue;
		frontier_join(&c->space, split(c, w, i, m)->f, from);
	}
	for (i = w->ngroups; w->ngroups > 1 && i-- > 0;)
		if (i < w->ngroups && !(w->group[i].lanes & ~lanes))
			unite_equals(c, w, i);
}

void warp_converge(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct frontier *sum = NULL;
	uint32_t took = 0;
	unsigned i;

	if (w->ngroups == 1 && w->group[0].lanes == lanes) {
		add_own(c, w, lanes, close_epoch(w), w->group[0].f);
		return;
	}
	for (i = 0; i < w->ngroups;) {
		struct group *g = &w->group[i];
		uint32_t m = g->lanes & lanes;

		took |= m;
		if (m && !sum) {
			sum = frontier_new(&c->space);
			frontier_copy(&c->space, sum, g->f);
		} else if (m) {
			frontier_join(&c->space, sum, g->f);
		}
		g->lanes &= ~m;
		if (g->lanes)
			i++;
		else
			drop_group(c, w, i);
	}
	if (!sum)
		return;
	w->group[w->ngroups++] = (struct group){ took, sum };
	add_own(c, w, took, close_epoch(w), sum);
}

void warp_learn(struct cluster *c, struct warp *w, uint32_t agent, uint32_t epoch)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		frontier_add(&c->space, w->group[i].f, PLANE_G, agent, UINT32_MAX, UINT32_MAX, epoch);
}

void order_exit(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct cta *cta = &c->cta[w->cta];
	bool dirty = w->dirty;
	uint32_t epoch = w->epoch;

	warp_release(c, w, lanes, cta->exited);
	if (cta->exited_waited < w->cluster_waited)
		cta->exited_waited = w->cluster_waited;
	w->live &= ~lanes;
	if (dirty && w->live) {
		w->kept |= lanes;
		w->kept_epoch = epoch;
	}
	for (uint32_t rest = w->live ? lanes : 0; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);

		if (w->copies.last[l] > w->own.copies.at[l])
			w->kept_copies |= 1u << l;
	}
	for (unsigned i = 0; i < w->ngroups;) {
		w->group[i].lanes &= ~lanes;
		if (w->group[i].lanes)
			i++;
		else
			drop_group(c, w, i);
	}
}

bool warp_knows(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	for (unsigned i = 0; i < w->ngroups; i++) {
		const struct group *g = &w->group[i];
		uint32_t m = g->lanes & lanes;

		if (!m || frontier_full(&c->space, g->f, PLANE_G, x->warp) >= x->epoch)
			continue;
		if (x->warp == w->index && !(m & ~x->lanes))
			continue;
		if (!((frontier_lanes(&c->space, g->f, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, g->f, PLANE_OWN_G, x->warp, x->epoch)) & x->lanes))
			return false;
	}
	return true;
}

bool warp_heard(struct cluster *c, const struct warp *w, const struct who *x)
{
	if (x->warp == w->index)
		return true;
	for (unsigned i = 0; i < w->ngroups; i++)
		if (frontier_full(&c->space, w->group[i].f, PLANE_G, x->warp) >= x->epoch
			|| frontier_lanes(&c->space, w->group[i].f, PLANE_G, x->warp, x->epoch) & x->lanes)
			return true;
	return false;
}

/* ---- relaxed accesses and the fences around them (A07, B25) ---- */

void warp_observe(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned far)
{
	size_t i;

	for (i = 0; i < w->observed.n; i++)
		if (w->observed.at[i].lanes == lanes && w->observed.at[i].far == far) {
			frontier_join(&c->space, w->observed.at[i].f, f);
			return;
		}
	vec_push(&w->observed, ((struct observed){ lanes, (uint8_t)far, frontier_new(&c->space) }));
	frontier_copy(&c->space, w->observed.at[i].f, f);
}

void warp_miss(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from,
	uint32_t by_site, uint32_t site)
{
	struct frontier *f = frontier_new(&c->space);

	frontier_join_as(&c->space, f, PLANE_HELD, from, PLANE_G);
	warp_acquire(c, w, lanes, f);
	frontier_put(&c->space, f);
	c->cta[w->cta].narrow[0] = by_site;
	c->cta[w->cta].narrow[1] = site;
}

bool warp_narrow(const struct warp *w, uint32_t lanes)
{
	for (size_t i = 0; i < w->released.n; i++)
		if (w->released.at[i].lanes & lanes && !w->released.at[i].wide)
			return true;
	return false;
}

bool warp_published(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into,
	struct frontier *held)
{
	bool any = false;

	for (size_t i = 0; i < w->released.n; i++) {
		const struct released *r = &w->released.at[i];
		struct frontier *to = held && !r->wide ? held : into;
		uint32_t m = r->lanes & lanes;

		if (!m)
			continue;
		frontier_join(&c->space, to, r->f);
		add_own_as(c, w, m, r->epoch, &r->own, to, r->restricted ? PLANE_OWN_G : PLANE_G);
		any = true;
	}
	return any;
}

bool warp_fenced(struct cluster *c, struct warp *w, unsigned lane, size_t i,
	struct frontier *into, unsigned *scope)
{
	const struct released *r = &w->released.at[i];

	if (!(r->lanes >> lane & 1) || r->restricted)
		return false;
	frontier_join(&c->space, into, r->f);
	add_own_as(c, w, 1u << lane, r->epoch, &r->own, into, PLANE_G);
	*scope = r->scope;
	return true;
}

/* A08: lanes of one read-modify-write on one address take their turns, and the
 * last has read what the others released: where the last to arrive does the rest,
 * it may be one of them. Those before it inherit nothing, as which they are is the
 * executor's choice, in which a program without such a test must not hide (N1). */
void warp_inherit(struct cluster *c, struct warp *w, const struct event *e)
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

static void fence_acquires(struct cluster *c, struct warp *w, const struct event *e)
{
	for (size_t i = 0; i < w->observed.n;) {
		struct observed *o = &w->observed.at[i];
		uint32_t m = o->lanes & e->lanes;

		if (m && o->far > e->fence.scope) {
			warp_miss(c, w, m, o->f, 0, e->site);
			i++; /* a wider fence may follow */
			continue;
		}
		if (m)
			warp_acquire(c, w, m, o->f);
		o->lanes &= ~m;
		if (o->lanes) {
			i++;
			continue;
		}
		frontier_put(&c->space, o->f);
		*o = w->observed.at[--w->observed.n];
	}
}

/* Each writer fences, a barrier follows, and one thread writes the flag: by the
 * letter only the fence of that thread makes a release pattern of its write. All
 * code that has a last block does so, and a fence at gpu scope does make what it
 * covers visible, whoever says so afterwards. */
static void make_ready(struct cluster *c, struct warp *w, struct released *r)
{
	struct frontier *f;

	if (c->check->config.policy.fence_by_flag_writer)
		return;
	f = frontier_new(&c->space);
	frontier_copy(&c->space, f, r->f);
	add_own_as(c, w, r->lanes, r->epoch, &r->own, f, PLANE_G);
	r->ready = foreign_of(c->number, f);
	frontier_put(&c->space, f);
}

/* The same on the other side: one thread reads the flag, all fence. */
static void fence_takes_seen(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct frontier *sum = NULL;

	for (unsigned i = 0; i < w->ngroups; i++) {
		const struct frontier *f = w->group[i].f;

		if (!(w->group[i].lanes & lanes) || !f->seen || foreign_covers(f->foreign, f->seen))
			continue;
		if (!sum)
			sum = frontier_new(&c->space);
		foreign_join(&sum->foreign, f->seen);
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
	uint32_t epoch = close_epoch(w), lanes = e->lanes;
	const struct event_fence *x = &e->fence;
	bool restricted = x->space == SP_SHARED;
	size_t i;

	for (i = 0; i < w->released.n;) {
		struct released *r = &w->released.at[i];

		/* a lesser fence takes nothing back from a greater one */
		if (x->scope >= r->scope && (!restricted || r->restricted))
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
			frontier_join_as(&c->space, f, PLANE_OWN_G, w->group[i].f, PLANE_G);
			frontier_join_as(&c->space, f, PLANE_OWN_P, w->group[i].f, PLANE_P);
		} else {
			frontier_copy(&c->space, f, w->group[i].f);
		}
		vec_push(&w->released, ((struct released){ m, epoch, is_wide(x->sem, x->scope),
			x->scope, restricted, f, NULL, w->own }));
		if (c->global && x->scope >= SCOPE_GPU && !restricted)
			make_ready(c, w, &w->released.at[w->released.n - 1]);
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
			fence_takes_seen(c, w, e->lanes);
	}
	if (sem_releases(x->sem))
		fence_releases(c, w, e);
}

void on_warp_sync(struct cluster *c, const struct event *e)
{
	warp_converge(c, warp_of(c, e), e->warp_sync.mask & warp_of(c, e)->live);
}

static void stray_shuffle(struct cluster *c, const struct event *e)
{
	struct finding *f = report_new(c, CS907, rule_severity(CS907), e->site, 0);

	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, "shuffle");
	report_edge(f, "lanes 0x%08x read the value of a lane that is outside their mask 0x%08x or has "
		"exited", e->lanes, e->warp_collective.mask);
	report_send(c, f);
}

/* A12, H06: shuffles and votes make lanes meet and order no memory. Code relies
 * on it all the same: what would be known then is kept aside. Lanes of part of a
 * warp that knows one and the same thing are left alone: to part them would
 * cost more than it tells. */
void on_warp_collective(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	uint32_t lanes = e->lanes & w->live;
	struct frontier *sum;

	if (e->warp_collective.bad_source) {
		stray_shuffle(c, e);
		return;
	}
	if (w->ngroups == 1 && (w->live & ~lanes || (!w->dirty && w->met == w->epoch)))
		return;
	if (w->ngroups == 1) {
		add_own_as(c, w, lanes, close_epoch(w), &w->own, w->group[0].f, PLANE_SOFT_G);
		w->met = w->epoch;
		return;
	}
	sum = frontier_new(&c->space);
	for (unsigned i = 0; i < w->ngroups; i++) {
		if (!(w->group[i].lanes & lanes))
			continue;
		frontier_join_as(&c->space, sum, PLANE_SOFT_G, w->group[i].f, PLANE_G);
		frontier_join_as(&c->space, sum, PLANE_SOFT_P, w->group[i].f, PLANE_P);
	}
	add_own_as(c, w, lanes, close_epoch(w), &w->own, sum, PLANE_SOFT_G);
	warp_acquire(c, w, lanes, sum);
	frontier_put(&c->space, sum);
}

/* ---- proxy fences ---- */

/* What the lanes' own doings are, as of now, in the given per-lane words. */
static void mark_own(struct warp *w, uint32_t lanes, uint32_t epoch, struct per_lane *own,
	struct per_lane *copies)
{
	per_lane_set(own, lanes | ~w->all, epoch);
	if (w->own.copies.low == w->own.copies.high) {
		if (w->own.copies.high)
			per_lane_set(copies, lanes | ~w->all, w->own.copies.high);
		return;
	}
	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		per_lane_set(copies, 1u << l, w->own.copies.at[l]);
	}
}

/* The acquire half makes a whole fence of release halves that it knows of. */
static void own_whole(struct warp *w, uint32_t lanes)
{
	for (; lanes && w->own.half.high; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		per_lane_set(&w->own.fenced, 1u << l, w->own.half.at[l]);
		per_lane_set(&w->own.fenced_copies, 1u << l, w->own.half_copies.at[l]);
	}
}

/* A fence by these lanes covers what others did, too: on the causality path it
 * may stand anywhere (K1). */
static void fence_known(struct cluster *c, struct warp *w, const struct event *e)
{
	const bool async = c->check->config.policy.async_across_ctas || c->generic_slots;
	unsigned i, n = w->ngroups;

	for (i = 0; i < n; i++) {
		uint32_t m = w->group[i].lanes & e->lanes;
		struct frontier *f = m && m != w->group[i].lanes ? split(c, w, i, m)->f : w->group[i].f;

		if (!m)
			continue;
		if (e->fence_proxy.proxy == PROXY_ASYNC_RELEASE)
			frontier_half(&c->space, f, async);
		else if (e->fence_proxy.proxy == PROXY_ASYNC_ACQUIRE)
			frontier_whole(&c->space, f);
		else
			frontier_fence(&c->space, f, async);
	}
}

/* What it covers of global memory is told apart from what it covers of shared. */
static void fence_global(struct cluster *c, struct warp *w, uint32_t lanes)
{
	unsigned n = w->ngroups;

	per_lane_set(&w->own.fenced_global, lanes | ~w->all, close_epoch(w));
	for (unsigned i = 0; i < n; i++) {
		uint32_t m = w->group[i].lanes & lanes;

		if (m)
			frontier_fence_global(&c->space, m == w->group[i].lanes ? w->group[i].f
				: split(c, w, i, m)->f);
	}
}

/* A uni-directional pair (A21): what the release half covers stays marked, on
 * its way from thread to thread, until an acquire half makes it count. */
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
		w->global_fence = e->site;
		return;
	}
	if (proxy == PROXY_ASYNC_ACQUIRE) {
		own_whole(w, e->lanes);
		fence_known(c, w, e);
		return;
	}
	if (proxy == PROXY_ASYNC) {
		w->fence_site = e->site;
		mark_own(w, e->lanes, close_epoch(w), &w->own.fenced, &w->own.fenced_copies);
	} else {
		w->half_site = e->site;
		mark_own(w, e->lanes, close_epoch(w), &w->own.half, &w->own.half_copies);
	}
	if (!c->check->config.policy.fence_by_writer)
		fence_known(c, w, e);
}
