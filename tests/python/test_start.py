"""How Python starts under consan-run, and what it finds there."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from test_programs import BUILD, CONSAN_RUN


def run(*args, **more):
    return subprocess.run([CONSAN_RUN, "--allow-unchecked", "--quiet", "--", sys.executable, *args],
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, **more})


def test_hidden_sitecustomize_is_imported(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('mine')\n")
    done = run("-c", "import sys, sitecustomize; print(sitecustomize.__file__)",
               PYTHONPATH=str(tmp_path))
    assert done.stdout.splitlines() == ["mine", str(tmp_path / "sitecustomize.py")], done.stderr


def test_variables_of_the_user_stay():
    done = run("-c", "import os; print(os.environ['CUPY_ACCELERATORS'], "
               "os.environ['PYTORCH_NO_CUDA_MEMORY_CACHING'])", CUPY_ACCELERATORS="cub")
    assert done.stdout.split() == ["cub", "1"]


def test_nothing_is_imported_before_a_framework():
    done = run("-c", "import sys; print([m for m in sys.modules if m.split('.')[0] in "
               "('ctypes', 'numpy', 'torch', 'dataclasses', 'importlib.util')])")
    assert done.stdout.strip() == "[]", done.stderr


def test_start_costs_at_most_as_much_again():
    def fastest(command):
        times = []
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        return min(times)

    plain = fastest([sys.executable, "-c", "import json"])
    watched = fastest([CONSAN_RUN, "--allow-unchecked", "--quiet", "--", sys.executable, "-c",
                       "import json"])
    assert watched < 2 * plain, f"{watched:.3f} s instead of {plain:.3f} s"


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 f, .param .u32 m)
{
	.reg .b64 at, step;
	.reg .b32 i, mask;
	.reg .f32 value, factor;

	ld.param.u64 at, [x];
	cvta.to.global.u64 at, at;
	ld.param.f32 factor, [f];
	ld.param.u32 mask, [m];
	mov.u32 i, %tid.x;
	and.b32 i, i, mask;
	mul.wide.u32 step, i, 4;
	add.s64 at, at, step;
	ld.global.f32 value, [at];
	mul.f32 value, value, factor;
	st.global.f32 [at], value;
	ret;
}
"""
USE = f"""
import consan, numpy
x = numpy.arange(64, dtype=numpy.float32)
with consan.session() as s:
    kernel = s.load('''{PTX}''').kernel("scale")
    assert s.launch(kernel, block=64, args=[x, 2.0, 63]) == "ok" and x[5] == 10 and not s.findings
    assert [c.checked for c in s.coverage] == [1] and not s.unchecked
with consan.session() as s:
    kernel = s.load('''{PTX}''').kernel("scale")
    s.launch(kernel, block=64, args=[x, 2.0, 31])
assert {{"CS101"}} <= {{f.rule for f in s.errors}}, s.findings
assert s.findings[0].sides[0].place.ptx_line == 21, s.findings[0]
try:
    s2 = consan.session().launch(kernel, args=[x])
except TypeError as e:
    print("done")
"""


@pytest.mark.parametrize("under", (False, True), ids=("own session", "under consan-run"))
def test_session(under):
    pytest.importorskip("numpy")
    if under:
        done = run("-c", USE)
    else:
        done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.stdout == "done\n", done.stdout + done.stderr


def test_options_are_checked():
    use = ("import consan\n"
           "try: consan.session('nonsense')\n"
           "except consan.Error as e: print(e)\n"
           "consan.session('strict', seed=3).close()\n")
    done = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert "nonsense" in done.stdout and not done.stderr


def test_package_has_the_version_of_the_library():
    header = (Path(__file__).parent.parent.parent / "libconsan" / "consan.h").read_text()
    done = run("-c", "import consan; print(consan.__version__)")
    assert f'#define CONSAN_VERSION "{done.stdout.strip()}"' in header


# ---- without the package ----

CALL = "import ctypes; assert not ctypes.CDLL('libcuda.so.1').cuInit(0)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:], '-c', {CALL!r}], check=True)"
FORK = f"import os, sys\nif not os.fork():\n    {CALL}\n    os._exit(0)\nos.wait()"


@pytest.mark.parametrize("words, said", (
    (("-I", "-c", CALL), True), (("-S", "-c", CALL), True), (("-E", "-c", CALL), True),
    (("-c", CALL), False), (("-s", "-c", CALL), False), (("-c", CHILD, "-I"), True), (("-c", CHILD), False),
    (("-c", FORK), False)), ids=str)
def test_the_report_says_if_the_package_was_not_loaded(words, said):
    done = subprocess.run([CONSAN_RUN, "--allow-unchecked", "--", sys.executable, *words], capture_output=True,
                          text=True, timeout=300)
    assert not done.returncode, done.stderr
    assert ("Python was started without" in done.stderr) == said, done.stderr


# ---- what is hostile to the package ----

LAUNCH = f"""
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
context, module, function, memory = (ctypes.c_void_p() for _ in range(4))
device = ctypes.c_int()
assert not cuda.cuInit(0) and not cuda.cuDeviceGet(ctypes.byref(device), 0)
assert not cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device)
assert not cuda.cuModuleLoadData(ctypes.byref(module), b'''{PTX}''')
assert not cuda.cuModuleGetFunction(ctypes.byref(function), module, b"scale")
assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), 4096)
def launch():
    values = memory, ctypes.c_float(2), ctypes.c_uint32(31)
    args = (ctypes.c_void_p * 3)(*map(ctypes.addressof, values))
    assert not cuda.cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, None, args, None)
"""


def report(folder, file, *options):
    """The report of a program, which races, and its output."""
    done = subprocess.run([CONSAN_RUN, "--report=report.json", *options, "--", sys.executable, file],
                          capture_output=True, timeout=300, cwd=folder)
    assert done.returncode == 66, done.stderr
    return (folder / "report.json").read_bytes(), done.stderr


@pytest.mark.parametrize("name", (b"not \xff utf-8.py", b"tab\tand\nnewline.py", b"escape \x1b[31m.py"))
def test_frames_of_files_with_any_name(tmp_path, name):
    file = os.path.join(os.fsencode(tmp_path), name)
    with open(file, "w") as out:
        out.write(LAUNCH + "launch()\n")
    written, errors = report(tmp_path, file)
    assert b"in launch" in errors and b"Error" not in errors, errors
    assert b"\x1b" not in errors and b"\xff" not in written


def fake_framework(folder, extra=""):
    """A framework for which consan has a part."""
    (folder / "jax" / "_src").mkdir(parents=True)
    (folder / "jax" / "__init__.py").write_text("")
    (folder / "jax" / "_src" / "__init__.py").write_text("")
    (folder / "jax" / "_src" / "hardware_utils.py").write_text(extra)


SEES = ("import jax._src.hardware_utils as h\n"
        "print(hasattr(h, 'has_visible_nvidia_gpu'))\n")


def test_modules_of_the_program_with_our_names(tmp_path):
    fake_framework(tmp_path)
    (tmp_path / "consan.py").write_text("mine = True\n")
    (tmp_path / "consan_setup.py").write_text("mine = True\n")
    (tmp_path / "uses.py").write_text(SEES)
    (tmp_path / "has.py").write_text("import consan\nassert consan.mine\n" + SEES)
    done = run(str(tmp_path / "uses.py"))
    assert done.stdout == "True\n" and "consan: consan" not in done.stderr
    done = run(str(tmp_path / "has.py"))
    assert done.stdout == "False\n" and "consan._jax" in done.stderr


def test_a_part_that_fails_does_not_end_the_program(tmp_path):
    fake_framework(tmp_path, "import ctypes\nctypes.c_bool = None\n")
    (tmp_path / "uses.py").write_text(SEES)
    done = run(str(tmp_path / "uses.py"))
    assert done.stdout == "False\n" and "consan: consan._jax: AttributeError" in done.stderr


FINDERS = f"""
import copy, sys
ours = next(f for f in sys.meta_path if type(f).__module__ == "consan_setup")
class Old:
    def find_module(self, name, path=None):
        return None
class Wrapper:
    def find_spec(self, *args):
        return ours.find_spec(*args)
sys.meta_path.insert(1, Old())
{SEES}
from importlib.util import find_spec
assert copy.deepcopy(find_spec("jax._src.hardware_utils"))
del sys.modules["jax._src.hardware_utils"]
sys.meta_path[0] = Wrapper()
import jax._src.hardware_utils
print("done")
"""


def test_finders_of_the_program(tmp_path):
    fake_framework(tmp_path)
    (tmp_path / "uses.py").write_text(FINDERS)
    done = run(str(tmp_path / "uses.py"))
    assert done.stdout == "True\ndone\n", done.stderr


def sources(code, **more):
    return run("-c", "from consan import _sources\n" + code, **more)


def test_folders_for_sources_that_cannot_be_used(tmp_path):
    code = "print(_sources.keep('__global__ void k() {} // \\udcff', 'k.cu'))"
    for cache in ("/proc/none", "relative", "/dev/null"):
        done = sources(code, XDG_CACHE_HOME=cache)
        assert done.stdout == "k.cu\n", done.stderr
    done = sources(code, XDG_CACHE_HOME=str(tmp_path))
    assert done.stdout.startswith(str(tmp_path / "consan" / "sources" / "k-")), done.stderr


def test_links_are_not_followed_where_sources_are_written(tmp_path):
    (tmp_path / "cell").mkdir()
    (tmp_path / "cell" / "1.py").symlink_to(tmp_path / "made")
    code = ("import linecache, tempfile\n"
            "path = tempfile.gettempdir() + '/cell/1.py'\n"
            "linecache.cache[path] = 2, None, ['x\\n', 'y\\n'], path\n"
            "_sources.restore(path)\n")
    done = sources(code, TMPDIR=str(tmp_path))
    assert "Error" not in done.stderr and not (tmp_path / "made").exists()
    (tmp_path / "cell" / "1.py").unlink()
    sources(code, TMPDIR=str(tmp_path))
    assert (tmp_path / "cell" / "1.py").read_text() == "x\ny\n"


CLOSED = f"""
import array, consan, threading
x = array.array("f", [0] * 64)
one, other = consan.session(), consan.session()
module = one.load('''{PTX}''')
kernel = module.kernel("scale")
def refused(call):
    try:
        call()
    except (consan.Error, ValueError) as e:
        return True
assert refused(lambda: one.launch(kernel, grid=1 << 32, block=64, args=[x, 2.0, 63]))
assert refused(lambda: one.write_report("report.json\\0.html"))
assert refused(lambda: module.kernel("\\udcff"))
if not consan.under_consan_run():
    assert refused(lambda: other.launch(kernel, block=64, args=[x, 2.0, 63]))
def launches():
    try:
        while True:
            one.launch(kernel, block=64, args=[x, 2.0, 63])
            one.findings
    except consan.Error:
        pass
threads = [threading.Thread(target=launches) for _ in range(3)]
for t in threads:
    t.start()
while not one.coverage:
    pass
one.close()
for t in threads:
    t.join()
assert refused(lambda: module.kernels) and refused(lambda: module.kernel("scale"))
assert refused(lambda: other.launch(kernel, block=64, args=[x, 2.0, 63]))
assert refused(lambda: one.launch(kernel, block=64, args=[x, 2.0, 63])) and one.coverage
print("done")
"""


@pytest.mark.parametrize("under", (False, True), ids=("own session", "under consan-run"))
def test_session_that_is_closed(under):
    if under:
        done = run("-c", CLOSED)
    else:
        done = subprocess.run([sys.executable, "-c", CLOSED], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    assert done.stdout == "done\n", done.stdout + done.stderr
