/* slice: the part of a module's text that one kernel needs, and what of a text the assembler does
 * not need. Works on the text alone, so a module of which one kernel is launched is not parsed. */
#ifndef CONSAN_INSTRUMENT_SLICE_H
#define CONSAN_INSTRUMENT_SLICE_H

#include "libconsan/base/base.h"

/* Why the kernels of this text must stay together; NULL: each can be cut out. Such a kernel shares
 * the module's variables in global memory by address and those in constant memory by a copy, so
 * neither pointers to functions nor to constants may travel between kernels. */
const char *slice_refuses(const char *ptx);

/* The items of a module, as the text has them. */
struct slices;
/* The text is copied. */
struct slices *slices_open(const char *ptx, size_t n);
void slices_close(struct slices *s); /* NULL is fine */
/* Is there such a kernel? */
bool slices_has(const struct slices *s, const char *kernel);
/* Number of kernels */
size_t slices_kernels(const struct slices *s);
/* The k-th kernel; NULL: there are only k. Valid as long as s. */
const char *slices_kernel(const struct slices *s, size_t k);
/* The text without the functions and variables that the kernel cannot reach. What is left keeps
 * its lines. free() it. NULL: there is no such kernel. */
char *slices_cut(const struct slices *s, const char *kernel, size_t *n);

/* Appends a module with nothing but this variable, which it makes visible. Nothing: there is no
 * such variable. */
void slices_declaration(const struct slices *s, const char *variable, struct text *t);

/* Removes lines and sections for debuggers, and blank lines. globals: also the variables in global
 * memory. */
void slice_strip(struct text *t, bool globals);

#endif
