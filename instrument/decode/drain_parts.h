/* drain_parts: shared by drain.c, which empties the pool while the kernel runs, drain_kept.c,
 * which keeps the chunks by CTA, and drain_end.c, which takes the rest. Private to them. */
#ifndef CONSAN_INSTRUMENT_DRAIN_PARTS_H
#define CONSAN_INSTRUMENT_DRAIN_PARTS_H

#include "drain.h"

#include "libconsan/base/base.h"

/* A chunk of records. */
struct piece {
	struct piece *next;        /* of the same CTA */
	uint64_t clock;
	struct record_digest digest;
	uint32_t number;           /* in the pool; 0: it is no longer there */
	struct record_chunk *here; /* the copy; NULL: none, and if number is 0, it is missing */
};

struct cta {
	struct piece *first;
	uint64_t signature;        /* valid when it has ended */
	uint32_t left;             /* threads that have not exited */
	uint32_t sweep;            /* 1 + struct drain's sweep when none was left; 0: some are */
	bool ended;                /* all of its records were seen */
};

struct cluster {
	uint64_t signature;
	uint32_t left;             /* CTAs that have not ended */
	bool retired;              /* its records were discarded, as another one is identical */
	bool incomplete;           /* records of it are missing */
};

struct drain {
	struct drain_pool pool;
	struct drain_config c;
	uint32_t nctas, nclusters;
	uint32_t per, threads;     /* CTAs of a cluster, threads of a CTA */
	bool begun, ended;
	bool stuck;                /* lanes no longer wait for chunks */
	bool dead;                 /* the pool cannot be accessed any more */
	uint32_t *mark;            /* of each chunk, its mark when it was last drained */
	bool unclear;              /* the chunks of `run` were copied, but clearing them failed */
	uint32_t cursor, sweep;    /* the next mark to read; how often all were read */
	VEC(struct drain_run) run; /* the chunks of one call of drain_pool */
	VEC(uint32_t) unused;      /* chunks that can be given back, in this order, */
	size_t taken;              /* of which so many were */
	uint32_t given;            /* entries of the ring that were written */
	double idle;               /* lanes have waited in vain since then; 0: they have not */
	struct cta *cta;           /* the last one: of chunks that name no valid CTA */
	struct cluster *cluster;
	VEC(uint32_t) ending;      /* CTAs whose threads have exited, see drain_end_ctas() */
	struct number_set representatives; /* signatures of those clusters that have ended */
	struct record_chunk *free; /* memory for chunks, linked by the first word */
	VEC(void *) block;         /* all of that memory */
	uint64_t kept;             /* chunks in use */
	uint32_t late;             /* chunks that came after their CTA had ended */
	/* the content of struct drained */
	_Alignas(16) char head[RECORD_CHUNK_BYTES];
	VEC(const struct record_chunk *) out;
	uint64_t *signatures;
	uint8_t *skip, *incomplete;
	uint64_t drained;
};

/* ---- drain.c ---- */
void drain_begin(struct drain *d);
/* Appends a chunk to d->run. Chunks are added in ascending order. */
void drain_add_to_runs(struct drain *d, uint32_t chunk);

/* ---- drain_kept.c ---- */
/* Memory for a chunk. NULL: none is left, or the limit is reached. */
struct record_chunk *drain_keep(struct drain *d);
/* Digests the chunks of these runs and adds them to their CTAs. stays: they stay in the pool, and
 * no copies are kept. False: they could not be fetched. */
bool drain_absorb(struct drain *d, const struct drain_run *run, uint32_t nruns, bool stays);
/* Records of this CTA's cluster are missing. */
void drain_set_incomplete(struct drain *d, uint32_t cta);
/* All records of the CTA were seen: computes its signature, and, if its cluster has ended and is
 * identical to another one, discards the cluster's records. */
void drain_end_cta(struct drain *d, uint32_t id);
/* Ends the CTAs whose last chunks must have been drained by now. */
void drain_end_ctas(struct drain *d);
void drain_discard(struct drain *d, struct cta *a);

/* The k-th chunk of what drain_pool.fetch() returned. */
static inline const struct record_chunk *drain_packed(const struct record_chunk *from, uint32_t k)
{
	return (const void *)((const char *)from + (size_t)k * RECORD_CHUNK_BYTES);
}

#endif
