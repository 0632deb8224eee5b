/* beside: see beside.h. */
#include "global.h"
#include "host.h"
#include "met.h"

#include <stdlib.h>

static struct beside *beside_new(uint64_t unseen)
{
	struct beside *b = base_alloc(sizeof *b);

	for (unsigned i = 0; i < LOCATION_SHARDS; i++)
		pthread_mutex_init(&b->location[i].lock, NULL);
	pthread_mutex_init(&b->met_lock, NULL);
	b->shadow = global_shadow_open();
	b->refs = 1;
	b->unseen = unseen;
	return b;
}

struct beside *check_met_get(struct beside *b)
{
	__atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);
	return b;
}

void check_met_put(struct beside *b)
{
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (size_t i = 0; i < b->grid.n; i++) {
		foreign_put(b->grid.at[i]->left);
		foreign_put(b->grid.at[i]->complete);
		free(b->grid.at[i]);
	}
	vec_free(&b->grid);
	vec_free(&b->met);
	vec_free(&b->host_known);
	pthread_mutex_destroy(&b->met_lock);
	free(b);
}

/* The set ends: what its grids learned may be asked for yet. */
static void beside_free(struct beside *b)
{
	for (unsigned i = 0; i < LOCATION_SHARDS; i++) {
		location_free(NULL, &b->location[i].table);
		pthread_mutex_destroy(&b->location[i].lock);
	}
	for (size_t i = 0; i < b->launch.n; i++)
		foreign_put(b->launch.at[i].set);
	vec_free(&b->launch);
	vec_free(&b->host_page);
	host_free(b->host);
	b->host = NULL;
	check_met_put(b);
}

static bool is_before(const struct check *k, const struct beside_grid *g)
{
	return g->grid.info.id != HOST_GRID && k->config.before
		&& k->config.before(k->config.user, g->grid.info.id, k->config.launch.id);
}

/* An upper bound of the number of clusters, whatever their sizes. */
static uint64_t clusters_of(const struct launch_info *l)
{
	return 2 * (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

static bool all_before(const struct check *k, const struct beside *b)
{
	for (size_t i = 0; i < b->grid.n; i++)
		if (b->grid.at[i]->grid.info.id != HOST_GRID && !is_before(k, b->grid.at[i]))
			return false;
	return host_before(k, b);
}

/* A graph that a grid has launched may begin when later grids have ended. Bounded, as launches that were
 * refused never begin. */
static bool awaits_launch(const struct beside *b)
{
	enum { MOST_KEPT = 64 };

	return b->launch.n && b->grid.n < MOST_KEPT;
}

static void drop(struct beside **running)
{
	global_shadow_close((*running)->shadow);
	beside_free(*running);
	*running = NULL;
}

void beside_drop(struct beside **running)
{
	if (*running && !(*running)->running && !(*running)->launch.n)
		drop(running);
}

void beside_launches(struct check *k, uint64_t number, struct foreign *set)
{
	pthread_mutex_lock(&k->lock);
	k->launches = true;
	vec_push(&k->global->beside->launch, ((struct beside_launch){ number, set }));
	pthread_mutex_unlock(&k->lock);
}

/* What the thread that launched the grid knew. */
static void begin_with_launch(struct check *k, struct beside *b)
{
	for (size_t i = 0; i < b->launch.n; i++) {
		struct beside_launch *x = &b->launch.at[i];

		if (x->number != k->config.launch.launched)
			continue;
		foreign_join(&k->global->start, x->set);
		foreign_put(x->set);
		*x = b->launch.at[--b->launch.n];
		return;
	}
}

void beside_begin(struct check *k, struct beside **running, uint32_t *sets)
{
	const struct launch_info *l = &k->config.launch;
	struct global *g = k->global;
	struct beside_grid *new = base_alloc(sizeof *new);
	struct beside *b = running ? *running : NULL;

	if (b && !b->running && !awaits_launch(b) && all_before(k, b)) {
		drop(running);
		b = NULL;
	}
	if (b && b->end + clusters_of(l) > UINT32_MAX / 2) {
		b = NULL;
		running = NULL;
	}
	if (!b) {
		b = beside_new(check_memory_unseen(k->config.memory));
		if (running) {
			*running = b;
			b->number = ++*sets;
		}
	}
	g->before = base_alloc(b->grid.n + 1);
	for (size_t i = 0; i < b->grid.n; i++) {
		g->before[i] = is_before(k, b->grid.at[i]);
		if (!g->before[i])
			continue;
		foreign_join(&g->start, b->grid.at[i]->left);
		foreign_join(&g->start, b->grid.at[i]->complete);
	}
	if (l->launched)
		begin_with_launch(k, b);
	if (b == k->config.host_of)
		foreign_join(&g->start, k->config.host_knew);
	g->beside = b;
	g->beside_at = (uint32_t)b->grid.n;
	g->base = b->end;
	g->shadow = b->shadow;
	new->grid = (struct past_grid){ .info = *l, .base = g->base };
	finding_set_kernel(new->grid.kernel, l->kernel ? l->kernel : "");
	new->grid.info.symbols = NULL;
	new->grid.info.nsymbols = 0;
	new->grid.info.kernel = NULL;
	b->end = new->grid.end = (uint32_t)(g->base + clusters_of(l));
	new->complete = foreign_mark(new->grid.end - 1); /* no cluster has this number */
	b->running++;
	vec_push(&b->grid, new);
}

bool check_launches(const struct check *k)
{
	return k->launches;
}

uint32_t check_beside(const struct check *k)
{
	return k->global ? k->global->beside->number : 0;
}

bool beside_alone(const struct check *k)
{
	return k->global->beside->grid.n == 1;
}

/* Later grids may not be ordered after all of them. A grid that was alone matters to these if it released
 * something. */
static bool goes_on(const struct beside *b)
{
	return b->launch.n || ((b->grid.n > 1 || b->nlocations) && b->grid.n < MOST_GRIDS);
}

bool beside_end(struct check *k, struct beside **running, bool stays)
{
	struct beside *b = k->global->beside;

	foreign_put(k->global->start);
	free(k->global->before);
	if (--b->running)
		return false;
	if (running && *running == b && stays && goes_on(b))
		return false;
	if (running && *running == b)
		*running = NULL;
	beside_free(b);
	return true;
}

void beside_leave(struct cluster *c)
{
	struct global *g = c->check->global;
	struct foreign **left;

	if (!g || g->inherited)
		return;
	left = &g->beside->grid.at[g->beside_at]->left;
	pthread_mutex_lock(&c->check->lock);
	if (g->start && !*left)
		foreign_join(left, g->start);
	for (uint32_t i = 0; i < c->nctas; i++)
		if (c->cta[i].begun && c->cta[i].exited && c->cta[i].exited->foreign)
			foreign_join(left, c->cta[i].exited->foreign);
	pthread_mutex_unlock(&c->check->lock);
}

uint32_t beside_index(const struct beside *b, uint32_t cluster)
{
	size_t from = 0, to = b->grid.n - 1;

	while (from < to) {
		const size_t i = (from + to) / 2;

		if (cluster >= b->grid.at[i]->grid.end)
			from = i + 1;
		else
			to = i;
	}
	return (uint32_t)from;
}

static const struct beside_grid *find(const struct check *k, uint32_t cluster)
{
	const struct beside *b = k->global->beside;

	return b->grid.at[beside_index(b, cluster)];
}

bool beside_other(const struct check *k, uint32_t cluster)
{
	const struct global *g = k->global;
	const struct past_grid *own;

	if (g->inherited || g->beside->grid.n == 1)
		return false;
	own = &g->beside->grid.at[g->beside_at]->grid;
	return cluster < own->base || cluster >= own->end;
}

bool beside_before(const struct check *k, uint32_t cluster)
{
	const uint32_t i = beside_index(k->global->beside, cluster);

	return i < k->global->beside_at ? k->global->before[i]
		: is_before(k, k->global->beside->grid.at[i]);
}

bool beside_complete(const struct check *k, const struct foreign *known, uint32_t cluster)
{
	return known && foreign_find(known, find(k, cluster)->grid.end - 1);
}

const struct past_grid *beside_of(const struct check *k, uint32_t cluster)
{
	return &find(k, cluster)->grid;
}

uint32_t beside_per_cta(const struct check *k, uint32_t cluster)
{
	const struct launch_info *l = &find(k, cluster)->grid.info;

	return (l->block[0] * l->block[1] * l->block[2] + 31) / 32;
}

struct agents beside_agents(const struct check *k, uint32_t cluster)
{
	const struct launch_info *l = &find(k, cluster)->grid.info;
	const uint32_t ctas = l->cluster[0] * l->cluster[1] * l->cluster[2];
	const uint32_t warps = beside_per_cta(k, cluster);

	return (struct agents){ ctas * warps, ctas * ((warps + 3) / 4), l->tensor ? ctas * warps : 0 };
}

unsigned beside_scope_needed(const struct check *k, uint32_t cluster, unsigned cta,
	uint32_t other_cluster, unsigned other_cta)
{
	const struct global *g = k->global;

	if (cluster != other_cluster && g && !g->inherited && g->beside->grid.n > 1
		&& find(k, cluster)->grid.info.device != find(k, other_cluster)->grid.info.device)
		return SCOPE_SYS;
	return scope_needed(cluster, cta, other_cluster, other_cta);
}
