/* order: what warps know: lane groups, release and acquire, bar.warp.sync. fence.c has the fences.
 * Contains no rules.
 *
 * Program order is not stored: a lane always knows its own accesses in plane G. Everything else it
 * knows about its own operations (which accesses a proxy fence covers, which groups it waited for)
 * is in struct lane_progress, for each lane, so that an elected lane's wait or fence does not split
 * the warp's frontier. Both are added to what the lane releases. */
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

uint32_t warp_stamp(struct warp *w, uint32_t lanes)
{
	w->acting |= lanes;
	return w->epoch;
}

/* The newest epoch in which each lane acted */
static void note_acted(struct warp *w)
{
	if (w->acting == w->all) {
		for (unsigned l = 0; l < 32; l++)
			w->acted[l] = w->epoch;
		return;
	}
	for (uint32_t m = w->acting; m; m &= m - 1)
		w->acted[__builtin_ctz(m)] = w->epoch;
}

uint32_t warp_close_epoch(struct warp *w)
{
	if (!w->acting)
		return w->epoch - 1;
	note_acted(w);
	w->acting = 0;
	w->epoch = epoch_next(w->epoch);
	return w->epoch - 1;
}

struct past_op warp_past_op(struct warp *w, uint32_t lanes, uint32_t site)
{
	return (struct past_op){ (uint16_t)w->index, lanes, warp_stamp(w, lanes), site };
}

/* ---- the lanes that f must know, beside `lanes`, to know all of an agent in a plane ---- */

/* Other planes have entries of lanes only. */
static uint32_t known_up_to(const struct cluster *c, const struct frontier *f, enum plane plane, uint32_t agent)
{
	return plane == PLANE_G || plane == PLANE_P || plane == PLANE_Q
		? frontier_full(&c->space, f, plane, agent) : 0;
}

static uint32_t lanes_after(const uint32_t newest[32], uint32_t epoch)
{
	uint32_t lanes = 0;

	for (unsigned l = 0; l < 32; l++)
		lanes |= newest[l] > epoch ? 1u << l : 0;
	return lanes;
}

/* Of the warp: those that acted since the epoch up to which f knows it, also if they have exited. So all of a
 * warp is known when its elected lane, which alone acted since the others' operations were known, releases. */
static uint32_t warp_required(const struct cluster *c, const struct warp *w, uint32_t lanes,
	const struct frontier *f, enum plane plane)
{
	if (!(w->all & ~lanes))
		return lanes;
	return (lanes_after(w->acted, known_up_to(c, f, plane, w->index)) & w->all) | w->acting | lanes;
}

/* Of its copies or bulk stores: those that issued some since. */
static uint32_t groups_required(const struct cluster *c, const struct lane_groups *g, uint32_t lanes,
	const struct frontier *f, enum plane plane, uint32_t agent)
{
	if (!(g->issued & ~lanes))
		return lanes;
	return (lanes_after(g->last, known_up_to(c, f, plane, agent)) & g->issued) | lanes;
}

uint32_t warp_copies_required(const struct cluster *c, const struct warp *w, uint32_t lanes,
	const struct frontier *f)
{
	return groups_required(c, &w->copies, lanes, f, PLANE_G, agent_copies(c, w->index));
}

/* ---- what lanes add to what is released ---- */

static void add_progress_of(struct cluster *c, struct frontier *into, enum plane plane,
	uint32_t agent, uint32_t lanes, uint32_t all, const struct per_lane *p)
{
	uint32_t same, value, l;

	if (p->low == p->high) {
		frontier_add(&c->space, into, plane, agent, lanes, all, p->low);
		return;
	}
	for (; lanes; lanes &= ~same) {
		value = p->at[__builtin_ctz(lanes)];
		for (same = 0, l = 0; l < 32; l++)
			if (lanes >> l & 1 && p->at[l] == value)
				same |= 1u << l;
		frontier_add(&c->space, into, plane, agent, same, all, value);
	}
}

/* Most warps have made little of this progress. */
static inline void add_accesses(struct cluster *c, struct warp *w, struct frontier *into, enum plane plane,
	uint32_t lanes, const struct per_lane *p)
{
	if (p->high)
		add_progress_of(c, into, plane, w->index, lanes, warp_required(c, w, lanes, into, plane), p);
}

static inline void add_groups(struct cluster *c, const struct lane_groups *g, struct frontier *into,
	enum plane plane, uint32_t agent, uint32_t lanes, const struct per_lane *p)
{
	if (p->high)
		add_progress_of(c, into, plane, agent, lanes, groups_required(c, g, lanes, into, plane, agent), p);
}

void warp_add_progress(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t epoch,
	const struct lane_progress *progress, struct frontier *into, enum plane g)
{
	const enum plane p = g + 1;
	const uint32_t copies = agent_copies(c, w->index), stores = agent_stores(c, w->index);

	_Static_assert(PLANE_P == PLANE_G + 1 && PLANE_CTA_P == PLANE_CTA_G + 1
		&& PLANE_COLLECTIVE_P == PLANE_COLLECTIVE_G + 1, "pairs of planes");
	frontier_add(&c->space, into, g, w->index, lanes, warp_required(c, w, lanes, into, g), epoch);
	add_accesses(c, w, into, p, lanes, &progress->fenced);
	add_accesses(c, w, into, PLANE_HALF, lanes, &progress->half);
	add_groups(c, &w->copies, into, g, copies, lanes, &progress->copies);
	add_groups(c, &w->copies, into, p, copies, lanes, &progress->fenced_copies);
	add_groups(c, &w->copies, into, PLANE_HALF, copies, lanes, &progress->half_copies);
	add_groups(c, &w->stores, into, g, stores, lanes, &progress->stores);
	add_groups(c, &w->stores, into, PLANE_STORED, stores, lanes, &progress->stored);
	if (g != PLANE_G)
		return;
	add_accesses(c, w, into, PLANE_Q, lanes, &progress->fenced_global);
	for (uint32_t m = w->remote; m; m &= m - 1)
		add_accesses(c, w, into, PLANE_MEMORY + (unsigned)__builtin_ctz(m), lanes,
			&progress->fenced_all);
}

static void add_progress(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t epoch,
	struct frontier *into)
{
	for (size_t i = 0; c->global && i < w->released.n; i++) {
		const struct released *r = &w->released.at[i];

		if (!r->ready || !(r->lanes & lanes))
			continue;
		foreign_join(&into->by_others[READY], r->ready);
		if (r->scope == SCOPE_SYS)
			foreign_join(&into->by_others[READY_SYSTEM], r->ready);
	}
	for (size_t i = 0; c->global && i < w->observed.n; i++) {
		const struct observed *o = &w->observed.at[i];

		if (o->f->foreign && o->lanes & lanes)
			foreign_join(&into->by_others[o->min_scope == SCOPE_SYS ? SEEN_SYSTEM : SEEN],
				o->f->foreign);
	}
	warp_add_progress(c, w, lanes, epoch, &w->progress, into, PLANE_G);
}

uint32_t warp_progress(const struct warp *w, enum agent_kind k, enum plane plane, unsigned lane)
{
	switch (k) {
	case AGENT_WARP:
		return plane == PLANE_G ? UINT32_MAX : plane >= PLANE_MEMORY ? w->progress.fenced_all.at[lane]
			: w->progress.fenced.at[lane];
	case AGENT_COPIES:
		return plane == PLANE_G ? w->progress.copies.at[lane] : w->progress.fenced_copies.at[lane];
	case AGENT_STORES:
		return w->progress.stores.at[lane];
	case AGENT_WGMMA: case AGENT_SLOT: case AGENT_TC: case AGENT_TMEM_LD: case AGENT_TMEM_ST:
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
	w->release[w->releases % ARRAY_SIZE(w->release)].epoch = w->epoch;
	w->release[w->releases % ARRAY_SIZE(w->release)].mbar = 0;
	w->release[w->releases++ % ARRAY_SIZE(w->release)].site = c->now ? c->now->site : 0;
	add_progress(c, w, lanes, warp_close_epoch(w), into);
}

void warp_peek(struct cluster *c, struct warp *w, struct frontier *into)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		frontier_join(&c->space, into, w->group[i].f);
	add_progress(c, w, w->live, w->epoch, into);
}

static void drop_group(struct cluster *c, struct warp *w, unsigned i)
{
	frontier_put(&c->space, w->group[i].f);
	w->group[i] = w->group[--w->ngroups];
}

struct group *warp_split_group(struct cluster *c, struct warp *w, unsigned i, uint32_t lanes)
{
	struct group *g = &w->group[w->ngroups++];

	g->lanes = lanes;
	g->f = frontier_new(&c->space);
	frontier_copy(&c->space, g->f, w->group[i].f);
	w->group[i].lanes &= ~lanes;
	return g;
}

/* Merges groups equal to group i: lanes that wait one after the other end with equal knowledge. */
static void merge_equal_groups(struct cluster *c, struct warp *w, unsigned i)
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

struct phase_release phase_release_new(struct cluster *c)
{
	struct phase_release h = { .local = frontier_new(&c->space) };

	if (c->nctas > 1)
		h.remote = (struct remote){ frontier_new(&c->space), frontier_new(&c->space), 0 };
	return h;
}

void phase_release_clear(struct cluster *c, struct phase_release *h)
{
	frontier_clear(&c->space, h->local);
	if (c->nctas == 1)
		return;
	frontier_clear(&c->space, h->remote.wide);
	frontier_clear(&c->space, h->remote.narrow);
	h->remote.site = 0;
}

void phase_release_put(struct cluster *c, const struct phase_release *h)
{
	frontier_put(&c->space, h->local);
	frontier_put(&c->space, h->remote.wide);
	frontier_put(&c->space, h->remote.narrow);
}

void warp_acquire(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from)
{
	unsigned i, n = w->ngroups;

	w->syncs++;
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
		frontier_join(&c->space, warp_split_group(c, w, i, m)->f, from);
	}
	for (i = w->ngroups; w->ngroups > 1 && i-- > 0;)
		if (i < w->ngroups && !(w->group[i].lanes & ~lanes))
			merge_equal_groups(c, w, i);
}

void warp_converge(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct frontier *sum = NULL;
	uint32_t took = 0;
	unsigned i;

	w->syncs++;
	if (w->ngroups == 1 && w->group[0].lanes == lanes) {
		add_progress(c, w, lanes, warp_close_epoch(w), w->group[0].f);
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
	add_progress(c, w, took, warp_close_epoch(w), sum);
}

void warp_learn(struct cluster *c, struct warp *w, uint32_t agent, uint32_t epoch)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		frontier_add(&c->space, w->group[i].f, PLANE_G, agent, UINT32_MAX, UINT32_MAX, epoch);
}

void order_exit(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct cta *cta = &c->cta[w->cta];

	warp_release(c, w, lanes, cta->exited);
	cluster_leave(c, w, lanes);
	if (cta->exited_waited < w->cluster_waited)
		cta->exited_waited = w->cluster_waited;
	w->live &= ~lanes;
	w->exit_site = c->now->site;
	for (unsigned i = 0; i < w->ngroups;) {
		w->group[i].lanes &= ~lanes;
		if (w->group[i].lanes)
			i++;
		else
			drop_group(c, w, i);
	}
}

bool warp_all_know(struct cluster *c, struct warp *w, uint32_t lanes, const struct past_op *x)
{
	for (unsigned i = 0; i < w->ngroups; i++) {
		const struct group *g = &w->group[i];
		uint32_t m = g->lanes & lanes;

		if (!m || frontier_full(&c->space, g->f, PLANE_G, x->warp) >= x->epoch)
			continue;
		if (x->warp == w->index && !(m & ~x->lanes))
			continue;
		if (!((frontier_lanes(&c->space, g->f, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, g->f, PLANE_CTA_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, g->f, PLANE_SHARED_G, x->warp, x->epoch)) & x->lanes))
			return false;
	}
	return true;
}

bool warp_any_knows(struct cluster *c, const struct warp *w, const struct past_op *x)
{
	if (x->warp == w->index)
		return true;
	for (unsigned i = 0; i < w->ngroups; i++)
		if (frontier_knows_one(&c->space, w->group[i].f, x->warp, x->lanes, x->epoch))
			return true;
	return false;
}

void on_warp_sync(struct cluster *c, const struct event *e)
{
	warp_converge(c, warp_of(c, e), e->warp_sync.mask & warp_of(c, e)->live);
}

uint32_t warp_stamp_apart(struct warp *w, uint32_t lanes)
{
	const bool together = !w->acting && w->converged == w->epoch;
	const uint32_t epoch = warp_stamp(w, lanes);

	if (!together)
		return epoch;
	warp_close_epoch(w);
	w->converged = w->epoch;
	return epoch;
}

static void invalid_shuffle(struct cluster *c, const struct event *e)
{
	struct finding *f = report_new(c, CS907, rule_severity(CS907), e->site, 0);

	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, "shuffle");
	report_edge(f, "lanes 0x%08x read the value of a lane that is outside their mask 0x%08x or has "
		"exited", e->lanes, e->warp_collective.mask);
	report_send(c, f);
}

/* A12, H06: shuffles, votes and .aligned instructions converge lanes but order no memory. Code
 * relies on it all the same: what would be known then is kept in the COLLECTIVE planes. If only part
 * of the warp takes part and all its lanes have equal knowledge, nothing is recorded: splitting the
 * warp would cost more than the better report is worth. */
void warp_executed_together(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct frontier *sum;

	lanes &= w->live;
	if (w->ngroups == 1 && (w->live & ~lanes || (!w->acting && w->converged == w->epoch)))
		return;
	if (w->ngroups == 1) {
		warp_add_progress(c, w, lanes, warp_close_epoch(w), &w->progress, w->group[0].f,
			PLANE_COLLECTIVE_G);
		w->converged = w->epoch;
		return;
	}
	sum = frontier_new(&c->space);
	for (unsigned i = 0; i < w->ngroups; i++) {
		if (!(w->group[i].lanes & lanes))
			continue;
		frontier_join_as(sum, PLANE_COLLECTIVE_G, w->group[i].f, PLANE_G);
		frontier_join_as(sum, PLANE_COLLECTIVE_P, w->group[i].f, PLANE_P);
	}
	warp_add_progress(c, w, lanes, warp_close_epoch(w), &w->progress, sum, PLANE_COLLECTIVE_G);
	warp_acquire(c, w, lanes, sum);
	frontier_put(&c->space, sum);
}

void on_warp_collective(struct cluster *c, const struct event *e)
{
	if (e->warp_collective.bad_source)
		invalid_shuffle(c, e);
	else
		warp_executed_together(c, warp_of(c, e), e->lanes);
}
