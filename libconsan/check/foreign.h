/* foreign: what a cluster knows of other clusters.
 *
 * A set of (cluster, snapshot): a snapshot is what some thread of that cluster
 * knew of its own cluster when it released, as a frontier. Sets and snapshots
 * are immutable and counted, because clusters on different threads hold them at
 * the same time. clock.h has what travels with a frontier.
 *
 * House rule: the snapshot of a cluster is about its own agents only; what
 * that thread knew of third clusters are entries of their own. */
#ifndef CONSAN_CHECK_FOREIGN_H
#define CONSAN_CHECK_FOREIGN_H

#include "clock.h"

struct snapshot {
	uint32_t refs;
	struct frontier *f;      /* its foreign, seen and ready are NULL */
};

struct foreign {
	uint32_t refs, n;
	struct foreign_entry {
		uint32_t cluster;    /* ascending */
		struct snapshot *known;
		struct snapshot *fenced; /* what of it a proxy fence over global memory
				            has covered since, or NULL; known's own Q counts, too */
	} at[];
};

/* All that f knows, as a set: its own cluster's part and what it holds of others. */
struct foreign *foreign_of(uint32_t cluster, const struct frontier *f);
const struct foreign_entry *foreign_find(const struct foreign *f, uint32_t cluster);
/* Adds to f what `set` says, to a thread of that cluster. only: nothing but
 * what it says of its own cluster. */
void foreign_learn(struct clock_space *s, struct frontier *f, struct foreign *set, uint32_t cluster,
	bool only);

#endif
