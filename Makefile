# consan. `make` builds, `make demo` shows, `make check` proves, `make help`.
# Sources stand by name, in the order of flow: this file is the table of contents.

SAN ?=
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
NVCC ?= nvcc
V ?= @
BUILD ?= build$(if $(SAN),-$(SAN:1=)san)$(if $(filter clang%,$(notdir $(CC))),-clang)

WARN = -Wall -Wextra -Wshadow -Werror -Wswitch -Wstrict-prototypes -Wmissing-prototypes
SANFLAGS_1 = -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS_thread = -fsanitize=thread -fno-omit-frame-pointer -Wno-tsan
SANFLAGS = $(SANFLAGS_$(SAN))
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -pthread \
	-ffp-contract=off -fno-math-errno -MMD -MP $(WARN) $(SANFLAGS) $(CFLAGS)
LIBS = -ljansson -llz4 -lzstd -lm -lpthread -ldl

# ---- the rooms, in order of flow ----

BASE = libconsan/base.c libconsan/append.c libconsan/site.c libconsan/event.c libconsan/refuse.c libconsan/options.c libconsan/demangle.c \
	libconsan/finding.c libconsan/history.c libconsan/recorder.c libconsan/recorder_tell.c libconsan/event_code.c libconsan/event_save.c libconsan/event_load.c libconsan/event_print.c \
	libconsan/crew.c libconsan/relay.c libconsan/banks.c libconsan/results_json.c libconsan/results_history.c libconsan/results_load.c libconsan/results.c libconsan/results_write.c libconsan/rule_example.c libconsan/suppress.c libconsan/progress.c libconsan/fatbin.c libconsan/wg_desc.c

PTX = libconsan/ptx/table.c libconsan/ptx/order.c libconsan/ptx/wmma.c libconsan/ptx/lex.c libconsan/ptx/scope.c libconsan/ptx/loc.c \
	libconsan/ptx/decl.c libconsan/ptx/init.c libconsan/ptx/operand.c libconsan/ptx/body.c \
	libconsan/ptx/cfg.c libconsan/ptx/parse.c libconsan/ptx/print.c libconsan/ptx/verify.c

# plain C of the executor ...
EXEC = libconsan/exec/grid.c libconsan/exec/cluster.c libconsan/exec/warp.c \
	libconsan/exec/context.c libconsan/exec/module.c libconsan/exec/decode.c \
	libconsan/exec/operand.c libconsan/exec/layout.c libconsan/exec/regs.c \
	libconsan/exec/regs_note.c libconsan/exec/mem.c libconsan/exec/queue.c \
	libconsan/exec/control.c libconsan/exec/bar.c libconsan/exec/address.c \
	libconsan/exec/call.c libconsan/exec/follow.c libconsan/exec/builtin.c libconsan/exec/heap.c \
	libconsan/exec/async.c libconsan/exec/mbarrier.c libconsan/exec/cpasync.c libconsan/exec/bulk.c libconsan/exec/replace.c libconsan/exec/stasync.c \
	libconsan/exec/wmma.c libconsan/exec/matrix.c libconsan/exec/mma.c libconsan/exec/wgmma.c \
	libconsan/exec/fence.c libconsan/exec/num.c libconsan/exec/tensormap.c \
	libconsan/exec/tensor_copy.c libconsan/exec/tensor_reduce.c
# ... and its lane loops and tile loops, built once per vector width
EXEC_SIMD = libconsan/exec/mem_lane.c libconsan/exec/atom.c \
	libconsan/exec/num_rows.c libconsan/exec/mma_tile.c libconsan/exec/wgmma_tile.c \
	libconsan/exec/ops_arith.c libconsan/exec/ops_int.c libconsan/exec/ops_bits.c libconsan/exec/ops_carry.c \
	libconsan/exec/ops_float.c libconsan/exec/ops_half.c libconsan/exec/ops_cvt.c \
	libconsan/exec/ops_pred.c libconsan/exec/ops_mov.c libconsan/exec/ops_warp.c

SHADOW = shadow/cells.c shadow/past.c shadow/table.c shadow/global.c shadow/global_log.c shadow/global_tract.c shadow/global_lanes.c \
	shadow/global_state.c shadow/global_step.c shadow/global_crowd.c

# GPU mode: what the instrumented PTX is, and what its records mean
INSTRUMENT = instrument/plan.c instrument/rivals.c instrument/hook.c instrument/operands.c instrument/calls.c instrument/entry.c instrument/regs.c instrument/rewrite.c instrument/statement.c instrument/decode.c instrument/values.c instrument/extents.c instrument/refusals.c instrument/access.c instrument/gather.c instrument/global.c instrument/maps.c instrument/map_bits.c instrument/graph_order.c instrument/bulk.c \
	instrument/mbarrier.c instrument/wgmma.c instrument/sync.c instrument/sites.c instrument/merge.c instrument/jobs.c instrument/alike.c instrument/drain.c instrument/drain_kept.c instrument/drain_end.c instrument/barriers.c instrument/hang.c

CHECK = libconsan/check/check.c libconsan/check/clock.c libconsan/check/foreign.c libconsan/check/order.c \
	libconsan/check/global.c libconsan/check/global_sync.c libconsan/check/global_race.c libconsan/check/global_report.c libconsan/check/grids.c \
	libconsan/check/access.c libconsan/check/race.c libconsan/check/async.c \
	libconsan/check/mbar.c libconsan/check/wgmma.c libconsan/check/barrier.c \
	libconsan/check/cluster.c libconsan/check/tensormap.c \
	libconsan/check/hang.c libconsan/check/report.c

REPORTS = reports/page.c reports/source.c reports/words.c reports/text.c reports/coverage.c reports/banks.c reports/json.c \
	reports/sarif.c reports/markup.c reports/junit.c reports/html.c reports/side.c reports/timeline.c \
	reports/memory.c reports/waits.c reports/covered.c reports/rules.c reports/assets.c reports/write.c

# the front door: opens every room
DOOR = libconsan/gpu.c libconsan/gpu_brief.c libconsan/gpu_module.c libconsan/gpu_maps.c libconsan/gpu_rehearse.c libconsan/session.c libconsan/load.c libconsan/consan.c libconsan/explore.c libconsan/fallback.c libconsan/view.c libconsan/replay.c

# injected into the watched program where there is a GPU
INJECT = instrument/inject.c instrument/inject_module.c instrument/inject_pool.c instrument/inject_drain.c instrument/inject_alike.c instrument/inject_rescue.c instrument/inject_launch.c instrument/inject_map.c instrument/inject_memory.c instrument/inject_calls.c instrument/inject_graph.c instrument/inject_graph_calls.c instrument/inject_step.c instrument/inject_times.c

# preloaded into the watched program ...
CUDA = libconsan/cuda/redirect.c libconsan/cuda/table.c libconsan/cuda/handle.c \
	libconsan/cuda/gpu.c libconsan/cuda/error.c libconsan/cuda/link.c libconsan/cuda/image.c \
	libconsan/cuda/memory.c libconsan/cuda/launch.c libconsan/cuda/region.c libconsan/cuda/stream.c libconsan/cuda/graph.c \
	libconsan/cuda/rt_device.c libconsan/cuda/rt_memory.c libconsan/cuda/rt_module.c \
	libconsan/cuda/rt_launch.c libconsan/cuda/rt_stream.c \
	libconsan/cuda/drv_device.c libconsan/cuda/drv_memory.c libconsan/cuda/drv_module.c \
	libconsan/cuda/drv_stream.c
# ... by this
RUN = libconsan/cuda/run.c

# ---- tests: one binary per file ----
TESTS = tests/test_banks.c tests/test_global.c tests/test_check.c tests/test_catalogue.c tests/test_shadow.c tests/test_base.c tests/test_options.c tests/test_event.c tests/test_crew.c tests/test_ptx.c tests/test_results.c tests/test_report.c tests/test_formats.c tests/test_history.c tests/test_consan.c tests/test_cli.c tests/test_tile.c tests/test_tensor.c tests/test_wmma.c tests/test_num.c tests/test_ops.c tests/test_lanes.c tests/test_exec.c tests/test_machine.c tests/test_cuda.c tests/test_install.c tests/test_instrument.c tests/test_drain.c tests/test_inject.c tests/test_map_bits.c tests/test_graph_order.c tests/test_refusals.c tests/test_mutants.c tests/test_fallback.c tests/cases.c

# ---- rules ----

SRC = $(BASE) $(PTX) $(EXEC) $(SHADOW) $(INSTRUMENT) $(CHECK) $(REPORTS) $(DOOR)
OBJ = $(SRC:%.c=$(BUILD)/%.o) $(BUILD)/rule_examples.o \
	$(EXEC_SIMD:%.c=$(BUILD)/%.avx2.o) $(EXEC_SIMD:%.c=$(BUILD)/%.avx512.o)
# no-trapping-math: lets comparisons of floats become vector selects
comma = ,
AVX2 = -O3 -fno-trapping-math -march=x86-64-v3 -mtune=native -DSIMD=avx2
AVX512 = -O3 -fno-trapping-math -march=x86-64-v4 -mprefer-vector-width=512 -DSIMD=avx512

all: $(BUILD)/consan $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so

# ---- what a fresh machine needs ----
# Debian packages for building, testing and looking at reports. nvcc and its
# headers come with NVIDIA's CUDA Toolkit 13, which Debian does not package.
DEB = gcc make libc6-dev libjansson-dev liblz4-dev libzstd-dev libcriterion-dev \
	help2man pkg-config libgtest-dev g++

deps:
	@missing=; for p in $(DEB); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'install ok' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		echo "deps: installing$$missing"; \
		if [ "$$(id -u)" = 0 ]; then sudo=; elif command -v sudo >/dev/null; then sudo=sudo; \
		else echo "deps: not root and no sudo; install by hand:$$missing"; exit 1; fi; \
		$$sudo apt-get update -qq; \
		DEBIAN_FRONTEND=noninteractive $$sudo apt-get install -y -qq $$missing >/dev/null || exit 1; \
	fi; \
	command -v $(NVCC) >/dev/null || { \
		echo "deps: $(NVCC) not found. Install NVIDIA's CUDA Toolkit 13 (https://developer.nvidia.com/cuda-downloads)"; \
		echo "deps: and put its bin directory on PATH, or say make NVCC=/path/to/nvcc."; exit 1; }

# ---- what to run ----

help:
	@echo "make           build consan-run, consan and the library into $(BUILD)/"
	@echo "make demo      run a bundled kernel and its buggy twin under consan-run"
	@echo "make check     all tests; SAN=1: consan itself under ASan and UBSan; CC=clang works, too"
	@echo "make check-threads the bundled kernels, consan built with SAN=thread (TSan)"
	@echo "make mutants   what consan says of each kernel when one synchronisation is deleted or weakened"
	@echo "make bench     what checking costs, as ratios of one run (uses oclgrind if installed)"
	@echo "make check-gpu     the bundled kernels, their bugs and the specimens under --backend=gpu, where there is a GPU"
	@echo "make bench-gpu     what --backend=gpu costs there, beside compute-sanitizer"
	@echo "make kernels   the bundled CUDA kernels      make layers   who includes whom"
	@echo "make install   into PREFIX (/usr/local), under DESTDIR     make deb   a Debian package"
	@echo "make deps      install what is missing       make clean"

# One warp's lane 0 gives a buffer back while its other lanes may still read it.
DEMO = $(BUILD)/kernels/ring/ring
demo: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all $(DEMO)
	@echo; echo '$$ $(BUILD)/consan-run $(DEMO)'
	@$(BUILD)/consan-run $(DEMO)
	@echo; echo '$$ $(BUILD)/consan-run $(DEMO) --rows=256 --bug=no_syncwarp'
	@$(BUILD)/consan-run $(DEMO) --rows=256 --bug=no_syncwarp; test $$? = 66

JOBS ?= $(shell nproc)
check: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(TESTS:%.c=$(BUILD)/%)
	$(V)$(MAKE) --no-print-directory layers $(BUILD)/twins/assembled check-unit

bench: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BENCH)
	$(V)$(BUILD)/tests/bench/bench $(BUILD)
	$(V)$(BUILD)/tests/bench/events
	$(V)$(BUILD)/tests/bench/rewrite

mutants: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/mutants/mutants
	$(V)$(BUILD)/tests/mutants/mutants $(BUILD)

layers:
	$(V)awk -f tests/layers.awk $(shell find libconsan shadow instrument kernels reports \
		-name '*.[ch]' -o -name '*.cu' -o -name '*.cuh' 2>/dev/null)

# Both twins of every specimen are PTX to NVIDIA's assembler, too: one run for all racy
# ones, one for the others (ptxas crashes on two tables of functions of one name).
$(BUILD)/twins/assembled: tests/twins.awk $(wildcard tests/cases/*/*.ptx)
	$(V)rm -rf $(@D) && mkdir -p $(@D)
	$(V)awk -v dir=$(@D) -f $^
	$(V)for t in racy fixed; do \
		$(CUDA_HOME)/bin/ptxas -O0 -arch=sm_90a -o $(@D)/$$t.cubin $(@D)/*.$$t.ptx >$(@D)/log 2>&1 \
			|| { grep -v '^ptxas info' $(@D)/log; exit 1; }; done
	$(V)touch $@

# ---- installing: PREFIX, and DESTDIR for packages ----
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^.define CONSAN_VERSION "\(.*\)"/\1/p' libconsan/consan.h)
PUBLIC = consan.h err.h err.def tensormap_args.h criterion.h region.h
MAN = $(addprefix $(BUILD)/man/,consan-run.1 consan.1 consan.3)
FILL = sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|'

$(BUILD)/libconsan.so.0: $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ -Wl,-soname,$(@F) -Wl,--whole-archive $< -Wl,--no-whole-archive \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) $(LIBS)

$(BUILD)/man/%.1: libconsan/install/%.h2m $(BUILD)/%
	@mkdir -p $(@D)
	$(V)help2man --no-info --no-discard-stderr --include=$< --version-string='$* $(VERSION)' -o $@ $(BUILD)/$*
$(BUILD)/man/consan.3: libconsan/install/man3.awk libconsan/consan.h
	@mkdir -p $(@D)
	$(V)awk -v version=$(VERSION) -f $^ >$@

install: all $(BUILD)/libconsan.so.0 $(MAN)
	$(V)set -e; to='$(DESTDIR)$(PREFIX)'; \
	install -d "$$to/bin" "$$to/lib/consan" "$$to/lib/pkgconfig" "$$to/include/consan" \
		"$$to/share/man/man1" "$$to/share/man/man3" "$$to/share/bash-completion/completions" "$$to/share/doc/consan"; \
	install $(BUILD)/consan $(BUILD)/consan-run "$$to/bin"; \
	install -m 644 $(BUILD)/libconsan-cuda.so $(GPU_LIB) "$$to/lib/consan"; \
	$(if $(GPU_RESCUE),install $(GPU_RESCUE) "$$to/lib/consan";) \
	ln -sf libconsan-cuda.so "$$to/lib/consan/libcuda.so.1"; ln -sf libconsan-cuda.so "$$to/lib/consan/libcuda.so"; \
	install -m 644 $(BUILD)/libconsan.a $(BUILD)/libconsan.so.0 "$$to/lib"; ln -sf libconsan.so.0 "$$to/lib/libconsan.so"; \
	install -m 644 $(PUBLIC:%=libconsan/%) "$$to/include/consan"; \
	$(FILL) libconsan/install/consan.pc.in >"$$to/lib/pkgconfig/consan.pc"; \
	gzip -9nc $(BUILD)/man/consan-run.1 >"$$to/share/man/man1/consan-run.1.gz"; \
	gzip -9nc $(BUILD)/man/consan.1 >"$$to/share/man/man1/consan.1.gz"; \
	gzip -9nc $(BUILD)/man/consan.3 >"$$to/share/man/man3/consan.3.gz"; \
	for c in consan consan-run; do install -m 644 libconsan/install/consan.bash "$$to/share/bash-completion/completions/$$c"; done; \
	$(BUILD)/consan explain html >"$$to/share/doc/consan/rules.html"; \
	install -m 644 README.md libconsan/DESIGN.md LICENSE reports/schema.json "$$to/share/doc/consan"

deb: deps
	$(V)rm -rf $(BUILD)/deb
	$(V)$(MAKE) --no-print-directory -j$(JOBS) install PREFIX=/usr DESTDIR=$(BUILD)/deb
	$(V)strip --strip-unneeded $(BUILD)/deb/usr/bin/* $(BUILD)/deb/usr/lib/libconsan.so.0 $(BUILD)/deb/usr/lib/consan/libconsan-*.so
	$(V)strip -g $(BUILD)/deb/usr/lib/libconsan.a
	$(V)install -d $(BUILD)/deb/DEBIAN && $(FILL) libconsan/install/control.in >$(BUILD)/deb/DEBIAN/control
	$(V)printf 'activate-noawait ldconfig\n' >$(BUILD)/deb/DEBIAN/triggers
	$(V)dpkg-deb --build --root-owner-group $(BUILD)/deb $(BUILD)/consan_$(VERSION)_amd64.deb

$(BUILD)/libconsan.a: $(OBJ)
	$(V)rm -f $@ && ar rcs $@ $^

$(BUILD)/%.avx2.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX2) -c -o $@ $<
$(BUILD)/%.avx512.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX512) -c -o $@ $<
# joins of knowledge are vector loops; they run after the executor has asked for AVX2
$(CHECK:%.c=$(BUILD)/%.o) $(SHADOW:%.c=$(BUILD)/%.o) $(INSTRUMENT:%.c=$(BUILD)/%.o): CFLAGS_ALL += -O3 -march=x86-64-v3 -mtune=native
# a line that will be written is fetched to be written; an event's words are counted
$(BUILD)/libconsan/relay.o: CFLAGS_ALL += -mprfchw -mpopcnt
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<

# what `consan explain` shows, out of the specimens
$(BUILD)/rule_examples.c: tests/examples.awk $(wildcard tests/cases/*/cs*.ptx)
	@mkdir -p $(@D)
	$(V)awk -f $^ >$@
$(BUILD)/rule_examples.o: $(BUILD)/rule_examples.c
	$(V)$(CC) $(CFLAGS_ALL) -I. -c -o $@ $<

# the commands of `consan`
MAIN = libconsan/main.c libconsan/main_dump.c libconsan/main_explain.c libconsan/main_report.c
$(BUILD)/consan: $(MAIN:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)

# .incbin is no #include: what -MMD does not see
$(BUILD)/reports/assets.o: reports/report.css reports/report.js
$(BUILD)/reports/html.o $(BUILD)/reports/sarif.o: CFLAGS_ALL += -DCONSAN_VERSION='"$(VERSION)"'

$(BUILD)/tests/test_cli: $(BUILD)/consan
# CUDA's prototypes have more parameters than consan has a use for.
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(realpath $(shell command -v $(NVCC)))))
CUDA_OBJ = $(CUDA:%.c=$(BUILD)/%.o)
$(CUDA_OBJ): CFLAGS_ALL += -Wno-unused-parameter -isystem $(CUDA_HOME)/include

# Archives are linked in and hidden: nothing of ours but CUDA's own names may
# meet the program. It is initialised first, before the program's constructors.
$(BUILD)/libconsan-cuda.so: $(CUDA_OBJ) $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $(CUDA_OBJ) $(BUILD)/libconsan.a \
		-Wl,-soname,libcuda.so.1 -Wl,-z,initfirst $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--wrap=stdin \
		-Wl,-Bstatic -ljansson -llz4 -lzstd -Wl,-Bdynamic -lm -lpthread -ldl
# Without CUPTI's headers, which some toolkits leave out, --backend=gpu is not there.
CUPTI = $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h)
GPU_LIB = $(if $(CUPTI),$(BUILD)/libconsan-gpu.so)
GPU_RESCUE = $(if $(CUPTI),$(BUILD)/consan-rescue)
all: $(GPU_LIB) $(GPU_RESCUE)
INJECT_OBJ = $(INJECT:%.c=$(BUILD)/%.o)
$(INJECT_OBJ): CFLAGS_ALL += -isystem $(CUDA_HOME)/include -isystem $(CUDA_HOME)/extras/CUPTI/include
$(BUILD)/instrument/rescue.o: CFLAGS_ALL += -isystem $(CUDA_HOME)/include
$(BUILD)/consan-rescue: $(BUILD)/instrument/rescue.o
	$(V)$(CC) $(SANFLAGS) -o $@ $< -ldl
# device code of our own goes with the library, as text
$(BUILD)/instrument/digest_ptx.c: instrument/digest.cu instrument/digest.h instrument/record.h
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -ptx -arch=compute_80 -o $(@:.c=.ptx) $<
	$(V)(echo 'const char consan_digest_ptx[] = {'; od -An -v -tx1 $(@:.c=.ptx) | sed 's/ \(..\)/0x\1,/g'; \
		echo '0};') >$@
$(BUILD)/instrument/digest_ptx.o: $(BUILD)/instrument/digest_ptx.c
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<
$(BUILD)/libconsan-gpu.so: $(INJECT_OBJ) $(BUILD)/instrument/digest_ptx.o $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $^ \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs -Wl$(comma)-z$(comma)now) -Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--wrap=stdin \
		-Wl,-Bstatic -ljansson -llz4 -lzstd -Wl,-Bdynamic -lm -lpthread -ldl
$(BUILD)/libcuda.so.1 $(BUILD)/libcuda.so: $(BUILD)/libconsan-cuda.so
	$(V)ln -sf $(<F) $@

$(BUILD)/consan-run: $(RUN:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a \
		| $(BUILD)/libconsan-cuda.so $(BUILD)/libcuda.so.1 $(BUILD)/libcuda.so $(GPU_LIB) $(GPU_RESCUE)
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)

# Programs for the interposition: one object, linked in every way there is.
CUDA_PROGRAMS = $(addprefix $(BUILD)/tests/cuda/,static shared stripped ours sass plugin.so linked driver dependent)
CUDA_LINK = -L$(CUDA_HOME)/lib64/stubs -lcuda
$(BUILD)/tests/cuda/runtime.o: tests/cuda/runtime.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -c -o $@ $<
$(BUILD)/tests/cuda/static: $(BUILD)/tests/cuda/runtime.o
	$(V)$(NVCC) -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/shared: $(BUILD)/tests/cuda/runtime.o
	$(V)$(NVCC) -cudart shared -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/stripped: $(BUILD)/tests/cuda/static
	$(V)strip -o $@ $<
# no runtime of its own: the linker found every function in our library
$(BUILD)/tests/cuda/ours: tests/cuda/small.cu | $(BUILD)/libcuda.so
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -o $@ $< -L$(BUILD) -lcuda
$(BUILD)/tests/cuda/sass: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=sm_90a -o $@ $<
$(BUILD)/tests/cuda/plugin.so: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -Xcompiler -fPIC -shared -o $@ $<
$(BUILD)/tests/cuda/linked: tests/cuda/linked.cu
	@mkdir -p $(@D)
	$(V)for p in 1 2; do $(NVCC) -arch=sm_90 -rdc=true -lineinfo $$([ $$p = 1 ] || echo -DPART) \
		-c -o $@$$p.o $< || exit 1; done; $(NVCC) -arch=sm_90 -rdc=true -o $@ $@1.o $@2.o
$(BUILD)/tests/cuda/dependent: tests/cuda/dependent.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -lineinfo -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/cuda/driver: tests/cuda/driver.c
	@mkdir -p $(@D)
	$(V)$(CC) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK) -ldl
$(BUILD)/tests/test_cuda: tests/test_cuda.c $(BUILD)/libconsan/cuda/link.o \
		$(BUILD)/libconsan.a | $(CUDA_PROGRAMS) $(BUILD)/consan-run
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.c %.o %.a,$^) -lcriterion $(LIBS)

$(BUILD)/install/done: $(BUILD)/consan $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so $(GPU_LIB) $(GPU_RESCUE) $(BUILD)/libconsan.so.0 \
		$(MAN) $(PUBLIC:%=libconsan/%) $(wildcard libconsan/install/*) README.md
	$(V)rm -rf $(@D)
	$(V)$(MAKE) --no-print-directory install PREFIX=/usr DESTDIR=$(@D)
	$(V)touch $@
$(BUILD)/tests/test_install: | $(BUILD)/install/done

$(BUILD)/tests/cuda/machine: tests/cuda/machine.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -std=c++17 -diag-suppress 20054 -gencode=arch=compute_90a,code=[sm_90a,compute_90a] -o $@ $<
$(BUILD)/tests/test_machine: | $(BUILD)/tests/cuda/machine $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so

$(BUILD)/tests/%: tests/%.c $(BUILD)/libconsan.a
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $< $(BUILD)/libconsan.a -lcriterion $(LIBS)

# ---- the bundled kernels: CUDA programs that know nothing of consan ----
# sm_90a code for a real GPU, its PTX for consan
KERNELS = kernels/hgemm/hgemm kernels/ring/ring kernels/wgmma_gemm/wgmma_gemm \
	kernels/attention/fa2_split_q \
	kernels/attention/fa2_split_kv kernels/attention/fa2_shared_kv \
	kernels/attention/fa2_shared_qkv kernels/attention/fa2_tiling_qk kernels/mlp/fused_mlp \
	kernels/attention/hopper kernels/attention/mesh_kv kernels/attention/mesh_mlo \
	kernels/fallback/fallback
NVCCFLAGS = -O3 -std=c++17 -lineinfo -gencode=arch=compute_90a,code=[sm_90a,compute_90a]

kernels: $(KERNELS:%=$(BUILD)/%)

$(BUILD)/kernels/%: kernels/%.cu $(wildcard kernels/*/*.cuh kernels/*/*.h)
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $< 2>$@.log || { cat $@.log; rm -f $@; exit 1; }

$(BUILD)/cases/%: tests/cases/%.cu kernels/common/harness.h
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $< 2>$@.log || { cat $@.log; rm -f $@; exit 1; }

CASES_SRC = tests/specimen.c tests/stage.c tests/judge.c tests/found.c tests/rehearsed.c tests/cases.c tests/cases_tables.c tests/cases_kernels.c
$(BUILD)/tests/cases: $(CASES_SRC:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a \
		| $(BUILD)/cases/cxx/libcuxx $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o %.a,$^) -lcriterion $(LIBS)

BENCH = $(addprefix $(BUILD)/tests/bench/,bench rate events rewrite matmul cluster)
$(BUILD)/tests/bench/matmul $(BUILD)/tests/bench/cluster: $(BUILD)/tests/bench/%: tests/bench/%.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $<

MUTANTS = tests/mutants/mutate.c tests/mutants/outcome.c tests/mutants/mutants.c
$(BUILD)/tests/mutants/mutants: $(MUTANTS:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/test_fallback: | $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
$(BUILD)/tests/test_mutants: | $(BUILD)/tests/mutants/mutants $(KERNELS:%=$(BUILD)/%) \
		$(BUILD)/consan-run $(BUILD)/libconsan-cuda.so

$(BUILD)/tests/gpu/twins: $(patsubst %.c,$(BUILD)/%.o,tests/gpu/twins.c tests/gpu/schedules.c tests/gpu/side.c \
		tests/found.c) $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/tests/gpu/ways: tests/gpu/ways.c tests/shell.h
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $<
# a CUDA program like any other: no library but the driver's, and never under a sanitizer
$(BUILD)/tests/gpu/specimen: tests/gpu/specimen.c tests/specimen.c libconsan/base.c tests/specimen.h libconsan/base.h
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O2 -g $(WARN) -isystem $(CUDA_HOME)/include -o $@ $(filter %.c,$^) $(CUDA_LINK)
$(BUILD)/tests/gpu/specimens: $(patsubst %.c,$(BUILD)/%.o,tests/gpu/specimens.c tests/gpu/schedules.c tests/gpu/side.c \
		tests/specimen.c tests/judge.c tests/found.c) $(BUILD)/libconsan.a | $(BUILD)/tests/gpu/specimen
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS)
# a driver for machines without a GPU, and one that is too old
$(BUILD)/tests/gpu/driver/libcuda.so.1: CFLAGS_DRIVER =
$(BUILD)/tests/gpu/old/libcuda.so.1: CFLAGS_DRIVER = -DOLD
$(BUILD)/tests/gpu/driver/libcuda.so.1 $(BUILD)/tests/gpu/old/libcuda.so.1: tests/gpu/driver.c tests/gpu/driver_graph.c tests/gpu/driver_times.c tests/gpu/driver_records.c tests/gpu/driver.h instrument/record.h
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O1 -g -fPIC -shared -fvisibility=hidden $(WARN) $(CFLAGS_DRIVER) \
		-isystem $(CUDA_HOME)/include -isystem $(CUDA_HOME)/extras/CUPTI/include -Wl,-soname,libcuda.so.1 -o $@ $(filter %.c,$^)
$(BUILD)/tests/gpu/driven: tests/gpu/driven.c
	@mkdir -p $(@D)
	$(V)$(CC) -std=c17 -D_GNU_SOURCE -O1 -g $(WARN) -isystem $(CUDA_HOME)/include -o $@ $< $(CUDA_LINK)
$(BUILD)/tests/gpu/sm_90a.fatbin: tests/cuda/small.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) -fatbin -gencode=arch=compute_90a,code=compute_90a -o $@ $<
DRIVEN = $(addprefix $(BUILD)/tests/gpu/,driver/libcuda.so.1 old/libcuda.so.1 driven sm_90a.fatbin)
$(BUILD)/tests/test_inject: | $(if $(CUPTI),$(DRIVEN)) $(BUILD)/consan-run
$(BUILD)/tests/gpu/user: tests/gpu/user.cu
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -o $@ $<
$(BUILD)/tests/test_instrument $(BUILD)/tests/test_refusals: | $(BUILD)/tests/cases $(BUILD)/tests/gpu/ways $(BUILD)/tests/gpu/user \
		$(BUILD)/tests/gpu/specimens $(BUILD)/tests/gpu/twins $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run

$(BUILD)/tests/gpu/bench: tests/gpu/bench.c tests/shell.h
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $<

# on a machine with a GPU
bench-gpu: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/gpu/bench $(BUILD)/tests/bench/rewrite
	$(V)$(BUILD)/tests/gpu/bench $(BUILD)
	$(V)$(BUILD)/tests/bench/rewrite
check-gpu: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) all kernels $(BUILD)/tests/gpu/twins \
		$(BUILD)/tests/gpu/ways $(BUILD)/tests/gpu/user $(BUILD)/tests/gpu/specimens
	$(V)$(BUILD)/tests/gpu/ways $(BUILD) gpu
	$(V)$(BUILD)/tests/gpu/specimens --log=$(BUILD)/tests/gpu/specimens.txt $(BUILD) gpu
	$(V)$(BUILD)/tests/gpu/twins $(BUILD) gpu

check-unit: $(TESTS:%.c=$(BUILD)/%)
	$(V)export LSAN_OPTIONS=suppressions=tests/lsan.supp:print_suppressions=0; \
	bad=; for t in $^; do echo "$$t"; $$t || bad="$$bad $$t"; done; \
	[ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

# Criterion's processes have no room beside ThreadSanitizer's: programs instead.
check-threads: deps
	$(V)$(MAKE) --no-print-directory -j$(JOBS) SAN=thread all kernels
	$(V)$(MAKE) --no-print-directory SAN=thread run-threads
run-threads:
	$(V)export TSAN_OPTIONS=suppressions=tests/tsan.supp:exitcode=99; bad=; \
	for how in --async=late "--backend=rehearse --jobs=16" --explore=2 "--seed=3 --async=early --bank-conflicts"; do \
		for k in $(KERNELS:%=$(BUILD)/%); do \
			echo "$$how $$k"; $(BUILD)/consan-run --quiet --log-file=/dev/null --jobs=4 $$how $$k >/dev/null || bad="$$bad $$k"; \
		done; done; \
	[ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

clean:
	rm -rf build build-*

.PHONY: check-threads run-threads check-gpu bench-gpu all help install deb demo kernels deps check mutants bench layers check-unit clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
