/* operands: prints the loads of an instruction's operands into a hook's scratch registers. */
#include "operands.h"

#include "external.h"
#include "instrument/record/record.h"
#include "libconsan/ptx/ptx.h"
#include "libconsan/tensormap_args.h"

void operand_component(struct text *t, const struct ptx_operand *o)
{
	if (o->elem)
		text_printf(t, ".%c", "xyzw"[o->elem - 1]);
}

/* Loads a shared address into %cs_v<k>. %cs_g: a generic address is one of shared memory. */
static void shared_address(const struct operands *w, const struct ptx_operand *o, unsigned k,
	bool generic)
{
	struct text *t = w->out;
	struct text name = { 0 };

	if (o->reg != PTX_NO_REG) {
		text_printf(&name, "%s", operand_name(w->f, o->reg));
		operand_component(&name, o);
	}
	if (generic && o->reg != PTX_NO_REG && operand_bits(w->f, o->reg) == 64) {
		text_printf(t, "\tadd.s64 %%cs_e, %s, %lld;\n", name.at, (long long)o->imm);
		text_printf(t, w->r->module->sm >= 90
			? "\tisspacep.shared::cluster %%cs_g, %%cs_e;\n"
			: "\tisspacep.shared %%cs_g, %%cs_e;\n");
		text_printf(t, "\tcvta.to.shared.u64 %%cs_e, %%cs_e;\n"
			"\tcvt.u32.u64 %%cs_v%u, %%cs_e;\n", k);
	} else if (o->reg != PTX_NO_REG && operand_bits(w->f, o->reg) == 64) {
		text_printf(t, "\tcvt.u32.u64 %%cs_v%u, %s;\n", k, name.at);
	} else if (o->reg != PTX_NO_REG) {
		text_printf(t, "\tmov.b32 %%cs_v%u, %s;\n", k, name.at);
	} else if (o->var) {
		text_printf(t, "\tmov.u32 %%cs_v%u, %s;\n", k, o->var->name);
	} else {
		text_printf(t, "\tmov.u32 %%cs_v%u, 0;\n", k);
	}
	if (!(generic && o->reg != PTX_NO_REG && operand_bits(w->f, o->reg) == 64)) {
		if (o->imm)
			text_printf(t, "\tadd.s32 %%cs_v%u, %%cs_v%u, %lld;\n", k, k,
				(long long)o->imm);
		if (generic)
			text_printf(t, "\tsetp.eq.u32 %%cs_g, 0, 0;\n");
	}
	text_free(&name);
}

const struct ptx_var *operands_map_param(const struct ptx_func *f)
{
	for (size_t k = 0; f->entry && k < f->nparam; k++)
		if (f->param[k].size >= CONSAN_TENSORMAP_BYTES)
			return &f->param[k];
	return NULL;
}

void operands_params_address(struct text *t, const struct ptx_func *f, const char *reg)
{
	const struct ptx_var *p = operands_map_param(f);

	text_printf(t, "\tmov.b64 %s, %s;\n\tcvta.param.u64 %s, %s;\n", reg, p->name, reg, reg);
	if (p->offset)
		text_printf(t, "\tsub.s64 %s, %s, %llu;\n", reg, reg, (unsigned long long)p->offset);
}

/* %cs_e: the address of a variable in its state space. */
static void symbol(const struct operands *w, const struct ptx_var *v)
{
	if (external_is(w->r, v))
		external_address(w->out, w->r, v, "%cs_e");
	else
		text_printf(w->out, "\tmov.b64 %%cs_e, %s;\n", v->name);
}

static void map_address(const struct operands *w, const struct ptx_operand *o, const char *prefix,
	unsigned k)
{
	struct text *t = w->out;

	if (o->reg != PTX_NO_REG) {
		text_printf(t, "\tadd.s64 %%cs_e, %s, %lld;\n", operand_name(w->f, o->reg),
			(long long)o->imm);
	} else if (o->var) {
		symbol(w, o->var);
		text_printf(t, "\tcvta.%s.u64 %%cs_e, %%cs_e;\n", o->var->space == PS_param
			? "param" : o->var->space == PS_const ? "const" : "global");
		if (o->imm)
			text_printf(t, "\tadd.s64 %%cs_e, %%cs_e, %lld;\n", (long long)o->imm);
	}
	/* a parameter is recorded as its offset, as its address differs from launch to launch */
	if (operands_map_param(w->f)) {
		operands_params_address(t, w->f, "%cs_d");
		text_printf(t, "\tsub.s64 %%cs_d, %%cs_e, %%cs_d;\n\tsetp.lt.u64 %%cs_q, %%cs_d, %zu;\n"
			"\t@%%cs_q or.b64 %%cs_e, %%cs_d, 0x%llx;\n", w->f->param_bytes,
			(unsigned long long)RECORD_PARAM);
	} else if (w->r->global) {
		text_printf(t, "\tsetp.ne.u32 %%cs_q, 0, 0;\n");
	}
	if (w->r->global)
		text_printf(t, "\tld.const.u64 %%cs_d, [" RECORD_VARIABLE "%u];\n"
			"\tsetp.eq.or.u64 %%cs_q, %%cs_d, 0, %%cs_q;\n"
			"\t@!%%cs_q st.global.b32 [%%cs_d+%u], 1;\n", w->r->number, RECORD_MAPS_AT);
	text_printf(t, "\tmov.b64 {%s%u, %s%u}, %%cs_e;\n", prefix, k, prefix, k + 1);
}

static void global_address(const struct operands *w, const struct ptx_operand *o, bool generic,
	unsigned k)
{
	struct text *t = w->out;

	if (o->reg != PTX_NO_REG) {
		text_printf(t, "\tadd.s64 %%cs_e, %s", operand_name(w->f, o->reg));
		operand_component(t, o);
		text_printf(t, ", %lld;\n", (long long)o->imm);
	} else if (o->var) {
		symbol(w, o->var);
		if (o->imm)
			text_printf(t, "\tadd.s64 %%cs_e, %%cs_e, %lld;\n", (long long)o->imm);
	} else {
		text_printf(t, "\tmov.b64 %%cs_e, %lld;\n", (long long)o->imm);
	}
	if (generic && o->reg != PTX_NO_REG)
		text_printf(t, "\tisspacep.global %%cs_g, %%cs_e;\n");
	else if (generic)
		text_printf(t, "\tsetp.eq.u32 %%cs_g, 0, 0;\n");
	text_printf(t, "\tmov.b64 {%%cs_v%u, %%cs_v%u}, %%cs_e;\n", k, k + 1);
}

static void tensor_address(const struct operands *w, const struct ptx_operand *o,
	const char *prefix, unsigned k)
{
	struct text *t = w->out;

	if (o->reg == PTX_NO_REG) {
		text_printf(t, "\tmov.b32 %s%u, %lld;\n", prefix, k, (long long)o->imm);
		return;
	}
	text_printf(t, operand_bits(w->f, o->reg) == 64 ? "\tcvt.u32.u64 %s%u, %s" : "\tmov.b32 %s%u, %s",
		prefix, k, operand_name(w->f, o->reg));
	operand_component(t, o);
	text_printf(t, ";\n");
	if (o->imm)
		text_printf(t, "\tadd.s32 %s%u, %s%u, %lld;\n", prefix, k, prefix, k, (long long)o->imm);
}

static void plain_value(const struct operands *w, const struct ptx_operand *o, enum plan_kind kind,
	const char *prefix, unsigned k)
{
	struct text *t = w->out;

	if (o->kind != PO_REG) {   /* a special register or a symbol: the decoder knows it by its
				      name */
		text_printf(t, "\tmov.b32 %s%u, 0;\n", prefix, k);
		return;
	}
	if (kind == VAL_PRED) {
		text_printf(t, "\tselp.b32 %s%u, %u, %u, %s;\n", prefix, k, !o->negated, o->negated,
			operand_name(w->f, o->reg));
		return;
	}
	if (kind == VAL_U64) {
		text_printf(t, "\tmov.b64 {%s%u, %s%u}, %s", prefix, k, prefix, k + 1,
			operand_name(w->f, o->reg));
	} else if (operand_bits(w->f, o->reg) == 64) {
		text_printf(t, "\tcvt.u32.u64 %s%u, %s", prefix, k, operand_name(w->f, o->reg));
	} else if (operand_bits(w->f, o->reg) == 16) {
		text_printf(t, "\tcvt.u32.u16 %s%u, %s", prefix, k, operand_name(w->f, o->reg));
	} else {
		text_printf(t, "\tmov.b32 %s%u, %s", prefix, k, operand_name(w->f, o->reg));
	}
	operand_component(t, o);
	text_printf(t, ";\n");
}

/* %cs_t: the offset in bytes from the tile's address to the part that the lane accesses
 * (wmma.h). */
static void tile_offset(const struct operands *w, const struct ptx_insn *i)
{
	const struct ptx_operand *stride = &i->operand[2];
	struct text *t = w->out;
	struct wmma_part p;

	wmma_part_of(i, &p);
	text_printf(t, "\tmov.u32 %%cs_t, %%laneid;\n\tdiv.u32 %%cs_u, %%cs_t, %u;\n"
		"\trem.u32 %%cs_t, %%cs_t, %u;\n", p.lanes, p.lanes);
	if (i->noperands > 2 && stride->kind == PO_REG)
		text_printf(t, "\tmul.lo.u32 %%cs_u, %%cs_u, %s;\n",
			operand_name(w->f, stride->reg));
	else
		text_printf(t, "\tmul.lo.u32 %%cs_u, %%cs_u, %u;\n",
			i->noperands > 2 ? (unsigned)stride->imm : p.length);
	text_printf(t, "\tmul.lo.u32 %%cs_u, %%cs_u, %u;\n\tshr.u32 %%cs_u, %%cs_u, 3;\n"
		"\tmad.lo.u32 %%cs_t, %%cs_t, %u, %%cs_u;\n", p.bits, p.lane_bytes);
}

void operands_tile(const struct operands *w, const struct ptx_insn *i, const struct plan *p)
{
	if (!wmma_is(i))
		return;
	tile_offset(w, i);
	if (p->value[0].kind == VAL_SHARED)
		text_printf(w->out, "\tadd.u32 %%cs_v0, %%cs_v0, %%cs_t;\n");
	else
		text_printf(w->out, "\tmov.b64 %%cs_e, {%%cs_v0, %%cs_v1};\n"
			"\tcvt.u64.u32 %%cs_d, %%cs_t;\n\tadd.u64 %%cs_e, %%cs_e, %%cs_d;\n"
			"\tmov.b64 {%%cs_v0, %%cs_v1}, %%cs_e;\n");
}

void operands_loaded(const struct operands *w, const struct plan *p)
{
	unsigned words = plan_words(p);

	if (p->nvalues && p->value[p->nvalues - 1].kind == VAL_LOADED)
		text_printf(w->out, "\tld.shared.b32 %%cs_v%u, [%%cs_v0];\n", words - 1);
}

void operands_values(const struct operands *w, const struct plan *p, const char *prefix,
	unsigned first)
{
	unsigned k = first;

	for (unsigned v = 0; v < p->nvalues; v++) {
		const struct ptx_operand *o = p->value[v].o;
		enum plan_kind kind = (enum plan_kind)p->value[v].kind;

		if (kind == VAL_SHARED)
			shared_address(w, o, k, (p->generic || p->window) && !v);
		else if (kind == VAL_MAP)
			map_address(w, o, prefix, k);
		else if (kind == VAL_GLOBAL)
			global_address(w, o, p->generic && !v, k);
		else if (kind == VAL_TMEM)
			tensor_address(w, o, prefix, k);
		else if (kind == VAL_CANCELED)
			text_printf(w->out, "\tclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %%cs_q, "
				"%s;\n\tselp.b32 %s%u, 1, 0, %%cs_q;\n", operand_name(w->f, o->reg), prefix, k);
		else if (kind == VAL_LOADED)
			text_printf(w->out, "\tmov.b32 %s%u, 0;\n", prefix, k);
		else
			plain_value(w, o, kind, prefix, k);
		k += kind == VAL_U64 || kind == VAL_MAP || kind == VAL_GLOBAL ? 2 : 1;
	}
}
