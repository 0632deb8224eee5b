/* async: groups of asynchronous operations, and the asynchronous state of warps, CTAs and clusters.
 * The queue is in queue.c. */
#include "async.h"
#include "tmem.h"

#include <stdlib.h>

void group_add(struct group_list *l, struct group_op *op)
{
	vec_push(l, op);
}

void group_remove(struct group_list *l, struct group_op *op)
{
	size_t i = 0;

	while (i < l->n && l->at[i] != op)
		i++;
	if (i == l->n)
		return;
	memmove(&l->at[i], &l->at[i + 1], (l->n - i - 1) * sizeof *l->at);
	l->n--;
}

static bool demanded(const struct group_op *op, uint32_t lanes, const uint32_t *commits,
	const uint32_t *keep)
{
	for EACH_LANE(l, op->op.lanes & lanes)
		if (commits[l] > op->group && commits[l] - op->group > keep[l])
			return true;
	return false;
}

enum step group_commit(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t *commits,
	enum ev_kind kind)
{
	for EACH_LANE(l, lanes)
		commits[l]++;
	if (w->sink) {
		struct event e = ex_event(w, x, kind, lanes);

		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

void group_wait(struct cluster *c, struct group_list *l, uint32_t lanes,
	const uint32_t *commits, const uint32_t *keep)
{
	/* performing an op removes it from the list, and may remove others */
	for (size_t i = 0; i < l->n;) {
		struct group_op *op = l->at[i];

		if (demanded(op, lanes, commits, keep)) {
			async_force(c, &op->op);
			i = 0;
		} else {
			i++;
		}
	}
}

void async_warp_begin(struct warp *w)
{
	struct warp_async *a = w->async;

	if (!a)
		a = w->async = base_alloc(sizeof *a);
	memset(a->cp_commits, 0, sizeof a->cp_commits);
	memset(a->bulk_commits, 0, sizeof a->bulk_commits);
	a->cp.n = a->bulk.n = a->access.n = a->stored.n = 0;
	a->nstamp = 0;
}

void async_warp_free(struct warp *w)
{
	if (!w->async)
		return;
	vec_free(&w->async->cp);
	vec_free(&w->async->bulk);
	vec_free(&w->async->access);
	vec_free(&w->async->stored);
	vec_free(&w->async->gspans);
	vec_free(&w->async->spans);
	free(w->async->stamp);
	free(w->async);
	w->async = NULL;
}

void async_cta_begin(struct cta *c)
{
	struct cta_async *a = c->async;

	if (!a) {
		a = c->async = base_alloc(sizeof *a);
		a->nwg = (c->nwarps + 3) / 4;
		a->wg = base_alloc(a->nwg * sizeof *a->wg);
	}
	a->mbar.n = 0;
	tmem_begin(c);
	for (uint32_t i = 0; i < a->nwg; i++) {
		a->wg[i].commits = a->wg[i].issued = 0;
		a->wg[i].unwaited = false;
		a->wg[i].pending.n = a->wg[i].move.n = 0;
	}
}

void async_cta_free(struct cta *c)
{
	struct cta_async *a = c->async;

	if (!a)
		return;
	for (uint32_t i = 0; i < a->nwg; i++) {
		vec_free(&a->wg[i].pending);
		vec_free(&a->wg[i].move);
	}
	free(a->wg);
	tmem_free(c);
	vec_free(&a->mbar);
	free(a);
	c->async = NULL;
}

/* A cluster has no state beyond its queue. */
void async_cluster_begin(struct cluster *c)
{
	(void)c;
}

void async_cluster_free(struct cluster *c)
{
	(void)c;
}
