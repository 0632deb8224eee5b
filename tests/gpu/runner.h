/* runner: runs shell commands in parallel; the options and the counting that the programs of
 * this folder share that judge many runs. */
#ifndef CONSAN_TESTS_GPU_RUNNER_H
#define CONSAN_TESTS_GPU_RUNNER_H

#include "libconsan/base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct runner_job {
	char *command; /* the caller's */
	char *output;  /* its stdout; the caller frees it */
	int status;    /* its exit status; -1: a signal ended it */
};

/* at_once: 0: one for each processor. done: called in this thread, in order, for each job
 * after it and all before it have ended. */
void runner_run(struct runner_job *job, size_t n, unsigned at_once,
	void (*done)(void *user, size_t i), void *user);
/* Runs one job in this thread. */
void runner_run_one(struct runner_job *job);

enum outcome {
#define OUTCOME(id, word, meaning) id,
#include "outcome.def"
#undef OUTCOME
	OUTCOMES
};
const char *outcome_word(enum outcome o);

/* PROGRAM [--sanitizer] [--all] [--seed=N] [--jobs=N] [--log=FILE] BUILD BACKEND [FILTER [I/N]] */
struct runner {
	const char *build, *backend;
	const char *filter;    /* what a name must contain; "": all */
	unsigned part, parts;  /* run the part-th of so many parts, from 1 */
	unsigned at_once;
	const char *seed;      /* of the schedule under BACKEND, where it can be chosen; "0" */
	bool gpu;
	bool any_schedule;     /* not the default one: on a GPU, or by the seed */
	bool sanitizer;
	bool all;              /* judge all that is found, not only what has to be */
	FILE *log;             /* or NULL */
	char folder[32];       /* for reports */
	unsigned count[OUTCOMES];
};
/* Reads the options and makes the folder. False if they are wrong; prints the usage then. */
bool runner_begin(struct runner *to, int argc, char **argv);
/* Prints "12 as expected, 1 wrong", each outcome that occurred; removes the folder. Returns the
 * program's exit status. */
int runner_end(struct runner *r);

/* Why a run on a GPU may show nothing: the GPU stopped the kernel. NULL: no such message in
 * `text`, which is the program's output or why a launch counts as not checked. */
const char *runner_why_stopped(const char *text);

#endif
