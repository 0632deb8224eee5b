/* mesh_mlo: attention on an open row of ranks, where K and V stay and the partial
 * results (m, l, O) are sent. A cluster is a row; each rank holds 128 of the keys;
 * all process the same tiles of 64 rows of Q, one after the other. This is faster
 * than mesh_kv, which sends K and V, when Q is short, as in decoding.
 *
 *   rank 0 --(m,l,O)--> rank 1 --(m,l,O)--> rank 2 <--(m,l,O)-- rank 3
 *                                           the root: ranks / 2
 *
 *   For each tile a rank computes its part, merges the part of the next rank
 *   outwards, and sends the result to the next rank towards the root, which writes O.
 *   A receiver has two slots, used alternately:
 *
 *   outer rank                         this rank (128 threads)    inner rank
 *
 *                                      wait q full
 *                                      S = Q K^T, softmax, P V
 *                                      arrive q empty
 *   arrive full, expect the bytes -->  wait full
 *   st.async by each thread, which     each thread reads what the
 *     counts on full, too        --->    thread of its number sent
 *   wait empty  <--------------------  __syncwarp, arrive empty
 *                                        by one lane of each warp
 *                                      wait empty  <-------------  arrive empty
 *                                      arrive full, expect  ---->  wait full
 *                                      st.async  --------------->  ...
 *
 *   The root instead: bulk.wait_group.read, bar.sync, stmatrix,
 *   fence.proxy.async, bar.sync, TMA store.
 *
 *   A rank exits when the last slot that it has filled is empty again: then all
 *   arrivals on its barriers have been made. For the writes of its outer neighbour
 *   to its memory it has waited tile by tile.
 *
 * With --rank_axis=1 a rank is a group of CTAs of which only CTA 0 works, see
 * mesh_kv. Tensors are [batch * head][row][64] halves. */
#include "mesh.cuh"

#include "../common/channel.cuh"

enum {
	D = 64, BM = WM, SLOTS = 2, CONSUMERS = 128, THREADS = CONSUMERS + 32,
	Q_HALVES = BM * D, KV_HALVES = BN * D, STAGED = 1,
	PART_FLOATS = D / 2 + 4,                 /* of a thread: m and l of two rows, O */
	PART_BYTES = CONSUMERS * PART_FLOATS * 4, /* of a tile */
	SMEM = ((SLOTS + 1) * Q_HALVES + 2 * KV_HALVES) * 2 + 2 * SLOTS * PART_BYTES + 1024,
	FROM_WEST = 0, FROM_EAST = 1,
};

#define BUGS(BUG) \
	BUG(not_waited, CS104, "", "merges a part that may not have arrived yet") \
	BUG(first_warp_waits, CS104, "", "only warp 0 waits for the part to arrive") \
	BUG(stale_parity, CS104, "", "the wait does not flip the parity on the second lap") \
	BUG(no_room, CS107, "", "sends without waiting for an empty slot") \
	BUG(released_unread, CS106, "", "releases the slot before it has read it") \
	BUG(no_syncwarp, CS106, "", "lane 0 releases the slot while other lanes may still read it") \
	BUG(one_release, CS209, "", "empty counts one release, and each of the four warps makes one") \
	BUG(part_unexpected, CS211, "", "m and l are sent, but their bytes are not expected") \
	BUG(expected_at_home, CS703, "", \
		"the sender expects the bytes on its own barrier, not the receiver's") \
	BUG(root_sends, CS701, "", "the root sends to the east, where no rank merges the part") \
	BUG(not_published, CS502, "", \
		"no cluster barrier between the initialisation and the first send") \
	BUG(leaves_early, CS503, "", "a rank exits before the slots that it filled are released") \
	BUG(silent_neighbour, CS503, "--rank_axis=1", \
		"sends to the next CTA, which is not of the next rank") \
	BUG(q_released_early, CS120, "", "releases Q while S = Q K^T is in flight") \
	BUG(staging_reused, CS105, "", "the next tile is staged while the last store may still read") \
	BUG(no_proxy_fence, CS110, "", "O goes to the TMA engine without a proxy fence")

PLANT(BUGS)

struct barriers {
	uint64_t own_full;
	channel<SLOTS> q;
	channel<SLOTS> in[2]; /* full: of parts that arrive from a side; empty, in the sender:
	                         of the receiver's slots */
};

struct memory {
	__half *q, *k, *v, *staging;
	float *parts; /* slots: from the west, then from the east */
};

DEVICE int root_of(const sizes &s)
{
	return s.ranks / 2;
}

DEVICE void load(const tensors &t, const sizes &s, const memory &m, barriers &b)
{
	cursor<SLOTS> at;

	mbar_arrive_expect_tx(&b.own_full, 2 * KV_HALVES * 2);
	tensor_load(m.k, &t.k, 0, my_rank(s) * BN, blockIdx.z, &b.own_full);
	tensor_load(m.v, &t.v, 0, my_rank(s) * BN, blockIdx.z, &b.own_full);
	for (int row = 0; row < s.queries; row += BM, at.next()) {
		channel_acquire(b.q, at);
		channel_expect(b.q, at, Q_HALVES * 2);
		// @bug q_released_early CS120
		tensor_load(m.q + at.slot * Q_HALVES, &t.q, 0, row, blockIdx.z, &b.q.full[at.slot]);
	}
}

/* A thread's share of (m, l, O) */
struct part {
	struct softmax r;
	float o[D / 2];
};

/* Computes this rank's own part of a tile of Q. */
template <class Bug>
DEVICE void attend(struct part &p, const sizes &s, const memory &m, barriers &b, cursor<SLOTS> at,
	Bug bug)
{
	const int key = my_rank(s) * BN;
	float scores[64], shrink[2];
	uint32_t weights[32];

	channel_wait(b.q, at);
	wgmma_fence();
	multiply_keys<D>(scores, m.q + at.slot * Q_HALVES, m.k); // @bug q_released_early CS120
	wgmma_commit();
	if (bug.is(q_released_early) && threadIdx.x == 0)
		channel_release(b.q, at);
	wgmma_wait<0>();
	/* The four warps complete wgmma.wait_group together: one thread arrives for them. */
	if (!bug.is(q_released_early) && threadIdx.x == 0)
		channel_release(b.q, at);
	p.r = {};
	weigh(scores, p.r, shrink, key, s.keys, false, 0, log2_scale<D>);
	pack_weights(weights, scores);
	wgmma_fence();
	multiply_values<D>(p.o, weights, m.v, false);
	wgmma_commit();
	wgmma_wait<0>();
}

/* Merges the part of the same rows that the thread of the same number in another rank sent.
 * Block i of 16 bytes of all threads is contiguous: no bank conflicts. */
DEVICE void merge(struct part &p, const float *from)
{
	const float scale = log2_scale<D>;
	const float4 *block = (const float4 *)from + threadIdx.x;
	const float4 ml = block[0];
	const float most[] = {ml.x, ml.y}, sum[] = {ml.z, ml.w};
	float mine[2], theirs[2];

#pragma unroll
	for (int h = 0; h < 2; h++) {
		const float top = fmaxf(p.r.most[h], most[h]);
		/* If neither saw a key, minus infinity less itself would be NaN. */
		const float base = top == -INFINITY ? 0 : top * scale;

		mine[h] = exp2_approx(p.r.most[h] * scale - base);
		theirs[h] = exp2_approx(most[h] * scale - base);
		p.r.most[h] = top;
		p.r.sum[h] = p.r.sum[h] * mine[h] + sum[h] * theirs[h];
	}
#pragma unroll
	for (int i = 0; i < D / 2; i += 4) {
		const float4 o = block[(1 + i / 4) * CONSUMERS];

		p.o[i] = p.o[i] * mine[0] + o.x * theirs[0];
		p.o[i + 1] = p.o[i + 1] * mine[0] + o.y * theirs[0];
		p.o[i + 2] = p.o[i + 2] * mine[1] + o.z * theirs[1];
		p.o[i + 3] = p.o[i + 3] * mine[1] + o.w * theirs[1];
	}
}

/* Receives the part of the rank on that side, which is further from the root. */
template <class Bug>
DEVICE void receive(struct part &p, const sizes &s, const memory &m, barriers &b, int side,
	cursor<SLOTS> at, Bug bug)
{
	const int outer = cta_of(s, my_rank(s) + (side == FROM_WEST ? -1 : 1));
	const float *from = m.parts + (side * SLOTS + at.slot) * (PART_BYTES / 4);
	channel<SLOTS> &in = b.in[side];

	if (!bug.is(not_waited) && !(bug.is(first_warp_waits) && threadIdx.x >= 32))
		// @bug expected_at_home CS703
		mbar_wait_cluster(&in.full[at.slot], bug.is(stale_parity) ? 0 : at.parity);
	if (bug.is(released_unread) && threadIdx.x % 32 == 0)
		channel_release_to(in, at, outer);
	// @bug not_waited CS104 @bug first_warp_waits CS104 @bug stale_parity CS104
	// @bug released_unread CS106 @bug no_syncwarp CS106
	merge(p, from);
	if (!bug.is(no_syncwarp))
		__syncwarp();
	if (!bug.is(released_unread) && threadIdx.x % 32 == 0)
		channel_release_to(in, at, outer); // @bug leaves_early CS503 @bug one_release CS209
}

/* Sends a part towards the root: to the slots that the inner rank has for this side. */
template <class Bug>
DEVICE void send(const struct part &p, const sizes &s, const memory &m, barriers &b, int side,
	cursor<SLOTS> at, Bug bug)
{
	const int step = side == FROM_WEST ? 1 : -1, rank = my_rank(s);
	const int inner = bug.is(silent_neighbour) ? cta_of(s, rank) + step : cta_of(s, rank + step);
	const uint32_t to = smem_of(m.parts + (side * SLOTS + at.slot) * (PART_BYTES / 4), inner)
		+ threadIdx.x * 16;
	const uint32_t full = smem_of(&b.in[side].full[at.slot], inner);
	const int bytes = PART_BYTES - (bug.is(part_unexpected) ? CONSUMERS * 16 : 0);

	if (!bug.is(no_room))
		channel_acquire_cluster(b.in[side], at); // @bug root_sends CS701
	if (threadIdx.x == 0 && bug.is(expected_at_home))
		mbar_arrive_expect_tx(&b.in[side].full[at.slot], bytes);
	else if (threadIdx.x == 0)
		// @bug not_published CS502 @bug silent_neighbour CS503
		mbar_arrive_expect_tx_at(&b.in[side].full[at.slot], inner, bytes);
	store_async(to, p.r.most[0], p.r.most[1], p.r.sum[0], p.r.sum[1], full);
#pragma unroll
	for (int i = 0; i < D / 2; i += 4)
		// @bug no_room CS107 @bug released_unread CS106 @bug no_syncwarp CS106
		// @bug part_unexpected CS211 @bug not_waited CS104 @bug first_warp_waits CS104
		// @bug stale_parity CS104 @bug silent_neighbour CS503
		store_async(to + (1 + i / 4) * CONSUMERS * 16, p.o[i], p.o[i + 1], p.o[i + 2],
			p.o[i + 3], full);
}

template <class Bug>
DEVICE void store(const struct part &p, const tensors &t, const memory &m, int row, Bug bug)
{
	if (threadIdx.x == 0 && !bug.is(staging_reused))
		bulk_wait_read<0>();
	named_barrier_sync(STAGED, CONSUMERS); /* the last store has read its source */
	// @bug staging_reused CS105 @bug no_proxy_fence CS110
	stage_output<D>(m.staging, p.o, p.r);
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	named_barrier_sync(STAGED, CONSUMERS);
	if (threadIdx.x == 0) {
		// @bug staging_reused CS105 @bug no_proxy_fence CS110
		tensor_store(&t.o, 0, row, blockIdx.z, m.staging);
		bulk_commit();
	}
}

template <class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const memory &m, barriers &b, Bug bug)
{
	const int rank = my_rank(s), root = root_of(s);
	cursor<SLOTS> at;

	mbar_wait(&b.own_full, 0);
	for (int row = 0; row < s.queries; row += BM, at.next()) {
		struct part p;

		attend(p, s, m, b, at, bug);
		if (rank > 0 && rank <= root)
			receive(p, s, m, b, FROM_WEST, at, bug);
		if (rank + 1 < s.ranks && rank >= root)
			receive(p, s, m, b, FROM_EAST, at, bug);
		if (rank == root)
			store(p, t, m, row, bug);
		if (rank < root || (bug.is(root_sends) && rank == root))
			send(p, s, m, b, FROM_WEST, at, bug);
		if (rank > root)
			send(p, s, m, b, FROM_EAST, at, bug);
	}
	if (rank == root && threadIdx.x == 0)
		bulk_wait_read<0>();
	if (rank != root && !bug.is(leaves_early)) {
		for (int i = 1; i < SLOTS; i++)
			at.next();
		channel_acquire_cluster(b.in[rank < root ? FROM_WEST : FROM_EAST], at);
	}
}

template <class Bug>
__global__ void __launch_bounds__(THREADS, 1)
mesh_mlo(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ barriers b;
	__half *q = first_tile(smem);
	__half *k = q + SLOTS * Q_HALVES, *v = k + KV_HALVES, *staging = v + KV_HALVES;
	const memory m = {q, k, v, staging, (float *)(staging + Q_HALVES)};

	if (s.by_group && cluster_x() != 0)
		return;
	if (threadIdx.x == 0) {
		mbar_init(&b.own_full, 1);
		channel_init(b.q, 1, 1);
		for (int i = 0; i < 2; i++)
			channel_init(b.in[i], 1, bug.is(one_release) ? 1 : CONSUMERS / 32);
	}
	if (bug.is(not_published))
		__syncthreads();
	else
		channels_publish();

	if (threadIdx.x < CONSUMERS)
		consume(t, s, m, b, bug);
	else if (threadIdx.x == CONSUMERS)
		load(t, s, m, b);
}

/* ---- host ---- */

template <class Bug> static void launch(const attention &a, const struct row &row, Bug bug)
{
	row_launch(mesh_mlo<Bug>, a, row, THREADS, SMEM, bug);
}

int main(int argc, char **argv)
{
	long b = 1, h = 1, m = 300, n = 450;
	struct row row = ROW;
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"m", &m, "rows of Q and O of each head"},
		{"n", &n, "rows of K and V of each head, up to 128 for each rank"},
		ROW_OPTIONS(row),
	};
	const struct program prog = harness_program("mesh_mlo",
		"attention on an open row of CTAs, partial results are sent", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, prog);

	attention_require(prog, b, h, m, n, 0);
	row_require(prog, row, n);

	const attention a(b * h, m, n, D, false);

	return attention_run(prog, r, a, [&](auto bug) { launch(a, row, bug); },
		"b %ld, h %ld, m %ld, n %ld, %ld ranks", b, h, m, n, row.ranks);
}
