/* product: the host's reference of C = A B for the GEMM programs, and what sizes they allow. */
#pragma once

#include "harness.h"

/* The dot product of n halves of `row` and n halves of `col`, which are `step` apart */
static double product_dot(const __half *row, const __half *col, long step, long n)
{
	double sum = 0;

	for (long l = 0; l < n; l++)
		sum += __half2float(row[l]) * __half2float(col[l * step]);
	return sum;
}

/* Element (l, j) of B is b[l * down + j * right]. */
struct product {
	long m, n, k;
	const __half *a, *b;
	long down, right;
};

/* Compares every element of a small product, some thousands of a large one. */
static void product_check(struct checker &c, const product &p, const __half *device)
{
	const uint64_t size = (uint64_t)p.m * p.n;
	const uint64_t step = size * p.k <= 1 << 25 ? 1 : size / 4093 | 1;
	__half *got = (__half *)malloc(size * sizeof *got);

	CUDA(cudaMemcpy(got, device, size * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < size; i += step) {
		const double want = product_dot(p.a + i / p.n * p.k, p.b + i % p.n * p.right,
			p.down, p.k);

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
