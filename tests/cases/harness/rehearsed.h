/* rehearsed: the findings of one run by both backends, compared: rules and lines. */
#ifndef CONSAN_TESTS_REHEARSED_H
#define CONSAN_TESTS_REHEARSED_H

#include "found.h"

/* Fails the running test unless what both backends found differs exactly as
 * rehearsed.def says of this program ("attention/hopper no_k_wait"), and unless the
 * rehearsal reports the rule, if that does not stand there. NULL: no rule. */
void rehearsed_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *rehearsed);
/* The k-th program in rehearsed.def; NULL: there is none. */
const char *rehearsed_program(size_t k);

#endif
