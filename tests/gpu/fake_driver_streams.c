/* fake_driver_streams: events of the fake driver, which stand for kernels; copies and fills, which do
 * nothing. */
#include "fake_driver.h"

#include <stdlib.h>
#include <unistd.h>

struct CUevent_st { uint64_t behind; }; /* the kernels before it */

static uint64_t *behind(CUstream s)
{
	return fake_behind((uintptr_t)s < 16 ? NULL : s);
}

API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	AROUND(cuMemcpy, CUDA_SUCCESS, to, from, bytes);
}

API CUresult cuMemcpyHtoD(CUdeviceptr to, const void *from, size_t bytes)
{
	AROUND(cuMemcpyHtoD_v2, CUDA_SUCCESS, to, from, bytes);
}

API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream s)
{
	AROUND(cuMemcpyDtoDAsync_v2, CUDA_SUCCESS, to, from, bytes, s);
}

API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext c, CUdeviceptr from, CUcontext d, size_t bytes,
	CUstream s)
{
	AROUND(cuMemcpyPeerAsync, CUDA_SUCCESS, to, c, from, d, bytes, s);
}

API CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t n, CUmemcpyAttributes *attrs,
	size_t *first, size_t nattrs, CUstream s)
{
	AROUND(cuMemcpyBatchAsync_v2, CUDA_SUCCESS, to, from, bytes, n, attrs, first, nattrs, s);
}

API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *p, CUstream s)
{
	AROUND(cuMemcpy2DAsync_v2, CUDA_SUCCESS, p, s);
}

API CUresult cuMemsetD32Async(CUdeviceptr at, unsigned value, size_t n, CUstream s)
{
	AROUND(cuMemsetD32Async, CUDA_SUCCESS, at, value, n, s);
}

API CUresult cuStreamWriteValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
	AROUND(cuStreamWriteValue32_v2, CUDA_SUCCESS, s, at, value, flags);
}

API CUresult cuStreamWaitValue32_v2(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned flags)
{
	AROUND(cuStreamWaitValue32_v2, CUDA_SUCCESS, s, at, value, flags);
}

/* ---- events ---- */

static CUresult made(CUevent *e)
{
	*e = calloc(1, sizeof **e);
	return CUDA_SUCCESS;
}

API CUresult cuEventCreate(CUevent *e, unsigned flags)
{
	AROUND(cuEventCreate, made(a.phEvent), e, flags);
}

API CUresult cuEventDestroy(CUevent e)
{
	AROUND(cuEventDestroy_v2, (free(a.hEvent), CUDA_SUCCESS), e);
}

API CUresult cuEventRecord(CUevent e, CUstream s)
{
	AROUND(cuEventRecord, (a.hEvent->behind = *behind(a.hStream), CUDA_SUCCESS), e, s);
}

static CUresult waited(const struct CUevent_st *e)
{
	while (!fake_over(e->behind))
		usleep(100);
	return CUDA_SUCCESS;
}

API CUresult cuEventSynchronize(CUevent e)
{
	AROUND(cuEventSynchronize, waited(a.hEvent), e);
}

API CUresult cuEventQuery(CUevent e)
{
	AROUND(cuEventQuery, fake_over(a.hEvent->behind) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY, e);
}

API CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	AROUND(cuStreamWaitEvent, (*behind(a.hStream) |= a.hEvent->behind, CUDA_SUCCESS), s, e, flags);
}

API CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	AROUND(cuStreamEndCapture, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, s, g);
}
