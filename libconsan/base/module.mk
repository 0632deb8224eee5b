# memory, text, vectors, append-only files, progress, demangling, threads
LIB_SRC += $(addprefix libconsan/base/, \
	append.c base.c cpu_time.c demangle.c environ.c folder.c number_map.c number_set.c own_thread.c pool.c progress.c sha256.c similar.c size_limit.c visible.c)
