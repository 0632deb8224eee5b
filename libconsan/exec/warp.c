/* warp: fragments, the step loop, rendezvous. Does not depend on instructions.
 *
 * A warp is a set of fragments: lanes at one pc. The runnable fragment with the lowest (turn, pc)
 * runs. Code is laid out so that lowest pc first reconverges at post-dominators. A fragment that
 * spins takes a later turn, so that the lanes it waits for run. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

static uint32_t pc_of(const struct warp *w, const struct xop *x)
{
	return (uint32_t)(x - w->code);
}

static struct frag *push(struct warp *w, uint32_t pc, uint32_t mask)
{
	struct frag *f = &w->frag[w->nfrag++];

	f->pc = pc;
	f->mask = mask;
	f->blocked = false;
	f->turn = w->turn;
	return f;
}

void warp_fork(struct warp *w, uint32_t pc, uint32_t mask)
{
	push(w, pc, mask);
}

static void drop(struct warp *w, unsigned i)
{
	w->frag[i] = w->frag[--w->nfrag];
}

/* Lanes that arrive at the same op join a fragment that is runnable or waits for other lanes. */
static bool joins(const struct frag *f)
{
	return !f->blocked || f->wait.kind == WAIT_WARP;
}

/* By which calls these lanes are where they are. Lanes that called a function at two places do not
 * run together in it, as on GPUs, but for instructions that wait for each other's lanes. */
static uint64_t path_of(const struct warp *w, uint32_t lanes)
{
	const unsigned l = (unsigned)__builtin_ctz(lanes);

	return w->call[l].n ? w->call[l].at[w->call[l].n - 1].path : 0;
}

static bool joins_these(const struct warp *w, const struct frag *f, uint32_t lanes)
{
	return joins(f) && (f->blocked || path_of(w, f->mask) == path_of(w, lanes));
}

/* Sets the first op, after x, at which the running fragment joins another one. */
static void set_stop(struct warp *w, const struct xop *x)
{
	uint32_t at = pc_of(w, x), stop = UINT32_MAX;

	for (unsigned i = 0; i < w->nfrag; i++)
		if (w->frag[i].pc > at && w->frag[i].pc < stop && joins(&w->frag[i]))
			stop = w->frag[i].pc;
	w->stop = stop == UINT32_MAX ? NULL : w->code + stop;
}

bool warp_ready(struct warp *w)
{
	for (unsigned i = 0; i < w->nfrag; i++)
		if (!frag_asleep(&w->frag[i]))
			return true;
	return false;
}

bool warp_expire(struct warp *w)
{
	bool any = false;

	if (w->expired_work != w->cluster->work)
		w->expired = 0;
	w->expired_work = w->cluster->work;
	for (unsigned i = 0; i < w->nfrag; i++) {
		struct frag *f = &w->frag[i];
		const uint64_t here = 1ull << (w->code[f->pc].site & 63);

		if (!f->blocked || f->wait.kind != WAIT_MBARRIER || w->expired & here)
			continue;
		w->expired |= here;
		w->expire |= here;
		f->blocked = false;
		any = true;
	}
	return any;
}

/* Does the running fragment, at pc, stay the one to run, without joining another? */
static bool stays_running(struct warp *w, uint32_t pc)
{
	for (unsigned i = 0; i < w->nfrag; i++) {
		const struct frag *f = &w->frag[i];

		if (f->pc == pc && joins_these(w, f, w->mask))
			return false;
		if (f->turn <= w->turn && (f->pc < pc || f->turn < w->turn) && !frag_asleep(f))
			return false;
	}
	return true;
}

/* Chooses the fragment to run and removes it from the list, with all that are at the same op. NULL:
 * none can run. */
static const struct xop *pick_fragment(struct warp *w)
{
	int best = -1;
	uint32_t pc;
	bool woken;

	for (unsigned i = 0; i < w->nfrag; i++) {
		const struct frag *f = &w->frag[i];

		if (frag_asleep(f))
			continue;
		if (best >= 0 && (f->turn > w->frag[best].turn ||
			(f->turn == w->frag[best].turn && f->pc >= w->frag[best].pc)))
			continue;
		best = (int)i;
	}
	if (best < 0)
		return NULL;
	pc = w->frag[best].pc;
	w->mask = w->frag[best].mask;
	w->turn = w->frag[best].turn;
	woken = w->frag[best].blocked;
	if (woken)
		w->wait = w->frag[best].wait;
	drop(w, (unsigned)best);
	w->retry = woken;
	for (unsigned i = 0; i < w->nfrag;) {
		const struct frag *f = &w->frag[i];

		/* a woken fragment is in the middle of its op: only a fragment in the same state
		 * joins */
		if (f->pc != pc || (woken && w->wait.kind != WAIT_WARP)
				|| !joins_these(w, f, w->mask)) {
			i++;
			continue;
		}
		w->mask |= f->mask;
		w->retry = false;
		if (f->turn < w->turn)
			w->turn = f->turn;
		drop(w, i);
	}
	return w->code + pc;
}

void warp_start(struct warp *w)
{
	uint32_t lanes = w->nlanes == LANES ? FULL : (1u << w->nlanes) - 1;

	w->dead = ~lanes;
	w->nfrag = 0;
	w->turn = 0;
	w->polls = w->stays = 0;
	w->tried = w->expire = w->expired = w->expired_work = 0;
	w->done = false;
	w->retry = false;
	w->runs = w->worker->grid->runs;
	w->follow.n = 0;
	free(w->device_error);
	w->device_error = NULL;
	push(w, w->worker->grid->k->entry_pc, lanes);
}

enum step warp_exit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t on = w->mask & ~lanes;

	if (w->sink) {
		struct event e = ex_event(w, x, EV_THREAD_EXIT, lanes);

		ex_emit(w->cluster, &e);
	}
	w->dead |= lanes;
	w->cluster->live -= (uint32_t)__builtin_popcount(lanes);
	bar_cluster_lanes_exit(w, lanes);
	w->lane_exits++;
	ex_work(w);
	if (on)
		push(w, pc_of(w, x) + 1, on);
	if (!~w->dead)
		w->done = true;
	w->next = NULL;
	return STEP_JUMP;
}

/* The running fragment yields to another one of this warp if one can run. True: one can. */
static bool yield_fragment(struct warp *w, const struct xop *x)
{
	bool other = warp_ready(w);

	push(w, pc_of(w, x), w->mask)->turn = w->turn + other;
	return other;
}

static void block(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct frag *f;

	if (w->mask & ~lanes)
		push(w, pc_of(w, x) + 1, w->mask & ~lanes);
	f = push(w, pc_of(w, x), lanes);
	f->blocked = true;
	f->wait = w->wait;
}

enum step run_step(struct warp *w, const struct xop *x, uint32_t lanes)
{
	enum step s = STEP_NEXT;

	lanes = ex_guarded(w, x);
	if (lanes)
		s = x->fn(w, x, lanes | (w->dead & (0u - x->pure)));
	/* a fragment has stayed behind, or the op wants the warp to stop after it */
	if (__builtin_expect(s == STEP_NEXT && !w->nfrag && !w->stop, 1))
		return x[1].run(w, x + 1, 0);
	w->at = x;
	w->at_lanes = lanes;
	return s;
}

enum run_result warp_run(struct warp *w)
{
	const struct xop *x, *from;
	unsigned spun = 0;

again:
	if (w->done)
		return RUN_DONE;
	x = pick_fragment(w);
	if (!x)
		return spun ? RUN_SPIN : RUN_BLOCKED;
	from = x;
	set_stop(w, x);
	if (w->follow.n)
		follow_step(w, x);
	if (w->retry || w->follow.n)
		w->stop = x + 1; /* stop after the op that is repeated, or after each op */
	for (;;) {
		enum step s = STEP_NEXT;
		uint32_t lanes;

		if (w->runs && !w->nfrag && !w->stop) {
			w->from = from;
			s = x->run(w, x, 0);
			x = w->at;
			from = w->from;
			lanes = w->at_lanes;
		} else {
			lanes = ex_guarded(w, x);
			if (lanes)
				s = x->fn(w, x, lanes | (w->dead & (0u - x->pure)));
		}
		if (__builtin_expect(s == STEP_NEXT, 1)) {
			if (++x != w->stop)
				continue;
			if (w->retry) {
				w->retry = false;
				set_stop(w, x - 1);
				if (x != w->stop && !w->follow.n)
					continue;
			}
			warp_retire(w, from, x);
			push(w, pc_of(w, x), w->mask);
			goto again;
		}
		if (s == STEP_PARK) {
			warp_retire(w, from, x);
			w->stays = w->nfrag ? w->stays + 1 : 0;
			push(w, pc_of(w, x), w->mask);
			w->retry = false;
			return RUN_PARKED;
		}
		warp_retire(w, from, x + 1);
		w->retry = false;
		switch (s) {
		case STEP_NEXT:
		case STEP_PARK:
			break;
		case STEP_BLOCK:
			block(w, x, lanes);
			goto again;
		case STEP_YIELD:
			w->stays = w->nfrag ? w->stays + 1 : 0;
			push(w, pc_of(w, x) + 1, w->mask);
			return w->polls ? RUN_SPIN : RUN_READY;
		case STEP_FAULT:
			return RUN_STOP;
		case STEP_JUMP:
			if (!w->next)
				goto again;
			if (w->next <= x) {
				if (w->polls >= POLLS) {
					w->polls = 0;
					if (!yield_fragment(w, w->next) || ++spun > w->nfrag)
						return RUN_SPIN;
					goto again;
				}
				if (w->budget < 0 || (w->stays >= STAYS && w->nfrag)) {
					w->stays = 0;
					yield_fragment(w, w->next);
					return RUN_READY;
				}
			}
			x = from = w->next;
			if (w->follow.n || (w->nfrag && !stays_running(w, pc_of(w, x)))) {
				push(w, pc_of(w, x), w->mask);
				goto again;
			}
			if (w->nfrag)
				set_stop(w, x);
			break;
		}
	}
}

/* ---- rendezvous ---- */

static void explain_lanes(const struct warp *w, const struct xwait *wait,
	struct event_blocked *e, char *buf, size_t n)
{
	(void)w;
	snprintf(buf, n, "waits for lanes 0x%08x", (uint32_t)wait->arg);
	e->missing = (uint32_t)__builtin_popcount((uint32_t)wait->arg);
	e->text = buf;
}

enum step warp_wait_lanes(struct warp *w, uint32_t missing)
{
	ex_wait(w, WAIT_WARP, &w->lane_exits, ~0ull, missing);
	w->wait.arg = missing;
	w->wait.explain = explain_lanes;
	return STEP_BLOCK;
}

uint32_t warp_sync_mask_slow(struct warp *w, const struct xop *x, uint32_t lanes,
	uint32_t mask_slot, bool *fault)
{
	const l32 *mask = r32(w, mask_slot);
	uint32_t ready = 0, missing = 0, bad = 0;

	for EACH_LANE(l, lanes) {
		uint32_t need = mask[l] & ~w->dead & ~lanes;

		if (!(mask[l] >> l & 1))
			bad |= 1u << l;
		else if (need)
			missing |= need;
		else
			ready |= 1u << l;
	}
	if (bad) {
		struct refusal why;

		refuse_mask(&why, mask[__builtin_ctz(bad)]);
		ex_refuse(w, x, bad, &why);
		*fault = true;
		return 0;
	}
	if (!missing)
		return ready;
	warp_wait_lanes(w, missing);
	if (!ready)
		return 0;
	/* the other lanes stay behind */
	struct frag *f = push(w, pc_of(w, x), lanes & ~ready);

	f->blocked = true;
	f->wait = w->wait;
	w->mask &= ~(lanes & ~ready);
	return ready;
}

bool warp_aligned_slow(struct warp *w, const struct xop *x, uint32_t lanes, enum step *step)
{
	uint32_t off = w->mask & ~lanes;

	if (off) {
		*step = ex_fault(w, x, lanes, FAULT_ALIGNED, SP_ANY, 0, 0,
			"lanes 0x%08x of the warp do not execute it", off);
		return false;
	}
	*step = warp_wait_lanes(w, ~w->dead & ~lanes);
	return false;
}

/* Waits until the warps of the group have arrived at x. */
static enum step wait_group(struct warp *w, struct warpgroup *g)
{
	return ex_wait(w, WAIT_WARPGROUP, &g->syncs, ~0ull, w->id & ~3u);
}

enum group_sync warpgroup_sync(struct warp *w, const struct xop *x, uint32_t lanes, enum step *step)
{
	struct warpgroup *g = &w->cta->group[w->id / 4];
	unsigned mine = 1u << (w->id & 3);
	struct refusal why;

	if (w->retry && w->wait.kind == WAIT_WARPGROUP)
		return GROUP_DONE;
	if (!warp_aligned(w, x, lanes, step))
		return GROUP_WAIT;
	if (refuse_group(&why, w->id, w->cta->nwarps)) {
		*step = ex_refuse(w, x, lanes, &why);
		return GROUP_WAIT;
	}
	if (g->arrived && g->at != x) {
		*step = ex_fault(w, x, lanes, FAULT_WG_DIVERGED, SP_ANY, 0, 0,
			"other warps of the warpgroup execute another wgmma instruction");
		return GROUP_WAIT;
	}
	g->at = x;
	g->arrived |= (uint8_t)mine;
	if (g->arrived == 15) {
		g->arrived = 0;
		g->at = NULL;
		g->syncs++;
		return GROUP_LAST;
	}
	*step = wait_group(w, g);
	return GROUP_WAIT;
}

void warp_emit_collective(struct warp *w, const struct xop *x, uint32_t lanes,
	const l32 mask[LANES])
{
	for (uint32_t rest = lanes, same; rest; rest &= ~same) {
		uint32_t want = mask[__builtin_ctz(rest)];
		struct event e;

		same = 0;
		for EACH_LANE(l, rest)
			same |= mask[l] == want ? 1u << l : 0;
		e = ex_event(w, x, EV_WARP_COLLECTIVE, same);
		ex_emit(w->cluster, &e);
	}
}

void warp_emit_together(struct warp *w, const struct xop *x)
{
	struct event e;

	if (w->together == w->cluster->events)
		return;
	e = ex_event(w, x, EV_WARP_COLLECTIVE, ~w->dead);
	ex_emit(w->cluster, &e);
	w->together = w->cluster->events;
}

void warp_emit_bad_source(struct warp *w, const struct xop *x, uint32_t lanes,
	const l32 mask[LANES], const l32 from[LANES])
{
	uint32_t bad = 0;
	struct event e;

	for EACH_LANE(l, lanes)
		bad |= (uint32_t)!(mask[l] & lanes & ~w->dead & 1u << from[l]) << l;
	if (!bad)
		return;
	e = ex_event(w, x, EV_WARP_COLLECTIVE, bad);
	e.warp_collective.bad_source = true;
	e.warp_collective.mask = mask[__builtin_ctz(bad)];
	ex_emit(w->cluster, &e);
}
