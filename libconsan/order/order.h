/* order: happens-before of the host API, and races between operations. The public header of this
 * module.
 *
 * An operation is a grid, a copy, a fill, a host function and the like. The callers report which
 * operations the program issues, which edges its calls of the API make (calls.def), and which bytes
 * each operation accesses. It reports accesses of two operations, or of an operation and the host,
 * that no edge orders. It knows neither the executor nor the CUDA API, so that it serves both
 * backends.
 *
 * Edges and accesses come at different times: the edges when the program calls the API, in the order
 * of its calls; the accesses when the operation has run, in any order that respects the edges.
 *
 *  - A line is a sequence of operations: a stream, a branch of a graph, or a thread of the host.
 *  - Host threads may synchronize by means that are not observed. So a call is ordered after those of other
 *    threads that returned before it began; with order_config.threads, what only this orders is a
 *    warning (CS1010), too.
 *  - An operation's clock is set by order_issue(). Later edges do not change it.
 *  - There are two relations: what the documentation promises (ORDER_PROMISED), and what current
 *    GPUs and drivers are known to do in addition (ORDER_KNOWN contains ORDER_PROMISED). An access
 *    pair that only the second one orders is a warning (CS1009), if such are wanted.
 *
 * All functions may be called by any thread. */
#ifndef CONSAN_ORDER_ORDER_H
#define CONSAN_ORDER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct order;
struct order_op;               /* an operation; counted references */

enum order_trust { ORDER_PROMISED, ORDER_KNOWN, ORDER_TRUSTS };

/* ---- lines ---- */

typedef uint32_t order_line;
enum { ORDER_NO_LINE = UINT32_MAX };

enum order_line_kind {
	ORDER_LEGACY,          /* the legacy default stream of a device */
	ORDER_BLOCKING,        /* a stream that synchronizes with it: created, or per-thread default */
	ORDER_NON_BLOCKING
};
order_line order_line_open(struct order *o, enum order_line_kind kind, int device);
/* The stream is destroyed: its pending operations still run, no others come. */
void order_line_close(struct order *o, order_line line);
/* The name that reports use. Without one: "stream 3". The text is copied. */
void order_line_name(struct order *o, order_line line, const char *name);

/* ---- operations ---- */

/* What an operation is, for reports. Texts are copied. */
struct order_call {
	const char *name;      /* "kernel", or the call: "cudaMemcpyAsync" */
	const char *kernel;    /* mangled; NULL: it is no grid */
	uint32_t launch;       /* number of the launch; only with kernel, may be set later */
	uint32_t stack;        /* the host's call stack, a site; 0: unknown */
	bool batch;            /* of order_issue_node(): a copy of a batch, not a node of a graph */
	bool source;           /* what reads the source of a copy out of the order of its stream */
};

/* The program issues an operation to a line: it is ordered after the earlier ones of the line, after
 * what the host knows, and by the rules of the legacy default stream. The caller owns a reference. */
struct order_op *order_issue(struct order *o, order_line line, const struct order_call *call);
/* As part of a graph's launch: ordered after the operations of `after` (none: after `start`, the
 * operation that stands for the beginning of the launch) and nothing else. */
struct order_op *order_issue_node(struct order *o, const struct order_op *start,
	struct order_op *const *after, size_t nafter, const struct order_call *call);
/* The launch of the graph (or the node of a child graph) that `start` stands for is complete when all
 * of these are: for its line, and for what comes after it. */
void order_join_nodes(struct order *o, struct order_op *start, struct order_op *const *node, size_t n);
/* As part of an operation that runs: a grid that a grid launches, a node in the body of a conditional
 * node. For all operations outside of `in`, it is what `in` is. Of those inside, it is ordered after
 * `after` and what these are ordered after; last: after all that were issued in `in` before, and after
 * what `in` does itself. */
struct order_op *order_issue_inside(struct order *o, struct order_op *in, struct order_op *const *after,
	size_t nafter, bool last, const struct order_call *call);
/* The operation, which was issued inside of another one, goes on after that: it is part of `home`, of which
 * that one is a part, too. Only what is last in `home` is ordered after it. */
void order_op_outlives(struct order_op *op, const struct order_op *home);
struct order_op *order_op_get(struct order *o, struct order_op *op);
void order_op_put(struct order *o, struct order_op *op); /* NULL is fine */
void order_op_launch(struct order_op *op, uint32_t launch);
/* Races between grids of one number, except 0, are checked by others: they ran at the same time. */
void order_op_beside(struct order_op *op, uint32_t number);
/* The operation stays known without counting as one that runs. */
struct order_op *order_op_keep(struct order *o, struct order_op *op);
void order_op_drop(struct order *o, struct order_op *op);
/* A pointer of the caller's, for order_config.met. */
void order_op_set_met(struct order_op *op, void *met);
void *order_op_met(const struct order_op *op);
uint32_t order_op_set(const struct order_op *op); /* that number; 0: none */
const char *order_op_kernel(const struct order_op *op); /* mangled; NULL: it is no grid */
/* Where an operation is, without a reference to it. */
struct order_place { order_line line; uint32_t epoch; };
struct order_place order_place(const struct order_op *op);
/* Do all threads of the host know that it is complete? */
bool order_host_knows(struct order *o, struct order_place at);
/* Does any? */
bool order_any_knows(struct order *o, struct order_place at, enum order_trust trust);
/* The operation that it was issued inside of; NULL: none. */
struct order_op *order_op_in(const struct order_op *op);
/* Is `a` ordered before `b`? What an operation does itself is not ordered with what is issued inside of
 * it, but for the last. */
bool order_before(const struct order_op *a, const struct order_op *b, enum order_trust trust);

/* ---- threads of the host ---- */

/* A call of this thread that will issue an operation, or release memory, has begun: what other threads do
 * until order_issue() is not ordered before the operation. order_end() if the call issues none. */
void order_begin(struct order *o);
void order_end(struct order *o);
/* The thread ends, or makes no calls any more. */
void order_thread_ends(struct order *o);
/* With order_config.threads: the thread releases a lock, starts a thread and the like; or acquires what
 * was released to the object. */
void order_release(struct order *o, uint64_t object);
void order_acquire(struct order *o, uint64_t object);
/* The host function of an operation is about to run on this thread. Other threads may know what it
 * knows, from now on. */
void order_host_runs(struct order *o, const struct order_op *op);

/* ---- edges ---- */

/* An event: what was recorded in it. Zero: nothing yet. Owned by the caller. */
struct order_event {
	struct order_clock *clock;
	order_line line;       /* that it was recorded in */
	uint32_t number;       /* for reports; from 1 */
	uint32_t stack;        /* of the call that recorded it */
};
void order_event_free(struct order_event *e);
void order_record(struct order *o, struct order_event *e, order_line line, uint32_t stack);
/* Later operations of the line wait for the event. An event that was never recorded makes no edge:
 * returns false, and a race between the two lines will name this call. */
bool order_wait(struct order *o, order_line line, const struct order_event *e, uint32_t stack);

/* The same for nodes of graphs: the event is recorded by an operation, and an operation waits. To be
 * called before operations that depend on it are issued. */
void order_record_op(struct order *o, struct order_event *e, const struct order_op *op, uint32_t stack);
bool order_wait_op(struct order *o, struct order_op *op, const struct order_event *e);

/* This thread of the host waited: for everything in a line, for an event, for one operation, for all lines of a
 * device (-1: of all devices). A query counts if it returned that the work is complete. */
void order_host_waits(struct order *o, order_line line, enum order_trust trust);
void order_host_waits_event(struct order *o, const struct order_event *e);
void order_host_waits_op(struct order *o, const struct order_op *op, enum order_trust trust);
void order_host_waits_device(struct order *o, int device, enum order_trust trust);

/* ---- the host's side of calls (calls.def) ---- */

enum order_memory { ORDER_PAGEABLE, ORDER_PINNED, ORDER_DEVICE, ORDER_MANAGED };
/* The calls whose host side depends on nothing but their kind. */
enum order_sync {
#define CALL(id, promised, known, source) ORDER_CALL_##id,
#include "calls.def"
#undef CALL
	ORDER_CALLS
};
/* The row of calls.def for a copy between such memories; async: a ...Async call. */
enum order_sync order_copy(enum order_memory to, enum order_memory from, bool async);
enum order_sync order_fill(enum order_memory to, bool async);
/* The call returned: the host knows what its row says. op: the operation that it issued; NULL:
 * none. */
void order_returned(struct order *o, enum order_sync call, int device, const struct order_op *op);

/* ---- accesses ---- */

enum {
	ORDER_WRITE = 1,
	ORDER_STRONG = 2,      /* in the sense of the PTX memory model, for all of its device */
	ORDER_OBSERVES = 4,    /* a strong read whose value is used: may synchronize */
	ORDER_SYSTEM = 8,      /* strong for the whole system: other devices, the host */
};
struct order_range {
	uint64_t addr, bytes;
	uint32_t site;         /* the instruction; 0: the whole operation */
	uint32_t flags;
	uint32_t part;         /* of the operation, as order_config.met knows it; 0: unknown */
};
/* The host can access memory of operations: pinned, managed or registered memory exists. */
void order_host_can_access(struct order *o);
/* Will the accesses of an operation matter, because another one or the host can be unordered with it?
 * If not, the caller need not report them: a program that uses one stream, no branches of graphs, and
 * pageable memory. */
bool order_wants(struct order *o);
/* The accesses of an operation, all at once or in parts, as they have happened. They are compared with
 * what is known, and kept until the host or all later operations are ordered after them. */
void order_accesses(struct order *o, struct order_op *op, const struct order_range *range, size_t n);
/* From now on, accessed() gets the accesses of operations when they have happened, not under the lock of this
 * module; at, issued: of the operation; issued: progress_now(). The texts are valid in the call. */
struct order_side;
typedef void order_accessed(void *user, const struct order_side *by, struct order_place at, uint64_t issued,
	const struct order_range *range, size_t n);
void order_watch(struct order *o, order_accessed *accessed, void *user);
/* An access of the host. stack: called for the call stack, a site, if there is something to report.
 * Returns whether there was. beside, met: as of an operation, see order_op_beside() and order_op_set_met(). alone:
 * all operations that were issued and have not ended are of that set, so that it need not be kept. */
struct order_host { uint32_t beside; void *met; bool alone; };
bool order_host_access(struct order *o, const struct order_range *range, const struct order_host *host,
	uint32_t (*stack)(void));
/* This thread acquired by memory what grids released, as order_config.met knows: what it does and issues from
 * now on is not before what it did until now. */
void order_host_learned(struct order *o);
/* From now on, the threads of the host count as knowing that the operation is complete. */
void order_host_assumes(struct order *o, const struct order_op *op);
/* What this thread does now, as an operation to compare with others; for order_op_drop(). */
struct order_op *order_host_now(struct order *o);
/* Are they one place of one thread? */
bool order_same_place(const struct order_op *a, const struct order_op *b);
/* A race of the host's access with one of `op`, which was found by others. at: order_host_now() at about that
 * time; stack: its call stack; hint: or "". */
struct order_host_race {
	const struct order_op *at, *op;
	struct order_range host, grid; /* the same bytes */
	uint32_t stack;
	bool host_first;
	const char *hint;
};
void order_host_raced(struct order *o, const struct order_host_race *r);
/* The operation releases nothing: what the host reads of its strong writes orders nothing. */
void order_op_silent(struct order_op *op);

/* The operation has written words of the host's memory, or has observed some, by strong accesses of system
 * scope, and accesses of the host are not reported. The host may synchronize with it by these words: pairs that
 * this may order are not compared. To be called before the operation's accesses are reported. */
void order_host_unseen(struct order *o, struct order_op *op, bool wrote, bool observed);

/* Calls each() for the parts of a range that operations access which the host does not know to be
 * complete. */
void order_pending(struct order *o, uint64_t addr, uint64_t bytes,
	void (*each)(void *user, uint64_t addr, uint64_t bytes, bool write), void *user);

/* ---- lifetimes ---- */

/* An allocation or a release in a line: cudaMallocAsync() and cudaFreeAsync(), with the operation that
 * order_issue() gave. */
void order_alloc(struct order *o, struct order_op *op, uint64_t addr, uint64_t bytes);
void order_free(struct order *o, struct order_op *op, uint64_t addr, uint64_t bytes);
/* The host releases it, in a call that order_begin() began; before it waits for what uses it. */
void order_host_frees(struct order *o, uint64_t addr, uint64_t bytes, uint32_t (*stack)(const char **));
/* The memory gets a new owner without a race, as by cudaMalloc(), or after cudaFree(), which waits. */
void order_forget(struct order *o, uint64_t addr, uint64_t bytes);

/* Forgets all accesses, which hides races and makes none; why: what is not checked, one sentence. */
void order_forget_all(struct order *o, const char *why);

/* ---- the module ---- */

/* One of the two operations of a finding. */
struct order_side {
	bool host;             /* an access of the host itself */
	const char *what;      /* "write", "read", "release", ... */
	struct order_call call;
	const char *line;      /* "stream 3", "host" */
	int device;
	uint32_t site;         /* the instruction, 0: none */
};
/* A call on the way from the first of the two to the second, in the order of the host's calls. */
enum order_mark { ORDER_OTHER, ORDER_OLD, ORDER_NOW };
struct order_row {
	char line[64];         /* whose: "stream 3", "the host" */
	const char *text;      /* "cudaMemcpyAsync", "waits for event 1"; or a kernel, mangled: */
	bool kernel;
	enum order_mark mark;
};
enum { ORDER_ROWS = 14 };
struct order_report { /* also of two processes: cuda/ipc_race.c */
	const char *rule;      /* "CS1001" */
	struct order_side now, old; /* old was reported first */
	uint64_t addr, bytes;  /* that both accessed */
	const char *edge;      /* the missing edge, one sentence */
	const char *hint;      /* about this occurrence, or "" */
	uint32_t unrecorded;   /* the stack of a wait for an event that was not recorded; 0: none */
	const struct order_row *row;
	size_t nrows;
};
struct order_config {
	/* Called under the lock of this module: it must not call it. */
	void (*report)(void *user, const struct order_report *r);
	/* What is not checked, one sentence. */
	void (*unchecked)(void *user, const char *why);
	/* Does memory order an access by that part of `a` before one by that part of `b`? Called under the
	 * lock, too; it may call order_before(). NULL: never. */
	bool (*met)(void *user, const struct order_op *a, uint32_t a_part, const struct order_op *b,
		uint32_t b_part);
	/* All operations so far are complete, and will not be asked for. Under the lock. */
	void (*retired)(void *user);
	void *user;
	uint64_t most_bytes;   /* of memory for accesses; 0: the default */
	bool documented;       /* report what only ORDER_KNOWN orders */
	bool threads;          /* report what only the time of calls of host threads orders */
};
struct order *order_open(const struct order_config *c);
void order_close(struct order *o);
/* Bytes that the module uses for clocks and accesses. */
size_t order_footprint(struct order *o);

#endif
