"""A program that uses Gluon writes accesses to shared memory itself: consan then takes fewer findings
for Triton's own (libconsan/check/profile.def)."""
import os

from triton.experimental.gluon._runtime import GluonJITFunction

_init = GluonJITFunction.__init__


def _made(self, fn, *args, **kwargs):
    # Triton imports Gluon, too, and has functions of its own in it
    if not (getattr(fn, "__module__", None) or "").startswith("triton."):
        os.environ["CONSAN_GLUON"] = "1"
    _init(self, fn, *args, **kwargs)


GluonJITFunction.__init__ = _made
