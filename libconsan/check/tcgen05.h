/* tcgen05: what the checker keeps of the tensor memory of CTAs and of the tcgen05 operations of
 * warps, for the files that deal with them.
 *
 * Agents (clock.h): of each warp its mma, cp and shift, its tcgen05.ld, and its tcgen05.st. The
 * operations of one thread are numbered, as tcgen05.commit covers all before it; a thread that
 * observes the phase of the commit's mbarrier knows them. Loads and stores are numbered, too, and
 * known from tcgen05.wait::ld and ::st on; these instructions belong to a warp, which acts as one. */
#ifndef CONSAN_CHECK_TCGEN05_H
#define CONSAN_CHECK_TCGEN05_H

#include "internal.h"

enum { TMEM_LANES = 128, TMEM_COLUMNS = 512, TMEM_UNIT = 32, TC_RECENT = 64 };

/* A granule of a CTA's shadow of tensor memory is a column of 16 lanes, a block. Those of TMEM_UNIT columns
 * are next to each other, block by block: what a warp loads, or a matrix product accumulates, is mostly
 * one range. */
enum { TMEM_BLOCKS = TMEM_LANES / CELL_BYTES };

static inline uint32_t tmem_granule(uint32_t block, uint32_t column)
{
	return (column / TMEM_UNIT * TMEM_BLOCKS + block) * TMEM_UNIT + column % TMEM_UNIT;
}
static inline uint32_t tmem_granule_column(uint32_t granule)
{
	return granule / (TMEM_UNIT * TMEM_BLOCKS) * TMEM_UNIT + granule % TMEM_UNIT;
}
/* The first of its lanes */
static inline uint32_t tmem_granule_lane(uint32_t granule)
{
	return granule / TMEM_UNIT % TMEM_BLOCKS * CELL_BYTES;
}

enum { ISA_91 = 1, ISA_94 = 2, ISA_ALL = 3 }; /* versions of the PTX ISA, see tmem.c */

struct tc_op {                   /* a tcgen05.mma, cp or shift */
	uint64_t shape;          /* as in the event */
	uint32_t d;              /* address of the destination */
	uint32_t issued;         /* the warp's epoch at the issue */
	enum ev_tc op;
	bool four_lanes;         /* cp.4x256b */
};

struct tc_commit {               /* the newest one by a lane on an mbarrier */
	uint32_t lane, site;
	uint32_t epoch;          /* covers the lane's operations up to here; 0: it has none */
	uint32_t mbar;           /* index in cluster.mbars */
	uint64_t phase;          /* of the mbarrier at the commit */
};

struct tc_last { uint32_t epoch, lane, site; };

struct tc_warp {
	/* operations: the number of the newest, of the newest mma, and of each lane's newest */
	uint32_t ops, mma, last[32];
	uint32_t issued;         /* lanes that have issued one */
	VEC(struct tc_op) op;    /* op.at[i] is number first + i */
	uint32_t first;
	uint32_t reported;       /* up to this one, a finding says that no thread waited for it */
	struct tc_last used[2];  /* the newest one on memory of its own CTA, of the peer */
	VEC(struct tc_commit) commit;
	uint32_t fenced[2];      /* warp.syncs at its last fence::after_thread_sync, ::before_thread_sync */
	struct {                 /* [0]: tcgen05.ld, [1]: tcgen05.st */
		uint32_t newest, done; /* their numbers: issued, complete by a wait */
		uint32_t reported; /* as above */
		uint32_t issued[TC_RECENT]; /* the warp's epoch at the issue, by number % TC_RECENT */
		bool unread;     /* since the last wait one was issued whose registers nothing reads */
		uint32_t wait_site; /* of the newest wait, or 0 */
	} access[2];
};

/* ---- tcgen05.c ---- */
struct tc_warp *tc_of(struct warp *w);
void tc_reset_warp(struct warp *w);
void tc_free_warp(struct warp *w);
void tc_cta_end(struct cluster *c, unsigned cta, const struct event *e);
/* Number `epoch` of the warp's operations; NULL: forgotten, as it is known to be complete. */
const struct tc_op *tc_op_at(const struct tc_warp *t, uint32_t epoch);
/* The first commit that covers this operation of the lane; NULL: none. */
const struct tc_commit *tc_commit_of(const struct tc_warp *t, uint32_t lane, uint32_t epoch);
/* Does f know an operation that the warp of x issued after x? */
bool tc_knows_later(const struct cluster *c, const struct frontier *f, const struct past_op *x);
/* A commit on this mbarrier that f does not know to have arrived, in *x; false: none. */
bool tc_unknown_commit(const struct cluster *c, uint32_t mbar, const struct frontier *f,
	struct past_op *x);

/* ---- tmem.c ---- */
/* The areas of one operation of this thread, which the warp's tc_warp has as its newest. */
void tmem_operation(struct cluster *c, struct warp *w, const struct event *e,
	const struct frontier *f);

/* Adds what a thread that knew `from` exports by tcgen05.fence::before_thread_sync. */
void tmem_export(struct cluster *c, struct frontier *into, const struct frontier *from);

/* An access to tensor memory, as tmem.c classifies it */
struct tmem_view {
	struct view v;           /* first member */
	const struct ev_area *area;
	const struct tc_op *op;  /* NULL: a load, a store or a deallocation */
	bool frees;              /* tcgen05.dealloc */
	bool partly;             /* a load of which some blocks of lanes were written, others not */
};

/* Has the warp waited for its load (0) or store (1) before it released anything that the other
 * thread has acquired since? If it arrives first and waits then, the wait is missing all the same. */
bool tmem_waited_first(const struct tmem_view *t, const struct warp *by, unsigned store,
	uint32_t number);
/* E16: is the load ordered but for the tcgen05.wait::ld? On today's hardware it is complete when
 * its registers have been read. */
bool tmem_is_loaded(const struct tmem_view *t, const struct cell_entry *old);
/* Does f know that an operation on tensor memory is complete? Then accesses to tensor memory are
 * ordered after it. */
bool tmem_ordered(const struct cluster *c, const struct frontier *f, uint32_t agent, uint32_t lanes,
	uint32_t epoch);

/* ---- tmem_report.c ---- */
/* isa: the versions of the ISA that order the two */
void tmem_report(const struct tmem_view *t, unsigned rule, unsigned isa,
	const struct cell_entry *old, const struct cell_entry *now, uint32_t granule, uint32_t lanes);
void tmem_report_unwritten(const struct tmem_view *t, const struct cell_entry *now,
	uint32_t granule, uint32_t lanes);
/* What is known of the completion of a tcgen05 operation, for a finding about it. by_lane: of the
 * accessor, or -1 */
void tmem_explain_operation(struct cluster *c, struct finding *f, const struct cell_entry *old,
	const struct warp *by, int by_lane);

#endif
