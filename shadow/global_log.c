/* global_log: accesses to global memory that conflict with none so far, put down
 * as they come: a record for each, its bytes as bits, nothing by granule. What a
 * conflict is, is not known here: at the first access that might be one, all that
 * was put down in its zone goes to the granules (global.c), which judge.
 *
 * A zone of 64 KiB begins as a log. There every word was written at most once,
 * and nobody read it; or it was read only. An access that would end that, a
 * strong one, and one too many, make the zone's log over: each access in it is
 * touched granule by granule as if it came now, then the new one, with its judge.
 * Nothing is lost: of two accesses that conflict both have a bit of the same word,
 * so the second one, whoever it is, finds the first one's before it is put down
 * itself, under the zone's lock; and no two of those put down conflict with each
 * other, so that nobody need be asked about them.
 *
 * Reads of the same bytes in the same way, lane by lane, are one tract, however
 * many rows and zones it has: it keeps its readers, as a granule would. A tract is
 * settled when all its zones list it and none is over: then a reader joins under
 * the tract's lock alone. When a zone is over it marks its tracts, under the same
 * lock, before it takes their readers from them, so that a reader is either among
 * them or sees the mark and goes to the granules itself. */
#include "global_tract.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define ZONE_BYTES (1u << ZONE_SHIFT)
#define ZONE_WORDS (ZONE_BYTES / 4)
#define ZONES 16384u    /* places in their table */
#define FULL 2048u      /* of a zone's log */
#define PIECES 80u      /* of an access, without asking for memory */

struct listed {
	struct tract *t;
	uint32_t part;
};

struct zone {
	uint64_t number;
	struct zone *next;
	pthread_mutex_t lock;
	bool over;         /* atomic: the granules know it all */
	uint64_t *written; /* words, or NULL */
	uint64_t read[ZONE_BYTES / GRANULE / 64];
	VEC(struct listed) log;
};

struct global_log {
	struct zone *zone[ZONES]; /* chains, only ever grown in front: read without a lock */
	pthread_mutex_t lock;     /* to grow them */
	uint32_t nzones, nwritten;
	struct tract_shard shard[SHARDS];
};

/* ---- zones ---- */

static struct zone *zone_find(struct global_log *l, uint64_t number)
{
	struct zone *z = __atomic_load_n(&l->zone[number % ZONES], __ATOMIC_ACQUIRE);

	while (z && z->number != number)
		z = z->next;
	return z;
}

static struct zone *zone_of(struct global_log *l, uint64_t number)
{
	struct zone *z = zone_find(l, number);

	if (z)
		return z;
	pthread_mutex_lock(&l->lock);
	z = zone_find(l, number);
	if (!z) {
		z = base_alloc(sizeof *z);
		z->number = number;
		z->next = l->zone[number % ZONES];
		global_lock_open(&z->lock);
		__atomic_store_n(&l->zone[number % ZONES], z, __ATOMIC_RELEASE);
		l->nzones++;
	}
	pthread_mutex_unlock(&l->lock);
	return z;
}

static bool zone_over(const struct zone *z)
{
	return __atomic_load_n(&z->over, __ATOMIC_ACQUIRE);
}

/* Bits first to last of a map; of the i-th word of it. */
static uint64_t bits_of(uint32_t i, uint32_t first, uint32_t last)
{
	uint64_t m = UINT64_MAX;

	if (i == first / 64)
		m &= UINT64_MAX << first % 64;
	if (i == last / 64)
		m &= UINT64_MAX >> (63 - last % 64);
	return m;
}

static bool any_bit(const uint64_t *map, uint32_t first, uint32_t last, uint64_t pattern)
{
	for (uint32_t i = first / 64; i <= last / 64; i++)
		if (map[i] & bits_of(i, first, last) & pattern)
			return true;
	return false;
}

static void set_bits(uint64_t *map, uint32_t first, uint32_t last, uint64_t pattern)
{
	for (uint32_t i = first / 64; i <= last / 64; i++)
		map[i] |= bits_of(i, first, last) & pattern;
}

/* The words of every granule that the mask touches. */
static uint64_t words_of(uint16_t mask)
{
	uint64_t words = 0;

	if (!mask)
		return UINT64_MAX;
	for (unsigned w = 0; w < GRANULE / 4; w++)
		words |= (uint64_t)(mask >> 4 * w & 15 ? 1 : 0) << w;
	return words * 0x1111111111111111ull;
}

static bool meets(const struct zone *z, const struct global_span *p, uint32_t n, bool write)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = (uint32_t)p[i].addr % ZONE_BYTES;
		uint32_t last = first + (uint32_t)p[i].bytes - 1;

		if (z->written && any_bit(z->written, first / 4, last / 4, words_of(p[i].mask)))
			return true;
		if (write && any_bit(z->read, first / GRANULE, last / GRANULE, UINT64_MAX))
			return true;
	}
	return false;
}

static void mark(struct global_log *l, struct zone *z, const struct global_span *p, uint32_t n,
	bool write)
{
	if (write && !z->written) {
		z->written = base_alloc(ZONE_WORDS / 8);
		__atomic_fetch_add(&l->nwritten, 1, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = (uint32_t)p[i].addr % ZONE_BYTES;
		uint32_t last = first + (uint32_t)p[i].bytes - 1;

		if (write)
			set_bits(z->written, first / 4, last / 4, words_of(p[i].mask));
		else
			set_bits(z->read, first / GRANULE, last / GRANULE, UINT64_MAX);
	}
}

/* ---- an access in pieces, by zone ---- */

struct cut {
	struct global_span *at, few[PIECES];
	size_t n, cap;
};

static int by_zone(const void *a, const void *b)
{
	const uint64_t x = ((const struct global_span *)a)->addr >> ZONE_SHIFT;
	const uint64_t y = ((const struct global_span *)b)->addr >> ZONE_SHIFT;

	return x < y ? -1 : x > y;
}

static void cut_add(struct cut *c, uint64_t addr, uint64_t bytes, uint16_t mask)
{
	if (c->n == c->cap) {
		struct global_span *was = c->at;

		c->cap *= 2;
		c->at = base_resize(was == c->few ? NULL : was, c->cap * sizeof *c->at);
		if (was == c->few)
			memcpy(c->at, was, c->n * sizeof *was);
	}
	c->at[c->n++] = (struct global_span){ .addr = addr, .bytes = bytes, .mask = mask };
}

static void cut_open(struct cut *c)
{
	c->at = c->few;
	c->cap = PIECES;
	c->n = 0;
}

static void cut_close(struct cut *c)
{
	if (c->at != c->few)
		free(c->at);
}

static void cut_spans(struct cut *c, const struct global_span *spans, size_t n)
{
	uint64_t zone = 0;
	bool rising = true;

	cut_open(c);
	for (size_t i = 0; i < n; i++) {
		uint64_t addr = spans[i].addr, end = addr + spans[i].bytes, next;

		rising &= zone <= addr >> ZONE_SHIFT;
		zone = (end - 1) >> ZONE_SHIFT;
		for (; addr < end; addr = next) {
			next = (addr | (ZONE_BYTES - 1)) + 1;
			next = next < end ? next : end;
			cut_add(c, addr, next - addr, spans[i].mask);
		}
	}
	if (!rising)
		qsort(c->at, c->n, sizeof *c->at, by_zone);
}

static struct tract_shard *shard_of(struct global_log *l, uint64_t key)
{
	return &l->shard[key % SHARDS];
}

/* ---- a zone's log is over ---- */

static enum global_verdict nobody_asks(struct global_ask *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	(void)a, (void)old, (void)now, (void)addr, (void)bytes, (void)lanewise;
	return GLOBAL_APART;
}

/* Under the zone's lock. */
static void end_log(struct global_shadow *g, struct zone *z, bool synchronised)
{
	struct global_ask ask = { .lonely = true, .synchronised = synchronised, .judge = nobody_asks };

	for (size_t i = 0; i < z->log.n; i++) {
		struct tract *t = z->log.at[i].t;
		const struct part *p = &t->part[z->log.at[i].part];
		struct tract_shard *s = shard_of(g->log, t->key);
		struct reader reader[MANY];
		uint32_t n;

		if (t->r.flags & GR_WRITE) {
			global_granules(g, &ask, &t->r, t->lane_addr, &t->piece[p->first], p->n);
			continue;
		}
		pthread_mutex_lock(&s->lock);
		t->over = true;
		n = t->nreaders;
		memcpy(reader, t->reader, n * sizeof *reader);
		pthread_mutex_unlock(&s->lock);
		for (uint32_t k = 0; k < n; k++) {
			struct global_record r = tract_record(t, &reader[k]);

			global_granules(g, &ask, &r, t->lane_addr, &t->piece[p->first], p->n);
		}
	}
	vec_free(&z->log);
	__atomic_store_n(&z->over, true, __ATOMIC_RELEASE);
}

/* Under the zone's lock: false: its log is over. */
static bool put_down(struct global_shadow *g, struct tract *t, uint32_t part, bool synchronised)
{
	const bool write = t->r.flags & GR_WRITE;
	struct part *p = &t->part[part];
	struct zone *z = p->zone;

	if (z->over || p->listed)
		return !z->over;
	if (z->log.n == FULL || meets(z, &t->piece[p->first], p->n, write)) {
		end_log(g, z, synchronised);
		return false;
	}
	mark(g->log, z, &t->piece[p->first], p->n, write);
	vec_push(&z->log, ((struct listed){ t, part }));
	p->listed = true;
	__atomic_fetch_add(&t->nlisted, 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- accesses ---- */

static void put_down_tract(struct global_shadow *g, struct global_ask *a, struct tract *t,
	const struct global_record *now, const uint64_t *lane_addr)
{
	struct cut rest;

	cut_open(&rest);
	for (uint32_t i = 0; i < t->nparts; i++) {
		struct part *p = &t->part[i];
		bool done = false;

		if (!zone_over(p->zone)) {
			pthread_mutex_lock(&p->zone->lock);
			done = put_down(g, t, i, a->synchronised);
			pthread_mutex_unlock(&p->zone->lock);
		}
		for (uint32_t k = 0; k < p->n && !done; k++)
			cut_add(&rest, t->piece[p->first + k].addr, t->piece[p->first + k].bytes,
				t->piece[p->first + k].mask);
	}
	if (rest.n)
		global_granules(g, a, now, lane_addr, rest.at, rest.n);
	cut_close(&rest);
}

static bool plain_read(const struct global_record *r)
{
	return !(r->flags & (GR_WRITE | GR_STRONG));
}

bool global_shadow_again(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr)
{
	uint64_t key = tract_key(now, lane_addr, NULL, 0);
	struct tract_shard *s = shard_of(g->log, key);
	struct tract *t;
	bool is;

	pthread_mutex_lock(&s->lock);
	t = tract_find(s, key, now, lane_addr, NULL, 0);
	is = t && tract_settled(t);
	if (is)
		tract_join(s, t, a, now);
	pthread_mutex_unlock(&s->lock);
	return is;
}

/* All its zones are over: nothing is to be put down. Strong accesses end them. */
static bool all_over(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const struct cut *c)
{
	bool over = true;

	for (size_t i = 0; i < c->n && over; i += zone_run(c->at, c->n, i)) {
		struct zone *z = zone_of(g->log, c->at[i].addr >> ZONE_SHIFT);

		if (!zone_over(z) && now->flags & GR_STRONG) {
			pthread_mutex_lock(&z->lock);
			if (!z->over)
				end_log(g, z, a->synchronised);
			pthread_mutex_unlock(&z->lock);
		}
		over = zone_over(z);
	}
	return over;
}

void global_shadow_touch(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans)
{
	struct tract_shard *s;
	struct tract *t;
	struct cut c;
	uint64_t key;
	bool is = false;

	cut_spans(&c, spans, nspans);
	if (all_over(g, a, now, &c)) {
		global_granules(g, a, now, lane_addr, spans, nspans);
		cut_close(&c);
		return;
	}
	key = tract_key(now, lane_addr, c.at, c.n);
	s = shard_of(g->log, key);
	pthread_mutex_lock(&s->lock);
	t = plain_read(now) ? tract_find(s, key, now, lane_addr, c.at, c.n) : NULL;
	if (!t) {
		t = tract_new(s, key, now, lane_addr, c.at, c.n);
		for (uint32_t i = 0; i < t->nparts; i++)
			t->part[i].zone = zone_of(g->log, t->piece[t->part[i].first].addr >> ZONE_SHIFT);
		if (plain_read(now))
			tract_insert(s, t);
	}
	if (plain_read(now)) {
		tract_join(s, t, a, now);
		is = tract_settled(t);
	}
	pthread_mutex_unlock(&s->lock);
	cut_close(&c);
	if (!is)
		put_down_tract(g, a, t, now, lane_addr);
}

void global_log_end(struct global_shadow *g, uint64_t addr, uint64_t bytes)
{
	for (uint64_t n = addr >> ZONE_SHIFT; bytes && n <= (addr + bytes - 1) >> ZONE_SHIFT; n++) {
		struct zone *z = zone_find(g->log, n);

		if (!z)
			continue;
		pthread_mutex_lock(&z->lock);
		if (!z->over)
			end_log(g, z, true); /* nothing is left out */
		pthread_mutex_unlock(&z->lock);
	}
}

/* ---- lifetimes ---- */

struct global_log *global_log_open(void)
{
	struct global_log *l = base_alloc(sizeof *l);

	global_lock_open(&l->lock);
	for (unsigned i = 0; i < SHARDS; i++)
		global_lock_open(&l->shard[i].lock);
	return l;
}

void global_log_close(struct global_log *l)
{
	for (uint32_t i = 0; l->nzones && i < ZONES; i++)
		for (struct zone *z = l->zone[i], *next; z; z = next) {
			next = z->next;
			vec_free(&z->log);
			free(z->written);
			pthread_mutex_destroy(&z->lock);
			free(z);
		}
	for (unsigned i = 0; i < SHARDS; i++) {
		arena_free(&l->shard[i].arena);
		free(l->shard[i].at);
		pthread_mutex_destroy(&l->shard[i].lock);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

size_t global_log_footprint(const struct global_log *l)
{
	size_t bytes = sizeof *l + l->nzones * sizeof(struct zone) + l->nwritten * (ZONE_WORDS / 8);

	for (unsigned i = 0; i < SHARDS; i++)
		bytes += l->shard[i].bytes;
	return bytes;
}

uint64_t global_log_forgot(const struct global_log *l)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		n += l->shard[i].forgot;
	return n;
}
