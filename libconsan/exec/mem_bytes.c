/* mem_bytes: st.bulk and discard, which write blocks of memory. */
#include "internal.h"

/* ---- st.bulk: o[1] bytes (64 bits) of zeros; o[2], o[3]: the address ---- */

static enum step st_bulk(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct xaddr a = { x->o[2], (int32_t)x->o[3] };
	const l64 *n = r64(w, x->o[1]);

	for EACH_LANE(l, lanes) {
		struct refusal why;
		struct xplace p;

		if (!n[l])
			continue;
		if (!ex_resolve(w, x, 1u << l, (enum ptx_space)x->i.u, ex_addr(w, a, l), n[l], 8,
				true, &p))
			return STEP_FAULT;
		if (refuse_st_bulk(&why, p.space, p.addr, n[l]))
			return ex_refuse(w, x, 1u << l, &why);
		if (w->sink) {
			struct event e = ex_event(w, x, EV_ACCESS, 1u << l);

			e.access.space = SP_SHARED;
			e.access.mode = MODE_WRITE;
			e.access.bytes = (uint32_t)n[l];
			e.access.owner = (uint16_t)p.cta->rank;
			e.access.at.base = p.addr;
			ex_emit(w->cluster, &e);
		}
		memset(p.host, 0, n[l]);
	}
	ex_work(w);
	return STEP_NEXT;
}

DECODER(st_bulk)
{
	struct xaddr a = dec_addr(d, &i->operand[0]);
	const struct ptx_operand *v = &i->operand[2];

	if (v->kind != PO_IMM || v->imm)
		return dec_unsupported(d, "st.bulk of another value than 0");
	x->fn = st_bulk;
	x->o[1] = dec_src(d, &i->operand[1], TY_u64);
	x->o[2] = a.slot;
	x->o[3] = (uint32_t)a.imm;
	x->i.u = ptx_space_of(i, 0);
	return true;
}

/* ---- discard.L2: 128 bytes become undefined; it races as a weak write does ---- */

#define DISCARDED 128u

static enum step discard(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct xaddr a = { x->o[2], (int32_t)x->o[3] };
	uint64_t addr[LANES];
	struct event e;

	for EACH_LANE(l, lanes) {
		struct xplace p;

		if (!ex_resolve(w, x, 1u << l, PS_global, ex_addr(w, a, l), DISCARDED, DISCARDED, true, &p))
			return STEP_FAULT;
		addr[l] = p.addr;
	}
	if (!w->sink || !w->sink->want_global)
		return STEP_NEXT;
	e = ex_event(w, x, EV_ACCESS, lanes);
	e.access.space = SP_GLOBAL;
	e.access.mode = MODE_WRITE;
	e.access.bytes = DISCARDED;
	ex_lanes(&e.access.at, lanes, addr);
	ex_emit(w->cluster, &e);
	return STEP_NEXT;
}

DECODER(discard)
{
	struct xaddr a = dec_addr(d, &i->operand[0]);

	x->fn = discard;
	x->o[2] = a.slot;
	x->o[3] = (uint32_t)a.imm;
	return true;
}
