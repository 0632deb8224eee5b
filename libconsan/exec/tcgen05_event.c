/* tcgen05_event: the events of tcgen05 instructions. */
#include "tmem.h"
#include "tcgen05_event.h"

void tc_emit_alloc(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_kind kind,
	uint32_t column, uint32_t columns, bool pair)
{
	struct event e = ex_event(w, x, kind, lanes);

	if (!w->sink)
		return;
	if (kind == EV_TMEM_RELINQUISH)
		e.tmem_relinquish.pair = pair;
	else
		e.tmem_alloc = (struct event_tmem_alloc){ column, columns, pair };
	ex_emit(w->cluster, &e);
}

/* Each lane stores the address: a lane's own store orders it with what that lane does before and
 * after, as in the ISA's example, which loads the address at once. It is one event, a store between
 * two synchronisations of the warp, which hides races of other data between its lanes, across
 * alloc. */
void tc_emit_address(struct warp *w, const struct xop *x, uint32_t lanes, const struct xplace *to)
{
	struct event e = ex_event(w, x, EV_ACCESS, lanes & -lanes);
	struct event sync = ex_event(w, x, EV_WARP_SYNC, lanes);

	if (!w->sink)
		return;
	sync.warp_sync.mask = lanes;
	ex_emit(w->cluster, &sync);
	e.access = (struct event_access){ .at = { .base = to->addr }, .bytes = 4, .mode = MODE_WRITE,
		.space = to->space, .owner = (uint16_t)(to->cta ? to->cta->rank : w->cta->rank) };
	ex_emit(w->cluster, &e);
	ex_emit(w->cluster, &sync);
}

void tc_emit_warp(struct warp *w, const struct xop *x, uint32_t lanes, enum ev_mode mode,
	bool used, const struct tc_areas *s)
{
	struct event e = ex_event(w, x, s ? EV_TMEM_ACCESS : EV_TMEM_WAIT, lanes);

	if (!w->sink)
		return;
	if (s)
		e.tmem_access = (struct event_tmem_access){ .areas = { s->at, (uint16_t)s->n },
			.mode = mode, .used = used };
	else
		e.tmem_wait.mode = mode;
	ex_emit(w->cluster, &e);
}

void tc_emit_fence(struct warp *w, const struct xop *x, uint32_t lanes, bool before)
{
	struct event e = ex_event(w, x, EV_TCGEN05_FENCE, lanes);

	if (!w->sink)
		return;
	e.tcgen05_fence.before = before;
	ex_emit(w->cluster, &e);
}

/* ---- operations of one thread ---- */

void tc_emit(struct warp *w, const struct xop *x, uint32_t lanes, const struct async_op *op,
	struct event_tcgen05 t)
{
	struct event e = ex_event(w, x, EV_TCGEN05, op->lanes);

	t.async_op = op->id;
	t.several = (lanes & (lanes - 1)) != 0;
	e.tcgen05 = t;
	ex_emit(w->cluster, &e);
}
