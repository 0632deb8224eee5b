/* recorder: an event sink between the executor and the checker that keeps the last
 * synchronization steps of a cluster, from which findings get their history. Its memory is
 * bounded, so it drops old steps; the checker does not use it.
 *
 *     info.recorder = recorder_begin(all, info);
 *     sink = recorder_sink(info.recorder, check_cluster_begin(check, info));
 *     ... events go to sink ...
 *     check_cluster_end(check, recorder_next(sink));
 *     recorder_end(sink); */
#ifndef CONSAN_RECORDER_H
#define CONSAN_RECORDER_H

#include "libconsan/event/event.h"
#include "history.h"

/* All recorders of a session. Thread-safe. A recorder is reused for later clusters.
 * steps: the maximum of a history; 0: no histories are made. */
struct recorders;
struct recorders *recorders_open(uint32_t steps);
void recorders_close(struct recorders *all); /* all may be NULL */

/* NULL if no histories are made. The functions below accept NULL; recorder_sink() then returns
 * `next`. */
struct recorder *recorder_begin(struct recorders *all, const struct cluster_info *c);
struct event_sink *recorder_sink(struct recorder *r, struct event_sink *next);
/* The `next` and the recorder of a sink made by recorder_sink(). */
struct event_sink *recorder_next(struct event_sink *sink, struct recorder **r);
void recorder_end(struct recorder *r);

/* The history of a finding that the current event caused. To be called by the thread that
 * delivers the events. NULL without a recorder. The caller gets a reference. */
struct history *recorder_history(struct recorder *r, const struct finding *f);

/* The history of a finding about global memory and two clusters that have ended. NULL if it is
 * another finding, or if a cluster's steps were not kept. The caller gets a reference. */
struct history *recorders_history(struct recorders *all, const struct finding *f);
/* Drops what is kept of ended clusters, at the end of a launch. */
void recorders_forget(struct recorders *all);

#endif
