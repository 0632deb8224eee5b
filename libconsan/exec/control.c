/* control: jumps, exits, traps, scheduling hints, lane masks, setmaxnreg. */
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- jumps ---- */

/* All lanes given continue at `to`, the rest of the fragment at the next op. */
static enum step continue_at(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct xop *to)
{
	if (lanes == w->mask) {
		w->next = to;
		return STEP_JUMP;
	}
	warp_fork(w, (uint32_t)(to - w->code), lanes);
	warp_fork(w, (uint32_t)(x - w->code) + 1, w->mask & ~lanes);
	w->next = NULL;
	return STEP_JUMP;
}

enum step op_jump(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return continue_at(w, x, lanes, w->code + x->i.u);
}

/* A jump of all lanes that does not end the warp's turn needs no step loop. */
enum step run_jump(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct xop *to = w->code + x->i.u;

	lanes = ex_guarded(w, x);
	if (!lanes)
		return x[1].run(w, x + 1, 0);
	if (lanes != w->mask || (to <= x && (w->polls >= POLLS || w->budget <= x - w->from)))
		return run_step(w, x, 0);
	warp_retire(w, w->from, x + 1);
	w->from = to;
	return to->run(w, to, 0);
}

DECODER(bra)
{
	const struct ptx_operand *t = &i->operand[0];

	if (i->noperands != 1 || t->kind != PO_LABEL)
		return dec_unsupported(d, "branch without a label");
	x->fn = op_jump;
	x->run = run_jump;
	dec_branch(d, x, (uint32_t)t->imm);
	return true;
}

struct brx { uint32_t index, n; uint32_t to[]; };

enum step op_brx(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const struct brx *b = x->i.p;
	const l32 *index = r32(w, b->index);
	uint32_t rest = lanes;

	if (w->mask & ~lanes)
		warp_fork(w, (uint32_t)(x - w->code) + 1, w->mask & ~lanes);
	while (rest) {
		uint32_t at = index[__builtin_ctz(rest)], same = 0;

		for EACH_LANE(l, rest)
			if (index[l] == at)
				same |= 1u << l;
		if (at >= b->n)
			return ex_fault(w, x, same, FAULT_TARGET, SP_ANY, at, 0,
				"brx.idx: index %u, the table has %u targets", at, b->n);
		warp_fork(w, b->to[at], same);
		rest &= ~same;
	}
	w->next = NULL;
	return STEP_JUMP;
}

DECODER(brx_idx)
{
	struct brx *b = dec_alloc(d, sizeof *b + i->ntarget * sizeof b->to[0]);

	b->index = dec_src(d, &i->operand[0], TY_u32);
	b->n = i->ntarget;
	memcpy(b->to, i->target, i->ntarget * sizeof b->to[0]);
	x->fn = op_brx;
	dec_branch(d, x, 0);
	x->i.p = b;
	return true;
}

void dec_brx_targets(struct decoder *d, struct xop *x)
{
	struct brx *b = (struct brx *)(uintptr_t)x->i.p;

	for (uint32_t i = 0; i < b->n; i++)
		b->to[i] = d->pc_of[b->to[i]];
}

bool dec_falls_through(const struct ptx_insn *i)
{
	if (i->guard != PTX_NO_REG)
		return true;
	return i->op != OP_bra && i->op != OP_brx_idx && i->op != OP_ret && i->op != OP_exit;
}

/* ---- exits ---- */

enum step op_exit(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return warp_exit(w, x, lanes);
}

DECODER(exit)
{
	(void)d;
	(void)i;
	x->fn = op_exit;
	return true;
}

static enum step op_trap(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return ex_fault(w, x, lanes, FAULT_TRAP, SP_ANY, 0, 0, "the kernel executed trap");
}

DECODER(trap)
{
	(void)d;
	(void)i;
	x->fn = op_trap;
	return true;
}

static enum step op_brkpt(struct warp *w, const struct xop *x, uint32_t lanes)
{
	return ex_fault(w, x, lanes, FAULT_TRAP, SP_ANY, 0, 0,
		"the kernel executed brkpt, and no debugger is attached");
}

DECODER(brkpt)
{
	(void)d;
	(void)i;
	x->fn = op_brkpt;
	return true;
}

/* ---- scheduling hints ---- */

static enum step op_nanosleep(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t most = 0;

	for EACH_LANE(l, lanes)
		if (r32(w, x->o[0])[l] > most)
			most = r32(w, x->o[0])[l];
	/* time is ops retired: the sleeping thread must see it advance */
	w->cluster->slept += most > 1000000 ? 1000000 : most;
	ex_poll(w);
	return STEP_YIELD;
}

DECODER(nanosleep)
{
	x->fn = op_nanosleep;
	x->o[0] = dec_src(d, &i->operand[0], TY_u32);
	return true;
}

static enum step op_nothing(struct warp *w, const struct xop *x, uint32_t lanes)
{
	(void)w;
	(void)x;
	(void)lanes;
	return STEP_NEXT;
}

#define NOTHING(id) \
DECODER(id) \
{ \
	(void)d; \
	(void)i; \
	x->fn = op_nothing; \
	x->pure = true; \
	return true; \
}
NOTHING(pmevent)
NOTHING(prefetch)
NOTHING(prefetchu)
NOTHING(applypriority)

/* cache policies do not change values */
NOTHING(createpolicy_fractional)
NOTHING(createpolicy_range)
NOTHING(createpolicy_cvt)

/* ---- griddepcontrol: grids run one after the other, so the wait is over ---- */

static enum step op_griddep(struct warp *w, const struct xop *x, uint32_t lanes)
{
	if (w->sink) {
		struct event e = ex_event(w, x, EV_GRIDDEPCONTROL, lanes);

		e.griddepcontrol.launch_dependents = x->i.u;
		ex_emit(w->cluster, &e);
	}
	return STEP_NEXT;
}

DECODER(griddepcontrol_wait)
{
	(void)d;
	(void)i;
	x->fn = op_griddep;
	return true;
}

DECODER(griddepcontrol_launch_dependents)
{
	(void)d;
	(void)i;
	x->fn = op_griddep;
	x->i.u = 1;
	return true;
}

/* ---- lanes of a warp ---- */

static enum step op_activemask(struct warp *w, const struct xop *x, uint32_t lanes)
{
	for EACH_LANE(l, lanes)
		r32(w, x->o[0])[l] = lanes;
	return STEP_NEXT;
}

DECODER(activemask)
{
	x->fn = op_activemask;
	x->o[0] = dec_dst(d, &i->operand[0], TY_b32);
	return true;
}

static enum step op_elect(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l32 *mask = r32(w, x->o[2]);
	uint32_t rest;
	bool fault;

	lanes = warp_sync_mask(w, x, lanes, x->o[2], &fault);
	if (!lanes)
		return fault ? STEP_FAULT : STEP_BLOCK;
	rest = lanes;
	while (rest) {
		uint32_t of = mask[__builtin_ctz(rest)], same = 0;
		unsigned leader;

		for EACH_LANE(l, rest)
			if (mask[l] == of)
				same |= 1u << l;
		leader = (unsigned)__builtin_ctz(same);
		for EACH_LANE(k, same)
			r32(w, x->o[0])[k] = leader;
		ex_set_pred(w, x->o[1], same, 1u << leader);
		rest &= ~same;
	}
	return STEP_NEXT;
}

DECODER(elect_sync)
{
	const struct ptx_operand *o = &i->operand[0];

	if (o->kind != PO_PAIR)
		return dec_unsupported(d, "elect.sync without a predicate");
	x->fn = op_elect;
	x->o[0] = dec_dst(d, &o->list[0], TY_b32);
	x->o[1] = dec_dst(d, &o->list[1], TY_pred);
	x->o[2] = dec_src(d, &i->operand[1], TY_b32);
	return true;
}

static enum step op_warp_sync(struct warp *w, const struct xop *x, uint32_t lanes);

/* Does this fragment wait at a bar.warp.sync with this mask? */
static bool waits_with_mask(const struct warp *w, const struct frag *f, uint32_t mask)
{
	const struct xop *x = &w->code[f->pc];

	if (!f->blocked || f->wait.kind != WAIT_WARP || x->fn != op_warp_sync)
		return false;
	for EACH_LANE(l, f->mask)
		if (r32(w, x->o[0])[l] != mask)
			return false;
	return true;
}

/* The masks must agree, the ops may differ: lanes that wait in another branch continue as well, if
 * the mask is complete with them. */
static bool sync_across(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t mask = r32(w, x->o[0])[__builtin_ctz(lanes)], here = lanes;

	for EACH_LANE(l, lanes)
		if (r32(w, x->o[0])[l] != mask)
			return false;
	for (unsigned i = 0; i < w->nfrag; i++)
		if (waits_with_mask(w, &w->frag[i], mask))
			here |= w->frag[i].mask;
	if (here == lanes || here != (mask & ~w->dead))
		return false;
	if (w->sink) {
		struct event e = ex_event(w, x, EV_WARP_SYNC, here);

		e.warp_sync.mask = here;
		ex_emit(w->cluster, &e);
	}
	for (unsigned i = 0; i < w->nfrag; i++)
		if (waits_with_mask(w, &w->frag[i], mask)) {
			w->frag[i].blocked = false;
			w->frag[i].pc++;
		}
	return true;
}

static enum step op_warp_sync(struct warp *w, const struct xop *x, uint32_t lanes)
{
	const l32 *mask = r32(w, x->o[0]);
	bool fault;

	if (w->nfrag && sync_across(w, x, lanes))
		return STEP_YIELD;
	lanes = warp_sync_mask(w, x, lanes, x->o[0], &fault);
	if (!lanes)
		return fault ? STEP_FAULT : STEP_BLOCK;
	for (uint32_t rest = lanes; w->sink && rest;) {
		uint32_t of = mask[__builtin_ctz(rest)], same = 0;
		struct event e;

		for EACH_LANE(l, rest)
			if (mask[l] == of)
				same |= 1u << l;
		e = ex_event(w, x, EV_WARP_SYNC, same);
		e.warp_sync.mask = of & ~w->dead;
		ex_emit(w->cluster, &e);
		rest &= ~same;
	}
	return STEP_NEXT;
}

DECODER(bar_warp_sync)
{
	x->fn = op_warp_sync;
	x->o[0] = dec_src(d, &i->operand[0], TY_b32);
	return true;
}

/* ---- setmaxnreg ---- */

static void explain_regs(const struct warp *w, const struct xwait *wait,
	struct event_blocked *e, char *buf, size_t n)
{
	const struct cta *cta = w->cta;
	uint64_t held = 0;

	for (uint32_t i = 0; i < cta->nwarps; i++)
		held += cta->warp[i]->done ? 0 : (uint64_t)cta->warp[i]->maxnreg * LANES;
	e->missing = (uint32_t)wait->arg;
	e->tx_count = (int64_t)cta->regs_free;
	e->text = buf;
	snprintf(buf, n, "setmaxnreg.inc %llu needs %llu more registers for its warp; "
		"the CTA's pool has %llu free, and its warps hold %llu",
		(unsigned long long)wait->addr,
		(unsigned long long)wait->arg, (unsigned long long)cta->regs_free,
		(unsigned long long)held);
}

enum { REGS_INC = 1, REGS_COUNT = 2 }; /* w[1] */

static void emit_setmaxnreg(struct warp *w, const struct xop *x, uint32_t lanes)
{
	struct event e;

	if (!w->sink)
		return;
	e = ex_event(w, x, EV_SETMAXNREG, lanes);
	e.setmaxnreg.registers = x->i.w[0];
	e.setmaxnreg.increase = x->i.w[1] & REGS_INC;
	e.setmaxnreg.ignored = !(x->i.w[1] & REGS_COUNT);
	ex_emit(w->cluster, &e);
}

static enum step op_setmaxnreg(struct warp *w, const struct xop *x, uint32_t lanes)
{
	uint32_t want = x->i.w[0];
	bool inc = x->i.w[1] & REGS_INC, counts = x->i.w[1] & REGS_COUNT;
	struct refusal why;
	uint64_t more;
	enum step s;

	if (!warp_aligned(w, x, lanes, &s))
		return s;
	if (refuse_setmaxnreg(&why, want, inc, counts ? w->maxnreg : 0))
		return ex_refuse(w, x, lanes, &why);
	if (!counts) {
		emit_setmaxnreg(w, x, lanes);
		return STEP_NEXT;
	}
	more = inc ? (uint64_t)(want - w->maxnreg) * LANES : 0;
	if (more > w->cta->regs_free) {
		s = ex_wait(w, WAIT_SETMAXNREG, &w->cta->regs_free, ~0ull, want);
		w->wait.arg = more;
		w->wait.explain = explain_regs;
		return s;
	}
	w->cta->regs_free -= more;
	if (!inc)
		w->cta->regs_free += (uint64_t)(w->maxnreg - want) * LANES;
	w->maxnreg = want;
	ex_work(w);
	emit_setmaxnreg(w, x, lanes);
	return STEP_NEXT;
}

DECODER(setmaxnreg)
{
	if (i->operand[0].kind != PO_IMM)
		return dec_unsupported(d, "setmaxnreg count that is not an immediate");
	x->fn = op_setmaxnreg;
	x->i.w[0] = (uint32_t)i->operand[0].imm;
	x->i.w[1] = (ptx_pick(i, MG_redop) == MOD_inc ? REGS_INC : 0)
		| (setmaxnreg_counts(d->k->func) ? REGS_COUNT : 0);
	if (x->i.w[1] & REGS_INC && x->i.w[0] < d->k->least_inc)
		d->k->least_inc = x->i.w[0];
	return true;
}
