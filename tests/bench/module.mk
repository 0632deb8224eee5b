# `make bench`: the cost of checking
BENCH = $(addprefix $(BUILD)/tests/bench/,bench rate events rewrite matmul cluster)
$(BUILD)/tests/bench/matmul $(BUILD)/tests/bench/cluster: $(BUILD)/tests/bench/%: tests/bench/%.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $<

bench: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BENCH)
	$(V)$(BUILD)/tests/bench/bench $(BUILD)
	$(V)$(BUILD)/tests/bench/events
	$(V)$(BUILD)/tests/bench/rewrite
