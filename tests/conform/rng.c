#include "conform.h"

struct rng rng_start(uint64_t seed, const char *class, uint64_t index)
{
	struct rng r = { seed * 0x9e3779b97f4a7c15u + index };

	for (; *class; class++)
		r.s = (r.s ^ (unsigned char)*class) * 0x100000001b3u;
	r.s ^= index << 32;
	rng_bits(&r);
	return r;
}

/* splitmix64 */
uint64_t rng_bits(struct rng *r)
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

unsigned rng_below(struct rng *r, unsigned n)
{
	return (unsigned)((rng_bits(r) >> 32) * n >> 32);
}

bool rng_once_in(struct rng *r, unsigned n)
{
	return rng_below(r, n) == 0;
}
