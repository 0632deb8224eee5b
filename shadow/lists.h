/* lists: the lanes of accesses of 16 bytes a lane at any addresses, as those of ldmatrix and
 * swizzled cp.async, in which no granule occurs twice. Such an access is one entry for all of its
 * granules, of kind CELL_LISTED, with
 *
 *     lanes = number of a list << 16 | granule of the lowest lane
 *
 * A list has the granule of each lane relative to the lowest one's, so that the stages of a
 * pipeline have the same lists, and equal accesses have equal entries. Nothing is known of the
 * lanes of entries that differ: where that matters, the entries of a granule are *spelled out*:
 * they get the lanes that they have in this granule. Only table.c and plain.c meet entries of this
 * kind; past.c and the callbacks get entries that are spelled out. */
#ifndef CONSAN_SHADOW_LISTS_H
#define CONSAN_SHADOW_LISTS_H

#include "cells.h"

#define CELL_LISTED (6u << CELL_SHIFT_AT)
#define LISTS_GRANULES 0x8000u /* only granules below this one */

static inline bool is_listed(const struct cell_entry *e)
{
	return (e->what & CELL_SHIFT_MASK) == CELL_LISTED;
}

void lists_open(struct shadow *s);
void lists_reset(struct shadow *s); /* no entry has a list */
void lists_close(struct shadow *s);
size_t lists_footprint(const struct shadow *s); /* bytes of host memory */

/* The `lanes` of an entry for these lanes, each of which accesses granule[lane]. False: two access
 * the same granule, or there are too many lists. Other elements of granule[] are not used. */
bool lists_find(struct shadow *s, const uint32_t granule[32], uint32_t lanes,
	uint32_t *entry_lanes);
/* Spells out the entries of a cell that only this granule has. False: none is listed. */
bool lists_spell(struct shadow *s, uint32_t cell, uint32_t granule);

#endif
