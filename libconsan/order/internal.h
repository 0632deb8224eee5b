/* internal: what the files of libconsan/order/ share.
 *
 * clock.c  lines, operations, edges: vector clocks
 * map.c    which operations last accessed each byte
 * race.c   accesses, what a conflict is, lifetimes
 * report.c what a finding says; timeline.c the calls on the way
 *
 * Each line has an epoch, that of its last operation. Operation `a` is before `b` if the clock of b
 * has at least a's epoch for a's line. An access by the host has the host's epoch, which grows with
 * every operation that is issued.
 *
 * The bytes of memory remember operations as FastTrack does: those that a later operation can be
 * unordered with. So memory does not grow with the number of operations. Accesses come in an order
 * that respects the edges: that of an operation is never told after one that it is ordered before. */
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
struct order_clock { /* of both relations */
	struct clock by[ORDER_TRUSTS];
};

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
};

struct line {
	bool open;
	enum order_line_kind kind;
	int device;
	uint32_t epoch, number;
	uint32_t unrecorded;   /* as in order_op, of its last operations */
	char *name;
	struct order_clock clock;
};

/* ---- map.c ---- */

struct order_access {
	struct order_op *op;
	uint32_t site;
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
	bool told;
};

/* A call, for the timelines of reports. */
struct moment {
	order_line line;
	struct order_place place; /* of the operation that was issued; epoch 0: none */
	bool kernel;
	char text[160];
};
enum { MOMENTS = 256 };

struct order {
	pthread_mutex_t lock;
	struct order_config config;
	VEC(struct line) line;     /* line 0: the host */
	struct order_clock host, closed; /* closed: of streams that were destroyed, all devices */
	struct order_clock closed_blocking;
	unsigned running;          /* operations that the caller holds */
	uint32_t streams;          /* besides legacy default streams, so far */
	uint32_t legacy;           /* legacy default streams, of as many devices */
	bool host_access;
	bool full;                 /* the limit of memory was reached */
	struct map map;
	struct moment moment[MOMENTS]; /* a ring */
	uint64_t moments;          /* so far */
	uint32_t events;           /* numbers of events */
	VEC(struct met) met;       /* pairs that may synchronize through memory */
};

/* An operation that stands for an access of the host, now. */
struct order_op *order_host_op(struct order *o, const struct order_call *call);
void order_host_op_put(struct order_op *op);
/* The host observed what the operation did until now, or the reverse. */
void order_host_met(struct order *o, struct order_op *op, bool host_observed);
bool order_op_before(const struct order_op *a, const struct order_op *b, enum order_trust trust);
/* Forgets the pairs. */
void order_forget_met(struct order *o);
/* Forgets accesses if all operations so far are known to be before all later ones. */
void order_retire(struct order *o);
void op_unref(struct order_op *op); /* a reference of a state */
/* A conflict of `now` with `old`. known: only the promised relation lacks the edge. */
void order_conflict(struct order *o, const struct order_access *now, const struct order_access *old,
	bool known, uint64_t addr, uint64_t bytes);
void order_moment(struct order *o, order_line line, const struct order_op *op, const char *fmt, ...)
	PRINTF_LIKE(4, 5);
/* The rows from one operation to the other; returns their number. */
size_t order_timeline(const struct order *o, const struct order_op *now, const struct order_op *old,
	struct order_row *row, size_t most);
const char *order_line_text(const struct order *o, order_line l, char *to, size_t n);

#endif
