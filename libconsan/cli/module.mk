# the commands consan and consan-run
CLI_SRC = $(addprefix libconsan/cli/, \
	completion.c dump.c explain.c main.c recover.c report.c)
RUN_SRC = $(addprefix libconsan/cli/, \
	check.c child.c display.c environ.c launcher.c origin_dir.c prepare.c program.c run.c)
# of both
BOTH_SRC = $(addprefix libconsan/cli/, records.c shards.c symbols.c)
CLI_OBJ = $(patsubst %.c,$(BUILD)/%.o,$(CLI_SRC) $(RUN_SRC) $(BOTH_SRC))

$(BUILD)/consan: $(patsubst %.c,$(BUILD)/%.o,$(CLI_SRC) $(BOTH_SRC)) $(BUILD)/libconsan.a
	$(V)$(CC) $(CFLAGS_ALL) -o $@ $^ $(LIBS) -ldw
$(BUILD)/consan-run: $(patsubst %.c,$(BUILD)/%.o,$(RUN_SRC) $(BOTH_SRC)) $(BUILD)/libconsan.a \
		| $(BUILD)/libconsan-cuda.so $(CUDA_NAMES:%=$(BUILD)/%) $(MAKERS_LIB) $(THREADS_LIB) $(GPU_LIB) $(GPU_RESCUE)
	$(V)$(CC) $(SANFLAGS) -o $@ $^ $(LIBS) -ldw
