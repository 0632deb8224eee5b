/* inject_own: all that belongs to the records of one context. Shared by inject_pool.c,
 * which makes it, and inject_alike.c, which asks what is in it. */
#ifndef CONSAN_INSTRUMENT_INJECT_OWN_H
#define CONSAN_INSTRUMENT_INJECT_OWN_H

#include "instrument/record/record.h"
#include "internal.h"

#define AHEAD_CHUNKS 2048u         /* 8 MiB */

struct words { struct gpu_module *module; CUdeviceptr at; uint32_t n; };

/* All of one context. Launches are looked at one at a time, so that what is not the
 * table itself needs no lock. */
struct own {
	struct inject_pool pool;   /* first: it stands for all */
	CUcontext context;
	unsigned long long id;     /* of the context, never another's: handles are used again */
	bool primary;              /* ... of its device */
	CUstream side;
	CUstream beside;           /* for what is asked while `side` has work */
	char *pinned;              /* STAGE_BYTES; made early: making it waits for the GPU */
	CUdeviceptr digests, list, stage;
	CUdeviceptr facts;         /* of each CTA: a signature, how many chunks */
	uint32_t facts_for;        /* CTAs */
	uint32_t blocks;           /* of consan_digest */
	CUdeviceptr found;         /* consan_first's count */
	struct ahead {             /* what it brings: pinned; NULL: there is no such memory */
		char chunk[AHEAD_CHUNKS + 1][RECORD_CHUNK_BYTES];
		uint32_t found;
	} *ahead;
	bool looked_ahead;         /* ... of the launch at hand */
	CUfunction digest, sign, gather, first;
	VEC(struct words) words;
};

static inline struct own *own(const struct inject_pool *pool)
{
	return (struct own *)(uintptr_t)pool;
}

/* A copy to the host, in pieces of p->pinned unless it is there that it goes. */
bool own_copy(const struct own *p, void *to, CUdeviceptr from, size_t bytes);
/* Without it, p->digest is NULL, and every chunk is copied. */
void own_make_digest(struct own *p, CUdevice device);

#endif
