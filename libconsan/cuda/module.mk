# interposition of the CUDA runtime and driver: preloaded into the program under test
CUDA_SRC = $(addprefix libconsan/cuda/, \
	api_error.c context.c deadlock.c device.c drv_context.c drv_device.c drv_graph.c drv_launch.c drv_memory.c drv_module.c drv_stream.c drv_tensormap.c \
	elf_file.c engine.c entry_points.c error.c graph.c guard.c guard_calls.c handle_map.c hb.c image.c jump.c launch.c logs.c memory.c no_ptx.c op.c \
	python.c queue.c redirect.c region.c rt_device.c rt_graph.c rt_graph_memory.c rt_graph_node.c rt_launch.c rt_memory.c rt_module.c \
	rt_stream.c stream.c stripped.c)
CUDA_SRC += $(addprefix libconsan/cuda/, api_batch.c api_ipc.c array.c drv_array.c rt_array.c texture.c ipc.c multicast.c vmm.c)
CUDA_OBJ = $(CUDA_SRC:%.c=$(BUILD)/%.o)

# The functions have the parameters of CUDA's prototypes, used or not.
# A call stack must have the frame of the function that the program called: no sibling calls.
$(CUDA_OBJ): CFLAGS_ALL += -Wno-unused-parameter -fno-optimize-sibling-calls -isystem $(CUDA_HOME)/include

# Only the names of the CUDA API are exported; symbols of the archives are hidden. The library
# is initialized first, before the constructors of the program.
$(BUILD)/libconsan-cuda.so: $(CUDA_OBJ) $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $(CUDA_OBJ) $(BUILD)/libconsan.a \
		-Wl,-soname,libcuda.so.1 -Wl,-z,initfirst $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--wrap=stdin $(LIBS_STATIC)
$(BUILD)/libcuda.so.1 $(BUILD)/libcuda.so: $(BUILD)/libconsan-cuda.so
	$(V)ln -sf $(<F) $@
