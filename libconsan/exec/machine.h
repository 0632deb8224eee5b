/* machine: the definitions shared by the files of exec/. Internal: other modules include exec.h.
 *
 * Invariants:
 *  - A kernel is decoded once to an array of struct xop. Handlers know register offsets, never
 *    names; they do not test types or modifiers at run time.
 *  - A handler writes registers of the lanes it is given and of no other lane (a `pure` op may be
 *    given lanes that have exited, see struct xop).
 *  - A handler emits its own events (ex_emit), and only if there is a sink.
 *  - Worker threads share only the kernel (constant), device memory, and the fields of struct grid
 *    marked so.
 *  - Nothing is allocated in steady state: contexts are pooled for each worker. */
#ifndef CONSAN_EXEC_MACHINE_H
#define CONSAN_EXEC_MACHINE_H

#include <string.h>

#include "libconsan/ptx/ptx.h"
#include "exec.h"

#define LANES 32
#define FULL 0xffffffffu

/* ---- registers ----
 *
 * A warp's register file is bytes at warp.r; a register is a byte offset ("slot") into it:
 *   predicate           uint32_t, bit l = lane l             4 bytes
 *   8 and 16 bit        uint16_t[32]                        64 bytes
 *   32 bit              uint32_t[32]                       128 bytes
 *   64 bit              uint64_t[32]                       256 bytes
 *   128 bit             uint64_t[2][32], low halves first  512 bytes
 * All slots but those of predicates are 64-byte aligned. An 8-bit register keeps its value in the
 * low byte; the high byte is 0. Immediates, addresses of symbols and special registers that never
 * change are slots as well, filled before the warp starts. Virtual registers whose live ranges do
 * not overlap share slots, but within one instruction two slots are the same only where the program
 * names the same register twice. Slots never overlap in part. So d[i] = a[i] op b[i] is safe. A
 * handler that writes one destination before it has read all its sources must only handle programs
 * that name d among the sources.
 *
 * The lane types alias everything: one handler reads a slot as u32, another as float. */
typedef uint8_t  __attribute__((may_alias)) l8;
typedef uint16_t __attribute__((may_alias)) l16;
typedef uint32_t __attribute__((may_alias)) l32;
typedef uint64_t __attribute__((may_alias)) l64;
typedef int16_t  __attribute__((may_alias)) ls16;
typedef int32_t  __attribute__((may_alias)) ls32;
typedef int64_t  __attribute__((may_alias)) ls64;
typedef float    __attribute__((may_alias)) lf32;
typedef double   __attribute__((may_alias)) lf64;

#define SLOT_TRUE 0u    /* a predicate slot that is FULL */
#define SLOT_CARRY 4u   /* predicate: the carry flag of the condition code register */
#define SLOT_NONE 64u   /* 512 bytes for results that are never read (PO_SINK) */
#define SLOT_FIRST 576u

struct warp;
struct xop;
struct worker; /* internal.h: the thread that runs clusters, the launch */
struct grid;
struct async_op;

/* What a handler returns to the step loop. */
enum step {
	STEP_NEXT = 0, /* done, continue with the next op */
	STEP_BLOCK,    /* not done: warp.wait holds the condition. The op is called again
			  (warp.retry set) when the word has changed; lanes whose guard is false
			  continue meanwhile */
	STEP_YIELD,    /* done; let other warps run before the next op */
	STEP_JUMP,     /* control flow (warp.c only): fragments have changed */
	STEP_PARK,     /* nothing was done: the op is called again when the scheduler lets this
			  warp perform its strong access to global memory */
	STEP_FAULT,    /* ex_fault() was called; the launch ends */
};

/* `lanes` is not 0: the running fragment's lanes whose guard holds. But see xop.run. */
typedef enum step (*xfn)(struct warp *w, const struct xop *x, uint32_t lanes);

/* A decoded op: one cache line. */
struct xop {
	xfn fn;
	/* Called with lanes 0 if all live lanes of the warp are here: does the op, then calls the next
	 * op's run, as a jump. So such a warp runs without the step loop until an op returns anything
	 * but STEP_NEXT, whose place is in warp.at then. It is fn where fn can do that, which the
	 * decoder sets, else run_step(). */
	xfn run;
	uint32_t guard : 30;   /* predicate slot, SLOT_TRUE if unguarded */
	uint32_t negated : 1;
	uint32_t pure : 1;     /* the op changes only registers of the lanes given, lane by lane.
				  Exited lanes are then given as well, so that short warps take the
				  full-mask path. Set by the decoder. */
	uint32_t site;
	uint32_t o[8];         /* slots; their meaning depends on the op */
	union {
		uint64_t u;
		int64_t s;
		double f;
		uint32_t w[2];
		uint16_t h[4];
		uint8_t b[8];
		const void *p;     /* more operands, in the kernel's arena */
	} i;
};
_Static_assert(sizeof(struct xop) == 64, "an op is one cache line");

/* ---- waiting ---- */

/* The fragment sleeps while (*word & mask) == was. The word is in shared memory (an mbarrier) or in
 * the executor. It is polled, never registered, so the code that changes it need not know the
 * waiters. */
struct xwait {
	const volatile l64 *word;
	uint64_t mask, was;
	/* for EV_BLOCKED: the kind of wait */
	enum ev_wait kind;
	uint64_t addr;
	/* Sets missing, tx_count and text of e just before it is emitted; e->text may point
	 * to buf. NULL: nothing to add. */
	void (*explain)(const struct warp *w, const struct xwait *wait,
		struct event_blocked *e, char *buf, size_t n);
	uint64_t arg;          /* argument of explain */
};

/* A set of lanes at the same op. The running fragment's lanes are in warp.mask. Fragments are kept
 * in order of pc, and no two runnable ones have the same pc. */
struct frag {
	uint32_t pc, mask;
	bool blocked;
	uint32_t turn;         /* lowest turn runs first, then lowest pc */
	struct xwait wait;
};

/* ---- the warp ---- */

struct call_frame {        /* return address of one lane, see call.c */
	uint32_t ret_pc;
	uint32_t sp;               /* the caller's stack pointer */
	uint32_t dynamic;          /* bytes that the caller has allocated behind its frame */
	const struct call_site *site;
	unsigned char *saved;      /* the caller's registers, recursive calls only */
	uint64_t path;             /* differs if the lane came here by other calls */
};

/* Lanes of a slot that hold a value loaded from shared memory never written, see follow.c, and the
 * origin of that value. */
enum { FOLLOWED = 32 };    /* loads tracked at a time */
struct followed { uint32_t slot, lanes, origin; };
struct follow_origin {
	uint32_t site, size;
	uint16_t peer;
	uint64_t addr[LANES];
};

struct warp {
	/* read by the step loop at every op */
	unsigned char *r;          /* the register file, 64-byte aligned */
	uint32_t mask;             /* lanes of the running fragment */
	uint32_t dead;             /* lanes that never existed or have exited */
	const struct xop *stop;    /* op at which to check for fragments to merge */
	const struct xop *next;    /* STEP_JUMP: the op to continue with */
	bool runs;                 /* grid.runs */
	const struct xop *at, *from; /* after xop.run: the op that returned; where its run of ops began */
	uint32_t at_lanes;         /* and the lanes that it was given */
	struct cta *cta;
	struct cluster *cluster;
	struct worker *worker;
	const struct xop *code;    /* kernel's ops; pc = x - code */
	struct event_sink *sink;   /* NULL: unchecked */

	uint16_t id;               /* index in the CTA */
	uint16_t nlanes;           /* lanes at the start: 32, or fewer in the last warp */
	bool retry;                /* this call repeats one that returned STEP_BLOCK; wait is as
				      that call filled it */
	uint64_t tried;            /* bit site % 64: a try_wait there has failed once */
	uint64_t expire;           /* the same: the time limit of a try_wait there is over */
	uint64_t expired;          /* the same: and was since cluster.work was expired_work */
	uint64_t expired_work;
	bool done;
	uint64_t together;         /* cluster.events at its last warp_emit_together() */
	struct xwait wait;         /* filled by a handler that returns STEP_BLOCK */
	uint32_t polls;            /* calls of ex_poll() since the last ex_work() */
	uint32_t maxnreg;          /* current setmaxnreg value */
	uint32_t cluster_arrived;  /* lanes that have arrived for the phase cluster_phase of
				      barrier.cluster, which may be an earlier one */
	uint64_t cluster_phase;
	uint32_t cluster_odd;      /* lanes whose last barrier.cluster arrival was for an odd
				      phase */
	l64 lane_exits;            /* incremented when lanes exit: a word to wait on */
	int64_t budget;            /* ops left in this turn */
	uint32_t stays;            /* turns that the running fragment ended, since others could run */

	/* sched.c: strong accesses to global memory in kernels whose clusters are coupled */
	bool parked;               /* waits until it may perform the access `point` */
	uint64_t parked_shared;    /* the same in shared memory, in order of arrival; 0: it does not */
	bool granted;              /* it may perform the next one */
	bool spun;                 /* polled in vain; spun_* say since when */
	struct xpoint { uint64_t places; uint32_t site; uint8_t mode; } point;
	struct xpolled {           /* its newest strong load, if it was not emitted yet */
		struct event e;
		uint64_t addr[LANES];
		bool held;
	} poll;
	uint64_t polled;           /* places it has read since it last changed one */
	uint64_t spun_versions, spun_work;

	struct frag frag[LANES];   /* all but the running fragment */
	unsigned nfrag;
	uint32_t turn;             /* turn of the running fragment */
	struct xspin {             /* livelock detection, cluster.c */
		uint64_t hash, epoch;
		uint32_t age, next;
		bool repeats;
	} spin;

	unsigned char *local;      /* LANES stacks of the kernel's local_stack bytes each */
	VEC(struct call_frame) call[LANES];

	struct warp_async *async;  /* async.h: cp.async groups etc. */

	VEC(struct followed) follow;   /* not empty: the warp executes one op at a time */
	struct follow_origin *origin;  /* FOLLOWED entries, NULL before the first */
	uint32_t unwritten;            /* event_access.unwritten of the load being reported */
	uint32_t *device_error;        /* of each lane, the last error of the device runtime; NULL: none */
	const struct ev_stored *stored; /* event_access.stored of the store being reported */
};

/* ---- the CTA ---- */

struct bar {                   /* named barrier */
	l64 phase;                 /* completed phases: the word to wait on */
	uint32_t expected;         /* threads; each whole warp counts as 32 */
	bool whole;                /* no count given: all warps that have not exited */
	uint32_t arrived;          /* 0: idle */
	uint32_t pop;              /* bar.red: lanes with true predicate */
	uint32_t all;              /* bar.red: lanes that took part */
	uint32_t result_pop, result_all; /* of the last completed phase */
};

struct warpgroup {             /* four consecutive warps, for wgmma */
	l64 syncs;                 /* rendezvous completed: the word to wait on */
	const struct xop *at;      /* op at which they wait, NULL: no warp waits */
	uint8_t arrived;           /* bit i: warp i of the four */
};

struct cta {
	struct cluster *cluster;
	uint32_t rank;             /* rank in the cluster */
	uint32_t id[3];            /* blockIdx */
	uint64_t linear;           /* linear CTA id in the grid */
	unsigned char *shared;     /* static, then dynamic; 1024-aligned */
	uint32_t shared_bytes;
	struct warp **warp;
	uint32_t nwarps, nthreads;
	uint32_t running;          /* warps that have not ended */
	struct bar bar[NAMED_BARRIERS];
	struct warpgroup *group;   /* (nwarps + 3) / 4 */
	l64 regs_free;             /* registers available to setmaxnreg: a word to wait on */
	l64 exits;                 /* warps that have ended */
	struct cta_async *async;   /* async.h */
};

/* ---- the cluster: the unit of work, run by one worker thread at a time ---- */

struct cluster {
	struct cluster_info info;  /* id, nctas, warps_per_cta, launch */
	struct grid *grid;
	struct worker *worker;
	struct event_sink *sink;   /* NULL: unchecked */
	struct cta *cta;           /* info.nctas of them, by rank; allocated for grid->nctas */
	uint32_t dims[3];          /* info.nctas as three dimensions */
	uint64_t work;             /* incremented when anything but registers changes: ex_work().
				      A quantum without work is a spin (or plain arithmetic) */
	uint64_t polls;            /* incremented by ex_poll() */
	int64_t poll_ops;          /* ops that a poll counts for in a warp's turn */
	uint64_t events;
	uint64_t ticks, slept;     /* ops retired, time slept: their sum is the clock of %clock
				      and %globaltimer */
	uint32_t last_op;          /* last id for async_op of events: ex_op_id() */
	l64 bar_phase;             /* completed phases of barrier.cluster */
	uint32_t bar_arrived;      /* threads that have arrived */
	uint32_t live;             /* threads that have not exited */
	uint64_t rng;              /* state of ex_random() */
	/* pending async operations, oldest first */
	struct async_op *oldest, *newest;
	struct cluster_async *async; /* async.h */
	bool stop;                 /* a fault has ended it */
	/* used by the scheduler only */
	uint32_t running;          /* CTAs that have not ended */
	uint32_t parked;           /* warps that are parked before accesses to global memory */
	uint64_t parked_shared;    /* before accesses to shared memory, so far */
	uint64_t changes;          /* strong writes and atomics, so far: those on shared memory, and in
				      coupled kernels those on global memory */
	struct xpolled *poll;      /* the running warp's, if it is held back; or NULL */
	uint32_t slot;             /* index in the worker's residents */
	uint32_t place;            /* where it runs: clc.h */
	uint64_t polled;           /* places that its warps have read in this turn */
	struct reads_cluster *reads; /* reads.h; or NULL */
	struct cluster *next;      /* in the worker's list of idle contexts */
};

/* ---- async operations: copies, matrix ops ---- */

/* An operation that has been issued and not yet performed. The issuer fills a struct whose first
 * member is this one. */
struct async_op {
	struct async_op *next, *prev;
	struct warp *warp;         /* issuer; valid as long as its cluster */
	uint32_t lanes, site;
	uint32_t id;               /* async_op of events */
	uint64_t issued, changes;  /* ticks and changes of the cluster then */
	bool queued;
	/* Takes effect: moves the data, signals, emits events. The op has left the queue by then
	 * and belongs to perform(), which frees it with async_free() or keeps it in its group's
	 * list. */
	void (*perform)(struct cluster *c, struct async_op *op);
};
/* Zeroed, id and warp set, from a pool of the worker. bytes is the size of the whole struct. */
void *async_new(struct warp *w, const struct xop *x, uint32_t lanes, size_t bytes);
void async_free(struct cluster *c, void *op);
/* Puts op into the cluster's queue to be performed late. ASYNC_EARLY performs it now, ASYNC_RANDOM
 * chooses one of the two at random. */
void async_issue(struct cluster *c, struct async_op *op);
/* Performs op now if it is still queued (a wait requires it). */
void async_force(struct cluster *c, struct async_op *op);
/* Called by the scheduler when nothing else in the cluster can progress: performs the oldest op.
 * False if there is none. At the end of the cluster all are performed. */
bool async_perform_one(struct cluster *c);
/* Performs the oldest op if it was issued long ago. Threads that wait for it in a loop
 * that changes memory never stop to make progress: for them it would never take effect. */
bool async_perform_overdue(struct cluster *c);

/* Implemented in async.c, called by the scheduler. They own warp.async, cta.async and
 * cluster.async. Contexts are pooled: begin() finds what the previous use left there (or NULL),
 * free() is called at the end of the worker. */
void async_warp_begin(struct warp *w);
void async_warp_free(struct warp *w);
void async_cta_begin(struct cta *c);
void async_cta_free(struct cta *c);
void async_cluster_begin(struct cluster *c);
void async_cluster_free(struct cluster *c);

/* ---- rendezvous ---- */

/* .sync with a member mask. Returns the lanes among `lanes` that may continue: those for which
 * every lane named by their own mask (mask slot, u32[32]) has arrived at this op or has exited. The
 * other lanes stay behind as a blocked fragment and are called again when more lanes have arrived.
 * 0: return STEP_BLOCK at once, wait is filled. A lane whose own mask does not name it raises the
 * fault FAULT_MASK and returns 0 with *fault set: return STEP_FAULT. Lanes with different masks may
 * be returned together: treat each set of equal masks separately. */
uint32_t warp_sync_mask_slow(struct warp *w, const struct xop *x, uint32_t lanes,
	uint32_t mask_slot, bool *fault);
static inline uint32_t warp_sync_mask(struct warp *w, const struct xop *x,
	uint32_t lanes, uint32_t mask_slot, bool *fault)
{
	const l32 *m = (const l32 *)(w->r + mask_slot);

	*fault = false;
	if (lanes == FULL) {
		uint32_t all = FULL;

		for (unsigned l = 0; l < LANES; l++)
			all &= m[l];
		if (all == FULL)
			return lanes;
	}
	return warp_sync_mask_slow(w, x, lanes, mask_slot, fault);
}
/* Emits EV_WARP_COLLECTIVE for these lanes, which have all arrived, one event for each member mask.
 * There must be a sink. */
void warp_emit_collective(struct warp *w, const struct xop *x, uint32_t lanes,
	const l32 mask[LANES]);
/* The same for all lanes of the warp, by an instruction of which many may follow each other: nothing
 * is emitted if no event of the cluster lies between. */
void warp_emit_together(struct warp *w, const struct xop *x);
/* Reports the lanes of a shfl that take the value of a lane outside their mask. */
void warp_emit_bad_source(struct warp *w, const struct xop *x, uint32_t lanes,
	const l32 mask[LANES], const l32 from[LANES]);
/* .aligned without a mask (ldmatrix, mma.sync, wgmma, ...): all live lanes of the warp must be here
 * together. True: continue with all of them (lanes == ~dead). False: return *step. That is
 * STEP_BLOCK, or STEP_FAULT with FAULT_ALIGNED raised where they can never be together because the
 * guard is false in other lanes of this fragment. */
bool warp_aligned_slow(struct warp *w, const struct xop *x, uint32_t lanes, enum step *step);
static inline bool warp_aligned(struct warp *w, const struct xop *x,
	uint32_t lanes, enum step *step)
{
	return lanes == (uint32_t)~w->dead || warp_aligned_slow(w, x, lanes, step);
}

/* Rendezvous of all four warps of the warpgroup at the same op, with all their lanes. */
enum group_sync {
	GROUP_WAIT,    /* return *step: STEP_BLOCK or STEP_FAULT */
	GROUP_LAST,    /* all are here, the caller is the last: it acts for all four, then
			  returns STEP_NEXT; the others get GROUP_DONE */
	GROUP_DONE     /* the last warp has acted: return STEP_NEXT */
};
enum group_sync warpgroup_sync(struct warp *w, const struct xop *x, uint32_t lanes,
	enum step *step);
static inline struct warp *warpgroup_warp(struct warp *w, unsigned i)
{
	return w->cta->warp[(w->id & ~3u) + i];
}

/* Fills w->wait and returns STEP_BLOCK: return ex_wait(...). */
static inline enum step ex_wait(struct warp *w, unsigned kind,
	const volatile l64 *word, uint64_t mask, uint64_t addr)
{
	memset(&w->wait, 0, sizeof w->wait);
	w->wait.kind = (uint8_t)kind;
	w->wait.word = word;
	w->wait.mask = mask;
	w->wait.was = *word & mask;
	w->wait.addr = addr;
	return STEP_BLOCK;
}

/* ---- values loaded from unwritten memory (follow.c) ---- */

/* Starts tracking the values that the load at x, reported by this event, put into w->unwritten
 * lanes. */
void follow_begin(struct warp *w, const struct xop *x, const struct event_access *load);

/* ---- lanes of registers ---- */

#define SLOT_OF(type, name) \
static inline type *name(const struct warp *w, uint32_t slot) \
{ \
	return (type *)(w->r + slot); \
}
SLOT_OF(l32, rp)   /* predicate: rp(w, slot)[0] */
SLOT_OF(l16, r16)
SLOT_OF(l32, r32)
SLOT_OF(l64, r64)
SLOT_OF(ls16, rs16)
SLOT_OF(ls32, rs32)
SLOT_OF(ls64, rs64)
SLOT_OF(lf32, rf32)
SLOT_OF(lf64, rf64)
#undef SLOT_OF

/* Lanes of the running fragment whose guard holds */
static inline uint32_t ex_guarded(const struct warp *w, const struct xop *x)
{
	return w->mask & (*rp(w, x->guard) ^ (0u - x->negated));
}

/* Sets the predicate's bits of `lanes` to those of `to`. */
static inline void ex_set_pred(struct warp *w, uint32_t slot, uint32_t lanes, uint32_t to)
{
	l32 *p = rp(w, slot);

	*p = (*p & ~lanes) | (to & lanes);
}

/* Use: for EACH_LANE(l, lanes) d[l] = ...; */
#define EACH_LANE(l, lanes) \
	(uint32_t rest_ = (lanes), l; rest_ && (l = (uint32_t)__builtin_ctz(rest_), 1); \
		rest_ &= rest_ - 1)

/* ---- addresses ----
 *
 * Global and const addresses are host addresses. A shared address (32 bit, or 64 bit with upper
 * half 0) is rank << 24 | offset as on hardware, also for the CTA's own symbols. Generic windows
 * are reserved ranges without memory behind them:
 *   SHARED_WINDOW + (rank << 24 | offset), LOCAL_WINDOW + offset,
 *   PARAM_WINDOW + offset (entry parameters).
 * SHARED_WINDOW is a multiple of 4 GiB as on hardware: programs change the rank in a generic
 * address by exclusive or (FlashMLA). */
extern uint64_t ex_shared_window, ex_local_window, ex_param_window;
#define SHARED_WINDOW_BYTES (16ull << 24)
#define LOCAL_WINDOW_BYTES (64ull << 20)
#define PARAM_WINDOW_BYTES (1ull << 20)

/* An address operand in a decoded op: two words of xop.o (or of the op's own struct). Bit 0 of
 * slot: the register is 64 bits wide. */
struct xaddr {
	uint32_t slot;
	int32_t imm;
};
static inline uint64_t ex_addr(const struct warp *w, struct xaddr a, unsigned lane)
{
	uint64_t base = a.slot & 1 ? r64(w, a.slot & ~1u)[lane] : r32(w, a.slot)[lane];

	return base + (uint64_t)(int64_t)a.imm;
}

/* A resolved place in memory that may be accessed. */
struct xplace {
	enum ev_space space;       /* SP_SHARED SP_GLOBAL SP_LOCAL SP_CONST SP_PARAM */
	struct cta *cta;           /* SP_SHARED: the CTA that owns it */
	uint64_t addr;             /* as in events: shared offset, global address */
	unsigned char *host;       /* the bytes on the host */
};
/* Resolves one address of `bytes` bytes that must be `align`-aligned, for reading, or also for
 * writing. space: PS_none for generic, PS_shared for shared::cta, PS_shared_cluster, PS_global, ...
 * `lanes` is the lane that accesses (its lowest bit chooses the local stack). On failure the fault
 * is raised (return STEP_FAULT). */
bool ex_resolve(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, uint64_t addr, uint64_t bytes, uint32_t align,
	bool write, struct xplace *out);
/* Checks only, raises no fault. For code without a warp (async ops when performed). */
bool ex_global_ok(struct worker *wk, uint64_t addr, uint64_t bytes, bool write);

/* ---- multicast addresses (multicast.c) ---- */

/* The memory behind [addr, addr + bytes) of multicast addresses: calls `call` for each piece, `from`
 * bytes into the range. The number of pieces' bytes; less than m->devices * bytes: not all devices
 * have bound memory there. call may be NULL. */
uint64_t multicast_each(const struct exec_multicast *m, uint64_t addr, uint64_t bytes,
	void (*call)(void *user, uint64_t at, uint64_t from, uint64_t n), void *user);
bool multicast_is(uint64_t addr);
/* Raises a fault at this lane unless it may access these bytes by a multimem instruction. */
const struct exec_multicast *multicast_find(struct warp *w, const struct xop *x, unsigned lane,
	uint64_t addr, uint64_t bytes);
/* Reports a store to multicast addresses that is none of multimem. It is executed: each device gets it, as on
 * GPUs, although the ISA allows only multimem instructions there. */
void multicast_stored(struct warp *w, const struct xop *x, uint32_t lanes, uint64_t addr,
	uint64_t bytes);
/* Were there ever multicast addresses in this process? Set before a kernel can know one (mem.c). */
extern _Atomic bool mem_multicasts;

/* ---- events and faults ---- */

/* Zeroed, with kind, cta, warp, lanes, site, and peer = the warp's own CTA. */
/* An initializer of the whole event would be a `rep stos` at -O2, which takes longer than the rest. */
typedef uint64_t event_pair __attribute__((vector_size(16), aligned(8), may_alias));
static inline struct event ex_event(const struct warp *w, const struct xop *x,
	enum ev_kind kind, uint32_t lanes)
{
	struct event e;
	event_pair *word = (event_pair *)e.word;

	_Static_assert(EVENT_WORDS == 11, "all words are cleared");
	word[0] = word[1] = word[2] = word[3] = word[4] = (event_pair){ 0 };
	e.word[10] = 0;
	e.kind = kind;
	e.cta = (uint16_t)w->cta->rank;
	e.warp = w->id;
	e.lanes = lanes;
	e.site = x->site;
	return e;
}
/* Emits the strong load that was held back (sched.c). */
void sched_poll_counts(struct cluster *c);
/* Use:
 *   if (w->sink) {
 *           struct event e = ex_event(w, x, EV_.., lanes);
 *           ...
 *           ex_emit(w->cluster, &e);
 *   } */
static inline void ex_emit(struct cluster *c, const struct event *e)
{
	if (__builtin_expect(c->poll != NULL, 0))
		sched_poll_counts(c);
	c->events++;
	c->sink->event(c->sink, e);
}
/* Fills addr/stride or lane_addr of e for these lanes of addr[32]. addr must stay valid until e is
 * emitted. */
void ex_lanes(struct ev_lanes *at, uint32_t lanes, const uint64_t addr[LANES]);

static inline struct shared_view ex_view(const struct warp *w)
{
	return (struct shared_view){ w->cta->rank, w->cluster->info.nctas, w->cta->shared_bytes };
}

/* Raises FAULT_mode at these lanes and ends the launch. Returns STEP_FAULT. */
enum step ex_fault(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	enum ev_space space, uint64_t addr, uint64_t size, const char *fmt, ...)
	PRINTF_LIKE(8, 9);
/* The same for a refused operand (refuse.h). */
enum step ex_refuse(struct warp *w, const struct xop *x, uint32_t lanes, const struct refusal *r);

/* Ends the launch, which then counts as not checked, at operands that are not executed. Returns
 * STEP_FAULT. */
enum step ex_refuse_op(struct warp *w, const struct xop *x, const char *fmt, ...)
	PRINTF_LIKE(3, 4);

/* Something other than registers has changed (a store, an arrival, an issue). */
static inline void ex_work(struct warp *w)
{
	w->cluster->work++;
	w->polls = 0;
}
/* A poll of state that others may change, which found no change: a test_wait that returned false, a
 * failed compare-and-swap, a volatile load, a nanosleep. A warp that loops with polls but without
 * work yields. */
static inline void ex_poll(struct warp *w)
{
	w->polls++;
	w->budget -= w->cluster->poll_ops;
	w->cluster->polls++;
}
static inline uint32_t ex_op_id(struct cluster *c)
{
	return ++c->last_op;
}
/* Working memory for a handler, 64-aligned, zeroed when the size changes, kept as long as the
 * worker. Used by the tile loops of wgmma and tcgen05, each with one size. */
void *ex_scratch(struct worker *wk, size_t bytes);
struct wg_book *ex_wg_book(struct worker *wk); /* cached pieces of wgmma descriptors */
struct tc_book *ex_tc_book(struct worker *wk); /* the same of tcgen05.mma */
uint64_t ex_random(struct cluster *c); /* derived from the launch's seed and the cluster's id */

/* ---- decoding ----
 *
 * ops.def has one line for every row of ptx.def: ROW(id, where, reason)
 *   PLAIN  bool dec_<id>(...) in a file of LIB_SRC
 *   SIMD   dec_<id> in a file of SIMD_SRC, built once per vector width
 *   NONE   not supported, for this reason (a string; "" for the others)
 * A row of ptx.def without its line does not compile, a line without its decoder does not link, and
 * a decoder without its line is never called. Start a decoder with DECODER(add) { ... } in either
 * kind of file. Everything else in an SIMD_SRC file must be static.
 *
 * A decoder fills x (zeroed; guard and site are set) from the instruction and returns true. It
 * returns dec_unsupported(d, "why"), which is false, for a form that is not supported. */
struct decoder;
#ifdef SIMD
#define SIMD_PASTE2(a, b) a##_##b
#define SIMD_PASTE(a, b) SIMD_PASTE2(a, b)
#define DECODER_NAME(id) SIMD_PASTE(dec_##id, SIMD)
#else
#define DECODER_NAME(id) dec_##id
#endif
#define DECODER(id) \
	bool DECODER_NAME(id)(struct decoder *d, const struct ptx_insn *i, struct xop *x); \
	bool DECODER_NAME(id)(struct decoder *d, const struct ptx_insn *i, struct xop *x)

/* Slots of operands. t is what the handler accesses: a register of another width, or a predicate for a number, or a
 * number for one, is refused. An immediate is converted to t (decimal and 0d literals become f32 when t is a 32-bit
 * float, f16 or bf16 when it is one of those). dec_dst() gives SLOT_NONE for PO_SINK. */
uint32_t dec_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t);
uint32_t dec_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t);
/* The same for instructions whose registers may be wider than their types (ISA 9.4.1): the handler accesses *bits,
 * which is the width of the register (8, 16, 32, 64; of 128 the low 64), of anything else that of t. */
uint32_t dec_wide_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned *bits);
uint32_t dec_wide_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned *bits);
/* The same for a vector of elements of type t, or one of them: a slot for each. *bytes: 2, 4 or 8 for each lane. */
bool dec_elements(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool dst, uint32_t *slot,
	unsigned *bytes);
/* Predicate source; *flip is FULL for !p, else 0. */
uint32_t dec_pred(struct decoder *d, const struct ptx_operand *o, uint32_t *flip);
/* Declared width of a register operand (1, 8, 16, 32, 64, 128); 0: not a register. */
unsigned dec_bits(const struct decoder *d, const struct ptx_operand *o);
/* A constant; bits as above (for 1: 0 or 1 becomes 0 or FULL). Deduplicated. */
uint32_t dec_const(struct decoder *d, unsigned bits, uint64_t value);
/* A private slot that no register shares, written by the op itself. */
uint32_t dec_scratch(struct decoder *d, unsigned bits);
/* PO_ADDR, or a bare register or symbol. */
struct xaddr dec_addr(struct decoder *d, const struct ptx_operand *o);
/* Memory that lives as long as the kernel. */
void *dec_alloc(struct decoder *d, size_t bytes);
/* Number of the virtual register, for EV_REGISTER_ACCESS and the regs of EV_WGMMA. */
uint32_t dec_reg_id(const struct decoder *d, const struct ptx_operand *o);
/* ptx_load_is_read() of the instruction. */
bool dec_load_is_read(const struct decoder *d, const struct ptx_insn *i);
/* Records the reason; always returns false. Decoding continues; executing the op ends the
 * launch. */
bool dec_unsupported(struct decoder *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* cvt with stochastic rounding (cvt_rs.c) */
bool dec_cvt_rs(struct decoder *d, const struct ptx_insn *i, struct xop *x);

#endif
