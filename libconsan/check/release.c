/* release: the writing side of synchronization through strong accesses: release patterns (PTX ISA
 * 8.8), element by element (8.2.4), for shared and global memory alike. acquire.c is the reading
 * side.
 *
 * A write adds to its chain what its release patterns release: its own, if it is a release; that of
 * a release of the same thread at the same location before (pattern 2); those of release fences
 * before (pattern 3). */
#include "global.h"
#include "host.h"
#include "location.h"

#include <stdlib.h>
#include <string.h>

/* What one release pattern releases. */
struct pattern {
	struct frontier *f;
	struct foreign *set;     /* the same, made when it is first needed */
	uint8_t scope;           /* of its first operation */
};

#define MAX_PATTERNS 16u
struct write {                   /* one element, by one lane */
	struct warp *w;
	unsigned lane, size, scope;
	bool rmw, releases;
	uint32_t site;
	uint64_t at;
	struct pattern pattern[MAX_PATTERNS];
	unsigned n;
};

static void add_pattern(struct write *x, struct frontier *f, unsigned scope)
{
	x->pattern[x->n++] = (struct pattern){ f, NULL, (uint8_t)scope };
}

static void drop_patterns(struct cluster *c, struct write *x, unsigned from)
{
	while (x->n > from) {
		frontier_put(&c->space, x->pattern[--x->n].f);
		foreign_put(x->pattern[x->n].set);
	}
}

static struct foreign *set_of(struct cluster *c, struct pattern *p)
{
	if (!p->set)
		p->set = foreign_of(c->number, p->f);
	return p->set;
}

/* The patterns of a write by that lane, at any location: 1 and 3. Of more fences than there is
 * room for, those of the same scope are one pattern. */
static void find_patterns(struct cluster *c, struct write *x)
{
	struct warp *w = x->w;
	struct frontier *f;
	unsigned scope;

	x->n = 0;
	if (x->releases) {
		f = frontier_new(&c->space);
		warp_release(c, w, 1u << x->lane, f);
		add_pattern(x, f, x->scope);
	}
	for (size_t i = 0; i < w->released.n; i++) {
		unsigned k;

		if (!(w->released.at[i].lanes >> x->lane & 1))
			continue;
		scope = w->released.at[i].scope;
		if (x->releases && scope <= x->scope)
			continue; /* the release covers what the fence did */
		for (k = x->releases; k < x->n && x->pattern[k].scope != scope; k++)
			;
		if (k == x->n)
			add_pattern(x, frontier_new(&c->space), scope);
		warp_fenced(c, w, x->lane, i, x->pattern[k].f);
	}
	f = warp_frontier(w, x->lane);
	for (unsigned i = READY; f && i <= READY_SYSTEM; i++) {
		if (!f->by_others[i])
			continue;
		add_pattern(x, frontier_new(&c->space), i == READY ? SCOPE_GPU : SCOPE_SYS);
		foreign_learn(&c->space, x->pattern[x->n - 1].f, f->by_others[i], c->number);
		x->pattern[x->n - 1].set = foreign_get(f->by_others[i]);
	}
}

/* ---- a thread's own releases (release pattern 2) ---- */

static struct own_release *own_at(struct warp *w, uint64_t at, unsigned size, unsigned lane,
	unsigned scope)
{
	uint64_t key = (at ^ (uint64_t)size << 48 ^ (uint64_t)lane << 56 ^ (uint64_t)scope << 40)
		* 0x9e3779b97f4a7c15ull;

	return &w->own[key >> 56 & (OWN_RELEASES - 1)];
}

/* The newest releases are kept: one that falls out can only matter to a later ordinary strong write
 * of the same thread there. */
static void keep_own(struct cluster *c, const struct write *x, uint32_t chain)
{
	struct own_release *o;

	if (!x->w->own)
		x->w->own = base_alloc(OWN_RELEASES * sizeof *x->w->own);
	o = own_at(x->w, x->at, x->size, x->lane, x->scope);
	if (!o->f)
		o->f = frontier_new(&c->space);
	o->at = x->at;
	o->size = (uint8_t)x->size;
	o->lane = (uint8_t)x->lane;
	o->scope = (uint8_t)x->scope;
	o->chain = chain;
	frontier_copy(&c->space, o->f, x->pattern[0].f);
}

/* What it released in this chain is there already. */
static void add_own(struct cluster *c, struct write *x, uint32_t chain)
{
	for (unsigned scope = SCOPE_CTA; x->w->own && scope <= SCOPE_SYS; scope++) {
		const struct own_release *o = own_at(x->w, x->at, x->size, x->lane, scope);

		if (!o->f || o->at != x->at || o->size != x->size || o->lane != x->lane
			|| o->scope != scope || o->chain == chain || (x->releases && scope <= x->scope))
			continue;
		add_pattern(x, frontier_new(&c->space), scope);
		frontier_copy(&c->space, x->pattern[x->n - 1].f, o->f);
	}
}

/* ---- heads ---- */

static void add_heads(struct cluster *c, struct location *l, const struct write *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		const struct pattern *p = &x->pattern[i];
		struct head *h = location_head(&c->space, &l->heads, x->w->cta, p->scope);

		h->site = x->site;
		frontier_join(&c->space, h->f, p->f);
	}
}

static void add_narrow(struct cluster *c, struct location *l, const struct write *x,
	struct foreign *set, unsigned scope)
{
	struct narrow_head *h = NULL;

	for (size_t i = 0; i < l->narrow.n && !h; i++)
		if (l->narrow.at[i].cluster == c->number && l->narrow.at[i].cta == x->w->cta
			&& l->narrow.at[i].scope == scope)
			h = &l->narrow.at[i];
	if (!h && l->narrow.n == MAX_NARROW_HEADS) {
		h = &l->narrow.at[0];
		foreign_put(h->set);
		*h = (struct narrow_head){ 0 };
	} else if (!h) {
		vec_push(&l->narrow, ((struct narrow_head){ 0 }));
		h = &l->narrow.at[l->narrow.n - 1];
	}
	foreign_join(&h->set, set);
	h->cluster = c->number;
	h->cta = x->w->cta;
	h->scope = (uint8_t)scope;
	h->site = x->site;
}

/* What other clusters may take. */
static void add_sets(struct cluster *c, struct location *l, struct write *x)
{
	for (unsigned i = 0; i < x->n; i++) {
		struct pattern *p = &x->pattern[i];

		if (p->scope < SCOPE_GPU) {
			add_narrow(c, l, x, set_of(c, p), p->scope);
			continue;
		}
		foreign_join(&l->wide, set_of(c, p));
		if (p->scope == SCOPE_SYS) {
			foreign_join(&l->wide_system, set_of(c, p));
			__atomic_store_n(&c->check->global->beside->system, 1, __ATOMIC_RELAXED);
		}
		l->site = x->site;
	}
}

/* ---- one element ---- */

static void write_global(struct cluster *c, struct write *x)
{
	struct global *g = c->check->global;
	struct location_shard *s = global_shard(g, x->at);
	const bool marked = global_marked(g, x->at);
	struct location *l = NULL;
	uint32_t chain = 0;

	if (!x->n && !marked)
		return;
	pthread_mutex_lock(&s->lock);
	l = host_location(g->beside, &s->table, x->at, x->size);
	if (marked)
		location_overwrite(NULL, &s->table, x->at, x->size, x->size);
	if (!l && x->n) {
		l = location_make(&s->table, x->at, x->size);
		global_mark(g, x->at);
	}
	if (l) {
		location_write(NULL, l, c->number, x->w->cta, x->scope, x->rmw,
			beside_scope_needed(c->check, l->cluster, l->cta, c->number, x->w->cta));
		chain = l->chain;
		add_own(c, x, chain);
		add_sets(c, l, x);
	}
	pthread_mutex_unlock(&s->lock);
	if (!l || !x->n)
		return;
	if (x->releases)
		keep_own(c, x, chain);
	l = location_make_local(c, x->at, x->size);
	if (l->chain != chain)
		location_clear(&c->space, l);
	l->chain = chain;
	add_heads(c, l, x);
}

static void write_shared(struct cluster *c, struct write *x)
{
	struct location *l;

	if (location_may_be(c, x->at))
		location_overwrite(&c->space, c->locations, x->at, x->size, x->size);
	else if (!x->n)
		return;
	l = x->n ? location_make_local(c, x->at, x->size) : location_find(c->locations, x->at, x->size);
	if (!l)
		return;
	location_write(&c->space, l, c->number, x->w->cta, x->scope, x->rmw,
		scope_needed(l->cluster, l->cta, c->number, x->w->cta));
	add_own(c, x, l->chain);
	if (x->releases)
		keep_own(c, x, l->chain);
	add_heads(c, l, x);
}

static bool ready(const struct warp *w)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].f->by_others[READY])
			return true;
	return false;
}

void release_writes(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = &e->access;
	struct write x = { .w = w, .size = access_element(a), .scope = access_scope(a),
		.rmw = a->mode == MODE_RMW, .releases = sem_releases(a->sem), .site = e->site };

	if (!(a->mode & MODE_WRITE) || !location_tracks(c, a) || (!x.releases && !w->released.n
		&& !ready(w) && !location_any(c, a)))
		return;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned found;

		x.lane = (unsigned)__builtin_ctz(m);
		find_patterns(c, &x);
		found = x.n;
		for (uint32_t at = 0; at < a->bytes; at += x.size) {
			x.at = access_place(a, x.lane) + at;
			if (location_may_be(c, x.at))
				sc_take(c, w, 1u << x.lane, x.at, x.size, x.scope);
			if (w->sc_fences && !x.rmw)
				sc_publish(c, w, 1u << x.lane, x.at, x.size, x.scope);
			if (in_shared(x.at))
				write_shared(c, &x);
			else
				write_global(c, &x);
			drop_patterns(c, &x, found);
		}
		drop_patterns(c, &x, 0);
	}
}

/* ---- weak writes ---- */

static void overwrite_global(struct global *g, uint64_t at, unsigned bytes)
{
	struct location_shard *s = global_shard(g, at);

	pthread_mutex_lock(&s->lock);
	location_overwrite(NULL, &s->table, at, bytes, 0);
	pthread_mutex_unlock(&s->lock);
}

void release_plain_writes(struct cluster *c, const struct global_span *spans, size_t n)
{
	struct global *g = c->check->global;

	if (!__atomic_load_n(&g->beside->nlocations, __ATOMIC_ACQUIRE))
		return;
	repeat_leave(c);
	for (size_t i = 0; i < n; i++) {
		const uint64_t end = spans[i].addr + spans[i].bytes;

		for (uint64_t at = spans[i].addr, next; at < end; at = next) {
			next = (at | 15) + 1;
			if (!global_marked(g, at))
				next = (at | 63) + 1;
			else
				overwrite_global(g, at, (unsigned)((next < end ? next : end) - at));
		}
	}
}

static void overwrite_shared(struct cluster *c, unsigned cta, uint64_t addr, uint32_t bytes)
{
	const uint64_t end = addr + bytes;

	for (uint64_t at = addr, next; at < end; at = next) {
		next = (at | 15) + 1;
		if (location_may_be(c, shared_at(cta, at)))
			location_overwrite(&c->space, c->locations, shared_at(cta, at),
				(unsigned)((next < end ? next : end) - at), 0);
	}
}

void release_plain_shared(struct cluster *c, const struct lanes_access *x)
{
	if (!c->shared_locations)
		return;
	for (unsigned i = 0; i < x->spans->n; i++)
		overwrite_shared(c, x->owner, x->spans->at[i].addr, x->spans->at[i].bytes);
	for (uint32_t m = x->spans->n ? 0 : x->e->lanes; m; m &= m - 1)
		overwrite_shared(c, x->owner, lane_addr(x->at, (unsigned)__builtin_ctz(m)), x->bytes);
}
