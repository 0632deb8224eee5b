/* check: the checker; it receives the events of a launch and reports findings. All knowledge of
 * what is a bug is in this module.
 *
 * Rules:
 *  - includes the base modules (base, event, finding) and shadow/; knows no opcode, no CUDA call
 *    and no file format;
 *  - one struct check for each launch; one event sink for each cluster, used by one thread at a
 *    time; sinks of different clusters may be used in parallel;
 *  - a rule is a row of rules.def and the code that detects it, as early returns with their
 *    reasons;
 *  - policy that silences or softens a rule is in policy.def and profile.def, nowhere else. */
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

/* What is kept from launch to launch: the tensor maps that TMA has read and their contents, and
 * what grids did to global memory if the next one may begin early. One for a process, thread-safe.
 * The caller closes it after all checks that use it. */
struct check;
struct check_memory;
struct check_memory *check_memory_open(void);
void check_memory_close(struct check_memory *m); /* NULL is fine */
/* May this launch begin while earlier grids still run? Then their accesses are in the shadow of its
 * check, and it can be checked only once. */
bool check_memory_overlaps(struct check_memory *m, const struct launch_info *l);
/* Called between launches: no grid of this queue (all: of any queue) is still running. */
void check_memory_idle(struct check_memory *m, uint64_t queue, bool all);
/* Called after the launch, unless it will be checked again: saves what it showed TMA in its
 * config.memory. */
void check_save(struct check *k);

struct check_config {
	struct launch_info launch;  /* copied; strings must outlive the check */
	struct check_policy policy;
	bool gluon;                 /* the program has kernels of Triton's Gluon (profile.def) */
	bool triton;                /* of Triton: for hints */
	bool xla;                   /* and of XLA, whose Triton writes no lines */
	struct check_memory *memory; /* or NULL; must outlive the check */
	/* races on global memory; needs the events of all clusters in the order in which they took
	 * place */
	bool global;
	/* clusters whose events equal those of an earlier one are not checked again: the same findings
	 * in less time */
	bool repeat;
	/* the launch was aborted: missing actions at the end of a cluster are no bug. Threads and
	 * CTAs whose exit was recorded did exit */
	bool aborted;
	/* Finds the allocation that holds a global address: its first byte and its size in bytes.
	 * False: not known. NULL: no allocation is known. */
	bool (*where)(void *user, uint64_t addr, uint64_t *base, uint64_t *bytes);
	/* Is the grid with the first number (launch_info.id) ordered before the one with the second?
	 * Both run at the same time as far as memory shows. NULL: no other grid runs. */
	bool (*before)(void *user, uint32_t first, uint32_t then);
	/* Called for a finding when it is seen for the first time in this launch, from any thread,
	 * one call at a time. The checker owns the finding. */
	void (*found)(void *user, const struct finding *f);
	void *user;
};

struct check *check_open(const struct check_config *c);
struct event_sink *check_cluster_begin(struct check *k, const struct cluster_info *c);
/* Ends the cluster: detects leaks and incomplete operations, unless it was aborted. The sink is
 * invalid afterwards. */
void check_cluster_end(struct check *k, struct event_sink *sink);
/* Has a race between two clusters been found? */
bool check_crossed(struct check *k);
/* The launch failed in this cluster, and later ones (by id) were aborted: findings that only those
 * showed depend on the timing of threads and are dropped. */
void check_truncate(struct check *k, uint32_t cluster);
/* The time of the launch was up. That is an error whether or not a cluster was resident that could
 * be shown where it was: reports it unless a hang of a cluster is. After the last check_cluster_end(). */
void check_timed_out(struct check *k);
/* Returns the number of findings and sets *out to them in canonical order, each as the first
 * cluster (by id) showed it. The checker owns them; valid until check_close(). */
size_t check_findings(struct check *k, const struct finding *const **out);
/* Grids of one number, except 0, ran at the same time: the races between them are findings of their
 * checks. */
uint32_t check_beside(const struct check *k);
bool check_launches(const struct check *k); /* its threads launch grids */
/* The accesses of this launch to global memory: bytes [addr, addr + bytes), the instruction, what it
 * is. Of each byte at least one write, if there was one, and else at least one read. */
struct check_part {                /* who made it, and when; see check_met() */
	uint32_t cluster, epoch, lanes;
	uint16_t agent, met;
	bool stored;
};
struct check_range {
	uint64_t addr, bytes;
	uint32_t site;
	bool write;
	bool strong;               /* at scope gpu or wider */
	bool system;               /* ... at scope sys */
	bool observes;             /* a strong read whose value is used */
	struct check_part part;
};
void check_accesses(struct check *k, void (*each)(void *user, const struct check_range *r), void *user);
/* What grids that ran at the same time learned of each other through memory: a reference, valid beyond
 * check_close(); NULL: nothing. To be called when the launch has ended. Grids are numbered; later ones may
 * join. */
struct beside *check_met(const struct check *k);
void check_met_put(struct beside *b); /* NULL is fine */
uint32_t check_met_grids(const struct beside *b);
uint32_t check_met_launch(const struct beside *b, uint32_t grid);
/* Is an access of one of these grids ordered after the begin of that one? Before the end of that one,
 * which has ended? Is the begin of the first ordered before the end of the second? */
bool check_met_begun(const struct beside *b, uint32_t grid, const struct check_part *p);
bool check_met_ended(const struct beside *b, uint32_t grid, const struct check_part *p);
bool check_met_passed(const struct beside *b, uint32_t first, uint32_t then);
/* Other grids or the host, whose accesses were not seen, ran at the same time. If the launch reads flags
 * in global memory, they may have ordered its threads: check_findings() leaves races on global memory
 * out from now on, and this returns whether there were any. */
bool check_with_others(struct check *k);
/* Has a thread waited successfully for an mbarrier on which none has arrived? */
bool check_idle_waits(const struct check *k);
/* Replaces the edit of the i-th of these findings. hint: its hint remains true. */
void check_edit(struct check *k, size_t i, const struct finding_edit *e,
	const struct finding_edit *also, bool hint);
/* Of a hang: if its edit is at another one of its waits, that wait becomes the place of the
 * finding. */
void check_culprit(struct check *k, size_t i);
/* All edits that could be tried were not, for this reason. */
void check_untried(struct check *k, enum finding_untried why);
struct check_stats { uint64_t events, accesses, granules, async_ops, joins, shadow_bytes; };
void check_stats(const struct check *k, struct check_stats *out);
void check_close(struct check *k);

#endif
