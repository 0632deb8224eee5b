/* rt_memory: memory of the runtime API. */
#include "array.h"

#include <string.h>

/* ---- allocation ---- */

cudaError_t cudaMalloc(void **at, size_t bytes)
{
	return rt(mem_alloc(at, bytes, CONSAN_MEM_DEVICE));
}

cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream)
{
	struct stream *s = stream_of(stream);

	return rt(s ? mem_alloc_async(at, bytes, pool_now(s->device), s)
		: cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMallocManaged(void **at, size_t bytes, unsigned flags)
{
	if (!bytes || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
		return rt(cudaErrorInvalidValue);
	return rt(mem_alloc(at, bytes, CONSAN_MEM_MANAGED));
}

cudaError_t cudaMallocPitch(void **at, size_t *pitch, size_t width, size_t rows)
{
	return rt(mem_alloc_pitch(at, pitch, width, rows));
}

cudaError_t cudaMalloc3D(struct cudaPitchedPtr *to, struct cudaExtent e)
{
	int error;

	if (!to)
		return rt(cudaErrorInvalidValue);
	*to = (struct cudaPitchedPtr){ .xsize = e.width, .ysize = e.height };
	error = mem_alloc_pitch(&to->ptr, &to->pitch, e.width, e.height * e.depth);
	return rt(error);
}

cudaError_t cudaFree(void *at)
{
	return rt(mem_free_from(at, __builtin_return_address(0)));
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream)
{
	return rt(stream_of(stream) ? mem_free_async(at, stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaMallocHost(void **at, size_t bytes)
{
	return rt(mem_alloc_host(at, bytes, 0));
}

cudaError_t cudaHostAlloc(void **at, size_t bytes, unsigned flags)
{
	return rt(mem_alloc_host(at, bytes, flags));
}

cudaError_t cudaFreeHost(void *at)
{
	return rt(mem_free_host(at));
}

cudaError_t cudaHostRegister(void *at, size_t bytes, unsigned flags)
{
	return rt(mem_register(at, bytes, flags));
}

cudaError_t cudaHostUnregister(void *at)
{
	return rt(mem_unregister(at));
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
	int error = device_ready();

	if (error)
		return rt(error);
	if (!device || flags || mem_check_host(host))
		return rt(cudaErrorInvalidValue);
	*device = host;
	return cudaSuccess;
}

cudaError_t cudaHostGetFlags(unsigned *flags, void *at)
{
	int error = device_ready();

	if (error)
		return rt(error);
	return rt(flags && mem_host_flags(at, flags) ? 0 : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	int error = device_ready();

	if (error)
		return rt(error);
	if (!free_bytes || !total)
		return rt(cudaErrorInvalidValue);
	mem_info(free_bytes, total);
	return cudaSuccess;
}

static enum cudaMemoryType type_of(enum consan_mem kind)
{
	switch (kind) {
	case CONSAN_MEM_DEVICE:
		return cudaMemoryTypeDevice;
	case CONSAN_MEM_HOST:
		return cudaMemoryTypeHost;
	case CONSAN_MEM_MANAGED:
		return cudaMemoryTypeManaged;
	}
	return cudaMemoryTypeUnregistered;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *a, const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;
	int error = device_ready();

	if (error)
		return rt(error);
	if (!a)
		return rt(cudaErrorInvalidValue);
	memset(a, 0, sizeof *a);
	if (!consan_mem_find(device_session(), at, &base, &bytes, &kind)) {
		a->type = cudaMemoryTypeUnregistered;
		a->device = -2; /* cudaInvalidDeviceId */
		a->hostPointer = (void *)at;
		return cudaSuccess;
	}
	a->type = type_of(kind);
	a->device = consan_mem_device(at);
	a->devicePointer = (void *)at;
	if (kind != CONSAN_MEM_DEVICE)
		a->hostPointer = (void *)at;
	return cudaSuccess;
}

/* ---- copies ---- */

static cudaError_t copy_any(const struct copy *c, cudaStream_t stream, bool blocking)
{
	struct op op = { .kind = OP_COPY, .copy = *c };
	int error = copy_check(c);

	return rt(error ? error : stream_issue(stream, &op, blocking));
}

static cudaError_t copy(const struct copy *c, cudaStream_t stream)
{
	return copy_any(c, stream, false);
}

static cudaError_t copy_now(const struct copy *c)
{
	return copy_any(c, NULL, true);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind,
	cudaStream_t stream)
{
	struct copy c = copy_line(dst, src, n, kind);

	return copy(&c, stream);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
	struct copy c = copy_line(dst, src, n, kind);

	return copy_now(&c);
}

static int check_devices(int to, int from)
{
	int error = device_check(to);

	return error ? error : device_check(from);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
	size_t n, cudaStream_t stream)
{
	int error = check_devices(dst_device, src_device);

	if (error)
		return rt(error);
	return cudaMemcpyAsync(dst, src, n, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpyPeer(void *dst, int dst_device, const void *src, int src_device, size_t n)
{
	int error = check_devices(dst_device, src_device);

	return error ? rt(error) : cudaMemcpy(dst, src, n, cudaMemcpyDeviceToDevice);
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	struct copy c = copy_plane(dst, dst_pitch, src, src_pitch, width, rows, kind);

	return copy(&c, stream);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t rows, enum cudaMemcpyKind kind)
{
	struct copy c = copy_plane(dst, dst_pitch, src, src_pitch, width, rows, kind);

	return copy_now(&c);
}

/* One side of a copy. element: bytes of an element, which widths are counted in; with an array; else
 * 1. The position in memory is in bytes in any case. */
static int side(cudaArray_t array, const struct cudaPitchedPtr *p, struct cudaPos at,
	struct cudaExtent e, size_t element, struct place *to)
{
	if (array && p->ptr)
		return cudaErrorInvalidValue;
	if (array)
		return array_place(array, at.x * element, at.y, at.z, e.width * element, e.height, e.depth, to);
	*to = (struct place){ (char *)((uintptr_t)p->ptr + at.z * p->pitch * p->ysize + at.y * p->pitch + at.x),
		p->pitch, p->pitch * p->ysize };
	return 0;
}

int copy_3d(const struct cudaMemcpy3DParms *p, struct copy *c)
{
	const struct array *to, *from;
	struct place dst, src;
	size_t element;
	int error;

	if (!p)
		return cudaErrorInvalidValue;
	to = p->dstArray ? array_of(p->dstArray) : NULL;
	from = p->srcArray ? array_of(p->srcArray) : NULL;
	if ((p->dstArray && !to) || (p->srcArray && !from))
		return cudaErrorInvalidResourceHandle;
	element = to ? array_element(to) : from ? array_element(from) : 1;
	if (from && array_element(from) != element)
		return cudaErrorInvalidValue;
	error = side(p->dstArray, &p->dstPtr, p->dstPos, p->extent, element, &dst);
	if (!error)
		error = side(p->srcArray, &p->srcPtr, p->srcPos, p->extent, element, &src);
	if (error)
		return error;
	*c = (struct copy){
		.dst = dst.at, .src = src.at, .dst_pitch = dst.pitch, .src_pitch = src.pitch,
		.dst_slice = dst.slice, .src_slice = src.slice, .width = p->extent.width * element,
		.height = p->extent.height, .depth = p->extent.depth, .kind = p->kind,
	};
	return 0;
}

cudaError_t cudaMemcpy3DAsync(const struct cudaMemcpy3DParms *p, cudaStream_t stream)
{
	struct copy c;
	int error = copy_3d(p, &c);

	return error ? rt(error) : copy(&c, stream);
}

cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *p)
{
	struct copy c;
	int error = copy_3d(p, &c);

	return error ? rt(error) : copy_now(&c);
}

static int peer_3d(const struct cudaMemcpy3DPeerParms *p, struct cudaMemcpy3DParms *one)
{
	int error = p ? check_devices(p->dstDevice, p->srcDevice) : cudaErrorInvalidValue;

	if (error)
		return error;
	*one = (struct cudaMemcpy3DParms){ .srcArray = p->srcArray, .srcPos = p->srcPos,
		.srcPtr = p->srcPtr, .dstArray = p->dstArray, .dstPos = p->dstPos,
		.dstPtr = p->dstPtr, .extent = p->extent, .kind = cudaMemcpyDeviceToDevice };
	return 0;
}

cudaError_t cudaMemcpy3DPeerAsync(const struct cudaMemcpy3DPeerParms *p, cudaStream_t stream)
{
	struct cudaMemcpy3DParms one;
	int error = peer_3d(p, &one);

	return error ? rt(error) : cudaMemcpy3DAsync(&one, stream);
}

cudaError_t cudaMemcpy3DPeer(const struct cudaMemcpy3DPeerParms *p)
{
	struct cudaMemcpy3DParms one;
	int error = peer_3d(p, &one);

	return error ? rt(error) : cudaMemcpy3D(&one);
}

/* ---- fills ---- */

static cudaError_t fill(const struct fill *f, cudaStream_t stream, bool blocking)
{
	struct op op = { .kind = OP_FILL, .fill = *f };
	int error = fill_check(f);

	return rt(error ? error : stream_issue(stream, &op, blocking));
}

static struct fill fill_line(void *at, int value, size_t n)
{
	return (struct fill){ .dst = at, .value = (uint32_t)value, .unit = 1, .width = n,
		.height = 1, .depth = 1 };
}

static struct fill fill_plane(void *at, size_t pitch, int value, size_t width, size_t rows)
{
	return (struct fill){ .dst = at, .pitch = pitch, .value = (uint32_t)value, .unit = 1,
		.width = width, .height = rows, .depth = 1 };
}

static struct fill fill_box(const struct cudaPitchedPtr *to, int value, struct cudaExtent e)
{
	return (struct fill){ .dst = to->ptr, .pitch = to->pitch, .slice = to->pitch * to->ysize,
		.value = (uint32_t)value, .unit = 1, .width = e.width, .height = e.height,
		.depth = e.depth };
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t n, cudaStream_t stream)
{
	struct fill f = fill_line(at, value, n);

	return fill(&f, stream, false);
}

cudaError_t cudaMemset(void *at, int value, size_t n)
{
	struct fill f = fill_line(at, value, n);

	return fill(&f, NULL, true);
}

cudaError_t cudaMemset2DAsync(void *at, size_t pitch, int value, size_t width, size_t rows,
	cudaStream_t stream)
{
	struct fill f = fill_plane(at, pitch, value, width, rows);

	return fill(&f, stream, false);
}

cudaError_t cudaMemset2D(void *at, size_t pitch, int value, size_t width, size_t rows)
{
	struct fill f = fill_plane(at, pitch, value, width, rows);

	return fill(&f, NULL, true);
}

cudaError_t cudaMemset3DAsync(struct cudaPitchedPtr to, int value, struct cudaExtent e,
	cudaStream_t stream)
{
	struct fill f = fill_box(&to, value, e);

	return fill(&f, stream, false);
}

cudaError_t cudaMemset3D(struct cudaPitchedPtr to, int value, struct cudaExtent e)
{
	struct fill f = fill_box(&to, value, e);

	return fill(&f, NULL, true);
}

/* ---- hints: no effect, because managed memory does not move ---- */

cudaError_t cudaMemPrefetchAsync(const void *at, size_t n, struct cudaMemLocation where,
	unsigned flags, cudaStream_t stream)
{
	int error = device_ready();

	return rt(error ? error : mem_check(at, n));
}

cudaError_t cudaMemAdvise(const void *at, size_t n, enum cudaMemoryAdvise advice,
	struct cudaMemLocation where)
{
	int error = device_ready();

	return rt(error ? error : mem_check(at, n));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *at, size_t n, unsigned flags)
{
	int error = device_ready();

	if (!error && !stream_of(stream))
		error = cudaErrorInvalidResourceHandle;
	return rt(error ? error : mem_attach(at, n, flags));
}

/* ---- pools: allocation is immediate, so a pool only has attributes ---- */

cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *properties)
{
	if (!pool || !properties || properties->location.type != cudaMemLocationTypeDevice)
		return rt(cudaErrorInvalidValue);
	return rt(pool_new((struct pool **)pool, properties->location.id));
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
	return rt(pool_free(pool));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	int error = pool ? device_check(device) : cudaErrorInvalidValue;

	if (!error)
		*pool = (cudaMemPool_t)pool_default(device);
	return rt(error);
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
	int error = pool ? device_check(device) : cudaErrorInvalidValue;

	if (!error)
		*pool = (cudaMemPool_t)pool_now(device);
	return rt(error);
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
	int error = pool_of(pool) ? device_check(device) : cudaErrorInvalidValue;

	if (!error)
		pool_use(device, pool_of(pool));
	return rt(error);
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
	return rt(pool_of(pool) ? 0 : cudaErrorInvalidValue);
}

/* cudaMemPoolAttr has the numbers of CUmemPool_attribute. */
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value)
{
	return rt(pool_attribute(pool, (int)a, NULL, value));
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value)
{
	return rt(pool_attribute(pool, (int)a, value, NULL));
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t n)
{
	return rt(pool_set_access(pool, list, n));
}

cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
	struct cudaMemLocation *where)
{
	int now, error = flags ? pool_get_access(pool, where, &now) : cudaErrorInvalidValue;

	if (!error)
		*flags = (enum cudaMemAccessFlags)now;
	return rt(error);
}

cudaError_t cudaMallocFromPoolAsync(void **at, size_t bytes, cudaMemPool_t pool,
	cudaStream_t stream)
{
	struct stream *s = stream_of(stream);

	return rt(s ? mem_alloc_async(at, bytes, pool_of(pool), s) : cudaErrorInvalidResourceHandle);
}
