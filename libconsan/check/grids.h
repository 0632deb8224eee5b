/* grids: launches that overlap (programmatic dependent launch): G15 to G17.
 *
 * A launch with that attribute may begin when every CTA of the grid before has
 * executed griddepcontrol.launch_dependents or is done. What such a grid did to
 * global memory is over, and visible, only to those who know of a
 * griddepcontrol.wait. The launches still run one after the other; the shadow of
 * global memory lives on from one to the next, in which the grids before are
 * further clusters, numbered below `base`, and knowledge of the wait is one more
 * entry (GRIDS_WAITED) in the set of what is known of other clusters, so that it
 * travels along every edge.
 *
 * House rule: a chain ends with a launch that does not let others begin early, or
 * that is not known to be dependent; then all is ordered. */
#ifndef CONSAN_CHECK_GRIDS_H
#define CONSAN_CHECK_GRIDS_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "shadow/shadow.h"

struct check;
struct check_memory;
struct cluster;
struct foreign;

#define GRIDS_WAITED UINT32_MAX /* stands for a cluster: the wait is over */

struct past_grid {
	char kernel[256];        /* mangled, by finding_set_kernel() */
	struct launch_info info; /* symbols and kernel are not its own */
	uint32_t base, end;      /* its clusters' numbers */
	bool waited;             /* some thread executed griddepcontrol.wait */
};

struct grids {
	struct past_grid *at;    /* oldest first */
	size_t n, cap;
};

/* What outlives a launch, by queue. */
struct grid_table;
struct grid_table *grid_table_open(void);
void grid_table_close(struct grid_table *t);
struct grid_table *check_memory_grids(struct check_memory *m);
/* Nothing of this queue (of all: any) runs any more. */
void grid_table_end(struct grid_table *t, uint64_t queue, bool all);

bool grid_table_has(struct grid_table *t, uint64_t queue);

/* Opens the launch's shadow of global memory: that of the grids before, if it may
 * overlap with them. */
void grids_begin(struct check *k);
/* Keeps it for the next one, or frees it. */
void grids_end(struct check *k);

/* Does a thread that knows `foreign` know that this cluster, of a grid before, is done? */
bool grids_over(const struct check *k, const struct foreign *foreign, uint32_t cluster);
const struct past_grid *grids_of(const struct check *k, uint32_t cluster);

#endif
