/* clc_gemm: C = A * B^T on Blackwell tensor cores, bfloat16, persistent by cluster launch control:
 * the grid has a cluster (a CTA, or a pair with --group=2) for each tile of C, and a cluster that
 * has begun its tile asks for another one that has not started. So the tiles go to whichever
 * cluster has time, and a kernel of higher priority finds free SMs between two clusters.
 * tcgen05_gemm.cu explains the product; here a warp is added that schedules:
 *
 *   scheduler (warp 6 of the leader)           producer, MMA, epilogue: warps of each CTA
 *
 *   wait empty <------------------------.      own tile, then for each answer:
 *   arrive on full of each CTA,         |
 *     expect 16 bytes                   |      wait full <-------------------.
 *   request a cluster                   |      read the answer               |
 *     '- answer and bytes in each CTA --|------------------------------------'
 *   wait full, read the answer          |      fence.proxy.async
 *   nothing was canceled: stop          '----- arrive on empty of the leader
 *
 * The proxy fence orders the reads of the answer before the next one, which the async proxy writes
 * to the same place. `empty` counts the warps of the group that read: four epilogue warps and the
 * producer of each CTA, and the leader's MMA warp.
 *
 * A is M x K, B is N x K, C is M x N, row-major; K and N are multiples of 8. */
#include "../common/channel.cuh"
#include "../common/clc.cuh"
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tcgen05.cuh"
#include "../common/tensor_map.h"
#include "../common/tile_order.cuh"

using bf16 = __nv_bfloat16;

enum {
	BM = 128, BN = 256, BK = 64, /* of C and of a slot; BM rows for each CTA of the group */
	A_ELEMENTS = BM * BK,
	COLUMNS = 512, CHUNK = 64, STAGING = 32 * CHUNK,
	EPILOGUE_WARPS = 4, PRODUCER = 4, MMA = 5, SCHEDULER = 6, THREADS = 7 * 32,
	BAND = 16,
};

/* Sizes of a CTA in a group of N */
template <int N> struct shape {
	static const int b_rows = BN / N, slots = N == 1 ? 4 : 6;
	static const int slot_elements = A_ELEMENTS + b_rows * BK, slot_bytes = slot_elements * 2;
	static const int smem = slots * slot_bytes + EPILOGUE_WARPS * 2 * STAGING * 2 + 1024;
	static const int readers = N * (EPILOGUE_WARPS + 1) + 1; /* of an answer */
};

#define SINGLE "--group=1 --m=640 --n=512 --k=64"
#define BUGS(BUG) \
	BUG(answer_not_waited, CS104, SINGLE, "reads the answer without waiting for it") \
	BUG(answer_parity, CS104, SINGLE, "waits for the previous phase, which is complete") \
	BUG(answer_reused, CS106, SINGLE, "requests without waiting until the last answer was read") \
	BUG(release_before_read, CS106, SINGLE, "releases the answer before reading it") \
	BUG(readers_of_leader, CS106, "", "empty counts the leader's warps, those of the pair arrive") \
	BUG(no_proxy_fence, CS112, SINGLE, "no proxy fence between reading an answer and the next one") \
	BUG(asks_again, CS505, SINGLE, "requests again after an answer that nothing was canceled") \
	BUG(id_of_failure, CS506, SINGLE, "takes the CTA from an answer that nothing was canceled") \
	BUG(peer_not_armed, CS703, "", "16 bytes are expected in the leader only") \
	BUG(half_expected, CS703, SINGLE, "expects 8 of the 16 bytes") \
	BUG(answer_to_leader, CS703, "", "the odd CTA gets no answer, as the request has no multicast") \
	BUG(mma_keeps_answer, CS701, SINGLE, "the MMA warp does not release the answer") \
	BUG(odd_exits, CS707, "", "the odd CTA exits while the leader may still use it")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, c;
};

struct sizes {
	int k;
	int high, wide; /* C in tiles of the group */
};

template <int N> struct shared {
	channel<shape<N>::slots> ring;
	channel<2> acc;
	channel<1> queue; /* of one answer */
	clc_answer answer;
	uint32_t tmem;
};

template <int N, class Bug>
DEVICE void wait_answer(shared<N> &sh, cursor<1> at, Bug bug)
{
	if (bug.is(answer_parity))
		mbar_wait_cluster(sh.queue.full, at.parity ^ 1);
	else if (!bug.is(answer_not_waited))
		// @bug half_expected CS703
		channel_wait_cluster(sh.queue, at);
}

/* Called by a warp: the group's next tile, or -1 */
template <int N, class Bug> DEVICE int read_answer(const shared<N> &sh, Bug bug)
{
	// @bug answer_not_waited CS104 @bug answer_parity CS104 @bug answer_reused CS106
	// @bug release_before_read CS106 @bug readers_of_leader CS106 @bug no_proxy_fence CS112
	const clc_answer answer = sh.answer;
	// @bug asks_again CS505
	const bool canceled = clc_canceled(answer);
	int tile = -1;

	if (canceled || (bug.is(id_of_failure) && threadIdx.x / 32 == PRODUCER))
		// @bug id_of_failure CS506
		tile = clc_first_cta(answer) / N;
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	__syncwarp();
	return canceled ? tile : -1;
}

/* Called by a warp that is not the scheduler */
template <int N, class Bug> DEVICE int next_tile(shared<N> &sh, cursor<1> &at, Bug bug)
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const bool releases = lane == 0 && !(bug.is(mma_keeps_answer) && warp == MMA);
	int tile;

	wait_answer(sh, at, bug);
	if (releases && bug.is(release_before_read))
		channel_release_to(sh.queue, at, 0);
	tile = read_answer(sh, bug);
	if (releases && !bug.is(release_before_read))
		channel_release_to(sh.queue, at, 0);
	at.next();
	return tile;
}

/* The tiles of this group: that of its launch, then those of canceled clusters */
#define FOR_TILES(tile, sh, bug) \
	cursor<1> answers; \
	for (int tile = blockIdx.x / N; tile >= 0; tile = next_tile<N>(sh, answers, bug))

/* Called by the scheduler warp of the leader */
template <int N, class Bug> DEVICE void schedule(shared<N> &sh, Bug bug)
{
	const int lane = threadIdx.x % 32;
	cursor<1> at;
	int tile, failures = 0;

	do {
		if (!bug.is(answer_reused))
			// @bug mma_keeps_answer CS701
			channel_acquire_cluster(sh.queue, at);
		if (lane < (bug.is(peer_not_armed) ? 1 : N))
			mbar_arrive_expect_tx_at(sh.queue.full, lane, bug.is(half_expected) ? 8 : 16);
		__syncwarp(); // the bytes are expected
		if (elect_one()) {
			if (N == 1 || bug.is(answer_to_leader))
				// @bug answer_not_waited CS104 @bug answer_parity CS104 @bug answer_reused CS106
				// @bug release_before_read CS106 @bug no_proxy_fence CS112 @bug asks_again CS505
				clc_request(&sh.answer, sh.queue.full);
			else
				// @bug readers_of_leader CS106
				clc_request_multicast(&sh.answer, sh.queue.full);
		}
		wait_answer(sh, at, bug); // the scheduler, too
		tile = read_answer(sh, bug);
		at.next();
		failures += tile < 0;
	} while (tile >= 0 || (bug.is(asks_again) && failures < 2));
}

/* Called by the producer warp: all lanes wait, one issues. */
template <int N, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, bf16 *slots, shared<N> &sh, Bug bug)
{
	const uint32_t rank = cluster_rank();
	cursor<shape<N>::slots> at;

	FOR_TILES(tile, sh, bug) {
		const tile_place c = place_in_band(tile, s.high, s.wide, BAND);

		for (int k = 0; k < s.k; k += BK, at.next()) {
			bf16 *a = slots + at.slot * shape<N>::slot_elements, *b = a + A_ELEMENTS;
			const uint32_t full = smem_of(&sh.ring.full[at.slot], 0);

			channel_acquire_cluster(sh.ring, at);
			if (elect_one()) {
				if (rank == 0)
					channel_expect(sh.ring, at, N * shape<N>::slot_bytes);
				group_load<N>(a, &t.a, k, (c.row * N + rank) * BM, full);
				group_load<N>(b, &t.b, k, c.col * BN + rank * shape<N>::b_rows, full);
			}
			__syncwarp(); // all lanes go on
		}
	}
#pragma unroll 1
	for (int i = 0; i < shape<N>::slots; i++, at.next())
		channel_acquire_cluster(sh.ring, at); // the last
}

/* Signals the barrier in all CTAs of the group when what this thread has issued is complete. */
template <int N> DEVICE void commit_to_group(uint64_t *bar)
{
	if constexpr (N == 1)
		tcgen05_commit<N>(bar);
	else
		tcgen05_commit_multicast<N>(bar, 3);
}

/* Called by the MMA warp of the leader: all lanes wait, one issues. */
template <int N, class Bug>
DEVICE void multiply(const sizes &s, const bf16 *slots, shared<N> &sh, uint32_t tmem, Bug bug)
{
	cursor<shape<N>::slots> at;
	cursor<2> out;

	FOR_TILES(tile, sh, bug) {
		const uint32_t d = tmem + out.slot * BN;

		channel_acquire_cluster(sh.acc, out);
		for (int k = 0; k < s.k; k += BK, at.next()) {
			const bf16 *slot = slots + at.slot * shape<N>::slot_elements;
			const uint64_t a = tcgen05_tile(slot), b = tcgen05_tile(slot + A_ELEMENTS);

			// @bug peer_not_armed CS703 @bug answer_to_leader CS703
			channel_wait(sh.ring, at);
			tcgen05_fence_after();
			if (elect_one()) {
#pragma unroll
				for (int i = 0; i < BK / 16; i++) /* 16 elements further: 32 bytes, 2 units */
					mma_f16<N>(d, a + 2 * i, b + 2 * i, mma_bf16(N * BM, BN), k > 0 || i > 0);
				commit_to_group<N>(&sh.ring.empty[at.slot]);
			}
			__syncwarp(); // all lanes go on
		}
		if (elect_one())
			commit_to_group<N>(&sh.acc.full[out.slot]);
		__syncwarp(); // all lanes go on
		out.next();
	}
}

/* Called by the epilogue warps, each for its 32 rows */
template <int N, class Bug>
DEVICE void store(const tensors &t, const sizes &s, bf16 *staging, shared<N> &sh, uint32_t tmem,
	Bug bug)
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t window = (uint32_t)warp * 32 << 16;
	cursor<2> in;

	staging += warp * 2 * STAGING;
	FOR_TILES(tile, sh, bug) {
		const tile_place c = place_in_band(tile, s.high, s.wide, BAND);
		const int row = (c.row * N + cluster_rank()) * BM + warp * 32;
		float sum[CHUNK];

		channel_wait_cluster(sh.acc, in);
		tcgen05_fence_after();
#pragma unroll 1
		for (int j = 0; j < BN / CHUNK; j++) {
			bf16 *buffer = staging + j % 2 * STAGING;

			tmem_load(sum, tmem + window + in.slot * BN + j * CHUNK);
			tmem_wait_loads(sum);
			if (j == BN / CHUNK - 1) {
				tcgen05_fence_before();
				__syncwarp(); // all lanes have loaded
				if (lane == 0)
					channel_release_to(sh.acc, in, 0);
			}
			if (lane == 0)
				bulk_wait_read<1>();
			__syncwarp();
			stage_row(buffer, sum);
			fence_proxy_async();
			__syncwarp();
			if (lane == 0) {
				tensor_store(&t.c, c.col * BN + j * CHUNK, row, buffer);
				bulk_commit();
			}
		}
		in.next();
	}
	if (lane == 0)
		bulk_wait_read<0>();
}

template <int N, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
clc_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ shared<N> sh;
	bf16 *slots = first_tile<bf16>(smem);
	bf16 *staging = slots + shape<N>::slots * shape<N>::slot_elements;
	const int warp = threadIdx.x / 32;
	const bool leads = cluster_rank() == 0;

	if (threadIdx.x == 0) {
		channel_init(sh.ring, 1, 1);
		channel_init(sh.acc, 1, EPILOGUE_WARPS * N);
		channel_init(sh.queue, 1, bug.is(readers_of_leader) ? shape<1>::readers : shape<N>::readers);
	}
	channels_publish();
	if (warp == MMA) {
		tmem_alloc<N>(&sh.tmem, COLUMNS);
		tmem_relinquish<N>();
	}
	tcgen05_fence_before();
	__syncthreads();
	tcgen05_fence_after();

	const uint32_t tmem = sh.tmem;

	if (warp < EPILOGUE_WARPS)
		store<N>(t, s, staging, sh, tmem, bug);
	else if (warp == PRODUCER)
		produce<N>(t, s, slots, sh, bug);
	else if (warp == MMA && leads)
		multiply<N>(s, slots, sh, tmem, bug);
	else if (warp == SCHEDULER && leads)
		schedule<N>(sh, bug);
	tcgen05_fence_before();
	if (bug.is(odd_exits) && !leads)
		__syncthreads();
	else
		cluster_sync();
	tcgen05_fence_after();
	if (warp == MMA) {
		__syncwarp(); // converged
		// @bug odd_exits CS707
		tmem_dealloc<N>(tmem, COLUMNS);
	}
}

/* ---- host ---- */

template <int N, class Bug>
static void launch(const tensors &t, const sizes &s, Bug bug)
{
	cluster_launch run(s.high * s.wide * N, N, THREADS, shape<N>::smem);

	run(clc_gemm<N, Bug>, t, s, bug);
}

int main(int argc, char **argv)
{
	long m = 1280, n = 512, k = 128, group = 2;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B, columns of C, a multiple of 8"},
		{"k", &k, "columns of A and B, a multiple of 8"},
		{"group", &group, "CTAs that multiply together, 1 or 2"},
	};
	const struct program p = harness_program("clc_gemm",
		"bfloat16 GEMM with tcgen05, persistent by cluster launch control", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	product_require(p, m, n, k);
	harness_require(group == 1 || group == 2, p, "group must be 1 or 2");

	const elements<bf16> a(1, (uint64_t)m * k), b(2, (uint64_t)n * k);
	bf16 *dc = harness_device<bf16>(NULL, (uint64_t)m * n);
	const tensor_type type = {CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_128B};
	const tensors t = {tensor_map(a.device, m, k, BM, type),
		tensor_map(b.device, n, k, BN / group, type), tensor_map(dc, m, n, 32, type)};
	const sizes s = {(int)k, (int)((m + group * BM - 1) / (group * BM)), (int)((n + BN - 1) / BN)};

	const int status = harness_run(p, r,
		[&](auto bug) { group == 1 ? launch<1>(t, s, bug) : launch<2>(t, s, bug); },
		[&](checker &c) { product_check(c, product<bf16>{m, n, k, a.host, b.host, 1, k}, dc); },
		2e-12 * m * n * k, "TFLOP/s", "%ld x %ld x %ld, groups of %ld", m, n, k, group);

	cudaFree(dc);
	return status;
}
