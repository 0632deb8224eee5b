/* code: encodes an event as bytes, and decodes it, for save.c and load.c. An event is encoded as
 * the difference from the last one of its kind. */
#ifndef CONSAN_EVENT_CODE_H
#define CONSAN_EVENT_CODE_H

#include "libconsan/base/base.h"
#include "event.h"

/* ---- numbers ---- */
void code_put(struct text *t, uint64_t v);          /* 7 bits a byte */
void code_put_string(struct text *t, const char *s); /* NULL and "" are the same */

/* At its end a reader returns zeros and sets bad. */
struct code_reader {
	const unsigned char *at, *end;
	bool bad;
};
uint64_t code_get(struct code_reader *r);
/* Copied into the arena, in its visible form. */
const char *code_get_string(struct code_reader *r, struct arena *a);

/* ---- events ---- */

/* The last event of each kind; zeroed at the start of a chunk by writer and reader. */
struct event_past {
	struct event last[EV_COUNT];
};
void event_encode(struct text *t, struct event_past *past, const struct event *e);

/* Holds the arrays of a decoded event until the next one is decoded. */
struct event_arrays {
	uint64_t lanes[32], sources[32];
	VEC(struct ev_span) spans;
	VEC(struct ev_gspan) gspans;
	VEC(struct ev_area) areas;
	VEC(uint32_t) regs[2];  /* an event has at most two lists */
	unsigned nregs;
	struct text text;
};
/* False: the bytes are damaged. */
bool event_decode(struct code_reader *r, struct event_past *past, struct event_arrays *a,
	struct event *e);
void event_arrays_free(struct event_arrays *a);

#endif
