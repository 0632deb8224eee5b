"""The functions of consan.h, by ctypes: of libconsan.so, or of the process under consan-run."""
import ctypes
import os
import shutil
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_bool, c_char_p, c_double, c_int, c_int64,
                    c_size_t, c_uint, c_uint32, c_uint64, c_void_p)

NAME = "libconsan.so.0"


class Err(Structure):
    _fields_ = [("code", c_int), ("line", c_int), ("col", c_int), ("text", ctypes.c_char * 480)]


class Place(Structure):
    pass


Place._fields_ = [
    ("file", c_char_p), ("line", c_uint32), ("column", c_uint32), ("function", c_char_p),
    ("inlined_at", POINTER(Place)), ("module", c_char_p), ("ptx_line", c_uint32), ("ptx", c_char_p)]


class Side(Structure):
    _fields_ = [
        ("what", c_char_p), ("place", POINTER(Place)), ("block", c_uint32 * 3),
        ("cluster_rank", c_uint), ("warp", c_uint), ("lane", c_int), ("thread", c_uint32 * 3),
        ("addr", c_uint64), ("bytes", c_uint32), ("owner", c_uint), ("variable", c_char_p)]


class Finding(Structure):
    _fields_ = [
        ("rule", c_char_p), ("severity", c_int), ("title", c_char_p), ("why", c_char_p),
        ("fix", c_char_p), ("kernel", c_char_p), ("launch", c_uint32), ("nsides", c_uint),
        ("side", POINTER(Side) * 2), ("edge", c_char_p), ("hint", c_char_p), ("seen", c_uint64),
        ("clusters", c_uint32), ("seed", c_uint64), ("schedule", c_char_p), ("reads", c_char_p)]


class Coverage(Structure):
    _fields_ = [
        ("kernel", c_char_p), ("launches", c_uint64), ("checked", c_uint64), ("skipped", c_uint64),
        ("clusters", c_uint64), ("ctas", c_uint64), ("events", c_uint64), ("dropped", c_uint64),
        ("sites", c_uint64), ("sites_executed", c_uint64), ("unchecked", c_char_p)]


class KernelInfo(Structure):
    _fields_ = [
        ("name", c_char_p), ("nparams", c_size_t), ("param_bytes", c_uint32),
        ("shared_static", c_uint32), ("local_bytes", c_uint32), ("const_bytes", c_uint32),
        ("nregs", c_uint32), ("max_threads", c_uint32), ("sm", c_uint32),
        ("reqcluster", c_uint32 * 3), ("unsupported", c_bool)]


class Launch(Structure):
    _fields_ = [
        ("kernel", c_void_p), ("grid", c_uint32 * 3), ("block", c_uint32 * 3),
        ("cluster", c_uint32 * 3), ("shared_dynamic", c_uint32), ("params", c_void_p),
        ("cooperative", c_bool), ("args", POINTER(c_void_p)), ("preferred", c_uint32 * 3),
        ("programmatic", c_bool), ("queue", c_uint64)]


# name: result, arguments
_PROTOTYPES = {
    "consan_version": (c_char_p,),
    "consan_open": (c_void_p, c_char_p, POINTER(Err)),
    "consan_close": (None, c_void_p),
    "consan_findings": (c_size_t, c_void_p),
    "consan_finding": (POINTER(Finding), c_void_p, c_size_t),
    "consan_describe": (c_int, POINTER(Finding), c_char_p, c_size_t),
    "consan_kernels": (c_size_t, c_void_p),
    "consan_coverage": (POINTER(Coverage), c_void_p, c_size_t),
    "consan_write_report": (c_bool, c_void_p, c_char_p, POINTER(Err)),
    "consan_load_image": (c_void_p, c_void_p, c_char_p, c_char_p, c_size_t, c_uint, POINTER(Err)),
    "consan_load_file": (c_void_p, c_void_p, c_char_p, c_uint, POINTER(Err)),
    "consan_unload": (None, c_void_p),
    "consan_kernel": (c_void_p, c_void_p, c_char_p, POINTER(Err)),
    "consan_kernel_name": (c_char_p, c_void_p, c_size_t),
    "consan_kernel_info_sized": (None, c_void_p, POINTER(KernelInfo), c_size_t),
    "consan_kernel_param": (c_bool, c_void_p, c_size_t, POINTER(c_uint32), POINTER(c_uint32)),
    "consan_launch_sized": (c_int, c_void_p, POINTER(Launch), c_size_t, POINTER(Err)),
    "consan_mem_register": (None, c_void_p, c_void_p, c_uint64),
    "consan_mem_unregister": (c_bool, c_void_p, c_void_p),
}


def _bind(functions, find):
    for name, (result, *arguments) in _PROTOTYPES.items():
        address = find(name)
        if address:
            functions[name[len("consan_"):]] = CFUNCTYPE(result, *arguments)(address)


class Library:
    """Functions without their prefix: library.findings(session)."""

    def __init__(self, find):
        _bind(self.__dict__, find)


def find_run():
    """The path of consan-run; None: not found."""
    here = os.path.dirname(os.path.abspath(__file__))
    for place in (os.environ.get("CONSAN_RUN"), os.path.join(here, "..", "..", "consan-run"),
                  os.path.join(here, "..", "..", "..", "..", "bin", "consan-run")):
        if place and os.access(os.path.normpath(place), os.X_OK):
            return os.path.normpath(place)
    return shutil.which("consan-run")


def _places():
    """Where libconsan.so may be: beside this package, as built or installed, or beside consan-run."""
    if "CONSAN_LIBRARY" in os.environ:
        yield os.environ["CONSAN_LIBRARY"]
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "..", "..", NAME)
    yield os.path.join(here, "..", "..", "..", NAME)
    run = find_run()
    if run:
        folder = os.path.dirname(os.path.realpath(run))
        yield os.path.join(folder, NAME)
        yield os.path.join(folder, "..", "lib", NAME)


_own = None
_watched = None


def own():
    """libconsan.so. OSError if it cannot be found."""
    global _own
    if not _own:
        path = next((p for p in map(os.path.normpath, _places()) if os.path.exists(p)), NAME)
        loaded = ctypes.CDLL(path)
        _own = Library(lambda name: ctypes.cast(getattr(loaded, name), c_void_p).value)
    return _own


def _on_gpu():
    import consan_setup  # on the path under consan-run

    return consan_setup.on_gpu()


def _process():
    """What has the functions of consan in a process under consan-run; None: there is none."""
    injected = os.environ.get("CUDA_INJECTION64_PATH")
    if not _on_gpu() or not injected:
        return ctypes.CDLL(None)
    try:  # the driver loads it and opens the session
        ctypes.CDLL("libcuda.so.1").cuInit(0)
        return ctypes.CDLL(injected)
    except (AttributeError, OSError):
        return None


def watched():
    """consan in a process under consan-run, and its session; (None, None) if there is none."""
    global _watched
    if "CONSAN_RESULTS" not in os.environ:
        return None, None
    if _watched is None:
        process = _process()
        try:
            function, session = process.consan_run_function, process.consan_run_session
        except AttributeError:
            return None, None
        function.restype = c_void_p
        function.argtypes = [c_char_p]
        session.restype = c_void_p
        session.argtypes = []
        _watched = Library(lambda name: function(name.encode())), session
    library, session = _watched
    return library, session()


def recover():
    """Ends the error state of the emulated GPU after a fault; memory keeps its contents."""
    if watched()[0] and not _on_gpu():
        ctypes.CDLL(None).consan_run_recover()
