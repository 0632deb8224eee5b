/* global_parts: what the files of the global shadow share, see global.h and
 * global.c. For shadow/global*.c only.
 *
 * Invariant: refs of a state = granules that have it (pages that are uniform
 * count 256); refs of a record = states that hold it. State 0 is the empty one
 * and is not counted. */
#ifndef CONSAN_SHADOW_GLOBAL_PARTS_H
#define CONSAN_SHADOW_GLOBAL_PARTS_H

#include "global.h"

#include <pthread.h>

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
	struct global_log *log;
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

/* ---- global.c: granule by granule ---- */

void global_granules(struct global_shadow *g, struct global_ask *a,
	const struct global_record *now, const uint64_t *lane_addr,
	const struct global_span *spans, size_t nspans);
void global_lock_open(pthread_mutex_t *m);

/* ---- global_log.c: what conflicts with nothing so far ---- */

struct global_log *global_log_open(void);
void global_log_close(struct global_log *l);
/* From now on the granules know all that touched these bytes. */
void global_log_end(struct global_shadow *g, uint64_t addr, uint64_t bytes);
size_t global_log_footprint(const struct global_log *l);
uint64_t global_log_forgot(const struct global_log *l);

/* ---- global_state.c: records and states, counted ---- */

static inline struct global_record *record_at(const struct shard *s, uint32_t i)
{
	return &s->record[i / CHUNK][i % CHUNK];
}

/* lane_addr: of a GR_LIST. Lanes elsewhere have no part in this region's record. */
uint32_t global_record_new(struct shard *s, const struct global_record *from,
	const uint64_t *lane_addr, uint64_t number);
void global_record_put(struct shard *s, uint32_t i);
uint32_t global_state_new(struct visit *v, const struct entry *at, uint32_t n);
void global_state_put(struct visit *v, uint32_t i, uint32_t granules);
/* The state's content becomes at[0..n), for all granules that have it. */
void global_state_set(struct visit *v, uint32_t i, const struct entry *at, uint32_t n);

/* ---- global_step.c: what an access does to a state ---- */

static inline uint8_t tag_of(uint32_t cluster)
{
	return (uint8_t)(cluster ^ cluster >> 8 ^ cluster >> 16);
}

/* The state of `granules` granules that all have `from` now, of which this access
 * touches `bytes`; addr: the first. UINT32_MAX: the lanes matter, granule by granule. */
uint32_t global_step(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes,
	uint32_t granules);

/* ---- global_crowd.c: reads by many clusters ---- */

/* Drops readers that others stand for; returns how many entries stay. */
uint32_t global_thin_readers(struct visit *v, struct entry *at, uint32_t n);
bool global_is_crowded(const struct shard *s, uint32_t state);
/* The granules from addr on have this state now; was: the last one was crowded. */
void global_note_all(struct visit *v, uint64_t addr, uint32_t granules, uint32_t state, bool was);
void global_note(struct global_shadow *g, const struct crowded is[NREADS], uint64_t addr);

#endif
