/* digest: how a record is hashed, on the GPU (digest.cu) and on the host (identical.c).
 * Clocks, tickets and the values of stores are left out. */
#ifndef CONSAN_INSTRUMENT_DIGEST_H
#define CONSAN_INSTRUMENT_DIGEST_H

#include "record.h"

#include <stdbool.h>

#ifdef __CUDACC__
#define DIGEST static __device__
#else
#define DIGEST static inline
#endif

/* A site's word: bits 0..11 words of its records (class 1: 1, or 2 with the value of a store), 12..13 enum plan_class, and these. */
#define DIGEST_SKIPPED 0x4000u   /* left out, as its number of records differs from run to run */
#define DIGEST_LEAVES 0x8000u    /* the lanes exit */
#define DIGEST_GLOBAL 0x10000u   /* class 1, with addresses of 64 bits: of PLAN_GLOBAL */
#define DIGEST_PLACE 0x20000u    /* only the site and the lanes count */

DIGEST uint32_t digest_class(uint32_t site)
{
	return site >> 12 & 3;
}

/* Its last unit is what a store writes, which does not count: 1; else 0. */
DIGEST uint32_t digest_value(uint32_t site)
{
	return digest_class(site) == 1 && (site & 0xfff) > 1;
}

/* Units of 16 bytes of a record with so many lanes. */
DIGEST uint32_t digest_units(uint32_t site, bool affine, uint32_t lanes)
{
	const uint32_t words = site & 0xfff, kind = digest_class(site);

	if (site & DIGEST_GLOBAL)
		return affine ? 2 : 17 + digest_value(site);
	if (kind == 1)
		return (affine ? 1 : 9) + digest_value(site);
	if (kind == 2)
		return 1 + ((affine ? 1 : lanes) * words + 3) / 4;
	return 1 + (words + 3) / 4;
}

DIGEST unsigned long long digest_mix(unsigned long long h, unsigned long long x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15ull;
	return h ^ h >> 29;
}

/* The hash of a record's k-th unit {x, y, z, w}. The caller passes 0 for what does not count:
 * of the first unit z, the clock, and w, the ticket, unless the class is 1, where w is an
 * address. A record's hash is the sum of its units' hashes. */
DIGEST unsigned long long digest_unit(uint32_t k, uint32_t x, uint32_t y, uint32_t w, uint32_t z)
{
	return digest_mix(digest_mix((k + 1) * 0xbf58476d1ce4e5b9ull, (unsigned long long)x << 32 | y),
		(unsigned long long)z << 32 | w);
}

#endif
