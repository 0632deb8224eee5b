/* host: the host as a thread beside grids that run at the same time (beside.h).
 *
 * A grid that is suspended, or has ended without the host having waited for it, may have synchronized with the
 * host through memory. So the host becomes a member of their set when it first accesses memory that it shares
 * with them: a pseudo grid of one thread, whose accesses are in the set's shadow, and which releases and
 * acquires at the set's locations.
 *
 * The strength of the host's accesses cannot be seen. Each of its reads counts as an acquire, each write as a
 * release, at scope sys, and all threads of the host as one (libconsan/order orders them by time). So an
 * access of the host orders only where a grid accesses the same word by a strong operation of scope sys.
 *
 * The host accesses memory while no grid of the set executes: a call of check_host() is a point in the schedule
 * of all of them. */
#ifndef CONSAN_CHECK_HOST_H
#define CONSAN_CHECK_HOST_H

#include "beside.h"
#include "check.h"
#include "global.h"

#define HOST_GRID UINT32_MAX     /* launch_info.id of the pseudo grid */

struct host_agent;
struct location;
struct location_table;
void host_free(struct host_agent *h); /* NULL is fine */
/* The set is that of the running grids. unseen: check_memory_unseen() */
void host_access(struct beside *b, const struct check_host_access *a, uint64_t unseen,
	struct check_host_result *out);
/* The location, of global memory, under the lock of the table; NULL: there is none. One that the host has written is
 * made if need be. */
struct location *host_location(struct beside *b, struct location_table *t, uint64_t at, unsigned size);
/* A stream memory operation, or a host function, writes a word, or reads it: as if the host did, which can hide
 * races, and makes none. */
void host_word(struct beside *b, uint64_t addr, uint32_t bytes, bool write);
/* Has a grid released by words in [from, end), that are its newest writes there, or acquired what the host released
 * by words there? */
bool host_words(struct beside *b, uint64_t from, uint64_t end);
void host_gives_up(struct beside *b, uint64_t from, uint64_t end, bool writes);
/* A grid reads a word by a strong operation. */
void host_word_read(struct beside *b, uint64_t at, unsigned size, unsigned scope);
/* Is it the cluster of the host? */
bool host_is(const struct check *k, uint32_t cluster);
/* Is all that the host did in the set ordered before the launch (check_config.host_knew)? Also if it is no
 * member. */
bool host_before(const struct check *k, const struct beside *b);
/* A thread that knows `foreign` makes the access. */
void host_note(struct cluster *c, const struct global_record *r, const struct foreign *foreign);
/* check_part.host of the access */
uint32_t host_noted(const struct beside *b, const struct global_record *r);
/* `old` is an access of the host, `now` one of a grid. */
enum global_verdict host_classify(struct global_view *v, const struct global_record *old,
	const struct global_record *now, uint64_t addr, uint32_t bytes);

#endif
