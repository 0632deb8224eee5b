/* pool: every share of the work is done once, by whichever thread. */
#include "libconsan/base/base.h"
#include "tests/common/limits.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 3u
#define SHARES 1000u

struct job {
	unsigned next, calls;
	unsigned left;             /* calls that have not begun, if they wait for each other */
	unsigned times[SHARES];
	pthread_t caller;
	unsigned elsewhere;        /* calls on other threads than the caller's */
};

static void take_shares(void *arg)
{
	struct job *j = arg;
	unsigned k;

	__atomic_fetch_add(&j->calls, 1, __ATOMIC_RELAXED);
	if (!pthread_equal(j->caller, pthread_self()))
		__atomic_fetch_add(&j->elsewhere, 1, __ATOMIC_RELAXED);
	while ((k = __atomic_fetch_add(&j->next, 1, __ATOMIC_RELAXED)) < SHARES)
		j->times[k]++;
}

static void run(struct job *j, unsigned threads)
{
	*j = (struct job){ .caller = pthread_self() };
	pool_run(take_shares, j, threads);
	for (unsigned k = 0; k < SHARES; k++)
		cr_assert_eq(j->times[k], 1, "share %u", k);
}

Test(pool, without_workers)
{
	struct job j;

	run(&j, 8);
	cr_assert_eq(j.calls, 1);
	cr_assert_eq(j.elsewhere, 0);
}

Test(pool, at_most_the_requested_threads)
{
	struct job j;

	pool_open(WORKERS);
	for (unsigned threads = 0; threads < 2 * WORKERS; threads++)
		for (unsigned k = 0; k < 100; k++) {
			run(&j, threads);
			cr_assert(j.calls >= 1 && j.calls <= (threads ? threads : 1), "%u", j.calls);
			cr_assert(j.calls <= WORKERS + 1, "%u", j.calls);
			cr_assert(j.elsewhere + 1 == j.calls);
		}
}

/* Returns only if WORKERS + 1 threads are in it at once. */
static void wait_for_all(void *arg)
{
	struct job *j = arg;

	__atomic_fetch_sub(&j->left, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&j->left, __ATOMIC_RELAXED))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

Test(pool, runs_at_the_same_time, .timeout = TEST_LIMIT)
{
	struct job j = { .left = WORKERS + 1 };

	pool_open(WORKERS);
	pool_run(wait_for_all, &j, WORKERS + 1);
	cr_assert_eq(j.left, 0);
}

/* Each asks for more workers than are free, and the queue is shorter than what all want. */
static void run_inside(void *arg)
{
	struct job j;

	(void)arg;
	for (unsigned k = 0; k < 10; k++)
		run(&j, 2 * POOL_MOST);
}

Test(pool, runs_inside_of_runs, .timeout = TEST_LIMIT)
{
	pool_open(WORKERS);
	pool_run(run_inside, NULL, WORKERS + 1);
}

static void *run_outside(void *arg)
{
	run_inside(arg);
	return NULL;
}

Test(pool, runs_from_several_threads, .timeout = TEST_LIMIT)
{
	pthread_t thread[8];

	pool_open(2 * POOL_MOST);
	for (unsigned k = 0; k < 8; k++)
		cr_assert_eq(pthread_create(&thread[k], NULL, run_outside, NULL), 0);
	for (unsigned k = 0; k < 8; k++)
		pthread_join(thread[k], NULL);
}

/* Threads do not survive a fork: the child starts its own. */
Test(pool, forked, .timeout = TEST_LIMIT)
{
	struct job j = { .left = WORKERS + 1 };
	int status = 0;
	pid_t child;

	pool_open(WORKERS);
	run(&j, WORKERS + 1);
	child = fork();
	if (!child) {
		j.left = WORKERS + 1;
		pool_run(wait_for_all, &j, WORKERS + 1);
		_exit(j.left ? 1 : 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	j.left = WORKERS + 1;
	pool_run(wait_for_all, &j, WORKERS + 1);
	cr_assert_eq(j.left, 0);
}
