# GPU mode: tests for a machine with a GPU, and a fake driver for other machines.
$(BUILD)/tests/gpu/planted_bugs: $(patsubst %.c,$(BUILD)/%.o,tests/gpu/planted_bugs.c tests/gpu/schedules.c tests/gpu/runner.c \
		tests/cases/harness/found.c) $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/gpu/operations: $(patsubst %.c,$(BUILD)/%.o,tests/gpu/operations.c tests/gpu/runner.c) $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/gpu/scenarios: tests/gpu/scenarios.c tests/common/shell.h
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $<
# a CUDA program that is linked with the driver's library only, and without sanitizers
$(BUILD)/tests/gpu/specimen: tests/gpu/specimen.c tests/cases/harness/specimen.c libconsan/base/base.c libconsan/base/folder.c libconsan/base/visible.c \
		tests/cases/harness/specimen.h libconsan/base/base.h
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O2 -g $(WARN) -I. -isystem $(CUDA_HOME)/include -o $@ $(filter %.c,$^) $(CUDA_LINK)
$(BUILD)/tests/gpu/specimens: $(patsubst %.c,$(BUILD)/%.o,tests/gpu/specimens.c tests/gpu/schedules.c tests/gpu/runner.c \
		tests/cases/harness/specimen.c tests/cases/harness/judge.c tests/cases/harness/found.c) $(BUILD)/libconsan.a | $(BUILD)/tests/gpu/specimen
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/gpu/tensor_edge $(BUILD)/tests/gpu/tensor_map: $(BUILD)/tests/gpu/%: tests/gpu/%.c | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O1 -g $(WARN) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK)
# a fake driver for machines without a GPU, and one that is too old
$(BUILD)/tests/gpu/driver/libcuda.so.1: CFLAGS_DRIVER =
$(BUILD)/tests/gpu/old/libcuda.so.1: CFLAGS_DRIVER = -DOLD
$(BUILD)/tests/gpu/driver/libcuda.so.1 $(BUILD)/tests/gpu/old/libcuda.so.1: tests/gpu/fake_driver.c tests/gpu/fake_driver_graph.c \
		tests/gpu/fake_driver_streams.c tests/gpu/fake_driver_times.c tests/gpu/fake_driver_records.c tests/gpu/fake_driver.h instrument/record/record.h
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O1 -g -fPIC -shared -fvisibility=hidden $(WARN) -I. $(CFLAGS_DRIVER) \
		-isystem $(CUDA_HOME)/include -isystem $(CUDA_HOME)/extras/CUPTI/include -Wl,-soname,libcuda.so.1 -o $@ $(filter %.c,$^)
$(BUILD)/tests/gpu/driver_client $(BUILD)/tests/gpu/order_client $(BUILD)/tests/gpu/replay_client: $(BUILD)/tests/gpu/%: tests/gpu/%.c tests/gpu/client.h
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O1 -g $(WARN) -I. -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/gpu/sm_90a.fatbin: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -fatbin -gencode=arch=compute_90a,code=compute_90a -o $@ $<
# as of a program that is compiled in one step: with PTX and machine code
$(BUILD)/tests/gpu/arch.fatbin: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -fatbin -arch=sm_90a -o $@ $<
# programs whose own files have PTX, as nvcc leaves it
$(BUILD)/tests/gpu/suits_client: $(BUILD)/tests/gpu/replay_client $(BUILD)/tests/gpu/sm_90a.fatbin
$(BUILD)/tests/gpu/early_client: $(BUILD)/tests/gpu/driver_client $(BUILD)/tests/gpu/arch.fatbin
$(BUILD)/tests/gpu/suits_client $(BUILD)/tests/gpu/early_client:
	$(V)objcopy --add-section .nv_fatbin=$(filter %.fatbin,$^) --set-section-alignment .nv_fatbin=8 $(filter %_client,$^) $@
FAKE_DRIVER = $(addprefix $(BUILD)/tests/gpu/,driver/libcuda.so.1 old/libcuda.so.1 driver_client order_client replay_client suits_client early_client \
	sm_90a.fatbin arch.fatbin)
$(BUILD)/tests/gpu/scenario: tests/gpu/scenario.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $<

$(BUILD)/tests/gpu/bench: tests/gpu/bench.c tests/common/shell.h
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $<

# on a machine with a GPU
bench-gpu: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/gpu/bench $(BUILD)/tests/bench/rewrite
	$(V)$(BUILD)/tests/gpu/bench $(BUILD)
	$(V)$(BUILD)/tests/bench/rewrite
check-gpu: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/gpu/planted_bugs \
		$(BUILD)/tests/gpu/scenarios $(BUILD)/tests/gpu/scenario $(BUILD)/tests/gpu/specimens \
		$(BUILD)/tests/gpu/tensor_edge $(BUILD)/tests/gpu/tensor_map \
		$(BUILD)/tests/gpu/operations $(BUILD)/tests/cuda/order
	$(V)for program in tensor_edge tensor_map; do \
		$(BUILD)/tests/gpu/$$program >$(BUILD)/tests/gpu/$$program.gpu; \
		$(BUILD)/consan-run --arch=sm_90a $(BUILD)/tests/gpu/$$program 2>/dev/null \
		| diff $(BUILD)/tests/gpu/$$program.gpu - || echo "$$program: < GPU, > executor"; done
	$(V)$(BUILD)/tests/gpu/scenarios $(BUILD) gpu
	$(V)$(BUILD)/tests/gpu/operations --jobs=8 --log=$(BUILD)/tests/gpu/operations.txt $(BUILD) gpu
	$(V)$(BUILD)/tests/gpu/specimens --log=$(BUILD)/tests/gpu/specimens.txt $(BUILD) gpu
	$(V)$(BUILD)/tests/gpu/planted_bugs $(BUILD) gpu
