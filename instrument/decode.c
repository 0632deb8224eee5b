/* decode: what a record means, by its instruction: the same events that the
 * executor makes of it. The order is merge.c's. */
#include "merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../libconsan/wg_desc.h"

#define FULL UINT32_MAX
#define EACH_LANE(l, mask) (uint32_t l##_rest = (mask), l; \
	l##_rest && (l = (uint32_t)__builtin_ctz(l##_rest), true); l##_rest &= l##_rest - 1)

void emit(struct dcluster *c, const struct event *e)
{
	c->result.events++;
	if (c->sink)
		c->sink->event(c->sink, e);
}

static const struct rewrite_site *site_of(const struct dcluster *c, uint32_t site)
{
	return &c->job->l->code->site.at[site];
}

static struct event event_of(const struct dcluster *c, uint32_t warp, uint32_t site,
	enum ev_kind kind, uint32_t lanes)
{
	uint32_t per = c->info.warps_per_cta;

	return (struct event){ .kind = (uint8_t)kind, .cta = (uint16_t)(warp / per),
		.peer = (uint16_t)(warp / per), .warp = (uint16_t)(warp % per), .lanes = lanes,
		.site = c->job->l->site[site] };
}

/* ---- values ---- */

/* Value k of the plan, of a lane. A constant is the instruction's. */
static uint64_t value(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	unsigned lane)
{
	const struct plan *p = &c->job->info[r->site].plan;
	unsigned word = 0;

	for (unsigned k = 0; k < p->nvalues; k++) {
		bool wide = p->value[k].kind == VAL_U64 || p->value[k].kind == VAL_MAP;

		if (p->value[k].o == o) {
			if (p->class == PLAN_ADDRESS)
				return r->affine ? r->base + (uint32_t)(r->stride * ((int)lane -
					__builtin_ctz(r->lanes))) : r->words[lane];
			return record_word(c, r, lane, word) |
				(wide ? (uint64_t)record_word(c, r, lane, word + 1) << 32 : 0);
		}
		word += wide ? 2 : 1;
	}
	return o->kind == PO_IMM ? (uint64_t)o->imm : 0;
}

#define OFFSET(a) ((uint32_t)(a) & 0xffffffu)

/* Addresses without .cluster are this CTA's. */
static uint16_t owner(const struct dcluster *c, const struct event *e, uint64_t a, bool cluster)
{
	uint32_t rank = (uint32_t)a >> 24;

	return cluster && rank < c->info.nctas ? (uint16_t)rank : e->cta;
}

static enum ev_sem sem_of(const struct ptx_insn *i, enum ev_sem none)
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
	default: return none;
	}
}

static enum ev_scope scope_of(const struct ptx_insn *i, enum ev_scope none)
{
	switch (ptx_pick(i, MG_scope)) {
	case MOD_cta: return SCOPE_CTA;
	case MOD_cluster: return SCOPE_CLUSTER;
	case MOD_gpu: case MOD_gl: return SCOPE_GPU;
	case MOD_sys: return SCOPE_SYS;
	default: return none;
	}
}

/* ---- accesses ---- */

/* The offsets of all lanes, affine or not. */
static void put_addresses(struct dcluster *c, struct event *e, const struct record *r,
	const struct ptx_operand *o, uint64_t at[32])
{
	unsigned first = (unsigned)__builtin_ctz(r->lanes);

	if (c->job->info[r->site].plan.class == PLAN_ADDRESS && r->affine) {
		e->stride = r->stride;
		e->addr = OFFSET(r->base) - (uint64_t)((int64_t)r->stride * (int)first);
		return;
	}
	if (c->job->info[r->site].plan.class == PLAN_ADDRESS)
		for (unsigned l = 0; l < 32; l++)
			at[l] = OFFSET(r->words[l]);
	else
		for EACH_LANE(l, e->lanes)
			at[l] = OFFSET(value(c, r, o, l));
	e->addr = at[__builtin_ctz(e->lanes)];
	e->lane_addr = at;
}

static unsigned vector_width(const struct ptx_insn *i)
{
	switch (ptx_pick(i, MG_vec)) {
	case MOD_v2: return 2;
	case MOD_v4: return 4;
	case MOD_v8: return 8;
	default: return 1;
	}
}

static void access_matrix(const struct ptx_insn *i, struct event *e)
{
	unsigned n = ptx_has(i, MOD_x4) ? 4 : ptx_has(i, MOD_x2) ? 2 : 1;

	e->lanes &= n == 4 ? FULL : (1u << 8 * n) - 1;
	e->flags = EVF_MATRIX;
	e->size = 16;
}

static void access_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	const struct ptx_operand *a = &i->operand[0], *m = &i->operand[2];
	unsigned bytes = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	bool red = i->op == OP_red_async;

	for EACH_LANE(l, r->lanes) {
		struct event e = event_of(c, warp, r->site, EV_BULK, 1u << l);
		uint64_t at = value(c, r, a, l), mbar = value(c, r, m, l);
		struct signal s = { .site = e.site, .lanes = e.lanes, .cta = e.cta, .warp = e.warp,
			.op = ++c->ops, .tx = bytes };

		e.op = s.op;
		e.mode = red ? EVM_RMW : EVM_WRITE;
		e.flags = (uint8_t)(EVF_GENERIC | (red ? EVF_REDUCE : 0));
		e.peer = owner(c, &e, at, true);
		e.mbar_peer = owner(c, &e, mbar, true);
		e.addr = OFFSET(at);
		e.size = bytes;
		e.tx = bytes;
		e.mbar = OFFSET(mbar);
		emit(c, &e);
		model_fly(model_of(c, e.mbar_peer, e.mbar), &s);
	}
}

static void on_access(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	enum ptx_effect effect = ptx_effect_of((enum ptx_op)i->op);
	const struct ptx_operand *a = &i->operand[plan_address(i)];
	bool rmw = effect == EF_RMW, far = ptx_space_of(i, 0) != PS_shared;
	struct event e = event_of(c, warp, r->site, EV_ACCESS, r->lanes);
	uint64_t at[32];

	if (i->op == OP_st_async || i->op == OP_red_async) {
		access_async(c, warp, r);
		return;
	}
	e.space = SP_SHARED;
	e.mode = rmw ? EVM_RMW : effect == EF_READ ? EVM_READ : EVM_WRITE;
	e.sem = (uint8_t)sem_of(i, rmw ? SEM_RELAXED : SEM_WEAK);
	e.scope = (uint8_t)scope_of(i, rmw ? SCOPE_GPU : SCOPE_NONE);
	e.flags = i->op == OP_red ? EVF_RED : 0;
	e.size = ptx_type_bits(ptx_type_of(i, 0)) / 8 * vector_width(i);
	if (i->op == OP_ldmatrix || i->op == OP_stmatrix)
		access_matrix(i, &e);
	if (!e.lanes)
		return;
	for (uint32_t rest = e.lanes; rest;) {
		uint32_t same = rest;
		uint64_t first = value(c, r, a, (unsigned)__builtin_ctz(rest));

		if (far && c->info.nctas > 1) {
			same = 0;
			for EACH_LANE(l, rest)
				same |= value(c, r, a, l) >> 24 == first >> 24 ? 1u << l : 0;
		}
		e.lanes = same;
		e.peer = owner(c, &e, first, far);
		if (i->op == OP_st_bulk) {
			for EACH_LANE(l, same) {
				e.lanes = 1u << l;
				e.addr = OFFSET(value(c, r, a, l));
				e.size = (uint32_t)value(c, r, &i->operand[1], l);
				emit(c, &e);
			}
		} else {
			put_addresses(c, &e, r, a, at);
			emit(c, &e);
		}
		rest &= ~same;
	}
}

/* ---- cp.async ---- */

static void on_copy(struct dcluster *c, uint32_t warp, const struct record *r)
{
	static const uint64_t none[32];
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	const struct plan *p = &c->job->info[r->site].plan;
	uint32_t size = (uint32_t)i->operand[2].imm, nothing = 0, rest, read[32];
	uint64_t at[32];

	for (unsigned l = 0; l < 32; l++) {
		read[l] = size;
		if (!(r->lanes >> l & 1))
			continue;
		if (p->nvalues > 1)
			read[l] = p->value[1].kind == VAL_PRED
				? (value(c, r, p->value[1].o, l) ? 0 : size)
				: (uint32_t)value(c, r, p->value[1].o, l);
		else if (i->noperands > 3 && i->operand[3].kind == PO_IMM)
			read[l] = (uint32_t)i->operand[3].imm;
		nothing |= (uint32_t)!read[l] << l;
	}
	rest = r->lanes & ~nothing;
	do {
		struct event e = event_of(c, warp, r->site, EV_CP_ASYNC, r->lanes);
		uint32_t some = 0;

		if (rest) {
			e.src_size = (uint16_t)read[__builtin_ctz(rest)];
			for EACH_LANE(l, rest)
				some |= (uint32_t)(read[l] == e.src_size) << l;
		}
		e.lanes = some | nothing;
		e.mask = some;
		e.size = size;
		e.lane_src = none;
		put_addresses(c, &e, r, &i->operand[0], at);
		emit(c, &e);
		rest &= ~some;
		nothing = 0;
	} while (rest);
}

/* Lanes of `rest` that have the same value as its first. */
static uint32_t alike(const struct dcluster *c, const struct record *r, uint32_t rest,
	const struct ptx_operand *o)
{
	uint64_t first = value(c, r, o, (unsigned)__builtin_ctz(rest));
	uint32_t same = 0;

	for EACH_LANE(l, rest)
		same |= value(c, r, o, l) == first ? 1u << l : 0;
	return same;
}

static void on_cp_async(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct event e = event_of(c, warp, r->site, EV_CP_COMMIT, r->lanes);

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
		uint64_t at = value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));
		struct model *m;
		struct signal s;

		same = alike(c, r, rest, &i->operand[0]);
		e.lanes = same;
		e.peer = owner(c, &e, at, false);
		e.addr = OFFSET(at);
		e.op = ++c->ops;
		emit(c, &e);
		m = model_of(c, e.peer, OFFSET(at));
		s = (struct signal){ .site = e.site, .lanes = same, .cta = e.cta, .warp = e.warp,
			.op = e.op, .count = (uint32_t)__builtin_popcount(same) };
		if (!e.flags)
			m->pending += s.count;
		model_fly(m, &s);
	}
}

/* ---- bulk copies ---- */

static bool find_box(struct dcluster *c, const struct record *r, const struct plan_bulk *b,
	unsigned lane, struct event *e)
{
	const struct decode_launch *l = c->job->l;
	struct decode_box box = { 0 };
	uint64_t map = value(c, r, &b->other->list[0], lane);

	if (!l->box || !l->box(l->user, map, (uint32_t)e->addr, &box)) {
		c->result.unknown_maps++;
		return false;
	}
	e->size = box.extent;
	e->tx = box.bytes;
	e->spans = box.spans;
	e->nspans = (uint16_t)box.nspans;
	return true;
}

static void fly_bulk(struct dcluster *c, const struct event *e, bool pair)
{
	uint32_t ranks = e->flags & EVF_MULTICAST ? e->mask : 1u << e->peer;

	for EACH_LANE(rank, ranks) {
		struct signal s = { .site = e->site, .lanes = e->lanes, .cta = e->cta, .warp = e->warp,
			.op = e->op, .tx = e->tx };
		uint32_t peer = e->flags & EVF_MULTICAST ? rank : e->mbar_peer;

		if (pair && e->flags & EVF_MULTICAST)
			peer = (rank & ~1u) | (e->mbar_peer & 1);
		if (peer < c->info.nctas)
			model_fly(model_of(c, peer, e->mbar), &s);
	}
}

static void on_bulk_copy(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct plan_bulk b = plan_bulk_of(i);
	bool reduces = i->op == OP_cp_reduce_async_bulk || i->op == OP_cp_reduce_async_bulk_tensor;
	bool far = ptx_space_of(i, b.copy == COPY_STORE ? 1 : 0) == PS_shared_cluster;

	for EACH_LANE(l, r->lanes) {
		struct event e = event_of(c, warp, r->site, EV_BULK, 1u << l);
		uint64_t at = value(c, r, b.shared, l), mbar, src[32];

		e.flags = (uint8_t)((b.tensor ? EVF_TENSOR : 0) | (reduces ? EVF_REDUCE : 0) |
			(b.multicast ? EVF_MULTICAST : 0));
		e.op = ++c->ops;
		e.mbar = EV_NO_MBAR;
		e.peer = owner(c, &e, at, far);
		e.addr = OFFSET(at);
		e.mode = b.copy == COPY_STORE ? EVM_READ : reduces ? EVM_RMW : EVM_WRITE;
		if (b.size)
			e.size = (uint32_t)value(c, r, b.size, l);
		e.tx = e.size;
		if (b.tensor && !find_box(c, r, &b, l, &e))
			continue;
		if (b.copy == COPY_PEER) {
			src[l] = OFFSET(value(c, r, b.other, l));
			e.lane_src = src;
		}
		if (b.copy == COPY_STORE) {
			e.tx = 0;
			emit(c, &e);
			continue;
		}
		mbar = value(c, r, b.mbar, l);
		e.mbar = OFFSET(mbar);
		e.mbar_peer = owner(c, &e, mbar, far);
		e.mask = b.mask ? (uint32_t)value(c, r, b.mask, l) & 0xffff : 0;
		emit(c, &e);
		fly_bulk(c, &e, ptx_has(i, MOD_cta_group_2));
	}
}

static void on_bulk(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct event e = event_of(c, warp, r->site, EV_BULK_COMMIT, r->lanes);

	if (i->op == OP_cp_async_bulk_commit_group) {
		emit(c, &e);
	} else if (i->op == OP_cp_async_bulk_wait_group) {
		e.kind = EV_BULK_WAIT;
		e.count = (uint32_t)i->operand[0].imm;
		e.flags = ptx_has(i, MOD_read) ? EVF_READ : 0;
		emit(c, &e);
	} else {
		on_bulk_copy(c, warp, r);
	}
}

/* ---- mbarriers ---- */

static void on_arrive(struct dcluster *c, uint32_t warp, const struct record *r, unsigned flags)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	unsigned a = plan_address(i);
	const struct ptx_operand *o = &i->operand[a], *n = i->noperands > a + 1u ? o + 1 : NULL;

	if (ptx_has(i, MOD_noComplete))
		flags |= EVF_NOCOMPLETE;
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = event_of(c, warp, r->site, EV_MB_ARRIVE, rest);
		unsigned first = (unsigned)__builtin_ctz(rest), many;
		uint64_t at = value(c, r, o, first);
		uint32_t amount = n ? (uint32_t)value(c, r, n, first) : 1;

		same = alike(c, r, rest, o);
		if (n)
			same = alike(c, r, same, n);
		many = (unsigned)__builtin_popcount(same);
		e.lanes = same;
		e.peer = owner(c, &e, at, true);
		e.addr = OFFSET(at);
		e.flags = (uint8_t)flags;
		e.sem = (uint8_t)sem_of(i, SEM_RELEASE);
		e.scope = (uint8_t)scope_of(i, SCOPE_NONE);
		e.count = flags & EVF_EXPECT ? 1 : amount;
		e.tx = flags & EVF_EXPECT ? amount : 0;
		emit(c, &e);
		model_arrive(c, model_of(c, e.peer, OFFSET(at)), e.count * many, e.tx * many,
			flags & EVF_DROP);
	}
}

static void on_test(struct dcluster *c, uint32_t warp, const struct record *r, bool tries)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	unsigned a = plan_address(i);
	bool parity = ptx_has(i, MOD_parity);

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = event_of(c, warp, r->site, EV_MB_TEST, rest);
		unsigned first = (unsigned)__builtin_ctz(rest);
		uint64_t at = value(c, r, &i->operand[a], first), want = 0;
		struct model *m;

		same = alike(c, r, rest, &i->operand[a]);
		if (parity) {
			want = value(c, r, &i->operand[a + 1], first) & 1;
			same = alike(c, r, same, &i->operand[a + 1]);
		}
		e.lanes = same;
		e.peer = owner(c, &e, at, false);
		e.addr = OFFSET(at);
		e.flags = (uint8_t)(EVF_TRUE | (parity ? EVF_PARITY : 0) | (tries ? EVF_TRY : 0));
		e.sem = (uint8_t)sem_of(i, SEM_ACQUIRE);
		e.scope = (uint8_t)scope_of(i, SCOPE_NONE);
		m = model_of(c, e.peer, OFFSET(at));
		if (!parity) /* the hardware's tokens are opaque: the phase that must be over */
			want = m->phase && (m->pending == m->expected || m->tx) ? m->phase - 1 : m->phase;
		model_wait(c, m, parity, want);
		e.tx = (int64_t)want;
		emit(c, &e);
	}
}

static void on_mbarrier(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	enum ev_kind kind = EV_MB_INIT;

	switch ((enum ptx_op)i->op) {
	case OP_mbarrier_test_wait: on_test(c, warp, r, false); return;
	case OP_mbarrier_try_wait: on_test(c, warp, r, true); return;
	case OP_mbarrier_arrive: on_arrive(c, warp, r, 0); return;
	case OP_mbarrier_arrive_expect_tx: on_arrive(c, warp, r, EVF_EXPECT); return;
	case OP_mbarrier_arrive_drop: on_arrive(c, warp, r, EVF_DROP); return;
	case OP_mbarrier_arrive_drop_expect_tx: on_arrive(c, warp, r, EVF_DROP | EVF_EXPECT); return;
	case OP_mbarrier_init: kind = EV_MB_INIT; break;
	case OP_mbarrier_inval: kind = EV_MB_INVAL; break;
	case OP_mbarrier_expect_tx: kind = EV_MB_EXPECT; break;
	case OP_mbarrier_complete_tx: kind = EV_MB_COMPLETE; break;
	default: return;
	}
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct event e = event_of(c, warp, r->site, kind, 1u << l);
		uint64_t at = value(c, r, &i->operand[0], l);
		uint32_t n = i->noperands > 1 ? (uint32_t)value(c, r, &i->operand[1], l) : 0;
		struct model *m;

		same = 1u << l;
		if (kind == EV_MB_INIT) { /* lanes that do the same do it once */
			same = alike(c, r, rest, &i->operand[0]);
			same = alike(c, r, same, &i->operand[1]);
			e.lanes = same;
		}
		e.peer = owner(c, &e, at, kind == EV_MB_EXPECT || kind == EV_MB_COMPLETE);
		e.addr = OFFSET(at);
		e.sem = (uint8_t)sem_of(i, kind == EV_MB_INIT || kind == EV_MB_INVAL ? SEM_WEAK : SEM_RELAXED);
		e.scope = (uint8_t)scope_of(i, SCOPE_NONE);
		if (kind == EV_MB_INIT)
			e.count = n;
		else if (kind != EV_MB_INVAL)
			e.tx = n;
		emit(c, &e);
		m = model_of(c, e.peer, OFFSET(at));
		if (kind == EV_MB_INIT || kind == EV_MB_INVAL)
			model_init(m, n);
		else if (kind == EV_MB_EXPECT)
			m->tx += n;
		else
			model_complete(c, m, n);
	}
}

/* ---- registers of wgmma ---- */

/* What rewrite_between() says, once for each pair of places. */
static const struct way_cache *way(struct dcluster *c, uint32_t from, uint32_t to)
{
	uint64_t key = ((uint64_t)from << 32 | to) + 1;
	struct way_cache *w = &c->way[(from * 31 + to) % WAYS];
	uint32_t note[4096];

	if (w->key == key)
		return w;
	w->key = key;
	w->n = rewrite_between(c->job->l->code, c->job->l->func, from, to, note, 4096);
	free(w->note);
	w->note = base_alloc((w->n + 1) * sizeof *w->note);
	memcpy(w->note, note, w->n * sizeof *w->note);
	return w;
}

static void tell_note(struct dcluster *c, uint32_t warp, uint32_t index, uint32_t lanes)
{
	const struct rewrite *code = c->job->l->code;
	const struct rewrite_note *n = &code->note.at[index];
	struct event e = event_of(c, warp, 0, EV_REGS, lanes);

	e.site = c->job->l->site[code->site.n + code->batch.n + index];
	e.flags = n->insn->op == OP_mov ? EVF_MOVE : 0;
	e.regs = n->reg;
	e.nregs_d = n->nread;
	e.mode = EVM_READ;
	if (n->nread)
		emit(c, &e);
	e.regs = n->reg + n->nread;
	e.nregs_d = n->nwritten;
	e.mode = EVM_WRITE;
	if (n->nwritten)
		emit(c, &e);
}

/* The warp comes to an instruction of which it has a record: what it did on
 * its way with the registers of wgmma. */
static void tell_way(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t lanes)
{
	const struct rewrite_func *f = c->job->l->func;
	struct dwarp *w = &c->warp[warp];
	const struct way_cache *way_here;
	uint32_t to;

	if (!f->note_of)
		return;
	to = (uint32_t)(i - f->func->insn);
	if (w->past == to + 1)
		return;
	way_here = way(c, w->past - 1, to);
	for (uint32_t k = 0; k < way_here->n; k++)
		tell_note(c, warp, way_here->note[k], lanes);
	if (f->note_of[to])
		tell_note(c, warp, f->note_of[to] - 1, lanes);
	w->past = to + 1;
}

/* ---- wgmma ---- */

struct mma { unsigned n; bool a_regs, a_mn, b_mn; };

static struct mma mma_of(const struct ptx_insn *i)
{
	struct mma m = { .a_regs = i->operand[1].kind == PO_VEC };
	int64_t imm[4] = { 1, 1, 0, 0 };
	unsigned rows, depth, n = 0;

	ptx_shape(ptx_pick(i, MG_shape), &rows, &m.n, &depth);
	for (unsigned k = 4; k < i->noperands && n < 4; k++) {
		if (n == 2 && m.a_regs)
			n = 3;
		imm[n++] = i->operand[k].imm;
	}
	m.a_mn = imm[2];
	m.b_mn = imm[3];
	return m;
}

/* words: those of this mma in the record of its group. */
static void on_mma(struct dcluster *c, uint32_t first, uint32_t site, const struct ptx_insn *i,
	uint32_t id, const uint32_t *words)
{
	struct event e = event_of(c, first, site, EV_WG_MMA, FULL);
	struct mma m = mma_of(i);
	struct ev_span span[640];
	uint32_t piece[512], rows[32], regs[132];
	struct wg_desc d;
	unsigned n = 0, nd = 0;

	e.site = id;
	e.op = ++c->ops;
	if (!m.a_regs) {
		d = wg_desc_decode(words[0] | (uint64_t)words[1] << 32);
		wg_desc_pieces(&d, m.a_mn, 64, piece);
		words += 2;
	}
	for (unsigned k = 0; k < 4; k++) {
		e.part[k] = (uint16_t)n;
		if (m.a_regs)
			continue;
		wg_desc_rows(piece, m.a_mn, k, rows);
		n += wg_desc_spans(rows, 32, span + n);
	}
	e.part[4] = (uint16_t)n;
	d = wg_desc_decode(words[0] | (uint64_t)words[1] << 32);
	wg_desc_pieces(&d, m.b_mn, m.n, piece);
	n += wg_desc_spans(piece, 2 * m.n, span + n);
	words += 2;
	e.part[5] = (uint16_t)n;
	e.spans = span;
	e.nspans = (uint16_t)n;
	e.flags = (i->operand[3].kind == PO_IMM ? i->operand[3].imm != 0 : words[0]) ? EVF_SCALE_D : 0;
	e.tx = (int64_t)(m.n | (uint64_t)ptx_type_of(i, 0) << 16 | (uint64_t)ptx_type_of(i, 1) << 24 |
		(uint64_t)ptx_type_of(i, 2) << 32);
	for (unsigned k = 0; k < i->operand[0].n && k < 128; k++)
		regs[nd++] = i->operand[0].list[k].reg;
	e.nregs_d = (uint16_t)nd;
	for (unsigned k = 0; m.a_regs && k < i->operand[1].n && k < 4; k++)
		regs[nd + e.nregs_a++] = i->operand[1].list[k].reg;
	e.regs = regs;
	emit(c, &e);
}

/* site.h's id of an instruction that stands in no record of its own: that of
 * the group plus its place there. */
static uint32_t batch_site(const struct dcluster *c, uint32_t site, uint32_t k)
{
	return c->job->l->site[c->job->l->code->site.n + site_of(c, site)->batch + k];
}

void decode_meeting(struct dcluster *c, uint32_t first, const struct record *r[4])
{
	const struct rewrite_site *s;
	const struct record *one = r[0] ? r[0] : r[1] ? r[1] : r[2] ? r[2] : r[3];
	const uint32_t *words;

	if (!one)
		return;
	s = site_of(c, one->site);
	words = one->words;
	if (s->phase != PHASE_BATCH) {
		struct event e = event_of(c, first, one->site, EV_WG_WAIT, FULL);

		for (uint32_t w = 0; w < 4; w++)
			if (r[w])
				tell_way(c, first + w, s->insn, FULL);
		e.count = (uint32_t)s->insn->operand[0].imm;
		emit(c, &e);
		return;
	}
	for (uint32_t k = 0; k < s->nbatch; k++) {
		const struct ptx_insn *i = c->job->l->code->batch.at[s->batch + k];
		struct event e;
		struct plan p;

		plan_of(s->func, i, &p);
		for (uint32_t w = 0; w < 4; w++)
			if (r[w])
				tell_way(c, first + w, i, FULL);
		if (i->op == OP_wgmma_mma_async) {
			on_mma(c, first, one->site, i, batch_site(c, one->site, k), words);
			words += plan_words(&p);
			continue;
		}
		for (uint32_t w = 0; w < 4; w++) {
			if (!r[w] || (w && i->op != OP_wgmma_fence))
				continue;
			e = event_of(c, first + w, one->site, i->op == OP_wgmma_fence
				? EV_WG_FENCE : EV_WG_COMMIT, FULL);
			e.site = batch_site(c, one->site, k);
			emit(c, &e);
		}
	}
}

/* ---- barriers, fences and the rest ---- */

static bool aligned(const struct ptx_insn *i)
{
	return i->op == OP_bar_sync || i->op == OP_bar_arrive || i->op == OP_bar_red ||
		i->op == OP_bar_cta_sync || i->op == OP_bar_cta_arrive || i->op == OP_bar_cta_red ||
		ptx_has(i, MOD_aligned);
}

static void on_bar(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = site_of(c, r->site);
	const struct ptx_insn *i = s->insn;
	bool red = i->op == OP_bar_red || i->op == OP_bar_cta_red || i->op == OP_barrier_red ||
		i->op == OP_barrier_cta_red;
	struct dwarp *w = &c->warp[warp];
	struct event e = event_of(c, warp, r->site, EV_BAR_RESUME, r->lanes);

	e.addr = value(c, r, &i->operand[red], 0);
	if (s->phase == PHASE_AFTER) {
		emit(c, &e);
		return;
	}
	w->diverged = w->at_bar && (w->diverged || w->bar != i);
	w->bar = i;
	w->at_bar |= r->lanes;
	if (w->at_bar != (w->all & ~w->gone))
		return; /* its other lanes are on their way */
	if (w->diverged && aligned(i)) {
		e.kind = EV_FAULT;
		e.mode = EVX_BAR_DIVERGED;
		e.text = "the other lanes of the warp came through another instruction";
		emit(c, &e);
		e.text = NULL;
	}
	e.kind = EV_BAR_ARRIVE;
	e.lanes = w->at_bar;
	w->at_bar = 0;
	e.count = (red ? i->noperands == 4 : i->noperands == 2)
		? (uint32_t)value(c, r, &i->operand[red + 1], 0) : 0;
	e.mode = red ? EVB_RED : i->op == OP_bar_arrive || i->op == OP_bar_cta_arrive ||
		i->op == OP_barrier_arrive || i->op == OP_barrier_cta_arrive ? EVB_ARRIVE : EVB_SYNC;
	emit(c, &e);
}

static void on_warp_sync(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct dwarp *w = &c->warp[warp];

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		uint32_t mask = (uint32_t)value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));
		struct event e = event_of(c, warp, r->site, EV_WARP_SYNC, rest);

		same = alike(c, r, rest, &i->operand[0]);
		if (w->sync_mask != mask)
			w->at_sync = 0;
		w->sync_mask = mask;
		w->at_sync |= same;
		mask &= w->all & ~w->gone;
		if ((w->at_sync & mask) != mask)
			continue;
		e.lanes = w->at_sync;
		e.mask = mask;
		w->at_sync = 0;
		emit(c, &e);
	}
}

static void on_fence(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct event e = event_of(c, warp, r->site, EV_FENCE_PROXY, r->lanes);
	enum ptx_space space = ptx_space_of(i, 0);

	e.sem = (uint8_t)sem_of(i, SEM_WEAK);
	e.scope = (uint8_t)scope_of(i, SCOPE_NONE);
	e.space = space == PS_global ? SP_GLOBAL : space == PS_shared || space == PS_shared_cluster
		? SP_SHARED : SP_ANY;
	switch ((enum ptx_op)i->op) {
	case OP_fence:
		e.kind = EV_FENCE;
		e.sem = (uint8_t)sem_of(i, SEM_ACQ_REL);
		e.space = ptx_has(i, MOD_sync_restrict_shared_cta) ||
			ptx_has(i, MOD_sync_restrict_shared_cluster) ? SP_SHARED : SP_ANY;
		break;
	case OP_membar:
		e.kind = EV_FENCE;
		e.sem = SEM_SC;
		e.space = SP_ANY;
		break;
	case OP_fence_mbarrier_init:
		e.kind = EV_FENCE_MBINIT;
		e.sem = (uint8_t)sem_of(i, SEM_RELEASE);
		e.space = SP_ANY;
		break;
	case OP_fence_proxy_alias:
	case OP_membar_proxy_alias:
		e.mode = EVP_ALIAS;
		break;
	case OP_fence_proxy_async_generic:
		e.mode = ptx_has(i, MOD_acquire) ? EVP_ASYNC_ACQUIRE : EVP_ASYNC_RELEASE;
		break;
	case OP_fence_proxy_tensormap:
		e.mode = ptx_has(i, MOD_acquire) ? EVP_TENSORMAP_ACQUIRE : EVP_TENSORMAP_RELEASE;
		e.sem = ptx_has(i, MOD_acquire) ? SEM_ACQUIRE : SEM_RELEASE;
		e.space = SP_GLOBAL;
		break;
	default:
		e.mode = EVP_ASYNC;
		break;
	}
	emit(c, &e);
}

static void on_cluster(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	bool arrive = i->op == OP_barrier_cluster_arrive;
	struct event e = event_of(c, warp, r->site, arrive ? EV_CLUSTER_ARRIVE : EV_CLUSTER_WAIT,
		r->lanes);

	e.sem = (uint8_t)sem_of(i, arrive ? SEM_RELEASE : SEM_ACQUIRE);
	e.flags = ptx_has(i, MOD_aligned) ? EVF_ALIGNED : 0;
	emit(c, &e);
}

static void on_leave(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes)
{
	struct dwarp *w = &c->warp[warp];
	uint32_t cta = warp / c->info.warps_per_cta;
	struct event e = event_of(c, warp, site, EV_EXIT, lanes & ~w->gone);

	if (!e.lanes)
		return;
	emit(c, &e);
	w->gone |= e.lanes;
	c->left[cta] -= (uint32_t)__builtin_popcount(e.lanes);
	if (c->left[cta])
		return;
	e = (struct event){ .kind = EV_CTA_END, .cta = (uint16_t)cta, .peer = (uint16_t)cta, .lanes = FULL };
	emit(c, &e);
}

static void on_other(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = site_of(c, r->site)->insn;
	struct event e = event_of(c, warp, r->site, EV_SETMAXNREG, r->lanes);
	char why[96];

	if (i->op == OP_setmaxnreg) {
		struct dwarp *w = &c->warp[warp];

		e.count = (uint32_t)i->operand[0].imm;
		e.mode = ptx_has(i, MOD_inc);
		if (e.mode ? e.count < w->maxnreg : e.count > w->maxnreg) {
			snprintf(why, sizeof why, "setmaxnreg.%s %u, the warp has %u",
				e.mode ? "inc" : "dec", e.count, w->maxnreg);
			e.kind = EV_FAULT;
			e.mode = EVX_SETMAXNREG;
			e.addr = e.count;
			e.count = 0;
			e.text = why;
		} else {
			w->maxnreg = e.count;
		}
	} else {
		e.kind = EV_FAULT;
		e.mode = EVX_TRAP;
		e.text = "the kernel stopped itself";
	}
	emit(c, &e);
}

void decode_record(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = site_of(c, r->site);
	struct dwarp *w = &c->warp[warp];

	if (s->phase != PHASE_MARK && ptx_effect_of((enum ptx_op)s->insn->op) != EF_EXIT &&
			s->insn->op != OP_ret) {
		w->last = *r;
		w->waits = s->phase == PHASE_FAILED;
	}
	if (s->phase == PHASE_FAILED)
		return;
	tell_way(c, warp, s->insn, r->lanes);
	if (s->phase == PHASE_MARK)
		return;
	switch (ptx_effect_of((enum ptx_op)s->insn->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW: on_access(c, warp, r); break;
	case EF_CP_ASYNC: on_cp_async(c, warp, r); break;
	case EF_BULK: on_bulk(c, warp, r); break;
	case EF_MBARRIER: on_mbarrier(c, warp, r); break;
	case EF_BARRIER:
		on_bar(c, warp, r);
		w->waits = s->phase == PHASE_BEFORE && c->job->info[r->site].plan.after;
		break;
	case EF_WARP_SYNC: on_warp_sync(c, warp, r); break;
	case EF_CLUSTER:
		on_cluster(c, warp, r);
		w->waits = s->phase == PHASE_BEFORE;
		break;
	case EF_FENCE: on_fence(c, warp, r); break;
	case EF_SETMAXNREG: case EF_STOP: on_other(c, warp, r); break;
	case EF_EXIT: case EF_CONTROL: on_leave(c, warp, r->site, r->lanes); break;
	case EF_WGMMA: case EF_NONE: case EF_HINT: case EF_TCGEN05: case EF_WARP: case EF_TENSORMAP:
	case EF_GRID: case EF_UNKNOWN: case EF_COUNT:
		break;
	}
}

/* ---- clusters ---- */

void decode_begin(struct dcluster *c)
{
	const struct launch_info *i = c->info.launch;

	for (uint32_t r = 0; r < c->info.nctas; r++) {
		uint32_t id[3];
		struct event e = { .kind = EV_CTA_BEGIN, .cta = (uint16_t)r, .peer = (uint16_t)r,
			.lanes = FULL, .count = i->block[0] * i->block[1] * i->block[2],
			.size = i->shared_static + i->shared_dynamic };

		cluster_ctaid(&c->info, r, id);
		e.addr = id[0] + (uint64_t)i->grid[0] * (id[1] + (uint64_t)i->grid[1] * id[2]);
		emit(c, &e);
	}
}

/* At a hang: who waits for what. */
static void tell_waiter(struct dcluster *c, uint32_t warp)
{
	const struct dwarp *w = &c->warp[warp];
	const struct ptx_insn *i;
	struct event e;
	uint64_t at;

	if (!w->last.lanes || w->gone == w->all)
		return;
	i = site_of(c, w->last.site)->insn;
	e = event_of(c, warp, w->last.site, EV_BLOCKED, w->all & ~w->gone);
	e.mode = EVW_SPIN;
	e.text = "was last seen here";
	if (w->waits && ptx_effect_of((enum ptx_op)i->op) == EF_MBARRIER) {
		at = value(c, &w->last, &i->operand[plan_address(i)], (unsigned)__builtin_ctz(w->last.lanes));
		e.mode = EVW_MBARRIER;
		e.lanes = w->last.lanes;
		e.addr = OFFSET(at);
		e.text = NULL;
	} else if (w->waits && ptx_effect_of((enum ptx_op)i->op) == EF_CLUSTER) {
		e.mode = EVW_CLUSTER;
		e.text = "has arrived at the cluster's barrier";
	} else if (w->waits) {
		e.mode = EVW_BAR;
		e.addr = value(c, &w->last, &i->operand[plan_address(i)], 0);
		e.text = NULL;
	}
	emit(c, &e);
}

/* Every warp that is left was last seen to wait. */
static bool all_wait(const struct dcluster *c, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++) {
		const struct dwarp *w = &c->warp[k];

		if (w->gone != w->all && w->last.lanes && !w->waits && !w->at_sync)
			return false;
	}
	return true;
}

void decode_end(struct dcluster *c)
{
	uint32_t n = c->info.nctas * c->info.warps_per_cta, left = 0;
	struct event e = { .kind = EV_HANG, .lanes = FULL };

	model_land(c);
	for (uint32_t k = 0; k < n; k++) {
		if (c->job->l->ended)
			on_leave(c, k, 0, c->warp[k].all);
		left += c->warp[k].gone != c->warp[k].all && c->warp[k].last.lanes;
	}
	if (!left)
		return;
	for (uint32_t k = 0; k < n; k++)
		tell_waiter(c, k);
	e.mode = all_wait(c, n) ? 0 : 2;
	emit(c, &e);
}
