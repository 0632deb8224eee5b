/* decode: turns the records of a launch into events, cluster by cluster, several at a
 * time, in an order in which they can have happened. They are the events that the
 * executor produces for the same instructions.
 *
 * What the hardware does not show takes place as late as the records allow: a bulk copy
 * signals its mbarrier when a wait that succeeded needs the signal. */
#ifndef CONSAN_INSTRUMENT_DECODE_H
#define CONSAN_INSTRUMENT_DECODE_H

#include "instrument/record/record.h"
#include "instrument/rewrite/rewrite.h"
#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"

/* A tensor copy: the caller of decode_launch.box fills the first part, the callee the second. */
struct decode_box {
	uint64_t map;              /* its generic address */
	uint32_t shared;           /* offset of the box */
	bool wants_global, rows;   /* gspans; a gather or scatter */
	bool load, placed;         /* placed: coordinates and offsets are known */
	bool overwrites;           /* a store or reduction: bytes beside the tensor, too */
	uint8_t ncoords, noffsets;
	enum ptx_mod mode;         /* of MG_loadmode; MOD_NONE: .tile */
	int32_t at[5];             /* coordinates, if wants_global */
	uint16_t offset[3];
	/* the second part */
	struct refusal *refused;   /* gets why the operands are refused, and nothing else is set;
				      else it is set to NULL */
	uint32_t align;            /* of the shared side */
	uint32_t bytes, extent;    /* moved; from the first byte to the last */
	const struct ev_span *spans; /* if it has holes */
	uint32_t nspans;
	const struct ev_gspan *gspans;
	uint32_t ngspans, npadding; /* the last npadding: bytes beside the tensor that are overwritten */
	bool in_global;            /* the map may change while the kernel runs */
	uint64_t hash;             /* of its bytes then */
};

/* What is known of a module's recording sites before any is executed. */
struct decode_sites;
struct decode_sites *decode_sites_open(const struct rewrite *code);
void decode_sites_close(struct decode_sites *s); /* NULL is fine */

struct decode_launch {
	const struct rewrite *code;
	const struct decode_sites *sites;
	const struct rewrite_func *func;
	const uint32_t *site;      /* site.h's id of each of code->site */
	const struct launch_info *info;
	const void *pool;          /* as the launch left it: the head chunk and those given out */
	uint32_t chunks;           /* given out */
	const uint8_t *incomplete; /* a byte for each cluster: records of it are missing, apart from
				      those that the pool reports as missing; NULL: of none */
	bool waited;               /* lanes waited for a free chunk when the kernel was stopped: a
				      lane that seems to wait for something else may not have
				      recorded that this wait was over */
	const struct record_chunk *const *chunk; /* where they are; NULL: behind the head */
	uint32_t shared;           /* where each CTA's shared memory ends; 0: not known */
	uint32_t shared_all;       /* an upper bound of it, with what the hardware reserves there */
	bool tickets;              /* as in struct record_params */
	bool grid_order;           /* clusters order each other: one thread decodes all of them
				      together; needs tickets */
	bool exact;                /* records between two synchronizations are in the order of their
				      clocks among the warps of their CTA, as a report needs it;
				      takes longer */
	bool coarse;               /* for a pre-check: one event may stand for several accesses of a
				      warp, so that races may be reported that are none, but
				      none is missed (gather.c) */
	bool screened;             /* its accesses to global memory are known to be without a finding
				      (screen.c): records of them make no events */
	bool ended;                /* the kernel came to its end */
	bool fault;                /* if not: a fault stopped it, so that no lane waits */
	const uint8_t *skip;       /* a byte for each cluster: it is not decoded; NULL: all are */
	unsigned jobs;             /* threads, at most */
	void *user;
	/* All below are called from several threads. The box is valid until the
	 * thread's next call; false: no such map is known. */
	bool (*box)(void *user, struct decode_box *box);
	/* The device memory at addr: *from and *bytes get the allocation that holds it or, if
	 * none does, the last one that begins below it (0 bytes: none does). False: not
	 * known. NULL: allocations are not known. */
	bool (*memory)(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes);
	struct event_sink *(*cluster_begin)(void *user, const struct cluster_info *c);
	void (*cluster_end)(void *user, struct event_sink *sink);
};

struct decode_result {
	uint64_t events, records, clusters, ctas;
	uint32_t sites_executed;
	uint32_t damaged;          /* records that cannot have been written, and clusters of which the ends of
				      lanes are missing: the launch is not covered */
	uint32_t unknown_maps;     /* tensor copies through a map that is not known */
	uint32_t moving_maps;      /* tensor copies through a map that is edited more than once, so
				      that their place in global memory is not known */
	uint32_t refused;          /* 1 + lowest cluster that ended at a refused operand, or 0 */
	uint32_t blind;            /* clusters that were not checked, as records are missing */
	uint32_t foreign;          /* calls of functions of another module */
	uint32_t unfinished;       /* clusters of which not all threads have exited, if it did not end */
};

/* The address of shared variable k of func, as the head chunk has it. */
uint32_t decode_symbol(const void *pool, size_t k);
/* The generic address of the kernel's parameters; 0: not known. */
uint64_t decode_params(const void *pool);
/* The cluster of a CTA (linear in the grid), and its rank there. */
uint32_t decode_cluster_of(const struct launch_info *i, uint32_t cta, uint32_t *rank);
void decode_run(const struct decode_launch *l, struct decode_result *r);
/* Decodes launches that ran at the same time and have their tickets from one counter, in the order of
 * these, on this thread. All need grid_order. begin(): called for each before its clusters begin; of those
 * for which before(a, b) says so, when all clusters of a have ended. In the order of their begin. */
struct decode_together {
	const struct decode_launch *const *launch;
	size_t n;
	struct decode_result *result; /* of each */
	bool (*before)(void *user, size_t a, size_t b);
	void (*begin)(void *user, size_t k);
	void *user;
};
void decode_together(const struct decode_together *t);

/* ---- identical.c: clusters that recorded the same ---- */
/* The digest of a chunk, as digest.cu computes it on the GPU; *left: how many lanes exit in it. */
void decode_digest(const struct record_chunk *chunk, const uint32_t *word, uint32_t nwords,
	struct record_digest *d, uint32_t *left);
/* The signature of one CTA, from its rank in the cluster and the digests of its chunks, those
 * of a lane one after the other. A cluster's signature is the sum of its CTAs'. */
uint64_t decode_sign_one(const struct record_digest *chunk, uint32_t n, uint32_t rank);
/* The signatures of all CTAs of a launch, from the digests of its chunks; chunk[k] is of
 * chunk k + 1. Clocks and failed polls do not count. */
void decode_sign(const struct launch_info *i, const struct record_digest *chunk, uint32_t n,
	uint64_t *signature);
/* From the signatures of CTAs: those of clusters, and skip[id] = 1 for each cluster that is
 * identical to one of lower id, its representative. Returns how many to skip. */
uint32_t decode_identical(const struct launch_info *i, const uint64_t *cta, uint64_t *signature,
	uint8_t *skip);
/* What a digest must know of each site, as one word (digest.h); code->site.n of them. */
void decode_site_words(const struct rewrite *code, uint32_t *word);

/* ---- screen.c: launches whose accesses to global memory cannot race (record/screen.h) ---- */
struct decode_screen_sites {
	uint32_t *word, n;         /* of each of code->site */
	VEC(struct screen_tensor) tensor;
};
/* *s: zeroed; decode_screen_sites_free() frees what it gets. */
void decode_screen_sites(const struct rewrite *code, struct decode_screen_sites *s);
void decode_screen_sites_free(struct decode_screen_sites *s);
/* As screen.cu, on memory of the host; the table of pages must be empty, and is left filled. */
void decode_screen(const struct screen_job *j);

/* ---- the rest of what this module offers ---- */
#include "drain.h"

#endif
