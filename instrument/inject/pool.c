/* pool: device memory for the records of each context. If possible it also has a file
 * descriptor, through which it can be read after a fault of the kernel (rescue.c). */
#include "context_records.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "instrument/decode/decode.h"
#include "instrument/record/record.h"

#define LEAST_BYTES (16ull << 20)
#define LITTLE_BYTES (256ull << 20)
#define GRAIN_BYTES (2ull << 20)

static struct {
	pthread_mutex_t lock;
	VEC(struct context_records *) at;
	char *host;                /* for copies of more than STAGE_BYTES; grows */
	size_t host_bytes;
} pools = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Memory that other processes can map. False: not available on this machine. */
static bool allocate_shareable(struct context_records *p, CUdevice device, size_t want)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
	CUmemAccessDesc access = { .location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	int file = -1;

	if (!cu.p_cuMemCreate || !cu.p_cuMemExportToShareableHandle || !cu.p_cuMemAddressReserve
			|| !cu.p_cuMemMap || !cu.p_cuMemSetAccess || !cu.p_cuMemRelease ||
			!cu.p_cuMemAddressFree)
		return false;
	if (cu.p_cuMemCreate(&handle, want, &prop, 0))
		return false;
	if (cu.p_cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)) {
		cu.p_cuMemRelease(handle);
		return false;
	}
	inject_file_made(&p->pool, file);
	if (!cu.p_cuMemAddressReserve(&p->pool.at, want, 0, 0, 0)) {
		if (!cu.p_cuMemMap(p->pool.at, want, 0, handle, 0)
				&& !cu.p_cuMemSetAccess(p->pool.at, want, &access, 1)) {
			cu.p_cuMemRelease(handle); /* the mapping keeps the memory */
			return true;
		}
		cu.p_cuMemAddressFree(p->pool.at, want);
	}
	cu.p_cuMemRelease(handle);
	inject_close(&p->pool.file);
	p->pool.at = 0;
	return false;
}

static bool allocate(struct context_records *p, CUdevice device, size_t want)
{
	if (!allocate_shareable(p, device, want))
		return own_allocate(p, &p->pool.at, want);
	own_add(p, p->pool.at);
	return true;
}

/* The size without --gpu-memory: a quarter of what is free, and for each further context of the
 * device a quarter of that of the context before. */
static uint64_t default_bytes(CUdevice device)
{
	size_t free_bytes = 0, total = 0;

	cu.p_cuMemGetInfo(&free_bytes, &total);
	free_bytes /= 4;
	for (size_t k = 0; k < pools.at.n; k++)
		if (pools.at.at[k]->pool.device == device)
			free_bytes /= 4;
	return free_bytes;
}

/* The size to allocate, in units of GRAIN_BYTES; asked: --gpu-memory, in bytes; 0: not given. */
static uint64_t wanted(CUdevice device, uint64_t asked)
{
	uint64_t want = asked ? asked : default_bytes(device);

	if (asked && want < LEAST_BYTES)
		want = LEAST_BYTES;
	if (want > RECORD_MOST_BYTES)
		want = RECORD_MOST_BYTES;
	if (want != asked && asked)
		inject_remark(REMARK_NOTE, "--gpu-memory: %llu to %llu MiB are of use",
			LEAST_BYTES >> 20, RECORD_MOST_BYTES >> 20);
	return (want + (asked ? GRAIN_BYTES - 1 : 0)) & ~(GRAIN_BYTES - 1);
}

/* Allocates all of it in the current context. False: there is not enough memory. */
static bool fill(struct context_records *p, CUdevice device)
{
	const uint64_t asked = gpu_memory(inject_session()), most = wanted(device, asked);
	uint64_t want = most;

	while (want >= LEAST_BYTES && !allocate(p, device, want))
		want = want / 2 & ~(GRAIN_BYTES - 1);
	if (!p->pool.at || want < LEAST_BYTES)
		return false;
	if (want < (asked ? most : LITTLE_BYTES))
		inject_remark(REMARK_NOTE,
			"records have %llu MiB of device memory, as there was no more",
			(unsigned long long)(want >> 20));
	p->pool.bytes = want;
	p->pool.device = device;
	p->pool.chunks = RECORD_CHUNKS(want);
	if (cu.p_cuStreamCreate(&p->side, CU_STREAM_NON_BLOCKING)
			|| cu.p_cuStreamCreate(&p->beside, CU_STREAM_NON_BLOCKING)
			|| cu.p_cuMemAllocHost((void **)&p->pinned, STAGE_BYTES))
		return false;
	own_add(p, (CUdeviceptr)(uintptr_t)p->pinned);
	if (!own_allocate(p, &p->ticket, 16))
		return false;
	/* not in the default stream: a launch of the program may hold it up */
	cu.p_cuMemsetD8Async(p->pool.at, 0, want, p->side);
	context_records_load_digest(p, device);
	context_records_load_screen(p);
	return !cu.p_cuStreamSynchronize(p->side);
}

void inject_make_spares(struct inject_pool *pool)
{
	struct context_records *p = context_records(pool);
	const uint64_t each = (pool->bytes / 32 + GRAIN_BYTES - 1) & ~(GRAIN_BYTES - 1);
	CUdeviceptr at = 0;

	if (p->spare[0].at || !own_allocate(p, &at, RECORD_SPARES * each))
		return;
	cu.p_cuMemsetD8Async(at, 0, RECORD_SPARES * each, p->side);
	for (unsigned k = 0; k < RECORD_SPARES; k++)
		p->spare[k] = (struct inject_pool){ .at = at + k * each, .bytes = each,
			.chunks = RECORD_CHUNKS(each), .device = pool->device, .file = -1, .records = p };
	cu.p_cuStreamSynchronize(p->side);
}

uint32_t inject_drawn(const struct inject_pool *pool)
{
	const struct record_head *head = inject_fetch(pool, sizeof *head);

	return head ? head->next : 0;
}

bool inject_is_spare(const struct inject_pool *pool)
{
	return pool != &context_records(pool)->pool;
}

struct inject_pool *inject_free_pool(struct inject_pool *pool)
{
	struct context_records *p = context_records(pool);

	if (!p->pool.users)
		return &p->pool;
	for (unsigned k = 0; k < RECORD_SPARES; k++)
		if (p->spare[k].at && !p->spare[k].users)
			return &p->spare[k];
	return NULL;
}

/* Memory with a file descriptor outlives its context and is freed here. All else is freed with
 * the context. */
static void drop(struct context_records *p)
{
	own_drop(p);
	if (p->pool.file >= 0 && cu.p_cuMemUnmap && !cu.p_cuMemUnmap(p->pool.at, p->pool.bytes))
		cu.p_cuMemAddressFree(p->pool.at, p->pool.bytes);
	if (inject_has_file(&p->pool))
		inject_close(&p->pool.file);
	vec_free(&p->words);
	free(p);
}

bool inject_is_primary(CUcontext context, CUdevice device)
{
	CUcontext primary = NULL;
	unsigned flags;
	int active = 0;

	if (!cu.p_cuDevicePrimaryCtxGetState || !cu.p_cuDevicePrimaryCtxRetain ||
			!cu.p_cuDevicePrimaryCtxRelease
			|| cu.p_cuDevicePrimaryCtxGetState(device, &flags, &active) || !active
			|| cu.p_cuDevicePrimaryCtxRetain(&primary, device))
		return false;
	cu.p_cuDevicePrimaryCtxRelease(device);
	return primary == context;
}

/* The caller holds the lock. */
static struct context_records *find_records(CUcontext context, unsigned long long id)
{
	for (size_t k = 0; k < pools.at.n; k++) {
		struct context_records *p = pools.at.at[k];

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

static void name_device(CUdevice device)
{
	char name[256];

	if (cu.p_cuDeviceGetName && !cu.p_cuDeviceGetName(name, sizeof name, device))
		gpu_named(inject_session(), name);
}

static struct context_records *make(CUcontext context, unsigned long long id)
{
	struct context_records *p = base_alloc(sizeof *p);
	CUdevice device = 0;

	cu.p_cuCtxGetDevice(&device);
	name_device(device);
	*p = (struct context_records){ .pool = { .file = -1, .records = p }, .context = context, .id = id };
	p->primary = inject_is_primary(context, device);
	if (fill(p, device)) {
		vec_push(&pools.at, p);
		return p;
	}
	if (p->side) /* the memset of fill() may still run */
		cu.p_cuStreamSynchronize(p->side);
	if (p->pool.at && p->pool.file < 0)
		cu.p_cuMemFree(p->pool.at);
	drop(p);
	return NULL;
}

struct inject_pool *inject_pool(void)
{
	unsigned long long id = 0;
	CUcontext now = NULL;
	struct context_records *p;

	if (cu.p_cuCtxGetCurrent(&now) || !now)
		return NULL;
	if (cu.p_cuCtxGetId)
		cu.p_cuCtxGetId(now, &id);
	pthread_mutex_lock(&pools.lock);
	p = find_records(now, id);
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
		struct context_records *p = pools.at.at[k];

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

	/* it fails while some stream is captured: using the default stream would end the capture */
	if (cu.p_cuCtxGetCurrent(&now) || !now || !cu.p_cuStreamIsCapturing
			|| cu.p_cuStreamIsCapturing(CU_STREAM_LEGACY, &status))
		return;
	inject_pool();
}

/* A buffer of at least so many bytes, whose content is lost; NULL: there is no memory. */
static char *grown(char **at, size_t *have, size_t bytes)
{
	if (*have >= bytes)
		return *at;
	free(*at);
	*at = malloc(bytes + bytes / 4);
	*have = *at ? bytes + bytes / 4 : 0;
	return *at;
}

bool context_records_copy(const struct context_records *p, void *to, CUdeviceptr from, size_t bytes)
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
	const struct context_records *p = context_records(pool);
	char *to = bytes <= STAGE_BYTES ? p->pinned : grown(&pools.host, &pools.host_bytes, bytes);

	return to && context_records_copy(p, to, pool->at, bytes) ? to : NULL;
}

void inject_empty(const struct inject_pool *pool, uint32_t chunks)
{
	const CUstream s = context_records(pool)->side;

	cu.p_cuMemsetD8Async(pool->at, 0, (size_t)chunks * RECORD_CHUNK_BYTES, s);
	if (gpu_drains(inject_session()))
		cu.p_cuMemsetD8Async(pool->at + RECORD_RING_AT(pool->chunks) + RECORD_MARKS_AT, 0,
			4 * ((size_t)chunks + 1), s);
}

void inject_empty_all(const struct inject_pool *pool)
{
	cu.p_cuMemsetD8Async(pool->at, 0, pool->bytes, context_records(pool)->side);
}

void inject_emptied(const struct inject_pool *pool)
{
	cu.p_cuStreamSynchronize(context_records(pool)->side);
}

void inject_context_ended(CUcontext context, CUdevice device)
{
	inject_lock();
	inject_modules_ended(context, device);
	inject_graphs_ended(context, device);
	inject_drop_pools(context, device);
	inject_memory_ended(context, device);
	inject_unlock();
}
