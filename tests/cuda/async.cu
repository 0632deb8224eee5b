/* async: operations of several streams and the host at the same time. Argument: the name of a case.
 * Exit status 0: the results are right; 2: they are not; 3: a call failed. */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unistd.h>

#define OK(call) do { cudaError_t e_ = call; if (e_) { \
	fprintf(stderr, "line %d: %s\n", __LINE__, cudaGetErrorString(e_)); exit(3); } } while (0)

__device__ static int load(int *at)
{
	int v;

	asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(at) : "memory");
	return v;
}

__device__ static void store(int *at, int v)
{
	asm volatile("st.release.sys.global.s32 [%0], %1;" : : "l"(at), "r"(v) : "memory");
}

/* Waits until *flag is v, then copies. */
__global__ void await(int *flag, int v, int *to, const int *from)
{
	while (load(flag) != v)
		;
	*to = *from;
}

__global__ void await_asleep(int *flag, int v, int *to, const int *from)
{
	for (unsigned ns = 8; load(flag) != v; ns = ns < 256 ? ns * 2 : ns)
		__nanosleep(ns);
	*to = *from;
}

/* A loop whose state never repeats. */
__global__ void await_counting(int *flag, int v, int *to, const int *from)
{
	unsigned long long n = 0;

	while (load(flag) != v && ++n < 1ull << 40)
		;
	*to = n < 1ull << 40 ? *from : -1;
}

__global__ void raise(int *flag, int v, int *to, int value)
{
	*to = value;
	store(flag, v);
}

/* A loop that waits for the host and has effects on memory. */
__global__ void count(int *box, int *to)
{
	store(box, 1);
	while (load(box) == 1)
		*to += 1;
}

__global__ void set(int *to, int value) { *to = value; }
__global__ void fill(int *to, int value, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = value;
}
__global__ void sum(int *to, const int *from, int n)
{
	for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(to, from[i]);
}

/* Answers each odd number in *box by the next even one. */
__global__ void answer(int *box, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		while (load(box) != 2 * i + 1)
			;
		store(box, 2 * i + 2);
	}
}

static int *flag, *out, *data, *box; /* box: pinned, of the host */
static cudaStream_t a, b;

static int result(void)
{
	int v;

	OK(cudaMemcpy(&v, out, sizeof v, cudaMemcpyDeviceToHost));
	return v;
}

static int is(int v)
{
	int r = result();

	if (r != v) fprintf(stderr, "%d instead of %d\n", r, v);
	return r == v ? 0 : 2;
}

static volatile int *host_box(void) { return box; }

static int flag_streams(void)
{
	await<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, b>>>(flag, 1, data, 42);
	OK(cudaStreamSynchronize(a));
	return is(42);
}

static int flag_asleep(void)
{
	await_asleep<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, b>>>(flag, 1, data, 42);
	OK(cudaDeviceSynchronize());
	return is(42);
}

static int flag_counting(void)
{
	await_counting<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, b>>>(flag, 1, data, 42);
	OK(cudaDeviceSynchronize());
	return is(42);
}

/* The host raises the flag after the launch. */
static int flag_host(void)
{
	set<<<1, 1, 0, a>>>(data, 43);
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	*host_box() = 1;
	OK(cudaStreamSynchronize(a));
	return is(43);
}

static int flag_managed(void)
{
	int *m;

	OK(cudaMallocManaged(&m, 4));
	*m = 0;
	set<<<1, 1, 0, a>>>(data, 44);
	await<<<1, 1, 0, a>>>(m, 1, out, data);
	*(volatile int *)m = 1;
	OK(cudaDeviceSynchronize());
	return is(44);
}

/* The host polls, without a call. */
static int host_polls(void)
{
	raise<<<1, 1, 0, a>>>(box, 1, data, 1);
	while (!*host_box())
		;
	OK(cudaMemcpy(out, data, 4, cudaMemcpyDeviceToDevice));
	return is(1);
}

/* The same, and so does a stream that is queried; the kernels count as long as the host does nothing. */
static int counts(void)
{
	for (int queried = 0; queried < 2; queried++) {
		*host_box() = 0;
		count<<<1, 1, 0, a>>>(box, out);
		if (queried)
			if (cudaStreamQuery(a) != cudaErrorNotReady) return 1;
		while (!*host_box())
			;
		*host_box() = 2;
		OK(cudaStreamSynchronize(a));
	}
	return 0;
}

static int ping_pong(void)
{
	answer<<<1, 1, 0, a>>>(box, 5);
	for (int i = 0; i < 5; i++) {
		*host_box() = 2 * i + 1;
		while (*host_box() != 2 * i + 2)
			;
	}
	OK(cudaStreamSynchronize(a));
	return 0;
}

/* Another thread raises the flag while this one waits. */
static int flag_thread(void)
{
	set<<<1, 1, 0, a>>>(data, 45);
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	std::thread t([] { usleep(50000); *host_box() = 1; });
	OK(cudaStreamSynchronize(a));
	t.join();
	return is(45);
}

static void CUDART_CB raise_box(void *user) { *host_box() = *(int *)user; }

static int host_function(void)
{
	static int one = 1;

	set<<<1, 1, 0, a>>>(data, 46);
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	OK(cudaLaunchHostFunc(b, raise_box, &one));
	OK(cudaStreamSynchronize(a));
	return is(46);
}

static int query(void)
{
	int n = 0;

	set<<<1, 1, 0, a>>>(data, 47);
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	while (cudaStreamQuery(a) == cudaErrorNotReady)
		if (++n == 3) *host_box() = 1;
	OK(cudaGetLastError());
	return n < 3 ? 2 : is(47);
}

static int values(void)
{
	set<<<1, 1, 0, a>>>(data, 48);
	if (cuStreamWaitValue32(a, (CUdeviceptr)flag, 5, CU_STREAM_WAIT_VALUE_GEQ)) return 3;
	OK(cudaMemcpyAsync(out, data, 4, cudaMemcpyDeviceToDevice, a));
	if (cuStreamWriteValue32(b, (CUdeviceptr)flag, 7, 0)) return 3;
	OK(cudaStreamSynchronize(a));
	return is(48);
}

/* A kernel waits for a value that a stream writes. */
static int value_for_kernel(void)
{
	set<<<1, 1, 0, a>>>(data, 49);
	await<<<1, 1, 0, a>>>(flag, 9, out, data);
	if (cuStreamWriteValue32(b, (CUdeviceptr)flag, 9, 0)) return 3;
	OK(cudaDeviceSynchronize());
	return is(49);
}

/* Two branches of one graph. */
static int graph(void)
{
	cudaEvent_t fork, join;
	cudaGraphExec_t x;
	cudaGraph_t g;

	OK(cudaEventCreate(&fork));
	OK(cudaEventCreate(&join));
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	OK(cudaEventRecord(fork, a));
	OK(cudaStreamWaitEvent(b, fork, 0));
	await<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, b>>>(flag, 1, data, 50);
	OK(cudaEventRecord(join, b));
	OK(cudaStreamWaitEvent(a, join, 0));
	OK(cudaStreamEndCapture(a, &g));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, a));
	OK(cudaStreamSynchronize(a));
	return is(50);
}

static cudaKernelNodeParams kernel_node(void *func, void **args)
{
	cudaKernelNodeParams k = {};

	k.func = func;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = args;
	return k;
}

/* The second kernel waits for the start of the first, which waits for the second. */
static int completion_event(void)
{
	cudaLaunchAttribute at = {};
	cudaLaunchConfig_t c = {};
	cudaEvent_t e;

	OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	at.id = cudaLaunchAttributeLaunchCompletionEvent;
	at.val.launchCompletionEvent.event = e;
	c.gridDim = c.blockDim = dim3(1);
	c.stream = a;
	c.attrs = &at;
	c.numAttrs = 1;
	OK(cudaLaunchKernelEx(&c, await, flag, 1, out, (const int *)data));
	OK(cudaStreamWaitEvent(b, e, 0));
	raise<<<1, 1, 0, b>>>(flag, 1, data, 56);
	OK(cudaDeviceSynchronize());
	return is(56);
}

/* An event that one graph records and another waits for. */
static int graph_events(void)
{
	int value = 51;
	void *args[] = { &data, &value };
	cudaKernelNodeParams k = kernel_node((void *)set, args);
	cudaGraphNode_t first, second;
	cudaGraph_t g, h;
	cudaGraphExec_t x, y;
	cudaEvent_t e, is_e;

	OK(cudaEventCreate(&e));
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddKernelNode(&first, g, 0, 0, &k));
	OK(cudaGraphAddEventRecordNode(&second, g, &first, 1, e));
	OK(cudaGraphEventRecordNodeGetEvent(second, &is_e));
	OK(cudaGraphCreate(&h, 0));
	OK(cudaGraphAddEventWaitNode(&first, h, 0, 0, e));
	OK(cudaGraphAddMemcpyNode1D(&second, h, &first, 1, out, data, 4, cudaMemcpyDeviceToDevice));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphInstantiate(&y, h, 0));
	OK(cudaGraphLaunch(x, a));
	OK(cudaGraphLaunch(y, b));
	OK(cudaStreamSynchronize(b));
	return is_e == e ? is(51) : 2;
}

/* Memory of a graph, by nodes and by a capture; each launched twice. */
static int graph_memory(void)
{
	int value = 52, *mine;
	cudaMemAllocNodeParams m = {};
	void *args[] = { &m.dptr, &value };
	cudaGraphNode_t alloc, kernel, copy, release;
	cudaKernelNodeParams k;
	cudaGraph_t g;
	cudaGraphExec_t x;

	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	m.bytesize = 4;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemAllocNode(&alloc, g, 0, 0, &m));
	k = kernel_node((void *)set, args);
	OK(cudaGraphAddKernelNode(&kernel, g, &alloc, 1, &k));
	OK(cudaGraphAddMemcpyNode1D(&copy, g, &kernel, 1, out, m.dptr, 4, cudaMemcpyDeviceToDevice));
	OK(cudaGraphAddMemFreeNode(&release, g, &copy, 1, m.dptr));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, a));
	OK(cudaGraphLaunch(x, a));
	OK(cudaStreamSynchronize(a));
	OK(cudaGraphExecDestroy(x));
	OK(cudaGraphDestroy(g));
	if (is(52)) return 2;
	OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
	OK(cudaMallocAsync(&mine, 4, a));
	set<<<1, 1, 0, a>>>(mine, 53);
	OK(cudaMemcpyAsync(out, mine, 4, cudaMemcpyDeviceToDevice, a));
	OK(cudaFreeAsync(mine, a));
	OK(cudaStreamEndCapture(a, &g));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, a));
	OK(cudaGraphLaunch(x, b)); /* after the first one, although in another stream */
	OK(cudaDeviceSynchronize());
	return is(53);
}

static int driver_graph(void)
{
	int value = 54;
	void *args[] = { &data, &value };
	CUDA_KERNEL_NODE_PARAMS k = {};
	CUDA_MEMCPY3D c = {};
	CUgraphNode kernel, copy, list[2];
	CUgraphNodeType type;
	cudaFunction_t f;
	CUgraph g;
	CUgraphExec x;
	CUcontext context;
	size_t n = 2;

	OK(cudaGetFuncBySymbol(&f, (void *)set));
	k.func = (CUfunction)f;
	k.gridDimX = k.gridDimY = k.gridDimZ = k.blockDimX = k.blockDimY = k.blockDimZ = 1;
	k.kernelParams = args;
	c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	c.srcDevice = (CUdeviceptr)data;
	c.dstDevice = (CUdeviceptr)out;
	c.WidthInBytes = 4;
	c.Height = c.Depth = 1;
	if (cuCtxGetCurrent(&context) || cuGraphCreate(&g, 0) || cuGraphAddKernelNode(&kernel, g, 0, 0, &k)
		|| cuGraphAddMemcpyNode(&copy, g, 0, 0, &c, context)
		|| cuGraphAddDependencies(g, &kernel, &copy, 0, 1)
		|| cuGraphNodeGetType(copy, &type) || type != CU_GRAPH_NODE_TYPE_MEMCPY
		|| cuGraphGetRootNodes(g, list, &n) || n != 1 || list[0] != kernel
		|| cuGraphInstantiate(&x, g, 0) || cuGraphLaunch(x, a)) return 3;
	value = 55;
	if (cuGraphExecKernelNodeSetParams(x, kernel, &k) || cuGraphLaunch(x, a)) return 3;
	OK(cudaStreamSynchronize(a));
	return is(55);
}

/* Double-buffered copies and kernels, ordered by events; racy: one wait is missing. */
static int pipeline(bool racy)
{
	enum { N = 64, ROUNDS = 8 };
	int *device[2], *host, expected = 0;
	cudaEvent_t copied[2], used[2];

	OK(cudaMallocHost(&host, ROUNDS * N * sizeof *host));
	for (int i = 0; i < ROUNDS * N; i++) expected += host[i] = i / N + 1;
	for (int k = 0; k < 2; k++) {
		OK(cudaMalloc(&device[k], N * sizeof *host));
		OK(cudaMemset(device[k], 0, N * sizeof *host));
		OK(cudaEventCreate(&copied[k]));
		OK(cudaEventCreate(&used[k]));
	}
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < ROUNDS; i++) {
		if (i >= 2 && !racy) OK(cudaStreamWaitEvent(a, used[i % 2], 0));
		OK(cudaMemcpyAsync(device[i % 2], host + i * N, N * sizeof *host, cudaMemcpyHostToDevice, a));
		OK(cudaEventRecord(copied[i % 2], a));
		OK(cudaStreamWaitEvent(b, copied[i % 2], 0));
		sum<<<1, 32, 0, b>>>(out, device[i % 2], N);
		OK(cudaEventRecord(used[i % 2], b));
	}
	OK(cudaStreamSynchronize(b));
	return is(expected);
}
static int pipeline_right(void) { return pipeline(false); }
static int pipeline_racy(void) { return pipeline(true); }

/* The legacy default stream waits for blocking streams, and they wait for it. */
static int legacy(void)
{
	cudaStream_t s;

	OK(cudaStreamCreate(&s));
	set<<<1, 1, 0, s>>>(data, 7);
	OK(cudaMemcpyAsync(flag, data, 4, cudaMemcpyDeviceToDevice, 0));
	OK(cudaMemcpyAsync(out, flag, 4, cudaMemcpyDeviceToDevice, s));
	OK(cudaStreamDestroy(s));
	return is(7);
}

static int ordered_free(void)
{
	int *mine;

	OK(cudaMallocAsync(&mine, 4, a));
	set<<<1, 1, 0, a>>>(mine, 8);
	OK(cudaMemcpyAsync(out, mine, 4, cudaMemcpyDeviceToDevice, a));
	OK(cudaFreeAsync(mine, a));
	OK(cudaStreamSynchronize(a));
	return is(8);
}

/* The source of a pageable copy may change after the call. */
static int staged(void)
{
	int source = 5;

	await<<<1, 1, 0, a>>>(box, 1, data, data);
	OK(cudaMemcpyAsync(out, &source, 4, cudaMemcpyHostToDevice, a));
	source = 6;
	*host_box() = 1;
	OK(cudaStreamSynchronize(a));
	return is(5);
}

/* The kernel that raises the flag is behind the one that waits. */
static int deadlock(void)
{
	await<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, a>>>(flag, 1, data, 42);
	return cudaStreamSynchronize(a) ? 0 : 2;
}

/* ... by a wait of its stream for an event. */
static int deadlock_event(void)
{
	cudaEvent_t e;

	OK(cudaEventCreate(&e));
	await<<<1, 1, 0, a>>>(flag, 1, out, data);
	OK(cudaEventRecord(e, a));
	OK(cudaStreamWaitEvent(b, e, 0));
	raise<<<1, 1, 0, b>>>(flag, 1, data, 42);
	return cudaDeviceSynchronize() ? 0 : 2;
}

/* ... by the legacy default stream. */
static int deadlock_legacy(void)
{
	cudaStream_t s;

	OK(cudaStreamCreate(&s));
	await<<<1, 1>>>(flag, 1, out, data);
	raise<<<1, 1, 0, s>>>(flag, 1, data, 42);
	return cudaDeviceSynchronize() ? 0 : 2;
}

/* Each waits for the other. */
static int deadlock_mutual(void)
{
	await<<<1, 1, 0, a>>>(flag, 1, out, data);
	raise<<<1, 1, 0, a>>>(flag + 1, 1, data, 42);
	await<<<1, 1, 0, b>>>(flag + 1, 1, out, data);
	raise<<<1, 1, 0, b>>>(flag, 1, data, 42);
	return cudaDeviceSynchronize() ? 0 : 2;
}

/* The host waits before it raises the flag. */
static int deadlock_host(void)
{
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	cudaStreamSynchronize(a);
	*host_box() = 1;
	return cudaDeviceSynchronize() ? 0 : 2;
}

/* ... or joins the thread that waits: it is certain that no thread raises it. */
static int deadlock_joined(void)
{
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	std::thread t([] { cudaStreamSynchronize(a); });
	t.join();
	*host_box() = 1;
	return cudaDeviceSynchronize() ? 0 : 2;
}

static int deadlock_condition(void)
{
	static std::mutex m;
	static std::condition_variable c;
	static bool go;
	std::thread t([] { std::unique_lock<std::mutex> l(m); c.wait(l, [] { return go; }); *host_box() = 1; });

	await<<<1, 1, 0, a>>>(box, 1, out, data);
	cudaStreamSynchronize(a);
	{ std::lock_guard<std::mutex> l(m); go = true; }
	c.notify_one();
	t.join();
	return cudaDeviceSynchronize() ? 0 : 2;
}

/* Whether the second kernel hangs depends on which one runs first. */
__global__ void set_first(int *flag) { atomicExch(flag, 1); }
__global__ void hang_second(int *flag, int *never) { if (atomicAdd(flag, 0)) while (!atomicAdd(never, 0)) ; }
static int hidden_order(void)
{
	hang_second<<<1, 1, 0, a>>>(flag, flag + 1);
	set_first<<<1, 1, 0, b>>>(flag);
	return cudaDeviceSynchronize() ? 2 : 0;
}
static int ordered_right(void) /* its twin: an event orders them */
{
	cudaEvent_t e;

	OK(cudaEventCreate(&e));
	hang_second<<<1, 1, 0, a>>>(flag, flag + 1);
	OK(cudaEventRecord(e, a));
	OK(cudaStreamWaitEvent(b, e, 0));
	set_first<<<1, 1, 0, b>>>(flag);
	return cudaDeviceSynchronize() ? 2 : 0;
}

/* Another thread sleeps, for the seconds in $SLEEP, before it raises the flag: no deadlock. */
static int flag_late(void)
{
	const char *seconds = getenv("SLEEP");

	set<<<1, 1, 0, a>>>(data, 45);
	await<<<1, 1, 0, a>>>(box, 1, out, data);
	std::thread t([seconds] { sleep(seconds ? atoi(seconds) : 1); *host_box() = 1; });
	OK(cudaStreamSynchronize(a));
	t.join();
	return is(45);
}

static int deadlock_value(void)
{
	if (cuStreamWaitValue32(a, (CUdeviceptr)flag, 5, CU_STREAM_WAIT_VALUE_GEQ)) return 3;
	set<<<1, 1, 0, a>>>(data, 48);
	if (cuStreamWriteValue32(b, (CUdeviceptr)flag, 4, 0)) return 3;
	return cudaStreamSynchronize(a) ? 0 : 2;
}

/* Many launches between two waits. */
static int many(void)
{
	for (int i = 0; i < 5000; i++)
		set<<<1, 1, 0, i & 1 ? a : b>>>(i & 1 ? out : data, i);
	OK(cudaDeviceSynchronize());
	return is(4999);
}

static const struct { const char *name; int (*run)(void); } cases[] = {
#define CASE(name) { #name, name }
	CASE(flag_streams), CASE(flag_asleep), CASE(flag_counting), CASE(counts), CASE(flag_host), CASE(flag_managed),
	CASE(host_polls), CASE(ping_pong), CASE(flag_thread), CASE(host_function), CASE(query),
	CASE(values), CASE(value_for_kernel), CASE(graph), CASE(graph_events),
	CASE(graph_memory), CASE(driver_graph), CASE(completion_event), CASE(pipeline_right), CASE(pipeline_racy),
	CASE(legacy), CASE(ordered_free), CASE(staged), CASE(deadlock), CASE(deadlock_event),
	CASE(deadlock_legacy), CASE(deadlock_mutual), CASE(deadlock_host), CASE(deadlock_joined), CASE(deadlock_condition), CASE(flag_late), CASE(hidden_order), CASE(ordered_right), CASE(deadlock_value),
	CASE(many),
};

int main(int argc, char **argv)
{
	if (argc < 2) return 99;
	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	OK(cudaMalloc(&flag, 64));
	OK(cudaMalloc(&out, 64));
	OK(cudaMalloc(&data, 64));
	OK(cudaMallocHost(&box, 64));
	memset(box, 0, 64);
	OK(cudaMemset(flag, 0, 64));
	OK(cudaMemset(out, 0, 64));
	OK(cudaMemset(data, 0, 64));
	OK(cudaDeviceSynchronize());
	for (auto &c : cases)
		if (!strcmp(c.name, argv[1])) return c.run();
	return 99;
}
