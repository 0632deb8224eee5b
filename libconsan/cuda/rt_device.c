/* rt_device: device queries, limits and versions of the runtime API. There is
 * one device, number 0 (device.c). */
#include "internal.h"

#include <string.h>

#define ARRAY_DIM_3(array, a, b, c) ((array)[0] = (a), (array)[1] = (b), (array)[2] = (c))

static int attribute_of(int attribute)
{
	int value = 0;

	device_attribute(attribute, &value);
	return value;
}

static cudaError_t check_device(int device)
{
	int error = device_ready();

	return rt(error ? error : device ? cudaErrorInvalidDevice : 0);
}

static size_t total_memory(void)
{
	size_t free_bytes, total;

	mem_info(&free_bytes, &total);
	return total;
}

/* struct cudaDeviceProp of CUDA 12. */
struct prop12 {
#define PROP(type, name, dimensions, value) type name dimensions;
#define PROP12(type, name, dimensions, value) type name dimensions;
#include "prop.def"
#undef PROP
#undef PROP12
};

#define ZERO
#define A(attribute) = attribute_of(CU_DEVICE_ATTRIBUTE_##attribute)
#define TOTAL = total_memory()
#define DIMENSIONS(p) \
	device_name((p)->name, sizeof (p)->name); \
	memcpy(&(p)->uuid, "consan emulated", sizeof (p)->uuid); \
	ARRAY_DIM_3((p)->maxThreadsDim, attribute_of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), \
		attribute_of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), \
		attribute_of(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)); \
	ARRAY_DIM_3((p)->maxGridSize, attribute_of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), \
		attribute_of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), \
		attribute_of(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z))
#define SET_(p, name, ...) SET__(p, name, __VA_ARGS__)
#define SET__(p, name, value, ...) (void)((p)->name value);

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	cudaError_t error = check_device(device);

	if (error)
		return error;
	if (!p)
		return rt(cudaErrorInvalidValue);
	memset(p, 0, sizeof *p);
#define PROP(type, name, dimensions, value) SET_(p, name, value, )
#define PROP12(type, name, dimensions, value)
#include "prop.def"
#undef PROP
#undef PROP12
	DIMENSIONS(p);
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties_v2(void *to, int device)
{
	cudaError_t error = check_device(device);
	struct prop12 *p = to;

	if (error)
		return error;
	if (!p)
		return rt(cudaErrorInvalidValue);
	memset(p, 0, sizeof *p);
#define PROP(type, name, dimensions, value) SET_(p, name, value, )
#define PROP12(type, name, dimensions, value) SET_(p, name, value, )
#include "prop.def"
#undef PROP
#undef PROP12
	DIMENSIONS(p);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	cudaError_t error = check_device(device);

	return error ? error : rt(device_attribute((int)attribute, value));
}

cudaError_t cudaGetDeviceCount(int *count)
{
	int error = device_ready();

	if (error)
		return rt(error);
	if (!count)
		return rt(cudaErrorInvalidValue);
	*count = 1;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	if (!device)
		return rt(cudaErrorInvalidValue);
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	return check_device(device);
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	return check_device(device);
}

cudaError_t cudaSetValidDevices(int *device, int n)
{
	return check_device(device && n > 0 ? device[0] : 0);
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *p)
{
	return cudaGetDevice(device);
}

static _Atomic unsigned device_flags_now;

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	device_flags_now = flags;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	if (!flags)
		return rt(cudaErrorInvalidValue);
	*flags = device_flags_now | cudaDeviceMapHost;
	return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
	device_reset();
	return cudaSuccess;
}

/* All work ran when it was issued: only a sticky error remains to be reported. */
cudaError_t cudaDeviceSynchronize(void)
{
	const int error = device_ready();

	stream_host_waited();
	if (!error)
		hb_device_waited();
	return rt(error);
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return rt(device_limit((int)limit, NULL, &value));
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	return rt(device_limit((int)limit, value, NULL));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	if (!config)
		return rt(cudaErrorInvalidValue);
	*config = cudaFuncCachePreferNone;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	return cudaSuccess;
}

cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
	if (!config)
		return rt(cudaErrorInvalidValue);
	*config = cudaSharedMemBankSizeFourByte;
	return cudaSuccess;
}

cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = DEVICE_PRIORITY;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int n, int device)
{
	cudaError_t error = check_device(device);

	if (error)
		return error;
	if (!id || n < 13)
		return rt(cudaErrorInvalidValue);
	memcpy(id, DEVICE_PCI_ID, sizeof DEVICE_PCI_ID);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	return id && !strcmp(id, DEVICE_PCI_ID) ? cudaGetDevice(device) : rt(cudaErrorInvalidValue);
}

/* There is only one device, so there is no peer. */
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t error = check_device(device);

	if (error)
		return error;
	if (!can)
		return rt(cudaErrorInvalidValue);
	*can = 0;
	return check_device(peer);
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	return rt(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	return rt(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(
	enum cudaFlushGPUDirectRDMAWritesTarget target, enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	return rt(device_ready());
}

cudaError_t cudaCtxResetPersistingL2Cache(void)
{
	return rt(device_ready());
}

cudaError_t cudaDriverGetVersion(int *version)
{
	if (!version)
		return rt(cudaErrorInvalidValue);
	*version = DEVICE_CUDA_VERSION;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	return cudaDriverGetVersion(version);
}

cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
