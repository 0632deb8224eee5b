/* readers: which instructions read a register. */
#ifndef CONSAN_PTX_READERS_H
#define CONSAN_PTX_READERS_H

#include "ir.h"

/* For parse.c: in the arena. */
const struct ptx_readers *readers_build(struct arena *a, const struct ptx_func *f);

#endif
