/* clc: which clusters of a launch have not started yet, for clusterlaunchcontrol.try_cancel.
 *
 * The places of a launch are the clusters that start at once, as many as fit the GPU. Each place
 * has a queue of clusters that start there, one after the other, unless one that runs there cancels
 * them. So what a request returns depends on its own place only, and not on the order in which
 * workers run clusters. If all clusters fit, half of them are places: the ISA does not promise that
 * a cluster has started before another one asks. A seed draws the number of places, the place of
 * each cluster, and which requests fail although a cluster waits.
 *
 * In a queue the ids ascend: what is cut off after a failure is the same for any number of
 * workers. */
#ifndef CONSAN_EXEC_CLC_H
#define CONSAN_EXEC_CLC_H

#include "internal.h"

/* Fills grid.clc of a kernel that cancels clusters, and leaves only the first cluster of each place
 * in grid.order and grid.nclusters. */
void clc_open(struct grid *g);
void clc_close(struct grid *g);
/* Removes the first waiting cluster of this place. False: none waits. */
bool clc_next(struct grid *g, uint32_t place, uint64_t *id);
/* The place whose first cluster this is. */
uint32_t clc_place(const struct grid *g, uint64_t id);
/* Any place where a cluster waits; false: there is none. For the only worker of a launch. */
bool clc_waiting(const struct grid *g, uint32_t *place);

#endif
