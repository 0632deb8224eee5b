# One Criterion binary for each file: tests/unit/MODULE/NAME.c -> $(BUILD)/tests/unit/MODULE/NAME
UNIT_TESTS = $(patsubst %.c,%,$(sort $(wildcard tests/unit/*/*.c)))

$(BUILD)/tests/unit/cli/cli: $(BUILD)/consan | $(BUILD)/consan-run
$(BUILD)/tests/unit/cli/shards: | $(BUILD)/consan $(BUILD)/tests/cuda/ranks $(BUILD)/consan-run
$(BUILD)/tests/unit/cuda/access: $(addprefix $(BUILD)/libconsan/cuda/,access.o access_run.o)
$(BUILD)/tests/unit/cuda/calls.o: CFLAGS_ALL += -DCUDA_INCLUDE='"$(CUDA_HOME)/include"'
$(BUILD)/tests/unit/cuda/cuda $(BUILD)/tests/unit/cuda/async $(BUILD)/tests/unit/cuda/devices $(BUILD)/tests/unit/cuda/ends $(BUILD)/tests/unit/cuda/order $(BUILD)/tests/unit/cuda/textures $(BUILD)/tests/unit/cuda/threads: | $(CUDA_PROGRAMS) $(BUILD)/consan-run
$(BUILD)/tests/unit/cuda/order: | $(BUILD)/tests/gpu/operations
$(BUILD)/tests/unit/inject/graph_order: $(BUILD)/instrument/inject/graph_order.o
$(BUILD)/tests/unit/inject/ranges: $(BUILD)/instrument/inject/ranges.o
$(BUILD)/tests/unit/exec/machine: | $(BUILD)/tests/cuda/machine $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
$(BUILD)/tests/unit/session/fallback: | $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
$(BUILD)/tests/unit/session/schedule $(BUILD)/tests/unit/rewrite/ticket: $(addprefix $(BUILD)/tests/cases/harness/,run.o specimen.o)
$(BUILD)/tests/unit/inject/ends $(BUILD)/tests/unit/inject/inject $(BUILD)/tests/unit/inject/operations \
		$(BUILD)/tests/unit/inject/replay: | $(if $(CUPTI),$(FAKE_DRIVER)) $(BUILD)/consan-run
$(BUILD)/tests/unit/decode/screen: | $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run
$(BUILD)/tests/unit/rewrite/instrument $(BUILD)/tests/unit/decode/refusals: | $(BUILD)/tests/cases/harness/cases \
		$(BUILD)/tests/gpu/scenarios $(BUILD)/tests/gpu/scenario $(BUILD)/tests/gpu/specimens $(BUILD)/tests/gpu/planted_bugs \
		$(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run
$(BUILD)/tests/install/install: | $(BUILD)/install/done
