/* check: the entry points of the checker. Opens and closes launches and clusters, and calls the
 * handler of each event: on_<member>(), in the file of its subject. */
#include "global.h"
#include "tcgen05.h"

#include <stdlib.h>
#include <string.h>

void check_policy_default(struct check_policy *p)
{
	*p = (struct check_policy){
#define KNOB(id, deflt, strict, rules, doc) .id = deflt,
#include "policy.def"
#undef KNOB
	};
}

void check_policy_strict(struct check_policy *p)
{
	*p = (struct check_policy){
#define KNOB(id, deflt, strict, rules, doc) .id = strict,
#include "policy.def"
#undef KNOB
	};
}

struct check *check_open(const struct check_config *config)
{
	struct check *k = base_alloc(sizeof *k);

	k->config = *config;
	k->last = UINT32_MAX;
	if (config->global) {
		k->global = global_open();
		grids_begin(k);
	}
	k->maps = map_table_open();
	k->repeats = repeats_open();
	pthread_mutex_init(&k->lock, NULL);
	return k;
}

/* ---- lifetimes ---- */

void on_cta_begin(struct cluster *c, const struct event *e)
{
	struct cta *cta = &c->cta[e->cta];
	uint32_t left = e->cta_begin.threads;

	cta->threads = e->cta_begin.threads;
	if (cta->begun && cta->bytes >= e->cta_begin.shared_bytes) {
		shadow_reset(&cta->shadow);
	} else {
		if (cta->begun)
			shadow_close(&cta->shadow);
		free(cta->mbar_at);
		cta->bytes = (e->cta_begin.shared_bytes + 15) & ~15u;
		shadow_open(&cta->shadow, cta->bytes);
		cta->mbar_at = base_alloc((cta->bytes / 8 + 1) * sizeof *cta->mbar_at);
	}
	if (cta->tmem_open)
		shadow_reset(&cta->tmem);
	memset(cta->freed, 0, sizeof cta->freed);
	cta->begun = true;
	cta->ended = false;
	for (uint32_t i = 0; i < c->per_cta; i++) {
		struct warp *w = &c->warp[e->cta * c->per_cta + i];
		uint32_t lanes = left >= 32 ? 32 : left;

		left -= lanes;
		w->all = w->live = lanes == 32 ? UINT32_MAX : (1u << lanes) - 1;
		if (lanes)
			w->group[w->ngroups++] = (struct group){ w->live, frontier_new(&c->space) };
		if (lanes && c->check->global && c->check->global->start)
			foreign_learn(&c->space, w->group[0].f, c->check->global->start, c->number);
	}
}

void on_thread_exit(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);

	if (!c->truncated)
		async_exit(c, w, e);
	order_exit(c, w, e->lanes);
	if (!c->truncated)
		wgmma_exit(c, w, e);
}

void on_cta_end(struct cluster *c, const struct event *e)
{
	if (c->truncated)
		return;
	c->cta[e->cta].ended = true;
	async_cta_end(c, e->cta, e);
	tc_cta_end(c, e->cta, e);
	alloc_cta_end(c, e);
	wgmma_cta_end(c, e);
	cluster_cta_end(c, e);
}

/* ---- events ---- */

void check_flush(struct cluster *c, const struct event *e)
{
	const uint32_t warp = e->cta * c->per_cta + e->warp;

	if (c->global && c->global->reads[warp].early && global_flushes(e))
		global_flush(c, &c->warp[warp], false);
}

void check_handle(struct cluster *c, const struct event *e)
{
	switch (e->kind) {
#define EV(id, member, meaning, fields) case EV_##id: on_##member(c, e); break;
#define EV_LIKE(id, member, like_id, like, meaning) EV(id, member, meaning, )
#include "libconsan/event/event.def"
#undef EV_LIKE
#undef EV
	case EV_COUNT: break;
	}
}

void check_event(struct cluster *c, const struct event *e)
{
	check_flush(c, e);
	check_handle(c, e);
}

static void on_event(struct event_sink *sink, const struct event *e)
{
	struct cluster *c = (struct cluster *)sink;

	c->stats.events++;
	c->now = e;
	if (e->cta >= c->nctas || e->warp >= c->per_cta)
		return;
	if (c->repeat.state == REPEAT_NOT) {
		recorder_event(c->info.recorder, e);
		check_event(c, e);
	} else {
		repeat_event(c, e);
	}
}

/* ---- clusters ---- */

static struct cluster *new_cluster(struct check *k, const struct cluster_info *info)
{
	struct cluster *c = base_alloc(sizeof *c);

	c->check = k;
	c->sink.event = on_event;
	c->nctas = info->nctas;
	c->per_cta = info->warps_per_cta;
	c->nwarps = c->nctas * c->per_cta;
	c->wg_per_cta = (c->per_cta + 3) / 4;
	c->nwarpgroups = c->nctas * c->wg_per_cta;
	c->ntensor = k->config.launch.tensor ? c->nwarps : 0;
	c->space.ngeneric = 2 * c->nwarps;
	c->space.nagents = agent_slot(c, 0);
	c->cta = base_alloc(c->nctas * sizeof *c->cta);
	c->warp = base_alloc(c->nwarps * sizeof *c->warp);
	c->wg = base_alloc(c->nwarpgroups * sizeof *c->wg);
	if (k->global) {
		c->global = base_alloc(sizeof *c->global);
		c->global->reads = base_alloc(c->nwarps * sizeof *c->global->reads);
		c->global->host = base_alloc(c->nwarps * sizeof *c->global->host);
		c->global->recent = base_alloc(c->nwarps * RECENT * sizeof *c->global->recent);
		c->global->has_recent = base_alloc(c->nwarps);
		c->sink.want_global = true;
	}
	locations_open(c);
	c->zero_epochs = base_alloc((agent_slot(c, 0) + MAX_SLOTS + 1) * sizeof *c->zero_epochs);
	c->fenced.known = base_alloc(c->space.ngeneric * sizeof *c->fenced.known);
	c->common = frontier_new(&c->space);
	c->combined = frontier_new(&c->space);
	c->together = frontier_new(&c->space);
	c->repeat.nothing = frontier_new(&c->space);
	c->barrier.now = frontier_new(&c->space);
	c->barrier.before = frontier_new(&c->space);
	c->barrier.gone = frontier_new(&c->space);
	c->barrier.leaving[0] = frontier_new(&c->space);
	c->barrier.leaving[1] = frontier_new(&c->space);
	for (uint32_t r = 0; r < c->nctas; r++)
		c->cta[r].exited = frontier_new(&c->space);
	return c;
}

static void reset_warp(struct cluster *c, uint32_t index)
{
	struct warp *w = &c->warp[index];
	size_t i;

	while (w->ngroups)
		frontier_put(&c->space, w->group[--w->ngroups].f);
	for (i = 0; i < w->released.n; i++)
		order_drop_released(c, &w->released.at[i]);
	for (i = 0; i < w->observed.n; i++)
		frontier_put(&c->space, w->observed.at[i].f);
	w->released.n = w->observed.n = w->stored.n = 0;
	w->nstored = 0;
	groups_reset(&w->copies);
	groups_reset(&w->stores);
	w->copy_arrivals.n = 0;
	memset(&w->progress, 0, sizeof w->progress);
	if (w->nreg)
		memset(w->reg, 0, w->nreg * sizeof *w->reg);
	w->cta = (uint16_t)(index / c->per_cta);
	w->id = (uint16_t)(index % c->per_cta);
	w->index = index;
	w->all = w->live = w->acting = 0;
	memset(w->acted, 0, sizeof w->acted);
	w->epoch = 1;
	w->converged = w->reg_ops = w->exit_site = w->sc_fences = w->syncs = 0;
	w->map = 0;
	tc_reset_warp(w);
	w->moving = (struct wg_copy){ 0 };
	memset(w->left, 0, sizeof w->left);
	w->reg_touched = false;
	w->remote = w->own_fence_site = w->fence_site = w->half_site = w->wg_fences = w->nregs = 0;
	w->relaxed_arrive.site = w->restricted_fence.site = w->global_fence.site = 0;
	w->releases = 0;
}

/* Empties everything; allocations are kept for the next cluster. */
static void reset_cluster(struct cluster *c)
{
	uint32_t i;

	if (c->repeat.untouched) {
		global_cluster_reset(c);
		return;
	}
	barrier_reset(c);
	cluster_reset(c);
	hang_reset(c);
	for (i = 0; i < c->nwarps; i++)
		reset_warp(c, i);
	for (i = 0; i < c->nwarpgroups; i++) {
		struct warpgroup *g = &c->wg[i];

		wgmma_reset(g);
	}
	for (i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];

		c->cta[m->cta].mbar_at[m->addr / 8] = 0;
		phase_release_put(c, &m->now);
		phase_release_put(c, &m->before);
		phase_release_put(c, &m->older);
		free(m->users.at);
		free(m->waits.at);
		free(m->expects.at);
		free(m->arrivals.at);
		free(m->arrivals_before.at);
		free(m->copies.at);
		free(m->view);
	}
	c->mbars.n = 0;
	locations_reset(c);
	c->volatile_flags.n = 0;
	async_ops_reset(c);
	c->space.nagents -= (uint32_t)c->slots.n;
	c->slots.n = 0;
	c->slot_cursor = 0;
	c->slot_last = 0;
	c->slot_event = 0;
	c->generic_slots = c->remote = false;
	c->combined_at = 0;
	c->common_of = NULL;
	for (i = 0; i < c->nctas; i++) {
		frontier_clear(&c->space, c->cta[i].exited);
		c->cta[i].narrow[0] = c->cta[i].narrow[1] = 0;
		alloc_reset(&c->cta[i].allocs);
		c->cta[i].refused.site = 0;
	}
	global_cluster_reset(c);
	c->truncated = false;
	c->repeat.untouched = true;
}

struct event_sink *check_cluster_begin(struct check *k, const struct cluster_info *info)
{
	struct cluster *c, **at = &k->idle;

	pthread_mutex_lock(&k->lock);
	while (*at && (*at)->nctas != info->nctas)
		at = &(*at)->next;
	c = *at;
	if (c)
		*at = c->next;
	pthread_mutex_unlock(&k->lock);
	if (!c)
		c = new_cluster(k, info);
	c->info = *info;
	c->info.launch = &k->config.launch;
	c->number = info->id + (k->global ? k->global->base : 0);
	if (c->number < info->id)
		base_die("more than 2^32 clusters that may overlap");
	reset_cluster(c);
	repeat_begin(c);
	pthread_mutex_lock(&k->lock);
	c->prev = NULL;
	c->next = k->used;
	if (k->used)
		k->used->prev = c;
	k->used = c;
	pthread_mutex_unlock(&k->lock);
	return &c->sink;
}

/* Records all reads of global memory that wait. */
static void flush_all(struct cluster *c)
{
	for (uint32_t i = 0; c->global && i < c->nwarps; i++)
		global_flush(c, &c->warp[i], true);
}

void check_cluster_end(struct check *k, struct event_sink *sink)
{
	struct cluster *c = (struct cluster *)sink;
	uint64_t bytes = 0;

	flush_all(c); /* threads of an aborted launch have not exited: early reads may be left, too */
	if (!repeat_whole(c) && !c->truncated && !k->config.aborted)
		mbar_cluster_end(c);
	repeat_end(c);
	beside_leave(c);
	report_cluster_end(c);
	for (uint32_t i = 0; i < c->nctas; i++) {
		if (!c->cta[i].begun) /* the cluster has only repeated others (repeat.h) */
			continue;
		c->stats.granules += c->cta[i].shadow.visits;
		c->cta[i].shadow.visits = 0;
		bytes += shadow_footprint(&c->cta[i].shadow);
		if (!c->cta[i].tmem_open)
			continue;
		c->stats.granules += c->cta[i].tmem.visits;
		c->cta[i].tmem.visits = 0;
		bytes += shadow_footprint(&c->cta[i].tmem);
	}
	pthread_mutex_lock(&k->lock);
	k->stats.events += c->stats.events;
	k->stats.accesses += c->stats.accesses;
	k->stats.granules += c->stats.granules;
	k->stats.async_ops += c->stats.async_ops;
	k->stats.joins += c->space.joins;
	if (bytes > k->stats.shadow_bytes)
		k->stats.shadow_bytes = bytes;
	c->stats = (struct check_stats){ 0 };
	c->space.joins = 0;
	*(c->prev ? &c->prev->next : &k->used) = c->next;
	if (c->next)
		c->next->prev = c->prev;
	c->next = k->idle;
	k->idle = c;
	pthread_mutex_unlock(&k->lock);
}

static void free_cluster(struct cluster *c)
{
	uint32_t i;

	reset_cluster(c);
	for (i = 0; i < c->nctas; i++) {
		frontier_put(&c->space, c->cta[i].exited);
		if (c->cta[i].begun)
			shadow_close(&c->cta[i].shadow);
		if (c->cta[i].tmem_open)
			shadow_close(&c->cta[i].tmem);
		free(c->cta[i].mbar_at);
		free(c->cta[i].remote_uses.at);
		alloc_free(&c->cta[i].allocs);
	}
	locations_free(c);
	for (i = 0; i < c->nwarps; i++) {
		struct warp *w = &c->warp[i];

		free(w->copies.at);
		free(w->stores.at);
		vec_free(&w->copy_arrivals);
		vec_free(&w->stored);
		free(w->released.at);
		free(w->observed.at);
		free(w->reg);
		tc_free_warp(w);
	}
	for (i = 0; i < c->nwarpgroups; i++) {
		free(c->wg[i].reg);
		free(c->wg[i].tile.at);
		free(c->wg[i].list.at);
		free(c->wg[i].reg_site.at);
	}
	global_cluster_free(c);
	free(c->reg_index);
	free(c->zero_epochs);
	free(c->fenced.known);
	frontier_put(&c->space, c->common);
	frontier_put(&c->space, c->combined);
	frontier_put(&c->space, c->together);
	frontier_put(&c->space, c->repeat.nothing);
	frontier_put(&c->space, c->barrier.now);
	frontier_put(&c->space, c->barrier.before);
	frontier_put(&c->space, c->barrier.gone);
	frontier_put(&c->space, c->barrier.leaving[0]);
	frontier_put(&c->space, c->barrier.leaving[1]);
	clock_space_close(&c->space);
	free(c->cta);
	free(c->warp);
	free(c->wg);
	free(c->mbars.at);
	free(c->slots.at);
	free(c->op);
	vec_free(&c->volatile_flags);
	free(c->seen);
	free(c);
}

/* ---- results ---- */

static int compare(const void *a, const void *b)
{
	return finding_compare(*(const struct finding *const *)a, *(const struct finding *const *)b);
}

void check_truncate(struct check *k, uint32_t cluster)
{
	pthread_mutex_lock(&k->lock);
	k->last = cluster;
	pthread_mutex_unlock(&k->lock);
}

void check_settle(struct check *k)
{
	for (struct cluster *c = k->used; c; c = c->next)
		flush_all(c);
}

bool check_crossed(struct check *k)
{
	bool crossed;

	check_settle(k);
	pthread_mutex_lock(&k->lock);
	crossed = k->global && k->global->pairs.n;
	pthread_mutex_unlock(&k->lock);
	return crossed;
}

static bool is_global_race(const struct finding *f)
{
	return f->nsides == 2 && f->side[0].space == SP_GLOBAL && f->side[1].space == SP_GLOBAL;
}

static void note_observer(void *user, const struct check_range *r)
{
	*(bool *)user |= r->observes;
}

bool check_with_others(struct check *k)
{
	bool observes = false, any = false;

	check_accesses(k, note_observer, &observes);
	pthread_mutex_lock(&k->lock);
	k->with_others = observes;
	for (size_t i = 0; i < k->nfindings && observes; i++)
		any |= is_global_race(k->finding[i]);
	pthread_mutex_unlock(&k->lock);
	return any;
}

size_t check_findings(struct check *k, const struct finding *const **out)
{
	size_t n = 0;

	pthread_mutex_lock(&k->lock);
	free(k->ordered);
	k->ordered = base_alloc((k->nfindings + 1) * sizeof *k->ordered);
	for (size_t i = 0; i < k->nfindings; i++)
		if (k->first[i].high <= k->last && !(k->with_others && is_global_race(k->finding[i])))
			k->ordered[n++] = k->finding[i];
	qsort(k->ordered, n, sizeof *k->ordered, compare);
	pthread_mutex_unlock(&k->lock);
	*out = (const struct finding *const *)k->ordered;
	return n;
}

void check_edit(struct check *k, size_t i, const struct finding_edit *e,
	const struct finding_edit *also, bool hint)
{
	struct finding *f = k->ordered[i];

	f->edit = *e;
	f->also = *also;
	if (hint)
		return;
	f->hint_id = 0;
	*f->hint = 0;
}

void check_untried(struct check *k, enum finding_untried why)
{
	for (size_t i = 0; i < k->nfindings; i++)
		if (*k->finding[i]->edit.ptx && !k->finding[i]->edit.verified)
			k->finding[i]->edit.untried = (uint8_t)why;
}

bool check_idle_waits(const struct check *k)
{
	return __atomic_load_n(&k->idle_waits, __ATOMIC_RELAXED);
}

void check_stats(const struct check *k, struct check_stats *out)
{
	*out = k->stats;
}

void check_close(struct check *k)
{
	while (k->idle) {
		struct cluster *c = k->idle;

		k->idle = c->next;
		free_cluster(c);
	}
	if (k->global)
		grids_end(k);
	global_close(k->global);
	for (size_t i = 0; i < k->nfindings; i++) {
		finding_free(k->finding[i]);
		free(k->finding[i]);
	}
	map_table_close(k->maps);
	repeats_close(k->repeats);
	free(k->finding);
	free(k->first);
	free(k->ordered);
	free(k->index);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
