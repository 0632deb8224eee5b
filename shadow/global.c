/* global: the shadow of global memory, see global.h: pages, regions and their locks. Finds
 * overlapping accesses; the classify callback decides what they mean. global_step.c computes the
 * new state of a granule; global_log.c decides which accesses reach the granules at all. */
#include "global_parts.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* ---- pages ---- */

static void fill(uint32_t *id, uint32_t n, uint32_t state)
{
	for (uint32_t i = 0; i < n; i++)
		id[i] = state;
}

static void touch_granules(struct visit *v, struct page *p, uint64_t addr, uint32_t first,
	uint32_t count, uint16_t bytes)
{
	uint32_t end = first + count;
	uint64_t base = addr & ~(uint64_t)(PAGE_BYTES - 1);

	for (uint32_t i = first, k; i < end; i = k) {
		uint32_t was = p->id[i], now;
		bool saturated = global_is_saturated(v->s, was);

		for (k = i + 1; k < end && p->id[k] == was && !v->lanewise; k++)
			;
		now = global_step(v, was, base + i * GRANULE, bytes, k - i);
		if (now == UINT32_MAX) { /* the lanes matter: granule by granule */
			k = i + 1;
			now = global_step(v, was, base + i * GRANULE, bytes, 1);
		}
		if (now != was)
			fill(p->id + i, k - i, now);
		global_hint_all(v, base + i * GRANULE, k - i, now, saturated);
	}
}

/* [addr, end) within one page */
static void touch_page(struct visit *v, uint64_t addr, uint64_t end, uint16_t mask)
{
	struct page *p = &v->region->page[addr / PAGE_BYTES % PAGES];
	uint32_t from = (uint32_t)(addr % PAGE_BYTES), to = from + (uint32_t)(end - addr);
	uint32_t first = from / GRANULE, last = (to - 1) / GRANULE;
	uint16_t head, tail;

	v->s->visits += last - first + 1;
	if (!p->id && to - from == PAGE_BYTES) {
		bool saturated = global_is_saturated(v->s, p->all);
		uint32_t now = global_step(v, p->all, addr, mask, PAGE_GRANULES);

		if (now != UINT32_MAX) {
			p->all = now;
			global_hint_all(v, addr, PAGE_GRANULES, now, saturated);
			return;
		}
	}
	if (!p->id) {
		p->id = base_resize(NULL, PAGE_GRANULES * sizeof *p->id);
		v->s->bytes += PAGE_GRANULES * sizeof *p->id;
		fill(p->id, PAGE_GRANULES, p->all);
	}
	head = (uint16_t)(0xffffu << (from % GRANULE));
	tail = (uint16_t)(0xffffu >> (GRANULE - 1 - (to - 1) % GRANULE));
	if (first == last) {
		touch_granules(v, p, addr, first, 1, head & tail & mask);
		return;
	}
	if (mask & ~head)
		touch_granules(v, p, addr, first++, 1, head & mask);
	if (mask & ~tail) {
		touch_granules(v, p, addr, first, last - first, mask);
		touch_granules(v, p, addr, last, 1, tail & mask);
		return;
	}
	touch_granules(v, p, addr, first, last - first + 1, mask);
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
	v->record = global_record_new(v->s, v->from, v->lane_addr, number);
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
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans)
{
	struct visit v = { .accessor = a, .from = now, .lane_addr = lane_addr };

	for (size_t i = 0; i < nspans; i++) {
		uint64_t addr = spans[i].addr, end = addr + spans[i].bytes, next;

		for (; addr < end; addr = next) {
			uint64_t number = addr >> REGION_SHIFT;

			next = (addr | (PAGE_BYTES - 1)) + 1;
			if (!a->synchronised && global_shadow_saturated(g, now, addr,
				(next < end ? next : end) - addr))
				continue;
			if (!v.region || v.region->number != number) {
				leave_region(&v);
				enter_region(g, &v, number);
			}
			touch_page(&v, addr, next < end ? next : end,
				spans[i].mask ? spans[i].mask : 0xffff);
		}
	}
	leave_region(&v);
}

void global_shadow_forget(struct global_shadow *g, uint64_t addr, uint64_t bytes)
{
	static const struct saturated none[NREADS];
	uint64_t end = addr + bytes;

	global_log_flush(g, addr, bytes);
	for (; addr < end; addr += GRANULE) {
		struct visit v = { .s = shard_of(g, addr >> REGION_SHIFT) };
		struct page *p;

		pthread_mutex_lock(&v.s->lock);
		v.region = region_find(v.s, addr >> REGION_SHIFT);
		p = v.region ? &v.region->page[addr / PAGE_BYTES % PAGES] : NULL;
		if (p && !p->id && p->all) {
			p->id = base_resize(NULL, PAGE_GRANULES * sizeof *p->id);
			v.s->bytes += PAGE_GRANULES * sizeof *p->id;
			fill(p->id, PAGE_GRANULES, p->all);
		}
		if (p && p->id) {
			uint32_t *id = &p->id[addr % PAGE_BYTES / GRANULE];

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
	struct global_shadow *g = base_alloc(sizeof *g);

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
			for (unsigned k = 0; k < PAGES; k++)
				free(r->page[k].id);
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
		if (record_at(s, i)->row == GR_LIST)
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
	free(g);
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
