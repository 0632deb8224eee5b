/* host: see host.h. */
#include "host.h"

#include <stdlib.h>

enum { WARP = 0, LANES = 1 };    /* the agent of the pseudo cluster, and its lane */
enum { MOST_SEEN = 64, ENOUGH = 100 };

/* Pairs of instructions that raced: of each the first occurrences are reported. */
struct seen_race { uint32_t host, grid, n; };

struct host_agent {
	struct clock_space space;
	struct frontier *own;        /* what it did until its last release; and what it knows of the grids */
	struct foreign *narrow;      /* what it would know if all scopes were sys */
	uint32_t at, cluster;        /* its number among the grids; that of its cluster */
	uint32_t epoch;              /* of its next access */
	uint32_t last;               /* of its newest access */
	uint32_t waited[MOST_GRIDS / 32]; /* grids that it knows to be complete, by number */
	struct seen_race seen[MOST_SEEN];
};

bool host_is(const struct check *k, uint32_t cluster)
{
	const struct host_agent *h = k->global->beside->host;

	return h && cluster == h->cluster;
}

bool host_before(const struct check *k, const struct beside *b)
{
	return !b->host || (k->config.host_of == b && foreign_knows(k->config.host_knew, b->host->cluster,
		PLANE_G, WARP, LANES, b->host->last));
}

static struct host_agent *join(struct beside *b)
{
	struct host_agent *h = base_alloc(sizeof *h);
	struct beside_grid *g = base_alloc(sizeof *g);

	g->grid = (struct past_grid){ .base = b->end, .end = b->end + 2, .info = { .id = HOST_GRID,
		.device = UINT8_MAX, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .cluster = { 1, 1, 1 } } };
	g->complete = foreign_mark(g->grid.end - 1);
	h->at = (uint32_t)b->grid.n;
	h->cluster = g->grid.base;
	h->space = (struct clock_space){ .ngeneric = 2, .nagents = 2 };
	h->own = frontier_new(&h->space);
	h->epoch = 1;
	b->end = g->grid.end;
	b->host_cluster = h->cluster;
	vec_push(&b->grid, g);
	b->host = h;
	return h;
}

void host_free(struct host_agent *h)
{
	if (!h)
		return;
	foreign_put(h->narrow);
	frontier_put(&h->space, h->own);
	clock_space_close(&h->space);
	free(h);
}

/* ---- what it knows ---- */

static void learn(struct host_agent *h, struct foreign *set, bool *learned)
{
	if (!set || foreign_covers(h->own->foreign, set))
		return;
	foreign_join(&h->own->foreign, set);
	*learned = true;
}

/* It waited for grids. */
static void learn_complete(struct beside *b, const struct check_host_access *a)
{
	struct host_agent *h = b->host;
	bool dummy;

	for (uint32_t i = 0; i < b->grid.n && i < MOST_GRIDS; i++) {
		const struct beside_grid *g = b->grid.at[i];

		if (i == h->at || h->waited[i / 32] >> i % 32 & 1 || !a->complete(a->user, g->grid.info.id))
			continue;
		h->waited[i / 32] |= 1u << i % 32;
		learn(h, g->left, &dummy);
		learn(h, g->complete, &dummy);
	}
}

static uint32_t lanes_of(const struct global_record *r, uint64_t at)
{
	return r->lane >= 0 ? 1u << r->lane : global_lanes_at(r, at);
}

/* Does the set know what the access did to those bytes? */
static bool knows(const struct beside *b, const struct foreign *set, const struct global_record *r,
	uint64_t addr, uint32_t bytes)
{
	const struct past_grid *g = &b->grid.at[beside_index(b, r->cluster)]->grid;
	const enum plane plane = (r->flags & (GR_ASYNC | GR_WRITE)) == (GR_ASYNC | GR_WRITE)
		? PLANE_STORED : PLANE_G;
	const struct foreign_entry *e = foreign_find(set, r->cluster);
	struct clock_space s;
	uint32_t lanes;

	if (foreign_find(set, g->end - 1))
		return true;
	if (!e)
		return false;
	s = frontier_space(e->known->f);
	if (plane == PLANE_G && frontier_full(&s, e->known->f, plane, r->agent) >= r->epoch)
		return true;
	lanes = frontier_lanes(&s, e->known->f, plane, r->agent, r->epoch);
	if (lanes == UINT32_MAX || (lanes && r->flags & GR_MERGED))
		return true;
	for (; lanes && bytes; bytes &= bytes - 1)
		if (lanes_of(r, addr + (unsigned)__builtin_ctz(bytes)) & ~lanes)
			return false;
	return lanes;
}

/* ---- races ---- */

/* Has the pair been reported often enough? */
static bool is_counted(struct host_agent *h, uint32_t host, uint32_t grid)
{
	struct seen_race *s = &h->seen[(host * 31 + grid) % MOST_SEEN];

	if (s->host != host || s->grid != grid)
		*s = (struct seen_race){ host, grid, 0 };
	return s->n++ >= ENOUGH;
}

static struct check_host_race race_of(const struct beside *b, const struct global_record *host,
	const struct global_record *grid, uint64_t addr, uint32_t bytes)
{
	const unsigned first = (unsigned)__builtin_ctz(bytes);
	struct check_host_race x = { .addr = addr + first,
		.bytes = (uint32_t)__builtin_ctz(~(bytes >> first)), .site = grid->site,
		.write = grid->flags & GR_WRITE, .strong = grid->flags & GR_STRONG,
		.host_site = host->site, .host_write = host->flags & GR_WRITE };

	x.launch = b->grid.at[beside_index(b, grid->cluster)]->grid.info.id;
	return x;
}

/* May accesses of the host that were not seen have synchronized it with a grid of the set? */
static bool is_unseen(const struct beside *b, uint64_t unseen)
{
	return b->host_unseen || (unseen != b->unseen && (b->system || b->system_read));
}

enum global_verdict host_classify(struct global_view *v, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes)
{
	const struct check *k = v->c->check;
	struct beside *b = k->global->beside;
	const bool write = (old->flags | now->flags) & GR_WRITE;
	struct check_host_race x;

	if (foreign_knows(v->f->foreign, old->cluster, PLANE_G, WARP, LANES, old->epoch))
		return GLOBAL_ORDERED;
	if (!write)
		return GLOBAL_UNORDERED;
	if ((now->flags & (GR_STRONG | GR_SYSTEM | GR_ASYNC)) == (GR_STRONG | GR_SYSTEM))
		return GLOBAL_MORALLY_STRONG;
	if (!k->config.host_race || is_counted(b->host, old->site, now->site))
		return GLOBAL_CONFLICT;
	x = race_of(b, old, now, addr, bytes);
	x.host_first = true;
	x.unseen = is_unseen(b, check_memory_unseen(k->config.memory));
	if (global_narrow_sync(v->c, old))
		x.lacks = CHECK_HOST_SCOPE;
	else if (global_unfenced(v, old))
		x.lacks = CHECK_HOST_ACQUIRE;
	k->config.host_race(k->config.user, &x);
	return GLOBAL_CONFLICT;
}

struct host_view {
	struct global_accessor accessor; /* first member */
	struct beside *b;
	const struct check_host_access *a;
	uint64_t unseen;         /* check_memory_unseen() */
};

static enum global_verdict classify(struct global_accessor *a, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes, bool *lanewise)
{
	const struct host_view *v = (struct host_view *)a;
	struct host_agent *h = v->b->host;
	struct check_host_race x;

	*lanewise = true;
	if (old->cluster == h->cluster || knows(v->b, h->own->foreign, old, addr, bytes))
		return GLOBAL_ORDERED;
	if (!((old->flags | now->flags) & GR_WRITE))
		return GLOBAL_UNORDERED;
	if ((old->flags & (GR_STRONG | GR_SYSTEM | GR_ASYNC)) == (GR_STRONG | GR_SYSTEM))
		return GLOBAL_MORALLY_STRONG;
	if (is_counted(h, now->site, old->site))
		return GLOBAL_CONFLICT;
	x = race_of(v->b, now, old, addr, bytes);
	x.unseen = is_unseen(v->b, v->unseen);
	x.lacks = knows(v->b, h->narrow, old, addr, bytes) ? CHECK_HOST_SCOPE : CHECK_HOST_NOTHING;
	v->a->race(v->a->user, &x);
	return GLOBAL_CONFLICT;
}

/* ---- accesses ---- */

struct word { struct host_agent *h; bool *learned; };

static void on_read(void *user, struct location *l)
{
	const struct word *x = user;
	struct host_agent *h = x->h;

	if (l->cluster == h->cluster)
		return;
	if (l->scope == SCOPE_SYS)
		learn(h, l->wide_system, x->learned);
	foreign_join(&h->narrow, l->wide);
	for (size_t i = 0; i < l->narrow.n; i++)
		foreign_join(&h->narrow, l->narrow.at[i].set);
}

struct write { struct host_agent *h; struct foreign *set; uint32_t site; bool rmw; };

static void on_write(void *user, struct location *l)
{
	const struct write *x = user;

	location_write(NULL, l, x->h->cluster, 0, SCOPE_SYS, x->rmw, SCOPE_SYS);
	foreign_join(&l->wide, x->set);
	foreign_join(&l->wide_system, x->set);
	l->site = x->site;
}

static void record(struct beside *b, const struct check_host_access *a, bool write, uint64_t unseen)
{
	struct host_agent *h = b->host;
	struct host_view v = { .accessor = { .synchronised = true, .classify = classify }, .b = b, .a = a,
		.unseen = unseen };
	struct global_record r = { .cluster = h->cluster, .epoch = h->epoch, .issue = h->epoch,
		.site = a->site, .size = (uint16_t)a->bytes, .element = (uint16_t)a->bytes, .lane = -1, .scope = 2,
		.flags = (uint16_t)(GR_STRONG | GR_SYSTEM | (write ? GR_WRITE : 0)) };

	global_set_layout(&r, LANES, NULL, a->addr, 0);
	global_shadow_touch(b->shadow, &v.accessor, &r);
	h->last = h->epoch;
}

/* Calls each() for the locations in [from, end), again if they are in several of its units of 16 bytes. */
static void each_location(struct beside *b, uint64_t from, uint64_t end,
	void (*each)(void *user, struct location *l), void *user)
{
	for (uint64_t at = from; at < end; at = (at / 16 + 1) * 16) {
		struct location_shard *s = beside_shard(b, at);
		const uint64_t to = (at / 16 + 1) * 16;

		pthread_mutex_lock(&s->lock);
		location_each(&s->table, at, (to < end ? to : end) - at, each, user);
		pthread_mutex_unlock(&s->lock);
	}
}

/* Places of one byte have what the host released there last, as it is not known of how many bytes the accesses of
 * grids are: at its first byte, and at each 4th. */
enum { UNIT = 4, MOST_RELEASED = 64 };

static const struct location *released(const struct beside *b, const struct location_table *t, uint64_t at)
{
	const struct location *h = location_find(t, at, 1);

	return h && h->cluster == b->host->cluster && h->wide ? h : NULL;
}

struct location *host_location(struct beside *b, struct location_table *t, uint64_t at, unsigned size)
{
	const struct location *h;
	struct location *l = location_find(t, at, size);
	struct location copy;

	if ((l && l->version) || !b->host) /* fence.sc makes some that were never written */
		return l;
	h = released(b, t, at);
	h = h ? h : released(b, t, at / UNIT * UNIT);
	if (!h || h == l)
		return l;
	copy = *h; /* making one moves others */
	l = location_make(t, at, size);
	location_write(NULL, l, copy.cluster, 0, SCOPE_SYS, false, SCOPE_SYS);
	l->wide = foreign_get(copy.wide);
	l->wide_system = foreign_get(copy.wide_system);
	l->site = copy.site;
	return l;
}

static void release(struct beside *b, uint64_t addr, uint32_t bytes, uint32_t site, bool rmw)
{
	struct host_agent *h = b->host;
	struct write x = { h, NULL, site, rmw };

	frontier_add(&h->space, h->own, PLANE_G, WARP, UINT32_MAX, UINT32_MAX, h->epoch);
	x.set = foreign_of(h->cluster, h->own);
	for (uint64_t at = addr; at < addr + bytes && at < addr + MOST_RELEASED; at += UNIT) {
		struct location_shard *s = beside_shard(b, at);

		pthread_mutex_lock(&s->lock);
		location_make(&s->table, at, 1);
		pthread_mutex_unlock(&s->lock);
		beside_mark(b, at);
	}
	each_location(b, addr, addr + bytes, on_write, &x);
	foreign_put(x.set);
	h->epoch = epoch_next(h->epoch);
}

void host_access(struct beside *b, const struct check_host_access *a, uint64_t unseen,
	struct check_host_result *out)
{
	struct host_agent *h = b->host ? b->host : join(b);

	learn_complete(b, a);
	if (a->reads) {
		each_location(b, a->addr, a->addr + a->bytes, on_read, &(struct word){ h, &out->learned });
		record(b, a, false, unseen);
	}
	out->part = (struct check_part){ .cluster = h->cluster, .epoch = h->epoch, .lanes = LANES };
	if (a->writes) {
		record(b, a, true, unseen);
		release(b, a->addr, a->bytes, a->site, a->reads);
	}
	out->number = b->number;
	out->of = check_met_get(b);
}

void host_word(struct beside *b, uint64_t addr, uint32_t bytes, bool write)
{
	struct host_agent *h = b->host ? b->host : join(b);
	bool dummy;

	if (write)
		release(b, addr, bytes, 0, false);
	else
		each_location(b, addr, addr + bytes, on_read, &(struct word){ h, &dummy });
}

/* What it did since its last release counts, too. */
struct foreign *check_host_knows(const struct beside *b)
{
	struct host_agent *h = b->host;

	if (h->last == h->epoch) {
		frontier_add(&h->space, h->own, PLANE_G, WARP, UINT32_MAX, UINT32_MAX, h->epoch);
		h->epoch = epoch_next(h->epoch);
	}
	return foreign_of(h->cluster, h->own);
}

bool check_known(const struct foreign *set, const struct beside *b, const struct check_part *p)
{
	return foreign_find(set, b->grid.at[beside_index(b, p->cluster)]->grid.end - 1)
		|| foreign_knows(set, p->cluster, p->stored ? PLANE_STORED : PLANE_G, p->agent, p->lanes, p->epoch);
}

void check_known_put(struct foreign *set)
{
	foreign_put(set);
}

/* ---- what grids know of it ---- */

enum { MOST_KNOWN = 1 << 16 };

static uint32_t epoch_in(const struct beside *b, const struct foreign *set)
{
	const struct foreign_entry *e = b->host_cluster ? foreign_find(set, b->host_cluster) : NULL;
	struct clock_space s;

	if (!e)
		return 0;
	s = frontier_space(e->known->f);
	return frontier_full(&s, e->known->f, PLANE_G, WARP);
}

void host_note(struct cluster *c, const struct global_record *r, const struct foreign *foreign)
{
	struct beside *b = c->check->global->beside;
	uint32_t now;

	if (!b->host_cluster || !foreign)
		return;
	now = epoch_in(b, foreign);
	if (now <= c->global->host[r->warp])
		return;
	c->global->host[r->warp] = now;
	pthread_mutex_lock(&b->met_lock);
	if (b->host_known.n < MOST_KNOWN)
		vec_push(&b->host_known, ((struct host_known){ r->cluster, r->warp, r->issue, now }));
	pthread_mutex_unlock(&b->met_lock);
}

uint32_t host_noted(const struct beside *b, const struct global_record *r)
{
	if (b->host_known.n == MOST_KNOWN)
		return UINT32_MAX; /* too often: not known */
	for (size_t i = b->host_known.n; i-- > 0;) {
		const struct host_known *k = &b->host_known.at[i];

		if (k->cluster == r->cluster && k->warp == r->warp && k->epoch <= r->issue)
			return k->host;
	}
	return 0;
}

uint32_t check_met_host(const struct beside *b, uint32_t grid)
{
	return epoch_in(b, b->grid.at[grid]->left);
}

/* ---- words by which grids release ---- */

static void is_of_grid(void *user, struct location *l)
{
	struct word *x = user;

	*x->learned |= l->wide && (l->cluster != x->h->cluster || l->read);
}

bool host_words(struct beside *b, uint64_t from, uint64_t end)
{
	bool any = false;

	each_location(b, from, end, is_of_grid, &(struct word){ b->host, &any });
	return any;
}

/* ---- pages of which not all accesses are seen ---- */

void host_gives_up(struct beside *b, uint64_t from, uint64_t end, bool writes)
{
	if (host_words(b, from, end))
		b->host_unseen = true;
	if (!writes)
		return;
	for (size_t i = 0; i < b->host_page.n; i++) {
		struct host_page *p = &b->host_page.at[i];

		if (from < p->from || from > p->end)
			continue;
		p->end = end > p->end ? end : p->end;
		p->epoch = b->host->epoch;
		return;
	}
	vec_push(&b->host_page, ((struct host_page){ from, end, b->host->epoch }));
}

/* What it read may be what the host wrote unseen, and released by that. */
void host_word_read(struct beside *b, uint64_t at, unsigned size, unsigned scope)
{
	struct location_shard *s;
	const struct location *l;
	uint32_t epoch;

	if (scope == SCOPE_SYS && !b->system_read)
		__atomic_store_n(&b->system_read, 1, __ATOMIC_RELAXED);
	for (size_t i = 0; i < b->host_page.n && !b->host_unseen; i++) {
		const struct host_page *p = &b->host_page.at[i];

		if (at < p->from || at >= p->end)
			continue;
		s = beside_shard(b, at);
		pthread_mutex_lock(&s->lock);
		l = location_find(&s->table, at, size);
		epoch = l && l->cluster == b->host->cluster ? epoch_in(b, l->wide) : 0;
		pthread_mutex_unlock(&s->lock);
		if (epoch < p->epoch)
			b->host_unseen = true;
	}
}
