/* live: see live.h. */
#include "live.h"

#include "libconsan/base/base.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x33306576696c6e63) /* "cnlive03" */

struct results_live {
	uint64_t magic, session, lost, issued;
	struct results_next next;  /* atomic */
	struct { uint64_t id, done, whole; } launch[64]; /* id: the launch + 1, 0: none; atomic */
};

static char *path_of(const char *records)
{
	struct text t = { 0 };

	text_printf(&t, "%s.live", records);
	return t.at;
}

struct results_live *live_create(const char *path, uint64_t session)
{
	char *name = path_of(path);
	int fd = base_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct results_live *v = MAP_FAILED;
	struct size_limit held;

	free(name);
	if (fd < 0)
		return NULL;
	size_limit_begin(&held);
	/* to write to a page that the file system has no room for would be a SIGBUS */
	if (!posix_fallocate(fd, 0, sizeof *v))
		v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	size_limit_end(&held);
	close(fd);
	if (v == MAP_FAILED)
		return NULL;
	v->session = session;
	v->magic = MAGIC;
	return v;
}

void live_close(struct results_live *v, const char *path)
{
	const bool remove = path && v && !__atomic_load_n(&v->lost, __ATOMIC_RELAXED)
		&& !__atomic_load_n(&v->issued, __ATOMIC_RELAXED);
	char *name = remove ? path_of(path) : NULL;

	if (name)
		folder_unlink(name);
	free(name);
	if (v)
		munmap(v, sizeof *v);
}

static size_t find(const struct results_live *v, uint32_t launch)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(v->launch)
		&& __atomic_load_n(&v->launch[i].id, __ATOMIC_ACQUIRE) != (uint64_t)launch + 1)
		i++;
	return i;
}

void live_begin(struct results_live *v, uint32_t launch, uint64_t whole)
{
	const size_t known = v ? find(v, launch) : 0;

	if (v && known < ARRAY_SIZE(v->launch)) {
		__atomic_store_n(&v->launch[known].whole, whole, __ATOMIC_RELEASE);
		return;
	}
	for (size_t i = 0; v && i < ARRAY_SIZE(v->launch); i++) {
		uint64_t none = 0;

		if (!__atomic_compare_exchange_n(&v->launch[i].id, &none, (uint64_t)launch + 1, false,
				__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&v->launch[i].done, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&v->launch[i].whole, whole, __ATOMIC_RELEASE);
		return;
	}
}

void live_cluster(struct results_live *v, uint32_t launch)
{
	const size_t i = v ? find(v, launch) : SIZE_MAX;

	if (v && i < ARRAY_SIZE(v->launch))
		__atomic_add_fetch(&v->launch[i].done, 1, __ATOMIC_RELAXED);
}

void live_end(struct results_live *v, uint32_t launch)
{
	const size_t i = v ? find(v, launch) : SIZE_MAX;

	if (v && i < ARRAY_SIZE(v->launch))
		__atomic_store_n(&v->launch[i].id, 0, __ATOMIC_RELEASE);
}

void live_lost(struct results_live *v)
{
	if (v)
		__atomic_add_fetch(&v->lost, 1, __ATOMIC_RELAXED);
}

void live_issued(struct results_live *v)
{
	if (v)
		__atomic_add_fetch(&v->issued, 1, __ATOMIC_RELAXED);
}

void live_over(struct results_live *v)
{
	if (v)
		__atomic_sub_fetch(&v->issued, 1, __ATOMIC_RELAXED);
}

void live_next(struct results_live *v, const struct results_next *next)
{
	if (!v)
		return;
	__atomic_store_n(&v->next.skip, next->skip, __ATOMIC_RELAXED);
	__atomic_store_n(&v->next.every, next->every, __ATOMIC_RELAXED);
	__atomic_store_n(&v->next.most, next->most, __ATOMIC_RELAXED);
}

/* How many of n launches that wait were to be checked; running: those that are not in next->most yet. */
static uint64_t wanted(const struct results_next *next, uint64_t n, uint64_t running)
{
	const uint64_t most = next->most > running ? next->most - running : 0;
	const uint64_t all = n > next->skip ? (n - next->skip - 1) / next->every + 1 : 0;

	return all < most ? all : most;
}

bool live_read(const char *path, struct live_left *to)
{
	struct results_live v = { 0 };
	char *name = path_of(path);
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* a pipe would be waited for */
	const bool whole = fd >= 0 && read(fd, &v, sizeof v) == sizeof v && v.magic == MAGIC;

	free(name);
	if (fd >= 0)
		close(fd);
	*to = (struct live_left){ .session = v.session, .lost = v.lost };
	for (size_t i = 0; whole && i < ARRAY_SIZE(v.launch); i++) {
		if (!v.launch[i].id)
			continue;
		to->launch[to->n].launch = (uint32_t)(v.launch[i].id - 1);
		to->launch[to->n].done = v.launch[i].done;
		to->launch[to->n++].whole = v.launch[i].whole;
	}
	to->waiting = whole && v.next.every ? wanted(&v.next, v.issued, to->n) : v.issued;
	return whole;
}
