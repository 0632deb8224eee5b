/* tensor_map: the host makes descriptors of tensors for TMA. */
#pragma once

#include "harness.h"

#include <cudaTypedefs.h>

struct tensor_type {
	CUtensorMapDataType type;
	uint32_t bytes; /* of an element */
	CUtensorMapSwizzle swizzle;
};
static const tensor_type tensor_halves = {CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2,
	CU_TENSOR_MAP_SWIZZLE_128B};

/* A map of a packed tensor of `rank` dimensions, innermost first, which TMA reads or writes in
 * boxes. With the 128-byte swizzle their rows have 128 bytes. */
static CUtensorMap tensor_map_packed(const void *at, uint32_t rank, const cuuint64_t *size,
	const cuuint32_t *box, const tensor_type &t = tensor_halves)
{
	static PFN_cuTensorMapEncodeTiled_v12000 encode;
	cuuint64_t stride[4] = {size[0] * t.bytes};
	const cuuint32_t step[] = {1, 1, 1, 1, 1};
	CUtensorMap map;

	for (uint32_t i = 1; i + 1 < rank; i++)
		stride[i] = stride[i - 1] * size[i];
	if (!encode) {
		cudaDriverEntryPointQueryResult found;

		CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode,
			12000, cudaEnableDefault, &found));
	}
	if (!encode || encode(&map, t.type, rank, (void *)at, size, stride,
		box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, t.swizzle,
		CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) !=
		CUDA_SUCCESS) {
		fprintf(stderr, "cuTensorMapEncodeTiled failed\n");
		exit(3);
	}
	return map;
}

/* A map of a row-major matrix, in boxes of `high` rows by 128 bytes */
static CUtensorMap tensor_map(const void *at, long rows, long cols, uint32_t high,
	const tensor_type &t = tensor_halves)
{
	const cuuint64_t size[] = {(cuuint64_t)cols, (cuuint64_t)rows};
	const cuuint32_t box[] = {128 / t.bytes, high};

	return tensor_map_packed(at, 2, size, box, t);
}
