/* sync: turns records of CTA, warp and cluster barriers, fences and exits into events. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

static bool aligned(const struct ptx_insn *i)
{
	return i->op == OP_bar_sync || i->op == OP_bar_arrive || i->op == OP_bar_red ||
		i->op == OP_bar_cta_sync || i->op == OP_bar_cta_arrive || i->op == OP_bar_cta_red ||
		ptx_has(i, MOD_aligned);
}

/* The warp arrives when all its lanes that have not exited are at the barrier. */
static void arrive_at_bar(struct dcluster *c, uint32_t warp)
{
	struct dwarp *w = &c->warp[warp];
	struct event e;

	if (!w->at_bar || w->at_bar != (w->all & ~w->gone))
		return;
	e = w->bar_arrival;
	if (w->other_bar && aligned(w->bar)) {
		struct event fault = record_event(c, warp, w->bar_site, EV_FAULT, e.lanes);

		fault.fault = (struct event_fault){ .fault = FAULT_BAR_DIVERGED,
			.addr = e.barrier_arrive.id, .other_site = c->job->l->site[w->other_bar - 1],
			.text = "the other lanes of the warp arrived by another instruction" };
		emit(c, &fault);
	}
	e.lanes = w->at_bar;
	w->at_bar = 0;
	emit(c, &e);
}

void emit_bar(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct ptx_insn *i = s->insn;
	bool red = i->op == OP_bar_red || i->op == OP_bar_cta_red || i->op == OP_barrier_red ||
		i->op == OP_barrier_cta_red;
	struct dwarp *w = &c->warp[warp];
	struct event e = record_event(c, warp, r->site, EV_BARRIER_ARRIVE, r->lanes);
	const uint32_t id = (uint32_t)record_value(c, r, plan_barrier(i), 0);
	struct event_barrier_arrive *a = &e.barrier_arrive;

	if (s->phase == PHASE_AFTER) {
		e.kind = EV_BARRIER_RESUME;
		e.barrier_resume.id = id;
		emit(c, &e);
		return;
	}
	a->id = id;
	a->threads = (red ? i->noperands == 4 : i->noperands == 2)
		? (uint32_t)record_value(c, r, &i->operand[red + 1], 0) : 0;
	a->mode = red ? BAR_RED : i->op == OP_bar_arrive || i->op == OP_bar_cta_arrive ||
		i->op == OP_barrier_arrive || i->op == OP_barrier_cta_arrive ? BAR_ARRIVE : BAR_SYNC;
	a->aligned = aligned(i);
	refused_bar(c, warp, r, id, a->threads, a->mode == BAR_ARRIVE);
	if (!w->at_bar)
		w->other_bar = 0;
	else if (w->bar != i)
		w->other_bar = 1 + w->bar_site;
	w->bar = i;
	w->bar_site = r->site;
	w->bar_arrival = e;
	w->at_bar |= r->lanes;
	arrive_at_bar(c, warp);
}

/* After a fault: reports warps of which only some lanes reached an .aligned barrier, where a
 * GPU stops. */
void refused_halves(struct dcluster *c)
{
	for (uint32_t k = 0; k < c->info.nctas * c->info.warps_per_cta && !c->stopped; k++) {
		const struct dwarp *w = &c->warp[k];
		struct refusal why;

		if (!w->at_bar || !aligned(w->bar) || w->at_bar == (w->all & ~w->gone))
			continue;
		refusal_set(&why, FAULT_BAR_DIVERGED, SP_ANY, 0, 0,
			"the other lanes of the warp had not reached it when the GPU stopped the kernel");
		emit_refusal(c, k, c->job->l->site[w->bar_site], w->at_bar, &why);
	}
}

/* ---- lanes that wait for those of a mask; lanes of one warp may wait with different masks ---- */

uint32_t meeting_lanes(const struct meeting *m, uint32_t mask)
{
	uint32_t lanes = 0;

	for EACH_LANE(l, m->lanes)
		lanes |= (uint32_t)(m->mask[l] == mask) << l;
	return lanes;
}

/* The lanes that wait with this mask, if they are all of the mask's that live; they leave then.
 * Else 0. */
static uint32_t complete(struct meeting *m, uint32_t mask, uint32_t live)
{
	const uint32_t lanes = meeting_lanes(m, mask), want = mask & live;

	if (!want || (lanes & want) != want)
		return 0;
	m->lanes &= ~lanes;
	return lanes;
}

/* These lanes arrive. Returns the same. */
static uint32_t arrive(struct meeting *m, uint32_t lanes, uint32_t mask, uint32_t live)
{
	if (lanes && !(mask & live & ~lanes))
		return lanes;
	m->lanes |= lanes;
	for EACH_LANE(l, lanes)
		m->mask[l] = mask;
	return complete(m, mask, live);
}

static void warp_synced(struct dcluster *c, uint32_t warp, uint32_t lanes, uint32_t mask)
{
	struct event e = record_event(c, warp, c->warp[warp].sync_site, EV_WARP_SYNC, lanes);

	e.warp_sync.mask = mask & c->warp[warp].all & ~c->warp[warp].gone;
	if (lanes)
		emit(c, &e);
}

/* Lanes have exited: others may have waited for them only. */
static void try_warp_sync(struct dcluster *c, uint32_t warp)
{
	struct dwarp *w = &c->warp[warp];

	for EACH_LANE(l, w->sync.lanes)
		if (w->sync.lanes >> l & 1)
			warp_synced(c, warp, complete(&w->sync, w->sync.mask[l], w->all & ~w->gone),
				w->sync.mask[l]);
}

void emit_warp_sync(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct dwarp *w = &c->warp[warp];

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		uint32_t mask = (uint32_t)record_value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));

		same = record_same(c, r, rest, &i->operand[0]);
		if (same & ~mask)
			refused_mask(c, warp, r, same & ~mask, mask);
		w->sync_site = r->site;
		warp_synced(c, warp, arrive(&w->sync, same, mask, w->all & ~w->gone), mask);
	}
}

/* The source lane of lane l (PTX ISA 9.7.9.6). */
static unsigned source_of(const struct ptx_insn *i, unsigned l, uint32_t b, uint32_t clamp)
{
	int low = (int)(l & clamp >> 8 & 31), n = (int)(b & 31), lane = (int)l, from;
	int high = low | (int)(clamp & 31 & ~(clamp >> 8));
	bool up = ptx_pick(i, MG_shfl) == MOD_up;

	switch ((int)ptx_pick(i, MG_shfl)) {
	case MOD_up: from = lane - n; break;
	case MOD_down: from = lane + n; break;
	case MOD_bfly: from = lane ^ n; break;
	default: from = low | (n & ~(int)(clamp >> 8 & 31)); break;
	}
	return (unsigned)((up ? from >= high : from <= high) ? from : lane);
}

/* These lanes, all of the mask, have executed the collective. */
static void emit_done(struct dcluster *c, uint32_t warp, const struct ptx_insn *i, uint32_t id,
	uint32_t lanes, uint32_t mask)
{
	const struct dwarp *w = &c->warp[warp];
	struct event e = record_event(c, warp, 0, EV_WARP_COLLECTIVE, lanes);
	uint32_t stray = 0;

	e.site = id;
	emit(c, &e);
	if (i->op != OP_shfl_sync || lanes == FULL)
		return;
	for EACH_LANE(l, lanes)
		stray |= (uint32_t)!(mask & lanes & 1u << w->from[l]) << l;
	if (!stray)
		return;
	e.lanes = stray;
	e.warp_collective.bad_source = true;
	e.warp_collective.mask = mask;
	emit(c, &e);
}

static void emit_repeated(struct dcluster *c, uint32_t warp, const struct record *r,
	uint32_t lanes, uint32_t mask)
{
	const struct rewrite_site *s = record_site(c, r->site);
	struct dwarp *w = &c->warp[warp];

	for (uint32_t k = 0; k < s->nbatch; k++) {
		const struct ptx_insn *i = c->job->l->code->batch.at[s->batch + k];

		for (unsigned l = 0; i->op == OP_shfl_sync && lanes != FULL && l < 32; l++)
			w->from[l] = (uint8_t)source_of(i, l, (uint32_t)i->operand[2].imm,
				(uint32_t)i->operand[3].imm);
		emit_done(c, warp, i, record_batch_site(c, r->site, k), lanes, mask);
	}
}

void emit_collective(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	const struct ptx_operand *o = plan_mask(i);
	struct dwarp *w = &c->warp[warp];

	for (uint32_t rest = r->lanes, same; rest; rest &= ~same) {
		uint32_t mask = w->all, lanes;

		same = rest;
		if (o) {
			mask = (uint32_t)record_value(c, r, o, (unsigned)__builtin_ctz(rest));
			same = record_same(c, r, rest, o);
		}
		if (same & ~mask)
			refused_mask(c, warp, r, same & ~mask, mask);
		/* with all 32 lanes, every source lane takes part */
		for (uint32_t l = 0; i->op == OP_shfl_sync && (same & mask) != FULL && l < 32; l++)
			if (same >> l & 1)
				w->from[l] = (uint8_t)source_of(i, l,
					(uint32_t)record_value(c, r, &i->operand[2], l),
					(uint32_t)record_value(c, r, &i->operand[3], l));
		lanes = arrive(&w->collective, same & mask, mask, w->all & ~w->gone);
		if (!lanes)
			continue;
		emit_done(c, warp, i, c->job->l->site[r->site], lanes, mask);
		emit_repeated(c, warp, r, lanes, mask);
	}
}

void emit_fence(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_FENCE_PROXY, r->lanes);
	struct event_fence_proxy *f = &e.fence_proxy;
	enum ptx_space space = ptx_space_of(i, 0);
	const bool restricted = ptx_has(i, MOD_sync_restrict_shared_cta) ||
		ptx_has(i, MOD_sync_restrict_shared_cluster);

	f->sem = ptx_sem_of(i, SEM_WEAK);
	f->scope = ptx_scope_of(i, SCOPE_NONE);
	f->space = space == PS_global ? SP_GLOBAL : space == PS_shared || space == PS_shared_cluster
		? SP_SHARED : SP_ANY;
	f->own_cta = ptx_fences_own_cta(i);
	switch ((enum ptx_op)i->op) {
	case OP_fence:
		e.kind = EV_FENCE;
		e.fence = (struct event_fence){ .sem = ptx_sem_of(i, SEM_ACQ_REL),
			.scope = ptx_scope_of(i, SCOPE_NONE), .space = restricted ? SP_SHARED : SP_ANY };
		break;
	case OP_membar:
		e.kind = EV_FENCE;
		e.fence = (struct event_fence){ .sem = SEM_SC, .scope = ptx_scope_of(i, SCOPE_NONE) };
		break;
	case OP_fence_mbarrier_init:
		e.kind = EV_FENCE_MBARRIER_INIT;
		break;
	case OP_fence_proxy_alias:
	case OP_membar_proxy_alias:
		f->proxy = PROXY_ALIAS;
		break;
	case OP_fence_proxy_async_generic:
		f->proxy = ptx_has(i, MOD_acquire) ? PROXY_ASYNC_ACQUIRE : PROXY_ASYNC_RELEASE;
		break;
	case OP_fence_proxy_tensormap:
		f->proxy = ptx_has(i, MOD_acquire) ? PROXY_TENSORMAP_ACQUIRE : PROXY_TENSORMAP_RELEASE;
		f->sem = ptx_has(i, MOD_acquire) ? SEM_ACQUIRE : SEM_RELEASE;
		f->space = SP_GLOBAL;
		break;
	default:
		f->proxy = PROXY_ASYNC;
		break;
	}
	if (i->op != OP_fence_proxy_tensormap || !i->noperands) {
		emit(c, &e);
		return;
	}
	for (uint32_t rest = r->lanes; rest; rest &= ~e.lanes) {
		e.lanes = record_same(c, r, rest, &i->operand[0]);
		f->addr = record_value(c, r, &i->operand[0], (unsigned)__builtin_ctz(rest));
		emit(c, &e);
	}
}

uint32_t cluster_live(const struct dcluster *c)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < c->info.nctas; k++)
		n += c->left[k];
	return n;
}

/* Lanes that exited count as arrived. */
static void cluster_arrivals(struct dcluster *c, uint32_t more)
{
	c->arrived += more;
	if (c->arrived >= cluster_live(c))
		c->arrived = 0;
}

void emit_cluster(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	bool arrive = i->op == OP_barrier_cluster_arrive;
	struct event e = record_event(c, warp, r->site, arrive ? EV_CLUSTER_ARRIVE : EV_CLUSTER_WAIT,
		r->lanes);
	const struct event_cluster_arrive b = {
		.sem = ptx_sem_of(i, arrive ? SEM_RELEASE : SEM_ACQUIRE),
		.aligned = ptx_has(i, MOD_aligned) };

	if (arrive)
		e.cluster_arrive = b;
	else
		e.cluster_wait = b;
	emit(c, &e);
	if (arrive)
		cluster_arrivals(c, (uint32_t)__builtin_popcount(r->lanes));
}

void emit_grid(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct event e = record_event(c, warp, r->site, EV_GRIDDEPCONTROL, r->lanes);

	e.griddepcontrol.launch_dependents
		= record_site(c, r->site)->insn->op == OP_griddepcontrol_launch_dependents;
	emit(c, &e);
}

void emit_exit(struct dcluster *c, uint32_t warp, uint32_t site, uint32_t lanes)
{
	struct dwarp *w = &c->warp[warp];
	uint32_t cta = warp / c->info.warps_per_cta;
	struct event e = record_event(c, warp, site, EV_THREAD_EXIT, lanes & ~w->gone);

	if (!e.lanes)
		return;
	emit(c, &e);
	w->gone |= e.lanes;
	c->left[cta] -= (uint32_t)__builtin_popcount(e.lanes);
	arrive_at_bar(c, warp);
	try_warp_sync(c, warp);
	tcgen05_lanes_left(c, warp);
	cluster_arrivals(c, 0);
	if (c->left[cta])
		return;
	e = (struct event){ .kind = EV_CTA_END, .cta = (uint16_t)cta, .lanes = FULL };
	emit(c, &e);
}

void emit_other(struct dcluster *c, uint32_t warp, const struct record *r)
{
	const struct ptx_insn *i = record_site(c, r->site)->insn;
	struct event e = record_event(c, warp, r->site, EV_SETMAXNREG, r->lanes);
	struct dwarp *w = &c->warp[warp];
	struct refusal stop;

	if (i->op != OP_setmaxnreg) {
		if (plan_asserts(i))
			refusal_set(&stop, FAULT_ASSERT, SP_ANY, 0, 0, "an assertion failed");
		else
			refusal_set(&stop, FAULT_TRAP, SP_ANY, 0, 0, i->op == OP_brkpt
				? "the kernel executed brkpt, and no debugger is attached"
				: "the kernel executed trap");
		emit_refusal(c, warp, e.site, r->lanes, &stop);
		return;
	}
	if (r->site == w->regs_site && !(r->lanes & ~w->regs_missing)) {
		w->regs_missing &= ~r->lanes;
		return;
	}
	e.lanes = w->all & ~w->gone;
	w->regs_site = r->site;
	w->regs_missing = e.lanes & ~r->lanes;
	e.setmaxnreg.registers = (uint32_t)i->operand[0].imm;
	e.setmaxnreg.increase = ptx_has(i, MOD_inc);
	e.setmaxnreg.ignored = !setmaxnreg_counts(c->job->l->func->func);
	refused_setmaxnreg(c, warp, r, e.setmaxnreg.registers, e.setmaxnreg.increase,
		e.setmaxnreg.ignored ? 0 : w->maxnreg);
	if (!e.setmaxnreg.ignored)
		w->maxnreg = e.setmaxnreg.registers;
	emit(c, &e);
}
