# cuda.core: NVRTC makes machine code of a C++ source.
# needs: cuda.core
# expect: CS102
# kernel: shift
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

source = r"""
extern "C" __global__ void shift(float *x, int wait)
{
	__shared__ float tile[256];

	tile[threadIdx.x] = x[threadIdx.x];
	if (wait)
		__syncthreads();
	x[threadIdx.x] = tile[(threadIdx.x + 33) % 256];
}
"""
device = Device()
device.set_current()
stream = device.create_stream()
program = Program(source, "c++", ProgramOptions(arch="sm_" + "".join(map(str, device.compute_capability)),
                                                 lineinfo=True))
kernel = program.compile("cubin").get_kernel("shift")
x = device.allocate(1024, stream=stream)
launch(stream, LaunchConfig(grid=1, block=256), kernel, x, np.int32(sys.argv[1] == "clean"))
stream.sync()
