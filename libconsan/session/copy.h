/* copy: forked copies of the process, and what they send each other by pipes. */
#ifndef CONSAN_COPY_H
#define CONSAN_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* False: the other end is closed. */
bool copy_put(int fd, const void *at, size_t n);
/* Waits for n bytes. until: on the clock of progress_seconds(); 0: no limit. False: the other end
 * was closed before, or the time is over. */
bool copy_get(int fd, void *at, size_t n, double until);
/* Like fork(). The copy does not run the program's signal handlers, and ends with the thread that
 * made it. Faults still end it. */
pid_t copy_fork(void);
/* Waits until the copy has ended. */
void copy_reap(pid_t pid);

#endif
