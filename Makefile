# consan. `make` builds, `make demo` shows, `make check` tests, `make help` lists the rest.
# Each folder's module.mk names its sources; the include list below is in order of flow.

SAN ?=
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
V ?= @
BUILD ?= build$(if $(SAN),-$(SAN:1=)san)$(if $(filter clang%,$(notdir $(CC))),-clang)

# The executor's vector loops, the trampolines and leave.c are for x86-64, as the programs that it watches.
ifeq ($(filter help clean distclean,$(MAKECMDGOALS)),)
ifeq ($(filter x86_64-% amd64-%,$(shell $(CC) -dumpmachine 2>/dev/null || echo x86_64-unknown)),)
$(error consan runs on x86-64 (with AVX2) only; $(CC) compiles for $(shell $(CC) -dumpmachine))
endif
endif

# nvcc is taken from NVCC=, PATH, CUDA_HOME or /usr/local/cuda. If there is none, `make deps`
# installs it into CUDA_PARTS. Tests call nvcc and ptxas by name, so PATH must have them.
CUDA_PARTS = $(CURDIR)/build/cuda
ifeq ($(NVCC),)
NVCC := $(if $(shell command -v nvcc),nvcc,$(firstword \
	$(wildcard $(CUDA_HOME)/bin/nvcc /usr/local/cuda/bin/nvcc) $(CUDA_PARTS)/bin/nvcc))
endif
ifneq ($(findstring /,$(NVCC)),)
export PATH := $(abspath $(dir $(lastword $(NVCC)))):$(PATH)
endif
# not empty if nvcc comes from CUDA_PARTS, whether or not it is installed yet
OWN_CUDA = $(filter $(CUDA_PARTS)/bin/nvcc,$(abspath $(NVCC)))
ifneq ($(OWN_CUDA),)
CUDA_HOME := $(CUDA_PARTS)
else ifeq ($(CUDA_HOME),)
CUDA_HOME := $(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC)))))
endif

WARN = -Wall -Wextra -Wshadow -Werror -Wswitch -Wstrict-prototypes -Wmissing-prototypes
# gcc 13 gives locals less than their alignment with the frames of this check (its bug 110027).
# consan-run has the runtime loaded before all else in the program, so clang's must be shared, too.
SANFLAGS_1 = -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer \
	$(if $(findstring clang,$(CC)),-shared-libasan -Qunused-arguments \
	-Wl$(comma)-rpath$(comma)$(dir $(shell $(CC) -print-file-name=libclang_rt.asan-x86_64.so)),--param=asan-use-after-return=0)
SANFLAGS_thread = -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
# for tests/fuzz, by clang alone: what libFuzzer follows, and what it detects. fuzz.sh has it stop at the
# first; without, all are listed.
SANFLAGS_fuzz = -fsanitize=fuzzer-no-link,address,undefined -fsanitize-recover=undefined -fno-omit-frame-pointer -O1
# for `make coverage`: processes that end by _exit(), as copies that try a schedule do, count, too
SANFLAGS_cover = --coverage -O1 -DCONSAN_COVERAGE
SANFLAGS = $(SANFLAGS_$(SAN))
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -I. -O2 -g -fPIC -fvisibility=hidden -pthread \
	-ffp-contract=off -fno-math-errno -MMD -MP $(WARN) $(SANFLAGS) $(if $(SAN),-DEXEC_STEP) $(CFLAGS)
LIBS = -ljansson -llz4 -lzstd -lm -lpthread -ldl
LIBS_STATIC = -Wl,-Bstatic -ljansson -llz4 -lzstd -Wl,-Bdynamic -lm -lpthread -ldl
NVCCFLAGS = -O3 -std=c++17 -lineinfo -Xcompiler -g1 -gencode=arch=compute_90a,code=[sm_90a,compute_90a]
VERSION := $(shell sed -n 's/^.define CONSAN_VERSION "\(.*\)"/\1/p' libconsan/consan.h)
comma = ,

all: $(if $(shell command -v $(NVCC)),,no-nvcc) $(BUILD)/consan $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so

# ---- the modules ----
MODULES = libconsan/base libconsan/options libconsan/event libconsan/ptx libconsan/origin libconsan/exec libconsan/order shadow \
	libconsan/finding libconsan/check reports \
	instrument/rewrite instrument/record instrument/decode libconsan/session \
	libconsan/cuda libconsan/makers libconsan/threads instrument/inject libconsan/cli libconsan/python libconsan/install kernels \
	tests/cuda tests/gpu tests/conform tests/cases tests/mutants tests/bench tests/unit tests/fuzz tests/faults
LIB_SRC =
SIMD_SRC =
include $(MODULES:%=%/module.mk)

all: $(MAKERS_LIB) $(THREADS_LIB) $(GPU_LIB) $(GPU_RESCUE)

# ---- building ----
OBJ = $(LIB_SRC:%.c=$(BUILD)/%.o) $(BUILD)/rule_examples.o \
	$(SIMD_SRC:%.c=$(BUILD)/%.avx2.o) $(SIMD_SRC:%.c=$(BUILD)/%.avx512.o)
# no-trapping-math: comparisons of floats may become vector selects
# What fuzz targets reach is compiled in seconds, not minutes.
SIMD_O ?= $(if $(filter fuzz,$(SAN)),-O1,-O3)
AVX2 = $(SIMD_O) -fno-trapping-math -march=x86-64-v3 -mtune=native -DSIMD=avx2
AVX512 = $(SIMD_O) -fno-trapping-math -march=x86-64-v4 -mprefer-vector-width=512 -DSIMD=avx512

$(BUILD)/libconsan.a: $(OBJ)
	$(V)rm -f $@ && ar rcs $@ $^

$(BUILD)/%.avx2.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX2) -c -o $@ $<
$(BUILD)/%.avx512.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX512) -c -o $@ $<
# These have vector loops; they run after the executor has tested for AVX2.
$(BUILD)/libconsan/check/%.o $(BUILD)/shadow/%.o $(BUILD)/instrument/rewrite/%.o \
	$(BUILD)/instrument/decode/%.o: CFLAGS_ALL += $(SIMD_O) -march=x86-64-v3 -mtune=native
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<
# Two steps: a change of the library links the tests again and compiles none of them.
$(BUILD)/tests/%: $(BUILD)/tests/%.o $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcriterion $(LIBS)

# ---- requirements ----
# Debian packages for building, testing and viewing reports; and, without a CUDA Toolkit, the parts
# of it that libconsan/install/cuda.txt lists.
DEB = gcc make libc6-dev libjansson-dev liblz4-dev libzstd-dev libcriterion-dev libdw-dev \
	help2man pkg-config libgtest-dev g++ libopenblas0 libfftw3-double3 libfftw3-single3

deps:
	@need='$(DEB)'; missing=; $(if $(OWN_CUDA),[ -e build/cuda ] || \
		python3 -m pip --version >/dev/null 2>&1 || need="$$need python3-pip";) \
	for p in $$need; do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'install ok' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		echo "deps: installing$$missing"; \
		if [ "$$(id -u)" = 0 ]; then sudo=; elif command -v sudo >/dev/null; then sudo=sudo; \
		else echo "deps: not root and no sudo; install these packages:$$missing"; exit 1; fi; \
		$$sudo apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq --no-install-recommends $$missing >/dev/null || exit 1; \
	fi
	@$(if $(OWN_CUDA),libconsan/install/cuda.sh build/cuda,command -v $(NVCC) >/dev/null || { \
		echo "deps: $(NVCC) not found. Without NVCC=, make takes nvcc from PATH or installs it."; exit 1; })

# For builds by clang and `make fuzz`; nothing else needs it.
deps-clang:
	@command -v clang >/dev/null || { $(if $(filter 0,$(shell id -u)),,sudo) apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive $(if $(filter 0,$(shell id -u)),,sudo) apt-get install -y -qq \
		--no-install-recommends clang libclang-rt-dev >/dev/null; } || \
		{ echo "deps-clang: clang cannot be installed"; exit 1; }

no-nvcc:
	@echo "nvcc not found: run make deps, which installs it into build/cuda; or put CUDA Toolkit 13's"
	@echo "on PATH; or give NVCC=/path/to/nvcc."; exit 1

# ---- commands ----

help:
	@echo "make           build consan-run, consan and the library into $(BUILD)/"
	@echo "make demo      run a bundled kernel and its buggy twin under consan-run"
	@echo "make check     run all tests; with SAN=1 under ASan and UBSan; with CC=clang built by clang"
	@echo "make conform   run random programs on the executor and compare with a reference;"
	@echo "               SEED=1 COUNT=1000; on a GPU make conform-gpu compares with the GPU"
	@echo "make check-threads  run the bundled kernels with consan under TSan"
	@echo "make check-fast a part of the tests that takes a minute, for SAN=1 and CC=clang"
	@echo "make check-faults  let each allocation and each I/O call fail once; FAULTS=n: only some"
	@echo "make fuzz      run libFuzzer on all that reads files; SECONDS=60 for each target; needs clang"
	@echo "make coverage  lines and branches that tests reach, by module"
	@echo "make check-gpu on a GPU: run kernels, planted bugs and specimens under --backend=gpu"
	@echo "make mutants   delete or weaken each synchronization instruction of each kernel, one"
	@echo "               at a time, and list which rule detects it"
	@echo "make bench     measure the cost of checking (uses oclgrind if it is installed)"
	@echo "make bench-gpu on a GPU: compare the cost of --backend=gpu and compute-sanitizer"
	@echo "make layers    check the dependencies between modules"
	@echo "make kernels   build the bundled CUDA kernels"
	@echo "make install   install into PREFIX (/usr/local), below DESTDIR"
	@echo "make wheel     build the wheel of the Python package (pip and the package index)"
	@echo "make check-python  run programs of Triton, CuPy, numba-cuda and pytest in a virtual"
	@echo "               environment from the package index; TORCH=1 adds PyTorch (6 GB), JAX=1 JAX (6 GB)"
	@echo "make deb       build a Debian package"
	@echo "make deps      install missing Debian packages; without nvcc, CUDA into build/cuda"
	@echo "make clean     remove what was built; make distclean removes build/cuda, too"

# Lane 0 of a warp releases a buffer while other lanes may still read it.
DEMO = $(BUILD)/kernels/ring/ring
demo: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all $(DEMO)
	@echo; echo '$$ $(BUILD)/consan-run $(DEMO)'
	@$(BUILD)/consan-run $(DEMO)
	@echo; echo '$$ $(BUILD)/consan-run $(DEMO) --rows=256 --bug=no_syncwarp'
	@$(BUILD)/consan-run $(DEMO) --rows=256 --bug=no_syncwarp; test $$? = 66

TESTS = $(UNIT_TESTS) tests/install/install tests/mutants/test tests/cases/harness/cases
.SECONDARY: $(TESTS:%=$(BUILD)/%.o)
JOBS ?= $(shell nproc)
check: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(TESTS:%=$(BUILD)/%) $(CONFORM) $(CONFORM)_gpu $(FUZZ_BIN)
	$(V)$(MAKE) --no-print-directory layers $(BUILD)/twins/assembled conform-check check-corpus check-unit

check-unit: $(TESTS:%=$(BUILD)/%)
	$(V)export LSAN_OPTIONS=suppressions=$(CURDIR)/tests/tools/lsan.supp:print_suppressions=0; \
	bad=; for t in $^; do echo "$$t"; $$t || bad="$$bad $$t"; done; \
	[ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

# Which module may use which: tests/tools/modules.txt
layers: $(OBJ) $(CUDA_OBJ) $(MAKERS_OBJ) $(CLI_OBJ) $(if $(CUPTI),$(INJECT_OBJ))
	$(V)awk -f tests/tools/layers.awk tests/tools/modules.txt $(shell find libconsan shadow instrument kernels reports \
		-name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)
	$(V)nm -A $(filter-out $(BUILD)/rule_examples.o,$^) | awk -f tests/tools/calls.awk tests/tools/modules.txt -

# Those that need no program and few seconds, for builds by other compilers and with sanitizers. Of the
# specimens a few, and random programs against the reference.
FAST_TESTS = $(addprefix tests/unit/, base/base base/pool options/options event/event ptx/ptx origin/origin \
	exec/exec exec/ops exec/types exec/lanes exec/num exec/tensor exec/tcgen05 exec/tcgen05_mma exec/reads exec/clc \
	shadow/shadow shadow/global check/check check/litmus check/pairs check/tensor finding/banks finding/group \
	finding/results finding/history reports/report reports/formats reports/exports session/consan)
FAST_CASES = tests/cases/*/cs?01*.ptx
check-fast: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) $(FAST_TESTS:%=$(BUILD)/%) $(FUZZ_BIN) $(BUILD)/tests/cases/harness/cases \
		$(CONFORM)
	$(V)$(CONFORM) --seed=1 --count=48 >$(BUILD)/tests/conform/fast.txt 2>&1 || { cat $(BUILD)/tests/conform/fast.txt; exit 1; }
	$(V)$(MAKE) --no-print-directory TESTS='$(FAST_TESTS)' check-unit
	$(V)CASES='$(FAST_CASES)' $(BUILD)/tests/cases/harness/cases --filter cases/specimen
	$(V)$(MAKE) --no-print-directory check-corpus

# Criterion's processes do not run under ThreadSanitizer, so this runs programs.
check-threads: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) SAN=thread all kernels
	$(V)$(MAKE) --no-print-directory SAN=thread run-threads
check-threads-fast: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) SAN=thread all kernels
	$(V)$(MAKE) --no-print-directory SAN=thread THREADS='--async=late "--backend=gpu-emulated --jobs=16"' run-threads
THREADS = --async=late "--backend=gpu-emulated --jobs=16" --explore=2 "--seed=3 --async=early --bank-conflicts"
run-threads:
	$(V)export TSAN_OPTIONS=suppressions=tests/tools/tsan.supp:exitcode=99; bad=; \
	for how in $(THREADS); do \
		for k in $(KERNELS:%=$(BUILD)/%); do \
			echo "$$how $$k"; $(BUILD)/consan-run --quiet --log-file=/dev/null --jobs=4 $$how $$k >/dev/null || bad="$$bad $$k"; \
		done; done; \
	[ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

clean:
	rm -rf $(filter-out build/cuda,$(wildcard build/* build/.[!.]*)) build-*
distclean:
	rm -rf build build-*

# COVER: the tests to run
COVER ?= $(UNIT_TESTS)
coverage: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) SAN=cover all kernels $(COVER:%=build-coversan/%) $(FUZZ_TARGETS:%=build-coversan/tests/fuzz/%)
	$(V)find build-coversan -name '*.gcda' -delete
	$(V)-$(MAKE) --no-print-directory SAN=cover TESTS='$(COVER)' check-unit check-corpus >build-coversan/tests.txt 2>&1
	$(V)tests/tools/coverage.sh build-coversan

.PHONY: check-fast coverage deps-clang check-threads-fast check-threads run-threads check-gpu bench-gpu all help install deb demo kernels deps no-nvcc check mutants bench layers check-unit clean distclean
-include $(shell find $(BUILD) \( -path build/cuda -o -path '$(BUILD)/venv*' \) -prune -o -type f -name '*.d' -print 2>/dev/null)
