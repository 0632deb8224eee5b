/* own: the device memory that consan has allocated, and not the program. A word of the program that happens
 * to be an address of it is no pointer to an input of a kernel. */
#include "context_records.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	VEC(struct own { CUdeviceptr at; const void *owner; }) list;
} own = { .lock = PTHREAD_MUTEX_INITIALIZER };

void own_add(const void *owner, CUdeviceptr at)
{
	pthread_mutex_lock(&own.lock);
	vec_push(&own.list, ((struct own){ at, owner }));
	pthread_mutex_unlock(&own.lock);
}

bool own_allocate(const struct context_records *p, CUdeviceptr *at, size_t bytes)
{
	if (cu.p_cuMemAlloc(at, bytes))
		return false;
	own_add(p, *at);
	return true;
}

void own_drop(const void *owner)
{
	size_t left = 0;

	pthread_mutex_lock(&own.lock);
	for (size_t k = 0; k < own.list.n; k++)
		if (own.list.at[k].owner != owner)
			own.list.at[left++] = own.list.at[k];
	own.list.n = left;
	pthread_mutex_unlock(&own.lock);
}

bool inject_is_own(CUdeviceptr start)
{
	bool is = false;

	pthread_mutex_lock(&own.lock);
	for (size_t k = 0; k < own.list.n; k++)
		is |= own.list.at[k].at == start;
	pthread_mutex_unlock(&own.lock);
	return is;
}
