/* inject_pool: device memory for records, and how they come home: all of them, or
 * those of the clusters that speak for the others (digest.cu, alike.c). */
#include "inject.h"

#include <stdlib.h>
#include <string.h>

#include "record.h"

#define LEAST_BYTES (16ull << 20)
#define MOST_BYTES (60ull << 30) /* 32 bits count units of 16 bytes */

struct words { struct gpu_module *module; CUdeviceptr at; uint32_t n; };

static struct {
	struct inject_pool pool;
	CUcontext context;
	CUstream side;
	char *pinned;              /* STAGE_BYTES; made early: making it waits for the GPU */
	char *host;                /* for what is more than that; grows */
	size_t host_bytes;
	char *some;                /* chosen chunks */
	size_t some_bytes;
	CUdeviceptr digests, stage;
	CUfunction digest, gather;
	VEC(struct words) words;
} p;

extern const char consan_digest_ptx[];

/* Without it every chunk is copied. */
static void make_digest(void)
{
	CUmodule m;

	if (cu.p_cuModuleLoadData(&m, consan_digest_ptx)
			|| cu.p_cuModuleGetFunction(&p.digest, m, "consan_digest")
			|| cu.p_cuModuleGetFunction(&p.gather, m, "consan_gather")
			|| cu.p_cuMemAlloc(&p.digests, (size_t)p.pool.chunks * sizeof(struct record_digest))
			|| cu.p_cuMemAlloc(&p.stage, STAGE_BYTES))
		p.digest = NULL;
}

const struct inject_pool *inject_pool(void)
{
	uint64_t asked = gpu_memory(inject_session()), want = asked;
	size_t free_bytes = 0, total = 0;
	CUcontext now = NULL;

	cu.p_cuCtxGetCurrent(&now);
	if (p.pool.at && now == p.context)
		return &p.pool;
	cu.p_cuMemGetInfo(&free_bytes, &total);
	if (!want)
		want = free_bytes / 4;
	if (want > MOST_BYTES)
		want = MOST_BYTES;
	while (want >= LEAST_BYTES && cu.p_cuMemAlloc(&p.pool.at, want)) {
		want /= 2;
		p.pool.at = 0;
	}
	if (!p.pool.at || want < LEAST_BYTES)
		return NULL;
	if (want < asked)
		inject_remark(REMARK_NOTE, "records have %llu MiB of device memory, as there was no more",
			(unsigned long long)(want >> 20));
	p.context = now;
	p.pool.chunks = (uint32_t)(want / RECORD_CHUNK_BYTES) - 2;
	cu.p_cuMemsetD8(p.pool.at, 0, want);
	if (cu.p_cuStreamCreate(&p.side, CU_STREAM_NON_BLOCKING)
			|| cu.p_cuMemAllocHost((void **)&p.pinned, STAGE_BYTES))
		return NULL;
	make_digest();
	return &p.pool;
}

/* malloc, but for what is kept from time to time. */
static char *grown(char **at, size_t *have, size_t bytes)
{
	if (*have >= bytes)
		return *at;
	free(*at);
	*at = malloc(bytes + bytes / 4);
	*have = *at ? bytes + bytes / 4 : 0;
	return *at;
}

static bool copy(void *to, CUdeviceptr from, size_t bytes)
{
	for (size_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
		if (cu.p_cuMemcpyDtoHAsync(p.pinned, from + at, n, p.side)
				|| cu.p_cuStreamSynchronize(p.side))
			return false;
		if (to != p.pinned)
			memcpy((char *)to + at, p.pinned, n);
	}
	return true;
}

const void *inject_fetch(size_t bytes)
{
	char *to = bytes <= STAGE_BYTES ? p.pinned : grown(&p.host, &p.host_bytes, bytes);

	return to && copy(to, p.pool.at, bytes) ? to : NULL;
}

/* The module's site words on the GPU. */
static const struct words *words_of(struct gpu_module *m)
{
	struct words w = { .module = m };
	uint32_t *word;

	for (size_t k = 0; k < p.words.n; k++)
		if (p.words.at[k].module == m)
			return &p.words.at[k];
	word = gpu_module_site_words(m, &w.n);
	if (!cu.p_cuMemAlloc(&w.at, (w.n + 1) * sizeof *word)
			&& !cu.p_cuMemcpyHtoD(w.at, word, w.n * sizeof *word))
		vec_push(&p.words, w);
	free(word);
	return p.words.n && p.words.at[p.words.n - 1].module == m ? &p.words.at[p.words.n - 1] : NULL;
}

/* Digests of all chunks, in pinned memory; NULL: none. */
static const struct record_digest *digest(struct gpu_module *m, uint32_t n)
{
	const struct words *w = words_of(m);
	void *args[] = { &p.pool.at, &n, w ? (void *)&w->at : NULL, w ? (void *)&w->n : NULL, &p.digests };

	if (!w || n * sizeof(struct record_digest) > STAGE_BYTES
			|| cu.p_cuLaunchKernel(p.digest, (n + 127) / 128, 1, 1, 128, 1, 1, 0, p.side, args, NULL)
			|| !copy(p.pinned, p.digests, n * sizeof(struct record_digest)))
		return NULL;
	return (const void *)p.pinned;
}

/* list: chunk numbers, 0 the head. */
static const void *gather(const uint32_t *list, uint32_t n)
{
	const uint32_t most = STAGE_BYTES / RECORD_CHUNK_BYTES;
	char *to = grown(&p.some, &p.some_bytes, (size_t)n * RECORD_CHUNK_BYTES);

	for (uint32_t at = 0, part; to && at < n; at += part) {
		void *args[] = { &p.pool.at, &p.digests, &p.stage };

		part = n - at < most ? n - at : most;
		if (cu.p_cuMemcpyHtoD(p.digests, list + at, part * sizeof *list)
				|| cu.p_cuLaunchKernel(p.gather, part, 1, 1, RECORD_CHUNK_UNITS, 1, 1, 0, p.side,
					args, NULL)
				|| !copy(to + (size_t)at * RECORD_CHUNK_BYTES, p.stage,
					(size_t)part * RECORD_CHUNK_BYTES))
			return NULL;
	}
	return to;
}

const void *inject_fetch_some(const struct gpu_launch *l, uint32_t chunks, uint8_t **skip,
	uint32_t *fetched)
{
	uint32_t nctas = l->grid[0] * l->grid[1] * l->grid[2], n = 0, *list;
	const struct record_digest *d = p.digest ? digest(l->module, chunks) : NULL;
	const void *some = NULL;
	uint8_t *keep;

	if (!d)
		return NULL;
	*skip = base_alloc(nctas + 1);
	list = base_alloc((chunks + 1) * sizeof *list);
	keep = base_alloc(nctas + 1);
	if (gpu_alike(l, d, chunks, *skip)) {
		for (uint32_t k = 0; k < nctas; k++)
			keep[k] = !(*skip)[gpu_cluster_of(l, k)];
		list[n++] = 0;
		for (uint32_t k = 0; k < chunks; k++)
			if (d[k].cta < nctas && keep[d[k].cta])
				list[n++] = k + 1;
		some = n <= chunks / 2 ? gather(list, n) : NULL;
	}
	free(list);
	free(keep);
	if (some) {
		*fetched = n - 1;
		return some;
	}
	free(*skip);
	*skip = NULL;
	return NULL;
}
