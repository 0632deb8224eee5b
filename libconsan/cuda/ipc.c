/* ipc: memory and events that processes share. Memory that is exported becomes a file without a name
 * that is mapped in its place; the handle names the process and its descriptor, by which another
 * process of the same user opens it. An event is a page with counters. */
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096, HIGH_FD = 512 }; /* programs close low descriptors that they do not know */

struct handle {
	char magic[8];
	int32_t pid, fd, device;
	uint32_t flags;              /* of an event */
	uint64_t inode, bytes;
};
_Static_assert(sizeof(struct handle) <= sizeof(cudaIpcMemHandle_t), "it fits");
static const char memory_file[] = "consan-ipc", event_file[] = "consan-event";
static const char memory_magic[8] = "consanM", event_magic[8] = "consanE";

struct ipc_memory {
	char *at;
	size_t bytes;                /* of the allocation; its pages are shared */
	int fd;
	uint64_t inode;
	unsigned opened;             /* of another process: how often; 0: ours */
	struct exec_access *access;  /* of another process */
	struct ipc_log *log;         /* ipc_race.c; NULL: none */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct ipc_memory) shared;
static _Atomic bool any;

bool ipc_any(void)
{
	return any;
}

void ipc_begins(void)
{
	any = true;
	mem_of_other_process();
}

void ipc_registered(const void *at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long long from, to;
	char line[512], how[8];

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%llx-%llx %7s", &from, &to, how) == 3 && (uintptr_t)at - from < to - from
				&& how[3] == 's')
			ipc_begins();
	if (f)
		fclose(f);
}

static size_t span(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static struct ipc_memory *find(const void *at)
{
	for (size_t k = 0; k < shared.n; k++)
		if (shared.at[k].at == at)
			return &shared.at[k];
	return NULL;
}

/* A file of n bytes; -1: none. */
static int make_file(const char *name, size_t n, uint64_t *inode)
{
	int fd = memfd_create(name, MFD_CLOEXEC), high;
	struct stat is;

	if (fd < 0)
		return -1;
	high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	close(fd);
	if (high >= 0 && size_limit_set(high, n) && !fstat(high, &is)) {
		*inode = is.st_ino;
		return high;
	}
	if (high >= 0)
		close(high);
	return -1;
}

/* Opens the file of a handle, which has n bytes and was made by make_file(); -1: its process has ended, or
 * is not of this user. A handle may come from anywhere. */
static int open_file(const struct handle *h, const char *name, size_t n)
{
	char path[64], link[64] = "", expected[64];
	struct stat is;
	int fd;

	snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->fd);
	snprintf(expected, sizeof expected, "/memfd:%s (deleted)", name);
	if (readlink(path, link, sizeof link - 1) < 0 || strcmp(link, expected))
		return -1;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &is) && is.st_ino == h->inode && is.st_size == (off_t)n)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- memory ---- */

/* Called while no device work runs. */
static void make_shared(void *user)
{
	struct ipc_memory *m = user;
	const size_t n = span(m->bytes);
	char *copy;

	m->fd = make_file(memory_file, n + span(ipc_log_bytes()), &m->inode);
	if (m->fd < 0)
		return;
	copy = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (copy != MAP_FAILED) {
		memcpy(copy, m->at, n);
		munmap(copy, n);
		copy = mmap(m->at, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, m->fd, 0);
	}
	if (copy != MAP_FAILED)
		return;
	close(m->fd);
	m->fd = -1;
}

/* Its accesses are compared with those of the other processes. The caller holds the lock. */
static void watch(struct ipc_memory *m)
{
	void *log;

	if (m->log)
		return;
	log = mmap(NULL, span(ipc_log_bytes()), PROT_READ | PROT_WRITE, MAP_SHARED, m->fd,
		(off_t)span(m->bytes));
	if (log == MAP_FAILED)
		return;
	m->log = log;
	ipc_race_watch(m->log, m->at, m->bytes, 0);
}

int ipc_export(const void *at, void *out)
{
	struct ipc_memory new = { .fd = -1 }, *m;
	struct handle *h = out;
	enum consan_mem kind;
	uint64_t bytes;
	void *base;
	int error = device_ready();

	if (error)
		return error;
	if (!out || !consan_mem_find(device_session(), at, &base, &bytes, &kind)
			|| kind != CONSAN_MEM_DEVICE || !handle_get(base, HANDLE_MEMORY))
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&lock);
	m = find(base);
	if (!m) {
		new.at = base;
		new.bytes = bytes;
		engine_still(make_shared, &new);
		if (new.fd >= 0)
			vec_push(&shared, new);
		m = new.fd >= 0 ? &shared.at[shared.n - 1] : NULL;
	}
	if (m && m->opened)
		m = NULL;
	if (m) {
		watch(m);
		memset(out, 0, sizeof(cudaIpcMemHandle_t));
		*h = (struct handle){ .pid = getpid(), .fd = m->fd, .device = consan_mem_device(base),
			.inode = m->inode, .bytes = bytes };
		memcpy(h->magic, memory_magic, sizeof h->magic);
	}
	pthread_mutex_unlock(&lock);
	if (m)
		ipc_begins();
	return m ? 0 : new.at ? cudaErrorMemoryAllocation : cudaErrorInvalidValue;
}

/* pool: the memory is of this pool, else of the device that has it. */
int ipc_open(const void *handle, struct exec_access *pool, void **out)
{
	const struct handle *h = handle;
	struct ipc_memory m;
	int error = device_ready();

	if (error)
		return error;
	if (!out || memcmp(h->magic, memory_magic, sizeof h->magic))
		return cudaErrorInvalidValue;
	if (h->pid == getpid()) /* "CUDA error: invalid device context" on a GPU */
		return cudaErrorDeviceUninitialized;
	pthread_mutex_lock(&lock);
	for (size_t k = 0; k < shared.n; k++)
		if (shared.at[k].opened && shared.at[k].inode == h->inode) {
			shared.at[k].opened++;
			*out = shared.at[k].at;
			pthread_mutex_unlock(&lock);
			return 0;
		}
	m = (struct ipc_memory){ .bytes = h->bytes, .inode = h->inode, .opened = 1,
		.fd = open_file(h, memory_file, span(h->bytes) + span(ipc_log_bytes())) };
	m.at = m.fd < 0 ? MAP_FAILED
		: mmap(NULL, span(m.bytes), PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	if (m.at == MAP_FAILED) {
		if (m.fd >= 0)
			close(m.fd);
		pthread_mutex_unlock(&lock);
		return cudaErrorMapBufferObjectFailed;
	}
	if (!pool) { /* of this device, by cudaIpcMemLazyEnablePeerAccess, and of the one that has it */
		m.access = consan_access_new();
		consan_access_set(m.access, (unsigned)device_now(), true, true);
		if (!device_check(h->device))
			consan_access_set(m.access, (unsigned)h->device, true, true);
	}
	consan_mem_map(m.at, m.bytes, device_check(h->device) ? 0 : (unsigned)h->device,
		pool ? pool : m.access, false);
	vec_push(&shared, m);
	watch(&shared.at[shared.n - 1]);
	*out = m.at;
	pthread_mutex_unlock(&lock);
	ipc_begins();
	return 0;
}

/* No longer shared; the caller holds the lock. */
static void forget(struct ipc_memory *m)
{
	if (m->log) {
		ipc_race_forget(m->log);
		munmap(m->log, span(ipc_log_bytes()));
	}
	if (m->opened) {
		consan_mem_unmap(device_session(), m->at);
		munmap(m->at, span(m->bytes));
		free(m->access);
	} else { /* it goes back to malloc() */
		mmap(m->at, span(m->bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			0);
	}
	close(m->fd);
	*m = shared.at[--shared.n];
}

int ipc_close(void *at)
{
	struct ipc_memory *m;
	bool last;

	pthread_mutex_lock(&lock);
	m = find(at);
	last = m && m->opened == 1;
	if (m && m->opened > 1)
		m->opened--;
	pthread_mutex_unlock(&lock);
	if (!m || !m->opened)
		return cudaErrorInvalidValue;
	if (!last)
		return 0;
	stream_sync_all(-1); /* what uses it has run */
	return ipc_released(at) ? 0 : cudaErrorInvalidValue;
}

bool ipc_released(void *at)
{
	struct ipc_memory *m;
	bool others = false;

	pthread_mutex_lock(&lock);
	m = find(at);
	if (m) {
		others = m->opened;
		forget(m);
	}
	pthread_mutex_unlock(&lock);
	return others;
}

/* ---- events ---- */

/* Shared by the processes. */
struct ipc_event {
	_Atomic uint64_t issued, done; /* records */
	_Atomic int32_t recorder;      /* the process that issued the last one */
};

/* Has it ended, reaped or not? */
static bool has_ended(int pid)
{
	char path[40], line[512] = "";
	const char *name_end;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT;
	name_end = fgets(line, sizeof line, f) ? strrchr(line, ')') : NULL;
	fclose(f);
	return name_end && (!strncmp(name_end, ") Z", 3) || !strncmp(name_end, ") X", 3));
}

/* Is the record with this number done, or will it never be? The work of a process ends with it. */
static bool is_over(const struct ipc_event *e, uint64_t number)
{
	return atomic_load(&e->done) >= number || has_ended(atomic_load(&e->recorder));
}

static void wait_until_over(const struct ipc_event *e, uint64_t number)
{
	while (atomic_load(&e->done) < number && !is_over(e, number))
		usleep(100);
}

int ipc_export_event(const void *event, void *out)
{
	struct cuda_event *m = cuda_event_of(event);
	struct handle *h = out;
	int error = device_ready();

	if (error)
		return error;
	if (!m || !out || !(m->flags & cudaEventInterprocess) || !m->shared)
		return m ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle;
	memset(out, 0, sizeof(cudaIpcEventHandle_t));
	*h = (struct handle){ .pid = getpid(), .fd = m->shared_fd, .device = m->device, .flags = m->flags,
		.inode = m->shared_inode };
	memcpy(h->magic, event_magic, sizeof h->magic);
	ipc_race_events();
	ipc_begins();
	return 0;
}

static bool map_event(struct cuda_event *m)
{
	m->shared = m->shared_fd < 0 ? MAP_FAILED
		: mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m->shared_fd, 0);
	if (m->shared != MAP_FAILED)
		return true;
	m->shared = NULL;
	if (m->shared_fd >= 0)
		close(m->shared_fd);
	return false;
}

int ipc_new_event(struct cuda_event *m)
{
	if (!(m->flags & cudaEventDisableTiming))
		return cudaErrorInvalidValue;
	m->shared_fd = make_file(event_file, PAGE, &m->shared_inode);
	return map_event(m) ? 0 : cudaErrorMemoryAllocation;
}

int ipc_open_event(const void *handle, struct cuda_event **out)
{
	const struct handle *h = handle;
	struct cuda_event *m;
	int error = device_ready();

	if (error)
		return error;
	if (!out || memcmp(h->magic, event_magic, sizeof h->magic))
		return cudaErrorInvalidValue;
	if (h->pid == getpid())
		return cudaErrorDeviceUninitialized;
	error = cuda_event_new(&m, h->flags & ~(unsigned)cudaEventInterprocess);
	if (error)
		return error;
	m->flags = h->flags;
	m->shared_fd = open_file(h, event_file, PAGE);
	m->shared_inode = h->inode;
	if (!map_event(m)) {
		cuda_event_free(m);
		return cudaErrorMapBufferObjectFailed;
	}
	*out = m;
	ipc_race_events();
	ipc_begins();
	return 0;
}

void ipc_free_event(struct cuda_event *m)
{
	if (!m->shared)
		return;
	munmap(m->shared, PAGE);
	close(m->shared_fd);
}

/* What a stream does for the other processes: an operation of its own, which holds the page. */
struct step { struct ipc_event *event; uint64_t number; };

static struct step *new_step(const struct cuda_event *m, uint64_t number)
{
	struct step *s = base_alloc(sizeof *s);

	s->event = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, m->shared_fd, 0);
	s->number = number;
	return s;
}

static void end_step(struct step *s)
{
	munmap(s->event, PAGE);
	free(s);
}

static void signal_others(void *user)
{
	struct step *s = user;
	uint64_t now = atomic_load(&s->event->done);

	while (now < s->number && !atomic_compare_exchange_weak(&s->event->done, &now, s->number))
		;
	end_step(s);
}

static void wait_for_others(void *user)
{
	struct step *s = user;

	wait_until_over(s->event, s->number);
	end_step(s);
}

int ipc_record(struct cuda_event *m, const void *stream)
{
	struct op op = { .kind = OP_HOST };

	m->recorded_as = atomic_fetch_add(&m->shared->issued, 1) + 1;
	atomic_store(&m->shared->recorder, getpid());
	op.host.call = signal_others;
	op.host.user = new_step(m, m->recorded_as);
	op.host.always = op.host.ours = true;
	return stream_issue(stream, &op, false);
}

bool ipc_of_others(const struct cuda_event *m)
{
	return m->shared && atomic_load(&m->shared->issued) != m->recorded_as;
}

/* What another process recorded may be behind operations of this one: they are taken as waited for. */
int ipc_stream_wait(const struct cuda_event *m, const void *stream)
{
	struct op op = { .kind = OP_HOST };

	for (int d = 0; d < device_count(); d++)
		hb_device_waited(d);
	op.host.call = wait_for_others;
	op.host.user = new_step(m, atomic_load(&m->shared->issued));
	op.host.always = op.host.ours = true;
	return stream_issue(stream, &op, false);
}

int ipc_sync(const struct cuda_event *m, bool query)
{
	const uint64_t number = atomic_load(&m->shared->issued);

	if (query && !is_over(m->shared, number))
		return cudaErrorNotReady;
	wait_until_over(m->shared, number);
	for (int d = 0; d < device_count(); d++)
		hb_device_waited(d);
	return device_ready();
}
