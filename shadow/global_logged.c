/* global_logged: see global_logged.h. Finds the entry of a read and keeps its readers.
 *
 * A reader x of an entry is dropped when n is added:
 *  - if x is the same agent of the same cluster at the same instruction: whatever is ordered after
 *    n's epoch is ordered after x's, and the bytes of each lane are the same;
 *  - if n is ordered after x, for all lanes: as in global_step.c;
 * unless they knew different things of other launches, which are compared with both. */
#include "global_logged.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

uint64_t logged_key(const struct global_record *r, const struct global_run *at, size_t n)
{
	uint64_t h = mix(r->base, (uint64_t)r->lanes << 32 | (uint32_t)r->pitch);

	h = mix(h, (uint64_t)(uint32_t)r->inner << 32 | (uint32_t)r->step);
	h = mix(h, (uint64_t)r->size << 32 | (uint32_t)r->row << 16 | (uint32_t)r->flags << 8
		| r->count);
	if (global_is_paced(r))
		h = mix(h, (uint64_t)r->pace.epoch << 32 | r->pace.issue);
	if (r->row == GR_LIST)
		for (uint32_t m = r->lanes; m; m &= m - 1)
			h = mix(h, r->addr[__builtin_ctz(m)]);
	if (r->row == GR_WHOLE && n)
		h = mix(mix(h, at[0].addr ^ at[n - 1].addr << 8),
			(uint64_t)at[n - 1].granules << 32 ^ n);
	return h;
}

static bool same_access(const struct logged *t, const struct global_record *r,
	const struct global_run *at, size_t n)
{
	if (t->r.flags != r->flags || !global_same_layout(&t->r, r))
		return false;
	if (r->row != GR_WHOLE)
		return true;
	if (t->npieces != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (t->piece[i].addr != at[i].addr || t->piece[i].granules != at[i].granules
			|| t->piece[i].mask != at[i].mask)
			return false;
	return true;
}

static void *shard_alloc(struct logged_shard *s, size_t bytes)
{
	s->bytes += bytes;
	return arena_alloc(&s->arena, bytes);
}

struct logged *logged_find(const struct logged_shard *s, uint64_t key,
	const struct global_record *r, const struct global_run *at, size_t n)
{
	const struct logged_slot *slot = s->cap ? &s->at[key / SHARDS & (s->cap - 1)] : NULL;
	struct logged *t = slot && slot->tags >> (key >> 58) & 1 ? slot->first : NULL;

	while (t && (t->key != key || !same_access(t, r, at, n)))
		t = t->next;
	return t;
}

struct logged *logged_new(struct logged_shard *s, uint64_t key,
	const struct global_record *r, const struct global_run *at, size_t n)
{
	struct logged *t = shard_alloc(s, sizeof *t);

	t->r = *r;
	t->key = key;
	t->npieces = (uint32_t)n;
	t->piece = shard_alloc(s, n * sizeof *t->piece);
	memcpy(t->piece, at, n * sizeof *t->piece);
	if (r->row == GR_LIST) {
		uint64_t *addr = shard_alloc(s, 32 * sizeof *addr);

		memcpy(addr, r->addr, 32 * sizeof *addr);
		t->r.addr = addr;
	}
	for (size_t i = 0; i < n; i += zone_run(at, n, i))
		t->nparts++;
	t->part = shard_alloc(s, t->nparts * sizeof *t->part);
	for (uint32_t i = 0, k = 0; k < t->nparts; i += t->part[k++].n)
		t->part[k] = (struct part){ NULL, i, zone_run(at, n, i), false };
	return t;
}

static void put(struct logged_slot *at, uint32_t cap, struct logged *t)
{
	struct logged_slot *slot = &at[t->key / SHARDS & (cap - 1)];

	t->next = slot->first;
	slot->first = t;
	slot->tags |= 1ull << (t->key >> 58);
}

void logged_insert(struct logged_shard *s, struct logged *t)
{
	if (s->n == s->cap) {
		uint32_t cap = s->cap ? 2 * s->cap : 64;
		struct logged_slot *to = base_alloc(cap * sizeof *to);

		for (uint32_t i = 0; i < s->cap; i++)
			for (struct logged *x = s->at[i].first, *next; x; x = next) {
				next = x->next;
				put(to, cap, x);
			}
		free(s->at);
		s->at = to;
		s->bytes += (cap - s->cap) * sizeof *to;
		s->cap = cap;
	}
	put(s->at, s->cap, t);
	s->n++;
}

/* ---- readers ---- */

struct global_record logged_record(const struct logged *t, const struct reader *x)
{
	struct global_record r = t->r;

	r.cluster = x->cluster;
	r.epoch = x->epoch;
	r.issue = x->issue;
	r.site = x->site;
	r.agent = x->agent;
	r.warp = x->warp;
	r.met = x->met;
	r.lane = x->lane;
	return r;
}

/* All lanes have the same bytes in both, so the result for one byte holds for all if it does not
 * depend on the lanes; if it does, the result is false. */
static bool knows(const struct logged *t, struct global_accessor *a, const struct reader *x,
	const struct global_record *now)
{
	const struct global_run *first = &t->piece[0];
	const struct global_record old = logged_record(t, x);
	bool lanewise = false;

	return a->classify(a, &old, now, first->addr, first->mask & -(uint32_t)first->mask, &lanewise)
		== GLOBAL_ORDERED && !lanewise;
}

/* See global_saturated.c: the KEPT_READERS lowest clusters represent all, and a cluster other than
 * now's is represented by its first reader. */
static void thin(struct logged *t, uint32_t now)
{
	uint32_t clusters = 0, k = 0, others = 0;

	for (uint32_t i = 0; i < t->nreaders; i++)
		others += t->reader[i].cluster != now;
	if (others <= KEPT_READERS)
		return;
	for (uint32_t i = 0; i < t->nreaders; i++) {
		const struct reader x = t->reader[i];
		bool first = !k || t->reader[k - 1].cluster != x.cluster;

		if (first && clusters == KEPT_READERS)
			break;
		clusters += first;
		if (first || x.cluster == now)
			t->reader[k++] = x;
	}
	t->nreaders = k;
	if (clusters == KEPT_READERS) {
		t->saturated = true;
		t->above = t->reader[k - 1].cluster;
	}
}

/* Does the new reader make x redundant? */
static bool is_redundant(const struct logged *t, struct global_accessor *a, const struct reader *x,
	const struct global_record *now)
{
	if (x->met != now->met)
		return false;
	if (x->cluster == now->cluster && x->agent == now->agent && x->site == now->site)
		return true;
	return (x->cluster == now->cluster || !a->isolated) && knows(t, a, x, now);
}

void logged_add_reader(struct logged_shard *s, struct logged *t, struct global_accessor *a,
	const struct global_record *now)
{
	const uint32_t most = s->bytes < MEMORY_LIMIT ? MAX_ENTRIES : MAX_ENTRIES_LOW;
	struct reader *x = t->reader;
	uint32_t low, high = t->nreaders, to, k;

	if (t->saturated && !a->synchronised && now->cluster > t->above)
		return;
	while (high && x[high - 1].cluster > now->cluster)
		high--;
	for (low = high; low && x[low - 1].cluster == now->cluster; low--)
		if (x[low - 1].agent == now->agent && x[low - 1].epoch == now->epoch)
			return;
	to = a->isolated ? high : t->nreaders;
	k = a->isolated ? low : 0;
	for (uint32_t i = k; i < to; i++)
		if (!is_redundant(t, a, &x[i], now))
			x[k++] = x[i];
	if (to < t->nreaders)
		memmove(&x[k], &x[to], (t->nreaders - to) * sizeof *x);
	t->nreaders -= to - k;
	if (t->nreaders == t->cap_readers) {
		t->cap_readers = t->cap_readers ? 2 * t->cap_readers : 2;
		x = shard_alloc(s, t->cap_readers * sizeof *x);
		if (t->nreaders)
			memcpy(x, t->reader, t->nreaders * sizeof *x);
		t->reader = x;
	}
	for (k = t->nreaders++; k && x[k - 1].cluster > now->cluster; k--)
		x[k] = x[k - 1];
	x[k] = (struct reader){ now->cluster, now->epoch, now->issue, now->site, now->agent, now->warp,
		now->met, now->lane };
	if (!a->synchronised && !(now->flags & ~GR_NC) && t->nreaders > 2 * KEPT_READERS)
		thin(t, now->cluster);
	if (t->nreaders > most) {
		t->nreaders--;
		s->dropped++;
	}
}
