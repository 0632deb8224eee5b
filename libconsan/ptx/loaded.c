/* loaded: see loaded.h. */
#include "loaded.h"
#include "opcodes.h"
#include "order.h"

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

/* From instruction `at` on, on some path. */
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
			if (!left.n)
				return true;
			if (ends(i))
				return false;
		}
		if (!k->nsucc || (k->end > k->first && s->f->insn[k->end - 1].ntarget > 1))
			return false;
		for (unsigned n = 1; n < k->nsucc; n++)
			if (read_from(s, cfg->block[k->succ[n]].first, left, depth + 1))
				return true;
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
