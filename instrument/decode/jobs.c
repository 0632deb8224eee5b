/* jobs: which chunks are whose, and which thread decodes which clusters of a launch. */
#include "merge.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- chunks ---- */

static uint32_t at_least(uint32_t n)
{
	return n ? n : 1;
}

uint32_t decode_cluster_of(const struct launch_info *i, uint32_t cta, uint32_t *rank)
{
	uint32_t id = 0, in = 0, many = 1, size = 1;

	for (unsigned d = 0; d < 3; d++) {
		uint32_t x = cta % i->grid[d], s = at_least(i->cluster[d]);

		cta /= i->grid[d];
		id += x / s * many;
		in += x % s * size;
		many *= at_least(i->grid[d] / s);
		size *= s;
	}
	*rank = in;
	return id;
}

#define FAR 16u /* chunks, of which the heads alone are looked at, are sent for so far ahead */

/* chunk[first[k] ..] are cluster k's; behind that table the rank of each CTA. */
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

		__builtin_prefetch(chunk_at(j->l, k + FAR < j->l->chunks ? k + FAR : k));
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

static int by_stream(const void *a, const void *b)
{
	const struct record_chunk *x = *(const struct record_chunk *const *)a;
	const struct record_chunk *y = *(const struct record_chunk *const *)b;
	uint64_t t = (uint64_t)x->clock_hi << 32 | x->clock_lo, u = (uint64_t)y->clock_hi << 32 | y->clock_lo;

	if (x->cta != y->cta)
		return x->cta < y->cta ? -1 : 1;
	if (x->warp_lane != y->warp_lane)
		return x->warp_lane < y->warp_lane ? -1 : 1;
	return (t > u) - (t < u);
}

static void add_result(struct decode_result *to, const struct decode_result *r)
{
	to->events += r->events;
	to->records += r->records;
	to->damaged += r->damaged;
	to->unknown_maps += r->unknown_maps;
	to->moving_maps += r->moving_maps;
	if (r->refused && (!to->refused || r->refused < to->refused))
		to->refused = r->refused;
	to->foreign += r->foreign;
	to->blind += r->blind;
}

/* Of a stream, its chunks by clock. */
static void order_chunks(struct job *j, uint32_t id)
{
	uint32_t n = j->first[id + 1] - j->first[id];

	for (uint32_t k = 0; k < n; k++) /* they are far apart, and sorted by their heads */
		__builtin_prefetch(j->chunk[j->first[id] + k]);
	if (n)
		qsort(j->chunk + j->first[id], n, sizeof *j->chunk, by_stream);
}

/* ---- clusters ---- */

/* A cluster that lacks records would look as if it had done wrong, and so would those
 * that it orders through global memory. */
static void find_blind(struct job *j)
{
	const struct launch_info *i = j->l->info;
	const struct record_head *head = j->l->pool;
	const uint32_t *missing = (const void *)((const char *)j->l->pool + RECORD_SHORT_AT);
	uint32_t nctas = i->grid[0] * i->grid[1] * i->grid[2], rank;

	if (!head->dropped && !j->l->lacks)
		return;
	j->blind = base_alloc(j->nclusters + 1);
	for (uint32_t k = 0; k < nctas; k++) {
		uint32_t bit = k & ((1u << RECORD_SHORT_BITS) - 1);

		if (j->l->code->global || missing[bit / 32] >> bit % 32 & 1)
			j->blind[decode_cluster_of(i, k, &rank)] = 1;
	}
	for (uint32_t k = 0; k < j->nclusters; k++) {
		j->blind[k] |= j->l->lacks && j->l->lacks[k];
		j->result.blind += j->blind[k] && !(j->l->skip && j->l->skip[k]);
	}
}

static void worker(void *user)
{
	struct job *j = user;
	struct decode_result total = { 0 };
	struct dcluster c;
	uint32_t work;

	merge_open(&c, j);
	merge_open_caches(&c);
	while ((work = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < j->ntodo * j->each) {
		c.only_registers = work % j->each;
		c.registers = j->l->func->note_of && (c.only_registers || !j->l->apart);
		c.result = (struct decode_result){ 0 };
		if (j->each == 1)
			order_chunks(j, j->todo[work / j->each]);
		merge_begin(&c, j->todo[work / j->each]);
		merge_run(&c);
		merge_end(&c);
		if (c.only_registers) /* the rest of what it counts the other one does, too */
			total.events += c.result.events;
		else
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

static void sink_down(struct turn *heap, uint32_t n, uint32_t at)
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

/* All clusters at once, in the order of tickets. */
static void run_grid(struct job *j)
{
	struct dcluster *all = base_alloc((j->nclusters + 1) * sizeof *all);
	struct turn *heap = base_alloc((j->nclusters + 1) * sizeof *heap);
	uint32_t n = j->nclusters;
	struct dcluster caches = { .job = j };

	merge_open_caches(&caches);
	for (uint32_t k = 0; k < n; k++) {
		merge_open(&all[k], j);
		all[k].way = caches.way;
		all[k].pieces = caches.pieces;
		order_chunks(j, k);
		merge_begin(&all[k], k);
		heap[k].c = &all[k];
	}
	while (n) {
		uint64_t until = n < 2 ? NEVER : n < 3 || heap[1].key < heap[2].key
			? heap[1].key : heap[2].key;

		while (merge_step(heap->c, until, &heap->key))
			;
		if (heap->key == NEVER) {
			merge_end(heap->c);
			add_result(&j->result, &heap->c->result);
			merge_close(heap->c);
			heap[0] = heap[--n];
		}
		sink_down(heap, n, 0);
	}
	merge_close_caches(&caches);
	free(all);
	free(heap);
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

/* Several threads take clusters by turns. */
static void hand_out(struct job *j, struct crew_hands *h, unsigned most)
{
	for (uint32_t k = 0; j->each > 1 && k < j->ntodo; k++)
		order_chunks(j, j->todo[k]); /* before several threads read them */
	crew_give_all(h, worker, j, most);
}

/* What nobody has taken yet is done here. */
static void finish(struct job *j, struct crew_hands *h)
{
	if (__atomic_load_n(&j->next, __ATOMIC_RELAXED) < j->ntodo * j->each)
		worker(j);
	crew_wait_all(h);
}

static void open_job(struct job *j, const struct decode_launch *l, uint8_t *seen)
{
	const struct launch_info *i = l->info;
	uint32_t nctas = at_least(i->cluster[0]) * at_least(i->cluster[1]) * at_least(i->cluster[2]);
	uint32_t threads = i->block[0] * i->block[1] * i->block[2];

	*j = (struct job){ .l = l, .nctas = nctas, .nwarps = nctas * ((threads + 31) / 32),
		.nclusters = i->grid[0] * i->grid[1] * i->grid[2] / nctas, .each = 1 + l->apart,
		.info = l->sites->info, .batch = l->sites->batch, .seen = seen };
	pthread_mutex_init(&j->lock, NULL);
	sort_chunks(j);
	maps_find(j);
	find_blind(j);
	j->todo = base_alloc((j->nclusters + 1) * sizeof *j->todo);
}

static void close_job(struct job *j)
{
	maps_drop(j);
	pthread_mutex_destroy(&j->lock);
	free(j->todo);
	free(j->blind);
	free(j->first);
	free(j->chunk);
}

static void run_all(const struct decode_launch *l, struct decode_result *r, uint32_t from, uint8_t *seen)
{
	struct crew_hands h = { .n = 0 };
	struct job j;

	open_job(&j, l, seen);
	for (uint32_t k = from; k < j.nclusters; k++)
		if (!l->skip || !l->skip[k])
			j.todo[j.ntodo++] = k;
	if (j.ntodo && l->grid_order) {
		run_grid(&j);
	} else if (j.ntodo) {
		uint32_t work = j.ntodo * j.each, jobs = l->jobs < 1 ? 1 : l->jobs;

		hand_out(&j, &h, (jobs < work ? jobs : work) - 1);
		finish(&j, &h);
	}
	add_result(r, &j.result);
	close_job(&j);
}

static void run_first(const struct decode_launch *l, struct decode_result *r, uint8_t *seen)
{
	struct decode_launch with = *l;
	struct crew_hands h;
	struct job j;

	open_job(&j, l, seen);
	j.ntodo = 1;
	hand_out(&j, &h, j.each);
	with.rest = NULL;
	if (l->rest(l->user, &with))
		run_all(&with, r, 1, seen);
	else
		r->lost = true;
	finish(&j, &h);
	add_result(r, &j.result);
	close_job(&j);
}

void decode_run(const struct decode_launch *l, struct decode_result *r)
{
	const struct launch_info *i = l->info;
	uint8_t *seen = base_alloc(l->code->site.n + 1);

	*r = (struct decode_result){ 0 };
	if (l->rest)
		run_first(l, r, seen);
	else
		run_all(l, r, 0, seen);
	r->ctas = (uint64_t)i->grid[0] * i->grid[1] * i->grid[2];
	r->clusters = r->ctas / (at_least(i->cluster[0]) * at_least(i->cluster[1]) * at_least(i->cluster[2]));
	r->sites_executed = sites_executed(l->code, seen);
	free(seen);
}
