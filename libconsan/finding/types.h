/* types: a finding of the checker, and the coverage of a kernel, as data.
 *
 * A finding is identified by (rule, site of side 0, site of side 1): a further occurrence only
 * increments `seen`. Side 0 is the later access or operation, at which the checker reported;
 * side 1 is the earlier one that it conflicts with. */
#ifndef CONSAN_FINDING_TYPES_H
#define CONSAN_FINDING_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum severity { SEV_NOTE, SEV_WARNING, SEV_ERROR };

/* A rule is its number in rules.def, from 1; rule_codes.h names them. Most files need no
 * names and so do not depend on the table. */
enum { RULE_NONE };

struct rule_info {
	const char *code;   /* "CS102" */
	enum severity severity;
	const char *ids;    /* rows of the PTX rule catalogue that it implements */
	const char *title, *why, *fix;
};
unsigned rule_count(void);
const struct rule_info *rule_get(unsigned rule); /* 1 .. rule_count(), or an empty one */
unsigned rule_by_code(const char *code); /* RULE_NONE if there is none */

/* The id of a row of hints.def, "" for 0, and the reverse. */
const char *hint_name(unsigned hint);
unsigned hint_by_name(const char *name); /* 0 if there is none */

#define FINDING_SIDES 2

/* Cells of tensor memory: a bit for each lane, and columns. columns 0: none */
struct finding_cells {
	uint32_t lanes[4];
	uint16_t column, columns;
};

/* One thread, warp or asynchronous engine, and its access or operation. */
struct finding_side {
	uint32_t site;
	bool host;            /* a call of the host, whose call stack is the site: no thread */
	char what[48];        /* "write", "TMA load write", "wgmma read of B", "mbarrier arrive" */
	uint32_t ctaid[3];    /* blockIdx */
	uint16_t cta, warp;   /* rank in cluster, warp in CTA */
	int16_t lane;         /* -1: the whole warp or an asynchronous engine */
	uint32_t thread[3];   /* threadIdx of that lane, if lane >= 0 */
	uint8_t space;        /* enum ev_space */
	uint16_t peer;        /* rank of the CTA that owns the shared address */
	uint64_t addr;
	uint32_t bytes;       /* 0: no memory involved */
	char variable[64];    /* "tile+0x80", or "" */
	char actor[160];      /* who made it, if it is no thread: "cudaMemcpyAsync in stream 2"; or "" */
	char api[48];         /* the call of the host that issued the actor's operation; or "" */
	uint32_t call;        /* its call stack, a site; 0: unknown */
	struct finding_cells cells; /* of the whole access to tensor memory, as far as known */
	uint64_t buffer, buffer_bytes; /* the allocation that contains a global addr, if known */
};

/* State of the barrier or group involved, if there is one. */
struct finding_barrier {
	char kind[24];        /* "mbarrier", "named barrier", "wgmma group"; "": none */
	char name[64];        /* variable, or "" */
	uint16_t peer;
	uint64_t addr;        /* offset or barrier id */
	uint64_t phase;       /* completed phases */
	uint32_t expected, pending; /* arrivals of the current phase */
	int64_t tx;           /* tx-count, bytes */
	uint32_t init;        /* the site of mbarrier.init, or 0; not saved */
};

struct finding_waiter {   /* an edge of the wait-for graph of a hang */
	struct finding_side who;
	struct finding_barrier on;
	char text[160];       /* "waits for phase 3 (parity 1); 1 of 2 arrivals missing" */
};

/* What to change in the program. EDIT_BETWEEN: insert after the instruction `site` and before the
 * instruction `until`, at a place that every path from the first to the second passes. EDIT_MOVE:
 * execute `site` later, after `until`; EDIT_MOVE_BEFORE: directly before `until`. */
enum finding_edit_kind { EDIT_NONE, EDIT_CHANGE, EDIT_BEFORE, EDIT_AFTER, EDIT_BETWEEN, EDIT_MOVE,
	EDIT_MOVE_BEFORE };
/* The launch was run again with the edit: VERIFIED_CLEAN, it had no finding above a note;
 * VERIFIED_PART, this finding was gone and others remained; VERIFIED_NOT, this finding remained, or
 * another one or a hang took its place. */
enum finding_verified { VERIFIED_NOT_TRIED, VERIFIED_CLEAN, VERIFIED_PART, VERIFIED_NOT };
/* Why an edit was not tried: a row of untried.def */
enum finding_untried {
	UNTRIED_NONE,
#define UNTRIED(id, why) UNTRIED_##id,
#include "untried.def"
#undef UNTRIED
};
struct finding_edit {
	uint8_t kind;         /* enum finding_edit_kind */
	uint8_t verified;     /* enum finding_verified */
	uint8_t untried;      /* VERIFIED_NOT_TRIED: enum finding_untried */
	uint32_t site, until; /* until: EDIT_BETWEEN, EDIT_MOVE, EDIT_MOVE_BEFORE */
	uint32_t left;        /* VERIFIED_PART: findings above a note that remained */
	uint32_t others;      /* tried together with so many other edits of the report */
	uint32_t copies;      /* instructions to edit: the compiler made so many of one line; 0: one */
	char form[128];       /* EDIT_CHANGE: how ptx follows from the instruction (hints.def), or "";
				 ptx "": what to change, as "mask", or "" */
	char words[96];       /* what ptx does, in words, or "" */
	char ptx[320];        /* to insert, or to put in place of the instruction; "": the repair is
				 not mechanical, but this is the place */
};

/* The wait that the thread of side 0 lacks: for a phase of an mbarrier of its CTA. One line of the
 * source initialised n mbarriers, a ring. Known to the process that checks, and not saved. */
struct finding_need {
	uint32_t init;        /* the site of mbarrier.init; 0: no such wait is known */
	uint32_t first, stride, n; /* shared addresses */
	uint32_t index;       /* of the ring */
	uint64_t phase;
	char name[2][64];     /* of the first and the last one */
};

/* An instruction that arrives on another mbarrier while no thread arrives on the one that a hang
 * waits for, `delta` bytes further. Known to the process that checks, and not saved. */
struct finding_stray {
	uint32_t site;
	int32_t delta;
	char from[64];        /* the mbarrier on which it arrives */
};
#define FINDING_STRAYS 6

/* Which runs of the launch showed a finding, with --gpu-then-cpu: that on the GPU, and its replay on the
 * executor. 0: not asked for */
enum { SEEN_ON_GPU = 1, SEEN_IN_REPLAY = 2 };

/* What a run on a GPU can hide of a kernel: bits, by the rows of hidden.def */
enum finding_hidden {
#define HIDDEN(id, rules, why) HIDDEN_##id,
#include "hidden.def"
	HIDDEN_COUNT
};
struct finding_hides { const char *name, *rules, *why; };
const struct finding_hides *finding_hides(enum finding_hidden k);

struct finding {
	unsigned rule;        /* 1 .. rule_count() */
	enum severity severity;
	char kernel[256];     /* mangled, by finding_set_kernel() */
	uint32_t launch;
	uint32_t group;       /* number of its group (group.h), in the order of importance */
	uint32_t rank;        /* 0: the headline of its group, else a consequence */
	uint64_t order;       /* events of its cluster before the occurrence that is shown; 0: the
				 finding is about two clusters, which have no common order */
	struct finding_side side[FINDING_SIDES];
	unsigned nsides;
	struct finding_barrier barrier;
	char timeline[1400];  /* calls between two operations of the host API: a row for each, of a stream
				 or "the host", "earlier", "later" or "" for the sides, and a text,
				 with tabs between; or "" */
	char edge[320];       /* the missing synchronization, one sentence */
	uint16_t hint_id;     /* the row of hints.def; 0: no hint */
	char hint[320];       /* about this occurrence in particular, or "" */
	struct finding_need need;
	struct finding_stray stray[FINDING_STRAYS];
	unsigned nstrays;
	struct finding_edit edit, also; /* also: to be made together with edit, or EDIT_NONE */
	struct finding_waiter *waiter; /* owned */
	unsigned nwaiters;
	struct history *history; /* a reference (history.h), or NULL */
	unsigned folded;      /* further pairs of instructions at the same source places, as of
				 an unrolled loop; counted in seen */
	uint64_t seen;        /* occurrences */
	uint32_t clusters;    /* clusters with an occurrence */
	uint64_t seed;        /* of the schedule with the first occurrence */
	uint32_t host;        /* the host's call stack of the launch, a site; 0: unknown */
	uint8_t backends;     /* SEEN_ON_GPU, SEEN_IN_REPLAY */
	uint8_t reads;        /* the option `reads` of that run, see finding_reads(); 0: newest */
	char schedule[64];    /* that schedule as the option `schedule` names it; "": by its seed */
};

/* Canonical order: severity, rule, source place of both sides. */
int finding_compare(const struct finding *a, const struct finding *b);
/* Is it the same bug? The order of the sides does not matter. */
bool finding_same(const struct finding *a, const struct finding *b);
void finding_free(struct finding *f); /* frees what f owns, not f */
/* A name that does not fit is cut and gets ~ and its checksum, so that two instances of a
 * template stay different. */
void finding_set_kernel(char to[256], const char *mangled);
/* The value of the option `reads` that reproduces the finding; "": the default */
const char *finding_reads(const struct finding *f);
/* How to repair it: the rule's fix, or what its hint has instead (fixes.def). */
const char *finding_fix(const struct finding *f);
struct launch_info;
/* Sets the kernel, the number of the launch and its schedule. */
void finding_set_launch(struct finding *f, const struct launch_info *l);

/* --explore runs the schedules that differ from the first one by at most so many switches between
 * warps. */
enum { FINDING_SWITCHES = 2 };

/* What was checked of a kernel. The counters of several sessions can be added. */
struct coverage {
	char kernel[256];
	uint64_t launches, checked; /* all, and those that were checked */
	uint64_t skipped;       /* launches that the user's filters excluded */
	uint64_t clusters, ctas;
	uint64_t events, dropped;
	uint64_t sites, sites_executed; /* instructions */
	uint64_t warp_ops;      /* executed warp instructions */
	uint64_t gpu_timed, gpu_ns; /* launches timed on a GPU, with recording; their sum */
	/* --explore: launches of which all schedules within the bound ran, those of which all of one
	 * shard's ran, and those with more; their schedules; further schedules by seeds */
	uint64_t explored, explored_shards, explored_part, schedules, seeds;
	/* GPU mode: bits of enum finding_hidden; --gpu-then-cpu: launches whose inputs were replayed, and
	 * their CTAs, all and those that the replays ran to their ends */
	uint64_t hidden, replayed, replay_ctas, replayed_ctas;
	char not_replayed[240]; /* why a launch was not replayed, or not to its end; "" if all were */
	char unchecked[320];    /* why it was not checked, with the line; "" if it was */
};

#endif
