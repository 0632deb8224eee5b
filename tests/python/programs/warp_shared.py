# Warp: a block reads shared memory that other threads write.
# needs: warp
# expect: CS102
# kernel: shift
import sys

import numpy
import warp as wp

wp.init()
source = """
    __shared__ float tile[256];
    tile[threadIdx.x] = x.data[threadIdx.x];
    if (wait)
        __syncthreads();
    y.data[threadIdx.x] = tile[(threadIdx.x + 33) % 256];
"""


@wp.func_native(source)
def exchange(x: wp.array(dtype=float), y: wp.array(dtype=float), wait: int):
    ...


@wp.kernel
def shift(x: wp.array(dtype=float), y: wp.array(dtype=float), wait: int):
    exchange(x, y, wait)


x = wp.array(numpy.arange(256, dtype="f4"), device="cuda")
y = wp.zeros(256, dtype=float, device="cuda")
wp.launch(shift, dim=256, inputs=[x, y, int(sys.argv[1] == "clean")], device="cuda")
if sys.argv[1] == "clean":
    assert (y.numpy() == (numpy.arange(256) + 33) % 256).all()
