/* gpu: GPU mode without the GPU. PTX in, instrumented PTX out; the records of a launch
 * in, findings of the session out. What runs the kernel in between, a GPU
 * (instrument/inject/) or the executor (gpu_emulate.c), is not known here. */
#ifndef CONSAN_GPU_H
#define CONSAN_GPU_H

#include "session.h"

struct gpu_module;
struct slices;

/* Are accesses to global memory recorded? IF_ALL: of modules of which all can be. */
enum gpu_global { GPU_GLOBAL_NO, GPU_GLOBAL_YES, GPU_GLOBAL_IF_ALL };

/* Instruments PTX, which is copied. name: for reports. emulated: it will run on the
 * executor. drains: records may leave the
 * pool while a kernel runs. NULL + e: the PTX cannot be parsed or instrumented. */
struct gpu_module *gpu_module_open(const char *name, const char *text, size_t n, bool emulated,
	enum gpu_global global, bool drains, struct consan_err *e);
/* The same for one kernel and what it needs of its module. Its variables in global memory are those
 * of the program's own module (gpu_module_global()); its variables in constant memory are its own, and
 * must be made equal to those of the program's module before a launch. */
struct gpu_module *gpu_module_cut(const char *name, const struct slices *from, const char *kernel,
	bool emulated, enum gpu_global global, bool drains, struct consan_err *e);
/* Calls for the PTX of each module in a program's file that a GPU will probably run: it is for one architecture
 * (sm_90a), and the module has none like it for others. Modules that are damaged are left out. The callee owns
 * ptx, and ends the search with false. */
void gpu_each_likely_ptx(const void *bytes, size_t n, bool (*each)(void *user, char *ptx, size_t n),
	void *user);
void gpu_module_close(struct gpu_module *m); /* NULL is fine */
/* The instrumented PTX, owned by the module, NUL-terminated. */
const char *gpu_module_text(const struct gpu_module *m, size_t *n);
/* The variable that must hold a struct record_params before a launch. */
const char *gpu_module_variable(const struct gpu_module *m);
/* The cluster that the kernel requires, or 0s. NULL: no kernel of this name. */
const uint32_t *gpu_module_cluster(const struct gpu_module *m, const char *kernel);
/* Does the kernel need tickets even in clusters of one CTA? */
bool gpu_module_tickets(const struct gpu_module *m, const char *kernel);
/* Its calls are recursive or indirect: its stack is as large as the program has set it, and
 * instrumented it needs more. */
bool gpu_module_unbounded_stack(const struct gpu_module *m, const char *kernel);
/* The name of the k-th variable in global memory; NULL: there are only k. If the module was cut,
 * its address must be the k-th of 64 bits behind the struct record_params. */
const char *gpu_module_global(const struct gpu_module *m, size_t k);
/* The name of the k-th variable in constant memory; NULL: there are only k. */
const char *gpu_module_const(const struct gpu_module *m, size_t k);
uint32_t gpu_module_sm(const struct gpu_module *m);
size_t gpu_module_insns(const struct gpu_module *m); /* of all functions */
/* Bytes of the kernel's parameters, and the offset and bytes of each. */
uint32_t gpu_module_params(const struct gpu_module *m, const char *kernel);
bool gpu_module_param(const struct gpu_module *m, const char *kernel, size_t k,
	uint32_t *offset, uint32_t *bytes);
/* decode_site_words() of the module, *n of them; the caller frees them. */
uint32_t *gpu_module_site_words(const struct gpu_module *m, uint32_t *n);

/* What decoding and checking a launch took: seconds; how many clusters; whether they were
 * decoded and checked again after the pre-check had found something. */
struct gpu_cost {
	double check;
	uint32_t clusters;
	bool again;
};

struct gpu_launch {
	struct gpu_module *module;
	const char *kernel;
	uint32_t number;           /* of gpu_wants() */
	uint32_t grid[3], block[3], cluster[3];
	bool clustered;            /* the launch or the kernel states cluster dimensions */
	uint32_t shared;           /* bytes a CTA, all that can be addressed */
	uint32_t shared_dynamic;   /* of these */
	uint32_t nregs, sm;
	bool tickets;
	uint64_t ticket;           /* record_params.ticket: launches with one counter can be checked together */
	unsigned device;
	uint64_t queue;            /* its stream */
	bool programmatic;         /* it may begin before the launch before it in its stream
				      has ended */
	const void *params;        /* the parameter block */
	struct order_op *op;       /* libconsan/order; or NULL */
	bool ended;                /* false: it was stopped, by --timeout */
	bool beside;               /* other work ran while it ran, with which it is not checked together ... */
	const char *why_alone;     /* ... for this reason; NULL: it was not tried */
	const char *fault;         /* the GPU stopped it: the error that it reported; or NULL */
	/* Its records, on the host */
	const void *pool;          /* record.h */
	uint32_t chunks;           /* given out, at most as many as there were */
	const struct record_chunk *const *chunk; /* where they are, if they were drained
				      (instrument/decode/drain.h); NULL: in the pool */
	uint32_t dropped;          /* chunks that lanes asked for in vain, */
	uint32_t lost;             /* and drained ones for which the host had no memory */
	const uint8_t *incomplete; /* a byte for each cluster: records of it are missing; or NULL */
	bool waited;               /* as in decode_launch */
	const uint8_t *skip;       /* a byte for each cluster: it is identical to another one, and
				      its records are not in the pool; NULL: all are there */
	uint32_t retired;          /* clusters in skip whose records no longer exist */
	bool screened;             /* its accesses to global memory are known to be clean */
	const struct screen_edge *edge; /* if it is, and gpu_screen_wants_edges(): what it accessed, */
	uint32_t nedges;
	bool edges;                /* ... and that is known */
	struct gpu_cost *cost;     /* result, or NULL */
	/* Callbacks; several threads call memory and map. */
	void *user;
	/* Copies the whole pool and returns it, and the number of chunks. NULL: it cannot be
	 * copied. Called if something was found; needed if there is a skip. */
	const void *(*whole)(void *user, uint32_t *chunks);
	/* See decode_launch.memory; NULL: device memory is not known. */
	bool (*memory)(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes);
	/* Takes the accesses of `op` to global memory, to report them to libconsan/order; and finds the
	 * memory around an address that other operations can name. NULL: it is the executor's memory,
	 * and they are reported at once. */
	void (*accessed)(void *user, const struct order_range *range, size_t n);
	bool (*named)(void *user, uint64_t addr, uint64_t *from, uint64_t *bytes);
	/* Copies CONSAN_TENSORMAP_BYTES at this address of the GPU; param: these bytes, if they are
	 * in the parameter block, else NULL. False: they cannot be read. */
	bool (*map)(void *user, uint64_t address, const void *param, void *bytes);
	struct gpu_maps *maps;     /* of gpu_launch_open() */
};

/* Between these two the launch may be passed to the functions below. Everything but its records
 * must be set before. */
void gpu_launch_open(struct gpu_launch *l);
void gpu_launch_close(struct gpu_launch *l);
/* Adds a note to the report if the kernel's accesses to global memory are not recorded. */
void gpu_note_unrecorded(struct consan *c, const struct gpu_launch *l);
/* Adds a note about which accesses of operations are compared, if any are. */
void gpu_note_operations(struct consan *c, bool emulated);
/* Decodes and checks the launch; findings and coverage go to the session's records. */
void gpu_check(struct consan *c, const struct gpu_launch *l);

/* What the GPU's own run of a kernel can hide: bits of enum finding_hidden. */
uint64_t gpu_hidden(const struct gpu_module *m, const char *kernel);

/* ---- --gpu-then-cpu: a launch's inputs are replayed on the executor (gpu_replay.c) ---- */

/* Memory that a replay finds at its address. */
struct gpu_region {
	uint64_t at, bytes;
	const void *copy;          /* its contents; NULL: it is there already */
	bool host;
};
/* The inputs of a launch, besides what struct gpu_launch has. */
struct gpu_input {
	void *user;
	/* The address of a variable in global memory, and the contents of one in constant memory, valid
	 * until the next call. False: there is none. */
	bool (*global)(void *user, const char *name, uint64_t *at);
	const void *(*constant)(void *user, const char *name, uint64_t *bytes);
	bool own_memory;           /* it is the executor's own, as in emulated GPU mode; else: */
	const struct gpu_region *region;
	size_t nregions;
	uint32_t sm, nregs;        /* of the GPU; registers of a thread of the program's kernel, 0: not known */
	bool cooperative;
	bool alone;                /* nothing else can change memory while the launch runs */
};
struct gpu_replay;
/* Is this launch to be replayed? Counts it: to be called once a launch. */
bool gpu_replay_wants(struct consan *c, const struct gpu_launch *l);
/* Before the launch: a copy of the process begins to run it on the executor. Its findings have the
 * number of the launch that gpu_wants() has recorded. NULL: the reason is in the report. */
struct gpu_replay *gpu_replay_open(struct consan *c, const struct gpu_launch *l, const struct gpu_input *in);
/* After gpu_check(), if that comes soon: adds its findings to the report. l: as far as needed to judge an access outside
 * of the memory that was copied. */
void gpu_replay_end(struct consan *c, struct gpu_replay *r, const struct gpu_launch *l); /* NULL is fine */
/* Has it ended, so that gpu_replay_end() does not wait? */
bool gpu_replay_ended(const struct gpu_replay *r);
/* The launch cannot be replayed, and why. */
void gpu_replay_refused(struct consan *c, const char *kernel, const char *why);
uint64_t gpu_replay_memory(const struct consan *c); /* bytes */
bool gpu_replays(const struct consan *c);

/* ---- launches that run at the same time (gpu_together.c) ----
 * The caller makes these calls one at a time. */
/* A launch begins. */
void gpu_runs(struct consan *c);
/* One has ended; l: its records, or NULL if there are none. Checks it; if others that run at the same time
 * may have synchronized with it through memory, later, together with these. Then calls done(l), until
 * which all in l stays valid. */
void gpu_ran(struct consan *c, struct gpu_launch *l, void (*done)(struct gpu_launch *l));
bool gpu_alone(const struct consan *c);   /* None runs. */
bool gpu_overlaps(const struct consan *c); /* Several have run since none did. */
/* Would gpu_ran() check it later? */
bool gpu_keeps(const struct consan *c, const struct gpu_launch *l);

/* ---- identical clusters ---- */
/* decode_identical() of the signatures of CTAs. Also skips clusters that are identical to one
 * that was clean in an earlier launch of this shape. Returns how many clusters are skipped;
 * skip has a byte for each CTA. */
uint32_t gpu_skip_identical(const struct gpu_launch *l, const uint64_t *cta, uint8_t *skip);
uint32_t gpu_cluster_of(const struct gpu_launch *l, uint32_t cta);

/* ---- screened launches (gpu_screen.c, instrument/record/screen.h): those whose accesses to global
 * memory are clean by themselves. They are checked as without --gpu-global ---- */
struct decode_screen_sites;
struct screen_edge;
struct screen_job;
struct screen_map;
struct screen_result;
/* Are launches to be screened? m: those of this module; NULL: of any. */
bool gpu_screens(const struct consan *c, const struct gpu_module *m);
/* Why this launch is not to be screened; NULL: it is. The second: by the pool's head. */
const char *gpu_screen_refuses(struct consan *c, const struct gpu_launch *l);
const char *gpu_screen_refuses_records(const void *pool);
const struct decode_screen_sites *gpu_module_screen(const struct gpu_module *m);
/* Are its accesses to be compared with those of other operations? */
#define GPU_SCREEN_EDGES "it accessed memory in too many pieces"
bool gpu_screen_wants_edges(struct consan *c, const struct gpu_launch *l);
/* place and like of struct screen_job, in one piece; *nlike: of the latter. NULL: there are too many. */
const uint16_t *gpu_module_places(const struct gpu_module *m, uint32_t *nlike);
/* Sets what j must know of the launch, except addresses and ranges. *maps: replaced; the caller frees it. */
struct gpu_screen_maps { struct screen_map *at; size_t n, cap; };
void gpu_screen_describe(const struct gpu_launch *l, struct screen_job *j, struct gpu_screen_maps *maps);
/* The reason that the screen found, for --gpu-times. */
void gpu_screen_explain(const struct gpu_launch *l, const struct screen_result *r, char text[160]);

/* ---- draining (instrument/decode/drain.h) ---- */
struct drain;
struct drained;
struct drain_pool;
/* l is open; it is not used after this returns. */
struct drain *gpu_drain(const struct consan *c, const struct gpu_launch *l,
	const struct drain_pool *p, unsigned jobs);
/* The records of the launch are those that were drained. */
void gpu_take_drained(struct gpu_launch *l, const struct drain *d, const struct drained *r);

/* ---- the session ---- */
/* Adds the GPU's name to the report; the last one counts. */
void gpu_named(struct consan *c, const char *name);
/* Is this launch to be checked? Counts it: to be called once a launch. Returns its number, which goes to
 * gpu_check() or gpu_unchecked(), or 0. If the process ends before, the launch counts as not checked. */
uint32_t gpu_wants(struct consan *c, const char *kernel);
/* It begins, with this shape. */
void gpu_begins(struct consan *c, const struct gpu_launch *l);
/* Do the bytes of two tensor maps, of a driver and by consan_tensormap(), mean the same? */
bool gpu_same_map(const void *a, const void *b);
/* A launch in this stream ran, and was not to be checked. */
void gpu_skip(struct consan *c, const char *kernel, uint64_t queue);
/* A launch in this stream should have been checked; why it was not. number: that of gpu_wants(), or 0. */
void gpu_unchecked(struct consan *c, const char *kernel, uint32_t number, uint64_t queue, const char *why);
/* By the GPU's clock, a launch that was checked ran so long. */
void gpu_timed(struct consan *c, const char *kernel, double seconds);
/* No earlier launch is still running: the program has waited for all. May be called from any
 * thread, also while a launch is being checked. */
void gpu_idle(struct consan *c);
/* Runs the launch on the executor, recorded as on a GPU, and checks it (gpu_emulate.c). */
enum consan_status gpu_emulate(struct consan *c, const struct consan_launch *l,
	const void *params, struct order_op *op, struct consan_err *e);

/* --backend=auto: may a program with this file run on a GPU, so that all is checked that the cpu backend
 * checks? False: why not. */
bool gpu_suits(const struct options *o, const char *path, char why[320]);

/* ---- the session's options ---- */
unsigned gpu_workers(const struct consan *c); /* threads that check, with the calling one */
double gpu_timeout(const struct consan *c);
uint64_t gpu_memory(const struct consan *c); /* bytes of the pool; 0: not given */
uint64_t gpu_host_memory(const struct consan *c); /* bytes for drained records */
bool gpu_times(const struct consan *c);
enum gpu_global gpu_global(const struct consan *c);
enum gpu_global gpu_global_of(const struct options *o);
bool gpu_drains(const struct consan *c); /* records may leave the pool while a kernel runs */
/* Every cluster is checked. Else, with gpu_global(), those of launches that are not screened are. */
bool gpu_each(const struct consan *c);

#endif
