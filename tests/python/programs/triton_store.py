# Programs of one Triton kernel store to the same elements, or each to its own.
# needs: triton cupy
# expect: CS102 CS101 @store
# kernel: store_kernel
import sys

import cupy
import triton
import triton.language as tl


class Pointer:
    """A CuPy array as an argument of a Triton kernel."""

    def __init__(self, array):
        self.array = array
        self.dtype = "fp32"

    def data_ptr(self):
        return self.array.data.ptr


@triton.jit
def store_kernel(x_ptr, out_ptr, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x_ptr + at)
    tl.store(out_ptr + tl.program_id(0) * shift + tl.arange(0, BLOCK), value)  # @store


def launch(shift):
    x = cupy.arange(512, dtype=cupy.float32)
    out = cupy.zeros(512, dtype=cupy.float32)
    store_kernel[(2,)](Pointer(x), Pointer(out), shift, BLOCK=256)
    return x, out


x, out = launch(128 if sys.argv[1] == "racy" else 256)
if sys.argv[1] == "clean":
    assert (x == out).all()
