/* emulated: compares the findings of --backend=cpu and --backend=gpu-emulated by rules and
 * lines. */
#ifndef CONSAN_TESTS_EMULATED_H
#define CONSAN_TESTS_EMULATED_H

#include "found.h"

/* Fails the running test if the findings of the backends differ in another way than emulated.def
 * lists for this program ("attention/hopper no_k_wait"), or if emulated GPU mode does not report
 * `rule` although emulated.def does not list that. rule may be NULL. */
void emulated_judge(const char *program, const char *rule, const struct found *cpu,
	const struct found *emulated);
/* Does emulated.def say that the findings differ only by when operations complete? */
bool emulated_is_late(const char *program);
/* The k-th program of emulated.def, from 0; NULL: there are k or fewer. */
const char *emulated_program(size_t k);

#endif
