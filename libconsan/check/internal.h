/* internal: all state that the checker keeps for one cluster, and the functions shared by the files
 * of this module. Every table has the rank of the CTA that owns the memory or the barrier as its
 * key.
 *
 * Which file updates what: check.c the lifetimes, order.c and fence.c the knowledge of warps,
 * access.c the shadow, location.c, acquire.c, release.c and fence_sc.c strong locations, async.c
 * groups and slots, mbar.c, barrier.c and cluster.c the barriers, wgmma.c warpgroups and registers,
 * report.c findings. */
#ifndef CONSAN_CHECK_INTERNAL_H
#define CONSAN_CHECK_INTERNAL_H

#include "shadow/shadow.h"
#include "check.h"
#include "clock.h"
#include "repeat.h"
#include "report.h"
#include "tmem_alloc.h"
#include "warp.h"

#include <pthread.h>

#define NO_AGENT UINT32_MAX

/* ---- handlers of events: on_<member>(), one for each kind ---- */

struct cluster;
#define EV(id, member, meaning, fields) void on_##member(struct cluster *c, const struct event *e);
#define EV_LIKE(id, member, like_id, like, meaning) EV(id, member, meaning, )
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV

/* Bytes of an element: a vector access is a set of scalar accesses (PTX ISA 8.2.4) */
static inline uint32_t access_element(const struct event_access *a)
{
	return a->element_bytes && a->element_bytes < a->bytes ? a->element_bytes : a->bytes;
}

/* The access of an ACCESS or OBSERVED event */
static inline const struct event_access *access_of(const struct event *e)
{
	return e->kind == EV_OBSERVED ? &e->observed : &e->access;
}

/* ---- mbarriers ---- */

struct past_op_list {
	struct past_op *at;
	size_t n, cap;
};

struct mb_view {                 /* what one warp last observed of an mbarrier */
	int64_t passed;          /* the phase of its last successful wait, -2: none */
	uint32_t passed_lanes;   /* lanes that waited */
	bool relaxed;            /* the wait did not acquire */
	int64_t polled;          /* the phase that it polls for, or -2 */
	uint32_t site, lanes;
};

/* Bytes expected in the current phase. The phase cannot complete before a plain expect_tx if an
 * arrival is ordered after it, or if earlier operations expect more bytes than the copies that are
 * not ordered after it deliver. */
struct expectation {
	struct past_op op;
	int64_t bytes;
	bool open;               /* a plain expect_tx, and no arrival is ordered after it */
	int64_t before;          /* bytes that operations ordered before it expect */
	int64_t others;          /* bytes of copies not ordered after it */
};

struct mbar {
	uint16_t cta;
	uint32_t addr;
	bool live, reported;     /* reported: a finding exists; further ones are suppressed */
	uint32_t expected, pending;
	int64_t tx, expected_tx; /* expected_tx: bytes expected in this phase */
	uint64_t phase;
	struct past_op init;
	bool init_fenced;        /* fence.mbarrier_init followed the init */
	uint64_t init_phase;     /* barrier.cluster phases >= this release it; 0: not yet */
	struct phase_release now, before, older; /* in this phase and in the two before */
	struct past_op_list users; /* newest use by each warp and set of lanes */
	struct past_op_list waits; /* observations that the previous phase is complete */
	VEC(struct expectation) expects; /* of this phase */
	int64_t copied;          /* bytes of copies issued for this phase */
	uint32_t expect_site;    /* the newest expect_tx, plain or with an arrival; 0: none */
	struct past_op_list arrivals, arrivals_before; /* in this phase and in the one before */
	bool signalled, signalled_before; /* asynchronous operations arrived in them, or bytes */
	/* the newest arrival for the next phase before any wait for its own, and that phase + 1; a
	 * note until a thread does wait for it */
	struct past_op unwaited;
	uint64_t unwaited_phase;
	struct past_op_list copies;  /* newest cp.async.mbarrier.arrive by each warp and set of lanes;
				    epoch: of the warp's copies */
	uint32_t inflight;       /* operations that will signal this phase */
	uint32_t late;           /* those that missed their phase */
	struct mb_view *view;    /* for each warp of the owner's CTA */
};

/* ---- asynchronous operations ---- */

struct slot {                    /* one bulk load at a time */
	uint32_t epoch;
	uint16_t cta;            /* the CTA whose memory it writes */
	bool tensor;
	bool generic;            /* st.async, red.async: data of the generic proxy */
	bool peer;               /* from another CTA's shared memory */
	bool response;           /* of clusterlaunchcontrol.try_cancel */
	uint32_t site, mbar;     /* index + 1 of its mbarrier */
	uint64_t phase;          /* phase of the mbarrier at the issue */
	uint16_t warp;
	int8_t lane;             /* the first, if lanes of one st.async share the slot */
	bool several;            /* they do */
	uint32_t issued;         /* the warp's epoch at the issue */
};

/* At most this many loads without a wait are distinguished: beyond, the oldest slot is reused
 * although its last use is not known to be complete. */
#define MAX_SLOTS 8192u
/* 16 CTAs of 32 warps, each also as cp.async, as bulk stores and as the three agents of tensor
 * memory, and 8 warpgroups to a CTA; there may be one slot more, of the other kind */
_Static_assert(6 * 16 * 32 + 16 * 8 + MAX_SLOTS + 1 <= UINT16_MAX, "agents have 16 bits");

struct async_op {                /* in flight: will signal an mbarrier */
	uint32_t id;             /* 0: free slot */
	uint32_t mbar;           /* index + 1 */
	uint64_t phase;
	uint32_t slot;           /* bulk load: index + 1 */
	uint32_t epoch;          /* of the slot; or the number of the cp.async group */
	uint32_t lanes, warp, site;
	bool copies;             /* cp.async.mbarrier.arrive */
	bool tc;                 /* tcgen05.commit; epoch: of the thread's newest operation, or 0 */
	struct frontier *known;  /* tcgen05.commit: what the thread knew; else grids_handed_on(); or
				    NULL */
};

/* ---- named barriers ---- */

struct nb_gen {
	struct frontier *f;
	uint32_t refs;
	uint32_t count, arrived; /* threads */
	uint32_t warps;          /* warps of the CTA that arrived, a mask */
	uint32_t site, number;   /* of this barrier, from 1 */
	bool implicit;
	uint8_t kinds;           /* 1 << enum ev_bar */
	struct past_op_list arrivals;
};

/* ---- volatile accesses as flags ---- */

#define MAX_VOLATILE_FLAGS 256u
struct volatile_flag {
	uint64_t addr;
	uint16_t owner, bytes;   /* owner VOLATILE_GLOBAL: global memory */
};

struct remote_use {              /* a warp's newest use of another CTA's shared memory */
	struct past_op op;
	uint64_t phase;          /* the barrier.cluster phase in which it arrives next */
};

struct cta {
	struct shadow shadow;
	struct shadow tmem;      /* tensor memory, see tmem.c; open from the first allocation on */
	bool tmem_open;
	struct past_op freed[16]; /* of each 32 columns: their newest tcgen05.dealloc; site 0: none since
				    they were allocated */
	bool begun, ended;
	uint32_t threads, bytes;
	uint16_t *mbar_at;       /* for every 8 bytes: index + 1 into mbars */
	struct nb_gen *bar[16];
	struct nb_gen *bar_before[16]; /* the generation before, or NULL */
	struct frontier *exited; /* what all exited lanes knew */
	/* the first query_cancel that found a request of this CTA failed */
	struct { uint32_t site; uint16_t warp; int8_t lane; } refused;
	/* released by relaxed cluster arrivals after fences of .cta scope; NULL until the first */
	struct frontier *local_now, *local_before;
	/* sites of the newest release and acquire with too narrow a scope */
	uint32_t narrow[2];
	uint64_t exited_waited;  /* phases of barrier.cluster that an exited lane waited for */
	VEC(struct remote_use) remote_uses;
	struct tmem_allocs allocs;
};

struct stuck {
	struct event e;
	struct stuck *next;
};

struct seen;                     /* see report.c */
struct global;                   /* see global.h; one for each launch */
struct cluster_global;           /* see global.h; one for each cluster */

/* ---- a cluster, and its event sink ---- */

#define SHARED_MARKS 256u
struct location_table;           /* see location.h, like own_release, polled, sc_published */

struct cluster {
	struct event_sink sink;  /* first member */
	struct check *check;
	struct cluster *next, *prev; /* in a list of the check; prev: only if it is in use */
	struct cluster_info info;
	/* info.id plus the number of clusters of earlier grids that may overlap */
	uint32_t number;
	struct clock_space space;
	uint32_t nctas, per_cta; /* number of CTAs, warps in a CTA */
	uint32_t nwarps, nwarpgroups, wg_per_cta;
	uint32_t ntensor;        /* nwarps, or 0 in a kernel without tcgen05 instructions */
	struct cta *cta;
	struct warp *warp;
	struct warpgroup *wg;
	uint32_t *zero_epochs;       /* epochs of all agents, 0 */
	struct known_fenced { uint32_t *known; uint16_t peer; } fenced; /* access.c; 0 but for peer's */
	/* wgmma: 1 + the place of a virtual register in warp.reg and warpgroup.reg; 0: it has none */
	uint32_t *reg_index;
	size_t cap_reg_index;
	uint32_t nreg_index;
	struct frontier *common; /* wgmma: what all warps of a warpgroup know */
	const struct warp *common_of; /* the first warp of that warpgroup */
	uint64_t common_at;      /* the count of events at which it is valid */
	struct frontier *combined;  /* wgmma: what any warp of a warpgroup knows */
	uint64_t combined_at;    /* the count of events at which it is valid */
	struct frontier *together; /* tmem.c */
	struct {                 /* state of barrier.cluster */
		bool narrow;     /* some CTA has local_now or local_before */
		uint64_t phase;  /* number of completed phases */
		struct frontier *now, *before; /* released in this phase, in the previous one */
		/* what exited lanes knew that earlier phases have waited for, and those that the
		 * current phase and the next one wait for, by parity */
		struct frontier *gone, *leaving[2];
	} barrier;
	VEC(struct mbar) mbars;
	VEC(struct slot) slots;
	bool generic_slots;      /* some slot was generic */
	bool remote;             /* some warp accessed the shared memory of another CTA */
	uint32_t slot_cursor;    /* where the search for a free slot continues */
	uint32_t slot_last;      /* the slot taken last, and the event and lane that took it */
	uint64_t slot_event;
	unsigned slot_lane;
	struct async_op *op;     /* hash by id */
	uint32_t nops, cap_ops;
	struct location_table *locations; /* of both memories, with what this cluster releases */
	bool shared_locations;   /* some are in shared memory */
	bool ordered;            /* some have what fence.sc orders */
	uint64_t shared_marks[SHARED_MARKS]; /* 16 bytes a bit: which they may be in */
	struct polled *polled;   /* for each warp */
	struct sc_published *sc_published; /* SC_PUBLISHED for each warp */
	/* volatile flags that threads of the cluster have read, the first MAX_VOLATILE_FLAGS */
	VEC(struct volatile_flag) volatile_flags;
	struct stuck *stuck;     /* EV_BLOCKED so far, newest first */
	bool truncated;          /* fault or hang: incomplete operations are not reported */
	const struct event *now; /* the event being handled */
	struct cluster_global *global; /* NULL: global memory is not checked */
	struct seen *seen;       /* findings of this cluster */
	uint32_t nseen, cap_seen;
	struct check_stats stats;
	struct repeat repeat;
};

/* ---- agents ---- */

/* From AGENT_WGMMA on, no lane knows by its own progress that the operations are complete. */
enum agent_kind { AGENT_WARP, AGENT_COPIES, AGENT_STORES, AGENT_WGMMA,
	AGENT_TC,                /* tcgen05.mma, cp and shift; see tcgen05.h */
	AGENT_TMEM_LD, AGENT_TMEM_ST, /* tcgen05.ld and st */
	AGENT_SLOT };

static inline uint32_t agent_copies(const struct cluster *c, uint32_t warp)
{
	return c->nwarps + warp;
}
static inline uint32_t agent_stores(const struct cluster *c, uint32_t warp)
{
	return 2 * c->nwarps + warp;
}
static inline uint32_t agent_wgmma(const struct cluster *c, uint32_t wg)
{
	return 3 * c->nwarps + wg;
}
/* kind: AGENT_TC, AGENT_TMEM_LD or AGENT_TMEM_ST; only if c->ntensor is not 0 */
static inline uint32_t agent_tensor(const struct cluster *c, enum agent_kind kind, uint32_t warp)
{
	return 3 * c->nwarps + c->nwarpgroups + (uint32_t)(kind - AGENT_TC) * c->ntensor + warp;
}
static inline uint32_t agent_slot(const struct cluster *c, uint32_t slot)
{
	return 3 * c->nwarps + c->nwarpgroups + 3 * c->ntensor + slot;
}
/* The numbers from which those of agents follow. */
struct agents { uint32_t warps, warpgroups, tensor; };

/* index: of the warp, the warpgroup or the slot */
static inline enum agent_kind agents_kind(struct agents in, uint32_t a, uint32_t *index)
{
	if (a < 3 * in.warps) {
		*index = a % in.warps;
		return (enum agent_kind)(a / in.warps);
	}
	a -= 3 * in.warps;
	if (a < in.warpgroups) {
		*index = a;
		return AGENT_WGMMA;
	}
	a -= in.warpgroups;
	if (a < 3 * in.tensor) {
		*index = a % in.warps;
		return (enum agent_kind)(AGENT_TC + a / in.warps);
	}
	*index = a - 3 * in.tensor;
	return AGENT_SLOT;
}

static inline enum agent_kind agent_kind(const struct cluster *c, uint32_t a, uint32_t *index)
{
	return agents_kind((struct agents){ c->nwarps, c->nwarpgroups, c->ntensor }, a, index);
}

static inline struct warp *warp_of(struct cluster *c, const struct event *e)
{
	return &c->warp[e->cta * c->per_cta + e->warp];
}
static inline uint32_t wg_of(const struct cluster *c, const struct warp *w)
{
	return w->cta * c->wg_per_cta + w->id / 4;
}

/* ---- check.c ---- */
/* Handles the event, and what it requires of pending accesses to global memory before it. */
void check_event(struct cluster *c, const struct event *e);
void check_flush(struct cluster *c, const struct event *e);
void check_handle(struct cluster *c, const struct event *e);

/* ---- order.c ---- */
void per_lane_set(struct per_lane *p, uint32_t lanes, uint32_t value);
/* The epoch of the warp's current operation, by these lanes. */
uint32_t warp_stamp(struct warp *w, uint32_t lanes);
/* The same for one that is no access by threads: if the lanes executed together what was before it, they
 * still have, as warp_executed_together() is about such accesses. */
uint32_t warp_stamp_apart(struct warp *w, uint32_t lanes);
/* Closes the epoch: later operations have a later one. Returns the closed epoch. */
uint32_t warp_close_epoch(struct warp *w);
/* Splits `lanes`, some of group i, off as a group of their own. */
struct group *warp_split_group(struct cluster *c, struct warp *w, unsigned i, uint32_t lanes);
/* Adds the own operations of `lanes` up to `epoch`; g: PLANE_G or a plane of the same kind. */
void warp_add_progress(struct cluster *c, struct warp *w, uint32_t lanes, uint32_t epoch,
	const struct lane_progress *progress, struct frontier *into, enum plane g);
/* Adds all that `lanes` did and know to `into`, and closes the epoch. */
void warp_release(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into);
/* The same for all lanes, but the epoch stays open: for inspection only. */
void warp_peek(struct cluster *c, struct warp *w, struct frontier *into);
struct phase_release phase_release_new(struct cluster *c); /* empty */
void phase_release_clear(struct cluster *c, struct phase_release *h);
void phase_release_put(struct cluster *c, const struct phase_release *h);
/* Adds all that `from` knows to the knowledge of `lanes`. */
void warp_acquire(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from);
/* Joins the knowledge of `lanes`: all of them know what any of them did or knew. */
void warp_converge(struct cluster *c, struct warp *w, uint32_t lanes);
/* Those lanes execute an instruction together that orders no memory (A12). */
void warp_executed_together(struct cluster *c, struct warp *w, uint32_t lanes);
/* Lanes know more of their own operations, by a wait or a proxy fence: the next collective counts. */
static inline void warp_learned(struct warp *w)
{
	w->converged = 0;
	w->matrix_reads = false;
}
/* For the warp alone: raises what all its lanes know of one agent. */
void warp_learn(struct cluster *c, struct warp *w, uint32_t agent, uint32_t epoch);
void order_drop_released(struct cluster *c, struct released *r);
void order_exit(struct cluster *c, struct warp *w, uint32_t lanes);
struct frontier *warp_frontier(struct warp *w, unsigned lane); /* NULL: exited */
/* The lanes whose copies f must know, beside those of `lanes`, to know all of the warp's. */
uint32_t warp_copies_required(const struct cluster *c, const struct warp *w, uint32_t lanes,
	const struct frontier *f);
/* Does some lane of the warp know the operation, or was it its own? */
bool warp_any_knows(struct cluster *c, const struct warp *w, const struct past_op *x);
/* Does each of `lanes` know some lane's part of the past operation? */
bool warp_all_know(struct cluster *c, struct warp *w, uint32_t lanes, const struct past_op *x);
struct past_op warp_past_op(struct warp *w, uint32_t lanes, uint32_t site);
/* Up to which epoch a lane knows its own operations as that agent, by program order and its own
 * waits and fences. */
uint32_t warp_progress(const struct warp *w, enum agent_kind k, enum plane plane, unsigned lane);

/* ---- fence.c ---- */
/* Relaxed reads and writes around fences. min_scope: the minimum scope of a fence that turns the
 * observation into knowledge, 0 if it comes from threads of the same CTA. */
void warp_observe(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned min_scope);
/* The same for a read of a location, so that warp_acquire_observed() finds it. */
void warp_observe_at(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned min_scope, uint64_t at, unsigned size, bool ticket);
/* The same with the lanes, location and kind of `like`. */
void warp_observe_like(struct cluster *c, struct warp *w, const struct observed *like,
	const struct frontier *f);
/* An acquire at the location (acquire pattern 2). */
void warp_acquire_observed(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at,
	unsigned size, unsigned scope);
/* Adds to `into` what fences of those lanes released; narrow: receives what fences of .cta scope
 * released. False: there was none. */
bool warp_published(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into,
	struct frontier *narrow);
/* After the writes of one read-modify-write by several lanes: orders its last lane after the
 * others. */
void warp_order_rmw(struct cluster *c, struct warp *w, const struct event *e); /* ACCESS */
/* Adds what the released entry i, one of the lane's, holds. */
void warp_fenced(struct cluster *c, struct warp *w, unsigned lane, size_t i,
	struct frontier *into);
/* Did one of those lanes execute a release fence of .cta scope? */
bool warp_has_narrow(const struct warp *w, uint32_t lanes);
/* Records that `lanes` would know `from` if the scopes of this synchronization were wide enough. */
void warp_note_narrow(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *from, uint32_t by_site, uint32_t site);
/* Does the scope include the cluster? */
static inline bool includes_cluster(enum ev_sem sem, enum ev_scope scope)
{
	return scope >= SCOPE_CLUSTER || sem == SEM_VOLATILE || sem == SEM_MMIO;
}

/* ---- volatile.c ---- */
/* Does a release fence of each of these lanes precede its next write? */
bool warp_publishes(const struct warp *w, uint32_t lanes);
/* Has one of these lanes read, without an acquire so far, what releases the agent's epoch? By a
 * ticket: by nothing else. */
enum observed_by { OBSERVED_NOT, OBSERVED_BY_TICKET, OBSERVED_BY_FLAG };
enum observed_by warp_observed(const struct cluster *c, const struct warp *w, uint32_t lanes,
	uint32_t agent, uint32_t epoch);
/* Does the access take a ticket: a read-modify-write that no loop repeats until it succeeds? In last
 * blocks, as the programming guide's, no acquire follows it; after the read of a flag, or taking a
 * lock, all agree that one must. */
bool reads_ticket(const struct event *e);

/* Notes that the lanes of an access with ACCESS_FLAG read flags. */
#define VOLATILE_GLOBAL UINT16_MAX /* in place of the CTA that owns the memory */
void volatile_read_flag(struct cluster *c, const struct event_access *a, uint32_t lanes);
/* Has a thread of this cluster read the byte as part of a flag? */
bool volatile_is_flag(const struct cluster *c, uint16_t owner, uint64_t addr);

/* ---- access.c ---- */
enum async_role { ROLE_GENERIC, ROLE_COPY, ROLE_BULK_LOAD, ROLE_BULK_STORE, ROLE_WGMMA, ROLE_TC };
struct view {                    /* an access, as the shadow module classifies it */
	struct shadow_view s;    /* first member */
	struct cluster *c;
	struct warp *w;
	const struct frontier *f;
	enum async_role role;
	enum plane plane;        /* plane in which generic accesses must be known */
	uint16_t peer;           /* the CTA that owns the memory */
	uint32_t lanes;          /* lanes of the warp that take part */
	bool equal;              /* the last conflict is one of equal values */
	bool ticket;             /* its CS117 follows a ticket */
	unsigned wgmma_warp;     /* ROLE_WGMMA: 0..3, or 4: all of them */
	/* the last classified entry and its verdict */
	struct cell_entry last_entry;
	uint32_t last_lanes;
	enum shadow_verdict last_verdict;
	enum shadow_observed last_seen; /* not NOT_OBSERVED: other entries decided */
};
void view_open(struct view *v, struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f, enum async_role role, uint16_t peer);
/* mbarrier.init and inval write the object: a generic write of 8 bytes by the first lane. */
void access_object(struct cluster *c, struct warp *w, const struct event *e, const struct mbar *m);
/* The shared-memory accesses of the lanes of an ACCESS or CP_ASYNC. */
struct lanes_access {
	const struct event *e;
	const struct ev_lanes *at;
	const struct ev_spans *spans; /* if not empty: used in place of `at` */
	uint32_t bytes, overwritten; /* as in EV_ACCESS */
	uint16_t owner;
};

/* ---- race.c ---- */
enum shadow_verdict race_classify(struct shadow_view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes);
uint32_t race_observed(struct shadow_view *v, const struct cell_entry *x, const struct cell_entry *z,
	const struct cell_entry *now, uint32_t granule, unsigned byte, uint32_t missing, bool *unfenced);

/* ---- invalid.c ---- */
void race_invalid(struct shadow_view *v, const struct cell_entry *now,
	uint32_t granule, uint32_t bytes, unsigned why);
/* Reports that several lanes of one store write the same bytes at addr. */
/* ---- stored.c ---- */
void stored_note(struct warp *w, const struct event *e, uint32_t epoch);
/* Did the warp's store of this site and epoch write the byte as the store at hand does? */
bool stored_same(const struct warp *w, uint32_t epoch, uint32_t site, uint64_t addr,
	const struct event *e);
void race_one_instruction(struct cluster *c, const struct lanes_access *a, uint32_t lanes,
	uint64_t addr);

/* ---- async.c ---- */
void groups_reset(struct lane_groups *g);
void groups_issue(struct lane_groups *g, uint32_t lanes, uint32_t site);
void async_exit(struct cluster *c, struct warp *w, const struct event *e);
void async_cta_end(struct cluster *c, unsigned cta, const struct event *e);
void async_op_add(struct cluster *c, struct async_op op);
void async_ops_reset(struct cluster *c);
bool async_op_take(struct cluster *c, uint32_t id, struct async_op *out);
/* A multicast signals one object in each destination CTA: the key of each signal. */
static inline uint32_t async_op_key(uint32_t op, unsigned mbar_cta)
{
	return op << 4 | (mbar_cta & 15);
}
/* Some operation in flight that will signal this mbarrier; NULL: none. */
const struct async_op *async_op_on(const struct cluster *c, uint32_t mbar);

/* ---- mbar.c ---- */
struct mbar *mbar_of(struct cluster *c, unsigned cta, uint32_t addr); /* or NULL */
struct mbar *mbar_use(struct cluster *c, const struct event *e, unsigned cta, uint32_t addr);
/* A copy of these bytes, which it will signal to the current phase, is issued. */
void mbar_copy(struct cluster *c, struct mbar *m, struct warp *w, uint32_t lanes, int64_t bytes);
/* Records that the completion of copies up to x.epoch will arrive on it. */
void mbar_copies(struct mbar *m, struct past_op x);
void mbar_cluster_end(struct cluster *c);

/* ---- wgmma.c ---- */
void wgmma_reset(struct warpgroup *g); /* memory is kept */
void wgmma_cta_end(struct cluster *c, const struct event *e);
void wgmma_exit(struct cluster *c, struct warp *w, const struct event *e);

/* ---- barrier.c ---- */
void barrier_reset(struct cluster *c);
/* A warp arrives at an .aligned barrier: reports lanes of it that have exited. */
void barrier_check_exited(struct cluster *c, const struct event *e, const char *what);
/* The warp arrived at an .aligned barrier at `site`, and these lanes of it exit and take no part. */
void barrier_report_exited(struct cluster *c, const struct warp *w, uint32_t site, uint32_t exited,
	uint32_t exit_site, const char *what);

/* ---- cluster.c ---- */
/* Has a cluster barrier ordered the object's initialisation before the warp? */
bool cluster_knows_init(const struct warp *w, const struct mbar *m);
/* The event's lanes access shared memory of CTA `peer`, or a copy will on their behalf: reports it
 * if that CTA is not known to run. cluster_use_peer() also records the use. */
void cluster_check_peer(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what);
void cluster_use_peer(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what);
void cluster_cta_end(struct cluster *c, const struct event *e);
/* Lanes exit: barrier.cluster waits for non-exited threads only, so that a phase at which they have
 * not arrived completes after their exit. That orders no memory, but what they knew to be complete
 * is. Kept for tensor memory alone. Reports lanes for which an .aligned arrival of their warp did not wait. */
void cluster_leave(struct cluster *c, struct warp *w, uint32_t lanes);
/* What lanes knew that exited before the cluster barrier completed for which the warp has waited;
 * NULL: it has waited for none, or not for the newest. */
const struct frontier *cluster_gone(const struct cluster *c, const struct warp *w);
void cluster_reset(struct cluster *c);

/* ---- tensormap.c ---- */
void on_map_fence(struct cluster *c, const struct event *e);
/* Records that the warp's operation reads the map of the last TENSOR_MAP event as this agent. */
void map_read_by(struct cluster *c, struct warp *w, unsigned lane, uint32_t agent, uint32_t epoch);
struct map_table *map_table_open(void);
void map_table_close(struct map_table *t);

/* ---- hang.c ---- */
void hang_reset(struct cluster *c);

struct check {
	struct check_config config;
	pthread_mutex_t lock;
	struct cluster *idle, *used;
	struct finding **finding; /* in order of first sight */
	struct finding_rank *first; /* finding[i]: rank of the example that is reported */
	size_t nfindings, cap_findings;
	uint32_t last;           /* findings of higher clusters are dropped */
	bool with_others;        /* check_with_others(): so are races on global memory */
	uint32_t *index;         /* hash of findings: index + 1 */
	uint32_t cap_index;
	struct global *global;   /* NULL: not checked */
	bool idle_waits;         /* see check_idle_waits(); atomic */
	bool hung;               /* a hang of a cluster was reported; atomic */
	bool launches;           /* some thread launched a grid */
	bool triggered, waited;  /* some thread executed griddepcontrol.launch_dependents, .wait */
	struct check_stats stats;
	struct map_table *maps;
	struct repeats *repeats;
	struct finding **ordered; /* result of check_findings() */
};

#endif
