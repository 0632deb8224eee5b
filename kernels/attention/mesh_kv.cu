/* mesh_kv: ring attention on an open row of ranks. A cluster is a row; each rank
 * keeps 128 rows of Q and holds 128 of the keys. K and V are sent along the row.
 *
 *   rank 0 ---------- rank 1 ---------- rank 2 ---------- rank 3
 *     c0 ------------->  c0 ------------->  c0 ------------->      eastbound
 *                        c1 ------------->  c1 ------------->
 *                                           c2 ------------->
 *      <---------------- c1 <-------------- c2 <------------- c3   westbound ...
 *
 *   A chunk is sent in both directions, one hop at a time, and reaches every other
 *   rank exactly once. In each rank each direction has a carrier, one lane of a warp,
 *   and two slots for chunks that arrive:
 *
 *   upstream rank            this rank                        downstream rank
 *
 *   arrive full, expect -->  carrier: wait full
 *   bulk copy (DSMEM) ---->    arrive taken of upstream
 *   wait taken  <----------'   wait taken: the copy before has arrived, so it
 *     (source read)              no longer reads its slot
 *   wait empty  <------------- arrive empty of upstream for that slot
 *     |          \             wait empty  <----------------  3 arrivals
 *   next copy     \            arrive full, expect, copy -->  wait full ...
 *                  \
 *                   '------- 2 consumer warpgroups: wait full, S = Q K^T,
 *                              softmax, O += P V, arrive empty of upstream
 *
 *   A copy out of shared memory completes at its destination only; hence `taken`.
 *   The consumers read their own chunk, then the chunks of the west and of the east
 *   by distance; the carriers need not keep that order. With a causal mask no chunk
 *   is sent west: no rank needs later keys.
 *
 *   The cluster barrier at the end keeps a rank from exiting before its neighbours
 *   have read from it and arrived on its barriers for the last time.
 *
 * With --rank_axis=1 a rank is a group of CTAs of which only CTA 0 works. The
 * others return at once: no CTA writes to them or waits for them, and a cluster
 * barrier counts only threads that have not exited.
 *
 * Tensors are [batch * head][row][64] halves. Each rank has up to 128 rows of each;
 * rows beyond the last are zero and masked. */
#include "mesh.cuh"

#include "../common/channel.cuh"

enum {
	D = 64, CONSUMERS = 2, BM = CONSUMERS * WM, SLOTS = 2,
	THREADS = 128 * (1 + CONSUMERS), STAGED = 1,
	CHUNK_HALVES = 2 * BN * D, CHUNK_BYTES = CHUNK_HALVES * 2, /* K, then V */
	SMEM = (BM * D + (1 + 2 * SLOTS) * CHUNK_HALVES) * 2 + 1024,
	EAST = 0, WEST = 1, /* the direction of a wave */
};

#define BUGS(BUG) \
	BUG(own_not_waited, CS104, "", "sends its chunk before TMA has loaded it") \
	BUG(forward_early, CS104, "", "forwards a chunk that has not arrived") \
	BUG(not_taken, CS105, "--ranks=5 --n=640", \
		"releases a slot while the copy to the next rank still reads it") \
	BUG(no_room, CS120, "", "sends without waiting for an empty slot") \
	BUG(released_early, CS120, "", "consumers release a slot while O += P V is in flight") \
	BUG(stale_parity, CS121, "", "consumers do not flip the parity on the second lap") \
	BUG(own_barrier, CS311, "", "the copy's bytes count on the sender's barrier") \
	BUG(expected_at_home, CS703, "", \
		"the sender expects the bytes on its own barrier, not the receiver's") \
	BUG(only_k_sent, CS703, "", "expects K and V, copies K") \
	BUG(carrier_uncounted, CS209, "", "empty counts the consumers but not the carrier") \
	BUG(off_the_end, CS501, "", "the last rank sends to a next one, as in a closed ring") \
	BUG(wave_turns_back, CS701, "", "the ranks at the edges also wait for chunks from both sides") \
	BUG(not_published, CS502, "", \
		"no cluster barrier between the initialisation and the first send") \
	BUG(leaves_early, CS503, "", "no cluster barrier at the end") \
	BUG(neighbour_is_silent, CS503, "--rank_axis=1", \
		"sends to the next CTA, which is not of the next rank") \
	BUG(group_counted, CS701, "--rank_axis=1", \
		"empty also counts releases of CTAs that do not work")

PLANT(BUGS)

/* The barriers of one direction */
struct wave {
	channel<SLOTS> ch;     /* full: of chunks that arrive here; empty: of the downstream
	                          rank's slots */
	uint64_t taken[SLOTS]; /* a chunk sent from here has arrived */
};

struct barriers {
	uint64_t q_full, own_full;
	struct wave wave[2];
};

struct memory {
	__half *q, *own, *slots; /* slots: of the eastbound wave, then of the westbound */
};

/* How many chunks of a wave reach this rank, its own included */
DEVICE int chunks_of(const sizes &s, int direction)
{
	return direction == EAST ? my_rank(s) + 1 : s.ranks - my_rank(s);
}

DEVICE void load(const tensors &t, const sizes &s, const memory &m, barriers &b)
{
	const int row = my_rank(s) * BM;

	mbar_arrive_expect_tx(&b.q_full, BM * D * 2);
	for (int y = 0; y < BM; y += WM)
		tensor_load(m.q + y * D, &t.q, 0, row + y, blockIdx.z, &b.q_full);
	mbar_arrive_expect_tx(&b.own_full, CHUNK_BYTES);
	tensor_load(m.own, &t.k, 0, row, blockIdx.z, &b.own_full);
	tensor_load(m.own + BN * D, &t.v, 0, row, blockIdx.z, &b.own_full);
}

/* The carrier of one direction: sends its rank's chunk, then those that arrive. */
template <class Bug>
DEVICE void carry(const sizes &s, const memory &m, barriers &b, int direction, Bug bug)
{
	const int rank = my_rank(s), step = direction == EAST ? 1 : -1;
	const int chunks = chunks_of(s, direction);
	const int last = bug.is(off_the_end) ? s.ranks : direction == EAST ? s.ranks - 1 : 0;
	const int up = cta_of(s, rank - step);
	const int down = cta_of(s, rank) + (bug.is(neighbour_is_silent) ? step :
		cta_of(s, rank + step) - cta_of(s, rank));
	struct wave &w = b.wave[direction];
	__half *slots = m.slots + direction * SLOTS * CHUNK_HALVES;
	cursor<SLOTS> in, in_before, out, out_before;

	for (int i = 0; i < chunks; i++) {
		const __half *from = i ? slots + in.slot * CHUNK_HALVES : m.own;

		if (i) {
			if (!bug.is(forward_early))
				mbar_wait_cluster(&w.ch.full[in.slot], in.parity);
			mbar_arrive_at(&w.taken[in.slot], up);
		} else if (!bug.is(own_not_waited)) {
			mbar_wait(&b.own_full, 0);
		}
		if (i > 1 && bug.is(not_taken))
			channel_release_to(w.ch, in_before, up);
		if (i && rank != last)
			mbar_wait_cluster(&w.taken[out_before.slot], out_before.parity);
		if (i > 1 && !bug.is(not_taken))
			// @bug carrier_uncounted CS209
			channel_release_to(w.ch, in_before, up);
		if (rank != last) {
			const int counts = bug.is(own_barrier) ? cta_of(s, rank) : down;
			const uint32_t bytes = bug.is(only_k_sent) ? CHUNK_BYTES / 2 : CHUNK_BYTES;

			if (!bug.is(no_room))
				channel_acquire_cluster(w.ch, out); // @bug group_counted CS701
			if (bug.is(expected_at_home))
				mbar_arrive_expect_tx(&w.ch.full[out.slot], CHUNK_BYTES);
			else
				// @bug off_the_end CS501 @bug not_published CS502
				mbar_arrive_expect_tx_at(&w.ch.full[out.slot], down, CHUNK_BYTES);
			// @bug own_not_waited CS104 @bug forward_early CS104 @bug not_taken CS105
			// @bug no_room CS120 @bug released_early CS120 @bug own_barrier CS311
			// @bug neighbour_is_silent CS503 @bug not_published CS502
			bulk_copy_to(smem_of(slots + out.slot * CHUNK_HALVES, down), from, bytes,
				smem_of(&w.ch.full[out.slot], counts));
			out_before = out;
			out.next();
		}
		in_before = in;
		if (i)
			in.next();
	}
	/* No release of the last slot: it is not filled again, and a cluster barrier follows. */
}

/* Computes the consumer's rows of O over all chunks: the own one, then those one hop away
 * in the west and in the east, then those two hops away, and so on. */
template <class Bug>
DEVICE void attend(float (&o)[D / 2], struct softmax &r, const sizes &s, const memory &m,
	barriers &b, const __half *q, int first, Bug bug)
{
	const int rank = my_rank(s);
	/* The four warps complete wgmma.wait_group together: one thread arrives for them. */
	const bool releases = threadIdx.x % 128 == 0;

	for (int i = 0; i < 2 * s.ranks - 1; i++) {
		const int hops = (i + 1) / 2, direction = i % 2 ? EAST : WEST;
		const int origin = direction == EAST ? rank - hops : rank + hops, key = origin * BN;
		const int up = cta_of(s, direction == EAST ? rank - 1 : rank + 1);
		struct wave &w = b.wave[direction];
		float scores[64], shrink[2];
		uint32_t p[32];
		cursor<SLOTS> in;

		if (origin >= s.ranks || (origin < 0 && !bug.is(wave_turns_back)))
			continue;
		if (s.causal && origin > rank)
			continue;
		in.slot = (hops + SLOTS - 1) % SLOTS;
		in.parity = i && !bug.is(stale_parity) ? (hops - 1) / SLOTS % 2 : 0;

		const __half *chunk = i ? m.slots + (direction * SLOTS + in.slot) * CHUNK_HALVES : m.own;

		// @bug expected_at_home CS703 @bug only_k_sent CS703 @bug wave_turns_back CS701
		mbar_wait_cluster(i ? &w.ch.full[in.slot] : &b.own_full, in.parity);
		wgmma_fence();
		multiply_keys<D>(scores, q, chunk); // @bug stale_parity CS121
		wgmma_commit();
		wgmma_wait<0>();
		weigh(scores, r, shrink, key, s.keys, s.causal, first, log2_scale<D>);
		scale_rows(o, shrink);
		pack_weights(p, scores);
		wgmma_fence();
		// @bug no_room CS120 @bug released_early CS120
		multiply_values<D>(o, p, chunk + BN * D);
		wgmma_commit();
		if (bug.is(released_early) && i && releases)
			channel_release_to(w.ch, in, up);
		wgmma_wait<0>();
		if (!bug.is(released_early) && i && releases)
			channel_release_to(w.ch, in, up); // @bug leaves_early CS503
	}
}

template <class Bug>
DEVICE void consume(const tensors &t, const sizes &s, const memory &m, barriers &b, int consumer,
	Bug bug)
{
	const int first = my_rank(s) * BM + consumer * WM;
	__half *q = m.q + consumer * WM * D;
	float o[D / 2];
	struct softmax r;

	clear(o);
	mbar_wait(&b.q_full, 0);
	attend(o, r, s, m, b, q, first, bug);

	/* Each warp writes O over its own rows of Q, which no wgmma reads any more. */
	stage_output<D>(q, o, r);
	fence_proxy_async();
	named_barrier_sync(STAGED + consumer, 128);
	if (threadIdx.x % 128 == 0) {
		tensor_store(&t.o, 0, first, blockIdx.z, q);
		bulk_commit();
		bulk_wait_read<0>();
	}
}

template <class Bug>
__global__ void __launch_bounds__(THREADS, 1)
mesh_kv(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ barriers b;
	__half *q = first_tile(smem);
	__half *own = q + BM * D;
	const memory m = {q, own, own + CHUNK_HALVES};
	const int warpgroup = threadIdx.x / 128;

	if (s.by_group && cluster_x() != 0)
		return;
	if (threadIdx.x == 0) {
		const int carriers = bug.is(carrier_uncounted) ? 0 : 1;
		const int all = bug.is(group_counted) ? cluster_width() : 1;

		mbar_init(&b.q_full, 1);
		mbar_init(&b.own_full, 1);
		for (int i = 0; i < 2; i++) {
			channel_init(b.wave[i].ch, 1, (CONSUMERS + carriers) * all);
			for (int k = 0; k < SLOTS; k++)
				mbar_init(&b.wave[i].taken[k], 1);
		}
	}
	if (bug.is(not_published))
		__syncthreads();
	else
		channels_publish();

	if (threadIdx.x == 0)
		load(t, s, m, b);
	if (warpgroup == 0) {
		if (threadIdx.x == 0 || (threadIdx.x == 32 && !s.causal))
			carry(s, m, b, threadIdx.x / 32, bug);
	} else {
		consume(t, s, m, b, warpgroup - 1, bug);
	}
	if (!bug.is(leaves_early))
		cluster_sync();
}

/* ---- host ---- */

template <class Bug> static void launch(const attention &a, const struct row &row, Bug bug)
{
	row_launch(mesh_kv<Bug>, a, row, THREADS, SMEM, bug);
}

int main(int argc, char **argv)
{
	long b = 1, h = 1, n = 450, causal = 0;
	struct row row = ROW;
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head, up to 128 for each rank"},
		{"causal", &causal, "1: row i sees the keys up to i"},
		ROW_OPTIONS(row),
	};
	const struct program prog = harness_program("mesh_kv",
		"ring attention on an open row of CTAs, K and V are sent", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, prog);

	attention_require(prog, b, h, n, n, causal);
	row_require(prog, row, n);

	const attention a(b * h, n, n, D, causal != 0);

	return attention_run(prog, r, a, [&](auto bug) { launch(a, row, bug); },
		"b %ld, h %ld, n %ld, %ld ranks%s", b, h, n, row.ranks, causal ? ", causal" : "");
}
