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
	/* reads by one warp at more than one site, merged: the lanes are not known */
	GR_MERGED = 64,
};

/* The lanes that accessed a byte: lane l has `size` bytes at
 *   base + (l >> row) * pitch + (l & (1 << row) - 1) * inner  (rows of lanes)
 * and again at count - 1 further places, each `step` bytes after the previous (accesses of a loop);
 *   anywhere in the region, see offset                        (GR_LIST)
 * or all of `lanes` accessed all of it (GR_WHOLE). */
enum { GR_LIST = 254, GR_WHOLE = 255 };

struct global_record {
	uint64_t base;
	uint16_t *offset;        /* GR_LIST: offsets in the region; owned by the shadow */
	uint32_t cluster, epoch, site, lanes;
	uint32_t issue;          /* epoch of the issuing warp */
	uint32_t refs;           /* states that hold it */
	int32_t pitch, inner, step; /* inner 0: the lanes of a row access the same bytes */
	uint16_t agent, warp;    /* warp in the cluster that executed or issued it */
	uint16_t size;           /* bytes per lane */
	uint16_t element;        /* bytes of one atomic element */
	uint8_t row, flags, scope;
	uint8_t count;           /* 0 and 1 are equivalent; 1 for a GR_LIST */
	int8_t lane;             /* the issuing lane, if an engine performs the access; else -1 */
};

/* The lanes that touched the byte. */
uint32_t global_lanes_at(const struct global_record *r, uint64_t addr);
/* Mask of the bytes of the granule whose lanes, in both records, are those of `byte`. */
uint32_t global_same_lanes(const struct global_record *a, const struct global_record *b,
	unsigned byte);

enum global_verdict {
	GLOBAL_ORDERED,          /* old is known to have happened before now */
	GLOBAL_MORALLY_STRONG,   /* not ordered, but no race: both are morally strong */
	GLOBAL_CONFLICT,         /* a conflict, which the callback has recorded */
	GLOBAL_UNORDERED         /* two reads, not ordered */
};

/* The access being made. classify() is called for every old access that overlaps it in `bytes` (a
 * mask) of the granule at addr; it sets *lanewise if the result depends on the lanes, hence on the
 * granule. isolated: the accessor is ordered after no other cluster, so that two reads by different
 * clusters need no comparison; synchronised: clusters of the launch may synchronize with each
 * other. */
struct global_accessor {
	bool isolated, synchronised;
	enum global_verdict (*classify)(struct global_accessor *a, const struct global_record *old,
		const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise);
};

struct global_span {
	uint64_t addr, bytes;
	uint16_t mask;           /* accesses only these bytes of each granule; 0: all */
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
/* The same for r->size bytes at each lane's address. */
bool global_shadow_all_saturated(const struct global_shadow *s, const struct global_record *r,
	const uint64_t *lane_addr, uint32_t lanes);

/* Records the access `now` if it is a read of bytes that other reads accessed in the same way, lane
 * by lane, and that were not written. Else returns false: the caller must pass it to
 * global_shadow_touch(). Not for GR_WHOLE. */
bool global_shadow_repeat(struct global_shadow *s, struct global_accessor *a,
	const struct global_record *now, const uint64_t *lane_addr);
/* Records the access `now`; lane_addr: 32 addresses if its row is GR_LIST, else unused. */
void global_shadow_touch(struct global_shadow *s, struct global_accessor *a,
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans);
/* Forgets all accesses to these bytes, as after a new allocation. */
void global_shadow_forget(struct global_shadow *s, uint64_t addr, uint64_t bytes);

#endif
