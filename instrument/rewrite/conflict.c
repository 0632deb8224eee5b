/* conflict: see conflict.h. */
#include "conflict.h"

#include "instrument/record/record.h"
#include "libconsan/ptx/opcodes.h"
#include "operands.h"
#include "plan.h"

static const struct ptx_operand *stored(const struct ptx_insn *i)
{
	return &i->operand[plan_address(i) + 1u];
}

static unsigned elements(const struct ptx_operand *o)
{
	return o->kind == PO_VEC ? o->n : 1;
}

static const struct ptx_operand *element(const struct ptx_operand *o, unsigned k)
{
	return o->kind == PO_VEC ? &o->list[k] : o;
}

static unsigned words_of(const struct ptx_func *f, const struct ptx_operand *o)
{
	unsigned bits = o->kind == PO_REG ? operand_bits(f, o->reg) : 0;

	return (bits + 31) / 32;
}

unsigned conflict_words(const struct ptx_func *f, const struct ptx_insn *i)
{
	unsigned n = 0;

	if (i->op != OP_st || i->noperands < plan_address(i) + 2u)
		return 0;
	for (unsigned k = 0; k < elements(stored(i)); k++)
		n += words_of(f, element(stored(i), k));
	return n;
}

/* The words of one register, as far as they are stored: the stored type may be narrower. */
static void words(struct text *t, const struct ptx_func *f, const struct ptx_operand *o,
	unsigned stored_bits, unsigned v)
{
	struct text reg = { 0 };

	text_printf(&reg, "%s", operand_name(f, o->reg));
	operand_component(&reg, o);
	switch (operand_bits(f, o->reg)) {
	case 128:
		text_printf(t, "\tmov.b128 {%%cs_d, %%cs_e}, %s;\n"
			"\tmov.b64 {%%cs_v%u, %%cs_v%u}, %%cs_d;\n"
			"\tmov.b64 {%%cs_v%u, %%cs_v%u}, %%cs_e;\n", reg.at, v, v + 1, v + 2,
			v + 3);
		break;
	case 64:
		text_printf(t, "\tmov.b64 {%%cs_v%u, %%cs_v%u}, %s;\n", v, v + 1, reg.at);
		if (stored_bits < 64)
			text_printf(t, "\tmov.b32 %%cs_v%u, 0;\n", v + 1);
		break;
	case 32:
		text_printf(t, "\tmov.b32 %%cs_v%u, %s;\n", v, reg.at);
		break;
	case 16:
		text_printf(t, "\tmov.b32 %%cs_v%u, {%s, %s};\n", v, reg.at, reg.at);
		break;
	default:
		text_printf(t, "\tcvt.u32.u8 %%cs_v%u, %s;\n", v, reg.at);
	}
	if (stored_bits < 32)
		text_printf(t, "\tand.b32 %%cs_v%u, %%cs_v%u, %u;\n", v, v,
			(1u << stored_bits) - 1);
	text_free(&reg);
}

void conflict_values(struct text *t, const struct ptx_func *f, const struct ptx_insn *i,
	unsigned first)
{
	unsigned v = first;

	for (unsigned k = 0; k < elements(stored(i)); k++) {
		const struct ptx_operand *o = element(stored(i), k);

		if (words_of(f, o))
			words(t, f, o, ptx_type_bits(ptx_type_of(i, 0)), v);
		v += words_of(f, o);
	}
}

/* %cs_q: this lane's n words from %cs_v<first> differ from those of lane `from`. */
static void differ(struct text *t, unsigned first, unsigned n, const char *from)
{
	text_printf(t, "\tsetp.ne.u32 %%cs_q, 0, 0;\n");
	for (unsigned k = first; k < first + n; k++)
		text_printf(t, "\tshfl.sync.idx.b32 %%cs_u, %%cs_v%u, %s, 31, %%cs_m;\n"
			"\tsetp.ne.or.u32 %%cs_q, %%cs_u, %%cs_v%u, %%cs_q;\n", k, from, k);
}

void conflict_same_address(struct text *t, unsigned n, unsigned label)
{
	text_printf(t, "\tsetp.ne.u32 %%cs_q, %%cs_s, %d;\n\t@%%cs_q bra $CSV%u;\n",
		RECORD_STRIDE_BIAS, label);
	differ(t, 1, n, "%cs_l");
	text_printf(t, "\tnot.pred %%cs_q, %%cs_q;\n\tand.pred %%cs_q, %%cs_q, %%cs_all;\n"
		"\tvote.sync.all.pred %%cs_all, %%cs_q, %%cs_m;\n$CSV%u:\n", label);
}

void conflict_lanes(struct text *t, unsigned n)
{
	text_printf(t, "\tmatch.any.sync.b32 %%cs_t, %%cs_v0, %%cs_m;\n"
		"\tbrev.b32 %%cs_t, %%cs_t;\n\tclz.b32 %%cs_t, %%cs_t;\n");
	differ(t, 1, n, "%cs_t");
	text_printf(t, "\tvote.sync.ballot.b32 %%cs_u, %%cs_q, %%cs_m;\n");
}

void conflict_global(struct text *t, unsigned n, unsigned label)
{
	text_printf(t, "\tmov.b32 %%cs_w, 0;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_z, 5;\n"
		"\tsetp.ne.and.u32 %%cs_q, %%cs_x, 0, %%cs_q;\n"
		"\tand.pred %%cs_q, %%cs_q, %%cs_all;\n\t@%%cs_q bra $CSV%u;\n"
		"\tmov.b64 %%cs_e, {%%cs_v0, %%cs_v1};\n"
		"\tmatch.any.sync.b64 %%cs_t, %%cs_e, %%cs_m;\n"
		"\tbrev.b32 %%cs_t, %%cs_t;\n\tclz.b32 %%cs_t, %%cs_t;\n", label);
	differ(t, 2, n, "%cs_t");
	text_printf(t, "\tvote.sync.ballot.b32 %%cs_w, %%cs_q, %%cs_m;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_w, 0;\n"
		"\tand.pred %%cs_all, %%cs_all, %%cs_q;\n$CSV%u:\n", label);
}
