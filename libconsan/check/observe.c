/* observe: synchronization through strong accesses: release and acquire patterns (PTX ISA 8.8) and
 * the observation order between them (8.9.2), element by element (8.2.4), for shared and global
 * memory alike.
 *
 *  - A write adds what its release patterns release: its own, if it is a release; that of a release
 *    of the same thread at the same location before (pattern 2); those of release fences before
 *    (pattern 3).
 *  - A read that is morally strong to the newest write of the chain observes the chain. What it
 *    takes counts at once if it acquires; else from a fence on, or from an acquire of the same
 *    location on. The last operation must be morally strong to the first one of the release
 *    pattern. red never acquires.
 *  - fence.sc (8.9.3): if an access after one precedes a write before another in communication
 *    order, then the other cannot come first in Fence-SC order, which relates every pair that is
 *    morally strong. So the first synchronizes with the second. Read-modify-writes hand this over
 *    by their chain only. */
#include "global.h"
#include "location.h"

#include <stdlib.h>
#include <string.h>

static unsigned scope_of(const struct event_access *a)
{
	if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO)
		return SCOPE_SYS; /* A04 */
	return a->scope == SCOPE_NONE ? SCOPE_GPU : a->scope;
}

static uint64_t place_of(const struct event_access *a, unsigned lane)
{
	const uint64_t addr = lane_addr(&a->at, lane);

	return a->space == SP_SHARED ? shared_at(a->owner, addr) : addr;
}

static bool handles(const struct cluster *c, const struct event_access *a)
{
	return a->space == SP_SHARED || c->global;
}

/* ---- which locations there are: filters ---- */

/* May there be locations in these 16 bytes? */
static bool may_have(const struct cluster *c, uint64_t at)
{
	return in_shared(at) ? c->shared_marks[at / 16 / 64 % SHARED_MARKS] >> at / 16 % 64 & 1
		: global_marked(c->check->global, at);
}

static bool may_have_any(const struct cluster *c, const struct event_access *a)
{
	return a->space == SP_SHARED ? c->shared_locations
		: __atomic_load_n(&c->check->global->nlocations, __ATOMIC_ACQUIRE);
}

/* In the cluster's table */
static struct location *make_local(struct cluster *c, uint64_t at, unsigned size)
{
	if (in_shared(at)) {
		c->shared_locations = true;
		c->shared_marks[at / 16 / 64 % SHARED_MARKS] |= 1ull << at / 16 % 64;
	}
	return location_make(c->locations, at, size);
}

/* ---- the reading side ---- */

struct read {                    /* one element, by lanes of one instruction */
	const struct event *e;
	struct warp *w;
	uint32_t lanes;
	uint64_t at;
	unsigned size, scope;
	bool acquires;
};

/* The chain's newest write; locations of global memory: a copy of the launch's. */
struct chain {
	bool observed;           /* the read is morally strong to it */
	uint32_t number;
};

/* Takes f: what patterns released that need an operation of scope `needed` to be acquired. */
static void take(struct cluster *c, const struct read *r, const struct frontier *f,
	unsigned needed)
{
	if (r->acquires && r->scope >= needed)
		warp_acquire(c, r->w, r->lanes, f);
	else
		warp_observe_at(c, r->w, r->lanes, f, needed, r->at, r->size);
}

/* What a head would give if scopes were wider. */
static void take_narrow(struct cluster *c, const struct read *r, const struct head *h)
{
	struct foreign *set;

	warp_note_narrow(c, r->w, r->lanes, h->f, h->site, r->e->site);
	if (!c->global)
		return;
	set = foreign_of(c->number, h->f);
	global_note_narrow(c, set, h->site, r->e->site);
	foreign_put(set);
}

static void take_heads(struct cluster *c, const struct read *r, const struct chain *chain)
{
	const struct location *l = location_find(c->locations, r->at, r->size);
	/* lanes of one atomic do not order each other */
	struct frontier *others = r->e->kind == EV_OBSERVED && l ? frontier_new(&c->space) : NULL;

	for (size_t i = 0; l && l->chain == chain->number && i < l->heads.n; i++) {
		struct head h = l->heads.at[i];
		const unsigned needed = scope_needed(c->number, h.cta, c->number, r->w->cta);

		if (others) {
			frontier_copy(&c->space, others, h.f);
			frontier_forget(others, r->w->index);
			h.f = others;
		}
		if (!chain->observed || h.scope < needed) {
			take_narrow(c, r, &h);
			continue;
		}
		if (r->acquires && r->scope < needed)
			take_narrow(c, r, &h);
		take(c, r, h.f, needed);
	}
	frontier_put(&c->space, others);
}

/* What other clusters released: wide, or narrower sets, which only explain. */
static void take_wide(struct cluster *c, const struct read *r, const struct chain *chain,
	struct foreign *wide, uint32_t site)
{
	struct frontier *f;

	if (!wide || (wide->n == 1 && wide->at[0].cluster == c->number))
		return; /* the cluster's own heads say more */
	if (!chain->observed || (r->acquires && r->scope < SCOPE_GPU))
		global_note_narrow(c, wide, site, r->e->site);
	if (!chain->observed)
		return;
	if (!r->acquires)
		global_note_unfenced(c, wide, site, r->e);
	f = frontier_new(&c->space);
	foreign_learn(&c->space, f, wide, c->number);
	if (r->e->kind == EV_OBSERVED)
		frontier_forget(f, r->w->index);
	take(c, r, f, SCOPE_GPU);
	frontier_put(&c->space, f);
}

/* Has the warp done just this read of this version before, as a loop that polls? */
static bool polled(struct cluster *c, const struct read *r, uint32_t version)
{
	struct polled *p = &c->polled[r->w->index];

	if (p->at == r->at && p->version == version && p->lanes == r->lanes && p->site == r->e->site)
		return true;
	*p = (struct polled){ r->at, version, r->lanes, r->e->site };
	return false;
}

static bool observes(const struct cluster *c, const struct read *r, const struct location *l)
{
	const unsigned needed = scope_needed(l->cluster, l->cta, c->number, r->w->cta);

	return (l->scope < r->scope ? l->scope : r->scope) >= needed;
}

#define MAX_NARROW_HEADS 16u

static void read_global(struct cluster *c, const struct read *r)
{
	struct location_shard *s = global_shard(c->check->global, r->at);
	struct narrow_head narrow[MAX_NARROW_HEADS];
	struct foreign *wide;
	struct location *l;
	struct chain chain;
	uint32_t site;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	l = location_find(&s->table, r->at, r->size);
	if (!l || polled(c, r, l->version)) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	chain = (struct chain){ observes(c, r, l), l->chain };
	wide = foreign_get(l->wide);
	site = l->site;
	for (size_t i = 0; i < l->narrow.n; i++)
		if (l->narrow.at[i].cluster != c->number) {
			narrow[n] = l->narrow.at[i];
			foreign_get(narrow[n++].set);
		}
	pthread_mutex_unlock(&s->lock);
	take_heads(c, r, &chain);
	take_wide(c, r, &chain, wide, site);
	if (r->acquires)
		warp_acquire_observed(c, r->w, r->lanes, r->at, r->size, r->scope);
	foreign_put(wide);
	while (n--) {
		global_note_narrow(c, narrow[n].set, narrow[n].site, r->e->site);
		foreign_put(narrow[n].set);
	}
}

static void read_shared(struct cluster *c, const struct read *r)
{
	const struct location *l = location_find(c->locations, r->at, r->size);
	struct chain chain;

	if (!l || polled(c, r, l->version))
		return;
	chain = (struct chain){ observes(c, r, l), l->chain };
	take_heads(c, r, &chain);
	if (r->acquires)
		warp_acquire_observed(c, r->w, r->lanes, r->at, r->size, r->scope);
}

/* Observes what the chain has released before the instruction; warp_order_rmw() orders lanes of the
 * same instruction. */
void observe_reads(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = access_of(e);
	struct read r = { .e = e, .w = w, .size = access_element(a), .scope = scope_of(a),
		.acquires = sem_acquires(a->sem) };
	uint32_t left;

	if (!(a->mode & MODE_READ) || a->flags & ACCESS_REDUCTION || !handles(c, a)
		|| !may_have_any(c, a))
		return;
	for (left = e->lanes; left; left &= ~r.lanes) {
		const unsigned l = (unsigned)__builtin_ctz(left);
		const uint64_t addr = lane_addr(&a->at, l);

		r.lanes = 1u << l;
		for (uint32_t m = left & (left - 1); m; m &= m - 1)
			if (lane_addr(&a->at, (unsigned)__builtin_ctz(m)) == addr)
				r.lanes |= m & -m;
		for (uint32_t at = 0; at < a->bytes; at += r.size) {
			r.at = place_of(a, l) + at;
			if (!may_have(c, r.at))
				continue;
			if (in_shared(r.at))
				read_shared(c, &r);
			else
				read_global(c, &r);
		}
	}
}

/* ---- the writing side ---- */

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
	if (f && f->ready) {
		add_pattern(x, frontier_new(&c->space), SCOPE_GPU);
		foreign_learn(&c->space, x->pattern[x->n - 1].f, f->ready, c->number);
		x->pattern[x->n - 1].set = foreign_get(f->ready);
	}
}

/* ---- a thread's own releases (release pattern 2) ---- */

static struct own_release *own_at(struct warp *w, uint64_t at, unsigned size, unsigned lane,
	unsigned scope)
{
	uint64_t key = (at ^ (uint64_t)size << 48 ^ (uint64_t)lane << 56 ^ (uint64_t)scope << 40)
		* 0x9e3779b97f4a7c15ull;

	return &w->own[key >> 32 & (OWN_RELEASES - 1)];
}

/* The newest releases are kept: one that falls out can only matter to a later ordinary strong write
 * of the same thread there. */
static void keep_own(struct cluster *c, const struct write *x)
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
	frontier_copy(&c->space, o->f, x->pattern[0].f);
}

static void add_own(struct cluster *c, struct write *x)
{
	for (unsigned scope = SCOPE_CTA; x->w->own && scope <= SCOPE_SYS; scope++) {
		const struct own_release *o = own_at(x->w, x->at, x->size, x->lane, scope);

		if (!o->f || o->at != x->at || o->size != x->size || o->lane != x->lane
			|| o->scope != scope || (x->releases && scope <= x->scope))
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
		struct head *h = NULL;

		for (size_t k = 0; k < l->heads.n && !h; k++)
			if (l->heads.at[k].cta == x->w->cta && l->heads.at[k].scope == p->scope)
				h = &l->heads.at[k];
		if (!h) {
			vec_push(&l->heads, ((struct head){ x->w->cta, p->scope, 0,
				frontier_new(&c->space) }));
			h = &l->heads.at[l->heads.n - 1];
		}
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
	if (marked)
		location_overwrite(NULL, &s->table, x->at, x->size, x->size);
	l = location_find(&s->table, x->at, x->size);
	if (!l && x->n) {
		l = location_make(&s->table, x->at, x->size);
		global_mark(g, x->at);
	}
	if (l) {
		if (location_write(NULL, l, c->number, x->w->cta, x->scope, x->rmw))
			add_own(c, x);
		add_sets(c, l, x);
		chain = l->chain;
	}
	pthread_mutex_unlock(&s->lock);
	if (!l || !x->n)
		return;
	l = make_local(c, x->at, x->size);
	if (l->chain != chain)
		location_clear(&c->space, l);
	l->chain = chain;
	add_heads(c, l, x);
}

static void write_shared(struct cluster *c, struct write *x)
{
	struct location *l;

	if (may_have(c, x->at))
		location_overwrite(&c->space, c->locations, x->at, x->size, x->size);
	else if (!x->n)
		return;
	l = x->n ? make_local(c, x->at, x->size) : location_find(c->locations, x->at, x->size);
	if (!l)
		return;
	if (location_write(&c->space, l, c->number, x->w->cta, x->scope, x->rmw))
		add_own(c, x);
	add_heads(c, l, x);
}

static bool ready(const struct warp *w)
{
	for (unsigned i = 0; i < w->ngroups; i++)
		if (w->group[i].f->ready)
			return true;
	return false;
}

void observe_writes(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = &e->access;
	struct write x = { .w = w, .size = access_element(a), .scope = scope_of(a),
		.rmw = a->mode == MODE_RMW, .releases = sem_releases(a->sem), .site = e->site };

	if (!(a->mode & MODE_WRITE) || !handles(c, a) || (!x.releases && !w->released.n && !ready(w)
		&& !may_have_any(c, a)))
		return;
	for (uint32_t m = e->lanes; m; m &= m - 1) {
		unsigned found;

		x.lane = (unsigned)__builtin_ctz(m);
		find_patterns(c, &x);
		found = x.n;
		for (uint32_t at = 0; at < a->bytes; at += x.size) {
			x.at = place_of(a, x.lane) + at;
			if (in_shared(x.at))
				write_shared(c, &x);
			else
				write_global(c, &x);
			if (x.releases)
				keep_own(c, &x);
			drop_patterns(c, &x, found);
		}
		drop_patterns(c, &x, 0);
	}
}

/* ---- weak writes ---- */

static void overwrite_global(struct global *g, uint64_t at, unsigned bytes)
{
	struct location_shard *s = global_shard(g, at);

	if (!global_marked(g, at))
		return;
	pthread_mutex_lock(&s->lock);
	location_overwrite(NULL, &s->table, at, bytes, 0);
	pthread_mutex_unlock(&s->lock);
}

void observe_plain_writes(struct cluster *c, const struct global_span *spans, size_t n)
{
	struct global *g = c->check->global;

	if (!__atomic_load_n(&g->nlocations, __ATOMIC_ACQUIRE))
		return;
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
		if (may_have(c, shared_at(cta, at)))
			location_overwrite(&c->space, c->locations, shared_at(cta, at),
				(unsigned)((next < end ? next : end) - at), 0);
	}
}

void observe_plain_shared(struct cluster *c, const struct lanes_access *x)
{
	if (!c->shared_locations)
		return;
	for (unsigned i = 0; i < x->spans->n; i++)
		overwrite_shared(c, x->owner, x->spans->at[i].addr, x->spans->at[i].bytes);
	for (uint32_t m = x->spans->n ? 0 : x->e->lanes; m; m &= m - 1)
		overwrite_shared(c, x->owner, lane_addr(x->at, (unsigned)__builtin_ctz(m)), x->bytes);
}

/* ---- lifetimes ---- */

void observe_reset(struct cluster *c)
{
	location_reset(&c->space, c->locations);
	if (c->shared_locations)
		memset(c->shared_marks, 0, sizeof c->shared_marks);
	c->shared_locations = false;
	memset(c->polled, 0, c->nwarps * sizeof *c->polled);
	for (uint32_t i = 0; i < c->nwarps; i++)
		for (unsigned k = 0; c->warp[i].own && k < OWN_RELEASES; k++) {
			frontier_put(&c->space, c->warp[i].own[k].f);
			c->warp[i].own[k].f = NULL;
		}
}

/* After observe_reset() */
void observe_free(struct cluster *c)
{
	location_free(&c->space, c->locations);
	free(c->locations);
	free(c->polled);
	for (uint32_t i = 0; i < c->nwarps; i++)
		free(c->warp[i].own);
}
