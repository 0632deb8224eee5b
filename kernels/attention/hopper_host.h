/* hopper_host: tensor maps of the attention programs for Hopper and Blackwell. */
#pragma once

#include "../common/tensor_map.h"
#include "attention.h"

/* A map of [heads][rows][d] halves, in boxes of `high` rows of one head by `wide` columns, 64 or
 * 32. TMA reads rows beyond a head's last as zero and does not write them. */
static CUtensorMap heads_map(const __half *at, long heads, long rows, long d, uint32_t high,
	uint32_t wide = 64)
{
	const cuuint64_t size[] = {(cuuint64_t)d, (cuuint64_t)rows, (cuuint64_t)heads};
	const cuuint32_t box[] = {wide, high, 1};
	tensor_type type = tensor_halves;

	if (wide == 32)
		type.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
	return tensor_map_packed(at, 3, size, box, type);
}
