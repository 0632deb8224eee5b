/* surface_op: suld.b, sust and sured, with handles of surface objects. Loads are reads outside the memory
 * model (section 8, "does not apply to texture and surface accesses"), stores are plain writes, reductions
 * are atomic among each other. */
#include "texture_op.h"
#include "libconsan/ptx/opcodes.h"

#include "num.h"

enum reduction { REDUCE_ADD, REDUCE_MIN, REDUCE_MAX, REDUCE_AND, REDUCE_OR };

/* ---- where ---- */

static unsigned texel_bytes(const struct consan_texture *t)
{
	return consan_texel_bytes(t->format) * t->channels;
}

/* The address of a lane's bytes; 0: out of bounds, for BEYOND_ZERO. False: a fault was raised. */
static bool surface_at(struct warp *w, const struct xop *x, const struct consan_texture *t,
	unsigned lane, uint64_t *at)
{
	const struct op *op = x->i.p;
	const unsigned texel = texel_bytes(t), bytes = op->samples ? texel : op->n * op->size;
	const int64_t limit[3] = { (int64_t)t->width * texel - bytes, (int64_t)t->height - 1,
		(int64_t)t->depth - 1 };
	int64_t i[3] = { 0 }, layer = 0;
	bool out = false;

	for (unsigned d = 0; d < op->dims; d++)
		i[d] = tex_whole_at(w, op->coord[op->layered + d], lane);
	i[0] *= op->samples ? texel : 1;
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
		ex_fault(w, x, 1u << lane, FAULT_GLOBAL_OOB, SP_GLOBAL, t->level[0].at, bytes, "outside the surface of "
			"%u by %u by %u elements", t->width, t->height ? t->height : 1,
			t->depth ? t->depth : t->layers ? t->layers : 1);
		return false;
	}
	*at = out && op->beyond == BEYOND_ZERO ? 0 : t->level[0].at + (uint64_t)i[0]
		+ (uint64_t)i[1] * t->level[0].pitch
		+ (uint64_t)(t->depth ? i[2] : layer) * t->level[0].slice;
	return true;
}

/* Sets the addresses of the lanes that access memory. False: a fault was raised. */
static bool surface_lanes(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct consan_texture *t, uint64_t at[LANES], uint32_t *in)
{
	*in = 0;
	if (!tex_fits(w, x, t))
		return false;
	for EACH_LANE(l, lanes) {
		if (!surface_at(w, x, t, l, &at[l]))
			return false;
		*in |= at[l] ? 1u << l : 0;
	}
	return true;
}

/* ---- loads and stores ---- */

static enum step op_suld(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	const struct tex_access access = { .bytes = op->n * op->size, .mode = MODE_READ };
	uint32_t left = lanes, same, in;
	uint64_t at[LANES] = { 0 };
	struct consan_texture t;

	while (left) {
		if (!tex_next_object(w, x, true, &left, &same, &t) || !surface_lanes(w, x, same, &t, at, &in)
				|| !tex_touch(w, x, in, at, &access))
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

/* A float, or an integer, as a component of this format. What does not fit is the nearest value that does,
 * and floats are rounded to zero, as on an H100 (2026-11-23); the ISA says only that they are converted. */
static uint32_t component_of(uint8_t format, uint32_t v)
{
	const int32_t s = (int32_t)v;

	switch (format) {
	case CONSAN_TEXEL_U8: return v > UINT8_MAX ? UINT8_MAX : v;
	case CONSAN_TEXEL_U16: return v > UINT16_MAX ? UINT16_MAX : v;
	case CONSAN_TEXEL_S8: return (uint32_t)(s > INT8_MAX ? INT8_MAX : s < INT8_MIN ? INT8_MIN : s);
	case CONSAN_TEXEL_S16: return (uint32_t)(s > INT16_MAX ? INT16_MAX : s < INT16_MIN ? INT16_MIN : s);
	case CONSAN_TEXEL_F16: return (uint16_t)num_narrow32(v, NUM_FMT_f16, NUM_RZ, false);
	default: return v;
	}
}

/* The bytes that a lane stores. ISA, sust.p: components without a source element are unpredictable. */
static void bytes_of(const struct warp *w, const struct op *op, const struct consan_texture *t, unsigned lane,
	unsigned char to[MOST_BYTES])
{
	const unsigned size = op->samples ? consan_texel_bytes(t->format) : op->size;

	memset(to, 0, MOST_BYTES);
	for (unsigned k = 0; k < op->n && (!op->samples || k < t->channels); k++) {
		uint64_t v = 0;

		memcpy(&v, w->r + op->value[k] + lane * op->reg, op->size);
		if (op->samples)
			v = component_of(t->format, (uint32_t)v);
		memcpy(to + k * size, &v, size);
	}
}

static enum step op_sust(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	unsigned char value[LANES][MOST_BYTES];
	uint32_t left = lanes, same, in;
	uint64_t at[LANES] = { 0 };
	struct consan_texture t;

	while (left) {
		struct tex_access access = { .mode = MODE_WRITE };

		if (!tex_next_object(w, x, true, &left, &same, &t) || !surface_lanes(w, x, same, &t, at, &in))
			return STEP_FAULT;
		access.bytes = op->samples ? texel_bytes(&t) : op->n * op->size;
		for EACH_LANE(m, in)
			bytes_of(w, op, &t, m, value[m]);
		for EACH_LANE(l, in)
			if (ex_global_ok(w->worker, at[l], access.bytes, true)
					&& !memcmp((const void *)(uintptr_t)at[l], value[l], access.bytes))
				access.unchanged |= 1u << l;
		access.lost = overwritten(in, at, value, access.bytes);
		if (!tex_touch(w, x, in, at, &access))
			return STEP_FAULT;
		for EACH_LANE(n, in)
			memcpy((void *)(uintptr_t)at[n], value[n], access.bytes);
	}
	ex_work(w);
	return STEP_NEXT;
}

/* ---- reductions ---- */

static uint64_t reduced(unsigned how, bool is_signed, uint64_t a, uint64_t b)
{
	const bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;

	switch ((enum reduction)how) {
	case REDUCE_ADD: return a + b;
	case REDUCE_MIN: return less ? a : b;
	case REDUCE_MAX: return less ? b : a;
	case REDUCE_AND: return a & b;
	case REDUCE_OR: return a | b;
	}
	return a;
}

/* Other workers may access the memory. */
static void reduce(uint64_t at, unsigned how, enum ptx_type t, uint64_t by)
{
	const bool is_signed = ptx_type_class(t) == 's';

	if (ptx_type_bits(t) == 64) {
		uint64_t *p = (uint64_t *)(uintptr_t)at, was = __atomic_load_n(p, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(p, &was, reduced(how, is_signed, was, by), true,
				__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
	} else {
		uint32_t *p = (uint32_t *)(uintptr_t)at, was = __atomic_load_n(p, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(p, &was, (uint32_t)reduced(how, is_signed,
				is_signed ? (uint64_t)(int64_t)(int32_t)was : was,
				is_signed ? (uint64_t)(int64_t)(int32_t)by : (uint32_t)by), true,
				__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
	}
}

static enum step op_sured(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct op *op = x->i.p;
	const struct tex_access access = { .bytes = op->size, .mode = MODE_RMW };
	uint32_t left = lanes, same, in;
	uint64_t at[LANES] = { 0 };
	struct consan_texture t;

	while (left) {
		enum ptx_type type = (enum ptx_type)op->type;

		if (!tex_next_object(w, x, true, &left, &same, &t) || !surface_lanes(w, x, same, &t, at, &in))
			return STEP_FAULT;
		if (op->samples && (t.channels != 1 || (t.format != CONSAN_TEXEL_U32
				&& t.format != CONSAN_TEXEL_S32)))
			return ex_refuse_op(w, x, "a reduction of texels that are no integers of 32 bits");
		if (op->samples)
			type = t.format == CONSAN_TEXEL_U32 ? TY_u32 : TY_s32;
		if (!tex_touch(w, x, in, at, &access))
			return STEP_FAULT;
		for EACH_LANE(l, in) {
			uint64_t by = 0;

			memcpy(&by, w->r + op->value[0] + l * op->reg, op->size);
			reduce(at[l], op->reduction, type, by);
		}
	}
	ex_work(w);
	return STEP_NEXT;
}

/* ---- decoding ---- */

static bool surface(struct decoder *d, const struct ptx_insn *i, struct op *op, bool load)
{
	const enum ptx_type t = ptx_type_of(i, 0);

	op->beyond = ptx_has(i, MOD_zero) ? BEYOND_ZERO : ptx_has(i, MOD_tex_clamp) ? BEYOND_CLAMP
		: BEYOND_TRAP;
	op->size = (uint8_t)(ptx_type_bits(t) / 8);
	op->type = (uint8_t)t;
	return tex_take_dims(d, i, op) && tex_take_values(d, &i->operand[!load], t, load, op)
		&& tex_take_place(d, &i->operand[load], TY_s32, op);
}

DECODER(suld_b) { return surface(d, i, tex_op(d, x, op_suld), true); }
DECODER(sust_b) { return surface(d, i, tex_op(d, x, op_sust), false); }

DECODER(sust_p)
{
	struct op *op = tex_op(d, x, op_sust);

	op->samples = true;
	return ptx_type_of(i, 0) == TY_b32 ? surface(d, i, op, false)
		: dec_unsupported(d, "the ISA has no other type than .b32");
}

/* ISA, sured: .add of .u32, .s32 and .u64; .min and .max of these and .s64; .and and .or of .b32, and of
 * .b64 as of 8.1; sured.p of .b32 and .b64, which stand for the integers that the surface has. */
static bool sured(struct decoder *d, const struct ptx_insn *i, struct xop *x, bool samples)
{
	static const struct { enum ptx_mod mod; enum reduction how; bool bits; } kinds[] = {
		{ MOD_add, REDUCE_ADD, false }, { MOD_min, REDUCE_MIN, false }, { MOD_max, REDUCE_MAX, false },
		{ MOD_and, REDUCE_AND, true }, { MOD_or, REDUCE_OR, true },
	};
	const enum ptx_type t = ptx_type_of(i, 0);
	const bool bits = t == TY_b32 || t == TY_b64;
	const enum ptx_mod mod = ptx_pick(i, MG_redop);
	struct op *op = tex_op(d, x, op_sured);
	size_t k = 0;

	while (k < ARRAY_SIZE(kinds) && kinds[k].mod != mod)
		k++;
	if (samples && t != TY_b32)
		return dec_unsupported(d, "no array of CUDA has integers of 64 bits");
	if (k == ARRAY_SIZE(kinds) || (!samples && kinds[k].bits != bits)
			|| (!bits && t != TY_u32 && t != TY_s32 && t != TY_u64 && t != TY_s64))
		return dec_unsupported(d, "this reduction of this type");
	op->samples = samples;
	op->reduction = (uint8_t)kinds[k].how;
	return surface(d, i, op, false) && (op->n == 1 || dec_unsupported(d, "a reduction of several values"));
}

DECODER(sured_b) { return sured(d, i, x, false); }
DECODER(sured_p) { return sured(d, i, x, true); }
