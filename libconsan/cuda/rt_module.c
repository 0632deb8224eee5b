/* rt_module: registration by the host code that nvcc generates, symbols, and the library
 * calls of the runtime API. */
#include "internal.h"
#include "entry_points.h"

#include <string.h>

/* ---- registration: runs before main() and must not open the device ---- */

/* The handle is a void ** that nvcc's code does not dereference. */
static struct image *registered(void **handle)
{
	return image_of(handle);
}

void **__cudaRegisterFatBinary(void *wrapper)
{
	struct image *im;

	return image_open(wrapper, 0, IMAGE_BORROW, &im) ? NULL : (void **)im;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct image *im = registered(handle);

	if (im)
		image_close(im);
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
	int thread_limit, void *tid, void *bid, void *bdim, void *gdim, int *wsize)
{
	struct image *im = registered(handle);

	if (im)
		image_add_stub(im, host, name);
}

void __cudaRegisterVar(void **handle, char *host, char *address, const char *name,
	int ext, size_t size, int constant, int global)
{
	struct image *im = registered(handle);

	if (im)
		image_add_var(im, host, name, size, NULL);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *address, const char *name,
	int ext, size_t size, int constant, int global)
{
	struct image *im = registered(handle);

	if (im)
		image_add_var(im, host, name, size, host);
}

/* Called on the host's first access to a managed variable. */
char __cudaInitModule(void **handle)
{
	struct image *im = registered(handle);

	return im && !rt(image_load(im));
}

/* ---- symbols ---- */

cudaError_t cudaGetSymbolAddress(void **at, const void *symbol)
{
	return rt(at ? var_find(symbol, at, NULL) : cudaErrorInvalidValue);
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
	return rt(bytes ? var_find(symbol, NULL, bytes) : cudaErrorInvalidValue);
}

int symbol_place(const void *symbol, size_t count, size_t offset, char **at)
{
	size_t bytes;
	void *base;
	int error = var_find(symbol, &base, &bytes);

	if (error)
		return error;
	if (offset > bytes || count > bytes - offset)
		return cudaErrorInvalidValue;
	*at = (char *)base + offset;
	return 0;
}

static int copy_symbol(const struct copy *c, cudaStream_t stream, bool blocking)
{
	struct op op = { .kind = OP_COPY, .copy = *c };
	int error = copy_check(c);

	return error ? error : stream_issue(stream, &op, blocking);
}

static cudaError_t to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t stream, bool blocking)
{
	struct copy c;
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	if (error)
		return rt(error);
	c = copy_line(at, src, count, kind);
	return rt(copy_symbol(&c, stream, blocking));
}

static cudaError_t from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind, cudaStream_t stream, bool blocking)
{
	struct copy c;
	char *at;
	int error = symbol_place(symbol, count, offset, &at);

	if (error)
		return rt(error);
	c = copy_line(dst, at, count, kind);
	return rt(copy_symbol(&c, stream, blocking));
}

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return to_symbol(symbol, src, count, offset, kind, stream, false);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *src, size_t count,
	size_t offset, enum cudaMemcpyKind kind)
{
	return to_symbol(symbol, src, count, offset, kind, NULL, true);
}

cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return from_symbol(dst, symbol, count, offset, kind, stream, false);
}

cudaError_t cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t count,
	size_t offset, enum cudaMemcpyKind kind)
{
	return from_symbol(dst, symbol, count, offset, kind, NULL, true);
}

/* ---- libraries ---- */

static int loaded(int error, struct image *im, void **out)
{
	if (error)
		return error;
	error = image_load(im);
	if (error)
		image_close(im);
	else
		*out = im;
	return error;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
	enum cudaJitOption *jit, void **jit_values, unsigned njit,
	enum cudaLibraryOption *options, void **values, unsigned n)
{
	struct image *im = NULL;
	int error;

	if (!library)
		return rt(cudaErrorInvalidValue);
	error = image_open(code, 0, IMAGE_COPY, &im);
	return rt(loaded(error, im, (void **)library));
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
	enum cudaJitOption *jit, void **jit_values, unsigned njit,
	enum cudaLibraryOption *options, void **values, unsigned n)
{
	struct image *im = NULL;
	int error;

	if (!library)
		return rt(cudaErrorInvalidValue);
	error = image_open_file(path, &im);
	return rt(loaded(error, im, (void **)library));
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	struct image *im = image_of(library);

	if (!im)
		return rt(cudaErrorInvalidResourceHandle);
	image_close(im);
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	struct image *im = image_of(library);
	int error = im ? 0 : cudaErrorInvalidResourceHandle;

	if (!kernel || !name)
		return rt(cudaErrorInvalidValue);
	if (!error)
		error = image_func(im, name, (struct func **)kernel);
	return rt(error ? lookup_failed(name, NULL, error) : 0);
}

cudaError_t cudaLibraryGetGlobal(void **at, size_t *bytes, cudaLibrary_t library, const char *name)
{
	struct image *im = image_of(library);

	return rt(im ? image_symbol(im, name, at, bytes) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaLibraryGetManaged(void **at, size_t *bytes, cudaLibrary_t library, const char *name)
{
	return cudaLibraryGetGlobal(at, bytes, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned *count, cudaLibrary_t library)
{
	struct image *im = image_of(library);

	if (!im)
		return rt(cudaErrorInvalidResourceHandle);
	return rt(count ? image_func_count(im, count) : cudaErrorInvalidValue);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned n, cudaLibrary_t library)
{
	struct image *im = image_of(library);
	int error = 0;
	unsigned k;

	if (!im)
		return rt(cudaErrorInvalidResourceHandle);
	for (k = 0; k < n && !error; k++)
		error = image_func_at(im, k, (struct func **)&kernels[k]);
	return rt(error);
}

/* ---- entry points ---- */

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function,
	unsigned version, unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	if (!symbol || !function)
		return rt(cudaErrorInvalidValue);
	*function = entry_point_find(symbol, (int)version,
		flags & cudaEnablePerThreadDefaultStream
		|| (stream_calls_per_thread && !(flags & cudaEnableLegacyStream)));
	if (status)
		*status = *function ? cudaDriverEntryPointSuccess
			: cudaDriverEntryPointSymbolNotFound;
	return *function || status ? cudaSuccess : rt(cudaErrorSymbolNotFound);
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, DEVICE_CUDA_VERSION, flags, status);
}

cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
	if (table)
		*table = NULL;
	remark_unsupported("cudaGetExportTable");
	return rt(cudaErrorSymbolNotFound);
}
