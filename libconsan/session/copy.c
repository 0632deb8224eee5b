/* copy: see copy.h. */
#include "copy.h"

#include "libconsan/base/base.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
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

pid_t copy_fork(void)
{
	static const int fault[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	const pid_t parent = getpid();
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	for (size_t i = 0; i < ARRAY_SIZE(fault); i++)
		sigdelset(&all, fault[i]);
	/* before the fork, so that no handler can run in the copy */
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid) {
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		return pid;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fault); i++)
		signal(fault[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it ended before that */
		_exit(1);
	return 0;
}

void copy_reap(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}
