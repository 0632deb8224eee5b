/* drv_memory: memory of the driver API. A CUdeviceptr is a host address. */
#include "array.h"

#include <string.h>

static void *host(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

/* ---- allocation ---- */

static CUresult ready(int error)
{
	return drv(error ? error : drv_ready());
}

/* For calls whose only need of a current context is a default stream ("CUDA_ERROR_INVALID_CONTEXT: default
 * stream specified with no current context"). */
static int stream_ready(CUstream stream)
{
	const bool is_default = !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
	int error = is_default ? drv_ready() : drv_initialised();

	return error ? error : stream_of(stream) ? device_ready() : cudaErrorInvalidResourceHandle;
}

static CUresult alloc(CUdeviceptr *at, size_t bytes, enum consan_mem kind)
{
	int error = bytes && at ? drv_ready() : cudaErrorInvalidValue;

	return drv(error ? error : mem_alloc((void **)at, bytes, kind));
}

CUresult cuMemAlloc_v2(CUdeviceptr *at, size_t bytes)
{
	return alloc(at, bytes, CONSAN_MEM_DEVICE);
}

CUresult cuMemAllocAsync(CUdeviceptr *at, size_t bytes, CUstream stream)
{
	int error = stream_ready(stream);

	if (!error)
		error = bytes && at ? mem_alloc_async((void **)at, bytes,
			pool_now(stream_of(stream)->device), stream_of(stream)) : cudaErrorInvalidValue;
	return drv(error);
}

CUresult cuMemAllocManaged(CUdeviceptr *at, size_t bytes, unsigned flags)
{
	return flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST
		? alloc(at, bytes, CONSAN_MEM_MANAGED) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *at, size_t *pitch, size_t width, size_t rows,
	unsigned element)
{
	int error = element == 4 || element == 8 || element == 16 ? drv_ready() : cudaErrorInvalidValue;

	return drv(error ? error : mem_alloc_pitch((void **)at, pitch, width, rows));
}

CUresult cuMemFree_v2(CUdeviceptr at)
{
	int error = drv_ready();

	return drv(error ? error : mem_free(host(at)));
}

CUresult cuMemFreeAsync(CUdeviceptr at, CUstream stream)
{
	int error = stream_ready(stream);

	return drv(error ? error : mem_free_async(host(at), stream));
}

CUresult cuMemAllocHost_v2(void **at, size_t bytes)
{
	int error = drv_ready();

	return drv(error ? error : mem_alloc_host(at, bytes, 0));
}

CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	int error = drv_ready();

	return drv(error ? error : mem_alloc_host(at, bytes, flags));
}

CUresult cuMemFreeHost(void *at)
{
	int error = drv_ready();

	return drv(error ? error : mem_free_host(at));
}

CUresult cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags)
{
	int error = drv_ready();

	return drv(error ? error : mem_register(at, bytes, flags));
}

CUresult cuMemHostUnregister(void *at)
{
	int error = drv_ready();

	return drv(error ? error : mem_unregister(at));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *at, unsigned flags)
{
	int error = device && !flags ? drv_ready() : cudaErrorInvalidValue;

	if (!error)
		error = mem_check_host(at);
	if (!error)
		*device = (uintptr_t)at;
	return drv(error);
}

CUresult cuMemHostGetFlags(unsigned *flags, void *at)
{
	int error = flags ? drv_ready() : cudaErrorInvalidValue;

	return drv(error ? error : mem_host_flags(at, flags) ? 0 : cudaErrorInvalidValue);
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	int error = free_bytes && total ? drv_ready() : cudaErrorInvalidValue;

	if (!error)
		mem_info(free_bytes, total);
	return drv(error);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr at)
{
	enum consan_mem kind;
	uint64_t n;
	void *b;
	int error = drv_ready();

	if (error)
		return drv(error);
	if (!consan_mem_find(device_session(), host(at), &b, &n, &kind))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = (uintptr_t)b;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

/* ---- pointer attributes ---- */

static int attribute(void *to, CUpointer_attribute a, CUdeviceptr at)
{
	enum consan_mem kind;
	uint64_t n;
	void *base;

	if (!consan_mem_find(device_session(), host(at), &base, &n, &kind))
		return cudaErrorInvalidValue;
	switch (a) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)to = (CUcontext)cuda_context_primary(consan_mem_device(host(at)));
		return 0;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)to = kind == CONSAN_MEM_HOST ? CU_MEMORYTYPE_HOST
			: kind == CONSAN_MEM_DEVICE ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (a == CU_POINTER_ATTRIBUTE_HOST_POINTER && kind == CONSAN_MEM_DEVICE)
			return cudaErrorInvalidValue;
		*(CUdeviceptr *)to = at;
		return 0;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)to = kind == CONSAN_MEM_MANAGED;
		return 0;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)to = consan_mem_device(host(at));
		return 0;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)to = (uintptr_t)base;
		return 0;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)to = n;
		return 0;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)to = 1;
		return 0;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)to = (uintptr_t)base;
		return 0;
	default:
		return (unsigned)a - 1 < CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE ? cudaErrorNotSupported
			: cudaErrorInvalidValue;
	}
}

/* What an attribute that does not apply is. */
static void clear_attribute(void *to, CUpointer_attribute a)
{
	const bool wide = a == CU_POINTER_ATTRIBUTE_CONTEXT || a == CU_POINTER_ATTRIBUTE_DEVICE_POINTER
		|| a == CU_POINTER_ATTRIBUTE_HOST_POINTER || a == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
		|| a == CU_POINTER_ATTRIBUTE_RANGE_SIZE || a == CU_POINTER_ATTRIBUTE_BUFFER_ID;

	memset(to, 0, wide ? sizeof(CUdeviceptr) : sizeof(unsigned));
}

CUresult cuPointerGetAttribute(void *to, CUpointer_attribute a, CUdeviceptr at)
{
	int error = to ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = device_ready();
	return drv(error ? error : attribute(to, a, at));
}

/* Unlike cuPointerGetAttribute(): an attribute that does not apply is 0, not an error. */
CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute *a, void **to, CUdeviceptr at)
{
	int error = a && to ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = device_ready();
	for (unsigned i = 0; i < n && !error; i++)
		if (attribute(to[i], a[i], at))
			clear_attribute(to[i], a[i]);
	return drv(error);
}

/* Only CU_POINTER_ATTRIBUTE_SYNC_MEMOPS can be set; all copies are synchronous. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute a, CUdeviceptr at)
{
	return a == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && value ? ready(mem_check(host(at), 1))
		: CUDA_ERROR_INVALID_VALUE;
}

/* ---- copies ---- */

static CUresult copy(const struct copy *c, CUstream stream, bool blocking)
{
	struct op op = { .kind = OP_COPY, .copy = *c };
	int error = drv_ready();

	if (!error)
		error = copy_check(c);
	return drv(error ? error : stream_issue(stream, &op, blocking));
}

static CUresult line(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind, CUstream stream)
{
	struct copy c = copy_line(dst, src, n, kind);

	return copy(&c, stream, false);
}

static CUresult line_now(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	struct copy c = copy_line(dst, src, n, kind);

	return copy(&c, NULL, true);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
	return line(host(dst), host(src), n, cudaMemcpyDefault, stream);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return line_now(host(dst), host(src), n, cudaMemcpyDefault);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream)
{
	return line(host(dst), src, n, cudaMemcpyHostToDevice, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n)
{
	return line_now(host(dst), src, n, cudaMemcpyHostToDevice);
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream)
{
	return line(dst, host(src), n, cudaMemcpyDeviceToHost, stream);
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n)
{
	return line_now(dst, host(src), n, cudaMemcpyDeviceToHost);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream)
{
	return line(host(dst), host(src), n, cudaMemcpyDeviceToDevice, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n)
{
	return line_now(host(dst), host(src), n, cudaMemcpyDeviceToDevice);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
	size_t n, CUstream stream)
{
	return cuMemcpyDtoDAsync_v2(dst, src, n, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t n)
{
	return cuMemcpyDtoD_v2(dst, src, n);
}

/* Source or destination of a 2D or 3D copy. */
static int end(CUmemorytype type, const void *at_host, CUdeviceptr at_device, CUarray array,
	const size_t at[3], size_t pitch, size_t rows, const CUDA_MEMCPY3D *p, struct place *to)
{
	const uintptr_t base = type == CU_MEMORYTYPE_HOST ? (uintptr_t)at_host : (uintptr_t)at_device;

	if (type == CU_MEMORYTYPE_ARRAY)
		return array_place(array, at[0], at[1], at[2], p->WidthInBytes, p->Height, p->Depth, to);
	/* as a number: the program may pass NULL and any offset */
	*to = (struct place){ (char *)(base + (at[2] * rows + at[1]) * pitch + at[0]), pitch, pitch * rows };
	return 0;
}

static enum cudaMemcpyKind kind_of(CUmemorytype dst, CUmemorytype src)
{
	if (dst == CU_MEMORYTYPE_UNIFIED || src == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (dst == CU_MEMORYTYPE_HOST)
		return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
	return src == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

int copy_3d_driver(const CUDA_MEMCPY3D *p, struct copy *c)
{
	const size_t to[3] = { p->dstXInBytes, p->dstY, p->dstZ };
	const size_t from[3] = { p->srcXInBytes, p->srcY, p->srcZ };
	struct place dst, src;
	int error = end(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, to, p->dstPitch,
		p->dstHeight, p, &dst);

	if (!error)
		error = end(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, from, p->srcPitch,
			p->srcHeight, p, &src);
	if (error)
		return error;
	*c = (struct copy){ .dst = dst.at, .src = src.at, .dst_pitch = dst.pitch, .src_pitch = src.pitch,
		.dst_slice = dst.slice, .src_slice = src.slice, .width = p->WidthInBytes,
		.height = p->Height, .depth = p->Depth,
		.kind = kind_of(p->dstMemoryType, p->srcMemoryType) };
	return 0;
}

static CUresult copy_box_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool blocking)
{
	struct copy c;
	int error = p ? copy_3d_driver(p, &c) : cudaErrorInvalidValue;

	return error ? drv(error) : copy(&c, stream, blocking);
}

static CUresult copy_box_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool blocking)
{
	CUDA_MEMCPY3D box;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	box = (CUDA_MEMCPY3D){ .srcXInBytes = p->srcXInBytes, .srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost, .srcDevice = p->srcDevice,
		.srcArray = p->srcArray, .srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost, .dstDevice = p->dstDevice, .dstArray = p->dstArray,
		.dstPitch = p->dstPitch, .WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = 1 };
	return copy_box_3d(&box, stream, blocking);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
	return copy_box_2d(p, stream, false);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
	return copy_box_2d(p, NULL, true);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
	return copy_box_2d(p, NULL, true);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
	return copy_box_3d(p, stream, false);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
	return copy_box_3d(p, NULL, true);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	CUDA_MEMCPY3D one;

	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	one = (CUDA_MEMCPY3D){ .srcXInBytes = p->srcXInBytes, .srcY = p->srcY, .srcZ = p->srcZ,
		.srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost, .srcDevice = p->srcDevice,
		.srcArray = p->srcArray, .srcPitch = p->srcPitch, .srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .dstZ = p->dstZ,
		.dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost, .dstDevice = p->dstDevice,
		.dstArray = p->dstArray, .dstPitch = p->dstPitch, .dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = p->Depth };
	return cuMemcpy3DAsync_v2(&one, stream);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *p)
{
	return cuMemcpy3DPeerAsync(p, NULL);
}

/* ---- fills: D8, D16, D32; linear and 2D; with and without a stream ---- */

static CUresult fill(CUdeviceptr at, size_t pitch, uint32_t value, unsigned unit, size_t width,
	size_t rows, CUstream stream, bool blocking)
{
	struct op op = { .kind = OP_FILL, .fill = { .dst = host(at), .pitch = pitch,
		.value = value, .unit = unit, .width = width, .height = rows, .depth = 1 } };
	int error = drv_ready();

	if (!error)
		error = fill_check(&op.fill);
	return drv(error ? error : stream_issue(stream, &op, blocking));
}

#define FILLS(bits, type) \
	CUresult cuMemsetD##bits##Async(CUdeviceptr at, type value, size_t n, CUstream stream) \
	{ \
		return fill(at, 0, value, bits / 8, n, 1, stream, false); \
	} \
	CUresult cuMemsetD##bits##_v2(CUdeviceptr at, type value, size_t n) \
	{ \
		return fill(at, 0, value, bits / 8, n, 1, NULL, true); \
	} \
	CUresult cuMemsetD2D##bits##Async(CUdeviceptr at, size_t pitch, type value, size_t width, \
		size_t rows, CUstream stream) \
	{ \
		return fill(at, pitch, value, bits / 8, width, rows, stream, false); \
	} \
	CUresult cuMemsetD2D##bits##_v2(CUdeviceptr at, size_t pitch, type value, size_t width, \
		size_t rows) \
	{ \
		return fill(at, pitch, value, bits / 8, width, rows, NULL, true); \
	}
FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned)

/* ---- hints and pools ---- */

/* Memory of the device, too, as the runtime's calls do; a device that is -1 is the host. */
static CUresult hint(CUdeviceptr at, size_t n, CUdevice device, CUstream stream)
{
	int error = drv_ready();

	if (!error)
		error = !stream_of(stream) ? cudaErrorInvalidResourceHandle
			: device == CU_DEVICE_CPU ? 0 : device_check(device);
	return drv(error ? error : n ? mem_check(host(at), n) : cudaErrorInvalidValue);
}

static CUdevice device_at(CUmemLocation where)
{
	return where.type == CU_MEM_LOCATION_TYPE_DEVICE ? where.id : CU_DEVICE_CPU;
}

CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t n, CUdevice device, CUstream stream)
{
	return hint(at, n, device, stream);
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr at, size_t n, CUmemLocation where, unsigned flags,
	CUstream stream)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : hint(at, n, device_at(where), stream);
}

/* Of some advice the device is ignored. */
static bool names_device(CUmem_advise advice)
{
	return advice != CU_MEM_ADVISE_SET_READ_MOSTLY && advice != CU_MEM_ADVISE_UNSET_READ_MOSTLY
		&& advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
}

CUresult cuMemAdvise(CUdeviceptr at, size_t n, CUmem_advise advice, CUdevice device)
{
	if ((unsigned)advice - 1 >= CU_MEM_ADVISE_UNSET_ACCESSED_BY)
		return CUDA_ERROR_INVALID_VALUE;
	return hint(at, n, names_device(advice) ? device : CU_DEVICE_CPU, NULL);
}

CUresult cuMemAdvise_v2(CUdeviceptr at, size_t n, CUmem_advise advice, CUmemLocation where)
{
	return cuMemAdvise(at, n, advice, device_at(where));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	if (!pool || !properties || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (drv_initialised())
		return drv(drv_initialised());
	return drv(pool_new((struct pool **)pool, properties->location.id));
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	return drv(pool_free(pool));
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	return ready(pool_of(pool) ? 0 : cudaErrorInvalidValue);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void *value)
{
	return drv(pool_attribute(pool, (int)a, NULL, value));
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute a, void *value)
{
	return drv(pool_attribute(pool, (int)a, value, NULL));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *at, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	int error = stream_ready(stream);

	if (!error)
		error = at && bytes && pool_of(pool) ? mem_alloc_async((void **)at, bytes, pool_of(pool),
			stream_of(stream)) : cudaErrorInvalidValue;
	return drv(error);
}

_Static_assert(sizeof(CUmemAccessDesc) == sizeof(struct cudaMemAccessDesc)
	&& (int)CU_MEM_ACCESS_FLAGS_PROT_READWRITE == (int)cudaMemAccessFlagsProtReadWrite,
	"both APIs describe access alike");

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *list, size_t n)
{
	return drv(pool_set_access(pool, (const struct cudaMemAccessDesc *)list, n));
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool pool, CUmemLocation *where)
{
	int now, error = flags ? pool_get_access(pool, (const struct cudaMemLocation *)where, &now)
		: cudaErrorInvalidValue;

	if (!error)
		*flags = (CUmemAccess_flags)now;
	return drv(error);
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
	CUflushGPUDirectRDMAWritesScope scope)
{
	return ready(0);
}
