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
 * them or sees the mark and goes to the granules itself.
 *
 * Of a tract's readers x goes when n comes, both of one cluster:
 *  - the same agent's at the same instruction: all that know n's epoch know x's,
 *    and the bytes of each lane are the same;
 *  - if n knows x, for all lanes: as in global_step.c. */
#include "global_parts.h"

#include "../libconsan/base.h"

#include <stdlib.h>
#include <string.h>

#define ZONE_SHIFT 16
#define ZONE_BYTES (1u << ZONE_SHIFT)
#define ZONE_WORDS (ZONE_BYTES / 4)
#define ZONES 16384u    /* places in their table */
#define FULL 2048u      /* of a zone's log */
#define PIECES 80u      /* of an access, without asking for memory */

struct reader {
	uint32_t cluster, epoch, issue, site;
	uint16_t agent, warp;
	int8_t lane;
};

struct part { /* of an access, in one zone */
	struct zone *zone;
	uint32_t first, n; /* pieces */
	bool listed;       /* under the zone's lock */
};

struct tract {
	struct global_record r;    /* of reads only how, not who */
	uint64_t key;
	struct tract *next;        /* reads */
	uint64_t *lane_addr;       /* GR_LIST */
	struct global_span *piece; /* by rising zone, none in two of them */
	struct part *part;
	struct reader *reader;     /* by rising cluster; of a cluster as they came */
	uint32_t npieces, nparts, nreaders, cap_readers;
	uint32_t nlisted;          /* zones that list it */
	uint32_t above;            /* if crowded: readers of clusters above say nothing new */
	bool crowded, over;        /* over: in some zone */
};

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

struct tract_shard {
	pthread_mutex_t lock;
	struct tract **at; /* hash, of reads */
	uint32_t n, cap;
	struct arena arena;
	size_t bytes;
	uint64_t forgot;
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

/* How many from the i-th on are in its zone. */
static uint32_t run_of(const struct global_span *at, size_t n, size_t i)
{
	size_t k = i + 1;

	while (k < n && at[k].addr >> ZONE_SHIFT == at[i].addr >> ZONE_SHIFT)
		k++;
	return (uint32_t)(k - i);
}

/* ---- tracts ---- */

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

static uint64_t key_of(const struct global_record *r, const uint64_t *lane_addr,
	const struct global_span *at, size_t n)
{
	uint64_t h = mix(r->base, (uint64_t)r->lanes << 32 | (uint32_t)r->pitch);

	h = mix(h, (uint64_t)(uint32_t)r->inner << 32 | (uint32_t)r->step);
	h = mix(h, (uint64_t)r->size << 32 | (uint32_t)r->row << 16 | (uint32_t)r->flags << 8 | r->count);
	if (r->row == GR_LIST)
		for (uint32_t m = r->lanes; m; m &= m - 1)
			h = mix(h, lane_addr[__builtin_ctz(m)]);
	if (r->row == GR_WHOLE && n)
		h = mix(mix(h, at[0].addr ^ at[n - 1].addr << 8), at[n - 1].bytes << 32 ^ n);
	return h;
}

static bool same_place(const struct tract *t, const struct global_record *r,
	const uint64_t *lane_addr, const struct global_span *at, size_t n)
{
	const struct global_record *x = &t->r;

	if (x->base != r->base || x->lanes != r->lanes || x->pitch != r->pitch || x->inner != r->inner
		|| x->step != r->step || x->size != r->size || x->row != r->row || x->flags != r->flags
		|| x->count != r->count)
		return false;
	for (uint32_t m = x->row == GR_LIST ? x->lanes : 0; m; m &= m - 1)
		if (t->lane_addr[__builtin_ctz(m)] != lane_addr[__builtin_ctz(m)])
			return false;
	if (x->row != GR_WHOLE)
		return true;
	if (t->npieces != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (t->piece[i].addr != at[i].addr || t->piece[i].bytes != at[i].bytes
			|| t->piece[i].mask != at[i].mask)
			return false;
	return true;
}

static struct tract_shard *shard_of(struct global_log *l, uint64_t key)
{
	return &l->shard[key % SHARDS];
}

/* Under the shard's lock, as all that follow. */
static void *take(struct tract_shard *s, size_t bytes)
{
	s->bytes += bytes;
	return arena_alloc(&s->arena, bytes);
}

static struct tract *tract_find(const struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct global_span *at, size_t n)
{
	struct tract *t = s->cap ? s->at[key / SHARDS & (s->cap - 1)] : NULL;

	while (t && (t->key != key || !same_place(t, r, lane_addr, at, n)))
		t = t->next;
	return t;
}

static struct tract *tract_new(struct global_log *l, struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct cut *c)
{
	struct tract *t = take(s, sizeof *t);

	t->r = *r;
	t->key = key;
	t->npieces = (uint32_t)c->n;
	t->piece = take(s, c->n * sizeof *t->piece);
	memcpy(t->piece, c->at, c->n * sizeof *t->piece);
	if (r->row == GR_LIST) {
		t->lane_addr = take(s, 32 * sizeof *t->lane_addr);
		memcpy(t->lane_addr, lane_addr, 32 * sizeof *t->lane_addr);
	}
	for (size_t i = 0; i < c->n; i += run_of(c->at, c->n, i))
		t->nparts++;
	t->part = take(s, t->nparts * sizeof *t->part);
	for (uint32_t i = 0, k = 0; k < t->nparts; i += t->part[k++].n)
		t->part[k] = (struct part){ zone_of(l, c->at[i].addr >> ZONE_SHIFT), i,
			run_of(c->at, c->n, i), false };
	return t;
}

static void tract_insert(struct tract_shard *s, struct tract *t)
{
	struct tract **at;

	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 64;
		struct tract **to = base_alloc(cap * sizeof(struct tract *));

		for (uint32_t i = 0; i < s->cap; i++)
			for (struct tract *x = s->at[i], *next; x; x = next) {
				next = x->next;
				at = &to[x->key / SHARDS & (cap - 1)];
				x->next = *at;
				*at = x;
			}
		free(s->at);
		s->at = to;
		s->bytes += (cap - s->cap) * sizeof(struct tract *);
		s->cap = cap;
	}
	at = &s->at[t->key / SHARDS & (s->cap - 1)];
	t->next = *at;
	*at = t;
	s->n++;
}

/* ---- readers ---- */

static struct global_record record_of(const struct tract *t, const struct reader *x)
{
	struct global_record r = t->r;

	r.cluster = x->cluster;
	r.epoch = x->epoch;
	r.issue = x->issue;
	r.site = x->site;
	r.agent = x->agent;
	r.warp = x->warp;
	r.lane = x->lane;
	return r;
}

/* All lanes of both have the same bytes, so one byte's answer is that of all if it
 * does not depend on the lanes; if it does, none is given. */
static bool knows(const struct tract *t, struct global_ask *a, const struct reader *x,
	const struct global_record *now)
{
	const uint64_t at = t->piece[0].addr;
	struct global_record old = record_of(t, x), n = *now;
	bool lanewise = false;

	if (n.row == GR_LIST) /* in nobody's region yet */
		old.row = n.row = GR_WHOLE;
	return a->judge(a, &old, &n, at & ~(uint64_t)(GRANULE - 1), 1u << at % GRANULE, &lanewise)
		== GLOBAL_ORDERED && !lanewise;
}

/* See global_crowd.c: the OTHERS lowest clusters stand for all, and of a cluster
 * that is not now's its first reader. */
static void thin(struct tract_shard *s, struct tract *t, uint32_t now)
{
	uint32_t clusters = 0, k = 0, others = 0;

	for (uint32_t i = 0; i < t->nreaders; i++)
		others += t->reader[i].cluster != now;
	if (others <= OTHERS)
		return;
	for (uint32_t i = 0; i < t->nreaders; i++) {
		const struct reader x = t->reader[i];
		bool first = !k || t->reader[k - 1].cluster != x.cluster;

		if (first && clusters == OTHERS)
			break;
		clusters += first;
		if (first || x.cluster == now)
			t->reader[k++] = x;
	}
	s->forgot += t->nreaders - k;
	t->nreaders = k;
	if (clusters == OTHERS) {
		t->crowded = true;
		t->above = t->reader[k - 1].cluster;
	}
}

/* x says nothing that the new reader does not say, too. */
static bool goes(const struct tract *t, struct global_ask *a, const struct reader *x,
	const struct global_record *now)
{
	if (x->cluster == now->cluster && x->agent == now->agent && x->site == now->site)
		return true;
	return (x->cluster == now->cluster || !a->lonely) && knows(t, a, x, now);
}

static void join(struct tract_shard *s, struct tract *t, struct global_ask *a,
	const struct global_record *now)
{
	const uint32_t most = s->bytes < PLENTY ? MANY : FEW;
	struct reader *x = t->reader;
	uint32_t low, high = t->nreaders, to, k;

	if (t->crowded && !a->synchronised && now->cluster > t->above)
		return;
	while (high && x[high - 1].cluster > now->cluster)
		high--;
	for (low = high; low && x[low - 1].cluster == now->cluster; low--)
		if (x[low - 1].agent == now->agent && x[low - 1].epoch == now->epoch)
			return;
	to = a->lonely ? high : t->nreaders;
	k = a->lonely ? low : 0;
	for (uint32_t i = k; i < to; i++)
		if (!goes(t, a, &x[i], now))
			x[k++] = x[i];
	if (to < t->nreaders)
		memmove(&x[k], &x[to], (t->nreaders - to) * sizeof *x);
	t->nreaders -= to - k;
	if (t->nreaders == t->cap_readers) {
		t->cap_readers = t->cap_readers ? 2 * t->cap_readers : 2;
		x = take(s, t->cap_readers * sizeof *x);
		if (t->nreaders)
			memcpy(x, t->reader, t->nreaders * sizeof *x);
		t->reader = x;
	}
	for (k = t->nreaders++; k && x[k - 1].cluster > now->cluster; k--)
		x[k] = x[k - 1];
	x[k] = (struct reader){ now->cluster, now->epoch, now->issue, now->site, now->agent, now->warp,
		now->lane };
	if (!a->synchronised && !(now->flags & ~GR_NC) && t->nreaders > 2 * OTHERS)
		thin(s, t, now->cluster);
	if (t->nreaders > most) {
		t->nreaders--;
		s->forgot++;
	}
}

static bool settled(const struct tract *t)
{
	return __atomic_load_n(&t->nlisted, __ATOMIC_ACQUIRE) == t->nparts && !t->over;
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
			struct global_record r = record_of(t, &reader[k]);

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
	uint64_t key = key_of(now, lane_addr, NULL, 0);
	struct tract_shard *s = shard_of(g->log, key);
	struct tract *t;
	bool is;

	pthread_mutex_lock(&s->lock);
	t = tract_find(s, key, now, lane_addr, NULL, 0);
	is = t && settled(t);
	if (is)
		join(s, t, a, now);
	pthread_mutex_unlock(&s->lock);
	return is;
}

/* All its zones are over: nothing is to be put down. Strong accesses end them. */
static bool all_over(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const struct cut *c)
{
	bool over = true;

	for (size_t i = 0; i < c->n && over; i += run_of(c->at, c->n, i)) {
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
	key = key_of(now, lane_addr, c.at, c.n);
	s = shard_of(g->log, key);
	pthread_mutex_lock(&s->lock);
	t = plain_read(now) ? tract_find(s, key, now, lane_addr, c.at, c.n) : NULL;
	if (!t) {
		t = tract_new(g->log, s, key, now, lane_addr, &c);
		if (plain_read(now))
			tract_insert(s, t);
	}
	if (plain_read(now)) {
		join(s, t, a, now);
		is = settled(t);
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
			end_log(g, z, false);
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
