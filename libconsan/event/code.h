/* event_code: one event as bytes and back, for event_io.c. An event is written
 * as what differs from the one of its kind before it. */
#ifndef CONSAN_EVENT_CODE_H
#define CONSAN_EVENT_CODE_H

#include "libconsan/base/base.h"
#include "event.h"

/* ---- numbers ---- */
void code_put(struct text *t, uint64_t v);          /* 7 bits a byte */
void code_put_string(struct text *t, const char *s); /* NULL and "" are the same */

/* A reader never passes its end: it returns zeros and sets bad. */
struct code_reader {
	const unsigned char *at, *end;
	bool bad;
};
uint64_t code_get(struct code_reader *r);
/* Copied into the arena. */
const char *code_get_string(struct code_reader *r, struct arena *a);

/* ---- events ---- */

/* The events before; zeroed at the start of a chunk, on both sides. */
struct event_past {
	struct event last[EV_COUNT];
};
void event_encode(struct text *t, struct event_past *past, const struct event *e);

/* Where the arrays of a decoded event live until the next one. */
struct event_room {
	uint64_t lane_addr[32], lane_src[32];
	VEC(struct ev_span) spans;
	VEC(struct ev_gspan) gspans;
	VEC(uint32_t) regs;
	struct text text;
};
/* False: the bytes are damaged. */
bool event_decode(struct code_reader *r, struct event_past *past,
	struct event_room *room, struct event *e);
void event_room_free(struct event_room *room);

#endif
