# Expressions, reductions and indexing of CuPy are kernels that it generates.
# needs: cupy
# kernel: cupy_sum
import sys

import cupy

x = cupy.arange(1000, dtype=cupy.float32)
assert float((x * 2 + 1).sum()) == 1000.0 * 1000.0
assert float(x[x > 500].max()) == 999.0
assert int(cupy.argmax(cupy.sin(x / 100))) == 157
