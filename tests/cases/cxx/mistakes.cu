/* mistakes: small kernels with one common mistake each, for the line to edit that consan names.
 *
 * usage: mistakes NAME
 * The line to edit carries "@edit NAME". `none` runs the ring without a mistake. */
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

enum { THREADS = 128, STAGES = 2, TILES = 8 };

__device__ static uint32_t shared_address(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

__device__ static void init(uint64_t *barrier, int count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(shared_address(barrier)),
		"r"(count));
}

__device__ static void wait(uint64_t *barrier, int parity)
{
	asm volatile("{\n\t.reg .pred done;\n"
		"again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		"\t@!done bra again;\n\t}" :: "r"(shared_address(barrier)), "r"(parity) : "memory");
}

__device__ static void arrive(uint64_t *barrier)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(shared_address(barrier))
		: "memory");
}

__device__ static void expect(uint64_t *barrier, int bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		:: "r"(shared_address(barrier)), "r"(bytes) : "memory");
}

__device__ static void load(void *to, const void *from, int bytes, uint64_t *barrier)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%0], [%1], %2, [%3];" :: "r"(shared_address(to)), "l"(from), "r"(bytes),
		"r"(shared_address(barrier)) : "memory");
}

__global__ void reversed(float *out, const float *in)
{
	__shared__ float tile[THREADS];
	const int t = threadIdx.x;

	tile[t] = in[t];
	out[t] = tile[THREADS - 1 - t]; // @edit no_barrier
}

__global__ void pipelined(float *out, const float *in)
{
	__shared__ float tile[4][THREADS];
	const int t = threadIdx.x;
	float sum = 0;

	for (int s = 0; s < 2; s++) {
		__pipeline_memcpy_async(&tile[s][t], in + s * THREADS + t, 4);
		__pipeline_commit();
	}
	for (int i = 0; i < 4; i++) {
		if (i + 2 < 4)
			__pipeline_memcpy_async(&tile[i + 2][t], in + (i + 2) * THREADS + t, 4);
		__pipeline_commit();
		__pipeline_wait_prior(3); // @edit lax_wait
		__syncthreads();
		sum += tile[i][THREADS - 1 - t];
	}
	out[t] = sum;
}

/* 0: the right parity of a first wait, 1: the other one */
template <int producer, int consumer, bool early>
__global__ void ring(float *out, const float *in)
{
	__shared__ __align__(128) float tile[STAGES][THREADS];
	__shared__ uint64_t full[STAGES], empty[STAGES];
	const int t = threadIdx.x;
	float sum = 0;

	if (t == 0)
		for (int s = 0; s < STAGES; s++) {
			init(&full[s], 1);
			init(&empty[s], THREADS);
		}
	__syncthreads();
	if (t >= THREADS) {
		for (int i = 0; i < TILES && t == THREADS; i++) {
			const int s = i % STAGES;

			wait(&empty[s], (i / STAGES & 1) ^ 1 ^ producer); // @edit producer_parity
			expect(&full[s], sizeof tile[s]);
			load(tile[s], in + i * THREADS, sizeof tile[s], &full[s]);
		}
		return;
	}
	for (int i = 0; i < TILES; i++) {
		const int s = i % STAGES;

		wait(&full[s], (i / STAGES & 1) ^ consumer); // @edit consumer_parity
		if (early)
			arrive(&empty[s]); // @edit early_release
		sum += tile[s][THREADS - 1 - t];
		if (!early)
			arrive(&empty[s]);
	}
	out[t] = sum;
}

__global__ void stored(float *out, const float *in)
{
	__shared__ __align__(128) float tile[THREADS];
	const int t = threadIdx.x;

	tile[t] = in[t] * 2;
	__syncthreads(); // @edit no_proxy_fence
	if (t == 0) {
		asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;"
			:: "l"(out), "r"(shared_address(tile)) : "memory");
		asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
	}
}

/* Each of two threads waits before it arrives. */
__global__ void cycle(float *out, const float *in)
{
	__shared__ uint64_t a, b;
	const int t = threadIdx.x;

	if (t == 0) {
		init(&a, 1);
		init(&b, 1);
	}
	__syncthreads();
	if (t == 0) {
		wait(&a, 0); // @edit deadlock
		arrive(&b);
	}
	if (t == 32) {
		wait(&b, 0); // @edit deadlock
		arrive(&a);
	}
	out[t] = in[t];
}

static const struct {
	const char *name;
	void (*kernel)(float *, const float *);
	int threads;
} mistakes[] = {
	{ "none", ring<0, 0, false>, 2 * THREADS },
	{ "no_barrier", reversed, THREADS },
	{ "lax_wait", pipelined, THREADS },
	{ "producer_parity", ring<1, 0, false>, 2 * THREADS },
	{ "consumer_parity", ring<0, 1, false>, 2 * THREADS },
	{ "early_release", ring<0, 0, true>, 2 * THREADS },
	{ "no_proxy_fence", stored, THREADS },
	{ "deadlock", cycle, THREADS },
};

int main(int argc, char **argv)
{
	float *in, *out;

	if (cudaMalloc(&in, 1 << 16) || cudaMalloc(&out, 1 << 16) || cudaMemset(in, 0, 1 << 16))
		return 3;
	for (const auto &m : mistakes) {
		if (argc != 2 || strcmp(m.name, argv[1]))
			continue;
		m.kernel<<<1, m.threads>>>(out, in);
		printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
		return 0;
	}
	fprintf(stderr, "usage: mistakes NAME\n");
	return 2;
}
