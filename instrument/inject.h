/* inject: what the files of the injected library agree on. It lives in the
 * watched process, beside the real driver:
 *  - it never exits the process, a kernel that --timeout stops excepted;
 *  - what it cannot do it says, and the program runs as without it;
 *  - the driver is called through `cu`, from callbacks with `inject_busy` set,
 *    so that those calls are not watched themselves. */
#ifndef CONSAN_INSTRUMENT_INJECT_H
#define CONSAN_INSTRUMENT_INJECT_H

#include <cuda.h>

#include "../libconsan/gpu.h"

/* The driver's functions, by their current names. */
#define DRIVER_CALLS(CALL) \
	CALL(cuCtxGetCurrent) CALL(cuCtxGetDevice) CALL(cuDeviceGetName) CALL(cuDeviceGetAttribute) \
	CALL(cuDeviceGet) CALL(cuDriverGetVersion) \
	CALL(cuFuncGetModule) CALL(cuFuncGetAttribute) CALL(cuFuncGetName) CALL(cuKernelGetFunction) \
	CALL(cuModuleGetGlobal) CALL(cuMemGetInfo) CALL(cuMemAlloc) CALL(cuMemFree) \
	CALL(cuMemcpyHtoD) CALL(cuMemcpyDtoH) CALL(cuMemcpyDtoHAsync) CALL(cuMemsetD8) \
	CALL(cuMemAllocHost) CALL(cuStreamQuery) CALL(cuStreamSynchronize) \
	CALL(cuStreamCreate) CALL(cuStreamIsCapturing) CALL(cuGetErrorName) CALL(cuLibraryLoadData) \
	CALL(cuModuleLoadData) CALL(cuModuleGetFunction) CALL(cuLaunchKernel)

struct driver {
#define CALL(name) __typeof__(&name) p_##name;
	DRIVER_CALLS(CALL)
#undef CALL
};
extern struct driver cu;
extern _Thread_local bool inject_busy;

/* The session; NULL: none could be opened. */
struct consan *inject_session(void);
void inject_say(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Into the report. */
void inject_remark(enum consan_remark kind, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- inject_module.c ---- */

/* What to load instead of the program's image; NULL: its own. Valid for ever. */
const void *inject_image(const void *image, const char *what);
/* The instrumented module that this driver module is; NULL: none of ours. */
struct gpu_module *inject_module(CUmodule m, CUdeviceptr *variable);
/* The driver refused what inject_image() returned. */
void inject_refused(const void *image, CUresult why);
const void *inject_original(const void *image);
void inject_close_modules(void);

/* ---- inject_map.c ---- */
void inject_map(const CUtensorMap *map, const struct tensormap_args *a);
void inject_map_address(const CUtensorMap *map, uint64_t address);
bool inject_find_map(void *user, uint64_t address, const void *param, void *bytes);
/* Before it is overwritten: the map's place is known by its bytes. */
void inject_map_before(const CUtensorMap *map);

/* ---- inject_pool.c: device memory for records, and how they come home ---- */

#define STAGE_BYTES (64ull << 20)

struct inject_pool {
	CUdeviceptr at;            /* record.h */
	uint32_t chunks;
};
/* In the current context; made at its first use. NULL: there is no memory. */
const struct inject_pool *inject_pool(void);
/* The pool's first bytes on the host, also while the kernel still runs. NULL:
 * they cannot be had. Valid until the next call. */
const void *inject_fetch(size_t bytes);
/* The head and the chunks of those clusters that speak for all; *skip, which
 * free() takes, gets the others. NULL: better look at all. */
const void *inject_fetch_some(const struct gpu_launch *l, uint32_t chunks, uint8_t **skip,
	uint32_t *fetched);

/* ---- inject_launch.c ---- */

struct inject_launch {
	CUfunction f;
	const char *name;
	uint32_t grid[3], block[3], cluster[3], shared;
	CUstream stream;
	void **params, **extra;
	bool cooperative;
	/* filled by inject_before() */
	struct gpu_module *module;
	CUdeviceptr variable;
	bool wanted, tickets;
	CUfunction function;
	char *kernel;
	double start, launched;    /* seconds */
};
void inject_before(struct inject_launch *l);
void inject_after(struct inject_launch *l, CUresult r);
void inject_graph(void);

#endif
