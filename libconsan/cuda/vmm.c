/* vmm: see vmm.h. */
#include "vmm.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct mapping *) mapping;
static VEC(struct memory *) all;
static VEC(struct range { char *at; size_t bytes; }) reserved;
static _Atomic bool any;         /* address was ever reserved */

void vmm_lock(void)
{
	pthread_mutex_lock(&lock);
}

void vmm_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool whole(size_t n)
{
	return n % VMM_PAGE == 0;
}

/* ---- memory ---- */

struct memory *vmm_memory(CUmemGenericAllocationHandle handle)
{
	struct memory *m = handle_get((void *)(uintptr_t)handle, HANDLE_VMM);

	return m && m->handles ? m : NULL;
}

CUmemGenericAllocationHandle vmm_handle(struct memory *m)
{
	m->refs++;
	m->handles++;
	handle_put(m, HANDLE_VMM, m);
	return (uintptr_t)m;
}

void vmm_release(struct memory *m)
{
	if (--m->refs)
		return;
	handle_drop(m, HANDLE_VMM);
	for (size_t k = 0; k < m->bound.n; k++)
		vmm_release(m->bound.at[k].memory);
	vec_free(&m->bound);
	if (m->base)
		munmap(m->base, m->bytes);
	if (m->log) {
		ipc_race_forget(m->log);
		munmap(m->log, ipc_log_bytes());
	}
	if (m->fd >= 0) {
		close(m->fd);
		mem_uncount(m->device, m->bytes);
	}
	if (m->token > 0)
		close(m->token);
	for (size_t k = 0; k < all.n; k++)
		if (all.at[k] == m) {
			all.at[k] = all.at[--all.n];
			break;
		}
	free(m);
}

void vmm_add(struct memory *m)
{
	vec_push(&all, m);
}

/* The name of the file says which device has the memory, in the process that imports it, too. */
static struct memory *make(int fd, size_t bytes, int device, unsigned handle_types)
{
	struct memory *m = base_alloc(sizeof *m);

	*m = (struct memory){ .bytes = bytes, .device = device, .fd = fd, .handle_types = handle_types };
	vmm_add(m);
	return m;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *p,
	unsigned long long flags)
{
	int fd, error = drv_ready();
	char name[32];

	if (error)
		return drv(error);
	if (!handle || !p || flags || !bytes || !whole(bytes) || p->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->location.type != CU_MEM_LOCATION_TYPE_DEVICE
			|| p->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
		remark(REMARK_CALL_UNSUPPORTED, p->location.type != CU_MEM_LOCATION_TYPE_DEVICE
			? "cuMemCreate: memory of the host" : "cuMemCreate: handles other than file descriptors");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	error = device_check(p->location.id);
	if (!error)
		error = mem_count(p->location.id, bytes);
	if (error)
		return drv(error);
	snprintf(name, sizeof name, "consan-device-%d", p->location.id);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0 || !size_limit_set(fd, bytes)) {
		if (fd >= 0)
			close(fd);
		mem_uncount(p->location.id, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	vmm_lock();
	*handle = vmm_handle(make(fd, bytes, p->location.id, p->requestedHandleTypes));
	vmm_unlock();
	return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct memory *m;

	vmm_lock();
	m = vmm_memory(handle);
	if (m) {
		m->handles--;
		vmm_release(m);
	}
	vmm_unlock();
	return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at)
{
	struct mapping *map;

	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	vmm_lock();
	map = vmm_mapping(at);
	if (map)
		*handle = vmm_handle(map->memory);
	vmm_unlock();
	return map ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *p,
	CUmemGenericAllocationHandle handle)
{
	struct memory *m;

	vmm_lock();
	m = vmm_memory(handle);
	if (m && p)
		*p = (CUmemAllocationProp){ .type = CU_MEM_ALLOCATION_TYPE_PINNED,
			.requestedHandleTypes = (CUmemAllocationHandleType)m->handle_types,
			.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = m->device } };
	vmm_unlock();
	return m && p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *p,
	CUmemAllocationGranularity_flags option)
{
	if (!bytes || !p)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = VMM_PAGE;
	return drv(drv_initialised());
}

/* ---- other processes ----
 *
 * Memory that is exported has its log behind it, in the same file, whose size says so. */

static void watch(const struct mapping *map)
{
	if (map->memory->log)
		ipc_race_watch(map->memory->log, map->at, map->bytes, map->offset);
}

/* Its accesses are compared with those of other processes; without a log, they are not. */
static void map_log(struct memory *m)
{
	void *log = mmap(NULL, ipc_log_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, (off_t)m->bytes);

	if (log == MAP_FAILED)
		return;
	m->log = log;
	for (size_t k = 0; k < mapping.n; k++)
		if (mapping.at[k]->memory == m)
			watch(mapping.at[k]);
}

static void begin_sharing(struct memory *m)
{
	if (m->log || ipc_log_bytes() >= VMM_PAGE || !size_limit_set(m->fd, m->bytes + ipc_log_bytes()))
		return;
	map_log(m);
	ipc_begins();
}

#define TOKEN "consan-multicast"

/* The file that stands for the memory or the object in a handle; -1: it has none. */
static int file_of(struct memory *m)
{
	if (m->fd < 0 && !m->token)
		m->token = memfd_create(TOKEN, MFD_CLOEXEC);
	return m->fd >= 0 ? m->fd : m->token;
}

CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
	CUmemAllocationHandleType type, unsigned long long flags)
{
	struct memory *m;
	int fd = -1;

	vmm_lock();
	m = vmm_memory(handle);
	if (m && m->handle_types & type && type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		fd = dup(file_of(m));
	if (fd >= 0 && m->fd >= 0)
		begin_sharing(m);
	vmm_unlock();
	if (fd < 0 || !out || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

/* The device that the file's name says; TO_OBJECT: it stands for a multicast object; -1: it is
 * nothing of ours. */
enum { TO_OBJECT = -2 };
static int device_of_file(int fd)
{
	char path[64], name[128];
	ssize_t n;
	int device;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof name - 1);
	if (n <= 0)
		return -1;
	name[n] = '\0';
	if (!strncmp(name, "/memfd:" TOKEN, sizeof "/memfd:" TOKEN - 1))
		return TO_OBJECT;
	return sscanf(name, "/memfd:consan-device-%d", &device) == 1 ? device : -1;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *from,
	CUmemAllocationHandleType type)
{
	const int given = (int)(intptr_t)from;
	struct memory *m = NULL;
	struct stat is, of;
	int device, fd, error = drv_ready();

	if (error)
		return drv(error);
	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return handle ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	device = device_of_file(given);
	if (device == -1 || fstat(given, &is))
		return CUDA_ERROR_INVALID_VALUE;
	vmm_lock();
	for (size_t k = 0; k < all.n && !m; k++)
		if (!fstat(file_of(all.at[k]), &of) && of.st_ino == is.st_ino && of.st_dev == is.st_dev)
			m = all.at[k];
	if (!m && device == TO_OBJECT) {
		vmm_unlock();
		remark(REMARK_CALL_UNSUPPORTED,
			"cuMemImportFromShareableHandle: a multicast object of another process");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (!m && (fd = fcntl(given, F_DUPFD_CLOEXEC, 0)) >= 0) {
		m = make(fd, (size_t)is.st_size & ~(size_t)(VMM_PAGE - 1), device < device_count() ? device : 0, type);
		if (!whole((size_t)is.st_size))
			map_log(m);
		mem_count_always(m->device, m->bytes);
		ipc_begins();
	}
	if (m)
		*handle = vmm_handle(m);
	vmm_unlock();
	return m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- addresses ---- */

static char *reserve(char *wanted, size_t bytes, size_t align)
{
	char *at = MAP_FAILED, *aligned;
	size_t before;

	if (wanted)
		at = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE
			| MAP_FIXED_NOREPLACE, -1, 0);
	if (at != MAP_FAILED)
		return at;
	at = mmap(NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)at & (align - 1);
	aligned = at + before;
	if (before)
		munmap(at, before);
	munmap(aligned + bytes, align - before);
	return aligned;
}

CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t align, CUdeviceptr wanted,
	unsigned long long flags)
{
	int error = drv_ready();
	char *at;

	if (error)
		return drv(error);
	if (!out || !bytes || !whole(bytes) || flags || (align & (align - 1)) || !whole(wanted))
		return CUDA_ERROR_INVALID_VALUE;
	at = reserve((char *)(uintptr_t)wanted, bytes, align > VMM_PAGE ? align : VMM_PAGE);
	if (!at)
		return CUDA_ERROR_OUT_OF_MEMORY;
	vmm_lock();
	vec_push(&reserved, ((struct range){ at, bytes }));
	any = true;
	vmm_unlock();
	*out = (uintptr_t)at;
	return CUDA_SUCCESS;
}

/* Does a mapping lie in these addresses? */
static bool any_in(const char *at, size_t bytes)
{
	for (size_t k = 0; k < mapping.n; k++)
		if (mapping.at[k]->at < at + bytes && at < mapping.at[k]->at + mapping.at[k]->bytes)
			return true;
	return false;
}

CUresult cuMemAddressFree(CUdeviceptr at, size_t bytes)
{
	CUresult error = CUDA_ERROR_INVALID_VALUE;

	vmm_lock();
	for (size_t k = 0; k < reserved.n && error; k++) {
		if ((uintptr_t)reserved.at[k].at != at || reserved.at[k].bytes != bytes
				|| any_in(reserved.at[k].at, bytes))
			continue;
		munmap(reserved.at[k].at, bytes);
		reserved.at[k] = reserved.at[--reserved.n];
		error = CUDA_SUCCESS;
	}
	vmm_unlock();
	return error;
}

static bool in_reservation(const char *at, size_t bytes)
{
	for (size_t k = 0; k < reserved.n; k++)
		if (at >= reserved.at[k].at && at + bytes <= reserved.at[k].at + reserved.at[k].bytes)
			return true;
	return false;
}

/* ---- mappings ---- */

struct mapping *vmm_mapping(const void *at)
{
	for (size_t k = 0; k < mapping.n; k++)
		if ((uintptr_t)at - (uintptr_t)mapping.at[k]->at < mapping.at[k]->bytes)
			return mapping.at[k];
	return NULL;
}

uint64_t vmm_address(struct memory *m, size_t offset, size_t bytes)
{
	for (size_t k = 0; k < mapping.n; k++) {
		const struct mapping *map = mapping.at[k];

		if (map->memory == m && offset >= map->offset && offset + bytes <= map->offset + map->bytes)
			return (uintptr_t)map->at + offset - map->offset;
	}
	if (!m->base) {
		m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
		if (m->base == MAP_FAILED)
			m->base = NULL;
	}
	return m->base ? (uintptr_t)m->base + offset : 0;
}

bool vmm_usable(const void *at, size_t bytes)
{
	const char *p = at, *end = p + bytes;
	const struct mapping *map;
	bool ours = false, usable = true;

	if (!any)
		return true;
	vmm_lock();
	for (size_t k = 0; k < reserved.n && !ours; k++)
		ours = p < reserved.at[k].at + reserved.at[k].bytes && reserved.at[k].at < end;
	while (ours && usable && p < end) {
		map = vmm_mapping(p);
		usable = map && map->memory->fd >= 0;
		p = usable ? map->at + map->bytes : end;
	}
	vmm_unlock();
	return usable;
}

bool vmm_is_mapped(const void *at)
{
	bool is;

	if (!any)
		return false;
	vmm_lock();
	is = vmm_mapping(at) != NULL;
	vmm_unlock();
	return is;
}

static void show_multicast(struct mapping *map)
{
	struct memory *m = map->memory;
	VEC(struct consan_binding) list = { 0 };

	for (size_t k = 0; k < m->bound.n; k++) {
		const struct binding *b = &m->bound.at[k];
		const uint64_t at = vmm_address(b->memory, b->offset, b->bytes);

		if (at) /* relative to the mapping, which may begin inside the object */
			vec_push(&list, ((struct consan_binding){ (uintptr_t)map->at + b->from - map->offset,
				b->bytes, at, (unsigned)b->memory->device }));
	}
	consan_mem_multicast(map->at, map->bytes, map->access, m->devices, list.at, list.n);
	vec_free(&list);
}

void vmm_show(struct mapping *map)
{
	consan_mem_unmap(device_session(), map->at);
	if (map->memory->fd < 0)
		show_multicast(map);
	else
		consan_mem_map(map->at, map->bytes, (unsigned)map->memory->device, map->access,
			true);
}

static bool uses(const struct memory *object, const struct memory *m)
{
	for (size_t k = 0; k < object->bound.n; k++)
		if (object->bound.at[k].memory == m)
			return true;
	return object == m;
}

void vmm_refresh(const struct memory *m)
{
	for (size_t k = 0; k < mapping.n; k++)
		if (mapping.at[k]->memory->fd < 0 && uses(mapping.at[k]->memory, m))
			vmm_show(mapping.at[k]);
}

static bool mapped_elsewhere(const struct memory *m, size_t offset, size_t bytes)
{
	for (size_t k = 0; k < mapping.n; k++)
		if (mapping.at[k]->memory == m && mapping.at[k]->offset < offset + bytes
				&& offset < mapping.at[k]->offset + mapping.at[k]->bytes)
			return true;
	return false;
}

static int map_memory(char *at, size_t bytes, size_t offset, struct memory *m)
{
	struct mapping *map;
	bool twice;

	if (!m || !bytes || !whole((uintptr_t)at) || !whole(bytes) || !whole(offset) || offset > m->bytes
			|| bytes > m->bytes - offset || !in_reservation(at, bytes) || any_in(at, bytes))
		return cudaErrorInvalidValue;
	if (m->fd < 0 && __builtin_popcount(m->added) != (int)m->devices)
		return cudaErrorIllegalState;
	if (m->fd >= 0 && mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd,
			(off_t)offset) == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	twice = m->fd >= 0 && mapped_elsewhere(m, offset, bytes);
	map = base_alloc(sizeof *map);
	*map = (struct mapping){ at, bytes, offset, m, consan_access_new() };
	m->refs++;
	vec_push(&mapping, map);
	watch(map);
	vmm_show(map);
	vmm_refresh(m);
	if (twice)
		remark(REMARK_NOTE, "cuMemMap: the same memory is mapped at two addresses: accesses through "
			"one are not checked against accesses through the other");
	return 0;
}

CUresult cuMemMap(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
	unsigned long long flags)
{
	int error = drv_ready();

	if (error || flags)
		return drv(error ? error : cudaErrorInvalidValue);
	vmm_lock();
	error = map_memory((char *)(uintptr_t)at, bytes, offset, vmm_memory(handle));
	vmm_unlock();
	return drv(error);
}

/* Do whole mappings cover the addresses, without gaps? */
static bool covered(const char *at, size_t bytes)
{
	const char *end = at + bytes;

	while (at < end) {
		const struct mapping *map = vmm_mapping(at);

		if (!map || map->at != at || map->bytes > (size_t)(end - at))
			return false;
		at += map->bytes;
	}
	return true;
}

static void unmap(size_t k)
{
	struct mapping *map = mapping.at[k];

	mapping.at[k] = mapping.at[--mapping.n];
	ipc_race_unwatch(map->at);
	consan_mem_unmap(device_session(), map->at);
	mmap(map->at, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	vmm_refresh(map->memory);
	vmm_release(map->memory);
	free(map->access);
	free(map);
}

CUresult cuMemUnmap(CUdeviceptr at, size_t bytes)
{
	const char *from = (char *)(uintptr_t)at;
	int error = drv_ready();

	if (error)
		return drv(error);
	vmm_lock();
	if (!bytes || !covered(from, bytes))
		error = cudaErrorInvalidValue;
	for (size_t k = 0; !error && k < mapping.n;)
		if (mapping.at[k]->at >= from && mapping.at[k]->at < from + bytes)
			unmap(k);
		else
			k++;
	vmm_unlock();
	return drv(error);
}

CUresult cuMemSetAccess(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *list, size_t n)
{
	const char *from = (char *)(uintptr_t)at;
	int error = drv_ready();

	if (!error && (!bytes || !list || !n))
		error = cudaErrorInvalidValue;
	for (size_t i = 0; i < n && !error; i++)
		if (list[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
			error = device_check(list[i].location.id);
	if (error)
		return drv(error);
	vmm_lock();
	if (!covered(from, bytes))
		error = cudaErrorInvalidValue;
	for (size_t k = 0; k < mapping.n && !error; k++)
		for (size_t i = 0; i < n; i++)
			if (mapping.at[k]->at >= from && mapping.at[k]->at < from + bytes
					&& list[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE)
				consan_access_set(mapping.at[k]->access, (unsigned)list[i].location.id,
					list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE,
					list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	vmm_unlock();
	return drv(error);
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr at)
{
	const struct mapping *map;
	bool write;

	if (!flags || !where || where->type != CU_MEM_LOCATION_TYPE_DEVICE || device_check(where->id))
		return CUDA_ERROR_INVALID_VALUE;
	vmm_lock();
	map = vmm_mapping((void *)(uintptr_t)at);
	if (map)
		*flags = !consan_access_get(map->access, (unsigned)where->id, &write)
			? CU_MEM_ACCESS_FLAGS_PROT_NONE : write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			: CU_MEM_ACCESS_FLAGS_PROT_READ;
	vmm_unlock();
	return map ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
