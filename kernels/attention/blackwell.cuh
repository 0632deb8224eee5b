/* blackwell: what the roles of the attention kernel for Blackwell share: the work, waits and
 * arrivals, the two products, moves of a row between tensor memory and registers, and the softmax
 * of a row.
 *
 * Tensor memory has 128 lanes, one for each row of a group, and 512 columns of 32 bits. A group
 * has 128 columns of scores, in which its statistics and weights follow when the scores have been
 * read, and D columns of O:
 *
 *   column  0               64            128              256       256 + D
 *           | S of group 0                | S of group 1   | O of 0  | O of 1 |
 *           | statistics    | P, packed   |
 *
 * The address of a warp's lanes is that of its window: 32 lanes times its number modulo 4. */
#pragma once

#include "../common/tcgen05.cuh"

enum {
	GROUPS = 2,             /* of rows, each with a softmax warpgroup of its own */
	BM = 128,               /* rows of a group in a CTA */
	BN = 128,               /* keys of a tile */
	COLUMNS = 512,          /* of tensor memory */
	SHRINK = 0, SUM = 1,    /* columns of the statistics: factor for O; sum of the weights */
	WEIGHTS = 64,           /* first column of P */
};

/* Scores times this are exponents of 2: log2(e) / sqrt(D) */
template <int D> constexpr float log2_scale = 1.44269504f * (D == 64 ? 0.125f : 0.0883883476f);

/* This warp's lanes, as a part of an address in tensor memory */
DEVICE uint32_t warp_lanes()
{
	return threadIdx.x % 128 / 32 * 32 << 16;
}

/* ---- the work ---- */

struct sizes {
	int n, heads;
	bool causal;
};

/* The rows of one head on which a CTA or pair works */
struct item {
	int head, row, tiles;
};

/* Goes through this CTA's items. With a causal mask the longest come first. */
template <int CTAS> struct items {
	const sizes &s;
	int at = blockIdx.x / CTAS;

	__device__ __forceinline__ bool next(item &i)
	{
		const int rows = GROUPS * BM * CTAS, blocks = (s.n + rows - 1) / rows;
		const int block = s.causal ? blocks - 1 - at % blocks : at % blocks;

		if (at >= blocks * s.heads)
			return false;
		i.head = at / blocks;
		i.row = block * rows;
		i.tiles = ((s.causal ? min(s.n, i.row + rows) : s.n) + BN - 1) / BN;
		at += gridDim.x / CTAS;
		return true;
	}
};

/* The first of this CTA's rows in a group */
template <int CTAS> DEVICE int first_row(const item &i, int group)
{
	return i.row + (group * CTAS + (CTAS == 1 ? 0 : cluster_rank())) * BM;
}

/* ---- barriers; those between the CTAs of a pair have the scope of the cluster ---- */

/* Waits for phase number `phase`, also of arrivals by the peer; phase -1 counts as complete. */
template <int CTAS> DEVICE void wait(uint64_t *bar, uint32_t phase)
{
	if (CTAS == 1)
		mbar_wait(bar, phase & 1);
	else
		mbar_wait_cluster(bar, phase & 1);
}

/* Called by a whole warp, after each thread's tcgen05_fence_before(): one arrival, in this CTA. */
DEVICE void arrive(uint64_t *bar)
{
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		mbar_arrive(bar);
}

/* The same in the CTA of rank 0, which issues the products */
template <int CTAS> DEVICE void arrive_at_issuer(uint64_t *bar)
{
	if (CTAS == 1)
		return arrive(bar);
	__syncwarp();
	if (threadIdx.x % 32 == 0)
		mbar_arrive_at(bar, 0);
}

/* Arrives in all CTAs when the products that this thread has issued are complete. */
template <int CTAS> DEVICE void commit(uint64_t *bar, uint32_t mask = (1 << CTAS) - 1)
{
	if (CTAS == 1)
		tcgen05_commit<CTAS>(bar);
	else
		tcgen05_commit_multicast<CTAS>(bar, mask);
}

/* ---- the products ---- */

/* A tile of K or V in one of `CTAS` CTAs: a pair halves K by keys and V by columns. */
template <int D, int CTAS> struct tile {
	static constexpr int KEYS = BN / CTAS, COLS = D / CTAS, HALVES = BN * D / CTAS;
	static constexpr int BLOCK = COLS < 64 ? COLS : 64; /* columns of V that TMA loads at once */
};

/* S = Q K^T */
template <int D, int CTAS>
DEVICE void multiply_keys(uint32_t s, const __half *q, const __half *k, int from = 0, int to = D)
{
	for (int x = from; x < to; x += 16) { /* 16 halves further: 32 bytes, 2 units */
		const uint64_t dq = tcgen05_tile(q + x / 64 * (BM * 64)) + x % 64 / 8;
		const uint64_t dk = tcgen05_tile(k + x / 64 * (tile<D, CTAS>::KEYS * 64)) + x % 64 / 8;

		mma_f16<CTAS>(s, dq, dk, mma_half(BM * CTAS, BN), x > 0);
	}
}

/* O = P V + (add ? O : 0) */
template <int D, int CTAS>
DEVICE void multiply_values(uint32_t o, uint32_t p, const __half *v, bool add)
{
	constexpr int row = tile<D, CTAS>::BLOCK * 2;

	for (int k = 0; k < BN; k += 16) /* 16 keys further: 8 columns of P, 16 rows of V */
		mma_f16_tmem<CTAS>(o, p + k / 2, tcgen05_tile_rows<row>(v, BN * row) + k * row / 16,
			mma_half_rows(BM * CTAS, D), add || k > 0);
}

/* ---- a row ---- */

/* 128 columns of this thread's row */
DEVICE void load_scores(float (&s)[BN], uint32_t at, bool complete = true)
{
	uint32_t v[BN / 32][32];

#pragma unroll
	for (int x = 0; x < BN / 32; x++)
		tmem_load(v[x], at + 32 * x);
	if (complete)
		tmem_wait_loads();
#pragma unroll
	for (int x = 0; x < BN / 32; x++)
		tmem_loaded(v[x]);
#pragma unroll
	for (int i = 0; i < BN; i++)
		s[i] = __uint_as_float(v[i / 32][i % 32]);
}

DEVICE void store_weights(uint32_t at, const float (&s)[BN])
{
#pragma unroll
	for (int x = 0; x < BN / 64; x++) {
		uint32_t v[32];

#pragma unroll
		for (int i = 0; i < 32; i++)
			v[i] = pack_half(s[64 * x + 2 * i], s[64 * x + 2 * i + 1]);
		tmem_store(at + 32 * x, v);
	}
}

/* Running maximum and sum of a row */
struct softmax {
	float most = -INFINITY, sum = 0;
};

/* Takes the scores of the first `end` keys of a tile into the maximum; the others become minus
 * infinity. Returns the factor for what was summed before. The maximum is never minus infinity:
 * each row sees the first key. */
DEVICE float new_maximum(struct softmax &r, float (&s)[BN], int end, float scale)
{
	float top = r.most;

	if (end < BN) {
#pragma unroll
		for (int i = 0; i < BN; i++)
			s[i] = i < end ? s[i] : -INFINITY;
	}
#pragma unroll
	for (int i = 0; i < BN; i++)
		top = fmaxf(top, s[i]);

	const float shrink = exp2_approx((r.most - top) * scale);

	r.most = top;
	return shrink;
}

/* Replaces scores by weights. */
DEVICE void weigh(const struct softmax &r, float (&s)[BN], float scale)
{
	const float base = r.most * scale;

#pragma unroll
	for (int i = 0; i < BN; i++)
		s[i] = exp2_approx(s[i] * scale - base);
}

DEVICE float sum_of(const float (&s)[BN])
{
	float sum = 0;

#pragma unroll
	for (int i = 0; i < BN; i++)
		sum += s[i];
	return sum;
}

/* Multiplies this thread's row of O. */
template <int D> DEVICE void scale_output(uint32_t o, float by)
{
#pragma unroll
	for (int x = 0; x < D; x += 32) {
		uint32_t v[32];

		tmem_load(v, o + x);
		tmem_wait_loads();
		tmem_loaded(v);
#pragma unroll
		for (int i = 0; i < 32; i++)
			v[i] = __float_as_uint(__uint_as_float(v[i]) * by);
		tmem_store(o + x, v);
	}
}

/* Writes 32 columns of this thread's row of O, from column x on, multiplied, as halves to a tile of
 * 128 rows for TMA: blocks of 64 columns whose 16-byte chunks are permuted by the row's number. */
DEVICE void stage_columns(__half *tile, int row, int x, const uint32_t (&v)[32], float by)
{
#pragma unroll
	for (int i = 0; i < 32; i += 8) {
		const int chunk = (x + i) % 64 / 8;
		uint32_t h[4];

#pragma unroll
		for (int k = 0; k < 4; k++)
			h[k] = pack_half(__uint_as_float(v[i + 2 * k]) * by,
				__uint_as_float(v[i + 2 * k + 1]) * by);
		*(uint4 *)(tile + x / 64 * (BM * 64) + row * 64 + (chunk ^ row % 8) * 8) =
			make_uint4(h[0], h[1], h[2], h[3]);
	}
}
