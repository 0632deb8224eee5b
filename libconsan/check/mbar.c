/* mbar: the mbarrier state machine, mirrored step by step, with the knowledge
 * that each phase hands over. Phases are counted in 64 bits; a parity is only
 * what the program says. Does not decide who may touch the bytes (race.c). */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_COUNT ((1u << 20) - 1)
#define MAX_TX ((int64_t)((1 << 20) - 1))

static uint32_t popcount(uint32_t x)
{
	return (uint32_t)__builtin_popcount(x);
}

struct mbar *mbar_of(struct cluster *c, unsigned cta, uint32_t addr)
{
	uint16_t at;

	if (cta >= c->nctas || addr / 8 >= c->cta[cta].bytes / 8)
		return NULL;
	at = c->cta[cta].mbar_at[addr / 8];
	return at ? &c->mbars.at[at - 1] : NULL;
}

static struct mbar *mbar_make(struct cluster *c, unsigned cta, uint32_t addr)
{
	struct mbar *m = mbar_of(c, cta, addr);

	if (m || cta >= c->nctas || addr / 8 >= c->cta[cta].bytes / 8 || c->mbars.n == UINT16_MAX)
		return m;
	vec_push(&c->mbars, ((struct mbar){ .cta = (uint16_t)cta, .addr = addr }));
	m = &c->mbars.at[c->mbars.n - 1];
	m->now = handed_new(c);
	m->before = handed_new(c);
	m->older = handed_new(c);
	m->view = base_alloc(c->per_cta * sizeof *m->view);
	c->cta[cta].mbar_at[addr / 8] = (uint16_t)c->mbars.n;
	return m;
}

/* ---- findings ---- */

/* The event at hand against the barrier; x: the other party, or NULL. */
static struct finding *begin_as(struct cluster *c, unsigned rule, enum severity sev,
	const struct event *e, const struct mbar *m, const char *what, const struct who *x,
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

static struct finding *begin(struct cluster *c, unsigned rule, const struct event *e,
	const struct mbar *m, const char *what, const struct who *x, const char *other)
{
	return begin_as(c, rule, rule_severity(rule), e, m, what, x, other);
}

static const char *doing(const struct event *e)
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
	case EV_BULK: return e->bulk.tensor ? "TMA load" : "bulk load";
	default: return "use";
	}
}

static void note_who(struct who_list *v, struct who x)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->at[i].warp == x.warp && v->at[i].lanes == x.lanes) {
			v->at[i] = x;
			return;
		}
	vec_push(v, x);
}

struct mbar *mbar_use(struct cluster *c, const struct event *e, unsigned cta, uint32_t addr)
{
	struct warp *w = warp_of(c, e);
	struct mbar *m = mbar_of(c, cta, addr);
	struct finding *f;

	if (e->kind == EV_BULK) /* its end is known by its slot, not by its issuer */
		cluster_touch(c, w, e, cta, doing(e));
	else
		cluster_visit(c, w, e, cta, doing(e));
	if (!m || !m->live) {
		f = begin(c, CS202, e, NULL, doing(e), m ? &m->init : NULL, "mbarrier.inval");
		if (f) {
			report_memory(c, f, 0, cta, addr, 8);
			report_edge(f, m ? "the object has been invalidated"
				: "no mbarrier.init was executed on this address");
			report_send(c, f);
		}
		return NULL;
	}
	if (!warp_knows(c, w, e->lanes, &m->init) && !cluster_knows_init(w, m)) {
		f = begin(c, CS207, e, m, doing(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "no synchronisation orders mbarrier.init in warp %u before this use in "
				"warp %u", c->warp[m->init.warp].id, w->id);
			report_send(c, f);
		}
	}
	if (w->cta != m->cta && !m->init_fenced && c->check->config.policy.mbarrier_init_fence) {
		f = begin(c, CS207, e, m, doing(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "CTA %u uses the object, and the initialising thread executed no "
				"fence.mbarrier_init.release.cluster after mbarrier.init", w->cta);
			report_send(c, f);
		}
	}
	if (e->kind != EV_BULK) /* its use of the object is its signal, see judge_signals() */
		note_who(&m->users, warp_who(w, e->lanes, e->site));
	return m;
}

/* ---- the machine ---- */

/* The phase is over although something bound for it has not come: its bytes
 * were not expected in time (B15), or not all of them (B14). */
static void judge_early(struct cluster *c, const struct event *e, struct mbar *m)
{
	const struct async_op *op;
	struct who x;
	struct finding *f;
	unsigned rule = m->promised ? CS211 : CS212;

	if (m->upset || !m->inflight)
		return;
	op = async_op_on(c, (uint32_t)(m - c->mbars.at) + 1);
	if (!op || op->copies)
		return; /* cp.async arrives say so themselves when they land */
	x = (struct who){ (uint16_t)op->warp, op->lanes, 0, op->site };
	f = begin(c, rule, e, m, doing(e), &x, "bulk load");
	m->upset = true;
	if (!f)
		return;
	if (m->promised)
		report_edge(f, "phase %llu completed with %lld bytes expected while %u copies that "
			"complete on it were in flight: expect_tx must include all their bytes",
			(unsigned long long)m->phase, (long long)m->promised, m->inflight);
	else
		report_edge(f, "phase %llu completed without waiting for the copy: expect_tx must precede "
			"the arrival that completes the phase, or be part of it", (unsigned long long)m->phase);
	report_send(c, f);
}

static void judge_expects(struct cluster *c, const struct event *e, struct mbar *m)
{
	struct finding *f;

	for (size_t i = 0; i < m->expects.n && !m->upset; i++) {
		f = begin(c, CS212, e, m, doing(e), &m->expects.at[i], "mbarrier.expect_tx");
		if (!f)
			continue;
		report_edge(f, "no arrival of phase %llu is ordered after this expect_tx, so the phase may "
			"complete before it", (unsigned long long)m->phase);
		report_hint(f, "use mbarrier.arrive.expect_tx, or execute expect_tx before the arrive of "
			"the same thread");
		report_send(c, f);
	}
}

static void test(struct cluster *c, const struct event *e, struct mbar *m)
{
	struct handed again;

	if (m->pending || m->tx)
		return;
	judge_early(c, e, m);
	judge_expects(c, e, m);
	m->phase++;
	m->pending = m->expected;
	m->promised = 0;
	m->late += m->inflight;
	m->inflight = 0;
	m->expects.n = 0;
	m->waits.n = 0;
	m->arrivals.n = 0;
	again = m->older;
	m->older = m->before;
	m->before = m->now;
	m->now = again;
	handed_clear(c, &m->now);
}

static void change_tx(struct cluster *c, const struct event *e, struct mbar *m, int64_t by)
{
	struct finding *f;

	m->tx += by;
	if ((m->tx <= MAX_TX && m->tx >= -MAX_TX) || m->upset)
		return;
	m->upset = true;
	f = begin(c, CS210, e, m, doing(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the tx-count becomes %lld, its range is -1048575 to 1048575", (long long)m->tx);
	report_send(c, f);
}

static void arrive(struct cluster *c, const struct event *e, struct mbar *m, uint32_t count)
{
	struct finding *f;
	const struct who *x;

	if (count > m->pending && !m->upset) {
		x = m->arrivals.n ? &m->arrivals.at[0] : NULL;
		f = begin(c, CS208, e, m, doing(e), x, "mbarrier arrive");
		m->upset = true;
		if (f) {
			report_edge(f, "%u arrivals, but phase %llu has only %u of %u pending",
				count, (unsigned long long)m->phase, m->pending, m->expected);
			report_send(c, f);
		}
	}
	m->pending = count > m->pending ? 0 : m->pending - count;
	test(c, e, m);
}

/* The warp that waited went on to issue a load, whose bytes the arriving lanes
 * have seen: so it had waited, although the bytes publish nothing else (A18). As
 * where bytes are expected before the buffer is known to be free. */
static bool waited_before_load(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));

	for (uint32_t k = 0; f && k < c->slots.n; k++) {
		const struct slot *s = &c->slots.at[k];

		if (s->warp == x->warp && s->issued >= x->epoch
			&& frontier_full(&c->space, f, PLANE_G, agent_slot(c, k)) >= s->epoch)
			return true;
	}
	return false;
}

/* Some wait for the previous phase happened before: for all these lanes one, or for
 * each its own, as where lanes wait one by one, each by the state of its own arrival.
 * own: waits of other warps do not count. */
static bool waited(struct cluster *c, const struct mbar *m, struct warp *w, uint32_t lanes, bool own)
{
	uint32_t left = lanes;

	for (size_t i = 0; left && i < m->waits.n; i++) {
		const struct who *x = &m->waits.at[i];

		if (own && x->warp != w->index)
			continue;
		if (warp_knows(c, w, left, x))
			return true;
		for (uint32_t rest = left; rest; rest &= rest - 1)
			if (warp_knows(c, w, rest & -rest, x))
				left &= ~(rest & -rest);
	}
	for (size_t i = 0; left && !own && i < m->waits.n; i++)
		if (waited_before_load(c, w, left, &m->waits.at[i]))
			return true;
	return !left;
}

/* B12: someone's wait for the previous phase happened before. By happens-before,
 * whoever waited; by the arriving thread's own waits only where the policy says so,
 * and as a note then, as no ring of buffers is written so (K8). From another
 * CTA the wait need only have taken place: there the way from the waiter to the
 * arriver leads through the bytes of the waiter's multicast, whose completion
 * comes after its issue but publishes no more than the bytes (A18). */
static void judge_wait(struct cluster *c, const struct event *e, struct mbar *m, struct warp *w)
{
	const uint8_t by_arriver = c->check->config.policy.wait_by_arriver;
	struct finding *f;
	bool somebody;

	if (!m->phase || m->upset || (w->cta != m->cta && m->waits.n))
		return;
	somebody = waited(c, m, w, e->lanes, false);
	if (somebody && (!by_arriver || waited(c, m, w, e->lanes, true)))
		return;
	f = begin_as(c, CS209, somebody && by_arriver == 1 ? SEV_NOTE : rule_severity(CS209), e, m,
		doing(e), m->waits.n ? &m->waits.at[0] : NULL, "mbarrier wait");
	if (!f)
		return;
	report_edge(f, "phase %llu is complete, and no wait for it %s this arrival for phase %llu",
		(unsigned long long)m->phase - 1, somebody ? "by the same warp precedes"
		: "is ordered before", (unsigned long long)m->phase);
	if (m->waits.n)
		report_hint(f, somebody ? "warp %u waited, ordered before this arrival of warp %u: "
			"sufficient without --knob=wait_by_arriver"
			: "warp %u waited, but no synchronisation orders its wait before this arrival of "
			"warp %u", c->warp[m->waits.at[0].warp].id, w->id);
	report_send(c, f);
}

/* ---- events ---- */

void on_mbarrier_init(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_mbarrier_init *i = &e->mbarrier_init;
	struct mbar *m = mbar_of(c, i->owner, i->addr);
	struct finding *f;

	if (!i->arrivals || i->arrivals > MAX_COUNT) {
		f = begin(c, CS203, e, NULL, doing(e), NULL, NULL);
		if (f) {
			report_memory(c, f, 0, i->owner, i->addr, 8);
			report_edge(f, "the count is %u, not 1 to 1048575", i->arrivals);
			report_send(c, f);
		}
	}
	if (m && m->live) {
		f = begin(c, CS204, e, m, doing(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "the object is live since an earlier mbarrier.init; "
				"mbarrier.inval must come between them");
			report_send(c, f);
		}
	} else if (e->lanes & (e->lanes - 1)) {
		/* All write the same value in one instruction: hardware does not mind,
		 * and ThunderKittens relies on it. */
		f = begin_as(c, CS204, c->check->config.policy.init_by_many_lanes
			? rule_severity(CS204) : SEV_NOTE, e, NULL, doing(e), NULL, NULL);
		if (f) {
			report_memory(c, f, 0, i->owner, i->addr, 8);
			report_edge(f, "%u lanes initialise the object in one instruction; let one lane "
				"initialise it", popcount(e->lanes));
			report_send(c, f);
		}
	}
	m = mbar_make(c, i->owner, i->addr);
	if (!m)
		return;
	access_object(c, w, e, m);
	shadow_guard(&c->cta[i->owner].shadow, m->addr, true);
	m->live = true;
	m->upset = false;
	m->expected = m->pending = i->arrivals;
	m->tx = m->promised = 0;
	m->phase = 0;
	m->inflight = m->late = 0;
	m->init = warp_who(w, e->lanes, e->site);
	m->init_fenced = false;
	m->init_phase = 0;
	m->users.n = m->waits.n = m->expects.n = m->arrivals.n = m->copies.n = 0;
	handed_clear(c, &m->now);
	handed_clear(c, &m->before);
	handed_clear(c, &m->older);
	for (uint32_t k = 0; k < c->per_cta; k++)
		m->view[k] = (struct mb_view){ .passed = -2, .polled = -2 };
}

/* Is the use over for the lanes that invalidate? Their own is; other lanes of
 * the warp may still be in it, as each polls for itself. */
static bool over(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));
	const uint32_t others = x->lanes & ~lanes;

	if (x->warp != w->index || !f)
		return warp_knows(c, w, lanes, x);
	return !others || frontier_full(&c->space, f, PLANE_G, x->warp) >= x->epoch
		|| !(others & ~frontier_lanes(&c->space, f, PLANE_G, x->warp, x->epoch));
}

/* Would it be, if the collectives of a warp ordered memory (A12)? The lane that
 * takes libcu++'s pipelines down knows of the others by a match alone. */
static bool over_if_met(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	const struct frontier *f = warp_frontier(w, (unsigned)__builtin_ctz(lanes));
	const uint32_t others = x->warp == w->index ? x->lanes & ~lanes : x->lanes;

	return f && !c->check->config.policy.collectives_order_nothing
		&& !(others & ~(frontier_lanes(&c->space, f, PLANE_G, x->warp, x->epoch)
			| frontier_lanes(&c->space, f, PLANE_SOFT_G, x->warp, x->epoch)));
}

void mbar_copies(struct mbar *m, struct who x)
{
	note_who(&m->copies, x);
}

/* Does the first of the lanes know that those copies have arrived? By a wait on the
 * barrier; its own wait for its copies will do. */
static bool arrived(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	const unsigned lane = (unsigned)__builtin_ctz(lanes);
	const struct frontier *f = warp_frontier(w, lane);
	const uint32_t agent = agent_copies(c, x->warp);
	uint32_t left = x->lanes;

	if (!f || frontier_full(&c->space, f, PLANE_G, agent) >= x->epoch)
		return true;
	left &= ~frontier_lanes(&c->space, f, PLANE_G, agent, x->epoch);
	if (x->warp == w->index && warp_own(w, AGENT_COPIES, PLANE_G, lane) >= x->epoch)
		left &= ~(1u << lane);
	return !left;
}

/* B06: an operation that signals the object must be known to be complete by the
 * thread that invalidates it, whether or not it has come by now; a later use
 * of the object by its issuer says nothing of it, nor does one before it. */
static void judge_signals(struct cluster *c, const struct event *e, struct mbar *m)
{
	const uint32_t index = (uint32_t)(m - c->mbars.at) + 1;
	const struct frontier *known = warp_frontier(warp_of(c, e), (unsigned)__builtin_ctz(e->lanes));
	const struct async_op *op = m->inflight + m->late ? async_op_on(c, index) : NULL;
	struct who x = { 0 };
	struct finding *f;

	if (op)
		x = (struct who){ (uint16_t)op->warp, op->lanes, 0, op->site };
	for (uint32_t k = 0; !op && !x.lanes && known && k < c->slots.n; k++) {
		const struct slot *s = &c->slots.at[k];

		if (s->mbar == index && frontier_full(&c->space, known, PLANE_G, agent_slot(c, k)) < s->epoch)
			x = (struct who){ s->warp, 1u << s->lane, 0, s->site };
	}
	for (size_t i = 0; !x.lanes && i < m->copies.n; i++)
		if (!arrived(c, warp_of(c, e), e->lanes, &m->copies.at[i]))
			x = m->copies.at[i];
	f = x.lanes ? begin(c, CS205, e, m, doing(e), &x, "asynchronous operation") : NULL;
	if (!f)
		return;
	report_edge(f, op ? "the operation is in flight and will still signal mbarrier %s"
		: "no synchronisation orders the signal of the operation on mbarrier %s before this inval",
		f->barrier.name);
	report_send(c, f);
}

void on_mbarrier_inval(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_mbarrier_inval *x = &e->mbarrier_inval;
	struct mbar *m = mbar_of(c, x->owner, x->addr);
	struct finding *f;

	if (!m || !m->live) {
		mbar_use(c, e, x->owner, x->addr);
		return;
	}
	for (size_t i = 0; i < m->users.n; i++) {
		bool met;

		if (over(c, w, e->lanes, &m->users.at[i]))
			continue;
		met = over_if_met(c, w, e->lanes, &m->users.at[i]);
		f = begin_as(c, CS205, met ? SEV_NOTE : rule_severity(CS205), e, m, doing(e),
			&m->users.at[i], "mbarrier use");
		if (met) {
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
	judge_signals(c, e, m);
	shadow_guard(&c->cta[x->owner].shadow, m->addr, false);
	access_object(c, w, e, m);
	m->live = false;
	m->init = warp_who(w, e->lanes, e->site);
}

/* Does an arrival of one of the lanes come after it? The phase waits for that
 * one, whatever the others know. */
static bool arrives_after(struct cluster *c, struct warp *w, uint32_t lanes, const struct who *x)
{
	for (uint32_t rest = lanes; rest; rest &= rest - 1)
		if (warp_knows(c, w, rest & -rest, x))
			return true;
	return false;
}

/* Without a scope as written, what is handed from CTA to CTA counts as handed
 * over at cluster scope: production code writes none, by the letter it is .cta
 * (K5, S18). */
static bool cluster_wide(const struct cluster *c, enum ev_sem sem, enum ev_scope scope)
{
	return scope == SCOPE_NONE ? !c->check->config.policy.scope_as_written : is_wide(sem, scope);
}

/* B24, B25: to waiters of the same CTA any scope will do; a relaxed arrive
 * publishes what an earlier fence released. */
static void publish(struct cluster *c, const struct event *e, struct mbar *m, struct warp *w)
{
	const struct event_mbarrier_arrive *a = &e->mbarrier_arrive;
	bool relaxed = a->sem == SEM_RELAXED || a->sem == SEM_WEAK, far = w->cta != m->cta;
	bool held = far && !cluster_wide(c, a->sem, a->scope);
	struct frontier *into = !far ? m->now.near : held ? m->now.far.held : m->now.far.wide;

	if (held || (far && relaxed && warp_narrow(w, e->lanes)))
		m->now.far.site = e->site;
	if (relaxed)
		warp_published(c, w, e->lanes, into, far ? m->now.far.held : NULL);
	else
		warp_release(c, w, e->lanes, into);
}

/* What was released in a phase that is over. */
static void learn(struct cluster *c, const struct event *e, struct warp *w, const struct handed *h)
{
	const struct event_mbarrier_test *t = &e->mbarrier_test;
	bool relaxed = t->sem == SEM_RELAXED || t->sem == SEM_WEAK;
	bool far = cluster_wide(c, t->sem, t->scope);

	if (relaxed)
		warp_observe(c, w, e->lanes, h->near, 0);
	else
		warp_acquire(c, w, e->lanes, h->near);
	if (c->nctas == 1)
		return;
	if (!far)
		warp_miss(c, w, e->lanes, h->far.wide, h->far.site, e->site);
	else if (relaxed)
		warp_observe(c, w, e->lanes, h->far.wide, SCOPE_CLUSTER);
	else
		warp_acquire(c, w, e->lanes, h->far.wide);
	if (h->far.site)
		warp_miss(c, w, e->lanes, h->far.held, h->far.site, e->site);
}

/* The phase that a successful wait saw complete. Recorded runs report a wait when it has
 * returned and arrivals when they begin, so that the next phase may already be complete here:
 * the parity decides. */
static int64_t phase_seen(const struct mbar *m, const struct event_mbarrier_test *t)
{
	int64_t last = (int64_t)m->phase - 1;

	return t->flags & TEST_PARITY && ((uint64_t)last ^ t->phase) & 1 ? last - 1 : last;
}

void on_mbarrier_arrive(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_arrive *a = &e->mbarrier_arrive;
	struct warp *w = warp_of(c, e);
	struct mbar *m = mbar_use(c, e, a->owner, a->addr);
	uint32_t n = popcount(e->lanes);
	uint64_t phase;
	struct finding *f;

	if (!m)
		return;
	judge_wait(c, e, m, w);
	for (size_t i = 0; i < m->expects.n;) {
		if (arrives_after(c, w, e->lanes, &m->expects.at[i]))
			m->expects.at[i] = m->expects.at[--m->expects.n];
		else
			i++;
	}
	if (a->flags & ARRIVE_EXPECT_TX) {
		change_tx(c, e, m, a->tx_count * (int64_t)n);
		m->promised += a->tx_count * (int64_t)n;
	}
	publish(c, e, m, w);
	note_who(&m->arrivals, (struct who){ (uint16_t)w->index, e->lanes, 0, e->site });
	if (a->flags & ARRIVE_DROP) {
		uint32_t drop = a->arrivals * n;

		if (drop >= m->expected) {
			f = begin(c, CS214, e, m, doing(e), NULL, NULL);
			if (f) {
				report_edge(f, "%u of %u expected arrivals are dropped, none remains for the "
					"next phase", drop, m->expected);
				report_send(c, f);
			}
		}
		m->expected -= drop < m->expected ? drop : m->expected;
	}
	phase = m->phase;
	arrive(c, e, m, a->arrivals * n);
	if (!(a->flags & ARRIVE_NO_COMPLETE) || m->phase == phase)
		return;
	f = begin(c, CS213, e, m, doing(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the arrival completes phase %llu in spite of .noComplete",
		(unsigned long long)phase);
	report_send(c, f);
}

void on_mbarrier_expect_tx(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_expect_tx *x = &e->mbarrier_expect_tx;
	struct mbar *m = mbar_use(c, e, x->owner, x->addr);
	int64_t bytes = x->tx_count * (int64_t)popcount(e->lanes);

	if (!m)
		return;
	change_tx(c, e, m, bytes);
	m->promised += bytes;
	vec_push(&m->expects, warp_who(warp_of(c, e), e->lanes, e->site));
}

void on_mbarrier_complete_tx(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_complete_tx *x = &e->mbarrier_complete_tx;
	struct mbar *m = mbar_use(c, e, x->owner, x->addr);

	if (!m)
		return;
	change_tx(c, e, m, -x->tx_count * (int64_t)popcount(e->lanes));
	test(c, e, m);
}

/* B21: a waiter must not fall behind: two phases on, the parity means another
 * phase, and the wait may never return. */
static void judge_lag(struct cluster *c, const struct event *e, struct mbar *m, struct mb_view *v)
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
	f = begin(c, CS216, e, m, doing(e), NULL, NULL);
	if (f) {
		report_edge(f, "the thread began to wait for phase %lld; the mbarrier is in phase %llu, "
			"which has the same parity", (long long)v->polled, (unsigned long long)m->phase);
		report_hint(f, "let the mbarrier advance only after this thread has observed each phase");
		report_send(c, f);
	}
	v->polled = (int64_t)m->phase;
}

void on_mbarrier_test(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_test *t = &e->mbarrier_test;
	struct warp *w = warp_of(c, e);
	struct mbar *m = mbar_use(c, e, t->owner, t->addr);
	struct mb_view none = { .passed = -2, .polled = -2 }, *v = &none;
	struct finding *f;
	int64_t seen;

	if (!m)
		return;
	if (w->cta == m->cta)
		v = &m->view[w->id];
	if (!(t->flags & TEST_PARITY) && t->phase != m->phase && t->phase + 1 != m->phase) {
		f = begin(c, CS215, e, m, doing(e), NULL, NULL);
		if (f) {
			report_edge(f, "the token names phase %lld; only the current phase (%llu) and the one "
				"before it can be tested", (long long)t->phase, (unsigned long long)m->phase);
			report_send(c, f);
		}
	}
	if (!(t->flags & TEST_TRUE)) {
		if (t->flags & TEST_PARITY)
			judge_lag(c, e, m, v);
		return;
	}
	seen = phase_seen(m, t);
	v->polled = -2;
	v->passed_lanes = e->lanes | (v->passed == seen ? v->passed_lanes : 0);
	v->passed = seen;
	v->relaxed = t->sem == SEM_RELAXED || t->sem == SEM_WEAK;
	v->site = e->site;
	if (seen + 1 == (int64_t)m->phase)
		note_who(&m->waits, warp_who(w, e->lanes, e->site));
	if (seen < 0)
		return; /* S3: the phase before the first hands nothing over */
	learn(c, e, w, seen + 1 == (int64_t)m->phase ? &m->before : &m->older);
}

/* B29: the state of a .noComplete arrive carries the pending count */
void on_mbarrier_pending_count(struct cluster *c, const struct event *e)
{
	struct finding *f;

	if (e->mbarrier_pending_count.no_complete)
		return;
	f = begin(c, CS220, e, NULL, doing(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the state was not returned by an arrive with .noComplete");
	report_send(c, f);
}

void on_mbarrier_signal(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_signal *s = &e->mbarrier_signal;
	struct mbar *m = mbar_of(c, s->owner, s->addr);
	struct async_op op = { 0 };
	struct finding *f;
	struct who x;
	bool found = async_op_take(c, async_op_key(s->async_op, s->owner), &op);

	/* may come between two lanes of one st.async, which remain one instruction */
	c->slot_event += c->slot_event + 1 == c->stats.events;
	if (!m || !m->live)
		return; /* reported at the issue or at the inval */
	if (found) {
		/* counts are per phase; the object may have begun anew since */
		if (op.phase == m->phase)
			m->inflight -= m->inflight > 0;
		else
			m->late -= m->late > 0;
		x = (struct who){ (uint16_t)op.warp, op.lanes, 0, op.site };
	}
	/* A18, B27: exactly the operation's own effects */
	if (found && op.copies)
		frontier_add(&c->space, m->now.near, PLANE_G, agent_copies(c, op.warp), op.lanes,
			warp_copiers(&c->warp[op.warp]), op.epoch);
	else if (found && op.slot)
		frontier_add(&c->space, m->now.near, PLANE_G, agent_slot(c, op.slot - 1), UINT32_MAX,
			UINT32_MAX, op.epoch);
	if (found && op.copies && op.phase != m->phase && !m->upset) {
		m->upset = true;
		f = begin(c, CS219, e, m, "cp.async completion", &x, "cp.async.mbarrier.arrive");
		if (f) {
			report_edge(f, "the arrive was issued in phase %llu, which completed before the copies",
				(unsigned long long)op.phase);
			report_hint(f, "with .noinc the count of mbarrier.init must include this arrive");
			report_send(c, f);
		}
	}
	change_tx(c, e, m, -s->tx_count);
	if (s->arrivals)
		arrive(c, e, m, s->arrivals);
	else
		test(c, e, m);
}

/* S23, S24: half-filled phases are fine; bytes that do not balance are not. */
void mbar_cluster_end(struct cluster *c)
{
	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];
		struct finding *f;

		if (!m->live || !m->tx || m->upset || m->inflight || m->late)
			continue;
		f = report_new(c, CS211, rule_severity(CS211), m->init.site, 0);
		if (!f)
			continue;
		report_side(c, f, m->init.warp, only_lane(m->init.lanes), m->init.site, "mbarrier.init");
		report_memory(c, f, 0, m->cta, m->addr, 8);
		report_mbar(c, f, m);
		report_edge(f, "at the end of the kernel the tx-count of phase %llu is %lld: %s",
			(unsigned long long)m->phase, (long long)m->tx,
			m->tx > 0 ? "bytes were expected that no copy delivered"
			: "copies delivered bytes that were not expected");
		report_send(c, f);
	}
}
