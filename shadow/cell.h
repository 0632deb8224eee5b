/* cell: one past access to shared memory in 16 bytes, and the cell that holds the accesses of one
 * 16-byte granule. Compiled by cc and by nvcc. An entry records the accessor (agent, lanes), the
 * time (epoch) and the bytes; it refers to no event and no rule.
 *
 *   struct cell_entry                       struct cell, 64 bytes
 *   63      55 54            32 31      0   +-----------------------------+
 *   | flags   |  site          | epoch   |  | head: n, init, chain, ...   |
 *   | lanes            | bytes | agent   |  | entry 0                     |
 *   127              96 95   80 79     64   | entry 1                     |
 *   flags  8..6 shift  5..4 scope           | entry 2                     |
 *          3 RMW/PART  2 STRONG  1 WRITE    +-----------------------------+
 *          0 UNREAD                           one cache line; more in a chain
 *
 * Lanes: the byte at shared address a was accessed by the lanes
 *     rotate_left(lanes, a >> shift)
 * so that one entry, the same in every granule, represents a warp's contiguous access (one lane for
 * each `1 << shift` bytes) and a broadcast (many lanes). CELL_SAME in place of a shift: the same
 * lanes accessed all bytes, or an asynchronous engine did. CELL_COLUMNS: each lane accessed one byte,
 * and four lanes on is the next one, rotate_left(lanes, 4 * a), as in the columns of an mma fragment.
 *
 * Granules with the same history share one cell. */
#ifndef CONSAN_SHADOW_CELL_H
#define CONSAN_SHADOW_CELL_H

#include <stdint.h>

#ifdef __CUDACC__
#define CELL_FN static __host__ __device__ inline
#define CELL_ASSERT(c) static_assert(c, #c)
#else
#define CELL_FN static inline
#define CELL_ASSERT(c) _Static_assert(c, #c)
#endif

#define CELL_BYTES 16u /* of shared memory per cell */
#define CELL_ENTRIES 3u

#define CELL_SITE_BITS 23
#define CELL_SITE_MASK 0x007fffffu
#define CELL_UNREAD    0x00800000u /* a read-modify-write whose result is not used */
#define CELL_STALE     CELL_UNREAD /* a strong read that returned an older value than the newest */
#define CELL_WRITE     0x01000000u
#define CELL_STRONG    0x02000000u /* not weak: A03 may hold */
/* generic: a read-modify-write if strong, else ldmatrix, stmatrix or wmma; wgmma: operand B; bulk
 * copy: a tensor copy */
#define CELL_PART      0x04000000u
#define CELL_SCOPE_AT  27          /* 0 cta, 1 cluster, 2 gpu or wider, 3 volatile */
#define CELL_SCOPE_MASK (3u << CELL_SCOPE_AT)
#define CELL_VOLATILE   (3u << CELL_SCOPE_AT) /* wide, and not of a flag */
#define CELL_SHIFT_AT  29
#define CELL_SHIFT_MASK (7u << CELL_SHIFT_AT)
#define CELL_SAME       (5u << CELL_SHIFT_AT)
#define CELL_COLUMNS    (7u << CELL_SHIFT_AT)

CELL_ASSERT((CELL_SITE_MASK ^ CELL_UNREAD ^ CELL_WRITE ^ CELL_STRONG ^ CELL_PART
	^ CELL_SCOPE_MASK ^ CELL_SHIFT_MASK) == 0xffffffffu);

struct cell_entry {
	uint32_t epoch;
	uint32_t what;   /* flags and site */
	uint16_t agent;
	uint16_t bytes;  /* mask; 0 only in an unused entry */
	uint32_t lanes;
};
CELL_ASSERT(sizeof(struct cell_entry) == 16);

struct cell {
	uint32_t refs;   /* granules that have this cell; not counted for cell 0 */
	uint32_t more;   /* index of the next cell of the chain, or 0 */
	uint16_t init;   /* bytes that were ever written */
	uint16_t guard;  /* bytes that belong to a live mbarrier object */
	uint16_t n;      /* entries, those in the chain included */
	uint8_t writes;  /* all writes are among the first `writes` entries; 255: or more */
	uint8_t readers; /* 1 << agent % 8 of every read, a superset */
	struct cell_entry entry[CELL_ENTRIES];
};
CELL_ASSERT(sizeof(struct cell) == 64);

CELL_FN uint32_t cell_shift(const struct cell_entry *e)
{
	return e->what >> CELL_SHIFT_AT;
}

CELL_FN int cell_is_stale(const struct cell_entry *e)
{
	return (e->what & (CELL_STALE | CELL_WRITE)) == CELL_STALE;
}

CELL_FN int cell_is_columns(const struct cell_entry *e)
{
	return (e->what & CELL_SHIFT_MASK) == CELL_COLUMNS;
}

/* The bytes that a lane accessed at least; with CELL_SAME, in one granule. */
CELL_FN uint32_t cell_size(const struct cell_entry *e)
{
	if (cell_is_columns(e))
		return 1;
	return cell_shift(e) < 4 ? 1u << cell_shift(e) : CELL_BYTES;
}

CELL_FN uint32_t cell_rotate(uint32_t x, uint32_t by)
{
	by &= 31;
	return by ? x << by | x >> (32 - by) : x;
}

CELL_FN uint32_t cell_lanes_at(const struct cell_entry *e, uint32_t addr)
{
	uint32_t shift = cell_shift(e);

	if (cell_is_columns(e))
		return cell_rotate(e->lanes, 4 * addr);
	return shift > 4 ? e->lanes : cell_rotate(e->lanes, addr >> shift);
}

/* The `lanes` field of an entry whose `lanes` access 1 << shift bytes each, the first at addr. */
CELL_FN uint32_t cell_lanes(uint32_t lanes, uint32_t addr, uint32_t shift)
{
	return cell_rotate(lanes, 0u - (addr >> shift));
}

#endif
