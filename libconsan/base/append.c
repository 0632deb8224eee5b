/* append: see append.h. */
#include "append.h"

#include "base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
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
	*a = (struct append){ .fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644),
		.pid = getpid() };
	if (a->fd < 0)
		return err_set(e, CONSAN_ERR_IO, 0, 0, "%s: %s", path, strerror(errno));
	a->session = new_session();
	pthread_mutex_init(&a->lock, NULL);
	return true;
}

bool append_forked(struct append *a)
{
	if (a->pid == getpid())
		return false;
	a->pid = getpid();
	a->session = new_session();
	return true;
}

/* One write(), unless the disk is full or a signal interrupts it. */
int append_write(struct append *a, const void *piece, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t k = write(a->fd, (const char *)piece + at, n - at);

		if (k < 0 && errno != EINTR)
			return errno;
		if (k > 0)
			at += (size_t)k;
	}
	return 0;
}

int append_close(struct append *a)
{
	pthread_mutex_destroy(&a->lock);
	return close(a->fd) ? errno : 0;
}
