/* table: the shadow of one CTA's shared memory: which granules an access touches,
 * and the common cases of what it does to their pasts; past.c knows them all. */
#include "past.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK SHADOW_BLOCK
#define SPLIT SHADOW_SPLIT

static uint32_t blocks(const struct shadow *s)
{
	return (s->ncells + BLOCK - 1) / BLOCK;
}

void shadow_open(struct shadow *s, uint32_t bytes)
{
	*s = (struct shadow){ .ncells = (bytes + CELL_BYTES - 1) / CELL_BYTES };
	s->block = base_alloc((blocks(s) + 1) * sizeof *s->block);
	s->at = base_alloc((blocks(s) + 1) * BLOCK * sizeof *s->at);
	cells_open(s);
}

void shadow_reset(struct shadow *s)
{
	memset(s->block, 0, blocks(s) * sizeof *s->block);
	cells_reset(s);
}

void shadow_close(struct shadow *s)
{
	free(s->block);
	free(s->at);
	cells_close(s);
	*s = (struct shadow){ 0 };
}

size_t shadow_footprint(const struct shadow *s)
{
	return blocks(s) * (BLOCK * sizeof *s->at + sizeof *s->block) + s->cap * sizeof *s->cell;
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

/* now, a weak write, covers everything that is there, and knows it: nothing else
 * need be remembered. */
INLINE bool plain_write(const struct shadow *s, struct ask q, const struct cell *c,
	struct cell_entry now)
{
	uint32_t left = c->n, n, i;

	if (c->guard & now.bytes)
		return false;
	for (;; c = &s->cell[c->more]) {
		n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
		for (i = 0; i < n; i++)
			if (c->entry[i].bytes & ~now.bytes || !answered(q, &c->entry[i]))
				return false;
		left -= n;
		if (!left)
			return true;
	}
}

INLINE void only_write(struct cell *c, struct cell_entry now)
{
	c->entry[0] = now;
	c->n = c->writes = 1;
	c->readers = 0;
	c->init |= now.bytes;
}

/* A weak read after writes that it knows. It takes over the agent's own read;
 * reads by others that it knows are left for the next write to forget. */
INLINE bool plain_read(struct shadow *s, struct ask q, uint32_t home, struct cell_entry now)
{
	struct cell *c = &s->cell[home];
	struct cell_entry *mine = NULL;
	uint32_t left = c->n, n, i, part = home;

	if (SELDOM(c->writes > CELL_ENTRIES) || c->guard & now.bytes || now.bytes & ~c->init)
		return false;
	for (i = 0; i < c->writes; i++) {
		const struct cell_entry *x = &c->entry[i];

		if (x->what & CELL_WRITE && x->bytes & now.bytes && !answered(q, x))
			return false;
	}
	if (c->readers & reader_bit(now.agent)) {
		for (;; part = s->cell[part].more) {
			n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
			for (i = 0; i < n; i++) {
				struct cell_entry *x = &s->cell[part].entry[i];

				if (x->agent != now.agent || x->what & CELL_WRITE)
					continue;
				if (x->bytes & ~now.bytes || x->lanes & ~now.lanes
					|| (x->what ^ now.what) & CELL_SHIFT_MASK)
					return false;
				mine = x;
			}
			left -= n;
			if (!left)
				break;
		}
	} else {
		for (; left > CELL_ENTRIES; left -= CELL_ENTRIES)
			part = s->cell[part].more;
		n = left;
	}
	if (!mine) {
		c->n++;
		c->readers |= reader_bit(now.agent);
		if (SELDOM(n == CELL_ENTRIES)) {
			part = cells_grow(s, part);
			n = 0;
		}
		mine = &s->cell[part].entry[n];
	}
	*mine = now;
	return true;
}

/* Cell `at` is this granule's alone. The common cases, to the same effect as
 * past_touch(). `how` is the flags of now.what, a constant where that helps. */
INLINE void touch(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t at,
	uint32_t granule, struct cell_entry now, uint32_t how)
{
	if (how & CELL_STRONG) {
	} else if (!(how & CELL_WRITE)) {
		if (plain_read(s, q, at, now))
			return;
	} else if (plain_write(s, q, &s->cell[at], now)) {
		if (SELDOM(s->cell[at].more))
			cells_cut(s, at);
		only_write(&s->cell[at], now);
		return;
	}
	past_touch(s, v, at, granule, &now);
}

INLINE struct ask ask_of(const struct shadow_view *v)
{
	return (struct ask){ v->known_generic, v->known, v->ngeneric };
}

/* ---- granules and the cells that they share ---- */

static void let_go(struct shadow *s, uint32_t at, uint32_t granules)
{
	if (at && !(s->cell[at].refs -= granules))
		cells_free(s, at);
}

/* How many of n granules from here on have this cell, one after the other. Here and
 * below, size_t and whole blocks let the compiler make vectors of it. */
INLINE size_t run_of(const uint32_t *at, size_t n, uint32_t cell)
{
	size_t i = 0;

	for (; i + 32 <= n; i += 32) {
		uint32_t other = 0;

		for (size_t k = 0; k < 32; k++)
			other |= at[i + k] ^ cell;
		if (other)
			break;
	}
	while (i < n && at[i] == cell)
		i++;
	return i;
}

INLINE void set_run(uint32_t *at, size_t n, uint32_t cell)
{
	for (size_t i = 0; i < n; i++)
		at[i] = cell;
}

INLINE uint32_t cell_of(const struct shadow *s, uint32_t granule)
{
	const uint32_t block = s->block[granule / BLOCK];

	return block == SPLIT ? s->at[granule] : block;
}

/* From now on at[] says what the granules of its block have. */
INLINE void split(struct shadow *s, uint32_t granule)
{
	uint32_t *block = &s->block[granule / BLOCK];

	if (*block == SPLIT)
		return;
	set_run(&s->at[granule - granule % BLOCK], BLOCK, *block);
	*block = SPLIT;
}

/* The granule's cell, and no other's. */
INLINE uint32_t own_cell(struct shadow *s, uint32_t granule)
{
	uint32_t at, own;

	split(s, granule);
	at = s->at[granule];
	if (at && s->cell[at].refs == 1)
		return at;
	own = cells_copy(s, at);
	let_go(s, at, 1);
	s->cell[own].refs = 1;
	s->at[granule] = own;
	return own;
}

INLINE void touch_one(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t granule,
	struct cell_entry now, uint32_t how)
{
	touch(s, v, q, own_cell(s, granule), granule, now, how);
}

/* Granules whose cells will be looked at soon: whoever knows them says so. */
#define AHEAD 8u

static inline void fetch(const struct shadow *s, uint32_t granule)
{
	if (granule < s->ncells)
		__builtin_prefetch(&s->cell[cell_of(s, granule)], 1);
}

/* What one access does to whole granules: from which past it leads to which.
 * Holds while no granule is touched twice, as cells are used anew. */
#define MOVES 16u
#define NO_CELL UINT32_MAX

struct moves {
	uint32_t from[MOVES], to[MOVES];
	uint32_t written; /* the cell that says only that now wrote it all */
	uint32_t reached; /* granules below this one were touched */
};

INLINE void moves_begin(struct moves *m)
{
	memset(m->from, 0xff, sizeof m->from);
	m->written = NO_CELL;
	m->reached = 0;
}

/* Works out what becomes of the granule's past `at`. What is said of it alone,
 * lane by lane or in place, goes into no list. */
INLINE uint32_t find_move(struct shadow *s, struct shadow_view *v, struct ask q,
	uint32_t granule, struct cell_entry now, uint32_t how, struct moves *m)
{
	uint32_t at = cell_of(s, granule), to = m->written;

	if (how & CELL_WRITE && !(how & CELL_STRONG) && plain_write(s, q, &s->cell[at], now)) {
		if (to == NO_CELL) {
			to = m->written = cells_new(s);
			only_write(&s->cell[to], now);
		}
	} else if (at && s->cell[at].refs == 1) {
		touch(s, v, q, at, granule, now, how);
		return at;
	} else {
		to = cells_copy(s, at);
		v->told = false;
		touch(s, v, q, to, granule, now, how);
		if (v->told)
			return to;
	}
	m->from[at % MOVES] = at;
	m->to[at % MOVES] = to;
	return to;
}

/* Granules of one block, which is split. */
INLINE void touch_split(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t g,
	uint32_t end, struct cell_entry now, uint32_t how, struct moves *m)
{
	while (g < end) {
		uint32_t at = s->at[g], k = at % MOVES, n, to;

		if (m->from[k] == at) {
			to = m->to[k];
		} else {
			fetch(s, g + AHEAD);
			to = find_move(s, v, q, g, now, how, m);
		}
		n = m->from[k] == at ? (uint32_t)run_of(&s->at[g], end - g, at) : 1;
		if (to != at) {
			set_run(&s->at[g], n, to);
			s->cell[to].refs += n;
			let_go(s, at, n);
		}
		g += n;
	}
}

/* Blocks from this one on, to the `most`, that have the same past. Returns how many. */
INLINE uint32_t touch_blocks(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t block,
	uint32_t most, struct cell_entry now, uint32_t how, struct moves *m)
{
	const uint32_t at = s->block[block], k = at % MOVES, g = block * BLOCK;
	uint32_t n = 1, to;

	to = m->from[k] == at ? m->to[k] : find_move(s, v, q, g, now, how, m);
	if (m->from[k] != at) { /* what was said is of one granule */
		split(s, g);
		s->at[g] = to;
		s->cell[to].refs++;
		let_go(s, at, 1);
		touch_split(s, v, q, g + 1, g + BLOCK, now, how, m);
		return 1;
	}
	while (n < most && s->block[block + n] == at)
		n++;
	if (to == at)
		return n;
	set_run(&s->block[block], n, to);
	s->cell[to].refs += n * BLOCK;
	let_go(s, at, n * BLOCK);
	return n;
}

INLINE void touch_whole(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t g,
	uint32_t end, struct cell_entry now, uint32_t how, struct moves *m)
{
	now.bytes = 0xffff;
	while (g < end) {
		const uint32_t block = g / BLOCK, next = (block + 1) * BLOCK, stop = next < end ? next : end;
		const bool whole = g % BLOCK == 0 && stop == next;

		if (whole && s->block[block] != SPLIT) {
			g += BLOCK * touch_blocks(s, v, q, block, (end - g) / BLOCK, now, how, m);
			continue;
		}
		split(s, g);
		touch_split(s, v, q, g, stop, now, how, m);
		if (whole && run_of(&s->at[g], BLOCK, s->at[g]) == BLOCK)
			s->block[block] = s->at[g];
		g = stop;
	}
}

INLINE uint16_t bytes_from(uint32_t from, uint32_t to)
{
	return (uint16_t)(0xffffu << from & 0xffffu >> (CELL_BYTES - to));
}

/* All granules of [addr, end), first and last perhaps in part. */
INLINE void touch_span(struct shadow *s, struct shadow_view *v, struct ask q, uint32_t addr,
	uint64_t end, struct cell_entry now, uint32_t how, struct moves *m)
{
	uint32_t g, stop, head = addr % CELL_BYTES, tail;

	if (end > (uint64_t)s->ncells * CELL_BYTES)
		end = (uint64_t)s->ncells * CELL_BYTES;
	if (addr >= end)
		return;
	g = addr / CELL_BYTES;
	stop = (uint32_t)(end / CELL_BYTES);
	tail = (uint32_t)(end % CELL_BYTES);
	s->visits += stop - g + (tail > 0);
	if (g < m->reached)
		moves_begin(m);
	m->reached = stop;
	if (head) {
		now.bytes = bytes_from(head, g == stop ? tail : CELL_BYTES);
		touch_one(s, v, q, g, now, how);
		if (g++ == stop)
			return;
	}
	touch_whole(s, v, q, g, stop, now, how, m);
	now.bytes = bytes_from(0, tail);
	if (tail)
		touch_one(s, v, q, stop, now, how);
}

/* One move, of granules that are yet to be counted where they come from and go to. */
struct same { uint32_t from, to, many; };

INLINE void settle(struct shadow *s, struct same *k)
{
	if (k->many) {
		s->cell[k->to].refs += k->many;
		let_go(s, k->from, k->many);
	}
	*k = (struct same){ .from = NO_CELL };
}

/* The pieces of a tile that wgmma reads are of 32 bytes, most of them with the same
 * past: the move at hand. False: nothing was done. */
INLINE bool touch_same(struct shadow *s, uint32_t addr, uint32_t bytes, struct same *k, struct moves *m)
{
	const uint32_t g = addr / CELL_BYTES;

	if (addr % CELL_BYTES || bytes != 2 * CELL_BYTES || g < m->reached || g + 2 > s->ncells)
		return false;
	split(s, g);
	split(s, g + 1);
	if (s->at[g] != k->from || s->at[g + 1] != k->from)
		return false;
	s->at[g] = s->at[g + 1] = k->to;
	k->many += 2;
	s->visits += 2;
	m->reached = g + 2;
	return true;
}

INLINE void touch_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now, uint32_t how)
{
	struct same same = { .from = NO_CELL };
	struct moves m;

	moves_begin(&m);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t addr = span[i].addr, g = addr / CELL_BYTES;
		uint32_t at;

		if (touch_same(s, addr, span[i].bytes, &same, &m))
			continue;
		settle(s, &same);
		at = g < s->ncells ? cell_of(s, g) : NO_CELL;
		touch_span(s, v, ask_of(v), addr, (uint64_t)addr + span[i].bytes, now, how, &m);
		if (m.from[at % MOVES] == at) {
			same.from = at;
			same.to = m.to[at % MOVES];
		}
	}
	settle(s, &same);
}

void shadow_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now)
{
	if (now.what & CELL_STRONG)
		touch_spans(s, v, span, n, now, now.what);
	else if (now.what & CELL_WRITE)
		touch_spans(s, v, span, n, now, CELL_WRITE);
	else
		touch_spans(s, v, span, n, now, 0);
}

void shadow_touch(struct shadow *s, struct shadow_view *v, uint32_t granule,
	struct cell_entry now)
{
	if (granule >= s->ncells)
		return;
	s->visits++;
	touch_one(s, v, ask_of(v), granule, now, now.what);
}

INLINE void touch_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now, uint32_t how)
{
	struct ask q = ask_of(v);
	uint32_t m;

	for (m = lanes; m; m &= m - 1)
		fetch(s, addr[__builtin_ctz(m)] / CELL_BYTES);
	now.bytes = 0xffff;
	s->visits += (uint32_t)__builtin_popcount(lanes);
	for (m = lanes; m; m &= m - 1) {
		uint32_t at = addr[__builtin_ctz(m)], granule = at / CELL_BYTES;

		now.lanes = cell_lanes(m & -m, at, 4);
		if (granule < s->ncells)
			touch_one(s, v, q, granule, now, how);
	}
}

void shadow_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now)
{
	if (now.what & CELL_STRONG)
		touch_rows(s, v, addr, lanes, now, now.what);
	else if (now.what & CELL_WRITE)
		touch_rows(s, v, addr, lanes, now, CELL_WRITE);
	else
		touch_rows(s, v, addr, lanes, now, 0);
}

void shadow_fetch(const struct shadow *s, uint32_t granule)
{
	fetch(s, granule);
}

void shadow_guard(struct shadow *s, uint32_t addr, bool on)
{
	uint32_t mask = 0xffu << (addr & 8), granule = addr / CELL_BYTES;
	struct cell *c;

	if (granule >= s->ncells)
		return;
	c = &s->cell[own_cell(s, granule)];
	c->guard = on ? c->guard | mask : c->guard & ~mask;
}
