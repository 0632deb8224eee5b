// The 16x16 tiled matrix product, for consan; its OpenCL twin is matmul.cl.
// usage: matmul [n]. Inputs are all ones, so every element of the result is n.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float as[16][16], bs[16][16];
	int x = threadIdx.x, y = threadIdx.y;
	int col = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
	float sum = 0;

	for (int t = 0; t < n; t += 16) {
		as[y][x] = a[row * n + t + x];
		bs[y][x] = b[(t + y) * n + col];
		__syncthreads();
		for (int k = 0; k < 16; k++)
			sum += as[y][k] * bs[k][x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 128;
	size_t bytes = sizeof(float) * n * n;
	std::vector<float> one(n * n, 1.0f), result(n * n);
	float *a, *b, *c;

	cudaMalloc(&a, bytes);
	cudaMalloc(&b, bytes);
	cudaMalloc(&c, bytes);
	cudaMemcpy(a, one.data(), bytes, cudaMemcpyHostToDevice);
	cudaMemcpy(b, one.data(), bytes, cudaMemcpyHostToDevice);
	matmul<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
	cudaMemcpy(result.data(), c, bytes, cudaMemcpyDeviceToHost);
	for (float r : result)
		if (r != n)
			return puts("wrong"), 1;
	return cudaGetLastError() != cudaSuccess;
}
