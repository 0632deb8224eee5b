/* global_logged: a logged access and, if it is a read, all readers that read the same bytes in the
 * same way; see global_log.c. For shadow/global_*.c only. Zones are opaque here except for their
 * size.
 *
 * Invariant: all functions but logged_key() and logged_record() are called under the shard's
 * lock. */
#ifndef CONSAN_SHADOW_GLOBAL_LOGGED_H
#define CONSAN_SHADOW_GLOBAL_LOGGED_H

#include "global_parts.h"

#include "libconsan/base/base.h"

struct reader {
	uint32_t cluster, epoch, issue, site;
	uint16_t agent, warp, met;
	int8_t lane;
};

struct part { /* the part of an access in one zone */
	struct zone *zone;
	uint32_t first, n; /* pieces */
	bool listed;               /* under the zone's lock */
};

struct logged {
	/* for reads the accessor's fields are unused; a GR_LIST has a copy of the addresses */
	struct global_record r;
	uint64_t key;
	struct logged *next;       /* reads only: hash chain */
	struct global_run *piece;  /* ascending */
	struct part *part;
	struct reader *reader;     /* by rising cluster; within a cluster in order of arrival */
	uint32_t npieces, nparts, nreaders, cap_readers;
	uint32_t nlisted;          /* zones whose log contains it */
	uint32_t above;            /* if saturated: readers of clusters above add nothing */
	bool saturated, flushed;   /* flushed: in some zone */
	bool noted;                /* its zones know that it is saturated */
};

/* A chain of reads. Most reads are new: tags show that without a look at what may not be cached. */
struct logged_slot {
	struct logged *first;
	uint64_t tags;      /* bit key >> 58 of each of them */
};

struct logged_shard {
	pthread_mutex_t lock;
	struct logged_slot *at; /* hash of the reads */
	uint32_t n, cap;
	struct arena arena;
	size_t bytes;
	uint64_t dropped;
};

/* The number of pieces from the i-th on that are in its zone. */
static inline uint32_t zone_run(const struct global_run *at, size_t n, size_t i)
{
	size_t k = i + 1;

	while (k < n && at[k].addr >> ZONE_SHIFT == at[i].addr >> ZONE_SHIFT)
		k++;
	return (uint32_t)(k - i);
}

/* at: the pieces; for reads other than GR_WHOLE they need not be known to find an entry. */
uint64_t logged_key(const struct global_record *r, const struct global_run *at, size_t n);
struct logged *logged_find(const struct logged_shard *s, uint64_t key,
	const struct global_record *r, const struct global_run *at, size_t n);
/* The zones of its parts are not set yet. */
struct logged *logged_new(struct logged_shard *s, uint64_t key,
	const struct global_record *r, const struct global_run *at, size_t n);
void logged_insert(struct logged_shard *s, struct logged *t);
/* Adds a reader. */
void logged_add_reader(struct logged_shard *s, struct logged *t, struct global_accessor *a,
	const struct global_record *now);
/* The access of one reader, as the granules record it. */
struct global_record logged_record(const struct logged *t, const struct reader *x);

static inline bool logged_complete(const struct logged *t)
{
	return __atomic_load_n(&t->nlisted, __ATOMIC_ACQUIRE) == t->nparts && !t->flushed;
}

#endif
