/* sites: sites as JSON, see json.h. Inlining makes long chains of places, which many sites share:
 * in kernels made of templates they are nearly all of a record, so a file of records has each site
 * and each place once. */
#include "json.h"

#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

/* ---- by value ---- */

static json_t *from_place(const struct site_loc *l)
{
	json_t *o = json_object();

	rj_put_text(o, "file", l->file);
	rj_put_number(o, "line", l->line);
	rj_put_number(o, "col", l->col);
	rj_put_text(o, "function", l->function);
	if (l->offset)
		rj_put_number(o, "offset", l->offset);
	return o;
}

/* The strings are the object's. */
static struct site_loc get_place(const json_t *o)
{
	const char *function = rj_text(o, "function");

	return (struct site_loc){
		.file = rj_text(o, "file"), .line = (uint32_t)rj_number(o, "line"),
		.col = (uint32_t)rj_number(o, "col"), .function = *function ? function : NULL,
		.offset = rj_number(o, "offset"),
	};
}

static bool unknown(uint32_t id)
{
	const struct site *s = site_get(id);

	return !id || (!*s->kernel && !s->ptx_line && !s->loc);
}

/* All but the place. */
static json_t *from_site(const struct site *s)
{
	json_t *o = json_object();

	rj_put_text(o, "kernel", s->kernel);
	rj_put_text(o, "module", s->module);
	rj_put_number(o, "ptx_line", s->ptx_line);
	rj_put_text(o, "ptx", s->ptx);
	if (!s->ptx_col)
		return o;
	rj_put_number(o, "ptx_col", s->ptx_col);
	rj_put_number(o, "ptx_end_line", s->end_line);
	rj_put_number(o, "ptx_end_col", s->end_col);
	return o;
}

static uint32_t get_site(const json_t *o, const struct site_loc *loc)
{
	struct site s = {
		.kernel = rj_text(o, "kernel"), .module = rj_text(o, "module"),
		.ptx_line = (uint32_t)rj_number(o, "ptx_line"), .ptx = rj_text(o, "ptx"),
		.ptx_col = (uint32_t)rj_number(o, "ptx_col"),
		.end_line = (uint32_t)rj_number(o, "ptx_end_line"),
		.end_col = (uint32_t)rj_number(o, "ptx_end_col"), .loc = loc,
	};

	return site_intern(&s);
}

json_t *results_site_json(uint32_t id)
{
	const struct site *s = site_get(id);
	json_t *o, *locs;

	if (unknown(id))
		return json_null();
	o = from_site(s);
	if (!s->loc)
		return o;
	locs = json_array();
	for (const struct site_loc *l = s->loc; l; l = l->inlined_at)
		json_array_append_new(locs, from_place(l));
	json_object_set_new(o, "source", locs);
	return o;
}

/* Limit for the inlining chain in a damaged file. */
#define MAX_INLINED 64

static uint32_t site_by_value(const json_t *o)
{
	const json_t *locs = json_object_get(o, "source");
	struct site_loc loc[MAX_INLINED];
	size_t n = json_array_size(locs);

	if (!json_is_object(o))
		return 0;
	if (n > MAX_INLINED)
		n = MAX_INLINED;
	for (size_t i = 0; i < n; i++) {
		loc[i] = get_place(json_array_get(locs, i));
		loc[i].inlined_at = i + 1 < n ? &loc[i + 1] : NULL;
	}
	return get_site(o, n ? loc : NULL);
}

/* ---- by number: writing ---- */

/* The place's number; its row, and before it those of its callers, are added if they are new. */
static uint64_t number_of(struct rj_sites *t, const struct site_loc *l)
{
	uint64_t at, number;
	json_t *o;

	if (!l)
		return 0;
	number = number_map_get(&t->place, (uintptr_t)l);
	if (number)
		return number;
	at = number_of(t, l->inlined_at);
	number = t->place.n + 1;
	number_map_put(&t->place, (uintptr_t)l, number);
	o = from_place(l);
	rj_put_number(o, "id", number);
	if (at)
		rj_put_number(o, "at", at);
	if (!t->new_places)
		t->new_places = json_array();
	json_array_append_new(t->new_places, o);
	return number;
}

static json_t *from_site_once(struct rj_sites *t, uint32_t id)
{
	json_t *o = (json_t *)(uintptr_t)number_map_get(&t->site, id);

	if (!o) {
		o = results_site_json(id);
		number_map_put(&t->site, id, (uintptr_t)o);
	}
	return json_incref(o);
}

json_t *rj_from_site(struct rj_sites *t, uint32_t id)
{
	json_t *o;

	if (!t || unknown(id))
		return results_site_json(id);
	if (t->whole)
		return from_site_once(t, id);
	if (number_map_get(&t->site, id))
		return json_integer(id);
	number_map_put(&t->site, id, 1);
	o = from_site(site_get(id));
	rj_put_number(o, "id", id);
	if (site_get(id)->loc)
		rj_put_number(o, "place", number_of(t, site_get(id)->loc));
	if (!t->new_sites)
		t->new_sites = json_array();
	json_array_append_new(t->new_sites, o);
	return json_integer(id);
}

void rj_put_sites(struct rj_sites *t, json_t *o)
{
	if (t->new_places)
		json_object_set_new(o, "places", t->new_places);
	if (t->new_sites)
		json_object_set_new(o, "sites", t->new_sites);
	t->new_places = t->new_sites = NULL;
}

void rj_sites_clear(struct rj_sites *t)
{
	for (size_t i = 0; t->whole && i < t->site.cap; i++)
		if (t->site.at[i].key)
			json_decref((json_t *)(uintptr_t)t->site.at[i].value);
	json_decref(t->new_places);
	json_decref(t->new_sites);
	number_map_free(&t->place);
	number_map_free(&t->site);
	*t = (struct rj_sites){ 0 };
}

/* ---- by number: reading ---- */

static const struct site_loc *place_by_number(const struct rj_known *k, const json_t *o,
	const char *key)
{
	return (const struct site_loc *)(uintptr_t)number_map_get(&k->place, rj_number(o, key));
}

void rj_get_sites(struct rj_known *k, const json_t *o)
{
	const json_t *places = json_object_get(o, "places"), *sites = json_object_get(o, "sites");

	for (size_t i = 0; i < json_array_size(places); i++) {
		const json_t *row = json_array_get(places, i);
		const uint64_t id = rj_number(row, "id");
		struct site_loc *l;

		if (!id)
			continue;
		l = arena_alloc(&k->arena, sizeof *l);
		*l = get_place(row);
		l->file = arena_strndup(&k->arena, l->file, strlen(l->file));
		if (l->function)
			l->function = arena_strndup(&k->arena, l->function, strlen(l->function));
		l->inlined_at = place_by_number(k, row, "at");
		number_map_put(&k->place, id, (uintptr_t)l);
	}
	for (size_t i = 0; i < json_array_size(sites); i++) {
		const json_t *row = json_array_get(sites, i);

		if (rj_number(row, "id"))
			number_map_put(&k->site, rj_number(row, "id"),
				get_site(row, place_by_number(k, row, "place")));
	}
}

uint32_t rj_site(const json_t *o, const struct rj_known *k)
{
	const uint64_t id = (uint64_t)json_integer_value(o);

	if (!json_is_integer(o))
		return site_by_value(o);
	return k && id ? (uint32_t)number_map_get(&k->site, id) : 0;
}

void rj_known_clear(struct rj_known *k)
{
	number_map_free(&k->place);
	number_map_free(&k->site);
	arena_free(&k->arena);
}
