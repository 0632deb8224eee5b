/* recorder_tcgen05: the steps of tensor memory and of the queue of tcgen05 operations. */
#include "recorder_internal.h"

/* Steps of the cluster that are searched for a commit, and for what it tracks */
enum { COMMITTED = 128 };

static void on_columns(struct recorder *r, const struct event *e, bool alloc)
{
	const struct event_tmem_alloc *a = &e->tmem_alloc;
	struct columns *to = NULL;

	recorder_push(r, alloc ? STEP_tmem_alloc : STEP_tmem_dealloc, e, e->cta, a->column)->bytes
		= a->columns;
	for (size_t i = 0; i < COLUMNS; i++) {
		struct columns *c = &r->columns[i];

		if (c->n && c->cta == e->cta && c->column == a->column)
			c->n = 0;
		if (!c->n)
			to = c;
	}
	if (alloc && to)
		*to = (struct columns){ e->site, e->cta, (uint16_t)a->column, (uint16_t)a->columns };
}

/* Loads and stores of a row of registers are one step for each wait. */
static void on_access(struct recorder *r, const struct event *e)
{
	const bool store = e->tmem_access.mode == MODE_WRITE;
	const enum step_kind kind = store ? STEP_tmem_st : STEP_tmem_ld;
	struct history_step *s = recorder_last(r, kind, e, e->cta, 0);

	recorder_touch(r, e, false);
	if (s && s->site == e->site) {
		s->repeat++;
		return;
	}
	recorder_push(r, kind, e, e->cta, 0)->phase = recorder_groups(r, e)->tmem[store];
}

static void on_wait(struct recorder *r, const struct event *e)
{
	const bool store = e->tmem_wait.mode == MODE_WRITE;

	recorder_push(r, store ? STEP_tmem_wait_st : STEP_tmem_wait_ld, e, e->cta, 0)->phase
		= ++recorder_groups(r, e)->tmem[store];
}

static void on_operation(struct recorder *r, const struct event *e)
{
	static const enum step_kind kind[] = { [TC_MMA] = STEP_tc_mma, [TC_CP] = STEP_tc_cp,
		[TC_SHIFT] = STEP_tc_shift };
	struct history_step *s = recorder_last(r, kind[e->tcgen05.op], e, e->cta, 0);

	recorder_touch(r, e, false);
	if (s && s->site == e->site && !s->op)
		s->repeat++;
	else
		recorder_push(r, kind[e->tcgen05.op], e, e->cta, 0);
}

/* Operations that the commit tracks have its number from now on: what it signals completes them. */
static void on_commit(struct recorder *r, const struct event *e)
{
	const uint32_t op = e->tcgen05_commit.async_op;

	for (uint64_t k = 1; k <= COMMITTED && k <= r->at; k++) {
		struct history_step *s = &r->ring[(r->at - k) % RING];

		if (step_on((enum step_kind)s->kind) == ON_TENSOR && s->kind != STEP_tc_commit && !s->op
				&& s->cta == e->cta && s->warp == e->warp)
			s->op = op;
	}
	recorder_push(r, STEP_tc_commit, e, e->cta, e->tcgen05_commit.addr)->op = op;
}

bool recorder_is_commit(const struct recorder *r, uint32_t op)
{
	for (uint64_t k = 1; r->tcgen05 && k <= COMMITTED && k <= r->at; k++) {
		const struct history_step *s = &r->ring[(r->at - k) % RING];

		if (s->kind == STEP_tc_commit && s->op == op)
			return true;
	}
	return false;
}

void recorder_tcgen05(struct recorder *r, const struct event *e)
{
	r->tcgen05 = true;
	switch (e->kind) {
	case EV_TMEM_ALLOC: case EV_TMEM_DEALLOC:
		on_columns(r, e, e->kind == EV_TMEM_ALLOC);
		return;
	case EV_TMEM_RELINQUISH:
		recorder_push(r, STEP_tmem_relinquish, e, e->cta, 0);
		return;
	case EV_TMEM_ACCESS:
		on_access(r, e);
		return;
	case EV_TMEM_WAIT:
		on_wait(r, e);
		return;
	case EV_TCGEN05_FENCE:
		recorder_push(r, e->tcgen05_fence.before ? STEP_tc_before : STEP_tc_after, e, e->cta, 0);
		return;
	case EV_TCGEN05:
		on_operation(r, e);
		return;
	case EV_TCGEN05_COMMIT:
		on_commit(r, e);
		return;
	default:
		return;
	}
}
