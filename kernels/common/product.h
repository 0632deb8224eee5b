/* product: what the host of a GEMM program knows of C = A B. */
#pragma once

#include "harness.h"

/* B by places: element (l, j) stands at l * down + j * right. */
struct product {
	long m, n, k;
	const __half *a, *b;
	long down, right;
};

/* Every element of a small product, else some thousands of them. */
static void product_check(struct checker &c, const product &p, const __half *device)
{
	const uint64_t size = (uint64_t)p.m * p.n;
	const uint64_t step = size * p.k <= 1 << 25 ? 1 : size / 4093 | 1;
	__half *got = (__half *)malloc(size * sizeof *got);

	CUDA(cudaMemcpy(got, device, size * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < size; i += step) {
		const __half *row = p.a + i / p.n * p.k, *col = p.b + i % p.n * p.right;
		double want = 0;

		for (long l = 0; l < p.k; l++)
			want += __half2float(row[l]) * __half2float(col[l * p.down]);
		checker_see(c, i, __half2float(got[i]), want, 1e-3);
	}
	free(got);
}

static void product_require(const struct program &p, long m, long n, long k)
{
	harness_require(m > 0 && n > 0 && k > 0 && n % 8 == 0 && k % 8 == 0, p,
		"m, n and k must be positive, n and k multiples of 8: rows are copied 16 bytes at a time");
	harness_require(m < 1 << 24 && n < 1 << 24 && k < 1 << 24, p,
		"m, n and k must be below 2^24: tiles are counted in 32 bits");
}
