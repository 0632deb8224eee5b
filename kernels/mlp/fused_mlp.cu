/* fused_mlp: the first half of a gated MLP on Hopper's tensor cores, in the three
 * forms in which one kernel can combine two matrix products. Warp-specialised: one
 * thread fills a ring of slots by TMA, two warpgroups multiply what it holds.
 *
 *   --form=fused         C = silu(A B1^T) * (A B2^T). Both products share one main
 *                        loop: a slot holds a tile of A, one of B1 and one of B2,
 *                        so A is loaded once, and both are one wgmma group
 *   --form=independent   C = relu(A B1^T), C2 = relu(A B2^T): one loop each
 *   --form=epilogue      C = relu(A B1^T + bias): one product, two operations
 *
 *   producer, one lane of warpgroup 0       consumers, warpgroups 1 and 2
 *
 *   wait empty[slot]  <----------------.    wait full[slot]  <-------------.
 *   arrive full[slot], expect bytes    |    wgmma.fence                    |
 *   TMA A, B1, B2 -> slot              |    4 x wgmma D1 += A B1           |
 *        |                             |    4 x wgmma D2 += A B2           |
 *        |                             |    wgmma.commit_group      (one)  |
 *        | bytes land                  |    wgmma.wait_group 1             |
 *        '-----------------------------|-----------------------------------'
 *                                      '--- arrive empty[slot before this]
 *
 *   after the loop:                         wgmma.wait_group 0      (one)
 *                                           D1, D2 may be read
 *
 * An instruction may read D1 or D2 only when the group that wrote it is complete.
 * One wait_group 0 completes all groups: no other wait is needed until the next wgmma
 * is issued. A wait with a commit before each use is correct but has no effect
 * (--bug=four_waits) and can make ptxas serialise the wgmmas. A single wait is wrong as
 * soon as there is a second product (--bug=flushed_once). Each loop that issues wgmmas
 * ends with a wait.
 *
 *   epilogue, each warpgroup by 64 columns: see wgmma_gemm
 *
 * A is M x K, B1 and B2 are N x K, C and C2 are M x N, row-major halves, K and N
 * multiples of 8. TMA reads elements outside as zero and does not write them. */
#include "../common/channel.cuh"
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tensor_map.h"
#include "../common/tile_order.cuh"
#include "../common/wgmma.cuh"

enum form { FUSED, INDEPENDENT, EPILOGUE };
#define FORMS "fused|independent|epilogue"

enum {
	BM = 128, BN = 128, BK = 64, SLOTS = 4,
	WM = 64,                       /* rows of a consumer warpgroup */
	CONSUMERS = BM / WM, THREADS = 128 * (1 + CONSUMERS),
	A_HALVES = BM * BK, B_HALVES = BN * BK, SLOT_HALVES = A_HALVES + 2 * B_HALVES,
	CHUNK = 64,                    /* columns that are staged and stored together */
	STAGING_HALVES = WM * CHUNK,   /* one buffer; a consumer warpgroup has two */
	SMEM = 2 * (SLOTS * SLOT_HALVES + CONSUMERS * 2 * STAGING_HALVES) + 1024,
	SUMS = WM * BN / 128,          /* of a thread */
	BAND = 16,                     /* rows of tiles of a band, see tile_order.cuh */
};

#define BUGS(BUG) \
	BUG(four_waits, CS801, "", \
		"a commit and a wait before each of four uses of the sums: three have no effect") \
	BUG(second_not_waited, CS326, "", \
		"one group for each product, and waits for all but the newest: never for the second") \
	BUG(second_not_committed, CS321, "", "the last wgmmas of the second product are in no group") \
	BUG(flushed_once, CS321, "--form=independent", \
		"waits after the first loop only, and reads the sums of the second in flight") \
	BUG(bias_early, CS321, "--form=epilogue", "adds the bias before the wait") \
	BUG(gate_early, CS321, "", "uses the first product between the loop and the wait") \
	BUG(no_wgmma_fence, CS320, "", "no wgmma.fence between clearing the sums and the first wgmma") \
	BUG(release_early, CS120, "", "releases the slot that the group in flight still reads") \
	BUG(release_by_first, CS120, "", \
		"two groups, and a wait that covers the first product's only, frees B2's tile") \
	BUG(no_full_wait, CS121, "", "multiplies without waiting for the bytes") \
	BUG(tx_without_b2, CS211, "", "expects the bytes of A and B1, and B2 is copied as well") \
	BUG(b2_over_b1, CS107, "", "loads B2 over B1") \
	BUG(slots_of_one, CS902, "", "addresses slots as if there were one more of them") \
	BUG(no_proxy_fence, CS110, "", "the staging goes to the TMA engine without a proxy fence") \
	BUG(staging_reused, CS105, "--n=256 --ctas=1", \
		"staging is rewritten without waiting for the store to read it") \
	BUG(staging_unsynced, CS105, "", "the store starts before the other warps wrote the staging") \
	BUG(exit_pending, CS308, "", "exits while the last store still reads its shared memory")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b1, b2, c, c2;
	const __half *bias;
};

struct sizes {
	int m, n, k;
};

/* The first row and column of the i-th tile of C */
struct tile {
	int row, col;

	__device__ __forceinline__ tile(const sizes &s, int i)
	{
		const tile_place at = place_in_band(i, (s.m + BM - 1) / BM, (s.n + BN - 1) / BN, BAND);

		row = at.row * BM;
		col = at.col * BN;
	}
};

#define FOR_TILES(i, s) \
	for (int i = blockIdx.x; i < (((s).m + BM - 1) / BM) * (((s).n + BN - 1) / BN); i += gridDim.x)

/* The loads of one main loop for one tile of C; b1 or b2 may be NULL. */
template <class Bug>
DEVICE void feed(const CUtensorMap *a, const CUtensorMap *b1, const CUtensorMap *b2, tile c,
	int depth, __half *slots, channel<SLOTS> &ch, cursor<SLOTS> &at, Bug bug)
{
	const int products = (b1 != NULL) + (b2 != NULL) - bug.is(tx_without_b2);

	for (int k = 0; k < depth; k += BK, at.next()) {
		const int slot = at.slot + (bug.is(slots_of_one) && at.slot == SLOTS - 1);
		__half *sa = slots + slot * SLOT_HALVES, *sb1 = sa + A_HALVES;
		__half *sb2 = bug.is(b2_over_b1) ? sb1 : sb1 + B_HALVES;
		uint64_t *full = &ch.full[at.slot];

		channel_acquire(ch, at);
		channel_expect(ch, at, 2 * (A_HALVES + products * B_HALVES));
		// @bug release_early CS120
		tensor_load(sa, a, k, c.row, full);
		if (b1)
			tensor_load(sb1, b1, k, c.col, full); // @bug b2_over_b1 CS107
		if (b2)
			// @bug tx_without_b2 CS211 @bug b2_over_b1 CS107 @bug release_by_first CS120
			// @bug slots_of_one CS902
			tensor_load(sb2, b2, k, c.col, full);
	}
}

template <enum form form, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, __half *slots, channel<SLOTS> &ch, Bug bug)
{
	cursor<SLOTS> at;

	tensor_prefetch(&t.a);
	tensor_prefetch(&t.b1);
	if (form != EPILOGUE)
		tensor_prefetch(&t.b2);
	FOR_TILES(i, s) {
		const tile c(s, i);

		feed(&t.a, &t.b1, form == FUSED ? &t.b2 : NULL, c, s.k, slots, ch, at, bug);
		if (form == INDEPENDENT)
			feed(&t.a, NULL, &t.b2, c, s.k, slots, ch, at, bug);
	}
}

/* A main loop over all of K, for d1 (A B1^T), d2 (A B2^T) or both. When it returns its
 * last group is in flight; the caller waits and then releases the slot `before`. */
template <bool first, bool second, class Bug>
DEVICE void main_loop(float (&d1)[SUMS], float (&d2)[SUMS], const __half *slots, int depth,
	channel<SLOTS> &ch, cursor<SLOTS> &at, cursor<SLOTS> &before, int warpgroup, Bug bug)
{
	const int thread = threadIdx.x % 128;
	const bool apart = bug.is(second_not_waited) || bug.is(release_by_first);

	if (first)
		clear(d1);
	if (second)
		clear(d2);
	for (int k = 0; k < depth; k += BK, at.next()) {
		const __half *slot = slots + at.slot * SLOT_HALVES, *a = slot + warpgroup * WM * BK;

		if (!bug.is(no_full_wait))
			channel_wait(ch, at);
		if (!bug.is(no_wgmma_fence))
			wgmma_fence();
		if (first)
			// @bug no_wgmma_fence CS320 @bug no_full_wait CS121 @bug release_early CS120
			multiply_tiles(d1, a, slot + A_HALVES);
		if (apart)
			wgmma_commit();
		if (second)
			// @bug release_by_first CS120 @bug second_not_waited CS326
			multiply_tiles(d2, a, slot + A_HALVES + B_HALVES);
		if (!(bug.is(second_not_committed) && k + BK >= depth))
			wgmma_commit();
		if (apart && !bug.is(release_by_first))
			wgmma_wait<2>();
		else
			wgmma_wait<1>();
		/* The four warps complete wgmma.wait_group together, so one thread arrives
		 * for all of them. */
		if (bug.is(release_by_first) || bug.is(release_early)) {
			if (thread == 0)
				channel_release(ch, at);
		} else if (k > 0 && thread == 0) {
			channel_release(ch, before);
		}
		before = at;
	}
}

/* Completes all wgmmas, then releases the last slot. */
template <class Bug>
DEVICE void flush(channel<SLOTS> &ch, cursor<SLOTS> before, bool wait, Bug bug)
{
	if (bug.is(second_not_waited))
		wgmma_wait<1>();
	else if (wait)
		wgmma_wait<0>();
	if (threadIdx.x % 128 == 0 && !bug.is(release_by_first) && !bug.is(release_early))
		channel_release(ch, before);
}

/* What a code generator puts before each use if it knows no more than that a wgmma wrote
 * the operand */
#define WAIT_BEFORE_USE() (wgmma_commit(), wgmma_wait<0>())

DEVICE float relu(float x)
{
	return fmaxf(x, 0);
}

DEVICE float silu(float x)
{
	return x / (1 + __expf(-x));
}

/* Stores 64 rows x 64 columns to C through `buffer`. */
template <class Bug>
DEVICE void store(const CUtensorMap *map, int x, int y, __half *buffer, const float *sum,
	int warpgroup, Bug bug)
{
	const int thread = threadIdx.x % 128;

	if (thread == 0 && !bug.is(staging_reused))
		bulk_wait_read<1>();
	named_barrier_sync(1 + warpgroup, 128);
	// @bug no_proxy_fence CS110 @bug staging_reused CS105
	stage_tile<CHUNK>(buffer, sum);
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	if (!bug.is(staging_unsynced))
		named_barrier_sync(1 + warpgroup, 128);
	if (thread == 0) {
		// @bug no_proxy_fence CS110 @bug staging_reused CS105 @bug staging_unsynced CS105
		// @bug exit_pending CS308
		tensor_store(map, x, y, buffer);
		bulk_commit();
	}
}

template <enum form form, class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const __half *slots, __half *staging,
	channel<SLOTS> &ch, int warpgroup, Bug bug)
{
	cursor<SLOTS> at, before;

	staging += warpgroup * 2 * STAGING_HALVES;
	FOR_TILES(i, s) {
		const tile c(s, i);
		const int y = c.row + warpgroup * WM;
		float d1[SUMS], d2[SUMS];

		main_loop<true, form == FUSED>(d1, d2, slots, s.k, ch, at, before, warpgroup, bug);
		if (form == EPILOGUE && bug.is(bias_early))
			d1[0] += 1; // @bug bias_early CS321
		if (form == FUSED && bug.is(gate_early))
			d1[0] = silu(d1[0]); // @bug gate_early CS321
		flush(ch, before, true, bug);
#pragma unroll
		for (int j = 0; j < BN / CHUNK; j++) {
			float *out = d1 + j * CHUNK / 2;

			if (form == FUSED) {
				float *up = d2 + j * CHUNK / 2;

				if (bug.is(four_waits) && j == 1)
					WAIT_BEFORE_USE(); // @bug four_waits CS801
#pragma unroll
				for (int x = 0; x < CHUNK / 2; x++)
					out[x] = silu(out[x]);
				if (bug.is(four_waits) && j == 0)
					WAIT_BEFORE_USE(); // @bug four_waits CS801
				if (bug.is(four_waits) && j == 1)
					WAIT_BEFORE_USE(); // @bug four_waits CS801
#pragma unroll
				for (int x = 0; x < CHUNK / 2; x++)
					// @bug second_not_committed CS321
					out[x] *= up[x];
			}
			if (form == EPILOGUE)
#pragma unroll
				for (int x = 0; x < CHUNK / 2; x++) {
					const int col = c.col + j * CHUNK + x / 4 * 8 + threadIdx.x % 4 * 2 + x % 2;

					out[x] += col < s.n ? __half2float(t.bias[col]) : 0;
				}
			if (form != FUSED)
#pragma unroll
				for (int x = 0; x < CHUNK / 2; x++)
					out[x] = relu(out[x]);
			store(&t.c, c.col + j * CHUNK, y, staging + j % 2 * STAGING_HALVES, out, warpgroup,
				bug);
		}
		if (form != INDEPENDENT)
			continue;

		main_loop<false, true>(d1, d2, slots, s.k, ch, at, before, warpgroup, bug);
		flush(ch, before, !bug.is(flushed_once), bug);
#pragma unroll
		for (int j = 0; j < BN / CHUNK; j++) {
			float *out = d2 + j * CHUNK / 2;

#pragma unroll
			for (int x = 0; x < CHUNK / 2; x++)
				out[x] = relu(out[x]); // @bug flushed_once CS321
			store(&t.c2, c.col + j * CHUNK, y, staging + j % 2 * STAGING_HALVES, out, warpgroup,
				bug);
		}
	}
	if (threadIdx.x % 128 == 0 && !bug.is(exit_pending))
		bulk_wait_read<0>();
}

template <enum form form, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
fused_mlp(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ channel<SLOTS> ch;
	__half *slots = first_tile(smem);
	__half *staging = slots + SLOTS * SLOT_HALVES;
	const int warpgroup = threadIdx.x / 128;

	if (threadIdx.x == 0)
		channel_init(ch, 1, CONSUMERS);
	__syncthreads();

	if (warpgroup == 0) {
		registers_dec<40>();
		if (threadIdx.x == 0)
			produce<form>(t, s, slots, ch, bug);
	} else {
		registers_inc<232>();
		consume<form>(t, s, slots, staging, ch, warpgroup - 1, bug);
	}
}

template <enum form form, class Bug>
static void launch_form(const tensors &t, const sizes &s, int ctas, Bug bug)
{
	launch_grid(fused_mlp<form, Bug>, ctas, THREADS, SMEM, t, s, bug);
}

template <class Bug>
static void launch(const tensors &t, const sizes &s, int ctas, enum form form, Bug bug)
{
	switch (form) {
	case FUSED: return launch_form<FUSED>(t, s, ctas, bug);
	case INDEPENDENT: return launch_form<INDEPENDENT>(t, s, ctas, bug);
	case EPILOGUE: return launch_form<EPILOGUE>(t, s, ctas, bug);
	}
}

struct inputs {
	const __half *a, *b1, *b2, *bias;
};

/* Compares every element of a small product, some thousands of a large one. */
static void check(struct checker &c, const sizes &s, enum form form, const inputs &in,
	const __half *device_c, const __half *device_c2)
{
	const uint64_t size = (uint64_t)s.m * s.n;
	const uint64_t step = size * s.k <= 1 << 25 ? 1 : size / 2039 | 1;
	__half *got = (__half *)malloc(2 * size * sizeof *got);

	CUDA(cudaMemcpy(got, device_c, size * sizeof *got, cudaMemcpyDeviceToHost));
	CUDA(cudaMemcpy(got + size, device_c2, size * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < size; i += step) {
		const uint64_t row = i / s.n * s.k, col = i % s.n * s.k;
		const double d1 = product_dot(in.a + row, in.b1 + col, 1, s.k);

		if (form == EPILOGUE) {
			checker_see(c, i, __half2float(got[i]),
				fmax(d1 + __half2float(in.bias[i % s.n]), 0), 1e-3);
			continue;
		}
		const double d2 = product_dot(in.a + row, in.b2 + col, 1, s.k);

		if (form == FUSED) {
			checker_see(c, i, __half2float(got[i]), d1 / (1 + exp(-d1)) * d2, 2e-3);
			continue;
		}
		checker_see(c, i, __half2float(got[i]), fmax(d1, 0), 1e-3);
		checker_see(c, size + i, __half2float(got[size + i]), fmax(d2, 0), 1e-3);
	}
	free(got);
}

int main(int argc, char **argv)
{
	long m = 128, n = 128, k = 384, ctas = 0, form = FUSED;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B1 and B2, columns of C, a multiple of 8"},
		{"k", &k, "columns of A, B1 and B2, a multiple of 8"},
		{"ctas", &ctas, "thread blocks; 0: one for each SM or tile"},
		{"form", &form, "how the products are combined", FORMS},
	};
	const struct program p = harness_program("fused_mlp",
		"two products in one kernel, with TMA and wgmma", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	product_require(p, m, n, k);
	harness_require(ctas >= 0, p, "ctas must not be negative");
	const long tiles = (m + BM - 1) / BM * ((n + BN - 1) / BN);
	ctas = harness_ctas(ctas);
	ctas = ctas < tiles ? ctas : tiles;

	const uint64_t nc = (uint64_t)m * n;
	const halves a(1, (uint64_t)m * k), b1(2, (uint64_t)n * k), b2(3, (uint64_t)n * k), bias(4, n);
	__half *dc = harness_device<__half>(NULL, nc), *dc2 = harness_device<__half>(NULL, nc);
	const tensors t = {tensor_map(a.device, m, k, BM), tensor_map(b1.device, n, k, BN),
		tensor_map(b2.device, n, k, BN), tensor_map(dc, m, n, WM), tensor_map(dc2, m, n, WM),
		bias.device};
	const sizes s = {(int)m, (int)n, (int)k};

	const enum form what = (enum form)form;
	const inputs in = {a.host, b1.host, b2.host, bias.host};
	const int status = harness_run(p, r, [&](auto bug) { launch(t, s, ctas, what, bug); },
		[&](checker &c) { check(c, s, what, in, dc, dc2); },
		(form == EPILOGUE ? 2e-12 : 4e-12) * m * n * k, "TFLOP/s",
		"form %ld, %ld x %ld x %ld, %ld CTAs", form, m, n, k, ctas);

	cudaFree(dc);
	cudaFree(dc2);
	return status;
}
