/* A minimal program with a kernel; exit status 0 if it ran. Also built as a plugin. */
#include <cstdio>

__global__ void set(int *to) { *to = 4; }

extern "C" int small()
{
	int *d, h = 0;
	cudaMalloc(&d, 4);
	set<<<1, 1>>>(d);
	cudaError_t e = cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost);
	printf("%s\n", cudaGetErrorName(cudaGetLastError()));
	return e || h != 4;
}

int main() { return small(); }
