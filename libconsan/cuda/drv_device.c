/* drv_device: initialization, devices and entry points of the driver API. */
#include "internal.h"
#include "entry_points.h"

#include <dlfcn.h>
#include <string.h>

static _Atomic bool initialised;

void drv_initialise(void)
{
	initialised = true;
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

	if (!error && !cuda_context_now())
		error = cudaErrorDeviceUninitialized;
	return error ? error : device_ready();
}

static int check_device(CUdevice device, const void *out)
{
	int error = drv_initialised();

	if (!error)
		error = device_check(device);
	return error ? error : out ? 0 : cudaErrorInvalidValue;
}

CUresult cuInit(unsigned flags)
{
	int error = flags ? cudaErrorInvalidValue : device_ready();

	if (!error)
		drv_initialise();
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
		*device = ordinal;
	return drv(error);
}

CUresult cuDeviceGetCount(int *count)
{
	int error = check_device(0, count);

	if (!error)
		*count = device_count();
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
		device_uuid(device, uuid);
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

	return drv(error ? error : device_attribute(device, (int)attribute, value));
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
	int error = check_device(device, n >= DEVICE_PCI_ID_BYTES ? id : NULL);

	if (!error)
		device_pci_id(device, id);
	return drv(error);
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
	int error = check_device(0, device);

	return drv(error ? error : device_by_pci_id(id, device));
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
	int error = check_device(device, can);

	return drv(error ? error : peer_can(device, peer, can));
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute a, CUdevice device, CUdevice peer)
{
	int error = check_device(device, value);

	return drv(error ? error : peer_attribute(value, (int)a, device, peer));
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device)
{
	int error = check_device(device, pool);

	if (!error)
		*pool = (CUmemoryPool)pool_default(device);
	return drv(error);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device)
{
	int error = check_device(device, pool);

	if (!error)
		*pool = (CUmemoryPool)pool_now(device);
	return drv(error);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
	int error = check_device(device, pool_of(pool));

	if (!error)
		pool_use(device, pool_of(pool));
	return drv(error);
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
