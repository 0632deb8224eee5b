/* size_limit: see size_limit.h. */
#include "size_limit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void size_limit_begin(struct size_limit *s)
{
	struct rlimit limit;
	sigset_t size, pending;

	s->held = false;
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	sigemptyset(&size);
	sigaddset(&size, SIGXFSZ);
	/* one that waits already is the program's */
	s->held = !sigpending(&pending) && !sigismember(&pending, SIGXFSZ)
		&& !pthread_sigmask(SIG_BLOCK, &size, &s->before);
}

void size_limit_end(const struct size_limit *s)
{
	const struct timespec now = { 0 };
	const int error = errno;
	sigset_t size;

	if (!s->held)
		return;
	sigemptyset(&size);
	sigaddset(&size, SIGXFSZ);
	while (sigtimedwait(&size, NULL, &now) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &s->before, NULL);
	errno = error;
}

bool size_limit_set(int fd, size_t bytes)
{
	struct size_limit held;
	bool set;

	size_limit_begin(&held);
	set = !ftruncate(fd, (off_t)bytes);
	size_limit_end(&held);
	return set;
}
