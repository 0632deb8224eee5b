/* tcgen05_gemm: C = A * B^T on Blackwell's tensor cores, bfloat16 in and out, sums of float in
 * tensor memory. A group is a CTA (--group=1) or a pair of CTAs (--group=2), which multiplies
 * together: 128 or 256 rows of C by 256 columns. The groups of a cluster have adjacent columns of C
 * and share its rows of A: each loads a part of them and multicasts it.
 *
 *     cluster of 4 = 2 pairs     rank 0, 1: pair 0      rank 0 and 2 hold the upper 128 rows of A,
 *     sharing 256 rows of A      rank 2, 3: pair 1      1 and 3 the lower ones; each loads 64 rows
 *                                                       and sends them to the other one, too
 *
 *   producer (warp 4)           MMA (warp 5 of the leader)         epilogue (warps 0 to 3)
 *
 *   wait empty[slot] <--------. wait acc.empty[buffer] <---------. wait acc.full[buffer] <--.
 *   leader: arrive on full,   | for each slot:                   | tmem_load, wait::ld      |
 *     expect bytes of the pair|   wait full[slot] <--.           | fence before             |
 *   TMA own part of A, own B  |   4 x MMA            |           | arrive acc.empty --------'
 *     | bytes count in the    |   commit ------------|--.        |   of the leader         |
 *     '- leader's full[slot] -|----------------------'  |        | sums -> staging         |
 *                             '- empty[slot] of the  <--'        | TMA store               |
 *                                whole cluster                   |                         |
 *                                 commit -> acc.full[buffer] ----|-------------------------'
 *                                           of the pair          '
 *
 * Who arrives on what:
 *   full       in the leader: the leader's producer, and the bytes of both CTAs
 *   empty      in each CTA: a commit of each group to which the CTA writes, so the number of groups
 *              of the cluster and not that of its CTAs
 *   acc.full   in each CTA: a commit of the own group
 *   acc.empty  in the leader: the four epilogue warps of each CTA of the group
 *
 * Two accumulators alternate: the next product is summed while the last one is stored. Before it
 * exits, each producer waits until all its slots are released: a commit of another group may
 * otherwise arrive on the barrier of a CTA that has exited. The cluster barrier at the end covers
 * all other arrivals and the tensor memory that the pair uses together.
 *
 * What a CTA computes depends on blockIdx only, and which CTAs it shares with depends on its actual
 * cluster: a launch may mix clusters of two sizes (--fallback).
 *
 * A is M x K, B is N x K, C is M x N, row-major; K and N are multiples of 8. TMA reads elements
 * outside as zero and does not write them. */
#include "../common/channel.cuh"
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tcgen05.cuh"
#include "../common/tensor_map.h"
#include "../common/tile_order.cuh"

using bf16 = __nv_bfloat16;

enum {
	BM = 128, BN = 256, BK = 64, /* of C and of a slot; BM rows for each CTA of the group */
	A_ELEMENTS = BM * BK,
	COLUMNS = 512,             /* of tensor memory: two accumulators */
	CHUNK = 64,                /* columns that a warp loads, stages and stores together */
	STAGING = 32 * CHUNK,      /* elements of one buffer; each epilogue warp has two */
	EPILOGUE_WARPS = 4, PRODUCER = 4, MMA = 5, THREADS = 6 * 32,
	BAND = 16,                 /* rows of tiles of a band, see tile_order.cuh */
};

/* Sizes of a CTA in a group of N */
template <int N> struct shape {
	static const int b_rows = BN / N, slots = N == 1 ? 4 : 6;
	static const int slot_elements = A_ELEMENTS + b_rows * BK, slot_bytes = slot_elements * 2;
	static const int smem = slots * slot_bytes + EPILOGUE_WARPS * 2 * STAGING * 2 + 1024;
};

#define SINGLE "--group=1 --cluster=1 --m=128 --n=768 --ctas=1"
#define ONE_TILE "--group=1 --cluster=1 --m=128 --n=256 --ctas=1"
#define PAIR "--cluster=2 --n=768 --ctas=2"
#define LOOPS "--n=1536 --ctas=4"
#define BUGS(BUG) \
	/* operands in shared memory */ \
	BUG(no_full_wait, CS610, SINGLE, "multiplies without waiting for the bytes") \
	BUG(full_parity, CS610, SINGLE, "waits for the previous phase of full, which is complete") \
	BUG(stale_phase, CS609, SINGLE " --k=256", \
		"begins each tile in the phase in which it began the first") \
	BUG(producer_parity, CS701, "", \
		"the producer's first lap waits for slots that will not be released") \
	BUG(expect_one_cta, CS211, PAIR, "the bytes of the odd CTA are not expected") \
	BUG(full_not_leaders, CS611, PAIR, \
		"the odd CTA's bytes count on its own barrier, so the leader does not wait for them") \
	BUG(release_by_arrive, CS609, SINGLE, \
		"an arrival instead of a commit releases the slot that the MMA still reads") \
	BUG(release_before_mma, CS609, PAIR, "the commit comes before the last MMA of the slot") \
	BUG(release_not_committed, CS701, SINGLE, "the last slot of a tile is not released") \
	BUG(release_in_full, CS701, SINGLE, "the commit goes to full instead of empty") \
	BUG(all_lanes_issue, CS632, SINGLE, "all lanes of the warp issue each MMA and commit") \
	/* accumulators */ \
	BUG(acc_by_arrive, CS604, SINGLE, \
		"an arrival instead of a commit publishes the sums, which are not complete") \
	BUG(acc_commit_early, CS604, PAIR, "the commit of the sums comes before the last MMAs") \
	BUG(acc_not_waited, CS602, ONE_TILE, "the epilogue does not wait for the sums") \
	BUG(acc_full_parity, CS602, ONE_TILE, "the epilogue waits for the previous phase of acc.full") \
	BUG(acc_overwritten, CS602, SINGLE, \
		"the MMA waits for the epilogue only after the first slot has been multiplied") \
	BUG(acc_empty_parity, CS701, SINGLE, "the first sums wait for a release") \
	BUG(acc_wrong_barrier, CS701, SINGLE, "the commit of the sums goes to acc.empty") \
	BUG(acc_no_wait_ld, CS602, SINGLE, "no wait::ld before acc.empty is signalled") \
	BUG(acc_release_first_chunk, CS602, SINGLE, "acc.empty is signalled after the first chunk") \
	BUG(acc_release_by_one, CS602, SINGLE, "one of four warps signals acc.empty for all") \
	BUG(acc_count_own, CS209, LOOPS, "acc.empty counts the leader's warps, those of the pair arrive") \
	BUG(acc_release_here, CS701, LOOPS, "the odd CTA's epilogue signals its own acc.empty") \
	BUG(acc_commit_leader, CS701, "", "acc.full is signalled in the leader only") \
	BUG(acc_commit_cluster, CS604, LOOPS, "acc.full is signalled in the other pair, too") \
	BUG(acc_overlap, CS602, SINGLE, "the second accumulator begins within the first") \
	BUG(acc_not_cleared, CS612, SINGLE, "the first MMA of a tile adds to what was there before") \
	BUG(wrong_window, CS630, SINGLE, "a warp loads the lanes of the next warp") \
	BUG(no_fence_after, CS607, SINGLE, "no fence between waiting for the sums and loading them") \
	/* allocation */ \
	BUG(address_unsynced, CS102, SINGLE, "reads the address before it is written") \
	BUG(alloc_half, CS620, SINGLE, "allocates the columns of one accumulator only") \
	BUG(alloc_after_relinquish, CS624, SINGLE, "gives up the right to allocate first") \
	BUG(not_deallocated, CS622, SINGLE, "exits without deallocating") \
	BUG(dealloc_half, CS627, SINGLE, "deallocates half of the columns") \
	BUG(dealloc_early, CS621, SINGLE, "deallocates before the epilogue has read") \
	BUG(dealloc_by_leader, CS707, PAIR, "the odd CTA does not take part in deallocating") \
	/* staging */ \
	BUG(no_proxy_fence, CS110, SINGLE, "the staging goes to the TMA engine without a proxy fence") \
	BUG(staging_reused, CS105, SINGLE, \
		"staging is rewritten without waiting for the store to read it") \
	BUG(exit_pending, CS308, SINGLE, \
		"the CTA exits while the last store still reads its shared memory") \
	/* across the cluster */ \
	BUG(no_init_fence, CS207, "", "no fence.mbarrier_init before the cluster barrier") \
	BUG(init_cta_only, CS502, "--group=1", \
		"__syncthreads instead of a cluster barrier after the initialisation") \
	BUG(empty_counts_ctas, CS701, "", \
		"empty counts the CTAs of the cluster, but a pair commits once for two") \
	BUG(empty_counts_one, CS209, "", "empty counts the own pair's commit only") \
	BUG(release_own_pair, CS701, "", "slots are released to the own pair only") \
	BUG(release_leaders, CS703, "", "slots are released to the leaders only") \
	BUG(mask_narrow, CS703, "", "A is multicast to the own CTA only") \
	BUG(same_part, CS107, "", "two CTAs load the same half of A, no CTA the other") \
	BUG(no_tail, CS221, "", "a CTA may exit before the last commit of the other pair arrives on it") \
	BUG(exits_early, CS221, "--group=1", \
		"a CTA exits while its peer may still commit to its barriers") \
	BUG(invalidates_early, CS205, "", \
		"a CTA invalidates its barriers while its peer may still commit to them") \
	BUG(tail_within_cta, CS503, LOOPS, "__syncthreads at the end: a peer may still arrive")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, c;
};

/* `groups`: of the cluster that the launch prefers: A is cut into so many parts. In a smaller
 * cluster each CTA loads several parts. */
struct sizes {
	int k, groups;
	int blocks_high, blocks_wide; /* C in blocks: the tiles of a preferred cluster */
};

template <int N> struct shared {
	channel<shape<N>::slots> ring;
	channel<2> acc;
	uint32_t tmem;
};

/* This CTA's position in its actual cluster */
template <int N> struct team {
	uint32_t rank = cluster_rank(), ctas = cluster_ctas();
	uint32_t leader = rank / N * N, groups = ctas / N;

	__device__ __forceinline__ bool leads() const { return rank == leader; }

	__device__ __forceinline__ uint32_t cluster() const { return (1 << ctas) - 1; }

	__device__ __forceinline__ uint32_t group() const { return ((1 << N) - 1) << leader; }

	/* The CTAs that hold the same rows of A: this one's counterparts in the other groups */
	__device__ __forceinline__ uint32_t sharers() const
	{
		uint32_t mask = 0;

		for (uint32_t r = rank % N; r < ctas; r += N)
			mask |= 1 << r;
		return mask;
	}
};

/* Which tile of a block is this group's */
template <int N> DEVICE tile_place tile_of(const sizes &s, int block)
{
	const tile_place at = place_in_band(block, s.blocks_high, s.blocks_wide, BAND);

	return {at.row, at.col * s.groups + (int)(blockIdx.x / N % s.groups)};
}

/* The blocks of this CTA: every so many as there are preferred clusters */
#define FOR_BLOCKS(block, s) \
	for (int block = blockIdx.x / (N * (s).groups); block < (s).blocks_high * (s).blocks_wide; \
		block += gridDim.x / (N * (s).groups))

template <int N, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, bf16 *slots, shared<N> &sh, Bug bug)
{
	const team<N> us;
	const int high = BM / s.groups; /* rows of a part of A */
	const uint32_t sharers = bug.is(mask_narrow) ? 1 << us.rank : us.sharers();
	cursor<shape<N>::slots> at;

	tensor_prefetch(&t.a);
	tensor_prefetch(&t.b);
	FOR_BLOCKS(block, s) {
		const tile_place c = tile_of<N>(s, block);
		const int row = (c.row * N + us.rank % N) * BM;
		const int col = c.col * BN + us.rank % N * shape<N>::b_rows;

		for (int k = 0; k < s.k; k += BK, at.next()) {
			bf16 *a = slots + at.slot * shape<N>::slot_elements, *b = a + A_ELEMENTS;
			const uint32_t full = smem_of(&sh.ring.full[at.slot],
				bug.is(full_not_leaders) ? us.rank : us.leader);

			if (bug.is(producer_parity))
				mbar_wait_cluster(&sh.ring.empty[at.slot], at.parity); // @bug producer_parity CS701
			else
				// @bug release_in_full CS701
				channel_acquire_cluster(sh.ring, at);
			if (us.leads() || bug.is(full_not_leaders))
				// @bug empty_counts_one CS209
				channel_expect(sh.ring, at, shape<N>::slot_bytes *
					(bug.is(expect_one_cta) || bug.is(full_not_leaders) ? 1 : N));
			for (int i = us.leader / N; i < s.groups; i += us.groups) {
				const int part = bug.is(same_part) ? 0 : i * high;

				if (us.groups > 1)
					// @bug no_init_fence CS207 @bug init_cta_only CS502 @bug same_part CS107
					group_load_multicast<N>(a + part * BK, &t.a, k, row + part, full, sharers);
				else
					// @bug no_full_wait CS610 @bug full_parity CS610 @bug stale_phase CS609
					// @bug expect_one_cta CS211 @bug full_not_leaders CS611
					// @bug release_by_arrive CS609 @bug release_before_mma CS609
					group_load<N>(a + part * BK, &t.a, k, row + part, full);
			}
			// @bug expect_one_cta CS211
			group_load<N>(b, &t.b, k, col, full);
		}
	}
	if (bug.is(no_tail) || bug.is(exits_early) || bug.is(invalidates_early))
		return;
#pragma unroll 1
	for (int i = 0; i < shape<N>::slots; i++, at.next())
		channel_acquire_cluster(sh.ring, at); // the last commits
}

/* Signals the barrier in the CTAs of `mask` when the MMAs so far are complete. */
template <int N> DEVICE void commit_to(uint64_t *bar, uint32_t mask, const team<N> &us)
{
	if (N == 1 && us.ctas == 1)
		// @bug all_lanes_issue CS632
		tcgen05_commit<N>(bar);
	else
		// @bug init_cta_only CS502 @bug exits_early CS221 @bug invalidates_early CS205
		// @bug no_tail CS221
		tcgen05_commit_multicast<N>(bar, mask);
}

/* The i-th of four times 16 columns of A and B of the group, added to the sums at `d` */
template <int N> DEVICE void multiply_16(uint32_t d, const bf16 *slot, int i, bool accumulate)
{
	const uint64_t a = tcgen05_tile(slot), b = tcgen05_tile(slot + A_ELEMENTS);

	/* 16 elements further: 32 bytes, 2 units */
	// @bug no_full_wait CS610 @bug full_parity CS610 @bug stale_phase CS609
	// @bug full_not_leaders CS611 @bug release_by_arrive CS609 @bug release_before_mma CS609
	// @bug all_lanes_issue CS632 @bug acc_by_arrive CS604 @bug acc_commit_early CS604
	// @bug acc_not_waited CS602 @bug acc_full_parity CS602 @bug acc_overwritten CS602
	// @bug acc_no_wait_ld CS602 @bug acc_release_first_chunk CS602 @bug acc_release_by_one CS602
	// @bug acc_commit_cluster CS604 @bug acc_overlap CS602 @bug acc_not_cleared CS612
	// @bug no_fence_after CS607 @bug alloc_half CS620
	mma_f16<N>(d, a + 2 * i, b + 2 * i, mma_bf16(N * BM, BN), accumulate || i > 0);
}

/* Called by one thread of the leader */
template <int N, class Bug>
DEVICE void multiply(const sizes &s, const bf16 *slots, shared<N> &sh, uint32_t tmem, Bug bug)
{
	const team<N> us;
	const uint32_t releases = bug.is(release_own_pair) ? us.group() :
		bug.is(release_leaders) ? us.cluster() & 0x55 : us.cluster();
	const uint32_t publishes = bug.is(acc_commit_leader) ? 1 << us.rank :
		bug.is(acc_commit_cluster) ? us.cluster() : us.group();
	cursor<shape<N>::slots> at;
	cursor<2> out;

	FOR_BLOCKS(block, s) {
		const uint32_t d = tmem + out.slot * (bug.is(acc_overlap) ? BN / 2 : BN);

		if (bug.is(stale_phase))
			at.parity = 0;
		if (bug.is(acc_empty_parity))
			mbar_wait_cluster(&sh.acc.empty[out.slot], out.parity); // @bug acc_empty_parity CS701
		else if (!bug.is(acc_overwritten))
			// @bug acc_release_here CS701
			channel_acquire_cluster(sh.acc, out);
		for (int k = 0; k < s.k; k += BK, at.next()) {
			const bool last = k + BK >= s.k;
			uint64_t *empty = &sh.ring.empty[at.slot];

			if (bug.is(full_parity))
				mbar_wait(&sh.ring.full[at.slot], at.parity ^ 1);
			else if (!bug.is(no_full_wait))
				// @bug empty_counts_one CS209 @bug release_leaders CS703 @bug mask_narrow CS703
				channel_wait(sh.ring, at);
			tcgen05_fence_after();
			if (bug.is(acc_commit_early) && last)
				commit_to(&sh.acc.full[out.slot], publishes, us);
#pragma unroll
			for (int i = 0; i < BK / 16; i++) {
				if (bug.is(release_before_mma) && i == BK / 16 - 1)
					commit_to(empty, releases, us);
				multiply_16<N>(d, slots + at.slot * shape<N>::slot_elements, i,
					k > 0 || bug.is(acc_not_cleared));
			}
			if (bug.is(acc_overwritten) && k == 0)
				channel_acquire_cluster(sh.acc, out);
			if (bug.is(release_by_arrive))
				mbar_arrive(empty);
			else if (bug.is(release_in_full))
				commit_to(&sh.ring.full[at.slot], releases, us);
			else if (!bug.is(release_before_mma) && !(bug.is(release_not_committed) && last))
				commit_to(empty, releases, us);
		}
		if (bug.is(acc_by_arrive))
			mbar_arrive(&sh.acc.full[out.slot]);
		else if (bug.is(acc_wrong_barrier))
			commit_to(&sh.acc.empty[out.slot], publishes, us);
		else if (!bug.is(acc_commit_early))
			commit_to(&sh.acc.full[out.slot], publishes, us);
		out.next();
	}
}

/* Called by the epilogue warps, each for its 32 rows */
template <int N, class Bug>
DEVICE void store(const tensors &t, const sizes &s, bf16 *staging, shared<N> &sh, uint32_t tmem,
	Bug bug)
{
	const team<N> us;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t window = (uint32_t)(bug.is(wrong_window) ? (warp + 1) % 4 : warp) * 32 << 16;
	const uint32_t owner = bug.is(acc_release_here) ? us.rank : us.leader;
	cursor<2> in;

	staging += warp * 2 * STAGING;
	FOR_BLOCKS(block, s) {
		const tile_place c = tile_of<N>(s, block);
		const uint32_t d = tmem + window + in.slot * (bug.is(acc_overlap) ? BN / 2 : BN);
		const int row = (c.row * N + us.rank % N) * BM + warp * 32;
		float sum[CHUNK];

		if (bug.is(acc_full_parity))
			mbar_wait_cluster(&sh.acc.full[in.slot], in.parity ^ 1);
		else if (!bug.is(acc_not_waited))
			// @bug release_not_committed CS701 @bug acc_wrong_barrier CS701
			// @bug acc_commit_leader CS701 @bug empty_counts_ctas CS701 @bug release_own_pair CS701
			channel_wait_cluster(sh.acc, in);
		if (!bug.is(no_fence_after))
			tcgen05_fence_after();
#pragma unroll 1
		for (int j = 0; j < BN / CHUNK; j++) {
			const bool last = j == (bug.is(acc_release_first_chunk) ? 0 : BN / CHUNK - 1);
			bf16 *buffer = staging + j % 2 * STAGING;

			// @bug acc_by_arrive CS604 @bug acc_commit_early CS604 @bug acc_not_waited CS602
			// @bug acc_full_parity CS602 @bug acc_overwritten CS602 @bug acc_no_wait_ld CS602
			// @bug acc_release_first_chunk CS602 @bug acc_release_by_one CS602
			// @bug acc_commit_cluster CS604 @bug acc_overlap CS602 @bug wrong_window CS630
			// @bug no_fence_after CS607 @bug dealloc_early CS621
			tmem_load(sum, d + j * CHUNK);
			if (!bug.is(acc_no_wait_ld))
				tmem_wait_loads(sum);
			if (last) {
				tcgen05_fence_before();
				__syncwarp(); // all lanes have loaded
				if (lane == 0 && !(bug.is(acc_release_by_one) && warp > 0))
					// @bug acc_count_own CS209 @bug tail_within_cta CS503
					mbar_arrive_at(&sh.acc.empty[in.slot], owner);
			}
			if (lane == 0 && !bug.is(staging_reused))
				bulk_wait_read<1>();
			__syncwarp();
			// @bug no_proxy_fence CS110 @bug staging_reused CS105
			stage_row(buffer, sum);
			if (!bug.is(no_proxy_fence))
				fence_proxy_async();
			__syncwarp();
			if (lane == 0) {
				// @bug no_proxy_fence CS110 @bug staging_reused CS105 @bug exit_pending CS308
				tensor_store(&t.c, c.col * BN + j * CHUNK, row, buffer);
				bulk_commit();
			}
		}
		in.next();
	}
	if (lane == 0 && !bug.is(exit_pending))
		bulk_wait_read<0>();
}

/* Before the work: initialises the barriers, publishes them to the cluster and allocates tensor
 * memory. Returns its address. */
template <int N, class Bug> DEVICE uint32_t begin(shared<N> &sh, Bug bug)
{
	const team<N> us;
	const int warp = threadIdx.x / 32;

	if (threadIdx.x == 0) {
		// @bug no_init_fence CS207
		channel_init(sh.ring, 1, bug.is(empty_counts_ctas) ? us.ctas :
			bug.is(empty_counts_one) ? 1 : us.groups);
		channel_init(sh.acc, 1, bug.is(acc_release_by_one) ? N :
			EPILOGUE_WARPS * (bug.is(acc_count_own) ? 1 : N));
	}
	if (bug.is(init_cta_only))
		__syncthreads();
	else if (bug.is(no_init_fence))
		cluster_sync_relaxed();
	else
		channels_publish();
	if (warp == MMA) {
		if (bug.is(alloc_after_relinquish))
			tmem_relinquish<N>();
		// @bug address_unsynced CS102 @bug alloc_after_relinquish CS624 @bug not_deallocated CS622
		// @bug dealloc_half CS627
		tmem_alloc<N>(&sh.tmem, bug.is(alloc_half) ? COLUMNS / 2 : COLUMNS);
		if (!bug.is(alloc_after_relinquish))
			tmem_relinquish<N>();
	}
	if (bug.is(address_unsynced))
		// @bug address_unsynced CS102
		return sh.tmem;
	tcgen05_fence_before();
	__syncthreads();
	tcgen05_fence_after();
	return sh.tmem;
}

/* After the work: no CTA deallocates or exits while a peer may use its tensor memory or arrive on
 * its mbarriers. */
template <int N, class Bug> DEVICE void end(shared<N> &sh, uint32_t tmem, Bug bug)
{
	const team<N> us;

	if (bug.is(invalidates_early)) {
		__syncthreads();
		if (threadIdx.x < shape<N>::slots)
			// @bug invalidates_early CS205
			mbar_inval(&sh.ring.empty[threadIdx.x]);
	}
	tcgen05_fence_before();
	if (bug.is(tail_within_cta) || bug.is(exits_early))
		__syncthreads();
	else if (!bug.is(dealloc_early))
		cluster_sync();
	tcgen05_fence_after();
	if (threadIdx.x / 32 != MMA || bug.is(not_deallocated) ||
		(bug.is(dealloc_by_leader) && !us.leads()))
		return;
	__syncwarp(); // converged, for .aligned
	// @bug dealloc_half CS627 @bug dealloc_early CS621 @bug dealloc_by_leader CS707
	tmem_dealloc<N>(tmem, bug.is(dealloc_half) || bug.is(alloc_half) ? COLUMNS / 2 : COLUMNS);
}

template <int N, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
tcgen05_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ shared<N> sh;
	bf16 *slots = first_tile<bf16>(smem);
	bf16 *staging = slots + shape<N>::slots * shape<N>::slot_elements;
	const uint32_t tmem = begin(sh, bug);
	const int warp = threadIdx.x / 32;

	if (warp < EPILOGUE_WARPS)
		store<N>(t, s, staging, sh, tmem, bug);
	else if (warp == PRODUCER && elect_one())
		produce<N>(t, s, slots, sh, bug);
	else if (warp == MMA && team<N>().leads() && (bug.is(all_lanes_issue) || elect_one()))
		multiply<N>(s, slots, sh, tmem, bug);
	end(sh, tmem, bug);
// @bug exit_pending CS308
}

/* ---- host ---- */

struct job {
	tensors t;
	sizes s;
	int cluster, fallback, ctas; /* fallback 0: none */
};

/* How many clusters to launch: as many as are resident at once, each for several blocks */
template <class K> static unsigned resident(K kernel, const job &j, cudaLaunchConfig_t config)
{
	const int blocks = j.s.blocks_high * j.s.blocks_wide;
	int clusters = j.ctas / j.cluster;

	if (!j.ctas)
		CUDA(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
	return clusters < 1 ? 1 : clusters < blocks ? clusters : blocks;
}

template <int N, class Bug> static void launch(const job &j, Bug bug)
{
	auto *kernel = tcgen05_gemm<N, Bug>;
	cluster_launch run(j.cluster, j.fallback ? j.fallback : j.cluster, THREADS, shape<N>::smem);

	/* resident() needs it before the launch sets it */
	CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape<N>::smem));
	run.config.gridDim.x *= resident(kernel, j, run.config);
	if (j.fallback)
		run.prefer(j.cluster);
	run(kernel, j.t, j.s, bug);
}

int main(int argc, char **argv)
{
	long m = 256, n = 512, k = 512, group = 2, cluster = 4, fallback = 0, ctas = 0;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B, columns of C, a multiple of 8"},
		{"k", &k, "columns of A and B, a multiple of 8"},
		{"group", &group, "CTAs that multiply together, 1 or 2"},
		{"cluster", &cluster, "CTAs of a cluster: 1, 2, 4 or 8, a multiple of the group"},
		{"fallback", &fallback, "smaller clusters where those do not fit; 0: none"},
		{"ctas", &ctas, "thread blocks at most; 0: as many as run at once"},
	};
	const struct program p = harness_program("tcgen05_gemm",
		"bfloat16 GEMM with tcgen05, tensor memory and pairs of CTAs", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	product_require(p, m, n, k);
	harness_require(group == 1 || group == 2, p, "group must be 1 or 2");
	harness_require(cluster > 0 && cluster <= 8 && !(cluster & (cluster - 1)) && cluster >= group,
		p, "cluster must be 1, 2, 4 or 8, and a multiple of the group");
	harness_require(!fallback || (fallback > 0 && cluster % fallback == 0 && fallback % group == 0),
		p, "fallback must divide the cluster and be a multiple of the group");

	const elements<bf16> a(1, (uint64_t)m * k), b(2, (uint64_t)n * k);
	bf16 *dc = harness_device<bf16>(NULL, (uint64_t)m * n);
	const tensor_type type = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_128B};
	const long groups = cluster / group, high = group * BM, wide = groups * BN;
	const job j = {
		{tensor_map(a.device, m, k, BM / groups, type), tensor_map(b.device, n, k, BN / group, type),
			tensor_map(dc, m, n, 32, type)},
		{(int)k, (int)groups, (int)((m + high - 1) / high), (int)((n + wide - 1) / wide)},
		(int)cluster, (int)fallback, (int)ctas};

	const int status = harness_run(p, r,
		[&](auto bug) { group == 1 ? launch<1>(j, bug) : launch<2>(j, bug); },
		[&](checker &c) { product_check(c, product<bf16>{m, n, k, a.host, b.host, 1, k}, dc); },
		2e-12 * m * n * k, "TFLOP/s", "%ld x %ld x %ld, groups of %ld, clusters of %ld", m, n, k,
		group, cluster);

	cudaFree(dc);
	return status;
}
