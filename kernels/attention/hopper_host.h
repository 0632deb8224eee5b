/* hopper_host: tensor maps of the attention programs for Hopper. */
#pragma once

#include "../common/tensor_map.h"
#include "attention.h"

/* A map of [heads][rows][d] halves, in boxes of `high` rows of one head by 64 columns. TMA
 * reads rows beyond a head's last as zero and does not write them. */
static CUtensorMap heads_map(const __half *at, long heads, long rows, long d, uint32_t high)
{
	const cuuint64_t size[] = {(cuuint64_t)d, (cuuint64_t)rows, (cuuint64_t)heads};
	const cuuint32_t box[] = {64, high, 1};

	return tensor_map_packed(at, 3, size, box);
}
