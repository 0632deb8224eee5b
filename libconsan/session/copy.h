/* copy: what a process and its forked copies send each other, by pipes. */
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
/* Waits until the copy has ended. */
void copy_reap(pid_t pid);

#endif
