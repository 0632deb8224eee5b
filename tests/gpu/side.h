/* side: shell commands run side by side, and what the programs of this folder that do so
 * have in common: their options, and how they count. */
#ifndef CONSAN_TESTS_GPU_SIDE_H
#define CONSAN_TESTS_GPU_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct side_job {
	char *command; /* the caller's */
	char *output;  /* its stdout, to be freed */
	int status;    /* as it exits; -1: a signal ended it */
};

/* at_once: 0: one for each processor. done: called here for one after the other, in order,
 * as soon as it and all before it have ended. */
void side_run(struct side_job *job, size_t n, unsigned at_once,
	void (*done)(void *user, size_t i), void *user);
/* One alone, here. */
void side_run_one(struct side_job *job);

/* PROGRAM [--sanitizer] [--all] [--seed=N] [--jobs=N] [--log=FILE] BUILD BACKEND [FILTER [I/N]] */
struct side_options {
	const char *build, *backend;
	const char *filter;    /* what a name must contain; "": all */
	unsigned part, parts;  /* the part-th of so many parts, from 1 */
	unsigned at_once;
	const char *seed;      /* of the schedule under BACKEND, where one can choose; "0" */
	bool gpu;
	bool any_schedule;     /* not the default one: on a GPU, or by the seed */
	bool sanitizer;
	bool all;              /* all that is found is judged, not only what has to be */
	FILE *log;             /* or NULL */
};
/* False, and says how it is called: it is called wrongly. */
bool side_options(struct side_options *to, int argc, char **argv);

enum outcome {
#define OUTCOME(id, word, meaning) id,
#include "outcome.def"
#undef OUTCOME
	OUTCOMES
};
const char *outcome_word(enum outcome o);
/* "12 as expected, 1 wrong": those of which there are any. */
void outcome_print(FILE *to, const unsigned count[OUTCOMES]);
/* The exit status of a program. */
int outcome_status(const unsigned count[OUTCOMES]);

#endif
