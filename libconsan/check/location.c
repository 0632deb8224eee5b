/* location: see location.h. The tables of strong locations and their chains of writes. */
#include "global.h"
#include "location.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(uint64_t key)
{
	return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 32);
}

static uint32_t slot_of(const struct location_table *t, uint64_t key)
{
	uint32_t i = hash(key) & (t->cap - 1);

	while (t->place[i].at.n && t->place[i].key != key)
		i = (i + 1) & (t->cap - 1);
	return i;
}

static struct place *place_find(const struct location_table *t, uint64_t key)
{
	struct place *p = t->cap ? &t->place[slot_of(t, key)] : NULL;

	return p && p->at.n ? p : NULL;
}

static void grow(struct location_table *t)
{
	struct location_table was = *t;

	t->cap = was.cap ? 2 * was.cap : 16;
	t->place = base_alloc(t->cap * sizeof *t->place);
	for (uint32_t i = 0; i < was.cap; i++)
		if (was.place[i].at.n)
			t->place[slot_of(t, was.place[i].key)] = was.place[i];
		else
			vec_free(&was.place[i].at);
	free(was.place);
}

struct location *location_find(const struct location_table *t, uint64_t at, unsigned size)
{
	const struct place *p = place_find(t, at / 16);

	for (size_t i = 0; p && i < p->at.n; i++)
		if (p->at.at[i].at == at && p->at.at[i].size == size)
			return &p->at.at[i];
	return NULL;
}

struct location *location_make(struct location_table *t, uint64_t at, unsigned size)
{
	struct location *l = location_find(t, at, size);
	struct place *p;

	if (l)
		return l;
	if (2 * (t->n + 1) > t->cap)
		grow(t);
	p = &t->place[slot_of(t, at / 16)];
	t->n += !p->at.n;
	p->key = at / 16;
	vec_push(&p->at, ((struct location){ .at = at, .size = (uint8_t)size }));
	return &p->at.at[p->at.n - 1];
}

void location_each(struct location_table *t, uint64_t at, uint64_t bytes,
	void (*each)(void *user, struct location *l), void *user)
{
	struct place *p = place_find(t, at / 16);

	for (size_t i = 0; p && i < p->at.n; i++)
		if (p->at.at[i].at < at + bytes && p->at.at[i].at + p->at.at[i].size > at)
			each(user, &p->at.at[i]);
}

struct head *location_head(struct clock_space *s, struct heads *h, unsigned cta, unsigned scope)
{
	for (size_t i = 0; i < h->n; i++)
		if (h->at[i].cta == cta && h->at[i].scope == scope)
			return &h->at[i];
	vec_push(h, ((struct head){ (uint16_t)cta, (uint8_t)scope, 0, frontier_new(s) }));
	return &h->at[h->n - 1];
}

void location_clear(struct clock_space *s, struct location *l)
{
	while (l->heads.n)
		frontier_put(s, l->heads.at[--l->heads.n].f);
	foreign_put(l->wide);
	foreign_put(l->wide_system);
	l->wide = l->wide_system = NULL;
	while (l->narrow.n)
		foreign_put(l->narrow.at[--l->narrow.n].set);
}

static void begin_chain(struct clock_space *s, struct location *l)
{
	location_clear(s, l);
	l->chain++;
}

void location_overwrite(struct clock_space *s, struct location_table *t, uint64_t at,
	unsigned bytes, unsigned size)
{
	const struct place *p = place_find(t, at / 16);

	for (size_t i = 0; p && i < p->at.n; i++) {
		struct location *l = &p->at.at[i];

		if (l->at >= at + bytes || l->at + l->size <= at || (l->at == at && l->size == size))
			continue;
		begin_chain(s, l);
		l->version++;
	}
}

void location_write(struct clock_space *s, struct location *l, uint32_t cluster, unsigned cta,
	unsigned scope, bool rmw, unsigned needed)
{
	const unsigned both = scope < l->scope ? scope : l->scope;

	if (!rmw || both < needed)
		begin_chain(s, l);
	l->version++;
	l->cluster = cluster;
	l->cta = (uint16_t)cta;
	l->scope = (uint8_t)scope;
}

static void drop(struct clock_space *s, struct location *l)
{
	location_clear(s, l);
	while (l->ordered.n)
		frontier_put(s, l->ordered.at[--l->ordered.n].f);
	for (size_t i = 0; i < l->wide_ordered.n; i++) {
		foreign_put(l->wide_ordered.at[i].set);
		foreign_put(l->wide_ordered.at[i].system);
	}
	vec_free(&l->wide_ordered);
	vec_free(&l->heads);
	vec_free(&l->ordered);
	vec_free(&l->narrow);
}

/* Empties it. */
static void reset(struct clock_space *s, struct location_table *t)
{
	for (uint32_t i = 0; t->n && i < t->cap; i++) {
		struct place *p = &t->place[i];

		for (size_t k = 0; k < p->at.n; k++)
			drop(s, &p->at.at[k]);
		p->at.n = 0;
	}
	t->n = 0;
}

void location_free(struct clock_space *s, struct location_table *t)
{
	reset(s, t);
	for (uint32_t i = 0; i < t->cap; i++)
		vec_free(&t->place[i].at);
	free(t->place);
}

/* ---- the locations of a cluster ---- */

bool location_tracks(const struct cluster *c, const struct event_access *a)
{
	return a->space == SP_SHARED || c->global;
}

bool location_any(const struct cluster *c, const struct event_access *a)
{
	return a->space == SP_SHARED ? c->shared_locations
		: __atomic_load_n(&c->check->global->beside->nlocations, __ATOMIC_ACQUIRE);
}

bool location_may_be(const struct cluster *c, uint64_t at)
{
	return in_shared(at) ? c->shared_marks[at / 16 / 64 % SHARED_MARKS] >> at / 16 % 64 & 1
		: global_marked(c->check->global, at);
}

struct location *location_make_local(struct cluster *c, uint64_t at, unsigned size)
{
	if (in_shared(at)) {
		c->shared_locations = true;
		c->shared_marks[at / 16 / 64 % SHARED_MARKS] |= 1ull << at / 16 % 64;
	}
	return location_make(c->locations, at, size);
}

void locations_open(struct cluster *c)
{
	c->locations = base_alloc(sizeof *c->locations);
	c->polled = base_alloc(c->nwarps * sizeof *c->polled);
	c->sc_published = base_alloc(c->nwarps * SC_PUBLISHED * sizeof *c->sc_published);
}

void locations_reset(struct cluster *c)
{
	reset(&c->space, c->locations);
	if (c->shared_locations)
		memset(c->shared_marks, 0, sizeof c->shared_marks);
	c->shared_locations = c->ordered = false;
	memset(c->polled, 0, c->nwarps * sizeof *c->polled);
	memset(c->sc_published, 0, c->nwarps * SC_PUBLISHED * sizeof *c->sc_published);
	for (uint32_t i = 0; i < c->nwarps; i++)
		for (unsigned k = 0; c->warp[i].own && k < OWN_RELEASES; k++) {
			frontier_put(&c->space, c->warp[i].own[k].f);
			c->warp[i].own[k].f = NULL;
		}
}

void locations_free(struct cluster *c)
{
	location_free(&c->space, c->locations);
	free(c->locations);
	free(c->polled);
	free(c->sc_published);
	for (uint32_t i = 0; i < c->nwarps; i++)
		free(c->warp[i].own);
}
