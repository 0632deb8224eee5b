/* foreign: what a cluster knows of other clusters.
 *
 * A set of (cluster, snapshot): a snapshot is what a thread of that cluster knew of its own cluster
 * when it released, as a frontier. Sets and snapshots are immutable and have reference counts,
 * because clusters on different threads hold them at the same time. clock.h declares what is needed
 * to store them in a frontier.
 *
 * Invariant: the snapshot of a cluster covers its own agents only; what that thread knew of third
 * clusters are entries of their own. */
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
		/* the part of it that a proxy fence over global memory has covered since, or NULL;
		 * known's own Q also counts */
		struct snapshot *fenced;
	} at[];
};

/* All that f knows, as a set: of its own cluster and of others. The caller owns the reference. */
struct foreign *foreign_of(uint32_t cluster, const struct frontier *f);
/* The set of a pseudo cluster, which synchronization hands on like others. */
struct foreign *foreign_mark(uint32_t pseudo);
const struct foreign_entry *foreign_find(const struct foreign *f, uint32_t cluster);
/* Does the set know what these lanes did up to the epoch, as that agent of the cluster? NULL: nothing. */
bool foreign_knows(const struct foreign *f, uint32_t cluster, enum plane plane, uint32_t agent,
	uint32_t lanes, uint32_t epoch);
/* Adds the knowledge in `set` to f, the frontier of a thread of that cluster. */
void foreign_learn(struct clock_space *s, struct frontier *f, struct foreign *set,
	uint32_t cluster);

#endif
