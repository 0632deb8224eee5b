/* api_ipc: interprocess handles of both APIs. */
#include "internal.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *at)
{
	return rt(ipc_export(at, handle));
}

cudaError_t cudaIpcOpenMemHandle(void **at, cudaIpcMemHandle_t handle, unsigned flags)
{
	return rt(flags & ~(unsigned)cudaIpcMemLazyEnablePeerAccess ? cudaErrorInvalidValue
		: ipc_open(&handle, NULL, at));
}

cudaError_t cudaIpcCloseMemHandle(void *at)
{
	return rt(ipc_close(at));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	return rt(ipc_export_event(event, handle));
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	return rt(ipc_open_event(&handle, (struct cuda_event **)event));
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at)
{
	int error = drv_ready();

	return drv(error ? error : ipc_export((void *)(uintptr_t)at, handle));
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *at, CUipcMemHandle handle, unsigned flags)
{
	int error = drv_ready();

	return drv(error ? error : ipc_open(&handle, NULL, (void **)at));
}

CUresult cuIpcCloseMemHandle(CUdeviceptr at)
{
	return drv(ipc_close((void *)(uintptr_t)at));
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event)
{
	int error = drv_ready();

	return drv(error ? error : ipc_export_event(event, handle));
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	int error = drv_ready();

	return drv(error ? error : ipc_open_event(&handle, (struct cuda_event **)event));
}

/* ---- pools: the descriptor says the device; each pointer has a handle of its own ---- */

static int export_pool(const void *pool, int *fd)
{
	char name[32];

	if (!pool_of(pool) || !fd)
		return cudaErrorInvalidValue;
	snprintf(name, sizeof name, "consan-pool-%d", pool_device(pool_of(pool)));
	*fd = memfd_create(name, 0);
	return *fd < 0 ? cudaErrorMemoryAllocation : 0;
}

static int import_pool(int fd, struct pool **out)
{
	char path[64], name[128];
	ssize_t n;
	int device;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	name[n < 0 ? 0 : n] = '\0';
	if (!out || sscanf(name, "/memfd:consan-pool-%d", &device) != 1)
		return cudaErrorInvalidValue;
	return pool_new(out, device_check(device) ? 0 : device);
}

static int import_pointer(void **at, const void *pool, const void *handle)
{
	int error = pool_of(pool) && handle ? ipc_open(handle, pool_access(pool_of(pool)), at)
		: cudaErrorInvalidValue;

	if (!error)
		handle_put(*at, HANDLE_MEMORY, *at); /* cudaFree() unmaps it */
	return error;
}

cudaError_t cudaMemPoolExportToShareableHandle(void *out, cudaMemPool_t pool,
	enum cudaMemAllocationHandleType type, unsigned flags)
{
	return rt(type != cudaMemHandleTypePosixFileDescriptor ? cudaErrorNotSupported
		: export_pool(pool, out));
}

cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *from,
	enum cudaMemAllocationHandleType type, unsigned flags)
{
	return rt(type != cudaMemHandleTypePosixFileDescriptor ? cudaErrorNotSupported
		: import_pool((int)(intptr_t)from, (struct pool **)pool));
}

cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *out, void *at)
{
	return rt(ipc_export(at, out));
}

cudaError_t cudaMemPoolImportPointer(void **at, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data)
{
	return rt(import_pointer(at, pool, data));
}

CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type,
	unsigned long long flags)
{
	return type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED
		: drv(export_pool(pool, out));
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *from,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	return type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? CUDA_ERROR_NOT_SUPPORTED
		: drv(import_pool((int)(intptr_t)from, (struct pool **)pool));
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr at)
{
	return drv(ipc_export((void *)(uintptr_t)at, out));
}

CUresult cuMemPoolImportPointer(CUdeviceptr *at, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	return drv(import_pointer((void **)at, pool, data));
}
