/* follow: tracks values loaded from shared memory that was never written. Such a load alone is
 * harmless: merge sorts load a key past their tile and mask it out. What is reported is the use of
 * the value: in an address, a store, a branch, and any op that is not tracked through. Tracked
 * through are ops that only change registers of their lanes, a select by its predicate, and a
 * conjunction that the other operand decides. Values are not known, only lanes of slots. */
#include "internal.h"
#include "libconsan/ptx/opcodes.h"

struct sides { uint32_t pass, a, b; }; /* lanes in which the operand's state becomes the result's */

static uint32_t slot_of(const struct kfunc *fn, const struct ptx_operand *o)
{
	return fn->slot[fn->first[o->reg] + (o->elem ? o->elem - 1u : 0)];
}

static bool is_register(const struct ptx_operand *o)
{
	return o->kind == PO_REG || (o->kind == PO_ADDR && o->reg != PTX_NO_REG);
}

/* Lanes of the slot that hold a value of this origin; FOLLOWED: of any origin. */
static uint32_t lanes_from(const struct warp *w, uint32_t slot, uint32_t origin)
{
	uint32_t lanes = 0;

	for (size_t i = 0; i < w->follow.n; i++)
		if (w->follow.at[i].slot == slot
				&& (origin == FOLLOWED || w->follow.at[i].origin == origin))
			lanes |= w->follow.at[i].lanes;
	return lanes;
}

/* The same for all registers of an operand. */
static uint32_t operand_from(const struct warp *w, const struct kfunc *fn,
	const struct ptx_operand *o, uint32_t origin)
{
	uint32_t lanes = 0;

	if (is_register(o))
		return lanes_from(w, slot_of(fn, o), origin);
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned i = 0; i < o->n; i++)
			lanes |= operand_from(w, fn, &o->list[i], origin);
	return lanes;
}

static void add(struct warp *w, uint32_t slot, uint32_t origin, uint32_t lanes)
{
	for (size_t i = 0; i < w->follow.n; i++)
		if (w->follow.at[i].slot == slot && w->follow.at[i].origin == origin) {
			w->follow.at[i].lanes |= lanes;
			return;
		}
	if (lanes)
		vec_push(&w->follow, ((struct followed){ slot, lanes, origin }));
}

static void write_lanes(struct warp *w, const struct kfunc *fn, const struct ptx_operand *o,
	uint32_t lanes, const uint32_t from[FOLLOWED])
{
	if (o->kind == PO_VEC || o->kind == PO_PAIR)
		for (unsigned i = 0; i < o->n; i++)
			write_lanes(w, fn, &o->list[i], lanes, from);
	if (o->kind != PO_REG)
		return;
	for (size_t i = 0; i < w->follow.n; i++)
		if (w->follow.at[i].slot == slot_of(fn, o))
			w->follow.at[i].lanes &= ~lanes;
	for (uint32_t k = 0; from && k < FOLLOWED; k++)
		add(w, slot_of(fn, o), k, from[k] & lanes);
}

static void forget(struct warp *w)
{
	size_t n = 0;

	for (size_t i = 0; i < w->follow.n; i++)
		if (w->follow.at[i].lanes)
			w->follow.at[n++] = w->follow.at[i];
	w->follow.n = n;
}

/* ---- a use ---- */

static void emit_use(struct warp *w, const struct xop *x, uint32_t lanes,
	const struct follow_origin *o)
{
	struct event e = ex_event(w, x, EV_LOAD_USED, lanes);

	e.load_used.owner = o->peer;
	e.load_used.bytes = o->size;
	e.load_used.load_site = o->site;
	ex_lanes(&e.load_used.at, lanes, o->addr);
	ex_emit(w->cluster, &e);
}

/* Reports the use once: values derived from it are not tracked further. */
static void report_use(struct warp *w, const struct xop *x, const struct kfunc *fn,
	const struct ptx_operand *o, uint32_t lanes)
{
	if (!(operand_from(w, fn, o, FOLLOWED) & lanes))
		return;
	for (uint32_t k = 0; k < FOLLOWED; k++) {
		uint32_t from = operand_from(w, fn, o, k) & lanes;

		if (!from)
			continue;
		emit_use(w, x, from, &w->origin[k]);
		for (size_t i = 0; i < w->follow.n; i++)
			if (w->follow.at[i].origin == k)
				w->follow.at[i].lanes &= ~from;
	}
}

/* ---- effect of ops on tracked values ---- */

/* Lanes in which the predicate is known to be `value`. */
static uint32_t known_to_be(const struct warp *w, const struct kfunc *fn,
	const struct ptx_operand *o, bool value)
{
	uint32_t is;

	if (o->kind != PO_REG)
		return 0;
	is = *rp(w, slot_of(fn, o)) ^ (o->negated == value ? FULL : 0);
	return is & ~operand_from(w, fn, o, FOLLOWED);
}

/* The lanes in which the result does not depend on the operands before the last, or on the last. */
static struct sides sides_of(const struct warp *w, const struct kfunc *fn, const struct ptx_insn *i)
{
	const struct ptx_operand *last = &i->operand[i->noperands - 1];
	const enum ptx_mod how = i->op == OP_setp ? ptx_pick(i, MG_redop) : MOD_NONE;
	struct sides s = { FULL, FULL, FULL };
	uint32_t p;

	if (i->op == OP_selp && last->kind == PO_REG) {
		p = *rp(w, slot_of(fn, last)) ^ (last->negated ? FULL : 0);
		s.a = p;
		s.b = ~p;
	} else if ((i->op == OP_and || i->op == OP_or) && ptx_type_of(i, 0) == TY_pred) {
		s.pass = ~known_to_be(w, fn, &i->operand[1], i->op == OP_or)
			& ~known_to_be(w, fn, &i->operand[2], i->op == OP_or);
	} else if (how == MOD_and || how == MOD_or) {
		s.pass = ~known_to_be(w, fn, last, how == MOD_or);
	}
	return s;
}

static void pass_on(struct warp *w, const struct kfunc *fn, const struct ptx_insn *i, unsigned ndst,
	uint32_t lanes)
{
	const struct sides s = sides_of(w, fn, i);
	uint32_t from[FOLLOWED];

	for (uint32_t k = 0; k < FOLLOWED; k++) {
		from[k] = 0;
		for (unsigned o = ndst; o < i->noperands; o++)
			from[k] |= operand_from(w, fn, &i->operand[o], k) & s.pass
				& (o == ndst ? s.a : o == ndst + 1 ? s.b : FULL);
	}
	for (unsigned o = 0; o < ndst; o++)
		write_lanes(w, fn, &i->operand[o], lanes, from);
}

static const struct kfunc *function_at(const struct exec_kernel *k, uint32_t pc)
{
	return &k->fn[k->fn_of[k->func_of[pc] - k->module->ptx->func]];
}

void follow_step(struct warp *w, const struct xop *x)
{
	const struct exec_kernel *k = w->worker->grid->k;
	const uint32_t pc = (uint32_t)(x - w->code);
	const struct ptx_insn *i = k->insn_of[pc];
	const struct kfunc *fn;
	uint32_t lanes = ex_guarded(w, x);
	unsigned ndst;

	if (!i)
		return;
	fn = function_at(k, pc);
	ndst = ptx_written(i);
	if (i->guard != PTX_NO_REG) {
		const struct ptx_operand guard = { .kind = PO_REG, .reg = i->guard };

		report_use(w, x, fn, &guard, w->mask);
	}
	if (x->pure && lanes) {
		pass_on(w, fn, i, ndst, lanes);
	} else if (lanes) {
		for (unsigned o = ndst; o < i->noperands; o++)
			report_use(w, x, fn, &i->operand[o], lanes);
		for (unsigned o = 0; o < ndst; o++)
			write_lanes(w, fn, &i->operand[o], lanes, NULL);
	}
	forget(w);
}

/* ---- start of tracking ---- */

/* An index that no slot refers to; FOLLOWED: there is none. */
static uint32_t free_origin(const struct warp *w)
{
	uint64_t taken = 0;

	for (size_t i = 0; i < w->follow.n; i++)
		taken |= UINT64_C(1) << w->follow.at[i].origin;
	for (uint32_t k = 0; k < FOLLOWED; k++)
		if (!(taken >> k & 1))
			return k;
	return FOLLOWED;
}

void follow_begin(struct warp *w, const struct xop *x, const struct event_access *load)
{
	const struct exec_kernel *k = w->worker->grid->k;
	const uint32_t pc = (uint32_t)(x - w->code), lanes = w->unwritten, at = free_origin(w);
	struct follow_origin o = { .site = x->site, .size = load->bytes, .peer = load->owner };
	uint32_t from[FOLLOWED] = { 0 };

	w->unwritten = 0;
	for EACH_LANE(l, lanes)
		o.addr[l] = lane_addr(&load->at, l);
	if (at == FOLLOWED) {
		emit_use(w, x, lanes, &o);
		return;
	}
	if (!w->origin)
		w->origin = base_alloc(FOLLOWED * sizeof *w->origin);
	w->origin[at] = o;
	from[at] = lanes;
	write_lanes(w, function_at(k, pc), &k->insn_of[pc]->operand[0], lanes, from);
	w->stop = x + 1;
}
