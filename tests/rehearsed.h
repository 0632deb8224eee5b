/* rehearsed: the findings of one run by both backends, compared: rules and lines. */
#ifndef CONSAN_TESTS_REHEARSED_H
#define CONSAN_TESTS_REHEARSED_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Fails the running test unless the reports of the cpu backend and of the rehearsal differ
 * exactly as rehearsed.def says, and the rehearsal reports the bug's own rule, too. */
void rehearsed_judge(const char *kernel, const char *bug, const char *rule, const json_t *cpu,
	const json_t *rehearsed);
/* The k-th entry of rehearsed.def; false: there is none. */
bool rehearsed_entry(size_t k, const char **kernel, const char **bug);

#endif
