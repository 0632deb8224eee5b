/* fa2_host: the host's side of the FlashAttention-2 programs: options, inputs,
 * the launch for the options' values, checking against a softmax in doubles,
 * timing. A program gives it a struct with
 *
 *   template <int D, int stages, int layout, class Bug>
 *   static void launch(const problem &p, int heads, Bug bug);
 *   static constexpr long default_n;   small: checkers are slow
 *   static constexpr long max_stages;  1, 2 and this
 *   static constexpr char refusal[];   what to say for a D that there is not
 *
 * and to fa2_main the values of D that there are. The first is the default one,
 * and the one that bugs are planted in. */
#pragma once

#include "../common/harness.h"
#include "fa2.cuh"

/* Scores count in units of log2. */
static float log2_scale(int d)
{
	return 1.44269504f / sqrtf((float)d);
}

struct shape {
	long d, stages, layout;
};

template <class V, int D, int stages>
static void launch_layout(const shape &s, const problem &p, int heads)
{
	switch ((enum layout)s.layout) {
	case SWIZZLED: return V::template launch<D, stages, SWIZZLED>(p, heads, no_bug{});
	case PADDED: return V::template launch<D, stages, PADDED>(p, heads, no_bug{});
	case NAIVE: return V::template launch<D, stages, NAIVE>(p, heads, no_bug{});
	}
}

template <class V, int D> static void launch_stages(const shape &s, const problem &p, int heads)
{
	if (s.stages == 1)
		return launch_layout<V, D, 1>(s, p, heads);
	if (s.stages == 2)
		return launch_layout<V, D, 2>(s, p, heads);
	if constexpr (V::max_stages > 2)
		launch_layout<V, D, V::max_stages>(s, p, heads);
}

/* V::launch for the values of the options, D being one of those given */
template <class V, int D, int... more>
static void launch(const shape &s, const problem &p, int heads)
{
	if (s.d == D)
		return launch_stages<V, D>(s, p, heads);
	if constexpr (sizeof...(more) > 0)
		launch<V, more...>(s, p, heads);
}

template <class V, int D>
static void launch_bug(const shape &s, const problem &p, int heads, int bug)
{
	if (s.stages == 1)
		V::template launch<D, 1, SWIZZLED>(p, heads, planted_bug{bug});
	else
		V::template launch<D, 2, SWIZZLED>(p, heads, planted_bug{bug});
}

/* Every row of a small problem, else some dozens of them. */
static void check(struct checker &c, const problem &p, int heads, int d, const __half *q,
	const __half *k, const __half *v)
{
	const uint64_t rows = (uint64_t)heads * p.n;
	const uint64_t step = rows * p.n * d <= 1 << 25 ? 1 : rows / 61 | 1;
	__half *got = (__half *)malloc(rows * d * sizeof *got);
	double *weight = (double *)malloc(p.n * sizeof *weight);
	double *want = (double *)malloc(d * sizeof *want);

	CUDA(cudaMemcpy(got, p.o, rows * d * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < rows; i += step) {
		const uint64_t head = i / p.n * p.n;
		const int keys = p.causal ? (int)(i % p.n) + 1 : p.n;
		double sum = 0;

		for (int j = 0; j < keys; j++) {
			double s = 0;

			for (int x = 0; x < d; x++)
				s += __half2float(q[i * d + x]) * __half2float(k[(head + j) * d + x]);
			sum += weight[j] = exp(s / sqrt(d));
		}
		memset(want, 0, d * sizeof *want);
		for (int j = 0; j < keys; j++)
			for (int x = 0; x < d; x++)
				want[x] += weight[j] / sum * __half2float(v[(head + j) * d + x]);
		for (int x = 0; x < d; x++)
			checker_see(c, i * d + x, __half2float(got[i * d + x]), want[x], 4e-3);
	}
	free(want);
	free(weight);
	free(got);
}

template <class V, int D, int... more>
static int fa2_main(int argc, char **argv, const char *name, const char *what,
	const char *source, const struct bug *bug, size_t nbugs)
{
	const long ds[] = {D, more...};
	long b = 1, h = 1, n = V::default_n, causal = 0;
	shape s = {D, 1, SWIZZLED};
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head"},
		{"d", &s.d, "columns of Q, K, V and O"},
		{"stages", &s.stages, "1: what is loaded has one place; 2: what comes next has its own"},
		{"causal", &causal, "1: row i sees the keys up to i"},
		{"smem", &s.layout, "layout of tiles in shared memory", LAYOUTS},
	};
	const struct program prog = {name, what, source, options,
		sizeof options / sizeof *options, bug, nbugs};
	const struct run r = harness_args(argc, argv, prog);
	struct checker c = {};
	bool known = false;

	for (size_t i = 0; i < sizeof ds / sizeof *ds; i++)
		known |= ds[i] == s.d;
	harness_require(known, prog, V::refusal);
	harness_require(s.stages == 1 || s.stages == 2 || s.stages == V::max_stages, prog,
		V::max_stages == 2 ? "stages must be 1 or 2" : "stages must be 1, 2 or 4");
	static_assert(V::max_stages == 2 || V::max_stages == 4);
	harness_require(b > 0 && h > 0 && n > 0, prog, "sizes must be positive");
	harness_require(b < 65536 && h < 65536 && b * h < 65536, prog,
		"b * h must be below 65536, the grid's limit in y");
	harness_require(causal == 0 || causal == 1, prog, "causal must be 0 or 1");
	harness_require(n < 1 << 24, prog, "n must be below 2^24");
	harness_require(r.bug < 0 || (s.d == D && s.stages <= 2 && s.layout == SWIZZLED), prog,
		"the bugs are planted in the kernel for the default d and smem, and 1 or 2 stages");

	const uint64_t size = (uint64_t)b * h * n * s.d;
	__half *q = harness_halves(1, size), *k = harness_halves(2, size), *v = harness_halves(3, size);
	__half *dq = harness_device(q, size), *dk = harness_device(k, size);
	__half *dv = harness_device(v, size);
	__half *out = harness_device<__half>(NULL, size);
	const problem p = {dq, dk, dv, out, (int)n, causal != 0};

	if (r.bug >= 0)
		launch_bug<V, D>(s, p, b * h, r.bug);
	else
		launch<V, D, more...>(s, p, b * h);
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		check(c, p, b * h, s.d, q, k, v);
	if (r.bench) {
		const double t = harness_time([&] { launch<V, D, more...>(s, p, b * h); });

		printf("%s: b %ld, h %ld, n %ld, d %ld, stages %ld%s, smem %ld: %.3f ms, %.1f TFLOP/s\n",
			name, b, h, n, s.d, s.stages, causal ? ", causal" : "", s.layout, t * 1e3,
			4e-12 * size * n / (causal ? 2 : 1) / t);
	}
	cudaFree(dq);
	cudaFree(dk);
	cudaFree(dv);
	cudaFree(out);
	free(q);
	free(k);
	free(v);
	return r.check ? checker_verdict(c, prog) : 0;
}
