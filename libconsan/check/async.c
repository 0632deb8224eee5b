/* async: cp.async and bulk groups, the slots of bulk loads, operations in flight, and what is
 * incomplete at exit. Completion counts where a thread is ordered after it, not when it
 * happened. */
#include "global.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- groups, a FIFO per lane (C04, C05, C09, C21) ---- */

#define MAX_COMMITS 4096

void groups_reset(struct lane_groups *g)
{
	struct commit *at = g->at;
	size_t cap = g->cap;

	*g = (struct lane_groups){ .open = 1, .at = at, .cap = cap };
}

void groups_issue(struct lane_groups *g, uint32_t lanes, uint32_t site)
{
	g->holds |= lanes;
	g->issued |= lanes;
	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctz(lanes);

		g->last[l] = g->open;
		g->site[l] = site;
	}
}

static void commit(struct lane_groups *g, uint32_t lanes, uint32_t site)
{
	if (g->n == MAX_COMMITS) { /* no thread waits for groups that far back */
		memmove(g->at, g->at + MAX_COMMITS / 2, MAX_COMMITS / 2 * sizeof *g->at);
		g->n = MAX_COMMITS / 2;
	}
	vec_push(g, ((struct commit){ g->open, lanes, site }));
	g->open = epoch_next(g->open);
	g->holds &= ~lanes;
}

/* The number of the newest group of the lane that is older than its newest `count` groups. */
static uint32_t reached(const struct lane_groups *g, unsigned lane, uint32_t count)
{
	for (size_t i = g->n; i-- > 0;) {
		if (!(g->at[i].lanes >> lane & 1))
			continue;
		if (!count--)
			return g->at[i].number;
	}
	return 0;
}

static void wait_groups(struct warp *w, struct lane_groups *g, struct per_lane *done,
	uint32_t lanes, uint32_t count, uint32_t site)
{
	uint32_t left = lanes, same = UINT32_MAX, least = UINT32_MAX;
	size_t i, k = 0;

	warp_learned(w);
	for (; left; left &= left - 1) {
		g->wait_site[__builtin_ctz(left)] = site;
		g->wait_count[__builtin_ctz(left)] = count;
	}
	/* the usual case: all the lanes committed together */
	for (i = g->n; i > 0 && g->n - i <= count; i--)
		same &= g->at[i - 1].lanes;
	if (g->n <= count)
		return;
	if (!(lanes & ~same)) {
		per_lane_set(done, lanes | ~w->all, g->at[g->n - 1 - count].number);
	} else {
		for (left = lanes; left; left &= left - 1) {
			unsigned l = (unsigned)__builtin_ctz(left);

			per_lane_set(done, 1u << l, reached(g, l, count));
		}
	}
	if (g->n < 64)
		return;
	/* groups older than what every live lane has waited for are complete, but newer waits still
	 * count them: keep a few */
	for (left = w->live; left; left &= left - 1)
		if (done->at[__builtin_ctz(left)] < least)
			least = done->at[__builtin_ctz(left)];
	while (k < g->n - 16 && g->at[k].number < least)
		k++;
	memmove(g->at, g->at + k, (g->n - k) * sizeof *g->at);
	g->n -= k;
}

void on_cp_async_commit(struct cluster *c, const struct event *e)
{
	commit(&warp_of(c, e)->copies, e->lanes, e->site);
}

void on_cp_async_wait(struct cluster *c, const struct event *e)
{
	const struct event_cp_async_wait *x = &e->cp_async_wait;
	struct warp *w = warp_of(c, e);

	if (x->all)
		commit(&w->copies, e->lanes, e->site);
	wait_groups(w, &w->copies, &w->progress.copies, e->lanes, x->all ? 0 : x->pending, e->site);
}

void on_bulk_commit(struct cluster *c, const struct event *e)
{
	commit(&warp_of(c, e)->stores, e->lanes, e->site);
}

/* Lanes with bulk stores whose writes are not known to be complete. */
static uint32_t pending_writes(const struct warp *w)
{
	uint32_t lanes = 0;

	for (unsigned l = 0; l < 32; l++)
		lanes |= (uint32_t)(w->stores.last[l] > w->progress.stored.at[l]) << l;
	return lanes;
}

void on_bulk_wait(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	struct lane_groups *g = &w->stores;
	uint32_t pending = 0, issuers = 0;
	struct finding *f;
	unsigned l;

	for (l = 0; l < 32; l++) {
		issuers |= (uint32_t)(g->last[l] > 0) << l;
		pending |= (uint32_t)(g->last[l] > w->progress.stores.at[l]) << l;
	}
	if (c->global && !(e->bulk_wait.read))
		for (uint32_t m = pending_writes(w) & e->lanes; m; m &= m - 1)
			per_lane_set(&w->progress.stored, m & -m,
				reached(g, (unsigned)__builtin_ctz(m), e->bulk_wait.pending));
	wait_groups(w, g, &w->progress.stores, e->lanes, e->bulk_wait.pending, e->site);
	/* C21: only the issuing thread's wait counts */
	if (!pending || pending & e->lanes || issuers & e->lanes)
		return;
	l = (unsigned)__builtin_ctz(pending);
	f = report_new(c, CS310, rule_severity(CS310), e->site, g->site[l]);
	if (!f)
		return;
	report_side(c, f, w->index, only_lane(e->lanes), e->site, "bulk group wait");
	report_side(c, f, w->index, (int)l, g->site[l], "bulk operation");
	report_edge(f, "a bulk group belongs to the thread that issued its copies: lane %u "
		"issued them, the waiting lane has no group", l);
	report_send(c, f);
}

/* ---- operations in flight: a hash by id ---- */

static uint32_t op_place(const struct cluster *c, uint32_t id)
{
	return id * 0x9e3779b1u & (c->cap_ops - 1);
}

void async_op_add(struct cluster *c, struct async_op op)
{
	uint32_t i;

	if (2 * (c->nops + 1) > c->cap_ops) {
		struct async_op *old = c->op;
		uint32_t cap = c->cap_ops;

		c->cap_ops = cap ? 2 * cap : 64;
		c->op = base_alloc(c->cap_ops * sizeof *c->op);
		c->nops = 0;
		for (i = 0; i < cap; i++)
			if (old[i].id)
				async_op_add(c, old[i]);
		free(old);
	}
	for (i = op_place(c, op.id); c->op[i].id; i = (i + 1) & (c->cap_ops - 1))
		;
	c->op[i] = op;
	c->nops++;
}

void async_ops_reset(struct cluster *c)
{
	for (uint32_t i = 0; c->nops && i < c->cap_ops; i++)
		if (c->op[i].id)
			frontier_put(&c->space, c->op[i].known);
	if (c->nops)
		memset(c->op, 0, c->cap_ops * sizeof *c->op);
	c->nops = 0;
}

bool async_op_take(struct cluster *c, uint32_t id, struct async_op *out)
{
	uint32_t mask = c->cap_ops - 1, i, k;

	if (!c->nops || !id)
		return false;
	for (i = op_place(c, id); c->op[i].id != id; i = (i + 1) & mask)
		if (!c->op[i].id)
			return false;
	*out = c->op[i];
	c->nops--;
	/* close the gap, so that no search ends early */
	for (k = i;;) {
		uint32_t home;

		c->op[i].id = 0;
		do {
			k = (k + 1) & mask;
			if (!c->op[k].id)
				return true;
			home = op_place(c, c->op[k].id);
		} while (i <= k ? i < home && home <= k : i < home || home <= k);
		c->op[i] = c->op[k];
		i = k;
	}
}

const struct async_op *async_op_on(const struct cluster *c, uint32_t mbar)
{
	for (uint32_t i = 0; c->nops && i < c->cap_ops; i++)
		if (c->op[i].id && c->op[i].mbar == mbar)
			return &c->op[i];
	return NULL;
}

/* The phase waits for the arrivals of all these lanes, so that what any of them hands on counts. */
static struct frontier *waited_for_grids(struct cluster *c, struct warp *w, uint32_t lanes)
{
	struct frontier *f = NULL;

	for (; lanes && !f; lanes &= lanes - 1)
		f = grids_handed_on(c, warp_frontier(w, (unsigned)__builtin_ctz(lanes)));
	return f;
}

#define MAX_COPY_ARRIVALS 64

static void note_copy_arrival(struct warp *w, uint32_t lanes)
{
	if (w->copy_arrivals.n == MAX_COPY_ARRIVALS) { /* rings of buffers are shorter */
		w->copy_arrivals.n /= 2;
		memmove(w->copy_arrivals.at, w->copy_arrivals.at + w->copy_arrivals.n,
			w->copy_arrivals.n * sizeof *w->copy_arrivals.at);
	}
	vec_push(&w->copy_arrivals,
		((struct copy_arrival){ w->copies.open, lanes, warp_stamp(w, lanes) }));
	warp_close_epoch(w); /* a wait that follows has a later one */
}

void on_cp_async_arrive(struct cluster *c, const struct event *e)
{
	const struct event_cp_async_arrive *a = &e->cp_async_arrive;
	struct warp *w = warp_of(c, e);
	struct mbar *m = mbar_use(c, e, e->cta, a->addr);
	uint32_t lanes = (uint32_t)__builtin_popcount(e->lanes);

	if (!m)
		return;
	if (!a->noinc)
		m->pending += lanes;
	m->inflight++;
	async_op_add(c, (struct async_op){
		.id = async_op_key(a->async_op, e->cta), .mbar = (uint32_t)(m - c->mbars.at) + 1,
		.phase = m->phase, .epoch = w->copies.open, .lanes = e->lanes, .warp = w->index,
			.site = e->site,
		.copies = true, .known = waited_for_grids(c, w, e->lanes),
	});
	mbar_copies(m, (struct past_op){ (uint16_t)w->index, e->lanes, w->copies.open, e->site });
	note_copy_arrival(w, e->lanes);
	w->copies.open = epoch_next(w->copies.open); /* later copies are not covered by this arrive */
}

/* ---- slots ---- */

static uint32_t take_slot(struct cluster *c, const struct warp *w, const struct frontier *issuer,
	bool generic)
{
	/* K6 needs the CTA of every past load */
	const bool same_cta = c->check->config.policy.async_across_ctas;
	uint32_t n = (uint32_t)c->slots.n, i;

	for (i = 0; i < n && i < 8; i++) {
		uint32_t k = (c->slot_cursor + i) % n;

		if (c->slots.at[k].generic != generic
			|| (same_cta && c->warp[c->slots.at[k].warp].cta != w->cta))
			continue;
		if (frontier_full(&c->space, issuer, PLANE_G, agent_slot(c, k)) >= c->slots.at[k].epoch) {
			c->slot_cursor = k + 1;
			return k;
		}
	}
	/* one of the same kind: old entries of a slot are classified by its current kind */
	for (i = 0; i < n && n >= MAX_SLOTS; i++) {
		uint32_t k = c->slot_cursor++ % n;

		if (c->slots.at[k].generic == generic)
			return k;
	}
	vec_push(&c->slots, ((struct slot){ 0 }));
	c->space.nagents++;
	return n;
}

/* The lanes of one st.async are separate events; if they signal one phase they share a slot, which
 * records the first lane as the issuer. */
static bool same_instruction(const struct cluster *c, const struct event *e, const struct warp *w,
	unsigned lane, uint16_t peer, uint32_t mbar)
{
	const struct slot *s = c->slots.n ? &c->slots.at[c->slot_last] : NULL;

	return s && e->bulk.generic_proxy && c->slot_event && c->slot_event + 1 == c->stats.events
		&& lane > c->slot_lane && s->site == e->site && s->warp == w->index && s->cta == peer
		&& mbar && s->mbar == mbar && s->phase == c->mbars.at[mbar - 1].phase;
}

static void touch_spans(struct cluster *c, struct view *v, const struct event *e,
	struct cell_entry now)
{
	const struct event_bulk *b = &e->bulk;
	const struct ev_span whole = { b->addr, b->bytes };

	shadow_spans(&c->cta[v->peer].shadow, &v->s, b->spans.n ? b->spans.at : &whole,
		b->spans.n ? b->spans.n : 1, now);
}

/* The effect of the load in one destination CTA: `peer` owns the bytes, `mbar_peer` the object that
 * it signals. */
static void bulk_load(struct cluster *c, const struct event *e, struct warp *w, unsigned lane,
	uint16_t peer, uint16_t mbar_peer)
{
	const struct event_bulk *b = &e->bulk;
	struct mbar *m = mbar_use(c, e, mbar_peer, b->mbarrier);
	struct frontier *f = warp_frontier(w, lane);
	uint32_t mbar = m ? (uint32_t)(m - c->mbars.at) + 1 : 0;
	bool more = same_instruction(c, e, w, lane, peer, mbar);
	uint32_t k = more ? c->slot_last : take_slot(c, w, f, b->generic_proxy);
	struct slot *s = &c->slots.at[k];
	struct cell_entry now;
	struct view v;

	if (!more)
		*s = (struct slot){
			.epoch = epoch_next(s->epoch), .cta = peer, .tensor = b->tensor,
			.generic = b->generic_proxy,
			.peer = b->source, .response = e->kind == EV_TRY_CANCEL,
			.site = e->site, .mbar = mbar, .phase = m ? m->phase : 0,
			.warp = (uint16_t)w->index, .lane = (int8_t)lane,
			.issued = warp_stamp(w, e->lanes),
		};
	map_read_by(c, w, lane, agent_slot(c, k), s->epoch);
	/* of a multicast, one of the copies represents the read */
	c->repeat.noted = false;
	if (c->global && (!b->multicast || peer == (unsigned)__builtin_ctz(b->cta_mask)))
		global_load(c, e, w, lane, k);
	c->repeat.noted = true;
	s->several |= more;
	now = (struct cell_entry){
		.epoch = s->epoch, .agent = (uint16_t)agent_slot(c, k), .lanes = UINT32_MAX,
		.what = (e->site & CELL_SITE_MASK) | CELL_WRITE | CELL_SAME
			| (b->tensor ? CELL_PART : 0) | (b->reduce ? CELL_STRONG : 0),
	};
	c->generic_slots |= s->generic;
	c->slot_last = k;
	c->slot_event = c->stats.events;
	c->slot_lane = lane;
	view_open(&v, c, w, 1u << lane, f,
		b->generic_proxy ? ROLE_COPY : ROLE_BULK_LOAD, peer);
	touch_spans(c, &v, e, now);
	if (b->source) {
		/* the source is read until the destination has the bytes [C12] */
		struct ev_span source = { (uint32_t)b->source[lane], b->bytes };

		now.what &= ~CELL_WRITE;
		view_open(&v, c, w, 1u << lane, f, ROLE_BULK_STORE, w->cta);
		shadow_spans(&c->cta[w->cta].shadow, &v.s, &source, 1, now);
	}
	if (!m)
		return;
	m->inflight++;
	mbar_copy(c, m, w, 1u << lane, b->tx_count);
	async_op_add(c, (struct async_op){
		.id = async_op_key(b->async_op, mbar_peer), .mbar = mbar, .phase = m->phase,
		.slot = k + 1, .epoch = s->epoch,
		.lanes = 1u << lane, .warp = w->index, .site = e->site,
		.known = grids_handed_on(c, f),
	});
}

static void bulk_store(struct cluster *c, const struct event *e, struct warp *w, unsigned lane)
{
	struct cell_entry now = {
		.epoch = w->stores.open, .agent = (uint16_t)agent_stores(c, w->index), .lanes = 1u << lane,
		.what = (e->site & CELL_SITE_MASK) | CELL_SAME
			| (e->bulk.tensor ? CELL_PART : 0),
	};
	struct view v;

	groups_issue(&w->stores, 1u << lane, e->site);
	map_read_by(c, w, lane, now.agent, now.epoch);
	c->repeat.noted = false;
	if (c->global)
		global_store(c, e, w, lane);
	c->repeat.noted = true;
	view_open(&v, c, w, 1u << lane, warp_frontier(w, lane), ROLE_BULK_STORE, e->bulk.owner);
	touch_spans(c, &v, e, now);
}

void on_bulk(struct cluster *c, const struct event *e)
{
	const struct event_bulk *b = &e->bulk;
	struct warp *w = warp_of(c, e);
	unsigned lane = (unsigned)__builtin_ctz(e->lanes);

	if (b->prefetch || b->owner >= c->nctas || !warp_frontier(w, lane))
		return;
	c->stats.async_ops++;
	if (b->multicast) {
		/* C17: data and signal at the same offsets in every destination */
		for (uint32_t m = b->cta_mask; m; m &= m - 1) {
			uint16_t r = (uint16_t)__builtin_ctz(m);

			/* with .cta_group::2 each pair has one mbarrier */
			if (r < c->nctas)
				bulk_load(c, e, w, lane, r, (uint16_t)(b->pair
					? (r & ~1u) | (b->mbarrier_owner & 1) : r));
		}
	} else if (b->mode & MODE_WRITE) {
		bulk_load(c, e, w, lane, b->owner, b->mbarrier_owner);
	} else {
		bulk_store(c, e, w, lane);
	}
	w->map = 0;
}

/* ---- exit of threads and CTAs ---- */

static void check_store(struct cluster *c, struct warp *w, unsigned lane, const struct event *e)
{
	const struct lane_groups *g = &w->stores;
	bool open = g->holds >> lane & 1;
	char place[PLACE_BYTES];
	unsigned rule = open ? CS309 : CS308;
	struct finding *f = report_new(c, rule, rule_severity(rule), e->site, g->site[lane]);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "exit");
	report_side(c, f, w->index, (int)lane, g->site[lane], "bulk store");
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "bulk group");
	f->barrier.phase = g->last[lane];
	if (open)
		report_edge(f, "no cp.async.bulk.commit_group follows the operation, so no wait covers it");
	else
		report_edge(f, "the thread must execute cp.async.bulk.wait_group.read 0 before it exits");
	if (!open && g->wait_site[lane] && g->wait_count[lane]) {
		report_hint(f, HINT(store_left_pending), g->wait_count[lane]);
		report_edit(f, g->wait_site[lane], EDIT(store_left_pending));
	} else if (!open && g->wait_site[lane]) {
		report_hint(f, HINT(store_after_wait), report_place(g->wait_site[lane], place));
	}
	report_send(c, f);
}

/* cp.async without a wait: hardware completes it, but the ISA does not promise that; a note. */
static void check_copy(struct cluster *c, struct warp *w, unsigned lane, const struct event *e)
{
	const struct lane_groups *g = &w->copies;
	struct finding *f = report_new(c, CS312, SEV_NOTE, e->site, g->site[lane]);

	if (!f)
		return;
	report_side(c, f, w->index, (int)lane, e->site, "exit");
	report_side(c, f, w->index, (int)lane, g->site[lane], "cp.async write");
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "cp.async group");
	f->barrier.phase = g->last[lane];
	report_edge(f, "the thread must execute cp.async.wait_all before it exits");
	report_send(c, f);
}

void async_exit(struct cluster *c, struct warp *w, const struct event *e)
{
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);
		uint32_t copies = agent_copies(c, w->index), done = w->progress.copies.at[l];
		struct frontier *f = warp_frontier(w, l);

		if (w->stores.last[l] > w->progress.stores.at[l])
			check_store(c, w, l, e);
		if (w->copies.last[l] <= done || !f)
			continue;
		/* it may also know through an mbarrier */
		if (frontier_full(&c->space, f, PLANE_G, copies) < w->copies.last[l]
			&& !(frontier_lanes(&c->space, f, PLANE_G, copies, w->copies.last[l]) >> l & 1))
			check_copy(c, w, l, e);
	}
}

void async_cta_end(struct cluster *c, unsigned cta, const struct event *e)
{
	for (uint32_t k = 0; k < c->slots.n; k++) {
		struct slot *s = &c->slots.at[k];
		bool reads = s->peer && c->warp[s->warp].cta == cta;
		unsigned rule = reads ? CS308 : CS312;
		struct finding *f;

		if ((s->cta != cta && !reads) || !s->epoch || frontier_full(&c->space,
			c->cta[cta].exited, PLANE_G, agent_slot(c, k)) >= s->epoch)
			continue;
		f = report_new(c, rule, rule_severity(rule), e->site, s->site);
		if (!f)
			continue;
		report_side(c, f, s->warp, -1, e->site, "CTA exit");
		report_side(c, f, s->warp, s->lane, s->site, reads ? "bulk copy read" :
			s->response ? "response of try_cancel" :
			s->tensor ? "TMA load write" : "bulk load write");
		if (s->mbar) {
			report_mbar(c, f, &c->mbars.at[s->mbar - 1]);
			report_edge(f, "no thread waited for phase %llu of mbarrier %s, which the copy "
				"completes, before the CTA exited", (unsigned long long)s->phase, f->barrier.name);
		} else {
			report_edge(f, "no thread waited for the copy before the CTA exited");
		}
		edit_set(f, EDIT_BEFORE, c->warp[s->warp].exit_site, 0, "?");
		report_send(c, f);
	}
	for (uint32_t i = 0; c->nops && i < c->cap_ops; i++) {
		const struct async_op *op = &c->op[i];
		const struct mbar *m = op->id && op->copies ? &c->mbars.at[op->mbar - 1] : NULL;
		struct finding *f;

		if (!m || m->cta != cta)
			continue;
		f = report_new(c, CS221, rule_severity(CS221), e->site, op->site);
		if (!f)
			continue;
		report_side(c, f, op->warp, -1, e->site, "CTA exit");
		report_side(c, f, op->warp, only_lane(op->lanes), op->site, "cp.async.mbarrier.arrive");
		report_mbar(c, f, m);
		report_edge(f, "no thread waited for the phase of mbarrier %s to which the arrive belongs "
			"before the CTA exited", f->barrier.name);
		report_send(c, f);
	}
}
