# A block reads shared memory that other threads write.
# needs: cupy
# expect: CS102
# kernel: shift
import sys

import cupy

source = r"""
extern "C" __global__ void shift(const float *x, float *y, bool wait)
{
	__shared__ float tile[256];

	tile[threadIdx.x] = x[threadIdx.x];
	if (wait)
		__syncthreads();
	y[threadIdx.x] = tile[(threadIdx.x + 33) % 256];
}
"""
shift = cupy.RawKernel(source, "shift", options=("-lineinfo",))
x = cupy.arange(256, dtype=cupy.float32)
y = cupy.empty_like(x)
shift((1,), (256,), (x, y, sys.argv[1] == "clean"))
if sys.argv[1] == "clean":
    assert (y == cupy.asarray([(i + 33) % 256 for i in range(256)])).all()
