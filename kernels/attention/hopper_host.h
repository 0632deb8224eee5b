/* hopper_host: the host's side of the Hopper attention programs: tensor maps,
 * launches of clusters, and softmax(Q K^T / sqrt(D)) V in doubles. */
#pragma once

#include "../common/tensor_map.h"

/* [heads][rows][d] halves, read or written in boxes of `high` rows of one head by
 * 64 columns. What lies beyond a head's rows is read as zero and not written. */
static CUtensorMap heads_map(const __half *at, long heads, long rows, long d, uint32_t high)
{
	const cuuint64_t size[] = {(cuuint64_t)d, (cuuint64_t)rows, (cuuint64_t)heads};
	const cuuint32_t box[] = {64, high, 1};

	return tensor_map_packed(at, 3, size, box);
}

template <class Kernel, class... Args>
static void launch_clusters(Kernel kernel, dim3 grid, dim3 cluster, int threads, int smem,
	Args... args)
{
	cudaLaunchAttribute attr = {};
	cudaLaunchConfig_t config = {};

	attr.id = cudaLaunchAttributeClusterDimension;
	attr.val.clusterDim.x = cluster.x;
	attr.val.clusterDim.y = cluster.y;
	attr.val.clusterDim.z = cluster.z;
	config.gridDim = grid;
	config.blockDim = dim3(threads);
	config.dynamicSmemBytes = smem;
	config.attrs = &attr;
	config.numAttrs = 1;
	CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
	CUDA(cudaLaunchKernelEx(&config, kernel, args...));
}

/* `queries` rows of Q and O, `keys` rows of K and V in each head */
struct reference {
	long heads, queries, keys, d;
	bool causal;
	const __half *q, *k, *v;
};

static void reference_row(const struct reference &p, long i, double *weight, double *want)
{
	const long head = i / p.queries * p.keys;
	const long keys = p.causal ? i % p.queries + 1 : p.keys;
	double sum = 0;

	for (long j = 0; j < keys; j++) {
		double s = 0;

		for (long x = 0; x < p.d; x++)
			s += __half2float(p.q[i * p.d + x]) * __half2float(p.k[(head + j) * p.d + x]);
		sum += weight[j] = exp(s / sqrt(p.d));
	}
	memset(want, 0, p.d * sizeof *want);
	for (long j = 0; j < keys; j++)
		for (long x = 0; x < p.d; x++)
			want[x] += weight[j] / sum * __half2float(p.v[(head + j) * p.d + x]);
}

/* Every row of a small problem, else some dozens of them. */
static void reference_check(struct checker &c, const struct reference &p, const __half *device)
{
	const long rows = p.heads * p.queries;
	const long step = rows * p.keys * p.d <= 1 << 25 ? 1 : rows / 61 | 1;
	__half *got = (__half *)malloc(rows * p.d * sizeof *got);
	double *weight = (double *)malloc(p.keys * sizeof *weight);
	double *want = (double *)malloc(p.d * sizeof *want);

	CUDA(cudaMemcpy(got, device, rows * p.d * sizeof *got, cudaMemcpyDeviceToHost));
	for (long i = 0; i < rows; i += step) {
		reference_row(p, i, weight, want);
		for (long x = 0; x < p.d; x++)
			checker_see(c, i * p.d + x, __half2float(got[i * p.d + x]), want[x], 4e-3);
	}
	free(want);
	free(weight);
	free(got);
}
