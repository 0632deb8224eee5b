/* fence_sc: the order of fence.sc (PTX ISA 8.9.3, 8.9.4, 8.10.2). Fence-SC order relates every pair
 * of morally strong fence.sc, and must not contradict causality. If an access A after one fence
 * precedes an access B before another in communication order, the other cannot come first, or B
 * would precede A in causality order. So the first fence synchronizes with the second.
 *
 * What one execution shows of it is used: A and B are morally strong accesses to one location, A a
 * load or store, B a write after it. A B that reads the value of A is an ordinary pattern
 * (acquire.c, release.c), and an A that is a read-modify-write hands over by those only. */
#include "global.h"
#include "location.h"

/* Has the warp published this since its newest fence.sc, as a loop that polls? */
static bool published(struct cluster *c, const struct warp *w, uint64_t at, unsigned size,
	uint32_t lanes, unsigned scope)
{
	struct sc_published *p = &c->sc_published[w->index * SC_PUBLISHED + at / 4 % SC_PUBLISHED];
	const uint32_t kind = size << 8 | scope;

	if (p->at == at && p->fences == w->sc_fences && p->lanes == lanes && p->kind == kind)
		return true;
	*p = (struct sc_published){ at, w->sc_fences, lanes, kind };
	return false;
}

static void publish(struct cluster *c, struct warp *w, uint64_t at, unsigned size, unsigned scope,
	const struct frontier *f)
{
	struct location *l = location_make_local(c, at, size);
	struct foreign *set;

	frontier_join(&c->space, location_head(&c->space, &l->ordered, w->cta, scope)->f, f);
	c->ordered = true;
	if (in_shared(at))
		return;
	if (!global_marked(c->check->global, at))
		global_mark(c->check->global, at);
	if (scope < SCOPE_GPU)
		return;
	set = foreign_of(c->number, f);
	global_publish_ordered(c->check, at, size, scope, set);
	foreign_put(set);
}

void sc_publish(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at, unsigned size,
	unsigned scope)
{
	if (published(c, w, at, size, lanes, scope))
		return;
	for (uint32_t m = lanes; m; m &= m - 1) {
		const unsigned lane = (unsigned)__builtin_ctz(m);

		for (size_t i = 0; i < w->released.n; i++) {
			const struct released *r = &w->released.at[i];
			struct frontier *f;

			if (!r->sc || !(r->lanes >> lane & 1))
				continue;
			f = frontier_new(&c->space);
			warp_fenced(c, w, lane, i, f);
			publish(c, w, at, size, scope < r->scope ? scope : r->scope, f);
			frontier_put(&c->space, f);
		}
	}
}

static void take(struct cluster *c, struct warp *w, uint32_t lanes, const struct frontier *f,
	unsigned needed)
{
	warp_observe_like(c, w, &(struct observed){ .lanes = lanes, .min_scope = (uint8_t)needed,
		.sc = true }, f);
}

/* Of other clusters. Takes over the set. */
static void take_ordered(struct cluster *c, struct warp *w, uint32_t lanes, struct foreign *set,
	unsigned needed)
{
	struct frontier *f;

	if (set && (set->n > 1 || set->at[0].cluster != c->number)) {
		f = frontier_new(&c->space);
		foreign_learn(&c->space, f, set, c->number);
		take(c, w, lanes, f, needed);
		frontier_put(&c->space, f);
	}
	foreign_put(set);
}

void sc_take(struct cluster *c, struct warp *w, uint32_t lanes, uint64_t at, unsigned size,
	unsigned scope)
{
	const struct location *l = c->ordered ? location_find(c->locations, at, size) : NULL;

	for (size_t i = 0; l && i < l->ordered.n; i++) {
		const struct head *h = &l->ordered.at[i];
		const unsigned needed = scope_needed(c->number, h->cta, c->number, w->cta);

		if (h->scope >= needed && scope >= needed)
			take(c, w, lanes, h->f, needed);
	}
	if (in_shared(at) || scope < SCOPE_GPU)
		return;
	take_ordered(c, w, lanes, global_take_ordered(c->check, at, size, false), SCOPE_GPU);
	if (scope >= SCOPE_SYS)
		take_ordered(c, w, lanes, global_take_ordered(c->check, at, size, true), SCOPE_SYS);
}
