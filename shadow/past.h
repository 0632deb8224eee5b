/* past: effect of a new access on the accesses that a granule remembers, in a cell and its
 * chain. */
#ifndef CONSAN_SHADOW_PAST_H
#define CONSAN_SHADOW_PAST_H

#include "cells.h"

#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Applies the access `now` to cell `at`, which only this granule has; calls the view's callbacks
 * for conflicts. */
void past_touch(struct shadow *s, struct shadow_view *v, uint32_t at, uint32_t granule,
	const struct cell_entry *now);

static inline uint8_t reader_bit(uint32_t agent)
{
	return (uint8_t)(1u << (agent & 7));
}

/* Updates the header of the cell for entry number `at`. */
static inline void note_entry(struct cell *c, const struct cell_entry *x, uint32_t at)
{
	if (x->what & CELL_WRITE)
		c->writes = (uint8_t)(at < 255 ? at + 1 : 255);
	else
		c->readers |= reader_bit(x->agent);
}

#endif
