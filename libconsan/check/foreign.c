/* foreign: sets of what is known of other clusters, see foreign.h. Does not depend on accesses or
 * scopes. */
#include "foreign.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

static void hold(uint32_t *refs)
{
	__atomic_fetch_add(refs, 1, __ATOMIC_RELAXED);
}

static bool drop(uint32_t *refs)
{
	return __atomic_sub_fetch(refs, 1, __ATOMIC_ACQ_REL) == 0;
}

/* ---- snapshots ---- */

static struct snapshot *snapshot_of(const struct frontier *f)
{
	struct clock_space s = frontier_space(f);
	struct snapshot *x = base_alloc(sizeof *x);

	x->refs = 1;
	x->f = frontier_new(&s);
	frontier_copy(&s, x->f, f);
	foreign_put(x->f->foreign);
	x->f->foreign = NULL;
	for (unsigned i = 0; i < BY_OTHERS; i++) {
		foreign_put(x->f->by_others[i]);
		x->f->by_others[i] = NULL;
	}
	return x;
}

static struct snapshot *snapshot_get(struct snapshot *x)
{
	if (x)
		hold(&x->refs);
	return x;
}

static void snapshot_put(struct snapshot *x)
{
	struct clock_space s = { 0 };

	if (!x || !drop(&x->refs))
		return;
	frontier_put(&s, x->f);
	clock_space_close(&s);
	free(x);
}

/* Returns a snapshot that covers both; the caller owns the reference. */
static struct snapshot *snapshot_join(struct snapshot *a, struct snapshot *b)
{
	struct clock_space s;
	struct snapshot *x;

	if (!a || !b || a == b)
		return snapshot_get(a ? a : b);
	if (frontier_covers(a->f, b->f))
		return snapshot_get(a);
	if (frontier_covers(b->f, a->f))
		return snapshot_get(b);
	x = snapshot_of(a->f);
	s = frontier_space(x->f);
	frontier_join(&s, x->f, b->f);
	return x;
}

static bool snapshot_covers(const struct snapshot *a, const struct snapshot *b)
{
	return !b || a == b || (a && frontier_covers(a->f, b->f));
}

/* ---- sets ---- */

static struct foreign *set_new(uint32_t n)
{
	struct foreign *f = base_alloc(sizeof *f + n * sizeof f->at[0]);

	f->refs = 1;
	return f;
}

struct foreign *foreign_get(struct foreign *f)
{
	if (f)
		hold(&f->refs);
	return f;
}

void foreign_put(struct foreign *f)
{
	if (!f || !drop(&f->refs))
		return;
	for (uint32_t i = 0; i < f->n; i++) {
		snapshot_put(f->at[i].known);
		snapshot_put(f->at[i].fenced);
	}
	free(f);
}

static uint32_t place(const struct foreign *f, uint32_t cluster)
{
	uint32_t lo = 0, hi = f ? f->n : 0;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (f->at[mid].cluster < cluster)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct foreign_entry *foreign_find(const struct foreign *f, uint32_t cluster)
{
	uint32_t i = place(f, cluster);

	return f && i < f->n && f->at[i].cluster == cluster ? &f->at[i] : NULL;
}

bool foreign_knows(const struct foreign *f, uint32_t cluster, enum plane plane, uint32_t agent,
	uint32_t lanes, uint32_t epoch)
{
	const struct foreign_entry *e = foreign_find(f, cluster);
	struct clock_space s;

	if (!e)
		return false;
	s = frontier_space(e->known->f);
	return (plane != PLANE_STORED && frontier_full(&s, e->known->f, plane, agent) >= epoch)
		|| !(lanes & ~frontier_lanes(&s, e->known->f, plane, agent, epoch));
}

bool foreign_covers(const struct foreign *f, const struct foreign *of)
{
	if (!of || f == of)
		return true;
	if (!f || f->n < of->n)
		return false;
	for (uint32_t i = 0; i < of->n; i++) {
		const struct foreign_entry *e = foreign_find(f, of->at[i].cluster);

		if (!e || !snapshot_covers(e->known, of->at[i].known)
			|| !snapshot_covers(e->fenced, of->at[i].fenced))
			return false;
	}
	return true;
}

static struct foreign_entry entry_get(const struct foreign_entry *e)
{
	return (struct foreign_entry){ e->cluster, snapshot_get(e->known), snapshot_get(e->fenced) };
}

void foreign_join(struct foreign **f, struct foreign *from)
{
	struct foreign *was = *f, *x;
	uint32_t i = 0, k = 0;

	if (!from || was == from || (was && foreign_covers(was, from)))
		return;
	if (!was || foreign_covers(from, was)) {
		*f = foreign_get(from);
		foreign_put(was);
		return;
	}
	x = set_new(was->n + from->n);
	while (i < was->n || k < from->n) {
		const struct foreign_entry *a = i < was->n ? &was->at[i] : NULL;
		const struct foreign_entry *b = k < from->n ? &from->at[k] : NULL;

		if (a && b && a->cluster == b->cluster) {
			x->at[x->n++] = (struct foreign_entry){ a->cluster,
				snapshot_join(a->known, b->known), snapshot_join(a->fenced, b->fenced) };
			i++;
			k++;
		} else if (a && (!b || a->cluster < b->cluster)) {
			x->at[x->n++] = entry_get(a);
			i++;
		} else {
			x->at[x->n++] = entry_get(b);
			k++;
		}
	}
	*f = x;
	foreign_put(was);
}

void foreign_fence(struct foreign **f)
{
	struct foreign *was = *f, *x;
	bool done = true;

	for (uint32_t i = 0; i < was->n; i++)
		done &= was->at[i].known == was->at[i].fenced;
	if (done)
		return;
	x = set_new(was->n);
	for (uint32_t i = 0; i < was->n; i++)
		x->at[x->n++] = (struct foreign_entry){ was->at[i].cluster,
			snapshot_get(was->at[i].known), snapshot_get(was->at[i].known) };
	*f = x;
	foreign_put(was);
}

struct foreign *foreign_of(uint32_t cluster, const struct frontier *f)
{
	const struct foreign *others = f->foreign;
	uint32_t n = others ? others->n : 0, at = place(others, cluster);
	struct foreign *x = set_new(n + 1);

	for (uint32_t i = 0; i < at; i++)
		x->at[x->n++] = entry_get(&others->at[i]);
	x->at[x->n++] = (struct foreign_entry){ cluster, snapshot_of(f), NULL };
	for (uint32_t i = at; i < n; i++)
		if (others->at[i].cluster != cluster)
			x->at[x->n++] = entry_get(&others->at[i]);
	return x;
}

struct foreign *foreign_mark(uint32_t pseudo)
{
	struct clock_space s = { 0 };
	struct frontier *zero_epochs = frontier_new(&s);
	struct foreign *set = foreign_of(pseudo, zero_epochs);

	frontier_put(&s, zero_epochs);
	clock_space_close(&s);
	return set;
}

void foreign_learn(struct clock_space *s, struct frontier *f, struct foreign *set,
	uint32_t cluster)
{
	const struct foreign_entry *own = foreign_find(set, cluster);
	struct foreign *rest;

	if (own) {
		frontier_join(s, f, own->known->f);
		if (own->fenced) {
			struct frontier *q = frontier_new(s);

			frontier_copy(s, q, own->fenced->f);
			frontier_fence_global(s, q);
			frontier_join(s, f, q);
			frontier_put(s, q);
		}
	}
	if (!own) {
		foreign_join(&f->foreign, set);
		return;
	}
	if (set->n == 1)
		return;
	rest = set_new(set->n - 1);
	for (uint32_t i = 0; i < set->n; i++)
		if (set->at[i].cluster != cluster)
			rest->at[rest->n++] = entry_get(&set->at[i]);
	foreign_join(&f->foreign, rest);
	foreign_put(rest);
}
