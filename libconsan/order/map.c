/* map: which operations last accessed each byte: zones of 64 KiB, each with the pieces of it that
 * have one state. An access rewrites the pieces of a zone in one pass over them. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

enum { ZONE_SHIFT = 16 };
#define ZONE_BYTES (UINT64_C(1) << ZONE_SHIFT)

/* ---- states ---- */

struct order_state *state_new(struct map *m, const struct order_access *at, uint32_t n)
{
	struct order_state *s = base_alloc(sizeof *s + n * sizeof *at);

	*s = (struct order_state){ .refs = 1, .n = n };
	if (n)
		memcpy(s->at, at, n * sizeof *at);
	for (uint32_t i = 0; i < n; i++)
		s->at[i].op->kept++;
	m->bytes += sizeof *s + n * sizeof *at;
	return s;
}

void state_put(struct map *m, struct order_state *s)
{
	if (!s || --s->refs)
		return;
	for (uint32_t i = 0; i < s->n; i++)
		op_unref(s->at[i].op);
	m->bytes -= sizeof *s + s->n * sizeof *s->at;
	free(s);
}

/* ---- zones ---- */

static size_t slot_of(const struct map *m, uint64_t number)
{
	size_t i = (size_t)(number * 0x9e3779b97f4a7c15ull >> 20) & (m->cap - 1);

	while (m->zone[i] && m->zone[i]->number != number)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static struct zone *zone_find(const struct map *m, uint64_t number)
{
	return m->cap ? m->zone[slot_of(m, number)] : NULL;
}

static void grow(struct map *m)
{
	struct zone **old = m->zone;
	const size_t cap = m->cap;

	m->cap = cap ? 2 * cap : 64;
	m->zone = base_alloc(m->cap * sizeof *m->zone);
	for (size_t i = 0; i < cap; i++)
		if (old[i])
			m->zone[slot_of(m, old[i]->number)] = old[i];
	free(old);
}

static struct zone *zone_of(struct map *m, uint64_t number)
{
	struct zone *z = zone_find(m, number);

	if (z)
		return z;
	if (2 * m->nzones >= m->cap)
		grow(m);
	z = base_alloc(sizeof *z);
	z->number = number;
	m->zone[slot_of(m, number)] = z;
	m->nzones++;
	m->bytes += sizeof *z;
	return z;
}

void map_clear(struct map *m)
{
	for (size_t i = 0; i < m->cap; i++) {
		struct zone *z = m->zone[i];

		if (!z)
			continue;
		for (size_t k = 0; k < z->piece.n; k++)
			state_put(m, z->piece.at[k].state);
		vec_free(&z->piece);
		free(z);
		m->zone[i] = NULL;
	}
	m->nzones = 0;
	m->bytes = 0;
}

/* ---- accesses ---- */

/* A zone while its pieces are rewritten. */
struct rewrite {
	struct map *m;
	uint64_t base;
	VEC(struct piece) to;
	map_step *step;
	void *user;
};

/* Takes over a reference to the state. */
static void put(struct rewrite *w, uint32_t from, uint32_t to, struct order_state *s)
{
	struct piece *last = w->to.n ? &w->to.at[w->to.n - 1] : NULL;

	if (!s)
		return;
	if (last && last->to == from && last->state == s) {
		last->to = to;
		state_put(w->m, s);
		return;
	}
	vec_push(&w->to, ((struct piece){ from, to, s }));
}

static void keep(struct rewrite *w, uint32_t from, uint32_t to, struct order_state *s)
{
	s->refs++;
	put(w, from, to, s);
}

static void change(struct rewrite *w, uint32_t from, uint32_t to, struct order_state *s)
{
	put(w, from, to, w->step(w->user, s, w->base + from, to - from));
}

/* Applies the step to [from, to), of which the pieces from *i on are not written yet. */
static void rewrite_range(struct rewrite *w, const struct zone *z, size_t *i, uint32_t *done,
	uint32_t from, uint32_t to)
{
	static const struct piece none = { .from = UINT32_MAX };
	const struct piece *p;

	for (; *i < z->piece.n && z->piece.at[*i].to <= from; ++*i) {
		p = &z->piece.at[*i];
		if (*done < p->to)
			keep(w, p->from > *done ? p->from : *done, p->to, p->state);
	}
	p = *i < z->piece.n ? &z->piece.at[*i] : &none;
	if (p->from < from && *done < from)
		keep(w, p->from > *done ? p->from : *done, from, p->state);
	for (*done = from; *done < to;) {
		p = *i < z->piece.n ? &z->piece.at[*i] : &none;
		if (p->from >= to) {
			change(w, *done, to, NULL);
			*done = to;
		} else if (p->from > *done) {
			change(w, *done, p->from, NULL);
			*done = p->from;
		} else {
			const uint32_t end = p->to < to ? p->to : to;

			change(w, *done, end, p->state);
			*done = end;
			*i += end == p->to;
		}
	}
}

/* Applies the step to those of the ranges that begin in the zone; returns their number. *cut: where
 * the first one begins, if an earlier zone had its beginning; afterwards, the rest of the last one. */
static size_t rewrite_zone(struct map *m, uint64_t number, const struct order_range *range, size_t n,
	uint64_t *cut, map_step *step, void *user)
{
	struct zone *z = zone_of(m, number);
	struct rewrite w = { .m = m, .base = number << ZONE_SHIFT, .step = step, .user = user };
	const uint64_t end = w.base + ZONE_BYTES;
	size_t i = 0, k = 0;
	uint32_t done = 0;

	m->bytes -= z->piece.cap * sizeof *z->piece.at;
	for (; k < n && range[k].addr < end; k++) {
		const uint64_t from = *cut > range[k].addr ? *cut : range[k].addr;
		const uint64_t to = range[k].addr + range[k].bytes;

		rewrite_range(&w, z, &i, &done, (uint32_t)(from - w.base),
			(uint32_t)((to < end ? to : end) - w.base));
		*cut = end;
		if (to > end)
			break;
		*cut = 0;
	}
	for (; i < z->piece.n; i++) {
		const struct piece *p = &z->piece.at[i];

		if (done < p->to)
			keep(&w, p->from > done ? p->from : done, p->to, p->state);
	}
	for (i = 0; i < z->piece.n; i++)
		state_put(m, z->piece.at[i].state);
	vec_free(&z->piece);
	z->piece.at = w.to.at;
	z->piece.n = w.to.n;
	z->piece.cap = w.to.cap;
	m->bytes += z->piece.cap * sizeof *z->piece.at;
	return k;
}

void map_apply(struct map *m, const struct order_range *range, size_t n, map_step *step, void *user)
{
	uint64_t cut = 0; /* not 0: the bytes of range[0] before it are done */

	while (n) {
		const uint64_t from = cut ? cut : range->addr;
		const size_t k = rewrite_zone(m, from >> ZONE_SHIFT, range, n, &cut, step, user);

		range += k;
		n -= k;
	}
}

void map_each(const struct map *m, uint64_t addr, uint64_t bytes,
	void (*each)(void *user, const struct order_state *s, uint64_t addr, uint64_t bytes),
	void *user)
{
	const uint64_t end = addr + bytes;

	for (uint64_t number = addr >> ZONE_SHIFT; number << ZONE_SHIFT < end; number++) {
		const struct zone *z = zone_find(m, number);

		for (size_t i = 0; z && i < z->piece.n; i++) {
			const struct piece *p = &z->piece.at[i];
			uint64_t from = (number << ZONE_SHIFT) + p->from;
			uint64_t to = (number << ZONE_SHIFT) + p->to;

			from = from > addr ? from : addr;
			to = to < end ? to : end;
			if (from < to)
				each(user, p->state, from, to - from);
		}
	}
}
