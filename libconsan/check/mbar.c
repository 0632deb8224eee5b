/* mbar: the mbarrier state machine, mirrored step by step, with the knowledge that each phase
 * releases. Phases are counted in 64 bits; the program only names a parity. race.c checks accesses
 * to the bytes of the object, mbar_check.c the rules about its use. */
#include "mbar_check.h"
#include "tcgen05.h"
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
	m->now = phase_release_new(c);
	m->before = phase_release_new(c);
	m->older = phase_release_new(c);
	m->view = base_alloc(c->per_cta * sizeof *m->view);
	c->cta[cta].mbar_at[addr / 8] = (uint16_t)c->mbars.n;
	return m;
}

static void note_op(struct past_op_list *v, struct past_op x)
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
	const bool async = e->kind == EV_BULK || e->kind == EV_TRY_CANCEL ||
		e->kind == EV_TCGEN05_COMMIT;
	struct finding *f;

	/* its completion is known through its own agent, not through its issuer */
	if (async)
		cluster_check_peer(c, w, e, cta, mbar_operation(e));
	else
		cluster_use_peer(c, w, e, cta, mbar_operation(e));
	if (!m || !m->live) {
		f = mbar_report(c, CS202, e, NULL, mbar_operation(e), m ? &m->init : NULL,
			"mbarrier.inval");
		if (f) {
			report_memory(c, f, 0, cta, addr, 8);
			report_edge(f, m ? "the object has been invalidated"
				: "no mbarrier.init was executed on this address");
			report_send(c, f);
		}
		return NULL;
	}
	if (!warp_all_know(c, w, e->lanes, &m->init) && !cluster_knows_init(w, m)) {
		f = mbar_report(c, CS207, e, m, mbar_operation(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "no synchronisation orders mbarrier.init in warp %u before this use in "
				"warp %u", c->warp[m->init.warp].id, w->id);
			report_send(c, f);
		}
	}
	if (w->cta != m->cta && !m->init_fenced && c->check->config.policy.mbarrier_init_fence) {
		f = mbar_report(c, CS207, e, m, mbar_operation(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "CTA %u uses the object, and the initialising thread executed no "
				"fence.mbarrier_init.release.cluster after mbarrier.init", w->cta);
			report_send(c, f);
		}
	}
	if (!async) /* its use of the object is its signal, see mbar_check_signals() */
		note_op(&m->users, warp_past_op(w, e->lanes, e->site));
	return m;
}

/* ---- state machine ---- */

static void test(struct cluster *c, const struct event *e, struct mbar *m)
{
	struct past_op_list free_list = m->arrivals_before;
	struct phase_release again;

	if (m->pending || m->tx)
		return;
	mbar_check_early(c, e, m);
	mbar_check_expects(c, e, m);
	m->phase++;
	m->pending = m->expected;
	m->expected_tx = m->copied = 0;
	m->late += m->inflight;
	m->inflight = 0;
	m->expects.n = 0;
	m->waits.n = 0;
	m->arrivals_before = m->arrivals;
	m->signalled_before = m->signalled;
	free_list.n = 0;
	m->arrivals = free_list;
	m->signalled = false;
	again = m->older;
	m->older = m->before;
	m->before = m->now;
	m->now = again;
	phase_release_clear(c, &m->now);
}

static void change_tx(struct cluster *c, const struct event *e, struct mbar *m, int64_t by)
{
	struct finding *f;

	m->tx += by;
	if ((m->tx <= MAX_TX && m->tx >= -MAX_TX) || m->reported)
		return;
	m->reported = true;
	f = mbar_report(c, CS210, e, m, mbar_operation(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the tx-count becomes %lld, its range is -1048575 to 1048575", (long long)m->tx);
	report_send(c, f);
}

static void arrive(struct cluster *c, const struct event *e, struct mbar *m, uint32_t count)
{
	struct finding *f;
	const struct past_op *x;

	if (count > m->pending && !m->reported) {
		x = m->arrivals.n ? &m->arrivals.at[0] : NULL;
		f = mbar_report(c, CS208, e, m, mbar_operation(e), x, "mbarrier arrive");
		m->reported = true;
		if (f) {
			report_edge(f, "%u arrivals, but phase %llu has only %u of %u pending",
				count, (unsigned long long)m->phase, m->pending, m->expected);
			edit_set(f, EDIT_CHANGE, m->init.site, 0, "?");
			report_send(c, f);
		}
	}
	m->pending = count > m->pending ? 0 : m->pending - count;
	test(c, e, m);
}

/* ---- events ---- */

void on_mbarrier_init(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_mbarrier_init *i = &e->mbarrier_init;
	struct mbar *m = mbar_of(c, i->owner, i->addr);
	struct finding *f;

	if (!i->arrivals || i->arrivals > MAX_COUNT) {
		f = mbar_report(c, CS203, e, NULL, mbar_operation(e), NULL, NULL);
		if (f) {
			report_memory(c, f, 0, i->owner, i->addr, 8);
			report_edge(f, "the count is %u, not 1 to 1048575", i->arrivals);
			report_send(c, f);
		}
	}
	if (m && m->live) {
		f = mbar_report(c, CS204, e, m, mbar_operation(e), &m->init, "mbarrier.init");
		if (f) {
			report_edge(f, "the object is live since an earlier mbarrier.init; "
				"mbarrier.inval must come between them");
			report_send(c, f);
		}
	} else if (e->lanes & (e->lanes - 1)) {
		/* All lanes write the same value in one instruction: correct on hardware, and
		 * ThunderKittens does this. */
		f = mbar_report_as(c, CS204, c->check->config.policy.init_by_many_lanes
			? rule_severity(CS204) : SEV_NOTE, e, NULL, mbar_operation(e), NULL, NULL);
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
	m->reported = false;
	m->expected = m->pending = i->arrivals;
	m->tx = m->expected_tx = m->copied = 0;
	m->phase = 0;
	m->inflight = m->late = 0;
	m->init = warp_past_op(w, e->lanes, e->site);
	m->init_fenced = false;
	m->init_phase = 0;
	m->expect_site = 0;
	m->users.n = m->waits.n = m->expects.n = m->arrivals.n = m->copies.n = 0;
	m->arrivals_before.n = 0;
	m->signalled = m->signalled_before = false;
	m->unwaited_phase = 0;
	phase_release_clear(c, &m->now);
	phase_release_clear(c, &m->before);
	phase_release_clear(c, &m->older);
	for (uint32_t k = 0; k < c->per_cta; k++)
		m->view[k] = (struct mb_view){ .passed = -2, .polled = -2 };
}

void mbar_copies(struct mbar *m, struct past_op x)
{
	note_op(&m->copies, x);
}

void on_mbarrier_inval(struct cluster *c, const struct event *e)
{
	struct warp *w = warp_of(c, e);
	const struct event_mbarrier_inval *x = &e->mbarrier_inval;
	struct mbar *m = mbar_of(c, x->owner, x->addr);

	if (!m || !m->live) {
		mbar_use(c, e, x->owner, x->addr);
		return;
	}
	mbar_check_users(c, e, m);
	mbar_check_signals(c, e, m);
	shadow_guard(&c->cta[x->owner].shadow, m->addr, false);
	access_object(c, w, e, m);
	m->live = false;
	m->init = warp_past_op(w, e->lanes, e->site);
}

/* Is an arrival of one of the lanes ordered after it? The phase waits for that one, whatever the
 * other lanes know. */
static bool arrives_after(struct cluster *c, struct warp *w, uint32_t lanes,
	const struct past_op *x)
{
	for (uint32_t rest = lanes; rest; rest &= rest - 1)
		if (warp_all_know(c, w, rest & -rest, x))
			return true;
	return false;
}

/* Arrivals and waits without a scope count as .cluster between CTAs: production code does not write
 * a scope, and by the ISA it is .cta (K5, S18). */
static bool cluster_wide(const struct cluster *c, enum ev_sem sem, enum ev_scope scope)
{
	return scope == SCOPE_NONE ? !c->check->config.policy.scope_as_written
		: includes_cluster(sem, scope);
}

/* B24, B25: for waiters of the same CTA any scope is sufficient; a relaxed arrive releases what an
 * earlier fence released. */
static void publish(struct cluster *c, const struct event *e, struct mbar *m, struct warp *w)
{
	const struct event_mbarrier_arrive *a = &e->mbarrier_arrive;
	bool relaxed = a->sem == SEM_RELAXED || a->sem == SEM_WEAK, remote = w->cta != m->cta;
	bool narrow = remote && !cluster_wide(c, a->sem, a->scope);
	struct frontier *into = !remote ? m->now.local
		: narrow ? m->now.remote.narrow : m->now.remote.wide;

	if (narrow || (remote && relaxed && warp_has_narrow(w, e->lanes)))
		m->now.remote.site = e->site;
	if (relaxed)
		w->relaxed_arrive = warp_past_op(w, e->lanes, e->site);
	if (relaxed)
		warp_published(c, w, e->lanes, into, remote ? m->now.remote.narrow : NULL);
	else
		warp_release(c, w, e->lanes, into);
	if (relaxed)
		return;
	w->release[(w->releases - 1) % ARRAY_SIZE(w->release)].mbar = (uint32_t)(m - c->mbars.at) + 1;
	w->release[(w->releases - 1) % ARRAY_SIZE(w->release)].phase = m->phase;
}

/* Acquires what was released in a completed phase. */
static void learn(struct cluster *c, const struct event *e, struct warp *w,
	const struct phase_release *h)
{
	const struct event_mbarrier_test *t = &e->mbarrier_test;
	bool relaxed = t->sem == SEM_RELAXED || t->sem == SEM_WEAK;
	bool wide = cluster_wide(c, t->sem, t->scope);

	if (relaxed)
		warp_observe(c, w, e->lanes, h->local, 0);
	else
		warp_acquire(c, w, e->lanes, h->local);
	if (c->nctas == 1)
		return;
	if (!wide)
		warp_note_narrow(c, w, e->lanes, h->remote.wide, h->remote.site, e->site);
	else if (relaxed)
		warp_observe(c, w, e->lanes, h->remote.wide, SCOPE_CLUSTER);
	else
		warp_acquire(c, w, e->lanes, h->remote.wide);
	if (h->remote.site)
		warp_note_narrow(c, w, e->lanes, h->remote.narrow, h->remote.site, e->site);
}

/* The phase that a successful wait observed as complete. Recorded runs report a wait when it has
 * returned and arrivals when they begin, so that the next phase may already be complete here: the
 * parity decides. */
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
	mbar_check_wait(c, e, m, w);
	for (size_t i = 0; i < m->expects.n; i++)
		m->expects.at[i].open &= !arrives_after(c, w, e->lanes, &m->expects.at[i].op);
	if (a->flags & ARRIVE_EXPECT_TX) {
		m->expect_site = e->site;
		change_tx(c, e, m, a->tx_count * (int64_t)n);
		m->expected_tx += a->tx_count * (int64_t)n;
		vec_push(&m->expects, ((struct expectation){ .bytes = a->tx_count * (int64_t)n,
			.op = warp_past_op(w, e->lanes, e->site) }));
	}
	note_op(&m->arrivals, warp_past_op(w, e->lanes, e->site));
	publish(c, e, m, w);
	if (a->flags & ARRIVE_DROP) {
		uint32_t drop = a->arrivals * n;

		if (drop >= m->expected) {
			f = mbar_report(c, CS214, e, m, mbar_operation(e), NULL, NULL);
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
	f = mbar_report(c, CS213, e, m, mbar_operation(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the arrival completes phase %llu in spite of .noComplete",
		(unsigned long long)phase);
	report_send(c, f);
}

void mbar_copy(struct cluster *c, struct mbar *m, struct warp *w, uint32_t lanes, int64_t bytes)
{
	m->copied += bytes;
	for (size_t i = 0; i < m->expects.n; i++)
		if (m->expects.at[i].open && !arrives_after(c, w, lanes, &m->expects.at[i].op))
			m->expects.at[i].others += bytes;
}

void on_mbarrier_expect_tx(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_expect_tx *x = &e->mbarrier_expect_tx;
	struct mbar *m = mbar_use(c, e, x->owner, x->addr);
	int64_t bytes = x->tx_count * (int64_t)popcount(e->lanes);
	struct warp *w = warp_of(c, e);
	struct expectation new = { .bytes = bytes, .open = true };

	if (!m)
		return;
	for (size_t i = 0; i < m->expects.n; i++)
		if (warp_all_know(c, w, e->lanes, &m->expects.at[i].op))
			new.before += m->expects.at[i].bytes;
	new.others = m->copied;
	new.op = warp_past_op(w, e->lanes, e->site);
	change_tx(c, e, m, bytes);
	m->expected_tx += bytes;
	m->expect_site = e->site;
	vec_push(&m->expects, new);
}

void on_mbarrier_complete_tx(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_complete_tx *x = &e->mbarrier_complete_tx;
	struct mbar *m = mbar_use(c, e, x->owner, x->addr);

	if (!m)
		return;
	m->signalled = true;
	change_tx(c, e, m, -x->tx_count * (int64_t)popcount(e->lanes));
	test(c, e, m);
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
	if (t->token_of && t->token_of != t->addr + 1) {
		f = mbar_report(c, CS223, e, m, mbar_operation(e), NULL, NULL);
		if (f) {
			report_edge(f, "an arrival on the object at offset 0x%x returned the token, and the "
				"object tested is at 0x%x", t->token_of - 1, t->addr);
			report_send(c, f);
		}
	} else if (!(t->flags & TEST_PARITY) && t->phase != m->phase && t->phase + 1 != m->phase) {
		f = mbar_report(c, CS215, e, m, mbar_operation(e), NULL, NULL);
		if (f) {
			report_edge(f, "the token names phase %lld; only the current phase (%llu) and the one "
				"before it can be tested", (long long)t->phase, (unsigned long long)m->phase);
			report_send(c, f);
		}
	}
	if (!(t->flags & TEST_TRUE)) {
		if (t->flags & TEST_PARITY)
			mbar_check_lag(c, e, m, v);
		return;
	}
	seen = phase_seen(m, t);
	w->syncs++;
	v->polled = -2;
	v->passed_lanes = e->lanes | (v->passed == seen ? v->passed_lanes : 0);
	v->passed = seen;
	v->relaxed = t->sem == SEM_RELAXED || t->sem == SEM_WEAK;
	v->site = e->site;
	mbar_check_late_wait(c, e, m, seen);
	if (seen + 1 == (int64_t)m->phase)
		note_op(&m->waits, warp_past_op(w, e->lanes, e->site));
	if (seen < 0)
		return; /* S3: the phase before the first releases nothing */
	learn(c, e, w, seen + 1 == (int64_t)m->phase ? &m->before : &m->older);
}

/* B29: the state of a .noComplete arrive carries the pending count */
void on_mbarrier_pending_count(struct cluster *c, const struct event *e)
{
	struct finding *f;

	if (e->mbarrier_pending_count.no_complete)
		return;
	f = mbar_report(c, CS220, e, NULL, mbar_operation(e), NULL, NULL);
	if (!f)
		return;
	report_edge(f, "the state was not returned by an arrive with .noComplete");
	report_send(c, f);
}

/* All that is ordered before the operations which the commit tracks is ordered before its arrival
 * (E20); it is also a tcgen05.fence::before_thread_sync. */
static void publish_commit(struct cluster *c, struct mbar *m, const struct async_op *op)
{
	const uint32_t agent = agent_tensor(c, AGENT_TC, op->warp);

	frontier_join(&c->space, m->now.local, op->known);
	if (!op->epoch)
		return;
	frontier_add(&c->space, m->now.local, PLANE_G, agent, op->lanes, c->warp[op->warp].tc->issued,
		op->epoch);
	if (c->check->config.policy.tcgen05_fence)
		frontier_add(&c->space, m->now.local, PLANE_TC_BEFORE, agent, op->lanes,
			c->warp[op->warp].tc->issued, op->epoch);
}

void on_mbarrier_signal(struct cluster *c, const struct event *e)
{
	const struct event_mbarrier_signal *s = &e->mbarrier_signal;
	struct mbar *m = mbar_of(c, s->owner, s->addr);
	struct async_op op = { 0 };
	struct finding *f;
	struct past_op x;
	bool found = async_op_take(c, async_op_key(s->async_op, s->owner), &op);

	/* it may come between two lanes of one st.async, which is still one instruction */
	c->slot_event += c->slot_event + 1 == c->stats.events;
	if (found && op.tc && m && m->live)
		publish_commit(c, m, &op);
	else if (found && op.known && m && m->live)
		frontier_join(&c->space, m->now.local, op.known);
	frontier_put(&c->space, op.known);
	if (!m || !m->live)
		return; /* reported at the issue or at the inval */
	if (found) {
		/* counts are per phase; the object may have been initialised again since */
		if (op.phase == m->phase)
			m->inflight -= m->inflight > 0;
		else
			m->late -= m->late > 0;
		x = (struct past_op){ (uint16_t)op.warp, op.lanes, 0, op.site };
	}
	/* A18, B27: exactly the operation's own effects */
	if (found && op.copies)
		frontier_add(&c->space, m->now.local, PLANE_G, agent_copies(c, op.warp), op.lanes,
			warp_copies_required(c, &c->warp[op.warp], op.lanes, m->now.local), op.epoch);
	else if (found && op.slot)
		frontier_add(&c->space, m->now.local, PLANE_G, agent_slot(c, op.slot - 1), UINT32_MAX,
			UINT32_MAX, op.epoch);
	if (found && op.copies && op.phase != m->phase && !m->reported) {
		m->reported = true;
		f = mbar_report(c, CS219, e, m, "cp.async completion", &x, "cp.async.mbarrier.arrive");
		if (f) {
			report_edge(f, "the arrive was issued in phase %llu, which completed before the copies",
				(unsigned long long)op.phase);
			report_hint(f, HINT(noinc_count));
			report_edit(f, m->init.site, EDIT(noinc_count));
			report_send(c, f);
		}
	}
	m->signalled = true;
	change_tx(c, e, m, -s->tx_count);
	if (s->arrivals)
		arrive(c, e, m, s->arrivals);
	else
		test(c, e, m);
}

/* S23, S24: incomplete phases are no error, nor are bytes that are expected in one: no wait for it
 * has succeeded, so no thread relies on them. Bytes that no thread expected are an error. */
void mbar_cluster_end(struct cluster *c)
{
	for (size_t i = 0; i < c->mbars.n; i++) {
		struct mbar *m = &c->mbars.at[i];
		struct finding *f;

		for (uint32_t k = 0; k < c->per_cta; k++)
			if (m->view[k].passed == -1 && !m->phase && m->pending == m->expected && !m->tx)
				__atomic_store_n(&c->check->idle_waits, true, __ATOMIC_RELAXED);
		if (!m->live || !m->tx || m->reported || m->inflight || m->late)
			continue;
		f = report_new(c, CS211, m->tx > 0 ? SEV_NOTE : rule_severity(CS211), m->init.site, 0);
		if (!f)
			continue;
		report_side(c, f, m->init.warp, only_lane(m->init.lanes), m->init.site, "mbarrier.init");
		report_memory(c, f, 0, m->cta, m->addr, 8);
		report_mbar(c, f, m);
		report_edge(f, "at the end of the kernel the tx-count of phase %llu is %lld: %s",
			(unsigned long long)m->phase, (long long)m->tx,
			m->tx > 0 ? "bytes were expected that no copy delivered, and no thread waited for them"
			: "copies delivered bytes that were not expected");
		edit_set(f, EDIT_CHANGE, m->expect_site, 0, "?");
		report_send(c, f);
	}
}
