"""A program that uses Gluon writes accesses to shared memory itself: consan then takes fewer findings
for Triton's own (libconsan/check/profile.def)."""
import ctypes

from triton.experimental.gluon._runtime import GluonJITFunction

_init = GluonJITFunction.__init__
_uses_gluon = ctypes.c_bool.in_dll(ctypes.CDLL(None), "consan_run_gluon")


def _made(self, fn, *args, **kwargs):
    # Triton imports Gluon, too, and has functions of its own in it
    if not (getattr(fn, "__module__", None) or "").startswith("triton."):
        _uses_gluon.value = True
    _init(self, fn, *args, **kwargs)


GluonJITFunction.__init__ = _made
