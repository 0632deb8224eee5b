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

struct warp_groups *recorder_groups(struct recorder *r, const struct event *e)
{
	const uint32_t i = (uint32_t)e->cta * r->info.warps_per_cta + e->warp;

	return &r->groups[i < r->nwarps ? i : 0];
}

/* ---- steps ---- */

struct history_step *recorder_push(struct recorder *r, enum step_kind kind, const struct event *e,
	uint16_t owner, uint32_t addr)
{
	struct history_step *s = &r->ring[r->at++ % RING];

	*s = (struct history_step){
		.at = r->at, .site = e->site, .lanes = e->lanes, .addr = addr, .cta = e->cta,
		.warp = e->warp, .peer = owner, .kind = (uint8_t)kind,
	};
	return s;
}

static struct history_step *push(struct recorder *r, enum step_kind kind, const struct event *e)
{
	return recorder_push(r, kind, e, e->cta, 0);
}

struct history_step *recorder_last(struct recorder *r, enum step_kind kind,
	const struct event *e, uint16_t owner, uint32_t addr)
{
	for (uint64_t k = 1; k <= 16 && k <= r->at; k++) {
		struct history_step *s = &r->ring[(r->at - k) % RING];

		if (s->cta != e->cta || s->warp != e->warp)
			continue;
		return s->kind == kind && s->addr == addr && s->peer == owner ? s : NULL;
	}
	return NULL;
}

static uint32_t lanes_of(const struct event *e)
{
	return (uint32_t)__builtin_popcount(e->lanes);
}

void recorder_touch(struct recorder *r, const struct event *e, bool global)
{
	const uint32_t warp = access_warp(e->cta, e->warp);

	r->access[access_slot(e->site, warp)] = (struct last_access){ r->at, r->run, e->site, e->lanes, warp,
		global };
}

/* An access by which clusters may synchronize. Reads of a flag are not counted, because their
 * number depends on the schedule. */
static void on_strong(struct recorder *r, const struct event *e)
{
	const struct event_access *a = &e->access;
	const enum step_kind kind = a->mode == MODE_RMW ? STEP_strong_rmw
		: a->mode == MODE_WRITE ? STEP_strong_write : STEP_strong_read;
	const uint32_t addr = (uint32_t)a->at.base;
	struct history_step *s = recorder_last(r, kind, e, e->cta, addr);

	if (!s || s->site != e->site)
		recorder_push(r, kind, e, e->cta, addr)->count = a->element_bytes;
	else if (kind != STEP_strong_read)
		s->repeat++;
}

static void on_access(struct recorder *r, const struct event *e)
{
	const bool global = e->access.space == SP_GLOBAL;

	if (global && access_is_strong(&e->access))
		on_strong(r, e);
	recorder_touch(r, e, global);
}

static void on_bulk(struct recorder *r, const struct event *e)
{
	const struct event_bulk *b = &e->bulk;
	struct history_step *s;

	recorder_touch(r, e, true);
	if (!b->bytes || b->prefetch)
		return;
	s = recorder_push(r, e->kind == EV_TRY_CANCEL ? STEP_try_cancel
		: b->mode == MODE_READ ? STEP_bulk_store : STEP_bulk_load, e, b->owner, b->addr);
	s->bytes = b->bytes;
	s->op = b->async_op;
	s->phase = recorder_groups(r, e)->bulks;
	r->copied[(b->addr >> 7) * 0x9e3779b1u >> 26]
		= (struct copied){ r->run, b->addr, b->bytes, e->site };
}

static void on_init(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_init *i = &e->mbarrier_init;
	struct history_mbarrier *m = mbarrier(r, i->owner, i->addr, true);

	recorder_push(r, STEP_init, e, i->owner, i->addr)->count = i->arrivals;
	if (!m)
		return;
	*m = (struct history_mbarrier){ .peer = i->owner, .addr = i->addr, .count = i->arrivals,
		.pending = i->arrivals, .live = true };
}

static void on_inval(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_inval *i = &e->mbarrier_inval;
	struct history_mbarrier *m = mbarrier(r, i->owner, i->addr, false);
	struct history_step *s = recorder_push(r, STEP_inval, e, i->owner, i->addr);

	if (m) {
		m->live = false;
		s->phase = m->phase;
	}
}

static void add_arriver(struct history_mbarrier *m, const struct history_step *s)
{
	for (uint32_t i = 0; i < m->narrivers; i++)
		if (m->arriver[i].cta == s->cta && m->arriver[i].warp == s->warp)
			return;
	if (m->narrivers < HISTORY_ARRIVERS)
		m->arriver[m->narrivers++] = (struct history_arriver){ s->cta, s->warp };
}

static void on_arrive(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_arrive *a = &e->mbarrier_arrive;
	const uint32_t n = lanes_of(e);
	const int64_t tx = a->flags & ARRIVE_EXPECT_TX ? a->tx_count * n : 0;
	struct history_mbarrier *m = mbarrier(r, a->owner, a->addr, false);
	struct history_step *s;

	s = recorder_push(r, tx ? STEP_arrive_expect : STEP_arrive, e, a->owner, a->addr);
	if (a->flags & ARRIVE_DROP && m)
		m->count -= m->count > n ? n : m->count;
	s->tx = tx;
	s->count = a->arrivals * n;
	if (m)
		add_arriver(m, s);
	update_mbarrier(r, s, s->count, tx, 0);
}

static void on_expect_tx(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_expect_tx *x = &e->mbarrier_expect_tx;
	struct history_step *s = recorder_push(r, STEP_expect, e, x->owner, x->addr);

	s->tx = x->tx_count * lanes_of(e);
	update_mbarrier(r, s, 0, s->tx, 0);
}

static void on_complete_tx(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_complete_tx *x = &e->mbarrier_complete_tx;
	struct history_step *s = recorder_push(r, STEP_complete, e, x->owner, x->addr);

	s->tx = x->tx_count * lanes_of(e);
	update_mbarrier(r, s, 0, 0, s->tx);
}

static void on_signal(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_signal *x = &e->mbarrier_signal;
	const bool commit = recorder_is_commit(r, x->async_op);
	struct history_step *s = recorder_push(r, commit ? STEP_tc_signal : STEP_signal, e, x->owner,
		x->addr);
	struct history_mbarrier *m = commit ? mbarrier(r, x->owner, x->addr, false) : NULL;

	s->tx = x->tx_count;
	s->count = x->arrivals;
	s->op = x->async_op;
	if (m) {
		current_phase(m)->commits += x->arrivals;
		current_phase(m)->committers |= (uint16_t)(1u << e->cta);
	}
	update_mbarrier(r, s, x->arrivals, 0, x->tx_count);
}

static void on_test(struct recorder *r, const struct event *e)
{
	const struct event_mbarrier_test *t = &e->mbarrier_test;
	const bool passed = t->flags & TEST_TRUE;
	struct history_step *s = passed ? NULL : recorder_last(r, STEP_poll, e, t->owner, t->addr);
	const struct history_mbarrier *m;

	if (s) {
		s->repeat++;
		return;
	}
	s = recorder_push(r, passed ? STEP_wait : STEP_poll, e, t->owner, t->addr);
	s->count = t->failed_phase;
	m = mbarrier(r, t->owner, t->addr, false);
	if (!m)
		return;
	s->phase = m->phase;
	if (!(t->flags & TEST_PARITY))
		s->phase = t->phase;
	else if ((m->phase ^ t->phase) & 1)
		s->phase = m->phase - 1; /* in phase 0: HISTORY_NO_PHASE */
	else if (passed) /* reported late, after the next phase is complete, too */
		s->phase = m->phase > 1 ? m->phase - 2 : HISTORY_NO_PHASE;
}

static void on_mma(struct recorder *r, const struct event *e)
{
	struct history_step *s = recorder_last(r, STEP_mma, e, e->cta, 0);

	recorder_touch(r, e, false);
	if (s && s->phase == recorder_groups(r, e)->mmas) {
		s->repeat++;
	} else {
		s = push(r, STEP_mma, e);
		s->phase = recorder_groups(r, e)->mmas;
	}
	s->op = e->wgmma.async_op;
}

static struct named_barrier *named_of(struct recorder *r, const struct event *e, uint32_t id)
{
	return &r->named[(e->cta % r->nctas) * NAMED + id % NAMED];
}

static void on_bar_arrive(struct recorder *r, const struct event *e)
{
	const struct event_barrier_arrive *a = &e->barrier_arrive;
	struct history_step *s = recorder_push(r, STEP_bar_arrive, e, e->cta, a->id);
	struct named_barrier *n = named_of(r, e, a->id);
	const uint32_t *block = r->info.launch->block;
	uint32_t threads = a->threads ? a->threads : block[0] * block[1] * block[2];

	s->count = a->threads;
	s->phase = n->completed;
	n->arrived += 32;
	if (n->arrived < threads)
		return;
	s->completes = true;
	n->arrived = 0;
	n->completed++;
}

static void on_bar_resume(struct recorder *r, const struct event *e)
{
	const uint32_t id = e->barrier_resume.id;
	struct history_step *s = recorder_push(r, STEP_bar_leave, e, e->cta, id);

	s->phase = named_of(r, e, id)->completed;
	s->phase -= s->phase > 0;
}

static void on_cluster_arrive(struct recorder *r, const struct event *e)
{
	struct history_step *s = recorder_push(r, STEP_cluster_arrive, e, 0, 0);
	const uint32_t *block = r->info.launch->block;

	s->phase = r->cluster_completed;
	r->cluster_arrived += lanes_of(e);
	if (r->cluster_arrived < r->info.nctas * block[0] * block[1] * block[2])
		return;
	s->completes = true;
	r->cluster_arrived = 0;
	r->cluster_completed++;
}

static void on_group_wait(struct recorder *r, const struct event *e, enum step_kind kind,
	uint64_t committed, uint32_t pending)
{
	struct history_step *s = push(r, kind, e);

	s->count = pending;
	s->phase = committed > pending ? committed - pending : 0;
}

void recorder_event(struct recorder *r, const struct event *e)
{
	struct history_step *s;

	if (!r)
		return;
	switch (e->kind) {
	case EV_ACCESS:
		on_access(r, e);
		return;
	case EV_CP_ASYNC:
		recorder_touch(r, e, true);
		recorder_groups(r, e)->open_copies++;
		return;
	case EV_CP_ASYNC_COMMIT:
		s = push(r, STEP_copy_commit, e);
		s->count = recorder_groups(r, e)->open_copies;
		recorder_groups(r, e)->open_copies = 0;
		s->phase = recorder_groups(r, e)->copies++;
		return;
	case EV_CP_ASYNC_WAIT:
		on_group_wait(r, e, STEP_copy_wait, recorder_groups(r, e)->copies,
			e->cp_async_wait.pending);
		return;
	case EV_CP_ASYNC_ARRIVE:
		recorder_push(r, STEP_copy_arrive, e, e->cta, e->cp_async_arrive.addr)->op
			= e->cp_async_arrive.async_op;
		return;
	case EV_BULK: case EV_TRY_CANCEL:
		on_bulk(r, e);
		return;
	case EV_BULK_COMMIT:
		s = push(r, STEP_bulk_commit, e);
		s->phase = recorder_groups(r, e)->bulks++;
		return;
	case EV_BULK_WAIT:
		on_group_wait(r, e, STEP_bulk_wait, recorder_groups(r, e)->bulks, e->bulk_wait.pending);
		return;
	case EV_MBARRIER_INIT:
		on_init(r, e);
		return;
	case EV_MBARRIER_INVAL:
		on_inval(r, e);
		return;
	case EV_MBARRIER_ARRIVE:
		on_arrive(r, e);
		return;
	case EV_MBARRIER_EXPECT_TX:
		on_expect_tx(r, e);
		return;
	case EV_MBARRIER_COMPLETE_TX:
		on_complete_tx(r, e);
		return;
	case EV_MBARRIER_SIGNAL:
		on_signal(r, e);
		return;
	case EV_MBARRIER_TEST:
		on_test(r, e);
		return;
	case EV_WGMMA_FENCE:
		push(r, STEP_mma_fence, e);
		return;
	case EV_WGMMA:
		on_mma(r, e);
		return;
	case EV_WGMMA_COMMIT:
		s = push(r, STEP_mma_commit, e);
		s->phase = recorder_groups(r, e)->mmas++;
		return;
	case EV_WGMMA_WAIT:
		on_group_wait(r, e, STEP_mma_wait, recorder_groups(r, e)->mmas, e->wgmma_wait.pending);
		return;
	case EV_BARRIER_ARRIVE:
		on_bar_arrive(r, e);
		return;
	case EV_BARRIER_RESUME:
		on_bar_resume(r, e);
		return;
	case EV_WARP_SYNC:
		push(r, STEP_warp_sync, e);
		return;
	case EV_CLUSTER_ARRIVE:
		on_cluster_arrive(r, e);
		return;
	case EV_CLUSTER_WAIT:
		s = recorder_push(r, STEP_cluster_wait, e, 0, 0);
		s->phase = r->cluster_completed - (r->cluster_completed > 0);
		return;
	case EV_FENCE:
		push(r, STEP_fence, e);
		return;
	case EV_FENCE_MBARRIER_INIT:
		push(r, STEP_init_fence, e);
		return;
	case EV_FENCE_PROXY:
		recorder_push(r, STEP_proxy_fence, e, e->cta, (uint32_t)e->fence_proxy.addr);
		return;
	case EV_THREAD_EXIT:
		push(r, STEP_exit, e);
		return;
	case EV_CTA_BEGIN: case EV_CTA_END: case EV_LOAD_USED: case EV_MBARRIER_PENDING_COUNT:
	case EV_REGISTER_ACCESS: case EV_WARP_COLLECTIVE: case EV_TENSOR_MAP: case EV_SETMAXNREG:
	case EV_GRIDDEPCONTROL: case EV_GRID_LAUNCH: case EV_HEAP: case EV_FAULT: case EV_BLOCKED: case EV_HANG:
	case EV_OBSERVED: case EV_QUERY_CANCEL: case EV_COUNT:
		return;
	case EV_TMEM_ALLOC: case EV_TMEM_DEALLOC: case EV_TMEM_RELINQUISH: case EV_TMEM_ACCESS:
	case EV_TMEM_WAIT: case EV_TCGEN05_FENCE: case EV_TCGEN05: case EV_TCGEN05_COMMIT:
		recorder_tcgen05(r, e);
		return;
	}
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
	if (r->tcgen05)
		memset(r->columns, 0, sizeof r->columns);
	r->tcgen05 = false;
	r->at = 0;
	r->cluster_arrived = 0;
	r->cluster_completed = 0;
	r->info = *c;
	r->all = all;
	r->run++;
	return r;
}

struct recorded *recorder_end(struct recorder *r, bool global, struct recorded *same, bool again)
{
	struct recorded *steps = NULL;

	if (!r)
		return NULL;
	if (global && (again || r->info.id < TAILS))
		steps = same ? recorded_get(same) : recorder_steps(r);
	if (steps && r->info.id < TAILS)
		recorder_keep_tail(r, recorded_get(steps));
	pthread_mutex_lock(&r->all->lock);
	r->idle = r->all->idle;
	r->all->idle = r;
	pthread_mutex_unlock(&r->all->lock);
	if (again)
		return steps;
	recorded_put(steps);
	return NULL;
}
