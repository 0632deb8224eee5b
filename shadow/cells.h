/* cells: the cells of a table, by index, and their chains. Does not interpret entries.
 *
 * A granule's cell may be followed by a chain of cells that belong to this granule alone. Cells
 * move when the pool grows, which cells_new(), cells_copy() and cells_grow() may cause: the caller
 * must take its pointers again after these calls. */
#ifndef CONSAN_SHADOW_CELLS_H
#define CONSAN_SHADOW_CELLS_H

#include "table.h"

void cells_open(struct shadow *s);
void cells_reset(struct shadow *s); /* frees all cells */
void cells_close(struct shadow *s);

/* An empty cell with no references. */
uint32_t cells_new(struct shadow *s);
/* A copy of cell `from` and its chain, with no references. */
uint32_t cells_copy(struct shadow *s, uint32_t from);
/* Frees the chain that follows the cell. */
void cells_cut(struct shadow *s, uint32_t at);
/* Frees the cell and its chain. */
void cells_free(struct shadow *s, uint32_t at);
/* Appends a cell to the chain whose last cell is `last`. */
uint32_t cells_grow(struct shadow *s, uint32_t last);

#endif
