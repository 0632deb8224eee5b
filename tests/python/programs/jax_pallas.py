# needs: jax jax_cuda13_plugin
# expect: CS101
# kernel: copy
"""JAX: XLA's own kernels, a product by cuBLAS or Triton, and a Pallas kernel by Triton. XLA's Triton writes
no lines."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plt

RACY = sys.argv[1:] == ["racy"]
assert jax.devices()[0].platform == "gpu"


def copy(x_ref, o_ref):
    i = pl.program_id(0) * 128
    o_ref[pl.ds(0 if RACY else i, 128)] = x_ref[pl.ds(i, 128)]


x = jnp.arange(512, dtype=jnp.float32)
whole = pl.BlockSpec(memory_space=pl.ANY)
o = pl.pallas_call(copy, grid=(4,), out_shape=jax.ShapeDtypeStruct((512,), jnp.float32),
                   in_specs=[whole], out_specs=whole, compiler_params=plt.CompilerParams())(x)
assert RACY or (np.asarray(o) == np.arange(512)).all()

a = np.arange(32 * 32, dtype=np.float32).reshape(32, 32) / 32
b = jnp.asarray(a)
assert np.allclose(b @ b.T, a @ a.T, rtol=1e-2)
assert np.allclose(jax.nn.softmax(b).sum(-1), 1, rtol=1e-5)
assert np.allclose(jax.grad(lambda y: (y ** 2).sum())(b), 2 * a)
