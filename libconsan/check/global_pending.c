/* global_pending: reads of global memory that are recorded later, those of one instruction in a loop
 * together.
 *
 * An early read waits until its warp synchronizes or writes there: from then on it may be ordered
 * before a conflicting access.
 *
 * A late one waits until its cluster writes there, if it ever does. That is possible where clusters do
 * not synchronize, and the warp has acquired nothing from another grid: then a read is not ordered with
 * what other clusters do, whenever it is recorded. The record has the epochs of its places
 * (global_record.pace), but its warp may know more by then than when it read, so that it is compared with
 * no other read (global_view.late). Invariant: no late read meets `written`, which reaches from the first to
 * the last byte that the cluster has written. */
#include "global.h"

#define PLACES_SHIFT 4 /* of a late record: 16 to 32 places */

static bool meets(const struct global_span *a, const struct global_span *b)
{
	return a->bytes && b->bytes && a->addr < b->addr + b->bytes && b->addr < a->addr + a->bytes;
}

/* a reaches over both then. */
static void widen(struct global_span *a, const struct global_span *b)
{
	const uint64_t end = b->addr + b->bytes, low = b->addr, high = a->addr + a->bytes;

	if (!b->bytes)
		return;
	if (!a->bytes) {
		*a = *b;
		return;
	}
	a->addr = a->addr < low ? a->addr : low;
	a->bytes = (high > end ? high : end) - a->addr;
}

static void record_read(struct cluster *c, struct warp *w, struct global_record *r, bool late)
{
	struct global_shadow *s = c->check->global->shadow;
	struct warp_reads *of = &c->global->reads[w->index];
	const uint32_t bit = 1u << (r - of->read);
	const struct frontier *f = late || global_follows(c) ? c->repeat.nothing : w->group[0].f;
	struct global_view v = global_view_of(c, w, r->lanes, f);

	of->early &= ~bit;
	of->late &= ~bit;
	if (!of->late)
		of->all.bytes = 0;
	v.late = late;
	global_know(c, r, f->foreign);
	if (!global_saturated(c, r) && !global_shadow_repeat(s, &v.accessor, r))
		global_shadow_touch(s, &v.accessor, r);
}

void global_flush(struct cluster *c, struct warp *w, bool late)
{
	struct warp_reads *of = &c->global->reads[w->index];

	for (uint32_t m = of->early; m; m &= m - 1)
		record_read(c, w, &of->read[__builtin_ctz(m)], false);
	for (uint32_t m = late ? of->late : 0; m; m &= m - 1)
		record_read(c, w, &of->read[__builtin_ctz(m)], true);
}

/* Those of the warp that meet x. */
static void record_met(struct cluster *c, struct warp *w, uint32_t reads, const struct global_span *x)
{
	struct warp_reads *of = &c->global->reads[w->index];

	for (; reads; reads &= reads - 1) {
		struct global_record *r = &of->read[__builtin_ctz(reads)];
		const struct global_span all = global_bounds(r);

		if (meets(&all, x))
			record_read(c, w, r, of->late & reads & -reads);
	}
}

void global_before_write(struct cluster *c, struct warp *w, const struct global_span *x)
{
	struct cluster_global *k = c->global;

	record_met(c, w, k->reads[w->index].early, x);
	if (x->addr >= k->written.addr && x->addr + x->bytes <= k->written.addr + k->written.bytes)
		return;
	widen(&k->written, x);
	if (!meets(&k->late, &k->written))
		return;
	k->late.bytes = 0;
	for (uint32_t i = 0; i < c->nwarps; i++) {
		if (meets(&k->reads[i].all, &k->written))
			record_met(c, &c->warp[i], k->reads[i].late, &k->written);
		widen(&k->late, &k->reads[i].all);
	}
}

/* Late records begin and end at places that depend on the address alone, so that those of clusters which
 * begin or end their loops elsewhere are the same in between. */
static bool in_one_record(const struct global_record *r, const struct global_record *next)
{
	const int64_t step = r->count > 1 ? r->step : (int64_t)(next->base - r->base);
	const uint64_t most = (uint64_t)(step < 0 ? -step : step) << PLACES_SHIFT;

	return !most || (r->base ^ next->base) < 1ull << (63 - __builtin_clzll(most));
}

bool global_defer(struct cluster *c, struct warp *w, uint32_t lanes, const struct ev_lanes *at,
	const struct repeat_stamp *s, bool early, struct global_record *r)
{
	struct cluster_global *k = c->global;
	struct warp_reads *of = &k->reads[w->index];
	struct global_record *p = &of->read[r->site % PENDING];
	const uint32_t bit = 1u << (p - of->read);
	struct global_span all;
	bool late;

	if (!s->only)
		return false;
	global_layout_of(r, lanes, at);
	if (r->row == GR_LIST)
		return false;
	all = global_bounds(r);
	late = !global_synchronised(c) && !c->check->global->start && !meets(&all, &k->written)
		&& (global_follows(c) || !w->group[0].f->foreign);
	if (!late && !early)
		return false;
	if (!((late ? of->late : of->early) & bit) || p->site != r->site || (late && !in_one_record(p, r))
		|| !global_extend(p, r)) {
		if ((of->late | of->early) & bit)
			record_read(c, w, p, of->late & bit);
		*p = *r;
		*(late ? &of->late : &of->early) |= bit;
	}
	if (late) {
		widen(&of->all, &all);
		widen(&k->late, &all);
	}
	return true;
}
