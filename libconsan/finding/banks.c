/* banks: see banks.h. */
#include "banks.h"

#include "libconsan/base/base.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BANKS = 32, BANK_BYTES = 4, PASS_BYTES = BANKS * BANK_BYTES, LANES = 32 };

/* Sorted by site. */
struct uses {
	struct bank_use *at;
	size_t n, cap;
};

struct banks {
	pthread_mutex_t lock;
	struct uses all, shown;
};

/* The counts of one cluster, which need no lock. */
struct counter {
	struct event_sink sink;
	struct event_sink *next;
	struct banks *banks;
	struct uses uses;
};

static struct bank_use *use_of(struct uses *u, uint32_t site)
{
	size_t low = 0, high = u->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (u->at[middle].site < site)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < u->n && u->at[low].site == site)
		return &u->at[low];
	vec_reserve(u, u->n + 1);
	memmove(u->at + low + 1, u->at + low, (u->n++ - low) * sizeof *u->at);
	u->at[low] = (struct bank_use){ .site = site };
	return &u->at[low];
}

static void add(struct uses *to, const struct bank_use *u)
{
	struct bank_use *sum = use_of(to, u->site);

	sum->accesses += u->accesses;
	sum->wavefronts += u->wavefronts;
	sum->least += u->least;
	if (sum->worst < u->worst)
		sum->worst = u->worst;
}

/* Wavefronts of a pass with these lanes: lanes that access the same word share a wavefront,
 * different words of one bank need one each. */
static uint32_t wavefronts(const struct ev_lanes *where, uint32_t bytes, uint32_t lanes)
{
	uint64_t word[BANKS][LANES];
	uint32_t n[BANKS] = { 0 }, worst = 0;

	for (unsigned lane = 0; lane < LANES; lane++) {
		const uint64_t at = lane_addr(where, lane);

		for (uint64_t w = at / BANK_BYTES; lanes >> lane & 1
				&& w * BANK_BYTES < at + bytes; w++) {
			const unsigned bank = w % BANKS;
			unsigned i = 0;

			while (i < n[bank] && word[bank][i] != w)
				i++;
			if (i < n[bank])
				continue;
			word[bank][n[bank]++] = w;
			if (worst < n[bank])
				worst = n[bank];
		}
	}
	return worst;
}

/* The addresses of an access that counts, and how many bytes each lane accesses; else NULL. */
static const struct ev_lanes *counted(const struct event *e, uint32_t *bytes)
{
	const struct event_access *a = &e->access;

	if (e->kind == EV_CP_ASYNC) {
		*bytes = e->cp_async.bytes;
		return *bytes && *bytes <= PASS_BYTES ? &e->cp_async.at : NULL;
	}
	if (e->kind != EV_ACCESS || a->space != SP_SHARED || a->mode == MODE_RMW || a->owner != e->cta)
		return NULL;
	*bytes = a->bytes;
	return *bytes && *bytes <= PASS_BYTES ? &a->at : NULL;
}

static void count(struct event_sink *sink, const struct event *e)
{
	struct counter *c = (struct counter *)sink;
	struct bank_use now = { .site = e->site, .accesses = 1 };
	const struct ev_lanes *at;
	uint32_t bytes;
	unsigned step;

	c->next->event(c->next, e);
	at = counted(e, &bytes);
	if (!at)
		return;
	step = bytes <= BANK_BYTES ? LANES : PASS_BYTES / bytes;
	for (unsigned lane = 0; lane < LANES; lane += step) {
		const uint32_t lanes = e->lanes & (uint32_t)(((uint64_t)1 << step) - 1) << lane;
		const uint32_t n = lanes ? wavefronts(at, bytes, lanes) : 0;

		now.wavefronts += n;
		now.least += n > 0;
		if (now.worst < n)
			now.worst = n;
	}
	add(&c->uses, &now);
}

struct banks *banks_open(void)
{
	struct banks *b = base_alloc(sizeof *b);

	pthread_mutex_init(&b->lock, NULL);
	return b;
}

void banks_close(struct banks *b)
{
	if (!b)
		return;
	vec_free(&b->all);
	vec_free(&b->shown);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

struct event_sink *banks_begin(struct banks *b, struct event_sink *next)
{
	struct counter *c = base_alloc(sizeof *c);

	c->sink.event = count;
	c->sink.want_global = next->want_global;
	c->next = next;
	c->banks = b;
	return &c->sink;
}

struct event_sink *banks_end(struct event_sink *sink)
{
	struct counter *c = (struct counter *)sink;
	struct event_sink *next = c->next;

	pthread_mutex_lock(&c->banks->lock);
	for (size_t i = 0; i < c->uses.n; i++)
		add(&c->banks->all, &c->uses.at[i]);
	pthread_mutex_unlock(&c->banks->lock);
	vec_free(&c->uses);
	free(c);
	return next;
}

size_t banks_uses(struct banks *b, const struct bank_use **out)
{
	pthread_mutex_lock(&b->lock);
	vec_reserve(&b->shown, b->all.n);
	b->shown.n = b->all.n;
	if (b->all.n)
		memcpy(b->shown.at, b->all.at, b->all.n * sizeof *b->all.at);
	pthread_mutex_unlock(&b->lock);
	*out = b->shown.at;
	return b->shown.n;
}
