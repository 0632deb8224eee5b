/* ptx_rules: the catalogue of PTX ISA rules that rules.def cites, as data. */
#ifndef CONSAN_PTX_RULES_H
#define CONSAN_PTX_RULES_H

#include <stdbool.h>

struct ptx_rule {
	const char *code;    /* "A12"; the letter is the group */
	const char *section; /* of PTX ISA 9.1, or "": see ptx_rules.def */
	const char *text;    /* one sentence */
};
/* How consan treats a rule that no row of rules.def implements (absent.def). */
struct ptx_status {
	bool model;          /* the model of the checker keeps it; else it is not checked */
	const char *how;     /* or why not */
};

unsigned ptx_rule_count(void);
const struct ptx_rule *ptx_rule_get(unsigned i); /* 0 .. ptx_rule_count() - 1 */
const struct ptx_rule *ptx_rule_by_code(const char *code); /* NULL if there is none */
const struct ptx_status *ptx_rule_status(const struct ptx_rule *r); /* NULL: rules.def cites it */
const char *ptx_group_title(char letter); /* "" if there is none */

/* Walks codes separated by blanks ("A12 F12"): the rule of the first, and *codes behind it.
 * Skips words that are no code of the catalogue; NULL at the end. */
const struct ptx_rule *ptx_rule_next(const char **codes);
/* Does such a list name this rule? */
bool ptx_rule_cited(const char *codes, const struct ptx_rule *r);

#endif
