# the Python package: consan-run puts $(BUILD)/python in front of PYTHONPATH
PYTHON_PARTS = sitecustomize.py consan_setup.py $(patsubst libconsan/python/%,%,$(wildcard libconsan/python/consan/*.py))
$(BUILD)/consan-run: | $(BUILD)/python
$(BUILD)/python:
	@mkdir -p $(@D)
	$(V)ln -sfn $(CURDIR)/libconsan/python $@

# The wheel is for `pytest --consan` and for the bindings; under consan-run the folder is enough.
PYTHON ?= python3
wheel:
	$(V)grep -q '^__version__ = "$(VERSION)"' libconsan/python/consan/__init__.py
	$(V)rm -rf $(BUILD)/wheel && mkdir -p $(BUILD)/wheel/from
	$(V)cp -r libconsan/python/pyproject.toml libconsan/python/consan $(BUILD)/wheel/from
	$(V)$(PYTHON) -m pip wheel -q --no-deps -w $(BUILD)/wheel $(BUILD)/wheel/from
	$(V)rm -rf $(BUILD)/wheel/from && ls $(BUILD)/wheel/*.whl
.PHONY: wheel

# Programs of the frameworks, in a virtual environment from the package index; so `make check`, which
# needs no network but for `deps`, does not run them.
VENV ?= $(abspath $(BUILD))/venv$(if $(TORCH),-torch)$(if $(JAX),-jax)
PYTHON_NEEDS = numpy pytest pytest-xdist triton cupy-cuda13x 'numba-cuda[cu13]' $(if $(TORCH),torch ninja setuptools) \
	$(if $(JAX),'jax[cuda13]' absl-py)
$(VENV)/bin/python:
	$(V)$(PYTHON) -m venv $(VENV)
	$(V)$(VENV)/bin/pip install -q $(PYTHON_NEEDS) || { rm -rf $(VENV); \
		echo "check-python: the package index cannot be reached, or lacks one of: $(PYTHON_NEEDS)"; exit 1; }
check-python: all $(BUILD)/libconsan.so.0 $(VENV)/bin/python
	$(V)$(VENV)/bin/python -c 'import importlib.metadata as m; print(", ".join(n + " " + m.version(n) \
		for n in "numpy triton cupy-cuda13x numba-cuda $(if $(TORCH),torch) $(if $(JAX),jax)".split()))'
	$(V)cd tests/python && env -u CC -u CFLAGS PYTHONDONTWRITEBYTECODE=1 CONSAN_BUILD=$(abspath $(BUILD)) TORCH=$(TORCH) JAX=$(JAX) \
		$(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider $(TESTS_PYTHON)
.PHONY: check-python
