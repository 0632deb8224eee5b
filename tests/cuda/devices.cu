/* Several devices: `devices NAME` runs one part; tests/unit/cuda/devices.c runs them under
 * consan-run. Needs two devices. Exits with 1 at the first thing that is not as on GPUs. Long because it
 * has a function for each part. */
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

/* ---- virtual memory management ---- */

static const size_t page = 2 << 20;

static CUmemGenericAllocationHandle create(int device, size_t bytes)
{
	CUmemAllocationProp p = {};
	CUmemGenericAllocationHandle h;
	size_t grain;
	p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	p.location.id = device;
	p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(cuMemGetAllocationGranularity(&grain, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(grain == page);
	OK(cuMemCreate(&h, bytes, &p, 0));
	return h;
}

/* Maps the handle at new addresses; access: a bit for each device. */
static int *map(CUmemGenericAllocationHandle h, size_t bytes, unsigned access)
{
	CUdeviceptr at;
	OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	OK(cuMemMap(at, bytes, 0, h, 0));
	for (int d = 0; d < 2; d++)
		if (access >> d & 1) {
			CUmemAccessDesc a = { { CU_MEM_LOCATION_TYPE_DEVICE, d }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
			OK(cuMemSetAccess(at, bytes, &a, 1));
		}
	return (int *)at;
}

__global__ void wide(int4 *to)
{
	to[0] = make_int4(2, 2, 2, 2);
	to[1] = make_int4(2, 2, 2, 2);
}

static void mapping()
{
	CUmemGenericAllocationHandle h, again, same;
	unsigned long long flags;
	CUdeviceptr at;
	int *p, *q, fd;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	h = create(0, 2 * page);
	p = map(h, 2 * page, 1);
	fill<<<1, 32>>>(p + page / 4, 5);
	OK(cudaDeviceSynchronize());
	CHECK(value(p + page / 4 + 2) == 7);
	CUmemLocation where = { CU_MEM_LOCATION_TYPE_DEVICE, 1 };
	OK(cuMemGetAccess(&flags, &where, (CUdeviceptr)p));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemRetainAllocationHandle(&same, p + 4));
	CHECK(same == h);
	OK(cuMemRelease(same));
	/* the memory outlives its handle, and its first mapping */
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemRelease(h));
	OK(cuMemImportFromShareableHandle(&again, (void *)(size_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	q = map(again, 2 * page, 3);
	CHECK(q != p && value(q + page / 4 + 2) == 7);
	IS(CUDA_ERROR_INVALID_VALUE, cuMemUnmap((CUdeviceptr)p, page));
	IS(CUDA_ERROR_INVALID_VALUE, cuMemAddressFree((CUdeviceptr)p, 2 * page));
	OK(cuMemUnmap((CUdeviceptr)p, 2 * page));
	OK(cuMemAddressFree((CUdeviceptr)p, 2 * page));
	OK(cudaSetDevice(1));
	fill<<<1, 32>>>(q, 50);
	OK(cudaDeviceSynchronize());
	CHECK(value(q) == 50);
	/* the two halves of a reservation */
	OK(cuMemAddressReserve(&at, 2 * page, 0, 0, 0));
	OK(cuMemMap(at + page, page, 0, again, 0));
	IS(CUDA_ERROR_INVALID_VALUE, cuMemMap(at + page, page, 0, again, 0));
	OK(cuMemMap(at, page, page, again, 0));
	CHECK(value((int *)(at + page)) == 50 && value((int *)at + 2) == 7);
	/* mappings side by side are one memory */
	CUmemAccessDesc a = { { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	OK(cuMemSetAccess(at, 2 * page, &a, 1));
	OK(cudaMemset((char *)at + page - 64, 1, 128));
	wide<<<1, 1>>>((int4 *)(at + page - 16));
	OK(cudaDeviceSynchronize());
	CHECK(value((int *)(at + page)) == 2 && value((int *)(at + page) - 1) == 2);
	OK(cuMemUnmap(at, page));
	IS(cudaErrorInvalidValue, cudaMemset((char *)at + page - 64, 1, 128));
	IS(cudaErrorInvalidValue, cudaMemcpy((void *)at, q, 64, cudaMemcpyDefault));
	cudaGetLastError();
	OK(cuMemUnmap(at + page, page));
	OK(cuMemUnmap((CUdeviceptr)q, 2 * page));
	OK(cuMemRelease(again));
	IS(CUDA_ERROR_INVALID_VALUE, cuMemRelease(again));
}

static void mapping_without_access()
{
	int *p;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	p = map(create(0, page), page, 2);
	fill<<<1, 32>>>(p, 5);
	IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

/* Asking for the device initialises the driver, and makes no context. */
static void driver_begins()
{
	CUcontext context;
	CUdevice handle;
	int d;
	IS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet(&handle, 0));
	OK(cudaGetDevice(&d));
	OK(cuDeviceGet(&handle, d));
	OK(cuCtxGetCurrent(&context));
	CHECK(!context);
}

/* ---- multicast ---- */

__global__ void all_reduce(int *multicast, float *sums)
{
	int v;
	float f;
	asm volatile("multimem.ld_reduce.relaxed.sys.global.add.s32 %0, [%1];" : "=r"(v)
		: "l"(multicast + threadIdx.x) : "memory");
	asm volatile("multimem.st.relaxed.sys.global.s32 [%0], %1;" : : "l"(multicast + threadIdx.x), "r"(v)
		: "memory");
	asm volatile("multimem.red.relaxed.sys.global.add.f32 [%0], %1;" : : "l"(sums + threadIdx.x),
		"f"(0.5f * threadIdx.x) : "memory");
	asm volatile("multimem.ld_reduce.weak.global.add.f32 %0, [%1];" : "=f"(f) : "l"(sums + threadIdx.x)
		: "memory");
	asm volatile("multimem.st.weak.global.f32 [%0], %1;" : : "l"(sums + threadIdx.x), "f"(f) : "memory");
}
__global__ void plain(int *to) { to[threadIdx.x] = 1; }
__global__ void plain_load(const int *from, int *to) { to[threadIdx.x] = from[threadIdx.x]; }

static int *replica[2], *multi;

static void make_multicast(int bound)
{
	CUmemGenericAllocationHandle mc, again, h[2];
	CUmulticastObjectProp p = {};
	size_t grain;
	int fd;
	p.numDevices = 2;
	p.size = page;
	p.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	OK(cuMulticastGetGranularity(&grain, &p, CU_MULTICAST_GRANULARITY_RECOMMENDED));
	CHECK(grain == page);
	OK(cuMulticastCreate(&mc, &p));
	OK(cuMemExportToShareableHandle(&fd, mc, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CHECK(again == mc && !close(fd));
	OK(cuMemRelease(again));
	for (int d = 0; d < 2; d++) {
		h[d] = create(d, page);
		replica[d] = map(h[d], page, 3);
	}
	OK(cuMulticastAddDevice(mc, 0));
	IS(CUDA_ERROR_ILLEGAL_STATE, cuMulticastBindMem(mc, 0, h[0], 0, page, 0));
	OK(cuMulticastAddDevice(mc, 1));
	if (bound > 1)
		OK(cuMulticastBindAddr(mc, 0, (CUdeviceptr)replica[1], page, 0));
	OK(cuMulticastBindMem(mc, 0, h[0], 0, page, 0));
	IS(CUDA_ERROR_INVALID_VALUE, cuMulticastBindMem(mc, 0, h[0], 0, page, 0));
	multi = map(mc, page, 3);
	OK(cuMemRelease(mc));
}

static void multicast()
{
	float *f[2];
	make_multicast(2);
	for (int d = 0; d < 2; d++) {
		fill<<<1, 32>>>(replica[d], 100 * d);
		f[d] = (float *)(replica[d] + 1024);
	}
	all_reduce<<<1, 32>>>(multi, (float *)(multi + 1024));
	OK(cudaDeviceSynchronize());
	for (int d = 0; d < 2; d++) {
		float sum;
		CHECK(value(replica[d] + 7) == 114);
		OK(cudaMemcpy(&sum, f[d] + 6, 4, cudaMemcpyDefault));
		CHECK(sum == 6.0f);
	}
	OK(cudaSetDevice(1));
	all_reduce<<<1, 32>>>(multi, (float *)(multi + 1024));
	OK(cudaDeviceSynchronize());
	CHECK(value(replica[0] + 7) == 228 && value(replica[1] + 7) == 228);
}

static void multicast_plain()
{
	make_multicast(2);
	IS(cudaErrorInvalidValue, cudaMemcpy(multi, replica[0], 64, cudaMemcpyDefault));
	IS(cudaErrorInvalidValue, cudaMemset(multi, 0, 64));
	cudaGetLastError();
	plain<<<1, 32>>>(multi);
	OK(cudaDeviceSynchronize());
	CHECK(value(replica[0] + 7) == 1 && value(replica[1] + 7) == 1);
	plain_load<<<1, 32>>>(multi, replica[0]);
	IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

static void multicast_unbound()
{
	make_multicast(1);
	all_reduce<<<1, 32>>>(multi, (float *)multi);
	IS(cudaErrorIllegalAddress, cudaDeviceSynchronize());
}

/* ---- scopes: a signal from one device to the other ---- */

template <bool System> __global__ void produce(int *flag, int *data)
{
	data[threadIdx.x] = threadIdx.x;
	__syncthreads();
	if (!threadIdx.x && System)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
	else if (!threadIdx.x)
		asm volatile("st.release.gpu.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}
template <bool System> __global__ void consume(int *flag, const int *data, int *to)
{
	int v = 0;
	while (!threadIdx.x && !v)
		if (System)
			asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
		else
			asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	__syncthreads();
	to[threadIdx.x] = data[threadIdx.x];
}

/* The load after the first fence.sc comes before the store before the second one, so the first fence is
 * before the second, if the scopes of both have both threads. */
template <bool System> __global__ void before_fence(int *flag, int *data)
{
	int v;
	*data = 1;
	if (System) asm volatile("fence.sc.sys;" : : : "memory");
	else asm volatile("fence.sc.gpu;" : : : "memory");
	asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	do
		asm volatile("ld.relaxed.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag + 1) : "memory");
	while (!v);
}
template <bool System> __global__ void behind_fence(int *flag, const int *data, int *to)
{
	asm volatile("st.relaxed.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
	if (System) asm volatile("fence.sc.sys;" : : : "memory");
	else asm volatile("fence.sc.gpu;" : : : "memory");
	*to = *data;
	asm volatile("st.relaxed.sys.global.s32 [%0], 1;" : : "l"(flag + 1) : "memory");
}

template <bool System> static void fences()
{
	int *data = array(0, 1024), *result = array(1, 32);
	OK(cudaSetDevice(0));
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	before_fence<System><<<1, 1>>>(data + 512, data);
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	behind_fence<System><<<1, 1>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize()); /* the first kernel runs first */
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
}

template <bool System> static void signal()
{
	int *data = array(0, 1024), *result = array(1, 32);
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(0));
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	consume<System><<<1, 32>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	produce<System><<<1, 32>>>(data + 512, data);
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
	CHECK(value(result + 3) == 3);
}

/* Bulk reductions of two devices run at the same time. Their elements are atomic at scope gpu only, so one
 * has to be complete before the other begins (Ordered). */
template <bool Ordered> __global__ void add_bulk(bool second, int *flag, int *sum)
{
	__shared__ alignas(128) int part[32];
	int v = 0;
	part[threadIdx.x] = threadIdx.x;
	asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
	__syncwarp();
	if (threadIdx.x)
		return;
	if (!Ordered)
		atomicAdd_system(flag, 1);
	while (Ordered ? second && v < 1 : v < 2)
		asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	asm volatile("fence.proxy.async;\n"
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 128;\n"
		"cp.async.bulk.commit_group;\n"
		"cp.async.bulk.wait_group 0;" : : "l"(sum), "r"((unsigned)__cvta_generic_to_shared(part))
		: "memory");
	if (Ordered)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}

template <bool Ordered> static void reductions()
{
	int *data = array(0, 1024);
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	add_bulk<Ordered><<<1, 32>>>(true, data + 512, data);
	OK(cudaSetDevice(0));
	add_bulk<Ordered><<<1, 32>>>(false, data + 512, data);
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(1));
	OK(cudaDeviceSynchronize());
	CHECK(value(data + 3) == 6);
}

/* What a grid has done counts for those behind it in the stream, which signal it to another device; whether
 * the other grid polls already (Early), and whether all have one shape. */
template <bool Early, int Threads, bool Behind> static void relay()
{
	int *data = array(0, 1024), *result = array(1, 1024);
	cudaStream_t s[2];
	OK(cudaMemset(data, 0, 4096));
	OK(cudaDeviceSynchronize());
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize());
	OK(cudaStreamCreateWithFlags(&s[0], cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&s[1], cudaStreamNonBlocking));
	OK(cudaSetDevice(1));
	OK(cudaDeviceEnablePeerAccess(0, 0));
	if (Early)
		consume<true><<<1, 32>>>(data + 512, data, result);
	OK(cudaSetDevice(0));
	fill<<<1, Threads, 0, s[0]>>>(data, 7);
	produce<true><<<1, 32, 0, s[!Behind]>>>(data + 512, data + 256);
	OK(cudaSetDevice(1));
	if (!Early)
		consume<true><<<1, 32>>>(data + 512, data, result);
	OK(cudaDeviceSynchronize());
	CHECK(!Behind || value(result + 3) == 10);
	OK(cudaSetDevice(0));
	OK(cudaDeviceSynchronize());
}

/* ---- barriers of all devices, whose waits have time-outs ---- */

enum { LATE = -1 };
enum fence { NONE, GPU, SYSTEM };
static const long long LIMIT = 200000000000; /* clocks */

/* Each device adds to the other one's word and waits for its own. Warp 0 hands the value on to warp 1 in
 * each iteration, which waits for it as well. To LATE if the time is over. */
template <int Kind> __device__ void fence()
{
	if (Kind == SYSTEM)
		__threadfence_system();
	else if (Kind == GPU)
		__threadfence();
}

template <int Release, int Acquire> __global__ void meet(int *mine, int *other, int *data, const int *from, int *to)
{
	__shared__ volatile int seen;
	const long long begin = clock64();
	int v = 0;
	data[threadIdx.x] = threadIdx.x;
	if (!threadIdx.x)
		seen = 0;
	fence<Release>();
	__syncthreads();
	if (!threadIdx.x)
		atomicAdd_system(other, 1);
	while (v <= 0 && clock64() - begin < LIMIT)
		if (threadIdx.x < 32) {
			asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(v) : "l"(mine) : "memory");
			if (!threadIdx.x)
				seen = v;
		} else {
			v = seen;
		}
	if (v <= 0) {
		to[threadIdx.x] = LATE;
		return;
	}
	fence<Acquire>();
	__syncthreads();
	to[threadIdx.x] = from[threadIdx.x];
}

/* Looks at the clock, too, but has no time-out. */
__global__ void endless(const volatile int *word, long long *to)
{
	long long sum = 0;
	while (!*word)
		sum ^= clock64();
	*to = sum;
}

static void waits_for_nothing()
{
	int *word = array(0, 4);
	OK(cudaMemset(word, 0, 16));
	endless<<<1, 32>>>(word, (long long *)(word + 2));
	CHECK(cudaDeviceSynchronize());
}

template <int Release, int Acquire, int Devices> static void meeting()
{
	int *word[2], *data[2], *to[2];
	for (int d = 0; d < 2; d++) {
		word[d] = array(d, 1);
		data[d] = array(d, 64);
		to[d] = array(d, 64);
		OK(cudaMemset(word[d], 0, 4));
		OK(cudaDeviceEnablePeerAccess(!d, 0));
		OK(cudaDeviceSynchronize());
	}
	for (int d = 0; d < Devices; d++) {
		OK(cudaSetDevice(d));
		meet<Release, Acquire><<<1, 64>>>(word[d], word[!d], data[d], data[!d], to[d]);
	}
	for (int d = 0; d < Devices; d++) {
		OK(cudaSetDevice(d));
		OK(cudaDeviceSynchronize());
		CHECK(Devices == 2 ? value(to[d] + 40) == 40 : value(to[d]) == LATE);
	}
}

/* ---- two processes: the parent has the memory, the child opens it ---- */

__global__ void hand_over(int *flag, int *data)
{
	data[threadIdx.x] += 1000;
	__syncthreads();
	if (!threadIdx.x)
		asm volatile("st.release.sys.global.s32 [%0], 1;" : : "l"(flag) : "memory");
}
__global__ void take_over(int *flag, const int *data, int *to)
{
	int v = 0;
	if (!threadIdx.x)
		while (!v)
			asm volatile("ld.acquire.sys.global.s32 %0, [%1];" : "=r"(v) : "l"(flag) : "memory");
	__syncthreads();
	to[threadIdx.x] = data[threadIdx.x];
}

static int channel[2]; /* of the parent, of the child */

static void send(int side, const void *at, size_t n) { CHECK(write(channel[side], at, n) == (ssize_t)n); }
static void receive(int side, void *at, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = read(channel[side], (char *)at + got, n - got);
		CHECK(k > 0);
		got += (size_t)k;
	}
}

static void send_fd(int side, int fd)
{
	char one = 0, space[CMSG_SPACE(sizeof fd)] = {};
	iovec v = { &one, 1 };
	msghdr m = {};
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = space;
	m.msg_controllen = sizeof space;
	cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	CHECK(sendmsg(channel[side], &m, 0) == 1);
}

static int receive_fd(int side)
{
	char one, space[CMSG_SPACE(sizeof(int))];
	iovec v = { &one, 1 };
	msghdr m = {};
	int fd;
	m.msg_iov = &v;
	m.msg_iovlen = 1;
	m.msg_control = space;
	m.msg_controllen = sizeof space;
	CHECK(recvmsg(channel[side], &m, 0) == 1);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

static void both(void (*parent)(), void (*child)())
{
	int status;
	pid_t pid;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork();
	if (!pid) {
		child();
		exit(0);
	}
	parent();
	CHECK(waitpid(pid, &status, 0) == pid && !status);
}

static void ipc_parent()
{
	int *data = array(0, 1024), *result = array(0, 32);
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e, plain;
	void *at;
	char ready;
	OK(cudaMemset(data, 0, 4096));
	OK(cudaEventCreate(&plain));
	IS(cudaErrorInvalidValue, cudaIpcGetEventHandle(&he, plain));
	IS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&e, cudaEventInterprocess));
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	OK(cudaIpcGetMemHandle(&h, data));
	IS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&at, h, cudaIpcMemLazyEnablePeerAccess));
	IS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&h, &ready));
	cudaGetLastError();
	fill<<<1, 32>>>(data, 100);
	OK(cudaEventRecord(e));
	send(0, &h, sizeof h);
	send(0, &he, sizeof he);
	/* while its kernel runs, the one of the child writes the flag */
	take_over<<<1, 32>>>(data + 512, data, result);
	OK(cudaDeviceSynchronize());
	CHECK(value(result + 3) == 1103);
	receive(0, &ready, 1);
	OK(cudaEventSynchronize(e));
	CHECK(value(data + 600) == 5);
	OK(cudaFree(data));
	OK(cudaEventDestroy(e));
}

static void ipc_child()
{
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	cudaStream_t s;
	int *data, *again;
	receive(1, &h, sizeof h);
	receive(1, &he, sizeof he);
	OK(cudaSetDevice(1));
	OK(cudaIpcOpenMemHandle((void **)&data, h, cudaIpcMemLazyEnablePeerAccess));
	OK(cudaIpcOpenMemHandle((void **)&again, h, cudaIpcMemLazyEnablePeerAccess));
	CHECK(again == data);
	OK(cudaIpcCloseMemHandle(again));
	OK(cudaIpcOpenEventHandle(&e, he));
	OK(cudaStreamCreate(&s));
	OK(cudaStreamWaitEvent(s, e, 0));
	hand_over<<<1, 32, 0, s>>>(data + 512, data);
	OK(cudaStreamSynchronize(s));
	fill<<<1, 1, 0, s>>>(data + 600, 5);
	OK(cudaEventRecord(e, s));
	OK(cudaStreamSynchronize(s));
	send(1, "r", 1);
	OK(cudaIpcCloseMemHandle(data));
	IS(cudaErrorInvalidValue, cudaIpcCloseMemHandle(data));
}

static void ipc() { both(ipc_parent, ipc_child); }

/* A handle that is no longer true, or was never: it names a process, a descriptor, an inode and a size
 * (libconsan/cuda/ipc.c). */
struct forged { char magic[8]; int pid, fd, device; unsigned flags; unsigned long long inode, bytes; };
static int other;
static void forged_parent()
{
	int *data = array(0, 1024);
	cudaIpcMemHandle_t h;
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	char ready;
	OK(cudaIpcGetMemHandle(&h, data));
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	send(0, &h, sizeof h);
	send(0, &he, sizeof he);
	receive(0, &ready, 1);
	OK(cudaFree(data));
}
static void forged_child()
{
	const int flags = cudaIpcMemLazyEnablePeerAccess;
	cudaIpcMemHandle_t h, wrong;
	cudaIpcEventHandle_t he, wrong_event;
	forged *f = (forged *)&wrong, *fe = (forged *)&wrong_event;
	struct stat is;
	cudaEvent_t e;
	void *at;
	receive(1, &h, sizeof h);
	receive(1, &he, sizeof he);
	OK(cudaSetDevice(1));
	for (int k = 0; k < 6; k++) {
		wrong = h;
		if (k == 0) f->bytes = 1 << 30; /* not in the file */
		if (k == 1) f->bytes = ~0ull;
		if (k == 2) f->fd = 0;
		if (k == 3) f->inode++;
		if (k == 4) f->pid = 1 << 30;
		if (k == 5) { /* a file that is none of consan's */
			CHECK(!ftruncate(other, 1 << 20) && !fstat(other, &is));
			f->pid = getppid();
			f->fd = other;
			f->inode = is.st_ino;
		}
		IS(cudaErrorMapBufferObjectFailed, cudaIpcOpenMemHandle(&at, wrong, flags));
	}
	wrong_event = he;
	fe->inode++;
	IS(cudaErrorMapBufferObjectFailed, cudaIpcOpenEventHandle(&e, wrong_event));
	wrong_event = he;
	memcpy(fe->magic, f->magic, 8); /* of memory */
	IS(cudaErrorInvalidValue, cudaIpcOpenEventHandle(&e, wrong_event));
	cudaGetLastError();
	OK(cudaIpcOpenMemHandle(&at, h, flags));
	OK(cudaIpcCloseMemHandle(at));
	send(1, "r", 1);
}
static void forged_handles()
{
	other = memfd_create("another", 0);
	both(forged_parent, forged_child);
}

/* A process is killed before what it has recorded is done: waits for that end. */
static void killed_child()
{
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	int *data = array(0, 1024);
	receive(1, &he, sizeof he);
	OK(cudaIpcOpenEventHandle(&e, he));
	fill<<<1, 32>>>(data, 1);
	OK(cudaEventRecord(e)); /* runs when it waits */
	send(1, "r", 1);
	raise(SIGKILL);
}
static void killed()
{
	cudaIpcEventHandle_t he;
	cudaEvent_t e;
	cudaStream_t s;
	char ready;
	int status;
	pid_t pid;
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, channel));
	pid = fork();
	if (!pid) {
		killed_child();
		exit(1);
	}
	OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
	OK(cudaIpcGetEventHandle(&he, e));
	send(0, &he, sizeof he);
	receive(0, &ready, 1);
	OK(cudaStreamCreate(&s));
	OK(cudaStreamWaitEvent(s, e, 0));
	OK(cudaStreamSynchronize(s));
	OK(cudaEventSynchronize(e));
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	OK(cudaEventSynchronize(e));
}

/* Processes that synchronize by a pipe only: racy if the parent does not wait for its kernel, or its copy,
 * before it writes to the pipe. */
enum piped_how { WAITS, DOES_NOT, BLOCKS };
enum shared_how { BY_HANDLE, BY_POOL, BY_MAPPING };
template <shared_how By> static int *share()
{
	const cudaMemAllocationHandleType fds = cudaMemHandleTypePosixFileDescriptor;
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaIpcMemHandle_t ipc;
	cudaMemPool_t pool;
	int *at, fd;
	if (By == BY_HANDLE) {
		at = array(0, 1024);
		OK(cudaIpcGetMemHandle(&ipc, at));
		send(0, &ipc, sizeof ipc);
	} else if (By == BY_POOL) {
		props.allocType = cudaMemAllocationTypePinned;
		props.handleTypes = fds;
		props.location.type = cudaMemLocationTypeDevice;
		OK(cudaMemPoolCreate(&pool, &props));
		OK(cudaMallocFromPoolAsync(&at, 4096, pool, 0));
		OK(cudaStreamSynchronize(0));
		OK(cudaMemPoolExportToShareableHandle(&fd, pool, fds, 0));
		send_fd(0, fd);
		OK(cudaMemPoolExportPointer(&data, at));
		send(0, &data, sizeof data);
	} else {
		h = create(0, 2 * page);
		at = map(h, 2 * page, 1);
		OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
		send_fd(0, fd);
		at += page / 4;
	}
	return at;
}
template <shared_how By> static int *shared_by_parent()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaIpcMemHandle_t ipc;
	cudaMemPool_t pool;
	int *at;
	if (By == BY_HANDLE) {
		receive(1, &ipc, sizeof ipc);
		OK(cudaIpcOpenMemHandle((void **)&at, ipc, cudaIpcMemLazyEnablePeerAccess));
	}
	if (By == BY_POOL) {
		OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)receive_fd(1),
			cudaMemHandleTypePosixFileDescriptor, 0));
		receive(1, &data, sizeof data);
		OK(cudaMemPoolImportPointer((void **)&at, pool, &data));
	}
	if (By == BY_MAPPING) {
		OK(cuMemImportFromShareableHandle(&h, (void *)(size_t)receive_fd(1),
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
		at = map(h, 2 * page, 1) + page / 4;
		OK(cuMemRelease(h));
	}
	return at;
}
template <piped_how How, shared_how By> static void piped_parent()
{
	int *data, host[1024] = { 0 };
	cudaStream_t s;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	OK(cudaStreamCreate(&s));
	data = share<By>();
	OK(cudaMemcpyAsync(data, host, 4096, cudaMemcpyHostToDevice, s));
	fill<<<1, 32, 0, s>>>(data, 100);
	if (How != DOES_NOT) OK(cudaStreamSynchronize(s));
	/* current drivers have copied when it returns */
	if (How == BLOCKS) OK(cudaMemcpy(data, host, 4096, cudaMemcpyHostToDevice));
	send(0, "r", 1);
	receive(0, &ready, 1);
	/* what the child did is over */
	fill<<<1, 32, 0, s>>>(data, 200);
	OK(cudaStreamSynchronize(s));
	if (By != BY_MAPPING) OK(cudaFree(data));
}
template <shared_how By> static void piped_child()
{
	cudaStream_t s;
	int *data, *result;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	data = shared_by_parent<By>();
	result = array(0, 32);
	OK(cudaStreamCreate(&s));
	receive(1, &ready, 1);
	OK(cudaMemcpyAsync(result, data, 128, cudaMemcpyDeviceToDevice, s));
	OK(cudaStreamSynchronize(s));
	send(1, "r", 1);
	if (By == BY_HANDLE) OK(cudaIpcCloseMemHandle(data));
	if (By == BY_POOL) OK(cudaFree(data));
	if (By == BY_MAPPING) OK(cuMemUnmap((CUdeviceptr)(data - page / 4), 2 * page));
}
template <piped_how How, shared_how By = BY_HANDLE> static void piped()
{
	both(piped_parent<How, By>, piped_child<By>);
}

static void shared_parent()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPoolProps props = {};
	cudaMemPool_t pool;
	int *at, *mapped, fd;
	char ready;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	h = create(0, page);
	mapped = map(h, page, 1);
	OK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	send_fd(0, fd);
	props.allocType = cudaMemAllocationTypePinned;
	props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
	props.location.type = cudaMemLocationTypeDevice;
	OK(cudaMemPoolCreate(&pool, &props));
	OK(cudaMallocFromPoolAsync(&at, 128, pool, 0));
	fill<<<1, 32>>>(at, 30);
	OK(cudaDeviceSynchronize());
	OK(cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
	send_fd(0, fd);
	OK(cudaMemPoolExportPointer(&data, at));
	send(0, &data, sizeof data);
	receive(0, &ready, 1);
	CHECK(value(mapped + 4) == 44 && value(at + 4) == 44);
}

static void shared_child()
{
	CUmemGenericAllocationHandle h;
	cudaMemPoolPtrExportData data;
	cudaMemPool_t pool;
	int *at, *mapped;
	OK(cudaSetDevice(0));
	OK(cudaFree(0));
	OK(cuMemImportFromShareableHandle(&h, (void *)(size_t)receive_fd(1),
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	mapped = map(h, page, 1);
	OK(cudaMemPoolImportFromShareableHandle(&pool, (void *)(size_t)receive_fd(1),
		cudaMemHandleTypePosixFileDescriptor, 0));
	receive(1, &data, sizeof data);
	OK(cudaMemPoolImportPointer((void **)&at, pool, &data));
	CHECK(value(at + 4) == 34);
	fill<<<1, 32>>>(mapped, 40);
	fill<<<1, 32>>>(at, 40);
	OK(cudaDeviceSynchronize());
	send(1, "r", 1);
	OK(cudaFree(at));
}

static void shared() { both(shared_parent, shared_child); }

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
