/* schedules: which schedules of the cpu backend show what another run has found.
 *
 * The schedule of a GPU is one of many, and so is the one in which the cpu backend runs a
 * kernel by default. Of two accesses that are not ordered either may come first; which rule is
 * reported, and how a broken synchronization ends, depends on that. So the two backends agree
 * if the cpu backend has a schedule that shows the same: the same rule at the same lines.
 * Which bug must be found is decided by planted_bugs.c and specimens.c. */
#ifndef CONSAN_TESTS_GPU_SCHEDULES_H
#define CONSAN_TESTS_GPU_SCHEDULES_H

#include "runner.h"

#include <jansson.h>

/* A program to run with --backend=cpu: shell words */
struct schedules {
	const struct runner *runner;
	const char *options;  /* of consan-run */
	const char *program;  /* with its arguments */
	const char *known;    /* "+CS120": rules that records may show and the executor does not
				 (emulated.def), which are not compared; or NULL */
};

struct shown {
	/* WRONG: no schedule shows some finding, or a hang, although this run was not on a GPU;
	 * OTHER: no schedule shows some finding; SCHEDULE: schedules show all but hangs;
	 * HANGS: all is hangs that no schedule shows; NOT_SEEN: there is nothing to compare */
	enum outcome outcome;
	struct text words;  /* which schedules show it, and what none shows; the caller frees it */
};

/* found: the run's report. Notes and CS901 are not compared: an instrumented run reports a read
 * of bytes that were not written, the executor the use of the value. */
struct shown schedules_show(const struct schedules *s, const json_t *found);
/* The first schedule that shows nothing above a note, as options; NULL: there is none. */
const char *schedules_silent(const struct schedules *s);

#endif
