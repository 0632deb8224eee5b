/* init: initialisers of variables: a byte image, and the symbols whose
 * addresses are to be added in. Does not know any address. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

#define MAX_IMAGE ((uint64_t)1 << 28)

struct image {
	VEC(unsigned char) bytes;
	VEC(struct ptx_reloc) reloc;
	struct ptx_var *var;
	const struct shape *shape;
	unsigned element;          /* bytes */
};

static void put(struct image *m, uint64_t at, uint64_t v)
{
	size_t want = (size_t)at + m->element, had = m->bytes.n;

	if (want > had) {
		vec_reserve(&m->bytes, want);
		memset(m->bytes.at + had, 0, want - had);
		m->bytes.n = want;
	}
	for (unsigned k = 0; k < m->element && k < 8; k++)
		m->bytes.at[at + k] = (unsigned char)(v >> 8 * k);
}

static uint64_t double_as(enum ptx_type t, uint64_t bits)
{
	double d;
	float f;
	uint32_t w;

	memcpy(&d, &bits, sizeof d);
	if (ptx_type_bits(t) != 32)
		return bits;
	f = (float)d;
	memcpy(&w, &f, sizeof w);
	return w;
}

static uint64_t float_as(enum ptx_type t, uint32_t bits)
{
	double d;
	float f;
	uint64_t w;

	if (t != TY_f64)
		return bits;
	memcpy(&f, &bits, sizeof f);
	d = f;
	memcpy(&w, &d, sizeof w);
	return w;
}

/* sym {+ n}, generic(sym) {+ n}; behind a mask also in parentheses */
static bool address(struct parser *p, struct image *m, uint64_t at, uint64_t mask)
{
	struct ptx_reloc r = { .offset = at, .bytes = (uint8_t)m->element };
	struct lex *l = &p->l;
	bool parens = false;

	if (mask) {
		while (r.shift < 8 && mask != (uint64_t)0xff << 8 * r.shift)
			r.shift++;
		if (r.shift == 8)
			return parse_fail(p, CONSAN_ERR_UNSUPPORTED, "a mask that is not one byte");
		r.bytes = 1;
	}
	if (lex_name(l, "generic") && *l->p == '(') {
		r.generic = parens = true;
		lex_next(l);
		lex_next(l);
	}
	if (l->kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a symbol");
	r.name = arena_strndup(p->keep, l->at, l->n);
	lex_next(l);
	if (parens && !parse_expect(p, ')'))
		return false;
	while (lex_is(l, '+') || lex_is(l, '-')) {
		bool minus = lex_is(l, '-');
		uint64_t v;

		lex_next(l);
		if (lex_is(l, '-')) {
			minus = !minus;
			lex_next(l);
		}
		if (!parse_number(p, &v))
			return false;
		r.addend = (int64_t)((uint64_t)r.addend + (minus ? -v : v));
	}
	put(m, at, 0);
	vec_push(&m->reloc, r);
	return true;
}

static bool scalar(struct parser *p, struct image *m, uint64_t at)
{
	struct lex *l = &p->l;
	bool minus = lex_is(l, '-');
	uint64_t v;

	if (at >= MAX_IMAGE)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the initialiser is too long");
	if (l->kind == T_NAME)
		return address(p, m, at, 0);
	if (minus)
		lex_next(l);
	v = l->value;
	switch (l->kind) {
	case T_INT:
		if (m->var->type == TY_f32 || m->var->type == TY_f64) {
			double d = (double)v;

			memcpy(&v, &d, sizeof v);
			v = double_as(m->var->type, v);
			break;
		}
		lex_next(l);
		if (parse_take(p, '('))
			return address(p, m, at, v) && parse_expect(p, ')');
		put(m, at, minus ? -v : v);
		return true;
	case T_F32:
		v = float_as(m->var->type, (uint32_t)v);
		break;
	case T_F64:
		v = double_as(m->var->type, v);
		break;
	case T_END: case T_NAME: case T_WORD: case T_STRING: case T_PUNCT: case T_BAD:
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected an initial value");
	}
	if (minus)
		v ^= (uint64_t)1 << (8 * m->element - 1);
	put(m, at, v);
	lex_next(l);
	return true;
}

/* One item of this level: a scalar, or {items of the next level}. Inner braces
 * may be left out, as in C. */
static bool item(struct parser *p, struct image *m, unsigned level, uint64_t at)
{
	uint64_t step, k = 0;

	if (!lex_is(&p->l, '{'))
		return scalar(p, m, at);
	if (level >= m->shape->n)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "braces around a scalar");
	lex_next(&p->l);
	while (!lex_is(&p->l, '}')) {
		bool braces = lex_is(&p->l, '{');

		step = (braces ? m->shape->extent[level + 1] : 1) * m->element;
		if (!step || k % step)
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "braces in the middle of a row");
		if (!item(p, m, level + 1, at + k))
			return false;
		k += step;
		if (!parse_take(p, ','))
			break;
	}
	return parse_expect(p, '}');
}

bool init_parse(struct parser *p, struct ptx_var *v, const struct shape *s)
{
	struct image m = { .var = v, .shape = s, .element = ptx_type_bits(v->type) / 8 };
	struct ptx_reloc *relocs = NULL;
	unsigned char *init;
	bool ok = item(p, &m, 0, 0);

	if (ok && s->open)
		v->size = m.bytes.n;
	if (ok && m.bytes.n > v->size)
		ok = parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "more initial values than elements");
	if (ok && v->size > MAX_IMAGE)
		ok = parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the initialiser is too long");
	if (ok) {
		init = arena_alloc(p->keep, (size_t)v->size + 1);
		if (m.bytes.n)
			memcpy(init, m.bytes.at, m.bytes.n);
		v->init = init;
		if (m.reloc.n) {
			relocs = arena_alloc(p->keep, m.reloc.n * sizeof *relocs);
			memcpy(relocs, m.reloc.at, m.reloc.n * sizeof *relocs);
		}
		v->reloc = relocs;
		v->nreloc = m.reloc.n;
		for (size_t k = 0; k < m.reloc.n; k++)
			vec_push(&p->relocs, &relocs[k]);
	}
	vec_free(&m.bytes);
	vec_free(&m.reloc);
	return ok;
}

bool init_resolve(struct parser *p)
{
	for (size_t k = 0; k < p->relocs.n; k++) {
		struct ptx_reloc *r = p->relocs.at[k];
		struct bind *b = name_of(p, r->name, strlen(r->name))->bind;

		if (b && b->kind == B_VAR) {
			r->var = b->var;
			vec_push(&p->var_slot, &r->var);
		} else if (b && b->kind == B_FUNC) {
			r->func = &b->fn->f;
			vec_push(&p->func_slot, &r->func);
		} else {
			return parse_fail(p, CONSAN_ERR_PTX_SYMBOL,
				"%.80s, named in an initialiser, is not declared",
				r->name);
		}
	}
	return true;
}
