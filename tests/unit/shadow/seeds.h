/* seeds: the seeds of random cases. $SHADOW_RUNS: number of cases, $SHADOW_FROM: the first;
 * $SHADOW_SEED: one case, as a failure names it. */
#ifndef TESTS_SHADOW_SEEDS_H
#define TESTS_SHADOW_SEEDS_H

#include <stdint.h>
#include <stdlib.h>

static inline unsigned long seeds_number(const char *name, unsigned long otherwise)
{
	const char *s = getenv(name);

	return s ? strtoul(s, NULL, 0) : otherwise;
}

/* Runs `runs` cases, or as many as the environment asks for. Returns their number; 0: only the case
 * of one seed. */
static inline unsigned long seeds_run(unsigned long runs, void (*one_case)(uint64_t from))
{
	const char *one = getenv("SHADOW_SEED");
	const unsigned long n = seeds_number("SHADOW_RUNS", runs);
	const unsigned long from = seeds_number("SHADOW_FROM", 0);

	if (one) {
		one_case(strtoull(one, NULL, 0));
		return 0;
	}
	for (unsigned long i = from; i < from + n; i++)
		one_case(i * 0x9e3779b97f4a7c15u + 1);
	return n;
}

#endif
