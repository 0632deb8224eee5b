/* mbar_check: the rules about the use of mbarriers, and their findings. mbar.c calls them at the
 * transitions of the state machine. */
#include "mbar_check.h"
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include "libconsan/event/event.h"

#include <stdlib.h>
#include <string.h>

/* ---- findings ---- */

/* A finding about the current event and the barrier; x: the other operation, or NULL. */
struct finding *mbar_report_as(struct cluster *c, unsigned rule, enum severity sev,
	const struct event *e, const struct mbar *m, const char *what, const struct past_op *x,
	const char *other)
{
	struct finding *f = report_new(c, rule, sev, e->site, x ? x->site : 0);

	if (!f)
		return NULL;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site, what);
	if (x)
		report_side(c, f, x->warp, only_lane(x->lanes), x->site, other);
	if (m) {
		report_mbar(c, f, m);
		report_memory(c, f, 0, m->cta, m->addr, 8);
		if (x)
			report_memory(c, f, 1, m->cta, m->addr, 8);
	}
	return f;
}

struct finding *mbar_report(struct cluster *c, unsigned rule, const struct event *e,
	const struct mbar *m, const char *what, const struct past_op *x, const char *other)
{
	return mbar_report_as(c, rule, rule_severity(rule), e, m, what, x, other);
}

const char *mbar_operation(const struct event *e)
{
	const unsigned flags = e->kind == EV_MBARRIER_ARRIVE ? e->mbarrier_arrive.flags : 0;

	switch (e->kind) {
	case EV_MBARRIER_INIT: return "mbarrier.init";
	case EV_MBARRIER_INVAL: return "mbarrier.inval";
	case EV_MBARRIER_ARRIVE: return flags & ARRIVE_DROP ? "mbarrier.arrive_drop"
		: flags & ARRIVE_EXPECT_TX ? "mbarrier.arrive.expect_tx" : "mbarrier.arrive";
	case EV_MBARRIER_EXPECT_TX: return "mbarrier.expect_tx";
	case EV_MBARRIER_COMPLETE_TX: return "mbarrier.complete_tx";
	case EV_MBARRIER_TEST:
		return e->mbarrier_test.flags & TEST_TRY ? "mbarrier.try_wait" : "mbarrier.test_wait";
	case EV_MBARRIER_PENDING_COUNT: return "mbarrier.pending_count";
	case EV_MBARRIER_SIGNAL: return "asynchronous signal";
	case EV_CP_ASYNC_ARRIVE: return "cp.async.mbarrier.arrive";
	case EV_TCGEN05_COMMIT: return "tcgen05.commit";
	case EV_BULK: return e->bulk.tensor ? "TMA load" : "bulk load";
	case EV_TRY_CANCEL: return "clusterlaunchcontrol.try_cancel";
	default: return "use";
	}
}

/* ---- rules ---- */

/* The newest expect_tx of the phase has to announce what the copies that were issued for it bring more
 * than all of them together announced. */
static void edit_bytes(struct finding *f, const struct mbar *m)
{
	const struct expectation *x = m->expects.n ? &m->expects.at[m->expects.n - 1] : NULL;
	const char *ptx = site_get(m->expect_site)->ptx;

	if (!x || x->op.site != m->expect_site || x->op.lanes & (x->op.lanes - 1)
		|| m->copied <= m->expected_tx)
		return;
	report_hint(f, HINT(too_few_bytes), (long long)m->expected_tx, (long long)m->copied);
	report_edit(f, m->expect_site, EDIT(too_few_bytes), strstr(ptx, "arrive") ? 2u : 1u,
		(long long)(x->bytes + m->copied - m->expected_tx));
}

/* The phase is complete although an operation bound for it is not: its bytes were not expected in
 * time (B15), or not all of them (B14). */
void mbar_check_early(struct cluster *c, const struct event *e, struct mbar *m)
{
	const struct async_op *op;
	struct past_op x;
	struct finding *f;
	unsigned rule = m->expected_tx ? CS211 : CS212;

	if (m->reported || !m->inflight)
		return;
	op = async_op_on(c, (uint32_t)(m - c->mbars.at) + 1);
	if (!op || op->copies || op->tc)
		return; /* these arrivals are checked when they take place */
	x = (struct past_op){ (uint16_t)op->warp, op->lanes, 0, op->site };
	f = mbar_report(c, rule, e, m, mbar_operation(e), &x, "bulk load");
	m->reported = true;
	if (!f)
		return;
	if (m->expected_tx)
		report_edge(f, "phase %llu completed with %lld bytes expected while %u copies that "
			"complete on it were in flight: expect_tx must include all their bytes",
			(unsigned long long)m->phase, (long long)m->expected_tx, m->inflight);
	else
		report_edge(f, "phase %llu completed without waiting for the copy: expect_tx must precede "
			"the arrival that completes the phase, or be part of it", (unsigned long long)m->phase);
	edit_set(f, EDIT_CHANGE, m->expected_tx ? m->expect_site : e->site, 0, "?");
	if (m->expected_tx)
		edit_bytes(f, m);
	report_send(c, f);
}

void mbar_check_expects(struct cluster *c, const struct event *e, struct mbar *m)
{
	struct finding *f;

	for (size_t i = 0; i < m->expects.n && !m->reported; i++) {
		const struct expectation *x = &m->expects.at[i];

		if (!x->open || x->others < x->before)
			continue;
		f = mbar_report(c, CS212, e, m, mbar_operation(e), &x->op, "mbarrier.expect_tx");
		if (!f)
			continue;
		report_edge(f, "no arrival of phase %llu is ordered after this expect_tx, so the phase may "
			"complete before it", (unsigned long long)m->phase);
		report_hint(f, HINT(arrive_expect_tx));
		report_edit(f, x->op.site, EDIT(arrive_expect_tx));
		report_send(c, f);
	}
}

/* Copies by cp.async are known from the arrive that tracks them: a lane that waited executed it
 * later. */
static bool waited_before_copies(struct cluster *c, const struct frontier *f,
	const struct past_op *x)
{
	const struct warp *w = &c->warp[x->warp];

	for (size_t i = w->copy_arrivals.n; i-- > 0 && w->copy_arrivals.at[i].issued >= x->epoch;) {
		const struct copy_arrival *a = &w->copy_arrivals.at[i];

		if (a->lanes & x->lanes && frontier_knows_one(&c->space, f, agent_copies(c, x->warp),
				a->lanes & x->lanes, a->group))
			return true;
	}
	return false;
}

/* The waiting warp later issued a load or a tcgen05 operation whose completion the arriving lanes
 * have observed: so its wait took place before, although the completion releases nothing that the
 * warp did itself (A18). This happens where bytes are expected before the buffer is known to be
 * free, and with accumulators that are handed over by commits. */
static bool waited_before_load(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct past_op *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));

	if (f && c->ntensor && tc_knows_later(c, f, x))
		return true;
	if (f && waited_before_copies(c, f, x))
		return true;
	for (uint32_t k = 0; f && k < c->slots.n; k++) {
		const struct slot *s = &c->slots.at[k];

		if (s->warp == x->warp && s->issued >= x->epoch
			&& frontier_full(&c->space, f, PLANE_G, agent_slot(c, k)) >= s->epoch)
			return true;
	}
	return false;
}

/* Is a wait for the previous phase ordered before: one for all these lanes, or one for each of
 * them, as where lanes wait one by one, each by the state of its own arrival? same_warp: waits of
 * other warps do not count. */
static bool waited(struct cluster *c, const struct mbar *m, struct warp *w, uint32_t lanes,
	bool same_warp)
{
	uint32_t left = lanes;

	for (size_t i = 0; left && i < m->waits.n; i++) {
		const struct past_op *x = &m->waits.at[i];

		if (same_warp && x->warp != w->index)
			continue;
		if (warp_all_know(c, w, left, x))
			return true;
		for (uint32_t rest = left; rest; rest &= rest - 1)
			if (warp_all_know(c, w, rest & -rest, x))
				left &= ~(rest & -rest);
	}
	for (size_t i = 0; left && !same_warp && i < m->waits.n; i++)
		if (waited_before_load(c, w, left, &m->waits.at[i]))
			return true;
	return !left;
}

/* A thread waits for a phase after an arrival for the next one that no wait preceded: it may have
 * missed that phase. */
void mbar_check_late_wait(struct cluster *c, const struct event *e, struct mbar *m, int64_t seen)
{
	const struct past_op *x = &m->unwaited;
	struct finding *f;

	if (!m->unwaited_phase || seen + 1 != (int64_t)m->unwaited_phase)
		return;
	m->unwaited_phase = 0;
	f = report_new(c, CS209, rule_severity(CS209), x->site, 0);
	if (!f)
		return;
	report_side(c, f, x->warp, only_lane(x->lanes), x->site, "mbarrier arrive");
	report_mbar(c, f, m);
	report_memory(c, f, 0, m->cta, m->addr, 8);
	report_edge(f, "warp %u waits for phase %lld, and that wait is not ordered before this arrival "
		"for phase %lld", warp_of(c, e)->id, (long long)seen, (long long)seen + 1);
	report_hint(f, HINT(wait_not_ordered), warp_of(c, e)->id, c->warp[x->warp].id);
	report_send(c, f);
}

/* Do all these lanes know every arrival of the previous phase? Then that phase was complete before,
 * although no wait says so. What asynchronous operations signal is known from a wait only. */
static bool ordered_after_phase(struct cluster *c, const struct mbar *m, struct warp *w,
	uint32_t lanes)
{
	if (m->signalled_before)
		return false;
	for (size_t i = 0; i < m->arrivals_before.n; i++) {
		const struct past_op *x = &m->arrivals_before.at[i];

		for (uint32_t of = x->lanes; of; of &= of - 1) {
			const struct past_op one = { x->warp, of & -of, x->epoch, x->site };

			for (uint32_t rest = lanes; rest; rest &= rest - 1)
				if (!warp_all_know(c, w, rest & -rest, &one))
					return false;
		}
	}
	return true;
}

/* B12: a wait for the previous phase must happen before the arrival. Any thread's wait counts; only
 * waits of the arriving thread count if the policy requires it, and as a note then, as no ring of
 * buffers is written so (K8). In another CTA the wait need only have taken place: there the path
 * from the waiting to the arriving thread leads through the bytes of the waiter's multicast, whose
 * completion follows its issue but releases no more than the bytes (A18). */
void mbar_check_wait(struct cluster *c, const struct event *e, struct mbar *m, struct warp *w)
{
	const uint8_t by_arriver = c->check->config.policy.wait_by_arriver;
	enum severity sev = rule_severity(CS209);
	struct finding *f;
	bool other_warp, complete;

	if (!m->phase || m->reported || (w->cta != m->cta && m->waits.n))
		return;
	other_warp = waited(c, m, w, e->lanes, false);
	if (other_warp && (!by_arriver || waited(c, m, w, e->lanes, true)))
		return;
	complete = !other_warp && !m->waits.n && ordered_after_phase(c, m, w, e->lanes);
	if (complete) {
		m->unwaited = (struct past_op){ (uint16_t)w->index, e->lanes, 0, e->site };
		m->unwaited_phase = m->phase;
	}
	if (complete || (other_warp && by_arriver == 1))
		sev = SEV_NOTE;
	f = mbar_report_as(c, CS209, sev, e, m, mbar_operation(e), m->waits.n ? &m->waits.at[0] : NULL,
		"mbarrier wait");
	if (!f)
		return;
	report_edge(f, "phase %llu is complete, and no wait for it %s this arrival for phase %llu",
		(unsigned long long)m->phase - 1, other_warp ? "by the same warp precedes"
		: "is ordered before", (unsigned long long)m->phase);
	if (complete)
		report_hint(f, HINT(phase_known_complete), (unsigned long long)m->phase - 1);
	else if (m->waits.n && other_warp)
		report_hint(f, HINT(waited_by_other_warp), c->warp[m->waits.at[0].warp].id, w->id);
	else if (m->waits.n) {
		report_hint(f, HINT(wait_not_ordered), c->warp[m->waits.at[0].warp].id, w->id);
		report_between(f, m->waits.at[0].site, e->site, EDIT(wait_not_ordered));
	}
	report_send(c, f);
}

/* Is the use complete for the lanes that invalidate? Their own is; other lanes of the warp may
 * still be executing it, as each polls for itself. */
static bool finished(struct cluster *c, struct warp *w, uint32_t lanes, const struct past_op *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));
	const uint32_t others = x->lanes & ~lanes;

	if (x->warp != w->index || !f)
		return warp_all_know(c, w, lanes, x);
	return frontier_knows(&c->space, f, x->warp, others, x->epoch);
}

/* Would it be complete if the collectives of a warp ordered memory (A12)? The lane that destroys
 * libcu++'s pipelines is ordered after the others by a match alone. */
static bool finished_if_collective(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct past_op *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));
	const uint32_t others = x->warp == w->index ? x->lanes & ~lanes : x->lanes;

	return f && !c->check->config.policy.collectives_order_nothing
		&& !(others & ~(frontier_lanes(&c->space, f, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, f, PLANE_COLLECTIVE_G, x->warp, x->epoch)));
}

/* The last uses of the object must be ordered before mbarrier.inval. */
void mbar_check_users(struct cluster *c, const struct event *e, const struct mbar *m)
{
	struct warp *w = warp_of(c, e);
	struct finding *f;

	for (size_t i = 0; i < m->users.n; i++) {
		bool collective;

		if (finished(c, w, e->lanes, &m->users.at[i]))
			continue;
		collective = finished_if_collective(c, w, e->lanes, &m->users.at[i]);
		f = mbar_report_as(c, CS205, collective ? SEV_NOTE : rule_severity(CS205), e, m,
			mbar_operation(e), &m->users.at[i], "mbarrier use");
		if (collective) {
			if (!f)
				continue;
			report_edge(f, "only a warp collective (shfl, vote, match, redux) is executed between "
				"them: it converges the lanes but orders no memory");
			report_send(c, f);
			continue;
		}
		if (!f)
			break;
		if (m->users.at[i].warp == w->index)
			report_edge(f, "no bar.warp.sync (__syncwarp) orders the last use of mbarrier %s by "
				"other lanes before this inval", f->barrier.name);
		else
			report_edge(f, "no synchronisation orders warp %u's last use of mbarrier %s before "
				"this inval", c->warp[m->users.at[i].warp].id, f->barrier.name);
		report_send(c, f);
		break;
	}
}

/* Does the first of the lanes know that those copies have arrived? By a wait on the barrier, or by
 * its own wait for its copies. */
static bool arrived(struct cluster *c, struct warp *w, uint32_t lanes, const struct past_op *x)
{
	const unsigned lane = (unsigned)__builtin_ctz(lanes);
	const struct frontier *f = warp_frontier(w, lane);
	const uint32_t agent = agent_copies(c, x->warp);
	uint32_t left = x->lanes;

	if (!f || frontier_full(&c->space, f, PLANE_G, agent) >= x->epoch)
		return true;
	left &= ~frontier_lanes(&c->space, f, PLANE_G, agent, x->epoch);
	if (x->warp == w->index && warp_progress(w, AGENT_COPIES, PLANE_G, lane) >= x->epoch)
		left &= ~(1u << lane);
	return !left;
}

/* B06: the thread that invalidates the object must know that an operation that signals it is
 * complete, whether or not it is by now; an earlier or later use of the object by the issuer does
 * not show that. */
void mbar_check_signals(struct cluster *c, const struct event *e, struct mbar *m)
{
	const uint32_t index = (uint32_t)(m - c->mbars.at) + 1;
	const struct frontier *known = warp_frontier(warp_of(c, e), (unsigned)__builtin_ctz(e->lanes));
	const struct async_op *op = m->inflight + m->late ? async_op_on(c, index) : NULL;
	struct past_op x = { 0 };
	struct finding *f;

	if (op)
		x = (struct past_op){ (uint16_t)op->warp, op->lanes, 0, op->site };
	for (uint32_t k = 0; !op && !x.lanes && known && k < c->slots.n; k++) {
		const struct slot *s = &c->slots.at[k];

		if (s->mbar == index && frontier_full(&c->space, known, PLANE_G,
			agent_slot(c, k)) < s->epoch)
			x = (struct past_op){ s->warp, 1u << s->lane, 0, s->site };
	}
	if (!x.lanes && known)
		tc_unknown_commit(c, index - 1, known, &x);
	for (size_t i = 0; !x.lanes && i < m->copies.n; i++)
		if (!arrived(c, warp_of(c, e), e->lanes, &m->copies.at[i]))
			x = m->copies.at[i];
	f = x.lanes ? mbar_report(c, CS205, e, m, mbar_operation(e), &x, "asynchronous operation")
		: NULL;
	if (!f)
		return;
	report_edge(f, op ? "the operation is in flight and will still signal mbarrier %s"
		: "no synchronisation orders the signal of the operation on mbarrier %s before this inval",
		f->barrier.name);
	report_send(c, f);
}

/* B21: a waiter must not fall behind: two phases later the parity denotes another phase, and the
 * wait may never return. */
void mbar_check_lag(struct cluster *c, const struct event *e, struct mbar *m, struct mb_view *v)
{
	struct finding *f;

	if (e->mbarrier_test.failed_phase) {
		v->polled = (int64_t)e->mbarrier_test.failed_phase - 1;
		v->site = e->site;
		v->lanes = e->lanes;
	}
	if (v->polled < 0 || v->site != e->site || v->lanes != e->lanes
		|| (int64_t)m->phase < v->polled + 2 || ((int64_t)m->phase - v->polled) & 1) {
		v->polled = (int64_t)m->phase;
		v->site = e->site;
		v->lanes = e->lanes;
		return;
	}
	f = mbar_report(c, CS216, e, m, mbar_operation(e), NULL, NULL);
	if (f) {
		report_edge(f, "the thread began to wait for phase %lld; the mbarrier is in phase %llu, "
			"which has the same parity", (long long)v->polled, (unsigned long long)m->phase);
		report_hint(f, HINT(observe_each_phase));
		report_send(c, f);
	}
	v->polled = (int64_t)m->phase;
}
