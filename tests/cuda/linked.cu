/* A program of two files compiled separately (-rdc=true): this file with and without PART.
 * Exit status 0: external names are shared, and static names are local to each file. */
#include <cstdio>

template <class T> __device__ T three() { return T(3); }

#ifdef PART
extern __device__ int common;
static __device__ int own = 20;
__device__ __noinline__ int twice(int x) { return 2 * x; }
__global__ void second(int *to) { to[1] = own + common + three<int>(); own++; }
void run_second(int *to) { second<<<1, 1>>>(to); }
#else
__device__ int common = 100;
static __device__ int own = 1;
extern __device__ int twice(int);
__global__ void first(int *to) { to[0] = twice(own) + common + three<int>(); own++; }
void run_second(int *to);

int main()
{
	int *m;
	cudaMallocManaged(&m, 8);
	first<<<1, 1>>>(m);
	run_second(m);
	cudaError_t e = cudaDeviceSynchronize();
	printf("%s %d %d\n", cudaGetErrorName(e), m[0], m[1]);
	return e || m[0] != 105 || m[1] != 123;
}
#endif
