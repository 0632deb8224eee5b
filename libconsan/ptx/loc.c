/* loc: source lines. .file and .loc, with the chains of inlined calls, and the
 * strings of .section .debug_str that name the inlined functions.
 *
 * PTX may name files and functions after their use, so places are created with
 * numbers and labels and completed by loc_finish(). An inlined_at names a line and
 * column; it refers to the last .loc of this function at that position, which may
 * have an inlined_at of its own: that forms the chain. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

struct place {
	struct site_loc loc;
	struct name *function;
	uint64_t offset;           /* into the string */
	uint32_t file;
	struct place *last_here;   /* next place of this hash bucket */
	struct place *parent;
};

struct here {                      /* the last .loc at a position */
	uint32_t file, line, col, generation;
	struct place *place;
};

struct label {                     /* in .debug_str */
	const struct name *name;
	size_t at;                 /* in strings */
	const char *kept;          /* the module's copy, made on first use */
};

struct loc_table {
	struct place **slot;       /* all places, by content */
	size_t cap, n;
	struct here *here;         /* power of two */
	size_t here_cap, here_n;
	uint32_t generation;       /* number of the function */
	VEC(struct place *) all;
	VEC(const char *) file;    /* by number, NULL = not declared */
	VEC(struct label) label;
	struct text strings;
};

struct loc_table *loc_new(void)
{
	struct loc_table *t = base_alloc(sizeof *t);

	t->cap = 1024;
	t->slot = base_alloc(t->cap * sizeof *t->slot);
	t->here_cap = 1024;
	t->here = base_alloc(t->here_cap * sizeof *t->here);
	return t;
}

void loc_free(struct loc_table *t)
{
	free(t->slot);
	free(t->here);
	vec_free(&t->all);
	vec_free(&t->file);
	vec_free(&t->label);
	text_free(&t->strings);
	free(t);
}

void loc_function_starts(struct loc_table *t)
{
	t->generation++;
	t->here_n = 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdu;
	return h ^ h >> 32;
}

static size_t place_hash(const struct place *x)
{
	uint64_t h = mix(x->file, x->loc.line);

	h = mix(h, x->loc.col);
	h = mix(h, (uintptr_t)x->function);
	return mix(h, (uintptr_t)x->parent);
}

static struct here *here_find(struct loc_table *t, uint32_t file, uint32_t line, uint32_t col)
{
	size_t k = mix(mix(file, line), col);

	for (;; k++) {
		struct here *h = &t->here[k & (t->here_cap - 1)];

		if (h->generation != t->generation ||
		    (h->file == file && h->line == line && h->col == col))
			return h;
	}
}

static void here_set(struct loc_table *t, struct place *x)
{
	struct here *h;

	if (2 * t->here_n >= t->here_cap) {
		struct here *old = t->here;
		size_t cap = t->here_cap;

		t->here_cap *= 2;
		t->here = base_alloc(t->here_cap * sizeof *t->here);
		for (size_t k = 0; k < cap; k++)
			if (old[k].generation == t->generation)
				*here_find(t, old[k].file, old[k].line, old[k].col) = old[k];
		free(old);
	}
	h = here_find(t, x->file, x->loc.line, x->loc.col);
	t->here_n += h->generation != t->generation;
	*h = (struct here){ x->file, x->loc.line, x->loc.col, t->generation, x };
}

static struct place *place_intern(struct parser *p, const struct place *want)
{
	struct loc_table *t = p->locs;
	size_t h = place_hash(want);
	struct place *x;

	if (t->n >= t->cap) {
		t->cap *= 2;
		free(t->slot);
		t->slot = base_alloc(t->cap * sizeof *t->slot);
		for (size_t k = 0; k < t->all.n; k++) {
			size_t at = place_hash(t->all.at[k]) & (t->cap - 1);

			t->all.at[k]->last_here = t->slot[at];
			t->slot[at] = t->all.at[k];
		}
	}
	for (x = t->slot[h & (t->cap - 1)]; x; x = x->last_here)
		if (x->file == want->file && x->loc.line == want->loc.line &&
		    x->loc.col == want->loc.col && x->function == want->function &&
		    x->offset == want->offset && x->parent == want->parent)
			return x;
	x = arena_alloc(p->keep, sizeof *x);
	*x = *want;
	x->loc.inlined_at = want->parent ? &want->parent->loc : NULL;
	x->last_here = t->slot[h & (t->cap - 1)];
	t->slot[h & (t->cap - 1)] = x;
	t->n++;
	vec_push(&t->all, x);
	return x;
}

static bool position(struct parser *p, uint32_t *file, uint32_t *line, uint32_t *col)
{
	uint64_t f, l, c;

	if (!parse_number(p, &f) || !parse_number(p, &l) || !parse_number(p, &c))
		return false;
	*file = (uint32_t)f;
	*line = (uint32_t)l;
	*col = (uint32_t)c;
	return true;
}

/* .loc file line col {, function_name label {+ n}, inlined_at file line col} */
bool loc_directive(struct parser *p)
{
	struct place want = { 0 }, *x;
	struct here *h;

	lex_next(&p->l);
	if (!position(p, &want.file, &want.loc.line, &want.loc.col))
		return false;
	while (parse_take(p, ',')) {
		uint32_t f, l, c;

		if (lex_name(&p->l, "function_name")) {
			lex_next(&p->l);
			if (p->l.kind != T_NAME)
				return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a label of .debug_str");
			want.function = name_of(p, p->l.at, p->l.n);
			lex_next(&p->l);
			if (parse_take(p, '+') && !parse_number(p, &want.offset))
				return false;
		} else if (lex_name(&p->l, "inlined_at")) {
			lex_next(&p->l);
			if (!position(p, &f, &l, &c))
				return false;
			h = here_find(p->locs, f, l, c);
			if (h->generation == p->locs->generation)
				want.parent = h->place;
			else
				want.parent = place_intern(p, &(struct place){
					.file = f, .loc = { .line = l, .col = c } });
		} else {
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected function_name or inlined_at");
		}
	}
	x = place_intern(p, &want);
	here_set(p->locs, x);
	p->loc = &x->loc;
	return true;
}

/* .file number "name" {, time, size} */
bool loc_file(struct parser *p)
{
	struct loc_table *t = p->locs;
	struct text name = { 0 };
	uint64_t n, skip;

	lex_next(&p->l);
	if (!parse_number(p, &n))
		return false;
	if (n > 1000000 || p->l.kind != T_STRING)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a file name");
	while (t->file.n <= n)
		vec_push(&t->file, NULL);
	visible_add(&name, p->l.at, p->l.n);
	t->file.at[n] = arena_strndup(p->keep, name.n ? name.at : "", name.n);
	text_free(&name);
	lex_next(&p->l);
	while (parse_take(p, ','))
		if (!parse_number(p, &skip))
			return false;
	return true;
}

/* The current token follows the '{' of .debug_str. */
static bool debug_strings(struct parser *p)
{
	struct loc_table *t = p->locs;

	while (!lex_is(&p->l, '}')) {
		if (p->l.kind == T_NAME) {
			struct label here = { name_of(p, p->l.at, p->l.n), t->strings.n, NULL };

			vec_push(&t->label, here);
			lex_next(&p->l);
			if (!parse_expect(p, ':'))
				return false;
			continue;
		}
		if (!lex_word(&p->l, "b8"))
			return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a label or .b8 in .debug_str");
		do {
			uint64_t v;
			char c;

			lex_next(&p->l);
			if (!parse_number(p, &v))
				return false;
			c = (char)v;
			text_add(&t->strings, &c, 1);
		} while (lex_is(&p->l, ','));
	}
	lex_next(&p->l);
	return true;
}

/* .section name { .. }: skipped, except for the strings */
bool loc_section(struct parser *p)
{
	bool strings;

	lex_next(&p->l);
	if (p->l.kind != T_WORD && p->l.kind != T_NAME)
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected a section name");
	strings = lex_word(&p->l, "debug_str");
	lex_next(&p->l);
	if (!lex_is(&p->l, '{'))
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "expected '{'");
	if (strings) {
		lex_next(&p->l);
		return debug_strings(p);
	}
	if (!lex_skip_block(&p->l))
		return parse_fail(p, CONSAN_ERR_PTX_SYNTAX, "the file ends inside a section");
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct label *x = a, *y = b;

	return (x->name > y->name) - (x->name < y->name);
}

static const char *string_of(struct parser *p, const struct place *x)
{
	struct loc_table *t = p->locs;
	struct label key = { x->function, 0, NULL }, *l;
	const char *s;
	size_t max;

	if (!x->function || !t->label.n)
		return NULL;
	l = bsearch(&key, t->label.at, t->label.n, sizeof key, by_name);
	if (!l || x->offset >= t->strings.n - l->at)
		return NULL;
	if (l->kept && !x->offset)
		return l->kept;
	s = t->strings.at + l->at + x->offset;
	max = t->strings.n - l->at - x->offset;
	s = arena_strndup(p->keep, s, strnlen(s, max));
	if (!x->offset)
		l->kept = s;
	return s;
}

void loc_finish(struct parser *p)
{
	struct loc_table *t = p->locs;

	if (t->label.n)
		qsort(t->label.at, t->label.n, sizeof *t->label.at, by_name);
	for (size_t k = 0; k < t->all.n; k++) {
		struct place *x = t->all.at[k];

		x->loc.file = x->file < t->file.n ? t->file.at[x->file] : NULL;
		if (!x->loc.file)
			x->loc.file = "?";
		x->loc.function = string_of(p, x);
	}
}
