/* banks: counts shared-memory bank conflicts, from events.
 *
 * Shared memory has 32 banks of 4 bytes. The lanes of a warp are served in passes
 * of at most 128 bytes: all lanes of a 4-byte access at once, half of them of an
 * 8-byte one, a quarter of a 16-byte one; of ldmatrix and stmatrix the eight rows
 * of one matrix. A pass takes as many wavefronts as different words are wanted
 * from one bank; one is enough if none are. Atomics, bulk copies and wgmma are
 * not counted: how they are served is not documented. */
#ifndef CONSAN_BANKS_H
#define CONSAN_BANKS_H

#include "libconsan/event/event.h"

/* What one instruction did; numbers are of warps. */
struct bank_use {
	uint32_t site;
	uint32_t worst;         /* most wavefronts of a pass */
	uint64_t accesses;      /* executions */
	uint64_t wavefronts;
	uint64_t least;         /* wavefronts without conflicts: the passes */
};

struct banks; /* of one launch or more; thread-safe */
struct banks *banks_open(void);
void banks_close(struct banks *b); /* NULL is fine */

/* A sink that counts and hands on to `next`, to be ended by banks_end(), which
 * gives `next` back. */
struct event_sink *banks_begin(struct banks *b, struct event_sink *next);
struct event_sink *banks_end(struct event_sink *sink);

/* So far, by site; valid until the next call. */
size_t banks_uses(struct banks *b, const struct bank_use **out);

#endif
