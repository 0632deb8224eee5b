/* inject: what the files of the injected library share. It lives in the watched process,
 * next to the real driver:
 *  - it never ends the process, except when --timeout stops a kernel;
 *  - it reports what it cannot do, and the program runs as without it;
 *  - the driver is called through `cu`, from callbacks with `inject_busy` set,
 *    so that those calls are not watched themselves. */
#ifndef CONSAN_INSTRUMENT_INJECT_H
#define CONSAN_INSTRUMENT_INJECT_H

#include <cuda.h>

#include "libconsan/session/session.h"

/* The functions of the driver, by their current names; NULL: the driver is too old for it. */
#define DRIVER_CALLS(CALL) \
	CALL(cuCtxGetCurrent) CALL(cuCtxGetDevice) CALL(cuDeviceGetName) \
	CALL(cuDeviceGetAttribute) CALL(cuDeviceGet) CALL(cuDriverGetVersion) \
	CALL(cuCtxPushCurrent) CALL(cuCtxPopCurrent) CALL(cuMemGetAddressRange) \
	CALL(cuFuncGetModule) CALL(cuFuncGetAttribute) CALL(cuFuncGetName) \
	CALL(cuKernelGetFunction) CALL(cuModuleGetGlobal) CALL(cuMemGetInfo) CALL(cuMemAlloc) \
	CALL(cuMemFree) CALL(cuMemAllocPitch) CALL(cuMemAllocManaged) CALL(cuMemAllocAsync) \
	CALL(cuMemAllocFromPoolAsync) CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoHAsync) \
	CALL(cuMemsetD8) CALL(cuMemsetD8Async) CALL(cuMemCreate) CALL(cuMemRelease) \
	CALL(cuMemExportToShareableHandle) CALL(cuMemAddressReserve) CALL(cuMemAddressFree) \
	CALL(cuMemMap) CALL(cuMemUnmap) CALL(cuMemSetAccess) CALL(cuCtxGetId) \
	CALL(cuStreamGetCtx) CALL(cuDevicePrimaryCtxGetState) CALL(cuDevicePrimaryCtxRetain) \
	CALL(cuDevicePrimaryCtxRelease) CALL(cuMemAllocHost) CALL(cuStreamGetId) \
	CALL(cuStreamQuery) CALL(cuStreamSynchronize) CALL(cuStreamCreate) \
	CALL(cuStreamIsCapturing) CALL(cuThreadExchangeStreamCaptureMode) CALL(cuGetErrorName) \
	CALL(cuGetErrorString) \
	CALL(cuLibraryLoadData) CALL(cuLibraryGetModule) CALL(cuLibraryLoadFromFile) \
	CALL(cuModuleLoadData) CALL(cuModuleLoad) CALL(cuModuleGetFunction) CALL(cuLaunchKernel) \
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
void inject_print(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Adds a remark to the report. */
void inject_remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- calls.c: calls that failed ---- */
/* A launch that the driver refused. */
void inject_call_refused(const char *name, const char *kernel, CUresult error);
/* The error of the current call is another finding's, or consan's own. */
void inject_call_handled(void);
/* kernel: "" for a variable. */
void inject_lookup_failed(const char *name, const char *kernel, CUresult error);
void inject_driver_returns(const char *name, CUresult error); /* at the end of each call */

/* ---- module.c ---- */

unsigned inject_sm(char *suffix); /* the architecture of the GPU: 90 and 'a' */
/* The image to load instead of the program's; NULL: the program's. Valid until the process
 * ends. */
const void *inject_image(const void *image, const char *what);
/* The same for a file: a descriptor of the file to load instead; -1: the program's. */
int inject_file(const char *path);
/* The instrumented module behind a module of the driver, and the address of its variable;
 * NULL: it is not instrumented. */
struct gpu_module *inject_module(CUmodule m, CUdeviceptr *variable);
/* Reports that the driver refused the image of inject_image(). own: the result of loading the
 * program's image. */
void inject_refused(CUresult why, CUresult own);
/* Notes a library made of an image of inject_image(). */
void inject_library(CUlibrary library);
/* The driver loads a library when a kernel of it is first used, which a stream capture does
 * not allow. Loads all of them now, before a capture begins. */
void inject_load_libraries(void);
/* A library (NULL: any module) is unloaded, or a context ended: handles may be used again. */
void inject_unloaded(CUlibrary library);

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

/* ---- pool.c: device memory for records, and its copies on the host ---- */

#define STAGE_BYTES (64ull << 20)

struct inject_pool {
	CUdeviceptr at;            /* record.h */
	uint64_t bytes;
	uint32_t chunks;
	int device;
	int file;                  /* a descriptor of the memory, for inject_rescue(); -1: none */
};
/* The current context's; made at its first use. NULL: there is no memory. Valid until
 * inject_drop_pools(). */
const struct inject_pool *inject_pool(void);
/* This context, or, if it is NULL, the device's primary one, has ended. */
void inject_drop_pools(CUcontext context, CUdevice device);
/* Is it the device's primary context? */
bool inject_is_primary(CUcontext context, CUdevice device);
/* A stream of the context for small copies, also while a kernel runs; NULL: none. */
CUstream inject_beside(CUcontext context);
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

/* ---- overlap.c ---- */
/* May two launches overlap if the program calls this function of the driver between them? */
bool inject_allows_overlap(const char *call);

/* ---- times.c ---- */

/* By the GPU's clock: seconds of the launch's kernel, and of our kernels after it; registers
 * (32 bits) and bytes of local memory of each thread of the kernel. */
struct inject_time {
	double kernel, ours;
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
	bool preferred;            /* a preferred cluster is stated */
	bool clustered;            /* it, or the kernel, states cluster dimensions */
	/* set by inject_before(): */
	struct gpu_module *module;
	CUmodule loaded;
	CUcontext context;
	bool pushed;               /* `context` was made the current one */
	uint64_t queue;            /* the stream, as in consan_launch.queue */
	const struct inject_pool *pool;
	CUdeviceptr variable;
	struct inject_drain *drain; /* NULL: nothing was drained */
	uint32_t shared_all, nregs;
	bool wanted, tickets;
	CUfunction function;
	char *kernel;
	double start, launched;    /* seconds */
};
/* Fills in a launch from the arguments of cuLaunchKernelEx(); the rest is zeroed. */
void inject_describe(struct inject_launch *l, CUfunction f, const CUlaunchConfig *c, void **params,
	void **extra);
/* Before a launch. A launch in a stream that is captured launches nothing yet and is ignored. */
void inject_before(struct inject_launch *l);
/* After a launch. r: its result. Returns the kernel's result if it was waited for, else r. */
CUresult inject_after(struct inject_launch *l, CUresult r);
/* This context has ended; NULL: the device's primary context. */
void inject_context_ended(CUcontext context, CUdevice device);
/* Makes the context of l->stream current; inject_leave() restores the one before. */
void inject_enter(struct inject_launch *l);
void inject_leave(struct inject_launch *l);
bool inject_capturing(CUstream s);
uint64_t inject_queue(CUstream s); /* the stream, as in consan_launch.queue */
const char *inject_name(CUfunction f); /* of a CUfunction or CUkernel; "?": not known */

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
