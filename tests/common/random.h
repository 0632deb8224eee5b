/* random: numbers for random tests, the same for the same seed: a linear congruential generator, of which the
 * upper bits are used, as the lower ones repeat soon. */
#ifndef CONSAN_TESTS_RANDOM_H
#define CONSAN_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t seed;

/* Less than n, which is not 0. */
static inline uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

#endif
