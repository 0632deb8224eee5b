/* queue: see queue.h. Events lie in blocks, which the producer fills in a ring and one thread at
 * a time empties in the same order. */
#include "queue.h"
#include "fields.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 4u
#define BLOCK_BYTES 16384u
#define ALIGN 16u

struct block {
	uint32_t bytes;            /* in use; 0: empty */
	_Alignas(ALIGN) char at[BLOCK_BYTES];
};

struct event_queue {
	struct event_sink sink;    /* must be first: the sink is cast to the queue */
	struct event_sink *to;
	struct pool_task task;
	pthread_mutex_t lock;      /* for what follows, except for the blocks */
	pthread_cond_t changed;
	uint32_t filled, passed;   /* blocks so far; block[filled % BLOCKS] is the producer's */
	bool passing;              /* a thread is in pass_blocks() */
	bool closed;
	struct block block[BLOCKS];
};

/* An event in a block: its size, then the event, then its arrays. */
struct entry {
	_Alignas(ALIGN) struct event event;
	uint32_t bytes;
};

/* ---- copies ---- */

/* Bytes of the array in this field, and where its pointer is; 0: no array. */
static uint32_t array_of(struct event *e, const struct event_field *f, const void ***pointer)
{
	void *field = (char *)e + f->at;

	switch (f->type) {
	case TYPE_lanes:
		*pointer = (const void **)&((struct ev_lanes *)field)->lane;
		return **pointer ? 32 * sizeof(uint64_t) : 0;
	case TYPE_sources:
		*pointer = field;
		return **pointer ? 32 * sizeof(uint64_t) : 0;
	case TYPE_spans:
		*pointer = (const void **)&((struct ev_spans *)field)->at;
		return ((struct ev_spans *)field)->n * sizeof(struct ev_span);
	case TYPE_gspans:
		*pointer = (const void **)&((struct ev_gspans *)field)->at;
		return ((struct ev_gspans *)field)->n * sizeof(struct ev_gspan);
	case TYPE_areas:
		*pointer = (const void **)&((struct ev_areas *)field)->at;
		return ((struct ev_areas *)field)->n * sizeof(struct ev_area);
	case TYPE_regs:
		*pointer = (const void **)&((struct ev_regs *)field)->at;
		return ((struct ev_regs *)field)->n * sizeof(uint32_t);
	case TYPE_text:
		*pointer = field;
		return **pointer ? (uint32_t)strlen(**pointer) + 1 : 0;
	case TYPE_unwritten: case TYPE_stored:
		*(void **)field = NULL;
		return 0;
	default:
		return 0;
	}
}

static uint32_t aligned(uint32_t bytes)
{
	return (bytes + ALIGN - 1) & ~(ALIGN - 1);
}

/* False: the block has not enough space left. */
static bool copy_event(struct block *b, const struct event *e)
{
	const struct event_fields *f = event_fields(e->kind);
	struct entry *to = (struct entry *)(b->at + b->bytes);
	uint32_t bytes = aligned(sizeof *to);

	if (b->bytes + bytes > BLOCK_BYTES)
		return false;
	to->event = *e;
	for (unsigned k = 0; k < f->narrays; k++) {
		const void **pointer;
		uint32_t n = array_of(&to->event, &f->at[k], &pointer);

		if (!n)
			continue;
		if (b->bytes + bytes + n > BLOCK_BYTES)
			return false;
		*pointer = memcpy((char *)to + bytes, *pointer, n);
		bytes = aligned(bytes + n);
	}
	to->bytes = bytes;
	b->bytes += bytes;
	return true;
}

/* ---- both threads ---- */

/* Passes all filled blocks on. The caller holds the lock, and passing is false. */
static void pass_blocks(struct event_queue *q)
{
	q->passing = true;
	while (q->passed != q->filled) {
		struct block *b = &q->block[q->passed % BLOCKS];

		pthread_mutex_unlock(&q->lock);
		for (uint32_t at = 0; at < b->bytes; at += ((struct entry *)(b->at + at))->bytes)
			q->to->event(q->to, &((struct entry *)(b->at + at))->event);
		b->bytes = 0;
		pthread_mutex_lock(&q->lock);
		q->passed++;
		pthread_cond_broadcast(&q->changed);
	}
	q->passing = false;
	pthread_cond_broadcast(&q->changed);
}

static void consume(void *arg)
{
	struct event_queue *q = arg;

	pthread_mutex_lock(&q->lock);
	while (!q->closed)
		if (q->passed != q->filled && !q->passing)
			pass_blocks(q);
		else
			pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

/* The producer's block is complete. Returns when at most `most` blocks are not passed on. */
static void submit(struct event_queue *q, uint32_t most)
{
	pthread_mutex_lock(&q->lock);
	if (q->block[q->filled % BLOCKS].bytes)
		q->filled++;
	pthread_cond_broadcast(&q->changed);
	while (q->filled - q->passed > most)
		if (!q->passing)
			pass_blocks(q);
		else
			pthread_cond_wait(&q->changed, &q->lock);
	pthread_mutex_unlock(&q->lock);
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct event_queue *q = (struct event_queue *)sink;

	if (copy_event(&q->block[q->filled % BLOCKS], e))
		return;
	submit(q, BLOCKS - 1);
	if (copy_event(&q->block[q->filled % BLOCKS], e))
		return;
	submit(q, 0); /* larger than a block */
	q->to->event(q->to, e);
}

struct event_sink *event_queue_begin(struct event_sink *to)
{
	struct event_queue *q = base_alloc_aligned(64, sizeof *q);

	q->sink = (struct event_sink){ on_event, to->want_global };
	q->to = to;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	q->task = (struct pool_task){ .work = consume, .arg = q };
	pool_start(&q->task, 1);
	return &q->sink;
}

struct event_sink *event_queue_end(struct event_sink *sink)
{
	struct event_queue *q = (struct event_queue *)sink;
	struct event_sink *to = q->to;

	submit(q, 0);
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
	pool_finish(&q->task);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
	free(q);
	return to;
}
