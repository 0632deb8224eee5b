/* fake_driver_streams: streams, events, copies and fills of the fake driver, which do nothing. */
#include "fake_driver.h"

#include <stdlib.h>

struct CUevent_st { CUstream stream; };

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
	AROUND(cuEventRecord, (a.hEvent->stream = a.hStream, CUDA_SUCCESS), e, s);
}

API CUresult cuEventSynchronize(CUevent e)
{
	AROUND(cuEventSynchronize, (still_recording((uintptr_t)a.hEvent->stream < 16 ? NULL : a.hEvent->stream,
		true), CUDA_SUCCESS), e);
}

API CUresult cuEventQuery(CUevent e)
{
	AROUND(cuEventQuery, still_recording((uintptr_t)a.hEvent->stream < 16 ? NULL : a.hEvent->stream, false)
		? CUDA_ERROR_NOT_READY : CUDA_SUCCESS, e);
}

API CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags)
{
	AROUND(cuStreamWaitEvent, CUDA_SUCCESS, s, e, flags);
}

API CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	AROUND(cuStreamEndCapture, CUDA_ERROR_STREAM_CAPTURE_UNJOINED, s, g);
}
