/* mem_lane: ld, ldu and st of all spaces. Addresses are checked by reach.h; the bytes move here.
 * Contiguous and uniform accesses of a full warp are block copies and broadcasts, all others go
 * lane by lane in lane order. */
#include "reads.h"
#include "row.h"

/* Loads element v of `vec`, each of `size` bytes, for all lanes. */
REACH_INLINE void load_lanes(const struct reach *r, uint32_t lanes, unsigned size, unsigned vec,
	unsigned v, void *to)
{
	unsigned at = v * size;
#define LOAD(T) do { \
	T *d = to; \
	if (lanes == FULL && r->affine \
		&& load_row_##T(reach_bytes(r, r->first), r->stride, vec, v, d)) { \
		load_row_##T(reach_bytes(r, r->first + (uint64_t)(HALF * (int64_t)r->stride)), \
			r->stride, vec, v, d + HALF); \
	} else if (lanes == FULL && !r->mixed) { \
		for (unsigned l = 0; l < LANES; l++) \
			d[l] = *(const T *)reach_bytes(r, reach_off(r, l) + at); \
	} else if (r->affine && !r->stride) { \
		const T one = *(const T *)reach_bytes(r, r->first + at); \
		for EACH_LANE(l, lanes) \
			d[l] = one; \
	} else { \
		for EACH_LANE(l, lanes) \
			d[l] = *(const T *)(reach_at(r, l) + at); \
	} } while (0)
	if (size == 1)
		LOAD(l8);
	else if (size == 2)
		LOAD(l16);
	else if (size == 4)
		LOAD(l32);
	else
		LOAD(l64);
#undef LOAD
}

/* Widens n elements of `size` in t to a register of `reg` bytes per lane. */
static __attribute__((noinline)) void widen(const void *t, unsigned size, bool sext, unsigned reg,
	uint32_t lanes, unsigned char *to)
{
	for EACH_LANE(l, lanes) {
		uint64_t v = 0;

		memcpy(&v, (const unsigned char *)t + l * size, size);
		if (sext && size < 8 && v >> (8 * size - 1) & 1)
			v |= ~0ull << (8 * size);
		memcpy(to + l * reg, &v, reg);
	}
}

/* The lanes that read an older value, in the executor's reads */
static __attribute__((noinline)) uint32_t old_lanes(struct warp *w, const struct xop *x,
	uint32_t lanes, const struct reach *r, unsigned size, unsigned vec)
{
	const uint32_t order = x->o[MX_ORDER];
	uint64_t addr[LANES];
	uint32_t known = 0;

	for EACH_LANE(l, lanes) {
		const enum ev_space space = r->mixed ? r->place[l].space : r->space;

		addr[l] = (uintptr_t)reach_at(r, l);
		known |= (uint32_t)(space == SP_GLOBAL || space == SP_SHARED) << l;
	}
	return reads_load(w, known, addr, size, vec, (enum ev_sem)(uint8_t)order,
		(enum ev_scope)(uint8_t)(order >> 8));
}

static __attribute__((noinline)) void emit_load(struct warp *w, const struct xop *x,
	uint32_t lanes, uint32_t old, unsigned bytes, unsigned element, struct reach *r)
{
	struct xop of_old = *x;

	of_old.o[MX_ORDER] |= ORDER(0, 0, ACCESS_STALE, 0);
	reach_emit(w, &of_old, old, MODE_READ, bytes, element, 0, r);
	if (lanes & ~old)
		reach_emit(w, x, lanes & ~old, MODE_READ, bytes, element, 0, r);
}

static __attribute__((noinline)) void load_old(struct warp *w, uint32_t old, uint32_t form,
	const uint32_t *dst)
{
	const unsigned size = FORM_SIZE(form);
	unsigned char t[8 * LANES];

	for (unsigned e = 0; e < FORM_VEC(form); e++) {
		for EACH_LANE(l, old) {
			const uint64_t v = reads_value(w, l, e);

			memcpy(t + l * size, &v, size);
		}
		widen(t, size, FORM_SEXT(form), FORM_REG(form), old, w->r + dst[e]);
	}
}

REACH_INLINE enum step load(struct warp *w, const struct xop *x,
	uint32_t lanes, enum ptx_space space, unsigned size)
{
	uint32_t form = x->o[MX_FORM];
	unsigned vec = FORM_VEC(form), reg = FORM_REG(form);
	const uint32_t *dst = vec > 4 ? x->i.p : x->o;
	uint32_t old = 0;
	struct reach r;
	uint64_t held;

	if (!reach(w, x, lanes, space, size * vec, size * vec, false, &r))
		return STEP_FAULT;
	if (!reach_begin(w, x, lanes, MODE_READ, &r, &held))
		return STEP_PARK;
	if (x->o[MX_ORDER] & 255 && __builtin_expect(w->cluster->reads != NULL, 0))
		old = old_lanes(w, x, lanes, &r, FORM_ATOM(form), form & FORM_WHOLE ? 1 : vec);
	if (old)
		emit_load(w, x, lanes, old, size * vec, FORM_ATOM(form), &r);
	else if (w->sink)
		reach_emit(w, x, lanes, MODE_READ, size * vec, FORM_ATOM(form), 0, &r);
	if (x->o[MX_ORDER] >> 24)
		ex_poll(w);
	for (unsigned v = 0; v < vec; v++) {
		unsigned char *d = w->r + dst[v];
		l64 t[LANES] __attribute__((aligned(64)));

		if (reg == size) {
			load_lanes(&r, lanes, size, vec, v, d);
			continue;
		}
		load_lanes(&r, lanes, size, vec, v, t);
		widen(t, size, FORM_SEXT(form), reg, lanes, d);
	}
	if (old)
		load_old(w, old, form, dst);
	reach_end(w, held, false);
	return STEP_NEXT;
}

REACH_INLINE void store_lanes(const struct reach *r, uint32_t lanes, unsigned size, unsigned at,
	const void *from)
{
#define STORE(T) do { \
	const T *s = from; \
	if (lanes == FULL && r->affine && r->stride == (int)sizeof(T)) { \
		memcpy(reach_bytes(r, r->first + at), s, LANES * sizeof(T)); \
	} else if (lanes == FULL && !r->mixed) { \
		for (unsigned l = 0; l < LANES; l++) \
			*(T *)reach_bytes(r, reach_off(r, l) + at) = s[l]; \
	} else { \
		for EACH_LANE(l, lanes) \
			*(T *)(reach_at(r, l) + at) = s[l]; \
	} } while (0)
	if (size == 1)
		STORE(l8);
	else if (size == 2)
		STORE(l16);
	else if (size == 4)
		STORE(l32);
	else
		STORE(l64);
#undef STORE
}

/* emit_map_write() for the lanes of a store */
static __attribute__((noinline)) void emit_map_writes(struct warp *w, const struct xop *x,
	uint32_t lanes, const struct reach *r)
{
	const unsigned char *last = NULL;

	for EACH_LANE(l, lanes) {
		const unsigned char *p = reach_at(r, l), *head = p - (uintptr_t)p % TENSORMAP_ALIGN;

		if (p - head >= TENSORMAP_HEAD || head == last
				|| (r->mixed && r->place[l].space != SP_GLOBAL))
			continue;
		if (emit_map_write(w, x, l, head))
			last = head;
	}
}

/* Can lanes of the store write the same bytes? */
REACH_INLINE bool may_collide(const struct reach *r, uint32_t lanes, int bytes)
{
	return lanes & (lanes - 1) && (!r->affine || (r->stride < bytes && r->stride > -bytes));
}

/* The lanes that find something else in memory than they store. */
static __attribute__((noinline)) uint32_t other_lanes(const struct warp *w, const struct reach *r,
	uint32_t lanes, const uint32_t *src, unsigned size, unsigned vec, unsigned reg)
{
	uint32_t lost = 0;

	for (unsigned v = 0; v < vec; v++)
		for EACH_LANE(l, lanes)
			if (memcmp(reach_at(r, l) + v * size, w->r + src[v] + l * reg, size))
				lost |= 1u << l;
	return lost;
}

static bool same_value(const struct warp *w, const uint32_t *src, unsigned size, unsigned vec,
	unsigned reg, unsigned a, unsigned b)
{
	for (unsigned v = 0; v < vec; v++)
		if (memcmp(w->r + src[v] + a * reg, w->r + src[v] + b * reg, size))
			return false;
	return true;
}

/* The lanes whose value the last lane with the same address will overwrite with another one. As
 * addresses are aligned, lanes with different ones have no bytes in common. */
static __attribute__((noinline)) uint32_t outdone_lanes(const struct warp *w, const struct reach *r,
	uint32_t lanes, const uint32_t *src, unsigned size, unsigned vec, unsigned reg)
{
	enum { PLACES = 128 };
	uint64_t used[PLACES / 64] = { 0 };
	uint8_t last[PLACES];
	uint32_t lost = 0;

	for (uint32_t rest = lanes; rest;) {
		const unsigned l = 31 - (unsigned)__builtin_clz(rest);
		const unsigned char *at = reach_at(r, l);
		unsigned i = (unsigned)((uintptr_t)at * 0x9e3779b97f4a7c15ull >> 57);

		while (used[i / 64] >> i % 64 & 1 && reach_at(r, last[i]) != at)
			i = (i + 1) % PLACES;
		if (!(used[i / 64] >> i % 64 & 1))
			last[i] = (uint8_t)l;
		used[i / 64] |= 1ull << i % 64;
		if (last[i] != l && !same_value(w, src, size, vec, reg, l, last[i]))
			lost |= 1u << l;
		rest &= ~(1u << l);
	}
	return lost;
}

/* A strong store that stores what is there, in a kernel that polls: what others find does not change, and
 * a loop that repeats it only waits. */
static bool is_silent(const struct warp *w, const struct xop *x, const struct reach *r, uint32_t lanes,
	const uint32_t *src, unsigned size, unsigned vec, unsigned reg)
{
	return x->o[MX_ORDER] & 255 && w->worker->grid->k->info.polls && !w->worker->reads
		&& !other_lanes(w, r, lanes, src, size, vec, reg);
}

/* What a store changes: known only if it is asked for before the lanes store. */
struct stored {
	struct ev_stored s;      /* first member */
	const struct warp *w;
	const struct reach *r;
	const uint32_t *src;
	uint32_t lanes;
	unsigned size, vec, reg;
};

static uint32_t unchanged_before(const struct ev_stored *s)
{
	const struct stored *x = (const struct stored *)s;

	return x->lanes & ~other_lanes(x->w, x->r, x->lanes, x->src, x->size, x->vec, x->reg);
}

REACH_INLINE enum step store(struct warp *w, const struct xop *x,
	uint32_t lanes, enum ptx_space space, unsigned size)
{
	uint32_t form = x->o[MX_FORM];
	unsigned vec = FORM_VEC(form), reg = FORM_REG(form);
	const uint32_t *src = vec > 4 ? x->i.p : x->o;
	struct reach r;
	uint64_t held;
	bool collide, shared, silent;
	struct stored stored;

	if ((space == PS_global || space == PS_none)
			&& __builtin_expect(atomic_load_explicit(&mem_multicasts, memory_order_relaxed), 0)
			&& SIMD_NAME(multimem_stores)(w, x, lanes))
		return SIMD_NAME(multimem_st)(w, x, lanes, src);
	if (!reach(w, x, lanes, space, size * vec, size * vec, true, &r))
		return STEP_FAULT;
	if (!reach_begin(w, x, lanes, MODE_WRITE, &r, &held))
		return STEP_PARK;
	collide = w->sink && may_collide(&r, lanes, (int)(size * vec));
	shared = !r.mixed && r.space == SP_SHARED;
	silent = shared && is_silent(w, x, &r, lanes, src, size, vec, reg);
	if (w->sink) {
		stored = (struct stored){ { unchanged_before }, w, &r, src, lanes, size, vec, reg };
		w->stored = &stored.s;
	}
	if (w->sink)
		reach_emit(w, x, lanes, MODE_WRITE, size * vec, FORM_ATOM(form), collide && r.space != SP_LOCAL
			&& (shared || w->sink->want_global) ? outdone_lanes(w, &r, lanes, src, size, vec, reg) : 0,
			&r);
	for (unsigned v = 0; v < vec; v++) {
		const unsigned char *s = w->r + src[v];
		unsigned char t[8 * LANES] __attribute__((aligned(64)));

		if (reg != size) {
			for (unsigned l = 0; l < LANES; l++)
				memcpy(t + l * size, s + l * reg, size);
			s = t;
		}
		store_lanes(&r, lanes, size, v * size, s);
	}
	w->stored = NULL;
	reach_end(w, held, true);
	if (w->sink && r.space != SP_SHARED && r.space != SP_LOCAL)
		emit_map_writes(w, x, lanes, &r);
	if (!silent)
		ex_work(w);
	return STEP_NEXT;
}

#define EACH_FORM(M) \
	M(shared, PS_shared, 1) M(shared, PS_shared, 2) \
	M(shared, PS_shared, 4) M(shared, PS_shared, 8) \
	M(global, PS_global, 1) M(global, PS_global, 2) \
	M(global, PS_global, 4) M(global, PS_global, 8) \
	M(generic, PS_none, 1) M(generic, PS_none, 2) \
	M(generic, PS_none, 4) M(generic, PS_none, 8) \
	M(local, PS_local, 1) M(local, PS_local, 2) M(local, PS_local, 4) M(local, PS_local, 8) \
	M(dsmem, PS_shared_cluster, 1) M(dsmem, PS_shared_cluster, 2) \
	M(dsmem, PS_shared_cluster, 4) M(dsmem, PS_shared_cluster, 8) \
	M(param, PS_param, 1) M(param, PS_param, 2) M(param, PS_param, 4) M(param, PS_param, 8)
#define LD(name, space, size) \
static enum step ld_##name##_##size(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return load(w, x, lanes, space, size); \
}
#define ST(name, space, size) \
static enum step st_##name##_##size(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return store(w, x, lanes, space, size); \
}
EACH_FORM(LD)
EACH_FORM(ST)
#undef LD
#undef ST

#define EACH_PLAIN(M) \
	PLAIN_SIZES(M, shared, PS_shared, 1) PLAIN_SIZES(M, shared, PS_shared, 2) \
	PLAIN_SIZES(M, shared, PS_shared, 4) PLAIN_SIZES(M, global, PS_global, 1) \
	PLAIN_SIZES(M, global, PS_global, 2) PLAIN_SIZES(M, global, PS_global, 4) \
	PLAIN_SIZES(M, generic, PS_none, 1) PLAIN_SIZES(M, generic, PS_none, 2) \
	PLAIN_SIZES(M, generic, PS_none, 4)
#define PLAIN_SIZES(M, name, space, vec) \
	M(name, space, 1, vec) M(name, space, 2, vec) M(name, space, 4, vec) M(name, space, 8, vec)
#define LD(name, space, size, vec) \
static enum step ld_v##vec##_##name##_##size(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return load_plain(w, x, lanes, space, size, vec) ? STEP_NEXT : ld_##name##_##size(w, x, lanes); \
}
#define ST(name, space, size, vec) \
static enum step st_v##vec##_##name##_##size(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return store_plain(w, x, lanes, space, size, vec) ? STEP_NEXT : st_##name##_##size(w, x, lanes); \
}
EACH_PLAIN(LD)
EACH_PLAIN(ST)
#undef LD
#undef ST

/* const: as global, without events */
#define LD(size) \
static enum step ld_const_##size(struct warp *w, const struct xop *x, uint32_t lanes) \
{ \
	return load(w, x, lanes, PS_const, size); \
}
LD(1) LD(2) LD(4) LD(8)
#undef LD

/* Entry parameters at a constant offset: i.u, the same for all lanes. */
static enum step ld_entry_param(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t form = x->o[MX_FORM];
	unsigned size = FORM_SIZE(form), reg = FORM_REG(form);
	const unsigned char *at = (const unsigned char *)w->worker->grid->l->params + x->i.u;

	for (unsigned v = 0; v < FORM_VEC(form); v++) {
		uint64_t b = 0;

		memcpy(&b, at + v * size, size);
		if (FORM_SEXT(form) && size < 8 && b >> (8 * size - 1) & 1)
			b |= ~0ull << (8 * size);
		if (reg == 2) {
			for EACH_LANE(l, lanes)
				r16(w, x->o[v])[l] = (uint16_t)b;
		} else if (reg == 4) {
			for EACH_LANE(l, lanes)
				r32(w, x->o[v])[l] = (uint32_t)b;
		} else {
			for EACH_LANE(l, lanes)
				r64(w, x->o[v])[l] = b;
		}
	}
	return STEP_NEXT;
}

/* ---- decoding ---- */

/* Decodes the value operand: slots, element size, vector length, register width. */
static bool values(struct decoder *d, const struct ptx_insn *i, const struct ptx_operand *o,
	bool dst, struct xop *x)
{
	enum ptx_type t = ptx_type_of(i, 0);
	unsigned size = ptx_type_bits(t) / 8, vec = o->kind == PO_VEC ? o->n : 1, reg;
	uint32_t *slots = x->o;

	if (size == 16 && vec == 1) {
		/* b128: two halves */
		x->o[0] = dst ? dec_dst(d, o, t) : dec_src(d, o, t);
		x->o[1] = x->o[0] + 256;
		x->o[MX_FORM] = FORM(8, 2, 8, 0) | FORM_WHOLE;
		return true;
	}
	if (!size || size > 8 || (vec & (vec - 1)) || vec > 16 || size * vec > 32)
		return dec_unsupported(d, "memory access of %u elements of %u bytes", vec, size);
	if (vec > 4) {
		slots = dec_alloc(d, vec * sizeof *slots);
		x->i.p = slots;
	}
	if (!dec_elements(d, o, t, dst, slots, &reg))
		return false;
	x->o[MX_FORM] = FORM(size, vec, reg, ptx_type_class(t) == 's');
	return true;
}

static bool body_param(const struct decoder *d, const struct ptx_operand *a)
{
	const struct ptx_func *f = d->k->func;

	return a->var && a->var->space == PS_param &&
		!(f->nparam && a->var >= f->param && a->var < f->param + f->nparam);
}

static void order(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool load)
{
	enum ev_sem sem = ptx_sem_of(i, SEM_WEAK);
	enum ev_scope scope = ptx_scope_of(i, SCOPE_NONE);
	unsigned flags = ptx_has(i, MOD_nc) ? ACCESS_NONCOHERENT : 0;
	bool poll = load && (sem != SEM_WEAK || ptx_has(i, MOD_cv) || ptx_has(i, MOD_cg));
	bool flag = load && sem != SEM_WEAK && ptx_reads_flag(d->fn->f, i);

	if (sem == SEM_VOLATILE || sem == SEM_MMIO)
		scope = SCOPE_SYS; /* rule A04 */
	if (sem == SEM_VOLATILE && flag)
		flags |= ACCESS_FLAG;
	x->o[MX_ORDER] = ORDER(sem, scope, flags, poll) | (flag ? ORDER_FLAG : 0);
}

/* The number of registers of a weak access, if they are as wide as the elements; or 0. */
static unsigned plain_registers(const struct xop *x)
{
	const uint32_t form = x->o[MX_FORM], vec = FORM_VEC(form);
	const bool plain = (uint8_t)x->o[MX_ORDER] == SEM_WEAK && !(x->o[MX_ORDER] >> 24)
		&& FORM_REG(form) == FORM_SIZE(form);

	return plain && (vec == 1 || vec == 2 || vec == 4) ? vec : 0;
}

#define PICK(name, size) \
	((size) == 1 ? name##_1 : (size) == 2 ? name##_2 : (size) == 4 ? name##_4 : name##_8)
#define PICK_PLAIN(op, name, size, plain) \
	((plain) == 1 ? PICK(op##_v1_##name, size) : (plain) == 2 ? PICK(op##_v2_##name, size) \
		: (plain) == 4 ? PICK(op##_v4_##name, size) : PICK(op##_##name, size))

static bool decode_ld(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	const struct ptx_operand *a = &i->operand[1];
	enum ptx_space space = ptx_space_of(i, 0);
	struct xaddr at;
	unsigned size, plain;

	if (!values(d, i, &i->operand[0], true, x))
		return false;
	order(d, i, x, true);
	plain = plain_registers(x);
	size = FORM_SIZE(x->o[MX_FORM]);
	if (space == PS_param && a->var && a->kind == PO_ADDR && !body_param(d, a)
		&& FORM_VEC(x->o[MX_FORM]) <= 4) {
		uint64_t bytes = size * FORM_VEC(x->o[MX_FORM]);
		uint64_t from = a->var->offset + (uint64_t)a->imm;

		if (from + bytes > d->k->func->param_bytes)
			return dec_unsupported(d, "load beyond the kernel's parameters");
		x->fn = ld_entry_param;
		x->i.u = from;
		return true;
	}
	at = dec_addr(d, a);
	x->o[MX_ADDR] = at.slot;
	x->o[MX_IMM] = (uint32_t)at.imm;
	if (space == PS_param && a->kind == PO_ADDR && body_param(d, a))
		space = PS_local;
	switch (space) {
	case PS_shared: x->fn = PICK_PLAIN(ld, shared, size, plain); break;
	case PS_shared_cluster: x->fn = PICK(ld_dsmem, size); break;
	case PS_global: x->fn = PICK_PLAIN(ld, global, size, plain); break;
	case PS_const: x->fn = PICK(ld_const, size); break;
	case PS_local: x->fn = PICK(ld_local, size); break;
	case PS_param: x->fn = PICK(ld_param, size); break;
	case PS_none: case PS_reg: case PS_sreg:
		x->fn = PICK_PLAIN(ld, generic, size, plain);
		break;
	}
	return true;
}

DECODER(ld) { return decode_ld(d, i, x); }
DECODER(ldu) { return decode_ld(d, i, x); }

DECODER(st)
{
	const struct ptx_operand *a = &i->operand[0];
	enum ptx_space space = ptx_space_of(i, 0);
	struct xaddr at;
	unsigned size, plain;

	if (!values(d, i, &i->operand[1], false, x))
		return false;
	order(d, i, x, false);
	plain = plain_registers(x);
	size = FORM_SIZE(x->o[MX_FORM]);
	at = dec_addr(d, a);
	x->o[MX_ADDR] = at.slot;
	x->o[MX_IMM] = (uint32_t)at.imm;
	if (space == PS_param && a->kind == PO_ADDR && body_param(d, a))
		space = PS_local;
	switch (space) {
	case PS_shared: x->fn = PICK_PLAIN(st, shared, size, plain); break;
	case PS_shared_cluster: x->fn = PICK(st_dsmem, size); break;
	case PS_global: x->fn = PICK_PLAIN(st, global, size, plain); break;
	case PS_local: x->fn = PICK(st_local, size); break;
	case PS_param: x->fn = PICK(st_param, size); break;
	case PS_const: return dec_unsupported(d, "store to constant memory");
	case PS_none: case PS_reg: case PS_sreg:
		x->fn = PICK_PLAIN(st, generic, size, plain);
		break;
	}
	return true;
}
