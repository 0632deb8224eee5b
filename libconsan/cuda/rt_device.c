/* rt_device: device queries, limits and versions of the runtime API. */
#include "queue.h"

#include <string.h>

#define ARRAY_DIM_3(array, a, b, c) ((array)[0] = (a), (array)[1] = (b), (array)[2] = (c))
#define ARRAY_DIM_2(array, a, b) ((array)[0] = (a), (array)[1] = (b))

static int attribute_of(int device, int attribute)
{
	int value = 0;

	device_attribute(device, attribute, &value);
	return value;
}

static cudaError_t check_device(int device)
{
	return rt(device_check(device));
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
#define A(attribute) = attribute_of(device, CU_DEVICE_ATTRIBUTE_##attribute)
#define TOTAL = total_memory()
#define DIMENSIONS(p) \
	device_name((p)->name, sizeof (p)->name); \
	device_uuid(device, &(p)->uuid); \
	ARRAY_DIM_3((p)->maxThreadsDim, attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), \
		attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), \
		attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)); \
	ARRAY_DIM_3((p)->maxGridSize, attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), \
		attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y), \
		attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)); \
	ARRAY_DIM_2((p)->maxTexture2D, MOST(TEXTURE2D_WIDTH), MOST(TEXTURE2D_HEIGHT)); \
	ARRAY_DIM_3((p)->maxTexture2DLinear, MOST(TEXTURE2D_LINEAR_WIDTH), \
		MOST(TEXTURE2D_LINEAR_HEIGHT), MOST(TEXTURE2D_LINEAR_PITCH)); \
	ARRAY_DIM_2((p)->maxTexture2DGather, MOST(TEXTURE2D_GATHER_WIDTH), \
		MOST(TEXTURE2D_GATHER_HEIGHT)); \
	ARRAY_DIM_3((p)->maxTexture3D, MOST(TEXTURE3D_WIDTH), MOST(TEXTURE3D_HEIGHT), \
		MOST(TEXTURE3D_DEPTH)); \
	ARRAY_DIM_2((p)->maxTexture1DLayered, MOST(TEXTURE1D_LAYERED_WIDTH), \
		MOST(TEXTURE1D_LAYERED_LAYERS)); \
	ARRAY_DIM_3((p)->maxTexture2DLayered, MOST(TEXTURE2D_LAYERED_WIDTH), \
		MOST(TEXTURE2D_LAYERED_HEIGHT), MOST(TEXTURE2D_LAYERED_LAYERS)); \
	ARRAY_DIM_2((p)->maxTextureCubemapLayered, MOST(TEXTURECUBEMAP_LAYERED_WIDTH), \
		MOST(TEXTURECUBEMAP_LAYERED_LAYERS)); \
	ARRAY_DIM_2((p)->maxSurface2D, MOST(SURFACE2D_WIDTH), MOST(SURFACE2D_HEIGHT)); \
	ARRAY_DIM_3((p)->maxSurface3D, MOST(SURFACE3D_WIDTH), MOST(SURFACE3D_HEIGHT), \
		MOST(SURFACE3D_DEPTH)); \
	ARRAY_DIM_2((p)->maxSurface1DLayered, MOST(SURFACE1D_LAYERED_WIDTH), \
		MOST(SURFACE1D_LAYERED_LAYERS)); \
	ARRAY_DIM_3((p)->maxSurface2DLayered, MOST(SURFACE2D_LAYERED_WIDTH), \
		MOST(SURFACE2D_LAYERED_HEIGHT), MOST(SURFACE2D_LAYERED_LAYERS)); \
	ARRAY_DIM_2((p)->maxSurfaceCubemapLayered, MOST(SURFACECUBEMAP_LAYERED_WIDTH), \
		MOST(SURFACECUBEMAP_LAYERED_LAYERS))
#define MOST(attribute) attribute_of(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_##attribute)
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

	return error ? error : rt(device_attribute(device, (int)attribute, value));
}

cudaError_t cudaGetDeviceCount(int *count)
{
	int error = device_open();

	if (error)
		return rt(error);
	if (!count)
		return rt(cudaErrorInvalidValue);
	drv_initialise();
	*count = device_count();
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	if (!device)
		return rt(cudaErrorInvalidValue);
	drv_initialise();
	*device = device_now();
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	cudaError_t error = check_device(device);

	if (!error)
		cuda_context_set(cuda_context_primary(device));
	return error ? error : rt(device_ready());
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	return check_device(device);
}

cudaError_t cudaSetValidDevices(int *device, int n)
{
	cudaError_t error = cudaSuccess;

	for (int i = 0; device && i < n && !error; i++)
		error = check_device(device[i]);
	return error;
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *p)
{
	if (!device || !p)
		return rt(cudaErrorInvalidValue);
	*device = 0; /* all are alike */
	return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	cuda_context_primary(device_now())->flags = flags;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	if (!flags)
		return rt(cudaErrorInvalidValue);
	*flags = cuda_context_primary(device_now())->flags | cudaDeviceMapHost;
	return cudaSuccess;
}

cudaError_t cudaDeviceReset(void)
{
	engine_leave(NULL);
	device_reset(device_now());
	return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
	return rt(stream_sync_all(device_now()));
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
	if (!id || n < DEVICE_PCI_ID_BYTES)
		return rt(cudaErrorInvalidValue);
	device_pci_id(device, id);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	int error = device_open();

	return rt(error ? error : device_by_pci_id(id, device));
}

/* ---- peers ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	return rt(peer_can(device, peer, can));
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	return rt(flags ? cudaErrorInvalidValue : peer_access(peer, true));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	return rt(peer_access(peer, false));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr a, int device, int peer)
{
	return rt(peer_attribute(value, (int)a, device, peer));
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
