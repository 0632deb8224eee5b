/* The threads that stand by: who does what is given, called for, taken back. */
#include "libconsan/base/crew.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HANDS 3u

struct job {
	pthread_t by;
	unsigned times;
};

static void do_job(void *arg)
{
	struct job *j = arg;

	j->by = pthread_self();
	j->times++;
}

static struct crew_task task_for(struct job *j, unsigned hand)
{
	*j = (struct job){ .times = 0 };
	return (struct crew_task){ .work = do_job, .arg = j, .hand = hand };
}

static void nap(long ns)
{
	nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* Where processors are busy, hands may have slept before they came to look. */
static bool is_done(const struct crew_task *t)
{
	for (unsigned k = 0; k < 1000 && !__atomic_load_n(&t->done, __ATOMIC_ACQUIRE); k++) {
		crew_alert(HANDS);
		nap(1000000);
	}
	return t->done;
}

Test(crew, without_threads)
{
	struct job j;
	struct crew_task t = task_for(&j, 0);

	cr_assert_not(crew_give(&t));
	crew_call(&t, 1, HANDS);
	cr_assert_not(t.given);
	crew_alert(HANDS);
	crew_dismiss();
	crew_wait(&t);
	cr_assert_eq(j.times, 0);
}

/* One answers each call, and is the hand of its number from then on. Where processors are
 * few, one may answer two: then it is tried again. */
Test(crew, who_answers_is_the_hand_of_that_number)
{
	struct job called[HANDS], given[HANDS];
	struct crew_task task[HANDS], one;
	unsigned tries = 0;
	bool apart;

	crew_open(HANDS);
	do {
		for (unsigned k = 0; k < HANDS; k++)
			task[k] = task_for(&called[k], (k + tries) % HANDS);
		crew_call(task, HANDS, HANDS);
		for (unsigned k = 0; k < HANDS; k++)
			cr_assert(is_done(&task[k]), "nobody answered call %u", k);
		apart = true;
		for (unsigned k = 0; k < HANDS; k++) {
			cr_assert_eq(called[k].times, 1);
			cr_assert_not(pthread_equal(called[k].by, pthread_self()));
			apart &= !pthread_equal(called[k].by, called[(k + 1) % HANDS].by);
		}
		for (unsigned k = 0; k < HANDS; k++) {
			one = task_for(&given[k], task[k].hand);
			cr_assert(crew_give(&one));
			cr_assert(is_done(&one));
			if (apart)
				cr_assert(pthread_equal(given[k].by, called[k].by), "hand %u", task[k].hand);
		}
	} while (!apart && ++tries < 100);
	cr_assert(apart, "never three at once");
}

/* Nobody is awake: whoever waits does it. */
Test(crew, waiting_takes_a_call_back)
{
	struct job j;
	struct crew_task t = task_for(&j, 0);

	crew_open(1);
	nap(50000000);
	crew_call(&t, 1, 0);
	cr_assert(t.given);
	crew_wait(&t);
	cr_assert_eq(j.times, 1);
	cr_assert(pthread_equal(j.by, pthread_self()));
	crew_alert(1); /* there is nothing left to answer */
	nap(2000000);
	cr_assert_eq(j.times, 1);
}

/* More than there is room for: the rest is done by whoever calls, or not at all. */
Test(crew, more_calls_than_room)
{
	enum { MANY = 20 };
	struct job j[MANY];
	struct crew_task t[MANY];
	unsigned given = 0;

	crew_open(HANDS);
	for (unsigned k = 0; k < MANY; k++)
		t[k] = task_for(&j[k], k);
	crew_call(t, MANY, HANDS);
	for (unsigned k = 0; k < MANY; k++) {
		crew_wait(&t[k]);
		given += j[k].times;
		cr_assert(j[k].times <= 1);
	}
	cr_assert(given > 0 && given < MANY, "%u", given);
}

Test(crew, dismissed_hands_still_work)
{
	struct job j;
	struct crew_task t = task_for(&j, 1);

	crew_open(HANDS);
	crew_alert(HANDS);
	crew_dismiss();
	nap(1000000);
	cr_assert(crew_give(&t));
	crew_wait(&t);
	cr_assert_eq(j.times, 1);
}

/* Threads do not survive a fork, what they were called for does not either. */
Test(crew, forked)
{
	struct job j;
	struct crew_task t = task_for(&j, 0);
	int status = 0;
	pid_t child;

	crew_open(1);
	nap(50000000);
	crew_call(&t, 1, 0);
	child = fork();
	if (!child) {
		crew_wait(&t); /* not this process's */
		if (j.times)
			_exit(1);
		crew_call(&t, 1, 1);
		if (t.given)
			_exit(2);
		crew_open(1);
		t = task_for(&j, 0);
		if (!crew_give(&t))
			_exit(3);
		crew_wait(&t);
		_exit(j.times == 1 ? 0 : 4);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "%d", status);
	crew_wait(&t);
	cr_assert_eq(j.times, 1);
}
