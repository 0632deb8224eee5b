/* event_valid: are launches, clusters and events that were read from a file such as a producer makes?
 * The executor and the decoder of GPU records keep these rules by construction. A file may contain
 * anything: what this module accepts, every consumer of events can take. valid.def has the rules. */
#ifndef CONSAN_EVENT_VALID_H
#define CONSAN_EVENT_VALID_H

#include "event.h"

#define EVENT_MAX_CTAS 16u   /* of a cluster */
#define EVENT_MAX_WARPS 32u  /* of a CTA */

/* What is known of a cluster whose events are being read. Zeroed, then event_valid_begin(). */
struct event_valid {
	const struct launch_info *launch;
	uint32_t nctas, warps, threads; /* warps and threads of each CTA */
	struct {
		bool begun, ended;
		uint32_t bytes;                   /* of shared memory */
		uint32_t live[EVENT_MAX_WARPS];   /* lanes that have not exited, of each warp */
	} cta[EVENT_MAX_CTAS];
};

/* Each of them returns NULL, or what is wrong: a string constant. */
const char *launch_wrong(const struct launch_info *l);
/* Starts a cluster; its launch is valid. */
const char *event_valid_begin(struct event_valid *v, const struct cluster_info *c);
/* The next event of the cluster. Records what later events depend on. */
const char *event_wrong(struct event_valid *v, const struct event *e);

#endif
