/* hgemm: C = A * B with half inputs and float sums, with the tensor core
 * instructions of sm_80: cp.async fills a ring of stages, ldmatrix and mma.sync
 * read it.
 *
 *   every thread, for tile i of K (steps of 16 columns, two to a tile):
 *
 *   step 0   cp.async of tile i+STAGES-1 into the stage of tile i-1,
 *            commit_group    (an empty group when no tile is left:
 *                             wait_group counts groups, not copies)
 *            ldmatrix step 1 of tile i    mma of step 0
 *
 *   step 1   cp.async.wait_group STAGES-2    this thread's part of tile i+1
 *                                            has landed
 *            __syncthreads  ---------------- all parts of it have landed, and
 *                 |                          all threads have read tile i
 *                 '--> ldmatrix step 0 of tile i+1    mma of step 1
 *
 *   The one barrier of a tile publishes tile i+1 and frees the stage that is
 *   refilled next. Fragments are read one step ahead, into the other half of
 *   `f`, so that the tensor cores need not wait.
 *
 * Eight warps share a 128 x 256 tile of C, 64 x 64 each: the larger a warp's
 * tile, the less it reads from shared memory for one multiplication, and that
 * bounds the speed of smaller tiles. CTAs take the tiles of C in bands of --band
 * rows of tiles (tile_order.cuh).
 *
 * A is M x K, B is K x N, C is M x N, all row-major; K and N are multiples of
 * 8, so that rows are 16-byte aligned. Elements outside are read as zero.
 * Shared memory is swizzled: the eight 16-byte chunks that ldmatrix reads at
 * a time are in different banks. */
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tile.cuh"
#include "../common/tile_order.cuh"

enum {
	BM = 128, BN = 256, BK = 32,
	WM = 64, WN = 64,       /* a warp's part of the tile */
	THREADS = BM / WM * (BN / WN) * 32,
	A_HALVES = BM * BK, B_HALVES = BK * BN,
	STAGE_HALVES = A_HALVES + B_HALVES,
	C_HALVES = BM * BN,
	MIN_STAGES = 2, MAX_STAGES = 5,
};

#define BUGS(BUG) \
	BUG(wait_off_by_one, CS301, "", "waits for one cp.async group fewer than the tile needs") \
	BUG(no_wait, CS301, "", "does not wait for its cp.async groups at all") \
	BUG(no_sync, CS301, "", "reads what other threads copied with no barrier after their wait") \
	BUG(fetch_early, CS301, "", \
		"reads the next tile's first fragments before the wait for that tile") \
	BUG(commit_skipped, CS301, "", \
		"commits no empty groups at the end, so wait_group counts wrong") \
	BUG(refill_early, CS106, "", \
		"refills the stage of tile i before the barrier that frees it") \
	BUG(wrong_stage, CS301, "", "refills the stage that it reads in the same iteration") \
	BUG(last_sync_skipped, CS102, "", \
		"no barrier after the last tile, and C is written over the stages") \
	BUG(epilogue_unsynced, CS102, "", \
		"reads C tiles of other warps from shared memory with no barrier") \
	BUG(no_zero_fill, CS901, "--k=40", \
		"skips the copies beyond K, which should fill in zeros") \
	BUG(diverged_barrier, CS403, "--m=98", \
		"the lanes whose rows exist take one barrier, the others another") \
	BUG(stage_overrun, CS902, "", "has one stage more than it has shared memory for") \
	BUG(misaligned_row, CS904, "", "addresses ldmatrix rows at a multiple of 8 bytes, not 16")

PLANT(BUGS)

struct problem {
	const __half *a, *b;
	__half *c;
	int m, n, k, band;
};

constexpr int smem_bytes(int stages)
{
	return 2 * (stages * STAGE_HALVES > C_HALVES ? stages * STAGE_HALVES : C_HALVES);
}

/* What one thread copies of each tile: of A, 16 bytes of every 64th row; of B,
 * 16 bytes of every 8th. Swizzling repeats after 8 rows. */
struct copier {
	const __half *a, *b;        /* its first source addresses in the next tile */
	size_t a_step, b_step;      /* from one row that it copies to the next, in halves */
	int a_to, b_to;             /* offsets of its destinations in the stage */
	int a_rows, a_cols, b_rows; /* how many rows and columns of A and B are left */
	bool b_col;                 /* its columns of B exist */
};

/* Rows that all threads copy at a time */
enum { A_ROWS = THREADS / (BK / 8), B_ROWS = THREADS / (BN / 8) };

DEVICE copier copier_at(const problem &p, int row, int col)
{
	const int ay = threadIdx.x / (BK / 8), ax = threadIdx.x % (BK / 8) * 8;
	const int by = threadIdx.x / (BN / 8), bx = threadIdx.x % (BN / 8) * 8;
	copier c;

	c.a = p.a + (size_t)(row + ay) * p.k + ax;
	c.b = p.b + (size_t)by * p.n + col + bx;
	c.a_step = (size_t)A_ROWS * p.k;
	c.b_step = (size_t)B_ROWS * p.n;
	c.a_to = keep(tile_at<BK>(ay, ax));
	c.b_to = keep(A_HALVES + tile_at<BN>(by, bx));
	c.a_rows = p.m - row - ay;
	c.a_cols = p.k - ax;
	c.b_rows = p.k - by;
	c.b_col = col + bx < p.n;
	return c;
}

/* Copies the next tile, and zeros where A and B end. */
template <class Bug> DEVICE void load(copier &c, __half *stage, Bug bug)
{
#pragma unroll
	for (int i = 0; i < BM / A_ROWS; i++) {
		const bool in = i * A_ROWS < c.a_rows && c.a_cols > 0;

		if (in || !bug.is(no_zero_fill))
			cp_async(stage + c.a_to + i * A_ROWS * BK, c.a + i * c.a_step, in ? 16 : 0);
	}
#pragma unroll
	for (int i = 0; i < BK / B_ROWS; i++)
		cp_async(stage + c.b_to + i * B_ROWS * BN, c.b + i * c.b_step,
			i * B_ROWS < c.b_rows && c.b_col ? 16 : 0);
	c.a += BK;
	c.b += c.b_step * (BK / B_ROWS);
	c.a_cols -= BK;
	c.b_rows -= BK;
}

/* The operands that a warp multiplies at a time */
struct fragments {
	uint32_t a[WM / 16][4], b[WN / 16][4];
};

/* The addresses of this lane's rows for ldmatrix, from the start of a stage */
struct row_addresses {
	int a[BK / 16], b[WN / 16];
};

DEVICE row_addresses rows_of_warp(int wm, int wn)
{
	const int lane = threadIdx.x % 32;
	row_addresses f;

#pragma unroll
	for (int k = 0; k < BK; k += 16)
		f.a[k / 16] = keep(tile_at<BK>(wm + lane % 16, k + lane / 16 * 8));
#pragma unroll
	for (int x = 0; x < WN; x += 16)
		f.b[x / 16] = keep(A_HALVES + tile_at<BN>(lane % 16, wn + x + lane / 16 * 8));
	return f;
}

/* Reads columns k to k + 15 of A, rows k to k + 15 of B. */
DEVICE void fetch(fragments &f, const row_addresses &at, const __half *stage, int k)
{
#pragma unroll
	for (int y = 0; y < WM / 16; y++)
		ldmatrix(f.a[y], stage + at.a[k / 16] + y * 16 * BK);
#pragma unroll
	for (int x = 0; x < WN / 16; x++)
		ldmatrix_trans(f.b[x], stage + at.b[x] + k * BN);
}

DEVICE void multiply(float (&acc)[WM / 16][WN / 8][4], const fragments &f)
{
#pragma unroll
	for (int y = 0; y < WM / 16; y++)
#pragma unroll
		for (int x = 0; x < WN / 8; x++)
			mma(acc[y][x], f.a[y], f.b[x / 2][x % 2 * 2], f.b[x / 2][x % 2 * 2 + 1]);
}

template <int stages, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
hgemm(const problem p, Bug bug)
{
	extern __shared__ __align__(128) __half smem[];
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int wm = warp / (BN / WN) * WM, wn = warp % (BN / WN) * WN;
	const int tiles = (p.k + BK - 1) / BK;
	const int ring = stages + bug.is(stage_overrun);
	float acc[WM / 16][WN / 8][4] = {};
	fragments f[2];
	const tile_place place = place_in_band(blockIdx.x, (p.m + BM - 1) / BM, (p.n + BN - 1) / BN,
		p.band);
	const int row = place.row * BM, col = place.col * BN;
	const row_addresses at = rows_of_warp(wm, wn);
	copier c = copier_at(p, row, col);

	for (int i = 0; i < stages - 1; i++) {
		if (i < tiles)
			load(c, smem + i * STAGE_HALVES, bug);
		if (i < tiles || !bug.is(commit_skipped))
			cp_async_commit();
	}
	if (!bug.is(no_wait))
		cp_async_wait<stages - 2>();
	if (!bug.is(no_sync))
		__syncthreads();
	// @bug no_wait CS301 @bug no_sync CS301 @bug misaligned_row CS904
	fetch(f[0], at, smem + 4 * bug.is(misaligned_row), 0);

	for (int i = 0; i < tiles; i++) {
		const int next = i + stages - 1;
		const int refill = bug.is(wrong_stage) ? i % stages : next % ring;
		__half *stage = smem + i % ring * STAGE_HALVES;
		__half *after = smem + (i + 1) % ring * STAGE_HALVES;

		if (next < tiles && !bug.is(refill_early))
			load(c, smem + refill * STAGE_HALVES, bug); // @bug stage_overrun CS902
		if (next < tiles || !bug.is(commit_skipped))
			cp_async_commit();
#pragma unroll
		for (int k = 0; k < BK - 16; k += 16) {
			// @bug wrong_stage CS301 @bug last_sync_skipped CS102 @bug refill_early CS106
			fetch(f[(k / 16 + 1) % 2], at, stage, k + 16);
			multiply(acc, f[k / 16 % 2]);
		}

		if (bug.is(refill_early) && next + 1 < tiles)
			load(c, stage, bug); // @bug refill_early CS106
		if (bug.is(fetch_early) && i + 1 < tiles)
			fetch(f[0], at, after, 0); // @bug fetch_early CS301
		if (bug.is(wait_off_by_one))
			cp_async_wait<stages - 1>();
		else if (!bug.is(no_wait))
			cp_async_wait<stages - 2>();
		if (!bug.is(no_sync) && !(bug.is(last_sync_skipped) && i + 1 == tiles))
			__syncthreads();
		if (i + 1 < tiles && !bug.is(fetch_early))
			// @bug wait_off_by_one CS301 @bug commit_skipped CS301 @bug no_zero_fill CS901
			fetch(f[0], at, after, 0);
		multiply(acc, f[(BK / 16 - 1) % 2]);
	}

	/* C goes through shared memory, over the stages, so that it is written in
	 * whole rows. The groups that are still pending are empty. */
#pragma unroll
	for (int y = 0; y < WM / 16; y++)
#pragma unroll
		for (int x = 0; x < WN / 8; x++) {
			const int r = wm + y * 16 + lane / 4, q = wn + x * 8, pair = lane % 4 * 2;
			__half *upper = smem + tile_at<BN>(r, q) + pair;
			__half *lower = smem + tile_at<BN>(r + 8, q) + pair;

			// @bug last_sync_skipped CS102
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
	for (unsigned i = threadIdx.x; i < C_HALVES / 8; i += THREADS) {
		const int y = i / (BN / 8), x = i % (BN / 8) * 8;
		__half *to = p.c + (size_t)(row + y) * p.n + col + x;

		if (row + y < p.m && col + x < p.n)
			// @bug epilogue_unsynced CS102
			*(uint4 *)to = *(const uint4 *)(smem + tile_at<BN>(y, x));
	}
}

template <int stages, class Bug> static void launch_stages(const problem &p, Bug bug)
{
	const int tiles = (p.n + BN - 1) / BN * ((p.m + BM - 1) / BM);

	launch_grid(hgemm<stages, Bug>, tiles, THREADS, smem_bytes(stages), p, bug);
}

static void launch(const problem &p, long stages, no_bug bug)
{
	switch (stages) {
	case 2: return launch_stages<2>(p, bug);
	case 3: return launch_stages<3>(p, bug);
	case 4: return launch_stages<4>(p, bug);
	case 5: return launch_stages<5>(p, bug);
	}
}

static void launch(const problem &p, long, planted_bug bug)
{
	launch_stages<4>(p, bug);
}

int main(int argc, char **argv)
{
	long m = 128, n = 256, k = 320, stages = 4, band = 16;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "columns of B and C, a multiple of 8"},
		{"k", &k, "columns of A, rows of B, a multiple of 8"},
		{"stages", &stages, "tiles of A and B in shared memory, 2 to 5"},
		{"band", &band, "rows of tiles in a band of CTAs"},
	};
	const struct program prog = harness_program("hgemm",
		"half GEMM with cp.async, ldmatrix and mma.sync", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, prog);

	product_require(prog, m, n, k);
	harness_require(stages >= MIN_STAGES && stages <= MAX_STAGES, prog,
		"stages must be 2 to 5: one is read while another is filled");
	harness_require(band > 0, prog, "band must be positive");
	harness_require(r.bug < 0 || stages == 4, prog, "the bugs are planted with 4 stages");

	const halves a(1, (uint64_t)m * k), b(2, (uint64_t)k * n);
	__half *dc = harness_device<__half>(NULL, (uint64_t)m * n);
	const problem p = {a.device, b.device, dc, (int)m, (int)n, (int)k,
		(int)min(band, (m + BM - 1) / BM)};

	const int status = harness_run(prog, r, [&](auto bug) { launch(p, stages, bug); },
		[&](checker &c) { product_check(c, product<__half>{m, n, k, a.host, b.host, n, 1}, dc); },
		2e-12 * m * n * k, "TFLOP/s", "%ld x %ld x %ld, %ld stages, band %ld", m, n, k,
		stages, band);

	cudaFree(dc);
	return status;
}
