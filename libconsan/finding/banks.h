/* banks: counts shared memory bank conflicts, from events.
 *
 * Shared memory has 32 banks of 4 bytes. The hardware splits an access of a warp into passes of
 * at most 128 bytes: all lanes of a 4-byte access, half the lanes of an 8-byte access, a
 * quarter of a 16-byte access; for ldmatrix and stmatrix the eight rows of one matrix. A pass
 * takes as many wavefronts as the largest number of different words that it accesses in one
 * bank. Atomics, bulk copies and wgmma are not counted, because their passes are not
 * documented. */
#ifndef CONSAN_BANKS_H
#define CONSAN_BANKS_H

#include "libconsan/event/event.h"

/* The accesses of one instruction, counted in executions by a warp. */
struct bank_use {
	uint32_t site;
	uint32_t worst;         /* maximum of wavefronts of a pass */
	uint64_t accesses;      /* executions */
	uint64_t wavefronts;
	uint64_t least;         /* wavefronts without conflicts: the number of passes */
};

struct banks; /* counters of one or more launches; thread-safe */
struct banks *banks_open(void);
void banks_close(struct banks *b); /* b may be NULL */

/* Returns a sink that counts and forwards events to `next`. banks_end() frees it, adds its
 * counts to b and returns `next`. */
struct event_sink *banks_begin(struct banks *b, struct event_sink *next);
struct event_sink *banks_end(struct event_sink *sink);

/* The counts so far, ordered by site; valid until the next call. Returns their number. */
size_t banks_uses(struct banks *b, const struct bank_use **out);

#endif
