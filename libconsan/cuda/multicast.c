/* multicast: multicast objects. Memory that devices bind at an offset of the object is accessed
 * together by multimem instructions on the addresses that the object is mapped at. */
#include "vmm.h"

#include <string.h>

static bool whole(size_t n)
{
	return n % VMM_PAGE == 0;
}

/* The object of a handle; NULL: it is none. */
static struct memory *object_of(CUmemGenericAllocationHandle handle)
{
	struct memory *m = vmm_memory(handle);

	return m && m->fd < 0 ? m : NULL;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle, const CUmulticastObjectProp *p)
{
	int can = 0, error = drv_ready();
	struct memory *m;

	if (error)
		return drv(error);
	if (!handle || !p || p->flags || !p->size || !whole(p->size) || !p->numDevices
			|| p->numDevices > (unsigned)device_count())
		return CUDA_ERROR_INVALID_VALUE;
	device_attribute(0, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, &can);
	if (!can)
		return CUDA_ERROR_NOT_SUPPORTED;
	m = base_alloc(sizeof *m);
	*m = (struct memory){ .bytes = p->size, .fd = -1, .devices = p->numDevices,
		.handle_types = (unsigned)p->handleTypes };
	vmm_lock();
	vmm_add(m);
	*handle = vmm_handle(m);
	vmm_unlock();
	return CUDA_SUCCESS;
}

CUresult cuMulticastGetGranularity(size_t *bytes, const CUmulticastObjectProp *p,
	CUmulticastGranularity_flags option)
{
	if (!bytes || !p)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = VMM_PAGE;
	return drv(drv_initialised());
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device)
{
	int error = device_check(device);
	struct memory *m;

	if (error)
		return drv(error);
	vmm_lock();
	m = object_of(handle);
	if (!m || m->added >> device & 1 || __builtin_popcount(m->added) == (int)m->devices)
		error = cudaErrorInvalidValue;
	else
		m->added |= 1u << device;
	vmm_unlock();
	return drv(error);
}

/* Has the device bound memory in this range? */
static bool bound(const struct memory *m, int device, size_t from, size_t bytes)
{
	for (size_t k = 0; k < m->bound.n; k++)
		if (m->bound.at[k].memory->device == device && m->bound.at[k].from < from + bytes
				&& from < m->bound.at[k].from + m->bound.at[k].bytes)
			return true;
	return false;
}

static int bind(struct memory *m, size_t from, struct memory *memory, size_t offset, size_t bytes)
{
	struct binding b = { from, bytes, offset, memory };
	size_t k;

	if (!m || !memory || memory->fd < 0 || !bytes || !whole(from | offset | bytes) || from > m->bytes
			|| bytes > m->bytes - from || offset > memory->bytes || bytes > memory->bytes - offset
			|| !(m->added >> memory->device & 1) || bound(m, memory->device, from, bytes))
		return cudaErrorInvalidValue;
	if (__builtin_popcount(m->added) != (int)m->devices)
		return cudaErrorIllegalState;
	memory->refs++;
	vec_push(&m->bound, b);
	/* in the order of the devices, that of the accesses */
	for (k = m->bound.n - 1; k && m->bound.at[k - 1].memory->device > memory->device; k--)
		m->bound.at[k] = m->bound.at[k - 1];
	m->bound.at[k] = b;
	vmm_refresh(m);
	return 0;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t from,
	CUmemGenericAllocationHandle memory, size_t offset, size_t bytes, unsigned long long flags)
{
	int error;

	vmm_lock();
	error = flags ? cudaErrorInvalidValue : bind(object_of(handle), from, vmm_memory(memory), offset,
		bytes);
	vmm_unlock();
	return drv(error);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t from, CUdeviceptr at,
	size_t bytes, unsigned long long flags)
{
	const struct mapping *map;
	int error = cudaErrorInvalidValue;

	vmm_lock();
	map = vmm_mapping((void *)(uintptr_t)at);
	if (map && !flags && bytes <= map->bytes - (at - (uintptr_t)map->at))
		error = bind(object_of(handle), from, map->memory, map->offset + (at - (uintptr_t)map->at),
			bytes);
	vmm_unlock();
	return drv(error);
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device, size_t from,
	size_t bytes)
{
	int error = cudaErrorInvalidValue;
	struct memory *m, *memory;

	vmm_lock();
	m = object_of(handle);
	for (size_t k = 0; m && k < m->bound.n;) {
		struct binding *b = &m->bound.at[k];

		if (b->memory->device != device || b->from < from || b->from + b->bytes > from + bytes) {
			k++;
			continue;
		}
		memory = b->memory;
		memmove(b, b + 1, (--m->bound.n - k) * sizeof *b);
		vmm_refresh(m);
		vmm_release(memory);
		error = 0;
	}
	vmm_unlock();
	return drv(error);
}
