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
struct check_host_race;
struct check_memory;
struct foreign;
struct check_memory *check_memory_open(void);
void check_memory_close(struct check_memory *m); /* NULL is fine */
/* May this launch begin while earlier grids still run? Then their accesses are in the shadow of its
 * check, and it can be checked only once. */
bool check_memory_overlaps(struct check_memory *m, const struct launch_info *l);
/* Called between launches: no grid of this queue (all: of any queue) is still running. */
void check_memory_idle(struct check_memory *m, uint64_t queue, bool all);
/* The host may have accessed memory of running grids without check_host(): what of it would be a race from now
 * on is not known (check_host_race.unseen). */
void check_memory_host_unseen(struct check_memory *m);
uint64_t check_memory_unseen(struct check_memory *m); /* how often; NULL: never */
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
	/* Called for a race with an access of the host (check_host()), from any thread, under a lock of the
	 * checker. NULL: such are not wanted. */
	void (*host_race)(void *user, const struct check_host_race *r);
	/* What the host knew when it issued the launch, of the set of grids host_of: check_host_knows(); or NULL */
	struct beside *host_of;
	struct foreign *host_knew;
	void *user;
};

struct check *check_open(const struct check_config *c);
struct event_sink *check_cluster_begin(struct check *k, const struct cluster_info *c);
/* Ends the cluster: detects leaks and incomplete operations, unless it was aborted. The sink is
 * invalid afterwards. */
void check_cluster_end(struct check *k, struct event_sink *sink);
/* Before events of another launch: compares all accesses to global memory so far. No thread may deliver
 * events at that time. */
void check_settle(struct check *k);
/* Has a race between two clusters been found, by all events so far? As above. */
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
	uint32_t host;             /* that of the newest access of the host before it, by its epoch; 0: none */
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
struct beside *check_met_get(struct beside *b); /* another reference */
void check_met_put(struct beside *b); /* NULL is fine */
/* No other thread, of another grid or the host, can have acquired anything from the launch. */
bool check_silent(const struct check *k);
uint32_t check_met_grids(const struct beside *b);
uint32_t check_met_launch(const struct beside *b, uint32_t grid);
/* Is an access of one of these grids ordered after the begin of that one? Before the end of that one,
 * which has ended? Is the begin of the first ordered before the end of the second? */
bool check_met_begun(const struct beside *b, uint32_t grid, const struct check_part *p);
bool check_met_ended(const struct beside *b, uint32_t grid, const struct check_part *p);
bool check_met_passed(const struct beside *b, uint32_t first, uint32_t then);
/* The epoch of the newest access of the host that is before the end of the grid by memory; 0: none. */
uint32_t check_met_host(const struct beside *b, uint32_t grid);
/* ---- the host beside grids that run at the same time (host.h) ---- */

/* Of a race of the host with a grid: the one thing that is missing. */
enum check_host_lacks { CHECK_HOST_NOTHING,
	CHECK_HOST_SCOPE,          /* a release and an acquire would order the two if their scopes were .sys */
	CHECK_HOST_ACQUIRE };      /* the grid has read what the host released, but not acquired it */
struct check_host_race {
	uint32_t launch;           /* the grid */
	uint32_t site;             /* its instruction, and the bytes in conflict */
	uint64_t addr;
	uint32_t bytes;
	bool write, strong;
	uint32_t host_site;
	bool host_write;
	bool host_first;           /* the host's access came first */
	bool unseen;               /* accesses of the host that were not seen may order the two */
	enum check_host_lacks lacks;
};
/* An access of the host, before it is made, while no grid executes. It is compared with what the grids that run
 * have accessed. reads and writes: a read-modify-write. */
struct check_host_access {
	uint64_t addr;
	uint32_t bytes;            /* at most 4096 */
	uint32_t site;
	bool reads, writes;
	/* Does the host know that the launch is complete? */
	bool (*complete)(void *user, uint32_t launch);
	void (*race)(void *user, const struct check_host_race *r); /* as check_config.host_race */
	void *user;
};
struct check_host_result {
	struct beside *of;         /* the set; a reference */
	uint32_t number;           /* check_beside() of its grids */
	struct check_part part;
	bool learned;              /* it has acquired something */
};
/* Does a grid run, or did one that may have released something? Is it the set of these? */
bool check_runs(struct check_memory *m);
bool check_is_running(struct check_memory *m, const struct beside *b);
/* False: no grid runs that it could synchronize with. */
bool check_host(struct check_memory *m, const struct check_host_access *a, struct check_host_result *out);
/* A stream memory operation, or a host function, accesses a word by which it may synchronize with grids that run. */
void check_host_word(struct check_memory *m, uint64_t addr, uint32_t bytes, bool write);
/* Has the host synchronized with a grid by words in [from, end), or may it? */
bool check_host_words(struct check_memory *m, uint64_t from, uint64_t end);
/* From now on, the host may read [from, end) without check_host(), and write it, if it says so. */
void check_host_gives_up(struct check_memory *m, uint64_t from, uint64_t end, bool writes);
/* All that the host did and knows in the set, of which it is a member; for check_known_put(). Does it know the
 * access of a grid? */
struct foreign *check_host_knows(const struct beside *b);
bool check_known(const struct foreign *set, const struct beside *b, const struct check_part *p);
void check_known_put(struct foreign *set); /* NULL is fine */

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
