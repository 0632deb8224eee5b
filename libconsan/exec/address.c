/* address: instructions that turn addresses into other addresses. */
#include "internal.h"

#define READ(slot, wide, l) ((wide) ? r64(w, slot)[l] : r32(w, slot)[l])

static void put(struct warp *w, uint32_t slot, bool wide, unsigned l, uint64_t v)
{
	if (wide)
		r64(w, slot)[l] = v;
	else
		r32(w, slot)[l] = (uint32_t)v;
}

/* o[0] = o[1] + i.u, widths in o[2] (destination) and o[3] (source) */
static enum step op_offset(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes)
		put(w, x->o[0], x->o[2], l, READ(x->o[1], x->o[3], l) + x->i.u);
	return STEP_NEXT;
}

static enum step op_param_generic(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		uint64_t a = READ(x->o[1], x->o[3], l);

		put(w, x->o[0], x->o[2], l, a < PARAM_WINDOW_BYTES ? a + ex_param_window
			: a - PARAM_WINDOW_BYTES + ex_local_window);
	}
	return STEP_NEXT;
}

static enum step op_generic_param(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		uint64_t a = READ(x->o[1], x->o[3], l);

		put(w, x->o[0], x->o[2], l, a - ex_param_window < PARAM_WINDOW_BYTES
			? a - ex_param_window : a - ex_local_window + PARAM_WINDOW_BYTES);
	}
	return STEP_NEXT;
}

/* Mixed widths (.u64 destination, 32-bit source, or the reverse) occur with .shared. */
static bool is_wide(const struct decoder *d, const struct ptx_insn *i, unsigned k)
{
	const unsigned bits = dec_bits(d, &i->operand[k]);

	return (bits ? bits : ptx_type_bits(ptx_type_of(i, 0))) == 64;
}

static enum ptx_type width(bool wide)
{
	return wide ? TY_b64 : TY_b32;
}

static void operands(struct decoder *d, const struct ptx_insn *i, struct xop *x)
{
	x->o[2] = is_wide(d, i, 0);
	x->o[3] = is_wide(d, i, 1);
	x->o[0] = dec_dst(d, &i->operand[0], width(x->o[2]));
	x->o[1] = dec_src(d, &i->operand[1], width(x->o[3]));
}

DECODER(cvta)
{
	bool to = ptx_has(i, MOD_to);

	operands(d, i, x);
	x->fn = op_offset;
	x->pure = true;
	switch (ptx_space_of(i, 0)) {
	case PS_shared:
	case PS_shared_cluster:
		x->i.u = ex_shared_window;
		break;
	case PS_local:
		x->i.u = ex_local_window;
		break;
	case PS_param:
		x->fn = to ? op_generic_param : op_param_generic;
		break;
	case PS_global:
	case PS_const:
	case PS_none:
	case PS_reg:
	case PS_sreg:
		break;
	}
	if (to)
		x->i.u = -x->i.u;
	return true;
}

static enum step op_isspacep(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t yes = 0;

	for EACH_LANE(l, lanes) {
		uint64_t a = READ(x->o[1], x->o[3], l), shared = a - ex_shared_window;
		bool in_shared = shared < SHARED_WINDOW_BYTES;
		bool own = in_shared && SHARED_RANK(shared) == w->cta->rank;
		bool local = a - ex_local_window < LOCAL_WINDOW_BYTES;
		bool param = a - ex_param_window < PARAM_WINDOW_BYTES;
		struct exec_range r;
		bool is = false;

		switch ((enum ptx_space)x->i.u) {
		case PS_shared: is = own; break;
		case PS_shared_cluster: is = in_shared; break;
		case PS_local: is = local; break;
		case PS_param: is = param; break;
		case PS_const: is = mem_lookup(w->worker->grid->device, a, &r) && r.read_only; break;
		case PS_global: is = !in_shared && !local && !param; break;
		case PS_none: case PS_reg: case PS_sreg: break;
		}
		yes |= (uint32_t)is << l;
	}
	ex_set_pred(w, x->o[0], lanes, yes);
	return STEP_NEXT;
}

DECODER(isspacep)
{
	x->o[0] = dec_dst(d, &i->operand[0], TY_pred);
	x->o[3] = dec_bits(d, &i->operand[1]) != 32;
	x->o[1] = dec_src(d, &i->operand[1], width(x->o[3]));
	x->fn = op_isspacep;
	x->i.u = ptx_space_of(i, 0);
	return true;
}

/* i.u: start of shared addresses, 0 or the generic window */
static enum step op_mapa(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l32 *rank = r32(w, x->o[4]);
	const struct shared_view v = ex_view(w);
	struct refusal why;

	for EACH_LANE(l, lanes) {
		uint64_t a = READ(x->o[1], x->o[3], l) - x->i.u;

		if ((x->i.u && a >= SHARED_WINDOW_BYTES && refuse_mapa(&why, a + x->i.u)) ||
				refuse_rank(&why, &v, a, rank[l]))
			return ex_refuse(w, x, 1u << l, &why);
		put(w, x->o[0], x->o[2], l, (a & 0xffffff) + ((uint64_t)rank[l] << 24) + x->i.u);
	}
	return STEP_NEXT;
}

DECODER(mapa)
{
	operands(d, i, x);
	x->o[4] = dec_src(d, &i->operand[2], TY_u32);
	x->fn = op_mapa;
	x->i.u = ptx_space_of(i, 0) == PS_none ? ex_shared_window : 0;
	return true;
}

static enum step op_getctarank(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes)
		r32(w, x->o[0])[l] = SHARED_RANK(READ(x->o[1], x->o[3], l) - x->i.u);
	return STEP_NEXT;
}

DECODER(getctarank)
{
	x->o[0] = dec_dst(d, &i->operand[0], TY_u32);
	x->o[3] = is_wide(d, i, 1);
	x->o[1] = dec_src(d, &i->operand[1], width(x->o[3]));
	x->fn = op_getctarank;
	x->pure = true;
	x->i.u = ptx_space_of(i, 0) == PS_none ? ex_shared_window : 0;
	return true;
}
