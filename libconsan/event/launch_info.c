/* launch_info: the place of a cluster and of a CTA in the grid, and names of shared memory. */
#include "launch_info.h"

#include <stdio.h>

#define MBARRIER 8u      /* bytes */
#define MBARRIERS 64u    /* of the largest variable that is taken for an array of them. PTX declares
			    arrays of a class as bytes, so that the element is not known. */

/* Ranks and cluster ids count x fastest, as %cluster_ctarank and %clusterid do. */
uint32_t cluster_whole(const struct launch_info *l)
{
	uint32_t n = 1;

	for (unsigned d = 0; d < 3; d++)
		n *= l->grid[d] / (l->cluster[d] ? l->cluster[d] : 1);
	return n;
}

void cluster_dims(const struct cluster_info *c, uint32_t dims[3])
{
	const struct launch_info *l = c->launch;
	const bool split = l->fallback[0] && c->id >= cluster_whole(l);

	for (unsigned d = 0; d < 3; d++)
		dims[d] = split ? l->fallback[d] : l->cluster[d] ? l->cluster[d] : 1;
}

void cluster_ctaid(const struct cluster_info *c, unsigned rank, uint32_t id[3])
{
	const struct launch_info *l = c->launch;
	uint32_t at = c->id, in = rank, size[3];

	cluster_dims(c, size);
	if (l->fallback[0] && at >= cluster_whole(l))
		at -= cluster_whole(l);
	for (unsigned d = 0; d < 3; d++) {
		uint32_t n = l->grid[d] / size[d];

		if (!n)
			n = 1;
		id[d] = at % n * size[d] + in % size[d];
		at /= n;
		in /= size[d];
	}
}

void launch_symbol(const struct launch_info *l, uint64_t addr, bool mbarrier, char *out, size_t n)
{
	const struct ev_symbol *s = NULL;
	uint64_t at;

	for (size_t i = 0; i < l->nsymbols && !s; i++)
		if (addr >= l->symbols[i].addr && addr - l->symbols[i].addr < l->symbols[i].bytes)
			s = &l->symbols[i];
	if (!s) {
		snprintf(out, n, "%s", "");
		return;
	}
	at = addr - s->addr;
	if (mbarrier && s->bytes > MBARRIER && s->bytes <= MBARRIERS * MBARRIER
			&& s->bytes % MBARRIER == 0 && at % MBARRIER == 0)
		snprintf(out, n, "%.50s[%u]", s->name, (unsigned)(at / MBARRIER));
	else if (at)
		snprintf(out, n, "%.50s+0x%llx", s->name, (unsigned long long)at);
	else
		snprintf(out, n, "%s", s->name);
}
