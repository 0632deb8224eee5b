/* ticket: the counter from which launches draw tickets (record.h). Kernels that run at the same time are
 * brought into one order by it. Devices that can do atomic operations on the first one's memory share its
 * counter; each other context has its own. */
#include "context_records.h"

#define GRAIN_BYTES (2ull << 20)
enum { MOST = 64 };              /* devices */

static struct {
	bool tried;
	CUdeviceptr at;
	bool reaches[MOST];
} shared;

static unsigned find_devices(CUdevice home, CUmemAccessDesc access[MOST])
{
	int n = 0, atomic;
	unsigned found = 0;

	if (!cu.p_cuDeviceGetCount || !cu.p_cuDeviceGetP2PAttribute || cu.p_cuDeviceGetCount(&n))
		return 0;
	for (int d = 0; d < n && d < MOST; d++) {
		atomic = d == home;
		if (d != home && cu.p_cuDeviceGetP2PAttribute(&atomic,
				CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, d, home))
			atomic = 0;
		if (!atomic)
			continue;
		shared.reaches[d] = true;
		access[found++] = (CUmemAccessDesc){ .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d },
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	}
	return found;
}

static void make(CUdevice home)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = home } };
	CUmemGenericAllocationHandle handle;
	CUmemAccessDesc access[MOST];
	const unsigned n = find_devices(home, access);
	CUdeviceptr at = 0;

	shared.tried = true;
	if (n < 2 || !cu.p_cuMemCreate || !cu.p_cuMemAddressReserve || !cu.p_cuMemMap || !cu.p_cuMemSetAccess
			|| !cu.p_cuMemRelease || !cu.p_cuMemUnmap || !cu.p_cuMemAddressFree
			|| cu.p_cuMemCreate(&handle, GRAIN_BYTES, &prop, 0))
		return;
	if (!cu.p_cuMemAddressReserve(&at, GRAIN_BYTES, 0, 0, 0)) {
		if (!cu.p_cuMemMap(at, GRAIN_BYTES, 0, handle, 0)) {
			if (!cu.p_cuMemSetAccess(at, GRAIN_BYTES, access, n))
				own_add(&shared, shared.at = at);
			else
				cu.p_cuMemUnmap(at, GRAIN_BYTES);
		}
		if (!shared.at)
			cu.p_cuMemAddressFree(at, GRAIN_BYTES);
	}
	cu.p_cuMemRelease(handle); /* the mapping keeps the memory */
}

CUdeviceptr inject_ticket(const struct inject_pool *pool)
{
	if (!shared.tried)
		make(pool->device);
	return shared.at && pool->device < MOST && shared.reaches[pool->device] ? shared.at
		: context_records(pool)->ticket;
}

/* Not in the launch's stream: that may be held up, by other processes, too, while a launch on another device
 * that was issued later draws tickets already. */
bool inject_ticket_restart(const struct inject_pool *pool)
{
	static const uint32_t first = 1;
	const CUstream s = context_records(pool)->beside;

	return !cu.p_cuMemcpyHtoDAsync(inject_ticket(pool), &first, sizeof first, s) && !cu.p_cuStreamSynchronize(s);
}
