/* conflict: see conflict.h. */
#include "conflict.h"

#include "instrument/record/record.h"
#include "libconsan/ptx/opcodes.h"
#include "operands.h"
#include "plan.h"

#include <stdio.h>

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

/* ---- what is stored, as one word ---- */

/* As mix() computes it. */
static uint32_t mixed(uint32_t hash, uint32_t word)
{
	hash = (hash ^ word) * 0x9e3779b1u;
	return hash ^ hash >> 15;
}

static void mix(struct text *t, const char *word)
{
	text_printf(t, "\txor.b32 %%cs_h, %%cs_h, %s;\n\tmul.lo.u32 %%cs_h, %%cs_h, 0x9e3779b1;\n"
		"\tshr.u32 %%cs_t, %%cs_h, 15;\n\txor.b32 %%cs_h, %%cs_h, %%cs_t;\n", word);
}

/* The words of an element that is no register: of a constant those that a register would have, of the
 * address of a variable words that no other variable has. */
static unsigned constant_words(const struct ptx_operand *o, unsigned bits, uint32_t word[4])
{
	uint64_t value = (uint64_t)o->imm;

	for (const char *c = o->kind == PO_SYM ? o->var->name : ""; *c; c++)
		value = (value ^ (unsigned char)*c) * 0x100000001b3u;
	for (unsigned k = 0; k < 4; k++)
		word[k] = k < 2 ? (uint32_t)(value >> 32 * k) : value >> 63 ? UINT32_MAX : 0;
	if (bits < 32)
		word[0] &= (1u << bits) - 1;
	return (bits + 31) / 32;
}

static uint32_t hash_begin(unsigned bits)
{
	return bits;
}

uint32_t plan_stores(const struct ptx_insn *i)
{
	const unsigned bits = ptx_type_bits(ptx_type_of(i, 0));
	uint32_t hash = hash_begin(bits), word[4];

	if (i->op != OP_st || i->noperands < plan_address(i) + 2u)
		return 0;
	for (unsigned k = 0; k < elements(stored(i)); k++) {
		const struct ptx_operand *o = element(stored(i), k);
		unsigned n = constant_words(o, bits, word);

		if (o->kind == PO_REG || o->kind == PO_SINK)
			return 0;
		for (unsigned w = 0; w < n; w++)
			hash = mixed(hash, word[w]);
	}
	return (hash & (RECORD_VALUE_SAME - 1)) | RECORD_VALUE_SAME;
}

/* cs_h: of this lane. */
static void hash_lane(struct text *t, const struct conflict *c, unsigned first)
{
	const struct ptx_operand *from = stored(c->insn);
	const unsigned bits = ptx_type_bits(ptx_type_of(c->insn, 0));
	unsigned v = first;

	text_printf(t, "\tmov.b32 %%cs_h, %u;\n", hash_begin(bits));
	for (unsigned k = 0; k < elements(from); k++) {
		const struct ptx_operand *o = element(from, k);
		uint32_t word[4];
		unsigned n = constant_words(o, bits, word);

		for (unsigned w = 0; w < n; w++) {
			char text[16];

			if (o->kind == PO_REG)
				snprintf(text, sizeof text, "%%cs_v%u", v + w);
			else
				snprintf(text, sizeof text, "%u", word[w]);
			mix(t, text);
		}
		v += words_of(c->f, o);
	}
}

void conflict_hash_alone(struct text *t, const struct conflict *c, unsigned first)
{
	hash_lane(t, c, first);
	text_printf(t, "\tlop3.b32 %%cs_h, %%cs_h, %u, %u, 0xea;\n", RECORD_VALUE_SAME - 1, RECORD_VALUE_SAME);
}

void conflict_hash(struct text *t, const struct conflict *c, unsigned first)
{
	hash_lane(t, c, first);
	text_printf(t, "\tmatch.all.sync.b32 %%cs_u|%%cs_same, %%cs_h, %%cs_m;\n"
		"\tselp.b32 %%cs_u, %u, 0, %%cs_same;\n\tmov.b32 %%cs_o, %%cs_h;\n", RECORD_VALUE_SAME);
	if (c->f->module->sm >= 80) {
		mix(t, "%cs_i");
		text_printf(t, "\tredux.sync.add.u32 %%cs_h, %%cs_h, %%cs_m;\n");
	} else {
		text_printf(t, "\tmov.b32 %%cs_h, 0;\n");
	}
	text_printf(t, "\tselp.b32 %%cs_h, %%cs_o, %%cs_h, %%cs_same;\n"
		"\tlop3.b32 %%cs_h, %%cs_h, %u, %%cs_u, 0xea;\n", RECORD_VALUE_SAME - 1);
}

/* ---- conflicting lanes ---- */

/* Lanes write the same if their hashes are the same: that is exact for one word. %cs_q: this lane's
 * hash, cs_o, differs from that of lane `from`. */
static void differ(struct text *t, const char *from)
{
	text_printf(t, "\tshfl.sync.idx.b32 %%cs_u, %%cs_o, %s, 31, %%cs_m;\n"
		"\tsetp.ne.u32 %%cs_q, %%cs_u, %%cs_o;\n", from);
}

/* cs_same, of conflict_hash(), and cs_s are the same in all lanes. */
void conflict_same_address(struct text *t)
{
	text_printf(t, "\tsetp.ne.or.u32 %%cs_q, %%cs_s, %d, %%cs_same;\n"
		"\tand.pred %%cs_all, %%cs_all, %%cs_q;\n", RECORD_STRIDE_BIAS);
}

void conflict_lanes(struct text *t)
{
	text_printf(t, "\tmatch.any.sync.b32 %%cs_t, %%cs_v0, %%cs_m;\n"
		"\tbrev.b32 %%cs_t, %%cs_t;\n\tclz.b32 %%cs_t, %%cs_t;\n");
	differ(t, "%cs_t");
	text_printf(t, "\tvote.sync.ballot.b32 %%cs_u, %%cs_q, %%cs_m;\n");
}

void conflict_global(struct text *t, unsigned label)
{
	text_printf(t, "\tmov.b32 %%cs_w, 0;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_z, 5;\n"
		"\tsetp.ne.and.u32 %%cs_q, %%cs_x, 0, %%cs_q;\n"
		"\tand.pred %%cs_q, %%cs_q, %%cs_all;\n\t@%%cs_q bra $CSV%u;\n"
		"\tmov.b64 %%cs_e, {%%cs_v0, %%cs_v1};\n"
		"\tmatch.any.sync.b64 %%cs_t, %%cs_e, %%cs_m;\n"
		"\tbrev.b32 %%cs_t, %%cs_t;\n\tclz.b32 %%cs_t, %%cs_t;\n", label);
	differ(t, "%cs_t");
	text_printf(t, "\tvote.sync.ballot.b32 %%cs_w, %%cs_q, %%cs_m;\n"
		"\tsetp.eq.u32 %%cs_q, %%cs_w, 0;\n"
		"\tand.pred %%cs_all, %%cs_all, %%cs_q;\n$CSV%u:\n", label);
}
