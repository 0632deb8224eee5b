/* beside: grids that run at the same time, and synchronize through memory.
 *
 * A grid that cannot go on is suspended, and others run (exec_observer). From the first one's begin
 * until none is left, and none comes that is not ordered after all of them, they share the shadow of
 * global memory and the locations of synchronization, and their clusters are numbered one after the
 * other, so that grids are ordered by release and acquire patterns as clusters of one grid are. Between
 * devices, patterns need scope sys.
 *
 * A grid that was issued after another one (check_config.before) is ordered after all of it, and
 * knows what its threads knew when they exited.
 *
 * Clusters of different grids may have different shapes: the agents in a record are those of its own
 * cluster (beside_agents()), and so is what is known of it (frontier_space()). */
#ifndef CONSAN_CHECK_BESIDE_H
#define CONSAN_CHECK_BESIDE_H

#include "libconsan/base/base.h"
#include "grids.h"
#include "location.h"

#define LOCATION_SHARDS 64u
#define MARKED_LINES 65536u

struct check;
struct cluster;
struct foreign;
struct grid_table;
struct host_agent;

struct location_shard {
	pthread_mutex_t lock;
	struct location_table table;
};

struct beside_grid {
	struct past_grid grid;
	struct foreign *left;    /* what its threads knew when they exited */
	struct foreign *complete; /* a pseudo cluster: a thread that knows it knows all that the grid did */
};

enum { MOST_GRIDS = 256 };       /* of a set; then it ends when none runs */
enum { MOST_MET = UINT16_MAX - 1 };
struct met_grids { uint32_t bits[MOST_GRIDS / 32]; }; /* by their number in the set */

/* From this epoch on, the warp knew what the host had done up to that one. */
struct host_known { uint32_t cluster, warp, epoch, host; };

/* Accesses of the host to [from, end), from its epoch on, were not seen. */
struct host_page { uint64_t from, end; uint32_t epoch; };

/* A launch by a thread: what it has done and knows, which the grid begins with. */
struct beside_launch { uint64_t number; struct foreign *set; };

struct beside {
	uint32_t refs;           /* of check_met(), and one while the set is not ended */
	struct global_shadow *shadow;
	struct location_shard location[LOCATION_SHARDS];
	uint32_t nlocations;     /* with a release so far */
	uint32_t system;         /* a grid has released at scope sys */
	uint32_t system_read;    /* ... or has read by a strong operation at scope sys */
	uint32_t ordered;        /* some location has what fence.sc orders */
	uint8_t line[MARKED_LINES / 8]; /* by hash of addr / 64: some location is in that line */
	uint32_t number;         /* of each such set of grids; 0: no other grid can join */
	uint32_t running, end;   /* open checks; clusters so far */
	VEC(struct beside_grid *) grid;
	pthread_mutex_t met_lock;
	VEC(struct met_grids) met; /* what threads knew, see met.h; number 1 is the first */
	VEC(struct beside_launch) launch; /* of grids that have not begun */
	struct host_agent *host; /* a member (host.h); NULL: it has accessed nothing, or the set has ended */
	uint32_t host_cluster;   /* its cluster; valid beyond the set's end */
	VEC(struct host_known) host_known; /* what threads knew of it; under met_lock */
	uint64_t unseen;         /* check_memory_unseen() when the set began */
	VEC(struct host_page) host_page; /* of which accesses of the host were not seen */
	bool host_unseen;        /* the host may have synchronized with a grid by words of these */
};

/* Of a check's global: joins those that run, or begins alone. running: the table's; NULL inside:
 * none. sets: counts them. Called under the lock of the table of grids. */
void beside_begin(struct check *k, struct beside **running, uint32_t *sets);
/* Returns whether the set ends; the shadow then belongs to the caller. stays: it may go on. */
bool beside_end(struct check *k, struct beside **running, bool stays);
/* Ends the set if none runs, nor will run as a part of one. */
void beside_drop(struct beside **running);
/* No other grid has run at the same time. */
bool beside_alone(const struct check *k);

/* Of global memory: the table that has a location; and which addresses need no lookup, without a lock. */
struct location_shard *beside_shard(struct beside *b, uint64_t at);
void beside_mark(struct beside *b, uint64_t at);

/* A thread launches a grid (launch_info.launched). Takes the reference to the set. */
void beside_launches(struct check *k, uint64_t number, struct foreign *set);

/* A thread of this cluster exited, or all have: what they know is handed on to later grids. */
void beside_leave(struct cluster *c);

/* The grid of the set that has the cluster. */
uint32_t beside_index(const struct beside *b, uint32_t cluster);
/* Is it a cluster of another grid that runs at the same time? */
bool beside_other(const struct check *k, uint32_t cluster);
/* Was that grid issued before this one? */
bool beside_before(const struct check *k, uint32_t cluster);
/* Is it known that the grid of that cluster is complete? */
bool beside_complete(const struct check *k, const struct foreign *known, uint32_t cluster);
const struct past_grid *beside_of(const struct check *k, uint32_t cluster);
/* Warps of a CTA, and the agents of a cluster, of its grid. */
uint32_t beside_per_cta(const struct check *k, uint32_t cluster);
struct agents;
struct agents beside_agents(const struct check *k, uint32_t cluster);
/* scope_needed() for global memory, where devices count, too. */
unsigned beside_scope_needed(const struct check *k, uint32_t cluster, unsigned cta,
	uint32_t other_cluster, unsigned other_cta);

#endif
