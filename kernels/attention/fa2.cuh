/* fa2: what the FlashAttention-2 kernels have in common: what a warp does by
 * itself, with fragments in registers. Each kernel decides how Q, K and V come
 * to shared memory and how its warps synchronise.
 *
 * A warp has `blocks` times 16 rows of Q. Of a 16 x 8 block of scores or sums,
 * lane l holds row l / 4, columns l % 4 * 2 and the next one, and the same of
 * row l / 4 + 8. Packed to halves this is the A operand of the next product:
 * the scores of a warp stay in its registers.
 *
 * Scores are kept as Q K^T returns them. exp(s - max) is computed as
 * exp2(scale * (s - max)), where scale is log2(e) / sqrt(D). */
#pragma once

#include "../common/tile.cuh"
#include "quad.cuh"

/* Tensors are [batch * head][row][D] halves. */
struct problem {
	const __half *q, *k, *v;
	__half *o;
	int n;
	bool causal;
};

/* The rows of Q of this CTA, and the tiles of `bn` keys that they need */
template <int D, int rows, int bn> struct cta_work {
	int first;   /* row of Q */
	int tiles;
	size_t head; /* offset of the head in each tensor, in halves */

	/* With a causal mask the last rows need the most tiles: they come first, so that
	 * the CTAs that run last are short. */
	__device__ __forceinline__ cta_work(const problem &p)
	{
		first = (p.causal ? gridDim.x - 1 - blockIdx.x : blockIdx.x) * rows;
		head = (size_t)blockIdx.y * p.n * D;
		tiles = ((p.causal ? min(p.n, first + rows) : p.n) + bn - 1) / bn;
	}
};

/* This thread's first offsets in a tile with rows of `width` halves: for ldmatrix of
 * an A operand, of K and of V, for stores of P, and for copies */
template <int width, int layout, int threads> struct offsets {
	int a, k, v, p, copy;
	int y, x; /* the row and column that it copies */

	__device__ __forceinline__ offsets()
	{
		const int lane = threadIdx.x % 32;

		a = keep(tile_at<width, layout>(lane % 16, lane / 16 * 8));
		k = keep(tile_at<width, layout>(lane % 8 + lane / 16 * 8, lane / 8 % 2 * 8));
		v = a;
		p = keep(tile_at<width, layout>(lane / 4, lane % 4 * 2));
		y = keep(threadIdx.x / (width / 8));
		x = keep(threadIdx.x % (width / 8) * 8);
		copy = keep(tile_at<width, layout>(y, x));
	}
};

/* Copies rows row to row + high - 1 of a tensor of n rows of D, `width` columns starting
 * at `from`. Rows beyond n become zeros: 0 times garbage could be NaN. */
template <int high, int D, int width, int layout, int threads>
DEVICE void load_rows(const offsets<width, layout, threads> &at, __half *tile,
	const __half *from, int row, int n, bool fill = true)
{
	constexpr int step = threads / (width / 8);

	from += (ptrdiff_t)row * D + (at.y * D + at.x);
#pragma unroll
	for (int i = 0; i < high; i += step) {
		const bool in = row + i < n - at.y;

		if (high % step && at.y + i >= high)
			continue;
		if (in || fill)
			cp_async(tile + tile_step<width, layout>(at.copy, i, 0), from + i * D,
				in ? 16 : 0);
	}
}

/* Reads rows row to row + 15, columns col to col + 15 of a tile as an A operand. */
template <int width, int layout, int threads>
DEVICE void fetch_a(const offsets<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix(f, tile + tile_step<width, layout>(at.a, row, col));
}

/* Reads the same rows and columns as the B operands of two blocks of 8: registers 0 and 1,
 * 2 and 3. For K, whose rows are the product's columns. */
template <int width, int layout, int threads>
DEVICE void fetch_k(const offsets<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix(f, tile + tile_step<width, layout>(at.k, row, col));
}

/* For V, whose columns are the product's columns. */
template <int width, int layout, int threads>
DEVICE void fetch_v(const offsets<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix_trans(f, tile + tile_step<width, layout>(at.v, row, col));
}

/* s += Q K^T over 16 columns: q holds those of each block of 16 rows of Q; the keys
 * start at row `key` of the tile. */
template <int width, int layout, int threads, int blocks, int n>
DEVICE void scores(const offsets<width, layout, threads> &at, float (&s)[blocks][n][4],
	const uint32_t (&q)[blocks][4], const __half *k, int key, int col)
{
#pragma unroll
	for (int x = 0; x < n; x += 2) {
		uint32_t f[4];

		fetch_k(at, f, k, key + x * 8, col);
#pragma unroll
		for (int y = 0; y < blocks; y++) {
			mma(s[y][x], q[y], f[0], f[1]);
			mma(s[y][x + 1], q[y], f[2], f[3]);
		}
	}
}

/* Sets the scores of keys that do not exist or are masked to minus infinity. `row` and
 * `key` are those of the lane's first element. */
template <int blocks, int n>
DEVICE void mask(float (&s)[blocks][n][4], int row, int key, const problem &p)
{
#pragma unroll
	for (int y = 0; y < blocks; y++)
#pragma unroll
		for (int x = 0; x < n; x++)
#pragma unroll
			for (int i = 0; i < 4; i++) {
				const int r = row + y * 16 + i / 2 * 8, k = key + x * 8 + i % 2;

				if (k >= p.n || (p.causal && k > r))
					s[y][x][i] = -INFINITY;
			}
}

/* Masks tile j if it holds keys that do not exist or that some row does not see. `row` and
 * `col` are those of the lane's first element, `col` from the start of the tile. */
template <int D, int rows, int bn, int blocks, int n>
DEVICE void mask_tile(float (&s)[blocks][n][4], const cta_work<D, rows, bn> &work, int j, int row,
	int col, const problem &p)
{
	if ((j + 1) * bn > p.n || (p.causal && (j + 1) * bn > work.first))
		mask(s, row, j * bn + col, p);
}

/* The online softmax of one row: the greatest score so far, and the sum of this lane's
 * powers */
struct running {
	float most = -INFINITY, sum = 0;
};

/* Sets a new maximum. Returns the factor by which all earlier sums of the row shrink. */
DEVICE float raise_max(running &r, float most, float scale)
{
	/* If no key was seen yet, minus infinity less itself would be NaN. */
	const float base = most == -INFINITY ? 0 : most;
	const float shrink = exp2_approx(scale * (r.most - base));

	r.most = most;
	r.sum *= shrink;
	return shrink;
}

/* h: the upper (0) or lower (1) eight rows of a block */
template <int n> DEVICE float row_max(const float (&s)[n][4], int h, float most)
{
#pragma unroll
	for (int x = 0; x < n; x++)
		most = fmaxf(most, fmaxf(s[x][2 * h], s[x][2 * h + 1]));
	return most;
}

template <int n> DEVICE void shrink_row(float (&o)[n][4], int h, float by)
{
#pragma unroll
	for (int x = 0; x < n; x++) {
		o[x][2 * h] *= by;
		o[x][2 * h + 1] *= by;
	}
}

/* Replaces scores by powers. */
template <int n> DEVICE void powers(float (&s)[n][4], int h, running &r, float scale)
{
	const float base = r.most == -INFINITY ? 0 : scale * r.most;

#pragma unroll
	for (int x = 0; x < n; x++)
#pragma unroll
		for (int i = 2 * h; i < 2 * h + 2; i++) {
			s[x][i] = exp2_approx(fmaf(s[x][i], scale, -base));
			r.sum += s[x][i];
		}
}

/* For a warp that holds all scores of its rows for a tile of keys */
template <int blocks, int n, int m>
DEVICE void softmax(float (&s)[blocks][n][4], float (&o)[blocks][m][4],
	running (&r)[blocks][2], float scale, uint32_t lanes = ~0u)
{
#pragma unroll
	for (int y = 0; y < blocks; y++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const float most = quad_max(row_max(s[y], h, r[y][h].most), lanes);

			shrink_row(o[y], h, raise_max(r[y][h], most, scale));
			powers(s[y], h, r[y][h], scale);
		}
}

/* o += P V for 16 columns of P, in operand a, and V's 16 rows from `row` on */
template <int width, int layout, int threads, int blocks, int m>
DEVICE void values(const offsets<width, layout, threads> &at, float (&o)[blocks][m][4],
	const uint32_t (&a)[blocks][4], const __half *v, int row, int col)
{
#pragma unroll
	for (int x = 0; x < m; x += 2) {
		uint32_t f[4];

		fetch_v(at, f, v, row, col + x * 8);
#pragma unroll
		for (int y = 0; y < blocks; y++) {
			mma(o[y][x], a[y], f[0], f[1]);
			mma(o[y][x + 1], a[y], f[2], f[3]);
		}
	}
}

/* o += P V, for a warp that holds its rows of P, the powers, in registers */
template <int width, int layout, int threads, int blocks, int n, int m>
DEVICE void all_values(const offsets<width, layout, threads> &at, float (&o)[blocks][m][4],
	const float (&s)[blocks][n][4], const __half *v)
{
#pragma unroll
	for (int k = 0; k < n; k += 2) {
		uint32_t a[blocks][4];

#pragma unroll
		for (int y = 0; y < blocks; y++)
#pragma unroll
			for (int i = 0; i < 4; i++)
				a[y][i] = pack_half(s[y][k + i / 2][i % 2 * 2], s[y][k + i / 2][i % 2 * 2 + 1]);
		values(at, o, a, v, k * 8, 0);
	}
}

/* Writes P to shared memory for other warps: half h of the row block at `row`, starting at
 * key `col`. */
template <int width, int layout, int threads, int n>
DEVICE void lay_out(const offsets<width, layout, threads> &at, __half *tile,
	const float (&s)[n][4], int h, int row, int col)
{
#pragma unroll
	for (int x = 0; x < n; x++)
		*(uint32_t *)(tile + tile_step<width, layout>(at.p, row + 8 * h, col + x * 8)) =
			pack_half(s[x][2 * h], s[x][2 * h + 1]);
}

/* Stores a row. Its four lanes have two columns each of every block of 8. For each four
 * blocks they exchange them, as in a transposition of a 4 x 4 matrix, so that each lane
 * has one block and stores it as 16 bytes. All lanes of the warp call it, whether their
 * row `exists` or not. */
template <int n>
DEVICE void store_row(__half *row, const float (&o)[n][4], int h, float norm, bool exists)
{
	const int lane = threadIdx.x % 4;

#pragma unroll
	for (int x = 0; x < n; x += 4) {
		uint32_t w[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
			w[i] = pack_half(o[x + i][2 * h] * norm, o[x + i][2 * h + 1] * norm);
#pragma unroll
		for (int far = 2; far; far /= 2) /* exchange with lane ^ far */
#pragma unroll
			for (int k = 0; k < 2; k++) {
				const int i = far == 2 ? k : 2 * k;
				const bool upper = lane & far;
				const uint32_t got = __shfl_xor_sync(~0u, upper ? w[i] : w[i + far], far);

				w[i] = upper ? got : w[i];
				w[i + far] = upper ? w[i + far] : got;
			}
		if (exists)
			*(uint4 *)(row + (x + lane) * 8) = make_uint4(w[0], w[1], w[2], w[3]);
	}
}

/* Normalises and stores O, for a warp that holds all sums of its rows; `row` is the lane's
 * first. */
template <int blocks, int m>
DEVICE void store(const problem &p, size_t head, int row, const float (&o)[blocks][m][4],
	const running (&r)[blocks][2])
{
#pragma unroll
	for (int y = 0; y < blocks; y++)
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const int at = row + y * 16 + h * 8;

			store_row(p.o + head + (ptrdiff_t)at * (m * 8), o[y], h, 1 / quad_sum(r[y][h].sum),
				at < p.n);
		}
}
