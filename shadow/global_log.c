/* global_log: logs accesses to global memory that conflict with none so far: one record for each,
 * its bytes as bits of a map, nothing by granule. At the first access that might conflict, the log
 * of its zone is flushed: its accesses are applied to the granules (global.c), where they are
 * classified.
 *
 * A zone of 64 KiB begins as a log. While it is one, each of its words is either written at most
 * once and not read, or only read. An access that would violate this, a strong access, and an
 * access beyond the capacity flush the log: each access in it is applied granule by granule as if
 * it came now, then the new one, with its classify callback. No conflict is missed: two accesses
 * that conflict both have a bit of the same word, so the second one finds the first one's bit
 * before it is logged itself, under the zone's lock. Logged accesses do not conflict with each
 * other, so that none of them needs to be classified.
 *
 * Reads of the same bytes in the same way, lane by lane, are one entry (struct logged), however
 * many rows and zones it has: it keeps its readers, as a granule would. An entry is complete when
 * all its zones list it and none is flushed; then a reader is added under the entry's lock alone.
 * Flushing a zone marks its entries, under the same lock, before it copies their readers, so that a
 * reader is either among those copied or sees the mark and goes to the granules itself.
 *
 * While no clusters synchronize, an entry whose readers are saturated (global_saturated.c) says so for
 * its granules in the maps of its zones. Further reads by higher clusters find that without a lock and
 * are not recorded. Its zones were not flushed then; a flush ends that for the zone, and the readers
 * that represent all go to the granules. */
#include "global_logged.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define ZONE_WORDS (ZONE_BYTES / 4)
#define ZONES 16384u    /* slots in the hash table */
#define FULL 2048u      /* capacity of a zone's log */

struct listed {
	struct logged *t;
	uint32_t part;
};

struct zone {
	uint64_t number;
	struct zone *next, *other; /* in the same slot; in all slots */
	pthread_mutex_t lock;
	bool flushed;         /* atomic: all its accesses are at the granules */
	uint64_t *written; /* a bit for each word, or NULL */
	uint64_t read[ZONE_BYTES / GRANULE / 64];
	/* atomic: a bit for each granule that is saturated above cluster `above`, for each kind of read */
	uint64_t saturated[NREADS][ZONE_BYTES / GRANULE / 64];
	uint32_t above;       /* atomic; set before the bits, only raised */
	VEC(struct listed) log;
};

struct global_log {
	struct zone *zone[ZONES]; /* chains, which only grow at their head: read without a lock */
	pthread_mutex_t lock;     /* held to insert zones */
	struct zone *zones;       /* all of them */
	uint32_t nzones, nwritten;
	struct logged_shard shard[SHARDS];
};

/* ---- zones ---- */

static struct zone *zone_find(const struct global_log *l, uint64_t number)
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
		z->other = l->zones;
		l->zones = z;
		global_lock_open(&z->lock);
		__atomic_store_n(&l->zone[number % ZONES], z, __ATOMIC_RELEASE);
		l->nzones++;
	}
	pthread_mutex_unlock(&l->lock);
	return z;
}

static bool zone_flushed(const struct zone *z)
{
	return __atomic_load_n(&z->flushed, __ATOMIC_ACQUIRE);
}

/* Of bits first to last of a map: those in its i-th word. */
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

/* The words of every granule that the mask selects. */
static uint64_t words_of(uint16_t mask)
{
	uint64_t words = 0;

	for (unsigned w = 0; w < GRANULE / 4; w++)
		words |= (uint64_t)(mask >> 4 * w & 15 ? 1 : 0) << w;
	return words * 0x1111111111111111ull;
}

/* The first and last granule of a run in its zone. */
static uint32_t first_of(const struct global_run *x)
{
	return (uint32_t)(x->addr % ZONE_BYTES) / GRANULE;
}

static uint32_t last_of(const struct global_run *x)
{
	return first_of(x) + x->granules - 1;
}

static bool overlaps(const struct zone *z, const struct global_run *p, uint32_t n, bool write)
{
	const uint32_t words = GRANULE / 4;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t first = first_of(&p[i]), last = last_of(&p[i]);

		if (z->written && any_bit(z->written, first * words, last * words + words - 1,
				words_of(p[i].mask)))
			return true;
		if (write && any_bit(z->read, first, last, UINT64_MAX))
			return true;
	}
	return false;
}

static void mark(struct global_log *l, struct zone *z, const struct global_run *p, uint32_t n,
	bool write)
{
	const uint32_t words = GRANULE / 4;

	if (write && !z->written) {
		z->written = base_alloc(ZONE_WORDS / 8);
		__atomic_fetch_add(&l->nwritten, 1, __ATOMIC_RELAXED);
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t first = first_of(&p[i]), last = last_of(&p[i]);

		if (write)
			set_bits(z->written, first * words, last * words + words - 1, words_of(p[i].mask));
		else
			set_bits(z->read, first, last, UINT64_MAX);
	}
}

static struct logged_shard *shard_of(struct global_log *l, uint64_t key)
{
	return &l->shard[key % SHARDS];
}

/* ---- flushing a zone ---- */

static enum global_verdict no_conflict(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	(void)a, (void)old, (void)now, (void)addr, (void)bytes, (void)lanewise;
	return GLOBAL_UNORDERED;
}

/* Applies the part of an access in one zone, `piece`, to the granules: each place of a loop with its
 * own epochs. */
static void to_granules(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_run *piece, uint32_t n)
{
	const uint64_t zone = piece->addr >> ZONE_SHIFT;

	if (!global_is_paced(now)) {
		global_granules(g, a, now, piece, n);
		return;
	}
	for (uint32_t i = 0; i < now->count; i++) {
		const struct global_record x = global_place(now, i);
		const struct global_span all = global_bounds(&x);
		struct global_spans spans;
		struct global_runs runs;

		if (all.addr >> ZONE_SHIFT > zone || (all.addr + all.bytes - 1) >> ZONE_SHIFT < zone)
			continue;
		global_spans_open(&spans);
		global_runs_open(&runs);
		global_spans_of(&x, &spans);
		global_runs_of(&runs, &spans);
		for (size_t k = 0, m; k < runs.n; k += m) {
			m = zone_run(runs.at, runs.n, k);
			if (runs.at[k].addr >> ZONE_SHIFT == zone)
				global_granules(g, a, &x, &runs.at[k], m);
		}
		global_runs_close(&runs);
		global_spans_close(&spans);
	}
}

/* Under the zone's lock. */
static void flush_zone(struct global_shadow *g, struct zone *z, bool synchronised)
{
	struct global_accessor accessor = { .isolated = true, .synchronised = synchronised,
		.classify = no_conflict };

	for (size_t i = 0; i < z->log.n; i++) {
		struct logged *t = z->log.at[i].t;
		const struct part *p = &t->part[z->log.at[i].part];
		struct logged_shard *s = shard_of(g->log, t->key);
		struct reader reader[MAX_ENTRIES];
		uint32_t n;

		if (t->r.flags & GR_WRITE) {
			to_granules(g, &accessor, &t->r, &t->piece[p->first], p->n);
			continue;
		}
		pthread_mutex_lock(&s->lock);
		t->flushed = true;
		n = t->nreaders;
		memcpy(reader, t->reader, n * sizeof *reader);
		pthread_mutex_unlock(&s->lock);
		for (uint32_t k = 0; k < n; k++) {
			struct global_record r = logged_record(t, &reader[k]);

			to_granules(g, &accessor, &r, &t->piece[p->first], p->n);
		}
	}
	vec_free(&z->log);
	__atomic_store_n(&z->flushed, true, __ATOMIC_RELEASE);
}

/* Under the zone's lock. False: the zone was flushed. */
static bool log_part(struct global_shadow *g, struct logged *t, uint32_t part, bool synchronised)
{
	const bool write = t->r.flags & GR_WRITE;
	struct part *p = &t->part[part];
	struct zone *z = p->zone;

	if (z->flushed || p->listed)
		return !z->flushed;
	if (z->log.n == FULL || overlaps(z, &t->piece[p->first], p->n, write)) {
		flush_zone(g, z, synchronised);
		return false;
	}
	mark(g->log, z, &t->piece[p->first], p->n, write);
	vec_push(&z->log, ((struct listed){ t, part }));
	p->listed = true;
	__atomic_fetch_add(&t->nlisted, 1, __ATOMIC_RELEASE);
	return true;
}

/* ---- saturated entries ---- */

static void set_saturated(struct zone *z, int kind, const struct global_run *x, uint32_t above)
{
	const uint32_t first = first_of(x), last = last_of(x);
	uint32_t was = __atomic_load_n(&z->above, __ATOMIC_RELAXED);

	while (was < above && !__atomic_compare_exchange_n(&z->above, &was, above, false,
			__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	for (uint32_t i = first / 64; i <= last / 64; i++)
		__atomic_fetch_or(&z->saturated[kind][i], bits_of(i, first, last), __ATOMIC_RELEASE);
}

/* A reader was added to t. Under the shard's lock, so that no zone of a complete t is being flushed. */
static void note_saturated(struct logged *t)
{
	const int kind = t->r.flags & GR_NC ? READ_NC : READ_PLAIN;

	if (!t->saturated || t->noted || !logged_complete(t))
		return;
	t->noted = true;
	for (uint32_t i = 0; i < t->nparts; i++)
		for (uint32_t k = t->part[i].first; k < t->part[i].first + t->part[i].n; k++)
			if (t->piece[k].mask == 0xffff)
				set_saturated(t->part[i].zone, kind, &t->piece[k], t->above);
}

bool global_log_saturated(const struct global_log *l, int kind, uint32_t cluster, uint64_t addr,
	uint64_t bytes)
{
	const uint64_t number = addr >> ZONE_SHIFT;
	const uint32_t first = (uint32_t)(addr % ZONE_BYTES) / GRANULE;
	const uint32_t last = (uint32_t)((addr + bytes - 1) % ZONE_BYTES) / GRANULE;
	const struct zone *z;

	if (!bytes || (addr + bytes - 1) >> ZONE_SHIFT != number)
		return false;
	z = zone_find(l, number);
	if (!z || zone_flushed(z))
		return false;
	for (uint32_t i = first / 64; i <= last / 64; i++)
		if (bits_of(i, first, last) & ~__atomic_load_n(&z->saturated[kind][i], __ATOMIC_ACQUIRE))
			return false;
	return cluster > __atomic_load_n(&z->above, __ATOMIC_RELAXED);
}

/* ---- accesses ---- */

static void log_access(struct global_shadow *g, struct global_accessor *a, struct logged *t,
	const struct global_record *now)
{
	for (uint32_t i = 0; i < t->nparts; i++) {
		const struct part *p = &t->part[i];
		bool done = false;

		if (!zone_flushed(p->zone)) {
			pthread_mutex_lock(&p->zone->lock);
			done = log_part(g, t, i, a->synchronised);
			pthread_mutex_unlock(&p->zone->lock);
		}
		if (!done)
			to_granules(g, a, now, &t->piece[p->first], p->n);
	}
}

static bool plain_read(const struct global_record *r)
{
	return !(r->flags & (GR_WRITE | GR_STRONG));
}

bool global_shadow_repeat(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now)
{
	uint64_t key = logged_key(now, NULL, 0);
	struct logged_shard *s = shard_of(g->log, key);
	struct logged *t;
	bool is;

	pthread_mutex_lock(&s->lock);
	t = logged_find(s, key, now, NULL, 0);
	is = t && logged_complete(t);
	if (is) {
		logged_add_reader(s, t, a, now);
		note_saturated(t);
	}
	pthread_mutex_unlock(&s->lock);
	return is;
}

/* Are all its zones flushed, so that there is nothing to log? Strong accesses flush them. */
static bool all_flushed(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_runs *c)
{
	bool flushed = true;

	for (size_t i = 0; i < c->n && flushed; i += zone_run(c->at, c->n, i)) {
		struct zone *z = zone_of(g->log, c->at[i].addr >> ZONE_SHIFT);

		if (!zone_flushed(z) && now->flags & GR_STRONG) {
			pthread_mutex_lock(&z->lock);
			if (!z->flushed)
				flush_zone(g, z, a->synchronised);
			pthread_mutex_unlock(&z->lock);
		}
		flushed = zone_flushed(z);
	}
	return flushed;
}

static void touch(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_runs *c)
{
	struct logged_shard *s;
	struct logged *t;
	uint64_t key;
	bool is = false;

	if (all_flushed(g, a, now, c)) {
		for (size_t i = 0; i < c->n; i += zone_run(c->at, c->n, i))
			to_granules(g, a, now, &c->at[i], zone_run(c->at, c->n, i));
		return;
	}
	key = logged_key(now, c->at, c->n);
	s = shard_of(g->log, key);
	pthread_mutex_lock(&s->lock);
	t = plain_read(now) ? logged_find(s, key, now, c->at, c->n) : NULL;
	if (!t) {
		t = logged_new(s, key, now, c->at, c->n);
		for (uint32_t i = 0; i < t->nparts; i++)
			t->part[i].zone = zone_of(g->log, t->piece[t->part[i].first].addr >> ZONE_SHIFT);
		if (plain_read(now))
			logged_insert(s, t);
	}
	if (plain_read(now)) {
		logged_add_reader(s, t, a, now);
		is = logged_complete(t);
	}
	pthread_mutex_unlock(&s->lock);
	if (!is)
		log_access(g, a, t, now);
}

static void touch_spans(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_spans *spans)
{
	struct global_runs runs;

	global_runs_open(&runs);
	global_runs_of(&runs, spans);
	touch(g, a, now, &runs);
	global_runs_close(&runs);
}

void global_shadow_touch(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now)
{
	struct global_spans spans;

	global_spans_open(&spans);
	global_spans_of(now, &spans);
	touch_spans(g, a, now, &spans);
	global_spans_close(&spans);
}

void global_shadow_touch_whole(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_span *at, size_t n)
{
	struct global_spans spans;

	global_spans_open(&spans);
	global_spans_set(&spans, at, n);
	touch_spans(g, a, now, &spans);
	global_spans_close(&spans);
}

void global_log_flush(struct global_shadow *g, uint64_t addr, uint64_t bytes)
{
	for (uint64_t n = addr >> ZONE_SHIFT; bytes && n <= (addr + bytes - 1) >> ZONE_SHIFT; n++) {
		struct zone *z = zone_find(g->log, n);

		if (!z)
			continue;
		pthread_mutex_lock(&z->lock);
		if (!z->flushed)
			flush_zone(g, z, true); /* no access may be omitted */
		pthread_mutex_unlock(&z->lock);
	}
}

static void each_listed(const struct zone *z, global_each *each, void *user)
{
	for (size_t i = 0; i < z->log.n; i++) {
		const struct logged *t = z->log.at[i].t;
		const struct part *p = &t->part[z->log.at[i].part];

		for (uint32_t x = 0; x < t->nreaders || !x; x++) {
			const struct global_record r = t->nreaders ? logged_record(t, &t->reader[x]) : t->r;

			for (uint32_t k = p->first; k < p->first + p->n; k++)
				each(user, &r, t->piece[k].addr, t->piece[k].granules, t->piece[k].mask);
		}
	}
}

void global_log_each(struct global_log *l, global_each *each, void *user)
{
	for (const struct zone *z = l->zones; z; z = z->other)
		if (!z->flushed)
			each_listed(z, each, user);
}

/* ---- lifetimes ---- */

struct global_log *global_log_open(void)
{
	struct global_log *l = base_alloc_pages(sizeof *l);

	global_lock_open(&l->lock);
	for (unsigned i = 0; i < SHARDS; i++)
		global_lock_open(&l->shard[i].lock);
	return l;
}

void global_log_close(struct global_log *l)
{
	for (struct zone *z = l->zones, *other; z; z = other) {
		other = z->other;
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
	base_free_pages(l, sizeof *l);
}

size_t global_log_footprint(const struct global_log *l)
{
	size_t bytes = sizeof *l + l->nzones * sizeof(struct zone) + l->nwritten * (ZONE_WORDS / 8);

	for (unsigned i = 0; i < SHARDS; i++)
		bytes += l->shard[i].bytes;
	return bytes;
}

uint64_t global_log_dropped(const struct global_log *l)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		n += l->shard[i].dropped;
	return n;
}
