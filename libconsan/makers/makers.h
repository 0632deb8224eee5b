/* makers: watches what makes machine code of PTX in the processes of a program, and puts both into
 * the store (libconsan/origin/). This module is a library of its own, preloaded on both backends:
 *
 *  - in a process that is ptxas itself: its command line names the files (ptxas.c). So it does
 *    not matter how ptxas was started, nor whose ptxas it is;
 *  - NVRTC, nvJitLink and nvPTXCompiler as shared libraries: some of their functions are replaced
 *    by ours, which call the real ones (library.c, and a file for each).
 *
 * What a compiler returns is never changed: if something fails here, nothing is remembered. */
#ifndef CONSAN_MAKERS_H
#define CONSAN_MAKERS_H

#include "libconsan/base/base.h"

/* A loaded copy of one of the libraries. A process may have several versions. */
struct maker {
	void *handle;              /* for dlsym() */
	const void *base;          /* where it is loaded */
};

/* The function of this name in the copy; NULL: it has none. */
void *maker_call(const struct maker *m, const char *name);

/* Exported, for what has both and is watched by none of the above, as Python code that drives a compiler:
 * remembers that the cubin was made from this PTX. */
void consan_remember_ptx(const void *cubin, size_t cubin_bytes, const char *ptx, size_t ptx_bytes);

/* Exported, for the Python package. */
typedef size_t consan_frames(char *to, size_t n);
extern consan_frames *_Atomic consan_run_frames;
/* the program has kernels of Gluon, of Triton, of JAX */
extern _Atomic bool consan_run_gluon, consan_run_triton, consan_run_xla;
void consan_run_on_stack(consan_frames *frames);

/* The process starts a program. */
void makers_starts(const char *program);

/* What on_NAME() returns if the library or a function of it cannot be found. */
enum { MAKER_FAILED = 11 };

#define CALL(library, name, parameters, ...) int on_##name(const struct maker *m, CALL_PARAMETERS parameters);
#define CALL_PARAMETERS(...) __VA_ARGS__
#include "makers.def"
#undef CALL_PARAMETERS

#endif
