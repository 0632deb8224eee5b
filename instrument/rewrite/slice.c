/* slice: see slice.h. A module's text is a sequence of items: directives, functions, variables. An
 * item needs those whose names occur in its text; a name that a function declares for itself only
 * makes the part larger than necessary. */
#include "slice.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	ITEM_OTHER,                /* always needed: .version, .file and so on */
	ITEM_DEBUG,                /* .file, .section */
	ITEM_FUNC, ITEM_ENTRY,
	ITEM_VARIABLE, ITEM_GLOBAL,
};

struct item { size_t at, end; enum kind kind; };
/* Several items may have a name: declarations of a function. */
struct name { const char *at; size_t n, item; char *copy; };

struct slices {
	char *text;
	size_t n;
	VEC(struct item) item;
	VEC(struct name) name;
	size_t *slot, nslots;      /* hash table: 1 + index of a name, or 0 */
};

/* ---- the text ---- */

static bool in_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* The position behind a comment or string that begins at s[at]; `at` if none does. */
static size_t skip(const char *s, size_t at)
{
	const char *end;

	if (s[at] == '"')
		end = strchr(s + at + 1, '"');
	else if (s[at] == '/' && s[at + 1] == '/')
		end = strchr(s + at, '\n');
	else if (s[at] == '/' && s[at + 1] == '*')
		end = strstr(s + at + 2, "*/");
	else
		return at;
	return end ? (size_t)(end - s) + (*end == '*' ? 2 : 1) : at + strlen(s + at);
}

static size_t skip_blanks(const char *s, size_t at)
{
	for (;;) {
		size_t next = s[at] == '"' ? at : skip(s, at);

		while (isspace((unsigned char)s[next]))
			next++;
		if (next == at)
			return at;
		at = next;
	}
}

static bool is_word(const char *s, size_t at, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(s + at, word, n) && !in_name(s[at + n]);
}

/* Directives that end with their line. */
static bool is_line(const char *s, size_t at)
{
	return s[at] == '@' || is_word(s, at, ".version") || is_word(s, at, ".target") ||
		is_word(s, at, ".address_size") || is_word(s, at, ".file") ||
		is_word(s, at, ".loc");
}

/* The end of the item that begins at s[at]. */
static size_t item_end(const char *s, size_t at)
{
	bool value = false;        /* the braces are an initializer */
	unsigned depth = 0;

	if (is_line(s, at))
		return at + strcspn(s + at, "\n");
	while (s[at]) {
		size_t next = skip(s, at);

		if (next != at) {
			at = next;
			continue;
		}
		value |= !depth && s[at] == '=';
		depth += s[at] == '{';
		if (s[at] == '}' && depth && !--depth && !value)
			return at + 1;
		if (s[at++] == ';' && !depth)
			break;
	}
	return at;
}

/* Calls back for each name in the text between two positions, until it returns false. */
static void each_name(const char *s, size_t at, size_t end,
	bool (*on)(void *user, const char *name, size_t n, unsigned depth, bool value), void *user)
{
	unsigned depth = 0;
	bool value = false;

	while (at < end) {
		size_t next = skip(s, at), from = at;

		if (next != at) {
			at = next;
			continue;
		}
		depth += s[at] == '(' || s[at] == '[' || s[at] == '{';
		depth -= depth && (s[at] == ')' || s[at] == ']' || s[at] == '}');
		value = s[at] == '=' || (value && (depth || s[at] != ','));
		if (!in_name(s[at])) {
			at++;
			continue;
		}
		while (at < end && in_name(s[at]))
			at++;
		if (!isdigit((unsigned char)s[from]) && (!from || s[from - 1] != '.') &&
				!on(user, s + from, at - from, depth, value))
			return;
	}
}

/* ---- the items ---- */

static enum kind kind_of(const char *s, size_t at, size_t end)
{
	static const struct { const char *word; enum kind kind; } word[] = {
		{ ".file", ITEM_DEBUG }, { ".section", ITEM_DEBUG }, { ".entry", ITEM_ENTRY },
		{ ".func", ITEM_FUNC }, { ".alias", ITEM_FUNC }, { ".global", ITEM_GLOBAL },
		{ ".const", ITEM_VARIABLE }, { ".shared", ITEM_VARIABLE },
	};

	/* .visible and the like come first */
	for (; at < end && s[at] == '.'; at = skip_blanks(s, at)) {
		for (size_t k = 0; k < ARRAY_SIZE(word); k++)
			if (is_word(s, at, word[k].word))
				return word[k].kind;
		for (at++; at < end && in_name(s[at]);)
			at++;
	}
	return ITEM_OTHER;
}

struct naming { struct slices *s; size_t item; bool function; };

static bool add_name(void *user, const char *name, size_t n, unsigned depth, bool value)
{
	struct naming *w = user;

	if (depth || value)
		return true;
	vec_push(&w->s->name, ((struct name){ name, n, w->item, NULL }));
	return !w->function;
}

static uint64_t hash(const char *at, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (n--)
		h = (h ^ (unsigned char)*at++) * 0x100000001b3u;
	return h;
}

/* The slot after *at that holds this name; slot_first() begins. SIZE_MAX: there are no more. */
static size_t next_name(const struct slices *s, size_t *at, const char *name, size_t n)
{
	while (s->slot[*at]) {
		size_t k = s->slot[*at] - 1;

		*at = (*at + 1) % s->nslots;
		if (s->name.at[k].n == n && !memcmp(s->name.at[k].at, name, n))
			return k;
	}
	return SIZE_MAX;
}

static void add_slots(struct slices *s)
{
	s->nslots = 2 * s->name.n + 1;
	s->slot = base_alloc(s->nslots * sizeof *s->slot);
	for (size_t k = 0; k < s->name.n; k++) {
		size_t at = hash(s->name.at[k].at, s->name.at[k].n) % s->nslots;

		while (s->slot[at])
			at = (at + 1) % s->nslots;
		s->slot[at] = k + 1;
	}
}

struct slices *slices_open(const char *ptx, size_t n)
{
	struct slices *s = base_alloc(sizeof *s);

	s->text = base_strndup(ptx, n);
	s->n = strlen(s->text);
	for (size_t at = skip_blanks(s->text, 0); s->text[at]; at = skip_blanks(s->text, at)) {
		struct item i = { .at = at, .end = item_end(s->text, at) };
		struct naming w = { .s = s, .item = s->item.n };

		i.kind = kind_of(s->text, i.at, i.end);
		w.function = i.kind == ITEM_FUNC || i.kind == ITEM_ENTRY;
		vec_push(&s->item, i);
		if (i.kind >= ITEM_FUNC)
			each_name(s->text, i.at, i.end, add_name, &w);
		at = i.end;
	}
	add_slots(s);
	for (size_t k = 0; k < s->name.n; k++)
		if (s->item.at[s->name.at[k].item].kind == ITEM_ENTRY)
			s->name.at[k].copy = base_strndup(s->name.at[k].at, s->name.at[k].n);
	return s;
}

void slices_close(struct slices *s)
{
	if (!s)
		return;
	for (size_t k = 0; k < s->name.n; k++)
		free(s->name.at[k].copy);
	free(s->text);
	vec_free(&s->item);
	vec_free(&s->name);
	free(s->slot);
	free(s);
}

size_t slices_kernels(const struct slices *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->name.n; i++)
		n += s->name.at[i].copy != NULL;
	return n;
}

const char *slices_kernel(const struct slices *s, size_t k)
{
	for (size_t i = 0; i < s->name.n; i++)
		if (s->name.at[i].copy && !k--)
			return s->name.at[i].copy;
	return NULL;
}

/* ---- cutting ---- */

struct cutting {
	const struct slices *s;
	bool *needed;
	VEC(size_t) item;          /* to be read */
};

static bool need(void *user, const char *name, size_t n, unsigned depth, bool value)
{
	struct cutting *c = user;
	size_t at = hash(name, n) % c->s->nslots, k;

	(void)depth, (void)value;
	while ((k = next_name(c->s, &at, name, n)) != SIZE_MAX) {
		size_t item = c->s->name.at[k].item;

		if (c->needed[item])
			continue;
		c->needed[item] = true;
		vec_push(&c->item, item);
	}
	return true;
}

bool slices_has(const struct slices *s, const char *kernel)
{
	size_t n = strlen(kernel), at = hash(kernel, n) % s->nslots, k;

	while ((k = next_name(s, &at, kernel, n)) != SIZE_MAX)
		if (s->item.at[s->name.at[k].item].kind == ITEM_ENTRY)
			return true;
	return false;
}

static void add_lines(struct text *t, const char *s, size_t at, size_t end)
{
	for (; at < end; at++)
		if (s[at] == '\n')
			text_add(t, "\n", 1);
}

char *slices_cut(const struct slices *s, const char *kernel, size_t *n)
{
	struct cutting c = { .s = s, .needed = base_alloc(s->item.n + 1) };
	struct text t = { 0 };
	size_t from = 0;

	if (!slices_has(s, kernel)) {
		free(c.needed);
		return NULL;
	}
	need(&c, kernel, strlen(kernel), 0, false);
	for (size_t k = 0; k < c.item.n; k++)
		each_name(s->text, s->item.at[c.item.at[k]].at, s->item.at[c.item.at[k]].end, need,
			&c);
	for (size_t k = 0; k < s->item.n; k++) {
		const struct item *i = &s->item.at[k];

		add_lines(&t, s->text, from, i->at);
		if (i->kind < ITEM_FUNC || c.needed[k])
			text_add(&t, s->text + i->at, i->end - i->at);
		else
			add_lines(&t, s->text, i->at, i->end);
		from = i->end;
	}
	add_lines(&t, s->text, from, s->n);
	vec_free(&c.item);
	free(c.needed);
	*n = t.n;
	return t.at;
}

void slices_declaration(const struct slices *s, const char *variable, struct text *t)
{
	size_t n = strlen(variable), at = hash(variable, n) % s->nslots;
	const size_t k = next_name(s, &at, variable, n);
	const struct item *i;

	if (k == SIZE_MAX)
		return;
	for (i = s->item.at; i->kind == ITEM_OTHER; i++) {
		text_add(t, s->text + i->at, i->end - i->at);
		text_add(t, "\n", 1);
	}
	i = &s->item.at[s->name.at[k].item];
	text_printf(t, "%s", is_word(s->text, i->at, ".visible") || is_word(s->text, i->at, ".weak")
		? "" : ".visible ");
	text_add(t, s->text + i->at, i->end - i->at);
}

/* ---- which modules can be divided ---- */

struct pointers { const struct slices *s; enum kind of; bool found; };

/* A name in the initializer of a variable */
static bool find_pointer(void *user, const char *name, size_t n, unsigned depth, bool value)
{
	struct pointers *p = user;
	size_t at = hash(name, n) % p->s->nslots;
	const size_t k = value ? next_name(p->s, &at, name, n) : SIZE_MAX;

	(void)depth;
	p->found |= k != SIZE_MAX && (p->of == ITEM_VARIABLE ||
		p->s->item.at[p->s->name.at[k].item].kind == ITEM_VARIABLE);
	return !p->found;
}

/* Is an address in a constant, or one of a constant in a variable? */
static bool has_pointers(const char *ptx)
{
	struct slices *s = slices_open(ptx, strlen(ptx));
	struct pointers p = { .s = s };

	for (size_t k = 0; k < s->item.n && !p.found; k++) {
		const struct item *i = &s->item.at[k];

		p.of = i->kind;
		if (i->kind == ITEM_VARIABLE || i->kind == ITEM_GLOBAL)
			each_name(s->text, i->at, i->end, find_pointer, &p);
	}
	slices_close(s);
	return p.found;
}

/* -G: its sections name labels in all functions. */
static bool is_for_debuggers(const char *ptx)
{
	const char *at = strstr(ptx, ".target");

	return at && memmem(at, strcspn(at, "\n"), "debug", 5);
}

const char *slice_refuses(const char *ptx)
{
	static const struct { const char *word, *why; } refused[] = {
		{ ".callprototype", "it calls functions by their addresses" },
		{ ".calltargets", "it calls functions by their addresses" },
		{ "cudaLaunchDevice", "its kernels launch kernels" },
		{ "cudaGetParameterBuffer", "its kernels launch kernels" },
		{ "cudaGraphLaunch", "its kernels launch graphs" },
		{ ".texref", "it has texture references" },
		{ ".samplerref", "it has texture references" },
		{ ".surfref", "it has surface references" },
		{ "cvta.const", "it takes addresses of constants" },
		{ "cvta.to.const", "it takes addresses of constants" },
		{ ".extern .global", "it has variables of another module" },
		{ ".extern .const", "it has variables of another module" },
		{ ".common", "it shares variables with other modules" },
	};

	for (size_t k = 0; k < ARRAY_SIZE(refused); k++)
		if (strstr(ptx, refused[k].word))
			return refused[k].why;
	if (is_for_debuggers(ptx))
		return "it was compiled for a debugger";
	return strstr(ptx, ".const ") && has_pointers(ptx) ? "addresses are in its constants, or of "
		"them in its variables" : NULL;
}

/* ---- stripping ---- */

/* Appends the lines of an item that the assembler needs. */
static void add_needed(struct text *t, const char *s, size_t at, size_t end)
{
	while (at < end) {
		const char *stop = memchr(s + at, '\n', end - at);
		size_t next = stop ? (size_t)(stop - s) + 1 : end, word = at;

		while (word < next && isspace((unsigned char)s[word]))
			word++;
		if (word < next && !is_word(s, word, ".loc") && strncmp(s + word, "//", 2))
			text_add(t, s + at, next - at);
		at = next;
	}
}

void slice_strip(struct text *t, bool globals)
{
	const char *s = t->at;
	struct text to = { 0 };

	for (size_t at = skip_blanks(s, 0); s[at]; at = skip_blanks(s, at)) {
		size_t end = item_end(s, at);
		enum kind kind = kind_of(s, at, end);

		if (kind != ITEM_DEBUG && !(globals && kind == ITEM_GLOBAL)) {
			add_needed(&to, s, at, end);
			text_add(&to, "\n", 1);
		}
		at = end;
	}
	text_free(t);
	*t = to;
}
