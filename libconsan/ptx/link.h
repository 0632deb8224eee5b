/* link: joins several PTX texts into one, as nvlink and cuLink do for programs that are
 * compiled separately (nvcc -rdc=true). Works on the text of top-level declarations;
 * function bodies are copied. */
#ifndef CONSAN_PTX_LINK_H
#define CONSAN_PTX_LINK_H

#include "libconsan/base/base.h"

/* Joins n NUL-terminated texts into one, which the caller free()s. NULL and e:
 * CONSAN_ERR_PTX_SYMBOL, a symbol is defined twice; CONSAN_ERR_PTX_SYNTAX, a text is not PTX. */
char *link_ptx(const char *const *text, size_t n, struct consan_err *e);

#endif
