# A block reads shared memory that other threads write.
# needs: numba_cuda
# expect: CS102 @write @read
# kernel: shift
import sys

import numpy as np
from numba import cuda, float32


@cuda.jit(lineinfo=True)
def shift(x, y, wait):
    tile = cuda.shared.array(256, float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]  # @write
    if wait:
        cuda.syncthreads()
    y[i] = tile[(i + 33) % 256]  # @read


x = np.arange(256, dtype=np.float32)
y = np.zeros_like(x)
shift[1, 256](x, y, sys.argv[1] == "clean")
if sys.argv[1] == "clean":
    assert y[0] == 33 and y[255] == 32
