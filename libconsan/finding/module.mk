# rules, findings, result files, suppressions, history, bank conflicts
LIB_SRC += $(addprefix libconsan/finding/, \
	banks.c edit.c finding.c group.c group_link.c history.c ptx_rules.c recorder.c \
	recorder_history.c recorder_tcgen05.c rule_example.c suppress.c results/history.c results/json.c results/live.c results/load.c results/lost.c results/numbers.c \
	results/results.c results/sites.c results/write.c)

# The examples of `consan explain` are specimens.
$(BUILD)/rule_examples.c: tests/tools/examples.awk $(wildcard tests/cases/*/cs*.ptx)
	@mkdir -p $(@D)
	$(V)awk -f $^ >$@
$(BUILD)/rule_examples.o: $(BUILD)/rule_examples.c
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<
