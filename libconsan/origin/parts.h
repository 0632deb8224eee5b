/* parts: the PTX of the inputs of a linker, joined to that of its output. */
#ifndef CONSAN_ORIGIN_PARTS_H
#define CONSAN_ORIGIN_PARTS_H

#include "libconsan/base/base.h"

struct parts {
	VEC(char *) ptx;
	bool lost;        /* of an input, the PTX is not known: neither is that of the output */
};

/* Adds an input: PTX; a fatbin with PTX for this device; a cubin or a fatbin whose PTX the store has;
 * or an archive, which is left out: it is CUDA's device library, and kernels that call it are refused
 * when they are loaded. sm 0: not known, so no fatbin. False, and `lost`: the PTX is not known. */
bool parts_add(struct parts *p, const void *input, size_t n, unsigned sm, char suffix);
/* The same of a file. */
bool parts_add_file(struct parts *p, const char *path, unsigned sm, char suffix);
void parts_add_ptx(struct parts *p, const char *ptx, size_t n);
/* The PTX of the output; free() it. NULL: it is lost, there are no inputs or, with e set, they do not fit
 * together. */
char *parts_join(const struct parts *p, struct consan_err *e);
/* Remembers the output. */
void parts_put(const struct parts *p, const void *cubin, size_t bytes);
void parts_free(struct parts *p);

#endif
