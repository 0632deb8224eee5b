// The same work in clusters of any size: each warp writes its part of shared memory; after a
// cluster barrier it reads the part of its peer in the next CTA, arrives on that CTA's mbarrier,
// and waits on its own.
// usage: cluster CTAS WARPS [ROUNDS]; 2048 warps in all.
#include <cooperative_groups.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

__device__ uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__global__ void exchange(int *out, int rounds)
{
	__shared__ int part[1024];
	__shared__ uint64_t bar;
	cg::cluster_group cluster = cg::this_cluster();
	const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
	const int *peer = cluster.map_shared_rank(part, next);
	int sum = 0;

	if (threadIdx.x == 0)
		asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
			:: "r"(shared_address(&bar)), "r"(blockDim.x / 32));
	asm volatile("fence.mbarrier_init.release.cluster;");
	cluster.sync();
	for (int i = 0; i < rounds; i++) {
		part[threadIdx.x] = i + threadIdx.x;
		cluster.sync();
		sum += peer[threadIdx.x];
		__syncwarp();
		if (threadIdx.x % 32 == 0)
			asm volatile("{\n\t.reg .b32 at;\n\tmapa.shared::cluster.u32 at, %0, %1;\n\t"
				"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [at];\n\t}"
				:: "r"(shared_address(&bar)), "r"(next) : "memory");
		asm volatile("{\n\t.reg .pred done;\nwait:\n\t"
			"mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t"
			"@!done bra wait;\n\t}"
			:: "r"(shared_address(&bar)), "r"(i & 1) : "memory");
	}
	cluster.sync();
	if (sum == -1)
		*out = sum;
}

int main(int argc, char **argv)
{
	const unsigned ctas = argc > 1 ? atoi(argv[1]) : 1, warps = argc > 2 ? atoi(argv[2]) : 32;
	const int rounds = argc > 3 ? atoi(argv[3]) : 64;
	cudaLaunchAttribute size = {};
	cudaLaunchConfig_t c = {};
	int *out;

	cudaMalloc(&out, sizeof *out);
	cudaFuncSetAttribute(exchange, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
	size.id = cudaLaunchAttributeClusterDimension;
	size.val.clusterDim = { ctas, 1, 1 };
	c.gridDim = 2048 / (ctas * warps) * ctas;
	c.blockDim = 32 * warps;
	c.attrs = &size;
	c.numAttrs = 1;
	if (cudaLaunchKernelEx(&c, exchange, out, rounds) != cudaSuccess
			|| cudaDeviceSynchronize() != cudaSuccess) {
		printf("wrong: %s\n", cudaGetErrorString(cudaGetLastError()));
		return 1;
	}
	return 0;
}
