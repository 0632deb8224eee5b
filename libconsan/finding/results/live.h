/* live: what is known of the launches that run, in a page of a file next to the records of a process.
 * The process counts the clusters that have ended in it, so that the number is known however the
 * process ends; the launches that were issued and wait in a queue, which have no record yet, and which of them are to be
 * checked; and the records that could not be written, as on a full disk. The page is allocated at once: a full
 * disk does not matter later. */
#ifndef CONSAN_RESULTS_LIVE_H
#define CONSAN_RESULTS_LIVE_H

#include "results.h"

struct results_live;
/* The page of the record file `path`, of a session (append.h). NULL: it cannot be created. */
struct results_live *live_create(const char *path, uint64_t session);
/* path: removes the file, as nothing more than the records is to be known; unless records were lost, or
 * launches wait.
 * NULL: another process goes on with it. */
void live_close(struct results_live *v, const char *path);

/* All are thread-safe, and do nothing if v is NULL. `whole` is the number of clusters. Of more
 * launches at once than the page has room for, some are not counted. */
void live_begin(struct results_live *v, uint32_t launch, uint64_t whole);
void live_cluster(struct results_live *v, uint32_t launch);
void live_end(struct results_live *v, uint32_t launch);
void live_lost(struct results_live *v);
void live_issued(struct results_live *v);
void live_over(struct results_live *v); /* one of these has begun, or never will */
void live_next(struct results_live *v, const struct results_next *next);

/* What was left of the page of the record file `path`. False: nothing. */
struct live_left {
	uint64_t session, lost;
	uint64_t waiting;           /* launches that had not begun and were to be checked */
	struct { uint32_t launch; uint64_t done, whole; } launch[64];
	unsigned n;
};
bool live_read(const char *path, struct live_left *to);

#endif
