/* decode: a kernel and all functions it may call -> dense ops. Functions stand
 * callees first and their blocks in the order of the control-flow graph, so
 * that lanes with the lowest pc are those that the others wait for. Registers
 * of a function are columns above those of its callers; see call.c. */
#include "core.h"

#include <stdio.h>
#include <stdlib.h>

#include "simd.h"

typedef bool (*decode_fn)(struct decoder *d, const struct ptx_insn *i, struct xop *x);

/* ---- the table of decoders: ops.def against ptx.def ---- */

enum { WHERE_PLAIN, WHERE_SIMD, WHERE_NONE };

/* a row of ops.def that ptx.def does not have, or has twice, fails here */
#define ROW(id, where, why) ROW_##id = OP_##id,
enum {
#include "ops.def"
};
#undef ROW
#define ROW(id, where, why) + 1
_Static_assert(1
#include "ops.def"
	== OP_COUNT, "ops.def needs one line for every row of ptx.def");
#undef ROW

#define DECLARE_PLAIN(id) bool dec_##id(struct decoder *, const struct ptx_insn *, struct xop *);
#define DECLARE_SIMD(id) \
	bool dec_##id##_avx2(struct decoder *, const struct ptx_insn *, struct xop *); \
	bool dec_##id##_avx512(struct decoder *, const struct ptx_insn *, struct xop *);
#define DECLARE_NONE(id)
#define ROW(id, where, why) DECLARE_##where(id)
#include "ops.def"
#undef ROW

#define NAME_PLAIN(id) dec_##id, dec_##id
#define NAME_SIMD(id) dec_##id##_avx2, dec_##id##_avx512
#define NAME_NONE(id) NULL, NULL
static const struct decode_row {
	decode_fn avx2, avx512;
	const char *why; /* not supported */
} rows[OP_COUNT] = {
#define ROW(id, where, why) [OP_##id] = { NAME_##where(id), why },
#include "ops.def"
#undef ROW
};

static const char *const operand_text[OP_COUNT] = {
#define OP(id, name, mods, operands, effect, doc) [OP_##id] = operands,
#include "../ptx/ptx.def"
#undef OP
};

unsigned dec_destinations(const struct ptx_insn *i)
{
	const char *at = operand_text[i->op];
	unsigned n = 0;

	while (at && (*at == 'd' || *at == 'e') && n < i->noperands) {
		n++;
		at = strchr(at, ',');
		if (at)
			at += 2;
	}
	return n;
}

enum reg_class dec_class(enum ptx_type t)
{
	if (t == TY_pred)
		return RC_PRED;
	return reg_class_of(ptx_type_bits(t) == 1 ? 8 : ptx_type_bits(t));
}

enum reg_class reg_class_of(unsigned bits)
{
	return bits == 1 ? RC_PRED : bits <= 16 ? RC_16 : bits <= 32 ? RC_32
		: bits <= 64 ? RC_64 : RC_128;
}

unsigned reg_class_bytes(enum reg_class c)
{
	static const unsigned bytes[RC_COUNT] = { 4, 64, 128, 256, 512 };

	return bytes[c];
}

/* ---- what cannot be run ---- */

static enum step op_unsupported(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct exec_kernel *k = w->worker->grid->k;
	const struct site *s = site_get(x->site);
	char text[400];

	(void)lanes;
	snprintf(text, sizeof text, "%s line %u: %.120s: %s", s->module ? s->module : "",
		s->ptx_line, s->ptx ? s->ptx : "", k->why[x->i.u]);
	w->cluster->stop = true;
	grid_fail(w->worker->grid, w->cluster->info.id, EXEC_UNSUPPORTED, x->site, text);
	return STEP_FAULT;
}

bool dec_unsupported(struct decoder *d, const char *fmt, ...)
{
	va_list ap;

	if (!d->failed) {
		va_start(ap, fmt);
		vsnprintf(d->why, sizeof d->why, fmt, ap);
		va_end(ap);
	}
	d->failed = true;
	return false;
}

/* ---- constants and other slots ---- */

static uint32_t room(struct decoder *d, unsigned bits)
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
	h = (value * 0x9e3779b97f4a7c15ull ^ (uint64_t)(kind * 8 + c) * 0xff51afd7ed558ccdull) >> 20;
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
	struct kconst k = { room(d, bits), (uint8_t)width, (uint8_t)kind, value };
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
	return room(d, bits);
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
	/* dynamic shared memory starts where the static variables end, all of
	 * which have been placed before any instruction is decoded */
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

	return v->space == PS_param && v >= f->param && v < f->param + f->nparam;
}

/* Offset of a local or param variable in its function's frame. */
static uint32_t frame_place(const struct decoder *d, const struct ptx_var *v)
{
	const struct ptx_func *f = d->fn->f;

	if (v >= f->param && v < f->param + f->nparam)
		return d->fn->params_at + (uint32_t)v->offset;
	if (v >= f->ret && v < f->ret + f->nret)
		return d->fn->rets_at + (uint32_t)v->offset;
	return d->fn->body_at + (uint32_t)v->offset;
}

uint32_t dec_frame_place(const struct decoder *d, const struct ptx_var *v)
{
	return frame_place(d, v);
}

/* Address of a frame variable, as a number: the stack pointer plus imm. */
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

static uint64_t clock_now(const struct warp *w)
{
	return w->cluster->ticks + w->cluster->slept;
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
	dec_unsupported(d, "operand that is no value");
	return SLOT_NONE;
}

uint32_t dec_dst(struct decoder *d, const struct ptx_operand *o, enum ptx_type t)
{
	(void)t;
	if (o->kind == PO_SINK)
		return SLOT_NONE;
	if (o->kind == PO_REG)
		return reg_slot(d, o);
	dec_unsupported(d, "destination that is no register");
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
		dec_unsupported(d, "operand that is no address");
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

enum ptx_space dec_space(const struct ptx_insn *i, unsigned k)
{
	for (unsigned m = 0; m < i->nmods; m++) {
		enum ptx_space s;

		switch (i->mod[m]) {
		case MOD_const: s = PS_const; break;
		case MOD_global: s = PS_global; break;
		case MOD_local: s = PS_local; break;
		case MOD_param: case MOD_param_entry: case MOD_param_func: s = PS_param; break;
		case MOD_shared: case MOD_shared_cta: s = PS_shared; break;
		case MOD_shared_cluster: s = PS_shared_cluster; break;
		default: continue;
		}
		if (!k--)
			return s;
	}
	return PS_none;
}

enum ev_sem dec_sem(const struct ptx_insn *i)
{
	if (ptx_has(i, MOD_mmio))
		return SEM_MMIO;
	switch (ptx_pick(i, MG_sem)) {
	case MOD_volatile: return SEM_VOLATILE;
	case MOD_relaxed: return SEM_RELAXED;
	case MOD_acquire: return SEM_ACQUIRE;
	case MOD_release: return SEM_RELEASE;
	case MOD_acq_rel: return SEM_ACQ_REL;
	case MOD_sc: return SEM_SC;
	default: return SEM_WEAK;
	}
}

enum ev_scope dec_scope(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_scope)) {
	case MOD_cta: return SCOPE_CTA;
	case MOD_cluster: return SCOPE_CLUSTER;
	case MOD_gpu: case MOD_gl: return SCOPE_GPU;
	case MOD_sys: return SCOPE_SYS;
	default: return SCOPE_NONE;
	}
}

/* ---- registers of wgmma, for EV_REGS ---- */

struct regs_note { uint16_t nread, nwritten; bool move; uint32_t reg[]; };

static enum step op_regs(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct regs_note *n = x->i.p;

	if (!w->sink)
		return STEP_NEXT;
	struct event e = ex_event(w, x, EV_REGS, lanes);
	e.flags = n->move ? EVF_MOVE : 0;
	e.regs = n->reg;
	e.nregs_d = n->nread;
	e.mode = EVM_READ;
	if (n->nread)
		ex_emit(w->cluster, &e);
	e.regs = n->reg + n->nread;
	e.nregs_d = n->nwritten;
	e.mode = EVM_WRITE;
	if (n->nwritten)
		ex_emit(w->cluster, &e);
	return STEP_NEXT;
}

static void wgmma_regs(const struct ptx_operand *o, bool mark, bool *used, uint32_t *out, unsigned *n)
{
	if (o->kind == PO_REG || (o->kind == PO_ADDR && o->reg != PTX_NO_REG)) {
		if (mark)
			used[o->reg] = true;
		else if (used[o->reg] && *n < 2048)
			out[(*n)++] = o->reg;
		return;
	}
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			wgmma_regs(&o->list[i], mark, used, out, n);
}

/* Accumulators and A fragments: the vectors among the operands. */
static bool *find_wgmma_regs(struct decoder *d)
{
	const struct ptx_func *f = d->fn->f;
	bool *used = NULL;

	for (size_t i = 0; i < f->ninsn; i++) {
		const struct ptx_insn *in = &f->insn[i];

		if (in->op != OP_wgmma_mma_async && in->op != OP_wgmma_mma_async_sp)
			continue;
		if (!used)
			used = base_alloc(f->nreg + 1);
		for (unsigned o = 0; o < 2 && o < in->noperands; o++)
			if (in->operand[o].kind == PO_VEC)
				wgmma_regs(&in->operand[o], true, used, NULL, NULL);
	}
	d->k->has_wgmma |= used != NULL;
	return used;
}

static void note_regs(struct decoder *d, const struct ptx_insn *i, bool *used,
	uint32_t guard, uint32_t guard_xor, uint32_t site)
{
	static _Thread_local uint32_t found[2048];
	unsigned n = 0, nread, ndst = dec_destinations(i);
	struct regs_note *note;
	struct xop *x;

	if (ptx_effect_of((enum ptx_op)i->op) == EF_WGMMA)
		return;
	for (unsigned o = ndst; o < i->noperands; o++)
		wgmma_regs(&i->operand[o], false, used, found, &n);
	nread = n;
	for (unsigned o = 0; o < ndst; o++)
		wgmma_regs(&i->operand[o], false, used, found, &n);
	if (!n)
		return;
	note = dec_alloc(d, sizeof *note + n * sizeof note->reg[0]);
	note->nread = (uint16_t)nread;
	note->move = i->op == OP_mov;
	note->nwritten = (uint16_t)(n - nread);
	memcpy(note->reg, found, n * sizeof note->reg[0]);
	x = dec_before(d, op_regs);
	x->guard = guard;
	x->guard_xor = guard_xor;
	x->site = site;
	x->i.p = note;
}

/* ---- functions ---- */

static uint32_t add_site(const struct decoder *d, const struct ptx_insn *i)
{
	const struct ptx_module *m = d->k->module->ptx;
	char *text = base_strndup(m->text + i->text_at, i->text_len);
	struct site s = { d->fn->f->name, m->name, i->line, text, i->loc };
	uint32_t id = site_add(&s);

	free(text);
	return id;
}

static void refuse(struct decoder *d, struct xop *x)
{
	struct exec_kernel *k = d->k;
	struct exec_kernel_info *info = &k->info;

	x->fn = op_unsupported;
	x->pure = 0;
	k->why = base_resize(k->why, (k->nwhy + 1) * sizeof *k->why);
	memcpy(k->why[k->nwhy], d->why, sizeof d->why);
	x->i.u = k->nwhy++;
	info->nunsupported++;
	if (!info->first_unsupported)
		info->first_unsupported = d->insn;
}

static void decode_insn(struct decoder *d, const struct ptx_insn *i, bool *wgmma)
{
	const struct decode_row *row = &rows[i->op];
	decode_fn fn = d->avx512 ? row->avx512 : row->avx2;
	struct xop x = { .guard = SLOT_TRUE, .site = add_site(d, i) };
	struct xop bare;

	d->insn = i;
	d->failed = false;
	if (i->guard != PTX_NO_REG) {
		struct ptx_operand g = { .kind = PO_REG, .reg = i->guard };

		x.guard = reg_slot(d, &g);
		x.guard_xor = i->guard_negated ? FULL : 0;
	}
	if (wgmma)
		note_regs(d, i, wgmma, x.guard, x.guard_xor, x.site);
	bare = x;
	if (!fn) {
		dec_unsupported(d, "%s", i->op == OP_unknown ? "not a PTX instruction that consan knows"
			: row->why);
		refuse(d, &x);
	} else if (!fn(d, i, &x) || d->failed) {
		x = bare;
		refuse(d, &x);
	}
	vec_push(&d->code, x);
	vec_push(&d->insn_of, i);
	vec_push(&d->func_of, d->fn->f);
}

static void add_jump(struct decoder *d, uint32_t insn)
{
	struct xop *x = dec_before(d, op_jump);

	x->i.u = insn;
	vec_push(&d->fixup, (uint32_t)d->code.n - 1);
}

void dec_branch(struct decoder *d, struct xop *x, uint32_t insn)
{
	x->i.u = insn;
	vec_push(&d->fixup, (uint32_t)d->code.n); /* x stands there next */
}

static void decode_function(struct decoder *d, struct kfunc *fn)
{
	const struct ptx_func *f = fn->f;
	const struct ptx_cfg *cfg = f->cfg;
	bool *wgmma;

	d->fn = fn;
	d->fixup.n = 0;
	d->pc_of = base_alloc((f->ninsn + 1) * sizeof *d->pc_of);
	wgmma = find_wgmma_regs(d);
	fn->entry_pc = (uint32_t)d->code.n;
	/* lanes enter at the top, wherever the first block was put */
	if (cfg->nblock && cfg->block[cfg->order[0]].first != 0)
		add_jump(d, 0);
	for (size_t k = 0; k < cfg->nblock; k++) {
		const struct ptx_block *b = &cfg->block[cfg->order[k]];
		uint32_t next = k + 1 < cfg->nblock ? cfg->block[cfg->order[k + 1]].first
			: (uint32_t)f->ninsn;

		for (uint32_t i = b->first; i < b->end; i++) {
			d->pc_of[i] = (uint32_t)d->code.n;
			decode_insn(d, &f->insn[i], wgmma);
		}
		if (b->end > b->first && b->end != next && dec_falls_through(&f->insn[b->end - 1]))
			add_jump(d, b->end);
	}
	d->pc_of[f->ninsn] = (uint32_t)d->code.n;
	dec_before(d, f == d->k->func ? op_exit : op_ret)->i.p = fn;
	for (size_t i = 0; i < d->fixup.n; i++) {
		struct xop *x = &d->code.at[d->fixup.at[i]];

		if (x->fn == op_brx)
			dec_brx_targets(d, x);
		else
			x->i.u = d->pc_of[x->i.u];
	}
	free(d->pc_of);
	free(wgmma);
}

/* Callees first. visited: 0 new, 1 on the way down, 2 done. */
static void collect(struct exec_kernel *k, const struct ptx_func *f, uint8_t *visited)
{
	const struct ptx_module *m = k->module->ptx;
	bool indirect = false;

	visited[f - m->func] = 1;
	for (size_t i = 0; i < f->ninsn; i++) {
		const struct ptx_insn *in = &f->insn[i];
		const struct ptx_func *g;

		if (in->op != OP_call || !in->noperands)
			continue;
		g = in->operand[0].kind == PO_FUNC ? in->operand[0].func : NULL;
		indirect |= !g;
		k->has_calls = true;
		if (g)
			g = ptx_find(m, g->name); /* a declaration may stand for it */
		if (g && g->ninsn && !visited[g - m->func])
			collect(k, g, visited);
	}
	/* anything may be called: device functions are few when this happens */
	for (size_t i = 0; indirect && i < m->nfunc; i++)
		if (!m->func[i].entry && m->func[i].ninsn && !visited[i])
			collect(k, &m->func[i], visited);
	visited[f - m->func] = 2;
	k->fn_of[f - m->func] = (uint32_t)k->nfn;
	k->fn[k->nfn++].f = f;
}

static uint32_t align16(uint64_t n)
{
	return (uint32_t)((n + 15) & ~15ull);
}

static void lay_frame(const struct exec_kernel *k, struct kfunc *fn)
{
	const struct ptx_func *f = fn->f;
	uint64_t rets = 0;

	for (size_t i = 0; i < f->nret; i++)
		if (f->ret[i].offset + f->ret[i].size > rets)
			rets = f->ret[i].offset + f->ret[i].size;
	fn->params_at = 0;
	fn->rets_at = f == k->func ? 0 : align16(f->param_bytes);
	fn->body_at = fn->rets_at + align16(rets);
	fn->frame = fn->body_at + align16(f->local_bytes);
}

/* Columns of a function start above those of all its callers; the entry,
 * which is last, starts at 0. Calls back up the chain save columns (call.c). */
static void lay_columns(struct exec_kernel *k)
{
	const struct ptx_module *m = k->module->ptx;
	uint32_t most[RC_COUNT] = { 0 };
	uint32_t at = SLOT_FIRST;

	for (size_t i = k->nfn; i-- > 0;) {
		const struct kfunc *fn = &k->fn[i];
		bool indirect = false;

		for (size_t n = 0; n < fn->f->ninsn; n++) {
			const struct ptx_insn *in = &fn->f->insn[n];
			const struct ptx_func *g = NULL;

			if (in->op != OP_call || !in->noperands)
				continue;
			if (in->operand[0].kind == PO_FUNC && in->operand[0].func)
				g = ptx_find(m, in->operand[0].func->name);
			else
				indirect = true;
			if (!g || k->fn_of[g - m->func] >= i)
				continue;
			struct kfunc *to = &k->fn[k->fn_of[g - m->func]];
			for (unsigned c = 0; c < RC_COUNT; c++)
				if (to->base[c] < fn->base[c] + fn->n[c])
					to->base[c] = fn->base[c] + fn->n[c];
		}
		for (size_t t = 0; indirect && t < i; t++)
			for (unsigned c = 0; c < RC_COUNT; c++)
				if (k->fn[t].base[c] < fn->base[c] + fn->n[c])
					k->fn[t].base[c] = fn->base[c] + fn->n[c];
		for (unsigned c = 0; c < RC_COUNT; c++)
			if (most[c] < fn->base[c] + fn->n[c])
				most[c] = fn->base[c] + fn->n[c];
	}
	for (unsigned c = RC_COUNT; c-- > 0;) {
		k->class_at[c] = at;
		at += most[c] * reg_class_bytes((enum reg_class)c);
	}
	k->sp_slot = (at + 63) & ~63u;
	k->reg_bytes = k->sp_slot + 128;
}

/* Turns columns into slots. */
static void place_registers(const struct exec_kernel *k, struct kfunc *fn)
{
	static const uint32_t code[RC_COUNT] = { 0, 1, 2, 3, 3 };

	for (size_t r = 0; r < fn->f->nreg; r++) {
		enum reg_class c = dec_class((enum ptx_type)fn->f->reg[r].type);
		unsigned vec = fn->f->reg[r].vec ? fn->f->reg[r].vec : 1;

		for (unsigned e = 0; e < vec; e++) {
			uint32_t *s = &fn->slot[fn->first[r] + e];

			*s = k->class_at[c] + (fn->base[c] + *s) * reg_class_bytes(c);
		}
	}
	for (size_t i = 0; i < fn->nzero; i++) {
		uint32_t r = fn->zero[i];

		fn->zero[i] = fn->slot[fn->first[r]]
			| code[dec_class((enum ptx_type)fn->f->reg[r].type)];
	}
}

/* Deepest stack: the longest chain of frames, and room to recurse. */
static uint32_t stack_bytes(const struct exec_kernel *k)
{
	uint32_t *deep = base_alloc(k->nfn * sizeof *deep);
	const struct ptx_module *m = k->module->ptx;
	bool open = false;
	uint32_t n;

	for (size_t i = 0; i < k->nfn; i++) {
		uint32_t below = 0;

		for (size_t j = 0; j < k->fn[i].f->ninsn; j++) {
			const struct ptx_insn *in = &k->fn[i].f->insn[j];
			const struct ptx_func *g = NULL;
			uint32_t t;

			if (in->op != OP_call || !in->noperands)
				continue;
			if (in->operand[0].kind == PO_FUNC && in->operand[0].func)
				g = ptx_find(m, in->operand[0].func->name);
			else
				open = true;
			t = g ? k->fn_of[g - m->func] : UINT32_MAX;
			if (t == UINT32_MAX)
				continue;
			if (t >= i)
				open = true;
			else if (deep[t] > below)
				below = deep[t];
		}
		deep[i] = k->fn[i].frame + below;
	}
	n = deep[k->nfn - 1];
	free(deep);
	return n + (open ? 48 << 10 : 0);
}

/* Shared variables used by any of the kernel's functions, statics first. */
static void mark_shared(struct decoder *d, const struct ptx_operand *o, bool dynamic)
{
	if ((o->kind == PO_SYM || o->kind == PO_ADDR) && o->var && o->var->space == PS_shared
		&& (o->var->size == 0) == dynamic)
		dec_shared_place(d, o->var);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			mark_shared(d, &o->list[i], dynamic);
}

static void place_shared(struct decoder *d, bool dynamic)
{
	struct exec_kernel *k = d->k;

	for (size_t f = k->nfn; f-- > 0;) {
		const struct ptx_func *pf = k->fn[f].f;

		for (size_t i = 0; i < pf->ninsn; i++) {
			const struct ptx_insn *in = &pf->insn[i];

			for (unsigned o = 0; o < in->noperands; o++)
				mark_shared(d, &in->operand[o], dynamic);
			for (unsigned o = 0; o < in->narg; o++)
				mark_shared(d, &in->arg[o], dynamic);
		}
	}
}

static void *keep(struct exec_kernel *k, const void *at, size_t bytes)
{
	void *to = arena_alloc(&k->arena, bytes ? bytes : 1);

	if (bytes)
		memcpy(to, at, bytes);
	return to;
}

static void fill_info(struct decoder *d)
{
	struct exec_kernel *k = d->k;
	struct exec_kernel_info *n = &k->info;
	const struct ptx_func *f = k->func;
	uint64_t max = 1;

	for (unsigned i = 0; i < 3; i++)
		max *= f->reqntid[i] ? f->reqntid[i] : f->maxntid[i] ? f->maxntid[i] : 1;
	n->name = f->name;
	n->func = f;
	n->shared_static = d->shared_end;
	n->local_bytes = k->local_stack;
	n->const_bytes = (uint32_t)k->module->const_bytes;
	n->param_bytes = (uint32_t)f->param_bytes;
	n->max_threads = max > 1 ? (uint32_t)max : 1024;
	if (n->max_threads > 1024)
		n->max_threads = 1024;
	n->nregs = 16;
	if (f->maxnreg) {
		n->nregs = f->maxnreg;
	} else if (k->nfn) {
		const struct kfunc *e = &k->fn[k->nfn - 1];
		uint64_t most = 65536 / (n->max_threads * (f->minnctapersm ? f->minnctapersm : 1));

		n->nregs = e->n[RC_32] + 2 * e->n[RC_64] + e->n[RC_16] / 2 + 8;
		if (n->nregs > most && max > 1)
			n->nregs = (uint32_t)most & ~7u; /* whole units of 8 */
		if (n->nregs > 255)
			n->nregs = 255;
		if (n->nregs * n->max_threads > 65536) /* what ptxas does without a bound: 64 fit 1024 threads */
			n->nregs = (65536 / n->max_threads) & ~7u;
	}
}

static struct exec_kernel *decode(struct exec_module *m, const struct ptx_func *f)
{
	struct arena arena = { 0 };
	struct exec_kernel *k = arena_alloc(&arena, sizeof *k);
	struct decoder d = { .k = k, .avx512 = simd_level() == SIMD_512 };
	uint8_t *visited = base_alloc(m->ptx->nfunc + 1);

	k->arena = arena;
	k->module = m;
	k->func = f;
	k->fn = arena_alloc(&k->arena, (m->ptx->nfunc + 1) * sizeof *k->fn);
	k->fn_of = arena_alloc(&k->arena, (m->ptx->nfunc + 1) * sizeof *k->fn_of);
	memset(k->fn_of, 0xff, m->ptx->nfunc * sizeof *k->fn_of);
	collect(k, f, visited);
	free(visited);
	for (size_t i = 0; i < k->nfn; i++) {
		lay_frame(k, &k->fn[i]);
		regs_allocate(k, &k->fn[i]);
	}
	lay_columns(k);
	for (size_t i = 0; i < k->nfn; i++)
		place_registers(k, &k->fn[i]);
	k->local_stack = stack_bytes(k);
	d.const_at = k->reg_bytes;
	place_shared(&d, false);
	place_shared(&d, true);
	for (size_t i = 0; i < k->nfn; i++) {
		k->info.ninsn += (uint32_t)k->fn[i].f->ninsn;
		decode_function(&d, &k->fn[i]);
	}
	k->reg_bytes = (d.const_at + 63) & ~63u;
	k->entry_pc = k->fn[k->nfn - 1].entry_pc;
	k->ncode = d.code.n;
	k->code = arena_alloc(&k->arena, d.code.n * sizeof *k->code + 64);
	k->code = (struct xop *)(((uintptr_t)k->code + 63) & ~(uintptr_t)63);
	memcpy(k->code, d.code.at, d.code.n * sizeof *k->code);
	k->insn_of = keep(k, d.insn_of.at, d.insn_of.n * sizeof *k->insn_of);
	k->func_of = keep(k, d.func_of.at, d.func_of.n * sizeof *k->func_of);
	k->konst = keep(k, d.konst.at, d.konst.n * sizeof *k->konst);
	k->nkonst = d.konst.n;
	k->symbol = keep(k, d.symbol.at, d.symbol.n * sizeof *k->symbol);
	k->nsymbol = d.symbol.n;
	if (k->nwhy) {
		void *kept = keep(k, k->why, k->nwhy * sizeof *k->why);

		free(k->why);
		k->why = kept;
	}
	fill_info(&d);
	k->info.symbols = k->symbol;
	k->info.nsymbols = k->nsymbol;
	vec_free(&d.code);
	vec_free(&d.insn_of);
	vec_free(&d.func_of);
	vec_free(&d.konst);
	vec_free(&d.symbol);
	vec_free(&d.shared_var);
	vec_free(&d.shared_at);
	vec_free(&d.fixup);
	free(d.const_hash);
	return k;
}

const struct exec_kernel *exec_kernel(struct exec_module *m, const char *name, struct err *e)
{
	const struct ptx_func *f = ptx_find(m->ptx, name);
	struct exec_kernel **k;

	if (!f || !f->entry || !f->cfg) {
		err_set(e, ERR_PTX_SYMBOL, 0, 0, "no kernel %s in %s", name, m->ptx->name);
		return NULL;
	}
	if (simd_missing()) {
		err_set(e, ERR_UNSUPPORTED, 0, 0, "%s", simd_missing());
		return NULL;
	}
	k = &m->kernel[f - m->ptx->func];
	pthread_mutex_lock(&m->lock);
	if (!*k)
		*k = decode(m, f);
	pthread_mutex_unlock(&m->lock);
	return *k;
}

void exec_kernel_info(const struct exec_kernel *k, struct exec_kernel_info *out)
{
	*out = k->info;
}
