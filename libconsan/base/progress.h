/* progress: how far the launch at hand is, in a page of memory that the watched
 * processes share with consan-run. They write, it shows one line on the terminal.
 * Figures only: nothing waits for them, nothing is decided by them. */
#ifndef CONSAN_PROGRESS_H
#define CONSAN_PROGRESS_H

#include "base.h"

#define PROGRESS_ENV "CONSAN_PROGRESS" /* the file of the page; not set: nobody looks */

struct progress {
	char kernel[128];       /* demangled */
	uint64_t begun;         /* CLOCK_MONOTONIC, ns; 0: nothing runs */
	uint64_t done, total;   /* clusters of the launch */
	uint64_t findings;      /* of all processes so far */
};

/* Maps the page of a file, which is made if it is not there. NULL: not possible, or
 * path is NULL or "". */
struct progress *progress_open(const char *path);
void progress_close(struct progress *p); /* NULL is fine, as below */

/* Thread-safe, and cheap. */
void progress_launch(struct progress *p, const char *kernel, uint64_t clusters);
void progress_cluster(struct progress *p);
void progress_finding(struct progress *p);
void progress_idle(struct progress *p);

/* The line as of now, at most `width` columns; false: nothing worth a line, as when a
 * launch is younger than a second. */
bool progress_line(const struct progress *p, uint64_t now, unsigned width, struct text *t);
uint64_t progress_now(void);

#endif
