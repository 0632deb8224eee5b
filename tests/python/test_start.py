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
