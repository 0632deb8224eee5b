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
/* Until when, on that clock, to wait for a copy that limits itself to so many seconds of processor time.
 * It may be stuck all the same: other threads may have held locks at the moment of the fork. */
double copy_patience(double seconds);
/* Waits until something can be read. False: the copy `pid` has used so many seconds of processor
 * time, or has used none for as long on the clock as a process that can run waits for a processor. */
bool copy_await(int fd, pid_t pid, double seconds);
/* Like fork(). The copy does not run the program's signal handlers, and ends with the thread that
 * made it. Faults still end it. */
pid_t copy_fork(void);
/* Waits until the copy has ended. Returns the seconds of processor time that it and the processes
 * that it waited for have used. */
double copy_reap(pid_t pid);

#endif
