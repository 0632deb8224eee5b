"""pytest --consan: runs the tests under consan-run; each test fails on its own findings.

    @pytest.mark.consan_expect("CS102")     the test passes if these rules, and no others, are found

Findings above a note count, consequences of others as well. pytest starts itself again under consan-run, so nothing else is needed;
workers of pytest-xdist are watched as well.
"""
import os
import shlex
import subprocess
import sys
import tempfile

import pytest

import consan
from consan import _library

_SESSION = pytest.StashKey()
_EXPECTED = "CONSAN_PYTEST_EXPECTED"  # suppressions: findings that tests expect
UNCHECKED = "consan_unchecked"        # name of a property of a test, for JUnit as well
EXIT_UNCHECKED = 67


def pytest_addoption(parser):
    group = parser.getgroup("consan", "concurrency sanitizer for CUDA kernels")
    group.addoption("--consan", action="store_true",
                    help="run under consan-run; each test fails on its own findings")
    group.addoption("--consan-options", default="", metavar="OPTIONS",
                    help="options of consan-run, such as '--arch=sm_90a --strict'")
    group.addoption("--consan-report", action="append", default=[], metavar="FILE",
                    help="write consan's report to FILE: .html, .json, .sarif, .xml (JUnit), ...")
    group.addoption("--consan-allow-unchecked", action="store_true",
                    help="do not exit with status 67 if a kernel could not be checked")


def pytest_configure(config):
    config.addinivalue_line("markers", "consan_expect(*rules): with --consan, the test passes if "
                            "consan finds these rules, such as CS102, and no others")


# ---- the start ----

def _command(args):
    """The command line of this process, to run it again."""
    original = list(getattr(sys, "orig_argv", []))
    if args and original[-len(args):] == list(args):
        return [sys.executable] + original[1:]
    flags = subprocess._args_from_interpreter_flags()
    return [sys.executable, *flags, "-m", "pytest", *args]


def _start_again(options, args):
    run = _library.find_run()
    if not run:
        raise pytest.UsageError("--consan: consan-run was not found; put it on PATH, or set CONSAN_RUN")
    handle, expected = tempfile.mkstemp(prefix="consan-expected-")
    os.close(handle)
    os.environ[_EXPECTED] = expected
    command = [run, "--error-exitcode=0", "--allow-unchecked", "--log-file=/dev/null",
               "--suppressions=" + expected, *("--report=" + r for r in options.consan_report),
               *shlex.split(options.consan_options), "--", *_command(args)]
    sys.stdout.flush()
    sys.stderr.flush()
    status = subprocess.run(command).returncode
    os.unlink(expected)
    os._exit(status if status >= 0 else 128 - status)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config, args):
    options = early_config.known_args_namespace
    if not options.consan or consan.under_consan_run():
        return
    capture = early_config.pluginmanager.getplugin("capturemanager")
    if capture:
        capture.suspend_global_capture(in_=True)
    _start_again(options, early_config.invocation_params.args)


# ---- a test ----

def _watched(item):
    return item.config.getoption("consan") and consan.under_consan_run()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if _watched(item):
        item.stash[_SESSION] = consan.session()


def _expected(item):
    return {rule for mark in item.iter_markers("consan_expect") for rule in mark.args}


def _glob(text):
    return "".join("\\" + c if c in "*?[\\" else c for c in text)


def _suppress(item, findings):
    """Findings that a test expects are no errors in consan's own report."""
    path = os.environ.get(_EXPECTED)
    if not path or not findings:
        return
    entries = []
    for f in findings:
        place = f.sides[0].place if f.sides else None
        source = str(place) if place and (place.line or place.ptx_line) else ""
        entry = f.rule + "\n"
        if source:
            entry += f"\tsource: {_glob(os.path.basename(source))}\n"
        entries.append(entry + f"\treason: expected by {item.nodeid.replace('#', ' ')}\n")
    with open(path, "a") as out:
        out.write("".join(entries))


def _judge(item, session):
    """The text of what is wrong, or None."""
    expected = _expected(item)
    found = [f for f in session.findings if f.severity != "note"]
    _suppress(item, [f for f in session.findings if f.rule in expected])
    wrong = [f for f in found if f.rule not in expected]
    missing = sorted(expected - {f.rule for f in session.findings})
    texts = [f.text for f in wrong]
    if missing:
        texts.append("consan: expected but not found: " + ", ".join(missing))
    return "\n\n".join(texts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    session = item.stash.get(_SESSION, None)
    if session is None:
        return (yield)
    passed = False
    try:
        result = yield
        passed = True
        return result
    finally:
        session.close()
        _library.recover()
        text = _judge(item, session)
        for kernel in session.unchecked:
            item.user_properties.append((UNCHECKED, f"{kernel.kernel}: {kernel.unchecked}"))
        if text and passed:
            pytest.fail(text, pytrace=False)
        if text:
            item.add_report_section("call", "consan", text)


# ---- the end ----

class _Summary:
    """What the tests, in all workers, could not check."""

    def __init__(self):
        self.unchecked = {}

    def pytest_runtest_logreport(self, report):
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == UNCHECKED:
                self.unchecked.setdefault(value, []).append(report.nodeid)

    def pytest_sessionfinish(self, session):
        if self.unchecked and not session.exitstatus \
                and not session.config.getoption("consan_allow_unchecked"):
            session.exitstatus = EXIT_UNCHECKED

    def pytest_terminal_summary(self, terminalreporter):
        if not self.unchecked:
            return
        terminalreporter.section("not checked by consan")
        for value, tests in sorted(self.unchecked.items()):
            more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
            terminalreporter.line(f"{value}  [{tests[0]}{more}]")


def pytest_sessionstart(session):
    config = session.config
    if config.getoption("consan") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Summary(), "consan_summary")
