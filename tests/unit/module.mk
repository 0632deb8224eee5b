# One Criterion binary for each file: tests/unit/MODULE/NAME.c -> $(BUILD)/tests/unit/MODULE/NAME
UNIT_TESTS = $(addprefix tests/unit/, \
	base/base base/pool options/options event/event ptx/ptx origin/origin \
	exec/tile exec/wgmma_moves exec/tensor exec/wmma exec/num exec/ops exec/lanes exec/exec exec/machine exec/runs exec/tensormap \
	exec/multimem exec/reads exec/schedule exec/tcgen05 exec/tcgen05_copy exec/tcgen05_mma exec/clc exec/texture \
	order/order shadow/shadow shadow/global shadow/global_check shadow/global_model \
	check/check check/litmus check/pairs check/tensor \
	finding/banks finding/catalogue finding/edit finding/group finding/results finding/history \
	reports/report reports/formats reports/exports reports/browser \
	session/consan session/copy session/fallback session/repair session/schedule cli/cli cli/shards \
	cuda/cuda cuda/async cuda/calls cuda/devices cuda/ends cuda/order cuda/textures cuda/threads \
	rewrite/instrument rewrite/slice decode/drain decode/refusals inject/ends inject/inject inject/operations inject/graph_order \
	inject/ranges)

$(BUILD)/tests/unit/cli/cli: $(BUILD)/consan | $(BUILD)/consan-run
$(BUILD)/tests/unit/cli/shards: | $(BUILD)/consan $(BUILD)/tests/cuda/ranks $(BUILD)/consan-run
$(BUILD)/tests/unit/cuda/calls.o: CFLAGS_ALL += -DCUDA_INCLUDE='"$(CUDA_HOME)/include"'
$(BUILD)/tests/unit/cuda/cuda $(BUILD)/tests/unit/cuda/async $(BUILD)/tests/unit/cuda/devices $(BUILD)/tests/unit/cuda/ends $(BUILD)/tests/unit/cuda/order $(BUILD)/tests/unit/cuda/textures $(BUILD)/tests/unit/cuda/threads: | $(CUDA_PROGRAMS) $(BUILD)/consan-run
$(BUILD)/tests/unit/cuda/order: | $(BUILD)/tests/gpu/operations
$(BUILD)/tests/unit/inject/graph_order: $(BUILD)/instrument/inject/graph_order.o
$(BUILD)/tests/unit/inject/ranges: $(BUILD)/instrument/inject/ranges.o
$(BUILD)/tests/unit/exec/machine: | $(BUILD)/tests/cuda/machine $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
$(BUILD)/tests/unit/session/fallback: | $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
$(BUILD)/tests/unit/session/schedule: $(addprefix $(BUILD)/tests/cases/harness/,run.o specimen.o)
$(BUILD)/tests/unit/inject/ends $(BUILD)/tests/unit/inject/inject $(BUILD)/tests/unit/inject/operations: | $(if $(CUPTI),$(FAKE_DRIVER)) $(BUILD)/consan-run
$(BUILD)/tests/unit/rewrite/instrument $(BUILD)/tests/unit/decode/refusals: | $(BUILD)/tests/cases/harness/cases \
		$(BUILD)/tests/gpu/scenarios $(BUILD)/tests/gpu/scenario $(BUILD)/tests/gpu/specimens $(BUILD)/tests/gpu/planted_bugs \
		$(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run
$(BUILD)/tests/install/install: | $(BUILD)/install/done
