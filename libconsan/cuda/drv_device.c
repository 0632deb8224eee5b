/* drv_device: initialization, devices, contexts and entry points of the driver API. All
 * contexts share one device and its memory. */
#include "internal.h"
#include "entry_points.h"

#include <stdlib.h>
#include <dlfcn.h>
#include <string.h>

struct context {
	unsigned flags;
	unsigned long long id;
};
static struct context primary;
static _Atomic unsigned primary_users;
static _Atomic bool initialised;
static _Atomic unsigned long long ids = 1;

enum { STACK_MAX = 64 };
static _Thread_local struct { struct context *at[STACK_MAX]; unsigned n; } stack;

/* ---- initialization and the current context ---- */

static struct context *current(void)
{
	if (stack.n)
		return stack.at[stack.n - 1];
	return rt_used() ? &primary : NULL;
}

static struct context *context_of(CUcontext handle)
{
	return (struct context *)handle == &primary ? &primary
		: handle_get(handle, HANDLE_CONTEXT);
}

int drv_initialised(void)
{
	if (!initialised && !rt_used())
		return cudaErrorInitializationError;
	return 0;
}

int drv_ready(void)
{
	int error = drv_initialised();

	if (!error && !current())
		error = cudaErrorDeviceUninitialized;
	return error ? error : device_ready();
}

static int check_device(CUdevice device, const void *out)
{
	int error = drv_initialised();

	if (!error && device)
		error = cudaErrorInvalidDevice;
	if (!error && !out)
		error = cudaErrorInvalidValue;
	return error ? error : device_ready();
}

CUresult cuInit(unsigned flags)
{
	int error = flags ? cudaErrorInvalidValue : device_ready();

	if (!error)
		initialised = true;
	return drv(error);
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = DEVICE_CUDA_VERSION;
	return CUDA_SUCCESS;
}

/* ---- devices ---- */

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	int error = check_device(ordinal, device);

	if (!error)
		*device = 0;
	return drv(error);
}

CUresult cuDeviceGetCount(int *count)
{
	int error = check_device(0, count);

	if (!error)
		*count = 1;
	return drv(error);
}

CUresult cuDeviceGetName(char *name, int n, CUdevice device)
{
	int error = check_device(device, name);

	if (!error)
		device_name(name, n > 0 ? (size_t)n : 0);
	return drv(error);
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
	int error = check_device(device, uuid);

	if (!error)
		memcpy(uuid, "consan emulated", sizeof *uuid);
	return drv(error);
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
	return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	int error = check_device(device, bytes);
	size_t free_bytes;

	if (!error)
		mem_info(&free_bytes, bytes);
	return drv(error);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	int error = check_device(device, value);

	return drv(error ? error : device_attribute((int)attribute, value));
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
	int error = check_device(device, major && minor ? major : NULL);

	if (!error) {
		*major = (int)device_info()->sm / 10;
		*minor = (int)device_info()->sm % 10;
	}
	return drv(error);
}

CUresult cuDeviceGetPCIBusId(char *id, int n, CUdevice device)
{
	int error = check_device(device, n >= 13 ? id : NULL);

	if (!error)
		memcpy(id, DEVICE_PCI_ID, sizeof DEVICE_PCI_ID);
	return drv(error);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	int error = id && !strcmp(id, DEVICE_PCI_ID) ? check_device(0, device) : cudaErrorInvalidValue;

	if (!error)
		*device = 0;
	return drv(error);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	int error = check_device(device, can);

	if (!error)
		*can = 0;
	return drv(error);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	int error = check_device(device, pool);

	if (!error)
		*pool = (CUmemoryPool)pool_default();
	return drv(error);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	return cuDeviceGetDefaultMemPool(pool, device);
}

/* ---- contexts ---- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	int error = check_device(device, context);

	if (!error) {
		primary_users++;
		*context = (CUcontext)&primary;
	}
	return drv(error);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	int error = check_device(device, &device);

	if (!error && !primary_users)
		error = cudaErrorDeviceUninitialized;
	if (!error)
		primary_users--;
	return drv(error);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	device_reset();
	return drv(check_device(device, &device));
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
	int error = check_device(device, &device);

	if (!error)
		primary.flags = flags;
	return drv(error);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	int error = check_device(device, flags && active ? flags : NULL);

	if (!error) {
		*flags = primary.flags;
		*active = primary_users || rt_used();
	}
	return drv(error);
}

static int push(struct context *c)
{
	if (!c)
		return cudaErrorDeviceUninitialized;
	if (stack.n == STACK_MAX)
		return cudaErrorInvalidValue;
	stack.at[stack.n++] = c;
	return 0;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device)
{
	int error = check_device(device, context);
	struct context *c;

	if (error)
		return drv(error);
	c = base_alloc(sizeof *c);
	*c = (struct context){ .flags = flags, .id = ++ids };
	handle_put(c, HANDLE_CONTEXT, c);
	*context = (CUcontext)c;
	return drv(push(c));
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
	struct context *c = handle_get(context, HANDLE_CONTEXT);

	if (!c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (current() == c)
		stack.n--;
	handle_drop(c, HANDLE_CONTEXT);
	free(c);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
	return cuCtxDestroy_v2(context);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
	int error = drv_initialised();

	return drv(error ? error : push(context_of(context)));
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	int error = drv_initialised();

	if (!error && !stack.n)
		error = cudaErrorDeviceUninitialized;
	if (!error && context)
		*context = (CUcontext)stack.at[stack.n - 1];
	if (!error)
		stack.n--;
	return drv(error);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	struct context *c = context ? context_of(context) : NULL;
	int error = drv_initialised();

	if (error)
		return drv(error);
	if (context && !c)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (stack.n)
		stack.n--;
	return c ? drv(push(c)) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	int error = drv_initialised();

	if (error || !context)
		return drv(error ? error : cudaErrorInvalidValue);
	*context = (CUcontext)current();
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	int error = drv_ready();

	if (error || !device)
		return drv(error ? error : cudaErrorInvalidValue);
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext context)
{
	if (!device || !context_of(context))
		return device ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
	*device = 0;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags)
{
	int error = drv_ready();

	if (!error)
		current()->flags = flags;
	return drv(error);
}

CUresult cuCtxGetFlags(unsigned *flags)
{
	int error = drv_ready();

	if (error || !flags)
		return drv(error ? error : cudaErrorInvalidValue);
	*flags = current()->flags;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long *id)
{
	struct context *c = context ? context_of(context) : current();

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
	const int error = drv_ready();

	stream_host_waited();
	if (!error)
		hb_device_waited();
	return drv(error);
}

CUresult cuCtxSynchronize_v2(CUcontext context)
{
	stream_host_waited();
	if (!device_ready())
		hb_device_waited();
	return drv(context_of(context) ? device_ready() : cudaErrorDeviceUninitialized);
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

CUresult cuProfilerStart(void)
{
	return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
	return CUDA_SUCCESS;
}

/* ---- entry points ---- */

CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	if (!symbol || !function)
		return CUDA_ERROR_INVALID_VALUE;
	*function = entry_point_find(symbol, version,
		flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	if (status)
		*status = *function ? CU_GET_PROC_ADDRESS_SUCCESS
			: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}

/* The tables that a CUDA runtime asks for first. */
static bool is_runtime_table(const CUuuid *id)
{
	static const unsigned char known[][sizeof id->bytes] = {
		{ 0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9 },
		{ 0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9 },
	};

	for (size_t k = 0; k < ARRAY_SIZE(known); k++)
		if (!memcmp(id->bytes, known[k], sizeof known[k]))
			return true;
	return false;
}

/* Private tables, by which NVIDIA's libraries reach into the driver. A runtime without symbols that was
 * not found (redirect.c) fails without them; NVRTC, which asks for another one, works. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	Dl_info caller;

	if (table)
		*table = NULL;
	if (id && is_runtime_table(id))
		static_runtime_used(dladdr(__builtin_return_address(0), &caller) && caller.dli_fname
			? caller.dli_fname : "");
	return CUDA_ERROR_NOT_FOUND;
}
