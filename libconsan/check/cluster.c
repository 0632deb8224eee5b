/* cluster: barrier.cluster, phase by phase, and what it releases. A default arrive releases all
 * that its lanes know; a relaxed one only what earlier fences released, by a release fence or, for
 * mbarrier objects alone, fence.mbarrier_init (G06, G07, B08). Asynchronous operations stay pending
 * across it. Also the lifetimes of the cluster's CTAs with respect to each other. The executor
 * decides when a barrier is complete. */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>

void on_fence_mbarrier_init(struct cluster *c, const struct event *e)
{
	uint32_t index = warp_of(c, e)->index;

	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		if (m->live && m->init.warp == index && m->init.lanes & e->lanes)
			m->init_fenced = true;
	}
}

/* What fences of .cta scope released is acquired within the own CTA only. */
static struct frontier *local_frontier(struct cluster *c, unsigned cta)
{
	struct cta *k = &c->cta[cta];

	if (!k->local_now) {
		k->local_now = frontier_new(&c->space);
		k->local_before = frontier_new(&c->space);
		c->barrier.narrow = true;
	}
	return k->local_now;
}

/* G05: a thread arrives once, then waits, then arrives again. */
static void report_turn(struct cluster *c, const struct event *e, const char *what, const char *why)
{
	struct finding *f = report_new(c, CS504, rule_severity(CS504), e->site, 0);

	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, what);
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "cluster barrier");
	f->barrier.phase = c->barrier.phase;
	report_edge(f, "%s", why);
	report_send(c, f);
}

void on_cluster_arrive(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);

	if ((w->cluster_arrived[0] | w->cluster_arrived[1]) & e->lanes)
		report_turn(c, e, "barrier.cluster.arrive",
			"the thread has already arrived and not waited since, so it is counted twice");
	w->aligned_arrival = e->cluster_arrive.aligned ? e->site : 0;
	if (e->cluster_arrive.aligned)
		barrier_check_exited(c, e, "barrier.cluster.arrive");
	if (e->cluster_arrive.sem == SEM_RELAXED)
		w->relaxed_arrive = warp_past_op(w, e->lanes, e->site);
	if (e->cluster_arrive.sem == SEM_RELAXED)
		warp_published(c, w, e->lanes, c->barrier.now,
			warp_has_narrow(w, e->lanes) ? local_frontier(c, w->cta) : NULL);
	else
		warp_release(c, w, e->lanes | warp_exited(w), c->barrier.now);
	w->cluster_arrived[c->barrier.phase & 1] |= e->lanes;
	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		if (m->init_fenced && !m->init_phase && m->init.warp == w->index
			&& m->init.lanes & e->lanes)
			m->init_phase = c->barrier.phase + 1;
	}
}

void cluster_leave(struct cluster *c, struct warp *w, uint32_t lanes)
{
	const unsigned phase = c->barrier.phase & 1;
	const uint32_t arrived = lanes & w->cluster_arrived[phase];

	/* on a GPU the other lanes of the warp may arrive before these exit */
	if (w->aligned_arrival && lanes != arrived && w->cluster_arrived[phase] & ~lanes)
		barrier_report_exited(c, w, w->aligned_arrival, lanes & ~arrived, c->now->site,
			"barrier.cluster.arrive");
	if (!c->ntensor)
		return;
	if (lanes & ~arrived)
		warp_release(c, w, lanes & ~arrived, c->barrier.leaving[phase]);
	if (arrived)
		warp_release(c, w, arrived, c->barrier.leaving[!phase]);
}

const struct frontier *cluster_gone(const struct cluster *c, const struct warp *w)
{
	return w->cluster_waited && w->cluster_waited == c->barrier.phase ? c->barrier.gone : NULL;
}

static void advance_local(struct cluster *c)
{
	for (uint32_t r = 0; c->barrier.narrow && r < c->nctas; r++) {
		struct cta *k = &c->cta[r];
		struct frontier *f = k->local_before;

		if (!f)
			continue;
		k->local_before = k->local_now;
		k->local_now = f;
		frontier_clear(&c->space, f);
	}
}

void on_cluster_wait(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	struct frontier *f = c->barrier.before;

	if (e->lanes & ~(w->cluster_arrived[0] | w->cluster_arrived[1]))
		report_turn(c, e, "barrier.cluster.wait", "the thread has not arrived since its last wait");
	/* the first warp that leaves ends the phase in which it arrived */
	if (w->cluster_arrived[c->barrier.phase & 1] & e->lanes) {
		c->barrier.before = c->barrier.now;
		c->barrier.now = f;
		frontier_clear(&c->space, c->barrier.now);
		f = c->barrier.before;
		frontier_join(&c->space, c->barrier.gone, c->barrier.leaving[c->barrier.phase & 1]);
		frontier_clear(&c->space, c->barrier.leaving[c->barrier.phase & 1]);
		c->barrier.phase++;
		advance_local(c);
	}
	w->cluster_arrived[(c->barrier.phase - 1) & 1] &= ~e->lanes;
	w->cluster_waited = c->barrier.phase;
	if (e->cluster_wait.sem == SEM_RELAXED)
		warp_observe(c, w, e->lanes, f, SCOPE_CLUSTER);
	else
		warp_acquire(c, w, e->lanes, f);
	for (uint32_t r = 0; c->barrier.narrow && r < c->nctas; r++) {
		f = c->cta[r].local_before;
		if (f && r == w->cta)
			warp_acquire(c, w, e->lanes, f);
		else if (f)
			warp_note_narrow(c, w, e->lanes, f, 0, e->site);
	}
}

/* ---- lifetimes (G01, G02): has the CTA started, is it still running? ---- */

static bool known_to_run(const struct cluster *c, const struct warp *w, unsigned cta)
{
	if (w->cluster_waited)
		return true; /* a relaxed barrier is sufficient for existence */
	for (unsigned g = 0; g < w->ngroups; g++)
		for (uint32_t i = cta * c->per_cta; i < (cta + 1) * c->per_cta; i++) {
			const struct frontier *f = w->group[g].f;

			if (frontier_full(&c->space, f, PLANE_G, i)
				|| (f->npart && frontier_lanes(&c->space, f, PLANE_G, i, 1)))
				return true;
		}
	return false;
}

static const char meet_at_exit[] = "barrier.cluster.arrive; barrier.cluster.wait;";

void cluster_check_peer(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what)
{
	struct finding *f;

	if (peer == w->cta)
		return;
	if (c->cta[peer].ended) {
		f = report_new(c, CS503, rule_severity(CS503), e->site, 0);
		if (f) {
			report_side(c, f, w->index, only_lane(e->lanes), e->site, what);
			report_edge(f, "CTA %u of the cluster has already exited", peer);
			edit_set(f, EDIT_BEFORE, c->warp[peer * c->per_cta].exit_site, 0, meet_at_exit);
			report_send(c, f);
		}
	} else if (!known_to_run(c, w, peer)) {
		f = report_new(c, CS502, rule_severity(CS502), e->site, 0);
		if (f) {
			report_side(c, f, w->index, only_lane(e->lanes), e->site, what);
			report_edge(f, "no synchronisation orders this access of warp %u after the start of "
				"CTA %u of the cluster", w->id, peer);
			report_send(c, f);
		}
	}
}

void cluster_use_peer(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what)
{
	struct cta *cta = &c->cta[peer];
	struct remote_use now;

	if (peer == w->cta)
		return;
	cluster_check_peer(c, w, e, peer, what);
	now.op = warp_past_op(w, e->lanes, e->site);
	now.phase = c->barrier.phase + !!(w->cluster_arrived[c->barrier.phase & 1] & e->lanes);
	for (size_t i = 0; i < cta->remote_uses.n; i++)
		if (cta->remote_uses.at[i].op.warp == w->index
			&& cta->remote_uses.at[i].op.lanes == e->lanes) {
			cta->remote_uses.at[i] = now;
			return;
		}
	vec_push(&cta->remote_uses, now);
}

void cluster_cta_end(struct cluster *c, const struct event *e)
{
	struct cta *cta = &c->cta[e->cta];

	for (size_t i = 0; i < cta->remote_uses.n; i++) {
		const struct remote_use *v = &cta->remote_uses.at[i];
		const struct past_op *x = &v->op;
		struct finding *f;

		if (cta->exited_waited > v->phase)
			continue; /* S38: for lifetimes a relaxed barrier is sufficient */
		if (frontier_full(&c->space, cta->exited, PLANE_G, x->warp) >= x->epoch)
			continue;
		/* that the access took place is known even if the scope was too narrow to order
		 * memory */
		if (!(x->lanes & ~(frontier_lanes(&c->space, cta->exited, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, cta->exited, PLANE_NARROW, x->warp, x->epoch))))
			continue;
		f = report_new(c, CS503, rule_severity(CS503), e->site, x->site);
		if (!f)
			continue;
		report_side(c, f, e->cta * c->per_cta, -1, e->site, "CTA exit");
		report_side(c, f, x->warp, only_lane(x->lanes), x->site, "use of its shared memory");
		report_edge(f, "no synchronisation orders the last access of warp %u of CTA %u before the "
			"exit of CTA %u", c->warp[x->warp].id, c->warp[x->warp].cta, e->cta);
		edit_set(f, EDIT_BEFORE, c->warp[e->cta * c->per_cta].exit_site, 0, meet_at_exit);
		report_send(c, f);
	}
}

bool cluster_knows_init(const struct warp *w, const struct mbar *m)
{
	return m->init_phase && w->cluster_waited >= m->init_phase;
}

void cluster_reset(struct cluster *c)
{
	frontier_clear(&c->space, c->barrier.now);
	frontier_clear(&c->space, c->barrier.before);
	frontier_clear(&c->space, c->barrier.gone);
	frontier_clear(&c->space, c->barrier.leaving[0]);
	frontier_clear(&c->space, c->barrier.leaving[1]);
	c->barrier.phase = 0;
	c->barrier.narrow = false;
	for (uint32_t r = 0; r < c->nctas; r++) {
		c->cta[r].remote_uses.n = 0;
		c->cta[r].exited_waited = 0;
		frontier_put(&c->space, c->cta[r].local_now);
		frontier_put(&c->space, c->cta[r].local_before);
		c->cta[r].local_now = c->cta[r].local_before = NULL;
	}
	for (uint32_t i = 0; i < c->nwarps; i++) {
		c->warp[i].cluster_waited = c->warp[i].aligned_arrival = 0;
		c->warp[i].cluster_arrived[0] = c->warp[i].cluster_arrived[1] = 0;
	}
}
