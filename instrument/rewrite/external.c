/* external: see external.h. */
#include "external.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "instrument/record/record.h"
#include "libconsan/ptx/opcodes.h"
#include "operands.h"

/* In one statement */
#define MOST 8

bool external_is(const struct rewrite *r, const struct ptx_var *v)
{
	return r->external && v && !v->func && v->space == PS_global;
}

size_t external_count(const struct ptx_module *m)
{
	size_t n = 0;

	for (size_t k = 0; k < m->nvar; k++)
		n += m->var[k].space == PS_global;
	return n;
}

void external_address(struct text *t, const struct rewrite *r, const struct ptx_var *v,
	const char *reg)
{
	size_t k = 0;

	for (const struct ptx_var *w = r->module->var; w < v; w++)
		k += w->space == PS_global;
	text_printf(t, "\tld.const.b64 %s, [" RECORD_VARIABLE "%u+%zu];\n", reg, r->number,
		sizeof(struct record_params) + 8 * k);
}

static void find(const struct rewrite *r, const struct ptx_operand *o, unsigned n,
	const struct ptx_var **var, unsigned *nvar)
{
	for (; n--; o++) {
		unsigned k = 0;

		if (o->kind == PO_VEC || o->kind == PO_PAIR || o->kind == PO_TADDR)
			find(r, o->list, o->n, var, nvar);
		if ((o->kind != PO_SYM && o->kind != PO_ADDR) || !external_is(r, o->var))
			continue;
		while (k < *nvar && var[k] != o->var)
			k++;
		if (k == *nvar && k < MOST)
			var[(*nvar)++] = o->var;
	}
}

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Copies the statement with registers in place of the names. */
static void replace_names(struct text *t, const char *s, size_t n, const struct ptx_var **var,
	unsigned nvar)
{
	for (size_t at = 0; at < n;) {
		size_t from = at;
		unsigned k = 0;

		while (at < n && in_name(s[at]))
			at++;
		for (; at > from && k < nvar; k++)
			if (strlen(var[k]->name) == at - from && !memcmp(var[k]->name, s + from, at - from)
					&& s[at] != '.' && (!from || s[from - 1] != '.'))
				break;
		if (at > from && k < nvar)
			text_printf(t, "%%cs_x%u", k);
		else
			text_add(t, s + from, at - from + (at == from));
		at += at == from;
	}
}

/* mov of an address, which may have an offset */
static void move(struct text *t, const struct ptx_func *f, const struct ptx_insn *i)
{
	const struct ptx_operand *to = &i->operand[0], *from = &i->operand[1];

	if (from->imm)
		text_printf(t, "\tadd.s64 %%cs_x0, %%cs_x0, %lld;\n", (long long)from->imm);
	if (i->guard != PTX_NO_REG)
		text_printf(t, "\t@%s%s", i->guard_negated ? "!" : "", operand_name(f, i->guard));
	text_printf(t, "\tmov.b64 %s", operand_name(f, to->reg));
	operand_component(t, to);
	text_printf(t, ", %%cs_x0;\n");
}

bool external_statement(struct text *t, const struct rewrite *r, const struct ptx_func *f,
	const struct ptx_insn *i)
{
	const struct ptx_var *var[MOST];
	unsigned n = 0;
	char reg[16];

	if (!r->external)
		return false;
	find(r, i->operand, i->noperands, var, &n);
	if (!n)
		return false;
	text_printf(t, "{\n\t.reg .b64 %%cs_x<%u>;\n", n);
	for (unsigned k = 0; k < n; k++) {
		snprintf(reg, sizeof reg, "%%cs_x%u", k);
		external_address(t, r, var[k], reg);
	}
	if (i->op == OP_mov && i->operand[0].kind == PO_REG && i->operand[1].kind == PO_SYM) {
		move(t, f, i);
	} else {
		text_printf(t, "\t");
		replace_names(t, f->module->text + i->text_at, i->text_len, var, n);
		text_printf(t, ";\n");
	}
	text_printf(t, "}\n");
	return true;
}
