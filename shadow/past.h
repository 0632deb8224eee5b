/* past: what a granule remembers, in a cell and its chain, in face of a new access. */
#ifndef CONSAN_SHADOW_PAST_H
#define CONSAN_SHADOW_PAST_H

#include "cells.h"

#define SELDOM(x) __builtin_expect(!!(x), 0)

/* Cell `at`, which is the granule's alone, takes the access `now`; the view is
 * asked of conflicts. */
void past_touch(struct shadow *s, struct shadow_view *v, uint32_t at, uint32_t granule,
	const struct cell_entry *now);

static inline uint8_t reader_bit(uint32_t agent)
{
	return (uint8_t)(1u << (agent & 7));
}

/* Entry number `at` of the cell. */
static inline void note_entry(struct cell *c, const struct cell_entry *x, uint32_t at)
{
	if (x->what & CELL_WRITE)
		c->writes = (uint8_t)(at < 255 ? at + 1 : 255);
	else
		c->readers |= reader_bit(x->agent);
}

#endif
