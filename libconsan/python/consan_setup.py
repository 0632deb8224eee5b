"""Sets up Python under consan-run: environment variables and hooks on imports.

Costs next to nothing until a framework is imported. sitecustomize.py imports this module, so it must
not import anything that is not loaded anyway; not even the package consan, of which pytest, too, wants
to be the first that imports it.
"""
import os
import sys

# On each backend, where the program has not set them.
VARIABLES = {
    # CuPy's modules for CUB have PTX for one architecture only
    "CUPY_ACCELERATORS": "",
}
CPU_VARIABLES = {
    # an allocator that caches hides accesses out of bounds
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async",
}
# Options of XLA, where the program has not set them: times say nothing about a GPU; PTX will do where there
# is no ptxas; and no CUDA graphs, which would have programmatic edges.
XLA_OPTIONS = {
    "--xla_gpu_enable_command_buffer": "",
    "--xla_gpu_autotune_level": "0",
    "--xla_gpu_unsafe_fallback_to_driver_on_ptxas_not_found": "true",
}

# Module of a framework: module of ours that is imported after it.
AFTER = {
    "ctypes": "consan._stack",
    "cupy": "consan._cupy",
    "cutlass.base_dsl.jit_executor": "consan._cutlass",
    "jax._src.hardware_utils": "consan._jax",
    "triton.testing": "consan._triton",
    "triton.experimental.gluon._runtime": "consan._gluon",
    "torch._inductor.runtime.benchmarking": "consan._inductor",
    "warp": "consan._warp",
}
CPU_AFTER = {"torch": "consan._torch"}


def on_gpu():
    """Do the kernels run on a GPU? Else consan-run has preloaded the emulated one."""
    return "backend=gpu" in os.environ.get("CONSAN_SESSION_OPTIONS", "").split()


def complain(what, error):
    """The program goes on without a part of this package."""
    try:
        sys.stderr.write(f"consan: {what}: {type(error).__name__}: {error}\n")
    except Exception:  # the program has closed or replaced it
        pass


_HERE = os.path.dirname(os.path.abspath(__file__))


def _import(name):
    """Imports a part of this package, though the program's own folder, which is before PYTHONPATH, may have
    a module of the same name."""
    sys.path.insert(0, _HERE)
    try:
        __import__(name)
    except Exception as e:  # of a version of the framework that it does not know
        complain(name, e)
    finally:
        sys.path.remove(_HERE)


class _Loader:
    """Loads a module by its own loader, and then imports ours."""

    def __init__(self, real, after):
        self.real = real
        self.after = after

    def create_module(self, spec):
        return self.real.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.real
        self.real.exec_module(module)
        _import(self.after)

    def __getattr__(self, name):
        if name == "real":  # a copy that is not complete yet
            raise AttributeError(name)
        return getattr(self.real, name)


class _Finder:
    """Finds the modules of a table by the finders behind it."""

    def __init__(self, after):
        self.after = dict(after)

    def find_spec(self, name, path=None, target=None):
        after = self.after.get(name)
        if not after:
            return None
        spec = self._behind(name, path, target)
        if spec and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, after)
        return spec

    def _behind(self, name, path, target):
        """What the finders behind this one find. The program may have put this one into one of its own."""
        finders = list(sys.meta_path)
        if self not in finders:
            return None
        for finder in finders[finders.index(self) + 1:]:
            find = getattr(finder, "find_spec", None)  # old ones have find_module() only
            spec = find(name, path, target) if find else None
            if spec:
                return spec
        return None


def install():
    # The address of None, by which the C part knows that it was this interpreter: it stays the same in a
    # forked process, and another program, which may have this variable, has another one.
    os.environ["CONSAN_PYTHON"] = str(id(None))
    after = dict(AFTER)
    variables = dict(VARIABLES)
    if not on_gpu():
        after.update(CPU_AFTER)
        variables.update(CPU_VARIABLES)
        flags = os.environ.get("XLA_FLAGS", "")
        more = [f"{name}={value}" for name, value in XLA_OPTIONS.items() if name not in flags]
        if more:
            os.environ["XLA_FLAGS"] = " ".join([*flags.split(), *more])
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    # `pytest --consan` is known without an installed package
    plugins = os.environ.get("PYTEST_PLUGINS", "")
    if "consan.pytest_plugin" not in plugins.split(","):
        os.environ["PYTEST_PLUGINS"] = plugins + "," * bool(plugins) + "consan.pytest_plugin"
    sys.meta_path.insert(0, _Finder(after))
    for name in after:  # loaded before this: by the interpreter or another .pth file
        if name in sys.modules:
            _import(after[name])
