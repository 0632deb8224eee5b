/* rt_array: arrays, texture and surface objects of the runtime API. */
#include "array.h"

/* ---- arrays ---- */

/* The array that the arguments of a call describe. Returns cudaSuccess, or the error of the call. */
static cudaError_t describe(const void *to, const struct cudaChannelFormatDesc *d, struct cudaExtent e,
	unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *a)
{
	unsigned channels;

	*a = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = e.width, .Height = e.height, .Depth = e.depth,
		.Flags = flags };
	if (!to || !d)
		return cudaErrorInvalidValue;
	if (!array_format(d, &a->Format, &channels))
		return cudaErrorInvalidChannelDescriptor;
	a->NumChannels = channels;
	return cudaSuccess;
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *d,
	struct cudaExtent e, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR to;
	const cudaError_t error = describe(array, d, e, flags, &to);

	return rt(error ? (int)error : array_new((void **)array, &to));
}

cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *d, size_t width,
	size_t height, unsigned flags)
{
	return cudaMalloc3DArray(array, d, (struct cudaExtent){ width, height, 0 }, flags);
}

cudaError_t cudaFreeArray(cudaArray_t array)
{
	return rt(array ? array_free(array) : device_ready());
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const struct cudaChannelFormatDesc *d,
	struct cudaExtent e, unsigned levels, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR to;
	const cudaError_t error = describe(array, d, e, flags, &to);

	return rt(error ? (int)error : mipmapped_new((void **)array, &to, levels));
}

cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array)
{
	return rt(array ? mipmapped_free(array) : device_ready());
}

cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *level, cudaMipmappedArray_const_t array, unsigned n)
{
	return rt(mipmapped_level(array, n, (void **)level));
}

cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *d, struct cudaExtent *e, unsigned *flags,
	cudaArray_t array)
{
	const struct array *a = array_of(array);

	if (!a)
		return rt(cudaErrorInvalidResourceHandle);
	if (d)
		*d = array_channels(a->desc.Format, a->desc.NumChannels);
	if (e)
		*e = (struct cudaExtent){ a->desc.Width, a->desc.Height, a->desc.Depth };
	if (flags)
		*flags = a->desc.Flags;
	return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *d, cudaArray_const_t array)
{
	return d ? cudaArrayGetInfo(d, NULL, NULL, (cudaArray_t)array) : rt(cudaErrorInvalidValue);
}

struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
	enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){ .x = x, .y = y, .z = z, .w = w, .f = kind };
}

/* ---- copies ---- */

static cudaError_t copy(const struct copy *c, cudaStream_t stream, bool blocking)
{
	struct op op = { .kind = OP_COPY, .copy = *c };
	int error = copy_check(c);

	return rt(error ? error : stream_issue(stream, &op, blocking));
}

static cudaError_t plane(cudaArray_const_t array, size_t x, size_t y, void *memory, size_t pitch,
	size_t width, size_t rows, bool to_array, enum cudaMemcpyKind kind, cudaStream_t stream, bool blocking)
{
	struct place p;
	struct copy c;
	int error = array_place(array, x, y, 0, width, rows, 1, &p);

	if (error)
		return rt(error);
	c = to_array ? copy_plane(p.at, p.pitch, memory, pitch, width, rows, kind)
		: copy_plane(memory, pitch, p.at, p.pitch, width, rows, kind);
	return copy(&c, stream, blocking);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
	size_t width, size_t rows, enum cudaMemcpyKind kind)
{
	return plane(dst, x, y, (void *)src, pitch, width, rows, true, kind, NULL, true);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src, size_t pitch,
	size_t width, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return plane(dst, x, y, (void *)src, pitch, width, rows, true, kind, stream, false);
}

cudaError_t cudaMemcpy2DFromArray(void *dst, size_t pitch, cudaArray_const_t src, size_t x, size_t y,
	size_t width, size_t rows, enum cudaMemcpyKind kind)
{
	return plane(src, x, y, dst, pitch, width, rows, false, kind, NULL, true);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void *dst, size_t pitch, cudaArray_const_t src, size_t x,
	size_t y, size_t width, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return plane(src, x, y, dst, pitch, width, rows, false, kind, stream, false);
}

cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t dst, size_t dst_x, size_t dst_y,
	cudaArray_const_t src, size_t src_x, size_t src_y, size_t width, size_t rows,
	enum cudaMemcpyKind kind)
{
	struct place p;
	int error = array_place(src, src_x, src_y, 0, width, rows, 1, &p);

	if (error)
		return rt(error);
	return plane(dst, dst_x, dst_y, p.at, p.pitch, width, rows, true, kind, NULL, true);
}

static cudaError_t line(cudaArray_const_t array, size_t x, size_t y, void *memory, size_t bytes,
	bool to_array, enum cudaMemcpyKind kind, cudaStream_t stream, bool blocking)
{
	struct copy part[ARRAY_PARTS];
	unsigned n;
	int error = array_linear(array, x, y, memory, bytes, to_array, kind, part, &n);

	if (error)
		return rt(error);
	for (unsigned k = 0; k < n && !error; k++)
		error = copy(&part[k], stream, blocking);
	return (cudaError_t)error;
}

cudaError_t cudaMemcpyToArray(cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes,
	enum cudaMemcpyKind kind)
{
	return line(dst, x, y, (void *)src, bytes, true, kind, NULL, true);
}

cudaError_t cudaMemcpyToArrayAsync(cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes,
	enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return line(dst, x, y, (void *)src, bytes, true, kind, stream, false);
}

cudaError_t cudaMemcpyFromArray(void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes,
	enum cudaMemcpyKind kind)
{
	return line(src, x, y, dst, bytes, false, kind, NULL, true);
}

cudaError_t cudaMemcpyFromArrayAsync(void *dst, cudaArray_const_t src, size_t x, size_t y,
	size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return line(src, x, y, dst, bytes, false, kind, stream, false);
}

/* ---- texture and surface objects ---- */

/* False: a type that is not known. */
static bool resource_of(const struct cudaResourceDesc *from, CUDA_RESOURCE_DESC *to, bool *channels)
{
	unsigned n = 0;

	*channels = true;
	switch (from->resType) {
	case cudaResourceTypeArray:
		to->resType = CU_RESOURCE_TYPE_ARRAY;
		to->res.array.hArray = (CUarray)from->res.array.array;
		return true;
	case cudaResourceTypeMipmappedArray:
		to->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
		to->res.mipmap.hMipmappedArray = (CUmipmappedArray)from->res.mipmap.mipmap;
		return true;
	case cudaResourceTypeLinear:
		to->resType = CU_RESOURCE_TYPE_LINEAR;
		to->res.linear.devPtr = (uintptr_t)from->res.linear.devPtr;
		to->res.linear.sizeInBytes = from->res.linear.sizeInBytes;
		*channels = array_format(&from->res.linear.desc, &to->res.linear.format, &n);
		to->res.linear.numChannels = n;
		return true;
	case cudaResourceTypePitch2D:
		to->resType = CU_RESOURCE_TYPE_PITCH2D;
		to->res.pitch2D.devPtr = (uintptr_t)from->res.pitch2D.devPtr;
		to->res.pitch2D.width = from->res.pitch2D.width;
		to->res.pitch2D.height = from->res.pitch2D.height;
		to->res.pitch2D.pitchInBytes = from->res.pitch2D.pitchInBytes;
		*channels = array_format(&from->res.pitch2D.desc, &to->res.pitch2D.format, &n);
		to->res.pitch2D.numChannels = n;
		return true;
	}
	return false;
}

static CUDA_TEXTURE_DESC texture_of(const struct cudaTextureDesc *d)
{
	CUDA_TEXTURE_DESC to = { .filterMode = (CUfilter_mode)d->filterMode,
		.flags = (d->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0)
			| (d->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0)
			| (d->sRGB ? CU_TRSF_SRGB : 0) | (d->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0),
		.mipmapFilterMode = (CUfilter_mode)d->mipmapFilterMode, .mipmapLevelBias = d->mipmapLevelBias,
		.minMipmapLevelClamp = d->minMipmapLevelClamp, .maxMipmapLevelClamp = d->maxMipmapLevelClamp };

	for (unsigned k = 0; k < 4; k++) {
		to.borderColor[k] = d->borderColor[k];
		if (k < 3)
			to.addressMode[k] = (CUaddress_mode)d->addressMode[k];
	}
	return to;
}

_Static_assert(sizeof(struct cudaResourceViewDesc) <= sizeof(CUDA_RESOURCE_VIEW_DESC)
	&& (int)cudaResViewFormatNone == (int)CU_RES_VIEW_FORMAT_NONE
	&& (int)cudaAddressModeBorder == (int)CU_TR_ADDRESS_MODE_BORDER
	&& (int)cudaFilterModeLinear == (int)CU_TR_FILTER_MODE_LINEAR, "both APIs have the same numbers");

static cudaError_t create(uint64_t *handle, struct object *o, const struct cudaResourceDesc *r,
	const char *call)
{
	bool channels;
	int error = device_ready();

	if (error)
		return rt(error);
	if (!handle || !r || !resource_of(r, &o->resource, &channels))
		return rt(cudaErrorInvalidValue);
	if (!channels)
		return rt(cudaErrorInvalidChannelDescriptor);
	o->of_runtime = true;
	o->rt_resource = *r;
	return rt(object_new(o, call, handle));
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const struct cudaResourceDesc *r,
	const struct cudaTextureDesc *d, const struct cudaResourceViewDesc *view)
{
	struct object o = { 0 };
	uint64_t handle;
	cudaError_t error;

	if (!texture || !d)
		return rt(cudaErrorInvalidValue);
	o.texture = texture_of(d);
	o.rt_texture = *d;
	o.has_view = view;
	if (view) {
		o.rt_view = *view;
		o.view = (CUDA_RESOURCE_VIEW_DESC){ .format = (CUresourceViewFormat)view->format,
			.width = view->width, .height = view->height, .depth = view->depth,
			.firstMipmapLevel = view->firstMipmapLevel, .lastMipmapLevel = view->lastMipmapLevel,
			.firstLayer = view->firstLayer, .lastLayer = view->lastLayer };
	}
	error = create(&handle, &o, r, "cudaCreateTextureObject");
	if (!error)
		*texture = handle;
	return error;
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture)
{
	return rt(object_free(texture, false));
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const struct cudaResourceDesc *r)
{
	struct object o = { .surface = true };
	uint64_t handle;
	cudaError_t error;

	if (!surface)
		return rt(cudaErrorInvalidValue);
	error = create(&handle, &o, r, "cudaCreateSurfaceObject");
	if (!error)
		*surface = handle;
	return error;
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface)
{
	return rt(object_free(surface, true));
}

/* The object, if it was created by this API. */
static const struct object *created_here(uint64_t handle, bool surface, const void *to, int *error)
{
	const struct object *o = object_of(handle, surface);

	*error = o && to ? 0 : cudaErrorInvalidValue;
	if (*error || o->of_runtime)
		return o;
	remark_refused("a query of a texture or surface object", "it was created by the other API");
	*error = cudaErrorNotSupported;
	return NULL;
}

#define GET(call, type, surface, field) \
	cudaError_t call(type *to, unsigned long long handle) \
	{ \
		int error; \
		const struct object *o = created_here(handle, surface, to, &error); \
		if (!error) \
			*to = o->field; \
		return rt(error); \
	}
GET(cudaGetTextureObjectResourceDesc, struct cudaResourceDesc, false, rt_resource)
GET(cudaGetTextureObjectTextureDesc, struct cudaTextureDesc, false, rt_texture)
GET(cudaGetTextureObjectResourceViewDesc, struct cudaResourceViewDesc, false, rt_view)
GET(cudaGetSurfaceObjectResourceDesc, struct cudaResourceDesc, true, rt_resource)
