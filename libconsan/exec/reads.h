/* reads: which values strong loads of global and shared memory return (--reads). Memory holds the
 * newest value of each location; here are the older ones that coherence and causality still allow a
 * thread to read (PTX ISA 8.9, 8.10). It is an operational model of release and acquire by views.
 *
 * A *message* is a write to a *location*: an address and a size that strong writes or atomics use.
 * Shared memory has the host's addresses, too, so that both kinds of memory are one to the model.
 * A location keeps its newest messages. A thread's view (view.h) has the oldest message of each
 * location that it may still read: what it has read or written itself, and what is ordered before
 * it. A strong load returns one of the messages that are not older; an atomic reads the newest. A
 * release attaches the thread's view to its message or, if it is a fence, to later messages; an
 * acquire joins what is attached to the message that was read. fence.sc also joins a view of all
 * fence.sc.
 *
 * What the ISA forbids is never read. Where the model is coarser than the ISA, it orders more:
 *  - an mbarrier hands on what has been handed over to it so far, in whatever phase; what threads
 *    that have exited knew is handed on by all barriers;
 *  - a release counts as a release fence, an acquire as an acquire fence of its scope;
 *  - fences that other threads executed before a barrier count for later writes, too, as they do
 *    for the checker;
 *  - a thread that has executed a fence.sc sees what precedes any fence.sc so far;
 *  - weak loads return the newest value, as all loads do of a location that is also accessed
 *    weakly, in another size or by the async proxy: a load for which this matters races;
 *  - the elements of a vector load are older values only if all of those are that were written in
 *    this launch, and one of 16 bytes is the newest;
 *  - a load overlooks a message only if an older one is left with which no release pattern ends, so
 *    that an event of an older value (ACCESS_STALE) never synchronizes with anything.
 *
 * A message that a loop overlooks is visible to its warp when it has polled in vain, and to all
 * after it has been overlooked many times, so that programs end.
 *
 * One worker runs kernels whose clusters are coupled (exec.h); their clusters have one model. In other
 * kernels no load of global memory is strong; a cluster has a model of its own, for its shared
 * memory, so that what it reads does not depend on the worker. The model learns what the threads do
 * from their events: it stands between the executor and the cluster's sink. Loads are the exception,
 * as the events of polling loops are held back. */
#ifndef CONSAN_EXEC_READS_H
#define CONSAN_EXEC_READS_H

#include "libconsan/base/base.h"
#include "machine.h"
#include "view.h"

enum { READS_BARRIERS = 16 };      /* named barriers of a CTA */
enum { READS_DISTANCES = 3 };      /* to a thread of the same CTA, of the same cluster, to others */
enum { READS_ELEMENTS = 16 };      /* of a vector load, at most */

struct message {
	uint32_t time, cluster;
	uint16_t cta;
	bool hands_over;         /* a release pattern may end with it */
	bool chain;              /* a read-modify-write after one that hands over */
	uint64_t value;          /* if it is not the newest, whose value is in memory */
	uint32_t overlooked;     /* loads that have returned older values */
	struct view *released[READS_DISTANCES]; /* to readers at that distance */
};

struct reads_location {
	uint64_t at;
	uint32_t next;           /* 1 + the next location of these 16 bytes; 0: none */
	uint32_t event;          /* number of the newest event that wrote it */
	uint8_t size, n;
	bool newest_only;
	struct message m[8];     /* n of them, oldest first */
};

struct thread {
	struct view *now;        /* what it must have seen */
	struct view *seen[READS_DISTANCES];     /* what an acquire of such a scope adds */
	struct view *released[READS_DISTANCES]; /* what its writes hand over */
	bool releases;           /* a release fence may be before its next write */
	bool sc;                 /* it has executed a fence.sc */
	uint32_t phase;          /* arrivals at the cluster's barrier */
};

/* The locations that the polls of a warp have overlooked since it last polled in vain */
struct overlooked {
	uint32_t at[8], n;
	bool more;
};

struct reads;
struct reads_cluster {
	struct event_sink sink;  /* the cluster's; passes the events on to `to` */
	struct event_sink *to;   /* or NULL */
	struct reads *reads;
	bool own;                /* of this cluster alone: global memory is left out */
	struct cluster *cluster;
	struct thread *thread;   /* by CTA, warp, lane */
	struct view *sc;         /* of fence.sc by its threads */
	/* reads_sync.c: what has been handed over to */
	struct thread *barrier;  /* the generation of a named barrier that is not complete, by CTA, id */
	uint16_t *waits;         /* for these named barriers; by warp */
	struct thread phase[2];  /* phases of the cluster's barrier, by parity */
	uint32_t phases;         /* the newest one */
	VEC(struct thread) mbarrier;
	struct number_map mbarrier_at; /* address -> 1 + its number */
	struct thread exited;    /* all of these */
	struct overlooked *overlooked; /* by warp */
};

/* NULL: all loads return the newest value. What is drawn depends on the launch's seed and `id`. */
struct reads *reads_open(const struct exec_launch *l, uint64_t id);
void reads_close(struct reads *r);
/* The sink to give to the cluster instead. */
struct event_sink *reads_begin(struct cluster *c, struct event_sink *to);
struct event_sink *reads_end(struct cluster *c); /* returns `to` */

/* A strong load by these lanes, of elements of `size` bytes at these addresses of the host, before it
 * takes effect. Returns the lanes that read an older value, which reads_value() has until the next
 * call. */
uint32_t reads_load(struct warp *w, uint32_t lanes, const uint64_t addr[LANES], unsigned size,
	unsigned elements, enum ev_sem sem, enum ev_scope scope);
uint64_t reads_value(const struct warp *w, unsigned lane, unsigned element);
/* The warp has polled in vain. True: it will find newer values. */
bool reads_spun(struct warp *w);

/* ---- reads.c, for reads_sync.c: accesses of one lane ---- */
void reads_join(struct reads *r, struct view **to, struct view *from);
void reads_clear(struct thread *t);
void reads_write(struct reads_cluster *k, const struct event *e);
void reads_weak(struct reads_cluster *k, const struct event *e);
/* The host's address of the byte at this shared address */
uint64_t reads_shared(const struct reads_cluster *k, unsigned cta, uint64_t at);
/* The locations there are others from now on, at the same addresses. */
void reads_renew(struct reads *r, uint64_t at, uint64_t bytes);
bool reads_given_up(const struct reads *r);
/* [at, at + bytes) is written at times that are not known, or by another owner. */
void reads_forget(struct reads_cluster *k, uint64_t at, uint64_t bytes);
/* ---- reads_sync.c ---- */
unsigned reads_reach(enum ev_scope scope); /* the greatest distance that the scope includes */
void reads_sc(struct reads *r, struct reads_cluster *k, struct thread *t, enum ev_scope scope);

#endif
