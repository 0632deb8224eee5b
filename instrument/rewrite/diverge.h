/* diverge: where lanes of a warp may have gone different ways, as far as branches tell. ptxas
 * makes slower code of a function that is called at such a place, so other places have functions
 * of their own. */
#ifndef CONSAN_INSTRUMENT_DIVERGE_H
#define CONSAN_INSTRUMENT_DIVERGE_H

#include "libconsan/ptx/ptx.h"

/* By block. An estimate, on which no result depends. free() it. */
bool *diverge_find(const struct ptx_func *f);

#endif
