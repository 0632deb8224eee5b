/* fa2_host: the host's part of the FlashAttention-2 programs. Each program defines a struct,
 * derived from fa2_program, with
 *
 *   template <int D, int stages, int layout, class Bug>
 *   static void launch(const problem &p, int heads, Bug bug);
 *
 * and passes fa2_main() its values of D. The first is the default, and the one that bugs
 * are planted in. */
#pragma once

#include "attention.h"
#include "fa2.cuh"

/* Scores count in units of log2. */
static float log2_scale(int d)
{
	return 1.44269504f / sqrtf((float)d);
}

struct fa2_program {
	static constexpr long default_n = 192;  /* small: checkers are slow */
	static constexpr long max_stages = 2;   /* 2 or 4; 1 and 2 are always possible */
	static constexpr char bad_d[] = "d must be 64 or 128: see fa2_tiling_qk for more";
};

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

/* V::launch for the values of the options; s.d is D or one of `more`. */
template <class V, int D, int... more>
static void launch(const shape &s, const problem &p, int heads, no_bug)
{
	if (s.d == D)
		return launch_stages<V, D>(s, p, heads);
	if constexpr (sizeof...(more) > 0)
		launch<V, more...>(s, p, heads, no_bug{});
}

template <class V, int D, int... more>
static void launch(const shape &s, const problem &p, int heads, planted_bug bug)
{
	if (s.stages == 1)
		V::template launch<D, 1, SWIZZLED>(p, heads, bug);
	else
		V::template launch<D, 2, SWIZZLED>(p, heads, bug);
}

template <class V, int D, int... more, size_t nbugs>
static int fa2_main(int argc, char **argv, const char *name, const char *what,
	const char *source, const struct bug (&bugs)[nbugs])
{
	const long ds[] = {D, more...};
	long b = 1, h = 1, n = V::default_n, causal = 0;
	shape s = {D, 1, SWIZZLED};
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head"},
		{"d", &s.d, "columns of Q, K, V and O"},
		{"stages", &s.stages, "1: one buffer for what is loaded; 2: another for the next"},
		{"causal", &causal, "1: row i sees the keys up to i"},
		{"smem", &s.layout, "layout of tiles in shared memory", LAYOUTS},
	};
	const struct program prog = harness_program(name, what, source, options, bugs);
	const struct run r = harness_args(argc, argv, prog);
	bool known = false;

	for (size_t i = 0; i < sizeof ds / sizeof *ds; i++)
		known |= ds[i] == s.d;
	harness_require(known, prog, V::bad_d);
	harness_require(s.stages == 1 || s.stages == 2 || s.stages == V::max_stages, prog,
		V::max_stages == 2 ? "stages must be 1 or 2" : "stages must be 1, 2 or 4");
	static_assert(V::max_stages == 2 || V::max_stages == 4);
	attention_require(prog, b, h, n, n, causal);
	harness_require(r.bug < 0 || (s.d == D && s.stages <= 2 && s.layout == SWIZZLED), prog,
		"the bugs are planted in the kernel for the default d and smem, and 1 or 2 stages");

	const attention a(b * h, n, n, s.d, causal != 0);
	const problem p = {a.q.device, a.k.device, a.v.device, a.out, (int)n, a.causal};

	return attention_run(prog, r, a,
		[&](auto planted) { launch<V, D, more...>(s, p, b * h, planted); },
		"b %ld, h %ld, n %ld, d %ld, stages %ld%s, smem %ld", b, h, n, s.d, s.stages,
		causal ? ", causal" : "", s.layout);
}
