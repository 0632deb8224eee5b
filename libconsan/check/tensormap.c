/* tensormap: tensor maps in global memory, one record for each, over the whole launch. TMA reads a
 * map through a proxy of its own: a change by the generic proxy must be released and acquired for
 * it (A22, A23), and must not be made while an operation reads the map (A24). Maps in parameters
 * never change and cause no events. Between clusters, whose clocks are not comparable, the order in
 * which events took place counts instead of happens-before. */
#include "grids.h"
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>

struct map_event {           /* by a warp of some cluster of the launch */
	uint32_t cluster;
	uint16_t cta;
	uint8_t scope;           /* enum ev_scope, of a fence */
	struct past_op op;
};

struct map_reader {          /* an operation in flight: an agent of its cluster */
	uint32_t cluster, agent, epoch;
	struct map_event by;
	uint32_t group;          /* the bulk group that the issuer had open */
	uint8_t lane;
};

struct seen_map {            /* what TMA last read at an address, in any launch */
	uint64_t addr, hash;     /* hash 0: unknown bytes */
	bool read, changed;      /* TMA read them; they were written since */
};

struct map {
	uint64_t addr;
	struct map_event write;  /* the newest in this launch */
	bool written, released;
	uint8_t scope;           /* of the release */
	VEC(struct map_event) acquired; /* since then, the newest of each warp */
	VEC(struct map_reader) readers;
	struct seen_map seen;    /* .addr: 0 until it is looked up */
};

struct map_table {
	pthread_mutex_t lock;
	VEC(struct map) maps;
};

struct check_memory {
	pthread_mutex_t lock;
	VEC(struct seen_map) seen;
	struct grid_table *grids;
	_Atomic uint64_t unseen;
};

struct check_memory *check_memory_open(void)
{
	struct check_memory *m = base_alloc(sizeof *m);

	pthread_mutex_init(&m->lock, NULL);
	m->grids = grid_table_open();
	return m;
}

struct grid_table *check_memory_grids(struct check_memory *m)
{
	return m->grids;
}

void check_memory_host_unseen(struct check_memory *m)
{
	m->unseen++;
}

uint64_t check_memory_unseen(struct check_memory *m)
{
	return m ? m->unseen : 0;
}

bool check_memory_overlaps(struct check_memory *m, const struct launch_info *l)
{
	return l->programmatic && grid_table_has(m->grids, l->queue);
}

void check_memory_idle(struct check_memory *m, uint64_t queue, bool all)
{
	grid_table_end(m->grids, queue, all);
}

void check_memory_close(struct check_memory *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	grid_table_close(m->grids);
	free(m->seen.at);
	free(m);
}

struct map_table *map_table_open(void)
{
	struct map_table *t = base_alloc(sizeof *t);

	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void map_table_close(struct map_table *t)
{
	for (size_t i = 0; i < t->maps.n; i++) {
		free(t->maps.at[i].acquired.at);
		free(t->maps.at[i].readers.at);
	}
	pthread_mutex_destroy(&t->lock);
	free(t->maps.at);
	free(t);
}

static struct map *map_of(struct map_table *t, uint64_t addr)
{
	for (size_t i = 0; i < t->maps.n; i++)
		if (t->maps.at[i].addr == addr)
			return &t->maps.at[i];
	vec_push(&t->maps, ((struct map){ .addr = addr }));
	return &t->maps.at[t->maps.n - 1];
}

static struct map_event event_of(struct cluster *c, const struct event *e, enum ev_scope scope)
{
	struct warp *w = warp_of(c, e);

	return (struct map_event){ c->info.id, w->cta, scope, warp_past_op(w, e->lanes, e->site) };
}

/* The scope that includes both threads. */
static enum ev_scope common_scope(const struct cluster *c, const struct warp *w,
	const struct map_event *x)
{
	if (x->cluster != c->info.id)
		return SCOPE_GPU;
	return x->cta == w->cta ? SCOPE_CTA : SCOPE_CLUSTER;
}

/* Is the past event ordered before the current operation of `lanes`? */
static bool before(struct cluster *c, struct warp *w, uint32_t lanes, const struct map_event *x)
{
	return x->cluster != c->info.id || warp_all_know(c, w, lanes, &x->op);
}

static struct finding *begin(struct cluster *c, unsigned rule, enum severity sev,
	const struct event *e, const char *what, const struct map_event *x, const char *other)
{
	struct finding *f = report_new(c, rule, sev, e->site, x ? x->op.site : 0);

	if (!f)
		return NULL;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, what);
	/* another cluster's warp has the same number, but not the same CTA */
	if (x)
		report_side(c, f, x->op.warp, only_lane(x->op.lanes), x->op.site, other);
	for (unsigned i = 0; i < (x ? 2u : 1u); i++) {
		f->side[i].space = SP_GLOBAL;
		f->side[i].addr = e->tensor_map.addr;
		f->side[i].bytes = 128;
	}
	return f;
}

/* ---- the use (A22) ---- */

/* NULL if an acquire with sufficient scope is ordered before this use; else what is missing. */
static const char *missing_sync(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct map *m)
{
	const char *why = "no fence.proxy.tensormap::generic.acquire of this map is executed between "
		"the change and the operation";

	if (!m->released)
		return "no fence.proxy.tensormap::generic.release follows the change";
	if (m->scope < common_scope(c, w, &m->write))
		return "the scope of the release does not include the thread that uses the map";
	for (size_t i = 0; i < m->acquired.n; i++) {
		const struct map_event *a = &m->acquired.at[i];

		if (a->cluster != c->info.id || !before(c, w, lanes, a))
			continue;
		if (a->scope >= common_scope(c, w, &m->write))
			return NULL;
		why = "the scope of the acquire does not include the thread that changed the map";
	}
	return why;
}

static struct seen_map *saved_map(struct check_memory *k, uint64_t addr)
{
	for (size_t i = 0; i < k->seen.n; i++)
		if (k->seen.at[i].addr == addr)
			return &k->seen.at[i];
	return NULL;
}

/* The state that earlier launches left, as a copy of this launch until check_save(). */
static struct seen_map *seen_of(const struct cluster *c, struct map *m)
{
	struct check_memory *k = c->check->config.memory;
	const struct seen_map *before;

	if (m->seen.addr || !k)
		return &m->seen;
	pthread_mutex_lock(&k->lock);
	before = saved_map(k, m->addr);
	m->seen = before ? *before : (struct seen_map){ .addr = m->addr };
	pthread_mutex_unlock(&k->lock);
	return &m->seen;
}

void check_save(struct check *check)
{
	struct check_memory *k = check->config.memory;

	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; i < check->maps->maps.n; i++) {
		const struct seen_map *now = &check->maps->maps.at[i].seen;
		struct seen_map *before = saved_map(k, now->addr);

		if (before)
			*before = *now;
		else if (now->read)
			vec_push(&k->seen, *now);
	}
	pthread_mutex_unlock(&k->lock);
}

/* A23: may TMA have cached other bytes at this address in an earlier launch? If the bytes are not
 * known, any write counts. */
static bool changed_since(const struct cluster *c, struct map *m, uint64_t hash, bool fresh)
{
	struct seen_map *s = seen_of(c, m);
	bool changed = s->read && (hash && s->hash ? hash != s->hash : s->changed);

	if (!s->addr)
		return false;
	if (fresh || !s->read || (!changed && hash)) {
		s->hash = hash;
		s->changed = false;
	}
	s->read = true;
	return changed && !fresh;
}

static void use(struct cluster *c, const struct event *e, struct map *m)
{
	struct warp *w = warp_of(c, e);
	const char *why = m->written ? missing_sync(c, w, e->lanes, m) : NULL;
	bool fresh = m->written && !why;
	struct finding *f;

	for (size_t i = 0; i < m->acquired.n; i++)
		fresh |= m->acquired.at[i].cluster == c->info.id
			&& before(c, w, e->lanes, &m->acquired.at[i]);
	if (changed_since(c, m, e->tensor_map.hash, fresh) && !why) {
		f = begin(c, CS307, rule_severity(CS307), e, "TMA operation", NULL, NULL);
		if (f) {
			report_edge(f, "the map was changed after an earlier launch had used it, and no "
				"fence.proxy.tensormap::generic.acquire of it precedes this operation");
			report_send(c, f);
		}
	}
	f = why ? begin(c, CS307, rule_severity(CS307), e, "TMA operation", &m->write,
		"change of the tensor map") : NULL;
	if (!f)
		return;
	report_edge(f, "%s", why);
	report_send(c, f);
}

/* ---- the change (A24) ---- */

static bool done(struct cluster *c, const struct warp *w, const struct map_reader *r)
{
	uint32_t stores = agent_stores(c, r->by.op.warp);

	if (r->by.op.warp == w->index && w->progress.stores.at[r->lane] >= r->group)
		return true;
	for (unsigned i = 0; i < w->ngroups; i++) {
		const struct frontier *f = w->group[i].f;

		if (frontier_knows(&c->space, f, r->agent, 1u << r->lane, r->epoch)
			|| frontier_knows(&c->space, f, stores, 1u << r->lane, r->group))
			return true;
	}
	return false;
}

static void change(struct cluster *c, const struct event *e, struct map *m)
{
	struct finding *f;

	for (size_t i = 0; i < m->readers.n; i++) {
		const struct map_reader *r = &m->readers.at[i];

		if (r->cluster != c->info.id || done(c, warp_of(c, e), r))
			continue;
		f = begin(c, CS313, rule_severity(CS313), e, "change of the tensor map", &r->by,
			"TMA operation");
		if (!f)
			continue;
		report_edge(f, "no synchronisation orders this change by warp %u after the operation of "
			"warp %u",
			e->warp, c->warp[r->by.op.warp].id);
		report_send(c, f);
	}
	m->write = event_of(c, e, SCOPE_NONE);
	m->written = true;
	m->released = false;
	m->acquired.n = m->readers.n = 0;
	seen_of(c, m)->changed = true;
}

void on_tensor_map(struct cluster *c, const struct event *e)
{
	const struct event_tensor_map *x = &e->tensor_map;
	struct map_table *t = c->check->maps;
	struct map *m;

	pthread_mutex_lock(&t->lock);
	m = map_of(t, x->addr);
	if (x->mode == MODE_WRITE)
		change(c, e, m);
	else
		use(c, e, m);
	pthread_mutex_unlock(&t->lock);
	warp_of(c, e)->map = x->mode == MODE_WRITE || x->no_bulk ? 0 : x->addr;
}

void map_read_by(struct cluster *c, struct warp *w, unsigned lane, uint32_t agent, uint32_t epoch)
{
	struct map_table *t = c->check->maps;
	struct map_reader now = { c->info.id, agent, epoch, event_of(c, c->now, SCOPE_NONE),
		w->stores.open, (uint8_t)lane };
	struct map *m;
	size_t i;

	if (!w->map)
		return;
	pthread_mutex_lock(&t->lock);
	m = map_of(t, w->map);
	/* of one lane's operations the newest represents the older ones, by their groups */
	for (i = 0; i < m->readers.n; i++) {
		const struct map_reader *r = &m->readers.at[i];

		if (r->cluster == now.cluster && r->agent == agent && r->lane == lane)
			break;
	}
	if (i < m->readers.n)
		m->readers.at[i] = now;
	else
		vec_push(&m->readers, now);
	pthread_mutex_unlock(&t->lock);
}

/* ---- the fences ---- */

static void release(struct cluster *c, const struct event *e, struct map *m)
{
	if (!m->written || m->released || m->write.cluster != c->info.id
		|| !warp_all_know(c, warp_of(c, e), e->lanes, &m->write.op))
		return;
	m->released = true;
	m->scope = e->fence_proxy.scope;
}

static void acquire(struct cluster *c, const struct event *e, struct map *m)
{
	struct map_event now = event_of(c, e, e->fence_proxy.scope);

	if (m->written && !before(c, warp_of(c, e), e->lanes, &m->write))
		return;
	for (size_t i = 0; i < m->acquired.n; i++)
		if (m->acquired.at[i].cluster == now.cluster
			&& m->acquired.at[i].op.warp == now.op.warp
			&& m->acquired.at[i].op.lanes == now.op.lanes) {
			m->acquired.at[i] = now;
			return;
		}
	vec_push(&m->acquired, now);
}

void on_map_fence(struct cluster *c, const struct event *e)
{
	const struct event_fence_proxy *x = &e->fence_proxy;
	struct map_table *t = c->check->maps;

	pthread_mutex_lock(&t->lock);
	if (x->proxy == PROXY_TENSORMAP_ACQUIRE)
		acquire(c, e, map_of(t, x->addr));
	for (size_t i = 0; x->proxy == PROXY_TENSORMAP_RELEASE && i < t->maps.n; i++)
		release(c, e, &t->maps.at[i]);
	pthread_mutex_unlock(&t->lock);
}
