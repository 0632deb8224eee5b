/* print: the IR as PTX that parses to the same IR.
 *
 * Scopes are flattened: a name that several registers or variables share, or that hides one of the
 * module, gets "$" and its number. Source places are printed with the chain of their callers,
 * outermost first, as .loc requires. */
#include "opcodes.h"
#include "table.h"
#include <stdlib.h>
#include <string.h>

/* ---- a set of strings with numbers ---- */

struct strings {
	VEC(const char *) at;
	VEC(uint32_t) uses;
	uint32_t *slot;            /* 1 + index */
	size_t cap;
};

static size_t hash(const char *s)
{
	size_t h = 14695981039346656037u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 1099511628211u;
	return h ^ h >> 29;
}

static uint32_t *slot_of(const struct strings *t, const char *s)
{
	for (size_t k = hash(s);; k++) {
		uint32_t *slot = &t->slot[k & (t->cap - 1)];

		if (!*slot || !strcmp(t->at.at[*slot - 1], s))
			return slot;
	}
}

static uint32_t strings_add(struct strings *t, const char *s)
{
	uint32_t *slot;

	if (2 * t->at.n >= t->cap) {
		t->cap = t->cap ? 2 * t->cap : 64;
		free(t->slot);
		t->slot = base_alloc(t->cap * sizeof *t->slot);
		for (size_t k = 0; k < t->at.n; k++)
			*slot_of(t, t->at.at[k]) = (uint32_t)k + 1;
	}
	slot = slot_of(t, s);
	if (!*slot) {
		vec_push(&t->at, s);
		vec_push(&t->uses, 0);
		*slot = (uint32_t)t->at.n;
	}
	t->uses.at[*slot - 1]++;
	return *slot - 1;
}

static uint32_t strings_uses(const struct strings *t, const char *s)
{
	uint32_t *slot = t->cap ? slot_of(t, s) : NULL;

	return slot && *slot ? t->uses.at[*slot - 1] : 0;
}

static void strings_free(struct strings *t)
{
	vec_free(&t->at);
	vec_free(&t->uses);
	free(t->slot);
	memset(t, 0, sizeof *t);
}

/* ---- names ---- */

struct printer {
	const struct ptx_module *m;
	const struct ptx_func *f;
	struct text *out;
	struct strings module;     /* names of the module */
	struct strings local;      /* names of the function */
	struct strings files, functions;
	const struct site_loc *loc;
};

static void say(struct printer *p, const char *s)
{
	text_add(p->out, s, strlen(s));
}

static bool shared_name(const struct printer *p, const char *name)
{
	return strings_uses(&p->local, name) > 1 || strings_uses(&p->module, name);
}

static void print_reg(struct printer *p, uint32_t reg)
{
	const char *name = p->f->reg[reg].name;

	say(p, name);
	if (shared_name(p, name))
		text_printf(p->out, "$%u", reg);
}

static void print_var(struct printer *p, const struct ptx_var *v)
{
	say(p, v->name);
	if (p->f && v->func == p->f && ptx_var_in(v, p->f->var, p->f->nvar) &&
	    shared_name(p, v->name))
		text_printf(p->out, "$v%u", v->index);
}

static void local_names(struct printer *p, const struct ptx_func *f)
{
	strings_free(&p->local);
	for (size_t k = 0; k < f->nreg; k++)
		strings_add(&p->local, f->reg[k].name);
	for (size_t k = 0; k < f->nvar; k++)
		strings_add(&p->local, f->var[k].name);
	for (size_t k = 0; k < f->nparam; k++)
		strings_add(&p->local, f->param[k].name);
	for (size_t k = 0; k < f->nret; k++)
		strings_add(&p->local, f->ret[k].name);
}

/* ---- declarations ---- */

static const char *space_name(unsigned space)
{
	switch ((enum ptx_space)space) {
	case PS_const: return ".const";
	case PS_global: return ".global";
	case PS_local: return ".local";
	case PS_param: return ".param";
	case PS_shared: return ".shared";
	case PS_none: case PS_reg: case PS_sreg: case PS_shared_cluster: break;
	}
	return "";
}

static void print_head(struct printer *p, const struct ptx_var *v)
{
	unsigned bytes = ptx_type_bits(v->type) / 8;

	text_printf(p->out, "%s ", space_name(v->space));
	if (v->managed)
		say(p, ".attribute(.managed) ");
	text_printf(p->out, ".align %u ", v->align);
	if (v->vec > 1)
		text_printf(p->out, ".v%u ", v->vec);
	text_printf(p->out, ".%s ", table_type_name(v->type));
	if (v->ptr)
		say(p, ".ptr ");
	print_var(p, v);
	if (!v->size)
		say(p, "[]");
	else if (v->size != bytes * v->vec)
		text_printf(p->out, "[%llu]", (unsigned long long)(v->size / bytes / v->vec));
}

static void print_reloc(struct printer *p, const struct ptx_reloc *r)
{
	if (r->bytes == 1)
		text_printf(p->out, "0x%llX(", 0xffull << 8 * r->shift);
	text_printf(p->out, r->generic ? "generic(%s)" : "%s", r->name);
	if (r->addend)
		text_printf(p->out, "%+lld", (long long)r->addend);
	if (r->bytes == 1)
		say(p, ")");
}

static void print_element(struct printer *p, const struct ptx_var *v, uint64_t at)
{
	unsigned bytes = ptx_type_bits(v->type) / 8;
	uint64_t x = 0;

	memcpy(&x, v->init + at, bytes < 8 ? bytes : 8);
	if (v->type == TY_f32)
		text_printf(p->out, "0f%08llX", (unsigned long long)x);
	else if (v->type == TY_f64)
		text_printf(p->out, "0d%016llX", (unsigned long long)x);
	else
		text_printf(p->out, "%llu", (unsigned long long)x);
}

static void print_init(struct printer *p, const struct ptx_var *v)
{
	unsigned bytes = ptx_type_bits(v->type) / 8;
	bool list = v->size > bytes;
	uint64_t used = v->size;
	size_t r = 0;

	while (used > bytes && !v->init[used - 1])
		used--;
	if (v->nreloc && v->reloc[v->nreloc - 1].offset + bytes > used)
		used = v->reloc[v->nreloc - 1].offset + bytes;
	say(p, list ? " = {" : " = ");
	for (uint64_t at = 0; at < used; at += bytes) {
		if (at)
			say(p, at / bytes % 16 ? ", " : ",\n\t");
		if (r < v->nreloc && v->reloc[r].offset == at)
			print_reloc(p, &v->reloc[r++]);
		else
			print_element(p, v, at);
	}
	if (list)
		say(p, "}");
}

static void print_variable(struct printer *p, const struct ptx_var *v)
{
	if (v->is_extern)
		say(p, ".extern ");
	if (v->visible)
		say(p, ".visible ");
	if (v->weak)
		say(p, ".weak ");
	print_head(p, v);
	if (v->init && v->size)
		print_init(p, v);
	say(p, ";\n");
}

static void print_params(struct printer *p, const struct ptx_var *v, size_t n)
{
	say(p, "(");
	for (size_t k = 0; k < n; k++) {
		say(p, k ? ",\n\t" : "\n\t");
		print_head(p, &v[k]);
	}
	say(p, ")");
}

static void print_triple(struct printer *p, const char *name, const uint32_t v[3])
{
	if (v[0])
		text_printf(p->out, "%s %u, %u, %u\n", name, v[0], v[1], v[2]);
}

static void print_header(struct printer *p, const struct ptx_func *f)
{
	if (f->is_extern)
		say(p, ".extern ");
	if (f->visible)
		say(p, ".visible ");
	if (f->weak)
		say(p, ".weak ");
	say(p, f->entry ? ".entry " : ".func ");
	if (f->nret) {
		print_params(p, f->ret, f->nret);
		say(p, " ");
	}
	say(p, f->name);
	print_params(p, f->param, f->nparam);
	say(p, "\n");
	if (f->noreturn)
		say(p, ".noreturn\n");
	print_triple(p, ".maxntid", f->maxntid);
	print_triple(p, ".reqntid", f->reqntid);
	print_triple(p, ".reqnctapercluster", f->reqnctapercluster);
	if (f->explicitcluster)
		say(p, ".explicitcluster\n");
	if (f->minnctapersm)
		text_printf(p->out, ".minnctapersm %u\n", f->minnctapersm);
	if (f->maxnreg)
		text_printf(p->out, ".maxnreg %u\n", f->maxnreg);
	if (f->maxclusterrank)
		text_printf(p->out, ".maxclusterrank %u\n", f->maxclusterrank);
}

/* ---- instructions ---- */

static void print_operand(struct printer *p, const struct ptx_operand *o);

static void print_list(struct printer *p, const struct ptx_operand *o, size_t n,
	const char *between)
{
	for (size_t k = 0; k < n; k++) {
		if (k)
			say(p, between);
		print_operand(p, &o[k]);
	}
}

static void print_component(struct printer *p, const struct ptx_operand *o)
{
	if (o->elem)
		text_printf(p->out, ".%c", "xyzw"[o->elem - 1]);
	if (o->nparts)
		text_printf(p->out, ".%c", o->part_bits == 8 ? 'b' : 'h');
	for (unsigned k = o->nparts; k-- > 0;)
		text_printf(p->out, "%u", o->parts >> 4 * k & 15);
}

/* The text between the brackets of PO_ADDR. */
static void print_address(struct printer *p, const struct ptx_operand *o)
{
	if (o->reg != PTX_NO_REG) {
		print_reg(p, o->reg);
		print_component(p, o);
	} else if (o->var) {
		print_var(p, o->var);
	} else {
		text_printf(p->out, "%lld", (long long)o->imm);
		return;
	}
	if (o->imm)
		text_printf(p->out, "%+lld", (long long)o->imm);
}

static void print_operand(struct printer *p, const struct ptx_operand *o)
{
	if (o->negated)
		say(p, "!");
	if (o->minus)
		say(p, "-");
	switch ((enum ptx_operand_kind)o->kind) {
	case PO_NONE:
		break;
	case PO_REG:
		print_reg(p, o->reg);
		print_component(p, o);
		break;
	case PO_IMM:
		text_printf(p->out, "%lld", (long long)o->imm);
		break;
	case PO_F32:
		text_printf(p->out, "0f%08X", (unsigned)(uint32_t)o->imm);
		break;
	case PO_F64:
		text_printf(p->out, "0d%016llX", (unsigned long long)o->imm);
		break;
	case PO_SREG:
		say(p, table_sreg_name((enum ptx_sreg)o->sreg));
		break;
	case PO_SYM:
		print_var(p, o->var);
		if (o->imm)
			text_printf(p->out, "%+lld", (long long)o->imm);
		break;
	case PO_FUNC:
		say(p, o->func->name);
		break;
	case PO_ADDR:
		say(p, "[");
		print_address(p, o);
		say(p, "]");
		break;
	case PO_TADDR:
		say(p, "[");
		print_address(p, &o->list[0]);
		say(p, ", ");
		print_list(p, o->list + 1, o->n - 1u, ", ");
		say(p, "]");
		break;
	case PO_VEC:
		say(p, "{");
		print_list(p, o->list, o->n, ", ");
		say(p, "}");
		break;
	case PO_PAIR:
		print_list(p, o->list, o->n, "|");
		break;
	case PO_LABEL:
		text_printf(p->out, "$L%lld", (long long)o->imm);
		break;
	case PO_SINK:
		say(p, "_");
		break;
	}
}

void ptx_statement(const struct ptx_module *m, const struct ptx_insn *i, struct text *out)
{
	const char *s = m->text + i->text_at, *end = s + i->text_len;
	bool blank = false;

	if (!i->text_len)
		text_add(out, "ret", 3);
	while (s < end) {
		if (s[0] == '/' && s + 1 < end && s[1] == '/') {
			while (s < end && *s != '\n')
				s++;
		} else if (s[0] == '/' && s + 1 < end && s[1] == '*') {
			for (s += 2; s < end && !(s[-1] == '*' && s[0] == '/'); s++)
				;
			s++;
			blank = true;
		} else if ((unsigned char)*s <= ' ') {
			blank = true;
			s++;
		} else {
			if (blank)
				text_add(out, " ", 1);
			blank = false;
			text_add(out, s++, 1);
		}
	}
}

/* Prints the statement as written, except for the guard, whose name may have changed. */
static void print_unknown(struct printer *p, const struct ptx_insn *i)
{
	struct text t = { 0 };
	const char *s;

	ptx_statement(p->m, i, &t);
	s = t.at;
	if (i->guard != PTX_NO_REG) {
		s += strspn(s, "@! ");
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	say(p, s);
	text_free(&t);
}

static void print_call(struct printer *p, const struct ptx_insn *i, uint32_t at)
{
	if (i->nret) {
		say(p, "(");
		print_list(p, i->ret, i->nret, ", ");
		say(p, "), ");
	}
	print_operand(p, i->operand);
	if (i->narg || i->prototype) {
		say(p, ", (");
		print_list(p, i->arg, i->narg, ", ");
		say(p, ")");
	}
	if (i->prototype)
		text_printf(p->out, ", $P%u", at);
}

static void print_instruction(struct printer *p, const struct ptx_insn *i, uint32_t at)
{
	if (i->prototype) {
		text_printf(p->out, "$P%u: .callprototype ", at);
		if (i->prototype->nret)
			print_params(p, i->prototype->ret, i->prototype->nret);
		say(p, " _ ");
		print_params(p, i->prototype->param, i->prototype->nparam);
		say(p, i->prototype->noreturn ? " .noreturn;\n" : ";\n");
	}
	if (i->op == OP_brx_idx) {
		text_printf(p->out, "$T%u: .branchtargets ", at);
		for (uint32_t k = 0; k < i->ntarget; k++)
			text_printf(p->out, "%s$L%u", k ? ", " : "", i->target[k]);
		say(p, ";\n");
	}
	say(p, "\t");
	if (i->guard != PTX_NO_REG) {
		say(p, i->guard_negated ? "@!" : "@");
		print_reg(p, i->guard);
		say(p, " ");
	}
	if (i->op == OP_unknown) {
		print_unknown(p, i);
		say(p, ";\n");
		return;
	}
	say(p, ptx_op_name(i->op));
	for (unsigned k = 0; k < i->nmods; k++)
		say(p, ptx_mod_name((enum ptx_mod)i->mod[k]));
	if (i->noperands)
		say(p, " ");
	if (i->op == OP_call)
		print_call(p, i, at);
	else
		print_list(p, i->operand, i->noperands, ", ");
	if (i->op == OP_brx_idx)
		text_printf(p->out, ", $T%u", at);
	say(p, ";\n");
}

/* ---- places ---- */

static void print_position(struct printer *p, const struct site_loc *l)
{
	text_printf(p->out, "%u %u %u", strings_add(&p->files, l->file) + 1, l->line, l->col);
}

static void print_loc(struct printer *p, const struct site_loc *l)
{
	const struct site_loc *chain[64];
	unsigned n = 0;

	for (; l && n < ARRAY_SIZE(chain); l = l->inlined_at)
		chain[n++] = l;
	while (n--) {
		say(p, "\t.loc ");
		print_position(p, chain[n]);
		if (chain[n]->function)
			text_printf(p->out, ", function_name $S%u",
				strings_add(&p->functions, chain[n]->function));
		if (chain[n]->inlined_at) {
			say(p, ", inlined_at ");
			print_position(p, chain[n]->inlined_at);
		}
		say(p, "\n");
	}
}

static void print_tables(struct printer *p)
{
	for (size_t k = 0; k < p->files.at.n; k++)
		text_printf(p->out, ".file %zu \"%s\"\n", k + 1, p->files.at.at[k]);
	if (!p->functions.at.n)
		return;
	say(p, ".section .debug_str\n{\n");
	for (size_t k = 0; k < p->functions.at.n; k++) {
		text_printf(p->out, "$S%zu: // %s\n.b8 ", k, p->functions.at.at[k]);
		for (const char *c = p->functions.at.at[k]; *c; c++)
			text_printf(p->out, "%u,", (unsigned char)*c);
		say(p, "0\n");
	}
	say(p, "}\n");
}

/* ---- functions, the module ---- */

static void print_registers(struct printer *p, const struct ptx_func *f)
{
	for (uint32_t k = 0; k < f->nreg;) {
		const struct ptx_reg *first = &f->reg[k];

		say(p, "\t.reg ");
		if (first->vec > 1)
			text_printf(p->out, ".v%u ", first->vec);
		text_printf(p->out, ".%s ", table_type_name(first->type));
		for (unsigned n = 0; n < 8 && k < f->nreg && f->reg[k].type == first->type &&
		     f->reg[k].vec == first->vec; n++, k++) {
			say(p, n ? ", " : "");
			print_reg(p, k);
		}
		say(p, ";\n");
	}
}

static void print_body(struct printer *p, const struct ptx_func *f)
{
	bool *label = base_alloc(f->ninsn * sizeof *label);

	p->f = f;
	p->loc = NULL;
	local_names(p, f);
	print_header(p, f);
	say(p, "{\n");
	print_registers(p, f);
	for (size_t k = 0; k < f->nvar; k++) {
		say(p, "\t");
		print_variable(p, &f->var[k]);
	}
	for (size_t k = 0; k < f->ninsn; k++) {
		if (f->insn[k].op == OP_bra)
			label[f->insn[k].operand->imm] = true;
		for (uint32_t t = 0; t < f->insn[k].ntarget; t++)
			label[f->insn[k].target[t]] = true;
	}
	for (uint32_t k = 0; k < f->ninsn; k++) {
		const struct ptx_insn *i = &f->insn[k];

		if (label[k])
			text_printf(p->out, "$L%u:\n", k);
		if (i->loc != p->loc)
			print_loc(p, p->loc = i->loc);
		print_instruction(p, i, k);
	}
	say(p, "}\n\n");
	free(label);
	p->f = NULL;
}

void ptx_print(const struct ptx_module *m, struct text *out)
{
	struct printer p = { .m = m, .out = out };

	text_printf(out, ".version %u.%u\n.target sm_%u", m->version / 10, m->version % 10, m->sm);
	if (m->sm_suffix)
		text_add(out, &m->sm_suffix, 1);
	say(&p, m->debug ? ", debug\n.address_size 64\n\n" : "\n.address_size 64\n\n");
	for (size_t k = 0; k < m->nvar; k++)
		strings_add(&p.module, m->var[k].name);
	for (size_t k = 0; k < m->nfunc; k++)
		strings_add(&p.module, m->func[k].name);
	/* declared first, so that initialisers and calls find them */
	for (size_t k = 0; k < m->nfunc; k++) {
		if (m->func[k].entry && m->func[k].ninsn)
			continue;
		print_header(&p, &m->func[k]);
		say(&p, ";\n");
	}
	for (size_t k = 0; k < m->nvar; k++)
		print_variable(&p, &m->var[k]);
	say(&p, "\n");
	for (int entries = 0; entries < 2; entries++)
		for (size_t k = 0; k < m->nfunc; k++)
			if (m->func[k].ninsn && m->func[k].entry == entries)
				print_body(&p, &m->func[k]);
	print_tables(&p);
	strings_free(&p.module);
	strings_free(&p.local);
	strings_free(&p.files);
	strings_free(&p.functions);
}
