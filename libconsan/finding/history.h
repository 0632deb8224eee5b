/* history: what happened around a finding, as data: the last steps of
 * synchronisation of the warps involved, the mbarriers they use, and what lies
 * in shared memory. Made by recorder.c, kept with the finding, drawn by reports.
 *
 * A history never changes once it is made and is shared by the copies of its
 * finding. It explains; nothing is judged by it. */
#ifndef CONSAN_HISTORY_H
#define CONSAN_HISTORY_H

#include "types.h"

#define HISTORY_OTHERS 0xffff /* in place of a warp: several, not told apart */
#define HISTORY_NO_PHASE UINT64_MAX /* a wait that nothing had to let go */
#define HISTORY_PHASES 4      /* of an mbarrier, the newest */

enum step_kind {
#define STEP(id, family, on, text) STEP_##id,
#include "libconsan/event/step.def"
#undef STEP
	STEP_COUNT
};

enum step_family { FAMILY_ACCESS, FAMILY_RELEASE, FAMILY_ACQUIRE, FAMILY_FENCE,
	FAMILY_ISSUE, FAMILY_COMPLETE, FAMILY_OBJECT, FAMILY_SYNC };
enum step_on { ON_NOTHING, ON_MBARRIER, ON_BARRIER, ON_CLUSTER, /* named by peer and addr */
	ON_COPIES, ON_BULKS, ON_MMAS /* a warp's own */ };

/* One step by one warp. `phase` links steps: a wait of phase p on an object was
 * let go by the arrivals and signals of phase p on it; of groups, everything
 * issued in a group below the wait's phase is complete. */
struct history_step {
	uint64_t at;            /* order in the cluster; equal: not told apart */
	uint64_t phase;
	int64_t tx;             /* bytes expected, or that landed */
	uint32_t site;
	uint32_t lanes;
	uint32_t count;         /* arrivals, or copies in the group */
	uint32_t op;            /* asynchronous operation; 0: none */
	uint32_t addr, bytes;   /* the barrier object's offset or id, or what is copied */
	uint32_t repeat;        /* how often in a row, less one */
	uint16_t cta, warp;     /* warp: or HISTORY_OTHERS */
	uint16_t peer;          /* whose shared memory `addr` is in */
	uint8_t kind;           /* enum step_kind */
	bool completes;         /* this completed phase `phase` of its barrier */
};

struct history_mbarrier {
	char name[64];
	uint16_t peer;
	uint32_t addr;
	uint32_t count, pending;
	int64_t tx;
	uint64_t phase;         /* completed so far */
	bool live;
	struct history_phase {
		uint64_t phase;
		uint32_t arrivals;
		int64_t expected, landed; /* bytes */
	} recent[HISTORY_PHASES]; /* phase p stands in p % HISTORY_PHASES */
};

enum history_buffer_kind { BUFFER_VARIABLE, BUFFER_DYNAMIC, BUFFER_STAGE };
struct history_buffer {
	char name[64];
	uint8_t kind;           /* enum history_buffer_kind */
	uint32_t addr, bytes;   /* of each CTA's shared memory */
	uint32_t site;          /* STAGE: the copy that fills or reads it */
};

struct history {
	unsigned holders;       /* private: see history_keep() */
	struct history_step *step;
	uint32_t nsteps;
	int32_t side[FINDING_SIDES]; /* the finding's sides among the steps; -1: before them */
	uint64_t before;        /* earlier steps of the cluster that are not kept */
	uint32_t shared;        /* bytes of shared memory of a CTA */
	/* Two clusters: side 1's steps come first, then side 0's; each in its own order,
	 * none between them. CTAs and peers from this number on are of side 0's cluster.
	 * 0: one cluster. */
	uint16_t other;
	struct history_mbarrier *mbarrier;
	uint32_t nmbarriers;
	struct history_buffer *buffer; /* by address */
	uint32_t nbuffers;
};

const char *step_text(enum step_kind k);
const char *step_id(enum step_kind k);
enum step_family step_family(enum step_kind k);
enum step_on step_on(enum step_kind k);

/* Another holder of the same history; thread-safe. NULL is fine. */
struct history *history_keep(struct history *h);
void history_drop(struct history *h);
/* The mbarrier at addr of CTA peer, or NULL. */
const struct history_mbarrier *history_mbarrier(const struct history *h, unsigned peer,
	uint32_t addr);

#endif
