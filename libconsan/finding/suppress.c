/* suppress: see suppress.h. */
#include "suppress.h"

#include "group.h"
#include "libconsan/base/base.h"
#include "libconsan/event/event.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define KEYS(X) X(kernel) X(source) X(symbol) X(reason)

/* ---- reading ---- */

struct parse {
	struct results *r;
	const char *path;
	struct consan_err *e;
	int line;
	struct result_suppression *open; /* the current entry */
	int open_line;
};

static bool bad(struct parse *p, int line, int col, const char *what, const char *word, size_t n)
{
	return err_set(p->e, CONSAN_ERR_FORMAT, line, col, "%s:%d:%d: %s%s%.*s", p->path, line, col,
		what,
		n ? " " : "", (int)(n < 80 ? n : 80), word);
}

static bool close_entry(struct parse *p)
{
	if (!p->open || p->open->reason)
		return true;
	return bad(p, p->open_line, 1, "this entry has no reason:", p->open->rule,
		strlen(p->open->rule));
}

static bool open_entry(struct parse *p, const char *word, size_t n)
{
	struct result_suppression s = { .rule = base_strndup(word, n) };
	struct text where = { 0 };

	if (!close_entry(p) || (strcmp(s.rule, "*") && rule_by_code(s.rule) == RULE_NONE)) {
		free(s.rule);
		return bad(p, p->line, 1, "unknown rule", word, n);
	}
	text_printf(&where, "%s:%d", p->path, p->line);
	s.where = where.at;
	vec_push(&p->r->suppression, s);
	p->open = &p->r->suppression.at[p->r->suppression.n - 1];
	p->open_line = p->line;
	return true;
}

static bool add_key(struct parse *p, const char *line, const char *word, size_t n)
{
	const size_t key = strcspn(word, ": \t");
	const char *value = word + key + strspn(word + key, " \t");
	const int col = (int)(word - line) + 1;
	char **to = NULL;

	if (!p->open)
		return bad(p, p->line, col, "expected a rule at the beginning of a line, found",
			word, n);
	if (key >= n || *value != ':')
		return bad(p, p->line, col, "expected `key: value', found", word, n);
	value++;
	value += strspn(value, " \t");
#define X(id) \
	if (key == strlen(#id) && !strncmp(word, #id, key)) \
		to = &p->open->id;
	KEYS(X)
#undef X
	if (!to)
		return bad(p, p->line, col, "expected kernel, source, symbol or reason, found", word,
			key);
	if (*to)
		return bad(p, p->line, col, "duplicate key", word, key);
	if (value >= word + n)
		return bad(p, p->line, col + (int)(value - word), "no value for", word, key);
	*to = base_strndup(value, (size_t)(word + n - value));
	return true;
}

bool suppress_parse(struct results *r, const char *path, const char *text, struct consan_err *e)
{
	struct parse p = { .r = r, .path = path, .e = e };
	const char *line = text, *end;

	for (; *line; line = *end ? end + 1 : end) {
		const char *word = line + strspn(line, " \t"), *c;
		size_t n;

		end = strchrnul(line, '\n');
		p.line++;
		for (c = word; c < end && *c != '#'; c++)
			;
		if (*c == '#' && c > word && c[-1] != ' ' && c[-1] != '\t')
			c = end; /* a # within a word does not begin a comment */
		n = (size_t)(c - word);
		while (n && strchr(" \t\r", word[n - 1]))
			n--;
		if (!n)
			continue;
		if (word == line ? !open_entry(&p, word, n) : !add_key(&p, line, word, n))
			return false;
	}
	return close_entry(&p);
}

bool suppress_read(struct results *r, const char *path, struct consan_err *e)
{
	struct text t = { 0 };
	bool ok = text_read(&t, path, e);

	if (ok && strlen(t.at) != t.n)
		ok = err_set(e, CONSAN_ERR_FORMAT, 1, 1, "%s: not a text file", path);
	ok = ok && suppress_parse(r, path, t.at, e);
	text_free(&t);
	return ok;
}

/* ---- matching ---- */

static bool glob(const char *pattern, const char *s)
{
	return !fnmatch(pattern, s, 0);
}

static bool kernel_matches(const char *pattern, const char *mangled)
{
	static const int style[] = { NAME_FULL, NAME_SIMPLE, NAME_BARE };
	bool match = glob(pattern, mangled);

	for (size_t i = 0; !match && i < ARRAY_SIZE(style); i++) {
		char *name = demangle(mangled, style[i]);

		match = glob(pattern, name);
		free(name);
	}
	return match;
}

static bool place_matches(const char *pattern, const char *file, uint32_t line)
{
	const char *slash = strrchr(file, '/');
	struct text t = { 0 };
	bool match;

	text_printf(&t, "%s:%u", file, line);
	match = glob(pattern, file) || glob(pattern, t.at)
		|| (slash && (glob(pattern, slash + 1) || glob(pattern, t.at + (slash + 1 - file))));
	text_free(&t);
	return match;
}

static bool source_matches(const char *pattern, const struct finding *f)
{
	for (unsigned i = 0; i < f->nsides; i++) {
		const struct site *s = site_get(f->side[i].site);

		if (!s->loc && place_matches(pattern, s->module, s->ptx_line))
			return true;
		for (const struct site_loc *l = s->loc; l; l = l->inlined_at)
			if (place_matches(pattern, l->file, l->line))
				return true;
	}
	return false;
}

/* Bytes of the name without offset or index: of "tile+0x80" and "tile[1]", those of tile. */
static size_t bare_name(const char *variable)
{
	return strcspn(variable, "+[");
}

static bool variable_matches(const char *pattern, const char *variable)
{
	char *name = base_strndup(variable, bare_name(variable));
	bool match = *name && glob(pattern, name);

	free(name);
	return match;
}

static bool symbol_matches(const char *pattern, const struct finding *f)
{
	if (variable_matches(pattern, f->barrier.name))
		return true;
	for (unsigned i = 0; i < f->nsides; i++) {
		if (variable_matches(pattern, f->side[i].variable))
			return true;
		for (const struct site_loc *l = site_get(f->side[i].site)->loc; l; l = l->inlined_at)
			if (l->function && kernel_matches(pattern, l->function))
				return true;
	}
	return false;
}

static bool matches(const struct result_suppression *s, const struct finding *f)
{
	if (strcmp(s->rule, "*") && strcmp(s->rule, rule_get(f->rule)->code))
		return false;
	if (s->kernel && !kernel_matches(s->kernel, f->kernel))
		return false;
	if (s->source && !source_matches(s->source, f))
		return false;
	return !s->symbol || symbol_matches(s->symbol, f);
}

size_t suppress_match(const struct results *r, const struct finding *f)
{
	size_t k = 0;

	while (k < r->suppression.n && !matches(&r->suppression.at[k], f))
		k++;
	return k;
}

void suppress_apply(struct results *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->finding.n; i++) {
		struct finding f = r->finding.at[i];
		const size_t k = suppress_match(r, &f);

		if (k == r->suppression.n) {
			r->finding.at[kept++] = f;
			continue;
		}
		r->suppression.at[k].matched++;
		vec_push(&r->suppressed, ((struct result_suppressed){ .f = f, .by = (uint32_t)k }));
	}
	r->finding.n = kept;
	group_findings(r->finding.at, r->finding.n);
}

/* ---- writing ---- */

/* Escapes the special characters of globs, # that would begin a comment, and a blank at either end,
 * which would not belong to the value. */
static void add_literal(struct text *t, const char *s)
{
	for (const char *c = s; *c; c++) {
		if (*c == ' ' && (c == s || !c[1])) {
			text_add(t, "[ ]", 3);
			continue;
		}
		if (strchr("*?[\\#", *c))
			text_add(t, "\\", 1);
		text_add(t, c, 1);
	}
}

void suppress_write(struct text *t, const struct finding *f, const char *reason)
{
	const struct site *s = site_get(f->nsides ? f->side[0].site : 0);
	const struct site_loc *l = site_headline(s->loc);
	const char *file = l ? l->file : s->module ? s->module : "";
	const char *slash = strrchr(file, '/');
	const uint32_t line = l ? l->line : s->ptx_line;
	const char *name = f->nsides ? f->side[0].variable : "";
	char *kernel = demangle(f->kernel, NAME_BARE);

	text_printf(t, "%s\n", rule_get(f->rule)->code);
	if (*kernel) {
		text_printf(t, "\tkernel: ");
		add_literal(t, kernel);
		text_printf(t, "\n");
	}
	if (line) {
		text_printf(t, "\tsource: ");
		add_literal(t, slash ? slash + 1 : file);
		text_printf(t, ":%u\n", line);
	}
	if (bare_name(name)) {
		char *bare = base_strndup(name, bare_name(name));

		text_printf(t, "\tsymbol: ");
		add_literal(t, bare);
		text_printf(t, "\n");
		free(bare);
	}
	text_printf(t, "\treason: ");
	for (; *reason; reason++)
		text_add(t, strchr("\r\n#", *reason) ? " " : reason, 1);
	text_printf(t, "\n");
	free(kernel);
}
