/* graph_order: in which order the nodes of a graph can run one after the other.
 * What nodes are is not known here. */
#ifndef CONSAN_INSTRUMENT_GRAPH_ORDER_H
#define CONSAN_INSTRUMENT_GRAPH_ORDER_H

#include <stdbool.h>
#include <stddef.h>

struct graph_edge { size_t from, to; }; /* `from` before `to` */

/* order: gets the n nodes, each after those it depends on; those that the edges leave
 * open in the order of their numbers. False: the edges make a circle. */
bool graph_order(size_t n, const struct graph_edge *edge, size_t nedges, size_t *order);

#endif
