/* error: names of error codes in both APIs, and the last error of each thread. */
#include "internal.h"

static const struct error_row rows[] = {
#define ERROR(code, rt, drv, text) { code, rt, drv, text },
#include "error.def"
#undef ERROR
};

static _Thread_local int last;
static _Atomic bool used;

const struct error_row *error_find(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

cudaError_t rt(int error)
{
	used = true;
	api_returns(error);
	/* a query that returns "not ready" is not a failure */
	if (error && error != cudaErrorNotReady)
		last = error;
	return (cudaError_t)error;
}

bool rt_used(void)
{
	return used;
}

CUresult drv(int error)
{
	const struct error_row *row = error_find(error);

	api_returns(error);
	if (row && row->drv)
		return (CUresult)error;
	/* errors that only the runtime API distinguishes */
	switch (error) {
	case cudaErrorInvalidDeviceFunction:
	case cudaErrorInvalidTexture:
		return CUDA_ERROR_INVALID_HANDLE;
	case cudaErrorInvalidSymbol:
		return CUDA_ERROR_NOT_FOUND;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

cudaError_t cudaGetLastError(void)
{
	int error = last;

	api_asked();
	last = 0;
	return (cudaError_t)error;
}

cudaError_t cudaPeekAtLastError(void)
{
	api_asked();
	return (cudaError_t)last;
}

const char *cudaGetErrorName(cudaError_t error)
{
	const struct error_row *row = error_find(error);

	return row && row->rt ? row->rt : "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	const struct error_row *row = error_find(error);

	return row && row->rt ? row->text : "unrecognized error code";
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
	const struct error_row *row = error_find(error);

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = row ? row->drv : NULL;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	const struct error_row *row = error_find(error);

	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	*text = row && row->drv ? row->text : NULL;
	return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
