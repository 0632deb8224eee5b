/* internal: what the files of libconsan/order/ share.
 *
 * clock.c  vector clocks
 * line.c   lines, operations, edges
 * inside.c operations that are part of others
 * thread.c the threads of the host
 * map.c    which operations last accessed each byte
 * race.c   accesses, what a conflict is, lifetimes
 * report.c what a finding says; timeline.c the calls on the way
 *
 * Each line has an epoch, that of its last operation. Operation `a` is before `b` if the clock of b
 * has at least a's epoch for a's line. An access by the host has the epoch of its thread, which grows
 * with every operation that the thread issues.
 *
 * The bytes of memory remember operations as FastTrack does: those that a later operation can be
 * unordered with. So memory does not grow with the number of operations. Accesses come in an order
 * that respects the edges: that of an operation is never reported after one that it is ordered before. */
#ifndef CONSAN_ORDER_INTERNAL_H
#define CONSAN_ORDER_INTERNAL_H

#include "libconsan/base/base.h"
#include "order.h"

#include <pthread.h>

/* ---- clocks ---- */

struct clock { /* zeroed: knows nothing */
	uint32_t *at;          /* by line */
	uint32_t n;
};
/* By enum order_trust; and what is promised if the threads of the host synchronize only by calls that
 * are seen. */
enum { VISIBLE = ORDER_TRUSTS, RELATIONS };
struct order_clock {
	struct clock by[RELATIONS];
};
void clock_set(struct clock *c, order_line line, uint32_t epoch);
uint32_t clock_get(const struct clock *c, order_line line);
void clock_reach(struct clock *c, uint32_t n);
void clock_join(struct clock *c, const struct clock *with);
void clock_free(struct clock *c);
/* The same for all relations */
void clock2_set(struct order_clock *c, order_line line, uint32_t epoch);
void clock2_join(struct order_clock *c, const struct order_clock *with);
struct order_clock clock2_copy(const struct order_clock *from);
void clock2_free(struct order_clock *c);
/* What is known only in one relation is joined to that one and those that contain it. */
void join_from(struct order_clock *c, const struct order_clock *with, enum order_trust first);

struct order_op {
	unsigned held;         /* references of the caller */
	unsigned kept;         /* references of states of memory, and of struct met */
	order_line line;
	uint32_t epoch;
	struct order_clock clock;
	struct order_call call;    /* owns its texts */
	char *where;               /* name of its line */
	int device;
	uint32_t unrecorded;   /* the stack of a wait for an event that was not recorded; 0: none */
	uint32_t beside;       /* see order_op_beside() */
	void *met;             /* the caller's */
	bool silent;           /* see order_op_silent() */
	struct order_place issued; /* of the thread that issued it */
	uint64_t issued_at;    /* progress_now() */
	struct clock seen;     /* what is visible to that thread; only with config.threads */
	struct order_place graph;  /* a node: the begin of its launch; epoch 0: it is none */
	struct inside *inside; /* it is part of another one; or NULL */
	struct branches *branches; /* of the operations inside of it; or NULL */
};

struct line {
	bool open;
	enum order_line_kind kind;
	int device;
	uint32_t epoch, number;
	unsigned branch;       /* of a graph or batch: its number, from 1 */
	bool batch;
	uint32_t unrecorded;   /* as in order_op, of its last operations */
	char *name;
	struct order_clock clock;
	bool thread;           /* of the host; its clock is what it knows */
	bool held;             /* its call has begun; see order_begin() */
	struct order_clock begun; /* what it knew then */
};

/* ---- map.c ---- */

struct order_access {
	struct order_op *op;
	uint32_t site, part;
	uint16_t flags;        /* ORDER_..., LIFE_... */
};
enum { LIFE_ALLOC = 16, LIFE_FREE = 32, HOST_ACCESS = 64 };

struct order_state {
	uint32_t refs;         /* pieces that have it */
	uint32_t n;
	struct order_access at[];
};
struct piece {
	uint32_t from, to;     /* in the zone */
	struct order_state *state;
};
struct zone {
	uint64_t number;
	VEC(struct piece) piece; /* ascending, without those that have no state */
};
struct map {
	struct zone **zone;    /* hash table; NULL: free */
	size_t nzones, cap;
	size_t bytes;
};

/* The state that an access makes of `old` (NULL: none); addr, bytes: where. The caller owns a
 * reference. */
typedef struct order_state *map_step(void *user, struct order_state *old, uint64_t addr,
	uint64_t bytes);
/* Applies step to all bytes of the ranges, which are sorted and do not overlap. */
void map_apply(struct map *m, const struct order_range *range, size_t n, map_step *step, void *user);
/* Calls each() for the pieces of a range. */
void map_each(const struct map *m, uint64_t addr, uint64_t bytes,
	void (*each)(void *user, const struct order_state *s, uint64_t addr, uint64_t bytes),
	void *user);
struct order_state *state_new(struct map *m, const struct order_access *at, uint32_t n);
void state_put(struct map *m, struct order_state *s);
void map_clear(struct map *m);

/* ---- the module ---- */

/* Two operations (or one and the host) that are not ordered: one writes with a strong operation what
 * the other one reads with one, so that memory may order what is before the first and what is after
 * the second. */
struct met {
	struct order_op *writer, *reader; /* references */
	bool exact;            /* order_config.met knows what they ordered */
	bool reported;
};

/* order_host_unseen() */
struct unseen {
	struct order_op *op;   /* a reference */
	bool wrote, observed, reported;
};

/* The relation that lacks the edge of a race. */
enum order_lack { LACKS_ALL, LACKS_PROMISE, LACKS_VISIBLE, LACKS_ISSUE };

/* A race, unless operations that still run turn out to have synchronized through memory. */
struct unsettled {
	struct order_access now, old; /* references to their operations */
	uint64_t addr, bytes;
	enum order_lack lacks;
};

/* A call, for the timelines of reports. */
struct moment {
	order_line line;
	struct order_place place; /* of the operation that was issued; epoch 0: none */
	uint64_t inside;       /* its number inside of that place; 0: it is that one */
	bool kernel;
	char text[160];
};
enum { MOMENTS = 256 };

struct order {
	pthread_mutex_t lock;
	struct order_config config;
	VEC(struct line) line;     /* line ORDER_HOST: the first thread of the host */
	uint64_t id;               /* of this module, in the process */
	uint32_t threads;          /* of the host, so far */
	struct order_clock host;   /* what the threads of the host know together */
	struct order_clock closed; /* of streams that were destroyed, all devices */
	struct order_clock closed_blocking;
	unsigned running;          /* operations that the caller holds */
	uint32_t streams;          /* besides legacy default streams, so far */
	uint32_t legacy;           /* legacy default streams, of as many devices */
	unsigned branch_lines;     /* lines of branches of graphs */
	uint32_t branches;         /* lines of branches of graphs, and of operations inside of others */
	bool host_access;
	bool full;                 /* the limit of memory was reached */
	struct map map;
	struct moment moment[MOMENTS]; /* a ring */
	uint64_t moments;          /* so far */
	uint32_t events;           /* numbers of events */
	VEC(struct met) met;       /* pairs that may synchronize through memory */
	VEC(struct unseen) unseen;
	order_accessed *accessed;  /* see order_watch() */
	void *accessed_user;
	struct number_map object;  /* by address: struct clock *, released to it */
	VEC(struct unsettled) unsettled;
	bool observed;             /* an operation has read with a strong access since all was forgotten */
};

/* ---- thread.c; under the lock ---- */

/* The line of the calling thread. It gets to know what all threads know, unless its call has begun. Valid
 * until a line is made. */
struct line *order_self(struct order *o);
/* The thread knows more: so do the others, as they may synchronize by means that are not seen. Its later
 * accesses are not before what was issued until now. */
void order_self_knows(struct order *o, const struct order_clock *more, enum order_trust trust);
order_line order_self_line(struct order *o);
/* The thread has issued the operation. */
void order_self_issued(struct order *o, struct order_op *op);
void order_objects_free(struct order *o);
/* Do all threads know it? */
bool order_all_know(const struct order *o, order_line line, uint32_t epoch);
/* The relation that is checked */
static inline unsigned order_relation(const struct order *o)
{
	return o->config.threads ? (unsigned)VISIBLE : (unsigned)ORDER_PROMISED;
}

/* An operation that stands for an access of the host, now. */
struct order_op *order_op_new(struct order *o, order_line line, const struct order_call *call);
void order_op_free(struct order_op *op); /* if it has no references */
struct order_op *order_host_op(struct order *o, const struct order_call *call);
void order_host_op_put(struct order_op *op);
/* The thread of the access `host` observed what the operation did until now, or the reverse. */
void order_host_met(struct order *o, const struct order_op *host, struct order_op *op,
	bool host_observed);
/* Not for the two to compare: one of them may be part of the other. */
bool order_op_before(const struct order_op *a, const struct order_op *b, unsigned relation);
/* Did grids on the way between the two exchange values by strong accesses that order nothing else? */
bool order_only_saw(const struct order *o, const struct order_op *a, const struct order_op *b);

/* ---- inside.c ---- */

/* The operation that is part of no other one: itself, or what it is inside of. */
const struct order_op *order_op_root(const struct order_op *op);
/* Of two operations of one root. */
enum inside_order { INSIDE_UNORDERED, INSIDE_BEFORE,
	INSIDE_PART };         /* one is part of the other */
enum inside_order order_inside(const struct order_op *a, const struct order_op *b);
uint64_t order_inside_number(const struct order_op *op); /* 0: it is a root */
void order_inside_free(struct order_op *op);

/* All operations that were issued have run: reports the races of which that was not known to matter. */
void order_settle(struct order *o);
/* Forgets the pairs. */
void order_forget_met(struct order *o);
/* Forgets accesses if all operations so far are known to be before all later ones. */
void order_retire(struct order *o);
void op_unref(struct order_op *op); /* a reference of a state */
/* A conflict of `now` with `old`. why: a hint that is known; or "" */
void order_conflict(struct order *o, const struct order_access *now, const struct order_access *old,
	enum order_lack lacks, uint64_t addr, uint64_t bytes);
void order_conflict_as(struct order *o, const struct order_access *now, const struct order_access *old,
	enum order_lack lacks, uint64_t addr, uint64_t bytes, const char *why);
struct order_side order_side_of(const struct order_access *a);
void order_moment(struct order *o, order_line line, const struct order_op *op, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* The rows from one operation to the other; returns their number. */
size_t order_timeline(const struct order *o, const struct order_op *now, const struct order_op *old,
	struct order_row *row, size_t most);
const char *order_line_text(const struct order *o, order_line l, char *to, size_t n);

#endif
