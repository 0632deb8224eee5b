/* fa2_split_q: FlashAttention-2, forward. O = softmax(Q K^T / sqrt(D)) V for
 * each head; no whole row of the scores is ever stored.
 *
 *   "split Q": a CTA has 128 rows of Q, each of its 4 warps 32 of them, and all
 *   warps go through the tiles of K and V together. They share what they read and
 *   nothing that they write, so they synchronise only for the buffers of K and V.
 *
 *   --stages=1: K and V have one buffer each, filled alternately
 *
 *     cp.async:  Q, K(0)
 *     for each tile j, every thread:
 *
 *     wait_group 0, __syncthreads ---- K(j) has landed; V(j-1) is no longer read
 *          |---> cp.async V(j), commit
 *          '---> S = Q K(j)^T               V(j) lands meanwhile
 *     wait_group 0, __syncthreads ---- V(j) has landed; K(j) is no longer read
 *          |---> cp.async K(j+1), commit
 *          '---> softmax, O += P V(j)       K(j+1) lands meanwhile
 *
 *   --stages=2: twice the buffers, half the barriers
 *
 *     cp.async:  Q, K(0), V(0)
 *     for each tile j, every thread:
 *
 *     wait_group 0, __syncthreads ---- K(j), V(j) have landed; K(j-1), V(j-1),
 *          |                           in the other buffers, are no longer read
 *          |---> cp.async K(j+1), V(j+1), commit
 *          '---> S = Q K(j)^T, softmax, O += P V(j)
 *
 * P stays in registers: the accumulator of S has the layout of the A operand of the
 * second product. The scores of keys beyond the last are minus infinity. */
#include "fa2_host.h"

enum { BM = 128, BN = 64, WARPS = 4, THREADS = 32 * WARPS, BLOCKS = BM / WARPS / 16 };

#define BUGS(BUG) \
	BUG(no_k_wait, CS301, "", "multiplies by K without waiting for its cp.async group") \
	BUG(v_wait_one, CS301, "", "waits for all groups but one, and that one holds V") \
	BUG(no_v_sync, CS301, "", "reads the parts of V that other threads copied with no barrier") \
	BUG(k_not_committed, CS301, "", "K is in no group, so wait_group 0 does not wait for it") \
	BUG(k_refill_early, CS106, "", \
		"refills K before the barrier after which it is no longer read") \
	BUG(v_refill_early, CS106, "", \
		"refills V before the barrier after which it is no longer read") \
	BUG(v_not_filled, CS901, "--n=40", \
		"skips the rows of V beyond the last key, and multiplies by them") \
	BUG(rows_unguarded, CS903, "--n=72", "copies rows of K beyond the end of the tensor") \
	BUG(shuffle_mask, CS407, "", \
		"the row maximum is shuffled with a mask that names one quad only") \
	BUG(diverged_barrier, CS403, "--n=68", \
		"the lanes whose row exists take one barrier, the others another") \
	BUG(wait_two_stages, CS301, "--stages=2", \
		"waits for all groups but the newest, as if there were one more stage") \
	BUG(same_buffer, CS106, "--stages=2", \
		"loads the next tile into the buffer of this one") \
	BUG(refill_before_sync, CS106, "--stages=2 --n=192", \
		"loads the next tile before the barrier after which its buffer is no longer read")

PLANT(BUGS)

template <int D, int layout> struct buffers {
	static constexpr int q = tile_size<D, layout>(BM), kv = tile_size<D, layout>(BN);
};

template <int D, int stages, int layout, class Bug>
__global__ void __launch_bounds__(THREADS, 2)
fa2_split_q(const problem p, float scale, Bug bug)
{
	using size = buffers<D, layout>;
	extern __shared__ __align__(128) __half smem[];
	__half *sq = smem, *sk = sq + size::q, *sv = sk + stages * size::kv;
	const offsets<D, layout, THREADS> own;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const cta_work<D, BM, BN> work(p);
	const int row = work.first + warp * BLOCKS * 16 + lane / 4; /* this lane's first */
	const size_t head = work.head;
	const int end = bug.is(rows_unguarded) ? 1 << 30 : p.n;
	float o[BLOCKS][D / 8][4] = {};
	running r[BLOCKS][2];

	load_rows<BM, D>(own, sq, p.q + head, work.first, p.n);
	load_rows<BN, D>(own, sk, p.k + head, 0, end);
	if (stages == 2)
		load_rows<BN, D>(own, sv, p.v + head, 0, p.n);
	if (!bug.is(k_not_committed))
		cp_async_commit();

	for (int j = 0; j < work.tiles; j++) {
		float s[BLOCKS][BN / 8][4] = {};

		if (stages == 2) {
			const int here = j % 2, there = bug.is(same_buffer) ? here : 1 - here;

			if (bug.is(refill_before_sync) && j + 1 < work.tiles)
				// @bug refill_before_sync CS106
				load_rows<BN, D>(own, smem + size::q + there * size::kv,
					p.k + head, (j + 1) * BN, p.n);
			if (bug.is(wait_two_stages))
				cp_async_wait<1>();
			else
				cp_async_wait<0>();
			__syncthreads();
			if (j + 1 < work.tiles) {
				if (!bug.is(refill_before_sync))
					// @bug same_buffer CS106
					load_rows<BN, D>(own, smem + size::q + there * size::kv,
						p.k + head, (j + 1) * BN, p.n);
				load_rows<BN, D>(own, smem + size::q + (2 + there) * size::kv,
					p.v + head, (j + 1) * BN, p.n);
			}
			cp_async_commit();
			sk = smem + size::q + here * size::kv;
			sv = sk + 2 * size::kv;
		} else {
			if (bug.is(v_refill_early))
				// @bug v_refill_early CS106
				load_rows<BN, D>(own, sv, p.v + head, j * BN, p.n);
			if (!bug.is(no_k_wait))
				cp_async_wait<0>();
			__syncthreads();
			if (!bug.is(v_refill_early))
				load_rows<BN, D>(own, sv, p.v + head, j * BN, p.n,
					!bug.is(v_not_filled));
			cp_async_commit();
		}

#pragma unroll
		for (int k = 0; k < D; k += 16) {
			uint32_t q[BLOCKS][4];

#pragma unroll
			for (int y = 0; y < BLOCKS; y++)
				// @bug k_not_committed CS301 @bug wait_two_stages CS301
				fetch_a(own, q[y], sq, (warp * BLOCKS + y) * 16, k);
			// @bug no_k_wait CS301 @bug k_refill_early CS106 @bug same_buffer CS106
			// @bug refill_before_sync CS106
			scores(own, s, q, sk, 0, k);
		}

		if (stages == 1) {
			if (bug.is(k_refill_early) && j + 1 < work.tiles)
				// @bug k_refill_early CS106
				load_rows<BN, D>(own, sk, p.k + head, (j + 1) * BN, p.n);
			if (bug.is(v_wait_one))
				cp_async_wait<1>();
			else
				cp_async_wait<0>();
			if (bug.is(diverged_barrier)) {
				if (row < p.n)
					named_barrier_sync(0, THREADS); // @bug diverged_barrier CS403
				else
					__syncthreads();
			} else if (!bug.is(no_v_sync)) {
				__syncthreads();
			}
			if (j + 1 < work.tiles && !bug.is(k_refill_early))
				// @bug rows_unguarded CS903
				load_rows<BN, D>(own, sk, p.k + head, (j + 1) * BN, end);
			if (!bug.is(k_not_committed))
				cp_async_commit();
		}

		mask_tile(s, work, j, row, lane % 4 * 2, p);
		// @bug shuffle_mask CS407
		softmax(s, o, r, scale, bug.is(shuffle_mask) ? 0xfu : ~0u);
		// @bug v_wait_one CS301 @bug no_v_sync CS301 @bug v_refill_early CS106
		// @bug v_not_filled CS901
		all_values(own, o, s, sv);
	}
	store(p, head, row, o, r);
}

struct split_q : fa2_program {
	static constexpr long default_n = 128;

	template <int D, int stages, int layout, class Bug>
	static void launch(const problem &p, int heads, Bug bug)
	{
		using size = buffers<D, layout>;
		const dim3 grid((p.n + BM - 1) / BM, heads);
		const int bytes = 2 * (size::q + 2 * stages * size::kv);

		launch_grid(fa2_split_q<D, stages, layout, Bug>, grid, THREADS, bytes, p,
			log2_scale(D), bug);
	}
};

int main(int argc, char **argv)
{
	return fa2_main<split_q, 64, 128>(argc, argv, "fa2_split_q",
		"FlashAttention-2 forward, Q split over the warps", __FILE__,
		bugs);
}
