/* Which rows of the executor's table the classes cover. */
#include "conform.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum row {
#define OP(id, ...) ROW_##id,
#include "libconsan/ptx/ptx.def"
#undef OP
	ROWS
};
static const struct { const char *id, *name; } rows[] = {
#define OP(id, name, ...) [ROW_##id] = { #id, name },
#include "libconsan/ptx/ptx.def"
#undef OP
};
static const bool unsupported[ROWS] = {
#define PLAIN false
#define SIMD false
#define NONE true
#define ROW(id, where, why) [ROW_##id] = where,
#include "libconsan/exec/ops.def"
#undef ROW
#undef PLAIN
#undef SIMD
#undef NONE
};
static const char *const reason[ROWS] = {
#define ABSENT(id, text) [ROW_##id] = text,
#define FORM(form, text)
#include "absent.def"
#undef ABSENT
#undef FORM
};
static const struct { const char *form, *reason; } forms[] = {
#define ABSENT(id, text)
#define FORM(form, text) { form, text },
#include "absent.def"
#undef ABSENT
#undef FORM
};

/* An instruction of this name: the opcode ends where its modifiers or operands begin. */
static bool has(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += n)
		if ((at == text || isspace((unsigned char)at[-1]))
				&& strchr(". ;", at[n]))
			return true;
	return false;
}

enum { DRAWN = 192 };

static bool emits(const struct item *item, const char *name)
{
	for (unsigned k = 0; k < DRAWN; k++)
		if (has(item[k].lane ? strstr(item[k].ptx.at, "/**/") : item[k].ptx.at, name))
			return true;
	return false;
}

/* Marks the rows of a class. */
static bool mark(const struct class *c, bool *covered)
{
	struct item item[DRAWN] = { 0 };
	bool ok = true;

	for (unsigned k = 0; k < DRAWN; k++) {
		struct rng r = rng_start(1, c->name, k);
		c->emit(&item[k], &r);
	}
	for (const char *s = c->rows; *s;) {
		size_t n = strcspn(s, " ");
		unsigned k = 0;
		while (k < ROWS && (strlen(rows[k].id) != n || memcmp(rows[k].id, s, n)))
			k++;
		if (k == ROWS || !emits(item, rows[k].name)) {
			printf("class %s does not emit %.*s\n", c->name, (int)n, s);
			ok = false;
		} else
			covered[k] = true;
		s += n;
		s += *s == ' ';
	}
	for (unsigned k = 0; k < DRAWN; k++)
		item_free(&item[k]);
	return ok;
}

bool coverage_check(bool print)
{
	bool covered[ROWS] = { false }, ok = true;

	for (unsigned k = 0; k < nclasses; k++)
		ok &= mark(&classes[k], covered);
	for (unsigned k = 0; k < ROWS; k++) {
		if (covered[k] && (reason[k] || unsupported[k])) {
			printf("%s has a class, and a reason to have none\n", rows[k].id);
			ok = false;
		} else if (!covered[k] && !reason[k] && !unsupported[k] && rows[k].name[0]) {
			printf("%s has neither a class nor a reason (absent.def)\n", rows[k].id);
			ok = false;
		} else if (print && !covered[k] && rows[k].name[0])
			printf("not covered: %-36s %s\n", rows[k].name, unsupported[k]
				? "not supported by the executor" : reason[k]);
	}
	for (unsigned k = 0; print && k < ARRAY_SIZE(forms); k++)
		printf("not covered: %s: %s\n", forms[k].form, forms[k].reason);
	return ok;
}
