/* fa2_split_kv: FlashAttention forward with the work split as in a plain matrix
 * product: over the rows of Q and over those of K and V. Slower than fa2_split_q,
 * and here to show why: no warp holds whole rows of the scores, so warps exchange
 * maxima and P through shared memory.
 *
 *   4 warps, 2 x 2       S: 64 rows x 64 keys     O: 64 rows x D columns
 *                        | 0 | 1 |                | 0 | 1 |
 *                        | 2 | 3 |                | 2 | 3 |
 *
 *   for each tile j, every thread (--stages=1):
 *
 *   wait_group 0, __syncthreads  K(j) has landed; V(j-1), P(j-1) are no longer read
 *        |---> cp.async V(j), commit
 *        V
 *   S = Q K^T; each row's maximum over this warp's keys ---> `most` in shared
 *   __syncthreads                `most` is complete; K(j) is no longer read
 *        |---> cp.async K(j+1), commit
 *        V
 *   maximum of both warps; P = powers of S ---> shared
 *   wait_group 1, __syncthreads  V(j) has landed, P is complete; `most` is read
 *        V
 *   O += P V, this warp's columns
 *
 *   --stages=2: after the first barrier, K(j+1) and V(j+1) are copied to other
 *   buffers, and only that barrier has a wait_group before it.
 *
 * At the end the two warps of a row add their sums in the same way. */
#include "fa2_host.h"

enum { BM = 64, BN = 64, ACROSS = 2, WARPS = 4, THREADS = 32 * WARPS,
	BLOCKS = BM / (WARPS / ACROSS) / 16, KEYS = BN / ACROSS };

#define BUGS(BUG) \
	BUG(most_unsynced, CS102, "", "reads the other warp's maxima with no barrier") \
	BUG(p_unsynced, CS102, "", \
		"multiplies by the other warp's part of P with no barrier") \
	BUG(sums_unsynced, CS102, "", "adds the other warp's sums with no barrier") \
	BUG(sums_over_p, CS102, "", "writes the sums over P while warps may still read P") \
	BUG(v_wait_none, CS301, "", "counts K's group as V's: waits for one group fewer") \
	BUG(k_refill_early, CS106, "", "loads the next K before the barrier after the product") \
	BUG(no_k_wait, CS301, "--stages=2", "no wait_group before the tile is read") \
	BUG(no_k_sync, CS301, "", "no barrier before the parts of K that others copied are read") \
	BUG(half_barrier, CS102, "", \
		"only one warp of a row executes a barrier, which the other's next barrier completes")

PLANT(BUGS)

/* The layout of shared memory, in halves from its start */
template <int D, int stages, int layout> struct places {
	static constexpr int q_size = tile_size<D, layout>(BM), kv_size = tile_size<D, layout>(BN);
	static constexpr int q = 0, k = q + q_size, v = k + stages * kv_size,
		p = v + stages * kv_size, most = p + tile_size<BN, layout>(BM),
		end = most + 2 * ACROSS * BM;
};

template <int D, int stages, int layout, class Bug>
__global__ void __launch_bounds__(THREADS, D == 64 ? 3 : 2)
fa2_split_kv(const problem p, float scale, Bug bug)
{
	using at = places<D, stages, layout>;
	constexpr int columns = D / ACROSS; /* of O, this warp's */
	extern __shared__ __align__(128) __half smem[];
	__half *sp = smem + at::p;
	float *most = (float *)(smem + at::most); /* [ACROSS][BM] */
	const offsets<D, layout, THREADS> own;
	const offsets<BN, layout, THREADS> of_p;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % ACROSS;
	const int high = warp / ACROSS * BLOCKS * 16; /* this warp's first row in the tile */
	const int mine = high + lane / 4; /* this lane's */
	const cta_work<D, BM, BN> work(p);
	const size_t head = work.head;
	float o[BLOCKS][columns / 8][4] = {};
	running r[BLOCKS][2];

	const auto bring = [&](int place, const __half *from, int j) {
		if (j < work.tiles)
			load_rows<BN, D>(own, smem + place + j % stages * at::kv_size,
				from + head, j * BN, p.n);
	};

	load_rows<BM, D>(own, smem, p.q + head, work.first, p.n);
	bring(at::k, p.k, 0);
	if (stages == 2)
		bring(at::v, p.v, 0);
	cp_async_commit();

	for (int j = 0; j < work.tiles; j++) {
		const __half *k = smem + at::k + j % stages * at::kv_size;
		const __half *v = smem + at::v + j % stages * at::kv_size;
		float s[BLOCKS][KEYS / 8][4] = {};

		if (!bug.is(no_k_wait))
			cp_async_wait<0>();
		if (!bug.is(no_k_sync))
			__syncthreads();
		if (stages == 2)
			bring(at::k, p.k, j + 1);
		bring(at::v, p.v, j + stages - 1);
		cp_async_commit();

#pragma unroll
		for (int x = 0; x < D; x += 16) {
			uint32_t q[BLOCKS][4];

#pragma unroll
			for (int y = 0; y < BLOCKS; y++)
				// @bug no_k_wait CS301 @bug no_k_sync CS301
				fetch_a(own, q[y], smem, high + y * 16, x);
			// @bug k_refill_early CS106
			scores(own, s, q, k, part * KEYS, x);
		}
		mask_tile(s, work, j, work.first + mine, part * KEYS + lane % 4 * 2, p);
		if (stages == 1 && bug.is(k_refill_early))
			bring(at::k, p.k, j + 1); // @bug k_refill_early CS106

#pragma unroll
		for (int y = 0; y < BLOCKS; y++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				const float m = quad_max(row_max(s[y], h, -INFINITY));

				if (lane % 4 == 0)
					// @bug most_unsynced CS102 @bug half_barrier CS102
					most[part * BM + mine + y * 16 + h * 8] = m;
			}
		if (bug.is(half_barrier) ? part == 0 : !bug.is(most_unsynced))
			__syncthreads();
		if (stages == 1) {
			if (!bug.is(k_refill_early))
				bring(at::k, p.k, j + 1);
			cp_async_commit();
		}

#pragma unroll
		for (int y = 0; y < BLOCKS; y++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				const int row = mine + y * 16 + h * 8;
				float m = r[y][h].most;

#pragma unroll
				for (int i = 0; i < ACROSS; i++)
					// @bug most_unsynced CS102 @bug half_barrier CS102
					m = fmaxf(m, most[i * BM + row]);
				shrink_row(o[y], h, raise_max(r[y][h], m, scale));
				powers(s[y], h, r[y][h], scale);
				// @bug p_unsynced CS102
				lay_out(of_p, sp, s[y], h, high + y * 16, part * KEYS);
			}

		if (stages == 1 && !bug.is(v_wait_none))
			cp_async_wait<1>();
		else if (stages == 1)
			cp_async_wait<2>();
		if (!bug.is(p_unsynced))
			__syncthreads();
#pragma unroll
		for (int x = 0; x < BN; x += 16) {
			uint32_t a[BLOCKS][4];

#pragma unroll
			for (int y = 0; y < BLOCKS; y++)
				// @bug p_unsynced CS102 @bug sums_over_p CS102
				fetch_a(of_p, a[y], sp, high + y * 16, x);
			// @bug v_wait_none CS301
			values(own, o, a, v, x, part * columns);
		}
	}

	/* The sums of a row, over its lanes and then over its warps. A barrier came after the
	 * last read of the maxima. */
	float *sums = bug.is(sums_over_p) ? (float *)sp : most;
#pragma unroll
	for (int y = 0; y < BLOCKS; y++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const float sum = quad_sum(r[y][h].sum);

			if (lane % 4 == 0)
				// @bug sums_unsynced CS102 @bug sums_over_p CS102
				sums[part * BM + mine + y * 16 + h * 8] = sum;
		}
	if (!bug.is(sums_unsynced))
		__syncthreads();
#pragma unroll
	for (int y = 0; y < BLOCKS; y++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int row = mine + y * 16 + h * 8;
			float sum = 0;

#pragma unroll
			for (int i = 0; i < ACROSS; i++)
				sum += sums[i * BM + row]; // @bug sums_unsynced CS102
			store_row(p.o + head + (ptrdiff_t)(work.first + row) * D + part * columns, o[y], h,
				1 / sum, work.first + row < p.n);
		}
}

struct split_kv : fa2_program {
	static constexpr long default_n = 128;

	template <int D, int stages, int layout, class Bug>
	static void launch(const problem &p, int heads, Bug bug)
	{
		const dim3 grid((p.n + BM - 1) / BM, heads);

		launch_grid(fa2_split_kv<D, stages, layout, Bug>, grid, THREADS,
			2 * places<D, stages, layout>::end, p, log2_scale(D), bug);
	}
};

int main(int argc, char **argv)
{
	return fa2_main<split_kv, 64, 128>(argc, argv, "fa2_split_kv",
		"FlashAttention forward, Q, K and V split over the warps", __FILE__,
		bugs);
}
