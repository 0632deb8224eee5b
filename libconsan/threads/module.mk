# the library that tells how the threads of the program under test synchronize
THREADS_OBJ = $(BUILD)/libconsan/threads/threads.o
THREADS_LIB = $(BUILD)/libconsan-threads.so

$(THREADS_LIB): $(THREADS_OBJ)
	$(V)$(CC) -shared $(SANFLAGS) -o $@ $< $(if $(SAN),,-Wl$(comma)-z$(comma)defs) -Wl,-Bsymbolic -ldl
