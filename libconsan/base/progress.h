/* progress: the progress of the current launch, in a page of memory that consan-run shares
 * with the processes of the program. They write, and consan-run prints one line on the
 * terminal. No decision depends on these numbers. */
#ifndef CONSAN_PROGRESS_H
#define CONSAN_PROGRESS_H

#include "base.h"

#define PROGRESS_ENV "CONSAN_PROGRESS" /* path of the shared file; not set: no progress line */

struct progress {
	char kernel[128];       /* demangled */
	uint64_t begun;         /* start of the launch, CLOCK_MONOTONIC in ns; 0: none runs */
	uint64_t done, total;   /* clusters of the launch */
	uint64_t findings;      /* of all processes */
};

/* Maps the file, creating it if necessary. NULL: an error, or path is NULL or "". */
struct progress *progress_open(const char *path);
void progress_close(struct progress *p);

/* Thread-safe. All accept NULL. */
void progress_launch(struct progress *p, const char *kernel, uint64_t clusters);
void progress_cluster(struct progress *p);
void progress_finding(struct progress *p);
void progress_idle(struct progress *p);

/* Appends the line for time `now` (progress_now()), at most `width` columns. False: nothing to
 * show; a launch is shown after one second. */
bool progress_line(const struct progress *p, uint64_t now, unsigned width, struct text *t);
uint64_t progress_now(void); /* CLOCK_MONOTONIC, ns */
double progress_seconds(void); /* the same clock, in seconds */

#endif
