/* memory: allocations, copies and fills. Device memory is host memory that kernels may
 * access, so a copy is a memmove() after its ranges are checked. */
#include "queue.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Alignment of the rows of a pitched allocation, bytes. */
enum { PITCH = 512 };
/* Device memory in bytes, unless the host has less. */
#define MEMORY_TOTAL (UINT64_C(80) << 30)

static _Atomic uint64_t in_use[CONSAN_DEVICES];

static uint64_t memory_total(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES); /* a filter of system calls may forbid to ask */
	const uint64_t host = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : UINT64_MAX;

	return host < MEMORY_TOTAL ? host : MEMORY_TOTAL;
}

/* All devices take theirs from the host's. */
static uint64_t memory_used(void)
{
	uint64_t sum = 0;

	for (int d = 0; d < CONSAN_DEVICES; d++)
		sum += in_use[d];
	return sum;
}

static int no_memory(size_t bytes)
{
	remark(REMARK_NOTE, "out of device memory: %zu MiB requested, %zu MiB in use; the "
		"emulated GPU has %zu MiB, taken from host memory", bytes >> 20,
		(size_t)memory_used() >> 20, (size_t)memory_total() >> 20);
	return cudaErrorMemoryAllocation;
}

/* access: as for consan_malloc_on() */
static int alloc(void **at, size_t bytes, enum consan_mem kind, int device,
	const struct exec_access *access)
{
	int error = device_ready();

	if (error)
		return error;
	if (bytes > memory_total() || memory_used() + bytes > memory_total())
		return no_memory(bytes);
	*at = consan_malloc_on(device_session(), bytes, kind, (unsigned)device, access);
	if (!*at)
		return no_memory(bytes);
	in_use[device] += bytes;
	handle_put(*at, HANDLE_MEMORY, *at);
	order_forget(hb(), (uint64_t)(uintptr_t)*at, bytes);
	if (kind != CONSAN_MEM_DEVICE)
		guard_add(*at, (bytes + 4095) / 4096 * 4096);
	return 0;
}

int mem_count(int device, size_t bytes)
{
	if (bytes > memory_total() || memory_used() + bytes > memory_total())
		return no_memory(bytes);
	in_use[device] += bytes;
	return 0;
}

void mem_count_always(int device, size_t bytes)
{
	in_use[device] += bytes;
}

void mem_uncount(int device, size_t bytes)
{
	in_use[device] -= bytes;
}

void mem_of_other_process(void)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&reported))
		remark(REMARK_NOTE, "memory is shared with another process: its accesses are not checked "
			"against those of this one, but for those of operations to memory that no kernel uses to "
			"synchronize and no shared event orders");
}

int mem_alloc(void **at, size_t bytes, enum consan_mem kind)
{
	int error = device_ready();

	if (error)
		return error;
	if (!at)
		return cudaErrorInvalidValue;
	*at = NULL;
	return bytes ? alloc(at, bytes, kind, device_now(), NULL) : 0;
}

int mem_alloc_pitch(void **at, size_t *pitch, size_t width, size_t rows)
{
	size_t bytes;

	if (!at || !pitch)
		return cudaErrorInvalidValue;
	*pitch = (width + PITCH - 1) / PITCH * PITCH;
	if (__builtin_mul_overflow(*pitch, rows, &bytes))
		return cudaErrorMemoryAllocation;
	return mem_alloc(at, bytes, CONSAN_MEM_DEVICE);
}

/* Stored as flags + 1, because the value of a handle must not be NULL. */
static void keep_flags(const void *at, unsigned flags)
{
	handle_put(at, HANDLE_HOST, (void *)(uintptr_t)(flags + 1));
}

/* Portable, mapped and write-combined are flags of cudaHostAlloc(). */
int mem_alloc_host(void **at, size_t bytes, unsigned flags)
{
	int error = flags > 7 ? cudaErrorInvalidValue : mem_alloc(at, bytes, CONSAN_MEM_HOST);

	if (!error && *at)
		keep_flags(*at, flags | cudaHostAllocMapped);
	return error;
}

/* Ends the life of an allocation, as far as the program can name it. An error: it was not allocated
 * here, such as a variable of a module, or registered memory. */
static int forget(void *at, bool host)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	if (!handle_get(at, HANDLE_MEMORY)
			|| !consan_mem_find(device_session(), at, &base, &bytes, &kind)
			|| (kind == CONSAN_MEM_HOST) != host)
		return cudaErrorInvalidValue;
	handle_drop(at, HANDLE_MEMORY);
	handle_drop(at, HANDLE_HOST);
	handle_drop(at, HANDLE_OWNED);
	return 0;
}

void mem_release(void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	int device;

	if (!consan_mem_find(device_session(), at, &base, &bytes, &kind))
		return;
	device = consan_mem_device(at);
	guard_remove(at);
	if (ipc_released(at))
		return;
	if (consan_free(device_session(), at))
		in_use[device] -= bytes;
}

/* waits: the call waits for the device, which orders the program's operations. */
static int release(void *at, bool host, bool waits)
{
	int error = device_ready();

	if (error || !at)
		return error;
	hb_begin();
	error = waits ? stream_sync_all(-1) : engine_wait_all(-1);
	hb_released(error ? NULL : at);
	if (error)
		return error;
	error = forget(at, host);
	if (!error)
		mem_release(at);
	return error;
}

int mem_alloc_async(void **at, size_t bytes, struct pool *pool, struct stream *s)
{
	struct op op;
	int error = !s->capture ? mem_alloc_pool(at, bytes, pool)
		: at ? graph_alloc(s->capture, bytes, &op) : cudaErrorInvalidValue;

	if (!error && s->capture) {
		*at = op.memory.at;
		return stream_capture_op(s, &op);
	}
	if (!error && *at)
		hb_alloc(s, *at, bytes);
	return error;
}

int mem_free_async(void *at, const void *stream)
{
	struct op op = { .kind = OP_FREE, .at = at };
	int error = device_ready();

	if (error || !at)
		return error;
	if (stream_of(stream) && stream_of(stream)->capture) {
		error = graph_release(stream_of(stream)->capture, at, &op);
		return error ? error : stream_issue(stream, &op, false);
	}
	if (stream_any_capture())
		return mem_free(at);
	error = forget(at, false);
	return error ? error : stream_issue(stream, &op, false);
}

/* CUDA forbids cudaFree() during most captures. PyTorch without its caching allocator calls it for
 * buffers of the graph, which the graph's launches use: these stay allocated. */
static int free_memory(void *at, bool waits)
{
	if (at && stream_any_capture())
		return mem_check(at, 1) ? cudaErrorInvalidValue : 0;
	/* after a fault: PyTorch's destructors of tensors throw, which ends the process */
	if (consan_python_program() && device_session() && device_ready())
		return 0;
	return release(at, false, waits);
}

int mem_free(void *at)
{
	return free_memory(at, true);
}

/* Does PyTorch's allocator call? consan switches its caching off (libconsan/python/consan_setup.py), so
 * that it returns what it would keep otherwise, without waiting for the device. */
static bool is_cache(const void *caller)
{
	Dl_info info;

	return consan_python_program() && dladdr(caller, &info) && info.dli_fname
		&& strstr(info.dli_fname, "libc10_cuda");
}

int mem_free_from(void *at, const void *caller)
{
	return free_memory(at, !is_cache(caller));
}

int mem_free_host(void *at)
{
	return release(at, true, true);
}

int mem_register(void *at, size_t bytes, unsigned flags)
{
	int error = device_ready();

	if (error)
		return error;
	if (!at || !bytes || flags > 15)
		return cudaErrorInvalidValue;
	if (!mem_check(at, 1))
		return cudaErrorHostMemoryAlreadyRegistered;
	consan_mem_register(device_session(), at, bytes);
	guard_add(at, bytes);
	ipc_registered(at);
	keep_flags(at, flags | cudaHostRegisterMapped);
	return 0;
}

int mem_unregister(void *at)
{
	int error = stream_sync_all(-1);

	if (error)
		return error;
	if (handle_get(at, HANDLE_HOST))
		guard_remove(at);
	if (!handle_drop(at, HANDLE_HOST) || !consan_mem_unregister(device_session(), at))
		return cudaErrorHostMemoryNotRegistered;
	return 0;
}

bool mem_host_flags(const void *at, unsigned *flags)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base, *kept;

	if (!consan_mem_find(device_session(), at, &base, &bytes, &kind))
		return false;
	kept = handle_get(base, HANDLE_HOST);
	if (!kept)
		return false;
	*flags = (unsigned)(uintptr_t)kept - 1;
	return true;
}

void mem_info(size_t *free_bytes, size_t *total)
{
	*total = memory_total();
	*free_bytes = *total - in_use[device_now()];
}

void mem_info_at(int place, size_t *used, size_t *total)
{
	*total = memory_total();
	*used = 0;
	for (int d = 0; d < device_count(); d++)
		if (device_place(d) == place)
			*used = in_use[d];
}

int mem_check_host(const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	return consan_mem_find(device_session(), at, &base, &bytes, &kind) && kind != CONSAN_MEM_DEVICE ? 0
		: cudaErrorInvalidValue;
}

int mem_attach(const void *at, size_t bytes, unsigned flags)
{
	enum consan_mem kind;
	uint64_t whole;
	void *base;

	if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost && flags != cudaMemAttachSingle)
		return cudaErrorInvalidValue;
	return consan_mem_find(device_session(), at, &base, &whole, &kind) && kind == CONSAN_MEM_MANAGED
		&& (!bytes || bytes == whole) ? 0 : cudaErrorInvalidValue;
}

/* Mappings may lie side by side. */
int mem_check(const void *at, size_t bytes)
{
	const char *p = at;
	enum consan_mem kind;
	uint64_t size, left;
	void *base;

	while (bytes) {
		if (!consan_mem_find(device_session(), p, &base, &size, &kind)
				|| (p != at && !vmm_is_mapped(p)))
			return cudaErrorInvalidValue;
		left = size - (uint64_t)(p - (const char *)base);
		if (bytes <= left)
			break;
		bytes -= left;
		p += left;
	}
	return 0;
}

bool mem_pageable(const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	return !consan_mem_find(device_session(), at, &base, &bytes, &kind);
}

bool mem_on_device(const void *at)
{
	enum consan_mem kind;
	uint64_t bytes;
	void *base;

	return consan_mem_find(device_session(), at, &base, &bytes, &kind) && kind == CONSAN_MEM_DEVICE;
}

/* ---- copies ---- */

struct copy copy_line(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind)
{
	return (struct copy){ .dst = dst, .src = src, .dst_pitch = bytes, .src_pitch = bytes,
		.width = bytes, .height = 1, .depth = 1, .kind = kind };
}

struct copy copy_plane(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
	size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return (struct copy){ .dst = dst, .src = src, .dst_pitch = dst_pitch,
		.src_pitch = src_pitch, .width = width, .height = height, .depth = 1,
		.kind = kind };
}

/* Bytes from the first to the last byte accessed; more than there is if that is no number. */
static size_t span(size_t width, size_t height, size_t depth, size_t pitch, size_t slice)
{
	size_t slices, rows, sum;

	if (__builtin_mul_overflow(depth - 1, slice, &slices) || __builtin_mul_overflow(height - 1, pitch, &rows)
			|| __builtin_add_overflow(slices, rows, &sum) || __builtin_add_overflow(sum, width, &sum))
		return SIZE_MAX;
	return sum;
}

int copy_check(const struct copy *c)
{
	bool to_device = c->kind == cudaMemcpyHostToDevice || c->kind == cudaMemcpyDeviceToDevice;
	bool from_device = c->kind == cudaMemcpyDeviceToHost || c->kind == cudaMemcpyDeviceToDevice;
	int error = device_ready();

	if (error)
		return error;
	if ((unsigned)c->kind > cudaMemcpyDefault)
		return cudaErrorInvalidMemcpyDirection;
	if (!c->width || !c->height || !c->depth)
		return 0;
	if (!c->dst || !c->src)
		return cudaErrorInvalidValue;
	if (c->height > 1 && (c->dst_pitch < c->width || c->src_pitch < c->width))
		return cudaErrorInvalidPitchValue;
	if (!vmm_usable(c->dst, span(c->width, c->height, c->depth, c->dst_pitch, c->dst_slice))
			|| !vmm_usable(c->src, span(c->width, c->height, c->depth, c->src_pitch,
				c->src_slice)))
		return cudaErrorInvalidValue;
	if (to_device)
		error = mem_check(c->dst, span(c->width, c->height, c->depth, c->dst_pitch,
			c->dst_slice));
	if (!error && from_device)
		error = mem_check(c->src, span(c->width, c->height, c->depth, c->src_pitch,
			c->src_slice));
	return error;
}

void copy_run(const struct copy *c)
{
	size_t y, z;

	for (z = 0; z < c->depth; z++)
		for (y = 0; y < c->height && c->width; y++)
			memmove((char *)c->dst + z * c->dst_slice + y * c->dst_pitch,
				(const char *)c->src + z * c->src_slice + y * c->src_pitch,
				c->width);
}

size_t copy_bytes(const struct copy *c)
{
	return c->width * c->height * c->depth;
}

void copy_stage(struct copy *c)
{
	struct copy in = *c;

	in.dst = c->staged = base_alloc(copy_bytes(c) + 1);
	in.dst_pitch = c->width;
	in.dst_slice = c->width * c->height;
	copy_run(&in);
	c->src = c->staged;
	c->src_pitch = in.dst_pitch;
	c->src_slice = in.dst_slice;
}

int fill_check(const struct fill *f)
{
	int error = device_ready();
	size_t width, bytes;

	if (error)
		return error;
	if (!f->width || !f->height || !f->depth)
		return 0;
	if ((uintptr_t)f->dst % f->unit || __builtin_mul_overflow(f->width, f->unit, &width))
		return cudaErrorInvalidValue;
	if (f->height > 1 && f->pitch < width)
		return cudaErrorInvalidPitchValue;
	bytes = span(width, f->height, f->depth, f->pitch, f->slice);
	return vmm_usable(f->dst, bytes) ? mem_check(f->dst, bytes) : cudaErrorInvalidValue;
}

static void fill_row(char *at, const struct fill *f)
{
	size_t x;

	switch (f->unit) {
	case 1:
		memset(at, (int)f->value, f->width);
		break;
	case 2:
		for (x = 0; x < f->width; x++)
			((uint16_t *)at)[x] = (uint16_t)f->value;
		break;
	case 4:
		for (x = 0; x < f->width; x++)
			((uint32_t *)at)[x] = f->value;
		break;
	}
}

void fill_run(const struct fill *f)
{
	size_t y, z;

	for (z = 0; z < f->depth; z++)
		for (y = 0; y < f->height; y++)
			fill_row((char *)f->dst + z * f->slice + y * f->pitch, f);
}

/* ---- pools ---- */

struct pool {
	int device;
	struct exec_access *access;  /* of the devices to its memory */
	uint64_t attribute[CU_MEMPOOL_ATTR_USED_MEM_HIGH + 1];
};
static struct pool *of_device[CONSAN_DEVICES], *_Atomic used_now[CONSAN_DEVICES];

/* A pool's access outlives it, as its allocations may. */
static struct pool *make_pool(int device)
{
	struct pool *p = base_alloc(sizeof *p);

	p->device = device;
	p->access = consan_access_new();
	consan_access_set(p->access, (unsigned)device, true, true);
	handle_put(p, HANDLE_POOL, p);
	return p;
}

struct pool *pool_default(int device)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&lock);
	if (!of_device[device])
		of_device[device] = make_pool(device);
	pthread_mutex_unlock(&lock);
	return of_device[device];
}

struct pool *pool_now(int device)
{
	struct pool *p = used_now[device];

	return p ? p : pool_default(device);
}

void pool_use(int device, struct pool *p)
{
	used_now[device] = p;
}

struct pool *pool_of(const void *handle)
{
	return handle_get(handle, HANDLE_POOL);
}

int pool_new(struct pool **out, int device)
{
	int error = device_check(device);

	if (!error)
		error = device_ready();
	if (!error)
		*out = make_pool(device);
	return error;
}

int pool_free(const void *handle)
{
	struct pool *p = pool_of(handle);

	if (!p || p == of_device[p->device])
		return cudaErrorInvalidValue;
	handle_drop(handle, HANDLE_POOL);
	if (used_now[p->device] == p)
		used_now[p->device] = NULL;
	free(p);
	return 0;
}

int pool_device(const struct pool *p)
{
	return p->device;
}

struct exec_access *pool_access(const struct pool *p)
{
	return p->access;
}

int mem_alloc_pool(void **at, size_t bytes, struct pool *p)
{
	int error = device_ready();

	if (error)
		return error;
	if (!at || !p)
		return cudaErrorInvalidValue;
	*at = NULL;
	return bytes ? alloc(at, bytes, CONSAN_MEM_DEVICE, p->device, p->access) : 0;
}

int pool_set_access(const void *handle, const struct cudaMemAccessDesc *list, size_t n)
{
	struct pool *p = pool_of(handle);

	if (!p || (n && !list))
		return cudaErrorInvalidValue;
	for (size_t i = 0; i < n; i++) {
		if (list[i].location.type != cudaMemLocationTypeDevice || device_check(list[i].location.id))
			return cudaErrorInvalidDevice;
		if (list[i].location.id == p->device && list[i].flags != cudaMemAccessFlagsProtReadWrite)
			return cudaErrorInvalidDevice;
	}
	for (size_t i = 0; i < n; i++)
		consan_access_set(p->access, (unsigned)list[i].location.id,
			list[i].flags != cudaMemAccessFlagsProtNone,
			list[i].flags == cudaMemAccessFlagsProtReadWrite);
	return 0;
}

int pool_get_access(const void *handle, const struct cudaMemLocation *where, int *flags)
{
	struct pool *p = pool_of(handle);
	bool write;

	if (!p || !where || !flags || where->type != cudaMemLocationTypeDevice || device_check(where->id))
		return cudaErrorInvalidValue;
	*flags = !consan_access_get(p->access, (unsigned)where->id, &write) ? cudaMemAccessFlagsProtNone
		: write ? cudaMemAccessFlagsProtReadWrite : cudaMemAccessFlagsProtRead;
	return 0;
}

/* The reuse switches (numbers 1 to 3) are ints, the sizes 64 bits. */
int pool_attribute(const void *handle, int attribute, void *get, const void *set)
{
	struct pool *p = pool_of(handle);
	size_t bytes = attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES
		? sizeof(int) : sizeof(uint64_t);

	if (!p || attribute < 1 || (size_t)attribute >= ARRAY_SIZE(p->attribute))
		return cudaErrorInvalidValue;
	if (set)
		memcpy(&p->attribute[attribute], set, bytes);
	else if (get)
		memcpy(get, &p->attribute[attribute], bytes);
	return set || get ? 0 : cudaErrorInvalidValue;
}
