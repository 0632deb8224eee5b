/* tensormap: the arguments of the program's tensor maps. Maps are opaque on a GPU, so the
 * arguments are noted when the program encodes a map, with the bytes that come out as the key.
 * The arguments of a map that a kernel has changed are found by map_bits.h. */
#include "internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/decode/decode.h"

struct known { unsigned char gpu[CONSAN_TENSORMAP_BYTES], ours[CONSAN_TENSORMAP_BYTES]; };

static struct {
	pthread_mutex_t lock;
	VEC(struct known) at;
	uint32_t *place, cap;      /* hash table by `gpu`: 1 + index in `at`, or 0 */
	unsigned char before[CONSAN_TENSORMAP_BYTES];
	VEC(struct map_bits *) kind;
} maps = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The entry of these bytes, or the free entry for them. */
static uint32_t *place_of(const void *bytes)
{
	uint64_t word[CONSAN_TENSORMAP_BYTES / 8], h = 0;

	memcpy(word, bytes, sizeof word);
	for (size_t k = 0; k < sizeof word / sizeof *word; k++)
		h = (h ^ word[k] ^ h >> 29) * 0x9e3779b97f4a7c15u;
	for (uint32_t k = (uint32_t)(h >> 32);; k++) {
		uint32_t *p = &maps.place[k & (maps.cap - 1)];

		if (!*p || !memcmp(maps.at.at[*p - 1].gpu, bytes, CONSAN_TENSORMAP_BYTES))
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
		memcpy(fresh.gpu, gpu, CONSAN_TENSORMAP_BYTES);
		vec_push(&maps.at, fresh);
		k = &maps.at.at[maps.at.n - 1];
		*place_of(gpu) = (uint32_t)maps.at.n;
	}
	memcpy(k->ours, ours, CONSAN_TENSORMAP_BYTES);
}

/* A kind has arguments in common that programs seldom vary. */
#define MOST_KINDS 64

static void note_kind(const void *gpu, const struct consan_tensormap_args *a)
{
	for (size_t k = 0; k < maps.kind.n; k++)
		if (map_bits_fit(maps.kind.at[k], a))
			return;
	if (maps.kind.n < MOST_KINDS)
		vec_push(&maps.kind, map_bits_open(a, gpu));
}

void inject_map_encoded(const CUtensorMap *map, const struct consan_tensormap_args *a)
{
	_Alignas(64) unsigned char ours[CONSAN_TENSORMAP_BYTES];
	struct consan_err e = { 0 };

	if (!consan_tensormap(a, ours, &e))
		return;
	pthread_mutex_lock(&maps.lock);
	note(map, ours);
	if (!a->im2col)
		note_kind(map, a);
	pthread_mutex_unlock(&maps.lock);
}

void inject_map_before_move(const CUtensorMap *map)
{
	pthread_mutex_lock(&maps.lock);
	memcpy(maps.before, map, CONSAN_TENSORMAP_BYTES);
	pthread_mutex_unlock(&maps.lock);
}

void inject_map_moved(const CUtensorMap *map, uint64_t address)
{
	_Alignas(64) unsigned char ours[CONSAN_TENSORMAP_BYTES];
	const struct known *k;
	struct consan_err e = { 0 };

	pthread_mutex_lock(&maps.lock);
	k = find(maps.before);
	if (k) {
		memcpy(ours, k->ours, sizeof ours);
		if (consan_tensormap_address(ours, address, &e))
			note(map, ours);
	}
	pthread_mutex_unlock(&maps.lock);
}

static bool encode(const struct consan_tensormap_args *a, void *bytes)
{
	return !cu.p_cuTensorMapEncodeTiled(bytes, (CUtensorMapDataType)a->type, a->rank,
		(void *)(uintptr_t)a->address, (const cuuint64_t *)a->dim,
		(const cuuint64_t *)a->stride,
		a->box, a->elem_stride, (CUtensorMapInterleave)a->interleave,
		(CUtensorMapSwizzle)a->swizzle, (CUtensorMapL2promotion)a->l2,
		(CUtensorMapFloatOOBfill)a->oob);
}

/* Reads a map that a kernel has changed. */
static const struct known *read_back(const void *gpu)
{
	_Alignas(64) unsigned char ours[CONSAN_TENSORMAP_BYTES];
	bool good = false;

	for (size_t k = 0; cu.p_cuTensorMapEncodeTiled && !good && k < maps.kind.n; k++) {
		struct map_args args;
		struct consan_err e = { 0 };

		good = map_bits_read(maps.kind.at[k], gpu, encode, &args) &&
			consan_tensormap(&args.a, ours, &e);
	}
	if (good)
		note(gpu, ours);
	return good ? find(gpu) : NULL;
}

/* Called from threads of the check, which have no current context; the kernel may still run. */
static bool fetch(CUcontext context, uint64_t address, void *bytes)
{
	CUstream beside = inject_beside(context);
	bool good;

	if (!beside || !cu.p_cuCtxPushCurrent || !cu.p_cuCtxPopCurrent ||
			cu.p_cuCtxPushCurrent(context))
		return false;
	good = !cu.p_cuMemcpyDtoHAsync(bytes, (CUdeviceptr)address, CONSAN_TENSORMAP_BYTES, beside) &&
		!cu.p_cuStreamSynchronize(beside);
	cu.p_cuCtxPopCurrent(&context);
	return good;
}

bool inject_find_map(CUcontext context, uint64_t address, const void *param, void *bytes)
{
	unsigned char gpu[CONSAN_TENSORMAP_BYTES];
	const struct known *k = NULL;
	const bool busy = inject_busy;
	bool here = param;

	inject_busy = true; /* the calling thread may be none that runs callbacks */
	pthread_mutex_lock(&maps.lock);
	if (param)
		memcpy(gpu, param, sizeof gpu);
	else
		here = fetch(context, address, gpu);
	if (here)
		k = find(gpu);
	if (here && !k && !param)
		k = read_back(gpu);
	if (k)
		memcpy(bytes, k->ours, CONSAN_TENSORMAP_BYTES);
	pthread_mutex_unlock(&maps.lock);
	inject_busy = busy;
	return k;
}
