/* global: the shadow of global memory, see global.h. Finds conflicts and forgets
 * what can no longer take part in one; does not know what a conflict means.
 *
 * What may be forgotten, byte by byte; x is recorded, n is the new access:
 *  - n knows x (GLOBAL_ORDERED): a later y that conflicts with x conflicts with
 *    n, unless n is a read and x a write, and y can be ordered after n only if it
 *    is ordered after x, as causality is transitive. So x goes. Not if n is
 *    strong and x is not, or n is narrower in scope or of another size or proxy:
 *    then y may be at peace with n and not with x. Reads past the memory model
 *    (.nc) go only for other such reads.
 *  - n clashes with x: has been reported. x goes if it is of n's own cluster,
 *    whose events come in an order that no thread timing changes; x of another
 *    cluster stays, because which of the two came first is chance, and what is
 *    reported must not depend on it: so every pair is seen in either order.
 *  - mutually strong ones stay both. A later access that knows a strong read or
 *    read-modify-write is ordered after the strong writes which that one saw.
 *  - n reads what its own lanes wrote or read in the same epoch: n adds nothing.
 * While no cluster has handed anything to another, no access is ever ordered with
 * another cluster's: of their reads the OTHERS lowest stand for all.
 * When a state grows beyond MANY accesses while memory is plenty, FEW when it
 * is not, the accesses of the highest clusters go, reads first: what stays is
 * the same whatever order they came in. That is the one thing forgotten without
 * proof, and it is counted.
 *
 * Invariant: refs of a state = granules that have it (pages that are uniform
 * count 256); refs of a record = states that hold it. State 0 is the empty one
 * and is not counted. */
#include "global.h"

#include "../libconsan/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define REGION_SHIFT 12
#define REGION_BYTES (1ull << REGION_SHIFT)
#define PAGE_BYTES 4096u
#define PAGE_GRANULES (PAGE_BYTES / GRANULE)
#define PAGES (REGION_BYTES / PAGE_BYTES)
#define SHARDS 64u
#define MANY 256u
#define FEW 24u
#define ATOMICS 16u
#define CROWD 4u
#define OTHERS 6u         /* readers of other clusters, while no clusters synchronise */
#define PLENTY (4u << 20) /* bytes of a shard's states and records */
#define NOTES_SHIFT 17
#define NOTES (1u << NOTES_SHIFT)
#define MEMO 8u
#define CHUNK 512u

struct page {
	uint32_t *id;   /* state of each granule, or NULL: all have `all` */
	uint32_t all;
};

struct region {
	uint64_t number; /* addr >> REGION_SHIFT */
	struct region *next;
	struct page page[PAGES];
};

struct entry {
	uint32_t record;
	uint16_t bytes;
	uint8_t flags;   /* of the record */
	uint8_t tag;     /* of its cluster */
};

/* Bytes that enough clusters have read, and nobody has written: a read of that
 * kind by a cluster above `above` adds nothing while no clusters synchronise. */
struct crowded {
	uint32_t above;
	uint16_t bytes; /* 0: none */
};

enum { READ_PLAIN, READ_NC, NREADS };

struct state {
	uint32_t refs;
	uint16_t n, cap; /* cap is a power of two, or 0: the place is free */
	struct entry *at;
	struct crowded crowded[NREADS];
};

struct memo {
	uint32_t from, to;
	uint16_t bytes;
};

struct shard {
	pthread_mutex_t lock;
	struct region **region; /* hash */
	uint32_t nregions, cap_regions;
	struct global_record **record; /* chunks; index 0 is nobody */
	uint32_t nrecords, free_record;
	struct state *state;
	uint32_t nstates, cap_states, free_state;
	struct entry *spare[16]; /* free arrays of 1 << i entries, linked through themselves */
	struct entry *scratch;
	uint32_t cap_scratch;
	size_t bytes;
	uint64_t visits, forgot;
};

struct global_shadow {
	struct shard shard[SHARDS];
	uint64_t crowded[NOTES]; /* see note_of() */
};

/* One access on its way through one region. */
struct visit {
	struct global_shadow *g;
	struct shard *s;
	struct global_ask *ask;
	const struct global_record *from;
	const uint64_t *lane_addr;
	const struct global_record *now; /* the same, as this region keeps it */
	uint32_t record;         /* index of now's record in this region ... */
	uint32_t crowd;          /* ... and of what stands for it in a crowd, or 0 */
	struct region *region;
	struct memo memo[MEMO];
	unsigned nmemo;
	uint32_t last;           /* the newest outcome, or 0 */
	struct crowded crowded[NREADS]; /* of the outcome in scratch */
	bool lanewise;           /* the last step's answer was for one granule only */
};

static uint32_t listed_at(const struct global_record *r, uint64_t addr)
{
	uint32_t at = (uint32_t)(addr & (REGION_BYTES - 1)), found = 0;

	for (uint32_t m = r->lanes; m; m &= m - 1) {
		unsigned l = (unsigned)__builtin_ctz(m);

		/* an access never crosses a region: it is aligned */
		if (at - r->offset[l] < r->size)
			found |= m & -m;
	}
	return found;
}

/* The lanes of a row, of which the first has its bytes d before: of all places
 * that the row moved to, in steps. */
static uint32_t row_at(const struct global_record *r, int64_t d)
{
	const int64_t size = r->size, inner = r->inner, most = (1 << r->row) - 1;
	const int64_t low = inner < 0 ? most * inner : 0;
	const int64_t high = (inner > 0 ? most * inner : 0) + size;
	const int64_t step = r->step, last = step && r->count > 1 ? r->count - 1 : 0;
	const int64_t all = step * last;
	int64_t k = 0;
	uint32_t found = 0;

	if (d < low + (all < 0 ? all : 0) || d >= high + (all > 0 ? all : 0))
		return 0;
	/* the first k for which low <= d - k * step < high, if there is one */
	if (step > 0 && d >= high)
		k = (d - high) / step + 1;
	else if (step < 0 && d < low)
		k = (low - d - 1) / -step + 1;
	for (; k <= last; k++) {
		int64_t in = d - k * step;

		if (in < low || in >= high)
			break;
		if (!inner)
			return (uint32_t)((2ull << most) - 1);
		if (inner == size) {
			found |= 1u << in / size;
			continue;
		}
		for (int64_t l = 0; l <= most; l++)
			if (in - l * inner >= 0 && in - l * inner < size)
				found |= 1u << l;
	}
	return found;
}

uint32_t global_lanes_at(const struct global_record *r, uint64_t addr)
{
	const int64_t d = (int64_t)(addr - r->base), width = (int64_t)r->size << (r->row & 31);
	uint32_t found = 0;

	if (r->row == GR_WHOLE)
		return r->lanes;
	if (r->row == GR_LIST)
		return listed_at(r, addr);
	if (r->count <= 1 && r->inner == r->size && r->pitch >= width) {
		int64_t k = d / r->pitch, in = d % r->pitch;

		if (d < 0 || in >= width || k >= 32 >> r->row)
			return 0;
		return r->lanes & 1u << ((k << r->row) + in / r->size);
	}
	for (int64_t k = 0; k < 32 >> r->row; k++)
		found |= row_at(r, d - k * r->pitch) << (k << r->row);
	return found & r->lanes;
}

static bool aligned(const struct global_record *r)
{
	const uint64_t all = r->row == GR_LIST ? r->base
		: r->base | (uint64_t)r->pitch | (uint64_t)r->inner | (r->count > 1 ? (uint64_t)r->step : 0);

	return r->size && !(r->size & (r->size - 1)) && !(all & (r->size - 1u));
}

uint32_t global_alike(const struct global_record *a, const struct global_record *b, unsigned byte)
{
	const unsigned size = a->size < b->size ? a->size : b->size;

	if (a->row == GR_WHOLE || b->row == GR_WHOLE || !aligned(a) || !aligned(b))
		return 1u << byte;
	return size >= GRANULE ? 0xffff : ((1u << size) - 1) << (byte & -size);
}

/* ---- records ---- */

static struct global_record *record_at(const struct shard *s, uint32_t i)
{
	return &s->record[i / CHUNK][i % CHUNK];
}

/* lane_addr: of a GR_LIST. Lanes elsewhere have no part in this region's record. */
static uint32_t record_new(struct shard *s, const struct global_record *from,
	const uint64_t *lane_addr, uint64_t number)
{
	uint32_t i = s->free_record;
	struct global_record *r;

	if (i) {
		s->free_record = record_at(s, i)->refs;
	} else {
		i = s->nrecords ? s->nrecords : 1;
		if (i % CHUNK == 0 || i == 1) {
			s->record = base_resize(s->record, (i / CHUNK + 1) * sizeof *s->record);
			s->record[i / CHUNK] = base_alloc(CHUNK * sizeof *r);
			s->bytes += CHUNK * sizeof *r;
		}
		s->nrecords = i + 1;
	}
	r = record_at(s, i);
	*r = *from;
	r->refs = 1; /* the access, while it lasts */
	if (r->row == GR_LIST) {
		uint16_t *offset = base_alloc(32 * sizeof *offset);

		for (uint32_t m = from->lanes; m; m &= m - 1) {
			unsigned l = (unsigned)__builtin_ctz(m);

			if (lane_addr[l] >> REGION_SHIFT == number)
				offset[l] = (uint16_t)lane_addr[l];
			else
				r->lanes &= ~(1u << l);
		}
		r->offset = offset;
		s->bytes += 32 * sizeof *offset;
	}
	return i;
}

static void record_free(struct shard *s, uint32_t i)
{
	struct global_record *r = record_at(s, i);

	if (r->row == GR_LIST) {
		free(r->offset);
		s->bytes -= 32 * sizeof *r->offset;
	}
	r->row = 0;
	r->refs = s->free_record;
	s->free_record = i;
}

static void record_put(struct shard *s, uint32_t i)
{
	if (--record_at(s, i)->refs == 0)
		record_free(s, i);
}

/* ---- states ---- */

static struct entry *entries_new(struct shard *s, uint32_t cap)
{
	unsigned class = (unsigned)__builtin_ctz(cap);
	struct entry *at = s->spare[class];

	if (at) {
		memcpy(&s->spare[class], at, sizeof(void *));
		return at;
	}
	s->bytes += cap * sizeof *at;
	return base_alloc(cap * sizeof *at);
}

static void entries_free(struct shard *s, struct entry *at, uint32_t cap)
{
	unsigned class = (unsigned)__builtin_ctz(cap);

	memcpy(at, &s->spare[class], sizeof(void *));
	s->spare[class] = at;
}

_Static_assert(sizeof(struct entry) >= sizeof(struct entry *), "a free array links to the next");

static uint32_t room_for(uint32_t n)
{
	return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static uint32_t state_new(struct visit *v, const struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	uint32_t i = s->free_state;
	struct state *x;

	if (i) {
		s->free_state = s->state[i].refs;
	} else {
		if (s->nstates == s->cap_states) {
			uint32_t cap = s->cap_states ? 2 * s->cap_states : 64;

			s->state = base_resize(s->state, cap * sizeof *s->state);
			s->bytes += (cap - s->cap_states) * sizeof *s->state;
			s->cap_states = cap;
			if (!s->nstates)
				s->state[s->nstates++] = (struct state){ 0 };
		}
		i = s->nstates++;
	}
	x = &s->state[i];
	x->refs = 0;
	x->n = (uint16_t)n;
	x->cap = (uint16_t)room_for(n);
	x->at = entries_new(s, x->cap);
	memcpy(x->at, at, n * sizeof *at);
	memcpy(x->crowded, v->crowded, sizeof x->crowded);
	for (uint32_t k = 0; k < n; k++)
		record_at(s, at[k].record)->refs++;
	return i;
}

static void state_free(struct shard *s, uint32_t i)
{
	struct state *x = &s->state[i];

	for (uint32_t k = 0; k < x->n; k++)
		record_put(s, x->at[k].record);
	entries_free(s, x->at, x->cap);
	x->cap = x->n = 0;
	x->at = NULL;
	x->refs = s->free_state;
	s->free_state = i;
}

static void forget_memo(struct visit *v, uint32_t state)
{
	if (v->last == state)
		v->last = 0;
	for (unsigned k = 0; k < v->nmemo;)
		if (v->memo[k].from == state || v->memo[k].to == state)
			v->memo[k] = v->memo[--v->nmemo];
		else
			k++;
}

static void state_put(struct visit *v, uint32_t i, uint32_t granules)
{
	struct state *x = &v->s->state[i];

	if (!i)
		return;
	x->refs -= granules;
	if (x->refs)
		return;
	forget_memo(v, i);
	state_free(v->s, i);
}

/* The state's content becomes at[0..n), for all granules that have it. */
static void state_set(struct visit *v, uint32_t i, const struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	struct state *x = &s->state[i];
	uint32_t cap = room_for(n);
	struct entry *was = x->at;
	uint32_t nwas = x->n, capwas = x->cap;

	for (uint32_t k = 0; k < n; k++)
		record_at(s, at[k].record)->refs++;
	if (cap > capwas || 4 * cap <= capwas) {
		x->at = entries_new(s, cap);
		x->cap = (uint16_t)cap;
	}
	for (uint32_t k = 0; k < nwas; k++)
		record_put(s, was[k].record);
	memcpy(x->at, at, n * sizeof *at);
	memcpy(x->crowded, v->crowded, sizeof x->crowded);
	x->n = (uint16_t)n;
	if (x->at != was)
		entries_free(s, was, capwas);
	forget_memo(v, i);
}

/* ---- what an access does to a state ---- */

static uint8_t tag_of(uint32_t cluster)
{
	return (uint8_t)(cluster ^ cluster >> 8 ^ cluster >> 16);
}

/* Whatever is at peace with n is so with x, too, if it is ordered after n. */
static bool as_strict(const struct global_record *x, const struct global_record *n)
{
	if (x->flags & GR_NC && !(n->flags & GR_NC))
		return false;
	if (!(n->flags & GR_STRONG))
		return true;
	return x->flags & GR_STRONG && x->element == n->element && x->scope >= n->scope
		&& !((x->flags ^ n->flags) & GR_ASYNC);
}

/* The same lanes, in the same epoch: n says what x says already. */
static bool repeats(const struct global_record *x, const struct global_record *n, uint64_t addr,
	uint32_t bytes, bool *lanewise)
{
	if (n->flags & GR_WRITE || x->cluster != n->cluster || x->agent != n->agent
		|| x->epoch != n->epoch || !as_strict(n, x) || (n->flags ^ x->flags) & (GR_NC | GR_ASYNC))
		return false;
	if (x->flags & GR_STRONG && !(n->flags & GR_STRONG))
		return false;
	if (x->flags & GR_CROWD)
		return true;
	if (x->base == n->base && x->row == n->row && x->pitch == n->pitch && x->size == n->size
		&& x->inner == n->inner && x->lanes == n->lanes && x->row != GR_LIST
		&& x->count <= 1 && n->count <= 1)
		return true;
	*lanewise = true;
	while (bytes) {
		unsigned b = (unsigned)__builtin_ctz(bytes);

		if (global_lanes_at(n, addr + b) & ~global_lanes_at(x, addr + b))
			return false;
		bytes &= ~global_alike(x, n, b);
	}
	return true;
}

/* x is a strong write, and `seen`, which came later, read what it or its chain
 * left: both are strong to each other. */
static bool observed(const struct global_record *seen, const struct global_record *x)
{
	return (x->flags & (GR_STRONG | GR_WRITE | GR_ASYNC)) == (GR_STRONG | GR_WRITE)
		&& x->element == seen->element && (x->cluster == seen->cluster
		|| (x->scope == 2 && seen->scope == 2));
}

static struct entry *scratch(struct shard *s, uint32_t n)
{
	if (n > s->cap_scratch) {
		s->cap_scratch = 2 * n;
		s->scratch = base_resize(s->scratch, s->cap_scratch * sizeof *s->scratch);
	}
	return s->scratch;
}

/* Which of `flags` goes when there are too many of them: a read by the highest
 * cluster, else a write; not the newest. n: none. */
static uint32_t victim(const struct shard *s, const struct entry *at, uint32_t n, uint32_t flags)
{
	uint64_t most = 0;
	uint32_t worst = n;

	for (uint32_t i = 0; i + 1 < n; i++) {
		const struct global_record *r = record_at(s, at[i].record);
		uint64_t key = (uint64_t)!(r->flags & GR_WRITE) << 63 | (uint64_t)r->cluster << 16 | r->agent;

		if ((r->flags & flags) == flags && key >= most) {
			most = key;
			worst = i;
		}
	}
	return worst;
}

/* ---- reads by many clusters ---- */

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

static uint32_t trim_readers(struct visit *v, struct entry *at, uint32_t n)
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

static uint32_t trim(struct visit *v, struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	const uint32_t most = s->bytes < PLENTY ? MANY : FEW;
	uint32_t strong = 0, i;

	if (n > 2 * OTHERS && !v->ask->synchronised)
		n = trim_readers(v, at, n);
	for (i = 0; i < n && n > ATOMICS; i++)
		strong += (at[i].flags & (GR_STRONG | GR_WRITE)) == (GR_STRONG | GR_WRITE);
	while (n > most || strong > ATOMICS) {
		i = victim(s, at, n, strong > ATOMICS ? GR_STRONG | GR_WRITE : 0);
		if (i == n)
			break;
		if ((at[i].flags & (GR_STRONG | GR_WRITE)) == (GR_STRONG | GR_WRITE))
			strong--;
		memmove(&at[i], &at[i + 1], (n - i - 1) * sizeof *at);
		n--;
		s->forgot++;
	}
	return n;
}

/* The access adds nothing to what is remembered. */
static bool adds_nothing(struct visit *v, const struct entry *at, uint32_t n, uint8_t tag,
	uint64_t addr, uint16_t bytes)
{
	if (v->now->flags & GR_WRITE)
		return false;
	/* a strong read says more if it comes after another write, see advance() */
	for (uint32_t i = n; i-- > 0 && !(v->now->flags & at[i].flags & GR_STRONG
		&& at[i].flags & GR_WRITE);)
		if (at[i].tag == tag && !(bytes & ~at[i].bytes) && at[i].record != v->record
			&& repeats(record_at(v->s, at[i].record), v->now, addr, bytes, &v->lanewise))
			return true;
	return false;
}

static bool crowds(const struct global_record *x, const struct global_record *n)
{
	const uint8_t kind = GR_WRITE | GR_STRONG | GR_NC | GR_ASYNC;

	return !(n->flags & (GR_WRITE | GR_STRONG | GR_ASYNC)) && !((x->flags ^ n->flags) & kind)
		&& x->agent == n->agent && x->epoch == n->epoch && x->cluster == n->cluster;
}

/* A warp that reads a place again and again, by other lanes each time, is
 * remembered as one: beyond CROWD entries of one epoch. */
static uint32_t join_crowd(struct visit *v, struct entry *at, uint32_t n)
{
	struct shard *s = v->s;
	uint32_t same = 0, k = 0;
	uint16_t bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		same += at[i].tag == at[n - 1].tag && crowds(record_at(s, at[i].record), v->now);
	if (same <= CROWD)
		return n;
	if (!v->crowd) {
		struct global_record r = *v->now;

		r.row = GR_WHOLE;
		r.lanes = UINT32_MAX;
		r.offset = NULL;
		r.flags |= GR_CROWD;
		v->crowd = record_new(s, &r, NULL, v->region->number);
	}
	for (uint32_t i = 0; i < n; i++)
		if (at[i].tag == at[n - 1].tag && crowds(record_at(s, at[i].record), v->now))
			bytes |= at[i].bytes;
		else
			at[k++] = at[i];
	at[k++] = (struct entry){ v->crowd, bytes, record_at(s, v->crowd)->flags, tag_of(v->now->cluster) };
	return k;
}

/* Fills the scratch with what the granule remembers after the access. Newest
 * first: a strong access that now knows has observed the strong writes before
 * it, back to where their chain began, so that they are ordered before now, too. */
static uint32_t advance(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes)
{
	struct shard *s = v->s;
	const struct global_record *now = v->now, *seen = NULL;
	const uint32_t nfrom = from ? s->state[from].n : 0;
	struct entry *out = scratch(s, nfrom + 1);
	struct entry mine = { v->record, bytes, now->flags, tag_of(now->cluster) };
	uint32_t k = nfrom, n;
	bool skip = nfrom && adds_nothing(v, s->state[from].at, nfrom, mine.tag, addr, bytes);

	/* another read takes nothing from what was read; state 0 has nothing */
	memset(v->crowded, 0, sizeof v->crowded);
	if (from && !(now->flags & GR_WRITE))
		memcpy(v->crowded, s->state[from].crowded, sizeof v->crowded);
	for (uint32_t i = nfrom; i-- > 0;) {
		struct entry e = s->state[from].at[i];
		uint32_t both = e.bytes & bytes;
		const struct global_record *x;
		enum global_verdict is;
		bool write = (e.flags | now->flags) & GR_WRITE, gone;

		if (e.record == v->record) {
			mine.bytes |= e.bytes;
			continue;
		}
		if (!both || (!write && v->ask->lonely && e.tag != mine.tag)) {
			out[--k] = e;
			continue;
		}
		x = record_at(s, e.record);
		if (seen && observed(seen, x))
			is = GLOBAL_ORDERED;
		else
			is = v->ask->judge(v->ask, x, now, addr, both, &v->lanewise);
		if (seen && (x->flags & (GR_WRITE | GR_RMW)) == GR_WRITE)
			seen = NULL;
		if (is == GLOBAL_ORDERED && x->flags & GR_STRONG && (x->flags & GR_RMW
			|| !(x->flags & GR_WRITE)) && !(x->flags & GR_ASYNC))
			seen = x;
		gone = !skip && as_strict(x, now) && (now->flags & GR_WRITE || !(e.flags & GR_WRITE))
			&& (is == GLOBAL_ORDERED || (is == GLOBAL_CLASH && x->cluster == now->cluster));
		if (gone)
			e.bytes &= (uint16_t)~bytes;
		if (e.bytes)
			out[--k] = e;
	}
	n = nfrom - k;
	memmove(out, out + k, n * sizeof *out);
	if (!skip)
		out[n++] = mine;
	if (!skip && n > CROWD && !(now->flags & (GR_WRITE | GR_STRONG | GR_ASYNC)))
		n = join_crowd(v, out, n);
	return trim(v, out, n);
}

static bool same_content(const struct state *x, const struct entry *at, uint32_t n)
{
	return x->n == n && !memcmp(x->at, at, n * sizeof *at);
}

/* The state of `granules` granules that all have `from` now, of which this access
 * touches `bytes`; addr: the first. */
static uint32_t step(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes,
	uint32_t granules)
{
	struct shard *s = v->s;
	uint32_t n, to;
	bool lives;

	for (unsigned k = 0; k < v->nmemo; k++)
		if (v->memo[k].from == from && v->memo[k].bytes == bytes) {
			to = v->memo[k].to;
			s->state[to].refs += granules;
			state_put(v, from, granules);
			v->lanewise = false;
			return to;
		}
	v->lanewise = false;
	n = advance(v, from, addr, bytes);
	if (v->lanewise && granules > 1)
		return UINT32_MAX;
	if (from && same_content(&s->state[from], s->scratch, n))
		return from;
	/* the same outcome as before: share it */
	to = v->last && same_content(&s->state[v->last], s->scratch, n) ? v->last : 0;
	if (!to && from && s->state[from].refs == granules) {
		state_set(v, from, s->scratch, n);
		v->last = from;
		return from;
	}
	if (!to)
		to = state_new(v, s->scratch, n);
	lives = !from || s->state[from].refs > granules;
	s->state[to].refs += granules;
	state_put(v, from, granules);
	v->last = to;
	if (!v->lanewise && lives) {
		if (v->nmemo == MEMO)
			v->memo[0] = v->memo[--v->nmemo];
		v->memo[v->nmemo++] = (struct memo){ from, to, bytes };
	}
	return to;
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

static void note(struct global_shadow *g, const struct crowded is[NREADS], uint64_t addr)
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

static bool is_crowded(const struct shard *s, uint32_t state)
{
	return state && s->state[state].crowded[READ_PLAIN].bytes | s->state[state].crowded[READ_NC].bytes;
}

static void note_all(struct visit *v, uint64_t addr, uint32_t granules, uint32_t state, bool was)
{
	if (!was && !is_crowded(v->s, state))
		return;
	for (uint32_t i = 0; i < granules; i++)
		note(v->g, v->s->state[state].crowded, addr + i * GRANULE);
}

bool global_shadow_crowded(const struct global_shadow *g, const struct global_record *r,
	uint64_t addr, uint64_t bytes)
{
	const int kind = kind_of_read(r->flags);
	const uint64_t end = addr + bytes;

	if (kind < 0)
		return false;
	for (uint64_t next; addr < end; addr = next) {
		const uint64_t key = note_key(addr, kind);
		const uint64_t n = __atomic_load_n(&g->crowded[key % NOTES], __ATOMIC_RELAXED);
		unsigned words = 0xfu << addr % GRANULE / 4 & 0xf;

		next = (addr | (GRANULE - 1)) + 1;
		if (next > end)
			words &= 0xfu >> (next - end) / 4;
		if (r->cluster <= n >> 32 || n != (note_of(key, (uint32_t)(n >> 32), 0)
			| (n & 0xf0000000)) || words & ~(n >> 28 & 0xf))
			return false;
	}
	return true;
}

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
		bool crowded = is_crowded(v->s, was);

		for (k = i + 1; k < end && p->id[k] == was && !v->lanewise; k++)
			;
		now = step(v, was, base + i * GRANULE, bytes, k - i);
		if (now == UINT32_MAX) { /* the lanes matter: one by one */
			k = i + 1;
			now = step(v, was, base + i * GRANULE, bytes, 1);
		}
		if (now != was)
			fill(p->id + i, k - i, now);
		note_all(v, base + i * GRANULE, k - i, now, crowded);
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
		bool crowded = is_crowded(v->s, p->all);
		uint32_t now = step(v, p->all, addr, mask, PAGE_GRANULES);

		if (now != UINT32_MAX) {
			p->all = now;
			note_all(v, addr, PAGE_GRANULES, now, crowded);
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

static void enter(struct global_shadow *g, struct visit *v, uint64_t number)
{
	v->g = g;
	v->s = shard_of(g, number);
	pthread_mutex_lock(&v->s->lock);
	v->region = region_of(v->s, number);
	v->record = record_new(v->s, v->from, v->lane_addr, number);
	v->now = record_at(v->s, v->record);
	v->crowd = 0;
	v->nmemo = 0;
	v->last = 0;
	v->lanewise = false;
}

static void leave(struct visit *v)
{
	if (!v->region)
		return;
	record_put(v->s, v->record);
	if (v->crowd)
		record_put(v->s, v->crowd);
	pthread_mutex_unlock(&v->s->lock);
	v->region = NULL;
}

void global_shadow_touch(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans)
{
	struct visit v = { .ask = a, .from = now, .lane_addr = lane_addr };

	for (size_t i = 0; i < nspans; i++) {
		uint64_t addr = spans[i].addr, end = addr + spans[i].bytes, next;

		for (; addr < end; addr = next) {
			uint64_t number = addr >> REGION_SHIFT;

			next = (addr | (PAGE_BYTES - 1)) + 1;
			if (!a->synchronised && global_shadow_crowded(g, now, addr, (next < end ? next : end) - addr))
				continue;
			if (!v.region || v.region->number != number) {
				leave(&v);
				enter(g, &v, number);
			}
			touch_page(&v, addr, next < end ? next : end,
				spans[i].mask ? spans[i].mask : 0xffff);
		}
	}
	leave(&v);
}

void global_shadow_forget(struct global_shadow *g, uint64_t addr, uint64_t bytes)
{
	static const struct crowded nobody[NREADS];
	uint64_t end = addr + bytes;

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

			state_put(&v, *id, 1);
			*id = 0;
			note(g, nobody, addr);
		}
		pthread_mutex_unlock(&v.s->lock);
	}
}

/* ---- lifetimes ---- */

struct global_shadow *global_shadow_open(void)
{
	struct global_shadow *g = base_alloc(sizeof *g);
	pthread_mutexattr_t spins; /* a visit is shorter than falling asleep */

	pthread_mutexattr_init(&spins);
	pthread_mutexattr_settype(&spins, PTHREAD_MUTEX_ADAPTIVE_NP);
	for (unsigned i = 0; i < SHARDS; i++)
		pthread_mutex_init(&g->shard[i].lock, &spins);
	pthread_mutexattr_destroy(&spins);
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
	free(g);
}

size_t global_shadow_footprint(const struct global_shadow *g)
{
	size_t bytes = sizeof *g;

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

uint64_t global_shadow_forgot(const struct global_shadow *g)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < SHARDS; i++)
		n += g->shard[i].forgot;
	return n;
}
