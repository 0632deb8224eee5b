# the library that watches assemblers and linkers of machine code
MAKERS_SRC = $(addprefix libconsan/makers/, \
	environ.c exec.c folder.c library.c nvjitlink.c nvptxcompiler.c nvrtc.c objects.c ptxas.c)
MAKERS_OBJ = $(MAKERS_SRC:%.c=$(BUILD)/%.o)
# functions of the C library that exec.c replaces
MAKERS_STARTS = execve execv execvpe execvp fexecve execveat execl execlp execle posix_spawn posix_spawnp
MAKERS_LIB = $(BUILD)/libconsan-makers.so

# Its dlsym() is called by the runtimes of AddressSanitizer and ThreadSanitizer before they are ready.
$(BUILD)/libconsan/makers/library.o: CFLAGS_ALL += $(if $(filter 1 thread,$(SAN)),-fno-sanitize=all)

$(MAKERS_LIB): $(MAKERS_OBJ) $(BUILD)/libconsan.a
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $(MAKERS_OBJ) $(BUILD)/libconsan.a \
		$(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic \
		-Wl,--exclude-libs,ALL -Wl,--defsym=dlsym=makers_dlsym \
		$(foreach f,$(MAKERS_STARTS),-Wl$(comma)--defsym=$(f)=makers_$(f)) $(LIBS_STATIC)
