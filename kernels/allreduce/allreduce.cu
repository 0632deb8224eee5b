/* allreduce: sums of the vectors of several devices, in each of them, by kernels that read the
 * memory of their peers. One kernel runs on each device (a rank), all at the same time; CTA b of
 * every rank works on chunk b of the vector, so that only CTAs of the same number meet.
 *
 *   one round of CTA b of rank r
 *
 *        copy chunk b of the input to stage[r]
 *        meet at START      the stages of all ranks are filled
 *   one-shot:
 *        out = sum over all ranks of stage[rank]
 *   two-shot:
 *        part[r] = sum over all ranks of the r-th part of stage[rank]
 *        meet at MIDDLE     the parts of all ranks are summed
 *        out = part[0], part[1], ...
 *   both:
 *        meet at END        all ranks have read; stage and part may be refilled
 *
 *   meet (all threads of the CTA)
 *
 *        __syncthreads                         the CTA's accesses are before its signals
 *        thread t < ranks:
 *            st.release.sys -> flag[r] of rank t   peer memory
 *            ld.acquire.sys <- own flag[t], until it has reached the round
 *        __syncthreads                         all threads are after all signals
 *
 * A flag is the number of the last round that its writer has reached. It grows with every round and
 * launch, so it is never reset, and a fast rank cannot be lost to a slow one: it is at most one
 * meeting ahead.
 *
 *   host, for each rank                               copy stream    compute stream
 *
 *        input -> device                              copy
 *                                                     event loaded -> wait
 *        two launches of half of the rounds                          kernel, kernel
 *        results -> pinned memory                     wait <-------- event summed
 *                                                     copy
 *   rank 1, besides: fetches the result of rank 0 after its event `summed`, and compares */
#include "../common/devices.h"
#include "../common/flag.cuh"

enum { MAX_RANKS = 8, CTAS = 2, THREADS = 64, MAX_ROUNDS = 64 };
enum phase { START, MIDDLE, END, PHASES };

#define BUGS(BUG) \
	BUG(start_relaxed, CS1002, "", "the signals of the start barrier are relaxed") \
	BUG(start_of_gpu_scope, CS222, "", "the signals of the start barrier have scope gpu") \
	BUG(acquire_of_gpu_scope, CS222, "", "only the acquires of the start barrier have scope gpu") \
	BUG(no_start, CS1002, "", "peers are read without a start barrier") \
	BUG(start_stale, CS1002, "", "the start barrier waits for the previous round") \
	BUG(signal_early, CS1002, "", "no __syncthreads before the signals: stages of other threads") \
	BUG(wait_by_one_warp, CS1002, "", "no __syncthreads after the signals") \
	BUG(no_end, CS1002, "", "no end barrier: a stage is refilled while peers read it") \
	BUG(end_relaxed, CS1002, "", "the signals of the end barrier are relaxed") \
	BUG(end_of_gpu_scope, CS222, "", "the signals of the end barrier have scope gpu") \
	BUG(no_middle, CS1002, "--shots=two", "parts are gathered before they are summed") \
	BUG(middle_relaxed, CS1002, "--shots=two", "the signals between the shots are relaxed") \
	BUG(middle_of_gpu_scope, CS222, "--shots=two", "the signals between the shots have scope gpu") \
	BUG(last_rank_not_awaited, CS1002, "", "the start barrier does not wait for the last rank") \
	BUG(signal_to_self, CS702, "", "each rank signals to its own flags instead of its peers'") \
	BUG(flags_reset, CS702, "", "a rank resets its flags after the end barrier, and loses a signal") \
	BUG(no_peer_access, CS908, "", "rank 1 has no access to the memory of rank 0") \
	BUG(launched_in_turn, CS702, "", "the host waits for rank 0 before it launches rank 1") \
	BUG(two_streams, CS1001, "", "two streams use one communicator at the same time") \
	BUG(flags_cleared_late, CS1001, "", "rank 1 clears its flags when rank 0 may already run") \
	BUG(input_not_awaited, CS1002, "", "the kernel does not wait for its input") \
	BUG(input_event_early, CS1002, "", "the event of the input is recorded before the copy") \
	BUG(input_event_of_peer, CS1002, "", "rank 1 waits for the input of rank 0 instead of its own") \
	BUG(result_not_awaited, CS1002, "", "the result is copied without a wait for the kernel") \
	BUG(peer_read_early, CS1002, "", "rank 1 fetches the result of rank 0 in a stream that does not wait") \
	BUG(host_reads_early, CS1003, "", "the host sums up the result before it has waited") \
	BUG(input_refilled_early, CS1003, "", "the host refills the input while it may still be copied")

PLANT(BUGS)

struct signals { uint32_t flag[PHASES][CTAS][MAX_RANKS]; }; /* by the rank that sets it */

struct group {                   /* what a rank knows of all others */
	int ranks;
	float *stage[MAX_RANKS], *part[MAX_RANKS];
	struct signals *signals[MAX_RANKS];
};

/* All CTAs of this number have come here in this round. */
template <class Bug>
__device__ static void meet(const struct group &g, int rank, enum phase phase, uint32_t round, Bug bug)
{
	const bool start = phase == START, middle = phase == MIDDLE, end = phase == END;
	const bool relaxed = (start && bug.is(start_relaxed)) || (middle && bug.is(middle_relaxed))
		|| (end && bug.is(end_relaxed));
	const bool narrow = (start && bug.is(start_of_gpu_scope))
		|| (middle && bug.is(middle_of_gpu_scope)) || (end && bug.is(end_of_gpu_scope));
	const enum flag_order set = relaxed ? FLAG_RELAXED : narrow ? FLAG_GPU : FLAG_SYS;
	const enum flag_order get = start && bug.is(acquire_of_gpu_scope) ? FLAG_GPU : set;
	const uint32_t t = threadIdx.x;
	uint32_t *own = g.signals[rank]->flag[phase][blockIdx.x];

	if (!(start && bug.is(signal_early)))
		__syncthreads();
	if (t < g.ranks) {
		const int to = bug.is(signal_to_self) ? rank : t;

		// @bug flags_cleared_late CS1001 @bug no_peer_access CS908
		flag_set(&g.signals[to]->flag[phase][blockIdx.x][rank], round, set);
		if (!(start && bug.is(last_rank_not_awaited) && t == g.ranks - 1))
			// @bug signal_to_self CS702 @bug flags_reset CS702 @bug launched_in_turn CS702
			flag_await(&own[t], round - (start && bug.is(start_stale)), get);
		if (end && bug.is(flags_reset) && t != rank)
			flag_set(&g.signals[rank]->flag[START][blockIdx.x][t], 0, FLAG_SYS);
	}
	if (!(start && bug.is(wait_by_one_warp)))
		__syncthreads();
}

/* The sum over all ranks, in the same order in all of them: results are equal bit by bit. */
__device__ static float sum_at(const struct group &g, uint32_t i)
{
	float sum = 0;

	for (int k = 0; k < g.ranks; k++)
		// @bug start_relaxed CS1002 @bug start_of_gpu_scope CS222 @bug acquire_of_gpu_scope CS222
		// @bug no_start CS1002 @bug start_stale CS1002 @bug signal_early CS1002
		// @bug wait_by_one_warp CS1002 @bug no_end CS1002 @bug end_relaxed CS1002
		// @bug end_of_gpu_scope CS222 @bug last_rank_not_awaited CS1002
		sum += g.stage[k][i];
	return sum;
}

template <class Bug>
__global__ void __launch_bounds__(THREADS)
allreduce(struct group g, int rank, const float *in, float *out, uint32_t n, uint32_t from, uint32_t to,
	bool two, Bug bug)
{
	const uint32_t chunk = n / CTAS, first = blockIdx.x * chunk, part = chunk / g.ranks;

	for (uint32_t round = from; round < to; round++, in += n, out += n) {
		for (uint32_t i = first + threadIdx.x; i < first + chunk; i += THREADS)
			// @bug start_relaxed CS1002 @bug start_of_gpu_scope CS222
			// @bug acquire_of_gpu_scope CS222 @bug no_start CS1002 @bug start_stale CS1002
			// @bug signal_early CS1002 @bug wait_by_one_warp CS1002 @bug no_end CS1002
			// @bug end_relaxed CS1002 @bug end_of_gpu_scope CS222
			// @bug last_rank_not_awaited CS1002 @bug two_streams CS1001
			// @bug input_not_awaited CS1002 @bug input_event_early CS1002
			// @bug input_event_of_peer CS1002
			g.stage[rank][i] = in[i];
		if (!bug.is(no_start))
			meet(g, rank, START, round, bug);
		if (!two) {
			for (uint32_t i = first + threadIdx.x; i < first + chunk; i += THREADS)
				// @bug result_not_awaited CS1002 @bug peer_read_early CS1002
				out[i] = sum_at(g, i);
		} else {
			for (uint32_t i = threadIdx.x; i < part; i += THREADS)
				// @bug no_middle CS1002 @bug middle_relaxed CS1002 @bug middle_of_gpu_scope CS222
				g.part[rank][blockIdx.x * part + i] = sum_at(g, first + rank * part + i);
			if (!bug.is(no_middle))
				meet(g, rank, MIDDLE, round, bug);
			for (uint32_t i = threadIdx.x; i < chunk; i += THREADS)
				// @bug no_middle CS1002 @bug middle_relaxed CS1002 @bug middle_of_gpu_scope CS222
				out[first + i] = g.part[i / part][blockIdx.x * part + i % part];
		}
		if (!bug.is(no_end))
			meet(g, rank, END, round, bug);
	}
}

__global__ void count_differences(const float *a, const float *b, uint32_t n, uint32_t *differ)
{
	for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
		if (a[i] != b[i])
			atomicAdd(differ, 1u);
}

/* ---- host ---- */

struct rank {
	float *in, *out, *fetched;       /* of the device; fetched: the result of rank 0 */
	float *host_in, *host_out;       /* pinned */
	uint32_t *differ;
	cudaStream_t copy, compute, other;
	cudaEvent_t loaded, summed, fetched_it;
};

struct comm {
	struct group g;
	struct rank rank[MAX_RANKS];
	uint32_t n, rounds, done;        /* elements, rounds of a run, rounds so far */
	bool two;
	double early;                    /* what the host made of the results */
};

static void comm_open(struct comm *c, bool peers)
{
	for (int d = 0; d < c->g.ranks; d++) {
		struct rank *r = &c->rank[d];
		const uint64_t all = (uint64_t)c->n * c->rounds;

		CUDA(cudaSetDevice(d));
		if (peers || d != 1)
			devices_enable_peers(d, c->g.ranks);
		c->g.stage[d] = harness_device<float>(NULL, c->n);
		c->g.part[d] = harness_device<float>(NULL, c->n);
		c->g.signals[d] = harness_device<struct signals>(NULL, 1);
		r->in = harness_device<float>(NULL, all);
		r->out = harness_device<float>(NULL, all);
		r->fetched = harness_device<float>(NULL, all);
		r->differ = harness_device<uint32_t>(NULL, 1);
		r->host_in = devices_pinned<float>(all);
		r->host_out = devices_pinned<float>(all);
		for (uint64_t i = 0; i < all; i++)
			r->host_in[i] = harness_value(d + 1, i);
		CUDA(cudaStreamCreateWithFlags(&r->copy, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->compute, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->other, cudaStreamNonBlocking));
		CUDA(cudaEventCreateWithFlags(&r->loaded, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->summed, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->fetched_it, cudaEventDisableTiming));
	}
	devices_synchronize(c->g.ranks);
}

static void comm_close(struct comm *c)
{
	for (int d = 0; d < c->g.ranks; d++) {
		struct rank *r = &c->rank[d];

		CUDA(cudaSetDevice(d));
		cudaFree(c->g.stage[d]);
		cudaFree(c->g.part[d]);
		cudaFree(c->g.signals[d]);
		cudaFree(r->in);
		cudaFree(r->out);
		cudaFree(r->fetched);
		cudaFree(r->differ);
		cudaFreeHost(r->host_in);
		cudaFreeHost(r->host_out);
		cudaStreamDestroy(r->copy);
		cudaStreamDestroy(r->compute);
		cudaStreamDestroy(r->other);
		cudaEventDestroy(r->loaded);
		cudaEventDestroy(r->summed);
		cudaEventDestroy(r->fetched_it);
	}
}

/* The input of rank d, and the wait of its kernels for it */
template <class Bug> static void load(struct comm *c, int d, Bug bug)
{
	struct rank *r = &c->rank[d];
	const size_t bytes = (size_t)c->n * c->rounds * sizeof(float);

	CUDA(cudaSetDevice(d));
	if (bug.is(input_event_early))
		CUDA(cudaEventRecord(r->loaded, r->copy));
	// @bug input_not_awaited CS1002 @bug input_event_early CS1002 @bug input_event_of_peer CS1002
	// @bug input_refilled_early CS1003
	CUDA(cudaMemcpyAsync(r->in, r->host_in, bytes, cudaMemcpyHostToDevice, r->copy));
	if (!bug.is(input_event_early))
		CUDA(cudaEventRecord(r->loaded, r->copy));
	if (!bug.is(input_not_awaited))
		CUDA(cudaStreamWaitEvent(r->compute, c->rank[bug.is(input_event_of_peer) ? 0 : d].loaded));
}

/* Half of the rounds in rank d */
template <class Bug> static void sum(struct comm *c, int d, uint32_t half, Bug bug)
{
	struct rank *r = &c->rank[d];
	const uint32_t from = half ? c->rounds / 2 : 0, to = half ? c->rounds : c->rounds / 2;
	const size_t at = (size_t)from * c->n;

	CUDA(cudaSetDevice(d));
	if (half && bug.is(two_streams))
		CUDA(cudaStreamWaitEvent(r->other, r->loaded));
	allreduce<<<CTAS, THREADS, 0, half && bug.is(two_streams) ? r->other : r->compute>>>(c->g, d,
		r->in + at, r->out + at, c->n, c->done + from + 1, c->done + to + 1, c->two, bug);
	CUDA(cudaGetLastError());
}

/* The result of rank d to the host */
template <class Bug> static void store(struct comm *c, int d, Bug bug)
{
	struct rank *r = &c->rank[d];
	const size_t bytes = (size_t)c->n * c->rounds * sizeof(float);

	CUDA(cudaSetDevice(d));
	CUDA(cudaEventRecord(r->summed, r->compute));
	if (!bug.is(result_not_awaited))
		CUDA(cudaStreamWaitEvent(r->copy, r->summed));
	// @bug result_not_awaited CS1002 @bug host_reads_early CS1003
	CUDA(cudaMemcpyAsync(r->host_out, r->out, bytes, cudaMemcpyDeviceToHost, r->copy));
}

/* Rank 1 compares the result of rank 0 with its own. */
template <class Bug> static void compare(struct comm *c, Bug bug)
{
	struct rank *r = &c->rank[1];
	const uint32_t all = c->n * c->rounds;

	CUDA(cudaSetDevice(1));
	if (!bug.is(peer_read_early))
		CUDA(cudaStreamWaitEvent(r->other, c->rank[0].summed));
	// @bug peer_read_early CS1002
	CUDA(cudaMemcpyPeerAsync(r->fetched, 1, c->rank[0].out, 0, all * sizeof(float), r->other));
	CUDA(cudaEventRecord(r->fetched_it, r->other));
	CUDA(cudaStreamWaitEvent(r->compute, r->fetched_it));
	count_differences<<<1, THREADS, 0, r->compute>>>(r->fetched, r->out, all, r->differ);
	CUDA(cudaGetLastError());
}

template <class Bug> static void launch(struct comm *c, Bug bug)
{
	const int ranks = c->g.ranks;

	if (bug.is(flags_cleared_late)) {
		CUDA(cudaSetDevice(1));
		// @bug flags_cleared_late CS1001
		CUDA(cudaMemsetAsync(c->g.signals[1], 0, sizeof *c->g.signals[1], c->rank[1].compute));
	}
	for (int d = 0; d < ranks; d++)
		load(c, d, bug);
	if (bug.is(input_refilled_early))
		// @bug input_refilled_early CS1003
		c->rank[0].host_in[0] = harness_value(1, 0);
	for (uint32_t half = 0; half < 2; half++)
		for (int d = 0; d < ranks; d++) {
			sum(c, d, half, bug);
			if (bug.is(launched_in_turn))
				CUDA(cudaStreamSynchronize(c->rank[d].compute));
		}
	for (int d = 0; d < ranks && bug.is(two_streams); d++) {
		CUDA(cudaEventRecord(c->rank[d].fetched_it, c->rank[d].other));
		CUDA(cudaStreamWaitEvent(c->rank[d].compute, c->rank[d].fetched_it));
	}
	for (int d = 0; d < ranks; d++)
		store(c, d, bug);
	compare(c, bug);
	if (bug.is(host_reads_early))
		// @bug host_reads_early CS1003
		c->early = c->rank[0].host_out[0];
	devices_synchronize(ranks);
	c->done += c->rounds;
}

static void check(struct checker &k, const struct comm *c)
{
	uint32_t differ;

	for (int d = 0; d < c->g.ranks; d++)
		for (uint64_t i = 0; i < (uint64_t)c->n * c->rounds; i++) {
			double want = 0;

			for (int from = 0; from < c->g.ranks; from++)
				want += harness_value(from + 1, i);
			checker_see(k, i, c->rank[d].host_out[i], want, 0);
		}
	CUDA(cudaMemcpy(&differ, c->rank[1].differ, sizeof differ, cudaMemcpyDeviceToHost));
	checker_see(k, 0, differ, 0, 0);
}

int main(int argc, char **argv)
{
	long ranks = 2, n = 256, rounds = 4, two = 0;
	const struct option options[] = {
		{"ranks", &ranks, "devices, 2 to 8"},
		{"n", &n, "floats of a vector, a multiple of 2 x ranks"},
		{"rounds", &rounds, "vectors, one after the other, an even number"},
		{"shots", &two, "one: sum all; two: sum a part, gather the others", "one|two"},
	};
	const struct program p = harness_program("allreduce",
		"all-reduce of several devices through peer memory", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);
	struct comm *c = (struct comm *)calloc(1, sizeof *c);

	harness_require(ranks >= 2 && ranks <= MAX_RANKS, p, "ranks must be 2 to 8");
	harness_require(n > 0 && n <= 1 << 26 && n % (CTAS * ranks) == 0, p, "n must be a multiple of 2 x ranks");
	harness_require(rounds > 0 && rounds <= MAX_ROUNDS && rounds % 2 == 0, p, "rounds must be 2 to 64, even");
	devices_require(p, (int)ranks);
	c->g.ranks = (int)ranks;
	c->n = (uint32_t)n;
	c->rounds = (uint32_t)rounds;
	c->two = two;
	comm_open(c, r.bug != no_peer_access);
	const int status = harness_run(p, r, [&](auto bug) { launch(c, bug); },
		[&](checker &k) { check(k, c); }, 4e-9 * n * rounds, "GB/s", "%ld ranks, %ld floats, %ld rounds",
		ranks, n, rounds);

	comm_close(c);
	free(c);
	return status;
}
