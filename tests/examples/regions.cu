/* Named regions of a program. Without consan-run, the calls have no effect. */
#include <consan/region.h>

#include <cstdio>

__global__ void exchange(int *out, int wait)
{
	__shared__ int tile[64];

	tile[threadIdx.x] = threadIdx.x;
	if (wait)
		__syncthreads();
	out[threadIdx.x] = tile[threadIdx.x ^ 32];
}

int main()
{
	int *out;

	cudaMalloc(&out, 64 * sizeof *out);
	exchange<<<1, 64>>>(out, 1);
	consan_region_begin("with its barrier");
	exchange<<<1, 64>>>(out, 1);
	if (!consan_expect_clean())
		return 1;
	consan_region_end();
	consan_region_begin("without its barrier");
	exchange<<<1, 64>>>(out, 0);
	consan_expect_clean();
	printf("%zu occurrences of errors\n", consan_region_end());
	return cudaDeviceSynchronize() != cudaSuccess;
}
