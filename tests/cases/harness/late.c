/* late: see late.h. The first pass collects the signals, as their operations begin before them. */
#include "late.h"

#include "libconsan/event/event.h"

#include <criterion/criterion.h>
#include <stdlib.h>

struct signal {
	uint32_t launch, cluster;
	struct event e;
};

struct object {                  /* an mbarrier */
	uint16_t owner;
	uint32_t addr, expected, pending;
	int64_t tx;
	uint64_t phase;
	VEC(struct event) due;   /* signals of operations that have begun, oldest first */
	size_t done;
};

static struct {
	struct event_writer *to; /* NULL: the first pass */
	uint32_t launch;
	VEC(struct signal) signal;
} copy;

struct late {                    /* a cluster */
	struct event_sink sink, *next;
	uint32_t id;
	VEC(struct object) object;
};

static struct object *object_of(struct late *l, unsigned owner, uint32_t addr)
{
	for (size_t i = 0; i < l->object.n; i++)
		if (l->object.at[i].owner == owner && l->object.at[i].addr == addr)
			return &l->object.at[i];
	vec_push(&l->object, ((struct object){ .owner = (uint16_t)owner, .addr = addr }));
	return &l->object.at[l->object.n - 1];
}

static void change(struct object *o, uint32_t arrivals, int64_t tx)
{
	o->tx += tx;
	o->pending -= arrivals < o->pending ? arrivals : o->pending;
	if (o->pending || o->tx || !o->expected)
		return;
	o->phase++;
	o->pending = o->expected;
}

static bool complete_one(struct late *l, struct object *o)
{
	const struct event *e;

	if (o->done == o->due.n)
		return false;
	e = &o->due.at[o->done++];
	l->next->event(l->next, e);
	change(o, e->mbarrier_signal.arrivals, -e->mbarrier_signal.tx_count);
	return true;
}

static void complete_all(struct late *l)
{
	for (size_t i = 0; i < l->object.n; i++)
		while (complete_one(l, &l->object.at[i]))
			;
}

static void begin(struct late *l, uint32_t op)
{
	for (size_t i = 0; i < copy.signal.n; i++) {
		const struct event *e = &copy.signal.at[i].e;

		if (copy.signal.at[i].launch == copy.launch && copy.signal.at[i].cluster == l->id
			&& e->mbarrier_signal.async_op == op)
			vec_push(&object_of(l, e->mbarrier_signal.owner, e->mbarrier_signal.addr)->due, *e);
	}
}

/* What returned on parity p, or on phase p, observed that phase complete. */
static void before_wait(struct late *l, const struct event_mbarrier_test *t)
{
	struct object *o = object_of(l, t->owner, t->addr);

	while ((t->flags & TEST_PARITY ? (o->phase & 1) == (t->phase & 1) : o->phase <= t->phase)
			&& complete_one(l, o))
		;
}

static void apply(struct late *l, const struct event *e)
{
	const int64_t lanes = __builtin_popcount(e->lanes);
	const struct event_mbarrier_arrive *a = &e->mbarrier_arrive;
	struct object *o;

	switch (e->kind) {
	case EV_BULK: case EV_TRY_CANCEL:
		begin(l, e->bulk.async_op);
		break;
	case EV_CP_ASYNC_ARRIVE:
		begin(l, e->cp_async_arrive.async_op);
		break;
	case EV_TCGEN05_COMMIT:
		begin(l, e->tcgen05_commit.async_op);
		break;
	case EV_MBARRIER_INIT:
		o = object_of(l, e->mbarrier_init.owner, e->mbarrier_init.addr);
		o->expected = o->pending = e->mbarrier_init.arrivals;
		o->tx = 0;
		o->phase = 0;
		break;
	case EV_MBARRIER_INVAL:
		object_of(l, e->mbarrier_inval.owner, e->mbarrier_inval.addr)->expected = 0;
		break;
	case EV_MBARRIER_ARRIVE:
		o = object_of(l, a->owner, a->addr);
		if (a->flags & ARRIVE_DROP)
			o->expected -= (uint32_t)(a->arrivals * lanes);
		change(o, (uint32_t)(a->arrivals * lanes), a->tx_count * lanes);
		break;
	case EV_MBARRIER_EXPECT_TX:
		object_of(l, e->mbarrier_expect_tx.owner, e->mbarrier_expect_tx.addr)->tx
			+= e->mbarrier_expect_tx.tx_count * lanes;
		break;
	case EV_MBARRIER_COMPLETE_TX:
		change(object_of(l, e->mbarrier_complete_tx.owner, e->mbarrier_complete_tx.addr), 0,
			-(e->mbarrier_complete_tx.tx_count * lanes));
		break;
	default:
		break;
	}
}

static void on_event(struct event_sink *s, const struct event *e)
{
	struct late *l = (struct late *)s;

	if (!copy.to && e->kind == EV_MBARRIER_SIGNAL)
		vec_push(&copy.signal, ((struct signal){ copy.launch, l->id, *e }));
	if (!copy.to || e->kind == EV_MBARRIER_SIGNAL)
		return;
	if (e->kind == EV_MBARRIER_TEST && e->mbarrier_test.flags & TEST_TRUE)
		before_wait(l, &e->mbarrier_test);
	if (e->kind == EV_HANG)
		complete_all(l);
	l->next->event(l->next, e);
	apply(l, e);
}

static void on_launch(void *user, const struct launch_info *l)
{
	(void)user;
	copy.launch++;
	if (copy.to)
		event_writer_launch(copy.to, l);
}

static void on_launch_end(void *user, const struct launch_info *l, uint32_t last,
	const char *unchecked)
{
	(void)user;
	if (copy.to)
		event_writer_launch_end(copy.to, l, last, unchecked);
}

static struct event_sink *on_begin(void *user, const struct cluster_info *c)
{
	struct late *l = base_alloc(sizeof *l);

	(void)user;
	l->sink = (struct event_sink){ .event = on_event, .want_global = true };
	l->id = c->id;
	l->next = copy.to ? event_writer_begin(copy.to, c, NULL) : NULL;
	return &l->sink;
}

static void on_end(void *user, const struct cluster_info *c, struct event_sink *s, bool whole)
{
	struct late *l = (struct late *)s;

	(void)user;
	(void)c;
	(void)whole;
	if (copy.to) {
		complete_all(l);
		event_writer_end(l->next);
	}
	for (size_t i = 0; i < l->object.n; i++)
		vec_free(&l->object.at[i].due);
	vec_free(&l->object);
	free(l);
}

void late_copy(const char *from, const char *to)
{
	const struct event_reader r = { .launch = on_launch, .cluster_begin = on_begin,
		.cluster_end = on_end, .launch_end = on_launch_end };
	struct event_read_stats stats = { 0 };
	struct consan_err e = { 0 };

	copy.to = NULL;
	copy.launch = 0;
	cr_assert(event_read(from, &r, &stats, &e), "%s: %s", from, e.text);
	copy.to = event_writer_open(to, &e);
	cr_assert(copy.to, "%s: %s", to, e.text);
	copy.launch = 0;
	cr_assert(event_read(from, &r, &stats, &e), "%s: %s", from, e.text);
	cr_assert(event_writer_close(copy.to, &e), "%s: %s", to, e.text);
	vec_free(&copy.signal);
}
