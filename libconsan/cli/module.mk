# the commands consan and consan-run
CLI_SRC = $(addprefix libconsan/cli/, \
	completion.c dump.c explain.c main.c report.c)
RUN_SRC = $(addprefix libconsan/cli/, \
	check.c display.c origin_dir.c program.c run.c symbols.c)
CLI_OBJ = $(CLI_SRC:%.c=$(BUILD)/%.o) $(RUN_SRC:%.c=$(BUILD)/%.o)

$(BUILD)/consan: $(CLI_SRC:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS)
$(BUILD)/consan-run: $(RUN_SRC:%.c=$(BUILD)/%.o) $(BUILD)/libconsan.a \
		| $(BUILD)/libconsan-cuda.so $(BUILD)/libcuda.so.1 $(BUILD)/libcuda.so $(MAKERS_LIB) $(GPU_LIB) $(GPU_RESCUE)
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS) -ldw
