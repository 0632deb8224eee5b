/* product: the host's reference of C = A B for the GEMM programs, and what sizes they allow. */
#pragma once

#include "harness.h"

/* The dot product of n elements of `row` and n elements of `col`, which are `step` apart */
template <class T> static double product_dot(const T *row, const T *col, long step, long n)
{
	double sum = 0;

	for (long l = 0; l < n; l++)
		sum += (float)row[l] * (float)col[l * step];
	return sum;
}

/* Element (l, j) of B is b[l * down + j * right]. */
template <class T> struct product {
	long m, n, k;
	const T *a, *b;
	long down, right;
};

/* Compares every element of a small product, some thousands of a large one, with the reference
 * rounded to the type of the result. want(row, column) returns the reference. */
template <class T, class Want>
static void product_check(struct checker &c, long m, long n, long k, const T *device, Want want)
{
	const uint64_t size = (uint64_t)m * n;
	const uint64_t step = size * k <= 1 << 25 ? 1 : size / 4093 | 1;
	T *got = (T *)malloc(size * sizeof *got);

	CUDA(cudaMemcpy(got, device, size * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < size; i += step)
		checker_see(c, i, (float)got[i], (float)T((float)want(i / n, i % n)), 1e-3);
	free(got);
}

template <class T>
static void product_check(struct checker &c, const product<T> &p, const T *device)
{
	product_check(c, p.m, p.n, p.k, device, [&](long row, long col) {
		return product_dot(p.a + row * p.k, p.b + col * p.right, p.down, p.k);
	});
}

static void product_require(const struct program &p, long m, long n, long k)
{
	harness_require(m > 0 && n > 0 && k > 0 && n % 8 == 0 && k % 8 == 0, p,
		"m, n and k must be positive, n and k multiples of 8: rows are copied 16 bytes at a time");
	harness_require(m < 1 << 24 && n < 1 << 24 && k < 1 << 24, p,
		"m, n and k must be below 2^24: tiles are counted in 32 bits");
}
