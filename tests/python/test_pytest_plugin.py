"""pytest --consan on a small suite, alone and with workers of pytest-xdist."""
import os
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

from test_programs import BUILD

SUITE = '''
import cupy
import pytest

shift = cupy.RawKernel(r"""
extern "C" __global__ void shift(const float *x, float *y, bool wait)
{
	__shared__ float tile[256];

	tile[threadIdx.x] = x[threadIdx.x];
	if (wait)
		__syncthreads();
	y[threadIdx.x] = tile[(threadIdx.x + 33) % 256];
}
""", "shift", options=("-lineinfo",))


def launch(wait):
    x = cupy.arange(256, dtype=cupy.float32)
    shift((1,), (256,), (x, cupy.empty_like(x), wait))


def test_clean():
    launch(True)


def test_racy():
    launch(False)


def test_clean_again():
    launch(True)


@pytest.mark.consan_expect("CS102", "CS901")
def test_expected():
    launch(False)


@pytest.mark.consan_expect("CS102")
def test_expected_in_vain():
    launch(True)


def test_fails_itself():
    launch(False)
    assert False
'''


@pytest.mark.parametrize("workers", (0, 2))
def test_each_test_has_its_own_findings(tmp_path, workers):
    pytest.importorskip("cupy")
    if workers:
        pytest.importorskip("xdist")
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "consan.pytest_plugin", "--consan",
         "--consan-options=--arch=sm_90a", "--consan-report=r.sarif", "--junitxml=r.xml", "-q",
         "-p", "no:cacheprovider", *(["-n", str(workers)] if workers else []), "test_suite.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")})
    text = done.stdout + done.stderr
    assert done.returncode == 1, text
    failed = {}
    for case in xml.parse(tmp_path / "r.xml").iter("testcase"):
        failure = case.find("failure")
        failed[case.get("name")] = None if failure is None else failure.text
    assert {name for name, why in failed.items() if why} == {
        "test_racy", "test_expected_in_vain", "test_fails_itself"}, text
    assert "CS102" in failed["test_racy"] and "shift-" in failed["test_racy"]
    assert "not found: CS102" in failed["test_expected_in_vain"]
    assert "CS102" in (tmp_path / "r.sarif").read_text()
