/* drain: copies records out of the pool while their kernel still runs, and gives the chunks
 * back to it, so that a launch may record more than the pool holds. When a cluster has ended
 * that is identical to another one, its records are discarded. The caller has access to the
 * pool, of a GPU or of the executor. */
#ifndef CONSAN_INSTRUMENT_DRAIN_H
#define CONSAN_INSTRUMENT_DRAIN_H

#include "decode.h"

/* Limits of one call: chunks for fetch, bytes for peek and write. */
#define DRAIN_CHUNKS 4096u
#define DRAIN_PEEK (1u << 18)

/* Draining ends after so many draws (8 TB), before their 32-bit counter overflows. */
#define DRAIN_MOST_DRAWS (1u << 31)

struct drain_run { uint32_t first, n; }; /* consecutive chunks */

/* Access to the pool. Each call has taken effect when it returns; what it returns is valid
 * until the next call. NULL, false: the memory cannot be accessed any more. */
struct drain_pool {
	void *user;
	uint32_t chunks;
	const void *(*peek)(void *user, uint64_t at, size_t bytes);
	/* The chunks of all runs, in one piece. */
	const void *(*fetch)(void *user, const struct drain_run *run, uint32_t n);
	bool (*clear)(void *user, const struct drain_run *run, uint32_t n);
	bool (*write)(void *user, uint64_t at, const void *from, size_t bytes);
};

struct drain_config {
	struct launch_info shape;  /* grid, block, cluster */
	uint32_t *word;            /* decode_site_words(); owned by the drain */
	uint32_t nwords;
	bool retire;               /* discard the records of identical clusters */
	uint64_t most;             /* chunks that may be kept on the host */
	unsigned jobs;
	const void *user;
	uint64_t key;              /* of this launch, for clean() */
	/* Is a cluster of this signature identical to a clean one of an earlier launch? */
	bool (*clean)(const void *user, uint64_t key, uint64_t signature);
};

struct drain;
/* For one launch; record_head.wait_cycles must be set before it begins. The pool and the
 * configuration are copied. */
struct drain *drain_open(const struct drain_pool *p, const struct drain_config *c);
void drain_close(struct drain *d); /* NULL is fine */
/* drain_pool.fetch() for a pool in host memory. */
void drain_pack(char *to, const char *pool, const struct drain_run *run, uint32_t n);
/* To be called repeatedly while the kernel runs: drains if less than a quarter of the pool is
 * free. False: there was nothing to do, which is cheap. */
bool drain_turn(struct drain *d);
/* Was anything drained? If not, the pool can be used as if drains were off. d: may be NULL. */
bool drain_begun(const struct drain *d);

struct drained {
	const struct record_head *head; /* the head chunk */
	const struct record_chunk **chunk; /* of all clusters that are not in skip */
	uint32_t n;
	uint8_t *skip;             /* a byte for each cluster: its records were discarded, as it is
				      identical to another one */
	const uint8_t *incomplete; /* a byte for each cluster: records of it are missing; or NULL */
	const uint64_t *cta;       /* signatures of all CTAs; NULL: the kernel was stopped */
	bool waited;               /* lanes waited for chunks when it was stopped (decode.h) */
	uint32_t retired;          /* clusters whose records were discarded */
	uint32_t lost;             /* chunks that are missing */
	uint64_t drained;          /* chunks that were drained while the kernel ran */
};
/* The kernel is over, or is to be checked while it hangs. Takes what is left in the pool; p may
 * differ from drain_open()'s, as after a fault the memory is accessed in another way. *r is
 * valid until drain_close(). False: the memory cannot be accessed any more. */
bool drain_end(struct drain *d, const struct drain_pool *p, bool ended, struct drained *r);
/* Chooses the representatives of decode_identical() anew: a cluster whose records were discarded
 * is none, an incomplete one only if all that are identical to it are incomplete. */
void drain_choose_representatives(const struct drain *d, uint8_t *skip);

#endif
