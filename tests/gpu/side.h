/* side: shell commands run side by side, for the programs of this folder. */
#ifndef CONSAN_TESTS_GPU_SIDE_H
#define CONSAN_TESTS_GPU_SIDE_H

#include <stddef.h>

struct side_job {
	char *command; /* the caller's */
	char *output;  /* its stdout, to be freed */
	int status;    /* as it exits; -1: a signal ended it */
};

/* at_once: 0: one for each processor. done: called here for one after the other, in order,
 * as soon as it and all before it have ended. */
void side_run(struct side_job *job, size_t n, unsigned at_once,
	void (*done)(void *user, size_t i), void *user);

#endif
