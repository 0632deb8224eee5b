"""Reports show the Python frames of a launch: consan asks for them before each one."""
import atexit
import ctypes
import os
import sys

_FRAMES = 32
# A launch is where the program calls the framework, not where the framework calls the driver.
_LAUNCHERS = tuple(os.sep + name + os.sep for name in (
    "triton/runtime", "triton/backends", "torch/_inductor", "cupy", "cupyx", "numba",
    "numba_cuda", "cuda/core", "warp/_src", "nvidia_cutlass_dsl", "jax/_src"))
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_paths = {}
_skipped = {}


def _absolute(file):
    found = _paths.get(file)
    if found is None:
        found = _paths[file] = os.path.abspath(file) if os.path.exists(file) else file
    return found


def _in_launcher(file):
    found = _skipped.get(file)
    if found is None:
        found = _skipped[file] = file.startswith((_HERE, "<frozen")) \
            or any(name in file for name in _LAUNCHERS)
    return found


def _launches(frame):
    """Is it a frame of a framework, or of code that one made, such as Inductor's launchers?"""
    file = frame.f_code.co_filename
    if file.startswith("<") and frame.f_back is not None:
        file = frame.f_back.f_code.co_filename
    return _in_launcher(file)


_ENDS = str.maketrans({"\t": "\\t", "\n": "\\n", "\0": "\\0"})


def _field(text):
    """The bytes of a file's name, which need be no UTF-8; without what ends a field or a line."""
    text = text.translate(_ENDS)
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace")


def _line(frame):
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name)
    return b"%b\t%d\t%b\n" % (_field(_absolute(code.co_filename)), frame.f_lineno or 0, _field(name))


def _walk(frame, n, launchers):
    """At most n bytes of lines, one for each frame; with those of frameworks, or without."""
    lines = []
    while frame is not None and len(lines) < _FRAMES:
        if launchers or not _launches(frame):
            line = _line(frame)
            n -= len(line)
            if n < 0:
                break
            lines.append(line)
        frame = frame.f_back
    return b"".join(lines)


def _frames(to, n):
    """Writes the frames of this thread as lines "file\\tline\\tfunction\\n", innermost first."""
    frame = sys._getframe().f_back
    text = _walk(frame, n, False) or _walk(frame, n, True)
    ctypes.memmove(to, text, len(text))
    return len(text)


_CALL = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)
_call = _CALL(_frames)


def _install():
    try:
        on_stack = ctypes.CDLL(None).consan_run_on_stack
    except (AttributeError, OSError):
        return
    on_stack.argtypes = [_CALL]
    on_stack.restype = None
    on_stack(_call)
    # the interpreter cannot be called when it has ended
    atexit.register(on_stack, _CALL())


_install()
