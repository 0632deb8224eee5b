/* queue: asynchronous operations between issue and effect, and their memory. async.h and the
 * handlers define the operations. */
#include "internal.h"

#include <stdlib.h>

/* ticks of the cluster from the issue of an op to its effect; instrumented code has many more ops */
#define ASYNC_LATEST (1u << 16)
#define ASYNC_LATEST_HARDWARE (1u << 20)
/* ... and strong writes and atomics of the cluster: each costs the checker far more than an op does,
 * and loops may poll by them */
#define ASYNC_CHANGES 1024

static unsigned pool_class(size_t bytes)
{
	return (unsigned)((bytes + 63) / 64);
}

/* header of every op allocated */
union block_head {
	struct pool_block free;
	size_t class;
	max_align_t align;
};

void *async_new(struct warp *w, const struct xop *x, uint32_t lanes, size_t bytes)
{
	struct worker *wk = w->worker;
	unsigned class = pool_class(bytes);
	union block_head *b = NULL;
	struct async_op *op;

	if (class < ARRAY_SIZE(wk->pool) && wk->pool[class]) {
		b = (union block_head *)wk->pool[class];
		wk->pool[class] = b->free.next;
		memset(b, 0, sizeof *b + 64 * class);
	} else {
		b = base_alloc(sizeof *b + 64 * class);
	}
	b->class = class;
	op = (struct async_op *)(b + 1);
	op->warp = w;
	op->lanes = lanes;
	op->site = x->site;
	op->id = ex_op_id(w->cluster);
	return op;
}

void async_free(struct cluster *c, void *op)
{
	union block_head *b = (union block_head *)op - 1;
	size_t class = b->class;

	if (class >= ARRAY_SIZE(c->worker->pool)) {
		free(b);
		return;
	}
	b->free.next = c->worker->pool[class];
	c->worker->pool[class] = &b->free;
}

static void unqueue(struct cluster *c, struct async_op *op)
{
	*(op->prev ? &op->prev->next : &c->oldest) = op->next;
	*(op->next ? &op->next->prev : &c->newest) = op->prev;
	op->next = op->prev = NULL;
	op->queued = false;
}

void async_issue(struct cluster *c, struct async_op *op)
{
	enum exec_async when = c->grid->l->async;

	c->work++;
	if (when == ASYNC_EARLY || (when == ASYNC_RANDOM && (ex_random(c) & 1))) {
		op->perform(c, op);
		return;
	}
	op->queued = true;
	op->issued = c->ticks;
	op->changes = c->changes;
	op->prev = c->newest;
	op->next = NULL;
	*(c->newest ? &c->newest->next : &c->oldest) = op;
	c->newest = op;
}

void async_force(struct cluster *c, struct async_op *op)
{
	if (!op->queued)
		return;
	unqueue(c, op);
	c->work++;
	op->perform(c, op);
}

bool async_perform_one(struct cluster *c)
{
	if (!c->oldest)
		return false;
	async_force(c, c->oldest);
	return true;
}

bool async_perform_overdue(struct cluster *c)
{
	const uint64_t latest = c->grid->l->hardware ? ASYNC_LATEST_HARDWARE : ASYNC_LATEST;

	return c->oldest && (c->ticks - c->oldest->issued > latest
		|| c->changes - c->oldest->changes > ASYNC_CHANGES) && async_perform_one(c);
}

void *ex_scratch(struct worker *wk, size_t bytes)
{
	bytes = (bytes + 63) & ~(size_t)63;
	if (wk->scratch_bytes == bytes)
		return wk->scratch;
	free(wk->scratch);
	wk->scratch_bytes = bytes;
	wk->scratch = aligned_alloc(64, bytes);
	if (!wk->scratch)
		base_die("out of memory for %zu bytes of scratch", bytes);
	return memset(wk->scratch, 0, bytes);
}

struct wg_book *ex_wg_book(struct worker *wk)
{
	return &wk->wg_book;
}

struct tc_book *ex_tc_book(struct worker *wk)
{
	return &wk->tc_book;
}

uint64_t ex_random(struct cluster *c)
{
	uint64_t z = c->rng += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
