/* cluster: barrier.cluster, phase by phase, and what it publishes. A default
 * arrive publishes all that its lanes know; a relaxed one only what fences
 * before it made ready: a release fence, or, for mbarrier objects alone,
 * fence.mbarrier_init (G06, G07, B08). Asynchronous operations stay pending
 * across it. And the lifetimes of the cluster's CTAs, one to the other. Does not
 * decide who must come: the executor does, or hangs. */
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

/* What fences of .cta scope made ready reaches the own CTA only. */
static struct frontier *near(struct cluster *c, unsigned cta)
{
	struct cta *k = &c->cta[cta];

	if (!k->near_now) {
		k->near_now = frontier_new(&c->space);
		k->near_before = frontier_new(&c->space);
		c->meet.narrow = true;
	}
	return k->near_now;
}

/* G05: a thread arrives once, then waits, then arrives again. */
static void out_of_turn(struct cluster *c, const struct event *e, const char *what, const char *why)
{
	struct finding *f = report_new(c, CS504, rule_severity(CS504), e->site, 0);

	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, what);
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "cluster barrier");
	f->barrier.phase = c->meet.phase;
	report_edge(f, "%s", why);
	report_send(c, f);
}

void on_cluster_arrive(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);

	if ((w->cluster_arrived[0] | w->cluster_arrived[1]) & e->lanes)
		out_of_turn(c, e, "barrier.cluster.arrive",
			"the thread has already arrived and not waited since, so it is counted twice");
	if (e->cluster_arrive.sem == SEM_RELAXED)
		warp_published(c, w, e->lanes, c->meet.now,
			warp_narrow(w, e->lanes) ? near(c, w->cta) : NULL);
	else
		warp_release(c, w, e->lanes | w->kept, c->meet.now);
	w->cluster_arrived[c->meet.phase & 1] |= e->lanes;
	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		if (m->init_fenced && !m->init_phase && m->init.warp == w->index
			&& m->init.lanes & e->lanes)
			m->init_phase = c->meet.phase + 1;
	}
}

static void turn_near(struct cluster *c)
{
	for (uint32_t r = 0; c->meet.narrow && r < c->nctas; r++) {
		struct cta *k = &c->cta[r];
		struct frontier *f = k->near_before;

		if (!f)
			continue;
		k->near_before = k->near_now;
		k->near_now = f;
		frontier_clear(&c->space, f);
	}
}

void on_cluster_wait(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	struct frontier *f = c->meet.before;

	if (e->lanes & ~(w->cluster_arrived[0] | w->cluster_arrived[1]))
		out_of_turn(c, e, "barrier.cluster.wait", "the thread has not arrived since its last wait");
	/* the first that leaves closes the phase in which it arrived */
	if (w->cluster_arrived[c->meet.phase & 1] & e->lanes) {
		c->meet.before = c->meet.now;
		c->meet.now = f;
		frontier_clear(&c->space, c->meet.now);
		f = c->meet.before;
		c->meet.phase++;
		turn_near(c);
	}
	w->cluster_arrived[(c->meet.phase - 1) & 1] &= ~e->lanes;
	w->cluster_waited = c->meet.phase;
	if (e->cluster_wait.sem == SEM_RELAXED)
		warp_observe(c, w, e->lanes, f, SCOPE_CLUSTER);
	else
		warp_acquire(c, w, e->lanes, f);
	for (uint32_t r = 0; c->meet.narrow && r < c->nctas; r++) {
		f = c->cta[r].near_before;
		if (f && r == w->cta)
			warp_acquire(c, w, e->lanes, f);
		else if (f)
			warp_miss(c, w, e->lanes, f, 0, e->site);
	}
}

/* ---- lifetimes (G01, G02): is the CTA there yet, is it there still? ---- */

static bool known_to_run(const struct cluster *c, const struct warp *w, unsigned cta)
{
	if (w->cluster_waited)
		return true; /* existence is all that a relaxed barrier needs to say */
	for (unsigned g = 0; g < w->ngroups; g++)
		for (uint32_t i = cta * c->per_cta; i < (cta + 1) * c->per_cta; i++) {
			const struct frontier *f = w->group[g].f;

			if (frontier_full(&c->space, f, PLANE_G, i)
				|| (f->npart && frontier_lanes(&c->space, f, PLANE_G, i, 1)))
				return true;
		}
	return false;
}

void cluster_touch(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
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

void cluster_visit(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what)
{
	struct cta *cta = &c->cta[peer];
	struct visit now;

	if (peer == w->cta)
		return;
	cluster_touch(c, w, e, peer, what);
	now.who = warp_who(w, e->lanes, e->site);
	now.phase = c->meet.phase + !!(w->cluster_arrived[c->meet.phase & 1] & e->lanes);
	for (size_t i = 0; i < cta->visits.n; i++)
		if (cta->visits.at[i].who.warp == w->index && cta->visits.at[i].who.lanes == e->lanes) {
			cta->visits.at[i] = now;
			return;
		}
	vec_push(&cta->visits, now);
}

void cluster_cta_end(struct cluster *c, const struct event *e)
{
	struct cta *cta = &c->cta[e->cta];

	for (size_t i = 0; i < cta->visits.n; i++) {
		const struct visit *v = &cta->visits.at[i];
		const struct who *x = &v->who;
		struct finding *f;

		if (cta->exited_waited > v->phase)
			continue; /* S38: for lifetimes a relaxed barrier is enough */
		if (frontier_full(&c->space, cta->exited, PLANE_G, x->warp) >= x->epoch)
			continue;
		/* that it took place is known even where its scope hands nothing over */
		if (!(x->lanes & ~(frontier_lanes(&c->space, cta->exited, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, cta->exited, PLANE_HELD, x->warp, x->epoch))))
			continue;
		f = report_new(c, CS503, rule_severity(CS503), e->site, x->site);
		if (!f)
			continue;
		report_side(c, f, e->cta * c->per_cta, -1, e->site, "CTA exit");
		report_side(c, f, x->warp, only_lane(x->lanes), x->site, "use of its shared memory");
		report_edge(f, "no synchronisation orders the last access of warp %u of CTA %u before the "
			"exit of CTA %u", c->warp[x->warp].id, c->warp[x->warp].cta, e->cta);
		report_send(c, f);
	}
}

bool cluster_knows_init(const struct warp *w, const struct mbar *m)
{
	return m->init_phase && w->cluster_waited >= m->init_phase;
}

void cluster_reset(struct cluster *c)
{
	frontier_clear(&c->space, c->meet.now);
	frontier_clear(&c->space, c->meet.before);
	c->meet.phase = 0;
	c->meet.narrow = false;
	for (uint32_t r = 0; r < c->nctas; r++) {
		c->cta[r].visits.n = 0;
		c->cta[r].exited_waited = 0;
		frontier_put(&c->space, c->cta[r].near_now);
		frontier_put(&c->space, c->cta[r].near_before);
		c->cta[r].near_now = c->cta[r].near_before = NULL;
	}
	for (uint32_t i = 0; i < c->nwarps; i++) {
		c->warp[i].cluster_waited = 0;
		c->warp[i].cluster_arrived[0] = c->warp[i].cluster_arrived[1] = 0;
	}
}
