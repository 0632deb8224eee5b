/* append: see append.h. */
#include "append.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t new_session(void)
{
	uint64_t n = 0;

	if (getrandom(&n, sizeof n, 0) != sizeof n)
		n = (uint64_t)getpid();
	return n >> 2; /* JSON integers are signed */
}

bool append_open(struct append *a, const char *path, struct consan_err *e)
{
	struct stat st;

	*a = (struct append){ .fd = base_open(path, O_WRONLY | O_CREAT | O_APPEND, 0644),
		.pid = getpid() };
	if (a->fd < 0 || fstat(a->fd, &st)) {
		err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
		if (a->fd >= 0)
			close(a->fd);
		return false;
	}
	a->dev = st.st_dev;
	a->ino = st.st_ino;
	a->path = realpath(path, NULL);
	if (!a->path) /* the program has another root (folder.h) */
		a->path = base_strdup(path);
	a->session = new_session();
	pthread_mutex_init(&a->lock, NULL);
	return true;
}

static bool is_ours(const struct append *a, int fd, struct stat *st)
{
	return fd >= 0 && !fstat(fd, st) && st->st_dev == a->dev && st->st_ino == a->ino;
}

bool append_is_ours(const struct append *a, int fd)
{
	struct stat st;

	return is_ours(a, fd, &st);
}

static void open_again(struct append *a)
{
	const int fd = a->path ? base_open(a->path, O_WRONLY | O_APPEND, 0) : -1;

	if (append_is_ours(a, fd)) {
		a->fd = fd;
		return;
	}
	if (fd >= 0)
		close(fd);
	if (!append_is_ours(a, a->fd))
		a->fd = -1;
}

bool append_forked(struct append *a)
{
	const bool forked = a->pid != getpid();
	const int old = a->fd;
	struct stat st;

	if (!forked && is_ours(a, a->fd, &st)) {
		a->removed = !st.st_nlink;
		return false;
	}
	open_again(a);
	a->removed = !is_ours(a, a->fd, &st) || !st.st_nlink;
	if (!forked)
		return false;
	if (a->fd != old && append_is_ours(a, old))
		close(old);
	a->pid = getpid();
	a->session = new_session();
	return true;
}

/* One write(), unless the disk is full or a signal interrupts it. */
int append_write(struct append *a, const void *piece, size_t n)
{
	struct size_limit held;
	int error = 0;

	size_limit_begin(&held);
	for (size_t at = 0; at < n && !error;) {
		ssize_t k = write(a->fd, (const char *)piece + at, n - at);

		if (k < 0 && errno != EINTR)
			error = errno;
		if (k > 0)
			at += (size_t)k;
	}
	size_limit_end(&held);
	return error;
}

int append_close(struct append *a)
{
	const int error = !append_is_ours(a, a->fd) ? EBADF : close(a->fd) ? errno : 0;

	pthread_mutex_destroy(&a->lock);
	free(a->path);
	return error;
}
