/* attention: the host's part of every program for softmax(Q K^T / sqrt(D)) V: the tensors
 * on host and device, the reference in doubles, launch, comparison and timing. */
#pragma once

#include "../common/launch.h"

/* `queries` rows of Q and O, `keys` rows of K and V in each head */
struct attention {
	long heads, queries, keys, d;
	bool causal;
	halves q, k, v;
	__half *out;

	attention(long heads, long queries, long keys, long d, bool causal)
		: heads(heads), queries(queries), keys(keys), d(d), causal(causal),
		  q(1, (uint64_t)heads * queries * d), k(2, (uint64_t)heads * keys * d),
		  v(3, (uint64_t)heads * keys * d),
		  out(harness_device<__half>(NULL, (uint64_t)heads * queries * d)) {}
	attention(const attention &) = delete;
	~attention() { cudaFree(out); }
};

/* Row i of O in `want`; `weight` is scratch memory for p.keys values. */
static void attention_row(const attention &p, long i, double *weight, double *want)
{
	const long head = i / p.queries * p.keys;
	const long keys = p.causal ? i % p.queries + 1 : p.keys;
	double sum = 0;

	for (long j = 0; j < keys; j++) {
		double s = 0;

		for (long x = 0; x < p.d; x++)
			s += __half2float(p.q.host[i * p.d + x]) * __half2float(p.k.host[(head + j) * p.d + x]);
		sum += weight[j] = exp(s / sqrt(p.d));
	}
	memset(want, 0, p.d * sizeof *want);
	for (long j = 0; j < keys; j++)
		for (long x = 0; x < p.d; x++)
			want[x] += weight[j] / sum * __half2float(p.v.host[(head + j) * p.d + x]);
}

/* Compares every row of a small problem, some dozens of a large one. */
static void attention_check(struct checker &c, const attention &p)
{
	const long rows = p.heads * p.queries;
	const long step = rows * p.keys * p.d <= 1 << 25 ? 1 : rows / 61 | 1;
	__half *got = (__half *)malloc(rows * p.d * sizeof *got);
	double *weight = (double *)malloc(p.keys * sizeof *weight);
	double *want = (double *)malloc(p.d * sizeof *want);

	CUDA(cudaMemcpy(got, p.out, rows * p.d * sizeof *got, cudaMemcpyDeviceToHost));
	for (long i = 0; i < rows; i += step) {
		attention_row(p, i, weight, want);
		for (long x = 0; x < p.d; x++)
			checker_see(c, i * p.d + x, __half2float(got[i * p.d + x]), want[x], 4e-3);
	}
	free(want);
	free(weight);
	free(got);
}

/* harness_run() for an attention program */
template <class Launch, class... Sizes>
static int attention_run(const struct program &p, const struct run &r, const attention &a,
	Launch launch, const char *format, Sizes... sizes)
{
	const double work = 4e-12 * a.heads * a.queries * a.d * a.keys / (a.causal ? 2 : 1);

	return harness_run(p, r, launch, [&](checker &c) { attention_check(c, a); }, work, "TFLOP/s",
		format, sizes...);
}

static void attention_require(const struct program &p, long b, long h, long queries, long keys,
	long causal)
{
	harness_require(b > 0 && h > 0 && queries > 0 && keys > 0, p, "sizes must be positive");
	harness_require(b < 65536 && h < 65536 && b * h < 65536, p,
		"b * h must be below 65536, the grid's limit in y and z");
	harness_require(queries < 1 << 24 && keys < 1 << 24, p, "rows must be below 2^24");
	harness_require(causal == 0 || causal == 1, p, "causal must be 0 or 1");
}
