/* order_client: pairs for the rules CS10xx, to run with the fake driver: `order_client CASE racy|fixed`.
 * CASE names the rule of the racy form. */
#include "client.h"

#if __has_include(<nvtx3/nvToolsExtCuda.h>)
#include <nvtx3/nvToolsExtCuda.h>
#else
#define nvtxNameCuStreamA(stream, name)
#endif
#include <stdbool.h>
#include <string.h>

enum { N = 1000, BYTES = 4 * N };

static CUcontext context[2];
static CUdeviceptr a, b;
static void *pinned;
static CUstream s, t, s_free, t_free;
static CUevent e;
static bool fixed;

static void fill(CUdeviceptr at, CUstream in)
{
	CHECK(cuMemsetD32Async(at, 1, N, in));
}

static void copy(CUdeviceptr to, CUdeviceptr from, CUstream in)
{
	CHECK(cuMemcpyDtoDAsync(to, from, BYTES, in));
}

/* Two halves; `order` is of the second. */
static void batch(CUdeviceptr to, CUdeviceptr from, CUmemcpySrcAccessOrder order)
{
	CUdeviceptr all_to[] = { to, to + BYTES / 2 }, all_from[] = { from, from + BYTES / 2 };
	size_t bytes[] = { BYTES / 2, BYTES / 2 }, first[] = { 0, 1 };
	CUmemcpyAttributes how[] = { { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM },
		{ .srcAccessOrder = order } };

	CHECK(cuMemcpyBatchAsync(all_to, all_from, bytes, 2, how, first, 2, s_free));
}

static void record(CUstream in)
{
	CHECK(cuEventRecord(e, in));
}

static void wait_in(CUstream in)
{
	CHECK(cuStreamWaitEvent(in, e, 0));
}

static void join(CUstream from, CUstream to)
{
	record(from);
	wait_in(to);
}

static void plane(CUdeviceptr to, CUstream in)
{
	CUDA_MEMCPY2D p = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = pinned, .srcPitch = 40,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to, .dstPitch = 80, .dstXInBytes = 4,
		.dstY = 1, .WidthInBytes = 40, .Height = 20 };

	CHECK(cuMemcpy2DAsync(&p, in));
}

static CUgraphNode fill_node(CUgraph g, CUdeviceptr at, const CUgraphNode *after)
{
	CUDA_MEMSET_NODE_PARAMS p = { .dst = at, .elementSize = 4, .width = N, .height = 1 };
	CUgraphNode n;

	CHECK(cuGraphAddMemsetNode(&n, g, after, after != NULL, &p, context[0]));
	return n;
}

static CUgraphExec executable(CUgraph g)
{
	CUgraphExec x;

	CHECK(cuGraphInstantiate(&x, g, 0));
	return x;
}

#define CASE(name, rule) static void name(void)

CASE(fills, CS1001) { fill(a, s); if (fixed) join(s, t); fill(a, t); }
CASE(fill_copy, CS1002) { copy(b, a, s); if (fixed) join(s, t); fill(a, t); }
CASE(named, CS1001) { nvtxNameCuStreamA(s, "producer"); fill(a, s); if (fixed) join(s, t); fill(a, t); }
CASE(in_one_stream, CS1001) { fill(a, s); fill(a, fixed ? s : t); }
CASE(host_waits, CS1001) { fill(a, s); CHECK(cuStreamSynchronize(fixed ? s : t)); fill(a, t); }
CASE(host_asks, CS1001) { fill(a, s); if (fixed) CHECK(cuStreamQuery(s)); fill(a, t); }
CASE(host_waits_device, CS1001) { fill(a, s); if (fixed) CHECK(cuCtxSynchronize()); fill(a, t); }
CASE(host_waits_event, CS1001) { fill(a, s); record(s); if (fixed) CHECK(cuEventSynchronize(e)); fill(a, t); }
CASE(host_asks_event, CS1001) { fill(a, s); record(s); if (fixed) CHECK(cuEventQuery(e)); fill(a, t); }
CASE(event_early, CS1001) { if (!fixed) record(s); fill(a, s); if (fixed) record(s); wait_in(t); fill(a, t); }
CASE(event_unrecorded, CS1007) { fill(a, s); if (fixed) record(s); wait_in(t); record(s); fill(b, t); }
CASE(legacy, CS1001) { fill(a, fixed ? s : s_free); fill(a, NULL); }
CASE(legacy_first, CS1001) { fill(a, CU_STREAM_LEGACY); fill(a, fixed ? s : s_free); }
CASE(per_thread, CS1001) { fill(a, CU_STREAM_PER_THREAD); fill(a, fixed ? CU_STREAM_PER_THREAD : s_free); }
CASE(planes, CS1001) { plane(a, s); plane(a + (fixed ? 40 : 36), t); }
CASE(pageable, CS1001)
{
	static int from[N];

	CHECK(cuMemcpyHtoD(a, from, BYTES));
	CHECK(cuMemcpyHtoDAsync(a, pinned, BYTES, s));
	if (fixed) join(s, s_free);
	fill(a, s_free);
}
static void CUDA_CB set_flag(void *flag) { *(volatile int *)flag = 1; }
CASE(host_function, CS1001) /* when it begins, other threads may know what it waited for */
{
	static volatile int flag;

	if (fixed) fill(a, s);
	CHECK(cuLaunchHostFunc(s, set_flag, (void *)&flag));
	if (!fixed) fill(a, s);
	while (!flag)
		;
	fill(a, t);
}
CASE(host_told, CS1001) /* by a word that the host reads; what it reads is not seen */
{
	const CUdeviceptr flag = (CUdeviceptr)(uintptr_t)pinned;

	if (!fixed) CHECK(cuStreamWriteValue32(s, flag, 1, 0));
	fill(a, s);
	if (fixed) CHECK(cuStreamWriteValue32(s, flag, 1, 0));
	fill(a, t);
}
CASE(host_tells, CS1001)
{
	const CUdeviceptr flag = (CUdeviceptr)(uintptr_t)pinned;

	if (fixed) CHECK(cuStreamWaitValue32(t, flag, 1, 0));
	fill(a, t);
	if (!fixed) CHECK(cuStreamWaitValue32(t, flag, 1, 0));
	fill(a, s);
}
CASE(memory_released, CS1001) { CUdeviceptr x; CHECK(cuMemAlloc(&x, 64)); fill(a, s); if (fixed) CHECK(cuMemFree(x)); fill(a, t); }
CASE(free_in_use, CS1004)
{
	CUdeviceptr x;

	CHECK(cuMemAllocAsync(&x, BYTES, s));
	join(s, t);
	fill(x, t);
	if (fixed) join(t, s);
	CHECK(cuMemFreeAsync(x, s));
}
CASE(use_after_free, CS1005)
{
	CUdeviceptr x;

	CHECK(cuMemAllocAsync(&x, BYTES, s));
	if (fixed) fill(x, s);
	CHECK(cuMemFreeAsync(x, s));
	if (!fixed) fill(x, s);
}
CASE(use_before_allocation, CS1006)
{
	CUdeviceptr x;

	CHECK(cuMemAllocAsync(&x, BYTES, s));
	if (fixed) join(s, t);
	fill(x, t);
}
CASE(memory_reused, CS1001) /* by the driver, which orders the uses by both owners */
{
	CUdeviceptr x, y;

	CHECK(cuMemAllocAsync(&x, BYTES, s));
	fill(x, s);
	CHECK(cuMemFreeAsync(x, s));
	CHECK(cuMemAllocAsync(&y, BYTES, t));
	CHECK(x != y);
	fill(y, t);
	if (!fixed) fill(y, s_free);
}
CASE(graph_nodes, CS1001)
{
	CUgraphNode first;
	CUgraph g;

	CHECK(cuGraphCreate(&g, 0));
	first = fill_node(g, a, NULL);
	fill_node(g, a, fixed ? &first : NULL);
	CHECK(cuGraphLaunch(executable(g), s));
}
CASE(graph_through_empty, CS1001) /* an empty node and a child graph hand the order on */
{
	CUgraphNode node, last;
	CUgraph g, inner;

	CHECK(cuGraphCreate(&g, 0));
	CHECK(cuGraphCreate(&inner, 0));
	fill_node(inner, a, NULL);
	CHECK(cuGraphAddChildGraphNode(&node, g, NULL, 0, inner));
	CHECK(cuGraphAddEmptyNode(&last, g, &node, fixed));
	fill_node(g, a, &last);
	CHECK(cuGraphLaunch(executable(g), s));
}
CASE(graph_stream, CS1001)
{
	CUgraph g;

	CHECK(cuGraphCreate(&g, 0));
	fill_node(g, a, NULL);
	CHECK(cuGraphLaunch(executable(g), s));
	if (fixed) join(s, t);
	fill(a, t);
}
CASE(graph_twice, CS1001) /* two launches of one graph do not overlap; of two graphs, they may */
{
	CUgraphExec x, y;
	CUgraph g;

	CHECK(cuGraphCreate(&g, 0));
	fill_node(g, a, NULL);
	x = executable(g);
	y = executable(g);
	CHECK(cuGraphLaunch(x, s));
	CHECK(cuGraphLaunch(fixed ? x : y, t));
}
CASE(capture_unjoined, CS1008) { CUgraph g; if (!fixed) cuStreamEndCapture(s, &g); }
CASE(devices, CS1002)
{
	CUdeviceptr peer;
	CUstream there;

	CHECK(cuCtxSetCurrent(context[1]));
	CHECK(cuMemAlloc(&peer, BYTES));
	CHECK(cuStreamCreate(&there, 0));
	fill(a, s);
	if (fixed) join(s, there);
	CHECK(cuMemcpyPeerAsync(peer, context[1], a, context[0], BYTES, there));
}
CASE(legacy_of_devices, CS1001) /* each device has one of its own */
{
	fill(a, NULL);
	if (!fixed) CHECK(cuCtxSetCurrent(context[1]));
	fill(a, NULL);
}

static void fill_half(CUdeviceptr at, CUstream in)
{
	CHECK(cuMemsetD32Async(at + BYTES / 2, 1, N / 2, in));
}

CASE(batch_source, CS1002) /* it may read before what its stream does first */
{
	fill_half(a, s_free);
	batch(b, a, fixed ? CU_MEMCPY_SRC_ACCESS_ORDER_STREAM : CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
}
CASE(batch_source_in_call, CS1002)
{
	batch(b, a, fixed ? CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL : CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
	fill_half(a, t_free); /* it was read */
}
CASE(batch_source_later, CS1002) /* not after the batch */
{
	batch(b, a, CU_MEMCPY_SRC_ACCESS_ORDER_ANY);
	fill_half(a, fixed ? s_free : t_free);
}

static const struct { const char *name; void (*run)(void); } cases[] = {
#define C(name) { #name, name }
	C(fills), C(fill_copy), C(named), C(in_one_stream), C(host_waits), C(host_asks), C(host_waits_device),
	C(host_waits_event), C(host_asks_event), C(event_early), C(event_unrecorded), C(legacy),
	C(legacy_first), C(per_thread), C(planes), C(pageable), C(host_function), C(host_told),
	C(host_tells), C(memory_released), C(free_in_use),
	C(use_after_free), C(use_before_allocation), C(memory_reused), C(graph_nodes), C(graph_through_empty),
	C(graph_stream), C(graph_twice), C(capture_unjoined), C(devices), C(legacy_of_devices),
	C(batch_source), C(batch_source_in_call), C(batch_source_later),
};

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	fixed = !strcmp(argv[2], "fixed");
	CHECK(cuInit(0));
	CHECK(cuCtxCreate(&context[1], NULL, 0, 1));
	CHECK(cuCtxCreate(&context[0], NULL, 0, 0));
	CHECK(cuStreamCreate(&s, 0));
	CHECK(cuStreamCreate(&t, 0));
	CHECK(cuStreamCreate(&s_free, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&t_free, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&e, 0));
	CHECK(cuMemAlloc(&a, BYTES));
	CHECK(cuMemAlloc(&b, BYTES));
	CHECK(cuMemAllocHost(&pinned, BYTES));
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		if (!strcmp(cases[k].name, argv[1])) {
			cases[k].run();
			return 0;
		}
	return 2;
}
