/* hang: who waits for what when a kernel does not end, by the records that its
 * lanes wrote last. Lanes of a warp may be at several places; those that were
 * seen elsewhere while others of their warp wait are taken to wait for these. */
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

	if (s->phase == PHASE_MARK)
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
	switch (ptx_effect_of(i->op)) {
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
		e->text = w->at_bar ? "the other lanes of the warp have not arrived" : NULL;
		return true;
	case EF_WARP_SYNC: case EF_WARP:
		missing = s->insn->op == OP_bar_warp_sync ? w->sync_mask & ~w->at_sync & w->all & ~w->gone
			: w->meeting_mask & ~w->at_meeting & w->all & ~w->gone;
		if (!(r->lanes & (i->op == OP_bar_warp_sync ? w->at_sync : w->at_meeting)))
			return false;
		e->mode = EVW_WARP;
		e->text = buf;
		snprintf(buf, 200, "waits for lanes 0x%08x", missing);
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

/* ---- at a group of wgmma, which is recorded behind its end ---- */

struct walk {
	const struct ptx_func *f;
	uint8_t *state;            /* of blocks: */
	const struct ptx_insn *at; /* where all ways end */
	unsigned steps;
};
enum { ON_THE_WAY = 1, LEFT };

/* What a warp of which there is no later record can be at, from instruction `from` of a
 * block on. False: it may be anywhere, as there is a loop, a poll, or another one's code. */
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
		if ((p.before || p.stalls) && i->guard == PTX_NO_REG && !p.generic && !p.meets)
			return true; /* it would be recorded */
	}
	for (unsigned s = 0; s < b->nsucc; s++) {
		uint8_t *state = &w->state[b->succ[s]];

		if (*state == ON_THE_WAY)
			return false;
		if (*state == LEFT)
			continue;
		*state = ON_THE_WAY;
		if (!walk(w, f->cfg->block[b->succ[s]].first))
			return false;
		*state = LEFT;
	}
	return b->nsucc;
}

/* The wgmma to which the only way leads from what a warp was last seen at; NULL: none. */
static const struct ptx_insn *next_wgmma(const struct rewrite_site *s)
{
	const struct ptx_func *f = s->func;
	struct walk w = { .f = f };
	uint32_t from = (uint32_t)(s->insn - f->insn), block = f->cfg->block_of[from];
	bool certain;

	if (from + 1 >= f->cfg->block[block].end)
		return NULL; /* a branch: there is no record of one */
	w.state = base_alloc(f->cfg->nblock + 1);
	w.state[block] = ON_THE_WAY;
	certain = walk(&w, from + 1);
	free(w.state);
	return certain ? w.at : NULL;
}

/* Some of its lanes wait for something, or all have exited: it is not on its way. */
static bool stands(const struct dcluster *c, uint32_t warp)
{
	const struct dwarp *w = &c->warp[warp];
	const struct record *seen = c->seen + 32 * (size_t)warp;
	struct event e;
	char buf[200];

	for (unsigned k = 0; k < w->nseen; k++)
		if (seen[k].lanes & ~w->gone && wait_of(c, warp, &seen[k], &e, buf))
			return true;
	return w->gone == w->all;
}

/* It came to a wgmma, to which a warp of its warpgroup does not come. */
static bool lacks_group(const struct dcluster *c, uint32_t warp, const struct record *r, struct event *e)
{
	const uint32_t per = c->info.warps_per_cta, in = warp % per, first = warp - in % 4;
	const struct rewrite *code = c->job->l->code;
	const struct ptx_insn *i;
	bool lacks = false;
	size_t k;

	for (uint32_t w = first; w < first + 4 && w < warp - in + per; w++)
		lacks |= w != warp && stands(c, w);
	if (!lacks || !(i = next_wgmma(record_site(c, r->site))))
		return false;
	for (k = 0; k < code->batch.n && code->batch.at[k] != i; k++)
		;
	if (k == code->batch.n)
		return false; /* a wait for groups of which there are none */
	*e = record_event(c, warp, r->site, EV_BLOCKED, c->warp[warp].all & ~c->warp[warp].gone);
	e->site = c->job->l->site[code->site.n + k];
	e->mode = EVW_WARPGROUP;
	e->addr = in & ~3u;
	return true;
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
	if (w->nseen == 1 && lacks_group(c, warp, seen, &e)) {
		emit(c, &e);
		return true;
	}
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
	/* a cluster of which nothing is seen may not have begun, unless it is known to */
	if (!left && !c->blind && (c->job->l->chunks || c->info.id))
		return;
	e.mode = left && all_wait && !silent && !c->job->l->waited ? EVH_DEADLOCK : EVH_TIMEOUT;
	emit(c, &e);
}
