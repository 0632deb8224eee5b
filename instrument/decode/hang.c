/* hang: finds which lanes of a kernel that does not end wait for what, from the records that
 * they wrote last. Lanes of a warp may be at several places. If some lanes of a warp wait, the
 * others are assumed to be waited for. */
#include "events.h"
#include "libconsan/ptx/opcodes.h"

#include <stdio.h>
#include <stdlib.h>

void hang_note(struct dcluster *c, uint32_t warp, const struct record *r)
{
	struct dwarp *w = &c->warp[warp];
	const struct rewrite_site *s = record_site(c, r->site);
	struct record *seen;
	unsigned n = 0;

	if (s->phase == PHASE_PATH)
		return;
	seen = c->seen + 32 * (size_t)warp;
	for (unsigned k = 0; k < w->nseen; k++) {
		seen[n] = seen[k];
		seen[n].lanes &= ~r->lanes;
		n += seen[n].lanes != 0;
	}
	if (!rewrite_leaves(s->insn))
		seen[n++] = *r;
	w->nseen = (uint8_t)n;
}

/* Do the CTA's warps hold and want more registers than the CTA has? held, all: both numbers. */
static bool lacks_registers(const struct dcluster *c, uint32_t warp, uint32_t *held, uint32_t *all)
{
	uint32_t per = c->info.warps_per_cta, first = warp - warp % per;

	*held = 0;
	*all = 32 * per * c->info.launch->regs_per_thread;
	for (uint32_t k = first; k < first + per; k++)
		*held += c->warp[k].gone == c->warp[k].all ? 0 : 32 * c->warp[k].maxnreg;
	return *held > *all;
}

/* The event of lanes that wait. False: they do not wait, they were only seen there last. buf:
 * for the event's text. */
static bool wait_event(const struct dcluster *c, uint32_t warp, const struct record *r,
	struct event *e, char buf[200])
{
	const struct rewrite_site *s = record_site(c, r->site);
	const struct dwarp *w = &c->warp[warp];
	uint32_t lanes = w->nseen == 1 ? w->all & ~w->gone : r->lanes & ~w->gone, missing, mask;
	uint32_t held, all;
	const struct meeting *meeting;
	const struct ptx_insn *i = s->insn;
	struct event_blocked *b = &e->blocked;

	*e = record_event(c, warp, r->site, EV_BLOCKED, lanes);
	b->owner = e->cta;
	b->on = WAIT_SPIN;
	b->text = "was last seen here";
	switch (ptx_effect_of(i->op)) {
	case EF_MBARRIER:
		if (s->phase != PHASE_FAILED)
			return false;
		b->on = WAIT_MBARRIER;
		e->lanes = r->lanes;
		b->addr = OFFSET(record_value(c, r, &i->operand[plan_address(i)],
			(unsigned)__builtin_ctz(r->lanes)));
		b->text = NULL;
		return true;
	case EF_CLUSTER:
		if (s->phase != PHASE_FAILED)
			return false;
		b->on = WAIT_CLUSTER;
		b->text = buf;
		snprintf(buf, 200, "%u of %u threads of the cluster have arrived", c->arrived, cluster_live(c));
		return true;
	case EF_BARRIER:
		if (s->phase != PHASE_BEFORE || !c->job->info[r->site].plan.after)
			return false;
		b->on = WAIT_BAR;
		b->addr = record_value(c, r, plan_barrier(i), 0);
		b->text = w->at_bar ? "the other lanes of the warp have not arrived" : NULL;
		return true;
	case EF_WARP_SYNC: case EF_WARP:
		meeting = i->op == OP_bar_warp_sync ? &w->sync : &w->collective;
		if (!(r->lanes & meeting->lanes))
			return false;
		mask = meeting->mask[__builtin_ctz(r->lanes & meeting->lanes)];
		missing = mask & ~meeting_lanes(meeting, mask) & w->all & ~w->gone;
		b->on = WAIT_WARP;
		b->text = buf;
		snprintf(buf, 200, "waits for lanes 0x%08x", missing);
		return true;
	case EF_SETMAXNREG:
		if (!ptx_has(i, MOD_inc) || !lacks_registers(c, warp, &held, &all))
			return false;
		b->on = WAIT_SETMAXNREG;
		b->addr = w->maxnreg;
		b->text = buf;
		snprintf(buf, 200, "setmaxnreg.inc %u waits: the CTA's pool has %u registers, and its warps "
			"hold or wait for %u", w->maxnreg, all, held);
		return true;
	case EF_TCGEN05:
		return tcgen05_waits(c, warp, r, b, buf);
	default:
		return false;
	}
}

/* ---- a warp at a group of wgmma, whose record is written after the group ---- */

struct walk {
	const struct ptx_func *f;
	uint8_t *state;            /* by block: enum visit */
	const struct ptx_insn *at; /* the wgmma where all paths end */
	unsigned steps;
};
enum visit { ON_PATH = 1, VISITED };

/* Searches all paths from an instruction on, for a warp that wrote no later record. False: the
 * warp may be anywhere, as there is a loop, a poll, or code of another function. */
static bool walk(struct walk *w, uint32_t from)
{
	const struct ptx_func *f = w->f;
	const struct ptx_block *b = &f->cfg->block[f->cfg->block_of[from]];
	struct plan p;

	if (++w->steps > 512)
		return false;
	for (uint32_t k = from; k < b->end; k++) {
		const struct ptx_insn *i = &f->insn[k];
		const enum ptx_effect effect = ptx_effect_of(i->op);

		if (effect == EF_WGMMA && i->op != OP_wgmma_fence) {
			if (w->at && w->at != i)
				return false;
			w->at = i;
			return i->guard == PTX_NO_REG;
		}
		if (i->op == OP_call || i->op == OP_brx_idx || effect == EF_GRID || effect == EF_UNKNOWN)
			return false;
		if (plan_of(f, i, &p) && (p.test || p.poll))
			return false;
		if ((p.before || p.waits) && i->guard == PTX_NO_REG && !p.generic && !p.collective)
			return true; /* here it would have written a record */
	}
	for (unsigned s = 0; s < b->nsucc; s++) {
		uint8_t *state = &w->state[b->succ[s]];

		if (*state == ON_PATH)
			return false;
		if (*state == VISITED)
			continue;
		*state = ON_PATH;
		if (!walk(w, f->cfg->block[b->succ[s]].first))
			return false;
		*state = VISITED;
	}
	return b->nsucc;
}

/* The wgmma at which the warp must be that wrote its last record at s; NULL: not certain. */
static const struct ptx_insn *next_wgmma(const struct rewrite_site *s)
{
	const struct ptx_func *f = s->func;
	struct walk w = { .f = f };
	uint32_t from = (uint32_t)(s->insn - f->insn), block = f->cfg->block_of[from];
	bool certain;

	if (from + 1 >= f->cfg->block[block].end)
		return NULL; /* after a branch, whose direction is not recorded */
	w.state = base_alloc(f->cfg->nblock + 1);
	w.state[block] = ON_PATH;
	certain = walk(&w, from + 1);
	free(w.state);
	return certain ? w.at : NULL;
}

/* Do some of the warp's lanes wait, or have all exited? Then it does not reach the wgmma. */
static bool is_stuck(const struct dcluster *c, uint32_t warp)
{
	const struct dwarp *w = &c->warp[warp];
	const struct record *seen = c->seen + 32 * (size_t)warp;
	struct event e;
	char buf[200];

	for (unsigned k = 0; k < w->nseen; k++)
		if (seen[k].lanes & ~w->gone && wait_event(c, warp, &seen[k], &e, buf))
			return true;
	return w->gone == w->all;
}

/* Does the warp wait at a wgmma that another warp of its warpgroup does not reach? */
static bool lacks_group(const struct dcluster *c, uint32_t warp, const struct record *r,
	struct event *e)
{
	const uint32_t per = c->info.warps_per_cta, in = warp % per, first = warp - in % 4;
	const struct rewrite *code = c->job->l->code;
	const struct ptx_insn *i;
	bool lacks = false;
	size_t k;

	for (uint32_t w = first; w < first + 4 && w < warp - in + per; w++)
		lacks |= w != warp && is_stuck(c, w);
	if (!lacks || !(i = next_wgmma(record_site(c, r->site))))
		return false;
	for (k = 0; k < code->batch.n && code->batch.at[k] != i; k++)
		;
	if (k == code->batch.n)
		return false; /* a wait without groups */
	*e = record_event(c, warp, r->site, EV_BLOCKED, c->warp[warp].all & ~c->warp[warp].gone);
	e->site = c->job->l->site[code->site.n + k];
	e->blocked.owner = e->cta;
	e->blocked.on = WAIT_WARPGROUP;
	e->blocked.addr = in & ~3u;
	return true;
}

/* Reports a warp's waits. False: it does not wait; then its last record is reported. */
static bool emit_waits(struct dcluster *c, uint32_t warp)
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
				&& wait_event(c, warp, &seen[order[l] - 1], &e, buf)) {
			waits = true;
			if (e.blocked.on == WAIT_MBARRIER)
				emit_failed_wait(c, warp, &seen[order[l] - 1], true);
			emit(c, &e);
		}
	if (waits)
		return true;
	if (w->nseen == 1 && lacks_group(c, warp, seen, &e)) {
		emit(c, &e);
		return true;
	}
	wait_event(c, warp, &seen[w->nseen - 1], &e, buf);
	e.lanes = w->all & ~w->gone;
	emit(c, &e);
	return false;
}

void hang_report(struct dcluster *c)
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
			all_wait = emit_waits(c, k) && all_wait;
		} else {
			silent = true;
		}
	}
	/* a cluster without records may not have begun, unless it is known that it has */
	if (!left && !c->blind && (c->job->l->chunks || c->info.id))
		return;
	e.hang.why = left && all_wait && !silent && !c->job->l->waited ? HANG_DEADLOCK : HANG_TIMEOUT;
	emit(c, &e);
}
