# A CUDA kernel that torch.utils.cpp_extension compiles.
# needs: torch nvcc
# expect: CS102
# kernel: shift
import sys

import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void shift(const float *x, float *y, bool wait)
{
	__shared__ float tile[256];

	tile[threadIdx.x] = x[threadIdx.x];
	if (wait)
		__syncthreads();
	y[threadIdx.x] = tile[(threadIdx.x + 33) % 256];
}

torch::Tensor run(torch::Tensor x, bool wait)
{
	auto y = torch::empty_like(x);

	shift<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), wait);
	return y;
}
"""
module = load_inline("consan_shift", cpp_sources="torch::Tensor run(torch::Tensor x, bool wait);",
                     cuda_sources=source, functions=["run"], extra_cuda_cflags=["-lineinfo"])
x = torch.rand(256, device="cuda")
y = module.run(x, sys.argv[1] == "clean")
if sys.argv[1] == "clean":
    assert torch.equal(y.cpu(), x.cpu().roll(-33))
