"""JAX takes a GPU only if it finds a file of the driver; the emulated GPU has none. XLA compiles with a
Triton of its own, which writes no lines (libconsan/check/profile.def)."""
import ctypes

import jax._src.hardware_utils as hardware

import consan_setup

ctypes.c_bool.in_dll(ctypes.CDLL(None), "consan_run_xla").value = True
if not consan_setup.on_gpu():
    hardware.has_visible_nvidia_gpu = lambda: True
