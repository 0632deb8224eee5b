/* hgemm: C = A * B with half inputs and float sums, on the tensor cores that
 * sm_80 has: cp.async fills a ring of stages, ldmatrix and mma.sync empty it.
 *
 *   every thread, for tile k of K:
 *
 *   cp.async.wait_group STAGES-2      my part of tile k has landed
 *   __syncthreads  ------------------ everybody's part has landed, and
 *        |                            everybody is done with tile k-1
 *        |--> cp.async of tile k+STAGES-1 into the stage that tile k-1 had
 *        |    commit_group            (an empty group when there is none left:
 *        |                            wait_group counts groups, not copies)
 *        '--> ldmatrix, mma of tile k
 *
 *   One barrier for each tile does both jobs: it publishes tile k, and it
 *   frees the stage that is refilled next.
 *
 * A is M x K, B is K x N, C is M x N, all row-major; K and N are multiples of
 * 8, so that rows are 16-byte aligned. What lies outside is read as zero.
 * Shared memory is swizzled: the 16-byte chunk c of row r stands at place
 * c ^ (r % 8) of its row, so that the eight rows of an ldmatrix hit different
 * banks. */
#include "../common/harness.h"
#include "../common/ptx.cuh"

enum {
	BM = 128, BN = 128, BK = 64, STAGES = 3,
	THREADS = 256,          /* 2 x 4 warps, each 64 x 32 of the tile */
	WM = 64, WN = 32,
	A_HALVES = BM * BK, B_HALVES = BK * BN,
	STAGE_HALVES = A_HALVES + B_HALVES,
	SMEM = STAGES * STAGE_HALVES * 2,
};

#define BUGS(BUG) \
	BUG(wait_off_by_one, CS301, "", "waits for one cp.async group fewer than the tile needs") \
	BUG(no_wait, CS301, "", "does not wait for its cp.async groups at all") \
	BUG(no_sync, CS301, "", "reads what other threads copied with no barrier after their wait") \
	BUG(commit_skipped, CS301, "", \
		"commits no empty groups at the end, so wait_group counts wrong") \
	BUG(refill_early, CS106, "", \
		"refills the stage of tile k-1 before the barrier that frees it") \
	BUG(wrong_stage, CS301, "", "refills the stage that it reads in the same iteration") \
	BUG(epilogue_early, CS102, "--k=256", "writes C over a stage that other warps still read") \
	BUG(epilogue_unsynced, CS102, "", \
		"reads C tiles of other warps from shared memory with no barrier") \
	BUG(no_zero_fill, CS901, "--k=40", \
		"skips the copies beyond K where zeros should be filled in") \
	BUG(diverged_barrier, CS403, "--m=98", \
		"the lanes whose rows exist take one barrier, the others another") \
	BUG(stage_overrun, CS902, "", "has one stage more than it has shared memory for") \
	BUG(misaligned_row, CS904, "", "addresses ldmatrix rows at a multiple of 8 bytes, not 16")

PLANT(BUGS)

/* Where the 16-byte chunk that holds column `col` of row `row` stands. */
template <int width> DEVICE __half *swizzled(__half *tile, int row, int col)
{
	return tile + row * width + ((col / 8) ^ (row % 8)) * 8;
}

struct problem {
	const __half *a, *b;
	__half *c;
	int m, n, k;
};

/* The 128 x 64 tile of A and the 64 x 128 tile of B; each thread 4 + 4 chunks. */
template <class Bug>
DEVICE void load(__half *stage, const problem &p, int row, int col, int k, Bug bug)
{
	for (int i = threadIdx.x; i < A_HALVES / 8; i += THREADS) {
		const int y = i / (BK / 8), x = i % (BK / 8) * 8;
		const bool in = row + y < p.m && k + x < p.k;

		if (!in && bug.is(no_zero_fill))
			continue;
		cp_async(swizzled<BK>(stage, y, x),
			in ? p.a + (size_t)(row + y) * p.k + k + x : p.a, in ? 16 : 0);
	}
	for (int i = threadIdx.x; i < B_HALVES / 8; i += THREADS) {
		const int y = i / (BN / 8), x = i % (BN / 8) * 8;
		const bool in = k + y < p.k && col + x < p.n;

		cp_async(swizzled<BN>(stage + A_HALVES, y, x),
			in ? p.b + (size_t)(k + y) * p.n + col + x : p.b, in ? 16 : 0);
	}
}

template <class Bug>
__global__ void __launch_bounds__(THREADS, 2)
hgemm(const problem p, Bug bug)
{
	extern __shared__ __align__(128) __half stages[];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int row = blockIdx.y * BM, col = blockIdx.x * BN;
	const int wm = warp / 4 * WM, wn = warp % 4 * WN;
	const int tiles = (p.k + BK - 1) / BK;
	const int ring = STAGES + bug.is(stage_overrun);
	float acc[WM / 16][WN / 8][4] = {};

	for (int i = 0; i < STAGES - 1; i++) {
		if (i < tiles)
			load(stages + i * STAGE_HALVES, p, row, col, i * BK, bug);
		if (i < tiles || !bug.is(commit_skipped))
			cp_async_commit();
	}

	for (int i = 0; i < tiles; i++) {
		const int next = i + STAGES - 1;
		const int refill = bug.is(wrong_stage) ? i % STAGES : next % ring;
		__half *a = stages + i % ring * STAGE_HALVES, *b = a + A_HALVES;

		if (bug.is(refill_early) && next < tiles)
			// @bug refill_early CS106
			load(stages + refill * STAGE_HALVES, p, row, col, next * BK, bug);
		if (bug.is(wait_off_by_one))
			cp_async_wait<STAGES - 1>();
		else if (!bug.is(no_wait))
			cp_async_wait<STAGES - 2>();
		if (!bug.is(no_sync))
			__syncthreads();
		if (next < tiles && !bug.is(refill_early))
			// @bug stage_overrun CS902
			load(stages + refill * STAGE_HALVES, p, row, col, next * BK, bug);
		if (next < tiles || !bug.is(commit_skipped))
			cp_async_commit();

#pragma unroll
		for (int k = 0; k < BK; k += 16) {
			uint32_t fa[WM / 16][4], fb[WN / 16][4];

#pragma unroll
			for (int y = 0; y < WM / 16; y++) {
				const __half *at = swizzled<BK>(a, wm + y * 16 + lane % 16, k + lane / 16 * 8);

				// @bug wait_off_by_one CS301 @bug no_wait CS301 @bug no_sync CS301
				// @bug commit_skipped CS301 @bug wrong_stage CS301 @bug no_zero_fill CS901
				// @bug misaligned_row CS904
				ldmatrix(fa[y], at + 4 * bug.is(misaligned_row));
			}
#pragma unroll
			for (int x = 0; x < WN / 16; x++)
				ldmatrix_trans(fb[x], swizzled<BN>(b, k + lane % 16, wn + x * 16 + lane / 16 * 8));
#pragma unroll
			for (int y = 0; y < WM / 16; y++)
#pragma unroll
				for (int x = 0; x < WN / 8; x++)
					mma(acc[y][x], fa[y], fb[x / 2][x % 2 * 2], fb[x / 2][x % 2 * 2 + 1]);
		}
	}

	/* C goes through shared memory, the first stages' place, so that it is
	 * written in whole rows. The groups still pending are empty ones. */
	__half *c = stages;

	if (!bug.is(epilogue_early))
		__syncthreads();
#pragma unroll
	for (int y = 0; y < WM / 16; y++)
#pragma unroll
		for (int x = 0; x < WN / 8; x++) {
			const int r = wm + y * 16 + lane / 4, q = wn + x * 8, pair = lane % 4 * 2;
			__half *upper = swizzled<BN>(c, r, q) + pair, *lower = swizzled<BN>(c, r + 8, q) + pair;

			// @bug epilogue_early CS102
			*(uint32_t *)upper = pack_half(acc[y][x][0], acc[y][x][1]);
			*(uint32_t *)lower = pack_half(acc[y][x][2], acc[y][x][3]);
		}
	if (bug.is(diverged_barrier)) {
		if (row + (int)threadIdx.x / 2 < p.m)
			named_barrier_sync(0, THREADS); // @bug diverged_barrier CS403
		else
			__syncthreads();
	} else if (!bug.is(epilogue_unsynced)) {
		__syncthreads();
	}
	for (int i = threadIdx.x; i < BM * BN / 8; i += THREADS) {
		const int y = i / (BN / 8), x = i % (BN / 8) * 8;
		__half *to = p.c + (size_t)(row + y) * p.n + col + x;

		if (row + y < p.m && col + x < p.n)
			// @bug epilogue_unsynced CS102
			*(uint4 *)to = *(const uint4 *)swizzled<BN>(c, y, x);
	}
}

template <class Bug> static void launch(const problem &p, Bug bug)
{
	const dim3 grid((p.n + BN - 1) / BN, (p.m + BM - 1) / BM);

	CUDA(cudaFuncSetAttribute(hgemm<Bug>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
	hgemm<Bug><<<grid, THREADS, SMEM>>>(p, bug);
	CUDA(cudaGetLastError());
}

/* Every element of a small product, else some thousands of them. */
static void check(struct checker &c, const problem &p, const __half *a, const __half *b)
{
	const uint64_t n = (uint64_t)p.m * p.n;
	const uint64_t step = n * p.k <= 1 << 25 ? 1 : n / 4093 | 1;
	__half *got = (__half *)malloc(n * sizeof *got);

	CUDA(cudaMemcpy(got, p.c, n * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < n; i += step) {
		const __half *row = a + i / p.n * p.k, *col = b + i % p.n;
		double want = 0;

		for (int k = 0; k < p.k; k++)
			want += __half2float(row[k]) * __half2float(col[(uint64_t)k * p.n]);
		checker_see(c, i, __half2float(got[i]), want, 1e-3);
	}
	free(got);
}

int main(int argc, char **argv)
{
	long m = 128, n = 128, k = 320;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "columns of B and C, a multiple of 8"},
		{"k", &k, "columns of A, rows of B, a multiple of 8"},
	};
	const struct program prog = {"hgemm", "half GEMM with cp.async, ldmatrix and mma.sync",
		__FILE__, options, 3, bugs, sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, prog);
	struct checker c = {};

	harness_require(m > 0 && n > 0 && k > 0 && n % 8 == 0 && k % 8 == 0, prog,
		"sizes must be positive, n and k multiples of 8");

	__half *a = harness_halves(1, (uint64_t)m * k), *b = harness_halves(2, (uint64_t)k * n);
	__half *da = harness_device(a, (uint64_t)m * k), *db = harness_device(b, (uint64_t)k * n);
	__half *dc = harness_device<__half>(NULL, (uint64_t)m * n);
	const problem p = {da, db, dc, (int)m, (int)n, (int)k};

	if (r.bug >= 0)
		launch(p, planted_bug{r.bug});
	else
		launch(p, no_bug{});
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		check(c, p, a, b);
	if (r.bench) {
		const double s = harness_time([&] { launch(p, no_bug{}); });

		printf("hgemm: %ld x %ld x %ld: %.3f ms, %.1f TFLOP/s\n", m, n, k, s * 1e3,
			2e-12 * m * n * k / s);
	}
	cudaFree(da);
	cudaFree(db);
	cudaFree(dc);
	free(a);
	free(b);
	return r.check ? checker_verdict(c, prog) : 0;
}
