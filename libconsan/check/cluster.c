/* cluster: barrier.cluster, phase by phase, and what it publishes. A default
 * arrive publishes all that its lanes know; a relaxed one only what fences
 * before it made ready: a release fence, or, for mbarrier objects alone,
 * fence.mbarrier_init (G06, G07, B08). Asynchronous operations stay pending
 * across it. Does not decide who must come: the executor does, or hangs. */
#include "state.h"

void on_fence_mbinit(struct cluster *c, const struct event *e)
{
	uint32_t index = warp_of(c, e)->index;

	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		if (m->live && m->init.warp == index && m->init.lanes & e->lanes)
			m->init_fenced = true;
	}
}

void on_cluster_arrive(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);

	if (e->sem == SEM_RELAXED)
		warp_published(c, w, e->lanes, c->meet.now);
	else
		warp_release(c, w, e->lanes, c->meet.now);
	w->cluster_arrived[c->meet.phase & 1] |= e->lanes;
	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		if (m->init_fenced && !m->init_phase && m->init.warp == w->index
			&& m->init.lanes & e->lanes)
			m->init_phase = c->meet.phase + 1;
	}
}

void on_cluster_wait(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	struct frontier *f = c->meet.before;

	/* the first that leaves closes the phase in which it arrived */
	if (w->cluster_arrived[c->meet.phase & 1] & e->lanes) {
		c->meet.before = c->meet.now;
		c->meet.now = f;
		frontier_clear(&c->space, c->meet.now);
		f = c->meet.before;
		c->meet.phase++;
	}
	w->cluster_arrived[(c->meet.phase - 1) & 1] &= ~e->lanes;
	w->cluster_waited = c->meet.phase;
	if (e->sem == SEM_RELAXED)
		warp_observe(c, w, e->lanes, f);
	else
		warp_acquire(c, w, e->lanes, f);
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
	for (uint32_t i = 0; i < c->nwarps; i++) {
		c->warp[i].cluster_waited = 0;
		c->warp[i].cluster_arrived[0] = c->warp[i].cluster_arrived[1] = 0;
	}
}
