# The runner of the specimens, PTX kernels with their expected findings, and of the bundled kernels
# with their planted bugs
CASES_SRC = $(addprefix tests/cases/harness/, \
	specimen.c run.c judge.c found.c emulated.c late.c cases.c edits.c bug_edits.c tables.c kernels.c placement.c witness.c)

# NVIDIA's assembler accepts both twins of every specimen. One run for each folder and twin: ptxas
# crashes on two tables of functions of the same name, and where a register of one file has the name
# of a function of another. Targets after Hopper apart: none of them assembles for another.
SPECIMEN_DIRS = $(sort $(patsubst tests/cases/%/,%,$(dir $(wildcard tests/cases/*/*.ptx))))
$(BUILD)/twins/assembled: tests/tools/twins.awk $(wildcard tests/cases/*/*.ptx)
	$(V)rm -rf $(@D) && mkdir -p $(@D)
	$(V)awk -v dir=$(@D) -v release=$$($(CUDA_HOME)/bin/ptxas --version | sed -n 's/.*release \([0-9.]*\).*/\1/p') -f $^
	$(V)for of in $(foreach d,$(SPECIMEN_DIRS),$(d)_*.racy $(d)_*.fixed); do \
		set -- $(@D)/$$of.ptx; test -e $$1 || continue; \
		for arch in sm_90a $$(sed -n 's/^\.target \(sm_1[0-9a-z]*\).*/\1/p' $$* | sort -u); do \
			files=$$(case $$arch in sm_90a) grep -L '^\.target sm_1' $$*;; \
				*) grep -l "^\.target $$arch" $$*;; esac); test "$$files" || continue; \
			$(CUDA_HOME)/bin/ptxas -O0 -arch=$$arch -o $(@D)/cubin $$files >$(@D)/log 2>&1 \
				|| { echo "ptxas: $$of"; grep -v '^ptxas info' $(@D)/log; exit 1; }; done; done
	$(V)touch $@

$(BUILD)/cases/cxx/mistakes_blackwell: NVCCFLAGS := $(subst 90a,100a,$(NVCCFLAGS))
$(BUILD)/cases/%: tests/cases/%.cu kernels/common/harness.h
	@mkdir -p $(@D)
	$(V)$(NVCC) $(NVCCFLAGS) -I. -o $@ $< 2>$@.log || { cat $@.log; rm -f $@; exit 1; }

# The findings do not depend on where memory lies: all placements (`make check`: two a specimen).
placements: $(BUILD)/tests/cases/harness/cases
	$(V)PLACEMENTS=all $< --filter cases/placement
.PHONY: placements

$(BUILD)/tests/cases/harness/cases: $(CASES_SRC:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a \
		| $(BUILD)/cases/cxx/libcuxx $(BUILD)/cases/cxx/mistakes $(BUILD)/cases/cxx/mistakes_blackwell $(KERNELS:%=$(BUILD)/%) $(BUILD)/consan-run $(BUILD)/libconsan-cuda.so
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $(filter %.o %.a,$^) -lcriterion $(LIBS)
