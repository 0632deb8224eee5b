/* gpu: the door of GPU mode: PTX in, instrumented PTX out; the records of a
 * launch in, findings of the session out. Who runs the kernel in between, a GPU
 * (instrument/inject/inject.c) or the executor (--backend=rehearse), is not known here. */
#ifndef CONSAN_GPU_H
#define CONSAN_GPU_H

#include "session.h"

struct gpu_module;

/* name: for reports. The text is copied. rehearse: for the executor. global:
 * accesses to global memory are recorded. drains: records leave the pool while a
 * kernel runs. NULL + e: no PTX that can be read. */
struct gpu_module *gpu_module_open(const char *name, const char *text, size_t n, bool rehearse,
	bool global, bool drains, struct err *e);
void gpu_module_close(struct gpu_module *m);
/* The instrumented text, the module's, NUL-terminated. */
const char *gpu_module_text(const struct gpu_module *m, size_t *n);
/* The variable that must hold a struct record_params before a launch. */
const char *gpu_module_variable(const struct gpu_module *m);
/* NULL: no kernel of this name. The cluster that the kernel requires, or 0s. */
const uint32_t *gpu_module_cluster(const struct gpu_module *m, const char *kernel);
/* Launches of it need tickets even if its clusters are of one CTA. */
bool gpu_module_tickets(const struct gpu_module *m, const char *kernel);
/* How much stack it takes only the program can know, and instrumented it takes more. */
bool gpu_module_deep(const struct gpu_module *m, const char *kernel);
/* The names of its variables in global memory; NULL: there are only k. */
const char *gpu_module_global(const struct gpu_module *m, size_t k);
uint32_t gpu_module_sm(const struct gpu_module *m);
size_t gpu_module_insns(const struct gpu_module *m); /* of all functions */
/* Bytes of the kernel's parameters and the place of each. */
uint32_t gpu_module_params(const struct gpu_module *m, const char *kernel);
bool gpu_module_param(const struct gpu_module *m, const char *kernel, size_t k,
	uint32_t *offset, uint32_t *bytes);

/* What it takes to decode and check a launch: seconds; how many clusters, by how
 * many threads each, and whether they had to be done again, one thread each. */
struct gpu_cost {
	double check;
	uint32_t clusters, threads;
	bool again;
};

struct gpu_launch {
	struct gpu_module *module;
	const char *kernel;
	uint32_t grid[3], block[3], cluster[3];
	uint32_t shared;           /* bytes a CTA, all that can be addressed */
	uint32_t shared_dynamic;   /* of these */
	uint32_t nregs, sm;
	const void *pool;          /* record.h; on the host */
	uint32_t chunks;           /* given out, at most as many as there were */
	const struct record_chunk *const *chunk; /* where they are, as they were drained
				      (instrument/decode/drain.h); NULL: in the pool */
	uint32_t dropped;          /* chunks asked for in vain, */
	uint32_t lost;             /* ... and drained ones for which the host had no memory */
	const uint8_t *lacks;      /* ... clusters of which these are; NULL: none */
	bool waited;               /* as in decode_launch */
	uint32_t retired;          /* clusters in skip whose records cannot be had any more */
	bool tickets;
	bool ended;                /* false: it was stopped, --timeout */
	const char *fault;         /* ... or by the GPU: what it said */
	uint64_t queue;            /* its stream */
	bool programmatic;         /* it may begin before the launch before it in its stream
				      has ended */
	const void *params;        /* the parameter block */
	const uint8_t *skip;       /* clusters whose records are not in the pool, as
				      others recorded the same; NULL: all are there */
	/* NULL: the pool has all that is to be looked at. Else only cluster 0, which others
	 * look at while gpu_check() asks this, once, for a pool, chunks and skip that have
	 * all clusters. See gpu_looks_ahead(). False: they cannot be had. */
	bool (*rest)(void *user, const void **pool, uint32_t *chunks, const uint8_t **skip);
	struct gpu_cost *cost;     /* gets what the check cost; or NULL */
	void *user;
	/* Something was found: the whole pool, and how many chunks. NULL: it
	 * cannot be had. Needed if there is a skip. */
	const void *(*whole)(void *user, uint32_t *chunks);
	/* See decode_launch.memory; NULL: nothing is known of device memory. */
	bool (*memory)(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes);
	/* The tensor map at this address of the GPU, as consan_tensormap()
	 * encodes it; param: its bytes, if it is in the parameter block, else
	 * NULL. Several threads may ask. */
	bool (*map)(void *user, uint64_t address, const void *param, void *bytes);
	struct gpu_maps *maps;     /* gpu_launch_open()'s */
};

/* Of a launch whose records have come, before it is asked what follows, and after. All but
 * its records must be there. */
void gpu_launch_open(struct gpu_launch *l);
void gpu_launch_close(struct gpu_launch *l);
/* For the report: the GPU's name; the last one counts. */
void gpu_named(struct consan *c, const char *name);
/* For digest.cu: see decode_site_words(). free() it. */
uint32_t *gpu_module_site_words(const struct gpu_module *m, uint32_t *n);
/* See decode_alike(), of each CTA's signature; skip has a byte for each CTA. Clusters
 * that recorded the same as one of an earlier launch of this shape in which nothing
 * was found need no look either: all of them may be skipped. */
uint32_t gpu_alike(const struct gpu_launch *l, const uint64_t *cta, uint8_t *skip);
/* For a launch that is opened, and which is not needed any more when this returns. */
struct drain;
struct drained;
struct drain_pool;
struct drain *gpu_drain(const struct consan *c, const struct gpu_launch *l, const struct drain_pool *way,
	unsigned jobs);
/* What was drained of the launch is what is to be looked at. */
void gpu_take_drained(struct gpu_launch *l, const struct drain *d, const struct drained *r);
uint32_t gpu_cluster_of(const struct gpu_launch *l, uint32_t cta);
/* Is a first look at cluster 0 worth having before it is known which are alike? Only
 * the first time it is asked of a shape, as later launches may be known. */
bool gpu_looks_ahead(const struct consan *c, const struct gpu_launch *l);
/* A launch is to come: wakes those that will check it, if they sleep, but not where clusters of the
 * launch before were all known, and needed no look: many more of the same may follow. */
void gpu_alert(const struct consan *c);
/* Does the session want this launch checked? Ask once a launch. */
bool gpu_wants(struct consan *c, const char *kernel);
/* Starts the threads that will check, and makes what they will need for any launch. */
void gpu_stand_by(struct consan *c);
/* A launch begins: what its check will need is made ready, beside it. Of l, what
 * is known before a launch. */
void gpu_expect(struct consan *c, const struct gpu_launch *l);
/* Decodes and checks; what is found and covered goes to the session's records. */
void gpu_check(struct consan *c, const struct gpu_launch *l);
/* A launch, in this stream, that ran without being looked at. */
void gpu_skip(struct consan *c, const char *kernel, uint64_t queue);
/* ... that should have been looked at: why it was not. */
void gpu_unchecked(struct consan *c, const char *kernel, uint64_t queue, const char *why);
/* A launch that was checked ran so long by the GPU's clock. */
void gpu_timed(struct consan *c, const char *kernel, double seconds);
/* No launch so far is known to be still running: something was waited for. From any
 * thread, also while a launch is being checked. */
void gpu_idle(struct consan *c);
/* Of a session that ends. */
void gpu_brief_close(struct consan *c);
/* Nobody makes ready for a launch any more, whose module may go then. */
void gpu_brief_settle(struct consan *c);
/* libconsan/session/gpu_rehearse.c: the launch on the executor, recorded as on a GPU. */
enum consan_status gpu_rehearse(struct consan *c, const struct consan_launch *l,
	const void *params, struct err *e);
/* Of the session's options. */
unsigned gpu_workers(const struct consan *c); /* threads, this one included */
double gpu_timeout(const struct consan *c);
uint64_t gpu_memory(const struct consan *c);
/* Bytes for what is drained while a kernel runs. */
uint64_t gpu_host_memory(const struct consan *c);
bool gpu_times(const struct consan *c);
bool gpu_global(const struct consan *c); /* accesses to global memory, too */
bool gpu_drains(const struct consan *c); /* records leave the pool while a kernel runs */
bool gpu_each(const struct consan *c); /* look at every cluster */

#endif
