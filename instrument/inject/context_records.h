/* context_records: all that belongs to the records of one CUDA context. Shared by pool.c,
 * which makes it, identical.c and drain.c. */
#ifndef CONSAN_INSTRUMENT_INJECT_CONTEXT_RECORDS_H
#define CONSAN_INSTRUMENT_INJECT_CONTEXT_RECORDS_H

#include "instrument/record/record.h"
#include "internal.h"

enum { RECORD_SPARES = 3 };

/* A module's decode_site_words() on the GPU, and behind them, for a screen, what
 * decode_screen_sites() has. */
struct site_words { struct gpu_module *module; CUdeviceptr at; uint32_t n; };

/* What a screen needs (inject/screen.c). */
struct screen_memory {
	CUfunction screen, scan;   /* screen.cu; screen is NULL if it cannot be used */
	CUdeviceptr table;         /* of screen_use_table(), for so many pages */
	uint32_t pages;
	CUdeviceptr result;
	CUdeviceptr input;         /* maps, then ranges; then space for edges */
};

/* Launches are checked one at a time, so that only the table of contexts needs a lock. */
struct context_records {
	struct inject_pool pool;
	CUdeviceptr ticket;        /* a counter of its own */
	struct inject_pool spare[RECORD_SPARES]; /* for launches beside another one; at 0: none */
	CUcontext context;
	unsigned long long id;     /* of the context; unlike handles, ids are not reused */
	bool primary;              /* it is its device's primary context */
	CUstream side;             /* for copies and kernels of ours */
	CUstream beside;           /* for copies that must not wait for `side` */
	char *pinned;              /* STAGE_BYTES; made early, as making it waits for the GPU */
	CUdeviceptr digests;       /* a struct record_digest for each chunk */
	CUdeviceptr list;          /* LIST_BYTES: the numbers of each CTA's chunks */
	CUdeviceptr stage;         /* STAGE_BYTES: chosen chunks, before they are copied */
	CUdeviceptr facts;         /* a signature for each CTA, then its number of chunks */
	uint32_t facts_for;        /* CTAs */
	uint32_t blocks;           /* of consan_digest */
	CUfunction digest, sign, gather; /* digest.cu; digest is NULL if it cannot be used */
	VEC(struct site_words) words;
	struct screen_memory screen;
};

static inline struct context_records *context_records(const struct inject_pool *pool)
{
	return pool->records;
}

/* Copies to the host, through p->pinned in pieces unless `to` is p->pinned. */
bool context_records_copy(const struct context_records *p, void *to, CUdeviceptr from,
	size_t bytes);
/* ---- own.c ---- */
/* cuMemAlloc, of memory that is p's. False: there is not so much. */
bool own_allocate(const struct context_records *p, CUdeviceptr *at, size_t bytes);
void own_add(const void *owner, CUdeviceptr at); /* allocated in another way; the owner is any address */
void own_drop(const void *owner); /* all of the owner's memory is freed */
/* ---- identical.c ---- */
/* Loads digest.cu. If that fails p->digest is NULL, and all chunks of a launch are copied. */
void context_records_load_digest(struct context_records *p, CUdevice device);
/* ---- screen.c ---- */
/* Loads screen.cu and makes its tables, which takes up to an eighth of the free memory. If that fails, no
 * launch is screened. */
void context_records_load_screen(struct context_records *p);
/* Queues the screen of a launch, behind its digest; w: of its module; many, cap: of consan_digest. False:
 * it cannot be screened. */
bool context_records_screen(const struct inject_pool *pool, const struct gpu_launch *l,
	const struct site_words *w, CUdeviceptr many, uint32_t cap, struct screen_result *to);
/* NULL: the launch with these records is clean; else why it is not known to be. */
const char *context_records_screened(const struct inject_pool *pool, const struct gpu_launch *l,
	const struct screen_result *r, const struct record_head *head, char text[160]);
/* The edges of that launch; the caller frees them. NULL: they cannot be copied. */
struct screen_edge *context_records_edges(const struct inject_pool *pool, uint32_t n);

#endif
