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
	const unsigned rows = (ptx_has(i, MOD_x4) ? 32 : ptx_has(i, MOD_x2) ? 16 : 8)
		* (ptx_has(i, MOD_m16n16) ? 2 : 1);

	return rows >= 32 ? FULL : (1u << rows) - 1;
}

/* Of a row; the padding behind packed elements is not accessed. */
static unsigned matrix_bytes(const struct ptx_insn *i)
{
	const enum ptx_type t = ptx_type_of(i, 1);

	return t == TY_b6x16_p32 ? 12 : t == TY_b4x16_p64 ? 8 : 16;
}

static void access_matrix(const struct ptx_insn *i, struct event *e)
{
	e->lanes &= matrix_lanes(i);
	e->access.flags = ACCESS_MATRIX;
	e->access.bytes = matrix_bytes(i);
}

static void access_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct ptx_operand *a = &i->operand[0], *m = &i->operand[2];
	unsigned bytes = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	bool red = i->op == OP_red_async;

	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_BULK, 1u << l);
		struct event_bulk *b = &e.bulk;
		uint64_t at = record_value(c, r, a, l), mbar = record_value(c, r, m, l);
		struct signal s = { .site = e.site, .lanes = e.lanes, .cta = e.cta, .warp = e.warp,
			.op = ++c->ops, .tx = bytes };

		refused_async(c, warp, r, l, at, mbar, bytes, red);
		b->async_op = s.op;
		b->mode = red ? MODE_RMW : MODE_WRITE;
		b->generic_proxy = true;
		b->reduce = red;
		b->owner = record_owner(c, &e, at, true);
		b->mbarrier_owner = record_owner(c, &e, mbar, true);
		b->addr = OFFSET(at);
		b->bytes = bytes;
		b->tx_count = bytes;
		b->mbarrier = OFFSET(mbar);
		emit(c, &e);
		model_add_signal(model_of(c, b->mbarrier_owner, b->mbarrier), &s);
	}
}

/* Packed types are accessed element by element (PTX ISA 8.2.5). */
static uint32_t element_bytes(enum ptx_type t)
{
	const unsigned bits = ptx_type_atomic_bits(t);

	return bits < 8 ? 1 : bits / 8;
}

void record_access(const struct ptx_insn *i, struct event_access *a)
{
	enum ptx_effect effect = ptx_effect_of(i->op);
	bool rmw = effect == EF_RMW;
	struct wmma_part part;

	a->mode = rmw ? MODE_RMW : effect == EF_READ ? MODE_READ : MODE_WRITE;
	a->sem = ptx_sem_of(i, rmw ? SEM_RELAXED : SEM_WEAK);
	a->scope = ptx_scope_of(i, rmw ? SCOPE_GPU : SCOPE_NONE);
	if (a->sem == SEM_VOLATILE || a->sem == SEM_MMIO)
		a->scope = SCOPE_SYS; /* A04 */
	a->flags = i->op == OP_red ? ACCESS_REDUCTION : ptx_has(i, MOD_nc) ? ACCESS_NONCOHERENT : 0;
	a->bytes = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	a->element_bytes = element_bytes(ptx_type_of(i, 0));
	if (i->op == OP_discard)
		a->bytes = a->element_bytes = 128;
	if (a->mode == MODE_WRITE)
		a->flags |= ACCESS_VALUES_UNKNOWN;
	if (wmma_is(i) && wmma_part_of(i, &part)) {
		a->flags |= ACCESS_MATRIX;
		a->bytes = part.lane_bytes;
	}
}

void emit_access(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct ptx_operand *a = &i->operand[plan_address(i)];
	bool far = ptx_space_of(i, 0) != PS_shared, matrix = i->op == OP_ldmatrix || i->op == OP_stmatrix;
	struct event_access *x;
	struct event e;
	uint64_t at[32];

	if (matrix && gather_matrix(c, warp, r, a, r->lanes & matrix_lanes(i), i->op == OP_stmatrix))
		return;
	if (i->op == OP_st_async || i->op == OP_red_async) {
		access_async(c, warp, r);
		return;
	}
	e = record_event(c, warp, r->site, EV_ACCESS, r->lanes);
	x = &e.access;
	record_access(i, x);
	x->flags |= c->job->info[r->site].flag ? ACCESS_FLAG : 0;
	x->space = SP_SHARED;
	x->value = record_stored(c, r);
	if (x->value)
		x->flags &= (enum ev_access_flags)~ACCESS_VALUES_UNKNOWN;
	if (x->mode == MODE_RMW && record_site(c, r->site)->phase == PHASE_AFTER &&
			c->job->info[r->site].plan.before)
		e.kind = EV_OBSERVED;
	if (matrix)
		access_matrix(i, &e);
	if (!e.lanes)
		return;
	if (i->op != OP_st_bulk && e.kind == EV_ACCESS)
		refused_access(c, warp, r, a, e.lanes, x->bytes);
	for (uint32_t rest = e.lanes; rest;) {
		uint32_t same = rest;
		uint64_t first = record_value(c, r, a, (unsigned)__builtin_ctz(rest));

		if (far && c->info.nctas > 1) {
			same = 0;
			for EACH_LANE(l, rest)
				same |= record_value(c, r, a, l) >> 24 == first >> 24 ? 1u << l : 0;
		}
		e.lanes = same;
		x->owner = record_owner(c, &e, first, far);
		if (i->op == OP_st_bulk) {
			for EACH_LANE(l, same) {
				e.lanes = 1u << l;
				x->at.base = OFFSET(record_value(c, r, a, l));
				x->bytes = (uint32_t)record_value(c, r, &i->operand[1], l);
				refused_st_bulk(c, warp, r, l, record_value(c, r, a, l), x->bytes);
				if (x->bytes)
					emit(c, &e);
			}
		} else {
			record_addresses(c, &x->at, same, r, a, at);
			x->overwritten = c->job->info[r->site].plan.conflicts && !r->affine
				? r->base & same : 0;
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
		struct event_cp_async *a = &e.cp_async;
		uint32_t some = 0;

		if (rest) {
			a->source_bytes = read[__builtin_ctz(rest)];
			for EACH_LANE(l, rest)
				some |= (uint32_t)(read[l] == a->source_bytes) << l;
		}
		e.lanes = some | nothing;
		a->readers = some;
		a->bytes = size;
		a->source = from;
		record_addresses(c, &a->at, e.lanes, r, &i->operand[0], at);
		emit(c, &e);
		rest &= ~some;
		nothing = 0;
	} while (rest);
}

void emit_cp_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_CP_ASYNC_COMMIT, r->lanes);

	switch ((enum ptx_op)i->op) {
	case OP_cp_async:
		on_copy(c, warp, r);
		return;
	case OP_cp_async_commit_group:
		emit(c, &e);
		return;
	case OP_cp_async_wait_group:
	case OP_cp_async_wait_all:
		e.kind = EV_CP_ASYNC_WAIT;
		e.cp_async_wait.all = i->op == OP_cp_async_wait_all;
		e.cp_async_wait.pending = i->noperands ? (uint32_t)i->operand[0].imm : 0;
		emit(c, &e);
		return;
	default:
		break;
	}
	e.kind = EV_CP_ASYNC_ARRIVE;
	e.cp_async_arrive.noinc = ptx_has(i, MOD_noinc);
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		uint64_t at = record_value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));
		struct model *m;
		struct signal s;

		same = record_same(c, r, rest, &i->operand[0]);
		refused_mbar(c, warp, r, same, at, false);
		e.lanes = same;
		e.cp_async_arrive.addr = OFFSET(at);
		e.cp_async_arrive.async_op = ++c->ops;
		emit(c, &e);
		m = model_of(c, e.cta, OFFSET(at));
		s = (struct signal){ .site = e.site, .lanes = same, .cta = e.cta, .warp = e.warp,
			.op = e.cp_async_arrive.async_op, .count = (uint32_t)__builtin_popcount(same) };
		if (!e.cp_async_arrive.noinc)
			m->pending += s.count;
		model_add_signal(m, &s);
	}
}
