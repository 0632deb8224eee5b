/* scope: names, interned once, and what the open scopes bind them to.
 *
 * Each name points to its innermost binding; closing a scope takes its
 * bindings off again, so a look-up costs one hash of the spelling. */
#include "parse.h"

#include <stdlib.h>
#include <string.h>

static uint32_t hash(const char *s, size_t n)
{
	uint64_t h = n * 0x9e3779b97f4a7c15u, v;

	for (; n >= 8; s += 8, n -= 8) {
		memcpy(&v, s, 8);
		h = (h ^ v) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	v = 0;
	memcpy(&v, s, n);
	h = (h ^ v) * 0xff51afd7ed558ccdu;
	return (uint32_t)(h ^ h >> 32);
}

static void grow(struct names *t)
{
	size_t cap = t->cap ? 2 * t->cap : 1024;
	struct name **slot = base_alloc(cap * sizeof *slot);

	for (size_t k = 0; k < t->cap; k++) {
		size_t at;

		if (!t->slot[k])
			continue;
		at = t->slot[k]->hash;
		while (slot[at & (cap - 1)])
			at++;
		slot[at & (cap - 1)] = t->slot[k];
	}
	free(t->slot);
	t->slot = slot;
	t->cap = cap;
}

/* "%r12" is number 12 of "%r"; "%r012" and "7" belong to no range. */
static void split(struct parser *p, struct name *n)
{
	size_t k = n->n;
	uint64_t v = 0;

	while (k > 1 && n->at[k - 1] >= '0' && n->at[k - 1] <= '9')
		k--;
	if (k == n->n || n->n - k > 9 || (n->at[k] == '0' && n->n - k > 1))
		return;
	for (size_t i = k; i < n->n; i++)
		v = v * 10 + (uint64_t)(n->at[i] - '0');
	n->number = (uint32_t)v;
	n->prefix = name_of(p, n->at, k);
}

struct name *name_of(struct parser *p, const char *at, size_t n)
{
	struct names *t = &p->names;
	uint32_t h = hash(at, n);
	struct name *new;
	size_t k;

	if (at == p->l.at) {
		p->name_line = p->l.tok_line;
		p->name_col = p->l.tok_col;
	}
	if (2 * t->n >= t->cap)
		grow(t);
	for (k = h; t->slot[k & (t->cap - 1)]; k++) {
		struct name *old = t->slot[k & (t->cap - 1)];

		if (old->hash == h && old->n == n && !memcmp(old->at, at, n))
			return old;
	}
	new = arena_alloc(&p->tmp, sizeof *new);
	new->at = at;
	new->n = (uint32_t)n;
	new->hash = h;
	t->slot[k & (t->cap - 1)] = new;
	t->n++;
	split(p, new);
	return new;
}

void scope_open(struct parser *p)
{
	vec_push(&p->names.scope, p->names.bound.n);
}

void scope_close(struct parser *p)
{
	struct names *t = &p->names;
	size_t from = t->scope.at[--t->scope.n];

	while (t->bound.n > from) {
		struct bind *b = t->bound.at[--t->bound.n];

		if (b->kind == B_RANGE)
			b->name->range = b->outer;
		else
			b->name->bind = b->outer;
	}
}

struct bind *scope_bind(struct parser *p, struct name *n, enum bind_kind kind)
{
	struct bind **head = kind == B_RANGE ? &n->range : &n->bind, *b;
	uint32_t depth = (uint32_t)p->names.scope.n;

	if (*head && (*head)->depth == depth) {
		parse_fail_at(p, CONSAN_ERR_PTX_SYMBOL, p->name_line, p->name_col,
			"%.*s is declared twice in one scope",
			(int)(n->n < 80 ? n->n : 80), n->at);
		return NULL;
	}
	b = arena_alloc(&p->tmp, sizeof *b);
	b->name = n;
	b->outer = *head;
	b->depth = depth;
	b->kind = kind;
	*head = b;
	vec_push(&p->names.bound, b);
	return b;
}

bool scope_register(const struct name *n, uint32_t *reg)
{
	const struct bind *b = n->bind, *r = n->prefix ? n->prefix->range : NULL;

	while (r && n->number >= r->count)
		r = r->outer;
	if (r && (!b || b->depth < r->depth)) {
		*reg = r->first + n->number;
		return true;
	}
	if (!b || b->kind != B_REG)
		return false;
	*reg = b->first;
	return true;
}

void names_free(struct names *t)
{
	free(t->slot);
	vec_free(&t->bound);
	vec_free(&t->scope);
}
