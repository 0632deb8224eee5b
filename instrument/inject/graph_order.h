/* graph_order: an order in which the nodes of a graph can run one after the other, and the branches in
 * which they can run beside each other. */
#ifndef CONSAN_INSTRUMENT_GRAPH_ORDER_H
#define CONSAN_INSTRUMENT_GRAPH_ORDER_H

#include <stdbool.h>
#include <stddef.h>

struct graph_edge { size_t from, to; }; /* `from` runs before `to` */

/* order: gets the indices of the n nodes, each after those it depends on; nodes without an
 * order between them are in the order of their indices. False: the edges have a cycle. */
bool graph_order(size_t n, const struct graph_edge *edge, size_t nedges, size_t *order);

/* Sequences of steps, such that a step comes after all earlier ones of its branch by the graph's edges:
 * steps that nothing orders are in different branches. */
struct graph_after { const size_t *at; size_t n; }; /* the earlier steps on which a step depends */
/* branch: gets the branch of each step, the first one has 0. Returns how many there are. */
size_t graph_branches(size_t n, const struct graph_after *after, size_t *branch);

#endif
