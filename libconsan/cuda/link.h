/* link: several PTX texts become one, as nvlink and cuLink do with programs
 * that are compiled separately (nvcc -rdc=true). Works on the text of top-level
 * declarations; what stands inside a function is only copied. */
#ifndef CONSAN_CUDA_LINK_H
#define CONSAN_CUDA_LINK_H

#include "libconsan/base/base.h"

/* One NUL-terminated PTX text out of n. free() it. NULL + e: a symbol is
 * defined twice, or a text does not look like PTX. */
char *link_ptx(const char *const *text, size_t n, struct err *e);

#endif
