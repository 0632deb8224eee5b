/* inject_memory: what the program has allocated on the device, noted as it asks for
 * it, so that it is still known when the GPU has stopped a kernel and no call works
 * any more. Not all kinds of memory are: who is not known to be outside is let be. */
#include "inject.h"

#include <pthread.h>

#include "extents.h"

static struct {
	pthread_mutex_t lock;
	struct extents at;
} memory = { .lock = PTHREAD_MUTEX_INITIALIZER };

void inject_allocated(uint64_t at, uint64_t bytes)
{
	pthread_mutex_lock(&memory.lock);
	extents_add(&memory.at, at, bytes);
	pthread_mutex_unlock(&memory.lock);
}

void inject_freed(uint64_t at)
{
	pthread_mutex_lock(&memory.lock);
	extents_remove(&memory.at, at);
	pthread_mutex_unlock(&memory.lock);
}

static bool below(uint64_t addr, struct extent *out)
{
	const struct extent *e;

	pthread_mutex_lock(&memory.lock);
	e = extents_below(&memory.at, addr);
	if (e)
		*out = *e;
	pthread_mutex_unlock(&memory.lock);
	return e;
}

/* The driver knows kinds that are not noted, while it still answers. */
static bool driver_knows(CUcontext context, uint64_t addr, struct extent *out)
{
	CUdeviceptr base = 0;
	size_t bytes = 0;
	bool yes;

	if (!cu.p_cuMemGetAddressRange || !cu.p_cuCtxPushCurrent || !cu.p_cuCtxPopCurrent ||
			cu.p_cuCtxPushCurrent(context))
		return false;
	yes = !cu.p_cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)addr);
	cu.p_cuCtxPopCurrent(&context);
	*out = (struct extent){ base, bytes };
	return yes;
}

static bool is_variable(const struct inject_launch *l, uint64_t addr, struct extent *out)
{
	const char *name;

	for (size_t k = 0; (name = gpu_module_global(l->module, k)); k++) {
		CUdeviceptr at = 0;
		size_t bytes = 0;

		if (cu.p_cuModuleGetGlobal(&at, &bytes, l->loaded, name) || addr - at >= bytes)
			continue;
		*out = (struct extent){ at, bytes };
		return true;
	}
	return false;
}

/* Behind what was noted, not farther, and nobody's: nowhere else is it certain. A
 * cooperative launch has memory of the driver's, too. */
#define NEAR (64u << 10)

bool inject_find_memory(const struct inject_launch *l, uint64_t addr, uint64_t *from, uint64_t *bytes)
{
	struct extent e = { 0, 0 }, other;
	bool known = below(addr, &e);

	if (known && addr - e.at >= e.bytes + NEAR)
		known = false;
	if (known && addr - e.at >= e.bytes && (driver_knows(l->context, addr, &other) ||
			is_variable(l, addr, &other)))
		e = other;
	*from = e.at;
	*bytes = known ? e.bytes : 0;
	return (known && !l->cooperative) || addr < NEAR;
}
