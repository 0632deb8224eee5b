/* gather_gemm: C = A B on several devices. Device d (a rank) owns a block of rows of A and a block of
 * columns of B and of C. It gathers the rows of A of all ranks by peer copies, and multiplies each
 * block as soon as it has arrived:
 *
 *   rank d          copy stream                        compute stream
 *
 *   own A           copied from pinned memory
 *                   record ready[d]
 *   step s = 1 ..   wait ready[peer]  (of the peer)
 *   peer = d + s    peer's A -> gathered block `peer`
 *                   record arrived[peer] ------------> wait arrived[peer]
 *                                                      C rows of `peer` = block B
 *                                                      ...
 *                                                      record done
 *   next product    wait done of all ranks: no rank reads this A any more
 *                   new A from pinned memory ...
 *
 * Products follow each other with new contents of A in the same memory. Rank d's own A is read by
 * its peers' copies, so that `taken` of every peer must be waited for before it is overwritten. */
#include "../common/devices.h"

enum { MAX_RANKS = 8, THREADS = 64 };

#define BUGS(BUG) \
	BUG(peer_not_ready, CS1002, "", "a peer's rows are copied without a wait for its event") \
	BUG(ready_early, CS1002, "", "the event of the own rows is recorded before they are copied") \
	BUG(ready_of_self, CS1002, "", "the copy waits for the own event instead of the peer's") \
	BUG(arrival_not_awaited, CS1002, "", "a block is multiplied without a wait for its arrival") \
	BUG(arrival_of_first, CS1002, "", "all products wait for the first block only") \
	BUG(overwritten_while_copied, CS1002, "", "new rows overwrite those that a peer still copies") \
	BUG(gathered_overwritten, CS1002, "", "the next gathering overwrites blocks that are multiplied") \
	BUG(result_not_awaited, CS1002, "", "C is copied without a wait for the products") \
	BUG(rows_overlap, CS1001, "", "two products run in two streams and write a common row") \
	BUG(host_reads_early, CS1003, "", "the host reads C before its copy is complete")

PLANT(BUGS)

/* Rows of one block times B: c (rows x cols) = a (rows x k) b (k x cols) */
template <class Bug>
__global__ void product(const float *a, const float *b, float *c, int rows, int cols, int k, Bug bug)
{
	const int i = blockIdx.x;

	for (int j = threadIdx.x; j < cols; j += blockDim.x) {
		float sum = 0;

		for (int x = 0; x < k; x++)
			// @bug arrival_not_awaited CS1002 @bug arrival_of_first CS1002
			// @bug gathered_overwritten CS1002
			sum += a[i * k + x] * b[x * cols + j];
		// @bug result_not_awaited CS1002 @bug rows_overlap CS1001
		c[i * cols + j] = sum;
	}
}

struct rank {
	float *a, *b, *c;                /* a: gathered, all ranks' blocks, the own one in its place */
	float *host_a, *host_c;          /* pinned; of all products */
	cudaStream_t copy, compute, other;
	cudaEvent_t ready, taken, arrived[MAX_RANKS], done, stored;
};

struct gemm {
	int ranks, rows, cols, k, products; /* rows and columns of a block */
	struct rank rank[MAX_RANKS];
	double early;
};

static float a_at(int d, uint64_t i) { return harness_value(d + 1, i); }

static void gemm_open(struct gemm *g)
{
	const uint64_t a = (uint64_t)g->rows * g->k, c = (uint64_t)g->ranks * g->rows * g->cols;

	for (int d = 0; d < g->ranks; d++) {
		struct rank *r = &g->rank[d];
		float *b = harness_elements<float>(100 + d, (uint64_t)g->k * g->cols);

		devices_enable_peers(d, g->ranks);
		r->a = harness_device<float>(NULL, g->ranks * a);
		r->b = harness_device(b, (uint64_t)g->k * g->cols);
		r->c = harness_device<float>(NULL, c);
		r->host_a = devices_pinned<float>(g->products * a);
		r->host_c = devices_pinned<float>(g->products * c);
		for (uint64_t i = 0; i < g->products * a; i++)
			r->host_a[i] = a_at(d, i);
		CUDA(cudaStreamCreateWithFlags(&r->copy, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->compute, cudaStreamNonBlocking));
		CUDA(cudaStreamCreateWithFlags(&r->other, cudaStreamNonBlocking));
		CUDA(cudaEventCreateWithFlags(&r->ready, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->taken, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->done, cudaEventDisableTiming));
		CUDA(cudaEventCreateWithFlags(&r->stored, cudaEventDisableTiming));
		for (int i = 0; i < g->ranks; i++)
			CUDA(cudaEventCreateWithFlags(&r->arrived[i], cudaEventDisableTiming));
		free(b);
	}
	devices_synchronize(g->ranks);
}

/* The own rows of product p in device memory */
template <class Bug> static void load(struct gemm *g, int d, int p, Bug bug)
{
	const size_t n = (size_t)g->rows * g->k;
	struct rank *r = &g->rank[d];

	CUDA(cudaSetDevice(d));
	for (int i = 0; i < g->ranks && p; i++)
		if (!bug.is(overwritten_while_copied) || i == d)
			CUDA(cudaStreamWaitEvent(r->copy, g->rank[i].taken));
	if (p && !bug.is(gathered_overwritten))
		CUDA(cudaStreamWaitEvent(r->copy, r->done));
	if (bug.is(ready_early))
		CUDA(cudaEventRecord(r->ready, r->copy));
	// @bug peer_not_ready CS1002 @bug ready_early CS1002 @bug ready_of_self CS1002
	// @bug overwritten_while_copied CS1002 @bug gathered_overwritten CS1002
	CUDA(cudaMemcpyAsync(r->a + d * n, r->host_a + p * n, n * sizeof(float), cudaMemcpyHostToDevice, r->copy));
	if (!bug.is(ready_early))
		CUDA(cudaEventRecord(r->ready, r->copy));
}

/* The rows of the peers */
template <class Bug> static void gather(struct gemm *g, int d, Bug bug)
{
	const size_t n = (size_t)g->rows * g->k;
	struct rank *r = &g->rank[d];

	CUDA(cudaSetDevice(d));
	CUDA(cudaEventRecord(r->arrived[d], r->copy));
	for (int s = 1; s < g->ranks; s++) {
		const int peer = (d + s) % g->ranks;

		if (!bug.is(peer_not_ready))
			CUDA(cudaStreamWaitEvent(r->copy, g->rank[bug.is(ready_of_self) ? d : peer].ready));
		// @bug peer_not_ready CS1002 @bug ready_early CS1002 @bug ready_of_self CS1002
		// @bug arrival_not_awaited CS1002 @bug arrival_of_first CS1002
		// @bug overwritten_while_copied CS1002
		CUDA(cudaMemcpyPeerAsync(r->a + peer * n, d, g->rank[peer].a + peer * n, peer,
			n * sizeof(float), r->copy));
		CUDA(cudaEventRecord(r->arrived[peer], r->copy));
	}
	CUDA(cudaEventRecord(r->taken, r->copy));
}

template <class Bug> static void multiply(struct gemm *g, int d, int p, Bug bug)
{
	const size_t n = (size_t)g->rows * g->k, m = (size_t)g->rows * g->cols;
	struct rank *r = &g->rank[d];

	CUDA(cudaSetDevice(d));
	if (p)
		CUDA(cudaStreamWaitEvent(r->compute, r->stored));
	for (int s = 0; s < g->ranks; s++) {
		const int from = (d + s) % g->ranks;

		if (!bug.is(arrival_not_awaited))
			CUDA(cudaStreamWaitEvent(r->compute, r->arrived[bug.is(arrival_of_first) ? d : from]));
		product<<<g->rows, THREADS, 0, r->compute>>>(r->a + from * n, r->b, r->c + from * m, g->rows,
			g->cols, g->k, bug);
		CUDA(cudaGetLastError());
	}
	if (bug.is(rows_overlap)) {
		CUDA(cudaStreamWaitEvent(r->other, r->arrived[(d + g->ranks - 1) % g->ranks]));
		product<<<1, THREADS, 0, r->other>>>(r->a, r->b, r->c, g->rows, g->cols, g->k, bug);
		CUDA(cudaGetLastError());
		CUDA(cudaEventRecord(r->done, r->other));
		CUDA(cudaStreamWaitEvent(r->compute, r->done));
	}
	CUDA(cudaEventRecord(r->done, r->compute));
}

template <class Bug> static void store(struct gemm *g, int d, int p, Bug bug)
{
	const size_t all = (size_t)g->ranks * g->rows * g->cols;
	struct rank *r = &g->rank[d];

	CUDA(cudaSetDevice(d));
	if (!bug.is(result_not_awaited))
		CUDA(cudaStreamWaitEvent(r->other, r->done));
	// @bug result_not_awaited CS1002 @bug host_reads_early CS1003
	CUDA(cudaMemcpyAsync(r->host_c + p * all, r->c, all * sizeof(float), cudaMemcpyDeviceToHost, r->other));
	CUDA(cudaEventRecord(r->stored, r->other));
}

template <class Bug> static void launch(struct gemm *g, Bug bug)
{
	for (int p = 0; p < g->products; p++) {
		for (int d = 0; d < g->ranks; d++)
			load(g, d, p, bug);
		for (int d = 0; d < g->ranks; d++)
			gather(g, d, bug);
		for (int d = 0; d < g->ranks; d++) {
			multiply(g, d, p, bug);
			store(g, d, p, bug);
		}
	}
	if (bug.is(host_reads_early))
		// @bug host_reads_early CS1003
		g->early = g->rank[0].host_c[0];
	devices_synchronize(g->ranks);
}

static void check(struct checker &c, const struct gemm *g)
{
	const uint64_t n = (uint64_t)g->rows * g->k, m = (uint64_t)g->rows * g->cols;

	for (int d = 0; d < g->ranks; d++) {
		float *b = harness_elements<float>(100 + d, (uint64_t)g->k * g->cols);

		for (int p = 0; p < g->products; p++)
			for (int from = 0; from < g->ranks; from++)
				for (uint64_t at = 0; at < m; at++) {
					const uint64_t i = at / g->cols, j = at % g->cols;
					double want = 0;

					for (int x = 0; x < g->k; x++)
						want += (double)a_at(from, p * n + i * g->k + x) * b[x * g->cols + j];
					checker_see(c, at, g->rank[d].host_c[(p * g->ranks + from) * m + at], want, 0);
				}
		free(b);
	}
}

int main(int argc, char **argv)
{
	long ranks = 2, rows = 8, cols = 16, k = 32, products = 2;
	const struct option options[] = {
		{"ranks", &ranks, "devices, 2 to 8"},
		{"rows", &rows, "rows of A of a device"},
		{"cols", &cols, "columns of B of a device"},
		{"k", &k, "columns of A"},
		{"products", &products, "products, one after the other"},
	};
	const struct program p = harness_program("gather_gemm",
		"GEMM of several devices that gather rows by peer copies", __FILE__, options, bugs);
	const struct run r = harness_args(argc, argv, p);
	struct gemm *g = (struct gemm *)calloc(1, sizeof *g);

	harness_require(ranks >= 2 && ranks <= MAX_RANKS, p, "ranks must be 2 to 8");
	harness_require(rows > 0 && cols > 0 && k > 0 && products > 0, p, "sizes must be positive");
	devices_require(p, (int)ranks);
	g->ranks = (int)ranks;
	g->rows = (int)rows;
	g->cols = (int)cols;
	g->k = (int)k;
	g->products = (int)products;
	gemm_open(g);
	const int status = harness_run(p, r, [&](auto bug) { launch(g, bug); },
		[&](checker &c) { check(c, g); }, 2e-12 * ranks * ranks * rows * cols * k * products, "TFLOP/s",
		"%ld ranks, %ld x %ld x %ld", ranks, rows, cols, k);

	free(g);
	return status;
}
