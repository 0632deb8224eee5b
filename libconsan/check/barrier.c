/* barrier: named barriers, generation by generation. A generation is an object of its own, because
 * warps may still leave one while the next fills up (S21). The executor decides when a barrier is
 * complete. */
#include "internal.h"
#include "libconsan/finding/rule_codes.h"

#include <stdio.h>
#include <stdlib.h>

static void unref(struct cluster *c, struct nb_gen *g)
{
	if (--g->refs)
		return;
	frontier_put(&c->space, g->f);
	free(g->arrivals.at);
	free(g);
}

static const char *kind_name(unsigned mode)
{
	return mode == BAR_ARRIVE ? "bar.arrive" : mode == BAR_RED ? "bar.red" : "bar.sync";
}

static void describe(struct finding *f, const struct event *e, const struct nb_gen *g)
{
	snprintf(f->barrier.kind, sizeof f->barrier.kind, "named barrier");
	snprintf(f->barrier.name, sizeof f->barrier.name, "%u", e->barrier_arrive.id);
	f->barrier.peer = e->cta;
	f->barrier.addr = e->barrier_arrive.id;
	f->barrier.expected = g->count;
	f->barrier.pending = g->count > g->arrived ? g->count - g->arrived : 0;
}

static struct finding *begin(struct cluster *c, unsigned rule, enum severity sev,
	const struct event *e, const struct nb_gen *g)
{
	struct finding *f = report_new(c, rule, sev, e->site, g->site);
	unsigned first = (unsigned)__builtin_ctz(g->warps);

	if (!f)
		return NULL;
	report_side(c, f, warp_of(c, e)->index, -1, e->site, kind_name(e->barrier_arrive.mode));
	report_side(c, f, e->cta * c->per_cta + first, -1, g->site, "first arrival of the generation");
	describe(f, e, g);
	return f;
}

/* F03, F04: .aligned requires that all threads of the warp execute the barrier, and a condition
 * that some of them leave by an exit is a condition that they evaluate differently. Without
 * .aligned the ISA has a warp wait for its threads that have not exited. */
void barrier_report_exited(struct cluster *c, const struct warp *w, uint32_t site, uint32_t exited,
	uint32_t exit_site, const char *what)
{
	struct finding *f = report_new(c, CS412, c->check->config.policy.aligned_after_exit ? SEV_ERROR
		: rule_severity(CS412), site, exit_site);

	if (!f)
		return;
	report_side(c, f, w->index, -1, site, what);
	report_side(c, f, w->index, only_lane(exited), exit_site, "exit");
	report_edge(f, "lanes 0x%08x of the warp have exited and do not execute the barrier, which "
		".aligned requires of all its threads", exited);
	report_send(c, f);
}

void barrier_check_exited(struct cluster *c, const struct event *e, const char *what)
{
	const struct warp *w = warp_of(c, e);
	const uint32_t exited = warp_exited(w);

	if (exited)
		barrier_report_exited(c, w, e->site, exited, w->exit_site, what);
}

/* bar.syncs of one generation of which some have a thread count and others mean the whole CTA. For
 * the ISA equal numbers are equal; an H200 stops the kernel. */
static bool forms_differ(const struct event *e, const struct nb_gen *g)
{
	const struct event_barrier_arrive *a = &e->barrier_arrive;

	return g->implicit != !a->threads && a->mode == BAR_SYNC && g->kinds == 1 << BAR_SYNC;
}

static void check_arrival(struct cluster *c, const struct event *e, const struct nb_gen *g,
	uint32_t count)
{
	const struct event_barrier_arrive *a = &e->barrier_arrive;
	unsigned warp = e->warp, bit = 1u << (warp & 31);
	struct finding *f = NULL;

	if (count != g->count) {
		f = begin(c, CS402, rule_severity(CS402), e, g);
		if (f)
			report_edge(f, "this arrival names %u threads, the first one of the generation %u",
				count, g->count);
	} else if (forms_differ(e, g)) {
		f = begin(c, CS402, rule_severity(CS402), e, g);
		if (f)
			report_edge(f, "this arrival is %s a thread count, the first one of the generation %s: "
				"a GPU stops the kernel, although both mean %u threads",
				a->threads ? "with" : "without", g->implicit ? "without" : "with", count);
	} else if ((a->mode == BAR_RED) != !!(g->kinds & 1 << BAR_RED)) {
		f = begin(c, CS405, rule_severity(CS405), e, g);
		if (f)
			report_edge(f, "barrier %u is active with %s arrivals", a->id,
				g->kinds & 1 << BAR_RED ? "red" : "sync or arrive");
	} else if (g->arrived + 32 > g->count) {
		f = begin(c, CS406, rule_severity(CS406), e, g);
		if (f)
			report_edge(f, "%u of %u threads have arrived when 32 more arrive", g->arrived,
				g->count);
	} else if (g->warps & bit) {
		f = begin(c, CS404, c->check->config.policy.bar_arrive_twice ? SEV_ERROR
			: rule_severity(CS404), e, g);
		if (f)
			report_edge(f, "warp %u has already arrived in this generation and is counted twice",
				warp);
	}
	if (f)
		report_send(c, f);
}

static bool complete(const struct cluster *c, const struct event *e, const struct nb_gen *g)
{
	if (g->arrived >= g->count)
		return true;
	if (!g->implicit)
		return false;
	for (uint32_t i = 0; i < c->per_cta; i++)
		if (c->warp[e->cta * c->per_cta + i].live && !(g->warps >> i & 1))
			return false;
	return true;
}

/* An arrival that is not ordered after the previous generation may be counted in that one: the
 * barrier is reused too early (F06, F08). A warp that left that generation is ordered; another one
 * must be ordered after all of its arrivals, in any of its lanes, as a warp arrives when its last
 * lane does. */
static void check_overlap(struct cluster *c, const struct event *e, const struct nb_gen *before)
{
	const struct event_barrier_arrive *a = &e->barrier_arrive;
	struct warp *w = warp_of(c, e);
	struct finding *f;
	const struct past_op *x;
	char here[PLACE_BYTES], there[PLACE_BYTES];

	if (!before || w->left[a->id & 15] >= before->number)
		return;
	for (size_t i = 0; i < before->arrivals.n; i++) {
		x = &before->arrivals.at[i];
		if (warp_any_knows(c, w, x))
			continue;
		f = report_new(c, CS411, rule_severity(CS411), e->site, x->site);
		if (!f)
			return;
		report_side(c, f, w->index, -1, e->site, kind_name(a->mode));
		report_side(c, f, x->warp, -1, x->site, "arrival in the previous generation");
		describe(f, e, before);
		report_edge(f, "no synchronisation orders this use of barrier %u by warp %u at %s after "
			"the completion of its previous generation, %u, which warp %u used at %s: this arrival "
			"may be counted in place of that one", a->id, w->id, report_place(e->site, here),
			before->number, c->warp[x->warp].id, report_place(x->site, there));
		report_send(c, f);
		return;
	}
}

static void close_gen(struct cluster *c, unsigned cta, unsigned id)
{
	struct nb_gen **at = &c->cta[cta].bar[id], **before = &c->cta[cta].bar_before[id];

	if (*before)
		unref(c, *before);
	*before = *at;
	*at = NULL;
}

void on_barrier_arrive(struct cluster *c, const struct event *e)
{
	const struct event_barrier_arrive *a = &e->barrier_arrive;
	const unsigned id = a->id & 15;
	struct warp *w = warp_of(c, e);
	struct cta *cta = &c->cta[e->cta];
	struct nb_gen **at = &cta->bar[id], *g = *at, *before = cta->bar_before[id];
	uint32_t count = a->threads ? a->threads : (cta->threads + 31) & ~31u;

	if (!g) {
		g = *at = base_alloc(sizeof *g);
		g->f = frontier_new(&c->space);
		g->refs = 1;
		g->count = count;
		g->implicit = !a->threads;
		g->number = before ? before->number + 1 : 1;
		g->site = e->site;
	} else {
		check_arrival(c, e, g, count);
	}
	check_overlap(c, e, before);
	if (a->aligned)
		barrier_check_exited(c, e, kind_name(a->mode));
	vec_push(&g->arrivals, warp_past_op(w, e->lanes, e->site));
	warp_release(c, w, e->lanes | warp_exited(w), g->f); /* a barrier counts whole warps */
	g->arrived += 32;
	g->warps |= 1u << (e->warp & 31);
	g->kinds |= (uint8_t)(1 << a->mode);
	if (w->in)
		unref(c, w->in);
	w->in = g;
	g->refs++;
	if (complete(c, e, g))
		close_gen(c, e->cta, id);
}

/* Lanes that reached the barrier in different branches resume one after the other, all from the
 * generation in which their warp arrived last: the warp arrives again only with all its lanes. */
void on_barrier_resume(struct cluster *c, const struct event *e)
{
	const unsigned id = e->barrier_resume.id & 15;
	struct warp *w = warp_of(c, e);
	struct nb_gen **at = &c->cta[e->cta].bar[id], *g = w->in;

	if (!g)
		return;
	if (*at == g) /* exits completed it */
		close_gen(c, e->cta, id);
	w->left[id] = g->number;
	warp_acquire(c, w, e->lanes, g->f);
	if (w->ngroups > 1)
		warp_converge(c, w, e->lanes);
}

/* S23: a generation that is not full at the end is no leak. */
void barrier_reset(struct cluster *c)
{
	for (uint32_t i = 0; i < c->nwarps; i++)
		if (c->warp[i].in) {
			unref(c, c->warp[i].in);
			c->warp[i].in = NULL;
		}
	for (uint32_t k = 0; k < c->nctas; k++)
		for (unsigned b = 0; b < 16; b++) {
			if (c->cta[k].bar[b])
				close_gen(c, k, b);
			if (c->cta[k].bar_before[b])
				unref(c, c->cta[k].bar_before[b]);
			c->cta[k].bar_before[b] = NULL;
		}
}
