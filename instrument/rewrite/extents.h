/* extents: which stretches of addresses are in use. Knows neither whose nor why;
 * no lock. */
#ifndef CONSAN_INSTRUMENT_EXTENTS_H
#define CONSAN_INSTRUMENT_EXTENTS_H

#include "libconsan/base/base.h"

struct extent { uint64_t at, bytes; };
struct extents { VEC(struct extent) list; }; /* by address; zeroed at first */

/* What began at the same address is replaced. */
void extents_add(struct extents *e, uint64_t at, uint64_t bytes);
void extents_remove(struct extents *e, uint64_t at);
/* The last one that begins at or below addr; NULL: none does. Until the next change. */
const struct extent *extents_below(const struct extents *e, uint64_t addr);

#endif
