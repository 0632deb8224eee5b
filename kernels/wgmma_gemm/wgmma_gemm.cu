/* wgmma_gemm: C = A * B^T on Hopper's tensor cores. Warp-specialised: in each
 * CTA one thread fills a ring of slots by TMA, one or two warpgroups multiply
 * what it holds. The CTAs of a cluster are arranged in rows and columns like their
 * tiles of C: a row shares its rows of A, a column its rows of B, so each CTA loads
 * only a part of either and multicasts it to the CTAs that share it.
 *
 *           col 0   col 1         rank 0 writes to the slots of 0 and 1 (A)
 *    row 0  rank 0  rank 1        and of 0 and 2 (B); so its `empty` counts
 *    row 1  rank 2  rank 3        the consumers of 0, 1 and 2
 *
 *     producer (warp 0, one lane)             consumers (warpgroups 1, 2)
 *
 *     for each tile of C of this CTA, for each 64 columns of K:
 *
 *     wait empty[slot]  <----------------.    wait full[slot]  <-------------.
 *     arrive full[slot], expect A and B  |    wgmma.fence                    |
 *     TMA own part of A -> slot of the   |    4 x wgmma.mma_async, commit    |
 *       row, of B -> slot of the column  |    wgmma.wait_group 1             |
 *          | bytes land in each CTA      |                                   |
 *          '--- each CTA's full[slot] ---|-----------------------------------'
 *                                        '--- arrive empty[slot before this] of each
 *                                             CTA in the own row and column (one group
 *                                             stays in flight: it reads this slot)
 *
 *     and for each tile, each consumer warpgroup by itself, by 64 columns:
 *
 *     one thread: bulk.wait_group.read 1   the store before the last has read
 *     bar.sync id, 128 ----------------->  all may write its staging buffer
 *     stmatrix                             sums -> staging
 *     fence.proxy.async                    orders the writes before the TMA store
 *     bar.sync id, 128 ----------------->  all have written
 *     one thread: TMA store, commit        asynchronous to what follows
 *
 * A cluster barrier at the start keeps a CTA from writing to a peer whose mbarriers
 * are not initialised; one at the end keeps a CTA from exiting while a peer may still
 * arrive on its mbarriers. What a CTA computes depends on blockIdx only, and which
 * CTAs it shares with depends on its actual cluster: a launch may mix clusters of two
 * sizes.
 *
 * A is M x K, B is N x K, C is M x N, row-major halves; K and N are multiples
 * of 8. TMA reads elements outside as zero and does not write them. */
#include "../common/channel.cuh"
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tensor_map.h"
#include "../common/tile_order.cuh"
#include "../common/wgmma.cuh"

enum {
	WM = 64,                       /* rows of a consumer warpgroup */
	BN = 256, BK = 64, SLOTS = 4,
	B_HALVES = BN * BK,
	CHUNK = 64,                    /* columns that are staged and stored together */
	STAGING_HALVES = WM * CHUNK,   /* one buffer; a consumer warpgroup has two */
	BAND = 16,                     /* rows of tiles of a band, see tile_order.cuh */
};

/* Sizes of a CTA with N consumer warpgroups */
template <int N> struct shape {
	static const int bm = WM * N, threads = 128 * (1 + N);
	static const int a_halves = bm * BK, slot_halves = a_halves + B_HALVES;
	static const int slot_bytes = slot_halves * 2;
	static const int smem = SLOTS * slot_bytes + N * 2 * STAGING_HALVES * 2 + 1024;
};

#define LOOPS "--m=128 --n=512 --k=512 --ctas=1 --cluster=1"
#define SQUARE "--cluster=2x2"
#define BUGS(BUG) \
	/* within a CTA */ \
	BUG(no_full_wait, CS121, "", "consumers multiply without waiting for the bytes") \
	BUG(consumer_parity, CS121, "", \
		"consumers wait for the previous phase, which is always complete") \
	BUG(stale_phase, CS121, LOOPS " --k=256", \
		"consumers begin each tile in the phase in which they began the first") \
	BUG(producer_parity, CS701, "", \
		"the producer's first lap waits for slots that will not be released") \
	BUG(wrap_late, CS107, "--k=576", "the producer's parity flips one slot after the wrap") \
	BUG(tx_without_b, CS211, "", \
		"only the bytes of A are expected, and those of B are copied as well") \
	BUG(full_count, CS701, "", "full counts two arrivals, the producer arrives once") \
	BUG(one_releases, CS701, "", "only the first of two consumer warpgroups releases slots") \
	BUG(release_early, CS120, "", \
		"releases the slot that the wgmma group in flight still reads") \
	BUG(wait_off_by_one, CS321, "", "reads the sums with one wgmma group still in flight") \
	BUG(no_wgmma_commit, CS321, "", "the last wgmma is in no group, so no wait covers it") \
	BUG(no_wgmma_fence, CS320, "", \
		"no wgmma.fence between clearing the sums and the first wgmma") \
	BUG(no_proxy_fence, CS110, "", "the staging goes to the TMA engine without a proxy fence") \
	BUG(staging_unsynced, CS105, "", \
		"the store starts before the other warps wrote the staging") \
	BUG(staging_reused, CS105, "", \
		"staging is rewritten without waiting for the store to read it") \
	BUG(staging_lax, CS105, "", "waits for the store before the one that matters") \
	BUG(barrier_shared, CS105, "", "both consumer warpgroups use the same named barrier") \
	BUG(barrier_count, CS701, "", "the named barrier counts the producer's warpgroup, too") \
	BUG(store_not_committed, CS309, "", "the last store is in no group, so no wait covers it") \
	BUG(exit_pending, CS308, "", \
		"the CTA exits while the last store still reads its shared memory") \
	BUG(setmaxnreg_up, CS408, "", "setmaxnreg.dec asks for more registers than there are") \
	/* across the cluster */ \
	BUG(init_unpublished, CS207, "", "nothing between mbarrier.init and its first use") \
	BUG(init_cta_only, CS502, "", \
		"__syncthreads instead of a cluster barrier after the initialisation") \
	BUG(no_init_fence, CS207, "", "no fence.mbarrier_init before the cluster barrier") \
	BUG(empty_own_only, CS209, "", \
		"empty counts the own consumers only, and the peers' arrive, too") \
	BUG(release_own_only, CS701, "", "consumers release slots to their own producer only") \
	BUG(release_wrong_cta, CS120, SQUARE, \
		"one release goes to the diagonal CTA, which never writes here") \
	BUG(release_peers_early, CS120, "", \
		"releases to the peers the slot that the wgmma group in flight still reads") \
	BUG(mask_wide, CS211, SQUARE, "A is multicast to the whole cluster, not to the row") \
	BUG(mask_narrow, CS703, SQUARE, "A is multicast to its own CTA only") \
	BUG(mask_column, CS107, SQUARE, "B goes along the row instead of the column") \
	BUG(same_part, CS107, SQUARE, "two CTAs load the same half of B, no CTA the other") \
	BUG(expect_own_part, CS211, "", "the bytes that the peers send are not expected") \
	BUG(leaves_early, CS503, "", "a CTA exits while peers still release slots to it") \
	BUG(tail_within_cta, CS503, "", "__syncthreads at the end: a peer may still arrive") \
	BUG(tail_before_work, CS503, "", "the last cluster barrier comes before the work")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, c;
};

/* `rows` and `cols` are those of the cluster that the launch prefers: B is cut into
 * so many parts, and A. In a smaller cluster each CTA loads several parts. */
struct sizes {
	int k, rows, cols;
	int blocks_high, blocks_wide;  /* C in blocks: the tiles of a preferred cluster */
};

/* This CTA's position in its actual cluster, and which CTAs it shares with */
struct team {
	uint32_t rank = cluster_rank(), row = cluster_y(), col = cluster_x();
	uint32_t rows = cluster_height(), cols = cluster_width();

	__device__ __forceinline__ uint32_t along_row() const
	{
		return ((1 << cols) - 1) << row * cols;
	}

	__device__ __forceinline__ uint32_t along_column() const
	{
		uint32_t mask = 0;

		for (uint32_t r = 0; r < rows; r++)
			mask |= 1 << (r * cols + col);
		return mask;
	}

	/* Does each of the two CTAs write to the other's slots? */
	__device__ __forceinline__ bool shares_with(uint32_t other) const
	{
		return other < rows * cols && (other / cols == row || other % cols == col);
	}

	__device__ __forceinline__ uint32_t sharers() const
	{
		return rows + cols - 1;
	}
};

/* Which tile of a block is this CTA's */
DEVICE tile_place tile_of(const sizes &s, int block)
{
	const tile_place at = place_in_band(block, s.blocks_high, s.blocks_wide, max(BAND / s.rows, 1));

	return {at.row * s.rows + (int)blockIdx.y, at.col * s.cols + (int)(blockIdx.x % s.cols)};
}

/* The blocks of this CTA: every so many as there are preferred clusters */
#define FOR_BLOCKS(block, s) \
	for (int block = blockIdx.x / (s).cols; block < (s).blocks_high * (s).blocks_wide; \
		block += gridDim.x / (s).cols)

DEVICE void load_to(uint32_t mask, void *slot, const CUtensorMap *map, int x, int y, uint64_t *full)
{
	if (mask & (mask - 1))
		tensor_load_multicast(slot, map, x, y, full, mask);
	else
		tensor_load(slot, map, x, y, full);
}

template <int N, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, __half *slots, channel<SLOTS> &ch, Bug bug)
{
	const team us;
	const int a_high = shape<N>::bm / s.cols, b_high = BN / s.rows; /* rows of a part */
	uint32_t row = us.along_row(), column = us.along_column();
	int bytes = shape<N>::slot_bytes;
	cursor<SLOTS> at;

	if (bug.is(tx_without_b))
		bytes = shape<N>::a_halves * 2;
	if (bug.is(expect_own_part))
		bytes = (a_high + b_high) * BK * 2;
	if (bug.is(mask_wide))
		row = (1 << us.rows * us.cols) - 1;
	if (bug.is(mask_narrow))
		row = 1 << us.rank;
	if (bug.is(mask_column))
		column = row;
	tensor_prefetch(&t.a);
	tensor_prefetch(&t.b);
	FOR_BLOCKS(block, s) {
		const tile_place c = tile_of(s, block);

		for (int k = 0; k < s.k; k += BK, at.next()) {
			__half *a = slots + at.slot * shape<N>::slot_halves, *b = a + shape<N>::a_halves;
			uint64_t *full = &ch.full[at.slot];

			if (bug.is(producer_parity) || (bug.is(wrap_late) && at.slot == 0 && k > 0))
				// @bug producer_parity CS701
				mbar_wait_cluster(&ch.empty[at.slot], at.parity);
			else
				// @bug release_own_only CS701 @bug one_releases CS701
				channel_acquire_cluster(ch, at);
			channel_expect(ch, at, bytes);
			for (int i = us.col; i < s.cols; i += us.cols)
				// @bug release_early CS120 @bug release_wrong_cta CS120
				// @bug mask_wide CS211 @bug wrap_late CS107
				load_to(row, a + i * a_high * BK, &t.a, k, c.row * shape<N>::bm + i * a_high, full);
			for (int i = bug.is(same_part) ? 0 : us.row; i < s.rows; i += us.rows)
				// @bug tx_without_b CS211 @bug expect_own_part CS211
				// @bug mask_column CS107 @bug same_part CS107
				// @bug wrap_late CS107 @bug release_peers_early CS120
				load_to(column, b + i * b_high * BK, &t.b, k, c.col * BN + i * b_high, full);
		}
	}
}

/* One slot: 64 rows of A from `a`, all of B, added to the sums. */
template <class Bug>
DEVICE void multiply(float (&sum)[BN / 2], const __half *a, const __half *b, bool last, Bug bug)
{
	if (!bug.is(no_wgmma_fence))
		wgmma_fence();
	multiply_tiles(sum, a, b);
	if (!(bug.is(no_wgmma_commit) && last))
		wgmma_commit();
}

enum { NO_RANK = -1u };

/* The rank of the CTA to which this thread of a consumer warpgroup releases slots. The four
 * warps complete wgmma.wait_group together, so one thread for each CTA arrives for all. */
template <class Bug> DEVICE uint32_t releases_to(const team &us, int warpgroup, Bug bug)
{
	const uint32_t to = threadIdx.x % 128;

	if (!us.shares_with(to) || (bug.is(one_releases) && warpgroup > 0))
		return NO_RANK;
	if (bug.is(release_own_only) && to != us.rank)
		return NO_RANK;
	if (bug.is(release_wrong_cta) && to != us.rank && to / us.cols == us.row)
		return us.rows * us.cols - 1 - us.rank;
	return to;
}

DEVICE void release(channel<SLOTS> &ch, cursor<SLOTS> at, uint32_t to)
{
	if (to != NO_RANK)
		// @bug empty_own_only CS209 @bug leaves_early CS503 @bug tail_within_cta CS503
		// @bug tail_before_work CS503 @bug init_cta_only CS502 @bug no_init_fence CS207
		channel_release_read(ch, at, to);
}

template <int N, class Bug>
DEVICE void store(const tensors &t, const tile_place &c, __half *staging,
	const float (&sum)[BN / 2], int warpgroup, Bug bug)
{
	const int thread = threadIdx.x % 128;
	const int barrier = bug.is(barrier_shared) ? 1 : 1 + warpgroup;
	const int threads = bug.is(barrier_count) ? 256 : 128;

#pragma unroll
	for (int j = 0; j < BN / CHUNK; j++) {
		__half *buffer = staging + j % 2 * STAGING_HALVES;

		if (thread == 0 && bug.is(staging_lax))
			bulk_wait_read<2>();
		else if (thread == 0 && !bug.is(staging_reused))
			bulk_wait_read<1>();
		named_barrier_sync(barrier, threads); // @bug barrier_count CS701
		// @bug wait_off_by_one CS321 @bug no_wgmma_commit CS321 @bug no_proxy_fence CS110
		// @bug staging_reused CS105 @bug staging_lax CS105
		stage_tile<CHUNK>(buffer, sum + j * CHUNK / 2);
		if (!bug.is(no_proxy_fence))
			fence_proxy_async();
		if (!bug.is(staging_unsynced))
			named_barrier_sync(barrier, threads);
		if (thread == 0) {
			// @bug no_proxy_fence CS110 @bug staging_unsynced CS105 @bug staging_reused CS105
			// @bug staging_lax CS105 @bug barrier_shared CS105
			// @bug store_not_committed CS309 @bug exit_pending CS308
			tensor_store(&t.c, c.col * BN + j * CHUNK, c.row * shape<N>::bm + warpgroup * WM,
				buffer);
			if (!(bug.is(store_not_committed) && j == BN / CHUNK - 1))
				bulk_commit();
		}
	}
}

template <int N, class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const __half *slots, __half *staging,
	channel<SLOTS> &ch, int warpgroup, Bug bug)
{
	const team us;
	const int thread = threadIdx.x % 128;
	const uint32_t to = releases_to(us, warpgroup, bug);
	const bool early = bug.is(release_early) || (bug.is(release_peers_early) && to != us.rank);
	cursor<SLOTS> at, before;

	staging += warpgroup * 2 * STAGING_HALVES;
	FOR_BLOCKS(block, s) {
		const tile_place c = tile_of(s, block);
		float sum[BN / 2];

		if (bug.is(stale_phase))
			at.parity = 0;
		clear(sum);
		for (int k = 0; k < s.k; k += BK, at.next()) {
			const __half *a = slots + at.slot * shape<N>::slot_halves + warpgroup * WM * BK;
			const __half *b = slots + at.slot * shape<N>::slot_halves + shape<N>::a_halves;

			if (bug.is(consumer_parity))
				mbar_wait(&ch.full[at.slot], at.parity ^ 1);
			else if (!bug.is(no_full_wait))
				// @bug init_unpublished CS207 @bug full_count CS701 @bug mask_narrow CS703
				channel_wait(ch, at);
			// @bug no_full_wait CS121 @bug consumer_parity CS121 @bug release_early CS120
			// @bug no_wgmma_fence CS320 @bug stale_phase CS121 @bug release_peers_early CS120
			// @bug release_wrong_cta CS120
			multiply(sum, a, b, k + BK >= s.k, bug);
			wgmma_wait<1>();
			if (k > 0 || early)
				release(ch, early ? at : before, to);
			before = at;
		}
		if (!bug.is(wait_off_by_one))
			wgmma_wait<0>();
		if (!early)
			release(ch, before, to);
		store<N>(t, c, staging, sum, warpgroup, bug);
	}
	if (thread == 0 && !bug.is(exit_pending))
		bulk_wait_read<0>();
}

/* Before the work: initialises the channel and publishes it to the cluster. */
template <int N, class Bug> DEVICE void begin(channel<SLOTS> &ch, Bug bug)
{
	const team us;

	if (threadIdx.x == 0)
		channel_init(ch, 1 + bug.is(full_count), N * (bug.is(empty_own_only) ? 1 : us.sharers()));
	if (bug.is(init_unpublished))
		return;
	if (bug.is(init_cta_only)) {
		__syncthreads();
		return;
	}
	if (bug.is(no_init_fence)) {
		cluster_sync_relaxed();
		return;
	}
	channels_publish();
}

/* After the work: no CTA exits while a peer may still arrive on its mbarriers. */
template <class Bug> DEVICE void end(Bug bug)
{
	if (bug.is(leaves_early) || bug.is(tail_before_work))
		return;
	if (bug.is(tail_within_cta)) {
		__syncthreads();
		return;
	}
	cluster_sync_relaxed();
}

template <int N, class Bug>
__global__ void __launch_bounds__(shape<N>::threads, 1)
wgmma_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ channel<SLOTS> ch;
	__half *slots = first_tile(smem);
	__half *staging = slots + SLOTS * shape<N>::slot_halves;
	const int warpgroup = threadIdx.x / 128;

	begin<N>(ch, bug);
	if (bug.is(tail_before_work))
		cluster_sync();
	if (warpgroup == 0) {
		if (bug.is(setmaxnreg_up))
			registers_dec<232>(); // @bug setmaxnreg_up CS408
		else if (N > 1)
			registers_dec<40>();
		if (threadIdx.x == 0)
			produce<N>(t, s, slots, ch, bug);
	} else {
		if (N > 1)
			registers_inc<232>();
		consume<N>(t, s, slots, staging, ch, warpgroup - 1, bug);
	}
	end(bug);
}

/* ---- host ---- */

/* Rows x columns of CTAs; "2" and "4" are the fastest shapes of that size. */
static const struct cta_layout {
	unsigned rows, cols;
} layouts[] = {{1, 1}, {2, 1}, {2, 2}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}, {0, 0}};
#define LAYOUTS "1|2|4|2x1|1x2|2x2|4x1|1x4"
enum { NO_LAYOUT = 8 };

struct job {
	tensors t;
	sizes s;
	cta_layout cluster, fallback; /* fallback.rows 0: none */
	int ctas;
};

/* How many clusters to launch: as many as are resident at once, each for several blocks */
template <class K> static unsigned resident(K kernel, const job &j, cudaLaunchConfig_t config)
{
	const int blocks = j.s.blocks_high * j.s.blocks_wide;
	int clusters = j.ctas / (int)(j.cluster.rows * j.cluster.cols);

	if (!j.ctas)
		CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
	return clusters < 1 ? 1 : clusters < blocks ? clusters : blocks;
}

template <int N, class Bug> static void launch(const job &j, Bug bug)
{
	auto *kernel = wgmma_gemm<N, Bug>;
	const dim3 cluster(j.cluster.cols, j.cluster.rows);
	cluster_launch run(cluster, j.fallback.rows ? dim3(j.fallback.cols, j.fallback.rows) : cluster,
		shape<N>::threads, shape<N>::smem);

	/* resident() needs it before the launch sets it */
	CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape<N>::smem));
	run.config.gridDim.x *= resident(kernel, j, run.config);
	if (j.fallback.rows)
		run.prefer(cluster);
	run(kernel, j.t, j.s, bug);
}

template <class Bug> static void launch(const job &j, long warpgroups, Bug bug)
{
	if (warpgroups == 1)
		launch<1>(j, bug);
	else
		launch<2>(j, bug);
}

int main(int argc, char **argv)
{
	long m = 256, n = 512, k = 512, cluster = 1, fallback = NO_LAYOUT, warpgroups = 2, ctas = 0;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B, columns of C, a multiple of 8"},
		{"k", &k, "columns of A and B, a multiple of 8"},
		{"cluster", &cluster, "CTAs of a cluster, or rows x columns", LAYOUTS},
		{"fallback", &fallback, "smaller clusters where those do not fit", LAYOUTS "|no"},
		{"warpgroups", &warpgroups, "consumer warpgroups, 1 or 2: tiles of 64 or 128 rows"},
		{"ctas", &ctas, "thread blocks at most; 0: as many as run at once"},
	};
	const struct program p = harness_program("wgmma_gemm",
		"half GEMM with TMA multicast, mbarriers and wgmma", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	product_require(p, m, n, k);
	harness_require(warpgroups == 1 || warpgroups == 2, p, "warpgroups must be 1 or 2");
	const cta_layout prefer = layouts[cluster], least = layouts[fallback];
	harness_require(!least.rows || (prefer.rows % least.rows == 0 && prefer.cols % least.cols == 0),
		p, "the cluster must be a multiple of its fallback in rows and in columns");

	const halves a(1, (uint64_t)m * k), b(2, (uint64_t)n * k);
	__half *dc = harness_device<__half>(NULL, (uint64_t)m * n);
	const long high = warpgroups * WM * prefer.rows, wide = (long)BN * prefer.cols;
	const job j = {
		{tensor_map(a.device, m, k, warpgroups * WM / prefer.cols),
			tensor_map(b.device, n, k, BN / prefer.rows), tensor_map(dc, m, n, WM)},
		{(int)k, (int)prefer.rows, (int)prefer.cols, (int)((m + high - 1) / high),
			(int)((n + wide - 1) / wide)},
		prefer, least, (int)ctas};

	const int status = harness_run(p, r, [&](auto bug) { launch(j, warpgroups, bug); },
		[&](checker &c) { product_check(c, product<__half>{m, n, k, a.host, b.host, 1, k}, dc); },
		2e-12 * m * n * k, "TFLOP/s", "%ld x %ld x %ld, clusters of %u x %u", m, n, k,
		prefer.rows, prefer.cols);

	cudaFree(dc);
	return status;
}
