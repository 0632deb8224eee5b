/* scenario: a program that uses CUDA in the many ways that --backend=gpu must support:
 * `scenario NAME`. Its kernel reverses blocks of numbers and has a race on shared memory if asked
 * for. The program compares its results; tests/gpu/scenarios.c lists what consan must report. Long
 * because it has a function for each scenario. */
#include <cassert>
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

#define CHECK(call) do { \
	cudaError_t e_ = (call); \
	if (e_ != cudaSuccess) { \
		printf("%s: %s\n", #call, cudaGetErrorName(e_)); \
		return 1; \
	} \
} while (0)

enum { N = 256, BLOCKS = 64 };
enum what { CLEAN, RACE, FAULT, TRAP, HANG };

__global__ void reverse(const int *in, int *out, enum what what, volatile int *flag)
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

/* The same in two grids, of which the second may begin early. */
__global__ void copy(const int *in, int *out)
{
	const int at = blockIdx.x * N + threadIdx.x;

	out[at] = in[at];
	cudaTriggerProgrammaticLaunchCompletion();
}

__global__ void reverse_early(int *out, bool wait)
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

/* Where number k comes from in a correct result */
static int source_of(size_t k)
{
	return (int)(k / N * N + N - 1 - k % N);
}

/* Allocates and fills the arrays, n times BLOCKS * N numbers. */
static int begin(int n)
{
	std::vector<int> h((size_t)n * BLOCKS * N);

	for (size_t k = 0; k < h.size(); k++)
		h[k] = (int)k;
	CHECK(cudaMalloc(&in, h.size() * sizeof(int)));
	CHECK(cudaMalloc(&out, h.size() * sizeof(int)));
	CHECK(cudaMalloc(&flag, sizeof(int)));
	CHECK(cudaMemset(flag, 0, sizeof(int)));
	CHECK(cudaMemset(out, 0, h.size() * sizeof(int)));
	CHECK(cudaMemcpy(in, h.data(), h.size() * sizeof(int), cudaMemcpyHostToDevice));
	return 0;
}

/* Compares the whole result. */
static int check(int n)
{
	std::vector<int> h((size_t)n * BLOCKS * N);

	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(h.data(), out, h.size() * sizeof(int), cudaMemcpyDeviceToHost));
	for (size_t k = 0; k < h.size(); k++)
		if (h[k] != source_of(k)) {
			printf("scenario: wrong\n");
			return 1;
		}
	printf("scenario: correct\n");
	return 0;
}

static int begin_stream(cudaStream_t *s)
{
	if (begin(1))
		return 1;
	CHECK(cudaStreamCreate(s));
	return 0;
}

static cudaLaunchConfig_t config_of(cudaStream_t s, cudaLaunchAttribute *attrs, unsigned n)
{
	cudaLaunchConfig_t c = {};

	c.gridDim = BLOCKS;
	c.blockDim = N;
	c.stream = s;
	c.attrs = attrs;
	c.numAttrs = n;
	return c;
}

static int launch_graph(cudaGraph_t g, cudaStream_t s, int times)
{
	cudaGraphExec_t run;

	CHECK(cudaGraphInstantiate(&run, g, 0));
	for (int k = 0; k < times; k++)
		CHECK(cudaGraphLaunch(run, s));
	return 0;
}

static int plain(enum what what)
{
	if (begin(1))
		return 1;
	reverse<<<BLOCKS, N>>>(in, out, what, flag);
	CHECK(cudaDeviceSynchronize());
	return what == CLEAN ? check(1) : 0;
}

/* Streams that do not wait for the default one, launches without a wait between. */
static int streams()
{
	cudaStream_t s[8];

	if (begin(8))
		return 1;
	for (int k = 0; k < 8; k++)
		CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
	for (int round = 0; round < 4; round++)
		for (int k = 0; k < 8; k++)
			reverse<<<BLOCKS, N, 0, s[k]>>>(in + k * BLOCKS * N, out + k * BLOCKS * N, CLEAN, flag);
	CHECK(cudaGetLastError());
	return check(8);
}

static int threads()
{
	std::vector<std::thread> t;

	if (begin(8))
		return 1;
	for (int k = 0; k < 8; k++)
		t.emplace_back([k] {
			for (int round = 0; round < 4; round++)
				reverse<<<BLOCKS, N, 0, cudaStreamPerThread>>>(in + k * BLOCKS * N,
					out + k * BLOCKS * N, CLEAN, flag);
			cudaStreamSynchronize(cudaStreamPerThread);
		});
	for (auto &x : t)
		x.join();
	return check(8);
}

enum how { AT_ONCE, HOST_WAITS, CAPTURED };

/* wait: the second grid waits for the first. HOST_WAITS: the host waits between the two. */
static int dependent(bool wait, enum how how)
{
	cudaLaunchAttribute early = {};
	cudaStream_t s;
	cudaGraph_t g;

	if (begin_stream(&s))
		return 1;
	early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
	early.val.programmaticStreamSerializationAllowed = 1;
	const cudaLaunchConfig_t c = config_of(s, &early, 1);

	if (how == CAPTURED)
		CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	copy<<<BLOCKS, N, 0, s>>>(in, out);
	if (how == HOST_WAITS)
		CHECK(cudaStreamSynchronize(s));
	CHECK(cudaLaunchKernelEx(&c, reverse_early, out, wait));
	if (how == CAPTURED) {
		CHECK(cudaStreamEndCapture(s, &g));
		if (launch_graph(g, s, 1))
			return 1;
	}
	return check(1);
}

/* Two launches in a row, captured. */
static int capture(cudaStream_t s, enum what what, int *to, cudaGraph_t *g)
{
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	reverse<<<BLOCKS, N, 0, s>>>(in, to, what, flag);
	reverse<<<BLOCKS, N, 0, s>>>(in, to, what, flag);
	CHECK(cudaStreamEndCapture(s, g));
	return 0;
}

/* Captured once, launched three times. */
static int graph(enum what what)
{
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;

	if (begin_stream(&s))
		return 1;
	if (capture(s, what, out, &g))
		return 1;
	CHECK(cudaGraphInstantiate(&run, g, 0));
	CHECK(cudaGraphDestroy(g));
	for (int k = 0; k < 3; k++)
		CHECK(cudaGraphLaunch(run, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaGraphExecDestroy(run));
	return what == CLEAN ? check(1) : 0;
}

/* Captured, but never launched. */
static int graph_unused()
{
	cudaStream_t s;
	cudaGraph_t g;

	if (begin_stream(&s))
		return 1;
	if (capture(s, RACE, out, &g))
		return 1;
	reverse<<<BLOCKS, N, 0, s>>>(in, out, CLEAN, flag);
	return check(1);
}

/* An executable graph is updated after its first launch. */
static int graph_update(enum what what)
{
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t run;
	cudaStream_t s;
	cudaGraph_t g;
	int *other;

	if (begin(1))
		return 1;
	CHECK(cudaMalloc(&other, BLOCKS * N * sizeof(int)));
	CHECK(cudaStreamCreate(&s));
	if (capture(s, CLEAN, other, &g))
		return 1;
	CHECK(cudaGraphInstantiate(&run, g, 0));
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaGraphLaunch(run, s));
	if (capture(s, what, out, &g))
		return 1;
	CHECK(cudaGraphExecUpdate(run, g, &info));
	CHECK(cudaGraphDestroy(g));
	CHECK(cudaGraphLaunch(run, s));
	CHECK(cudaStreamSynchronize(s));
	return what == CLEAN ? check(1) : 0;
}

static cudaKernelNodeParams kernel_params(void **args)
{
	cudaKernelNodeParams p = {};

	p.func = (void *)reverse;
	p.gridDim = BLOCKS;
	p.blockDim = N;
	p.kernelParams = args;
	return p;
}

static cudaMemsetParams memset_params(int *to, unsigned value)
{
	cudaMemsetParams p = {};

	p.dst = to;
	p.elementSize = 4;
	p.width = BLOCKS * N;
	p.height = 1;
	p.value = value;
	return p;
}

static int kernel_node(cudaGraph_t g, cudaGraphNode_t *n, const cudaGraphNode_t *after,
	size_t nafter, enum what what)
{
	void *args[] = { &in, &out, &what, &flag };
	const cudaKernelNodeParams p = kernel_params(args);

	CHECK(cudaGraphAddKernelNode(n, g, after, nafter, &p));
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
	cudaGraph_t g, inner;
	cudaGraphExec_t run;
	bool good = true;

	if (begin(1))
		return 1;
	CHECK(cudaMemset(in, 0, sizeof host));
	for (int k = 0; k < BLOCKS * N; k++)
		host[k] = k;
	CHECK(cudaGraphCreate(&g, 0));
	const cudaMemsetParams fill = memset_params(out, 7);

	CHECK(cudaGraphAddMemsetNode(&node[0], g, nullptr, 0, &fill));
	CHECK(cudaGraphAddMemcpyNode1D(&node[1], g, nullptr, 0, in, host, sizeof host,
		cudaMemcpyHostToDevice));
	if (child) {
		CHECK(cudaGraphCreate(&inner, 0));
		if (kernel_node(inner, &node[2], nullptr, 0, what))
			return 1;
		CHECK(cudaGraphAddChildGraphNode(&node[2], g, node, 2, inner));
		CHECK(cudaGraphDestroy(inner));
	} else if (kernel_node(g, &node[2], node, 2, what)) {
		return 1;
	}
	CHECK(cudaGraphAddEmptyNode(&node[3], g, &node[2], 1));
	CHECK(cudaGraphAddMemcpyNode1D(&node[4], g, &node[3], 1, back, out, sizeof back,
		cudaMemcpyDeviceToHost));
	call.fn = count;
	call.userData = &counter;
	CHECK(cudaGraphAddHostNode(&node[5], g, &node[4], 1, &call));
	CHECK(cudaGraphInstantiate(&run, g, 0));
	for (int k = 0; k < 3; k++) {
		memset(back, 0, sizeof back);
		CHECK(cudaGraphLaunch(run, 0));
		CHECK(cudaDeviceSynchronize());
		good &= counter == k + 1;
		for (int i = 0; i < BLOCKS * N; i++)
			good &= back[i] == source_of(i);
	}
	if (what == CLEAN && !good)
		printf("scenario: wrong\n");
	return what == CLEAN ? check(1) : 0;
}

/* Each node gets new parameters; one with a race is disabled. */
static int graph_params()
{
	enum { BYTES = BLOCKS * N * sizeof(int) };
	static int calls[2];
	enum what what = CLEAN;
	int *wiped, *reversed[2];
	void *args[] = { &in, &reversed[1], &what, &flag };
	cudaHostNodeParams call = {};
	cudaKernelNodeParams p = kernel_params(args);
	cudaMemsetParams zero = {};
	cudaGraphNode_t node[7];
	cudaEvent_t from, to;
	cudaGraphExec_t run;
	cudaGraph_t g;
	float ms;

	if (begin(1))
		return 1;
	for (int **at : { &wiped, &reversed[0], &reversed[1] })
		CHECK(cudaMalloc(at, BYTES));
	CHECK(cudaEventCreate(&from));
	CHECK(cudaEventCreate(&to));
	CHECK(cudaGraphCreate(&g, 0));
	zero = memset_params(out, 0);
	call.fn = count;
	call.userData = &calls[0];
	CHECK(cudaGraphAddEventRecordNode(&node[0], g, nullptr, 0, from));
	std::swap(reversed[0], reversed[1]);
	CHECK(cudaGraphAddKernelNode(&node[1], g, &node[0], 1, &p));
	std::swap(reversed[0], reversed[1]);
	CHECK(cudaGraphAddMemcpyNode1D(&node[2], g, &node[1], 1, out, reversed[0], BYTES,
		cudaMemcpyDeviceToDevice));
	CHECK(cudaGraphAddMemsetNode(&node[3], g, &node[2], 1, &zero));
	CHECK(cudaGraphAddHostNode(&node[4], g, &node[3], 1, &call));
	what = RACE;
	CHECK(cudaGraphAddKernelNode(&node[5], g, &node[4], 1, &p));
	what = CLEAN;
	CHECK(cudaGraphAddEventRecordNode(&node[6], g, &node[5], 1, to));
	CHECK(cudaGraphInstantiate(&run, g, 0));
	CHECK(cudaGraphNodeSetEnabled(run, node[5], 0));
	CHECK(cudaGraphLaunch(run, 0));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaEventElapsedTime(&ms, from, to));
	zero.dst = wiped;
	call.userData = &calls[1];
	CHECK(cudaGraphExecKernelNodeSetParams(run, node[1], &p));
	CHECK(cudaGraphExecMemcpyNodeSetParams1D(run, node[2], out, reversed[1], BYTES,
		cudaMemcpyDeviceToDevice));
	CHECK(cudaGraphExecMemsetNodeSetParams(run, node[3], &zero));
	CHECK(cudaGraphExecHostNodeSetParams(run, node[4], &call));
	CHECK(cudaGraphLaunch(run, 0));
	CHECK(cudaDeviceSynchronize());
	if (calls[0] != 1 || calls[1] != 1)
		printf("scenario: wrong calls\n");
	return check(1);
}

/* The graph allocates the memory that its nodes use. */
static int graph_memory()
{
	cudaStream_t s;
	cudaGraph_t g;
	int *there;

	if (begin_stream(&s))
		return 1;
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaMallocAsync(&there, BLOCKS * N * sizeof(int), s));
	reverse<<<BLOCKS, N, 0, s>>>(in, there, CLEAN, flag);
	CHECK(cudaMemcpyAsync(out, there, BLOCKS * N * sizeof(int), cudaMemcpyDeviceToDevice, s));
	CHECK(cudaFreeAsync(there, s));
	CHECK(cudaStreamEndCapture(s, &g));
	return launch_graph(g, s, 2) ? 1 : check(1);
}

/* The same by two blocks of a cluster. together: a grid barrier, too */
__global__ void reverse_cluster(const int *in, int *out, bool together)
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
	cudaStream_t s;
	cudaGraph_t g;

	if (begin_stream(&s))
		return 1;
	with[0].id = cudaLaunchAttributeClusterDimension;
	with[0].val.clusterDim = { 2, 1, 1 };
	with[1].id = cudaLaunchAttributeCooperative;
	with[1].val.cooperative = 1;
	const cudaLaunchConfig_t c = config_of(s, with, together ? 2 : 1);

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaLaunchKernelEx(&c, reverse_cluster, in, out, together));
	CHECK(cudaStreamEndCapture(s, &g));
	return launch_graph(g, s, 2) ? 1 : check(1);
}

/* The program allocates nearly all memory before its first launch. */
static int memory()
{
	size_t rest, all;
	void *most;

	if (begin(1))
		return 1;
	CHECK(cudaMemGetInfo(&rest, &all));
	CHECK(cudaMalloc(&most, rest - (rest >> 8)));
	reverse<<<BLOCKS, N>>>(in, out, CLEAN, flag);
	return check(1);
}

/* Each half of the block stores what the other one loads. */
static const char swap_ptx[] =
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

/* Runs swap() in the current context: clean, or with a race. False: a call failed, or wrong
 * results of a clean run. */
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

/* A module, or a library, that is loaded from a file */
static int file(bool library, unsigned clean)
{
	char path[] = "/tmp/consan-scenario-XXXXXX";
	CUfunction f;
	CUkernel k;
	CUlibrary l;
	CUmodule m;
	int fd = mkstemp(path);
	bool good;

	if (begin(1) || fd < 0 || write(fd, swap_ptx, sizeof swap_ptx - 1) < 0)
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
	good = good && swaps(f, clean, 32);
	printf("scenario: %s\n", good ? "correct" : "wrong");
	return !good;
}

/* Does the driver report an allocation of so many bytes at this address? */
static bool has(void *at, size_t bytes)
{
	CUdeviceptr base;
	size_t size[3];
	CUpointer_attribute what[] = { CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
		CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	void *data[] = { &base, &size[2] };

	return !DRIVER(cuMemGetAddressRange)(&base, &size[0], (CUdeviceptr)at + bytes / 2) &&
		base == (CUdeviceptr)at &&
		!DRIVER(cuPointerGetAttribute)(&size[1], what[1], (CUdeviceptr)at) &&
		!DRIVER(cuPointerGetAttributes)(2, what, data, (CUdeviceptr)at + bytes - 1) &&
		base == (CUdeviceptr)at && size[0] == bytes && size[1] == bytes && size[2] == bytes;
}

/* Allocations have the size that the program asked for. A kernel reads up to their end, or
 * `past` numbers further. fill: allocates all other memory, which must not fail for lack of
 * memory for guards. */
static int guard(int past, bool fill)
{
	const int n = 1000;
	size_t pitch, rest, all;
	cudaStream_t s;
	int *at[4];
	void *most;

	if (begin_stream(&s))
		return 1;
	CHECK(cudaMalloc(&at[0], n * sizeof(int)));
	CHECK(cudaMallocAsync(&at[1], n * sizeof(int), s));
	CHECK(cudaMallocManaged(&at[3], n * sizeof(int)));
	CHECK(cudaMallocPitch(&at[2], &pitch, n * sizeof(int), 3));
	memset(at[3], 0, n * sizeof(int));
	CHECK(cudaMemset(at[0], 0, n * sizeof(int)));
	CHECK(cudaMemset(at[2], 0, 3 * pitch));
	CHECK(cudaMemsetAsync(at[1], 0, n * sizeof(int), s));
	if (!has(at[0], n * sizeof(int)) || !has(at[1], n * sizeof(int)) || !has(at[2], 3 * pitch) ||
			!has(at[3], n * sizeof(int))) {
		printf("scenario: wrong sizes\n");
		return 1;
	}
	for (int k = 0; k < 4; k++)
		shift<<<1, N, 0, s>>>(at[k], out, (k != 2 ? n : (int)(3 * pitch / sizeof(int))) - N + past);
	CHECK(cudaStreamSynchronize(s));
	if (fill) {
		const size_t unit = 2 << 20;

		if (cudaMalloc(&most, (size_t)1 << 60) != cudaErrorMemoryAllocation)
			return 1;
		cudaGetLastError();
		CHECK(cudaMemGetInfo(&rest, &all));
		/* fragments at the end may not be available */
		for (rest &= ~(unit - 1); rest && cudaMalloc(&most, rest); rest -= unit)
			cudaGetLastError();
		if (!has(most, rest))
			return 1;
	}
	printf("scenario: correct\n");
	return 0;
}

static bool lacks_second()
{
	int n = 0;

	if (cudaGetDeviceCount(&n) || n < 2)
		printf("scenario: not run: there is one GPU\n");
	return n < 2;
}

/* plain() on the second GPU */
static int second(enum what what)
{
	if (lacks_second())
		return 0;
	CHECK(cudaSetDevice(1));
	return plain(what);
}

/* Two GPUs alternately, from one thread, then from several */
static int devices()
{
	struct { int *in, *out, *flag; } of[2];
	std::vector<std::thread> t;

	if (lacks_second())
		return 0;
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		if (begin(8))
			return 1;
		of[d] = { in, out, flag };
	}
	for (int round = 0; round < 6; round++) {
		CHECK(cudaSetDevice(round % 2));
		reverse<<<BLOCKS, N>>>(of[round % 2].in, of[round % 2].out, CLEAN, of[round % 2].flag);
	}
	for (int k = 0; k < 8; k++)
		t.emplace_back([k, &of] {
			for (int round = 0; round < 6; round++) {
				const int d = (k + round) % 2;

				cudaSetDevice(d);
				reverse<<<BLOCKS, N, 0, cudaStreamPerThread>>>(of[d].in + k * BLOCKS * N,
					of[d].out + k * BLOCKS * N, CLEAN, of[d].flag);
				cudaStreamSynchronize(cudaStreamPerThread);
			}
		});
	for (auto &x : t)
		x.join();
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		out = of[d].out;
		if (check(8))
			return 1;
	}
	return 0;
}

/* The device is reset between launches; its memory must be free then. */
static int reset()
{
	size_t rest[4], all;

	for (int round = 0; round < 4; round++) {
		if (begin(1))
			return 1;
		CHECK(cudaMemGetInfo(&rest[round], &all));
		reverse<<<BLOCKS, N>>>(in, out, CLEAN, flag);
		if (check(1))
			return 1;
		CHECK(cudaDeviceReset());
	}
	if (rest[3] < rest[1] - rest[1] / 16) {
		printf("scenario: %zu bytes are lost\n", rest[1] - rest[3]);
		return 1;
	}
	return 0;
}

/* Two contexts of one GPU alternately; one is destroyed and replaced. */
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
					!DRIVER(cuModuleLoadData)(&m, swap_ptx) &&
					!DRIVER(cuModuleGetFunction)(&f[k], m, "swap");
			good = good && !DRIVER(cuCtxSetCurrent)(c[k]) && swaps(f[k], 1, 32);
		}
		if (round == 1)
			good = good && !DRIVER(cuCtxDestroy)(c[1]);
	}
	printf("scenario: %s\n", good ? "correct" : "wrong");
	return !good;
}

/* A module, or a library, is unloaded; the next one has a kernel of the same name with
 * different code. */
static int unload(bool library, unsigned clean)
{
	std::string other = swap_ptx;
	bool good = !begin(1);

	other.replace(other.find(", 128;"), 6, ", 64; ");
	for (int round = 0; good && round < 4; round++) {
		const char *text = round % 2 ? other.c_str() : swap_ptx;
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
			good = !DRIVER(cuModuleLoadData)(&m, text) &&
				!DRIVER(cuModuleGetFunction)(&f, m, "swap");
		}
		good = good && swaps(f, round < 3 || clean, distance) &&
			!(library ? DRIVER(cuLibraryUnload)(l) : DRIVER(cuModuleUnload)(m));
	}
	printf("scenario: %s\n", good ? "correct" : "wrong");
	return !good;
}

/* Variables that kernels and the host share: each kernel is instrumented in a module of its own. */
__device__ int total;
static __device__ int counts[4];
static __device__ int *where = counts;
__constant__ int factor[2];
static __constant__ int offset = 5;
__managed__ int managed;
static const __device__ int table[4] = { 3, 1, 2, 0 };
template <int K> __device__ int last = K;

__global__ void add(int k)
{
	assert(k >= 0);
	total += factor[k & 1] * k + offset;
	where[table[k & 3]]++;
	managed += total;
	last<7> += k;
}

__global__ void collect(int *to)
{
	if (total < 0)
		printf("total %d\n", total);
	to[0] = total;
	to[1] = counts[table[1]];
	to[2] = managed;
	to[3] = last<7>;
	total = 100;
}

static int variables()
{
	int factors[2] = { 2, 3 }, seen[4], sum = 40, all = 0, marked = 7, value = 40;

	CHECK(cudaMalloc(&out, sizeof seen));
	CHECK(cudaMemcpyToSymbol(total, &value, sizeof value));
	managed = 0;
	for (int k = 0; k < 8; k++) {
		factors[k & 1] += k;
		CHECK(cudaMemcpyToSymbol(factor, factors, sizeof factors));
		add<<<1, 1>>>(k);
		sum += factors[k & 1] * k + 5;
		all += sum;
		marked += k;
	}
	collect<<<1, 1>>>(out);
	CHECK(cudaMemcpy(seen, out, sizeof seen, cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpyFromSymbol(&value, total, sizeof value));
	printf("scenario: %s\n", seen[0] == sum && seen[1] == 2 && seen[2] == all && seen[3] == marked &&
		value == 100 && managed == all ? "correct" : "wrong");
	return 0;
}

/* As many blocks as are resident, which wait for each other: with the hooks there are fewer. Its
 * shared memory is more than a kernel has by default. */
enum { LARGE = 96 << 10 };

__global__ void everyone(int *sum, int *to)
{
	extern __shared__ int tile[];

	tile[threadIdx.x] = (int)threadIdx.x;
	__syncthreads();
	atomicAdd(sum, tile[blockDim.x - 1 - threadIdx.x]);
	cooperative_groups::this_grid().sync();
	if (!blockIdx.x && !threadIdx.x)
		*to = *sum;
}

static int resident()
{
	int blocks = 0, value = 0;
	cudaDeviceProp device;
	void *args[] = { &flag, &out };

	if (begin(1))
		return 1;
	CHECK(cudaGetDeviceProperties(&device, 0));
	CHECK(cudaFuncSetAttribute(everyone, cudaFuncAttributeMaxDynamicSharedMemorySize, LARGE));
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, everyone, 1024, LARGE));
	blocks = blocks * device.multiProcessorCount < 8 ? blocks * device.multiProcessorCount : 8;
	CHECK(cudaLaunchCooperativeKernel((void *)everyone, dim3(blocks), dim3(1024), args, LARGE, 0));
	CHECK(cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost));
	printf("scenario: %s\n", blocks && value == blocks * 1023 * 512 ? "correct" : "wrong");
	return 0;
}

static const struct { const char *name; int (*run)(); } scenarios[] = {
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
	{ "variables", [] { return variables(); } },
	{ "resident", [] { return resident(); } },
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
	for (const auto &s : scenarios)
		if (argc > 1 && !strcmp(argv[1], s.name))
			return s.run();
	fprintf(stderr, "usage: scenario NAME, one of");
	for (const auto &s : scenarios)
		fprintf(stderr, " %s", s.name);
	fprintf(stderr, "\n");
	return 2;
}
