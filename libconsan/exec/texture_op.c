/* texture_op: tex, tld4, txq, suld.b, sust.b, suq and istypep, with handles of texture and surface
 * objects. Fetches, and surface loads, are reads outside the memory model; surface stores are plain
 * writes. Objects have no mipmaps, so that the level of detail is 0. */
#include "texture.h"
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

#include "num.h"

enum { COORDS = 4, VALUES = 4, MOST_BYTES = 16 };
enum { BEYOND_TRAP, BEYOND_CLAMP, BEYOND_ZERO };

struct op {
	struct xaddr handle;
	uint8_t dims;              /* of the instruction: 1 to 3 */
	bool layered, cube, whole, gather, surface;
	uint8_t component;         /* of tld4 */
	uint8_t beyond;            /* of surfaces: what happens out of bounds */
	uint8_t n, size, reg;      /* values; bytes of one in memory, and of its register */
	uint8_t type;              /* enum ptx_type of a value */
	uint8_t ncoords;
	uint32_t coord[COORDS], value[VALUES];
	uint32_t resident;         /* the predicate; or SLOT_NONE */
	uint16_t query;            /* enum ptx_mod */
};

/* ---- objects ---- */

/* Takes the lanes that have the handle of the first one, and its object. */
static bool next_object(struct warp *w, const struct xop *x, bool surface, uint32_t *left,
	uint32_t *same, struct consan_texture *t)
{
	const struct op *op = x->i.p;
	const uint64_t handle = ex_addr(w, op->handle, (unsigned)__builtin_ctz(*left));

	*same = 0;
	for EACH_LANE(l, *left)
		if (ex_addr(w, op->handle, l) == handle)
			*same |= 1u << l;
	*left &= ~*same;
	if (texture_find(handle, t) && t->surface == surface)
		return true;
	ex_fault(w, x, *same, FAULT_TEXTURE, SP_GLOBAL, handle, 0, "no %s object has the handle 0x%llx",
		surface ? "surface" : "texture", (unsigned long long)handle);
	return false;
}

/* Is the object of the instruction's dimensions? The faces of a cubemap are layers of its surface. */
static bool fits(struct warp *w, const struct xop *x, const struct consan_texture *t)
{
	const struct op *op = x->i.p;

	if (t->surface ? op->layered == (t->layers > 0) && op->dims == texture_dims(t)
			: op->layered == t->layered && op->cube == t->cube && op->dims == texture_dims(t))
		return true;
	ex_refuse_op(w, x, "the object has other dimensions than the instruction");
	return false;
}

static int32_t whole_at(const struct warp *w, uint32_t slot, unsigned lane)
{
	return rs32(w, slot)[lane];
}

/* ---- accesses ---- */

/* Emits an access of these lanes to memory that exists. False: a fault was raised. */
static bool touch(struct warp *w, const struct xop *x, uint32_t lanes, const uint64_t at[LANES],
	unsigned bytes, unsigned mode, uint32_t lost, uint32_t unchanged)
{
	struct event_access *a;
	struct xplace unused;
	struct event e;

	for EACH_LANE(l, lanes)
		if (!ex_global_ok(w->worker, at[l], bytes, mode & MODE_WRITE)
				&& !ex_resolve(w, x, 1u << l, PS_global, at[l], bytes, 1, mode & MODE_WRITE,
					&unused))
			return false;
	if (!lanes || !w->sink || !w->sink->want_global)
		return true;
	e = ex_event(w, x, EV_ACCESS, lanes);
	a = &e.access;
	a->space = SP_GLOBAL;
	a->mode = (enum ev_mode)mode;
	a->sem = SEM_WEAK;
	a->scope = SCOPE_NONE;
	a->flags = mode == MODE_READ ? ACCESS_NONCOHERENT : 0;
	a->bytes = a->element_bytes = bytes;
	a->overwritten = lost;
	a->unchanged = unchanged;
	a->owner = (uint16_t)w->cta->rank;
	ex_lanes(&a->at, lanes, at);
	ex_emit(w->cluster, &e);
	return true;
}

/* ---- textures ---- */

static struct point point_of(const struct warp *w, const struct op *op,
	const struct consan_texture *t, unsigned lane)
{
	const unsigned first = op->layered, given = op->cube ? 3 : op->dims;
	const uint32_t layers = t->cube ? t->layers / 6 : t->layers;
	struct point p = { 0 };

	for (unsigned d = 0; d < given; d++)
		p.at[d] = op->whole ? whole_at(w, op->coord[first + d], lane)
			: rf32(w, op->coord[first + d])[lane];
	if (op->layered) {
		const uint32_t layer = r32(w, op->coord[0])[lane];

		p.layer = layer < layers ? layer : layers - 1;
	}
	if (op->cube)
		p.layer = p.layer * 6 + texture_face(&p);
	return p;
}

static bool read_taps(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct consan_texture *t, const struct fetch f[LANES])
{
	for (unsigned k = 0; k < MOST_TAPS; k++) {
		uint64_t at[LANES] = { 0 };
		uint32_t readers = 0;

		for EACH_LANE(l, lanes)
			if (k < f[l].n && f[l].tap[k].at) {
				at[l] = f[l].tap[k].at;
				readers |= 1u << l;
			}
		if (!touch(w, x, readers, at, consan_texel_bytes(t->format) * t->channels, MODE_READ, 0, 0))
			return false;
	}
	return true;
}

/* Channel k of the result, as the instruction's type. */
static uint32_t result_of(const struct op *op, const struct consan_texture *t, const struct fetch *f,
	unsigned k)
{
	const struct fetch one = { 1, { f->tap[op->gather ? k : 0] } };
	const uint32_t v = op->gather ? texture_value(t, &one, op->component) : texture_value(t, f, k);

	return op->type == TY_f16 || op->type == TY_f16x2 ? num_to_f16(num_f32(v)) : v;
}

static void set_results(struct warp *w, const struct op *op, uint32_t lanes,
	const struct consan_texture *t, const struct fetch f[LANES])
{
	for EACH_LANE(l, lanes)
		for (unsigned k = 0; k < op->n; k++) {
			uint64_t v = op->type == TY_f16x2 ? result_of(op, t, &f[l], 2 * k)
				| result_of(op, t, &f[l], 2 * k + 1) << 16 : result_of(op, t, &f[l], k);

			memcpy(w->r + op->value[k] + l * op->reg, &v, op->reg);
		}
}

static enum step op_tex(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	uint32_t left = lanes, same;
	struct consan_texture t;
	struct fetch f[LANES];

	while (left) {
		if (!next_object(w, x, false, &left, &same, &t) || !fits(w, x, &t))
			return STEP_FAULT;
		if (t.linear_memory && !op->whole)
			return ex_refuse_op(w, x, "linear memory is read by index only");
		for EACH_LANE(l, same) {
			const struct point p = point_of(w, op, &t, l);

			if (op->gather)
				texture_gather(&t, &p, &f[l]);
			else
				texture_fetch(&t, &p, op->whole, &f[l]);
		}
		if (!read_taps(w, x, same, &t, f))
			return STEP_FAULT;
		set_results(w, op, same, &t, f);
	}
	if (op->resident != SLOT_NONE)
		ex_set_pred(w, op->resident, lanes, lanes);
	return STEP_NEXT;
}

/* ---- surfaces ---- */

/* The address of a lane's bytes; 0: out of bounds, for BEYOND_ZERO. False: a fault was raised. */
static bool surface_at(struct warp *w, const struct xop *x, const struct consan_texture *t,
	unsigned lane, uint64_t *at)
{
	const struct op *op = x->i.p;
	const unsigned bytes = op->n * op->size, texel = consan_texel_bytes(t->format) * t->channels;
	const int64_t limit[3] = { (int64_t)t->width * texel - bytes, (int64_t)t->height - 1,
		(int64_t)t->depth - 1 };
	int64_t i[3] = { 0 }, layer = 0;
	bool out = false;

	for (unsigned d = 0; d < op->dims; d++)
		i[d] = whole_at(w, op->coord[op->layered + d], lane);
	if (i[0] % bytes) {
		ex_fault(w, x, 1u << lane, FAULT_MISALIGNED, SP_GLOBAL, (uint64_t)i[0], bytes,
			"byte %lld of a row of a surface, for an access of %u bytes", (long long)i[0], bytes);
		return false;
	}
	for (unsigned d = 0; d < op->dims; d++) {
		out |= i[d] < 0 || i[d] > limit[d];
		i[d] = i[d] < 0 || limit[d] < 0 ? 0 : i[d] > limit[d] ? limit[d] : i[d];
	}
	if (op->layered) {
		layer = r32(w, op->coord[0])[lane];
		out |= layer >= t->layers;
		layer = layer < t->layers ? layer : (int64_t)t->layers - 1;
	}
	if (limit[0] < 0 || (out && op->beyond == BEYOND_TRAP)) {
		ex_fault(w, x, 1u << lane, FAULT_GLOBAL_OOB, SP_GLOBAL, t->at, bytes, "outside the surface of "
			"%u by %u by %u elements", t->width, t->height ? t->height : 1,
			t->depth ? t->depth : t->layers ? t->layers : 1);
		return false;
	}
	*at = out && op->beyond == BEYOND_ZERO ? 0 : t->at + (uint64_t)i[0] + (uint64_t)i[1] * t->pitch
		+ (uint64_t)(t->depth ? i[2] : layer) * t->slice;
	return true;
}

/* Sets the addresses of the lanes that access memory. False: a fault was raised. */
static bool surface_lanes(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct consan_texture *t, uint64_t at[LANES], uint32_t *in)
{
	*in = 0;
	if (!fits(w, x, t))
		return false;
	for EACH_LANE(l, lanes) {
		if (!surface_at(w, x, t, l, &at[l]))
			return false;
		*in |= at[l] ? 1u << l : 0;
	}
	return true;
}

static enum step op_suld(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	uint32_t left = lanes, same, in;
	uint64_t at[LANES] = { 0 };
	struct consan_texture t;

	while (left) {
		if (!next_object(w, x, true, &left, &same, &t) || !surface_lanes(w, x, same, &t, at, &in)
				|| !touch(w, x, in, at, op->n * op->size, MODE_READ, 0, 0))
			return STEP_FAULT;
		for EACH_LANE(l, same)
			for (unsigned k = 0; k < op->n; k++) {
				uint64_t v = 0;

				if (at[l])
					memcpy(&v, (const char *)(uintptr_t)at[l] + k * op->size, op->size);
				memcpy(w->r + op->value[k] + l * op->reg, &v, op->reg);
			}
	}
	return STEP_NEXT;
}

/* The lanes whose value another lane of the store overwrites with a different one. */
static uint32_t overwritten(uint32_t lanes, const uint64_t at[LANES],
	unsigned char value[LANES][MOST_BYTES], unsigned bytes)
{
	uint32_t lost = 0;

	for EACH_LANE(l, lanes)
		for (unsigned m = l + 1; m < LANES; m++)
			if (lanes >> m & 1 && at[m] == at[l] && memcmp(value[m], value[l], bytes))
				lost |= 1u << l;
	return lost;
}

static enum step op_sust(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	const unsigned bytes = op->n * op->size;
	unsigned char value[LANES][MOST_BYTES];
	uint32_t left = lanes, same, in;
	uint64_t at[LANES] = { 0 };
	struct consan_texture t;

	for EACH_LANE(m, lanes)
		for (unsigned k = 0; k < op->n; k++)
			memcpy(value[m] + k * op->size, w->r + op->value[k] + m * op->reg, op->size);
	while (left) {
		uint32_t unchanged = 0;

		if (!next_object(w, x, true, &left, &same, &t) || !surface_lanes(w, x, same, &t, at, &in))
			return STEP_FAULT;
		for EACH_LANE(l, in)
			if (ex_global_ok(w->worker, at[l], bytes, true)
					&& !memcmp((const void *)(uintptr_t)at[l], value[l], bytes))
				unchanged |= 1u << l;
		if (!touch(w, x, in, at, bytes, MODE_WRITE, overwritten(in, at, value, bytes), unchanged))
			return STEP_FAULT;
		for EACH_LANE(n, in)
			memcpy((void *)(uintptr_t)at[n], value[n], bytes);
	}
	ex_work(w);
	return STEP_NEXT;
}

/* ---- queries ---- */

static enum step op_query(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	uint32_t left = lanes, same;
	struct consan_texture t;

	while (left) {
		uint32_t v = 0;

		if (!next_object(w, x, op->surface, &left, &same, &t))
			return STEP_FAULT;
		switch (op->query) {
		case MOD_width: v = t.width; break;
		case MOD_height: v = t.height; break;
		case MOD_depth: v = t.depth; break;
		case MOD_array_size: v = t.cube ? t.layers / 6 : t.layers; break;
		case MOD_normalized_coords: v = t.normalized; break;
		}
		for EACH_LANE(l, same)
			r32(w, op->value[0])[l] = v;
	}
	return STEP_NEXT;
}

static enum step op_istypep(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	struct consan_texture t;
	uint32_t is = 0;

	for EACH_LANE(l, lanes)
		if (texture_find(ex_addr(w, op->handle, l), &t) && t.surface == op->surface)
			is |= 1u << l;
	ex_set_pred(w, op->value[0], lanes, is);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static bool take_handle(struct decoder *d, const struct ptx_operand *o, struct op *op)
{
	if (o->kind == PO_SYM || o->var)
		return dec_unsupported(d, "a texture or surface that a variable of the module names "
			"(.texref, .surfref): CUDA 12 removed such references");
	op->handle = dec_addr(d, o);
	return true;
}

static bool take_dims(struct decoder *d, const struct ptx_insn *i, struct op *op)
{
	switch (ptx_pick(i, MG_dim)) {
	case MOD_1d: op->dims = 1; return true;
	case MOD_2d: op->dims = 2; return true;
	case MOD_3d: op->dims = 3; return true;
	case MOD_a1d: op->dims = 1; op->layered = true; return true;
	case MOD_a2d: op->dims = 2; op->layered = true; return true;
	case MOD_cube: op->dims = 2; op->cube = true; return true;
	case MOD_acube: op->dims = 2; op->cube = op->layered = true; return true;
	default: return dec_unsupported(d, "multisample textures are not supported");
	}
}

/* [handle, {coordinates}] */
static bool take_place(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, struct op *op)
{
	const unsigned need = op->layered + (op->cube ? 3 : op->dims);
	const struct ptx_operand *c;
	unsigned n;

	if (o->kind != PO_TADDR)
		return dec_unsupported(d, "an operand without coordinates");
	if (o->n != 2)
		return dec_unsupported(d, "a texture with a sampler of its own is not supported");
	c = &o->list[1];
	n = c->kind == PO_VEC ? c->n : 1;
	if (n < need)
		return dec_unsupported(d, "%u coordinates, %u expected", n, need);
	if (!take_handle(d, &o->list[0], op))
		return false;
	for (unsigned k = 0; k < need; k++)
		op->coord[k] = dec_src(d, c->kind == PO_VEC ? &c->list[k] : c,
			op->layered && !k ? TY_u32 : t);
	return true;
}

/* The registers of the values, which are written or read. */
static bool take_values(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool dst,
	struct op *op)
{
	unsigned bits = 0;

	op->n = (uint8_t)(o->kind == PO_VEC ? o->n : 1);
	if (op->n > VALUES || op->n * op->size > MOST_BYTES)
		return dec_unsupported(d, "an access of %u values of %u bytes", op->n, op->size);
	for (unsigned k = 0; k < op->n; k++) {
		const struct ptx_operand *one = o->kind == PO_VEC ? &o->list[k] : o;

		op->value[k] = dst ? dec_dst(d, one, t) : dec_src(d, one, t);
		if (dec_bits(d, one))
			bits = dec_bits(d, one);
	}
	if (!bits)
		bits = ptx_type_bits(t);
	op->reg = bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
	return op->size <= op->reg || dec_unsupported(d, "an access to narrower registers");
}

static struct op *op_of(struct decoder *d, struct xop *x, xfn fn)
{
	struct op *op = dec_alloc(d, sizeof *op);

	*op = (struct op){ .resident = SLOT_NONE };
	x->i.p = op;
	x->fn = fn;
	return op;
}

static bool fetch(struct decoder *d, const struct ptx_insn *i, struct xop *x, struct op *op,
	unsigned operands)
{
	const struct ptx_operand *to = &i->operand[0];
	const enum ptx_type t = ptx_type_of(i, 0), c = ptx_type_of(i, 1);

	(void)x;
	if (!take_dims(d, i, op))
		return false;
	if (i->noperands != operands)
		return dec_unsupported(d, "coordinate offsets and depth textures are not supported");
	if (t != TY_u32 && t != TY_s32 && t != TY_f32 && t != TY_f16 && t != TY_f16x2)
		return dec_unsupported(d, "not supported for this type");
	if (c != TY_s32 && c != TY_f32)
		return dec_unsupported(d, "coordinates of this type");
	op->whole = c == TY_s32;
	op->type = (uint8_t)t;
	op->size = (uint8_t)(ptx_type_bits(t) / 8);
	if (to->kind == PO_PAIR) {
		op->resident = dec_dst(d, &to->list[1], TY_pred);
		to = &to->list[0];
	}
	return take_values(d, to, t, true, op) && take_place(d, &i->operand[1], c, op);
}

DECODER(tex)
{
	const bool level = ptx_has(i, MOD_tex_level), grad = ptx_has(i, MOD_grad);

	return fetch(d, i, x, op_of(d, x, op_tex), 2 + level + 2 * grad);
}

DECODER(tld4)
{
	static const enum ptx_mod name[] = { MOD_tld4_r, MOD_tld4_g, MOD_tld4_b, MOD_tld4_a };
	struct op *op = op_of(d, x, op_tex);

	op->gather = true;
	while (op->component < 3 && !ptx_has(i, name[op->component]))
		op->component++;
	if (!fetch(d, i, x, op, 2))
		return false;
	return (op->dims == 2 && !op->cube && !op->whole)
		|| dec_unsupported(d, "supported for two dimensions only");
}

static bool surface(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool load)
{
	const enum ptx_type t = ptx_type_of(i, 0);
	struct op *op = op_of(d, x, load ? op_suld : op_sust);

	op->beyond = ptx_has(i, MOD_zero) ? BEYOND_ZERO : ptx_has(i, MOD_tex_clamp) ? BEYOND_CLAMP
		: BEYOND_TRAP;
	op->size = (uint8_t)(ptx_type_bits(t) / 8);
	return take_dims(d, i, op) && take_values(d, &i->operand[!load], t, load, op)
		&& take_place(d, &i->operand[load], TY_s32, op);
}

DECODER(suld_b) { return surface(d, i, x, true); }
DECODER(sust_b) { return surface(d, i, x, false); }

static bool query(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool of_surface)
{
	struct op *op = op_of(d, x, op_query);

	op->surface = of_surface;
	op->query = (uint16_t)ptx_pick(i, MG_texture);
	if (i->noperands != 2 || (op->query != MOD_width && op->query != MOD_height
			&& op->query != MOD_depth && op->query != MOD_array_size
			&& (op->query != MOD_normalized_coords || of_surface)))
		return dec_unsupported(d, "this query is not supported");
	op->value[0] = dec_dst(d, &i->operand[0], TY_b32);
	return take_handle(d, &i->operand[1], op);
}

DECODER(txq) { return query(d, i, x, false); }
DECODER(suq) { return query(d, i, x, true); }

DECODER(istypep)
{
	struct op *op = op_of(d, x, op_istypep);

	if (ptx_has(i, MOD_tex_samplerref))
		return dec_unsupported(d, "samplers of their own are not supported");
	op->surface = ptx_has(i, MOD_tex_surfref);
	op->value[0] = dec_dst(d, &i->operand[0], TY_pred);
	return take_handle(d, &i->operand[1], op);
}
