"""The programs of each framework under consan-run, clean and racy.

Comments at the start of a program:
    # needs: MODULE...   Python modules, or nvcc
    # expect: RULE... [@mark...]   the racy form has one of these findings, at a line with one of
                         these marks (`# @mark`); without it, the program has no racy form
    # every: @mark...    each line with one of these marks has one of these findings
    # kernel: NAME       a part of the name of a kernel that must have been checked
    # no kernel          it launches none with PTX
    # says: TEXT         a part of the report
"""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUILD = Path(os.environ.get("CONSAN_BUILD", HERE.parent.parent / "build"))
CONSAN_RUN = str(BUILD / "consan-run")
TORCH = bool(os.environ.get("TORCH"))
JAX = bool(os.environ.get("JAX"))


def header(path):
    found = {"needs": "", "expect": "", "every": "", "kernel": "", "says": ""}
    for line in path.read_text().splitlines():
        match = re.match(r"# (needs|expect|every|kernel|says): (.*)", line)
        if match:
            found[match[1]] = match[2]
    return found


def reason_to_skip(needs):
    """Why a program cannot run here, or None."""
    for name in needs.split():
        if name == "nvcc":
            if not shutil.which("nvcc"):
                return "nvcc is not on PATH"
        elif name == "torch" and not TORCH:
            return "PyTorch needs 6 GB: TORCH=1"
        elif name == "jax" and not JAX:
            return "JAX needs 6 GB: JAX=1"
        elif importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    return None


def programs():
    for path in sorted((HERE / "programs").glob("*.py")):
        for form in ("clean", "racy") if header(path)["expect"] else ("clean",):
            yield pytest.param(path, form, id=f"{path.stem}-{form}")


def run(tmp_path, path, form):
    report = tmp_path / "report.json"
    done = subprocess.run(
        [CONSAN_RUN, "--arch=sm_90a", f"--report={report}", f"--log-file={tmp_path / 'report.txt'}",
         "--", sys.executable, str(path), form],
        capture_output=True, text=True, timeout=600,
        env={**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path / "extensions")})
    assert report.exists(), done.stdout + done.stderr
    return done, json.loads(report.read_text()), (tmp_path / "report.txt").read_text()


def places(finding):
    """(file, line) of all places of a finding."""
    found = set()

    def walk(x):
        if isinstance(x, dict):
            if "file" in x and "line" in x:
                found.add((os.path.basename(x["file"] or ""), x["line"]))
            for value in x.values():
                walk(value)
        elif isinstance(x, list):
            for value in x:
                walk(value)

    walk(finding["sides"])
    return found


def marked(path, words):
    """The numbers of the lines that end with one of these marks."""
    return [number for number, line in enumerate(path.read_text().splitlines(), 1)
            for mark in words if mark.startswith("@") and line.endswith("# " + mark)]


@pytest.mark.parametrize("path, form", list(programs()))
def test_program(tmp_path, path, form):
    wanted = header(path)
    why = reason_to_skip(wanted["needs"])
    if why:
        pytest.skip(why)
    done, report, text = run(tmp_path, path, form)
    text += done.stderr
    found = [f for f in report["findings"] if f["severity"] != "note"]
    assert wanted["says"] in " ".join(text.split())
    if wanted["kernel"]:
        rows = [c for c in report["coverage"] if wanted["kernel"] in c["kernel"]]
        assert rows and all(c["checked"] == c["launches"] for c in rows), text
    if form == "clean":
        assert not found, text
        assert done.returncode == (0 if wanted["kernel"] else 67), text
        return
    words = wanted["expect"].split()
    rules = {w for w in words if not w.startswith("@")}
    bugs = [f for f in found if f["rule"] in rules]
    assert bugs, text
    named = set.union(*map(places, bugs))
    lines = marked(path, words)
    assert not lines or any((path.name, line) in named for line in lines), text
    silent = [line for line in marked(path, wanted["every"].split()) if (path.name, line) not in named]
    assert not silent, text
