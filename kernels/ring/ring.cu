/* ring: column sums of a big matrix of floats, streamed through shared memory
 * by TMA bulk copies. One thread fills a ring of slots, eight warps read it.
 *
 *        producer (warp 0, one lane)           consumers (warps 1..8)
 *
 *        wait empty[slot]  <---------------.
 *        arrive full[slot], expect bytes   |
 *        cp.async.bulk -> slot             |
 *             | bytes land                 |
 *             '--------------------------> wait full[slot]
 *                                          | read the slot, add up
 *                                          | __syncwarp
 *                                          '-arrive empty[slot]   (8 arrivals)
 *
 *        at the end, consumers only:
 *        write the partial sums to shared memory
 *        fence.proxy.async          orders the writes before the TMA copy
 *        bar.sync 1, 256            all warps have written
 *        thread 0: cp.reduce.async.bulk adds them to the result in global
 *        memory; then it waits until the copy has read its source
 *
 * A row is COLS floats; a slot holds ROWS rows; consumer thread t owns columns
 * 4t..4t+3. CTAs take turns on the chunks of ROWS rows. */
#include "../common/channel.cuh"
#include "../common/launch.h"

enum {
	COLS = 1024, ROWS = 4, SLOTS = 6,
	SLOT_FLOATS = ROWS * COLS,
	CONSUMER_WARPS = 8, CONSUMERS = 32 * CONSUMER_WARPS,
	THREADS = 32 + CONSUMERS,
	SMEM = SLOTS * SLOT_FLOATS * 4,
};

#define BUGS(BUG) \
	BUG(init_unpublished, CS207, "", "no __syncthreads between mbarrier.init and its first use") \
	BUG(no_full_wait, CS104, "", "consumers read a slot without waiting for its bytes") \
	BUG(wrong_parity, CS104, "", \
		"consumers wait for the previous phase, which is always complete") \
	BUG(tx_too_few, CS703, "", "16 bytes fewer are expected than are copied") \
	BUG(tx_too_many, CS703, "", "16 bytes more are expected than are copied") \
	BUG(no_empty_wait, CS107, "", "the producer refills slots that were not released") \
	BUG(early_release, CS106, "", "consumers release a slot before they read it") \
	BUG(no_syncwarp, CS106, "", "lane 0 releases a slot while other lanes may still read it") \
	BUG(all_lanes_release, CS208, "", "32 lanes of each warp arrive where one should") \
	BUG(too_few_releases, CS701, "", "empty counts one arrival more than there are") \
	BUG(no_proxy_fence, CS110, "", \
		"the partial sums go to the TMA engine without a proxy fence") \
	BUG(partial_unsynced, CS105, "", "the reduction starts before all warps wrote their sums") \
	BUG(barrier_count, CS704, "", \
		"the consumers' barrier counts the producer warp, which never arrives") \
	BUG(no_commit, CS309, "", \
		"the reduction is not committed, so the wait for its group is empty") \
	BUG(exit_pending, CS308, "", \
		"the CTA exits while the reduction still reads its shared memory")

PLANT(BUGS)

template <class Bug>
__global__ void __launch_bounds__(THREADS)
ring(const float *in, float *out, uint32_t rows, Bug bug)
{
	extern __shared__ __align__(128) float slots[];
	__shared__ __align__(128) float partial[COLS];
	__shared__ channel<SLOTS> ch;
	const uint32_t chunks = (rows + ROWS - 1) / ROWS;
	const uint32_t lane = threadIdx.x % 32;
	cursor<SLOTS> at;

	if (threadIdx.x == 0)
		channel_init(ch, 1, CONSUMER_WARPS + bug.is(too_few_releases));
	if (!bug.is(init_unpublished))
		__syncthreads();

	if (threadIdx.x < 32) {
		if (lane != 0)
			return;
		for (uint32_t i = blockIdx.x; i < chunks; i += gridDim.x, at.next()) {
			const uint32_t bytes = min(rows - i * ROWS, ROWS) * COLS * 4;
			float *slot = slots + at.slot * SLOT_FLOATS;
			const int wrong = 16 * (bug.is(tx_too_many) - bug.is(tx_too_few));

			if (!bug.is(no_empty_wait))
				channel_acquire(ch, at); // @bug too_few_releases CS701
			channel_expect(ch, at, bytes + wrong);
			// @bug no_empty_wait CS107 @bug early_release CS106 @bug no_syncwarp CS106
			bulk_load(slot, in + (size_t)i * SLOT_FLOATS, bytes, &ch.full[at.slot]);
		}
		return;
	}

	const uint32_t t = threadIdx.x - 32;
	float4 sum = {0, 0, 0, 0};

	for (uint32_t i = blockIdx.x; i < chunks; i += gridDim.x, at.next()) {
		const uint32_t n = min(rows - i * ROWS, ROWS);
		const float *slot = slots + at.slot * SLOT_FLOATS + 4 * t;

		if (bug.is(wrong_parity))
			mbar_wait(&ch.full[at.slot], at.parity ^ 1);
		else if (!bug.is(no_full_wait))
			// @bug init_unpublished CS207 @bug tx_too_few CS703 @bug tx_too_many CS703
			channel_wait(ch, at);
		if (bug.is(early_release) && lane == 0)
			channel_release(ch, at);
		for (uint32_t r = 0; r < n; r++) {
			// @bug no_full_wait CS104 @bug wrong_parity CS104
			const float4 v = *(const float4 *)(slot + r * COLS);

			sum.x += v.x;
			sum.y += v.y;
			sum.z += v.z;
			sum.w += v.w;
		}
		/* The fence orders reads by the generic proxy before the next write by
		 * TMA, __syncwarp() orders the reads of all lanes before lane 0's arrive. */
		fence_proxy_async();
		if (!bug.is(no_syncwarp))
			__syncwarp();
		if (lane == 0 && !bug.is(early_release))
			channel_release(ch, at);
		if (lane != 0 && bug.is(all_lanes_release))
			channel_release(ch, at); // @bug all_lanes_release CS208
	}

	// @bug no_proxy_fence CS110 @bug partial_unsynced CS105
	*(float4 *)(partial + 4 * t) = sum;
	if (!bug.is(no_proxy_fence))
		fence_proxy_async();
	if (!bug.is(partial_unsynced))
		// @bug barrier_count CS704
		named_barrier_sync(1, bug.is(barrier_count) ? THREADS : CONSUMERS);
	if (t != 0)
		return;
	// @bug no_proxy_fence CS110 @bug exit_pending CS308 @bug no_commit CS309
	bulk_reduce_add(out, partial, sizeof partial);
	if (!bug.is(no_commit))
		bulk_commit();
	if (!bug.is(exit_pending))
		bulk_wait_read<0>();
}

static void check(struct checker &c, const float *host, uint64_t n, const float *out)
{
	float got[COLS];
	double want[COLS] = {};

	CUDA(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
	for (uint64_t i = 0; i < n; i++)
		want[i % COLS] += host[i];
	for (int i = 0; i < COLS; i++)
		checker_see(c, i, got[i], want[i], 0);
}

template <class Bug>
static void launch(const float *in, float *out, uint32_t rows, int ctas, Bug bug)
{
	launch_grid(ring<Bug>, ctas, THREADS, SMEM, in, out, rows, bug);
}

int main(int argc, char **argv)
{
	long rows = 200, ctas = 2;
	const struct option options[] = {
		{"rows", &rows, "rows of 1024 floats"},
		{"ctas", &ctas, "thread blocks; 0: two for each SM"},
	};
	const struct program p = harness_program("ring",
		"column sums through a ring of TMA bulk copies", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);

	harness_require(rows > 0 && rows <= 1 << 20, p, "rows must be 1 to 1048576");
	if (ctas <= 0)
		ctas = 2 * harness_ctas(0);

	const uint64_t n = (uint64_t)rows * COLS;
	float *host = (float *)malloc(n * sizeof *host);
	for (uint64_t i = 0; i < n; i++)
		host[i] = 8 * harness_value(1, i);
	float *in = harness_device(host, n), *out = harness_device<float>(NULL, COLS);
	const int status = harness_run(p, r, [&](auto bug) { launch(in, out, rows, ctas, bug); },
		[&](checker &c) { check(c, host, n, out); }, 4e-9 * n, "GB/s", "%ld rows, %ld CTAs",
		rows, ctas);

	cudaFree(in);
	cudaFree(out);
	free(host);
	return status;
}
