/* global_tract: see global_tract.h. Which tract reads are of, and who of its readers
 * stays.
 *
 * Of a tract's readers x goes when n comes:
 *  - the same agent's of the same cluster, at the same instruction: all that know
 *    n's epoch know x's, and the bytes of each lane are the same;
 *  - if n knows x, for all lanes: as in global_step.c. */
#include "global_tract.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

uint64_t tract_key(const struct global_record *r, const uint64_t *lane_addr,
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

static void *take(struct tract_shard *s, size_t bytes)
{
	s->bytes += bytes;
	return arena_alloc(&s->arena, bytes);
}

struct tract *tract_find(const struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct global_span *at, size_t n)
{
	struct tract *t = s->cap ? s->at[key / SHARDS & (s->cap - 1)] : NULL;

	while (t && (t->key != key || !same_place(t, r, lane_addr, at, n)))
		t = t->next;
	return t;
}

struct tract *tract_new(struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct global_span *at, size_t n)
{
	struct tract *t = take(s, sizeof *t);

	t->r = *r;
	t->key = key;
	t->npieces = (uint32_t)n;
	t->piece = take(s, n * sizeof *t->piece);
	memcpy(t->piece, at, n * sizeof *t->piece);
	if (r->row == GR_LIST) {
		t->lane_addr = take(s, 32 * sizeof *t->lane_addr);
		memcpy(t->lane_addr, lane_addr, 32 * sizeof *t->lane_addr);
	}
	for (size_t i = 0; i < n; i += zone_run(at, n, i))
		t->nparts++;
	t->part = take(s, t->nparts * sizeof *t->part);
	for (uint32_t i = 0, k = 0; k < t->nparts; i += t->part[k++].n)
		t->part[k] = (struct part){ NULL, i, zone_run(at, n, i), false };
	return t;
}

void tract_insert(struct tract_shard *s, struct tract *t)
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

struct global_record tract_record(const struct tract *t, const struct reader *x)
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
	struct global_record old = tract_record(t, x), n = *now;
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

void tract_join(struct tract_shard *s, struct tract *t, struct global_ask *a,
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
