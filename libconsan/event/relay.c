/* relay: see relay.h. A ring of bytes: the words of an event that are not 0, then what
 * it points at. What costs is each line of cache that goes from one processor to the
 * other: so there are few, and both sides move in strides, out of each other's way. */
#include "relay.h"

#include "libconsan/base/base.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RING (1u << 18)
#define STRIDE 8192u               /* bytes that are told of at once, */
#define FIRST_STRIDE 1024u         /* ... of the first ones, which the reader waits for */

#define LINE 64u                   /* of cache, */
#define LINES 128u                 /* which come by twos */
#define AHEAD 1024u                /* lines so far ahead are sent for */

#define WORDS (sizeof(struct event) / sizeof(uint64_t))
_Static_assert(WORDS < 32 && sizeof(struct event) % sizeof(uint64_t) == 0, "a bit for each word");

/* Only what is set of it goes through the ring. */
union flat {
	struct event e;
	uint64_t word[WORDS];
};

struct parcel {
	uint32_t bytes;            /* in the ring, this included; a multiple of 8 */
	uint32_t words;            /* a bit for each word of the event that follows, in order;
				      none: the ring goes on at its beginning */
	uint64_t word[];
};

struct relay {
	struct event_sink sink;    /* first member */
	struct event_sink *to;
	struct crew_task task;
	unsigned hand;
	atomic_bool used, over;
	char *ring;
	/* What the two sides write for each event, in lines of their own: none is near what the
	 * other one reads for each. */
	_Alignas(LINES) uint64_t at, room; /* the writer's: bytes so far; read, when it last looked */
	_Alignas(LINES) _Atomic uint64_t written;
	_Alignas(LINES) _Atomic uint64_t read;
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

static void fetch_to_write(struct relay *r, uint64_t at)
{
	__builtin_prefetch(r->ring + (at + AHEAD) % RING, 1);
}

static struct parcel *room_for(struct relay *r, uint32_t bytes)
{
	uint32_t left = RING - (uint32_t)(r->at % RING);
	struct parcel *p;

	if (left < bytes) {
		wait_read(r, r->at + left < RING ? 0 : r->at + left - RING);
		p = (struct parcel *)(r->ring + r->at % RING);
		*p = (struct parcel){ .bytes = left };
		r->at += left;
	}
	wait_read(r, r->at + bytes < RING ? 0 : r->at + bytes - RING);
	return (struct parcel *)(r->ring + r->at % RING);
}

static uint32_t whole(size_t bytes)
{
	return (uint32_t)(bytes + 7) & ~7u;
}

/* What e points at, of which the ring has a copy: bytes, or 0. */
struct behind { size_t spans, gspans, regs, lane_addr, lane_src, text; };

static struct behind behind(const struct event *e)
{
	const size_t lanes = 32 * sizeof *e->lane_addr;

	return (struct behind){
		.spans = e->nspans * sizeof *e->spans,
		.gspans = e->ngspans * sizeof *e->gspans,
		.regs = (e->nregs_d + (size_t)e->nregs_a) * sizeof *e->regs,
		.lane_addr = e->lane_addr ? lanes : 0,
		.lane_src = e->lane_src ? lanes : 0,
		.text = e->text ? strlen(e->text) + 1 : 0,
	};
}

static const void *put(char **to, const void *from, size_t bytes)
{
	char *at = *to;

	if (!bytes)
		return NULL;
	memcpy(at, from, bytes);
	*to += whole(bytes);
	return at;
}

/* Pointers without anything behind them go. */
static uint32_t words_of(union flat *f, const struct behind *b)
{
	uint32_t words = 0;

	f->e.spans = b->spans ? f->e.spans : NULL;
	f->e.gspans = b->gspans ? f->e.gspans : NULL;
	f->e.regs = b->regs ? f->e.regs : NULL;
	for (unsigned k = 0; k < WORDS; k++)
		words |= (uint32_t)(f->word[k] != 0) << k;
	return words;
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct relay *r = (struct relay *)sink;
	const struct behind b = behind(e);
	union flat f = { *e };
	const uint32_t words = words_of(&f, &b), n = (uint32_t)__builtin_popcount(words);
	const uint32_t bytes = (uint32_t)(sizeof(struct parcel) + n * sizeof(uint64_t)) +
		whole(b.spans) + whole(b.gspans) + whole(b.regs) + whole(b.lane_addr) +
		whole(b.lane_src) + whole(b.text);
	struct parcel *p;
	uint32_t i = 0;
	char *to;

	if (bytes > RING / 4) { /* by hand, when the other side has nothing to do */
		wait_read(r, r->at);
		r->to->event(r->to, e);
		return;
	}
	fetch_to_write(r, r->at);
	fetch_to_write(r, r->at + LINE);
	p = room_for(r, bytes);
	p->bytes = bytes;
	p->words = words;
	to = (char *)&p->word[n];
	f.e.spans = put(&to, e->spans, b.spans);
	f.e.gspans = put(&to, e->gspans, b.gspans);
	f.e.regs = put(&to, e->regs, b.regs);
	f.e.lane_addr = put(&to, e->lane_addr, b.lane_addr);
	f.e.lane_src = put(&to, e->lane_src, b.lane_src);
	f.e.text = put(&to, e->text, b.text);
	for (uint32_t left = words; left; left &= left - 1)
		p->word[i++] = f.word[__builtin_ctz(left)];
	r->at += bytes;
	if (r->at - atomic_load_explicit(&r->written, memory_order_relaxed) >=
			(r->at < STRIDE ? FIRST_STRIDE : STRIDE))
		publish(r);
}

/* ---- the reader ---- */

static void unpack(const struct parcel *p, union flat *f)
{
	uint32_t i = 0;

	*f = (union flat){ .word = { 0 } };
	for (uint32_t left = p->words; left; left &= left - 1)
		f->word[__builtin_ctz(left)] = p->word[i++];
}

static void take(void *user)
{
	struct relay *r = user;
	uint64_t at = 0, fetched = 0, until;
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
			union flat f;

			/* what is not published the writer would have to take back */
			for (; fetched < until && fetched < at + AHEAD; fetched += LINE)
				__builtin_prefetch(r->ring + fetched % RING, 0);
			at += p->bytes;
			if (!p->words)
				continue;
			unpack(p, &f);
			r->to->event(r->to, &f.e);
		}
		atomic_store_explicit(&r->read, at, memory_order_release);
	}
}

/* ---- both ---- */

struct relay *relay_open(unsigned hand)
{
	struct relay *r = base_alloc_aligned(LINES, sizeof *r);

	r->hand = hand;
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
	r->task = (struct crew_task){ .work = take, .arg = r, .hand = r->hand };
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
