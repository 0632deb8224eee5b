/* hopper: attention forward on Hopper, O = softmax(Q K^T / sqrt(D)) V for each
 * head, warp-specialised, in clusters of 1, 2 or 4 CTAs. A CTA has 128 rows of
 * Q; the CTAs of a cluster have adjacent rows of the same head and share the tiles
 * of K and V: each loads 1/n of every tile into all CTAs.
 *
 *   producer (warpgroup 0, warp 0, 1 lane)   consumers (warpgroups 1 and 2)
 *
 *   TMA Q -> q_full  -------------------->   wait q_full
 *   for each tile j of 128 keys, K one tile ahead of V:
 *
 *   wait empty[slot]  <----------------.     wait full[slot of K(j)]  <---.
 *   arrive full[slot], expect the      |     take the turn: bar.sync      |
 *     bytes of all n parts             |       S = Q K(j)^T, commit       |
 *   TMA multicast of one part, which   |       O += P V(j-1), commit      |
 *     counts on full[slot] of every    |     pass the turn: bar.arrive    |
 *     CTA  ----------------------------|----------------------------------'
 *                                      |     wgmma.wait_group 1: S
 *                                      |---- arrive empty[slot of K(j)] of every CTA
 *                                      |     softmax: P(j), while the other one multiplies
 *                                      |       and O += P V(j-1) runs
 *                                      |     wait full[slot of V(j)]
 *                                      |     wgmma.wait_group 0: O
 *                                      '---- arrive empty[slot of V(j-1)] of every CTA
 *                                            rescale O if a row's maximum has grown much
 *
 *   ping-pong: one named barrier for each warpgroup's turn
 *
 *     warpgroup 1   multiply | softmax  | multiply | softmax
 *     warpgroup 2            | multiply | softmax  | multiply
 *
 *   At the start one fence and one cluster barrier publish the channels of all CTAs;
 *   no CTA arrives on a peer's barriers or writes to its slots before. At the end the
 *   producer waits until the last tile of V is released: then all arrivals have been
 *   made, and the CTA may exit. A causal CTA that has passed its diagonal still
 *   releases the slots that its peers fill: all CTAs of a cluster go through the same
 *   tiles.
 *
 *   O is written over the warpgroup's own rows of Q: stmatrix, fence.proxy.async,
 *   bar.sync of the warpgroup, TMA store by one thread.
 *
 * Tensors are [batch * head][row][D] halves. TMA reads rows beyond a head's last
 * as zero and does not write them; the scores of keys beyond it are minus infinity. */
#include "hopper.cuh"
#include "hopper_host.h"

#include "../common/channel.cuh"

enum {
	CONSUMERS = 2, BM = CONSUMERS * WM, SLOTS = 3,
	THREADS = 128 * (1 + CONSUMERS),
	TURN = 1, STAGED = TURN + CONSUMERS, /* named barriers, one for each consumer */
};

#define BUGS(BUG) \
	BUG(no_q_wait, CS121, "", "multiplies without waiting for Q") \
	BUG(no_k_wait, CS121, "", "multiplies by K without waiting for its bytes") \
	BUG(v_slot_of_k, CS121, "", "reads V from the slot of tile j after waiting for tile j - 1") \
	BUG(half_expected, CS211, "", "expects the bytes of one consumer's rows of Q") \
	BUG(k_released_early, CS120, "", "releases K while S = Q K^T is in flight") \
	BUG(v_released_early, CS120, "", "releases V together with K while O += P V is in flight") \
	BUG(o_scaled_early, CS321, "--slack=0", "rescales O before the wait that covers O += P V") \
	BUG(p_packed_early, CS322, "", "packs the next P while O += P V still reads the last one") \
	BUG(s_in_flight, CS321, "", "waits for one group too few before the softmax") \
	BUG(no_first_turn, CS701, "", "no warpgroup passes the first consumer its first turn") \
	BUG(last_turn_kept, CS704, "", "the first consumer does not pass its last turn on") \
	BUG(turn_count, CS402, "", "bar.sync counts one warpgroup, bar.arrive two") \
	BUG(turns_shared, CS411, "", "both consumers wait for their turns on one barrier") \
	BUG(o_over_other_q, CS120, "", \
		"writes O over the rows of Q that the other consumer multiplies") \
	BUG(no_proxy_fence, CS110, "", "O goes to the TMA engine without a proxy fence") \
	BUG(staging_unsynced, CS102, "", "the store starts before the other warps have staged O") \
	BUG(store_not_committed, CS309, "", "the store is in no group, so no wait covers it") \
	BUG(exit_pending, CS308, "", "the CTA exits while the store still reads its shared memory") \
	BUG(leaves_early, CS503, "--cluster=2", \
		"a CTA exits before its peers have made their last arrivals on its barriers") \
	BUG(invalidates_early, CS202, "--cluster=2", \
		"a CTA invalidates barriers on which its peers still arrive") \
	BUG(primed_at_init, CS502, "--cluster=2", \
		"each CTA initialises a channel and at once arrives on its peers' to release the slots") \
	BUG(count_without_peer, CS209, "--cluster=4 --n=300", \
		"empty counts the consumers of one CTA, and those of all arrive") \
	BUG(released_at_home, CS701, "--cluster=2", \
		"slots are released to the own CTA only") \
	BUG(peers_released_early, CS120, "--cluster=2", \
		"releases K to the peers while S = Q K^T is in flight") \
	BUG(published_at_home, CS502, "--cluster=2", \
		"__syncthreads instead of a cluster barrier publishes the channels") \
	BUG(no_init_fence, CS207, "--cluster=2", \
		"a relaxed cluster barrier with no mbarrier-init fence publishes the channels") \
	BUG(mask_of_peers, CS703, "--cluster=2", "the multicast leaves out the CTA itself") \
	BUG(own_part_expected, CS211, "--cluster=2", \
		"each CTA expects the bytes that it loads, not those of its peers") \
	BUG(whole_tile_each, CS107, "--cluster=2", \
		"each CTA loads the whole tile into all of them") \
	BUG(own_diagonal, CS701, "--cluster=2 --causal=1", \
		"a causal CTA stops at its own diagonal, although its peers need more tiles") \
	BUG(idle_returns, CS503, "--cluster=2", \
		"a CTA without rows returns at once, although its peers wait for its part")

PLANT(BUGS)

struct tensors {
	CUtensorMap q, k, v, o;
};

struct sizes {
	int n;
	bool causal;
	float slack;            /* see softmax_step() */
};

template <int D> struct tiles {
	static constexpr int Q_HALVES = WM * D, KV_HALVES = BN * D;
	static constexpr int SMEM = (CONSUMERS * Q_HALVES + 2 * SLOTS * KV_HALVES) * 2 + 1024;

	__half *q, *k, *v;
};

/* All CTAs together fill a slot of K or V, so empty counts the consumers of all. */
struct channels {
	uint64_t q_full;
	channel<SLOTS> k, v;
};

/* The CTA's first row in its head. With a causal mask the longest work comes first. */
DEVICE int first_row(const sizes &s)
{
	const int width = cluster_ctas(), cluster = blockIdx.x / width;
	const int from = s.causal ? gridDim.x / width - 1 - cluster : cluster;

	return (from * width + cluster_rank()) * BM;
}

/* Tiles of keys that rows before `row` see */
DEVICE int tiles_before(const sizes &s, int row)
{
	return ((s.causal ? min(s.n, row) : s.n) + BN - 1) / BN;
}

/* The tiles that all CTAs of the cluster go through: those that its last row needs */
DEVICE int tiles_of_cluster(const sizes &s)
{
	return tiles_before(s, first_row(s) + (cluster_ctas() - cluster_rank()) * BM);
}

/* Loads this CTA's part of a tile into all CTAs. */
template <int D, class Bug>
DEVICE void load(__half *slots, const CUtensorMap *map, channel<SLOTS> &ch, cursor<SLOTS> at,
	int tile, Bug bug)
{
	const int n = cluster_ctas(), rank = cluster_rank(), rows = BN / n;
	uint32_t mask = (1u << n) - 1, bytes = BN * D * 2;
	int first = rank * rows;

	if (bug.is(own_part_expected))
		bytes /= n;
	if (bug.is(mask_of_peers))
		mask &= ~(1u << rank);
	if (bug.is(whole_tile_each))
		first = 0;
	// @bug released_at_home CS701
	channel_acquire_cluster(ch, at);
	channel_expect(ch, at, bytes);
	for (int x = 0; x < D; x += 64) {
		__half *to = slots + at.slot * (BN * D) + x * BN + first * 64;

		if (n == 1)
			// @bug k_released_early CS120 @bug v_released_early CS120
			tensor_load(to, map, x, tile * BN + first, blockIdx.y, &ch.full[at.slot]);
		else
			// @bug published_at_home CS502 @bug own_part_expected CS211
			// @bug whole_tile_each CS107 @bug peers_released_early CS120
			// @bug no_init_fence CS207 @bug idle_returns CS503
			tensor_load_multicast(to, map, x, tile * BN + first, blockIdx.y,
				&ch.full[at.slot], mask);
	}
}

/* Waits until all CTAs have released the slot before this one. */
DEVICE void drain(channel<SLOTS> &ch, cursor<SLOTS> at)
{
	for (int i = 1; i < SLOTS; i++)
		at.next();
	channel_acquire_cluster(ch, at); // @bug own_diagonal CS701
}

template <int D, class Bug>
DEVICE void produce(const tensors &t, const sizes &s, const tiles<D> &m, channels &ch, Bug bug)
{
	const int tiles = tiles_of_cluster(s), row = first_row(s);
	cursor<SLOTS> k, v;

	tensor_prefetch(&t.q);
	tensor_prefetch(&t.k);
	tensor_prefetch(&t.v);
	mbar_arrive_expect_tx(&ch.q_full, (bug.is(half_expected) ? WM : BM) * D * 2);
	for (int y = 0; y < BM; y += WM)
		for (int x = 0; x < D; x += 64)
			// @bug half_expected CS211
			tensor_load(m.q + y * D + x * WM, &t.q, x, row + y, blockIdx.y, &ch.q_full);

	for (int j = 0; j <= tiles; j++) {
		if (j < tiles)
			load<D>(m.k, &t.k, ch.k, k, j, bug);
		k.next();
		if (j == 0)
			continue;
		load<D>(m.v, &t.v, ch.v, v, j - 1, bug);
		v.next();
	}
	if (bug.is(invalidates_early))
		for (int i = 0; i < SLOTS; i++)
			mbar_inval(&ch.v.empty[i]); // @bug invalidates_early CS202
	if (bug.is(leaves_early) || bug.is(invalidates_early))
		return;
	drain(ch.v, v); /* each consumer's last arrival */
}

/* Called by a consumer warpgroup: its thread r arrives at the CTA of rank r, which fills a part
 * of the slot. The four warps complete wgmma.wait_group together, so it arrives for all. */
template <class Bug> DEVICE void release(channel<SLOTS> &c, cursor<SLOTS> at, Bug bug)
{
	const uint32_t to = threadIdx.x % 128;

	if (to >= cluster_ctas() || (bug.is(released_at_home) && to != cluster_rank()))
		return;
	// @bug leaves_early CS503 @bug count_without_peer CS209 @bug no_init_fence CS207
	// @bug invalidates_early CS202
	channel_release_read(c, at, to);
}

/* Waits until the other consumer passes the turn. Each has a barrier of its own. */
template <class Bug> DEVICE void turn_begin(int consumer, Bug bug)
{
	const int whose = bug.is(turns_shared) ? 0 : consumer;

	// @bug no_first_turn CS701 @bug last_turn_kept CS704 @bug turn_count CS402
	// @bug turns_shared CS411
	named_barrier_sync(TURN + whose, bug.is(turn_count) ? 128 : 256);
}

/* Passes the turn. The second consumer does not pass its last one: no turn follows. */
template <class Bug> DEVICE void turn_end(int consumer, bool last, Bug bug)
{
	if (bug.is(last_turn_kept) && last)
		return;
	if (consumer == 0 || !last)
		named_barrier_arrive(TURN + !consumer, 256);
}

template <int D, class Bug>
DEVICE void consume(const tensors &t, const sizes &size, const tiles<D> &m, channels &ch,
	int consumer, Bug bug)
{
	const int row = first_row(size) + consumer * WM, thread = threadIdx.x % 128;
	const int all = tiles_of_cluster(size);
	const int mine = min(all, tiles_before(size, first_row(size) + BM));
	const bool k_early = bug.is(k_released_early) ||
		(bug.is(peers_released_early) && thread != (int)cluster_rank());
	__half *q = m.q + consumer * tiles<D>::Q_HALVES;
	float o[D / 2], s[64], shrink[2];
	uint32_t p[32];
	struct softmax r;
	cursor<SLOTS> k, v;

	clear(o);
	if (consumer == 1 && !bug.is(no_first_turn))
		named_barrier_arrive(TURN, 256);

	if (!bug.is(no_q_wait))
		mbar_wait(&ch.q_full, 0);
	if (!bug.is(no_k_wait))
		channel_wait(ch.k, k); // @bug mask_of_peers CS703
	turn_begin(consumer, bug);
	wgmma_fence();
	// @bug no_q_wait CS121 @bug no_k_wait CS121
	multiply_keys<D>(s, q, m.k + k.slot * tiles<D>::KV_HALVES);
	wgmma_commit();
	turn_end(consumer, mine == 1, bug);
	wgmma_wait<0>();
	release(ch.k, k, bug);
	weigh(s, r, shrink, 0, size.n, size.causal, row, log2_scale<D>, size.slack);
	channel_wait(ch.v, v);
	pack_weights(p, s);
	k.next();

	for (int j = 1; j < mine; j++, k.next(), v.next()) {
		const int slot = bug.is(v_slot_of_k) ? k.slot : v.slot;
		cursor<SLOTS> next = v;

		next.next();
		if (!bug.is(no_k_wait))
			channel_wait(ch.k, k);
		turn_begin(consumer, bug);
		wgmma_fence();
		// @bug k_released_early CS120 @bug peers_released_early CS120
		multiply_keys<D>(s, q, m.k + k.slot * tiles<D>::KV_HALVES);
		wgmma_commit();
		// @bug v_slot_of_k CS121 @bug v_released_early CS120
		multiply_values<D>(o, p, m.v + slot * tiles<D>::KV_HALVES);
		wgmma_commit();
		turn_end(consumer, j + 1 == mine, bug);
		if (k_early)
			release(ch.k, k, bug);
		if (!bug.is(s_in_flight))
			wgmma_wait<1>();
		if (!k_early)
			release(ch.k, k, bug);
		if (bug.is(v_released_early))
			release(ch.v, v, bug);
		// @bug s_in_flight CS321
		weigh(s, r, shrink, j * BN, size.n, size.causal, row, log2_scale<D>, size.slack);
		if (bug.is(o_scaled_early))
			rescale(o, shrink); // @bug o_scaled_early CS321
		if (bug.is(p_packed_early))
			pack_weights(p, s); // @bug p_packed_early CS322
		/* V(j) is needed only in the next turn. Its wait is a loop, and here also keeps ptxas
		 * from moving wait_group 0 above the softmax. */
		channel_wait(ch.v, next);
		wgmma_wait<0>();
		if (!bug.is(v_released_early))
			release(ch.v, v, bug);
		if (!bug.is(p_packed_early))
			pack_weights(p, s);
		if (!bug.is(o_scaled_early))
			rescale(o, shrink);
	}

	wgmma_fence();
	multiply_values<D>(o, p, m.v + v.slot * tiles<D>::KV_HALVES);
	wgmma_commit();
	wgmma_wait<0>();
	release(ch.v, v, bug);

	/* Tiles that only later rows of the cluster need. No wgmma synchronises the
	 * warpgroup here, so only the threads that release also wait: each keeps its phase
	 * open, as one of the CTAs fills its part of the slot only after that thread's
	 * release. */
	const bool releases = thread < (int)cluster_ctas();

	for (int j = mine; j < all && releases && !bug.is(own_diagonal); j++) {
		channel_wait(ch.k, k);
		release(ch.k, k, bug); // not read
		k.next();
		v.next();
		channel_wait(ch.v, v);
		release(ch.v, v, bug); // not read
	}

	if (bug.is(o_over_other_q))
		q = m.q + !consumer * tiles<D>::Q_HALVES;
	/* Each warp writes O over its own rows of Q, which no wgmma reads any more. */
	// @bug no_proxy_fence CS110 @bug o_over_other_q CS120 @bug staging_unsynced CS102
	stage_output<D>(q, o, r);
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	if (!bug.is(staging_unsynced))
		named_barrier_sync(STAGED + consumer, 128);
	if (thread == 0) {
		for (int x = 0; x < D; x += 64)
			// @bug no_proxy_fence CS110 @bug staging_unsynced CS102
			// @bug store_not_committed CS309 @bug exit_pending CS308
			tensor_store(&t.o, x, row, blockIdx.y, q + x * WM);
		if (!bug.is(store_not_committed))
			bulk_commit();
		if (!bug.is(exit_pending))
			bulk_wait_read<0>();
	}
}

template <int D, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
hopper(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ channels ch;
	__half *q = first_tile(smem);
	__half *k = q + CONSUMERS * tiles<D>::Q_HALVES;
	const tiles<D> m = {q, k, k + SLOTS * tiles<D>::KV_HALVES};
	const int warpgroup = threadIdx.x / 128, n = cluster_ctas();

	if (bug.is(idle_returns) && first_row(s) >= s.n)
		return;
	if (threadIdx.x == 0) {
		const int releases = CONSUMERS * (bug.is(count_without_peer) ? 1 : n);

		mbar_init(&ch.q_full, 1);
		channel_init(ch.k, 1, releases);
		for (int i = 0; i < SLOTS && bug.is(primed_at_init); i++)
			mbar_arrive_at(&ch.k.empty[i], 1 - cluster_rank()); // @bug primed_at_init CS502
		channel_init(ch.v, 1, releases);
	}
	if (bug.is(published_at_home))
		__syncthreads();
	else if (bug.is(no_init_fence))
		cluster_sync_relaxed();
	else
		channels_publish();

	if (warpgroup == 0) {
		registers_dec<24>();
		if (threadIdx.x == 0)
			produce(t, s, m, ch, bug);
	} else {
		registers_inc<240>();
		consume(t, s, m, ch, warpgroup - 1, bug);
	}
}

/* ---- host ---- */

template <int D, class Bug>
static void launch(const tensors &t, const sizes &s, long heads, long cluster, Bug bug)
{
	const long ctas = (s.n + BM - 1) / BM;
	cluster_launch run(dim3((ctas + cluster - 1) / cluster * cluster, heads), dim3(cluster),
		THREADS, tiles<D>::SMEM);

	run(hopper<D, Bug>, t, s, bug);
}

template <class Bug>
static void launch(const tensors &t, const sizes &s, long heads, long d, long cluster, Bug bug)
{
	if (d == 64)
		launch<64>(t, s, heads, cluster, bug);
	else
		launch<128>(t, s, heads, cluster, bug);
}

int main(int argc, char **argv)
{
	long b = 1, h = 1, n = 600, d = 64, causal = 0, cluster = 1, slack = 8;
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head"},
		{"d", &d, "columns of Q, K, V and O: 64 or 128"},
		{"causal", &causal, "1: row i sees the keys up to i"},
		{"cluster", &cluster, "CTAs that share K and V: 1, 2 or 4"},
		{"slack", &slack, "O is rescaled where a weight would exceed 2^slack; 0 to 12"},
	};
	const struct program prog = harness_program("hopper",
		"attention forward, warp-specialised, K and V shared by a cluster", __FILE__,
		options, bugs);
	const struct run r = harness_args(argc, argv, prog);

	attention_require(prog, b, h, n, n, causal);
	harness_require(d == 64 || d == 128, prog, "d must be 64 or 128");
	harness_require(cluster == 1 || cluster == 2 || cluster == 4, prog,
		"cluster must be 1, 2 or 4");
	harness_require(slack >= 0 && slack <= 12, prog, "slack must be 0 to 12");

	const attention a(b * h, n, n, d, causal != 0);
	const tensors t = {
		heads_map(a.q.device, b * h, n, d, WM), heads_map(a.k.device, b * h, n, d, BN / cluster),
		heads_map(a.v.device, b * h, n, d, BN / cluster), heads_map(a.out, b * h, n, d, WM),
	};
	const sizes s = {(int)n, causal != 0, (float)slack};

	return attention_run(prog, r, a, [&](auto bug) { launch(t, s, b * h, d, cluster, bug); },
		"b %ld, h %ld, n %ld, d %ld%s, clusters of %ld", b, h, n, d, causal ? ", causal" : "",
		cluster);
}
