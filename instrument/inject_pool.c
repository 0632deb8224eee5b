/* inject_pool: device memory for records, and how they come home: all of them, or
 * those of the clusters that speak for the others (digest.cu, alike.c). The memory
 * is also known by a file descriptor, so that what is in it outlives a fault of
 * the kernel (inject_rescue.c). */
#include "inject.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "decode.h"
#include "record.h"

#define LEAST_BYTES (16ull << 20)
#define LITTLE_BYTES (256ull << 20)
#define MOST_BYTES (60ull << 30) /* 32 bits count units of 16 bytes */
#define LIST_BYTES (64ull << 20) /* places for the numbers of each CTA's chunks */

struct words { struct gpu_module *module; CUdeviceptr at; uint32_t n; };

/* All of one context. Launches are looked at one at a time, so that what is not the
 * table itself needs no lock. */
struct own {
	struct inject_pool pool;   /* first: it stands for all */
	CUcontext context;
	unsigned long long id;     /* of the context, never another's: handles are used again */
	bool primary;              /* ... of its device */
	CUstream side;
	CUstream beside;           /* for what is asked while `side` has work */
	char *pinned;              /* STAGE_BYTES; made early: making it waits for the GPU */
	CUdeviceptr digests, list, stage;
	CUdeviceptr facts;         /* of each CTA: a signature, how many chunks */
	uint32_t facts_for;        /* CTAs */
	uint32_t blocks;           /* of consan_digest */
	CUfunction digest, sign, gather;
	VEC(struct words) words;
};

static struct {
	pthread_mutex_t lock;
	VEC(struct own *) at;
	char *host;                /* for what is more than STAGE_BYTES; grows */
	size_t host_bytes;
} pools = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct own *own(const struct inject_pool *pool)
{
	return (struct own *)(uintptr_t)pool;
}

extern const char consan_digest_ptx[];

static bool copy_words(const struct own *p, CUdeviceptr to, const void *from, size_t bytes)
{
	return !cu.p_cuMemcpyHtoDAsync(to, from, bytes, p->side);
}

static bool fit_facts(struct own *p, uint32_t nctas);

/* Runs them on nothing: the driver loads a kernel when it first runs. */
static void rehearse_digest(struct own *p)
{
	uint32_t none = 0, one = 1;
	struct { uint32_t x, y, z; } d = { 1, 1, 1 };
	void *digest[] = { &p->pool.at, &none, &p->list, &none, &p->digests, &none, &p->list, &p->list, &one };
	void *sign[] = { &p->digests, &p->list, &p->list, &none, &d, &d, &p->facts };
	void *gather[] = { &p->pool.at, &p->list, &p->digests, &p->stage };

	cu.p_cuMemsetD8Async(p->list, 0, 64, p->side);
	if (!fit_facts(p, 1024) || cu.p_cuLaunchKernel(p->digest, 1, 1, 1, 128, 1, 1, 0, p->side, digest, NULL)
			|| cu.p_cuLaunchKernel(p->sign, 1, 1, 1, 1024, 1, 1, 0, p->side, sign, NULL)
			|| cu.p_cuLaunchKernel(p->gather, 1, 1, 1, RECORD_CHUNK_UNITS, 1, 1, 0, p->side, gather, NULL)
			|| cu.p_cuMemcpyDtoHAsync(p->pinned, p->stage, RECORD_CHUNK_BYTES, p->side)
			|| cu.p_cuStreamSynchronize(p->side))
		p->digest = NULL;
}

/* Without it every chunk is copied. */
static void make_digest(struct own *p, CUdevice device)
{
	int sms = 0;
	CUmodule m;

	cu.p_cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
	p->blocks = 12 * (uint32_t)(sms > 0 ? sms : 1);
	if (cu.p_cuModuleLoadData(&m, consan_digest_ptx)
			|| cu.p_cuModuleGetFunction(&p->digest, m, "consan_digest")
			|| cu.p_cuModuleGetFunction(&p->sign, m, "consan_sign")
			|| cu.p_cuModuleGetFunction(&p->gather, m, "consan_gather")
			|| cu.p_cuMemAlloc(&p->digests, (size_t)p->pool.chunks * sizeof(struct record_digest))
			|| cu.p_cuMemAlloc(&p->list, LIST_BYTES)
			|| cu.p_cuMemAlloc(&p->stage, STAGE_BYTES))
		p->digest = NULL;
}

/* Memory that other processes can be given; false: not on this machine. */
static bool shareable(struct own *p, CUdevice device, size_t want)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;

	if (!cu.p_cuMemCreate || !cu.p_cuMemExportToShareableHandle || !cu.p_cuMemAddressReserve
			|| !cu.p_cuMemMap || !cu.p_cuMemSetAccess || !cu.p_cuMemRelease || !cu.p_cuMemAddressFree)
		return false;
	if (cu.p_cuMemCreate(&handle, want, &prop, 0))
		return false;
	if (cu.p_cuMemExportToShareableHandle(&p->pool.file, handle,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) {
		p->pool.file = -1;
		cu.p_cuMemRelease(handle);
		return false;
	}
	if (!cu.p_cuMemAddressReserve(&p->pool.at, want, 0, 0, 0)) {
		if (!cu.p_cuMemMap(p->pool.at, want, 0, handle, 0)
				&& !cu.p_cuMemSetAccess(p->pool.at, want, &access, 1)) {
			cu.p_cuMemRelease(handle); /* the mapping holds it */
			return true;
		}
		cu.p_cuMemAddressFree(p->pool.at, want);
	}
	cu.p_cuMemRelease(handle);
	inject_close(&p->pool.file);
	p->pool.at = 0;
	return false;
}

static bool allocate(struct own *p, CUdevice device, size_t want)
{
	return shareable(p, device, want) || !cu.p_cuMemAlloc(&p->pool.at, want);
}

/* How much a context's records get that the session's options do not say: a quarter of
 * what is free; of another context of the device, a quarter of the one's before. */
static uint64_t share(CUdevice device)
{
	size_t free_bytes = 0, total = 0;

	cu.p_cuMemGetInfo(&free_bytes, &total);
	free_bytes /= 4;
	for (size_t k = 0; k < pools.at.n; k++)
		if (pools.at.at[k]->pool.device == device)
			free_bytes /= 4;
	return free_bytes;
}

/* In the current context; false: there is no memory. */
static bool fill(struct own *p, CUdevice device)
{
	uint64_t asked = gpu_memory(inject_session()), want = asked ? asked : share(device);

	if (want > MOST_BYTES)
		want = MOST_BYTES;
	want &= ~((2ull << 20) - 1);
	while (want >= LEAST_BYTES && !allocate(p, device, want))
		want = want / 2 & ~((2ull << 20) - 1);
	if (!p->pool.at || want < LEAST_BYTES)
		return false;
	if (want < (asked ? asked : LITTLE_BYTES))
		inject_remark(REMARK_NOTE, "records have %llu MiB of device memory, as there was no more",
			(unsigned long long)(want >> 20));
	p->pool.bytes = want;
	p->pool.device = device;
	p->pool.chunks = (uint32_t)(want / RECORD_CHUNK_BYTES) - 2;
	cu.p_cuMemsetD8(p->pool.at, 0, want);
	if (cu.p_cuStreamCreate(&p->side, CU_STREAM_NON_BLOCKING)
			|| cu.p_cuStreamCreate(&p->beside, CU_STREAM_NON_BLOCKING)
			|| cu.p_cuMemAllocHost((void **)&p->pinned, STAGE_BYTES))
		return false;
	make_digest(p, device);
	if (p->digest)
		rehearse_digest(p);
	cu.p_cuStreamSynchronize(NULL);
	return true;
}

/* Memory with a file descriptor is the process's, all else the context's. */
static void drop(struct own *p)
{
	if (p->pool.file >= 0 && cu.p_cuMemUnmap && !cu.p_cuMemUnmap(p->pool.at, p->pool.bytes))
		cu.p_cuMemAddressFree(p->pool.at, p->pool.bytes);
	inject_close(&p->pool.file);
	vec_free(&p->words);
	free(p);
}

static bool is_primary(CUcontext context, CUdevice device)
{
	CUcontext primary = NULL;
	unsigned flags;
	int active = 0;

	if (!cu.p_cuDevicePrimaryCtxGetState || !cu.p_cuDevicePrimaryCtxRetain || !cu.p_cuDevicePrimaryCtxRelease
			|| cu.p_cuDevicePrimaryCtxGetState(device, &flags, &active) || !active
			|| cu.p_cuDevicePrimaryCtxRetain(&primary, device))
		return false;
	cu.p_cuDevicePrimaryCtxRelease(device);
	return primary == context;
}

/* The caller has the lock. */
static struct own *find_own(CUcontext context, unsigned long long id)
{
	for (size_t k = 0; k < pools.at.n; k++) {
		struct own *p = pools.at.at[k];

		if (p->context != context)
			continue;
		if (p->id == id)
			return p;
		pools.at.at[k] = pools.at.at[--pools.at.n];
		drop(p);
		return NULL;
	}
	return NULL;
}

static struct own *make(CUcontext context, unsigned long long id)
{
	struct own *p = base_alloc(sizeof *p);
	CUdevice device = 0;

	cu.p_cuCtxGetDevice(&device);
	*p = (struct own){ .pool = { .file = -1 }, .context = context, .id = id };
	p->primary = is_primary(context, device);
	if (fill(p, device)) {
		vec_push(&pools.at, p);
		return p;
	}
	cu.p_cuStreamSynchronize(NULL); /* it may be being cleared */
	if (p->pool.at && p->pool.file < 0)
		cu.p_cuMemFree(p->pool.at);
	drop(p);
	return NULL;
}

const struct inject_pool *inject_pool(void)
{
	unsigned long long id = 0;
	CUcontext now = NULL;
	struct own *p;

	if (cu.p_cuCtxGetCurrent(&now) || !now)
		return NULL;
	if (cu.p_cuCtxGetId)
		cu.p_cuCtxGetId(now, &id);
	pthread_mutex_lock(&pools.lock);
	p = find_own(now, id);
	if (!p)
		p = make(now, id);
	pthread_mutex_unlock(&pools.lock);
	return p ? &p->pool : NULL;
}

CUstream inject_beside(CUcontext context)
{
	CUstream s = NULL;

	pthread_mutex_lock(&pools.lock);
	for (size_t k = 0; k < pools.at.n; k++)
		if (pools.at.at[k]->context == context)
			s = pools.at.at[k]->beside;
	pthread_mutex_unlock(&pools.lock);
	return s;
}

void inject_drop_pools(CUcontext context, CUdevice device)
{
	size_t left = 0;

	pthread_mutex_lock(&pools.lock);
	for (size_t k = 0; k < pools.at.n; k++) {
		struct own *p = pools.at.at[k];

		if (context ? p->context == context : p->primary && p->pool.device == device)
			drop(p);
		else
			pools.at.at[left++] = p;
	}
	pools.at.n = left;
	pthread_mutex_unlock(&pools.lock);
}

void inject_make_pool(void)
{
	CUstreamCaptureStatus status;
	CUcontext now = NULL;

	/* an error: some stream is captured, which use of the default stream would end */
	if (cu.p_cuCtxGetCurrent(&now) || !now || !cu.p_cuStreamIsCapturing
			|| cu.p_cuStreamIsCapturing(CU_STREAM_LEGACY, &status))
		return;
	inject_pool();
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

static bool copy(const struct own *p, void *to, CUdeviceptr from, size_t bytes)
{
	for (size_t at = 0, n; at < bytes; at += n) {
		n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
		if (cu.p_cuMemcpyDtoHAsync(p->pinned, from + at, n, p->side)
				|| cu.p_cuStreamSynchronize(p->side))
			return false;
		if (to != p->pinned)
			memcpy((char *)to + at, p->pinned, n);
	}
	return true;
}

const void *inject_fetch(const struct inject_pool *pool, size_t bytes)
{
	const struct own *p = own(pool);
	char *to = bytes <= STAGE_BYTES ? p->pinned : grown(&pools.host, &pools.host_bytes, bytes);

	return to && copy(p, to, pool->at, bytes) ? to : NULL;
}

void inject_empty(const struct inject_pool *pool, uint32_t chunks)
{
	cu.p_cuMemsetD8Async(pool->at, 0, (size_t)chunks * RECORD_CHUNK_BYTES, own(pool)->side);
}

void inject_emptied(const struct inject_pool *pool)
{
	cu.p_cuStreamSynchronize(own(pool)->side);
}

/* ---- digests ---- */

/* The module's site words on the GPU. */
static const struct words *words_of(struct own *p, struct gpu_module *m)
{
	struct words w = { .module = m };
	uint32_t *word;

	for (size_t k = 0; k < p->words.n; k++)
		if (p->words.at[k].module == m)
			return &p->words.at[k];
	word = gpu_module_site_words(m, &w.n);
	if (!cu.p_cuMemAlloc(&w.at, (w.n + 1) * sizeof *word)
			&& copy_words(p, w.at, word, w.n * sizeof *word) && !cu.p_cuStreamSynchronize(p->side))
		vec_push(&p->words, w);
	free(word);
	return p->words.n && p->words.at[p->words.n - 1].module == m ? &p->words.at[p->words.n - 1] : NULL;
}

/* Places in p->list for each CTA. */
static uint32_t room_for(uint32_t nctas)
{
	uint64_t cap = LIST_BYTES / sizeof(uint32_t) / nctas;

	return cap > RECORD_SIGN_CHUNKS ? RECORD_SIGN_CHUNKS : (uint32_t)cap;
}

static uint32_t ctas_of(const struct gpu_launch *l)
{
	return l->grid[0] * l->grid[1] * l->grid[2];
}

static bool fit_facts(struct own *p, uint32_t nctas)
{
	if (nctas <= p->facts_for)
		return true;
	if (p->facts)
		cu.p_cuMemFree(p->facts);
	p->facts_for = 0;
	if (cu.p_cuMemAlloc(&p->facts, (size_t)nctas * (sizeof(uint64_t) + sizeof(uint32_t))))
		return false;
	p->facts_for = nctas;
	return true;
}

void inject_prepare_facts(const struct inject_pool *pool, const struct gpu_launch *l)
{
	struct own *p = own(pool);

	if (p->digest) {
		words_of(p, l->module);
		fit_facts(p, ctas_of(l));
	}
}

bool inject_facts(const struct inject_pool *pool, const struct gpu_launch *l, struct inject_facts *f)
{
	struct own *p = own(pool);
	const struct words *w = p->digest ? words_of(p, l->module) : NULL;
	uint32_t nctas = ctas_of(l), cap = nctas ? room_for(nctas) : 0;
	struct { uint32_t x, y, z; } grid = { l->grid[0], l->grid[1], l->grid[2] },
		cluster = { l->cluster[0], l->cluster[1], l->cluster[2] };
	size_t bytes = (size_t)nctas * (sizeof(uint64_t) + sizeof(uint32_t));
	CUdeviceptr many = p->facts + (size_t)nctas * sizeof(uint64_t);
	void *digest[] = { &p->pool.at, &p->pool.chunks, w ? (void *)&w->at : NULL, w ? (void *)&w->n : NULL,
		&p->digests, &nctas, &many, &p->list, &cap };
	void *sign[] = { &p->digests, &many, &p->list, &cap, &grid, &cluster, &p->facts };

	if (!w || !cap || RECORD_CHUNK_BYTES + bytes > STAGE_BYTES || !fit_facts(p, nctas))
		return false;
	many = p->facts + (size_t)nctas * sizeof(uint64_t);
	if (cu.p_cuMemsetD8Async(many, 0, nctas * sizeof(uint32_t), p->side)
			|| cu.p_cuLaunchKernel(p->digest, p->blocks, 1, 1, 128, 1, 1, 0, p->side, digest, NULL)
			|| cu.p_cuLaunchKernel(p->sign, nctas, 1, 1, 1024, 1, 1, 0, p->side, sign, NULL)
			|| cu.p_cuMemcpyDtoHAsync(p->pinned, p->pool.at, RECORD_CHUNK_BYTES, p->side)
			|| cu.p_cuMemcpyDtoHAsync(p->pinned + RECORD_CHUNK_BYTES, p->facts, bytes, p->side)
			|| cu.p_cuStreamSynchronize(p->side))
		return false;
	*f = (struct inject_facts){ .head = (const void *)p->pinned, .room = cap };
	f->signature = (const void *)(p->pinned + RECORD_CHUNK_BYTES);
	f->many = (const void *)(f->signature + nctas);
	return true;
}

/* Chunks at these places in p->list, in pinned memory, after the head. */
static const void *gather(struct own *p, const uint32_t *want, uint32_t n)
{
	void *args[] = { &p->pool.at, &p->list, &p->digests, &p->stage };
	size_t bytes = (size_t)(n + 1) * RECORD_CHUNK_BYTES;

	if (bytes > STAGE_BYTES || !copy_words(p, p->digests, want, n * sizeof *want)
			|| cu.p_cuLaunchKernel(p->gather, n + 1, 1, 1, RECORD_CHUNK_UNITS, 1, 1, 0, p->side, args, NULL)
			|| !copy(p, p->pinned, p->stage, bytes))
		return NULL;
	return p->pinned;
}

/* Where a CTA has more chunks than the GPU puts together, the host does. */
static bool sign_here(const struct own *p, const struct gpu_launch *l, struct inject_facts *f,
	uint32_t chunks)
{
	struct launch_info i = { 0 };

	if (chunks * sizeof *f->digest > STAGE_BYTES ||
			!copy(p, p->pinned, p->digests, chunks * sizeof *f->digest))
		return false;
	f->digest = (const void *)p->pinned;
	memcpy(i.grid, l->grid, sizeof i.grid);
	memcpy(i.block, l->block, sizeof i.block);
	memcpy(i.cluster, l->cluster, sizeof i.cluster);
	f->signature = f->here = base_alloc(ctas_of(l) * sizeof *f->here);
	decode_sign(&i, f->digest, chunks, f->here);
	return true;
}

/* Places in p->list of the chunks that are wanted. */
static uint32_t places(const struct own *p, const struct gpu_launch *l, const struct inject_facts *f,
	uint32_t chunks, const uint8_t *skip, uint32_t *want)
{
	uint32_t nctas = ctas_of(l), n = 0;

	for (uint32_t k = 0; !f->digest && k < nctas; k++)
		if (!skip[gpu_cluster_of(l, k)])
			for (uint32_t i = 0; i < f->many[k] && n < chunks; i++)
				want[n++] = k * f->room + i;
	if (!f->digest)
		return n;
	for (uint32_t k = 0; k < chunks; k++)
		if (f->digest[k].cta < nctas && !skip[gpu_cluster_of(l, f->digest[k].cta)])
			want[n++] = k;
	if (n * sizeof *want > LIST_BYTES || !copy_words(p, p->list, want, n * sizeof *want)
			|| cu.p_cuStreamSynchronize(p->side))
		return UINT32_MAX;
	for (uint32_t k = 0; k < n; k++)
		want[k] = k;
	return n;
}

const void *inject_fetch_some(const struct inject_pool *pool, const struct gpu_launch *l,
	struct inject_facts *f, uint32_t chunks, uint8_t **skip, uint32_t *fetched)
{
	struct own *p = own(pool);
	uint32_t nctas = ctas_of(l), n, *want;
	const void *some = NULL;
	bool fit = true;

	for (uint32_t k = 0; k < nctas; k++)
		fit &= f->many[k] <= f->room;
	if (!fit && !sign_here(p, l, f, chunks))
		return NULL;
	*skip = base_alloc(nctas + 1);
	want = base_alloc((chunks + 1) * sizeof *want);
	if (gpu_alike(l, f->signature, *skip)) {
		n = places(p, l, f, chunks, *skip, want);
		some = n <= chunks / 2 ? gather(p, want, n) : NULL;
		*fetched = n;
	}
	free(want);
	free(f->here);
	if (some)
		return some;
	free(*skip);
	*skip = NULL;
	return NULL;
}
