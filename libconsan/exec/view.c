/* view: see view.h. */
#include "view.h"

#include "libconsan/base/base.h"

#include <stdlib.h>

struct view *view_get(struct view *v)
{
	if (v)
		v->refs++;
	return v;
}

void view_put(struct view *v)
{
	if (v && !--v->refs)
		free(v);
}

/* The first entry of this or a later location */
static uint32_t place(const struct view *v, uint32_t location)
{
	uint32_t lo = 0, hi = v ? v->n : 0;

	while (lo < hi) {
		const uint32_t mid = (lo + hi) / 2;

		if (v->at[mid].location < location)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t view_from(const struct view *v, uint32_t location)
{
	const uint32_t i = place(v, location);

	return v && i < v->n && v->at[i].location == location ? v->at[i].from : 0;
}

static struct view *view_new(uint32_t most)
{
	struct view *v = base_alloc(sizeof *v + most * sizeof v->at[0]);

	v->refs = 1;
	return v;
}

static void append(struct view *v, struct view_entry e, const uint32_t *floor)
{
	if (e.from > floor[e.location])
		v->at[v->n++] = e;
}

struct view *view_raise(struct view *v, uint32_t location, uint32_t from, const uint32_t *floor)
{
	const struct view_entry now = { location, from };
	const uint32_t i = place(v, location), n = v ? v->n : 0;
	struct view *to;

	if (from <= floor[location] || view_from(v, location) >= from)
		return v;
	to = view_new(n + 1);
	for (uint32_t k = 0; k < i; k++)
		append(to, v->at[k], floor);
	append(to, now, floor);
	for (uint32_t k = i; k < n; k++)
		if (v->at[k].location != location)
			append(to, v->at[k], floor);
	view_put(v);
	return to;
}

/* Does a demand what b does? */
static bool covers(const struct view *a, const struct view *b, const uint32_t *floor)
{
	for (uint32_t i = 0, k = 0; i < b->n; i++) {
		const struct view_entry e = b->at[i];

		if (e.from <= floor[e.location])
			continue;
		while (k < a->n && a->at[k].location < e.location)
			k++;
		if (k == a->n || a->at[k].location != e.location || a->at[k].from < e.from)
			return false;
	}
	return true;
}

struct view *view_join(struct view *a, struct view *b, const uint32_t *floor)
{
	struct view *to;
	uint32_t i = 0, k = 0;

	if (!b || a == b || (a && covers(a, b, floor)))
		return a;
	if (!a || covers(b, a, floor)) {
		view_put(a);
		return view_get(b);
	}
	to = view_new(a->n + b->n);
	while (i < a->n || k < b->n) {
		if (k == b->n || (i < a->n && a->at[i].location < b->at[k].location)) {
			append(to, a->at[i++], floor);
		} else if (i == a->n || b->at[k].location < a->at[i].location) {
			append(to, b->at[k++], floor);
		} else {
			append(to, a->at[i].from > b->at[k].from ? a->at[i] : b->at[k], floor);
			i++;
			k++;
		}
	}
	view_put(a);
	return to;
}
