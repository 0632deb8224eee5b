/* drv_array: arrays, texture and surface objects of the driver API. */
#include "array.h"

/* ---- arrays ---- */

CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	int error = drv_ready();

	return drv(error ? error : array_new((void **)array, d));
}

CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *d)
{
	CUDA_ARRAY3D_DESCRIPTOR all = { 0 };

	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	all.Width = d->Width;
	all.Height = d->Height;
	all.Format = d->Format;
	all.NumChannels = d->NumChannels;
	return cuArray3DCreate_v2(array, &all);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *d, CUarray array)
{
	const struct array *a = array_of(array);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	*d = a->desc;
	return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *d, CUarray array)
{
	const struct array *a = array_of(array);

	if (!a)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!d)
		return CUDA_ERROR_INVALID_VALUE;
	*d = (CUDA_ARRAY_DESCRIPTOR){ .Width = a->desc.Width, .Height = a->desc.Height,
		.Format = a->desc.Format, .NumChannels = a->desc.NumChannels };
	return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
	int error = drv_ready();

	return drv(error ? error : array_free(array));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	int error = drv_ready();

	return drv(error ? error : mipmapped_new((void **)array, d, levels));
}

CUresult cuMipmappedArrayGetLevel(CUarray *level, CUmipmappedArray array, unsigned n)
{
	int error = drv_ready();

	return drv(error ? error : mipmapped_level(array, n, (void **)level));
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	int error = drv_ready();

	return drv(error ? error : mipmapped_free(array));
}

/* ---- copies of an array's bytes one after the other ---- */

static CUresult line(CUarray array, size_t offset, void *memory, size_t bytes, bool to_array,
	enum cudaMemcpyKind kind, CUstream stream, bool blocking)
{
	struct copy part[ARRAY_PARTS];
	unsigned n;
	int error = drv_ready();

	if (!error)
		error = array_linear(array, offset, 0, memory, bytes, to_array, kind, part, &n);
	for (unsigned k = 0; !error && k < n; k++) {
		struct op op = { .kind = OP_COPY, .copy = part[k] };

		error = copy_check(&op.copy);
		if (!error)
			error = stream_issue(stream, &op, blocking);
	}
	return drv(error);
}

static void *host(CUdeviceptr at)
{
	return (void *)(uintptr_t)at;
}

CUresult cuMemcpyHtoA_v2(CUarray dst, size_t offset, const void *src, size_t n)
{
	return line(dst, offset, (void *)src, n, true, cudaMemcpyHostToDevice, NULL, true);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray dst, size_t offset, const void *src, size_t n, CUstream stream)
{
	return line(dst, offset, (void *)src, n, true, cudaMemcpyHostToDevice, stream, false);
}

CUresult cuMemcpyAtoH_v2(void *dst, CUarray src, size_t offset, size_t n)
{
	return line(src, offset, dst, n, false, cudaMemcpyDeviceToHost, NULL, true);
}

CUresult cuMemcpyAtoHAsync_v2(void *dst, CUarray src, size_t offset, size_t n, CUstream stream)
{
	return line(src, offset, dst, n, false, cudaMemcpyDeviceToHost, stream, false);
}

CUresult cuMemcpyDtoA_v2(CUarray dst, size_t offset, CUdeviceptr src, size_t n)
{
	return line(dst, offset, host(src), n, true, cudaMemcpyDeviceToDevice, NULL, true);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr dst, CUarray src, size_t offset, size_t n)
{
	return line(src, offset, host(dst), n, false, cudaMemcpyDeviceToDevice, NULL, true);
}

CUresult cuMemcpyAtoA_v2(CUarray dst, size_t to, CUarray src, size_t from, size_t n)
{
	struct place p;
	int error = array_place(src, from, 0, 0, n, 1, 1, &p);

	return error ? drv(error) : line(dst, to, p.at, n, true, cudaMemcpyDeviceToDevice, NULL, true);
}

/* ---- texture and surface objects ---- */

static CUresult create(unsigned long long *handle, const struct object *o, const char *call)
{
	uint64_t made;
	int error = drv_ready();

	if (!error)
		error = handle ? object_new(o, call, &made) : cudaErrorInvalidValue;
	if (!error)
		*handle = made;
	return drv(error);
}

CUresult cuTexObjectCreate(CUtexObject *texture, const CUDA_RESOURCE_DESC *r,
	const CUDA_TEXTURE_DESC *d, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct object o = { .has_view = view };

	if (!r || !d)
		return CUDA_ERROR_INVALID_VALUE;
	o.resource = *r;
	o.texture = *d;
	if (view)
		o.view = *view;
	return create(texture, &o, "cuTexObjectCreate");
}

CUresult cuTexObjectDestroy(CUtexObject texture)
{
	return drv(object_free(texture, false));
}

CUresult cuSurfObjectCreate(CUsurfObject *surface, const CUDA_RESOURCE_DESC *r)
{
	struct object o = { .surface = true };

	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	o.resource = *r;
	return create(surface, &o, "cuSurfObjectCreate");
}

CUresult cuSurfObjectDestroy(CUsurfObject surface)
{
	return drv(object_free(surface, true));
}

/* Descriptions in the driver's terms exist of objects of either API. */
#define GET(call, type, surface, field) \
	CUresult call(type *to, unsigned long long handle) \
	{ \
		const struct object *o = object_of(handle, surface); \
		if (!o || !to) \
			return CUDA_ERROR_INVALID_VALUE; \
		*to = o->field; \
		return CUDA_SUCCESS; \
	}
GET(cuTexObjectGetResourceDesc, CUDA_RESOURCE_DESC, false, resource)
GET(cuTexObjectGetTextureDesc, CUDA_TEXTURE_DESC, false, texture)
GET(cuTexObjectGetResourceViewDesc, CUDA_RESOURCE_VIEW_DESC, false, view)
GET(cuSurfObjectGetResourceDesc, CUDA_RESOURCE_DESC, true, resource)
