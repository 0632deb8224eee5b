/* inject_map: tensor maps are opaque on a GPU, so their arguments are noted as
 * the program encodes them, by the bytes that come out. */
#include "inject.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct known { unsigned char gpu[TENSORMAP_BYTES], ours[TENSORMAP_BYTES]; };

static struct {
	pthread_mutex_t lock;
	VEC(struct known) at;
	unsigned char before[TENSORMAP_BYTES];
} maps = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct known *find(const void *bytes)
{
	for (size_t k = 0; k < maps.at.n; k++)
		if (!memcmp(maps.at.at[k].gpu, bytes, TENSORMAP_BYTES))
			return &maps.at.at[k];
	return NULL;
}

static void note(const void *gpu, const void *ours)
{
	struct known *k = find(gpu);

	if (!k) {
		vec_push(&maps.at, (struct known){ 0 });
		k = &maps.at.at[maps.at.n - 1];
	}
	memcpy(k->gpu, gpu, TENSORMAP_BYTES);
	memcpy(k->ours, ours, TENSORMAP_BYTES);
}

void inject_map(const CUtensorMap *map, const struct tensormap_args *a)
{
	_Alignas(64) unsigned char ours[TENSORMAP_BYTES];
	struct err e = { 0 };

	if (!consan_tensormap(a, ours, &e))
		return;
	pthread_mutex_lock(&maps.lock);
	note(map, ours);
	pthread_mutex_unlock(&maps.lock);
}

void inject_map_before(const CUtensorMap *map)
{
	pthread_mutex_lock(&maps.lock);
	memcpy(maps.before, map, TENSORMAP_BYTES);
	pthread_mutex_unlock(&maps.lock);
}

void inject_map_address(const CUtensorMap *map, uint64_t address)
{
	_Alignas(64) unsigned char ours[TENSORMAP_BYTES];
	const struct known *k;
	struct err e = { 0 };

	pthread_mutex_lock(&maps.lock);
	k = find(maps.before);
	if (k) {
		memcpy(ours, k->ours, sizeof ours);
		if (consan_tensormap_address(ours, address, &e))
			note(map, ours);
	}
	pthread_mutex_unlock(&maps.lock);
}

bool inject_find_map(void *user, uint64_t address, const void *param, void *bytes)
{
	unsigned char gpu[TENSORMAP_BYTES];
	const struct known *k;

	(void)user;
	if (param)
		memcpy(gpu, param, sizeof gpu);
	else if (cu.p_cuMemcpyDtoH(gpu, (CUdeviceptr)address, sizeof gpu))
		return false;
	pthread_mutex_lock(&maps.lock);
	k = find(gpu);
	if (k)
		memcpy(bytes, k->ours, TENSORMAP_BYTES);
	pthread_mutex_unlock(&maps.lock);
	return k;
}
