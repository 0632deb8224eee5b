/* recorder_ring: what a recorder holds. Private to recorder.c, which fills it, and
 * recorder_history.c, which tells stories out of it. */
#ifndef CONSAN_RECORDER_INTERNAL_H
#define CONSAN_RECORDER_INTERNAL_H

#include "recorder.h"

#include <pthread.h>

#define RING 512u        /* power of two */
#define TOUCHED 1024u    /* power of two */
#define MBARRIERS 256u   /* power of two; more than half full: no new ones */
#define SPANS 64u
#define NAMED 16u        /* named barriers of a CTA */
#define TAIL 128u        /* power of two: steps that a cluster leaves behind */
#define TAIL_TOUCHED 64u

struct touched {             /* when did this warp last execute this access? */
	uint64_t at;
	uint32_t run, site, lanes;
	uint16_t cta, warp;
	bool global;
};

/* What is left of a cluster that is over, for findings about two of them. */
struct tail {
	struct tail *next;
	struct cluster_info info;
	uint64_t at;
	uint32_t run, ntouched;
	struct history_step ring[TAIL];
	struct touched touched[TAIL_TOUCHED];
};

struct span {
	uint32_t run, addr, bytes, site;
};

struct named {
	uint32_t arrived;    /* threads, in this generation */
	uint64_t done;
};

struct groups {              /* of one warp */
	uint64_t copies, bulks, mmas; /* committed so far */
	uint32_t open_copies;
};

struct recorder {
	struct event_sink sink; /* first: it is one */
	struct event_sink *next;
	struct recorders *all;
	struct recorder *idle;
	struct cluster_info info;
	uint32_t run;           /* tells what earlier clusters left behind */
	uint64_t at;            /* steps so far: the newest is ring[(at - 1) % RING] */
	struct history_step ring[RING];
	struct touched touched[TOUCHED];
	struct span span[SPANS];
	struct history_mbarrier mbarrier[MBARRIERS]; /* hash */
	bool used[MBARRIERS];
	uint32_t nmbarriers;
	struct named *named;    /* NAMED a CTA */
	struct groups *groups;  /* one a warp */
	uint32_t nctas, nwarps; /* what is allocated for */
	uint32_t cluster_arrived;
	uint64_t cluster_done;
};

struct recorders {
	pthread_mutex_t lock;
	struct recorder *idle;
	struct tail *tail;      /* of clusters of the launch under way */
	uint32_t steps;
};

/* recorder_history.c: the cluster is over; what others may ask for is kept. */
void recorder_keep_tail(struct recorder *r);

#endif
