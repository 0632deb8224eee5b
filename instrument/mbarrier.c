/* mbarrier: records of mbarrier operations -> events; barriers.c keeps the state.
 * A state word is the hardware's: what it carries is told by the instructions
 * that can have written it. */
#include "events.h"

static void on_arrive(struct dcluster *c, uint32_t warp, const struct record *r, unsigned flags)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	unsigned a = plan_address(i);
	const struct ptx_operand *o = &i->operand[a], *n = i->noperands > a + 1u ? o + 1 : NULL;

	if (ptx_has(i, MOD_noComplete))
		flags |= EVF_NOCOMPLETE;
	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = record_event(c, warp, r->site, EV_MB_ARRIVE, rest);
		unsigned first = (unsigned)__builtin_ctz(rest), many;
		uint64_t at = record_value(c, r, o, first);
		uint32_t amount = n ? (uint32_t)record_value(c, r, n, first) : 1;

		same = record_alike(c, r, rest, o);
		if (n)
			same = record_alike(c, r, same, n);
		refused_mbar(c, warp, r, same, at, true);
		many = (unsigned)__builtin_popcount(same);
		e.lanes = same;
		e.peer = record_owner(c, &e, at, true);
		e.addr = OFFSET(at);
		e.flags = (uint8_t)flags;
		e.sem = (uint8_t)ptx_sem_of(i, SEM_RELEASE);
		e.scope = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
		e.count = flags & EVF_EXPECT ? 1 : amount;
		e.tx = flags & EVF_EXPECT ? amount : 0;
		emit(c, &e);
		model_arrive(model_of(c, e.peer, OFFSET(at)), e.count * many, e.tx * many,
			flags & EVF_DROP);
	}
}

static void on_test(struct dcluster *c, uint32_t warp, const struct record *r, bool tries, bool done)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	unsigned a = plan_address(i);
	bool parity = ptx_has(i, MOD_parity);

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		struct event e = record_event(c, warp, r->site, EV_MB_TEST, rest);
		unsigned first = (unsigned)__builtin_ctz(rest);
		uint64_t at = record_value(c, r, &i->operand[a], first), want = 0;
		struct model *m;

		same = record_alike(c, r, rest, &i->operand[a]);
		if (parity) {
			want = record_value(c, r, &i->operand[a + 1], first) & 1;
			same = record_alike(c, r, same, &i->operand[a + 1]);
		}
		refused_mbar(c, warp, r, same, at, false);
		e.lanes = same;
		e.peer = record_owner(c, &e, at, false);
		e.addr = OFFSET(at);
		e.flags = (uint8_t)((done ? EVF_TRUE : 0) | (parity ? EVF_PARITY : 0) | (tries ? EVF_TRY : 0));
		e.sem = (uint8_t)ptx_sem_of(i, SEM_ACQUIRE);
		e.scope = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
		m = model_of(c, e.peer, OFFSET(at));
		if (!done) {
			if (!m->expected) /* there is nothing to wait for */
				emit(c, &e);
			continue;
		}
		if (!parity) /* the hardware's tokens are opaque: the phase that must be over */
			want = m->phase && (m->pending == m->expected || m->tx) ? m->phase - 1 : m->phase;
		model_wait(c, m, parity, want);
		e.tx = (int64_t)want;
		emit(c, &e);
	}
}

static bool writes(const struct ptx_insn *i, uint32_t reg)
{
	for (unsigned o = 0; o < ptx_written(i); o++) {
		if (i->operand[o].kind == PO_REG && i->operand[o].reg == reg)
			return true;
		for (unsigned k = 0; i->operand[o].kind == PO_VEC && k < i->operand[o].n; k++)
			if (i->operand[o].list[k].kind == PO_REG && i->operand[o].list[k].reg == reg)
				return true;
	}
	return false;
}

/* Every state that this register can hold is that of an arrival which completes
 * phases. Through moves, up to a depth that real code does not come to. */
static bool completes(const struct ptx_func *f, uint32_t reg, unsigned depth)
{
	bool any = false;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (!writes(i, reg))
			continue;
		any = true;
		if (ptx_effect_of((enum ptx_op)i->op) == EF_MBARRIER && !ptx_has(i, MOD_noComplete))
			continue;
		if (!depth || i->op != OP_mov || i->operand[1].kind != PO_REG
				|| !completes(f, i->operand[1].reg, depth - 1))
			return false;
	}
	return any;
}

void tell_pending(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct ptx_operand *state = &s->insn->operand[1];
	struct event e = record_event(c, warp, r->site, EV_MB_PENDING, r->lanes);

	e.flags = state->kind == PO_REG && completes(s->func, state->reg, 4) ? 0 : EVF_NOCOMPLETE;
	emit(c, &e);
}

void tell_failed_wait(struct dcluster *c, uint32_t warp, const struct record *r)
{
	enum ptx_op op = (enum ptx_op)record_site(c, r->site)->insn->op;

	if (op == OP_mbarrier_test_wait || op == OP_mbarrier_try_wait)
		on_test(c, warp, r, op == OP_mbarrier_try_wait, false);
}

void tell_stray(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;

	for (uint32_t l = r->lanes; l && !c->stopped; l &= l - 1)
		refused_mbar(c, warp, r, l & -l, record_value(c, r, &i->operand[plan_address(i)],
			(unsigned)__builtin_ctz(l)), false);
}

void tell_mbarrier(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	enum ev_kind kind = EV_MB_INIT;

	switch ((enum ptx_op)i->op) {
	case OP_mbarrier_test_wait: on_test(c, warp, r, false, true); return;
	case OP_mbarrier_try_wait: on_test(c, warp, r, true, true); return;
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
		struct event e = record_event(c, warp, r->site, kind, 1u << l);
		uint64_t at = record_value(c, r, &i->operand[0], l);
		uint32_t n = i->noperands > 1 ? (uint32_t)record_value(c, r, &i->operand[1], l) : 0;
		struct model *m;

		same = 1u << l;
		if (kind == EV_MB_INIT) { /* lanes that do the same do it once */
			same = record_alike(c, r, rest, &i->operand[0]);
			same = record_alike(c, r, same, &i->operand[1]);
			e.lanes = same;
		}
		refused_mbar(c, warp, r, same, at, kind == EV_MB_EXPECT || kind == EV_MB_COMPLETE);
		e.peer = record_owner(c, &e, at, kind == EV_MB_EXPECT || kind == EV_MB_COMPLETE);
		e.addr = OFFSET(at);
		e.sem = (uint8_t)ptx_sem_of(i, kind == EV_MB_INIT || kind == EV_MB_INVAL ? SEM_WEAK : SEM_RELAXED);
		e.scope = (uint8_t)ptx_scope_of(i, SCOPE_NONE);
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
			model_complete(m, n);
	}
}
