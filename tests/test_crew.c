/* The threads that stand by: who does what is given, called for, taken back. */
#include "../libconsan/crew.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANDS 3u

struct job {
	struct crew_task task;
	pthread_t by;
	unsigned times;
};

static void do_job(void *arg)
{
	struct job *j = arg;

	j->by = pthread_self();
	j->times++;
}

static struct job job_for(struct job *j, unsigned hand)
{
	return (struct job){ .task = { .work = do_job, .arg = j, .hand = hand } };
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Where processors are busy, hands may have slept before they came to look. */
static bool is_done(const struct job *j)
{
	for (unsigned k = 0; k < 1000 && !__atomic_load_n(&j->task.done, __ATOMIC_ACQUIRE); k++) {
		crew_alert(HANDS);
		nap(1000000);
	}
	return j->task.done;
}

Test(crew, without_threads)
{
	struct job j = job_for(&j, 0);

	cr_assert_not(crew_give(&j.task));
	cr_assert_not(crew_call(&j.task));
	crew_alert(4);
	crew_dismiss();
	crew_wait(&j.task);
	cr_assert_eq(j.times, 0);
}

/* One answers each call, and is the hand of its number from then on. Where processors are
 * few, one may answer two: then it is tried again. */
Test(crew, who_answers_is_the_hand_of_that_number)
{
	unsigned tries = 0;
	bool apart;

	crew_open(HANDS);
	do {
		struct job called[HANDS], given[HANDS];

		crew_alert(HANDS);
		nap(2000000);
		for (unsigned k = HANDS; k-- > 0;) {
			called[k] = job_for(&called[k], k);
			cr_assert(crew_call(&called[k].task));
		}
		for (unsigned k = 0; k < HANDS; k++)
			cr_assert(is_done(&called[k]), "awake, and nobody answered call %u", k);
		apart = true;
		for (unsigned k = 0; k < HANDS; k++) {
			cr_assert_eq(called[k].times, 1);
			cr_assert_not(pthread_equal(called[k].by, pthread_self()));
			apart &= !pthread_equal(called[k].by, called[(k + 1) % HANDS].by);
		}
		for (unsigned k = 0; k < HANDS; k++) {
			given[k] = job_for(&given[k], k);
			cr_assert(crew_give(&given[k].task));
			cr_assert(is_done(&given[k]));
			if (apart)
				cr_assert(pthread_equal(given[k].by, called[k].by), "hand %u", k);
		}
	} while (!apart && ++tries < 100);
	cr_assert(apart, "never three at once");
}

/* Nobody is awake: whoever waits does it. */
Test(crew, waiting_takes_a_call_back)
{
	struct job j = job_for(&j, 0);

	crew_open(1);
	nap(50000000);
	cr_assert(crew_call(&j.task));
	crew_wait(&j.task);
	cr_assert_eq(j.times, 1);
	cr_assert(pthread_equal(j.by, pthread_self()));
	crew_alert(1); /* there is nothing left to answer */
	nap(2000000);
	cr_assert_eq(j.times, 1);
}

Test(crew, dismissed_hands_still_work)
{
	struct job j = job_for(&j, 1);

	crew_open(HANDS);
	crew_alert(HANDS);
	crew_dismiss();
	nap(1000000);
	cr_assert(crew_give(&j.task));
	crew_wait(&j.task);
	cr_assert_eq(j.times, 1);
}

/* Threads do not survive a fork, what they were called for does not either. */
Test(crew, forked)
{
	struct job j = job_for(&j, 0);
	int status = 0;
	pid_t child;

	crew_open(1);
	nap(50000000);
	cr_assert(crew_call(&j.task));
	child = fork();
	if (!child) {
		crew_wait(&j.task); /* not this process's */
		if (j.times || crew_call(&j.task))
			_exit(1);
		crew_open(1);
		j = job_for(&j, 0);
		if (!crew_give(&j.task))
			_exit(2);
		crew_wait(&j.task);
		_exit(j.times == 1 ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	crew_wait(&j.task);
	cr_assert_eq(j.times, 1);
}
