/* drv_tensormap: the encoding of tensor maps. */
#include "internal.h"

static CUresult encode(const struct consan_tensormap_args *a, CUtensorMap *map)
{
	struct consan_err e = { 0 };
	int error = map ? device_ready() : cudaErrorInvalidValue;

	if (error)
		return drv(error);
	if (consan_tensormap(a, map, &e))
		return CUDA_SUCCESS;
	remark(REMARK_NOTE, "cuTensorMapEncode%s returned CUDA_ERROR_INVALID_VALUE: %s",
		a->wide ? "Im2colWide" : a->im2col ? "Im2col" : "Tiled", e.text);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box,
	const cuuint32_t *elem_stride, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob)
{
	struct consan_tensormap_args a = { .type = type, .rank = rank, .address = (uintptr_t)address,
		.dim = dim, .stride = stride, .box = box, .elem_stride = elem_stride,
		.interleave = interleave, .swizzle = swizzle, .l2 = l2, .oob = oob };

	return encode(&a, map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *stride, const int *lower,
	const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elem_stride,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
	CUtensorMapFloatOOBfill oob)
{
	struct consan_tensormap_args a = { .im2col = true, .type = type, .rank = rank,
		.address = (uintptr_t)address, .dim = dim, .stride = stride, .lower = lower,
		.upper = upper, .channels = channels, .pixels = pixels, .elem_stride = elem_stride,
		.interleave = interleave, .swizzle = swizzle, .l2 = l2, .oob = oob };

	return encode(&a, map);
}

CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *stride, int lower, int upper,
	cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elem_stride,
	CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob)
{
	struct consan_tensormap_args a = { .im2col = true, .wide = 1u + mode, .type = type, .rank = rank,
		.address = (uintptr_t)address, .dim = dim, .stride = stride, .lower = &lower,
		.upper = &upper, .channels = channels, .pixels = pixels, .elem_stride = elem_stride,
		.interleave = interleave, .swizzle = swizzle, .l2 = l2, .oob = oob };

	return encode(&a, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct consan_err e = { 0 };

	if (!map || !consan_tensormap_address(map, (uintptr_t)address, &e))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
