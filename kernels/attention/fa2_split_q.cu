/* fa2_split_q: FlashAttention-2, forward. O = softmax(Q K^T / sqrt(D)) V for
 * each head, without ever holding a whole row of the scores.
 *
 *   "split Q": a CTA owns BM rows of Q, each warp 16 of them, and all warps
 *   walk together over the tiles of K and V. Both have one buffer:
 *
 *   cp.async:  Q, K(0)
 *   for each tile j, every thread:
 *
 *     wait_group 0, __syncthreads ---- K(j) is there; all are done with V(j-1)
 *          |---> cp.async V(j), commit
 *          '---> S = Q K(j)^T               V(j) lands meanwhile
 *     wait_group 0, __syncthreads ---- V(j) is there; all are done with K(j)
 *          |---> cp.async K(j+1), commit
 *          '---> softmax, O += P V(j)       K(j+1) lands meanwhile
 *
 *   at the end each warp lays its rows of O over its own rows of Q:
 *     st.shared, __syncwarp ---------- the lanes read each other's halves
 *     16-byte stores
 *
 * Tensors are [batch * head][row][D] halves. P never leaves the registers: the
 * accumulator of S has the layout of the A operand of the second product. Keys
 * beyond the last count as minus infinity, and their V is filled with zeros:
 * 0 * garbage could be NaN. */
#include "../common/harness.h"
#include "../common/ptx.cuh"

enum {
	D = 64, BM = 128, BN = 64,
	WARPS = BM / 16, THREADS = 32 * WARPS,
	SMEM = (BM + 2 * BN) * D * 2,
};

#define BUGS(BUG) \
	BUG(no_k_wait, CS301, "", "multiplies by K without waiting for its cp.async group") \
	BUG(v_wait_one, CS301, "", "waits for all groups but one, and that one holds V") \
	BUG(no_v_sync, CS301, "", "reads the parts of V that other threads copied with no barrier") \
	BUG(k_not_committed, CS301, "", "K is in no group, so wait_group 0 does not wait for it") \
	BUG(k_refill_early, CS106, "", \
		"refills K before the barrier that says all are done with it") \
	BUG(v_refill_early, CS106, "", \
		"refills V before the barrier that says all are done with it") \
	BUG(no_syncwarp, CS103, "", \
		"lanes read what other lanes of the warp stored, with no __syncwarp") \
	BUG(o_over_k, CS102, "", "lays O over K, which other warps still read") \
	BUG(v_not_filled, CS901, "--n=40", \
		"skips the rows of V beyond the last key, and multiplies by them") \
	BUG(rows_unguarded, CS903, "--n=72", "copies rows of K beyond the end of the tensor") \
	BUG(shuffle_mask, CS407, "", \
		"the row maximum is shuffled with a mask that names one quad only") \
	BUG(diverged_barrier, CS403, "--n=68", \
		"the lanes whose row exists take one barrier, the others another")

PLANT(BUGS)

struct problem {
	const __half *q, *k, *v;
	__half *o;
	int n;
	bool causal;
};

/* Where the 16-byte chunk that holds column `col` of row `row` stands: the
 * eight rows of an ldmatrix hit different banks. */
DEVICE __half *swizzled(__half *tile, int row, int col)
{
	return tile + row * D + ((col / 8) ^ (row % 8)) * 8;
}

/* `high` rows from `row` on; zeros where there are none. */
DEVICE void load(__half *tile, const __half *from, int high, int row, int n, bool fill = true)
{
	for (int i = threadIdx.x; i < high * (D / 8); i += THREADS) {
		const int y = i / (D / 8), x = i % (D / 8) * 8;
		const bool in = row + y < n;
		const __half *at = in ? from + (size_t)(row + y) * D + x : from;

		if (in || fill)
			cp_async(swizzled(tile, y, x), at, in ? 16 : 0);
	}
}

/* Over the four lanes that hold one row */
DEVICE float quad_max(float x, uint32_t mask)
{
	x = fmaxf(x, __shfl_xor_sync(mask, x, 1));
	return fmaxf(x, __shfl_xor_sync(mask, x, 2));
}

DEVICE float quad_sum(float x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}

template <class Bug>
__global__ void __launch_bounds__(THREADS)
fa2_split_q(const problem p, Bug bug)
{
	extern __shared__ __align__(128) __half smem[];
	__half *sq = smem, *sk = sq + BM * D, *sv = sk + BN * D;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int row = blockIdx.x * BM + warp * 16 + lane / 4; /* this lane's: row, row + 8 */
	const size_t head = (size_t)blockIdx.y * p.n * D;
	const int keys = p.causal ? min(p.n, (int)(blockIdx.x + 1) * BM) : p.n;
	const int tiles = (keys + BN - 1) / BN;
	const float scale = 1.44269504f * 0.125f; /* log2(e) / sqrt(D) */
	const int end = bug.is(rows_unguarded) ? 1 << 30 : p.n;
	uint32_t fq[D / 16][4];
	float o[D / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, sum[2] = {};

	load(sq, p.q + head, BM, blockIdx.x * BM, p.n);
	load(sk, p.k + head, BN, 0, end);
	if (!bug.is(k_not_committed))
		cp_async_commit();

	for (int j = 0; j < tiles; j++) {
		float s[BN / 8][4] = {};

		if (bug.is(v_refill_early))
			load(sv, p.v + head, BN, j * BN, p.n); // @bug v_refill_early CS106
		if (!bug.is(no_k_wait))
			cp_async_wait<0>();
		__syncthreads();
		if (!bug.is(v_refill_early))
			load(sv, p.v + head, BN, j * BN, p.n, !bug.is(v_not_filled));
		cp_async_commit();

		if (j == 0)
#pragma unroll
			for (int k = 0; k < D; k += 16)
				// @bug k_not_committed CS301
				ldmatrix(fq[k / 16], swizzled(sq, warp * 16 + lane % 16, k + lane / 16 * 8));
#pragma unroll
		for (int k = 0; k < D; k += 16)
#pragma unroll
			for (int x = 0; x < BN; x += 16) {
				uint32_t f[4];

				// @bug no_k_wait CS301 @bug k_refill_early CS106
				ldmatrix(f, swizzled(sk, x + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8));
				mma(s[x / 8], fq[k / 16], f[0], f[1]);
				mma(s[x / 8 + 1], fq[k / 16], f[2], f[3]);
			}

		if (bug.is(k_refill_early) && j + 1 < tiles)
			load(sk, p.k + head, BN, (j + 1) * BN, p.n); // @bug k_refill_early CS106
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
		if (j + 1 < tiles && !bug.is(k_refill_early))
			load(sk, p.k + head, BN, (j + 1) * BN, end); // @bug rows_unguarded CS903
		if (!bug.is(k_not_committed))
			cp_async_commit();

		/* Scores in units of log2, what must not be seen at minus infinity */
		const bool edge = (j + 1) * BN > p.n || (p.causal && (j + 1) * BN > (int)blockIdx.x * BM);
#pragma unroll
		for (int x = 0; x < BN / 8; x++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const int key = j * BN + x * 8 + lane % 4 * 2 + i % 2;

				s[x][i] *= scale;
				if (edge && (key >= p.n || (p.causal && key > row + i / 2 * 8)))
					s[x][i] = -INFINITY;
			}
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float top = most[h];

#pragma unroll
			for (int x = 0; x < BN / 8; x++)
				top = fmaxf(top, fmaxf(s[x][2 * h], s[x][2 * h + 1]));
			top = quad_max(top, bug.is(shuffle_mask) ? 0xfu : ~0u); // @bug shuffle_mask CS407

			/* A row may see no key at all in this tile */
			const float base = top == -INFINITY ? 0 : top;
			const float shrink = exp2f(most[h] - base);

			most[h] = top;
			sum[h] *= shrink;
#pragma unroll
			for (int x = 0; x < D / 8; x++) {
				o[x][2 * h] *= shrink;
				o[x][2 * h + 1] *= shrink;
			}
#pragma unroll
			for (int x = 0; x < BN / 8; x++) {
				s[x][2 * h] = exp2f(s[x][2 * h] - base);
				s[x][2 * h + 1] = exp2f(s[x][2 * h + 1] - base);
				sum[h] += s[x][2 * h] + s[x][2 * h + 1];
			}
		}

#pragma unroll
		for (int k = 0; k < BN; k += 16) {
			const uint32_t fp[4] = {
				pack_half(s[k / 8][0], s[k / 8][1]), pack_half(s[k / 8][2], s[k / 8][3]),
				pack_half(s[k / 8 + 1][0], s[k / 8 + 1][1]),
				pack_half(s[k / 8 + 1][2], s[k / 8 + 1][3]),
			};
#pragma unroll
			for (int x = 0; x < D; x += 16) {
				uint32_t f[4];

				// @bug v_wait_one CS301 @bug no_v_sync CS301 @bug v_refill_early CS106
				// @bug v_not_filled CS901
				ldmatrix_trans(f, swizzled(sv, k + lane % 16, x + lane / 16 * 8));
				mma(o[x / 8], fp, f[0], f[1]);
				mma(o[x / 8 + 1], fp, f[2], f[3]);
			}
		}
	}

	__half *so = (bug.is(o_over_k) ? sk : sq) + warp * 16 * D;
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const float norm = 1 / quad_sum(sum[h]);

#pragma unroll
		for (int x = 0; x < D; x += 8) {
			__half *at = swizzled(so, lane / 4 + 8 * h, x) + lane % 4 * 2;

			// @bug no_syncwarp CS103 @bug o_over_k CS102
			*(uint32_t *)at = pack_half(o[x / 8][2 * h] * norm, o[x / 8][2 * h + 1] * norm);
		}
	}
	if (!bug.is(no_syncwarp))
		__syncwarp();
	for (int i = lane; i < 16 * (D / 8); i += 32) {
		const int y = i / (D / 8), x = i % (D / 8) * 8, r = blockIdx.x * BM + warp * 16 + y;

		if (r < p.n)
			// @bug no_syncwarp CS103
			*(uint4 *)(p.o + head + (size_t)r * D + x) = *(const uint4 *)swizzled(so, y, x);
	}
}

template <class Bug> static void launch(const problem &p, int heads, Bug bug)
{
	const dim3 grid((p.n + BM - 1) / BM, heads);

	CUDA(cudaFuncSetAttribute(fa2_split_q<Bug>, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM));
	fa2_split_q<Bug><<<grid, THREADS, SMEM>>>(p, bug);
	CUDA(cudaGetLastError());
}

/* Every row of a small problem, else some hundreds of them. */
static void check(struct checker &c, const problem &p, int heads, const __half *q,
	const __half *k, const __half *v)
{
	const uint64_t rows = (uint64_t)heads * p.n;
	const uint64_t step = rows * p.n <= 1 << 18 ? 1 : rows / 251 | 1;
	__half *got = (__half *)malloc(rows * D * sizeof *got);
	double *weight = (double *)malloc(p.n * sizeof *weight);

	CUDA(cudaMemcpy(got, p.o, rows * D * sizeof *got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < rows; i += step) {
		const uint64_t head = i / p.n * p.n;
		const int keys = p.causal ? (int)(i % p.n) + 1 : p.n;
		double want[D] = {}, sum = 0;

		for (int j = 0; j < keys; j++) {
			double s = 0;

			for (int d = 0; d < D; d++)
				s += __half2float(q[i * D + d]) * __half2float(k[(head + j) * D + d]);
			sum += weight[j] = exp(s / 8);
		}
		for (int j = 0; j < keys; j++)
			for (int d = 0; d < D; d++)
				want[d] += weight[j] / sum * __half2float(v[(head + j) * D + d]);
		for (int d = 0; d < D; d++)
			checker_see(c, i * D + d, __half2float(got[i * D + d]), want[d], 4e-3);
	}
	free(weight);
	free(got);
}

int main(int argc, char **argv)
{
	long b = 1, h = 1, n = 128, causal = 0;
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head"},
		{"causal", &causal, "1: row i sees the keys up to i"},
	};
	const struct program prog = {"fa2_split_q", "FlashAttention-2 forward, split Q, D = 64",
		__FILE__, options, 4, bugs, sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, prog);
	struct checker c = {};

	harness_require(b > 0 && h > 0 && n > 0 && b * h < 65536, prog, "sizes must be positive");

	const uint64_t size = (uint64_t)b * h * n * D;
	__half *q = harness_halves(1, size), *k = harness_halves(2, size), *v = harness_halves(3, size);
	__half *dq = harness_device(q, size), *dk = harness_device(k, size);
	__half *dv = harness_device(v, size);
	__half *out = harness_device<__half>(NULL, size);
	const problem p = {dq, dk, dv, out, (int)n, causal != 0};

	if (r.bug >= 0)
		launch(p, b * h, planted_bug{r.bug});
	else
		launch(p, b * h, no_bug{});
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		check(c, p, b * h, q, k, v);
	if (r.bench) {
		const double s = harness_time([&] { launch(p, b * h, no_bug{}); });

		printf("fa2_split_q: b %ld, h %ld, n %ld%s: %.3f ms, %.1f TFLOP/s\n", b, h, n,
			causal ? ", causal" : "", s * 1e3,
			4e-12 * size * n / (causal ? 2 : 1) / s);
	}
	cudaFree(dq);
	cudaFree(dk);
	cudaFree(dv);
	cudaFree(out);
	free(q);
	free(k);
	free(v);
	return r.check ? checker_verdict(c, prog) : 0;
}
