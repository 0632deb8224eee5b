/* digest: how a record is hashed, on the GPU (digest.cu) and on the host (alike.c).
 * Clocks and tickets do not count. */
#ifndef CONSAN_INSTRUMENT_DIGEST_H
#define CONSAN_INSTRUMENT_DIGEST_H

#include "record.h"

#include <stdbool.h>

#ifdef __CUDACC__
#define DIGEST static __device__
#else
#define DIGEST static inline
#endif

/* Words of a site: bits 0..11 words, 12..13 enum plan_class, and these. */
#define DIGEST_SKIPPED 0x4000u   /* how often it comes differs from run to run */
#define DIGEST_LEAVES 0x8000u    /* the lanes exit */

DIGEST uint32_t digest_how(uint32_t site)
{
	return site >> 12 & 3;
}

/* Of a record with so many lanes. */
DIGEST uint32_t digest_units(uint32_t site, bool affine, uint32_t lanes)
{
	const uint32_t words = site & 0xfff, how = digest_how(site);

	if (how == 1)
		return affine ? 1 : 9;
	if (how == 2)
		return 1 + ((affine ? 1 : lanes) * words + 3) / 4;
	return 1 + (words + 3) / 4;
}

DIGEST unsigned long long digest_mix(unsigned long long h, unsigned long long x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* The record's k-th unit {x, y, z, w}, of which the first one's z is a clock and its w, but
 * of one address (how 1), a ticket. A record's hash is the sum of its units'. */
DIGEST unsigned long long digest_unit(uint32_t k, uint32_t x, uint32_t y, uint32_t w, uint32_t z)
{
	return digest_mix(digest_mix((k + 1) * 0xbf58476d1ce4e5b9ull, (unsigned long long)x << 32 | y),
		(unsigned long long)z << 32 | w);
}

#endif
