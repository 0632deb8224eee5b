/* fa2_shared_kv: FlashAttention-2, forward, split Q as in fa2_split_q. K and V
 * share their shared memory: K(0), V(0), K(1), V(1), ... use the same `stages`
 * slots one after the other. With less shared memory for a CTA more CTAs fit on
 * an SM: one computes while another waits for a copy.
 *
 *   turn t (K(t/2) or V(t/2)) uses slot t % stages. Every thread:
 *
 *   --stages=1                          --stages=2
 *
 *   wait_group 0, __syncthreads         wait_group 0, __syncthreads
 *        | t has landed                      | t has landed, t-1 is no longer read
 *        |                                   |---> cp.async t+1, commit
 *        V                                   V
 *   S = Q K^T, or O += P V              the same, while t+1 lands
 *        |
 *   __syncthreads                       K keeps slot 0 and V slot 1: this is
 *        | t is no longer read          fa2_split_q --stages=1
 *        '---> cp.async t+1, commit
 *
 *   softmax, which needs neither K nor V, while the next V lands. */
#include "fa2_host.h"

enum { BM = 128, BN = 64, WARPS = 4, THREADS = 32 * WARPS, BLOCKS = BM / WARPS / 16 };

#define BUGS(BUG) \
	BUG(v_over_k, CS106, "", "loads V over K with no barrier after the product with K") \
	BUG(k_over_v, CS106, "", "loads the next K over V with no barrier after the product with V") \
	BUG(no_wait, CS301, "", "only the barrier, no wait_group, before a turn is read") \
	BUG(no_sync, CS301, "", "only wait_group, no barrier, before a turn is read") \
	BUG(slot_of_next, CS301, "--stages=2", "reads the slot that the next turn is loaded into") \
	BUG(bring_early, CS106, "--stages=2", \
		"loads the next turn before the barrier that frees its slot") \
	BUG(q_alone, CS301, "", \
		"commits Q after the first wait, so fragments of Q are read too early") \
	BUG(last_turn, CS312, "", "loads one turn too many, which no thread waits for")

PLANT(BUGS)

template <int D, int stages, int layout, class Bug>
__global__ void __launch_bounds__(THREADS, 2)
fa2_shared_kv(const problem p, float scale, Bug bug)
{
	constexpr int slot_size = tile_size<D, layout>(BN);
	extern __shared__ __align__(128) __half smem[];
	__half *sq = smem, *slots = sq + tile_size<D, layout>(BM);
	const offsets<D, layout, THREADS> own;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const cta_work<D, BM, BN> work(p);
	const int row = work.first + warp * BLOCKS * 16 + lane / 4; /* this lane's first */
	const size_t head = work.head;
	float o[BLOCKS][D / 8][4] = {};
	running r[BLOCKS][2];

	const auto slot = [&](int t) { return slots + t % stages * slot_size; };
	const auto bring = [&](int t) {
		if (t < 2 * work.tiles + bug.is(last_turn))
			load_rows<BN, D>(own, slot(t), (t % 2 ? p.v : p.k) + head,
				t / 2 * BN, p.n);
		cp_async_commit();
	};
	/* Waits until turn t has landed, and refills the slot that is then free. */
	const auto begin = [&](int t) {
		if (stages == 2 && bug.is(bring_early))
			bring(t + 1);
		if (!bug.is(no_wait))
			cp_async_wait<0>();
		if (!bug.is(no_sync))
			__syncthreads();
		if (stages == 2 && !bug.is(bring_early))
			bring(t + 1);
		return slot(t + bug.is(slot_of_next));
	};
	const auto end = [&](int t, bool synced) {
		if (stages == 2)
			return;
		if (synced)
			__syncthreads();
		bring(t + 1);
	};

	if (bug.is(q_alone)) {
		bring(0);
		cp_async_wait<0>();
	}
	load_rows<BM, D>(own, sq, p.q + head, work.first, p.n);
	if (!bug.is(q_alone))
		bring(0); /* commits Q, too */

	for (int j = 0; j < work.tiles; j++) {
		float s[BLOCKS][BN / 8][4] = {};
		// @bug bring_early CS106
		const __half *k = begin(2 * j);

#pragma unroll
		for (int x = 0; x < D; x += 16) {
			uint32_t q[BLOCKS][4];

#pragma unroll
			for (int y = 0; y < BLOCKS; y++)
				// @bug q_alone CS301 @bug no_wait CS301 @bug no_sync CS301
				fetch_a(own, q[y], sq, (warp * BLOCKS + y) * 16, x);
			// @bug v_over_k CS106 @bug slot_of_next CS301 @bug bring_early CS106
			scores(own, s, q, k, 0, x);
		}
		// @bug v_over_k CS106
		end(2 * j, !bug.is(v_over_k));

		mask_tile(s, work, j, row, lane % 4 * 2, p);
		softmax(s, o, r, scale);

		const __half *v = begin(2 * j + 1);

		all_values(own, o, s, v); // @bug k_over_v CS106
		// @bug k_over_v CS106 @bug last_turn CS312
		end(2 * j + 1, !bug.is(k_over_v));
	}
	store(p, head, row, o, r);
}

struct shared_kv : fa2_program {
	template <int D, int stages, int layout, class Bug>
	static void launch(const problem &p, int heads, Bug bug)
	{
		const dim3 grid((p.n + BM - 1) / BM, heads);
		const int bytes = 2 * (tile_size<D, layout>(BM) + stages * tile_size<D, layout>(BN));

		launch_grid(fa2_shared_kv<D, stages, layout, Bug>, grid, THREADS, bytes, p,
			log2_scale(D), bug);
	}
};

int main(int argc, char **argv)
{
	return fa2_main<shared_kv, 64, 128>(argc, argv, "fa2_shared_kv",
		"FlashAttention-2 forward, K and V in one place", __FILE__,
		bugs);
}
