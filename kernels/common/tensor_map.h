/* tensor_map: descriptors of matrices for TMA, made on the host. */
#pragma once

#include "harness.h"

#include <cudaTypedefs.h>

/* A map of a row-major matrix of halves, read or written in boxes of `high`
 * rows by 64 columns, swizzled by 128 bytes. */
static CUtensorMap tensor_map(const __half *at, long rows, long cols, uint32_t high)
{
	static PFN_cuTensorMapEncodeTiled_v12000 encode;
	const cuuint64_t size[] = {(cuuint64_t)cols, (cuuint64_t)rows};
	const cuuint64_t stride[] = {(cuuint64_t)cols * 2};
	const cuuint32_t box[] = {64, high}, step[] = {1, 1};
	CUtensorMap map;

	if (!encode) {
		cudaDriverEntryPointQueryResult found;

		CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void **)&encode,
			12000, cudaEnableDefault, &found));
	}
	if (!encode || encode(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)at, size, stride,
		box, step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) !=
		CUDA_SUCCESS) {
		fprintf(stderr, "cuTensorMapEncodeTiled failed\n");
		exit(3);
	}
	return map;
}
