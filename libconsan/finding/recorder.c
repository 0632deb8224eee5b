/* recorder: turns events into steps. Each running cluster has a ring of its last steps, a copy
 * of its mbarriers' state, and for each (instruction, warp) the time of its last access.
 * Nothing is allocated while events arrive. */
#include "recorder_internal.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- barrier state ---- */

static struct history_mbarrier *mbarrier(struct recorder *r, unsigned peer, uint32_t addr,
	bool make)
{
	uint32_t i = (addr >> 3) * 0x9e3779b1u >> 20 ^ peer * 37u;

	for (;; i++) {
		struct history_mbarrier *m = &r->mbarrier[i &= MBARRIERS - 1];

		if (r->used[i] && m->peer == peer && m->addr == addr)
			return m;
		if (r->used[i])
			continue;
		if (!make || r->nmbarriers > MBARRIERS / 2)
			return NULL;
		r->used[i] = true;
		r->nmbarriers++;
		*m = (struct history_mbarrier){ .peer = (uint16_t)peer, .addr = addr };
		return m;
	}
}

static struct history_phase *current_phase(struct history_mbarrier *m)
{
	struct history_phase *p = &m->recent[m->phase % HISTORY_PHASES];

	if (p->phase != m->phase)
		*p = (struct history_phase){ .phase = m->phase };
	return p;
}

/* Applies a step to its mbarrier, as the checker does but without checks. */
static void update_mbarrier(struct recorder *r, struct history_step *s, uint32_t arrivals,
	int64_t expected, int64_t completed)
{
	struct history_mbarrier *m = mbarrier(r, s->peer, s->addr, false);
	struct history_phase *p;

	if (!m)
		return;
	p = current_phase(m);
	s->phase = m->phase;
	p->arrivals += arrivals;
	p->expected += expected;
	p->completed += completed;
	m->tx += expected - completed;
	m->pending -= arrivals < m->pending ? arrivals : m->pending;
	if (m->pending || m->tx || !m->live)
		return;
	s->completes = true;
	m->phase++;
	m->pending = m->count;
	current_phase(m);
}

static struct warp_groups *groups_of(struct recorder *r, const struct event *e)
{
	const uint32_t i = (uint32_t)e->cta * r->info.warps_per_cta + e->warp;

	return &r->groups[i < r->nwarps ? i : 0];
}

/* ---- steps ---- */

static struct history_step *push(struct recorder *r, enum step_kind kind, const struct event *e)
{
	struct history_step *s = &r->ring[r->at++ % RING];

	*s = (struct history_step){
		.at = r->at, .site = e->site, .lanes = e->lanes, .count = e->count,
		.op = e->op, .addr = (uint32_t)e->addr, .cta = e->cta, .warp = e->warp,
		.peer = e->peer, .kind = (uint8_t)kind,
	};
	return s;
}

/* The last step of this warp if it is of this kind and on this object, else NULL. Searches
 * only the last steps of the cluster. */
static struct history_step *last_step(struct recorder *r, enum step_kind kind,
	const struct event *e)
{
	for (uint64_t k = 1; k <= 16 && k <= r->at; k++) {
		struct history_step *s = &r->ring[(r->at - k) % RING];

		if (s->cta != e->cta || s->warp != e->warp)
			continue;
		return s->kind == kind && s->addr == (uint32_t)e->addr && s->peer == e->peer
			? s : NULL;
	}
	return NULL;
}

static uint32_t lanes_of(const struct event *e)
{
	return (uint32_t)__builtin_popcount(e->lanes);
}

static void touch(struct recorder *r, const struct event *e)
{
	const uint32_t key = e->site * 0x9e3779b1u + (e->cta * 64u + e->warp) * 0x85ebca6bu;

	r->access[key >> 22] = (struct last_access){ r->at, r->run, e->site, e->lanes,
		e->cta, e->warp,
		e->space == SP_GLOBAL || e->kind == EV_BULK || e->kind == EV_CP_ASYNC };
}

/* An access by which clusters may synchronize. Reads of a flag are not counted, because their
 * number depends on the schedule. */
static void on_strong(struct recorder *r, const struct event *e)
{
	const enum step_kind kind = e->mode == EVM_RMW ? STEP_strong_rmw
		: e->mode == EVM_WRITE ? STEP_strong_write : STEP_strong_read;
	struct history_step *s = last_step(r, kind, e);

	if (!s || s->site != e->site)
		push(r, kind, e);
	else if (kind != STEP_strong_read)
		s->repeat++;
}

static void on_bulk(struct recorder *r, const struct event *e)
{
	const uint32_t addr = (uint32_t)e->addr;
	struct history_step *s;

	touch(r, e);
	if (!e->size || e->flags & EVF_PREFETCH)
		return;
	s = push(r, e->mode == EVM_READ ? STEP_bulk_store : STEP_bulk_load, e);
	s->bytes = e->size;
	s->phase = groups_of(r, e)->bulks;
	r->copied[(addr >> 7) * 0x9e3779b1u >> 26] = (struct copied){ r->run, addr,
		e->size, e->site };
}

static void on_init(struct recorder *r, const struct event *e)
{
	struct history_mbarrier *m = mbarrier(r, e->peer, (uint32_t)e->addr, true);

	push(r, STEP_init, e);
	if (!m)
		return;
	*m = (struct history_mbarrier){ .peer = e->peer, .addr = (uint32_t)e->addr,
		.count = e->count, .pending = e->count, .live = true };
}

static void on_inval(struct recorder *r, const struct event *e)
{
	struct history_mbarrier *m = mbarrier(r, e->peer, (uint32_t)e->addr, false);
	struct history_step *s = push(r, STEP_inval, e);

	if (m) {
		m->live = false;
		s->phase = m->phase;
	}
}

static void on_arrive(struct recorder *r, const struct event *e)
{
	const uint32_t n = lanes_of(e);
	struct history_mbarrier *m;
	struct history_step *s;
	int64_t tx = e->flags & EVF_EXPECT ? e->tx * n : 0;

	s = push(r, tx ? STEP_arrive_expect : STEP_arrive, e);
	m = mbarrier(r, e->peer, s->addr, false);
	if (e->flags & EVF_DROP && m)
		m->count -= m->count > n ? n : m->count;
	s->tx = tx;
	s->count = e->count * n;
	update_mbarrier(r, s, s->count, tx, 0);
}

static void on_test(struct recorder *r, const struct event *e)
{
	const bool passed = e->flags & EVF_TRUE;
	struct history_step *s = passed ? NULL : last_step(r, STEP_poll, e);
	const struct history_mbarrier *m;

	if (s) {
		s->repeat++;
		return;
	}
	s = push(r, passed ? STEP_wait : STEP_poll, e);
	m = mbarrier(r, e->peer, s->addr, false);
	if (!m)
		return;
	s->phase = m->phase;
	if (!(e->flags & EVF_PARITY))
		s->phase = (uint64_t)e->tx;
	else if ((m->phase ^ (uint64_t)e->tx) & 1)
		s->phase = m->phase - 1; /* in phase 0: HISTORY_NO_PHASE */
	else if (passed) /* reported late, after the next phase is complete, too */
		s->phase = m->phase > 1 ? m->phase - 2 : HISTORY_NO_PHASE;
}

static void on_bar_arrive(struct recorder *r, const struct event *e)
{
	struct history_step *s = push(r, STEP_bar_arrive, e);
	struct named_barrier *n = &r->named[(e->cta % r->nctas) * NAMED + e->addr % NAMED];
	const uint32_t *block = r->info.launch->block;
	uint32_t threads = e->count ? e->count : block[0] * block[1] * block[2];

	s->peer = e->cta;
	s->phase = n->completed;
	n->arrived += 32;
	if (n->arrived < threads)
		return;
	s->completes = true;
	n->arrived = 0;
	n->completed++;
}

static void on_cluster_arrive(struct recorder *r, const struct event *e)
{
	struct history_step *s = push(r, STEP_cluster_arrive, e);
	const uint32_t *block = r->info.launch->block;

	s->phase = r->cluster_completed;
	s->addr = 0;
	s->peer = 0;
	r->cluster_arrived += lanes_of(e);
	if (r->cluster_arrived < r->info.nctas * block[0] * block[1] * block[2])
		return;
	s->completes = true;
	r->cluster_arrived = 0;
	r->cluster_completed++;
}

static void on_group_wait(struct recorder *r, const struct event *e, enum step_kind kind,
	uint64_t committed)
{
	struct history_step *s = push(r, kind, e);

	s->phase = committed > e->count ? committed - e->count : 0;
}

static void record(struct recorder *r, const struct event *e)
{
	struct history_step *s;

	switch ((enum ev_kind)e->kind) {
	case EV_ACCESS:
		if (e->space == SP_GLOBAL && (e->sem != SEM_WEAK || e->mode == EVM_RMW))
			on_strong(r, e);
		touch(r, e);
		return;
	case EV_CP_ASYNC:
		touch(r, e);
		groups_of(r, e)->open_copies++;
		return;
	case EV_CP_COMMIT:
		s = push(r, STEP_copy_commit, e);
		s->count = groups_of(r, e)->open_copies;
		groups_of(r, e)->open_copies = 0;
		s->phase = groups_of(r, e)->copies++;
		return;
	case EV_CP_WAIT:
		on_group_wait(r, e, STEP_copy_wait, groups_of(r, e)->copies);
		return;
	case EV_CP_ARRIVE:
		push(r, STEP_copy_arrive, e);
		return;
	case EV_BULK:
		on_bulk(r, e);
		return;
	case EV_BULK_COMMIT:
		s = push(r, STEP_bulk_commit, e);
		s->phase = groups_of(r, e)->bulks++;
		return;
	case EV_BULK_WAIT:
		on_group_wait(r, e, STEP_bulk_wait, groups_of(r, e)->bulks);
		return;
	case EV_MB_INIT:
		on_init(r, e);
		return;
	case EV_MB_INVAL:
		on_inval(r, e);
		return;
	case EV_MB_ARRIVE:
		on_arrive(r, e);
		return;
	case EV_MB_EXPECT:
		s = push(r, STEP_expect, e);
		s->tx = e->tx * lanes_of(e);
		update_mbarrier(r, s, 0, s->tx, 0);
		return;
	case EV_MB_COMPLETE:
		s = push(r, STEP_complete, e);
		s->tx = e->tx * lanes_of(e);
		update_mbarrier(r, s, 0, 0, s->tx);
		return;
	case EV_MB_SIGNAL:
		s = push(r, STEP_signal, e);
		s->tx = e->tx;
		update_mbarrier(r, s, e->count, 0, e->tx);
		return;
	case EV_MB_TEST:
		on_test(r, e);
		return;
	case EV_WG_FENCE:
		push(r, STEP_mma_fence, e);
		return;
	case EV_WG_MMA:
		touch(r, e);
		s = last_step(r, STEP_mma, e);
		if (s && s->phase == groups_of(r, e)->mmas) {
			s->repeat++;
			s->op = e->op;
			return;
		}
		s = push(r, STEP_mma, e);
		s->phase = groups_of(r, e)->mmas;
		return;
	case EV_WG_COMMIT:
		s = push(r, STEP_mma_commit, e);
		s->phase = groups_of(r, e)->mmas++;
		return;
	case EV_WG_WAIT:
		on_group_wait(r, e, STEP_mma_wait, groups_of(r, e)->mmas);
		return;
	case EV_BAR_ARRIVE:
		on_bar_arrive(r, e);
		return;
	case EV_BAR_RESUME:
		s = push(r, STEP_bar_leave, e);
		s->peer = e->cta;
		s->phase = r->named[(e->cta % r->nctas) * NAMED + e->addr % NAMED].completed;
		s->phase -= s->phase > 0;
		return;
	case EV_WARP_SYNC:
		push(r, STEP_warp_sync, e);
		return;
	case EV_CLUSTER_ARRIVE:
		on_cluster_arrive(r, e);
		return;
	case EV_CLUSTER_WAIT:
		s = push(r, STEP_cluster_wait, e);
		s->addr = 0;
		s->peer = 0;
		s->phase = r->cluster_completed - (r->cluster_completed > 0);
		return;
	case EV_FENCE:
		push(r, STEP_fence, e);
		return;
	case EV_FENCE_MBINIT:
		push(r, STEP_init_fence, e);
		return;
	case EV_FENCE_PROXY:
		push(r, STEP_proxy_fence, e);
		return;
	case EV_EXIT:
		push(r, STEP_exit, e);
		return;
	case EV_CTA_BEGIN: case EV_CTA_END: case EV_USED: case EV_MB_PENDING: case EV_REGS:
	case EV_WARP_MEET: case EV_MAP: case EV_SETMAXNREG: case EV_GRIDDEP: case EV_FAULT: case EV_BLOCKED:
	case EV_HANG: case EV_OBSERVED: case EV_COUNT:
		return;
	}
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct recorder *r = (struct recorder *)sink;

	record(r, e);
	r->next->event(r->next, e);
}

/* ---- lifetimes ---- */

struct recorders *recorders_open(uint32_t steps)
{
	struct recorders *all = base_alloc(sizeof *all);

	pthread_mutex_init(&all->lock, NULL);
	all->steps = steps < RING ? steps : RING;
	return all;
}

void recorders_close(struct recorders *all)
{
	if (!all)
		return;
	recorders_forget(all);
	while (all->idle) {
		struct recorder *r = all->idle;

		all->idle = r->idle;
		free(r->named);
		free(r->groups);
		free(r);
	}
	pthread_mutex_destroy(&all->lock);
	free(all);
}

struct recorder *recorder_begin(struct recorders *all, const struct cluster_info *c)
{
	const uint32_t nwarps = c->nctas * c->warps_per_cta;
	struct recorder *r;

	if (!all || !all->steps)
		return NULL;
	pthread_mutex_lock(&all->lock);
	r = all->idle;
	if (r)
		all->idle = r->idle;
	pthread_mutex_unlock(&all->lock);
	if (!r)
		r = base_alloc(sizeof *r);
	if (r->nctas != c->nctas || r->nwarps != nwarps) {
		free(r->named);
		free(r->groups);
		r->nctas = c->nctas;
		r->nwarps = nwarps;
		r->named = base_alloc(NAMED * c->nctas * sizeof *r->named);
		r->groups = base_alloc((nwarps + 1) * sizeof *r->groups);
	} else {
		memset(r->named, 0, NAMED * c->nctas * sizeof *r->named);
		memset(r->groups, 0, nwarps * sizeof *r->groups);
	}
	if (r->nmbarriers)
		memset(r->used, 0, sizeof r->used);
	r->nmbarriers = 0;
	r->at = 0;
	r->cluster_arrived = 0;
	r->cluster_completed = 0;
	r->info = *c;
	r->all = all;
	r->run++;
	return r;
}

struct event_sink *recorder_sink(struct recorder *r, struct event_sink *next)
{
	if (!r)
		return next;
	r->next = next;
	r->sink.event = on_event;
	r->sink.want_global = next->want_global;
	return &r->sink;
}

struct event_sink *recorder_next(struct event_sink *sink, struct recorder **r)
{
	*r = sink->event == on_event ? (struct recorder *)sink : NULL;
	return *r ? (*r)->next : sink;
}

void recorder_end(struct recorder *r)
{
	if (!r)
		return;
	if (r->sink.want_global)
		recorder_keep_tail(r);
	pthread_mutex_lock(&r->all->lock);
	r->idle = r->all->idle;
	r->all->idle = r;
	pthread_mutex_unlock(&r->all->lock);
}
