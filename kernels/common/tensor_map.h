/* tensor_map: the host makes descriptors of tensors of halves for TMA. */
#pragma once

#include "harness.h"

#include <cudaTypedefs.h>

/* A map of a packed tensor of `rank` dimensions, innermost first, which TMA reads or writes
 * in boxes whose rows have 64 halves, with the 128-byte swizzle */
static CUtensorMap tensor_map_packed(const __half *at, uint32_t rank, const cuuint64_t *size,
	const cuuint32_t *box)
{
	static PFN_cuTensorMapEncodeTiled_v12000 encode;
	cuuint64_t stride[4] = {size[0] * 2};
	const cuuint32_t step[] = {1, 1, 1, 1, 1};
	CUtensorMap map;

	for (uint32_t i = 1; i + 1 < rank; i++)
		stride[i] = stride[i - 1] * size[i];
	if (!encode) {
		cudaDriverEntryPointQueryResult found;

		CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode,
			12000, cudaEnableDefault, &found));
	}
	if (!encode || encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, (void *)at, size, stride,
		box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) !=
		CUDA_SUCCESS) {
		fprintf(stderr, "cuTensorMapEncodeTiled failed\n");
		exit(3);
	}
	return map;
}

/* A map of a row-major matrix, in boxes of `high` rows by 64 columns */
static CUtensorMap tensor_map(const __half *at, long rows, long cols, uint32_t high)
{
	const cuuint64_t size[] = {(cuuint64_t)cols, (cuuint64_t)rows};
	const cuuint32_t box[] = {64, high};

	return tensor_map_packed(at, 2, size, box);
}
