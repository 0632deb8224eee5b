/* pipeline: chunks of a vector go through a device: copy in, two kernels, copy out, overlapped in
 * three streams. The device has 2 slots for chunks, the host 4 in pinned memory.
 *
 *   host                 stream `up`            stream `compute`        stream `down`
 *
 *   wait stored[h]
 *   take result of
 *   chunk i - 4
 *   fill in[h]
 *                        wait computed[d]
 *                        in[h] -> device d
 *                        record loaded[d] ----> wait loaded[d]
 *                                               wait stored of i - 2
 *                                               allocate scratch
 *                                               smooth: device d -> scratch
 *                                               square: scratch -> result d
 *                                               free scratch
 *                                               record computed[d] ---> wait computed[d]
 *                                                                       result d -> out[h]
 *                                                                       record stored[h]
 *
 * h = i % 4, d = i % 2. An event is recorded again for each chunk that uses its slot; a wait means
 * the newest recording at the time of the call. `computed` of chunk i - 2 keeps the copy from
 * overwriting what `smooth` still reads, `stored` of chunk i - 2 keeps `square` from overwriting what
 * the copy out still reads, the host waits for `stored` of chunk i - 4, behind which in[h] and out[h] are free.
 *
 * --form=graph: the same for 4 chunks, captured once and launched for each 4. The capture begins in
 * `compute`; `up` and `down` join it by an event, and must be joined back before it ends. In a
 * graph, the host can wait for the whole launch only. */
#include "../common/harness.h"

enum { HOST_SLOTS = 4, SLOTS = 2, THREADS = 64 };

#define BUGS(BUG) \
	BUG(load_not_awaited, CS1002, "", "the kernel does not wait for its input") \
	BUG(loaded_early, CS1002, "", "the event of the input is recorded before the copy") \
	BUG(loaded_of_other_slot, CS1002, "", "the kernel waits for the other slot's input") \
	BUG(waits_before_record, CS1002, "", "the kernel's stream waits for the event before it is recorded") \
	BUG(input_overwritten, CS1002, "", "the copy does not wait until the slot has been read") \
	BUG(computed_early, CS1002, "", "the event of the kernels is recorded before the second one") \
	BUG(result_not_awaited, CS1002, "", "the result is copied without a wait for the kernels") \
	BUG(result_overwritten, CS1002, "", "the kernel does not wait until the result has been copied") \
	BUG(kernel_in_wrong_stream, CS1002, "", "the second kernel is launched in the stream of the input") \
	BUG(kernel_in_default_stream, CS1002, "", \
		"the second kernel is launched in the default stream: the others do not synchronise with it") \
	BUG(stored_early, CS1003, "", "the event of the result is recorded before the copy") \
	BUG(result_read_early, CS1003, "", "the host takes the result without a wait") \
	BUG(awaits_wrong_stream, CS1003, "", "the host waits for the stream of the kernels only") \
	BUG(refilled_early, CS1003, "", "the host refills the input while it may still be copied") \
	BUG(scratch_freed_in_other_stream, CS1004, "", "scratch is freed in a stream that does not wait") \
	BUG(scratch_freed_early, CS1005, "", "scratch is freed before its last use") \
	BUG(scratch_of_other_stream, CS1006, "", "scratch is allocated in a stream for which no other stream waits") \
	BUG(capture_without_load, CS1002, "--form=graph", "a graph without an edge from the copy to the kernel") \
	BUG(capture_without_reuse, CS1002, "--form=graph", "a graph without an edge from the kernel to the next copy") \
	BUG(capture_without_result, CS1002, "--form=graph", \
		"a graph without an edge from the kernels to the copy of the result") \
	BUG(capture_not_joined, CS1008, "--form=graph", "the stream of the results is not joined to the capture") \
	BUG(graph_read_early, CS1003, "--form=graph", "the host takes results without a wait for the graph") \
	BUG(graph_refilled_early, CS1003, "--form=graph", "the host refills the input of a graph that runs") \
	BUG(graphs_in_two_streams, CS1001, "--form=graph", \
		"two graphs with the same buffers run in different streams")

PLANT(BUGS)

/* What is computed of chunk elements x: y = (x[i] + x[i + 1])^2, the chunk is a ring */
template <class Bug>
__global__ void smooth(const float *x, float *y, uint32_t n, Bug bug)
{
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		// @bug load_not_awaited CS1002 @bug loaded_early CS1002 @bug loaded_of_other_slot CS1002
		// @bug waits_before_record CS1002 @bug input_overwritten CS1002
		// @bug scratch_of_other_stream CS1006 @bug kernel_in_wrong_stream CS1002
		// @bug kernel_in_default_stream CS1002
		// @bug capture_without_load CS1002 @bug capture_without_reuse CS1002
		y[i] = x[i] + x[i + 1 < n ? i + 1 : 0];
}

template <class Bug>
__global__ void square(const float *x, float *y, uint32_t n, Bug bug)
{
	for (uint32_t i = threadIdx.x; i < n; i += THREADS)
		// @bug computed_early CS1002 @bug result_not_awaited CS1002 @bug result_overwritten CS1002
		// @bug kernel_in_wrong_stream CS1002 @bug kernel_in_default_stream CS1002
		// @bug scratch_freed_in_other_stream CS1004 @bug scratch_freed_early CS1005
		// @bug capture_without_result CS1002
		y[i] = x[i] * x[i];
}

/* ---- host ---- */

struct pipeline {
	float *in[HOST_SLOTS], *out[HOST_SLOTS]; /* pinned */
	float *x[SLOTS], *y[SLOTS];              /* of the device */
	float *scratch;                          /* of a graph: no allocation inside */
	cudaStream_t up, compute, down;
	cudaEvent_t loaded[SLOTS], computed[SLOTS], read[SLOTS], stored[HOST_SLOTS], fork, join;
	float *result;                           /* of all chunks, in pageable memory */
	uint32_t n, chunks;                      /* elements of a chunk */
};

static void pipeline_open(struct pipeline *p)
{
	const size_t bytes = p->n * sizeof(float);

	for (int k = 0; k < HOST_SLOTS; k++) {
		CUDA(cudaMallocHost(&p->in[k], bytes));
		CUDA(cudaMallocHost(&p->out[k], bytes));
		CUDA(cudaEventCreateWithFlags(&p->stored[k], cudaEventDisableTiming));
	}
	for (int k = 0; k < SLOTS; k++) {
		CUDA(cudaMalloc(&p->x[k], bytes));
		CUDA(cudaMalloc(&p->y[k], bytes));
		CUDA(cudaEventCreateWithFlags(&p->loaded[k], cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&p->computed[k], cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&p->read[k], cudaEventDisableTiming));
	}
	CUDA(cudaMalloc(&p->scratch, bytes));
	CUDA(cudaEventCreateWithFlags(&p->fork, cudaEventDisableTiming));
	CUDA(cudaEventCreateWithFlags(&p->join, cudaEventDisableTiming));
	CUDA(cudaStreamCreateWithFlags(&p->up, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&p->compute, cudaStreamNonBlocking));
	CUDA(cudaStreamCreateWithFlags(&p->down, cudaStreamNonBlocking));
	p->result = (float *)calloc(p->chunks, bytes);
}

static void pipeline_close(struct pipeline *p)
{
	for (int k = 0; k < HOST_SLOTS; k++) {
		cudaFreeHost(p->in[k]);
		cudaFreeHost(p->out[k]);
		cudaEventDestroy(p->stored[k]);
	}
	for (int k = 0; k < SLOTS; k++) {
		cudaFree(p->x[k]);
		cudaFree(p->y[k]);
		cudaEventDestroy(p->loaded[k]);
		cudaEventDestroy(p->computed[k]);
		cudaEventDestroy(p->read[k]);
	}
	cudaFree(p->scratch);
	cudaEventDestroy(p->fork);
	cudaEventDestroy(p->join);
	cudaStreamDestroy(p->up);
	cudaStreamDestroy(p->compute);
	cudaStreamDestroy(p->down);
	free(p->result);
}

/* Not inlined: the lines of host accesses are then exact. */
__attribute__((noinline)) static void fill(struct pipeline *p, uint32_t chunk)
{
	for (uint32_t i = 0; i < p->n; i++)
		// @bug refilled_early CS1003 @bug graph_refilled_early CS1003
		p->in[chunk % HOST_SLOTS][i] = harness_value(1, (uint64_t)chunk * p->n + i);
}

__attribute__((noinline)) static void take(struct pipeline *p, uint32_t chunk)
{
	for (uint32_t i = 0; i < p->n; i++)
		// @bug stored_early CS1003 @bug result_read_early CS1003
		// @bug awaits_wrong_stream CS1003 @bug graph_read_early CS1003
		p->result[(size_t)chunk * p->n + i] = p->out[chunk % HOST_SLOTS][i];
}

/* The copy in. first: no earlier chunk has used the slot (in this graph) */
template <class Bug> static void load(struct pipeline *p, uint32_t chunk, bool first, Bug bug)
{
	const uint32_t h = chunk % HOST_SLOTS, d = chunk % SLOTS;

	if (!first && !bug.is(input_overwritten) && !bug.is(capture_without_reuse))
		CUDA(cudaStreamWaitEvent(p->up, p->read[d]));
	if (bug.is(loaded_early))
		CUDA(cudaEventRecord(p->loaded[d], p->up));
	// @bug load_not_awaited CS1002 @bug loaded_early CS1002 @bug loaded_of_other_slot CS1002
	// @bug waits_before_record CS1002 @bug input_overwritten CS1002 @bug refilled_early CS1003
	//
	CUDA(cudaMemcpyAsync(p->x[d], p->in[h], p->n * sizeof(float), cudaMemcpyHostToDevice, p->up));
	if (!bug.is(loaded_early))
		CUDA(cudaEventRecord(p->loaded[d], p->up));
}

template <class Bug> static float *scratch_begin(struct pipeline *p, bool graph, Bug bug)
{
	float *scratch = p->scratch;

	if (graph)
		return scratch;
	// @bug scratch_of_other_stream CS1006
	CUDA(cudaMallocAsync(&scratch, p->n * sizeof(float), bug.is(scratch_of_other_stream) ? p->down : p->compute));
	return scratch;
}

/* The two kernels */
template <class Bug>
static void compute(struct pipeline *p, uint32_t chunk, bool first, bool graph, Bug bug)
{
	const uint32_t d = chunk % SLOTS;
	const cudaStream_t second = bug.is(kernel_in_wrong_stream) ? p->up
		: bug.is(kernel_in_default_stream) ? NULL : p->compute;
	float *scratch;

	if (!bug.is(load_not_awaited) && !bug.is(capture_without_load) && !bug.is(waits_before_record))
		CUDA(cudaStreamWaitEvent(p->compute, p->loaded[bug.is(loaded_of_other_slot) ? 1 - d : d]));
	if (!first && !bug.is(result_overwritten))
		CUDA(cudaStreamWaitEvent(p->compute, p->stored[(chunk - SLOTS) % HOST_SLOTS]));
	scratch = scratch_begin(p, graph, bug);
	smooth<<<1, THREADS, 0, p->compute>>>(p->x[d], scratch, p->n, bug);
	CUDA(cudaGetLastError());
	CUDA(cudaEventRecord(p->read[d], p->compute));
	if (bug.is(computed_early))
		CUDA(cudaEventRecord(p->computed[d], p->compute));
	if (bug.is(scratch_freed_early))
		// @bug scratch_freed_early CS1005
		CUDA(cudaFreeAsync(scratch, p->compute));
	square<<<1, THREADS, 0, second>>>(scratch, p->y[d], p->n, bug);
	CUDA(cudaGetLastError());
	if (!graph && !bug.is(scratch_freed_early))
		// @bug scratch_freed_in_other_stream CS1004
		CUDA(cudaFreeAsync(scratch, bug.is(scratch_freed_in_other_stream) ? p->up : second ? second : p->compute));
	if (!bug.is(computed_early))
		CUDA(cudaEventRecord(p->computed[d], p->compute));
}

/* The copy out */
template <class Bug> static void store(struct pipeline *p, uint32_t chunk, Bug bug)
{
	const uint32_t h = chunk % HOST_SLOTS, d = chunk % SLOTS;

	if (!bug.is(result_not_awaited) && !bug.is(capture_without_result))
		CUDA(cudaStreamWaitEvent(p->down, p->computed[d]));
	if (bug.is(stored_early))
		CUDA(cudaEventRecord(p->stored[h], p->down));
	// @bug computed_early CS1002 @bug result_not_awaited CS1002 @bug result_overwritten CS1002
	// @bug stored_early CS1003 @bug result_read_early CS1003
	// @bug awaits_wrong_stream CS1003
	CUDA(cudaMemcpyAsync(p->out[h], p->y[d], p->n * sizeof(float), cudaMemcpyDeviceToHost, p->down));
	if (!bug.is(stored_early))
		CUDA(cudaEventRecord(p->stored[h], p->down));
}

/* The host waits until the result of the chunk is there. */
template <class Bug> static void await_result(struct pipeline *p, uint32_t chunk, Bug bug)
{
	if (bug.is(result_read_early))
		return;
	if (bug.is(awaits_wrong_stream))
		CUDA(cudaStreamSynchronize(p->compute));
	else
		CUDA(cudaEventSynchronize(p->stored[chunk % HOST_SLOTS]));
}

template <class Bug> static void run_streams(struct pipeline *p, Bug bug)
{
	const uint32_t last = p->chunks > HOST_SLOTS ? p->chunks - HOST_SLOTS : 0;

	for (uint32_t i = 0; i < p->chunks; i++) {
		if (i >= HOST_SLOTS && !bug.is(refilled_early)) {
			await_result(p, i - HOST_SLOTS, bug);
			take(p, i - HOST_SLOTS);
		}
		fill(p, i);
		if (bug.is(waits_before_record))
			CUDA(cudaStreamWaitEvent(p->compute, p->loaded[i % SLOTS]));
		load(p, i, i < SLOTS, bug);
		compute(p, i, i < SLOTS, false, bug);
		store(p, i, bug);
	}
	for (uint32_t i = last; i < p->chunks; i++) {
		await_result(p, i, bug);
		take(p, i);
	}
}

/* A graph for HOST_SLOTS chunks; NULL: the capture failed. */
template <class Bug> static cudaGraphExec_t capture(struct pipeline *p, Bug bug)
{
	cudaGraph_t graph = NULL;
	cudaGraphExec_t exec;

	CUDA(cudaStreamBeginCapture(p->compute, cudaStreamCaptureModeThreadLocal));
	CUDA(cudaEventRecord(p->fork, p->compute));
	CUDA(cudaStreamWaitEvent(p->up, p->fork));
	CUDA(cudaStreamWaitEvent(p->down, p->fork));
	for (uint32_t i = 0; i < HOST_SLOTS; i++) {
		load(p, i, i < SLOTS, bug);
		compute(p, i, i < SLOTS, true, bug);
		store(p, i, bug);
	}
	CUDA(cudaEventRecord(p->join, p->up));
	CUDA(cudaStreamWaitEvent(p->compute, p->join));
	CUDA(cudaEventRecord(p->join, p->down));
	if (!bug.is(capture_not_joined))
		CUDA(cudaStreamWaitEvent(p->compute, p->join));
	// @bug capture_not_joined CS1008
	CUDA(cudaStreamEndCapture(p->compute, &graph));
	CUDA(cudaGraphInstantiate(&exec, graph, 0));
	CUDA(cudaGraphDestroy(graph));
	return exec;
}

template <class Bug> static void run_graph(struct pipeline *p, Bug bug)
{
	cudaGraphExec_t graph = capture(p, bug), other = NULL;

	for (uint32_t i = 0; i < p->chunks; i += HOST_SLOTS) {
		for (uint32_t k = 0; k < HOST_SLOTS; k++)
			fill(p, i + k);
		// @bug capture_without_load CS1002 @bug capture_without_reuse CS1002
		// @bug capture_without_result CS1002 @bug graph_read_early CS1003
		// @bug graph_refilled_early CS1003 @bug graphs_in_two_streams CS1001
		CUDA(cudaGraphLaunch(graph, p->compute));
		if (bug.is(graphs_in_two_streams)) {
			other = other ? other : capture(p, bug);
			// @bug graphs_in_two_streams CS1001
			CUDA(cudaGraphLaunch(other, p->up));
			CUDA(cudaStreamSynchronize(p->up));
		}
		if (bug.is(graph_refilled_early) && i + HOST_SLOTS < p->chunks)
			continue;
		if (!bug.is(graph_read_early))
			CUDA(cudaStreamSynchronize(p->compute));
		for (uint32_t k = 0; k < HOST_SLOTS; k++)
			take(p, i + k);
	}
	CUDA(cudaStreamSynchronize(p->compute));
	CUDA(cudaGraphExecDestroy(graph));
	if (other)
		CUDA(cudaGraphExecDestroy(other));
}

static void check(struct checker &c, const struct pipeline *p)
{
	for (uint32_t k = 0; k < p->chunks; k++)
		for (uint32_t i = 0; i < p->n; i++) {
			const uint64_t at = (uint64_t)k * p->n;
			const double sum = harness_value(1, at + i) + harness_value(1, at + (i + 1) % p->n);

			checker_see(c, at + i, p->result[at + i], sum * sum, 0);
		}
}

int main(int argc, char **argv)
{
	long n = 256, chunks = 8, graph = 0;
	const struct option options[] = {
		{"n", &n, "floats of a chunk"},
		{"chunks", &chunks, "chunks, a multiple of 4"},
		{"form", &graph, "how they are issued", "streams|graph"},
	};
	const struct program program = harness_program("pipeline",
		"copies and kernels overlapped by streams and events, or by a graph", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, program);
	struct pipeline p = {};

	harness_require(n > 0 && n <= 1 << 24, program, "n must be 1 to 16777216");
	harness_require(chunks > 0 && chunks % HOST_SLOTS == 0, program, "chunks must be a multiple of 4");
	p.n = (uint32_t)n;
	p.chunks = (uint32_t)chunks;
	pipeline_open(&p);
	const int status = harness_run(program, r, [&](auto bug) {
		if (graph)
			run_graph(&p, bug);
		else
			run_streams(&p, bug);
	}, [&](checker &c) { check(c, &p); }, 8e-9 * n * chunks, "GB/s", "%ld floats, %ld chunks", n, chunks);

	pipeline_close(&p);
	return status;
}
