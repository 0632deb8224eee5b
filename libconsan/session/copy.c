/* copy: see copy.h. */
#include "copy.h"

#include "libconsan/base/base.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

bool copy_put(int fd, const void *at, size_t n)
{
	const char *p = at;

	while (n) {
		ssize_t k = write(fd, p, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

bool copy_get(int fd, void *at, size_t n, double until)
{
	char *p = at;

	while (n) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		const double left = until ? until - progress_seconds() : 1;
		ssize_t k = 1;

		if (left <= 0)
			return false;
		if (until && poll(&wait, 1, (int)(1000 * left) + 1) <= 0 && errno != EINTR)
			return false;
		if (until && !wait.revents)
			continue;
		k = read(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

void copy_reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
