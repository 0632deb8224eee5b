/* history: the events that led to a finding, as data: the last synchronization steps of the
 * warps involved, the mbarriers that they use, and the layout of shared memory. recorder.h
 * makes it, the finding keeps it, reports draw it.
 *
 * A history is immutable and shared by the copies of its finding. The checker does not use
 * it. */
#ifndef CONSAN_HISTORY_H
#define CONSAN_HISTORY_H

#include "types.h"

#define HISTORY_OTHERS 0xffff /* in place of a warp: several warps */
#define HISTORY_NO_PHASE UINT64_MAX /* of a wait that no arrival had to complete */
#define HISTORY_PHASES 4      /* newest phases kept of an mbarrier */
#define HISTORY_ARRIVERS 16   /* warps kept that have arrived on an mbarrier */

enum step_kind {
#define STEP(id, family, on, text) STEP_##id,
#include "libconsan/event/step.def"
#undef STEP
	STEP_COUNT
};

enum step_family { FAMILY_ACCESS, FAMILY_RELEASE, FAMILY_ACQUIRE, FAMILY_FENCE,
	FAMILY_ISSUE, FAMILY_COMPLETE, FAMILY_OBJECT, FAMILY_SYNC };
enum step_on { ON_NOTHING, ON_MBARRIER, ON_BARRIER, ON_CLUSTER, /* named by peer and addr */
	ON_COPIES, ON_BULKS, ON_MMAS, /* groups of the warp */
	ON_LOADS, ON_STORES, /* of tensor memory, by the warp */
	ON_TENSOR, /* the queue of tcgen05.mma, cp, shift and commit */
	ON_COLUMNS /* of tensor memory: addr is the first one, bytes their number */ };

/* One step of one warp. `phase` connects steps: a wait for phase p of an object returned
 * because of the arrivals and signals of phase p on it; a wait for groups, because all groups
 * with a number below the wait's phase were complete. */
struct history_step {
	uint64_t at;            /* position in the order of the cluster's steps */
	uint64_t phase;
	int64_t tx;             /* bytes expected or completed */
	uint32_t site;
	uint32_t lanes;
	uint32_t count;         /* arrivals, or copies in the group */
	uint32_t op;            /* asynchronous operation; 0: none */
	uint32_t addr, bytes;   /* offset or id of the barrier; destination of a copy */
	uint32_t repeat;        /* further steps like it in a row */
	uint16_t cta, warp;     /* warp: or HISTORY_OTHERS */
	uint16_t peer;          /* the CTA in whose shared memory `addr` is */
	uint8_t kind;           /* enum step_kind */
	bool completes;         /* it completed phase `phase` of its barrier */
};

struct history_mbarrier {
	char name[64];
	uint16_t peer;
	uint32_t addr;
	uint32_t count, pending;
	int64_t tx;
	uint64_t phase;         /* completed phases */
	bool live;              /* initialized and not invalidated */
	struct history_phase {
		uint64_t phase;
		uint32_t arrivals;
		int64_t expected, completed; /* bytes */
		uint32_t commits;       /* of the arrivals, those of tcgen05.commit */
		uint16_t committers;    /* the CTAs that executed these, a mask */
	} recent[HISTORY_PHASES]; /* phase p is at p % HISTORY_PHASES */
	/* the first warps that have arrived since the initialization */
	struct history_arriver { uint16_t cta, warp; } arriver[HISTORY_ARRIVERS];
	uint32_t narrivers;
};

enum history_buffer_kind { BUFFER_VARIABLE, BUFFER_DYNAMIC, BUFFER_STAGE, BUFFER_COLUMNS };
struct history_buffer {
	char name[64];
	uint8_t kind;           /* enum history_buffer_kind */
	uint16_t peer;          /* BUFFER_COLUMNS: the CTA */
	/* of each CTA's shared memory; BUFFER_COLUMNS: the first column, and their number */
	uint32_t addr, bytes;
	uint32_t site;          /* BUFFER_STAGE: the copy that writes or reads it; BUFFER_COLUMNS: the
				   tcgen05.alloc */
};

struct history {
	unsigned references;    /* private: see history_keep() */
	struct history_step *step;
	uint32_t nsteps;
	int32_t side[FINDING_SIDES]; /* index of the finding's sides in step[]; -1: earlier */
	uint64_t before;        /* earlier steps of the cluster that are not kept */
	uint32_t shared;        /* bytes of shared memory of a CTA */
	/* 0: one cluster. Else two: the steps of side 1's cluster come first, then those of
	 * side 0's, whose CTAs and peers are numbered from this value on. There is no order
	 * between the clusters. */
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
/* Does an engine make the step, when an operation is complete? */
bool step_is_signal(enum step_kind k);

/* Takes a reference and returns h. Thread-safe; h may be NULL. */
struct history *history_keep(struct history *h);
/* Releases a reference; frees h with the last one. Thread-safe; h may be NULL. */
void history_drop(struct history *h);
/* The mbarrier at offset addr of CTA peer, or NULL. */
const struct history_mbarrier *history_mbarrier(const struct history *h, unsigned peer,
	uint32_t addr);

#endif
