/* inflight: where a wgmma may be in flight. Between wgmma.fence and a wait for all groups no function
 * may be called, as ptxas would serialize the wgmma. */
#ifndef CONSAN_INSTRUMENT_INFLIGHT_H
#define CONSAN_INSTRUMENT_INFLIGHT_H

#include "libconsan/ptx/ptx.h"

/* By instruction: before it. NULL: there is no wgmma. free() it. */
bool *inflight_find(const struct ptx_func *f);
/* After the instruction. */
bool inflight_after(const struct ptx_insn *i, bool before);

#endif
