/* table: the shadow of one CTA's shared memory. Finds conflicts and forgets
 * what can no longer take part in one; does not know what a conflict means.
 *
 * What may be forgotten. Let x be recorded and n be the new access, both on
 * byte b; "y knows x" means that the frontier of y holds x's agent, lane and
 * epoch, in the generic plane G or in the proxy-fenced plane P.
 *  - n writes: any later access that conflicts with x conflicts with n, too.
 *    If n knows x, whoever knows n knows x (frontiers travel whole), so x can
 *    go. In plane P likewise: a fence that covers n was executed by someone
 *    who knew n, hence x, in G, and it raised P to all of that G. If n does
 *    not know x, that has just been reported, and once is enough. Only a pair
 *    of mutually strong accesses is kept: neither ordered nor a race, both
 *    matter to a later weak access.
 *  - n reads, x reads: only a later write w cares. If n knows x, a w that
 *    knows n knows x: x can go. If x is the same agent's and x's lanes are
 *    among n's, knowing n (at a later or equal epoch) includes knowing x:
 *    x can go, whether or not the lanes know of each other.
 *    An async n may only retire a generic x that it knows in P, because a
 *    later async w is asked for x in P, and does not get it through n. That is
 *    what the view's known_generic of an async accessor holds.
 *  - n reads, x is the same lanes' write of the same epoch: n adds nothing, as
 *    every access that conflicts with n conflicts with x, same knowledge asked.
 *  - A strong n stands for no weak x, see as_strict().
 * Reads of bulk stores and of wgmma become known only through the issuing
 * lane or warps, who by then still know all they knew at issue. */
#include "table.h"

#include "../libconsan/base.h"

#include <stdlib.h>
#include <string.h>

#define SELDOM(x) __builtin_expect(!!(x), 0)

void shadow_open(struct shadow *s, uint32_t bytes)
{
	*s = (struct shadow){ .gen = 1 };
	s->ncells = (bytes + CELL_BYTES - 1) / CELL_BYTES;
	/* calloc: what is not touched costs no page */
	s->memory = base_alloc((s->ncells + 2) * sizeof *s->cell);
	s->cell = (struct cell *)(((uintptr_t)s->memory + 63) & ~(uintptr_t)63);
}

void shadow_share(struct shadow *s, uint32_t shards, uint32_t turn)
{
	s->others = shards - 1;
	s->turn = turn;
}

/* Granules of one share that lie together: their cells are a page. */
#define SHARE 64u

static inline bool is_mine(const struct shadow *s, uint32_t granule)
{
	return (granule / SHARE & s->others) == s->turn;
}

void shadow_reset(struct shadow *s)
{
	s->npool = 0;
	s->free_cell = 0;
	if (++s->gen)
		return;
	memset(s->cell, 0, (s->ncells + 1) * sizeof *s->cell);
	s->gen = 1;
}

void shadow_close(struct shadow *s)
{
	free(s->memory);
	free(s->pool);
	*s = (struct shadow){ 0 };
}

size_t shadow_footprint(const struct shadow *s)
{
	return ((size_t)s->ncells + s->cappool) * sizeof(struct cell);
}

static uint32_t chain_cell(struct shadow *s)
{
	uint32_t at = s->free_cell;

	if (at) {
		s->free_cell = s->pool[at - 1].more;
	} else {
		if (s->npool == s->cappool) {
			s->cappool = s->cappool ? 2 * s->cappool : 64;
			s->pool = base_resize(s->pool, s->cappool * sizeof *s->pool);
		}
		at = ++s->npool;
	}
	s->pool[at - 1].more = 0;
	return at;
}

/* A table is larger than the first cache: whoever knows where it goes next
 * says so some granules ahead. */
#define AHEAD 8u

static inline void fetch(const struct shadow *s, uint32_t granule)
{
	const char *at = (const char *)&s->cell[granule < s->ncells ? granule : s->ncells];

	__builtin_prefetch(at, 1);
}

/* Appends a cell to the chain's last one, which may move: the pool does. */
static struct cell *grow(struct shadow *s, struct cell *last)
{
	bool pooled = last >= s->pool && last < s->pool + s->npool;
	size_t index = pooled ? (size_t)(last - s->pool) : 0;
	uint32_t at = chain_cell(s);

	if (pooled)
		last = &s->pool[index];
	last->more = at;
	return &s->pool[at - 1];
}

static inline struct cell *open_cell(struct shadow *s, uint32_t granule)
{
	struct cell *c = &s->cell[granule];

	if (SELDOM(c->gen != s->gen)) {
		c->gen = s->gen;
		c->init = c->n = c->writes = c->guard = c->readers = 0;
		c->more = 0;
	}
	return c;
}

static inline uint16_t reader_bit(uint32_t agent)
{
	return (uint16_t)(1u << (agent & 15));
}

/* Entry number `at` of the cell. */
static inline void note_entry(struct cell *c, const struct cell_entry *x, uint32_t at)
{
	if (x->what & CELL_WRITE)
		c->writes = (uint16_t)(at + 1);
	else
		c->readers |= reader_bit(x->agent);
}

/* What to do with a recorded entry in face of the new one. SKIP_NEW: it says all
 * that the new one would say, which therefore is not recorded; it is still
 * compared with the others. */
enum fate { KEEP, DROP, TRIM, SKIP_NEW };

static inline bool same_track(const struct cell_entry *x, const struct cell_entry *now)
{
	return x->agent == now->agent
		&& (x->what & CELL_SHIFT_MASK) == (now->what & CELL_SHIFT_MASK);
}

static inline bool lookup(const struct shadow_view *v, const struct cell_entry *x)
{
	const uint32_t *known = x->agent < v->ngeneric ? v->known_generic : v->known;

	return known[x->agent] >= x->epoch;
}

/* Whatever is no race with now is none with x: so now may stand for x. Not if
 * only now is strong: a third strong access would then race with x alone. */
static inline bool as_strict(const struct cell_entry *x, const struct cell_entry *now)
{
	if (!(now->what & CELL_STRONG))
		return true;
	return x->what & CELL_STRONG && !((x->what ^ now->what) & CELL_SHIFT_MASK)
		&& (x->what & CELL_SCOPE_MASK) >= (now->what & CELL_SCOPE_MASK);
}

/* now: the access; rec: what will be recorded for it, grown by what of the same
 * instruction and epoch it takes over. */
static inline enum fate face(struct shadow_view *v, const struct cell_entry *x,
	const struct cell_entry *now, struct cell_entry *rec, uint32_t granule)
{
	uint32_t both = x->bytes & now->bytes;
	enum shadow_verdict verdict;
	bool track, retire = true;

	if (x->epoch == now->epoch && x->what == now->what && x->agent == now->agent) {
		if (x->lanes == rec->lanes) {
			/* an async engine's writes are not ordered even so (C03) */
			if (!(rec->bytes & ~x->bytes)
				&& (x->agent == v->self || !(now->what & CELL_WRITE)))
				return SKIP_NEW;
			if (!both) {
				rec->bytes |= x->bytes;
				return DROP;
			}
		} else if (x->bytes == rec->bytes && !(now->what & CELL_WRITE)) {
			rec->lanes |= x->lanes;
			return DROP;
		}
	}
	if (!both)
		return KEEP;
	if (!as_strict(x, now))
		retire = false;
	track = same_track(x, now) && !(x->lanes & ~now->lanes);
	if (!((x->what | now->what) & CELL_WRITE))
		return retire && (track || lookup(v, x)) ? TRIM : KEEP;
	if (lookup(v, x))
		verdict = SHADOW_ORDERED;
	else if (track && x->agent == v->self && x->lanes == now->lanes
		&& !(x->lanes & (x->lanes - 1)))
		verdict = SHADOW_ORDERED; /* program order, lane by lane */
	else
		verdict = v->judge(v, x, now, granule, both);
	if (now->what & CELL_WRITE)
		return retire && (track || verdict != SHADOW_MUTUAL) ? TRIM : KEEP;
	if (track && as_strict(now, x) && x->epoch == now->epoch && x->lanes == rec->lanes
		&& !(rec->bytes & ~x->bytes) && x->agent == v->self)
		return SKIP_NEW;
	return KEEP;
}

static void free_chain(struct shadow *s, struct cell *c)
{
	uint32_t at = c->more, next;

	for (c->more = 0; at; at = next) {
		next = s->pool[at - 1].more;
		s->pool[at - 1].more = s->free_cell;
		s->free_cell = at;
	}
}

/* Does x, perhaps with fewer bytes, stay beside the new access? *skip: the new
 * one adds nothing to what is there. */
static inline bool stays(struct shadow_view *v, struct cell_entry *x,
	const struct cell_entry *now, struct cell_entry *rec, uint32_t granule, bool *skip)
{
	switch (face(v, x, now, rec, granule)) {
	case KEEP:
		return true;
	case DROP:
		return *skip;
	case TRIM:
		x->bytes &= ~now->bytes;
		return x->bytes;
	case SKIP_NEW:
		*skip = true;
		return true;
	}
	return true;
}

/* touch_all() for a cell with a chain, or about to get one: keeps the chain
 * compact by moving entries down. */
static void touch_chain(struct shadow *s, struct shadow_view *v, struct cell *home,
	uint32_t granule, const struct cell_entry *now)
{
	struct cell_entry rec = *now;
	struct cell *from = home, *to = home;
	uint32_t n = home->n, kept = 0, i = 0, k = 0;
	bool skip = false;

	home->writes = home->readers = 0;
	for (; n; n--, i++) {
		struct cell_entry x;

		if (i == CELL_ENTRIES) {
			from = &s->pool[from->more - 1];
			i = 0;
		}
		x = from->entry[i];
		if (!stays(v, &x, now, &rec, granule, &skip))
			continue;
		if (k == CELL_ENTRIES) {
			to = &s->pool[to->more - 1];
			k = 0;
		}
		to->entry[k++] = x;
		note_entry(home, &x, kept++);
	}
	if (!skip) {
		if (k == CELL_ENTRIES) {
			to = to->more ? &s->pool[to->more - 1] : grow(s, to);
			k = 0;
		}
		to->entry[k] = rec;
		note_entry(home, &rec, kept++);
	}
	home->n = (uint16_t)kept;
	free_chain(s, to);
}

static inline bool reads(const struct cell_entry *e)
{
	const uint32_t rmw = CELL_STRONG | CELL_PART;

	return !(e->what & CELL_WRITE) || (e->what & rmw) == rmw;
}

static void touch_all(struct shadow_view *v, struct cell *c, uint32_t granule,
	const struct cell_entry *now)
{
	struct cell_entry rec = *now;
	uint32_t n = c->n, i, k;
	bool skip = false;

	c->writes = c->readers = 0;
	for (i = k = 0; i < n; i++) {
		struct cell_entry x = c->entry[i];

		if (!stays(v, &x, now, &rec, granule, &skip))
			continue;
		note_entry(c, &x, k);
		c->entry[k++] = x;
	}
	if (!skip) {
		note_entry(c, &rec, k);
		c->entry[k++] = rec;
	}
	c->n = (uint16_t)k;
}

/* Everything that is not plain. */
static void __attribute__((noinline)) touch_slow(struct shadow *s, struct shadow_view *v,
	struct cell *c, uint32_t granule, const struct cell_entry *now)
{
	if (c->guard & now->bytes)
		v->stray(v, now, granule, c->guard & now->bytes, SHADOW_GUARDED);
	if (now->bytes & ~c->init && reads(now))
		v->stray(v, now, granule, now->bytes & ~c->init, SHADOW_UNWRITTEN);
	if (now->what & CELL_WRITE)
		c->init |= now->bytes;
	if (c->n < CELL_ENTRIES)
		touch_all(v, c, granule, now);
	else
		touch_chain(s, v, c, granule, now);
}

/* The parts of a view that the common cases need, to stand in registers. */
struct ask {
	const uint32_t *known_generic, *known;
	uint32_t ngeneric;
};

#define INLINE static inline __attribute__((always_inline))

INLINE bool answered(struct ask q, const struct cell_entry *x)
{
	return (x->agent < q.ngeneric ? q.known_generic : q.known)[x->agent] >= x->epoch;
}

/* A weak write that covers everything there is, and knows it. */
INLINE bool plain_write(struct shadow *s, struct ask q, struct cell *c, struct cell_entry now)
{
	struct cell *part = c;
	uint32_t left = c->n, n, i;

	for (;; part = &s->pool[part->more - 1]) {
		n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
		for (i = 0; i < n; i++)
			if (part->entry[i].bytes & ~now.bytes || !answered(q, &part->entry[i]))
				return false;
		left -= n;
		if (!left)
			break;
	}
	if (SELDOM(c->more))
		free_chain(s, c);
	c->entry[0] = now;
	c->n = c->writes = 1;
	c->readers = 0;
	c->init |= now.bytes;
	return true;
}

/* A weak read after writes that it knows. It takes over the agent's own read;
 * reads by others that it knows are left for the next write to forget. */
INLINE bool plain_read(struct shadow *s, struct ask q, struct cell *c, struct cell_entry now)
{
	struct cell_entry *at = NULL;
	struct cell *part = c;
	uint32_t left = c->n, n, i;

	if (SELDOM(c->writes > CELL_ENTRIES))
		return false;
	for (i = 0; i < c->writes; i++) {
		const struct cell_entry *x = &c->entry[i];

		if (x->what & CELL_WRITE && x->bytes & now.bytes && !answered(q, x))
			return false;
	}
	if (c->readers & reader_bit(now.agent)) {
		for (;; part = &s->pool[part->more - 1]) {
			n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
			for (i = 0; i < n; i++) {
				struct cell_entry *x = &part->entry[i];

				if (x->agent != now.agent || x->what & CELL_WRITE)
					continue;
				if (x->bytes & ~now.bytes || x->lanes & ~now.lanes
					|| (x->what ^ now.what) & CELL_SHIFT_MASK)
					return false;
				at = x;
			}
			left -= n;
			if (!left)
				break;
		}
	} else {
		for (; left > CELL_ENTRIES; left -= CELL_ENTRIES)
			part = &s->pool[part->more - 1];
		n = left;
	}
	if (!at) {
		if (SELDOM(n == CELL_ENTRIES)) {
			part = grow(s, part);
			n = 0;
		}
		at = &part->entry[n];
		c->n++;
		c->readers |= reader_bit(now.agent);
	}
	*at = now;
	return true;
}

/* The common cases, to the same effect as touch_slow(). `how` is the flags of
 * now.what, a constant where that helps. */
INLINE void touch(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t granule,
	struct cell_entry now, uint32_t how)
{
	struct cell *c = open_cell(s, granule);

	if (how & CELL_STRONG || c->guard & now.bytes)
		goto slow;
	if (how & CELL_WRITE) {
		if (plain_write(s, q, c, now))
			return;
	} else if (!(now.bytes & ~c->init) && plain_read(s, q, c, now)) {
		return;
	}
slow:
	touch_slow(s, v, c, granule, &now);
}

INLINE struct ask ask_of(const struct shadow_view *v)
{
	return (struct ask){ v->known_generic, v->known, v->ngeneric };
}

/* All granules of [addr, end), first and last perhaps in part. run: lanes
 * follow the bytes, lane `first` at addr. */
INLINE void touch_range(struct shadow *s, struct shadow_view *v, uint32_t addr, uint64_t end,
	struct cell_entry now, uint32_t how, bool run, uint32_t first, uint32_t shift)
{
	struct ask q = ask_of(v);
	uint32_t g = addr / CELL_BYTES, last;

	if (end > (uint64_t)s->ncells * CELL_BYTES)
		end = (uint64_t)s->ncells * CELL_BYTES;
	if (addr >= end)
		return;
	last = (uint32_t)((end - 1) / CELL_BYTES);
	s->visits += last - g + 1;
	for (; g <= last; g++) {
		uint32_t from = g * CELL_BYTES, mask = 0xffff;

		if (SELDOM(!is_mine(s, g))) {
			g |= SHARE - 1;
			continue;
		}

		if (addr > from)
			mask &= 0xffffu << (addr - from);
		if (end < from + CELL_BYTES)
			mask &= 0xffffu >> (from + CELL_BYTES - (uint32_t)end);
		now.bytes = (uint16_t)mask;
		if (run)
			now.lanes = 1u << ((first + (uint32_t)((int32_t)(from - addr) >> shift)) & 31);
		fetch(s, g + AHEAD);
		touch(s, v, q, g, now, how);
	}
}

void shadow_touch(struct shadow *s, struct shadow_view *v, uint32_t granule,
	struct cell_entry now)
{
	if (granule >= s->ncells || !is_mine(s, granule))
		return;
	s->visits++;
	touch(s, v, ask_of(v), granule, now, now.what);
}

void shadow_span(struct shadow *s, struct shadow_view *v, uint32_t addr,
	uint32_t bytes, struct cell_entry now)
{
	uint64_t end = (uint64_t)addr + bytes;

	if (now.what & CELL_STRONG)
		touch_range(s, v, addr, end, now, now.what, false, 0, 0);
	else if (now.what & CELL_WRITE)
		touch_range(s, v, addr, end, now, CELL_WRITE, false, 0, 0);
	else
		touch_range(s, v, addr, end, now, 0, false, 0, 0);
}

void shadow_run(struct shadow *s, struct shadow_view *v, uint32_t addr,
	uint32_t first, uint32_t count, uint32_t shift, struct cell_entry now)
{
	uint64_t end = (uint64_t)addr + (count << shift);

	if (now.what & CELL_STRONG)
		touch_range(s, v, addr, end, now, now.what, true, first, shift);
	else if (now.what & CELL_WRITE)
		touch_range(s, v, addr, end, now, CELL_WRITE, true, first, shift);
	else
		touch_range(s, v, addr, end, now, 0, true, first, shift);
}

void shadow_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now)
{
	struct ask q = ask_of(v);
	uint32_t m;

	for (m = lanes; m; m &= m - 1)
		fetch(s, addr[__builtin_ctz(m)] / CELL_BYTES);
	now.bytes = 0xffff;
	s->visits += (uint32_t)__builtin_popcount(lanes);
	for (m = lanes; m; m &= m - 1) {
		uint32_t granule = addr[__builtin_ctz(m)] / CELL_BYTES;

		now.lanes = m & -m;
		if (granule < s->ncells && is_mine(s, granule))
			touch(s, v, q, granule, now, now.what);
	}
}

void shadow_fetch(const struct shadow *s, uint32_t granule)
{
	fetch(s, granule);
}

void shadow_guard(struct shadow *s, uint32_t addr, bool on)
{
	uint32_t mask = 0xffu << (addr & 8);
	struct cell *c;

	if (addr / CELL_BYTES >= s->ncells || !is_mine(s, addr / CELL_BYTES))
		return;
	c = open_cell(s, addr / CELL_BYTES);
	c->guard = on ? c->guard | mask : c->guard & ~mask;
}
