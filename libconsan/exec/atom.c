/* atom: atom and red in all spaces. Lanes act one after the other, in lane order. Shared memory
 * belongs to one thread. Global memory is changed by compare-and-swap, because other workers may
 * access it. Packed and vector forms are atomic by element, as on hardware. */
#include "reach.h"

#include "num.h"

static inline uint16_t half_min(uint16_t a, uint16_t b, float x, float y)
{
	if (x != x || y != y)
		return x != x ? (y != y ? 0x7fff : b) : a;
	return x < y || (x == y && a >> 15) ? a : b;
}

static inline uint16_t half_max(uint16_t a, uint16_t b, float x, float y)
{
	if (x != x || y != y)
		return x != x ? (y != y ? 0x7fff : b) : a;
	return x > y || (x == y && b >> 15) ? a : b;
}

enum atom {
#define ATOM(id, T, result) AT_##id,
#include "atom.def"
#undef ATOM
	AT_COUNT
};

/* o[0] old value (or SLOT_NONE), o[1] b, o[2] c, o[3] space. Vectors: i.p holds an atom_list with
 * the slots of old and b for each element instead. */
#define SWAP(T, W, result) \
	W was = __atomic_load_n((W *)p, __ATOMIC_RELAXED), now; \
	do { \
		T n; \
		memcpy(&o, &was, sizeof o); \
		n = (T)(result); \
		memcpy(&now, &n, sizeof n); \
		if (now == was) \
			break; \
	} while (!__atomic_compare_exchange_n((W *)p, &was, now, true, \
		__ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
	changed |= now != was

/* One element of every lane, `at` bytes from the lane's address. */
#define ATOM(id, T, result) \
static bool run_##id(struct warp *w, uint32_t lanes, const struct reach *r, unsigned at, \
	const unsigned char *bs, const unsigned char *cs, unsigned width, unsigned char *ds, \
	bool exclusive) \
{ \
	bool changed = false; \
	(void)cs; \
	(void)w; \
	for EACH_LANE(l, lanes) { \
		unsigned char *p = reach_at(r, l) + at; \
		T o, b, c; \
		memcpy(&b, bs + l * width, sizeof b); \
		memcpy(&c, cs + l * width, sizeof c); \
		(void)b; \
		(void)c; \
		if (exclusive) { \
			T n; \
			memcpy(&o, p, sizeof o); \
			n = (T)(result); \
			changed |= memcmp(&n, &o, sizeof n) != 0; \
			memcpy(p, &n, sizeof n); \
		} else if (sizeof(T) == 8) { \
			SWAP(T, uint64_t, result); \
		} else if (sizeof(T) == 4) { \
			SWAP(T, uint32_t, result); \
		} else { \
			SWAP(T, uint16_t, result); \
		} \
		if (ds) \
			memcpy(ds + l * width, &o, sizeof o); \
	} \
	return changed; \
}
/* branches that are not taken copy between types of different size */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Warray-bounds"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"
#endif
#include "atom.def"
#pragma GCC diagnostic pop
#undef ATOM

static bool (*const run[AT_COUNT])(struct warp *, uint32_t, const struct reach *, unsigned,
	const unsigned char *, const unsigned char *, unsigned, unsigned char *, bool) = {
#define ATOM(id, T, result) run_##id,
#include "atom.def"
#undef ATOM
};

/* bytes of what each accesses */
static const uint8_t size_of[AT_COUNT] = {
#define ATOM(id, T, result) sizeof(T),
#include "atom.def"
#undef ATOM
};

static bool reach_any(struct warp *w, const struct xop *x, uint32_t lanes, unsigned space,
	unsigned bytes, struct reach *r)
{
	switch ((enum ptx_space)space) {
	case PS_shared:
		return reach(w, x, lanes, PS_shared, bytes, bytes, true, r);
	case PS_global:
		return reach(w, x, lanes, PS_global, bytes, bytes, true, r);
	case PS_shared_cluster:
		return reach(w, x, lanes, PS_shared_cluster, bytes, bytes, true, r);
	case PS_none: case PS_reg: case PS_sreg: case PS_const: case PS_local: case PS_param:
		break;
	}
	return reach(w, x, lanes, PS_none, bytes, bytes, true, r);
}

static bool in_own_memory(const struct warp *w, const struct reach *r)
{
	return r->space == SP_SHARED || r->space == SP_LOCAL || w->worker->grid->jobs == 1;
}

/* ISA, atom: "atom.add.f32 on global memory flushes subnormal inputs and results", not so on shared
 * memory. Generic addresses may be of both. */
static uint32_t flushing_lanes(unsigned kind, const struct reach *r, uint32_t lanes)
{
	uint32_t global = 0;

	if (kind != AT_addf32)
		return 0;
	if (!r->mixed)
		return r->space == SP_GLOBAL ? lanes : 0;
	for EACH_LANE(l, lanes)
		global |= (uint32_t)(r->place[l].space == SP_GLOBAL) << l;
	return global;
}

/* run[kind] for one element of every lane */
static bool run_lanes(struct warp *w, unsigned kind, uint32_t lanes, const struct reach *r,
	unsigned at, const unsigned char *bs, const unsigned char *cs, unsigned width,
	unsigned char *ds)
{
	uint32_t flushing = flushing_lanes(kind, r, lanes);
	bool exclusive = in_own_memory(w, r), changed = false;

	if (flushing)
		changed = run[AT_addf32_ftz](w, flushing, r, at, bs, cs, width, ds, exclusive);
	if (lanes & ~flushing)
		changed |= run[kind](w, lanes & ~flushing, r, at, bs, cs, width, ds, exclusive);
	return changed;
}

/* i.b: kind, elements in a register, bytes of an element, bytes of a register */
static enum step op_atom(struct warp *w, const struct xop *x, uint32_t lanes)
{
	unsigned kind = x->i.b[0], parts = x->i.b[1], size = x->i.b[2], reg = x->i.b[3];
	unsigned char *d = x->o[0] == SLOT_NONE ? NULL : w->r + x->o[0];
	struct reach r;
	uint64_t held;
	bool changed = false;

	if (!reach_any(w, x, lanes, x->o[3], parts * size, &r))
		return STEP_FAULT;
	if (!reach_begin(w, x, lanes, MODE_RMW, &r, &held))
		return STEP_PARK;
	if (w->sink)
		reach_emit(w, x, lanes, MODE_RMW, parts * size, size, 0, &r);
	for (unsigned p = 0; p < parts; p++)
		changed |= run_lanes(w, kind, lanes, &r, p * size, w->r + x->o[1] + p * size,
			w->r + x->o[2] + p * size, reg, d ? d + p * size : NULL);
	reach_end(w, held, changed);
	if (changed)
		ex_work(w);
	else
		ex_poll(w);
	return STEP_NEXT;
}

struct atom_list { uint32_t kind, parts, size, reg, n, d[16], b[16]; };

static enum step op_atom_vec(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct atom_list *v = x->i.p;
	struct reach r;
	uint64_t held;

	if (!reach_any(w, x, lanes, x->o[3], v->n * v->parts * v->size, &r))
		return STEP_FAULT;
	if (!reach_begin(w, x, lanes, MODE_RMW, &r, &held))
		return STEP_PARK;
	if (w->sink)
		reach_emit(w, x, lanes, MODE_RMW, v->n * v->parts * v->size, v->size, 0, &r);
	for (unsigned e = 0; e < v->n; e++)
		for (unsigned p = 0; p < v->parts; p++) {
			unsigned char *b = w->r + v->b[e] + p * v->size;

			run_lanes(w, v->kind, lanes, &r, (e * v->parts + p) * v->size, b, b, v->reg,
				v->d[e] == SLOT_NONE ? NULL : w->r + v->d[e] + p * v->size);
		}
	reach_end(w, held, true);
	ex_work(w);
	return STEP_NEXT;
}

/* 128 bits: exch and cas, under a lock */
static enum step op_atom128(struct warp *w, const struct xop *x, uint32_t lanes)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct reach r;
	uint64_t held;
	bool cas = x->i.u, changed = false;

	if (!reach_any(w, x, lanes, x->o[3], 16, &r))
		return STEP_FAULT;
	if (!reach_begin(w, x, lanes, MODE_RMW, &r, &held))
		return STEP_PARK;
	if (w->sink)
		reach_emit(w, x, lanes, MODE_RMW, 16, 16, 0, &r);
	pthread_mutex_lock(&lock);
	for EACH_LANE(l, lanes) {
		uint64_t o[2], b[2] = { r64(w, x->o[1])[l], r64(w, x->o[1])[LANES + l] };
		uint64_t c[2] = { r64(w, x->o[2])[l], r64(w, x->o[2])[LANES + l] };
		const uint64_t *n = cas ? c : b;

		memcpy(o, reach_at(&r, l), 16);
		if (!cas || !memcmp(o, b, 16)) {
			changed |= memcmp(o, n, 16) != 0;
			memcpy(reach_at(&r, l), n, 16);
		}
		if (x->o[0] != SLOT_NONE) {
			r64(w, x->o[0])[l] = o[0];
			r64(w, x->o[0])[LANES + l] = o[1];
		}
	}
	pthread_mutex_unlock(&lock);
	reach_end(w, held, changed);
	if (changed)
		ex_work(w);
	else
		ex_poll(w);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static int choose(enum ptx_mod op, enum ptx_type t)
{
	char class = ptx_type_class(t);
	unsigned bits = ptx_type_bits(t);
	bool half = t == TY_f16 || t == TY_f16x2, bhalf = t == TY_bf16 || t == TY_bf16x2;
	bool wide = bits == 64;

	switch (op) {
	case MOD_add:
		if (half || bhalf)
			return half ? AT_addf16 : AT_addbf16;
		if (class == 'f')
			return t == TY_f64 ? AT_addf64 : t == TY_f32 ? AT_addf32 : -1;
		return wide ? AT_add64 : AT_add32;
	case MOD_min:
		if (half || bhalf)
			return half ? AT_minf16 : AT_minbf16;
		if (class == 's')
			return wide ? AT_mins64 : AT_mins32;
		return class == 'u' ? (wide ? AT_minu64 : AT_minu32) : -1;
	case MOD_max:
		if (half || bhalf)
			return half ? AT_maxf16 : AT_maxbf16;
		if (class == 's')
			return wide ? AT_maxs64 : AT_maxs32;
		return class == 'u' ? (wide ? AT_maxu64 : AT_maxu32) : -1;
	case MOD_inc: return wide ? -1 : AT_inc32;
	case MOD_dec: return wide ? -1 : AT_dec32;
	case MOD_and: return wide ? AT_and64 : AT_and32;
	case MOD_or: return wide ? AT_or64 : AT_or32;
	case MOD_xor: return wide ? AT_xor64 : AT_xor32;
	case MOD_exch: return wide ? AT_exch64 : AT_exch32;
	case MOD_cas: return wide ? AT_cas64 : bits == 32 ? AT_cas32 : AT_cas16;
	default: return -1;
	}
}

/* d: destination or NULL for red */
static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	const struct ptx_operand *to, const struct ptx_operand *o)
{
	enum ptx_type t = ptx_type_of(i, 0);
	enum ptx_mod op = ptx_pick(i, MG_redop);
	enum ev_sem sem = ptx_sem_of(i, SEM_WEAK);
	enum ev_scope scope = ptx_scope_of(i, SCOPE_NONE);
	unsigned size = ptx_type_atomic_bits(t) / 8, parts = size ? ptx_type_bits(t) / 8 / size : 0;
	bool packed = parts > 1;
	unsigned reg = packed || size == 4 ? 4 : size == 8 ? 8 : 2;
	struct xaddr a = dec_addr(d, &o[0]);
	int kind = choose(op, t);

	x->o[3] = ptx_space_of(i, 0);
	x->o[MX_ADDR] = a.slot;
	x->o[MX_IMM] = (uint32_t)a.imm;
	x->o[MX_ORDER] = ORDER(sem == SEM_WEAK ? SEM_RELAXED : sem,
		scope == SCOPE_NONE ? SCOPE_GPU : scope, to ? 0 : ACCESS_REDUCTION, 0);
	if (t == TY_b128) {
		x->fn = op_atom128;
		x->i.u = op == MOD_cas;
		x->o[0] = to ? dec_dst(d, to, t) : SLOT_NONE;
		x->o[1] = dec_src(d, &o[1], t);
		x->o[2] = x->i.u ? dec_src(d, &o[2], t) : x->o[1];
		return op == MOD_cas || op == MOD_exch ? true
			: dec_unsupported(d, "128-bit atomic");
	}
	if (kind < 0 || size_of[kind] != size)
		return dec_unsupported(d, "this atomic operation on this type");
	if (o[1].kind == PO_VEC) {
		struct atom_list *v = dec_alloc(d, sizeof *v);

		*v = (struct atom_list){ .kind = (uint32_t)kind, .parts = parts, .size = size,
			.reg = reg, .n = o[1].n };
		if (v->n > ARRAY_SIZE(v->d) || (to && (to->kind != PO_VEC || to->n != v->n)))
			return dec_unsupported(d, "vector atomic");
		for (unsigned e = 0; e < v->n; e++) {
			v->d[e] = to ? dec_dst(d, &to->list[e], t) : SLOT_NONE;
			v->b[e] = dec_src(d, &o[1].list[e], t);
		}
		x->fn = op_atom_vec;
		x->i.p = v;
		return true;
	}
	x->fn = op_atom;
	x->o[0] = to ? dec_dst(d, to, t) : SLOT_NONE;
	x->o[1] = dec_src(d, &o[1], t);
	x->o[2] = op == MOD_cas ? dec_src(d, &o[2], t) : x->o[1];
	x->i.b[0] = (uint8_t)kind;
	x->i.b[1] = (uint8_t)parts;
	x->i.b[2] = (uint8_t)size;
	x->i.b[3] = (uint8_t)reg;
	return true;
}

DECODER(atom) { return decode(d, i, x, &i->operand[0], i->operand + 1); }
DECODER(red) { return decode(d, i, x, NULL, i->operand); }
