/* replace: tensor maps changed by a kernel: tensormap.replace and
 * tensormap.cp_fenceproxy. */
#include "async.h"
#include "tensormap.h"

/* o[0..1] address, o[2] ordinal (u32), o[3] value (u32, or u64 if i.b[B_WIDE]) */
enum { B_SPACE, B_FIELD, B_WIDE };

static void emit_access(struct warp *w, const struct xop *x, uint32_t lanes, const struct xplace *p,
	enum ev_mode mode)
{
	/* one lane represents a warp that acts together */
	struct event e = ex_event(w, x, EV_ACCESS, lanes & -lanes);

	e.access.space = p->space;
	e.access.owner = (uint16_t)(p->cta ? p->cta->rank : w->cta->rank);
	e.access.mode = mode;
	e.access.bytes = CONSAN_TENSORMAP_BYTES;
	e.access.at.base = p->addr;
	if (p->space == SP_SHARED || w->sink->want_global)
		ex_emit(w->cluster, &e);
	if (p->space != SP_GLOBAL)
		return;
	e = ex_event(w, x, EV_TENSOR_MAP, lanes);
	e.tensor_map.mode = MODE_WRITE;
	e.tensor_map.addr = p->addr;
	ex_emit(w->cluster, &e);
}

static enum step op_replace(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes) {
		unsigned char map[CONSAN_TENSORMAP_BYTES];
		struct xplace p;
		const char *why;

		if (!ex_resolve(w, x, 1u << l, (enum ptx_space)x->i.b[B_SPACE],
				ex_addr(w, get_addr(x, 0), l), sizeof map, 64, true, &p))
			return STEP_FAULT;
		memcpy(map, p.host, sizeof map);
		why = tensormap_replace(map, (enum tensor_field)x->i.b[B_FIELD],
			r32(w, x->o[2])[l],
			x->i.b[B_WIDE] ? r64(w, x->o[3])[l] : r32(w, x->o[3])[l]);
		if (why)
			return ex_fault(w, x, 1u << l, FAULT_TENSORMAP, p.space, p.addr, sizeof map,
				"%s", why);
		if (w->sink)
			emit_access(w, x, 1u << l, &p, MODE_WRITE);
		memcpy(p.host, map, sizeof map);
	}
	ex_work(w);
	return STEP_NEXT;
}

DECODER(tensormap_replace)
{
	static const struct { uint16_t mod; uint8_t field; } fields[] = {
		{ MOD_global_address, TF_ADDRESS }, { MOD_rank, TF_RANK },
		{ MOD_box_dim, TF_BOX }, { MOD_global_dim, TF_DIM },
		{ MOD_global_stride, TF_STRIDE }, { MOD_element_stride, TF_ELEM_STRIDE },
		{ MOD_elemtype, TF_TYPE }, { MOD_interleave_layout, TF_INTERLEAVE },
		{ MOD_swizzle_mode, TF_SWIZZLE }, { MOD_fill_mode, TF_FILL },
		{ MOD_swizzle_atomicity, TF_ATOMICITY },
	};
	bool ord = i->noperands > 2;
	size_t k = 0;

	while (k < ARRAY_SIZE(fields) && !ptx_has(i, (enum ptx_mod)fields[k].mod))
		k++;
	if (k == ARRAY_SIZE(fields))
		return dec_unsupported(d, "this field of a tensor map");
	x->i.b[B_FIELD] = fields[k].field;
	x->i.b[B_SPACE] = (uint8_t)ptx_space_of(i, 0);
	x->i.b[B_WIDE] = ptx_has(i, MOD_b64);
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	x->o[2] = ord ? dec_src(d, &i->operand[1], TY_b32) : dec_const(d, 32, 0);
	x->o[3] = dec_src(d, &i->operand[ord ? 2 : 1], x->i.b[B_WIDE] ? TY_b64 : TY_b32);
	x->fn = op_replace;
	return true;
}

/* o[0..1] destination, o[2..3] source: the same in all lanes */
static enum step op_publish(struct warp *w, const struct xop *x, uint32_t lanes)
{
	unsigned l = (unsigned)__builtin_ctz(lanes);
	struct xplace from, to;
	enum step step;

	if (!warp_aligned(w, x, lanes, &step))
		return step;
	if (!ex_resolve(w, x, 1u << l, PS_shared, ex_addr(w, get_addr(x, 2), l),
			CONSAN_TENSORMAP_BYTES, 128, false, &from) ||
			!ex_resolve(w, x, 1u << l, PS_global, ex_addr(w, get_addr(x, 0), l),
			CONSAN_TENSORMAP_BYTES, 128, true, &to))
		return STEP_FAULT;
	if (w->sink) {
		struct event e = ex_event(w, x, EV_FENCE_PROXY, lanes);

		emit_access(w, x, 1u << l, &from, MODE_READ);
		emit_access(w, x, lanes, &to, MODE_WRITE);
		e.fence_proxy = (struct event_fence_proxy){ .proxy = PROXY_TENSORMAP_RELEASE,
			.sem = SEM_RELEASE, .scope = (enum ev_scope)x->i.b[0], .space = SP_GLOBAL,
			.addr = to.addr };
		ex_emit(w->cluster, &e);
	}
	memcpy(to.host, from.host, CONSAN_TENSORMAP_BYTES);
	ex_work(w);
	return STEP_NEXT;
}

DECODER(tensormap_cp_fenceproxy)
{
	put_addr(x, 0, dec_addr(d, &i->operand[0]));
	put_addr(x, 2, dec_addr(d, &i->operand[1]));
	x->i.b[0] = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
	x->fn = op_publish;
	return true;
}
