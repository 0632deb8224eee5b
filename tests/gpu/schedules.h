/* schedules: which schedules of the cpu backend show what a run on a GPU has found.
 *
 * A GPU's schedule is one of many, and so is the one in which the cpu backend runs a kernel
 * by default. Of two accesses that nothing orders either may come first, and which rule is
 * named, and what ends a broken hand-over, depends on that. So the two backends agree if the
 * cpu backend has a schedule that shows the same: the same rule at the same lines. Which bug
 * is to be found is for twins.c and specimens.c to say. */
#ifndef CONSAN_TESTS_GPU_SCHEDULES_H
#define CONSAN_TESTS_GPU_SCHEDULES_H

#include "libconsan/base/base.h"
#include "side.h"

#include <jansson.h>

/* The run under --backend=cpu: a shell command, and where further options belong. */
struct schedules {
	const char *before, *after;
	const char *folder; /* for a report at a time */
	const char *known;  /* "+CS120": rules that records may show and the executor does not
			       (emulated.def), which are not compared; or NULL */
};

struct shown {
	/* OTHER: something is shown by no schedule; else SCHEDULE: all is, but for a hang; else
	 * HANGS; NOT_SEEN: there is nothing to compare */
	enum outcome outcome;
	bool hangs;         /* as no schedule shows */
	struct text words;  /* under which schedules; and what none shows. To be freed */
};

/* there: the run's report. Not compared are notes and CS901: an instrumented run speaks of
 * a read of what nobody wrote, the executor of its use. */
struct shown schedules_show(const struct schedules *s, const json_t *there);
/* The first schedule that shows nothing above a note, as options; NULL: none does. */
const char *schedules_silent(const struct schedules *s);

#endif
