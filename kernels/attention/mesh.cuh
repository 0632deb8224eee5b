/* mesh: the row of ranks that the programs for ring attention have in common: on the
 * device the mapping of CTAs to ranks, on the host the options and the grid. With
 * --rank_axis=1 a rank is a group of CTAs of which only CTA 0 works. */
#pragma once

#include "hopper.cuh"
#include "hopper_host.h"

struct tensors {
	CUtensorMap q, k, v, o;
};

struct sizes {
	int queries, keys, ranks;
	bool causal, by_group;
};

DEVICE int my_rank(const sizes &s)
{
	return s.by_group ? cluster_y() : cluster_x();
}

/* The CTA of the cluster that works for a rank */
DEVICE int cta_of(const sizes &s, int rank)
{
	return s.by_group ? rank * cluster_width() : rank;
}

/* ---- host ---- */

/* The values of the options below */
struct row {
	long ranks, axis, group;
};

#define ROW {4, 0, 2}
#define ROW_OPTIONS(row) \
	{"ranks", &(row).ranks, "length of the row, 1 to 8"}, \
	{"rank_axis", &(row).axis, "0: every CTA is a rank; 1: CTA 0 of each group is"}, \
	{"group", &(row).group, "CTAs of a group, if rank_axis is 1; ranks * group up to 8"}

static void row_require(const struct program &p, const struct row &r, long keys)
{
	harness_require(r.axis == 0 || r.axis == 1, p, "rank_axis must be 0 or 1");
	harness_require(r.ranks >= 1 && r.group >= 1 && r.ranks * (r.axis ? r.group : 1) <= 8, p,
		"a cluster has 1 to 8 CTAs: ranks, or ranks * group with rank_axis=1");
	harness_require(keys <= r.ranks * BN, p,
		"n must be at most 128 * ranks: a rank holds its part of K and V in shared memory");
}

/* Boxes of Q and O are as high as the rows of a warpgroup. */
static tensors row_tensors(const attention &a)
{
	return {heads_map(a.q.device, a.heads, a.queries, a.d, WM),
		heads_map(a.k.device, a.heads, a.keys, a.d, BN),
		heads_map(a.v.device, a.heads, a.keys, a.d, BN),
		heads_map(a.out, a.heads, a.queries, a.d, WM)};
}

/* Launches one cluster for each head; a cluster is a row. */
template <class Kernel, class Bug>
static void row_launch(Kernel kernel, const attention &a, const struct row &r, int threads,
	int smem, Bug bug)
{
	const sizes s = {(int)a.queries, (int)a.keys, (int)r.ranks, a.causal, r.axis != 0};
	const dim3 cluster = r.axis ? dim3(r.group, r.ranks) : dim3(r.ranks);

	cluster_launch launch(dim3(cluster.x, cluster.y, a.heads), cluster, threads, smem);

	launch(kernel, row_tensors(a), s, bug);
}
