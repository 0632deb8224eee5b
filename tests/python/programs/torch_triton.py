# Triton on tensors of PyTorch; ATen runs on the CPU.
# needs: torch triton
# expect: CS102 CS101 @store
# kernel: store_kernel
import sys

import torch
import triton
import triton.language as tl


@triton.jit
def store_kernel(x_ptr, out_ptr, shift, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * shift + tl.arange(0, BLOCK), tl.load(x_ptr + at))  # @store


x = torch.rand(512, device="cuda")
out = torch.zeros_like(x)
store_kernel[(2,)](x, out, 128 if sys.argv[1] == "racy" else 256, BLOCK=256)
if sys.argv[1] == "clean":
    assert torch.equal(x, out)
