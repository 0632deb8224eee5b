/* relay: see relay.h. A ring of bytes: an event, then what it points at. Both sides
 * move in strides, as a line of cache that both hold costs more than an event. */
#include "relay.h"

#include "base.h"
#include "crew.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RING (1u << 20)
#define STRIDE 4096u               /* bytes that are told of at once */

struct parcel {
	uint32_t bytes;            /* in the ring, this included */
	bool empty;                /* the ring goes on at its beginning */
	struct event e;
};

struct relay {
	struct event_sink sink;    /* first member */
	struct event_sink *to;
	struct crew_task task;
	atomic_bool used, over;
	char *ring;
	uint64_t at, room;         /* the writer's: bytes so far; read, when it last looked */
	char apart[64];            /* what the two sides write, in lines of their own */
	_Atomic uint64_t written;
	char apart_too[64];
	_Atomic uint64_t read;
};

/* ---- the writer ---- */

static void publish(struct relay *r)
{
	atomic_store_explicit(&r->written, r->at, memory_order_release);
}

static void wait_read(struct relay *r, uint64_t least)
{
	unsigned count = 0;

	if (r->room >= least)
		return;
	publish(r);
	while ((r->room = atomic_load_explicit(&r->read, memory_order_acquire)) < least)
		crew_pause(&count);
}

static struct parcel *room_for(struct relay *r, uint32_t bytes)
{
	uint32_t left = RING - (uint32_t)(r->at % RING);
	struct parcel *p;

	if (left < bytes) {
		wait_read(r, r->at + left < RING ? 0 : r->at + left - RING);
		p = (struct parcel *)(r->ring + r->at % RING);
		p->bytes = left;
		p->empty = true;
		r->at += left;
	}
	wait_read(r, r->at + bytes < RING ? 0 : r->at + bytes - RING);
	p = (struct parcel *)(r->ring + r->at % RING);
	p->bytes = bytes;
	p->empty = false;
	return p;
}

static uint32_t whole(size_t bytes)
{
	return (uint32_t)(bytes + 15) & ~15u;
}

static const void *put(char **to, const void *from, size_t bytes)
{
	char *at = *to;

	if (!from)
		return NULL;
	memcpy(at, from, bytes);
	*to += whole(bytes);
	return at;
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct relay *r = (struct relay *)sink;
	const size_t spans = e->nspans * sizeof *e->spans, gspans = e->ngspans * sizeof *e->gspans;
	const size_t regs = (e->nregs_d + (size_t)e->nregs_a) * sizeof *e->regs;
	const size_t lanes = 32 * sizeof *e->lane_addr, text = e->text ? strlen(e->text) + 1 : 0;
	const uint32_t bytes = whole(sizeof(struct parcel)) + whole(spans) + whole(gspans) + whole(regs) +
		(e->lane_addr ? whole(lanes) : 0) + (e->lane_src ? whole(lanes) : 0) + whole(text);
	struct parcel *p;
	char *to;

	if (bytes > RING / 4) { /* by hand, when the other side has nothing to do */
		wait_read(r, r->at);
		r->to->event(r->to, e);
		return;
	}
	p = room_for(r, bytes);
	to = (char *)p + whole(sizeof *p);
	p->e = *e;
	p->e.spans = put(&to, e->spans, spans);
	p->e.gspans = put(&to, e->gspans, gspans);
	p->e.regs = put(&to, e->regs, regs);
	p->e.lane_addr = put(&to, e->lane_addr, lanes);
	p->e.lane_src = put(&to, e->lane_src, lanes);
	p->e.text = put(&to, e->text, text);
	r->at += bytes;
	if (r->at - atomic_load_explicit(&r->written, memory_order_relaxed) >= STRIDE)
		publish(r);
}

/* ---- the reader ---- */

static void take(void *user)
{
	struct relay *r = user;
	uint64_t at = 0, until;
	unsigned count = 0;

	for (;;) {
		bool over = atomic_load_explicit(&r->over, memory_order_acquire);

		until = atomic_load_explicit(&r->written, memory_order_acquire);
		if (at == until && over)
			return;
		if (at == until)
			crew_pause(&count);
		while (at < until) {
			const struct parcel *p = (const struct parcel *)(r->ring + at % RING);

			at += p->bytes;
			if (!p->empty)
				r->to->event(r->to, &p->e);
		}
		atomic_store_explicit(&r->read, at, memory_order_release);
	}
}

/* ---- both ---- */

struct relay *relay_open(void)
{
	struct relay *r = base_alloc(sizeof *r);

	r->ring = base_alloc(RING);
	memset(r->ring, 1, RING); /* the system gives it now, not when it is needed */
	return r;
}

void relay_close(struct relay *r)
{
	if (!r)
		return;
	free(r->ring);
	free(r);
}

struct event_sink *relay_begin(struct relay *r, struct event_sink *to)
{
	bool no = false;

	if (!r || !atomic_compare_exchange_strong(&r->used, &no, true))
		return NULL;
	r->sink = (struct event_sink){ .event = on_event, .want_global = to->want_global };
	r->to = to;
	r->at = r->room = 0;
	r->written = r->read = 0;
	r->over = false;
	r->task = (struct crew_task){ take, r, false, false };
	if (crew_give(&r->task))
		return &r->sink;
	r->used = false;
	return NULL;
}

struct event_sink *relay_end(struct event_sink *sink)
{
	struct relay *r = (struct relay *)sink;
	struct event_sink *to;

	if (sink->event != on_event)
		return sink;
	to = r->to;
	publish(r);
	atomic_store_explicit(&r->over, true, memory_order_release);
	crew_wait(&r->task);
	r->used = false;
	return to;
}
