# interposition of the CUDA runtime and driver: preloaded into the watched program
CUDA_SRC = $(addprefix libconsan/cuda/, \
	drv_device.c drv_memory.c drv_module.c drv_stream.c error.c gpu.c graph.c handle.c \
	image.c launch.c link.c memory.c redirect.c region.c rt_device.c rt_launch.c \
	rt_memory.c rt_module.c rt_stream.c stream.c table.c)
CUDA_OBJ = $(CUDA_SRC:%.c=$(BUILD)/%.o)

# CUDA's prototypes have more parameters than consan uses.
$(CUDA_OBJ): CFLAGS_ALL += -Wno-unused-parameter -isystem $(CUDA_HOME)/include

# Only CUDA's own names are exported: the archives are linked in and hidden. The
# library is initialised first, before the program's constructors.
$(BUILD)/libconsan-cuda.so: $(CUDA_OBJ) $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $(CUDA_OBJ) $(BUILD)/libconsan.a \
		-Wl,-soname,libcuda.so.1 -Wl,-z,initfirst $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--wrap=stdin $(LIBS_STATIC)
$(BUILD)/libcuda.so.1 $(BUILD)/libcuda.so: $(BUILD)/libconsan-cuda.so
	$(V)ln -sf $(<F) $@
