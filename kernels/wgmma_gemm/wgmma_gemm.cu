/* wgmma_gemm: C = A * B^T on Hopper's tensor cores, warp-specialised: one
 * thread feeds a ring of slots by TMA, two warpgroups multiply out of it.
 *
 *     producer (warpgroup 0, one lane)        consumers (warpgroups 1 and 2)
 *     setmaxnreg.dec 40                       setmaxnreg.inc 232
 *
 *     for each tile of C of this CTA, for each 64 columns of K:
 *
 *     wait empty[slot]  <----------------.    wait full[slot]  <-----------.
 *     arrive full[slot], expect bytes    |    wgmma.fence                  |
 *     TMA A and B -> slot                |    4 x wgmma.mma_async, commit  |
 *          | bytes land                  |    wgmma.wait_group 1           |
 *          '-----------------------------|----------------------------------'
 *                                        '--- arrive empty[slot before this]
 *                                             (one group stays in flight:
 *                                             it still reads this slot)
 *
 *     and for each tile, each consumer warpgroup on its own:
 *
 *     one thread: bulk.wait_group.read 0   the last store has read its source
 *     bar.sync id, 128 ----------------->  all may write the staging tile
 *     stmatrix                             sums -> staging tile
 *     fence.proxy.async                    so that the TMA engine sees them
 *     bar.sync id, 128 ----------------->  all have written
 *     one thread: TMA store, commit        runs on under the next tile
 *
 * A is M x K, B is N x K, C is M x N, row-major halves; K and N are multiples
 * of 8. TMA reads what lies outside as zero and does not write it. */
#include "../common/channel.cuh"
#include "../common/harness.h"

#include <cudaTypedefs.h>

enum {
	BM = 128, BN = 128, BK = 64, SLOTS = 4,
	WM = 64,                       /* rows of a consumer warpgroup */
	CONSUMER_WARPGROUPS = 2,
	THREADS = 128 * (1 + CONSUMER_WARPGROUPS),
	A_HALVES = BM * BK, B_HALVES = BN * BK,
	SLOT_HALVES = A_HALVES + B_HALVES, SLOT_BYTES = SLOT_HALVES * 2,
	STAGING_HALVES = WM * BN,      /* of a consumer warpgroup */
	SMEM = SLOTS * SLOT_BYTES + CONSUMER_WARPGROUPS * STAGING_HALVES * 2 + 1024,
};

#define BUGS(BUG) \
	BUG(init_unpublished, CS207, "", "no __syncthreads between mbarrier.init and its first use") \
	BUG(no_full_wait, CS121, "", "consumers multiply without waiting for the bytes") \
	BUG(consumer_parity, CS121, "", \
		"consumers wait for the previous phase, which is always complete") \
	BUG(producer_parity, CS701, "", \
		"the producer's first lap waits for slots that nobody will give back") \
	BUG(tx_without_b, CS211, "", \
		"only the bytes of A are expected, those of B are copied as well") \
	BUG(full_count, CS701, "", "full counts two arrivals, the producer arrives once") \
	BUG(release_early, CS120, "", \
		"gives back the slot that the wgmma group in flight still reads") \
	BUG(wait_off_by_one, CS321, "", "reads the sums with one wgmma group still in flight") \
	BUG(no_wgmma_commit, CS321, "", "the last wgmma is in no group, so no wait covers it") \
	BUG(no_wgmma_fence, CS320, "", \
		"no wgmma.fence between clearing the sums and the first wgmma") \
	BUG(no_proxy_fence, CS110, "", \
		"the staging tile goes to the TMA engine without a proxy fence") \
	BUG(staging_unsynced, CS105, "", \
		"the store starts before the other warps wrote the staging tile") \
	BUG(staging_reused, CS105, "--n=256 --ctas=1", \
		"the next tile is staged while the last store may still read") \
	BUG(store_not_committed, CS309, "", "the last store is in no group, so no wait covers it") \
	BUG(exit_pending, CS308, "", \
		"the CTA exits while the last store still reads its shared memory") \
	BUG(setmaxnreg_up, CS408, "", "setmaxnreg.dec asks for more registers than there are")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, c;
};

struct sizes {
	int m, n, k;
};

template <class Bug>
DEVICE void produce(const tensors &t, const sizes &s, __half *slots, channel<SLOTS> &ch, Bug bug)
{
	const int rows = (s.m + BM - 1) / BM, tiles = rows * ((s.n + BN - 1) / BN);
	cursor<SLOTS> at;

	tensor_prefetch(&t.a);
	tensor_prefetch(&t.b);
	for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x)
		for (int k = 0; k < s.k; k += BK, at.next()) {
			__half *slot = slots + at.slot * SLOT_HALVES;
			const int bytes = bug.is(tx_without_b) ? A_HALVES * 2 : SLOT_BYTES;

			if (bug.is(producer_parity))
				mbar_wait(&ch.empty[at.slot], at.parity); // @bug producer_parity CS701
			else
				channel_acquire(ch, at);
			channel_expect(ch, at, bytes);
			// @bug release_early CS120
			tensor_load(slot, &t.a, k, tile % rows * BM, &ch.full[at.slot]);
			// @bug tx_without_b CS211
			tensor_load(slot + A_HALVES, &t.b, k, tile / rows * BN, &ch.full[at.slot]);
		}
}

/* Staged as TMA wants it: two blocks of 64 columns, each row of 128 bytes
 * swizzled by its number modulo 8. */
DEVICE void stage(__half *staging, const float (&sum)[64], int warp, int lane)
{
	const int r = warp * 16 + lane % 16;

#pragma unroll
	for (int j = 0; j < 16; j += 2) {
		const int chunk = j + lane / 16;
		__half *block = staging + chunk / 8 * (WM * 64);

		stmatrix(block + r * 64 + (chunk % 8 ^ r % 8) * 8,
			pack_half(sum[4 * j], sum[4 * j + 1]),
			pack_half(sum[4 * j + 2], sum[4 * j + 3]),
			pack_half(sum[4 * j + 4], sum[4 * j + 5]),
			pack_half(sum[4 * j + 6], sum[4 * j + 7]));
	}
}

/* One slot: 64 rows of A from `a`, all of B, added to the sums. */
template <class Bug>
DEVICE void multiply(float (&sum)[64], const __half *a, const __half *b, bool last, Bug bug)
{
	const uint64_t da = wgmma_tile(a), db = wgmma_tile(b);

	if (!bug.is(no_wgmma_fence))
		wgmma_fence();
#pragma unroll
	for (int k = 0; k < BK / 16; k++) /* 16 halves further: 32 bytes, 2 units */
		wgmma(sum, da + 2 * k, db + 2 * k, true);
	if (!(bug.is(no_wgmma_commit) && last))
		wgmma_commit();
}

template <class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const __half *slots, __half *staging,
	channel<SLOTS> &ch, int warpgroup, Bug bug)
{
	const int rows = (s.m + BM - 1) / BM, tiles = rows * ((s.n + BN - 1) / BN);
	const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
	const int barrier = 1 + warpgroup;
	cursor<SLOTS> at, before;

	staging += warpgroup * STAGING_HALVES;
	for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
		float sum[64];

#pragma unroll
		for (int i = 0; i < 64; i++)
			sum[i] = 0;
		for (int k = 0; k < s.k; k += BK, at.next()) {
			const __half *a = slots + at.slot * SLOT_HALVES + warpgroup * WM * BK;
			const __half *b = slots + at.slot * SLOT_HALVES + A_HALVES;

			if (bug.is(consumer_parity))
				mbar_wait(&ch.full[at.slot], at.parity ^ 1);
			else if (!bug.is(no_full_wait))
				// @bug init_unpublished CS207 @bug full_count CS701
				channel_wait(ch, at);
			// @bug no_full_wait CS121 @bug consumer_parity CS121 @bug release_early CS120
			// @bug no_wgmma_fence CS320
			multiply(sum, a, b, k + BK >= s.k, bug);
			wgmma_wait<1>();
			/* wgmma.wait_group is one event for the four warps: one
			 * thread may speak for all of them. */
			if (k > 0 && thread == 0 && !bug.is(release_early))
				channel_release(ch, before);
			if (thread == 0 && bug.is(release_early))
				channel_release(ch, at);
			before = at;
		}
		if (!bug.is(wait_off_by_one))
			wgmma_wait<0>();
		if (thread == 0 && !bug.is(release_early))
			channel_release(ch, before);

		if (thread == 0 && !bug.is(staging_reused))
			bulk_wait_read<0>();
		named_barrier_sync(barrier, 128);
		// @bug wait_off_by_one CS321 @bug no_wgmma_commit CS321 @bug no_proxy_fence CS110
		// @bug staging_reused CS105
		stage(staging, sum, warp, lane);
		if (!bug.is(no_proxy_fence))
			fence_proxy_async();
		if (!bug.is(staging_unsynced))
			named_barrier_sync(barrier, 128);
		if (thread == 0) {
			const int x = tile / rows * BN, y = tile % rows * BM + warpgroup * WM;

			// @bug no_proxy_fence CS110 @bug staging_unsynced CS105 @bug staging_reused CS105
			tensor_store(&t.c, x, y, staging);
			// @bug store_not_committed CS309 @bug exit_pending CS308
			tensor_store(&t.c, x + 64, y, staging + WM * 64);
			if (!bug.is(store_not_committed))
				bulk_commit();
		}
	}
	if (thread == 0 && !bug.is(exit_pending))
		bulk_wait_read<0>();
}

template <class Bug>
__global__ void __launch_bounds__(THREADS, 1)
wgmma_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ channel<SLOTS> ch;
	/* The swizzle pattern repeats every 1024 bytes and starts there. */
	__half *slots = (__half *)((uintptr_t)(smem + 1023) & ~(uintptr_t)1023);
	__half *staging = slots + SLOTS * SLOT_HALVES;
	const int warpgroup = threadIdx.x / 128;

	if (threadIdx.x == 0)
		channel_init(ch, 1 + bug.is(full_count), CONSUMER_WARPGROUPS);
	if (!bug.is(init_unpublished))
		__syncthreads();

	if (warpgroup == 0) {
		if (bug.is(setmaxnreg_up))
			registers_dec<232>(); // @bug setmaxnreg_up CS408
		else
			registers_dec<40>();
		if (threadIdx.x == 0)
			produce(t, s, slots, ch, bug);
	} else {
		registers_inc<232>();
		consume(t, s, slots, staging, ch, warpgroup - 1, bug);
	}
}

/* A map of a row-major matrix of halves, read or written in boxes of `high`
 * rows by 64 columns, swizzled. */
static CUtensorMap tensor_map(const __half *at, long rows, long cols, uint32_t high)
{
	static PFN_cuTensorMapEncodeTiled_v12000 encode;
	const cuuint64_t size[] = {(cuuint64_t)cols, (cuuint64_t)rows};
	const cuuint64_t stride[] = {(cuuint64_t)cols * 2};
	const cuuint32_t box[] = {64, high}, step[] = {1, 1};
	CUtensorMap map;

	if (!encode) {
		cudaDriverEntryPointQueryResult found;

		CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode,
			12000, cudaEnableDefault, &found));
	}
	if (!encode || encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)at, size, stride,
		box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) !=
		CUDA_SUCCESS) {
		fprintf(stderr, "wgmma_gemm: cuTensorMapEncodeTiled failed\n");
		exit(3);
	}
	return map;
}

template <class Bug> static void launch(const tensors &t, const sizes &s, int ctas, Bug bug)
{
	CUDA(cudaFuncSetAttribute(wgmma_gemm<Bug>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
	wgmma_gemm<Bug><<<ctas, THREADS, SMEM>>>(t, s, bug);
	CUDA(cudaGetLastError());
}

/* Every element of a small product, else some thousands of them. */
static void check(struct checker &c, const sizes &s, const __half *a, const __half *b,
	const __half *device)
{
	const uint64_t n = (uint64_t)s.m * s.n;
	const uint64_t step = n * s.k <= 1 << 25 ? 1 : n / 4093 | 1;
	__half *got = (__half *)malloc(n * sizeof *got);

	CUDA(cudaMemcpy(got, device, n * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < n; i += step) {
		double want = 0;

		for (int k = 0; k < s.k; k++)
			want += __half2float(a[i / s.n * s.k + k]) * __half2float(b[i % s.n * s.k + k]);
		checker_see(c, i, __half2float(got[i]), want, 1e-3);
	}
	free(got);
}

int main(int argc, char **argv)
{
	long m = 128, n = 128, k = 512, ctas = 0;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B, columns of C, a multiple of 8"},
		{"k", &k, "columns of A and B, a multiple of 8"},
		{"ctas", &ctas, "thread blocks; 0: one for each SM or tile"},
	};
	const struct program p = {"wgmma_gemm", "half GEMM with TMA, mbarriers and wgmma",
		__FILE__, options, 4, bugs, sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, p);
	struct checker c = {};

	harness_require(m > 0 && n > 0 && k > 0 && n % 8 == 0 && k % 8 == 0, p,
		"sizes must be positive, n and k multiples of 8");
	const long tiles = (m + BM - 1) / BM * ((n + BN - 1) / BN);
	ctas = harness_ctas(ctas);
	ctas = ctas < tiles ? ctas : tiles;

	__half *a = harness_halves(1, (uint64_t)m * k), *b = harness_halves(2, (uint64_t)n * k);
	__half *da = harness_device(a, (uint64_t)m * k), *db = harness_device(b, (uint64_t)n * k);
	__half *dc = harness_device<__half>(NULL, (uint64_t)m * n);
	const tensors t = {tensor_map(da, m, k, BM), tensor_map(db, n, k, BN),
		tensor_map(dc, m, n, WM)};
	const sizes s = {(int)m, (int)n, (int)k};

	if (r.bug >= 0)
		launch(t, s, ctas, planted_bug{r.bug});
	else
		launch(t, s, ctas, no_bug{});
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		check(c, s, a, b, dc);
	if (r.bench) {
		const double time = harness_time([&] { launch(t, s, ctas, no_bug{}); });

		printf("wgmma_gemm: %ld x %ld x %ld, %ld CTAs: %.3f ms, %.1f TFLOP/s\n", m, n, k, ctas,
			time * 1e3, 2e-12 * m * n * k / time);
	}
	cudaFree(da);
	cudaFree(db);
	cudaFree(dc);
	free(a);
	free(b);
	return r.check ? checker_verdict(c, p) : 0;
}
