/* access: turns records of loads, stores, atomics, st.async and cp.async into events. */
#include "events.h"

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"
#include "shadow/shadow.h"

static unsigned vector_width(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_vec)) {
	case MOD_v2: return 2;
	case MOD_v4: return 4;
	case MOD_v8: return 8;
	default: return 1;
	}
}

/* The lanes whose addresses the instruction uses. */
static uint32_t matrix_lanes(const struct ptx_insn *i)
{
	return ptx_has(i, MOD_x4) ? FULL : ptx_has(i, MOD_x2) ? 0xffff : 0xff;
}

static void access_matrix(const struct ptx_insn *i, struct event *e)
{
	e->lanes &= matrix_lanes(i);
	e->flags = EVF_MATRIX;
	e->size = 16;
}

static void access_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct ptx_operand *a = &i->operand[0], *m = &i->operand[2];
	unsigned bytes = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	bool red = i->op == OP_red_async;

	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_BULK, 1u << l);
		uint64_t at = record_value(c, r, a, l), mbar = record_value(c, r, m, l);
		struct signal s = { .site = e.site, .lanes = e.lanes, .cta = e.cta, .warp = e.warp,
			.op = ++c->ops, .tx = bytes };

		refused_async(c, warp, r, l, at, mbar, bytes, red);
		e.op = s.op;
		e.mode = red ? EVM_RMW : EVM_WRITE;
		e.flags = (uint8_t)(EVF_GENERIC | (red ? EVF_REDUCE : 0));
		e.peer = record_owner(c, &e, at, true);
		e.mbar_peer = record_owner(c, &e, mbar, true);
		e.addr = OFFSET(at);
		e.size = bytes;
		e.tx = bytes;
		e.mbar = OFFSET(mbar);
		emit(c, &e);
		model_add_signal(model_of(c, e.mbar_peer, e.mbar), &s);
	}
}

void record_access(const struct ptx_insn *i, struct event *e)
{
	enum ptx_effect effect = ptx_effect_of(i->op);
	bool rmw = effect == EF_RMW;
	struct wmma_part part;

	e->mode = rmw ? EVM_RMW : effect == EF_READ ? EVM_READ : EVM_WRITE;
	e->sem = (uint8_t)ptx_sem_of(i, rmw ? SEM_RELAXED : SEM_WEAK);
	e->scope = (uint8_t)ptx_scope_of(i, rmw ? SCOPE_GPU : SCOPE_NONE);
	if (e->sem == SEM_VOLATILE || e->sem == SEM_MMIO)
		e->scope = SCOPE_SYS; /* A04 */
	e->flags = i->op == OP_red ? EVF_RED : ptx_has(i, MOD_nc) ? EVF_NC : 0;
	e->size = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	if (wmma_is(i) && wmma_part_of(i, &part)) {
		e->flags = EVF_MATRIX;
		e->size = part.lane_bytes;
	}
}

void emit_access(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct ptx_operand *a = &i->operand[plan_address(i)];
	bool far = ptx_space_of(i, 0) != PS_shared, matrix = i->op == OP_ldmatrix || i->op == OP_stmatrix;
	struct event e;
	uint64_t at[32];

	if (matrix && gather_matrix(c, warp, r, a, r->lanes & matrix_lanes(i), i->op == OP_stmatrix))
		return;
	if (i->op == OP_st_async || i->op == OP_red_async) {
		access_async(c, warp, r);
		return;
	}
	e = record_event(c, warp, r->site, EV_ACCESS, r->lanes);
	record_access(i, &e);
	e.space = SP_SHARED;
	if (e.mode == EVM_RMW && record_site(c, r->site)->phase == PHASE_AFTER)
		e.kind = EV_OBSERVED;
	if (matrix)
		access_matrix(i, &e);
	if (!e.lanes)
		return;
	if (i->op != OP_st_bulk && e.kind == EV_ACCESS)
		refused_access(c, warp, r, a, &e);
	for (uint32_t rest = e.lanes; rest;) {
		uint32_t same = rest;
		uint64_t first = record_value(c, r, a, (unsigned)__builtin_ctz(rest));

		if (far && c->info.nctas > 1) {
			same = 0;
			for EACH_LANE(l, rest)
				same |= record_value(c, r, a, l) >> 24 == first >> 24 ? 1u << l : 0;
		}
		e.lanes = same;
		e.peer = record_owner(c, &e, first, far);
		if (i->op == OP_st_bulk) {
			for EACH_LANE(l, same) {
				e.lanes = 1u << l;
				e.addr = OFFSET(record_value(c, r, a, l));
				e.size = (uint32_t)record_value(c, r, &i->operand[1], l);
				refused_st_bulk(c, warp, r, l, record_value(c, r, a, l), e.size);
				if (e.size)
					emit(c, &e);
			}
		} else {
			record_addresses(c, &e, r, a, at);
			e.count = c->job->info[r->site].plan.conflicts && !r->affine ? r->base & same : 0;
			emit(c, &e);
		}
		rest &= ~same;
	}
}

/* ---- cp.async ---- */

static void on_copy(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct plan *p = &c->job->info[r->site].plan;
	uint32_t size = (uint32_t)i->operand[2].imm, nothing = 0, rest, read[32];
	uint64_t at[32], from[32];

	if (p->nvalues > 1)
		record_values(c, r, p->value[1].o, r->lanes, at);
	for (unsigned l = 0; l < 32; l++) {
		from[l] = c->warp[warp].source[l].at;
		read[l] = size;
		if (!(r->lanes >> l & 1))
			continue;
		if (p->nvalues > 1)
			read[l] = p->value[1].kind == VAL_PRED ? (at[l] ? 0 : size) : (uint32_t)at[l];
		else if (i->noperands > 3 && i->operand[3].kind == PO_IMM)
			read[l] = (uint32_t)i->operand[3].imm;
		nothing |= (uint32_t)!read[l] << l;
	}
	refused_cp(c, warp, r, from, read);
	if (size == 16 && gather_copy(c, warp, r, &i->operand[0]))
		return;
	rest = r->lanes & ~nothing;
	do {
		struct event e = record_event(c, warp, r->site, EV_CP_ASYNC, r->lanes);
		uint32_t some = 0;

		if (rest) {
			e.src_size = (uint16_t)read[__builtin_ctz(rest)];
			for EACH_LANE(l, rest)
				some |= (uint32_t)(read[l] == e.src_size) << l;
		}
		e.lanes = some | nothing;
		e.mask = some;
		e.size = size;
		e.lane_src = from;
		record_addresses(c, &e, r, &i->operand[0], at);
		emit(c, &e);
		rest &= ~some;
		nothing = 0;
	} while (rest);
}

void emit_cp_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_CP_COMMIT, r->lanes);

	switch ((enum ptx_op)i->op) {
	case OP_cp_async:
		on_copy(c, warp, r);
		return;
	case OP_cp_async_commit_group:
		emit(c, &e);
		return;
	case OP_cp_async_wait_group:
	case OP_cp_async_wait_all:
		e.kind = EV_CP_WAIT;
		e.flags = i->op == OP_cp_async_wait_all ? EVF_ALL : 0;
		e.count = i->noperands ? (uint32_t)i->operand[0].imm : 0;
		emit(c, &e);
		return;
	default:
		break;
	}
	e.kind = EV_CP_ARRIVE;
	e.flags = ptx_has(i, MOD_noinc) ? EVF_NOINC : 0;
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		uint64_t at = record_value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));
		struct model *m;
		struct signal s;

		same = record_same(c, r, rest, &i->operand[0]);
		refused_mbar(c, warp, r, same, at, false);
		e.lanes = same;
		e.peer = record_owner(c, &e, at, false);
		e.addr = OFFSET(at);
		e.op = ++c->ops;
		emit(c, &e);
		m = model_of(c, e.peer, OFFSET(at));
		s = (struct signal){ .site = e.site, .lanes = same, .cta = e.cta, .warp = e.warp,
			.op = e.op, .count = (uint32_t)__builtin_popcount(same) };
		if (!e.flags)
			m->pending += s.count;
		model_add_signal(m, &s);
	}
}
