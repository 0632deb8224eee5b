MAKERS_TESTS = $(if $(wildcard $(CUDA_HOME)/include/nvJitLink.h), \
	$(addprefix $(BUILD)/tests/cuda/,makers makers_lazy makers_looked_up))
# CUDA programs for the tests of libconsan/cuda: one object, linked in all supported ways.
CUDA_PROGRAMS = $(addprefix $(BUILD)/tests/cuda/,static shared stripped ours sass plugin.so unknown unknown.so linked driver refused package dependent async devices textures order inside threads threads_ptds ends ends_asan calls calls_plain libraries libraries_looked_up) $(MAKERS_TESTS)
# The library for -lcuda where no driver is installed: a stub with the driver API's names that our
# library defines. At run time the programs load libcuda.so.1 of consan or of the driver.
CUDA_STUB = $(BUILD)/stubs/libcuda.so
CUDA_LINK = -L$(BUILD)/stubs -lcuda
$(CUDA_STUB): $(BUILD)/libconsan-cuda.so
	@mkdir -p $(@D)
	$(V)nm -D --defined-only $< | awk '$$3 ~ /^cu[A-Z]/ { print "void " $$3 "(void) { }" }' \
		| $(CC) -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ -x c -
$(BUILD)/tests/cuda/static $(BUILD)/tests/cuda/shared $(BUILD)/tests/cuda/dependent $(BUILD)/tests/cuda/devices $(BUILD)/tests/cuda/textures $(BUILD)/tests/cuda/ends $(BUILD)/tests/cuda/ends_asan $(BUILD)/tests/cuda/driver $(BUILD)/tests/cuda/refused $(BUILD)/tests/cuda/package \
	$(BUILD)/tests/cuda/calls $(BUILD)/tests/cuda/calls_plain \
	$(BUILD)/tests/gpu/specimen $(BUILD)/tests/gpu/driver_client: | $(CUDA_STUB)
$(BUILD)/tests/cuda/runtime.o: tests/cuda/runtime.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -c -o $@ $<
$(BUILD)/tests/cuda/static: $(BUILD)/tests/cuda/runtime.o
	$(V)$(NVCC) -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/shared: $(BUILD)/tests/cuda/runtime.o
	$(V)$(NVCC) -cudart shared -o $@ $< $(CUDA_LINK) -Xlinker -rpath=$(CUDA_HOME)/lib64
$(BUILD)/tests/cuda/stripped: $(BUILD)/tests/cuda/static
	$(V)strip -o $@ $<
# without a runtime of its own: the linker takes all functions from our library
$(BUILD)/tests/cuda/ours: tests/cuda/small.cu | $(BUILD)/libcuda.so
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -o $@ $< -L$(BUILD) -lcuda
$(BUILD)/tests/cuda/sass: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=sm_90a -o $@ $<
$(BUILD)/tests/cuda/plugin.so: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -Xcompiler -fPIC -shared -o $@ $<
# stripped, and of a runtime that no archive has: the operand of its nops is another
$(BUILD)/tests/cuda/unknown: $(BUILD)/tests/cuda/static
$(BUILD)/tests/cuda/unknown.so: $(BUILD)/tests/cuda/plugin.so
$(BUILD)/tests/cuda/unknown $(BUILD)/tests/cuda/unknown.so:
	$(V)strip -o $@.part $<
	$(V)LC_ALL=C sed 's/\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00/\x66\x2e\x0f\x1f\x84\x00\x01\x00\x00\x00/g' $@.part >$@
	$(V)rm $@.part && chmod +x $@
$(BUILD)/tests/cuda/linked: tests/cuda/linked.cu
	@mkdir -p $(@D)
	$(V)for p in 1 2; do $(NVCC) -arch=sm_90 -rdc=true -lineinfo $$([ $$p = 1 ] || echo -DPART) \
		-c -o $@$$p.o $< || exit 1; done; $(NVCC) -arch=sm_90 -rdc=true -o $@ $@1.o $@2.o
$(BUILD)/tests/cuda/order: tests/cuda/order.cu $(wildcard tests/cuda/order_*.cuh)
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -g -o $@ $< $(CUDA_LINK) \
		-Xcompiler -pthread
$(BUILD)/tests/cuda/threads $(BUILD)/tests/cuda/threads_ptds: tests/cuda/threads.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -g \
		$(if $(findstring ptds,$@),--default-stream per-thread) -o $@ $< -Xcompiler -pthread
$(BUILD)/tests/cuda/inside: tests/cuda/inside.cu $(wildcard tests/cuda/inside_*.cuh)
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -arch=sm_90 -rdc=true -lineinfo -g -o $@ $< -lcudadevrt
$(BUILD)/tests/cuda/dependent: tests/cuda/dependent.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/devices: tests/cuda/devices.cu $(wildcard tests/cuda/devices_*.cuh)
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/ends: tests/cuda/ends.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/ends_asan: tests/cuda/ends.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -Xcompiler -fsanitize=address -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/textures: tests/cuda/textures.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -o $@ $< $(CUDA_LINK)
# with line information of the host, and without
$(BUILD)/tests/cuda/calls: tests/cuda/calls.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -g -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/calls_plain: tests/cuda/calls.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/async: tests/cuda/async.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -g -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/driver $(BUILD)/tests/cuda/refused $(BUILD)/tests/cuda/package: $(BUILD)/tests/cuda/%: tests/cuda/%.c
	@mkdir -p $(@D)
	$(V)$(CC) -D_GNU_SOURCE -I. -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -ldl
$(BUILD)/tests/cuda/ranks: tests/cuda/ranks.c | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK)

$(BUILD)/tests/cuda/machine: tests/cuda/machine.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -diag-suppress 20054 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -o $@ $<
# one file with the names of both libraries
$(BUILD)/tests/cuda/fake/libcublas.so.13: tests/cuda/fake_library.c tests/cuda/library.h
	@mkdir -p $(@D)
	$(V)$(CC) -shared -fPIC -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/tests/cuda/libraries: tests/cuda/libraries.c $(BUILD)/tests/cuda/fake/libcublas.so.13 | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) $(@D)/fake/libcublas.so.13 -Wl,-rpath,'$$ORIGIN/fake' -lm -ldl
$(BUILD)/tests/cuda/libraries_looked_up: tests/cuda/libraries.c $(BUILD)/tests/cuda/fake/libcublas.so.13 | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -DLOOKED_UP -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -Wl,-rpath,'$$ORIGIN/fake' -lm -ldl
# linked with NVRTC and nvJitLink, at once and lazily, and looking their functions up; the parts of
# a toolkit that `make deps` installs have neither
MAKERS_LIBS = -lnvrtc -lnvJitLink -Wl,-rpath,$(CUDA_HOME)/lib64
$(BUILD)/tests/cuda/makers: tests/cuda/makers.c | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -L$(CUDA_HOME)/lib64 $(MAKERS_LIBS) -Wl,-z,now
$(BUILD)/tests/cuda/makers_lazy: tests/cuda/makers.c | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -L$(CUDA_HOME)/lib64 $(MAKERS_LIBS) -Wl,-z,lazy
$(BUILD)/tests/cuda/makers_looked_up: tests/cuda/makers.c | $(CUDA_STUB)
	@mkdir -p $(@D)
	$(V)$(CC) -DLOOKED_UP -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -ldl -Wl,-rpath,$(CUDA_HOME)/lib64
