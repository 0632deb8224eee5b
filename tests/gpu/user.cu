/* user: a program that uses the GPU in the ways that --backend=gpu must bear:
 * `user MODE`. Its kernel has a race on shared memory if it is told so; its results
 * are compared with what they must be. tests/gpu/ways.c says what is expected. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#define GOOD(call) do { \
	cudaError_t e_ = (call); \
	if (e_ != cudaSuccess) { \
		printf("%s: %s\n", #call, cudaGetErrorName(e_)); \
		return 1; \
	} \
} while (0)

enum { N = 256, BLOCKS = 64 };
enum what { CLEAN, RACE, FAULT, TRAP, HANG };

__global__ void turn(const int *in, int *out, enum what what, volatile int *flag)
{
	__shared__ int tile[N];
	const int t = threadIdx.x, at = blockIdx.x * N + t;

	tile[t] = in[at];
	if (what == CLEAN || what == HANG)
		__syncthreads();
	out[at] = tile[N - 1 - t];
	__syncthreads();
	if (what == FAULT && at == 5 * N)
		*(volatile int *)(size_t)16 = 1;
	if (what == TRAP && at == 5 * N)
		__trap();
	while (what == HANG && *flag == 0)
		;
}

/* What turn does, in two grids of which the second may begin early. */
__global__ void copy(const int *in, int *out)
{
	const int at = blockIdx.x * N + threadIdx.x;

	out[at] = in[at];
	cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void turn_behind(int *out, bool wait)
{
	__shared__ int tile[N];
	const int t = threadIdx.x, at = blockIdx.x * N + t;

	if (wait)
		cudaGridDependencySynchronize();
	tile[t] = out[at];
	__syncthreads();
	out[at] = tile[N - 1 - t];
}

__global__ void shift(const int *in, int *out, int by)
{
	out[threadIdx.x] = in[threadIdx.x + by];
}

static int *in, *out, *flag;

static int begin(int n)
{
	std::vector<int> h((size_t)n * BLOCKS * N);

	for (size_t k = 0; k < h.size(); k++)
		h[k] = (int)k;
	GOOD(cudaMalloc(&in, h.size() * sizeof(int)));
	GOOD(cudaMalloc(&out, h.size() * sizeof(int)));
	GOOD(cudaMalloc(&flag, sizeof(int)));
	GOOD(cudaMemset(flag, 0, sizeof(int)));
	GOOD(cudaMemset(out, 0, h.size() * sizeof(int)));
	GOOD(cudaMemcpy(in, h.data(), h.size() * sizeof(int), cudaMemcpyHostToDevice));
	return 0;
}

static int right(int n)
{
	std::vector<int> h((size_t)n * BLOCKS * N);

	GOOD(cudaDeviceSynchronize());
	GOOD(cudaMemcpy(h.data(), out, h.size() * sizeof(int), cudaMemcpyDeviceToHost));
	for (size_t k = 0; k < h.size(); k++)
		if (h[k] != (int)(k / N * N + N - 1 - k % N)) {
			printf("user: wrong\n");
			return 1;
		}
	printf("user: right\n");
	return 0;
}

static int plain(enum what what)
{
	if (begin(1))
		return 1;
	turn<<<BLOCKS, N>>>(in, out, what, flag);
	GOOD(cudaDeviceSynchronize());
	return what == CLEAN ? right(1) : 0;
}

/* Streams that do not wait for the default one, launches without a wait between. */
static int streams()
{
	cudaStream_t s[8];

	if (begin(8))
		return 1;
	for (int k = 0; k < 8; k++)
		GOOD(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
	for (int round = 0; round < 4; round++)
		for (int k = 0; k < 8; k++)
			turn<<<BLOCKS, N, 0, s[k]>>>(in + k * BLOCKS * N, out + k * BLOCKS * N, CLEAN, flag);
	GOOD(cudaGetLastError());
	return right(8);
}

static int threads()
{
	std::vector<std::thread> t;

	if (begin(8))
		return 1;
	for (int k = 0; k < 8; k++)
		t.emplace_back([k] {
			for (int round = 0; round < 4; round++)
				turn<<<BLOCKS, N, 0, cudaStreamPerThread>>>(in + k * BLOCKS * N,
					out + k * BLOCKS * N, CLEAN, flag);
			cudaStreamSynchronize(cudaStreamPerThread);
		});
	for (auto &x : t)
		x.join();
	return right(8);
}

enum how { AT_ONCE, HOST_WAITS, CAPTURED };

/* wait: the second grid does; otherwise the host may, between the two. */
static int dependent(bool wait, enum how how)
{
	cudaLaunchAttribute early = {};
	cudaLaunchConfig_t c = {};
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	c.gridDim = BLOCKS;
	c.blockDim = N;
	c.stream = s;
	c.attrs = &early;
	c.numAttrs = 1;
	if (how == CAPTURED)
		GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	copy<<<BLOCKS, N, 0, s>>>(in, out);
	if (how == HOST_WAITS)
		GOOD(cudaStreamSynchronize(s));
	GOOD(cudaLaunchKernelEx(&c, turn_behind, out, wait));
	if (how == CAPTURED) {
		GOOD(cudaStreamEndCapture(s, &g));
		GOOD(cudaGraphInstantiate(&run, g, 0));
		GOOD(cudaGraphLaunch(run, s));
	}
	return right(1);
}

/* Two launches in a row, captured. */
static int capture(cudaStream_t s, enum what what, int *to, cudaGraph_t *g)
{
	GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	turn<<<BLOCKS, N, 0, s>>>(in, to, what, flag);
	turn<<<BLOCKS, N, 0, s>>>(in, to, what, flag);
	GOOD(cudaStreamEndCapture(s, g));
	return 0;
}

/* Captured once, launched three times. */
static int graph(enum what what)
{
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	if (capture(s, what, out, &g))
		return 1;
	GOOD(cudaGraphInstantiate(&run, g, 0));
	GOOD(cudaGraphDestroy(g));
	for (int k = 0; k < 3; k++)
		GOOD(cudaGraphLaunch(run, s));
	GOOD(cudaStreamSynchronize(s));
	GOOD(cudaGraphExecDestroy(run));
	return what == CLEAN ? right(1) : 0;
}

/* Captured, but never launched. */
static int graph_unused()
{
	cudaStream_t s;
	cudaGraph_t g;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	if (capture(s, RACE, out, &g))
		return 1;
	turn<<<BLOCKS, N, 0, s>>>(in, out, CLEAN, flag);
	return right(1);
}

/* What an executable graph does is changed after its first launch. */
static int graph_update(enum what what)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;
	int *other;

	if (begin(1))
		return 1;
	GOOD(cudaMalloc(&other, BLOCKS * N * sizeof(int)));
	GOOD(cudaStreamCreate(&s));
	if (capture(s, CLEAN, other, &g))
		return 1;
	GOOD(cudaGraphInstantiate(&run, g, 0));
	GOOD(cudaGraphDestroy(g));
	GOOD(cudaGraphLaunch(run, s));
	if (capture(s, what, out, &g))
		return 1;
	GOOD(cudaGraphExecUpdate(run, g, &info));
	GOOD(cudaGraphDestroy(g));
	GOOD(cudaGraphLaunch(run, s));
	GOOD(cudaStreamSynchronize(s));
	return what == CLEAN ? right(1) : 0;
}

static int kernel_node(cudaGraph_t g, cudaGraphNode_t *n, const cudaGraphNode_t *after, size_t nafter,
	enum what what)
{
	void *args[] = { &in, &out, &what, &flag };
	cudaKernelNodeParams p = {};

	p.func = (void *)turn;
	p.gridDim = BLOCKS;
	p.blockDim = N;
	p.kernelParams = args;
	GOOD(cudaGraphAddKernelNode(n, g, after, nafter, &p));
	return 0;
}

static void count(void *counter)
{
	++*(int *)counter;
}

/* Nodes of most kinds; kernels in a graph of their own if child is set. */
static int graph_nodes(bool child, enum what what)
{
	static int host[BLOCKS * N], back[BLOCKS * N], counter;
	cudaGraphNode_t node[6];
	cudaHostNodeParams call = {};
	cudaMemsetParams zero = {};
	cudaGraph_t g, inner;
	cudaGraphExec_t run;
	bool good = true;

	if (begin(1))
		return 1;
	GOOD(cudaMemset(in, 0, sizeof host));
	for (int k = 0; k < BLOCKS * N; k++)
		host[k] = k;
	GOOD(cudaGraphCreate(&g, 0));
	zero.dst = out;
	zero.elementSize = 4;
	zero.width = BLOCKS * N;
	zero.height = 1;
	zero.value = 7;
	GOOD(cudaGraphAddMemsetNode(&node[0], g, nullptr, 0, &zero));
	GOOD(cudaGraphAddMemcpyNode1D(&node[1], g, nullptr, 0, in, host, sizeof host, cudaMemcpyHostToDevice));
	if (child) {
		GOOD(cudaGraphCreate(&inner, 0));
		if (kernel_node(inner, &node[2], nullptr, 0, what))
			return 1;
		GOOD(cudaGraphAddChildGraphNode(&node[2], g, node, 2, inner));
		GOOD(cudaGraphDestroy(inner));
	} else if (kernel_node(g, &node[2], node, 2, what)) {
		return 1;
	}
	GOOD(cudaGraphAddEmptyNode(&node[3], g, &node[2], 1));
	GOOD(cudaGraphAddMemcpyNode1D(&node[4], g, &node[3], 1, back, out, sizeof back, cudaMemcpyDeviceToHost));
	call.fn = count;
	call.userData = &counter;
	GOOD(cudaGraphAddHostNode(&node[5], g, &node[4], 1, &call));
	GOOD(cudaGraphInstantiate(&run, g, 0));
	for (int k = 0; k < 3; k++) {
		memset(back, 0, sizeof back);
		GOOD(cudaGraphLaunch(run, 0));
		GOOD(cudaDeviceSynchronize());
		good &= counter == k + 1;
		for (int i = 0; i < BLOCKS * N; i++)
			good &= back[i] == i / N * N + N - 1 - i % N;
	}
	if (what == CLEAN && !good)
		printf("user: wrong\n");
	return what == CLEAN ? right(1) : 0;
}

/* Each node is sent elsewhere, one with a race is switched off. */
static int graph_params()
{
	enum { BYTES = BLOCKS * N * sizeof(int) };
	static int calls[2];
	enum what what = CLEAN;
	int *wiped, *turned[2];
	void *args[] = { &in, &turned[1], &what, &flag };
	cudaHostNodeParams call = {};
	cudaKernelNodeParams p = {};
	cudaMemsetParams zero = {};
	cudaGraphNode_t node[7];
	cudaEvent_t from, to;
	cudaGraphExec_t run;
	cudaGraph_t g;
	float ms;

	if (begin(1))
		return 1;
	for (int **at : { &wiped, &turned[0], &turned[1] })
		GOOD(cudaMalloc(at, BYTES));
	GOOD(cudaEventCreate(&from));
	GOOD(cudaEventCreate(&to));
	GOOD(cudaGraphCreate(&g, 0));
	p.func = (void *)turn;
	p.gridDim = BLOCKS;
	p.blockDim = N;
	p.kernelParams = args;
	zero.dst = out;
	zero.elementSize = 4;
	zero.width = BLOCKS * N;
	zero.height = 1;
	call.fn = count;
	call.userData = &calls[0];
	GOOD(cudaGraphAddEventRecordNode(&node[0], g, nullptr, 0, from));
	std::swap(turned[0], turned[1]);
	GOOD(cudaGraphAddKernelNode(&node[1], g, &node[0], 1, &p));
	std::swap(turned[0], turned[1]);
	GOOD(cudaGraphAddMemcpyNode1D(&node[2], g, &node[1], 1, out, turned[0], BYTES, cudaMemcpyDeviceToDevice));
	GOOD(cudaGraphAddMemsetNode(&node[3], g, &node[2], 1, &zero));
	GOOD(cudaGraphAddHostNode(&node[4], g, &node[3], 1, &call));
	what = RACE;
	GOOD(cudaGraphAddKernelNode(&node[5], g, &node[4], 1, &p));
	what = CLEAN;
	GOOD(cudaGraphAddEventRecordNode(&node[6], g, &node[5], 1, to));
	GOOD(cudaGraphInstantiate(&run, g, 0));
	GOOD(cudaGraphNodeSetEnabled(run, node[5], 0));
	GOOD(cudaGraphLaunch(run, 0));
	GOOD(cudaDeviceSynchronize());
	GOOD(cudaEventElapsedTime(&ms, from, to));
	zero.dst = wiped;
	call.userData = &calls[1];
	GOOD(cudaGraphExecKernelNodeSetParams(run, node[1], &p));
	GOOD(cudaGraphExecMemcpyNodeSetParams1D(run, node[2], out, turned[1], BYTES, cudaMemcpyDeviceToDevice));
	GOOD(cudaGraphExecMemsetNodeSetParams(run, node[3], &zero));
	GOOD(cudaGraphExecHostNodeSetParams(run, node[4], &call));
	GOOD(cudaGraphLaunch(run, 0));
	GOOD(cudaDeviceSynchronize());
	if (calls[0] != 1 || calls[1] != 1)
		printf("user: wrong calls\n");
	return right(1);
}

/* Memory that the graph allocates is in the program's hand only there. */
static int graph_memory()
{
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;
	int *there;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	GOOD(cudaMallocAsync(&there, BLOCKS * N * sizeof(int), s));
	turn<<<BLOCKS, N, 0, s>>>(in, there, CLEAN, flag);
	GOOD(cudaMemcpyAsync(out, there, BLOCKS * N * sizeof(int), cudaMemcpyDeviceToDevice, s));
	GOOD(cudaFreeAsync(there, s));
	GOOD(cudaStreamEndCapture(s, &g));
	GOOD(cudaGraphInstantiate(&run, g, 0));
	for (int k = 0; k < 2; k++)
		GOOD(cudaGraphLaunch(run, s));
	return right(1);
}

/* What turn does, by two blocks of a cluster; together: and by all of the grid. */
__global__ void turn_cluster(const int *in, int *out, bool together)
{
	__shared__ int tile[N];
	const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
	const int t = threadIdx.x, at = (blockIdx.x ^ 1) * N + t;

	tile[t] = in[at];
	if (together)
		cooperative_groups::this_grid().sync();
	cluster.sync();
	out[blockIdx.x * N + t] = cluster.map_shared_rank(tile, cluster.block_rank() ^ 1)[N - 1 - t];
	cluster.sync();
}

/* A launch with attributes, captured. */
static int graph_cluster(bool together)
{
	cudaLaunchAttribute with[2] = {};
	cudaLaunchConfig_t c = {};
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	with[0].id = cudaLaunchAttributeClusterDimension;
	with[0].val.clusterDim = { 2, 1, 1 };
	with[1].id = cudaLaunchAttributeCooperative;
	with[1].val.cooperative = 1;
	c.gridDim = BLOCKS;
	c.blockDim = N;
	c.stream = s;
	c.attrs = with;
	c.numAttrs = together ? 2 : 1;
	GOOD(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	GOOD(cudaLaunchKernelEx(&c, turn_cluster, in, out, together));
	GOOD(cudaStreamEndCapture(s, &g));
	GOOD(cudaGraphInstantiate(&run, g, 0));
	for (int k = 0; k < 2; k++)
		GOOD(cudaGraphLaunch(run, s));
	return right(1);
}

/* Nearly all memory is the program's before its first launch. */
static int memory()
{
	size_t rest, all;
	void *most;

	if (begin(1))
		return 1;
	GOOD(cudaMemGetInfo(&rest, &all));
	GOOD(cudaMalloc(&most, rest - (rest >> 8)));
	turn<<<BLOCKS, N>>>(in, out, CLEAN, flag);
	return right(1);
}

/* Each half of the block stores what the other one loads. */
static const char in_a_file[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .entry swap(.param .u64 out, .param .u32 clean)\n{\n"
	"\t.shared .align 4 .b8 tile[256];\n\t.reg .b32 %r<8>;\n\t.reg .b64 %d<4>;\n\t.reg .pred %p;\n"
	"\tmov.u32 %r0, %tid.x;\n\tmov.u32 %r1, tile;\n\tmad.lo.u32 %r2, %r0, 4, %r1;\n"
	"\tst.shared.b32 [%r2], %r0;\n\tld.param.u32 %r3, [clean];\n\tsetp.eq.u32 %p, %r3, 0;\n"
	"\t@%p bra now;\n\tbar.sync 0;\n"
	"now:\n\txor.b32 %r4, %r2, 128;\n\tld.shared.b32 %r5, [%r4];\n\tld.param.u64 %d0, [out];\n"
	"\tmad.wide.u32 %d1, %r0, 4, %d0;\n\tst.global.b32 [%d1], %r5;\n\tret;\n}\n";

template <typename F> static F *driver(const char *name, F *)
{
	cudaDriverEntryPointQueryResult result;
	void *f = nullptr;

	if (cudaGetDriverEntryPointByVersion(name, &f, 12080, cudaEnableDefault, &result))
		return nullptr;
	return (F *)f;
}
#define DRIVER(name) driver(#name, (decltype(name) *)nullptr)

/* A module, or a library, that is read from a file. */
static int file(bool library, unsigned clean)
{
	char path[] = "/tmp/consan-user-XXXXXX";
	CUfunction f;
	CUkernel k;
	CUlibrary l;
	CUmodule m;
	int fd = mkstemp(path);
	unsigned got[64];
	bool good = true;

	if (begin(1) || fd < 0 || write(fd, in_a_file, sizeof in_a_file - 1) < 0)
		return 1;
	close(fd);
	if (library) {
		good = !DRIVER(cuLibraryLoadFromFile)(&l, path, 0, 0, 0, 0, 0, 0) &&
			!DRIVER(cuLibraryGetKernel)(&k, l, "swap");
		f = (CUfunction)k;
	} else {
		good = !DRIVER(cuModuleLoad)(&m, path) && !DRIVER(cuModuleGetFunction)(&f, m, "swap");
	}
	unlink(path);
	void *args[] = { &out, &clean };
	if (!good || DRIVER(cuLaunchKernel)(f, 1, 1, 1, 64, 1, 1, 0, 0, args, 0)) {
		printf("user: not loaded\n");
		return 1;
	}
	GOOD(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
	for (unsigned t = 0; clean && t < 64; t++)
		good &= got[t] == (t ^ 32);
	printf("user: %s\n", good ? "right" : "wrong");
	return !good;
}

/* What begins there has so many bytes, as the driver says. */
static bool has(void *at, size_t bytes)
{
	CUdeviceptr base;
	size_t size[3];
	CUpointer_attribute what[] = { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	void *data[] = { &base, &size[2] };

	return !DRIVER(cuMemGetAddressRange)(&base, &size[0], (CUdeviceptr)at + bytes / 2) &&
		base == (CUdeviceptr)at &&
		!DRIVER(cuPointerGetAttribute)(&size[1], what[1], (CUdeviceptr)at) &&
		!DRIVER(cuPointerGetAttributes)(2, what, data, (CUdeviceptr)at + bytes - 1) &&
		base == (CUdeviceptr)at && size[0] == bytes && size[1] == bytes && size[2] == bytes;
}

/* Allocations as the program asked for them, and a kernel that reads to their very end, or
 * `past` it. A guard that does not fit is no reason to fail. */
static int guard(int past, bool fill)
{
	const int n = 1000;
	size_t pitch, rest, all;
	cudaStream_t s;
	int *at[4];
	void *most;

	if (begin(1))
		return 1;
	GOOD(cudaStreamCreate(&s));
	GOOD(cudaMalloc(&at[0], n * sizeof(int)));
	GOOD(cudaMallocAsync(&at[1], n * sizeof(int), s));
	GOOD(cudaMallocManaged(&at[3], n * sizeof(int)));
	GOOD(cudaMallocPitch(&at[2], &pitch, n * sizeof(int), 3));
	memset(at[3], 0, n * sizeof(int));
	GOOD(cudaMemset(at[0], 0, n * sizeof(int)));
	GOOD(cudaMemset(at[2], 0, 3 * pitch));
	GOOD(cudaMemsetAsync(at[1], 0, n * sizeof(int), s));
	if (!has(at[0], n * sizeof(int)) || !has(at[1], n * sizeof(int)) || !has(at[2], 3 * pitch) ||
			!has(at[3], n * sizeof(int))) {
		printf("user: wrong sizes\n");
		return 1;
	}
	for (int k = 0; k < 4; k++)
		shift<<<1, N, 0, s>>>(at[k], out, (k != 2 ? n : (int)(3 * pitch / sizeof(int))) - N + past);
	GOOD(cudaStreamSynchronize(s));
	if (fill) {
		const size_t unit = 2 << 20;

		if (cudaMalloc(&most, (size_t)1 << 60) != cudaErrorMemoryAllocation)
			return 1;
		cudaGetLastError();
		GOOD(cudaMemGetInfo(&rest, &all));
		/* fragments at the end are not all to be had */
		for (rest &= ~(unit - 1); rest && cudaMalloc(&most, rest); rest -= unit)
			cudaGetLastError();
		if (!has(most, rest))
			return 1;
	}
	printf("user: right\n");
	return 0;
}

static bool lacks_second()
{
	int n = 0;

	if (cudaGetDeviceCount(&n) || n < 2)
		printf("user: not run: there is one GPU\n");
	return n < 2;
}

/* The second GPU stops a kernel. */
static int second(enum what what)
{
	if (lacks_second())
		return 0;
	GOOD(cudaSetDevice(1));
	return plain(what);
}

/* Two GPUs in turn, from one thread, then from several. */
static int devices()
{
	struct { int *in, *out, *flag; } of[2];
	std::vector<std::thread> t;

	if (lacks_second())
		return 0;
	for (int d = 0; d < 2; d++) {
		GOOD(cudaSetDevice(d));
		if (begin(8))
			return 1;
		of[d] = { in, out, flag };
	}
	for (int round = 0; round < 6; round++) {
		GOOD(cudaSetDevice(round % 2));
		turn<<<BLOCKS, N>>>(of[round % 2].in, of[round % 2].out, CLEAN, of[round % 2].flag);
	}
	for (int k = 0; k < 8; k++)
		t.emplace_back([k, &of] {
			for (int round = 0; round < 6; round++) {
				const int d = (k + round) % 2;

				cudaSetDevice(d);
				turn<<<BLOCKS, N, 0, cudaStreamPerThread>>>(of[d].in + k * BLOCKS * N,
					of[d].out + k * BLOCKS * N, CLEAN, of[d].flag);
				cudaStreamSynchronize(cudaStreamPerThread);
			}
		});
	for (auto &x : t)
		x.join();
	for (int d = 0; d < 2; d++) {
		GOOD(cudaSetDevice(d));
		out = of[d].out;
		if (right(8))
			return 1;
	}
	return 0;
}

/* The device is reset between launches; nothing of what was there before stays. */
static int reset()
{
	size_t rest[4], all;

	for (int round = 0; round < 4; round++) {
		if (begin(1))
			return 1;
		GOOD(cudaMemGetInfo(&rest[round], &all));
		turn<<<BLOCKS, N>>>(in, out, CLEAN, flag);
		if (right(1))
			return 1;
		GOOD(cudaDeviceReset());
	}
	if (rest[3] < rest[1] - rest[1] / 16) {
		printf("user: %zu bytes are lost\n", rest[1] - rest[3]);
		return 1;
	}
	return 0;
}

/* Runs f, which may race, in the current context. */
static bool swaps(CUfunction f, unsigned clean, unsigned distance)
{
	CUdeviceptr to = 0;
	unsigned got[64];
	void *args[] = { &to, &clean };
	bool good = !DRIVER(cuMemAlloc)(&to, sizeof got) &&
		!DRIVER(cuLaunchKernel)(f, 1, 1, 1, 64, 1, 1, 0, 0, args, 0) &&
		!DRIVER(cuMemcpyDtoH)(got, to, sizeof got);

	for (unsigned t = 0; good && clean && t < 64; t++)
		good = got[t] == (t ^ distance);
	if (to)
		DRIVER(cuMemFree)(to);
	return good;
}

/* Two contexts of one GPU in turn; one ends, another comes in its place. */
static int contexts()
{
	CUcontext c[2];
	CUfunction f[2];
	CUmodule m;
	bool good = !DRIVER(cuInit)(0);

	for (int round = 0; good && round < 4; round++) {
		for (int k = 0; good && k < 2; k++) {
			if (round == 0 || (k == 1 && round == 2))
				good = !DRIVER(cuCtxCreate)(&c[k], nullptr, 0, 0) &&
					!DRIVER(cuModuleLoadData)(&m, in_a_file) &&
					!DRIVER(cuModuleGetFunction)(&f[k], m, "swap");
			good = good && !DRIVER(cuCtxSetCurrent)(c[k]) && swaps(f[k], 1, 32);
		}
		if (round == 1)
			good = good && !DRIVER(cuCtxDestroy)(c[1]);
	}
	printf("user: %s\n", good ? "right" : "wrong");
	return !good;
}

/* A module, or a library, is unloaded; the next one has a kernel of the same name, with
 * other code. */
static int unload(bool library, unsigned clean)
{
	std::string other = in_a_file;
	bool good = !begin(1);

	other.replace(other.find(", 128;"), 6, ", 64; ");
	for (int round = 0; good && round < 4; round++) {
		const char *text = round % 2 ? other.c_str() : in_a_file;
		const unsigned distance = round % 2 ? 16 : 32;
		CUfunction f;
		CUkernel k;
		CUlibrary l;
		CUmodule m;

		if (library) {
			good = !DRIVER(cuLibraryLoadData)(&l, text, 0, 0, 0, 0, 0, 0) &&
				!DRIVER(cuLibraryGetKernel)(&k, l, "swap");
			f = (CUfunction)k;
		} else {
			good = !DRIVER(cuModuleLoadData)(&m, text) && !DRIVER(cuModuleGetFunction)(&f, m, "swap");
		}
		good = good && swaps(f, round < 3 || clean, distance) &&
			!(library ? DRIVER(cuLibraryUnload)(l) : DRIVER(cuModuleUnload)(m));
	}
	printf("user: %s\n", good ? "right" : "wrong");
	return !good;
}

static const struct { const char *mode; int (*run)(); } modes[] = {
	{ "clean", [] { return plain(CLEAN); } },
	{ "race", [] { return plain(RACE); } },
	{ "fault", [] { return plain(FAULT); } },
	{ "trap", [] { return plain(TRAP); } },
	{ "hang", [] { return plain(HANG); } },
	{ "streams", [] { return streams(); } },
	{ "threads", [] { return threads(); } },
	{ "dependent", [] { return dependent(true, AT_ONCE); } },
	{ "dependent-race", [] { return dependent(false, AT_ONCE); } },
	{ "dependent-synced", [] { return dependent(false, HOST_WAITS); } },
	{ "graph", [] { return graph(CLEAN); } },
	{ "graph-race", [] { return graph(RACE); } },
	{ "graph-unused", [] { return graph_unused(); } },
	{ "graph-update", [] { return graph_update(CLEAN); } },
	{ "graph-update-race", [] { return graph_update(RACE); } },
	{ "graph-nodes", [] { return graph_nodes(false, CLEAN); } },
	{ "graph-nodes-race", [] { return graph_nodes(false, RACE); } },
	{ "graph-child", [] { return graph_nodes(true, CLEAN); } },
	{ "graph-child-race", [] { return graph_nodes(true, RACE); } },
	{ "graph-params", [] { return graph_params(); } },
	{ "graph-memory", [] { return graph_memory(); } },
	{ "graph-fault", [] { return graph(FAULT); } },
	{ "graph-cluster", [] { return graph_cluster(false); } },
	{ "graph-together", [] { return graph_cluster(true); } },
	{ "graph-dependent", [] { return dependent(true, CAPTURED); } },
	{ "graph-dependent-race", [] { return dependent(false, CAPTURED); } },
	{ "memory", [] { return memory(); } },
	{ "file", [] { return file(false, 1); } },
	{ "file-race", [] { return file(false, 0); } },
	{ "library-file", [] { return file(true, 1); } },
	{ "guard", [] { return guard(0, false); } },
	{ "guard-past", [] { return guard(1, false); } },
	{ "guard-fill", [] { return guard(0, true); } },
	{ "devices", [] { return devices(); } },
	{ "devices-fault", [] { return second(FAULT); } },
	{ "reset", [] { return reset(); } },
	{ "contexts", [] { return contexts(); } },
	{ "unload", [] { return unload(false, 1); } },
	{ "unload-race", [] { return unload(false, 0); } },
	{ "unload-library", [] { return unload(true, 1); } },
	{ "unload-library-race", [] { return unload(true, 0); } },
};

int main(int argc, char **argv)
{
	for (const auto &m : modes)
		if (argc > 1 && !strcmp(argv[1], m.mode))
			return m.run();
	fprintf(stderr, "usage: user MODE, one of");
	for (const auto &m : modes)
		fprintf(stderr, " %s", m.mode);
	fprintf(stderr, "\n");
	return 2;
}
