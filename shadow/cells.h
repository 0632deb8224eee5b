/* cells: the cells of a table, by index; and their chains. Does not know what
 * entries mean.
 *
 * A granule's cell may be followed by a chain of others that belong to it alone.
 * Cells move when the pool grows, which cells_new(), cells_copy() and cells_grow()
 * may do: pointers are to be taken anew. */
#ifndef CONSAN_SHADOW_CELLS_H
#define CONSAN_SHADOW_CELLS_H

#include "table.h"

void cells_open(struct shadow *s);
void cells_reset(struct shadow *s); /* all cells go */
void cells_close(struct shadow *s);

/* An empty cell, nobody's yet. */
uint32_t cells_new(struct shadow *s);
/* A cell that says what cell `from` and its chain do, nobody's yet. */
uint32_t cells_copy(struct shadow *s, uint32_t from);
/* Frees the chain that follows the cell. */
void cells_cut(struct shadow *s, uint32_t at);
/* Frees the cell and its chain. */
void cells_free(struct shadow *s, uint32_t at);
/* A new cell at the chain's end, which `last` is. */
uint32_t cells_grow(struct shadow *s, uint32_t last);

#endif
