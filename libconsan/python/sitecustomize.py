"""Python imports this module at its start, since consan-run puts this folder first in PYTHONPATH.

It sets up the frameworks for consan, then imports the sitecustomize that it hides, if there is one.
"""
import sys
from importlib.machinery import PathFinder
from os import environ, path


def _chain():
    here = path.dirname(path.abspath(__file__))
    others = [p for p in sys.path if path.abspath(p) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if not spec or not spec.loader:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if "CONSAN_RESULTS" in environ:
    import consan_setup

    try:
        consan_setup.install()
    except Exception as e:
        consan_setup.complain("the start", e)
_chain()
