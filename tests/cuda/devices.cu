/* Several devices: `devices NAME` runs one part; tests/unit/cuda/devices.c runs them under
 * consan-run. Needs two devices. Exits with 1 at the first thing that is not as on GPUs. */
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) do { if (!(x)) { \
	printf("%s:%d: %s\n", __FILE__, __LINE__, #x); exit(1); } } while (0)
#define IS(expected, call) do { int is_ = (int)(call); if (is_ != (int)(expected)) { \
	printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, is_); exit(1); } } while (0)
#define OK(call) IS(0, call)

__device__ int counter = 5;
__managed__ int total = 100;

__global__ void count(int *to) { *to = ++counter; atomicAdd_system(&total, 1); }
__global__ void fill(int *to, int value) { to[threadIdx.x] = value + threadIdx.x; }
__global__ void copy(int *to, const int *from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void dynamic(int *to) { extern __shared__ int s[]; s[0] = 7; *to = s[0]; }

static int *array(int device, size_t n)
{
	int *at;
	OK(cudaSetDevice(device));
	OK(cudaMalloc(&at, n * sizeof *at));
	return at;
}

static int value(const int *at)
{
	int v;
	OK(cudaMemcpy(&v, at, sizeof v, cudaMemcpyDefault));
	return v;
}

/* Numbers, names and current devices. */
static void numbers()
{
	cudaDeviceProp a, b;
	char id[2][16];
	int n, d, v;
	OK(cudaGetDeviceCount(&n));
	CHECK(n == (getenv("DEVICES") ? atoi(getenv("DEVICES")) : 2));
	OK(cudaGetDeviceProperties(&a, 0));
	OK(cudaGetDeviceProperties(&b, 1));
	CHECK(!strcmp(a.name, b.name) && a.pciBusID != b.pciBusID && memcmp(&a.uuid, &b.uuid, 16));
	for (int i = 0; i < 2; i++) {
		OK(cudaDeviceGetPCIBusId(id[i], 16, i));
		OK(cudaDeviceGetByPCIBusId(&d, id[i]));
		CHECK(d == i);
	}
	CHECK(strcmp(id[0], id[1]));
	IS(cudaErrorInvalidDevice, cudaSetDevice(n));
	IS(cudaErrorInvalidDevice, cudaSetDevice(-1));
	IS(cudaErrorInvalidDevice, cudaGetDeviceProperties(&a, n));
	cudaGetLastError();
	OK(cudaGetDevice(&d));
	CHECK(d == 0);
	OK(cudaSetDevice(1));
	OK(cudaGetDevice(&d));
	CHECK(d == 1);
	OK(cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrNativeAtomicSupported, 0, 1));
	CHECK(v == 1);
	IS(cudaErrorInvalidDevice, cudaDeviceGetP2PAttribute(&v, cudaDevP2PAttrAccessSupported, 1, 1));
	cudaGetLastError();
}

/* Contexts of the driver API and the current device are one state. */
static void contexts()
{
	CUcontext c, p, now;
	CUdevice d;
	int n, r;
	OK(cuInit(0));
	OK(cuDeviceGetCount(&n));
	CHECK(n == 2);
	IS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&d, 2));
	OK(cuDevicePrimaryCtxRetain(&p, 1));
	OK(cuCtxPushCurrent(p));
	OK(cuCtxGetDevice(&d));
	OK(cudaGetDevice(&r));
	CHECK(d == 1 && r == 1);
	OK(cudaSetDevice(0));
	OK(cuCtxGetDevice(&d));
	CHECK(d == 0);
	OK(cuCtxPopCurrent(&now));
	CHECK(now != p);
	OK(cuCtxCreate(&c, NULL, 0, 1));
	OK(cudaGetDevice(&r));
	CHECK(r == 1);
	OK(cuCtxDestroy(c));
	OK(cuDevicePrimaryCtxRelease(1));
}

/* A variable exists once a device, a managed one once; attributes of kernels are of a device, too. */
static void variables()
{
	int *a = array(0, 1), *b = array(1, 1), v, *at0, *at1;
	OK(cudaSetDevice(0));
	OK(cudaGetSymbolAddress((void **)&at0, counter));
	count<<<1, 1>>>(a);
	count<<<1, 1>>>(a);
	CHECK(value(a) == 7);
	OK(cudaSetDevice(1));
	OK(cudaGetSymbolAddress((void **)&at1, counter));
	CHECK(at0 != at1);
	count<<<1, 1>>>(b);
	CHECK(value(b) == 6);
	OK(cudaDeviceSynchronize());
	CHECK(total == 103);
	OK(cudaMemcpyFromSymbol(&v, counter, 4));
	CHECK(v == 6);
	OK(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
	dynamic<<<1, 1, 100 << 10>>>(b);
	OK(cudaGetLastError());
	OK(cudaSetDevice(0));
	dynamic<<<1, 1, 100 << 10>>>(a);
	IS(cudaErrorInvalidValue, cudaGetLastError());
}

/* Streams and events belong to a device. */
static void streams()
{
	cudaStream_t s[2];
	cudaEvent_t e[2];
	int *at[2], d;
	float ms;
	for (int i = 0; i < 2; i++) {
		at[i] = array(i, 32);
		OK(cudaStreamCreate(&s[i]));
		OK(cudaEventCreate(&e[i]));
		OK(cudaStreamGetDevice(s[i], &d));
		CHECK(d == i);
		OK(cudaStreamGetDevice(0, &d));
		CHECK(d == i);
	}
	IS(cudaErrorInvalidResourceHandle, cudaEventRecord(e[0], s[1]));
	OK(cudaEventRecord(e[0], s[0]));
	OK(cudaEventRecord(e[1], s[1]));
	OK(cudaStreamWaitEvent(s[1], e[0], 0));
	IS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, e[0], e[1]));
	/* a copy may be issued to a stream of any device */
	OK(cudaMemsetAsync(at[0], 0, 4, s[1]));
	cudaGetLastError();
	fill<<<1, 32, 0, s[1]>>>(at[1], 3);
	OK(cudaGetLastError());
	OK(cudaDeviceSynchronize());
	CHECK(value(at[1] + 1) == 4);
}

static void wrong_stream()
{
	cudaStream_t s;
	int *at = array(0, 32);
	OK(cudaStreamCreate(&s));
	OK(cudaSetDevice(1));
	fill<<<1, 32, 0, s>>>(at, 3);
	IS(cudaErrorInvalidResourceHandle, cudaGetLastError());
}

/* Copies need no access of the peer, kernels do. */
static void peers()
{
	int *a = array(0, 32), *b = array(1, 32), can, v;
	cudaPointerAttributes p;
	OK(cudaPointerGetAttributes(&p, a));
	CHECK(p.device == 0);
	OK(cudaPointerGetAttributes(&p, b));
	CHECK(p.device == 1);
	OK(cudaSetDevice(0));
	fill<<<1, 32>>>(a, 10);
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpyPeer(b, 1, a, 0, 128));
	CHECK(value(b + 5) == 15);
	IS(cudaErrorInvalidDevice, cudaMemcpyPeer(b, 2, a, 0, 128));
	OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	CHECK(can);
	OK(cudaDeviceCanAccessPeer(&can, 1, 1));
	CHECK(!can);
	IS(cudaErrorInvalidDevice, cudaDeviceEnablePeerAccess(0, 0));
	IS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	OK(cudaDeviceEnablePeerAccess(1, 0));
	IS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
	cudaGetLastError();
	fill<<<1, 32>>>(b, 20);
	OK(cudaDeviceSynchronize());
	v = value(b + 1);
	CHECK(v == 21);
	OK(cudaDeviceDisablePeerAccess(1));
}

/* The access is of one direction only. */
static void no_peer()
{
	int *a = array(0, 32), *b = array(1, 32), d;
	cudaStream_t s;
	OK(cudaSetDevice(0));
	OK(cudaDeviceEnablePeerAccess(1, 0));
	copy<<<1, 32>>>(a, b);
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&s));
	copy<<<1, 32, 0, s>>>(b, a);
	OK(cudaSetDevice(0));
	IS(cudaErrorIllegalAddress, cudaStreamSynchronize(s));
	OK(cudaSetDevice(1) == cudaErrorIllegalAddress ? cudaSuccess : cudaErrorUnknown);
	IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
	/* the other device goes on */
	OK(cudaSetDevice(0));
	fill<<<1, 32>>>(a, 1);
	OK(cudaDeviceSynchronize());
	OK(cudaGetDevice(&d));
	CHECK(d == 0);
}

/* Memory that all devices may access. */
static void everywhere()
{
	int *managed, *pinned, *at;
	OK(cudaMallocManaged(&managed, 128));
	OK(cudaMallocHost(&pinned, 128));
	for (int d = 0; d < 2; d++) {
		OK(cudaSetDevice(d));
		fill<<<1, 32>>>(managed, 100 * d);
		fill<<<1, 32>>>(pinned, 100 * d + 1);
		OK(cudaDeviceSynchronize());
		CHECK(managed[3] == 100 * d + 3 && pinned[3] == 100 * d + 4);
	}
	at = array(1, 32);
	OK(cudaSetDevice(0));
	OK(cudaFree(at));
}

/* Memory of a pool: peer access does not matter, the pool's access does. */
static void pools(bool access)
{
	cudaMemPoolProps props = {};
	cudaMemAccessDesc desc = {};
	cudaMemAccessFlags flags;
	cudaMemPool_t pool, now;
	int *at, *in_default;
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	OK(cudaSetDevice(0));
	props.allocType = cudaMemAllocationTypePinned;
	props.location.type = cudaMemLocationTypeDevice;
	props.location.id = 0;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMallocFromPoolAsync(&at, 128, pool, 0));
	OK(cudaMallocAsync(&in_default, 128, 0));
	OK(cudaDeviceGetMemPool(&now, 0));
	CHECK(now != pool);
	OK(cudaDeviceSetMemPool(0, pool));
	OK(cudaDeviceGetMemPool(&now, 0));
	CHECK(now == pool);
	desc.location.type = cudaMemLocationTypeDevice;
	desc.location.id = 1;
	desc.flags = cudaMemAccessFlagsProtReadWrite;
	OK(cudaMemPoolGetAccess(&flags, pool, &desc.location));
	CHECK(flags == cudaMemAccessFlagsProtNone);
	if (access)
		OK(cudaMemPoolSetAccess(pool, &desc, 1));
	OK(cudaSetDevice(1));
	fill<<<1, 32>>>(at, 1);
	IS(access ? cudaSuccess : cudaErrorIllegalAddress, cudaDeviceSynchronize());
	if (!access)
		return;
	CHECK(value(at + 1) == 2);
	OK(cudaFree(at));
	OK(cudaMemPoolDestroy(pool));
}

static void pool_access() { pools(true); }
static void pool_no_access() { pools(false); }

#include "devices_mapping.cuh"
#include "devices_signals.cuh"
#include "devices_processes.cuh"

/* Two halves of a device, each with two streams: by an event of the whole context, or of one of its streams. */
template <bool Whole> static void green()
{
	CUdevResource all, half[2], rest, again;
	CUdevResourceDesc desc[2];
	CUgreenCtx g[2], is;
	CUcontext c, before;
	CUstream first, second, other, late;
	CUevent e;
	unsigned n = 2, count;
	int *data = array(0, 1024);
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	IS(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource(0, &rest, CU_DEV_RESOURCE_TYPE_INVALID));
	IS(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount(half, &n, &all, &rest, 0, all.sm.smCount + 1));
	OK(cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, 0, 9));
	CHECK(count == all.sm.smCount / 16);
	OK(cuDevSmResourceSplitByCount(half, &n, &all, &rest, 0, 9));
	CHECK(n == 2 && half[0].sm.smCount == 16 && rest.sm.smCount == all.sm.smCount - 32);
	for (int k = 0; k < 2; k++) {
		OK(cuDevResourceGenerateDesc(&desc[k], &half[k], 1));
		IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&g[k], desc[k], 0, 0));
		OK(cuGreenCtxCreate(&g[k], desc[k], 0, CU_GREEN_CTX_DEFAULT_STREAM));
	}
	OK(cuGreenCtxGetDevResource(g[1], &again, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(again.sm.smCount == 16);
	half[1] = all;
	IS(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc(desc, half, 2));
	OK(cuGreenCtxStreamCreate(&first, g[0], CU_STREAM_NON_BLOCKING, 0));
	IS(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&second, g[0], CU_STREAM_DEFAULT, 0));
	OK(cuCtxFromGreenCtx(&c, g[0]));
	OK(cuCtxGetCurrent(&before));
	OK(cuCtxSetCurrent(c));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuCtxSetCurrent(before));
	OK(cuStreamGetGreenCtx(second, &is));
	CHECK(is == g[0]);
	OK(cuGreenCtxStreamCreate(&other, g[1], CU_STREAM_NON_BLOCKING, 0));
	OK(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
	fill<<<1, 32, 0, first>>>(data, 1);
	fill<<<1, 32, 0, second>>>(data + 32, 1);
	if (Whole) OK(cuGreenCtxRecordEvent(g[0], e));
	else OK(cuEventRecord(e, first));
	OK(cuGreenCtxWaitEvent(g[1], e));
	fill<<<1, 64, 0, other>>>(data, 2);
	/* what is created later waits, too */
	OK(cuGreenCtxRecordEvent(g[1], e));
	OK(cuGreenCtxWaitEvent(g[0], e));
	OK(cuGreenCtxStreamCreate(&late, g[0], CU_STREAM_NON_BLOCKING, 0));
	fill<<<1, 32, 0, late>>>(data + 32, 3);
	OK(cudaDeviceSynchronize());
	CHECK(value(data) == 2 && value(data + 32) == 3);
	for (CUstream s : { first, second, other, late }) OK(cuStreamDestroy(s));
	for (CUgreenCtx x : g) OK(cuGreenCtxDestroy(x));
	IS(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy(g[0]));
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(); } part[] = {
		{ "numbers", numbers }, { "contexts", contexts }, { "variables", variables },
		{ "streams", streams }, { "wrong-stream", wrong_stream }, { "peers", peers },
		{ "no-peer", no_peer }, { "everywhere", everywhere }, { "pool-access", pool_access },
		{ "pool-no-access", pool_no_access }, { "mapping", mapping },
		{ "mapping-without-access", mapping_without_access }, { "multicast", multicast },
		{ "signal-sys", signal<true> }, { "signal-gpu", signal<false> },
		{ "relay-early", relay<true, 32, true> }, { "relay-late", relay<false, 32, true> },
		{ "relay-shapes", relay<true, 64, true> }, { "relay-apart", relay<true, 32, false> },
		{ "meeting", meeting<SYSTEM, SYSTEM, 2> }, { "meeting-alone", meeting<SYSTEM, SYSTEM, 1> },
		{ "endless", waits_for_nothing },
		{ "meeting-without-acquire", meeting<SYSTEM, NONE, 2> },
		{ "meeting-gpu-acquire", meeting<SYSTEM, GPU, 2> },
		{ "meeting-gpu-release", meeting<GPU, SYSTEM, 2> },
		{ "reductions", reductions<true> }, { "reductions-racy", reductions<false> },
		{ "fences-sys", fences<true> }, { "fences-gpu", fences<false> }, { "ipc", ipc }, { "forged", forged_handles }, { "killed", killed },
		{ "piped", piped<WAITS> }, { "piped-racy", piped<DOES_NOT> }, { "piped-copy", piped<BLOCKS> }, { "shared", shared },
		{ "green", green<true> }, { "green-racy", green<false> },
		{ "piped-pool", piped<WAITS, BY_POOL> }, { "piped-pool-racy", piped<DOES_NOT, BY_POOL> },
		{ "piped-mapping", piped<WAITS, BY_MAPPING> }, { "piped-mapping-racy", piped<DOES_NOT, BY_MAPPING> },
		{ "multicast-plain", multicast_plain }, { "multicast-unbound", multicast_unbound },
		{ "driver-begins", driver_begins },
	};

	for (auto &p : part)
		if (argc == 2 && !strcmp(argv[1], p.name)) {
			p.run();
			return 0;
		}
	return 99;
}
