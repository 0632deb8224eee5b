# the Python package: consan-run puts $(BUILD)/python in front of PYTHONPATH
PYTHON_PARTS = sitecustomize.py $(patsubst libconsan/python/%,%,$(wildcard libconsan/python/consan/*.py))
$(BUILD)/consan-run: | $(BUILD)/python
$(BUILD)/python:
	@mkdir -p $(@D)
	$(V)ln -sfn $(CURDIR)/libconsan/python $@
