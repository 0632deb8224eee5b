/* bar: named CTA barriers and the cluster barrier. Arrival is per warp: the lanes that execute a
 * barrier wait until all live lanes of their warp have arrived at a barrier with the same id, then
 * the warp counts as 32 threads, once. */
#include "internal.h"

#include <stdio.h>

struct bar_form {              /* xop.i.h */
	uint16_t mode;             /* BAR_ */
	uint16_t redop;            /* enum ptx_mod */
	uint16_t aligned, flip;
};

static struct bar_form form_of(const struct xop *x)
{
	struct bar_form f;

	memcpy(&f, &x->i, sizeof f);
	return f;
}

static void explain_bar(const struct warp *w, const struct xwait *wait,
	struct event_blocked *e, char *buf, size_t n)
{
	const struct bar *b = &w->cta->bar[wait->addr];

	e->missing = b->expected > b->arrived ? b->expected - b->arrived : 0;
	snprintf(buf, n, "%u of %u threads have arrived", b->arrived, b->expected);
	e->text = buf;
}

static void complete(struct bar *b)
{
	b->result_pop = b->pop;
	b->result_all = b->all;
	b->arrived = b->pop = b->all = 0;
	b->phase++;
}

void bar_warp_exit(struct cta *c)
{
	for (unsigned i = 0; i < NAMED_BARRIERS; i++) {
		struct bar *b = &c->bar[i];

		if (!b->arrived || !b->whole)
			continue;
		b->expected = c->running * LANES;
		if (b->arrived >= b->expected)
			complete(b);
	}
}

static enum step op_bar(struct warp *w, const struct xop *x, uint32_t lanes);

/* The lanes continue after the barrier. */
static enum step leave(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct bar_form f = form_of(x);
	uint32_t id = r32(w, x->o[0])[__builtin_ctz(lanes)];
	const struct bar *b = &w->cta->bar[id];

	if (f.mode == BAR_ARRIVE)
		return STEP_NEXT;
	if (w->sink) {
		struct event e = ex_event(w, x, EV_BARRIER_RESUME, lanes);

		e.barrier_resume.id = id;
		ex_emit(w->cluster, &e);
	}
	if (f.mode != BAR_RED)
		return STEP_NEXT;
	if (f.redop == MOD_popc) {
		for EACH_LANE(l, lanes)
			r32(w, x->o[3])[l] = b->result_pop;
	} else {
		bool all = f.redop == MOD_and ? b->result_pop == b->result_all : b->result_pop;

		ex_set_pred(w, x->o[3], lanes, all ? FULL : 0);
	}
	return STEP_NEXT;
}

static enum step wait_phase(struct warp *w, uint32_t id)
{
	enum step s = ex_wait(w, WAIT_BAR, &w->cta->bar[id].phase, ~0ull, id);

	w->wait.explain = explain_bar;
	return s;
}

/* Does this fragment wait for other lanes of its warp at a barrier with this id? */
static bool waits_at(const struct warp *w, const struct frag *f, uint32_t id)
{
	const struct xop *x = &w->code[f->pc];

	return f->blocked && f->wait.kind == WAIT_WARP && x->fn == op_bar
		&& r32(w, x->o[0])[__builtin_ctz(f->mask)] == id;
}

static uint32_t true_lanes(const struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct bar_form f = form_of(x);

	return f.mode == BAR_RED ? lanes & (*rp(w, x->o[2]) ^ (f.flip ? FULL : 0)) : 0;
}

/* Arrival of the whole warp. Returns STEP_NEXT if the barrier is complete. */
static enum step arrive(struct warp *w, const struct xop *x, uint32_t lanes, uint32_t id,
	uint32_t count, uint32_t yes)
{
	struct bar *b = &w->cta->bar[id];
	struct bar_form f = form_of(x);

	if (w->sink) {
		struct event e = ex_event(w, x, EV_BARRIER_ARRIVE, lanes);

		e.barrier_arrive.id = id;
		e.barrier_arrive.threads = count;
		e.barrier_arrive.mode = (enum ev_bar)f.mode;
		e.barrier_arrive.aligned = f.aligned;
		ex_emit(w->cluster, &e);
	}
	if (!b->arrived) {
		b->whole = !count;
		b->expected = count ? count : w->cta->running * LANES;
	}
	b->arrived += LANES;
	if (f.mode == BAR_RED) {
		b->pop += (uint32_t)__builtin_popcount(yes);
		b->all += (uint32_t)__builtin_popcount(lanes);
	}
	if (b->arrived >= b->expected) {
		complete(b);
		return STEP_NEXT;
	}
	return f.mode == BAR_ARRIVE ? STEP_NEXT : wait_phase(w, id);
}

static enum step op_bar(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct bar_form f = form_of(x);
	unsigned first = (unsigned)__builtin_ctz(lanes);
	uint32_t id = r32(w, x->o[0])[first], count = r32(w, x->o[1])[first];
	uint32_t here = lanes, yes;
	const struct xop *elsewhere = NULL; /* op at which other lanes of the warp wait */
	struct refusal why;
	enum step s;

	if (w->retry && w->wait.kind == WAIT_BAR)
		return leave(w, x, lanes);
	for EACH_LANE(l, lanes)
		if (r32(w, x->o[0])[l] != id || r32(w, x->o[1])[l] != count)
			return ex_fault(w, x, lanes, FAULT_BAR_OPERAND, SP_ANY, id, 0,
				"lanes of one warp name different barriers or thread counts");
	if (refuse_bar(&why, id, count, w->cta->nwarps * LANES, f.mode == BAR_ARRIVE))
		return ex_refuse(w, x, lanes, &why);
	for (unsigned i = 0; i < w->nfrag; i++)
		if (waits_at(w, &w->frag[i], id)) {
			here |= w->frag[i].mask;
			elsewhere = &w->code[w->frag[i].pc];
		}
	if (here != (uint32_t)~w->dead)
		return warp_wait_lanes(w, ~w->dead & ~here);
	yes = true_lanes(w, x, lanes);
	for (unsigned i = 0; elsewhere && i < w->nfrag; i++)
		if (waits_at(w, &w->frag[i], id))
			yes |= true_lanes(w, &w->code[w->frag[i].pc], w->frag[i].mask);
	if (elsewhere && f.aligned && w->sink) {
		struct event e = ex_event(w, x, EV_FAULT, lanes);

		e.fault.fault = FAULT_BAR_DIVERGED;
		e.fault.addr = id;
		e.fault.other_site = elsewhere->site;
		e.fault.text = "the other lanes of the warp arrived by another instruction";
		ex_emit(w->cluster, &e);
	}
	s = arrive(w, x, here, id, count, yes);
	for (unsigned i = 0; elsewhere && i < w->nfrag; i++) {
		struct frag *o = &w->frag[i];

		if (!waits_at(w, o, id))
			continue;
		/* woken at once if the phase is already complete */
		struct xwait mine = w->wait;
		wait_phase(w, id);
		o->wait = w->wait;
		if (s == STEP_NEXT)
			o->wait.was--;
		w->wait = mine;
	}
	return s == STEP_NEXT ? leave(w, x, lanes) : s;
}

/* b: count, or NULL; p: predicate, or NULL */
static bool decode_bar(struct decoder *d, const struct ptx_insn *i, struct xop *x,
	unsigned mode, bool aligned)
{
	struct bar_form f = { (uint16_t)mode, 0, aligned, 0 };
	unsigned at = mode == BAR_RED, n = i->noperands;
	const struct ptx_operand *o = i->operand;
	bool counted = mode == BAR_RED ? n == 4 : n == 2;
	uint32_t flip;

	x->fn = op_bar;
	x->o[0] = dec_src(d, &o[at], TY_u32);
	x->o[1] = counted ? dec_src(d, &o[at + 1], TY_u32) : dec_const(d, 32, 0);
	if (mode == BAR_RED) {
		f.redop = (uint16_t)ptx_pick(i, MG_redop);
		x->o[2] = dec_pred(d, &o[n - 1], &flip);
		f.flip = flip != 0;
		x->o[3] = dec_dst(d, &o[0], f.redop == MOD_popc ? TY_u32 : TY_pred);
	}
	memcpy(&x->i, &f, sizeof f);
	return true;
}

#define BAR(id, mode, aligned) \
DECODER(id) { return decode_bar(d, i, x, mode, aligned); }
BAR(bar_sync, BAR_SYNC, true)
BAR(bar_arrive, BAR_ARRIVE, true)
BAR(bar_red, BAR_RED, true)
BAR(bar_cta_sync, BAR_SYNC, true)
BAR(bar_cta_arrive, BAR_ARRIVE, true)
BAR(bar_cta_red, BAR_RED, true)
BAR(barrier_sync, BAR_SYNC, ptx_has(i, MOD_aligned))
BAR(barrier_arrive, BAR_ARRIVE, ptx_has(i, MOD_aligned))
BAR(barrier_red, BAR_RED, ptx_has(i, MOD_aligned))
BAR(barrier_cta_sync, BAR_SYNC, ptx_has(i, MOD_aligned))
BAR(barrier_cta_arrive, BAR_ARRIVE, ptx_has(i, MOD_aligned))
BAR(barrier_cta_red, BAR_RED, ptx_has(i, MOD_aligned))

/* ---- barrier.cluster: counts the arrivals of threads that have not exited, and waits for all of
 * those ---- */

void bar_cluster_exit(struct cluster *c)
{
	if (!c->bar_arrived || c->bar_arrived < c->live)
		return;
	c->bar_arrived = 0;
	c->bar_phase++;
}

void bar_cluster_lanes_exit(struct warp *w, uint32_t lanes)
{
	if (w->cluster_phase == w->cluster->bar_phase)
		w->cluster->bar_arrived -= (uint32_t)__builtin_popcount(lanes & w->cluster_arrived);
	w->cluster_arrived &= ~lanes;
	bar_cluster_exit(w->cluster);
}

static enum step op_cluster_arrive(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct cluster *c = w->cluster;
	enum step s;

	if (x->i.h[1] && !warp_aligned(w, x, lanes, &s))
		return s;
	if (w->sink) {
		struct event e = ex_event(w, x, EV_CLUSTER_ARRIVE, lanes);

		e.cluster_arrive.sem = (enum ev_sem)x->i.h[0];
		e.cluster_arrive.aligned = x->i.h[1];
		ex_emit(c, &e);
	}
	w->cluster_odd = (w->cluster_odd & ~lanes) | (c->bar_phase & 1 ? lanes : 0);
	w->cluster_arrived = lanes | (w->cluster_phase == c->bar_phase ? w->cluster_arrived : 0);
	w->cluster_phase = c->bar_phase;
	c->bar_arrived += (uint32_t)__builtin_popcount(lanes);
	bar_cluster_exit(c);
	return STEP_NEXT;
}

static void explain_cluster(const struct warp *w, const struct xwait *wait,
	struct event_blocked *e, char *buf, size_t n)
{
	uint32_t all = w->cluster->live;

	(void)wait;
	e->missing = all - w->cluster->bar_arrived;
	snprintf(buf, n, "%u of %u threads of the cluster have arrived",
		w->cluster->bar_arrived, all);
	e->text = buf;
}

static enum step op_cluster_wait(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct cluster *c = w->cluster;
	enum step s;

	if (x->i.h[1] && !warp_aligned(w, x, lanes, &s))
		return s;
	/* A phase that lacks a lane's arrival completes without it only if the lane has exited. So
	 * one bit distinguishes the phase it arrived for from the next one, at which other lanes of
	 * its warp may already wait. */
	if (lanes & (c->bar_phase & 1 ? w->cluster_odd : ~w->cluster_odd) && c->bar_arrived) {
		s = ex_wait(w, WAIT_CLUSTER, &c->bar_phase, ~0ull, 0);
		w->wait.explain = explain_cluster;
		return s;
	}
	if (w->sink) {
		struct event e = ex_event(w, x, EV_CLUSTER_WAIT, lanes);

		e.cluster_wait.sem = (enum ev_sem)x->i.h[0];
		e.cluster_wait.aligned = x->i.h[1];
		ex_emit(c, &e);
	}
	return STEP_NEXT;
}

static bool decode_cluster(const struct ptx_insn *i, struct xop *x, xfn fn, enum ev_sem sem)
{
	enum ev_sem given = ptx_sem_of(i, SEM_WEAK);

	x->fn = fn;
	x->i.h[0] = (uint16_t)(given == SEM_WEAK ? sem : given);
	x->i.h[1] = ptx_has(i, MOD_aligned);
	return true;
}

DECODER(barrier_cluster_arrive)
{
	(void)d;
	return decode_cluster(i, x, op_cluster_arrive, SEM_RELEASE);
}

DECODER(barrier_cluster_wait)
{
	(void)d;
	return decode_cluster(i, x, op_cluster_wait, SEM_ACQUIRE);
}
