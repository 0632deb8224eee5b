/* global_sync: locations in global memory that clusters synchronize by, as far as all clusters of a
 * launch share them; what explains a race that some synchronization nearly prevents. location.h is
 * the model. */
#include "global.h"
#include "met.h"

#include <stdlib.h>
#include <string.h>

/* ---- locations ---- */

static uint64_t mix(uint64_t x)
{
	return (x * 0x9e3779b97f4a7c15ull) >> 20;
}

struct location_shard *beside_shard(struct beside *b, uint64_t at)
{
	return &b->location[mix(at >> 6) % LOCATION_SHARDS];
}

struct location_shard *global_shard(struct global *g, uint64_t at)
{
	return beside_shard(g->beside, at);
}

void beside_mark(struct beside *b, uint64_t at)
{
	const uint64_t i = mix(at >> 6) % MARKED_LINES;

	__atomic_fetch_or(&b->line[i / 8], (uint8_t)(1u << i % 8), __ATOMIC_RELAXED);
	__atomic_fetch_add(&b->nlocations, 1, __ATOMIC_RELEASE);
}

void global_mark(struct global *g, uint64_t at)
{
	beside_mark(g->beside, at);
}

bool global_marked(const struct global *g, uint64_t at)
{
	const uint64_t i = mix(at >> 6) % MARKED_LINES;

	return __atomic_load_n(&g->beside->line[i / 8], __ATOMIC_RELAXED) >> i % 8 & 1;
}

static struct ordered_by *ordered_by(struct location *l, uint32_t device)
{
	for (size_t i = 0; i < l->wide_ordered.n; i++)
		if (l->wide_ordered.at[i].device == device)
			return &l->wide_ordered.at[i];
	vec_push(&l->wide_ordered, ((struct ordered_by){ .device = device }));
	return &l->wide_ordered.at[l->wide_ordered.n - 1];
}

void global_publish_ordered(struct check *k, uint64_t at, unsigned size, unsigned scope,
	struct foreign *set)
{
	struct global *g = k->global;
	struct location_shard *s = global_shard(g, at);
	struct ordered_by *by;
	struct location *l;

	pthread_mutex_lock(&s->lock);
	l = location_find(&s->table, at, size);
	if (!l) {
		l = location_make(&s->table, at, size);
		global_mark(g, at);
	}
	by = ordered_by(l, k->config.launch.device);
	foreign_join(&by->set, set);
	if (scope >= SCOPE_SYS)
		foreign_join(&by->system, set);
	__atomic_store_n(&g->beside->ordered, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&s->lock);
}

struct foreign *global_take_ordered(struct check *k, uint64_t at, unsigned size, bool system)
{
	struct global *g = k->global;
	struct location_shard *s = global_shard(g, at);
	struct foreign *set = NULL;
	struct location *l;

	if (!__atomic_load_n(&g->beside->ordered, __ATOMIC_ACQUIRE))
		return NULL;
	pthread_mutex_lock(&s->lock);
	l = location_find(&s->table, at, size);
	for (size_t i = 0; l && i < l->wide_ordered.n; i++) {
		const struct ordered_by *by = &l->wide_ordered.at[i];

		if ((by->device != k->config.launch.device) == system)
			foreign_join(&set, system ? by->system : by->set);
	}
	pthread_mutex_unlock(&s->lock);
	return set;
}

/* ---- what too narrow scopes and missing acquires explain ---- */

#define MAX_NARROW 64u

static void narrow_put(const struct narrow_sync *m)
{
	foreign_put(m->set);
	foreign_put(m->enough);
}

void global_note_narrow(struct cluster *c, struct foreign *set, struct foreign *enough,
	uint32_t released, uint32_t acquired)
{
	struct cluster_global *k = c->global;

	for (size_t i = 0; i < k->narrow_sync.n; i++)
		if (k->narrow_sync.at[i].set == set)
			return;
	if (k->narrow_sync.n == MAX_NARROW) {
		narrow_put(&k->narrow_sync.at[0]);
		k->narrow_sync.n--;
		memmove(k->narrow_sync.at, k->narrow_sync.at + 1,
			k->narrow_sync.n * sizeof *k->narrow_sync.at);
	}
	vec_push(&k->narrow_sync, ((struct narrow_sync){ foreign_get(set), foreign_get(enough), released,
		acquired }));
}

/* Kept for explanations, like releases with narrow scopes; the oldest is dropped. */
void global_note_unfenced(struct cluster *c, struct foreign *set, uint32_t released,
	unsigned needed, const struct event *e)
{
	struct cluster_global *k = c->global;

	for (size_t i = 0; i < k->unfenced.n; i++)
		if (k->unfenced.at[i].set == set && k->unfenced.at[i].read == e->site)
			return;
	if (k->unfenced.n == MAX_NARROW) {
		foreign_put(k->unfenced.at[0].set);
		k->unfenced.n--;
		memmove(k->unfenced.at, k->unfenced.at + 1,
			k->unfenced.n * sizeof *k->unfenced.at);
	}
	vec_push(&k->unfenced, ((struct unfenced){ foreign_get(set), released, e->site,
		access_of(e)->mode == MODE_RMW, reads_ticket(e), (uint8_t)needed }));
}

void global_note_narrow_fence(struct cluster *c, const struct event *e)
{
	const struct cluster_global *k = c->global;

	/* one of .cta scope is for threads of the CTA: CS117 says what is missing beside it */
	for (size_t i = 0; i < k->unfenced.n && e->fence.scope >= SCOPE_GPU; i++)
		if (k->unfenced.at[i].needed > e->fence.scope)
			global_note_narrow(c, k->unfenced.at[i].set, NULL, k->unfenced.at[i].released,
				e->site);
}

/* Does the set order the old access before, for some lanes at least? */
static bool set_covers(const struct foreign *set,
	const struct global_record *old)
{
	const struct foreign_entry *x = foreign_find(set, old->cluster);
	const enum plane plane = old->flags & GR_ASYNC && old->flags & GR_WRITE
		? PLANE_STORED : PLANE_G;

	struct clock_space s;

	if (!x)
		return false;
	s = frontier_space(x->known->f);
	return (plane == PLANE_G && frontier_full(&s, x->known->f, plane, old->agent) >= old->epoch)
		|| frontier_lanes(&s, x->known->f, plane, old->agent, old->epoch);
}

const struct unfenced *global_unfenced(const struct global_view *v, const struct global_record *old)
{
	const struct cluster_global *k = v->c->global;
	const struct unfenced *found = NULL;
	bool after = set_covers(v->f->by_others[SEEN], old)
		|| set_covers(v->f->by_others[SEEN_SYSTEM], old);

	for (size_t i = 0; i < v->w->observed.n && !after; i++)
		after = v->w->observed.at[i].lanes & v->lanes
			&& set_covers(v->w->observed.at[i].f->foreign, old);
	for (size_t i = k->unfenced.n; after && i-- > 0;) {
		if (!set_covers(k->unfenced.at[i].set, old))
			continue;
		found = &k->unfenced.at[i];
		if (!found->ticket)
			break;
	}
	return found;
}

const struct narrow_sync *global_narrow_sync(const struct cluster *c,
	const struct global_record *old)
{
	for (size_t i = 0; i < c->global->narrow_sync.n; i++)
		if (set_covers(c->global->narrow_sync.at[i].set, old)
			&& !set_covers(c->global->narrow_sync.at[i].enough, old))
			return &c->global->narrow_sync.at[i];
	return NULL;
}

/* ---- lifetimes ---- */

struct global *global_open(void)
{
	return base_alloc(sizeof(struct global));
}

void global_close(struct global *g)
{
	if (!g)
		return;
	pairs_free(&g->pairs);
	free(g);
}

void global_cluster_reset(struct cluster *c)
{
	struct cluster_global *k = c->global;

	if (!k)
		return;
	while (k->narrow_sync.n)
		narrow_put(&k->narrow_sync.at[--k->narrow_sync.n]);
	while (k->unfenced.n)
		foreign_put(k->unfenced.at[--k->unfenced.n].set);
	met_cluster_reset(c);
	memset(k->host, 0, c->nwarps * sizeof *k->host);
	for (uint32_t w = 0; w < c->nwarps; w++) {
		k->reads[w].early = k->reads[w].late = 0;
		k->reads[w].all.bytes = 0;
		if (k->has_recent[w])
			memset(&k->recent[w * RECENT], 0, RECENT * sizeof *k->recent);
		k->has_recent[w] = 0;
	}
	k->late.bytes = k->written.bytes = 0;
}

void global_cluster_free(struct cluster *c)
{
	if (!c->global)
		return;
	met_cluster_reset(c);
	free(c->global->narrow_sync.at);
	free(c->global->unfenced.at);
	free(c->global->spans.at);
	free(c->global->host);
	free(c->global->reads);
	free(c->global->recent);
	free(c->global->has_recent);
	free(c->global);
}
