/* parts: the PTX of the inputs of a linker, joined to that of its output. */
#ifndef CONSAN_MAKERS_PARTS_H
#define CONSAN_MAKERS_PARTS_H

#include "libconsan/base/base.h"

struct parts {
	VEC(char *) ptx;
	bool lost;        /* of an input, the PTX is not known: neither is that of the output */
};

/* Adds an input: PTX, or a cubin or fatbin whose PTX the store has. False, and `lost`: the PTX of the
 * input is not known. */
bool parts_add(struct parts *p, const void *input, size_t n);
void parts_add_ptx(struct parts *p, const char *ptx, size_t n);
/* Remembers the output. */
void parts_put(const struct parts *p, const void *cubin, size_t bytes);
void parts_free(struct parts *p);

#endif
