/* multimem: multimem.ld_reduce, st and red, and st to multicast addresses. Each is one access to the memory
 * of each device of the multicast object: one event for each, in the order of the devices. The ISA
 * does not say in which order ld_reduce combines the values; here it is the same. */
#include "reach.h"
#include "tensormap.h"

#include "num.h"
#include "fmath.h"

enum { ELEMENTS = 8, BYTES = 32 };
enum access { LOAD, STORE, REDUCE };

struct op {
	uint8_t access;            /* enum access */
	uint8_t red;               /* enum tensor_red */
	uint8_t type;              /* enum ptx_type, of a scalar */
	bool wide;                 /* .acc::f32, .acc::f16 */
	uint8_t scalar, size;      /* bytes of a scalar, of an element */
	uint8_t n, reg;            /* elements; bytes of a register */
	uint32_t slot[ELEMENTS];
};

/* The memory behind the addresses of some lanes, for one device after the other. */
struct replicas {
	unsigned n;
	uint64_t at[EXEC_DEVICES][LANES];
};
struct one { struct replicas *r; unsigned lane; };

static void add(void *user, uint64_t at, uint64_t from, uint64_t n)
{
	struct one *o = user;

	if (!from && o->r->n < EXEC_DEVICES)
		o->r->at[o->r->n++][o->lane] = at;
	(void)n;
}

static bool find(struct warp *w, const struct xop *x, const struct op *op, uint32_t lanes,
	struct replicas *r)
{
	const struct xaddr a = { x->o[MX_ADDR], (int32_t)x->o[MX_IMM] };
	const unsigned bytes = op->n * op->size;
	unsigned n = 0;

	for EACH_LANE(l, lanes) {
		const uint64_t addr = ex_addr(w, a, l);
		const struct exec_multicast *m;
		struct one one = { r, l };
		struct refusal why;

		if (refuse_align(&why, SP_GLOBAL, addr, bytes, bytes)) {
			ex_refuse(w, x, 1u << l, &why);
			return false;
		}
		m = multicast_find(w, x, l, addr, bytes);
		if (!m)
			return false;
		r->n = 0;
		multicast_each(m, addr, bytes, add, &one);
		if (n && r->n != n) {
			ex_refuse_op(w, x, "lanes access multicast objects of different numbers of devices");
			return false;
		}
		n = r->n;
	}
	return true;
}

/* The part of one device, as an access of these lanes. */
static void part(const struct replicas *r, unsigned k, uint32_t lanes, struct reach *out)
{
	uint64_t at[LANES] = { 0 };

	memset(out, 0, offsetof(struct reach, off32));
	for EACH_LANE(l, lanes)
		at[l] = r->at[k][l];
	out->space = SP_GLOBAL;
	reach_stride64(out, lanes, v64_load(at));
}

/* reach_begin() for the parts together. */
static bool begin(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode,
	const struct replicas *r, uint64_t *held)
{
	const struct grid *g = w->worker->grid;
	struct reach one;

	*held = 0;
	if (!(x->o[MX_ORDER] & 255))
		return true;
	for (unsigned k = 0; k < r->n; k++) {
		part(r, k, lanes, &one);
		if (g->coupled)
			*held |= reach_places(w, x, lanes, &one);
		else
			for EACH_LANE(l, lanes)
				*held |= mem_stripe(r->at[k][l]);
	}
	if (g->coupled)
		return !*held || sched_point(w, x->site, *held, mode);
	if (w->sink && w->sink->want_global && g->jobs > 1)
		mem_lock(*held);
	else
		*held = 0;
	return true;
}

/* Of a load that polls, sched_load() holds back only the last one. */
static void emit(struct warp *w, const struct xop *x, uint32_t lanes, unsigned mode, unsigned bytes,
	unsigned element, const struct replicas *r)
{
	struct reach one;

	for (unsigned k = 0; k < r->n; k++) {
		part(r, k, lanes, &one);
		reach_emit(w, x, lanes, mode, bytes, element, 0, &one);
	}
}

/* ---- values ---- */

static float widened(enum ptx_type t, const unsigned char *at)
{
	uint16_t h;

	if (t == TY_e4m3)
		return num_from_e4m3(*at);
	if (t == TY_e5m2)
		return num_from_e5m2(*at);
	memcpy(&h, at, sizeof h);
	return t == TY_f16 ? num_from_f16(h) : num_from_bf16(h);
}

static void narrowed(enum ptx_type t, float f, unsigned char *at)
{
	const uint16_t h = t == TY_f16 ? num_to_f16(f) : num_to_bf16(f);

	if (t == TY_e4m3 || t == TY_e5m2)
		*at = t == TY_e4m3 ? num_to_e4m3(f) : num_to_e5m2(f);
	else
		memcpy(at, &h, sizeof h);
}

static float combined(enum tensor_red red, float a, float b)
{
	return red == RED_ADD ? a + b : red == RED_MIN ? fm_min(a, b, false) : fm_max(a, b, false);
}

/* Rounds an intermediate sum as the precision of the accumulation says. */
static float kept(const struct op *op, float f)
{
	unsigned char t[2];

	if (op->wide)
		return op->scalar == 1 ? num_from_f16(num_to_f16(f)) : f;
	narrowed((enum ptx_type)op->type, f, t);
	return widened((enum ptx_type)op->type, t);
}

/* The reduction of narrow floats, scalar by scalar. */
static void reduce_narrow(const struct op *op, const struct replicas *r, unsigned lane,
	unsigned char *to)
{
	const enum ptx_type t = (enum ptx_type)op->type;

	for (unsigned i = 0; i < op->n * op->size; i += op->scalar) {
		float sum = widened(t, (const unsigned char *)(uintptr_t)r->at[0][lane] + i);

		for (unsigned k = 1; k < r->n; k++)
			sum = kept(op, combined((enum tensor_red)op->red, sum,
				widened(t, (const unsigned char *)(uintptr_t)r->at[k][lane] + i)));
		narrowed(t, sum, to + i);
	}
}

static void load(struct warp *w, const struct op *op, uint32_t lanes, const struct replicas *r)
{
	const unsigned bytes = op->n * op->size;

	for EACH_LANE(l, lanes) {
		unsigned char value[BYTES] __attribute__((aligned(16)));

		if (op->scalar < 4) {
			reduce_narrow(op, r, l, value);
		} else {
			memcpy(value, (const void *)(uintptr_t)r->at[0][l], bytes);
			for (unsigned k = 1; k < r->n; k++)
				tensor_reduce((enum tensor_red)op->red, tensor_type_of((enum ptx_type)op->type),
					value, (const unsigned char *)(uintptr_t)r->at[k][l], bytes);
		}
		for (unsigned e = 0; e < op->n; e++) {
			uint64_t v = 0;

			memcpy(&v, value + e * op->size, op->size);
			memcpy(w->r + op->slot[e] + l * op->reg, &v, op->reg);
		}
	}
}

/* The registers of one lane as they lie in memory. */
static void gather(const struct warp *w, const struct op *op, unsigned lane, unsigned char *to)
{
	for (unsigned e = 0; e < op->n; e++)
		memcpy(to + e * op->size, w->r + op->slot[e] + lane * op->reg, op->size);
}

static void store(struct warp *w, const struct op *op, uint32_t lanes, const struct replicas *r)
{
	const unsigned bytes = op->n * op->size;

	for (unsigned k = 0; k < r->n; k++)
		for EACH_LANE(l, lanes) {
			unsigned char *to = (unsigned char *)(uintptr_t)r->at[k][l];
			unsigned char value[BYTES] __attribute__((aligned(16)));

			gather(w, op, l, value);
			if (op->access == REDUCE)
				tensor_reduce((enum tensor_red)op->red, tensor_type_of((enum ptx_type)op->type), to,
					value, bytes);
			else if (bytes == 4)
				*(l32 *)to = *(l32 *)value;
			else if (bytes == 8)
				*(l64 *)to = *(l64 *)value;
			else
				memcpy(to, value, bytes);
		}
}

static enum step op_multimem(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	const unsigned mode = op->access == LOAD ? MODE_READ : op->access == STORE ? MODE_WRITE : MODE_RMW;
	struct replicas r;
	uint64_t held;

	if (!find(w, x, op, lanes, &r))
		return STEP_FAULT;
	if (!begin(w, x, lanes, mode, &r, &held))
		return STEP_PARK;
	if (w->sink)
		emit(w, x, lanes, mode, op->n * op->size, op->size, &r);
	if (op->access == LOAD)
		load(w, op, lanes, &r);
	else
		store(w, op, lanes, &r);
	reach_end(w, held, op->access != LOAD);
	if (op->access != LOAD)
		ex_work(w);
	else if (x->o[MX_ORDER] >> 24)
		ex_poll(w);
	return STEP_NEXT;
}

/* ---- ordinary stores ---- */

bool SIMD_NAME(multimem_stores)(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct xaddr a = { x->o[MX_ADDR], (int32_t)x->o[MX_IMM] };
	struct exec_mem of;

	for EACH_LANE(l, lanes)
		if (!mem_multicast(w->worker->grid->device, ex_addr(w, a, l), &of))
			return false;
	return true;
}

enum step SIMD_NAME(multimem_st)(struct warp *w, const struct xop *x, uint32_t lanes,
	const uint32_t *src)
{
	const uint32_t form = x->o[MX_FORM];
	struct op op = { .access = STORE, .red = RED_NONE, .size = (uint8_t)FORM_SIZE(form),
		.n = (uint8_t)FORM_VEC(form), .reg = (uint8_t)FORM_REG(form) };
	const unsigned bytes = op.n * op.size;
	const struct xaddr a = { x->o[MX_ADDR], (int32_t)x->o[MX_IMM] };
	struct replicas r;
	uint64_t held;

	memcpy(op.slot, src, op.n * sizeof src[0]);
	if (!find(w, x, &op, lanes, &r))
		return STEP_FAULT;
	if (!begin(w, x, lanes, MODE_WRITE, &r, &held))
		return STEP_PARK;
	multicast_stored(w, x, lanes, ex_addr(w, a, (unsigned)__builtin_ctz(lanes)), bytes);
	if (w->sink)
		emit(w, x, lanes, MODE_WRITE, bytes, FORM_ATOM(form), &r);
	store(w, &op, lanes, &r);
	reach_end(w, held, true);
	ex_work(w);
	return STEP_NEXT;
}

/* ---- decoding ---- */

/* The scalar type of a packed one. */
static enum ptx_type scalar_of(enum ptx_type t)
{
	switch (t) {
	case TY_f16x2: return TY_f16;
	case TY_bf16x2: return TY_bf16;
	case TY_e4m3x2: case TY_e4m3x4: return TY_e4m3;
	case TY_e5m2x2: case TY_e5m2x4: return TY_e5m2;
	default: return t;
	}
}

static enum tensor_red red_of(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_redop)) {
	case MOD_add: return RED_ADD;
	case MOD_min: return RED_MIN;
	case MOD_max: return RED_MAX;
	case MOD_and: return RED_AND;
	case MOD_or: return RED_OR;
	case MOD_xor: return RED_XOR;
	default: return RED_NONE;
	}
}

static bool values(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, struct op *op)
{
	const unsigned bits = ptx_type_bits(t), n = o->kind == PO_VEC ? o->n : 1;

	if (n > ELEMENTS || n * op->size > BYTES)
		return dec_unsupported(d, "a multimem access of %u elements of %u bytes", n, op->size);
	op->n = (uint8_t)n;
	for (unsigned e = 0; e < op->n; e++) {
		const struct ptx_operand *one = o->kind == PO_VEC ? &o->list[e] : o;

		op->slot[e] = op->access == LOAD ? dec_dst(d, one, t) : dec_src(d, one, t);
	}
	op->reg = bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
	return (op->size && op->size <= op->reg) || dec_unsupported(d, "a multimem access to this type");
}

static bool decode(struct decoder *d, const struct ptx_insn *i, struct xop *x, enum access access)
{
	const enum ptx_type t = ptx_type_of(i, 0), scalar = scalar_of(t);
	const bool load = access == LOAD;
	const enum ev_sem sem = ptx_sem_of(i, access == REDUCE ? SEM_RELAXED : SEM_WEAK);
	const enum ev_scope scope = ptx_scope_of(i, sem == SEM_WEAK ? SCOPE_NONE : SCOPE_SYS);
	const struct xaddr a = dec_addr(d, &i->operand[load]);
	struct op *op = dec_alloc(d, sizeof *op);

	*op = (struct op){ .access = (uint8_t)access, .red = (uint8_t)red_of(i), .type = (uint8_t)scalar,
		.wide = ptx_has(i, MOD_acc_f32) || ptx_has(i, MOD_acc_f16),
		.scalar = (uint8_t)(ptx_type_bits(scalar) / 8), .size = (uint8_t)(ptx_type_bits(t) / 8) };
	if (access == STORE)
		op->red = RED_NONE;
	else if (op->scalar >= 4 ? !tensor_reduces((enum tensor_red)op->red, tensor_type_of(scalar))
			: op->red != RED_ADD && (access == REDUCE || (op->red != RED_MIN && op->red != RED_MAX)))
		return dec_unsupported(d, "this reduction of this type");
	if (access == REDUCE && op->scalar == 1)
		return dec_unsupported(d, "this reduction of this type");
	x->i.p = op;
	x->fn = op_multimem;
	x->o[MX_ADDR] = a.slot;
	x->o[MX_IMM] = (uint32_t)a.imm;
	x->o[MX_ORDER] = ORDER(sem, scope, access == REDUCE ? ACCESS_REDUCTION : 0,
		load && sem != SEM_WEAK);
	return values(d, &i->operand[!load], t, op);
}

DECODER(multimem_ld_reduce) { return decode(d, i, x, LOAD); }
DECODER(multimem_st) { return decode(d, i, x, STORE); }
DECODER(multimem_red) { return decode(d, i, x, REDUCE); }
