/* hang: faults that the executor reported, and the wait-for graph of a cluster that cannot proceed.
 * Names the cause if it is clear; else reports a deadlock. */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void on_fault(struct cluster *c, const struct event *e)
{
	const struct event_fault *x = &e->fault;
	unsigned rule = rule_by_code(event_fault_rule(x->fault));
	struct finding *f;

	c->truncated = true;
	f = report_new(c, rule, rule_severity(rule), e->site, x->other_site);
	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site,
		x->bytes ? "faulting access" : "refused");
	if (x->other_site)
		report_side(c, f, warp_of(c, e)->index, -1, x->other_site, "barrier of other lanes");
	if (x->space == SP_SHARED)
		report_memory(c, f, 0, e->cta, x->addr, x->bytes);
	f->side[0].space = x->space;
	f->side[0].addr = x->addr;
	f->side[0].bytes = x->bytes;
	report_edge(f, "%s", x->text ? x->text : event_fault_text(x->fault));
	report_send(c, f);
}

/* A loop around test_wait (or try_wait) spins: the mbarrier whose current phase the warp polled
 * last and without success, or NULL. */
static const struct mbar *polled_by(const struct cluster *c, const struct event *e)
{
	const struct mbar *found = NULL;

	if (e->blocked.on != WAIT_SPIN)
		return NULL;
	for (size_t i = 0; i < c->mbars.n; i++) {
		const struct mbar *m = &c->mbars.at[i];

		if (m->live && m->cta == e->cta && m->view[e->warp].polled == (int64_t)m->phase)
			found = m;
	}
	return found;
}

void on_blocked(struct cluster *c, const struct event *e)
{
	const struct mbar *m = polled_by(c, e);
	struct stuck *s = base_alloc(sizeof *s);

	s->e = *e;
	if (m) {
		s->e.site = m->view[e->warp].site;
		s->e.blocked.on = WAIT_MBARRIER;
		s->e.blocked.addr = m->addr;
		s->e.blocked.owner = m->cta;
	}
	s->e.blocked.text = e->blocked.text ? base_strdup(e->blocked.text) : NULL;
	s->next = c->stuck;
	c->stuck = s;
	warp_of(c, e)->stuck = s;
}

void hang_reset(struct cluster *c)
{
	while (c->stuck) {
		struct stuck *s = c->stuck;

		c->stuck = s->next;
		free((char *)s->e.blocked.text);
		free(s);
	}
	for (uint32_t i = 0; i < c->nwarps; i++)
		c->warp[i].stuck = NULL;
}

/* Is it impossible for the warps that are neither blocked nor exited to complete this barrier? At a
 * hang no warp proceeds, so that only the numbers count: missing arrivals against live warps that
 * are not in the generation. */
static bool unreachable(const struct cluster *c, const struct event *e)
{
	const struct nb_gen *g = c->cta[e->cta].bar[e->blocked.addr & 15];
	uint32_t able = 0;

	if (!g)
		return false;
	for (uint32_t i = 0; i < c->per_cta; i++)
		able += c->warp[e->cta * c->per_cta + i].live && !(g->warps >> i & 1) ? 32 : 0;
	return g->count > g->arrived + able;
}

static bool bytes_missing(struct cluster *c, const struct event *e)
{
	const struct mbar *m = mbar_of(c, e->blocked.owner, (uint32_t)e->blocked.addr);

	return m && m->live && m->tx && !m->inflight;
}

/* Does every blocked warp wait for the same object? */
static bool all_on_one(const struct cluster *c, enum ev_wait on)
{
	const struct stuck *first = c->stuck;

	for (const struct stuck *s = c->stuck; s; s = s->next)
		if (s->e.blocked.on != on || s->e.blocked.addr != first->e.blocked.addr
			|| s->e.blocked.owner != first->e.blocked.owner
			|| (on == WAIT_BAR && s->e.cta != first->e.cta))
			return false;
	return first;
}

static unsigned cause(struct cluster *c, enum ev_hang why, const struct stuck **root)
{
	const struct stuck *s, *bytes = NULL, *gone = NULL, *regs = NULL;

	*root = c->stuck;
	if (why == HANG_TIMEOUT)
		return CS705;
	for (s = c->stuck; s; s = s->next) {
		if (s->e.blocked.on == WAIT_BAR && unreachable(c, &s->e))
			gone = s;
		if (s->e.blocked.on == WAIT_MBARRIER && bytes_missing(c, &s->e))
			bytes = s;
		if (s->e.blocked.on == WAIT_SETMAXNREG)
			regs = s;
	}
	if (regs) {
		*root = regs;
		return CS706;
	}
	if (bytes) {
		*root = bytes;
		return CS703;
	}
	if (gone) {
		*root = gone;
		return CS704;
	}
	if (all_on_one(c, WAIT_MBARRIER))
		return CS703;
	if (why == HANG_LIVELOCK)
		return CS702;
	if (all_on_one(c, WAIT_WARPGROUP))
		return CS325; /* the fourth warp has exited: D01 */
	return all_on_one(c, WAIT_BAR) ? CS704 : CS701;
}

static void describe(struct cluster *c, struct finding_waiter *w, const struct event *e)
{
	static const char *const kind[] = {
		"mbarrier", "named barrier", "cluster barrier", "bar.warp.sync", "warpgroup",
		"setmaxnreg", "spin",
	};
	const struct event_blocked *b = &e->blocked;
	struct finding f = { 0 };
	const struct mbar *m;
	const struct nb_gen *g;

	report_side(c, &f, warp_of(c, e)->index, only_lane(e->lanes), e->site, "wait");
	w->who = f.side[0];
	snprintf(w->on.kind, sizeof w->on.kind, "%s", b->on < ARRAY_SIZE(kind) ? kind[b->on] : "?");
	w->on.peer = b->owner;
	w->on.addr = b->addr;
	m = b->on == WAIT_MBARRIER ? mbar_of(c, b->owner, (uint32_t)b->addr) : NULL;
	g = b->on == WAIT_BAR ? c->cta[e->cta].bar[b->addr & 15] : NULL;
	if (m) {
		report_mbar(c, &f, m);
		w->on = f.barrier;
		snprintf(w->text, sizeof w->text, "waits for phase %llu (parity %u); %u of %u arrivals "
			"missing, tx-count %lld", (unsigned long long)m->phase,
			(unsigned)(m->phase & 1), m->pending,
			m->expected, (long long)m->tx);
	} else if (g) {
		snprintf(w->on.name, sizeof w->on.name, "%u", (unsigned)b->addr);
		w->on.expected = g->count;
		w->on.pending = g->count > g->arrived ? g->count - g->arrived : 0;
		snprintf(w->text, sizeof w->text, "%u of %u threads have arrived", g->arrived, g->count);
	} else if (b->text) {
		snprintf(w->text, sizeof w->text, "%s", b->text);
	}
}

static void explain(struct cluster *c, struct finding *f, const struct event *root)
{
	const struct event_blocked *b = &root->blocked;
	const struct mbar *m = b->on == WAIT_MBARRIER ? mbar_of(c, b->owner, (uint32_t)b->addr) : NULL;
	const struct nb_gen *g = b->on == WAIT_BAR ? c->cta[root->cta].bar[b->addr & 15] : NULL;
	uint32_t gone = 0, i;

	if (m) {
		report_mbar(c, f, m);
		report_memory(c, f, 0, m->cta, m->addr, 8);
		if (m->tx > 0 && !m->inflight)
			report_edge(f, "phase %llu of mbarrier %s still expects %lld bytes, and no copy in "
				"flight delivers them", (unsigned long long)m->phase, f->barrier.name,
				(long long)m->tx);
		else if (m->tx < 0)
			report_edge(f, "copies delivered %lld bytes more to phase %llu of mbarrier %s than "
				"expect_tx announced", -(long long)m->tx, (unsigned long long)m->phase,
				f->barrier.name);
		else
			report_edge(f, "phase %llu of mbarrier %s lacks %u of %u arrivals, and no runnable "
				"thread can arrive", (unsigned long long)m->phase, f->barrier.name, m->pending,
				m->expected);
		if (m->arrivals.n)
			report_hint(f, HINT(arrived_already), c->warp[m->arrivals.at[0].warp].id);
		return;
	}
	if (g) {
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "named barrier");
		snprintf(f->barrier.name, sizeof f->barrier.name, "%u", (unsigned)b->addr);
		f->barrier.addr = b->addr;
		f->barrier.expected = g->count;
		f->barrier.pending = g->count > g->arrived ? g->count - g->arrived : 0;
		for (i = 0; i < c->per_cta; i++)
			gone += !c->warp[root->cta * c->per_cta + i].live;
		report_edge(f, "barrier %u counts %u threads, %u have arrived", (unsigned)b->addr,
			g->count, g->arrived);
		if (gone)
			report_hint(f, HINT(exited_warps), gone);
		return;
	}
	report_edge(f, "%s", b->text ? b->text : "every remaining thread waits for another one");
}

void on_hang(struct cluster *c, const struct event *e)
{
	const struct stuck *root, *s;
	struct finding *f;
	unsigned rule;
	uint32_t site;

	c->truncated = true;
	if (e->hang.why == HANG_LOST)
		return;
	rule = cause(c, e->hang.why, &root);
	site = root ? root->e.site : e->site;
	f = report_new(c, rule, rule_severity(rule), site, 0);
	if (!f)
		return;
	report_side(c, f, warp_of(c, root ? &root->e : e)->index,
		root ? only_lane(root->e.lanes) : -1, site, rule == CS705 ? "stopped" : "wait");
	if (root)
		explain(c, f, &root->e);
	else
		report_edge(f, rule == CS705 ? "the kernel did not end, and the place of no thread is known"
			: "no thread is runnable");
	for (s = c->stuck; s; s = s->next)
		f->nwaiters++;
	f->waiter = f->nwaiters ? base_alloc(f->nwaiters * sizeof *f->waiter) : NULL;
	for (s = c->stuck; s && f->nwaiters; s = s->next) /* the list is newest first */
		describe(c, &f->waiter[--f->nwaiters], &s->e);
	for (s = c->stuck; s; s = s->next)
		f->nwaiters++;
	report_send(c, f);
}
