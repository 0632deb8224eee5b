/* jobs: assigns the chunks of a launch to its clusters, and the clusters to threads. */
#include "internal.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ---- */

static uint32_t at_least_one(uint32_t n)
{
	return n ? n : 1;
}

uint32_t decode_cluster_of(const struct launch_info *i, uint32_t cta, uint32_t *rank)
{
	uint32_t id = 0, in = 0, many = 1, size = 1;

	for (unsigned d = 0; d < 3; d++) {
		uint32_t x = cta % i->grid[d], s = at_least_one(i->cluster[d]);

		cta /= i->grid[d];
		id += x / s * many;
		in += x % s * size;
		many *= at_least_one(i->grid[d] / s);
		size *= s;
	}
	*rank = in;
	return id;
}

#define PREFETCH_CHUNKS 16u /* only their heads are read, which are 4 KiB apart */

/* The chunks of cluster k become chunk[first[k]] to chunk[first[k + 1] - 1]. Behind that
 * table, first[] has the rank of each CTA. */
static void sort_chunks(struct job *j)
{
	const struct launch_info *i = j->l->info;
	uint32_t nctas = i->grid[0] * i->grid[1] * i->grid[2], n = 0, rank;
	const struct record_chunk **all = base_alloc((j->l->chunks + 1) * sizeof *all);
	uint32_t *fill = base_alloc((j->nclusters + 1) * sizeof *fill);

	j->first = base_alloc((j->nclusters + 1 + (size_t)nctas) * sizeof *j->first);
	j->chunk = base_alloc((j->l->chunks + 1) * sizeof *j->chunk);
	for (uint32_t k = 0; k < nctas; k++) {
		decode_cluster_of(i, k, &rank);
		j->first[j->nclusters + 1 + k] = rank;
	}
	for (uint32_t k = 1; k <= j->l->chunks; k++) {
		const struct record_chunk *h = chunk_at(j->l, k);

		__builtin_prefetch(chunk_at(j->l,
			k + PREFETCH_CHUNKS < j->l->chunks ? k + PREFETCH_CHUNKS : k));
		if (h->cta >= nctas || h->warp_lane / 32 >= j->nwarps / j->nctas) {
			j->result.damaged++;
			continue;
		}
		all[n++] = h;
		j->first[decode_cluster_of(i, h->cta, &rank) + 1]++;
	}
	for (uint32_t k = 0; k < j->nclusters; k++)
		j->first[k + 1] += j->first[k];
	memcpy(fill, j->first, j->nclusters * sizeof *fill);
	for (uint32_t k = 0; k < n; k++)
		j->chunk[fill[decode_cluster_of(i, all[k]->cta, &rank)]++] = all[k];
	free(fill);
	free(all);
}

static uint64_t clock_of(const struct record_chunk *c)
{
	return (uint64_t)c->clock_hi << 32 | c->clock_lo;
}

static int by_stream(const void *a, const void *b)
{
	const struct record_chunk *x = *(const struct record_chunk *const *)a;
	const struct record_chunk *y = *(const struct record_chunk *const *)b;
	const uint64_t t = clock_of(x), u = clock_of(y);

	if (x->cta != y->cta)
		return x->cta < y->cta ? -1 : 1;
	if (x->warp_lane != y->warp_lane)
		return x->warp_lane < y->warp_lane ? -1 : 1;
	return (t > u) - (t < u);
}

static void add_result(struct decode_result *to, const struct decode_result *r)
{
	to->events += r->events;
	to->unfinished += r->unfinished;
	to->records += r->records;
	to->damaged += r->damaged;
	to->unknown_maps += r->unknown_maps;
	to->moving_maps += r->moving_maps;
	if (r->refused && (!to->refused || r->refused < to->refused))
		to->refused = r->refused;
	to->foreign += r->foreign;
	to->blind += r->blind;
}

/* Sorts a cluster's chunks by lane, those of a lane by clock. */
static void order_chunks(struct job *j, uint32_t id)
{
	uint32_t n = j->first[id + 1] - j->first[id];

	for (uint32_t k = 0; k < n; k++) /* the sort reads their heads, which are far apart */
		__builtin_prefetch(j->chunk[j->first[id] + k]);
	if (n)
		qsort(j->chunk + j->first[id], n, sizeof *j->chunk, by_stream);
}

/* ---- clusters ---- */

/* Records may be missing of a synchronization, without which correct code looks wrong: the
 * cluster is not checked. Nor is any other cluster if accesses to global memory are
 * recorded, as the synchronization may have ordered those of other clusters. */
static void find_blind(struct job *j)
{
	const struct launch_info *i = j->l->info;
	const struct record_head *head = j->l->pool;
	const uint32_t *missing = (const void *)((const char *)j->l->pool + RECORD_INCOMPLETE_AT);
	uint32_t nctas = i->grid[0] * i->grid[1] * i->grid[2], rank;

	if (!head->dropped && !j->l->incomplete)
		return;
	j->blind = base_alloc(j->nclusters + 1);
	for (uint32_t k = 0; k < nctas; k++) {
		uint32_t bit = k & ((1u << RECORD_INCOMPLETE_BITS) - 1);

		if (j->l->code->global || missing[bit / 32] >> bit % 32 & 1)
			j->blind[decode_cluster_of(i, k, &rank)] = 1;
	}
	for (uint32_t k = 0; k < j->nclusters; k++) {
		j->blind[k] |= j->l->incomplete && j->l->incomplete[k];
		j->result.blind += j->blind[k] && !(j->l->skip && j->l->skip[k]);
	}
}

/* One thread's share: it decodes one cluster after the other until none is left. */
static void decode_clusters(void *user)
{
	struct job *j = user;
	struct decode_result total = { 0 };
	struct dcluster c;
	uint32_t k;

	if (__atomic_load_n(&j->next, __ATOMIC_RELAXED) >= j->ntodo)
		return;
	merge_open(&c, j);
	merge_open_caches(&c);
	while ((k = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->ntodo) {
		c.result = (struct decode_result){ 0 };
		order_chunks(j, j->todo[k]);
		merge_begin(&c, j->todo[k]);
		merge_run(&c);
		merge_end(&c);
		add_result(&total, &c.result);
	}
	pthread_mutex_lock(&j->lock);
	add_result(&j->result, &total);
	pthread_mutex_unlock(&j->lock);
	merge_close_caches(&c);
	merge_close(&c);
}

/* ---- clusters that order each other ---- */

struct turn { uint64_t key; struct dcluster *c; };

static void sift_down(struct turn *heap, uint32_t n, uint32_t at)
{
	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		struct turn t = heap[at];

		child += child + 1 < n && heap[child + 1].key < heap[child].key;
		if (t.key <= heap[child].key)
			return;
		heap[at] = heap[child];
		heap[child] = t;
	}
}

/* The clusters of launches that are decoded at once, on this thread, in the order of their tickets. */
struct grids {
	struct turn *heap;
	uint32_t n;
};

/* A launch of them. */
struct grid {
	struct job *job;
	struct dcluster *all, caches;
	uint32_t left;             /* clusters that have not ended */
	bool begun;
};

static void begin_grid(struct grids *all, struct grid *g)
{
	struct job *j = g->job;

	g->begun = true;
	g->left = j->nclusters;
	g->all = base_alloc((j->nclusters + 1) * sizeof *g->all);
	g->caches = (struct dcluster){ .job = j };
	merge_open_caches(&g->caches);
	for (uint32_t k = 0; k < j->nclusters; k++) {
		merge_open(&g->all[k], j);
		g->all[k].path = g->caches.path;
		g->all[k].pieces = g->caches.pieces;
		g->all[k].book = g->caches.book;
		order_chunks(j, k);
		merge_begin(&g->all[k], k);
		/* a place at the top: its key is that of its first record */
		all->heap[all->n++] = all->heap[0];
		all->heap[0] = (struct turn){ 0, &g->all[k] };
	}
}

static void end_grid(struct grid *g)
{
	merge_close_caches(&g->caches);
	free(g->all);
}

static struct grid *grid_of(struct grid *g, const struct dcluster *c)
{
	while (g->job != c->job)
		g++;
	return g;
}

/* Makes a heap of it. */
static void heapify(struct grids *all)
{
	for (uint32_t k = all->n / 2; k-- > 0;)
		sift_down(all->heap, all->n, k);
}

/* Decodes until a launch has no cluster left; NULL: none is left at all. */
static struct grid *decode_grids(struct grids *all, struct grid *grid)
{
	struct turn *heap = all->heap;

	heapify(all);
	while (all->n) {
		uint64_t until = all->n < 2 ? NEVER : all->n < 3 || heap[1].key < heap[2].key
			? heap[1].key : heap[2].key;
		struct dcluster *c = heap->c;
		struct grid *g;

		while (merge_step(c, until, &heap->key))
			;
		if (heap->key != NEVER) {
			sift_down(heap, all->n, 0);
			continue;
		}
		merge_end(c);
		g = grid_of(grid, c);
		add_result(&g->job->result, &c->result);
		merge_close(c);
		heap[0] = heap[--all->n];
		sift_down(heap, all->n, 0);
		if (!--g->left)
			return g;
	}
	return NULL;
}

static void decode_grid(struct job *j)
{
	struct grids all = { .heap = base_alloc((j->nclusters + 1) * sizeof *all.heap) };
	struct grid g = { .job = j };

	begin_grid(&all, &g);
	decode_grids(&all, &g);
	end_grid(&g);
	free(all.heap);
}

/* ---- the launch ---- */

uint32_t decode_symbol(const void *pool, size_t k)
{
	return k < RECORD_SYMBOLS ? ((const uint32_t *)pool)[RECORD_SYMBOLS_AT / 4 + k] : 0;
}

uint64_t decode_params(const void *pool)
{
	return ((const uint64_t *)pool)[RECORD_PARAMS_AT / 8];
}

static void open_job(struct job *j, const struct decode_launch *l)
{
	const struct launch_info *i = l->info;
	uint32_t nctas = at_least_one(i->cluster[0]) * at_least_one(i->cluster[1]) *
		at_least_one(i->cluster[2]);
	uint32_t threads = i->block[0] * i->block[1] * i->block[2];

	*j = (struct job){ .l = l, .nctas = nctas, .nwarps = nctas * ((threads + 31) / 32),
		.nclusters = i->grid[0] * i->grid[1] * i->grid[2] / nctas,
		.info = l->sites->info, .batch = l->sites->batch,
		.seen = base_alloc(l->code->site.n + 1) };
	pthread_mutex_init(&j->lock, NULL);
	sort_chunks(j);
	maps_find(j);
	find_blind(j);
	j->todo = base_alloc((j->nclusters + 1) * sizeof *j->todo);
	for (uint32_t k = 0; k < j->nclusters; k++)
		if (!l->skip || !l->skip[k])
			j->todo[j->ntodo++] = k;
}

static void close_job(struct job *j)
{
	maps_free(j);
	free(j->heap.at);
	pthread_mutex_destroy(&j->lock);
	free(j->seen);
	free(j->todo);
	free(j->blind);
	free(j->first);
	free(j->chunk);
}

static void take_result(struct job *j, struct decode_result *r)
{
	*r = j->result;
	r->clusters = j->nclusters;
	r->ctas = (uint64_t)j->nclusters * j->nctas;
	r->sites_executed = sites_executed(j->l->code, j->seen);
}

void decode_run(const struct decode_launch *l, struct decode_result *r)
{
	struct job j;

	open_job(&j, l);
	if (j.ntodo && l->grid_order)
		decode_grid(&j);
	else if (j.ntodo)
		pool_run(decode_clusters, &j, l->jobs < j.ntodo ? l->jobs : j.ntodo);
	take_result(&j, r);
	close_job(&j);
}

/* Begins those of which all that is before them has ended. */
static void begin_grids(const struct decode_together *t, struct grids *all, struct grid *grid)
{
	for (size_t k = 0; k < t->n; k++) {
		bool waits = grid[k].begun;

		for (size_t i = 0; i < k && !waits; i++)
			waits = (!grid[i].begun || grid[i].left) && t->before(t->user, i, k);
		if (waits)
			continue;
		t->begin(t->user, k);
		begin_grid(all, &grid[k]);
	}
}

void decode_together(const struct decode_together *t)
{
	struct job *job = base_alloc(t->n * sizeof *job);
	struct grid *grid = base_alloc(t->n * sizeof *grid);
	struct grids all = { 0 };
	uint64_t clusters = 1;

	for (size_t k = 0; k < t->n; k++) {
		open_job(&job[k], t->launch[k]);
		grid[k].job = &job[k];
		clusters += job[k].nclusters;
	}
	all.heap = base_alloc(clusters * sizeof *all.heap);
	do
		begin_grids(t, &all, grid);
	while (decode_grids(&all, grid));
	for (size_t k = 0; k < t->n; k++) {
		end_grid(&grid[k]);
		take_result(&job[k], &t->result[k]);
		close_job(&job[k]);
	}
	free(all.heap);
	free(grid);
	free(job);
}
