/* maps: which places of global memory hold tensor maps, as far as the launch's
 * tensor copies say: those are the places of which stores are told as changes of
 * a map. Maps in parameters do not change. */
#include "events.h"

#include <stdlib.h>
#include <string.h>

static bool names_map(const struct site_info *s)
{
	for (unsigned k = 0; s->phase == PHASE_BEFORE && k < s->plan.nvalues; k++)
		if (s->plan.value[k].kind == VAL_MAP)
			return true;
	return false;
}

/* Where it is, or would have to be. */
static uint64_t *place_of(const struct map_set *m, uint64_t addr)
{
	uint32_t k = (uint32_t)(addr * 0x9e3779b97f4a7c15u >> 32);

	while (m->at[k & (m->cap - 1)] && m->at[k & (m->cap - 1)] != addr)
		k++;
	return &m->at[k & (m->cap - 1)];
}

static void grow(struct map_set *m)
{
	struct map_set old = *m;

	m->cap = old.cap ? 2 * old.cap : 64;
	m->at = base_alloc(m->cap * sizeof *m->at);
	for (uint32_t k = 0; k < old.cap; k++)
		if (old.at[k])
			*place_of(m, old.at[k]) = old.at[k];
	free(old.at);
}

static void add(struct map_set *m, uint64_t addr)
{
	uint64_t *place;

	if (2 * m->n >= m->cap)
		grow(m);
	place = place_of(m, addr);
	if (*place)
		return;
	*place = addr;
	m->low = m->n && m->low < addr ? m->low : addr;
	m->high = m->n && m->high > addr ? m->high : addr;
	m->n++;
}

bool maps_hold(const struct map_set *m, uint64_t addr)
{
	return addr >= m->low && addr <= m->high && m->n && *place_of(m, addr);
}

static void add_named(struct dcluster *c, const uint32_t *at)
{
	const struct record r = { .site = *at >> RECORD_SITE_SHIFT, .lanes = at[1], .words = at + 4 };
	const struct plan *p = &c->job->info[r.site].plan;

	for (unsigned k = 0; k < p->nvalues; k++) {
		if (p->value[k].kind != VAL_MAP)
			continue;
		for EACH_LANE(l, r.lanes) {
			uint64_t addr = record_value(c, &r, p->value[k].o, l);

			if (addr && !(addr & RECORD_PARAM))
				add(&c->job->maps, addr);
		}
	}
}

void maps_find(struct job *j)
{
	const size_t nsites = j->l->code->site.n;
	const char *pool = j->l->pool;
	struct dcluster c = { .job = j };
	bool *names, any = false;

	if (!j->l->code->global || !((const uint32_t *)j->l->pool)[RECORD_MAPS_AT / 4])
		return;
	names = base_alloc(nsites + 1);
	for (size_t k = 1; k < nsites; k++)
		any |= names[k] = names_map(&j->info[k]);
	for (uint32_t k = 1; any && k <= j->l->chunks; k++) {
		const uint32_t *at = (const void *)(pool + (size_t)k * RECORD_CHUNK_BYTES);
		const uint32_t *end = at + RECORD_CHUNK_BYTES / 4;
		uint32_t site;

		for (at += RECORD_UNIT / 4; at < end && *at; at += 4 * record_units(&j->info[site],
				*at & RECORD_AFFINE, at[1])) {
			site = *at >> RECORD_SITE_SHIFT;
			if (site >= nsites || !at[1])
				break; /* which whoever decodes it will say */
			if (names[site])
				add_named(&c, at);
		}
	}
	free(names);
}

void maps_drop(struct job *j)
{
	free(j->maps.at);
}
