/* logs: the driver's log of errors. It stays empty: consan's own report says why a call failed. */
#include "internal.h"

#include <string.h>

static int watch(const void *call, void **handle)
{
	static char registered;

	if (!call)
		return cudaErrorInvalidValue;
	if (handle)
		*handle = &registered;
	return 0;
}

static int empty(unsigned *iterator)
{
	if (!iterator)
		return cudaErrorInvalidValue;
	*iterator = 0;
	return 0;
}

static int to_memory(char *buffer, size_t *size)
{
	if (!buffer || !size || !*size)
		return cudaErrorInvalidValue;
	*buffer = 0;
	*size = 0;
	return 0;
}

CUresult cuLogsRegisterCallback(CUlogsCallback call, void *user, CUlogsCallbackHandle *handle)
{
	return drv(watch((const void *)call, (void **)handle));
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle)
{
	return CUDA_SUCCESS;
}

CUresult cuLogsCurrent(CUlogIterator *iterator, unsigned flags)
{
	return drv(empty(iterator));
}

CUresult cuLogsDumpToMemory(CUlogIterator *iterator, char *buffer, size_t *size, unsigned flags)
{
	return drv(to_memory(buffer, size));
}

cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t call, void *user, cudaLogsCallbackHandle *handle)
{
	return rt(watch((const void *)call, (void **)handle));
}

cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle handle)
{
	return rt(0);
}

cudaError_t cudaLogsCurrent(cudaLogIterator *iterator, unsigned flags)
{
	return rt(empty(iterator));
}

cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size, unsigned flags)
{
	return rt(to_memory(buffer, size));
}
