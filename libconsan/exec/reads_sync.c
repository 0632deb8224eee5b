/* reads_sync: what the events of a cluster do to the model, see reads.h, other than strong loads. */
#include "reads.h"

#include "internal.h"

#include <stdlib.h>

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

static void publish(struct reads_cluster *k, const struct event *e, struct thread *to)
{
	for EACH_LANE(l, e->lanes)
		pass(k->reads, to, thread_of(k, e, l));
}

static void take(struct reads_cluster *k, struct thread *t, const struct thread *from)
{
	pass(k->reads, t, from);
	pass(k->reads, t, &k->exited);
}

/* ---- barriers ---- */

/* A warp arrives at once, when all its lanes are there. */
static void barrier_arrive(struct reads_cluster *k, const struct event *e)
{
	const uint32_t id = e->barrier_arrive.id % READS_BARRIERS;
	const uint32_t warp = e->cta * k->cluster->info.warps_per_cta + e->warp;

	for (unsigned l = 0; l < LANES; l++)
		pass(k->reads, &k->barrier[e->cta * READS_BARRIERS + id], thread_of(k, e, l));
	if (e->barrier_arrive.mode != BAR_ARRIVE)
		k->waits[warp] |= (uint16_t)(1u << id);
}

/* The first warp that resumes shows that the generation is complete. The others learn what was handed
 * over to it now, as a thread that goes on may arrive for the next one before they resume. */
static void barrier_resume(struct reads_cluster *k, const struct event *e)
{
	const uint32_t id = e->barrier_resume.id % READS_BARRIERS, n = k->cluster->info.warps_per_cta;
	struct thread *b = &k->barrier[e->cta * READS_BARRIERS + id];
	uint16_t *waits = &k->waits[e->cta * n];

	if (!(waits[e->warp] >> id & 1))
		return;
	for (uint32_t w = 0; w < n; w++) {
		if (!(waits[w] >> id & 1))
			continue;
		waits[w] &= (uint16_t)~(1u << id);
		for (unsigned l = 0; l < LANES; l++)
			take(k, &k->thread[(e->cta * n + w) * LANES + l], b);
	}
	reads_clear(b);
}

/* A thread arrives for a phase when it has waited for the one before. So when the first one does, all
 * have waited for the phase before that. */
static void cluster_arrive(struct reads_cluster *k, const struct event *e)
{
	for EACH_LANE(l, e->lanes) {
		struct thread *t = thread_of(k, e, l);

		if (++t->phase > k->phases) {
			k->phases = t->phase;
			reads_clear(&k->phase[t->phase % 2]);
		}
		pass(k->reads, &k->phase[t->phase % 2], t);
	}
}

static void cluster_wait(struct reads_cluster *k, const struct event *e)
{
	for EACH_LANE(l, e->lanes) {
		struct thread *t = thread_of(k, e, l);

		take(k, t, &k->phase[t->phase % 2]);
	}
}

static struct thread *mbarrier(struct reads_cluster *k, unsigned cta, uint32_t addr)
{
	const uint64_t at = reads_shared(k, cta, addr);
	uint64_t number = number_map_get(&k->mbarrier_at, at);

	if (!number) {
		vec_push(&k->mbarrier, (struct thread){ 0 });
		number_map_put(&k->mbarrier_at, at, number = k->mbarrier.n);
	}
	return &k->mbarrier.at[number - 1];
}

static void mbarrier_observed(struct reads_cluster *k, const struct event *e)
{
	const struct event_mbarrier_test *m = &e->mbarrier_test;

	if (!(m->flags & TEST_TRUE))
		return;
	for EACH_LANE(l, e->lanes)
		take(k, thread_of(k, e, l), mbarrier(k, m->owner, m->addr));
}

static void tcgen05_commit(struct reads_cluster *k, const struct event *e)
{
	for EACH_LANE(cta, e->tcgen05_commit.ctas)
		if (cta < k->cluster->info.nctas)
			publish(k, e, mbarrier(k, cta, e->tcgen05_commit.addr));
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

	if (a->space != SP_GLOBAL && a->space != SP_SHARED)
		return;
	if (a->sem == SEM_WEAK)
		reads_weak(k, e);
	else if (a->mode & MODE_WRITE)
		reads_write(k, e);
}

static void forget_shared(struct reads_cluster *k, unsigned cta, uint64_t at, uint64_t bytes)
{
	if (cta < k->cluster->info.nctas)
		reads_forget(k, reads_shared(k, cta, at), bytes);
}

static void copy(struct reads_cluster *k, const struct event_bulk *b)
{
	if (b->mode == MODE_READ) {
		for (unsigned i = 0; i < b->global.n && !k->own; i++)
			reads_forget(k, b->global.at[i].addr, b->global.at[i].bytes);
		return;
	}
	for EACH_LANE(cta, b->multicast ? b->cta_mask : 1u << b->owner)
		forget_shared(k, cta, b->addr, b->bytes);
}

static void synchronize(struct reads_cluster *k, const struct event *e)
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
	case EV_THREAD_EXIT:
		publish(k, e, &k->exited);
		return;
	case EV_BARRIER_ARRIVE:
		barrier_arrive(k, e);
		return;
	case EV_BARRIER_RESUME:
		barrier_resume(k, e);
		return;
	case EV_CLUSTER_ARRIVE:
		cluster_arrive(k, e);
		return;
	case EV_CLUSTER_WAIT:
		cluster_wait(k, e);
		return;
	case EV_MBARRIER_ARRIVE:
		publish(k, e, mbarrier(k, e->mbarrier_arrive.owner, e->mbarrier_arrive.addr));
		return;
	case EV_CP_ASYNC_ARRIVE:
		publish(k, e, mbarrier(k, e->cta, e->cp_async_arrive.addr));
		return;
	case EV_MBARRIER_TEST:
		mbarrier_observed(k, e);
		return;
	case EV_TCGEN05_COMMIT:
		tcgen05_commit(k, e);
		return;
	case EV_BULK:
	case EV_TRY_CANCEL:
		copy(k, &e->bulk);
		return;
	case EV_CP_ASYNC:
		for EACH_LANE(l, e->lanes)
			forget_shared(k, e->cta, lane_addr(&e->cp_async.at, l), e->cp_async.bytes);
		return;
	case EV_MBARRIER_INIT:
		forget_shared(k, e->mbarrier_init.owner, e->mbarrier_init.addr, 8);
		return;
	case EV_HEAP:
		reads_forget(k, e->heap.addr, e->heap.bytes);
		return;
	default:
		return;
	}
}

/* ---- a cluster ---- */

static void sync_begin(struct reads_cluster *k)
{
	k->barrier = base_alloc(k->cluster->info.nctas * READS_BARRIERS * sizeof *k->barrier);
	k->waits = base_alloc(k->cluster->info.nctas * k->cluster->info.warps_per_cta * sizeof *k->waits);
}

static void sync_end(struct reads_cluster *k)
{
	for (uint32_t i = 0; i < k->cluster->info.nctas * READS_BARRIERS; i++)
		reads_clear(&k->barrier[i]);
	for (size_t i = 0; i < k->mbarrier.n; i++)
		reads_clear(&k->mbarrier.at[i]);
	reads_clear(&k->phase[0]);
	reads_clear(&k->phase[1]);
	reads_clear(&k->exited);
	vec_free(&k->mbarrier);
	number_map_free(&k->mbarrier_at);
	free(k->barrier);
	free(k->waits);
}

static void on_event(struct event_sink *s, const struct event *e)
{
	struct reads_cluster *k = (struct reads_cluster *)s;
	const bool global = e->kind == EV_HEAP
		|| (e->kind == EV_ACCESS && e->access.space == SP_GLOBAL);

	if (!global || !k->own)
		synchronize(k, e);
	if (k->to && (!global || k->to->want_global))
		k->to->event(k->to, e);
}

struct event_sink *reads_begin(struct cluster *c, struct event_sink *to)
{
	const bool own = !c->worker->reads && c->grid->polls_shared;
	struct reads *r = own ? reads_open(c->grid->l, c->info.id + 1ull) : c->worker->reads;
	const uint32_t warps = c->info.nctas * c->info.warps_per_cta;
	struct reads_cluster *k;

	if (!r)
		return to;
	k = base_alloc(sizeof *k);
	*k = (struct reads_cluster){ .to = to, .reads = r, .own = own, .cluster = c,
		.sink = { .event = on_event, .want_global = !own || (to && to->want_global) },
		.thread = base_alloc(warps * LANES * sizeof *k->thread),
		.overlooked = base_alloc(warps * sizeof *k->overlooked) };
	for (uint32_t i = 0; i < c->info.nctas; i++) /* of an earlier cluster */
		reads_renew(r, (uintptr_t)c->cta[i].shared, c->cta[i].shared_bytes);
	sync_begin(k);
	c->reads = k;
	return &k->sink;
}

struct event_sink *reads_end(struct cluster *c)
{
	struct reads_cluster *k = c->reads;
	struct event_sink *to = k ? k->to : c->sink;

	if (!k)
		return to;
	for (uint32_t i = 0; i < c->info.nctas * c->info.warps_per_cta * LANES; i++)
		reads_clear(&k->thread[i]);
	sync_end(k);
	view_put(k->sc);
	c->worker->reads_given_up |= reads_given_up(k->reads);
	if (k->own)
		reads_close(k->reads);
	free(k->thread);
	free(k->overlooked);
	free(k);
	c->reads = NULL;
	return to;
}
