/* grids: launches that overlap (programmatic dependent launch): G15 to G17.
 *
 * A launch with that attribute may begin when every CTA of the previous grid has executed
 * griddepcontrol.launch_dependents or has exited. The accesses of such a grid to global memory are
 * complete, and visible, only to threads ordered after a griddepcontrol.wait. consan still runs the
 * launches one after the other; the shadow of global memory is kept from one to the next. In it the
 * earlier grids are further clusters, numbered below `base`, and knowledge of the wait is one more
 * entry (GRIDS_WAITED) in the set of what is known of other clusters, so that synchronization
 * propagates it.
 *
 * Invariant: a chain ends with a launch that does not let others begin early, or that is not known
 * to be dependent; then all is ordered. */
#ifndef CONSAN_CHECK_GRIDS_H
#define CONSAN_CHECK_GRIDS_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "shadow/shadow.h"

struct check;
struct check_memory;
struct cluster;
struct foreign;
struct frontier;

#define GRIDS_WAITED UINT32_MAX /* pseudo cluster: the wait is over */

struct past_grid {
	char kernel[256];        /* mangled, by finding_set_kernel() */
	struct launch_info info; /* symbols and kernel are not copied */
	uint32_t base, end;      /* numbers of its clusters */
	bool waited;             /* some thread executed griddepcontrol.wait */
};

struct grids {
	struct past_grid *at;    /* oldest first */
	size_t n, cap;
};

/* The chains of grids kept from launch to launch, by queue. */
struct grid_table;
struct grid_table *grid_table_open(void);
void grid_table_close(struct grid_table *t);
struct grid_table *check_memory_grids(struct check_memory *m);
/* No grid of this queue (all: of any queue) is running any more. */
void grid_table_end(struct grid_table *t, uint64_t queue, bool all);

bool grid_table_has(struct grid_table *t, uint64_t queue);

/* Opens the launch's shadow of global memory: that of the earlier grids, if it may overlap with
 * them. */
void grids_begin(struct check *k);
/* Keeps the shadow for the next launch, or frees it. */
void grids_end(struct check *k);

/* What the completion of an asynchronous operation by a thread that knows `f` hands on besides the
 * operation's own effects: that the wait is over, if the thread knows it. The operation began after
 * the wait had returned, and the wait makes the accesses of the earlier grids visible to the whole
 * grid, not to the executing thread alone (9.7.13.13). The caller owns it; NULL: nothing. */
struct frontier *grids_handed_on(struct cluster *c, const struct frontier *f);

/* Is a thread that knows `foreign` ordered after a wait that covers this cluster of an earlier
 * grid? */
bool grids_waited_for(const struct check *k, const struct foreign *foreign, uint32_t cluster);
/* Is it a cluster of an earlier grid that may overlap with this one? */
bool grids_earlier(const struct check *k, uint32_t cluster);
const struct past_grid *grids_of(const struct check *k, uint32_t cluster);

#endif
