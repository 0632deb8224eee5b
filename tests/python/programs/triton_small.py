# A block of fewer elements than threads, changed in place: warps 2 and 3 hold copies. If they load what
# warps 0 and 1 have stored, and their part of the sum is taken, the sum is wrong.
# needs: cupy triton
# expect: CS102 @store
# kernel: total
import sys

import cupy
import triton
import triton.language as tl


class Array:
    """Triton takes anything with data_ptr() and dtype."""

    def __init__(self, data):
        self.data, self.dtype = data, "fp32"

    def data_ptr(self):
        return self.data.data.ptr


@triton.jit
def total(x_ptr, out_ptr, BARRIER: tl.constexpr):
    i = tl.arange(0, 64)
    x = tl.load(x_ptr + i)
    if BARRIER:
        tl.debug_barrier()
    tl.store(x_ptr + i, x + 1)  # @store
    tl.store(out_ptr, tl.sum(x))


x, out = cupy.arange(64, dtype="f4"), cupy.zeros(1, dtype="f4")
total[(1,)](Array(x), Array(out), BARRIER=sys.argv[1] == "clean")
if sys.argv[1] == "clean":
    assert float(out[0]) == 2016 and (x.get() == range(1, 65)).all()
