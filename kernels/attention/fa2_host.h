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

#include "attention.h"
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
	attention_require(prog, b, h, n, n, causal);
	harness_require(r.bug < 0 || (s.d == D && s.stages <= 2 && s.layout == SWIZZLED), prog,
		"the bugs are planted in the kernel for the default d and smem, and 1 or 2 stages");

	const attention a(b * h, n, n, s.d, causal != 0);
	const problem p = {a.q.device, a.k.device, a.v.device, a.out, (int)n, a.causal};

	if (r.bug >= 0)
		launch_bug<V, D>(s, p, b * h, r.bug);
	else
		launch<V, D, more...>(s, p, b * h);
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		attention_check(c, a);
	if (r.bench) {
		const double t = harness_time([&] { launch<V, D, more...>(s, p, b * h); });

		printf("%s: b %ld, h %ld, n %ld, d %ld, stages %ld%s, smem %ld: %.3f ms, %.1f TFLOP/s\n",
			name, b, h, n, s.d, s.stages, causal ? ", causal" : "", s.layout, t * 1e3,
			attention_tflops(a, t));
	}
	return r.check ? checker_verdict(c, prog) : 0;
}
