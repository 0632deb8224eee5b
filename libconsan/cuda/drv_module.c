/* drv_module: modules, libraries and linking of the driver API. Both CUmodule and CUlibrary
 * are images. */
#include "internal.h"
#include "libconsan/origin/origin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- modules and libraries ---- */

/* Loads the image at once, because the driver reports a bad image here. */
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

/* A CUmodule is of the current context's device, a CUlibrary of all devices. */
enum { OF_ALL_DEVICES, OF_ONE_DEVICE };

static CUresult load_data(const void *bytes, void **out, int of)
{
	struct image *im = NULL;
	int error = out ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = image_open(bytes, 0, IMAGE_COPY, &im);
	if (!error && of == OF_ONE_DEVICE)
		image_bind(im, device_now());
	return loaded(error, im, out);
}

static CUresult load_file(const char *path, void **out, int of)
{
	struct image *im = NULL;
	int error = out ? drv_initialised() : cudaErrorInvalidValue;

	if (!error)
		error = image_open_file(path, &im);
	if (!error && of == OF_ONE_DEVICE)
		image_bind(im, device_now());
	return loaded(error, im, out);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return load_file(path, (void **)module, OF_ONE_DEVICE);
}

CUresult cuModuleLoadData(CUmodule *module, const void *bytes)
{
	return load_data(bytes, (void **)module, OF_ONE_DEVICE);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *bytes, unsigned n,
	CUjit_option *options, void **values)
{
	return load_data(bytes, (void **)module, OF_ONE_DEVICE);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *bytes)
{
	return load_data(bytes, (void **)module, OF_ONE_DEVICE);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *bytes, CUjit_option *jit,
	void **jit_values, unsigned njit, CUlibraryOption *options, void **values, unsigned n)
{
	return load_data(bytes, (void **)library, OF_ALL_DEVICES);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit,
	void **jit_values, unsigned njit, CUlibraryOption *options, void **values, unsigned n)
{
	return load_file(path, (void **)library, OF_ALL_DEVICES);
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
	int error = im ? 0 : cudaErrorInvalidResourceHandle;

	if (!name || !out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!error)
		error = image_func(im, name, (struct func **)out);
	return drv(error ? lookup_failed(name, NULL, error) : 0);
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

/* ---- linking: the output is PTX, which cuModuleLoadData() accepts ---- */

struct link {
	struct parts parts;
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

static CUresult added(bool good, const char *call)
{
	if (good)
		return CUDA_SUCCESS;
	remark(REMARK_NOT_LOADED, "%s: an input without PTX", call);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes,
	const char *name, unsigned n, CUjit_option *options, void **values)
{
	struct link *l = handle_get(state, HANDLE_LINK);
	const struct consan_device *d = device_info();

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_JIT_INPUT_PTX)
		return added(parts_add(&l->parts, data, bytes, d->sm, d->suffix), "cuLinkAddData");
	parts_add_ptx(&l->parts, data, bytes);
	return CUDA_SUCCESS;
}

CUresult cuLinkAddFile_v2(CUlinkState state, CUjitInputType type, const char *path, unsigned n,
	CUjit_option *options, void **values)
{
	struct link *l = handle_get(state, HANDLE_LINK);
	const struct consan_device *d = device_info();

	if (!l || !path)
		return l ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
	if (access(path, R_OK))
		return CUDA_ERROR_FILE_NOT_FOUND;
	return added(parts_add_file(&l->parts, path, d->sm, d->suffix), "cuLinkAddFile");
}

CUresult cuLinkComplete(CUlinkState state, void **out, size_t *bytes)
{
	struct link *l = handle_get(state, HANDLE_LINK);
	struct consan_err e = { 0 };

	if (!l)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!out || !l->parts.ptx.n)
		return CUDA_ERROR_INVALID_VALUE;
	if (!l->out)
		l->out = parts_join(&l->parts, &e);
	if (!l->out) {
		remark(REMARK_NOT_LOADED, "cuLinkComplete: %s", e.code ? e.text : "an input without PTX");
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
	parts_free(&l->parts);
	free(l->out);
	free(l);
	return CUDA_SUCCESS;
}
