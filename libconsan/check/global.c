/* global: accesses to global memory, one record each, with their layout for the shadow. The shadow
 * finds conflicts and calls global_race.c to classify them. */
#include "global.h"
#include "host.h"
#include "met.h"
#include "libconsan/finding/rule_codes.h"

#include <stdlib.h>
#include <string.h>

void global_layout_of(struct global_record *r, uint32_t lanes, const struct ev_lanes *at)
{
	if (!at->halves || !global_set_halves(r, lanes, at->base, at->stride,
			(int64_t)(at->lane[16] - at->lane[0])))
		global_set_layout(r, lanes, at->lane, at->base, at->stride);
}

/* What the warp is in the cluster at the moment; in one that repeats another one, what it was there. */
static struct repeat_stamp stamp_of(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t agent,
	uint32_t epoch)
{
	struct repeat_stamp s = { .epoch = epoch, .agent = (uint16_t)agent };

	if (c->repeat.stamp)
		return *c->repeat.stamp;
	s.issue = warp_stamp(w, lanes);
	s.only = w->ngroups == 1 && !(lanes & ~w->group[0].lanes);
	repeat_access(c, w, lanes, &s);
	return s;
}

static bool replays(const struct cluster *c)
{
	return c->repeat.state == REPEAT_REPLAYS;
}

struct global_view global_view_of(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f)
{
	return (struct global_view){
		.accessor = { .isolated = !f->foreign, .synchronised = global_synchronised(c),
			.classify = global_classify, .observed = global_observed },
		.c = c, .w = w, .f = f, .lanes = lanes };
}

static void plain_write_of(struct cluster *c, const struct global_record *r)
{
	struct global_spans spans;

	if (!__atomic_load_n(&c->check->global->beside->nlocations, __ATOMIC_ACQUIRE))
		return;
	global_spans_open(&spans);
	global_spans_of(r, &spans);
	release_plain_writes(c, spans.at, spans.n);
	global_spans_close(&spans);
}

/* What the thread knew of other grids, and of the host. */
void global_know(struct cluster *c, struct global_record *r, struct foreign *foreign)
{
	r->met = met_number(c, foreign);
	host_note(c, r, foreign);
}

/* Records the access of lanes that know the same. */
static void touch_group(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	const struct ev_lanes *at, struct global_record *r, bool plain_write)
{
	struct global_view v = global_view_of(c, w, lanes, f);

	global_know(c, r, f->foreign);
	global_layout_of(r, lanes, at);
	if (!(r->flags & (GR_WRITE | GR_STRONG)) && (global_saturated(c, r)
			|| global_shadow_repeat(c->check->global->shadow, &v.accessor, r)))
		return;
	if (plain_write)
		plain_write_of(c, r);
	global_shadow_touch(c->check->global->shadow, &v.accessor, r);
}

/* Records the access of all lanes, with a record for each group of lanes that has its own
 * knowledge. */
static void touch_lanes(struct cluster *c, struct warp *w, uint32_t all,
	const struct ev_lanes *at, struct global_record *r, bool plain_write)
{
	if (global_follows(c)) {
		touch_group(c, w, all, c->repeat.nothing, at, r, plain_write);
		return;
	}
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].lanes & all)
			touch_group(c, w, w->group[i].lanes & all, w->group[i].f, at, r, plain_write);
}

static unsigned scope_of(const struct event_access *a)
{
	if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO || a->scope >= SCOPE_GPU)
		return 2;
	return a->scope == SCOPE_CLUSTER;
}

static bool is_system(const struct event_access *a)
{
	return a->sem == SEM_VOLATILE || a->sem == SEM_MMIO || a->scope > SCOPE_GPU;
}

/* Do two lanes have the same address? */
static bool any_twice(const uint64_t *at, uint32_t lanes)
{
	enum { SLOTS = 128 };
	uint8_t lane[SLOTS];
	uint64_t used[SLOTS / 64] = { 0 };

	for (; lanes; lanes &= lanes - 1) {
		const unsigned l = (unsigned)__builtin_ctz(lanes);
		unsigned i = (unsigned)(at[l] * 0x9e3779b97f4a7c15ull >> 57);

		for (; used[i / 64] >> i % 64 & 1; i = (i + 1) % SLOTS)
			if (at[lane[i]] == at[l])
				return true;
		used[i / 64] |= 1ull << i % 64;
		lane[i] = (uint8_t)l;
	}
	return false;
}

/* Lanes of one store with one address: those of a lane that loses its value, if any does. */
static void one_address(struct cluster *c, const struct event *e)
{
	const struct ev_lanes *at = &e->access.at;
	const uint32_t lost = e->access.overwritten & e->lanes;

	if (at->lane ? !lost && !any_twice(at->lane, e->lanes)
		: at->stride || !(e->lanes & (e->lanes - 1)))
		return;
	for (uint32_t m = lost ? lost : e->lanes; m; m &= m - 1) {
		unsigned a = (unsigned)__builtin_ctz(m);

		for (uint32_t k = e->lanes & ~lost & ~(1u << a); k; k &= k - 1) {
			unsigned b = (unsigned)__builtin_ctz(k);

			if (lane_addr(at, a) == lane_addr(at, b)) {
				global_one_instruction(c, e, a, b, lane_addr(at, a));
				return;
			}
		}
	}
}

/* ---- reads that add nothing ---- */

static struct recent *recent_of(struct cluster *c, const struct warp *w, uint64_t addr)
{
	return &c->global->recent[w->index * RECENT + addr / 4 % RECENT];
}

/* Have these lanes read these bytes in this epoch? Then the read adds nothing: a conflicting access
 * ordered between the two would have closed the epoch. While clusters do not synchronize, reads
 * that others represent count, too. */
static bool read_already(struct cluster *c, struct warp *w, const struct event *e, uint32_t epoch,
	uint64_t addr, uint32_t lanes)
{
	const uint64_t key = addr ^ (uint64_t)e->access.bytes << 56
		^ (uint64_t)!!(e->access.flags & ACCESS_NONCOHERENT) << 63
		^ (uint64_t)global_synchronised(c) << 62;
	struct recent *r = recent_of(c, w, addr);

	if (r->key != key || r->epoch != epoch) {
		*r = (struct recent){ key, epoch, lanes };
		c->global->has_recent[w->index] = 1;
		return false;
	}
	if (!(lanes & ~r->lanes))
		return true;
	r->lanes |= lanes;
	return false;
}

/* The same for each lane separately; for accesses that are recorded lane by lane. */
static bool all_lanes_read_already(struct cluster *c, struct warp *w, const struct event *e,
	uint32_t epoch)
{
	bool all = true;

	for (uint32_t m = e->lanes; m; m &= m - 1)
		all &= read_already(c, w, e, epoch, lane_addr(&e->access.at, (unsigned)__builtin_ctz(m)),
			m & -m);
	return all;
}

/* Have so many clusters read all this that one more adds nothing? */
static bool saturated(const struct cluster *c, const struct event *e, const struct global_record *r)
{
	const struct ev_lanes *at = &e->access.at;
	const struct global_shadow *s = c->check->global->shadow;

	if (global_synchronised(c))
		return false;
	if (e->lanes == UINT32_MAX && at->stride == (int32_t)e->access.bytes && (at->halves || !at->lane)) {
		const uint64_t bytes = (at->halves ? 16 : 32) * (uint64_t)e->access.bytes;

		return global_shadow_saturated(s, r, at->base, bytes)
			&& (!at->halves || global_shadow_saturated(s, r, at->lane[16], bytes));
	}
	if (at->lane)
		return global_shadow_all_saturated(s, r, at->lane, e->lanes);
	for (uint32_t m = at->stride ? e->lanes : e->lanes & -e->lanes; m; m &= m - 1)
		if (!global_shadow_saturated(s, r, lane_addr(at, (unsigned)__builtin_ctz(m)),
				e->access.bytes))
			return false;
	return true;
}

static void before_write(struct cluster *c, struct warp *w, const struct event *e)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (uint32_t m = e->lanes; m; m &= m - 1) {
		const uint64_t at = lane_addr(&e->access.at, (unsigned)__builtin_ctz(m));

		low = at < low ? at : low;
		high = at > high ? at : high;
	}
	global_before_write(c, w, &(struct global_span){ low, high + e->access.bytes - low });
}

void global_access(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_access *a = &e->access;
	const bool strong = access_is_strong(a);
	struct global_record r = {
		.cluster = c->number, .site = e->site, .agent = (uint16_t)w->index,
		.warp = (uint16_t)w->index, .size = (uint16_t)a->bytes, .lane = -1,
		.element = (uint16_t)(a->element_bytes ? a->element_bytes : a->bytes), .value = a->value,
		.scope = (uint8_t)scope_of(a),
		.flags = (uint16_t)((a->mode & MODE_WRITE ? GR_WRITE : 0) | (strong ? GR_STRONG : 0)
			| (a->mode == MODE_RMW ? GR_RMW : 0)
			| (a->mode == MODE_RMW && site_get(e->site)->unread ? GR_UNREAD : 0)
			| (a->flags & ACCESS_NONCOHERENT ? GR_NC : 0)
			| (a->flags & ACCESS_STALE ? GR_STALE : 0)
			| (strong && is_system(a) ? GR_SYSTEM : 0)
			| (a->sem == SEM_VOLATILE && !(a->flags & ACCESS_FLAG) ? GR_VOLATILE : 0)),
	};

	struct repeat_stamp s = { 0 };

	c->stats.accesses++;
	if (!strong)
		s = stamp_of(c, w, e->lanes, w->index, 0);
	if (replays(c))
		return;
	r.epoch = r.issue = s.issue;
	if (!strong && a->mode == MODE_READ && ((!a->at.lane && !a->at.stride
			&& read_already(c, w, e, s.issue, a->at.base, e->lanes))
		|| global_defer(c, w, e->lanes, &a->at, &s, true, &r) || saturated(c, e, &r)
		|| (r.row == GR_LIST && all_lanes_read_already(c, w, e, s.issue))))
		return;
	if (a->flags & ACCESS_FLAG)
		volatile_read_flag(c, a, e->lanes);
	if (strong)
		acquire_reads(c, w, e);
	else if (a->mode & MODE_WRITE)
		one_address(c, e);
	if (r.flags & GR_RMW && !(r.flags & GR_UNREAD))
		warp_close_epoch(w); /* global_step.c tells instructions apart by their epochs */
	if (strong)
		r.epoch = r.issue = warp_stamp(w, e->lanes);
	if (r.flags & GR_VOLATILE && warp_publishes(w, e->lanes))
		r.flags |= GR_PUBLISHES;
	if (a->mode & MODE_WRITE)
		before_write(c, w, e);
	touch_lanes(c, w, e->lanes, &a->at, &r, !strong && a->mode & MODE_WRITE);
	if (!strong)
		return;
	release_writes(c, w, e);
	warp_order_rmw(c, w, e);
}

void global_copy(struct cluster *c, const struct event *e)
{
	const struct event_cp_async *a = &e->cp_async;
	const struct ev_lanes source = { .lane = a->source };
	struct warp *w = warp_of(c, e);
	struct global_record r = {
		.cluster = c->number, .site = e->site, .warp = (uint16_t)w->index,
		.size = (uint16_t)a->source_bytes, .element = (uint16_t)a->source_bytes, .lane = -1,
	};
	struct repeat_stamp s;

	if (!a->readers || !a->source_bytes)
		return;
	s = stamp_of(c, w, a->readers, agent_copies(c, w->index), w->copies.open);
	if (replays(c))
		return;
	r.agent = s.agent;
	r.epoch = s.epoch;
	r.issue = s.issue;
	if (!global_defer(c, w, a->readers, &source, &s, false, &r))
		touch_lanes(c, w, a->readers, &source, &r, false);
}

/* ---- bulk operations: an engine accesses all bytes ---- */

static void touch_spans(struct cluster *c, struct warp *w, const struct ev_gspan *span, unsigned n,
	unsigned lane, struct global_record *r)
{
	struct cluster_global *k = c->global;
	struct global_view v = global_view_of(c, w, 1u << lane,
		global_follows(c) ? c->repeat.nothing : warp_frontier(w, lane));

	k->spans.n = 0;
	for (unsigned i = 0; i < n; i++)
		if (span[i].bytes)
			vec_push(&k->spans, ((struct global_span){ span[i].addr, span[i].bytes }));
	global_know(c, r, v.f->foreign);
	r->row = GR_WHOLE;
	r->base = n ? span[0].addr : 0;
	if (r->flags & GR_WRITE)
		release_plain_writes(c, k->spans.at, k->spans.n);
	global_shadow_touch_whole(c->check->global->shadow, &v.accessor, r, k->spans.at, k->spans.n);
}

void global_load(struct cluster *c, const struct event *e, struct warp *w, unsigned lane,
	uint32_t slot)
{
	const struct repeat_stamp s = stamp_of(c, w, 1u << lane, agent_slot(c, slot),
		global_follows(c) ? 0 : c->slots.at[slot].epoch);
	struct global_record r = {
		.cluster = c->number, .site = e->site, .agent = s.agent,
		.epoch = s.epoch, .issue = s.issue, .warp = (uint16_t)w->index,
		.lane = (int8_t)lane, .lanes = UINT32_MAX,
		.flags = (uint8_t)(GR_ASYNC | (e->bulk.tensor ? GR_TENSOR : 0)),
	};

	if (!e->bulk.global.n || replays(c))
		return;
	touch_spans(c, w, e->bulk.global.at, e->bulk.global.n, lane, &r);
}

/* Has another lane of the same instruction just made this store, of the same bytes from the same
 * source? Then it writes equal values. A whole warp that executes its TMA store, as in CUTLASS's
 * epilogues, does that. */
static bool repeats_store(struct cluster *c, const struct event *e, struct warp *w, unsigned lane)
{
	const struct event_bulk *b = &e->bulk;
	struct global_stored *s = &c->global->stored;
	struct global_stored now = { .event = c->stats.events, .from = b->addr,
		.to = b->global.n ? b->global.at[0].addr : 0, .site = e->site, .size = b->bytes,
		.warp = w->index, .peer = b->owner, .lane = lane };
	bool again = now.event == s->event + 1 && now.from == s->from && now.to == s->to
		&& now.site == s->site && now.size == s->size && now.warp == s->warp
		&& now.peer == s->peer;
	struct finding *f;

	if (again)
		now.lane = s->lane;
	*s = now;
	if (!again)
		return false;
	f = report_new(c, CS107, c->check->config.policy.store_by_many_lanes ? rule_severity(CS107)
		: SEV_NOTE, e->site, e->site);
	if (f) {
		report_side(c, f, w->index, (int)lane, e->site, "bulk store");
		report_side(c, f, w->index, (int)s->lane, e->site, "bulk store");
		report_edge(f, "lanes %u and %u store the same bytes to the same destination in one "
			"instruction", s->lane, lane);
		report_hint(f, HINT(equal_bulk_stores));
		report_send(c, f);
	}
	return true;
}

/* A29: the elements of a reduction are atomic, in the async proxy. */
void global_store(struct cluster *c, const struct event *e, struct warp *w, unsigned lane)
{
	const struct event_bulk *b = &e->bulk;
	const unsigned inside = b->global.n - b->padding;
	const struct repeat_stamp s = stamp_of(c, w, 1u << lane, agent_stores(c, w->index), w->stores.open);
	struct global_record r = {
		.cluster = c->number, .site = e->site, .agent = s.agent,
		.epoch = s.epoch, .issue = s.issue, .warp = (uint16_t)w->index,
		.lane = (int8_t)lane, .lanes = 1u << lane, .scope = 2,
		.flags = (uint8_t)(GR_WRITE | GR_ASYNC | (b->tensor ? GR_TENSOR : 0)
			| (b->reduce ? GR_STRONG | GR_RMW : 0)),
	};

	if (!b->global.n || replays(c) || (!b->reduce && repeats_store(c, e, w, lane)))
		return;
	for (uint32_t i = 0; i < b->global.n; i++)
		global_before_write(c, w, &(struct global_span){ b->global.at[i].addr, b->global.at[i].bytes });
	touch_spans(c, w, b->global.at, inside, lane, &r);
	if (!b->padding)
		return;
	r.flags |= GR_PADDING;
	touch_spans(c, w, b->global.at + inside, b->padding, lane, &r);
}

/* ---- memory of the device heap ---- */

/* Between free and the next owner's malloc, a block is handed over: free is ordered after all uses
 * of the block or races with them, so they need not be remembered once malloc returns it again. */
void on_heap(struct cluster *c, const struct event *e)
{
	const struct event_heap *h = &e->heap;
	const unsigned lane = (unsigned)__builtin_ctz(e->lanes);
	const struct global_span span = { .addr = h->addr, .bytes = h->bytes };
	struct warp *w = warp_of(c, e);
	struct global_view v = { 0 };
	struct global_record r = {
		.cluster = c->number, .site = e->site, .agent = (uint16_t)w->index,
		.warp = (uint16_t)w->index, .lane = (int8_t)lane, .lanes = 1u << lane, .row = GR_WHOLE,
		.base = h->addr, .flags = GR_WRITE,
	};

	if (!c->global || !warp_frontier(w, lane))
		return;
	global_before_write(c, w, &span);
	if (!h->freed) {
		global_shadow_forget(c->check->global->shadow, h->addr, h->bytes);
		release_plain_writes(c, &span, 1);
		warp_stamp(w, 1u << lane);
		warp_close_epoch(w); /* earlier reads of these bytes are no reads of the block */
		return;
	}
	r.epoch = r.issue = warp_stamp(w, 1u << lane);
	v = global_view_of(c, w, 1u << lane, warp_frontier(w, lane));
	global_shadow_touch_whole(c->check->global->shadow, &v.accessor, &r, &span, 1);
}

/* ---- grids that threads launch ---- */

void on_grid_launch(struct cluster *c, const struct event *e)
{
	struct frontier *f;

	if (!c->global || !c->check->config.before)
		return;
	f = frontier_new(&c->space);
	warp_release(c, warp_of(c, e), e->lanes, f);
	beside_launches(c->check, e->grid_launch.number, foreign_of(c->number, f));
	frontier_put(&c->space, f);
}
