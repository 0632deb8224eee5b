/* bulk_group: cp.async.bulk.commit_group and wait_group: the bulk stores of a thread (bulk.c). */
#include "async.h"

static enum step op_commit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return group_commit(w, x, lanes, w->async->bulk_commits, EV_BULK_COMMIT);
}

DECODER(cp_async_bulk_commit_group)
{
	(void)d;
	(void)i;
	x->fn = op_commit;
	return true;
}

static enum step op_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct warp_async *a = w->async;
	uint32_t keep[LANES];

	memcpy(keep, r32(w, x->o[0]), sizeof keep);
	group_wait(w->cluster, &a->bulk, lanes, a->bulk_commits, keep);
	if (w->sink) {
		struct event e = ex_event(w, x, EV_BULK_WAIT, lanes);

		e.bulk_wait.pending = keep[__builtin_ctz(lanes)];
		e.bulk_wait.read = x->i.w[0];
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

DECODER(cp_async_bulk_wait_group)
{
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	x->i.w[0] = ptx_has(i, MOD_read);
	x->fn = op_wait;
	return true;
}
