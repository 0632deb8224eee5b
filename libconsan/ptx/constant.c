/* constant: see constant.h. */
#include "constant.h"
#include "opcodes.h"
#include "order.h"

#include <stdlib.h>

static void note_writes(const struct ptx_insn **only, bool *several, const struct ptx_insn *i,
	const struct ptx_operand *o)
{
	for (unsigned k = 0; (o->kind == PO_VEC || o->kind == PO_PAIR) && k < o->n; k++)
		note_writes(only, several, i, &o->list[k]);
	if (o->kind != PO_REG)
		return;
	several[o->reg] |= only[o->reg] != NULL;
	only[o->reg] = i;
}

const struct ptx_insn **constant_only_writers(struct arena *a, const struct ptx_func *f)
{
	const struct ptx_insn **only = arena_alloc(a, (f->nreg + 1) * sizeof *only);
	bool *several = base_alloc(f->nreg + 1);

	for (size_t n = 0; n < f->ninsn; n++) {
		const struct ptx_insn *i = &f->insn[n];

		for (unsigned k = 0; k < ptx_written(i); k++)
			note_writes(only, several, i, &i->operand[k]);
		for (unsigned k = 0; k < i->nret; k++)
			note_writes(only, several, i, &i->ret[k]);
	}
	for (size_t r = 0; r < f->nreg; r++)
		if (several[r])
			only[r] = NULL;
	free(several);
	return only;
}

/* ---- the value of an expression ---- */

#define MOST_NODES 48 /* operands that are looked at for one store */

struct expression {
	const struct ptx_func *f;
	enum site_constant kind; /* the narrowest of its leaves */
	unsigned nodes;
};

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0xff51afd7ed558ccdull;
	return h ^ h >> 32;
}

static uint64_t mix_text(uint64_t h, const char *s)
{
	for (; *s; s++)
		h = mix(h, (unsigned char)*s);
	return h;
}

static enum site_constant known_register(unsigned sreg)
{
	switch (sreg) {
	case SR_ntid_x: case SR_ntid_y: case SR_ntid_z:
	case SR_nctaid_x: case SR_nctaid_y: case SR_nctaid_z:
	case SR_nclusterid_x: case SR_nclusterid_y: case SR_nclusterid_z:
	case SR_cluster_nctaid_x: case SR_cluster_nctaid_y: case SR_cluster_nctaid_z:
	case SR_cluster_nctarank: case SR_total_smem_size: case SR_dynamic_smem_size:
		return CONSTANT_IN_GRID;
	case SR_ctaid_x: case SR_ctaid_y: case SR_ctaid_z:
	case SR_clusterid_x: case SR_clusterid_y: case SR_clusterid_z:
	case SR_cluster_ctaid_x: case SR_cluster_ctaid_y: case SR_cluster_ctaid_z:
	case SR_cluster_ctarank:
		return CONSTANT_IN_CTA;
	default:
		return CONSTANT_NOT;
	}
}

/* Does the result depend on its operands alone? */
static bool computes(const struct ptx_insn *i)
{
	switch ((enum ptx_op)i->op) {
	case OP_mov: case OP_cvt: case OP_cvta: case OP_prmt: case OP_selp: case OP_slct:
	case OP_add: case OP_sub: case OP_mul: case OP_mad: case OP_mul24: case OP_mad24: case OP_sad:
	case OP_div: case OP_rem: case OP_abs: case OP_neg: case OP_min: case OP_max: case OP_popc:
	case OP_clz: case OP_bfind: case OP_brev: case OP_bfe: case OP_bfi: case OP_bmsk:
	case OP_and: case OP_or: case OP_xor: case OP_not: case OP_cnot: case OP_lop3:
	case OP_shf: case OP_shl: case OP_shr: case OP_set: case OP_setp: case OP_fma: case OP_rcp:
	case OP_sqrt: case OP_rsqrt: case OP_lg2: case OP_ex2:
		return true;
	default:
		return false;
	}
}

static bool hash_register(struct expression *x, uint32_t reg, uint64_t *h);

static bool hash_operand(struct expression *x, const struct ptx_operand *o, uint64_t *h)
{
	enum site_constant kind;

	if (x->nodes++ == MOST_NODES || o->elem)
		return false;
	*h = mix(*h, o->negated);
	switch (o->kind) {
	case PO_IMM: case PO_F32: case PO_F64:
		*h = mix(*h, (uint64_t)o->imm);
		return true;
	case PO_SREG:
		kind = known_register(o->sreg);
		if (kind == CONSTANT_IN_CTA)
			x->kind = kind;
		*h = mix(*h ^ 1, o->sreg);
		return kind != CONSTANT_NOT;
	case PO_REG:
		return hash_register(x, o->reg, h);
	default:
		return false;
	}
}

/* A parameter of the kernel: those of device functions differ from call to call. */
static bool hash_parameter(const struct expression *x, const struct ptx_insn *i, uint64_t *h)
{
	const struct ptx_operand *a = &i->operand[1];

	if (!x->f->entry || ptx_space_of(i, 0) != PS_param || a->kind != PO_ADDR
		|| a->reg != PTX_NO_REG || !a->var)
		return false;
	*h = mix(mix_text(*h ^ 2, a->var->name), (uint64_t)a->imm);
	return true;
}

static bool hash_register(struct expression *x, uint32_t reg, uint64_t *h)
{
	const struct ptx_insn *i = x->f->only_writer[reg];

	if (!i || i->guard != PTX_NO_REG || i->operand[0].kind != PO_REG || i->noperands < 2)
		return false;
	if (i->op == OP_mov)
		return hash_operand(x, &i->operand[1], h);
	*h = mix(*h, i->op);
	for (unsigned k = 0; k < i->nmods; k++)
		*h = mix(*h, i->mod[k]);
	if (i->op == OP_ld)
		return hash_parameter(x, i, h);
	if (!computes(i) || ptx_written(i) != 1)
		return false;
	for (unsigned k = 1; k < i->noperands; k++)
		if (!hash_operand(x, &i->operand[k], h))
			return false;
	return true;
}

enum site_constant ptx_stores_constant(const struct ptx_func *f, const struct ptx_insn *i,
	uint64_t *value)
{
	struct expression x = { .f = f, .kind = CONSTANT_IN_GRID };

	*value = 0;
	if (i->op != OP_st || !f->only_writer || !hash_operand(&x, &i->operand[1], value))
		return CONSTANT_NOT;
	return x.kind;
}
