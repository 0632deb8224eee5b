/* drv_module: modules, libraries, functions, launches and tensor maps of the
 * driver API. */
#include "gpu.h"
#include "link.h"

#include <stdlib.h>
#include <string.h>

/* ---- modules and libraries: both are images ---- */

/* The driver loads at once and reports a bad image here. */
static CUresult loaded(int error, struct image *im, void **out)
{
	if (error)
		return drv(error);
	error = image_load(im);
	if (error)
		image_close(im);
	else
		*out = im;
	return drv(error);
}

static CUresult load_data(const void *bytes, void **out)
{
	struct image *im = NULL;
	int error = out ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = image_open(bytes, 0, IMAGE_COPY, &im);
	return loaded(error, im, out);
}

static CUresult load_file(const char *path, void **out)
{
	struct image *im = NULL;
	int error = out ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = image_open_file(path, &im);
	return loaded(error, im, out);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return load_file(path, (void **)module);
}

CUresult cuModuleLoadData(CUmodule *module, const void *bytes)
{
	return load_data(bytes, (void **)module);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *bytes, unsigned n,
	CUjit_option *options, void **values)
{
	return load_data(bytes, (void **)module);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *bytes)
{
	return load_data(bytes, (void **)module);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *bytes, CUjit_option *jit,
	void **jit_values, unsigned njit, CUlibraryOption *options, void **values, unsigned n)
{
	return load_data(bytes, (void **)library);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
	void **jit_values, unsigned njit, CUlibraryOption *options, void **values, unsigned n)
{
	return load_file(path, (void **)library);
}

static CUresult unload(const void *handle)
{
	struct image *im = image_of(handle);

	if (!im)
		return CUDA_ERROR_INVALID_HANDLE;
	image_close(im);
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	return unload(module);
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return unload(library);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = CU_MODULE_LAZY_LOADING;
	return CUDA_SUCCESS;
}

static CUresult get_func(const void *handle, const char *name, void **out)
{
	struct image *im = image_of(handle);

	if (!im)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!name || !out)
		return CUDA_ERROR_INVALID_VALUE;
	return drv(image_func(im, name, (struct func **)out));
}

CUresult cuModuleGetFunction(CUfunction *func, CUmodule module, const char *name)
{
	return get_func(module, name, (void **)func);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	return get_func(library, name, (void **)kernel);
}

CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library)
{
	if (!module || !image_of(library))
		return module ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
	*module = (CUmodule)library;
	return CUDA_SUCCESS;
}

static CUresult count(const void *handle, unsigned *n)
{
	struct image *im = image_of(handle);

	if (!im)
		return CUDA_ERROR_INVALID_HANDLE;
	return drv(n ? image_func_count(im, n) : cudaErrorInvalidValue);
}

CUresult cuModuleGetFunctionCount(unsigned *n, CUmodule module)
{
	return count(module, n);
}

CUresult cuLibraryGetKernelCount(unsigned *n, CUlibrary library)
{
	return count(library, n);
}

static CUresult enumerate(const void *handle, unsigned n, void **out)
{
	struct image *im = image_of(handle);
	int error = 0;

	if (!im)
		return CUDA_ERROR_INVALID_HANDLE;
	for (unsigned k = 0; k < n && !error; k++)
		error = image_func_at(im, k, (struct func **)&out[k]);
	return drv(error);
}

CUresult cuModuleEnumerateFunctions(CUfunction *funcs, unsigned n, CUmodule module)
{
	return enumerate(module, n, (void **)funcs);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned n, CUlibrary library)
{
	return enumerate(library, n, (void **)kernels);
}

static CUresult global(const void *handle, const char *name, CUdeviceptr *at, size_t *bytes)
{
	struct image *im = image_of(handle);

	return drv(im ? image_symbol(im, name, (void **)at, bytes)
		: cudaErrorInvalidResourceHandle);
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
	return global(module, name, at, bytes);
}

CUresult cuLibraryGetGlobal(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
	return global(library, name, at, bytes);
}

CUresult cuLibraryGetManaged(CUdeviceptr *at, size_t *bytes, CUlibrary library, const char *name)
{
	return global(library, name, at, bytes);
}

/* ---- linking: what comes out is PTX, which modules load ---- */

struct link {
	VEC(char *) ptx;
	char *out;
};

CUresult cuLinkCreate_v2(unsigned n, CUjit_option *options, void **values, CUlinkState *out)
{
	struct link *l;
	int error = out ? drv_ready() : cudaErrorInvalidValue;

	if (error)
		return drv(error);
	l = base_alloc(sizeof *l);
	handle_put(l, HANDLE_LINK, l);
	*out = (CUlinkState)l;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
	const char *name, unsigned n, CUjit_option *options, void **values)
{
	struct link *l = handle_get(state, HANDLE_LINK);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX) {
		gpu_remark(REMARK_CALL_UNSUPPORTED, "cuLinkAddData of anything but PTX");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	vec_push(&l->ptx, base_strndup(data, bytes));
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **out, size_t *bytes)
{
	struct link *l = handle_get(state, HANDLE_LINK);
	struct err e = { 0 };

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !l->ptx.n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->out)
		l->out = link_ptx((const char *const *)l->ptx.at, l->ptx.n, &e);
	if (!l->out) {
		gpu_remark(REMARK_BAD_MODULE, "cuLinkComplete: %s", e.text);
		return CUDA_ERROR_INVALID_PTX;
	}
	*out = l->out;
	if (bytes)
		*bytes = strlen(l->out) + 1;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	struct link *l = handle_get(state, HANDLE_LINK);

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	handle_drop(l, HANDLE_LINK);
	for (size_t i = 0; i < l->ptx.n; i++)
		free(l->ptx.at[i]);
	vec_free(&l->ptx);
	free(l->out);
	free(l);
	return CUDA_SUCCESS;
}

/* ---- functions; a CUkernel is the same thing ---- */

/* CU_ERROR for what is no function, as the driver says it. */
static int find(const void *handle, struct func **f)
{
	int error = drv_initialised();

	if (!error)
		error = func_find(handle, f);
	return error == cudaErrorInvalidDeviceFunction ? cudaErrorInvalidResourceHandle : error;
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
	return cuFuncGetAttribute(value, a, (CUfunction)kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute a, int value, CUkernel kernel, CUdevice device)
{
	return cuFuncSetAttribute((CUfunction)kernel, a, value);
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

/* The block size with most resident threads; the largest of equals. */
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
		*grid = blocks * (int)gpu_device()->sm_count;
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

/* extra: a list of tags and values, ended by CU_LAUNCH_PARAM_END. */
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
	int error = launch_check(l);

	if (!error)
		error = pack(l, args, extra);
	op.launch = *l;
	if (!error)
		return drv(stream_issue(stream, &op));
	op_free(&op);
	return drv(error);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction func, void **args, void **extra)
{
	struct launch l = { 0 };
	int error = drv_ready();

	if (!error)
		error = from_config(&l, c, func);
	return error ? drv(error) : go(&l, c->hStream, args, extra);
}

static CUresult launch(CUfunction func, const unsigned shape[6], unsigned shared, CUstream stream,
	void **args, void **extra, bool cooperative)
{
	struct launch l = { .shared = shared, .cooperative = cooperative };
	int error = drv_ready();

	if (!error)
		error = find(func, &l.func);
	if (error)
		return drv(error);
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
	struct op op = { .kind = OP_HOST, .host = { call, user } };

	return drv(call ? stream_issue(stream, &op) : cudaErrorInvalidValue);
}

/* ---- tensor maps ---- */

static CUresult encode(const struct tensormap_args *a, CUtensorMap *map)
{
	struct err e = { 0 };
	int error = map ? gpu_ready() : cudaErrorInvalidValue;

	if (error)
		return drv(error);
	if (consan_tensormap(a, map, &e))
		return CUDA_SUCCESS;
	gpu_remark(REMARK_NOTE, "cuTensorMapEncode%s returned CUDA_ERROR_INVALID_VALUE: %s",
		a->im2col ? "Im2col" : "Tiled", e.text);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *stride, const cuuint32_t *box,
	const cuuint32_t *elem_stride, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill oob)
{
	struct tensormap_args a = { .type = type, .rank = rank, .address = (uintptr_t)address,
		.dim = dim, .stride = stride, .box = box, .elem_stride = elem_stride,
		.interleave = interleave, .swizzle = swizzle, .l2 = l2, .oob = oob };

	return encode(&a, map);
}

CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank,
	void *address, const cuuint64_t *dim, const cuuint64_t *stride, const int *lower,
	const int *upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *elem_stride,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
	CUtensorMapFloatOOBfill oob)
{
	struct tensormap_args a = { .im2col = true, .type = type, .rank = rank,
		.address = (uintptr_t)address, .dim = dim, .stride = stride, .lower = lower,
		.upper = upper, .channels = channels, .pixels = pixels, .elem_stride = elem_stride,
		.interleave = interleave, .swizzle = swizzle, .l2 = l2, .oob = oob };

	return encode(&a, map);
}

CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct err e = { 0 };

	if (!map || !consan_tensormap_address(map, (uintptr_t)address, &e))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
