/* late: events of a run in which asynchronous operations complete as in GPU mode. */
#ifndef CONSAN_TESTS_LATE_H
#define CONSAN_TESTS_LATE_H

/* Copies the events saved in `from` to `to`, but each MBARRIER_SIGNAL to the first wait that
 * returns because of it, or to the end: that is when the decoder lets operations complete, as a GPU
 * records no completion. */
void late_copy(const char *from, const char *to);

#endif
