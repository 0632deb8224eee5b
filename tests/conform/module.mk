# `make conform`: the executor against a reference; `make conform-gpu`: against a GPU.
CONFORM_SRC = $(addprefix tests/conform/, rng.c type.c real.c scalar.c program.c cpu.c gpu.c compare.c \
	coverage.c int.c bits.c pred.c half_pred.c float.c approx.c \
	cvt.c warp.c redop.c atom.c \
	matrix.c mma.c mma_quads.c mma_sparse.c multimem.c fragment.c wmma.c wgmma.c \
	memory.c video.c copy.c mbarrier.c tma.c tma_map.c cluster.c)
# conform_gpu may be copied to a machine that has only a driver
CONFORM = $(BUILD)/tests/conform/conform
$(BUILD)/tests/conform/main_gpu.o: tests/conform/conform.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -DCONFORM_GPU -c -o $@ $<
$(CONFORM): $(CONFORM_SRC:%.c=$(BUILD)/%.o) $(BUILD)/tests/conform/conform.o $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(CONFORM)_gpu: $(CONFORM_SRC:%.c=$(BUILD)/%.o) $(BUILD)/tests/conform/main_gpu.o $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS_STATIC)

SEED ?= 1
COUNT ?= 1000
conform: $(CONFORM)
	$(V)$(CONFORM) --seed=$(SEED) --count=$(COUNT)
conform-gpu: $(CONFORM)_gpu
	$(V)$(CONFORM)_gpu --seed=$(SEED) --count=$(COUNT)
# The part of `make check`, a few seconds: both vector builds; and the GPU's programs under consan-run,
# which shows that neither checking nor instrumentation changes a value (a program with sanitizers of
# its own cannot be run that way)
conform-check: $(CONFORM) $(if $(SAN),,$(CONFORM)_gpu $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so)
	@echo "$(CONFORM)"
	$(V)for simd in "CONSAN_SIMD=avx2" "CONSAN_STEP=1" "CONSAN_SIMD="; do \
		env $$simd $(CONFORM) --seed=1 --count=96 >$(BUILD)/tests/conform/check.txt \
		|| { cat $(BUILD)/tests/conform/check.txt; exit 1; }; done
	$(V)for backend in $(if $(SAN),,cpu gpu-emulated); do \
		$(BUILD)/consan-run --backend=$$backend --log-file=$(BUILD)/tests/conform/log.txt \
		$(CONFORM)_gpu --seed=2 --count=8 >$(BUILD)/tests/conform/check.txt \
		|| { cat $(BUILD)/tests/conform/log.txt $(BUILD)/tests/conform/check.txt; exit 1; }; done
.PHONY: conform conform-gpu conform-check
