# needs: jax jax_cuda13_plugin absl
# expect: CS104 @wait
# kernel: add_mosaic_gpu
"""JAX: a Pallas kernel by Mosaic GPU, with TMA copies."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas import mosaic_gpu as plgpu

RACY = sys.argv[1:] == ["racy"]
SHAPE = (128, 64)


def add(x_ref, o_ref, tile, barrier):
    plgpu.copy_gmem_to_smem(x_ref, tile, barrier)
    if not RACY:
        plgpu.barrier_wait(barrier)
    tile[...] = tile[...] + 1.0  # @wait
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(tile, o_ref)
    plgpu.wait_smem_to_gmem(0)


kernel = plgpu.kernel(add, out_type=jax.ShapeDtypeStruct(SHAPE, jnp.float32),
                      scratch_types=[plgpu.SMEM(SHAPE, jnp.float32), plgpu.Barrier()])
x = np.arange(SHAPE[0] * SHAPE[1], dtype=np.float32).reshape(SHAPE)
o = np.asarray(kernel(jnp.asarray(x)))
assert RACY or (o == x + 1).all()
