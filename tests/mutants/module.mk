# `make mutants`: the rules that detect the deletion or weakening of a synchronization instruction
MUTANTS = tests/mutants/mutate.c tests/mutants/outcome.c tests/mutants/mutants.c
$(BUILD)/tests/mutants/mutants: $(MUTANTS:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/mutants/test: | $(BUILD)/tests/mutants/mutants $(KERNELS:%=$(BUILD)/%) \
		$(BUILD)/consan-run $(BUILD)/libconsan-cuda.so

mutants: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/mutants/mutants
	$(V)$(BUILD)/tests/mutants/mutants $(BUILD)
