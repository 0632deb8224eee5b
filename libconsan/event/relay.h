/* relay: one thread makes events, another takes them: a sink that hands what it is
 * told to a sink on a thread of the crew, in order, some KiB later. */
#ifndef CONSAN_RELAY_H
#define CONSAN_RELAY_H

#include "event.h"

struct relay;

/* hand: of the crew, which should rather take them (crew.h). */
struct relay *relay_open(unsigned hand);
void relay_close(struct relay *r); /* NULL is fine; not while it is in use */
/* A sink, for one thread, in front of `to`. NULL: the relay is in use, or nobody of
 * the crew is free. */
struct event_sink *relay_begin(struct relay *r, struct event_sink *to);
/* Once every event has reached it: `to`. Of a sink that is no relay: itself. */
struct event_sink *relay_end(struct event_sink *sink);

#endif
