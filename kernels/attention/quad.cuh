/* quad: reductions over the four lanes that hold one row of an accumulator, of mma.sync or
 * wgmma. */
#pragma once

#include "../common/ptx.cuh"

DEVICE float quad_max(float x, uint32_t lanes = ~0u)
{
	x = fmaxf(x, __shfl_xor_sync(lanes, x, 1));
	return fmaxf(x, __shfl_xor_sync(lanes, x, 2));
}

DEVICE float quad_sum(float x)
{
	x += __shfl_xor_sync(~0u, x, 1);
	return x + __shfl_xor_sync(~0u, x, 2);
}
