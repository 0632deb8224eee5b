/* explore: one launch under further schedules.
 *
 * Each schedule runs in a forked copy of the process, so that it starts from the same memory as
 * the launch itself, and only its findings remain. Memory that the process shares with others
 * (MAP_SHARED) is not copied. */
#ifndef CONSAN_EXPLORE_H
#define CONSAN_EXPLORE_H

#include "libconsan/base/base.h"
#include "libconsan/finding/finding.h"

struct explored {
	VEC(struct finding) finding; /* in the order of the seeds */
	unsigned lost;               /* schedules whose process ended early */
};

/* Calls run() for each of the n seeds after `seed`, in a copy of the process. run() sets *found
 * and returns the number of findings; *found must stay valid after run() has returned. */
void explore(uint64_t seed, uint64_t n,
	size_t (*run)(void *user, uint64_t seed, const struct finding *const **found),
	void *user, struct explored *out);
void explored_free(struct explored *x);

#endif
