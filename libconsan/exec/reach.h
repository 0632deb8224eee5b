/* reach: checks the addresses of one memory op for all its lanes at once. For the SIMD files that
 * access memory. The usual cases (all lanes in one space and one allocation) are vector loops.
 * Everything else goes lane by lane through ex_resolve(), which also words the fault. */
#ifndef CONSAN_EXEC_REACH_H
#define CONSAN_EXEC_REACH_H

#include "internal.h"
#include "simd.h"
#include "vec.h"

#define REACH_INLINE static inline __attribute__((always_inline))

/* xop.o of every memory op */
enum { MX_ADDR = 4, MX_IMM, MX_FORM, MX_ORDER };

/* o[MX_FORM]: size of an element, number of elements, bytes of the register. FORM_WHOLE: they are
 * parts of one element (b128). */
#define FORM_WHOLE (1u << 25)
#define FORM(size, vec, reg, sext) \
	((uint32_t)(size) | (uint32_t)(vec) << 8 | (uint32_t)(reg) << 16 | (uint32_t)(sext) << 24)
#define FORM_SIZE(f) ((f) & 255)
#define FORM_VEC(f) ((f) >> 8 & 255)
#define FORM_REG(f) ((f) >> 16 & 255)
#define FORM_SEXT(f) ((f) >> 24 & 1)
/* The bytes that are accessed at once */
#define FORM_ATOM(f) ((f) & FORM_WHOLE ? FORM_SIZE(f) * FORM_VEC(f) : FORM_SIZE(f))
/* o[MX_ORDER]: ev_sem, ev_scope, event flags, whether a load counts as a poll */
#define ORDER(sem, scope, flags, poll) \
	((uint32_t)(sem) | (uint32_t)(scope) << 8 | (uint32_t)(flags) << 16 \
		| (uint32_t)(poll) << 24)
#define ORDER_FLAG (1u << 25) /* a strong load that polls a flag (ptx/flag.h) */

struct reach {
	uintptr_t base;          /* lane l's bytes are at base + off[l]; 0: offsets are addresses */
	bool mixed;              /* in mixed spaces they are at place[l].host */
	bool narrow;             /* the offsets are in off32 */
	bool affine;             /* off[l] = first + l * stride for the active lanes */
	int32_t stride;
	uint64_t first;          /* offset of lane 0, active or not */
	enum ev_space space;
	struct cta *cta;         /* SP_SHARED: the CTA that owns it */
	uint32_t off32[LANES] __attribute__((aligned(64)));
	uint64_t off[LANES] __attribute__((aligned(64)));
	struct xplace place[LANES]; /* if mixed */
};

/* Determines whether the offsets are affine; their values are in off or off32. */
REACH_INLINE void reach_stride32(struct reach *r, uint32_t lanes, struct v32 a, const l32 *reg,
	uint32_t add)
{
	unsigned f = (unsigned)__builtin_ctz(lanes);
	uint32_t stride = lanes >> f & 2 ? reg[f + 1] - reg[f] : 0;
	uint32_t first = reg[f] + add - f * stride;

	r->affine = !(v32_unlike(a, first, stride) & lanes);
	r->stride = (int32_t)stride;
	r->first = (uint64_t)(int64_t)(int32_t)first; /* lane 0 may be inactive: its offset may
							 be negative */
	r->narrow = true;
	v32_store(r->off32, a);
}

REACH_INLINE void reach_stride64(struct reach *r, uint32_t lanes, struct v64 a)
{
	unsigned f = (unsigned)__builtin_ctz(lanes);
	int64_t stride;

	v64_store(r->off, a);
	stride = lanes >> f & 2 ? (int64_t)(r->off[f + 1] - r->off[f]) : 0;
	r->stride = (int32_t)stride;
	r->first = r->off[f] - (uint64_t)(stride * f);
	r->affine = stride == r->stride && !(v64_unlike(a, r->first, r->stride) & lanes);
	r->narrow = false;
}

REACH_INLINE struct v64 reach_load(const struct warp *w, const struct xop *x)
{
	uint32_t slot = x->o[MX_ADDR];
	uint64_t imm = (uint64_t)(int64_t)(int32_t)x->o[MX_IMM];

	return v64_add(slot & 1 ? v64_load(w->r + (slot & ~1u)) : v64_widen(w->r + slot), imm);
}

/* The slow path: each lane by itself. False: a fault was raised. */
static __attribute__((noinline)) bool reach_each(struct warp *w, const struct xop *x,
	uint32_t lanes, enum ptx_space space, unsigned bytes, unsigned align, bool write,
	struct reach *r)
{
	struct xaddr a = { x->o[MX_ADDR], (int32_t)x->o[MX_IMM] };

	r->mixed = true;
	r->base = 0;
	r->affine = false;
	r->narrow = false;
	r->first = 0;
	for EACH_LANE(l, lanes)
		if (!ex_resolve(w, x, 1u << l, space, ex_addr(w, a, l), bytes, align, write,
				&r->place[l]))
			return false;
	const struct xplace p = r->place[__builtin_ctz(lanes)];
	r->space = p.space;
	r->cta = p.cta;
	for EACH_LANE(k, lanes) {
		if (r->place[k].space != p.space || r->place[k].cta != p.cta)
			r->space = SP_ANY;
		r->off[k] = r->place[k].addr;
	}
	/* all in one place after all: in shared memory, of this CTA or of another one */
	if (r->space == SP_SHARED) {
		r->mixed = false;
		r->base = (uintptr_t)p.host - p.addr;
	}
	return true;
}

REACH_INLINE void reach_is_shared(struct warp *w, struct reach *r)
{
	r->base = (uintptr_t)w->cta->shared;
	r->mixed = false;
	r->space = SP_SHARED;
	r->cta = w->cta;
}

REACH_INLINE bool reach_shared(struct warp *w, const struct xop *x, uint32_t lanes,
	unsigned bytes, unsigned align, bool write, struct reach *r)
{
	uint32_t limit = w->cta->shared_bytes;

	if (__builtin_expect(bytes > limit, 0))
		return reach_each(w, x, lanes, PS_shared, bytes, align, write, r);
	if (x->o[MX_ADDR] & 1) {
		struct v64 a = v64_add(reach_load(w, x), 0 - ((uint64_t)w->cta->rank << 24));

		if (__builtin_expect((v64_above(a, limit - bytes) | v64_bits(a, align - 1)) & lanes,
				0))
			return reach_each(w, x, lanes, PS_shared, bytes, align, write, r);
		reach_stride64(r, lanes, a);
	} else {
		uint32_t add = x->o[MX_IMM] - (w->cta->rank << 24);
		const l32 *reg = (const l32 *)(w->r + x->o[MX_ADDR]);
		struct v32 a = v32_add(v32_load(reg), add);

		if (__builtin_expect((v32_above(a, limit - bytes) | v32_bits(a, align - 1)) & lanes,
				0))
			return reach_each(w, x, lanes, PS_shared, bytes, align, write, r);
		reach_stride32(r, lanes, a, reg, add);
	}
	reach_is_shared(w, r);
	return true;
}

REACH_INLINE bool reach_global(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned bytes, unsigned align, bool write, struct v64 a,
	struct reach *r)
{
	struct exec_range *h = &w->worker->hint[(x - w->code) & 255];
	unsigned f = (unsigned)__builtin_ctz(lanes);
	struct v64 in;

	reach_stride64(r, lanes, a);
	if (__builtin_expect(r->off[f] - h->lo >= h->hi - h->lo, 0)
			&& !mem_find(w->worker->grid, r->off[f], h)) {
		*h = (struct exec_range){ 0, 0, false };
		return reach_each(w, x, lanes, space, bytes, align, write, r);
	}
	if (__builtin_expect(write && h->read_only, 0))
		mem_may_write(w->worker->grid, h);
	in = v64_add(a, 0 - h->lo);
	if (__builtin_expect(h->hi - h->lo < bytes || (write && h->read_only)
		|| ((v64_above(in, h->hi - h->lo - bytes) | v64_bits(a, align - 1)) & lanes), 0))
		return reach_each(w, x, lanes, space, bytes, align, write, r);
	r->base = 0;
	r->mixed = false;
	r->space = space == PS_const ? SP_CONST : SP_GLOBAL;
	r->cta = NULL;
	return true;
}

REACH_INLINE bool reach_local(struct warp *w, const struct xop *x, uint32_t lanes,
	unsigned bytes, unsigned align, bool write, struct reach *r)
{
	uint32_t limit = w->worker->grid->k->local_stack;
	struct v64 a = reach_load(w, x);

	if (bytes > limit || ((v64_above(a, limit - bytes) | v64_bits(a, align - 1)) & lanes))
		return reach_each(w, x, lanes, PS_local, bytes, align, write, r);
	reach_stride64(r, lanes, v64_sum(a, v64_iota((int32_t)limit)));
	r->base = (uintptr_t)w->local;
	r->mixed = false;
	r->space = SP_LOCAL;
	r->cta = NULL;
	return true;
}

/* space is a constant in each instance. False: return STEP_FAULT. */
REACH_INLINE bool reach(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned bytes, unsigned align, bool write, struct reach *r)
{
	struct v64 a;

	if (space == PS_shared)
		return reach_shared(w, x, lanes, bytes, align, write, r);
	if (space == PS_local)
		return reach_local(w, x, lanes, bytes, align, write, r);
	if (space == PS_shared_cluster || space == PS_param)
		return reach_each(w, x, lanes, space, bytes, align, write, r);
	a = reach_load(w, x);
	if (space == PS_none) {
		struct v64 own = v64_add(a, 0 - ex_shared_window - ((uint64_t)w->cta->rank << 24));
		uint32_t limit = w->cta->shared_bytes;
		uint64_t span = ex_param_window + PARAM_WINDOW_BYTES - ex_shared_window;

		if (limit >= bytes && !((v64_above(own, limit - bytes)
				| v64_bits(a, align - 1)) & lanes)) {
			reach_stride64(r, lanes, own);
			reach_is_shared(w, r);
			return true;
		}
		if (~v64_above(v64_add(a, 0 - ex_shared_window), span - 1) & lanes)
			return reach_each(w, x, lanes, PS_none, bytes, align, write, r);
	}
	return reach_global(w, x, lanes, space, bytes, align, write, a, r);
}

REACH_INLINE uint64_t reach_off(const struct reach *r, unsigned l)
{
	return r->narrow ? r->off32[l] : r->off[l];
}

/* The bytes at an offset, in a space that is not mixed */
REACH_INLINE unsigned char *reach_bytes(const struct reach *r, uint64_t off)
{
	return (unsigned char *)(r->base + off);
}

REACH_INLINE unsigned char *reach_at(const struct reach *r, unsigned l)
{
	return r->mixed ? r->place[l].host : reach_bytes(r, reach_off(r, l));
}

/* The places in global memory that the lanes access, one bit each: 16 bytes, hashed by their offset
 * in the allocation. So the schedule does not depend on where memory lies. */
static __attribute__((noinline)) uint64_t reach_places(const struct warp *w, const struct xop *x,
	uint32_t lanes, const struct reach *r)
{
	struct exec_range in = w->worker->hint[(x - w->code) & 255];
	uint64_t places = 0;

	for EACH_LANE(l, lanes) {
		uint64_t addr = r->mixed ? r->place[l].addr : reach_off(r, l);

		if (r->mixed && r->place[l].space != SP_GLOBAL)
			continue;
		if (addr - in.lo >= in.hi - in.lo && !mem_lookup(w->worker->grid->device, addr, &in))
			in.lo = 0;
		places |= sched_place(addr - in.lo);
	}
	return places;
}

static __attribute__((noinline)) uint64_t reach_stripes(const struct reach *r, uint32_t lanes)
{
	uint64_t stripes = 0;

	for EACH_LANE(l, lanes)
		if (!r->mixed || r->place[l].space == SP_GLOBAL)
			stripes |= mem_stripe(r->mixed ? r->place[l].addr : reach_off(r, l));
	mem_lock(stripes);
	return stripes;
}

/* Called before a strong access. It may be a point of the schedule: false means return STEP_PARK.
 * An access to global memory in a kernel whose clusters are not coupled is one atomic step with its
 * event with respect to other workers; else the checker would see another order than memory did.
 * *held is for reach_end(). */
REACH_INLINE bool reach_begin(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	const struct reach *r, uint64_t *held)
{
	const struct grid *g = w->worker->grid;

	*held = 0;
	if (!(x->o[MX_ORDER] & 255))
		return true;
	if (!r->mixed && r->space == SP_SHARED)
		return mode == MODE_READ || sched_shared_change(w);
	if (!r->mixed && r->space != SP_GLOBAL)
		return true;
	if (g->coupled) {
		*held = reach_places(w, x, lanes, r);
		return !*held || sched_point(w, x->site, *held, mode);
	}
	if (w->sink && w->sink->want_global && g->jobs > 1)
		*held = reach_stripes(r, lanes);
	return true;
}

/* changed: the access has changed memory. */
REACH_INLINE void reach_end(struct warp *w, uint64_t held, bool changed)
{
	if (!held)
		return;
	if (!w->worker->grid->coupled)
		mem_unlock(held);
	else if (changed)
		sched_changed(w, held);
}

/* Emits one access. held: the schedule may hold it back. The event is initialized as a whole: a word
 * that is read after its bytes were written one by one stalls the processor. */
REACH_INLINE void reach_event(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	unsigned bytes, unsigned element, uint32_t lost, enum ev_space space, unsigned owner,
	bool held, struct ev_lanes at)
{
	const uint32_t order = x->o[MX_ORDER];
	const bool follow = mode == MODE_READ && space == SP_SHARED && !held;
	struct event e = ex_event(w, x, EV_ACCESS, lanes);

	e.access.at = at;
	e.access.bytes = bytes;
	e.access.element_bytes = element;
	e.access.overwritten = lost;
	e.access.unwritten = follow ? &w->unwritten : NULL;
	e.access.stored = mode == MODE_WRITE ? w->stored : NULL;
	e.access.owner = (uint16_t)owner;
	e.access.space = space;
	e.access.mode = (enum ev_mode)mode;
	e.access.sem = (enum ev_sem)(uint8_t)order;
	e.access.scope = (enum ev_scope)(uint8_t)(order >> 8);
	e.access.flags = (enum ev_access_flags)(uint8_t)(order >> 16 | (follow ? ACCESS_FOLLOWED : 0));
	if (held) {
		sched_load(w, &e);
		return;
	}
	ex_emit(w->cluster, &e);
	if (__builtin_expect(w->unwritten != 0, 0))
		follow_begin(w, x, &e.access);
}

/* Emits the access as one event, or one for each space and CTA that lanes access. element: the
 * bytes that are atomic. lost: lanes whose value another lane of the same store overwrites. */
static __attribute__((noinline)) void reach_emit(struct warp *w, const struct xop *x,
	uint32_t lanes, unsigned mode, unsigned bytes, unsigned element, uint32_t lost,
	struct reach *r)
{
	const uint32_t order = x->o[MX_ORDER];
	struct ev_lanes at = { 0 };
	bool held;

	while (r->mixed && r->space == SP_ANY && lanes) {
		const struct xplace *p = &r->place[__builtin_ctz(lanes)];
		struct reach part = *r;
		uint32_t same = 0;

		for EACH_LANE(l, lanes)
			if (r->place[l].space == p->space && r->place[l].cta == p->cta)
				same |= 1u << l;
		part.space = p->space;
		part.cta = p->cta;
		reach_emit(w, x, same, mode, bytes, element, lost, &part);
		lanes &= ~same;
	}
	if (!lanes || (r->space != SP_SHARED && !(r->space == SP_GLOBAL && w->sink->want_global)))
		return;
	if (r->affine) {
		at.base = r->first;
		at.stride = r->stride;
	} else {
		for (unsigned l = 0; r->narrow && l < LANES; l++)
			r->off[l] = r->off32[l];
		if (lanes == FULL && !r->mixed) {
			at.base = r->off[0];
			at.lane = r->off;
		} else {
			ex_lanes(&at, lanes, r->off);
		}
	}
	held = mode == MODE_READ && (uint8_t)order != SEM_WEAK && !r->mixed && (r->space == SP_GLOBAL
		? w->worker->grid->coupled : w->worker->grid->polls_shared && order & ORDER_FLAG);
	reach_event(w, x, lanes, mode, bytes, element, lost & lanes, r->space,
		r->cta ? r->cta->rank : w->cta->rank, held, at);
}

/* An ordinary st: do all lanes name multicast addresses, and its execution then (multimem.c). src: the slots of
 * the stored registers. */
bool SIMD_NAME(multimem_stores)(struct warp *w, const struct xop *x, uint32_t lanes);
enum step SIMD_NAME(multimem_st)(struct warp *w, const struct xop *x, uint32_t lanes,
	const uint32_t *src);

#endif
