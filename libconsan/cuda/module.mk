# interposition of the CUDA runtime and driver: preloaded into the program under test
CUDA_SRC = $(addprefix libconsan/cuda/, \
	access.c access_run.c api_error.c blocked.c condition.c context.c deadlock.c device.c device_runtime.c drv_context.c drv_device.c drv_graph.c \
	drv_launch.c drv_memory.c drv_module.c drv_stream.c drv_tensormap.c \
	elf_file.c engine.c entry_points.c error.c graph.c guard.c guard_calls.c guard_fault.c guard_looks.c handle_map.c hb.c host_threads.c host_wait.c image.c inside.c jump.c launch.c leave.c \
	lib_blas.c lib_call.c lib_dnn.c lib_element.c lib_fft.c lib_gemm.c lib_levels.c lib_lt.c lib_rand.c lib_refuse.c lib_routine.c \
	logs.c memory.c no_ptx.c nvml.c nvtx.c op.c \
	python.c queue.c redirect.c region.c rt_device.c rt_graph.c rt_graph_memory.c rt_graph_node.c rt_launch.c rt_memory.c rt_module.c \
	rt_stream.c run_task.c stream.c stripped.c suspend.c)
CUDA_SRC += $(addprefix libconsan/cuda/, api_graph.c batch.c device_copy.c device_graph.c green.c api_batch.c api_ipc.c array.c drv_array.c rt_array.c texture.c ipc.c ipc_race.c multicast.c vmm.c)
CUDA_OBJ = $(CUDA_SRC:%.c=$(BUILD)/%.o)

# The functions have the parameters of CUDA's prototypes, used or not.
# A call stack must have the frame of the function that the program called: no sibling calls.
$(CUDA_OBJ): CFLAGS_ALL += -Wno-unused-parameter -fno-optimize-sibling-calls -isystem $(CUDA_HOME)/include

# functions of the C library that guard_calls.c, leave.c and device.c replace; the linker names them
GUARDED := $(shell sed -nE 's/^(CALL|SLEEP).[a-z_]*, ([a-z0-9_]*),.*/\2/p' libconsan/cuda/guard_calls.def) _exit \
	pthread_exit longjmp _longjmp siglongjmp __longjmp_chk

# Only the names of the CUDA API and those are exported; symbols of the archives are hidden. The library
# is initialized first, before the constructors of the program.
$(BUILD)/libconsan-cuda.so: $(CUDA_OBJ) $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $(CUDA_OBJ) $(BUILD)/libconsan.a \
		$(foreach f,$(GUARDED),-Wl$(comma)--defsym=$(f)=guard_$(f)) -Wl$(comma)--defsym=_Exit=guard__exit \
		-Wl,-soname,libcuda.so.1 -Wl,-z,initfirst $(if $(SAN),,-Wl$(comma)-z$(comma)defs) \
		-Wl,-Bsymbolic -Wl,--exclude-libs,ALL -Wl,--wrap=stdin $(LIBS_STATIC)
# programs open these files, and get the library that is already loaded
CUDA_NAMES = libcuda.so.1 libcuda.so libnvidia-ml.so.1 libnvidia-ml.so
$(CUDA_NAMES:%=$(BUILD)/%): $(BUILD)/libconsan-cuda.so
	$(V)ln -sf $(<F) $@
