/* hopper_host: the host's side of the Hopper attention programs: tensor maps and
 * launches of clusters. */
#pragma once

#include "../common/tensor_map.h"
#include "attention.h"

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
