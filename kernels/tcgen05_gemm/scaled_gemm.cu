/* scaled_gemm: C = A * B^T of block-scaled numbers on Blackwell's tensor cores: mxfp8 (e4m3, a
 * factor of ue8m0 for 32 columns) or nvfp4 (e2m1, a factor of ue4m3 for 16 columns); sums of float
 * in tensor memory, bfloat16 out. A CTA (--group=1) or a pair (--group=2) multiplies 128 or 256
 * rows of C by 128 columns. tcgen05_gemm.cu explains the roles of the warps and the barriers.
 *
 * TMA brings the factors to shared memory with the operands that they scale; tcgen05.cp copies them
 * to tensor memory, where the MMA reads them:
 *
 *   producer (warp 4)                    MMA (warp 5 of the leader, all lanes wait)
 *
 *   wait empty[slot] <------------.      wait full[slot] <---.
 *   A, B, factors of A and of B   |      one lane:           |
 *     '- bytes on the leader's ---|------------ full[slot] --'
 *                                 |        cp factors -> columns of the slot
 *                                 |        4 x MMA           issued behind cp: no wait
 *                                 '------- commit -> empty[slot]
 *
 * Each slot of the ring has columns of its own for its factors: they are free when the slot is.
 *
 *   columns  0        128      256
 *            | sums 0 | sums 1 | A's and B's factors of slot 0 | slot 1 | ...
 *
 * In a pair a CTA needs the factors of its own 128 rows of A, and of all 128 rows of B.
 *
 * A is M x K, B is N x K, row-major; C is M x N. K is a multiple of 32, N of 8. The factors are in
 * blocks of 128 rows and 4 columns (tcgen05.cuh), block after block along K. */
#include "../common/channel.cuh"
#include "../common/launch.h"
#include "../common/product.h"
#include "../common/tcgen05.cuh"
#include "../common/tensor_map.h"
#include "../common/tile_order.cuh"

#include <cuda_fp4.h>
#include <cuda_fp8.h>

using bf16 = __nv_bfloat16;

enum {
	BM = 128, BN = 128,        /* of C; BM rows for each CTA of the group */
	ROW = 128,                 /* bytes of a row of A or B in a slot */
	A_BYTES = BM * ROW,
	SCALE_BYTES = 512, SCALE_COLUMNS = 4, /* of 128 rows and 4 blocks */
	COLUMNS = 512,             /* of tensor memory */
	CHUNK = 64, STAGING = 32 * CHUNK,
	EPILOGUE_WARPS = 4, PRODUCER = 4, MMA = 5, THREADS = 6 * 32,
	BAND = 16,
};

/* What distinguishes the formats. `scales`: blocks of 512 bytes for a slot, of A and of B each */
struct mxfp8 {
	static const int row_elements = 128, block = 32, scales = 1;

	template <int N>
	DEVICE void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t scales_a,
		uint32_t scales_b, int i, bool accumulate)
	{
		// @bug scales_missing CS612 @bug scales_after_mma CS612 @bug scales_over_sums CS605
		// @bug commit_by_another CS604 @bug release_without_scales CS609
		// @bug acc_release_before_wait CS602
		mma_mxf8<N>(d, a, b, mma_e4m3(N * BM, BN, i), scales_a, scales_b, accumulate);
	}
};

struct nvfp4 {
	static const int row_elements = 256, block = 16, scales = 4;

	template <int N>
	DEVICE void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t scales_a,
		uint32_t scales_b, int i, bool accumulate)
	{
		mma_nvf4<N>(d, a, b, mma_e2m1(N * BM, BN), scales_a + i * SCALE_COLUMNS,
			scales_b + i * SCALE_COLUMNS, accumulate);
	}
};

/* Sizes of a CTA in a group of N */
template <int N, class F> struct shape {
	static const int b_rows = BN / N, slots = N == 1 ? 5 : 6;
	static const int b_at = A_BYTES, scales_a_at = b_at + b_rows * ROW;
	static const int scales_b_at = scales_a_at + F::scales * SCALE_BYTES;
	static const int slot_bytes = scales_b_at + F::scales * SCALE_BYTES;
	static const int smem = slots * slot_bytes + EPILOGUE_WARPS * 2 * STAGING * 2 + 1024;
	static const int scale_columns = F::scales * SCALE_COLUMNS; /* of a slot, of A and B each */
};

#define SINGLE "--group=1 --m=128 --n=384 --ctas=1"
#define BUGS(BUG) \
	BUG(scales_not_waited, CS610, SINGLE, "copies the factors before their bytes have landed") \
	BUG(scales_not_expected, CS211, SINGLE, "the bytes of the factors are not expected") \
	BUG(scales_on_own_barrier, CS611, "", \
		"the factors of the odd CTA count on its own barrier, so the leader does not wait for them") \
	BUG(scales_missing, CS612, SINGLE, "the factors of B are not copied to tensor memory") \
	BUG(scales_after_mma, CS612, SINGLE, "the factors are copied after the first MMA") \
	BUG(scales_by_another, CS609, SINGLE, \
		"one lane copies the factors and another one commits, so nothing waits for the copies") \
	BUG(scales_over_sums, CS605, SINGLE, "the factors of the first slot overlap the second sums") \
	BUG(commit_by_another, CS604, SINGLE, \
		"the commit comes from another lane than the MMAs, so it covers none of them") \
	BUG(release_without_scales, CS609, SINGLE, \
		"the slot is released by a commit before the copy of its factors") \
	BUG(alloc_sums_only, CS620, SINGLE, "allocates no columns for the factors") \
	BUG(acc_release_before_wait, CS602, SINGLE, "acc.empty is signalled before wait::ld") \
	BUG(peer_not_counted, CS209, "--m=256 --n=384 --ctas=2", \
		"acc.empty counts the leader's warps, those of the pair arrive") \
	BUG(no_tail, CS221, "", "the odd CTA may exit before the last commit arrives on it")

PLANT(BUGS)

struct tensors {
	CUtensorMap a, b, scales_a, scales_b, c;
};

struct sizes {
	int k; /* in bytes of a row */
	int high, wide; /* C in tiles of the group */
};

template <int N, class F> struct shared {
	channel<shape<N, F>::slots> ring;
	channel<2> acc;
	uint32_t tmem;
};

/* The tiles of this group: every so many as there are groups */
#define FOR_TILES(tile, s) \
	for (int tile = blockIdx.x / N; tile < (s).high * (s).wide; tile += gridDim.x / N)

/* The columns of a slot's factors; those of B follow those of A. */
template <int N, class F, class Bug> DEVICE uint32_t scales_of(uint32_t tmem, int slot, Bug bug)
{
	return tmem + (bug.is(scales_over_sums) ? BN : 2 * BN) + slot * 2 * shape<N, F>::scale_columns;
}

template <int N, class F, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, unsigned char *slots, shared<N, F> &sh,
	Bug bug)
{
	using size = shape<N, F>;
	const uint32_t rank = cluster_rank();
	const int scale_bytes = 2 * F::scales * SCALE_BYTES;
	int bytes = N * size::slot_bytes;
	cursor<size::slots> at;

	if (bug.is(scales_not_expected))
		bytes -= N * scale_bytes;
	if (bug.is(scales_on_own_barrier))
		bytes -= scale_bytes;
	FOR_TILES(tile, s) {
		const tile_place c = place_in_band(tile, s.high, s.wide, BAND);
		const int row = c.row * N + rank; /* in tiles of 128 rows */

		for (int k = 0, i = 0; k < s.k; k += ROW, i++, at.next()) {
			unsigned char *slot = slots + at.slot * size::slot_bytes;
			const uint32_t full = smem_of(&sh.ring.full[at.slot], 0);
			const uint32_t scales = bug.is(scales_on_own_barrier)
				? smem_of(&sh.ring.full[at.slot], rank) : full;

			channel_acquire_cluster(sh.ring, at);
			if (rank == 0)
				channel_expect(sh.ring, at, bytes);
			else if (bug.is(scales_on_own_barrier))
				channel_expect(sh.ring, at, scale_bytes);
			// @bug release_without_scales CS609
			group_load<N>(slot, &t.a, k, row * BM, full);
			// @bug scales_not_expected CS211
			group_load<N>(slot + size::b_at, &t.b, k, c.col * BN + rank * size::b_rows, full);
			// @bug scales_not_waited CS610 @bug scales_on_own_barrier CS611
			// @bug scales_by_another CS609
			group_load<N>(slot + size::scales_a_at, &t.scales_a, i * F::scales * SCALE_BYTES / 8,
				row, scales);
			// @bug scales_not_expected CS211
			group_load<N>(slot + size::scales_b_at, &t.scales_b, i * F::scales * SCALE_BYTES / 8,
				c.col, scales);
		}
	}
	if (bug.is(no_tail))
		return;
#pragma unroll 1
	for (int i = 0; i < size::slots; i++, at.next())
		channel_acquire_cluster(sh.ring, at); // the last commits
}

/* Signals the barrier in all CTAs of the group when what this thread has issued is complete. */
template <int N> DEVICE void commit_to_group(uint64_t *bar)
{
	if constexpr (N == 1)
		tcgen05_commit<N>(bar);
	else
		// @bug no_tail CS221
		tcgen05_commit_multicast<N>(bar, 3);
}

/* The factors of a slot to tensor memory */
template <int N, class F, class Bug>
DEVICE void copy_scales(uint32_t to, const unsigned char *slot, Bug bug)
{
	const uint64_t a = tcgen05_scales(slot + shape<N, F>::scales_a_at);
	const uint64_t b = tcgen05_scales(slot + shape<N, F>::scales_b_at);

#pragma unroll
	for (int i = 0; i < F::scales; i++) {
		// @bug scales_not_waited CS610 @bug scales_on_own_barrier CS611
		// @bug scales_by_another CS609 @bug scales_over_sums CS605 @bug alloc_sums_only CS620
		tmem_copy_scales<N>(to + i * SCALE_COLUMNS, a + i * (SCALE_BYTES >> 4));
		if (!bug.is(scales_missing))
			tmem_copy_scales<N>(to + (F::scales + i) * SCALE_COLUMNS, b + i * (SCALE_BYTES >> 4));
	}
}

/* Four MMAs: 32 bytes of each row at a time */
template <int N, class F>
DEVICE void multiply_slot(uint32_t d, const unsigned char *slot, uint32_t scales, int from, int to,
	bool accumulate)
{
	const uint64_t a = tcgen05_tile(slot), b = tcgen05_tile(slot + shape<N, F>::b_at);

#pragma unroll
	for (int i = 0; i < ROW / 32; i++)
		if (i >= from && i < to)
			F::template multiply<N>(d, a + 2 * i, b + 2 * i, scales,
				scales + shape<N, F>::scale_columns, i, accumulate || i > 0);
}

/* Called by the MMA warp of the leader. All lanes wait, one issues. */
template <int N, class F, class Bug>
DEVICE void multiply(const sizes &s, const unsigned char *slots, shared<N, F> &sh, uint32_t tmem,
	Bug bug)
{
	const int lane = threadIdx.x % 32;
	cursor<shape<N, F>::slots> at;
	cursor<2> out;

	FOR_TILES(tile, s) {
		const uint32_t d = tmem + out.slot * BN;

		channel_acquire_cluster(sh.acc, out);
		for (int k = 0; k < s.k; k += ROW, at.next()) {
			const unsigned char *slot = slots + at.slot * shape<N, F>::slot_bytes;
			const uint32_t scales = scales_of<N, F>(tmem, at.slot, bug);
			const int first = bug.is(scales_after_mma) ? 1 : 0; /* MMAs before the copy */

			if (bug.is(scales_not_waited) && elect_one())
				copy_scales<N, F>(scales, slot, bug);
			channel_wait(sh.ring, at);
			tcgen05_fence_after();
			if (bug.is(scales_by_another) && lane == 31)
				copy_scales<N, F>(scales, slot, bug);
			__syncwarp(); // all lanes have waited
			if (elect_one()) {
				if (bug.is(release_without_scales))
					commit_to_group<N>(&sh.ring.empty[at.slot]);
				multiply_slot<N, F>(d, slot, scales, 0, first, k > 0);
				if (!bug.is(scales_not_waited) && !bug.is(scales_by_another))
					copy_scales<N, F>(scales, slot, bug);
				multiply_slot<N, F>(d, slot, scales, first, ROW / 32, k > 0);
				if (!bug.is(release_without_scales))
					commit_to_group<N>(&sh.ring.empty[at.slot]);
			}
		}
		if (bug.is(commit_by_another) ? lane == 31 : elect_one())
			commit_to_group<N>(&sh.acc.full[out.slot]);
		out.next();
	}
}

/* Called by the epilogue warps, each for its 32 rows */
template <int N, class F, class Bug>
DEVICE void store(const tensors &t, const sizes &s, bf16 *staging, shared<N, F> &sh, uint32_t tmem,
	Bug bug)
{
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
	const uint32_t window = (uint32_t)warp * 32 << 16;
	cursor<2> in;

	staging += warp * 2 * STAGING;
	FOR_TILES(tile, s) {
		const tile_place c = place_in_band(tile, s.high, s.wide, BAND);
		const int row = (c.row * N + cluster_rank()) * BM + warp * 32;
		float sum[CHUNK];

		channel_wait_cluster(sh.acc, in);
		tcgen05_fence_after();
#pragma unroll 1
		for (int j = 0; j < BN / CHUNK; j++) {
			const bool last = j == BN / CHUNK - 1;
			bf16 *buffer = staging + j % 2 * STAGING;

			// @bug commit_by_another CS604 @bug acc_release_before_wait CS602
			tmem_load(sum, tmem + window + in.slot * BN + j * CHUNK);
			if (bug.is(acc_release_before_wait) && last && lane == 0)
				channel_release_to(sh.acc, in, 0);
			tmem_wait_loads(sum);
			if (last && !bug.is(acc_release_before_wait)) {
				tcgen05_fence_before();
				__syncwarp(); // all lanes have loaded
				if (lane == 0)
					// @bug peer_not_counted CS209
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

template <int N, class F, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
scaled_gemm(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ shared<N, F> sh;
	unsigned char *slots = first_tile<unsigned char>(smem);
	bf16 *staging = (bf16 *)(slots + shape<N, F>::slots * shape<N, F>::slot_bytes);
	const int warp = threadIdx.x / 32, columns = bug.is(alloc_sums_only) ? 2 * BN : COLUMNS;

	if (threadIdx.x == 0) {
		channel_init(sh.ring, 1, 1);
		channel_init(sh.acc, 1, EPILOGUE_WARPS * (bug.is(peer_not_counted) ? 1 : N));
	}
	channels_publish();
	if (warp == MMA) {
		tmem_alloc<N>(&sh.tmem, columns);
		tmem_relinquish<N>();
	}
	tcgen05_fence_before();
	__syncthreads();
	tcgen05_fence_after();

	const uint32_t tmem = sh.tmem;

	if (warp < EPILOGUE_WARPS)
		store<N, F>(t, s, staging, sh, tmem, bug);
	else if (warp == PRODUCER && elect_one())
		produce<N, F>(t, s, slots, sh, bug);
	else if (warp == MMA && cluster_rank() == 0)
		multiply<N, F>(s, slots, sh, tmem, bug);
	tcgen05_fence_before();
	cluster_sync();
	tcgen05_fence_after();
	if (warp == MMA) {
		__syncwarp(); // converged, for .aligned
		tmem_dealloc<N>(tmem, columns);
	}
}

/* ---- host ---- */

static float value_of(__nv_fp8_storage_t code)
{
	__nv_fp8_e4m3 x;

	x.__x = code;
	return (float)x;
}

/* A block-scaled matrix as the kernel gets it, and its values */
struct matrix {
	long rows, cols, row_bytes, wide; /* wide: blocks of 4 factors along a row */
	unsigned char *codes, *factors;   /* on the device */
	float *values;

	matrix(uint32_t seed, long rows, long cols, bool fp4)
		: rows(rows), cols(cols), row_bytes(fp4 ? cols / 2 : cols),
		wide((cols + (fp4 ? 64 : 128) - 1) / (fp4 ? 64 : 128)),
		values((float *)malloc(rows * cols * sizeof *values))
	{
		const size_t ncodes = rows * row_bytes, nfactors = (rows + 127) / 128 * wide * SCALE_BYTES;
		unsigned char *code = (unsigned char *)calloc(ncodes, 1);
		unsigned char *factor = (unsigned char *)calloc(nfactors, 1);

		for (long i = 0; i < rows; i++)
			for (long j = 0; j < cols; j++)
				values[i * cols + j] = fp4 ? fill_fp4(seed, i, j, code, factor)
					: fill_fp8(seed, i, j, code, factor);
		codes = harness_device(code, ncodes);
		factors = harness_device(factor, nfactors);
		free(code);
		free(factor);
	}
	matrix(const matrix &) = delete;
	~matrix()
	{
		cudaFree(codes);
		cudaFree(factors);
		free(values);
	}

private:
	/* Where the factor of block j of row i is */
	size_t factor_at(long i, long j) const
	{
		return (i / 128 * wide + j / 4) * SCALE_BYTES + i % 32 * 16 + i % 128 / 32 * 4 + j % 4;
	}

	/* Factors: 1/4 to 2. Both functions write element (i, j) and return its value. */
	float fill_fp8(uint32_t seed, long i, long j, unsigned char *code, unsigned char *factor) const
	{
		const __nv_fp8_e4m3 x(harness_value(seed, i * cols + j));
		const int exponent = (int)(harness_hash(seed + i * 31 + j / 32 * 7) % 4) - 2;

		code[i * row_bytes + j] = x.__x;
		factor[factor_at(i, j / 32)] = 127 + exponent;
		return ldexpf(value_of(x.__x), exponent);
	}

	float fill_fp4(uint32_t seed, long i, long j, unsigned char *code, unsigned char *factor) const
	{
		const __nv_fp4_e2m1 x(8 * harness_value(seed, i * cols + j));
		const __nv_fp8_e4m3 f((harness_hash(seed + i * 31 + j / 16 * 7) % 8 + 1) * 0.25f);

		code[i * row_bytes + j / 2] |= x.__x << j % 2 * 4;
		factor[factor_at(i, j / 16)] = f.__x;
		return (float)x * value_of(f.__x);
	}
};

static const tensor_type bytes = {CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, CU_TENSOR_MAP_SWIZZLE_128B};

/* The factors: 512 bytes are 64 elements */
static CUtensorMap factor_map(const matrix &x, uint32_t blocks)
{
	static const tensor_type words = {CU_TENSOR_MAP_DATA_TYPE_UINT64, 8, CU_TENSOR_MAP_SWIZZLE_NONE};
	const cuuint64_t size[] = {(cuuint64_t)x.wide * 64, (cuuint64_t)(x.rows + 127) / 128};
	const cuuint32_t box[] = {64 * blocks, 1};

	return tensor_map_packed(x.factors, 2, size, box, words);
}

template <int N, class F, class Bug>
static void launch(const matrix &a, const matrix &b, bf16 *c, long ctas, Bug bug)
{
	const tensors t = {tensor_map(a.codes, a.rows, a.row_bytes, BM, bytes),
		tensor_map(b.codes, b.rows, b.row_bytes, BN / N, bytes), factor_map(a, F::scales),
		factor_map(b, F::scales), tensor_map(c, a.rows, b.rows, 32,
			{CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, CU_TENSOR_MAP_SWIZZLE_128B})};
	const sizes s = {(int)a.row_bytes, (int)((a.rows + N * BM - 1) / (N * BM)),
		(int)((b.rows + BN - 1) / BN)};
	const int groups = min(max((int)(harness_ctas(ctas) / N), 1), s.high * s.wide);
	cluster_launch run(groups * N, N, THREADS, shape<N, F>::smem);

	run(scaled_gemm<N, F, Bug>, t, s, bug);
}

int main(int argc, char **argv)
{
	long m = 256, n = 256, k = 1024, format = 0, group = 2, ctas = 0;
	const struct option options[] = {
		{"m", &m, "rows of A and C"},
		{"n", &n, "rows of B, columns of C, a multiple of 8"},
		{"k", &k, "columns of A and B, a multiple of 32"},
		{"format", &format, "elements and factors", "mxfp8|nvfp4"},
		{"group", &group, "CTAs that multiply together, 1 or 2"},
		{"ctas", &ctas, "thread blocks at most; 0: as many as the device has SMs"},
	};
	const struct program p = harness_program("scaled_gemm",
		"block-scaled fp8 or fp4 GEMM with tcgen05", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	product_require(p, m, n, k);
	harness_require(k % 32 == 0, p, "k must be a multiple of 32");
	harness_require(group == 1 || group == 2, p, "group must be 1 or 2");

	const matrix a(1, m, k, format), b(2, n, k, format);
	bf16 *dc = harness_device<bf16>(NULL, (uint64_t)m * n);

	const int status = harness_run(p, r, [&](auto bug) {
			if (format)
				group == 1 ? launch<1, nvfp4>(a, b, dc, ctas, bug)
					: launch<2, nvfp4>(a, b, dc, ctas, bug);
			else
				group == 1 ? launch<1, mxfp8>(a, b, dc, ctas, bug)
					: launch<2, mxfp8>(a, b, dc, ctas, bug);
		}, [&](checker &c) {
			product_check(c, m, n, k, dc, [&](long row, long col) {
				return product_dot(a.values + row * k, b.values + col * k, 1, k);
			});
		},
		2e-12 * m * n * k, "TFLOP/s", "%ld x %ld x %ld, groups of %ld", m, n, k, group);

	cudaFree(dc);
	return status;
}
