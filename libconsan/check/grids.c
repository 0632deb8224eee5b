/* grids: see grids.h. Does not depend on accesses or on what a race is. */
#include "grids.h"
#include "global.h"
#include "host.h"

#include <stdlib.h>
#include <string.h>

struct chain {
	uint64_t queue;
	struct global_shadow *shadow;
	struct grids grids;
};

struct grid_table {
	pthread_mutex_t lock;
	VEC(struct chain) chain;
	struct beside *running;  /* the grids that run now; NULL: none */
	uint32_t sets;           /* of such grids so far */
};

struct grid_table *grid_table_open(void)
{
	struct grid_table *t = base_alloc(sizeof *t);

	pthread_mutex_init(&t->lock, NULL);
	return t;
}

/* Called under the lock. */
static void drop(struct grid_table *t, size_t i)
{
	global_shadow_close(t->chain.at[i].shadow);
	free(t->chain.at[i].grids.at);
	t->chain.at[i] = t->chain.at[--t->chain.n];
}

void grid_table_end(struct grid_table *t, uint64_t queue, bool all)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = t->chain.n; i-- > 0;)
		if (all || t->chain.at[i].queue == queue)
			drop(t, i);
	if (all)
		beside_drop(&t->running);
	pthread_mutex_unlock(&t->lock);
}

void grid_table_close(struct grid_table *t)
{
	grid_table_end(t, 0, true);
	vec_free(&t->chain);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* Called under the lock; NULL: there is none. */
static struct chain *chain_of(struct grid_table *t, uint64_t queue)
{
	for (size_t i = 0; i < t->chain.n; i++)
		if (t->chain.at[i].queue == queue)
			return &t->chain.at[i];
	return NULL;
}

bool grid_table_has(struct grid_table *t, uint64_t queue)
{
	bool has;

	pthread_mutex_lock(&t->lock);
	has = chain_of(t, queue);
	pthread_mutex_unlock(&t->lock);
	return has;
}

/* An upper bound of the number of clusters, whatever their sizes. */
static uint64_t cluster_numbers(const struct launch_info *l)
{
	return 2 * (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

void grids_begin(struct check *k)
{
	struct grid_table *t = k->config.memory ? check_memory_grids(k->config.memory) : NULL;
	const struct launch_info *l = &k->config.launch;
	struct global *g = k->global;
	struct chain *x;

	if (t && !l->programmatic)
		grid_table_end(t, l->queue, false);
	if (t)
		pthread_mutex_lock(&t->lock);
	x = t ? chain_of(t, l->queue) : NULL;
	if (x && x->grids.at[x->grids.n - 1].end + cluster_numbers(l) > UINT32_MAX / 2) {
		drop(t, (size_t)(x - t->chain.at));
		x = NULL;
	}
	beside_begin(k, t && k->config.before && !x ? &t->running : NULL,
		t ? &t->sets : NULL);
	if (x) {
		global_shadow_close(g->shadow);
		g->shadow = x->shadow;
		g->grids = x->grids;
		g->inherited = true;
		g->base = x->grids.at[x->grids.n - 1].end;
		g->waited_from = x->grids.at[x->grids.n - 1].base;
		for (size_t i = x->grids.n - 1; i > 0 && x->grids.at[i].waited; i--)
			g->waited_from = x->grids.at[i - 1].base;
		g->wait_set = foreign_mark(GRIDS_WAITED);
	}
	if (t)
		pthread_mutex_unlock(&t->lock);
}

static void append(struct check *k, struct grids *to)
{
	const struct launch_info *l = &k->config.launch;
	struct past_grid p = { .info = *l, .base = k->global->base, .waited = k->waited };

	p.end = p.base + (uint32_t)cluster_numbers(l);
	finding_set_kernel(p.kernel, l->kernel ? l->kernel : "");
	p.info.symbols = NULL;
	p.info.nsymbols = 0;
	p.info.kernel = NULL;
	vec_push(to, p);
}

void grids_end(struct check *k)
{
	struct grid_table *t = k->config.memory ? check_memory_grids(k->config.memory) : NULL;
	struct global *g = k->global;
	const uint64_t queue = k->config.launch.queue;
	const bool keep = t && k->triggered && k->last == UINT32_MAX && beside_alone(k)
		&& cluster_numbers(&k->config.launch) <= UINT32_MAX / 2;
	struct chain *x;
	bool last;

	if (t)
		pthread_mutex_lock(&t->lock);
	last = beside_end(k, t ? &t->running : NULL, !keep && !g->inherited);
	if (t)
		pthread_mutex_unlock(&t->lock);
	foreign_put(g->wait_set);
	if (keep) {
		pthread_mutex_lock(&t->lock);
		x = g->inherited ? chain_of(t, queue) : NULL;
		if (!x) {
			vec_push(&t->chain, ((struct chain){ .queue = queue, .shadow = g->shadow }));
			x = &t->chain.at[t->chain.n - 1];
		}
		append(k, &x->grids);
		pthread_mutex_unlock(&t->lock);
	} else if (g->inherited) {
		grid_table_end(t, queue, false);
	} else if (last) {
		global_shadow_close(g->shadow);
	}
	g->shadow = NULL;
}

bool check_runs(struct check_memory *m)
{
	return __atomic_load_n(&check_memory_grids(m)->running, __ATOMIC_RELAXED);
}

bool check_is_running(struct check_memory *m, const struct beside *b)
{
	return __atomic_load_n(&check_memory_grids(m)->running, __ATOMIC_RELAXED) == b;
}

bool check_host(struct check_memory *m, const struct check_host_access *a, struct check_host_result *out)
{
	struct grid_table *t = check_memory_grids(m);
	struct beside *b;

	*out = (struct check_host_result){ 0 };
	pthread_mutex_lock(&t->lock);
	b = t->running;
	if (b && b->grid.n < MOST_GRIDS)
		host_access(b, a, check_memory_unseen(m), out);
	pthread_mutex_unlock(&t->lock);
	return out->of;
}

void check_host_word(struct check_memory *m, uint64_t addr, uint32_t bytes, bool write)
{
	struct grid_table *t = check_memory_grids(m);

	pthread_mutex_lock(&t->lock);
	if (t->running && t->running->grid.n < MOST_GRIDS)
		host_word(t->running, addr, bytes, write);
	pthread_mutex_unlock(&t->lock);
}

bool check_host_words(struct check_memory *m, uint64_t from, uint64_t end)
{
	struct grid_table *t = check_memory_grids(m);
	bool any;

	pthread_mutex_lock(&t->lock);
	any = t->running && t->running->host && host_words(t->running, from, end);
	pthread_mutex_unlock(&t->lock);
	return any;
}

void check_host_gives_up(struct check_memory *m, uint64_t from, uint64_t end, bool writes)
{
	struct grid_table *t = check_memory_grids(m);

	pthread_mutex_lock(&t->lock);
	if (t->running && t->running->host)
		host_gives_up(t->running, from, end, writes);
	pthread_mutex_unlock(&t->lock);
}

static struct frontier *wait_is_over(struct cluster *c)
{
	struct frontier *f = frontier_new(&c->space);

	f->foreign = foreign_get(c->check->global->wait_set);
	return f;
}

struct frontier *grids_handed_on(struct cluster *c, const struct frontier *f)
{
	const struct global *g = c->check->global;

	if (!g || !g->wait_set || !f || !foreign_find(f->foreign, GRIDS_WAITED))
		return NULL;
	return wait_is_over(c);
}

void on_griddepcontrol(struct cluster *c, const struct event *e)
{
	struct check *k = c->check;
	struct warp *w = warp_of(c, e);
	struct frontier *f;

	if (e->griddepcontrol.launch_dependents) {
		__atomic_store_n(&k->triggered, true, __ATOMIC_RELAXED);
		return;
	}
	__atomic_store_n(&k->waited, true, __ATOMIC_RELAXED);
	if (!k->global || !k->global->wait_set)
		return;
	f = wait_is_over(c);
	warp_acquire(c, w, e->lanes & w->live, f);
	frontier_put(&c->space, f);
}

bool grids_waited_for(const struct check *k, const struct foreign *foreign, uint32_t cluster)
{
	return cluster >= k->global->waited_from && foreign_find(foreign, GRIDS_WAITED);
}

bool grids_earlier(const struct check *k, uint32_t cluster)
{
	return k->global->inherited && cluster < k->global->base;
}

const struct past_grid *grids_of(const struct check *k, uint32_t cluster)
{
	const struct grids *g = &k->global->grids;
	size_t i = 0;

	while (i + 1 < g->n && cluster >= g->at[i].end)
		i++;
	return &g->at[i];
}
