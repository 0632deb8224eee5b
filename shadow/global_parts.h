/* global_parts: declarations shared by shadow/global*.c only; see global.h and global.c.
 *
 * Invariant: refs of a state = granules that have it (a uniform region counts 256); refs of a
 * record = states that contain it. State 0 is the empty one and is not counted. */
#ifndef CONSAN_SHADOW_GLOBAL_PARTS_H
#define CONSAN_SHADOW_GLOBAL_PARTS_H

#include "global.h"

#include <pthread.h>

#define REGION_SHIFT 12
#define REGION_BYTES (1ull << REGION_SHIFT)
#define REGION_GRANULES ((uint32_t)(REGION_BYTES / GRANULE))
#define ZONE_SHIFT 16 /* see global_log.c */
#define ZONE_BYTES (1u << ZONE_SHIFT)
#define SHARDS 64u
#define MAX_ENTRIES 256u
#define MAX_ENTRIES_LOW 24u
#define MAX_ATOMICS 16u
#define MERGE_ABOVE 4u
#define KEPT_READERS 6u         /* reading clusters kept, while no clusters synchronize */
#define MEMORY_LIMIT (4u << 20) /* limit of bytes for a shard's states and records */
#define HINTS_SHIFT 17
#define HINTS (1u << HINTS_SHIFT)
#define MEMO 8u
#define CHUNK 512u

struct region {
	uint64_t number; /* addr >> REGION_SHIFT */
	struct region *next;
	uint32_t *id; /* state of each granule, or NULL: all have `all` */
	uint32_t all;
};

/* Adjacent granules of one zone, of which an access touches the same bytes. */
struct global_run {
	uint64_t addr;
	uint32_t granules;
	uint16_t mask;
};

#define GLOBAL_RUNS 48u
struct global_runs { /* ascending, no granule twice; must not be copied, like global_spans */
	struct global_run *at, few[GLOBAL_RUNS];
	size_t n, cap;
};

struct entry {
	uint32_t record;
	uint16_t bytes;
	uint8_t flags; /* flags of the record below 256 */
	uint8_t tag;   /* tag of the record's cluster */
};

/* Bytes that enough clusters have read and that were not written: a read of that kind by a cluster
 * above `above` adds nothing while no clusters synchronize. */
struct saturated {
	uint32_t above;
	uint16_t bytes; /* 0: none */
};

enum { READ_PLAIN, READ_NC, NREADS };

struct state {
	uint32_t refs;
	uint16_t n, cap; /* cap is a power of two, or 0: the slot is free */
	struct entry *at;
	struct saturated saturated[NREADS];
};

struct memo {
	uint32_t from, to;
	uint16_t bytes;
};

struct shard {
	pthread_mutex_t lock;
	struct region **region; /* hash */
	uint32_t nregions, cap_regions;
	struct global_record **record; /* chunks; index 0 is unused */
	uint32_t nrecords, free_record;
	struct state *state;
	uint32_t nstates, cap_states, free_state;
	struct entry *spare[16]; /* free arrays of 1 << i entries, linked through themselves */
	struct entry *scratch;
	uint32_t cap_scratch;
	size_t bytes;
	uint64_t visits, dropped;
};

struct global_shadow {
	struct global_log *log;
	struct shard shard[SHARDS];
	uint64_t saturated[HINTS]; /* see hint_of() */
};

/* One access while it is applied to one region. */
struct visit {
	struct global_shadow *g;
	struct shard *s;
	struct global_accessor *accessor;
	const struct global_record *from;
	const struct global_record *now; /* the copy that this region keeps */
	uint32_t record;         /* index of now's record in this region */
	uint32_t merged;         /* index of the record of merged reads, or 0 */
	struct region *region;
	struct memo memo[MEMO];
	unsigned nmemo;
	uint32_t last;           /* the newest resulting state, or 0 */
	struct saturated saturated[NREADS]; /* of the result in scratch */
	bool lanewise;           /* the last step's result holds for one granule only */
};

/* ---- global.c: access by granule ---- */

/* Applies the access to these runs, all or some of its own. */
void global_granules(struct global_shadow *g, struct global_accessor *a,
	const struct global_record *now, const struct global_run *runs, size_t nruns);
void global_lock_open(pthread_mutex_t *m);

/* ---- global_spans.c: the bytes of an access ---- */

/* Sets s to these bytes, which may come in any order and twice. */
void global_spans_set(struct global_spans *s, const struct global_span *at, size_t n);
void global_runs_open(struct global_runs *c);
void global_runs_close(struct global_runs *c);
void global_runs_push(struct global_runs *c, struct global_run x);
/* Appends the granules of the spans. */
void global_runs_of(struct global_runs *c, const struct global_spans *s);

/* ---- global_log.c: accesses that conflict with none so far ---- */

struct global_log *global_log_open(void);
void global_log_close(struct global_log *l);
/* Moves the logged accesses of these bytes to the granules. */
void global_log_flush(struct global_shadow *g, uint64_t addr, uint64_t bytes);
/* global_shadow_each() for the logged accesses. */
void global_log_each(struct global_log *l, global_each *each, void *user);
/* global_shadow_saturated() for bytes of one zone that is a log. */
bool global_log_saturated(const struct global_log *l, int kind, uint32_t cluster, uint64_t addr,
	uint64_t bytes);
size_t global_log_footprint(const struct global_log *l);
uint64_t global_log_dropped(const struct global_log *l);

/* ---- global_state.c: records and states, with reference counts ---- */

static inline struct global_record *record_at(const struct shard *s, uint32_t i)
{
	return &s->record[i / CHUNK][i % CHUNK];
}

/* A copy for region `number`. A GR_LIST becomes a GR_OFFSETS without the lanes that access nothing
 * there. */
uint32_t global_record_new(struct shard *s, const struct global_record *from, uint64_t number);
void global_record_put(struct shard *s, uint32_t i);
uint32_t global_state_new(struct visit *v, const struct entry *at, uint32_t n);
void global_state_put(struct visit *v, uint32_t i, uint32_t granules);
/* Replaces the state's content by at[0..n), for all granules that have it. */
void global_state_set(struct visit *v, uint32_t i, const struct entry *at, uint32_t n);

/* ---- global_step.c: effect of an access on a state ---- */

static inline uint8_t tag_of(uint32_t cluster)
{
	return (uint8_t)(cluster ^ cluster >> 8 ^ cluster >> 16);
}

/* Applies the access to `granules` granules that all have the state `from`, in `bytes` of each;
 * addr: the first granule. Returns their new state, or UINT32_MAX if the lanes matter: then the
 * caller proceeds granule by granule. */
uint32_t global_step(struct visit *v, uint32_t from, uint64_t addr, uint16_t bytes,
	uint32_t granules);

/* ---- global_saturated.c: reads by many clusters ---- */

/* Drops readers that others represent; returns the number of entries that remain. */
uint32_t global_thin_readers(struct visit *v, struct entry *at, uint32_t n);
bool global_is_saturated(const struct shard *s, uint32_t state);
/* global_shadow_saturated() for these bytes of each granule. */
bool global_run_saturated(const struct global_shadow *g, const struct global_record *r,
	uint64_t addr, uint32_t granules, uint16_t mask);
/* Updates the hints of `granules` granules from addr on, which now have `state`; was: they were
 * saturated before. */
void global_hint_all(struct visit *v, uint64_t addr, uint32_t granules, uint32_t state, bool was);
void global_hint(struct global_shadow *g, const struct saturated is[NREADS], uint64_t addr);

#endif
