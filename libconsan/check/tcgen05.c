/* tcgen05: mma, cp, shift and commit by one thread, and what is in flight at the exit of a CTA.
 * Three sets of CTAs: the issuer; those whose memory the operation uses, with cta_group::2 the pair;
 * those on whose mbarriers a commit arrives. tmem.c has the accesses to tensor memory. */
#include "mbar_check.h"
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include <stdlib.h>
#include <string.h>

/* How many operations are kept at least, although they may be complete, and when some are
 * forgotten */
#define KEPT 1024u
#define MANY 4096u

/* ---- state ---- */

struct tc_warp *tc_of(struct warp *w)
{
	if (!w->tc) {
		w->tc = base_alloc(sizeof *w->tc);
		tc_reset_warp(w);
	}
	return w->tc;
}

void tc_reset_warp(struct warp *w)
{
	struct tc_warp *t = w->tc, old;

	if (!t)
		return;
	old = *t;
	*t = (struct tc_warp){ .op = old.op, .commit = old.commit, .first = 1 };
	t->op.n = t->commit.n = 0;
}

void tc_free_warp(struct warp *w)
{
	if (!w->tc)
		return;
	vec_free(&w->tc->op);
	vec_free(&w->tc->commit);
	free(w->tc);
}

const struct tc_op *tc_op_at(const struct tc_warp *t, uint32_t epoch)
{
	return epoch < t->first || epoch - t->first >= t->op.n ? NULL : &t->op.at[epoch - t->first];
}

const struct tc_commit *tc_commit_of(const struct tc_warp *t, uint32_t lane, uint32_t epoch)
{
	const struct tc_commit *first = NULL;

	for (size_t i = 0; i < t->commit.n; i++) {
		const struct tc_commit *x = &t->commit.at[i];

		if (x->lane == lane && x->epoch >= epoch && (!first || x->epoch < first->epoch))
			first = x;
	}
	return first;
}

bool tc_knows_later(const struct cluster *c, const struct frontier *f, const struct past_op *x)
{
	const struct tc_warp *t = c->warp[x->warp].tc;
	const uint32_t agent = agent_tensor(c, AGENT_TC, x->warp);
	size_t low = 0, high = t ? t->op.n : 0;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;

		if (t->op.at[mid].issued >= x->epoch)
			high = mid;
		else
			low = mid + 1;
	}
	if (!t || low == t->op.n)
		return false;
	return frontier_knows_one(&c->space, f, agent, x->lanes, t->first + (uint32_t)low)
		|| frontier_lanes(&c->space, f, PLANE_TMEM, agent, t->first + (uint32_t)low) & x->lanes;
}

bool tc_unknown_commit(const struct cluster *c, uint32_t mbar, const struct frontier *f,
	struct past_op *x)
{
	for (uint32_t i = 0; c->ntensor && i < c->nwarps; i++) {
		const struct tc_warp *t = c->warp[i].tc;

		for (size_t k = 0; t && k < t->commit.n; k++) {
			const struct tc_commit *m = &t->commit.at[k];

			if (m->mbar != mbar || tmem_ordered(c, f, agent_tensor(c, AGENT_TC, i), 1u << m->lane,
				m->epoch))
				continue;
			*x = (struct past_op){ (uint16_t)i, 1u << m->lane, 0, m->site };
			return true;
		}
	}
	return false;
}

/* ---- operations ---- */

static const char *operation(const struct event *e)
{
	return e->tcgen05.op == TC_MMA ? "tcgen05.mma" : e->tcgen05.op == TC_CP ? "tcgen05.cp"
		: "tcgen05.shift";
}

/* Gives an operation the next number of its warp. A wait that follows has a later stamp. */
static void number_op(struct warp *w, uint32_t lanes, struct tc_op op)
{
	op.issued = warp_stamp(w, lanes);
	warp_close_epoch(w);
	vec_push(&w->tc->op, op);
	w->tc->ops = epoch_next(w->tc->ops);
}

static void add_op(struct tc_warp *t, struct warp *w, const struct event *e, uint32_t known)
{
	const struct event_tcgen05 *o = &e->tcgen05;
	const struct ev_area *d = o->areas.n ? &o->areas.at[0] : NULL;
	uint32_t lanes = 0;

	if (t->op.n >= MANY && known >= t->first) {
		const uint32_t most = (uint32_t)t->op.n - KEPT;
		const uint32_t n = known - t->first < most ? known - t->first : most;

		memmove(t->op.at, t->op.at + n, (t->op.n - n) * sizeof *t->op.at);
		t->op.n -= n;
		t->first += n;
	}
	for (unsigned k = 0; d && k < 4; k++)
		lanes += (uint32_t)__builtin_popcount(d->lanes[k]);
	number_op(w, e->lanes, (struct tc_op){ .shape = o->shape, .d = o->d, .op = o->op,
		.four_lanes = o->op == TC_CP && lanes == 4 });
	if (o->op == TC_MMA)
		t->mma = t->ops;
}

/* Shared memory of CTA `peer`, which the operation reads through the async proxy [E22-E24] */
static void read_shared(struct cluster *c, struct warp *w, const struct event *e, uint16_t peer,
	const struct frontier *f)
{
	const struct event_tcgen05 *o = &e->tcgen05;
	struct cell_entry now = {
		.epoch = w->tc->ops, .agent = (uint16_t)agent_tensor(c, AGENT_TC, w->index),
		.lanes = e->lanes, .what = (e->site & CELL_SITE_MASK) | CELL_SAME,
	};
	struct view v;

	if (!o->spans.n)
		return;
	view_open(&v, c, w, e->lanes, f, ROLE_TC, peer);
	shadow_spans(&c->cta[peer].shadow, &v.s, o->spans.at, o->part, now);
	now.what |= CELL_PART;
	view_open(&v, c, w, e->lanes, f, ROLE_TC, peer);
	shadow_spans(&c->cta[peer].shadow, &v.s, o->spans.at + o->part, o->spans.n - o->part, now);
}

void on_tcgen05(struct cluster *c, const struct event *e)
{
	const struct event_tcgen05 *o = &e->tcgen05;
	const uint32_t lane = (uint32_t)__builtin_ctz(e->lanes);
	struct warp *w = warp_of(c, e);
	struct frontier *f = warp_frontier(w, lane);
	struct tc_warp *t;

	alloc_on_event(c, e);
	if (!c->ntensor || !f)
		return;
	c->stats.async_ops++;
	t = tc_of(w);
	add_op(t, w, e, frontier_full(&c->space, f, PLANE_G, agent_tensor(c, AGENT_TC, w->index)));
	t->issued |= e->lanes;
	t->last[lane] = t->ops;
	for (uint32_t m = o->ctas; m; m &= m - 1) {
		const uint16_t r = (uint16_t)__builtin_ctz(m);

		if (r >= c->nctas)
			break;
		cluster_check_peer(c, w, e, r, operation(e));
		t->used[r != w->cta] = (struct tc_last){ t->ops, lane, e->site };
		read_shared(c, w, e, r, f);
	}
	tmem_operation(c, w, e, f);
}

/* ---- commit ---- */

/* E20: the thread has issued nothing, and other threads have operations that no commit covers. */
static void commit_of_nothing(struct cluster *c, struct warp *w, const struct event *e)
{
	for (uint32_t i = 0; i < c->nwarps; i++) {
		const struct tc_warp *t = c->warp[i].tc;

		for (uint32_t m = t ? t->issued : 0; m; m &= m - 1) {
			const uint32_t lane = (uint32_t)__builtin_ctz(m);
			struct finding *f;

			if (c->warp[i].cta / 2 != w->cta / 2 || tc_commit_of(t, lane, t->last[lane]))
				continue;
			f = report_new(c, CS608, rule_severity(CS608), e->site, 0);
			if (!f)
				return;
			report_side(c, f, w->index, only_lane(e->lanes), e->site, "tcgen05.commit");
			report_edge(f, "this thread has issued no tcgen05.mma, cp or shift; lane %u of warp %u "
				"of CTA %u has, and has not committed", lane, c->warp[i].id, c->warp[i].cta);
			report_send(c, f);
			return;
		}
	}
}

static void note_commit(struct tc_warp *t, struct tc_commit now)
{
	for (size_t i = 0; i < t->commit.n; i++)
		if (t->commit.at[i].mbar == now.mbar && t->commit.at[i].lane == now.lane) {
			t->commit.at[i] = now;
			return;
		}
	vec_push(&t->commit, now);
}

/* What the issuing thread knew is ordered before the operations that it issued, and so before the
 * arrival; what it did itself is not released (A18). */
void on_tcgen05_commit(struct cluster *c, const struct event *e)
{
	const struct event_tcgen05_commit *x = &e->tcgen05_commit;
	const uint32_t lane = (uint32_t)__builtin_ctz(e->lanes);
	struct warp *w = warp_of(c, e);
	const struct frontier *f = warp_frontier(w, lane);
	struct tc_warp *t;

	alloc_on_event(c, e);
	if (!c->ntensor || !f)
		return;
	t = tc_of(w);
	if (!t->last[lane]) {
		commit_of_nothing(c, w, e);
	} else { /* numbered, too: a thread that knows that it has arrived knows the waits before it */
		number_op(w, e->lanes, (struct tc_op){ .d = UINT32_MAX });
		t->last[lane] = t->ops;
	}
	for (uint32_t left = x->ctas; left; left &= left - 1) {
		const unsigned r = (unsigned)__builtin_ctz(left);
		struct mbar *m = mbar_use(c, e, r, x->addr);
		struct async_op op = { .id = async_op_key(x->async_op, r), .tc = true,
			.epoch = t->last[lane], .lanes = e->lanes, .warp = w->index, .site = e->site };

		if (!m)
			continue;
		mbar_check_wait(c, e, m, w);
		op.mbar = (uint32_t)(m - c->mbars.at) + 1;
		op.phase = m->phase;
		op.known = frontier_new(&c->space);
		frontier_copy(&c->space, op.known, f);
		m->inflight++;
		note_commit(t, (struct tc_commit){ lane, e->site, op.epoch, op.mbar - 1, m->phase });
		async_op_add(c, op);
	}
}

/* ---- exit ---- */

static bool operation_left(struct cluster *c, unsigned cta, const struct event *e, struct warp *w)
{
	const bool peer = w->cta != cta;
	const struct tc_last *x = &w->tc->used[peer];
	struct finding *f;

	if (w->cta / 2 != cta / 2 || !x->epoch || x->epoch <= w->tc->reported
		|| tmem_ordered(c, c->cta[cta].exited, agent_tensor(c, AGENT_TC, w->index), 1u << x->lane,
			x->epoch))
		return false;
	f = report_new(c, CS613, rule_severity(CS613), e->site, x->site);
	if (!f)
		return true;
	report_side(c, f, cta * c->per_cta, -1, e->site, "CTA exit");
	report_side(c, f, w->index, (int)x->lane, x->site, "tcgen05 operation");
	tmem_explain_operation(c, f, &(struct cell_entry){ .epoch = x->epoch, .lanes = 1u << x->lane,
		.agent = (uint16_t)agent_tensor(c, AGENT_TC, w->index) }, NULL, -1);
	edit_set(f, EDIT_BEFORE, c->warp[cta * c->per_cta].exit_site, 0, "?");
	report_send(c, f);
	return true;
}

/* Has a thread of the CTA waited for the phase on which the commit arrives? That the operations are
 * complete, which another commit may say, does not mean that this arrival has taken place. */
static bool arrival_known(const struct cluster *c, unsigned cta, const struct tc_commit *x)
{
	const struct mbar *m = &c->mbars.at[x->mbar];
	const struct frontier *f = c->cta[cta].exited;

	if (m->phase != x->phase + 1)
		return m->phase > x->phase; /* CS209 checks that each phase is waited for */
	for (size_t i = 0; i < m->waits.n; i++) {
		const struct past_op *w = &m->waits.at[i];

		if (frontier_knows_one(&c->space, f, w->warp, w->lanes, w->epoch))
			return true;
	}
	return false;
}

/* A commit that may arrive on an mbarrier of the CTA after its exit [B31, E21]. Of its own commits it
 * may be known by a later one that what they track is complete; nothing orders their arrivals, but
 * the hardware makes them in order, on which kernels without clusters rely. */
static void commit_left(struct cluster *c, unsigned cta, const struct event *e, struct warp *w)
{
	for (size_t i = 0; i < w->tc->commit.n; i++) {
		const struct tc_commit *x = &w->tc->commit.at[i];
		const struct mbar *m = &c->mbars.at[x->mbar];
		const bool own = w->cta == cta && !c->check->config.policy.tcgen05_commit_arrived;
		struct finding *f;

		if (m->cta != cta || !m->live || x->epoch <= w->tc->reported || arrival_known(c, cta, x))
			continue;
		f = report_new(c, CS221, own ? SEV_NOTE : rule_severity(CS221), e->site, x->site);
		if (!f)
			continue;
		report_side(c, f, cta * c->per_cta, -1, e->site, "CTA exit");
		report_side(c, f, w->index, (int)x->lane, x->site, "tcgen05.commit");
		report_mbar(c, f, m);
		report_edge(f, "no thread of CTA %u waited for the phase of mbarrier %s on which the commit "
			"of CTA %u arrives before CTA %u exited", cta, f->barrier.name, w->cta, cta);
		report_send(c, f);
	}
}

void tc_cta_end(struct cluster *c, unsigned cta, const struct event *e)
{
	for (uint32_t i = 0; c->ntensor && i < c->nwarps; i++)
		if (c->warp[i].tc && !operation_left(c, cta, e, &c->warp[i]))
			commit_left(c, cta, e, &c->warp[i]);
}
