/* drain_parts: between drain.c, which empties the pool while the kernel runs, drain_kept.c,
 * which keeps what came out of it, by CTA, and drain_end.c. Private to them. */
#ifndef CONSAN_INSTRUMENT_DRAIN_PARTS_H
#define CONSAN_INSTRUMENT_DRAIN_PARTS_H

#include "drain.h"

/* A chunk that was drawn. Its records lie here, or, as long as `number` says so, in the
 * pool; or they are gone. */
struct piece {
	struct piece *next;
	uint64_t clock;
	struct record_digest digest;
	uint32_t number;
	struct record_chunk *here;
};

struct cta {
	struct piece *first;
	uint64_t signature;
	uint32_t left;             /* threads that have not exited */
	uint32_t sweep;            /* ... none: since when */
	bool over;
};

/* gone: another one stands for it; lacks: records of it are missing. */
struct cluster { uint64_t signature; uint32_t left; bool gone, lacks; };

struct drain {
	struct drain_pool pool;
	struct drain_config c;
	uint32_t nctas, nclusters, per, threads;
	bool begun, ended, stuck, dead;
	uint32_t *mark;            /* of each chunk, when it was last given back */
	bool unclear;              /* run could not be cleared: it is here, and may be there */
	uint32_t cursor, sweep;    /* of marks: where it goes on; how often it was through */
	VEC(struct drain_run) run;
	VEC(uint32_t) unused;      /* chunks that may be given back, in this order, */
	size_t taken;              /* but for so many, which were */
	uint32_t given;
	double idle;               /* since when nothing was found; 0: it was */
	struct cta *cta;           /* the last: what says it is of none */
	struct cluster *cluster;
	VEC(uint32_t) ending;      /* CTAs whose threads have exited */
	VEC(struct seen { uint64_t signature; bool used; }) seen; /* a table by signature */
	uint32_t nseen;
	struct record_chunk *free; /* kept chunks' memory, chained by its first word */
	VEC(void *) block;
	uint64_t kept;
	uint32_t late;
	_Alignas(16) char head[RECORD_CHUNK_BYTES];
	VEC(const struct record_chunk *) out;
	uint64_t *signatures;
	uint8_t *skip, *lacks;
	uint64_t drained;
};

/* ---- drain.c ---- */
void drain_begin(struct drain *d);
/* The chunk comes after those of the runs. */
void drain_add_to_runs(struct drain *d, uint32_t chunk);

/* ---- drain_kept.c ---- */
/* Memory for a chunk. NULL: as much is kept as may be. */
struct record_chunk *drain_keep(struct drain *d);
/* The runs' chunks come here. stays: the pool keeps them, so that there is no need to keep
 * them here. False: they are lost. */
bool drain_absorb(struct drain *d, const struct drain_run *run, uint32_t nruns, bool stays);
/* A cluster of which records are missing would look as if it had done wrong. */
void drain_lacks(struct drain *d, uint32_t cta);
/* All that it recorded is here. */
void drain_end_cta(struct drain *d, uint32_t id);
/* ... as is so of those that ended before the marks were looked at twice. */
void drain_end_ctas(struct drain *d);
void drain_drop(struct drain *d, struct cta *a);

/* What drain_pool.fetch() returned. */
static inline const struct record_chunk *drain_packed(const struct record_chunk *from, uint32_t k)
{
	return (const void *)((const char *)from + (size_t)k * RECORD_CHUNK_BYTES);
}

#endif
