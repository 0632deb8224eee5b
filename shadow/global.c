/* global: the shadow of global memory, see global.h: regions and their locks. Finds
 * overlapping accesses; the classify callback decides what they mean. global_step.c computes the
 * new state of a granule; global_log.c decides which accesses reach the granules at all. */
#include "global_parts.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- granules of a region ---- */

static void fill(uint32_t *id, uint32_t n, uint32_t state)
{
	for (uint32_t i = 0; i < n; i++)
		id[i] = state;
}

/* Gives each granule a state of its own. */
static void split(struct shard *s, struct region *r)
{
	if (r->id)
		return;
	r->id = base_resize(NULL, REGION_GRANULES * sizeof *r->id);
	s->bytes += REGION_GRANULES * sizeof *r->id;
	fill(r->id, REGION_GRANULES, r->all);
}

/* `count` granules of the region from addr on; `bytes` of each */
static void touch_granules(struct visit *v, uint64_t addr, uint32_t count, uint16_t bytes)
{
	uint32_t *id = v->region->id, first = addr % REGION_BYTES / GRANULE, end = first + count;
	uint64_t base = addr & ~(uint64_t)(REGION_BYTES - 1);

	for (uint32_t i = first, k; i < end; i = k) {
		uint32_t was = id[i], now;
		bool saturated = global_is_saturated(v->s, was);

		for (k = i + 1; k < end && id[k] == was && !v->lanewise; k++)
			;
		now = global_step(v, was, base + i * GRANULE, bytes, k - i);
		if (now == UINT32_MAX) { /* the lanes matter: granule by granule */
			k = i + 1;
			now = global_step(v, was, base + i * GRANULE, bytes, 1);
		}
		if (now != was)
			fill(id + i, k - i, now);
		global_hint_all(v, base + i * GRANULE, k - i, now, saturated);
	}
}

static void touch_region(struct visit *v, uint64_t addr, uint32_t count, uint16_t bytes)
{
	struct region *r = v->region;

	v->s->visits += count;
	if (!r->id && count == REGION_GRANULES) {
		bool saturated = global_is_saturated(v->s, r->all);
		uint32_t now = global_step(v, r->all, addr, bytes, REGION_GRANULES);

		if (now != UINT32_MAX) {
			r->all = now;
			global_hint_all(v, addr, REGION_GRANULES, now, saturated);
			return;
		}
	}
	split(v->s, r);
	touch_granules(v, addr, count, bytes);
}

/* ---- regions ---- */

static uint32_t hash_region(uint64_t number)
{
	return (uint32_t)((number * 0x9e3779b97f4a7c15ull) >> 32);
}

static struct shard *shard_of(struct global_shadow *s, uint64_t number)
{
	return &s->shard[hash_region(number) % SHARDS];
}

static struct region *region_find(struct shard *s, uint64_t number)
{
	struct region *r = s->cap_regions
		? s->region[hash_region(number) / SHARDS & (s->cap_regions - 1)] : NULL;

	while (r && r->number != number)
		r = r->next;
	return r;
}

static struct region *region_of(struct shard *s, uint64_t number)
{
	struct region *r = region_find(s, number), **at;

	if (r)
		return r;
	if (s->nregions >= s->cap_regions) {
		uint32_t cap = s->cap_regions ? 2 * s->cap_regions : 16;
		struct region **to = base_alloc(cap * sizeof(struct region *));

		for (uint32_t i = 0; i < s->cap_regions; i++)
			for (struct region *x = s->region[i], *next; x; x = next) {
				next = x->next;
				at = &to[hash_region(x->number) / SHARDS & (cap - 1)];
				x->next = *at;
				*at = x;
			}
		free(s->region);
		s->region = to;
		s->cap_regions = cap;
	}
	r = base_alloc(sizeof *r);
	s->bytes += sizeof *r;
	r->number = number;
	at = &s->region[hash_region(number) / SHARDS & (s->cap_regions - 1)];
	r->next = *at;
	*at = r;
	s->nregions++;
	return r;
}

static void enter_region(struct global_shadow *g, struct visit *v, uint64_t number)
{
	v->g = g;
	v->s = shard_of(g, number);
	pthread_mutex_lock(&v->s->lock);
	v->region = region_of(v->s, number);
	v->record = global_record_new(v->s, v->from, number);
	v->now = record_at(v->s, v->record);
	v->merged = 0;
	v->nmemo = 0;
	v->last = 0;
	v->lanewise = false;
}

static void leave_region(struct visit *v)
{
	if (!v->region)
		return;
	global_record_put(v->s, v->record);
	if (v->merged)
		global_record_put(v->s, v->merged);
	pthread_mutex_unlock(&v->s->lock);
	v->region = NULL;
}

void global_granules(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_run *runs, size_t nruns)
{
	struct visit v = { .accessor = a, .from = now };

	for (size_t i = 0; i < nruns; i++) {
		uint64_t addr = runs[i].addr;
		uint32_t left = runs[i].granules, n;

		for (; left; addr += (uint64_t)n * GRANULE, left -= n) {
			uint64_t number = addr >> REGION_SHIFT;

			n = REGION_GRANULES - (uint32_t)(addr % REGION_BYTES / GRANULE);
			n = n < left ? n : left;
			if (!a->synchronised && global_run_saturated(g, now, addr, n, runs[i].mask))
				continue;
			if (!v.region || v.region->number != number) {
				leave_region(&v);
				enter_region(g, &v, number);
			}
			touch_region(&v, addr, n, runs[i].mask);
		}
	}
	leave_region(&v);
}

void global_shadow_forget(struct global_shadow *g, uint64_t addr, uint64_t bytes)
{
	static const struct saturated none[NREADS];
	uint64_t end = addr + bytes;

	global_log_flush(g, addr, bytes);
	for (uint64_t next; addr < end; addr = next) {
		struct visit v = { .s = shard_of(g, addr >> REGION_SHIFT) };

		pthread_mutex_lock(&v.s->lock);
		v.region = region_find(v.s, addr >> REGION_SHIFT);
		next = v.region ? addr + GRANULE : (addr | (REGION_BYTES - 1)) + 1;
		if (v.region && !v.region->id && v.region->all)
			split(v.s, v.region);
		if (v.region && v.region->id) {
			uint32_t *id = &v.region->id[addr % REGION_BYTES / GRANULE];

			global_state_put(&v, *id, 1);
			*id = 0;
			global_hint(g, none, addr);
		}
		pthread_mutex_unlock(&v.s->lock);
	}
}

/* ---- lifetimes ---- */

void global_lock_open(pthread_mutex_t *m)
{
	pthread_mutexattr_t spins; /* a critical section is shorter than a sleep */

	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(m, &spins);
	pthread_mutexattr_destroy(&spins);
}

struct global_shadow *global_shadow_open(void)
{
	struct global_shadow *g = base_alloc_pages(sizeof *g);

	for (unsigned i = 0; i < SHARDS; i++)
		global_lock_open(&g->shard[i].lock);
	g->log = global_log_open();
	return g;
}

static void shard_close(struct shard *s)
{
	for (uint32_t i = 0; i < s->cap_regions; i++)
		for (struct region *r = s->region[i], *next; r; r = next) {
			next = r->next;
			free(r->id);
			free(r);
		}
	for (uint32_t i = 1; i < s->nstates; i++)
		free(s->state[i].at);
	for (unsigned i = 0; i < ARRAY_SIZE(s->spare); i++)
		for (struct entry *e = s->spare[i], *next; e; e = next) {
			memcpy(&next, e, sizeof(void *));
			free(e);
		}
	for (uint32_t i = 1; i < s->nrecords; i++)
		if (record_at(s, i)->row == GR_OFFSETS)
			free(record_at(s, i)->offset);
	for (uint32_t i = 0; i < s->nrecords; i += CHUNK)
		free(s->record[i / CHUNK]);
	free(s->record);
	free(s->state);
	free(s->region);
	free(s->scratch);
	pthread_mutex_destroy(&s->lock);
}

void global_shadow_close(struct global_shadow *g)
{
	if (!g)
		return;
	for (unsigned i = 0; i < SHARDS; i++)
		shard_close(&g->shard[i]);
	global_log_close(g->log);
	base_free_pages(g, sizeof *g);
}

size_t global_shadow_footprint(const struct global_shadow *g)
{
	size_t bytes = sizeof *g + global_log_footprint(g->log);

	for (unsigned i = 0; i < SHARDS; i++)
		bytes += g->shard[i].bytes;
	return bytes;
}

uint64_t global_shadow_visits(const struct global_shadow *g)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		n += g->shard[i].visits;
	return n;
}

uint64_t global_shadow_dropped(const struct global_shadow *g)
{
	uint64_t n = global_log_dropped(g->log);

	for (unsigned i = 0; i < SHARDS; i++)
		n += g->shard[i].dropped;
	return n;
}
