/* hang: who waits for what when a kernel does not end, by the records that its
 * lanes wrote last. Lanes of a warp may be at several places; those that were
 * seen elsewhere while others of their warp wait are taken to wait for these. */
#include "events.h"

#include <stdio.h>

void hang_note(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct dwarp *w = &c->warp[warp];
	const struct rewrite_site *s = record_site(c, r->site);
	struct record *seen;
	unsigned n = 0;

	if (s->phase == PHASE_MARK)
		return;
	seen = c->seen + 32 * (size_t)warp;
	for (unsigned k = 0; k < w->nseen; k++) {
		seen[n] = seen[k];
		seen[n].lanes &= ~r->lanes;
		n += seen[n].lanes != 0;
	}
	if (ptx_effect_of((enum ptx_op)s->insn->op) != EF_EXIT && s->insn->op != OP_ret)
		seen[n++] = *r;
	w->nseen = (uint8_t)n;
}

/* Registers that the CTA's warps have and asked for, against those that there are. */
static bool lacks_registers(const struct dcluster *c, uint32_t warp, uint32_t *held, uint32_t *all)
{
	uint32_t per = c->info.warps_per_cta, first = warp - warp % per;

	*held = 0;
	*all = 32 * per * c->info.launch->regs_per_thread;
	for (uint32_t k = first; k < first + per; k++)
		*held += c->warp[k].gone == c->warp[k].all ? 0 : 32 * c->warp[k].maxnreg;
	return *held > *all;
}

/* The event of lanes that wait; false: they were only seen there. buf: room for
 * its text. */
static bool wait_of(const struct dcluster *c, uint32_t warp, const struct record *r, struct event *e,
	char buf[200])
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct dwarp *w = &c->warp[warp];
	uint32_t lanes = w->nseen == 1 ? w->all & ~w->gone : r->lanes & ~w->gone, missing, held, all;
	const struct ptx_insn *i = s->insn;

	*e = record_event(c, warp, r->site, EV_BLOCKED, lanes);
	e->mode = EVW_SPIN;
	e->text = "was last seen here";
	switch (ptx_effect_of((enum ptx_op)i->op)) {
	case EF_MBARRIER:
		if (s->phase != PHASE_FAILED)
			return false;
		e->mode = EVW_MBARRIER;
		e->lanes = r->lanes;
		e->addr = OFFSET(record_value(c, r, &i->operand[plan_address(i)],
			(unsigned)__builtin_ctz(r->lanes)));
		e->text = NULL;
		return true;
	case EF_CLUSTER:
		if (s->phase != PHASE_FAILED)
			return false;
		e->mode = EVW_CLUSTER;
		e->text = buf;
		snprintf(buf, 200, "%u of %u threads of the cluster have arrived", c->arrived, cluster_live(c));
		return true;
	case EF_BARRIER:
		if (s->phase != PHASE_BEFORE || !c->job->info[r->site].plan.after)
			return false;
		e->mode = EVW_BAR;
		e->addr = record_value(c, r, plan_bar(i), 0);
		e->text = w->at_bar ? "the warp's other lanes have not come" : NULL;
		return true;
	case EF_WARP_SYNC: case EF_WARP:
		missing = s->insn->op == OP_bar_warp_sync ? w->sync_mask & ~w->at_sync & w->all & ~w->gone
			: w->meeting_mask & ~w->at_meeting & w->all & ~w->gone;
		if (!(r->lanes & (i->op == OP_bar_warp_sync ? w->at_sync : w->at_meeting)))
			return false;
		e->mode = EVW_WARP;
		e->text = buf;
		snprintf(buf, 200, "lanes 0x%08x are to arrive here", missing);
		return true;
	case EF_SETMAXNREG:
		if (!ptx_has(i, MOD_inc) || !lacks_registers(c, warp, &held, &all))
			return false;
		e->mode = EVW_SETMAXNREG;
		e->addr = w->maxnreg;
		e->text = buf;
		snprintf(buf, 200, "setmaxnreg.inc %u waits: the CTA's pool has %u registers, and its warps "
			"hold or wait for %u", w->maxnreg, all, held);
		return true;
	default:
		return false;
	}
}

/* True: it waits. Of a warp that does not, only what it did last is told. */
static bool tell_waiter(struct dcluster *c, uint32_t warp)
{
	const struct dwarp *w = &c->warp[warp];
	const struct record *seen = c->seen + 32 * (size_t)warp;
	uint32_t order[32] = { 0 };
	bool waits = false;
	char buf[200];
	struct event e;

	for (unsigned k = 0; k < w->nseen; k++)
		order[__builtin_ctz(seen[k].lanes)] = k + 1;
	for (unsigned l = 0; l < 32; l++)
		if (order[l] && (seen[order[l] - 1].lanes & ~w->gone)
				&& wait_of(c, warp, &seen[order[l] - 1], &e, buf)) {
			waits = true;
			emit(c, &e);
		}
	if (waits)
		return true;
	wait_of(c, warp, &seen[w->nseen - 1], &e, buf);
	e.lanes = w->all & ~w->gone;
	emit(c, &e);
	return false;
}

void hang_tell(struct dcluster *c)
{
	uint32_t n = c->info.nctas * c->info.warps_per_cta, left = 0;
	struct event e = { .kind = EV_HANG, .lanes = FULL };
	bool all_wait = true, silent = false;

	if (!c->seen || c->stopped)
		return;
	for (uint32_t k = 0; k < n; k++) {
		const struct dwarp *w = &c->warp[k];

		if (w->gone == w->all)
			continue;
		if (w->nseen) {
			left++;
			all_wait = tell_waiter(c, k) && all_wait;
		} else {
			silent = true;
		}
	}
	/* a cluster of which nothing is seen may not have begun */
	if (!left && (c->job->l->chunks || c->info.id))
		return;
	e.mode = left && all_wait && !silent ? 0 : 2;
	emit(c, &e);
}
