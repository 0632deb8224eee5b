# consan. `make` builds, `make demo` shows, `make check` proves, `make help`.
# Sources stand by name, in the order of flow: this file is the table of contents.

SAN ?=
CC ?= gcc
ifeq ($(origin CC),default)
CC = gcc
endif
NVCC ?= nvcc
V ?= @
BUILD ?= build$(if $(SAN),-san)$(if $(filter clang%,$(notdir $(CC))),-clang)

WARN = -Wall -Wextra -Wshadow -Werror -Wswitch -Wstrict-prototypes -Wmissing-prototypes
SANFLAGS_1 = -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
SANFLAGS = $(SANFLAGS_$(if $(SAN),1))
CFLAGS_ALL = -std=c17 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -pthread \
	-ffp-contract=off -fno-math-errno -MMD -MP $(WARN) $(SANFLAGS) $(CFLAGS)
LIBS = -ljansson -llz4 -lzstd -lm -lpthread -ldl

# ---- the rooms, in order of flow ----

BASE = libconsan/base.c

PTX =

# plain C of the executor ...
EXEC =
# ... and its lane loops and tile loops, built once per vector width
EXEC_SIMD =

SHADOW =

CHECK =

REPORTS =

# the front door: opens every room
DOOR =

# preloaded into the watched program
CUDA =

# ---- tests: one binary per file ----
TESTS =

# ---- rules ----

SRC = $(BASE) $(PTX) $(EXEC) $(SHADOW) $(CHECK) $(REPORTS) $(DOOR)
OBJ = $(SRC:%.c=$(BUILD)/%.o) \
	$(EXEC_SIMD:%.c=$(BUILD)/%.avx2.o) $(EXEC_SIMD:%.c=$(BUILD)/%.avx512.o)
AVX2 = -O3 -march=x86-64-v3 -mtune=native -DSIMD=avx2
AVX512 = -O3 -march=x86-64-v4 -mprefer-vector-width=512 -DSIMD=avx512

all: $(BUILD)/libconsan.a

$(BUILD)/libconsan.a: $(OBJ)
	$(V)rm -f $@ && ar rcs $@ $^

$(BUILD)/%.avx2.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX2) -c -o $@ $<
$(BUILD)/%.avx512.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) $(AVX512) -c -o $@ $<
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(BUILD)/tests/%: tests/%.c $(BUILD)/libconsan.a
	@mkdir -p $(@D)
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $< $(BUILD)/libconsan.a -lcriterion $(LIBS)

check-unit: $(TESTS:%.c=$(BUILD)/%)
	$(V)for t in $^; do echo "$$t"; $$t || exit 1; done

clean:
	rm -rf build build-*

.PHONY: all check-unit clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
