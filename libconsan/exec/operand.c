/* operand: operands for decoders: slots of registers, constants, special registers and symbols,
 * addresses, and the meaning of modifiers. */
#include "internal.h"

#include <stdlib.h>

/* ---- constants and other slots ---- */

static uint32_t reserve_slot(struct decoder *d, unsigned bits)
{
	uint32_t at = d->const_at, bytes = reg_class_bytes(reg_class_of(bits));

	d->const_at += bytes < 64 ? 64 : bytes;
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

/* Address of a frame variable as a number: the stack pointer plus imm. */
static enum step op_frame_address(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l32 *sp = r32(w, x->o[1]);

	for EACH_LANE(l, lanes) {
		if (x->o[2])
			r64(w, x->o[0])[l] = sp[l] + x->i.u;
		else
			r32(w, x->o[0])[l] = sp[l] + (uint32_t)x->i.u;
	}
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
		x->o[2] = bits == 64;
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

static enum step op_clock32(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint64_t now = clock_now(w) >> x->i.u;

	for EACH_LANE(l, lanes)
		r32(w, x->o[0])[l] = (uint32_t)now;
	return STEP_NEXT;
}

static enum step op_clock64(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint64_t now = clock_now(w);

	for EACH_LANE(l, lanes)
		r64(w, x->o[0])[l] = now;
	return STEP_NEXT;
}

static uint32_t special(struct decoder *d, unsigned sreg, unsigned bits)
{
	struct xop *x;
	uint32_t slot;
	uint64_t shift = 0;

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
		bits = 64;
		break;
	case SR_current_graph_exec:
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
	x = dec_before(d, bits == 64 ? op_clock64 : op_clock32);
	x->o[0] = slot;
	x->i.u = shift;
	return slot;
}

/* ---- operands ---- */

static uint32_t reg_slot(const struct decoder *d, const struct ptx_operand *o)
{
	return d->fn->slot[d->fn->first[o->reg] + (o->elem ? o->elem - 1u : 0)];
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

bool dec_holds(const struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	const enum reg_class as = dec_class(t);
	enum reg_class is;

	if (o->kind != PO_REG)
		return true;
	is = dec_class((enum ptx_type)d->fn->f->reg[o->reg].type);
	return (is == RC_PRED) == (as == RC_PRED) && is >= as;
}

uint32_t dec_src(struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	unsigned bits = t == TY_pred ? 1 : ptx_type_bits(t) == 1 ? 8 : ptx_type_bits(t);

	switch ((enum ptx_operand_kind)o->kind) {
	case PO_REG:
		return reg_slot(d, o);
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
	(void)t;
	if (o->kind == PO_SINK)
		return SLOT_NONE;
	if (o->kind == PO_REG)
		return reg_slot(d, o);
	dec_unsupported(d, "destination that is not a register");
	return SLOT_NONE;
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

struct xaddr dec_addr(struct decoder *d, const struct ptx_operand *o)
{
	struct ptx_operand sym = { .kind = PO_SYM, .var = o->var, .imm = o->imm };
	struct xaddr a = { SLOT_NONE, 0 };

	if (o->kind == PO_REG)
		return (struct xaddr){ reg_slot(d, o) | (dec_bits(d, o) == 64), 0 };
	if (o->kind == PO_IMM)
		return (struct xaddr){ dec_const(d, 64, (uint64_t)o->imm) | 1, 0 };
	if (o->kind == PO_ADDR && o->reg != PTX_NO_REG) {
		struct ptx_operand r = { .kind = PO_REG, .reg = o->reg, .elem = o->elem };

		if (o->imm != (int32_t)o->imm)
			dec_unsupported(d, "address offset beyond 32 bits");
		return (struct xaddr){ reg_slot(d, &r) | (dec_bits(d, &r) == 64), (int32_t)o->imm };
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
