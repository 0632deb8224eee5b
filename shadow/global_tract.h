/* global_tract: what an access that was put down says, and who read the same bytes in
 * the same way, see global_log.c. For shadow/global_*.c only; knows no zones but
 * where one ends.
 *
 * House rule: all but tract_key() and tract_record() under the shard's lock. */
#ifndef CONSAN_SHADOW_GLOBAL_TRACT_H
#define CONSAN_SHADOW_GLOBAL_TRACT_H

#include "global_parts.h"

#include "libconsan/base/base.h"

#define ZONE_SHIFT 16

struct reader {
	uint32_t cluster, epoch, issue, site;
	uint16_t agent, warp;
	int8_t lane;
};

struct part { /* of an access, in one zone */
	struct zone *zone;
	uint32_t first, n; /* pieces */
	bool listed;       /* under the zone's lock */
};

struct tract {
	struct global_record r;    /* of reads only how, not who */
	uint64_t key;
	struct tract *next;        /* reads */
	uint64_t *lane_addr;       /* GR_LIST */
	struct global_span *piece; /* by rising zone, none in two of them */
	struct part *part;
	struct reader *reader;     /* by rising cluster; of a cluster as they came */
	uint32_t npieces, nparts, nreaders, cap_readers;
	uint32_t nlisted;          /* zones that list it */
	uint32_t above;            /* if crowded: readers of clusters above say nothing new */
	bool crowded, over;        /* over: in some zone */
};

struct tract_shard {
	pthread_mutex_t lock;
	struct tract **at; /* hash, of reads */
	uint32_t n, cap;
	struct arena arena;
	size_t bytes;
	uint64_t forgot;
};

/* How many from the i-th on are in its zone. */
static inline uint32_t zone_run(const struct global_span *at, size_t n, size_t i)
{
	size_t k = i + 1;

	while (k < n && at[k].addr >> ZONE_SHIFT == at[i].addr >> ZONE_SHIFT)
		k++;
	return (uint32_t)(k - i);
}

/* at: the pieces; of reads that are not GR_WHOLE they need not be known to find one. */
uint64_t tract_key(const struct global_record *r, const uint64_t *lane_addr,
	const struct global_span *at, size_t n);
struct tract *tract_find(const struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct global_span *at, size_t n);
/* Its parts know no zones yet. */
struct tract *tract_new(struct tract_shard *s, uint64_t key,
	const struct global_record *r, const uint64_t *lane_addr, const struct global_span *at, size_t n);
void tract_insert(struct tract_shard *s, struct tract *t);
/* One more reader. */
void tract_join(struct tract_shard *s, struct tract *t, struct global_ask *a,
	const struct global_record *now);
/* The access of one reader, as it would have come to the granules. */
struct global_record tract_record(const struct tract *t, const struct reader *x);

static inline bool tract_settled(const struct tract *t)
{
	return __atomic_load_n(&t->nlisted, __ATOMIC_ACQUIRE) == t->nparts && !t->over;
}

#endif
