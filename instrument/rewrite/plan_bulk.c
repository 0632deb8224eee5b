/* plan_bulk: see plan_bulk.h. */
#include "plan_bulk.h"

#include "instrument/record/record.h"
#include "libconsan/ptx/opcodes.h"
#include "libconsan/tensormap_args.h"

struct plan_bulk plan_bulk_of(const struct ptx_insn *i)
{
	struct plan_bulk b = { 0 };
	unsigned k;

	b.tensor = i->op == OP_cp_async_bulk_tensor || i->op == OP_cp_reduce_async_bulk_tensor ||
		i->op == OP_cp_async_bulk_prefetch_tensor;
	b.multicast = ptx_has(i, MOD_multicast_cluster);
	b.mode = ptx_pick(i, MG_loadmode);
	b.rows = ptx_has(i, MOD_tile_gather4) || ptx_has(i, MOD_tile_scatter4);
	if (i->op == OP_cp_async_bulk_prefetch || i->op == OP_cp_async_bulk_prefetch_tensor) {
		b.copy = COPY_PREFETCH;
		return b;
	}
	b.copy = ptx_space_of(i, 0) == PS_global || i->op == OP_cp_reduce_async_bulk_tensor
		? COPY_STORE : ptx_space_of(i, 1) == PS_global ? COPY_LOAD : COPY_PEER;
	b.shared = &i->operand[b.copy == COPY_STORE ? 1 : 0];
	b.other = &i->operand[b.copy == COPY_STORE ? 0 : 1];
	if (!b.tensor)
		b.size = &i->operand[2];
	k = b.tensor ? 2 : 3;
	if (b.copy != COPY_STORE)
		b.mbar = &i->operand[k++];
	if (k < i->noperands && i->operand[k].kind == PO_VEC)
		b.offsets = &i->operand[k++];
	if (b.multicast && k < i->noperands)
		b.mask = &i->operand[k];
	if (ptx_has(i, MOD_cp_mask) && k < i->noperands)
		b.bytes = &i->operand[i->noperands - 1];
	return b;
}

/* ---- tensor maps ---- */

/* A map is mostly a parameter of the kernel, whose address the code computes once: cvta.param of the parameter,
 * plus constants. Then the map is known without a record. */
#define ADDRESS_STEPS 8 /* real code has 3 */

/* The operand from which the only writer of a register makes its address, *add plus; NULL: another one. */
static const struct ptx_operand *made_from(const struct ptx_func *f, const struct ptx_insn *i, int64_t *add)
{
	if (!i || i->guard != PTX_NO_REG || i->operand[0].kind != PO_REG || i->operand[0].elem ||
			ptx_type_bits(ptx_type_of(i, 0)) != 64)
		return NULL;
	if (plan_adds_constant(f, i))
		*add += i->operand[2].imm;
	else if (i->op != OP_mov && !(i->op == OP_cvta && !ptx_has(i, MOD_to) && ptx_space_of(i, 0) == PS_param))
		return NULL;
	return &i->operand[1];
}

/* 0: the map is another one at times, or not known. */
static uint64_t fixed_map(const struct ptx_func *f, const struct ptx_operand *o)
{
	int64_t add = 0;

	if (!f->entry || !f->only_writer)
		return 0;
	for (unsigned step = 0; o && (o->kind == PO_REG || o->kind == PO_ADDR) && o->reg != PTX_NO_REG; step++) {
		if (step == ADDRESS_STEPS || o->elem)
			return 0;
		add += o->imm;
		o = made_from(f, f->only_writer[o->reg], &add);
	}
	if (!o || !o->var || !ptx_var_in(o->var, f->param, f->nparam))
		return 0;
	add += o->imm;
	if (add < 0 || (uint64_t)add + CONSAN_TENSORMAP_BYTES > o->var->size)
		return 0;
	return RECORD_PARAM + o->var->offset + (uint64_t)add;
}

static void add_map(const struct ptx_func *f, const struct ptx_operand *o, struct plan *p)
{
	p->map = fixed_map(f, o);
	if (!p->map)
		plan_add(p, o, VAL_MAP);
}

/* ---- plans ---- */

bool plan_bulk(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	struct plan_bulk b;

	p->before = true;
	if (i->op == OP_cp_async_bulk_commit_group)
		return true;
	if (i->op == OP_cp_async_bulk_wait_group) {
		p->before = false;
		return p->after = true;
	}
	b = plan_bulk_of(i);
	if (b.copy == COPY_PREFETCH || !b.shared || b.shared->kind != PO_ADDR)
		return false;
	p->class = PLAN_LANES;
	p->sync = true;
	plan_add(p, b.shared, VAL_SHARED);
	if (b.mbar)
		plan_add(p, b.mbar, VAL_SHARED);
	if (b.size)
		plan_add(p, b.size, VAL_U32);
	if (b.mask)
		plan_add(p, b.mask, VAL_U32);
	if (b.bytes)
		plan_add(p, b.bytes, VAL_U32);
	if (b.tensor)
		add_map(f, &b.other->list[0], p);
	else if (b.copy == COPY_PEER)
		plan_add(p, b.other, VAL_SHARED);
	return true;
}

/* Copies record their global side in a record before their shared one: all that a screen of this record
 * must know, so also the size and the tensor map, which are in the other record, too. */
bool plan_bulk_global(const struct ptx_func *f, const struct ptx_insn *i, struct plan *p)
{
	struct plan_bulk b;

	if (i->op == OP_cp_async_bulk_commit_group || i->op == OP_cp_async_bulk_wait_group)
		return false;
	b = plan_bulk_of(i);
	if (b.copy == COPY_PREFETCH || b.copy == COPY_PEER || !b.other)
		return false;
	p->before = true;
	p->class = PLAN_LANES;
	if (!b.tensor) {
		plan_add(p, b.other, VAL_GLOBAL);
		plan_add(p, b.size, VAL_U32);
		return p->elected = true;
	}
	for (unsigned k = 0; k < b.other->list[1].n && k < 5; k++)
		plan_add(p, &b.other->list[1].list[k], VAL_U32);
	for (unsigned k = 0; b.offsets && k < b.offsets->n && k < 3; k++)
		plan_add(p, &b.offsets->list[k], VAL_U32);
	add_map(f, &b.other->list[0], p);
	if (!p->nvalues)
		p->class = PLAN_NOTHING;
	p->elected = p->class == PLAN_LANES;
	return true;
}
