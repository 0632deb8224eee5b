# the Python package: consan-run puts $(BUILD)/python in front of PYTHONPATH
PYTHON_PARTS = sitecustomize.py $(patsubst libconsan/python/%,%,$(wildcard libconsan/python/consan/*.py))
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
