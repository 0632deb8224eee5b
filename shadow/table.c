/* table: the shadow of one CTA's shared memory: the granules that an access touches, and the cells
 * that they share. plain.h has the common effects on a cell, past.c the general case. */
#include "lists.h"
#include "plain.h"

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
	lists_open(s);
}

void shadow_reset(struct shadow *s)
{
	memset(s->block, 0, blocks(s) * sizeof *s->block);
	cells_reset(s);
	lists_reset(s);
}

void shadow_close(struct shadow *s)
{
	free(s->block);
	free(s->at);
	cells_close(s);
	lists_close(s);
	*s = (struct shadow){ 0 };
}

size_t shadow_footprint(const struct shadow *s)
{
	return blocks(s) * (BLOCK * sizeof *s->at + sizeof *s->block) + s->cap * sizeof *s->cell
		+ lists_footprint(s);
}

/* keeps the registers that it needs out of its callers */
#define APART static __attribute__((noinline))

/* The rest of touch(): with entries that are spelled out, which holds for this granule only. */
APART void touch_past(struct shadow *s, struct shadow_view *v, uint32_t at, uint32_t granule,
	struct cell_entry now)
{
	if (lists_spell(s, at, granule)) {
		v->reported = true;
		if (!(now.what & (CELL_STRONG | CELL_WRITE)) && plain_read(s, v, at, now))
			return;
	}
	past_touch(s, v, at, granule, &now);
}

/* Cell `at` belongs to this granule alone. Fast paths with the same effect as past_touch(). `how`
 * is the flags of now.what, a constant where that helps the compiler. */
INLINE void touch(struct shadow *s, struct shadow_view *v, struct known q, uint32_t at,
	uint32_t granule, struct cell_entry now, uint32_t how)
{
	if (how & CELL_STRONG) {
	} else if (!(how & CELL_WRITE)) {
		if (plain_read(s, v, at, now))
			return;
	} else if (plain_write(s, q, &s->cell[at], now)) {
		if (UNLIKELY(s->cell[at].more))
			cells_cut(s, at);
		only_write(&s->cell[at], now);
		return;
	}
	touch_past(s, v, at, granule, now);
}

/* ---- cells shared by granules ---- */

static void put_cell(struct shadow *s, uint32_t at, uint32_t granules)
{
	if (at && !(s->cell[at].refs -= granules))
		cells_free(s, at);
}

/* How many of n consecutive granules have this cell. Here and below, size_t and whole blocks let
 * the compiler vectorize. */
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

/* Which of 32 cells are this one? */
INLINE uint32_t lanes_with(const uint32_t at[32], uint32_t cell)
{
	uint32_t lanes = 0;

	for (unsigned l = 0; l < 32; l++)
		lanes |= (uint32_t)(at[l] == cell) << l;
	return lanes;
}

INLINE uint32_t cell_of(const struct shadow *s, uint32_t granule)
{
	const uint32_t block = s->block[granule / BLOCK];

	return block == SPLIT ? s->at[granule] : block;
}

/* From now on at[] holds the cells of the granules of this block. */
INLINE void split(struct shadow *s, uint32_t granule)
{
	uint32_t *block = &s->block[granule / BLOCK];

	if (*block == SPLIT)
		return;
	set_run(&s->at[granule - granule % BLOCK], BLOCK, *block);
	*block = SPLIT;
}

APART uint32_t new_private_cell(struct shadow *s, uint32_t granule)
{
	uint32_t at, own;

	split(s, granule);
	at = s->at[granule];
	own = cells_copy(s, at);
	put_cell(s, at, 1);
	s->cell[own].refs = 1;
	s->at[granule] = own;
	return own;
}

/* The granule's cell; copied first if it is shared. */
INLINE uint32_t private_cell(struct shadow *s, uint32_t granule)
{
	if (s->block[granule / BLOCK] == SPLIT) {
		const uint32_t at = s->at[granule];

		if (at && s->cell[at].refs == 1)
			return at;
	}
	return new_private_cell(s, granule);
}

INLINE void touch_one(struct shadow *s, struct shadow_view *v, struct known q, uint32_t granule,
	struct cell_entry now, uint32_t how)
{
	touch(s, v, q, private_cell(s, granule), granule, now, how);
}

/* How many granules ahead to prefetch. */
#define AHEAD 8u

static inline void fetch(const struct shadow *s, uint32_t granule)
{
	if (granule < s->ncells)
		__builtin_prefetch(&s->cell[cell_of(s, granule)], 1);
}

/* The transitions of one access to whole granules: from which cell to which. Valid while no granule
 * is touched twice, as cells are reused. */
#define TRANSITIONS 16u
#define NO_CELL UINT32_MAX

struct transitions {
	uint32_t from[TRANSITIONS], to[TRANSITIONS];
	uint32_t written; /* the cell whose only entry is the write `now` of all bytes */
	uint32_t reached; /* granules below this one were touched */
};

INLINE void transitions_begin(struct transitions *m)
{
	memset(m->from, 0xff, sizeof m->from);
	m->written = NO_CELL;
	m->reached = 0;
}

/* Is it what plain_write() makes of any cell? */
INLINE bool is_only(const struct cell *c, struct cell_entry now)
{
	return c->n == 1 && c->init == now.bytes && !c->guard && c->writes == 1 && !c->readers
		&& !memcmp(&c->entry[0], &now, sizeof now);
}

/* The new cell of a granule that has cell `at`. A result that holds for this granule alone, because
 * a callback was called or the cell was changed in place, is not added to the transitions. */
INLINE uint32_t find_transition(struct shadow *s, struct shadow_view *v, struct known q,
	uint32_t granule, struct cell_entry now, uint32_t how, struct transitions *m)
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
		v->reported = false;
		touch(s, v, q, to, granule, now, how);
		if (v->reported)
			return to;
		if (how & CELL_WRITE && !(how & CELL_STRONG) && is_only(&s->cell[to], now)) {
			if (m->written == NO_CELL)
				m->written = to;
			else
				cells_free(s, to);
			to = m->written;
		}
	}
	m->from[at % TRANSITIONS] = at;
	m->to[at % TRANSITIONS] = to;
	return to;
}

/* Changes cell `at`, which the granules at hand have and no others. False: nothing was done. */
INLINE bool touch_alone(struct shadow *s, const struct shadow_view *v, uint32_t at,
	struct cell_entry now, uint32_t how, struct transitions *m)
{
	if (how & CELL_STRONG)
		return false;
	if (!(how & CELL_WRITE))
		return plain_read(s, v, at, now);
	if (m->written != NO_CELL || !plain_write(s, known_of(v), &s->cell[at], now))
		return false;
	if (UNLIKELY(s->cell[at].more))
		cells_cut(s, at);
	only_write(&s->cell[at], now);
	m->written = at;
	return true;
}

/* Granules of one block, which is split. */
INLINE void touch_split(struct shadow *s, struct shadow_view *v, struct known q, uint32_t g,
	uint32_t end, struct cell_entry now, uint32_t how, struct transitions *m)
{
	while (g < end) {
		uint32_t at = s->at[g], k = at % TRANSITIONS, n, to;

		n = (uint32_t)run_of(&s->at[g], end - g, at);
		if (m->from[k] == at) {
			to = m->to[k];
		} else if (at && s->cell[at].refs == n && touch_alone(s, v, at, now, how, m)) {
			g += n;
			continue;
		} else {
			fetch(s, g + AHEAD);
			to = find_transition(s, v, q, g, now, how, m);
			n = m->from[k] == at ? n : 1;
		}
		if (to != at) {
			set_run(&s->at[g], n, to);
			s->cell[to].refs += n;
			put_cell(s, at, n);
		}
		g += n;
	}
}

/* Touches blocks from this one on that have the same cell, `most` at most. Returns their number. */
INLINE uint32_t touch_blocks(struct shadow *s, struct shadow_view *v, struct known q,
	uint32_t block, uint32_t most, struct cell_entry now, uint32_t how, struct transitions *m)
{
	const uint32_t at = s->block[block], k = at % TRANSITIONS, g = block * BLOCK;
	uint32_t n = 1, to;

	to = m->from[k] == at ? m->to[k] : find_transition(s, v, q, g, now, how, m);
	if (m->from[k] != at) { /* the result holds for this granule only */
		split(s, g);
		s->at[g] = to;
		s->cell[to].refs++;
		put_cell(s, at, 1);
		touch_split(s, v, q, g + 1, g + BLOCK, now, how, m);
		return 1;
	}
	while (n < most && s->block[block + n] == at)
		n++;
	if (to == at)
		return n;
	set_run(&s->block[block], n, to);
	s->cell[to].refs += n * BLOCK;
	put_cell(s, at, n * BLOCK);
	return n;
}

/* The granules of a block that have this cell. */
INLINE uint64_t granules_with(const uint32_t at[BLOCK], uint32_t cell)
{
	return lanes_with(at, cell) | (uint64_t)lanes_with(at + 32, cell) << 32;
}

/* now, a weak write, replaces all that the granules of a block remember. False: it is not ordered
 * after all of that, and nothing was done. */
INLINE bool overwrite_block(struct shadow *s, struct known q, uint32_t block, struct cell_entry now,
	struct transitions *m)
{
	const uint32_t *at = &s->at[block * BLOCK];
	uint32_t cell[BLOCK], count[BLOCK], n = 0;

	for (uint64_t left = UINT64_MAX, same; left; left &= ~same) {
		cell[n] = at[__builtin_ctzll(left)];
		same = granules_with(at, cell[n]);
		if (!plain_write(s, q, &s->cell[cell[n]], now))
			return false;
		count[n++] = (uint32_t)__builtin_popcountll(same);
	}
	if (m->written == NO_CELL) {
		m->written = cells_new(s);
		only_write(&s->cell[m->written], now);
	}
	for (uint32_t i = 0; i < n; i++)
		put_cell(s, cell[i], count[i]);
	s->cell[m->written].refs += BLOCK;
	s->block[block] = m->written;
	return true;
}

INLINE void touch_whole(struct shadow *s, struct shadow_view *v, struct known q, uint32_t g,
	uint32_t end, struct cell_entry now, uint32_t how, struct transitions *m)
{
	now.bytes = 0xffff;
	while (g < end) {
		const uint32_t block = g / BLOCK, next = (block + 1) * BLOCK;
		const uint32_t stop = next < end ? next : end;
		const bool whole = g % BLOCK == 0 && stop == next;

		if (whole && s->block[block] != SPLIT) {
			g += BLOCK * touch_blocks(s, v, q, block, (end - g) / BLOCK, now, how, m);
			continue;
		}
		split(s, g);
		if (whole && how == CELL_WRITE && overwrite_block(s, q, block, now, m)) {
			g = stop;
			continue;
		}
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

/* All granules of [addr, end), the first and the last perhaps in part. */
INLINE void touch_span(struct shadow *s, struct shadow_view *v, struct known q, uint32_t addr,
	uint64_t end, struct cell_entry now, uint32_t how, struct transitions *m)
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
		transitions_begin(m);
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

/* One transition whose reference counts are not updated yet. */
struct uncounted { uint32_t from, to, granules; };

INLINE void count(struct shadow *s, struct uncounted *k)
{
	if (k->granules) {
		s->cell[k->to].refs += k->granules;
		put_cell(s, k->from, k->granules);
	}
	*k = (struct uncounted){ .from = NO_CELL };
}

/* The pieces of a tile that wgmma reads have 32 bytes, and most of them the same cell: that of the
 * current transition. False: nothing was done. */
INLINE bool repeat_transition(struct shadow *s, uint32_t addr, uint32_t bytes, struct uncounted *k,
	struct transitions *m)
{
	const uint32_t g = addr / CELL_BYTES;
	uint64_t both;

	if (addr % (2 * CELL_BYTES) || bytes != 2 * CELL_BYTES || g < m->reached || g + 2 > s->ncells)
		return false;
	split(s, g);
	memcpy(&both, &s->at[g], sizeof both);
	if (both != k->from * 0x100000001ull)
		return false;
	s->at[g] = s->at[g + 1] = k->to;
	k->granules += 2;
	s->visits += 2;
	m->reached = g + 2;
	return true;
}

/* A weak read of one span: all in one granule, or granules of a block that share a cell with no
 * others. False: nothing was done. */
INLINE bool read_short(struct shadow *s, struct shadow_view *v, struct ev_span span,
	struct cell_entry now)
{
	const uint32_t g = span.addr / CELL_BYTES, from = span.addr % CELL_BYTES;
	const uint32_t n = span.bytes / CELL_BYTES, *at = &s->at[g];

	if (g >= s->ncells || !span.bytes)
		return false;
	if (span.bytes <= CELL_BYTES - from) {
		now.bytes = bytes_from(from, from + span.bytes);
		s->visits++;
		touch_one(s, v, known_of(v), g, now, 0);
		return true;
	}
	if (from || span.bytes % CELL_BYTES || n > BLOCK - g % BLOCK || s->block[g / BLOCK] != SPLIT
		|| g + n > s->ncells || !*at || s->cell[*at].refs != n)
		return false;
	for (uint32_t i = 1; i < n; i++)
		if (at[i] != *at)
			return false;
	now.bytes = 0xffff;
	s->visits += n;
	return plain_read(s, v, *at, now);
}

INLINE void touch_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now, uint32_t how)
{
	struct uncounted same = { .from = NO_CELL };
	struct transitions m;

	transitions_begin(&m);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t addr = span[i].addr, g = addr / CELL_BYTES;
		uint32_t at;

		if (repeat_transition(s, addr, span[i].bytes, &same, &m))
			continue;
		count(s, &same);
		at = g < s->ncells ? cell_of(s, g) : NO_CELL;
		touch_span(s, v, known_of(v), addr, (uint64_t)addr + span[i].bytes, now, how, &m);
		if (m.from[at % TRANSITIONS] == at) {
			same.from = at;
			same.to = m.to[at % TRANSITIONS];
		}
	}
	count(s, &same);
}

APART void read_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now)
{
	touch_spans(s, v, span, n, now, 0);
}

APART void write_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now)
{
	touch_spans(s, v, span, n, now, CELL_WRITE);
}

APART void strong_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now)
{
	touch_spans(s, v, span, n, now, now.what);
}

void shadow_spans(struct shadow *s, struct shadow_view *v, const struct ev_span *span,
	uint32_t n, struct cell_entry now)
{
	if (now.what & CELL_STRONG)
		strong_spans(s, v, span, n, now);
	else if (now.what & CELL_WRITE)
		write_spans(s, v, span, n, now);
	else
		read_spans(s, v, span, n, now);
}

void shadow_span(struct shadow *s, struct shadow_view *v, struct ev_span span,
	struct cell_entry now)
{
	if (now.what & (CELL_STRONG | CELL_WRITE) || !read_short(s, v, span, now))
		shadow_spans(s, v, &span, 1, now);
}

void shadow_touch(struct shadow *s, struct shadow_view *v, uint32_t granule,
	struct cell_entry now)
{
	if (granule >= s->ncells)
		return;
	s->visits++;
	touch_one(s, v, known_of(v), granule, now, now.what);
}

/* The new cell of n granules that have cell `at`, after a listed access. NO_CELL: it depends on the
 * granule. */
INLINE uint32_t touch_listed(struct shadow *s, const struct shadow_view *v, uint32_t at, uint32_t n,
	struct cell_entry now, uint32_t how, uint32_t *written)
{
	const bool alone = at && s->cell[at].refs == n;
	uint32_t to = at;

	if (how & CELL_WRITE) {
		if (!plain_write(s, known_of(v), &s->cell[at], now))
			return NO_CELL;
		if (*written != NO_CELL)
			return *written;
		if (!alone)
			to = cells_new(s);
		else if (s->cell[at].more)
			cells_cut(s, at);
		only_write(&s->cell[to], now);
		return *written = to;
	}
	if (!at)
		return NO_CELL;
	if (!alone)
		to = cells_copy(s, at);
	if (plain_read(s, v, to, now))
		return to;
	if (!alone)
		cells_free(s, to);
	return NO_CELL;
}

/* Touches the granules of these lanes as far as the effect is the same in all granules that have
 * the same cell. Returns the lanes that are left. Other elements of granule[] are any granules. */
INLINE uint32_t touch_lists(struct shadow *s, const struct shadow_view *v,
	const uint32_t granule[32], uint32_t lanes, struct cell_entry now, uint32_t how)
{
	uint32_t at[32], left = lanes, rest = 0, written = NO_CELL, unsplit = 0;

	if (how & CELL_STRONG || !lists_find(s, granule, lanes, &now.lanes))
		return lanes;
	now.what = (now.what & ~CELL_SHIFT_MASK) | CELL_LISTED;
	for (unsigned l = 0; l < 32; l++)
		unsplit |= ~s->block[granule[l] / BLOCK];
	for (unsigned l = 0; unsplit && l < 32; l++)
		split(s, granule[l]);
	for (unsigned l = 0; l < 32; l++)
		at[l] = s->at[granule[l]];
	for (unsigned l = 0; l < 32; l++)
		at[l] |= (lanes >> l & 1) - 1; /* NO_CELL */
	while (left) {
		const uint32_t from = at[__builtin_ctz(left)], same = lanes_with(at, from);
		const uint32_t n = (uint32_t)__builtin_popcount(same);
		const uint32_t to = touch_listed(s, v, from, n, now, how, &written);

		left &= ~same;
		if (to == NO_CELL) {
			rest |= same;
			continue;
		}
		if (to == from)
			continue;
		for (uint32_t m = same; m; m &= m - 1)
			s->at[granule[__builtin_ctz(m)]] = to;
		s->cell[to].refs += n;
		put_cell(s, from, n);
	}
	return rest;
}

INLINE void touch_rows(struct shadow *s, struct shadow_view *v, const uint32_t addr[32],
	uint32_t lanes, struct cell_entry now, uint32_t how)
{
	const uint32_t first = addr[__builtin_ctz(lanes)] / CELL_BYTES;
	struct known q = known_of(v);
	uint32_t granule[32], last = 0;

	s->visits += (uint32_t)__builtin_popcount(lanes);
	for (unsigned l = 0; l < 32; l++) {
		granule[l] = lanes >> l & 1 ? addr[l] / CELL_BYTES : first;
		last = granule[l] > last ? granule[l] : last;
	}
	now.bytes = 0xffff;
	if (last < s->ncells && last < LISTS_GRANULES)
		lanes = touch_lists(s, v, granule, lanes, now, how);
	for (uint32_t m = lanes; m; m &= m - 1) {
		const uint32_t l = (uint32_t)__builtin_ctz(m), g = granule[l];

		if (g >= s->ncells)
			continue;
		now.lanes = cell_lanes(m & -m, addr[l], 4);
		touch(s, v, q, private_cell(s, g), g, now, how);
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

void shadow_forget(struct shadow *s, uint32_t granule, uint32_t n)
{
	for (uint32_t g = granule; g < granule + n && g < s->ncells; g++) {
		split(s, g);
		put_cell(s, s->at[g], 1);
		s->at[g] = 0;
	}
}

uint32_t shadow_unwritten(const struct shadow *s, uint32_t granule, uint32_t n, uint32_t *bytes)
{
	uint32_t last = NO_CELL, rest;

	for (uint32_t i = 0, g = granule; i < n && g < s->ncells; g = granule + i) {
		const uint32_t at = cell_of(s, g);

		if (at != last && *bytes & ~s->cell[at].init) {
			*bytes &= ~(uint32_t)s->cell[at].init;
			return i;
		}
		last = at;
		rest = BLOCK - g % BLOCK < n - i ? BLOCK - g % BLOCK : n - i;
		i += s->block[g / BLOCK] == SPLIT ? (uint32_t)run_of(&s->at[g], rest, at) : rest;
	}
	return n;
}

uint32_t shadow_recorded(const struct shadow *s, uint32_t granule, uint32_t agent, uint32_t epoch)
{
	const struct cell *c = &s->cell[cell_of(s, granule)];
	uint32_t bytes = 0;

	for (uint32_t left = c->n, n; left; left -= n, c = &s->cell[c->more]) {
		n = left < CELL_ENTRIES ? left : CELL_ENTRIES;
		for (uint32_t i = 0; i < n; i++)
			if (c->entry[i].agent == agent && c->entry[i].epoch == epoch)
				bytes |= c->entry[i].bytes;
	}
	return bytes;
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
	c = &s->cell[private_cell(s, granule)];
	c->guard = on ? c->guard | mask : c->guard & ~mask;
}
