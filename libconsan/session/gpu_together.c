/* gpu_together: kernels that run at the same time may synchronize through global memory. In GPU mode such
 * launches are checked when the last of them has ended: their records are decoded together, in the order
 * of their tickets, so that the checker sees what it sees of grids that the executor runs beside each
 * other (libconsan/check/beside.h). Other kernels are checked alone, as soon as they have ended. */
#include "gpu_parts.h"
#include "internal.h"

#include "instrument/record/record.h"

#include <stdlib.h>

enum { MOST = 200 };             /* launches that are kept: fewer than MOST_GRIDS of check/beside.h */

/* Has it accesses by which it could be ordered with another launch? */
static bool synchronizes(const struct gpu_launch *l)
{
	const struct rewrite_func *f = rewrite_find(l->module->code, l->kernel);

	return f && !f->refused && l->tickets && f->orders_grid && l->op;
}

static uint64_t bytes_of(const struct gpu_launch *l)
{
	return ((uint64_t)l->chunks + 1) * RECORD_CHUNK_BYTES;
}

/* Why the launch cannot be checked with those that are kept; NULL: it can. */
static const char *cannot_join(const struct consan *c, const struct gpu_launch *l)
{
	if (!l->ended || l->fault)
		return "one of them did not run to its end";
	if (l->dropped || l->lost || l->skip)
		return "records of one of them are missing";
	if (l->chunk)
		return "records of one of them were copied while it ran (--gpu-drain)";
	if (l->programmatic)
		return "one of them may begin before the launch before it has ended";
	if (c->together.kept.n >= MOST)
		return "they are too many to be checked together";
	if (c->together.bytes + bytes_of(l) > gpu_host_memory(c))
		return "their records need more memory than --gpu-host-memory";
	if (c->together.kept.n && c->together.kept.at[0].l->ticket != l->ticket)
		return "their devices have no common counter, as they cannot do atomic operations on each other's memory";
	return NULL;
}

void gpu_runs(struct consan *c)
{
	c->together.overlap |= c->together.running++ > 0;
}

bool gpu_alone(const struct consan *c)
{
	return !c->together.running;
}

bool gpu_overlaps(const struct consan *c)
{
	return c->together.overlap;
}

/* Also one that was alone, if later ones may not be ordered after it. */
bool gpu_keeps(const struct consan *c, const struct gpu_launch *l)
{
	return synchronizes(l) && !cannot_join(c, l) && (c->together.overlap || (c->order && order_wants(c->order)));
}

/* ---- the check ---- */

struct together {
	struct consan *c;
	struct gpu_running *running;
};

static bool is_before(void *user, size_t a, size_t b)
{
	const struct together *t = user;

	return order_before(t->running[a].l->op, t->running[b].l->op, ORDER_PROMISED);
}

static void begin(void *user, size_t k)
{
	const struct together *t = user;
	struct gpu_running *f = &t->running[k];

	f->check = session_check(t->c, &f->config, f->l->op);
}

static void check_together(struct consan *c)
{
	const size_t n = c->together.kept.n;
	struct together t = { c, base_alloc(n * sizeof *t.running) };
	const struct decode_launch **launch = base_alloc(n * sizeof *launch);
	struct decode_result *result = base_alloc(n * sizeof *result);
	const struct decode_together d = { .launch = launch, .n = n, .result = result, .before = is_before,
		.begin = begin, .user = &t };

	pthread_mutex_lock(&c->launching);
	for (size_t k = 0; k < n; k++) {
		gpu_running_begin(&t.running[k], c, c->together.kept.at[k].l);
		t.running[k].decode.exact = true;
		launch[k] = &t.running[k].decode;
	}
	decode_together(&d);
	for (size_t k = 0; k < n; k++) {
		t.running[k].result = result[k];
		gpu_running_end(&t.running[k]);
	}
	pthread_mutex_unlock(&c->launching);
	free(t.running);
	free(launch);
	free(result);
}

static int by_number(const void *a, const void *b)
{
	const struct gpu_kept *x = a, *y = b;

	return (x->l->number > y->l->number) - (x->l->number < y->l->number);
}

static void check_alone(struct consan *c, struct gpu_launch *l, const char *why)
{
	l->beside = why != NULL;
	l->why_alone = why;
	gpu_check(c, l);
}

static void check_kept(struct consan *c)
{
	const size_t n = c->together.kept.n;
	const char *incomplete = c->together.incomplete;

	if (n)
		qsort(c->together.kept.at, n, sizeof *c->together.kept.at, by_number);
	if (n && !incomplete)
		check_together(c);
	for (size_t k = 0; k < n && incomplete; k++)
		check_alone(c, c->together.kept.at[k].l, incomplete);
	for (size_t k = 0; k < n; k++)
		c->together.kept.at[k].done(c->together.kept.at[k].l);
	c->together.kept.n = 0;
	c->together.bytes = 0;
}

/* Why the launches that run cannot be checked together because of this one; NULL: they can. */
static const char *spoils(const struct consan *c, const struct gpu_launch *l)
{
	if (!l)
		return "one of them was not recorded";
	if (synchronizes(l))
		return cannot_join(c, l);
	return l->module->unrecorded ? "accesses of one of them to global memory are not recorded" : NULL;
}

void gpu_ran(struct consan *c, struct gpu_launch *l, void (*done)(struct gpu_launch *l))
{
	const bool keeps = l && gpu_keeps(c, l);

	if (keeps) {
		vec_push(&c->together.kept, ((struct gpu_kept){ l, done }));
		c->together.bytes += bytes_of(l);
	} else if (c->together.overlap && !c->together.incomplete) {
		c->together.incomplete = spoils(c, l);
	}
	/* if some cannot be checked together, the others wait for nothing */
	if (!--c->together.running || c->together.incomplete)
		check_kept(c);
	if (l && !keeps) {
		check_alone(c, l, synchronizes(l) ? c->together.incomplete : NULL);
		done(l);
	}
	if (!c->together.running) {
		c->together.overlap = false;
		c->together.incomplete = NULL;
	}
}
