/* ptx_rules: see ptx_rules.h. The table of ptx_rules.def, joined with absent.def. */
#include "ptx_rules.h"

#include "libconsan/base/base.h"

#include <string.h>

enum {
#define PTX_RULE(code, section, text) ROW_##code,
#include "ptx_rules.def"
	ROWS
};

static const struct ptx_rule rules[ROWS] = {
#define PTX_RULE(code, section, text) { #code, section, text },
#include "ptx_rules.def"
};

/* A row of absent.def that ptx_rules.def does not have fails here. */
static const struct ptx_status status[ROWS] = {
#define MODEL(code, how) [ROW_##code] = { true, how },
#define ABSENT(code, why) [ROW_##code] = { false, why },
#include "absent.def"
};

static const struct { char letter; const char *title; } groups[] = {
#define PTX_GROUP(letter, title) { letter, title },
#include "ptx_rules.def"
};

unsigned ptx_rule_count(void)
{
	return ROWS;
}

const struct ptx_rule *ptx_rule_get(unsigned i)
{
	return &rules[i];
}

static const struct ptx_rule *named(const char *code, size_t n)
{
	for (unsigned i = 0; i < ROWS; i++)
		if (strlen(rules[i].code) == n && !memcmp(rules[i].code, code, n))
			return &rules[i];
	return NULL;
}

const struct ptx_rule *ptx_rule_by_code(const char *code)
{
	return named(code, strlen(code));
}

const struct ptx_status *ptx_rule_status(const struct ptx_rule *r)
{
	const struct ptx_status *s = &status[r - rules];

	return s->how ? s : NULL;
}

const char *ptx_group_title(char letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (groups[i].letter == letter)
			return groups[i].title;
	return "";
}

const struct ptx_rule *ptx_rule_next(const char **codes)
{
	const struct ptx_rule *r = NULL;

	while (!r && **codes) {
		size_t n = strcspn(*codes, " ");

		r = named(*codes, n);
		*codes += n + ((*codes)[n] == ' ');
	}
	return r;
}

bool ptx_rule_cited(const char *codes, const struct ptx_rule *r)
{
	const struct ptx_rule *x;

	while ((x = ptx_rule_next(&codes)))
		if (x == r)
			return true;
	return false;
}
