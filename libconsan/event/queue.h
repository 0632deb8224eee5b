/* queue: passes the events of a cluster from the thread that produces them to a worker of the
 * pool (base/pool.h), so that decoding records and checking events overlap. */
#ifndef CONSAN_EVENT_QUEUE_H
#define CONSAN_EVENT_QUEUE_H

#include "event.h"

/* A sink in front of `to`. It copies each event; a worker passes the copies to `to` in the same
 * order. If the queue is full and no worker has begun to, the producer passes them itself. A
 * field that the consumer writes (unwritten), or that calls the producer (stored), is NULL in the
 * copies. */
struct event_sink *event_queue_begin(struct event_sink *to);
/* Returns `to` once all events have reached it; frees the queue. */
struct event_sink *event_queue_end(struct event_sink *sink);

#endif
