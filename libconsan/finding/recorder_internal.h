/* recorder_internal: the data of a recorder. Private to recorder.c, which fills it, and
 * recorder_history.c, which makes histories from it. */
#ifndef CONSAN_RECORDER_INTERNAL_H
#define CONSAN_RECORDER_INTERNAL_H

#include "recorder.h"

#include <pthread.h>

#define RING 512u        /* steps; power of two */
#define ACCESSES 1024u   /* entries of a hash table; power of two */
#define MBARRIERS 256u   /* power of two; if more than half are used, none is added */
#define COPIED 64u       /* destinations of bulk copies */
#define COLUMNS 32u      /* allocations of tensor memory, in all CTAs */
#define NAMED 16u        /* named barriers of a CTA */
#define TAIL 128u        /* steps kept of a cluster that has ended; power of two */
#define TAIL_ACCESSES 64u
#define TAILS 2048u      /* of clusters from this number on, nothing is kept */

struct last_access {         /* the last execution of an access by a warp */
	uint64_t at;
	uint32_t run, site, lanes;
	uint32_t warp;       /* access_warp() */
	bool global;
};

static inline uint32_t access_warp(uint32_t cta, uint32_t warp)
{
	return cta << 16 | warp;
}

/* Its place among ACCESSES */
static inline uint32_t access_slot(uint32_t site, uint32_t warp)
{
	return (site * 0x9e3779b1u + warp * 0x85ebca6bu) >> 22;
}
_Static_assert(ACCESSES == 1u << 10, "access_slot() has 10 bits");

/* What is kept of a cluster that has ended, for findings about two clusters. */
struct recorded {
	uint32_t refs;       /* atomic */
	uint64_t at;
	uint32_t run, naccesses;
	struct history_step ring[TAIL];
	struct last_access access[TAIL_ACCESSES];
};

struct tail {
	struct tail *next;
	struct cluster_info info;
	struct recorded *steps;
};

struct copied {              /* shared memory that a bulk copy accessed */
	uint32_t run, addr, bytes, site;
};

struct named_barrier {
	uint32_t arrived;    /* threads, in the current generation */
	uint64_t completed;
};

struct columns {             /* allocated tensor memory */
	uint32_t site;
	uint16_t cta, column, n; /* n 0: free entry */
};

struct warp_groups {         /* asynchronous groups of one warp */
	uint64_t copies, bulks, mmas; /* committed so far */
	uint64_t tmem[2];     /* waits for tcgen05.ld and tcgen05.st so far */
	uint32_t open_copies; /* cp.async not yet committed */
};

struct recorder {
	struct recorders *all;
	struct recorder *idle;
	struct cluster_info info;
	uint32_t run;           /* number of this cluster; entries with another one are stale */
	uint64_t at;            /* number of steps: the newest is ring[(at - 1) % RING] */
	struct history_step ring[RING];
	struct last_access access[ACCESSES];
	struct copied copied[COPIED];
	struct columns columns[COLUMNS];
	bool tcgen05;           /* there were such steps */
	struct history_mbarrier mbarrier[MBARRIERS]; /* hash table */
	bool used[MBARRIERS];
	uint32_t nmbarriers;
	struct named_barrier *named;    /* NAMED for each CTA */
	struct warp_groups *groups;  /* one for each warp */
	uint32_t nctas, nwarps; /* the sizes of named and groups */
	uint32_t cluster_arrived;
	uint64_t cluster_completed;
};

struct recorders {
	pthread_mutex_t lock;
	struct recorder *idle;
	struct tail *tail;      /* of ended clusters of the current launch */
	uint32_t steps;
};

/* recorder.c: adds a step. addr: in the memory of CTA `owner`, or an id, or the low bits of a
 * global address. */
struct history_step *recorder_push(struct recorder *r, enum step_kind kind, const struct event *e,
	uint16_t owner, uint32_t addr);
/* The last step of this warp if it is of this kind and on this object, else NULL. Searches only the
 * last steps of the cluster. */
struct history_step *recorder_last(struct recorder *r, enum step_kind kind, const struct event *e,
	uint16_t owner, uint32_t addr);
void recorder_touch(struct recorder *r, const struct event *e, bool global);
struct warp_groups *recorder_groups(struct recorder *r, const struct event *e);

/* recorder_tcgen05.c: the events of tensor memory and of tcgen05. */
void recorder_tcgen05(struct recorder *r, const struct event *e);
/* Is it the arrival of a tcgen05.commit? */
bool recorder_is_commit(const struct recorder *r, uint32_t op);

/* recorder_history.c: the last steps; NULL: there was no access to global memory. */
struct recorded *recorder_steps(const struct recorder *r);
/* The cluster has ended. Takes the reference. */
void recorder_keep_tail(struct recorder *r, struct recorded *steps);
struct recorded *recorded_get(struct recorded *s);

#endif
