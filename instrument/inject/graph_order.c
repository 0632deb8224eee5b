/* graph_order: see the header. Nodes are given in the order in which they were made, which
 * nearly always agrees with the edges. Then one sweep finds the order. */
#include "graph_order.h"

#include <stdint.h>
#include <stdlib.h>

#include "libconsan/base/base.h"

bool graph_order(size_t n, const struct graph_edge *edge, size_t nedges, size_t *order)
{
	size_t *first = base_alloc((n + 2) * sizeof *first);   /* first[k]: node k's first edge
								  in `next` */
	size_t *next = base_alloc((nedges + 1) * sizeof *next);
	size_t *waits = base_alloc((n + 1) * sizeof *waits);   /* number of nodes that must come
								  before; SIZE_MAX: the node is
								  in the order */
	size_t made = 0, before = SIZE_MAX;

	for (size_t k = 0; k < nedges; k++) {
		first[edge[k].from + 2]++;
		waits[edge[k].to]++;
	}
	for (size_t k = 2; k < n + 2; k++)
		first[k] += first[k - 1];
	for (size_t k = 0; k < nedges; k++) /* afterwards first[k + 1] is the end of k's edges */
		next[first[edge[k].from + 1]++] = edge[k].to;
	while (made < n && made != before) {
		before = made;
		for (size_t k = 0; k < n; k++) {
			if (waits[k])
				continue;
			waits[k] = SIZE_MAX;
			order[made++] = k;
			for (size_t i = first[k]; i < first[k + 1]; i++)
				waits[next[i]]--;
		}
	}
	free(first);
	free(next);
	free(waits);
	return made == n;
}
