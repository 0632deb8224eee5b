/* emulated: the findings of one run by both backends, compared: rules and lines. */
#ifndef CONSAN_TESTS_EMULATED_H
#define CONSAN_TESTS_EMULATED_H

#include "found.h"

/* Fails the running test unless what both backends found differs exactly as
 * emulated.def says of this program ("attention/hopper no_k_wait"), and unless the
 * emulation reports the rule, if that does not stand there. NULL: no rule. */
void emulated_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *emulated);
/* The k-th program in emulated.def; NULL: there is none. */
const char *emulated_program(size_t k);

#endif
