/* thread: the threads of the host. Each of them is a line, whose clock is what the thread knows. Its
 * epoch grows with what it issues and releases, so that its later accesses of memory are not before that.
 *
 * Threads synchronize by means that are seen (with config.threads: locks and the like, which are
 * objects) and by others (plain memory). So in the relations that are promised and known, a call of one
 * thread is ordered after all calls of other threads that returned before it began, as something that is
 * not seen could order the two. What was done while the call was already under way is not ordered
 * before it by any means (order_begin()). */
#include "internal.h"

#include <stdlib.h>

static _Thread_local struct { uint64_t order; order_line line; } self;

/* Knows the thread more than what it did itself? */
static bool is_known(const struct order *o)
{
	return self.order == o->id;
}

/* The line of a thread that has ended is used again: without config.threads, what it did is before all
 * that later threads do. */
static order_line new_line(struct order *o)
{
	struct line l = { .open = true, .thread = true, .kind = ORDER_NON_BLOCKING, .device = -1,
		.number = ++o->threads };
	order_line at = ORDER_NO_LINE;

	for (uint32_t i = 0; i < o->line.n && at == ORDER_NO_LINE && !o->config.threads; i++)
		if (!o->line.at[i].open && o->line.at[i].thread)
			at = i;
	if (at == ORDER_NO_LINE) {
		at = (order_line)o->line.n;
		vec_push(&o->line, ((struct line){ 0 }));
	}
	l.epoch = o->line.at[at].epoch + 1;
	clock2_set(&l.clock, at, l.epoch);
	clock2_free(&o->line.at[at].clock);
	clock2_free(&o->line.at[at].begun);
	o->line.at[at] = l;
	return at;
}

static void tell_all(struct order *o, const struct order_clock *c)
{
	for (unsigned t = 0; t < ORDER_TRUSTS; t++)
		clock_join(&o->host.by[t], &c->by[t]);
}

struct line *order_self(struct order *o)
{
	struct line *l;

	if (!is_known(o)) {
		self.line = new_line(o);
		self.order = o->id;
		tell_all(o, &o->line.at[self.line].clock);
	}
	l = &o->line.at[self.line];
	for (unsigned t = 0; t < ORDER_TRUSTS && !l->held; t++)
		clock_join(&l->clock.by[t], &o->host.by[t]);
	return l;
}

order_line order_self_line(struct order *o)
{
	order_self(o);
	return self.line;
}

static void advance(struct order *o)
{
	struct line *l = order_self(o);

	clock2_set(&l->clock, self.line, ++l->epoch);
	tell_all(o, &l->clock);
}

void order_self_knows(struct order *o, const struct order_clock *more, enum order_trust trust)
{
	join_from(&order_self(o)->clock, more, trust);
	advance(o);
}

void order_self_issued(struct order *o, struct order_op *op)
{
	struct line *l = order_self(o);

	if (o->config.threads)
		clock_join(&op->seen, &l->clock.by[VISIBLE]);
	l->held = false;
	advance(o);
	op->issued = (struct order_place){ self.line, o->line.at[self.line].epoch };
}

bool order_all_know(const struct order *o, order_line line, uint32_t epoch)
{
	for (uint32_t i = 0; i < o->line.n; i++) {
		const struct line *l = &o->line.at[i];
		const struct order_clock *c = l->held || o->config.threads ? &l->clock : &o->host;

		if (l->open && l->thread && clock_get(&c->by[order_relation(o)], line) < epoch)
			return false;
	}
	return true;
}

void order_thread_ends(struct order *o)
{
	pthread_mutex_lock(&o->lock);
	if (is_known(o))
		o->line.at[self.line].open = false;
	self.order = 0;
	pthread_mutex_unlock(&o->lock);
}

/* ---- calls that are under way ---- */

void order_begin(struct order *o)
{
	struct line *l;

	pthread_mutex_lock(&o->lock);
	l = order_self(o);
	l->held = true;
	clock2_free(&l->begun);
	l->begun = clock2_copy(&l->clock);
	/* what the others do from now on has other epochs than what this call is ordered after */
	for (uint32_t i = 0; i < o->line.n; i++)
		if (o->line.at[i].thread && o->line.at[i].open && i != self.line)
			clock2_set(&o->line.at[i].clock, i, ++o->line.at[i].epoch);
	pthread_mutex_unlock(&o->lock);
}

void order_end(struct order *o)
{
	pthread_mutex_lock(&o->lock);
	o->line.at[order_self_line(o)].held = false;
	order_retire(o);
	pthread_mutex_unlock(&o->lock);
}

/* ---- host functions ---- */

void order_host_runs(struct order *o, const struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	if (o->config.threads)
		order_self_knows(o, &op->clock, ORDER_PROMISED);
	else
		tell_all(o, &op->clock);
	pthread_mutex_unlock(&o->lock);
}

/* ---- objects by which threads synchronize ---- */

static struct clock *object_of(struct order *o, uint64_t object)
{
	return (struct clock *)(uintptr_t)number_map_get(&o->object, object);
}

void order_release(struct order *o, uint64_t object)
{
	struct clock *c;

	if (!o->config.threads || !is_known(o))
		return; /* the thread has called nothing, and knows nothing */
	pthread_mutex_lock(&o->lock);
	c = object_of(o, object);
	if (!c) {
		c = base_alloc(sizeof *c);
		number_map_put(&o->object, object, (uint64_t)(uintptr_t)c);
	}
	clock_join(c, &order_self(o)->clock.by[VISIBLE]);
	advance(o);
	pthread_mutex_unlock(&o->lock);
}

void order_acquire(struct order *o, uint64_t object)
{
	const struct clock *c;

	if (!o->config.threads)
		return;
	pthread_mutex_lock(&o->lock);
	c = object_of(o, object);
	if (c)
		clock_join(&order_self(o)->clock.by[VISIBLE], c);
	pthread_mutex_unlock(&o->lock);
}

void order_objects_free(struct order *o)
{
	for (size_t i = 0; i < o->object.cap; i++) {
		struct clock *c = (struct clock *)(uintptr_t)o->object.at[i].value;

		if (!o->object.at[i].key)
			continue;
		clock_free(c);
		free(c);
	}
	number_map_free(&o->object);
}

/* ---- accesses of the host ---- */

struct order_op *order_host_op(struct order *o, const struct order_call *call)
{
	struct line *l = order_self(o);
	struct order_op *op = order_op_new(o, self.line, call);

	op->epoch = l->epoch;
	op->clock = clock2_copy(&l->clock);
	op->issued = (struct order_place){ self.line, l->epoch };
	return op;
}

void order_host_op_put(struct order_op *op)
{
	op->held--;
	order_op_free(op);
}

void order_host_learned(struct order *o)
{
	pthread_mutex_lock(&o->lock);
	advance(o);
	pthread_mutex_unlock(&o->lock);
}

void order_host_assumes(struct order *o, const struct order_op *op)
{
	pthread_mutex_lock(&o->lock);
	tell_all(o, &op->clock);
	pthread_mutex_unlock(&o->lock);
}

struct order_op *order_host_now(struct order *o)
{
	const struct order_call call = { .name = "access by the host" };
	struct order_op *op;

	pthread_mutex_lock(&o->lock);
	op = order_host_op(o, &call);
	op->held--;
	op->kept++;
	pthread_mutex_unlock(&o->lock);
	return op;
}

bool order_same_place(const struct order_op *a, const struct order_op *b)
{
	return a->line == b->line && a->epoch == b->epoch;
}

void order_host_met(struct order *o, const struct order_op *host, struct order_op *op, bool host_observed)
{
	struct line *l = &o->line.at[host->line];

	if (!host_observed) {
		clock2_set(&op->clock, host->line, l->epoch);
		return;
	}
	clock2_join(&l->clock, &op->clock);
	tell_all(o, &op->clock);
}
