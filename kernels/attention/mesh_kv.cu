/* mesh_kv: ring attention on an open row of ranks. A cluster is a row, each rank
 * keeps its 128 rows of Q and holds 128 of the keys; what travels is K and V.
 *
 *   rank 0 ---------- rank 1 ---------- rank 2 ---------- rank 3
 *     c0 ------------->  c0 ------------->  c0 ------------->      eastbound
 *                        c1 ------------->  c1 ------------->
 *                                           c2 ------------->
 *      <---------------- c1 <-------------- c2 <------------- c3   westbound ...
 *
 *   A chunk leaves its rank in both directions, one hop at a time, and reaches
 *   every other rank exactly once. Each direction has a warp that carries (one
 *   lane of it) and, in each rank, two slots for what comes in:
 *
 *   upstream rank            this rank                        downstream rank
 *
 *   arrive full, expect -->  carrier: wait full
 *   bulk copy (DSMEM) ---->    arrive taken of upstream
 *   wait taken  <----------'   wait taken: what I sent before has arrived, so
 *     (source read)              nothing reads its slot any more
 *   wait empty  <------------- arrive empty of upstream for that slot
 *     |          \             wait empty  <----------------  3 arrivals
 *   next copy     \            arrive full, expect, copy -->  wait full ...
 *                  \
 *                   '------- 2 consumer warpgroups: wait full, S = Q K^T,
 *                              softmax, O += P V, arrive empty of upstream
 *
 *   A copy out of shared memory has no completion at its source but the one at
 *   its destination; hence `taken`. The consumers take their own chunk, then by
 *   distance what comes from the west and from the east; nothing forces that
 *   order on the carriers. If causal, nothing travels west: no rank looks ahead.
 *
 *   The cluster barrier at the end keeps a rank until its neighbours have read
 *   from it and arrived on it for the last time.
 *
 * With --rank_axis=1 a rank is a group of CTAs of which only CTA 0 works. The
 * others return at once: nobody writes to them or waits for them, and a cluster
 * barrier counts only threads that have not exited.
 *
 * Tensors are [batch * head][row][64] halves. A row of ranks has up to 128 rows
 * of each for each of its ranks; what is missing is zero, and masked. */
#include "mesh.cuh"

#include "../common/channel.cuh"

enum {
	D = 64, CONSUMERS = 2, BM = CONSUMERS * WM, SLOTS = 2,
	THREADS = 128 * (1 + CONSUMERS), STAGED = 1,
	CHUNK_HALVES = 2 * BN * D, CHUNK_BYTES = CHUNK_HALVES * 2, /* K, then V */
	SMEM = (BM * D + (1 + 2 * SLOTS) * CHUNK_HALVES) * 2 + 1024,
	EAST = 0, WEST = 1, /* which way a wave runs */
};

#define BUGS(BUG) \
	BUG(own_not_waited, CS104, "", "sends its chunk on before TMA has brought it") \
	BUG(forward_early, CS104, "", "forwards a chunk that has not arrived") \
	BUG(not_taken, CS105, "--ranks=5 --n=640", \
		"gives a slot back while the copy to the next rank still reads it") \
	BUG(no_room, CS120, "", "sends without waiting for an empty slot") \
	BUG(released_early, CS120, "", "consumers give a slot back while O += P V is in flight") \
	BUG(stale_parity, CS121, "", "consumers forget to flip the parity on the second lap") \
	BUG(own_barrier, CS311, "", "the copy's bytes count on the sender's barrier") \
	BUG(expected_at_home, CS703, "", "the sender arms its own barrier, not the receiver's") \
	BUG(only_k_sent, CS703, "", "expects K and V, copies K") \
	BUG(carrier_uncounted, CS209, "", "empty counts the consumers but not the carrier") \
	BUG(off_the_end, CS501, "", "the last rank sends on, as in a closed ring") \
	BUG(wave_turns_back, CS701, "", "every rank waits for a chunk from each side, edges too") \
	BUG(not_published, CS502, "", "no cluster barrier between the initialisation and the first send") \
	BUG(leaves_early, CS503, "", "no cluster barrier at the end") \
	BUG(neighbour_is_silent, CS503, "--rank_axis=1", \
		"sends to the next CTA, which is not the next rank") \
	BUG(group_counted, CS701, "--rank_axis=1", "empty counts the releases of silent CTAs, too")

PLANT(BUGS)

/* Of one direction */
struct wave {
	channel<SLOTS> ch;     /* full: of what comes in; empty: of what goes out */
	uint64_t taken[SLOTS]; /* what went out has arrived */
};

struct barriers {
	uint64_t q_full, own_full;
	struct wave wave[2];
};

struct memory {
	__half *q, *own, *slots; /* slots: of the eastbound wave, of the westbound */
};

/* How many chunks this rank sees of a wave, its own among them */
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

/* The carrier of one direction: sends its rank's chunk, then what comes in. */
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
	/* nobody sends into the last slot again, and the cluster barrier is to come */
}

/* The consumer's rows of O, over all chunks there are in this rank's order: its
 * own, then one hop away from the west and from the east, then two ... */
template <class Bug>
DEVICE void attend(float (&o)[D / 2], struct softmax &r, const sizes &s, const memory &m,
	barriers &b, const __half *q, int first, Bug bug)
{
	const float scale = 1.44269504f * 0.125f; /* log2(e) / sqrt(D) */
	const int rank = my_rank(s), row = first + threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4;
	/* one thread may speak for the four warps after wgmma.wait_group */
	const bool speaks = threadIdx.x % 128 == 0;

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
		if (key + BN > s.keys || (s.causal && key + BN > first))
			mask_scores(scores, key + threadIdx.x % 4 * 2, s.keys, s.causal, row);
		softmax_step(r, scores, shrink, scale);
		scale_rows(o, shrink);
		pack_weights(p, scores);
		wgmma_fence();
		// @bug no_room CS120 @bug released_early CS120
		multiply_values<D>(o, p, chunk + BN * D);
		wgmma_commit();
		if (bug.is(released_early) && i && speaks)
			channel_release_to(w.ch, in, up);
		wgmma_wait<0>();
		if (!bug.is(released_early) && i && speaks)
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

#pragma unroll
	for (int i = 0; i < D / 2; i++)
		o[i] = 0;
	mbar_wait(&b.q_full, 0);
	attend(o, r, s, m, b, q, first, bug);

	const float norm[] = {1 / quad_sum(r.sum[0]), 1 / quad_sum(r.sum[1])};

	/* Each warp lays O over its own rows of Q, which it has multiplied. */
	stage_rows(q, o, norm);
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
	/* The swizzle pattern repeats every 1024 bytes and starts there. */
	__half *q = (__half *)((uintptr_t)(smem + 1023) & ~(uintptr_t)1023);
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
	if (!bug.is(leaves_early)) {
		cluster_arrive();
		cluster_wait();
	}
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
	const struct program prog = {"mesh_kv", "ring attention on an open row of CTAs, K and V travel",
		__FILE__, options, sizeof options / sizeof *options, bugs, sizeof bugs / sizeof *bugs};
	const struct run r = harness_args(argc, argv, prog);
	struct checker c = {};

	attention_require(prog, b, h, n, n, causal);
	row_require(prog, row, n);

	const attention a(b * h, n, n, D, causal != 0);

	if (r.bug >= 0)
		launch(a, row, planted_bug{r.bug});
	else
		launch(a, row, no_bug{});
	CUDA(cudaDeviceSynchronize());

	if (r.check)
		attention_check(c, a);
	if (r.bench) {
		const double time = harness_time([&] { launch(a, row, no_bug{}); });

		printf("mesh_kv: b %ld, h %ld, n %ld, %ld ranks%s: %.3f ms, %.1f TFLOP/s\n", b, h, n,
			row.ranks, causal ? ", causal" : "", time * 1e3, attention_tflops(a, time));
	}
	return r.check ? checker_verdict(c, prog) : 0;
}
