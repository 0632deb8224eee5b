/* global: the last accesses to each byte of global memory, over all clusters of one launch.
 *
 * A past access is one record, whatever its size: it holds the accessor (cluster, agent, epoch,
 * lanes) and the kind of access. The accesses that a granule of 16 bytes still remembers are its
 * state; granules with the same history share one state. An access replaces states for a run of
 * equal granules at a time, so that the cost depends on the number of pieces of the access, not on
 * its bytes. A granule takes 4 bytes of shadow; a page of 4 KiB that was only accessed as a whole
 * takes none. As long as the accesses near an address do not conflict at all, they are only logged
 * (see global_log.c).
 *
 * Invariants:
 *  - this module does not know what orders accesses: the caller's classify callback decides that;
 *  - any thread may call at any time; parts of the address space are locked one at a time, and
 *    classify is called under that lock: it must not call this module;
 *  - a thread passes its accesses to this module before it performs an operation that synchronizes
 *    with another thread. */
#ifndef CONSAN_SHADOW_GLOBAL_H
#define CONSAN_SHADOW_GLOBAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GRANULE 16u

enum {
	GR_WRITE  = 1,
	GR_STRONG = 2,
	GR_RMW    = 4,
	GR_NC     = 8,  /* ld.nc: outside the memory model */
	GR_ASYNC  = 16, /* by the async proxy */
	GR_TENSOR = 32,
	/* stands for many reads by a warp in one epoch: the lanes are not known */
	GR_MERGED = 64,
	GR_VOLATILE = 128, /* and not of a flag */
	/* bytes beside a tensor that its store overwrites; not in the flags of an entry */
	GR_PADDING = 256,
	GR_UNREAD = 512, /* GR_RMW whose result is not used; not in the flags of an entry */
	/* a strong read that observed none of the writes before it; not in the flags of an entry */
	GR_STALE = 1024,
	/* GR_STRONG of scope sys; not in the flags of an entry */
	GR_SYSTEM = 2048,
	/* GR_VOLATILE: a write that follows a release fence; not in the flags of an entry */
	GR_PUBLISHES = 4096,
};

/* Layout: which lanes accessed which bytes. The one description of it, from which the bytes that an
 * access visits (global_spans_of) and the lanes of a byte (global_lanes_at) are both derived.
 * Lane l of `lanes` accessed `size` bytes at
 *   base + (l >> row) * pitch + (l & (1 << row) - 1) * inner   row 0 to 5: rows of lanes
 *       and again at count - 1 further places, each `step` bytes after the previous (a loop), and
 *       each so many epochs after it as `pace` says
 *   addr[l]                                                    GR_LIST
 *   base + offset[l], if bytes of it are in the region at base GR_OFFSETS: a GR_LIST in the shadow
 * or all of `lanes` accessed all of it: GR_WHOLE, whose bytes the caller names. */
enum { GR_OFFSETS = 253, GR_LIST = 254, GR_WHOLE = 255 };
#define GR_MAX_COUNT 64u

struct global_record {
	uint64_t base;           /* rows: may be of a lane that takes no part */
	union {
		const uint64_t *addr;    /* GR_LIST: 32 addresses, owned by the caller */
		int16_t *offset;         /* GR_OFFSETS: 32 offsets, owned by the shadow */
		struct global_pace {     /* rows: from each place to the next */
			uint32_t epoch, issue;
		} pace;
	};
	uint32_t cluster, epoch, site, lanes;
	uint32_t issue;          /* epoch of the issuing warp */
	uint32_t value;          /* of the caller; not looked at here */
	uint32_t refs;           /* states that hold it */
	int32_t pitch, inner, step; /* inner 0: the lanes of a row access the same bytes */
	uint16_t agent, warp;    /* warp in the cluster that executed or issued it */
	uint16_t size;           /* bytes per lane; 0: unknown, as in a GR_WHOLE */
	uint16_t element;        /* bytes of one atomic element */
	uint16_t flags;
	uint8_t row, scope;
	uint8_t count;           /* 0 and 1 are equivalent; at most GR_MAX_COUNT */
	int8_t lane;             /* the issuing lane, if an engine performs the access; else -1 */
	uint16_t met;            /* of the caller: what the accessor knew of other launches. Of two
				    accesses with different values neither makes the other forgotten */
};

/* ---- global_layout.c, global_spans.c, global_lanes.c ---- */

struct global_span {
	uint64_t addr, bytes;
};

/* Sets the layout: lane l of `lanes` accessed r->size bytes at addr[l], or, if addr is NULL, at
 * base + l * stride. addr must outlive the calls that r is passed to. */
void global_set_layout(struct global_record *r, uint32_t lanes, const uint64_t *addr,
	uint64_t base, int32_t stride);
/* The same for 32 lanes in two halves that are `pitch` bytes apart, the lanes of each `inner` bytes; false:
 * use global_set_layout(). */
bool global_set_halves(struct global_record *r, uint32_t lanes, uint64_t base, int32_t inner,
	int64_t pitch);
/* If all lanes of `next` are moved by the same distance, the one from place to place in r, and its
 * epochs are as many later, adds it to r. If they have the bytes of r again, r becomes the later one.
 * False: neither is so, or r is full. */
bool global_extend(struct global_record *r, const struct global_record *next);
/* The bytes from the first to the last that it accesses. For rows. */
struct global_span global_bounds(const struct global_record *r);
static inline bool global_is_paced(const struct global_record *r)
{
	return r->row <= 5 && r->pace.epoch | r->pace.issue;
}
/* What it accessed at the i-th place. */
struct global_record global_place(const struct global_record *r, uint32_t i);
/* The first byte of a lane, at the first place. */
static inline uint64_t global_lane_addr(const struct global_record *r, unsigned lane)
{
	if (r->row == GR_LIST)
		return r->addr[lane];
	if (r->row == GR_OFFSETS)
		return r->base + (uint64_t)(int64_t)r->offset[lane];
	return r->base + (uint64_t)((int64_t)(lane >> r->row) * r->pitch
		+ (int64_t)(lane & ((1u << r->row) - 1)) * r->inner);
}
/* Do the same lanes access the same bytes? For two GR_WHOLE: of a byte that both accessed. */
bool global_same_layout(const struct global_record *a, const struct global_record *b);
/* The lanes that touched the byte. */
uint32_t global_lanes_at(const struct global_record *r, uint64_t addr);
/* Mask of the bytes of the granule whose lanes, in both records, are those of `byte`. */
uint32_t global_same_lanes(const struct global_record *a, const struct global_record *b,
	unsigned byte);

#define GLOBAL_SPANS 40u
struct global_spans {            /* at first, `at` is `few`, so it must not be copied */
	struct global_span *at, few[GLOBAL_SPANS];
	size_t n, cap;
};

void global_spans_open(struct global_spans *s);
void global_spans_close(struct global_spans *s);
/* Sets s to the bytes of r, not a GR_WHOLE, ascending; no two spans overlap or touch. */
void global_spans_of(const struct global_record *r, struct global_spans *s);

enum global_verdict {
	GLOBAL_ORDERED,          /* old is known to have happened before now */
	GLOBAL_MORALLY_STRONG,   /* not ordered, but no race: both are morally strong */
	GLOBAL_CONFLICT,         /* a conflict, which the callback has recorded */
	GLOBAL_UNORDERED         /* two reads, not ordered */
};

/* The access being made. classify() is called for every old access that overlaps it in `bytes` (a
 * mask) of the granule at addr; it sets *lanewise if the result depends on the lanes, hence on the
 * granule. observed() is called for a strong write x and a later strong read or read-modify-write z
 * of its chain: if z is morally strong to x, it removes from missing[byte], for each of `bytes`, the
 * lanes of now before which z is ordered, for any lane of z. NULL: never. isolated: the accessor is ordered after no other cluster, so that two reads by
 * different clusters need no comparison; synchronised: clusters of the launch may synchronize with each
 * other. */
struct global_accessor {
	bool isolated, synchronised;
	enum global_verdict (*classify)(struct global_accessor *a, const struct global_record *old,
		const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise);
	void (*observed)(struct global_accessor *a, const struct global_record *x,
		const struct global_record *z, const struct global_record *now, uint64_t addr,
		uint32_t bytes, uint32_t missing[16], bool *lanewise);
};

struct global_shadow;
struct global_shadow *global_shadow_open(void);
void global_shadow_close(struct global_shadow *s);
size_t global_shadow_footprint(const struct global_shadow *s); /* bytes of host memory */
uint64_t global_shadow_visits(const struct global_shadow *s);  /* granules touched */
/* accesses dropped because of the limits */
uint64_t global_shadow_dropped(const struct global_shadow *s);

/* While no clusters synchronize: have so many clusters with lower numbers read [addr, addr + bytes)
 * that r, a plain read, need not be recorded? Takes no lock; false is always a safe result. */
bool global_shadow_saturated(const struct global_shadow *s, const struct global_record *r,
	uint64_t addr, uint64_t bytes);
/* The same for all that r accesses, if it has rows. */
bool global_shadow_saturated_rows(const struct global_shadow *s, const struct global_record *r);
/* The same for r->size bytes at each lane's address. */
bool global_shadow_all_saturated(const struct global_shadow *s, const struct global_record *r,
	const uint64_t *lane_addr, uint32_t lanes);

/* Records the access `now` if it is a read of bytes that other reads accessed in the same way, lane
 * by lane, and that were not written. Else returns false: the caller must pass it to
 * global_shadow_touch(). Not for GR_WHOLE. */
bool global_shadow_repeat(struct global_shadow *s, struct global_accessor *a,
	const struct global_record *now);
/* Records the access `now`, of the bytes of its layout. Not for GR_WHOLE. */
void global_shadow_touch(struct global_shadow *s, struct global_accessor *a,
	const struct global_record *now);
/* Records the access `now`, a GR_WHOLE of these bytes, in any order. */
void global_shadow_touch_whole(struct global_shadow *s, struct global_accessor *a,
	const struct global_record *now, const struct global_span *spans, size_t nspans);
/* Calls each() for the accesses that are remembered: of `granules` granules from addr on, the bytes of
 * `mask` in each. Of reads that more threads made than are kept, the record is that of one of them.
 * No thread may access the shadow at that time. */
typedef void global_each(void *user, const struct global_record *r, uint64_t addr, uint32_t granules,
	uint16_t mask);
void global_shadow_each(struct global_shadow *s, global_each *each, void *user);
/* Forgets all accesses to these bytes, as after a new allocation. */
void global_shadow_forget(struct global_shadow *s, uint64_t addr, uint64_t bytes);

#endif
