/* machine: what the files of exec/ agree on. Not for other rooms (exec.h is).
 *
 * House rules:
 *  - a kernel is decoded once to an array of struct xop; handlers know register
 *    offsets, never names, types as data or modifiers to test while running;
 *  - handlers write registers of the lanes they are given and of no other lane
 *    (a `pure` op may be given lanes that do not exist any more, see below);
 *  - a handler emits its own events (ex_emit), and only if there is a sink;
 *  - nothing here is shared between worker threads but the kernel (constant),
 *    device memory, and what struct grid says is;
 *  - allocation-free in steady state: contexts are pooled per worker. */
#ifndef CONSAN_EXEC_MACHINE_H
#define CONSAN_EXEC_MACHINE_H

#include <string.h>

#include "libconsan/ptx/ptx.h"
#include "exec.h"

#define LANES 32
#define FULL 0xffffffffu

/* ---- registers ----
 *
 * A warp's register file is bytes at warp.r; a register is a byte offset
 * ("slot") into it:
 *   predicate           uint32_t, bit l = lane l             4 bytes
 *   8 and 16 bit        uint16_t[32]                        64 bytes
 *   32 bit              uint32_t[32]                       128 bytes
 *   64 bit              uint64_t[32]                       256 bytes
 *   128 bit             uint64_t[2][32], low halves first  512 bytes
 * All but predicates are 64-byte aligned. An 8-bit register keeps its value in
 * the low byte, the high byte is 0. Immediates, addresses of symbols and
 * special registers that never change live in slots as well, filled before the
 * warp starts. Virtual registers whose lives do not overlap share slots, but
 * within one instruction two slots are the same only where the program names
 * the same register twice; slots never overlap in part. So d[i] = a[i] op b[i]
 * is safe, and a handler that writes one destination before it has read all
 * its sources must only mind the program that names d among the sources.
 *
 * The lane types alias everything: a slot is read as u32 here, as float there. */
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
#define SLOT_CARRY 4u   /* predicate: the condition code register's carry flag */
#define SLOT_NONE 64u   /* 512 bytes to write what nobody reads (PO_SINK) */
#define SLOT_FIRST 576u

struct warp;
struct xop;
struct worker; /* core.h: the thread that runs clusters, the launch */
struct grid;
struct async_op;

/* What a handler says to the step loop. */
enum step {
	STEP_NEXT = 0, /* done, go on with the next op */
	STEP_BLOCK,    /* not done: warp.wait says for what. The op is called
			  again (warp.retry set) when the word changed; lanes
			  whose guard is false go on meanwhile */
	STEP_YIELD,    /* done; let other warps run before the next op */
	STEP_JUMP,     /* control flow (warp.c only): fragments have changed */
	STEP_FAULT,    /* ex_fault() was called; the launch ends */
};

/* `lanes` is never 0: the running fragment's lanes whose guard holds. */
typedef enum step (*xfn)(struct warp *w, const struct xop *x, uint32_t lanes);

/* A decoded op: one cache line. */
struct xop {
	xfn fn;
	uint32_t guard;        /* predicate slot, SLOT_TRUE if unguarded ... */
	uint32_t guard_xor;    /* ... FULL if negated */
	uint32_t pure;         /* FULL: only registers of the lanes given change,
				  lane by lane. Lanes that have exited are then
				  given as well, so that the full-mask path is
				  taken by short warps. Set by the decoder. */
	uint32_t site;
	uint32_t o[8];         /* slots; which is which: the op's own matter */
	union {
		uint64_t u;
		int64_t s;
		double f;
		uint32_t w[2];
		uint16_t h[4];
		uint8_t b[8];
		const void *p;     /* more operands: in the kernel's arena */
	} i;
};
_Static_assert(sizeof(struct xop) == 64, "an op is one cache line");

/* ---- waiting ---- */

/* The fragment sleeps while (*word & mask) == was. The word may lie in shared
 * memory (an mbarrier) or in the machine; it is looked at, never registered,
 * so whoever changes it need not know who waits. */
struct xwait {
	const volatile l64 *word;
	uint64_t mask, was;
	/* for EV_BLOCKED: what for */
	enum ev_wait kind;
	uint64_t addr;
	/* Sets missing, tx_count and text of e just before it is emitted; e->text may point
	 * to buf. NULL: nothing to add. */
	void (*explain)(const struct warp *w, const struct xwait *wait,
		struct event_blocked *e, char *buf, size_t n);
	uint64_t arg;          /* for explain */
};

/* A set of lanes that stand at the same op. The running fragment's lanes are
 * in warp.mask; fragments are kept in order of pc, and there are no two
 * runnable ones at the same pc. */
struct frag {
	uint32_t pc, mask;
	bool blocked;
	uint32_t turn;         /* lowest turn runs first, then lowest pc */
	struct xwait wait;
};

/* ---- the warp ---- */

struct call_frame {        /* one lane's way back, see call.c */
	uint32_t ret_pc;
	uint32_t sp;               /* the caller's */
	const struct call_site *site;
	unsigned char *saved;      /* the caller's registers, recursive calls only */
};

/* Lanes of a slot that hold what somebody loaded before anybody wrote it, see
 * follow.c, and where that was. */
enum { FOLLOWED = 32 };    /* loads at a time */
struct followed { uint32_t slot, lanes, origin; };
struct follow_origin {
	uint32_t site, size;
	uint16_t peer;
	uint64_t addr[LANES];
};

struct warp {
	/* hot: read by the step loop at every op */
	unsigned char *r;          /* the register file, 64-byte aligned */
	uint32_t mask;             /* lanes of the running fragment */
	uint32_t dead;             /* lanes that never were or have exited */
	const struct xop *stop;    /* op at which to look at fragments again */
	const struct xop *next;    /* STEP_JUMP: where to go on */
	struct cta *cta;
	struct cluster *cluster;
	struct worker *worker;
	const struct xop *code;    /* kernel's ops; pc = x - code */
	struct event_sink *sink;   /* NULL: unchecked */

	uint16_t id;               /* in the CTA */
	uint16_t nlanes;           /* lanes at the start: 32, or fewer in the last warp */
	bool retry;                /* this call repeats one that returned STEP_BLOCK;
				      wait is as that call had filled it */
	uint64_t tried;            /* bit site % 64: a try_wait there has failed once */
	bool done;
	struct xwait wait;         /* filled by a handler that blocks */
	uint32_t polls;            /* ex_poll() since the last ex_work() */
	uint32_t maxnreg;          /* current setmaxnreg value */
	uint32_t cluster_odd;      /* lanes whose last barrier.cluster arrival was for an odd phase */
	l64 meetings;              /* grows when lanes exit: a word to wait on */
	int64_t budget;            /* ops left in this turn */

	struct frag frag[LANES];   /* all but the running one */
	unsigned nfrag;
	uint32_t turn;             /* of the running fragment */
	struct xspin {             /* livelock detection, cluster.c */
		uint64_t hash, epoch;
		uint32_t age, next;
		bool repeats;
	} spin;

	unsigned char *local;      /* LANES stacks of the kernel's local_stack bytes */
	VEC(struct call_frame) call[LANES];

	struct warp_async *async;  /* async.h: cp.async groups and so on */

	VEC(struct followed) follow;   /* not empty: the warp goes op by op */
	struct follow_origin *origin;  /* FOLLOWED of them, NULL before the first */
	uint32_t unwritten;            /* of the load being reported: event_access.unwritten */
};

/* ---- the CTA ---- */

struct bar {                   /* named barrier */
	l64 phase;             /* generations completed: the word to wait on */
	uint32_t expected;         /* threads; whole warps count 32 */
	bool whole;                /* no count given: all warps that run */
	uint32_t arrived;          /* 0: idle */
	uint32_t pop;              /* bar.red: lanes with true predicate */
	uint32_t all;              /* bar.red: lanes that took part */
	uint32_t result_pop, result_all; /* of the last completed phase */
};

struct warpgroup {             /* four consecutive warps, for wgmma */
	l64 meetings;          /* completed: the word to wait on */
	const struct xop *at;      /* where they meet, NULL: nobody is there */
	uint8_t arrived;           /* bit i: warp i of the four */
};

struct cta {
	struct cluster *cluster;
	uint32_t rank;             /* in the cluster */
	uint32_t id[3];            /* blockIdx */
	uint64_t linear;           /* linear CTA id in the grid */
	unsigned char *shared;     /* static, then dynamic; 1024-aligned */
	uint32_t shared_bytes;
	struct warp **warp;
	uint32_t nwarps, nthreads;
	uint32_t running;          /* warps not done */
	struct bar bar[NAMED_BARRIERS];
	struct warpgroup *group;   /* (nwarps + 3) / 4 */
	l64 regs_free;         /* pool of registers for setmaxnreg: a word to wait on */
	l64 exits;             /* warps that ended */
	struct cta_async *async;   /* async.h */
};

/* ---- the cluster: the unit of work, run by one worker thread at a time ---- */

struct cluster {
	struct cluster_info info;  /* id, nctas, warps_per_cta, launch */
	struct grid *grid;
	struct worker *worker;
	struct event_sink *sink;   /* NULL: unchecked */
	struct cta *cta;           /* info.nctas of them, by rank; room for grid->nctas */
	uint32_t dims[3];          /* info.nctas as a box */
	uint64_t work;             /* grows whenever anything but registers
				      changes: ex_work(). A quantum without work
				      is a spin (or plain arithmetic) */
	uint64_t polls;            /* grows with ex_poll() */
	uint64_t events;
	uint64_t ticks, slept;     /* ops retired, time slept: the clock of %clock
				      and %globaltimer is their sum */
	uint32_t last_op;          /* ids for async_op of events: ex_op_id() */
	l64 bar_phase;             /* barrier.cluster, completed phases */
	uint32_t bar_arrived;      /* threads */
	uint32_t live;             /* threads that have not exited */
	uint64_t rng;              /* state of ex_random() */
	/* pending async operations, oldest first */
	struct async_op *oldest, *newest;
	struct cluster_async *async; /* async.h */
	bool stop;                 /* a fault ended it */
	/* scheduler's own */
	uint32_t running;          /* CTAs not done */
	struct cluster *next;
};

/* ---- async operations: copies, matrix ops ---- */

/* An operation that has been issued and not yet performed. The issuer fills a
 * struct that begins with this one. */
struct async_op {
	struct async_op *next, *prev;
	struct warp *warp;         /* issuer; lives as long as its cluster */
	uint32_t lanes, site;
	uint32_t id;               /* async_op of events */
	bool queued;
	/* Takes effect: moves the data, signals, emits. The op is out of the
	 * queue by then and belongs to perform(), which frees it with
	 * async_free() or keeps it in its group's records. */
	void (*perform)(struct cluster *c, struct async_op *op);
};
/* Zeroed, id and warp set, from a pool of the worker; bytes is the whole struct. */
void *async_new(struct warp *w, const struct xop *x, uint32_t lanes, size_t bytes);
void async_free(struct cluster *c, void *op);
/* Puts it into the cluster's queue to be performed late; under ASYNC_EARLY
 * performs it now, under ASYNC_RANDOM one or the other. */
void async_issue(struct cluster *c, struct async_op *op);
/* Performs it now if it is still queued (a wait demands it). */
void async_force(struct cluster *c, struct async_op *op);
/* Called by the scheduler when nothing else in the cluster can move: performs
 * the oldest. False if there is none. At cluster end all are performed. */
bool async_perform_one(struct cluster *c);

/* async.c (the copies' and matrices' side) implements these; the scheduler
 * calls them. warp/cta/cluster.async are theirs to allocate and to reuse: a
 * context is pooled, begin() finds what the last end() left there (or NULL);
 * free() is for the end of the worker. */
void async_warp_begin(struct warp *w);
void async_warp_free(struct warp *w);
void async_cta_begin(struct cta *c);
void async_cta_free(struct cta *c);
void async_cluster_begin(struct cluster *c);
void async_cluster_free(struct cluster *c);

/* ---- rendezvous ---- */

/* .sync with a member mask: which of `lanes` may go on, because every lane
 * their own mask (mask slot, u32[32]) names has arrived at this op or has
 * exited? Lanes that may not are left behind here as a blocked fragment and are
 * called again when more lanes have come. 0: return STEP_BLOCK at once, wait is
 * filled. A lane that its own mask does not name: the fault FAULT_MASK is raised,
 * returns 0 with *fault set: return STEP_FAULT.
 * Lanes with different masks may be returned together: treat each set of equal
 * masks on its own. */
uint32_t warp_meet_slow(struct warp *w, const struct xop *x, uint32_t lanes,
	uint32_t mask_slot, bool *fault);
static inline uint32_t warp_meet(struct warp *w, const struct xop *x,
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
	return warp_meet_slow(w, x, lanes, mask_slot, fault);
}
/* Tells (EV_WARP_COLLECTIVE) that these lanes, which all may go on, met under their
 * masks. There must be a sink. */
void warp_met(struct warp *w, const struct xop *x, uint32_t lanes, const l32 mask[LANES]);
/* Tells which lanes of a shfl take the value of a lane outside their mask. */
void warp_stray(struct warp *w, const struct xop *x, uint32_t lanes, const l32 mask[LANES],
	const l32 from[LANES]);
/* .aligned without a mask (ldmatrix, mma.sync, wgmma, ...): all live lanes of the
 * warp must be here together. True: go on with all of them (lanes == ~dead).
 * False: return *step (STEP_BLOCK, or STEP_FAULT with FAULT_ALIGNED raised when
 * that can never be: the guard is false in other lanes of this fragment). */
bool warp_aligned_slow(struct warp *w, const struct xop *x, uint32_t lanes, enum step *step);
static inline bool warp_aligned(struct warp *w, const struct xop *x,
	uint32_t lanes, enum step *step)
{
	return lanes == (uint32_t)~w->dead || warp_aligned_slow(w, x, lanes, step);
}

/* All four warps of the group meet at the same op, with all their lanes. */
enum meet { MEET_WAIT, /* return *step: STEP_BLOCK or STEP_FAULT */
	MEET_LAST,     /* all are here and you are the last: act for all four,
			  then return STEP_NEXT; the others find MEET_DONE */
	MEET_DONE };   /* it has been done: return STEP_NEXT */
enum meet warpgroup_meet(struct warp *w, const struct xop *x, uint32_t lanes,
	enum step *step);
static inline struct warp *warpgroup_warp(struct warp *w, unsigned i)
{
	return w->cta->warp[(w->id & ~3u) + i];
}

/* Fills w->wait; to be returned: return ex_wait(...). */
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

/* ---- values that nobody wrote (follow.c) ---- */

/* The load at x, which this event told of, brings them to w->unwritten lanes. */
void follow_begin(struct warp *w, const struct xop *x, const struct event_access *load);

/* ---- registers, as lanes ---- */

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

/* Sets the predicate's bits of `lanes` to those of `to`. */
static inline void ex_set_pred(struct warp *w, uint32_t slot, uint32_t lanes, uint32_t to)
{
	l32 *p = rp(w, slot);

	*p = (*p & ~lanes) | (to & lanes);
}

/* for (lane of lanes) */
#define EACH_LANE(l, lanes) \
	(uint32_t rest_ = (lanes), l; rest_ && (l = (uint32_t)__builtin_ctz(rest_), 1); \
		rest_ &= rest_ - 1)
/* use: for EACH_LANE(l, lanes) d[l] = ...; */

/* ---- addresses ----
 *
 * Global and const addresses are host addresses. A shared address (32 bit, or
 * 64 bit with upper half 0) is rank << 24 | offset, own symbols included, as on
 * hardware. Generic windows are reserved ranges without memory behind them:
 *   SHARED_WINDOW + (rank << 24 | offset), LOCAL_WINDOW + offset,
 *   PARAM_WINDOW + offset (entry parameters). */
extern uint64_t ex_shared_window, ex_local_window, ex_param_window;
#define SHARED_WINDOW_BYTES (16ull << 24)
#define LOCAL_WINDOW_BYTES (64ull << 20)
#define PARAM_WINDOW_BYTES (1ull << 20)

/* An address operand in a decoded op: two words of xop.o (or of your own
 * struct). Bit 0 of slot: the register is 64 bits wide. */
struct xaddr {
	uint32_t slot;
	int32_t imm;
};
static inline uint64_t ex_addr(const struct warp *w, struct xaddr a, unsigned lane)
{
	uint64_t base = a.slot & 1 ? r64(w, a.slot & ~1u)[lane] : r32(w, a.slot)[lane];

	return base + (uint64_t)(int64_t)a.imm;
}

/* A place in memory that may be accessed. */
struct xplace {
	enum ev_space space;       /* SP_SHARED SP_GLOBAL SP_LOCAL SP_CONST SP_PARAM */
	struct cta *cta;           /* SP_SHARED: whose */
	uint64_t addr;             /* as events say it: shared offset, global address */
	unsigned char *host;       /* the bytes */
};
/* Resolves one address of `bytes` bytes that must be `align`-aligned, for
 * reading, or writing too. space: PS_none for generic, PS_shared for
 * shared::cta, PS_shared_cluster, PS_global, ... `lanes` is the lane that acts
 * (its lowest bit chooses the local stack). On failure the fault is raised
 * (return STEP_FAULT). */
bool ex_resolve(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, uint64_t addr, uint64_t bytes, uint32_t align,
	bool write, struct xplace *out);
/* Only looks: no fault. For code without a warp (async ops when performed). */
bool ex_global_ok(struct worker *wk, uint64_t addr, uint64_t bytes, bool write);

/* ---- events and faults ---- */

/* Zeroed, with kind, cta, warp, lanes, site, and peer = the own CTA. */
static inline struct event ex_event(const struct warp *w, const struct xop *x,
	enum ev_kind kind, uint32_t lanes)
{
	return (struct event){ .kind = kind, .cta = (uint16_t)w->cta->rank, .warp = w->id,
		.lanes = lanes,
		.site = x->site };
}
/* Use: if (w->sink) { struct event e = ex_event(w, x, EV_.., lanes); ...; ex_emit(w->cluster, &e); } */
static inline void ex_emit(struct cluster *c, const struct event *e)
{
	c->events++;
	c->sink->event(c->sink, e);
}
/* Fills addr/stride or lane_addr of e for these lanes of addr[32]; addr must
 * stay valid until e is emitted. */
void ex_lanes(struct ev_lanes *at, uint32_t lanes, const uint64_t addr[LANES]);

static inline struct shared_view ex_view(const struct warp *w)
{
	return (struct shared_view){ w->cta->rank, w->cluster->info.nctas, w->cta->shared_bytes };
}

/* Raises FAULT_mode at these lanes, ends the launch. Returns STEP_FAULT. */
enum step ex_fault(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	enum ev_space space, uint64_t addr, uint64_t size, const char *fmt, ...)
	PRINTF_LIKE(8, 9);
/* The same with what refuse.h says of operands. */
enum step ex_refuse(struct warp *w, const struct xop *x, uint32_t lanes, const struct refusal *r);
/* The same for an async op that finds its fault while it is performed. */
void ex_fault_async(struct async_op *op, unsigned mode,
	enum ev_space space, uint64_t addr, uint64_t size, const char *fmt, ...)
	PRINTF_LIKE(6, 7);

/* Something but registers has changed (a store, an arrival, an issue). */
static inline void ex_work(struct warp *w)
{
	w->cluster->work++;
	w->polls = 0;
}
/* A look at something others may change, that found no change: a test_wait
 * that says false, a failed compare-and-swap, a volatile load, a nanosleep. A
 * warp that loops with polls but without work gives way. */
static inline void ex_poll(struct warp *w)
{
	w->polls++;
	w->cluster->polls++;
}
static inline uint32_t ex_op_id(struct cluster *c)
{
	return ++c->last_op;
}
/* Working memory for a handler, 64-aligned, zeroed once, kept as long as the
 * worker. One user: the tile loops of wgmma, with one size. */
void *ex_scratch(struct worker *wk, size_t bytes);
struct wg_book *ex_wg_book(struct worker *wk); /* what descriptors lead to */
uint64_t ex_random(struct cluster *c); /* from the launch's seed and the cluster's id */

/* ---- decoding ----
 *
 * ops.def has one line for every row of ptx.def: ROW(id, where, reason)
 *   PLAIN  bool dec_<id>(...) in a file of EXEC
 *   SIMD   dec_<id> in a file of EXEC_SIMD, built once per vector width
 *   NONE   not supported, for this reason (a string; "" for the others)
 * A row of ptx.def without its line does not compile, a line without its
 * decoder does not link; a decoder without its line is never called. Start a
 * decoder with: DECODER(add) { ... }, in either kind of file. Everything else in
 * an EXEC_SIMD file must be static.
 *
 * A decoder fills x (zeroed; guard and site are set) from the instruction and
 * returns true; false: this form is not supported, after
 * dec_unsupported(d, "why"). */
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

/* Slots of operands. `bits` is the width the op works in: 1 (predicate), 8, 16,
 * 32, 64, 128. An immediate is converted to it (decimal and 0d literals become
 * f32 when t is a 32-bit float, f16/bf16 alike); for a register whose declared
 * width differs, see dec_bits(). */
uint32_t dec_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t);
uint32_t dec_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t); /* PO_SINK: SLOT_NONE */
/* Predicate source; *flip is FULL for !p, else 0. */
uint32_t dec_pred(struct decoder *d, const struct ptx_operand *o, uint32_t *flip);
/* Declared width of a register operand (1, 8, 16, 32, 64, 128); 0: no register. */
unsigned dec_bits(const struct decoder *d, const struct ptx_operand *o);
/* A constant; bits as above (for 1: 0 or 1 becomes 0 or FULL). Deduplicated. */
uint32_t dec_const(struct decoder *d, unsigned bits, uint64_t value);
/* A slot of its own that no register shares, written by the op itself. */
uint32_t dec_scratch(struct decoder *d, unsigned bits);
/* PO_ADDR (or a bare register or symbol) */
struct xaddr dec_addr(struct decoder *d, const struct ptx_operand *o);
/* Memory that lives as long as the kernel. */
void *dec_alloc(struct decoder *d, size_t bytes);
/* Number of the virtual register, for EV_REGISTER_ACCESS and WG_MMA's regs. */
uint32_t dec_reg_id(const struct decoder *d, const struct ptx_operand *o);
/* Says why; always false. The kernel decodes on; running into it ends the launch. */
bool dec_unsupported(struct decoder *d, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
