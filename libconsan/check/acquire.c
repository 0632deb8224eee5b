/* acquire: the reading side of synchronization through strong accesses: acquire patterns (PTX ISA
 * 8.8) and observation order (8.9.2), element by element (8.2.4), for shared and global memory
 * alike. release.c is the writing side.
 *
 * A read that is morally strong to the newest write of the chain observes the chain. What it takes
 * counts at once if it acquires; else from a fence on, or from an acquire of the same location on.
 * The last operation must be morally strong to the first one of the release pattern. red never
 * acquires. */
#include "global.h"
#include "host.h"
#include "location.h"

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
	unsigned needed;         /* scope, of global memory: sys if it is of another device */
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
		warp_observe_at(c, r->w, r->lanes, f, needed, r->at, r->size, reads_ticket(r->e));
}

/* What a head would give if scopes were wider. */
static void take_narrow(struct cluster *c, const struct read *r, const struct head *h)
{
	struct foreign *set;

	warp_note_narrow(c, r->w, r->lanes, h->f, h->site, r->e->site);
	if (!c->global)
		return;
	set = foreign_of(c->number, h->f);
	global_note_narrow(c, set, NULL, h->site, r->e->site);
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

/* What other clusters released: wide, or narrower sets, which only explain. From another device,
 * only what was released at system scope: `system`. */
static void take_wide(struct cluster *c, const struct read *r, const struct chain *chain,
	struct foreign *wide, struct foreign *system, uint32_t site)
{
	const bool far = chain->needed == SCOPE_SYS;
	struct frontier *f;

	if (!wide || (wide->n == 1 && wide->at[0].cluster == c->number))
		return; /* the cluster's own heads say more */
	if (!chain->observed || (r->acquires && r->scope < chain->needed))
		global_note_narrow(c, wide, NULL, site, r->e->site);
	else if (far && wide != system)
		global_note_narrow(c, wide, system, site, r->e->site);
	if (far)
		wide = system;
	if (!chain->observed || !wide)
		return;
	if (!r->acquires)
		global_note_unfenced(c, wide, site, chain->needed, r->e);
	f = frontier_new(&c->space);
	foreign_learn(&c->space, f, wide, c->number);
	if (r->e->kind == EV_OBSERVED)
		frontier_forget(f, r->w->index);
	take(c, r, f, far ? SCOPE_SYS : SCOPE_GPU);
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

static struct chain chain_of(const struct cluster *c, const struct read *r, const struct location *l)
{
	const unsigned needed = in_shared(r->at) ? scope_needed(l->cluster, l->cta, c->number, r->w->cta)
		: beside_scope_needed(c->check, l->cluster, l->cta, c->number, r->w->cta);

	return (struct chain){ needed < SCOPE_GPU ? SCOPE_GPU : needed,
		(l->scope < r->scope ? l->scope : r->scope) >= needed, l->chain };
}

static void read_global(struct cluster *c, const struct read *r)
{
	struct location_shard *s = global_shard(c->check->global, r->at);
	struct narrow_head narrow[MAX_NARROW_HEADS];
	struct foreign *wide, *system;
	struct location *l;
	struct chain chain;
	uint32_t site;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	l = host_location(c->check->global->beside, &s->table, r->at, r->size);
	if (!l || polled(c, r, l->version)) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	l->read = true;
	chain = chain_of(c, r, l);
	wide = foreign_get(l->wide);
	system = foreign_get(l->wide_system);
	site = l->site;
	for (size_t i = 0; i < l->narrow.n; i++)
		if (l->narrow.at[i].cluster != c->number) {
			narrow[n] = l->narrow.at[i];
			foreign_get(narrow[n++].set);
		}
	pthread_mutex_unlock(&s->lock);
	take_heads(c, r, &chain);
	take_wide(c, r, &chain, wide, system, site);
	if (r->acquires)
		warp_acquire_observed(c, r->w, r->lanes, r->at, r->size, r->scope);
	foreign_put(wide);
	foreign_put(system);
	while (n--) {
		global_note_narrow(c, narrow[n].set, NULL, narrow[n].site, r->e->site);
		foreign_put(narrow[n].set);
	}
}

static void read_shared(struct cluster *c, const struct read *r)
{
	const struct location *l = location_find(c->locations, r->at, r->size);
	struct chain chain;

	if (!l || polled(c, r, l->version))
		return;
	chain = chain_of(c, r, l);
	take_heads(c, r, &chain);
	if (r->acquires)
		warp_acquire_observed(c, r->w, r->lanes, r->at, r->size, r->scope);
}

/* Reads the value of a write with which no release pattern ends: only what it observed before can
 * count from now on (acquire pattern 2). */
static void read_old(struct cluster *c, const struct read *r)
{
	if (r->acquires)
		warp_acquire_observed(c, r->w, r->lanes, r->at, r->size, r->scope);
}

/* Observes what the chain has released before the instruction; warp_order_rmw() orders lanes of the
 * same instruction. */
void acquire_reads(struct cluster *c, struct warp *w, const struct event *e)
{
	const struct event_access *a = access_of(e);
	struct read r = { .e = e, .w = w, .size = access_element(a), .scope = access_scope(a),
		.acquires = sem_acquires(a->sem) };
	const bool after_sc = w->sc_fences && a->mode == MODE_READ;
	uint32_t left;

	if (!(a->mode & MODE_READ) || a->flags & ACCESS_REDUCTION || !location_tracks(c, a)
		|| (!after_sc && !location_any(c, a)))
		return;
	for (left = e->lanes; left; left &= ~r.lanes) {
		const unsigned l = (unsigned)__builtin_ctz(left);
		const uint64_t addr = lane_addr(&a->at, l);

		r.lanes = 1u << l;
		for (uint32_t m = left & (left - 1); m; m &= m - 1)
			if (lane_addr(&a->at, (unsigned)__builtin_ctz(m)) == addr)
				r.lanes |= m & -m;
		for (uint32_t at = 0; at < a->bytes; at += r.size) {
			r.at = access_place(a, l) + at;
			if (after_sc)
				sc_publish(c, w, r.lanes, r.at, r.size, r.scope);
			if (!in_shared(r.at))
				host_word_read(c->check->global->beside, r.at, r.size, r.scope);
			if (!location_may_be(c, r.at))
				continue;
			if (a->flags & ACCESS_STALE) {
				read_old(c, &r);
				continue;
			}
			if (in_shared(r.at))
				read_shared(c, &r);
			else
				read_global(c, &r);
		}
	}
}

