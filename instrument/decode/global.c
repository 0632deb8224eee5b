/* global: turns records of global memory into events: accesses, changes of tensor maps, and calls
 * of malloc and free. For a copy, the addresses are kept for the copy's own record, which
 * follows. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

#include <stdlib.h>

static void emit_map_write(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes,
	uint64_t addr)
{
	struct event e = record_event(c, warp, site, EV_TENSOR_MAP, lanes);

	e.tensor_map.mode = MODE_WRITE;
	e.tensor_map.addr = addr;
	emit(c, &e);
}

/* The values that a store writes are not recorded, but it is known where tensor maps are. As
 * in the executor, a store to the beginning of a map counts as a change of the map. */
static void emit_stored_maps(struct dcluster *c, uint32_t warp, const struct record *r,
	const uint64_t at[32])
{
	for EACH_LANE(l, r->lanes)
		if (maps_hold(&c->job->maps, at[l]))
			emit_map_write(c, warp, r->site, 1u << l, at[l]);
}

static void emit_global_access(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_ACCESS, r->lanes);
	const bool seen = record_site(c, r->site)->phase == PHASE_GLOBAL_AFTER;
	uint64_t at[32] = { 0 };

	record_access(i, &e.access);
	e.access.flags |= c->job->info[r->site].flag ? ACCESS_FLAG : 0;
	e.access.space = SP_GLOBAL;
	e.access.value = record_stored(c, r);
	if (e.access.value)
		e.access.flags &= (enum ev_access_flags)~ACCESS_VALUES_UNKNOWN;
	if (seen)
		e.kind = EV_OBSERVED;
	for EACH_LANE(l, r->lanes)
		at[l] = record_global(c, r, l);
	if (!seen)
		refused_global(c, warp, r, e.access.bytes, at);
	record_place(&e.access.at, e.lanes, at);
	e.access.overwritten = c->job->info[r->site].plan.conflicts && !r->affine ? r->base : 0;
	emit(c, &e);
	if (e.access.mode == MODE_WRITE && c->job->maps.n)
		emit_stored_maps(c, warp, r, at);
}

/* For each lane by itself, as the lanes of a warp may have recorded at different times. */
static void keep(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct plan *p = &c->job->info[r->site].plan;
	struct dwarp *w = &c->warp[warp];

	for EACH_LANE(l, r->lanes) {
		if (p->value[0].kind == VAL_GLOBAL) {
			w->source[l].at = record_global(c, r, l);
			continue;
		}
		for (unsigned k = 0; k < p->nvalues && p->value[k].kind != VAL_MAP; k++)
			w->source[l].word[k] = (int32_t)record_value(c, r, p->value[k].o, l);
	}
}

/* ---- malloc and free ---- */

#define HEAP_GRAIN 16u /* malloc aligns blocks to it */

static struct heap_size *heap_place(const struct heap_sizes *t, uint64_t addr)
{
	uint64_t i = addr / HEAP_GRAIN * 0x9e3779b97f4a7c15u >> 32;

	while (t->at[i & (t->cap - 1)].addr && t->at[i & (t->cap - 1)].addr != addr)
		i++;
	return &t->at[i & (t->cap - 1)];
}

static void heap_put(struct heap_sizes *t, uint64_t addr, uint64_t bytes)
{
	struct heap_size *x;

	if (2 * (t->n + 1) > t->cap) {
		const struct heap_sizes was = *t;

		t->cap = was.cap ? 2 * was.cap : 64;
		t->at = base_alloc(t->cap * sizeof *t->at);
		for (uint32_t k = 0; k < was.cap; k++)
			if (was.at[k].addr)
				*heap_place(t, was.at[k].addr) = was.at[k];
		free(was.at);
	}
	x = heap_place(t, addr);
	t->n += !x->addr;
	*x = (struct heap_size){ addr, bytes };
}

/* Of a block that an earlier launch allocated only the first bytes are known. */
static uint64_t heap_get(const struct heap_sizes *t, uint64_t addr)
{
	const struct heap_size *x = t->cap ? heap_place(t, addr) : NULL;

	return x && x->addr ? x->bytes : HEAP_GRAIN;
}

static void emit_heap(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct plan_heap *h)
{
	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_HEAP, 1u << l);
		struct event_heap *x = &e.heap;

		x->addr = record_value(c, r, h->block, l);
		x->freed = h->frees;
		if (!x->addr)
			continue;
		pthread_mutex_lock(&c->job->lock);
		if (h->frees) {
			x->bytes = heap_get(&c->job->heap, x->addr);
		} else {
			x->bytes = (record_value(c, r, h->size, l) + HEAP_GRAIN - 1) & ~(HEAP_GRAIN - 1ull);
			heap_put(&c->job->heap, x->addr, x->bytes);
		}
		pthread_mutex_unlock(&c->job->lock);
		emit(c, &e);
	}
}

void emit_global(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	struct plan_heap h;

	if (s->insn->op == OP_call && plan_heap_of(s->func, s->insn, &h)) {
		emit_heap(c, warp, r, &h);
		return;
	}
	switch (ptx_effect_of(s->insn->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW:
		emit_global_access(c, warp, r);
		return;
	default:
		keep(c, warp, r);
	}
}

/* ---- tensor maps ---- */

/* The content of the map at this time is known only if it is never written. */
void emit_map_read(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes,
	const struct decode_box *box, bool known)
{
	struct event e = record_event(c, warp, site, EV_TENSOR_MAP, lanes);

	e.tensor_map.mode = MODE_READ;
	e.tensor_map.addr = box->map;
	e.tensor_map.no_bulk = !known;
	if (known && !maps_written(&c->job->maps, box->map))
		e.tensor_map.hash = box->hash;
	emit(c, &e);
}

static void emit_map_bytes(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes,
	enum ev_space space, enum ev_mode mode, uint64_t at)
{
	struct event e = record_event(c, warp, site, EV_ACCESS, lanes & -lanes);

	if (space == SP_GLOBAL && !(c->sink && c->sink->want_global))
		return;
	e.access.space = space;
	e.access.mode = mode;
	e.access.bytes = 128;
	e.access.owner = e.cta;
	e.access.at.base = space == SP_SHARED ? OFFSET(at) : at;
	emit(c, &e);
}

void emit_map_change(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct plan *p = &c->job->info[r->site].plan;
	unsigned first = (unsigned)__builtin_ctz(r->lanes);
	uint64_t map;
	struct event e = record_event(c, warp, r->site, EV_FENCE_PROXY, r->lanes);

	if (i->op == OP_tensormap_replace) {
		const bool shared = p->value[0].kind == VAL_SHARED;

		for EACH_LANE(l, r->lanes) {
			uint64_t at = record_value(c, r, p->value[0].o, l);

			emit_map_bytes(c, warp, r->site, 1u << l, shared ? SP_SHARED : SP_GLOBAL,
				MODE_WRITE, at);
			if (!shared)
				emit_map_write(c, warp, r->site, 1u << l, at);
		}
		return;
	}
	map = record_value(c, r, p->value[0].o, first);
	emit_map_bytes(c, warp, r->site, 1u << first, SP_SHARED, MODE_READ,
		record_value(c, r, p->value[1].o, first));
	emit_map_bytes(c, warp, r->site, r->lanes, SP_GLOBAL, MODE_WRITE, map);
	emit_map_write(c, warp, r->site, r->lanes, map);
	e.fence_proxy = (struct event_fence_proxy){ .proxy = PROXY_TENSORMAP_RELEASE,
		.sem = SEM_RELEASE, .scope = ptx_scope_of(i, SCOPE_NONE), .space = SP_GLOBAL,
		.addr = map };
	emit(c, &e);
}
