/* ranges: a set of address ranges, for memory.c. It does not lock. */
#ifndef CONSAN_INSTRUMENT_INJECT_RANGES_H
#define CONSAN_INSTRUMENT_INJECT_RANGES_H

#include "libconsan/base/base.h"

struct range { uint64_t at, bytes; };
struct ranges { VEC(struct range) list; }; /* sorted by address; zeroed to begin with */

/* Adds a range. One that begins at the same address is replaced. */
void ranges_add(struct ranges *e, uint64_t at, uint64_t bytes);
void ranges_remove(struct ranges *e, uint64_t at);
/* The last range that begins at or below addr; NULL: none. Valid until the next change. */
const struct range *ranges_below(const struct ranges *e, uint64_t addr);

#endif
