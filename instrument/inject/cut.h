/* cut: kernels that are cut out of their module, instrumented and assembled, when a launch needs
 * them or before, by other threads. Not bound to a context. */
#ifndef CONSAN_INSTRUMENT_INJECT_CUT_H
#define CONSAN_INSTRUMENT_INJECT_CUT_H

#include "internal.h"

struct cut {
	struct inject_image *image;
	char *kernel;
	struct gpu_module *module; /* NULL: why not */
	void *code;                /* machine code; NULL: not assembled */
	size_t bytes;
	char why[INJECT_WHY];
};

/* Waits for another thread that makes it. Lives until the process ends; `code` may still be set
 * by the caller. */
struct cut *cut_get(struct inject_image *i, const char *kernel);
/* The kernel is launched: it is made ahead by later runs, and by this one if it is not made yet. */
void cut_launched(struct inject_image *i, const char *kernel);
/* Waits until the threads that work ahead have nothing to do, or for so many seconds; without such threads
 * does their work. */
void cut_settle(double seconds);
/* The k-th of all; NULL: it is not made yet. False: there are no more. */
bool cut_nth(size_t k, struct cut **made);
/* Number of kernels of a module, or of the program's file, all of which are made ahead. */
unsigned cut_few(void);
/* At exit: what is being made is still written to the store, and the assembler must not run while its
 * library is unloaded. */
void cut_end(void);
/* For --gpu-prepare: makes all kernels of the image, by other threads and by cut_wait(). */
void cut_all(struct inject_image *i);
void cut_wait(unsigned *made, unsigned *failed);

/* early.c: finds the modules in the program's file. */
void early_find(void);

#endif
