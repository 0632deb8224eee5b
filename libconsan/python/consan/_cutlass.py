"""CuTe DSL: its compiler is linked into it. What it keeps of a kernel, as CUTE_DSL_KEEP asks for, is read
here: also where the program chooses the folder, as its own query of the occupancy does."""
import ctypes

from cutlass.base_dsl.jit_executor import JitFunctionArtifacts

_remember = ctypes.CDLL(None).consan_remember_ptx
_remember.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
_remember.restype = None
_read = JitFunctionArtifacts.__post_init__


def _post_init(self):
    _read(self)
    if isinstance(self.CUBIN, bytes) and isinstance(self.PTX, str):
        ptx = self.PTX.encode()
        _remember(self.CUBIN, len(self.CUBIN), ptx, len(ptx))


JitFunctionArtifacts.__post_init__ = _post_init
