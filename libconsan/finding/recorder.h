/* recorder: keeps the last synchronization steps of a cluster, from which findings get their history.
 * Its memory is bounded, so it drops old steps; the checker decides nothing by it.
 *
 *     info.recorder = recorder_begin(all, info);
 *     sink = check_cluster_begin(check, info);
 *     ... events go to sink; the checker passes them to recorder_event() ...
 *     check_cluster_end(check, sink), which calls recorder_end() */
#ifndef CONSAN_RECORDER_H
#define CONSAN_RECORDER_H

#include "libconsan/event/event.h"
#include "history.h"

/* All recorders of a session. Thread-safe. A recorder is reused for later clusters.
 * steps: the maximum of a history; 0: no histories are made. */
struct recorders;
struct recorders *recorders_open(uint32_t steps);
void recorders_close(struct recorders *all); /* all may be NULL */

/* The last steps of a cluster that has ended; references are counted. */
struct recorded;

/* NULL if no histories are made. The functions below accept NULL. */
struct recorder *recorder_begin(struct recorders *all, const struct cluster_info *c);
void recorder_event(struct recorder *r, const struct event *e);
/* The cluster has ended. global: its last steps are kept for findings about two clusters. same: those
 * of a cluster with the same events, whose steps the recorder has not got; NULL: it has got all.
 * again: the steps will be those of other clusters, too: returns them, a reference. */
struct recorded *recorder_end(struct recorder *r, bool global, struct recorded *same, bool again);
void recorded_put(struct recorded *s); /* NULL is fine */

/* The history of a finding that the current event caused. To be called by the thread that
 * delivers the events. NULL without a recorder. The caller gets a reference. */
struct history *recorder_history(struct recorder *r, const struct finding *f);

/* The history of a finding about global memory and two clusters that have ended. NULL if it is
 * another finding, or if a cluster's steps were not kept. The caller gets a reference. */
struct history *recorders_history(struct recorders *all, const struct finding *f);
/* Drops what is kept of ended clusters, at the end of a launch. */
void recorders_forget(struct recorders *all);

#endif
