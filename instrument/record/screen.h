/* screen: which accesses to global memory a launch made, on the GPU (screen.cu) and on the host
 * (decode/screen.c), from its records alone. For each half word there is an entry: who has accessed it,
 * and how. A launch is clean if each half word that was written was accessed by one thread only, with
 * plain instructions, whose program order is enough. Then no check of global memory can find anything.
 * All else is for the host's check to judge: the screen may be wrong about a launch that is not clean,
 * but never about a clean one.
 *
 * What asynchronous copies access are mostly whole units of 16 bytes, of which it does not matter who
 * accessed them, as copies have no program order. For these a unit has a mark, one bit for each of enum
 * screen_mark, which stands for the entries of its half words: a copy of 16 KiB sets 32 words of marks
 * instead of 4096 words of entries.
 *
 * Entries and marks only grow, so that the order of accesses does not matter.
 *
 * If the launch is to be compared with other operations, it is also noted which instruction has read and
 * which has written each half word, and what the launch accessed is reported as edges: where another
 * instruction's bytes begin. */
#ifndef CONSAN_INSTRUMENT_SCREEN_H
#define CONSAN_INSTRUMENT_SCREEN_H

#include "record.h"

/* ---- what is known of a site ---- */

/* A site's word: the kind in bits 0..3, and above:
 *    READ, NC, WRITE, COPY: log2 of the bytes of a lane in bits 4..7
 *    COPY: MAYBE: it may read less; SIZED: its other record, of the next site, which follows this one in
 *    the lane's chunks, has two words for each lane, the second of which is the number of bytes that it
 *    reads, or, with UNLESS, not 0 if it reads none
 *    LOAD, STORE, REDUCE: the bytes, or 0 if the record has them
 *    TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE: an index into the table of struct screen_tensor */
enum screen_kind {
	SCREEN_NONE,               /* no access to global memory */
	SCREEN_READ, SCREEN_NC, SCREEN_WRITE,
	SCREEN_COPY,               /* cp.async */
	SCREEN_LOAD, SCREEN_STORE, SCREEN_REDUCE, /* bulk copies */
	SCREEN_TENSOR_LOAD, SCREEN_TENSOR_STORE, SCREEN_TENSOR_REDUCE, /* tiled */
	SCREEN_HOST,               /* what the screen does not follow: synchronization and the like */
};
#define SCREEN_KIND 15u
#define SCREEN_DETAIL 4            /* shift */
#define SCREEN_MAYBE 0x100u
#define SCREEN_SIZED 0x200u
#define SCREEN_UNLESS 0x400u
#define SCREEN_RANKS 5

/* The coordinates of a tensor copy: the record has those of `recorded`, in their order, then the map, unless
 * that is known. */
struct screen_tensor {
	uint32_t ncoords, recorded;
	int32_t constant[SCREEN_RANKS];
	uint32_t unused;
	uint64_t map;              /* as it would be recorded; 0: it is */
};

/* ---- what is known of a launch ---- */

/* A tiled map among the parameters, at this offset; count: elements of the box. */
struct screen_map {
	uint64_t offset, address, stride[SCREEN_RANKS - 1];
	uint32_t last[SCREEN_RANKS], count[SCREEN_RANKS], step[SCREEN_RANKS];
	uint32_t bits, rank, unused;
};

/* An allocation: an access in [to, judged) is certainly outside of all. Sorted by `from`. */
struct screen_range { uint64_t from, to, judged; };

/* Why a launch is not clean: a set. */
enum screen_why {
	SCREEN_RACE = 1,           /* two threads or engines accessed what one of them wrote */
	SCREEN_OTHER = 2,          /* a record of SCREEN_HOST */
	SCREEN_OUTSIDE = 4, SCREEN_ALIGN = 8,
	SCREEN_MAP = 16,           /* a tensor map, or a use of one, that is not followed */
	SCREEN_FULL = 32,          /* no entries are left */
	SCREEN_DAMAGED = 64,
	SCREEN_INEXACT = 128,      /* with edges: it is not known of some bytes whether they were accessed */
};

/* From here on, up to the next edge, the memory was accessed at places that are like key >> 1, which is that
 * of the first half word: written, if the key is odd, else read; 0: it was not accessed. Not sorted; at one
 * address 0 comes first. */
struct screen_edge { uint64_t addr; uint32_t key, unused; };

struct screen_result {
	uint32_t why;              /* enum screen_why; 0: the launch is clean */
	uint32_t site;             /* of a record that is the reason; 0: not known */
	uint64_t addr;             /* an address that is; 0: not known */
	uint32_t edges, unused;    /* may be more than there was space for */
	uint32_t chunks, scanned;  /* chunks that were entered; blocks of pages that were looked at. Only
				      if these are all of them does `why` mean anything */
};

/* Addresses are of the memory where it runs. */
struct screen_job {
	const void *pool;
	const uint32_t *digest, *site; /* words of each site: digest.h, and above */
	const struct screen_tensor *tensor;
	const struct screen_map *map;
	const struct screen_range *range; /* NULL: allocations are not known */
	/* of screen.cu: the digests of all chunks, and the numbers of the chunks of each CTA, as
	 * consan_digest has written them; NULL: not known */
	const struct record_digest *digests;
	const uint32_t *many, *list;
	struct screen_result *result;
	const uint16_t *place;     /* of each site: the number of its instruction, from 1; 0: no access */
	const uint16_t *like;      /* of each place: the same number for those that need not be distinguished,
				      as the copies of an instruction in an unrolled loop */
	uint16_t *seen;            /* SCREEN_PAGE_SEEN for each page: places that have read, then places that
				      have written; NULL: no edges are wanted */
	uint16_t *marked;          /* the same of those that have set marks: 2 * SCREEN_PAGE_UNITS */
	struct screen_edge *edge;
	uint64_t *key;             /* of each page: its number + 1, or 0 */
	uint64_t *entry;           /* SCREEN_PAGE_WORDS for each page, of two half words each */
	uint32_t *mark;            /* SCREEN_PAGE_MARKS for each page: of each mark, a bit for each unit */
	uint32_t *entered;         /* of each page: 1 if there may be entries, else 0 */
	uint32_t chunks, nsites, nmaps, nranges, pages; /* pages: a power of 2, at most SCREEN_MOST_PAGES */
	uint32_t nctas, threads;   /* threads of a CTA, in whole warps */
	uint32_t param_bytes, most_edges;
	uint32_t cap;              /* of each CTA in `list` */
};

/* Marks of a unit, whose bytes have all been */
enum screen_mark {
	SCREEN_MARK_READ,          /* read by asynchronous copies, or not coherently */
	SCREEN_MARK_WRITTEN,       /* written by one bulk copy; a second one is a race */
	SCREEN_MARK_REDUCED,       /* reduced by bulk copies */
	SCREEN_MARKS,              /* none */
};

#define SCREEN_PAGE_SHIFT 16       /* bytes of memory that share a page of entries */
#define SCREEN_PAGE_WORDS (1u << (SCREEN_PAGE_SHIFT - 2))
#define SCREEN_PAGE_UNITS (1u << (SCREEN_PAGE_SHIFT - 4))
#define SCREEN_MARK_WORDS (SCREEN_PAGE_UNITS / 32) /* of each mark of a page */
#define SCREEN_PAGE_MARKS (SCREEN_MARKS * SCREEN_MARK_WORDS)
#define SCREEN_MOST_PAGES 65536u
#define SCREEN_MOST_BYTES (1u << 18) /* of a copy; shared memory is smaller */
#define SCREEN_PAGE_HALVES (2 * SCREEN_PAGE_WORDS)
#define SCREEN_PAGE_SEEN (2 * SCREEN_PAGE_HALVES) /* as many bytes as its entries */
#define SCREEN_SCAN_PAGES 64u      /* of a block of consan_screen_scan */
#define SCREEN_PROBES 128u         /* places of the table that are tried for a page */

/* Of a page: its entries, its key, `entered`, its marks, and half of the places of marks, as with edges only
 * half as many pages are used */
#define SCREEN_PAGE_BYTES (8ull * SCREEN_PAGE_WORDS + 8 + 4 + 4 * SCREEN_PAGE_MARKS + 2 * SCREEN_PAGE_UNITS)

#ifndef __CUDACC__
/* Divides a table of SCREEN_PAGE_BYTES for each page, which is zero before each launch. With edges half of
 * the pages' entries are `seen` of the others. `marked` may have any contents. */
static inline void screen_use_table(struct screen_job *j, uint64_t at, uint32_t pages, bool edges)
{
	j->entry = (uint64_t *)(uintptr_t)at;
	j->pages = edges ? pages / 2 : pages;
	j->key = j->entry + (uint64_t)SCREEN_PAGE_WORDS * pages;
	j->mark = (uint32_t *)(j->key + pages);
	j->entered = j->mark + (uint64_t)SCREEN_PAGE_MARKS * pages;
	j->marked = edges ? (uint16_t *)(j->entered + pages) : 0;
	j->seen = edges ? (uint16_t *)(j->entry + (uint64_t)SCREEN_PAGE_WORDS * j->pages) : 0;
}
#endif

/* ---- entries ---- */

/* The entry of a half word: flags, and above them the owner: 0: none, 1 + the number of a thread in
 * the grid, or one of the four. */
#define SCREEN_READS 1u
#define SCREEN_WRITES 2u
#define SCREEN_NONCOHERENT 4u
#define SCREEN_PART 8u             /* some accesses were to one of its bytes */
#define SCREEN_OWNER 4             /* shift */
#define SCREEN_MANY 0xfffffffu
#define SCREEN_ASYNC 0xffffffeu    /* copies, which only read */
#define SCREEN_BULK 0xffffffdu     /* one bulk copy, which wrote */
#define SCREEN_REDUCED 0xffffffcu  /* bulk reductions, which are atomic to each other */
#define SCREEN_MOST_THREADS 0xffffffcull /* fewer than these can be numbered */

DIGEST uint32_t screen_merge(uint32_t old, uint32_t add)
{
	if (!old || !add)
		return old | add;
	if (old >> SCREEN_OWNER != add >> SCREEN_OWNER || add >> SCREEN_OWNER == SCREEN_BULK)
		return SCREEN_MANY << SCREEN_OWNER | ((old | add) & 15);
	return old | add;
}

/* Of two half words */
DIGEST unsigned long long screen_merge_word(unsigned long long old, unsigned long long add)
{
	return (unsigned long long)screen_merge((uint32_t)(old >> 32), (uint32_t)(add >> 32)) << 32
		| screen_merge((uint32_t)old, (uint32_t)add);
}

/* What accesses of this kind to whole units set. */
DIGEST enum screen_mark screen_mark_of(uint32_t kind)
{
	switch (kind) {
	case SCREEN_NC: case SCREEN_COPY: case SCREEN_LOAD: case SCREEN_TENSOR_LOAD: return SCREEN_MARK_READ;
	case SCREEN_STORE: case SCREEN_TENSOR_STORE: return SCREEN_MARK_WRITTEN;
	case SCREEN_REDUCE: case SCREEN_TENSOR_REDUCE: return SCREEN_MARK_REDUCED;
	default: return SCREEN_MARKS; /* whose thread it was matters */
	}
}

/* The entry of a half word with what the marks of its unit stand for. Those of one that is not coherent
 * stand for a copy: either is only good if nothing writes. */
DIGEST uint32_t screen_with_marks(uint32_t entry, bool read, bool written, bool reduced)
{
	if (read)
		entry = screen_merge(entry, SCREEN_ASYNC << SCREEN_OWNER | SCREEN_READS);
	if (written)
		entry = screen_merge(entry, SCREEN_BULK << SCREEN_OWNER | SCREEN_WRITES);
	if (reduced)
		entry = screen_merge(entry, SCREEN_REDUCED << SCREEN_OWNER | SCREEN_WRITES);
	return entry;
}

/* Of 32 units without entries, the bits of those with which anything may be wrong. */
DIGEST uint32_t screen_bad_marks(uint32_t read, uint32_t written, uint32_t reduced)
{
	return (read & (written | reduced)) | (written & reduced);
}

/* Bits of `n` units from this one on, in the word of marks that holds it. */
DIGEST uint32_t screen_mark_bits(uint32_t unit, uint32_t n)
{
	return (n < 32 ? (1u << n) - 1 : ~0u) << (unit & 31);
}

/* May anything be wrong with the accesses to this half word? */
DIGEST bool screen_is_bad(uint32_t entry)
{
	return entry & SCREEN_WRITES && (entry >> SCREEN_OWNER == SCREEN_MANY || entry & SCREEN_NONCOHERENT);
}

/* What bytes [from, to) of 16 add to the entries of a word of them, k < 4. */
DIGEST unsigned long long screen_add(uint32_t tag, uint32_t from, uint32_t to, uint32_t k)
{
	unsigned long long add = 0;

	for (uint32_t half = 0; half < 2; half++) {
		const uint32_t at = 4 * k + 2 * half;

		if (from < at + 2 && to > at)
			add |= (unsigned long long)(tag | (from > at || to < at + 2 ? SCREEN_PART : 0))
				<< (32 * half);
	}
	return add;
}

/* What struct screen_edge has of a half word. */
DIGEST uint32_t screen_edge_key(uint32_t entry, uint16_t reader, uint16_t writer)
{
	if (!entry)
		return 0;
	return entry & SCREEN_WRITES ? (uint32_t)writer << 1 | 1 : (uint32_t)reader << 1;
}

/* Is no edge needed between half words with these keys? */
DIGEST bool screen_alike(const uint16_t *like, uint32_t a, uint32_t b)
{
	return a == b || (a && b && !((a ^ b) & 1) && like[a >> 1] == like[b >> 1]);
}

/* Where in the table a page is looked for first. */
DIGEST uint32_t screen_place(uint64_t page)
{
	return (uint32_t)(page * 0x9e3779b97f4a7c15ull >> 32);
}

/* ---- records ---- */

/* The address of a lane in a record of PLAN_GLOBAL; r: its words. */
DIGEST uint64_t screen_address(const uint32_t *r, uint32_t lane, uint32_t first)
{
	const uint32_t from = lane - first, k = r[7] & 31;

	if (!(r[0] & RECORD_AFFINE))
		return r[4 + 2 * lane] | (uint64_t)r[5 + 2 * lane] << 32;
	return (r[3] | (uint64_t)r[4] << 32) + (uint64_t)((int64_t)(int32_t)r[5] * (from & ((1u << k) - 1))
		+ (int64_t)(int32_t)r[6] * (from >> k));
}

/* The owner and flags of an access of this kind; thread: its number in the grid. */
DIGEST uint32_t screen_tag(uint32_t kind, uint32_t thread)
{
	switch (kind) {
	case SCREEN_READ: return (thread + 1) << SCREEN_OWNER | SCREEN_READS;
	case SCREEN_NC: return (thread + 1) << SCREEN_OWNER | SCREEN_READS | SCREEN_NONCOHERENT;
	case SCREEN_WRITE: return (thread + 1) << SCREEN_OWNER | SCREEN_WRITES;
	case SCREEN_STORE: case SCREEN_TENSOR_STORE: return SCREEN_BULK << SCREEN_OWNER | SCREEN_WRITES;
	case SCREEN_REDUCE: case SCREEN_TENSOR_REDUCE: return SCREEN_REDUCED << SCREEN_OWNER | SCREEN_WRITES;
	default: return SCREEN_ASYNC << SCREEN_OWNER | SCREEN_READS;
	}
}

/* Which of the ranges, from 1, holds these bytes; 0: it is not known whether any does. UINT32_MAX: they
 * are certainly outside. */
DIGEST uint32_t screen_range_of(const struct screen_range *range, uint32_t n, uint64_t addr,
	uint64_t bytes)
{
	uint32_t from = 0, to = n;

	while (from < to) {
		const uint32_t k = (from + to) / 2;

		if (range[k].from <= addr)
			from = k + 1;
		else
			to = k;
	}
	if (!from)
		return 0;
	if (addr < range[from - 1].to && bytes <= range[from - 1].to - addr)
		return from;
	return addr < range[from - 1].judged ? UINT32_MAX : 0;
}

/* The bytes that a lane of a copy of so many reads. other: its other record; NULL: not known. before: number
 * of lanes in the record before this one. */
DIGEST uint32_t screen_copied(uint32_t word, uint32_t bytes, const uint32_t *other, uint32_t before)
{
	uint32_t n;

	if (!other)
		return bytes;
	n = (other + 4 + (other[0] & RECORD_AFFINE ? 0 : 2 * before))[1];
	if (word & SCREEN_UNLESS)
		return n ? 0 : bytes;
	return n;
}

/* Is this the other record of the copy with record r? */
DIGEST bool screen_is_other(const uint32_t *r, const uint32_t *other)
{
	return other[0] >> RECORD_SITE_SHIFT == (r[0] >> RECORD_SITE_SHIFT) + 1 && other[1] == r[1];
}

/* ---- tensor copies ---- */

/* The map that a record names by this value; nmaps: none. base: the address of the parameters; 0: not
 * known. */
DIGEST uint32_t screen_map_of(const struct screen_map *map, uint32_t nmaps, uint64_t value,
	uint64_t base, uint32_t param_bytes)
{
	uint32_t k = 0;

	if (value & RECORD_PARAM)
		value -= RECORD_PARAM;
	else if (base && value - base < param_bytes)
		value -= base;
	else
		return nmaps;
	while (k < nmaps && map[k].offset != value)
		k++;
	return k;
}

/* The place of a lane's words in a record that has `words` for each. */
DIGEST const uint32_t *screen_words(const uint32_t *r, uint32_t words, uint32_t before)
{
	return r + 4 + (r[0] & RECORD_AFFINE ? 0 : before * words);
}

/* The coordinates of a copy; returns its map, as it is recorded. */
DIGEST uint64_t screen_copy(const struct screen_tensor *t, const uint32_t *words, int32_t at[SCREEN_RANKS])
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < SCREEN_RANKS; k++)
		at[k] = t->recorded >> k & 1 ? (int32_t)words[n++] : t->constant[k];
	return t->map ? t->map : words[n] | (uint64_t)words[n + 1] << 32;
}

/* The bytes [low, high) of a row of the box that are in the tensor, and how many more behind them a store
 * writes: whole units of 16 bytes, at the inner edge of the tensor (exec/tensor_copy.c). */
struct screen_part { uint32_t low, high, more; };
DIGEST struct screen_part screen_part_of(const struct screen_map *m, int32_t at)
{
	const int64_t n = m->count[0], left = (int64_t)m->last[0] + 1 - at;
	const int64_t to = left < 0 ? 0 : left < n ? left : n;
	const int64_t from = at >= 0 ? 0 : -(int64_t)at < to ? -(int64_t)at : to;
	const uint32_t whole = (uint32_t)(n * m->bits / 8);
	struct screen_part p = { (uint32_t)(from * m->bits / 8), (uint32_t)(to * m->bits / 8), 0 };

	if (p.low < p.high)
		p.more = ((0 - p.high) & 15) < whole - p.high ? (0 - p.high) & 15 : whole - p.high;
	return p;
}

/* A copy of this box, whose rows are screen_row()s. False: it is not followed, or may be refused. */
DIGEST bool screen_box(const struct screen_map *m, const struct screen_tensor *t,
	const int32_t at[SCREEN_RANKS], uint32_t kind, uint32_t *rows)
{
	if (t->ncoords != m->rank || (int64_t)at[0] * m->bits % 128)
		return false;
	if (kind == SCREEN_TENSOR_REDUCE && screen_part_of(m, at[0]).more)
		return false;      /* it overwrites bytes that are not the tensor's */
	*rows = 1;
	for (uint32_t d = 0; d < SCREEN_RANKS; d++) {
		if (d < m->rank && kind != SCREEN_TENSOR_LOAD && at[d] < 0)
			return false;
		if (d && d < m->rank && *rows < SCREEN_MOST_BYTES)
			*rows *= m->count[d];
	}
	return (uint64_t)*rows * m->count[0] * m->bits / 8 <= SCREEN_MOST_BYTES;
}

/* The bytes that the k-th row accesses. False: none. */
DIGEST bool screen_row(const struct screen_map *m, const int32_t at[SCREEN_RANKS], uint32_t k,
	uint32_t kind, uint64_t *addr, uint32_t *bytes)
{
	const struct screen_part p = screen_part_of(m, at[0]);

	if (p.low >= p.high)
		return false;
	*addr = m->address + (uint64_t)((int64_t)at[0] * m->bits / 8) + p.low;
	*bytes = p.high - p.low + (kind == SCREEN_TENSOR_LOAD ? 0 : p.more);
	for (uint32_t d = 1; d < SCREEN_RANKS; d++) {
		int64_t x;

		if (d >= m->rank)
			break;
		x = at[d] + (int64_t)(k % m->count[d]) * m->step[d];
		if (x < 0 || x > m->last[d])
			return false;
		*addr += (uint64_t)x * m->stride[d - 1];
		k /= m->count[d];
	}
	return true;
}

#endif
