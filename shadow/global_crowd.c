/* global_crowd: bytes that many clusters read. While no clusters synchronise, the
 * lowest readers stand for all, and the others need not come to the shadow. */
#include "global_parts.h"

#include <string.h>

static int kind_of_read(uint8_t flags)
{
	if (!(flags & ~GR_CROWD))
		return READ_PLAIN;
	return (flags & ~GR_CROWD) == GR_NC ? READ_NC : -1;
}

/* The state's plain reads of one kind, by rising cluster; of a cluster, as they came. */
static uint32_t readers(const struct shard *s, const struct entry *at, uint32_t n, int kind,
	uint16_t place[])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t cluster, k;

		if (kind_of_read(at[i].flags) != kind)
			continue;
		cluster = record_at(s, at[i].record)->cluster;
		for (k = count++; k && record_at(s, at[place[k - 1]].record)->cluster > cluster; k--)
			place[k] = place[k - 1];
		place[k] = (uint16_t)i;
	}
	return count;
}

/* Of each byte the OTHERS lowest clusters that read it stay, and of a cluster
 * that is not now's its first reader. What they are is then all the same. */
static struct crowded thin_readers(struct visit *v, struct entry *at, uint32_t n, int kind)
{
	const struct shard *s = v->s;
	uint16_t place[MANY + 1], level[OTHERS] = { 0 }; /* bytes with more than i clusters */
	const uint32_t count = readers(s, at, n, kind, place);
	struct crowded is = { 0 };

	for (uint32_t i = 0, next; i < count; i = next) {
		const uint32_t cluster = record_at(s, at[place[i]].record)->cluster;
		const uint16_t before = level[OTHERS - 1];
		uint16_t mine = 0;

		for (next = i; next < count; next++) {
			struct entry *e = &at[place[next]];
			uint16_t all = e->bytes;

			if (record_at(s, e->record)->cluster != cluster)
				break;
			e->bytes &= (uint16_t)~before;
			if (cluster != v->now->cluster)
				e->bytes &= (uint16_t)~mine;
			mine |= all;
		}
		for (unsigned k = OTHERS - 1; k; k--)
			level[k] |= level[k - 1] & mine;
		level[0] |= mine;
		if (level[OTHERS - 1] != before)
			is = (struct crowded){ cluster, level[OTHERS - 1] };
	}
	return is;
}

uint32_t global_thin_readers(struct visit *v, struct entry *at, uint32_t n)
{
	const uint8_t tag = tag_of(v->now->cluster);
	uint32_t others = 0, k = 0;
	bool written = false;

	for (uint32_t i = 0; i < n; i++) {
		others += !(at[i].flags & GR_WRITE) && at[i].tag != tag;
		written |= at[i].flags & GR_WRITE;
	}
	if (others <= OTHERS)
		return n;
	for (int kind = 0; kind < NREADS; kind++) {
		v->crowded[kind] = thin_readers(v, at, n, kind);
		if (written)
			v->crowded[kind].bytes = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		if (at[i].bytes)
			at[k++] = at[i];
	v->s->forgot += n - k;
	return k;
}

/* ---- notes: which reads need not come here ----
 *
 * What a state says of crowded bytes is noted by granule where anyone can read
 * it without a lock. Notes that share a place push each other out. A note that
 * is out of date does no harm: the readers that stand for the one that is left out
 * were there before the write that ended it. */

static uint64_t note_key(uint64_t addr, int kind)
{
	return addr / GRANULE * NREADS + (unsigned)kind;
}

/* `above`, 4 bits for words, the rest of the key; 48 bits of address fit. */
static uint64_t note_of(uint64_t key, uint32_t above, unsigned words)
{
	return (uint64_t)above << 32 | words << 28 | (key >> NOTES_SHIFT & 0xfffffff);
}

void global_note(struct global_shadow *g, const struct crowded is[NREADS], uint64_t addr)
{
	for (int kind = 0; kind < NREADS; kind++) {
		const uint64_t key = note_key(addr, kind);
		uint64_t *at = &g->crowded[key % NOTES];
		uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED), now = 0;
		unsigned words = 0;

		for (unsigned w = 0; w < GRANULE / 4; w++)
			words |= (unsigned)((is[kind].bytes >> 4 * w & 15) == 15) << w;
		if (words)
			now = note_of(key, is[kind].above, words);
		else if ((uint32_t)(was << 4) != (uint32_t)(note_of(key, 0, 0) << 4))
			continue; /* the place is another granule's */
		if (now != was)
			__atomic_compare_exchange_n(at, &was, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

bool global_is_crowded(const struct shard *s, uint32_t state)
{
	return state && s->state[state].crowded[READ_PLAIN].bytes | s->state[state].crowded[READ_NC].bytes;
}

void global_note_all(struct visit *v, uint64_t addr, uint32_t granules, uint32_t state, bool was)
{
	if (!was && !global_is_crowded(v->s, state))
		return;
	for (uint32_t i = 0; i < granules; i++)
		global_note(v->g, v->s->state[state].crowded, addr + i * GRANULE);
}

/* Of one granule, the bytes from addr on to end or the granule's. */
static inline bool noted(const struct global_shadow *g, uint32_t cluster, int kind, uint64_t addr,
	uint64_t end)
{
	const uint64_t key = note_key(addr, kind), next = (addr | (GRANULE - 1)) + 1;
	const uint64_t n = __atomic_load_n(&g->crowded[key % NOTES], __ATOMIC_RELAXED);
	unsigned words = 0xfu << addr % GRANULE / 4 & 0xf;

	if (next > end)
		words &= 0xfu >> (next - end) / 4;
	return cluster > n >> 32 && !((n ^ key >> NOTES_SHIFT) & 0xfffffff)
		&& !(words & ~(n >> 28 & 0xf));
}

bool global_shadow_crowded(const struct global_shadow *g, const struct global_record *r,
	uint64_t addr, uint64_t bytes)
{
	const int kind = kind_of_read(r->flags);
	const uint64_t end = addr + bytes;

	if (kind < 0)
		return false;
	for (; addr < end; addr = (addr | (GRANULE - 1)) + 1)
		if (!noted(g, r->cluster, kind, addr, end))
			return false;
	return true;
}

bool global_shadow_all_crowded(const struct global_shadow *g, const struct global_record *r,
	const uint64_t *lane_addr, uint32_t lanes)
{
	const int kind = kind_of_read(r->flags);

	if (kind < 0 || r->size > GRANULE)
		return false;
	for (; lanes; lanes &= lanes - 1) {
		const uint64_t addr = lane_addr[__builtin_ctz(lanes)];

		if (addr % GRANULE + r->size > GRANULE || !noted(g, r->cluster, kind, addr, addr + r->size))
			return false;
	}
	return true;
}
