/* global_saturated: bytes that many clusters read. While no clusters synchronize, the readers with
 * the lowest cluster numbers represent all, and further readers need not be recorded. */
#include "global_parts.h"

#include <string.h>

static int kind_of_read(uint8_t flags)
{
	if (!(flags & ~GR_MERGED))
		return READ_PLAIN;
	return (flags & ~GR_MERGED) == GR_NC ? READ_NC : -1;
}

/* The state's plain reads of one kind, by rising cluster; within a cluster in order of arrival. */
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

/* The bytes that at least two clusters read. */
static uint16_t read_by_two(const struct shard *s, const struct entry *at, const uint16_t place[],
	uint32_t count)
{
	uint16_t before = 0, same = 0, two = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (i && record_at(s, at[place[i]].record)->cluster
				!= record_at(s, at[place[i - 1]].record)->cluster) {
			before |= same;
			same = 0;
		}
		same |= at[place[i]].bytes;
		two |= before & at[place[i]].bytes;
	}
	return two;
}

/* Keeps, for each byte, the KEPT_READERS lowest clusters that read it, and of each cluster other
 * than now's its first reader, if another cluster read the byte, too: then every writer of the byte
 * conflicts with a reader that is kept. The result does not depend on the order of the accesses. */
static struct saturated thin_readers(struct visit *v, struct entry *at, uint32_t n, int kind)
{
	const struct shard *s = v->s;
	uint16_t place[MAX_ENTRIES + 1];
	uint16_t level[KEPT_READERS] = { 0 }; /* level[i]: bytes read by more than i clusters */
	const uint32_t count = readers(s, at, n, kind, place);
	const uint16_t two = read_by_two(s, at, place, count);
	struct saturated is = { 0 };

	for (uint32_t i = 0, next; i < count; i = next) {
		const uint32_t cluster = record_at(s, at[place[i]].record)->cluster;
		const uint16_t before = level[KEPT_READERS - 1];
		uint16_t cluster_bytes = 0;

		for (next = i; next < count; next++) {
			struct entry *e = &at[place[next]];
			uint16_t all = e->bytes;

			if (record_at(s, e->record)->cluster != cluster)
				break;
			e->bytes &= (uint16_t)~before;
			if (cluster != v->now->cluster)
				e->bytes &= (uint16_t)~(cluster_bytes & two);
			cluster_bytes |= all;
		}
		for (unsigned k = KEPT_READERS - 1; k; k--)
			level[k] |= level[k - 1] & cluster_bytes;
		level[0] |= cluster_bytes;
		if (level[KEPT_READERS - 1] != before)
			is = (struct saturated){ cluster, level[KEPT_READERS - 1] };
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
	if (others <= KEPT_READERS)
		return n;
	for (int kind = 0; kind < NREADS; kind++) {
		v->saturated[kind] = thin_readers(v, at, n, kind);
		if (written)
			v->saturated[kind].bytes = 0;
	}
	for (uint32_t i = 0; i < n; i++)
		if (at[i].bytes)
			at[k++] = at[i];
	return k;
}

/* ---- hints: which reads need not be recorded ----
 *
 * The saturated bytes of each granule are also stored in a table that is read without a lock. Hints
 * that share a slot replace each other. An outdated hint is harmless: the readers that represent
 * the omitted one were recorded before the write that made the hint invalid. */

static uint64_t hint_key(uint64_t addr, int kind)
{
	return addr / GRANULE * NREADS + (unsigned)kind;
}

#define HINT_KEY_MASK 0xfffffffull
#define HINT_END (1ull << (4 + HINTS_SHIFT + 28 - 1)) /* no hints for addresses from here on */
_Static_assert(GRANULE == 1u << 4 && NREADS == 1u << 1, "keys of addresses below HINT_END fit");

/* `above`, 4 bits for words, the 28 bits of the key above the slot's number. */
static uint64_t hint_of(uint64_t key, uint32_t above, unsigned words)
{
	return (uint64_t)above << 32 | (uint64_t)words << 28 | (key >> HINTS_SHIFT & HINT_KEY_MASK);
}

void global_hint(struct global_shadow *g, const struct saturated is[NREADS], uint64_t addr)
{
	for (int kind = 0; kind < NREADS; kind++) {
		const uint64_t key = hint_key(addr, kind);
		uint64_t *at = &g->saturated[key % HINTS];
		uint64_t was = __atomic_load_n(at, __ATOMIC_RELAXED), now = 0;
		unsigned words = 0;

		if (addr >= HINT_END)
			return;
		for (unsigned w = 0; w < GRANULE / 4; w++)
			words |= (unsigned)((is[kind].bytes >> 4 * w & 15) == 15) << w;
		if (words)
			now = hint_of(key, is[kind].above, words);
		else if ((uint32_t)(was << 4) != (uint32_t)(hint_of(key, 0, 0) << 4))
			continue; /* the slot holds another granule's hint */
		if (now != was)
			__atomic_compare_exchange_n(at, &was, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	}
}

bool global_is_saturated(const struct shard *s, uint32_t state)
{
	return state && s->state[state].saturated[READ_PLAIN].bytes
		| s->state[state].saturated[READ_NC].bytes;
}

void global_hint_all(struct visit *v, uint64_t addr, uint32_t granules, uint32_t state, bool was)
{
	if (!was && !global_is_saturated(v->s, state))
		return;
	for (uint32_t i = 0; i < granules; i++)
		global_hint(v->g, v->s->state[state].saturated, addr + i * GRANULE);
}

/* Are these words of the granule saturated? */
static inline bool is_hinted(const struct global_shadow *g, uint32_t cluster, int kind,
	uint64_t addr, unsigned words)
{
	const uint64_t key = hint_key(addr, kind);
	const uint64_t n = __atomic_load_n(&g->saturated[key % HINTS], __ATOMIC_RELAXED);

	return cluster > n >> 32 && !((n ^ key >> HINTS_SHIFT) & HINT_KEY_MASK)
		&& !(words & ~(n >> 28 & 0xf)) && addr < HINT_END;
}

/* The words of the granule of addr that [addr, end) has bytes of. */
static inline unsigned words_of(uint64_t addr, uint64_t end)
{
	const uint64_t next = (addr | (GRANULE - 1)) + 1;
	const unsigned words = 0xfu << addr % GRANULE / 4 & 0xf;

	return next > end ? words & 0xfu >> (next - end) / 4 : words;
}

bool global_run_saturated(const struct global_shadow *g, const struct global_record *r,
	uint64_t addr, uint32_t granules, uint16_t mask)
{
	const int kind = kind_of_read(r->flags);
	unsigned words = 0;

	if (kind < 0)
		return false;
	for (unsigned w = 0; w < GRANULE / 4; w++)
		words |= (unsigned)!!(mask >> 4 * w & 15) << w;
	for (uint32_t i = 0; i < granules; i++)
		if (!is_hinted(g, r->cluster, kind, addr + i * GRANULE, words))
			return false;
	return true;
}

bool global_shadow_saturated(const struct global_shadow *g, const struct global_record *r,
	uint64_t addr, uint64_t bytes)
{
	const int kind = kind_of_read(r->flags);
	const uint64_t end = addr + bytes;

	if (kind < 0)
		return false;
	if (global_log_saturated(g->log, kind, r->cluster, addr, bytes))
		return true;
	for (; addr < end; addr = (addr | (GRANULE - 1)) + 1)
		if (!is_hinted(g, r->cluster, kind, addr, words_of(addr, end)))
			return false;
	return true;
}

bool global_shadow_saturated_rows(const struct global_shadow *g, const struct global_record *r)
{
	struct global_spans spans;
	bool are = r->row <= 5;

	if (!are)
		return false;
	global_spans_open(&spans);
	global_spans_of(r, &spans);
	for (size_t i = 0; i < spans.n && are; i++) {
		const uint64_t end = spans.at[i].addr + spans.at[i].bytes;

		for (uint64_t at = spans.at[i].addr, next; at < end && are; at = next) {
			next = (at | (ZONE_BYTES - 1)) + 1;
			next = next < end ? next : end;
			are = global_shadow_saturated(g, r, at, next - at);
		}
	}
	global_spans_close(&spans);
	return are;
}

bool global_shadow_all_saturated(const struct global_shadow *g, const struct global_record *r,
	const uint64_t *lane_addr, uint32_t lanes)
{
	const int kind = kind_of_read(r->flags);

	if (kind < 0 || r->size > GRANULE)
		return false;
	for (; lanes; lanes &= lanes - 1) {
		const uint64_t addr = lane_addr[__builtin_ctz(lanes)];

		if (addr % GRANULE + r->size > GRANULE
			|| !is_hinted(g, r->cluster, kind, addr, words_of(addr, addr + r->size)))
			return false;
	}
	return true;
}
