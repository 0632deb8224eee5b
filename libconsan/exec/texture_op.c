/* texture_op: tex, tld4, txq, suq and istypep, with handles of texture and surface objects. Fetches are
 * reads outside the memory model. */
#include "texture_op.h"
#include "libconsan/ptx/opcodes.h"

#include "num.h"

/* ---- objects ---- */

bool tex_next_object(struct warp *w, const struct xop *x, bool surface, uint32_t *left,
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

/* The faces of a cubemap are layers of its surface. */
bool tex_fits(struct warp *w, const struct xop *x, const struct consan_texture *t)
{
	const struct op *op = x->i.p;

	if (t->surface ? op->layered == (t->layers > 0) && op->dims == texture_dims(t)
			: op->layered == t->layered && op->cube == t->cube && op->dims == texture_dims(t))
		return true;
	ex_refuse_op(w, x, "the object has other dimensions than the instruction");
	return false;
}

/* ---- accesses ---- */

bool tex_touch(struct warp *w, const struct xop *x, uint32_t lanes, const uint64_t at[LANES],
	const struct tex_access *access)
{
	const bool writes = access->mode & MODE_WRITE, reduces = access->mode == MODE_RMW;
	struct event_access *a;
	struct xplace unused;
	struct event e;

	for EACH_LANE(l, lanes)
		if (!ex_global_ok(w->worker, at[l], access->bytes, writes)
				&& !ex_resolve(w, x, 1u << l, PS_global, at[l], access->bytes, 1, writes, &unused))
			return false;
	if (!lanes || !w->sink || !w->sink->want_global)
		return true;
	e = ex_event(w, x, EV_ACCESS, lanes);
	a = &e.access;
	a->space = SP_GLOBAL;
	a->mode = access->mode;
	a->sem = reduces ? SEM_RELAXED : SEM_WEAK;
	a->scope = reduces ? SCOPE_GPU : SCOPE_NONE;
	a->flags = reduces ? ACCESS_REDUCTION : writes ? 0 : ACCESS_NONCOHERENT;
	a->bytes = a->element_bytes = access->bytes;
	a->overwritten = access->lost;
	a->unchanged = access->unchanged;
	a->owner = (uint16_t)w->cta->rank;
	ex_lanes(&a->at, lanes, at);
	ex_emit(w->cluster, &e);
	return true;
}

/* ---- textures ---- */

static struct detail detail_at(const struct warp *w, const struct op *op, const struct consan_texture *t,
	unsigned lane)
{
	float by[2][3] = { { 0 } };

	if (op->detail == DETAIL_LEVEL)
		return texture_level(t, op->whole ? tex_whole_at(w, op->lod, lane) : rf32(w, op->lod)[lane]);
	if (op->detail == DETAIL_BASE)
		return texture_base(t);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned d = 0; d < op->dims; d++)
			by[k][d] = rf32(w, op->gradient[k][d])[lane];
	return texture_gradient(t, by[0], by[1]);
}

static struct point point_of(const struct warp *w, const struct op *op,
	const struct consan_texture *t, unsigned lane)
{
	const unsigned first = op->layered, given = op->cube ? 3 : op->dims;
	const uint32_t layers = t->cube ? t->layers / 6 : t->layers;
	struct point p = { 0 };

	for (unsigned d = 0; d < given; d++)
		p.at[d] = op->whole ? tex_whole_at(w, op->coord[first + d], lane)
			: rf32(w, op->coord[first + d])[lane];
	if (op->layered) {
		const uint32_t layer = r32(w, op->coord[0])[lane];

		p.layer = layer < layers ? layer : layers - 1;
	}
	if (op->cube)
		p.layer = p.layer * 6 + texture_face(&p);
	for (unsigned d = 0; d < op->dims; d++)
		if (op->offset[d] != SLOT_NONE)
			p.offset[d] = tex_whole_at(w, op->offset[d], lane);
	p.detail = detail_at(w, op, t, lane);
	return p;
}

static bool read_taps(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct consan_texture *t, const struct fetch f[LANES])
{
	const struct tex_access access = { .bytes = consan_texel_bytes(t->format) * t->channels,
		.mode = MODE_READ };

	for (unsigned k = 0; k < MOST_TAPS; k++) {
		uint64_t at[LANES] = { 0 };
		uint32_t readers = 0;

		for EACH_LANE(l, lanes)
			if (k < f[l].n && f[l].tap[k].at) {
				at[l] = f[l].tap[k].at;
				readers |= 1u << l;
			}
		if (!tex_touch(w, x, readers, at, &access))
			return false;
		if (!readers && k >= LEVEL_TAPS)
			break; /* usually there is one level */
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
		if (!tex_next_object(w, x, false, &left, &same, &t) || !tex_fits(w, x, &t))
			return STEP_FAULT;
		if (t.linear_memory && !op->whole)
			return ex_refuse_op(w, x, "linear memory is read by index only");
		if (t.cube && t.levels && op->detail == DETAIL_GRADIENT)
			return ex_refuse_op(w, x, "the level of a cubemap by gradients is documented nowhere");
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

/* ---- queries ---- */

static enum step op_query(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	uint32_t left = lanes, same;
	struct consan_texture t;

	while (left) {
		uint32_t v = 0;

		if (!tex_next_object(w, x, op->surface, &left, &same, &t))
			return STEP_FAULT;
		switch (op->query) {
		case MOD_array_size: v = t.cube ? t.layers / 6 : t.layers; break;
		case MOD_normalized_coords: v = t.normalized; break;
		case MOD_num_mipmap_levels: v = t.levels ? t.levels : 1; break;
		case MOD_memory_layout: v = 0; break; /* surfaces are arrays, whose layout is not linear */
		}
		for EACH_LANE(l, same) {
			const uint32_t level = op->lod == SLOT_NONE ? 0 : r32(w, op->lod)[l];

			r32(w, op->value[0])[l] = op->query == MOD_width ? texture_extent(&t, 0, level)
				: op->query == MOD_height ? texture_extent(&t, 1, level)
				: op->query == MOD_depth ? texture_extent(&t, 2, level) : v;
		}
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

bool tex_take_handle(struct decoder *d, const struct ptx_operand *o, struct op *op)
{
	if (o->kind == PO_SYM || o->var)
		return dec_unsupported(d, "a texture or surface that a variable of the module names "
			"(.texref, .surfref): CUDA 12 removed such references");
	op->handle = dec_addr(d, o);
	return true;
}

bool tex_take_dims(struct decoder *d, const struct ptx_insn *i, struct op *op)
{
	switch (ptx_pick(i, MG_dim)) {
	case MOD_1d: op->dims = 1; return true;
	case MOD_2d: op->dims = 2; return true;
	case MOD_3d: op->dims = 3; return true;
	case MOD_a1d: op->dims = 1; op->layered = true; return true;
	case MOD_a2d: op->dims = 2; op->layered = true; return true;
	case MOD_cube: op->dims = 2; op->cube = true; return true;
	case MOD_acube: op->dims = 2; op->cube = op->layered = true; return true;
	default: return dec_unsupported(d, "no call of CUDA makes a multisample texture");
	}
}

bool tex_take_place(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, struct op *op)
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
	if (!tex_take_handle(d, &o->list[0], op))
		return false;
	for (unsigned k = 0; k < need; k++)
		op->coord[k] = dec_src(d, c->kind == PO_VEC ? &c->list[k] : c,
			op->layered && !k ? TY_u32 : t);
	return true;
}

bool tex_take_values(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, bool dst,
	struct op *op)
{
	const unsigned n = o->kind == PO_VEC ? o->n : 1;
	unsigned reg;

	if (n > VALUES || n * op->size > MOST_BYTES)
		return dec_unsupported(d, "an access of %u values of %u bytes", n, op->size);
	op->n = (uint8_t)n;
	if (!dec_elements(d, o, t, dst, op->value, &reg))
		return false;
	op->reg = (uint8_t)reg;
	return (op->size && op->size <= reg) || dec_unsupported(d, "an access to values of this type");
}

struct op *tex_op(struct decoder *d, struct xop *x, xfn fn)
{
	struct op *op = dec_alloc(d, sizeof *op);

	*op = (struct op){ .resident = SLOT_NONE, .lod = SLOT_NONE,
		.offset = { SLOT_NONE, SLOT_NONE, SLOT_NONE } };
	x->i.p = op;
	x->fn = fn;
	return op;
}

/* A vector of at least n elements, or the only one. */
static bool take_vector(struct decoder *d, const struct ptx_operand *o, enum ptx_type t, unsigned n,
	uint32_t to[3])
{
	if ((o->kind == PO_VEC ? o->n : 1) < n)
		return dec_unsupported(d, "a vector of %u elements is needed", n);
	for (unsigned k = 0; k < n; k++)
		to[k] = dec_src(d, o->kind == PO_VEC ? &o->list[k] : o, t);
	return true;
}

/* The operands from `at` on: the level of detail or the gradients, then offsets. */
static bool take_details(struct decoder *d, const struct ptx_insn *i, struct op *op, unsigned at)
{
	const unsigned n = op->cube ? 3 : op->dims;

	op->detail = ptx_has(i, MOD_tex_level) ? DETAIL_LEVEL : ptx_has(i, MOD_grad) ? DETAIL_GRADIENT
		: DETAIL_BASE;
	if (i->noperands < at + (op->detail == DETAIL_LEVEL) + 2 * (op->detail == DETAIL_GRADIENT))
		return dec_unsupported(d, "the level of detail is missing");
	if (op->detail == DETAIL_LEVEL)
		op->lod = dec_src(d, &i->operand[at++], op->whole ? TY_s32 : TY_f32);
	for (unsigned k = 0; op->detail == DETAIL_GRADIENT && k < 2; k++)
		if (!take_vector(d, &i->operand[at++], TY_f32, n, op->gradient[k]))
			return false;
	if (i->noperands > at && i->operand[at].kind == PO_VEC) {
		if (op->cube)
			return dec_unsupported(d, "offsets in a cubemap");
		if (!take_vector(d, &i->operand[at++], TY_s32, op->dims, op->offset))
			return false;
	}
	return i->noperands == at || dec_unsupported(d, "depth textures are not supported: how they compare is "
		"documented nowhere");
}

static bool fetch(struct decoder *d, const struct ptx_insn *i, struct op *op)
{
	const struct ptx_operand *to = &i->operand[0];
	const enum ptx_type t = ptx_type_of(i, 0), c = ptx_type_of(i, 1);

	if (!tex_take_dims(d, i, op))
		return false;
	if (t != TY_u32 && t != TY_s32 && t != TY_f32 && (op->gather || (t != TY_f16 && t != TY_f16x2)))
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
	if (!tex_take_values(d, to, t, true, op))
		return false;
	if (t == TY_f16x2 && op->n != 2)
		return dec_unsupported(d, "four channels are two values of this type");
	return tex_take_place(d, &i->operand[1], c, op) && take_details(d, i, op, 2);
}

DECODER(tex) { return fetch(d, i, tex_op(d, x, op_tex)); }

DECODER(tld4)
{
	static const enum ptx_mod name[] = { MOD_tld4_r, MOD_tld4_g, MOD_tld4_b, MOD_tld4_a };
	struct op *op = tex_op(d, x, op_tex);

	op->gather = true;
	while (op->component < 3 && !ptx_has(i, name[op->component]))
		op->component++;
	if (!fetch(d, i, op))
		return false;
	return (op->dims == 2 && !op->cube && !op->layered && !op->whole)
		|| dec_unsupported(d, "supported for two dimensions only, as are arrays for it "
			"(cudaArrayTextureGather)");
}

static const struct { enum ptx_mod mod; bool texture, surface; const char *why; } queries[] = {
	{ MOD_width, true, true, NULL }, { MOD_height, true, true, NULL }, { MOD_depth, true, true, NULL },
	{ MOD_array_size, true, true, NULL }, { MOD_normalized_coords, true, false, NULL },
	{ MOD_num_mipmap_levels, true, false, NULL }, { MOD_memory_layout, false, true, NULL },
	{ MOD_channel_data_type, false, false, "CUDA has no enumeration of these types" },
	{ MOD_channel_order, false, false, "CUDA has no enumeration of these orders" },
	{ MOD_filter_mode, false, false, "the ISA gives the modes no numbers" },
	{ MOD_addr_mode_0, false, false, "the ISA gives the modes no numbers" },
	{ MOD_addr_mode_1, false, false, "the ISA gives the modes no numbers" },
	{ MOD_addr_mode_2, false, false, "the ISA gives the modes no numbers" },
	{ MOD_num_samples, false, false, "no call of CUDA makes a multisample texture" },
};

static bool query(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool of_surface)
{
	const bool level = ptx_has(i, MOD_tex_level);
	struct op *op = tex_op(d, x, op_query);
	size_t k = 0;

	op->surface = of_surface;
	while (k < ARRAY_SIZE(queries) && !ptx_has(i, queries[k].mod))
		k++;
	if (k == ARRAY_SIZE(queries) || !(of_surface ? queries[k].surface : queries[k].texture))
		return dec_unsupported(d, "this query is not supported%s%s", k < ARRAY_SIZE(queries)
			&& queries[k].why ? ": " : "", k < ARRAY_SIZE(queries) && queries[k].why ? queries[k].why : "");
	op->query = (uint16_t)queries[k].mod;
	if (i->noperands != 2u + level || (level && (of_surface || k > 2)))
		return dec_unsupported(d, "this query is not supported");
	if (level)
		op->lod = dec_src(d, &i->operand[2], TY_u32);
	op->value[0] = dec_dst(d, &i->operand[0], TY_b32);
	return tex_take_handle(d, &i->operand[1], op);
}

DECODER(txq) { return query(d, i, x, false); }
DECODER(suq) { return query(d, i, x, true); }

DECODER(istypep)
{
	struct op *op = tex_op(d, x, op_istypep);

	if (ptx_has(i, MOD_tex_samplerref))
		return dec_unsupported(d, "samplers of their own are not supported");
	op->surface = ptx_has(i, MOD_tex_surfref);
	op->value[0] = dec_dst(d, &i->operand[0], TY_pred);
	return tex_take_handle(d, &i->operand[1], op);
}
