/* Part of devices.cu: memory that is mapped, and multicast objects. */

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
