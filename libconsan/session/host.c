/* host: accesses of the host to memory that it shares with grids: which of them grids that run at the same time
 * have, or had, to do with (check_host()), and what memory orders by way of the host.
 *
 * A *place* is what the host knows between two calls of the API, or two acquires of what a grid released. An
 * operation that it issues then is ordered after what it knows of the accesses of grids (met_orders()), and a
 * grid begins with it. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PLACES = 128 };

struct host_place {
	struct order_op *op;         /* order_host_now(); kept */
	struct beside *of;           /* the set of grids, a reference */
	struct foreign *knows;       /* in the set, at the end of the place */
	uint32_t first;              /* the epoch of its accesses there, at the beginning (check_part.epoch) */
};

struct host {
	VEC(struct host_place) place; /* oldest first */
};

static void drop(struct consan *c, struct host_place *p)
{
	order_op_drop(c->order, p->op);
	check_met_put(p->of);
	check_known_put(p->knows);
}

static void remove_place(struct consan *c, size_t i)
{
	struct host *h = c->host;

	drop(c, &h->place.at[i]);
	h->place.n--;
	memmove(h->place.at + i, h->place.at + i + 1, (h->place.n - i) * sizeof *h->place.at);
}

void host_forget(struct consan *c, const struct beside *of)
{
	for (size_t i = c->host ? c->host->place.n : 0; i-- > 0;)
		if (c->host->place.at[i].of == of)
			remove_place(c, i);
}

void host_close(struct consan *c)
{
	if (!c->host)
		return;
	for (size_t i = 0; i < c->host->place.n; i++)
		drop(c, &c->host->place.at[i]);
	vec_free(&c->host->place);
	free(c->host);
	c->host = NULL;
}

/* The oldest two places of one set become one, which knows what the later one does: that can hide a race, and
 * makes none. There are fewer sets (met.c). */
static void join_places(struct consan *c)
{
	struct host *h = c->host;
	size_t i = 0;

	while (h->place.at[i].of != h->place.at[i + 1].of)
		i++;
	check_known_put(h->place.at[i].knows);
	h->place.at[i].knows = h->place.at[i + 1].knows;
	h->place.at[i + 1].knows = NULL;
	remove_place(c, i + 1);
}

/* The newest place is `now`; the host is a member of the set. Takes both references. */
static void set_place(struct consan *c, struct beside *of, struct order_op *now, uint32_t epoch)
{
	struct host_place *last;
	struct host *h;

	if (!c->host)
		c->host = base_alloc(sizeof *c->host);
	h = c->host;
	last = h->place.n ? &h->place.at[h->place.n - 1] : NULL;
	if (last && last->of == of && order_same_place(last->op, now)) {
		order_op_drop(c->order, now);
		check_met_put(of);
	} else {
		if (h->place.n == MOST_PLACES)
			join_places(c);
		vec_push(&h->place, ((struct host_place){ now, of, NULL, epoch }));
		last = &h->place.at[h->place.n - 1];
	}
	check_known_put(last->knows);
	last->knows = check_host_knows(of);
}

/* ---- questions ---- */

static bool before(const struct order_op *a, const struct order_op *b)
{
	return a && order_before(a, b, ORDER_PROMISED);
}

/* Is the place before the access, or before the operation? By the API; as the thread has acquired it; or as a
 * grid has acquired it that is before the operation. */
static bool is_left(const struct consan *c, const struct host_place *p, const struct host_side *y)
{
	return before(p->op, y->op) || (y->of == p->of && y->part->host >= p->first)
		|| met_after_host(c, p->of, p->first, y->op);
}

bool host_orders(const struct consan *c, const struct host_side *x, const struct host_side *y)
{
	size_t i = c->host ? c->host->place.n : 0;

	while (i > 0 && !is_left(c, &c->host->place.at[i - 1], y))
		i--;
	if (i > 0 && before(x->op, c->host->place.at[i - 1].op))
		return true;
	for (; x->of && i > 0; i--) {
		const struct host_place *p = &c->host->place.at[i - 1];

		if (p->of == x->of) /* earlier places know less */
			return check_known(p->knows, x->of, x->part);
	}
	return false;
}

void host_begins(const struct consan *c, struct check_config *config, const struct order_op *op)
{
	for (size_t i = c->host ? c->host->place.n : 0; i-- > 0;) {
		const struct host_place *p = &c->host->place.at[i];

		if (!order_before(p->op, op, ORDER_PROMISED))
			continue;
		config->host_of = p->of;
		config->host_knew = p->knows;
		return;
	}
}

/* ---- races ---- */

static const char *const hint[] = { [CHECK_HOST_NOTHING] =
		"the two may also synchronize by a flag in memory that is written after the first access and read before "
		"the second one: at .sys scope in the kernel, with __threadfence_system() before its write, or after its "
		"read",
	[CHECK_HOST_SCOPE] = "a kernel releases or acquires in between, but not at .sys scope, which the host needs: "
		"st.release.sys and ld.acquire.sys, or __threadfence_system()",
	[CHECK_HOST_ACQUIRE] = "the kernel has read a flag that the host wrote after its access, but nothing acquires it: "
		"ld.acquire.sys, or __threadfence_system() after the read" };

/* at: a place of about that time */
static void report(struct consan *c, const struct check_host_race *x, const struct order_op *at)
{
	const struct order_op *op = session_launched(c, x->launch);
	struct order_host_race r = { .at = at, .op = op, .stack = x->host_site, .host_first = x->host_first,
		.hint = hint[x->lacks] };
	char why[512];

	if (!op)
		return;
	if (x->unseen) {
		snprintf(why, sizeof why, "races between the host and kernel %s: host code ran at the same time as "
			"the kernel, and what it accessed then is not seen", order_op_kernel(op));
		consan_remark(c, REMARK_NOT_SEEN, why);
		return;
	}
	r.host = r.grid = (struct order_range){ .addr = x->addr, .bytes = x->bytes };
	r.host.flags = x->host_write ? ORDER_WRITE : 0;
	r.grid.site = x->site;
	r.grid.flags = (x->write ? ORDER_WRITE : 0) | (x->strong ? ORDER_STRONG : 0);
	order_host_raced(c->order, &r);
}

void host_race(void *user, const struct check_host_race *x)
{
	struct consan *c = user;

	if (c->host && c->host->place.n)
		report(c, x, c->host->place.at[c->host->place.n - 1].op);
}

/* ---- accesses ---- */

struct access { struct consan *c; struct order_op *now; bool raced; };

static bool is_complete(void *user, uint32_t launch)
{
	const struct access *a = user;
	const struct order_op *op = session_launched(a->c, launch);

	return op && order_any_knows(a->c->order, order_place(op), ORDER_KNOWN);
}

static void on_race(void *user, const struct check_host_race *x)
{
	struct access *a = user;

	a->raced = true;
	report(a->c, x, a->now);
}

/* The events of a grid that is instrumented are known when it has ended. */
static bool is_recorded(const struct consan *c)
{
	return c->opt.backend == OPT_BACKEND_GPU || c->opt.backend == OPT_BACKEND_GPU_EMULATED;
}

bool consan_host_access(struct consan *c, const struct order_range *range, bool reads, bool alone,
	uint32_t (*stack)(void))
{
	struct access a = { .c = c };
	struct check_host_access x = { .addr = range->addr,
		.bytes = (uint32_t)range->bytes, .reads = reads, .writes = range->flags & ORDER_WRITE,
		.complete = is_complete, .race = on_race, .user = &a };
	struct order_host host = { 0 };
	struct order_range r = *range;
	struct check_host_result is;

	if (is_recorded(c) || !check_runs(c->memory))
		return order_host_access(c->order, range, &host, stack);
	x.site = stack();
	a.now = order_host_now(c->order);
	if (!check_host(c->memory, &x, &is)) {
		order_op_drop(c->order, a.now);
		return order_host_access(c->order, range, &host, stack);
	}
	if (is.learned) {
		order_host_learned(c->order);
		order_op_drop(c->order, a.now);
		a.now = order_host_now(c->order);
	}
	host.beside = is.number;
	host.alone = alone;
	host.met = met_of_host(c, check_met_get(is.of));
	r.part = met_part(host.met, &is.part);
	set_place(c, is.of, a.now, is.part.epoch);
	return order_host_access(c->order, &r, &host, stack) || a.raced;
}

void consan_host_word(struct consan *c, uint64_t addr, uint32_t bytes, bool write)
{
	struct host_place *last = c->host && c->host->place.n ? &c->host->place.at[c->host->place.n - 1] : NULL;

	if (is_recorded(c) || !check_runs(c->memory))
		return;
	check_host_word(c->memory, addr, bytes, write);
	if (!last || !check_is_running(c->memory, last->of))
		return;
	check_known_put(last->knows);
	last->knows = check_host_knows(last->of);
}

bool consan_host_words(struct consan *c, uint64_t from, uint64_t end)
{
	return check_host_words(c->memory, from, end);
}

void consan_host_page_unseen(struct consan *c, uint64_t from, uint64_t end, bool writes)
{
	check_host_gives_up(c->memory, from, end, writes);
}

void consan_host_unseen(struct consan *c)
{
	check_memory_host_unseen(c->memory);
}
