/* global: who touched which bytes of global memory last, over all clusters of
 * one launch.
 *
 * A past access is one record, whatever it touched: it says who (cluster,
 * agent, epoch, lanes) and how. The accesses that a granule of 16 bytes still
 * remembers are its state; granules with the same past share one state. An
 * access replaces states, a run of equal granules at a time, so that the cost
 * is that of the pieces of the access, not of its bytes. A granule takes 4
 * bytes of shadow, a page of 4 KiB that was only touched whole takes none.
 * Before all that, while the accesses near a place do not conflict at all, they
 * are only put down, see global_log.c.
 *
 * House rules:
 *  - does not know what orders accesses: the asker's judge says that;
 *  - any thread may call at any time; parts of the address space are locked one
 *    at a time, and the judge is called under that lock: it may not come back;
 *  - accesses of one thread that synchronise with another's come here first. */
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
	GR_CROWD  = 64, /* reads by the warp at more than one place of the program: which
	                   of its lanes is not known */
};

/* Which lanes touched a byte: lane l has `size` bytes at
 *   base + (l >> row) * pitch + (l & (1 << row) - 1) * inner  (rows of lanes)
 * and again at count - 1 places, each `step` bytes on (a loop's accesses),
 *   anywhere in the region, see offset                        (GR_LIST)
 * or all of `lanes` touched all of it (GR_WHOLE). */
enum { GR_LIST = 254, GR_WHOLE = 255 };

struct global_record {
	uint64_t base;
	uint16_t *offset;        /* GR_LIST: where in the region; the shadow's own */
	uint32_t cluster, epoch, site, lanes;
	uint32_t issue;          /* epoch of the issuing warp */
	uint32_t refs;           /* states that hold it */
	int32_t pitch, inner, step; /* inner 0: the lanes of a row have the same bytes */
	uint16_t agent, warp;    /* warp: in the cluster, that did or issued it */
	uint16_t size;           /* bytes per lane */
	uint16_t element;        /* bytes that are atomic */
	uint8_t row, flags, scope;
	uint8_t count;           /* 0 and 1 are the same; 1 of a GR_LIST */
	int8_t lane;             /* who issued it, if an engine did it */
};

/* The lanes that touched the byte. */
uint32_t global_lanes_at(const struct global_record *r, uint64_t addr);
/* The bytes of a granule, a mask, whose lanes in both are those of this one. */
uint32_t global_alike(const struct global_record *a, const struct global_record *b, unsigned byte);

enum global_verdict {
	GLOBAL_ORDERED, /* old is known to have happened before now */
	GLOBAL_MUTUAL,  /* not ordered, yet no race: both strong */
	GLOBAL_CLASH,   /* a conflict, and the judge has taken note of it */
	GLOBAL_APART    /* two reads, not ordered */
};

/* Whose access it is. judge() is asked about every old access that overlaps in
 * `bytes` (a mask) of the granule at addr; *lanewise is to be set if the answer
 * depends on the lanes, hence on the granule. lonely: the accessor knows nothing
 * of other clusters, so two reads by different clusters need not be asked;
 * synchronised: clusters of the launch may come to know of each other. */
struct global_ask {
	bool lonely, synchronised;
	enum global_verdict (*judge)(struct global_ask *a, const struct global_record *old,
		const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise);
};

struct global_span {
	uint64_t addr, bytes;
	uint16_t mask;           /* of each granule only these bytes; 0: all */
};

struct global_shadow;
struct global_shadow *global_shadow_open(void);
void global_shadow_close(struct global_shadow *s);
size_t global_shadow_footprint(const struct global_shadow *s); /* bytes of host memory */
uint64_t global_shadow_visits(const struct global_shadow *s);  /* granules touched */
uint64_t global_shadow_forgot(const struct global_shadow *s);  /* accesses dropped for want of room */

/* While no clusters synchronise: so many clusters below r's have read [addr, addr + bytes)
 * that r, a plain read, need not be told of. Cheap; false is always a safe answer. */
bool global_shadow_crowded(const struct global_shadow *s, const struct global_record *r,
	uint64_t addr, uint64_t bytes);
/* The same of r->size bytes at each lane's address. */
bool global_shadow_all_crowded(const struct global_shadow *s, const struct global_record *r,
	const uint64_t *lane_addr, uint32_t lanes);

/* The access `now`, if it is a read of what others have read in the same way, lane by
 * lane, and nobody has written, is remembered; else false, and it is to be told in
 * full. Not for GR_WHOLE. */
bool global_shadow_again(struct global_shadow *s, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr);
/* The access `now`; lane_addr: 32 addresses, if its row is GR_LIST. */
void global_shadow_touch(struct global_shadow *s, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans);
/* Nobody has touched it: memory that was given out anew. */
void global_shadow_forget(struct global_shadow *s, uint64_t addr, uint64_t bytes);

#endif
