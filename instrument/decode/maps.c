/* maps: where in global memory the launch's tensor copies find their maps, and which of these
 * maps the launch changes. Stores to them become changes of a map. Maps in parameters do not
 * change. */
#include "events.h"

#include <stdlib.h>

/* ---- the set ---- */

/* The entry of this address, or the free entry for it. */
static struct map_place *entry_of(const struct map_set *m, uint64_t addr)
{
	uint32_t k = (uint32_t)(addr * 0x9e3779b97f4a7c15u >> 32);

	while (m->at[k & (m->cap - 1)].addr && m->at[k & (m->cap - 1)].addr != addr)
		k++;
	return &m->at[k & (m->cap - 1)];
}

static void grow(struct map_set *m)
{
	struct map_set old = *m;

	m->cap = old.cap ? 2 * old.cap : 64;
	m->at = base_alloc(m->cap * sizeof *m->at);
	for (uint32_t k = 0; k < old.cap; k++)
		if (old.at[k].addr)
			*entry_of(m, old.at[k].addr) = old.at[k];
	free(old.at);
}

static void add(struct map_set *m, uint64_t addr)
{
	struct map_place *place;

	if (2 * m->n >= m->cap)
		grow(m);
	place = entry_of(m, addr);
	if (place->addr)
		return;
	place->addr = addr;
	m->low = m->n && m->low < addr ? m->low : addr;
	m->high = m->n && m->high > addr ? m->high : addr;
	m->n++;
}

static struct map_place *find(const struct map_set *m, uint64_t addr)
{
	struct map_place *place = m->n && addr >= m->low && addr <= m->high
		? entry_of(m, addr) : NULL;

	return place && place->addr ? place : NULL;
}

bool maps_hold(const struct map_set *m, uint64_t addr)
{
	return find(m, addr);
}

bool maps_written(const struct map_set *m, uint64_t addr)
{
	const struct map_place *place = find(m, addr);

	return place && place->written;
}

bool maps_rewritten(const struct map_set *m, uint64_t addr)
{
	const struct map_place *place = find(m, addr);

	return place && place->again;
}

/* ---- the records ---- */

static bool names_map(const struct site_info *s)
{
	for (unsigned k = 0; s->phase == PHASE_BEFORE && k < s->plan.nvalues; k++)
		if (s->plan.value[k].kind == VAL_MAP)
			return true;
	return false;
}

static void add_named(struct dcluster *c, const struct record *r)
{
	const struct plan *p = &c->job->info[r->site].plan;

	for (unsigned k = 0; k < p->nvalues; k++) {
		if (p->value[k].kind != VAL_MAP)
			continue;
		for EACH_LANE(l, r->lanes) {
			uint64_t addr = record_value(c, r, p->value[k].o, l);

			if (addr && !(addr & RECORD_PARAM))
				add(&c->job->maps, addr);
		}
	}
}

static bool writes(const struct dcluster *c, uint32_t site)
{
	const struct site_info *s = &c->job->info[site];
	enum ptx_effect effect = ptx_effect_of(record_site(c, site)->insn->op);

	return effect == EF_WRITE ? s->phase == PHASE_GLOBAL
		: effect == EF_TENSORMAP && s->plan.value[0].kind == VAL_GLOBAL;
}

/* No lane's address can be that of a map. */
static bool cannot_be_map(const struct dcluster *c, const struct record *r)
{
	const struct map_set *m = &c->job->maps;
	uint64_t at, reach;

	if (!r->affine || c->job->info[r->site].plan.class != PLAN_GLOBAL)
		return false;
	at = r->base | (uint64_t)r->words[0] << 32;
	reach = 31 * ((uint64_t)llabs((int32_t)r->words[1])
		+ (uint64_t)llabs((int32_t)r->words[2]));
	return at + reach < m->low || at > m->high + reach;
}

static void note_written(struct dcluster *c, const struct record *r)
{
	const uint64_t site = 1ull << r->site % 64;

	if (cannot_be_map(c, r))
		return;
	for EACH_LANE(l, r->lanes) {
		struct map_place *place = find(&c->job->maps, record_global(c, r, l));

		if (!place)
			continue;
		place->again |= place->sites & site && place->last != r->words;
		place->written = true;
		place->sites |= site;
		place->last = r->words;
	}
}

/* Calls `note` for all records of the wanted sites. Damaged records end a chunk; the decoder
 * counts them later. */
static void each_record(struct job *j, const bool *wanted,
	void (*note)(struct dcluster *c, const struct record *r))
{
	struct dcluster c = { .job = j };

	for (uint32_t k = 1; k <= j->l->chunks; k++) {
		const uint32_t *at = (const uint32_t *)chunk_at(j->l, k);
		const uint32_t *end = at + RECORD_CHUNK_BYTES / 4;

		at += RECORD_UNIT / 4;
		while (at < end && *at) {
			struct record r = { .site = *at >> RECORD_SITE_SHIFT, .lanes = at[1],
				.affine = *at & RECORD_AFFINE, .base = at[3], .words = at + 4 };

			if (r.site >= j->l->code->site.n || !r.lanes)
				break;
			if (wanted[r.site])
				note(&c, &r);
			at += 4 * record_units(&j->info[r.site], r.affine, r.lanes);
		}
	}
}

void maps_find(struct job *j)
{
	const size_t nsites = j->l->code->site.n;
	const struct dcluster c = { .job = j };
	bool *wanted;

	if (!decodes_global(j) || !((const uint32_t *)j->l->pool)[RECORD_MAPS_AT / 4])
		return;
	wanted = base_alloc(nsites + 1);
	for (uint32_t k = 1; k < nsites; k++)
		wanted[k] = names_map(&j->info[k]);
	each_record(j, wanted, add_named);
	for (uint32_t k = 1; k < nsites; k++)
		wanted[k] = writes(&c, k);
	if (j->maps.n)
		each_record(j, wanted, note_written);
	free(wanted);
}

void maps_free(struct job *j)
{
	free(j->maps.at);
}
