"""Sessions, findings and kernels as Python objects. See consan.session()."""
import array
import ctypes
import os
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Optional

from consan import _library as _c

_SEVERITY = ("note", "warning", "error")
_STATUS = ("ok", "fault", "hang", "unchecked", "bad launch", "stopped")


class Error(Exception):
    """consan refused its input: options, PTX, a launch. line and column are those of the input."""

    def __init__(self, text, code=0, line=0, column=0):
        super().__init__(text)
        self.code, self.line, self.column = code, line, column


def _raise(err):
    raise Error(err.text.decode(errors="replace"), err.code, err.line, err.col)


def _text(s):
    return s.decode(errors="replace") if s else ""


@dataclass(frozen=True)
class Place:
    """A location in the program. Unknown strings are "", unknown numbers 0."""
    file: str
    line: int
    column: int
    function: str
    inlined_at: Optional["Place"]
    module: str
    ptx_line: int
    ptx: str

    def __str__(self):
        return f"{self.file}:{self.line}" if self.file else f"{self.module}:{self.ptx_line}"


@dataclass(frozen=True)
class Side:
    """One operation of a finding: an access, a wait, an arrive."""
    what: str
    place: Place
    block: tuple
    cluster_rank: int
    warp: int
    lane: int
    thread: tuple
    addr: int
    bytes: int
    owner: int
    variable: str


@dataclass(frozen=True)
class Finding:
    """A bug. sides: the later operation, then the earlier one. severity: "note", "warning", "error"."""
    rule: str
    severity: str
    title: str
    why: str
    fix: str
    kernel: str
    launch: int
    sides: tuple
    edge: str
    hint: str
    seen: int
    clusters: int
    seed: int
    schedule: str
    reads: str
    text: str = field(repr=False, default="")

    def __str__(self):
        return self.text


@dataclass(frozen=True)
class Coverage:
    """What was checked of a kernel. unchecked: why some of it was not, or ""."""
    kernel: str
    launches: int
    checked: int
    skipped: int
    unchecked: str


def _place(p):
    return Place(_text(p.file), p.line, p.column, _text(p.function),
                 _place(p.inlined_at.contents) if p.inlined_at else None,
                 _text(p.module), p.ptx_line, _text(p.ptx))


def _side(s):
    return Side(_text(s.what), _place(s.place.contents), tuple(s.block), s.cluster_rank, s.warp,
                s.lane, tuple(s.thread), s.addr, s.bytes, s.owner, _text(s.variable))


def _describe(library, found):
    n = library.describe(found, None, 0) + 1
    text = ctypes.create_string_buffer(n)
    library.describe(found, text, n)
    return _text(text.value)


def _finding(library, found, seen_before):
    f = found.contents
    return Finding(
        _text(f.rule), _SEVERITY[f.severity], _text(f.title), _text(f.why), _text(f.fix),
        _text(f.kernel), f.launch, tuple(_side(f.side[i].contents) for i in range(f.nsides)),
        _text(f.edge), _text(f.hint), f.seen - seen_before, f.clusters, f.seed, _text(f.schedule),
        _text(f.reads), _describe(library, found))


def _identity(f):
    """Equal for the occurrences of one bug (finding/types.h)."""
    places = (f.side[i].contents.place.contents for i in range(f.nsides))
    return (f.rule, f.kernel, tuple((p.module, p.ptx_line, p.file, p.line) for p in places))


def _dim3(d):
    d = tuple(d) if hasattr(d, "__iter__") else (d,)
    if not 1 <= len(d) <= 3:
        raise ValueError(f"one to three dimensions expected, not {len(d)}")
    if not all(0 <= n < 1 << 32 for n in d):
        raise ValueError(f"a dimension does not fit into 32 bits: {d}")
    return (ctypes.c_uint32 * 3)(*d, *(1,) * (3 - len(d)))


def _name(name):
    """A name or path as C reads it. Bytes behind a 0 would be ignored."""
    name = os.fsencode(name)
    if b"\0" in name:
        raise ValueError("embedded null character")
    return name


def _words(options, named):
    """Options as consan_open() takes them: words name=value, a blank within one escaped."""
    words = [options] if options else []
    for name, value in named.items():
        name = name.replace("_", "-")
        for v in value if isinstance(value, (list, tuple)) else (value,):
            if v is False or v is None:
                continue
            v = str(v).replace("\\", "\\\\").replace(" ", "\\ ")
            words.append(name if v == "True" else f"{name}={v}")
    return " ".join(words)


class Kernel:
    """An entry of a module."""

    def __init__(self, module, handle):
        self._module, self._handle = module, handle
        library = module._session._library  # its lock is held
        info = _c.KernelInfo()
        library.kernel_info_sized(handle, ctypes.byref(info), ctypes.sizeof(info))
        self.name = _text(info.name)
        self.shared_static, self.max_threads = info.shared_static, info.max_threads
        self.parameter_sizes = []
        for i in range(info.nparams):
            offset, size = ctypes.c_uint32(), ctypes.c_uint32()
            library.kernel_param(handle, i, ctypes.byref(offset), ctypes.byref(size))
            self.parameter_sizes.append(size.value)


class Module:
    """A loaded PTX module."""

    def __init__(self, session, handle):
        self._session, self._handle = session, handle

    @property
    def kernels(self):
        """Names of the entries."""
        names = []
        with self._session._use() as library:
            while True:
                name = library.kernel_name(self._handle, len(names))
                if not name:
                    return names
                names.append(_text(name))

    def kernel(self, name):
        err = _c.Err()
        with self._session._use() as library:
            handle = library.kernel(self._handle, _name(name), ctypes.byref(err))
            if not handle:
                _raise(err)
            return Kernel(self, handle)


def _memory(value):
    """Address and size of an array; (None, 0) for any other value."""
    for name, reaches in (("__cuda_array_interface__", 0), ("__array_interface__", 1)):
        known = getattr(value, name, None)
        if known is not None:
            if known.get("strides"):
                raise ValueError("an array that is not contiguous cannot be an argument")
            return known["data"][0], value.nbytes if reaches else 0
    if hasattr(value, "data_ptr"):  # PyTorch, on the CPU
        return value.data_ptr(), value.numel() * value.element_size()
    if isinstance(value, (array.array, bytearray, memoryview)):
        view = memoryview(value)
        at = ctypes.addressof((ctypes.c_char * view.nbytes).from_buffer(view)) if view.nbytes else 0
        return at, view.nbytes
    return None, 0


def _scalar(value, size):
    if isinstance(value, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
        raw = bytes(value)
    elif hasattr(value, "tobytes"):  # NumPy
        raw = value.tobytes()
    elif isinstance(value, float):
        types = {2: "e", 4: "f", 8: "d"}
        if size not in types:
            raise TypeError(f"a float for a parameter of {size} bytes")
        raw = struct.pack("<" + types[size], value)
    elif isinstance(value, (bool, int)):
        raw = (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    elif isinstance(value, (bytes, bytearray)):
        raw = bytes(value)
    else:
        raise TypeError(f"{type(value).__name__} cannot be an argument of a kernel")
    if len(raw) != size:
        raise TypeError(f"an argument of {len(raw)} bytes for a parameter of {size} bytes")
    return raw


# No thread closes what another one uses.
_program_lock = threading.RLock()


class Session:
    """Findings and coverage of the kernels that were launched since it was opened. It has device
    memory and modules of its own, or (under consan-run) is the session of the program."""

    def __init__(self, library, handle, shared):
        self._library, self._handle, self._shared = library, handle, shared
        self._modules = []
        self._lock = _program_lock if shared else threading.RLock()
        self._before = self._counts() if shared else {}
        self._launched = self._launches() if shared else {}
        self._kept = None  # findings and coverage at the end

    @contextmanager
    def _use(self):
        with self._lock:
            if self._kept is not None:
                raise Error("the session is closed")
            yield self._library

    # ---- what was found ----

    def _raw(self):
        n = self._library.findings(self._handle)
        return [self._library.finding(self._handle, k) for k in range(n)]

    def _counts(self):
        counts = {}
        for f in self._raw():
            key = _identity(f.contents)
            counts[key] = counts.get(key, 0) + f.contents.seen
        return counts

    def _rows(self):
        n = self._library.kernels(self._handle)
        return [self._library.coverage(self._handle, k).contents for k in range(n)]

    def _launches(self):
        return {r.kernel: (r.launches, r.checked, r.skipped) for r in self._rows()}

    def _look(self):
        found = []
        for f in self._raw():
            before = self._before.get(_identity(f.contents), 0)
            if f.contents.seen > before:
                found.append(_finding(self._library, f, before))
        rows = []
        for r in self._rows():
            before = self._launched.get(r.kernel, (0, 0, 0))
            now = [a - b for a, b in zip((r.launches, r.checked, r.skipped), before)]
            if any(now):
                bad = now[0] > now[1] + now[2]
                rows.append(Coverage(_text(r.kernel), *now, _text(r.unchecked) if bad else ""))
        return found, rows

    def _seen(self):
        with self._lock:
            return self._kept or self._look()

    @property
    def findings(self):
        """A list of Finding, the most severe first; of notes, too."""
        return self._seen()[0]

    @property
    def errors(self):
        """The findings that are errors."""
        return [f for f in self.findings if f.severity == "error"]

    @property
    def coverage(self):
        """A list of Coverage, one for each kernel that was launched."""
        return self._seen()[1]

    @property
    def unchecked(self):
        """The kernels of which a launch was not checked."""
        return [c for c in self.coverage if c.unchecked]

    def write_report(self, path):
        """Writes the whole session's report in the format of the suffix, as consan-run --report."""
        err = _c.Err()
        with self._use() as library:
            if not library.write_report(self._handle, _name(path), ctypes.byref(err)):
                _raise(err)

    # ---- kernels ----

    def _module(self, handle, err):
        if not handle:
            _raise(err)
        self._modules.append(handle)
        return Module(self, handle)

    def _can_load(self):
        if not hasattr(self._library, "load_image"):
            raise Error("with --backend=gpu, a session loads and launches no kernels of its own")

    def load(self, image, name="python"):
        """Loads PTX text (str or bytes), a fatbin or an ELF file in memory."""
        self._can_load()
        image = os.fsencode(image) if isinstance(image, str) else bytes(image)
        err = _c.Err()
        with self._use() as library:
            return self._module(library.load_image(
                self._handle, _name(name), image, len(image), 0, ctypes.byref(err)), err)

    def load_file(self, path, index=0):
        self._can_load()
        err = _c.Err()
        with self._use() as library:
            return self._module(library.load_file(
                self._handle, _name(path), index, ctypes.byref(err)), err)

    def launch(self, kernel, grid=1, block=1, args=(), cluster=None, shared=0, cooperative=False):
        """Runs a kernel to its end and checks it. args: NumPy arrays, array.array, tensors,
        numbers, ctypes values.

        Returns "ok", "fault" or "hang", which have findings. Error: it was refused, or could not be
        checked.
        """
        if len(args) != len(kernel.parameter_sizes):
            raise TypeError(f"{kernel.name} takes {len(kernel.parameter_sizes)} arguments, "
                            f"not {len(args)}")
        home = kernel._module._session
        with self._use():
            if home._handle != self._handle:
                raise Error("the kernel belongs to another session, or to one that is closed")
            return self._launch(kernel, grid, block, args, cluster, shared, cooperative)

    def _launch(self, kernel, grid, block, args, cluster, shared, cooperative):
        values, registered = [], []
        try:
            for value, size in zip(args, kernel.parameter_sizes):
                at, n = _memory(value)
                if at is None:
                    values.append(ctypes.create_string_buffer(_scalar(value, size), size))
                    continue
                if n:
                    self._library.mem_register(self._handle, at, n)
                    registered.append(at)
                values.append(ctypes.c_uint64(at))
            return self._run(kernel, grid, block, values, cluster, shared, cooperative)
        finally:
            for at in registered:
                self._library.mem_unregister(self._handle, at)

    def _run(self, kernel, grid, block, values, cluster, shared, cooperative):
        pointers = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
        launch = _c.Launch(kernel=kernel._handle, grid=_dim3(grid), block=_dim3(block),
                           shared_dynamic=shared, cooperative=cooperative,
                           args=ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p)))
        if cluster is not None:
            launch.cluster = _dim3(cluster)
        err = _c.Err()
        status = self._library.launch_sized(self._handle, ctypes.byref(launch),
                                            ctypes.sizeof(launch), ctypes.byref(err))
        if _STATUS[status] in ("unchecked", "bad launch", "stopped"):
            raise Error(_text(err.text) or _STATUS[status], err.code, err.line, err.col)
        return _STATUS[status]

    # ---- the end ----

    def close(self):
        """Frees the session; its findings and coverage stay."""
        with self._lock:
            if self._kept is not None:
                return
            self._kept = self._look()
            for module in self._modules:
                self._library.unload(module)
            self._modules = []
            if not self._shared:
                self._library.close(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def session(options="", **named):
    """Opens a session: session("strict seed=3") or session(strict=True, seed=3), with the long
    options of consan-run.

    Under consan-run it is the session of the program, whose options are consan-run's: none may be
    given here.
    """
    library, handle = _c.watched()
    words = _words(options, named)
    if library:
        if words:
            raise Error("under consan-run, options are those of consan-run: " + words)
        if not handle:
            raise Error("consan has no session in this process, which was forked after it used CUDA")
        return Session(library, handle, True)
    library = _c.own()
    err = _c.Err()
    handle = library.open(words.encode(), ctypes.byref(err))
    if not handle:
        _raise(err)
    return Session(library, handle, False)
