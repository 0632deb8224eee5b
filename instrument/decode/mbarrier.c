/* mbarrier: turns records of mbarrier operations into events; barriers.c keeps the state of
 * mbarriers. State tokens are opaque; their phase is known from the instructions that returned
 * them. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

static void on_arrive(struct dcluster *c, uint32_t warp, const struct record *r, unsigned flags)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	unsigned a = plan_address(i);
	const struct ptx_operand *o = &i->operand[a], *n = i->noperands > a + 1u ? o + 1 : NULL;

	if (ptx_has(i, MOD_noComplete))
		flags |= ARRIVE_NO_COMPLETE;
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = record_event(c, warp, r->site, EV_MBARRIER_ARRIVE, rest);
		struct event_mbarrier_arrive *x = &e.mbarrier_arrive;
		unsigned first = (unsigned)__builtin_ctz(rest), many;
		uint64_t at = record_value(c, r, o, first);
		uint32_t amount = n ? (uint32_t)record_value(c, r, n, first) : 1;
		struct model *m;

		same = record_same(c, r, rest, o);
		if (n)
			same = record_same(c, r, same, n);
		refused_mbar(c, warp, r, same, at, true);
		many = (unsigned)__builtin_popcount(same);
		e.lanes = same;
		x->owner = record_owner(c, &e, at, true);
		x->addr = OFFSET(at);
		x->flags = (enum ev_arrive_flags)flags;
		x->sem = ptx_sem_of(i, SEM_RELEASE);
		x->scope = ptx_scope_of(i, SCOPE_NONE);
		x->arrivals = flags & ARRIVE_EXPECT_TX ? 1 : amount;
		x->tx_count = flags & ARRIVE_EXPECT_TX ? amount : 0;
		emit(c, &e);
		m = model_of(c, x->owner, x->addr);
		for EACH_LANE(l, i->operand[0].kind == PO_REG ? same : 0) { /* the token is used */
			c->warp[warp].arrived[l].model = (uint32_t)(m - c->model.at) + 1;
			c->warp[warp].arrived[l].phase = m->phase;
		}
		if (x->owner == e.cta) /* clocks of different CTAs cannot be compared */
			m->arrived[m->phase & 3] = c->warp[warp].clock;
		model_arrive(m, x->arrivals * many, x->tx_count * many, flags & ARRIVE_DROP);
	}
}

/* What is known of the token of a lane's wait. */
struct held {
	bool known;                /* its phase is */
	uint64_t phase;
	uint32_t token_of;         /* as in EV_MBARRIER_TEST */
};

static struct held held_by(const struct dcluster *c, const struct dwarp *w, const struct model *m,
	unsigned lane)
{
	struct held h = { 0 };
	const struct model *other;

	if (!(w->has_token >> lane & 1))
		return h;
	h.known = model_phase(m, w->token[lane], &h.phase);
	other = h.known ? m : model_of_token(c, m, w->token[lane]);
	h.token_of = other ? other->addr + 1 : 0;
	return h;
}

/* The lanes of `rest` whose token is like that of the first lane, in *held. */
static uint32_t same_token(const struct dcluster *c, uint32_t warp, const struct model *m,
	uint32_t rest, struct held *held)
{
	const struct dwarp *w = &c->warp[warp];
	uint32_t same = 0;

	*held = held_by(c, w, m, (unsigned)__builtin_ctz(rest));
	for EACH_LANE(l, rest) {
		const struct held h = held_by(c, w, m, l);

		same |= (uint32_t)(h.known == held->known && h.phase == held->phase
			&& h.token_of == held->token_of) << l;
	}
	return same;
}

/* A wait of these lanes has failed again, and no wait of the warp has succeeded in between. It
 * missed a phase if an arrival for the phase before the last one, which has the same parity,
 * came after the first failure; arrivals are recorded before they are executed. That phase is
 * certainly complete by now, as no thread arrives in a phase before the phase before it is
 * complete. */
static bool emit_lag(struct dcluster *c, uint32_t warp, struct event *e, const struct model *m)
{
	const struct dwarp *w = &c->warp[warp];
	uint64_t began = w->polled.phase;

	if (m->phase < 2 || (m->phase & 1) != e->mbarrier_test.phase ||
			m->arrived[(m->phase - 2) & 3] <= w->polled.clock)
		return false;
	if (began > m->phase - 2)
		began = m->phase - 2;
	began += (began ^ m->phase) & 1;
	e->mbarrier_test.failed_phase = 1 + (uint32_t)began;
	emit(c, e);
	return true;
}

/* True: the event was emitted. */
static bool on_poll(struct dcluster *c, uint32_t warp, const struct record *r, struct event *e,
	const struct model *m)
{
	const uint32_t in = (uint32_t)(m - c->model.at) + 1;
	struct dwarp *w = &c->warp[warp];
	bool lag = false;

	if (w->polled.site == r->site && w->polled.lanes == e->lanes && w->polled.model == in)
		lag = emit_lag(c, warp, e, m);
	w->polled.site = r->site;
	w->polled.lanes = e->lanes;
	w->polled.model = in;
	w->polled.clock = w->clock;
	w->polled.phase = m->phase;
	return lag;
}

/* Only the first of several failures is recorded. STILL: the kernel has ended, and it has failed
 * ever since. */
enum outcome { DONE, FAILED, STILL };

static void on_test(struct dcluster *c, uint32_t warp, const struct record *r, bool tries,
	enum outcome outcome)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	unsigned a = plan_address(i);
	bool parity = ptx_has(i, MOD_parity);

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = record_event(c, warp, r->site, EV_MBARRIER_TEST, rest);
		struct event_mbarrier_test *x = &e.mbarrier_test;
		unsigned first = (unsigned)__builtin_ctz(rest);
		uint64_t at = record_value(c, r, &i->operand[a], first), want = 0;
		struct held held = { 0 };
		struct model *m;

		x->owner = record_owner(c, &e, at, false);
		x->addr = OFFSET(at);
		m = model_of(c, x->owner, x->addr);
		same = record_same(c, r, rest, &i->operand[a]);
		if (!parity) {
			same = same_token(c, warp, m, same, &held);
			want = held.phase;
		} else {
			want = record_value(c, r, &i->operand[a + 1], first) & 1;
			same = record_same(c, r, same, &i->operand[a + 1]);
		}
		refused_mbar(c, warp, r, same, at, false);
		e.lanes = same;
		x->flags = (enum ev_test_flags)((outcome == DONE ? TEST_TRUE : 0) | (parity ? TEST_PARITY : 0) |
			(tries ? TEST_TRY : 0));
		x->sem = ptx_sem_of(i, SEM_ACQUIRE);
		x->scope = ptx_scope_of(i, SCOPE_NONE);
		x->token_of = held.token_of;
		if (outcome != DONE) {
			x->phase = want;
			/* no phase to wait for, the phase is complete, or the token is of another object */
			if (!m->expected || (held.known && want + 1 < m->phase)
					|| (held.token_of && !held.known))
				emit(c, &e);
			else if (parity && !on_poll(c, warp, r, &e, m) && outcome == STILL)
				emit(c, &e);
			continue;
		}
		if (!parity && !held.known) /* the newest phase that can be complete */
			want = m->phase && (m->pending == m->expected || m->tx) ? m->phase - 1 : m->phase;
		if (c->warp[warp].polled.model == (uint32_t)(m - c->model.at) + 1)
			c->warp[warp].polled.site = 0;
		model_wait(c, m, parity, want);
		x->phase = want;
		emit(c, &e);
	}
	c->warp[warp].has_token &= ~r->lanes;
}

void note_token(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct plan *p = &c->job->info[r->site].plan;
	struct dwarp *w = &c->warp[warp];

	for EACH_LANE(l, r->lanes) {
		const uint64_t value = record_value(c, r, p->value[0].o, l);
		const uint32_t in = w->arrived[l].model;

		if (p->before)
			w->token[l] = value;
		else if (in)
			model_token(&c->model.at[in - 1], value, w->arrived[l].phase);
	}
	if (p->before)
		w->has_token |= r->lanes;
}

void emit_pending(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct ptx_operand *state = &s->insn->operand[1];
	struct event e = record_event(c, warp, r->site, EV_MBARRIER_PENDING_COUNT, r->lanes);

	e.mbarrier_pending_count.no_complete = state->kind != PO_REG ||
		!plan_holds_states(s->func, state->reg, true);
	emit(c, &e);
}

void emit_failed_wait(struct dcluster *c, uint32_t warp, const struct record *r, bool still)
{
	enum ptx_op op = (enum ptx_op)record_site(c, r->site)->insn->op;

	if (op == OP_mbarrier_test_wait || op == OP_mbarrier_try_wait)
		on_test(c, warp, r, op == OP_mbarrier_try_wait, still ? STILL : FAILED);
}

void check_remote_wait(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;

	for (uint32_t l = r->lanes; l && !c->stopped; l &= l - 1)
		refused_mbar(c, warp, r, l & -l, record_value(c, r, &i->operand[plan_address(i)],
			(unsigned)__builtin_ctz(l)), false);
}

void emit_mbarrier(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	enum ev_kind kind = EV_MBARRIER_INIT;

	switch ((enum ptx_op)i->op) {
	case OP_mbarrier_test_wait: on_test(c, warp, r, false, DONE); return;
	case OP_mbarrier_try_wait: on_test(c, warp, r, true, DONE); return;
	case OP_mbarrier_arrive: on_arrive(c, warp, r, 0); return;
	case OP_mbarrier_arrive_expect_tx: on_arrive(c, warp, r, ARRIVE_EXPECT_TX); return;
	case OP_mbarrier_arrive_drop: on_arrive(c, warp, r, ARRIVE_DROP); return;
	case OP_mbarrier_arrive_drop_expect_tx:
		on_arrive(c, warp, r, ARRIVE_DROP | ARRIVE_EXPECT_TX);
		return;
	case OP_mbarrier_init: kind = EV_MBARRIER_INIT; break;
	case OP_mbarrier_inval: kind = EV_MBARRIER_INVAL; break;
	case OP_mbarrier_expect_tx: kind = EV_MBARRIER_EXPECT_TX; break;
	case OP_mbarrier_complete_tx: kind = EV_MBARRIER_COMPLETE_TX; break;
	default: return;
	}
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		struct event e = record_event(c, warp, r->site, kind, 1u << l);
		const bool counts = kind == EV_MBARRIER_EXPECT_TX || kind == EV_MBARRIER_COMPLETE_TX;
		uint16_t owner;
		uint64_t at = record_value(c, r, &i->operand[0], l);
		uint32_t n = i->noperands > 1 ? (uint32_t)record_value(c, r, &i->operand[1], l) : 0;
		struct model *m;

		same = 1u << l;
		if (kind == EV_MBARRIER_INIT) { /* one event for lanes with the same operands */
			same = record_same(c, r, rest, &i->operand[0]);
			same = record_same(c, r, same, &i->operand[1]);
			e.lanes = same;
		}
		refused_mbar(c, warp, r, same, at, counts);
		owner = record_owner(c, &e, at, counts);
		if (kind == EV_MBARRIER_INIT)
			e.mbarrier_init = (struct event_mbarrier_init){ .owner = owner,
				.addr = OFFSET(at), .arrivals = n };
		else if (kind == EV_MBARRIER_INVAL)
			e.mbarrier_inval = (struct event_mbarrier_inval){ .owner = owner,
				.addr = OFFSET(at) };
		else if (kind == EV_MBARRIER_EXPECT_TX)
			e.mbarrier_expect_tx = (struct event_mbarrier_expect_tx){ .owner = owner,
				.addr = OFFSET(at), .tx_count = n };
		else
			e.mbarrier_complete_tx = (struct event_mbarrier_complete_tx){ .owner = owner,
				.addr = OFFSET(at), .tx_count = n };
		emit(c, &e);
		m = model_of(c, owner, OFFSET(at));
		if (!counts)
			model_init(m, n);
		else if (kind == EV_MBARRIER_EXPECT_TX)
			m->tx += n;
		else
			model_complete(m, n);
	}
}
