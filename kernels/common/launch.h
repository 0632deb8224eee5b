/* launch: how the host launches a kernel, by itself or in clusters. */
#pragma once

#include "harness.h"

/* `smem`: bytes of dynamic shared memory of a CTA, which may exceed the default limit */
template <class Kernel, class... Args>
static void launch_grid(Kernel kernel, dim3 grid, int threads, int smem, Args... args)
{
	CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
	kernel<<<grid, threads, smem>>>(args...);
	CUDA(cudaGetLastError());
}

/* A launch in clusters. The configuration points to its attributes, so it is not copied. */
struct cluster_launch {
	cudaLaunchAttribute attribute[2] = {};
	cudaLaunchConfig_t config = {};

	cluster_launch(dim3 grid, dim3 cluster, int threads, int smem)
	{
		attribute[0].id = cudaLaunchAttributeClusterDimension;
		attribute[0].val.clusterDim = {cluster.x, cluster.y, cluster.z};
		config.gridDim = grid;
		config.blockDim = dim3(threads);
		config.dynamicSmemBytes = smem;
		config.attrs = attribute;
		config.numAttrs = 1;
	}
	cluster_launch(const cluster_launch &) = delete;

	/* Clusters of this size, and those of the constructor where it does not fit */
	void prefer(dim3 cluster)
	{
		attribute[1].id = cudaLaunchAttributePreferredClusterDimension;
		attribute[1].val.preferredClusterDim = {cluster.x, cluster.y, cluster.z};
		config.numAttrs = 2;
	}

	template <class Kernel, class... Args> void operator()(Kernel kernel, Args... args)
	{
		CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
			(int)config.dynamicSmemBytes));
		CUDA(cudaLaunchKernelEx(&config, kernel, args...));
	}
};
