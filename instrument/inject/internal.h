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

/* The driver's functions, by their current names; NULL: it is too old for one. */
#define DRIVER_CALLS(CALL) \
	CALL(cuCtxGetCurrent) CALL(cuCtxGetDevice) CALL(cuDeviceGetName) CALL(cuDeviceGetAttribute) \
	CALL(cuDeviceGet) CALL(cuDriverGetVersion) CALL(cuCtxPushCurrent) CALL(cuCtxPopCurrent) \
	CALL(cuMemGetAddressRange) \
	CALL(cuFuncGetModule) CALL(cuFuncGetAttribute) CALL(cuFuncGetName) CALL(cuKernelGetFunction) \
	CALL(cuModuleGetGlobal) CALL(cuMemGetInfo) CALL(cuMemAlloc) CALL(cuMemFree) CALL(cuMemAllocPitch) \
	CALL(cuMemAllocManaged) CALL(cuMemAllocAsync) CALL(cuMemAllocFromPoolAsync) \
	CALL(cuMemcpyHtoDAsync) CALL(cuMemcpyDtoHAsync) \
	CALL(cuMemsetD8) CALL(cuMemsetD8Async) \
	CALL(cuMemCreate) CALL(cuMemRelease) CALL(cuMemExportToShareableHandle) \
	CALL(cuMemAddressReserve) CALL(cuMemAddressFree) CALL(cuMemMap) CALL(cuMemUnmap) CALL(cuMemSetAccess) \
	CALL(cuCtxGetId) CALL(cuStreamGetCtx) CALL(cuDevicePrimaryCtxGetState) \
	CALL(cuDevicePrimaryCtxRetain) CALL(cuDevicePrimaryCtxRelease) \
	CALL(cuMemAllocHost) CALL(cuStreamGetId) CALL(cuStreamQuery) CALL(cuStreamSynchronize) \
	CALL(cuStreamCreate) CALL(cuStreamIsCapturing) CALL(cuThreadExchangeStreamCaptureMode) \
	CALL(cuGetErrorName) CALL(cuLibraryLoadData) CALL(cuLibraryGetModule) CALL(cuLibraryLoadFromFile) \
	CALL(cuModuleLoadData) CALL(cuModuleLoad) CALL(cuModuleGetFunction) CALL(cuLaunchKernel) \
	CALL(cuTensorMapEncodeTiled) CALL(cuCtxGetLimit) CALL(cuCtxSetLimit) \
	CALL(cuLaunchKernelEx) CALL(cuLaunchHostFunc) CALL(cuEventRecord) CALL(cuStreamWaitEvent) \
	CALL(cuGraphCreate) CALL(cuGraphDestroy) CALL(cuGraphClone) CALL(cuGraphInstantiate) \
	CALL(cuGraphLaunch) CALL(cuGraphExecDestroy) CALL(cuGraphNodeFindInClone) \
	CALL(cuGraphGetNodes) CALL(cuGraphGetEdges) CALL(cuGraphNodeGetType) CALL(cuGraphNodeSetParams) \
	CALL(cuGraphAddEmptyNode) CALL(cuGraphChildGraphNodeGetGraph) \
	CALL(cuGraphKernelNodeGetParams) CALL(cuGraphKernelNodeSetParams) CALL(cuGraphKernelNodeGetAttribute) \
	CALL(cuGraphAddMemcpyNode) CALL(cuGraphMemcpyNodeGetParams) CALL(cuGraphMemcpyNodeSetParams) \
	CALL(cuGraphAddMemsetNode) CALL(cuGraphMemsetNodeGetParams) CALL(cuGraphMemsetNodeSetParams) \
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
double inject_now(void); /* seconds */
void inject_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Into the report. */
void inject_remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- module.c ---- */

/* What to load instead of the program's image; NULL: its own. Valid for ever. */
const void *inject_image(const void *image, const char *what);
/* The same of a file: a file descriptor of one with what to load instead; -1: none. */
int inject_file(const char *path);
/* The instrumented module that this driver module is; NULL: none of ours. */
struct gpu_module *inject_module(CUmodule m, CUdeviceptr *variable);
/* The driver refused what inject_image() returned; and what it said of the program's own. */
void inject_refused(CUresult why, CUresult own);
/* cuLibraryLoadData() made this of what inject_image() returned. */
void inject_library(CUlibrary library);
/* The driver loads a library when a kernel of it is first used, which a capture
 * does not bear: now, then. */
void inject_load_libraries(void);
/* A library, or NULL: some module, is unloaded, or its context ends: handles may be used again. */
void inject_unloaded(CUlibrary library);

/* ---- map.c ---- */
void inject_map(const CUtensorMap *map, const struct tensormap_args *a);
void inject_map_address(const CUtensorMap *map, uint64_t address);
/* See gpu_launch.map. */
bool inject_find_map(CUcontext context, uint64_t address, const void *param, void *bytes);
/* Before it is overwritten: the map's place is known by its bytes. */
void inject_map_before(const CUtensorMap *map);

/* ---- memory.c ---- */
struct inject_launch;
/* A call of the driver about memory, by its number in CUPTI and its parameters, before it
 * (result: NULL) or after it: the program gets more than it asks for, and is told of no more. */
void inject_memory(unsigned call, const void *params, CUresult *result);
/* See inject_context_ended(). */
void inject_memory_ended(CUcontext context, CUdevice device);
/* See decode_launch.memory. */
bool inject_find_memory(const struct inject_launch *l, uint64_t addr, uint64_t *from, uint64_t *bytes);

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
	uint64_t *own;             /* the signatures, if the host computed them */
};
/* Allocates what inject_facts() needs; called while the kernel runs. */
void inject_prepare_facts(const struct inject_pool *pool, const struct gpu_launch *l);
/* False: not available for this launch. */
bool inject_facts(const struct inject_pool *pool, const struct gpu_launch *l, struct inject_facts *f);
/* Copies the head and the chunks of clusters that must be checked; *skip gets the other
 * clusters, and the caller frees it. NULL: the whole pool should be copied instead. */
const void *inject_fetch_some(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f, uint32_t chunks, uint8_t **skip, uint32_t *fetched);

/* ---- rescue.c ---- */

/* The pool as a kernel left it that the GPU stopped, when no call works any more:
 * another process reads it. NULL: it cannot be had; else munmap() of *bytes. */
const void *inject_rescue(const struct inject_pool *pool, size_t *bytes);
/* close() and -1. */
void inject_close(int *file);

/* ---- calls.c ---- */
/* May two launches overlap with this call of the driver between them? */
bool inject_passes(const char *call);

/* ---- times.c ---- */

/* By the GPU's clock: seconds of the launch's kernel and of our kernels that ran after it;
 * 32-bit registers and bytes of local memory of each of the kernel's threads. */
struct inject_time {
	double kernel, own;
	uint32_t registers, local;
};
/* lib: CUPTI. If it cannot tell, it is said once. */
void inject_times_open(void *lib);
/* In a callback: CUPTI's number of the call, which all that is launched in it has, too. */
void inject_times_call(uint32_t number);
/* A launch comes next. */
void inject_times_await(void);
/* Of the launch that was awaited, which is over. False: not asked for, or not known. */
bool inject_time(struct inject_time *t);

/* ---- launch.c ---- */

struct inject_launch {
	CUfunction f;
	const char *name;
	uint32_t grid[3], block[3], cluster[3], shared;
	CUstream stream;
	void **params, **extra;
	bool cooperative, programmatic;
	/* filled by inject_before() */
	struct gpu_module *module;
	CUmodule loaded;
	CUcontext context;
	bool pushed;               /* it was not the current one */
	uint64_t queue;            /* the stream, as consan_launch.queue */
	const struct inject_pool *pool;
	CUdeviceptr variable;
	struct inject_drain *drain; /* NULL: there was no need */
	uint32_t shared_all, nregs;
	bool wanted, tickets;
	CUfunction function;
	char *kernel;
	double start, launched;    /* seconds */
};
/* By cuLaunchKernelEx()'s arguments; the rest is zeroed. */
void inject_describe(struct inject_launch *l, CUfunction f, const CUlaunchConfig *c, void **params,
	void **extra);
/* A launch in a stream that is being captured is none yet: it is left alone. */
void inject_before(struct inject_launch *l);
/* r: the launch's; what came of it, if it was waited for, else r. */
CUresult inject_after(struct inject_launch *l, CUresult r);
/* This context, or, if it is NULL, the device's primary one, is no more. */
void inject_context_ended(CUcontext context, CUdevice device);
/* l->stream's context, which need not be the current one; between these two it is. */
void inject_enter(struct inject_launch *l);
void inject_leave(struct inject_launch *l);
bool inject_capturing(CUstream s);
uint64_t inject_queue(CUstream s); /* the stream, as consan_launch.queue */
const char *inject_name(CUfunction f); /* or a CUkernel; "?": the driver does not say */

/* ---- graph.c ---- */

/* The program's calls, after they have succeeded; for_devices: kernels can launch it. */
void inject_graph_made(CUgraphExec exec, CUgraph graph, bool for_devices);
void inject_graph_updated(CUgraphExec exec, CUgraph graph);
void inject_graph_enabled(CUgraphExec exec, CUgraphNode node, bool on, const char *call);
/* The node of our copy, whose parameters are to become the same. NULL: it has none. */
CUgraphNode inject_graph_node(CUgraphExec exec, CUgraphNode node, const char *call);
/* Our copy is no longer the same, by this call. */
void inject_graph_lost(CUgraphExec exec, const char *call);
/* Before its end. */
void inject_graph_gone(CUgraphExec exec);
/* See inject_context_ended(). */
void inject_graphs_ended(CUcontext context, CUdevice device);
/* Runs the graph's nodes; *exec: what is to be launched instead. The result is the
 * launch's, if it is not CUDA_SUCCESS. */
CUresult inject_graph_launch(CUgraphExec *exec, CUstream s);

#endif
