/* Uses of the runtime API: `runtime NAME` runs one. Exit status 0: the API behaves as on a GPU.
 * Also programs with bad input or abnormal ends. Run by tests/unit/cuda/cuda.c. */
#include <cstdio>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(x) do { if (!(x)) { printf("line %d: %s\n", __LINE__, #x); return 1; } } while (0)
#define OK(x) do { cudaError_t e_ = (x); if (e_) { printf("line %d: %s: %s\n", __LINE__, #x, \
	cudaGetErrorName(e_)); return 1; } } while (0)
#define IS(error, x) CHECK((x) == (error))

__device__ int counter = 5;
__device__ int table[4] = { 1, 2, 3, 4 };
__constant__ float factor = 2.5f;
__managed__ int shared_with_host = 40;

struct big { char c; double d; int list[5]; };

__global__ void set(int *to, int value) { to[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ void add(int *to, int value) { to[threadIdx.x] += value; }
__global__ void take(struct big b, char c, int *to)
{
	to[0] = (int)b.c; to[1] = (int)b.d; to[2] = b.list[4]; to[3] = c;
}
__global__ void symbols(float *to)
{
	to[0] = factor; to[1] = (float)table[2]; to[2] = (float)counter++;
	shared_with_host += 2;
}
__global__ void dynamic(int *to, int n)
{
	extern __shared__ int s[];
	s[threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (!threadIdx.x) to[0] = s[n - 1];
}
__global__ void __launch_bounds__(64) bounded(int *to) { to[0] = 1; }
__global__ void bad_address(int *at) { *at = 1; }
__global__ void trapped() { asm("trap;"); }
__global__ void racy(int *to)
{
	__shared__ int s[64];
	s[threadIdx.x] = threadIdx.x;
	to[threadIdx.x] = s[63 - threadIdx.x];
}
__global__ void spin(volatile int *flag) { while (!*flag) { } }
__global__ void __cluster_dims__(2, 1, 1) pair(int *to) { to[blockIdx.x] = 1; }
__global__ void place(int *to)
{
	int size, rank;

	asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	to[blockIdx.x] = 16 * size + rank;
}
template <class T> __global__ void generic(T *to, T value) { to[threadIdx.x] = value; }

static int launch()
{
	int *d, h[64];
	OK(cudaMalloc(&d, sizeof h));
	set<<<2, 32>>>(d, 7);
	OK(cudaGetLastError());
	OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
	CHECK(h[0] == 7 && h[63] == 7);
	struct big b = { 3, 4.5, { 0, 0, 0, 0, 9 } };
	take<<<1, 1>>>(b, 'x', d);
	OK(cudaMemcpy(h, d, sizeof h, cudaMemcpyDeviceToHost));
	CHECK(h[0] == 3 && h[1] == 4 && h[2] == 9 && h[3] == 'x');
	generic<<<1, 32>>>((double *)d, 1.5);
	double one;
	OK(cudaMemcpy(&one, d + 10, sizeof one, cudaMemcpyDefault));
	CHECK(one == 1.5);
	int value = 3;
	void *args[] = { &d, &value };
	OK(cudaLaunchKernel((void *)set, dim3(1), dim3(32), args, 0, 0));
	OK(cudaMemcpy(h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h[0] == 3);
	OK(cudaFree(d));
	return 0;
}

static int memory()
{
	char *d, *e, h[256], back[256];
	size_t pitch, free0, free1, total;
	for (int i = 0; i < 256; i++) h[i] = (char)i;
	OK(cudaMemGetInfo(&free0, &total));
	OK(cudaMalloc(&d, 256));
	OK(cudaMemGetInfo(&free1, &total));
	CHECK(free1 < free0 && free1 < total);
	OK(cudaMemcpy(d, h, 256, cudaMemcpyHostToDevice));
	OK(cudaMalloc(&e, 256));
	OK(cudaMemcpy(e, d, 256, cudaMemcpyDeviceToDevice));
	OK(cudaMemset(e, 0x11, 16));
	OK(cudaMemcpy(back, e, 256, cudaMemcpyDeviceToHost));
	CHECK(back[0] == 0x11 && back[16] == 16 && back[255] == (char)255);
	IS(cudaErrorInvalidValue, cudaMemcpy(d, h, 257, cudaMemcpyHostToDevice));
	IS(cudaErrorInvalidValue, cudaMemcpy(back, h, 16, cudaMemcpyDeviceToHost));
	IS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(d, h, 1, (cudaMemcpyKind)9));
	IS(cudaErrorInvalidMemcpyDirection, cudaGetLastError());
	IS(cudaSuccess, cudaPeekAtLastError());
	void *huge;
	IS(cudaErrorMemoryAllocation, cudaMalloc(&huge, (size_t)1 << 40));
	IS(cudaErrorMemoryAllocation, cudaGetLastError());
	char *p;
	OK(cudaMallocPitch(&p, &pitch, 10, 4));
	CHECK(pitch >= 10 && pitch % 256 == 0);
	OK(cudaMemset2D(p, pitch, 0, 10, 4));
	OK(cudaMemcpy2D(p, pitch, h, 20, 10, 4, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2D(back, 10, p, pitch, 10, 4, cudaMemcpyDeviceToHost));
	CHECK(back[0] == 0 && back[10] == 20 && back[39] == 69);
	IS(cudaErrorInvalidPitchValue, cudaMemcpy2D(p, 4, h, 20, 10, 4, cudaMemcpyHostToDevice));
	cudaExtent x = make_cudaExtent(8, 3, 2);
	cudaPitchedPtr q;
	OK(cudaMalloc3D(&q, x));
	cudaMemcpy3DParms m = {};
	m.srcPtr = make_cudaPitchedPtr(h, 8, 8, 3);
	m.dstPtr = q;
	m.extent = x;
	m.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&m));
	m.srcPtr = q;
	m.dstPtr = make_cudaPitchedPtr(back, 8, 8, 3);
	m.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&m));
	CHECK(!memcmp(h, back, 48));
	OK(cudaFree(q.ptr));
	OK(cudaFree(p));
	IS(cudaErrorInvalidValue, cudaFree(d + 1));
	OK(cudaFree(0));
	OK(cudaFree(d));
	IS(cudaErrorInvalidValue, cudaFree(d));
	int *pinned;
	OK(cudaMallocHost(&pinned, 128));
	set<<<1, 32>>>(pinned, 8);
	OK(cudaDeviceSynchronize());
	CHECK(pinned[31] == 8);
	cudaPointerAttributes a;
	OK(cudaPointerGetAttributes(&a, pinned));
	CHECK(a.type == cudaMemoryTypeHost && a.devicePointer == pinned);
	OK(cudaPointerGetAttributes(&a, e + 3));
	CHECK(a.type == cudaMemoryTypeDevice && a.hostPointer == 0);
	OK(cudaPointerGetAttributes(&a, h));
	CHECK(a.type == cudaMemoryTypeUnregistered);
	OK(cudaFreeHost(pinned));
	std::vector<int> v(32);
	OK(cudaHostRegister(v.data(), 128, cudaHostRegisterMapped));
	int *mapped;
	OK(cudaHostGetDevicePointer(&mapped, v.data(), 0));
	set<<<1, 32>>>(mapped, 4);
	OK(cudaDeviceSynchronize());
	CHECK(v[31] == 4);
	IS(cudaErrorInvalidValue, cudaFreeHost(v.data()));
	OK(cudaHostUnregister(v.data()));
	IS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(v.data()));
	int *async;
	cudaStream_t s;
	OK(cudaStreamCreate(&s));
	OK(cudaMallocAsync(&async, 128, s));
	set<<<1, 32, 0, s>>>(async, 6);
	int one = 0;
	OK(cudaMemcpyAsync(&one, async, 4, cudaMemcpyDeviceToHost, s));
	OK(cudaFreeAsync(async, s));
	OK(cudaStreamSynchronize(s));
	CHECK(one == 6);
	return 0;
}

static int variables()
{
	float *f, h[3];
	int ints[4] = { 7, 8, 9, 10 }, one;
	size_t bytes;
	void *at;
	CHECK(shared_with_host == 40);
	OK(cudaMallocManaged(&f, 12));
	symbols<<<1, 1>>>(f);
	OK(cudaDeviceSynchronize());
	CHECK(f[0] == 2.5f && f[1] == 3 && f[2] == 5);
	CHECK(shared_with_host == 42);
	shared_with_host = 1;
	OK(cudaMemcpyToSymbol(table, ints, sizeof ints));
	h[0] = -1.5f;
	OK(cudaMemcpyToSymbol(factor, h, 4, 0, cudaMemcpyHostToDevice));
	symbols<<<1, 1>>>(f);
	OK(cudaDeviceSynchronize());
	CHECK(f[0] == -1.5f && f[1] == 9 && f[2] == 6 && shared_with_host == 3);
	OK(cudaMemcpyFromSymbol(&one, counter, 4));
	CHECK(one == 7);
	OK(cudaMemcpyFromSymbol(&one, table, 4, 12));
	CHECK(one == 10);
	IS(cudaErrorInvalidValue, cudaMemcpyFromSymbol(ints, table, 8, 12));
	OK(cudaGetSymbolSize(&bytes, table));
	CHECK(bytes == 16);
	OK(cudaGetSymbolAddress(&at, counter));
	OK(cudaMemcpy(&one, at, 4, cudaMemcpyDeviceToHost));
	CHECK(one == 7);
	IS(cudaErrorInvalidValue, cudaFree(at));
	IS(cudaErrorInvalidSymbol, cudaGetSymbolAddress(&at, (const void *)&bytes));
	return 0;
}

static void on_host(void *user) { ++*(int *)user; }

static int streams()
{
	cudaStream_t a, b;
	cudaEvent_t start, stop, never;
	int *d, h = 0, calls = 0, low, high;
	float ms = -1;
	OK(cudaDeviceGetStreamPriorityRange(&low, &high));
	OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithPriority(&b, cudaStreamDefault, high));
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&stop));
	OK(cudaEventCreateWithFlags(&never, cudaEventDisableTiming));
	OK(cudaMalloc(&d, 128));
	OK(cudaEventRecord(start, a));
	set<<<1, 32, 0, a>>>(d, 1);
	OK(cudaEventRecord(stop, a));
	OK(cudaStreamWaitEvent(b, stop, 0));
	add<<<1, 32, 0, b>>>(d, 2);
	OK(cudaLaunchHostFunc(b, on_host, &calls));
	OK(cudaStreamSynchronize(b));
	OK(cudaEventSynchronize(stop));
	OK(cudaEventQuery(stop));
	OK(cudaEventElapsedTime(&ms, start, stop));
	CHECK(ms >= 0 && calls == 1);
	IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, start, never));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 3);
	IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize((cudaStream_t)0x1234));
	OK(cudaStreamDestroy(a));
	IS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(a));
	IS(cudaErrorInvalidResourceHandle, cudaGetLastError());
	OK(cudaEventDestroy(start));
	std::vector<std::thread> threads;
	int bad[4] = { 0 };
	for (int t = 0; t < 4; t++)
		threads.emplace_back([t, &bad] {
			int *mine, back;
			cudaStream_t s;
			if (cudaStreamCreate(&s) || cudaMalloc(&mine, 128)) bad[t] = 1;
			for (int i = 0; i < 5; i++) set<<<1, 32, 0, s>>>(mine, t * 10 + i);
			if (cudaMemcpyAsync(&back, mine, 4, cudaMemcpyDeviceToHost, s)) bad[t] = 1;
			if (cudaStreamSynchronize(s) || back != t * 10 + 4) bad[t] = 1;
			cudaMemcpy(mine, 0, 4, (cudaMemcpyKind)77);
			if (cudaGetLastError() != cudaErrorInvalidMemcpyDirection) bad[t] = 1;
		});
	for (auto &t : threads) t.join();
	CHECK(!bad[0] && !bad[1] && !bad[2] && !bad[3]);
	OK(cudaGetLastError());
	return 0;
}

static void destroyed(void *to)
{
	++*(int *)to;
}

/* Nodes added in the wrong order, and changed afterwards. */
#define EXPECT(c) do { if (!(c)) { printf("line %d: %s\n", __LINE__, #c); exit(1); } } while (0)

/* cudaGraphDebugDotPrint() writes the names of the nodes, and edges. */
static void printed(cudaGraph_t g, const char *name)
{
	char text[4000] = {}, path[] = "/tmp/consan-dot-XXXXXX";
	int fd = mkstemp(path);
	EXPECT(fd >= 0 && !cudaGraphDebugDotPrint(g, path, 0));
	EXPECT(read(fd, text, sizeof text - 1) > 0 && !strncmp(text, "digraph", 7) && strstr(text, name)
		&& strstr(text, " -> "));
	EXPECT(cudaGraphDebugDotPrint(g, "/nonexistent/x", 0) == cudaErrorOperatingSystem);
	cudaGetLastError();
	close(fd);
	unlink(path);
}

__device__ int slots[4];
static int graph_symbols()
{
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaGraphNode_t in, out;
	int from[2] = { 3, 4 }, other[2] = { 5, 6 }, to[2] = {};
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddMemcpyNodeToSymbol(&in, g, 0, 0, slots, from, 8, 4, cudaMemcpyHostToDevice));
	OK(cudaGraphAddMemcpyNodeFromSymbol(&out, g, &in, 1, to, slots, 8, 4, cudaMemcpyDeviceToHost));
	CHECK(cudaGraphAddMemcpyNodeToSymbol(&in, g, 0, 0, slots, from, 16, 4, cudaMemcpyHostToDevice)
		== cudaErrorInvalidValue);
	cudaGetLastError();
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaDeviceSynchronize());
	CHECK(to[0] == 3 && to[1] == 4);
	OK(cudaGraphExecMemcpyNodeSetParamsToSymbol(x, in, slots, other, 8, 4, cudaMemcpyHostToDevice));
	OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol(x, out, to, slots, 4, 8, cudaMemcpyDeviceToHost));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaDeviceSynchronize());
	CHECK(to[0] == 6);
	OK(cudaGraphMemcpyNodeSetParamsToSymbol(in, slots, other, 4, 0, cudaMemcpyHostToDevice));
	OK(cudaGraphMemcpyNodeSetParamsFromSymbol(out, to + 1, slots, 4, 0, cudaMemcpyDeviceToHost));
	OK(cudaGraphExecDestroy(x));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaDeviceSynchronize());
	CHECK(to[1] == 5);
	OK(cudaGraphExecDestroy(x));
	OK(cudaGraphDestroy(g));
	return 0;
}

static int graph_edits()
{
	if (graph_symbols()) return 1;
	cudaGraph_t g, clone;
	cudaGraphExec_t x;
	cudaGraphNode_t first, second, node[4], to[4];
	cudaGraphNodeType type;
	cudaUserObject_t object;
	cudaGraphNodeParams any = {};
	cudaStream_t s;
	unsigned on = 7;
	int *d, h = 0, value = 5, more = 2, gone = 0;
	unsigned long long bytes = 1;
	size_t n = 4;
	OK(cudaMalloc(&d, 128));
	void *set_args[] = { &d, &value }, *add_args[] = { &d, &more };
	cudaKernelNodeParams k = {}, is = {};
	k.func = (void *)add;
	k.gridDim = dim3(1);
	k.blockDim = dim3(32);
	k.kernelParams = add_args;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddKernelNode(&second, g, 0, 0, &k));
	any.type = cudaGraphNodeTypeKernel;
	any.kernel.func = (void *)set;
	any.kernel.gridDim = dim3(1);
	any.kernel.blockDim = dim3(32);
	any.kernel.kernelParams = set_args;
	OK(cudaGraphAddNode(&first, g, 0, 0, 0, &any));
	OK(cudaGraphAddDependencies(g, &first, &second, 0, 1));
	CHECK(cudaGraphAddDependencies(g, &second, &first, 0, 1) == cudaErrorInvalidValue); /* a cycle */
	OK(cudaGraphGetEdges(g, node, to, 0, &n));
	CHECK(n == 1 && node[0] == first && to[0] == second);
	n = 4;
	OK(cudaGraphNodeGetDependencies(second, node, 0, &n));
	CHECK(n == 1 && node[0] == first);
	n = 0;
	OK(cudaGraphNodeGetDependentNodes(first, 0, 0, &n));
	CHECK(n == 1);
	n = 4;
	OK(cudaGraphGetRootNodes(g, node, &n));
	CHECK(n == 1 && node[0] == first);
	OK(cudaGraphNodeGetType(second, &type));
	CHECK(type == cudaGraphNodeTypeKernel);
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 7);

	more = 10;
	OK(cudaGraphExecKernelNodeSetParams(x, second, &k));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 15);
	OK(cudaGraphKernelNodeGetParams(second, &is));
	CHECK(*(int *)is.kernelParams[1] == 2 && is.blockDim.x == 32);
	OK(cudaGraphKernelNodeSetParams(second, &is));
	/* the same by the calls for nodes of any type */
	more = 20;
	OK(cudaGraphExecNodeSetParams(x, second, (any.kernel.func = (void *)add, any.kernel.kernelParams = add_args, &any)));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 25);
	OK(cudaGraphNodeSetParams(second, &any));
	more = 2;
	OK(cudaGraphKernelNodeGetParams(second, &is));
	CHECK(*(int *)is.kernelParams[1] == 20);
	any.type = cudaGraphNodeTypeMemset;
	CHECK(cudaGraphNodeSetParams(second, &any) == cudaErrorInvalidValue);
	any.type = cudaGraphNodeTypeEmpty;
	CHECK(cudaGraphExecNodeSetParams(x, second, &any) == cudaErrorInvalidValue);
	cudaGetLastError();
	printed(g, "add");
	OK(cudaGraphNodeSetEnabled(x, second, 0));
	OK(cudaGraphNodeGetEnabled(x, second, &on));
	CHECK(!on);
	OK(cudaGraphLaunch(x, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 5);
	OK(cudaGraphExecDestroy(x));

	OK(cudaUserObjectCreate(&object, &gone, destroyed, 1, cudaUserObjectNoDestructorSync));
	OK(cudaGraphRetainUserObject(g, object, 1, cudaGraphUserObjectMove));
	OK(cudaGraphClone(&clone, g));
	OK(cudaGraphNodeFindInClone(&node[0], second, clone));
	OK(cudaGraphDestroyNode(node[0]));
	n = 4;
	OK(cudaGraphGetNodes(clone, node, &n));
	CHECK(n == 1);
	OK(cudaStreamCreate(&s));
	OK(cudaStreamBeginCaptureToGraph(s, clone, node, 0, 1, cudaStreamCaptureModeGlobal));
	add<<<1, 32, 0, s>>>(d, 20);
	OK(cudaStreamUpdateCaptureDependencies(s, node, 0, 1, cudaStreamSetCaptureDependencies));
	OK(cudaStreamEndCapture(s, &clone));
	OK(cudaGraphInstantiate(&x, clone, 0));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 25);
	OK(cudaGraphExecDestroy(x));
	OK(cudaGraphDestroy(clone));
	CHECK(!gone);
	OK(cudaGraphDestroy(g));
	CHECK(gone == 1);
	OK(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
	CHECK(!bytes);
	OK(cudaDeviceGraphMemTrim(0));
	return 0;
}

static int graphs()
{
	cudaStream_t s;
	cudaGraph_t g;
	cudaGraphExec_t x;
	cudaStreamCaptureStatus state;
	int *d, h = 0, calls = 0;
	size_t n = 0;
	OK(cudaStreamCreate(&s));
	OK(cudaMalloc(&d, 128));
	OK(cudaMemset(d, 0, 128));
	OK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	add<<<1, 32, 0, s>>>(d, 2);
	OK(cudaLaunchHostFunc(s, on_host, &calls));
	add<<<1, 32, 0, s>>>(d, 3);
	OK(cudaStreamIsCapturing(s, &state));
	CHECK(state == cudaStreamCaptureStatusActive);
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 0 && calls == 0);
	OK(cudaGraphGetNodes(g, 0, &n));
	CHECK(n == 3);
	OK(cudaGraphInstantiate(&x, g, 0));
	for (int i = 0; i < 3; i++) OK(cudaGraphLaunch(x, s));
	OK(cudaStreamSynchronize(s));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 15 && calls == 3);
	OK(cudaGraphExecDestroy(x));
	OK(cudaGraphDestroy(g));
	cudaGraphNode_t first, second;
	int value = 9;
	void *args[] = { &d, &value };
	cudaKernelNodeParams k = {};
	k.func = (void *)set;
	k.gridDim = dim3(1);
	k.blockDim = dim3(32);
	k.kernelParams = args;
	OK(cudaGraphCreate(&g, 0));
	OK(cudaGraphAddKernelNode(&first, g, 0, 0, &k));
	value = -1;
	OK(cudaGraphAddMemcpyNode1D(&second, g, &first, 1, &h, d, 4, cudaMemcpyDeviceToHost));
	OK(cudaGraphInstantiate(&x, g, 0));
	OK(cudaGraphLaunch(x, 0));
	OK(cudaDeviceSynchronize());
	CHECK(h == 9);
	return 0;
}

static int functions()
{
	cudaFuncAttributes a;
	int blocks, grid, block, *d, h = 0;
	size_t bytes;
	const char *name;
	OK(cudaMalloc(&d, 4096));
	OK(cudaFuncGetAttributes(&a, dynamic));
	CHECK(a.maxThreadsPerBlock == 1024 && a.maxDynamicSharedSizeBytes == 49152 && a.numRegs > 0);
	OK(cudaFuncGetAttributes(&a, bounded));
	CHECK(a.maxThreadsPerBlock == 64);
	dynamic<<<1, 128, 512>>>(d, 128);
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 127);
	dynamic<<<1, 128, 49153>>>(d, 128);
	IS(cudaErrorInvalidValue, cudaGetLastError());
	OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
	dynamic<<<1, 128, 100000>>>(d, 128);
	OK(cudaGetLastError());
	IS(cudaErrorInvalidValue, cudaFuncSetAttribute(dynamic,
		cudaFuncAttributeMaxDynamicSharedMemorySize, 300000));
	IS(cudaErrorInvalidValue, cudaGetLastError());
	dynamic<<<1, 2048>>>(d, 1);
	IS(cudaErrorInvalidConfiguration, cudaGetLastError());
	dynamic<<<0, 32>>>(d, 1);
	IS(cudaErrorInvalidConfiguration, cudaGetLastError());
	bounded<<<1, 128>>>(d);
	CHECK(cudaGetLastError() != cudaSuccess);
	IS(cudaErrorInvalidDeviceFunction, cudaLaunchKernel((void *)&h, dim3(1), dim3(1), 0, 0, 0));
	cudaGetLastError();
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, set, 1024, 0));
	CHECK(blocks == 2);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, dynamic, 128, 100000));
	CHECK(blocks == 2);
	OK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, dynamic, 2, 128));
	CHECK(bytes >= 100000 && bytes < 120000);
	OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, set));
	CHECK(block >= 512 && grid > 0);
	OK(cudaFuncGetName(&name, (void *)bounded));
	CHECK(!strcmp(name, "_Z7boundedPi"));
	cudaFunction_t f;
	OK(cudaGetFuncBySymbol(&f, (void *)set));
	int value = 12;
	void *args[] = { &d, &value };
	CHECK(!cuLaunchKernel((CUfunction)f, 1, 1, 1, 32, 1, 1, 0, 0, args, 0));
	OK(cudaMemcpy(&h, d, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 12);
	cudaLaunchConfig_t c = {};
	cudaLaunchAttribute at[2];
	c.gridDim = dim3(4);
	c.blockDim = dim3(32);
	at[0].id = cudaLaunchAttributeClusterDimension;
	at[0].val.clusterDim.x = 2;
	at[0].val.clusterDim.y = at[0].val.clusterDim.z = 1;
	at[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
	at[1].val.programmaticStreamSerializationAllowed = 1;
	c.attrs = at;
	c.numAttrs = 2;
	OK(cudaLaunchKernelEx(&c, set, d, 21));
	OK(cudaMemcpy(&h, d + 127, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 21);
	at[0].val.clusterDim.x = 3;
	IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&c, set, d, 21));
	cudaGetLastError();
	c.gridDim = dim3(16);
	at[0].val.clusterDim.x = 16;
	IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&c, set, d, 22));
	cudaGetLastError();
	OK(cudaFuncSetAttribute(set, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
	OK(cudaLaunchKernelEx(&c, set, d, 22));
	OK(cudaMemcpy(&h, d + 127, 4, cudaMemcpyDeviceToHost));
	CHECK(h == 22);
	c.gridDim = dim3(32);
	at[0].val.clusterDim.x = 32;
	IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&c, set, d, 22));
	cudaGetLastError();
	OK(cudaFuncSetAttribute(place, cudaFuncAttributeNonPortableClusterSizeAllowed, 0));
	c.gridDim = dim3(8);
	at[0].val.clusterDim.x = 2;
	at[1].id = cudaLaunchAttributePreferredClusterDimension;
	at[1].val.preferredClusterDim.x = 4;
	at[1].val.preferredClusterDim.y = at[1].val.preferredClusterDim.z = 1;
	OK(cudaLaunchKernelEx(&c, place, d));
	int at_place[8];
	OK(cudaMemcpy(at_place, d, sizeof at_place, cudaMemcpyDeviceToHost));
	for (int k = 0; k < 8; k++) /* whichever size it is, the cluster is whole */
		CHECK((at_place[k] / 16 == 4 || at_place[k] / 16 == 2)
			&& at_place[k] % 16 == k % (at_place[k] / 16));
	at[1].val.preferredClusterDim.x = 3; /* no multiple */
	IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&c, place, d));
	cudaGetLastError();
	c.gridDim = dim3(10);
	at[1].val.preferredClusterDim.x = 4; /* does not divide the grid */
	IS(cudaErrorInvalidClusterSize, cudaLaunchKernelEx(&c, place, d));
	cudaGetLastError();
	pair<<<4, 1>>>(d);
	OK(cudaGetLastError());
	pair<<<3, 1>>>(d);
	CHECK(cudaGetLastError() != cudaSuccess);
	value = 2;
	OK(cudaLaunchCooperativeKernel((void *)set, dim3(8), dim3(32), args, 0, 0));
	IS(cudaErrorCooperativeLaunchTooLarge, cudaLaunchCooperativeKernel((void *)set, dim3(100000),
		dim3(1024), args, 0, 0));
	return 0;
}

static int device()
{
	cudaDeviceProp p;
	int n, v;
	OK(cudaGetDeviceCount(&n));
	CHECK(n == 2);
	OK(cudaGetDeviceProperties(&p, 0));
	CHECK(p.major == 9 && p.minor == 0 && p.warpSize == 32 && p.multiProcessorCount > 0);
	CHECK(strstr(p.name, "consan") && p.sharedMemPerBlockOptin == 232448 && p.clusterLaunch);
	OK(cudaDeviceGetAttribute(&v, cudaDevAttrComputeCapabilityMajor, 0));
	CHECK(v == 9);
	OK(cudaDeviceGetAttribute(&v, cudaDevAttrMaxTexture1DWidth, 0));
	IS(cudaErrorInvalidDevice, cudaSetDevice(2));
	IS(cudaErrorInvalidDevice, cudaGetLastError());
	OK(cudaSetDevice(0));
	OK(cudaRuntimeGetVersion(&v));
	CHECK(v == 13000);
	OK(cudaDriverGetVersion(&v));
	CHECK(v >= 13000);
	CHECK(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
	CHECK(strstr(cudaGetErrorString(cudaErrorIllegalAddress), "illegal memory access"));
	size_t stack;
	OK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	OK(cudaDeviceGetLimit(&stack, cudaLimitStackSize));
	CHECK(stack == 4096);
	void *entry = 0;
	cudaDriverEntryPointQueryResult q;
	OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
		cudaEnableDefault, &q));
	CHECK(entry && q == cudaDriverEntryPointSuccess);
	OK(cudaGetDriverEntryPointByVersion("cuNoSuchCall", &entry, 12000, cudaEnableDefault, &q));
	CHECK(!entry && q == cudaDriverEntryPointSymbolNotFound);
	cudaArray_t array;
	IS(cudaErrorNotSupported, cudaArrayGetPlane(&array, NULL, 0));
	return 0;
}

/* ---- abnormal ends: the process behaves as on a GPU ---- */

static int fault()
{
	int *d;
	OK(cudaMalloc(&d, 4));
	bad_address<<<1, 1>>>((int *)16);
	IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	IS(cudaErrorIllegalAddress, cudaMalloc(&d, 4));
	IS(cudaErrorIllegalAddress, cudaGetLastError());
	OK(cudaDeviceReset());
	OK(cudaMalloc(&d, 4));
	trapped<<<1, 1>>>();
	IS(cudaErrorLaunchFailure, cudaDeviceSynchronize());
	return 0;
}

static int race()
{
	int *d;
	OK(cudaMalloc(&d, 4096));
	racy<<<1, 64>>>(d);
	OK(cudaDeviceSynchronize());
	return 0;
}

static int race_then(const char *how)
{
	if (race()) return 1;
	if (!strcmp(how, "_exit")) _exit(3);
	if (!strcmp(how, "abort")) abort();
	if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
	if (!strcmp(how, "exec")) execl("/bin/echo", "echo", "after exec", (char *)0);
	if (!strcmp(how, "pause")) { printf("ready\n"); fflush(stdout); pause(); }
	return 5;
}

/* A child may use CUDA only if the parent has not used it before the fork. */
static int forks()
{
	int status;
	pid_t pid = fork();
	if (!pid) _exit(race());
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	int *d;
	OK(cudaMalloc(&d, 4));
	pid = fork();
	if (!pid) _exit(cudaMalloc(&d, 4) == cudaErrorInitializationError ? 0 : 1);
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
	return 0;
}

static int hang()
{
	int *flag;
	OK(cudaMallocManaged(&flag, 4));
	*flag = 0;
	printf("ready\n");
	fflush(stdout);
	spin<<<1, 1>>>(flag);
	IS(cudaErrorLaunchTimeout, cudaDeviceSynchronize());
	return 0;
}

static int nothing() { return 0; }

int main(int argc, char **argv)
{
	static const struct { const char *name; int (*run)(); } tests[] = {
		{ "launch", launch }, { "memory", memory }, { "variables", variables },
		{ "streams", streams }, { "graphs", graphs }, { "graph-edits", graph_edits }, { "functions", functions },
		{ "device", device }, { "fault", fault }, { "race", race }, { "forks", forks },
		{ "hang", hang }, { "nothing", nothing },
	};
	if (argc == 3 && !strcmp(argv[1], "race-then")) return race_then(argv[2]);
	for (auto &t : tests)
		if (argc == 2 && !strcmp(argv[1], t.name)) return t.run();
	return 99;
}
