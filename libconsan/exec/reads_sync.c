/* reads_sync: what threads hand over to each other other than by accesses to global memory; see
 * reads.h. */
#include "reads.h"

unsigned reads_reach(enum ev_scope scope)
{
	return scope == SCOPE_CTA ? 0 : scope == SCOPE_CLUSTER ? 1 : 2;
}

static struct thread *thread_of(struct reads_cluster *k, const struct event *e, unsigned lane)
{
	return &k->thread[((uint32_t)e->cta * k->cluster->info.warps_per_cta + e->warp) * LANES + lane];
}

static void pass(struct reads *r, struct thread *to, const struct thread *from)
{
	reads_join(r, &to->now, from->now);
	for (unsigned d = 0; d < READS_DISTANCES; d++) {
		reads_join(r, &to->seen[d], from->seen[d]);
		reads_join(r, &to->released[d], from->released[d]);
	}
	to->releases |= from->releases;
}

static void publish(struct reads_cluster *k, const struct event *e)
{
	for EACH_LANE(l, e->lanes)
		pass(k->reads, &k->hub, thread_of(k, e, l));
}

static void take(struct reads_cluster *k, const struct event *e)
{
	for EACH_LANE(l, e->lanes)
		pass(k->reads, thread_of(k, e, l), &k->hub);
}

/* Each lane learns what all have. */
static void meet(struct reads_cluster *k, const struct event *e)
{
	const uint32_t lanes = e->lanes | e->warp_sync.mask;
	struct thread *first = thread_of(k, e, (unsigned)__builtin_ctz(lanes));

	for EACH_LANE(l, lanes)
		pass(k->reads, first, thread_of(k, e, l));
	for EACH_LANE(m, lanes)
		pass(k->reads, thread_of(k, e, m), first);
}

static void fence(struct reads_cluster *k, const struct event *e, enum ev_sem sem,
	enum ev_scope scope)
{
	const unsigned reach = reads_reach(scope);

	for EACH_LANE(l, e->lanes) {
		struct thread *t = thread_of(k, e, l);

		for (unsigned d = 0; d <= reach && sem != SEM_RELEASE; d++)
			reads_join(k->reads, &t->now, t->seen[d]);
		if (sem == SEM_SC)
			reads_sc(k->reads, k, t, scope);
		if (sem == SEM_ACQUIRE)
			continue;
		for (unsigned d = 0; d <= reach; d++)
			reads_join(k->reads, &t->released[d], t->now);
		t->releases = true;
	}
}

static void access(struct reads_cluster *k, const struct event *e)
{
	const struct event_access *a = &e->access;

	if (a->space == SP_GLOBAL && a->sem == SEM_WEAK) {
		reads_weak(k, e);
	} else if (a->space == SP_GLOBAL && a->mode & MODE_WRITE) {
		reads_write(k, e);
	} else if (a->space == SP_SHARED && a->sem != SEM_WEAK) {
		if (a->mode & MODE_READ)
			take(k, e);
		if (a->mode & MODE_WRITE)
			publish(k, e);
	}
}

void reads_synchronize(struct reads_cluster *k, const struct event *e)
{
	switch (e->kind) {
	case EV_ACCESS:
		access(k, e);
		return;
	case EV_FENCE:
		fence(k, e, e->fence.sem, e->fence.scope);
		return;
	case EV_FENCE_PROXY:
		if (e->fence_proxy.sem != SEM_WEAK)
			fence(k, e, e->fence_proxy.sem, e->fence_proxy.scope);
		return;
	case EV_WARP_SYNC:
		meet(k, e);
		return;
	case EV_BARRIER_ARRIVE:
	case EV_CLUSTER_ARRIVE:
	case EV_MBARRIER_ARRIVE:
	case EV_CP_ASYNC_ARRIVE:
	case EV_THREAD_EXIT:
		publish(k, e);
		return;
	case EV_BARRIER_RESUME:
	case EV_CLUSTER_WAIT:
		take(k, e);
		return;
	case EV_MBARRIER_TEST:
		if (e->mbarrier_test.flags & TEST_TRUE)
			take(k, e);
		return;
	case EV_BULK:
		for (unsigned i = 0; e->bulk.mode == MODE_READ && i < e->bulk.global.n; i++)
			reads_forget(k, e->bulk.global.at[i].addr, e->bulk.global.at[i].bytes);
		return;
	case EV_HEAP:
		reads_forget(k, e->heap.addr, e->heap.bytes);
		return;
	default:
		return;
	}
}
