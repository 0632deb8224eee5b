/* rule_example: for each rule, a kernel that violates it and its repaired twin. The table is made
 * from the specimens of the tests by tests/tools/examples.awk. */
#ifndef CONSAN_RULE_EXAMPLE_H
#define CONSAN_RULE_EXAMPLE_H

#include <stdbool.h>

struct rule_example {
	const char *code;   /* "CS106"; NULL ends the table */
	const char *path;   /* in consan's source tree */
	const char *text;   /* PTX; tagged lines end in // racy, // fixed, // @place */
};
extern const struct rule_example rule_examples[];
/* NULL if the rule has none. */
const struct rule_example *rule_example_of(const char *code);

/* A line without its tag. Points into the text. */
struct rule_example_line {
	char sign;          /* '-': only in the broken twin, '+': only in the repaired one, ' ': in both */
	bool reported;      /* a finding is reported at this line */
	const char *at;
	int n;
	const char *next;
};
/* False at the end of the text. */
bool rule_example_line(const char *text, struct rule_example_line *l);

#endif
