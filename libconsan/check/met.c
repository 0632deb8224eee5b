/* met: see met.h. */
#include "met.h"
#include "check.h"
#include "global.h"

#include <stdlib.h>
#include <string.h>

static uint16_t number_of(struct beside *b, const struct met_grids *set)
{
	uint16_t at;

	pthread_mutex_lock(&b->met_lock);
	for (at = 0; at < b->met.n; at++)
		if (!memcmp(&b->met.at[at], set, sizeof *set))
			break;
	if (at == b->met.n && at < MOST_MET)
		vec_push(&b->met, *set);
	pthread_mutex_unlock(&b->met_lock);
	return (uint16_t)(at + 1);
}

uint16_t met_number(struct cluster *c, struct foreign *foreign)
{
	struct beside *b = c->check->global->beside;
	struct met_cache *m = &c->global->met[(uintptr_t)foreign / 64 % MET_CACHE];
	struct met_grids set = { { 0 } };
	bool any = false;

	if (!foreign || c->check->global->inherited || b->grid.n == 1)
		return 0;
	if (m->foreign == foreign)
		return m->number;
	for (uint32_t i = 0; i < foreign->n; i++) {
		const uint32_t at = beside_index(b, foreign->at[i].cluster);

		if (foreign->at[i].cluster == GRIDS_WAITED || at == c->check->global->beside_at)
			continue;
		if (at >= MOST_GRIDS)
			return MOST_MET + 1; /* too many: not known */
		set.bits[at / 32] |= 1u << at % 32;
		any = true;
	}
	foreign_put(m->foreign);
	m->foreign = foreign_get(foreign);
	m->number = any ? number_of(b, &set) : 0;
	return m->number;
}

void met_cluster_reset(struct cluster *c)
{
	for (unsigned i = 0; i < MET_CACHE; i++) {
		foreign_put(c->global->met[i].foreign);
		c->global->met[i] = (struct met_cache){ 0 };
	}
}

/* ---- for the comparison of operations ---- */

struct beside *check_met(const struct check *k)
{
	struct beside *b = k->global ? k->global->beside : NULL;

	/* also of one that was alone: the host may join */
	if (!b || !__atomic_load_n(&b->nlocations, __ATOMIC_ACQUIRE) || (b->grid.n == 1 && !b->system))
		return NULL;
	return check_met_get(b);
}

bool check_silent(const struct check *k)
{
	const struct beside *b = k->global ? k->global->beside : NULL;

	return b && b->grid.n == 1 && !b->system;
}

uint32_t check_met_grids(const struct beside *b)
{
	return (uint32_t)b->grid.n;
}

uint32_t check_met_launch(const struct beside *b, uint32_t grid)
{
	return b->grid.at[grid]->grid.info.id;
}

bool check_met_begun(const struct beside *b, uint32_t grid, const struct check_part *p)
{
	if (p->met > MOST_MET)
		return true; /* too many kinds: not known */
	return p->met && grid < MOST_GRIDS && b->met.at[p->met - 1].bits[grid / 32] >> grid % 32 & 1;
}

bool check_met_ended(const struct beside *b, uint32_t grid, const struct check_part *p)
{
	const struct foreign *left = b->grid.at[grid]->left;

	return foreign_find(left, b->grid.at[beside_index(b, p->cluster)]->grid.end - 1)
		|| foreign_knows(left, p->cluster, p->stored ? PLANE_STORED : PLANE_G, p->agent, p->lanes,
			p->epoch);
}

bool check_met_passed(const struct beside *b, uint32_t first, uint32_t then)
{
	const struct past_grid *g = &b->grid.at[first]->grid;
	const struct foreign *left = b->grid.at[then]->left;

	for (uint32_t i = 0; left && i < left->n; i++)
		if (left->at[i].cluster >= g->base && left->at[i].cluster < g->end)
			return true;
	return false;
}
