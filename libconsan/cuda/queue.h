/* queue: the operations that the program has issued and that have not run to their end.
 *
 * An operation that is issued becomes a task, which depends on earlier ones: the previous task of
 * its stream, those that the legacy default stream orders before it, events that its stream waits
 * for, edges of a graph. The host continues. Tasks run when the host waits (host_wait.c): what is
 * needed for that, in an order that is a function of the program and the seed.
 *
 * One lock protects all of it. Device work (all but host functions) is done by one task at a time:
 * the one in queue.busy. A grid that cannot go on is suspended, and keeps its thread. */
#ifndef CONSAN_CUDA_QUEUE_H
#define CONSAN_CUDA_QUEUE_H

#include "internal.h"

#include <pthread.h>

/* The call stack of the host at a call, to be resolved when it is needed. Its references are
 * counted under the lock of the queue. */
struct caller {
	unsigned refs;
	char *python;                /* as consan_python_frames() wrote it; NULL: none */
	unsigned n;
	void *pc[];
};

enum task_state { TASK_QUEUED, TASK_RUNNING, TASK_SUSPENDED,
	TASK_ENDED,                  /* it has run, but not all that it issued */
	TASK_DONE };
/* How the host waits: until the task is done, or as long as something can run without the host. */
enum wait_mode { WAIT_DONE, WAIT_QUERY };

struct task {
	struct op op;
	struct task *next, *prev;    /* in the queue, in the order of issue */
	uint64_t number;             /* in the order of issue, from 1 */
	unsigned refs;
	enum task_state state;
	bool counted;                /* a launch: by consan_issued(), until it begins */
	bool started;                /* a launch: all of it that a completion event waits for */
	bool needed;                 /* a thread of the host waits for it */
	const void *waiter;          /* the wait that needs it: its thread may run it */
	VEC(struct task *) after;    /* not to start before these are done; owns references */
	VEC(struct task *) behind;   /* ... before these have started */
	struct stream *stream;       /* owns a reference */
	struct caller *from;
	struct order_op *order;      /* for libconsan/order; owns a reference; or NULL */
	struct task *parent;         /* that issued it, and is not done before; owns a reference; or NULL */
	unsigned children;           /* that it issued and that are not done */
	unsigned rounds;             /* how often it has issued more after it had run */
	struct conditions *values;   /* of the graph that it is part of, owned; or NULL */
	struct device_grid *grid;    /* a launch: what it launches (device_runtime.h); owned; or NULL */
	struct order_op *round;      /* of a conditional node, what its last body is part of; owns a reference */
	uint64_t tried;              /* suspended: queue.epoch when it could not go on */
	bool able;                   /* suspended: it can go on at any time */
	bool vain;                   /* suspended: time may let it go on (EXEC_PAUSE_VAIN) ... */
	bool timed;                  /* ... and nothing else will */
	bool hung;                   /* nothing can let it go on: it is to end */
	bool cut;                    /* its thread is to leave it (leave.c) */
	bool ours;                   /* it runs on a thread of ours */
	bool mark;                   /* of the algorithm that runs */
	double done_at;              /* when it ended, in seconds of CLOCK_MONOTONIC */
};

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;      /* anything below */
	struct task *first, *last;
	size_t n, bytes;             /* tasks; of these, staged memory */
	uint64_t issued;             /* tasks so far */
	VEC(struct task *) orphan;   /* last tasks of blocking streams that were destroyed */
	struct task *busy;           /* the task that does device work, or NULL */
	unsigned functions;          /* host functions that run */
	double function_since;       /* when the program's last one began; seconds of CLOCK_MONOTONIC */
	uint64_t epoch;              /* incremented when a suspended grid may go on */
	unsigned threads;            /* of ours */
	unsigned waiting;            /* threads of the host in a wait */
	unsigned trying;             /* ... in a query or an access, that run what can run */
	bool beside;                 /* what runs goes on beside threads of the host: they were held long enough */
	VEC(pid_t) ours;             /* threads of ours, and those in a wait */
	uint64_t calls;              /* of the API that issue or wait */
	double moved;                /* when something has run or called; seconds of CLOCK_MONOTONIC */
	int async_error;             /* of a task that has run: the next wait returns it; 0: none */
	bool ends;                   /* the process */
	bool copying;                /* a copy of the process explores another order; under the lock */
};
extern struct queue queue;

/* ---- queue.c ---- */

/* Adds a task to the stream, after `extra` (or NULL) as well. Takes ownership of the contents of op.
 * Returns a reference. The caller holds the lock. */
struct task *queue_add(struct stream *s, struct op *op, struct caller *from, struct task *extra);
/* The same for a node of a graph: outside of the order of the stream. */
struct task *queue_add_after(struct stream *s, struct op *op, struct caller *from,
	struct task *const *after, size_t n);
struct task *task_get(struct task *t);
void task_put(struct task *t);
/* Can it start? The caller holds the lock. */
bool task_ready(struct task *t);
/* The same for one that a task issues, as part of itself: after `after`, in no stream. */
struct task *queue_add_inside(struct task *parent, struct op *op, struct task *const *after, size_t n);
/* It has run: done are it, unless it has issued others that are not, and those that issued it and waited
 * for it only. Frees what they own, but for other references. The caller holds the lock. */
void queue_ended(struct task *t);
/* The program destroys the stream: its tasks still run. Gives up the handle's reference. */
void stream_orphan(struct stream *s);
void stream_get(struct stream *s);
void stream_put(struct stream *s);
/* The call stack of this thread's call; NULL: call stacks are not wanted. Not under the lock: it may
 * take that of the Python interpreter. Returns a reference, for caller_put(). */
struct caller *caller_here(void);
void caller_put(struct caller *o);
/* What this thread runs was issued there; NULL: not known. It must stay valid. */
void caller_set(const struct caller *o);
uint32_t caller_stack(void); /* a site; 0: not known */
uint32_t caller_stack_of(const struct caller *o); /* NULL: not known */

/* ---- inside.c ---- */

/* The task has run, and what it issued until now is done. Issues what is next in it. False: nothing.
 * The caller holds the lock. */
bool inside_next(struct task *t);

/* ---- host_wait.c ---- */

/* Waits for the task. Returns the error that the waiting call returns: cudaErrorNotReady with
 * WAIT_QUERY, if the task cannot be done unless the host goes on. */
int engine_wait(struct task *t, enum wait_mode mode);
int engine_wait_all(int device); /* -1: for all devices */
/* Tasks were added. Without the lock: may wait, if the queue is full or launches block. */
int engine_issued(void);
/* The kernels of the image are unloaded (NULL: the device is reset): what is queued runs first, as far as
 * it can without the host. */
void engine_leave(const struct image *im);
/* The process ends: what can run without the host runs, what then waits is a deadlock. */
void engine_finish(void);
/* Has the program issued what has not run to its end? False in an operation itself. */
bool engine_pending(void);
/* Runs all that can run without the host; for a few seconds. again: suspended grids look at memory again. */
struct tried {
	bool any;                    /* something could run */
	bool runs;                   /* it still does */
	bool suspended;              /* all that has not ended are grids that are suspended */
};
struct tried engine_try_all(bool again);
/* Waits, for a while, until no device work runs. False: it still does. */
bool engine_hold(void);
/* The thread leaves code of ours (host_enter()), when no device work runs. */
void engine_exit(void);
/* Calls it while no device work runs. */
void engine_still(void (*call)(void *user), void *user);

/* Has a thread of the host what it waits for, though it has not gone on yet? The caller holds the lock. */
bool wait_is_over(void);

/* ---- run_task.c ---- */

/* The task whose operation this thread runs; NULL: none. */
struct task *engine_running(void);
bool engine_begun(void); /* for consan_on_pause() */

/* ---- suspend.c; for consan_on_pause() ---- */

/* What this thread runs pauses. changed: it has changed memory since the last call. */
enum exec_resume engine_pause(enum exec_pause why, bool changed);
/* No other task can run that does not depend on it, and the host waits. */
bool engine_alone(void);

/* ---- leave.c ---- */

/* A handler of a signal wants this thread to leave the call that it interrupted. */
bool leave_wanted(void);
const _Atomic bool *leave_flag(void); /* where that is; valid as long as the thread exists */
/* Of a function that only calls one of the C library, and may be left at any time. */
#define LEAVE_AT_ONCE __attribute__((section("leave_at_once")))

/* ---- deadlock.c; both are called with the lock ---- */

/* Can it neither run nor go on unless memory changes? */
bool task_stuck(const struct task *t);
/* Reports what the tasks and the host wait for. certain: they wait forever; else nothing has happened for
 * so many seconds. */
void deadlock_report(bool certain, double seconds);

/* ---- host_threads.c; with the lock, but for host_enter() and host_is_inside() ---- */

/* The calling thread is held: it accesses no memory that it shares with operations, until host_leave(). May be
 * nested. In an operation they do nothing. */
void host_enter(void);
void host_leave(void);
/* Is the calling thread held, or has it the lock? */
bool host_is_inside(void);
unsigned host_held(void); /* threads that are, and will go on without something else happening */
/* Is no thread of the program about to come to us, or to fall asleep? waited_for: a thread waits for that. */
bool host_is_settled(bool waited_for);
/* Waits, for a while, until no device work runs, if that keeps an access of the host from being unseen. False: some
 * still does. */
bool host_hold(void);
/* The same in steps, at each of which something runs. since: the first one; slice: this one. */
bool host_still_held(const struct cpu_span *since, const struct cpu_span *slice);
/* Does a thread of the program run that is not held? If not: has one run since? */
bool program_runs(void);
bool program_ran(void);

/* ---- blocked.c; with the lock ---- */

/* The text of a file of a thread in /proc, at most n - 1 bytes. */
bool thread_file(pid_t tid, const char *name, char *to, size_t n);
/* How often it has run; 0: not known. */
uint64_t thread_switches(pid_t tid);
/* Is it in queue.ours? */
bool thread_waits(pid_t tid);

/* Is it certain that no thread of the program can go on before one of queue.ours does? */
bool program_blocked(void);
/* Threads of the program that are not in one of our waits. */
long program_threads(void);
/* Might the program change memory, or issue an operation, without us? Other processes may, if they share
 * memory with this one. */
bool program_may_act(void);
/* It may be a deadlock, and the time is over that the user allows. Says once that nothing moves. */
bool program_out_of_time(void);
/* --explore: can the tasks be run in another order, by a copy of the process? No other thread may run, nor
 * code of the program, as its effects outside of the process would be seen. */
bool orders_to_explore(void);

#endif
