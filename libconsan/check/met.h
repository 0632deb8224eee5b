/* met: what grids that ran at the same time learned of each other through memory.
 *
 * An operation that is not such a grid (a copy, or a grid that ran before or after) is ordered with
 * accesses of such a grid by way of others: a thread that acquired what a thread of grid H released is
 * ordered after all that H was ordered after, and an access that a thread of H knew when it exited is
 * ordered before all that H is ordered before. So this module remembers, of each access, the grids whose
 * begin its thread knew (a number, struct global_record.met), and of each grid what its threads knew in
 * the end. It outlives the set: others may be compared with its grids later. */
#ifndef CONSAN_CHECK_MET_H
#define CONSAN_CHECK_MET_H

#include "beside.h"

/* Of an access now by a thread that knows `foreign`: the number of what it knows of other grids; 0:
 * nothing. */
uint16_t met_number(struct cluster *c, struct foreign *foreign);
void met_cluster_reset(struct cluster *c);

#endif
