/* global_each: which accesses the shadow remembers of each byte, after a launch. */
#include "global_logged.h"

static void each_entry(const struct shard *s, uint32_t state, uint64_t addr, uint32_t granules,
	global_each *each, void *user)
{
	const struct state *x = &s->state[state];

	for (uint32_t i = 0; i < x->n; i++)
		each(user, record_at(s, x->at[i].record), addr, granules, x->at[i].bytes);
}

static void each_region(const struct shard *s, const struct region *r, global_each *each, void *user)
{
	const uint64_t base = r->number << REGION_SHIFT;

	if (!r->id) {
		each_entry(s, r->all, base, REGION_GRANULES, each, user);
		return;
	}
	for (uint32_t i = 0, k; i < REGION_GRANULES; i = k) {
		for (k = i + 1; k < REGION_GRANULES && r->id[k] == r->id[i]; k++)
			;
		each_entry(s, r->id[i], base + i * GRANULE, k - i, each, user);
	}
}

void global_shadow_each(struct global_shadow *g, global_each *each, void *user)
{
	global_log_each(g->log, each, user);
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &g->shard[i];

		pthread_mutex_lock(&s->lock);
		for (uint32_t k = 0; k < s->cap_regions; k++)
			for (const struct region *r = s->region[k]; r; r = r->next)
				each_region(s, r, each, user);
		pthread_mutex_unlock(&s->lock);
	}
}
