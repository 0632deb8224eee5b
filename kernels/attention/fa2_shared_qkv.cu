/* fa2_shared_qkv: FlashAttention-2, forward, split Q. Q, K and V share their
 * shared memory: Q comes first and then stays in registers ("prefetched"); then
 * K(0), V(0), K(1), ... use the same `stages` slots of 64 rows one after the other.
 * That is a quarter of what fa2_split_q needs.
 *
 *   turn t:  64 rows of Q (1 or 2 turns), then alternately 64 rows of K and of V,
 *            in slot t % stages. Every thread:
 *
 *   --stages=1                          --stages=2
 *
 *   wait_group 0, __syncthreads         wait_group 0, __syncthreads
 *        | t has landed                      | t has landed, t-1 is no longer read
 *        |                                   |---> cp.async t+1, commit
 *        V                                   V
 *   ldmatrix Q, to registers,           the same, while t+1 lands
 *   or S = Q K^T, or O += P V
 *        |
 *   __syncthreads
 *        | t is no longer read
 *        '---> cp.async t+1, commit
 *
 * The barrier after Q is easily forgotten: a warp that has its fragments must not
 * load K before the other warps have theirs. */
#include "fa2_host.h"

enum { BN = 64, WARPS = 4, THREADS = 32 * WARPS };

/* Row blocks of a warp: with D = 128, registers suffice for one. */
template <int D> constexpr int row_blocks = D == 64 ? 2 : 1;

#define BUGS(BUG) \
	BUG(k_over_q, CS106, "", "loads K over Q with no barrier after Q was read") \
	BUG(q_no_sync, CS301, "", "reads parts of Q that other threads copied with no barrier") \
	BUG(q_from_memory, CS301, "--stages=2", \
		"reads Q in the loop, from a slot where a turn of V lands") \
	BUG(q_one_turn, CS301, "--stages=2", \
		"all warps read Q in its first turn, when its second is still in flight") \
	BUG(v_over_k, CS106, "", "loads V over K with no barrier after the product with K") \
	BUG(no_wait, CS301, "", "only the barrier, no wait_group, before a turn is read") \
	BUG(wait_two_stages, CS301, "--stages=2", \
		"waits for all turns but the newest, the one it reads")

PLANT(BUGS)

template <int D, int stages, int layout, class Bug>
__global__ void __launch_bounds__(THREADS, 2)
fa2_shared_qkv(const problem p, float scale, Bug bug)
{
	constexpr int blocks = row_blocks<D>, rows = blocks * 16, high = WARPS * rows;
	constexpr int qturns = high / BN, slot_size = tile_size<D, layout>(BN);
	extern __shared__ __align__(128) __half slots[];
	const offsets<D, layout, THREADS> own;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const cta_work<D, high, BN> work(p);
	const int row = work.first + warp * rows + lane / 4; /* this lane's first */
	const size_t head = work.head;
	uint32_t q[D / 16][blocks][4];
	float o[blocks][D / 8][4] = {};
	running r[blocks][2];

	const auto slot = [&](int t) { return slots + t % stages * slot_size; };
	const auto bring = [&](int t) {
		const int kv = t - qturns;

		if (kv < 0)
			load_rows<BN, D>(own, slot(t), p.q + head, work.first + t * BN, p.n);
		else if (kv < 2 * work.tiles)
			load_rows<BN, D>(own, slot(t), (kv % 2 ? p.v : p.k) + head,
				kv / 2 * BN, p.n);
		cp_async_commit();
	};
	/* Waits until turn t has landed, and refills the slot that is then free. */
	const auto begin = [&](int t, bool synced = true) {
		if (bug.is(wait_two_stages))
			cp_async_wait<1>();
		else if (!bug.is(no_wait))
			cp_async_wait<0>();
		if (synced)
			__syncthreads();
		if (stages == 2)
			bring(t + 1);
		return slot(t);
	};
	const auto end = [&](int t, bool synced = true) {
		if (stages == 2)
			return;
		if (synced)
			__syncthreads();
		bring(t + 1);
	};

	bring(0);
	if (stages == 2 && bug.is(wait_two_stages))
		bring(1);
	for (int t = 0; t < qturns; t++) {
		const __half *sq = begin(t, !bug.is(q_no_sync));
		const int y0 = warp * rows - t * BN; /* of this warp, in this turn */

		if (bug.is(q_one_turn) ? t == 0 : y0 >= 0 && y0 < BN)
#pragma unroll
			for (int x = 0; x < D; x += 16)
#pragma unroll
				for (int y = 0; y < blocks; y++)
					// @bug k_over_q CS106 @bug q_no_sync CS301 @bug no_wait CS301
					// @bug wait_two_stages CS301 @bug q_one_turn CS301
					fetch_a(own, q[x / 16][y], sq, y0 + y * 16, x);
		// @bug k_over_q CS106
		end(t, !bug.is(k_over_q));
	}

	for (int j = 0; j < work.tiles; j++) {
		float s[blocks][BN / 8][4] = {};
		const __half *k = begin(qturns + 2 * j);

		if (bug.is(q_from_memory))
#pragma unroll
			for (int x = 0; x < D; x += 16)
				// @bug q_from_memory CS301
				fetch_a(own, q[x / 16][0], slot(qturns + 2 * j + 1), warp % 2 * rows, x);
#pragma unroll
		for (int x = 0; x < D; x += 16)
			// @bug v_over_k CS106
			scores(own, s, q[x / 16], k, 0, x);
		// @bug v_over_k CS106
		end(qturns + 2 * j, !bug.is(v_over_k));

		mask_tile(s, work, j, row, lane % 4 * 2, p);
		softmax(s, o, r, scale);

		const __half *v = begin(qturns + 2 * j + 1);

		all_values(own, o, s, v);
		end(qturns + 2 * j + 1);
	}
	store(p, head, row, o, r);
}

struct shared_qkv : fa2_program {
	template <int D, int stages, int layout, class Bug>
	static void launch(const problem &p, int heads, Bug bug)
	{
		constexpr int high = WARPS * row_blocks<D> * 16;
		const dim3 grid((p.n + high - 1) / high, heads);

		launch_grid(fa2_shared_qkv<D, stages, layout, Bug>, grid, THREADS,
			2 * stages * tile_size<D, layout>(BN), p, log2_scale(D), bug);
	}
};

int main(int argc, char **argv)
{
	return fa2_main<shared_qkv, 64, 128>(argc, argv, "fa2_shared_qkv",
		"FlashAttention-2 forward, Q, K and V in one place", __FILE__,
		bugs);
}
