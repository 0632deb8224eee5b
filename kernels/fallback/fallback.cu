/* fallback: what a kernel may and may not do in a cluster that the device may
 * replace by smaller ones (cudaLaunchAttributePreferredClusterDimension). Every
 * form is correct in clusters of 4; only the first two stay correct when some of the
 * clusters are smaller.
 *
 *   multicast  each CTA loads its part of a table into all CTAs of its cluster; parts
 *              and mask come from its actual cluster                    invariant
 *   counted    each CTA arrives at all CTAs of its cluster, which expect as many
 *              arrivals as the cluster has CTAs                         invariant
 *   scratch    reads what the CTA two further wrote to global memory before the
 *              cluster barrier, which may not include that CTA
 *   dsmem      sums over the shared memory of its cluster, which may have fewer CTAs
 *   atomic     sums over its cluster by atomics on global memory: likewise
 *   rank       arrives at the next of 4 ranks, which may not exist
 *   count      waits for 4 arrivals, of CTAs that may not exist
 *   mask       multicasts to 4 CTAs, which may not exist
 *
 *      CTA                                    the others of its cluster
 *      mbarrier.init, fence, cluster barrier <--> cluster barrier
 *      (load, store or arrive)  ------------->  wait: mbarrier or cluster barrier
 *      cluster barrier  <---------------------> cluster barrier: none exits early
 */
#include "../common/launch.h"
#include "../common/ptx.cuh"

enum { CTAS = 4, THREADS = 128, BYTES = THREADS * 4 };

enum form { MULTICAST, COUNTED, SCRATCH, DSMEM, ATOMIC, RANK, COUNT, MASK };
#define FORMS "multicast|counted|scratch|dsmem|atomic|rank|count|mask"

struct arrays {
	const float *in, *table; /* THREADS for each CTA, THREADS */
	float *scratch, *sums, *out;
};

/* Loads the table in as many parts as the cluster has CTAs, each into `ctas` CTAs. Returns
 * this thread's element. */
DEVICE float from_table(const arrays &a, float *table, uint64_t *bar, uint32_t ctas)
{
	const uint32_t part = BYTES / cluster_ctas();

	if (threadIdx.x == 0) {
		mbar_arrive_expect_tx(bar, BYTES);
		bulk_load_multicast((char *)table + cluster_rank() * part,
			(const char *)a.table + cluster_rank() * part, part, bar, (1 << ctas) - 1);
	}
	mbar_wait_cluster(bar, 0);
	return table[threadIdx.x];
}

__global__ void __launch_bounds__(THREADS) fallback(const arrays a, enum form form)
{
	__shared__ __align__(128) float mine[THREADS];
	__shared__ uint64_t bar;
	const uint32_t t = threadIdx.x, at = blockIdx.x * THREADS + t, ctas = cluster_ctas();
	float x = a.in[at];

	if (t == 0) {
		mbar_init(&bar, form == COUNT ? CTAS : form == COUNTED ? ctas : 1);
		fence_mbar_init();
	}
	cluster_sync_relaxed(); // publishes the mbarrier
	switch (form) {
	case MULTICAST:
		x *= from_table(a, mine, &bar, ctas);
		break;
	case MASK:
		x *= from_table(a, mine, &bar, CTAS);
		break;
	case COUNTED:
	case COUNT:
		if (t < ctas)
			mbar_arrive_at(&bar, t);
		mbar_wait_cluster(&bar, 0);
		break;
	case RANK:
		if (t == 0)
			mbar_arrive_at(&bar, (blockIdx.x + 1) % CTAS);
		mbar_wait_cluster(&bar, 0);
		break;
	case SCRATCH:
		a.scratch[at] = x;
		cluster_sync();
		x += a.scratch[at ^ 2 * THREADS];
		break;
	case DSMEM:
		mine[t] = x;
		cluster_sync();
		x = 0;
#pragma unroll 1
		for (uint32_t r = 0; r < ctas; r++)
			x += dsmem_load(&mine[t], r);
		break;
	case ATOMIC:
		atomicAdd(&a.sums[blockIdx.x / CTAS * THREADS + t], x);
		cluster_sync(); // the atomics
		x = atomicAdd(&a.sums[blockIdx.x / CTAS * THREADS + t], 0.f);
		break;
	}
	a.out[at] = x;
	cluster_sync_relaxed(); // no CTA exits early
}

/* ---- host ---- */

static float expected(const float *in, const float *table, long block, int t, long form)
{
	float sum = 0;

	switch (form) {
	case MULTICAST:
	case MASK:
		return in[block * THREADS + t] * table[t];
	case SCRATCH:
		return in[block * THREADS + t] + in[(block ^ 2) * THREADS + t];
	case DSMEM:
	case ATOMIC:
		for (long b = block / CTAS * CTAS; b < block / CTAS * CTAS + CTAS; b++)
			sum += in[b * THREADS + t];
		return sum;
	}
	return in[block * THREADS + t];
}

static float *values(uint32_t seed, uint64_t n)
{
	float *x = (float *)malloc(n * sizeof *x);

	for (uint64_t i = 0; i < n; i++)
		x[i] = harness_value(seed, i);
	return x;
}

static void launch(const arrays &a, long clusters, long least, long form)
{
	cluster_launch run(dim3(clusters * CTAS), dim3(least), THREADS, 0);

	if (least < CTAS)
		run.prefer(dim3(CTAS));
	run(fallback, a, (enum form)form);
	CUDA(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	long clusters = 4, least = CTAS, form = MULTICAST;
	const struct option options[] = {
		{"form", &form, "what the kernel does", FORMS},
		{"clusters", &clusters, "clusters of 4"},
		{"least", &least, "CTAs of the smallest clusters allowed: 4, 2 or 1"},
	};
	const struct program p = {"fallback", "clusters that may be replaced by smaller ones", __FILE__,
		options, 3, NULL, 0};
	const struct run r = harness_args(argc, argv, p);
	struct checker c = {};

	harness_require(clusters > 0 && clusters < 4096, p, "clusters must be 1 to 4095");
	harness_require(least == 1 || least == 2 || least == CTAS, p, "least must be 1, 2 or 4");
	const uint64_t n = (uint64_t)clusters * CTAS * THREADS;
	float *in = values(1, n), *table = values(2, THREADS), *got = (float *)malloc(n * sizeof *got);
	const arrays a = {harness_device(in, n), harness_device(table, THREADS),
		harness_device<float>(NULL, n), harness_device<float>(NULL, n),
		harness_device<float>(NULL, n)};

	launch(a, clusters, least, form);
	CUDA(cudaMemcpy(got, a.out, n * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; r.check && i < n; i++)
		checker_see(c, i, got[i], expected(in, table, i / THREADS, i % THREADS, form), 1e-6);
	if (r.bench)
		printf("fallback: nothing to time\n");
	cudaFree((void *)a.in);
	cudaFree((void *)a.table);
	cudaFree(a.scratch);
	cudaFree(a.sums);
	cudaFree(a.out);
	free(in);
	free(table);
	free(got);
	return r.check ? checker_verdict(c, p) : 0;
}
