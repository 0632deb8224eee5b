/* api_batch: batches of hints about managed memory, which have no effect, as it does not move, and the
 * pools of a location, of both APIs. */
#include "internal.h"

static int check_all(void *const *at, const size_t *bytes, size_t n, const void *stream)
{
	int error = device_ready();

	if (!error && (!at || !bytes || !n))
		error = cudaErrorInvalidValue;
	if (!error && !stream_of(stream))
		error = cudaErrorInvalidResourceHandle;
	for (size_t i = 0; i < n && !error; i++)
		error = mem_check(at[i], bytes[i]);
	return error;
}

cudaError_t cudaMemPrefetchBatchAsync(void **at, size_t *bytes, size_t n, struct cudaMemLocation *where,
	size_t *index, size_t nwhere, unsigned long long flags, cudaStream_t stream)
{
	return rt(where && index && nwhere ? check_all(at, bytes, n, stream) : cudaErrorInvalidValue);
}

cudaError_t cudaMemDiscardBatchAsync(void **at, size_t *bytes, size_t n, unsigned long long flags,
	cudaStream_t stream)
{
	return rt(check_all(at, bytes, n, stream));
}

cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **at, size_t *bytes, size_t n,
	struct cudaMemLocation *where, size_t *index, size_t nwhere, unsigned long long flags,
	cudaStream_t stream)
{
	return cudaMemPrefetchBatchAsync(at, bytes, n, where, index, nwhere, flags, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr *at, size_t *bytes, size_t n, CUmemLocation *where,
	size_t *index, size_t nwhere, unsigned long long flags, CUstream stream)
{
	return drv(where && index && nwhere ? check_all((void **)at, bytes, n, stream)
		: cudaErrorInvalidValue);
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr *at, size_t *bytes, size_t n, unsigned long long flags,
	CUstream stream)
{
	return drv(check_all((void **)at, bytes, n, stream));
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *at, size_t *bytes, size_t n,
	CUmemLocation *where, size_t *index, size_t nwhere, unsigned long long flags, CUstream stream)
{
	return cuMemPrefetchBatchAsync(at, bytes, n, where, index, nwhere, flags, stream);
}

/* ---- the pools of a location: only devices have some ---- */

static int check_location(const struct cudaMemLocation *where, int type, const void *out)
{
	if (!where || !out)
		return cudaErrorInvalidValue;
	if (where->type != cudaMemLocationTypeDevice || type != cudaMemAllocationTypePinned)
		return cudaErrorNotSupported;
	return device_check(where->id);
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where,
	enum cudaMemAllocationType type)
{
	int error = check_location(where, (int)type, pool);

	if (!error)
		*pool = (cudaMemPool_t)pool_default(where->id);
	return rt(error);
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *where,
	enum cudaMemAllocationType type)
{
	int error = check_location(where, (int)type, pool);

	if (!error)
		*pool = (cudaMemPool_t)pool_now(where->id);
	return rt(error);
}

cudaError_t cudaMemSetMemPool(struct cudaMemLocation *where, enum cudaMemAllocationType type,
	cudaMemPool_t pool)
{
	int error = check_location(where, (int)type, pool_of(pool));

	if (!error)
		pool_use(where->id, pool_of(pool));
	return rt(error);
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	int error = check_location((struct cudaMemLocation *)where, (int)type, pool);

	if (!error)
		*pool = (CUmemoryPool)pool_default(where->id);
	return drv(error);
}

CUresult cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
	int error = check_location((struct cudaMemLocation *)where, (int)type, pool);

	if (!error)
		*pool = (CUmemoryPool)pool_now(where->id);
	return drv(error);
}

CUresult cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
	int error = check_location((struct cudaMemLocation *)where, (int)type, pool_of(pool));

	if (!error)
		pool_use(where->id, pool_of(pool));
	return drv(error);
}
