/* mistakes_blackwell: a kernel of three roles with tensor memory, with one common mistake each, for
 * the line to edit that consan names (see mistakes.cu).
 *
 * usage: mistakes_blackwell NAME
 * The line to edit carries "@edit" and the names. `none` has no mistake. The product itself is of
 * no interest: one warp copies the tiles of A and B, one thread multiplies, four warps store the
 * sums. */
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cuda_runtime.h>

enum { M = 128, N = 64, STAGES = 2, STEPS = 4, TILES = 3, EPILOGUE = 128, THREADS = EPILOGUE + 64 };
enum { A_BYTES = M * 32, B_BYTES = N * 32 };

enum mistake { NONE, NO_WAIT_LD, NO_FENCE_AFTER, COMMIT_TO_FULL, BAD_SHAPE, NO_DEALLOC,
	NO_PROXY_FENCE, EPILOGUE_PARITY, PRODUCER_PARITY, PLAIN_RELEASE, NO_SUMS_WAIT, LAX_STORE,
	ONE_LANE_ARRIVES, NO_FULL_WAIT, FEW_BYTES, LATE_COMMIT };

__device__ static uint32_t at(const void *p)
{
	return (uint32_t)__cvta_generic_to_shared(p);
}

/* ---- mbarriers ---- */

__device__ static void init(uint64_t *bar, int count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(count));
}

__device__ static void wait(uint64_t *bar, int parity)
{
	asm volatile("{\n\t.reg .pred done;\n"
		"again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
		"\t@!done bra again;\n\t}" :: "r"(at(bar)), "r"(parity) : "memory");
}

__device__ static void arrive(uint64_t *bar)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory");
}

__device__ static void expect(uint64_t *bar, int bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
		:: "r"(at(bar)), "r"(bytes) : "memory");
}

__device__ static void load(void *to, const void *from, int bytes, uint64_t *bar)
{
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
		"[%0], [%1], %2, [%3];" :: "r"(at(to)), "l"(from), "r"(bytes), "r"(at(bar)) : "memory");
}

/* ---- tcgen05 ---- */

__device__ static void alloc(uint32_t *to)
{
	asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;"
		:: "r"(at(to)) : "memory");
	asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

__device__ static void dealloc(uint32_t tmem)
{
	asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" :: "r"(tmem) : "memory");
}

__device__ static void commit(uint64_t *bar)
{
	asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
		:: "r"(at(bar)) : "memory");
}

__device__ static void fence_before()
{
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ static void fence_after()
{
	asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

__device__ static void wait_loads()
{
	asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

__device__ static void load_sums(uint32_t (&d)[8], uint32_t tmem)
{
	asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
		: "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]), "=r"(d[4]), "=r"(d[5]), "=r"(d[6]),
		"=r"(d[7]) : "r"(tmem) : "memory");
}

/* A tile of `rows` rows of 16 halves in 8 by 16 byte blocks, no swizzle */
__device__ static uint64_t tile(const void *smem, int rows)
{
	const uint64_t eight_rows = 128 >> 4, half_row = rows * 16 >> 4, version = 1;

	return (uint64_t)(at(smem) >> 4) | half_row << 16 | eight_rows << 32 | version << 46;
}

__device__ static void multiply(uint32_t d, uint64_t a, uint64_t b, uint32_t descriptor, int add)
{
	asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %4, 0;\n\t"
		"tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t}"
		:: "r"(d), "l"(a), "l"(b), "r"(descriptor), "r"(add) : "memory");
}

/* ---- the kernel ---- */

struct shared {
	alignas(128) char a[STAGES][A_BYTES];
	alignas(128) char b[STAGES][B_BYTES];
	alignas(128) uint32_t staging[EPILOGUE];
	uint64_t full[STAGES], empty[STAGES], sums_full, sums_empty;
	uint32_t tmem;
};

template <mistake bug> __device__ void produce(shared &s, const char *in)
{
	for (int i = 0; i < TILES * STEPS; i++) {
		const int k = i % STAGES, round = i / STAGES & 1;

		wait(&s.empty[k], bug == PRODUCER_PARITY ? round : round ^ 1); // @edit producer_parity
		expect(&s.full[k], bug == FEW_BYTES ? A_BYTES : A_BYTES + B_BYTES); // @edit few_bytes
		load(s.a[k], in, A_BYTES, &s.full[k]);
		load(s.b[k], in, B_BYTES, &s.full[k]);
	}
}

template <mistake bug> __device__ void multiply_all(shared &s)
{
	/* f16 operands, f32 sums; M counts in units of 16, N of 8 */
	const uint32_t n = bug == BAD_SHAPE ? N : N / 8;
	const uint32_t shape = 1u << 4 | n << 17 | (M / 16) << 24;

	for (int i = 0; i < TILES * STEPS; i++) {
		const int k = i % STAGES, round = i / STAGES & 1, step = i % STEPS, t = i / STEPS;
		const uint64_t a = tile(s.a[k], M), b = tile(s.b[k], N);
		const bool add = step > 0;

		if (step == 0 && bug != NO_SUMS_WAIT) {
			wait(&s.sums_empty, t & 1 ^ 1);
			fence_after();
		}
		if (bug != NO_FULL_WAIT)
			wait(&s.full[k], round);
		fence_after();
		multiply(s.tmem, a, b, shape, add); // @edit no_full_wait no_sums_wait bad_shape
		if (bug == PLAIN_RELEASE)
			arrive(&s.empty[k]); // @edit plain_release
		else
			commit(bug == COMMIT_TO_FULL ? &s.full[k] : &s.empty[k]); // @edit commit_to_full
		if (step == (bug == LATE_COMMIT ? 0 : STEPS - 1))
			commit(&s.sums_full); // @edit late_commit
	}
}

template <mistake bug> __device__ void store(shared &s, uint32_t *out)
{
	const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	uint32_t d[8], sum = 0;

	for (int t = 0; t < TILES; t++) {
		wait(&s.sums_full, bug == EPILOGUE_PARITY ? t & 1 ^ 1 : t & 1); // @edit epilogue_parity
		if (bug != NO_FENCE_AFTER)
			fence_after();
		load_sums(d, s.tmem + (warp << 21)); // @edit no_fence_after no_wait_ld
		if (bug != NO_WAIT_LD)
			wait_loads();
		fence_before();
		if (bug != ONE_LANE_ARRIVES || lane == 0)
			arrive(&s.sums_empty);
		if (bug == NO_WAIT_LD)
			wait_loads();
		for (int i = 0; i < 8; i++)
			sum += d[i];
		if (threadIdx.x == 0) {
			if (bug == LAX_STORE)
				asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory"); // @edit lax_store
			else
				asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
		}
		asm volatile("bar.sync 1, 128;" ::: "memory");
		s.staging[threadIdx.x] = sum;
		if (bug != NO_PROXY_FENCE)
			asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
		asm volatile("bar.sync 1, 128;" ::: "memory"); // @edit no_proxy_fence
		if (threadIdx.x == 0)
			asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;\n\t"
				"cp.async.bulk.commit_group;"
				:: "l"(out + t * EPILOGUE), "r"(at(s.staging)) : "memory");
	}
	if (threadIdx.x == 0)
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

template <mistake bug>
__global__ __launch_bounds__(THREADS) void gemm(uint32_t *out, const char *in)
{
	__shared__ shared s;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

	if (threadIdx.x == 0) {
		for (int k = 0; k < STAGES; k++) {
			init(&s.full[k], 1);
			init(&s.empty[k], 1);
		}
		init(&s.sums_full, 1);
		init(&s.sums_empty, EPILOGUE); // @edit one_lane_arrives
	}
	if (warp == 0)
		alloc(&s.tmem);
	fence_before();
	__syncthreads();
	fence_after();
	if (warp < EPILOGUE / 32)
		store<bug>(s, out);
	else if (warp == EPILOGUE / 32 && lane == 0)
		produce<bug>(s, in);
	else if (warp == EPILOGUE / 32 + 1 && lane == 0)
		multiply_all<bug>(s);
	fence_before();
	__syncthreads();
	fence_after();
	if (warp == 0 && bug != NO_DEALLOC)
		dealloc(s.tmem);
} // @edit no_dealloc

static const struct {
	const char *name;
	void (*kernel)(uint32_t *, const char *);
} mistakes[] = {
	{ "none", gemm<NONE> }, { "no_wait_ld", gemm<NO_WAIT_LD> },
	{ "no_fence_after", gemm<NO_FENCE_AFTER> }, { "commit_to_full", gemm<COMMIT_TO_FULL> },
	{ "bad_shape", gemm<BAD_SHAPE> }, { "no_dealloc", gemm<NO_DEALLOC> },
	{ "no_proxy_fence", gemm<NO_PROXY_FENCE> }, { "epilogue_parity", gemm<EPILOGUE_PARITY> },
	{ "producer_parity", gemm<PRODUCER_PARITY> }, { "plain_release", gemm<PLAIN_RELEASE> },
	{ "no_sums_wait", gemm<NO_SUMS_WAIT> }, { "lax_store", gemm<LAX_STORE> },
	{ "one_lane_arrives", gemm<ONE_LANE_ARRIVES> }, { "no_full_wait", gemm<NO_FULL_WAIT> },
	{ "few_bytes", gemm<FEW_BYTES> }, { "late_commit", gemm<LATE_COMMIT> },
};

int main(int argc, char **argv)
{
	uint32_t *out;
	char *in;

	if (cudaMalloc(&in, 1 << 16) || cudaMalloc(&out, 1 << 16) || cudaMemset(in, 0, 1 << 16))
		return 3;
	for (const auto &m : mistakes) {
		if (argc != 2 || strcmp(m.name, argv[1]))
			continue;
		m.kernel<<<1, THREADS>>>(out, in);
		printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
		return 0;
	}
	fprintf(stderr, "usage: mistakes_blackwell NAME\n");
	return 2;
}
