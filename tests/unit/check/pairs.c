/* Pairs of clusters are counted exactly once, in any order. */
#include "libconsan/check/pairs.h"

#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#define FINDINGS 5u
#define CLUSTERS 80u

Test(pairs, as_a_table)
{
	static bool has[FINDINGS][CLUSTERS][CLUSTERS];
	struct pairs p = { 0 };
	uint64_t rng = 1;

	for (unsigned i = 0; i < 100000; i++) {
		uint32_t f, high, low;

		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		f = (uint32_t)(rng >> 33) % FINDINGS;
		high = (uint32_t)(rng >> 40) % CLUSTERS;
		low = (uint32_t)(rng >> 50) % CLUSTERS;
		cr_assert_eq(pairs_add(&p, f, high, low), !has[f][high][low], "%u %u %u", f, high, low);
		has[f][high][low] = true;
	}
	pairs_free(&p);
	cr_assert_eq(p.n, 0);
}

Test(pairs, far_apart)
{
	struct pairs p = { 0 };

	for (unsigned round = 0; round < 2; round++)
		for (uint32_t high = 1; high; high *= 2)
			for (uint32_t low = 0; low < 3; low++)
				cr_assert_eq(pairs_add(&p, 0, high - 1, UINT32_MAX - low), !round);
	pairs_free(&p);
}
