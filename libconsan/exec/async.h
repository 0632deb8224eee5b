/* async: the asynchronous operations and mbarriers of warps, CTAs and clusters. For the files that
 * implement them: async.c, mbarrier.c, cpasync.c, bulk.c, wgmma.c. */
#ifndef CONSAN_EXEC_ASYNC_H
#define CONSAN_EXEC_ASYNC_H

#include "machine.h"

#include "libconsan/ptx/ptx.h"

/* Operations not yet performed that belong to groups of one owner, in issue order. Groups are
 * numbered by owner: an operation carries the number of commits its owner had made before it. It
 * must be complete after a wait for n if commits - group > n. */
struct group_op {
	struct async_op op;
	uint32_t group;
};
struct group_list { struct group_op **at; size_t n, cap; };

/* tcgen05.c */
struct tmem_access {
	const void *args;
	uint32_t at;               /* address in tensor memory */
	size_t value;              /* of a store: where in warp_async.stored its values begin */
};

struct warp_async {
	uint32_t cp_commits[LANES], bulk_commits[LANES];
	struct group_list cp, bulk;
	VEC(struct tmem_access) access; /* tcgen05.ld and st that have not taken effect, in order */
	VEC(uint32_t) stored;      /* of the stores among them */
	VEC(struct ev_gspan) gspans; /* of the event being built */
	VEC(struct ev_span) spans;
	struct wg_stamp *stamp;    /* by slot / 64 */
	size_t nstamp;             /* 0: no wgmma issued yet */
};

/* An mbarrier object. The 8 bytes in shared memory hold the low half of the phase and a tag with
 * the index here. Overwriting them destroys the object. */
struct mbar {
	uint32_t at;               /* offset in the CTA's shared memory; UINT32_MAX: none */
	uint32_t expected, pending;
	int64_t tx;
	uint64_t phase;            /* completed phases since init */
};

/* A mov that names a register in flight. It takes effect directly after the wgmma that it depends
 * on, as if ptxas had renamed the registers. */
struct wg_move {
	struct warp *warp;
	const struct xop *mov;
	uint32_t lanes, after;     /* number of that wgmma */
};

/* The newest wgmma that reads a register, that writes it, and after which a wg_move that names it
 * takes effect; what a wg_move reads and writes counts as its wgmma's. */
struct wg_stamp { uint32_t read, written, moved; };

struct wg_async {                  /* state of one warpgroup */
	uint32_t commits;
	struct group_list pending; /* always the newest wgmmas issued */
	uint32_t issued;           /* wgmmas so far: the number of the newest */
	uint32_t last;             /* group of the newest */
	bool unwaited;             /* no wait has covered the newest */
	VEC(struct wg_move) move;
};

/* ---- tensor memory (tmem.h) ---- */

enum { TMEM_STRIDE = TMEM_COLUMNS + 16 /* so that a column's cells are in different cache sets */ };

struct tmem {
	uint32_t (*cell)[TMEM_STRIDE]; /* TMEM_LANES of them, 64-aligned; NULL before the first alloc */
	uint16_t units;            /* bit i: columns 32 i to 32 i + 31 are allocated */
	bool relinquished;         /* no further allocation is allowed */
	l64 changes;               /* incremented when alloc or dealloc may go on: they wait on it */
	struct tmem_meeting {      /* .cta_group::2: a warp that meets one of the peer CTA */
		struct warp *by;   /* NULL: none */
		struct tmem_call call; /* column: of an alloc that is done its result */
		bool done;         /* with a warp of the peer */
	} call;
	struct group_list pending; /* cp, shift, mma and commit that this CTA's threads issued */
};

struct cta_async {
	struct tmem tmem;
	VEC(struct mbar) mbar;
	struct wg_async *wg;       /* (nwarps + 3) / 4 */
	uint32_t nwg;
};

/* async.c */
void group_add(struct group_list *l, struct group_op *op);
/* Must be called by perform(). */
void group_remove(struct group_list *l, struct group_op *op);
/* Each lane commits its group: counts it in commits, by lane. kind: of the event, without fields. */
enum step group_commit(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t *commits,
	enum ev_kind kind);
/* Performs the operations that a wait of these lanes requires. Each lane may leave `keep` of its
 * newest groups pending. commits is by lane. */
void group_wait(struct cluster *c, struct group_list *l, uint32_t lanes,
	const uint32_t *commits, const uint32_t *keep);

/* wgmma.c: performs the wgmmas of the warpgroup up to this number. */
void wgmma_force(struct cluster *c, struct wg_async *g, uint32_t number);
/* wgmma_regs.c: moves that depend on this wgmma, which has just been performed */
void wgmma_moves(struct wg_async *g, uint32_t number);

/* ---- mbarriers as used by asynchronous operations (mbarrier.c) ---- */

/* NULL: no live object there. */
struct mbar *mbar_find(struct cta *c, uint32_t at);
/* Arrives `count` times and completes `tx` bytes on behalf of op; emits MB_SIGNAL. */
void mbar_signal(struct async_op *op, struct cta *c, uint32_t at, uint32_t count, int64_t tx);
/* Adds n pending arrivals: cp.async.mbarrier.arrive without .noinc. */
void mbar_raise(struct cta *c, uint32_t at, uint32_t n);
/* Resolves lane l's address of an mbarrier object; false: return STEP_FAULT. */
bool mbar_place(struct warp *w, const struct xop *x, unsigned l, enum ptx_space space,
	uint64_t addr, bool remote, struct cta **cta, uint32_t *at);

/* ---- helpers for handlers ---- */

/* The lanes of `of` whose value equals that of lane l. */
static inline uint32_t same_lanes(const uint64_t v[LANES], uint32_t of, unsigned l)
{
	uint32_t m = 0;
	uint64_t x = v[l];

	for (unsigned i = 0; i < LANES; i++)
		m |= (uint32_t)(v[i] == x) << i;
	return m & of;
}

/* An xaddr is stored in two words of xop.o. */
static inline void put_addr(struct xop *x, unsigned at, struct xaddr a)
{
	x->o[at] = a.slot;
	x->o[at + 1] = (uint32_t)a.imm;
}
static inline struct xaddr get_addr(const struct xop *x, unsigned at)
{
	return (struct xaddr){ x->o[at], (int32_t)x->o[at + 1] };
}
static inline void lane_addrs(const struct warp *w, struct xaddr a, uint64_t out[LANES])
{
	for (unsigned l = 0; l < LANES; l++)
		out[l] = ex_addr(w, a, l);
}

#endif
