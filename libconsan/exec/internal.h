/* The executor's internal structures behind machine.h: module, kernel, worker, launch. For
 * decode.c, module.c, warp.c, call.c, mem*.c, cluster.c, grid.c; other handlers need machine.h
 * only. */
#ifndef CONSAN_EXEC_INTERNAL_H
#define CONSAN_EXEC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "libconsan/ptx/ptx.h"
#include "machine.h"

/* ---- the memory map (mem.c) ---- */

/* [lo, hi). read_only: no write without mem_may_write(). */
struct exec_range { uint64_t lo, hi; bool read_only; };
void mem_windows_init(void);     /* reserves the generic windows, once */
void mem_launch_begin(void);     /* snapshots stay valid until mem_launch_end() */
void mem_launch_end(void);
/* The allocation that contains at, if the device may read it; false: none. Thread-safe, lock-free. */
bool mem_lookup(unsigned device, uint64_t at, struct exec_range *out);
struct grid;
/* The same for an access by the grid, which may be the first write there. */
bool mem_find(struct grid *g, uint64_t at, struct exec_range *out);
/* Before a write to a range of mem_find() that is read-only: calls exec_observer.first_write() if the range
 * is so for that alone, and is writable from then on. */
void mem_may_write(struct grid *g, struct exec_range *r);
/* The range of multicast addresses that contains at, if the device may access it. */
bool mem_multicast(unsigned device, uint64_t at, struct exec_mem *out);
/* The grid may write to the memory behind these multicast addresses. */
void mem_note_multicast(struct grid *g, const struct exec_multicast *m, uint64_t addr, uint64_t bytes);
/* Locks on stripes of global memory, one bit each. Take all that an operation needs in one call. */
static inline uint64_t mem_stripe(uint64_t addr)
{
	return 1ull << ((addr >> 6) * 0x9e3779b97f4a7c15ull >> 58);
}
void mem_lock(uint64_t stripes);
void mem_unlock(uint64_t stripes);

/* ---- modules (module.c) ---- */

struct exec_module {
	struct ptx_module *ptx;
	/* address of each module or function variable, sorted by ptx_var; lent: it belongs to another
	 * module */
	struct placed { const struct ptx_var *var; unsigned char *at; bool lent; } *placed;
	size_t nplaced;
	unsigned device;         /* on which its kernels run */
	uint64_t const_bytes;
	struct exec_kernel **kernel; /* by index of ptx->func, NULL: not decoded */
	uint32_t *nregs;         /* the same index; 0: not known */
	/* the same index, by instruction; NULL: in no kernel yet. Kernels that call the function share them. */
	uint32_t **site;
	pthread_mutex_t lock;
};
unsigned char *module_place(const struct exec_module *m, const struct ptx_var *v);
/* Value of a 64-bit function pointer: the function's index + 1, in a range of its own so that an
 * access to it faults. */
#define FUNC_POINTER(index) (0x00fc000000000000ull + 16 * ((uint64_t)(index) + 1))
#define FUNC_INDEX(pointer) (((pointer) - 0x00fc000000000000ull) / 16 - 1)

/* ---- kernels (decode.c) ---- */

/* Classes of slots. A function's registers are columns in each class. */
enum reg_class { RC_PRED, RC_16, RC_32, RC_64, RC_128, RC_COUNT };
unsigned reg_class_bytes(enum reg_class c);
unsigned reg_class_stride(enum reg_class c); /* from one column to the next */
enum reg_class reg_class_of(unsigned bits);

/* slot_gap.c */
#ifdef __SANITIZE_ADDRESS__
#define SLOT_GAP 64u
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOT_GAP 64u
#endif
#endif
struct exec_kernel;
#ifdef SLOT_GAP
void slot_gap_add(struct exec_kernel *k, uint32_t at, uint32_t bytes); /* a slot */
void slot_gap_poison(const struct exec_kernel *k, const unsigned char *r);
#else
#define SLOT_GAP 0u
static inline void slot_gap_add(struct exec_kernel *k, uint32_t at, uint32_t bytes)
{
	(void)k;
	(void)at;
	(void)bytes;
}
static inline void slot_gap_poison(const struct exec_kernel *k, const unsigned char *r)
{
	(void)k;
	(void)r;
}
#endif

enum const_kind { KC_VALUE, KC_SHARED /* + rank << 24 */, KC_SREG };
struct kconst {                  /* a slot filled before the warp starts */
	uint32_t slot;
	uint8_t bits, kind;
	uint64_t value;          /* or the enum ptx_sreg */
};

/* A function inside a kernel. */
struct kfunc {
	const struct ptx_func *f;
	uint32_t entry_pc;
	uint32_t base[RC_COUNT], n[RC_COUNT]; /* columns in each class */
	uint32_t *slot;          /* by virtual register and component */
	uint32_t *first;         /* index in slot, by register */
	uint32_t params_at, rets_at, body_at, frame; /* offsets in the local frame */
	/* slots to clear at the start; the low bits 0 1 2 3 mean 4 64 128 256 bytes */
	uint32_t *zero; size_t nzero;
};

struct exec_kernel {
	struct exec_module *module;
	const struct ptx_func *func;
	struct arena arena;
	struct xop *code; size_t ncode;
	uint32_t entry_pc;
	const struct ptx_insn **insn_of; /* by pc; NULL: an op added by the executor */
	const struct ptx_func **func_of; /* by pc */
	struct kfunc *fn; size_t nfn;    /* callees first, the entry last */
	uint32_t *fn_of;         /* fn index by ptx function index, UINT32_MAX: not in this
				    kernel */
	uint32_t class_at[RC_COUNT]; /* byte offset of column 0 */
	uint32_t sp_slot;        /* u32: the lanes' stack pointers */
	uint32_t dynamic_slot;   /* u32: bytes that each lane's function has allocated behind its frame */
	uint32_t reg_bytes;
	struct slot_range *slots; /* slot_gap.c */
	struct kconst *konst; size_t nkonst;
	uint32_t local_stack;    /* bytes of stack per lane */
	uint32_t least_inc;      /* the least count of a setmaxnreg.inc, or UINT32_MAX */
	bool has_calls, needs_reserved;
	bool cancels;            /* it cancels clusters that have not started (clc.h) */
	bool fills_sm;           /* it allocates tensor memory: a CTA is alone on its SM */
	struct ev_symbol *symbol; size_t nsymbol;
	uint32_t dynamic_at;     /* where dynamic shared memory starts, 0: not used */
	struct exec_kernel_info info;
	char (*why)[160];        /* reasons for unsupported ops, by i.u */
	size_t nwhy;
};

/* The state of decoding one kernel. */
struct decoder {
	struct exec_kernel *k;
	struct kfunc *fn;        /* current function */
	const struct ptx_insn *insn;
	bool avx512;
	VEC(struct xop) code;
	VEC(const struct ptx_insn *) insn_of;
	VEC(const struct ptx_func *) func_of;
	VEC(struct kconst) konst;
	VEC(struct ev_symbol) symbol;
	VEC(const struct ptx_var *) shared_var;
	VEC(uint32_t) shared_at;
	VEC(uint32_t) fixup;     /* pcs whose i.u is an instruction index */
	uint32_t const_at;       /* next free byte of the constant area */
	uint32_t *const_hash; size_t nhash;
	uint32_t shared_end;
	uint32_t *pc_of;         /* instruction index -> pc, current function */
	char why[160];
	bool failed;
};
/* Adds an op of the executor before the one being decoded. */
struct xop *dec_before(struct decoder *d, xfn fn);
unsigned char *dec_global_place(struct decoder *d, const struct ptx_var *v);
/* Offset of a shared variable in the CTA's window, assigned at first use. */
uint32_t dec_shared_place(struct decoder *d, const struct ptx_var *v);

enum reg_class dec_class(enum ptx_type t); /* class of a register declared with this type */

uint32_t dec_frame_place(const struct decoder *d, const struct ptx_var *v);
/* Makes x, which the decoder is about to return, jump to this instruction (i.u). */
void dec_branch(struct decoder *d, struct xop *x, uint32_t insn);

/* control.c */
enum step op_jump(struct warp *w, const struct xop *x, uint32_t lanes);
enum step run_jump(struct warp *w, const struct xop *x, uint32_t lanes); /* xop.run of op_jump */
enum step op_brx(struct warp *w, const struct xop *x, uint32_t lanes);
enum step op_exit(struct warp *w, const struct xop *x, uint32_t lanes);
bool dec_falls_through(const struct ptx_insn *i);
void dec_brx_targets(struct decoder *d, struct xop *x); /* indices -> pcs */

/* layout.c: fills k->fn with frames, registers and stack; then places shared variables. */
void layout_functions(struct exec_kernel *k);
void layout_shared(struct decoder *d);

/* wgmma_regs.c: adds the op before i that reports the access of i to registers of a wgmma; x has
 * its guard and site. Not NULL: i is a mov; call wgmma_regs_move() when x is decoded. */
struct reg_access;
struct reg_access *wgmma_regs_before(struct decoder *d, const struct ptx_insn *i,
	const uint8_t *regs, const struct xop *x);
/* Makes the decoded mov report its access, and wait for the wgmma in flight that it names. */
void wgmma_regs_move(struct xop *x, struct reg_access *a);

/* regs.c: fills fn->n; fn->slot with columns and fn->zero with registers that may be read before
 * they are written. The decoder turns both into slots. */
void regs_allocate(struct exec_kernel *k, struct kfunc *fn);

/* ---- calls (call.c) ---- */

enum builtin { BUILTIN_NONE, BUILTIN_vprintf, BUILTIN_assertfail, BUILTIN_malloc, BUILTIN_free,
	BUILTIN_runtime };
struct call_site {
	const struct kfunc *caller;
	const struct kfunc *callee; /* NULL: builtin or indirect */
	enum builtin builtin;
	enum exec_function runtime; /* BUILTIN_runtime */
	struct xaddr target;     /* indirect: a function pointer */
	uint32_t ret_pc;
	unsigned narg, nret;
	/* offsets in the caller's frame */
	struct call_copy { uint32_t at, bytes; } arg[32], ret[2];
};
enum step op_ret(struct warp *w, const struct xop *x, uint32_t lanes); /* i.p: the kfunc */
/* builtin.c: arguments by their offsets in the frame */
enum builtin call_builtin(const char *name); /* BUILTIN_NONE: not a builtin */
enum step builtin_call(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct call_site *s);
unsigned char *builtin_frame(const struct warp *w, unsigned l, uint32_t at);
uint64_t builtin_argument(const struct warp *w, const struct call_site *s, unsigned l, unsigned n);
void builtin_give(const struct warp *w, const struct call_site *s, unsigned l, uint64_t v);
/* The block was allocated, or will be freed. */
void builtin_heap_event(struct warp *w, const struct xop *x, unsigned l, const void *at, bool freed);
/* runtime.c: the device runtime */
enum exec_function runtime_function(const char *name); /* RUNTIME_FUNCTIONS: none of these */
/* Sets x->o[0] to %current_graph_exec. */
enum step runtime_current_graph(struct warp *w, const struct xop *x, uint32_t lanes);
const char *runtime_refusal(const char *name); /* why it is not executed; NULL: unknown */
enum step runtime_call(struct warp *w, const struct xop *x, uint32_t lanes, const struct call_site *s);
/* heap.c: memory for malloc in a kernel */
void *heap_malloc(size_t bytes); /* NULL: exhausted */
uint32_t heap_bytes(const void *at); /* of the block there; 0: none is allocated */
bool heap_free(void *at);        /* false: not allocated there */

/* ---- a launch (grid.c), its threads and its schedule (sched.c) ---- */

struct pool_block { struct pool_block *next; };

/* A resident cluster. What the scheduler asks of all of them at each step lies together. */
struct xresident {
	struct cluster *c;
	uint64_t polled;         /* places that its warps read in its last turn */
	bool due;                /* it may progress: give it a turn */
	bool stale;              /* one of those places has changed since */
};

/* A warp that waits for its turn to access memory. */
struct xparked {
	struct warp *w;
	uint64_t polled;         /* w->polled: constant as long as it is parked */
	bool futile;             /* its access would find what it has found before */
};

struct worker {
	struct grid *grid;
	unsigned index;
	pthread_t thread;
	bool started;              /* the thread */
	VEC(struct xresident) resident; /* in the order they started */
	size_t due_from, due_to; /* no resident outside of these is due or stale */
	struct cluster *idle;    /* contexts to reuse */
	struct exec_range hint[256]; /* by op: the allocation it accessed last */
	uint32_t *seen;          /* by pc: end of the run of ops executed from there */
	struct pool_block *pool[16]; /* async ops, by size in 64-byte steps */
	uint64_t ops, events, clusters, ctas;
	_Atomic uint64_t stuck_at; /* grid.work + 1 when all residents were found stuck */
	void *scratch;           /* ex_scratch() */
	size_t scratch_bytes;
	double cpu_from;         /* cpu_thread() when it began, later by what pauses took */
	struct wg_book wg_book;  /* ex_wg_book() */
	struct tc_book tc_book;  /* ex_tc_book() */
	struct reads *reads;     /* reads.h, of all its clusters; or NULL */
	bool reads_given_up;     /* exec_result.reads_given_up */
	/* sched.c */
	uint64_t ticks;          /* ops of all its clusters so far */
	unsigned window;         /* clusters kept resident, even if none of them waits */
	bool early;              /* clusters start before others perform parked accesses */
	uint64_t rng;
	VEC(struct xparked) parked; /* in the order in which they arrived */
	uint32_t version[64];    /* by place: strong accesses that changed it */
	uint64_t steps;          /* strong accesses performed by warps that were parked */
	uint32_t last;           /* number of the warp that performed the last one */
	unsigned streak;         /* those directly before it by the same warp */
	uint64_t wasted;         /* such accesses in sequence that changed nothing */
	uint64_t fair_at;        /* steps when a cluster started or ended, or all had a turn */
	unsigned busy;           /* turns in sequence that progressed */
	uint64_t beside_at;      /* ticks when a cluster ended, or others started beside it */
	/* exec_observer.pause */
	uint64_t paused_work;    /* grid.work then */
	uint64_t paused_ticks, paused_steps; /* ticks and steps then */
	unsigned passed;         /* log2 of the clocks by which time has passed in vain */
};

struct grid {
	const struct exec_launch *l;
	const struct exec_kernel *k;
	unsigned device;         /* on which it runs */
	struct launch_info info;
	struct event_sink *none;
	uint32_t nclusters_dim[3];
	uint64_t nclusters;
	uint32_t *order;         /* ids of clusters in the order in which they start; NULL:
				    0, 1, 2 ... */
	uint32_t nctas, nthreads, nwarps; /* per (largest) cluster, per CTA */
	uint32_t shared_bytes, shared_user;
	uint32_t nregs;          /* per thread at entry */
	uint64_t max_resident;   /* clusters */
	struct clc *clc;         /* clc.h; or NULL: clusters start in order */
	unsigned jobs;
	bool coupled;            /* one worker runs all clusters: the schedule orders them */
	bool pauses;             /* one worker runs all clusters, and calls exec_observer.pause */
	bool polls_shared;       /* strong writes to shared memory are points of the schedule */
	bool runs;               /* ops are executed by xop.run where that is possible */
	bool spread;             /* the other workers take part; or would, with more jobs */
	unsigned threads;        /* workers that have started */
	_Atomic uint64_t next, resident;
	_Atomic uint64_t work;   /* incremented with any cluster's work */
	_Atomic uint64_t cut;    /* clusters from this id on must stop */
	_Atomic bool hang, timeout, stopped;
	_Atomic bool limited;    /* stopped by exec_launch.most */
	_Atomic bool waits;      /* exec_result.waits */
	double deadline;         /* monotonic seconds before which no worker can have used its time; 0: none */
	pthread_mutex_t lock;    /* protects the fields below and print */
	uint64_t bad_cluster;    /* lowest id with a fault */
	enum exec_status status;
	struct consan_err err;
	uint32_t site;
	unsigned fault;          /* FAULT_ code of that cluster */
	uint64_t *workspace;     /* grid barrier of cooperative groups */
	pthread_mutex_t writing; /* protects what follows */
	VEC(uint64_t) written;   /* begins of ranges for which first_write() was called */
	struct worker *worker;
};
/* The most registers per thread with which so many CTAs of so many threads fit an SM. */
uint32_t ex_regs_within(uint32_t threads, uint32_t ctas);

void grid_fail(struct grid *g, uint64_t cluster, enum exec_status status, uint32_t site,
	const char *text);
uint64_t grid_cluster(const struct grid *g, uint64_t k); /* id of the k-th to start */

/* context.c */
/* A cluster of the grid becomes resident; place: clc.h, else 0. */
void context_begin(struct worker *wk, uint64_t id, uint32_t place);
void context_end(struct cluster *c, bool finished); /* after its last event */
void context_cta_end(struct cta *cta);
void context_free(struct cluster *c);

/* cluster.c */
enum turn {
	TURN_ON,         /* its share of ops is used up */
	TURN_PARKED,     /* warps are parked, no other can continue */
	TURN_SPIN,       /* warps poll and find no change, no other can continue */
	TURN_DONE, TURN_DEAD, TURN_STOP
};
enum turn cluster_turn(struct cluster *c);
void cluster_hang(struct cluster *c, enum ev_hang why); /* reports what its warps wait for */
/* Called when no cluster of the worker progresses: true if that holds for all workers, forever.
 * epoch: grid.work before its clusters ran. */
bool livelocked(struct worker *wk, uint64_t epoch);

/* worker.c */
#define SERIAL_OPS (1u << 18) /* ops of a launch before other workers than the first take part */
void worker_run(struct worker *wk);
void worker_free(struct worker *wk);

/* sched.c */
#define FAIR_STEPS 1024
void sched_begin(struct worker *wk);
/* After a turn of the cluster, which may have parked some warps, the first of them at `from`, and
 * changed what its others have found: judges anew which parked warps would find what they have
 * found before (xparked.futile). */
void sched_judge_parked(struct worker *wk, const struct cluster *c, size_t from, bool worked);
/* Lets one parked warp perform its access. False: there is none, or none that changes anything. */
bool sched_grant(struct worker *wk);
/* The bit of a place in global memory, `offset` bytes into its allocation. */
static inline uint64_t sched_place(uint64_t offset)
{
	return 1ull << ((offset >> 4) * 0x9e3779b97f4a7c15ull >> 58);
}
/* Before a strong access of the running fragment to these places. False: the warp was parked;
 * return STEP_PARK. */
bool sched_point(struct warp *w, uint32_t site, uint64_t places, unsigned mode);
/* Before a strong write or an atomic of the running fragment on shared memory. False, in kernels
 * that have strong loads of it: as above. */
bool sched_shared_change(struct warp *w);
/* Lets the warp of the cluster go on that has been parked at one the longest. False: there is
 * none. */
bool sched_grant_shared(struct cluster *c);
/* Emits a strong load, unless the running warp repeats it before it does anything else: as long
 * as it polls in vain, it could as well have come later. What it acquires from values that it
 * does not wait for would order more than the program does. */
void sched_load(struct warp *w, const struct event *e);
/* The warp polls in vain. False: it will find newer values (reads.h). */
bool sched_spun(struct warp *w);
/* After such an access has changed memory. */
void sched_changed(struct warp *w, uint64_t places);
/* Anything outside of the launch may have changed global memory. */
void sched_outside(struct worker *wk);
/* Lets others run, if the schedule is at such a point; stuck: no thread of the launch can go on. True:
 * memory may have changed. */
bool sched_pause(struct worker *wk, bool stuck);
/* The same if all threads poll in vain, but their states change. If nothing but time can change what they
 * find, the clocks of the clusters advance, each time twice as far. */
bool sched_vain(struct worker *wk);
#define TIME_MOST 50 /* worker.passed: then it is a livelock */
/* No thread can go on for now. If the launch has changed memory since others ran, they may be what it waits
 * for: they run before it is found out, at a cost, whether it is stuck. True: as above. */
bool sched_hand_over(struct worker *wk);
/* The resident at this place is due or stale. */
void sched_due(struct worker *wk, size_t slot);
/* Draws the order in which clusters start (grid.order). */
void sched_order(struct grid *g);

enum run_result {
	RUN_READY,       /* it can continue: the budget is used up, or it has yielded */
	RUN_SPIN,        /* it polls and finds no change */
	RUN_PARKED,      /* it waits until the scheduler lets it perform a strong access */
	RUN_BLOCKED, RUN_DONE, RUN_STOP
};
enum run_result warp_run(struct warp *w);
/* xop.run of ops whose handlers cannot do it */
enum step run_step(struct warp *w, const struct xop *x, uint32_t lanes);
#define POLLS 4 /* polls without change before a backward jump yields */
/* Instrumented code that polls seems to work, as it records each iteration. Its turn ends after a
 * dozen of them, or it would take very long until the thread that holds a lock releases it. */
#define POLL_OPS 4096
#define STAYS 16 /* turns ended before a backward jump lets another fragment run: each has a new
		  * budget, and what the loop waits for may be that fragment's to do */
/* Accounts for the ops from `from` to before `end`. */
static inline void warp_retire(struct warp *w, const struct xop *from, const struct xop *end)
{
	const uint32_t n = (uint32_t)(end - from), at = (uint32_t)(from - w->code);
	uint32_t *seen = w->worker->seen;

	w->budget -= n;
	w->cluster->ticks += n;
	if (seen[at] < at + n)
		seen[at] = at + n;
}
/* warp_run(), with the loads that it holds back (sched.c). */
enum run_result sched_run(struct warp *w);
bool warp_ready(struct warp *w); /* true if a fragment is runnable */
bool warp_expire(struct warp *w); /* ends its try_waits that sleep, once for each until ex_work() */
static inline bool frag_asleep(const struct frag *f)
{
	return f->blocked && (*f->wait.word & f->wait.mask) == f->wait.was;
}
void warp_start(struct warp *w);
/* Ends these lanes of the running fragment. */
enum step warp_exit(struct warp *w, const struct xop *x, uint32_t lanes);
/* The running fragment waits until these lanes have arrived. Returns STEP_BLOCK. */
enum step warp_wait_lanes(struct warp *w, uint32_t missing);
/* Adds a fragment (not blocked). */
void warp_fork(struct warp *w, uint32_t pc, uint32_t mask);

/* follow.c: called before each op while w->follow is not empty. */
void follow_step(struct warp *w, const struct xop *x);

/* bar.c: called when a warp or thread has ended, for barriers that count all of them. */
void bar_warp_exit(struct cta *c);
void bar_cluster_exit(struct cluster *c);
void bar_cluster_lanes_exit(struct warp *w, uint32_t lanes); /* after cluster.live is reduced */

#endif
