/* finding: what the checker says, as data. Renderers add no logic.
 *
 * Identity is (rule, site of side 0, site of side 1): the same bug seen again
 * only raises `seen`. Side 0 is the access or operation at which the checker
 * stopped, side 1 the earlier one it conflicts with. */
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
	const char *ids;    /* rows of the PTX rule catalogue it implements */
	const char *title, *why, *fix;
};
unsigned rule_count(void);
const struct rule_info *rule_get(unsigned rule); /* 1 .. rule_count(), or an empty one */
unsigned rule_by_code(const char *code); /* RULE_NONE if there is none */

#define FINDING_SIDES 2

/* One agent and what it did. Strings are short and owned by the finding. */
struct finding_side {
	uint32_t site;
	char what[48];        /* "write", "TMA load write", "wgmma read of B", "mbarrier arrive" */
	uint32_t ctaid[3];    /* blockIdx */
	uint16_t cta, warp;   /* rank in cluster, warp in CTA */
	int16_t lane;         /* -1: the whole warp or an async engine */
	uint32_t thread[3];   /* threadIdx of that lane, if lane >= 0 */
	uint8_t space;        /* enum ev_space */
	uint16_t peer;        /* owner CTA of the shared address */
	uint64_t addr;
	uint32_t bytes;       /* 0: no memory involved */
	char variable[64];    /* "tile+0x80", or "" */
	uint64_t buffer, buffer_bytes; /* the allocation around a global addr, if known */
};

/* State of the barrier or group involved, when there is one. */
struct finding_barrier {
	char kind[24];        /* "mbarrier", "named barrier", "wgmma group"; "" none */
	char name[64];        /* variable, or "" */
	uint16_t peer;
	uint64_t addr;        /* offset or barrier id */
	uint64_t phase;       /* completed phases so far */
	uint32_t expected, pending;
	int64_t tx;
};

struct finding_waiter {   /* hangs: the wait-for graph */
	struct finding_side who;
	struct finding_barrier on;
	char text[160];       /* "waits for phase 3 (parity 1); 1 of 2 arrivals missing" */
};

struct finding {
	unsigned rule;        /* 1 .. rule_count() */
	enum severity severity;
	char kernel[256];     /* mangled, by finding_set_kernel() */
	uint32_t launch;
	struct finding_side side[FINDING_SIDES];
	unsigned nsides;
	struct finding_barrier barrier;
	char edge[320];       /* the missing edge, one sentence */
	char hint[320];       /* what this case in particular suggests, or "" */
	struct finding_waiter *waiter; /* owned */
	unsigned nwaiters;
	struct history *history; /* history.h; held, or NULL */
	unsigned folded;      /* further pairs of instructions with the same source
				 places, counted in seen (unrolled loops) */
	uint64_t seen;
	uint32_t clusters;    /* in how many clusters */
	uint64_t seed;        /* schedule that showed it */
};

/* Canonical order: severity, rule, source place of both sides. */
int finding_compare(const struct finding *a, const struct finding *b);
bool finding_same(const struct finding *a, const struct finding *b);
void finding_free(struct finding *f); /* what it owns, not itself */
/* A name that does not fit is cut and gets ~ and its checksum, so that two
 * instances of one template stay two. */
void finding_set_kernel(char to[256], const char *mangled);

/* What was and was not looked at; the counters add up. */
struct coverage {
	char kernel[256];
	uint64_t launches, checked;
	uint64_t skipped;       /* launches that the user's filters left out */
	uint64_t clusters, ctas;
	uint64_t events, dropped;
	uint64_t sites, sites_executed;
	uint64_t warp_ops;      /* executed warp instructions */
	uint64_t gpu_timed, gpu_ns; /* launches of known time on a GPU, recording; all of it */
	char unchecked[320];    /* why not checked, with the line; "" if checked */
};

#endif
