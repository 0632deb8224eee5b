# Fuzz targets, one in each file, with a corpus in corpus/NAME/.
#
# `make fuzz SECONDS=n` builds them with libFuzzer, ASan and UBSan, which needs clang, and runs each for
# n seconds; FUZZ=NAME runs one. What is found is left in $(BUILD)/tests/fuzz/found/. By any compiler,
# `make check` runs each target on its corpus, which also has the inputs that once failed.
FUZZ_TARGETS = ptx run image redirect events records json suppressions options demangle
FUZZ_BIN = $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/%)
FUZZ ?= $(FUZZ_TARGETS)
SECONDS ?= 60
FUZZ_CLANG ?= clang

# of the targets that read what the preloaded library reads
$(BUILD)/tests/fuzz/redirect: $(BUILD)/libconsan/cuda/elf_file.o $(BUILD)/libconsan/cuda/stripped.o
# comes between a launch of a specimen and its check
$(BUILD)/tests/fuzz/records: $(BUILD)/tests/cases/harness/specimen.o
$(BUILD)/tests/fuzz/records: FUZZ_LINK = -Wl,--wrap=gpu_emulate_screen
ifeq ($(SAN),fuzz)
$(BUILD)/tests/fuzz/%.o: CFLAGS_ALL += -DFUZZ_LIBFUZZER
FUZZ_MAIN = -fsanitize=fuzzer
else
$(FUZZ_BIN): $(BUILD)/tests/fuzz/driver.o
endif
$(FUZZ_BIN): $(BUILD)/tests/fuzz/%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/file.o $(BUILD)/libconsan.a
	$(V)$(CC) $(SANFLAGS) $(FUZZ_MAIN) $(FUZZ_LINK) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS)

# Event files are of one version of consan, so they are made anew: from specimens, whose events are few.
FUZZ_SPECIMENS = $(wildcard tests/cases/*/cs?0[0-4]*.ptx)
FUZZ_EVENTS = $(BUILD)/tests/fuzz/seeds/events
$(FUZZ_EVENTS)/made: $(BUILD)/tests/fuzz/run $(FUZZ_SPECIMENS)
	@rm -rf $(@D) && mkdir -p $(@D)
	$(V)for f in $(FUZZ_SPECIMENS); do \
		FUZZ_SAVE=$(@D)/$$(basename $$f .ptx).events $< $$f >/dev/null 2>&1 || exit 1; done
	$(V)find $(@D) -size 0 -delete && touch $@
# Seeds that run for long slow down all that is made from them.
LONG_SEEDS = %/polled_by_an_atomic_that_writes.ptx %/cs604_tested_under_a_lock.ptx
SEEDS = $(filter-out $(LONG_SEEDS),$(wildcard tests/fuzz/corpus/$(1)/* \
	$(if $(filter ptx run records,$(1)),tests/cases/race/*.ptx tests/cases/async/*.ptx tests/cases/tcgen05/*.ptx))) \
	$(if $(filter events,$(1)),$(FUZZ_EVENTS)/*.events)

# the loop is make's, as only make knows the seeds of each target
check-corpus: $(FUZZ_BIN) $(FUZZ_EVENTS)/made
	$(V)bad=; $(foreach t,$(FUZZ_TARGETS),echo "fuzz corpus: $(t)"; \
		timeout 1200 $(BUILD)/tests/fuzz/$(t) $(call SEEDS,$(t)) 2>$(BUILD)/tests/fuzz/$(t).txt \
		|| { tail -n 30 $(BUILD)/tests/fuzz/$(t).txt; bad="$$bad $(t)"; };) \
	[ -z "$$bad" ] || { echo "failed:$$bad"; exit 1; }

fuzz: $(FUZZ_EVENTS)/made
	$(V)if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' \
		| $(FUZZ_CLANG) -fsanitize=fuzzer,address -x c -o /dev/null - 2>/dev/null; then \
		$(MAKE) --no-print-directory -j$(JOBS) CC='$(FUZZ_CLANG)' SAN=fuzz run-fuzz FUZZ_EVENTS='$(FUZZ_EVENTS)'; \
	else echo "fuzz: not run: $(FUZZ_CLANG) with libFuzzer is not installed (Debian: clang)"; fi
run-fuzz: $(FUZZ:%=$(BUILD)/tests/fuzz/%)
	$(V)bad=0; $(foreach t,$(FUZZ),mkdir -p $(BUILD)/tests/fuzz/seeds/$(t); \
		cp -f $(call SEEDS,$(t)) $(BUILD)/tests/fuzz/seeds/$(t)/; \
		tests/fuzz/fuzz.sh $(BUILD)/tests/fuzz $(SECONDS) $(t) || bad=1;) exit $$bad
.PHONY: fuzz run-fuzz check-corpus
