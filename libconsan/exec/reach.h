/* reach: the addresses of one memory op for all its lanes, checked at once.
 * For the SIMD files that access memory. The usual cases (all lanes in one
 * space and one allocation) are vector loops; everything else goes lane by
 * lane through ex_resolve(), which also words the fault. */
#ifndef CONSAN_EXEC_REACH_H
#define CONSAN_EXEC_REACH_H

#include "core.h"

#define REACH_INLINE static inline __attribute__((always_inline))

/* xop.o of every memory op */
enum { MX_ADDR = 4, MX_IMM, MX_FORM, MX_ORDER };

/* o[MX_FORM]: size of an element, number of elements, bytes of the register */
#define FORM(size, vec, reg, sext) \
	((uint32_t)(size) | (uint32_t)(vec) << 8 | (uint32_t)(reg) << 16 | (uint32_t)(sext) << 24)
#define FORM_SIZE(f) ((f) & 255)
#define FORM_VEC(f) ((f) >> 8 & 255)
#define FORM_REG(f) ((f) >> 16 & 255)
#define FORM_SEXT(f) ((f) >> 24 & 1)
/* o[MX_ORDER]: ev_sem, ev_scope, event flags, does a load count as a poll */
#define ORDER(sem, scope, flags, poll) \
	((uint32_t)(sem) | (uint32_t)(scope) << 8 | (uint32_t)(flags) << 16 | (uint32_t)(poll) << 24)

struct reach {
	unsigned char *base;     /* lane l's bytes are at base + off[l] ... */
	bool far;                /* ... or, in mixed spaces, at host[l] */
	bool affine;             /* full mask, off[l] = off[0] + l * stride */
	int64_t stride;
	enum ev_space space;
	struct cta *cta;         /* SP_SHARED: whose */
	uint64_t shift;          /* off[l] + shift is what events call the address */
	uint64_t off[LANES + 1] __attribute__((aligned(64)));
	struct xplace place[LANES]; /* if far */
};

REACH_INLINE void reach_load(const struct warp *w, const struct xop *x, struct reach *r, uint64_t add)
{
	uint32_t slot = x->o[MX_ADDR];
	uint64_t imm = (uint64_t)(int64_t)(int32_t)x->o[MX_IMM] + add;

	if (slot & 1) {
		const l64 *a = (const l64 *)__builtin_assume_aligned(w->r + (slot & ~1u), 64);

		for (unsigned l = 0; l < LANES; l++)
			r->off[l] = a[l] + imm;
	} else {
		const l32 *a = (const l32 *)__builtin_assume_aligned(w->r + slot, 64);

		for (unsigned l = 0; l < LANES; l++)
			r->off[l] = a[l] + imm;
	}
}

/* Highest and lowest offset, or of all; lanes not given count as the first. */
struct range { uint64_t lo, hi, bits; };
REACH_INLINE struct range reach_range(struct reach *r, uint32_t lanes)
{
	uint64_t first = r->off[0];
	struct range g;

	r->affine = false;
	if (lanes == FULL) {
		uint64_t stride = r->off[1] - first, odd = 0;

		for (unsigned l = 0; l < LANES - 1; l++)
			odd |= (r->off[l + 1] - r->off[l]) ^ stride;
		if (!odd) {
			uint64_t last = r->off[LANES - 1];

			r->affine = true;
			r->stride = (int64_t)stride;
			g.lo = r->stride < 0 ? last : first;
			g.hi = r->stride < 0 ? first : last;
			g.bits = first | stride;
			return g;
		}
	} else {
		first = r->off[__builtin_ctz(lanes)];
		for (unsigned l = 0; l < LANES; l++)
			r->off[l] = lanes >> l & 1 ? r->off[l] : first;
	}
	g.lo = g.hi = g.bits = first;
	for (unsigned l = 0; l < LANES; l++) {
		g.lo = r->off[l] < g.lo ? r->off[l] : g.lo;
		g.hi = r->off[l] > g.hi ? r->off[l] : g.hi;
		g.bits |= r->off[l];
	}
	return g;
}

/* The slow way: each lane by itself. False: a fault was raised. */
static __attribute__((noinline)) bool reach_each(struct warp *w, const struct xop *x,
	uint32_t lanes, enum ptx_space space, unsigned bytes, unsigned align, bool write,
	struct reach *r)
{
	struct xaddr a = { x->o[MX_ADDR], (int32_t)x->o[MX_IMM] };

	r->far = true;
	r->affine = false;
	for EACH_LANE(l, lanes)
		if (!ex_resolve(w, x, 1u << l, space, ex_addr(w, a, l), bytes, align, write, &r->place[l]))
			return false;
	/* all in one place after all? */
	struct xplace p = r->place[__builtin_ctz(lanes)];
	r->space = p.space;
	r->cta = p.cta;
	for EACH_LANE(k, lanes) {
		if (r->place[k].space != p.space || r->place[k].cta != p.cta)
			r->space = SP_ANY;
		r->off[k] = r->place[k].addr;
	}
	r->shift = 0;
	return true;
}

REACH_INLINE bool reach_shared(struct warp *w, const struct xop *x, uint32_t lanes,
	uint64_t window, unsigned bytes, unsigned align, bool write, struct reach *r)
{
	struct cta *cta = w->cta;
	struct range g;

	reach_load(w, x, r, (uint64_t)0 - window - ((uint64_t)cta->rank << 24));
	g = reach_range(r, lanes);
	if (__builtin_expect(g.lo > g.hi || g.hi + bytes > cta->shared_bytes || g.hi + bytes < bytes
		|| (g.bits & (align - 1)), 0))
		return reach_each(w, x, lanes, window ? PS_none : PS_shared, bytes, align, write, r);
	r->base = cta->shared;
	r->far = false;
	r->space = SP_SHARED;
	r->cta = cta;
	r->shift = 0;
	return true;
}

REACH_INLINE bool reach_global_range(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned bytes, unsigned align, bool write, struct range g,
	struct reach *r)
{
	struct exec_range *h = &w->worker->hint[(x - w->code) & 255];

	if (__builtin_expect(g.lo > g.hi || (g.bits & (align - 1)), 0))
		return reach_each(w, x, lanes, space, bytes, align, write, r);
	if (__builtin_expect(g.lo < h->lo || g.hi >= h->hi || bytes > h->hi - g.hi
		|| (write && h->read_only), 0)) {
		if (!mem_lookup(g.lo, h)) {
			*h = (struct exec_range){ 0, 0, false };
			return reach_each(w, x, lanes, space, bytes, align, write, r);
		}
		if (g.hi >= h->hi || bytes > h->hi - g.hi || (write && h->read_only))
			return reach_each(w, x, lanes, space, bytes, align, write, r);
	}
	r->base = NULL;
	r->far = false;
	r->space = space == PS_const ? SP_CONST : SP_GLOBAL;
	r->cta = NULL;
	r->shift = 0;
	return true;
}

REACH_INLINE bool reach_local(struct warp *w, const struct xop *x, uint32_t lanes,
	unsigned bytes, unsigned align, bool write, struct reach *r)
{
	uint32_t room = w->worker->grid->k->local_stack;
	struct range g;

	reach_load(w, x, r, 0);
	g = reach_range(r, lanes);
	if (g.lo > g.hi || g.hi + bytes > room || (g.bits & (align - 1)))
		return reach_each(w, x, lanes, PS_local, bytes, align, write, r);
	for (unsigned l = 0; l < LANES; l++)
		r->off[l] += (uint64_t)l * room;
	r->stride += room;
	r->base = w->local;
	r->far = false;
	r->space = SP_LOCAL;
	r->cta = NULL;
	r->shift = 0;
	return true;
}

/* space is a constant in each instance. False: return STEP_FAULT. */
REACH_INLINE bool reach(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned bytes, unsigned align, bool write, struct reach *r)
{
	struct range g;

	if (space == PS_shared)
		return reach_shared(w, x, lanes, 0, bytes, align, write, r);
	if (space == PS_local)
		return reach_local(w, x, lanes, bytes, align, write, r);
	if (space == PS_shared_cluster || space == PS_param)
		return reach_each(w, x, lanes, space, bytes, align, write, r);
	reach_load(w, x, r, 0);
	g = reach_range(r, lanes);
	if (space == PS_none && g.hi >= ex_shared_window
		&& g.lo < ex_param_window + PARAM_WINDOW_BYTES) {
		uint64_t own = ex_shared_window + ((uint64_t)w->cta->rank << 24);

		if (g.lo >= own && g.hi < own + (1u << 24))
			return reach_shared(w, x, lanes, ex_shared_window, bytes, align, write, r);
		return reach_each(w, x, lanes, PS_none, bytes, align, write, r);
	}
	return reach_global_range(w, x, lanes, space, bytes, align, write, g, r);
}

REACH_INLINE unsigned char *reach_at(const struct reach *r, unsigned l)
{
	return r->far ? r->place[l].host : r->base + r->off[l];
}

/* Emits the access as one event, or one for each space and CTA that lanes hit. */
static __attribute__((noinline)) void reach_emit(struct warp *w, const struct xop *x,
	uint32_t lanes, unsigned mode, unsigned bytes, struct reach *r)
{
	uint32_t order = x->o[MX_ORDER];
	struct event e;

	while (r->far && r->space == SP_ANY && lanes) {
		const struct xplace *p = &r->place[__builtin_ctz(lanes)];
		struct reach part = *r;
		uint32_t same = 0;

		for EACH_LANE(l, lanes)
			if (r->place[l].space == p->space && r->place[l].cta == p->cta)
				same |= 1u << l;
		part.space = p->space;
		part.cta = p->cta;
		reach_emit(w, x, same, mode, bytes, &part);
		lanes &= ~same;
	}
	if (!lanes || (r->space != SP_SHARED && !(r->space == SP_GLOBAL && w->sink->want_global)))
		return;
	e = ex_event(w, x, EV_ACCESS, lanes);
	e.space = (uint8_t)r->space;
	e.mode = (uint8_t)mode;
	e.sem = (uint8_t)order;
	e.scope = (uint8_t)(order >> 8);
	e.flags = (uint8_t)(order >> 16);
	e.size = bytes;
	if (r->cta)
		e.peer = (uint16_t)r->cta->rank;
	if (r->affine && r->stride == (int32_t)r->stride) {
		e.addr = r->off[0];
		e.stride = (int32_t)r->stride;
	} else {
		ex_event_addr(&e, lanes, r->off);
	}
	ex_emit(w->cluster, &e);
}

#endif
