/* wgmma_gemm: C = A * B^T on Hopper's tensor cores. Warp-specialised: in each
 * CTA one thread feeds a ring of slots by TMA, one or two warpgroups multiply
 * out of it. CTAs of a cluster stand in rows and columns like their tiles of C:
 * a row shares its rows of A, a column its rows of B, so each CTA loads only a
 * part of either and multicasts it to those who share it.
 *
 *           col 0   col 1         rank 0 writes into the slots of 0 and 1 (A)
 *    row 0  rank 0  rank 1        and of 0 and 2 (B); so its `empty` collects
 *    row 1  rank 2  rank 3        the releases of 0, 1 and 2
 *
 *     producer (warp 0, one lane)             consumers (warpgroups 1, 2)
 *
 *     for each tile of C of this CTA, for each 64 columns of K:
 *
 *     wait empty[slot]  <----------------.    wait full[slot]  <-------------.
 *     arrive full[slot], expect A and B  |    wgmma.fence                    |
 *     TMA my part of A -> slot, my row   |    4 x wgmma.mma_async, commit    |
 *     TMA my part of B -> slot, my column|    wgmma.wait_group 1             |
 *          | bytes land in all of them   |                                   |
 *          '--- each CTA's full[slot] ---|-----------------------------------'
 *                                        |    arrive done[slot before this] -.
 *     relay (warp 1, a lane for each CTA |    (one group stays in flight: it |
 *     in my row and column)              |    still reads this slot)         |
 *                                        |                                   |
 *     wait done[slot]  <-----------------|-----------------------------------'
 *     arrive empty[slot] of its CTA  ----'    empty counts the CTAs that relay
 *
 * An arrival that another CTA may rely on is a fence of some 600 cycles: hence
 * the relay. A CTA alone has none, its consumers arrive on empty.
 *
 *     and for each tile each consumer warpgroup on its own, by 64 columns:
 *
 *     one thread: bulk.wait_group.read 1   the store before the last has read
 *     bar.sync id, 128 ----------------->  all may write its staging buffer
 *     stmatrix                             sums -> staging
 *     fence.proxy.async                    so that the TMA engine sees them
 *     bar.sync id, 128 ----------------->  all have written
 *     one thread: TMA store, commit        runs on under what follows
 *
 * The whole is bracketed by two cluster barriers: no CTA is written to before
 * its barriers are there, and none leaves while a peer may still arrive at
 * them. What a CTA computes depends on blockIdx only, and whom it shares with on
 * the cluster it finds itself in: a launch may mix clusters of two sizes.
 *
 * A is M x K, B is N x K, C is M x N, row-major halves; K and N are multiples
 * of 8. TMA reads what lies outside as zero and does not write it. */
#include "../common/channel.cuh"
#include "../common/product.h"
#include "../common/tensor_map.h"

enum {
	WM = 64,                       /* rows of a consumer warpgroup */
	BN = 256, BK = 64, SLOTS = 4,
	B_HALVES = BN * BK,
	CHUNK = 64,                    /* columns that are staged and stored together */
	STAGING_HALVES = WM * CHUNK,   /* one buffer; a consumer warpgroup has two */
	BAND = 16,                     /* tile rows done together, so that L2 holds them */
};

/* The CTA with N consumer warpgroups */
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
		"the producer's first lap waits for slots that nobody will give back") \
	BUG(wrap_late, CS107, "--k=576", "the producer's parity flips one slot after the wrap") \
	BUG(tx_without_b, CS211, "", \
		"only the bytes of A are expected, those of B are copied as well") \
	BUG(full_count, CS701, "", "full counts two arrivals, the producer arrives once") \
	BUG(one_releases, CS701, "", "of two consumer warpgroups only the first gives slots back") \
	BUG(release_early, CS120, "", \
		"gives back the slot that the wgmma group in flight still reads") \
	BUG(wait_off_by_one, CS321, "", "reads the sums with one wgmma group still in flight") \
	BUG(no_wgmma_commit, CS321, "", "the last wgmma is in no group, so no wait covers it") \
	BUG(no_wgmma_fence, CS320, "", \
		"no wgmma.fence between clearing the sums and the first wgmma") \
	BUG(no_proxy_fence, CS110, "", "the staging goes to the TMA engine without a proxy fence") \
	BUG(staging_unsynced, CS105, "", \
		"the store starts before the other warps wrote the staging") \
	BUG(staging_reused, CS105, "", "staging is rewritten without asking whether it was read") \
	BUG(staging_lax, CS105, "", "waits for the store before the one that matters") \
	BUG(barrier_shared, CS105, "", "both consumer warpgroups meet at the same named barrier") \
	BUG(barrier_count, CS701, "", "the named barrier counts the producer's warpgroup, too") \
	BUG(store_not_committed, CS309, "", "the last store is in no group, so no wait covers it") \
	BUG(exit_pending, CS308, "", \
		"the CTA exits while the last store still reads its shared memory") \
	BUG(setmaxnreg_up, CS408, "", "setmaxnreg.dec asks for more registers than there are") \
	/* across the cluster */ \
	BUG(init_unpublished, CS207, "", "nothing between mbarrier.init and its first use") \
	BUG(init_cta_only, CS502, "", "__syncthreads where the cluster must meet") \
	BUG(no_init_fence, CS207, "", "the cluster meets, but no fence.mbarrier_init before it") \
	BUG(empty_own_only, CS209, "", "empty counts the own consumers only, the peers' arrive, too") \
	BUG(release_own_only, CS701, "", "consumers give slots back to their own producer only") \
	BUG(release_wrong_cta, CS120, SQUARE, \
		"one release goes to the CTA across the corner, which never writes here") \
	BUG(release_peers_early, CS120, "", \
		"the relay waits for full, not for done: peers get slots back that are in use") \
	BUG(mask_wide, CS211, SQUARE, "A is multicast to the whole cluster, not to the row") \
	BUG(mask_narrow, CS703, SQUARE, "A is multicast to its own CTA only") \
	BUG(mask_column, CS107, SQUARE, "B goes along the row instead of the column") \
	BUG(same_part, CS107, SQUARE, "two CTAs load the same half of B, nobody the other") \
	BUG(expect_own_part, CS211, "", "the bytes that the peers send are not expected") \
	BUG(leaves_early, CS503, "", "a CTA exits while peers still give slots back to it") \
	BUG(tail_within_cta, CS503, "", "__syncthreads at the end: a peer may still arrive") \
	BUG(tail_before_work, CS503, "", "the last cluster barrier is passed before the work")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, c;
};

struct ring {
	channel<SLOTS> ch;
	uint64_t done[SLOTS]; /* what the relay waits for */
};

/* `rows` and `cols` are those of the cluster that the launch prefers: into so
 * many parts B and A are cut, whoever loads them. */
struct sizes {
	int k, rows, cols;
	int blocks_high, blocks_wide;  /* C in blocks, the tiles of a preferred cluster */
};

/* This CTA among those it shares with, as it finds itself. */
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

	/* Do we write into each other's slots? */
	__device__ __forceinline__ bool shares_with(uint32_t other) const
	{
		return other < rows * cols && (other / cols == row || other % cols == col);
	}

	__device__ __forceinline__ uint32_t sharers() const
	{
		return rows + cols - 1;
	}
};

/* Where the tile of this CTA in a block begins, in tiles. Blocks are walked down
 * in bands of BAND tile rows. */
struct tile {
	int row, col;

	__device__ __forceinline__ tile(const sizes &s, int block)
	{
		const int band = max(BAND / s.rows, 1), from = block / (band * s.blocks_wide) * band;
		const int high = min(band, s.blocks_high - from), in = block - from * s.blocks_wide;

		row = (from + in % high) * s.rows + blockIdx.y;
		col = in / high * s.cols + blockIdx.x % s.cols;
	}
};

/* Block by block, as far apart as there are preferred clusters. */
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
		const tile c(s, block);

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

/* Staged as TMA wants it: each row of 128 bytes swizzled by its number modulo 8. */
DEVICE void stage(__half *staging, const float *sum, int warp, int lane)
{
	const int r = warp * 16 + lane % 16;

#pragma unroll
	for (int j = 0; j < CHUNK / 8; j += 2)
		stmatrix(staging + r * CHUNK + (j + lane / 16 ^ r % 8) * 8,
			pack_half(sum[4 * j], sum[4 * j + 1]),
			pack_half(sum[4 * j + 2], sum[4 * j + 3]),
			pack_half(sum[4 * j + 4], sum[4 * j + 5]),
			pack_half(sum[4 * j + 6], sum[4 * j + 7]));
}

/* One slot: 64 rows of A from `a`, all of B, added to the sums. */
template <class Bug>
DEVICE void multiply(float (&sum)[BN / 2], const __half *a, const __half *b, bool last, Bug bug)
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

/* By a consumer warpgroup. wgmma.wait_group is one event for its four warps: one
 * thread may speak for all of them. */
template <class Bug> DEVICE void give_back(ring &r, int slot, const team &us, int warpgroup, Bug bug)
{
	if (threadIdx.x % 128 || (bug.is(one_releases) && warpgroup > 0))
		return;
	mbar_arrive(us.sharers() == 1 ? &r.ch.empty[slot] : &r.done[slot]);
}

/* By one lane for each CTA of the cluster: tells it when consumers are done. */
template <class Bug> DEVICE void relay(const sizes &s, ring &r, uint32_t to, Bug bug)
{
	const team us;
	cursor<SLOTS> at;

	if (!us.shares_with(to) || (bug.is(release_own_only) && to != us.rank))
		return;
	if (bug.is(release_wrong_cta) && to != us.rank && to / us.cols == us.row)
		to = us.rows * us.cols - 1 - us.rank;
	FOR_BLOCKS(block, s)
		for (int k = 0; k < s.k; k += BK, at.next()) {
			// @bug one_releases CS701
			mbar_wait(bug.is(release_peers_early) ? &r.ch.full[at.slot] : &r.done[at.slot], at.parity);
			// @bug empty_own_only CS209 @bug leaves_early CS503 @bug tail_within_cta CS503
			// @bug tail_before_work CS503 @bug init_cta_only CS502 @bug no_init_fence CS207
			channel_release_to(r.ch, at, to);
		}
}

template <int N, class Bug>
DEVICE void store(const tensors &t, const tile &c, __half *staging, const float (&sum)[BN / 2],
	int warpgroup, Bug bug)
{
	const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
	const int barrier = bug.is(barrier_shared) ? 1 : 1 + warpgroup;
	const int meet = bug.is(barrier_count) ? 256 : 128;

#pragma unroll
	for (int j = 0; j < BN / CHUNK; j++) {
		__half *buffer = staging + j % 2 * STAGING_HALVES;

		if (thread == 0 && bug.is(staging_lax))
			bulk_wait_read<2>();
		else if (thread == 0 && !bug.is(staging_reused))
			bulk_wait_read<1>();
		named_barrier_sync(barrier, meet); // @bug barrier_count CS701
		// @bug wait_off_by_one CS321 @bug no_wgmma_commit CS321 @bug no_proxy_fence CS110
		// @bug staging_reused CS105 @bug staging_lax CS105
		stage(buffer, sum + j * CHUNK / 2, warp, lane);
		if (!bug.is(no_proxy_fence))
			fence_proxy_async();
		if (!bug.is(staging_unsynced))
			named_barrier_sync(barrier, meet);
		if (thread == 0) {
			// @bug no_proxy_fence CS110 @bug staging_unsynced CS105 @bug staging_reused CS105
			// @bug staging_lax CS105 @bug barrier_shared CS105
			// @bug store_not_committed CS309 @bug exit_pending CS308
			tensor_store(&t.c, c.col * BN + j * CHUNK, c.row * shape<N>::bm + warpgroup * WM, buffer);
			if (!(bug.is(store_not_committed) && j == BN / CHUNK - 1))
				bulk_commit();
		}
	}
}

template <int N, class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const __half *slots, __half *staging,
	ring &r, int warpgroup, Bug bug)
{
	const team us;
	const int thread = threadIdx.x % 128;
	cursor<SLOTS> at, before;

	staging += warpgroup * 2 * STAGING_HALVES;
	FOR_BLOCKS(block, s) {
		const tile c(s, block);
		float sum[BN / 2];

		if (bug.is(stale_phase))
			at.parity = 0;
#pragma unroll
		for (int i = 0; i < BN / 2; i++)
			sum[i] = 0;
		for (int k = 0; k < s.k; k += BK, at.next()) {
			const __half *a = slots + at.slot * shape<N>::slot_halves + warpgroup * WM * BK;
			const __half *b = slots + at.slot * shape<N>::slot_halves + shape<N>::a_halves;

			if (bug.is(consumer_parity))
				mbar_wait(&r.ch.full[at.slot], at.parity ^ 1);
			else if (!bug.is(no_full_wait))
				// @bug init_unpublished CS207 @bug full_count CS701 @bug mask_narrow CS703
				channel_wait(r.ch, at);
			// @bug no_full_wait CS121 @bug consumer_parity CS121 @bug release_early CS120
			// @bug no_wgmma_fence CS320 @bug stale_phase CS121 @bug release_peers_early CS120
			// @bug release_wrong_cta CS120
			multiply(sum, a, b, k + BK >= s.k, bug);
			wgmma_wait<1>();
			if (k > 0 || bug.is(release_early))
				give_back(r, bug.is(release_early) ? at.slot : before.slot, us, warpgroup, bug);
			before = at;
		}
		if (!bug.is(wait_off_by_one))
			wgmma_wait<0>();
		if (!bug.is(release_early))
			give_back(r, before.slot, us, warpgroup, bug);
		store<N>(t, c, staging, sum, warpgroup, bug);
	}
	if (thread == 0 && !bug.is(exit_pending))
		bulk_wait_read<0>();
}

/* Before the work: everybody knows everybody's barriers, and that they are there. */
template <int N, class Bug> DEVICE void meet(ring &r, Bug bug)
{
	const team us;
	const uint32_t sharers = us.sharers();

	if (threadIdx.x == 0) {
		channel_init(r.ch, 1 + bug.is(full_count),
			sharers == 1 ? N : bug.is(empty_own_only) ? 1 : sharers);
		for (int i = 0; i < SLOTS; i++)
			mbar_init(&r.done[i], N);
	}
	if (bug.is(init_unpublished))
		return;
	if (bug.is(init_cta_only)) {
		__syncthreads();
		return;
	}
	if (bug.is(no_init_fence)) {
		cluster_arrive_relaxed();
		cluster_wait();
		return;
	}
	channels_publish();
}

/* After it: nobody leaves while others may still arrive at its barriers. */
template <class Bug> DEVICE void part(Bug bug)
{
	if (bug.is(leaves_early) || bug.is(tail_before_work))
		return;
	if (bug.is(tail_within_cta)) {
		__syncthreads();
		return;
	}
	cluster_arrive_relaxed();
	cluster_wait();
}

template <int N, class Bug>
__global__ void __launch_bounds__(shape<N>::threads, 1)
wgmma_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ ring r;
	/* The swizzle pattern repeats every 1024 bytes and starts there. */
	__half *slots = (__half *)((uintptr_t)(smem + 1023) & ~(uintptr_t)1023);
	__half *staging = slots + SLOTS * shape<N>::slot_halves;
	const int warpgroup = threadIdx.x / 128;

	meet<N>(r, bug);
	if (bug.is(tail_before_work)) {
		cluster_arrive();
		cluster_wait();
	}
	if (warpgroup == 0) {
		if (bug.is(setmaxnreg_up))
			registers_dec<232>(); // @bug setmaxnreg_up CS408
		else if (N > 1)
			registers_dec<40>();
		if (threadIdx.x == 0)
			produce<N>(t, s, slots, r.ch, bug);
		else if (threadIdx.x - 32 < cluster_ctas() && cluster_ctas() > 1)
			relay(s, r, threadIdx.x - 32, bug);
	} else {
		if (N > 1)
			registers_inc<232>();
		consume<N>(t, s, slots, staging, r, warpgroup - 1, bug);
	}
	part(bug);
}

/* ---- host ---- */

/* Rows x columns of CTAs; 2 and 4 are the shapes that do best. */
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

/* Clusters that are resident at once are launched, each takes several blocks. */
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
	const cta_layout least = j.fallback.rows ? j.fallback : j.cluster;
	cudaLaunchAttribute attribute[2] = {};
	cudaLaunchConfig_t config = {};

	attribute[0].id = cudaLaunchAttributeClusterDimension;
	attribute[0].val.clusterDim = {least.cols, least.rows, 1};
	attribute[1].id = cudaLaunchAttributePreferredClusterDimension;
	attribute[1].val.preferredClusterDim = {j.cluster.cols, j.cluster.rows, 1};
	config.blockDim = shape<N>::threads;
	config.dynamicSmemBytes = shape<N>::smem;
	config.gridDim = dim3(j.cluster.cols, j.cluster.rows);
	config.attrs = attribute;
	config.numAttrs = 1;
	CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape<N>::smem));
	config.gridDim.x *= resident(kernel, j, config);
	config.numAttrs += j.fallback.rows > 0;
	CUDA(cudaLaunchKernelEx(&config, kernel, j.t, j.s, bug));
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
		{"warpgroups", &warpgroups, "consumers of a CTA, 1 or 2: tiles of 64 or 128 rows"},
		{"ctas", &ctas, "thread blocks at most; 0: as many as run at once"},
	};
	const struct program p = {"wgmma_gemm", "half GEMM with TMA multicast, mbarriers and wgmma",
		__FILE__, options, sizeof options / sizeof *options, bugs, sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, p);
	struct checker c = {};

	product_require(p, m, n, k);
	harness_require(warpgroups == 1 || warpgroups == 2, p, "1 or 2 warpgroups");
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

	if (r.bug >= 0)
		launch(j, warpgroups, planted_bug{r.bug});
	else
		launch(j, warpgroups, no_bug{});
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		product_check(c, {m, n, k, a.host, b.host, 1, k}, dc);
	if (r.bench) {
		const double time = harness_time([&] { launch(j, warpgroups, no_bug{}); });

		printf("wgmma_gemm: %ld x %ld x %ld, clusters of %u x %u: %.3f ms, %.1f TFLOP/s\n", m, n, k,
			prefer.rows, prefer.cols, time * 1e3, 2e-12 * m * n * k / time);
	}
	cudaFree(dc);
	return r.check ? checker_verdict(c, p) : 0;
}
