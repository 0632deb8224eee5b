/* check: events -> findings. The one place that knows what is a bug.
 *
 * House rules:
 *  - includes the vocabulary and shadow/; knows no opcode, no CUDA, no format;
 *  - one struct check per launch; one sink per cluster, each used by one
 *    thread at a time; sinks of different clusters may run in parallel;
 *  - a rule is a row of rules.def and a few early returns that say why;
 *  - policy that silences or softens lives in policy.def, nowhere else. */
#ifndef CONSAN_CHECK_H
#define CONSAN_CHECK_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/finding/finding.h"

/* The knobs of the rule catalogue (K1..K12): KNOB(id, default, strict, rules, doc) */
struct check_policy {
#define KNOB(id, deflt, strict, rules, doc) uint8_t id;
#include "policy.def"
#undef KNOB
};
void check_policy_default(struct check_policy *p);
void check_policy_strict(struct check_policy *p);

/* What outlives a launch: which tensor maps TMA has seen, and how; what grids did
 * to global memory that let the next one begin early. One for a process, thread-safe. */
struct check;
struct check_memory;
struct check_memory *check_memory_open(void);
void check_memory_close(struct check_memory *m); /* NULL is fine */
/* Does this launch begin while grids before may still run? Then they are in the
 * shadow of its check, and it can be checked but once. */
bool check_memory_overlaps(struct check_memory *m, const struct launch_info *l);
/* Between launches: no grid of this queue (of all: of any) is still running. */
void check_memory_idle(struct check_memory *m, uint64_t queue, bool all);
/* The launch is over: what it showed TMA is kept in its config.memory, unless it
 * is checked once more. */
void check_remember(struct check *k);

struct check_config {
	struct launch_info launch;  /* copied, strings must outlive the check */
	struct check_policy policy;
	struct check_memory *memory; /* or NULL */
	bool global;                /* races on global memory; needs the events of all
				       clusters in the order in which they took place */
	bool broken;                /* the launch did not come to its end: what is left
				       undone at the end of a cluster is no bug. Threads
				       and CTAs that are said to have ended did */
	/* The allocation that holds a global address; NULL: not known. */
	bool (*where)(void *user, uint64_t addr, uint64_t *base, uint64_t *bytes);
	/* A finding seen for the first time in this launch, from any thread,
	 * one call at a time. The finding is the checker's. */
	void (*found)(void *user, const struct finding *f);
	void *user;
};

struct check *check_open(const struct check_config *c);
struct event_sink *check_cluster_begin(struct check *k, const struct cluster_info *c);
/* Ends the cluster: leaks and leftovers are judged here, unless it was cut off. */
void check_cluster_end(struct check *k, struct event_sink *sink);
/* The launch failed in this cluster and later ones (by id) were cut off: what
 * only they showed depends on the threads' timing and is dropped. */
void check_cut(struct check *k, uint32_t cluster);
/* Findings of the launch in canonical order, each as the first cluster (by id)
 * showed it; valid until check_close. */
size_t check_findings(struct check *k, const struct finding *const **out);
struct check_stats { uint64_t events, accesses, granules, async_ops, joins, shadow_bytes; };
void check_stats(const struct check *k, struct check_stats *out);
void check_close(struct check *k);

#endif
