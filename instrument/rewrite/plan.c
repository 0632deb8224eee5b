/* plan: chooses by an instruction's effect (the effect column of ptx.def) what is recorded of
 * it. Within an effect the operands decide. Nothing is printed here. */
#include "plan.h"

#include <string.h>

#include "libconsan/ptx/opcodes.h"
#include "libconsan/ptx/ptx.h"
#include "conflict.h"
#include "plan_bulk.h"
#include "plan_tensor.h"

unsigned plan_address(const struct ptx_insn *i)
{
	for (unsigned k = 0; k < i->noperands; k++)
		if (i->operand[k].kind == PO_ADDR || i->operand[k].kind == PO_TADDR)
			return k;
	return 0;
}

void plan_add(struct plan *p, const struct ptx_operand *o, enum plan_kind kind)
{
	if (o->kind == PO_IMM && kind != VAL_SHARED)
		return; /* the decoder takes it from the instruction */
	p->value[p->nvalues].o = o;
	p->value[p->nvalues++].kind = (uint8_t)kind;
}

static bool strong(const struct ptx_insn *i)
{
	return ptx_has(i, MOD_mmio) || (ptx_pick(i, MG_sem) != MOD_NONE && !ptx_has(i, MOD_weak));
}

static bool is_number(const struct ptx_operand *o, uint64_t value, unsigned bits)
{
	return o->kind == PO_IMM && !(((uint64_t)o->imm ^ value) & (UINT64_MAX >> (64 - bits)));
}

/* An atomic that writes the value which it reads, whatever that is: a loop that waits for a flag may
 * read it by such a one, as atomicAdd(flag, 0). */
static bool keeps_value(const struct ptx_insn *i)
{
	const enum ptx_type type = ptx_type_of(i, 0);
	const unsigned bits = ptx_type_bits(type);
	const struct ptx_operand *b = &i->operand[2];

	if (i->op != OP_atom || i->operand[0].kind != PO_REG || bits > 64 || ptx_type_atomic_bits(type) != bits ||
			ptx_pick(i, MG_vec) != MOD_NONE)
		return false;
	switch (ptx_pick(i, MG_redop)) {
	case MOD_add: case MOD_or: case MOD_xor:
		return is_number(b, 0, bits);
	case MOD_and:
		return is_number(b, UINT64_MAX, bits);
	case MOD_cas:
		return b->kind == PO_IMM && is_number(&i->operand[3], (uint64_t)b->imm, bits);
	default:
		return false;
	}
}

/* A strong read is recorded after it is executed. An atomic is recorded before it and after
 * it: other threads may see its write before it returns, and its read may observe a write that
 * was made after it began. One that keeps the value shows nothing to other threads. */
static void set_before_after(const struct ptx_insn *i, struct plan *p)
{
	enum ptx_effect effect = ptx_effect_of(i->op);
	const bool keeps = keeps_value(i);

	p->sync = strong(i) || effect == EF_RMW;
	p->before = !p->sync || (effect != EF_READ && !keeps);
	p->after = p->sync && (effect == EF_READ || i->op == OP_atom);
	p->poll = p->sync && (keeps || (effect == EF_READ && i->operand[0].kind == PO_REG));
}

/* Loads, stores, atomics, ldmatrix and stmatrix. */
static bool access(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	enum ptx_space space = ptx_space_of(i, 0);
	const struct ptx_operand *a = &i->operand[plan_address(i)];

	if (a->kind != PO_ADDR ||
			(space != PS_shared && space != PS_shared_cluster && space != PS_none))
		return false;
	if (space == PS_none && a->var && a->reg == PTX_NO_REG && a->var->space != PS_shared)
		return false;
	p->generic = space == PS_none;
	set_before_after(i, p);
	p->class = p->sync ? PLAN_LANES : PLAN_ADDRESS;
	plan_add(p, a, VAL_SHARED);
	p->conflicts = p->class == PLAN_ADDRESS ? (uint8_t)conflict_words(f, i) : 0;
	if (i->op == OP_st_bulk) {
		p->class = PLAN_LANES;
		plan_add(p, &i->operand[1], VAL_U64);
	}
	if (i->op == OP_st_async || i->op == OP_red_async) {
		p->class = PLAN_LANES;
		p->sync = true;
		p->generic = false;
		if (i->noperands < 3)
			return false;
		plan_add(p, &i->operand[2], VAL_SHARED);
	}
	return true;
}

static bool async_copy(const struct ptx_insn *i, struct plan *p)
{
	unsigned hint = ptx_has(i, MOD_L2_cache_hint);

	p->before = true;
	switch ((enum ptx_op)i->op) {
	case OP_cp_async:
		p->class = PLAN_ADDRESS;
		plan_add(p, &i->operand[0], VAL_SHARED);
		if (i->noperands > 3u + hint && i->operand[3].kind != PO_IMM) {
			p->class = PLAN_LANES;
			plan_add(p, &i->operand[3], i->operand[3].kind == PO_REG &&
				i->operand[3].negated ? VAL_PRED : VAL_U32);
		}
		return true;
	case OP_cp_async_wait_group:
	case OP_cp_async_wait_all:
		p->after = true;
		p->before = false;
		return true;
	case OP_cp_async_mbarrier_arrive:
		p->class = PLAN_LANES;
		p->sync = true;
		p->window = ptx_space_of(i, 0) == PS_none;
		plan_add(p, &i->operand[0], VAL_SHARED);
		return true;
	default:
		return true;
	}
}

static bool mbarrier(const struct ptx_insn *i, struct plan *p)
{
	unsigned a = plan_address(i);

	p->class = PLAN_LANES;
	p->sync = true;
	p->window = ptx_space_of(i, 0) == PS_none;
	plan_add(p, &i->operand[a], VAL_SHARED);
	switch ((enum ptx_op)i->op) {
	case OP_mbarrier_test_wait:
	case OP_mbarrier_try_wait:
		p->after = p->test = true;
		p->remote = p->window;
		if (ptx_has(i, MOD_parity))
			plan_add(p, &i->operand[a + 1], VAL_U32);
		return i->operand[0].kind == PO_REG;
	default:
		p->before = true;
		if (i->noperands > a + 1u)
			plan_add(p, &i->operand[a + 1], VAL_U32);
		return true;
	}
}

/* A sparse one has metadata and a selector before it. */
unsigned plan_scale_d(const struct ptx_insn *i)
{
	return i->op == OP_wgmma_mma_async_sp ? 5 : 3;
}

static bool wgmma(const struct ptx_insn *i, struct plan *p)
{
	p->class = PLAN_UNIFORM;
	switch ((enum ptx_op)i->op) {
	case OP_wgmma_wait_group:
		return p->after = true;
	case OP_wgmma_mma_async:
	case OP_wgmma_mma_async_sp:
		if (i->operand[1].kind != PO_VEC)
			plan_add(p, &i->operand[1], VAL_U64);
		plan_add(p, &i->operand[2], VAL_U64);
		plan_add(p, &i->operand[plan_scale_d(i)], VAL_PRED);
		return p->wgmma = true;
	default:
		return p->wgmma = true;
	}
}

static bool barrier_red(const struct ptx_insn *i)
{
	return i->op == OP_bar_red || i->op == OP_bar_cta_red || i->op == OP_barrier_red ||
		i->op == OP_barrier_cta_red;
}

const struct ptx_operand *plan_barrier(const struct ptx_insn *i)
{
	return &i->operand[barrier_red(i)];
}

static bool barrier(const struct ptx_insn *i, struct plan *p)
{
	bool red = barrier_red(i);
	bool arrive = i->op == OP_bar_arrive || i->op == OP_bar_cta_arrive ||
		i->op == OP_barrier_arrive || i->op == OP_barrier_cta_arrive;

	p->class = PLAN_UNIFORM;
	p->before = p->sync = true;
	p->after = !arrive;
	plan_add(p, &i->operand[red], VAL_U32);
	if (red ? i->noperands == 4 : i->noperands == 2)
		plan_add(p, &i->operand[red + 1], VAL_U32);
	return true;
}

const struct ptx_operand *plan_mask(const struct ptx_insn *i)
{
	switch ((enum ptx_op)i->op) {
	case OP_shfl_sync:
		return &i->operand[4];
	case OP_vote_sync: case OP_vote: case OP_match_any_sync: case OP_match_all_sync:
	case OP_redux_sync:
		return i->noperands > 2 ? &i->operand[2] : NULL;
	default:
		return NULL;
	}
}

bool plan_whole_warp(const struct ptx_insn *i)
{
	switch ((enum ptx_op)i->op) {
	case OP_mma: case OP_mma_sp: case OP_mma_sp_ordered_metadata: case OP_wmma_mma:
	case OP_movmatrix:
		return true;
	default:
		return false;
	}
}

/* One of the whole warp is found on the paths between other records (together.c), unless a guard
 * decides whether it is executed. */
static bool collective(const struct ptx_insn *i, struct plan *p)
{
	const struct ptx_operand *mask = plan_mask(i);

	if (plan_whole_warp(i))
		return p->before = i->guard != PTX_NO_REG;
	if (!mask)
		return false;
	p->before = p->collective = true;
	p->class = PLAN_LANES;
	plan_add(p, mask, VAL_U32);
	if (i->op == OP_shfl_sync) {
		plan_add(p, &i->operand[2], VAL_U32);
		plan_add(p, &i->operand[3], VAL_U32);
	}
	return true;
}

static bool tensormap(const struct ptx_insn *i, struct plan *p)
{
	enum ptx_space space = ptx_space_of(i, 0);

	if (i->operand[0].kind != PO_ADDR)
		return false;
	p->before = true;
	p->class = PLAN_LANES;
	if (i->op == OP_tensormap_replace) {
		plan_add(p, &i->operand[0], space == PS_shared ? VAL_SHARED : VAL_GLOBAL);
		return space != PS_none;
	}
	plan_add(p, &i->operand[0], VAL_GLOBAL);
	plan_add(p, &i->operand[1], VAL_SHARED);
	return true;
}

static bool is_predicate(const struct ptx_func *f, const struct ptx_operand *o)
{
	return o->kind == PO_REG && f->reg[o->reg].type == TY_pred;
}

bool plan_asserts(const struct ptx_insn *i)
{
	return i->op == OP_call && i->operand[0].kind == PO_FUNC &&
		!strcmp(i->operand[0].func->name, "__assertfail");
}

bool plan_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	bool yes = false;

	memset(p, 0, sizeof *p);
	switch (ptx_effect_of(i->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW:
		yes = access(f, i, p);
		break;
	case EF_CP_ASYNC: yes = async_copy(i, p); break;
	case EF_BULK: yes = plan_bulk(f, i, p); break;
	case EF_MBARRIER: yes = mbarrier(i, p); break;
	case EF_WGMMA: yes = wgmma(i, p); break;
	case EF_TCGEN05: yes = plan_tcgen05(i, p); break;
	case EF_BARRIER: yes = barrier(i, p); break;
	case EF_WARP_SYNC:
		yes = p->before = true;
		p->class = PLAN_LANES;
		plan_add(p, &i->operand[0], VAL_U32);
		break;
	case EF_WARP: yes = collective(i, p); break;
	case EF_CLUSTER:
		p->before = i->op == OP_barrier_cluster_arrive;
		p->after = p->waits = !p->before;
		yes = p->sync = true;
		break;
	case EF_TENSORMAP: yes = tensormap(i, p); break;
	case EF_FENCE: case EF_SETMAXNREG: case EF_STOP: case EF_EXIT:
		yes = p->before = true;
		p->sync = ptx_effect_of(i->op) == EF_EXIT;
		if (i->op == OP_fence_proxy_tensormap && i->noperands) {
			p->class = PLAN_LANES;
			plan_add(p, &i->operand[0], VAL_GLOBAL);
		}
		break;
	case EF_CONTROL:
		p->sync = i->op == OP_ret && f->entry;
		yes = p->before = p->sync || plan_asserts(i);
		break;
	case EF_NONE: /* the decoder follows the token that it counts */
		yes = i->op == OP_mbarrier_pending_count ? (p->before = true) : plan_cancel(i, p);
		break;
	case EF_GRID: yes = plan_cancel(i, p); break;
	case EF_RANK: case EF_HINT:
	case EF_UNKNOWN: case EF_COUNT:
		break;
	}
	for (unsigned k = 0; k < p->nvalues; k++)
		if (p->value[k].kind == VAL_U32 && is_predicate(f, p->value[k].o))
			p->value[k].kind = VAL_PRED;
	if (!p->nvalues && p->class != PLAN_ADDRESS)
		p->class = PLAN_NOTHING;
	p->elected = p->sync && p->class == PLAN_LANES;
	return yes;
}

static bool wide(const struct plan *p, unsigned k)
{
	return p->value[k].kind == VAL_U64 || p->value[k].kind == VAL_MAP ||
		p->value[k].kind == VAL_GLOBAL;
}

unsigned plan_words(const struct plan *p)
{
	unsigned n = 0;

	for (unsigned k = 0; k < p->nvalues; k++)
		n += wide(p, k) ? 2 : 1;
	return n;
}

bool plan_adds_constant(const struct ptx_func *f, const struct ptx_insn *i)
{
	const enum ptx_type type = ptx_type_of(i, 0);
	const char class = ptx_type_class(type);

	return i->op == OP_add && i->guard == PTX_NO_REG && i->noperands == 3 && i->nmods == 1 &&
		(class == 's' || class == 'u') && i->operand[0].kind == PO_REG && i->operand[1].kind == PO_REG &&
		i->operand[2].kind == PO_IMM && !i->operand[1].elem && !i->operand[0].elem &&
		ptx_type_bits((enum ptx_type)f->reg[i->operand[1].reg].type) == ptx_type_bits(type) &&
		ptx_type_bits((enum ptx_type)f->reg[i->operand[0].reg].type) == ptx_type_bits(type) &&
		ptx_type_bits(type) >= 32;
}

/* ---- global memory ---- */

static bool global_access(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	enum ptx_space space = ptx_space_of(i, 0);
	const struct ptx_operand *a = &i->operand[plan_address(i)];

	if (a->kind != PO_ADDR || (space != PS_global && space != PS_none) ||
			i->op == OP_ldmatrix ||
			i->op == OP_stmatrix || i->op == OP_st_async || i->op == OP_red_async ||
			i->op == OP_st_bulk)
		return false;
	if (space == PS_none && a->var && a->reg == PTX_NO_REG && a->var->space != PS_global)
		return false;
	p->generic = space == PS_none;
	set_before_after(i, p);
	p->class = p->sync ? PLAN_LANES : PLAN_GLOBAL;
	plan_add(p, a, VAL_GLOBAL);
	p->elected = p->sync;
	p->conflicts = p->class == PLAN_GLOBAL ? (uint8_t)conflict_words(f, i) : 0;
	return true;
}

static bool async_copy_global(const struct ptx_insn *i, struct plan *p)
{
	if (i->op != OP_cp_async)
		return false;
	p->before = true;
	p->class = PLAN_GLOBAL;
	plan_add(p, &i->operand[1], VAL_GLOBAL);
	return true;
}

/* griddepcontrol, which orders overlapping grids. */
static bool grid(const struct ptx_insn *i, struct plan *p)
{
	p->after = i->op == OP_griddepcontrol_wait;
	p->before = i->op == OP_griddepcontrol_launch_dependents;
	return p->before || p->after;
}

bool plan_global_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	memset(p, 0, sizeof *p);
	switch (ptx_effect_of(i->op)) {
	case EF_READ: case EF_WRITE: case EF_RMW:
		return global_access(f, i, p);
	case EF_CP_ASYNC:
		return async_copy_global(i, p);
	case EF_BULK:
		return plan_bulk_global(f, i, p);
	case EF_GRID:
		return grid(i, p);
	case EF_CONTROL:
		return plan_heap(f, i, p);
	default:
		return false;
	}
}

bool plan_rank_of(const struct ptx_insn *i, struct plan *p)
{
	memset(p, 0, sizeof *p);
	if (ptx_effect_of(i->op) != EF_RANK)
		return false;
	p->before = true;
	p->window = ptx_space_of(i, 0) == PS_none;
	p->class = PLAN_LANES;
	plan_add(p, &i->operand[1], VAL_SHARED);
	plan_add(p, &i->operand[2], VAL_U32);
	return true;
}

/* ---- mbarrier tokens ---- */

/* The token that an arrival returns; NULL: none. */
static const struct ptx_operand *returned(const struct ptx_insn *i)
{
	switch ((enum ptx_op)i->op) {
	case OP_mbarrier_arrive: case OP_mbarrier_arrive_expect_tx:
	case OP_mbarrier_arrive_drop: case OP_mbarrier_arrive_drop_expect_tx:
		return plan_address(i) == 1 && i->operand[0].kind == PO_REG ? &i->operand[0] : NULL;
	default:
		return NULL;
	}
}

/* The token that a wait takes; NULL: none. */
static const struct ptx_operand *waited(const struct ptx_insn *i)
{
	const struct ptx_operand *state;

	if ((i->op != OP_mbarrier_test_wait && i->op != OP_mbarrier_try_wait) || ptx_has(i, MOD_parity))
		return NULL;
	state = &i->operand[plan_address(i) + 1];
	return state->kind == PO_REG ? state : NULL;
}

/* Depth of moves that is followed; real code has less. */
#define MOVE_DEPTH 4

static bool moves(const struct ptx_insn *i)
{
	return i->op == OP_mov && i->operand[0].kind == PO_REG && i->operand[1].kind == PO_REG;
}

static bool moved_to(const struct ptx_func *f, uint32_t from, uint32_t to, unsigned depth)
{
	if (from == to)
		return true;
	for (size_t k = 0; depth && k < f->ninsn; k++)
		if (moves(&f->insn[k]) && f->insn[k].operand[1].reg == from
				&& moved_to(f, f->insn[k].operand[0].reg, to, depth - 1))
			return true;
	return false;
}

static bool writes(const struct ptx_insn *i, uint32_t reg)
{
	for (unsigned o = 0; o < ptx_written(i); o++) {
		if (i->operand[o].kind == PO_REG && i->operand[o].reg == reg)
			return true;
		for (unsigned k = 0; i->operand[o].kind == PO_VEC && k < i->operand[o].n; k++)
			if (i->operand[o].list[k].kind == PO_REG &&
					i->operand[o].list[k].reg == reg)
				return true;
	}
	return false;
}

static bool holds_states(const struct ptx_func *f, uint32_t reg, bool completing, unsigned depth)
{
	bool any = false;

	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (!writes(i, reg))
			continue;
		any = true;
		if (returned(i) && !(completing && ptx_has(i, MOD_noComplete)))
			continue;
		if (!depth || !moves(i) ||
				!holds_states(f, i->operand[1].reg, completing, depth - 1))
			return false;
	}
	return any;
}

bool plan_holds_states(const struct ptx_func *f, uint32_t reg, bool completing)
{
	return holds_states(f, reg, completing, MOVE_DEPTH);
}

/* Does a wait take the token in this register, and only tokens of this function? */
static bool is_awaited(const struct ptx_func *f, uint32_t reg)
{
	for (size_t k = 0; k < f->ninsn; k++) {
		const struct ptx_operand *state = waited(&f->insn[k]);

		if (state && moved_to(f, reg, state->reg, MOVE_DEPTH) &&
				holds_states(f, state->reg, false, MOVE_DEPTH))
			return true;
	}
	return false;
}

bool plan_token_of(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	const struct ptx_operand *out = returned(i), *in = out ? NULL : waited(i);

	memset(p, 0, sizeof *p);
	if (!(out && is_awaited(f, out->reg)) &&
			!(in && holds_states(f, in->reg, false, MOVE_DEPTH)))
		return false;
	p->before = in;
	p->after = out;
	p->class = PLAN_LANES;
	plan_add(p, out ? out : in, VAL_U64);
	return true;
}

bool plan_orders_grid(const struct ptx_func *f)
{
	struct plan p;

	for (size_t k = 0; k < f->ninsn; k++)
		if (plan_global_of(f, &f->insn[k], &p) && p.sync)
			return true;
	return false;
}

const char *plan_refuses(const struct ptx_insn *i)
{
	struct wmma_part part;

	switch (ptx_effect_of(i->op)) {
	case EF_TCGEN05: return plan_tcgen05_refuses(i);
	case EF_GRID:
		return i->op == OP_clusterlaunchcontrol_try_cancel && ptx_space_of(i, 0) == PS_none
			? "cluster launch control with generic addresses is not recorded" : NULL;
	case EF_UNKNOWN: return "an unknown instruction is not recorded";
	case EF_BULK:
		return ptx_has(i, MOD_ignore_oob) ? "bulk copies with .ignore_oob are not recorded" : NULL;
	case EF_READ: case EF_WRITE:
		if (wmma_is(i) && !wmma_part_of(i, &part))
			return "this shape of wmma is not recorded";
		return NULL;
	case EF_TENSORMAP:
		return ptx_space_of(i, 0) == PS_none
			? "changing a tensor map through a generic address is not recorded" : NULL;
	default:
		return NULL;
	}
}
