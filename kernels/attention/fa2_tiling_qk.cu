/* fa2_tiling_qk: FlashAttention-2, forward, for head dimensions that are too large
 * for the other kernels: 256, 512 and 1024. Q and K are loaded in slices of a few
 * columns, V in slices of 16 rows, and all use the same `stages` slots of 16 * D
 * halves one after the other: shared memory is O(16 D), whatever the tiles' sides.
 *
 *   turns of a tile j of N keys:  QK(0) QK(1) ... QK(D / C - 1)  V(0) .. V(N / 16 - 1)
 *     QK(i): columns i * C to i * C + C - 1 of the CTA's Q and of the N keys
 *     V(i):  16 rows of V, all D columns
 *   turn t uses slot t % stages. Every thread, for each turn:
 *
 *   --stages=1                          --stages=2, --stages=4
 *
 *   wait_group 0, __syncthreads         wait_group stages-2, __syncthreads
 *        | t has landed                      | t has landed, t-1 is no longer read
 *        V                                   |---> cp.async t+stages-1, commit
 *   S += Q K^T of C columns,                 V
 *   or O += P V of 16 keys              the same, while later turns land
 *        |
 *   __syncthreads
 *        | t is no longer read
 *        '---> cp.async t+1, commit
 *
 *   The sums in registers limit D: a warp holds 16 rows x 256 columns of O, 128
 *   registers of each lane. So D / 256 warps form a team that shares 16 rows of Q:
 *   each takes a part of the keys for S and a part of the columns for O, and shares
 *   its maxima and its part of P with the others:
 *
 *     maxima ---> shared, named barrier of the team ---> maximum of the rows
 *     P ---> shared, the __syncthreads of turn V(0) ---> P of all keys of the tile
 *
 *   The next P is written after the QK turns of the next tile, whose barriers follow
 *   the last read of this P. */
#include "fa2_host.h"

enum { WARPS = 8, THREADS = 32 * WARPS, COLUMNS = 256, V_ROWS = 16 };

/* How D is cut up: a slot holds `c` columns of `bn` keys and of the CTA's rows of Q.
 * Q is read again for each tile, so larger tiles are faster; the registers for the
 * scores limit them. */
template <int D> struct cut {
	static constexpr int team = D / COLUMNS, high = WARPS / team * 16;
	static constexpr int bn = D == 256 ? 64 : 128, c = D == 256 ? 16 : D == 512 ? 32 : 64;
	static constexpr int qk = D / c, v = bn / V_ROWS, turns = qk + v, keys = bn / team;
	static_assert((high + bn) * c <= V_ROWS * D);
};

#define BUGS(BUG) \
	BUG(wait_two_stages, CS301, "--stages=2", \
		"waits for all turns but the newest, as if there were one more slot") \
	BUG(no_wait, CS301, "", "only the barrier, no wait_group, before a turn is read") \
	BUG(no_sync, CS301, "--stages=2", "only wait_group, no barrier, before a turn is read") \
	BUG(bring_early, CS106, "--stages=2", \
		"loads the next turn before the barrier that frees its slot") \
	BUG(over_last, CS106, "", "loads the next turn with no barrier after the last product") \
	BUG(empty_not_committed, CS301, "--stages=2", \
		"commits no empty groups and waits for one group fewer in exchange") \
	BUG(most_unsynced, CS102, "", "reads the maxima of the team with no barrier") \
	BUG(most_by_warp, CS102, "", "only __syncwarp before the team's maxima are read") \
	BUG(team_count, CS701, "", "the team's barrier counts one warp too many") \
	BUG(team_ids, CS102, "", "all teams use one barrier and count only their own warps") \
	BUG(p_late, CS102, "", "writes P after the barrier that should publish it") \
	BUG(sums_unsynced, CS102, "", "reads the sums of the team with no barrier") \
	BUG(slot_over_p, CS106, "--stages=2", "uses one slot too many, which overlaps P")

PLANT(BUGS)

/* The layout of shared memory, in halves from its start */
template <int D, int stages, int layout> struct places {
	using by = cut<D>;
	static constexpr int k = tile_size<by::c, layout>(by::high); /* in its slot */
	static constexpr int qk_size = k + tile_size<by::c, layout>(by::bn);
	static constexpr int v_size = tile_size<D, layout>(V_ROWS);
	static constexpr int slot = qk_size > v_size ? qk_size : v_size;
	static constexpr int p = stages * slot, most = p + tile_size<by::bn, layout>(by::high),
		end = most + 2 * by::team * by::high;
};

template <int D, int stages, int layout, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
fa2_tiling_qk(const problem p, float scale, Bug bug)
{
	using by = cut<D>;
	using at = places<D, stages, layout>;
	extern __shared__ __align__(128) __half smem[];
	__half *sp = smem + at::p;
	float *most = (float *)(smem + at::most); /* [team][high], and sums at the end */
	const offsets<by::c, layout, THREADS> of_slice;
	const offsets<D, layout, THREADS> of_v;
	const offsets<by::bn, layout, THREADS> of_p;
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	const int team = warp / by::team, part = warp % by::team;
	const cta_work<D, by::high, by::bn> work(p);
	const int mine = team * 16 + lane / 4; /* this lane's first row in the tile */
	const size_t head = work.head;
	float o[1][COLUMNS / 8][4] = {};
	running r[2];

	const auto slot = [&](int t) {
		return smem + t % (stages + bug.is(slot_over_p)) * at::slot;
	};
	const auto bring = [&](int t) {
		const int j = t / by::turns, i = t % by::turns;

		if (j < work.tiles && i < by::qk) {
			load_rows<by::high, D>(of_slice, slot(t), p.q + head + i * by::c,
				work.first, p.n);
			load_rows<by::bn, D>(of_slice, slot(t) + at::k,
				p.k + head + i * by::c, j * by::bn, p.n);
		} else if (j < work.tiles) {
			load_rows<V_ROWS, D>(of_v, slot(t),
				p.v + head, j * by::bn + (i - by::qk) * V_ROWS, p.n);
		}
		if (!(bug.is(empty_not_committed) && j >= work.tiles))
			cp_async_commit();
	};
	/* Waits until turn t has landed, and refills the slot that is then free. */
	const auto begin = [&](int t) {
		if (stages > 1 && bug.is(bring_early))
			bring(t + stages - 1);
		if (bug.is(wait_two_stages) || bug.is(empty_not_committed))
			cp_async_wait<stages - 1>();
		else if (!bug.is(no_wait))
			cp_async_wait<(stages > 2 ? stages - 2 : 0)>();
		if (!bug.is(no_sync))
			__syncthreads();
		if (stages > 1 && !bug.is(bring_early))
			bring(t + stages - 1);
		return slot(t);
	};
	const auto end = [&](int t) {
		if (stages > 1)
			return;
		if (!bug.is(over_last))
			__syncthreads();
		bring(t + 1);
	};
	const auto team_barrier = [&] {
		if (by::team == 1)
			__syncwarp();
		else
			named_barrier_sync(bug.is(team_ids) ? 1 : 1 + team,
				32 * (by::team + bug.is(team_count)));
	};

	for (int t = 0; t < (stages > 1 ? stages - 1 : 1); t++)
		bring(t);

	for (int j = 0, t = 0; j < work.tiles; j++) {
		float s[1][by::keys / 8][4] = {};

		for (int i = 0; i < by::qk; i++, t++) {
			// @bug bring_early CS106
			const __half *q = begin(t), *k = q + at::k;

#pragma unroll
			for (int x = 0; x < by::c; x += 16) {
				uint32_t f[1][4];

				// @bug wait_two_stages CS301 @bug no_wait CS301 @bug no_sync CS301
				// @bug bring_early CS106 @bug over_last CS106 @bug empty_not_committed CS301
				fetch_a(of_slice, f[0], q, team * 16, x);
				scores(of_slice, s, f, k, part * by::keys, x);
			}
			end(t); // @bug over_last CS106
		}

		mask_tile(s, work, j, work.first + mine, part * by::keys + lane % 4 * 2, p);
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const float m = quad_max(row_max(s[0], h, -INFINITY));

			if (lane % 4 == 0)
				// @bug most_unsynced CS102 @bug most_by_warp CS102 @bug team_ids CS102
				most[part * by::high + mine + h * 8] = m;
		}
		if (bug.is(most_by_warp))
			__syncwarp();
		else if (!bug.is(most_unsynced))
			team_barrier(); // @bug team_count CS701
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float m = r[h].most;

#pragma unroll
			for (int i = 0; i < by::team; i++)
				// @bug most_unsynced CS102 @bug most_by_warp CS102 @bug team_ids CS102
				m = fmaxf(m, most[i * by::high + mine + h * 8]);
			shrink_row(o[0], h, raise_max(r[h], m, scale));
			powers(s[0], h, r[h], scale);
			if (!bug.is(p_late))
				lay_out(of_p, sp, s[0], h, team * 16, part * by::keys);
		}

		for (int i = 0; i < by::v; i++, t++) {
			const __half *v = begin(t); // @bug slot_over_p CS106
			uint32_t f[1][4];

			if (bug.is(p_late) && i == 0)
#pragma unroll
				for (int h = 0; h < 2; h++)
					// @bug p_late CS102
					lay_out(of_p, sp, s[0], h, team * 16, part * by::keys);
			// @bug p_late CS102 @bug slot_over_p CS106
			fetch_a(of_p, f[0], sp, team * 16, i * V_ROWS);
			values(of_v, o, f, v, 0, part * COLUMNS);
			end(t);
		}
	}

	/* The barriers of V's turns came after the last read of the maxima. */
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const float sum = quad_sum(r[h].sum);

		if (lane % 4 == 0)
			most[part * by::high + mine + h * 8] = sum; // @bug sums_unsynced CS102
	}
	if (!bug.is(sums_unsynced))
		team_barrier();
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const int row = mine + h * 8;
		float sum = 0;

#pragma unroll
		for (int i = 0; i < by::team; i++)
			sum += most[i * by::high + row]; // @bug sums_unsynced CS102
		store_row(p.o + head + (ptrdiff_t)(work.first + row) * D + part * COLUMNS, o[0], h,
			1 / sum, work.first + row < p.n);
	}
}

struct tiling_qk : fa2_program {
	static constexpr long max_stages = 4;
	static constexpr char bad_d[] = "d must be 256, 512 or 1024: see fa2_split_q for less";

	template <int D, int stages, int layout, class Bug>
	static void launch(const problem &p, int heads, Bug bug)
	{
		const dim3 grid((p.n + cut<D>::high - 1) / cut<D>::high, heads);

		launch_grid(fa2_tiling_qk<D, stages, layout, Bug>, grid, THREADS,
			2 * places<D, stages, layout>::end, p, log2_scale(D), bug);
	}
};

int main(int argc, char **argv)
{
	return fa2_main<tiling_qk, 512, 256, 1024>(argc, argv, "fa2_tiling_qk",
		"FlashAttention-2 forward, Q and K in slices: head dimensions to 1024", __FILE__,
		bugs);
}
