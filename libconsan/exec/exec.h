/* exec: runs PTX on the CPU and reports what happened as events.
 *
 * Rules:
 *  - It includes the event vocabulary and ptx; it knows no rules, shadow memory or reports.
 *  - Device memory is host memory: a global address is a host address, and only allocations in the
 *    map below may be accessed.
 *  - One worker thread owns a cluster from its first event to its last.
 *  - The same launch and seed give the same events, whatever the number of threads, unless plain
 *    accesses of clusters race in a launch of more than SERIAL_OPS ops (sched.c).
 *  - An unsupported instruction ends the launch with EXEC_UNSUPPORTED and its line; it is never
 *    skipped. */
#ifndef CONSAN_EXEC_H
#define CONSAN_EXEC_H

#include "libconsan/base/base.h"
#include "libconsan/event/event.h"
#include "libconsan/ptx/ptx.h"
#include "libconsan/tensormap_args.h"
#include "libconsan/texture_args.h"

/* ---- the emulated GPU ---- */

struct exec_device {
	uint32_t sm;               /* 80, 86, 89, 90, 100, 120 ... */
	char suffix;               /* 'a' if the device has architecture-specific features */
	const char *name;
	uint32_t sm_count;
	uint32_t max_threads_per_sm, max_ctas_per_sm, regs_per_sm;
	uint32_t shared_per_sm, shared_per_cta_optin, shared_reserved;
	uint32_t max_cluster;      /* portable limit 8; 16 with the attribute */
};
/* The device that fits an sm number best; never NULL. device.def is the table. */
const struct exec_device *exec_device_for(unsigned sm);
const struct exec_device *exec_device_at(unsigned k); /* from 0; NULL: there are k or fewer */

/* ---- the map of device memory (process-wide, thread-safe) ---- */

enum { EXEC_DEVICES = 16 };        /* emulated devices, numbers 0 to 15 */
/* The devices that may read and write memory: bit d is device d. Launches see a change from their
 * next access to another allocation on. */
struct exec_access { _Atomic uint32_t read, write; };
/* Of ordinary memory of a device: the device itself, and its peers. */
const struct exec_access *exec_device_memory(unsigned device);
/* Kernels on `device` may, or may not, access ordinary memory of `peer`. False: it was so before. */
bool exec_peer_access(unsigned device, unsigned peer, bool on);

enum exec_mem_kind { MEM_DEVICE, MEM_HOST, MEM_MANAGED, MEM_MODULE };
/* A range of multicast addresses: an access to one of them by a multimem instruction is an access to
 * each memory that is bound there. Constant. */
struct exec_multicast {
	unsigned devices;          /* whose memory must be bound where there is an access */
	size_t n;
	struct exec_binding { uint64_t from, bytes, at; unsigned device; } bound[];
};

/* An allocation. access: NULL: all devices may access it; else it must outlive the allocation. */
struct exec_mem {
	uint64_t at, bytes;
	enum exec_mem_kind kind;
	bool read_only;
	unsigned device;           /* that has it; 0 for memory of the host */
	const struct exec_access *access;
	bool joins;                /* a mapping: an access may reach into it from the one directly
				      before it */
	const struct exec_multicast *multicast; /* multicast addresses, without memory; or NULL. It must
						   outlive the launches that use it */
};
/* Is it memory from which malloc() in kernels takes blocks? */
bool exec_in_heap(uint64_t addr);
/* Registers memory as accessible to kernels. Does not take ownership. */
void exec_mem_put(const struct exec_mem *m);
void exec_mem_add(void *at, uint64_t bytes, enum exec_mem_kind kind, bool read_only);
bool exec_mem_remove(void *at);
/* exec_mem_at() gives the k-th allocation by address, false past the last; exec_mem_find() the one
 * that contains at, false if there is none. */
bool exec_mem_at(size_t k, struct exec_mem *out);
bool exec_mem_find(uint64_t at, struct exec_mem *out);

/* ---- tensor maps ---- */

/* Writes consan's encoding to map (CONSAN_TENSORMAP_BYTES, 64-aligned). Where the driver refuses,
 * returns
 * false and sets e, which names the argument. See tensormap.c. */
bool exec_tensormap(const struct consan_tensormap_args *a, void *map, struct consan_err *e);
bool exec_tensormap_address(void *map, uint64_t address, struct consan_err *e);

/* ---- texture and surface objects (process-wide, thread-safe) ---- */

/* Returns its handle, which is never used again. Its memory must be in the map when it is accessed. */
uint64_t exec_texture_add(const struct consan_texture *t);
bool exec_texture_remove(uint64_t handle); /* false: there is no such object */

/* ---- modules ---- */

struct exec_module;
struct exec_kernel;

/* Lays out and initialises global and constant variables. Takes ownership of the PTX module (frees
 * it with the exec_module). extern_symbol resolves names that this module declares .extern
 * (separate compilation); may be NULL. */
struct exec_module *exec_load(struct ptx_module *ptx, struct consan_err *e);
/* For one of several devices, on which its kernels run. other: the module on another device, or
 * NULL; it has the managed variables and must outlive this one. */
struct exec_module *exec_load_on(struct ptx_module *ptx, unsigned device,
	const struct exec_module *other, struct consan_err *e);
/* A changed text of a loaded module, with the same variables and functions: its variables are those
 * of `like`, with their contents, which must outlive it. */
struct exec_module *exec_load_like(struct ptx_module *ptx, const struct exec_module *like,
	struct consan_err *e);
/* Variables in global memory are at given addresses, which are registered and hold their contents by the
 * time that a kernel runs: at() sets the address of one, or returns false, and then it gets storage of its
 * own, as all others. */
struct exec_places {
	void *user;
	bool (*at)(void *user, const char *name, uint64_t *address);
};
struct exec_module *exec_load_at(struct ptx_module *ptx, const struct exec_places *places,
	struct consan_err *e);
void exec_unload(struct exec_module *m);
/* Address and size of a .global or .const variable. */
bool exec_symbol(const struct exec_module *m, const char *name, void **at, uint64_t *bytes);
/* The registers per thread that ptxas assigned to a kernel, in place of an estimate. Before the
 * first exec_kernel() of it; other names are ignored. */
void exec_set_registers(struct exec_module *m, const char *kernel, uint32_t n);
/* Decodes on first use. NULL + e if there is no such entry. A kernel that holds unsupported
 * instructions decodes without error; executing one is an error. */
const struct exec_kernel *exec_kernel(struct exec_module *m, const char *name,
	struct consan_err *e);

struct exec_kernel_info {
	const char *name;
	const struct ptx_func *func;
	uint32_t shared_static;    /* bytes */
	uint32_t local_bytes, const_bytes, param_bytes;
	uint32_t nregs;            /* hardware registers per thread */
	bool nregs_known;          /* they are those of ptxas, else an estimate */
	uint32_t max_threads;      /* .maxntid product, or 1024 */
	uint32_t ninsn, nunsupported;
	bool tensor;               /* it has tcgen05 instructions */
	bool apart;                /* no instruction synchronises with other clusters */
	bool coupled;              /* what an instruction returns depends on the order in which
				      clusters run: strong reads of global memory, atomics
				      whose results are used, malloc, printf */
	bool polls_shared;         /* it has strong loads of shared memory */
	bool polls;                /* a loop waits for what another thread writes to global memory */
	bool takes_locks;          /* in global or shared memory */
	bool launches_grids;       /* by CDP2 */
	bool launches_graphs;
	const struct ptx_insn *first_unsupported; /* or NULL */
	const struct ev_symbol *symbols; size_t nsymbols; /* shared variables, laid out */
};
void exec_kernel_info(const struct exec_kernel *k, struct exec_kernel_info *out);

/* ---- controlled schedules of coupled kernels ----
 *
 * Each strong access to global memory is a step. A warp performs one after the other as long as it
 * can; then the one that has waited longest continues. A switch lets another warp go first. In a
 * kernel without such accesses only `reverse` has an effect. */

struct exec_switch {
	uint32_t step;             /* before this one, from 0 */
	uint32_t warp;             /* cluster * warps of a cluster + rank * warps of a CTA + warp */
};

struct exec_step {
	uint32_t warp;
	uint32_t ready, nready;    /* in exec_steps.ready: the warps that could have gone first */
	uint8_t mode;              /* enum ev_mode */
	uint64_t places;           /* accesses without a common bit are to different memory */
};

enum { EXEC_STEPS = 4096 };        /* that are recorded */
struct exec_steps {
	VEC(struct exec_step) step;
	VEC(uint32_t) ready;
	uint64_t n;                /* all, also those not recorded */
};
void exec_steps_free(struct exec_steps *s);

struct exec_control {
	const struct exec_switch *at; /* in ascending order of steps */
	size_t n;
	struct exec_steps *steps;  /* out; NULL: not wanted */
	bool reverse;              /* clusters start, and warps run, in descending order */
};

/* ---- launches ---- */

enum exec_async { ASYNC_LATE, ASYNC_EARLY, ASYNC_RANDOM };
/* Which of the values that the ISA allows strong loads of global memory return (reads.h) */
enum exec_reads { READS_NEWEST, READS_OLDEST, READS_RANDOM };

/* A launch is one of several that use memory at the same time: at these points of its schedule, others
 * may run. */
enum exec_pause {
	EXEC_PAUSE_STUCK,  /* no thread can go on unless memory changes from outside */
	EXEC_PAUSE_VAIN,   /* all threads poll in vain, in loops that time may end: they read a clock, or count */
	EXEC_PAUSE_SLICE,  /* it has run for long */
	EXEC_PAUSE_ACCESS, /* a strong access to global memory comes next */
};
enum exec_resume {
	EXEC_AS_BEFORE,    /* nothing else has run */
	EXEC_CHANGED,      /* memory may have changed */
	EXEC_TIME,         /* EXEC_PAUSE_VAIN: nothing but time will change anything */
	EXEC_HUNG,         /* nothing will change it: the launch ends with EXEC_HANG */
	EXEC_GIVE_UP,      /* the launch ends with EXEC_STOPPED */
};

/* ---- the CUDA device runtime: what kernels ask of it beyond the executor (runtime.def) ---- */

enum exec_effect { RUNTIME_ASKS, RUNTIME_ORDERS, RUNTIME_RUNS };
enum exec_function {
#define RUNTIME(id, out, from, in, effect) RUNTIME_##id,
#include "runtime.def"
	RUNTIME_FUNCTIONS
};
enum { RUNTIME_OUT = 144,          /* bytes of the largest result */
	RUNTIME_WORDS = 21 };      /* of the parameters of Memcpy3DAsync */
/* A call by one thread. */
struct exec_call {
	enum exec_function function;
	enum exec_effect effect;
	/* The parameters in words, structures in as many as they have; of Memcpy3DAsync what the first one
	 * points to in its place; of LaunchDevice and LaunchDeviceV2 none. */
	uint64_t arg[RUNTIME_WORDS];
	const char *kernel;        /* that is launched, or that a parameter names; or NULL */
	/* of a launch: */
	uint32_t grid[3], block[3], shared_dynamic;
	uint64_t stream;
	const void *params;        /* param_bytes */
	uint64_t number;           /* RUNS: that of the EV_GRID_LAUNCH. GraphLaunch is called twice: with 0,
				      value is to be set to the number of its grids; with the first one's */
	uint64_t cta;              /* of the thread, linear */
	/* The results: what the first parameter points to, and of functions that return no error the value:
	 * of GetErrorString and GetErrorName the text, which must stay, of GraphSetConditional the address
	 * of the 4 bytes to be written, 0 if there is none, of CurrentGraphExec the handle. */
	unsigned char out[RUNTIME_OUT] __attribute__((aligned(8)));
	uint64_t value;
};

struct exec_observer {     /* callbacks may be called from worker threads */
	void *user;
	/* Called on the thread of exec_run(), which may wait; for launches of one worker. changed: the
	 * launch has changed memory since the last call. NULL: it runs alone. */
	enum exec_resume (*pause)(void *user, enum exec_pause why, bool changed);
	/* A cluster starts. Returns the sink for its events, or NULL for none. */
	struct event_sink *(*cluster_begin)(void *user, const struct cluster_info *c);
	void (*cluster_end)(void *user, struct event_sink *sink);
	/* vprintf and __assertfail output */
	void (*print)(void *user, const char *text, size_t n);
	/* Returns an error of enum cudaError, which the thread gets. NULL: kernels that call are not
	 * supported. */
	int (*call)(void *user, struct exec_call *c);
	/* Has a race between clusters been found? Asked once, before further workers start. True:
	 * they do not, as what the clusters do may depend on their order. */
	bool (*disputed)(void *user);
	/* polled regularly; true stops the launch with EXEC_STOPPED */
	bool (*stop)(void *user);
	/* A thread will write to memory in this range, an allocation, or several that are mapped side by
	 * side, in which the launch has written nothing so far. From any thread, one call at a time. NULL:
	 * not wanted. */
	void (*first_write)(void *user, uint64_t at, uint64_t bytes);
};

struct exec_launch {
	const struct exec_device *device;
	const struct exec_kernel *kernel;
	uint32_t id;
	uint32_t grid[3], block[3], cluster[3]; /* cluster 1,1,1: none */
	bool clustered;            /* it states cluster dimensions, perhaps 1,1,1 */
	uint32_t fallback[3];      /* divides cluster: some clusters, chosen by the seed, are
				      split into clusters of this size. 0: none */
	const uint32_t *sample;    /* the clusters that run, ascending, nsample; NULL: all */
	size_t nsample;
	bool partial;              /* what waits for global memory to change is no hang: it may wait for
				      what does not run */
	bool limited;              /* what a limit stops is no hang */
	uint32_t shared_dynamic;
	const void *params;        /* param_bytes, laid out as in ptx_func */
	bool cooperative;
	bool hardware;             /* instrumented code, whose own atomics are no points of the
				      schedule */
	bool carry_on;             /* accept wgmma operands that a GPU executes although the ISA
				      does not allow them */
	uint64_t seed;             /* 0: the canonical schedule */
	const struct exec_control *control; /* NULL, or the schedule of a coupled kernel */
	enum exec_async async;
	enum exec_reads reads;
	unsigned jobs;             /* worker threads, 0: all cores */
	uint64_t most;             /* ops, after which the launch is stopped; 0: no limit */
	double timeout;            /* seconds of processor time of any one worker, 0: none */
	const struct exec_observer *observer; /* NULL: run unchecked */
};

enum exec_status { EXEC_OK, EXEC_FAULT, EXEC_TRAP, EXEC_HANG, EXEC_TIMEOUT,
	EXEC_STOPPED, EXEC_UNSUPPORTED, EXEC_BAD_LAUNCH };

struct exec_result {
	enum exec_status status;
	struct consan_err err;            /* BAD_LAUNCH, UNSUPPORTED: reason and place */
	uint32_t site;             /* UNSUPPORTED, FAULT, TRAP: the site, or 0 */
	uint64_t bad_cluster;      /* the lowest one that failed; UINT64_MAX: none */
	uint64_t cut;              /* clusters from this id on were cut off at a moment that depends
				      on threads; UINT64_MAX: none */
	unsigned fault;            /* FAULT, TRAP: FAULT_ code (event.h) of the first fault */
	uint64_t clusters, ctas;   /* that ran to their end */
	uint64_t warp_ops;         /* warp instructions retired */
	uint64_t events;
	uint64_t sites_executed, sites; /* instructions reached / in the kernel */
	bool limited;              /* EXEC_STOPPED: by exec_launch.most */
	bool waits;                /* EXEC_STOPPED: `partial`, and its threads poll global memory */
	bool reads_given_up;       /* too many locations: at some time loads began to return the newest
				      value, in spite of exec_launch.reads */
};

/* True if this cluster of the grid is one of those that are split. At least one is, and if there
 * are two or more, at least one is not. */
bool exec_splits(const struct exec_launch *l, uint32_t cluster, uint32_t nclusters);

/* Runs the launch to its end. A fault or trap ends the launch as on a GPU (status says which); the
 * process continues. */
enum exec_status exec_run(const struct exec_launch *l, struct exec_result *r);

/* Registers per thread at the start of a launch with so many threads in a CTA: what setmaxnreg counts
 * from. */
uint32_t exec_entry_regs(const struct exec_kernel *k, uint32_t threads);

/* CTAs per SM of the largest resident grid, for occupancy queries and cooperative launches. */
unsigned exec_occupancy(const struct exec_device *d, const struct exec_kernel *k,
	uint32_t threads, uint32_t shared_dynamic);

/* ---- tensor maps and copies ---- */
#include "tensormap.h"

#endif
