/* blackwell: attention forward on Blackwell, O = softmax(Q K^T / sqrt(D)) V for each head. A CTA,
 * or a pair of CTAs, works on two groups of 128 rows of Q per CTA, one item after the other. Scores
 * S, weights P and O are in tensor memory.
 *
 *   load         products (1 thread)     softmax 0, 1            correction        store
 *   (1 thread)                           (warpgroup each)        (warpgroup)       (1 thread)
 *
 *   Q -> q_full --> S = Q K(0)^T
 *   K, V -> full    commit s_full ----> S to registers
 *                                        P to tensor memory
 *     .------------ wait p_full <------- arrive p_full
 *     |             O += P V(j)
 *     |             S = Q K(j+1)^T
 *     |             commit s_full ----> S to registers
 *     |                                  factor for O
 *     |                                  arrive stat_full -----> wait stat_full
 *     |                                                          O *= factor
 *     |             wait corrected <---------------------------- arrive corrected
 *     |             O += P V(j+1) ...    P ...
 *     |
 *     |             last: commit o_full   sum
 *     |                                  arrive sum_full ------> wait sum_full, o_full
 *     |             wait corrected <---------------------------- arrive corrected
 *     |             (S of the next item)                         wait stage_empty <---.
 *     '---> empty, q_empty                                       O / sum -> staging   |
 *           (commits)                                            arrive staged ----> TMA, wait,
 *                   wait o_empty <------------------------------ arrive o_empty    arrive
 *                   (O of the next item)                                           stage_empty
 *
 *   S and P of a group share columns: P replaces the scores when they have been read, and the next
 *   scores replace P: O += P V(j) is issued before S = Q K(j+1)^T, and the tensor core executes
 *   them in that order. The statistics are beside P.
 *
 * --ctas=2: a pair of CTAs, cta_group::2, has 256 rows in each group. K is split by keys and V by
 * columns: each CTA loads one half into its own shared memory. A product is issued by the CTA of
 * rank 0, which reads the operands of both and writes to the tensor memory of both. So
 *
 *   full, q_full               of rank 0 count the bytes that both CTAs load
 *   p_full, corrected, o_empty of rank 0 count arrivals of the warps of both
 *   commits                    arrive on the barriers of both CTAs
 *
 * At the start one fence and one cluster barrier publish the barriers. At the end the thread that
 * loads waits for the last releases, so that all commits have arrived; no thread waits for the last
 * arrivals of the peer on o_empty, so the CTAs pass a cluster barrier before they exit.
 *
 * Tensors are [batch * head][row][D] halves. TMA reads rows beyond a head's last as zero and does
 * not write them; the scores of keys beyond it are minus infinity.
 *
 * Loops over the groups in which roles wait are hardly ever unrolled: so a wait or an arrival is one
 * instruction, whose line a report names. */
#include "blackwell.cuh"
#include "hopper_host.h"

#include "../common/channel.cuh"

enum {
	SLOTS = 3,
	CORRECTION = 4 * GROUPS, PRODUCTS = CORRECTION + 4, LOADS, STORES, /* first warps */
	THREADS = 32 * (PRODUCTS + 4),
};

#define BUGS(BUG) \
	BUG(q_not_waited, CS610, "", "multiplies without waiting for Q") \
	BUG(k_not_waited, CS610, "", "multiplies by K without waiting for its bytes") \
	BUG(v_parity, CS610, "", "waits for V with the parity of the previous lap") \
	BUG(q_bytes, CS703, "", "expects the bytes of half of the rows of Q") \
	BUG(freed_by_arrive, CS609, "", \
		"releases V by an arrival of its own, not by a commit, while O += P V reads it") \
	BUG(v_freed_by_first, CS609, "", "releases V after the product of the first group") \
	BUG(q_freed_early, CS609, "", "commits the release of Q before the last S = Q K^T") \
	BUG(q_empty_not_waited, CS610, "", "loads the next Q while products read the last one") \
	BUG(s_not_waited, CS602, "", "loads S, and then waits for the commit") \
	BUG(s_committed_early, CS604, "", "commits before the last of the MMAs that make S") \
	BUG(s_no_wait_ld, CS602, "", \
		"hands the columns of S over while loads from them are in flight") \
	BUG(p_not_waited, CS605, "", "issues O += P V, and then waits for P") \
	BUG(p_arrives_early, CS601, "", "announces P before storing it") \
	BUG(p_no_wait_st, CS603, "", "announces P while its stores are in flight") \
	BUG(p_of_first, CS604, "", "the second group stores P into the columns of the first") \
	BUG(sum_over_p, CS601, "", "stores the sum into a column of P, which O += P V still reads") \
	BUG(stat_no_wait_st, CS603, "", "announces a factor while its store is in flight") \
	BUG(sum_as_stat, CS209, "", \
		"announces the sum on the barrier of the factors, one of which may not have been taken") \
	BUG(sum_no_wait_ld, CS602, "", "hands the sum's column over while the load is in flight") \
	BUG(sum_overwritten, CS602, "", "makes the next item's S before the sum has been read") \
	BUG(o_read_early, CS604, "", "loads from the final O before it waits for the last commit") \
	BUG(o_no_wait_st, CS603, "", "hands O back while stores of rescaled values are in flight") \
	BUG(rescale_not_waited, CS601, "", \
		"issues O += P V, and then waits until O has been rescaled") \
	BUG(corrected_early, CS209, "--n=700 --causal=1", \
		"announces the last correction before the one before it has been waited for") \
	BUG(o_no_wait_ld, CS602, "", \
		"hands O over to the next item while loads from it are in flight") \
	BUG(o_overwritten, CS602, "", "begins the next item's O before the last one has been read") \
	BUG(o_not_cleared, CS612, "", "adds the first P V to O, which nothing has initialised") \
	BUG(s_no_fence, CS607, "", "no tcgen05.fence between the wait for S and the loads") \
	BUG(p_no_fence, CS607, "", "no tcgen05.fence between the stores of P and the arrival") \
	BUG(p_wait_no_fence, CS607, "", "no tcgen05.fence between the wait for P and O += P V") \
	BUG(o_no_fence, CS607, "", "no tcgen05.fence between the loads from O and the arrival") \
	BUG(s_overlaps, CS605, "", "the scores of the two groups overlap by 64 columns") \
	BUG(o_over_s, CS605, "", "O begins in the columns of the second group's P") \
	BUG(lanes_of_next, CS630, "", "correction warps load the lanes of the next warp") \
	BUG(few_columns, CS620, "", "allocates 256 columns: O is outside") \
	BUG(permit_first, CS624, "", "gives up the permit before it allocates") \
	BUG(address_unsynced, CS102, "", \
		"reads the address that tcgen05.alloc writes without a barrier") \
	BUG(freed_in_use, CS621, "", "deallocates after the last commit, before O has been read") \
	BUG(never_freed, CS622, "", "does not deallocate") \
	BUG(freed_partly, CS627, "", "deallocates half of the columns") \
	BUG(no_proxy_fence, CS110, "", "O goes to the TMA engine without a proxy fence") \
	BUG(staged_early, CS102, "", "announces O before it is staged") \
	BUG(stage_not_waited, CS105, "", \
		"stages O, and then waits until the last store has read the area") \
	BUG(stage_freed_early, CS105, "", "releases the staging area before the store has read it") \
	BUG(exit_pending, CS308, "--n=256", \
		"the CTA exits while a store still reads its shared memory") \
	BUG(no_drain, CS221, "--ctas=2", \
		"a CTA exits before the commits that release its last Q arrive") \
	BUG(own_diagonal, CS701, "--causal=1", \
		"the first group ends at its own diagonal, although products go on") \
	BUG(invalidates_early, CS205, "--ctas=2", \
		"a CTA invalidates a barrier on which its peer has yet to arrive for the last time") \
	BUG(leaves_early, CS503, "--ctas=2", \
		"a CTA exits before its peer has made its last arrivals on its barriers") \
	BUG(primed_at_init, CS502, "--ctas=2", \
		"a CTA arrives on its peer's barrier right after it has initialised its own") \
	BUG(published_at_home, CS502, "--ctas=2", \
		"__syncthreads instead of a cluster barrier publishes the barriers") \
	BUG(no_init_fence, CS207, "--ctas=2", \
		"a relaxed cluster barrier with no mbarrier-init fence publishes the barriers") \
	BUG(o_of_one, CS209, "--ctas=2", \
		"o_empty counts the warps of one CTA, and those of two arrive") \
	BUG(p_of_issuer, CS209, "--ctas=2", "only the CTA that issues the products announces P") \
	BUG(s_at_home, CS701, "--ctas=2", "the commit of S arrives in the issuing CTA only") \
	BUG(freed_at_home, CS703, "--ctas=2", "slots are released in the issuing CTA only") \
	BUG(own_bytes, CS211, "--ctas=2", "expects the bytes of one CTA's half of a tile") \
	BUG(peer_not_awaited, CS611, "--ctas=2", \
		"each CTA counts its own bytes, and the issuing thread waits for those of its CTA only") \
	BUG(peer_not_freed, CS211, "--ctas=2", \
		"the peer refills its slots without waiting for the products that read them") \
	BUG(one_allocates, CS707, "--ctas=2", "only the issuing CTA allocates for the pair")

PLANT(BUGS)

struct tensors {
	CUtensorMap q, k, v, o;
};

template <int D, int CTAS> struct tiles {
	static constexpr int GROUP = BM * D;
	static constexpr int SMEM = (2 * GROUPS * GROUP + SLOTS * tile<D, CTAS>::HALVES) * 2 + 1024;

	__half *q, *o, *kv;
};

struct channels {
	channel<SLOTS> kv;
	uint64_t q_full[GROUPS], q_empty[GROUPS];
	uint64_t s_full[GROUPS], p_full[GROUPS];
	uint64_t stat_full[GROUPS], sum_full[GROUPS], corrected[GROUPS];
	uint64_t o_full[GROUPS], o_empty[GROUPS];
	uint64_t staged[GROUPS], stage_empty[GROUPS];
	uint32_t tmem;
};

/* Columns of the scores and of O of a group */
template <class Bug> DEVICE uint32_t scores_of(uint32_t tmem, int g, Bug bug)
{
	return tmem + g * (bug.is(s_overlaps) ? BN - 64 : BN);
}

template <int D, class Bug> DEVICE uint32_t output_of(uint32_t tmem, int g, Bug bug)
{
	return tmem + GROUPS * BN - (bug.is(o_over_s) ? 64 : 0) + g * D;
}

/* ---- load ---- */

/* Loads to this CTA; the bytes count on the barrier of the CTA that issues the products, which
 * alone says how many both load. */
template <int CTAS, class Bug> struct loader {
	uint64_t *full;
	Bug bug;

	__device__ __forceinline__ loader(uint64_t *full, uint32_t bytes, Bug bug)
		: full(full), bug(bug)
	{
		const bool own = bug.is(own_bytes) || bug.is(peer_not_awaited);

		if (CTAS == 1 || cluster_rank() == 0 || bug.is(peer_not_awaited))
			mbar_arrive_expect_tx(full, own ? bytes : bytes * CTAS);
	}

	__device__ __forceinline__ void operator()(__half *to, const CUtensorMap *map, int x, int y,
		int z)
	{
		const int rank = bug.is(peer_not_awaited) ? cluster_rank() : 0;

		// @bug q_not_waited CS610 @bug k_not_waited CS610 @bug v_parity CS610
		// @bug freed_by_arrive CS609 @bug v_freed_by_first CS609 @bug q_freed_early CS609
		// @bug q_empty_not_waited CS610 @bug published_at_home CS502
		// @bug no_init_fence CS207 @bug own_bytes CS211 @bug peer_not_awaited CS611
		// @bug peer_not_freed CS211
		group_load<CTAS>(to, map, x, y, z, CTAS == 1 ? smem_at(full) : smem_of(full, rank));
	}
};

/* Waits until the products that read the slot are complete. */
template <int CTAS, class Bug>
DEVICE void acquire(channel<SLOTS> &c, cursor<SLOTS> at, Bug bug)
{
	if (bug.is(peer_not_freed) && cluster_rank() > 0)
		return;
	wait<CTAS>(&c.empty[at.slot], at.parity ^ 1);
}

template <int D, int CTAS, class Bug>
DEVICE void load(const tensors &t, const sizes &s, const tiles<D, CTAS> &m, channels &ch, Bug bug)
{
	using T = tile<D, CTAS>;
	const int rank = CTAS == 1 ? 0 : cluster_rank();
	items<CTAS> list{s};
	cursor<SLOTS> kv;
	uint32_t n = 0;
	item i;

	for (; list.next(i); n++) {
#pragma unroll 1
		for (int g = 0; g < GROUPS; g++) {
			if (!bug.is(q_empty_not_waited))
				wait<CTAS>(&ch.q_empty[g], n - 1);
			loader<CTAS, Bug> q(&ch.q_full[g], (bug.is(q_bytes) ? BM / 2 : BM) * D * 2, bug);
			for (int x = 0; x < D; x += 64)
				q(m.q + g * m.GROUP + x * BM, &t.q, x, first_row<CTAS>(i, g), i.head);
		}
		for (int j = 0; j < i.tiles; j++) {
			__half *to = m.kv + kv.slot * T::HALVES;

			acquire<CTAS>(ch.kv, kv, bug);
			loader<CTAS, Bug> k(&ch.kv.full[kv.slot], T::HALVES * 2, bug);
			for (int x = 0; x < D; x += 64)
				k(to + x * T::KEYS, &t.k, x, j * BN + rank * T::KEYS, i.head);
			kv.next();

			to = m.kv + kv.slot * T::HALVES;
			acquire<CTAS>(ch.kv, kv, bug);
			loader<CTAS, Bug> v(&ch.kv.full[kv.slot], T::HALVES * 2, bug);
			for (int x = 0; x < T::COLS; x += T::BLOCK)
				v(to + x * BN, &t.v, rank * T::COLS + x, j * BN, i.head);
			kv.next();
		}
	}
	/* The commits that release the last slots have arrived. */
#pragma unroll 1
	for (int k = 0; k < SLOTS; k++, kv.next())
		wait<CTAS>(&ch.kv.empty[kv.slot], kv.parity ^ 1); // the last
#pragma unroll 1
	for (int g = 0; g < GROUPS && !bug.is(no_drain); g++)
		wait<CTAS>(&ch.q_empty[g], n - 1); // the last
}

/* ---- products ---- */

/* Announces S. */
template <int CTAS, class Bug> DEVICE void commit_scores(uint64_t *s_full, Bug bug)
{
	// @bug p_of_issuer CS209
	commit<CTAS>(s_full, bug.is(s_at_home) ? 1 : (1 << CTAS) - 1);
}

/* Releases a slot. */
template <int CTAS, class Bug> DEVICE void release(uint64_t *empty, Bug bug)
{
	commit<CTAS>(empty, bug.is(freed_at_home) ? 1 : (1 << CTAS) - 1);
}

template <int D, int CTAS, class Bug>
DEVICE void multiply(const sizes &s, const tiles<D, CTAS> &m, channels &ch, uint32_t tmem, Bug bug)
{
	using T = tile<D, CTAS>;
	items<CTAS> list{s};
	cursor<SLOTS> k, v;
	uint32_t n = 0, t = 0; /* items and tiles before this one */
	item i;

	for (; list.next(i); n++) {
		if (!bug.is(k_not_waited))
			wait<CTAS>(&ch.kv.full[k.slot], k.parity);
#pragma unroll 1
		for (int g = 0; g < GROUPS; g++) {
			if (!bug.is(q_not_waited))
				// @bug q_bytes CS703
				wait<CTAS>(&ch.q_full[g], n);
			if (!bug.is(sum_overwritten))
				wait<CTAS>(&ch.corrected[g], t - 1); /* the last sum has been read */
			tcgen05_fence_after();
			// @bug q_not_waited CS610 @bug k_not_waited CS610 @bug s_not_waited CS602
			// @bug p_not_waited CS605 @bug sum_no_wait_ld CS602
			// @bug sum_overwritten CS602 @bug s_no_fence CS607 @bug s_overlaps CS605
			// @bug o_over_s CS605 @bug peer_not_awaited CS611
			multiply_keys<D, CTAS>(scores_of(tmem, g, bug), m.q + g * m.GROUP,
				m.kv + k.slot * T::HALVES, 0, bug.is(s_committed_early) ? D - 16 : D);
			commit_scores<CTAS>(&ch.s_full[g], bug);
			if (bug.is(s_committed_early))
				// @bug s_committed_early CS604
				multiply_keys<D, CTAS>(scores_of(tmem, g, bug), m.q + g * m.GROUP,
					m.kv + k.slot * T::HALVES, D - 16);
		}
		release<CTAS>(&ch.kv.empty[k.slot], bug);
		for (int j = 0; j < i.tiles; j++, t++) {
			const bool last = j + 1 == i.tiles;

			v = k;
			v.next();
			k = v;
			k.next();
			// @bug freed_at_home CS703
			wait<CTAS>(&ch.kv.full[v.slot], bug.is(v_parity) ? v.parity ^ 1 : v.parity);
			if (!last && !bug.is(k_not_waited))
				wait<CTAS>(&ch.kv.full[k.slot], k.parity);
#pragma unroll 1
			for (int g = 0; g < GROUPS; g++) {
				const bool add = j > 0 || bug.is(o_not_cleared);

				if (!bug.is(p_not_waited))
					// @bug s_at_home CS701
					wait<CTAS>(&ch.p_full[g], t);
				if (j == 0 && !bug.is(o_overwritten))
					wait<CTAS>(&ch.o_empty[g], n - 1);
				if (j > 0 && !bug.is(rescale_not_waited))
					// @bug corrected_early CS209
					wait<CTAS>(&ch.corrected[g], t - 1);
				if (!bug.is(p_wait_no_fence))
					tcgen05_fence_after();
				// @bug v_parity CS610 @bug freed_by_arrive CS609
				// @bug v_freed_by_first CS609 @bug p_not_waited CS605
				// @bug p_arrives_early CS601 @bug p_no_wait_st CS603
				// @bug sum_over_p CS601 @bug o_read_early CS604
				// @bug o_no_wait_st CS603 @bug rescale_not_waited CS601
				// @bug o_no_wait_ld CS602 @bug o_overwritten CS602
				// @bug o_not_cleared CS612 @bug p_no_fence CS607
				// @bug p_wait_no_fence CS607 @bug o_no_fence CS607
				// @bug o_over_s CS605 @bug few_columns CS620
				multiply_values<D, CTAS>(output_of<D>(tmem, g, bug),
					scores_of(tmem, g, bug) + WEIGHTS, m.kv + v.slot * T::HALVES, add);
				if (bug.is(p_not_waited))
					wait<CTAS>(&ch.p_full[g], t);
				if (bug.is(rescale_not_waited) && j > 0)
					wait<CTAS>(&ch.corrected[g], t - 1);
				if (last)
					commit<CTAS>(&ch.o_full[g]);
				if (bug.is(v_freed_by_first) && g == 0)
					release<CTAS>(&ch.kv.empty[v.slot], bug);
				if (last)
					continue;
				if (bug.is(q_freed_early) && j + 2 == i.tiles)
					commit<CTAS>(&ch.q_empty[g]);
				// @bug q_freed_early CS609 @bug q_empty_not_waited CS610
				// @bug s_no_wait_ld CS602 @bug p_of_first CS604
				multiply_keys<D, CTAS>(scores_of(tmem, g, bug), m.q + g * m.GROUP,
					m.kv + k.slot * T::HALVES);
				commit_scores<CTAS>(&ch.s_full[g], bug);
			}
			if (bug.is(freed_by_arrive))
				mbar_arrive(&ch.kv.empty[v.slot]);
			else if (!bug.is(v_freed_by_first))
				release<CTAS>(&ch.kv.empty[v.slot], bug);
			if (!last)
				release<CTAS>(&ch.kv.empty[k.slot], bug);
		}
		for (int g = 0; g < GROUPS && !bug.is(q_freed_early); g++)
			// @bug no_drain CS221
			commit<CTAS>(&ch.q_empty[g]);
	}
}

/* ---- softmax ---- */

template <int D, int CTAS, class Bug>
DEVICE void weigh_rows(const sizes &s, channels &ch, uint32_t tmem, int g, Bug bug)
{
	const uint32_t at = scores_of(tmem, g, bug) + warp_lanes();
	const uint32_t weights = bug.is(p_of_first) ? tmem + WEIGHTS + warp_lanes() : at + WEIGHTS;
	items<CTAS> list{s};
	uint32_t t = 0;
	item i;

	while (list.next(i)) {
		const int row = first_row<CTAS>(i, g) + threadIdx.x % 128;
		const int keys = s.causal ? min(s.n, row + 1) : s.n;
		const int tiles = bug.is(own_diagonal) ? first_row<CTAS>(i, g) / BM + 1 : i.tiles;
		struct softmax r;

		for (int j = 0; j < tiles; j++, t++) {
			float x[BN];

			if (bug.is(s_not_waited))
				// @bug s_not_waited CS602
				load_scores(x, at);
			wait<CTAS>(&ch.s_full[g], t);
			if (!bug.is(s_no_fence))
				tcgen05_fence_after();
			if (!bug.is(s_not_waited))
				// @bug s_committed_early CS604 @bug s_no_wait_ld CS602
				// @bug s_no_fence CS607
				load_scores(x, at, !bug.is(s_no_wait_ld));

			const float shrink = new_maximum(r, x, keys - j * BN, log2_scale<D>);

			if (j > 0) {
				// @bug stat_no_wait_st CS603
				tmem_store(at + SHRINK, __float_as_uint(shrink));
				if (!bug.is(stat_no_wait_st))
					tmem_wait_stores();
				tcgen05_fence_before();
				// @bug sum_as_stat CS209
				arrive(&ch.stat_full[g]);
			}
			weigh(r, x, log2_scale<D>);
			if (bug.is(p_arrives_early))
				arrive_at_issuer<CTAS>(&ch.p_full[g]);
			// @bug p_arrives_early CS601 @bug p_no_wait_st CS603 @bug p_of_first CS604
			// @bug p_no_fence CS607 @bug p_wait_no_fence CS607
			store_weights(weights, x);
			if (!bug.is(p_no_wait_st))
				tmem_wait_stores();
			if (!bug.is(p_no_fence))
				tcgen05_fence_before();
			if (!bug.is(p_arrives_early) && (!bug.is(p_of_issuer) || cluster_rank() == 0))
				arrive_at_issuer<CTAS>(&ch.p_full[g]);
			r.sum = r.sum * shrink + sum_of(x);
		}
		// @bug sum_over_p CS601
		tmem_store(bug.is(sum_over_p) ? at + WEIGHTS : at + SUM, __float_as_uint(r.sum));
		tmem_wait_stores();
		tcgen05_fence_before();
		arrive(bug.is(sum_as_stat) ? &ch.stat_full[g] : &ch.sum_full[g]);
	}
}

/* ---- correction ---- */

/* Waits for a statistic of this thread's row and loads it. */
DEVICE float statistic(uint64_t *full, uint32_t phase, uint32_t at, bool complete = true)
{
	uint32_t v;

	mbar_wait(full, phase & 1);
	tcgen05_fence_after();
	// @bug stat_no_wait_st CS603 @bug sum_no_wait_ld CS602 @bug sum_overwritten CS602
	// @bug freed_in_use CS621
	tmem_load(v, at);
	if (complete)
		tmem_wait_loads();
	tmem_loaded(v);
	return __uint_as_float(v);
}

/* Rescales this thread's row of O, before the product of the next tile is added. The last product
 * is complete: the commit of the scores from which the factor was computed came after it. */
template <int D, int CTAS, class Bug>
DEVICE void rescale(channels &ch, uint32_t tmem, int g, uint32_t stat, Bug bug)
{
	const uint32_t o = output_of<D>(tmem, g, bug) + warp_lanes();
	const float shrink = statistic(&ch.stat_full[g], stat,
		scores_of(tmem, g, bug) + warp_lanes() + SHRINK);

	if (__any_sync(~0u, shrink != 1)) {
		// @bug o_no_wait_st CS603 @bug rescale_not_waited CS601
		scale_output<D>(o, shrink);
		if (!bug.is(o_no_wait_st))
			tmem_wait_stores();
	}
	tcgen05_fence_before();
	arrive_at_issuer<CTAS>(&ch.corrected[g]);
}

/* Stages O divided by the sum of the weights. `n`: number of the item */
template <int D, int CTAS, class Bug>
DEVICE void stage(__half *tile, channels &ch, uint32_t tmem, int g, uint32_t stat, uint32_t n,
	Bug bug)
{
	const uint32_t at = scores_of(tmem, g, bug) + (bug.is(sum_over_p) ? WEIGHTS : SUM);
	const uint32_t o = output_of<D>(tmem, g, bug);
	const uint32_t lanes = bug.is(lanes_of_next) ? (warp_lanes() + (32 << 16)) % (128 << 16)
		: warp_lanes();
	const bool shared = bug.is(sum_as_stat);

	const float sum = statistic(shared ? &ch.stat_full[g] : &ch.sum_full[g], shared ? stat : n,
		at + warp_lanes(), !bug.is(sum_no_wait_ld));

	if (bug.is(corrected_early))
		// @bug corrected_early CS209
		arrive_at_issuer<CTAS>(&ch.corrected[g]);
	if (bug.is(o_read_early)) {
		uint32_t v[32];

		// @bug o_read_early CS604
		tmem_load(v, o + lanes);
		tmem_wait_loads();
	}
	wait<CTAS>(&ch.o_full[g], n);
	tcgen05_fence_before();
	/* Not before the wait for o_full: the phase before has been waited for by then. */
	if (!bug.is(corrected_early))
		arrive_at_issuer<CTAS>(&ch.corrected[g]); // the sum has been read
	tcgen05_fence_after();
	if (!bug.is(stage_not_waited))
		mbar_wait(&ch.stage_empty[g], n & 1 ^ 1);
	if (bug.is(staged_early))
		arrive(&ch.staged[g]);
	for (int x = 0; x < D; x += 32) {
		uint32_t v[32];

		// @bug o_no_wait_ld CS602 @bug o_overwritten CS602 @bug o_no_fence CS607
		// @bug lanes_of_next CS630
		tmem_load(v, o + lanes + x);
		if (bug.is(o_no_wait_ld) && x + 32 == D)
			arrive_at_issuer<CTAS>(&ch.o_empty[g]);
		tmem_wait_loads();
		tmem_loaded(v);
		// @bug no_proxy_fence CS110 @bug staged_early CS102 @bug stage_not_waited CS105
		// @bug stage_freed_early CS105
		stage_columns(tile, threadIdx.x % 128, x, v, 1 / sum);
	}
	if (bug.is(stage_not_waited))
		mbar_wait(&ch.stage_empty[g], n & 1 ^ 1);
	if (!bug.is(o_no_fence))
		tcgen05_fence_before();
	if (!bug.is(o_no_wait_ld))
		// @bug invalidates_early CS205 @bug leaves_early CS503 @bug o_of_one CS209
		arrive_at_issuer<CTAS>(&ch.o_empty[g]);
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	if (!bug.is(staged_early))
		arrive(&ch.staged[g]);
}

template <int D, int CTAS, class Bug>
DEVICE void correct(const sizes &s, const tiles<D, CTAS> &m, channels &ch, uint32_t tmem, Bug bug)
{
	items<CTAS> list{s};
	uint32_t n = 0, stat = 0; /* items and factors before this one */
	item i;

	for (; list.next(i); n++) {
		for (int j = 0; j + 1 < i.tiles; j++, stat++)
#pragma unroll 1
			for (int g = 0; g < GROUPS; g++)
				rescale<D, CTAS>(ch, tmem, g, stat, bug);
#pragma unroll 1
		for (int g = 0; g < GROUPS; g++)
			stage<D, CTAS>(m.o + g * m.GROUP, ch, tmem, g, stat, n, bug);
		if (bug.is(sum_as_stat))
			stat++;
	}
}

/* ---- store ---- */

template <int D, int CTAS, class Bug>
DEVICE void store(const tensors &t, const sizes &s, const tiles<D, CTAS> &m, channels &ch, Bug bug)
{
	items<CTAS> list{s};
	uint32_t n = 0;
	item i;

	for (; list.next(i); n++)
		for (int g = 0; g < GROUPS; g++) {
			// @bug own_diagonal CS701
			mbar_wait(&ch.staged[g], n & 1);
			for (int x = 0; x < D; x += 64)
				// @bug no_proxy_fence CS110 @bug staged_early CS102
				// @bug stage_not_waited CS105 @bug stage_freed_early CS105
				// @bug exit_pending CS308
				tensor_store(&t.o, x, first_row<CTAS>(i, g), i.head, m.o + g * m.GROUP + x * BM);
			bulk_commit();
			if (bug.is(stage_freed_early))
				mbar_arrive(&ch.stage_empty[g]);
			if (!bug.is(exit_pending))
				bulk_wait_read<0>();
			if (!bug.is(stage_freed_early))
				mbar_arrive(&ch.stage_empty[g]);
		}
}

/* ---- the kernel ---- */

template <int CTAS, class Bug> DEVICE void init(channels &ch, Bug bug)
{
	channel_init(ch.kv, 1, 1);
	if (bug.is(primed_at_init))
		// @bug primed_at_init CS502
		mbar_arrive_at(&ch.kv.empty[0], 1 - cluster_rank());
	for (int g = 0; g < GROUPS; g++) {
		// @bug no_init_fence CS207
		mbar_init(&ch.q_full[g], 1);
		mbar_init(&ch.q_empty[g], 1);
		mbar_init(&ch.s_full[g], 1);
		mbar_init(&ch.p_full[g], bug.is(p_of_issuer) ? 4 : 4 * CTAS);
		mbar_init(&ch.stat_full[g], 4);
		mbar_init(&ch.sum_full[g], 4);
		mbar_init(&ch.corrected[g], 4 * CTAS);
		mbar_init(&ch.o_full[g], 1);
		mbar_init(&ch.o_empty[g], bug.is(o_of_one) ? 4 : 4 * CTAS);
		mbar_init(&ch.staged[g], 4);
		mbar_init(&ch.stage_empty[g], 1);
	}
}

template <int D, int CTAS, class Bug>
__global__ void __launch_bounds__(THREADS, 1)
blackwell(const __grid_constant__ tensors t, const sizes s, Bug bug)
{
	extern __shared__ __align__(1024) unsigned char smem[];
	__shared__ channels ch;
	__half *q = first_tile(smem), *o = q + GROUPS * tiles<D, CTAS>::GROUP;
	const tiles<D, CTAS> m = {q, o, o + GROUPS * tiles<D, CTAS>::GROUP};
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

	const uint32_t columns = bug.is(few_columns) ? 256 : COLUMNS;
	const bool issuer = CTAS == 1 || cluster_rank() == 0;

	if (threadIdx.x == 0)
		init<CTAS>(ch, bug);
	if (bug.is(published_at_home))
		__syncthreads();
	else if (bug.is(no_init_fence))
		cluster_sync_relaxed();
	else
		channels_publish();
	if (warp == PRODUCTS) {
		if (bug.is(permit_first))
			tmem_relinquish<CTAS>();
		if (issuer || !bug.is(one_allocates))
			// @bug permit_first CS624 @bug address_unsynced CS102
			// @bug never_freed CS622 @bug freed_partly CS627 @bug one_allocates CS707
			tmem_alloc<CTAS>(&ch.tmem, columns);
		tmem_relinquish<CTAS>();
		tcgen05_fence_before();
	}
	if (!bug.is(address_unsynced))
		__syncthreads();
	tcgen05_fence_after();

	// @bug address_unsynced CS102
	const uint32_t tmem = ch.tmem;

	if (warp < CORRECTION) {
		registers_inc<192>();
		weigh_rows<D, CTAS>(s, ch, tmem, warp / 4, bug);
	} else if (warp < PRODUCTS) {
		registers_dec<96>();
		correct<D, CTAS>(s, m, ch, tmem, bug);
	} else {
		registers_dec<32>();
		if (warp == PRODUCTS && lane == 0 && issuer)
			multiply<D, CTAS>(s, m, ch, tmem, bug);
		else if (warp == LOADS && lane == 0)
			load<D, CTAS>(t, s, m, ch, bug);
		else if (warp == STORES && lane == 0)
			store<D, CTAS>(t, s, m, ch, bug);
		__syncwarp();
	}
	if (bug.is(freed_in_use) && warp == PRODUCTS)
		// @bug freed_in_use CS621
		tmem_dealloc<CTAS>(tmem, columns);
	if (bug.is(invalidates_early)) {
		__syncthreads();
		if (threadIdx.x == 0)
			for (int g = 0; g < GROUPS; g++)
				// @bug invalidates_early CS205
				mbar_inval(&ch.o_empty[g]);
	}
	tcgen05_fence_before();
	if (CTAS == 1 || bug.is(leaves_early))
		__syncthreads();
	else
		cluster_sync();
	tcgen05_fence_after();
	if (bug.is(never_freed) || bug.is(freed_in_use))
		return;
	if (warp == PRODUCTS)
		// @bug freed_partly CS627
		tmem_dealloc<CTAS>(tmem, bug.is(freed_partly) ? columns / 2 : columns);
// @bug exit_pending CS308
}

/* ---- host ---- */

template <int D, int CTAS, class Bug>
static void launch(const tensors &t, const sizes &s, long groups, Bug bug)
{
	const long rows = GROUPS * BM * CTAS, all = (s.n + rows - 1) / rows * s.heads;
	cluster_launch run(dim3((all < groups ? all : groups) * CTAS), dim3(CTAS), THREADS,
		tiles<D, CTAS>::SMEM);

	run(blackwell<D, CTAS, Bug>, t, s, bug);
}

template <class Bug>
static void launch(const tensors &t, const sizes &s, long d, long ctas, long groups, Bug bug)
{
	if (d == 64)
		ctas == 1 ? launch<64, 1>(t, s, groups, bug) : launch<64, 2>(t, s, groups, bug);
	else
		ctas == 1 ? launch<128, 1>(t, s, groups, bug) : launch<128, 2>(t, s, groups, bug);
}

int main(int argc, char **argv)
{
	long b = 1, h = 1, n = 600, d = 64, causal = 0, ctas = 1, grid = 1;
	const struct option options[] = {
		{"b", &b, "batches"},
		{"h", &h, "heads"},
		{"n", &n, "rows of Q, K and V of each head"},
		{"d", &d, "columns of Q, K, V and O: 64 or 128"},
		{"causal", &causal, "1: row i sees the keys up to i"},
		{"ctas", &ctas, "CTAs that multiply together: 1 or 2"},
		{"grid", &grid, "CTAs, or pairs of them, that share the work; 0: one for each SM or two"},
	};
	const struct program prog = harness_program("blackwell",
		"attention forward on Blackwell, S, P and O in tensor memory, by CTAs or pairs of CTAs",
		__FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, prog);

	attention_require(prog, b, h, n, n, causal);
	harness_require(d == 64 || d == 128, prog, "d must be 64 or 128");
	harness_require(ctas == 1 || ctas == 2, prog, "ctas must be 1 or 2");
	harness_require(grid >= 0, prog, "grid must not be negative");

	const attention a(b * h, n, n, d, causal != 0);
	const long keys = BN / ctas, block = d / ctas < 64 ? d / ctas : 64;
	const tensors t = {
		heads_map(a.q.device, b * h, n, d, BM), heads_map(a.k.device, b * h, n, d, keys),
		heads_map(a.v.device, b * h, n, d, BN, block), heads_map(a.out, b * h, n, d, BM),
	};
	const sizes s = {(int)n, (int)(b * h), causal != 0};
	const long groups = grid ? grid : harness_ctas(0) / ctas;

	return attention_run(prog, r, a, [&](auto bug) { launch(t, s, d, ctas, groups, bug); },
		"b %ld, h %ld, n %ld, d %ld%s, %ld CTAs together", b, h, n, d, causal ? ", causal" : "",
		ctas);
}
