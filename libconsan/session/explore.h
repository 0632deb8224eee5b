/* explore: one launch under further schedules.
 *
 * Each schedule runs in a forked copy of the process, so that it starts from the same memory as
 * the launch itself, and only its findings remain. Memory that the process shares with others
 * (MAP_SHARED) is not copied. */
#ifndef CONSAN_EXPLORE_H
#define CONSAN_EXPLORE_H

#include "libconsan/base/base.h"
#include "libconsan/exec/exec.h"
#include "libconsan/finding/finding.h"

struct explored {
	VEC(struct finding) finding; /* different ones, in the order in which the schedules ran */
	unsigned lost;               /* schedules whose process ended early */
	unsigned waited;             /* schedules that were stopped: EXPLORE_WAITS, _LIMIT */
	bool limited;                /* one was EXPLORE_LIMIT: no further one is tried */
	uint64_t schedules, seeds;   /* that ran to their end */
	bool all;                    /* the systematic search found no further schedule */
};

/* How the launch ended. A copy of the process has no other threads: a launch that polls what the
 * host or another launch writes waits for ever there. If it stores meanwhile, its state never
 * repeats, and only a limit of its operations ends it. */
enum explore_end {
	EXPLORE_ENDED,
	EXPLORE_WAITS, /* no thread can go on */
	EXPLORE_LIMIT, /* it may wait, and has executed EXPLORE_OPS */
};

#define EXPLORE_OPS (1u << 24)

struct explorer {
	/* Runs the launch with this seed, and with this controlled schedule unless it is NULL. Sets
	 * *found, which must stay valid afterwards, and returns the number of findings. */
	size_t (*run)(void *user, uint64_t seed, const struct exec_control *control,
		const struct finding *const **found, enum explore_end *end);
	void *user;
	/* Takes each new finding at once: the process may be killed before the last schedule. May be NULL. */
	void (*found)(void *taker, const struct finding *f);
	void *taker;
	uint64_t seed;               /* of the launch itself */
	unsigned part, parts;        /* of the schedules, those of part `part`, from 1: no other part has them */
};

/* Systematic search (search.c): controlled schedules with at most FINDING_SWITCHES switches; `most`
 * bounds how many run of this part. */
void explore_search(const struct explorer *x, uint64_t most, struct explored *out);
/* The first n seeds of this part after that of the launch. */
void explore_seeds(const struct explorer *x, uint64_t n, struct explored *out);
/* Findings through a pipe between copies of the process. False: the other end is closed. */
bool explore_put(int fd, const struct finding *const *f, size_t n);
bool explore_get(int fd, struct explored *out);
void explored_free(struct explored *x);

/* Runs one schedule in a copy of the process and adds its findings. control->steps, if wanted, is
 * filled. False: the copy ended early, or the launch was stopped. */
bool explore_one(const struct explorer *x, uint64_t seed, struct exec_control *control,
	struct explored *out);

/* Does the process share memory with others that kernels can access? A schedule that is tried would
 * change it. */
bool explore_shares_memory(void);

/* The option `schedule`. */
struct schedule {
	uint32_t launch;
	struct exec_switch at[8];
	size_t n;
	bool reverse;
};
bool schedule_parse(const char *text, struct schedule *s);
void schedule_format(char *out, size_t n, uint32_t launch, const struct exec_control *c);

#endif
