/* recorder: stands between whoever runs a kernel and whoever checks it, and
 * remembers the last steps of synchronisation of a cluster, so that a finding
 * can tell its story. Bounded, and forgetful by design: nothing is judged by it.
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

/* Those of a session: thread-safe; a recorder is used again by later clusters.
 * steps: how many a history holds at most; 0: no histories are made. */
struct recorders;
struct recorders *recorders_open(uint32_t steps);
void recorders_close(struct recorders *all); /* NULL is fine */

/* NULL if no histories are made; the functions below then hand on what they got. */
struct recorder *recorder_begin(struct recorders *all, const struct cluster_info *c);
struct event_sink *recorder_sink(struct recorder *r, struct event_sink *next);
struct event_sink *recorder_next(struct event_sink *sink, struct recorder **r);
void recorder_end(struct recorder *r);

/* The story of a finding that the event at hand brought up; from the thread that
 * delivers the events. NULL without a recorder. */
struct history *recorder_history(struct recorder *r, const struct finding *f);

/* The story of a finding about global memory and two clusters, both of which are
 * over. NULL: it is another finding, or one of them is not remembered. */
struct history *recorders_history(struct recorders *all, const struct finding *f);
/* The launch is over: nothing is told of its clusters any more. */
void recorders_forget(struct recorders *all);

#endif
