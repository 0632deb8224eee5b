/* ring_attention: attention over a sequence whose keys and values are distributed over devices. Device
 * d (a rank) keeps its rows of Q. Blocks of K and V go round the ring of ranks: in step s rank d has
 * the block of rank d - s, and its kernel adds that block's part to m, l and O (the online softmax).
 *
 *   rank d, step s           compute stream                   copy stream
 *
 *                            wait arrived (step s)
 *                            attend: slot s % 2
 *                            record attended[s % 2]
 *                                                             wait `arrived` (step s) of rank d:
 *                                                               its slot s % 2 holds the block
 *                                                             wait attended of rank d + 1, slot of
 *                                                               step s + 1: it has read the old block
 *                                                             wait sent of rank d + 1, likewise: it
 *                                                               has passed the old block on
 *                                                             slot s % 2 -> rank d + 1's slot of
 *                                                               step s + 1 (cudaMemcpyPeerAsync)
 *                                                             record sent
 *        `arrived` of rank d + 1, step s + 1, is `sent` of rank d, step s.
 *
 * Compute and copy of one step overlap: both only read the slot. */
#include "../common/devices.h"

enum { MAX_RANKS = 8, THREADS = 32, D = 16 };

#define BUGS(BUG) \
	BUG(block_not_awaited, CS1002, "", "a block is used without a wait for its arrival") \
	BUG(overwrites_unread, CS1002, "--ranks=3", "a block is sent to a slot that the receiver still reads") \
	BUG(overwrites_unsent, CS1002, "--ranks=3", "a block is sent to a slot that the receiver still passes on") \
	BUG(sent_before_arrival, CS1002, "--ranks=3", "a block is passed on before it has arrived") \
	BUG(sent_early, CS1002, "", "the event is recorded before the copy") \
	BUG(one_slot, CS1002, "", "both steps use one slot") \
	BUG(attended_early, CS1002, "--ranks=3", "the event of the kernel is recorded before its launch") \
	BUG(waits_for_sender, CS1002, "--ranks=3", "the sender waits for its own kernel instead of the receiver's") \
	BUG(output_read_early, CS1002, "", "O is copied in another stream without a wait") \
	BUG(steps_in_two_streams, CS1001, "", "odd steps run in another stream and add to O at the same time") \
	BUG(host_reads_early, CS1003, "", "the host reads O before its copy is complete")

PLANT(BUGS)

/* One thread for each row of Q: adds the keys and values of the block. */
template <class Bug>
__global__ void attend(const float *q, const float *kv, float *o, float *ml, int rows, bool first, bool last, Bug bug)
{
	const float *k = kv, *v = kv + rows * D;

	for (int i = threadIdx.x; i < rows; i += blockDim.x) {
		float m = -INFINITY, l = 0, acc[D] = {};

		if (!first) {
			m = ml[2 * i];
			l = ml[2 * i + 1];
			for (int x = 0; x < D; x++)
				acc[x] = o[i * D + x];
		}
		for (int j = 0; j < rows; j++) {
			float s = 0;

			for (int x = 0; x < D; x++)
				// @bug block_not_awaited CS1002 @bug overwrites_unread CS1002 @bug sent_early CS1002
				// @bug one_slot CS1002 @bug attended_early CS1002 @bug waits_for_sender CS1002
				s += q[i * D + x] * k[j * D + x];
			const float up = fmaxf(m, s), was = expf(m - up), p = expf(s - up);

			m = up;
			l = l * was + p;
			for (int x = 0; x < D; x++)
				acc[x] = acc[x] * was + p * v[j * D + x];
		}
		for (int x = 0; x < D; x++)
			// @bug output_read_early CS1002
			o[i * D + x] = last ? acc[x] / l : acc[x];
		ml[2 * i] = m;
		// @bug steps_in_two_streams CS1001
		ml[2 * i + 1] = l;
	}
}

struct rank {
	float *q, *kv[2], *o, *ml;       /* kv: slots, K then V */
	float *host_o;                   /* pinned */
	cudaStream_t compute, copy, other;
	cudaEvent_t attended[2], sent[2], loaded, done;
};

struct ring {
	int ranks, rows;
	struct rank rank[MAX_RANKS];
	double early;
};

static void ring_open(struct ring *g)
{
	const uint64_t n = (uint64_t)g->rows * D;

	for (int d = 0; d < g->ranks; d++) {
		struct rank *r = &g->rank[d];
		float *q = harness_elements<float>(d, n), *kv = harness_elements<float>(100 + d, 2 * n);

		devices_enable_peers(d, g->ranks);
		r->q = harness_device(q, n);
		r->kv[0] = harness_device(kv, 2 * n);
		r->kv[1] = harness_device<float>(NULL, 2 * n);
		r->o = harness_device<float>(NULL, n);
		r->ml = harness_device<float>(NULL, 2 * g->rows);
		r->host_o = devices_pinned<float>(n);
		CUDA(cudaStreamCreateWithFlags(&r->compute, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->copy, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->other, cudaStreamNonBlocking));
		CUDA(cudaEventCreateWithFlags(&r->done, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->loaded, cudaEventDisableTiming));
		for (int i = 0; i < 2; i++) {
			CUDA(cudaEventCreateWithFlags(&r->attended[i], cudaEventDisableTiming));
			CUDA(cudaEventCreateWithFlags(&r->sent[i], cudaEventDisableTiming));
		}
		free(q);
		free(kv);
	}
	devices_synchronize(g->ranks);
}

/* The block of step s has arrived: its sender's event of the step before. */
static void await_block(struct ring *g, int d, int s, cudaStream_t stream)
{
	if (s)
		CUDA(cudaStreamWaitEvent(stream, g->rank[(d + g->ranks - 1) % g->ranks].sent[(s - 1) % 2]));
}

template <class Bug> static void compute(struct ring *g, int d, int s, Bug bug)
{
	struct rank *r = &g->rank[d];
	const bool aside = bug.is(steps_in_two_streams) && s % 2;
	const cudaStream_t stream = aside ? r->other : r->compute;

	CUDA(cudaSetDevice(d));
	if (!bug.is(block_not_awaited))
		await_block(g, d, s, stream);
	if (bug.is(attended_early))
		CUDA(cudaEventRecord(r->attended[s % 2], stream));
	attend<<<1, THREADS, 0, stream>>>(r->q, r->kv[bug.is(one_slot) ? 0 : s % 2], r->o, r->ml, g->rows,
		s == 0, s == g->ranks - 1, bug);
	CUDA(cudaGetLastError());
	if (!bug.is(attended_early))
		CUDA(cudaEventRecord(r->attended[s % 2], stream));
}

/* Passes the block of step s on. */
template <class Bug> static void send(struct ring *g, int d, int s, Bug bug)
{
	const int next = (d + 1) % g->ranks, from = bug.is(one_slot) ? 0 : s % 2;
	const int to = bug.is(one_slot) ? 0 : (s + 1) % 2;
	struct rank *r = &g->rank[d], *n = &g->rank[next];

	CUDA(cudaSetDevice(d));
	if (!bug.is(sent_before_arrival))
		await_block(g, d, s, r->copy);
	if (s && !bug.is(overwrites_unread))
		CUDA(cudaStreamWaitEvent(r->copy, (bug.is(waits_for_sender) ? r : n)->attended[(s - 1) % 2]));
	if (s && !bug.is(overwrites_unsent))
		CUDA(cudaStreamWaitEvent(r->copy, n->sent[(s - 1) % 2]));
	if (bug.is(sent_early))
		CUDA(cudaEventRecord(r->sent[s % 2], r->copy));
	// @bug block_not_awaited CS1002 @bug overwrites_unread CS1002 @bug overwrites_unsent CS1002
	// @bug sent_before_arrival CS1002 @bug sent_early CS1002 @bug one_slot CS1002
	// @bug attended_early CS1002 @bug waits_for_sender CS1002
	CUDA(cudaMemcpyPeerAsync(n->kv[to], next, r->kv[from], d, 2 * g->rows * D * sizeof(float), r->copy));
	if (!bug.is(sent_early))
		CUDA(cudaEventRecord(r->sent[s % 2], r->copy));
}

template <class Bug> static void store(struct ring *g, int d, Bug bug)
{
	struct rank *r = &g->rank[d];

	CUDA(cudaSetDevice(d));
	CUDA(cudaEventRecord(r->done, r->compute));
	if (!bug.is(output_read_early))
		CUDA(cudaStreamWaitEvent(r->other, r->done));
	// @bug output_read_early CS1002 @bug host_reads_early CS1003
	CUDA(cudaMemcpyAsync(r->host_o, r->o, g->rows * D * sizeof(float), cudaMemcpyDeviceToHost, r->other));
}

template <class Bug> static void launch(struct ring *g, Bug bug)
{
	for (int s = 0; s < g->ranks; s++) {
		for (int d = 0; d < g->ranks; d++)
			compute(g, d, s, bug);
		for (int d = 0; d < g->ranks && s + 1 < g->ranks; d++)
			send(g, d, s, bug);
	}
	for (int d = 0; d < g->ranks; d++)
		store(g, d, bug);
	if (bug.is(host_reads_early))
		// @bug host_reads_early CS1003
		g->early = g->rank[0].host_o[0];
	devices_synchronize(g->ranks);
}

static void check(struct checker &c, const struct ring *g)
{
	const int all = g->ranks * g->rows;
	double *p = (double *)malloc(all * sizeof *p);

	for (int i = 0; i < all; i++) {
		const int d = i / g->rows;
		double most = -INFINITY, sum = 0;

		for (int j = 0; j < all; j++) {
			p[j] = 0;
			for (int x = 0; x < D; x++)
				p[j] += (double)harness_value(d, i % g->rows * D + x)
					* harness_value(100 + j / g->rows, j % g->rows * D + x);
			most = p[j] > most ? p[j] : most;
		}
		for (int j = 0; j < all; j++)
			sum += p[j] = exp(p[j] - most);
		for (int x = 0; x < D; x++) {
			double want = 0;

			for (int j = 0; j < all; j++)
				want += p[j] / sum * harness_value(100 + j / g->rows,
					(uint64_t)(g->rows + j % g->rows) * D + x);
			checker_see(c, (uint64_t)i * D + x, g->rank[d].host_o[i % g->rows * D + x], want, 1e-4);
		}
	}
	free(p);
}

int main(int argc, char **argv)
{
	long ranks = 2, rows = 16;
	const struct option options[] = {
		{"ranks", &ranks, "devices, 2 to 8"},
		{"rows", &rows, "rows of Q, and keys, of a device"},
	};
	const struct program p = harness_program("ring_attention",
		"attention over keys and values that go round a ring of devices", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);
	struct ring *g = (struct ring *)calloc(1, sizeof *g);

	harness_require(ranks >= 2 && ranks <= MAX_RANKS, p, "ranks must be 2 to 8");
	harness_require(rows > 0 && rows <= 65536, p, "rows must be 1 to 65536");
	devices_require(p, (int)ranks);
	g->ranks = (int)ranks;
	g->rows = (int)rows;
	ring_open(g);
	const int status = harness_run(p, r, [&](auto bug) {
		CUDA(cudaSetDevice(0));
		launch(g, bug);
	}, [&](checker &c) { check(c, g); }, 4e-12 * ranks * ranks * rows * rows * D, "TFLOP/s",
		"%ld ranks, %ld rows each", ranks, rows);

	free(g);
	return status;
}
