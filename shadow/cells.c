/* cells: see cells.h. An array that grows by doubling; free cells form a list. */
#include "cells.h"

#include "libconsan/base/base.h"

#include <stdlib.h>
#include <string.h>

/* A cell is one cache line. */
static void set_capacity(struct shadow *s, uint32_t cap)
{
	void *memory = base_alloc((cap + (size_t)1) * sizeof *s->cell);
	struct cell *cell = (struct cell *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);

	if (s->used)
		memcpy(cell, s->cell, s->used * sizeof *cell);
	free(s->memory);
	s->memory = memory;
	s->cell = cell;
	s->cap = cap;
}

void cells_open(struct shadow *s)
{
	set_capacity(s, 256);
	s->used = 1;
}

void cells_reset(struct shadow *s)
{
	s->used = 1;
	s->free = 0;
}

void cells_close(struct shadow *s)
{
	free(s->memory);
}

uint32_t cells_new(struct shadow *s)
{
	uint32_t at = s->free;

	if (at) {
		s->free = s->cell[at].more;
	} else {
		if (s->used == s->cap)
			set_capacity(s, 2 * s->cap);
		at = s->used++;
	}
	memset(&s->cell[at], 0, offsetof(struct cell, entry));
	return at;
}

uint32_t cells_copy(struct shadow *s, uint32_t from)
{
	uint32_t first = cells_new(s), to = first, next;

	for (;; to = next) {
		next = s->cell[from].more;
		s->cell[to] = s->cell[from];
		if (!next)
			break;
		from = next;
		next = cells_new(s);
		s->cell[to].more = next;
	}
	s->cell[first].refs = 0;
	return first;
}

void cells_cut(struct shadow *s, uint32_t at)
{
	uint32_t next = s->cell[at].more, last = next;

	if (!next)
		return;
	s->cell[at].more = 0;
	while (s->cell[last].more)
		last = s->cell[last].more;
	s->cell[last].more = s->free;
	s->free = next;
}

void cells_free(struct shadow *s, uint32_t at)
{
	cells_cut(s, at);
	s->cell[at].more = s->free;
	s->free = at;
}

uint32_t cells_grow(struct shadow *s, uint32_t last)
{
	uint32_t at = cells_new(s);

	s->cell[last].more = at;
	return at;
}
