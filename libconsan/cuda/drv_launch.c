/* drv_launch: functions, occupancy and launches of the driver API. CUfunction and CUkernel are
 * the same object. */
#include "internal.h"

#include <string.h>

/* ---- functions ---- */

/* Like func_find(), with the driver's error for a handle that is not a function. */
static int find_on(const void *handle, int device, struct func **f)
{
	int error = drv_initialised();

	if (!error)
		error = device_check(device);
	if (!error)
		error = func_find_on(handle, device, f);
	return error == cudaErrorInvalidDeviceFunction ? cudaErrorInvalidResourceHandle : error;
}

static int find(const void *handle, struct func **f)
{
	return find_on(handle, device_now(), f);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction func)
{
	struct func *f;
	int error = find(func, &f);

	return drv(error ? error : func_get_attribute(f, a, value));
}

CUresult cuFuncSetAttribute(CUfunction func, CUfunction_attribute a, int value)
{
	struct func *f;
	int error = find(func, &f);

	return drv(error ? error : func_set_attribute(f, a, value));
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute a, CUkernel kernel, CUdevice device)
{
	struct func *f;
	int error = find_on(kernel, device, &f);

	return drv(error ? error : func_get_attribute(f, a, value));
}

CUresult cuKernelSetAttribute(CUfunction_attribute a, int value, CUkernel kernel, CUdevice device)
{
	struct func *f;
	int error = find_on(kernel, device, &f);

	return drv(error ? error : func_set_attribute(f, a, value));
}

CUresult cuFuncSetCacheConfig(CUfunction func, CUfunc_cache config)
{
	struct func *f;

	return drv(find(func, &f));
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
	return cuFuncSetCacheConfig((CUfunction)kernel, config);
}

CUresult cuFuncSetSharedMemConfig(CUfunction func, CUsharedconfig config)
{
	struct func *f;

	return drv(find(func, &f));
}

CUresult cuFuncGetModule(CUmodule *module, CUfunction func)
{
	struct func *f;
	int error = module ? find(func, &f) : cudaErrorInvalidValue;

	if (!error)
		*module = (CUmodule)f->image;
	return drv(error);
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel kernel)
{
	return cuFuncGetModule((CUmodule *)library, (CUfunction)kernel);
}

CUresult cuKernelGetFunction(CUfunction *func, CUkernel kernel)
{
	struct func *f;
	int error = func ? find(kernel, &f) : cudaErrorInvalidValue;

	if (!error)
		*func = (CUfunction)f;
	return drv(error);
}

CUresult cuFuncGetName(const char **name, CUfunction func)
{
	struct func *f;
	int error = name ? find(func, &f) : cudaErrorInvalidValue;

	if (!error)
		*name = f->name;
	return drv(error);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
	return cuFuncGetName(name, (CUfunction)kernel);
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t i, size_t *offset, size_t *bytes)
{
	struct func *f;
	uint32_t at, n;
	int error = offset ? find(func, &f) : cudaErrorInvalidValue;

	if (error)
		return drv(error);
	if (!consan_kernel_param(f->kernel, i, &at, &n))
		return CUDA_ERROR_INVALID_VALUE;
	*offset = at;
	if (bytes)
		*bytes = n;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t i, size_t *offset, size_t *bytes)
{
	return cuFuncGetParamInfo((CUfunction)kernel, i, offset, bytes);
}

CUresult cuFuncLoad(CUfunction func)
{
	struct func *f;

	return drv(find(func, &f));
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction func)
{
	struct func *f;
	int error = state ? find(func, &f) : cudaErrorInvalidValue;

	if (!error)
		*state = CU_FUNCTION_LOADING_STATE_LOADED;
	return drv(error);
}

/* ---- occupancy ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int threads,
	size_t shared)
{
	struct func *f;
	int error = find(func, &f);

	return drv(error ? error : func_occupancy(f, threads, shared, blocks));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func,
	int threads, size_t shared, unsigned flags)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, func, threads, shared);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *shared, CUfunction func, int blocks,
	int threads)
{
	struct func *f;
	int error = find(func, &f);

	return drv(error ? error : func_available_shared(f, blocks, threads, shared));
}

/* The block size with the most resident threads; the greatest of equal ones. */
CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction func,
	CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
	struct func *f;
	int error = grid && block ? find(func, &f) : cudaErrorInvalidValue;
	int best = 0, threads, blocks;

	if (error)
		return drv(error);
	threads = (int)f->info.max_threads;
	if (limit > 0 && limit < threads)
		threads = limit;
	for (threads = (threads + 31) / 32 * 32; threads > 0; threads -= 32) {
		func_occupancy(f, threads, shared_of ? shared_of(threads) : shared, &blocks);
		if (blocks * threads <= best)
			continue;
		best = blocks * threads;
		*block = threads;
		*grid = blocks * (int)device_info()->sm_count;
	}
	return drv(best ? 0 : cudaErrorInvalidValue);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction func,
	CUoccupancyB2DSize shared_of, size_t shared, int limit, unsigned flags)
{
	return cuOccupancyMaxPotentialBlockSize(grid, block, func, shared_of, shared, limit);
}

static int from_config(struct launch *l, const CUlaunchConfig *c, CUfunction func)
{
	int error = c ? find(func, &l->func) : cudaErrorInvalidValue;

	if (error)
		return error;
	memcpy(l->grid, &c->gridDimX, sizeof l->grid);
	memcpy(l->block, &c->blockDimX, sizeof l->block);
	l->shared = c->sharedMemBytes;
	return launch_attributes(l, c->attrs, c->numAttrs);
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction func, const CUlaunchConfig *c)
{
	struct launch l = { 0 };
	int error = from_config(&l, c, func);

	return drv(error ? error : func_max_cluster_size(&l, size));
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction func, const CUlaunchConfig *c)
{
	struct launch l = { 0 };
	int error = from_config(&l, c, func);

	return drv(error ? error : func_max_clusters(&l, clusters));
}

/* ---- launches ---- */

/* extra: pairs of tag and value, terminated by CU_LAUNCH_PARAM_END. */
static int pack(struct launch *l, void **args, void **extra)
{
	const void *block = NULL;
	const size_t *bytes = NULL;

	if (!extra)
		return launch_pack(l, args, NULL, 0);
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			block = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			bytes = extra[1];
		else
			return cudaErrorInvalidValue;
	}
	if (args || !block || !bytes)
		return cudaErrorInvalidValue;
	return launch_pack(l, NULL, block, *bytes);
}

static CUresult go(struct launch *l, CUstream stream, void **args, void **extra)
{
	struct op op = { .kind = OP_LAUNCH };
	int error = launch_check_on(l, stream);

	if (!error)
		error = pack(l, args, extra);
	op.launch = *l;
	if (!error)
		return drv(stream_issue(stream, &op, false));
	op_free(&op);
	return drv(launch_refused(NULL, l, error));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction func, void **args, void **extra)
{
	struct launch l = { 0 };
	int error = drv_ready();

	if (!error)
		error = from_config(&l, c, func);
	return error ? drv(launch_refused(func, &l, error)) : go(&l, c->hStream, args, extra);
}

static CUresult launch(CUfunction func, const unsigned shape[6], unsigned shared, CUstream stream,
	void **args, void **extra, bool cooperative)
{
	struct launch l = { .shared = shared, .cooperative = cooperative };
	int error = drv_ready();

	if (!error)
		error = find(func, &l.func);
	if (error)
		return drv(launch_refused(func, &l, error));
	memcpy(l.grid, shape, sizeof l.grid);
	memcpy(l.block, shape + 3, sizeof l.block);
	return go(&l, stream, args, extra);
}

CUresult cuLaunchKernel(CUfunction func, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared, CUstream stream, void **args, void **extra)
{
	return launch(func, (unsigned[]){ gx, gy, gz, bx, by, bz }, shared, stream, args, extra,
		false);
}

CUresult cuLaunchCooperativeKernel(CUfunction func, unsigned gx, unsigned gy, unsigned gz,
	unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream stream, void **args)
{
	return launch(func, (unsigned[]){ gx, gy, gz, bx, by, bz }, shared, stream, args, NULL,
		true);
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn call, void *user)
{
	struct op op = { .kind = OP_HOST, .host = { .call = call, .user = user } };

	return drv(call ? stream_issue(stream, &op, false) : cudaErrorInvalidValue);
}
