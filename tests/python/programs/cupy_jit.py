# The same by cupyx.jit, which makes CUDA C++ of Python.
# needs: cupy
# expect: CS102
# kernel: shift
import sys

import cupy
from cupyx import jit


@jit.rawkernel()
def shift(x, y, wait):
    tile = jit.shared_memory(cupy.float32, 256)
    i = jit.threadIdx.x
    tile[i] = x[i]
    if wait:
        jit.syncthreads()
    y[i] = tile[(i + 33) % 256]


x = cupy.arange(256, dtype=cupy.float32)
y = cupy.empty_like(x)
shift((1,), (256,), (x, y, cupy.bool_(sys.argv[1] == "clean")))
