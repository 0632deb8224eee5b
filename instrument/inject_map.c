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
	uint32_t *place, cap;      /* hash by the bytes: 1 + where in `at`, or 0 */
	unsigned char before[TENSORMAP_BYTES];
} maps = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Where it is, or where it would have to be. */
static uint32_t *place_of(const void *bytes)
{
	uint64_t word[TENSORMAP_BYTES / 8], h = 0;

	memcpy(word, bytes, sizeof word);
	for (size_t k = 0; k < sizeof word / sizeof *word; k++)
		h = (h ^ word[k] ^ h >> 29) * 0x9e3779b97f4a7c15u;
	for (uint32_t k = (uint32_t)(h >> 32);; k++) {
		uint32_t *p = &maps.place[k & (maps.cap - 1)];

		if (!*p || !memcmp(maps.at.at[*p - 1].gpu, bytes, TENSORMAP_BYTES))
			return p;
	}
}

static struct known *find(const void *bytes)
{
	uint32_t *p = maps.cap ? place_of(bytes) : NULL;

	return p && *p ? &maps.at.at[*p - 1] : NULL;
}

static void grow(void)
{
	free(maps.place);
	maps.cap = maps.cap ? 2 * maps.cap : 256;
	maps.place = base_alloc(maps.cap * sizeof *maps.place);
	for (size_t k = 0; k < maps.at.n; k++)
		*place_of(maps.at.at[k].gpu) = (uint32_t)k + 1;
}

static void note(const void *gpu, const void *ours)
{
	struct known *k = find(gpu);

	if (!k) {
		struct known fresh;

		if (2 * maps.at.n >= maps.cap)
			grow();
		memcpy(fresh.gpu, gpu, TENSORMAP_BYTES);
		vec_push(&maps.at, fresh);
		k = &maps.at.at[maps.at.n - 1];
		*place_of(gpu) = (uint32_t)maps.at.n;
	}
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
