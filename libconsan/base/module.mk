# memory, text, vectors, append-only files, progress, demangling, threads
LIB_SRC += $(addprefix libconsan/base/, \
	append.c base.c demangle.c pool.c progress.c)
