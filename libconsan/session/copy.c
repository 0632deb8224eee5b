/* copy: see copy.h. */
#include "copy.h"

#include "libconsan/base/base.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
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

#define LOOK 50       /* milliseconds between looks at what the copy has used */
#define ASLEEP 10.0   /* seconds on the clock: a process that uses no time for so long is blocked */

bool copy_await(int fd, pid_t pid, double limit)
{
	double used = 0, since = progress_seconds();

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		const int n = poll(&wait, 1, LOOK);
		const double now = progress_seconds(), cpu = cpu_other(pid);

		if (n > 0)
			return true;
		if ((n < 0 && errno != EINTR) || cpu < 0 || cpu > limit)
			return false;
		if (cpu != used)
			since = now;
		used = cpu;
		if (now - since > ASLEEP)
			return false;
	}
}

double copy_patience(double limit)
{
	enum { BUSY = 20, MORE = 30 }; /* a busy machine is so much slower; seconds for fork() and the like */

	return progress_seconds() + BUSY * limit + MORE;
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

static double seconds(const struct timeval *t)
{
	return (double)t->tv_sec + 1e-6 * (double)t->tv_usec;
}

double copy_reap(pid_t pid)
{
	struct rusage used = { 0 };

	while (wait4(pid, NULL, 0, &used) < 0 && errno == EINTR)
		;
	return seconds(&used.ru_utime) + seconds(&used.ru_stime);
}
