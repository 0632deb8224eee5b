/* hang: faults that the executor reported, and the wait-for graph of a cluster that cannot proceed.
 * Names the cause if it is clear; else reports a deadlock. */
#include "internal.h"
#include "tcgen05.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tcgen05.dealloc before an access to columns that are not allocated any more, or NULL; by the
 * issuing CTA or by its peer. */
static const struct past_op *freed_columns(struct cluster *c, const struct event *e)
{
	const uint32_t first = (e->fault.addr & 0xffff) / 32;
	const uint32_t last = ((uint32_t)(e->fault.addr & 0xffff) + e->fault.bytes / 4 - 1) / 32;

	for (uint32_t r = e->cta & ~1u; r <= (e->cta | 1u) && r < c->nctas; r++)
		for (uint32_t u = first; u <= last && u < ARRAY_SIZE(c->cta[r].freed); u++)
			if (c->cta[r].freed[u].site)
				return &c->cta[r].freed[u];
	return NULL;
}

/* A warp that names the lanes of warp 0: hardware takes the warp's own, as kernels of several projects
 * rely on. What it does with other lanes is not known. */
static bool names_first_lanes(const struct event_fault *x)
{
	return x->fault == FAULT_TMEM_OTHER_WINDOW && x->addr >> 16 < 32;
}

void on_fault(struct cluster *c, const struct event *e)
{
	const struct event_fault *x = &e->fault;
	const bool passed = event_fault_passed(x->fault);
	const struct past_op *freed = x->fault == FAULT_TMEM_ADDRESS ? freed_columns(c, e) : NULL;
	const unsigned rule = freed ? CS621 : rule_by_code(event_fault_rule(x->fault));
	const enum severity severity = names_first_lanes(x) && !c->check->config.policy.tmem_window
		? SEV_WARNING : rule_severity(rule);
	struct finding *f;

	c->truncated |= !passed;
	f = report_new(c, rule, severity, e->site, freed ? freed->site : x->other_site);
	if (!f)
		return;
	report_side(c, f, warp_of(c, e)->index, only_lane(e->lanes), e->site,
		passed ? "access" : x->bytes ? "faulting access" : x->fault == FAULT_TRAP ? "executed"
			: x->fault == FAULT_ASSERT ? "failed" : "refused");
	if (freed)
		report_side(c, f, freed->warp, -1, freed->site, "tcgen05.dealloc");
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

static struct mbar *mbar_waited(struct cluster *c, const struct stuck *s)
{
	return s->e.blocked.on == WAIT_MBARRIER
		? mbar_of(c, s->e.blocked.owner, (uint32_t)s->e.blocked.addr) : NULL;
}

/* What the blocked warp has seen of the mbarrier; NULL: it belongs to another CTA. */
static const struct mb_view *view_of(const struct cluster *c, const struct stuck *s,
	const struct mbar *m)
{
	return s->e.cta == m->cta ? &m->view[c->warp[s->e.cta * c->per_cta + s->e.warp].id] : NULL;
}

/* The phase that the warp would wait for next, if it waits for each. */
static int64_t next_phase(const struct mb_view *v)
{
	return v->passed < 0 ? 0 : v->passed + 1;
}

/* It waits for a phase while the one that it would wait for next is complete. */
static bool waits_too_far(struct cluster *c, const struct stuck *s)
{
	const struct mbar *m = mbar_waited(c, s);
	const struct mb_view *v = m && m->live ? view_of(c, s, m) : NULL;

	return v && next_phase(v) < (int64_t)m->phase && ((uint64_t)next_phase(v) ^ m->phase) & 1;
}

/* Nothing has ever happened to the mbarrier. */
static bool first_wait(struct cluster *c, const struct stuck *s)
{
	const struct mbar *m = mbar_waited(c, s);

	return m && m->live && !m->phase && !m->arrivals.n && m->pending == m->expected && !m->tx
		&& !m->expected_tx && !m->inflight;
}

/* Some arrivals of the phase took place, and others are missing: its count may be too high. */
static bool lacks_arrivals(struct cluster *c, const struct stuck *s)
{
	const struct mbar *m = mbar_waited(c, s);

	return m && m->live && m->arrivals.n && m->pending && m->pending < m->expected && !m->tx;
}

/* In a cycle of waits the culprit is one that could never succeed. Of several first waits that is
 * the producer's, which one lane or one warp executes; the consumers wait for its data. */
static const struct stuck *culprit(struct cluster *c)
{
	const struct stuck *s, *first = NULL;

	for (s = c->stuck; s; s = s->next)
		if (waits_too_far(c, s))
			return s;
	for (s = c->stuck; s; s = s->next)
		if (lacks_arrivals(c, s))
			return s;
	for (s = c->stuck; s; s = s->next)
		if (first_wait(c, s) && (!first || __builtin_popcount(s->e.lanes)
			<= __builtin_popcount(first->e.lanes)))
			first = s;
	return first;
}

static unsigned cause(struct cluster *c, enum ev_hang why, const struct stuck **root)
{
	const struct stuck *s, *bytes = NULL, *gone = NULL, *regs = NULL, *columns = NULL;

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
		if (s->e.blocked.on == WAIT_TMEM)
			columns = s;
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
	if (columns) {
		*root = columns;
		return CS707;
	}
	s = culprit(c);
	if (s)
		*root = s;
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
		"setmaxnreg", "tensor memory", "spin",
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

/* The edge of a wait for arrivals. */
static void lacks_edge(struct finding *f)
{
	report_edge(f, "phase %llu of mbarrier %s lacks %u of %u arrivals, and no runnable thread can "
		"arrive", (unsigned long long)f->barrier.phase, f->barrier.name, f->barrier.pending,
		f->barrier.expected);
}

/* E04: who holds the columns; E10: a pair that does not meet */
static void explain_columns(struct cluster *c, struct finding *f, const struct event *root)
{
	const struct allocation held = alloc_newest(c, root->cta);
	char text[256];

	if (held.by.site)
		report_side(c, f, held.by.warp, -1, held.by.site, "tcgen05.alloc");
	if (alloc_free_columns(c, root->cta) >= root->blocked.addr)
		report_edge(f, "%s", root->blocked.text);
	else
		report_edge(f, "%s: %s", root->blocked.text,
			alloc_holders(c, root->cta, text, sizeof text));
}

static void add_stray(struct cluster *c, struct finding *f, const struct mbar *m,
	const struct mbar *on, uint32_t site)
{
	struct finding_stray x = { .site = site, .delta = (int32_t)m->addr - (int32_t)on->addr };

	for (unsigned k = 0; k < f->nstrays; k++)
		if (f->stray[k].site == site && f->stray[k].delta == x.delta)
			return;
	if (on == m || on->cta != m->cta || f->nstrays == FINDING_STRAYS)
		return;
	launch_symbol(&c->check->config.launch, on->addr, true, x.from, sizeof x.from);
	f->stray[f->nstrays++] = x;
}

static void add_plain_strays(struct cluster *c, struct finding *f, const struct mbar *m,
	const struct mbar *on, const struct past_op_list *arrivals)
{
	for (size_t i = 0; i < arrivals->n; i++)
		if (!strstr(site_get(arrivals->at[i].site)->ptx, "expect_tx"))
			add_stray(c, f, m, on, arrivals->at[i].site);
}

/* Threads that arrive on other mbarriers, while none arrives on this one */
static void find_strays(struct cluster *c, struct finding *f, const struct mbar *m)
{
	for (uint32_t i = 0; i < c->nwarps; i++)
		for (size_t k = 0; c->warp[i].tc && k < c->warp[i].tc->commit.n; k++)
			add_stray(c, f, m, &c->mbars.at[c->warp[i].tc->commit.at[k].mbar],
				c->warp[i].tc->commit.at[k].site);
	for (size_t i = 0; i < c->mbars.n; i++) {
		add_plain_strays(c, f, m, &c->mbars.at[i], &c->mbars.at[i].arrivals);
		add_plain_strays(c, f, m, &c->mbars.at[i], &c->mbars.at[i].arrivals_before);
	}
}

static void explain_arrivals(struct cluster *c, struct finding *f, const struct stuck *root,
	const struct mbar *m)
{
	const uint32_t arrived = m->expected - m->pending;

	if (waits_too_far(c, root)) {
		report_hint(f, HINT(waits_too_far), root->e.warp, (unsigned long long)m->phase,
			f->barrier.name, (long long)next_phase(view_of(c, root, m)));
		report_edit(f, root->e.site, EDIT(waits_too_far));
	} else if (first_wait(c, root)) {
		report_hint(f, HINT(first_wait), f->barrier.name);
		report_edit(f, root->e.site, EDIT(first_wait));
		find_strays(c, f, m);
	} else if (m->arrivals.n) {
		report_hint(f, HINT(arrived_already), c->warp[m->arrivals.at[0].warp].id, m->expected,
			arrived);
		report_edit(f, arrived ? m->init.site : 0, EDIT(arrived_already), arrived);
	}
}

static void explain_bytes(struct finding *f, const struct mbar *m)
{
	const char *expect = site_get(m->expect_site)->ptx;
	const long long delivered = m->expected_tx - m->tx;

	report_hint(f, HINT(too_many_bytes), (long long)m->expected_tx, delivered);
	if (!m->expect_site || !delivered) /* the copies are missing, and not the number wrong */
		edit_set(f, EDIT_CHANGE, m->expect_site ? m->expect_site : m->init.site, 0, "?");
	else
		report_edit(f, m->expect_site, EDIT(too_many_bytes), strstr(expect, "arrive") ? 2u : 1u,
		delivered);
}

/* The length of the guard of an instruction, with the blanks after it. */
static size_t guard_length(const char *ptx)
{
	const size_t n = *ptx == '@' ? strcspn(ptx, " \t") : 0;

	return n + strspn(ptx + n, " \t");
}

/* The barrier, under the condition of the exit. */
static void barrier_at_exit(uint32_t exit, uint32_t barrier, char *to, size_t n)
{
	const char *left = site_get(exit)->ptx, *ptx = site_get(barrier)->ptx;
	const size_t skip = guard_length(ptx);

	snprintf(to, n, "%.*s%.*s", (int)guard_length(left), left, (int)strcspn(ptx + skip, ";"),
		ptx + skip);
}

static void explain(struct cluster *c, struct finding *f, const struct stuck *stuck)
{
	const struct event *root = &stuck->e;
	const struct event_blocked *b = &root->blocked;
	const struct mbar *m = b->on == WAIT_MBARRIER ? mbar_of(c, b->owner, (uint32_t)b->addr) : NULL;
	const struct nb_gen *g = b->on == WAIT_BAR ? c->cta[root->cta].bar[b->addr & 15] : NULL;
	uint32_t gone = 0, exit = 0, i;
	char text[96];

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
			lacks_edge(f);
		if (m->tx && !m->inflight)
			explain_bytes(f, m);
		else if (!m->tx)
			explain_arrivals(c, f, stuck, m);
		return;
	}
	if (g) {
		snprintf(f->barrier.kind, sizeof f->barrier.kind, "named barrier");
		snprintf(f->barrier.name, sizeof f->barrier.name, "%u", (unsigned)b->addr);
		f->barrier.addr = b->addr;
		f->barrier.expected = g->count;
		f->barrier.pending = g->count > g->arrived ? g->count - g->arrived : 0;
		for (i = 0; i < c->per_cta; i++) {
			const struct warp *w = &c->warp[root->cta * c->per_cta + i];

			gone += !w->live;
			exit = w->live ? exit : w->exit_site;
		}
		report_edge(f, "barrier %u counts %u threads, %u have arrived", (unsigned)b->addr,
			g->count, g->arrived);
		if (!gone)
			return;
		report_hint(f, HINT(exited_warps), gone);
		barrier_at_exit(exit, root->site, text, sizeof text);
		report_edit(f, exit, EDIT(exited_warps), text);
		return;
	}
	if (b->on == WAIT_TMEM) {
		explain_columns(c, f, root);
		return;
	}
	report_edge(f, "%s", b->text ? b->text : "every remaining thread waits for another one");
}

void on_hang(struct cluster *c, const struct event *e)
{
	const struct stuck *root, *s;
	struct finding *f;
	unsigned rule;
	uint32_t site, other = 0;

	c->truncated = true;
	if (e->hang.why == HANG_LOST)
		return;
	__atomic_store_n(&c->check->hung, true, __ATOMIC_RELEASE);
	rule = cause(c, e->hang.why, &root);
	site = root ? root->e.site : e->site;
	if (rule == CS707)
		other = alloc_newest(c, root->e.cta).by.site;
	f = report_new(c, rule, rule_severity(rule), site, other);
	if (!f)
		return;
	if (site)
		report_side(c, f, warp_of(c, root ? &root->e : e)->index,
			root ? only_lane(root->e.lanes) : -1, site, rule == CS705 ? "stopped" : "wait");
	if (root)
		explain(c, f, root);
	if (root && rule == CS705)
		report_edge(f, "the kernel did not end in time: this thread was still running");
	if (!root)
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

/* A cluster of which nothing is known but that its launch did not end. */
static void time_is_up(struct check *k)
{
	const struct event e = { .kind = EV_HANG, .lanes = ~0u, .hang.why = HANG_TIMEOUT };
	const uint32_t *cluster = k->config.launch.cluster, *block = k->config.launch.block;
	const struct cluster_info info = { .launch = &k->config.launch,
		.nctas = cluster[0] * cluster[1] * cluster[2],
		.warps_per_cta = (block[0] * block[1] * block[2] + 31) / 32 };
	struct event_sink *sink = check_cluster_begin(k, &info);

	sink->event(sink, &e);
	check_cluster_end(k, sink);
}

void check_timed_out(struct check *k)
{
	if (!__atomic_load_n(&k->hung, __ATOMIC_ACQUIRE))
		time_is_up(k);
}

/* The last step of the side's warp: its wait. -1: none is kept. */
static int32_t last_step(const struct history *h, const struct finding_side *s)
{
	uint32_t i = h->nsteps;

	while (i && (h->step[i - 1].cta != s->cta || h->step[i - 1].warp != s->warp))
		i--;
	return (int32_t)i - 1;
}

void check_culprit(struct check *k, size_t i)
{
	struct finding *f = k->ordered[i];
	const uint32_t line = site_get(f->edit.site)->ptx_line;
	const struct finding_waiter *w = NULL;
	struct finding_side *at = &f->side[0];

	if (f->edit.kind != EDIT_CHANGE || site_get(at->site)->ptx_line == line)
		return;
	for (unsigned n = 0; n < f->nwaiters && !w; n++)
		if (site_get(f->waiter[n].who.site)->ptx_line == line
				&& !strcmp(f->waiter[n].on.kind, "mbarrier"))
			w = &f->waiter[n];
	if (!w)
		return;
	*at = w->who;
	f->barrier = w->on;
	at->space = SP_SHARED;
	at->peer = f->barrier.peer;
	at->addr = f->barrier.addr;
	at->bytes = 8;
	snprintf(at->variable, sizeof at->variable, "%s", f->barrier.name);
	lacks_edge(f);
	if (f->history)
		f->history->side[0] = last_step(f->history, at);
	if (!f->barrier.phase && f->barrier.pending == f->barrier.expected)
		report_hint(f, HINT(first_wait), f->barrier.name);
}
