/* graph_order: an order in which the nodes of a graph can run one after the other. */
#ifndef CONSAN_INSTRUMENT_GRAPH_ORDER_H
#define CONSAN_INSTRUMENT_GRAPH_ORDER_H

#include <stdbool.h>
#include <stddef.h>

struct graph_edge { size_t from, to; }; /* `from` runs before `to` */

/* order: gets the indices of the n nodes, each after those it depends on; nodes without an
 * order between them are in the order of their indices. False: the edges have a cycle. */
bool graph_order(size_t n, const struct graph_edge *edge, size_t nedges, size_t *order);

#endif
