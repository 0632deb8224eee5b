"""consan: the concurrency sanitizer for CUDA kernels, from Python.

    import consan
    with consan.session("strict") as s:
        module = s.load_file("kernels.ptx")
        s.launch(module.kernel("scale"), grid=4, block=256, args=[x, 2.0])
        assert not s.findings

Under consan-run, a session is the one of the program: its findings are those of the kernels that
were launched in the block, by whatever framework.
"""
__version__ = "0.1"
__all__ = ["session", "Session", "Finding", "Place", "Side", "Error", "under_consan_run"]


def under_consan_run():
    """Is the program watched by consan-run?"""
    import os

    return "CONSAN_RESULTS" in os.environ


def __getattr__(name):
    # loaded on first use: under consan-run every Python program imports this package
    if name not in __all__:
        raise AttributeError(f"module 'consan' has no attribute {name!r}")
    from consan import _session

    return getattr(_session, name)
