/* decode: the records of a launch -> its events, in an order in which they can
 * have happened, cluster by cluster, several at a time. Whoever takes the
 * events cannot tell them from those of the executor.
 *
 * What it cannot know, as the hardware keeps it to itself, it puts as late as
 * what was seen allows: a bulk copy signals its mbarrier when a wait that
 * succeeded needs the signal. */
#ifndef CONSAN_INSTRUMENT_DECODE_H
#define CONSAN_INSTRUMENT_DECODE_H

#include "instrument/record/record.h"
#include "instrument/rewrite/rewrite.h"
#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"

/* A tensor copy: asked with what is before the answer. */
struct decode_box {
	uint64_t map;              /* its generic address */
	uint32_t shared;           /* offset of the box */
	bool wants_global, rows;   /* gspans; a gather or scatter */
	bool load, placed;         /* placed: coordinates and offsets are known */
	uint8_t ncoords, noffsets;
	int32_t at[5];             /* coordinates, if wants_global */
	uint16_t offset[3];
	struct refusal *refused;   /* gets why the operands may not be; else set to NULL,
				      and this is the answer: */
	uint32_t align;            /* of the shared side */
	uint32_t bytes, extent;    /* moved; from the first byte to the last */
	const struct ev_span *spans; /* if it has holes */
	uint32_t nspans;
	const struct ev_gspan *gspans;
	uint32_t ngspans;
	bool in_global;            /* the map may change while the kernel runs */
	uint64_t hash;             /* of its bytes then */
};

/* What is known of a module's places before they are executed. */
struct decode_sites;
struct decode_sites *decode_sites_open(const struct rewrite *code);
void decode_sites_close(struct decode_sites *s); /* NULL is fine */
/* Into the cache of this thread, which will decode what f recorded: it was made long ago. */
void decode_sites_fetch(const struct decode_sites *s, const struct rewrite *code, const struct ptx_func *f);

struct decode_launch {
	const struct rewrite *code;
	const struct decode_sites *sites;
	const struct rewrite_func *func;
	const uint32_t *site;      /* site.h's id of each of code->site */
	const struct launch_info *info;
	const void *pool;          /* as the launch left it: the head chunk and those given out */
	uint32_t chunks;           /* given out */
	const uint8_t *lacks;      /* clusters of which records are missing, beside those that the
				      pool says; NULL: none */
	bool waited;               /* lanes waited for room as the kernel was stopped: who seems to
				      wait for something else may not have told what came of it */
	const struct record_chunk *const *chunk; /* where they are; NULL: behind the head */
	uint32_t shared;           /* where each CTA's shared memory ends; 0: not known */
	uint32_t shared_all;       /* ... at the latest, with what the hardware keeps there */
	bool tickets;              /* as in struct record_params */
	bool grid_order;           /* clusters order each other: they are decoded together
				      by one thread; needs tickets */
	bool exact;                /* what stands between two synchronisations comes when
				      its clock says, among the warps of its CTA, which
				      takes longer: to tell what was found */
	bool ended;                /* the kernel came to its end */
	bool fault;                /* if not, as it was stopped by a fault: nobody waits */
	const uint8_t *skip;       /* clusters that need no look; NULL: none */
	unsigned jobs;
	bool brief;                /* asked is only whether there is anything to find, notes
				      included: what comes to the same may be told as one,
				      and more may look like something */
	bool apart;                /* the registers of wgmma are another thread's work, who
				      decodes each cluster anew, for a sink of its own */
	void *user;
	/* NULL: all is in the pool. Else only cluster 0 is: while others decode it, the
	 * caller's thread asks this, once, for what to decode beside it: the pool, chunks
	 * and skip of `with` are then those of all clusters. Not with grid_order. False:
	 * they cannot be had. */
	bool (*rest)(void *user, struct decode_launch *with);
	/* All below are called from several threads. The box is valid until the
	 * thread's next call; false: no such map is known. */
	bool (*box)(void *user, struct decode_box *box);
	/* What device memory there is at addr: *from and *bytes get the allocation that
	 * holds it or, if none does, the last one that begins below it (0 bytes: none
	 * does). False: nobody knows. NULL: nor does anybody of any other. */
	bool (*memory)(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes);
	struct event_sink *(*cluster_begin)(void *user, const struct cluster_info *c, bool registers);
	void (*cluster_end)(void *user, struct event_sink *sink, bool registers);
};

struct decode_result {
	uint64_t events, records, clusters, ctas;
	uint32_t sites_executed;
	uint32_t damaged;          /* records that made no sense: the launch is not covered */
	uint32_t unknown_maps;     /* tensor copies through a map nobody knows */
	uint32_t moving_maps;      /* ... that is edited more than once: where they went in
				      global memory nobody knows */
	uint32_t refused;          /* 1 + the lowest cluster that ended at an operand which
				      may not be; 0: none did */
	uint32_t blind;            /* clusters of which records were dropped: not looked at */
	uint32_t foreign;          /* calls of functions of another module */
	bool lost;                 /* there was no rest */
};

/* Words of the head chunk: where shared variable k of func lies. */
uint32_t decode_symbol(const void *pool, size_t k);
/* The generic address of the kernel's parameters; 0: not known. */
uint64_t decode_params(const void *pool);
/* The cluster of a CTA (linear in the grid), and its rank there. */
uint32_t decode_cluster_of(const struct launch_info *i, uint32_t cta, uint32_t *rank);
/* What digest.cu says of a chunk, and how many lanes exit in it. */
void decode_digest(const struct record_chunk *chunk, const uint32_t *word, uint32_t nwords,
	struct record_digest *d, uint32_t *left);
/* decode_sign()'s of one CTA, by its rank in the cluster: the digests of its chunks, those
 * of a lane one after the other. The sum over a cluster's CTAs is decode_alike()'s. */
uint64_t decode_sign_one(const struct record_digest *chunk, uint32_t n, uint32_t rank);
/* What each CTA recorded, up to clocks and polls, as a number, out of what
 * digest.cu says of chunks; chunk[k] is of chunk k + 1. */
void decode_sign(const struct launch_info *i, const struct record_digest *chunk, uint32_t n,
	uint64_t *signature);
/* Which clusters' CTAs have the signatures of one with a lower id: skip[id] = 1,
 * and every cluster's signature. Returns how many to skip. */
uint32_t decode_alike(const struct launch_info *i, const uint64_t *cta, uint64_t *signature,
	uint8_t *skip);
/* One word a site for digest.cu; code->site.n of them. */
void decode_site_words(const struct rewrite *code, uint32_t *word);
void decode_run(const struct decode_launch *l, struct decode_result *r);

/* ---- the rest of what this module offers ---- */
#include "drain.h"
#include "map_bits.h"

#endif
