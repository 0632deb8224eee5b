/* drv_context: contexts of the driver API. The contexts of one device share its memory. */
#include "internal.h"

static int check_device(CUdevice device, const void *out)
{
	int error = drv_initialised();

	if (!error)
		error = device_check(device);
	return error ? error : out ? 0 : cudaErrorInvalidValue;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int error = check_device(device, context);

	if (!error) {
		++*cuda_context_users(device);
		*context = (CUcontext)cuda_context_primary(device);
	}
	return drv(error);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int error = check_device(device, &device);

	if (!error && !*cuda_context_users(device))
		error = cudaErrorDeviceUninitialized;
	if (!error)
		--*cuda_context_users(device);
	return drv(error);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	int error = check_device(device, &device);

	if (!error) {
		stream_sync_all(device);
		device_reset(device);
	}
	return drv(error);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	int error = check_device(device, &device);

	if (!error)
		cuda_context_primary(device)->flags = flags;
	return drv(error);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	int error = check_device(device, flags && active ? flags : NULL);

	if (!error) {
		*flags = cuda_context_primary(device)->flags;
		*active = *cuda_context_users(device) || (rt_used() && (!device || device == device_now()));
	}
	return drv(error);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
	int error = check_device(device, context);
	struct context *c;

	if (error)
		return drv(error);
	c = cuda_context_new(device, flags);
	*context = (CUcontext)c;
	return drv(cuda_context_push(c));
}

CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *affinity, int n,
	unsigned flags, CUdevice device)
{
	return n ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned flags,
	CUdevice device)
{
	return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate(CUcontext *context, unsigned flags, CUdevice device)
{
	return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
	return drv(cuda_context_free(context));
}

CUresult cuCtxDestroy(CUcontext context)
{
	return cuCtxDestroy_v2(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	int error = drv_initialised();

	return drv(error ? error : cuda_context_push(cuda_context_of(context)));
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	int error = drv_initialised();

	return drv(error ? error : cuda_context_pop((struct context **)context));
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	struct context *c = context ? cuda_context_of(context) : NULL;
	int error = drv_initialised();

	if (error)
		return drv(error);
	if (context && !c)
		return CUDA_ERROR_INVALID_CONTEXT;
	cuda_context_set(c);
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	int error = drv_initialised();

	if (error || !context)
		return drv(error ? error : cudaErrorInvalidValue);
	*context = (CUcontext)cuda_context_now();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	int error = drv_ready();

	if (error || !device)
		return drv(error ? error : cudaErrorInvalidValue);
	*device = device_now();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
	struct context *c = context ? cuda_context_of(context) : cuda_context_now();

	if (!device || !c)
		return device ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*device = c->device;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	int error = drv_ready();

	if (!error)
		cuda_context_now()->flags = flags;
	return drv(error);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	int error = drv_ready();

	if (error || !flags)
		return drv(error ? error : cudaErrorInvalidValue);
	*flags = cuda_context_now()->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	struct context *c = context ? cuda_context_of(context) : cuda_context_now();

	if (!c || !id)
		return c ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*id = c->id;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DEVICE_CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	int error = drv_ready();

	return drv(error ? error : stream_sync_all(device_now()));
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	struct context *c = cuda_context_of(context);

	return drv(c ? stream_sync_all(c->device) : cudaErrorDeviceUninitialized);
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	return drv(device_limit((int)limit, NULL, &value));
}

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	return drv(device_limit((int)limit, value, NULL));
}

CUresult cuCtxGetCacheConfig(CUfunc_cache *config)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_FUNC_CACHE_PREFER_NONE;
	return drv(drv_ready());
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config)
{
	return drv(drv_ready());
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig *config)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return drv(drv_ready());
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config)
{
	return drv(drv_ready());
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = DEVICE_PRIORITY;
	return drv(drv_ready());
}

CUresult cuCtxResetPersistingL2Cache(void)
{
	return drv(drv_ready());
}

/* ---- peers ---- */

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	struct context *c = cuda_context_of(peer);
	int error = drv_ready();

	if (!error && (!c || flags))
		error = c ? cudaErrorInvalidValue : cudaErrorDeviceUninitialized;
	return drv(error ? error : peer_access(c->device, true));
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct context *c = cuda_context_of(peer);
	int error = drv_ready();

	return drv(error ? error : !c ? cudaErrorDeviceUninitialized : peer_access(c->device, false));
}
