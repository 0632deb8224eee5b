/* grid: a launch from its checks to its result, and the emulated devices. */
#include <xmmintrin.h>

#include "clc.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct exec_device devices[] = {
#define DEVICE(sm, suffix, name, sms, threads, ctas, regs, shared, optin, reserved, cluster) \
	{ sm, suffix, name, sms, threads, ctas, regs, shared, optin, reserved, cluster },
#include "device.def"
#undef DEVICE
};

const struct exec_device *exec_device_for(unsigned sm)
{
	const struct exec_device *best = &devices[0];

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++)
		if (devices[i].sm <= sm)
			best = &devices[i];
	return best;
}

const struct exec_device *exec_device_at(unsigned k)
{
	return k < ARRAY_SIZE(devices) ? &devices[k] : NULL;
}

enum { QUARTERS = 4, QUARTER_REGS = 16384 };

/* Each quarter of an SM has registers of its own for its warps, in units of 8 for each thread. */
uint32_t ex_regs_within(uint32_t threads, uint32_t ctas)
{
	const uint64_t warps = (uint64_t)((threads + LANES - 1) / LANES) * ctas;
	const uint64_t here = (warps + QUARTERS - 1) / QUARTERS;
	const uint64_t n = here ? QUARTER_REGS / (here * LANES) & ~7ull : 256;

	return n > 256 ? 256 : (uint32_t)n;
}

/* Without a bound, an estimate of what ptxas chooses; it chooses no more than a setmaxnreg.inc asks
 * for, as that may not lower the count (9.7.19.5). */
uint32_t exec_entry_regs(const struct exec_kernel *k, uint32_t threads)
{
	const struct ptx_func *f = k->func;
	uint32_t most = 1, n;

	if (k->info.nregs_known)
		return (k->info.nregs + 7) & ~7u;
	if (f->maxnreg)
		return f->maxnreg;
	for (unsigned i = 0; i < 3; i++) {
		if (f->reqntid[i])
			most *= f->reqntid[i];
		else if (f->maxntid[i])
			most *= f->maxntid[i];
	}
	n = ex_regs_within(most == 1 ? threads : most, f->minnctapersm ? f->minnctapersm : 1);
	n = n < k->least_inc ? n : k->least_inc;
	return n < 24 ? 24 : n;
}

unsigned exec_occupancy(const struct exec_device *d, const struct exec_kernel *k,
	uint32_t threads, uint32_t shared_dynamic)
{
	uint32_t warps = (threads + LANES - 1) / LANES;
	uint32_t shared = ((k->info.shared_static + shared_dynamic + 127) & ~127u)
		+ d->shared_reserved;
	uint32_t regs = ((k->info.nregs + 7) & ~7u) * LANES;
	unsigned n = d->max_ctas_per_sm;

	if (!warps || warps * LANES > 1024)
		return 0;
	if (d->max_threads_per_sm / (warps * LANES) < n)
		n = d->max_threads_per_sm / (warps * LANES);
	if (d->shared_per_sm / shared < n)
		n = d->shared_per_sm / shared;
	if (regs && d->regs_per_sm / QUARTERS / regs * QUARTERS / warps < n)
		n = d->regs_per_sm / QUARTERS / regs * QUARTERS / warps;
	return n;
}

void grid_fail(struct grid *g, uint64_t cluster, enum exec_status status, uint32_t site,
	const char *text)
{
	pthread_mutex_lock(&g->lock);
	/* One worker: the first failure ends the launch. Several: clusters before the one that
	 * failed run to their ends, as they would have before it. */
	if (cluster < g->bad_cluster && (g->spread || g->bad_cluster == UINT64_MAX)) {
		g->bad_cluster = cluster;
		g->status = status;
		g->site = site;
		memset(&g->err, 0, sizeof g->err);
		err_set(&g->err, status == EXEC_UNSUPPORTED ? CONSAN_ERR_UNSUPPORTED : CONSAN_ERR_LAUNCH, 0,
			0,
			"%s", text);
		atomic_store(&g->cut, g->spread ? cluster + 1 : 0);
	}
	pthread_mutex_unlock(&g->lock);
}

static bool bad(struct exec_result *r, const char *what, uint64_t is, uint64_t limit)
{
	r->status = EXEC_BAD_LAUNCH;
	return err_set(&r->err, CONSAN_ERR_LAUNCH, 0, 0, "%s is %llu, the limit is %llu", what,
		(unsigned long long)is, (unsigned long long)limit);
}

/* Checks what the driver would refuse. */
static bool check_launch(const struct exec_launch *l, const uint32_t cl[3], struct exec_result *r)
{
	const struct exec_device *d = l->device;
	const struct exec_kernel_info *k = &l->kernel->info;
	static const uint64_t grid_max[3] = { 0x7fffffff, 65535, 65535 };
	static const uint64_t block_max[3] = { 1024, 1024, 64 };
	uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	uint64_t ctas = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	uint64_t per = (uint64_t)cl[0] * cl[1] * cl[2];
	uint64_t shared = (uint64_t)k->shared_static + l->shared_dynamic;
	const uint32_t *req = k->func->reqntid;

	for (unsigned i = 0; i < 3; i++) {
		if (!l->grid[i] || l->grid[i] > grid_max[i])
			return bad(r, "a grid dimension", l->grid[i], grid_max[i]);
		if (!l->block[i] || l->block[i] > block_max[i])
			return bad(r, "a block dimension", l->block[i], block_max[i]);
		if (l->grid[i] % cl[i]) {
			r->status = EXEC_BAD_LAUNCH;
			return err_set(&r->err, CONSAN_ERR_LAUNCH, 0, 0,
				"the grid dimension %u is not a multiple of the cluster "
				"dimension %u",
				l->grid[i], cl[i]);
		}
		if (k->func->reqnctapercluster[0] && cl[i] != (k->func->reqnctapercluster[i]
			? k->func->reqnctapercluster[i] : 1)) {
			r->status = EXEC_BAD_LAUNCH;
			return err_set(&r->err, CONSAN_ERR_LAUNCH, 0, 0,
				"the cluster size differs from .reqnctapercluster");
		}
	}
	if (threads > 1024)
		return bad(r, "the number of threads per block", threads, 1024);
	if (threads > k->max_threads)
		return bad(r, "the number of threads per block", threads, k->max_threads);
	if (req[0] && (l->block[0] != req[0] || l->block[1] != (req[1] ? req[1] : 1) ||
		l->block[2] != (req[2] ? req[2] : 1)))
		return bad(r, "the block does not match .reqntid: its size", threads,
			(uint64_t)req[0] * (req[1] ? req[1] : 1) * (req[2] ? req[2] : 1));
	if (shared > d->shared_per_cta_optin)
		return bad(r, "shared memory per block", shared, d->shared_per_cta_optin);
	if (per > d->max_cluster)
		return bad(r, "the cluster size", per, d->max_cluster);
	if (l->cooperative) {
		uint64_t most = (uint64_t)exec_occupancy(d, l->kernel, (uint32_t)threads,
			l->shared_dynamic) * d->sm_count;

		if (ctas > most)
			return bad(r, "the grid of a cooperative launch", ctas, most);
	}
	return true;
}

bool exec_splits(const struct exec_launch *l, uint32_t cluster, uint32_t nclusters)
{
	uint64_t k = (cluster + l->seed) % nclusters;

	return l->fallback[0] && (k == 0 || (k > 1
		&& ((k + 1) * 0x9e3779b97f4a7c15ull ^ l->seed * 0xbf58476d1ce4e5b9ull) >> 40 & 1));
}

uint64_t grid_cluster(const struct grid *g, uint64_t k)
{
	return g->order && k < g->nclusters ? g->order[k] : k;
}

/* Whole clusters keep their ids. The split ones follow them, numbered as the grid's clusters of the
 * smaller size. */
static void order_clusters(struct grid *g)
{
	const struct launch_info *l = &g->info;
	const uint32_t whole = (uint32_t)g->nclusters;
	const uint32_t per = g->nctas / (l->fallback[0] * l->fallback[1] * l->fallback[2]);
	uint32_t n = 0;

	g->order = base_alloc((size_t)whole * per * sizeof *g->order);
	for (uint32_t k = 0; k < whole; k++)
		if (!exec_splits(g->l, k, whole))
			g->order[n++] = k;
	for (uint32_t s = whole; s < whole + whole * per; s++) {
		const struct cluster_info part = { .launch = l, .id = s };
		uint32_t id[3], k = 0;

		cluster_ctaid(&part, 0, id);
		for (unsigned d = 3; d-- > 0;)
			k = k * (l->grid[d] / l->cluster[d]) + id[d] / l->cluster[d];
		if (exec_splits(g->l, k, whole))
			g->order[n++] = s;
	}
	g->nclusters = n;
}

static void take_sample(struct grid *g)
{
	g->nclusters = g->l->nsample;
	g->order = base_alloc((g->nclusters + 1) * sizeof *g->order);
	memcpy(g->order, g->l->sample, g->nclusters * sizeof *g->order);
}

/* Counts the instructions of the kernel that were reached. */
static void count_sites(const struct grid *g, struct exec_result *r)
{
	const struct exec_kernel *k = g->k;
	uint32_t upto = 0;

	r->sites = r->sites_executed = 0;
	for (uint32_t pc = 0; pc < k->ncode; pc++) {
		for (unsigned i = 0; i < g->jobs; i++)
			if (g->worker[i].seen[pc] > upto)
				upto = g->worker[i].seen[pc];
		if (!k->insn_of[pc])
			continue;
		r->sites++;
		r->sites_executed += pc < upto;
	}
}

/* Also if a handler of a signal ends this thread: the grid is on its stack. */
static void join_workers(void *user)
{
	struct grid *g = user;

	for (unsigned i = 1; i < g->threads; i++)
		if (g->worker[i].started)
			pthread_join(g->worker[i].thread, NULL);
}

static void abandon(void *user)
{
	struct grid *g = user;

	atomic_store(&g->stopped, true);
	join_workers(g);
}

static void run(struct grid *g)
{
	/* The watched program may flush subnormals or use another rounding mode, and threads
	 * inherit that: kernels run under the default. */
	const unsigned csr = _mm_getcsr();

	_mm_setcsr(_MM_MASK_MASK);
	for (unsigned i = 0; i < g->jobs; i++) {
		struct worker *wk = &g->worker[i];

		wk->grid = g;
		wk->index = i;
		wk->seen = base_alloc(g->k->ncode * sizeof *wk->seen);
	}
	pthread_cleanup_push(abandon, g);
	worker_run(&g->worker[0]);
	pthread_cleanup_pop(false);
	join_workers(g);
	_mm_setcsr(csr);
}

static void result(struct grid *g, struct exec_result *r)
{
	for (unsigned i = 0; i < g->jobs; i++) {
		struct worker *wk = &g->worker[i];

		r->clusters += wk->clusters;
		r->ctas += wk->ctas;
		r->warp_ops += wk->ops;
		r->events += wk->events;
		r->reads_given_up |= wk->reads_given_up;
	}
	count_sites(g, r);
	r->status = g->status;
	r->err = g->err;
	r->site = g->site;
	r->bad_cluster = g->bad_cluster;
	r->cut = g->spread ? atomic_load(&g->cut) : UINT64_MAX;
	r->fault = g->fault;
	r->limited = atomic_load(&g->limited);
	r->waits = atomic_load(&g->waits);
	if (g->status != EXEC_OK)
		return;
	if (atomic_load(&g->timeout))
		r->status = EXEC_TIMEOUT;
	else if (atomic_load(&g->stopped) && r->clusters < g->nclusters)
		r->status = EXEC_STOPPED;
}

/* Are ops run by the step loop alone? In builds with sanitizers, in which the end of a function makes a
 * call of what would be a jump to the next op; and to test that it makes no difference. */
static bool one_by_one(void)
{
#ifdef EXEC_STEP
	return true;
#else
	return getenv("CONSAN_STEP") != NULL;
#endif
}

enum exec_status exec_run(const struct exec_launch *l, struct exec_result *r)
{
	const struct exec_kernel *k = l->kernel;
	uint32_t cl[3];
	struct grid g = { .l = l, .k = k, .device = k->module->device,
		.lock = PTHREAD_MUTEX_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER };
	unsigned per_sm;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	memset(r, 0, sizeof *r);
	r->bad_cluster = r->cut = UINT64_MAX;
	for (unsigned i = 0; i < 3; i++)
		cl[i] = l->cluster[i] ? l->cluster[i] : 1;
	if (!check_launch(l, cl, r))
		return r->status;

	g.nctas = cl[0] * cl[1] * cl[2];
	g.nthreads = l->block[0] * l->block[1] * l->block[2];
	g.nwarps = (g.nthreads + LANES - 1) / LANES;
	g.nclusters = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / g.nctas;
	g.shared_user = (k->dynamic_at > k->info.shared_static ? k->dynamic_at
		: k->info.shared_static) + l->shared_dynamic;
	g.shared_bytes = g.shared_user;
	if (k->needs_reserved)
		g.shared_bytes = ((g.shared_user + 15) & ~15u) + l->device->shared_reserved;
	g.nregs = exec_entry_regs(k, g.nthreads);
	g.info = (struct launch_info){ .kernel = k->func->name, .id = l->id,
		.shared_static = g.shared_user - l->shared_dynamic,
		.shared_dynamic = l->shared_dynamic,
		.regs_per_thread = g.nregs, .sm = l->device->sm, .device = g.device, .seed = l->seed,
		.symbols = k->symbol, .nsymbols = k->nsymbol };
	g.info.clustered = l->clustered || g.nctas > 1 || k->func->reqnctapercluster[0];
	memcpy(g.info.grid, l->grid, sizeof g.info.grid);
	memcpy(g.info.block, l->block, sizeof g.info.block);
	memcpy(g.info.cluster, cl, sizeof cl);
	memcpy(g.info.fallback, l->fallback, sizeof g.info.fallback);
	if (l->fallback[0])
		order_clusters(&g);
	else if (l->sample)
		take_sample(&g);
	per_sm = exec_occupancy(l->device, k, g.nthreads, l->shared_dynamic);
	if (!per_sm || k->fills_sm)
		per_sm = 1;
	g.max_resident = (uint64_t)per_sm * l->device->sm_count / g.nctas;
	if (!g.max_resident)
		g.max_resident = 1;
	g.coupled = (k->info.coupled || l->control) && !l->hardware;
	g.polls_shared = k->info.polls_shared && !l->hardware;
	g.runs = !one_by_one();
	if (l->control && l->hardware)
		base_die("a controlled schedule of a GPU");
	clc_open(&g);
	sched_order(&g);
	g.pauses = l->observer && l->observer->pause && (g.coupled || k->info.polls);
	g.jobs = g.coupled || g.pauses ? 1 : l->jobs ? l->jobs : cores > 0 ? (unsigned)cores : 1;
	g.threads = 1;
	if (g.jobs > g.nclusters)
		g.jobs = (unsigned)g.nclusters;
	if (g.jobs > g.max_resident)
		g.jobs = (unsigned)g.max_resident;
	g.cut = UINT64_MAX;
	g.bad_cluster = UINT64_MAX;
	g.deadline = l->timeout > 0 ? progress_seconds() + l->timeout : 0;
	g.worker = base_alloc(g.jobs * sizeof *g.worker);
	if (l->cooperative) {
		/* cooperative groups: the driver provides only a barrier word at +8 */
		g.workspace = base_alloc(4096);
		exec_mem_add(g.workspace, 4096, MEM_MODULE, false);
	}

	mem_launch_begin();
	run(&g);
	mem_launch_end();

	result(&g, r);
	for (unsigned i = 0; i < g.jobs; i++)
		worker_free(&g.worker[i]);
	free(g.worker);
	vec_free(&g.written);
	free(g.order);
	clc_close(&g);
	if (g.workspace) {
		exec_mem_remove(g.workspace);
		free(g.workspace);
	}
	pthread_mutex_destroy(&g.lock);
	return r->status;
}
