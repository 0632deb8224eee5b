/* global_step: effect of a new access on a granule's state: which past accesses may still take part
 * in a conflict.
 *
 * What may be forgotten, byte by byte; x is recorded, n is the new access:
 *  - n is ordered after x (GLOBAL_ORDERED): a later y that conflicts with x conflicts with n,
 *    unless n is a read and x a write, and y can be ordered after n only if it is ordered after x,
 *    as causality is transitive. So x is dropped. Not if n is strong and x is not, or if n is
 *    wider in scope or of another size or proxy: then y may be compatible with n but not with
 *    x. Reads outside the memory model (.nc) replace only other such reads.
 *  - n conflicts with x: this has been reported. x is dropped if it is of n's own cluster, whose
 *    events come in an order that does not depend on thread timing; x of another cluster stays,
 *    because which of the two came first depends on timing and the reports must not: every pair is
 *    seen in either order.
 *  - two morally strong accesses both stay. A later access that is ordered after a strong read or
 *    read-modify-write is ordered after the strong writes which that one observed. For that the
 *    first strong read of a warp after such a write stays, too, until a weak write.
 *  - n reads what its own lanes wrote or read in the same epoch: n adds nothing.
 *  - x and n knew different things of other launches (met): operations that are compared with them
 *    later may be ordered after one and not before the other. Both stay.
 *
 * While no clusters have synchronized, no access is ordered with another cluster's: of their reads
 * the KEPT_READERS lowest represent all. When a state exceeds MAX_ENTRIES accesses, or
 * MAX_ENTRIES_LOW when memory is short, the accesses of the highest clusters are dropped, reads
 * first. That is counted.
 *
 * These are the only losses without a proof: accesses beyond those limits; the lanes of merged
 * reads, with which only an access that knows nothing of their warp is compared; and a strong x of
 * another CTA, for which y with a scope that includes the thread of n, and not that of x, is
 * compared with n only. */
#include "global_parts.h"

#include "libconsan/base/base.h"

#include <string.h>

/* Does every later access that is compatible with n, and not ordered after x, not race with x? */
static bool as_strict(const struct global_record *x, const struct global_record *n)
{
	if (x->flags & GR_NC && !(n->flags & GR_NC))
		return false;
	if (!(n->flags & GR_STRONG))
		return true;
	return x->flags & GR_STRONG && x->element == n->element && x->scope >= n->scope
		&& !((x->flags ^ n->flags) & GR_ASYNC);
}

/* Is each byte accessed by one lane, but another one in x than in n? */
static bool shifted(const struct global_record *x, const struct global_record *n)
{
	const uint64_t by = x->base > n->base ? x->base - n->base : n->base - x->base;

	return x->row == 5 && n->row == 5 && x->size == n->size && x->inner == x->size
		&& n->inner == n->size && x->count <= 1 && n->count <= 1 && by >= n->size;
}

/* Same lanes, same epoch: n adds nothing to x. */
static bool repeats(const struct global_record *x, const struct global_record *n, uint64_t addr,
	uint32_t bytes, bool *lanewise)
{
	if (n->flags & GR_WRITE || x->cluster != n->cluster || x->agent != n->agent
		|| x->epoch != n->epoch || !as_strict(n, x) || (n->flags ^ x->flags) & (GR_NC | GR_ASYNC))
		return false;
	if ((x->flags & GR_STRONG && !(n->flags & GR_STRONG)) || (x->flags & ~n->flags & GR_STALE))
		return false;
	if (x->flags & GR_MERGED)
		return true;
	if (global_same_layout(x, n))
		return true;
	if (shifted(x, n))
		return false;
	*lanewise = true;
	while (bytes) {
		unsigned b = (unsigned)__builtin_ctz(bytes);

		if (global_lanes_at(n, addr + b) & ~global_lanes_at(x, addr + b))
			return false;
		bytes &= ~global_same_lanes(x, n, b);
	}
	return true;
}

static bool strong_write(const struct entry *e)
{
	return (e->flags & (GR_STRONG | GR_WRITE | GR_ASYNC)) == (GR_STRONG | GR_WRITE);
}

static bool strong_read(uint8_t flags)
{
	return (flags & (GR_STRONG | GR_WRITE | GR_ASYNC)) == GR_STRONG;
}

/* Are both of one read-modify-write instruction, by other lanes? Nothing orders its lanes. */
static bool same_instruction(const struct global_record *x, const struct global_record *z)
{
	return x->cluster == z->cluster && x->agent == z->agent && x->epoch == z->epoch
		&& x->site == z->site && x->flags & z->flags & GR_RMW;
}

/* Which of `bytes` of entry i have strong accesses observed that are ordered before now, among
 * entries i + 1 to n, not the same ones for all lanes (PTX ISA 8.9.2, 8.9.5)? */
static uint32_t observed(struct visit *v, const struct entry *at, uint32_t n, uint32_t i,
	uint64_t addr, uint32_t bytes)
{
	const struct global_record *x = record_at(v->s, at[i].record);
	uint32_t left = bytes, seen = 0, missing[GRANULE]; /* lanes */

	if (!v->accessor->observed || !strong_write(&at[i]))
		return 0;
	memset(missing, 0xff, sizeof missing);
	for (uint32_t k = i + 1; k < n && left; k++) {
		const struct global_record *z = record_at(v->s, at[k].record);
		const uint32_t both = at[k].bytes & left;

		if (!both || at[k].record == v->record || same_instruction(x, z))
			continue;
		if ((at[k].flags & (GR_WRITE | GR_RMW)) == GR_WRITE || at[k].flags & GR_ASYNC) {
			left &= ~both; /* the end of the chain */
			continue;
		}
		if (!(at[k].flags & GR_STRONG) || z->flags & GR_STALE)
			continue;
		v->accessor->observed(v->accessor, x, z, v->now, addr, both, missing, &v->lanewise);
		for (uint32_t m = both; m; m &= m - 1)
			seen |= missing[__builtin_ctz(m)] ? 0 : m & -m;
		left &= ~seen;
	}
	return seen;
}

static bool same_lanes(const struct global_record *a, const struct global_record *b)
{
	return a->cluster == b->cluster && a->agent == b->agent && global_same_layout(a, b);
}

/* Is there a newer strong access to the bytes that reads, or a write that does not? */
static bool any_since(const struct entry *at, uint32_t n, uint32_t i, bool that_reads)
{
	for (uint32_t k = i + 1; k < n; k++) {
		const bool store = (at[k].flags & (GR_WRITE | GR_RMW)) == GR_WRITE;

		if (at[k].bytes & at[i].bytes && store != that_reads
			&& (store || at[k].flags & GR_STRONG))
			return true;
	}
	return false;
}

/* May now replace entry i, a strong access, although older strong writes are recorded? A store ends
 * their chain, for what has read since; else the entry may have observed them, and now must observe
 * the same. A weak write ends what matters. */
static bool observes_as_much(const struct shard *s, const struct entry *at, uint32_t n, uint32_t i,
	const struct global_record *now, uint32_t bytes)
{
	const struct global_record *x = record_at(s, at[i].record);
	const bool store = (at[i].flags & (GR_WRITE | GR_RMW)) == GR_WRITE;
	const bool stores = (now->flags & (GR_WRITE | GR_RMW)) == GR_WRITE;
	const bool alike = x->scope == now->scope && x->element == now->element;

	if ((now->flags & (GR_WRITE | GR_STRONG)) == GR_WRITE || !(at[i].flags & GR_STRONG)
		|| at[i].flags & GR_ASYNC || x->flags & GR_STALE || (store && stores && !any_since(at, n, i, true)))
		return true;
	for (uint32_t k = i; k-- > 0 && bytes;) {
		const struct global_record *w = record_at(s, at[k].record);

		if (!(at[k].bytes & bytes))
			continue;
		if (strong_write(&at[k]))
			return !store && now->flags & GR_RMW && alike && w->scope >= now->scope
				&& (!(now->flags & GR_UNREAD) || x->flags & GR_UNREAD)
				&& !any_since(at, n, i, false);
		if (at[k].flags & GR_WRITE)
			bytes &= ~(uint32_t)at[k].bytes;
		/* of the reads by one warp the first and the newest are kept */
		if (strong_read(at[k].flags) && strong_read(now->flags) && same_lanes(w, x) && alike
			&& !((w->flags | now->flags) & GR_STALE)
			&& w->scope == x->scope && !(at[i].bytes & ~at[k].bytes))
			return true;
	}
	return true;
}

static struct entry *scratch(struct shard *s, uint32_t n)
{
	if (n > s->cap_scratch) {
		s->cap_scratch = 2 * n;
		s->scratch = base_resize(s->scratch, s->cap_scratch * sizeof *s->scratch);
	}
	return s->scratch;
}

/* The entry to drop when too many have `flags`: one whose bytes others with these flags have, too,
 * if possible; of those a read by the highest cluster, else a write; never the newest. n: none. */
static uint32_t victim(const struct shard *s, const struct entry *at, uint32_t n, uint32_t flags)
{
	uint16_t once = 0, twice = 0;
	uint64_t most = 0;
	uint32_t worst = n;

	for (uint32_t i = 0; i < n; i++)
		if ((at[i].flags & flags) == flags) {
			twice |= once & at[i].bytes;
			once |= at[i].bytes;
		}
	for (uint32_t i = 0; i + 1 < n; i++) {
		const struct global_record *r;
		uint64_t key;

		if ((at[i].flags & flags) != flags)
			continue;
		r = record_at(s, at[i].record);
		key = (uint64_t)!(at[i].bytes & ~twice) << 63 | (uint64_t)!(r->flags & GR_WRITE) << 62
			| (uint64_t)r->cluster << 16 | r->agent;
		if (key >= most) {
			most = key;
			worst = i;
		}
	}
	return worst;
}

static uint32_t trim(struct visit *v, struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	const uint32_t most = s->bytes < MEMORY_LIMIT ? MAX_ENTRIES : MAX_ENTRIES_LOW;
	uint32_t strong = 0, i;

	if (n > 2 * KEPT_READERS && !v->accessor->synchronised)
		n = global_thin_readers(v, at, n);
	for (i = 0; i < n && n > MAX_ATOMICS; i++)
		strong += (at[i].flags & (GR_STRONG | GR_WRITE)) == (GR_STRONG | GR_WRITE);
	while (n > most || strong > MAX_ATOMICS) {
		i = victim(s, at, n, strong > MAX_ATOMICS ? GR_STRONG | GR_WRITE : 0);
		if (i == n)
			break;
		if ((at[i].flags & (GR_STRONG | GR_WRITE)) == (GR_STRONG | GR_WRITE))
			strong--;
		memmove(&at[i], &at[i + 1], (n - i - 1) * sizeof *at);
		n--;
		s->dropped++;
	}
	return n;
}

/* Does the access add nothing to what is remembered? */
static bool adds_nothing(struct visit *v, const struct entry *at, uint32_t n, uint8_t tag,
	uint64_t addr, uint16_t bytes)
{
	if (v->now->flags & GR_WRITE)
		return false;
	/* a strong read adds something if it follows another write, see advance() */
	for (uint32_t i = n; i-- > 0 && !(v->now->flags & at[i].flags & GR_STRONG
		&& at[i].flags & GR_WRITE);)
		if (at[i].tag == tag && !(bytes & ~at[i].bytes) && at[i].record != v->record
			&& repeats(record_at(v->s, at[i].record), v->now, addr, bytes, &v->lanewise))
			return true;
	return false;
}

static bool mergeable(const struct global_record *x, const struct global_record *n)
{
	const uint8_t kind = GR_WRITE | GR_STRONG | GR_NC | GR_ASYNC;

	return !(n->flags & (GR_WRITE | GR_STRONG | GR_ASYNC)) && !((x->flags ^ n->flags) & kind)
		&& x->agent == n->agent && x->epoch == n->epoch && x->cluster == n->cluster;
}

/* Reads by one warp in one epoch of bytes that the newest, at[n - 1], reads as well, by ever
 * different lanes, are merged into one entry when there are more than MERGE_ABOVE. The newest
 * stands for all, without lanes: see GR_MERGED. */
static uint32_t merge_reads(struct visit *v, struct entry *at, uint32_t n)
{
	const struct entry *newest = &at[n - 1];
	const uint16_t bytes = newest->bytes;
	const uint8_t tag = newest->tag;
	struct shard *s = v->s;
	bool merges[MAX_ENTRIES + 1];
	uint32_t same = 0, k = 0;

	for (uint32_t i = 0; i < n; i++) {
		merges[i] = at[i].tag == tag && !(at[i].bytes & ~bytes)
			&& mergeable(record_at(s, at[i].record), v->now);
		same += merges[i];
	}
	if (same <= MERGE_ABOVE)
		return n;
	if (!v->merged) {
		struct global_record r = *v->now;

		r.row = GR_WHOLE;
		r.lanes = UINT32_MAX;
		r.offset = NULL;
		r.flags |= GR_MERGED;
		v->merged = global_record_new(s, &r, v->region->number);
	}
	for (uint32_t i = 0; i < n; i++)
		if (!merges[i])
			at[k++] = at[i];
	at[k++] = (struct entry){ v->merged, bytes, (uint8_t)record_at(s, v->merged)->flags, tag };
	return k;
}

static bool any_write(const struct entry *at, uint32_t n)
{
	uint8_t flags = 0;

	for (uint32_t i = 0; i < n; i++)
		flags |= at[i].flags;
	return flags & GR_WRITE;
}

/* Fills the scratch with the granule's entries after the access, in the order of the accesses;
 * skip: the access adds nothing. */
static uint32_t advance(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes, bool skip)
{
	struct shard *s = v->s;
	const struct global_record *now = v->now;
	const uint32_t nfrom = from ? s->state[from].n : 0;
	struct entry *out = scratch(s, nfrom + 1);
	struct entry new_entry = { v->record, bytes, (uint8_t)now->flags, tag_of(now->cluster) };
	uint32_t n = 0;

	/* a further read keeps the saturated bytes; state 0 has none */
	memset(v->saturated, 0, sizeof v->saturated);
	if (from && !(now->flags & GR_WRITE))
		memcpy(v->saturated, s->state[from].saturated, sizeof v->saturated);
	for (uint32_t i = 0; i < nfrom; i++) {
		struct entry e = s->state[from].at[i];
		const uint32_t both = e.bytes & bytes;
		uint32_t unseen = both;
		const struct global_record *x;
		enum global_verdict is;
		bool write = (e.flags | now->flags) & GR_WRITE, gone;
		const bool both_strong = e.flags & now->flags & GR_STRONG;

		if (e.record == v->record) {
			new_entry.bytes |= e.bytes;
			continue;
		}
		if (!both || (!write && v->accessor->isolated && e.tag != new_entry.tag)) {
			out[n++] = e;
			continue;
		}
		x = record_at(s, e.record);
		/* a read by the own warp, in the same epoch, but of other lanes */
		if (!((e.flags | now->flags) & (GR_WRITE | GR_STRONG)) && x->agent == now->agent
			&& x->epoch == now->epoch && x->cluster == now->cluster) {
			out[n++] = e;
			continue;
		}
		/* it does not matter if the two are morally strong */
		if (!(both_strong && now->scope == 2 && as_strict(x, now)))
			unseen &= ~observed(v, s->state[from].at, nfrom, i, addr, both);
		is = unseen ? v->accessor->classify(v->accessor, x, now, addr, unseen, &v->lanewise)
			: GLOBAL_ORDERED;
		gone = !skip && x->met == now->met && as_strict(x, now) && (now->flags & GR_WRITE || !(e.flags & GR_WRITE))
			&& observes_as_much(s, s->state[from].at, nfrom, i, now, both)
			&& (is == GLOBAL_ORDERED || (is == GLOBAL_CONFLICT && x->cluster == now->cluster));
		if (gone)
			e.bytes &= (uint16_t)~bytes;
		if (e.bytes)
			out[n++] = e;
	}
	if (!skip)
		out[n++] = new_entry;
	if (!skip && n > MERGE_ABOVE && !(now->flags & (GR_WRITE | GR_STRONG | GR_ASYNC)))
		n = merge_reads(v, out, n);
	return trim(v, out, n);
}

static bool same_content(const struct state *x, const struct entry *at, uint32_t n)
{
	return x->n == n && !memcmp(x->at, at, n * sizeof *at);
}

uint32_t global_step(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes,
	uint32_t granules)
{
	struct shard *s = v->s;
	uint32_t n, to;
	bool lives, skip;

	for (unsigned k = 0; k < v->nmemo; k++)
		if (v->memo[k].from == from && v->memo[k].bytes == bytes) {
			to = v->memo[k].to;
			s->state[to].refs += granules;
			global_state_put(v, from, granules);
			v->lanewise = false;
			return to;
		}
	v->lanewise = false;
	skip = from && adds_nothing(v, s->state[from].at, s->state[from].n, tag_of(v->now->cluster),
		addr, bytes);
	if (skip && !(v->lanewise && granules > 1) && !any_write(s->state[from].at, s->state[from].n))
		return from; /* no comparison is needed */
	n = advance(v, from, addr, bytes, skip);
	if (v->lanewise && granules > 1)
		return UINT32_MAX;
	if (from && same_content(&s->state[from], s->scratch, n))
		return from;
	/* the same result as before: share it */
	to = v->last && same_content(&s->state[v->last], s->scratch, n) ? v->last : 0;
	if (!to && from && s->state[from].refs == granules) {
		global_state_set(v, from, s->scratch, n);
		v->last = from;
		return from;
	}
	if (!to)
		to = global_state_new(v, s->scratch, n);
	lives = !from || s->state[from].refs > granules;
	s->state[to].refs += granules;
	global_state_put(v, from, granules);
	v->last = to;
	if (!v->lanewise && lives) {
		if (v->nmemo == MEMO)
			v->memo[0] = v->memo[--v->nmemo];
		v->memo[v->nmemo++] = (struct memo){ from, to, bytes };
	}
	return to;
}
