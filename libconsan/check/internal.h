/* state: all that the checker remembers of one cluster, shared by the files of
 * this room and by nobody else. Every table stands under the rank of the CTA
 * that owns the memory or the barrier.
 *
 * Who fills what: check.c the skeleton, order.c warps' knowledge, access.c the
 * shadow, async.c groups and slots, mbar.c, barrier.c and cluster.c the barriers, wgmma.c
 * warpgroups and registers, report.c findings. */
#ifndef CONSAN_CHECK_STATE_H
#define CONSAN_CHECK_STATE_H

#include "shadow/shadow.h"
#include "check.h"
#include "clock.h"

#include <pthread.h>

#define NO_AGENT UINT32_MAX

/* ---- handlers of events: on_<member>(), one for each kind ---- */

struct cluster;
#define EV(id, member, meaning, fields) void on_##member(struct cluster *c, const struct event *e);
#define EV_LIKE(id, member, like_id, like, meaning) EV(id, member, meaning, )
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV

/* The access of an ACCESS or OBSERVED */
static inline const struct event_access *access_of(const struct event *e)
{
	return e->kind == EV_OBSERVED ? &e->observed : &e->access;
}

/* ---- knowledge of a warp about its own lanes ---- */

/* A value per lane, cheap while uniform. */
struct per_lane {
	uint32_t low, high;      /* least and greatest */
	uint32_t at[32];
};

/* Groups of asynchronous copies, a FIFO per lane. An operation carries the
 * number that was open when it was issued; a commit closes it. */
struct lane_groups {
	uint32_t open;           /* number of the open group */
	uint32_t holds;          /* lanes that issued since their last commit */
	uint32_t issued;         /* lanes that ever did: who knows theirs knows all there is, as
				    whatever others issue later has a higher number */
	struct commit { uint32_t number, lanes, site; } *at; /* oldest first */
	size_t n, cap;
	uint32_t last[32];       /* number of the lane's newest operation */
	uint32_t site[32];       /* ... and its place */
	uint32_t wait_site[32];  /* the lane's last wait and what it left out */
	uint32_t wait_count[32];
};

/* What lanes know of their own doings, apart from program order: up to which
 * epoch a proxy fence covers their accesses and copies, and up to which group
 * they have waited for their copies and bulk stores. */
struct own {
	struct per_lane fenced, fenced_copies, copies, stores;
	struct per_lane stored;  /* bulk stores whose writes are complete, too */
	struct per_lane fenced_global; /* accesses covered by a proxy fence over global memory */
	struct per_lane half, half_copies; /* the release half of a proxy fence (A21) */
};

struct group {               /* lanes that know the same */
	uint32_t lanes;
	struct frontier *f;
};

struct observed {            /* by relaxed reads: knowledge once a fence follows */
	uint32_t lanes;
	uint8_t far;             /* the least scope of a fence that takes it; 0: any */
	struct frontier *f;
};

struct released {            /* by a fence: what relaxed writes will publish */
	uint32_t lanes, epoch;
	bool wide;               /* the fence's scope holds the cluster */
	uint8_t scope;           /* enum ev_scope */
	bool restricted;         /* .sync_restrict::shared::cta: only that memory (A11) */
	struct frontier *f;      /* without the lanes' own doings: those are here */
	struct foreign *ready;   /* at gpu scope: both together, for whoever comes after; or NULL */
	struct own own;
};

/* What is handed over from one CTA's threads to another's, apart from what stays
 * within a CTA: that needs scopes which hold both (A03, A07, B24). */
struct far {
	struct frontier *wide;   /* at cluster scope */
	struct frontier *held;   /* at .cta scope: hands nothing over, but explains */
	uint32_t site;           /* of the newest in held */
};

/* What is released in one phase, by threads of the CTA that owns the memory and by others'. */
struct handed {
	struct frontier *near;
	struct far far;          /* in clusters of several CTAs */
};

/* Registers that wgmma uses, by register id: what wgmma did with them (one
 * for the warpgroup, as its warps act as one) ... */
struct wg_reg {
	uint32_t tile;           /* the newest it was in: place in warpgroup.tile, 0 none */
	uint32_t a, a_site;      /* newest wgmma group with it in A; 0 none */
};

/* An accumulator: the registers of a D operand, which wgmma after wgmma names. */
struct wg_tile {
	uint32_t first, n;       /* in warpgroup.list */
	uint32_t whole;          /* registers that no other tile has taken since */
	uint32_t d, d_site;      /* newest wgmma group with it as D */
	uint64_t shape;          /* of that wgmma */
	uint32_t fence;          /* count of wgmma.fence when it was issued */
};

/* ... and what plain instructions of one warp did. */
struct plain_reg {
	uint32_t site;           /* newest access, preferring what is no move */
	uint32_t fence;          /* count of wgmma.fence then */
	bool touched, moved;     /* ever; by a plain mov */
};

struct who {                 /* one past event of some lanes of a warp */
	uint16_t warp;           /* index in the cluster */
	uint32_t lanes, epoch, site;
};

struct warp {
	uint16_t cta, id;        /* id in the CTA */
	uint32_t index;          /* in the cluster = its generic agent */
	uint32_t all, live;      /* lanes that exist, that have not exited */
	uint32_t kept;           /* lanes that exited with something unreleased ... */
	uint32_t kept_epoch;     /* ... up to this epoch */
	uint32_t kept_copies;    /* ... with cp.async that they had not waited for */
	uint32_t epoch;
	bool dirty;              /* something carries this epoch already */
	uint32_t met;            /* epoch at the last collective of all its lanes */
	unsigned ngroups;
	struct group group[32];
	struct own own;
	struct lane_groups copies; /* cp.async */
	struct lane_groups stores; /* bulk stores */
	VEC(struct released) released;
	VEC(struct observed) observed;
	uint32_t global_fence;   /* site of a proxy fence that left shared memory out */
	uint32_t fence_site;     /* newest proxy fence over shared memory */
	uint32_t half_site;      /* ... and release half of one */
	struct plain_reg *reg;
	size_t nreg;
	uint32_t wg_fences;      /* wgmma.fence so far */
	bool reg_touched;        /* any register since the last one */
	uint32_t nregs;          /* by setmaxnreg; 0 until the first */
	uint32_t reg_ops;        /* setmaxnreg so far ... */
	struct who reg_op;       /* ... and the newest */
	struct nb_gen *in;       /* barrier generation it waits in, or NULL */
	uint32_t left[16];       /* by barrier id: the generation it left last */
	uint32_t cluster_arrived[2]; /* lanes, by parity of the barrier.cluster phase */
	uint64_t cluster_waited; /* phases of barrier.cluster that it waited for */
	struct stuck *stuck;     /* EV_BLOCKED */
	uint64_t map;            /* that its next bulk operation reads; 0: none */
};

struct warpgroup {
	uint32_t open;           /* number of the open wgmma group */
	uint32_t inside;         /* wgmmas in it */
	uint32_t last;           /* the newest group that holds a wgmma */
	uint32_t done;           /* groups up to here are complete */
	struct wg_reg *reg;
	size_t nreg;
	VEC(struct wg_tile) tile; /* the first is nobody's */
	VEC(uint32_t) list;
	uint32_t wait_site, wait_count, site;
	uint32_t flush_site, idle; /* the last wait that left none in flight; idle waits since */
	bool judged;             /* exit with pending wgmma was reported */
	VEC(uint32_t) reg_site;  /* the setmaxnreg that its first warp there executed */
};

/* ---- mbarriers ---- */

struct who_list {
	struct who *at;
	size_t n, cap;
};

struct mb_view {             /* what one warp last saw of an mbarrier */
	int64_t passed;          /* the phase it last passed, -2: none */
	uint32_t passed_lanes;   /* ... and which lanes did */
	bool relaxed;            /* ... without acquiring */
	int64_t polled;          /* the phase it is polling for, or -2 */
	uint32_t site, lanes;
};

struct mbar {
	uint16_t cta;
	uint32_t addr;
	bool live, upset;        /* upset: reported; follow-ups are silent */
	uint32_t expected, pending;
	int64_t tx, promised;    /* promised: bytes expected in this phase */
	uint64_t phase;
	struct who init;
	bool init_fenced;        /* fence.mbarrier_init came after the init ... */
	uint64_t init_phase;     /* ... and is published by barrier.cluster phases >= this; 0 not */
	struct handed now, before, older; /* in this phase, in the two before */
	struct who_list users;   /* newest use by each warp and set of lanes */
	struct who_list waits;   /* who saw the previous phase complete */
	struct who_list expects; /* plain expect_tx not yet followed by an arrival */
	struct who_list arrivals; /* in this phase, for explanations */
	struct who_list copies;  /* newest cp.async.mbarrier.arrive by each warp and set of lanes;
				    epoch: of the warp's copies */
	uint32_t inflight;       /* operations that will signal this phase */
	uint32_t late;           /* ... and those that missed theirs */
	struct mb_view *view;    /* per warp of the owner's CTA */
};

/* ---- asynchronous operations ---- */

struct slot {                /* one bulk load at a time */
	uint32_t epoch;
	uint16_t cta;            /* whose memory it writes */
	bool tensor;
	bool generic;            /* st.async, red.async: data of the generic proxy */
	bool peer;               /* out of its own CTA's shared memory */
	uint32_t site, mbar;     /* index + 1 of its mbarrier */
	uint64_t phase;          /* of that, when it was issued */
	uint16_t warp;
	int8_t lane;
	uint32_t issued;         /* the warp's epoch then */
};

/* More loads than these that nobody waited for are not told apart: the
 * oldest slot is taken although its last use is not known to be over. */
#define MAX_SLOTS 8192u

struct async_op {            /* in flight: will signal an mbarrier */
	uint32_t id;             /* 0: free place */
	uint32_t mbar;           /* index + 1 */
	uint64_t phase;
	uint32_t slot;           /* bulk load: index + 1 */
	uint32_t epoch;          /* of the slot; or cp.async group number */
	uint32_t lanes, warp, site;
	bool copies;             /* cp.async.mbarrier.arrive */
};

/* ---- named barriers ---- */

struct nb_gen {
	struct frontier *f;
	uint32_t refs;
	uint32_t count, arrived; /* threads */
	uint32_t warps;          /* in the CTA, those that arrived */
	uint32_t site, number;   /* number: from 1, of this barrier */
	bool implicit;
	uint8_t kinds;           /* 1 << enum ev_bar */
	struct who_list arrivals;
};

/* ---- strong locations in shared memory: flags and locks ---- */

struct head {                /* released by the threads of one CTA */
	uint16_t cta;
	bool wide;               /* at cluster scope or wider */
	struct frontier *f;
};

struct flag {
	uint16_t cta;
	uint32_t addr;
	bool used;
	VEC(struct head) heads;  /* of the write chain */
};

struct visit {               /* a warp's newest use of another CTA's shared memory */
	struct who who;
	uint64_t phase;          /* of barrier.cluster, in which it arrives next */
};

struct cta {
	struct shadow shadow;
	bool begun, ended;
	uint32_t threads, bytes;
	uint16_t *mbar_at;       /* per 8 bytes: index + 1 into mbars */
	struct nb_gen *bar[16];
	struct nb_gen *bar_before[16]; /* the generation before, or NULL */
	struct frontier *exited; /* what all exited lanes knew */
	struct frontier *near_now, *near_before; /* published by relaxed cluster arrivals after
	                            fences of .cta scope; NULL until the first */
	uint32_t narrow[2];      /* sites of the newest hand-over with too narrow a scope */
	uint64_t exited_waited;  /* phases of barrier.cluster that any of them waited for */
	VEC(struct visit) visits;
};

struct stuck {
	struct event e;
	struct stuck *next;
};

struct seen;                 /* report.c */
struct global;               /* global.h: of the launch ... */
struct cluster_global;       /* ... and of one cluster */

/* ---- a cluster: the sink ---- */

struct cluster {
	struct event_sink sink;  /* first member */
	struct check *check;
	struct cluster *next;    /* in the check's list of idle ones */
	struct cluster_info info;
	uint32_t number;         /* info.id, after the clusters of grids before that may overlap */
	struct clock_space space;
	uint32_t nctas, per_cta; /* CTAs, warps per CTA */
	uint32_t nwarps, nwarpgroups, wg_per_cta;
	struct cta *cta;
	struct warp *warp;
	struct warpgroup *wg;
	uint32_t *nothing;       /* epochs of all agents, 0 */
	struct frontier *least;  /* wgmma: what all its warps know, */
	const struct warp *least_of; /* of the warpgroup that begins with this one, */
	uint64_t least_at;       /* as of this event */
	struct frontier *joint;  /* ... and what they know together, */
	uint64_t joint_at;       /* at this count of events */
	struct {                 /* barrier.cluster */
		bool narrow;     /* some CTA has near_now or near_before */
		uint64_t phase;  /* completed */
		struct frontier *now, *before; /* published in this phase, in the previous */
	} meet;
	VEC(struct mbar) mbars;
	VEC(struct slot) slots;
	bool generic_slots;      /* some slot was one */
	uint32_t slot_cursor;    /* where to look for one that can be used again */
	uint32_t slot_last;      /* the last one taken, and by which event and lane */
	uint64_t slot_event;
	unsigned slot_lane;
	struct async_op *op;     /* hash by id */
	uint32_t nops, cap_ops;
	struct flag *flag;       /* hash by place */
	uint32_t nflags, cap_flags;
	struct stuck *stuck;     /* EV_BLOCKED so far, newest first */
	bool cut;                /* fault or hang: leftovers are not judged */
	const struct event *now; /* the event being handled */
	struct cluster_global *global; /* NULL: global memory is not looked at */
	struct seen *seen;       /* findings of this cluster */
	uint32_t nseen, cap_seen;
	struct check_stats stats;
};

/* ---- agents ---- */

enum agent_kind { AGENT_WARP, AGENT_COPIES, AGENT_STORES, AGENT_WGMMA, AGENT_SLOT };

static inline uint32_t agent_copies(const struct cluster *c, uint32_t warp) { return c->nwarps + warp; }
static inline uint32_t agent_stores(const struct cluster *c, uint32_t warp) { return 2 * c->nwarps + warp; }
static inline uint32_t agent_wgmma(const struct cluster *c, uint32_t wg) { return 3 * c->nwarps + wg; }
static inline uint32_t agent_slot(const struct cluster *c, uint32_t slot)
{
	return 3 * c->nwarps + c->nwarpgroups + slot;
}
static inline enum agent_kind agent_kind(const struct cluster *c, uint32_t a, uint32_t *index)
{
	uint32_t n = c->nwarps;

	if (a < 3 * n) {
		*index = a % n;
		return (enum agent_kind)(a / n);
	}
	a -= 3 * n;
	if (a < c->nwarpgroups) {
		*index = a;
		return AGENT_WGMMA;
	}
	*index = a - c->nwarpgroups;
	return AGENT_SLOT;
}

static inline struct warp *warp_of(struct cluster *c, const struct event *e)
{
	return &c->warp[e->cta * c->per_cta + e->warp];
}
static inline uint32_t wg_of(const struct cluster *c, const struct warp *w)
{
	return w->cta * c->wg_per_cta + w->id / 4;
}

/* ---- order.c ---- */
void per_lane_set(struct per_lane *p, uint32_t lanes, uint32_t value);
/* The epoch to stamp on what the warp does now. */
uint32_t warp_stamp(struct warp *w);
/* Publishes all that `lanes` did and know. */
void warp_release(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into);
/* The same for all lanes, but the epoch stays open: only to look at. */
void warp_look(struct cluster *c, struct warp *w, struct frontier *into);
struct handed handed_new(struct cluster *c); /* empty */
void handed_clear(struct cluster *c, struct handed *h);
void handed_put(struct cluster *c, const struct handed *h);
/* `lanes` learn all that `from` knows. */
void warp_acquire(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from);
/* `lanes` know what any of them did or knew. */
void warp_converge(struct cluster *c, struct warp *w, uint32_t lanes);
/* The warp alone: raises what all its lanes know of one agent. */
void warp_learn(struct cluster *c, struct warp *w, uint32_t agent, uint32_t epoch);
void order_drop_released(struct cluster *c, struct released *r);
void order_exit(struct cluster *c, struct warp *w, uint32_t lanes);
struct frontier *warp_frontier(struct warp *w, unsigned lane); /* NULL: exited */
/* The lanes that make the warp whole to f: those that live, and those that left
 * something behind which f does not know. */
uint32_t warp_whole(const struct cluster *c, const struct warp *w, const struct frontier *f);
/* The lanes whose copies are all of the warp's. */
uint32_t warp_copiers(const struct warp *w);
/* Some lane of the warp knows it, or did it. */
bool warp_heard(struct cluster *c, const struct warp *w, const struct who *x);
/* All of `lanes` know some lane's part in the past event. */
bool warp_knows(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x);
struct who warp_who(struct warp *w, uint32_t lanes, uint32_t site);
/* Up to which epoch a lane knows its own doings as that agent, by program order
 * and its own waits and fences. */
uint32_t warp_own(const struct warp *w, enum agent_kind k, enum plane plane, unsigned lane);
/* relaxed reads and writes around fences; far: the least scope of a fence that
 * makes it knowledge, 0 if it comes from the same CTA's threads */
void warp_observe(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned far);
/* What fences of those lanes released; held: takes what fences of .cta scope did */
bool warp_published(struct cluster *c, struct warp *w, uint32_t lanes, struct frontier *into,
	struct frontier *held);
/* After its writes: what the last of the lanes of one read-modify-write has read. */
void warp_inherit(struct cluster *c, struct warp *w, const struct event *e); /* ACCESS */
/* Adds what the lane's released entry i says of all memory, if it is the lane's. */
bool warp_fenced(struct cluster *c, struct warp *w, unsigned lane, size_t i,
	struct frontier *into, unsigned *scope);
/* A release fence of .cta scope by one of those lanes stands. */
bool warp_narrow(const struct warp *w, uint32_t lanes);
/* `lanes` would learn it, were the scopes of this hand-over wide enough. */
void warp_miss(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *from,
	uint32_t by_site, uint32_t site);
/* The scope contains the cluster. */
static inline bool is_wide(enum ev_sem sem, enum ev_scope scope)
{
	return scope >= SCOPE_CLUSTER || sem == SEM_VOLATILE || sem == SEM_MMIO;
}

/* ---- access.c ---- */
enum async_role { ROLE_GENERIC, ROLE_COPY, ROLE_BULK_LOAD, ROLE_BULK_STORE, ROLE_WGMMA };
struct view {                /* an access as the shadow asks about it */
	struct shadow_view s;    /* first member */
	struct cluster *c;
	struct warp *w;
	const struct frontier *f;
	enum async_role role;
	enum plane plane;        /* generic accesses must be known in this one */
	uint16_t peer;           /* owner of the memory */
	uint32_t lanes;          /* of the warp, in this access */
	uint32_t last_guard;     /* mbarrier address last reported */
	unsigned wgmma_warp;     /* ROLE_WGMMA: 0..3, or 4: all of them */
	/* the judge's last answer */
	struct cell_entry asked;
	uint32_t asked_lanes;
	enum shadow_verdict answer;
};
void view_open(struct view *v, struct cluster *c, struct warp *w, uint32_t lanes,
	const struct frontier *f, enum async_role role, uint16_t peer);
/* mbarrier.init and inval write the object: a generic write of 8 bytes by the first lane. */
void access_object(struct cluster *c, struct warp *w, const struct event *e, const struct mbar *m);
/* What the lanes of an ACCESS or CP_ASYNC do in shared memory. */
struct lanes_access {
	const struct event *e;
	const struct ev_lanes *at;
	const struct ev_spans *spans; /* if not empty: in place of `at` */
	uint32_t bytes, overwritten; /* as in EV_ACCESS */
	uint16_t owner;
};

void flags_reset(struct cluster *c);
void flags_free(struct cluster *c);

/* ---- race.c ---- */
enum shadow_verdict race_judge(struct shadow_view *v, const struct cell_entry *old,
	const struct cell_entry *now, uint32_t granule, uint32_t bytes);
void race_stray(struct shadow_view *v, const struct cell_entry *now,
	uint32_t granule, uint32_t bytes, unsigned why);
/* Several lanes of one store write the same bytes at addr. */
void race_one_instruction(struct cluster *c, const struct lanes_access *a, uint32_t lanes,
	uint64_t addr);

/* ---- async.c ---- */
void groups_reset(struct lane_groups *g);
void groups_issue(struct lane_groups *g, uint32_t lanes, uint32_t site);
void async_exit(struct cluster *c, struct warp *w, const struct event *e);
void async_cta_end(struct cluster *c, unsigned cta, const struct event *e);
void async_op_add(struct cluster *c, struct async_op op);
bool async_op_take(struct cluster *c, uint32_t id, struct async_op *out);
/* A multicast signals one object in each destination CTA: an id for each. */
static inline uint32_t async_op_key(uint32_t op, unsigned mbar_cta)
{
	return op << 4 | (mbar_cta & 15);
}
/* any operation in flight that will signal this mbarrier; NULL if none */
const struct async_op *async_op_on(const struct cluster *c, uint32_t mbar);

/* ---- mbar.c ---- */
struct mbar *mbar_of(struct cluster *c, unsigned cta, uint32_t addr); /* or NULL */
struct mbar *mbar_use(struct cluster *c, const struct event *e, unsigned cta, uint32_t addr);
/* The completion of copies up to x.epoch will arrive on it. */
void mbar_copies(struct mbar *m, struct who x);
void mbar_cluster_end(struct cluster *c);

/* ---- wgmma.c ---- */
void wgmma_reset(struct warpgroup *g); /* memory is kept */
void wgmma_cta_end(struct cluster *c, const struct event *e);
void wgmma_exit(struct cluster *c, struct warp *w, const struct event *e);

/* ---- barrier.c ---- */
void barrier_reset(struct cluster *c);

/* ---- cluster.c ---- */
/* A cluster barrier has told the warp of the object's initialisation. */
bool cluster_knows_init(const struct warp *w, const struct mbar *m);
/* The event's lanes touch shared memory of CTA `peer`, or will by a copy. */
void cluster_touch(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what);
void cluster_visit(struct cluster *c, struct warp *w, const struct event *e, unsigned peer,
	const char *what);
void cluster_cta_end(struct cluster *c, const struct event *e);
void cluster_reset(struct cluster *c);

/* ---- tensormap.c ---- */
void on_map_fence(struct cluster *c, const struct event *e);
/* The warp's operation reads the map of the last TENSOR_MAP as this agent. */
void map_read_by(struct cluster *c, struct warp *w, unsigned lane, uint32_t agent, uint32_t epoch);
struct map_table *map_table_open(void);
void map_table_close(struct map_table *t);

/* ---- hang.c ---- */
void hang_reset(struct cluster *c);

/* ---- report.c ---- */
/* A new finding to fill, or NULL if (rule, sites) is known: then it is counted.
 * Ends with report_send(). */
struct finding *report_new(struct cluster *c, unsigned rule, enum severity sev,
	uint32_t site0, uint32_t site1);
void report_send(struct cluster *c, struct finding *f);
enum severity rule_severity(unsigned r);
void report_side(struct cluster *c, struct finding *f, unsigned warp, int lane,
	uint32_t site, const char *what);
void report_memory(struct cluster *c, struct finding *f, unsigned side, unsigned peer,
	uint64_t addr, uint32_t bytes);
void report_mbar(struct cluster *c, struct finding *f, const struct mbar *m);
void report_variable(const struct cluster *c, uint64_t addr, char *out, size_t n);
void report_edge(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
void report_hint(struct finding *f, const char *fmt, ...) PRINTF_LIKE(2, 3);
int only_lane(uint32_t lanes); /* its number if there is just one, else -1 */
void report_cluster_end(struct cluster *c);
/* Of several examples of a finding the least is told. */
struct finding_rank {
	uint32_t high, low;      /* clusters; the same if only one is involved */
	uint64_t addr;
	uint32_t by[2];
};
int finding_rank_compare(const struct finding_rank *a, const struct finding_rank *b);
/* The index of the launch's finding, or nfindings; under the lock. */
size_t report_find(struct check *k, unsigned rule, uint32_t site0, uint32_t site1);
/* Gives f to the launch, where it takes the place of an example of higher rank. */
void report_ranked(struct check *k, struct finding *f, struct finding_rank rank);

struct check {
	struct check_config config;
	pthread_mutex_t lock;
	struct cluster *idle;
	struct finding **finding; /* in order of first sight */
	struct finding_rank *first; /* finding[i]: of the example that is told */
	size_t nfindings, cap_findings;
	uint32_t last;            /* findings of higher clusters do not count */
	uint32_t *index;          /* hash of findings: index + 1 */
	uint32_t cap_index;
	struct global *global;    /* NULL: not looked at */
	bool triggered, waited;   /* some thread executed griddepcontrol.launch_dependents, .wait */
	struct check_stats stats;
	struct map_table *maps;
	struct finding **ordered; /* for check_findings() */
};

#endif
