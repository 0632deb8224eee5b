/* cfg: builds the control-flow graph of a parsed function. Used by parse.c. */
#ifndef CONSAN_PTX_CFG_H
#define CONSAN_PTX_CFG_H

#include "ir.h"

/* f has instructions, the last of which does not fall through. */
const struct ptx_cfg *cfg_build(struct arena *a, const struct ptx_func *f);

#endif
