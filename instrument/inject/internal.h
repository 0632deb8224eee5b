/* inject: what the files of the injected library share. It lives in the watched process,
 * next to the real driver:
 *  - it never ends the process, except when --timeout stops a kernel;
 *  - it reports what it cannot do, and the program runs as without it;
 *  - the driver is called through `cu`, from callbacks with `inject_busy` set,
 *    so that those calls are not watched themselves. */
#ifndef CONSAN_INSTRUMENT_INJECT_H
#define CONSAN_INSTRUMENT_INJECT_H

#include <cuda.h>
#include <pthread.h>

#include "libconsan/session/session.h"

/* The functions of the driver, by their current names; NULL: the driver is too old for it. */
#define DRIVER_CALLS(CALL) \
	CALL(cuCtxGetCurrent) CALL(cuCtxGetDevice) CALL(cuDeviceGetName) \
	CALL(cuDeviceGetAttribute) CALL(cuDeviceGetCount) CALL(cuDeviceGetP2PAttribute) CALL(cuDeviceGet) CALL(cuDriverGetVersion) \
	CALL(cuCtxPushCurrent) CALL(cuCtxPopCurrent) CALL(cuMemGetAddressRange) \
	CALL(cuFuncGetModule) CALL(cuFuncLoad) CALL(cuFuncGetAttribute) CALL(cuFuncGetName) \
	CALL(cuKernelGetFunction) CALL(cuModuleGetGlobal) CALL(cuMemGetInfo) CALL(cuMemAlloc) \
	CALL(cuMemFree) CALL(cuMemAllocPitch) CALL(cuMemAllocManaged) CALL(cuMemAllocAsync) \
	CALL(cuMemAllocFromPoolAsync) CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoHAsync) \
	CALL(cuMemsetD8) CALL(cuMemsetD8Async) CALL(cuMemCreate) CALL(cuMemRelease) \
	CALL(cuMemExportToShareableHandle) CALL(cuMemAddressReserve) CALL(cuMemAddressFree) \
	CALL(cuMemMap) CALL(cuMemUnmap) CALL(cuMemSetAccess) CALL(cuCtxGetId) \
	CALL(cuStreamGetCtx) CALL(cuDevicePrimaryCtxGetState) CALL(cuDevicePrimaryCtxRetain) \
	CALL(cuDevicePrimaryCtxRelease) CALL(cuMemAllocHost) CALL(cuStreamGetId) \
	CALL(cuStreamGetFlags) CALL(cuPointerGetAttribute) CALL(cuEventCreate) \
	CALL(cuEventQuery) CALL(cuEventDestroy) \
	CALL(cuStreamQuery) CALL(cuStreamSynchronize) CALL(cuStreamCreate) CALL(cuStreamDestroy) \
	CALL(cuStreamIsCapturing) CALL(cuThreadExchangeStreamCaptureMode) CALL(cuGetErrorName) \
	CALL(cuGetErrorString) \
	CALL(cuLibraryLoadData) CALL(cuLibraryGetModule) CALL(cuLibraryLoadFromFile) \
	CALL(cuModuleLoadData) CALL(cuModuleLoad) CALL(cuModuleGetFunction) CALL(cuLaunchKernel) \
	CALL(cuModuleUnload) CALL(cuFuncSetAttribute) CALL(cuMemcpyDtoDAsync) \
	CALL(cuLinkCreate) CALL(cuLinkAddData) CALL(cuLinkComplete) CALL(cuLinkDestroy) \
	CALL(cuCtxGetLimit) CALL(cuCtxSetLimit) \
	CALL(cuLaunchKernelEx) CALL(cuLaunchHostFunc) CALL(cuEventRecord) \
	CALL(cuStreamWaitEvent) CALL(cuGraphCreate) CALL(cuGraphDestroy) CALL(cuGraphClone) \
	CALL(cuGraphInstantiate) CALL(cuGraphLaunch) CALL(cuGraphExecDestroy) \
	CALL(cuGraphNodeFindInClone) CALL(cuGraphGetNodes) CALL(cuGraphGetEdges) \
	CALL(cuGraphNodeGetType) CALL(cuGraphNodeSetParams) CALL(cuGraphAddEmptyNode) \
	CALL(cuGraphChildGraphNodeGetGraph) CALL(cuGraphKernelNodeGetParams) \
	CALL(cuGraphKernelNodeSetParams) CALL(cuGraphKernelNodeGetAttribute) \
	CALL(cuGraphAddMemcpyNode) CALL(cuGraphMemcpyNodeGetParams) \
	CALL(cuGraphMemcpyNodeSetParams) CALL(cuGraphAddMemsetNode) \
	CALL(cuGraphMemsetNodeGetParams) CALL(cuGraphMemsetNodeSetParams) \
	CALL(cuGraphHostNodeGetParams) CALL(cuGraphHostNodeSetParams) \
	CALL(cuGraphEventRecordNodeGetEvent) CALL(cuGraphEventRecordNodeSetEvent) \
	CALL(cuGraphEventWaitNodeGetEvent) CALL(cuGraphEventWaitNodeSetEvent)

struct driver {
#define CALL(name) __typeof__(&name) p_##name;
	DRIVER_CALLS(CALL)
#undef CALL
};
extern struct driver cu;
extern _Thread_local bool inject_busy;

/* The session; NULL: none could be opened. */
struct consan *inject_session(void);
/* For --gpu-prepare, where nothing is injected. */
bool inject_open_session(void);
bool inject_open_driver(void);
void inject_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Adds a remark to the report. */
void inject_remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- calls.c: calls that failed ---- */
/* A launch that the driver refused. */
void inject_call_refused(const char *name, const char *kernel, CUresult error);
/* The name of the current call for reports: that of the runtime, or else that of the driver, which is
 * given, without the suffix of its version. */
void inject_call_name(const char *driver, char *to, size_t n);
/* The error of the current call is another finding's, or consan's own. */
void inject_call_handled(void);
/* kernel: "" for a variable. */
void inject_lookup_failed(const char *name, const char *kernel, CUresult error);
void inject_driver_returns(const char *name, CUresult error); /* at the end of each call */

/* ---- module.c ---- */

unsigned inject_sm(char *suffix); /* the architecture of the GPU: 90 and 'a' */
void inject_set_sm(unsigned sm, char suffix); /* without asking the driver */
/* A module of which there is PTX. Lives until the process ends. Its kernels are instrumented when
 * they are first launched (kernel.c), and the driver loads the program's own image; or, if it cannot
 * be divided (slice_refuses()), the driver loads it instrumented. */
struct inject_image;
/* NULL: there is no PTX, which is reported. */
struct inject_image *inject_image(const void *image, const char *what);
struct inject_image *inject_image_in(const char *path);
struct inject_image *inject_image_at(const void *image, size_t most, const char *what);
/* Of PTX, which it takes over, that the program will probably load: then this is the module's image.
 * NULL: it is loaded already, or cannot be divided. */
struct inject_image *inject_image_early(char *ptx, size_t n, const char *what);
/* The image to load instead of the program's; NULL: the program's. */
const char *inject_image_text(const struct inject_image *i); /* i: may be NULL */
/* The same as a descriptor of a file; -1: the program's. */
int inject_file(const struct inject_image *i, const char *path);
const char *inject_image_name(const struct inject_image *i);
/* These two if it can be divided, */
const char *inject_image_ptx(const struct inject_image *i, size_t *n);
const struct slices *inject_slices(struct inject_image *i);
/* and this if not; else NULL. */
struct gpu_module *inject_whole(const struct inject_image *i);
/* Reports that the driver refused the text of inject_image_text(). own: the result of loading
 * the program's image. */
void inject_refused(CUresult why, CUresult own);
/* The driver has made a module or library of an image. */
void inject_loaded(struct inject_image *i, CUmodule m);
void inject_library(struct inject_image *i, CUlibrary library);
/* The driver loads a library when a kernel of it is first used, which a stream capture does
 * not allow for PTX. Loads all that are instrumented now, before a capture begins. */
void inject_load_libraries(void);

/* The image of a module of the driver. */
struct inject_bound {
	CUmodule driver;
	CUlibrary library;         /* of which it is; NULL: none, or not known */
	struct inject_image *image; /* NULL: not instrumented */
	CUdeviceptr variable;      /* inject_whole(): its variable */
};
struct inject_bound inject_image_of(CUmodule driver, const char *kernel);
/* How many modules and libraries of which kernels are cut out are loaded, in all contexts; the k-th as it
 * is in the current context, or one without a driver's module. False: there are no more. */
size_t inject_modules(void);
bool inject_nth_module(size_t k, struct inject_bound *b);
/* Before they are unloaded: afterwards others may get the same handles. */
void inject_module_unloaded(CUmodule m);
void inject_library_unloaded(CUlibrary library);
/* As inject_context_ended(). */
void inject_modules_ended(CUcontext context, CUdevice device);

/* The current context, to know when it has ended. */
struct inject_home { CUcontext context; CUdevice device; bool primary; };
struct inject_home inject_home(void);
/* Has it ended? As inject_context_ended(). */
bool inject_at_home(const struct inject_home *h, CUcontext context, CUdevice device);

/* ---- kernel.c: kernels that were cut out of their module, instrumented ---- */
#define INJECT_WHY 320
struct inject_launch;
/* Sets l->module, l->variable and l->instead, the function to launch; l->loaded, l->original and
 * l->context are set. False: why. */
bool inject_kernel(struct inject_launch *l, const struct inject_bound *b, char why[INJECT_WHY]);
/* The function whose resources the program should see, as it is the one that will be launched. */
CUfunction inject_function(CUfunction f);
/* Kernels of this image that will probably be launched are instrumented and assembled by other
 * threads. */
void inject_ahead(struct inject_image *i);
/* From cuInit() on: other threads begin with the program's own file, early.c. */
void inject_ahead_of_modules(void);
void inject_kernels_unloaded(CUmodule from, CUlibrary library); /* one of the two */
void inject_kernels_ended(CUcontext context, CUdevice device);

/* ---- assemble.c ---- */
/* Machine code for the GPU; free() it. registers: the most that a thread may have; 0: no limit.
 * with_driver: the driver's linker may be used, which needs a current context. NULL: why, or "" if
 * there is no assembler; then the driver may still assemble the text as it loads it. */
void *inject_assemble(const char *ptx, size_t n, unsigned registers, bool with_driver,
	size_t *bytes, char why[INJECT_WHY]);
/* Is there one that other threads can use? */
bool inject_assembles(void);

/* ---- ptxas.c ---- */
/* Which ptxas there is; NULL: none. */
const char *inject_ptxas(void);
/* Only if there is one. Machine code; free() it. NULL: why. */
void *inject_run_ptxas(const char *ptx, size_t n, const char *arch, unsigned registers, size_t *bytes,
	char why[INJECT_WHY]);

/* ---- tensormap.c ---- */
/* The driver has encoded a map for these arguments. */
void inject_map_encoded(const CUtensorMap *map, const struct consan_tensormap_args *a);
/* As gpu_launch.map. */
bool inject_find_map(CUcontext context, uint64_t address, const void *param, void *bytes);

/* ---- memory.c ---- */
struct inject_launch;
/* Handles a call about memory, by CUPTI's number and its parameters, at its beginning (result
 * is NULL) and at its end. The program gets more memory than it asks for, but sees
 * its own sizes. */
void inject_memory(unsigned call, const void *params, CUresult *result);
/* As inject_context_ended(). */
void inject_memory_ended(CUcontext context, CUdevice device);
/* As decode_launch.memory. */
bool inject_find_memory(const struct inject_launch *l, uint64_t addr, uint64_t *from,
	uint64_t *bytes);

/* What a screen must know of allocations (screen_range_of()); the caller frees *to. */
struct screen_range;
void inject_screen_ranges(struct screen_range **to, size_t *n);

/* All that are noted, in order; added to `to`. */
struct ranges;
void inject_allocations(struct ranges *to);

/* ---- replay.c: --gpu-then-cpu ---- */
/* Copies the inputs of a launch that is about to begin, and begins to replay it; g: with its parameters.
 * NULL: it is not wanted, or the reason is in the report. */
struct gpu_replay *inject_replay(struct inject_launch *l, const struct gpu_launch *g);

/* ---- pool.c: device memory for records, and its copies on the host ---- */

#define STAGE_BYTES (64ull << 20)

struct context_records;
struct inject_pool {
	CUdeviceptr at;            /* record.h */
	uint64_t bytes;
	uint32_t chunks;
	int device;
	int file;                  /* a descriptor of the memory, for inject_rescue(); -1: none */
	uint64_t file_is[3];       /* by fstat(), as the program may close it, and open another file */
	unsigned users;            /* launches that record into it */
	struct context_records *records; /* of its context */
};
/* The current context's; made at its first use. NULL: there is no memory. Valid until
 * inject_drop_pools(). */
struct inject_pool *inject_pool(void);
/* One without users: the pool itself, or a smaller one beside it. NULL: there is none. */
struct inject_pool *inject_free_pool(struct inject_pool *pool);
bool inject_is_spare(const struct inject_pool *pool); /* one of the smaller ones, which are not drained */
/* The counter from which launches draw tickets: one for all contexts whose devices can share it. 0: there is
 * none. */
CUdeviceptr inject_ticket(const struct inject_pool *pool);
/* Makes it start from 1 again, before a launch while no other one runs. Waits until that is done. */
bool inject_ticket_restart(const struct inject_pool *pool);
/* How many chunks have been taken so far, while a launch runs. */
uint32_t inject_drawn(const struct inject_pool *pool);
/* Makes the smaller ones, if there are none. While no launch runs that may wait for this thread. */
void inject_make_spares(struct inject_pool *pool);
/* This context, or, if it is NULL, the device's primary one, has ended. */
void inject_drop_pools(CUcontext context, CUdevice device);
/* The same, and all else that is kept of it. */
void inject_context_ended(CUcontext context, CUdevice device);
/* Is it the device's primary context? */
bool inject_is_primary(CUcontext context, CUdevice device);
/* A stream of the context for small copies, also while a kernel runs; NULL: none. */
CUstream inject_beside(CUcontext context);
/* Is it the first byte of memory that consan has allocated, and not the program? (own.c) */
bool inject_is_own(CUdeviceptr start);
/* Makes the current context's pool, if there is one, before the first launch. */
void inject_make_pool(void);
/* Copies the pool's first bytes to the host, also while the kernel still runs. NULL:
 * the copy failed. Valid until the next call. */
const void *inject_fetch(const struct inject_pool *pool, size_t bytes);
/* Begins to clear the pool's first chunks; inject_emptied() waits for the end. */
void inject_empty(const struct inject_pool *pool, uint32_t chunks);
void inject_emptied(const struct inject_pool *pool);
void inject_empty_all(const struct inject_pool *pool); /* as inject_empty() */

/* ---- drain.c: copies records out of the pool while its kernel runs ---- */
struct drained;
struct inject_drain;
/* Is so little of the pool free that it should be drained? */
bool inject_is_full(const struct inject_pool *pool);
/* l: what is known before a launch; not used after this returns. */
struct inject_drain *inject_drain_open(const struct inject_pool *pool, const struct gpu_launch *l);
void inject_drain_close(struct inject_drain *d); /* NULL is fine */
/* Drains once. False: there was nothing to do. */
bool inject_drain(struct inject_drain *d);
/* The kernel is over, or is to be checked while it hangs; at: the pool's memory as a fault left
 * it, or NULL. Sets the fields of l that describe records, valid until d is closed. False: the
 * records could not be copied. */
bool inject_drain_end(struct inject_drain *d, bool ended, const void *at, struct gpu_launch *l,
	struct drained *r);

/* ---- identical.c: which clusters recorded the same ---- */
/* What the GPU computes after a launch; valid until the next copy. */
struct inject_facts {
	const struct record_head *head;
	const uint64_t *signature; /* of each CTA, as decode_sign() */
	const uint32_t *many;      /* chunks of each CTA; if it is more than `most`, its signature
				      is not valid */
	uint32_t most;
	const struct record_digest *digest; /* of each chunk; set by inject_fetch_some() */
	uint64_t *computed;           /* the signatures, if the host computed them */
	bool screened;                /* with gpu_screens(): is it clean? */
	struct screen_edge *edge;     /* if gpu_launch.edges; the caller frees it */
	uint32_t nedges;
	char unscreened[160];         /* why not */
};
/* Allocates what inject_facts() needs; called while the kernel runs. */
void inject_prepare_facts(const struct inject_pool *pool, const struct gpu_launch *l);
/* False: not available for this launch. */
bool inject_facts(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f);
/* Copies the head and the chunks of clusters that must be checked; *skip gets the other
 * clusters, and the caller frees it. NULL: the whole pool should be copied instead. */
const void *inject_fetch_some(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f, uint32_t chunks, uint8_t **skip, uint32_t *fetched);

/* ---- rescue.c ---- */

/* Copies the pool of a kernel that the GPU stopped, when no call of the driver works any more,
 * by another process. NULL: it failed; else the caller calls munmap() on *bytes. */
const void *inject_rescue(const struct inject_pool *pool, size_t *bytes);
/* Closes it and sets it to -1. */
void inject_close(int *file);
/* A descriptor of the pool's memory is made; is it still that? */
void inject_file_made(struct inject_pool *pool, int file);
bool inject_has_file(const struct inject_pool *pool);

/* ---- overlap.c ---- */
/* May two launches overlap if the program calls this function of the driver between them? */
bool inject_allows_overlap(const char *call);

/* ---- times.c ---- */

/* By the GPU's clock: seconds of the launch's kernel, and of our kernels after it; registers
 * (32 bits) and bytes of local memory of each thread of the kernel. */
struct inject_time {
	double kernel, ours, screen, scan; /* screen: of ours; scan: consan_screen_scan, of screen */
	uint32_t registers, local;
};
/* lib: CUPTI. Reports once if it cannot record times. */
void inject_times_open(void *lib);
/* In a callback: CUPTI's correlation number of the call, which the kernels launched in it also
 * have. */
void inject_times_call(uint32_t number);
/* The next kernel is that of a launch to be timed. */
void inject_times_await(void);
/* The times of that launch, which has ended. False: not asked for, or not known. */
bool inject_time(struct inject_time *t);

/* ---- launch.c ---- */

struct inject_launch {
	CUfunction f;
	const char *name;
	uint32_t grid[3], block[3], cluster[3], shared;
	CUstream stream;
	void **params, **extra;
	bool cooperative, programmatic;
	CUevent begun;             /* completes when all blocks have begun, or have triggered it; or NULL */
	bool preferred;            /* a preferred cluster is stated */
	bool clustered;            /* it, or the kernel, states cluster dimensions */
	struct order_op *op;       /* of a graph's launch; else set by inject_before(), which takes
				      over the reference */
	/* set by inject_before(): */
	struct operation *operation;
	struct gpu_module *module;
	CUmodule loaded;           /* the program's */
	CUfunction original;       /* f as a function, the program's */
	CUfunction instead;        /* to be launched; NULL: f */
	CUcontext context;
	bool pushed;               /* `context` was made the current one */
	uint64_t queue;            /* the stream, as in consan_launch.queue */
	struct inject_pool *pool;
	CUdeviceptr variable;
	struct inject_drain *drain; /* NULL: nothing was drained */
	uint32_t shared_all, nregs;
	CUdeviceptr ticket;
	uint32_t wanted;           /* gpu_wants() */
	bool tickets;
	struct gpu_replay *replay; /* --gpu-then-cpu; or NULL */
	CUfunction function;       /* that was launched */
	char *kernel;
	double start, launched;    /* seconds */
	/* pending.c: */
	bool mixed;                /* its records are mixed with those of another launch */
	bool beside;               /* other work ran beside it */
	void *packed;              /* the parameter block, after the call; owned */
	CUevent ended;             /* recorded behind it */
	bool abandoned;            /* it is not waited for any more */
	bool checked;              /* it has ended */
	bool counted;              /* gpu_ran() was called */
	uint32_t drawn;            /* see inject_records_more() */
	uint32_t stack;            /* of its call */
	struct inject_launch *next;
};
/* Fills in a launch from the arguments of cuLaunchKernelEx(); the rest is zeroed. */
void inject_describe(struct inject_launch *l, CUfunction f, const CUlaunchConfig *c, void **params,
	void **extra);
/* Before a launch. A launch in a stream that is captured launches nothing yet and is ignored. */
void inject_before(struct inject_launch *l);
/* After a launch. r: its result. Returns the kernel's result if it was waited for, else r. */
CUresult inject_after(struct inject_launch *l, CUresult r);
/* Checks a launch that pending.c has waited for: r is its result. Under the lock. */
void inject_finish(struct inject_launch *l, CUresult r);
/* It still runs, and its replay has ended long ago: inject_end_replay() takes what was found. */
bool inject_takes_replay(const struct inject_launch *l);
void inject_end_replay(struct inject_launch *l);
_Noreturn void inject_stop(struct inject_launch *l); /* it has run for longer than --timeout */
/* Makes the context of l->stream current; inject_leave() restores the one before. */
void inject_enter(struct inject_launch *l);
void inject_leave(struct inject_launch *l);
bool inject_capturing(CUstream s);
uint64_t inject_queue(CUstream s); /* the stream, as in consan_launch.queue */
/* A CUkernel may be launched in place of a CUfunction, as the argument has one type for both. *m:
 * its module. NULL: it is neither. */
CUfunction inject_function_of(CUfunction f, CUmodule *m);
const char *inject_name(CUfunction f); /* of a CUfunction or CUkernel; "?": not known */

/* ---- pending.c: launches that have not ended when their call returns ---- */

/* lock.c: held from before a launch until after it. */
void inject_lock(void);
/* For a process that ends. False: another launch has it for longer, or this thread itself does, which a
 * handler of a signal interrupted. */
bool inject_lock_within(double seconds);
void inject_unlock(void);
void inject_locked_for(const struct inject_launch *l); /* which will be unchecked if the thread ends */
/* As pthread_cond_timedwait(). */
void inject_wait(pthread_cond_t *until, double seconds);
/* May the program go on before a launch has ended? Else another launch, or the host, that it waits for
 * cannot come. */
bool inject_may_detach(void);
/* Seconds without a record for which its call waits for it; and if it does record. */
double inject_patience(const struct inject_launch *l);
double inject_patience_recording(const struct inject_launch *l);
/* Was this kernel seen to run beside another one? */
bool inject_runs_beside(const char *kernel);
/* Waits for pending launches of the context, so that the driver can load. False: they seem to wait for
 * something. */
bool inject_await_loading(const struct inject_launch *l);
/* Does a pending launch use this variable that may run at the same time as this one? */
bool inject_runs_with(const struct inject_launch *l, CUdeviceptr variable);
/* Has it recorded anything since the last call? One that waits does not. */
bool inject_records_more(struct inject_launch *l);
/* Sets l->pool for a launch that is about to begin, or l->mixed and the pool of the launch with which
 * its records are mixed, as they use the same variable. False: there is no pool for it, and *why is
 * the reason. The caller holds the lock, which is released while it waits. */
bool inject_take_pool(struct inject_launch *l, const char **why);
void inject_give_pool(struct inject_launch *l, bool cleared);
/* The launch goes on after its call; what l owns is taken over. False: it must be waited for. */
bool inject_detach(struct inject_launch *l);
/* Are there other launches in this context that have not ended? Under the lock. */
bool inject_pending(CUcontext context);
/* Waits for such launches; after some seconds those that have not ended count as not checked. Without
 * the lock. at_exit: the process ends, and does not wait for a launch of another thread. */
void inject_await(bool at_exit);
/* As consan_launch_stack(), for the launch that this thread checks. */
uint32_t inject_stack(void);

/* ---- graph.c ---- */

/* Called after the program's calls succeeded. for_devices: kernels may launch it. */
void inject_graph_made(CUgraphExec exec, CUgraph graph, bool for_devices);
void inject_graph_updated(CUgraphExec exec, CUgraph graph);
void inject_graph_enabled(CUgraphExec exec, CUgraphNode node, bool on, const char *call);
/* The clone's node, which must get the same parameters. NULL: there is none. */
CUgraphNode inject_graph_node(CUgraphExec exec, CUgraphNode node, const char *call);
/* The call changed the program's graph, and the clone could not be changed in the same way. */
void inject_graph_diverged(CUgraphExec exec, const char *call);
/* Before it is destroyed. */
void inject_graph_destroyed(CUgraphExec exec);
/* As inject_context_ended(). */
void inject_graphs_ended(CUcontext context, CUdevice device);
/* Runs the graph's nodes. *exec: set to the graph to launch instead. If the result is not
 * CUDA_SUCCESS, it becomes that of the launch. */
CUresult inject_graph_launch(CUgraphExec *exec, CUstream s);

#endif
