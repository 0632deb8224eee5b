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
#define NAMED 16u        /* named barriers of a CTA */
#define TAIL 128u        /* steps kept of a cluster that has ended; power of two */
#define TAIL_ACCESSES 64u

struct last_access {         /* the last execution of an access by a warp */
	uint64_t at;
	uint32_t run, site, lanes;
	uint16_t cta, warp;
	bool global;
};

/* What is kept of a cluster that has ended, for findings about two clusters. */
struct tail {
	struct tail *next;
	struct cluster_info info;
	uint64_t at;
	uint32_t run, naccesses;
	struct history_step ring[TAIL];
	struct last_access access[TAIL_ACCESSES];
};

struct copied {              /* shared memory that a bulk copy accessed */
	uint32_t run, addr, bytes, site;
};

struct named_barrier {
	uint32_t arrived;    /* threads, in the current generation */
	uint64_t completed;
};

struct warp_groups {         /* asynchronous groups of one warp */
	uint64_t copies, bulks, mmas; /* committed so far */
	uint32_t open_copies; /* cp.async not yet committed */
};

struct recorder {
	struct event_sink sink; /* must be first: the sink is cast to the recorder */
	struct event_sink *next;
	struct recorders *all;
	struct recorder *idle;
	struct cluster_info info;
	uint32_t run;           /* number of this cluster; entries with another one are stale */
	uint64_t at;            /* number of steps: the newest is ring[(at - 1) % RING] */
	struct history_step ring[RING];
	struct last_access access[ACCESSES];
	struct copied copied[COPIED];
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

/* recorder_history.c: the cluster has ended; keeps its tail. */
void recorder_keep_tail(struct recorder *r);

#endif
