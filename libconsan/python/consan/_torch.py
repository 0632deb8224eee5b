"""PyTorch on the emulated GPU: operators of ATen run on the CPU.

PyTorch's own CUDA kernels are machine code without PTX, so consan cannot execute them. Device memory
is host memory, though: each operator that has a CUDA kernel gets another one at the CUDA dispatch
key, which calls the CPU kernel on tensors that alias the same bytes. Autograd, torch.compile and
all else above that key see CUDA tensors as usual. The report counts these operators: they are not
checked.

What only allocates, makes views or copies a scalar to the host needs no kernel and stays PyTorch's.
"""
import ctypes
import itertools
import struct

import torch
from torch.utils._pytree import tree_map

from consan import _rnn

_SKIP = frozenset((
    "empty.memory_format", "empty_strided", "_efficientzerotensor", "set_", "set_.source_Storage",
    "set_.source_Storage_storage_offset", "set_.source_Tensor", "resize_", "_resize_output_",
    "record_stream", "is_pinned", "_pin_memory", "as_strided", "view", "_reshape_alias", "unfold",
    "view_as_real", "view_as_complex", "_local_scalar_dense", "_fused_sdp_choice",
))
# Their implementation above the CUDA key would choose cuDNN.
_ADD = ("copy_", "convolution", "convolution_backward")
_CPU_KEYS = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional",
             "CompositeImplicitAutograd")

# CUDA kernels add half-precision values in float32; these CPU kernels do not.
_WIDE = frozenset(("native_layer_norm_backward", "native_group_norm_backward"))
_HALVES = (torch.float16, torch.bfloat16)

_process = ctypes.CDLL(None)
_process.consan_run_operator.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
_process.consan_run_operator.restype = None
_process.consan_run_wait.argtypes = []
_process.consan_run_wait.restype = None
_process.consan_run_accesses.argtypes = [
    ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p,
    ctypes.c_size_t, ctypes.c_int]
_process.consan_run_accesses.restype = None
_cpu = torch.device("cpu")


def _on_gpu(t):
    return isinstance(t, torch.Tensor) and t.is_cuda


def _alias(t):
    """A CPU tensor with the bytes of a CUDA tensor, valid as long as that one."""
    if t.numel() == 0:
        return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype)
    s = t.untyped_storage()
    bytes_ = torch._C._construct_storage_from_data_pointer(s.data_ptr(), _cpu, s.nbytes())
    return torch.empty(0, dtype=t.dtype).set_(bytes_, t.storage_offset(), t.size(), t.stride())


# ---- sparse tensors ----

# Of these, what makes, takes apart or describes them needs no kernel and stays PyTorch's.
_SPARSE_SKIP = frozenset((
    "_indices", "_values", "indices", "values", "_nnz", "is_coalesced", "sparse_dim", "dense_dim", "_dimI",
    "_dimV", "crow_indices", "col_indices", "ccol_indices", "row_indices", "is_same_size", "detach",
    "_sparse_coo_tensor_with_dims", "_sparse_coo_tensor_with_dims_and_tensors", "empty.memory_format",
    "copy_", "copy_sparse_to_sparse_", "_coalesced_", "zero_", "resize_", "sparse_resize_",
    "sparse_resize_and_clear_", "resize_as_sparse_",
))


def _is_sparse(t):
    return t.layout in (torch.sparse_coo, torch.sparse_csr)


def _sparse(t, each):
    """A sparse tensor of each() of its parts."""
    if t.layout == torch.sparse_csr:
        return torch.sparse_csr_tensor(each(t.crow_indices()), each(t.col_indices()), each(t.values()),
                                       t.size(), check_invariants=False)
    return torch.sparse_coo_tensor(each(t._indices()), each(t._values()), t.size(),
                                   is_coalesced=t.is_coalesced(), check_invariants=False)


# ---- random numbers ----

def _generator(g):
    """A CPU generator that follows from the state of a CUDA generator, which is advanced."""
    if torch.cuda.is_current_stream_capturing():
        return None
    offset = g.get_offset()
    g.set_offset(offset + 4)
    return torch.Generator().manual_seed((g.initial_seed() + offset * 0x9E3779B97F4A7C15) % (1 << 63))


def _with_generator(op, args, kwargs):
    """Fills in the default generator of the GPU, where an operator has one."""
    for i, argument in enumerate(op._schema.arguments):
        if argument.name != "generator":
            continue
        default = torch.cuda.default_generators[torch.cuda.current_device()]
        if i < len(args):
            if args[i] is None:
                args = (*args[:i], default, *args[i + 1:])
        elif kwargs.get("generator") is None:
            kwargs = {**kwargs, "generator": default}
    return args, kwargs


# ---- one call ----

class _Call:
    """The arguments of a call for the CPU, and its results for the GPU."""

    def __init__(self, args, kwargs, copied=False, changes=False):
        self.device = None
        self.changes = changes  # the operator changes an argument in place
        self.origin = {}  # id of an alias: the alias, the tensor
        self.copied = copied
        self.args, self.kwargs = tree_map(self._down, (args, kwargs))
        wanted = kwargs.get("device")
        self.to_cpu = wanted is not None and torch.device(wanted).type == "cpu"
        if self.device is None:
            self.device = torch.device("cuda", torch.cuda.current_device())
        if "device" in kwargs:
            self.kwargs["device"] = _cpu
        if self.kwargs.get("pin_memory"):
            self.kwargs["pin_memory"] = False

    # the CPU's view of an argument
    def _down(self, x):
        if isinstance(x, torch.Generator):
            return _generator(x) if x.device.type == "cuda" else x
        if isinstance(x, torch.device) and x.type == "cuda":
            return _cpu
        if not _on_gpu(x):
            return x
        if self.device is None:
            self.device = x.device
        if _is_sparse(x):
            a = _sparse(x, self._down)
            self.origin[id(a)] = (a, x)
            return a
        a = _alias(x)
        if self.copied:
            a = a.clone(memory_format=torch.preserve_format)
        self.origin[id(a)] = (a, x)
        return a

    # the GPU's view of a result
    def _up(self, t):
        if not isinstance(t, torch.Tensor):
            return t
        known = self.origin.get(id(t))
        if known and _is_sparse(known[1]):
            if self.changes:  # its parts may be others now
                known[1].copy_(_sparse(t, self._up))
            return known[1]
        if known:
            if known[1].size() != t.size():  # an out= argument was resized
                known[1].resize_(t.size())
                _alias(known[1]).copy_(t)
            return known[1]
        if self.to_cpu:
            return t
        if _is_sparse(t):
            return _sparse(t, self._up)
        out = torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=self.device)
        if t.numel() and not self.copied:
            _alias(out).copy_(t)
        return out

    def results(self, values):
        return tree_map(self._up, values)


# ---- what an operator accesses, for races between streams ----

_AT_ONCE, _DONE, _DONE_NOW = range(3)  # enum hb_returns
_SPAN = struct.Struct("8Q")  # struct hb_span: at, width, pitch, rows, slice, slices, grow, write
_ROWS = 4096  # of a tensor with more than four dimensions that are not contiguous


def _spans(t, write):
    """The bytes of a tensor, as structs hb_span."""
    item = t.element_size()
    dims = sorted((stride * item, size) for size, stride in zip(t.size(), t.stride())
                  if size > 1 and stride)
    width = item
    while dims and dims[0][0] <= width:  # windows may overlap
        stride, size = dims.pop(0)
        width += (size - 1) * stride
    (pitch, rows), (slice_, slices) = (dims + [(0, 1), (0, 1)])[:2]
    outer = [range(0, stride * size, stride) for stride, size in dims[2:]]
    offsets = itertools.islice(itertools.product(*outer), _ROWS)
    at = t.data_ptr()
    return [_SPAN.pack(at + sum(o), width, pitch, rows, slice_, slices, 0, write) for o in offsets]


def _dense(x):
    """The tensors in an argument or result that have bytes of their own."""
    return [t for t in torch.utils._pytree.tree_leaves(x)
            if isinstance(t, torch.Tensor) and t.layout == torch.strided and t.numel()]


def _arguments(op, args, kwargs):
    """The tensors that a call reads, and those that it writes."""
    read, written = [], []
    for i, argument in enumerate(op._schema.arguments):
        value = args[i] if i < len(args) else kwargs.get(argument.name)
        writes = argument.alias_info is not None and argument.alias_info.is_write
        (written if writes else read).extend(_dense(value))
    return read, written


def _waits(name, op, args, kwargs):
    """What the host knows when the operator returns, on a GPU."""
    if name == "copy_":
        to, source = args[0], args[1]
        if to.is_cuda == source.is_cuda:
            return _AT_ONCE
        if not (args[2] if len(args) > 2 else kwargs.get("non_blocking", False)):
            return _DONE
        return _DONE_NOW if source.is_cuda and not to.is_pinned() else _AT_ONCE
    return _DONE if torch.Tag.dynamic_output_shape in op.tags else _AT_ONCE


def _tell(name, op, device, args, kwargs, outs):
    read, written = _arguments(op, args, kwargs)
    mine = {t.data_ptr() for t in (*read, *written)}
    written += [t for t in _dense(outs) if t.is_cuda and t.data_ptr() not in mine]
    host = name == "copy_"  # between the host and a device: also the host's side, if it is pinned
    spans = b"".join(itertools.chain.from_iterable(
        _spans(t, write) for tensors, write in ((read, 0), (written, 1)) for t in tensors
        if t.is_cuda or (host and t.is_pinned())))
    devices = [t.get_device() for t in (*read, *written) if t.is_cuda and t.get_device() != device]
    other = devices[0] if host and devices else -1
    stream = torch._C._cuda_getCurrentRawStream
    _process.consan_run_accesses(b"aten::" + name.encode(), device, stream(device), other,
                                 stream(other) if other >= 0 else None, spans, len(spans) // _SPAN.size,
                                 _waits(name, op, args, kwargs))


# ---- capture into a CUDA graph ----

_HOST = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_captured = []  # functions of graphs, which may be launched at any time


def _store(out, value):
    if _on_gpu(out) and isinstance(value, torch.Tensor) and out.numel():
        _alias(out).copy_(value)


def _capture(name, op, args, kwargs):
    """Does the work when the graph is launched. Now it is done on copies, for the results' shapes."""
    results = _Call(args, kwargs, copied=True)
    outs = results.results(op(*results.args, **results.kwargs))
    mine = {id(t) for _, t in results.origin.values()}

    def replay(_):
        call = _Call(args, kwargs)
        values = op(*call.args, **call.kwargs)
        pairs = zip(torch.utils._pytree.tree_leaves(outs), torch.utils._pytree.tree_leaves(values))
        for out, value in pairs:
            if id(out) not in mine:
                _store(out, value)
        _tell(name, op, call.device.index, args, kwargs, outs)

    host = _HOST(replay)
    _captured.append(host)
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    _process.cudaLaunchHostFunc(stream, host, None)
    return outs


# ---- the operators ----

def _tensors(op, args):
    """Operands that were written as True or False arrive as such, where a tensor is expected."""
    types = op._schema.arguments
    return tuple(torch.tensor(a) if isinstance(a, bool) and isinstance(t.type, torch.TensorType) else a
                 for a, t in zip(args, types))

def _is_copy(name, args):
    """Is it a plain copy of bytes, which is no kernel on a GPU either?"""
    if name != "copy_":
        return False
    to, source = args[0], args[1]
    if to.is_cuda != source.is_cuda:
        return True
    return to.dtype == source.dtype and to.is_contiguous() and source.is_contiguous() \
        and to.size() == source.size()


def _widened(op):
    """The operator in float32, if its first argument has half precision."""
    def wide(first, *args):
        half = first.dtype
        if half not in _HALVES:
            return op(first, *args)
        up = lambda x: x.float() if isinstance(x, torch.Tensor) and x.dtype == half else x
        down = lambda x: x.to(half) if isinstance(x, torch.Tensor) else x
        return tree_map(down, op(*map(up, (first, *args))))

    wide._schema, wide.tags = op._schema, op.tags
    return wide


def _on_cpu(op, function):
    """The function in place of the operator, which has no CPU kernel."""
    def call(*args):
        return function(*args)

    call._schema, call.tags = op._schema, op.tags
    return call


def _implement(name):
    packet, _, overload = name.partition(".")
    counted = name.encode()
    op = None
    random = changes = False

    def run(*args, **kwargs):
        nonlocal op, random, changes
        if op is None:
            op = getattr(getattr(torch.ops.aten, packet), overload or "default")
            random = any(a.name == "generator" for a in op._schema.arguments)
            changes = op._schema.is_mutable
            if name in _rnn.OPERATORS:
                op = _on_cpu(op, _rnn.OPERATORS[name])
            op = _widened(op) if name in _WIDE else op
        if random:
            args, kwargs = _with_generator(op, args, kwargs)
        if any(isinstance(a, bool) for a in args):
            args = _tensors(op, args)
        _process.consan_run_wait()
        if not _is_copy(name, args):
            _process.consan_run_operator(b"ATen", counted)
        if torch.cuda.is_current_stream_capturing():
            return _capture(name, op, args, kwargs)
        call = _Call(args, kwargs, changes=changes)
        outs = call.results(op(*call.args, **call.kwargs))
        _tell(name, op, call.device.index, args, kwargs, outs)
        return outs

    return run


def _only_math():
    """Switches off what has no implementation on the CPU, for good: cuDNN and fused attention."""
    ignored = lambda *args: None
    torch._C._set_cudnn_enabled(False)
    torch._C._set_cudnn_enabled = ignored
    torch._C._set_sdp_use_math(True)
    torch._C._set_sdp_use_math = ignored
    for name in ("flash", "mem_efficient", "cudnn", "overrideable"):
        setter = f"_set_sdp_use_{name}"
        if hasattr(torch._C, setter):
            getattr(torch._C, setter)(False)
            setattr(torch._C, setter, ignored)


def _names():
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for full in torch._C._dispatch_get_all_op_names():
        if not full.startswith("aten::"):
            continue
        name = full[len("aten::"):]
        if name in _ADD or name in _rnn.OPERATORS or (name not in _SKIP and has(full, "CUDA")
                            and any(has(full, k) for k in _CPU_KEYS)):
            yield name


def _sparse_names(key, cpu_key):
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for full in torch._C._dispatch_get_all_op_names():
        name = full[len("aten::"):]
        if full.startswith("aten::") and name not in _SPARSE_SKIP and has(full, key) \
                and has(full, cpu_key):
            yield name


_library = None


def _register():
    global _library
    if _library:
        return
    _library = torch.library.Library("aten", "IMPL")
    for name in _names():
        _library.impl(name, _implement(name), "CUDA", allow_override=True)
    for key in "Sparse", "SparseCsr":
        for name in _sparse_names(key + "CUDA", key + "CPU"):
            _library.impl(name, _implement(name), key + "CUDA", allow_override=True)
    _only_math()


torch.cuda._lazy_call(_register)  # when the program first uses CUDA
