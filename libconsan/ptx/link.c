/* link: splits each text into top-level declarations, chooses one declaration for each
 * external name, and writes them in an order that PTX allows: variables, prototypes,
 * functions.
 *
 * Local names of different texts must not collide. From the second text on, declarations
 * without a linking directive and labels ($...) get a suffix, and file numbers an offset. */
#include "link.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum kind { KIND_HEADER, KIND_FILE, KIND_SECTION, KIND_VARIABLE, KIND_PROTOTYPE, KIND_FUNCTION,
	KIND_OTHER };
enum linkage { LINK_LOCAL, LINK_VISIBLE, LINK_WEAK, LINK_COMMON, LINK_EXTERN };

struct item {
	enum kind kind;
	enum linkage linkage;
	unsigned unit;          /* index of the text */
	const char *at;
	size_t n;
	const char *name;
	size_t name_n;
	bool dropped;
};

struct linker {
	VEC(struct item) item;
	VEC(const struct item *) own; /* local names of the unit being written */
	unsigned unit, file_base;     /* this unit, the offset of its file numbers */
	struct text out;
};

/* ---- lexing ---- */

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Skips blanks and comments. */
static const char *skip(const char *p)
{
	for (;;) {
		const char *end;

		p += strspn(p, " \t\r\n\f");
		if (p[0] == '/' && p[1] == '/') {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			end = strstr(p + 2, "*/");
			p = end ? end + 2 : p + strlen(p);
		} else {
			return p;
		}
	}
}

/* The end of a token: a name or directive, a string, or a character. */
static const char *token(const char *p)
{
	if (*p == '"') {
		for (p++; *p && *p != '"'; p++)
			if (*p == '\\' && p[1])
				p++;
		return *p ? p + 1 : p;
	}
	if (*p == '.' || is_name(*p)) {
		for (p++; is_name(*p); p++)
			;
		return p;
	}
	return *p ? p + 1 : p;
}

static bool is(const char *at, const char *end, const char *word)
{
	return (size_t)(end - at) == strlen(word) && !memcmp(at, word, strlen(word));
}

/* Skips a bracketed group that begins at p. */
static const char *balanced(const char *p)
{
	int depth = 0;

	do {
		if (*p == '(' || *p == '{' || *p == '[')
			depth++;
		else if (*p == ')' || *p == '}' || *p == ']')
			depth--;
		p = skip(token(p));
	} while (*p && depth > 0);
	return p;
}

/* ---- one declaration ---- */

static const struct { const char *word; enum linkage linkage; } linkages[] = {
	{ ".visible", LINK_VISIBLE }, { ".weak", LINK_WEAK }, { ".common", LINK_COMMON },
	{ ".extern", LINK_EXTERN },
};
static const struct { const char *word; enum kind kind; } kinds[] = {
	{ ".version", KIND_HEADER }, { ".target", KIND_HEADER }, { ".address_size", KIND_HEADER },
	{ ".file", KIND_FILE }, { ".section", KIND_SECTION },
	{ ".global", KIND_VARIABLE }, { ".const", KIND_VARIABLE }, { ".shared", KIND_VARIABLE },
	{ ".func", KIND_FUNCTION }, { ".entry", KIND_FUNCTION },
};

/* p: after .func. Attributes and the parenthesized results precede the name. */
static void function_name(const char *p, struct item *it)
{
	for (;;) {
		const char *end = token(p);

		if (*p == '.')
			p = skip(end);
		else if (*p == '(')
			p = balanced(p);
		else {
			it->name = p;
			it->name_n = (size_t)(end - p);
			return;
		}
	}
}

/* p: after the state space. Alignment, vectors and types precede the name. */
static void variable_name(const char *p, struct item *it)
{
	for (;;) {
		const char *end = token(p);
		bool takes_value = is(p, end, ".align");

		if (*p == '.') {
			p = skip(end);
			if (takes_value)
				p = skip(token(p));
		} else if (*p == '(') {
			p = balanced(p);
		} else {
			it->name = p;
			it->name_n = (size_t)(end - p);
			return;
		}
	}
}

/* The end of a declaration: after its ';' or the '}' of its body. */
static const char *whole(const char *p, bool has_body, bool *body)
{
	*body = false;
	while (*p) {
		if (*p == ';')
			return p + 1;
		if (*p == '{' && has_body) {
			*body = true;
			return balanced(p);
		}
		p = *p == '(' || *p == '{' || *p == '[' ? balanced(p) : skip(token(p));
	}
	return p;
}

static const char *declaration(const char *p, struct item *it)
{
	const char *start = p, *end, *line;
	bool body;
	size_t i;

	*it = (struct item){ .kind = KIND_OTHER, .at = start };
	for (; *p == '.'; p = skip(end)) {
		end = token(p);
		for (i = 0; i < ARRAY_SIZE(linkages); i++)
			if (is(p, end, linkages[i].word))
				it->linkage = linkages[i].linkage;
		for (i = 0; i < ARRAY_SIZE(kinds); i++)
			if (is(p, end, kinds[i].word))
				break;
		if (i == ARRAY_SIZE(kinds))
			continue;
		it->kind = kinds[i].kind;
		if (it->kind == KIND_FUNCTION)
			function_name(skip(end), it);
		else if (it->kind == KIND_VARIABLE)
			variable_name(skip(end), it);
		break;
	}
	switch (it->kind) {
	case KIND_HEADER:
	case KIND_FILE:
		line = p + strcspn(p, "\n");
		it->n = (size_t)(line - start);
		return skip(line);
	case KIND_SECTION:
		p = balanced(p + strcspn(p, "{"));
		break;
	case KIND_VARIABLE:
	case KIND_PROTOTYPE:
	case KIND_FUNCTION:
	case KIND_OTHER:
		p = whole(p, it->kind == KIND_FUNCTION, &body);
		if (it->kind == KIND_FUNCTION && !body)
			it->kind = KIND_PROTOTYPE;
		break;
	}
	it->n = (size_t)(p - start);
	return skip(p);
}

/* ---- choosing among declarations of one name ---- */

static bool same_name(const struct item *a, const struct item *b)
{
	return a->name_n == b->name_n && !memcmp(a->name, b->name, a->name_n);
}

static bool is_definition(const struct item *it)
{
	return it->linkage != LINK_EXTERN
		&& (it->kind == KIND_FUNCTION || it->kind == KIND_VARIABLE);
}

/* The definition of an external name; NULL: no unit defines it. */
static struct item *definition(struct linker *l, const struct item *of)
{
	struct item *best = NULL, *it;

	for (size_t i = 0; i < l->item.n; i++) {
		it = &l->item.at[i];
		if (it->linkage == LINK_LOCAL || !is_definition(it) || !same_name(it, of))
			continue;
		if (!best || (best->linkage != LINK_VISIBLE && it->linkage == LINK_VISIBLE))
			best = it;
	}
	return best;
}

static bool resolve(struct linker *l, struct consan_err *e)
{
	struct item *it, *def;

	for (size_t i = 0; i < l->item.n; i++) {
		it = &l->item.at[i];
		if (!it->name || it->linkage == LINK_LOCAL)
			continue;
		def = definition(l, it);
		if (is_definition(it) && it != def) {
			if (it->linkage == LINK_VISIBLE)
				return err_set(e, CONSAN_ERR_PTX_SYMBOL, 0, 0, "%.*s is defined twice",
					(int)it->name_n, it->name);
			it->dropped = true;
		} else if (it->kind == KIND_VARIABLE && it->linkage == LINK_EXTERN && def) {
			it->dropped = true;
		} else if (!is_definition(it)) {
			/* keep one prototype, or one declaration of an undefined name */
			for (size_t k = 0; k < i; k++)
				it->dropped |= l->item.at[k].kind == it->kind
					&& l->item.at[k].linkage != LINK_LOCAL
					&& l->item.at[k].name && !is_definition(&l->item.at[k])
					&& same_name(&l->item.at[k], it);
		}
	}
	return true;
}

/* ---- writing ---- */

static void begin_unit(struct linker *l, unsigned unit)
{
	if (unit == l->unit)
		return;
	l->unit = unit;
	l->own.n = 0;
	for (size_t i = 0; i < l->item.n; i++) {
		const struct item *it = &l->item.at[i];

		if (it->unit == unit && it->name && it->linkage == LINK_LOCAL)
			vec_push(&l->own, it);
	}
}

static bool is_own(const struct linker *l, const char *at, size_t n)
{
	for (size_t i = 0; i < l->own.n; i++)
		if (l->own.at[i]->name_n == n && !memcmp(l->own.at[i]->name, at, n))
			return true;
	return false;
}

/* Is the token one after which a file number follows? */
static bool before_file(const char *at, const char *end)
{
	return is(at, end, ".file") || is(at, end, ".loc") || is(at, end, "inlined_at");
}

static void write_item(struct linker *l, const struct item *it, bool defined_here)
{
	const char *p = it->at, *stop = it->at + it->n, *end;
	bool number = false;

	while (p < stop) {
		end = token(p);
		if (number && isdigit((unsigned char)*p))
			text_printf(&l->out, "%lu", strtoul(p, NULL, 10) + l->file_base);
		else if (defined_here && is(p, end, ".extern"))
			text_printf(&l->out, ".visible");
		else
			text_add(&l->out, p, (size_t)(end - p));
		if (it->unit && (*p == '$' || (is_name(*p) && !isdigit((unsigned char)*p)
				&& is_own(l, p, (size_t)(end - p)))))
			text_printf(&l->out, "$unit%u", it->unit);
		number = before_file(p, end);
		p = skip(end);
		if (p > stop)
			p = stop;
		text_add(&l->out, end, (size_t)(p - end));
	}
	text_printf(&l->out, "\n");
}

static void write_kind(struct linker *l, enum kind kind, const unsigned *file_base)
{
	for (size_t i = 0; i < l->item.n; i++) {
		struct item *it = &l->item.at[i];

		if (it->kind != kind || it->dropped || (kind == KIND_HEADER && it->unit))
			continue;
		begin_unit(l, it->unit);
		l->file_base = file_base[it->unit];
		write_item(l, it, kind == KIND_PROTOTYPE && it->linkage == LINK_EXTERN
			&& definition(l, it));
	}
}

/* The greatest number of a .file directive. */
static unsigned file_max(const struct linker *l, unsigned unit)
{
	unsigned long most = 0, k;

	for (size_t i = 0; i < l->item.n; i++) {
		if (l->item.at[i].unit != unit || l->item.at[i].kind != KIND_FILE)
			continue;
		k = strtoul(l->item.at[i].at + strlen(".file"), NULL, 10);
		if (k > most && k < 1000000)
			most = k;
	}
	return (unsigned)most;
}

char *link_ptx(const char *const *text, size_t n, struct consan_err *e)
{
	static const enum kind order[] = { KIND_HEADER, KIND_FILE, KIND_OTHER, KIND_VARIABLE,
		KIND_PROTOTYPE, KIND_FUNCTION, KIND_SECTION };
	unsigned *base = base_alloc((n + 1) * sizeof *base);
	struct linker l = { 0 };
	struct item it;
	const char *p;

	for (unsigned unit = 0; unit < n && !e->code; unit++) {
		for (p = skip(text[unit]); *p; ) {
			p = declaration(p, &it);
			it.unit = unit;
			if (!it.n) {
				err_set(e, CONSAN_ERR_PTX_SYNTAX, 0, 0, "input %u of the linker is not PTX",
					unit + 1);
				break;
			}
			vec_push(&l.item, it);
		}
		base[unit + 1] = base[unit] + file_max(&l, unit);
	}
	if (!e->code && resolve(&l, e))
		for (size_t k = 0; k < ARRAY_SIZE(order); k++)
			write_kind(&l, order[k], base);
	vec_free(&l.own);
	vec_free(&l.item);
	free(base);
	if (e->code)
		text_free(&l.out);
	return l.out.at;
}
