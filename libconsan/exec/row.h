/* row: the usual accesses of ld and st, checked in a few instructions: each half of a full warp
 * accesses consecutive elements, or the same one, in memory that this op has accessed before. All else
 * goes through reach.h, which gives the same results and events. */
#ifndef CONSAN_EXEC_ROW_H
#define CONSAN_EXEC_ROW_H

#include "reach.h"
#include "tensormap.h"

enum { HALF = LANES / 2 };

struct row {
	unsigned char *host[2];  /* first lane of each half: its bytes */
	uint64_t addr[2];        /* and its address, as in events */
	int32_t stride;          /* of the lanes in a half: the bytes of an access, or 0 */
	enum ev_space space;
};

/* Bytes of a half */
REACH_INLINE uint32_t row_span(unsigned bytes, int32_t stride)
{
	return bytes + (HALF - 1) * (uint32_t)stride;
}

/* at: addresses in the CTA's window */
REACH_INLINE bool row_shared(struct warp *w, uint64_t at0, uint64_t at1, unsigned bytes,
	int32_t stride, struct row *r)
{
	const uint32_t limit = w->cta->shared_bytes, span = row_span(bytes, stride);

	if (limit < span || at0 > limit - span || at1 > limit - span || (at0 | at1) & (bytes - 1))
		return false;
	*r = (struct row){ { w->cta->shared + at0, w->cta->shared + at1 }, { at0, at1 }, stride,
		SP_SHARED };
	return true;
}

REACH_INLINE bool row_global(struct warp *w, const struct xop *x, uint64_t at0, uint64_t at1,
	enum ev_space space, unsigned bytes, int32_t stride, bool write, struct row *r)
{
	const struct exec_range *h = &w->worker->hint[(x - w->code) & 255];
	const uint64_t in = h->hi - h->lo, span = row_span(bytes, stride);

	if (in < span || at0 - h->lo > in - span || at1 - h->lo > in - span
			|| (at0 | at1) & (bytes - 1) || (write && h->read_only))
		return false;
	*r = (struct row){ { (unsigned char *)(uintptr_t)at0, (unsigned char *)(uintptr_t)at1 },
		{ at0, at1 }, stride, space };
	return true;
}

/* space is a constant in each instance; bytes is a power of two. False: nothing was done. */
REACH_INLINE bool row_find(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned bytes, bool write, struct row *r)
{
	const uint32_t slot = x->o[MX_ADDR], rank = w->cta->rank << 24;
	const uint64_t imm = (uint64_t)(int64_t)(int32_t)x->o[MX_IMM];

	if (lanes != FULL || !(slot & 1) != (space == PS_shared))
		return false;
	if (space == PS_shared) {
		const l32 *reg = r32(w, slot);
		const uint32_t at[2] = { reg[0], reg[HALF] }, stride = reg[1] - reg[0];

		return !(stride && stride != bytes) && row_shared(w, (uint32_t)(at[0] + imm - rank),
				(uint32_t)(at[1] + imm - rank), bytes, (int32_t)stride, r)
			&& !v32_unlike_halves(v32_load(reg), at, stride ? v32_half((int)bytes) : v32_half(0));
	}
	const l64 *reg = r64(w, slot & ~1u);
	const uint64_t at[2] = { reg[0], reg[HALF] }, stride = reg[1] - reg[0];

	if ((stride && stride != bytes) || v64_unlike_halves(v64_load(reg), at,
			stride ? v64_half((int)bytes) : v64_half(0)))
		return false;
	if (row_global(w, x, at[0] + imm, at[1] + imm, space == PS_const ? SP_CONST : SP_GLOBAL, bytes,
			(int32_t)stride, write, r))
		return true;
	return space == PS_none && row_shared(w, at[0] + imm - ex_shared_window - rank,
		at[1] + imm - ex_shared_window - rank, bytes, (int32_t)stride, r);
}

/* There is a sink. */
static __attribute__((noinline)) void row_emit(struct warp *w, const struct xop *x, unsigned mode,
	unsigned bytes, unsigned element, const struct row *r)
{
	uint64_t lane[LANES] __attribute__((aligned(64)));
	struct ev_lanes at = { .base = r->addr[0], .stride = r->stride };

	if (r->space != SP_SHARED && !(r->space == SP_GLOBAL && w->sink->want_global))
		return;
	if (r->addr[1] != r->addr[0] + (uint64_t)(HALF * (int64_t)r->stride)) {
		const uint64_t from[2] = { r->addr[0], r->addr[1] - (uint64_t)(HALF * (int64_t)r->stride) };

		v64_store(lane, v64_add_halves(v64_iota(r->stride), from));
		at.lane = lane;
		at.halves = true;
	}
	reach_event(w, x, FULL, mode, bytes, element, 0, r->space, w->cta->rank, false, at);
}

/* ---- loads ---- */

/* Loads element v of `vec` for a half, whose lanes are `stride` bytes apart. False: not from these.
 * Compilers store a repeated value one by one unless it is a vector. */
#define LOAD_ROW(T) \
typedef T T##_half __attribute__((vector_size(HALF * sizeof(T)), aligned(sizeof(T)), may_alias)); \
REACH_INLINE bool load_row_##T(const unsigned char *from, int32_t stride, unsigned vec, unsigned v, \
	T *d) \
{ \
	const T *s = (const T *)from; \
\
	if (!stride) { \
		*(T##_half *)d = (T##_half){ 0 } + s[v]; \
	} else if (stride == (int)sizeof(T)) { \
		memcpy(d, s + v, HALF * sizeof(T)); \
	} else if (vec == 2 && stride == 2 * (int)sizeof(T)) { \
		for (unsigned l = 0; l < HALF; l++) \
			d[l] = s[2 * l + v]; \
	} else if (vec == 4 && stride == 4 * (int)sizeof(T)) { \
		for (unsigned l = 0; l < HALF; l++) \
			d[l] = s[4 * l + v]; \
	} else { \
		return false; \
	} \
	return true; \
}
LOAD_ROW(l8)
LOAD_ROW(l16)
LOAD_ROW(l32)
LOAD_ROW(l64)
#define LOAD_HALVES(T) do { \
	T *d = (T *)(w->r + x->o[v]); \
	load_row_##T(r.host[0], r.stride, vec, v, d); \
	load_row_##T(r.host[1], r.stride, vec, v, d + HALF); } while (0)

/* A weak load of `vec` registers that are as wide as the elements. False: not done. */
REACH_INLINE bool load_plain(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned size, unsigned vec)
{
	struct row r;

	if (!row_find(w, x, lanes, space, size * vec, false, &r))
		return false;
	if (w->sink)
		row_emit(w, x, MODE_READ, size * vec, FORM_ATOM(x->o[MX_FORM]), &r);
	for (unsigned v = 0; v < vec; v++)
		if (size == 1)
			LOAD_HALVES(l8);
		else if (size == 2)
			LOAD_HALVES(l16);
		else if (size == 4)
			LOAD_HALVES(l32);
		else
			LOAD_HALVES(l64);
	return true;
}

/* ---- stores ---- */

/* Reports stores after which memory begins like a tensor map, as kernels copy maps with plain stores.
 * What is reported by mistake is no finding, as no tensor copy uses it. */
static bool emit_map_write(struct warp *w, const struct xop *x, unsigned lane,
	const unsigned char *head)
{
	uint64_t address;
	struct event e;

	if (!tensormap_begins(head, &address) || !ex_global_ok(w->worker, address, 1, false))
		return false;
	e = ex_event(w, x, EV_TENSOR_MAP, 1u << lane);
	e.tensor_map.mode = MODE_WRITE;
	e.tensor_map.addr = (uintptr_t)head;
	ex_emit(w->cluster, &e);
	return true;
}

/* The same for all lanes of a store. */
static __attribute__((noinline)) void emit_map_rows(struct warp *w, const struct xop *x,
	const struct row *r)
{
	for (unsigned k = 0; k < 2; k++) {
		const unsigned char *p = r->host[k], *end = p + HALF * r->stride;
		const unsigned char *head = p - (uintptr_t)p % TENSORMAP_ALIGN;

		if (p - head >= TENSORMAP_HEAD)
			head += TENSORMAP_ALIGN;
		for (; head < end; head += TENSORMAP_ALIGN)
			emit_map_write(w, x, HALF * k + (head > p ? (unsigned)((head - p) / r->stride) : 0),
				head);
	}
}

/* What a store changes */
struct stored_row {
	struct ev_stored s;      /* first member */
	const struct warp *w;
	const struct xop *x;
	const struct row *row;
	unsigned size, vec;
};

/* The lanes of a half that find something else than element v of `vec` */
#define OTHER_ROW(T) \
REACH_INLINE uint32_t other_row_##T(const unsigned char *at, unsigned vec, unsigned v, const T *s) \
{ \
	const T *d = (const T *)at; \
	uint32_t other = 0; \
\
	for (unsigned l = 0; l < HALF; l++) \
		other |= (uint32_t)(d[vec * l + v] != s[l]) << l; \
	return other; \
}
OTHER_ROW(l8)
OTHER_ROW(l16)
OTHER_ROW(l32)
OTHER_ROW(l64)
#define OTHER_HALVES(T) do { \
	const T *s = (const void *)(r->w->r + r->x->o[v]); \
	other |= other_row_##T(r->row->host[0], r->vec, v, s) \
		| other_row_##T(r->row->host[1], r->vec, v, s + HALF) << HALF; } while (0)

static uint32_t unchanged_row(const struct ev_stored *at)
{
	const struct stored_row *r = (const struct stored_row *)at;
	uint32_t other = 0;

	for (unsigned v = 0; v < r->vec; v++)
		if (r->size == 1)
			OTHER_HALVES(l8);
		else if (r->size == 2)
			OTHER_HALVES(l16);
		else if (r->size == 4)
			OTHER_HALVES(l32);
		else
			OTHER_HALVES(l64);
	return ~other;
}

#define STORE_ROW(T) \
REACH_INLINE void store_row_##T(unsigned char *to, unsigned vec, unsigned v, const T *s) \
{ \
	T *d = (T *)to; \
\
	if (vec == 1) \
		memcpy(d, s, HALF * sizeof(T)); \
	else if (vec == 2) \
		for (unsigned l = 0; l < HALF; l++) \
			d[2 * l + v] = s[l]; \
	else \
		for (unsigned l = 0; l < HALF; l++) \
			d[4 * l + v] = s[l]; \
}
STORE_ROW(l8)
STORE_ROW(l16)
STORE_ROW(l32)
STORE_ROW(l64)
#define STORE_HALVES(T) do { \
	const T *s = (const void *)(w->r + x->o[v]); \
	store_row_##T(r.host[0], vec, v, s); \
	store_row_##T(r.host[1], vec, v, s + HALF); } while (0)

/* A weak store of `vec` registers that are as wide as the elements. False: not done. */
REACH_INLINE bool store_plain(struct warp *w, const struct xop *x, uint32_t lanes,
	enum ptx_space space, unsigned size, unsigned vec)
{
	int64_t apart;
	struct row r;

	if (!row_find(w, x, lanes, space, size * vec, true, &r) || !r.stride)
		return false;
	apart = (int64_t)(r.addr[1] - r.addr[0]);
	if (apart < HALF * r.stride && -apart < HALF * r.stride)
		return false; /* lanes may store to the same bytes */
	if (w->sink) {
		struct stored_row stored = { { unchanged_row }, w, x, &r, size, vec };

		w->stored = &stored.s;
		row_emit(w, x, MODE_WRITE, size * vec, FORM_ATOM(x->o[MX_FORM]), &r);
		w->stored = NULL;
	}
	for (unsigned v = 0; v < vec; v++)
		if (size == 1)
			STORE_HALVES(l8);
		else if (size == 2)
			STORE_HALVES(l16);
		else if (size == 4)
			STORE_HALVES(l32);
		else
			STORE_HALVES(l64);
	if (w->sink && r.space == SP_GLOBAL)
		emit_map_rows(w, x, &r);
	ex_work(w);
	return true;
}

#endif
