"""Warp: its compilers are linked into it and make machine code, which consan cannot check. It makes PTX
for the GPU of the process instead, with the lines of the Python source, and loads it as it is."""
import os
import shutil

import warp
from warp._src import build

import consan_setup

warp.config.lineinfo = True
if warp.config.cuda_output is None:
    warp.config.cuda_output = "ptx"

_init = warp.init
_load_cuda = build.load_cuda


def init():
    """PTX has the features of the architecture that it is made for: by default that of an old GPU."""
    _init()
    if warp.config.ptx_target_arch is None and warp.get_cuda_device_count():
        warp.config.ptx_target_arch = max(d.arch for d in warp.get_cuda_devices())


def load_cuda(input_path, device):
    """PTX of a toolkit that is newer than the driver would be assembled by the compiler in Warp; a file
    that is not named .ptx goes to the driver. The emulated one takes PTX of any version."""
    if input_path.endswith(".ptx") and not consan_setup.on_gpu():
        text = input_path[:-len("ptx")] + "text"
        if not os.path.exists(text) or os.path.getmtime(text) < os.path.getmtime(input_path):
            shutil.copyfile(input_path, text)
        input_path = text
    return _load_cuda(input_path, device)


warp.init = init
build.load_cuda = load_cuda
