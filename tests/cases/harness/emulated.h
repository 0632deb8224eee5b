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
/* The seed with which the cpu backend runs the threads of this program in an order that shows what only
 * emulated GPU mode does; 0: none is listed. */
unsigned emulated_seed(const char *program);
/* Fails the running test if findings with that seed do not contain those that only emulated GPU mode
 * has, or contain one that only the cpu backend has without a seed. */
void emulated_judge_seed(const char *program, const struct found *cpu, const struct found *emulated,
	const struct found *seeded);
/* Does emulated.def list findings of this program that only the cpu backend has, which a replay of the
 * launch shows? Other values of loads (--reads) it does not. */
bool emulated_lacks(const char *program);
/* Fails the running test unless the replay has all findings of the cpu backend. */
void emulated_judge_replay(const char *program, const struct found *cpu, const struct found *replayed);
/* The k-th program of emulated.def, from 0; NULL: there are k or fewer. */
const char *emulated_program(size_t k);

#endif
