/* fallback: tests whether a kernel does the same when some of its clusters are smaller.
 *
 * A launch that prefers large clusters may find some of its CTAs in smaller ones.
 * The launch runs in a forked copy of the process twice from the same memory:
 * with whole clusters, and with some of them split. The kernel is invariant if the
 * second run shows no error that the first did not, and leaves the same memory.
 * That is a verdict about this launch and this seed, not a proof for all. */
#ifndef CONSAN_FALLBACK_H
#define CONSAN_FALLBACK_H

#include "internal.h"

/* The verdict becomes a remark of the session. Does not change the memory of the process. */
void fallback_try(struct consan *c, const struct consan_launch *l, const void *params,
	const struct check_config *config);

/* ---- operations that reach from one part of a cluster into another ---- */

struct crossings;
/* A sink that notes such operations and forwards all events to `next`. crossings_end() frees it
 * and returns `next`. */
struct event_sink *crossings_begin(struct crossings *x, const struct cluster_info *info,
	struct event_sink *next);
struct event_sink *crossings_end(struct event_sink *sink);

#endif
