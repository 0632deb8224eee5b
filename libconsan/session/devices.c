/* devices: see devices.h. */
#include "internal.h"

#include <stdatomic.h>
#include <stdlib.h>

_Static_assert((int)CONSAN_DEVICES == (int)EXEC_DEVICES, "one number of devices");
enum { PAGE = 4096 };

unsigned consan_devices(const struct consan *c)
{
	return (unsigned)c->opt.devices;
}

struct exec_access *consan_access_new(void)
{
	return base_alloc(sizeof(struct exec_access));
}

static void set(_Atomic uint32_t *mask, unsigned device, bool on)
{
	if (on)
		atomic_fetch_or(mask, 1u << device);
	else
		atomic_fetch_and(mask, ~(1u << device));
}

void consan_access_set(struct exec_access *a, unsigned device, bool read, bool write)
{
	set(&a->read, device, read);
	set(&a->write, device, write);
}

bool consan_access_get(const struct exec_access *a, unsigned device, bool *write)
{
	*write = a->write >> device & 1;
	return a->read >> device & 1;
}

bool consan_peer_access(unsigned device, unsigned peer, bool on)
{
	return exec_peer_access(device, peer, on);
}

void *consan_malloc_on(struct consan *c, uint64_t bytes, enum consan_mem kind, unsigned device,
	const struct exec_access *access)
{
	static const enum exec_mem_kind to[] = {
		[CONSAN_MEM_DEVICE] = MEM_DEVICE, [CONSAN_MEM_HOST] = MEM_HOST,
		[CONSAN_MEM_MANAGED] = MEM_MANAGED,
	};
	struct exec_mem m = { .bytes = bytes, .kind = to[kind], .device = device, .access = access };
	void *at;

	(void)c;
	if (!bytes || bytes > (uint64_t)1 << 46)
		return NULL;
	at = aligned_alloc(PAGE, (bytes + PAGE - 1) & -(uint64_t)PAGE);
	if (!at)
		return NULL;
	m.at = (uintptr_t)at;
	if (kind == CONSAN_MEM_DEVICE && !access)
		m.access = exec_device_memory(device);
	exec_mem_put(&m);
	return at;
}

void consan_mem_map(void *at, uint64_t bytes, unsigned device, const struct exec_access *access,
	bool joins)
{
	exec_mem_put(&(struct exec_mem){ (uintptr_t)at, bytes, MEM_DEVICE, false, device, access, joins,
		NULL });
}

/* The bindings of ranges that no longer exist, which a launch that runs may still use. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct exec_multicast *) made;

void consan_mem_multicast(void *at, uint64_t bytes, const struct exec_access *access, unsigned devices,
	const struct consan_binding *bound, size_t n)
{
	struct exec_multicast *m = base_alloc(sizeof *m + n * sizeof m->bound[0]);

	m->devices = devices;
	for (m->n = 0; m->n < n; m->n++)
		m->bound[m->n] = (struct exec_binding){ bound[m->n].from, bound[m->n].bytes, bound[m->n].at,
			bound[m->n].device };
	pthread_mutex_lock(&lock);
	vec_push(&made, m);
	pthread_mutex_unlock(&lock);
	exec_mem_put(&(struct exec_mem){ (uintptr_t)at, bytes, MEM_DEVICE, false, 0, access, false, m });
}

void consan_mem_unmap(struct consan *c, void *at)
{
	if (exec_mem_remove(at))
		__atomic_store_n(&c->freed, true, __ATOMIC_RELEASE);
}

uint64_t consan_texture_add(const struct consan_texture *t)
{
	return exec_texture_add(t);
}

bool consan_texture_remove(uint64_t handle)
{
	return exec_texture_remove(handle);
}

int consan_mem_device(const void *at)
{
	struct exec_mem m;

	return exec_mem_find((uint64_t)(uintptr_t)at, &m) ? (int)m.device : -1;
}
