# `make check-faults`: each allocation and each I/O call fails once; FAULTS=n: at most n of each use
FAULTS ?= 0
$(BUILD)/tests/faults/fault.so: tests/faults/fault.c
	@mkdir -p $(@D)
	$(V)$(CC) -std=gnu17 -O1 -g -fPIC -shared -fvisibility=hidden $(WARN) -Wno-shadow -o $@ $< -ldl
check-faults: $(BUILD)/tests/faults/fault.so all $(BUILD)/kernels/ring/ring
	$(V)tests/faults/faults.sh $(BUILD) $(FAULTS)
.PHONY: check-faults
