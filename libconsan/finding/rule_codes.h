/* rule_codes: CS101 and so on as constants: rule numbers, in the order of rules.def. Only
 * code that raises or compares rules includes it, as a new row compiles it again. */
#ifndef CONSAN_RULE_CODES_H
#define CONSAN_RULE_CODES_H

enum rule_code {
	CS000, /* RULE_NONE */
#define RULE(code, sev, ids, title, why, fix) code,
#include "rules.def"
#undef RULE
};

#endif
