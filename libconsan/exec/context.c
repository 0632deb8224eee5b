/* context: the memory of clusters, CTAs and warps: allocated once, reused for one cluster of the
 * grid after the other, and initialised at each start. */
#include "internal.h"
#include "reads.h"

#include <stdlib.h>

/* ---- special registers that are constant while a CTA runs ---- */

/* Does the value differ from CTA to CTA that uses the same context? All lanes have the same then. */
static bool sreg_of_cta(unsigned sreg)
{
	switch (sreg) {
	case SR_ctaid_x: case SR_ctaid_y: case SR_ctaid_z: case SR_smid:
	case SR_clusterid_x: case SR_clusterid_y: case SR_clusterid_z:
	case SR_nclusterid_x: case SR_nclusterid_y: case SR_nclusterid_z:
	case SR_cluster_ctaid_x: case SR_cluster_ctaid_y: case SR_cluster_ctaid_z:
	case SR_cluster_nctaid_x: case SR_cluster_nctaid_y: case SR_cluster_nctaid_z:
	case SR_cluster_nctarank:
		return true;
	}
	return false;
}

static uint32_t sreg_value(const struct warp *w, unsigned sreg, unsigned lane)
{
	const struct grid *g = w->worker->grid;
	const struct exec_launch *l = g->l;
	const struct cta *c = w->cta;
	const uint32_t *block = l->block, *cl = c->cluster->dims;
	uint32_t t = w->id * LANES + lane;

	switch (sreg) {
	case SR_tid_x: return t % block[0];
	case SR_tid_y: return t / block[0] % block[1];
	case SR_tid_z: return t / block[0] / block[1];
	case SR_ntid_x: return block[0];
	case SR_ntid_y: return block[1];
	case SR_ntid_z: return block[2];
	case SR_laneid: return lane;
	case SR_warpid: return w->id;
	case SR_nwarpid: return l->device->max_threads_per_sm / LANES;
	case SR_ctaid_x: return c->id[0];
	case SR_ctaid_y: return c->id[1];
	case SR_ctaid_z: return c->id[2];
	case SR_nctaid_x: return l->grid[0];
	case SR_nctaid_y: return l->grid[1];
	case SR_nctaid_z: return l->grid[2];
	case SR_smid: return (uint32_t)(c->linear % l->device->sm_count);
	case SR_nsmid: return l->device->sm_count;
	case SR_gridid: return l->id;
	case SR_is_explicit_cluster: return g->info.clustered;
	case SR_clusterid_x: return c->id[0] / cl[0];
	case SR_clusterid_y: return c->id[1] / cl[1];
	case SR_clusterid_z: return c->id[2] / cl[2];
	case SR_nclusterid_x: return l->grid[0] / cl[0];
	case SR_nclusterid_y: return l->grid[1] / cl[1];
	case SR_nclusterid_z: return l->grid[2] / cl[2];
	case SR_cluster_ctaid_x: return c->id[0] % cl[0];
	case SR_cluster_ctaid_y: return c->id[1] % cl[1];
	case SR_cluster_ctaid_z: return c->id[2] % cl[2];
	case SR_cluster_nctaid_x: return cl[0];
	case SR_cluster_nctaid_y: return cl[1];
	case SR_cluster_nctaid_z: return cl[2];
	case SR_cluster_ctarank: return c->rank;
	case SR_cluster_nctarank: return c->cluster->info.nctas;
	case SR_lanemask_eq: return 1u << lane;
	case SR_lanemask_lt: return (1u << lane) - 1;
	case SR_lanemask_le: return (2u << lane) - 1;
	case SR_lanemask_gt: return ~((2u << lane) - 1);
	case SR_lanemask_ge: return ~((1u << lane) - 1);
	case SR_dynamic_smem_size: return l->shared_dynamic;
	case SR_total_smem_size:
	case SR_aggr_smem_size: return g->shared_bytes;
	case SR_envreg1: return (uint32_t)((uintptr_t)g->workspace >> 32);
	case SR_envreg2: return (uint32_t)(uintptr_t)g->workspace;
	case SR_reserved_smem_offset_begin:
	case SR_reserved_smem_offset_0:
	case SR_reserved_smem_offset_1: return (g->shared_user + 15) & ~15u;
	case SR_reserved_smem_offset_cap:
	case SR_reserved_smem_offset_end: return g->shared_bytes;
	default: return 0; /* %envreg0, %envreg3 ...: the driver leaves them 0 */
	}
}

/* ---- contexts ---- */

static void fill_const(struct warp *w, const struct kconst *c, uint64_t v)
{
	switch (reg_class_of(c->bits)) {
	case RC_PRED:
		*rp(w, c->slot) = v & 1 ? FULL : 0;
		return;
	case RC_16:
		for (unsigned l = 0; l < LANES; l++)
			r16(w, c->slot)[l] = (uint16_t)v;
		return;
	case RC_32:
		for (unsigned l = 0; l < LANES; l++)
			r32(w, c->slot)[l] = (uint32_t)v;
		return;
	case RC_64:
	case RC_128:
		for (unsigned l = 0; l < LANES; l++)
			r64(w, c->slot)[l] = v;
		if (c->bits == 128)
			memset(r64(w, c->slot) + LANES, 0, 8 * LANES);
		return;
	case RC_COUNT:
		return;
	}
}

static void fill_sreg(struct warp *w, const struct kconst *c)
{
	for (unsigned l = 0; l < LANES; l++) {
		const uint32_t v = sreg_value(w, (unsigned)c->value, l);

		if (c->bits == 64)
			r64(w, c->slot)[l] = v;
		else if (c->bits == 32)
			r32(w, c->slot)[l] = v;
		else
			r16(w, c->slot)[l] = (uint16_t)v;
	}
}

/* Frees the frames of lanes that did not return. */
static void drop_calls(struct warp *w)
{
	for (unsigned l = 0; l < LANES; l++)
		while (w->call[l].n)
			free(w->call[l].at[--w->call[l].n].saved);
}

static struct warp *warp_new(struct worker *wk, struct cta *cta, unsigned id)
{
	const struct exec_kernel *k = wk->grid->k;
	uint32_t first = id * LANES, threads = wk->grid->nthreads;
	struct warp *w = base_alloc(sizeof *w);

	w->r = aligned_alloc(64, (k->reg_bytes + 63) & ~63u);
	if (!w->r)
		base_die("no memory for a register file of %u bytes", k->reg_bytes);
	memset(w->r, 0, k->reg_bytes);
	*rp(w, SLOT_TRUE) = FULL;
	w->cta = cta;
	w->cluster = cta->cluster;
	w->worker = wk;
	w->code = k->code;
	w->id = (uint16_t)id;
	w->nlanes = (uint16_t)(threads - first < LANES ? threads - first : LANES);
	if (k->local_stack)
		w->local = base_alloc((size_t)k->local_stack * LANES);
	for (size_t i = 0; i < k->nkonst; i++) {
		const struct kconst *c = &k->konst[i];

		if (c->kind == KC_VALUE)
			fill_const(w, c, c->value);
		else if (c->kind == KC_SHARED)
			fill_const(w, c, c->value + ((uint64_t)cta->rank << 24));
		else if (!sreg_of_cta((unsigned)c->value))
			fill_sreg(w, c);
	}
	slot_gap_poison(k, w->r);
	return w;
}

static struct cluster *cluster_new(struct worker *wk)
{
	struct grid *g = wk->grid;
	struct cluster *c = base_alloc(sizeof *c);

	c->grid = g;
	c->worker = wk;
	c->cta = base_alloc(g->nctas * sizeof *c->cta);
	c->info = (struct cluster_info){ .launch = &g->info, .nctas = g->nctas,
		.warps_per_cta = g->nwarps };
	for (uint32_t r = 0; r < g->nctas; r++) {
		struct cta *cta = &c->cta[r];

		cta->cluster = c;
		cta->rank = r;
		cta->shared_bytes = g->shared_bytes;
		cta->shared = aligned_alloc(1024, ((size_t)g->shared_bytes + 2047) & ~(size_t)1023);
		if (!cta->shared)
			base_die("no memory for %u bytes of shared memory", g->shared_bytes);
		cta->nwarps = g->nwarps;
		cta->nthreads = g->nthreads;
		cta->group = base_alloc((g->nwarps + 3) / 4 * sizeof *cta->group);
		cta->warp = base_alloc(g->nwarps * sizeof *cta->warp);
		for (uint32_t i = 0; i < g->nwarps; i++)
			cta->warp[i] = warp_new(wk, cta, i);
	}
	return c;
}

void context_free(struct cluster *c)
{
	for (uint32_t r = 0; r < c->grid->nctas; r++) {
		struct cta *cta = &c->cta[r];

		for (uint32_t i = 0; i < cta->nwarps; i++) {
			struct warp *w = cta->warp[i];

			async_warp_free(w);
			vec_free(&w->follow);
			free(w->origin);
			free(w->device_error);
			drop_calls(w);
			for (unsigned l = 0; l < LANES; l++)
				vec_free(&w->call[l]);
			free(w->local);
			free(w->r);
			free(w);
		}
		async_cta_free(cta);
		free(cta->warp);
		free(cta->group);
		free(cta->shared);
	}
	async_cluster_free(c);
	free(c->cta);
	free(c);
}

/* ---- the start of a cluster ---- */

static void warp_begin(struct warp *w)
{
	const struct exec_kernel *k = w->worker->grid->k;

	w->sink = w->cluster->sink;
	w->maxnreg = w->worker->grid->nregs;
	w->cluster_odd = w->cluster_arrived = 0;
	w->cluster_phase = 0;
	for (size_t i = 0; i < k->nkonst; i++) {
		const struct kconst *c = &k->konst[i];

		if (c->kind == KC_SREG && sreg_of_cta((unsigned)c->value))
			fill_const(w, c, sreg_value(w, (unsigned)c->value, 0));
	}
	for (size_t f = 0; f < k->nfn; f++)
		for (size_t i = 0; i < k->fn[f].nzero; i++) {
			uint32_t z = k->fn[f].zero[i];

			memset(w->r + (z & ~3u), 0, (size_t[]){ 4, 64, 128, 256 }[z & 3]);
		}
	memset(w->r + k->sp_slot, 0, 4 * LANES);
	memset(w->r + k->dynamic_slot, 0, 4 * LANES);
	if (k->local_stack)
		memset(w->local, 0, (size_t)k->local_stack * LANES);
	drop_calls(w);
	memset(&w->spin, 0, sizeof w->spin);
	w->parked_shared = 0;
	w->parked = w->granted = w->spun = w->poll.held = false;
	w->polled = 0;
	warp_start(w);
	async_warp_begin(w);
}

static void cta_begin(struct cta *cta)
{
	struct cluster *c = cta->cluster;
	const struct grid *g = c->grid;

	cluster_ctaid(&c->info, cta->rank, cta->id);
	cta->linear = cta->id[0] + (uint64_t)g->l->grid[0] *
		(cta->id[1] + (uint64_t)g->l->grid[1] * cta->id[2]);
	memset(cta->shared, 0, cta->shared_bytes);
	memset(cta->bar, 0, sizeof cta->bar);
	memset(cta->group, 0, (cta->nwarps + 3) / 4 * sizeof *cta->group);
	cta->running = cta->nwarps;
	cta->regs_free = 0;
	cta->exits = 0;
	if (c->sink) {
		struct event e = { .kind = EV_CTA_BEGIN, .cta = (uint16_t)cta->rank,
			.lanes = FULL, .cta_begin = { .threads = cta->nthreads,
			.shared_bytes = cta->shared_bytes, .linear_id = cta->linear } };

		ex_emit(c, &e);
	}
	async_cta_begin(cta);
	for (uint32_t i = 0; i < cta->nwarps; i++)
		warp_begin(cta->warp[i]);
}

void context_cta_end(struct cta *cta)
{
	struct cluster *c = cta->cluster;

	c->running--;
	c->worker->ctas++;
	if (!c->sink)
		return;
	struct event e = { .kind = EV_CTA_END, .cta = (uint16_t)cta->rank, .lanes = FULL };
	ex_emit(c, &e);
}

void context_begin(struct worker *wk, uint64_t id, uint32_t place)
{
	struct grid *g = wk->grid;
	const struct exec_observer *o = g->l->observer;
	struct cluster *c = wk->idle;

	if (c)
		wk->idle = c->next;
	else
		c = cluster_new(wk);
	c->info.id = (uint32_t)id;
	c->place = place;
	cluster_dims(&c->info, c->dims);
	c->info.nctas = c->dims[0] * c->dims[1] * c->dims[2];
	c->sink = reads_begin(c, o && o->cluster_begin ? o->cluster_begin(o->user, &c->info) : NULL);
	c->poll_ops = g->l->hardware ? POLL_OPS : 0;
	c->work = c->polls = c->events = c->ticks = c->slept = 0;
	c->last_op = 0;
	c->bar_phase = 0;
	c->bar_arrived = 0;
	c->live = c->info.nctas * c->worker->grid->nthreads;
	c->rng = (g->l->seed + 1) * 0x9e3779b97f4a7c15ull ^ (id + 1) * 0xbf58476d1ce4e5b9ull;
	c->oldest = c->newest = NULL;
	c->stop = false;
	c->parked = 0;
	c->parked_shared = c->changes = 0;
	c->poll = NULL;
	c->polled = 0;
	c->running = c->info.nctas;
	async_cluster_begin(c);
	for (uint32_t r = 0; r < c->info.nctas; r++)
		cta_begin(&c->cta[r]);
	c->slot = (uint32_t)wk->resident.n;
	vec_push(&wk->resident, ((struct xresident){ .c = c, .due = true }));
	sched_due(wk, c->slot);
}

/* Ends the cluster; its context is kept for the next one. */
void context_end(struct cluster *c, bool finished)
{
	struct worker *wk = c->worker;
	struct grid *g = wk->grid;
	const struct exec_observer *o = g->l->observer;

	while (finished && async_perform_one(c))
		;
	for (struct async_op *op = c->oldest, *next; op; op = next) {
		next = op->next;
		async_free(c, op);
	}
	c->oldest = c->newest = NULL;
	c->sink = reads_end(c);
	if (c->sink && o->cluster_end)
		o->cluster_end(o->user, c->sink);
	wk->events += c->events;
	wk->ops += c->ticks;
	wk->clusters += finished;
	wk->resident.n--;
	for (uint32_t i = c->slot; i < wk->resident.n; i++) {
		wk->resident.at[i] = wk->resident.at[i + 1];
		wk->resident.at[i].c->slot = i;
	}
	wk->due_from -= wk->due_from > c->slot;
	wk->due_to -= wk->due_to > c->slot;
	c->next = wk->idle;
	wk->idle = c;
	atomic_fetch_sub(&g->resident, 1);
}
