/* warp: what the checker keeps of each warp and warpgroup: what its lanes know, its operations in
 * flight, and accesses to the registers that wgmma uses. */
#ifndef CONSAN_CHECK_WARP_H
#define CONSAN_CHECK_WARP_H

#include "clock.h"

struct foreign;                  /* foreign.h */
struct own_release;              /* location.h */
struct tc_warp;                  /* tcgen05.h */
struct nb_gen;                   /* internal.h, as struct stuck */
struct stuck;

/* ---- what a warp's lanes know of their own operations ---- */

/* A value for each lane, cheap while uniform. */
struct per_lane {
	uint32_t low, high;      /* minimum and maximum */
	uint32_t at[32];
};

/* Groups of asynchronous copies, a FIFO for each lane. An operation has the number of the group
 * that was open when it was issued; a commit closes the group. */
struct lane_groups {
	uint32_t open;           /* number of the open group */
	uint32_t holds;          /* lanes that issued since their last commit */
	uint32_t issued;         /* lanes that ever issued */
	struct commit { uint32_t number, lanes, site; } *at; /* oldest first */
	size_t n, cap;
	uint32_t last[32];       /* number of the lane's newest operation */
	uint32_t site[32];       /* site of that operation */
	uint32_t wait_site[32];  /* the lane's last wait and the number of groups it left pending */
	uint32_t wait_count[32];
};

/* Progress of the lanes' own operations beyond program order: up to which epoch a proxy fence
 * covers their accesses and copies, and up to which group they have waited for their copies and
 * bulk stores. */
struct lane_progress {
	struct per_lane fenced, fenced_copies, copies, stores;
	struct per_lane stored;  /* bulk stores whose writes are also complete */
	struct per_lane fenced_all; /* accesses covered by a proxy fence over all shared memory */
	struct per_lane fenced_global; /* accesses covered by a proxy fence over global memory */
	struct per_lane half, half_copies; /* the release half of a proxy fence (A21) */
};

struct group {                   /* lanes with the same knowledge */
	uint32_t lanes;
	struct frontier *f;
};

struct observed {                /* by relaxed reads: becomes knowledge when a fence follows */
	uint32_t lanes;
	uint8_t min_scope;       /* the minimum scope of that fence; 0: any */
	uint8_t size;            /* the location that was read, or 0: see location.h */
	bool sc;                 /* that fence must be a fence.sc, see fence_sc.c */
	bool ticket;             /* read by a ticket, see reads_ticket() */
	uint64_t at;
	struct frontier *f;
};

struct released {                /* by a fence: what later relaxed writes release */
	uint32_t lanes, epoch;
	bool wide;               /* the fence's scope includes the cluster */
	uint8_t scope;           /* enum ev_scope */
	bool restricted;         /* .sync_restrict::shared::cta: only that memory (A11) */
	bool sc;                 /* a fence.sc */
	bool tmem;               /* a tcgen05.fence: of f only what tmem_export() takes; no `progress` */
	struct frontier *f;      /* without the lanes' own operations, which are in `progress` */
	/* at gpu scope: f and progress together, for threads ordered after the fence; or NULL */
	struct foreign *ready;
	struct lane_progress progress;
};

/* What threads of one CTA release to threads of another; kept apart from releases within a CTA,
 * because it needs scopes that include both threads (A03, A07, B24). */
struct remote {
	struct frontier *wide;   /* at cluster scope */
	struct frontier *narrow; /* at .cta scope: orders nothing, but explains a race */
	uint32_t site;           /* site of the newest release in `narrow` */
};

/* What is released in one phase: to threads of the CTA that owns the memory, and to other CTAs. */
struct phase_release {
	struct frontier *local;
	struct remote remote;    /* in clusters of several CTAs */
};

/* wgmma accesses to a register (one for the warpgroup, as its warps act as one). */
struct wg_reg {
	/* the newest tile that contained it: index in warpgroup.tile, 0: none */
	uint32_t tile;
	uint32_t a, a_site;      /* newest wgmma group with it in A; 0: none */
};

/* An accumulator: the registers of a D operand, which consecutive wgmmas name. */
struct wg_tile {
	uint32_t first, n;       /* range in warpgroup.list */
	uint32_t whole;          /* registers that no later tile contains */
	uint32_t d, d_site;      /* newest wgmma group with it as D */
	uint64_t shape;          /* shape of that wgmma */
	uint32_t fence;          /* count of wgmma.fence when it was issued */
};

/* The value of an accumulator in flight, copied by movs. */
struct wg_copy {
	uint32_t lanes;          /* 0: none */
	uint32_t group, wgmma_site; /* the newest of the wgmmas that write it */
	uint32_t site;           /* the first mov */
};

/* Accesses to a register by plain instructions of one warp. */
struct plain_reg {
	uint32_t site;           /* newest access; a move does not replace another access */
	uint32_t fence;          /* count of wgmma.fence then */
	bool touched, moved;     /* ever accessed; accessed by a plain mov */
	struct wg_copy copy;     /* what movs have put into it */
};

struct past_op {                   /* a past operation of some lanes of a warp */
	uint16_t warp;           /* index in the cluster */
	uint32_t lanes, epoch, site;
};

struct copy_arrival {
	uint32_t group, lanes, issued;
};

/* A plain store to shared memory, see stored.c */
struct stored {
	uint32_t epoch, site, value, lanes, bytes;
	uint16_t owner;
	bool list;               /* a list of addresses, which is not kept */
	int32_t stride;
	uint64_t base;
};

struct warp {
	uint16_t cta, id;        /* id in the CTA */
	uint32_t index;          /* index in the cluster = its generic agent */
	uint32_t all, live;      /* lanes that exist; lanes that have not exited */
	uint32_t exit_site;      /* site of the newest exit of a lane */
	uint32_t epoch;
	uint32_t acting;         /* lanes with an operation of this epoch */
	uint32_t acted[32];      /* for each lane: the newest earlier epoch in which it had one, or 0 */
	uint32_t converged;      /* epoch at the last collective of all its lanes */
	bool matrix_reads;       /* it has only read by ldmatrix and the like since then */
	unsigned ngroups;
	struct group group[32];
	struct lane_progress progress;
	struct lane_groups copies; /* cp.async */
	struct lane_groups stores; /* bulk stores */
	/* its newest cp.async.mbarrier.arrive: the number of the group that it ended, and the warp's
	 * epoch */
	VEC(struct copy_arrival) copy_arrivals;
	VEC(struct released) released;
	VEC(struct observed) observed;
	VEC(struct stored) stored; /* a ring, once it is full */
	uint32_t nstored;
	uint32_t sc_fences;      /* fence.sc so far */
	uint32_t syncs;          /* synchronisations of a lane that may have acquired something */
	struct own_release *own; /* hash, OWN_RELEASES; NULL before the first */
	uint32_t remote;         /* the CTAs whose shared memory it has accessed, a mask, but its own */
	uint32_t fence_site;     /* newest proxy fence over shared memory */
	uint32_t own_fence_site; /* newest one with .shared::cta */
	uint32_t half_site;      /* newest release half of one */
	/* for explanations: the newest relaxed arrival, release fence that is restricted to one state
	 * space, and proxy fence that does not cover shared memory; site 0: none */
	struct past_op relaxed_arrive, restricted_fence, global_fence;
	struct {                 /* the newest ones; release[releases % 8] is next */
		uint32_t epoch, site;
		uint32_t mbar;   /* an arrive: index + 1 of the mbarrier */
		uint64_t phase;
	} release[8];
	uint32_t releases;
	struct plain_reg *reg;
	size_t nreg;
	uint32_t wg_fences;      /* wgmma.fence so far */
	bool reg_touched;        /* a register was accessed since the last one */
	struct wg_copy moving;   /* read by the mov at moving_site, which has yet to write it */
	uint32_t moving_site;
	uint32_t nregs;          /* set by setmaxnreg; 0 before the first */
	uint32_t reg_ops;        /* number of setmaxnreg so far */
	struct past_op reg_op;     /* the newest */
	struct nb_gen *in;       /* barrier generation in which it arrived last, or NULL */
	uint32_t left[16];       /* by barrier id: the generation it left last */
	uint32_t cluster_arrived[2]; /* lanes, by parity of the barrier.cluster phase */
	uint32_t aligned_arrival; /* site of the newest .aligned arrival at the cluster's barrier, or 0 */
	uint64_t cluster_waited; /* phases of barrier.cluster that it has waited for */
	struct stuck *stuck;     /* EV_BLOCKED */
	struct tc_warp *tc;      /* NULL before its first use of tensor memory */
	uint64_t map;            /* the tensor map that its next bulk operation reads; 0: none */
};

static inline uint32_t warp_exited(const struct warp *w)
{
	return w->all & ~w->live;
}

struct warpgroup {
	uint32_t open;           /* number of the open wgmma group */
	uint32_t inside;         /* number of wgmmas in it */
	uint32_t last;           /* the newest group that holds a wgmma */
	uint32_t done;           /* groups up to here are complete */
	struct wg_reg *reg;
	size_t nreg;
	VEC(struct wg_tile) tile; /* the first one is unused */
	VEC(uint32_t) list;
	uint32_t wait_site, wait_count, site;
	/* the last wait that left none in flight; redundant waits since */
	uint32_t flush_site, idle;
	bool reported;           /* exit with pending wgmma was reported */
	/* for each setmaxnreg: the site at which the first warp executed it */
	VEC(uint32_t) reg_site;
};

#endif
