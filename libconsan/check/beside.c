/* beside: see beside.h. */
#include "global.h"

#include <stdlib.h>

enum { MOST_GRIDS = 256 }; /* of a set; then it ends when none runs */

struct beside_grid {
	struct past_grid grid;
	struct foreign *left;    /* what its threads knew when they exited */
};

static struct beside *beside_new(void)
{
	struct beside *b = base_alloc(sizeof *b);

	for (unsigned i = 0; i < LOCATION_SHARDS; i++)
		pthread_mutex_init(&b->location[i].lock, NULL);
	b->shadow = global_shadow_open();
	return b;
}

static void beside_free(struct beside *b)
{
	for (unsigned i = 0; i < LOCATION_SHARDS; i++) {
		location_free(NULL, &b->location[i].table);
		pthread_mutex_destroy(&b->location[i].lock);
	}
	for (size_t i = 0; i < b->grid.n; i++) {
		foreign_put(b->grid.at[i]->left);
		free(b->grid.at[i]);
	}
	vec_free(&b->grid);
	free(b);
}

/* Warps of a cluster; those with tensor memory have agents of their own. */
static uint32_t shape_of(const struct launch_info *l)
{
	const uint32_t warps = (l->block[0] * l->block[1] * l->block[2] + 31) / 32;
	const uint32_t ctas = l->cluster[0] * l->cluster[1] * l->cluster[2];

	return (warps << 8 | ctas << 1 | l->tensor) + 1;
}

static bool is_before(const struct check *k, const struct beside_grid *g)
{
	return k->config.before && k->config.before(k->config.user, g->grid.info.id,
		k->config.launch.id);
}

/* An upper bound of the number of clusters, whatever their sizes. */
static uint64_t clusters_of(const struct launch_info *l)
{
	return 2 * (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
}

static bool all_before(const struct check *k, const struct beside *b)
{
	for (size_t i = 0; i < b->grid.n; i++)
		if (!is_before(k, b->grid.at[i]))
			return false;
	return true;
}

void beside_drop(struct beside **running)
{
	struct beside *b = *running;

	if (!b || b->running)
		return;
	global_shadow_close(b->shadow);
	beside_free(b);
	*running = NULL;
}

void beside_begin(struct check *k, struct beside **running, uint32_t *sets)
{
	const struct launch_info *l = &k->config.launch;
	struct global *g = k->global;
	struct beside_grid *new = base_alloc(sizeof *new);
	struct beside *b = running ? *running : NULL;

	if (b && !b->running && all_before(k, b)) {
		beside_drop(running);
		b = NULL;
	}
	if (b && (b->shape != shape_of(l) || b->end + clusters_of(l) > UINT32_MAX / 2)) {
		b = NULL;
		running = NULL;
	}
	if (!b) {
		b = beside_new();
		b->shape = shape_of(l);
		if (running) {
			*running = b;
			b->number = ++*sets;
		}
	}
	for (size_t i = 0; i < b->grid.n; i++)
		if (b->grid.at[i]->left && is_before(k, b->grid.at[i]))
			foreign_join(&g->start, b->grid.at[i]->left);
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
	b->running++;
	vec_push(&b->grid, new);
}

uint32_t check_beside(const struct check *k)
{
	return k->global ? k->global->beside->number : 0;
}

bool beside_alone(const struct check *k)
{
	return k->global->beside->grid.n == 1;
}

bool beside_end(struct check *k, struct beside **running)
{
	struct beside *b = k->global->beside;

	foreign_put(k->global->start);
	if (--b->running)
		return false;
	if (running && *running == b && b->grid.n > 1 && b->grid.n < MOST_GRIDS)
		return false; /* later grids may not be ordered after all of them */
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

static const struct beside_grid *find(const struct check *k, uint32_t cluster)
{
	const struct beside *b = k->global->beside;
	size_t i = 0;

	while (i + 1 < b->grid.n && cluster >= b->grid.at[i]->grid.end)
		i++;
	return b->grid.at[i];
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
	return is_before(k, find(k, cluster));
}

const struct past_grid *beside_of(const struct check *k, uint32_t cluster)
{
	return &find(k, cluster)->grid;
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
