"""CuPy: its kernels are compiled from files that are kept, and on the emulated GPU its memory pool,
which would hide accesses out of bounds, is not used."""
import cupy
from cupy.cuda import compiler

import consan_setup
from consan import _sources


class _Program(compiler._NVRTCProgram):
    def __init__(self, src, name="default_program", *args, **kwargs):
        if isinstance(src, str) and isinstance(name, str) and name.endswith(".cu"):
            name = _sources.keep(src, name)
        super().__init__(src, name, *args, **kwargs)


compiler._NVRTCProgram = _Program
if not consan_setup.on_gpu():
    cupy.cuda.set_allocator(None)
