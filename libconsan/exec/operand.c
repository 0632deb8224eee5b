/* operand: operands for decoders: slots of registers, constants, special registers and symbols,
 * addresses, and the meaning of modifiers. */
#include "internal.h"

#include <stdlib.h>

/* ---- constants and other slots ---- */

/* Bytes of a lane's value in a slot for values of so many bits; of 128 bits, the low half. */
static unsigned column_bytes(unsigned bits)
{
	return bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
}

/* x->o[0] has values of so many bytes. */
static void put(struct warp *w, const struct xop *x, unsigned bytes, unsigned lane, uint64_t v)
{
	if (bytes == 2)
		r16(w, x->o[0])[lane] = (uint16_t)v;
	else if (bytes == 4)
		r32(w, x->o[0])[lane] = (uint32_t)v;
	else
		r64(w, x->o[0])[lane] = v;
}

static uint32_t reserve_slot(struct decoder *d, unsigned bits)
{
	uint32_t at = d->const_at, bytes = reg_class_bytes(reg_class_of(bits));

	d->const_at += (bytes < 64 ? 64 : bytes) + SLOT_GAP;
	slot_gap_add(d->k, at, bytes);
	return at;
}

static uint32_t constant(struct decoder *d, unsigned bits, enum const_kind kind, uint64_t value)
{
	enum reg_class c = reg_class_of(bits);
	unsigned width = bits == 1 ? 1 : bits <= 16 ? 16 : bits <= 32 ? 32 : bits <= 64 ? 64 : 128;
	uint64_t h;

	if (kind != KC_SREG && width < 64)
		value &= (1ull << width) - 1;
	h = (value * 0x9e3779b97f4a7c15ull ^
		(uint64_t)(kind * 8 + c) * 0xff51afd7ed558ccdull) >> 20;
	if (2 * d->konst.n >= d->nhash) {
		size_t n = d->nhash ? 2 * d->nhash : 256;

		free(d->const_hash);
		d->const_hash = base_alloc(n * sizeof *d->const_hash);
		d->nhash = n;
		for (size_t i = 0; i < d->konst.n; i++) {
			const struct kconst *k = &d->konst.at[i];
			uint64_t g = (k->value * 0x9e3779b97f4a7c15ull ^ (uint64_t)(k->kind * 8
				+ reg_class_of(k->bits)) * 0xff51afd7ed558ccdull) >> 20;

			while (d->const_hash[g & (n - 1)])
				g++;
			d->const_hash[g & (n - 1)] = (uint32_t)i + 1;
		}
	}
	for (;; h++) {
		uint32_t i = d->const_hash[h & (d->nhash - 1)];

		if (!i)
			break;
		const struct kconst *k = &d->konst.at[i - 1];
		if (k->value == value && k->kind == kind && k->bits == width)
			return k->slot;
	}
	struct kconst k = { reserve_slot(d, bits), (uint8_t)width, (uint8_t)kind, value };
	vec_push(&d->konst, k);
	d->const_hash[h & (d->nhash - 1)] = (uint32_t)d->konst.n;
	return k.slot;
}

uint32_t dec_const(struct decoder *d, unsigned bits, uint64_t value)
{
	return constant(d, bits, KC_VALUE, value);
}

uint32_t dec_scratch(struct decoder *d, unsigned bits)
{
	return reserve_slot(d, bits);
}

void *dec_alloc(struct decoder *d, size_t bytes)
{
	return arena_alloc(&d->k->arena, bytes);
}

struct xop *dec_before(struct decoder *d, xfn fn)
{
	struct xop x = { .fn = fn, .guard = SLOT_TRUE };

	vec_push(&d->code, x);
	vec_push(&d->insn_of, NULL);
	vec_push(&d->func_of, d->fn->f);
	return &d->code.at[d->code.n - 1];
}

/* ---- variables ---- */

uint32_t dec_shared_place(struct decoder *d, const struct ptx_var *v)
{
	uint32_t align = v->align ? v->align : 1;
	struct ev_symbol s;
	uint32_t at;

	for (size_t i = 0; i < d->shared_var.n; i++)
		if (d->shared_var.at[i] == v)
			return d->shared_at.at[i];
	/* dynamic shared memory starts at the end of the static variables, which have all been
	 * placed before any instruction is decoded */
	at = (d->shared_end + align - 1) & ~(align - 1);
	if (v->size)
		d->shared_end = at + (uint32_t)v->size;
	else if (d->k->dynamic_at < at)
		d->k->dynamic_at = at;
	s = (struct ev_symbol){ v->name, at, (uint32_t)v->size };
	vec_push(&d->shared_var, v);
	vec_push(&d->shared_at, at);
	vec_push(&d->symbol, s);
	return at;
}

static bool in_frame(const struct ptx_var *v)
{
	return v->space == PS_local || v->space == PS_param;
}

static bool entry_param(const struct decoder *d, const struct ptx_var *v)
{
	const struct ptx_func *f = d->k->func;

	return v->space == PS_param && ptx_var_in(v, f->param, f->nparam);
}

/* Offset of a local or param variable in its function's frame. */
static uint32_t frame_place(const struct decoder *d, const struct ptx_var *v)
{
	const struct ptx_func *f = d->fn->f;

	if (ptx_var_in(v, f->param, f->nparam))
		return d->fn->params_at + (uint32_t)v->offset;
	if (ptx_var_in(v, f->ret, f->nret))
		return d->fn->rets_at + (uint32_t)v->offset;
	return d->fn->body_at + (uint32_t)v->offset;
}

uint32_t dec_frame_place(const struct decoder *d, const struct ptx_var *v)
{
	return frame_place(d, v);
}

/* Address of a frame variable as a number of o[2] bytes: the stack pointer plus imm. */
static enum step op_frame_address(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l32 *sp = r32(w, x->o[1]);

	for EACH_LANE(l, lanes)
		put(w, x, x->o[2], l, sp[l] + x->i.u);
	return STEP_NEXT;
}

static uint32_t symbol(struct decoder *d, const struct ptx_operand *o, unsigned bits)
{
	const struct ptx_var *v = o->var;
	uint64_t imm = (uint64_t)o->imm;

	if (!v) {
		dec_unsupported(d, "address of an unknown symbol");
		return SLOT_NONE;
	}
	if (v->space == PS_shared)
		return constant(d, bits, KC_SHARED, dec_shared_place(d, v) + imm);
	if (entry_param(d, v))
		return dec_const(d, bits, v->offset + imm);
	if (in_frame(v)) {
		uint64_t bias = v->space == PS_param ? PARAM_WINDOW_BYTES : 0;
		uint64_t at = frame_place(d, v) + bias + imm;
		struct xop *x;
		uint32_t slot;

		if (d->fn->f == d->k->func)
			return dec_const(d, bits, at);
		slot = dec_scratch(d, bits);
		x = dec_before(d, op_frame_address);
		x->o[0] = slot;
		x->o[1] = d->k->sp_slot;
		x->o[2] = column_bytes(bits);
		x->i.u = at;
		return slot;
	}
	unsigned char *at = dec_global_place(d, v);
	if (!at) {
		dec_unsupported(d, "%s is declared extern and not defined in this module", v->name);
		return SLOT_NONE;
	}
	return dec_const(d, bits, (uint64_t)(uintptr_t)at + imm);
}

/* ---- special registers that change while the warp runs ---- */

/* No two reads in a cluster return the same value. */
static uint64_t clock_now(const struct warp *w)
{
	return w->cluster->ticks + w->cluster->slept++;
}

/* i.u: its low bits that are left out; o[1]: bytes of the result */
static enum step op_clock(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const uint64_t now = clock_now(w) >> x->i.u;

	for EACH_LANE(l, lanes)
		put(w, x, x->o[1], l, now);
	return STEP_NEXT;
}

static uint32_t special(struct decoder *d, unsigned sreg, unsigned bits)
{
	struct xop *x;
	uint32_t slot;
	uint64_t shift = 0;

	if (bits > 64 || (bits == 1) != (sreg == SR_is_explicit_cluster)) {
		dec_unsupported(d, "special register of another type");
		return SLOT_NONE;
	}
	switch (sreg) {
	case SR_clock:
	case SR_globaltimer_lo:
		break;
	case SR_clock_hi:
	case SR_globaltimer_hi:
		shift = 32;
		break;
	case SR_clock64:
	case SR_globaltimer:
		break;
	case SR_current_graph_exec:
		if (bits != 64)
			dec_unsupported(d, "special register of another type");
		slot = dec_scratch(d, 64);
		dec_before(d, runtime_current_graph)->o[0] = slot;
		return slot;
	case SR_reserved_smem_offset_begin:
	case SR_reserved_smem_offset_end:
	case SR_reserved_smem_offset_cap:
	case SR_reserved_smem_offset_0:
	case SR_reserved_smem_offset_1:
		d->k->needs_reserved = true;
		return constant(d, bits, KC_SREG, sreg);
	default:
		return constant(d, bits, KC_SREG, sreg);
	}
	slot = dec_scratch(d, bits);
	x = dec_before(d, op_clock);
	x->o[0] = slot;
	x->o[1] = column_bytes(bits);
	x->i.u = shift;
	return slot;
}

/* ---- operands ---- */

static enum reg_class class_of(const struct decoder *d, const struct ptx_operand *o)
{
	return dec_class((enum ptx_type)d->fn->f->reg[o->reg].type);
}

static uint32_t reg_slot(const struct decoder *d, const struct ptx_operand *o)
{
	return d->fn->slot[d->fn->first[o->reg] + (o->elem ? o->elem - 1u : 0)];
}

/* The register of an operand that is accessed as type t, or if `wider` by its own width, which is at least that of
 * t. As any other type, lanes would lie elsewhere, the last of them behind a narrower register. ptxas refuses that,
 * except predicates as elements of 32 bits of a vector, to which the ISA gives no meaning. */
static uint32_t reg_as(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool wider)
{
	const enum reg_class is = class_of(d, o), as = dec_class(t);

	if (is == as || (wider && as != RC_PRED && is > as))
		return reg_slot(d, o);
	dec_unsupported(d, "register of another type");
	return SLOT_NONE;
}

static uint64_t float_imm(const struct ptx_operand *o, enum ptx_type t)
{
	union { uint64_t u; double f; } wide = { .u = (uint64_t)o->imm };
	union { uint32_t u; float f; } narrow = { .u = (uint32_t)o->imm };

	if (ptx_type_bits(t) == 64) {
		if (o->kind == PO_F32)
			wide.f = (double)narrow.f;
		return wide.u;
	}
	if (o->kind == PO_F64)
		narrow.f = (float)wide.f;
	return narrow.u;
}

uint32_t dec_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	unsigned bits = t == TY_pred ? 1 : ptx_type_bits(t) == 1 ? 8 : ptx_type_bits(t);

	switch ((enum ptx_operand_kind)o->kind) {
	case PO_REG:
		return reg_as(d, o, t, false);
	case PO_IMM:
		return dec_const(d, bits, (uint64_t)o->imm);
	case PO_F32:
	case PO_F64:
		return dec_const(d, bits, float_imm(o, t));
	case PO_SREG:
		return special(d, o->sreg, bits);
	case PO_SYM:
		return symbol(d, o, bits);
	case PO_FUNC:
		return dec_const(d, bits, FUNC_POINTER(o->func - d->k->module->ptx->func));
	case PO_ADDR:
	case PO_VEC:
	case PO_TADDR:
	case PO_PAIR:
	case PO_LABEL:
	case PO_SINK:
	case PO_NONE:
		break;
	}
	dec_unsupported(d, "operand that is not a value");
	return SLOT_NONE;
}

uint32_t dec_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	if (o->kind == PO_SINK)
		return SLOT_NONE;
	if (o->kind == PO_REG)
		return reg_as(d, o, t, false);
	dec_unsupported(d, "destination that is not a register");
	return SLOT_NONE;
}

static unsigned width_of(const struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	const unsigned bits = dec_bits(d, o);

	return bits ? bits : ptx_type_bits(t);
}

uint32_t dec_wide_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned *bits)
{
	*bits = width_of(d, o, t);
	return o->kind == PO_REG ? reg_as(d, o, t, true) : dec_src(d, o, t);
}

uint32_t dec_wide_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned *bits)
{
	*bits = width_of(d, o, t);
	return o->kind == PO_REG ? reg_as(d, o, t, true) : dec_dst(d, o, t);
}

/* ISA 9.4.1: a register may be wider than the elements; those of one vector are of one width. */
bool dec_elements(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool dst, uint32_t *slot,
	unsigned *bytes)
{
	const unsigned own = column_bytes(ptx_type_bits(t)), n = o->kind == PO_VEC ? o->n : 1;
	bool same = true;

	*bytes = 0;
	for (unsigned k = 0; k < n; k++) {
		const struct ptx_operand *e = o->kind == PO_VEC ? &o->list[k] : o;
		unsigned bits;

		slot[k] = dst ? dec_wide_dst(d, e, t, &bits) : dec_wide_src(d, e, t, &bits);
		if (e->kind == PO_SINK)
			continue;
		same &= !*bytes || *bytes == column_bytes(bits);
		*bytes = column_bytes(bits);
	}
	*bytes = *bytes ? *bytes : own;
	return same || dec_unsupported(d, "vector of registers and immediates of different width");
}

uint32_t dec_pred(struct decoder *d, const struct ptx_operand *o, uint32_t *flip)
{
	*flip = o->negated ? FULL : 0;
	return dec_src(d, o, TY_pred);
}

unsigned dec_bits(const struct decoder *d, const struct ptx_operand *o)
{
	static const unsigned bits[RC_COUNT] = { 1, 16, 32, 64, 128 };
	enum ptx_type t;

	if (o->kind != PO_REG)
		return 0;
	t = (enum ptx_type)d->fn->f->reg[o->reg].type;
	if (t != TY_pred && ptx_type_bits(t) == 8)
		return 8;
	return bits[dec_class(t)];
}

uint32_t dec_reg_id(const struct decoder *d, const struct ptx_operand *o)
{
	(void)d;
	return o->kind == PO_REG ? o->reg : UINT32_MAX;
}

static enum step op_widen(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes)
		r32(w, x->o[0])[l] = r16(w, x->o[1])[l];
	return STEP_NEXT;
}

/* ISA 6.4.1: an address register that is narrower than addresses are is extended with zeros, a wider one
 * truncated. */
static uint32_t address_slot(struct decoder *d, const struct ptx_operand *o)
{
	struct xop *x;

	switch (class_of(d, o)) {
	case RC_32:
		return reg_slot(d, o);
	case RC_64:
	case RC_128:
		return reg_slot(d, o) | 1;
	case RC_16:
		x = dec_before(d, op_widen);
		x->o[0] = dec_scratch(d, 32);
		x->o[1] = reg_slot(d, o);
		return x->o[0];
	case RC_PRED:
	case RC_COUNT:
		break;
	}
	dec_unsupported(d, "predicate as an address");
	return SLOT_NONE;
}

struct xaddr dec_addr(struct decoder *d, const struct ptx_operand *o)
{
	struct ptx_operand sym = { .kind = PO_SYM, .var = o->var, .imm = o->imm };
	struct xaddr a = { SLOT_NONE, 0 };

	if (o->kind == PO_REG)
		return (struct xaddr){ address_slot(d, o), 0 };
	if (o->kind == PO_IMM)
		return (struct xaddr){ dec_const(d, 64, (uint64_t)o->imm) | 1, 0 };
	if (o->kind == PO_ADDR && o->reg != PTX_NO_REG) {
		struct ptx_operand r = { .kind = PO_REG, .reg = o->reg, .elem = o->elem };

		if (o->imm != (int32_t)o->imm)
			dec_unsupported(d, "address offset beyond 32 bits");
		return (struct xaddr){ address_slot(d, &r), (int32_t)o->imm };
	}
	if (o->kind != PO_SYM && o->kind != PO_ADDR) {
		dec_unsupported(d, "operand that is not an address");
		return a;
	}
	if (!o->var)
		return (struct xaddr){ dec_const(d, 64, (uint64_t)o->imm) | 1, 0 };
	if (o->var->space == PS_shared)
		return (struct xaddr){ symbol(d, &sym, 32), 0 };
	if (in_frame(o->var) && !entry_param(d, o->var))
		return (struct xaddr){ d->k->sp_slot,
			(int32_t)(frame_place(d, o->var) + (uint32_t)o->imm) };
	return (struct xaddr){ symbol(d, &sym, 64) | 1, 0 };
}
