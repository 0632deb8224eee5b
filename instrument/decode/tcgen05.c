/* tcgen05: turns records of tensor memory operations into events, and keeps which columns are
 * allocated, as far as their checks need it. What an operation accesses follows from its operands
 * (tc_op.h, tmem_form.h). */
#include "events.h"

#include <stdio.h>

#include "libconsan/ptx/opcodes.h"

static uint32_t rank_of(const struct dcluster *c, uint32_t warp)
{
	return warp / c->info.warps_per_cta;
}

static uint32_t mask_of(uint32_t column, uint32_t columns)
{
	return ((1u << columns / TMEM_UNIT) - 1) << column / TMEM_UNIT;
}

static struct tc_view view_of(const struct dcluster *c, uint32_t warp, bool pair)
{
	const uint32_t rank = rank_of(c, warp), bytes = record_view(c, warp).bytes;
	struct tc_view v = { .nctas = c->info.nctas, .n = pair && c->info.nctas > 1 ? 2 : 1 };

	for (unsigned h = 0; h < v.n; h++) {
		v.cta[h].rank = v.n > 1 ? (rank & ~1u) | h : rank;
		v.cta[h].shared_bytes = bytes;
		v.cta[h].units = v.cta[h].rank < c->info.nctas ? c->tmem[v.cta[h].rank].units : 0;
	}
	return v;
}

/* The event of an .aligned instruction, which all lanes of the warp execute. */
static struct event warp_event(const struct dcluster *c, uint32_t warp, const struct record *r,
	enum ev_kind kind)
{
	return record_event(c, warp, r->site, kind, c->warp[warp].at_tcgen05);
}

/* ---- alloc, dealloc, relinquish_alloc_permit ---- */

/* The lanes must agree on the operand. */
static bool differs(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct ptx_operand *o, const char *name)
{
	const uint32_t same = record_same(c, r, r->lanes, o);
	const unsigned other = same == r->lanes ? 0 : (unsigned)__builtin_ctz(r->lanes & ~same);
	struct refusal why;

	if (same == r->lanes)
		return false;
	refusal_set(&why, FAULT_TMEM_COLUMNS, SP_TMEM, record_value(c, r, o, other), 0,
		"%s differs between the lanes: %u and %u", name,
		(uint32_t)record_value(c, r, o, (unsigned)__builtin_ctz(r->lanes)),
		(uint32_t)record_value(c, r, o, other));
	refused(c, warp, r, 1u << other, &why);
	return true;
}

/* .cta_group::2: the warp waits for one of the other CTA of its pair. True: that one waits
 * already. */
static bool meet(struct dcluster *c, uint32_t warp, const struct record *r,
	const struct tmem_call *call)
{
	const uint32_t rank = rank_of(c, warp);
	struct dtmem *mine = &c->tmem[rank], *peer;
	struct refusal why;

	if (c->info.nctas < 2) {
		refusal_set(&why, FAULT_TMEM_PAIR, SP_TMEM, 0, 0, "the cluster has no pairs of CTAs");
		refused(c, warp, r, r->lanes, &why);
		return false;
	}
	peer = &c->tmem[rank ^ 1];
	mine->waits = 1 + warp;
	mine->call = *call;
	if (!peer->waits)
		return false;
	mine->waits = peer->waits = 0;
	if (refuse_meeting(&why, call, &peer->call, rank ^ 1))
		refused(c, warp, r, r->lanes, &why);
	return true;
}

/* Before the alloc: checks its operands. */
static void before_alloc(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const unsigned first = (unsigned)__builtin_ctz(r->lanes);
	const uint64_t slot = record_value(c, r, &i->operand[0], first);
	const uint32_t n = (uint32_t)record_value(c, r, &i->operand[1], first);
	const bool far = ptx_space_of(i, 0) != PS_shared;
	const struct shared_view v = record_view(c, warp);
	struct refusal why;

	if (differs(c, warp, r, &i->operand[1], "the number of columns"))
		return;
	if (refuse_columns(&why, n) || refuse_permit(&why, c->tmem[rank_of(c, warp)].relinquished)
			|| refuse_align(&why, SP_SHARED, slot, 4, 4) || refuse_shared(&why, &v, far, slot, 4))
		refused(c, warp, r, r->lanes, &why);
	else if (ptx_has(i, MOD_cta_group_2))
		meet(c, warp, r, &(struct tmem_call){ 0, n, true });
}

static void after_alloc(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const unsigned first = (unsigned)__builtin_ctz(r->lanes);
	const uint64_t slot = record_value(c, r, &i->operand[0], first);
	const uint32_t n = (uint32_t)record_value(c, r, &i->operand[1], first);
	const uint32_t column = record_word(c, r, first, c->job->info[r->site].lane_words - 1u) & 0xffff;
	struct dtmem *t = &c->tmem[rank_of(c, warp)];
	struct event e = record_event(c, warp, r->site, EV_ACCESS, 1u << first);
	struct event sync = record_event(c, warp, r->site, EV_WARP_SYNC, r->lanes);
	struct refusal why;

	/* no alloc returns others: the record was overwritten, or the address before it was read */
	if (refuse_columns(&why, n) || column % TMEM_UNIT || column + n > TMEM_COLUMNS) {
		c->result.damaged++;
		return;
	}
	/* the address is every lane's store, as in the executor */
	sync.warp_sync.mask = r->lanes;
	emit(c, &sync);
	e.access = (struct event_access){ .at = { .base = OFFSET(slot) }, .bytes = 4, .mode = MODE_WRITE,
		.space = SP_SHARED, .owner = record_owner(c, &e, slot, true) };
	emit(c, &e);
	emit(c, &sync);
	e = record_event(c, warp, r->site, EV_TMEM_ALLOC, r->lanes);
	e.tmem_alloc = (struct event_tmem_alloc){ column, n, ptx_has(i, MOD_cta_group_2) };
	emit(c, &e);
	t->units |= mask_of(column, n);
	/* the other warp of the pair may write its record later than others use the columns */
	if (e.tmem_alloc.pair && c->info.nctas > 1)
		c->tmem[rank_of(c, warp) ^ 1].units |= mask_of(column, n);
}

static void emit_dealloc(struct dcluster *c, const struct event *e)
{
	emit(c, e);
	c->tmem[e->cta].units &= ~mask_of(e->tmem_dealloc.column, e->tmem_dealloc.columns);
}

static void on_dealloc(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const unsigned first = (unsigned)__builtin_ctz(r->lanes);
	const uint32_t at = (uint32_t)record_value(c, r, &i->operand[0], first) & 0xffff;
	const uint32_t n = (uint32_t)record_value(c, r, &i->operand[1], first), rank = rank_of(c, warp);
	struct event e = warp_event(c, warp, r, EV_TMEM_DEALLOC);
	struct refusal why;

	if (differs(c, warp, r, &i->operand[0], "the address")
			|| differs(c, warp, r, &i->operand[1], "the number of columns"))
		return;
	if (refuse_columns(&why, n) || refuse_free(&why, c->tmem[rank].units, at, n)) {
		refused(c, warp, r, r->lanes, &why);
		return;
	}
	e.tmem_dealloc = (struct event_tmem_alloc){ at, n, ptx_has(i, MOD_cta_group_2) };
	if (!e.tmem_dealloc.pair) {
		emit_dealloc(c, &e);
		return;
	}
	c->tmem[rank].freed = e;
	if (meet(c, warp, r, &(struct tmem_call){ at, n, false }) && !c->stopped) {
		emit_dealloc(c, &e);
		emit_dealloc(c, &c->tmem[rank ^ 1].freed);
	}
}

static void on_relinquish(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct event e = warp_event(c, warp, r, EV_TMEM_RELINQUISH);

	c->tmem[rank_of(c, warp)].relinquished = true;
	e.tmem_relinquish.pair = ptx_has(record_site(c, r->site)->insn, MOD_cta_group_2);
	emit(c, &e);
}

/* ---- ld, st and their waits, fences ---- */

static void on_access(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const uint32_t rank = rank_of(c, warp);
	struct event e = warp_event(c, warp, r, EV_TMEM_ACCESS);
	struct tmem_form f;
	struct tc_areas s;
	struct refusal why;
	uint32_t at, same;

	tmem_form_of(i, &f);
	at = (uint32_t)record_value(c, r, f.address, (unsigned)__builtin_ctz(r->lanes));
	same = record_same(c, r, r->lanes, f.address);
	if (same != r->lanes) {
		const unsigned l = (unsigned)__builtin_ctz(r->lanes & ~same);

		refusal_set(&why, FAULT_TMEM_UNLIKE, SP_TMEM, record_value(c, r, f.address, l), 4,
			"the address differs between the lanes");
		refused(c, warp, r, 1u << l, &why);
		return;
	}
	if (refuse_window(&why, &f, at)) {
		refused(c, warp, r, r->lanes, &why);
		return;
	}
	if (refuse_other_window(&why, &f, e.warp, &at)) {
		struct event fault = warp_event(c, warp, r, EV_FAULT);

		fault.fault = refusal_event(&why);
		emit(c, &fault);
	}
	if (refuse_tmem(&why, c->tmem[rank].units, rank, at, f.lanes, f.columns)) {
		refused(c, warp, r, r->lanes, &why);
		return;
	}
	tmem_areas(&f, at, rank, &s);
	e.tmem_access = (struct event_tmem_access){ .areas = { s.at, (uint16_t)s.n },
		.mode = f.store ? MODE_WRITE : MODE_READ, .used = c->job->info[r->site].used };
	emit(c, &e);
}

static void on_wait(struct dcluster *c, uint32_t warp, const struct record *r, enum ev_mode mode)
{
	struct event e = warp_event(c, warp, r, EV_TMEM_WAIT);

	e.tmem_wait.mode = mode;
	emit(c, &e);
}

static void on_fence(struct dcluster *c, uint32_t warp, const struct record *r, bool before)
{
	struct event e = record_event(c, warp, r->site, EV_TCGEN05_FENCE, r->lanes);

	e.tcgen05_fence.before = before;
	emit(c, &e);
}

/* ---- operations of single threads ---- */

static void emit_op(struct dcluster *c, uint32_t warp, const struct record *r, unsigned lane,
	struct event_tcgen05 t)
{
	struct event e = record_event(c, warp, r->site, EV_TCGEN05, 1u << lane);

	t.async_op = ++c->ops;
	t.several = (r->lanes & (r->lanes - 1)) != 0;
	e.tcgen05 = t;
	emit(c, &e);
}

static uint32_t word(const struct dcluster *c, const struct record *r, const struct ptx_operand *o,
	unsigned lane)
{
	return o ? (uint32_t)record_value(c, r, o, lane) : 0;
}

static void on_mma(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct tc_arrays arrays;
	struct tc_syntax s;
	struct tc_view v;

	tc_syntax_of(record_site(c, r->site)->insn, &s);
	v = view_of(c, warp, s.form.pair);
	for EACH_LANE(l, r->lanes) {
		struct tc_mma m = { .syntax = &s, .d = word(c, r, s.d, l), .meta = word(c, r, s.meta, l),
			.idesc = word(c, r, s.idesc, l), .a = record_value(c, r, s.a, l),
			.b = record_value(c, r, s.b, l), .enable = word(c, r, s.enable, l),
			.scales = { word(c, r, s.scales[0], l), word(c, r, s.scales[1], l) },
			.mask = s.mask ? record_value(c, r, s.mask, l) : 0 };
		struct refusal why;

		for (unsigned k = 0; s.disabled && k < s.disabled->n; k++)
			m.disabled[k] = word(c, r, &s.disabled->list[k], l);
		if (refuse_mma(&why, &m, &v, c->book)) {
			refused(c, warp, r, 1u << l, &why);
			return;
		}
		emit_op(c, warp, r, l, tc_mma_event(&m, &v, c->book, &arrays));
	}
}

static void on_cp(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct tc_arrays arrays;
	struct tc_view v;
	struct tc_cp cp;

	tc_cp_of(record_site(c, r->site)->insn, &cp);
	v = view_of(c, warp, cp.pair);
	for EACH_LANE(l, r->lanes) {
		const uint32_t at = word(c, r, cp.to, l);
		const uint64_t desc = record_value(c, r, cp.from, l);
		struct refusal why;

		if (refuse_cp(&why, &cp, at, desc, &v)) {
			refused(c, warp, r, 1u << l, &why);
			return;
		}
		emit_op(c, warp, r, l, tc_cp_event(&cp, at, desc, &v, &arrays));
	}
}

static void on_shift(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const bool pair = ptx_has(i, MOD_cta_group_2);
	const struct tc_view v = view_of(c, warp, pair);
	struct tc_arrays arrays;

	for EACH_LANE(l, r->lanes) {
		const uint32_t at = word(c, r, &i->operand[0], l);
		struct refusal why;

		if (refuse_shift(&why, at, &v)) {
			refused(c, warp, r, 1u << l, &why);
			return;
		}
		emit_op(c, warp, r, l, tc_shift_event(pair, at, &v, &arrays));
	}
}

static void on_commit(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const uint32_t all = (uint32_t)((1ull << c->info.nctas) - 1);
	const bool multicast = i->noperands > 1;

	for EACH_LANE(l, r->lanes) {
		struct event e = record_event(c, warp, r->site, EV_TCGEN05_COMMIT, 1u << l);
		struct event_tcgen05_commit *x = &e.tcgen05_commit;
		const uint64_t at = record_value(c, r, &i->operand[0], l);
		struct signal s = { .site = e.site, .lanes = e.lanes, .cta = e.cta, .warp = e.warp,
			.op = ++c->ops, .count = 1 };
		struct refusal why;

		refused_mbar(c, warp, r, 1u << l, at, true);
		*x = (struct event_tcgen05_commit){ .async_op = s.op, .addr = OFFSET(at),
			.ctas = multicast ? word(c, r, &i->operand[1], l) & 0xffff
				: 1u << record_owner(c, &e, at, true),
			.pair = ptx_has(i, MOD_cta_group_2), .multicast = multicast,
			.several = (r->lanes & (r->lanes - 1)) != 0 };
		if (x->ctas & ~all) {
			refusal_set(&why, FAULT_CLUSTER_RANK, SP_ANY, x->ctas, 0,
				"the mask 0x%x names CTAs outside the cluster", x->ctas);
			refused(c, warp, r, 1u << l, &why);
			return;
		}
		emit(c, &e);
		for EACH_LANE(rank, x->ctas)
			model_add_signal(model_of(c, rank, x->addr), &s);
	}
}

static void execute(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);

	switch ((enum ptx_op)s->insn->op) {
	case OP_tcgen05_alloc:
		(s->phase == PHASE_AFTER ? after_alloc : before_alloc)(c, warp, r);
		break;
	case OP_tcgen05_dealloc: on_dealloc(c, warp, r); break;
	case OP_tcgen05_relinquish_alloc_permit: on_relinquish(c, warp, r); break;
	case OP_tcgen05_ld: case OP_tcgen05_ld_red: case OP_tcgen05_st:
		on_access(c, warp, r);
		break;
	case OP_tcgen05_wait_ld: on_wait(c, warp, r, MODE_READ); break;
	case OP_tcgen05_wait_st: on_wait(c, warp, r, MODE_WRITE); break;
	case OP_tcgen05_fence_before_thread_sync: on_fence(c, warp, r, true); break;
	case OP_tcgen05_fence_after_thread_sync: on_fence(c, warp, r, false); break;
	case OP_tcgen05_mma: case OP_tcgen05_mma_sp: case OP_tcgen05_mma_ws: case OP_tcgen05_mma_ws_sp:
		on_mma(c, warp, r);
		break;
	case OP_tcgen05_cp: on_cp(c, warp, r); break;
	case OP_tcgen05_shift: on_shift(c, warp, r); break;
	case OP_tcgen05_commit: on_commit(c, warp, r); break;
	default: break;
	}
}

/* An .aligned instruction waits for all lanes of the warp that have not exited. */
void emit_tcgen05(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	struct dwarp *w = &c->warp[warp];

	if (!ptx_has(s->insn, MOD_aligned) || s->phase == PHASE_AFTER) {
		execute(c, warp, r);
		return;
	}
	w->at_tcgen05 = r->lanes | (w->tcgen05.site == r->site ? w->at_tcgen05 : 0);
	w->tcgen05 = *r;
	tcgen05_lanes_left(c, warp);
}

void tcgen05_lanes_left(struct dcluster *c, uint32_t warp)
{
	struct dwarp *w = &c->warp[warp];

	if (!w->at_tcgen05 || w->at_tcgen05 != (w->all & ~w->gone))
		return;
	execute(c, warp, &w->tcgen05);
	w->at_tcgen05 = 0;
}

/* ---- a kernel that did not end ---- */

void tcgen05_missing(struct dcluster *c)
{
	for (uint32_t k = 0; k < c->info.nctas * c->info.warps_per_cta && !c->stopped; k++) {
		const struct dwarp *w = &c->warp[k];
		struct refusal why;

		if (!w->at_tcgen05)
			continue;
		refusal_set(&why, FAULT_ALIGNED, SP_ANY, 0, 0, "lanes 0x%08x of the warp do not execute it",
			w->all & ~w->gone & ~w->at_tcgen05);
		emit_refusal(c, k, c->job->l->site[w->tcgen05.site], w->at_tcgen05, &why);
	}
}

bool tcgen05_waits(const struct dcluster *c, uint32_t warp, const struct record *r,
	struct event_blocked *b, char buf[200])
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct dtmem *t = &c->tmem[rank_of(c, warp)];
	const bool alloc = s->insn->op == OP_tcgen05_alloc && s->phase == PHASE_FAILED;
	const struct dwarp *w = &c->warp[warp];

	if (w->at_tcgen05 && w->tcgen05.site == r->site) {
		b->on = WAIT_WARP;
		b->text = buf;
		snprintf(buf, 200, "waits for lanes 0x%08x", w->all & ~w->gone & ~w->at_tcgen05);
		return true;
	}
	if (!alloc && (s->insn->op != OP_tcgen05_dealloc || t->waits != 1 + warp))
		return false;
	b->on = WAIT_TMEM;
	b->addr = record_value(c, r, &s->insn->operand[1], (unsigned)__builtin_ctz(r->lanes));
	b->text = buf;
	if (ptx_has(s->insn, MOD_cta_group_2) && t->waits == 1 + warp)
		snprintf(buf, 200, "waits for a warp of CTA %u to execute tcgen05.%s with cta_group::2, too",
			rank_of(c, warp) ^ 1u, alloc ? "alloc" : "dealloc");
	else
		snprintf(buf, 200, "%u columns wanted, %u of %u are allocated", (uint32_t)b->addr,
			TMEM_UNIT * (unsigned)__builtin_popcount(t->units), TMEM_COLUMNS);
	return true;
}
