/* loaded: see loaded.h. */
#include "loaded.h"
#include "opcodes.h"
#include "order.h"

#include <string.h>

enum { MOST_REGS = 128, MOST_INSNS = 1 << 14, DEPTH = 1024 };

struct search {
	const struct ptx_func *f;
	uint32_t reg[MOST_REGS];   /* of the load */
	unsigned n;
	unsigned steps;            /* instructions that may still be looked at */
};

struct left { bool at[MOST_REGS]; unsigned n; }; /* neither read nor overwritten so far */

static void take(const struct search *s, const struct ptx_operand *o, struct left *left)
{
	if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
		for (unsigned k = 0; k < o->n; k++)
			take(s, &o->list[k], left);
	if (o->kind != PO_REG && o->kind != PO_ADDR)
		return;
	for (unsigned i = 0; i < s->n; i++)
		if (s->reg[i] == o->reg && left->at[i]) {
			left->at[i] = false;
			left->n--;
		}
}

/* May another thread learn from this instruction, or what follows it, that the load is done? */
static bool ends(const struct ptx_insn *i)
{
	switch (ptx_effect_of(i->op)) {
	case EF_NONE: case EF_RANK: case EF_READ: case EF_HINT:
	case EF_WARP: case EF_WARP_SYNC:
		return false;
	case EF_WRITE:
		return ptx_sem_of(i, SEM_WEAK) != SEM_WEAK;
	case EF_CONTROL:
		return i->op != OP_bra;
	case EF_TCGEN05:
		return i->op != OP_tcgen05_ld;
	default:
		return true;
	}
}

/* Does the register depend on constants and parameters of the kernel alone? Then all threads take
 * the same branch, and the compiler keeps the other one for other arguments, as for a factor of 0. */
static bool is_uniform(const struct ptx_func *f, uint32_t reg, unsigned depth)
{
	const struct ptx_insn *i = f->only_writer && reg != PTX_NO_REG ? f->only_writer[reg] : NULL;

	if (!i || i->guard != PTX_NO_REG || depth > 8)
		return false;
	if (i->op == OP_ld)
		return ptx_space_of(i, 0) == PS_param;
	if (ptx_effect_of(i->op) != EF_NONE)
		return false;
	for (unsigned k = ptx_written(i); k < i->noperands; k++) {
		const struct ptx_operand *o = &i->operand[k];

		if (o->kind == PO_REG ? !is_uniform(f, o->reg, depth + 1)
			: o->kind != PO_IMM && o->kind != PO_F32 && o->kind != PO_F64)
			return false;
	}
	return true;
}

/* A failed assertion ends the kernel. */
static bool asserts(const struct ptx_insn *i)
{
	return i->op == OP_call && i->noperands && i->operand[0].kind == PO_FUNC
		&& i->operand[0].func && !strcmp(i->operand[0].func->name, "__assertfail");
}

/* From instruction `at` on: on each path, but on one of those between which a parameter chooses. */
static bool read_from(struct search *s, uint32_t at, struct left left, unsigned depth)
{
	const struct ptx_cfg *cfg = s->f->cfg;
	uint32_t b = cfg->block_of[at];

	for (; depth < DEPTH; depth++) {
		const struct ptx_block *k = &cfg->block[b];

		for (; at < k->end; at++) {
			const struct ptx_insn *i = &s->f->insn[at];

			if (!s->steps--)
				return false;
			for (unsigned o = 0; o < i->noperands && i->guard == PTX_NO_REG; o++)
				take(s, &i->operand[o], &left);
			if (!left.n || asserts(i))
				return true;
			if (ends(i))
				return false;
		}
		if (!k->nsucc || (k->end > k->first && s->f->insn[k->end - 1].ntarget > 1))
			return false;
		if (k->nsucc > 1) {
			const bool any = is_uniform(s->f, s->f->insn[k->end - 1].guard, 0);

			if (read_from(s, cfg->block[k->succ[1]].first, left, depth + 1) == any)
				return any;
		}
		b = k->succ[0];
		at = cfg->block[b].first;
	}
	return false;
}

bool ptx_load_is_read(const struct ptx_func *f, const struct ptx_insn *load)
{
	const struct ptx_operand *v = &load->operand[0];
	struct search s = { .f = f, .steps = MOST_INSNS };
	struct left left = { .n = 0 };

	if (!f->cfg)
		return false;
	for (unsigned k = 0; k < (v->kind == PO_VEC ? v->n : 1u); k++) {
		const struct ptx_operand *o = v->kind == PO_VEC ? &v->list[k] : v;

		if (o->kind == PO_SINK)
			continue;
		if (o->kind != PO_REG || s.n == MOST_REGS)
			return false;
		left.at[s.n] = true;
		s.reg[s.n++] = o->reg;
	}
	left.n = s.n;
	return !s.n || read_from(&s, (uint32_t)(load - f->insn) + 1, left, 0);
}
