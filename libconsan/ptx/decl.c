/* decl: registers, variables, parameter lists.
 *
 * Does not place .global, .const and .shared: addresses are the executor's. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((uint64_t)1 << 40)
#define MAX_REGISTERS (1u << 20)

struct decl {
	enum ptx_space space;
	enum ptx_type type;
	unsigned vec;
	uint64_t align;            /* 0: by type */
	bool managed, ptr;
};

static bool space_word(const struct lex *l, enum ptx_space *s)
{
	static const struct { const char *word; enum ptx_space space; } spaces[] = {
		{ "global", PS_global }, { "const", PS_const }, { "shared", PS_shared },
		{ "shared::cta", PS_shared }, { "local", PS_local }, { "param", PS_param },
	};

	for (size_t k = 0; k < ARRAY_SIZE(spaces); k++) {
		if (lex_word(l, spaces[k].word)) {
			*s = spaces[k].space;
			return true;
		}
	}
	return false;
}

static bool alignment(struct parser *p, uint64_t *align)
{
	lex_next(&p->l);
	if (p->l.kind == T_INT && (!p->l.value || p->l.value & (p->l.value - 1) ||
	    p->l.value > 1 << 20))
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "an alignment is a power of two");
	return parse_number(p, align);
}

/* .attribute(.managed, .unified(n, n)) */
static bool attributes(struct parser *p, struct decl *d)
{
	unsigned depth = 0;

	lex_next(&p->l);
	do {
		if (p->l.kind == T_END)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the file ends inside .attribute");
		if (lex_word(&p->l, "managed"))
			d->managed = true;
		depth += lex_is(&p->l, '(');
		depth -= lex_is(&p->l, ')') && depth;
		lex_next(&p->l);
	} while (depth);
	return true;
}

/* The words between the state space and the name. */
static bool head(struct parser *p, struct decl *d)
{
	enum ptx_space pointee;
	struct lex *l = &p->l;

	d->vec = 1;
	while (l->kind == T_WORD) {
		enum ptx_type t = table_type(l->at, l->n);

		if (lex_word(l, "align")) {
			uint64_t align;

			if (!alignment(p, &align))
				return false;
			if (!d->ptr) /* .ptr .align is the alignment of the pointee */
				d->align = align;
			continue;
		}
		if (lex_word(l, "attribute")) {
			if (!attributes(p, d))
				return false;
			continue;
		}
		if (lex_word(l, "ptr"))
			d->ptr = true;
		else if (lex_word(l, "v2"))
			d->vec = 2;
		else if (lex_word(l, "v4"))
			d->vec = 4;
		else if (t && !d->type)
			d->type = t;
		else if (!d->ptr || !space_word(l, &pointee))
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "unexpected .%.*s in a declaration",
				(int)(l->n < 40 ? l->n : 40), l->at);
		lex_next(l);
	}
	if (!d->type)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the declaration has no type");
	return true;
}

/* ---- registers ---- */

static char *add_digits(char *at, uint64_t v)
{
	char digits[20];
	size_t n = sizeof digits;

	do
		digits[--n] = (char)('0' + v % 10);
	while (v /= 10);
	memcpy(at, digits + n, sizeof digits - n);
	return at + sizeof digits - n;
}

static bool add_registers(struct parser *p, const struct decl *d, struct name *n,
	bool range, uint64_t count)
{
	size_t first = p->regs.n;
	char *at;

	if (count > MAX_REGISTERS || first + count > MAX_REGISTERS)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "more than %u registers", MAX_REGISTERS);
	at = arena_alloc(p->keep, (size_t)count * (n->n + 8));
	vec_reserve(&p->regs, first + (size_t)count);
	for (uint64_t k = 0; k < count; k++) {
		p->regs.at[p->regs.n++] = (struct ptx_reg){
			.type = (uint8_t)d->type, .vec = (uint8_t)d->vec, .name = at };
		memcpy(at, n->at, n->n);
		at += n->n;
		if (range)
			at = add_digits(at, k);
		at++;
	}
	return true;
}

/* .reg {.v4} .type name {, name<count>}; */
bool decl_registers(struct parser *p)
{
	struct decl d = { .space = PS_reg };
	struct lex *l = &p->l;

	lex_next(l);
	if (!head(p, &d))
		return false;
	do {
		struct name *n;
		struct bind *b;
		uint64_t count = 1;
		uint32_t first = (uint32_t)p->regs.n;
		bool range;

		if (l->kind != T_NAME)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a register name");
		n = name_of(p, l->at, l->n);
		range = l->p[0] == '<';
		b = scope_bind(p, n, range ? B_RANGE : B_REG);
		if (!b)
			return false;
		lex_next(l);
		if (parse_take(p, '<')) {
			if (!parse_number(p, &count) || !parse_expect(p, '>'))
				return false;
			if (!range)
				return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "blank before '<'");
		}
		b->first = first;
		b->count = (uint32_t)count;
		if (!add_registers(p, &d, n, range, count))
			return false;
	} while (parse_take(p, ','));
	return parse_expect(p, ';');
}

/* ---- variables ---- */

/* [a][b].. behind the name: total number of elements, 0 for [] */
static bool dimensions(struct parser *p, const struct decl *d, struct shape *s, uint64_t *total)
{
	uint64_t dim[MAX_DIMS + 1], n;

	while (lex_is(&p->l, '[')) {
		lex_next(&p->l);
		if (s->n == MAX_DIMS)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "too many dimensions");
		dim[s->n] = 0;
		if (lex_is(&p->l, ']') && !s->n)
			s->open = true;
		else if (!parse_number(p, &dim[s->n]))
			return false;
		s->n++;
		if (!parse_expect(p, ']'))
			return false;
	}
	if (d->vec > 1)
		dim[s->n++] = d->vec;
	n = 1;
	s->extent[s->n] = 1;
	for (unsigned k = s->n; k-- > 0;) {
		if (dim[k] > MAX_BYTES || n * dim[k] > MAX_BYTES)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the array is too large");
		s->extent[k] = n *= dim[k];
	}
	*total = n;
	return true;
}

/* The name, the dimensions after it, and the initialiser. */
static bool declarator(struct parser *p, const struct decl *d, struct ptx_var *v,
	struct shape *s, struct name **name)
{
	unsigned bits = ptx_type_bits(d->type);
	uint64_t total = 0, natural;

	if (bits % 8 || d->type == TY_b1024)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "a variable cannot be of type .%s",
			table_type_name(d->type));
	if (p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a name");
	*name = name_of(p, p->l.at, p->l.n);
	lex_next(&p->l);
	if (!dimensions(p, d, s, &total))
		return false;
	natural = (uint64_t)bits / 8 * d->vec;
	natural = natural > 16 ? 16 : natural;
	v->space = (uint8_t)d->space;
	v->type = (uint8_t)d->type;
	v->vec = (uint8_t)d->vec;
	v->managed = d->managed;
	v->ptr = d->ptr;
	v->align = (uint32_t)(d->align ? d->align : natural ? natural : 1);
	v->size = total * (bits / 8);
	if (v->size > MAX_BYTES)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the array is too large");
	return true;
}

static void place_in_frame(struct parser *p, struct ptx_var *v)
{
	p->frame = (p->frame + v->align - 1) & ~(uint64_t)(v->align - 1);
	v->offset = p->frame;
	p->frame += v->size;
	if (p->frame > p->fn->f.local_bytes)
		p->fn->f.local_bytes = p->frame;
}

static struct ptx_var *new_variable(struct parser *p, struct name *name, const struct ptx_var *like)
{
	struct bind *old = name->bind, *b;
	struct ptx_var *v;

	/* an .extern declaration and the definition are one variable */
	if (old && old->kind == B_VAR && !p->fn && !old->depth &&
	    (old->var->is_extern || like->is_extern)) {
		v = old->var;
		if (like->is_extern)
			return v;
		*v = (struct ptx_var){ .name = v->name, .index = v->index };
	} else {
		b = scope_bind(p, name, B_VAR);
		if (!b)
			return NULL;
		b->var = v = arena_alloc(&p->tmp, sizeof *v);
		v->name = arena_strndup(p->keep, name->at, name->n);
		v->index = (uint32_t)(p->fn ? p->locals.n : p->vars.n);
		if (p->fn)
			vec_push(&p->locals, v);
		else
			vec_push(&p->vars, v);
	}
	*v = (struct ptx_var){ .name = v->name, .index = v->index, .space = like->space,
		.type = like->type, .vec = like->vec, .managed = like->managed, .ptr = like->ptr,
		.align = like->align, .size = like->size, .is_extern = like->is_extern,
		.visible = like->visible, .weak = like->weak, .is_param = like->space == PS_param,
		.func = p->fn ? &p->fn->f : NULL };
	return v;
}

/* Opaque variables may be initialised with { field = value, .. }. */
static bool skip_opaque(struct parser *p)
{
	if (lex_is(&p->l, '{'))
		return lex_skip_block(&p->l) ||
			parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the file ends inside an initialiser");
	return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected '{'");
}

bool decl_variable(struct parser *p, bool is_extern, bool visible, bool weak)
{
	struct decl d = { 0 };

	if (!space_word(&p->l, &d.space))
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a state space");
	lex_next(&p->l);
	if (!head(p, &d))
		return false;
	do {
		struct ptx_var like = { .is_extern = is_extern, .visible = visible, .weak = weak };
		struct shape shape = { 0 };
		struct name *name;
		struct ptx_var *v;

		if (!declarator(p, &d, &like, &shape, &name))
			return false;
		v = new_variable(p, name, &like);
		if (!v)
			return false;
		if (parse_take(p, '=')) {
			if (d.type >= TY_texref && d.type <= TY_surfref ? !skip_opaque(p)
			    : !init_parse(p, v, &shape))
				return false;
		}
		if (p->fn && (d.space == PS_local || d.space == PS_param))
			place_in_frame(p, v);
	} while (parse_take(p, ','));
	return parse_expect(p, ';');
}

/* ---- parameter lists ---- */

bool decl_params(struct parser *p, struct ptx_var **out, size_t *n, uint64_t *bytes)
{
	VEC(struct ptx_var) all = { 0 };
	uint64_t at = 0;
	bool ok = parse_expect(p, '(');

	while (ok && !lex_is(&p->l, ')')) {
		struct decl d = { .space = PS_param };
		struct shape shape = { 0 };
		struct ptx_var v = { .is_param = true, .index = (uint32_t)all.n };
		struct name *name = NULL;

		if (lex_word(&p->l, "reg"))
			ok = parse_fail(p, CONSAN_ERR_UNSUPPORTED, "parameters in registers are not supported");
		else if (!lex_word(&p->l, "param"))
			ok = parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected .param");
		if (!ok)
			break;
		lex_next(&p->l);
		ok = head(p, &d) && declarator(p, &d, &v, &shape, &name);
		if (!ok)
			break;
		at = (at + v.align - 1) & ~(uint64_t)(v.align - 1);
		v.name = arena_strndup(p->keep, name->at, name->n);
		v.offset = at;
		at += v.size;
		vec_push(&all, v);
		if (!parse_take(p, ','))
			break;
	}
	ok = ok && parse_expect(p, ')');
	if (ok && all.n) {
		*out = arena_alloc(p->keep, all.n * sizeof **out);
		memcpy(*out, all.at, all.n * sizeof **out);
	}
	*n = ok ? all.n : 0;
	if (bytes)
		*bytes = at;
	vec_free(&all);
	return ok;
}

bool decl_bind(struct parser *p, struct ptx_var *v, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct bind *b;

		if (!strcmp(v[k].name, "_"))
			continue;
		b = scope_bind(p, name_of(p, v[k].name, strlen(v[k].name)), B_VAR);
		if (!b)
			return false;
		b->var = &v[k];
	}
	return true;
}
