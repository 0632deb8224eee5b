/* screen: runs on the GPU after a launch. consan_screen enters the accesses to global memory of each
 * record into the table of pages (screen.h), consan_screen_scan looks for entries that a check may find
 * something about, and empties the table. decode/screen.c computes the same on the host. */
#include "search.h"

typedef unsigned long long u64;

/* Pages that a warp has found lately, by screen_place(): number + 1, and in the lower 16 bits the place in
 * the table. A box has rows in many pages, and so has the next one. */
#define FOUND_PAGES 64

/* Which page and which allocation a lane found last. */
struct lane_state {
	u64 *found;                /* FOUND_PAGES, of the warp, in shared memory */
	uint64_t page;             /* its number + 1; 0: none */
	uint32_t slot;             /* its place in the table */
	bool entered;              /* it is noted that the page has entries */
	uint64_t from, to;         /* of the allocation */
	uint32_t which;            /* its number, as screen_range_of() */
	uint32_t site;             /* of the record */
	uint32_t why, bad_site;    /* the launch is not clean: enum screen_why, and what the result has of it; */
	uint64_t bad_addr;         /* not yet in the result */
};

static __device__ uint32_t why_so_far(const struct screen_job *j)
{
	uint32_t why;

	asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(why)
		: "l"(__cvta_generic_to_global(&j->result->why)) : "memory");
	return why;
}

/* One reason of each kind is enough: atomics of all threads on one word would take long. */
static __device__ void refuse(const struct screen_job *j, uint32_t site, uint32_t why, uint64_t addr)
{
	if (why_so_far(j) & why)
		return;
	atomicOr(&j->result->why, why);
	if (atomicCAS(&j->result->site, 0, site ? site : UINT32_MAX) == 0)
		atomicExch((u64 *)&j->result->addr, (u64)addr);
}

static __device__ void refuse_record(struct lane_state *l, uint32_t why, uint64_t addr)
{
	l->why = why;
	l->bad_site = l->site;
	l->bad_addr = addr;
}

static __device__ u64 load(const uint64_t *at)
{
	u64 x;

	asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(x)
		: "l"(__cvta_generic_to_global(at)) : "memory");
	return x;
}

static __device__ ulonglong2 load_two(const uint64_t *at)
{
	ulonglong2 x;

	asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(x.x), "=l"(x.y)
		: "l"(__cvta_generic_to_global(at)) : "memory");
	return x;
}

static __device__ u64 load_shared(const u64 *at)
{
	u64 x;

	asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(x)
		: "r"((uint32_t)__cvta_generic_to_shared(at)) : "memory");
	return x;
}

static __device__ void store_shared(u64 *at, u64 x)
{
	asm volatile("st.relaxed.cta.shared.u64 [%0], %1;" : : "r"((uint32_t)__cvta_generic_to_shared(at)),
		"l"(x) : "memory");
}

static __device__ bool set_page(struct lane_state *l, uint64_t page, uint32_t slot)
{
	l->page = page + 1;
	l->slot = slot;
	l->entered = false;
	return true;
}

/* Looks in the table, and takes a place there for a page that has none. False: there is no space. */
static __device__ bool look_up(const struct screen_job *j, struct lane_state *l, uint64_t page)
{
	uint32_t at = screen_place(page);

#pragma unroll 1
	for (uint32_t k = 0; k < SCREEN_PROBES; k++, at++) {
		uint64_t *key = &j->key[at & (j->pages - 1)];
		u64 has = load(key);

		if (!has)
			has = atomicCAS((u64 *)key, 0ull, (u64)page + 1);
		if (!has || has == page + 1)
			return set_page(l, page, at & (j->pages - 1));
	}
	refuse_record(l, SCREEN_FULL, page << SCREEN_PAGE_SHIFT);
	return false;
}

/* Sets l->slot. False: there is no space. */
static __device__ bool find_page(const struct screen_job *j, struct lane_state *l, uint64_t page)
{
	u64 *found = &l->found[screen_place(page) % FOUND_PAGES], has;

	if (l->page == page + 1)
		return true;
	has = load_shared(found);
	if (has >> 16 == page + 1)
		return set_page(l, page, (uint32_t)has & 0xffff);
	if (!look_up(j, l, page))
		return false;
	store_shared(found, (u64)(page + 1) << 16 | l->slot);
	return true;
}

/* old: what the word may have. It changes only a few times, as entries only grow. Returns whether this
 * changed it. */
static __device__ bool grow(const struct screen_job *j, struct lane_state *l, uint64_t *word,
	u64 old, u64 add)
{
#pragma unroll 1
	for (uint32_t k = 0; k < 64; k++) {
		const u64 want = screen_merge_word(old, add);
		u64 has;

		if (want == old)
			return false;
		has = atomicCAS((u64 *)word, old, want);
		if (has == old)
			return true;
		old = has;
	}
	refuse_record(l, SCREEN_FULL, 0);
	return true;
}

/* Notes which instruction accessed these half words of a page. Of several any is good, so that the last
 * one may stay. */
static __device__ void note_place(const struct screen_job *j, const struct lane_state *l, uint32_t first,
	uint32_t end, bool writes)
{
	uint16_t *seen = j->seen + (u64)l->slot * SCREEN_PAGE_SEEN + (writes ? SCREEN_PAGE_HALVES : 0);
	const uint16_t place = j->place[l->site];

	for (uint32_t k = first; k < end; k++)
		asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" : : "l"(__cvta_generic_to_global(seen + k)),
			"h"(place) : "memory");
}

/* Notes which instruction set the marks of these units of a page. */
static __device__ void note_marks(const struct screen_job *j, const struct lane_state *l, uint32_t unit,
	uint32_t n, bool writes)
{
	uint16_t *at = j->marked + (u64)l->slot * 2 * SCREEN_PAGE_UNITS + (writes ? SCREEN_PAGE_UNITS : 0) + unit;
	const uint16_t place = j->place[l->site];

	for (uint32_t k = 0; k < n; k++)
		asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" : : "l"(__cvta_generic_to_global(at + k)),
			"h"(place) : "memory");
}

/* The word of marks with this unit of the lane's page. */
static __device__ uint32_t *mark_word(const struct screen_job *j, const struct lane_state *l,
	enum screen_mark mark, uint32_t unit)
{
	return j->mark + (u64)l->slot * SCREEN_PAGE_MARKS + mark * SCREEN_MARK_WORDS + unit / 32;
}

/* Does not wait for the word's old value, as atomicOr() may do although it is not used. */
static __device__ void set_bits(uint32_t *word, uint32_t bits)
{
	asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" : : "l"(__cvta_generic_to_global(word)), "r"(bits)
		: "memory");
}

/* Marks units, all of one word, of which the first is at `at`. */
static __device__ void mark_word_units(const struct screen_job *j, struct lane_state *l, uint64_t at,
	uint32_t n, enum screen_mark mark)
{
	const uint32_t unit = (uint32_t)(at >> 4) % SCREEN_PAGE_UNITS, bits = screen_mark_bits(unit, n);
	uint32_t *word;

	if (!find_page(j, l, at >> SCREEN_PAGE_SHIFT))
		return;
	word = mark_word(j, l, mark, unit);
	if (mark == SCREEN_MARK_WRITTEN) {
		if (atomicOr(word, bits) & bits)
			refuse_record(l, SCREEN_RACE, at);
	} else {
		set_bits(word, bits);
	}
	if (j->seen)
		note_marks(j, l, unit, n, mark != SCREEN_MARK_READ);
}

/* Each lane marks the unit at its own address, if it wants to: lanes that have the same word of marks do it
 * at once. */
static __device__ void mark_own_unit(const struct screen_job *j, struct lane_state *l, bool wants, uint64_t at,
	uint32_t lane)
{
	const uint32_t unit = (uint32_t)(at >> 4) % SCREEN_PAGE_UNITS;
	uint32_t *word = NULL, same, bits;

	if (wants && find_page(j, l, at >> SCREEN_PAGE_SHIFT)) {
		word = mark_word(j, l, SCREEN_MARK_READ, unit);
		if (j->seen)
			note_marks(j, l, unit, 1, false);
	}
	__syncwarp();
	same = __match_any_sync(~0u, (u64)word);
	bits = __reduce_or_sync(same, screen_mark_bits(unit, 1));
	if (word && lane == __ffs(same) - 1)
		set_bits(word, bits);
}

/* Bytes [from, to) of the 16 at `at`. */
static __device__ void touch(const struct screen_job *j, struct lane_state *l, uint64_t at,
	uint32_t from, uint32_t to, uint32_t tag)
{
	const uint32_t in = (uint32_t)at % (1u << SCREEN_PAGE_SHIFT);
	ulonglong2 low, high;
	uint64_t *word;
	bool more;

	if (!find_page(j, l, at >> SCREEN_PAGE_SHIFT))
		return;
	if (!l->entered) {
		asm volatile("st.relaxed.gpu.global.u32 [%0], 1;"
			: : "l"(__cvta_generic_to_global(j->entered + l->slot)) : "memory");
		l->entered = true;
	}
	word = j->entry + (u64)l->slot * SCREEN_PAGE_WORDS + in / 4;
	low = load_two(word);
	high = load_two(word + 2);
	more = grow(j, l, word, low.x, screen_add(tag, from, to, 0));
	more |= grow(j, l, word + 1, low.y, screen_add(tag, from, to, 1));
	more |= grow(j, l, word + 2, high.x, screen_add(tag, from, to, 2));
	more |= grow(j, l, word + 3, high.y, screen_add(tag, from, to, 3));
	if (j->seen && more)
		note_place(j, l, (in + from) / 2, (in + to + 1) / 2, tag & SCREEN_WRITES);
}

/* False: some are outside of all allocations. Sets l->which. */
static __device__ bool inside(const struct screen_job *j, struct lane_state *l, uint64_t addr,
	uint64_t bytes)
{
	if (!j->range)
		return true;
	if (l->which && addr >= l->from && addr < l->to && bytes <= l->to - addr)
		return true;
	l->which = screen_range_of(j->range, j->nranges, addr, bytes);
	if (l->which == UINT32_MAX) {
		l->which = 0;
		refuse_record(l, SCREEN_OUTSIDE, addr);
		return false;
	}
	if (l->which) {
		l->from = j->range[l->which - 1].from;
		l->to = j->range[l->which - 1].to;
	}
	return true;
}

/* The lane's chunk after chunk k, which is that of the last records of this lane; NULL: not known. */
static __device__ const uint32_t *following(const struct screen_job *j, const struct search *s, uint32_t k,
	uint32_t lane)
{
	const uint32_t cta = s->unit[0].x, owner = s->unit[0].y;
	const uint32_t n = j->many ? j->many[cta] : 0;
	uint32_t best = UINT32_MAX;

	if (n > j->cap)
		return NULL;
	for (uint32_t i = lane; i < n; i += 32) {
		const uint32_t e = j->list[(u64)cta * j->cap + i];

		if (e > k && e < best && (j->digests[e].warp_lane_count & 0xffff) == owner)
			best = e;
	}
	for (uint32_t d = 16; d; d /= 2) {
		const uint32_t x = __shfl_xor_sync(~0u, best, d);

		best = x < best ? x : best;
	}
	return best == UINT32_MAX ? NULL
		: (const uint32_t *)((const uint4 *)j->pool + (u64)(best + 1) * RECORD_CHUNK_UNITS + 1);
}

/* The other record of a copy of chunk k; NULL: not known. */
static __device__ const uint32_t *other_record(const struct screen_job *j, const struct search *s,
	uint32_t at, uint32_t k, uint32_t lane)
{
	const uint32_t *r = (const uint32_t *)&s->unit[at];
	const uint32_t next = s->next[at];
	const uint32_t *other = next < END && s->unit[next].x ? (const uint32_t *)&s->unit[next]
		: following(j, s, k, lane);

	return other && screen_is_other(r, other) ? other : NULL;
}

/* The bytes that this lane accesses; 0: none, or they are not good. other: of a copy. */
static __device__ uint32_t own_bytes(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, const uint32_t *other, uint32_t lane, uint64_t *addr)
{
	const uint32_t bytes = 1u << (word >> SCREEN_DETAIL & 15);
	uint32_t n = bytes;

	if (!(r[1] >> lane & 1))
		return 0;
	if ((word & SCREEN_KIND) == SCREEN_COPY)
		n = screen_copied(word, bytes, other, __popc(r[1] & ((1u << lane) - 1)));
	if (!n)
		return 0;
	*addr = screen_address(r, lane, __ffs(r[1]) - 1);
	if (*addr & (bytes - 1) || n > bytes) {
		refuse_record(l, SCREEN_ALIGN, *addr);
		return 0;
	}
	return inside(j, l, *addr, n) ? n : 0;
}

/* Each lane enters its own access. */
static __device__ void enter_access(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, const uint32_t *other, uint32_t lane, uint32_t thread)
{
	const uint32_t tag = screen_tag(word & SCREEN_KIND, thread + lane);
	const bool marks = screen_mark_of(word & SCREEN_KIND) != SCREEN_MARKS;
	uint64_t addr = 0;
	const uint32_t n = own_bytes(j, l, r, word, other, lane, &addr), in = (uint32_t)addr & 15;

	__syncwarp();
	for (uint32_t k = 0; marks && k < 1u << (word >> SCREEN_DETAIL & 15); k += 16)
		mark_own_unit(j, l, k + 16 <= n, addr + k, lane);
	for (uint32_t k = marks ? n & ~15u : 0; k < n; k += 16)
		touch(j, l, (addr + k) & ~15ull, in, n - k < 16 ? in + n - k : 16, tag);
}

/* The warp enters the bytes of each lane's copy. */
static __device__ void enter_bulk(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, uint32_t lane_words, uint32_t lane)
{
	const enum screen_mark mark = screen_mark_of(word & SCREEN_KIND);
	const uint32_t n = __popc(r[1]);

	for (uint32_t before = 0; before < n; before++) {
		const uint32_t *w = screen_words(r, lane_words, before);
		const uint64_t addr = w[0] | (uint64_t)w[1] << 32;
		const uint32_t bytes = word >> SCREEN_DETAIL ? word >> SCREEN_DETAIL : w[2];

		if ((addr | bytes) & 15 || bytes > SCREEN_MOST_BYTES) {
			refuse_record(l, SCREEN_ALIGN, addr);
			continue;
		}
		if (!bytes || !inside(j, l, addr, bytes))
			continue;
		/* each lane a word of marks */
		for (u64 at = (addr & ~511ull) + 512 * lane; at < addr + bytes; at += 32 * 512) {
			const u64 from = at < addr ? addr : at, to = at + 512 < addr + bytes ? at + 512 : addr + bytes;

			mark_word_units(j, l, from, (uint32_t)(to - from) / 16, mark);
		}
		__syncwarp();
	}
}

#define PIECE 512u /* bytes of a row of a box that a lane enters: 32 units */

/* At most 32 units and, behind them, the first bytes of another one; they may be in two words of marks. */
static __device__ void enter_piece(const struct screen_job *j, struct lane_state *l, uint64_t addr,
	uint32_t bytes, uint32_t kind)
{
	const enum screen_mark mark = screen_mark_of(kind);
	const uint32_t n = bytes / 16, first = 32 - ((uint32_t)(addr >> 4) & 31);

	if (n)
		mark_word_units(j, l, addr, n < first ? n : first, mark);
	if (n > first)
		mark_word_units(j, l, addr + 16 * first, n - first, mark);
	if (bytes & 15)
		touch(j, l, addr + 16 * n, 0, bytes & 15, screen_tag(kind, 0));
}

/* The warp enters the rows of a box; false if they are not in one allocation. */
static __device__ bool enter_box(const struct screen_job *j, struct lane_state *l,
	const struct screen_map *m, const int32_t at[SCREEN_RANKS], uint32_t rows, uint32_t kind, uint32_t lane)
{
	const uint32_t each = (m->count[0] * m->bits / 8 + PIECE - 1) / PIECE;
	uint32_t low = UINT32_MAX, high = 0;

	for (uint32_t k = lane; k < rows * each; k += 32) {
		const uint32_t from = k % each * PIECE;
		uint32_t bytes;
		uint64_t addr;

		if (!screen_row(m, at, k / each, kind, &addr, &bytes) || from >= bytes
				|| !inside(j, l, addr, bytes))
			continue;
		low = l->which < low ? l->which : low;
		high = l->which > high ? l->which : high;
		enter_piece(j, l, addr + from, bytes - from < PIECE ? bytes - from : PIECE, kind);
	}
	__syncwarp();
	for (uint32_t d = 16; d; d /= 2) {
		const uint32_t x = __shfl_xor_sync(~0u, low, d), y = __shfl_xor_sync(~0u, high, d);

		low = x < low ? x : low;
		high = y > high ? y : high;
	}
	return low == UINT32_MAX || low == high;
}

static __device__ void enter_tensor(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, uint32_t lane_words, uint32_t lane)
{
	const uint64_t base = *(const uint64_t *)((const char *)j->pool + RECORD_PARAMS_AT);
	const struct screen_tensor *t = &j->tensor[word >> SCREEN_DETAIL];
	const uint32_t n = __popc(r[1]), kind = word & SCREEN_KIND;

	for (uint32_t before = 0; before < n; before++) {
		const uint32_t *w = screen_words(r, lane_words, before);
		int32_t at[SCREEN_RANKS];
		const uint64_t name = screen_copy(t, w, at);
		const uint32_t k = screen_map_of(j->map, j->nmaps, name, base, j->param_bytes);
		uint32_t rows;

		if (k == j->nmaps || !screen_box(&j->map[k], t, at, kind, &rows))
			refuse_record(l, SCREEN_MAP, name);
		else if (!enter_box(j, l, &j->map[k], at, rows, kind, lane))
			refuse_record(l, SCREEN_OUTSIDE, j->map[k].address);
		__syncwarp();
	}
}

/* A copy of bytes or boxes */
static __device__ void enter_bulk_record(const struct screen_job *j, struct lane_state *l, const uint32_t *r,
	uint32_t word, uint32_t lane_words, uint32_t lane)
{
	const uint32_t kind = word & SCREEN_KIND;

	if (kind == SCREEN_LOAD || kind == SCREEN_STORE || kind == SCREEN_REDUCE)
		enter_bulk(j, l, r, word, lane_words, lane);
	else
		enter_tensor(j, l, r, word, lane_words, lane);
}

static __device__ void enter_other_record(const struct screen_job *j, const struct search *s,
	struct lane_state *l, uint32_t chunk, uint32_t at, uint32_t word, uint32_t lane)
{
	const uint32_t kind = word & SCREEN_KIND, thread = s->unit[0].x * j->threads + (s->unit[0].y & ~31u);
	const uint32_t *other = NULL;

	if (kind == SCREEN_NONE)
		return;
	if (kind == SCREEN_HOST) {
		refuse_record(l, SCREEN_OTHER, 0);
		return;
	}
	if (kind == SCREEN_COPY && word & SCREEN_SIZED)
		other = other_record(j, s, at, chunk, lane);
	if (kind == SCREEN_COPY && word & SCREEN_MAYBE && !other && j->seen)
		refuse_record(l, SCREEN_INEXACT, 0);
	else
		enter_access(j, l, (const uint32_t *)&s->unit[at], word, other, lane, thread);
}

/* The warp enters a record of this chunk. bulk: as is_bulk(). */
static __device__ void enter_record(const struct screen_job *j, const struct search *s,
	struct lane_state *l, uint32_t chunk, uint32_t at, bool bulk, uint32_t lane)
{
	const uint32_t *r = (const uint32_t *)&s->unit[at];
	const uint32_t site = r[0] >> RECORD_SITE_SHIFT;
	uint32_t digest;

	l->site = site < j->nsites ? site : 0;
	if (!l->site || !r[1]) {
		refuse_record(l, SCREEN_DAMAGED, 0);
		return;
	}
	digest = j->digest[site];
	if (at + digest_units(digest, r[0] & RECORD_AFFINE, __popc(r[1])) > RECORD_CHUNK_UNITS)
		refuse_record(l, SCREEN_DAMAGED, 0);
	else if (bulk)
		enter_bulk_record(j, l, r, j->site[site], digest & 0xfff, lane);
	else
		enter_other_record(j, s, l, chunk, at, j->site[site], lane);
}

/* Is the record at this unit to be entered, or damaged? */
static __device__ bool is_wanted(const struct screen_job *j, const struct search *s, uint32_t at)
{
	const uint32_t x = s->unit[at].x, site = x >> RECORD_SITE_SHIFT;

	return s->begins[at] && x && (site >= j->nsites || !s->unit[at].y
		|| (s->next[at] == END && at + digest_units(j->digest[site], x & RECORD_AFFINE,
			__popc(s->unit[at].y)) > END)
		|| (j->site[site] & SCREEN_KIND) != SCREEN_NONE);
}

/* Is it a copy of many bytes, whoever makes it? */
static __device__ bool is_bulk(const struct screen_job *j, const struct search *s, uint32_t at)
{
	const uint32_t site = s->unit[at].x >> RECORD_SITE_SHIFT;

	return site < j->nsites && (j->site[site] & SCREEN_KIND) >= SCREEN_LOAD
		&& (j->site[site] & SCREEN_KIND) <= SCREEN_TENSOR_REDUCE;
}

/* The warp enters these records, until the launch is known not to be clean. */
static __device__ void enter_records(const struct screen_job *j, const struct search *s,
	struct lane_state *l, uint32_t chunk, uint32_t from, uint32_t rest, bool bulk, uint32_t lane)
{
	for (; rest && !__any_sync(~0u, l->why != 0); rest &= rest - 1) {
		enter_record(j, s, l, chunk, from + __ffs(rest) - 1, bulk, lane);
		__syncwarp();
	}
}

/* What the warp's own chunk has, but for bulk copies. */
static __device__ void enter_own(const struct screen_job *j, const struct search *s, struct lane_state *l,
	uint32_t chunk, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t i = 0; i < END; i += 32)
		enter_records(j, s, l, chunk, i, __ballot_sync(~0u, is_wanted(j, s, lane + i)
			&& !is_bulk(j, s, lane + i)), false, lane);
}

/* The warps of the block take turns at the bulk copies of a chunk: one thread of a CTA makes them all, so that
 * few chunks have any, and these many. */
static __device__ void enter_share(const struct screen_job *j, const struct search *s, struct lane_state *l,
	uint32_t turn, uint32_t lane)
{
#pragma unroll 1
	for (uint32_t i = 0; i < END; i += 32) {
		const bool bulk = is_wanted(j, s, lane + i) && is_bulk(j, s, lane + i);
		const uint32_t all = __ballot_sync(~0u, bulk);
		const uint32_t before = turn + __popc(all & ((1u << lane) - 1));

		enter_records(j, s, l, 0, i, __ballot_sync(~0u, bulk && before % WARPS == 0), true, lane);
		turn += __popc(all);
	}
}

/* Finds the records of a chunk; there are n chunks. */
static __device__ void open_chunk(const struct screen_job *j, struct search *s, struct lane_state *l,
	uint32_t k, uint32_t n, uint32_t lane)
{
	if (k >= n) {
		for (uint32_t i = 0; i < EACH; i++) {
			s->unit[lane + 32 * i] = make_uint4(0, 0, 0, 0);
			s->begins[lane + 32 * i] = false;
		}
		return;
	}
	search_chunk(s, lane, (const uint4 *)j->pool + (u64)(k + 1) * RECORD_CHUNK_UNITS, j->digest, j->nsites);
	if (s->unit[0].x >= j->nctas || s->unit[0].y >= j->threads)
		refuse_record(l, SCREEN_DAMAGED, 0);
}

/* Each block enters as many chunks as it has warps, then others, until the launch is known not to be
 * clean. */
extern "C" __global__ void __launch_bounds__(32 * WARPS) consan_screen(const struct screen_job job)
{
	__shared__ struct search held[WARPS];
	__shared__ u64 found[WARPS][FOUND_PAGES];
	const struct screen_job *j = &job;
	const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t given = ((const struct record_head *)j->pool)->next - 1;
	const uint32_t n = given < j->chunks ? given : j->chunks;
	struct lane_state l = { found[warp] };

	for (uint32_t k = lane; k < FOUND_PAGES; k += 32)
		store_shared(&l.found[k], 0);
	for (uint32_t k = blockIdx.x * WARPS + warp; k - warp < n; k += gridDim.x * WARPS) {
		/* and no warp needs the chunks before any more */
		if (__syncthreads_or(why_so_far(j) != 0))
			break;
		open_chunk(j, &held[warp], &l, k, n, lane);
		__syncthreads();
		enter_own(j, &held[warp], &l, k, lane);
#pragma unroll 1
		for (uint32_t i = 0; i < WARPS; i++)
			enter_share(j, &held[i], &l, warp, lane);
		if (l.why)
			refuse(j, l.bad_site, l.why, l.bad_addr);
		if (!lane && k < n)
			atomicAdd(&j->result->chunks, 1);
	}
}

/* The marks of a page, and whether it has entries. */
struct page_marks {
	uint32_t mark[SCREEN_MARKS][SCREEN_MARK_WORDS];
	uint32_t entered;
};

/* The block takes them from the table. */
static __device__ void take_marks(const struct screen_job *j, uint32_t slot, struct page_marks *p)
{
	uint32_t *from = j->mark + (u64)slot * SCREEN_PAGE_MARKS, *to = &p->mark[0][0];

	__syncthreads();
	for (uint32_t k = threadIdx.x; k < SCREEN_PAGE_MARKS; k += blockDim.x) {
		to[k] = from[k];
		from[k] = 0;
	}
	if (!threadIdx.x) {
		p->entered = j->entered[slot];
		j->entered[slot] = 0;
	}
	__syncthreads();
}

static __device__ bool is_marked(const struct page_marks *p, enum screen_mark mark, uint32_t unit)
{
	return p->mark[mark][unit / 32] >> unit % 32 & 1;
}

/* With what its unit's marks stand for. */
static __device__ uint32_t whole_entry(const struct page_marks *p, uint32_t entry, uint32_t unit)
{
	return screen_with_marks(entry, is_marked(p, SCREEN_MARK_READ, unit),
		is_marked(p, SCREEN_MARK_WRITTEN, unit), is_marked(p, SCREEN_MARK_REDUCED, unit));
}

/* The key of a half word of a page, and whether single bytes of it were accessed. */
static __device__ uint32_t key_of(const struct screen_job *j, const struct page_marks *p, uint32_t slot,
	uint32_t half, uint32_t *part)
{
	const uint32_t unit = half / 8;
	const uint16_t *seen = j->seen + (u64)slot * SCREEN_PAGE_SEEN + half;
	const uint16_t *marked = j->marked + (u64)slot * 2 * SCREEN_PAGE_UNITS + unit;
	const bool wrote = is_marked(p, SCREEN_MARK_WRITTEN, unit) || is_marked(p, SCREEN_MARK_REDUCED, unit);
	const bool read = is_marked(p, SCREEN_MARK_READ, unit);
	uint32_t entry = 0;

	if (p->entered)
		entry = (uint32_t)(j->entry[(u64)slot * SCREEN_PAGE_WORDS + half / 2] >> half % 2 * 32);
	*part |= entry & SCREEN_PART;
	return screen_edge_key(whole_entry(p, entry, unit), read ? marked[0] : p->entered ? seen[0] : 0,
		wrote ? marked[SCREEN_PAGE_UNITS] : p->entered ? seen[SCREEN_PAGE_HALVES] : 0);
}

static __device__ void add_edge(const struct screen_job *j, uint64_t addr, uint32_t key)
{
	const uint32_t k = atomicAdd(&j->result->edges, 1);

	if (k >= j->most_edges)
		return;
	j->edge[k].addr = addr;
	j->edge[k].key = key;
}

/* The block finds the edges in a page, which begins at this address. The half words of a unit are alike if
 * the page has no entries. */
static __device__ void find_edges(const struct screen_job *j, const struct page_marks *p, uint32_t slot,
	uint64_t addr)
{
	const uint32_t step = p->entered ? 1 : 8;
	uint32_t part = 0;

	for (uint32_t k = step * threadIdx.x; k < SCREEN_PAGE_HALVES; k += step * blockDim.x) {
		const uint32_t key = key_of(j, p, slot, k, &part);

		if (!screen_alike(j->like, key, k ? key_of(j, p, slot, k - 1, &part) : 0))
			add_edge(j, addr + 2 * k, key);
		if (k + step == SCREEN_PAGE_HALVES && key)
			add_edge(j, addr + 2 * SCREEN_PAGE_HALVES, 0);
	}
	if (part)
		refuse(j, 0, SCREEN_INEXACT, addr);
}

/* Is the entry, with its unit's marks, not good? */
static __device__ bool is_bad(const struct page_marks *p, uint32_t entry, uint32_t unit)
{
	return entry && screen_is_bad(whole_entry(p, entry, unit));
}

/* The block looks at the entries of a page, and empties them. */
static __device__ void scan_entries(const struct screen_job *j, const struct page_marks *p, uint32_t slot,
	uint64_t addr)
{
	ulonglong2 *entry = (ulonglong2 *)(j->entry + (u64)slot * SCREEN_PAGE_WORDS);
	ulonglong2 *seen = (ulonglong2 *)(j->seen + (u64)slot * SCREEN_PAGE_SEEN);

#pragma unroll 4
	for (uint32_t i = threadIdx.x; i < SCREEN_PAGE_WORDS / 2; i += blockDim.x) {
		const ulonglong2 e = entry[i];
		const uint32_t unit = i / 2;

		if (is_bad(p, (uint32_t)e.x, unit) || is_bad(p, (uint32_t)(e.x >> 32), unit)
				|| is_bad(p, (uint32_t)e.y, unit) || is_bad(p, (uint32_t)(e.y >> 32), unit))
			refuse(j, 0, SCREEN_RACE, addr + 8ull * i);
		entry[i] = make_ulonglong2(0, 0);
		if (j->seen)
			seen[i] = make_ulonglong2(0, 0);
	}
}

static __device__ void scan_marks(const struct screen_job *j, const struct page_marks *p, uint64_t addr)
{
	for (uint32_t k = threadIdx.x; k < SCREEN_MARK_WORDS; k += blockDim.x) {
		const uint32_t bad = screen_bad_marks(p->mark[SCREEN_MARK_READ][k],
			p->mark[SCREEN_MARK_WRITTEN][k], p->mark[SCREEN_MARK_REDUCED][k]);

		if (bad)
			refuse(j, 0, SCREEN_RACE, addr + 512ull * k + 16 * (__ffs(bad) - 1));
	}
}

/* Looks at the pages that are used, and empties them. */
extern "C" __global__ void __launch_bounds__(256) consan_screen_scan(const struct screen_job job)
{
	__shared__ u64 key[SCREEN_SCAN_PAGES];
	__shared__ struct page_marks marks;
	const struct screen_job *j = &job;
	const uint32_t first = blockIdx.x * SCREEN_SCAN_PAGES;

	for (uint32_t k = threadIdx.x; k < SCREEN_SCAN_PAGES; k += blockDim.x)
		key[k] = first + k < j->pages ? j->key[first + k] : 0;
	__syncthreads();
	for (uint32_t k = 0; k < SCREEN_SCAN_PAGES; k++) {
		const uint64_t addr = (key[k] - 1) << SCREEN_PAGE_SHIFT;

		if (!key[k])
			continue;
		take_marks(j, first + k, &marks);
		scan_marks(j, &marks, addr);
		if (j->seen)
			find_edges(j, &marks, first + k, addr);
		__syncthreads();
		if (marks.entered)
			scan_entries(j, &marks, first + k, addr);
		if (!threadIdx.x)
			j->key[first + k] = 0;
	}
	if (!threadIdx.x)
		atomicAdd(&j->result->scanned, 1);
}
