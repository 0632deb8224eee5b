/* pairs: cubins whose PTX a compiler has kept in the same folder. */
#ifndef CONSAN_ORIGIN_PAIRS_H
#define CONSAN_ORIGIN_PAIRS_H

#include <stddef.h>

/* The PTX of a cubin of so many bytes, NUL-terminated, *n bytes; free() it. NULL: none is kept. */
char *pairs_find(const void *cubin, size_t bytes, size_t *n);

#endif
