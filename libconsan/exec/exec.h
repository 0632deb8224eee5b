/* exec: runs PTX on the CPU and says what happened, as events.
 *
 * House rules:
 *  - includes the vocabulary and ptx; knows no rule, no shadow, no report;
 *  - device memory is host memory: a global address is a host address, and
 *    only what the map below holds may be touched;
 *  - one worker thread owns a cluster from its first event to its last;
 *  - same program, same seed: same events, whatever the number of threads;
 *  - what is not supported ends the launch with EXEC_UNSUPPORTED and says the
 *    line; it is never skipped. */
#ifndef CONSAN_EXEC_H
#define CONSAN_EXEC_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"
#include "libconsan/tensormap_args.h"

/* ---- the emulated GPU ---- */

struct exec_device {
	uint32_t sm;               /* 80, 86, 89, 90, 100, 120 ... */
	char suffix;               /* arch-specific features: 'a' */
	const char *name;
	uint32_t sm_count;
	uint32_t max_threads_per_sm, max_ctas_per_sm, regs_per_sm;
	uint32_t shared_per_sm, shared_per_cta_optin, shared_reserved;
	uint32_t max_cluster;      /* portable 8; 16 with the attribute */
};
/* The device that fits an sm number best; never NULL. device.def is the table. */
const struct exec_device *exec_device_for(unsigned sm);

/* ---- the map of device memory (process-wide, thread-safe) ---- */

enum exec_mem_kind { MEM_DEVICE, MEM_HOST, MEM_MANAGED, MEM_MODULE };
/* Tells that [at, at+bytes) may be accessed by kernels. Does not own it. */
void exec_mem_add(void *at, uint64_t bytes, enum exec_mem_kind kind, bool read_only);
bool exec_mem_remove(void *at);
/* The allocation holding at; false if there is none. */
struct exec_mem { uint64_t at, bytes; enum exec_mem_kind kind; bool read_only; };
/* The k-th allocation by address; false past the last. */
bool exec_mem_at(size_t k, struct exec_mem *out);
bool exec_mem_find(uint64_t at, struct exec_mem *out);

/* ---- tensor maps ---- */

/* Writes consan's own encoding to map (TENSORMAP_BYTES, 64-aligned). False and
 * e, which names the argument, where the driver refuses. tensormap.c */
bool exec_tensormap(const struct tensormap_args *a, void *map, struct err *e);
bool exec_tensormap_address(void *map, uint64_t address, struct err *e);

/* ---- modules ---- */

struct exec_module;
struct exec_kernel;

/* Lays out and initialises global and constant variables. Takes the PTX module
 * over (frees it with the exec_module). extern_symbol resolves names that this
 * module declares .extern (separate compilation); may be NULL. */
struct exec_module *exec_load(struct ptx_module *ptx, struct err *e);
void exec_unload(struct exec_module *m);
/* Address and size of a .global or .const variable. */
bool exec_symbol(const struct exec_module *m, const char *name, void **at, uint64_t *bytes);
/* Decodes on first use. NULL + e if there is no such entry. A kernel that holds
 * unsupported instructions decodes all right; running into one is an error. */
const struct exec_kernel *exec_kernel(struct exec_module *m, const char *name, struct err *e);

struct exec_kernel_info {
	const char *name;
	const struct ptx_func *func;
	uint32_t shared_static;    /* bytes */
	uint32_t local_bytes, const_bytes, param_bytes;
	uint32_t nregs;            /* estimate of hardware registers per thread */
	uint32_t max_threads;      /* .maxntid product, or 1024 */
	uint32_t ninsn, nunsupported;
	bool apart;                /* no instruction hands anything over to other clusters */
	const struct ptx_insn *first_unsupported; /* or NULL */
	const struct ev_symbol *symbols; size_t nsymbols; /* shared variables, laid out */
};
void exec_kernel_info(const struct exec_kernel *k, struct exec_kernel_info *out);

/* ---- launches ---- */

enum exec_async { ASYNC_LATE, ASYNC_EARLY, ASYNC_RANDOM };

struct exec_observer {     /* all may be called from worker threads */
	void *user;
	/* A cluster starts: where do its events go? NULL: nowhere. */
	struct event_sink *(*cluster_begin)(void *user, const struct cluster_info *c);
	void (*cluster_end)(void *user, struct event_sink *sink);
	/* vprintf and __assertfail output */
	void (*print)(void *user, const char *text, size_t n);
	/* polled now and then; true stops the launch with EXEC_STOPPED */
	bool (*stop)(void *user);
};

struct exec_launch {
	const struct exec_device *device;
	const struct exec_kernel *kernel;
	uint32_t id;
	uint32_t grid[3], block[3], cluster[3]; /* cluster 1,1,1: none */
	uint32_t fallback[3];      /* divides cluster: some clusters, which the seed chooses,
				      are split into ones of these sizes. 0: none */
	uint32_t shared_dynamic;
	const void *params;        /* param_bytes, laid out as in ptx_func */
	bool cooperative;
	bool carry_on;             /* with operands of wgmma that a GPU executes, although
				      they may not be */
	uint64_t seed;             /* 0: the canonical schedule */
	enum exec_async async;
	unsigned jobs;             /* worker threads, 0: all cores */
	double timeout;            /* seconds, 0: none */
	const struct exec_observer *observer; /* NULL: run unchecked */
};

enum exec_status { EXEC_OK, EXEC_FAULT, EXEC_TRAP, EXEC_HANG, EXEC_TIMEOUT,
	EXEC_STOPPED, EXEC_UNSUPPORTED, EXEC_BAD_LAUNCH };

struct exec_result {
	enum exec_status status;
	struct err err;            /* BAD_LAUNCH, UNSUPPORTED: what and where */
	uint32_t site;             /* UNSUPPORTED, FAULT, TRAP: where, or 0 */
	uint64_t bad_cluster;      /* the lowest one that failed, those after it were cut
				      off; UINT64_MAX: none */
	unsigned fault;            /* FAULT, TRAP: FAULT_ of event.h, the first fault's */
	uint64_t clusters, ctas;   /* run to their end */
	uint64_t warp_ops;         /* warp instructions retired */
	uint64_t events;
	uint64_t sites_executed, sites; /* instructions reached / in the kernel */
};

/* Is this cluster of the grid one of those that are split? At least one is, and
 * if there are two or more, at least one is not. */
bool exec_splits(const struct exec_launch *l, uint32_t cluster, uint32_t nclusters);

/* Runs to the end. A fault or trap ends the launch as on a GPU (status says
 * which); the process goes on. */
enum exec_status exec_run(const struct exec_launch *l, struct exec_result *r);

/* Size of the largest resident grid, for occupancy queries and cooperative
 * launches: CTAs per SM. */
unsigned exec_occupancy(const struct exec_device *d, const struct exec_kernel *k,
	uint32_t threads, uint32_t shared_dynamic);

/* ---- the rest of what this module offers ---- */
#include "tensormap.h"

#endif
