/* drain: records leave the pool while their kernel still runs, so that the chunks are
 * drawn again. What clusters did that others did as well is given up as soon as they
 * are over. Knows neither a GPU nor the executor: whoever has the pool copies. */
#ifndef CONSAN_INSTRUMENT_DRAIN_H
#define CONSAN_INSTRUMENT_DRAIN_H

#include "decode.h"

/* At most so many chunks are asked for at once. */
#define DRAIN_CHUNKS 4096u
#define DRAIN_PEEK (1u << 18) /* ... or bytes */

/* Draws are counted by 32 bits, and would come round: 8 TB are enough. */
#define DRAIN_MOST_DRAWS (1u << 31)

struct drain_run { uint32_t first, n; };

/* The pool. Each call is over when it returns, and takes place after the one before;
 * what is returned is valid until the next. NULL, false: the memory is lost. */
struct drain_pool {
	void *user;
	uint32_t chunks;
	const void *(*peek)(void *user, uint64_t at, size_t bytes);
	/* The chunks of all runs, one after the other. */
	const void *(*fetch)(void *user, const struct drain_run *run, uint32_t n);
	bool (*clear)(void *user, const struct drain_run *run, uint32_t n);
	bool (*write)(void *user, uint64_t at, const void *from, size_t bytes);
};

struct drain_config {
	struct launch_info shape;  /* grid, block, cluster */
	uint32_t *word;            /* decode_site_words(); free() takes them with the drain */
	uint32_t nwords;
	bool retire;               /* clusters that did what others did */
	uint64_t most;             /* chunks that may be kept on the host */
	unsigned jobs;
	const void *user;
	uint64_t key;              /* ... and of this launch */
	/* Is a cluster of this signature (decode_alike()'s) known to need no look? */
	bool (*clean)(const void *user, uint64_t key, uint64_t signature);
};

struct drain;
/* For one launch, before which the pool's head says how long its lanes wait. The pool
 * and the configuration are copied. */
struct drain *drain_open(const struct drain_pool *p, const struct drain_config *c);
void drain_close(struct drain *d); /* NULL is fine */
/* drain_pool.fetch(), out of a pool that is memory. */
void drain_pack(char *to, const char *pool, const struct drain_run *run, uint32_t n);
/* Drains, if little is left of the pool. False: there was nothing to do. Cheap then. */
bool drain_turn(struct drain *d);
/* Has anything been drained? If not the pool is as it is without all this. */
bool drain_begun(const struct drain *d);

struct drained {
	const struct record_head *head; /* the head chunk */
	const struct record_chunk **chunk; /* of all clusters that are not in skip */
	uint32_t n;
	uint8_t *skip;             /* clusters that are not to be looked at: others stand for them */
	const uint8_t *lacks;      /* ... of which records are missing; NULL: of none */
	const uint64_t *cta;       /* signatures of all CTAs, of a kernel that came to its end */
	bool waited;               /* lanes waited for chunks as the kernel was stopped (decode.h) */
	uint32_t retired;          /* clusters whose records are gone */
	uint32_t lost;             /* chunks that are wanted and gone */
	uint64_t drained;          /* chunks, while the kernel ran */
};
/* The kernel is over, or looked at while it hangs: what is left in the pool, which
 * may be another way to it than the one before, as it is after a fault. What it
 * returns is the drain's, until it is closed. False: the memory is lost. */
bool drain_end(struct drain *d, const struct drain_pool *p, bool ended, struct drained *r);
/* Of decode_alike(): clusters whose records are gone speak for nobody, and those of which
 * some are missing only if no other can. */
void drain_speakers(const struct drain *d, uint8_t *skip);

#endif
