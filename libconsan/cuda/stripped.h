/* stripped: finds a static CUDA runtime whose symbols are stripped. The archive with which it was
 * linked, libcudart_static.a, has all its functions in one section of one object, which the linker
 * copies as a whole. So the section of an archive is searched in the program: all of its bytes must
 * be the same, but those that the linker fills in. Then each function is where the archive's symbols
 * say. Archives come with the CUDA Toolkit and with NVIDIA's Python packages. */
#ifndef CONSAN_CUDA_STRIPPED_H
#define CONSAN_CUDA_STRIPPED_H

#include "elf_file.h"

/* Calls each() for every function of the runtime in the file: its name, its address in the file's
 * address space, and its size. path: of the file; archives near it are tried, too. False: no
 * archive has this runtime, or the file has none. */
bool stripped_functions(const struct elf *f, const char *path,
	void (*each)(void *user, const char *name, uint64_t address, uint64_t size), void *user);
/* The same with the archive in these bytes alone. */
bool stripped_search(const void *archive, size_t n, const struct elf *f,
	void (*each)(void *user, const char *name, uint64_t address, uint64_t size), void *user);

#endif
