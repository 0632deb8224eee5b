/* lock: the lock of launches, held from before a launch until after it. A thread may end while it has the
 * lock, or a handler of a signal may end the process: neither must make others wait for ever. */
#include "operations.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

static pthread_mutex_t lock;
static pthread_once_t made = PTHREAD_ONCE_INIT;
static _Thread_local bool mine;

/* The launch of the thread that has the lock. */
static struct {
	bool any;
	char *kernel;              /* owned */
	uint32_t number;
	uint64_t queue;
	struct operation *operation;
} current;

static void make(void)
{
	pthread_mutexattr_t how;

	pthread_mutexattr_init(&how);
	pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&lock, &how);
	pthread_mutexattr_destroy(&how);
}

/* error: of a call that locks. */
static bool taken(int error)
{
	if (error && error != EOWNERDEAD)
		return false;
	mine = true;
	if (!error)
		return true;
	pthread_mutex_consistent(&lock);
	if (current.any) {
		gpu_unchecked(inject_session(), current.kernel, current.number, current.queue,
			"the thread that launched it ended while it ran, so that its records were not read");
		gpu_ran(inject_session(), NULL, NULL);
		operations_close(current.operation);
	}
	current.any = false;
	return true;
}

static struct timespec in(double seconds)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (time_t)seconds;
	t.tv_nsec += (long)(1e9 * (seconds - (double)(time_t)seconds));
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

void inject_lock(void)
{
	pthread_once(&made, make);
	taken(pthread_mutex_lock(&lock));
}

bool inject_lock_within(double seconds)
{
	const struct timespec until = in(seconds);

	if (mine)
		return false;
	pthread_once(&made, make);
	return taken(pthread_mutex_timedlock(&lock, &until));
}

void inject_unlock(void)
{
	current.any = false;
	mine = false;
	pthread_mutex_unlock(&lock);
}

void inject_locked_for(const struct inject_launch *l)
{
	free(current.kernel);
	current.kernel = base_strdup(l->kernel);
	current.number = l->wanted;
	current.queue = l->queue;
	current.operation = l->operation;
	current.any = true;
}

void inject_wait(pthread_cond_t *until, double seconds)
{
	const struct timespec time = in(seconds);
	int error;

	mine = false;
	error = pthread_cond_timedwait(until, &lock, &time);
	taken(error == ETIMEDOUT ? 0 : error);
}
