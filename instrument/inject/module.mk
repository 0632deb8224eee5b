# the library that is injected into a CUDA program
INJECT_SRC = $(addprefix instrument/inject/, \
	assemble.c callbacks.c calls.c cut.c drain.c early.c graph.c graph_branch.c graph_callbacks.c graph_order.c graph_step.c \
	identical.c inject.c kernel.c launch.c link.c lock.c memory.c module.c operation_calls.c operations.c overlap.c own.c \
	pending.c pool.c prepare.c ptxas.c python.c ranges.c replay.c rescue.c screen.c tensormap.c ticket.c times.c)
RESCUE_SRC = instrument/inject/rescue_main.c

# Without CUPTI's headers, which some toolkits do not have, --backend=gpu is not built.
CUPTI = $(wildcard $(CUDA_HOME)/include/cupti.h $(CUDA_HOME)/extras/CUPTI/include/cupti.h)
GPU_LIB = $(if $(CUPTI),$(BUILD)/libconsan-gpu.so)
GPU_RESCUE = $(if $(CUPTI),$(BUILD)/consan-rescue)
INJECT_OBJ = $(INJECT_SRC:%.c=$(BUILD)/%.o)
RESCUE_OBJ = $(RESCUE_SRC:%.c=$(BUILD)/%.o)

$(INJECT_OBJ) $(RESCUE_OBJ): CFLAGS_ALL += -isystem $(CUDA_HOME)/include -isystem $(CUDA_HOME)/extras/CUPTI/include
$(BUILD)/consan-rescue: $(RESCUE_OBJ)
	$(V)$(CC) $(SANFLAGS) -o $@ $< -ldl
# The rpath leads to CUPTI in build/cuda, for a build without a toolkit.
$(BUILD)/libconsan-gpu.so: $(INJECT_OBJ) $(BUILD)/instrument/record/digest_ptx.o \
		$(BUILD)/instrument/record/screen_ptx.o $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $^ \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs -Wl$(comma)-z$(comma)now) -Wl,-rpath,'$$ORIGIN/cuda/lib' -Wl,-Bsymbolic \
		-Wl,--exclude-libs,ALL -Wl,--wrap=stdin $(LIBS_STATIC)
