/* rehearsed: the findings of one run by both backends, compared: rules and lines. */
#ifndef CONSAN_TESTS_REHEARSED_H
#define CONSAN_TESTS_REHEARSED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct finding;

/* What a run found, "CS104 108|243,87|": the rule, and of each side its line and those
 * at which it is inlined. Ascending. */
struct found { char *at[256]; size_t n; };

struct found found_of_report(const json_t *report); /* lines of the source */
struct found found_of(const struct finding *const *f, size_t n); /* lines of the PTX */
void found_drop(struct found *);

/* Fails the running test unless what both backends found differs exactly as
 * rehearsed.def says of this program ("attention/hopper no_k_wait"), and unless the
 * rehearsal reports the rule, if that does not stand there. NULL: no rule. */
void rehearsed_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *rehearsed);
/* The k-th program in rehearsed.def; NULL: there is none. */
const char *rehearsed_program(size_t k);

#endif
