/* fa2: what the FlashAttention-2 kernels here have in common: what a warp does
 * on its own, with fragments in registers. They differ in how Q, K and V come
 * into shared memory, and in who waits for whom: that stands in each kernel.
 *
 * A warp has `blocks` times 16 rows of Q. Of a 16 x 8 block of scores or sums,
 * lane l holds row l / 4, columns l % 4 * 2 and the next one, and the same of
 * row l / 4 + 8. Packed to halves this is the A operand of the next product:
 * the scores of a warp never leave its registers.
 *
 * Scores are kept as they come from Q K^T; powers of two of scale * (s - max),
 * where scale is log2(e) / sqrt(D), stand for the powers of e. */
#pragma once

#include "../common/tile.cuh"

/* Tensors are [batch * head][row][D] halves. */
struct problem {
	const __half *q, *k, *v;
	__half *o;
	int n;
	bool causal;
};

/* Where this thread begins in a tile with rows of `width` halves: in ldmatrix of
 * an A operand, of K and of V, in stores of P, and in copies. */
template <int width, int layout, int threads> struct own {
	int a, k, v, p, copy;
	int y, x; /* of what it copies */

	__device__ __forceinline__ own()
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

/* Rows row to row + high - 1 of a tensor of n rows of D, `width` columns of them
 * from `from` on; zeros where there are no rows: 0 times garbage could be NaN. */
template <int high, int D, int width, int layout, int threads>
DEVICE void load_rows(const own<width, layout, threads> &at, __half *tile,
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

/* Rows row to row + 15, columns col to col + 15 of a tile, as an A operand */
template <int width, int layout, int threads>
DEVICE void fetch_a(const own<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix(f, tile + tile_step<width, layout>(at.a, row, col));
}

/* The same rows and columns as the B operands of two blocks of 8, registers 0
 * and 1, 2 and 3. K: its rows are the product's columns. */
template <int width, int layout, int threads>
DEVICE void fetch_k(const own<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix(f, tile + tile_step<width, layout>(at.k, row, col));
}

/* V: its columns are the product's columns. */
template <int width, int layout, int threads>
DEVICE void fetch_v(const own<width, layout, threads> &at, uint32_t (&f)[4],
	const __half *tile, int row, int col)
{
	ldmatrix_trans(f, tile + tile_step<width, layout>(at.v, row, col));
}

/* s += Q K^T over 16 columns: q holds those of each block of 16 rows of Q, K's
 * keys begin at row `key` of the tile. */
template <int width, int layout, int threads, int blocks, int n>
DEVICE void scores(const own<width, layout, threads> &at, float (&s)[blocks][n][4],
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

/* Minus infinity where this lane's keys do not exist or must not be seen. `row`
 * and `key` are those of the lane's first element. */
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

/* Over the four lanes that hold one row */
DEVICE float quad_max(float x, uint32_t lanes = ~0u)
{
	x = fmaxf(x, __shfl_xor_sync(lanes, x, 1));
	return fmaxf(x, __shfl_xor_sync(lanes, x, 2));
}

DEVICE float quad_sum(float x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}

/* The online softmax of one row, of which a lane holds a part: the greatest
 * score so far, and the sum of this lane's powers. */
struct running {
	float most = -INFINITY, sum = 0;
};

/* Goes on to a greater maximum: everything so far shrinks by what is returned. */
DEVICE float raise_max(running &r, float most, float scale)
{
	/* A row may have seen no key yet: minus infinity less itself is NaN. */
	const float base = most == -INFINITY ? 0 : most;
	const float shrink = exp2_approx(scale * (r.most - base));

	r.most = most;
	r.sum *= shrink;
	return shrink;
}

/* Half h of each row block: upper (0) or lower (1) eight rows */
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

/* Scores become powers. */
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

/* For a warp that holds its rows' whole scores of a tile of keys */
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
DEVICE void values(const own<width, layout, threads> &at, float (&o)[blocks][m][4],
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
DEVICE void all_values(const own<width, layout, threads> &at, float (&o)[blocks][m][4],
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

/* P for other warps to read: half h of a row block that begins at `row`, its keys
 * from `col` on */
template <int width, int layout, int threads, int n>
DEVICE void lay_out(const own<width, layout, threads> &at, __half *tile,
	const float (&s)[n][4], int h, int row, int col)
{
#pragma unroll
	for (int x = 0; x < n; x++)
		*(uint32_t *)(tile + tile_step<width, layout>(at.p, row + 8 * h, col + x * 8)) =
			pack_half(s[x][2 * h], s[x][2 * h + 1]);
}

/* Collective store. The four lanes of a row have two columns each of a block
 * of 8; of four blocks they exchange what they have, as one transposes a 4 x 4
 * matrix, so that each lane has one block and stores it as 16 bytes. All lanes
 * of the warp take part, `exists` or not. */
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
		for (int far = 2; far; far /= 2) /* trade with the lane that far off */
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

/* The end of a warp that holds its rows' whole sums; `row` is the lane's first. */
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
